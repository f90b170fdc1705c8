"""The device math library as Python sees it for tests and tools: loads build*/tests/unit's test
library by ctypes, and measures errors in units in the last place (ulp) against mpmath.
"""

import ctypes
import glob
import os

import mpmath as mp
import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ISAS = ("generic", "avx2", "avx512")
mp.mp.prec = 160

u32, u64, size, pointer = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_void_p
_SIGNATURES = {
    "devlib_row_count": (ctypes.c_int, []),
    "devlib_row_name": (ctypes.c_char_p, [ctypes.c_int]),
    "devlib_row_arity": (ctypes.c_int, [ctypes.c_int]),
    "devlib_row_ulp": (ctypes.c_double, [ctypes.c_int] * 2),
    "devlib_isa_runs": (ctypes.c_int, [ctypes.c_int]),
    "devlib_call": (ctypes.c_int, [ctypes.c_int] * 3 + [pointer] * 3 + [size]),
    "devlib_time": (ctypes.c_double, [ctypes.c_int] * 3 + [pointer] * 3 + [size, ctypes.c_int]),
    "devlib_sweep_f32": (ctypes.c_double, [ctypes.c_int] * 2 + [u32, u64, u32, pointer]),
    "devlib_philox_block": (None, [pointer, u64]),
    "devlib_philox": (None, [ctypes.c_int, pointer, pointer, size, u64]),
    "devlib_philox_seeds": (None, [ctypes.c_int, pointer, pointer, pointer, size]),
    "devlib_philox_fill": (None, [ctypes.c_int, pointer, u64, size, u64]),
    "devlib_uniform_f32": (None, [ctypes.c_int, pointer, u64, size, u64]),
    "devlib_uniform_f64": (None, [ctypes.c_int, pointer, u64, size, u64]),
}


def find():
    """The test library's path, or None; a sanitizer run takes the sanitizer's build."""
    build = "build-asan" if os.environ.get("SIMT_SANITIZE") else "build"
    found = glob.glob(os.path.join(ROOT, build, "tests", "unit", "libdevlib_test.*"))
    return next((f for f in found if f.endswith((".so", ".dylib"))), None)


class Devlib:
    """rows: name -> (index, arity, f32 bound, f64 bound); isas: the indices this machine runs."""

    def __init__(self, path):
        self.lib = ctypes.CDLL(path)
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(self.lib, name)
            function.restype, function.argtypes = result, arguments
        self.rows = {
            self.lib.devlib_row_name(i).decode(): (
                i,
                self.lib.devlib_row_arity(i),
                self.lib.devlib_row_ulp(i, 0),
                self.lib.devlib_row_ulp(i, 1),
            )
            for i in range(self.lib.devlib_row_count())
        }
        self.isas = [i for i in range(len(ISAS)) if self.lib.devlib_isa_runs(i)]

    def call(self, name, *inputs, isa=None, out=None):
        """The loop `name` over the input arrays (float32 or float64)."""
        a = inputs[0]
        out = np.empty_like(a) if out is None else out
        second = inputs[1].ctypes.data if len(inputs) > 1 else None
        isa = self.isas[-1] if isa is None else isa
        wide = a.dtype == np.float64
        index = self.rows[name][0]
        status = self.lib.devlib_call(
            isa, index, wide, out.ctypes.data, a.ctypes.data, second, a.size
        )
        assert status == 0
        return out

    def time(self, name, *inputs, isa, rounds=100):
        """Best ns an element."""
        a = inputs[0]
        out = np.empty_like(a)
        second = inputs[1].ctypes.data if len(inputs) > 1 else None
        args = (self.rows[name][0], a.dtype == np.float64, out.ctypes.data, a.ctypes.data, second)
        return self.lib.devlib_time(isa, *args, a.size, rounds)

    def sweep(self, name, start, count, stride, isa=None):
        """(largest ulp error, its input) over float32 bit patterns, against C double functions."""
        worst = np.zeros(1, np.float32)
        isa = self.isas[-1] if isa is None else isa
        index = self.rows[name][0]
        error = self.lib.devlib_sweep_f32(isa, index, start, count, stride, worst.ctypes.data)
        return error, float(worst[0])


def _at_least(bound, f):
    """f above the bound, -inf at it, NaN below."""
    return lambda x: mp.nan if x < bound else -mp.inf if x == bound else f(x)


def _within_one(f):
    """f on [-1, 1], NaN elsewhere."""
    return lambda x: f(x) if abs(x) <= 1 else mp.nan


def _pole(f, at_minus_integers):
    """f, with its value at the negative integers."""
    return lambda x: at_minus_integers if x < 0 and x == mp.floor(x) else f(x)


def _odd(f):
    """f of the size, with the sign of the argument."""
    return lambda x: mp.sign(x) * f(abs(x)) if x == x else x


def inverse(x):
    """erfinv inside (-1, 1), by Newton's steps on mpmath's own (which may stop early)."""
    y = mp.erfinv(x)
    for _ in range(2):
        miss = mp.erf(y) - x if abs(x) < 0.5 else mp.sign(x) * ((1 - abs(x)) - mp.erfc(abs(y)))
        y -= miss * mp.exp(y * y) * mp.sqrt(mp.pi) / 2
    return y


REFERENCE = {
    "exp": mp.exp,
    "exp2": lambda x: mp.power(2, x),
    "exp10": lambda x: mp.power(10, x),
    "log2": _at_least(0, lambda x: mp.log(x, 2)),
    "log10": _at_least(0, mp.log10),
    "tan": mp.tan,
    "asin": _within_one(mp.asin),
    "acos": _within_one(mp.acos),
    "atan": mp.atan,
    "atan2": mp.atan2,
    "sinh": mp.sinh,
    "cosh": mp.cosh,
    "cbrt": _odd(mp.cbrt),
    "rsqrt": lambda x: mp.nan if x < 0 or x != x else mp.inf if x == 0 else 1 / mp.sqrt(x),
    "hypot": mp.hypot,
    "asinh": mp.asinh,
    "acosh": lambda x: mp.acosh(x) if x >= 1 else mp.nan,
    "atanh": _within_one(mp.atanh),
    "erfc": mp.erfc,
    "erfinv": lambda x: (
        mp.nan if not abs(x) <= 1 else mp.sign(x) * mp.inf if abs(x) == 1 else inverse(x)
    ),
    "tgamma": _pole(mp.gamma, mp.nan),
    "lgamma": _pole(lambda x: mp.log(abs(mp.gamma(x))) if x < 1e3 else mp.loggamma(x), mp.inf),
    "sinpi": mp.sinpi,
    "cospi": mp.cospi,
    "expm1": mp.expm1,
    "log": _at_least(0, mp.log),
    "log1p": _at_least(-1, mp.log1p),
    "sin": mp.sin,
    "cos": mp.cos,
    "tanh": mp.tanh,
    "erf": mp.erf,
    "pow": lambda x, y: mp.power(x, y),
}


def ulp_error(got, want, dtype):
    """|got - want| in ulps of dtype at want (an mpf); infinite if one is NaN or a sign is lost.

    An infinite result counts as the power of two after the largest finite number.
    """
    bits, low, top = (24, -125, 128) if dtype == np.float32 else (53, -1021, 1024)
    got = float(got)
    if mp.isnan(want) or np.isnan(got):
        return 0.0 if mp.isnan(want) and np.isnan(got) else np.inf
    limit = mp.ldexp(1, top)
    g = mp.mpf(got) if np.isfinite(got) else limit * (1 if got > 0 else -1)
    w = max(-limit, min(limit, want))
    _, e = mp.frexp(w)
    e = low if w == 0 else max(int(e), low)
    return float(abs(g - w) / mp.ldexp(1, e - bits))


def worst(name, got, inputs, dtype):
    """(largest error, its inputs) of the results `got`."""
    most = (0.0, None)
    for k in range(len(got)):
        args = [float(a[k]) for a in inputs]
        error = ulp_error(got[k], REFERENCE[name](*(mp.mpf(x) for x in args)), dtype)
        if error > most[0] or most[1] is None:
            most = (error, args)
    return most


def _pairs(dtype, n, rng):
    """Pairs of numbers: alike, at random, of all sizes, denormal."""
    x = rng.uniform(-3, 3, n)
    tiny = float(np.finfo(dtype).tiny)
    wide = np.exp(rng.uniform(-1, 1, (2, n)) * (80 if dtype == np.float32 else 650))
    wide *= rng.choice([-1.0, 1.0], (2, n))
    close = wide[0] * rng.uniform(-3, 3, n)
    out = [("alike", [x, x * rng.uniform(0.3, 3, n)]), ("small", list(rng.uniform(-1, 1, (2, n))))]
    out += [("wide", list(wide)), ("wide, alike", [wide[0], close])]
    out += [("denormal", list(tiny * rng.uniform(-1, 1, (2, n))))]
    return [(r, [a.astype(dtype) for a in arrays]) for r, arrays in out]


def samples(name, dtype, n, rng):
    """Input arrays of each interesting region: a list of (region, inputs)."""
    big = 88.7 if dtype == np.float32 else 709.7
    tiny = 104.0 if dtype == np.float32 else 746.0
    uniform = {
        "exp": [(-tiny, big), (-1, 1), (-tiny, -big)],
        "exp2": [(-1.44 * tiny, 1.44 * big), (-1, 1)],
        "exp10": [(-0.434 * tiny, 0.434 * big), (-1, 1), (-0.434 * tiny, -0.434 * big)],
        "expm1": [(-45, big), (-1, 1), (0.3, 0.5), (-1e-3, 1e-3)],
        "log": [(0, 3), (0.9, 1.1), (0, 1e30)],
        "log2": [(0, 3), (1.3, 1.45), (0.9, 1.1), (0, 1e30)],
        "log10": [(0, 3), (1.3, 1.45), (0.9, 1.1), (0, 1e30)],
        "log1p": [(-1, 1), (-1e-3, 1e-3), (0.3, 0.5), (0, 1e4)],
        "sin": [(-4, 4), (-1e4, 1e4), (-1e9, 1e9), (-1e30, 1e30)],
        "cos": [(-4, 4), (-1e4, 1e4), (-1e9, 1e9), (-1e30, 1e30)],
        "tan": [(-4, 4), (-1e4, 1e4), (-1e9, 1e9), (-1e30, 1e30)],
        "asin": [(-1, 1), (0.4, 0.6), (0.999, 1), (-1e-3, 1e-3)],
        "acos": [(-1, 1), (0.4, 0.6), (0.999, 1), (-1, -0.999)],
        "atan": [(-3, 3), (0.38, 0.44), (2.3, 2.5), (-1e9, 1e9)],
        "sinh": [(-3, 3), (0.9, 1.1), (-big, big)],
        "cosh": [(-3, 3), (-big, big)],
        "tanh": [(-3, 3), (0.9, 1.1), (-25, 25)],
        "erf": [(-3, 3), (0.9, 1.1), (-6.5, 6.5)],
        "asinh": [(-3, 3), (0.2, 0.4), (-1e30, 1e30)],
        "acosh": [(1, 1.1), (1, 4), (1, 1e30)],
        "atanh": [(-1, 1), (0.1, 0.2), (0.999, 1)],
        "erfc": [(-6, 6), (0.6, 0.9), (-0.7, 0.7), (0, 10 if dtype == np.float32 else 27)],
        "tgamma": [(0, 3), (3, 30), (-10, 0), (0, 35 if dtype == np.float32 else 171)],
        "lgamma": [(0, 3), (0.99, 1.01), (1.99, 2.01), (3, 30), (0, 1e30), (0, 1e-30)],
        "erfinv": [(-1, 1), (-0.4, 0.4), (0.6, 0.8), (0.999, 1), (-1e-3, 1e-3)],
        "sinpi": [(-2, 2), (0.7, 0.8), (-1e5, 1e5)],
        "cospi": [(-2, 2), (0.7, 0.8), (-1e5, 1e5)],
        "cbrt": [(-8, 8), (-1e30, 1e30), (0, 1e-37 if dtype == np.float32 else 1e-307)],
        "rsqrt": [(0, 4), (0, 1e30), (0, 1e-37 if dtype == np.float32 else 1e-307)],
    }
    if name in uniform:
        out = [((lo, hi), [rng.uniform(lo, hi, n)]) for lo, hi in uniform[name]]
        return [(r, [a.astype(dtype) for a in arrays]) for r, arrays in out]
    if name != "pow":
        return _pairs(dtype, n, rng)
    sign = rng.choice([-1.0, 1.0], n)
    out = []
    for region, x in (
        ("near 1", 1 + rng.uniform(-1e-3, 1e-3, n)),
        ("0.7 to 1.42", rng.uniform(0.7, 1.42, n)),
        ("wide", np.exp(rng.uniform(-big, big, n))),
    ):
        out.append((region, [x, sign * rng.uniform(0, 1.05, n) * big / np.abs(np.log(x))]))
    out.append(("0 to 4", [rng.uniform(0, 4, n), rng.uniform(-20, 20, n)]))
    out.append(("integer y", [rng.uniform(-9, 9, n), np.round(rng.uniform(-9, 9, n))]))
    return [(r, [a.astype(dtype) for a in arrays]) for r, arrays in out]
