"""Writes docs/coverage/*.md: the public names that each face has, read from the modules themselves.

    gen_coverage.py            writes the files (make coverage)
    gen_coverage.py --check    exit code 1 and the differing files if they are not up to date

A face or a submodule that is not there yet is left out; a new submodule of a listed one is one line
in MODULES.
"""

import importlib
import importlib.util
import inspect
import os
import re
import sys
import textwrap

from simt import _core

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDER = os.path.join(ROOT, "docs", "coverage")

# File -> modules of simt, in the order of the page.
MODULES = {
    "cupy": ("cupy", "cupy.random", "cupy.linalg", "cupy.fft", "cupy.cuda", "cupy.testing"),
    "torch": (
        "torch",
        "torch.nn",
        "torch.nn.functional",
        "torch.nn.init",
        "torch.nn.utils",
        "torch.optim",
        "torch.optim.lr_scheduler",
        "torch.utils.data",
        "torch.autograd",
        "torch.cuda",
        "torch.linalg",
        "torch.backends",
    ),
    "torchvision": ("torchvision", "torchvision.datasets", "torchvision.transforms"),
    "numba": (
        "numba",
        "numba.cuda",
        "numba.cuda.random",
        "numba.cuda.fp16",
        "numba.cuda.libdevice",
    ),
    "tensorflow": (
        "tensorflow",
        "tensorflow.bitwise",
        "tensorflow.config",
        "tensorflow.data",
        "tensorflow.debugging",
        "tensorflow.errors",
        "tensorflow.image",
        "tensorflow.linalg",
        "tensorflow.math",
        "tensorflow.nest",
        "tensorflow.nn",
        "tensorflow.random",
        "tensorflow.train",
    ),
}
# Classes whose methods are listed too.
CLASSES = {
    "cupy": ("ndarray",),
    "cupy.cuda": ("Stream", "Event", "Device"),
    "torch": ("Tensor",),
    "torch.nn": ("Module",),
    "torch.optim": ("Optimizer",),
    "torch.utils.data": ("DataLoader",),
    "numba.cuda": ("DeviceNDArray",),
    "tensorflow": ("GradientTape", "Variable", "Module"),
    "tensorflow.data": ("Dataset",),
    "tensorflow.train": ("Checkpoint", "CheckpointManager"),
}


def load(name):
    """The module simt.NAME, or what its parent has under that name; None if there is neither."""
    parent, _, last = name.rpartition(".")
    above = load(parent) if parent else None
    if parent and above is None:
        return None
    if _find("simt." + name):
        return importlib.import_module("simt." + name)
    return getattr(above, last, None)


def _find(name):
    """Whether importing name would find a module."""
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, AttributeError, ValueError):  # e.g. the parent is no package
        return name in sys.modules


def is_public(module, name):
    """True for what a user is meant to see: not private, not something the module imported."""
    if name.startswith("_"):
        return False
    value = getattr(module, name)
    if isinstance(value, type(sys)):
        return value.__name__.startswith(module.__name__ + ".")
    home = getattr(value, "__module__", None) or ""
    if home.startswith(("simt._missing", "simt._lang")) or name == "annotations":
        return False
    root = home.partition(".")[0]
    return root == "builtins" or root not in sys.stdlib_module_names


def public_names(module):
    """The module's public names, sorted, capitals last."""
    names = set(getattr(module, "__all__", ())) | {n for n in dir(module) if is_public(module, n)}
    return sorted(names, key=lambda n: (n[:1].isupper(), n.lower(), n))


def section(title, names):
    """A heading with the number of names, and the names."""
    text = textwrap.fill(", ".join(names), 100, break_long_words=False, break_on_hyphens=False)
    return f"## {title} ({len(names)})\n\n{text}\n"


def given_to_objects(cls):
    """What the methods of a class written in Python set: an object's own attributes."""
    try:
        return {*re.findall(r"self\.(\w+) = ", inspect.getsource(cls))}
    except TypeError:  # a class of C
        return set()


def page(face):
    """The text of docs/coverage/FACE.md, or None if the face is not there."""
    parts = []
    for name in MODULES[face]:
        module = load(name)
        if module is None:
            continue
        names = public_names(module)
        if names:
            parts.append(section(name, names))
        for class_name in CLASSES.get(name, ()):
            found = getattr(module, class_name, None)
            if isinstance(found, type):
                methods = sorted(
                    n for n in dir(found) if not n.startswith("_") and hasattr(found, n)
                )
                if methods:
                    parts.append(section(f"{name}.{class_name}: methods and attributes", methods))
                absent = sorted({*_core._absent_names(found)} - given_to_objects(found))
                if absent:
                    parts.append(section(f"{name}.{class_name}: not yet", absent))
    if not parts:
        return None
    head = (
        f"# What simt.{face} has\n\nMade by `make coverage` from the modules; not edited by hand.\n"
    )
    return "\n".join([head, *parts])


def pages():
    """File name -> text, for the faces that are there."""
    return {f"{face}.md": text for face in MODULES if (text := page(face)) is not None}


def differing(wanted, folder=FOLDER):
    """Names of the files in folder that are not as wanted (also those that should not be there)."""
    there = {}
    if os.path.isdir(folder):
        for name in os.listdir(folder):
            if name.endswith(".md"):
                with open(os.path.join(folder, name), encoding="utf-8") as f:
                    there[name] = f.read()
    return sorted(n for n in {*wanted, *there} if wanted.get(n) != there.get(n))


def write(wanted, folder=FOLDER):
    """Makes the folder's pages those in wanted."""
    os.makedirs(folder, exist_ok=True)
    for name in differing(wanted, folder):
        path = os.path.join(folder, name)
        if name in wanted:
            with open(path, "w", encoding="utf-8") as f:
                f.write(wanted[name])
        else:
            os.remove(path)


def main(argv):
    wanted = pages()
    if "--check" in argv:
        wrong = differing(wanted)
        for name in wrong:
            print(f"docs/coverage/{name} is not up to date: make coverage")
        return 1 if wrong else 0
    write(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
