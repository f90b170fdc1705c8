"""A little of each kind of tools/reliability."""

import os
import subprocess
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = os.path.join(ROOT, "tools", "reliability")
LITTLE = {  # kind -> arguments of its short run
    "allocations": "--only kernel_add,_const,_sort,_shapes --every 31 --python 1".split(),
    "forks": ["--count", "4", "--seed", "1"],
    "interrupts": ["--count", "20", "--seed", "1"],
    "limits": ["--count", "6", "--rounds", "40", "--seed", "1"],
}


@pytest.mark.parametrize("kind", LITTLE)
def test_little(kind):
    if kind == "limits" and "SIMT_SANITIZE" in os.environ:
        pytest.skip("the sanitizer itself ends where memory does")
    done = subprocess.run(
        [sys.executable, FOLDER, kind, *LITTLE[kind]], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0 and "no failures" in done.stdout, done.stdout + done.stderr
