"""Measures the device math library and writes docs/devlib.md: largest errors in ulp, and the time
of one element. Needs the development build (ninja -C build).

usage: python tools/measure_devlib.py [--full | --stride N]
       --full: every float32 (more than an hour); --stride: each N-th (101: two minutes)
       python tools/measure_devlib.py --sweep NAME [STRIDE]     only prints one float32 sweep
"""

import os
import subprocess
import sys
import tempfile

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "python"))
import devlib_lib  # noqa: E402

COUNT = 4096
POINTS = 3_000_000
HOW = """\
float32: {which} against the C library's double functions; those of two numbers
20,000 pairs against mpmath.
float64: thousands of points against mpmath and {points:,} a region against libquadmath."""

HEAD = """\
# Device math (`src/devlib`)

The functions that all back ends share, written once in a subset of C that is also CUDA C
(`bits.h` states it): the functions below in float32 and float64, and Philox. The same source is
compiled once per instruction set and gives the same bits from each (tested). `math.def` is the
list; `vector.h` the loops over arrays; `tools/fit_minimax.py` derives the polynomials.

This page is written by `tools/measure_devlib.py`; the tests hold the bounds.

## Errors

In units in the last place (0.5 is the best possible), the largest found.
{how}

| function | f32 bound | f32 found | f64 bound | f64 found |
|---|---|---|---|---|
"""

TIMES = """
## Times

Nanoseconds an element, {count} elements in cache, one thread, the best of many runs.

| function | f32 {a} | f32 {b} | f64 {a} | f64 {b} |
|---|---|---|---|---|
"""

TAIL = """
## How

- exp, expm1: reduction by a two-part ln 2 (Cody and Waite), a polynomial, 2^n applied in two
  halves so that overflow and denormal results come out right.
- log, log1p, and the logarithm in pow: significand around 1, e * ln 2 in two parts, the error of
  the sum kept (Dekker). log1p carries the rounding error of 1 + x along.
- sin, cos: three-part pi/2 with fma and the rounding error of the reduction, for |x| up to 65536
  (float32) and 2^30 (float64): `DEV_TRIG_FAST_F32`, `DEV_TRIG_FAST_F64`. Beyond, Payne and Hanek's
  reduction in integers, scalar. The loops test a chunk's range first, and repair only the elements
  that need it.
- tanh: odd polynomial below 1, 1 - 2 / (exp(2x) + 1) above.
- erf: odd polynomial below 1, 1 - erfc(1) exp(-polynomial) above.
- exp2, exp10: the reduced argument times ln 2 or ln 10 as a sum of two numbers, then as exp.
- log2, log10: the logarithm of the significand times 1 / ln 2 or 1 / ln 10 in two parts.
- sinh, cosh: exp as a sum of two numbers, and its reciprocal; sinh an odd polynomial below 1.
- tan: the reduction of sin; an odd polynomial as a sum of two numbers, -1 / it in odd quadrants.
- asin, acos: odd polynomial up to 1/2, above by sqrt((1 - x) / 2) with the root's remainder.
- atan, atan2: quotients up to tan(pi/8) by an odd polynomial, the others by (a - b) / (a + b) or
  -b / a; the remainders of the sums and of the division are carried.
- cbrt: Halley's steps on x^(-1/3), a last one on c^3 = x with an exact remainder. rsqrt, hypot: one
  step of correction after the square root; hypot sums squares as two numbers.
- asinh, acosh, atanh: log1p of a sum of two numbers.
- sinpi, cospi: exact reduction, the product with pi as two numbers, then as sin.
- erfc: (1 - x) - (erf(x) - x) below 0.65; above exp(-x^2) * t * P(t), t = 1 / (x + k), all factors
  as two numbers (the substitution as in Shepherd and Laframboise, 1981).
- erfinv: a guess by w = -log(1 - x^2) (Giles, 2012), one step of Halley on erf or erfc.
- tgamma, lgamma: up to 12 (float32) and 24 (float64) the recurrence to 1 / gamma(1 + t) = 1 +
  t (1 - t) Q(t), beyond Stirling's series, all as sums of two numbers; lgamma near 1 and 2 from
  what gamma differs from 1 by. Negative numbers by reflection, scalar, all factors as two numbers.
  lgamma below 0 has two zeros between each two integers from -2 on: in float64 the error there is
  absolute, at most 2 ulp of max(1/4, |result|), about 1e-16 (float32, computed in float64, is
  relatively right everywhere). CUDA states 4 ulp outside (-11.0001, -2.2637) and larger inside.
- pow: log x as a sum of two numbers, times y, exp of a sum of two numbers; C99's table of special
  values by selects.
- Philox 4x32-10 (Salmon and others, SC11), checked against the published known answers. Counter =
  {low32(block), high32(block), stream low, stream high}, key = {low32(seed), high32(seed)}; word i
  of a stream is word i & 3 of block i >> 2. uniform float32 = (word >> 8) * 2^-24; uniform float64
  k = ((word 2k+1 : word 2k) >> 11) * 2^-53.
- ldexp, frexp, nextafter (`scale.h`) and the remainders (`frem`: C's fmod, `frem.near`: IEEE) are
  exact, and operations of their own. modf is trunc and the difference, with the sign of the whole.
- Denormals are honoured in and out; NaN in gives NaN out (but pow(1, y) and pow(x, 0) are 1: C99).

## Adding a function

1. A row in `src/devlib/math.def` and in `src/ir/ops.def`; `dev_NAME_f32` and `dev_NAME_f64` in the
   headers of its group (`math_`, `elementary_`, `trig_`, `hyperbolic_`, `gamma_`
   and `_f32.h`, `_f64.h`). No branches, no loops, no tables: `bits.h` says what is allowed.
   Coefficients by a new row in `tools/fit_minimax.py`.
2. A line in the group's `loops_*.c` that makes its loops (`UNARY_BOTH(NAME)`).
3. Its reference in `tests/unit/devlib_test.c` (`reference`), `tests/python/devlib_lib.py`
   (`REFERENCE`, `samples`) and `tests/differential/ir_eval.py` (`DEVICE`), its special values in
   `tests/python/test_devlib.py` (`SPECIAL`), its regions in `tools/search_devlib_f64.c`.
4. `tools/measure_devlib.py --full` writes this page anew; `objdump -d` shows whether its loop is
   made of `zmm` instructions.
"""


def f32_error(dev, name, stride):
    if dev.rows[name][1] == 2:
        return pair_error(dev, name, np.float32)
    return dev.sweep(name, 0, -(-(2**32) // stride), stride)[0]


def pair_error(dev, name, dtype):
    rng = np.random.default_rng(7)
    runs = devlib_lib.samples(name, dtype, 4000, rng)
    return max(devlib_lib.worst(name, dev.call(name, *a), a, dtype)[0] for _, a in runs)


def search_f64(points):
    """name -> largest float64 error that tools/search_devlib_f64.c finds."""
    source = os.path.join(ROOT, "tools", "search_devlib_f64.c")
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "search")
        flags = ["-O2", "-march=native", "-ffp-contract=off", "-fno-math-errno", f"-I{ROOT}/src"]
        subprocess.run(["cc", *flags, source, "-o", program, "-lquadmath", "-lm"], check=True)
        run = subprocess.run([program, str(points)], check=True, capture_output=True, text=True)
    found = {}
    for line in run.stdout.splitlines():
        name, _, _, error = line.split()[:4]
        found[name] = max(found.get(name, 0.0), float(error))
    return found


def times(dev, name, isas):
    rng = np.random.default_rng(7)
    out = []
    for dtype in (np.float32, np.float64):
        inputs = [rng.uniform(0.01, 4, COUNT).astype(dtype) for _ in range(dev.rows[name][1])]
        out += [f"{dev.time(name, *inputs, isa=isa, rounds=300):.2f}" for isa in isas]
    return out


def main(stride):
    dev = devlib_lib.Devlib(devlib_lib.find())
    points = POINTS // 100 if stride > 100 else POINTS // 10 if stride > 1 else POINTS
    which = "every float32" if stride == 1 else f"each {stride}th float32"
    text = HEAD.replace("{how}", HOW.format(which=which, points=points))
    search = search_f64(points)
    for name, (_, _, b32, b64) in dev.rows.items():
        f32 = f32_error(dev, name, stride)
        f64 = max(pair_error(dev, name, np.float64), search[name])
        text += f"| {name} | {b32} | {f32:.3f} | {b64} | {f64:.3f} |\n"
    isas = dev.isas[:0:-1] or dev.isas
    isas = (isas * 2)[:2]
    a, b = (devlib_lib.ISAS[i] for i in isas)
    text += TIMES.format(count=COUNT, a=a, b=b)
    for name in dev.rows:
        text += f"| {name} | " + " | ".join(times(dev, name, isas)) + " |\n"
    path = os.path.join(ROOT, "docs", "devlib.md")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text + TAIL)


def sweep(name, stride):
    dev = devlib_lib.Devlib(devlib_lib.find())
    error, where = dev.sweep(name, 0, -(-(2**32) // stride), stride)
    print(f"{name}: {error:.5f} ulp at {where.hex()}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--sweep"]:
        sweep(sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    else:
        at = sys.argv.index("--stride") + 1 if "--stride" in sys.argv else 0
        main(1 if "--full" in sys.argv else int(sys.argv[at]) if at else 101)
