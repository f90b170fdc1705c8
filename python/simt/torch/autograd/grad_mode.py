"""no_grad and its kin: context managers that are decorators too."""

from simt._core import torch as _C

_set = _C._set_grad_enabled


class _Mode:
    """Sets gradients on or off between __enter__ and __exit__; nests."""

    _on = False
    __slots__ = ("_was",)

    def __enter__(self):
        self._was = _set(self._on)

    def __exit__(self, *unused):
        _set(self._was)
        return False

    def __call__(self, function):
        mode = type(self)
        make = mode if mode is not set_grad_enabled else lambda: mode(self._on)
        return _decorate(function, make)

    def __new__(cls, function=None):
        self = object.__new__(cls)
        return self(function) if callable(function) else self


def _decorate(function, make):
    if isinstance(function, type):
        function.__init__ = _decorate(function.__init__, make)
        return function

    def wrapper(*args, **kwargs):
        with make():
            return function(*args, **kwargs)

    for name in ("__module__", "__name__", "__qualname__", "__doc__", "__dict__"):
        try:
            setattr(wrapper, name, getattr(function, name))
        except AttributeError:
            pass
    wrapper.__wrapped__ = function
    return wrapper


class no_grad(_Mode):
    """No gradients inside."""


class enable_grad(_Mode):
    """Gradients on inside, also inside no_grad."""

    _on = True


class inference_mode(_Mode):
    """As no_grad; results are ordinary tensors."""

    __slots__ = ("_on",)

    def __new__(cls, mode=True):
        self = object.__new__(cls)
        self._on = False if callable(mode) else not mode
        return self(mode) if callable(mode) else self

    def __enter__(self):
        self._was = _set(self._on and _C.is_grad_enabled())


class set_grad_enabled(_Mode):
    """Sets the mode at once; as a context, sets it back at the end."""

    __slots__ = ("_on",)

    def __new__(cls, mode):
        self = object.__new__(cls)
        self._on = bool(mode)
        self._was = _set(self._on)
        return self

    def __enter__(self):
        _set(self._on)

    def __call__(self, function):
        _set(self._was)
        on = self._on
        return _decorate(function, lambda: set_grad_enabled(on))
