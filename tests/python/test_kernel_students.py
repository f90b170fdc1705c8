"""Kernels as students write them: what a kernel cannot hold is refused with its place and with what
to write instead; what looks unusual, but is Python, does what Python does. (More of the former:
test_kernel_errors.py.)"""

import math
import random
import re
import time

import numpy as np
import pytest
from numba_face import MODE, cuda
from numba_source import load

if MODE != "simt":
    pytest.skip("simt's messages", allow_module_level=True)

from simt.numba import float32
from simt.numba.core.errors import TypingError


class O:  # noqa: E742
    x = 1

    def f(self, x):
        return x


@cuda.jit(device=True)
def helper(x, y):
    return x + y


def procedure(a):
    a[0] = 1


GLOBALS = {
    "cuda": cuda,
    "float32": float32,
    "math": math,
    "np": np,
    "random": random,
    "time": time,
    "helper": helper,
    "procedure": procedure,
    "counter": 0,
    "COUNTS": np.zeros(3, np.int32),
    "WORDS": ["a"],
    "NAME": "x",
    "CONFIG": {"n": 1},
    "OBJ": O(),
}

# The body of kernel(a, m), then the text under the caret and the message's beginning.
REFUSED = r"""
a[0] = np.eye(3)
-> np.eye(3) | numpy.eye is not in simt's kernels: use cuda.local.array or cuda.shared.array, or

a[0] = a.cumsum()
-> a.cumsum() | array(float32, 1d, C) has no attribute 'cumsum' in a kernel: write a for loop

a[0] = sum(a[i] for i in range(3))
-> (a[i] for i in range(3)) | a generator expression is not possible in a kernel: write a for loop

a[0] = max(a)
-> max(a) | max of array(float32, 1d, C): give it two or more numbers, or a tuple

a[i] = 1
-> i] = 1 | name 'i' is not defined: a thread's own index is i = cuda.grid(1)

a[cuda.grid] = 1
-> a[cuda.grid] = 1 | an index must be integers or slices, not function cuda.grid: call it, cuda.gri

i = cuda.grid()
a[i] = 1
-> cuda.grid() | cuda.grid takes 1 argument (ndim), 0 given

i = cuda.grid(1.0)
a[i] = 1
-> cuda.grid(1.0) | cuda.grid takes the constant 1, 2 or 3

i, j = cuda.grid(1)
-> i, j = cuda.grid(1) | int64 cannot be unpacked into 2 names

i = cuda.grid(2)
a[i] = 1
-> a[i] = 1 | 2 indices for an array of 1 dimension

i = cuda.threadIdx
a[i] = 1
-> a[i] = 1 | an index must be integers or slices, not function cuda.threadIdx: write cuda.threadIdx

i = cuda.threadidx.x
-> cuda.threadidx.x | cuda has no attribute 'threadidx': nearest is cuda.threadIdx.x

i = threadIdx.x
-> threadIdx.x | name 'threadIdx' is not defined: write cuda.threadIdx

i = cuda.threadIdx.x()
-> cuda.threadIdx.x() | int32 cannot be called: leave out the (), or write *

i = cuda.blockDim.x * cuda.blockIdx + cuda.threadIdx.x
-> cuda.blockDim.x * cuda.blockIdx + cuda.threadIdx.x | no operator * for int32 and function cuda.bl

a[0] = float(2)
a[1] = float("2")
-> float("2") | float64 expected, not string: kernels do not compute with strings

a[0] = "x" + 1
-> "x" + 1 | no operator + for string and int64: kernels do not compute with strings

print("%d" % 3)
-> "%d" % 3) | no operator % for string and int64: kernels do not compute with strings

print("i = {}".format(3))
-> "i = {}".format(3)) | string has no attribute 'format' in a kernel: kernels have no strings, prin

print("a", a)
-> print("a", a) | print() of array(float32, 1d, C) in a kernel: a kernel works on elements, write a

x = []
x.append(1)
-> [] | lists are not possible in a kernel: use a tuple, or cuda.local.array / cuda.shared.array

x = dict()
-> dict() | dict is not in simt's kernels: use an array: cuda.local.array, or an argument

a[0] = a[0:2]
-> a[0] = a[0:2] | an element of 'a' cannot be an array: write one element, a[i]

a[a > 0] = 1
-> a > 0] = 1 | no operator > for array(float32, 1d, C) and int64: a kernel works on elements, write

m[0, 1, 2] = 1
-> m[0, 1, 2] = 1 | 3 indices for an array of 2 dimensions

a["x"] = 1
-> a["x"] = 1 | an index must be integers or slices, not string: kernels do not compute with strings

a.x = 1
-> a.x = 1 | the attribute 'x' of array(float32, 1d, C) cannot be assigned in a kernel

a = a + 1
-> a + 1 | no operator + for array(float32, 1d, C) and int64: a kernel works on elements, write a[i]

a += 1
-> a += 1 | no operator + for array(float32, 1d, C) and int64: a kernel works on elements, write a[i

c = m @ m
-> m @ m | no operator @ for array(float32, 2d, C) and array(float32, 2d, C): a kernel works on elem

a.sort()
-> a.sort() | array(float32, 1d, C) has no attribute 'sort' in a kernel: write a for loop

b = a.copy()
-> a.copy() | array(float32, 1d, C) has no attribute 'copy' in a kernel: use cuda.local.array or cud

b = a.flatten()
-> a.flatten() | array(float32, 1d, C) has no attribute 'flatten' in a kernel: do it before the

b = a.astype(np.int32)
-> a.astype(np.int32) | array(float32, 1d, C) has no attribute 'astype' in a kernel: do it before th

a[0] = a.item(0)
-> a.item(0) | array(float32, 1d, C) has no attribute 'item' in a kernel: write a[i]

a[0] = a[0].astype(np.int32)
-> a[0].astype(np.int32) | float32 has no attribute 'astype' in a kernel: convert with int(x), float

x = 1, 2
x[0] = 3
-> x[0] = 3 | a tuple's items cannot be assigned

x = (1, 2)
x.append(3)
-> x.append(3) | tuple(int64, int64) has no attribute 'append' in a kernel: use an array: cuda.local

x = (1, 2)
a[0] = x[2]
-> x[2] | index 2 is out of range for a tuple of 2

a[0] = 1 in a
-> 1 in a | no operator in for int64 and array(float32, 1d, C): a kernel works on elements, write a[

a[0] = 1 if a else 2
-> a else 2 | the truth of array(float32, 1d, C) is not defined: test an element, or its size

for i in 5:
    a[i] = 1
-> 5 | int64 cannot be iterated: write range(...)

for i in reversed(range(3)):
    a[i] = i
-> reversed(range(3)) | reversed is not in simt's kernels: write a for loop

for i in range(0, 10, 0.5):
    a[0] += i
-> range(0, 10, 0.5) | range takes integers, not float64: write int(...)

for i in np.arange(3):
    a[i] = 1
-> np.arange(3) | numpy.arange is not in simt's kernels: compute the element from its index

for k, v in {"a": 1}.items():
    pass
-> {"a": 1}.items() | a dict is not possible in a kernel: use an array, or if/elif

del a[0]
-> del a[0] | del is not possible in a kernel: leave it out: variables of a kernel need no deleting

x = 1
del x
-> del x | del is not possible in a kernel: leave it out: variables of a kernel need no deleting

try:
    a[0] = 1
finally:
    a[1] = 1
-> try | try/except is not possible in a kernel: test the condition with if

global counter
counter = 1
-> global counter | a global statement is not possible in a kernel: write results into an array that

counter = counter + 1
-> counter + 1 | variable 'counter' is used before it is assigned: since the kernel assigns it, it i

COUNTS[0] = 1
-> COUNTS[0] = 1 | array 'COUNTS' is read-only: give the kernel an array to write as an argument

a[0] = NAME
-> a[0] = NAME | float32 expected, not string: kernels do not compute with strings

a[0] = OBJ.x
-> OBJ.x | 'OBJ' (an object of type 'O') has no attribute 'x' in a kernel: give its value a name out

a[0] = OBJ.f(1)
-> OBJ.f(1) | 'OBJ' (an object of type 'O') has no attribute 'f' in a kernel: give its value a name

a[0] = helper(1, 2, 3)
-> helper(1, 2, 3) | helper takes 2 arguments, 3 given

a[0] = helper(**{"x": 1})
-> **{"x": 1}) | '**' in a call is not possible in a kernel

a[0] = procedure(a)
-> a[0] = procedure(a) | float32 expected, not None: is a return missing in a function?

a[0] = helper
-> a[0] = helper | float32 expected, not function helper: call it, helper(...)

a[0] = helper + 1
-> helper + 1 | no operator + for function helper and int64: call it, helper(...)

range = 3
for i in range(3):
    pass
-> range(3) | 'range' is a variable here (int64) and cannot be called: rename it

open("x")
-> open("x") | 'open' (a function of Python's library) cannot be called in a kernel: pass the data i

exit()
-> exit() | 'exit' (an object of type 'Quitter') cannot be called in a kernel: write return to end a

time.sleep(1)
-> time.sleep(1) | 'time.sleep' (a function of Python's library) cannot be called in a kernel: take

a[0] = random.random()
-> random.random() | 'random.random' (a function of Python's library) cannot be called in a kernel:

a[0] = np.sqrt(a)
-> np.sqrt(a) | numpy.sqrt takes numbers, not array(float32, 1d, C): a kernel works on elements, wri

a[0] = sqrt(2)
-> sqrt(2) | name 'sqrt' is not defined: write math.sqrt

a[0] = math.sqr(2)
-> math.sqr(2) | math has no attribute 'sqr': nearest is math.sqrt

a[0] = np.clip(a[0], 0, 1)
-> np.clip(a[0], 0, 1) | numpy.clip is not in simt's kernels: write min(max(x, low), high)

a[0] = np.float(2)
-> np.float(2) | module 'numpy' has no attribute 'float'.

a[0] = np.float128(2)
-> np.float128(2) | numpy.longdouble is not in simt's kernels: float64 is the widest type

s = cuda.shared.array(4, "float33")
-> cuda.shared.array(4, "float33") | cuda.shared.array: the dtype must be a type such as numba.float

s = cuda.shared.zeros(4, float32)
-> cuda.shared.zeros(4, float32) | cuda.shared has no attribute 'zeros': write cuda.shared.array(sha

s = shared.array(4, float32)
-> shared.array(4, float32) | name 'shared' is not defined: write cuda.shared

cuda.syncthreads
-> cuda.syncthreads | this does nothing: call it, cuda.syncthreads(...)

cuda.syncthreads(1)
-> cuda.syncthreads(1) | cuda.syncthreads takes 0 arguments, 1 given

a[0] = cuda.shfl_down_sync(a[0], 1)
-> cuda.shfl_down_sync(a[0], 1) | cuda.shfl_down_sync takes 3 arguments (mask, value, delta), 2 gi

cuda.atomic.add(a, 1)
-> cuda.atomic.add(a, 1) | cuda.atomic.add takes 3 arguments (ary, idx, val), 2 given

cuda.atomic.add(m, 0, 1)
-> cuda.atomic.add(m, 0, 1) | one element expected: 1 indices for an array of 2 dimensions: write (i

cuda.atomicAdd(a, 0, 1)
-> cuda.atomicAdd(a, 0, 1) | cuda has no attribute 'atomicAdd': write cuda.atomic.add(array, index,

cuda.atomic.sum(a, 0, 1)
-> cuda.atomic.sum(a, 0, 1) | cuda.atomic has no attribute 'sum': write cuda.atomic.add

cuda.to_device(a)
-> cuda.to_device(a) | 'simt.numba.cuda.to_device' (a function for the host: call it outside of the

a[0] = 3 & 1.0
-> 3 & 1.0 | no operator & for int64 and float64: it works on integers, convert with int(...)

a[0] = ~a[0]
-> ~a[0] | no operator ~ for float32: it works on integers, convert with int(...)

x, y = a
-> x, y = a | array(float32, 1d, C) cannot be unpacked into 2 names

a[0] = 1 if a[0] else "x"
-> 1 if a[0] else "x" | the two values have different types: int64 and string

a[0] = complex(1, 2)
-> a[0] = complex(1, 2) | complex128 cannot become float32: take .real or abs()

a[0] = cuda.warpSize
-> cuda.warpSize | cuda has no attribute 'warpSize': nearest is cuda.warpsize

m[0] += 1
-> m[0] += 1 | no operator + for array(float32, 1d, C) and int64: a kernel works on elements, write

n = a.shape
for i in range(n):
    pass
-> range(n) | range takes integers, not tuple(int64): take an item, t[0]

a[0] = a.length
-> a.length | array(float32, 1d, C) has no attribute 'length' in a kernel: write a.size or len(a)

a[0] = a.Shape[0]
-> a.Shape[0] | array(float32, 1d, C) has no attribute 'Shape' in a kernel: an array has shape, ndim

a[0] = isinstance(a[0], float)
-> isinstance(a[0], float) | isinstance is not in simt's kernels: types are fixed when a kernel is c

a[0] = chr(65)
-> a[0] = chr(65) | float32 expected, not unichr x 1: a string is no number

f = math.sin if a[0] > 0 else math.cos
a[0] = f(1)
-> math.sin if a[0] > 0 else math.cos | the two values have different types: function math.sin and f

a[0] = float32(1, 2)
-> float32(1, 2) | float32 takes one argument

a[0] = math.prod((1, 2))
-> math.prod((1, 2)) | math.prod is not in simt's kernels: write a for loop

a[0] = math.isclose(1.0, 1.0)
-> math.isclose(1.0, 1.0) | math.isclose is not in simt's kernels: write abs(x - y) <= tolerance

x = slice(0, 2)
b = a[x]
b[0] = 1
-> slice(0, 2) | slice is not in simt's kernels: write the slice where it is used: a[i:j]

a[0] = range(3)[1]
-> range(3)[1] | range has no elements to index
"""

# Bodies that do the same as in Python.
WORKS = """
a[0] = len(a)

a[0] = min(a[0], a[1], a[2])

a[0:2] = 1

a[0:2] = a[2:4]

a[:] = 0

b = a[::2]
b[0] = 5

b = a[::-1]
b[0] = 5

a[...] = 1

m[0][1] = 1

a[1, ] = 2

a[-1] = 2

b = m.T
a[0] = b[0, 1]

a[0] = m.shape[0] + m.ndim + a.size

x = (1, 2) + (3,)
a[0] = x[2] + len(x)

x = (1, 2) * 2 + (3,) * 0
a[0] = x[3] + len(x)

x = (1, *(2, 3), *a.shape, *(4,) * 9)
a[0] = x[2] + len(x)

a[0] = (1, 2) == (1, 2)

a[0] = 1 in (1, 2)

while a[0] < 3: a[0] += 1

for x in a: a[0] += x

for i in range(len(a)):
    a[i] = i

for i, x in enumerate(a):
    a[i] = x + i

for x, y in zip(a, a):
    a[0] += x * y

for i in (0, 1, 2):
    a[i] = i

NAME2 = 1
a[0] = NAME2

if __name__ == "__main__":
    a[0] = 1

max = 3
a[0] = max

sum = 0
for i in range(3):
    sum += i
a[0] = sum

a[0] = abs(-1) + round(2.5) + pow(2, 3) + divmod(7, 2)[0]

a[0] = np.pi + math.pi

a[0] = math.e ** 2

a[0] = np.exp(a[0])

a[0] = np.where(a[0] > 0, 1, 2)

a[0] = np.inf

a[0] = np.int32(3.7)

a[0] = 2 ** 0.5

a[0] = not a[0]

a[0] = -True

x: int = 3
a[0] = x

x: "float"
x = 3
a[0] = x

x = y = 2
a[0] = x + y

x, *y = 1, 2, 3
a[0] = y[1]

x, y = a[0], a[1]
x, y = y, x
a[0] = x

(x, y), z = (1, 2), 3
a[0] = z

if (n := 3) > 2:
    a[0] = n

a[0] = (1 + 2j).imag

a[0] = abs(3 + 4j)

a[0] //= 2

a[0] **= 2

a[0], a[1] = a[1], a[0]

a[0] = a[1] = 3

b = a
b[0] = 3

b = (a, a)
b[1][0] = 3

x = a.shape
a[0] = x[0]

n, k = m.shape
a[0] = n * k

a[0] = bool(a[0])

a[0] = a[0] and a[1]

for i in range(3):
    pass
a[0] = i

for i in range(3):
    x = i
a[0] = x

while True:
    a[0] += 1
    break
else:
    a[0] = 9

for i in range(3):
    if i == 1:
        continue
    a[i] = 1

for i in range(3):
    for j in range(3):
        if j == 1: break
    else:
        a[i] = 1

x = math.sin
a[0] = x(1.0)

a[0] = math.floor(2.5) + math.ceil(2.5)

a[0] = math.gcd(4, 6)

a[0] = round(2.567, 2)

a[0] = len(range(3))

a[0] = "a" == "b"
"""


def source_of(body):
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return f"def kernel(a, m):\n{lines}"


def arguments():
    return np.arange(8, dtype=np.float32), np.arange(4, dtype=np.float32).reshape(2, 2)


def rows(text):
    return [pytest.param(row, id=row.partition("\n->")[0]) for row in text.strip().split("\n\n")]


@pytest.mark.parametrize("row", rows(REFUSED))
def test_refused(row):
    body, _, expected = row.rpartition("\n-> ")
    under, _, message = expected.partition(" | ")
    kernel = load(source_of(body), **GLOBALS)["kernel"]
    with pytest.raises(TypingError) as error:
        cuda.jit(kernel)[1, 1](*arguments())
    text = str(error.value)
    assert text.startswith(message)
    place = re.search(r"^at .*:(\d+):(\d+)\n    (.*)\n    ( *)\^$", text, re.M)
    assert place, text
    line, column, shown, blanks = place.groups()
    assert source_of(body).splitlines()[int(line) - 1][int(column) - 1 :].startswith(under), text
    assert shown[len(blanks) :].startswith(under), text


@pytest.mark.parametrize("row", rows(WORKS))
def test_as_in_python(row):
    function = load(source_of(row), **GLOBALS)["kernel"]
    found, expected = arguments(), arguments()
    cuda.jit(function)[1, 1](*found)
    function(*expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.parametrize("body", ["cuda.threadIdx", "helper", "a[0] = 1\ncuda.syncthreads"])
def test_a_function_that_is_not_called(body):
    kernel = load(source_of(body), **GLOBALS)["kernel"]
    with pytest.raises(TypingError, match="this does nothing"):
        cuda.jit(kernel)[1, 1](*arguments())
