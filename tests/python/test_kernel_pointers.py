"""Pointers in signatures (types.CPointer): an address, given as an integer, of memory of ours."""

import gc

import numpy as np
import pytest
from simt import cupy, torch
from simt.numba import cuda, types
from simt.numba.core.errors import TypingError


def address(d):
    return d.__cuda_array_interface__["data"][0]


@cuda.jit(types.void(types.CPointer(types.uint8), types.uint32))
def put(p, n):
    p[0] = n


def test_a_number_is_put_where_the_address_says():
    d = cuda.to_device(np.arange(5, dtype=np.uint8))
    put[1, 1](address(d), 7)
    put[1, 1](address(d) + 3, np.uint8(9))
    assert d.copy_to_host().tolist() == [7, 1, 2, 9, 4]


@pytest.mark.parametrize("name", [t.name for t in types.SCALARS])
def test_elements_of_every_type(name):
    dtype = np.dtype("bool" if name == "bool" else name)

    of = types.CPointer(getattr(types, name.replace("bool", "boolean")))

    @cuda.jit(types.void(of, of, types.int64))
    def copy(p, q, n):
        i = cuda.grid(1)
        if i < n:
            q[i] = p[n - 1 - i]

    a = np.arange(6).astype(dtype) * dtype.type(1)
    d, e = cuda.to_device(a), cuda.to_device(np.zeros(6, dtype))
    copy[2, 4](address(d), address(e), 6)
    np.testing.assert_array_equal(e.copy_to_host(), a[::-1])


def test_expressions_variables_and_functions():
    @cuda.jit(device=True)
    def twice(p, i):
        p[i] *= 2
        return p[i]

    @cuda.jit("(CPointer(float32), CPointer(float32), bool_)")
    def k(p, q, first):
        r = p if first else q
        r[1] += twice(r, 0) + p[2]

    d, e = cuda.to_device(np.float32([1, 2, 3])), cuda.to_device(np.float32([10, 20]))
    k[1, 1](address(d), address(e), True)
    k[1, 1](address(d), address(e), False)
    assert d.copy_to_host().tolist() == [2, 7, 3] and e.copy_to_host().tolist() == [20, 43]


def test_what_lies_before():
    @cuda.jit("(CPointer(int32), int64)")
    def k(p, i):
        p[i] = p[i] + 100

    d = cuda.to_device(np.arange(6, dtype=np.int32))
    k[1, 1](address(d[3:]), -2)
    k[1, 1](address(d) + 20, -5)
    k[1, 1](address(d[1:]), 4)
    assert d.copy_to_host().tolist() == [100, 101, 2, 3, 4, 105]
    for at, i, size in [(address(d), 6, 6), (address(d), -1, 6), (address(d[3:]), 3, 3)]:
        for index in (i, i + 2**62, -(2**63)):
            with pytest.raises(IndexError, match=rf"index {index} .* with size {size}: array 'p'"):
                k[1, 1](at, index)
    assert d.copy_to_host().tolist() == [100, 101, 2, 3, 4, 105]


def test_memory_of_the_other_faces():
    c, t = cupy.arange(4, dtype="float32") + 1, torch.arange(4, dtype=torch.float32) * 2

    @cuda.jit("(CPointer(float32), CPointer(float32), int64)")
    def add(p, q, n):
        i = cuda.grid(1)
        if i < n:
            p[i] += q[i]

    version = t._version
    add[1, 4](t.data_ptr(), c.data.ptr, 4)
    assert t.tolist() == [1, 4, 7, 10] and c.tolist() == [1, 2, 3, 4]
    assert t._version == version + 1 and (t + 1).tolist() == [2, 5, 8, 11]


def test_memory_stays_while_a_kernel_has_its_address():
    d = cuda.to_device(np.arange(4, dtype=np.uint8))
    at = address(d)
    put[1, 1](at, 5)
    del d
    gc.collect()
    with pytest.raises(ValueError, match=r"argument 1 \('p'\).* lies in no device array"):
        put[1, 1](at, 5)


def test_addresses_that_are_not_ours():
    host = np.zeros(4, np.uint8)
    d = cuda.to_device(np.zeros(4, np.uint8))
    for at in (host.ctypes.data, 1, 2**64 - 1, -1, address(d) + 4, address(d) - 1):
        with pytest.raises(ValueError, match="lies in no device array"):
            put[1, 1](at, 5)
    with pytest.raises(IndexError, match="index 0 .* with size 0"):
        put[1, 1](0, 5)
    assert host.tolist() == [0] * 4 == d.copy_to_host().tolist()


def test_what_is_no_address():
    d = cuda.to_device(np.zeros(4, np.uint8))
    for value in (d, np.zeros(4, np.uint8), 1.5, None, True, "x"):
        with pytest.raises(TypeError):
            put[1, 1](value, 5)


def test_an_address_between_elements():
    @cuda.jit("(CPointer(float64),)")
    def k(p):
        p[0] = 1

    d = cuda.to_device(np.zeros(4))
    with pytest.raises(ValueError, match=r"argument 1 \('p'\).*not aligned"):
        k[1, 1](address(d) + 4)
    assert d.copy_to_host().tolist() == [0] * 4


def test_arrays_behind_a_pointer():
    """The places of later arguments are those of the declared signature."""

    @cuda.jit("(CPointer(int32), int64[::1], int32[:])")
    def k(p, a, b):
        i = cuda.grid(1)
        a[i] = p[i]
        b[i] = p[i] + 1

    d, a = cuda.to_device(np.int32([4, 5, 6])), np.zeros(3, np.int64)
    b = np.zeros(6, np.int32)
    k[1, 3](address(d), a, b[::2])
    assert a.tolist() == [4, 5, 6] and b.tolist() == [5, 0, 6, 0, 7, 0]
    crooked = np.zeros(25, np.uint8)[1:].view(np.int64)  # copied in and out: not aligned
    k[1, 3](address(d), crooked, b[::2])
    assert crooked.tolist() == [4, 5, 6]
    with pytest.raises(IndexError, match=r"array 'a' of shape \(2,\)"):
        k[1, 3](address(d), a[:2], b[::2])


def test_several_signatures():
    @cuda.jit(["(CPointer(int32), int32)", "(int32[:], int32)"])
    def k(p, n):
        p[1] = n

    d = cuda.to_device(np.zeros(3, np.int32))
    k[1, 1](d, 1)
    k[1, 1](address(d) + 4, 2)
    assert d.copy_to_host().tolist() == [0, 1, 2]
    assert k.signatures[0] == (types.CPointer(types.int32), types.int32)
    assert str(types.CPointer(types.int32)) == "int32*"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("p[0:1] = 1", "a pointer has elements only"),
        ("p[0, 0] = 1", "a pointer has elements only"),
        ("p[0] = len(p)", r"int32\* has no len"),
        ("p[0] = p.size", r"int32\*"),
        ("q = p + 1", r"no operator \+ for int32\*"),
        ("cuda.atomic.add(p, 0, 1)", r"must be an array, not int32\*"),
        ("p[0] = 1j", "complex128 cannot become int32"),
        ("p[1.5] = 1", "an index must be an integer"),
    ],
)
def test_what_pointers_have_not(line, words):
    from numba_source import load

    scope = load(f"def k(p):\n    {line}\n", cuda=cuda)
    with pytest.raises(TypingError, match=words):
        cuda.jit("(CPointer(int32),)")(scope["k"])


def test_pointers_to_other_things():
    for of in (types.none, types.CharSeq(3), types.CPointer(types.int8), types.int8[:]):
        with pytest.raises(TypeError, match="not in simt yet"):
            types.CPointer(of)
