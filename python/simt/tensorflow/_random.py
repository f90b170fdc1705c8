"""Functions of tf.random: numbers of simt's own generator, the same everywhere."""

import keras

from simt.keras_backend import core, random
from simt.tensorflow._arrays import sizes
from simt.tensorflow._tensor import FLOATS, convert, is_tensor, native, shown
from simt.tensorflow._types import as_dtype


def set_seed(seed):
    keras.utils.set_random_seed(int(seed) % 2**32)


def _parameter(x, dtype):
    return convert(x).to(dtype) if is_tensor(x) or isinstance(x, (list, tuple)) else x


def normal(shape, mean=0.0, stddev=1.0, dtype="float32", seed=None, name=None):
    dtype = native(dtype)
    drawn = random.normal(sizes(shape), 0.0, 1.0, core.NAMES[dtype], seed)
    return drawn * _parameter(stddev, dtype) + _parameter(mean, dtype)


def truncated_normal(shape, mean=0.0, stddev=1.0, dtype="float32", seed=None, name=None):
    return random.truncated_normal(sizes(shape), mean, stddev, core.NAMES[native(dtype)], seed)


def uniform(shape, minval=0, maxval=None, dtype="float32", seed=None, name=None):
    shape, kind = sizes(shape), as_dtype(dtype)
    if native(kind) not in FLOATS:
        if maxval is None:
            raise ValueError(f"Must specify maxval for integer dtype {kind!r}")
        return random.randint(shape, _plain(minval), _plain(maxval), kind.name, seed)
    maxval = 1.0 if maxval is None else maxval
    return random.uniform(shape, _plain(minval), _plain(maxval), kind.name, seed)


def _plain(x):
    return convert(x).item() if is_tensor(x) else x


def shuffle(value, seed=None, name=None):
    return random.shuffle(convert(value), 0, seed)


def categorical(logits, num_samples, dtype=None, seed=None, name=None):
    return random.categorical(convert(logits), int(num_samples), dtype or "int64", seed)


def gamma(shape, alpha, beta=None, dtype="float32", seed=None, name=None):
    alpha = convert(alpha).to(native(dtype))
    drawn = random.gamma((*sizes(shape), *alpha.shape), alpha, as_dtype(dtype).name, seed)
    return drawn if beta is None else drawn / convert(beta)


def _stateless(seed):
    """The seed of two numbers as one; a generator of that seed draws the same again."""
    low, high = sizes(seed)
    return (low * 0x9E3779B1 + high) % 2**31


def stateless_normal(
    shape, seed, mean=0.0, stddev=1.0, dtype="float32", name=None, alg="auto_select"
):
    return normal(shape, mean, stddev, dtype, _stateless(seed))


def stateless_uniform(
    shape, seed, minval=0, maxval=None, dtype="float32", name=None, alg="auto_select"
):
    return uniform(shape, minval, maxval, dtype, _stateless(seed))


class Generator:
    """tf.random.Generator: draws that go on from a seed."""

    def __init__(self, seed):
        self._draws = keras.random.SeedGenerator(int(seed) % 2**32)

    @classmethod
    def from_seed(cls, seed, alg=None):
        return cls(seed)

    @classmethod
    def from_non_deterministic_state(cls, alg=None):
        import secrets

        return cls(secrets.randbits(32))

    def reset_from_seed(self, seed):
        self._draws = keras.random.SeedGenerator(int(seed) % 2**32)

    def normal(self, shape, mean=0.0, stddev=1.0, dtype="float32", name=None):
        return shown(normal(shape, mean, stddev, dtype, self._draws))

    def uniform(self, shape, minval=0, maxval=None, dtype="float32", name=None):
        return shown(uniform(shape, minval, maxval, dtype, self._draws))

    def truncated_normal(self, shape, mean=0.0, stddev=1.0, dtype="float32", name=None):
        return shown(truncated_normal(shape, mean, stddev, dtype, self._draws))
