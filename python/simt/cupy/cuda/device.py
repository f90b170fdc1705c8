"""cupy.cuda.device: where libraries look for the class Device."""

from simt.cupy.cuda import Device, get_device_id  # noqa: F401
