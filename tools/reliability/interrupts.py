"""Interrupts at random moments: what was pending is computed later, statements happen or do not.

Each scenario runs in a process of its own and is interrupted `count / scenarios` times, each time
at a moment drawn from the length of an undisturbed round; then its check looks at everything.
"""

import os

from common import run_python

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "interrupted.py")
SCENARIOS = ["statements", "sgd", "adam", "long", "kernels", "device", "save", "load", "loader"]
SCENARIOS += ["workers"]


def arguments(parser):
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--only", choices=SCENARIOS)


def run(options):
    names = [options.only] if options.only else SCENARIOS
    failed = 0
    for i, name in enumerate(names):
        count = options.count // len(names) + (i < options.count % len(names))
        outcome = run_python(PROGRAM, name, count, options.seed, timeout=60 + 30 * count)
        print(f"interrupts {name}: {outcome.out.strip().splitlines()[-1:]}", flush=True)
        if outcome.code != 0:
            failed += 1
            print(f"interrupts --only {name} --count {count} --seed {options.seed}: {outcome}")
    return failed
