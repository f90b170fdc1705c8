"""Every operation and type of the vm against NumPy: the same bits on every instruction set."""

import itertools
import math

import numpy as np
import pytest
from simt import _core

ISAS = ("generic", "avx2", "avx512")
INTS = {"i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64"}
FLOATS = {"f16": "float16", "f32": "float32", "f64": "float64"}
DTYPES = {**INTS, **FLOATS, "i1": "uint8", "bf16": "uint16"}
SIZES = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "f16": 2, "bf16": 2, "f32": 4, "f64": 8}


def kernel(op, operand_types, result, scalar=()):
    """out[i] = op(a[i], b[i], ...); operands in `scalar` are read at element 0."""
    n = len(operand_types)
    lines = ["%90: i32 = special tid.x", "%91: i32 = special ctaid.x", "%92: i32 = special ntid.x"]
    lines += ["%93: i32 = mul %91, %92", "%94: i32 = add %93, %90", "%95: i64 = sext %94"]
    for k, t in enumerate([*operand_types, result]):
        lines.append(f"%{10 + k}: i64 = const {SIZES[t]}")
        lines.append(f"%{20 + k}: i64 = mul %95, %{10 + k}")
        source = f"%{k}" if k in scalar else f"%{30 + k}"
        lines.append(f"%{30 + k}: ptr.global = ptradd %{k}, %{20 + k}")
        if k < n:
            lines.append(f"%{40 + k}: {t} = load {source}")
    lines.append(f"%80: {result} = {op} " + ", ".join(f"%{40 + k}" for k in range(n)))
    lines.append(f"store %{30 + n}, %80")
    params = ", ".join(f"%{k}: ptr.global" for k in range(n + 1))
    body = "\n".join("  " + line for line in lines)
    return f'kernel @k({params}) file "" {{\n{body}\n  return\n}}\n'


def run(op, operand_types, result, arrays, scalar=(), block=256):
    """The result on every ISA, checked to be the same bits, also from blocks of one thread."""
    size = len(arrays[0])
    arrays = [np.resize(a, -(-size // block) * block) for a in arrays]
    outs = []
    for isa in ISAS:
        out = np.zeros(len(arrays[0]), DTYPES[result])
        text = kernel(op, operand_types, result, scalar)
        _core.ir_run(text, len(out) // block, block, [*arrays, out], isa=isa)
        outs.append(out[:size])
    alone = np.zeros(min(size, 400), DTYPES[result])
    _core.ir_run(kernel(op, operand_types, result, scalar), len(alone), 1, [*arrays, alone])
    outs.append(alone)
    for out in outs[1:]:
        first = outs[0][: len(out)]
        same = first.view(f"u{out.itemsize}") == out.view(f"u{out.itemsize}")
        nan = np.zeros(len(out), bool)
        if result in FLOATS:
            nan = np.isnan(first) & np.isnan(out)
        assert (same | nan).all(), (op, operand_types)
    return outs[0]


def int_samples(dtype):
    info = np.iinfo(dtype)
    special = [0, 1, -1, 2, -2, 3, 7, 8, 15, 16, 31, 32, 63, 64, info.min, info.max, info.min + 1]
    special = [x for x in special if info.min <= x <= info.max]
    rng = np.random.default_rng(1)
    values = np.array(special, dtype)
    values = np.concatenate([values, rng.integers(info.min, info.max, 12, dtype, endpoint=True)])
    a, b = np.array(list(itertools.product(values, values)), dtype).T
    return a.copy(), b.copy()


def wrap(x, bits):
    x &= (1 << bits) - 1
    return x - (1 << bits) if x >> (bits - 1) else x


def quotient(x, y):
    q = abs(x) // abs(y)
    return -q if (x < 0) != (y < 0) else q


INT_OPS = {
    "add": lambda x, y, u, v, b: x + y,
    "sub": lambda x, y, u, v, b: x - y,
    "mul": lambda x, y, u, v, b: x * y,
    "mulhi.s": lambda x, y, u, v, b: x * y >> b,
    "mulhi.u": lambda x, y, u, v, b: u * v >> b,
    "div.s": lambda x, y, u, v, b: quotient(x, y) if y else 0,
    "div.u": lambda x, y, u, v, b: u // v if v else 0,
    "rem.s": lambda x, y, u, v, b: x - y * quotient(x, y) if y else 0,
    "rem.u": lambda x, y, u, v, b: u % v if v else 0,
    "and": lambda x, y, u, v, b: x & y,
    "or": lambda x, y, u, v, b: x | y,
    "xor": lambda x, y, u, v, b: x ^ y,
    "shl": lambda x, y, u, v, b: u << v if v < b else 0,
    "shr.u": lambda x, y, u, v, b: u >> v if v < b else 0,
    "shr.s": lambda x, y, u, v, b: x >> v if v < b else (-1 if x < 0 else 0),
    "min.s": lambda x, y, u, v, b: min(x, y),
    "max.s": lambda x, y, u, v, b: max(x, y),
    "min.u": lambda x, y, u, v, b: min(u, v),
    "max.u": lambda x, y, u, v, b: max(u, v),
}
INT_COMPARES = {
    "eq": lambda x, y, u, v: x == y,
    "ne": lambda x, y, u, v: x != y,
    "lt.s": lambda x, y, u, v: x < y,
    "le.s": lambda x, y, u, v: x <= y,
    "lt.u": lambda x, y, u, v: u < v,
    "le.u": lambda x, y, u, v: u <= v,
}
INT_UNARY = {
    "not": lambda x, u, b: ~x,
    "abs": lambda x, u, b: abs(x),
    "popc": lambda x, u, b: bin(u).count("1"),
    "clz": lambda x, u, b: b - u.bit_length(),
    "ctz": lambda x, u, b: (u & -u).bit_length() - 1 if u else b,
    "brev": lambda x, u, b: int(f"{u:0{b}b}"[::-1], 2),
}


@pytest.mark.parametrize("t", INTS)
def test_integers(t):
    bits = 8 * SIZES[t]
    a, b = int_samples(INTS[t])
    pairs = [(int(x), int(y), int(x) % 2**bits, int(y) % 2**bits) for x, y in zip(a, b)]
    for op, f in INT_OPS.items():
        want = np.array([wrap(f(x, y, u, v, bits), bits) for x, y, u, v in pairs], INTS[t])
        assert (run(op, [t, t], t, [a, b]) == want).all(), op
        for k in (0, 1):  # a scalar operand
            c = a.copy() if k else np.full_like(a, a[5])
            d = np.full_like(b, b[7]) if k else b.copy()
            want = [
                wrap(f(int(x), int(y), int(x) % 2**bits, int(y) % 2**bits, bits), bits)
                for x, y in zip(c, d)
            ]
            assert (run(op, [t, t], t, [c, d], scalar=(k,)) == np.array(want, INTS[t])).all(), op
    for op, f in INT_COMPARES.items():
        assert (run(op, [t, t], "i1", [a, b]) == [f(*p) for p in pairs]).all(), op
    for op, f in INT_UNARY.items():
        want = np.array([wrap(f(x, u, bits), bits) for x, _, u, _ in pairs], INTS[t])
        assert (run(op, [t], t, [a]) == want).all(), op


def test_booleans():
    a = np.array([0, 0, 1, 1], np.uint8)
    b = np.array([0, 1, 0, 1], np.uint8)
    for op, want in {
        "and": a & b, "or": a | b, "xor": a ^ b, "eq": a == b, "ne": a != b,
        "lt.s": [0, 0, 1, 0], "le.s": [1, 0, 1, 1], "lt.u": [0, 1, 0, 0], "le.u": [1, 1, 0, 1],
    }.items():  # fmt: skip
        assert (run(op, ["i1", "i1"], "i1", [a, b]) == want).all(), op
    assert (run("not", ["i1"], "i1", [a]) == 1 - a).all()
    for t, dtype in INTS.items():
        assert (run("zext", ["i1"], t, [a]) == a).all()
        assert (run("sext", ["i1"], t, [a]) == -a.astype(dtype)).all()


def float_samples(dtype):
    info = np.finfo(dtype)
    special = [0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, np.inf, -np.inf, np.nan, info.max]
    special += [info.min, info.tiny, info.smallest_subnormal, -info.smallest_subnormal, 1e-3, 1000]
    rng = np.random.default_rng(2)
    with np.errstate(over="ignore"):
        values = np.array([*special, *rng.normal(0, 10, 12)], dtype)
    a, b = np.array(list(itertools.product(values, values)), dtype).T
    return a.copy(), b.copy()


def same_floats(got, want):
    """Bits equal, NaN like NaN."""
    got, want = np.asarray(got), np.asarray(want)
    bits = f"u{got.itemsize}"
    return ((got.view(bits) == want.view(bits)) | (np.isnan(got) & np.isnan(want))).all()


def wide(f):
    """f in float32 for float16, rounded once."""

    def g(*args):
        if args[0].dtype == np.float16:
            return f(*(x.astype(np.float32) for x in args)).astype(np.float16)
        return f(*args)

    return g


def choose(less, nan_wins):
    def pick(x, y):
        first = (
            np.where(x == y, np.signbit(x), x < y)
            if less
            else np.where(x == y, ~np.signbit(x), x > y)
        )
        r = np.where(first.astype(bool), x, y)
        if nan_wins:
            return np.where(np.isnan(x) | np.isnan(y), np.array(np.nan, x.dtype), r)
        return np.where(np.isnan(x), y, np.where(np.isnan(y), x, r))

    return pick


FLOAT_BINARY = {
    "fadd": np.add, "fsub": np.subtract, "fmul": np.multiply, "fdiv": np.divide, "frem": np.fmod,
    "fcopysign": np.copysign, "fmin.nan": choose(True, True), "fmax.nan": choose(False, True),
    "fmin.num": choose(True, False), "fmax.num": choose(False, False),
}  # fmt: skip
FLOAT_UNARY = {
    "fneg": np.negative, "fabs": np.abs, "fsqrt": np.sqrt, "ffloor": np.floor, "fceil": np.ceil,
    "ftrunc": np.trunc, "frint": np.rint,
}  # fmt: skip
FLOAT_COMPARES = {"feq": np.equal, "fne": np.not_equal, "flt": np.less, "fle": np.less_equal}


@pytest.mark.parametrize("t", FLOATS)
def test_floats(t):
    a, b = float_samples(FLOATS[t])
    with np.errstate(all="ignore"):
        for op, f in FLOAT_BINARY.items():
            assert same_floats(run(op, [t, t], t, [a, b]), wide(f)(a, b)), op
            c, d = np.full_like(a, a[30]), np.full_like(b, b[4])
            assert same_floats(run(op, [t, t], t, [c, b], scalar=(0,)), wide(f)(c, b)), op
            assert same_floats(run(op, [t, t], t, [a, d], scalar=(1,)), wide(f)(a, d)), op
        for op, f in FLOAT_UNARY.items():
            assert same_floats(run(op, [t], t, [a]), wide(f)(a)), op
        for op, f in FLOAT_COMPARES.items():
            assert (run(op, [t, t], "i1", [a, b]) == f(a, b)).all(), op


def test_fma_rounds_once():
    rng = np.random.default_rng(3)
    a, b, c = rng.normal(size=(3, 512))
    for scalar in [(), (0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2)]:
        x = [np.full_like(v, v[0]) if k in scalar else v for k, v in enumerate((a, b, c))]
        got = run("fma", ["f64"] * 3, "f64", x, scalar)
        from fractions import Fraction

        want = [float(Fraction(p) * Fraction(q) + Fraction(r)) for p, q, r in zip(*x)]
        assert (got == want).all(), scalar
        f = [v.astype(np.float32) for v in x]
        exact = f[0].astype(np.longdouble) * f[1] + f[2]
        got32 = run("fma", ["f32"] * 3, "f32", f, scalar)
        assert (np.abs(got32 - exact) <= np.spacing(np.abs(got32)) / 2 * 1.0001).all()


@pytest.mark.parametrize("t", ["i1", *INTS, *FLOATS])
def test_select(t):
    rng = np.random.default_rng(4)
    c = rng.integers(0, 2, 300).astype(np.uint8)
    x, y = rng.integers(0, 2 if t == "i1" else 100, (2, 300)).astype(DTYPES[t])
    for scalar in [(), (1,), (2,), (1, 2), (0,), (0, 1)]:
        p = [np.full_like(v, v[0]) if k in scalar else v for k, v in enumerate((c, x, y))]
        got = run("select", ["i1", t, t], t, p, scalar)
        assert (got == np.where(p[0] != 0, p[1], p[2])).all(), scalar


def test_integer_casts():
    for t, dtype in INTS.items():
        a, _ = int_samples(dtype)
        for u, to in INTS.items():
            if SIZES[u] < SIZES[t]:
                assert (run("trunc", [t], u, [a]) == a.astype(to)).all()
            if SIZES[u] > SIZES[t]:
                assert (run("sext", [t], u, [a]) == a.astype(to)).all()
                assert (run("zext", [t], u, [a]) == a.view("u" + dtype).astype(to)).all()
        assert (run("trunc", [t], "i1", [a]) == (a & 1)).all()


def rounded_int(x, dtype):
    """The int x as float16/32/64, rounded once."""
    if dtype == np.float64:
        return float(x)
    p, top = (11, 65520) if dtype == np.float16 else (24, 2**128)
    if abs(x) >= top:
        return math.copysign(math.inf, x)
    shift = max(abs(x).bit_length() - p, 0)
    q, r = divmod(abs(x), 1 << shift)
    q += r * 2 > (1 << shift) or (r * 2 == (1 << shift) and shift and q & 1)
    return math.copysign(float(q << shift), x)


def test_integer_to_float():
    for t, dtype in INTS.items():
        a, _ = int_samples(dtype)
        extra = np.array([2**24 + 1, 2**24 + 3, 2**53 + 1, 65519, 65520, 2049, 2051], np.int64)
        a = np.concatenate([a[:: len(a) // 25], extra.astype(dtype)])
        for u, to in FLOATS.items():
            want = np.array([rounded_int(int(x), np.dtype(to)) for x in a], to)
            assert same_floats(run("sitofp", [t], u, [a]), want), (t, u)
            want = np.array([rounded_int(int(x), np.dtype(to)) for x in a.view("u" + dtype)], to)
            assert same_floats(run("uitofp", [t], u, [a]), want), (t, u)


@pytest.mark.parametrize("t", FLOATS)
def test_float_to_integer(t):
    a, _ = float_samples(FLOATS[t])
    edges = [127.5, 128, -128.9, -129, 255.9, 256, 32767.6, 32768, -32769, 65535.5, 2**31, -(2**31)]
    edges += [2**31 - 1, 2**32 - 1, 2**32, 2**63, -(2.0**63), 2.0**64, 1e19, 3e9]
    with np.errstate(all="ignore"):
        a = np.concatenate([a[::7], np.array(edges, FLOATS[t])])
        for u, to in INTS.items():
            for op, kind in (("fptosi", to), ("fptoui", "u" + to)):
                info = np.iinfo(kind)
                want = []
                for x in a.astype(np.float64):
                    x = 0 if np.isnan(x) else min(max(x, -(2.0**65)), 2.0**65)
                    want.append(min(max(int(x), info.min), info.max))
                got = run(op, [t], u, [a])
                assert (got.view(kind) == np.array(want, kind)).all(), (op, u)
            assert (run("cvt_numpy.s", [t], u, [a]) == c_cast(a, to)).all(), u
            assert (run("cvt_numpy.u", [t], u, [a]).view("u" + to) == c_cast(a, "u" + to)).all(), u


def c_cast(a, to):
    """x86's casts: through i32 (i64 for wide ones), out of range gives the least value."""
    out = []
    for x in a.astype(np.float64):
        bits = 32 if np.dtype(to).itemsize < 4 or to == "int32" else 64
        low, high = -(2.0 ** (bits - 1)), 2.0 ** (bits - 1)

        def through(x, low=low, high=high):
            return int(x) if low <= x < high else int(low)

        if to == "uint64" and x >= high:
            r = through(x - high) ^ 2**63
        else:
            r = through(x)
        size = 8 * np.dtype(to).itemsize
        out.append(r % 2**size if to[0] == "u" else wrap(r, size))
    return np.array(out, to)


def to_bf16(x):
    u = np.asarray(x, np.float32).view(np.uint32).astype(np.uint64)
    r = (u + 0x7FFF + (u >> 16 & 1)) >> 16
    return np.where(np.isnan(x), 0x7FC0, r).astype(np.uint16)


def from_bf16(u):
    return (u.astype(np.uint32) << 16).view(np.float32)


def test_float_casts():
    halves = np.arange(65536, dtype=np.uint16)
    h = halves.view(np.float16)
    with np.errstate(all="ignore"):
        assert same_floats(run("fpext", ["f16"], "f32", [h]), h.astype(np.float32))
        assert same_floats(run("fpext", ["f16"], "f64", [h]), h.astype(np.float64))
        assert same_floats(run("fpext", ["bf16"], "f32", [halves]), from_bf16(halves))
        rng = np.random.default_rng(5)
        x = rng.integers(0, 2**32, 60000, np.uint32).view(np.float32)
        near = (h.astype(np.float64) + np.roll(h, -1).astype(np.float64)) / 2  # ties
        x = np.concatenate([x, near.astype(np.float32), rng.normal(0, 1e-5, 1000).astype("f4")])
        d = np.concatenate([near, near * (1 + 2**-45), near * (1 - 2**-45), rng.normal(size=1000)])
        assert same_floats(run("fptrunc", ["f32"], "f16", [x]), x.astype(np.float16))
        assert same_floats(run("fptrunc", ["f64"], "f16", [d]), d.astype(np.float16))
        assert same_floats(run("fptrunc", ["f64"], "f32", [d]), d.astype(np.float32))
        got = run("fptrunc", ["f32"], "bf16", [x])
        assert same_floats(from_bf16(got), from_bf16(to_bf16(x)))


def test_bfloat16_arithmetic():
    rng = np.random.default_rng(6)
    a, b = (to_bf16(x) for x in rng.normal(0, 100, (2, 2000)).astype(np.float32))
    for op, f in {"fadd": np.add, "fmul": np.multiply, "fdiv": np.divide}.items():
        got = run(op, ["bf16", "bf16"], "bf16", [a, b])
        assert (got == to_bf16(f(from_bf16(a), from_bf16(b)))).all(), op
    assert (run("flt", ["bf16", "bf16"], "i1", [a, b]) == (from_bf16(a) < from_bf16(b))).all()


@pytest.mark.parametrize("t", FLOATS)
def test_device_functions(t):
    """Accuracy is devlib's own test; here: the right function, every type, the same bits."""
    x = np.linspace(0.01, 3, 999).astype(FLOATS[t])
    y = np.linspace(2, -2, 999).astype(FLOATS[t])
    erf = np.array([math.erf(v) for v in x.astype(np.float64)])
    d = x.astype(np.float64)
    for op, want in {
        "exp": np.exp(d), "expm1": np.expm1(d), "log": np.log(d), "log1p": np.log1p(d),
        "sin": np.sin(d), "cos": np.cos(d), "tanh": np.tanh(d), "erf": erf,
        "exp2": np.exp2(d), "exp10": 10**d, "log2": np.log2(d), "log10": np.log10(d),
        "tan": np.tan(d), "atan": np.arctan(d), "sinh": np.sinh(d), "cosh": np.cosh(d),
        "cbrt": np.cbrt(d), "rsqrt": 1 / np.sqrt(d),
    }.items():  # fmt: skip
        got = run(op, [t], t, [x])
        assert np.allclose(got, want, rtol=3 * np.finfo(FLOATS[t]).eps, atol=1e-7), op
    got = run("pow", [t, t], t, [x, y])
    assert np.allclose(got, d ** y.astype(np.float64), rtol=3 * np.finfo(FLOATS[t]).eps)
    c = np.full_like(y, y[3])
    assert same_floats(run("pow", [t, t], t, [x, c], (1,)), run("pow", [t, t], t, [x, c]))


def philox(index, seed):
    c = [(index >> 2) & 0xFFFFFFFF, index >> 34, 0, 0]
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        p, q = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [(q >> 32) ^ c[1] ^ k0, q & 0xFFFFFFFF, (p >> 32) ^ c[3] ^ k1, p & 0xFFFFFFFF]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c[index & 3]


def test_philox():
    index = np.concatenate([np.arange(100), np.array([2**33, 2**40 + 7])]).astype(np.int64)
    seed = np.full_like(index, 0x123456789ABCDEF)
    want = np.array([philox(int(i), int(s)) for i, s in zip(index, seed)], np.uint32)
    for scalar in [(), (1,)]:
        got = run("philox", ["i64", "i64"], "i32", [index, seed], scalar)
        assert (got.view(np.uint32) == want).all()


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_remainder_to_the_nearest(kind):
    """Numbers of all sizes, also denormal divisors and ties, against Python's own algorithm."""
    dtype = np.dtype(FLOATS[kind])
    word, rng, n = np.dtype(f"u{dtype.itemsize}"), np.random.default_rng(4), 4096
    bits = rng.integers(0, np.iinfo(word).max, (2, n), dtype=word)
    x, y = (bits >> rng.integers(0, 8 * word.itemsize - 3, (2, n)).astype(word)).view(dtype)
    with np.errstate(all="ignore"):
        for k, part in enumerate((0.5, 1.5, 2.5, 0.25)):
            x[k * 256 : (k + 1) * 256] = y[k * 256 : (k + 1) * 256] * dtype.type(part)
        x[1::2] = -x[1::2]
        y[::3] = -y[::3]
    got = run("frem.near", [kind] * 2, kind, [x, y])
    for a, b, r in zip(x.tolist(), y.tolist(), got.tolist(), strict=True):
        exact = math.isfinite(a) and not math.isnan(b) and b != 0
        want = math.remainder(a, b) if exact else math.nan
        if math.isnan(want):
            assert math.isnan(r), (a, b)
        else:
            assert (r, math.copysign(1, r)) == (want, math.copysign(1, want)), (a, b)
