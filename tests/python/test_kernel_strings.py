"""Arrays of strings (NumPy's dtypes S and U) in kernels, against Python's strings and NumPy's
arrays.

What Numba makes of each of these was asked of it once: what is too long for a field is cut, a
character of bytes is a number, a str and bytes are never equal, a negative index is out of range.
"""

import random

import numpy as np
import pytest
from numba_source import load
from simt.numba import cuda, types
from simt.numba.core.errors import TypingError

BYTES = [
    b"",
    b"a",
    b"ab",
    b"abc",
    b"b",
    b"abcdefgh",
    b"abcdefghi",
    b"xyzxyzxyz",
    b"\xff\x80a",
    b"a\0b",
]
TEXTS = ["", "a", "ab", "é", "☃b", "𝄞", "abcdefgh", "b☃𝄞é", "zzz", "a\0b"]


@cuda.jit
def compare(a, b, out):
    i, j = cuda.grid(2)
    if i < a.size and j < b.size:
        x, y = a[i], b[j]
        out[i, j, 0] = x == y
        out[i, j, 1] = x != y
        out[i, j, 2] = x < y
        out[i, j, 3] = x <= y
        out[i, j, 4] = x > y
        out[i, j, 5] = x >= y


@cuda.jit
def search(a, b, out):
    i, j = cuda.grid(2)
    if i < a.size and j < b.size:
        x, y = a[i], b[j]
        out[i, j, 0] = x.find(y)
        out[i, j, 1] = x.rfind(y)
        out[i, j, 2] = x.startswith(y)
        out[i, j, 3] = x.endswith(y)
        out[i, j, 4] = y in x
        out[i, j, 5] = y not in x


def searched(x, y):
    return [x.find(y), x.rfind(y), x.startswith(y), x.endswith(y), y in x, y not in x]


def compared(x, y):
    return [x == y, x != y, x < y, x <= y, x > y, x >= y]


@pytest.mark.parametrize("kernel, expected", [(compare, compared), (search, searched)])
@pytest.mark.parametrize(
    "values, a, b",
    [(BYTES, "S9", "S9"), (BYTES, "S17", "S12"), (TEXTS, "U8", "U8"), (TEXTS, "U11", "U9")],
)
def test_two_strings(kernel, expected, values, a, b):
    x, y = np.array(values, a), np.array(values, b)
    out = np.zeros((x.size, y.size, 6), np.int64)
    kernel[(3, 3), (4, 4)](x, y, out)
    want = [[expected(p, q) for q in values] for p in values]
    np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("kind", "SU")
def test_random_strings(kind):
    rng = random.Random(5)
    letters = "ab\x7f" if kind == "S" else "aé𝄞"

    def text(most):
        made = "".join(rng.choice(letters) for _ in range(rng.randint(0, most)))
        return made.encode() if kind == "S" else made

    for most, other in [(1, 3), (7, 8), (8, 2), (20, 5)]:
        p, q = [text(most) for _ in range(12)], [text(other) for _ in range(12)]
        x, y = np.array(p, f"{kind}{most}"), np.array(q, f"{kind}{other}")
        for kernel, expected in ((compare, compared), (search, searched)):
            out = np.zeros((12, 12, 6), np.int64)
            kernel[(3, 3), (4, 4)](x, y, out)
            np.testing.assert_array_equal(out, [[expected(s, t) for t in q] for s in p])
        joined = np.zeros((12, 12), f"{kind}{most + other}")
        join[(3, 3), (4, 4)](x, y, joined)
        np.testing.assert_array_equal(joined, [[s + t for t in q] for s in p])


@cuda.jit
def join(a, b, out):
    i, j = cuda.grid(2)
    if i < a.size and j < b.size:
        out[i, j] = a[i] + b[j]


@cuda.jit
def read(a, lengths, codes, flags):
    i = cuda.grid(1)
    if i < a.size:
        s = a[i]
        lengths[i] = len(s)
        flags[i, 0] = not s
        flags[i, 1] = True if s else False
        flags[i, 2] = s.isascii()
        for k in range(len(s)):
            codes[i, k] = s[k]


@cuda.jit
def read_text(a, lengths, codes, flags):
    i = cuda.grid(1)
    if i < a.size:
        s = a[i]
        lengths[i] = len(s)
        flags[i, 0] = not s
        flags[i, 1] = bool(s)
        flags[i, 2] = s.isascii()
        for k in range(len(s)):
            codes[i, k] = ord(s[k])


@pytest.mark.parametrize(
    "values, dtype", [(BYTES, "S9"), (TEXTS, "U8"), (BYTES, "S16"), (TEXTS, "U15")]
)
def test_length_and_characters(values, dtype):
    values = [v for v in values if (b"\0" if dtype[0] == "S" else "\0") not in v]
    a = np.array(values, dtype)
    lengths, codes = np.full(a.size, -1), np.zeros((a.size, 16), np.int64)
    flags = np.zeros((a.size, 3), bool)
    (read if dtype[0] == "S" else read_text)[1, 16](a, lengths, codes, flags)
    assert lengths.tolist() == [len(v) for v in values]
    for v, row in zip(values, codes, strict=True):
        want = list(v) if dtype[0] == "S" else list(map(ord, v))
        assert row.tolist() == want + [0] * (16 - len(v))
    assert flags.tolist() == [[not v, bool(v), v.isascii()] for v in values]


def test_stores_are_cut_and_filled():
    @cuda.jit
    def k(a, b, u, v):
        i = cuda.grid(1)
        a[i, 0] = b"toolong"
        a[i, 1] = b""
        a[i, 2] = b[i]
        b[i] = a[i, 0]
        u[i, 0] = "☃𝄞éabc"
        u[i, 1] = ""
        u[i, 2] = v[i]
        v[i] = chr(0x1D11E)

    a, b = np.full((2, 3), b"####", "S4"), np.array([b"abcdef", b"q"], "S9")
    u, v = np.full((2, 3), "####", "U4"), np.array(["ab☃def", "q"], "U9")
    k[1, 2](a, b, u, v)
    assert a.tolist() == [[b"tool", b"", b"abcd"], [b"tool", b"", b"q"]]
    assert u.tolist() == [["☃𝄞éa", "", "ab☃d"], ["☃𝄞éa", "", "q"]]
    assert b.tolist() == [b"tool"] * 2 and v.tolist() == ["𝄞"] * 2


def test_a_value_stays_when_its_element_changes():
    @cuda.jit
    def reverse(a):
        i = cuda.grid(1)
        if i < a.size // 2:
            t = a[i]
            a[i] = a[-1 - i]
            a[a.size - 1 - i] = t

    a = np.array([b"one", b"two", b"three", b"four"])
    want = a[::-1].copy()
    reverse[1, 4](a)
    np.testing.assert_array_equal(a, want)


def test_sort():
    @cuda.jit
    def rank(a, out):
        i = cuda.grid(1)
        if i < a.size:
            place = 0
            for j in range(a.size):
                if a[j] < a[i] or (a[j] == a[i] and j < i):
                    place += 1
            out[place] = a[i]

    rng = np.random.default_rng(0)
    for dtype in ("S11", "U5"):
        a = np.array([str(x) for x in rng.integers(0, 10**6, 100)]).astype(dtype)
        out = np.zeros_like(a)
        rank[2, 64](a, out)
        np.testing.assert_array_equal(out, np.sort(a))


WORD, TEXT, TABLE = b"ab", "é☃", np.array([b"zero", b"one", b"two"])


def test_constants():
    @cuda.jit
    def k(a, u, out, names):
        i = cuda.grid(1)
        if i < a.size:
            out[i, 0] = a[i] == WORD
            out[i, 1] = a[i] in (b"ab", b"x")
            out[i, 2] = b"b" <= a[i]
            out[i, 3] = u[i] == TEXT
            out[i, 4] = u[i] == WORD
            out[i, 5] = a[i] != "ab"
            names[i] = TABLE[i]

    a, u = np.array([b"ab", b"x", b"abc"]), np.array(["é☃", "ab", ""])
    out, names = np.zeros((3, 6), bool), np.zeros(3, "S8")
    k[1, 3](a, u, out, names)
    T, F = True, False
    assert out.tolist() == [[T, T, F, T, F, T], [F, T, T, F, F, T], [F, F, F, F, F, T]]
    assert names.tolist() == TABLE.tolist()


def test_variables_take_what_the_way_brings():
    @cuda.jit
    def k(a, u):
        i = cuda.grid(1)
        word = b"even" if i % 2 == 0 else b"odd"
        if i == 3:
            word = a[0]
        text = ""
        for _ in range(i):
            text = "x" if text == "" else "yes"
        u[i] = text
        cuda.syncthreads()
        a[i] = word

    a, u = np.array([b"first", b"", b"", b"", b""]), np.zeros(5, "U3")
    k[1, 5](a, u)
    assert a.tolist() == [b"even", b"odd", b"even", b"first", b"even"]
    assert u.tolist() == ["", "x", "yes", "yes", "yes"]


def test_functions_take_and_give_strings():
    @cuda.jit(device=True)
    def longer(x, y):
        if len(x) >= len(y):
            return x
        return y

    @cuda.jit
    def k(a, b, out):
        i = cuda.grid(1)
        out[i] = longer(a[i], b[i])

    a, b = np.array([b"a", b"abc"]), np.array([b"wxyz", b"q"])
    out = np.zeros(2, "S4")
    k[1, 2](a, b, out)
    assert out.tolist() == [b"wxyz", b"abc"]


@pytest.mark.parametrize("align", [False, True])
def test_fields_of_records(align):
    row = np.dtype([("c", "u1"), ("name", "S5"), ("text", "U3"), ("tags", "S2", (2,))], align=align)

    @cuda.jit
    def k(r, out):
        i = cuda.grid(1)
        if i < r.size:
            out[i] = r[i].name == b"ann" and r[i].text == "é"
            r[i].name = b"someone"
            r[i].text = r[i].text + "☃☃☃"
            r[i].tags[1] = b"t"
            r[i].c = len(r[i].name)

    r = np.array([(1, b"ann", "é", (b"x", b"y")), (2, b"bob", "q", (b"", b""))], row)
    out = np.zeros(2, bool)
    for given in (r.copy(), cuda.to_device(r)):
        k[1, 2](given, out)
        done = given if isinstance(given, np.ndarray) else given.copy_to_host()
        assert out.tolist() == [True, False]
        assert done["name"].tolist() == [b"someo"] * 2 and done["text"].tolist() == ["é☃☃", "q☃☃"]
        assert done["tags"].tolist() == [[b"x", b"t"], [b"", b"t"]] and done["c"].tolist() == [5, 5]


@pytest.mark.parametrize("dtype", ["S3", "U3"])
def test_device_arrays(dtype):
    a = np.array(["ab", "xyz", ""]).astype(dtype)
    d = cuda.to_device(a)
    assert d.dtype == a.dtype and d.shape == (3,) and d.nbytes == a.nbytes
    np.testing.assert_array_equal(d.copy_to_host(), a)
    assert d.__cuda_array_interface__["typestr"] == a.dtype.str
    e = cuda.device_array_like(d)

    @cuda.jit
    def copy(x, y):
        i = cuda.grid(1)
        y[i] = x[x.size - 1 - i]

    copy[1, 3](d, e)
    np.testing.assert_array_equal(e.copy_to_host(), a[::-1])
    np.testing.assert_array_equal(e[1:].copy_to_host(), a[::-1][1:])
    copy[1, 2](d[::2], e[:2])
    np.testing.assert_array_equal(e[:2].copy_to_host(), a[[2, 0]])
    assert cuda.device_array(2, np.dtype(dtype)).dtype == np.dtype(dtype)


S4 = np.dtype("S4")


def test_shared_local_views_and_shapes():
    @cuda.jit
    def k(a, out):
        i = cuda.grid(1)
        near = cuda.shared.array(4, S4)
        own = cuda.local.array(2, S4)
        near[i] = a[i, 1]
        own[:] = b"own"
        cuda.syncthreads()
        out[i, 0] = near[3 - i]
        out[i, 1] = own[1]
        out[i, 2] = a[i][0]
        for s in a[i]:
            if s == b"skip":
                out[i, 2] = s

    a = np.array([[b"a", b"b"], [b"c", b"d"], [b"skip", b"e"], [b"f", b"g"]])
    out = np.zeros((4, 3), "S4")
    k[1, 4](a, out)
    want = [
        [b"g", b"own", b"a"],
        [b"e", b"own", b"c"],
        [b"d", b"own", b"skip"],
        [b"b", b"own", b"f"],
    ]
    assert out.tolist() == want
    strided = np.full((4, 6), b"?", "S4")
    k[1, 4](a, strided[:, ::2])
    assert strided[:, ::2].tolist() == want and (strided[:, 1::2] == b"?").all()


def test_signatures():
    @cuda.jit("void(CharSeq(3)[:], UnicodeCharSeq(2)[::1])")
    def k(a, u):
        a[0] = b"now"
        u[0] = "ok"

    a, u = np.zeros(1, "S3"), np.zeros(1, "U2")
    k[1, 1](a, u)
    assert (a[0], u[0]) == (b"now", "ok")
    assert types.CharSeq(3) == types.CharSeq(3) != types.UnicodeCharSeq(3)
    assert k.signatures == [(types.CharSeq(3)[:], types.UnicodeCharSeq(2)[::1])]
    with pytest.raises(TypeError, match=r"\[char x 4\]"):
        k[1, 1](np.zeros(1, "S4"), u)


@pytest.mark.parametrize("dtype", ["S4", "U4"])
@pytest.mark.parametrize("index", [4, -1, 2, 3, 2**40])
def test_an_index_behind_the_length(dtype, index):
    @cuda.jit
    def k(a, n, out):
        s = a[0]
        out[0] = s[n] == s[n]

    with pytest.raises(IndexError, match="size 2"):
        k[1, 1](np.array(["ab"]).astype(dtype), index, np.zeros(1))


def test_an_index_of_the_array():
    @cuda.jit
    def k(a):
        a[7] = b"x"

    a = np.array([b"q"])
    with pytest.raises(IndexError, match="'a'"):
        k[1, 1](a)
    assert a[0] == b"q"


REFUSED = {
    'a[0] = "str"': "bytes expected, not str",
    'u[0] = b"bytes"': "str expected, not bytes",
    "a[0] = 1": "bytes expected, not int64",
    "o[0] = a[0]": "float64 expected, not char x 3",
    'a[0] = a[0] + "x"': r"no operator \+",
    "a[0] = a[0] * 2": r"no operator \*",
    'o[0] = a[0] < "x"': "no operator <",
    "o[0] = a[0].upper()": "strings in kernels have no upper",
    'o[0] = a[0].find(b"x", 1)': "find in a kernel takes 1 argument",
    'o[0] = a[0].find("x")': "find of str and bytes",
    "a[0] = a[0][0:1]": "not in simt yet",
    "o[0] = ord(a[0])": r"ord\(\) takes one character",
    "o[0] = ord(u[0])": r"ord\(\) takes one character",
    "o[0] = hash(a[0])": "hash",
    "u[0] = str(a[0])": r"str\(\) of bytes is not in simt yet",
    "u[0] = str(1)": r"str\(\) of int64 is not in simt yet",
    "print(a[0])": r"print\(\) of char x 3",
    'o[0] = a[0] == b"x\\0"': "ends with a NUL",
    "for x in a[0]: o[0] = 1": "char x 3",
    "o[0] = min(a[0], a[0])": "min takes real numbers, not char x 3",
    "o[0] = int(a[0])": "char x 3",
}


@pytest.mark.parametrize("line", REFUSED)
def test_what_is_not_there_is_named(line):
    scope = load(f"def k(a, u, o):\n    {line}\n")
    a, u, o = np.zeros(1, "S3"), np.zeros(1, "U3"), np.zeros(1)
    with pytest.raises((TypingError, TypeError, NotImplementedError), match=REFUSED[line]) as error:
        cuda.jit(scope["k"])[1, 1](a, u, o)
    assert ":2:" in str(error.value) and (a[0], u[0]) == (b"", "")


@pytest.mark.parametrize("dtype", [">U3", "S2000", "U300"])
def test_other_dtypes_are_refused(dtype):
    @cuda.jit
    def k(a):
        a[0] = a[0]

    with pytest.raises(TypeError, match="strings of 1 to 1024 bytes"):
        k[1, 1](np.zeros(1, dtype))


def test_strings_themselves_are_no_arguments():
    @cuda.jit
    def k(s):
        pass

    for value in ("x", np.bytes_(b"x"), np.str_("x")):
        with pytest.raises(TypeError, match="kernels take"):
            k[1, 1](value)
