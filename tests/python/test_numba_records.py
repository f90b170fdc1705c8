"""Arrays of structured types in kernels, against NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba_source import load
from simt.numba import cuda, from_dtype, types
from simt.numba.core.errors import TypingError

PARTICLE = np.dtype(
    [("x", "f8"), ("v", "f8", (3,)), ("id", "i4"), ("z", "c8"), ("on", "?")], align=True
)
PACKED = np.dtype([("tag", "i1"), ("x", "f8"), ("half", "f2"), ("n", "u4")])
INNER = np.dtype([("lo", "i2"), ("hi", "f4")])
NESTED = np.dtype([("key", "i8"), ("pair", INNER), ("pairs", INNER, (2,))])
PAIR = from_dtype(INNER)
TABLE = np.array([(1, 2.5), (3, 4.5)], INNER)


def filled(dtype, shape, seed=0):
    rng = np.random.default_rng(seed)
    a = np.zeros(shape, dtype)
    for name in dtype.names:
        if dtype[name].names is None and dtype[name].base.names is None:
            a[name] = (rng.random(a[name].shape) * 100).astype(dtype[name].base)
    return a


@cuda.jit(device=True)
def energy(p):
    return 0.5 * (p.v[0] ** 2 + p.v[1] ** 2 + p.v[2] ** 2)


@cuda.jit
def move(p, dt, out):
    i = cuda.grid(1)
    if i < p.size:
        r = p[i]
        for k in range(r.v.shape[0]):
            r.x += r.v[k] * dt
            p[i].v[k] = -r["v"][k]
        p[i].id = i * 2
        r["z"] = r.z * 1j
        r.on = not p["on"][i]
        out[i] = energy(p[i]) + p.x[-1 - i] * 0


@pytest.mark.parametrize("step", [1, 2, -1])
@pytest.mark.parametrize("device", [False, True])
def test_fields(step, device):
    a = filled(PARTICLE, 40)
    want = a.copy()
    part = want[::step]
    part["x"] += (part["v"] * 0.5).sum(1)
    part["v"] = -part["v"]
    part["id"] = np.arange(len(part)) * 2
    part["z"] *= np.complex64(1j)
    part["on"] = ~part["on"]
    out = np.zeros(len(part))
    if device:
        d = cuda.to_device(a)
        move[2, 32](d[::step], 0.5, out)
        assert d.dtype == PARTICLE and d[3]["id"] == want[3]["id"]
        a = d.copy_to_host()
    else:
        move[2, 32](a[::step], 0.5, out)
    for name in PARTICLE.names:
        np.testing.assert_allclose(a[name], want[name], rtol=1e-12)
    np.testing.assert_allclose(out, (part["v"] ** 2).sum(1) / 2)


@cuda.jit
def packed(a, b):
    i, j = cuda.grid(2)
    if i < a.shape[0] and j < a.shape[1]:
        b[j, i] = a[i, j]
        b[j, i].x = a[i, j].x * a[i, j].tag
        b.n[j, i] = a.n[i, j] + a.itemsize


def test_packed_fields_and_whole_records():
    a = filled(PACKED, (7, 9))
    b = np.zeros((9, 7), PACKED)
    packed[(1, 2), (8, 8)](a, b)
    want = a.T.copy()
    want["x"] *= want["tag"]
    want["n"] += PACKED.itemsize
    assert (b == want).all()


@cuda.jit
def nested(a, first):
    i = cuda.grid(1)
    if i < a.size:
        a[i].pair.lo = i
        a[i].pair.hi += 0.5
        a.pairs.hi[i, 1] = a[i].pair.hi + cuda.const.array_like(TABLE)[i % 2].hi
        a[i]["pairs"][0] = a[i].pair
        a[i].pairs[1].lo = first.pair.lo + TABLE[1].lo
        a[i].key = len(a[i].pairs)


def test_nested_records():
    a = np.zeros(5, NESTED)
    first = np.zeros((), NESTED)
    first["pair"]["lo"] = 40
    nested[1, 8](a, first)
    assert a["pair"]["lo"].tolist() == [0, 1, 2, 3, 4]
    assert (a["pair"]["hi"] == 0.5).all()
    assert (a["pairs"][:, 0] == a["pair"]).all()
    assert a["pairs"]["hi"][:, 1].tolist() == [3, 5, 3, 5, 3]
    assert (a["pairs"]["lo"][:, 1] == 43).all()
    assert (a["key"] == 2).all()


SCALARS = st.sampled_from(["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"])
SHAPES = st.lists(st.integers(1, 3), max_size=2).map(tuple)


@st.composite
def dtypes(draw, depth=1):
    fields = []
    for k in range(draw(st.integers(1, 4))):
        nested = depth > 0 and draw(st.booleans())
        fields.append((f"f{k}", draw(dtypes(depth - 1) if nested else SCALARS), draw(SHAPES)))
    return np.dtype(fields, align=draw(st.booleans()))


@cuda.jit
def backwards(a, b):
    i = cuda.grid(1)
    if i < a.size:
        b[i] = a[-1 - i]


@settings(max_examples=40, deadline=None)
@given(dtypes(), st.integers(0, 2**32))
def test_records_of_any_fields_are_copied(dtype, seed):
    size = dtype.itemsize * 9
    a = np.random.default_rng(seed).integers(0, 2, size, np.uint8).view(dtype)
    for make in (np.array, cuda.to_device):
        b = make(np.zeros(9, dtype))
        backwards[1, 16](a, b)
        got = b if make is np.array else b.copy_to_host()
        assert (got == a[::-1]).all()


@cuda.jit
def by_shared(a, count):
    tile = cuda.shared.array(32, INNER)
    mine = cuda.local.array(2, PAIR)
    i = cuda.threadIdx.x
    mine[0].lo, mine[1].lo = 7, i
    tile[i] = (i, 2.0 * i)
    cuda.syncthreads()
    best = tile[0] if i % 2 else tile[31 - i]
    for r in tile:
        if r.lo == 30 - i:
            best = r
    cuda.atomic.add(count.lo, 0, mine[0].lo)
    a[i] = best
    a[i].lo += mine[1].lo


def test_records_in_shared_and_local_memory():
    a, count = np.zeros(32, INNER), np.zeros(1, np.dtype([("lo", "i4")]))
    by_shared[1, 32](a, count)
    assert (a["lo"] == [30] * 31 + [31]).all()
    assert (a["hi"] == [2.0 * (30 - i) for i in range(31)] + [0]).all()
    assert count["lo"] == 224


def test_bounds_are_checked():
    @cuda.jit
    def beyond(a):
        r = a[cuda.threadIdx.x]
        r.x = 1.0

    a = np.zeros(4, PACKED)
    with pytest.raises(IndexError, match=r"index 4 .*'?a'?.*size 4|shape \(4,\)"):
        beyond[1, 5](a)
    assert (a["x"] == 1).all()
    a.flags.writeable = False
    with pytest.raises(TypingError, match="read-only"):
        beyond[1, 4](a)


def unknown_field(a):
    a[0].y = 1


def unknown_column(a):
    a.x[0] = a["y"][0]


def slices(a):
    a[1:] = a.x[:-1]


def other_record(a):
    a[0] = (1, 2)


def atomic(a):
    cuda.atomic.add(a, 0, 1)


def arithmetic(a):
    a[0].x = a[0] + 1


@cuda.jit
def parts(a, b):
    b[:, 1] = a[2]
    b[0, 2:] = b[0, :2]
    b[1:, 2:] = a[3, 0]


def test_slices_of_records():
    a, b = filled(PACKED, (4, 3)), np.zeros((3, 4), PACKED)
    parts[1, 1](a, b)
    want = np.zeros((3, 4), PACKED)
    want[:, 1] = a[2]
    want[0, 2:] = want[0, :2]
    want[1:, 2:] = a[3, 0]
    assert (b == want).all()


@pytest.mark.parametrize(
    "kernel, text",
    [
        (unknown_field, "no field 'y'"),
        (unknown_column, "no field 'y'"),
        (slices, r"record\(tag, x, half, n\) expected, not float64"),
        (other_record, r"record\(tag, x, half, n\) expected, not tuple"),
        (atomic, "works on a field of records: give its array"),
        (arithmetic, r"no operator \+ for record"),
    ],
)
def test_errors(kernel, text):
    with pytest.raises(TypingError, match=text):
        cuda.jit(kernel)[1, 1](np.zeros(4, PACKED))


def test_fields_that_kernels_have_not():
    for field in (">U4", "datetime64[s]", ">f8", "O"):
        a = np.zeros(2, np.dtype([("x", "f8"), ("y", field)]))
        with pytest.raises(
            TypeError,
            match="field 'y'.*of numbers, bools, strings and records|records of them|dtype >U4",
        ):
            cuda.jit(unknown_field)[1, 1](a)


def deeper(depth):
    return np.dtype([("n", deeper(depth - 1) if depth else "f4")])


@pytest.mark.parametrize(
    "dtype, text",
    [
        ([(f"field{k}", "f8") for k in range(300)], "bytes for their types"),
        ([("a", "f4", (1,) * 9)], "field 'a' has 9 dimensions: kernels have at most 8"),
        ([("y", "f4", (1,) * 8)], "an array of 1 dimensions with a field 'y' of 8: at most 8"),
        (deeper(20), "nested more than 15 deep"),
        ([], r"record\(\), 1d, C\) has no field 'y'"),
    ],
)
def test_records_that_are_too_much(dtype, text):
    with pytest.raises(TypeError, match=text):
        cuda.jit(unknown_column)[1, 1](np.zeros(2, dtype))


def test_types():
    record = from_dtype(NESTED)
    assert isinstance(record, types.Record) and record.dtype == NESTED
    signature = (record[::1], types.float64)

    @cuda.jit(signature)
    def kernel(a, x):
        a[0].key = int(x)

    a = np.zeros(2, NESTED)
    kernel[1, 1](a, 5)
    assert a["key"].tolist() == [5, 0]
    assert kernel.signatures == [signature]
    assert str(kernel.signatures[0][0]).startswith("array(Record(key: int64, pair: ")
    with pytest.raises(TypeError, match="No matching definition"):
        kernel[1, 1](np.zeros(2, INNER), 5)
    with pytest.raises(TypeError, match="No matching definition"):
        kernel[1, 1](np.zeros(2), 5)


def test_device_arrays_of_records():
    a = filled(PARTICLE, (4, 6))
    d = cuda.to_device(a)
    assert d.shape == (4, 6) and d.nbytes == a.nbytes
    assert (d.T.copy_to_host() == a.T).all()
    assert (d.reshape(24)[5:9].copy_to_host() == a.reshape(24)[5:9]).all()
    empty = cuda.device_array_like(d)
    empty.copy_to_device(d)
    assert (empty.copy_to_host() == a).all()
    assert (cuda.device_array(3, PACKED).dtype) == PACKED
    d[1] = a[0]
    assert (d.copy_to_host()[1] == a[0]).all()
    pairs = cuda.to_device(np.zeros(4, INNER))
    pairs[1] = (2, 3.5)
    pairs[2:] = [(4, 5), (6, 7)]
    assert pairs.copy_to_host().tolist() == [(0, 0), (2, 3.5), (4, 5), (6, 7)]
    assert (d.view(np.uint8).shape) == (4, 6 * PARTICLE.itemsize)
    assert d.__cuda_array_interface__["typestr"] == f"|V{PARTICLE.itemsize}"
    with pytest.raises(TypeError, match="incompatible dtype"):
        d.copy_to_device(np.zeros((4, 6)))
    from simt import cupy

    with pytest.raises(TypeError, match="records are not in simt.cupy"):
        cupy.from_dlpack(d)


def test_packed_and_aligned_records_are_two_types():
    """Of the same fields at the same places; an assignment between them is one of the fields."""
    fields = [("x", np.float16), ("y", np.float16)]
    packed, aligned = np.dtype(fields), np.dtype(fields, align=True)

    @cuda.jit
    def kernel(a, b):
        i = cuda.grid(1)
        b[i] = a[i]
        b[i].y += 1

    a, b = np.zeros(2, packed), np.zeros(2, aligned)
    a["x"], a["y"] = (1, 2), (3, 4)
    kernel[1, 2](a, b)
    assert b.tolist() == [(1, 4), (2, 5)]
    kernel[1, 2](b, a)
    assert a.tolist() == [(1, 5), (2, 6)]
    (first, second), (third, fourth) = kernel.signatures
    assert first == fourth and second == third and first != second
    assert str(second) == "array(Record(x: float16, y: float16; aligned), 1d, C)"
    assert not first.dtype.dtype.isalignedstruct and second.dtype.dtype.isalignedstruct
    assert from_dtype(packed) != from_dtype(aligned)
    nested = [np.dtype([("p", t)]) for t in (packed, aligned)]
    assert from_dtype(nested[0]) != from_dtype(nested[1])


@pytest.mark.parametrize("dtype", [INNER, PACKED, PARTICLE, NESTED], ids=str)
@pytest.mark.parametrize("kind", [np.ndarray, np.recarray])
def test_records_as_arguments(dtype, kind):
    """An element of an array is used where it lies; fields by name and by constant number."""
    a = filled(dtype, 3).view(kind)
    name, first = dtype.names[-1], dtype.names[0]
    source = "@cuda.jit\ndef kernel(r, out):\n"
    source += f"    out[0] = r['{first}']\n    out[1] = r[0]\n"
    source += f"    r[0] = 2 * r['{first}']\n    r[-{len(dtype.names)}] += 1\n"
    kernel = load(source, cuda=cuda)["kernel"]
    before, out = a.copy(), np.zeros(2)
    kernel[1, 1](a[1], out)
    assert (out == before[1][first]).all()
    assert a[1][first] == 2 * before[1][first] + 1 and a[0] == before[0] and a[2] == before[2]
    assert (a[1][name] == before[1][name]).all()
    a.flags.writeable = False
    with pytest.raises(TypingError, match="read-only|readonly"):
        kernel[1, 1](a[1], out)


def test_numbers_of_fields_out_of_range():
    for index, text in [("2", "field 2 of a record of 2"), ("n", "numbered by a constant")]:
        source = f"@cuda.jit\ndef kernel(r, n, out):\n    out[0] = r[{index}]\n"
        with pytest.raises(TypingError, match=text):
            load(source, cuda=cuda)["kernel"][1, 1](TABLE[0], 1, np.zeros(1))


def test_a_record_that_another_argument_shares():
    """Both are copied, and a record's buffer says that it is read-only."""

    @cuda.jit
    def kernel(record, array, out):
        record.x += 5
        out[0] = array[1].x

    a, out = np.zeros(3, [("x", "i4"), ("y", "f8")]), np.zeros(1)
    kernel[1, 1](a[1], a, out)
    assert a["x"].tolist() == [0, 5, 0] and out[0] == 0
