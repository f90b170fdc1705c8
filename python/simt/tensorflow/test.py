"""tf.test: what is asked about devices."""

from simt._missing import module_hooks as _module_hooks


def is_gpu_available(cuda_only=False, min_cuda_compute_capability=None):
    return False


def is_built_with_cuda():
    return False


def is_built_with_gpu_support():
    return False


def gpu_device_name():
    return ""


__getattr__, __dir__ = _module_hooks(globals())
