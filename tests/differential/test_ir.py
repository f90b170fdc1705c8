"""Random programs: the vm with and without the optimiser against a scalar evaluator of its own."""

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_eval import run
from ir_gen import INPUT_BYTES, generate, generate_waiting
from simt import _core

GRID, BLOCK = 2, 5
KINDS = {"i8": "u1", "i16": "u2", "i32": "u4", "i64": "u8", "f16": "f2", "f32": "f4", "f64": "f8"}


def inputs(seed, program, threads=GRID * BLOCK):
    """Output bytes, input bytes and scalars of a launch."""
    rng = np.random.default_rng(seed)
    data = rng.integers(0, 256, INPUT_BYTES, np.uint8)
    data[: INPUT_BYTES // 2].view(np.float64)[:] = rng.standard_normal(INPUT_BYTES // 16)
    out = np.zeros(threads * program.bytes_per_thread, np.uint8)
    return [out, data, int(rng.integers(-100, 100)), float(np.float32(rng.standard_normal()))]


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


def check(seed, size=30):
    """One program on all roads."""
    program = generate(seed, size)
    want = inputs(seed, program)
    run(program.text, GRID, BLOCK, want)
    for options in ({"optimize": False}, {"optimize": True}):
        got = inputs(seed, program)
        _core.ir_run(program.text, GRID, BLOCK, got, **options)
        assert not differences(program, got[0], want[0]), (seed, options)


@given(st.integers(0, 2**32))
@settings(max_examples=int(os.environ.get("SIMT_IR_EXAMPLES", "60")), deadline=None)
def test_vm_and_optimiser_against_the_evaluator(seed):
    check(seed)


def check_waiting(seed, size=4):
    """Threads that exchange values, in gangs of a block and of one."""
    for alone in (False, True):
        program = generate_waiting(seed, size, alone)
        block = (1, 7, 32, 40, 64)[seed % 5]
        want = inputs(seed, program, 2 * block)
        run(program.text, 2, block, want)
        for options in ({"optimize": False}, {"optimize": True}, {"max_budget": 5}):
            got = inputs(seed, program, 2 * block)
            _core.ir_run(program.text, 2, block, got, **options)
            assert not differences(program, got[0], want[0]), (seed, alone, options)


@given(st.integers(0, 2**32))
@settings(max_examples=int(os.environ.get("SIMT_IR_EXAMPLES", "60")) // 4, deadline=None)
def test_threads_that_wait_for_each_other(seed):
    check_waiting(seed)


@pytest.mark.slow
def test_many_that_wait():
    for seed in range(500):
        check_waiting(seed, 6)


@pytest.mark.slow
def test_many_programs():
    for seed in range(3000):
        check(seed, 40)


def test_generator_is_deterministic():
    assert generate(7).text == generate(7).text


def test_printing_is_stable_and_passes_keep_validity():
    for seed in range(60):
        text = generate(seed).text
        printed = _core.ir_check(text)
        assert _core.ir_check(printed) == printed
        assert _core.ir_hash(text) == _core.ir_hash(printed)
        assert _core.ir_check(text, "all")
        twice = _core.ir_check(text, "all,all,all")
        assert _core.ir_check(twice, "all") == twice
