"""Objects that no program should pass, and the names that the programs of the fuzzer use.

An expression makes its object anew for each program: most change something while they are read,
describe memory wrongly, or are of a kind that the place they are put in does not expect. What
NumPy's own asarray ends a process with is left out (tests/python/test_odd_objects.py has it).
"""

import array as pyarray  # noqa: F401
import ctypes  # noqa: F401
import warnings

import numpy as np
import simt.cupy as cp
import simt.torch as torch
import simt.torch.nn.functional as F  # noqa: F401
from simt import _core
from simt.numba import cuda, guvectorize, vectorize

warnings.simplefilter("ignore")


@cuda.jit
def scale(a, x):
    i = cuda.grid(1)
    if i < a.size:
        a[i] *= x


@cuda.jit("void(float32[:], float32)")
def declared(a, x):
    i = cuda.grid(1)
    if i < a.size:
        a[i] *= x


def closed_over(factor):
    @cuda.jit
    def scaled(a, f):
        i = cuda.grid(1)
        if i < a.size:
            a[i] = f(a[i]) * factor

    return scaled


closure = closed_over(2.0)
added = vectorize(["float64(float64, float64)"])(lambda a, b: a + b)
summed = vectorize()(lambda a, b: a + b)


@guvectorize(["(float64[:], float64[:])"], "(n)->(n)")
def rows(a, out):
    for i in range(a.size):
        out[i] = a[i] + a[0]


def records(n=3):
    return cuda.to_device(np.zeros(n, [("a", "i4"), ("b", "f8", (2,))]))


# ---- objects that change something while they are read ----


class Odd:
    """Runs `effect` once when it is read in any way, then gives `value`."""

    def __init__(self, value=1, effect=None):
        self.value, self.effect = value, effect

    def read(self, *unused):
        effect, self.effect = self.effect, None
        if effect is not None:
            effect()
        return self.value

    __index__ = __int__ = read

    def __float__(self):
        return float(self.read())

    def __bool__(self):
        return bool(self.read())

    def __hash__(self):
        return 1

    def __eq__(self, other):
        return bool(self.read())

    def __repr__(self):
        return f"Odd({self.value})"


class OddSequence(Odd):
    """As a sequence; its length may be another one than it says."""

    def __init__(self, items=(1, 2), length=None, effect=None):
        super().__init__(1, effect)
        self.items, self.length = list(items), length

    __index__ = __int__ = None

    def __len__(self):
        self.read()
        return len(self.items) if self.length is None else self.length

    def __getitem__(self, i):
        self.read()
        return self.items[i]

    def __repr__(self):
        return "OddSequence()"


class Interface(Odd):
    """Describes memory, rightly but for `parts`."""

    def __init__(self, device=False, effect=None, **parts):
        super().__init__(1, effect)
        self.x = np.arange(8.0)
        self.name = "__cuda_array_interface__" if device else "__array_interface__"
        # backwards: from the last element, which nobody else could know to be the last
        first = self.x.ctypes.data + (56 if parts.get("strides") == (-8,) else 0)
        self.parts = {
            "shape": (8,), "typestr": "<f8", "data": (first, False), "version": 3
        } | parts  # fmt: skip

    __index__ = __int__ = None

    def __getattr__(self, name):
        if name == self.__dict__.get("name"):
            self.read()
            return self.parts
        raise AttributeError(name)

    def __repr__(self):
        return "Interface()"


class Dlpack(Odd):
    def __init__(self, make, effect=None):
        super().__init__(1, effect)
        self.make = make

    __index__ = __int__ = None

    def __dlpack__(self, **arguments):
        self.read()
        return self.make()

    def __dlpack_device__(self):
        return (1, 0)


class Raising(Odd):
    def read(self, *unused):
        raise RuntimeError("raised by the object")

    __index__ = __int__ = __float__ = __bool__ = __len__ = __iter__ = read

    def __getattr__(self, name):
        raise RuntimeError("raised by the object")


class Again(Odd):
    """Calls what it was given to once more, with itself."""

    def __init__(self, call):
        super().__init__(1)
        self.call = call

    def read(self, *unused):
        self.call(self)
        return 1

    __index__ = __int__ = read

    @property
    def __cuda_array_interface__(self):
        self.call(self)
        raise AttributeError


class Bytes(bytes):
    pass


class Int(int):
    pass


class Float(float):
    pass


class Str(str):
    pass


class SubTensor(torch.Tensor):
    pass


class SubArray(cp.ndarray):
    pass


class Buried:
    """Empties a list when it dies."""

    def __init__(self, of):
        self.of = of

    def __del__(self):
        self.of.clear()


def emptied(*items, at=0, kind=Odd):
    """A list that is empty once its element `at` is read."""
    made = list(items)
    made.insert(at, kind(effect=made.clear))
    return made


def grown(*items):
    """A list that is longer once its first element is read."""
    made = list(items)
    made.insert(0, Odd(effect=lambda: made.extend([1] * 100)))
    return made


def reshaped(a, shape=(1,)):
    """The array, and a number whose reading gives it another shape."""

    def effect():
        a.shape = shape

    return a, Odd(effect=effect)


def replaced(t, by=None):
    """The tensor, and a number whose reading gives it other data."""

    def effect():
        t.data = torch.zeros(0) if by is None else by

    return t, Odd(effect=effect)


def buried():
    made = [1, 1]
    made.append(Buried(made))
    return made


def endless():
    made = [1]
    made.append(made)
    return made


def used(capsule):
    try:
        _core.from_dlpack(capsule)
    except Exception:
        pass
    return capsule


def crooked():
    return np.arange(41, dtype=np.uint8)[1:].view(np.float32)


def frozen(a):
    a.flags.writeable = False
    return a


def leaf(*shape):
    return torch.ones(*shape, requires_grad=True)


KINDS = ["f4", "f8", "i8", "u1", "?", "f2", "i4", "u8"]
SHAPES = [(), (0,), (1,), (5,), (2, 3), (3, 2), (1, 2, 4, 4), (0, 3), (2, 0, 1), (1,) * 16]

NUMBERS = """
0 1 -1 2 3 5 7 100 -100 -(2**31)-1 2**40 2**62 2**63-1 2**63 -2**63 2**64 10**30 0.0 -0.5 0.5 1.5
1e300 -1e300 float('nan') float('inf') True False 1j Int(2) Float(1.5) np.float32(1.5) np.int8(-3)
np.uint64(2**63) np.bool_(True) np.float16(2) np.complex64(1) np.datetime64('2020-01-01')
np.timedelta64(3,'s') np.longdouble(1) np.str_('a')
""".split()
OTHERS = """
None '' 'abc' 'f4' 'C' 'F' 'A' 'K' 'sum' 'mean' 'floor' 'valid' Str('f4') b'' b'x'
Bytes(b'12345678') bytearray(8) () (1,) (0,1) (1,0) (-1,) (5,5) (2,3) (0,0) (2**40,2**40)
(2**62,2) (-(2**63),)
[1,2] [[1]] [[1],[1,2]] [[]] [] (1,)*40 [0.5] ['a'] [None] (None,) {} {1:2} set() object()
slice(None)
slice(None,None,-1) slice(2**63-1,-(2**63),2**63-1) slice(Odd(),Odd(),Odd()) Ellipsis
(Ellipsis,Ellipsis) (0,Ellipsis,None) range(3) range(2**62) iter([1,2]) (i_for_i_in_(1,2)) int
float bool str type len cp torch Exception() np.float32 np.dtype('f4') np.dtype('M8[s]')
np.dtype([('a','i4')]) torch.float32 torch.int64 torch.bool torch.device('cpu') torch.Size([2,3])
torch.strided memoryview(b'1234') memoryview(bytearray(8))[::2] pyarray.array('d',[1,2,3])
(ctypes.c_float*4)(1,2,3,4) ((ctypes.c_int*2)*3)() (ctypes.c_float*0)() ctypes.c_double(1.5)
ctypes.py_object(1)
""".split()
ODD = """
Odd() Odd(0) Odd(-1) Odd(2**70) Odd('a') Odd(None) Odd(1.5) Raising() Raising OddSequence()
OddSequence((1,2),-1) OddSequence((1,2),5) OddSequence((1,2),0) OddSequence((1,2),2**40)
OddSequence(((1,),(2,3))) OddSequence(()) emptied(1,1) emptied(1,1,at=1) emptied(1,at=1)
emptied(np.zeros(8),np.zeros(8),at=1,kind=Interface)
emptied(cp.ones(2),cp.ones(2),at=1) grown(1) grown(1,1) buried() endless() tuple(emptied(1))
Interface() Interface(True) Interface(shape=(-1,)) Interface(True,shape=(2**62,))
Interface(True,strides=(-8,)) Interface(data=(0,False))
Interface(True,data=(8,False)) Interface(typestr='>f4') Interface(True,typestr='<M8[s]')
Interface(data=b'1234') Interface(shape=emptied(1)) Interface(True,shape=emptied(1))
Interface(True,data=(1,)) Interface(True,shape=(0,),data=(0,True)) Interface(mask=1)
Interface(True,shape=(2**62,0)) Dlpack(lambda:None) Dlpack(lambda:1/0)
Dlpack(lambda:cp.ones(2).__dlpack__()) Dlpack(lambda:used(cp.ones(2).__dlpack__()))
cp.ones(2).__dlpack__() used(cp.ones(2).__dlpack__()) torch.ones(2).__dlpack__(max_version=(1,0))
""".split()
ARRAYS = """
np.arange(3) np.zeros(0) np.array(5) np.array(['x']) np.arange(6.0).reshape(2,3)[::-1]
np.ones((2,3),order='F') np.array([1],dtype=object) np.ones(3,'>f4') crooked() frozen(np.ones(3))
np.ones(2,'M8[s]') np.zeros(2,[('a','i4'),('b','f8')]) np.zeros(3,'c8') np.matrix([[1,2]])
np.broadcast_to(np.ones(1),(5,)) np.ma.array([1,2]) np.ones((1,)*20) cp.array(3) cp.zeros(0)
cp.arange(5) cp.ones((2,3)).T cp.arange(10)[::2] cp.broadcast_to(cp.ones(1),(4,))
cp.array([True,False]) cp.array([0,100]) cp.array([-1,-9]) SubArray((2,))
cp.asarray(Interface(True)) torch.tensor(2.5) torch.tensor(3) torch.zeros(0) leaf(2,3)
leaf(3).sum() leaf(2,3)[0] torch.arange(5) torch.ones(2,3).t() torch.ones(1).expand(4)
torch.tensor([True,False]) torch.tensor([0,100]) torch.from_numpy(np.arange(4.0))
torch.nn.Parameter(torch.ones(2)) torch.ones(3).bfloat16()
torch.Tensor._make_subclass(SubTensor,torch.ones(2)) torch.arange(12)[2::3]
cuda.to_device(np.arange(4.0)) cuda.device_array((2,3),'i4',order='F') cuda.device_array(0)
cuda.as_cuda_array(Interface(True)) cuda.to_device(np.zeros(3,[('a','i4')]))
cuda.device_array((),'c16') cuda.mapped_array(4) scale scale[1,1] torch.Generator() cuda.stream()
""".split()


def spelled(text):
    return text.replace("_", " ") if "_for_" in text else text


OBJECTS = [spelled(text) for text in NUMBERS + OTHERS + ODD]
