"""Random programs: the vm with and without the optimiser against a scalar evaluator of its own.

usage: python tests/differential/test_ir.py FROM TO     (runs these seeds and prints what differs)
"""

import math
import os
import sys
import traceback

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_eval import box, run
from ir_gen import INPUT_BYTES, SHARED_BYTES, STRUCT_BYTES
from ir_programs import generate, generate_waiting
from simt import _core

GRID, BLOCK = 2, 5
# of launches in two and three dimensions; of threads that exchange values
BOXES = [((2, 3), (4, 2)), ((1, 2, 2), (3, 2, 2)), ((3, 1, 2), (1, 5)), (2, (8, 1, 3)), ((2, 2), 7)]
BOXES += [(1, (17, 2)), (1, (2, 3, 11))]
# of threads that know their number in the grid only
APART = [(4, 32), (1, 1), (37, 1), (3, 33), (2, 100), (5, 3), (13, (1, 2)), ((2, 3), (4, 2))]
APART += [((1, 2, 2), (3, 2, 2)), ((3, 1, 2), (1, 5)), ((2, 2), 7), (2, (1, 1, 9)), ((1, 40), 2)]
APART += [((16, 2), (8, 1)), (1, 257), ((1, 1, 3), 24), ((2, 1), (16, 4))]
WAITING = [(4, 8), (3, 5, 2), (8, 2, 4), (1, 33), (7, 1, 3), (16, 4)]
KINDS = {"i8": "u1", "i16": "u2", "i32": "u4", "i64": "u8", "f16": "f2", "f32": "f4", "f64": "f8"}


def threads_of(grid, block):
    return math.prod(box(grid)) * math.prod(box(block))


def inputs(seed, program, threads):
    """Output bytes, input bytes, scalars and struct of a launch."""
    rng = np.random.default_rng(seed)
    data = rng.integers(0, 256, INPUT_BYTES, np.uint8)
    data[: INPUT_BYTES // 2].view(np.float64)[:] = rng.standard_normal(INPUT_BYTES // 16)
    out = np.zeros(threads * program.bytes_per_thread, np.uint8)
    scalars = [int(rng.integers(-100, 100)), float(np.float32(rng.standard_normal()))]
    return [out, data, *scalars, data[-STRUCT_BYTES - seed % 8 :][:STRUCT_BYTES].copy()]


def differences(program, got, want):
    """Slots whose values differ; any NaN equals any other."""
    found = []
    got = got.reshape(-1, len(program.slots), 8)
    want = want.reshape(-1, len(program.slots), 8)
    for slot, kind in enumerate(program.slots):
        a, b = (np.ascontiguousarray(x[:, slot]).view(KINDS[kind])[:, 0] for x in (got, want))
        same = a.view(f"u{a.itemsize}") == b.view(f"u{b.itemsize}")
        if kind[0] == "f":
            same |= np.isnan(a) & np.isnan(b)
        if not same.all():
            thread = int(np.argmin(same))
            found.append((slot, kind, thread, a[thread], b[thread]))
    return found


def check_road(program, seed, grid, block, want, counters, **options):
    """One way to run it: output and counters."""
    got, module = inputs(seed, program, threads_of(grid, block)), _core.ir_module()
    _core.ir_run(program.text, grid, block, got, shared=SHARED_BYTES, module=module, **options)
    assert not differences(program, got[0], want[0]), (seed, grid, block, options)
    assert _core.ir_variable(module, "counters") == counters, (seed, grid, block, options)
    assert (got[4] == inputs(seed, program, 1)[4]).all()


def expected(program, seed, grid, block):
    """What the evaluator makes of it: arguments, counters."""
    want, variables = inputs(seed, program, threads_of(grid, block)), {}
    run(program.text, grid, block, want, shared=SHARED_BYTES, variables=variables)
    return want, variables["counters"].tobytes()


def check(seed, size=30, grid=GRID, block=BLOCK, apart=False, calls=False):
    """One program on all roads."""
    dims = 1 if isinstance(grid, int) and isinstance(block, int) else 3
    program = generate(seed, size, dims, apart, calls)
    want, counters = expected(program, seed, grid, block)
    roads = [{"optimize": False}, {"optimize": True}, {"isa": "generic"}]
    for options in roads + [{"max_budget": 1 + seed % 5}] * calls:
        check_road(program, seed, grid, block, want, counters, **options)


@given(st.integers(0, 2**32))
@settings(max_examples=int(os.environ.get("SIMT_IR_EXAMPLES", "60")), deadline=None)
def test_vm_and_optimiser_against_the_evaluator(seed):
    check(seed)


@given(st.integers(0, 2**32))
@settings(max_examples=int(os.environ.get("SIMT_IR_EXAMPLES", "60")) // 2, deadline=None)
def test_launches_of_more_dimensions(seed):
    check(seed, 30, *BOXES[seed % len(BOXES)])


@given(st.integers(0, 2**32))
@settings(max_examples=int(os.environ.get("SIMT_IR_EXAMPLES", "60")), deadline=None)
def test_threads_that_may_be_regrouped(seed):
    check(seed, 8 + seed % 23, *APART[seed % len(APART)], apart=True)


@given(st.integers(0, 2**32))
@settings(max_examples=int(os.environ.get("SIMT_IR_EXAMPLES", "60")) // 2, deadline=None)
def test_calls_of_functions(seed):
    check(seed, 4 + seed % 20, *(BOXES[seed % len(BOXES)] if seed % 3 == 0 else ()), calls=True)


def check_waiting(seed, size=4):
    """Threads that exchange values, in gangs of a block and of one; blocks of all dimensions."""
    boxed = seed % 3 == 0
    block = WAITING[seed // 3 % len(WAITING)] if boxed else (1, 7, 32, 40, 64)[seed % 5]
    for alone in (False, True):
        program = generate_waiting(seed, size, alone, 3 if boxed else 1)
        want, counters = expected(program, seed, 2, block)
        for options in ({"optimize": False}, {"optimize": True}, {"max_budget": 5}):
            check_road(program, seed, 2, block, want, counters, **options)


@given(st.integers(0, 2**32))
@settings(max_examples=int(os.environ.get("SIMT_IR_EXAMPLES", "60")) // 4, deadline=None)
def test_threads_that_wait_for_each_other(seed):
    check_waiting(seed)


@pytest.mark.slow
def test_many_that_wait():
    for seed in range(200):
        check_waiting(seed, 6)


@pytest.mark.slow
def test_many_programs():
    for seed in range(1500):
        check(seed, 40, *(BOXES[seed % len(BOXES)] if seed % 3 == 0 else ()))
    for seed in range(100):  # of many more threads
        check(seed, 5 + seed % 37, *APART[seed % len(APART)], apart=True)


def test_generator_is_deterministic():
    assert generate(7).text == generate(7).text


def test_printing_is_stable_and_passes_keep_validity():
    for seed in range(60):
        text = generate(seed, calls=seed % 3 == 0).text
        printed = _core.ir_check(text)
        assert _core.ir_check(printed) == printed
        assert _core.ir_hash(text) == _core.ir_hash(printed)
        assert _core.ir_check(text, "all")
        twice = _core.ir_check(text, "all,all,all")
        assert _core.ir_check(twice, "all") == twice


def search(first, last):
    """Prints the seeds that fail."""
    for seed in range(first, last):
        try:
            check(seed, 40, *(BOXES[seed % len(BOXES)] if seed % 3 == 0 else ()))
            check(seed, 5 + seed % 37, *APART[seed % len(APART)], apart=True)
            if seed % 4 == 0:
                check_waiting(seed, 6)
        except Exception:
            print(seed, traceback.format_exc(limit=1), flush=True)


if __name__ == "__main__":
    search(*map(int, sys.argv[1:3]))
