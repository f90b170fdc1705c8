"""Pickles of kernels: by name where it finds the kernel, else by value, as Numba has it.

By value: the code, what it uses of its globals, its closure, and its source where that is in no
file.
"""

import builtins
import linecache
import marshal
import os
import sys
import types

from simt import _core


def reduce(kernel):
    """What __reduce__ of a kernel returns."""
    function = kernel.py_func
    if _by_name(function.__module__, kernel.__qualname__) is kernel:
        return kernel.__qualname__
    code = function.__code__
    names = {}
    for name in sorted(_names(code)):
        if name in function.__globals__:
            value = function.__globals__[name]
            names[name] = _Itself() if value is kernel or value is function else _packed(value)
    cells = [_packed(_content(cell, kernel)) for cell in function.__closure__ or ()]
    about = {
        key: getattr(function, key)
        for key in ("__name__", "__qualname__", "__module__", "__doc__", "__defaults__")
    }
    about["__kwdefaults__"] = function.__kwdefaults__
    lines = None
    if not os.path.exists(code.co_filename):
        lines = linecache.getlines(code.co_filename, function.__globals__)
        lines = lines or _core.hold_source(function)  # a str: what was given to exec
    parts = (marshal.dumps(code), lines, names, cells, about)
    return _rebuild, (
        type(kernel),
        parts,
        kernel.targetoptions,
        kernel._declared,
        kernel.specialized,
    )


class _Itself:
    """Stands for the kernel that is pickled."""


def _by_name(module, qualname):
    found = sys.modules.get(module)
    for part in qualname.split("."):
        found = getattr(found, part, None)
    return found


def _names(code):
    """The names that a code object and those within look up."""
    found = set(code.co_names)
    for item in code.co_consts:
        if isinstance(item, types.CodeType):
            found |= _names(item)
    return found


def _content(cell, kernel):
    value = cell.cell_contents
    return _Itself() if value is kernel else value


def _packed(value):
    """Modules by name; functions that have none to be found by, as device functions that do."""
    if isinstance(value, types.ModuleType):
        return _Module(value.__name__)
    if isinstance(value, types.FunctionType):
        if _by_name(value.__module__, value.__qualname__) is not value:
            return _Function(value)
    return value


class _Module:
    def __init__(self, name):
        self.name = name


class _Function:
    """A plain Python function that a kernel calls."""

    def __init__(self, function):
        from .dispatcher import jit

        self.kernel = jit(function, device=True)


def _unpacked(value, itself):
    if isinstance(value, _Itself):
        return itself
    if isinstance(value, _Module):
        __import__(value.name)
        return sys.modules[value.name]
    if isinstance(value, _Function):
        return value.kernel.py_func
    return value


def _rebuild(kind, parts, options, signatures, specialized):
    data, lines, names, cells, about = parts
    code = marshal.loads(data)
    if isinstance(lines, str):
        _core.remember_source(lines)
    elif lines and code.co_filename not in linecache.cache:
        text = "".join(lines)
        linecache.cache[code.co_filename] = (len(text), None, lines, code.co_filename)
    closure = tuple(types.CellType() for _ in cells)
    space = {"__builtins__": builtins, "__name__": about["__module__"]}
    function = types.FunctionType(code, space, about["__name__"], None, closure)
    for key, value in about.items():
        setattr(function, key, value)
    kernel = kind(function, options)
    space.update((name, _unpacked(value, kernel)) for name, value in names.items())
    for cell, value in zip(closure, cells, strict=True):
        cell.cell_contents = _unpacked(value, kernel)
    for signature in signatures:
        kernel._declare(*signature)
    kernel._specialized = specialized
    return kernel
