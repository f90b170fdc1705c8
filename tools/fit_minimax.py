"""Fits the polynomials of src/devlib (Remez exchange in mpmath) and prints them as C arrays.

Each row of FITS names a function g, an interval, a weight w and a number of coefficients: the
polynomial p minimises max |w * (p - g)|. Coefficients are rounded to the target type one at a
time, lowest degree first, and the rest is fitted again, so that rounding costs nearly nothing.

usage: python tools/fit_minimax.py [NAME ...]     (all rows take about a minute)
"""

import sys

import mpmath as mp

mp.mp.prec = 240


def round_to(x, bits):
    """x rounded to `bits` significant bits (ties do not matter here)."""
    if x == 0:
        return mp.mpf(0)
    m, e = mp.frexp(x)
    return mp.ldexp(mp.nint(mp.ldexp(m, bits)), int(e) - bits)


def remez(g, w, lo, hi, n, low=0, tries=40):
    """The best p = sum of c_k x^k, low <= k < low + n: coefficients and weighted error."""

    def point(t):
        return (lo + hi) / 2 - (hi - lo) / 2 * mp.cos(mp.pi * t)

    nodes = [point(mp.mpf(2 * i + 1) / (2 * n + 2)) for i in range(n + 1)]
    grid = [point(mp.mpf(i) / (24 * n)) for i in range(24 * n + 1)]
    # where the weight is zero there is nothing to win, and a node there would say "error 0"
    values = [(x, g(x), w(x)) for x in grid if abs(x) > (hi - lo) * mp.mpf("1e-5")]
    best = None
    for _ in range(tries):
        a, b = mp.matrix(n + 1, n + 1), mp.matrix(n + 1, 1)
        for i, x in enumerate(nodes):
            wx = w(x)
            for k in range(n):
                a[i, k] = wx * x ** (low + k)
            a[i, n] = (-1) ** i
            b[i] = wx * g(x)
        sol = mp.lu_solve(a, b)
        coefs, level = [sol[k] for k in range(n)], abs(sol[n])
        poly = coefs[::-1] + [0] * low
        err = [(x, wx * (mp.polyval(poly, x) - gx)) for x, gx, wx in values]
        worst = max(abs(e) for _, e in err)
        if best is None or worst < best[1]:
            best = coefs, worst
        if worst < level * mp.mpf("1.01"):
            break
        # one extremum per run of equal sign; then keep the n + 1 neighbours with the largest ones
        runs = []
        for x, e in err:
            if runs and (runs[-1][1] > 0) == (e > 0):
                if abs(e) > abs(runs[-1][1]):
                    runs[-1] = (x, e)
            else:
                runs.append((x, e))
        while len(runs) > n + 1:
            runs.pop(0 if abs(runs[0][1]) < abs(runs[-1][1]) else -1)
        if len(runs) < n + 1:
            break
        nodes = [x for x, _ in runs]
    return best


def fit(g, w, lo, hi, n, bits, first_bits):
    """Rounded coefficients, the final weighted error, and the one before rounding."""
    rest, first = remez(g, w, lo, hi, n)
    fixed = []
    while len(fixed) < n:
        fixed.append(round_to(rest[0], bits if fixed else first_bits))
        rest, k, done = rest[1:], len(fixed), fixed[::-1]
        if rest:
            coefs, err = remez(lambda x, p=done: g(x) - mp.polyval(p, x), w, lo, hi, n - k, k)
            if err < first * 2:  # else the exchange got lost: the old tail is good enough
                rest = coefs
    pts = [lo + (hi - lo) * i / 997 for i in range(998)]
    pts = [x for x in pts if abs(x) > (hi - lo) * mp.mpf("1e-5")]  # as in remez
    worst = max(abs(w(x) * (mp.polyval(fixed[::-1], x) - g(x))) for x in pts)
    return fixed, worst, first


def safe(f):
    """f, with the removable singularity at 0 stepped over."""
    return lambda x: f(x if abs(x) > mp.mpf(2) ** -40 else mp.mpf(2) ** -40)


def even(f):
    """A function of s = x*x written as one of x."""
    return safe(lambda s: f(mp.sqrt(s)))


LN2H = mp.log(2) / 2 * mp.mpf("1.002")
Q4F, Q4D = (mp.pi / 4 + mp.mpf("0.02")) ** 2, (mp.pi / 4 * mp.mpf("1.001")) ** 2
ATANH = (mp.mpf("0.17158") ** 2) * mp.mpf("1.001")
EXP = (safe(lambda r: (mp.expm1(r) - r) / r**2), safe(lambda r: r * r / mp.exp(r)), -LN2H, LN2H)
EXPM1 = (EXP[0], safe(lambda r: r * r / mp.expm1(r)), -LN2H, LN2H)
EXPM1_CUBE = (
    safe(lambda r: (mp.expm1(r) - r - r * r / 2) / r**3),
    safe(lambda r: r**3 / mp.expm1(r)),
    -LN2H,
    LN2H,
)
LOG = (
    safe(lambda t: (mp.log1p(t) - t + t * t / 2) / t**3),
    safe(lambda t: t**3 / mp.log1p(t)),
    mp.mpf(-1) / 3,
    mp.mpf(1) / 3,
)
LOGF = (  # log((1+f)/(1-f)) = 2f + f * s * P(s), s = f*f
    even(lambda f: (2 * mp.atanh(f) - 2 * f) / f**3),
    even(lambda f: f**3 / (2 * mp.atanh(f))),
    mp.mpf(0),
    ATANH,
)
POWF = (  # 2 atanh(f) = 2f + 2/3 f^3 + f^5 * P(s)
    even(lambda f: (2 * mp.atanh(f) - 2 * f - 2 * f**3 / 3) / f**5),
    even(lambda f: f**5 / (2 * mp.atanh(f))),
    mp.mpf(0),
    ATANH,
)


def sin_fit(top):
    g = even(lambda r: (mp.sin(r) - r) / r**3)
    return g, even(lambda r: r**3 / mp.sin(r)), mp.mpf(0), top


def cos_fit(top):
    g = even(lambda r: (mp.cos(r) - 1 + r * r / 2) / r**4)
    return g, even(lambda r: r**4 / mp.cos(r)), mp.mpf(0), top


def tanh_fit(top):
    g = even(lambda x: (mp.tanh(x) - x) / x**3)
    return g, even(lambda x: x**3 / mp.tanh(x)), mp.mpf(0), mp.mpf(top) ** 2


def odd_fit(f, top):
    """f(x) = x + x^3 * P(x^2) up to `top`."""
    g = even(lambda x: (f(x) - x) / x**3)
    return g, even(lambda x: x**3 / f(x)), mp.mpf(0), mp.mpf(top) ** 2


def erf_fit(top):
    g = even(lambda x: (mp.erf(x) - x) / x)
    return g, even(lambda x: x / mp.erf(x)), mp.mpf(0), mp.mpf(top) ** 2


def erfq_fit(top):
    """-log(erfc(1 + z) / erfc(1)) / z; an error d there costs d * z * erfc(1 + z) of erf."""
    g = safe(lambda z: -mp.log(mp.erfc(1 + z) / mp.erfc(1)) / z)
    return g, safe(lambda z: z * mp.erfc(1 + z)), mp.mpf(0), mp.mpf(top) - 1


def erfc_fit(low, top, k, shift):
    """erfc(x) exp(x^2) (x + k) as a function of u = 8 / (x + k) - shift."""

    def u(x):
        return 8 / (mp.mpf(x) + k) - shift

    def g(u):
        x = 8 / (u + shift) - k
        return mp.exp(x * x) * mp.erfc(x) * (x + k)

    return g, lambda u: 1 / g(u), u(top), u(low)


TINY = mp.mpf(2) ** -90


def gamma_q(t):
    """q of 1 / gamma(1 + t) = 1 + t (1 - t) q(t)."""
    t = min(max(t, TINY), 1 - TINY)
    return (mp.rgamma(1 + t) - 1) / (t * (1 - t))


GAMMA = (gamma_q, lambda t: mp.mpf(1), mp.mpf(0), mp.mpf(1))


def stirling_fit(low):
    """x (log gamma(x) - (x - 1/2) log x + x - log(2 pi) / 2) as a function of 1 / x^2, x >= low."""

    def g(s):
        x = 1 / mp.sqrt(max(s, mp.mpf("1e-12")))
        return x * (mp.loggamma(x) - (x - mp.mpf("0.5")) * mp.log(x) + x - mp.log(2 * mp.pi) / 2)

    return g, lambda s: mp.mpf(1), mp.mpf(0), 1 / mp.mpf(low) ** 2


_INVERSE = {}


def erfinv_ratio(w):
    """erfinv(x) / x where w = -log(1 - x^2)."""
    w = max(w, mp.mpf("1e-10"))
    if w not in _INVERSE:
        q = mp.exp(-w)
        x = mp.sqrt(1 - q)
        rest = mp.log(q / (1 + x))  # log erfc of the result, right also where x is next to 1
        start = mp.mpf("0.9") * mp.sqrt(w) if w > 0.01 else x * mp.sqrt(mp.pi) / 2
        _INVERSE[w] = mp.findroot(lambda y: mp.log(mp.erfc(y)) - rest, start) / x
    return _INVERSE[w]


def erfinv_far(top):
    g = lambda v: erfinv_ratio(v * v)
    return g, lambda v: 1 / g(v), mp.mpf("2.5"), mp.mpf(top)


ERFINV = (erfinv_ratio, lambda w: 1 / erfinv_ratio(w), mp.mpf(0), mp.mpf("6.25"))


# name: ((g, w, lo, hi), coefficients, bits of the type), "pair": the first one is two numbers
FITS = {
    "EXP_F32": (EXPM1, 6, 24),
    "LOG_F32": (LOG, 8, 24),
    "SIN_F32": (sin_fit(Q4F), 3, 24),
    "COS_F32": (cos_fit(Q4F), 3, 24),
    "TANH_F32": (tanh_fit("1.0"), 7, 24),
    "ERF_F32": (erf_fit("1.0"), 7, 24),
    "ERFQ_F32": (erfq_fit("4.0"), 7, 24),
    "POW_F32": (POWF, 3, 24),
    "TAN_F32": (odd_fit(mp.tan, "0.7935"), 7, 24),
    "ASIN_F32": (odd_fit(mp.asin, "0.5"), 5, 24),
    "ATAN_F32": (odd_fit(mp.atan, "0.4143"), 5, 24),
    "SINH_F32": (odd_fit(mp.sinh, "1"), 4, 24),
    "ERFC_F32": (erfc_fit("0.65", "10.1", 2.5, 1.5), 9, 24, "pair"),
    "ERFINV_F32": (ERFINV, 5, 24),
    "ERFINV_FAR_F32": (erfinv_far("4.2"), 4, 24),
    "GAMMA_F32": (GAMMA, 8, 24, "pair"),
    "STIRLING_F32": (stirling_fit(12), 2, 24),
    "EXP_F64": (EXP, 11, 53),
    "EXPM1_F64": (EXPM1_CUBE, 10, 53),
    "LOG_F64": (LOGF, 7, 53),
    "SIN_F64": (sin_fit(Q4D), 6, 53),
    "COS_F64": (cos_fit(Q4D), 6, 53),
    "TANH_F64": (tanh_fit("1.0"), 16, 53),
    "ERF_F64": (erf_fit("1.0"), 12, 53),
    "ERFQ_F64": (erfq_fit("5.95"), 19, 53),
    "POW_F64": (POWF, 9, 53),
    "ERFC_F64": (erfc_fit("0.65", "27.3", 3, 1.25), 22, 53, "pair"),
    "ERFINV_F64": (ERFINV, 8, 53),
    "ERFINV_FAR_F64": (erfinv_far("6.1"), 11, 53),
    "GAMMA_F64": (GAMMA, 15, 53, "pair"),
    "STIRLING_F64": (stirling_fit(24), 4, 53),
    "TAN_F64": (odd_fit(mp.tan, "0.7862"), 15, 53),
    "ASIN_F64": (odd_fit(mp.asin, "0.5"), 13, 53),
    "ATAN_F64": (odd_fit(mp.atan, "0.4143"), 11, 53),
    "SINH_F64": (odd_fit(mp.sinh, "1"), 7, 53),
}


def c_literal(x, bits):
    text = float(x).hex()
    head, exp = text.split("p")
    head = head.rstrip("0") if "." in head else head
    return head.rstrip(".") + "p" + exp + ("f" if bits == 24 else "")


def main(names):
    for name in names or FITS:
        (g, w, lo, hi), n, bits, *pair = FITS[name]
        coefs, err, ideal = fit(g, w, lo, hi, n, bits, 2 * bits if pair else bits)
        if pair:
            high = round_to(coefs[0], bits)
            coefs = [high, round_to(coefs[0] - high, bits), *coefs[1:]]
        log2 = [float(mp.log(e, 2)) for e in (err, ideal)]
        print(f"// {name}: weighted error 2^{log2[0]:.2f} (2^{log2[1]:.2f} unrounded)")
        print("    " + ", ".join(c_literal(c, bits) for c in coefs), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
