"""SIMT_DUMP: which stages show, and the vm's listing."""

import os
import re
import subprocess
import sys

import pytest
from simt import _core

PROGRAM = "import simt.cupy as cp; print(cp.sqrt(cp.arange(10.0) + 1).sum().item())"
KERNEL = """kernel @sample(%0: ptr.global) file "sample.py" {
  %1: i32 = special tid.x
  %2: i32 = const 0
  %3: i32 = const 10
  %4: i32 = loop @0 (%5: i32 = %2, %6: i32 = %2) {
    %7: i1 = lt.s %5, %3 @7:5
    if @1 %7 {
      br @1
    } else {
      br @0 %6
    }
    %8: i32 = mul %6, %1 @9:9
    %9: i32 = add %8, %5 @9:5
    %10: i32 = const 1
    %11: i32 = add %5, %10
    continue @0 %11, %9
  }
  %12: i64 = sext %1
  %13: i64 = const 4
  %14: i64 = mul %12, %13
  %15: ptr.global = ptradd %0, %14
  %16: i32 = atomic.add relaxed.device %15, %4 @12:1
  return
}
"""


def dump(kinds, *command):
    """What a program writes to standard error with SIMT_DUMP=kinds."""
    done = subprocess.run(
        [sys.executable, *(command or ("-c", PROGRAM))],
        env=dict(os.environ, SIMT_DUMP=kinds, PYTHONPATH=os.pathsep.join(sys.path)),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.parametrize(
    "kinds, shown, hidden",
    [
        ("ir", {"ir"}, {"fold", "vm"}),
        ("opt", {"ir", "fold", "cse", "licm", "dce"}, {"vm"}),
        ("asm", {"vm"}, {"ir", "fold"}),
        ("ir,asm", {"ir", "vm"}, {"fold", "facts"}),
        ("facts", {"facts"}, {"ir", "fold", "vm"}),
    ],
)
def test_stages(kinds, shown, hidden):
    stages = set(re.findall(r"^; simt: (\w+)", dump(kinds), re.M))
    assert shown <= stages and not hidden & stages


TWO = """
import numpy as np
from simt.numba import cuda

@cuda.jit
def add(a):
    a[cuda.grid(1)] += 1

@cuda.jit
def other(a):
    a[cuda.grid(1)] += 2

add[1, 4](np.zeros(4))
other[1, 4](np.zeros(4))
"""


def test_one_kernel(tmp_path):
    program = tmp_path / "two.py"
    program.write_text(TWO)
    shown = dump("opt:add,asm:other", str(program))
    stages = re.findall(r"^; simt: (.*)", shown, re.M)
    assert stages[-1] == "vm" and stages.count("vm") == stages.count("ir") == 1
    assert "@add(" in shown and "@other(" not in shown and "\nother, " in shown


def test_passes_that_changed_nothing_say_so():
    """What a pass shows differs from what was shown before."""
    shown = dump("opt")
    parts = re.split(r"^; simt: (.*)\n", shown, flags=re.M)[1:]
    before, unchanged = "", 0
    for stage, text in zip(parts[::2], parts[1::2], strict=True):
        if stage.endswith(" unchanged"):
            unchanged += 1
            assert text == ""
        elif stage != "verify":
            assert text not in ("", before)
            before = text
    assert unchanged > 0


def test_listing():
    head, *lines = _core.ir_listing(KERNEL, 32).splitlines()
    assert head.startswith("sample, ") and head.endswith(" bytes") and "1 gangs of 32 lanes" in head
    code = [re.fullmatch(r" *(\d+)  (\S+)(.*)", line).groups() for line in lines]
    assert [int(number) for number, _, _ in code] == list(range(len(code)))
    names = [name for _, name, _ in code]
    assert names[-1] == "finish" and "loop.back" in names
    targets = [int(t) for _, _, rest in code for t in re.findall(r"-> (\d+)", rest)]
    assert targets and max(targets) < len(code)
    for pattern in (r"vector mul\.i32 .*; line 9$", r"atomic atomic\.add\.i32 .*; line 12$"):
        assert re.search(pattern, "\n".join(lines), re.M), pattern


def test_a_program_shows_the_listing():
    shown = dump("asm")
    assert shown.startswith("; simt: vm\n") and "fsqrt.f64" in shown
