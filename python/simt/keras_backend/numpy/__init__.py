"""keras.ops of NumPy's names, by subject.

dtypes follow Keras's promotion; NumPy itself does what has neither a gradient nor a place in the
table of operations (windows, histograms, sets).
"""

from simt.keras_backend.numpy.common import _axes, _float, _host, _operands, _scalar, _shape  # noqa: F401
from simt.keras_backend.numpy.creation import *  # noqa: F403
from simt.keras_backend.numpy.elements import *  # noqa: F403
from simt.keras_backend.numpy.elementwise import *  # noqa: F403
from simt.keras_backend.numpy.order import *  # noqa: F403
from simt.keras_backend.numpy.products import *  # noqa: F403
from simt.keras_backend.numpy.reductions import *  # noqa: F403
from simt.keras_backend.numpy.shapes import *  # noqa: F403
from simt.keras_backend.numpy.shapes import _pad_constant  # noqa: F401
