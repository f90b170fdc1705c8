"""simt.keras: makes simt the backend of Keras. Import it before keras.

    import simt.keras                   # `simt run` and simt.alias do the same
    import keras                        # stock Keras; its backend() is "simt"

Keras chooses its backend in six places, by name. As Keras is imported, a finder in front of
sys.meta_path adds ours to each, and gives six layers of words ours for what they ask of TensorFlow:
the text of the place must be there exactly once, so that another version of Keras is refused rather
than half patched. KERAS_BACKEND set to another name wins, with
one line on stderr.

For Keras's own probing, libraries that are faces of simt (`import tensorflow` under `simt run`)
are not there: Keras would take them for the real ones.
"""

import os
import sys
from importlib.machinery import PathFinder, SourceFileLoader

from simt._missing import KERAS_VERSIONS


def _branch(where, line):
    """A branch for simt before numpy's in a chain of elifs."""
    anchor = f'elif {where}() == "numpy":\n'
    return ((anchor, f'elif {where}() == "simt":\n    {line}\n{anchor}'),)


def _words(*more):
    """For a layer of words, which Keras writes against TensorFlow: text.py instead."""
    return (
        (
            "from keras.src.utils.module_utils import tensorflow as tf\n",
            "from simt.keras_backend import text as tf\n",
        ),
        *more,
    )


_UTILS = ("import tf_utils\n", "import tf_utils; from simt.keras_backend import text as tf_utils\n")
_BACKEND = (
    "from keras.src.backend import tensorflow as tf_backend",
    "from simt.keras_backend import text as tf_backend",
)


# Module of Keras -> pairs: text that must be there once, what stands there instead.
PATCHES = {
    "keras.src.backend.config": (
        (
            'if "KERAS_BACKEND" in os.environ:\n',
            '_BACKEND = "simt"\nif "KERAS_BACKEND" in os.environ:\n',
        ),
    ),
    "keras.src.backend": _branch(
        "backend",
        "from simt.keras_backend import *  # noqa: F403\n"
        "    from simt.keras_backend.core import Variable as BackendVariable\n"
        "    distribution_lib = None",
    ),
    "keras.src.layers.layer": _branch(
        "backend.backend", "from simt.keras_backend.layer import SimtLayer as BackendLayer"
    ),
    "keras.src.models.model": _branch(
        "backend.backend", "from simt.keras_backend.trainer import SimtTrainer as Trainer"
    ),
    "keras.src.export.saved_model": _branch(
        "backend.backend",
        "from simt.keras_backend.export import (\n"
        "        SimtExportArchive as BackendSavedModelExportArchive,\n    )",
    ),
    "keras.src.utils.backend_utils": (
        (
            '        if self._backend == "tensorflow":\n',
            '        if self._backend == "simt":\n'
            "            return getattr(backend_module, name)\n"
            '        if self._backend == "tensorflow":\n',
        ),
    ),
    "keras.src.layers.preprocessing.hashed_crossing": _words(_UTILS, _BACKEND),
    "keras.src.layers.preprocessing.hashing": _words(_UTILS, _BACKEND),
    "keras.src.layers.preprocessing.index_lookup": _words(_UTILS, _BACKEND),
    "keras.src.layers.preprocessing.integer_lookup": _words(),
    "keras.src.layers.preprocessing.string_lookup": _words(),
    "keras.src.layers.preprocessing.text_vectorization": _words(_UTILS),
}


class _Loader(SourceFileLoader):
    """Loads a module of Keras with its patch; the bytecode is kept under a name of its own."""

    def get_data(self, path):
        return super().get_data(path if path == self.path else _cache_name(path))

    def set_data(self, path, data, **kw):
        super().set_data(_cache_name(path), data, **kw)

    def source_to_code(self, data, path, **kw):
        return super().source_to_code(_patched(self.name, data), path, **kw)


def _cache_name(path):
    """Where the bytecode of a patched module is: not where Python looks for the plain one."""
    from zlib import crc32

    stem, dot, ending = path.rpartition(".")
    return f"{stem}.simt-{crc32(repr(PATCHES).encode()):08x}{dot}{ending}"


def _patched(name, data):
    """The tree of the module with its patch, every line under the number it has in the file."""
    import ast

    patched, added, first = data, 0, 0
    for anchor, replacement in PATCHES[name]:
        found = data.count(anchor.encode())
        if found != 1:
            raise ImportError(
                f"simt {_own_version()} cannot be the backend of Keras {_keras_version()}: its "
                f"module {name} has {found} places that read {anchor.strip()!r}, not one; simt "
                f"works with Keras {KERAS_VERSIONS} (KERAS_BACKEND=... chooses another backend)",
                name=name,
            )
        if replacement.count("\n") > anchor.count("\n"):  # one pair of a module at most
            first = data[: data.index(anchor.encode())].count(b"\n") + 1
            added = replacement.count("\n") - anchor.count("\n")
        patched = patched.replace(anchor.encode(), replacement.encode())
    tree = ast.parse(patched)
    for node in ast.walk(tree) if added else ():
        for place in ("lineno", "end_lineno"):
            line = getattr(node, place, None)
            if line is not None and line > first:
                setattr(node, place, max(line - added, first))
    return tree


class _Probes(SourceFileLoader):
    """Loads Keras's lazy modules; those that are faces of ours are not there for it."""

    def exec_module(self, module):
        super().exec_module(module)
        for lazy in (module.tensorflow, module.gfile, module.jax):
            lazy.initialize = _probe(lazy, lazy.initialize)
        # Keras asks this of whatever `import tensorflow` has given; of ours the answer is known.
        module.tensorflow.executing_eagerly = _eagerly(module.tensorflow)


def _probe(lazy, initialize):
    def probe():
        if _is_face(lazy.name.partition(".")[0]):
            raise ImportError(lazy.import_error_msg)
        initialize()

    return probe


def _eagerly(lazy):
    def executing_eagerly():
        if _is_face("tensorflow"):
            return True
        lazy.initialize()
        return lazy.module.executing_eagerly()

    return executing_eagerly


def _is_face(name):
    """Whether `import name` gives a module of simt."""
    module = sys.modules.get(name)
    if module is not None:
        return getattr(module, "__name__", "").startswith("simt.")
    from simt import alias

    return name in alias.answered()


class _Datasets(SourceFileLoader):
    """Loads a module of keras.datasets, whose load_data then looks for files by our rules."""

    def exec_module(self, module):
        super().exec_module(module)
        from simt.keras_backend import datasets

        datasets.take_over(module)


_LOADERS = {
    "keras.src.utils.module_utils": _Probes,
    "keras.src.datasets.mnist": _Datasets,
    "keras.src.datasets.fashion_mnist": _Datasets,
}


class _Finder:
    """Finds the modules of Keras that are patched; all others are Python's own affair."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        kind = _Loader if name in PATCHES else _LOADERS.get(name)
        if kind is None:
            return None
        spec = PathFinder.find_spec(name, path)
        if spec is None or not isinstance(spec.loader, SourceFileLoader):
            return spec
        spec.loader = kind(spec.loader.name, spec.loader.path)
        return spec


def _own_version():
    from simt import __version__

    return __version__


def _keras_version():
    from simt.alias import find_real

    found = find_real("keras")
    return found[1] or "of an unknown version" if found else "?"


def install():
    """Puts the finder in place; True when Keras will run on simt.

    Raises:
        RuntimeError: Keras is imported already, with another backend.
    """
    chosen = os.environ.get("KERAS_BACKEND")
    if chosen and chosen != "simt":
        print(f"simt.keras: KERAS_BACKEND={chosen} is set: Keras runs on it", file=sys.stderr)
        return False
    if _Finder in sys.meta_path:
        return True
    config = sys.modules.get("keras.src.backend.config")
    if config is not None:
        raise RuntimeError(
            f"simt.keras: Keras is imported already (its backend is {config.backend()}); "
            "import simt.keras before the first import of keras"
        )
    sys.meta_path.insert(0, _Finder)
    return True


install()
