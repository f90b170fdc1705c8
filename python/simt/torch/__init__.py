"""simt.torch: PyTorch's interface on simt's arrays.

The work is in simt._core.torch (C); what is here converts arguments and gives names. Submodules
load on first use, and NumPy only when an array of it is asked for.
"""

from simt._core import torch as _C
from simt._missing import module_hooks as _module_hooks

__version__ = "2.9.0+simt"

globals().update({_k: _v for _k, _v in _C.__dict__.items() if _k[0] != "_"})

from simt.torch import _tensor as _tensor_methods  # noqa: E402, F401 (adds methods to Tensor)
from simt.torch._creation import *  # noqa: E402, F403
from simt.torch._functions import *  # noqa: E402, F403
from simt.torch.autograd.grad_mode import (  # noqa: E402, F401
    enable_grad,
    inference_mode,
    no_grad,
    set_grad_enabled,
)

inf = 1e999
nan = inf - inf
pi = 3.141592653589793
e = 2.718281828459045
newaxis = None
strided = "torch.strided"
contiguous_format = "torch.contiguous_format"
channels_last = "torch.channels_last"
preserve_format = "torch.preserve_format"

from simt.torch import cuda  # noqa: E402, F401


def _typename(value):
    """How error texts name a value's type."""
    if isinstance(value, Tensor):  # noqa: F405
        return value.type()
    kind = type(value)
    module = kind.__module__
    return kind.__qualname__ if module == "builtins" else f"{module}.{kind.__qualname__}"


def _from_bytes(data, dtype, shape):
    """A tensor from little-endian C-order bytes."""
    return _C._from_bytes(data, dtype, tuple(shape))


_LAZY = (
    "autograd",
    "backends",
    "cuda",
    "hub",
    "jit",
    "linalg",
    "nn",
    "optim",
    "random",
    "serialization",
    "utils",
)
_getattr, __dir__ = _module_hooks(globals(), lazy=_LAZY)


def __getattr__(name):
    if name in ("save", "load"):
        from simt.torch import serialization

        return getattr(serialization, name)
    if name == "set_printoptions":
        from simt.torch._tensor_str import set_printoptions

        return set_printoptions
    if name in _TYPED:
        return _typed_tensor(name)
    return _getattr(name)


_TYPED = {
    "FloatTensor": "float32",
    "DoubleTensor": "float64",
    "HalfTensor": "float16",
    "BFloat16Tensor": "bfloat16",
    "LongTensor": "int64",
    "IntTensor": "int32",
    "ShortTensor": "int16",
    "ByteTensor": "uint8",
    "CharTensor": "int8",
    "BoolTensor": "bool",
}


class _TensorType(type):
    """The class of torch.FloatTensor and its kin: calling one makes a tensor of its dtype, and
    tensors of that dtype are its instances."""

    def __instancecheck__(cls, value):
        return isinstance(value, Tensor) and value.dtype is cls.dtype  # noqa: F405

    def __call__(cls, *args, size=None, device=None):
        import builtins

        args = args if size is None else (_C.Size(size),)
        if not args:
            return _C.tensor([], dtype=cls.dtype, device=device)
        first = args[0]
        if isinstance(first, Tensor):  # noqa: F405
            if first.dtype is not cls.dtype:
                raise TypeError(
                    f"new(): expected a tensor of {cls.dtype}, but got one of {first.dtype}"
                )
            return first.detach()
        if isinstance(first, (builtins.bool, builtins.float)):
            raise TypeError(f"new(): data must be a sequence (got {type(first).__name__})")
        if isinstance(first, (_C.Size, builtins.int)):
            return empty(*args, dtype=cls.dtype, device=device)  # noqa: F405
        if len(args) > 1:
            raise TypeError("new(): sizes must be integers")
        return _C.tensor(first, device=device).to(cls.dtype)


def _typed_tensor(name):
    """torch.FloatTensor and kin."""
    values = {"dtype": getattr(_C, _TYPED[name]), "__module__": "torch"}
    return globals().setdefault(name, _TensorType(name, (), values))
