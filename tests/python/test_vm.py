"""The vm: printed IR compiled and launched, against NumPy."""

import numpy as np
from simt import _core

ADD = """kernel @add(%0: ptr.global, %1: ptr.global, %2: ptr.global, %3: i64) file "" {
  %4: i32 = special ctaid.x
  %5: i32 = special ntid.x
  %6: i32 = mul %4, %5
  %7: i32 = special tid.x
  %8: i32 = add %6, %7
  %9: i64 = sext %8
  %10: i1 = lt.s %9, %3
  if @0 %10 {
    %11: i64 = const 4
    %12: i64 = mul %9, %11
    %13: ptr.global = ptradd %0, %12
    %14: ptr.global = ptradd %1, %12
    %15: ptr.global = ptradd %2, %12
    %16: f32 = load %13
    %17: f32 = load %14
    %18: f32 = fadd %16, %17
    store %15, %18
    br @0
  } else {
    br @0
  }
  return
}
"""


def test_elementwise_add():
    rng = np.random.default_rng(0)
    for n in (1, 10, 1023, 1024, 1025, 100_003):
        a, b = rng.random((2, n), np.float32)
        out = np.zeros(n, np.float32)
        for isa in ("generic", "avx2", "avx512"):
            for threads in (1, 2):
                out[:] = 0
                grid = (n + 1023) // 1024
                _core.ir_run(ADD, grid, 1024, [a, b, out, n], isa=isa, threads=threads)
                assert (out == a + b).all()
