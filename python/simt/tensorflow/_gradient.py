"""tf.GradientTape on simt's tape, and tf.custom_gradient."""

import enum
import functools
import warnings

from keras.src import tree

from simt._core import torch as C
from simt.keras_backend import core
from simt.keras_backend import numpy as knp
from simt.tensorflow._tensor import convert, shown


class UnconnectedGradients(enum.Enum):
    NONE = "none"
    ZERO = "zero"


NONE = UnconnectedGradients.NONE


class GradientTape:
    """Records what is computed from trainable variables (those that are read) and watched tensors.

    Gradients may be asked for once, or, of a persistent tape, again and again.
    """

    def __init__(self, persistent=False, watch_accessed_variables=True):
        self._persistent = persistent
        self._accessed = watch_accessed_variables
        self._wanted = {}  # id -> tensor that wants a gradient
        self._variables = {}  # id of a variable -> its tensor while this tape recorded
        self._read = {}  # id of a variable -> the variable
        self._scope = None
        self._entered = self._used = False

    def __enter__(self):
        self._entered = True
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
            self._read.setdefault(id(variable), variable)

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
            if isinstance(x, core.View):
                x = x._tensor
            if isinstance(x, core.Variable):
                self._variables[id(x)] = x._value
                self._read[id(x)] = x
                x = x._value
            if x.dtype not in core.FLOATS:
                warnings.warn(
                    "The dtype of the watched tensor must be floating (e.g. tf.float32), got "
                    f"tf.{core.NAMES[x.dtype]}"
                )
            self._want(x)

    def watched_variables(self):
        return tuple(self._read.values())

    def stop_recording(self):
        return _Stopped()

    def reset(self):
        self._wanted.clear()
        self._variables.clear()
        self._read.clear()

    # ---- gradients

    def _source(self, source):
        if isinstance(source, core.Variable):
            return self._variables.get(id(source), source._value)
        return convert(source)

    def gradient(self, target, sources, output_gradients=None, unconnected_gradients=NONE):
        return shown(self._gradient(target, sources, output_gradients, unconnected_gradients))

    def _gradient(self, target, sources, output_gradients, unconnected_gradients):
        if not self._entered or (self._used and not self._persistent):
            raise RuntimeError(
                "A non-persistent GradientTape can only be used to compute one set of gradients "
                "(or jacobians)"
            )
        self._used = True
        flat = tree.flatten(sources)
        tensors = [self._source(s) for s in flat]
        targets = [convert(t) for t in tree.flatten(target)]
        seeds = None
        if output_gradients is not None:
            seeds = [
                convert(g, t.dtype)
                for g, t in zip(tree.flatten(output_gradients), targets, strict=True)
            ]
        found = self._flat_gradients(targets, tensors, seeds)
        if UnconnectedGradients(unconnected_gradients) is UnconnectedGradients.ZERO:
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
        self,
        target,
        sources,
        unconnected_gradients=NONE,
        parallel_iterations=None,
        experimental_use_pfor=True,
    ):
        """Row by row; tapes that are to give one are persistent, or are made so."""
        target = convert(target)
        flat = target.reshape(-1)
        rows = self._rows(
            target, sources, [self._seed(flat, i, target) for i in range(flat.shape[0])]
        )
        out = [
            None if parts[0] is None else C.stack(parts).reshape(*target.shape, *parts[0].shape)
            for parts in rows
        ]
        return shown(tree.pack_sequence_as(sources, out) if tree.is_nested(sources) else out[0])

    def batch_jacobian(
        self,
        target,
        source,
        unconnected_gradients=NONE,
        parallel_iterations=None,
        experimental_use_pfor=True,
    ):
        """The jacobians of each of a batch, whose rows do not depend on each other."""
        target, count = convert(target), convert(source).shape[0]
        flat = target.reshape(count, -1)
        seeds = [
            (C._arange(0, flat.shape[1], 1, None) == i).to(target.dtype).expand(flat.shape)
            for i in range(flat.shape[1])
        ]
        (parts,) = self._rows(target, source, [s.reshape(target.shape) for s in seeds])
        made = C.stack(parts, 1)
        return shown(made.reshape(*target.shape, *made.shape[2:]))

    @staticmethod
    def _seed(flat, at, target):
        one = (C._arange(0, flat.shape[0], 1, None) == at).to(target.dtype)
        return one.reshape(tuple(target.shape))

    def _rows(self, target, sources, seeds):
        """For each source the list of its gradients, one for each seed."""
        persistent, self._persistent = self._persistent, True
        try:
            rows = [tree.flatten(self._gradient(target, sources, s, NONE)) for s in seeds]
        finally:
            self._persistent = persistent
        return [list(parts) for parts in zip(*rows, strict=True)]


class _Stopped:
    def __enter__(self):
        self._before = C._set_grad_enabled(False)

    def __exit__(self, *error):
        C._set_grad_enabled(self._before)


def custom_gradient(f=None):
    """tf.custom_gradient: f returns its value and the function of the gradient."""

    @functools.wraps(f)
    def function(*args, **kwargs):
        def forward(*inputs):
            made, grad = f(*map(shown, inputs), **kwargs)

            def gradient(*unused, upstream=None):
                found = grad(*map(shown, upstream if isinstance(upstream, tuple) else (upstream,)))
                many = isinstance(found, (list, tuple))
                return tuple(convert(g) for g in found) if many else convert(found)

            made = tuple(map(convert, made)) if isinstance(made, (list, tuple)) else convert(made)
            return made, gradient

        return shown(core.custom_gradient(forward)(*(convert(a) for a in args)))

    return function


def let_gradients_go_to_numpy():
    """TensorFlow's tensors go to NumPy whether or not a tape recorded them; PyTorch's do not."""
    plain = C.Tensor.numpy

    def numpy(self, *, force=False):
        return plain(self.detach() if self.requires_grad else self, force=force)

    C._add_methods({"numpy": numpy})
