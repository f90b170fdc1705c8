"""tf.debugging: assertions; placement, of which there is one."""

from simt._core import torch as _C
from simt._missing import module_hooks as _module_hooks
from simt.keras_backend import core as _core
from simt.tensorflow import _elementwise as _e
from simt.tensorflow import errors as _errors
from simt.tensorflow._tensor import FLOATS as _FLOATS
from simt.tensorflow._tensor import convert as _convert
from simt.tensorflow._tensor import is_tensor as _is_tensor
from simt.tensorflow._types import TensorShape as _TensorShape

_log = False


def set_log_device_placement(enabled):
    """Taken and kept: there is one device."""
    global _log
    _log = bool(enabled)


def get_log_device_placement():
    return _log


def _fail(message, *lines):
    raise _errors.InvalidArgumentError(
        None, None, "\n".join([*([message] if message else []), *lines])
    )


def _first(name, x):
    flat = _core.convert_to_numpy(_convert(x)).reshape(-1)
    return f"First {min(3, flat.size)} elements of {name}:", str(flat[:3])


def _comparison(name, sign):
    op = _e.binary_functions[name]

    def check(x, y, message=None, summarize=None, name=None):
        if not bool(op(x, y).all().item()):
            _fail(message, f"Condition x {sign} y did not hold.", *_first("x", x), *_first("y", y))

    check.__name__ = check.__qualname__ = "assert_" + name
    return check


assert_equal = _comparison("equal", "==")
assert_greater = _comparison("greater", ">")
assert_greater_equal = _comparison("greater_equal", ">=")
assert_less = _comparison("less", "<")
assert_less_equal = _comparison("less_equal", "<=")


def assert_none_equal(x, y, summarize=None, message=None, name=None):
    if not bool(_e.binary_functions["not_equal"](x, y).all().item()):
        _fail(message, "Condition x != y did not hold.", *_first("x", x), *_first("y", y))


def _sign(name, sign, op):
    def check(x, message=None, summarize=None, name=None):
        if not bool(op(_convert(x)).all().item()):
            _fail(message, "", f"Condition x {sign} 0 did not hold element-wise:", *_first("x", x))

    check.__name__ = check.__qualname__ = "assert_" + name
    return check


assert_positive = _sign("positive", ">", lambda x: x > 0)
assert_negative = _sign("negative", "<", lambda x: x < 0)
assert_non_negative = _sign("non_negative", ">=", lambda x: x >= 0)
assert_non_positive = _sign("non_positive", "<=", lambda x: x <= 0)


def assert_near(x, y, rtol=None, atol=None, message=None, summarize=None, name=None):
    x = _convert(x)
    y = _convert(y) if _is_tensor(y) else _convert(y, x.dtype)
    eps = {_C.float64: 2.220446049250313e-15, _C.float16: 9.765625e-3}.get(x.dtype, 1.1920929e-6)
    rtol, atol = (eps if v is None else v for v in (rtol, atol))
    if not bool((_C.abs(x - y) <= atol + rtol * _C.abs(y)).all().item()):
        text = f"x and y not equal to tolerance rtol = {rtol}, atol = {atol}"
        _fail(message, text, *_first("x", x), *_first("y", y))


def check_numerics(tensor, message, name=None):
    tensor = _convert(tensor)
    nan, inf = bool(_C.isnan(tensor).any().item()), bool(_C.isinf(tensor).any().item())
    if nan or inf:
        what = "NaN and Inf" if nan and inf else "NaN" if nan else "Inf"
        raise _errors.refused("CheckNumerics", f"{message} : Tensor had {what} values")
    return tensor


def assert_all_finite(x, message, name=None):
    return check_numerics(x, message)


def assert_rank(x, rank, message=None, name=None):
    x = _convert(x)
    if x.dim() != int(rank):
        raise ValueError(
            f"{message + '.  ' if message else ''}Tensor  must have rank {int(rank)}.  Received "
            f"rank {x.dim()}, shape {tuple(x.shape)}"
        )


def assert_rank_at_least(x, rank, message=None, name=None):
    x = _convert(x)
    if x.dim() < int(rank):
        raise ValueError(
            f"{message + '.  ' if message else ''}Tensor must have rank at least {int(rank)}.  "
            f"Received rank {x.dim()}, shape {tuple(x.shape)}"
        )


def assert_shapes(shapes, data=None, summarize=None, message=None, name=None):
    known = {}
    for x, wanted in shapes.items() if isinstance(shapes, dict) else shapes:
        have = tuple(_convert(x).shape)
        wanted = tuple(wanted) if isinstance(wanted, (tuple, list, str)) else (wanted,)
        if len(have) != len(wanted):
            raise ValueError(f"Tensor of shape {have} must have rank {len(wanted)}")
        for at, (n, w) in enumerate(zip(have, wanted, strict=True)):
            if isinstance(w, str) and not w.isdigit():
                w = known.setdefault(w, n)
            if w is not None and int(w) != n:
                raise ValueError(
                    f"{message or ''}Tensor of shape {have}: dimension {at} must have size {w}"
                )


def assert_type(tensor, tf_type, message=None, name=None):
    from simt.tensorflow._types import OF_NATIVE, as_dtype

    have = OF_NATIVE[_convert(tensor).dtype]
    if have != as_dtype(tf_type):
        raise TypeError(
            f"{message or ''} tensor must be of type {as_dtype(tf_type)!s}; got {have!s}"
        )


def assert_same_float_dtype(tensors=None, dtype=None):
    from simt.tensorflow._types import as_dtype

    for x in tensors or ():
        if _convert(x).dtype not in _FLOATS:
            raise ValueError("Expected floating point type")
    return as_dtype(dtype or "float32")


def Assert(condition, data, summarize=None, name=None):
    if not bool(_convert(condition).item()):
        rows = [str(_core.convert_to_numpy(_convert(d))) if _is_tensor(d) else str(d) for d in data]
        _fail(None, "Expected 'True' to be true. Summarized data: " + "\n".join(rows))


def assert_scalar(tensor, message=None, name=None):
    tensor = _convert(tensor)
    if tensor.dim():
        raise ValueError(
            f"{message or ''}Expected scalar shape, saw shape: {_TensorShape(tuple(tensor.shape))}."
        )
    return tensor


def is_numeric_tensor(tensor):
    return _is_tensor(tensor) and _convert(tensor).dtype is not _C.bool


def enable_check_numerics(stack_height_limit=30, path_length_limit=50):
    raise NotImplementedError(
        "tf.debugging.enable_check_numerics: not in simt yet; nearest is "
        "tf.debugging.check_numerics"
    )


__getattr__, __dir__ = _module_hooks(globals())
