"""tf.errors, and the texts of TensorFlow's kernels."""

from simt._missing import module_hooks as _module_hooks

# The names of dtypes in texts of kernels.
_KERNEL_NAMES = {"float16": "half", "float32": "float", "float64": "double"}


class OpError(Exception):
    """The base of all: what a kernel refuses."""

    _code = 2

    def __init__(self, node_def, op, message, *args):
        super().__init__()
        self._node_def, self._op, self._message = node_def, op, message

    message = property(lambda self: self._message)
    op = property(lambda self: self._op)
    node_def = property(lambda self: self._node_def)
    error_code = property(lambda self: self._code)

    def __str__(self):
        return self._message

    def __reduce__(self):
        return type(self), (self._node_def, self._op, self._message)


_CODES = {
    "Cancelled": 1,
    "Unknown": 2,
    "InvalidArgument": 3,
    "DeadlineExceeded": 4,
    "NotFound": 5,
    "AlreadyExists": 6,
    "PermissionDenied": 7,
    "ResourceExhausted": 8,
    "FailedPrecondition": 9,
    "Aborted": 10,
    "OutOfRange": 11,
    "Unimplemented": 12,
    "Internal": 13,
    "Unavailable": 14,
    "DataLoss": 15,
    "Unauthenticated": 16,
}
for _name, _code in _CODES.items():
    globals()[_name + "Error"] = type(
        _name + "Error", (OpError,), {"_code": _code, "__module__": __name__}
    )


def kernel_name(dtype):
    """A dtype as kernels write it: float32 is float."""
    name = str(dtype).removeprefix("torch.")
    return _KERNEL_NAMES.get(name, name)


def refused(op, text, name=" name: ", form=None):
    """The error of a kernel that got operands of shapes or values that it cannot take."""
    where = f"{{{{function_node __wrapped__{form or op}_device_{DEVICE}}}}}"
    return InvalidArgumentError(None, op, f"{where} {text} [Op:{op}]{name}")  # noqa: F821


def mismatch(op, at, wanted, got, name=""):
    """The error for an operand of another dtype than the first one's."""
    return InvalidArgumentError(  # noqa: F821
        None,
        op,
        f"cannot compute {op} as input #{at}(zero-based) was expected to be a "
        f"{kernel_name(wanted)} tensor but is a {kernel_name(got)} tensor [Op:{op}] name: {name}",
    )


def not_allowed(op, dtype, allowed, attr="T"):
    """The error for a dtype that a kernel does not have."""
    return InvalidArgumentError(  # noqa: F821
        None,
        op,
        f"Value for attr '{attr}' of {kernel_name(dtype)} is not in the list of allowed values: "
        f"{allowed}\n\t; NodeDef: {{{{node {op}}}}} [Op:{op}] name: ",
    )


DEVICE = "/job:localhost/replica:0/task:0/device:CPU:0"


def dims(shape):
    """A shape as kernels write it: [2,3]."""
    return "[" + ",".join(str(n) for n in shape) + "]"


__getattr__, __dir__ = _module_hooks(globals())
