"""The `cuda` that the tests of Numba kernels run on.

simt's own face by default. SIMT_TEST_NUMBA=simulator takes the pure-Python reference
(tests/differential/simulator.py), SIMT_TEST_NUMBA=numba the real Numba (also with its own
simulator, NUMBA_ENABLE_CUDASIM=1): the same tests then say whether the kernels themselves are
right.
"""

import os
import sys
from pathlib import Path

import numpy as np

MODE = os.environ.get("SIMT_TEST_NUMBA", "simt")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "differential"))

import simulator

if MODE == "simulator":
    cuda = simulator
    float32, float64, int32, int64 = np.float32, np.float64, np.int32, np.int64
    uint8, uint32, uint64, complex64 = np.uint8, np.uint32, np.uint64, np.complex64
elif MODE == "numba":
    from numba import (
        complex64,
        cuda,
        float32,
        float64,
        int32,
        int64,
        uint8,
        uint32,
        uint64,
    )
else:
    from simt.numba import (
        complex64,
        cuda,
        float32,
        float64,
        int32,
        int64,
        uint8,
        uint32,
        uint64,
    )

# The references in Python need seconds for what compiled kernels do in microseconds.
SLOW = MODE != "simt"


def small(size, reduced):
    """`size` for compiled kernels, `reduced` for the references."""
    return reduced if SLOW else size


def blocks_for(n, per_block):
    """Blocks of `per_block` threads that cover n, for tuples along each axis."""
    if isinstance(per_block, tuple):
        return tuple(-(-a // b) for a, b in zip(n, per_block, strict=True))
    return -(-n // per_block)


__all__ = [
    "MODE",
    "SLOW",
    "blocks_for",
    "complex64",
    "cuda",
    "float32",
    "float64",
    "int32",
    "int64",
    "simulator",
    "small",
    "uint8",
    "uint32",
    "uint64",
]
