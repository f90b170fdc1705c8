"""ARCHITECTURE.md tells the truth: its files exist, its tour passes through the stages it lists."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")


def block(kind):
    return re.search(rf"```{kind}\n(.*?)```", PAGE, re.S).group(1)


def test_named_files_exist():
    named = set(re.findall(r"`((?:src|python|tools|docs|tests)/[\w./-]+|[A-Z]+\.md)`", PAGE))
    assert len(named) > 30
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []


def stages_of(command):
    """(what the program prints, the stages it passes through)"""
    env = dict(
        os.environ,
        SIMT_DUMP="ir,opt,facts,asm",
        SIMT_VERIFY="1",
        PYTHONPATH=os.pathsep.join(sys.path),
    )
    done = subprocess.run(
        [sys.executable, *command], env=env, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, re.findall(r"^; simt: (\w+)", done.stderr, re.M)


def test_tour_passes_through_the_stages():
    out, seen = stages_of(["-c", "from simt import torch\n" + block("python")])
    assert float(out) == 64 * 32 * 16
    stages = block("stages").split()
    assert len(seen) >= 2 * len(stages) and len(seen) % len(stages) == 0
    for start in range(0, len(seen), len(stages)):  # each kernel passes through all of them
        assert seen[start : start + len(stages)] == stages


def test_tour_of_a_kernel(tmp_path):
    program = tmp_path / "kernel.py"
    head = "import numpy as np\nfrom simt.numba import cuda\n\n"
    program.write_text(head + block("kernel"))
    out, seen = stages_of([str(program)])
    assert float(out) == 2000
    stages = block("stages").split()
    stages.insert(stages.index("dce"), "contract")
    assert seen == stages
