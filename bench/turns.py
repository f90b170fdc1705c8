"""Turns between processes that are timed against each other: while one runs, the others wait.

A program calls turn() before each slice of time that it measures. Alone that does nothing; where
run.py started it with SIMT_BENCH_TURNS it says that it is ready and waits for a line.
"""

import os
import sys

IN_TURNS = bool(os.environ.get("SIMT_BENCH_TURNS"))
READY = "turn"


def turn(warm=None):
    """Waits for this process's turn; then warm(), untimed: another process had the caches."""
    if not IN_TURNS:
        return
    print(READY, flush=True)
    if not sys.stdin.readline():
        sys.exit("the other process ended")
    if warm:
        warm()


def slices(groups, per_group=1):
    """(groups, steps in each): more and shorter ones where they are taken in turns."""
    if not IN_TURNS:
        return groups, per_group
    return 4 * groups, max(1, per_group // 4)
