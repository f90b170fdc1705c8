"""keras.random. A seed is two 32-bit numbers; Philox gives the same numbers for it everywhere.

Seed generators keep their state in a variable; drawing from it is an operation like others, which
nobody waits for.
"""

import math

import numpy as np
from keras.src.backend.common.stateless_scope import in_stateless_scope
from keras.src.backend.common.symbolic_scope import in_symbolic_scope
from keras.src.backend.config import floatx
from keras.src.random.seed_generator import (
    SeedGenerator,
    draw_seed,
    global_seed_generator,
    make_default_seed,
)

from simt._core import torch as C
from simt.keras_backend import numpy as knp
from simt.keras_backend.core import convert_to_numpy, convert_to_tensor, native

_SECOND = C.tensor([0, 1])


def _seed(seed):
    """The two numbers of a seed, drawn from a generator if it is one: int64 tensor or Python's."""
    if in_symbolic_scope():
        return 0, 0
    if seed is None:
        return _next(global_seed_generator(), False)
    if isinstance(seed, SeedGenerator):
        return _next(seed, True)
    if isinstance(seed, int):
        return seed, 0
    return convert_to_tensor(seed, "int64")


def _next(generator, ordered):
    if in_stateless_scope():
        return generator.next(ordered).to(C.int64)
    numbers = generator.state.value.to(C.int64)
    if ordered:
        after = numbers + _SECOND
    else:
        after = ((numbers + 1) % 2**32 * 5387 % 2**32) % 933199
    generator.state.assign(after.to(C.uint32))
    return numbers


def _generator(seed):
    seed = _seed(seed)
    if isinstance(seed, tuple):
        return C.Generator().manual_seed((seed[0] % 2**32) << 32 | seed[1] % 2**32)
    return C.Generator()._seed_from(seed[0] * 2**32 + seed[1] % 2**32)


def _host_generator(seed):
    seed = _seed(seed)
    return np.random.default_rng(seed if isinstance(seed, tuple) else seed.tolist())


def _floating(dtype):
    return native(dtype or floatx())


def _draw(kind, shape, low, high, dtype, seed):
    return C._random(kind, tuple(shape), low, high, dtype, _generator(seed))


def normal(shape, mean=0.0, stddev=1.0, dtype=None, seed=None):
    dtype = _floating(dtype)
    if isinstance(mean, (int, float)) and isinstance(stddev, (int, float)):
        return _draw("normal", shape, mean, stddev, dtype, seed)
    out = _draw("normal", shape, 0.0, 1.0, dtype, seed)
    return (out * convert_to_tensor(stddev, dtype) + convert_to_tensor(mean, dtype)).to(dtype)


def uniform(shape, minval=0.0, maxval=1.0, dtype=None, seed=None):
    dtype = _floating(dtype)
    out = _draw("rand", shape, 0.0, 1.0, dtype, seed)
    if isinstance(minval, (int, float)) and isinstance(maxval, (int, float)):
        return out if (minval, maxval) == (0, 1) else out * (maxval - minval) + minval
    low, high = convert_to_tensor(minval, dtype), convert_to_tensor(maxval, dtype)
    return low + out * (high - low)


def randint(shape, minval, maxval, dtype="int32", seed=None):
    low, high = (int(v.item()) if hasattr(v, "item") else int(v) for v in (minval, maxval))
    return _draw("int", shape, low, high, C.int64, seed).to(native(dtype))


def truncated_normal(shape, mean=0.0, stddev=1.0, dtype=None, seed=None):
    """Within two deviations, by inverting the distribution there."""
    dtype = _floating(dtype)
    edge = math.erf(math.sqrt(2))
    u = _draw("rand", shape, 0.0, 1.0, C.float32, seed) * (2 * edge) - edge
    x = C.clip(C.erfinv(u) * math.sqrt(2), -2.0, 2.0)
    return (x * stddev + mean).to(dtype)


def categorical(logits, num_samples, dtype="int32", seed=None):
    """By Gumbel's trick."""
    logits = knp._float(logits)
    shape = (logits.shape[0], num_samples, logits.shape[1])
    u = C.clamp_min(_draw("rand", shape, 0.0, 1.0, C.float32, seed), 1e-30)
    return C.argmax(logits.unsqueeze(1) - C.log(-C.log(u)), -1).to(native(dtype))


def dropout(inputs, rate, noise_shape=None, seed=None):
    inputs = convert_to_tensor(inputs)
    if rate == 1.0:
        return knp.zeros_like(inputs)
    if rate == 0.0:
        return inputs
    shape = inputs.shape
    if noise_shape is not None:
        shape = [n if m is None else m for m, n in zip(noise_shape, shape, strict=True)]
    keep = 1.0 - rate
    kept = _draw("rand", shape, 0.0, 1.0, C.float32, seed) < keep
    return C.where(kept, inputs / keep, knp._scalar(0, inputs.dtype))


def shuffle(x, axis=0, seed=None):
    x = convert_to_tensor(x)
    order = C._random("perm", (x.shape[axis],), x.shape[axis], None, C.int64, _generator(seed))
    return x.index_select(axis, order)


def gamma(shape, alpha, dtype=None, seed=None):
    made = _host_generator(seed).gamma(convert_to_numpy(alpha), 1.0, tuple(shape))
    return convert_to_tensor(made, _floating(dtype))


def binomial(shape, counts, probabilities, dtype=None, seed=None):
    counts = convert_to_numpy(counts).astype("int64")
    made = _host_generator(seed).binomial(counts, convert_to_numpy(probabilities), tuple(shape))
    return convert_to_tensor(made, _floating(dtype))


def beta(shape, alpha, beta, dtype=None, seed=None):
    alpha, beta = convert_to_numpy(alpha), convert_to_numpy(beta)
    return convert_to_tensor(
        _host_generator(seed).beta(alpha, beta, tuple(shape)), _floating(dtype)
    )


__all__ = [
    "SeedGenerator",
    "beta",
    "binomial",
    "categorical",
    "draw_seed",
    "dropout",
    "gamma",
    "make_default_seed",
    "normal",
    "randint",
    "shuffle",
    "truncated_normal",
    "uniform",
]
