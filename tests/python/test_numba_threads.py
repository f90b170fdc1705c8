"""The tests of kernels whose threads meet, once more on one worker and on two."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
FILES = ["elementwise", "matrix", "reduce", "programs", "sync", "warp"]


@pytest.mark.slow
@pytest.mark.parametrize("threads", ["1", "2"])
def test_kernels_on_workers(threads):
    """SIMT_NUM_THREADS is read once, so that a process of its own is needed."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += [str(HERE / f"test_numba_{name}.py") for name in FILES]
    env = {**os.environ, "SIMT_NUM_THREADS": threads}
    run = subprocess.run(command, env=env, capture_output=True, text=True, cwd=HERE.parent.parent)
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-1000:]
