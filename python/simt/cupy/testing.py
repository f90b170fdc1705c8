"""cupy.testing: NumPy's assertions on copied-out arrays."""

from numpy import testing as _testing

from simt.cupy._creation import asnumpy as _asnumpy


def _forward(name):
    check = getattr(_testing, name)

    def function(actual, desired, *args, **kwargs):
        check(_asnumpy(actual), _asnumpy(desired), *args, **kwargs)

    function.__name__ = function.__qualname__ = name
    return function


assert_allclose = _forward("assert_allclose")
assert_array_equal = _forward("assert_array_equal")
assert_array_almost_equal = _forward("assert_array_almost_equal")
assert_array_less = _forward("assert_array_less")
