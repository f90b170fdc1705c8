"""Random kernels in the style of users, out-of-bounds accesses included, against plain Python."""

import os
import re

import numpy as np
import pytest
from kernel_programs import Cells, Program, Racy, Reference, TooLong, run_threads
from numba_face import MODE, cuda
from numba_source import load

if MODE != "simt":
    pytest.skip("faults are simt's own", allow_module_level=True)

OUT_OF_BOUNDS = re.compile(r"index (-?\d+) is out of bounds for axis (\d+) with size (\d+)")
EXAMPLES = int(os.environ.get("SIMT_KERNEL_EXAMPLES", "150"))
FIRST = int(os.environ.get("SIMT_KERNEL_FIRST", "0"))


def reference(program):
    """The fault, the arrays after the launch, and who wrote what; None: order matters."""
    logs = {"out": {}, "o1": {}}

    def wrap(name, array):
        cells = np.arange(array.size).reshape(array.shape)
        return Cells(array, logs.get(name), cells)

    arrays = program.arguments(wrap)
    kernel = load(program.source, cuda=Reference, np=np)["kernel"]
    try:
        fault = run_threads(kernel, arrays, program.grid, program.block)
    except (Racy, TooLong, ZeroDivisionError, OverflowError):
        return None
    return fault, arrays, logs


def place(at):
    return f"({at.x}, {at.y}, {at.z})"


def check_error(fault, error):
    if fault is None:
        assert error is None, error
        return
    text = str(error)
    assert OUT_OF_BOUNDS.search(text).groups() == OUT_OF_BOUNDS.search(fault.error).groups(), text
    assert f"block {place(fault.block)}, thread {place(fault.thread)}" in text
    assert f":{fault.line}:" in text


def check(seed):
    program = Program(seed)
    expected = reference(program)
    if expected is None:
        return False
    fault, wanted, logs = expected
    arrays, error = program.arguments(), None
    try:
        load(program.source, cuda=cuda, np=np)["kernel"][program.grid, program.block](*arrays)
    except IndexError as caught:
        error = caught
    check_error(fault, error)
    for name, want, got in zip(program.arrays, wanted, arrays):
        if name in program.WRITTEN:
            same = want.array == got
            for cell, (writer, _) in logs.get(name, {}).items():
                if writer == "two":
                    same.flat[cell] = True
            assert same.all(), (name, np.argwhere(~same)[:5].tolist())
    return True


@pytest.mark.parametrize("part", range(3))
def test_random_kernels(part):
    seeds = range(FIRST + part, FIRST + EXAMPLES, 3)
    done = 0
    for seed in seeds:
        try:
            done += check(seed)
        except Exception as error:
            error.add_note(f"seed {seed}\n{Program(seed).source}")
            raise
    assert done > len(seeds) // 2
