"""Threads of the scalar evaluator that wait: barriers, warp operations, grid.sync.

run_together(threads, runs, block): runs are generators, one per thread in flat order, that yield
(op, operands, type of the first operand) where they wait and are sent the operation's result. A
thread that has ended counts as arrived everywhere, and lends no value. Written from ops.def alone.
"""

WARP = 32
BARRIERS = ("barrier", "barrier.count", "barrier.and", "barrier.or")
WAITS = (
    *BARRIERS, "grid.sync", "syncwarp", "activemask",
    "shfl.idx", "shfl.up", "shfl.down", "shfl.bfly",
    "vote.all", "vote.any", "vote.eq", "ballot", "match.any", "match.all",
)  # fmt: skip


def mask_of(wait, lane):
    """The lanes that the operation names."""
    op, args, _ = wait
    mask = args[2] if op.startswith("shfl") else args[-1]
    return mask | 1 << lane


def source_of(op, lane, by, width):
    """The lane that a shuffle reads."""
    first = lane - lane % width
    if op == "shfl.idx":
        return first + by % width
    if op == "shfl.up":
        return lane - by if lane - by >= first else lane
    if op == "shfl.down":
        return lane + by if lane + by < first + width else lane
    return lane ^ by if lane ^ by < first + width else lane


def same(a, b):
    """Equal bits; floats come as NumPy scalars."""
    return a.tobytes() == b.tobytes() if hasattr(a, "tobytes") else a == b


def warp_result(lane, here):
    """The result for one lane; here: what all that take part wait at, by lane."""
    op, args, _ = here[lane]
    values = {other: wait[1][0] for other, wait in here.items()}
    mine = args[0]
    if op.startswith("shfl"):
        return values.get(source_of(op, lane, args[1], args[3]), mine)
    if op == "vote.all":
        return int(all(values.values()))
    if op == "vote.any":
        return int(any(values.values()))
    if op == "vote.eq":
        return int(len(set(values.values())) == 1)
    if op == "ballot":
        return sum(1 << other for other, value in values.items() if value)
    if op.startswith("match"):
        equal = sum(1 << other for other, value in values.items() if same(value, mine))
        return equal if op == "match.any" or len(values) == equal.bit_count() else 0
    return None


def open_warps(waits, block, results):
    """Warp operations at which all that a mask names have come."""
    for thread, wait in waits.items():
        if wait is None or thread in results or wait[0] in (*BARRIERS, "grid.sync"):
            continue
        op = wait[0]
        lane = thread % block % WARP
        base = thread - lane
        mask = mask_of(wait, lane)
        lanes = [i for i in range(WARP) if mask >> i & 1 and base % block + i < block]
        # None: ended
        here = {i: waits[base + i] for i in lanes if waits[base + i] is not None}
        if all(w[0] == op and mask_of(w, i) == mask for i, w in here.items()):
            for i in here:
                results[base + i] = warp_result(i, here)


def open_barriers(waits, group, results):
    """The barrier of a block, or grid.sync of all."""
    alive = [thread for thread in group if waits[thread] is not None]
    if not all(waits[t][0] in BARRIERS for t in alive):
        return
    votes = [bool(waits[t][1][0]) for t in alive if waits[t][1]]
    for t in alive:
        op = waits[t][0]
        results[t] = {"barrier.count": sum(votes), "barrier.and": int(all(votes)),
                      "barrier.or": int(any(votes)), "barrier": None}[op]  # fmt: skip


def run_together(threads, runs, block):
    """Runs all threads to their end; threads that wait for ever are an error."""
    waits = {}
    results = dict.fromkeys(range(len(runs)))
    while results:
        for thread in sorted(results):
            try:
                waits[thread] = runs[thread].send(results[thread])
            except StopIteration:
                waits[thread] = None
        results = {}
        live = {t: w for t, w in waits.items() if w is not None}
        open_warps(waits, block, results)
        for first in range(0, len(runs), block):
            if not any(t in results for t in range(first, first + block)):
                open_barriers(waits, range(first, first + block), results)
        if not results and live and all(w[0] == "grid.sync" for w in live.values()):
            results = dict.fromkeys(live)
    assert not live, "threads wait for each other"
