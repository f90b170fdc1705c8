"""Device arrays of the numba face: copies, views, assignment, memory shared with other faces."""

import numpy as np
import pytest
import simt.cupy as cp
import simt.torch as torch
from simt import numba
from simt.numba import cuda
from simt.numba.core.errors import TypingError

DTYPES = "?bhilBHILefdFD"


@pytest.mark.parametrize("code", DTYPES)
def test_copy_there_and_back(code):
    host = np.arange(24).astype(code).reshape(2, 3, 4)
    for a in (host, np.asfortranarray(host), host[:, ::2], host.transpose(1, 0, 2)):
        if a.flags.c_contiguous or a.flags.f_contiguous:
            d = cuda.to_device(a)
        else:
            d = cuda.device_array_like(a)
            d.copy_to_device(a)
        back = d.copy_to_host()
        assert (d.shape, d.dtype, d.ndim, d.size) == (a.shape, a.dtype, a.ndim, a.size)
        assert back.dtype == a.dtype and np.array_equal(back, a)
    assert cuda.to_device(np.asfortranarray(host)).is_f_contiguous()
    assert cuda.device_array_like(np.asfortranarray(host)).strides == host.copy("F").strides


def test_arrays_like_views_keep_the_order_of_axes():
    a = np.arange(120, dtype=np.float32).reshape(4, 5, 6)
    views = [a, a.T, a[::2], a.transpose(1, 0, 2), a.transpose(1, 2, 0)[:, ::2], a[:, :, ::3].T]
    for v in [*views, np.asfortranarray(a)[:, 1:], a[0, 1], a[:, 0, ::2]]:
        for made in (cuda.device_array_like(v), cuda.pinned_array_like(v)):
            assert (made.shape, made.dtype) == (v.shape, v.dtype)
            assert made.strides == np.empty_like(v).strides
        assert cuda.mapped_array_like(v).strides == np.empty_like(v).strides
    d = cuda.device_array((3, 4), np.float64)
    assert cuda.device_array_like(d[:, ::2]).strides == (16, 8)
    t = cuda.device_array((3, 4), np.float64, order="F")
    assert cuda.device_array_like(t[1:]).strides == (8, 16)


def test_what_lies_apart_is_not_sent():
    """As Numba's: to_device takes dense arrays and repeats of them."""
    host = np.arange(24.0).reshape(4, 6)
    for a in (host[:, ::2], host.reshape(2, 3, 4).transpose(1, 0, 2)):
        with pytest.raises(ValueError, match="non-contiguous buffer"):
            cuda.to_device(a)
    for a in (
        np.broadcast_to(host, (3, 4, 6)),
        np.broadcast_to(host[0][:, None], (6, 5)),
        host[4:, ::2],
    ):
        assert np.array_equal(cuda.to_device(a).copy_to_host(), a)
    c, f = cuda.to_device(host), cuda.to_device(np.asfortranarray(host))
    with pytest.raises(ValueError, match=r"incompatible strides: \(48, 8\) vs. \(8, 32\)"):
        c.copy_to_device(f)
    c.copy_to_device(f.copy_to_host())
    c.copy_to_device(cuda.to_device(host + 1))
    assert np.array_equal(c.copy_to_host(), host + 1)
    row = cuda.device_array((1, 6))
    row.copy_to_device(c[2:3])
    assert np.array_equal(row.copy_to_host(), host[2:3] + 1)


def test_device_arrays_by_their_class():
    array = cuda.cudadrv.devicearray.DeviceNDArray
    d = array((2, 3), (12, 4), np.float32)
    d[:] = 5
    assert (d.shape, d.strides, d.dtype) == ((2, 3), (12, 4), np.float32)
    assert d.copy_to_host().tolist() == [[5] * 3] * 2 and isinstance(d, array)
    assert d.flags == {"C_CONTIGUOUS": True, "F_CONTIGUOUS": False}
    assert array((2, 3), (4, 8), np.float32).flags["F_CONTIGUOUS"]
    assert array(4, 8, np.float64).shape == (4,)
    for arguments in [((2,), (4, 4), np.float32), ((2,), (-4,), np.float32)]:
        with pytest.raises(ValueError, match="strides"):
            array(*arguments)
    with pytest.raises(NotImplementedError, match="from_cuda_array_interface"):
        array((2,), (4,), np.float32, gpu_data=d)
    with pytest.raises(TypeError):
        array((2,))


def test_streams_of_device_arrays():
    stream = cuda.stream()
    made = [cuda.device_array(3, stream=stream), cuda.to_device(np.ones(3), stream)]
    made += [cuda.device_array_like(made[0], stream), made[0][1:], made[1].reshape(3, 1)]
    for d in made:
        assert d.stream is stream and d.__cuda_array_interface__["stream"] == int(stream)
    plain = cuda.device_array(3, stream=cuda.default_stream())
    assert plain.stream == 0 and plain.__cuda_array_interface__["stream"] is None
    plain.stream = stream
    assert plain.stream is stream
    plain.stream = 0
    assert plain.stream == 0


def test_strides_of_new_arrays():
    d = cuda.device_array((3, 4), np.int32, strides=(64, 8))
    host = np.arange(12, dtype=np.int32).reshape(3, 4)
    d[:] = host
    assert d.strides == (64, 8) and (d.copy_to_host() == host).all()
    assert cuda.device_array((2, 0), np.int32, strides=(2**62, 2**62)).size == 0
    for strides, error in [((8,), "strides not match ndim"), ((-16, 4), "at least 0")]:
        with pytest.raises(ValueError, match=error):
            cuda.device_array((3, 4), np.int32, strides=strides)
    with pytest.raises(ValueError, match="too big"):
        cuda.device_array((3, 4), np.int32, strides=(2**62, 4))


@pytest.mark.parametrize(
    "key",
    [
        *(0, -1, slice(1, 3), slice(None, None, -2), ..., (..., 1), (1, slice(None)), (2, 3)),
        *((slice(None), slice(4, 0, -1)), (slice(5, 1), 0), (np.int64(1), -2), ()),
    ],
)
def test_indexing_and_assignment(key):
    host = np.arange(20, dtype=np.float32).reshape(4, 5)
    d = cuda.to_device(host)
    part = d[key]
    if isinstance(part, np.generic):
        assert part == host[key] and type(part) is np.float32
    else:
        assert np.array_equal(part.copy_to_host(), host[key])
        assert part.strides == host[key].strides or part.size < 2
    d[key] = 7
    host[key] = 7
    assert np.array_equal(d.copy_to_host(), host)


def test_assignment_broadcasts_and_casts():
    host = np.zeros((3, 4), np.int32)
    d = cuda.to_device(host)
    for key, value in [
        (slice(None), [1.9, -2.9, 3, 4]),
        ((slice(0, 2), 1), np.array([True, False])),
        (2, cuda.to_device(np.array([5.5]))),
        ((slice(1, 2), slice(2, None)), cp.array([8, 9])),
    ]:
        d[key] = value
        host[key] = (
            value.copy_to_host()
            if hasattr(value, "copy_to_host")
            else (value.get() if isinstance(value, cp.ndarray) else value)
        )
    assert np.array_equal(d.copy_to_host(), host)
    for value, words in [
        (np.zeros((2, 3, 4)), "Can't assign 3-D array to 2-D self"),
        ([1, 2], "Can't copy sequence with size 2 to array axis 1 with dimension 4"),
    ]:
        with pytest.raises(ValueError, match=words):
            d[:] = value
    d = cuda.to_device(np.zeros(2))
    d[:] = (3, 4)
    assert d.copy_to_host().tolist() == [3, 4]
    d[:1] = [5]
    assert d.copy_to_host().tolist() == [5, 4]


def test_views_share_memory():
    host = np.arange(12, dtype=np.int64).reshape(3, 4)
    d = cuda.to_device(host)
    assert np.array_equal(d.reshape(2, -1).copy_to_host(), host.reshape(2, 6))
    assert np.array_equal(d.ravel().copy_to_host(), host.ravel())
    assert np.array_equal(d.view(np.int16).copy_to_host(), host.view(np.int16))
    assert np.array_equal(d.T.copy_to_host(), host.T)
    assert d.reshape(1, 12, 1).squeeze().shape == (12,)
    assert [p.copy_to_host().tolist() for p in d.ravel().split(5)] == [
        *([0, 1, 2, 3, 4], [5, 6, 7, 8, 9], [10, 11])
    ]
    d.ravel()[5] = 50
    assert d[1, 1] == 50 and len(d) == 3 and [r[0] for r in d] == [0, 4, 8]
    with pytest.raises(NotImplementedError, match="would require copy"):
        d[:, 1:].reshape(9)
    with pytest.raises(ValueError, match="total size"):
        d.reshape(5)


def test_copies_into_what_is_there():
    d = cuda.device_array((2, 3), np.float32)
    d.copy_to_device(np.ones((2, 3), np.float32))
    out = np.zeros((2, 6), np.float32)[:, ::2]
    assert d.copy_to_host(out) is out and out.sum() == 6
    assert cuda.to_device(out, to=d) is d
    with pytest.raises(TypeError, match="incompatible dtype: float32 vs. float64"):
        d.copy_to_host(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="incompatible shape"):
        d.copy_to_device(np.zeros((3, 2), np.float32))
    assert np.asarray(d).sum() == 6 and np.array(d, dtype=int).dtype == int


def test_one_memory_for_all_faces():
    d = cuda.to_device(np.arange(6, dtype=np.float32).reshape(2, 3))
    c, t = cp.asarray(d), torch.as_tensor(d)
    d[0, 0] = 10
    c[0, 1] = 20
    t[1].mul_(2)
    wanted = [[10, 20, 2], [6, 8, 10]]
    for a in (d.copy_to_host(), c.get(), t.numpy(), np.from_dlpack(d)):
        assert a.tolist() == wanted
    for a in (cp.arange(5) * 2, torch.arange(5) * 2):
        e = cuda.as_cuda_array(a)
        e[1] = 7
        assert a.tolist() == [0, 7, 4, 6, 8]
    assert cp.asarray(d[:, ::2]).get().tolist() == [[10, 2], [6, 10]]
    assert not cp.array(d).data == d  # a copy
    with pytest.raises(TypeError, match="complex64"):
        cp.asarray(cuda.device_array(3, np.complex64))


class Exporter:
    def __init__(self, a):
        self.a = a
        self.__cuda_array_interface__ = {
            **{k: a.__array_interface__[k] for k in ("shape", "strides", "typestr", "data")},
            "version": 3,
        }


@pytest.mark.host_memory("describes memory of the host as the device's")
def test_cuda_array_interface():
    host = np.arange(10.0)[::-2]
    d = cuda.as_cuda_array(Exporter(host))
    assert np.array_equal(d.copy_to_host(), host)
    d[0] = -1
    assert host[0] == -1 and d.__cuda_array_interface__["strides"] == (-16,)
    again = cuda.from_cuda_array_interface(d.__cuda_array_interface__, owner=d)
    assert np.array_equal(again.copy_to_host(), host)
    with pytest.raises(TypeError, match="doesn't implement the cuda array interface"):
        cuda.as_cuda_array(host)
    bad = Exporter(host)
    for change, words in [({"data": (0, False)}, "address is 0"), ({"shape": (-1,)}, "negative")]:
        bad.__cuda_array_interface__ = {**d.__cuda_array_interface__, **change}
        with pytest.raises(ValueError, match=words):
            cuda.as_cuda_array(bad)
    bad.__cuda_array_interface__ = {"shape": (3,)}
    with pytest.raises(ValueError, match="no shape or typestr"):
        cuda.as_cuda_array(bad)


@pytest.mark.host_memory("mapped memory of the host as a device array")
def test_arrays_of_the_host_that_the_device_sees():
    for make in (cuda.pinned_array, cuda.mapped_array, cuda.managed_array):
        a = make((2, 3), dtype=np.float32)
        assert isinstance(a, np.ndarray) and a.shape == (2, 3) and a.dtype == np.float32
    m = cuda.mapped_array(4, np.int32)
    m[:] = 1
    cuda.as_cuda_array(m)[2] = 5
    assert m.tolist() == [1, 1, 5, 1]
    host = np.zeros(3)
    with cuda.mapped(host) as d, cuda.pinned(host):
        d[1] = 4
    assert host[1] == 4


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([["a"], [None]], "object"),
        (np.array([None]), "object"),
        (np.zeros(2, "datetime64[s]"), "datetime64"),
        (np.zeros(2, ">f4"), ">f4"),
        (np.zeros((1,) * 9), "float64"),
    ],
)
def test_what_cannot_be_copied(value, words):
    with pytest.raises(TypeError, match=words):
        cuda.to_device(value)


def test_types_and_signatures():
    f4, i8 = numba.float32, numba.int64
    assert str(f4[:, ::1]) == "array(float32, 2d, C)" and str(f4[:]) == "array(float32, 1d, A)"
    assert str(f4[::1, :]) == "array(float32, 2d, F)" and f4[::1].layout == "C"
    assert str(numba.void(f4[:], i8)) == "(array(float32, 1d, A), int64) -> none"
    normalize = numba.types.normalize_signature
    assert normalize("void(float32[:], int64)") == ((f4[:], i8), numba.void)
    assert normalize("(f8, boolean)") == ((numba.float64, numba.boolean), None)
    with pytest.raises(TypeError, match="invalid signature"):
        normalize("void(nothing)")
    with pytest.raises(KeyError):
        f4[1:2]
    for value, name in [
        *((1, "int64"), (2**63, "uint64"), (1.5, "float64"), (True, "bool"), (1j, "complex128")),
        *((np.float32(1), "float32"), (None, "none"), ((1, 2), "UniTuple(int64 x 2)")),
        (np.zeros((2, 3)).T, "array(float64, 2d, F)"),
        ((1, np.zeros(4, "c8")[::2]), "Tuple(int64, array(complex64, 1d, A))"),
    ]:
        t = numba.typeof(value)
        assert str(t) == name
        assert numba.types.from_bytes(numba.types.to_bytes((t,))) == (t,)
    for code in DTYPES:
        t = numba.from_dtype(np.dtype(code))
        assert numba.np.numpy_support.as_dtype(t) == np.dtype(code)
        assert cuda.device_array(1, t).dtype == np.dtype(code)


def test_device_streams_and_events(capsys):
    assert cuda.is_available() and cuda.detect() and "[SUPPORTED]" in capsys.readouterr().out
    device = cuda.get_current_device()
    assert device.name.startswith(b"simt ") and device.MULTIPROCESSOR_COUNT >= 1
    assert (device.WARP_SIZE, device.MAX_THREADS_PER_BLOCK) == (32, 1024)
    assert len(cuda.gpus) == 1 and cuda.select_device(0) is cuda.current_context()
    with pytest.raises(cuda.cudadrv.driver.CudaAPIError, match="INVALID_DEVICE"):
        cuda.select_device(3)
    free, total = cuda.current_context().get_memory_info()
    assert 0 < free <= total
    stream, called = cuda.stream(), []
    start, end = cuda.event(), cuda.event()
    with stream.auto_synchronize(), cuda.defer_cleanup():
        start.record(stream)
        d = cuda.to_device(np.ones(4), stream=stream)
        end.record(stream)
    stream.add_callback(lambda s, status, arg: called.append((s, status, arg)), 5)
    assert called == [(stream, 0, 5)] and d.copy_to_host(stream=stream).sum() == 4
    assert end.query() and 0 <= cuda.event_elapsed_time(start, end) < 1e4
    with pytest.raises(cuda.cudadrv.driver.CudaAPIError):
        cuda.event_elapsed_time(start, cuda.event())
    cuda.synchronize()


@pytest.mark.parametrize("alignment", [None, 8, 16, 64, 256, 4096])
@pytest.mark.parametrize("shape", [3, (2, 5)])
def test_alignment_of_arrays(alignment, shape):
    n = int(np.prod(shape))

    @cuda.jit
    def k(out, at):
        i = cuda.grid(1)
        other = cuda.shared.array(5, np.uint8)
        shared = cuda.shared.array(shape, np.float32, alignment=alignment)
        own = cuda.local.array(shape, np.float64, alignment)
        other[i % 5] = 1
        for j in range(n):
            own.reshape(n)[j] = 100 * i + j
        if i == 0:
            for j in range(n):
                shared.reshape(n)[j] = j
        cuda.syncthreads()
        at[i, 0], at[i, 1] = shared.ctypes.data, own.ctypes.data
        out[i] = own.sum() + shared.sum() + other[i % 5]

    out, at = np.zeros(40), np.zeros((40, 2), np.int64)
    k[1, 40](out, at)
    total = n * (n - 1) / 2
    assert (out == 100 * n * np.arange(40) + 2 * total + 1).all()
    assert (at % (alignment or 1) == 0).all()
    assert len(set(at[:, 0])) == 1 and len(set(at[:, 1])) == 40


@pytest.mark.parametrize("alignment", [3, 4, -8, 2**17, 1.5])
def test_alignments_that_cannot_be(alignment):
    @cuda.jit
    def k():
        cuda.shared.array(3, np.float32, alignment)

    with pytest.raises(TypingError, match="alignment must be a constant power of 2"):
        k[1, 1]()
