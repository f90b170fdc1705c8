"""Each allocation of each program of programs/ fails once, then it and all that follow.

The result must be a MemoryError or the right value; afterwards the program gives the right value,
and as much memory is alive as before. Ours are those of base/heap.h and of arenas, all of which
are tried; of Python's, those that our C code asks for, each `--python`-th, once. Needs a
development build.

Two things are CPython's own (3.11) and left out: its compiler destroys the heap when one of its
allocations fails (copy_except_stack), so the programs' sources are known before; and where all of
its allocations fail, an exception's way through a `with` block never ends.
"""

import os
import re

from common import run_python

COMPILE_PYTHON = ("kernel_vectorize", "kernel_guvectorize")
FILES = ["kernels", "arrays", "tensors"]
PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")
CHILD = """
import faulthandler, gc, sys
sys.path.insert(0, {here!r})
from simt import _core

faulthandler.enable()
program = getattr(__import__(sys.argv[5]), sys.argv[1])
kind, first, step = sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
deny = _core.heap_deny if kind == "heap" else _core.python_deny
allow = _core.heap_allow if kind == "heap" else _core.python_allow
NONE, ALL = (1, 0), 1 << 60


def alive():
    _core.heap_forget()
    return _core.heap_counts()[1]


def collected():
    gc.collect()
    return alive()


def run(begin, end):
    failure = value = None
    deny(begin, end)
    try:
        value = program()
    except MemoryError:
        failure = "MemoryError"
    except BaseException as e:
        failure = e
    allow()
    return failure, repr(value)


def count():
    if kind == "python":
        deny(*NONE)
        program()
        return allow()
    before = _core.heap_counts()[0]
    program()
    return _core.heap_counts()[0] - before


def check(k, end):
    failure, value = run(k, end)
    if failure is not None and failure != "MemoryError":
        return f"{{type(failure).__name__}}: {{failure}}"[:300]
    if failure is None and value != expected:
        return f"wrong value {{value[:200]}}"
    del failure
    try:
        again = repr(program())
    except BaseException as e:
        return f"then {{type(e).__name__}}: {{e}}"[:300]
    if again != expected:
        return f"then wrong value {{again[:200]}}"
    global most
    now = alive()
    if now > most and (now := collected()) > most:
        before, most = most, now
        return f"{{now - before}} allocations more are alive"


expected = repr(program())
program()
most = collected()
program()
_core.heap_forget()
total = count()
most = max(most, collected())
print("total", total, flush=True)
for k in range(first, total, step):
    for end in (k, ALL) if kind == "heap" else (k,):
        print("at", k, "once" if end == k else "on", flush=True)
        faulthandler.dump_traceback_later(600, exit=True)
        wrong = check(k, end)
        if wrong:
            print("wrong", wrong, flush=True)
print("done")
"""


def arguments(parser):
    parser.add_argument("--every", type=int, default=1, help="of our own allocations")
    parser.add_argument("--python", type=int, default=23, help="each which of Python's; 0: none")
    parser.add_argument("--only", default="", help="programs with one of these (a,b) in their name")
    parser.add_argument("--most", type=int, default=0, help="stop at so many failures of a program")


def programs():
    """(name, file) of each, without importing simt here."""
    for file in FILES:
        with open(os.path.join(PROGRAMS, f"{file}.py"), encoding="utf-8") as f:
            for name in re.findall(r"^def ((?:kernel|arrays|torch)_\w+)", f.read(), re.M):
                yield name, file


def try_program(name, file, kind, first, step):
    """(allocations tried, failures): goes on behind one that ends the process."""
    text = CHILD.format(here=PROGRAMS)
    tried, failures = 0, []
    while True:
        outcome = run_python(text, name, kind, first, step, file, timeout=3600, SIMT_NUM_THREADS=1)
        at = None
        for line in outcome.out.splitlines():
            word, _, rest = line.partition(" ")
            if word == "at":
                at = rest
                tried += 1
            elif word == "wrong":
                failures.append(f"{name}: {kind} allocation {at}: {rest}")
        if outcome.code == 0 and outcome.out.endswith("done\n"):
            return tried, failures
        failures.append(f"{name}: {kind} allocation {at}: {outcome}")
        if at is None:
            return tried, failures
        first = int(at.split()[0]) + step


def run(options):
    total, failed = 0, 0
    for name, file in programs():
        if not any(part in name for part in options.only.split(",")):
            continue
        python = 0 if name in COMPILE_PYTHON else options.python
        kinds = [("heap", options.every), ("python", python)]
        for kind, step in kinds:
            if step <= 0:
                continue
            tried, failures = try_program(name, file, kind, options.seed % step, step)
            for line in failures[: options.most or None]:
                print(line, flush=True)
            print(
                f"{name}: {tried} failures of {kind} allocations: {len(failures)} wrong", flush=True
            )
            total += tried
            failed += len(failures)
    print(f"allocations failed: {total}")
    return failed
