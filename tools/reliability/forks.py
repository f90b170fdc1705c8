"""Forks at every moment: the child and the parent go on with right numbers.

A pattern is a moment (before the first use, with operations pending, while threads train or run
kernels, in signal handlers, from a worker thread, in pools of each kind) and the face that the
child uses first.
"""

import os
import random

from common import run_python

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "forked.py")
MOMENTS = ["first", "pending", "training", "kernel", "compiling", "handler", "thread", "family"]
MOMENTS += ["fork", "forkserver", "spawn"]
FACES = ["torch", "cupy", "numba"]


def arguments(parser):
    parser.add_argument("--count", type=int, default=100)


def run(options):
    rng = random.Random(options.seed)
    patterns = [(moment, face) for face in FACES for moment in MOMENTS]
    failed = 0
    for number in range(options.count):
        if number % len(patterns) == 0:
            rng.shuffle(patterns)
        moment, face = patterns[number % len(patterns)]
        seed = rng.randrange(10**6)
        outcome = run_python(PROGRAM, moment, face, seed, timeout=120)
        if outcome.code != 0:
            failed += 1
            print(f"forked.py {moment} {face} {seed}: {outcome}", flush=True)
    return failed
