"""Hashes of strings, bit for bit those of TensorFlow's layers: FarmHash, SipHash, crosses.

FarmHash's Fingerprint64 (farmhashna) and SipHash-2-4 are published algorithms; the numbers below
are theirs.
"""

import struct

_MASK = (1 << 64) - 1
_K0, _K1, _K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F


def _word(s, at):
    return int.from_bytes(s[at : at + 8], "little")


def _half(s, at):
    return int.from_bytes(s[at : at + 4], "little")


def _right(x, n):
    """x, of 64 bits or more to the left, rotated to the right."""
    x &= _MASK
    return (x >> n | x << (64 - n)) & _MASK


def _left(x, n):
    return _right(x, 64 - n)


def _shift_mix(x):
    x &= _MASK
    return x ^ x >> 47


def _mix(u, v, mul):
    a = _shift_mix((u ^ v) * mul)
    b = _shift_mix((v ^ a) * mul)
    return b * mul & _MASK


def fingerprint(s):
    """FarmHash's Fingerprint64 of bytes."""
    n = len(s)
    if n <= 16:
        return _up_to_16(s, n)
    if n <= 32:
        return _up_to_32(s, n)
    return _up_to_64(s, n) if n <= 64 else _longer(s, n)


def _up_to_16(s, n):
    mul = _K2 + n * 2
    if n >= 8:
        a, b = _word(s, 0) + _K2, _word(s, n - 8)
        c = _right(b, 37) * mul + a
        d = (_right(a, 25) + b) * mul
        return _mix(c & _MASK, d & _MASK, mul)
    if n >= 4:
        return _mix((n + (_half(s, 0) << 3)) & _MASK, _half(s, n - 4), mul)
    if n:
        y, z = s[0] + (s[n >> 1] << 8), n + (s[n - 1] << 2)
        return _shift_mix(y * _K2 ^ z * _K0) * _K2 & _MASK
    return _K2


def _up_to_32(s, n):
    mul = _K2 + n * 2
    a, b = _word(s, 0) * _K1, _word(s, 8)
    c, d = _word(s, n - 8) * mul, _word(s, n - 16) * _K2
    u = _right(a + b, 43) + _right(c, 30) + d
    v = a + _right(b + _K2, 18) + c
    return _mix(u & _MASK, v & _MASK, mul)


def _up_to_64(s, n):
    mul = _K2 + n * 2
    a, b = _word(s, 0) * _K2, _word(s, 8)
    c, d = _word(s, n - 8) * mul, _word(s, n - 16) * _K2
    y = (_right(a + b, 43) + _right(c, 30) + d) & _MASK
    z = _mix(y, (a + _right(b + _K2, 18) + c) & _MASK, mul)
    e, f = _word(s, 16) * mul, _word(s, 24)
    g, h = (y + _word(s, n - 32)) * mul, (z + _word(s, n - 24)) * mul
    u = _right(e + f, 43) + _right(g, 30) + h
    v = e + _right(f + a, 18) + g
    return _mix(u & _MASK, v & _MASK, mul)


def _weak(s, at, a, b):
    """Two words of state from 32 bytes and two seeds."""
    w, x, y, z = (_word(s, at + 8 * i) for i in range(4))
    a += w
    b = _right(b + a + z, 21)
    c = a
    a += x + y
    return (a + z) & _MASK, (b + _right(a, 44) + c) & _MASK


def _round(s, at, x, y, z, v, w, mul, factor):
    """64 bytes into the state; the last ones have a multiplier and a factor of their own."""
    x = _right(x + y + v[0] + _word(s, at + 8), 37) * mul
    y = _right(y + v[1] + _word(s, at + 48), 42) * mul
    x = (x ^ w[1] * factor) & _MASK
    y = y + v[0] * factor + _word(s, at + 40)
    z = _right(z + w[0], 33) * mul
    v = _weak(s, at, v[1] * mul, x + w[0])
    w = _weak(s, at + 32, z + w[1], y + _word(s, at + 16))
    return z & _MASK, y & _MASK, x, v, w


def _longer(s, n):
    x, y = 81, 81 * _K1 + 113
    z = _shift_mix(y * _K2 + 113) * _K2
    v = w = (0, 0)
    x = x * _K2 + _word(s, 0)
    whole = (n - 1) // 64 * 64
    for at in range(0, whole, 64):
        x, y, z, v, w = _round(s, at, x, y, z, v, w, _K1, 1)
    mul = _K1 + ((z & 0xFF) << 1)
    first = w[0] + ((n - 1) & 63)
    v = (v[0] + first, v[1])
    w = (first + v[0], w[1])
    x, y, z, v, w = _round(s, n - 64, x, y, z, v, w, mul, 9)
    u = _mix(v[0], w[0], mul) + _shift_mix(y) * _K0 + z
    return _mix(u & _MASK, (_mix(v[1], w[1], mul) + x) & _MASK, mul)


def _sip_round(a, b, c, d):
    a = (a + b) & _MASK
    b = _left(b, 13) ^ a
    a = _left(a, 32)
    c = (c + d) & _MASK
    d = _left(d, 16) ^ c
    a = (a + d) & _MASK
    d = _left(d, 21) ^ a
    c = (c + b) & _MASK
    b = _left(b, 17) ^ c
    return a, b, _left(c, 32), d


def sip(key, s):
    """SipHash-2-4 of bytes; the key is two numbers."""
    k0, k1 = (k & _MASK for k in key)
    state = (
        k0 ^ 0x736F6D6570736575,
        k1 ^ 0x646F72616E646F6D,
        k0 ^ 0x6C7967656E657261,
        k1 ^ 0x7465646279746573,
    )
    padded = s + bytes(7 - len(s) % 8) + bytes([len(s) & 0xFF])
    for (word,) in struct.iter_unpack("<Q", padded):
        a, b, c, d = state
        a, b, c, d = _sip_round(*_sip_round(a, b, c, d ^ word))
        state = (a ^ word, b, c, d)
    a, b, c, d = state
    state = (a, b, c ^ 0xFF, d)
    for _ in range(4):
        state = _sip_round(*state)
    a, b, c, d = state
    return a ^ b ^ c ^ d


def cross(features):
    """The hash of a cross of features, as tf.sparse.cross_hashed has it: integers stand for
    themselves, strings for their fingerprints."""
    mul, out = 0xC6A4A7935BD1E995, 0xDECAFCAFFE
    for x in features:
        x = fingerprint(x) if isinstance(x, bytes) else int(x) & _MASK
        out ^= mul ^ (_shift_mix(x * mul) * mul & _MASK)
        out = _shift_mix(out * mul & _MASK) * mul & _MASK
        out = _shift_mix(out)
    return out
