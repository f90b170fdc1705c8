"""Functions of each element, and the operators of tensors.

A row has the kernel's name and the dtypes that it takes, as TensorFlow's texts give them. Of two
operands the first tensor fixes the dtype: Python's numbers and arrays become of it, another tensor
must have it. Numbers go to the operation as they are, so that they stay arguments of its program.
"""

from simt._core import torch as C
from simt.keras_backend import math as kmath
from simt.keras_backend import nn
from simt.keras_backend import numpy as knp
from simt.tensorflow import errors
from simt.tensorflow._tensor import (
    FLOATS,
    EagerTensor,
    _cannot,
    convert,
    is_tensor,
    shown,
)
from simt.tensorflow._types import OF_NATIVE

_REAL = "bfloat16, half, float, double"
_MATH = _REAL + ", complex64, complex128"
_SIGNED = _REAL + ", int8, int16, int32, int64, complex64, complex128"
_NN = "half, bfloat16, float, double"
_INTS = "int8, int16, int32, int64, uint8, uint16, uint32, uint64"
_ORDERED = "float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64"
_ANY = ""  # no dtype is refused

UNARY = {
    "abs": ("Abs", _REAL + ", int8, int16, int32, int64", C.abs),
    "sign": ("Sign", _SIGNED, C.sign),
    "negative": ("Neg", _SIGNED, C.neg),
    "round": ("Round", _SIGNED, knp.round),
    "square": (
        "Square",
        _REAL + ", int8, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128",
        C.square,
    ),
    "reciprocal": ("Reciprocal", _SIGNED, C.reciprocal),
    "log_sigmoid": ("Neg", _SIGNED, nn.log_sigmoid),
    "softplus": ("Softplus", _NN, nn.softplus),
    "relu": ("Relu", _ORDERED + ", qint8", lambda x: C.clamp_min(x, 0)),
    "relu6": ("Relu6", _ORDERED, lambda x: C.clamp(x, 0, 6)),
    "silu": ("Sigmoid", _MATH, nn.silu),
    **{n: (n.capitalize(), _NN, getattr(nn, n)) for n in ("elu", "selu", "softsign")},
    **{
        n: (n.capitalize(), _MATH, getattr(C, n))
        for n in (
            "exp log sqrt rsqrt sin cos tan sinh cosh tanh acos asin atan acosh asinh atanh "
            "sigmoid expm1 log1p"
        ).split()
    },
    **{
        n: (n.capitalize(), _REAL, getattr(C, n))
        for n in ("floor", "ceil", "erf", "erfc", "erfinv", "lgamma", "digamma")
    },
    "is_nan": ("IsNan", _REAL, C.isnan),
    "is_inf": ("IsInf", _REAL, C.isinf),
    "is_finite": ("IsFinite", _REAL, C.isfinite),
    "reciprocal_no_nan": (
        "DivNoNan",
        _MATH,
        lambda x: knp.divide_no_nan(knp.ones_like(x), x),
    ),
    "rint": ("Rint", _REAL, knp.round),
    "invert": ("Invert", _INTS, C.bitwise_not),
    "logical_not": ("LogicalNot", _ANY, C.logical_not),
}
UNARY["erfinv"] = ("Erfinv", _REAL, kmath.erfinv)

# Those of tf.nn, whose argument is called `features`.
_OF_FEATURES = {"softplus", "relu", "relu6", "elu", "selu", "softsign"}

# Numbers of Python go to these as they are.
_NUMBERS = {"AddV2", "Sub", "Mul", "Equal", "NotEqual", "Less", "LessEqual", "Greater"}
_NUMBERS |= {"GreaterEqual"}

_ARITHMETIC = _REAL + ", uint8, int8, uint16, int16, int32, int64, complex64, complex128"
_MULTIPLY = _REAL + ", uint8, int8, uint16, int16, int32, uint32, uint64, int64, "
_MULTIPLY += "complex64, complex128"
_LARGER = _REAL + ", int8, uint8, int16, uint16, int32, uint32, int64, uint64"
BINARY = {
    "add": (
        "AddV2",
        _REAL + ", uint8, uint16, uint32, uint64, int8, int16, int32, int64, complex64, complex128",
        C.add,
    ),
    "subtract": ("Sub", _ARITHMETIC + ", uint32, uint64", C.sub),
    "multiply": ("Mul", _MULTIPLY, C.mul),
    "floordiv": ("FloorDiv", _MULTIPLY, knp.floor_divide),
    "floormod": ("FloorMod", _INTS + ", bfloat16, half, float, double", knp.mod),
    "pow": (
        "Pow",
        "bfloat16, float, half, double, int8, int16, int32, int64, complex64, complex128",
        C.pow,
    ),
    "maximum": ("Maximum", _LARGER, C.maximum),
    "minimum": ("Minimum", _LARGER, C.minimum),
    "atan2": ("Atan2", _REAL, C.atan2),
    "equal": ("Equal", _ANY, C.eq),
    "not_equal": ("NotEqual", _ANY, C.ne),
    "less": ("Less", _ORDERED, C.lt),
    "less_equal": ("LessEqual", _ORDERED, C.le),
    "greater": ("Greater", _ORDERED, C.gt),
    "greater_equal": ("GreaterEqual", _ORDERED, C.ge),
    "squared_difference": (
        "SquaredDifference",
        _REAL + ", int32, int64, complex64, complex128",
        lambda x, y: C.square(C.sub(x, y)),
    ),
    "multiply_no_nan": (
        "MulNoNan",
        _MATH,
        lambda x, y: C.where(y == 0, knp.zeros_like(y), C.mul(x, y)),
    ),
    "xlogy": ("Xlogy", _NN, lambda x, y: C.where(x == 0, knp.zeros_like(x), x * C.log(y))),
    "xdivy": ("Xdivy", _NN, lambda x, y: C.where(x == 0, knp.zeros_like(x), x / y)),
    "xlog1py": ("Xlog1py", _NN, lambda x, y: C.where(x == 0, knp.zeros_like(x), x * C.log1p(y))),
    "bitwise_and": ("BitwiseAnd", _INTS, C.bitwise_and),
    "bitwise_or": ("BitwiseOr", _INTS, C.bitwise_or),
    "bitwise_xor": ("BitwiseXor", _INTS, C.bitwise_xor),
    "left_shift": ("LeftShift", _INTS, C.bitwise_left_shift),
    "right_shift": ("RightShift", _INTS, C.bitwise_right_shift),
}


def allow(kernel, allowed, dtype):
    """Refuses a dtype that the kernel does not have."""
    if allowed and errors.kernel_name(dtype) not in allowed.split(", "):
        raise errors.not_allowed(kernel, dtype, allowed)


def unary(name):
    kernel, allowed, op = UNARY[name]
    known = set()

    def apply(x):
        x = convert(x, C.bool if kernel == "LogicalNot" else None)
        if x.dtype not in known:
            allow(kernel, allowed, x.dtype)
            known.add(x.dtype)
        return op(x)

    def of_x(x, name=None):
        return apply(x)

    def of_features(features, name=None):
        return apply(features)

    function = of_features if name in _OF_FEATURES else of_x
    function.__name__ = function.__qualname__ = name
    return function


def _fits(x, dtype):
    """Whether x is a number of Python that may stand for a tensor of the dtype."""
    kind = type(x)
    if kind is int:
        return dtype in FLOATS or (dtype is C.int32 and -(2**31) <= x < 2**31) or dtype is C.int64
    return kind is float and dtype in FLOATS


def operands(kernel, x, y):
    """Both as tensors of one dtype; a number of Python stays one where the kernel takes it."""
    if is_tensor(x):
        x = convert(x)
        if kernel in _NUMBERS and _fits(y, x.dtype):
            return x, y
        if kernel == "AddV2" and type(y) in (float, str, bytes) and x.dtype not in FLOATS:
            got = "string" if type(y) is not float else C.float32
            raise errors.mismatch(kernel, 1, x.dtype, got)
        y = convert(y) if is_tensor(y) else convert(y, x.dtype)
    elif is_tensor(y) and kernel != "AddV2":
        y = convert(y)
        x = convert(x, y.dtype)
    else:
        x = convert(x)
        y = convert(y) if is_tensor(y) or kernel == "AddV2" else convert(y, x.dtype)
    if x.dtype is not y.dtype:
        raise errors.mismatch(kernel, 1, x.dtype, y.dtype)
    return x, y


def check_shapes(kernel, x, y):
    a, b = tuple(x.shape), tuple(y.shape)
    if a != b:
        for n, m in zip(a[::-1], b[::-1], strict=False):
            if n != m and n != 1 and m != 1:
                text = f"Incompatible shapes: {errors.dims(a)} vs. {errors.dims(b)}"
                raise errors.refused(kernel, text)


def binary(name):
    kernel, allowed, op = BINARY[name]
    known = set()

    def function(x, y, name=None):
        x, y = operands(kernel, x, y)
        if x.dtype not in known:
            allow(kernel, allowed, x.dtype)
            known.add(x.dtype)
        if type(y) is C.Tensor:
            check_shapes(kernel, x, y)
        return op(x, y)

    function.__name__ = function.__qualname__ = name
    return function


unary_functions = {name: unary(name) for name in UNARY}
binary_functions = {name: binary(name) for name in BINARY}

# ---- division, powers, logic


def _quotient_dtype(dtype):
    small = (C.int8, C.uint8, C.int16, C.uint16)
    return dtype if dtype in FLOATS else C.float32 if dtype in small else C.float64


def _division(kernel, op):
    """x by y: integers as floating-point numbers, and nothing else of another dtype."""

    def divided(x, y):
        x = convert(x)
        if x.dtype in FLOATS and type(y) in (int, float):
            y = convert(y, x.dtype) if kernel == "DivNoNan" else y
            return op(x, y)
        y = convert(y) if is_tensor(y) or type(y) is float else convert(y, x.dtype)
        if x.dtype is not y.dtype:
            raise TypeError(
                f"`x` and `y` must have the same dtype, got {OF_NATIVE[x.dtype]!r} != "
                f"{OF_NATIVE[y.dtype]!r}."
            )
        check_shapes(kernel, x, y)
        dtype = _quotient_dtype(x.dtype)
        return op(x.to(dtype), y.to(dtype))

    return divided


_quotient = _division("RealDiv", C.div)
_quotient_no_nan = _division("DivNoNan", knp.divide_no_nan)


def atan2(y, x, name=None):
    return _atan2(y, x)


def truediv(x, y, name=None):
    return _quotient(x, y)


def divide(x, y, name=None):
    return _quotient(_like_second(x, y), y)


def divide_no_nan(x, y, name=None):
    return _quotient_no_nan(_like_second(x, y), y)


def _like_second(x, y):
    return convert(x, convert(y).dtype) if is_tensor(y) and not is_tensor(x) else x


def pow(x, y, name=None):
    if is_tensor(x) and type(y) in (int, float):
        x = convert(x)
        if x.dtype in FLOATS:
            return C.pow(x, y)
        if type(y) is float:
            raise _cannot(y, x.dtype)
        if y < 0:
            raise errors.refused("Pow", "Integers to negative integer powers are not allowed")
    return _pow(x, y)


def floordiv(x, y, name=None):
    _check_divisor("FloorDiv", x, y)
    return _floordiv(x, y)


def floormod(x, y, name=None):
    _check_divisor("FloorMod", x, y)
    return _floormod(x, y)


def _check_divisor(kernel, x, y):
    if type(y) is int and y == 0 and convert(x).dtype not in FLOATS:
        raise errors.refused(kernel, "Integer division by zero")


_pow, _floordiv, _floormod, _atan2 = (
    binary_functions[n] for n in ("pow", "floordiv", "floormod", "atan2")
)


def _logical(public_name, kernel, op):
    def function(x, y, name=None):
        x, y = (convert(v) if is_tensor(v) else convert(v, C.bool) for v in (x, y))
        for at, v in enumerate((x, y)):
            if v.dtype is not C.bool:
                raise errors.mismatch(kernel, at, C.bool, v.dtype)
        check_shapes(kernel, x, y)
        return op(x, y)

    function.__name__ = function.__qualname__ = public_name
    return function


logical_and = _logical("logical_and", "LogicalAnd", C.logical_and)
logical_or = _logical("logical_or", "LogicalOr", C.logical_or)
logical_xor = _logical("logical_xor", "LogicalXor", C.logical_xor)
binary_functions |= {
    f.__name__: f
    for f in (
        atan2,
        pow,
        floordiv,
        floormod,
        truediv,
        divide,
        divide_no_nan,
        logical_and,
        logical_or,
        logical_xor,
    )
}
binary_functions["mod"] = floormod

# ---- operators


def _operator(function):
    return lambda self, other: shown(function(self, other))


def _reflected(function):
    # The dtype is the tensor's, of whatever stands on the left.
    return lambda self, other: shown(function(convert(other, self._tensor.dtype), self))


def _bits(logic, bits):
    def function(x, y):
        return (logic if convert(x).dtype is C.bool else bits)(x, y)

    return function


def _compared(function, unequal):
    """== and !=: of shapes that do not go together, the answer is one; nothing equals None."""

    def compared(self, other):
        if other is None:
            return unequal
        other = other if type(other) in (int, float) else _other(self, other)
        if type(other) is C.Tensor:
            try:
                check_shapes("Equal", self._tensor, other)
            except errors.InvalidArgumentError:
                return shown(C.tensor(unequal))
        return shown(function(self, other))

    return compared


def _other(x, y):
    return convert(y) if is_tensor(y) else convert(y, x._tensor.dtype)


_OPERATORS = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "truediv",
    "floordiv": "floordiv",
    "mod": "floormod",
    "pow": "pow",
}
_BITS = {
    "and": _bits(logical_and, binary_functions["bitwise_and"]),
    "or": _bits(logical_or, binary_functions["bitwise_or"]),
    "xor": _bits(logical_xor, binary_functions["bitwise_xor"]),
}


def _add_operators(kind):
    functions = {n: binary_functions[f] for n, f in _OPERATORS.items()} | _BITS
    for name, function in functions.items():
        setattr(kind, f"__{name}__", _operator(function))
        setattr(kind, f"__r{name}__", _reflected(function))
    for name, of in {"lt": "less", "le": "less_equal", "gt": "greater"}.items():
        setattr(kind, f"__{name}__", _operator(binary_functions[of]))
    kind.__ge__ = _operator(binary_functions["greater_equal"])
    kind.__eq__ = _compared(binary_functions["equal"], False)
    kind.__ne__ = _compared(binary_functions["not_equal"], True)
    invert = unary_functions["invert"]
    kind.__neg__ = lambda self: shown(unary_functions["negative"](self))
    kind.__abs__ = lambda self: shown(unary_functions["abs"](self))
    kind.__invert__ = lambda self: shown(
        C.logical_not(self._tensor) if self._tensor.dtype is C.bool else invert(self)
    )


_add_operators(EagerTensor)
