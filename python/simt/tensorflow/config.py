"""tf.config: which devices there are. Settings that have no meaning here are taken and kept."""

from collections import namedtuple

from simt._missing import module_hooks as _module_hooks

PhysicalDevice = namedtuple("PhysicalDevice", ("name", "device_type"))
LogicalDevice = namedtuple("LogicalDevice", ("name", "device_type"))
LogicalDeviceConfiguration = namedtuple(
    "LogicalDeviceConfiguration",
    ("memory_limit", "experimental_priority", "experimental_device_ordinal"),
    defaults=(None, None, None),
)
_DEVICES = (PhysicalDevice("/physical_device:CPU:0", "CPU"),)
_visible = list(_DEVICES)


def list_physical_devices(device_type=None):
    """The CPU; a GPU is not driven by TensorFlow's face yet, so that its list is empty."""
    return [d for d in _DEVICES if device_type in (None, d.device_type)]


def list_logical_devices(device_type=None):
    return [
        LogicalDevice(d.name.replace("physical_", ""), d.device_type)
        for d in _visible
        if device_type in (None, d.device_type)
    ]


def _known(devices):
    for device in devices:
        if device not in _DEVICES:
            raise ValueError(f"Unrecognized device: {device!r}")
    return list(devices)


def get_visible_devices(device_type=None):
    return [d for d in _visible if device_type in (None, d.device_type)]


def set_visible_devices(devices, device_type=None):
    devices = _known(devices if isinstance(devices, (list, tuple)) else [devices])
    kept = [d for d in _visible if device_type is not None and d.device_type != device_type]
    _visible[:] = kept + devices


class experimental:
    """tf.config.experimental: the older names, and memory settings."""

    list_physical_devices = staticmethod(list_physical_devices)
    list_logical_devices = staticmethod(list_logical_devices)
    get_visible_devices = staticmethod(get_visible_devices)
    set_visible_devices = staticmethod(set_visible_devices)

    @staticmethod
    def set_memory_growth(device, enable):
        _known([device])

    @staticmethod
    def get_memory_growth(device):
        _known([device])
        return True


class threading:
    """tf.config.threading: the numbers asked for; SIMT_NUM_THREADS sets the real one."""

    _inter = _intra = 0

    @classmethod
    def set_inter_op_parallelism_threads(cls, num_threads):
        cls._inter = int(num_threads)

    @classmethod
    def get_inter_op_parallelism_threads(cls):
        return cls._inter

    @classmethod
    def set_intra_op_parallelism_threads(cls, num_threads):
        cls._intra = int(num_threads)

    @classmethod
    def get_intra_op_parallelism_threads(cls):
        return cls._intra


_eager = True


def run_functions_eagerly(run_eagerly):
    global _eager
    _eager = bool(run_eagerly)


def functions_run_eagerly():
    return _eager


__getattr__, __dir__ = _module_hooks(globals())
