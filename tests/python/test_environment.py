"""docs/environment.md names the variables that the source reads; SIMT_ISA, SIMT_DUMP."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from simt import _machine

ROOT = Path(__file__).resolve().parents[2]
READ = [
    (".c", re.compile(r'getenv\("(\w+)"\)')),
    (".py", re.compile(r"""environ(?:\.get\(|\[)["'](SIMT_\w+)["']""")),
]


def variables_read():
    found = set()
    for folder in ("src", "python"):
        for path in (ROOT / folder).rglob("*"):
            for ending, pattern in READ:
                if path.suffix == ending:
                    found.update(pattern.findall(path.read_text(encoding="utf-8")))
    return found


@pytest.mark.parametrize("page", ["environment.md", "environment.zh-CN.md"])
def test_the_table_is_what_the_source_reads(page):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    named = re.findall(r"^\| `(\w+)` \|", text, re.M)
    assert len(named) == len(set(named)) and set(named) == variables_read()


def test_instructions_that_were_asked_for(monkeypatch):
    monkeypatch.setattr(_machine, "simd_level", lambda flags: "AVX-512")
    for asked, used in (
        ("", "AVX-512"),
        ("avx2", "AVX2"),
        ("generic", "generic"),
        ("x", "AVX-512"),
    ):
        monkeypatch.setenv("SIMT_ISA", asked)
        assert _machine.simd_used() == used and f"({used}," in _machine.cpu_name()


def test_a_dump_that_there_is_not():
    done = subprocess.run(
        [sys.executable, "-c", "import simt.cupy as cp; cp.zeros(1).sum().item()"],
        env=dict(os.environ, SIMT_DUMP="opt:add,nothing:x", PYTHONPATH=os.pathsep.join(sys.path)),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (
        done.returncode == 1
        and "there is no 'nothing:x', but ir, opt, facts and asm" in done.stderr
    )
