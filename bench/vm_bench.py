"""Times of fused expressions in the vm on n float32 (default 1e7), best of rounds taken in turns.

vm_bench.py [N] [ROUNDS]      beside them: NumPy's own a + b, to tell a busy machine

Calls what only a build with -Dtest_hooks=enabled has (every development build).
"""

import mmap
import sys
import time

import numpy as np
from simt import _core

TEXT = """kernel @bench(%0: ptr.global, %1: ptr.global, %2: ptr.global, %3: i64) file "" {
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
BODY
    store %15, %18
    br @0
  } else {
    br @0
  }
  return
}
"""
# 128 threads sum a chunk of 4096 (a-b)**2 into one partial sum each
REDUCE = """kernel @reduce(%0: ptr.global, %1: ptr.global, %2: ptr.global, %3: i64) file "" {
  %4: i32 = special ctaid.x
  %5: i64 = zext %4
  %6: i32 = special tid.x
  %7: i64 = zext %6
  %8: i64 = const 12
  %9: i64 = shl %5, %8
  %10: i64 = add %9, %7
  %11: i64 = const 0
  %12: f32 = const 0
  %13: i64 = const 4
  %14: i64 = const 32
  %15: i64 = const 128
  %16: i64 = const 1
  %17: i64 = const 7
  %18: f32 = loop @0 (%20: i64 = %11, %21: f32 = %12) {
    %22: i64 = shl %20, %17
    %23: i64 = add %10, %22
    %24: i64 = mul %23, %13
    %25: ptr.global = ptradd %0, %24
    %26: ptr.global = ptradd %1, %24
    %27: f32 = load %25
    %28: f32 = load %26
    %29: f32 = fsub %27, %28
    %30: f32 = fmul %29, %29
    %31: f32 = fadd %21, %30
    %32: i64 = add %20, %16
    %33: i1 = lt.s %32, %14
    if @1 %33 {
      br @1
    } else {
      br @0 %31
    }
    continue @0 %32, %31
  }
  %34: i64 = mul %5, %15
  %35: i64 = add %34, %7
  %36: i64 = mul %35, %13
  %37: ptr.global = ptradd %2, %36
  store %37, %18
  return
}
"""
BODIES = {
    "a+b": ["%18: f32 = fadd %16, %17"],
    "sqrt(a*a+b*b)": [
        "%20: f32 = fmul %16, %16",
        "%21: f32 = fmul %17, %17",
        "%22: f32 = fadd %20, %21",
        "%18: f32 = fsqrt %22",
    ],
    "exp(-a*a)*sin(b)": [
        "%20: f32 = fneg %16",
        "%21: f32 = fmul %20, %16",
        "%22: f32 = exp %21",
        "%23: f32 = sin %17",
        "%18: f32 = fmul %22, %23",
    ],
}


def huge_pages(n):
    """An array on huge pages, as the device's allocator gives."""
    size = max(n * 4, 1 << 22) + (1 << 21)
    m = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    m.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(m, np.float32, n)


def main():
    n = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10**7
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    a, b, out = (huge_pages(n) for _ in range(3))
    rng = np.random.default_rng(0)
    a[:], b[:] = rng.random(n, np.float32), rng.random(n, np.float32)
    repeat = 10 if n > 10000 else 2000
    best = {}
    for _ in range(rounds):
        for threads in (1, 2):
            for name, body in BODIES.items():
                text = TEXT.replace("BODY", "\n".join("    " + line for line in body))
                grid = -(-n // 1024)
                ns = _core.ir_run(text, grid, 1024, [a, b, out, n], threads=threads, repeat=repeat)
                best[name, threads] = min(ns, best.get((name, threads), ns))
            if n >= 4096:
                ns = _core.ir_run(
                    REDUCE, n // 4096, 128, [a, b, out, n], threads=threads, repeat=repeat
                )
                best["sum((a-b)**2)", threads] = min(ns, best.get(("sum((a-b)**2)", threads), ns))
        start = time.perf_counter_ns()
        np.add(a, b, out=out)
        ns = time.perf_counter_ns() - start
        best["numpy a+b", 1] = min(ns, best.get(("numpy a+b", 1), ns))
    for (name, threads), ns in best.items():
        print(f"{name:18} {threads} thread{'s' * (threads > 1):1} {ns / 1e6:10.4f} ms")


if __name__ == "__main__":
    main()
