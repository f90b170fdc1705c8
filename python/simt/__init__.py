"""simt: GPU programming from Python, on an NVIDIA GPU or on the CPU.

    from simt import cupy, torch            the faces, under our name
    simt run program.py                     a program that says `import torch`, unmodified
    simt doctor                             what this machine offers

Importing this package costs next to nothing: every part is loaded when first used.
"""

import sys as _sys

__version__ = "0.1.0"

# Parts of the package that `simt.NAME` loads on first use, if they are there.
_PARTS = ("alias", "cupy", "doctor", "keras", "numba", "tensorflow", "torch", "torchvision")


class _NotYet:
    """The last finder: importing a module we do not have says so, and names the nearest."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        # Only a real import is answered by an error; importlib.util.find_spec gets None.
        if name.startswith("simt.") and (
            _sys._getframe(2).f_code.co_name == "_find_and_load_unlocked"
        ):
            from simt._missing import module_not_found

            raise module_not_found(name)
        return None


if not any(getattr(f, "__name__", "") == "_NotYet" for f in _sys.meta_path):
    _sys.meta_path.append(_NotYet)


def __getattr__(name):
    if name[:2] == "__":
        raise AttributeError(f"module 'simt' has no attribute '{name}'")
    from simt._missing import is_there, missing_attribute

    if name in _PARTS and is_there(name):
        full = f"{__name__}.{name}"
        __import__(full)
        return _sys.modules[full]
    raise missing_attribute("simt", name, __dir__())


def __dir__():
    from simt._missing import is_there

    return sorted([*globals(), *(p for p in _PARTS if is_there(p))])
