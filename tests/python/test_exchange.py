"""Memory shared with other libraries: DLPack, buffers, the array interface."""

import array as pyarray
import gc
import weakref

import numpy as np
import pytest
import simt.cupy as cp
from simt import _core

DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()


@pytest.mark.host_memory("shares memory with NumPy")
@pytest.mark.parametrize("dt", DTYPES)
def test_dlpack_both_ways(dt):
    x = np.arange(12).astype(dt).reshape(3, 4)
    a = cp.from_dlpack(x)
    np.testing.assert_array_equal(a.get(), x)
    assert a.dtype == x.dtype
    x[1, 2] = 1  # shared
    np.testing.assert_array_equal(a.get(), x)
    a[0] = cp.array([1, 0, 1, 0], dt)
    np.testing.assert_array_equal(a.get(), x)
    back = np.from_dlpack(a * cp.array(1, dt) if dt != "bool" else a)
    np.testing.assert_array_equal(back, x)


def test_dlpack_of_views():
    a = cp.arange(24.0).reshape(4, 6)
    for view in (a[1:, ::2], a.T, a[::-1], a[2, 3], a[:0]):
        np.testing.assert_array_equal(np.from_dlpack(view), view.get())
    x = np.arange(24.0).reshape(4, 6)
    for view in (x[1:, ::2], x.T, x[::-1, ::-2]):
        np.testing.assert_array_equal(cp.from_dlpack(view).get(), view)


@pytest.mark.host_memory("shares memory with NumPy")
def test_exposed_memory_is_seen_at_once():
    a = cp.zeros(4)
    b = a + 1  # waits
    x = np.from_dlpack(a)
    pending = a * 2
    a[0] = 5
    assert x[0] == 5
    assert b.get().tolist() == [1] * 4 and pending.get().tolist() == [0] * 4
    y = np.arange(3.0)
    shared = cp.from_dlpack(y)
    doubled = shared * 2
    y[:] = 100
    assert doubled.get().tolist() == [0, 2, 4]
    assert (shared + 1).get().tolist() == [101] * 3


def test_capsules_are_consumed_once():
    a = cp.arange(3)
    capsule = a.__dlpack__()
    _core.from_dlpack(capsule)
    with pytest.raises(ValueError, match="only once"):
        _core.from_dlpack(capsule)
    versioned = a.__dlpack__(max_version=(1, 0))
    assert "dltensor_versioned" in repr(versioned)
    assert _core.from_dlpack(versioned).tolist() == [0, 1, 2]
    assert a.__dlpack_device__() == (1, 0)
    with pytest.raises((TypeError, AttributeError)):
        cp.from_dlpack(object())
    with pytest.raises((BufferError, TypeError)):
        cp.from_dlpack(np.array([1j]))


@pytest.mark.host_memory("shares memory with NumPy")
def test_lifetime_of_imported_memory():
    class Owner(np.ndarray):
        pass

    x = np.arange(1000.0).view(Owner)
    gone = weakref.ref(x)
    a = _core.share_memory(x)
    b = a[::-1]
    del x, a
    gc.collect()
    assert gone() is not None and b.get()[0] == 999
    del b
    gc.collect()
    assert gone() is None


@pytest.mark.host_memory("shares memory with NumPy")
def test_lifetime_of_exported_memory():
    before = _core.stats()["bytes_in_use"]
    a = cp.arange(10000.0)
    x = np.from_dlpack(a)
    unused = a.__dlpack__()
    del a
    gc.collect()
    assert x[9999] == 9999
    del x, unused
    gc.collect()
    _core.evaluate(None)
    assert _core.stats()["bytes_in_use"] == before


@pytest.mark.host_memory("shares memory with NumPy")
def test_export_buffer():
    a = cp.arange(6, dtype="int32").reshape(2, 3)
    x = np.asarray(_core.export_buffer(a))
    assert x.shape == (2, 3) and x.dtype == np.int32
    x[0, 0] = 50
    assert a[0, 0].item() == 50
    a[1, 2] = 60
    assert x[1, 2] == 60
    view = memoryview(_core.export_buffer(a.T))
    assert view.shape == (3, 2) and view.strides == (4, 12) and not view.readonly
    assert memoryview(_core.export_buffer(a, False)).readonly
    with pytest.raises(BufferError):
        np.frombuffer(_core.export_buffer(a.T), np.int32)
    with pytest.raises(TypeError):
        memoryview(a)


@pytest.mark.host_memory("shares memory with NumPy")
def test_share_and_copy_buffers():
    data = pyarray.array("f", [1, 2, 3])
    shared = _core.share_memory(data)
    copied = cp.array(data)
    data[0] = 9
    assert shared.tolist() == [9, 2, 3] and copied.tolist() == [1, 2, 3]
    assert cp.array(memoryview(b"\x01\x02")).tolist() == [1, 2]
    x = np.arange(10)[::-3]
    assert _core.share_memory(x).tolist() == x.tolist()
    with pytest.raises(TypeError):
        _core.share_memory(np.array(["a"]))


def test_array_interface():
    class Image:
        def __init__(self, data):
            self.__array_interface__ = {
                "shape": (2, 2),
                "typestr": "|u1",
                "version": 3,
                "data": data,
                "strides": None,
            }

    assert cp.array(Image(b"abcd")).tolist() == [[97, 98], [99, 100]]
    with pytest.raises(ValueError, match="shorter"):
        cp.array(Image(b"abc"))


def test_readers_of_other_byte_orders_are_refused():
    with pytest.raises(TypeError):
        cp.array(np.arange(3, dtype=">i4"))
