"""numba.cuda.random: xoroshiro128+, one generator a thread, with Numba's numbers.

states: an array of xoroshiro128p_dtype, made by create_xoroshiro128p_states. Generator i is
2**64 steps ahead of generator i - 1.
"""

import math

from ..core.types import float32, float64, from_dtype, uint32, uint64
from .api import to_device

_MASK = (1 << 64) - 1
_JUMP = 0xD86B048B86AA9922_BEAC0467EBA5FACB  # the polynomial of 2**64 steps
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


# --- on the host; while states are made, a state is a number of 128 bits, s0 in the low half ---


def _seeded(seed):
    """The state that SplitMix64 makes of a seed."""
    z = (seed + 0x9E3779B97F4A7C15) & _MASK
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & _MASK
    z ^= z >> 31
    return z | z << 64


def _step(state):
    s0, s1 = state & _MASK, state >> 64
    s1 ^= s0
    low = ((s0 << 55 | s0 >> 9) ^ s1 ^ s1 << 14) & _MASK
    return low | ((s1 << 36 | s1 >> 28) & _MASK) << 64


def _jumped(state):
    """2**64 steps ahead."""
    result = 0
    for b in range(128):
        if _JUMP >> b & 1:
            result ^= state
        state = _step(state)
    return result


def _apply(columns, states):
    """A linear map, given by its value for each of the 128 bits, on an array of states."""
    import numpy

    out = numpy.zeros_like(states)
    for b, column in enumerate(columns):
        bit = states[:, b // 64] >> numpy.uint64(b % 64) & numpy.uint64(1)
        out ^= (numpy.uint64(0) - bit)[:, None] & column
    return out


def _power(columns, states, times):
    """The map applied `times` times, by squaring."""
    while times:
        if times & 1:
            states = _apply(columns, states)
        columns = _apply(columns, columns)
        times >>= 1
    return states


def _dtype():
    """Of a state: NumPy is imported when it is asked for."""
    import numpy

    return numpy.dtype([("s0", "u8"), ("s1", "u8")], align=True)


def _words(numbers):
    import numpy

    return numpy.array([(n & _MASK, n >> 64) for n in numbers], numpy.uint64).reshape(-1, 2)


def init_xoroshiro128p_states(states, seed, subsequence_start=0, stream=0):
    """Fills a device array of states."""
    states.copy_to_device(_states(states.shape[0], seed, subsequence_start))


def _states(n, seed, subsequence_start):
    import numpy

    columns = _words(_jumped(1 << b) for b in range(128))  # the jump, which is linear
    first = _words([_seeded(int(seed) & _MASK)])
    states = _power(columns, first, int(subsequence_start))
    while len(states) < n:  # each round doubles: the states so far, jumped as often as there are
        states = numpy.concatenate([states, _apply(columns, states)])
        columns = _apply(columns, columns)
    return states[:n].copy().view(_dtype()).reshape(-1)


def create_xoroshiro128p_states(n, seed, subsequence_start=0, stream=0):
    """A device array of n generators' states."""
    return to_device(_states(n, seed, subsequence_start))


def __getattr__(name):
    if name == "xoroshiro128p_dtype":
        return _dtype()
    if name == "xoroshiro128p_type":
        return from_dtype(_dtype())
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
