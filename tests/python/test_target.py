"""Targets: which back end of a target compiles a kernel."""

import pytest
from simt import _core

INTEGERS = """kernel @k(%0: ptr.global, %1: i32) {
  %2: i32 = add %1, %1
  store %0, %2
  return
}
"""
FLOATS = """kernel @k(%0: ptr.global, %1: f32) {
  %2: f32 = fadd %1, %1
  store %0, %2
  return
}
"""
NESTED = """kernel @k(%0: ptr.global, %1: i1, %2: f32) {
  if @0 %1 {
    %3: f32 = fmul %2, %2
    store %0, %3
    br @0
  } else {
    br @0
  }
  return
}
"""
MATH = """kernel @k(%0: ptr.global, %1: f32) {
  %2: f32 = exp %1
  store %0, %2
  return
}
"""
CALLED = """kernel @k(%0: ptr.global, %1: i32) {
  %2: i32 = call 0 %1
  store %0, %2
  return
}
function 0 @f(%0: i32) -> i32 {
  %1: i32 = const 0
  %2: i1 = le.s %0, %1
  if @0 %2 {
    return %1
  } else {
    br @0
  }
  %3: f32 = sitofp %0
  OPERATION
  %5: i32 = fptosi %4
  %6: i32 = const 1
  %7: i32 = sub %5, %6
  %8: i32 = call 0 %7
  return %8
}
"""
CALLS_FLOATS = CALLED.replace("OPERATION", "%4: f32 = fadd %3, %3")
CALLS_MATH = CALLED.replace("OPERATION", "%4: f32 = log %3")


@pytest.mark.parametrize(
    "text,block,by",
    [
        (INTEGERS, 1, "integers"),  # the first one declines everything
        (INTEGERS, 32, "vm"),  # the second one declines the block
        (FLOATS, 1, "vm"),  # or has not the operation
        (NESTED, 1, "vm"),  # nor one inside of an if
        (CALLS_FLOATS, 1, "vm"),  # or in a function beside the kernel
        (FLOATS, 2, "plain"),
        (MATH, 2, "vm"),  # device functions are to be IR for it
        (CALLS_FLOATS, 2, "plain"),
        (CALLS_MATH, 2, "vm"),
    ],
)
def test_the_first_that_can_compiles(text, block, by):
    assert _core.ir_backend(text, block, False) == by


def test_code_that_the_device_cannot_run_is_an_error():
    with pytest.raises(RuntimeError, match="cannot run what text makes"):
        _core.ir_backend(FLOATS, 1, True)
