"""Threads, warps and blocks that wait for each other: all finish, or it is an error."""

import os
import signal
import threading

import numpy as np
import pytest
from simt import _core
from test_vm_control import P, kernel
from test_vm_warp import ALONE, at


def spin(label, load, done="ne"):
    """A loop until the loaded word is not (or is) 0."""
    return f"""
  loop @{label} () {{
    %7{label}0: i32 = {load}
    %7{label}1: i1 = {done} %7{label}0, %110
    if @{label + 1} %7{label}1 {{
      br @{label}
    }} else {{
      br @{label + 1}
    }}
    continue @{label}
  }}"""


def launch(body, params, grid, block, args, **options):
    """On one and two threads; the arrays of the last."""
    for threads in (1, 2):
        copies = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
        _core.ir_run(kernel(params, body), grid, block, copies, threads=threads, **options)
        yield copies


SCAN = """
  %1000: i64 = sext %100
  {status}
  {sums}
  %1001: i32 = sub %100, %111
  %1002: i1 = eq %102, %110
  {value}
  %1004: i32 = load %52
  if @0 %1002 {{
    %1005: i1 = eq %100, %110
    %1006: i32 = if @1 %1005 {{
      br @1 %110
    }} else {{
      %1007: i64 = sext %1001
      {before}
      {sums_before}
      loop @2 () {{
        %1008: i32 = {load} %53
        %1009: i1 = eq %1008, %110
        if @3 %1009 {{
          continue @2
        }} else {{
          br @2
        }}
        return
      }}
      %1010: i32 = {load} %54
      br @1 %1010
    }}
    %1011: i32 = add %1006, %1004
    store {store}%51, %1011
    fence device
    %1012: i32 = atomic.exch %50, %111
    br @0
  }} else {{
    br @0
  }}
  barrier
  %1013: i32 = load volatile.device %51
  {out}
  store %55, %1013"""


@pytest.mark.parametrize("order", ["volatile.device", ""])
@pytest.mark.parametrize(("grid", "block"), [(3000, 4), (200, 64)])
def test_chained_scan(order, grid, block):
    """Each block waits for the sum of the one before, by volatile or by plain loads."""
    body = SCAN.format(
        status=at("%0", "%1000", 4, 50), sums=at("%1", "%1000", 4, 51),
        value=at("%2", "%1000", 4, 52), before=at("%0", "%1007", 4, 53),
        sums_before=at("%1", "%1007", 4, 54), out=at("%3", "%105", 4, 55),
        load=f"load {order}", store=f"{order} " if order else "",
    )  # fmt: skip
    a = np.random.default_rng(1).integers(0, 100, grid).astype(np.int32)
    zeros = [
        np.zeros(grid, np.int32),
        np.zeros(grid, np.int32),
        a,
        np.zeros(grid * block, np.int32),
    ]
    for out in launch(body, [P] * 4, grid, block, zeros):
        assert (out[3] == np.repeat(np.cumsum(a), block)).all()


GRID_BARRIER = """
  barrier
  %1000: i1 = eq %102, %110
  if @0 %1000 {{
    fence device
    %1001: i32 = atomic.add %0, %111
    %1002: i32 = special nctaid.x
    loop @1 () {{
      %1003: i32 = {load}
      %1004: i1 = lt.s %1003, %1002
      if @2 %1004 {{
        continue @1
      }} else {{
        br @1
      }}
      return
    }}
    br @0
  }} else {{
    br @0
  }}
  barrier
  {mine}
  %1005: i32 = special nctaid.x
  %1006: i32 = mul %1005, %101
  %1007: i32 = sub %1006, %111
  %1008: i32 = sub %1007, %104
  %1009: i64 = sext %1008
  {other}
  %1010: i32 = load %51
  {out}
  store %52, %1010"""


@pytest.mark.parametrize("load", ["load volatile.device %0", "atomic.add %0, %110", "load %0"])
@pytest.mark.parametrize(("grid", "block"), [(2000, 32), (60, 256)])
def test_hand_made_grid_barrier(load, grid, block):
    n = grid * block
    body = (
        at("%1", "%105", 4, 60)
        + "\n  store %60, %104"
        + GRID_BARRIER.format(
            load=load, mine="", other=at("%1", "%1009", 4, 51), out=at("%2", "%105", 4, 52)
        )
    )
    args = [np.zeros(1, np.int32), np.zeros(n, np.int32), np.zeros(n, np.int32)]
    for out in launch(body, [P, P, P], grid, block, args):
        assert (out[2] == np.arange(n)[::-1]).all()


def test_producer_and_consumer_in_one_warp():
    """Odd threads take what even ones put into shared memory; each waits for the other."""
    body = f"""
  %1000: ptr.shared = alloc 256
  %1001: i32 = and %102, %111
  %1002: i32 = sub %102, %1001
  %1003: i64 = sext %1002
  {at("%1000", "%1003", 4, 50).replace("ptr.global", "ptr.shared")}
  store volatile.block %50, %110
  barrier
  %1004: i1 = eq %1001, %111
  %1005: i32 = add %104, %112
  %1006: i32 = if @0 %1004 {{
    {spin(1, "load volatile.block %50")}
    %1007: i32 = load volatile.block %50
    store volatile.block %50, %110
    br @0 %1007
  }} else {{
    store volatile.block %50, %1005
    {spin(3, "load volatile.block %50", "eq")}
    br @0 %110
  }}
  {at("%0", "%105", 4, 51)}
  store %51, %1006"""
    for (out,) in launch(body, [P], 5, 64, [np.full(320, -1, np.int32)]):
        t = np.arange(320)
        assert (out == np.where(t % 2 == 1, t + 1, 0)).all()


def test_poll_of_a_plain_load_by_all_threads_but_one():
    """while flag[0] == 0: pass, written without volatile; the last thread raises the flag."""
    body = f"""
  %1000: i32 = sub %1, %111
  %1001: i1 = eq %104, %1000
  if @0 %1001 {{
    store %0, %113
    br @0
  }} else {{
    {spin(1, "load %0")}
    br @0
  }}
  %1002: i32 = load %0
  {at("%2", "%105", 4, 51)}
  store %51, %1002"""
    args = [np.zeros(1, np.int32), 160, np.zeros(160, np.int32)]
    for out in launch(body, [P, "i32", P], 5, 32, args):
        assert (out[2] == 3).all()


def test_ticket_lock():
    body = """
  %1000: i32 = atomic.add %0, %111
  loop @0 () {
    %1001: i32 = atomic.add %1, %110
    %1002: i1 = eq %1001, %1000
    if @1 %1002 {
      br @0
    } else {
      br @1
    }
    continue @0
  }
  %1003: i32 = load volatile.device %2
  %1004: i32 = mul %1003, %113
  %1005: i32 = add %1004, %1000
  store volatile.device %2, %1005
  fence device
  %1006: i32 = atomic.add %1, %111"""
    want = 0
    for t in range(20 * 64):
        want = (want * 3 + t) & 0xFFFFFFFF
    for out in launch(body, [P, P, P], 20, 64, [np.zeros(1, np.int32)] * 3):
        assert out[2].view(np.uint32)[0] == want


def test_compare_and_swap_loops_need_no_waiting():
    """A maximum by retries stays a gang of a whole block, and right."""
    body = f"""
  {at("%1", "%105", 4, 50)}
  %51: f32 = load %50
  %52: i32 = load %0
  loop @0 (%53: i32 = %52) {{
    %54: f32 = bitcast %53
    %55: f32 = fmax.num %54, %51
    %56: i32 = bitcast %55
    %57: i32 = atomic.cas %0, %53, %56
    %58: i1 = eq %57, %53
    if @1 %58 {{
      br @0
    }} else {{
      br @1
    }}
    continue @0 %57
  }}"""
    a = np.random.default_rng(2).random(256 * 40, np.float32)
    for out in launch(body, [P, P], 40, 256, [np.zeros(1, np.float32), a]):
        assert out[0][0] == a.max()


ENDLESS = """
  loop @0 (%1000: i32 = %110) {
    %1001: i32 = add %1000, %113
    %1002: i1 = eq %1001, %111
    %1003: i1 = eq %1001, %110
    %1004: i1 = and %1002, %1003
    if @1 %1004 {
      br @0
    } else {
      br @1
    }
    continue @0 %1001
  } @31:5
  store %0, %104"""
BODIES = {
    "uniform": ENDLESS,
    "diverging": ENDLESS.replace("%1001, %111", "%1001, %104"),
    "barrier": ENDLESS.replace("    continue", "    barrier\n    continue"),
}


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize(("grid", "block"), [(1, 1), (1, 1024), (64, 256)])
def test_time_limit(monkeypatch, body, grid, block):
    monkeypatch.setenv("SIMT_TIME_LIMIT", "0.1")
    for threads in (1, 2):
        with pytest.raises(TimeoutError, match="kernel k ran for more than 0.1 s.* line 31"):
            _core.ir_run(kernel([P], BODIES[body]), grid, block, [np.zeros(1, np.int32)],
                         threads=threads)  # fmt: skip


@pytest.mark.parametrize("body", [*BODIES, "wait"])
def test_interrupt(body):
    text = BODIES.get(body) or spin(0, "load volatile.device %0")
    for threads in (1, 2):
        for grid, block in ((1, 1), (4, 1024)):
            timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
            timer.start()
            with pytest.raises(KeyboardInterrupt):
                _core.ir_run(kernel([P], text), grid, block, [np.zeros(1, np.int32)],
                             threads=threads)  # fmt: skip
            timer.join()


LEADER = """
  %1000: i1 = eq %102, %110
  if @0 %1000 {{
    {spin}
    br @0
  }} else {{
    br @0
  }}
  {after}"""


@pytest.mark.parametrize(
    ("after", "gangs"),
    [
        ("barrier", 1),
        ("%1001: i32 = load %0", 1),
        ("%1001: i1 = eq %102, %113\n if @3 %1001 {\n store volatile.device %0, %111\n br @3\n"
         "} else {\nbr @3\n}", 64),
        ("%1001: i32 = atomic.add %0, %102", 64),
        ("block @3 {\n if @4 %1000 {\n br @3\n} else {\n br @4\n}\n barrier\n br @3\n}\n"
         "store %0, %111", 64),
    ],
)  # fmt: skip
def test_one_thread_waits_while_the_others(after, gangs):
    """A gang is the block only where nobody in the block can be what its first thread waits for."""
    text = kernel([P], LEADER.format(spin=spin(1, "load volatile.device %0"), after=after))
    assert f" {gangs} gangs of " in _core.ir_listing(text, 64).splitlines()[0]
    flag = np.array([int(gangs == 1 or "block" in after)], np.int32)
    for _ in launch(text[text.index("%1000:") : text.rindex("return")], [P], 3, 64, [flag]):
        pass


DIVERGENT = {
    "one side": "if @{0} %1000 {{\n barrier\n br @{0}\n}} else {{\n br @{0}\n}}",
    "both sides": "if @{0} %1000 {{\n barrier\n br @{0}\n}} else {{\n barrier\n br @{0}\n}}",
    "after a return": "if @{0} %1000 {{\n return\n}} else {{\n br @{0}\n}}\nbarrier\nbarrier",
    "rounds of a loop": """loop @{0} (%1001: i32 = %110) {{
    barrier
    %1002: i32 = add %1001, %111
    %1003: i1 = lt.s %1002, %102
    if @{1} %1003 {{
      continue @{0} %1002
    }} else {{
      br @{0}
    }}
    return
  }}""",
}


@pytest.mark.parametrize("where", DIVERGENT)
@pytest.mark.parametrize("alone", [False, True])
def test_barriers_that_not_all_threads_reach(where, alone):
    """What CUDA leaves undefined still ends: those that have ended count as arrived."""
    first = 2 * alone
    body = (ALONE if alone else "") + "\n  %1000: i1 = lt.s %102, %114\n  store %0, %111\n  "
    body += DIVERGENT[where].format(first, first + 1)
    body += at("%0", "%105", 4, 60) + "\n  store %60, %111"
    for (out,) in launch(body, [P], 3, 40, [np.ones(120, np.int32)]):
        assert (out == 1).all()
