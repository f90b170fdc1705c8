"""tf.dtypes."""

from simt._missing import module_hooks as _module_hooks
from simt.tensorflow._ops import cast  # noqa: F401
from simt.tensorflow._types import DTYPES as _NAMES
from simt.tensorflow._types import DType, as_dtype  # noqa: F401

globals().update(_NAMES)
__getattr__, __dir__ = _module_hooks(globals())
