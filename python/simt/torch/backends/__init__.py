"""torch.backends: flags that programs set; nothing here depends on them."""

from simt._missing import module_hooks as _module_hooks


class _Flags:
    """Remembers what is set."""

    def __init__(self, **flags):
        self.__dict__.update(flags)

    def is_available(self):
        return False


cudnn = _Flags(enabled=False, benchmark=False, deterministic=False, allow_tf32=False)
mps = _Flags(is_built=lambda: False)
mkldnn = _Flags(enabled=False)
cuda = _Flags(matmul=_Flags(allow_tf32=False), is_built=lambda: False)
openmp = _Flags()

__getattr__, __dir__ = _module_hooks(globals())
