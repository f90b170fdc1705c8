"""numba.config: switches that programs read or set.

CUDA_LOW_OCCUPANCY_WARNINGS and CUDA_WARN_ON_IMPLICIT_COPY warn at launches as Numba does. They are
off until a program or its environment (NUMBA_CUDA_...) turns them on: the CPU device computes with
host arrays where they lie, and a small grid costs it nothing. The others change nothing.
"""

import os
import sys
import types

from simt import _core

ENABLE_CUDASIM = False
CUDA_LOW_OCCUPANCY_WARNINGS = 0
CUDA_WARN_ON_IMPLICIT_COPY = 0
CUDA_DEBUGINFO_DEFAULT = 0
CUDA_PER_THREAD_DEFAULT_STREAM = 0
DISABLE_JIT = 0
BOUNDSCHECK = None
DEBUG = False

_WARNINGS = {"CUDA_LOW_OCCUPANCY_WARNINGS": 1, "CUDA_WARN_ON_IMPLICIT_COPY": 2}


class _Config(types.ModuleType):
    """The module: launches learn of switches when they are set."""

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        if name in _WARNINGS:
            on = sum(bit for n, bit in _WARNINGS.items() if getattr(self, n))
            _core.kernel_warnings(on)


_module = sys.modules[__name__]
_module.__class__ = _Config
for _name in _WARNINGS:
    if os.environ.get("NUMBA_" + _name, "0") not in ("0", ""):
        setattr(_module, _name, 1)
del _name
