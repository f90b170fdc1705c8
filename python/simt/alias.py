"""Makes `import torch` mean `simt.torch`, for programs that are to run unmodified.

    import simt.alias
    simt.alias.install()                # a notebook's first cell; `simt run` does the same
    import torch                        # torch is simt.torch, torch.nn is simt.torch.nn

A finder in front of sys.meta_path answers for the names in NAMES: those simt has are the very
module objects of simt; those it does not have yet raise ModuleNotFoundError that says so. Child
processes (fork, spawn, forkserver, subprocess) follow through two environment variables: PYTHONPATH
names the folder _site, whose sitecustomize installs what SIMT_ALIAS lists.
"""

import os
import sys
from importlib.machinery import ModuleSpec, PathFinder

from simt._missing import INSTEAD, hint, is_there, mirrored, module_not_found

# All top-level names we answer for.
NAMES = ("cupy", "cupyx", "numba", "torch", "torchvision", "tensorflow", "keras")

VARIABLE = "SIMT_ALIAS"
_SITE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_site")


def available():
    """The names of NAMES that simt has."""
    return tuple(n for n in NAMES if is_there(n))


class _Loader:
    """Loads `torch.x` by importing `simt.torch.x` and putting that very module under both names."""

    @staticmethod
    def create_module(spec):
        return None  # importlib's own empty module; exec_module replaces it

    @staticmethod
    def exec_module(module):
        name = module.__name__
        sys.modules[name] = _our_module(name)


def _our_module(name):
    """The module of simt that stands behind name."""
    ours = "simt." + name
    __import__(ours.rpartition(".")[0])
    if ours not in sys.modules:
        # A face may offer a submodule as an attribute only.
        parent = sys.modules[ours.rpartition(".")[0]]
        child = parent.__dict__.get(ours.rpartition(".")[2])
        if isinstance(child, type(sys)):
            return child
        __import__(ours)
    return sys.modules[ours]


class _Finder:
    """The finder in front of sys.meta_path. names: what it answers for."""

    def __init__(self, names):
        self.names = frozenset(names)

    def find_spec(self, name, path=None, target=None):
        root, _, rest = name.partition(".")
        if root not in self.names:
            return None
        if root == "keras":
            return _stock_keras(name)
        # importlib.util.find_spec asks whether there is one: that is no error.
        importing = sys._getframe(2).f_code.co_name == "_find_and_load_unlocked"
        if not is_there(root):
            if importing:
                raise _not_yet(root, name)
            return None
        location = None
        if rest:
            if not _has(name):
                if importing:
                    raise module_not_found("simt." + name)
                return None
            location = getattr(sys.modules.get("simt." + name), "__path__", None)
        else:
            package = os.path.join(os.path.dirname(_SITE), root)
            location = [package] if os.path.isdir(package) else None
        spec = ModuleSpec(name, _Loader, origin="simt", is_package=location is not None)
        if location is not None:
            spec.submodule_search_locations = list(location)
        return spec


def _stock_keras(name):
    """Keras is the stock one, on our backend: whoever looks for it puts the backend in place."""
    if name == "keras" and PathFinder.find_spec(name) is None:
        if sys._getframe(3).f_code.co_name == "_find_and_load_unlocked":
            raise ModuleNotFoundError(
                "No module named 'keras': simt runs the stock one; pip install 'simt[keras]'",
                name=name,
            )
        return None
    import simt.keras  # noqa: F401 (its finder answers from now on)

    return None


def _has(name):
    """Whether simt has the submodule name ('torch.nn'); its parent has been imported already."""
    ours = "simt." + name
    if ours in sys.modules:
        return True
    parent = sys.modules.get(ours.rpartition(".")[0])
    last = name.rpartition(".")[2]
    if parent is None:
        return False
    if isinstance(parent.__dict__.get(last), type(sys)):
        return True
    path = getattr(parent, "__path__", [])
    found = (f.find_spec(ours, path) for f in sys.meta_path if hasattr(f, "find_spec"))
    spec = next((s for s in found if s is not None), None)
    return spec is not None and spec.loader is not None


def _not_yet(root, name):
    """The error for a whole library that simt does not have."""
    near = INSTEAD.get(root)
    text = f"No module named '{name}': not in simt yet"
    if near:
        text += f"; nearest is {near}"
    text += f" (the real one: simt run --keep {root})"
    return ModuleNotFoundError(text + hint(root, near), name=name)


def answered():
    """The names that `import` finds here rather than among the installed libraries."""
    finder = next((f for f in sys.meta_path if isinstance(f, _Finder)), None)
    return frozenset() if finder is None else finder.names - {"keras"}


def _is_ours(module):
    name = getattr(module, "__name__", "")
    if name == "keras":  # the stock one: ours when it runs on our backend
        config = sys.modules.get("keras.src.backend.config")
        return getattr(config, "_BACKEND", None) == "simt"
    return name.partition(".")[0] == "simt"


def install(*names, keep=(), children=True):
    """Aliases names (default: all of NAMES) but those in keep; returns the names that simt has.

    Refuses with RuntimeError, changing nothing, if a real one is imported already. With children,
    processes started from this one follow.
    """
    for name in (*names, *([keep] if isinstance(keep, str) else keep)):
        if name not in NAMES:
            raise ValueError(f"simt.alias: '{name}' is not one of {', '.join(NAMES)}")
    wanted = [n for n in names or NAMES if n != keep and n not in keep]
    for name in wanted:
        module = sys.modules.get(name)
        if module is not None and not _is_ours(module):
            where = getattr(module, "__file__", None) or "?"
            raise RuntimeError(
                f"simt.alias: the real {name} is imported already (from {where}); "
                f"call simt.alias.install() before the first import of {name}"
            )
    _remove()
    sys.meta_path.insert(0, _Finder(wanted))
    if children:
        os.environ[VARIABLE] = f"{sys.implementation.cache_tag}:{','.join(wanted)}"
        os.environ["PYTHONPATH"] = os.pathsep.join([_SITE, *_other_paths()])
    return tuple(n for n in wanted if is_there(n))


def uninstall():
    """Undoes install(): a later `import torch` finds the real one; modules held stay."""
    _remove()
    os.environ.pop(VARIABLE, None)
    others = _other_paths()
    if others:
        os.environ["PYTHONPATH"] = os.pathsep.join(others)
    else:
        os.environ.pop("PYTHONPATH", None)


def _other_paths():
    """The entries of PYTHONPATH that are not ours."""
    value = os.environ.get("PYTHONPATH")
    return [p for p in value.split(os.pathsep) if p != _SITE] if value else []


def _remove():
    """Takes out the finder and the names it put into sys.modules."""
    sys.meta_path[:] = [f for f in sys.meta_path if not isinstance(f, _Finder)]
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in NAMES and _is_ours(module) and name != "keras":
            del sys.modules[name]


# Distributions that carry a library under another name than its own.
_DISTRIBUTIONS = {
    "cupy": ("cupy_cuda", "cupy_rocm"),
    "tensorflow": ("tensorflow_cpu-", "tensorflow_intel-"),
}


def find_real(name):
    """(where, version or '') of the real library called name on sys.path, or None.

    Nothing of it is imported; the version is read off the name of its .dist-info folder.
    """
    spec = PathFinder.find_spec(name)
    if spec is None:
        return None
    where = spec.origin or next(iter(spec.submodule_search_locations or ()), "")
    if spec.loader is None or not where:
        return None  # a namespace folder of that name is no library
    folder = os.path.dirname(os.path.dirname(where))
    starts = (name + "-", *_DISTRIBUTIONS.get(name, ()))
    version = ""
    try:
        entries = os.listdir(folder)
    except OSError:
        entries = []
    for entry in entries:
        stem, dot, _ = entry.rpartition(".dist-info")
        if dot and stem.lower().startswith(starts):
            version = stem.rpartition("-")[2]
            break
    return where, version


__all__ = ["NAMES", "available", "find_real", "install", "mirrored", "uninstall"]
