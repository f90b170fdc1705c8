"""torch.backends: flags that programs set; nothing here depends on them."""

from simt._missing import module_hooks as _module_hooks


def flags(names, available=False):
    """What the modules of flags have: the flags, is_available, and flags() for a with statement
    that changes nothing."""
    from contextlib import nullcontext

    return {
        **names,
        "is_available": lambda: available,
        "is_built": lambda: available,
        "flags": lambda *args, **options: nullcontext(),
    }


__getattr__, __dir__ = _module_hooks(
    globals(), lazy=("cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp")
)
