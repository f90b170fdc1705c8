"""Forks at every moment: the child and the parent go on with right numbers."""

from common import run_python

FIRST_USE = """
import os, sys
import numpy as np
import simt.{face} as face
pid = os.fork()
{use}
if pid == 0:
    os._exit(0 if right else 1)
sys.exit(0 if right and os.waitpid(pid, 0)[1] == 0 else 1)
"""
USES = {
    "torch": "right = face.ones(3).sum().item() == 3",
    "cupy": "right = float(face.ones(3).sum()) == 3",
    "numba.cuda": "right = face.to_device(np.arange(3)).copy_to_host().tolist() == [0, 1, 2]",
}


def arguments(parser):
    parser.add_argument("--count", type=int, default=100)


def run(options):
    failed = 0
    faces = list(USES)
    for number in range(options.count):
        face = faces[(number + options.seed) % len(faces)]
        outcome = run_python(FIRST_USE.format(face=face, use=USES[face]), timeout=20)
        if outcome.code != 0:
            failed += 1
            print(f"fork before the first use, face {face}: {outcome}", flush=True)
    return failed
