"""torch.backends.cudnn: flags of a library that is not used."""

from simt._missing import module_hooks as _module_hooks
from simt.torch.backends import flags as _flags

globals().update(
    _flags(
        {
            "enabled": False,
            "benchmark": False,
            "deterministic": False,
            "allow_tf32": False,
        }
    )
)


def version():
    return None


__getattr__, __dir__ = _module_hooks(globals())
