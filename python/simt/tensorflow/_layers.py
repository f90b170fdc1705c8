"""Where Keras meets its user: what layers, losses, metrics, variables and keras.ops give is shown
as tensors of tf, and `call` of the user's own layers gets such. Inside Keras they stay as they are.
"""

import functools
import threading

import keras
from keras.src.layers.layer import Layer
from keras.src.losses.loss import Loss
from keras.src.metrics.metric import Metric

from simt._core import torch as C
from simt.keras_backend import core
from simt.keras_backend.trainer import SimtTrainer
from simt.tensorflow._tensor import shown


class _Where(threading.local):
    user = True  # whether what is called now is called by code of the user's


_where = _Where()


_STEPS = ("train_step", "test_step", "predict_step")


def _of_keras(kind):
    return kind.__module__.partition(".")[0] == "keras"


def _giving(plain, give):
    """A method of Keras's that gives the user what `give` makes of its result."""

    @functools.wraps(plain)
    def method(self, *args, **kwargs):
        user = _where.user
        _where.user = not _of_keras(type(self))
        try:
            made = plain(self, *args, **kwargs)
        finally:
            _where.user = user
        return give(made) if user else made

    return method


def _with_mask(made):
    view = shown(made)
    mask = getattr(made, "_keras_mask", None) if type(made) is C.Tensor else None
    if mask is not None:
        view._keras_mask = mask
    return view


def _own_methods(cls):
    """A class of the user's: what Keras calls of it is given tensors of tf."""
    if _of_keras(cls):
        return
    for name in ("call", *_STEPS):
        if callable(cls.__dict__.get(name)):
            setattr(cls, name, _given_views(cls.__dict__[name]))


def _given_views(method):
    @functools.wraps(method)
    def given(self, *args, **kwargs):
        user, _where.user = _where.user, True
        try:
            return method(self, *map(shown, args), **{k: shown(v) for k, v in kwargs.items()})
        finally:
            _where.user = user

    return given


def _inside(plain):
    """A step of Keras's own: what it calls gives tensors as they are."""

    @functools.wraps(plain)
    def step(self, *args, **kwargs):
        user, _where.user = _where.user, False
        try:
            return plain(self, *args, **kwargs)
        finally:
            _where.user = user

    return step


def _show_operators(kind):
    for name in (
        "neg pos abs invert eq ne lt le gt ge add radd sub rsub mul rmul truediv rtruediv floordiv "
        "rfloordiv mod rmod pow rpow matmul rmatmul and rand or ror xor rxor getitem"
    ).split():
        plain = getattr(kind, f"__{name}__", None)
        if plain is not None:
            setattr(kind, f"__{name}__", _shown_operator(plain))


def _shown_operator(plain):
    @functools.wraps(plain)
    def operator(self, *other):
        made = plain(self, *other)
        return shown(made) if _where.user else made

    return operator


def _show_module(module):
    for name, value in list(vars(module).items()):
        if callable(value) and getattr(value, "__module__", "").startswith("keras.src.ops"):
            setattr(module, name, _shown_function(value))


def _shown_function(plain):
    @functools.wraps(plain)
    def function(*args, **kwargs):
        return shown(plain(*args, **kwargs))

    return function


def show_tensors():
    """Done once, when tf is imported."""
    Layer.__call__ = _giving(Layer.__call__, _with_mask)
    Loss.__call__ = _giving(Loss.__call__, shown)
    for kind in _kinds(Metric):
        if "result" in vars(kind):
            kind.result = _giving(kind.result, shown)

    def __init_subclass__(cls, **kwargs):
        super(Layer, cls).__init_subclass__(**kwargs)
        _own_methods(cls)

    Layer.__init_subclass__ = classmethod(__init_subclass__)
    for name in _STEPS:
        setattr(SimtTrainer, name, _inside(getattr(SimtTrainer, name)))
    _show_operators(core.Variable)
    for module in (keras.ops, keras._tf_keras.keras.ops):
        for part in (
            module,
            *(getattr(module, n, None) for n in ("nn", "numpy", "linalg", "image")),
        ):
            if part is not None:
                _show_module(part)


def _kinds(kind):
    out = [kind]
    for sub in kind.__subclasses__():
        out += _kinds(sub)
    return out
