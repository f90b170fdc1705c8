"""tf.dtypes."""

from simt._missing import module_hooks as _module_hooks
from simt.tensorflow._face import TOP as _TOP
from simt.tensorflow._types import DTYPES as _NAMES
from simt.tensorflow._types import DType, as_dtype  # noqa: F401

cast, saturate_cast = _TOP["cast"], _TOP["saturate_cast"]
globals().update(_NAMES)
__getattr__, __dir__ = _module_hooks(globals())
