"""Large generated kernels of each shape (tools/compile_growth.py): their values; they compile."""

import sys
from pathlib import Path

import numpy as np
import pytest
from numba_face import MODE
from numba_source import load

if MODE != "simt":
    pytest.skip("how simt compiles kernels", allow_module_level=True)
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from compile_growth import DEVICE_SHAPES, FUNCTIONS, SHAPES, kernel_of

THREADS = 4


def in_python(shape, n, out, a):
    """The same text for one thread after the other, as Python runs it."""
    lines = ["def kernel(o, a, i):"] + ["    " + line for line in SHAPES[shape](n)]
    functions = FUNCTIONS.replace("@cuda.jit(device=True)\n", "")
    kernel = load(functions + "\n".join(lines) + "\n")["kernel"]
    with np.errstate(all="ignore"):
        for i in range(THREADS):
            kernel(out, a, i)


def launched(shape, n):
    """What is left in the output by a launch."""
    a = np.linspace(0.25, 1.75, n + 70)
    out = np.zeros(n + 70)
    kernel_of(shape, n)[1, THREADS](out, a)
    return out, a


@pytest.mark.parametrize("shape", SHAPES)
def test_large_kernels_compute_what_python_does(shape):
    n = 600
    if shape == "loads":  # threads next to each other write the same elements
        n = 8
    out, a = launched(shape, n)
    want = np.zeros_like(out)
    in_python(shape, n, want, a)
    np.testing.assert_allclose(out, want, rtol=1e-9)


@pytest.mark.parametrize("shape", DEVICE_SHAPES)
def test_kernels_of_many_meetings_compile(shape):
    launched(shape, 2_000)


@pytest.mark.parametrize("shape", ["constants"])
def test_fifty_thousand_operations_compile(shape):
    launched(shape, 50_000)


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES | DEVICE_SHAPES)
def test_fifty_thousand_operations_of_each_shape(shape):
    launched(shape, 50_000)
