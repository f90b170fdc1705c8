"""numba.extending: functions of kernels that depend on the types of their arguments."""

import types as _python

from simt._missing import module_hooks as _module_hooks

from .core import types
from .core.errors import TypingError


def overload(func, jit_options=None, strict=True, inline="never", **options):
    """Decorator: what func, a Python function, means in kernels.

    The decorated function gets the types of the arguments (numba.types) and returns the function
    for them, or None: then the overload registered before is asked. TypeError: func is not written
    in Python.
    """
    if not isinstance(func, _python.FunctionType):
        raise TypeError(
            f"overload of {func!r} is not in simt yet; nearest is an overload of a Python function"
        )

    def decorate(chooser):
        func.__dict__.setdefault("_simt_overloads", []).append(chooser)
        return chooser

    return decorate


def _choose(func, signature):
    """The function that func means for arguments of these types: asked by the compiler."""
    func = getattr(func, "py_func", func)
    args = types.from_bytes(signature)
    for chooser in reversed(func._simt_overloads):
        chosen = chooser(*args)
        if chosen is not None:
            chosen = getattr(chosen, "py_func", chosen)
            if not isinstance(chosen, _python.FunctionType):
                raise TypingError(f"the overload of {func.__name__} gave {chosen!r}, no function")
            return chosen
    found = ", ".join(map(str, args))
    raise TypingError(f"no overload of {func.__name__} is for the types ({found})")


def register_jitable(*args, **options):
    """Decorator: a function for kernels and for the host, as njit makes them."""
    if args and callable(args[0]):
        return args[0]
    return lambda func: func


def is_jitted(function):
    """Whether a function was made by njit or jit."""
    from ._host import HostFunction

    return isinstance(function, HostFunction)


__all__ = ["overload", "register_jitable", "is_jitted"]
__getattr__, __dir__ = _module_hooks(globals())
