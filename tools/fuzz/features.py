"""What kernels and arrays can do beyond plain loops, at random, against NumPy and plain Python.

Functions given to kernels and closures, methods of arrays inside kernels, records, rounding by
direction, methods of what vectorize makes (with and without signatures), orders of arrays in
memory.
All numbers are small integers or exact fractions: no order of operations changes a bit.
"""

import random
from fractions import Fraction

import numpy as np
import simt.cupy as cp
from common import Part, use_tests
from simt.numba import cuda, vectorize
from simt.numba.cuda import libdevice

use_tests("python")

from numba_source import load  # noqa: E402

# ---- functions of functions ----


def expression(r, names, depth):
    if depth == 0 or r.random() < 0.15:
        return r.choice([*names, *names, str(r.randint(-5, 5))])
    x, y = (expression(r, names, depth - 1) for _ in range(2))
    return r.choice(
        [
            f"({x} + {y})",
            f"({x} - {y})",
            f"({x} * {y}) % 97",
            f"min({x}, {y})",
            f"max({x}, {y})",
            f"({x} if {y} > {r.randint(-4, 4)} else {y})",
            f"abs({x})",
            f"(({x}) // {r.randint(1, 5)})",
            f"({x} & 15)",
        ]
    )


def functions_text(r):
    """Functions that call and take each other, and close over numbers, tuples and functions."""
    lines, known = [], []
    for k in range(r.randint(1, 3)):
        body = expression(r, ["x", "y"], 3)
        if known and r.random() < 0.7:
            body = f"{r.choice(known)}({body}, {r.choice(['x', 'y', '3'])})"
        mark = "@cuda.jit(device=True)\n" if r.random() < 0.5 else ""
        lines.append(f"{mark}def f{k}(x, y):\n    return {body}")
        known.append(f"f{k}")
    for k in range(r.randint(1, 2)):
        value = r.choice([str(r.randint(-9, 9)), f"({r.randint(0, 9)}, {r.randint(0, 9)})"])
        use = "held[1] + held[0]" if value.startswith("(") else "held"
        inner = expression(r, ["x", "y", f"({use})", "inner(y, x)"], 3)
        lines.append(
            f"def make{k}(held, inner):\n    def made(x, y):\n        return {inner}\n"
            f"    return made\nc{k} = make{k}({value}, {r.choice(known)})"
        )
        known.append(f"c{k}")
    lines.append("def twice(f, x, y):\n    return f(f(x, y) % 97, y) % 97")
    calls = []
    for _ in range(3):
        f = r.choice(known)
        calls.append(
            r.choice(
                [
                    f"{f}(x, y)",
                    f"twice({f}, x, y)",
                    f"(lambda a, b: {expression(r, ['a', 'b', 'y'], 2)})(x, {f}(y, x))",
                ]
            )
        )
    total = " + ".join(f"({call}) % 97" for call in calls)
    lines.append(f"def one(x, y):\n    return {total}")
    lines.append(
        "@cuda.jit\ndef kernel(a, b, out):\n    i = cuda.grid(1)\n"
        "    if i < out.size:\n        x, y = a[i], b[i]\n"
        f"        out[i] = {total}"
    )
    return "\n".join(lines) + "\n"


class Plain:
    """cuda in the reference: decorators that leave functions as they are."""

    @staticmethod
    def jit(function=None, device=False):
        return function or (lambda f: f)


def functions(seed):
    r = random.Random(seed)
    text = functions_text(r)
    a, b = np.random.default_rng(seed).integers(-20, 20, (2, 50))
    want = [load(text, cuda=Plain)["one"](int(x), int(y)) for x, y in zip(a, b, strict=True)]
    out = np.zeros(50, np.int64)
    load(text, cuda=cuda)["kernel"][2, 32](a, b, out)
    assert out.tolist() == want, f"\n{text}\n{out.tolist()}\n{want}"


# ---- methods of arrays inside kernels ----

METHODS = "sum prod mean min max argmin argmax any all".split()


def methods(seed):
    r, g = random.Random(seed), np.random.default_rng(seed)
    name = r.choice(METHODS)
    kind = r.choice(["i4", "i8", "f8", "u1"])
    shape = [r.randint(1, 6) for _ in range(r.randint(2, 3))]
    a = g.integers(0 if kind == "u1" else -3, 4, shape).astype(kind)
    row = r.choice(["a[i]", "a[i, ...]", "a[i, ::2]", "a[i, ::-1]"])
    text = (
        "@cuda.jit\ndef kernel(a, out):\n    i = cuda.grid(1)\n    if i < out.size:\n"
        f"        out[i] = {row}.{name}()\n"
    )
    if r.random() < 0.3:
        a = np.asfortranarray(a)
    want = np.array([getattr(eval(row, {"a": a, "i": i}), name)() for i in range(len(a))])
    out = np.zeros(len(a), want.dtype)
    load(text, cuda=cuda)["kernel"][1, 32](a, out)
    np.testing.assert_allclose(out, want, rtol=1e-14, err_msg=f"{text} {a.tolist()}")


# ---- rounding by direction ----


def neighbours(value, kind):
    """The largest number of the type that is not above the fraction, and the smallest not below."""
    near = kind(float(value)) if kind is np.float64 else kind(value.numerator / value.denominator)
    down = up = near
    while Fraction(float(down)) > value:
        down = np.nextafter(down, kind(-np.inf))
    while Fraction(float(up)) < value:
        up = np.nextafter(up, kind(np.inf))
    down = np.nextafter(up, kind(-np.inf)) if Fraction(float(up)) > value else up
    return down, up


def rounded_fraction(value, way, kind):
    down, up = neighbours(value, kind)
    if way == "rd" or (way == "rz" and value > 0):
        return down
    if way == "ru" or way == "rz":
        return up
    if value - Fraction(float(down)) == Fraction(float(up)) - value:  # to even
        bits = np.array(down).view("u4" if kind is np.float32 else "u8")
        return up if bits & 1 else down
    return down if value - Fraction(float(down)) < Fraction(float(up)) - value else up


def rounding(seed):
    r = random.Random(seed)
    kind, first = r.choice([(np.float32, "f"), (np.float64, "d")])
    op, way = r.choice(["add", "mul", "div"]), r.choice(["rn", "rd", "ru", "rz"])
    name = f"{first}{op}_{way}"
    text = (
        "@cuda.jit\ndef kernel(a, b, out):\n    i = cuda.grid(1)\n    if i < out.size:\n"
        f"        out[i] = libdevice.{name}(a[i], b[i])\n"
    )
    g = np.random.default_rng(seed)
    a, b = (g.standard_normal((2, 40)) * 2.0 ** g.integers(-30, 30, (2, 40))).astype(kind)
    b[:4] = a[:4]
    out = np.zeros(40, kind)
    load(text, cuda=cuda, libdevice=libdevice)["kernel"][2, 32](a, b, out)
    for x, y, z in zip(a, b, out, strict=True):
        p, q = Fraction(float(x)), Fraction(float(y))
        exact = p + q if op == "add" else p * q if op == "mul" else p / q
        assert z == rounded_fraction(exact, way, kind), (name, x, y, z)


# ---- records ----

FIELDS = ["i1", "u1", "i2", "i4", "i8", "f4", "f8", "?", "c8", ("i4", (3,)), ("f8", (2, 2))]


def records(seed):
    r, g = random.Random(seed), np.random.default_rng(seed)
    fields = [
        (f"f{k}", *(kind if isinstance(kind, tuple) else (kind,)))
        for k, kind in enumerate(r.choice(FIELDS) for _ in range(r.randint(1, 5)))
    ]
    dtype = np.dtype(fields, align=r.random() < 0.5)
    a = np.frombuffer(g.bytes(dtype.itemsize * 7), dtype).copy()
    for f in fields:
        a[f[0]] = g.integers(0, 2 if f[1] == "?" else 100, a[f[0]].shape)
    lines, want = [], np.zeros_like(a)
    for f in fields:
        name, last = f[0], "" if len(f) == 2 else "[0]" if len(f[2]) == 1 else "[1, 0]"
        spell = r.choice([".{}", "['{}']"]).format(name)
        more = " + 1" if f[1] not in ("?",) and r.random() < 0.5 else ""
        source = "a[i]" if r.random() < 0.5 else "a[a.size - 1 - i]"
        lines.append(f"        out[i]{spell}{last} = {source}{spell}{last}{more}")
        part = a if source == "a[i]" else a[::-1]
        index = {"": (), "[0]": (..., 0), "[1, 0]": (..., 1, 0)}[last]
        want[name][index] = part[name][index] + (1 if more else 0)
    text = (
        "@cuda.jit\ndef kernel(a, out):\n    i = cuda.grid(1)\n    if i < out.size:\n"
        + "\n".join(lines)
        + "\n"
    )
    out = np.zeros_like(a)
    load(text, cuda=cuda)["kernel"][1, 32](a, out)
    for f in fields:
        np.testing.assert_array_equal(out[f[0]], want[f[0]], err_msg=f"{fields}\n{text}")


# ---- what vectorize makes ----

UFUNCS = {
    "add": (lambda a, b: a + b, np.add),
    "multiply": (lambda a, b: a * b, np.multiply),
    "maximum": (lambda a, b: max(a, b), np.maximum),
    "subtract": (lambda a, b: a - b, np.subtract),
}
made_ufuncs = {}


def ufunc_of(name, kind, declared):
    """Without signatures: one for each type, else a wider loop that is there is taken."""
    key = (name, kind, declared)
    if key not in made_ufuncs:
        decorate = vectorize([f"{kind}({kind}, {kind})"]) if declared else vectorize()
        made_ufuncs[key] = decorate(UFUNCS[name][0])
    return made_ufuncs[key]


def ufuncs(seed):
    r, g = random.Random(seed), np.random.default_rng(seed)
    name = r.choice(list(UFUNCS))
    kind = r.choice(["int64", "float64", "int32", "float32"])
    mine, theirs = ufunc_of(name, kind, kind == "int32" or r.random() < 0.5), UFUNCS[name][1]
    shape = tuple(r.randint(1, 5) for _ in range(r.randint(1, 3)))
    a = g.integers(-3, 4, shape).astype(kind)
    if r.random() < 0.4:
        a = r.choice([np.asfortranarray(a), a[..., ::-1], a.T])
    axis = r.randrange(-a.ndim, a.ndim)
    method = r.choice(["call", "reduce", "reduce all", "accumulate", "outer", "at", "reduceat"])
    if method == "call":
        b = g.integers(-3, 4, a.shape[r.randrange(a.ndim) :]).astype(kind)
        found, want = mine(a, b), theirs(a, b)
    elif method.startswith("reduce") and method != "reduceat":
        axis = axis if method == "reduce" else None
        if axis is None and name == "subtract" and a.ndim > 1:
            return  # NumPy has no order for it
        options = {"keepdims": r.random() < 0.5}
        # dtype: NumPy's own sums of small integers are wider
        found = mine.reduce(a, axis=axis, **options)
        want = theirs.reduce(a, axis=axis, dtype=kind, **options)
    elif method == "accumulate":
        found, want = mine.accumulate(a, axis), theirs.accumulate(a, axis, dtype=kind)
    elif method == "outer":
        b = g.integers(-3, 4, r.randint(1, 4)).astype(kind)
        found, want = mine.outer(a, b), theirs.outer(a, b)
    elif method == "at":
        found, want = np.array(a), np.array(a)
        index = g.integers(0, len(a), r.randint(1, 6))
        mine.at(found, index, np.array(2, kind))
        theirs.at(want, index, np.array(2, kind))
    else:
        index = sorted(g.integers(0, a.shape[axis], r.randint(1, 3)).tolist())
        found, want = mine.reduceat(a, index, axis), theirs.reduceat(a, index, axis, dtype=kind)
    assert np.asarray(found).dtype == want.dtype, (name, method, found.dtype, want.dtype)
    np.testing.assert_array_equal(found, want, err_msg=f"{name}.{method} {a!r} {axis}")


# ---- orders in memory ----


def strides_of(a):
    """Of the dimensions that have a choice."""
    wide = [s for s, n in zip(a.strides, a.shape, strict=True) if n > 1]
    return wide if a.size else []


def turned(r, a, module):
    for _ in range(r.randint(0, 3)):
        k = r.randrange(6)
        if k == 0:
            a = a.T
        elif k == 1 and a.ndim:
            d = r.randrange(a.ndim)
            a = a[(slice(None),) * d + (slice(None, None, r.choice([2, -1])),)]
        elif k == 2 and a.ndim > 1:
            axes = list(range(a.ndim))
            r.shuffle(axes)
            a = a.transpose(axes)
        elif k == 3:
            a = a.copy(r.choice("CFAK"))
        elif k == 4:
            a = module.asarray(a, order=r.choice("CFAK"))
        elif k == 5 and a.ndim:
            a = a[..., None]
    return a


MADE = [  # of an array, by its module
    lambda a, module, order, axis: a.astype("f8", order=order),
    lambda a, module, order, axis: module.array(a, order=order),
    lambda a, module, order, axis: module.zeros_like(a, order=order),
    lambda a, module, order, axis: a.ravel(order),
    lambda a, module, order, axis: a.reshape((-1,), order="C" if order == "K" else order),
    lambda a, module, order, axis: a + 1,
    lambda a, module, order, axis: a * a.copy(order),
    lambda a, module, order, axis: module.concatenate([a, a], axis),
]


def orders(seed):
    g = np.random.default_rng(seed)
    shape = tuple(int(n) for n in g.integers(1, 5, g.integers(1, 4)))
    x = g.integers(-9, 9, shape).astype(["i4", "f8", "f4"][seed % 3])
    results = []
    for module, a in ((np, x), (cp, cp.asarray(x))):
        r = random.Random(seed)  # the same turns
        a, view = turned(r, a, module), turned(r, a, module)
        order, kind, axis = r.choice("CFAK"), r.randrange(len(MADE)), r.randrange(a.ndim)
        results.append((MADE[kind](a, module, order, axis), view))
    what = f"{seed}: {kind}, {order}, {axis}"
    for theirs, mine in zip(*results, strict=True):
        np.testing.assert_array_equal(mine.get(), theirs, err_msg=what)
        assert strides_of(mine) == strides_of(theirs), (what, mine.strides, theirs.strides)
        assert mine.flags.c_contiguous == theirs.flags.c_contiguous, what
        assert mine.flags.f_contiguous == theirs.flags.f_contiguous, what


KINDS = [functions, functions, methods, rounding, records, ufuncs, ufuncs, orders, orders]


def make(draw):
    return f"{draw.choice(KINDS).__name__}({draw.randrange(2**31)})"


PART = Part(make, globals())
