"""Launches that are refused: limits, arguments, signatures; the report names the definition."""

import numpy as np
import pytest
from kernel_reports import floats, place
from simt.numba import cuda, float32
from simt.numba.cuda.cudadrv.driver import CudaAPIError


@cuda.jit
def nothing(a):
    pass


@cuda.jit
def large(a):
    s = cuda.shared.array(100000, float32)
    s[0] = 1
    a[0] = s[0]


def names_definition(info, kernel):
    at, shown = place(kernel, "def ")
    return str(info.value).endswith(f"\ndefined at {at}{shown}")


LAUNCHES = [
    ((1, 2000), CudaAPIError, "2000, 976 more than the limit of 1024"),
    ((1, (32, 33)), CudaAPIError, "1056 threads|1056"),
    ((1, (1, 1, 100)), CudaAPIError, "z is 100, 36 more than the limit of 64"),
    ((1, 0), CudaAPIError, "x is 0, and must be at least 1"),
    ((0, 1), CudaAPIError, "grid .0, 1, 1.: x is 0"),
    (((1, 70000), 1), CudaAPIError, "y is 70000, 4465 more than the limit of 65535"),
    ((1, -1), CudaAPIError, "x is -1"),
    ((1.5, 1), TypeError, "griddim must be a sequence of integers, got 1.5: write //"),
    ((1, (1, 1, 1, 1)), ValueError, "1, 2 or 3 integers"),
    ((1, 1, 0, 100000), CudaAPIError, "100000 dynamic.*more than the limit of 49152"),
    ((1,), ValueError, "griddim and blockdim"),
]


@pytest.mark.parametrize("config, error, message", LAUNCHES, ids=[str(c[0]) for c in LAUNCHES])
def test_launch(config, error, message):
    with pytest.raises(error, match=message) as info:
        nothing[config](floats())
    if len(config) > 1 and "kernel" in str(info.value):
        assert names_definition(info, nothing)


@cuda.jit
def shared_of_the_launch(a):
    s = cuda.shared.array(0, float32)
    s[cuda.threadIdx.x] = a[0]
    a[0] = s[0]


def test_no_bytes_of_dynamic_shared_memory(monkeypatch):
    monkeypatch.setenv("SIMT_LANG", "en")
    with pytest.raises(IndexError, match="array 's'(.|\n)*hint: .*grid, block, stream, bytes"):
        shared_of_the_launch[1, 2](floats())
    with pytest.raises(IndexError) as info:
        shared_of_the_launch[1, 2, 0, 4](floats())
    assert "hint" not in str(info.value)
    shared_of_the_launch[1, 2, 0, 8](floats())


def test_static_shared_memory_beyond_the_limit():
    with pytest.raises(CudaAPIError, match="400000 static, 0 dynamic.*limit of 49152") as info:
        large[1, 1](floats())
    assert names_definition(info, large)
    assert info.value.code == 1 and "defined at" in info.value.msg


ARGUMENTS = [
    ([1, 2], "a list: give a NumPy array or a tuple"),
    ("abc", "a str: kernels take no strings"),
    (object(), "a object: kernels take arrays, numbers"),
    ({1: 2}, "a dict"),
    (np.array(["x"], "O"), "dtype object: kernels take arrays of numbers"),
    (np.zeros(3, ">f4"), "byte order"),
    (np.zeros((1,) * 9), "more than 8 dimensions"),
    (np.zeros(3, "M8[s]"), "datetime64"),
]


@pytest.mark.parametrize("value, message", ARGUMENTS, ids=[m for _, m in ARGUMENTS])
def test_argument(value, message):
    with pytest.raises(TypeError, match=f"kernel nothing: argument 1 .'a'..*{message}") as info:
        nothing[1, 1](value)
    assert names_definition(info, nothing)


def test_number_of_arguments():
    with pytest.raises(TypeError, match="expected 1, got 2") as info:
        nothing[1, 1](floats(), floats())
    assert names_definition(info, nothing)
    with pytest.raises(TypeError, match="unexpected keyword argument 'a'") as info:
        nothing[1, 1](a=floats())
    assert names_definition(info, nothing)
    with pytest.raises(TypeError, match="expected 1, got 0"):
        nothing[1, 1]()
    with pytest.raises(OverflowError, match="fits neither int64 nor uint64"):
        nothing[1, 1](2**70)


def test_no_declared_signature_fits():
    kernel = cuda.jit("void(float32[:])")(nothing.py_func)
    text = r"type\(s\) array\(float64, 2d, C\); declared: \(array\(float32, 1d, A\)\)"
    with pytest.raises(TypeError, match="No matching definition.*" + text) as info:
        kernel[1, 1](np.zeros((2, 2)))
    assert names_definition(info, nothing)


def test_definition_without_source():
    names = {}
    exec("def sourceless(a): pass", names)
    with pytest.raises(CudaAPIError, match="more than the limit.*\ndefined at <string>:1$"):
        cuda.jit(names["sourceless"])[1, 2000](floats())
