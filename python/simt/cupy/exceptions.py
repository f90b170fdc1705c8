"""cupy.exceptions: NumPy's."""

from numpy.exceptions import AxisError, ComplexWarning, VisibleDeprecationWarning  # noqa: F401
