"""One operand, of every type: operators, casts and functions, by each way that makes a value.

The values are Numba's (tests/conformance/numba_typing.json), of NumPy's functions NumPy's own.
"""

import itertools

import numpy as np
import pytest
from numba_face import cuda
from numba_source import load
from simt.numba.core.errors import NumbaError
from test_numba_typing import RECORDED, SCALARS, check_values, rules, type_of

SIGNED = rules.TYPES | {"?": "boolean"}  # as signatures have them

# How a value of one operand comes to be: `{}` is the expression, `a` its operand, T its type.
WAYS = {
    "in the kernel": None,
    "returned": "@cuda.jit(device=True)\ndef f(a):\n    return {}\n",
    "in a tuple": "def g(a):\n    return (0.5, {}, a)\ndef f(a):\n    return g(a)[1]\n",
    "declared": "@cuda.jit('T(S)', device=True)\ndef f(a):\n    return {}\n",
    "declared, as it is": "@cuda.jit('T(T)', device=True)\ndef g(a):\n    return a\n"
    "def f(a):\n    return g({})\n",
    "at the end of two ways": "def f(a):\n    if a == a:\n        return {}\n    return {}\n",
}


def is_refused(expression, a):
    """What simt refuses, as NumPy does; and where Numba's sign is wrong or its NaN another."""
    return (
        (a == "?" and ("np.negative" in expression or "np.sign" in expression))
        or (a in "BHIQFD" and "np.sign" in expression)
        or (a == "?" and "reciprocal" in expression)
    )


def is_exact(expression, a):
    return not (
        "exp" in expression or a in "FD" and ("sqrt" in expression or "recip" in expression)
    )


def one_operand_cases(expression):
    """(type, its values, type of the result, the results) as Numba has them."""
    for a, row in RECORDED["values"]["one"][expression].items():
        if not isinstance(row, str) and not is_refused(expression, a):
            yield a, rules.value_singles(expression, a), row[0], row[1:]


@pytest.mark.parametrize("way", WAYS)
def test_values_of_one_operand(way):
    """Operators, casts, functions, two of them in turn; half of them by each way."""
    sources, cases, near = "import math\nimport numpy as np\n", [], []
    for expression in rules.VALUE_ONE if WAYS[way] is None else rules.VALUE_ONE[::2]:
        for a, values, result, expected in one_operand_cases(expression):
            name = f"f{len(cases)}_{len(near)}"
            text = WAYS[way]
            if text is not None:
                text = text.replace("{}", expression.format("a"))
                text = text.replace("'T(T)'", f"'{SIGNED[result]}({SIGNED[result]})'")
                text = text.replace("'T(S)'", f"'{SIGNED[result]}({SIGNED[a]})'")
                text = text.replace(" f(a)", f" {name}(a)").replace(" g(", f" {name}_g(")
                sources += text
            call = expression.replace("{}", "{0}") if text is None else name + "({0})"
            rough = not is_exact(expression, a)
            (near if rough else cases).append((call, result, [(a, values)], expected))
    check_values(cases, exact=True, head=sources)
    check_values(near, exact=False, head=sources)


@pytest.mark.parametrize("expression", ["-{}", "abs(-{})", "np.int8({})"])
def test_types_are_functions_too(expression):
    cases = [
        (expression.replace("np.", "types.").replace("{}", "{0}"), result, [(a, values)], expected)
        for a, values, result, expected in one_operand_cases(expression)
    ]
    check_values(cases, exact=True, head="from simt.numba import types\n")


TYPED = {"A": np.int8(-128), "B": np.uint8(3), "C": np.int16(-32768), "D": np.uint32(3)}


def test_typed_constants():
    texts = ["-A", "~A", "-B", "~B", "-C", "-D", "~D >> 1", "abs(-B)", "-(-A)", "-np.uint8(3)"]
    source = "import numpy as np\n@cuda.jit\ndef kernel(out):\n"
    source += "".join(f"    out[{k}] = {text}\n" for k, text in enumerate(texts))
    out = np.zeros(len(texts))
    load(source, cuda=cuda, **TYPED)["kernel"][1, 1](out)
    big = 2**32
    expected = [-128, 127, 253, 252, -32768, big - 3, (big - 4) // 2, 253, 128, 253]
    assert out.tolist() == expected


def test_half_precision():
    """Against NumPy: njit has no float16."""
    texts = [
        "-{}",
        "+{}",
        "abs({})",
        "not {}",
        "bool({})",
        "float({})",
        "np.float32({})",
        "int({})",
    ]
    texts += ["round({})", "-(-{})", "np.float16(-{}) * np.float64(2)", "-{}.real"]
    x = np.array([0, -0.0, 1.5, -2.5, 65504, 6e-8, 0.1], np.float16)
    names, cases = {"np": np}, []
    for text in texts:
        with np.errstate(all="ignore"):
            expected = [float(eval(text.format("v"), {"v": v, **names})) for v in x]
        cases.append((text.replace("{}", "{0}"), "d", [("e", x.tolist())], expected))
    check_values(cases, True, "import numpy as np\n")


# ---- calls of declared functions ----


def samples(letter, to):
    """Numbers of a type that the other one holds, or that wrap."""
    dtype, target = np.dtype(letter), np.dtype(to)
    if letter == "?":
        return [False, True]
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        numbers = [0, 1, 7, 100, info.max, max(info.min, -3), info.min]
        return [x for x in numbers if to != "e" or abs(x) < 60000]
    numbers = [0.0, 1.0, 2.75, 100.5, -2.5]
    numbers = [x for x in numbers if target.kind != "u" or x >= 0]
    return [complex(x, 1.5) for x in numbers] if dtype.kind == "c" else numbers


@pytest.mark.parametrize("place", ["argument", "result"])
def test_declared_types_convert(place):
    """Arguments and results become the declared types; what cannot be converted is refused."""
    cases, head, refused = [], "", []
    for s, source in SIGNED.items():
        for d, target in SIGNED.items():
            name = f"to_{target}_of_{source}"
            inner = target if place == "argument" else source
            text = f"@cuda.jit('{target}({inner})', device=True)\ndef {name}(a):\n    return a\n"
            if np.dtype(s).kind == "c" and np.dtype(d).kind != "c":
                refused.append((text, name, s))
                continue
            head += text
            values = np.array(samples(s, d), s)
            with np.errstate(all="ignore"):
                expected = [v.item() for v in values.astype(d)]
            cases.append((name + "({0})", d, [(s, values.tolist())], expected))
    check_values([(t, d, o, [rules.result_text(x) for x in e]) for t, d, o, e in cases], True, head)
    for text, name, s in refused:
        text += f"@cuda.jit\ndef kernel(v):\n    {name}(v)\n"
        kernel = load(text, cuda=cuda)["kernel"]
        with pytest.raises(NumbaError, match=f"{name} (has no signature|returns complex)"):
            kernel[1, 1](np.dtype(s).type(1))


def best_of(i, j, k):
    """Of declared types i and j the one that Numba chooses for type k; None: neither."""
    first, second = RECORDED["values"]["conversions"][k][i], RECORDED["values"]["conversions"][k][j]
    order = "epsu" + rules.ERROR
    if first == second == rules.ERROR:
        return None
    return j if order.index(second) < order.index(first) else i


LETTERS = list(rules.TYPES)


def test_the_signature_of_least_conversions():
    """For each pair of declared types and each type of argument."""
    head, calls, expected = "", [], []
    for i, j in itertools.permutations(range(len(LETTERS)), 2):
        name = f"choose{i}_{j}"
        head += f"@cuda.jit(['({SIGNED[LETTERS[i]]},)', '({SIGNED[LETTERS[j]]},)'], device=True)\n"
        head += f"def {name}(x):\n    return type_of(x)\n"
        for k in range(len(LETTERS)):
            if best_of(i, j, k) is not None:
                calls.append(f"{name}(v{k})")
                expected.append(LETTERS[best_of(i, j, k)])
    names = ", ".join(f"v{k}" for k in range(len(LETTERS)))
    source = head + f"@cuda.jit\ndef kernel(out, {names}):\n"
    source += "".join(f"    out[{k}] = {call}\n" for k, call in enumerate(calls))
    out = np.zeros(len(calls), np.int64)
    values = [np.dtype(t).type(1) for t in LETTERS]
    load(source, cuda=cuda, type_of=type_of())["kernel"][1, 1](out, *values)
    found = [SCALARS[k] for k in out]
    wrong = [(c, f, e) for c, f, e in zip(calls, found, expected, strict=True) if f != e]
    assert not wrong, wrong[:20]


def test_the_signature_of_least_conversions_at_a_launch():
    source = "def kernel(out, x):\n    out[0] = type_of(x)\n"
    function = load(source, cuda=cuda, type_of=type_of())["kernel"]
    out, wrong = np.zeros(1, np.int64), []
    for i, j in itertools.permutations([LETTERS.index(t) for t in "?bqIefdD"], 2):
        both = [f"(int64[::1], {SIGNED[LETTERS[k]]})" for k in (i, j)]
        kernel = cuda.jit(both)(function)
        for k, letter in enumerate(LETTERS):
            value = np.dtype(letter).type(1)
            if best_of(i, j, k) is None:
                with pytest.raises(TypeError, match="No matching definition"):
                    kernel[1, 1](out, value)
                continue
            kernel[1, 1](out, value)
            if SCALARS[out[0]] != LETTERS[best_of(i, j, k)]:
                wrong.append((both, letter, SCALARS[out[0]]))
    assert not wrong, wrong[:20]


DECLARED = """
@cuda.jit("float64(float64[:], int64)", device=True)
def at(a, i):
    return a[i]

@cuda.jit(["int64(int64, int64)", "float64(float64, float64)"], device=True)
def add(a, b=7):
    return a + b

@cuda.jit("(Tuple((float32, int64)),)", device=True)
def halved(t):
    return t[0] / 2, t[1] // 2

@cuda.jit("int64(float64[::1])", device=True)
def dense(a):
    return a.size

@cuda.jit("void(float64[:], int32)", device=True)
def put(a, v):
    a[0] = v

@cuda.jit
def kernel(a, out):
    near = cuda.local.array(3, np.float64)
    near[2] = 8.5
    out[0] = at(a, np.uint8(2)) + at(a[::2], 1) + at(near, 2)
    out[1] = add(2, 3) + add(2.5, 3)
    out[2] = add(np.int8(5)) + add(1, b=1)
    t = halved((1, np.int16(7)))
    out[3] = t[0] + t[1]
    out[4] = dense(a[1:])
    put(a, 3.75)
    out[5] = a[0]

@cuda.jit
def wrong_layout(a, out):
    out[0] = dense(a[::2])

@cuda.jit
def wrong_number(a, out):
    out[0] = at(a)
"""


def test_arrays_tuples_and_defaults_of_declared_functions():
    made = load(DECLARED, cuda=cuda, np=np)
    a, out = np.arange(6.0), np.zeros(6)
    made["kernel"][1, 1](a, out)
    assert out.tolist() == [2 + 2 + 8.5, 5 + 5.5, 12 + 2, 3.5, 5, 3]
    with pytest.raises(NumbaError, match=r"dense has no signature for \(array\(float64, 1d, A\)\)"):
        made["wrong_layout"][1, 1](a, out)
    with pytest.raises(NumbaError, match="argument 'i' is missing"):
        made["wrong_number"][1, 1](a, out)


# ---- NumPy's functions of integers are NumPy's ----

ONE = "negative positive absolute invert square sign floor ceil trunc conjugate".split()
TWO = "add subtract multiply maximum minimum fmod remainder bitwise_and bitwise_xor".split()
INTEGERS = "bhiqBHIQ"


def test_numpy_of_integers():
    cases = []
    for a in INTEGERS:
        low, high = np.iinfo(a).min, np.iinfo(a).max
        x = np.array([low, high, 3, low + 5, 7, high - 2], a)
        for name in ONE:
            want = getattr(np, name)(x)
            cases.append((f"np.{name}({{0}})", want.dtype.char, [(a, x.tolist())], want.tolist()))
        for b in INTEGERS[INTEGERS.index(a) % 2 :: 2] + a:
            info = np.iinfo(b)
            y = np.array([3, info.max, info.max - 4, 5, max(info.min, -7), 2], b)
            for name in TWO:
                try:
                    with np.errstate(all="ignore"):
                        want = getattr(np, name)(x, y)
                except TypeError:  # bits of int64 and uint64
                    continue
                if want.dtype.kind not in "iu":
                    continue
                operands = [(a, x.tolist()), (b, y.tolist())]
                text = f"np.{name}({{0}}, {{1}})"
                cases.append((text, want.dtype.char, operands, want.tolist()))
    check_values(cases, True, "import numpy as np\n")
