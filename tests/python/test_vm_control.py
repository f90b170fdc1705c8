"""Masks, loops, barriers, atomics, waits, yields, forwarding: the vm's control and memory."""

import numpy as np
import pytest
from simt import _core

HEAD = """
  %100: i32 = special ctaid.x
  %101: i32 = special ntid.x
  %102: i32 = special tid.x
  %103: i32 = mul %100, %101
  %104: i32 = add %103, %102
  %105: i64 = sext %104
  %106: i64 = const 4
  %107: i64 = mul %105, %106
  %110: i32 = const 0
  %111: i32 = const 1
  %112: i32 = const 2
  %113: i32 = const 3
  %114: i32 = const 5
"""


def kernel(params, body):
    names = ", ".join(f"%{k}: {t}" for k, t in enumerate(params))
    return f'kernel @k({names}) file "" {{{HEAD}{body}\n  return\n}}\n'


P = "ptr.global"


def run(text, grid, block, args, **options):
    """On one and two threads, and in small steps: all the same."""
    copies = []
    for kind in (
        {"threads": 1},
        {"threads": 2},
        {"max_budget": 3},
        {"threads": 1, "isa": "generic"},
    ):
        copy = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
        _core.ir_run(text, grid, block, copy, **kind, **options)
        copies.append(copy)
    for copy in copies[1:]:
        for a, b in zip(copies[0], copy):
            assert np.array_equal(a, b)
    return copies[0]


def test_nested_ifs_and_results():
    body = """
  %1000: ptr.global = ptradd %0, %107
  %1001: i32 = load %1000
  %1002: i32 = and %1001, %111
  %1003: i1 = eq %1002, %111
  %1004: i32 = if @0 %1003 {
    %1005: i1 = lt.s %1001, %110
    %1006: i32 = if @1 %1005 {
      %1007: i32 = sub %110, %1001
      br @1 %1007
    } else {
      %1008: i32 = mul %1001, %113
      br @1 %1008
    }
    %1009: i32 = add %1006, %111
    br @0 %1009
  } else {
    br @0 %1001
  }
  store %1000, %1004"""
    a = np.random.default_rng(0).integers(-100, 100, 1024).astype(np.int32)
    (out,) = run(kernel([P], body), 4, 256, [a])
    want = np.where(a & 1 == 1, np.where(a < 0, -a, a * 3) + 1, a)
    assert (out == want).all()


def test_collatz_with_break_and_continue_to_outer_labels():
    """Steps of Collatz up to 30: two different continues; the result by a br to the outer block."""
    body = """
  %1000: ptr.global = ptradd %0, %107
  %1001: i32 = load %1000
  %1002: i32 = const 30
  %1003: i32 = block @0 {
    %1004: i32 = loop @1 (%1005: i32 = %1001, %1006: i32 = %110) {
      %1007: i1 = eq %1005, %111
      if @2 %1007 {
        br @0 %1006
      } else {
        br @2
      }
      %1008: i32 = add %1006, %111
      %1009: i1 = lt.s %1002, %1008
      if @3 %1009 {
        br @1 %1005
      } else {
        br @3
      }
      %1010: i32 = and %1005, %111
      %1011: i1 = eq %1010, %111
      if @4 %1011 {
        %1012: i32 = mul %1005, %113
        %1013: i32 = add %1012, %111
        continue @1 %1013, %1008
      } else {
        br @4
      }
      %1014: i32 = shr.u %1005, %111
      continue @1 %1014, %1008
    }
    %1015: i32 = sub %110, %1004
    br @0 %1015
  }
  store %1000, %1003"""

    def collatz(x):
        steps = 0
        while x != 1:
            steps += 1
            if steps > 30:
                return -x
            x = 3 * x + 1 if x & 1 else x >> 1
        return steps

    a = np.arange(1, 1025, dtype=np.int32)
    for block in (1, 32, 256, 1024):
        (out,) = run(kernel([P], body), 1024 // block, block, [a])
        assert (out == [collatz(int(x)) for x in a]).all(), block


def test_early_return_and_swap_of_carried_values():
    """Fibonacci by swapped carried values; lanes beyond n return first."""
    body = """
  %1000: i1 = lt.s %104, %1
  if @0 %1000 {
    br @0
  } else {
    return
  }
  %1001: i32 = loop @1 (%1002: i32 = %110, %1003: i32 = %111, %1004: i32 = %110) {
    %1005: i1 = lt.s %1004, %102
    if @2 %1005 {
      br @2
    } else {
      br @1 %1002
    }
    %1006: i32 = add %1002, %1003
    %1007: i32 = add %1004, %111
    continue @1 %1003, %1006, %1007
  }
  %1008: ptr.global = ptradd %0, %107
  store %1008, %1001"""
    out = np.full(96, -1, np.int32)
    out, _ = run(kernel([P, "i32"], body), 2, 48, [out, 70])
    fib = [0, 1]
    while len(fib) < 48:
        fib.append(fib[-1] + fib[-2])
    want = np.array(fib + fib[:22] + [-1] * 26).astype(np.int64).astype(np.int32)
    assert (out == want).all()


def test_swap_of_varying_values_and_uniform_counter():
    """x, y = y, x + y with per-lane starts, a uniform number of rounds."""
    body = """
  %1000: ptr.global = ptradd %0, %107
  %1001: i32 = load %1000
  %1010: i32 = loop @0 (%1002: i32 = %1001, %1003: i32 = %111, %1004: i32 = %110) {
    %1005: i1 = lt.s %1004, %1
    if @1 %1005 {
      br @1
    } else {
      br @0 %1002
    }
    %1006: i32 = add %1004, %111
    %1007: i32 = mul %1002, %113
    %1008: i32 = add %1003, %1007
    continue @0 %1003, %1008, %1006
  }
  store %1000, %1010"""
    a = np.arange(300, dtype=np.int32)
    for rounds in (0, 1, 2, 7):
        x, y = a.copy(), np.ones_like(a)
        for _ in range(rounds):
            x, y = y, y + 3 * x
        out, _ = run(kernel([P, "i32"], body), 3, 100, [a, rounds])
        assert (out == x).all()


def test_tree_reduction_with_barriers_and_shared_memory():
    body = """
  %1000: ptr.shared = alloc 1024
  %1001: i64 = sext %102
  %1002: i64 = mul %1001, %106
  %1003: ptr.shared = ptradd %1000, %1002
  %1004: ptr.global = ptradd %0, %107
  %1005: i32 = load %1004
  store %1003, %1005
  barrier
  %1006: i32 = const 128
  loop @0 (%1007: i32 = %1006) {
    %1008: i1 = lt.s %102, %1007
    if @1 %1008 {
      %1009: i32 = add %102, %1007
      %1010: i64 = sext %1009
      %1011: i64 = mul %1010, %106
      %1012: ptr.shared = ptradd %1000, %1011
      %1013: i32 = load %1012
      %1014: i32 = load %1003
      %1015: i32 = add %1013, %1014
      store %1003, %1015
      br @1
    } else {
      br @1
    }
    barrier
    %1016: i32 = shr.s %1007, %111
    %1017: i1 = eq %1016, %110
    if @2 %1017 {
      br @0
    } else {
      br @2
    }
    continue @0 %1016
  }
  %1018: i1 = eq %102, %110
  if @3 %1018 {
    %1019: i32 = load %1000
    %1020: i64 = sext %100
    %1021: i64 = mul %1020, %106
    %1022: ptr.global = ptradd %1, %1021
    store %1022, %1019
    br @3
  } else {
    br @3
  }"""
    a = np.random.default_rng(1).integers(-1000, 1000, 256 * 50).astype(np.int32)
    _, out = run(kernel([P, P], body), 50, 256, [a, np.zeros(50, np.int32)])
    assert (out == a.reshape(50, 256).sum(1)).all()


def test_local_memory_and_dynamic_shared_memory():
    """Each thread picks from its local memory; a rotation goes through shared memory."""
    body = """
  %1000: ptr.local = alloc 16
  loop @0 (%1001: i32 = %110) {
    %1002: i64 = sext %1001
    %1003: i64 = mul %1002, %106
    %1004: ptr.local = ptradd %1000, %1003
    %1005: i32 = mul %104, %114
    %1006: i32 = add %1005, %1001
    store %1004, %1006
    %1007: i32 = add %1001, %111
    %1008: i1 = le.s %1007, %113
    if @1 %1008 {
      continue @0 %1007
    } else {
      br @0
    }
    return
  }
  %1010: i64 = sext %102
  %1011: i32 = and %102, %113
  %1012: i64 = sext %1011
  %1013: i64 = mul %1012, %106
  %1014: ptr.local = ptradd %1000, %1013
  %1015: i32 = load %1014
  %1016: ptr.shared = alloc.dynamic
  %1017: i64 = mul %1010, %106
  %1018: ptr.shared = ptradd %1016, %1017
  store %1018, %1015
  barrier
  %1019: i32 = add %102, %111
  %1020: i32 = rem.s %1019, %101
  %1021: i64 = sext %1020
  %1022: i64 = mul %1021, %106
  %1023: ptr.shared = ptradd %1016, %1022
  %1024: i32 = load %1023
  %1025: ptr.global = ptradd %0, %107
  store %1025, %1024"""
    (out,) = run(kernel([P], body), 4, 64, [np.zeros(256, np.int32)], shared=256)
    i = np.arange(256)
    value = i * 5 + (i % 64 & 3)
    assert (out == np.roll(value.reshape(4, 64), -1, axis=1).ravel()).all()


@pytest.mark.parametrize(
    ("op", "fold"),
    [
        ("atomic.add", lambda a: a.sum()),
        ("atomic.max.s", lambda a: max(a.max(), 0)),
        ("atomic.min.s", lambda a: min(a.min(), 0)),
        ("atomic.xor", lambda a: np.bitwise_xor.reduce(a)),
        ("atomic.or", lambda a: np.bitwise_or.reduce(a)),
    ],
)
def test_integer_atomics(op, fold):
    body = f"""
  %1000: ptr.global = ptradd %0, %107
  %1001: i32 = load %1000
  %1002: i32 = rem.u %104, %113
  %1003: i64 = sext %1002
  %1004: i64 = mul %1003, %106
  %1005: ptr.global = ptradd %1, %1004
  %1006: i32 = {op} %1005, %1001"""
    a = np.random.default_rng(2).integers(-1000, 1000, 5120).astype(np.int32)
    _, out = run(kernel([P, P], body), 20, 256, [a, np.zeros(3, np.int32)])
    assert (out == [fold(a[k::3]) for k in range(3)]).all()


def test_float_atomics_and_order_of_lanes():
    body = """
  %1000: ptr.global = ptradd %0, %107
  %1001: f32 = load %1000
  %1002: f32 = atomic.fadd %1, %1001
  store %1000, %1002
  %1003: f32 = atomic.fmax %2, %1001"""
    a = np.random.default_rng(3).normal(size=256).astype(np.float32)
    one = np.zeros(1, np.float32)
    old, total, top = run(kernel([P, P, P], body), 1, 256, [a, one, one])
    sums = np.add.accumulate(np.concatenate([one, a]), dtype=np.float32)
    assert (old == sums[:-1]).all() and total[0] == sums[-1] and top[0] == a.max()


def test_compare_and_swap_takes_one_lane():
    body = """
  %1000: i32 = atomic.cas %0, %110, %111
  %1001: i1 = eq %1000, %110
  if @0 %1001 {
    %1002: i32 = atomic.add %1, %111
    br @0
  } else {
    br @0
  }"""
    _, out = run(kernel([P, P], body), 7, 64, [np.zeros(1, np.int32), np.zeros(1, np.int32)])
    assert out[0] == 1


LOCK = """
  loop @0 () {
    %1000: i32 = atomic.cas %0, %110, %111
    %1001: i1 = eq %1000, %110
    if @1 %1001 {
      %1002: i32 = load volatile.device %1
      %1003: i32 = add %1002, %111
      store volatile.device %1, %1003
      %1004: i32 = atomic.exch %0, %110
      br @0
    } else {
      br @1
    }
    continue @0
  }"""


def test_lock_between_all_threads():
    text = kernel([P, P], LOCK)
    for threads in (1, 2):
        lock, count = np.zeros((2, 1), np.int32)
        _core.ir_run(text, 10, 64, [lock, count], threads=threads)
        assert count[0] == 640 and lock[0] == 0


def test_block_waits_for_a_later_block():
    """Block b waits until block b + 1 has raised its flag; the last raises its own at once."""
    body = """
  %1000: i32 = add %100, %111
  %1001: i64 = sext %1000
  %1002: i64 = mul %1001, %106
  %1003: ptr.global = ptradd %0, %1002
  loop @0 () {
    %1004: i32 = load volatile.device %1003
    %1005: i1 = eq %1004, %110
    if @1 %1005 {
      continue @0
    } else {
      br @0
    }
    return
  }
  barrier
  %1006: i64 = sext %100
  %1007: i64 = mul %1006, %106
  %1008: ptr.global = ptradd %0, %1007
  store volatile.device %1008, %111"""
    for threads in (1, 2):
        flags = np.zeros(41, np.int32)
        flags[40] = 1
        _core.ir_run(kernel([P], body), 40, 8, [flags], threads=threads)
        assert (flags == 1).all()


def test_a_wait_for_nothing_is_an_error(monkeypatch):
    monkeypatch.setenv("SIMT_TIME_LIMIT", "0.2")
    body = """
  loop @0 () {
    %1004: i32 = load volatile.device %0
    %1005: i1 = eq %1004, %110
    if @1 %1005 {
      continue @0
    } else {
      br @0
    }
    return
  }"""
    for threads in (1, 2):
        with pytest.raises(RuntimeError, match="no progress.*loop"):
            _core.ir_run(kernel([P], body), 3, 4, [np.zeros(1, np.int32)], threads=threads)


def test_fault_is_the_first_in_block_order():
    body = """
  %1000: i32 = const 700
  %1001: i1 = lt.s %1000, %104
  if @0 %1001 {
    fault 9 %105 @7:1
    br @0
  } else {
    br @0
  }
  %1002: ptr.global = ptradd %0, %107
  store %1002, %104"""
    for threads in (1, 2):
        out = np.zeros(64 * 64, np.int32)
        with pytest.raises(IndexError, match="fault 9, line 7, block 10, thread 61, values 701 "):
            _core.ir_run(kernel([P], body), 64, 64, [out], threads=threads)
        assert (out == np.arange(64 * 64)).all()


SHIFT = """
  %1000: i32 = const {n}
  %1001: i1 = lt.s %104, %1000
  if @0 %1001 {{
    %1002: ptr.global = ptradd %0, %107
    %1003: ptr.global = ptradd %1, %107
    %1004: i32 = load %1002
    {op}
    store %1003, %1005
    br @0
  }} else {{
    br @0
  }}"""


@pytest.mark.parametrize("op", ["%1005: i32 = add %1004, %111", "%1005: i32 = bitcast %1004"])
@pytest.mark.parametrize("shift", [-3, -1, 0, 1, 16])
@pytest.mark.parametrize("n", [5, 200, 256])
def test_overlapping_arrays_in_one_block(op, shift, n):
    """A block's loads come before its stores, in place and when the arrays overlap."""
    text = kernel([P, P], SHIFT.format(n=n, op=op))
    memory = np.arange(400, dtype=np.int32) * 7
    want = memory.copy()
    want[20 + shift : 20 + shift + n] = memory[20 : 20 + n] + ("add" in op)
    for threads in (1, 2):
        m = memory.copy()
        _core.ir_run(text, 1, 256, [m[20:], m[20 + shift :]], threads=threads)
        assert (m == want).all()


def test_load_before_and_after_a_store():
    """A load that outlives a store to the same memory keeps the old value."""
    body = """
  %1000: ptr.global = ptradd %0, %107
  %1001: i32 = load %1000
  %1002: i32 = mul %1001, %114
  store %1000, %1002
  %1003: i32 = load %1000
  %1004: i32 = sub %1003, %1001
  %1005: ptr.global = ptradd %1, %107
  store %1005, %1004"""
    a = np.arange(512, dtype=np.int32)
    x, y = run(kernel([P, P], body), 2, 256, [a, np.zeros_like(a)])
    assert (x == a * 5).all() and (y == a * 4).all()


def test_gather_scatter_and_strides():
    body = """
  %1000: ptr.global = ptradd %0, %107
  %1001: i32 = load %1000
  %1002: i64 = sext %1001
  %1003: i64 = mul %1002, %106
  %1004: ptr.global = ptradd %1, %1003
  %1005: i32 = load %1004
  %1006: i64 = const 12
  %1007: i64 = mul %105, %1006
  %1008: ptr.global = ptradd %2, %1007
  store %1008, %1005
  %1009: i32 = load %1008
  %1010: ptr.global = ptradd %3, %1003
  store %1010, %1009"""
    rng = np.random.default_rng(4)
    index, b = rng.permutation(512).astype(np.int32), rng.integers(0, 99, 512).astype(np.int32)
    zeros = [np.zeros(512 * 3, np.int32), np.zeros(512, np.int32)]
    _, _, strided, scattered = run(kernel([P] * 4, body), 4, 128, [index, b, *zeros])
    assert (strided[::3] == b[index]).all() and (scattered == b).all()


def test_two_and_three_dimensional_blocks():
    body = """
  %1000: i32 = special tid.y
  %1001: i32 = special tid.z
  %1002: i32 = special ctaid.y
  %1003: i32 = const 10
  %1004: i32 = mul %1001, %1003
  %1005: i32 = add %1004, %1000
  %1006: i32 = mul %1005, %1003
  %1007: i32 = add %1006, %102
  %1008: i32 = special ntid.y
  %1009: i32 = mul %1001, %1008
  %1010: i32 = add %1009, %1000
  %1011: i32 = mul %1010, %101
  %1012: i32 = add %1011, %102
  %1013: i32 = const 24
  %1014: i32 = special nctaid.x
  %1015: i32 = mul %1002, %1014
  %1016: i32 = add %1015, %100
  %1017: i32 = mul %1016, %1013
  %1018: i32 = add %1017, %1012
  %1019: i64 = sext %1018
  %1020: i64 = mul %1019, %106
  %1021: ptr.global = ptradd %0, %1020
  store %1021, %1007"""
    (out,) = run(kernel([P], body), (2, 3), (4, 3, 2), [np.zeros(144, np.int32)])
    z, y, x = np.mgrid[:2, :3, :4]
    assert (out.reshape(6, 24) == (z * 100 + y * 10 + x).ravel()).all()


def test_values_of_different_lanes_leaving_a_loop():
    """A uniform counter leaves the loop with a different value in each lane."""
    body = """
  %1000: ptr.global = ptradd %0, %107
  %1001: i32 = load %1000
  %1002: i32 = loop @0 (%1003: i32 = %110) {
    %1004: i1 = lt.s %1003, %1001
    %1005: i32 = add %1003, %111
    if @1 %1004 {
      continue @0 %1005
    } else {
      br @0 %1003
    }
    return
  }
  %1006: i32 = mul %1002, %112
  store %1000, %1006"""
    a = np.random.default_rng(5).integers(0, 50, 300).astype(np.int32)
    (out,) = run(kernel([P], body), 3, 100, [a])
    assert (out == a * 2).all()


def test_two_continues_with_different_uniform_values():
    """Lanes that take the first continue must not change what the others still read."""
    body = """
  %1000: i32 = const 20
  %1001: i32 = and %102, %111
  %1002: i1 = eq %1001, %110
  %1010: i32 = loop @0 (%1003: i32 = %110, %1004: i32 = %110) {
    %1005: i1 = lt.s %1003, %1000
    if @1 %1005 {
      br @1
    } else {
      br @0 %1004
    }
    if @2 %1002 {
      %1006: i32 = add %1003, %111
      continue @0 %1006, %1004
    } else {
      br @2
    }
    %1007: i32 = add %1004, %1003
    %1008: i32 = add %1003, %112
    continue @0 %1008, %1007
  }
  %1011: ptr.global = ptradd %0, %107
  store %1011, %1010"""
    (out,) = run(kernel([P], body), 1, 64, [np.zeros(64, np.int32)])
    assert (out == np.where(np.arange(64) % 2 == 0, 0, sum(range(0, 20, 2)))).all()


def test_carried_value_that_starts_as_a_thread_index_of_a_row():
    """for x in range(tid.x, n, 2): out[x] += 1, in blocks of two rows."""
    body = """
  %1: i32 = loop @0 (%2: i32 = %102) {
    %3: i32 = const 7
    %4: i1 = lt.s %2, %3
    if @1 %4 {
      br @1
    } else {
      br @0 %2
    }
    %5: i64 = sext %2
    %6: i64 = mul %5, %106
    %7: ptr.global = ptradd %0, %6
    %8: i32 = atomic.add %7, %111
    %9: i32 = add %2, %112
    continue @0 %9
  }
"""
    out = np.zeros(7, np.int32)
    (out,) = run(kernel([P], body), (1, 1, 1), (2, 3, 1), [out])
    np.testing.assert_array_equal(out, np.full(7, 3))
