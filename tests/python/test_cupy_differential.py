"""Every function of the cupy face on generated arguments against NumPy: values, dtype, layout in
memory and the class of exceptions. Arguments: all dtypes, orders of memory, views, empty and 0-d
arrays, Python and NumPy scalars, out=, dtype=, casting=, axis, keepdims."""

import itertools
import subprocess
import sys
import warnings

import numpy as np
import pytest
import simt.cupy as cp

DTYPES = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"]


def values(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 9, shape) if np.dtype(dtype).kind in "u?" else rng.integers(-4, 5, shape)
    return np.asarray(x + (0.5 if np.dtype(dtype).kind == "f" else 0)).astype(dtype)


LAYOUTS = {  # a NumPy array to one of the same shape that lies otherwise; done alike on both sides
    "C": lambda x: x,
    "F": lambda x: x.T.copy().T,
    "steps": lambda x: x.repeat(2, -1)[..., ::2] if x.ndim else x,
    "back": lambda x: x[::-1] if x.ndim else x,
    "turned": lambda x: x.swapaxes(0, -1).copy().swapaxes(0, -1) if x.ndim > 1 else x,
    "wide": lambda x: x[:1],
}


def both(x, layout="C"):
    """The same array on both sides."""
    make = LAYOUTS[layout]
    return make(x.copy()), make(cp.array(x))


def outcome(function):
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return function()
    except Exception as error:
        return error


def lies(x):
    return tuple(s for n, s in zip(x.shape, x.strides, strict=True) if n > 1)


def alike(found, wanted, what, layout=True, exact=True):
    if isinstance(wanted, Exception):
        assert isinstance(found, Exception), (what, "no exception", wanted)
        kinds = (TypeError, ValueError, IndexError, OverflowError, ZeroDivisionError, KeyError)
        assert [isinstance(found, k) for k in kinds] == [isinstance(wanted, k) for k in kinds], (
            what, found, wanted)  # fmt: skip
        return
    assert not isinstance(found, Exception), (what, found)
    if isinstance(wanted, (tuple, list)):
        assert len(found) == len(wanted), what
        for f, w in zip(found, wanted, strict=True):
            alike(f, w, what, layout, exact)
        return
    wanted = np.asarray(wanted)
    assert found.shape == wanted.shape, (what, found.shape, wanted.shape)
    assert found.dtype == wanted.dtype, (what, found.dtype, wanted.dtype)
    if layout and wanted.size:
        assert lies(found) == lies(wanted), (what, found.strides, wanted.strides)
        flags = found.flags
        assert flags.c_contiguous == wanted.flags.c_contiguous, what
        assert flags.f_contiguous == wanted.flags.f_contiguous, what
    if exact and wanted.dtype.kind != "f":
        assert np.array_equal(found.get(), wanted), (what, found, wanted)
    else:
        rtol = {"e": 2e-3, "f": 1e-5, "d": 1e-12}.get(wanted.dtype.char, 0)
        assert np.allclose(found.get(), wanted, rtol, 1e-6, equal_nan=True), (what, found, wanted)


def compare(call, arguments, what, **options):
    """call(xp, *arguments) on both sides; arguments are pairs."""
    ours, numpys = [a[1] for a in arguments], [a[0] for a in arguments]
    wanted = outcome(lambda: call(np, *numpys))
    alike(outcome(lambda: call(cp, *ours)), wanted, what, **options)


UNARY = """negative positive absolute sign square exp expm1 log log2 log10 log1p sqrt sin cos tanh
floor ceil rint trunc isnan isinf isfinite signbit logical_not invert cbrt arctan sinh arcsinh
deg2rad rad2deg around reciprocal""".split()
BINARY = """add subtract multiply divide floor_divide remainder fmod maximum minimum fmax fmin equal
not_equal less less_equal greater greater_equal logical_and logical_or logical_xor bitwise_and
bitwise_or bitwise_xor hypot logaddexp arctan2 copysign""".split()


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    shape = (2, 3, 4)
    for dtype, layout in itertools.product(DTYPES, LAYOUTS):
        if name == "reciprocal" and dtype != "?" and np.dtype(dtype).kind in "iu":
            continue  # 1 / 0 of integers is 0 here, as in CuPy
        args = [both(values(shape, dtype), layout)]
        compare(lambda xp, x: getattr(xp, name)(x), args, (name, dtype, layout))
    for x in (np.zeros((0, 3), "f4"), np.array(2.5, "f4"), np.ones((1, 1, 3))):
        compare(lambda xp, x: getattr(xp, name)(x), [both(x)], (name, x.shape))


@pytest.mark.parametrize("name", BINARY)
def test_binary(name):
    call = lambda xp, x, y: getattr(xp, name)(x, y)
    for i, (first, second) in enumerate(itertools.product(DTYPES, DTYPES)):
        layouts = list(itertools.product(LAYOUTS, LAYOUTS))
        one, other = layouts[i % len(layouts)]
        a = both(values((2, 3, 4), first, 1), one)
        b = both(values((3, 4) if i % 3 else (2, 3, 4), second, 2), other)
        if {first, second} in ({"i8", "u8"}, {"i4", "u8"}, {"i2", "u8"}, {"i1", "u8"}) or (
            "divide" in name or name in ("remainder", "fmod")
        ):
            b = both(np.maximum(values((2, 3, 4), second, 2), 1).astype(second), other)
        compare(call, [a, b], (name, first, second, one, other))
    for layout in LAYOUTS:
        for scalar in (2, True, 2.5, np.float32(2), np.int8(3), np.float64(2), np.uint8(7)):
            for dtype in ("u1", "f4", "i8", "?"):
                a = both(values((2, 3, 4), dtype), layout)
                compare(call, [a, (scalar, scalar)], (name, dtype, layout, scalar))
                if name not in ("floor_divide", "remainder", "fmod"):  # by zero: integers differ
                    compare(call, [(scalar, scalar), a], (name, scalar, dtype, layout))


@pytest.mark.parametrize("name", ["add", "multiply", "divide", "less", "floor_divide", "maximum"])
def test_integers_beyond_the_type(name):
    call = lambda xp, x, y: getattr(xp, name)(x, y)
    for dtype in ("u1", "i1", "i2", "u4", "f2"):
        for number in (-1, 127, 128, 255, 256, 65536, -(2**31), 2**40):
            a = both(np.maximum(values(3, dtype), 1).astype(dtype))
            compare(call, [a, (number, number)], (name, dtype, number))
            for wide in ("f8", "i8"):
                compare(
                    lambda xp, x, y, w=wide: (
                        getattr(xp, name)(x, y, dtype=w)
                        if name != "less"
                        else getattr(xp, name)(x, y)
                    ),
                    [a, (number, number)],
                    (name, dtype, number, wide),
                )


@pytest.mark.parametrize("casting", ["no", "equiv", "safe", "same_kind", "unsafe"])
def test_out_and_casting(casting):
    for first, second in itertools.product(DTYPES, DTYPES):
        a, out = both(values((2, 3), first)), both(np.zeros((2, 3), second))
        compare(
            lambda xp, x, y: xp.add(x, x, out=y, casting=casting),
            [a, out],
            (first, second, casting),
        )
        if casting == "same_kind":
            compare(lambda xp, x, y: xp.add(x, x, y), [a, out], (first, second))
            compare(lambda xp, x, y: x.sum(0, out=y[0]), [a, out], ("sum", first, second))
            compare(lambda xp, x, y: x.max(0, out=y[0]), [a, out], ("max", first, second))
            compare(lambda xp, x, y: xp.concatenate([x], out=y), [a, out], ("join", first, second))
        compare(
            lambda xp, x: xp.concatenate([x, x], dtype=second, casting=casting),
            [a],
            ("concatenate", first, second, casting),
        )
        compare(lambda xp, x: x.astype(second, casting=casting), [a], ("astype", first, second))

        def copied(xp, x, y):
            xp.copyto(y, x, casting=casting)
            return y

        compare(copied, [a, out], ("copyto", first, second, casting))


REDUCTIONS = "sum prod max min any all argmax argmin mean var std".split()


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name):
    for dtype, layout in itertools.product(DTYPES, LAYOUTS):
        x = both(values((2, 3, 4), dtype), layout)
        axes = [None, 0, 1, -1, 3] + ([] if "arg" in name else [(0, 2), (1, 2), (0, 1, 2), (0, 0)])
        for axis, keep in itertools.product(axes, (False, True)):
            compare(
                lambda xp, x, axis=axis, keep=keep: getattr(xp, name)(x, axis=axis, keepdims=keep),
                [x],
                (name, dtype, layout, axis, keep),
                layout=not (dtype == "f2" and name in ("var", "std")),
            )
    for x in (np.zeros((0, 3)), np.zeros((3, 0)), np.array(2.5), np.zeros(0, "f4")):
        for axis in (None, 0, -1):
            compare(lambda xp, x, a=axis: getattr(xp, name)(x, a), [both(x)], (name, x.shape, axis))


ORDERS = ["C", "F", "A", "K", "c", "f", "V", "", None, 3]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_orders(layout):
    """order= of everything that takes it."""
    x = both(values((2, 3, 4), "i4"), layout)
    flat = both(np.arange(24), layout if layout in ("C", "back", "steps") else "C")
    for order in ORDERS:
        calls = {
            "copy": lambda xp, x: x.copy(order),
            "copy function": lambda xp, x: xp.copy(x, order),
            "astype": lambda xp, x: x.astype("f8", order=order),
            "astype same": lambda xp, x: x.astype("i4", order=order, copy=False),
            "ravel": lambda xp, x: x.ravel(order),
            "ravel function": lambda xp, x: xp.ravel(x, order),
            "flatten": lambda xp, x: x.flatten(order),
            "reshape": lambda xp, x: x.reshape(-1, 2, order=order),
            "array": lambda xp, x: xp.array(x, order=order),
            "array f8": lambda xp, x: xp.array(x, "f8", order=order),
            "asarray": lambda xp, x: xp.asarray(x, order=order),
            "zeros_like": lambda xp, x: xp.zeros_like(x, order=order),
            "ones_like": lambda xp, x: xp.ones_like(x, "f4", order=order),
            "full_like": lambda xp, x: xp.full_like(x, 3, order=order),
            "like, a shape": lambda xp, x: xp.zeros_like(x, order=order, shape=(5, 2, 3)),
            "like, two axes": lambda xp, x: xp.zeros_like(x, order=order, shape=(5, 2)),
            "tobytes": lambda xp, x: np.frombuffer(x.tobytes(order), "i4"),
            "get": lambda xp, x: x.copy(order) if xp is np else cp.array(x.get(order=order)),
        }
        for name, call in calls.items():
            if name == "tobytes" and order == "K":
                continue
            if name in ("tobytes", "get"):
                wanted, found = (
                    outcome(lambda c=call: c(np, x[0])),
                    outcome(lambda c=call: c(cp, x[1])),
                )
                assert isinstance(found, Exception) == isinstance(wanted, Exception), (name, order)
                if name == "tobytes" and not isinstance(wanted, Exception):
                    assert np.array_equal(found, wanted), (name, order)
                continue
            if order is None and name in ("reshape",):
                continue
            compare(call, [x], (name, order, layout))
        compare(
            lambda xp, f: f.reshape(2, 3, 4, order=order or "C"), [flat], ("flat", order, layout)
        )
        for create in ("zeros", "ones", "empty"):
            found = outcome(lambda c=create: getattr(cp, c)((2, 3), order=order))
            wanted = outcome(lambda c=create: getattr(np, c)((2, 3), order=order))
            assert isinstance(found, Exception) == isinstance(wanted, Exception), (create, order)
            if not isinstance(wanted, Exception):
                assert lies(found) == lies(wanted), (create, order)
        compare(lambda xp: xp.full((2, 3), 7, order=order), [], ("full", order))
        compare(lambda xp: xp.array([[1, 2], [3, 4]], order=order), [], ("array of a list", order))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_views_own_nothing(layout):
    x = cp.array(values((2, 3, 4), "i4"))
    x = LAYOUTS[layout](x)
    base = x if x.base is None else x.base
    views = {
        "T": x.T, "slice": x[1:], "item": x[0], "all": x[...], "new": x[None],
        "swap": x.swapaxes(0, 1), "transpose": x.transpose(1, 0, 2), "squeeze": x.squeeze(),
        "moveaxis": cp.moveaxis(x, 0, 1),
        "broadcast": cp.broadcast_to(x, (5, *x.shape)), "expand": cp.expand_dims(x, 0),
    }  # fmt: skip
    for name, view in views.items():
        assert view.base is base and not view.flags.owndata, name
    for made in (x + 1, x.copy(), x.flatten(), x.sum(0), x[[0]], cp.array(x)):
        assert made.base is None and made.flags.owndata
    for name in ("c_contiguous", "f_contiguous", "owndata"):
        with pytest.raises(AttributeError):
            setattr(x.flags, name, False)
    with pytest.raises(KeyError):
        x.flags["nothing"]


MORE = {
    "where": lambda xp, x: xp.where(x > 1, x, 0),
    "clip": lambda xp, x: xp.clip(x, 1, 3),
    "clip wide": lambda xp, x: xp.clip(x, -1000, 1000),
    "clip beyond": lambda xp, x: xp.clip(x, 2**40, 2**41),
    "clip none": lambda xp, x: xp.clip(x, None, 3),
    "round": lambda xp, x: x.round(),
    "concatenate": lambda xp, x: xp.concatenate([x, x], 1),
    "stack": lambda xp, x: xp.stack([x, x], 1),
    "vstack": lambda xp, x: xp.vstack([x, x]),
    "hstack": lambda xp, x: xp.hstack([x, x]),
    "hstack f4": lambda xp, x: xp.hstack([x, x], dtype="f4"),
    "vstack i1": lambda xp, x: xp.vstack([x, x], dtype="i1", casting="unsafe"),
    "cumsum": lambda xp, x: x.cumsum(1),
    "cumsum flat": lambda xp, x: x.cumsum(),
    "take": lambda xp, x: xp.take(x, xp.array([0, 1]), 1),
    "take floats": lambda xp, x: xp.take(x, xp.array([0.0, 1.0]), 1),
    "take wrap": lambda xp, x: xp.take(x, xp.array([-7, 9]), 1, mode="wrap"),
    "take clip": lambda xp, x: xp.take(x, xp.array([-7, 9]), 1, mode="clip"),
    "take bad mode": lambda xp, x: xp.take(x, xp.array([0]), 1, mode="some"),
    "repeat": lambda xp, x: xp.repeat(x, 2, 1),
    "repeat negative": lambda xp, x: xp.repeat(x, -1, 1),
    "roll": lambda xp, x: xp.roll(x, 1, 1),
    "roll three": lambda xp, x: xp.roll(x, (1, 1), (0, 1, 0)),
    "flip": lambda xp, x: xp.flip(x, 1),
    "transpose": lambda xp, x: xp.transpose(x, (2, 0, 1)),
    "moveaxis": lambda xp, x: xp.moveaxis(x, 0, 2),
    "== None": lambda xp, x: x == None,  # noqa: E711
    "!= text": lambda xp, x: x != "x",
    "== object": lambda xp, x: x == type("Plain", (), {})(),
    "< None": lambda xp, x: x < None,
    "scalar <": lambda xp, x: np.float64(1) < x,
    "scalar ==": lambda xp, x: np.int64(1) == x,
    "scalar +": lambda xp, x: np.float32(1) + x,
    "matmul": lambda xp, x: xp.matmul(x.swapaxes(1, 2), x),
    "matmul axes": lambda xp, x: xp.matmul(x, x, axes=[(2, 1), (1, 2), (0, 1)]),
    "matmul wrong axes": lambda xp, x: xp.matmul(x, x, axes=[(2, 1)]),
    "matmul unknown": lambda xp, x: xp.matmul(x, x, foo=3),
    "add unknown": lambda xp, x: xp.add(x, x, foo=3),
    "linalg.trace": lambda xp, x: xp.linalg.trace(x),
    "average of nothing": lambda xp, x: xp.average(x, 1, weights=xp.zeros(3)),
    "sort kind": lambda xp, x: xp.sort(x, kind="best"),
    "isclose": lambda xp, x: xp.isclose(x, 1),
    "tile": lambda xp, x: xp.tile(x, 2),
}


@pytest.mark.parametrize("name", MORE)
def test_more(name):
    for dtype, layout in itertools.product(("?", "u1", "i4", "f4", "f8"), LAYOUTS):
        if name == "isclose" and dtype == "?":
            continue
        layout_kept = name not in ("repeat", "tile", "roll") or layout == "C"
        if "matmul" in name:
            layout_kept = False
        x = both(values((2, 3, 4), dtype), layout)
        compare(MORE[name], [x], (name, dtype, layout), layout=layout_kept)


def test_unravel_index():
    for indices in ([7], [5], [-1], [1.5], [[0, 1], [2, 3]], [True]):
        for order in ("C", "F", "V"):
            compare(
                lambda xp, i, o=order: xp.unravel_index(i, (2, 3), order=o),
                [both(np.array(indices))],
                (indices, order),
                layout=False,
            )


def test_copyto_where_and_scalars():
    def run(xp, dtype, value, where=None):
        d = xp.zeros(3, dtype)
        xp.copyto(d, value, where=True if where is None and xp is np else where)
        return d

    for dtype in ("?", "u1", "i4", "f4"):
        for value in (True, 3, 3.2):
            compare(lambda xp, d=dtype, v=value: run(xp, d, v), [], (dtype, value))
    mask = both(np.array([True, False, True]))
    compare(lambda xp, m: run(xp, "f8", xp.ones(3), m), [mask], "where")
    compare(lambda xp, m: run(xp, "f8", xp.ones(3), m), [both(np.array([1, 0, 1]))], "where int")


def test_types_of_arrays():
    for dtype in DTYPES:
        a, b = both(values(3, dtype))
        assert cp.result_type(b, cp.float32) == np.result_type(a, np.float32)
        assert cp.result_type(b, 1.0) == np.result_type(a, 1.0)
        assert cp.can_cast(b, "i4") == np.can_cast(a.dtype, "i4")
        assert bytes(b) == a.tobytes()


def test_linked_names():
    assert cp.cuda.Stream.null == cp.cuda.Stream(null=True)
    made = cp.cuda.Stream()
    assert made != cp.cuda.Stream.null and made == made
    with made:
        assert cp.cuda.get_current_stream() == made
    assert cp.cuda.get_current_stream() == cp.cuda.Stream.null
    assert cp.cuda.Device(0).attributes["MaxThreadsPerBlock"] == 1024
    from simt.cupy.cuda.device import Device

    assert Device is cp.cuda.Device


def test_array_api_compat():
    pytest.importorskip("array_api_compat")
    program = (
        "from array_api_compat import array_namespace\n"
        "import cupy as cp\n"
        "xp = array_namespace(cp.ones(2))\n"
        "print(xp.__name__, xp.asarray([1, 2]).dtype, float(xp.sum(xp.ones((2, 3)))))\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "simt", "run", "-q", "-c", program], capture_output=True, text=True
    )
    assert done.stdout.split() == ["array_api_compat.cupy", "int64", "6.0"], done.stderr


def test_random_dtypes():
    low = cp.zeros(3)
    for dtype in ("f4", "f8"):
        assert cp.random.normal(low, 1.0, dtype=dtype).dtype == dtype
        assert cp.random.uniform(low, 1.0, dtype=dtype).dtype == dtype
        assert cp.random.exponential(1.0, 3, dtype=dtype).dtype == dtype
    assert cp.random.exponential(cp.ones(4)).shape == (4,)
    for call in (
        lambda: cp.random.exponential(-1.0, 3),
        lambda: cp.random.normal(low, low - 1),
        lambda: cp.random.normal(0.0, -1.0, 3),
    ):
        with pytest.raises(ValueError):
            call()
    with pytest.raises(TypeError):
        cp.random.normal(low, 1.0, dtype="i4")


def test_later_views_see_the_layout():
    b = cp.arange(6.0).reshape(2, 3).T * 2
    f = b.reshape(-1)
    f += 100
    assert b[0, 0] == 0
    b = cp.arange(6.0).reshape(2, 3).T * 2
    f = b.T.reshape(-1)
    f += 100
    assert b[0, 0] == 100
