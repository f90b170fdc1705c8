"""Warp operations, barriers that count, grid.sync: against NumPy, on both kinds of gangs."""

import numpy as np
import pytest
from simt import _core
from test_vm_control import P, kernel, run

FULL = "%900: i32 = const 4294967295\n  %901: i32 = const 32\n"
# waits for a flag that is up: gangs of one thread
ALONE = """
  loop @0 () {
    %902: i32 = atomic.add %0, %110
    %903: i1 = eq %902, %110
    if @1 %903 {
      continue @0
    } else {
      br @0
    }
    return
  }
"""
TYPES = {"i8": np.int8, "i32": np.int32, "i64": np.int64, "f32": np.float32, "f64": np.float64}


def at(pointer, index, size, name):
    """Lines that make %name the address of an element."""
    return f"""
  %{name}00: i64 = const {size}
  %{name}01: i64 = mul {index}, %{name}00
  %{name}: ptr.global = ptradd {pointer}, %{name}01"""


def shuffle_reference(op, values, lanes, width, mask, block):
    """What ops.def says, thread by thread."""
    out = values.copy()
    for t in range(len(values)):
        warp = t % block // 32 * 32 + t // block * block
        i = t - warp
        first = i - i % width
        by = int(lanes[t])
        source = {
            "idx": first + by % width,
            "up": i - by if i - by >= first else i,
            "down": i + by if i + by < first + width else i,
            "bfly": i ^ by if i ^ by < first + width else i,
        }[op]
        exists = warp + source < min((t // block + 1) * block, len(values))
        if exists and mask >> source & 1:
            out[t] = values[warp + source]
    return out


def shuffle_kernel(op, kind, width, mask, alone):
    size = np.dtype(TYPES[kind]).itemsize
    body = (
        (ALONE if alone else "")
        + f"""
  %900: i32 = const {mask}
  %901: i32 = const {width}
  %910: i32 = shl %111, %102
  %911: i32 = and %910, %900
  %912: i1 = ne %911, %110
  {at("%1", "%105", size, 50)}
  {at("%2", "%105", 4, 51)}
  %52: {kind} = load %50
  %53: i32 = load %51
  if @{2 * alone} %912 {{
    %54: {kind} = shfl.{op} %52, %53, %900, %901
    store %50, %54
    br @{2 * alone}
  }} else {{
    br @{2 * alone}
  }}"""
    )
    # lanes of other warps than the first shift by 32 and more: all of theirs take part
    body = body.replace(
        "%910: i32 = shl %111, %102", "%909: i32 = special laneid\n  %910: i32 = shl %111, %909"
    )
    return kernel([P, P, P], body)


@pytest.mark.parametrize("op", ["idx", "up", "down", "bfly"])
@pytest.mark.parametrize("alone", [False, True])
def test_shuffles(op, alone):
    rng = np.random.default_rng(1)
    for kind, block, width, mask in (
        ("i32", 64, 32, 0xFFFFFFFF), ("f32", 256, 32, 0xFFFFFFFF), ("f64", 96, 8, 0xFFFFFFFF),
        ("i64", 48, 16, 0xFFFFFFFF), ("i8", 32, 4, 0xFFFFFFFF), ("f32", 64, 32, 0x0F0F3C71),
        ("i64", 1, 32, 0xFFFFFFFF), ("f64", 40, 2, 0xFFFF0000), ("i32", 1024, 1, 0xFFFFFFFF),
    ):  # fmt: skip
        n = 2 * block
        values = rng.integers(-100, 100, n).astype(TYPES[kind])
        lanes = rng.integers(0, 32, n).astype(np.int32)
        want = shuffle_reference(op, values, lanes, width, mask, block)
        taking = (mask >> (np.arange(n) % block % 32)) & 1
        want = np.where(taking, want, values)
        text = shuffle_kernel(op, kind, width, mask, alone)
        got = run(text, 2, block, [np.ones(1, np.int32), values, lanes])[1]
        assert (got == want).all(), (kind, block, width, mask)


VOTES = """
  {a1}
  {a2}
  %52: i32 = load %50
  %53: i32 = const 3
  %54: i1 = lt.s %52, %53
  %60: i1 = vote.all %54, %900
  %61: i1 = vote.any %54, %900
  %62: i1 = vote.eq %54, %900
  %63: i32 = ballot %54, %900
  %64: i32 = match.any %52, %900
  %65: i32 = match.all %52, %900
  %66: i32 = zext %60
  %67: i32 = zext %61
  %68: i32 = zext %62
"""


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("block", [32, 128, 40, 7])
def test_votes_and_matches(alone, block):
    lines = VOTES.format(a1=at("%1", "%105", 4, 50), a2=at("%2", "%105", 24, 51))
    for k, value in enumerate((66, 67, 68, 63, 64, 65)):
        lines += f"  %7{k}: i64 = const {4 * k}\n  %8{k}: ptr.global = ptradd %51, %7{k}\n"
        lines += f"  store %8{k}, %{value}\n"
    text = kernel([P, P, P], (ALONE if alone else "") + FULL + lines)
    n = 3 * block
    values = np.random.default_rng(2).integers(0, 4, n).astype(np.int32)
    values[:block] = 2  # a block that agrees
    out = run(text, 3, block, [np.ones(1, np.int32), values, np.zeros((n, 6), np.int32)])[2]
    for t in range(n):
        warp = t % block // 32 * 32 + t // block * block
        there = values[warp : min(warp + 32, (t // block + 1) * block)]
        bits = [int(there[i] < 3) << i for i in range(len(there))]
        same = sum(1 << i for i in range(len(there)) if there[i] == values[t])
        every = (1 << len(there)) - 1
        want = [all(there < 3), any(there < 3), len(set(there < 3)) == 1, sum(bits), same,
                every if same == every else 0]  # fmt: skip
        assert [int(x) & 0xFFFFFFFF for x in out[t]] == [int(w) for w in want], t


@pytest.mark.parametrize("alone", [False, True])
def test_a_warp_reduction_after_some_threads_have_returned(alone):
    """The mask names all; threads past n have returned and lend nothing."""
    body = (
        (ALONE if alone else "")
        + f"""
  %905: i1 = lt.s %104, %3
  if @{2 * alone} %905 {{
    br @{2 * alone}
  }} else {{
    return
  }}
  {FULL}
  {at("%1", "%105", 4, 50)}
  %51: i32 = load %50
  %52: i32 = ballot %905, %900
  %53: i32 = shfl.down %51, %111, %900, %901
  %54: i32 = add %53, %52
  {at("%2", "%105", 4, 55)}
  store %55, %54
  barrier"""
    )
    n = 150
    values = np.arange(192, dtype=np.int32) * 3
    out = run(kernel([P, P, P, "i32"], body), 2, 96,
              [np.ones(1, np.int32), values, np.full(192, -1, np.int32), n])[2]  # fmt: skip
    for t in range(192):
        if t >= n:
            assert out[t] == -1
            continue
        warp = t // 32 * 32
        there = min(32, n - warp)
        source = t + 1 if t + 1 < warp + there else t
        ballot = (1 << there) - 1
        assert out[t] == (int(values[source]) + ballot + 2**31) % 2**32 - 2**31, t


def test_both_sides_of_an_if_meet():
    """Even lanes send from one shuffle, odd ones from another; the full mask joins them."""
    body = f"""
  {FULL}
  %905: i32 = and %102, %111
  %906: i1 = eq %905, %110
  %907: i32 = if @0 %906 {{
    %910: i32 = shfl.bfly %104, %111, %900, %901
    br @0 %910
  }} else {{
    %911: i32 = add %104, %101
    %912: i32 = shfl.bfly %911, %111, %900, %901
    syncwarp %900
    br @0 %912
  }}
  if @1 %906 {{
    syncwarp %900
    br @1
  }} else {{
    br @1
  }}
  {at("%0", "%105", 4, 50)}
  store %50, %907"""
    (out,) = run(kernel([P], body), 2, 64, [np.zeros(128, np.int32)])
    t = np.arange(128)
    assert (out == np.where(t % 2 == 0, t + 1 + 64, t - 1)).all()


def test_disjoint_masks_on_both_sides():
    """Half warps shuffle apart; lanes leave a loop of votes each at its own time."""
    body = f"""
  %900: i32 = const 65535
  %901: i32 = const 32
  %902: i32 = const 4294901760
  %903: i32 = const 16
  %904: i32 = special laneid
  %905: i1 = lt.s %904, %903
  %907: i32 = if @0 %905 {{
    %910: i32 = shfl.idx %104, %113, %900, %901
    br @0 %910
  }} else {{
    %911: i32 = add %113, %903
    %912: i32 = shfl.idx %104, %911, %902, %901
    br @0 %912
  }}
  %920: i32 = and %102, %113
  %921: i32 = loop @1 (%922: i32 = %920, %923: i32 = %110) {{
    %924: i1 = lt.s %110, %922
    if @2 %924 {{
      br @2
    }} else {{
      br @1 %923
    }}
    %925: i32 = activemask
    %926: i32 = popc %925
    %930: i32 = add %926, %923
    %931: i1 = vote.all %924, %925
    %932: i32 = zext %931
    %933: i32 = sub %922, %932
    continue @1 %933, %930
  }}
  %940: i32 = const 1000
  %941: i32 = mul %921, %940
  %942: i32 = add %941, %907
  {at("%0", "%105", 4, 50)}
  store %50, %942"""
    out = np.zeros(128, np.int32)
    _core.ir_run(kernel([P], body), 2, 64, [out])
    t = np.arange(128)
    count = np.array([0, 24, 24 + 16, 24 + 16 + 8])[t % 4]
    assert (out == t // 16 * 16 + 3 + 1000 * count).all()


STUCK = f"""
  {FULL}
  %905: i32 = const 4
  %906: i1 = lt.s %102, %905
  if @{{label}} %906 {{{{
    syncwarp %900 @17:3
    br @{{label}}
  }}}} else {{{{
    br @{{label}}
  }}}}
  {{after}}"""


@pytest.mark.parametrize("after", ["", "barrier"])
def test_a_mask_that_names_who_cannot_come(after):
    text = kernel([P], STUCK.format(label=0, after="barrier"))
    for threads in (1, 2):
        with pytest.raises(RuntimeError, match="no progress.*syncwarp of line 17"):
            _core.ir_run(text, 4, 32, [np.ones(1, np.int32)], threads=threads)


def test_single_threads_stuck_at_a_warp_operation():
    text = kernel([P], ALONE + STUCK.format(label=2, after="barrier"))
    for threads in (1, 2):
        with pytest.raises(
            RuntimeError, match="no progress.*thread 0 waits at the syncwarp of line 17"
        ):
            _core.ir_run(text, 4, 32, [np.ones(1, np.int32)], threads=threads)
    # those who have ended do not hold up the others
    _core.ir_run(
        kernel([P], ALONE + STUCK.format(label=2, after="")), 4, 32, [np.ones(1, np.int32)]
    )


@pytest.mark.parametrize("alone", [False, True])
def test_barriers_that_count(alone):
    body = (
        (ALONE if alone else "")
        + f"""
  %905: i32 = const 90
  %906: i1 = lt.s %102, %905
  if @{2 * alone} %906 {{
    br @{2 * alone}
  }} else {{
    return
  }}
  {at("%1", "%105", 4, 50)}
  %51: i32 = load %50
  %52: i32 = barrier.count %51
  %53: i32 = barrier.and %51
  %54: i32 = barrier.or %51
  %55: i32 = barrier.count %111
  %56: i32 = const 2000
  %57: i32 = mul %53, %56
  %58: i32 = add %52, %57
  %59: i32 = mul %54, %56
  %60: i32 = add %59, %59
  %61: i32 = add %58, %60
  %62: i32 = mul %55, %56
  %63: i32 = mul %62, %114
  %64: i32 = add %63, %61
  store %50, %64"""
    )
    values = np.zeros((4, 100), np.int32)
    values[1, 7] = -3
    values[2] = 5
    values[3, ::2] = 1
    out = run(kernel([P, P], body), 4, 100, [np.ones(1, np.int32), values])[1]
    live = values[:, :90] != 0
    want = live.sum(1) + 2000 * live.all(1) + 4000 * live.any(1) + 90 * 10000
    assert (out[:, :90] == want[:, None]).all() and (out[:, 90:] == values[:, 90:]).all()


@pytest.mark.parametrize(("grid", "block"), [(1, 1), (7, 33), (300, 8)])
def test_grid_sync(grid, block):
    """Three rounds: each thread adds what its right neighbour in the grid had."""
    total = grid * block
    body = f"""
  %900: i32 = const {total}
  %901: i32 = add %104, %111
  %902: i32 = rem.s %901, %900
  %903: i64 = sext %902
  {at("%0", "%105", 4, 50)}
  {at("%0", "%903", 4, 51)}
  loop @0 (%52: i32 = %110) {{
    %53: i1 = lt.s %52, %113
    if @1 %53 {{
      br @1
    }} else {{
      br @0
    }}
    %54: i32 = load %50
    %55: i32 = load %51
    grid.sync
    %56: i32 = add %54, %55
    store %50, %56
    grid.sync
    %57: i32 = add %52, %111
    continue @0 %57
  }}"""
    a = np.random.default_rng(3).integers(0, 100, total).astype(np.int32)
    (out,) = run(kernel([P], body), grid, block, [a])
    for _ in range(3):
        a = a + np.roll(a, -1)
    assert (out == a).all()


def test_blocks_that_ended_count_as_met():
    body = f"""
  %900: i1 = lt.s %100, %114
  if @0 %900 {{
    br @0
  }} else {{
    return
  }}
  grid.sync
  {at("%0", "%105", 4, 50)}
  store %50, %111"""
    (out,) = run(kernel([P], body), 20, 16, [np.zeros(320, np.int32)])
    assert out.sum() == 80


@pytest.mark.parametrize(
    ("condition", "gangs"),
    [
        ("%903: i32 = shr.s %102, %114\n  %904: i1 = eq %903, %110", 1),
        ("%904: i1 = lt.s %102, %901", 1),
        ("%904: i1 = lt.s %102, %113", 96),
    ],
)
def test_warps_that_go_different_ways(condition, gangs):
    """Whole warps on each side need not wait for each other, nor become threads of their own."""
    body = f"""
  {FULL}
  {condition}
  %907: i32 = if @0 %904 {{
    %910: i32 = shfl.bfly %104, %111, %900, %901
    br @0 %910
  }} else {{
    %911: i32 = shfl.bfly %104, %112, %900, %901
    br @0 %911
  }}
  {at("%0", "%105", 4, 50)}
  store %50, %907"""
    text = kernel([P], body)
    assert f" {gangs} gangs of " in _core.ir_listing(text, 96).splitlines()[0]
    (out,) = run(text, 2, 96, [np.zeros(192, np.int32)])
    t = np.arange(192)
    if gangs == 1:
        assert (out == np.where(t % 96 < 32, t ^ 1, t ^ 2)).all()
