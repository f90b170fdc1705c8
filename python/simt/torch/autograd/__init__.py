"""torch.autograd: gradients asked for, modes, functions defined in Python."""

from simt._core import torch as _C
from simt._missing import module_hooks as _module_hooks
from simt.torch.autograd.grad_mode import (  # noqa: F401
    enable_grad,
    inference_mode,
    no_grad,
    set_grad_enabled,
)


class _VariableType(type):
    def __instancecheck__(cls, value):
        return isinstance(value, _C.Tensor)

    def __call__(cls, data=None, requires_grad=False, volatile=False):
        if data is None:
            data = _C.tensor([])
        if not isinstance(data, _C.Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        made = data.detach()
        return made.requires_grad_() if requires_grad else made


class Variable(metaclass=_VariableType):
    """What tensors with gradients were called: makes a tensor that shares data's memory."""


def _tuple(x):
    return (x,) if isinstance(x, _C.Tensor) else tuple(x)


def _seeds(grads, n):
    if grads is None:
        return (None,) * n
    grads = _tuple(grads)
    if len(grads) != n:
        raise RuntimeError(f"got {n} tensors and {len(grads)} gradients")
    return grads


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, inputs=None):
    tensors = _tuple(tensors)
    if inputs is not None:
        if len(tensors) != 1:
            raise NotImplementedError("backward(inputs=) of several tensors: not in simt yet")
        seed = _seeds(grad_tensors, 1)[0]
        tensors[0].backward(seed, retain_graph, create_graph, inputs)
        return
    keep = create_graph if retain_graph is None else retain_graph
    _C._grad(tensors, None, _seeds(grad_tensors, len(tensors)), keep, create_graph, False)


def grad(
    outputs,
    inputs,
    grad_outputs=None,
    retain_graph=None,
    create_graph=False,
    only_inputs=True,
    allow_unused=None,
    is_grads_batched=False,
    materialize_grads=False,
):
    outputs, inputs = _tuple(outputs), _tuple(inputs)
    keep = create_graph if retain_graph is None else retain_graph
    unused = bool(allow_unused) or materialize_grads
    out = _C._grad(outputs, inputs, _seeds(grad_outputs, len(outputs)), keep, create_graph, unused)
    if materialize_grads:
        from simt.torch import zeros_like

        out = tuple(zeros_like(x) if g is None else g for g, x in zip(out, inputs, strict=False))
    return out


class set_detect_anomaly:
    """From now on, or in a with statement: backward() looks at each gradient, and one with a NaN
    raises RuntimeError that names its function."""

    def __init__(self, mode=True, check_nan=True):
        self._before = _C._set_anomaly(mode and check_nan)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        _C._set_anomaly(self._before)


class detect_anomaly:
    """set_detect_anomaly for a with statement."""

    def __init__(self, check_nan=True):
        import warnings

        self._check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should "
            "only be enabled for debugging.",
            stacklevel=2,
        )

    def __enter__(self):
        self._before = _C._set_anomaly(self._check_nan)

    def __exit__(self, *unused):
        _C._set_anomaly(self._before)


__getattr__, __dir__ = _module_hooks(
    globals(), lazy=("function", "functional", "grad_mode", "gradcheck")
)


def __getattr__(name, _next=__getattr__):
    if name == "Function":
        from simt.torch.autograd.function import Function

        return Function
    if name in ("gradcheck",):
        from simt.torch.autograd.gradcheck import gradcheck

        return gradcheck
    return _next(name)
