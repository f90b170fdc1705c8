"""Random numbers: Philox streams, the same numbers on every device (not CuPy's own)."""

from simt import _core
from simt._core import ndarray


def _spread(low, high, size, dtype):
    """Are the parameters arrays? Then the shape drawn is their broadcast shape, unless given."""
    from simt.cupy._manipulation import broadcast_shapes

    shapes = [x.shape for x in (low, high) if isinstance(x, ndarray)]
    return broadcast_shapes(*shapes) if size is None else size


def _float_dtype(dtype):
    """dtype= of a distribution: float32 or float64 (None)."""
    import numpy

    dtype = numpy.dtype(float if dtype is None else _core.own_lists(dtype))
    if dtype.name not in ("float32", "float64"):
        raise TypeError(f"Unsupported dtype {dtype.name}: float32 or float64 is drawn")
    return dtype


def _check_scale(scale, name="scale"):
    if isinstance(scale, ndarray):
        if bool((scale < 0).any()):
            raise ValueError(f"{name} < 0")
    elif scale < 0:
        raise ValueError(f"{name} < 0")


class Generator:
    """numpy.random.Generator's methods on a stream of ours (what default_rng gives)."""

    def __init__(self, seed=None):
        self._stream = _core.Generator(seed)

    def random(self, size=None, dtype=None, out=None):
        if out is None:
            return self._stream.uniform(0.0, 1.0, size, dtype)
        out[...] = self._stream.uniform(0.0, 1.0, out.shape if size is None else size, dtype)
        return out

    def uniform(self, low=0.0, high=1.0, size=None, dtype=None):
        if isinstance(low, ndarray) or isinstance(high, ndarray):
            size = _spread(low, high, size, dtype)
            made = self._stream.uniform(0.0, 1.0, size, "float64") * (high - low) + low
            return made.astype(_float_dtype(dtype), copy=False)
        return self._stream.uniform(low, high, size, dtype)

    def normal(self, loc=0.0, scale=1.0, size=None, dtype=None):
        if isinstance(loc, ndarray) or isinstance(scale, ndarray):
            size = _spread(loc, scale, size, dtype)
            _check_scale(scale)
            made = self._stream.normal(0.0, 1.0, size, "float64") * scale + loc
            return made.astype(_float_dtype(dtype), copy=False)
        return self._stream.normal(loc, scale, size, dtype)

    def standard_normal(self, size=None, dtype=None, out=None):
        if out is None:
            return self._stream.normal(0.0, 1.0, size, dtype)
        out[...] = self._stream.normal(0.0, 1.0, out.shape if size is None else size, dtype)
        return out

    def integers(self, low, high=None, size=None, dtype="int64", endpoint=False):
        if endpoint:
            low, high = (0, low + 1) if high is None else (low, high + 1)
        return self._stream.integers(low, high, size, dtype)

    def exponential(self, scale=1.0, size=None, dtype=None):
        _check_scale(scale)
        size = _spread(scale, None, size, dtype) if isinstance(scale, ndarray) else size
        made = -_core.ew_log1p(-self._stream.uniform(0.0, 1.0, size)) * scale
        return made.astype(_float_dtype(dtype), copy=False)

    def permutation(self, x, axis=0):
        if not isinstance(x, ndarray):
            return self._stream.permutation(x)
        return x.take(self._stream.permutation(x.shape[axis]), axis)

    def shuffle(self, x, axis=0):
        x[...] = self.permutation(x, axis)

    def choice(self, a, size=None, replace=True, p=None):
        n = a.shape[0] if isinstance(a, ndarray) else int(a)
        count = 1
        for s in size if isinstance(size, (tuple, list)) else (1 if size is None else size,):
            count *= int(s)
        shape = () if size is None else size
        if n <= 0 and count > 0:
            raise ValueError("a must be greater than 0 unless no samples are taken")
        if p is not None:
            return self._weighted(a, n, count, shape, replace, p)
        if replace:
            index = self._stream.integers(0, n, shape)
        elif count > n:
            raise ValueError("Cannot take a larger sample than population when 'replace=False'")
        else:
            index = self._stream.permutation(n)[:count].reshape(shape)
        return a.take(index, 0) if isinstance(a, ndarray) else index

    def _weighted(self, a, n, count, shape, replace, p):
        import numpy

        if not replace:
            raise NotImplementedError("choice(replace=False, p=...) is not in simt yet")
        weights = p.get() if isinstance(p, ndarray) else _core.host_array(p).astype(float)
        if weights.shape != (n,):
            raise ValueError("'a' and 'p' must have same size")
        if (weights < 0).any() or abs(weights.sum() - 1) > 1e-8:
            raise ValueError("probabilities are not non-negative and do not sum to 1")
        drawn = self._stream.uniform(0.0, 1.0, count).get()
        index = numpy.searchsorted(numpy.cumsum(weights), drawn, side="right").clip(0, n - 1)
        index = _core.array(index).reshape(shape)
        return a.take(index, 0) if isinstance(a, ndarray) else index


class RandomState(Generator):
    """numpy.random.RandomState's methods."""

    def seed(self, seed=None):
        self._stream.seed(seed)

    def random_sample(self, size=None, dtype=None):
        return self._stream.uniform(0.0, 1.0, size, dtype)

    def rand(self, *size, dtype=None):
        return self._stream.uniform(0.0, 1.0, size, dtype)

    def randn(self, *size, dtype=None):
        return self._stream.normal(0.0, 1.0, size, dtype)

    def randint(self, low, high=None, size=None, dtype=None):
        return self._stream.integers(low, high, size, dtype)


_state = RandomState()


def default_rng(seed=None):
    return seed if isinstance(seed, Generator) else Generator(seed)


def get_random_state():
    return _state


def set_random_state(rs):
    global _state
    if not isinstance(rs, RandomState):
        raise TypeError(f"Random state must be an instance of RandomState. Actual: {type(rs)}")
    _state = rs


def _forward(name):
    method = getattr(RandomState, name)

    def function(*args, **kwargs):
        return method(_state, *args, **kwargs)

    function.__name__ = function.__qualname__ = name
    return function


seed = _forward("seed")
rand = _forward("rand")
randn = _forward("randn")
randint = _forward("randint")
random = _forward("random_sample")
random_sample = ranf = sample = random
uniform = _forward("uniform")
normal = _forward("normal")
standard_normal = _forward("standard_normal")
exponential = _forward("exponential")
permutation = _forward("permutation")
shuffle = _forward("shuffle")
choice = _forward("choice")


def random_integers(low, high=None, size=None):
    low, high = (1, low) if high is None else (low, high)
    return randint(low, high + 1, size)


def __getattr__(name):
    from simt._missing import missing_attribute

    if name[:2] == "__":
        raise AttributeError(f"module 'simt.cupy.random' has no attribute '{name}'")
    raise missing_attribute("simt.cupy.random", name, list(globals()))
