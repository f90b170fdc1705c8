"""tf.bitwise."""

from simt._missing import module_hooks as _module_hooks
from simt.tensorflow._face import BITWISE as _NAMES

globals().update(_NAMES)
__getattr__, __dir__ = _module_hooks(globals())
