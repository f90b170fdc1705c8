"""autograd.Function: operations with a backward written by the user."""

from simt._core import torch as _C

Tensor = _C.Tensor


class FunctionCtx:
    """What forward leaves for backward."""

    def __init__(self):
        self._saved = ()
        self._skip = ()
        self._dirty = ()
        self.needs_input_grad = ()
        self.materialize_grads = True

    def save_for_backward(self, *tensors):
        self._saved = tuple((t, None if t is None else t._version) for t in tensors)

    @property
    def saved_tensors(self):
        if self._saved is None:
            raise RuntimeError(
                "Trying to backward through the graph a second time (or directly access saved "
                "tensors "
                "after they have already been freed)."
            )
        for t, version in self._saved:
            if t is not None and t._version != version:
                raise RuntimeError(
                    "one of the variables needed for gradient computation has been modified by an "
                    f"inplace operation: [{t.type()} {list(t.shape)}] is at version {t._version}; "
                    f"expected version {version} instead."
                )
        return tuple(t for t, _ in self._saved)

    def mark_non_differentiable(self, *tensors):
        self._skip = tensors

    def mark_dirty(self, *tensors):
        self._dirty = tensors

    def set_materialize_grads(self, value):
        self.materialize_grads = value


class Function:
    """Subclasses have static forward(ctx, ...) and backward(ctx, *grads)."""

    @staticmethod
    def forward(*args, **kwargs):
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function."
        )

    @staticmethod
    def backward(ctx, *grads):
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom "
            "autograd.Function "
            "to use it with backward mode AD."
        )

    @classmethod
    def apply(cls, *args):
        ctx = FunctionCtx()
        ctx.needs_input_grad = tuple(isinstance(a, Tensor) and a.requires_grad for a in args)
        was = _C._set_grad_enabled(False)
        try:
            if cls.__dict__.get("setup_context") is not None:
                out = cls.forward(*args)
                cls.setup_context(ctx, args, out)
            else:
                out = cls.forward(ctx, *args)
        finally:
            _C._set_grad_enabled(was)
        outputs = out if isinstance(out, tuple) else (out,)
        inputs = tuple(a if isinstance(a, Tensor) else None for a in args)
        # an input handed through becomes a tensor of its own
        outputs = tuple(
            o.detach()
            if isinstance(o, Tensor)
            and any(o is a for a in inputs)
            and not any(o is d for d in ctx._dirty)
            else o
            for o in outputs
        )
        shapes = [(o.shape, o.dtype) if isinstance(o, Tensor) else None for o in outputs]

        def run(grads):
            if ctx.materialize_grads:
                grads = tuple(
                    _C._full("full", s[0], 0, s[1], "cpu", False) if g is None and s else g
                    for g, s in zip(grads, shapes, strict=False)
                )
            got = cls.backward(ctx, *grads)
            got = got if isinstance(got, tuple) else (got,)
            while len(got) > len(inputs) and got[-1] is None:
                got = got[:-1]
            return got

        skip = tuple(o for o in outputs if any(o is s for s in ctx._skip))
        _C._make_node(cls.__name__ + "Backward", run, inputs, outputs, skip)
        return outputs if isinstance(out, tuple) else outputs[0]


def once_differentiable(function):
    return function
