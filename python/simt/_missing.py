"""Errors for names that simt does not have yet: they say so and name the nearest that is there.

Used by every face. A face's module ends with

    __getattr__, __dir__ = module_hooks(globals(), lazy=("nn", "optim"))

so that `torch.nn` is loaded on first use, `torch.foo` raises AttributeError ("not in simt yet"),
hasattr() is False and dir() tells the truth. `from torch import foo` raises ModuleNotFoundError.
The nearest name is looked for only when the error is printed: probing with hasattr stays cheap.
"""

import _thread
import os
import sys

_PACKAGE = os.path.dirname(os.path.abspath(__file__))

# The versions of Keras whose backend simt can be.
KERAS_VERSIONS = ">= 3.15, < 3.16"

# For whole faces that are not there: what a user can take instead.
INSTEAD = {
    "cupy": "numpy",
    "cupyx": "cupy",
    "numba": "cupy",
    "tensorflow": "torch",
    "keras": "torch",
    "torch": "cupy",
    "torchvision": "torch",
}

# For names whose nearest is another word.
_NEAREST = {
    **{("numba", n): "numba.cuda.jit" for n in ("generated_jit", "stencil", "cfunc", "jit_module")},
    **{
        ("numba.cuda", n): "the kernel's inspect_asm()"
        for n in ("compile", "compile_ptx", "compile_all", "compile_for_current_device")
    },
    ("numba.cuda", "compile_ptx_for_current_device"): "the kernel's inspect_asm()",
    ("numba.cuda", "declare_device"): "numba.cuda.jit(device=True)",
    ("cupy", "ElementwiseKernel"): "cupy.RawKernel",
    ("cupy", "ReductionKernel"): "cupy.RawKernel",
}


def is_there(part):
    """True when simt has this module or package (a path like 'torch' or 'torch/nn')."""
    base = os.path.join(_PACKAGE, part)
    return os.path.isfile(base + ".py") or os.path.isfile(os.path.join(base, "__init__.py"))


def mirrored(name):
    """The name as the user's program says it: 'simt.torch.nn' is 'torch.nn' under an alias."""
    root, _, rest = name.partition(".")
    if root == "simt" and rest:
        top = rest.partition(".")[0]
        ours = sys.modules.get("simt." + top)
        if ours is not None and sys.modules.get(top) is ours:
            return rest
    return name


def nearest(name, candidates):
    """The candidate most like name, or None."""
    import difflib

    names = [c for c in candidates if not c.startswith("_")]
    lowered = {}
    for candidate in names:
        lowered.setdefault(candidate.lower(), candidate)
    found = difflib.get_close_matches(name.lower(), lowered, 1, 0.5)
    if found:
        return lowered[found[0]]
    inside = [c for c in names if len(c) > 2 and (c in name or name in c)]
    return min(inside, key=lambda c: abs(len(c) - len(name))) if inside else None


def _elsewhere(owner, name):
    """The nearest by meaning, for some names of numba ('simt.numba' or 'numba'); else None."""
    near = _NEAREST.get((owner.removeprefix("simt."), name))
    return f"simt.{near}" if near and near[:5] == "numba" and owner[:5] == "simt." else near


class _MissingAttribute(AttributeError):
    """An AttributeError whose text is made when it is looked at."""

    def __init__(self, what, owner, name, candidates):
        # `obj` is left unset: Python would add a suggestion of its own to ours.
        super().__init__(name=name)
        self._parts = (what, owner, name, candidates)

    def __str__(self):
        what, owner, name, candidates = self._parts
        near = _elsewhere(owner, name)
        if near is None:
            near = nearest(name, candidates() if callable(candidates) else candidates)
            near = near and f"{owner}.{near}"
        text = f"{what} has no attribute '{name}': not in simt yet"
        if near:
            text += f"; nearest is {near}"
        return text + hint(name, near)

    def __reduce__(self):
        return (AttributeError, (str(self),))


# In tracebacks it is what it is to the user: an AttributeError.
_MissingAttribute.__name__ = _MissingAttribute.__qualname__ = "AttributeError"
_MissingAttribute.__module__ = "builtins"


def hint(name, near):
    """The second line in Chinese, when that is the user's language; else nothing."""
    from simt._lang import lang

    if lang() != "zh":
        return ""
    return f"\n提示: simt 还没有 {name}" + (f"; 最接近的是 {near}" if near else "")


def missing_attribute(owner, name, candidates, kind="module"):
    """The AttributeError for owner.name; candidates is the list of names there, or makes it.

    kind 'module' gives Python's text for modules, 'type' that for objects of a class.
    """
    owner = mirrored(owner)
    what = f"module '{owner}'" if kind == "module" else f"'{owner}' object"
    return _MissingAttribute(what, owner, name, candidates)


def absent(cls, name, on_class):
    """The AttributeError for a name that the class whose face cls is has, and cls has not yet."""

    def candidates():
        from simt import _core

        return sorted({*dir(cls)} - {*_core._absent_names(cls)})

    owner = cls.__name__
    what = f"type object '{owner}'" if on_class else f"'{owner}' object"
    return _MissingAttribute(what, owner, name, candidates)


def module_not_found(name):
    """The ModuleNotFoundError for importing simt.x.y, worded with the name the user wrote."""
    shown = mirrored(name)
    parent, _, last = name.rpartition(".")
    if last == "_core" or ".data." in name:
        return ModuleNotFoundError(
            f"No module named '{name}': the extension is not built; type make build", name=name
        )
    if parent == "simt":
        near = INSTEAD.get(last)
    else:
        module = sys.modules.get(parent)
        owner = shown.rpartition(".")[0]
        near = _elsewhere(owner, last)
        if near is None and module is not None:
            near = nearest(last, dir(module))
            near = near and f"{owner}.{near}"
    text = f"No module named '{shown}': not in simt yet"
    if near:
        text += f"; nearest is {near}"
    # importlib drops the error of `from torch import foo` (and makes a plain ImportError of it)
    # when its name is the one importlib looked for; so that ours is seen, it must be another one.
    return ModuleNotFoundError(text + hint(shown, near), name=shown if shown != name else last)


_loading = None  # thread -> how many parts of faces it is in the middle of importing


def _load(name):
    """Imports a part of a face, for which a fork in another thread waits.

    Its child would find the module locked, for ever, by a thread that it does not have.
    """
    global _loading
    if _loading is None:
        _loading = {}
        os.register_at_fork(before=_await_loads, after_in_child=_loading.clear)
    me = _thread.get_ident()
    _loading[me] = _loading.get(me, 0) + 1
    try:
        __import__(name)
    finally:
        left = _loading.pop(me, 1) - 1
        if left:
            _loading[me] = left


def _await_loads():
    import time

    end = time.monotonic() + 5  # the importing thread may itself wait for the one that forks
    me = _thread.get_ident()
    while any(thread != me for thread in list(_loading)) and time.monotonic() < end:
        time.sleep(0.001)


def module_hooks(namespace, lazy=()):
    """(__getattr__, __dir__) for a face's module: lazy submodules, and errors that help.

    namespace is the module's globals(); lazy names submodules to load on first use.
    """
    module_name = namespace["__name__"]

    folder = module_name.partition(".")[2].replace(".", "/")

    def names():
        return sorted({*namespace, *(n for n in lazy if is_there(f"{folder}/{n}"))})

    def module_getattr(name):
        if name in lazy and is_there(f"{folder}/{name}"):
            full = f"{module_name}.{name}"
            _load(full)
            return sys.modules[full]
        if name[:2] == "__":
            raise AttributeError(f"module '{module_name}' has no attribute '{name}'")
        raise missing_attribute(module_name, name, names)

    module_getattr.__name__ = "__getattr__"
    return module_getattr, names
