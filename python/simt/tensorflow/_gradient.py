"""tf.GradientTape on simt's tape, and tf.custom_gradient."""

import warnings

from keras.src import tree

from simt._core import torch as C
from simt.keras_backend import core
from simt.keras_backend import numpy as knp


class UnconnectedGradients:
    NONE = "none"
    ZERO = "zero"


class GradientTape:
    """Records what is computed from trainable variables (those that are read) and watched tensors.

    Gradients may be asked for once, or, of a persistent tape, again and again.
    """

    def __init__(self, persistent=False, watch_accessed_variables=True):
        self._persistent = persistent
        self._accessed = watch_accessed_variables
        self._wanted = {}  # id -> tensor that wants a gradient
        self._variables = {}  # id of a variable -> its tensor while this tape recorded
        self._scope = None
        self._used = False

    def __enter__(self):
        self._scope = core.recording(self)
        self._scope.__enter__()
        self._before = C._set_grad_enabled(True)
        return self

    def __exit__(self, *error):
        C._set_grad_enabled(self._before)
        self._scope.__exit__(None, None, None)
        self._scope = None
        self._mark(False)

    def _mark(self, on):
        outer = core._state.tapes
        for tensor in self._wanted.values():
            if on or not any(id(tensor) in getattr(t, "_wanted", ()) for t in outer):
                tensor.requires_grad_(on)

    # ---- called by variables that are read or assigned while this tape records

    def watch_variable(self, variable):
        if self._accessed or id(variable) in self._variables:
            self._want(variable._value)
            self._variables.setdefault(id(variable), variable._value)

    def assigned(self, variable, value):
        pass

    def _want(self, tensor):
        if tensor.dtype not in core.FLOATS:
            return
        if not tensor.requires_grad:
            tensor.requires_grad_(True)
        if id(tensor) not in self._wanted and tensor.is_leaf:
            self._wanted[id(tensor)] = tensor

    def watch(self, tensor):
        for x in tree.flatten(tensor):
            if isinstance(x, core.Variable):
                self._variables[id(x)] = x._value
                x = x._value
            if x.dtype not in core.FLOATS:
                warnings.warn(
                    "The dtype of the watched tensor must be floating (e.g. tf.float32), got "
                    f"{core.NAMES[x.dtype]}"
                )
            self._want(x)

    def watched_variables(self):
        return tuple(self._variables)

    def stop_recording(self):
        return _Stopped()

    def reset(self):
        self._wanted.clear()
        self._variables.clear()

    # ---- gradients

    def _source(self, source):
        if isinstance(source, core.Variable):
            return self._variables.get(id(source), source._value)
        return core.convert_to_tensor(source)

    def gradient(self, target, sources, output_gradients=None, unconnected_gradients="none"):
        if self._used and not self._persistent:
            raise RuntimeError(
                "A non-persistent GradientTape can only be used to compute one set of gradients "
                "(or jacobians)"
            )
        self._used = True
        flat = tree.flatten(sources)
        tensors = [self._source(s) for s in flat]
        targets = [core.convert_to_tensor(t) for t in tree.flatten(target)]
        seeds = None
        if output_gradients is not None:
            seeds = [core.convert_to_tensor(g) for g in tree.flatten(output_gradients)]
        found = self._flat_gradients(targets, tensors, seeds)
        if unconnected_gradients == UnconnectedGradients.ZERO:
            found = [
                knp.zeros_like(t) if g is None else g for g, t in zip(found, tensors, strict=True)
            ]
        return tree.pack_sequence_as(sources, found) if tree.is_nested(sources) else found[0]

    def _flat_gradients(self, targets, tensors, seeds):
        pairs = [
            (t, knp.ones_like(t) if seeds is None else seeds[i])
            for i, t in enumerate(targets)
            if t.requires_grad
        ]
        if self._scope is None:
            self._mark(True)
        try:
            wanted = [t for t in tensors if t.requires_grad]
            if not pairs or not wanted:
                return [None] * len(tensors)
            keep = self._persistent or self._scope is not None or bool(core._state.tapes)
            again = bool(core._state.tapes)
            outputs, seeds = zip(*pairs, strict=True)
            found = iter(C._grad(outputs, tuple(wanted), seeds, keep, again, True))
            return [next(found) if t.requires_grad else None for t in tensors]
        finally:
            if self._scope is None:
                self._mark(False)

    def jacobian(
        self, target, sources, unconnected_gradients="none", parallel_iterations=None, **kw
    ):
        """Row by row; tapes that are to give one are persistent, or are made so."""
        persistent, self._persistent = self._persistent, True
        try:
            target = core.convert_to_tensor(target)
            flat = target.reshape(-1)
            rows = []
            for i in range(flat.shape[0]):
                seed = knp.reshape((C._arange(0, flat.shape[0], 1, None) == i), target.shape)
                rows.append(
                    tree.flatten(
                        self.gradient(target, sources, seed.to(target.dtype), unconnected_gradients)
                    )
                )
        finally:
            self._persistent = persistent
        out = [
            None
            if parts[0] is None
            else C.stack(list(parts)).reshape(*target.shape, *parts[0].shape)
            for parts in zip(*rows, strict=True)
        ]
        return tree.pack_sequence_as(sources, out) if tree.is_nested(sources) else out[0]


class _Stopped:
    def __enter__(self):
        self._before = C._set_grad_enabled(False)

    def __exit__(self, *error):
        C._set_grad_enabled(self._before)


def custom_gradient(f):
    """tf.custom_gradient: f returns its value and the function of the gradient."""

    def function(*args, **kwargs):
        def forward(*inputs):
            made, grad = f(*inputs, **kwargs)

            def gradient(*unused, upstream=None):
                found = grad(upstream)
                return tuple(found) if isinstance(found, (list, tuple)) else found

            return made, gradient

        return core.custom_gradient(forward)(*(core.convert_to_tensor(a) for a in args))

    return function


def let_gradients_go_to_numpy():
    """TensorFlow's tensors go to NumPy whether or not a tape recorded them; PyTorch's do not."""
    plain = C.Tensor.numpy

    def numpy(self, *, force=False):
        return plain(self.detach() if self.requires_grad else self, force=force)

    C._add_methods({"numpy": numpy})
