"""The uniformity analysis: known shapes, and random programs against what the threads computed."""

import math
import re

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_eval import BITS, parse, places, run
from ir_gen import INPUT_BYTES, STRUCT_BYTES
from ir_programs import generate
from simt import _core

KERNEL = """kernel @shapes(%0: ptr.global, %1: i32) {
  %2: i32 = special tid.x
  %3: i32 = const 3
  %4: i32 = mul %2, %3
  %5: i64 = sext %4
  %6: ptr.global = ptradd %0, %5
  %7: i32 = add %2, %1
  %8: i64 = sext %7
  %9: i1 = lt.s %2, %3
  %10: i32 = if @0 %9 {
    br @0 %1
  } else {
    br @0 %3
  }
  %11: i32 = loop @1 (%12: i32 = %1, %13: i32 = %2) {
    %14: i1 = lt.s %12, %3
    if @2 %14 {
      br @2
    } else {
      br @1 %12
    }
    %15: i32 = add %12, %3
    %16: i32 = add %13, %12
    continue @1 %15, %16
  }
  %17: i32, %18: i32 = loop @3 (%19: i32 = %1) {
    %20: i1 = lt.s %19, %2
    if @4 %20 {
      br @4
    } else {
      br @3 %3, %19
    }
    %21: i32 = add %19, %3
    continue @3 %21
  }
  %22: i32 = special tid.y
  return
}
"""


def test_known_shapes():
    shapes = _core.ir_uniform(KERNEL)
    assert shapes[:9] == [
        "uniform", "uniform", "linear 1", "uniform", "linear 3", "linear 3", "linear 3",
        "linear 1", "varying",
    ]  # fmt: skip
    assert shapes[9:11] == ["varying", "varying"]  # a comparison of it, and what it decides
    assert [shapes[i] for i in (11, 12, 13, 14, 15, 16)] == [
        "uniform", "uniform", "linear 1", "uniform", "uniform", "linear 1",
    ]  # fmt: skip
    # left in different rounds: results vary, the counter of those still inside does not
    assert [shapes[i] for i in (17, 18, 19, 21)] == ["varying", "varying", "uniform", "uniform"]
    assert shapes[22] == "uniform"
    assert _core.ir_uniform(KERNEL, (8, 4, 1))[2] == "rows 1 0 0"
    assert _core.ir_uniform(KERNEL, (1, 4, 1))[22] == "linear 1"


def once(body):
    """Names and types of the values outside loops, which a thread computes at most once."""
    for inst in body:
        yield from inst.results
        if inst.op != "loop":
            for region in inst.regions:
                yield from once(region)


def bits(value, kind):
    """A number to compare by; None for NaN."""
    if kind[0] == "f":
        return None if np.isnan(value) else value.tobytes()
    return value


def slopes(shape):
    """What a shape promises of a value: its steps in flat thread, x, y and z; None: nothing."""
    words = shape.split()
    if shape == "uniform":
        return 0, 0, 0, 0
    if words[0] == "linear":
        return int(words[1]), 0, 0, 0
    return (0, *map(int, words[1:])) if words[0] == "rows" else None


@given(st.integers(0, 2**32))
@settings(max_examples=50, deadline=None)
def test_random_programs(seed):
    block = ((6, 1, 1), (3, 4, 1), (4, 1, 2), (1, 5, 1), (2, 3, 2))[seed % 5]
    program = generate(seed, 40, 1 if seed % 5 == 0 else 3)
    text = _core.ir_check(program.text)
    data = np.random.default_rng(seed).integers(0, 256, INPUT_BYTES, np.uint8)
    out = np.zeros(math.prod(block) * program.bytes_per_thread, np.uint8)
    trace = []
    run(text, 1, block, [out, data, seed % 99 - 50, 0.5, data[:STRUCT_BYTES]], trace)
    shapes = _core.ir_uniform(text, block)
    for name, kind in once(parse(text)[1]):
        steps = slopes(shapes[int(re.match(r"%(\d+)", name).group(1))])
        if steps is None or kind.startswith("ptr") or kind[0] == "f" and any(steps):
            continue
        have = set()
        for flat, (place, values) in enumerate(zip(places(block), trace, strict=True)):
            if name in values and kind[0] == "f":
                have.add(bits(values[name], kind))
            elif name in values:
                ramp = sum(s * p for s, p in zip(steps, (flat, *place), strict=True))
                have.add((values[name] - ramp) % (1 << BITS[kind]))
        assert len(have) <= 1, (name, steps, block)


def test_steps_ranges_and_products_of_run_time():
    text = """kernel @k(%0: ptr.global, %1: i64) {
  %2: i32 = special tid.x
  %3: i32 = special tid.y
  %4: i64 = sext %2
  %5: i64 = sext %3
  %6: i64 = const 3
  %7: i64 = mul %5, %6
  %8: i64 = add %4, %7
  %9: i64 = mul %5, %1
  %10: i64 = add %9, %8
  %11: i64 = const 8
  %12: i1 = lt.u %4, %11
  %13: i1 = lt.u %4, %6
  %14: i64 = mul %5, %11
  %15: i64 = add %4, %14
  %16: ptr.global = ptradd %0, %10
  return
}
"""
    shapes = _core.ir_uniform(text, (8, 4, 1))
    assert [shapes[i] for i in (4, 5, 7, 8, 9, 10, 12, 13, 15, 16)] == [
        "rows 1 0 0", "rows 0 1 0", "rows 0 3 0", "rows 1 3 0", "run time", "run time",
        "uniform", "varying", "linear 1", "run time",
    ]  # fmt: skip
