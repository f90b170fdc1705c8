"""simt.tensorflow: what programs around Keras use of TensorFlow, on simt's tensors.

tf.keras is stock Keras on simt's backend (simt.keras), in the view of it that Keras has for
TensorFlow. Everything is eager.
"""

import sys as _sys
from importlib.machinery import ModuleSpec as _ModuleSpec

import simt.keras as _hook  # noqa: F401 (before keras)
from simt._missing import module_hooks as _module_hooks

__version__ = "2.21.0+simt"

_KERAS = "simt.tensorflow.keras"


class _KerasLoader:
    """tensorflow.keras.x is the module keras._tf_keras.keras.x itself."""

    @staticmethod
    def create_module(spec):
        import importlib

        module = importlib.import_module("keras._tf_keras.keras" + spec.name[len(_KERAS) :])
        spec.loader_state = (module.__spec__, module.__loader__)
        return module

    @staticmethod
    def exec_module(module):
        # importlib has put its own marks on the module: it is known by its first name.
        module.__spec__, module.__loader__ = module.__spec__.loader_state
        module.__package__ = module.__spec__.parent
        import simt.tensorflow._face  # noqa: F401 (layers that are written now get tensors of tf)


class _KerasFinder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != _KERAS and not name.startswith(_KERAS + "."):
            return None
        from importlib.machinery import PathFinder

        if name != _KERAS:
            last = name.rpartition(".")[2]
            if PathFinder.find_spec("keras._tf_keras.keras." + last, path) is None:
                return None
        return _ModuleSpec(name, _KerasLoader, is_package=True)


if _KerasFinder not in _sys.meta_path:
    _sys.meta_path.insert(0, _KerasFinder)

_LAZY = (
    "bitwise",
    "config",
    "data",
    "debugging",
    "dtypes",
    "errors",
    "image",
    "io",
    "linalg",
    "math",
    "nest",
    "nn",
    "random",
    "strings",
    "test",
    "train",
)
_getattr, _names = _module_hooks(globals(), lazy=_LAZY)


def __getattr__(name):
    if name == "keras":
        import importlib

        return importlib.import_module(_KERAS)
    if name[0] != "_" and name not in _LAZY:
        from simt.tensorflow._face import TOP

        if "Tensor" not in globals():
            globals().update(TOP)
        if name in TOP:
            return TOP[name]
    return _getattr(name)


def __dir__():
    from simt.tensorflow._face import TOP

    return sorted({*_names(), *TOP, "keras"})
