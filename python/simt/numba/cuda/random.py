"""numba.cuda.random: xoroshiro128+, one generator a thread, with Numba's numbers.

states: an array of xoroshiro128p_dtype, made by create_xoroshiro128p_states. Generator i is
2**64 steps ahead of generator i - 1.
"""

import math

from ..core.types import float32, float64, from_dtype, uint32, uint64
from . import _intrinsics as cuda
from .api import device_array, device_array_like, to_device
from .dispatcher import jit

_TWO_PI = 2 * math.pi

# --- in kernels ---


def rotl(x, k):
    """Rotates 64 bits to the left."""
    x = uint64(x)
    return (x << uint32(k)) | (x >> uint32(64 - k))


def xoroshiro128p_next(states, index):
    """The generator's next 64 bits."""
    s0 = states[index]["s0"]
    s1 = states[index]["s1"]
    result = s0 + s1
    s1 ^= s0
    states[index]["s0"] = rotl(s0, 55) ^ s1 ^ (s1 << uint32(14))
    states[index]["s1"] = rotl(s1, 36)
    return result


def xoroshiro128p_jump(states, index):
    """Moves the generator 2**64 steps ahead."""
    s0 = uint64(0)
    s1 = uint64(0)
    for word in range(2):
        bits = uint64(0xBEAC0467EBA5FACB) if word == 0 else uint64(0xD86B048B86AA9922)
        for b in range(64):
            if bits & (uint64(1) << uint32(b)):
                s0 ^= states[index]["s0"]
                s1 ^= states[index]["s1"]
            xoroshiro128p_next(states, index)
    states[index]["s0"] = s0
    states[index]["s1"] = s1


def uint64_to_unit_float64(x):
    return (uint64(x) >> uint32(11)) * (float64(1) / float64(uint64(1) << uint32(53)))


def uint64_to_unit_float32(x):
    return float32(uint64_to_unit_float64(x))


def xoroshiro128p_uniform_float32(states, index):
    """A float32 in [0, 1)."""
    return uint64_to_unit_float32(xoroshiro128p_next(states, index))


def xoroshiro128p_uniform_float64(states, index):
    """A float64 in [0, 1)."""
    return uint64_to_unit_float64(xoroshiro128p_next(states, index))


def xoroshiro128p_normal_float32(states, index):
    """A float32 of the normal distribution (mean 0, deviation 1)."""
    u1 = xoroshiro128p_uniform_float32(states, index)
    u2 = xoroshiro128p_uniform_float32(states, index)
    return math.sqrt(float32(-2.0) * math.log(u1)) * math.cos(float32(_TWO_PI) * u2)


def xoroshiro128p_normal_float64(states, index):
    """A float64 of the normal distribution (mean 0, deviation 1), of float32s as Numba's."""
    u1 = xoroshiro128p_uniform_float32(states, index)
    u2 = xoroshiro128p_uniform_float32(states, index)
    return math.sqrt(float64(-2.0) * math.log(u1)) * math.cos(_TWO_PI * u2)


# --- on the host. 2**64 steps are a linear map of a state's 128 bits: it is kept as the 128 states
# that it makes of the single bits, so that generator i is found in log2(i) rounds.


@jit
def _jump_each(states):
    xoroshiro128p_jump(states, cuda.grid(1))


@jit
def _apply(columns, states, out, at):
    """out[at + i]: the linear map on states[i]."""
    i = cuda.grid(1)
    if i < min(states.size, out.size - at):
        s0, s1 = states[i]["s0"], states[i]["s1"]
        r0 = r1 = uint64(0)
        for b in range(64):
            low, high = columns[b], columns[b + 64]
            take = uint64(0) - (s0 >> uint64(b) & uint64(1))
            also = uint64(0) - (s1 >> uint64(b) & uint64(1))
            r0 ^= take & low["s0"] ^ also & high["s0"]
            r1 ^= take & low["s1"] ^ also & high["s1"]
        out[at + i] = (r0, r1)


def _jump():
    """The map of 2**64 steps."""
    import numpy

    bits = numpy.zeros((2, 64), _dtype())
    bits["s0"][0] = bits["s1"][1] = numpy.uint64(1) << numpy.arange(64, dtype=numpy.uint64)
    columns = to_device(bits.reshape(-1))
    _jump_each[1, 128](columns)
    return columns


def _squared(columns):
    out = device_array_like(columns)
    _apply[1, 128](columns, columns, out, 0)
    return out


def _seeded(seed):
    """What SplitMix64 makes of a seed: both halves of the first generator's state."""
    mask = (1 << 64) - 1
    z = ((seed & mask) + 0x9E3779B97F4A7C15) & mask
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & mask
    z ^= z >> 31
    return z


def _dtype():
    """Of a state: NumPy is imported when it is asked for."""
    import numpy

    return numpy.dtype([("s0", "u8"), ("s1", "u8")], align=True)


def init_xoroshiro128p_states(states, seed, subsequence_start=0, stream=0):
    """Fills a device array of states: (n,) of xoroshiro128p_dtype."""
    n, word = states.shape[0], _seeded(int(seed))
    columns, times = _jump(), int(subsequence_start)
    if n:
        states[0] = (word, word)
    first, power = states[:1], columns
    while n and times:
        if times & 1:
            _apply[1, 1](power, first, first, 0)
        power = _squared(power)
        times >>= 1
    have = 1
    while have < n:  # each round doubles: the states so far, jumped as often as there are
        _apply[-(-have // 256), 256](columns, states[:have], states, have)
        columns = _squared(columns)
        have *= 2


def create_xoroshiro128p_states(n, seed, subsequence_start=0, stream=0):
    """The states of n generators, a device array (n,) of xoroshiro128p_dtype.

    subsequence_start: how often 2**64 steps the first one is ahead of what the seed makes.
    """
    states = device_array(n, _dtype())
    init_xoroshiro128p_states(states, seed, subsequence_start)
    return states


def __getattr__(name):
    if name == "xoroshiro128p_dtype":
        return _dtype()
    if name == "xoroshiro128p_type":
        return from_dtype(_dtype())
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
