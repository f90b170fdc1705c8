"""What is asked of Numba's typing: expressions over operands of every type, and values of them.

Shared by tools/record_numba.py (asks the real Numba, writes numba_typing.json) and
tests/python/test_numba_typing.py (asks simt). Types are written as one letter each, so that the
table of an operator is a list of short strings: a row per left operand, a letter per right operand.
"""

import itertools
import random
from pathlib import Path

import numpy as np

RECORDED = Path(__file__).with_name("numba_typing.json")

# letter -> Numba's name; ERROR: Numba refuses the expression
TYPES = {
    "?": "bool",
    "b": "int8",
    "h": "int16",
    "i": "int32",
    "q": "int64",
    "B": "uint8",
    "H": "uint16",
    "I": "uint32",
    "Q": "uint64",
    "e": "float16",
    "f": "float32",
    "d": "float64",
    "F": "complex64",
    "D": "complex128",
}
ERROR = "-"
OTHER = "o"  # something else: a tuple, None, a type of its own
VARIABLES = "".join(TYPES)
# Literals follow rules of their own (x ** 2); the large one does not fit int64.
LITERALS = {"2": "2", "M": "9223372036854775808", "r": "2.0", "J": "2j", "T": "True"}
OPERANDS = VARIABLES + "".join(LITERALS)
FEW = "?biqBIQfdFD2r"  # for functions of two arguments

BINARY = "+ - * / // % ** << >> & | ^ == != < <= > >= and or".split()
UNARY = {"-": "-{}", "+": "+{}", "~": "~{}", "not": "not {}"}
BUILTINS = ["abs", "round", "int", "float", "bool", "complex"]
CASTS = ["np." + n for n in TYPES.values() if n != "bool"] + ["np.bool_"]
MATH = (
    "acos acosh asin asinh atan atanh ceil cos cosh degrees erf erfc exp expm1 fabs floor gamma "
    "isfinite isinf isnan lgamma log log10 log1p log2 radians sin sinh sqrt tan tanh trunc"
).split()
CMATH = (
    "acos acosh asin asinh atan atanh cos cosh exp isfinite isinf isnan log log10 phase polar sin "
    "sinh sqrt tan tanh"
).split()
UFUNCS = (
    "negative absolute fabs rint sign conjugate exp exp2 log log2 log10 expm1 log1p sqrt square "
    "reciprocal sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh deg2rad "
    "rad2deg floor ceil trunc isfinite isinf isnan signbit invert logical_not"
).split()
BITS = ["cuda.popc", "cuda.clz", "cuda.ffs", "cuda.brev", "cuda.cbrt"]
ONE_ARGUMENT = (
    BUILTINS
    + CASTS
    + ["math." + n for n in MATH]
    + ["cmath." + n for n in CMATH]
    + ["np." + n for n in UFUNCS]
    + BITS
)
TWO_MATH = "atan2 hypot pow fmod copysign ldexp gcd remainder".split()
TWO_UFUNCS = (
    "add subtract multiply divide floor_divide remainder fmod power arctan2 hypot logaddexp "
    "maximum minimum fmax fmin copysign nextafter greater less equal logical_and logical_or "
    "logical_xor bitwise_and bitwise_or bitwise_xor left_shift right_shift"
).split()
TWO_ARGUMENTS = (
    ["min", "max", "pow", "divmod", "round", "complex"]
    + ["math." + n for n in TWO_MATH]
    + ["np." + n for n in TWO_UFUNCS]
)


def spelled(letter, name):
    """How an expression writes the operand: a variable or the literal."""
    return LITERALS.get(letter, name)


def binary_expression(op, a, b):
    return f"{spelled(a, 'a')} {op} {spelled(b, 'b')}"


def call_expression(function, *operands):
    names = "abc"
    return f"{function}({', '.join(spelled(x, names[i]) for i, x in enumerate(operands))})"


UNIFY = """
def f(a, b, flag):
    if flag:
        x = {a}
    else:
        x = {b}
    return x
"""

# Statements whose last assignment to x gives the type asked for; a, b, c are variables.
STATEMENTS = {
    "loop sum from 0": "x = 0\nfor k in range(3):\n    x += a",
    "loop sum from 0.0": "x = 0.0\nfor k in range(3):\n    x += a",
    "loop product from 1": "x = 1\nfor k in range(3):\n    x *= a",
    "add to itself": "x = a\nx += a",
    "assigned again": "x = 1.5\nx = a",
    "divided in a loop": "x = a\nfor k in range(3):\n    x = x / 2",
    "halved in a loop": "x = a\nwhile x > 1:\n    x //= 2",
    "before a later assignment": "y = a\nx = y // 2\ny = 2.5",
    "range of it": "for x in range(a):\n    pass",
    "range from 0 to it": "for x in range(0, a):\n    pass",
    "range with a step": "for x in range(0, a, 2):\n    pass",
    "range down": "for x in range(a, 0, -1):\n    pass",
    "conditional with 0": "x = a if a > 1 else 0",
    "conditional with 0.0": "x = a if a > 1 else 0.0",
    "chained": "x = y = a",
    "tuple": "x, y = a, 1",
    "swap": "x = 1.0\ny = a\nx, y = y, x",
    "power 2": "x = a ** 2",
    "power 3": "x = a ** 3",
    "power -1": "x = a ** -1",
    "power 2.0": "x = a ** 2.0",
    "power 0.5": "x = a ** 0.5",
    "real part": "x = a.real",
    "imaginary part": "x = a.imag",
    "conjugate": "x = a.conjugate()",
    "min of three": "x = min(a, 1, 2)",
    "max with a float": "x = max(a, 2.5)",
    "abs": "x = abs(a)",
    "int of half": "x = int(a / 2)",
    "round to digits": "x = round(a, 2)",
    "quotient of divmod": "x, y = divmod(a, 3)",
    "remainder of divmod": "y, x = divmod(a, 3)",
}
RANGES = ["range({a}, {b})", "range(0, {a}, {b})"]

# Where values of a variable meet: functions of a, b, flag and n (3) whose result is x.
MEETINGS = """
# before an if
y = a
x = y // 2
if flag:
    y = b
# after an if
x = a
if flag:
    x = b
# product after an if
y = a
if flag:
    y = b
x = y * y
# quotient after an if
y = a
if flag:
    y = b
x = y // 3
# both branches
if flag:
    y = a
else:
    y = b
x = y * 3
# inside a branch
y = a
x = a
if flag:
    y = b
    x = y // 2
# three ways
if n == 1:
    x = a
elif flag:
    x = b
else:
    x = 1
# nested ifs
x = a
if flag:
    x = x + a
    if n > 1:
        x = b
# two ifs
y = a
if flag:
    y = b
x = y
if n > 5:
    y = 2.5
# a parameter
if flag:
    a = b
x = a
# a parameter before
x = a // 2
if flag:
    a = b
# bool or number
x = a
if flag:
    x = n > 2
# conditional
y = a if flag else b
x = y * y
# and, or
x = a and b or a
# walrus
if (x := a) == a and flag:
    x = b
# only in the branch
if flag:
    x = a
    x = x + b
# sum in a loop
x = a
for k in range(n):
    x = x + b
# sum in an if
x = a
if flag:
    x += b
# sum from 0
x = 0
for k in range(n):
    x += a * b
# last round's
y = a
x = a
for k in range(n):
    x = y
    y = b
# half of last round's
y = a
x = a
for k in range(n):
    x = y // 2
    y = b
# of this round
x = a
for k in range(n):
    y = a
    x = y // 2
    y = b
# a temporary
x = a
for k in range(n):
    t = a
    t = t // 2
    x = t
    t = b
# in some rounds
t = a
x = a
for k in range(n):
    if k == 1:
        t = b
    x = t // 2
# after break
x = a
for k in range(n):
    if flag:
        x = b
        break
# before break
x = a
for k in range(n):
    y = x
    if flag:
        break
    x = b
x = y
# after continue
y = a
x = a
for k in range(n):
    x = y * 2
    if flag:
        y = b
        continue
    y = a
# loop's else
for k in range(n):
    if flag:
        x = a
        break
else:
    x = b
# while
x = a
k = 0
while k < n:
    x = x * b
    k += 1
# while true
x = a
k = 0
while True:
    if k == n:
        break
    x = b
    k += 1
# swaps
x = a
y = b
for k in range(n):
    x, y = y, x
# fibonacci
x = a
y = b
for k in range(n):
    x, y = y, x + y
# two loops
x = a
for j in range(n):
    for k in range(n):
        x = x + b
# inner loop
for j in range(n):
    y = a
    for k in range(n):
        y = y + b
    x = y
# before the inner loop
y = a
x = a
for j in range(n):
    x = y
    for k in range(n):
        y = y + b
# before the loop
y = a
x = y // 2
for k in range(n):
    y = b
# after the loop
y = a
for k in range(n):
    y = b
x = y * y
# after the loop, again
x = a
for k in range(n):
    x = x + b
x = a
# the counter
x = a
for x in range(n):
    pass
# the counter, again
for x in range(n):
    x = a
# largest
x = a
for k in range(n):
    x = max(x, b)
# tuples
t = (a, b)
if flag:
    t = (b, a)
x = t[0]
# tuples before
t = (a, b)
x = t[0]
if flag:
    t = (b, a)
# tuples in a loop
t = (a, b)
for k in range(n):
    t = (t[1], t[0])
x = t[1]
# tuple or number, dead
y = (a, b)
if flag:
    y = b
x = a
# tuple or number, new
x = (a, b)
if flag:
    x = b
x = a
# tuple or number
y = (a, b)
if flag:
    y = b
x = y
# tuples of two lengths
y = (a, b)
if flag:
    y = (a, b, a)
x = y[0]
# tuple or number in turns
x = a
for k in range(n):
    t = a
    x = t
    t = (a, b)
# None, dead
y = None
if flag:
    y = a
x = b
# None or number
y = None
if flag:
    y = a
x = b if y is None else a
# None, then used
y = None
if flag:
    y = a
x = b
if y is not None:
    x = y + b
# array or number, dead
y = cuda.local.array(2, np.float32)
if flag:
    y = a
x = b
# array, then number
x = cuda.local.array(2, np.float32)
x[0] = 1
x = a
# two arrays
y = cuda.local.array(2, np.float32)
if flag:
    y = cuda.local.array(3, np.float32)
y[0] = 1
x = a
# arrays of two types
y = cuda.local.array(2, np.float32)
if flag:
    y = cuda.local.array(2, np.int32)
y[0] = 1
x = a
"""
MEETINGS = {
    name: text.strip() for name, _, text in (m.partition("\n") for m in MEETINGS.split("# ")[1:])
}
MEETING_TYPES = "?iqQfdD"
MEETING_VALUES = ["qd", "dq", "qi", "iq", "qQ", "Qq", "?q", "q?", "fd", "iI", "qD", "if"]


def meeting_source(text):
    body = "\n".join("    " + line for line in text.splitlines())
    return f"def f(a, b, flag, n):\n{body}\n    return x\n"


def meeting_arguments(pair, flag):
    """a, b, flag, n: integers are large, so that it shows in which type they are multiplied."""
    large = {"?": 1, "i": 2**31 - 5, "I": 2**32 - 3, "q": 2**62 - 1, "Q": 2**64 - 5}
    a, b = (np.dtype(t).type(large.get(t, 2.75)) for t in pair)
    return a, b, flag, np.int64(3)


def statement_source(text):
    body = "\n".join("    " + line for line in text.splitlines())
    return f"def f(a):\n{body}\n    return x\n"


# ---- values ----

VALUE_TYPES = "?biqBIQfdD"
ONE_TYPES = "?bhiqBHIQfdFD"
VALUE_BINARY = [op for op in BINARY if op not in ("and", "or")]
# Of one operand: operators, casts, functions that are exact or nearly so, and two of them in turn.
CASTS_OF = "?bhiqBHIQfdFD"
VALUE_ONE = (
    ["-{}", "+{}", "~{}", "not {}"]
    + ["abs({})", "bool({})", "round({})", "int({})", "float({})", "complex({})"]
    + ["np.bool_({})" if t == "?" else f"np.{TYPES[t]}({{}})" for t in CASTS_OF]
    + ["{}.real", "{}.imag", "{}.conjugate()"]
    + [f"math.{n}({{}})" for n in "fabs floor ceil trunc isnan isinf isfinite sqrt exp".split()]
    + [
        f"np.{n}({{}})"
        for n in (
            "negative absolute fabs invert sign square conjugate logical_not signbit isnan isinf "
            "isfinite floor ceil trunc rint sqrt reciprocal"
        ).split()
    ]
    + ["-(-{})", "~(-{})", "-(~{})", "abs(-{})", "-abs({})", "(-{}) >> 1", "(~{}) // 3"]
    + ["(-{}) % 7", "float(-{})", "np.float32(~{})", "-np.int8({})", "~np.uint16({})"]
    + ["np.int64(-np.uint8({}))", "np.uint64(-{})", "(-{}) * 0.5", "-{0} == -({0})", "-{} > 0"]
)
VALUE_TWO = ["min", "max", "divmod0", "divmod1"]


def value_expression(op):
    if op in VALUE_BINARY:
        return f"a {op} b"
    return f"divmod(a, b)[{op[-1]}]" if op.startswith("divmod") else f"{op}(a, b)"


def _numbers(letter, rng):
    """Ten operands of a type: the edges and some at random."""
    dtype = np.dtype(letter)
    if letter == "?":
        return [bool(k % 2) for k in range(10)]
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        low, high = int(info.min), int(info.max)
        edges = [0, 1, high, low, 2, 7]
        if low < 0:
            edges[4] = -1
        return edges + [rng.randint(low, high), rng.randint(max(low, -99), 99), 3, max(low, -7)]
    edges = [0.0, 1.0, -1.0, 2.5, -2.5, 1e10, -0.0, 0.1]
    edges += [rng.uniform(-100, 100), rng.uniform(-3, 3)]
    if dtype.kind == "c":
        rng.shuffle(edges)
        return [complex(x, edges[-1 - i]) for i, x in enumerate(edges)]
    return [float(dtype.type(x)) for x in edges]


def value_pairs(op, a, b, count=6):
    """`count` operand pairs for an operator on two types, the same every time; NumPy scalars.

    Left out: what Numba leaves undefined (shifts by the width and more, the least integer divided
    by -1) or what differs with the target's pow.
    """
    rng = random.Random(f"{op} {a} {b}")
    pairs = list(itertools.product(_numbers(a, rng), _numbers(b, rng)))
    rng.shuffle(pairs)
    out = []
    if op.startswith("divmod") and "Q" in (a, b) and not {a, b} <= set("?BIQfd"):
        return out  # Numba's divmod of mixed signs goes by float64
    if op in ("<<", ">>", "&", "|", "^") and not {a, b} <= set("?biqBIQ"):
        return out
    for x, y in pairs:
        if op in ("<<", ">>") and not 0 <= int(y) < 8:
            continue
        if op in ("/", "//", "%", "divmod0", "divmod1"):
            if y == -1 and b in "biq":
                continue
            if "D" in (a, b) and y == 0:
                continue
        if op == "**" and (abs(y) > 9 or (a in "fdD" or b in "fdD") and abs(x) > 1e4):
            continue
        if op == "**" and x == 0 and (complex(y).real < 0 or isinstance(y, complex)):
            continue
        if op == "**" and b in "biq" and y < 0:
            continue
        out.append((x, y))
        if len(out) == count:
            break
    return out


def truncated_range(expression):
    """The largest magnitude that an expression's casts of floats to integers take, or None."""
    ranges = {"math.floor": 2.0**53, "math.ceil": 2.0**53, "math.trunc": 2.0**53}
    ranges |= {"round(": 2.0**53, "int(": 2.0**53, "np.int64": 2.0**53, "np.uint64": 2.0**53}
    ranges |= {"np.int32": 2.0**31 - 1, "np.uint32": 2.0**32 - 1, "np.int16": 2.0**15 - 1}
    ranges |= {"np.uint16": 2.0**16 - 1, "np.int8": 127.0, "np.uint8": 255.0}
    found = [bound for name, bound in ranges.items() if expression.startswith(name)]
    found += [
        b for name, b in ranges.items() if f"-{name}(" in expression or f"~{name}(" in expression
    ]
    return min(found, default=None)


def value_singles(expression, a):
    """Operands for an expression of one: the edges, some at random; floats also not finite.

    Left out: floats that an integer type does not hold, which each machine converts in its own way;
    the least integers, whose absolute value is none; what divides integers by zero.
    """
    rng = random.Random(f"{expression} {a}")
    numbers = _numbers(a, rng)
    bound = truncated_range(expression)
    if a in "fd":
        numbers += [0.5, 1.5, -0.5, 2.5, -3.5, 1e9]
        if bound is None:
            numbers += [float("inf"), float("-inf"), float("nan"), 1e-40]
    if expression.startswith(("round(", "math.")):  # by way of float64 in Numba
        numbers = [x for x in numbers if abs(x) < 2**53]
    if a in "fdFD" and bound is not None:
        numbers = [x for x in numbers if abs(x) <= bound]
        if "np.uint" in expression or "~np.uint" in expression:
            numbers = [x for x in numbers if isinstance(x, complex) or x >= 0]
    if a in "fd" and "np.uint64(-" in expression:
        numbers = [x for x in numbers if -1e9 <= x <= 0]
    if a in "biqhBHIQ" and "reciprocal" in expression:
        numbers = [x for x in numbers if x != 0]
    if a in "fd" and "math.sqrt" in expression:
        numbers = [x for x in numbers if x >= 0]
    if "abs" in expression and a in "bhiq":
        numbers = [x for x in numbers if x != np.iinfo(np.dtype(a)).min]
    return numbers


def result_text(value):
    """A result so that JSON keeps every bit: numbers as they are, the rest as text."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, complex | np.complexfloating):
        return [result_text(value.real), result_text(value.imag)]
    value = float(value)
    return value if np.isfinite(value) else repr(value)


def result_value(text):
    if isinstance(text, list):
        return complex(result_value(text[0]), result_value(text[1]))
    return float(text) if isinstance(text, str) else text
