"""tf.debugging."""

from simt._missing import module_hooks as _module_hooks

_log = False


def set_log_device_placement(enabled):
    """Taken and kept: there is one device."""
    global _log
    _log = bool(enabled)


def get_log_device_placement():
    return _log


__getattr__, __dir__ = _module_hooks(globals())
