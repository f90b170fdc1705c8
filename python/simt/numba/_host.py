"""njit and jit: functions for kernels and for the host.

A kernel compiles them like any device function. The host calls them as plain Python, which is what
Numba does with NUMBA_DISABLE_JIT=1: the same results, not its speed; a warning says so once.
"""

import types

from .core.errors import NumbaPerformanceWarning

_warned = False


def _warn(name):
    global _warned
    if _warned:
        return
    _warned = True
    import warnings

    warnings.warn(
        f"{name}: on the host simt runs functions of njit and jit as plain Python "
        "(as NUMBA_DISABLE_JIT=1); kernels of cuda.jit are compiled",
        NumbaPerformanceWarning,
        stacklevel=3,
    )


class HostFunction:
    """A function made by njit or jit."""

    def __init__(self, func, options):
        self.py_func = self.__wrapped__ = func
        self.targetoptions = options
        self.signatures = []
        self._declared, self.specialized = (), False  # as a kernel's
        if func.__code__.co_filename.startswith("<"):
            from simt import _core

            _core.hold_source(func)
        for name in ("__name__", "__qualname__", "__module__", "__doc__"):
            setattr(self, name, getattr(func, name))

    def __call__(self, *args, **kwargs):
        _warn(self.__name__)
        return self.py_func(*args, **kwargs)

    def __getitem__(self, configuration):
        raise TypeError(
            f"{self.__name__} is a function of jit or njit, which is called: {self.__name__}(...); "
            "a kernel that is launched is made by @cuda.jit"
        )

    def __get__(self, instance, owner=None):
        return self if instance is None else types.MethodType(self, instance)

    def __repr__(self):
        return f"<function {self.__qualname__} of njit>"

    def __reduce__(self):
        from .cuda._pickle import reduce

        return reduce(self)

    def compile(self, sig):
        """Nothing to do on the host; kernels compile it for their own types."""

    def __getattr__(self, name):
        if name.startswith("inspect_") or name in ("overloads", "parallel_diagnostics", "stats"):
            raise NotImplementedError(f"{self.__name__}.{name} of njit is not in simt yet")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def jit(signature_or_function=None, **options):
    """Marks a function as one for kernels and the host; signatures and options change nothing."""
    if options.get("target") == "cuda":
        raise NotImplementedError("jit(target='cuda') is not in simt; use cuda.jit")
    if callable(signature_or_function) and hasattr(signature_or_function, "__code__"):
        return HostFunction(signature_or_function, options)
    return lambda func: HostFunction(func, options)


njit = jit
prange = range


def get_num_threads():
    """How many CPUs this process may use."""
    import os

    return len(os.sched_getaffinity(0))


def set_num_threads(n):
    """Checks n and changes nothing: functions of njit run in one thread."""
    if not 1 <= n <= get_num_threads():
        raise ValueError(f"The number of threads must be between 1 and {get_num_threads()}")


def literal_unroll(container):
    """The container: a kernel's loop over a tuple is unrolled as it is."""
    return container
