"""torch.cuda: there is no GPU here, said as PyTorch says it."""

from simt._core import torch as _C
from simt._missing import module_hooks as _module_hooks


def is_available():
    return False


def device_count():
    return 0


def is_initialized():
    return False


def current_device():
    _C._full("empty", (0,), None, None, "cuda", False)


def get_device_name(device=None):
    current_device()


def get_device_properties(device=None):
    current_device()


def set_device(device):
    current_device()


def synchronize(device=None):
    current_device()


def empty_cache():
    pass


def manual_seed(seed):
    pass


def manual_seed_all(seed):
    pass


def memory_allocated(device=None):
    return 0


def max_memory_allocated(device=None):
    return 0


def is_bf16_supported():
    return False


__getattr__, __dir__ = _module_hooks(globals())
