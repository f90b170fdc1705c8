"""CUDA's model in plain Python: a reference for kernels, small sizes only.

Stands in for `numba.cuda`: `@jit` gives a kernel that runs the function itself once per thread of
the grid. Every CUDA thread is a Python thread, but exactly one runs at a time: a thread keeps the
baton until it waits (barrier, warp operation, grid sync), ends, or an atomic or fence lets others
run (now and then, so that spin loops end). A thread that never waits costs no switch.

What differs from a GPU on purpose: uninitialised shared and local memory holds garbage, an index
out of bounds raises, waiting for what cannot come raises Deadlock. Typing is Python's and NumPy's,
not Numba's: kernels compared with this reference must not depend on the difference.
"""

import math
import random
import sys
import threading
import types
from collections import deque

import numpy as np

WARP = 32
FULL = 0xFFFFFFFF


class Deadlock(RuntimeError):
    """Every thread waits."""


class _Abort(BaseException):
    """Unwinds the other threads after one has failed."""


class _Dim:
    __slots__ = ("x", "y", "z")

    def __init__(self, x, y, z):
        self.x, self.y, self.z = x, y, z


class _Meeting:
    """A rendezvous: members bring values and leave with all of them when everyone is there."""

    def __init__(self, expected):
        self.expected = expected  # a function: the threads that have to come
        self.values = {}  # thread -> value
        self.kind = None


class _Thread:
    def __init__(self, block, index, flat):
        self.block, self.index, self.flat = block, index, flat
        self.lane, self.warp = flat % WARP, flat // WARP
        self.wake = None  # a lock once the thread has been suspended
        self.result = None
        self.ended = False


class _Block:
    def __init__(self, launch, index):
        self.index = index
        self.shared = {}
        self.dynamic = np.full(launch.dynamic_bytes, 0xCD, np.uint8)
        bx, by, bz = launch.block
        self.threads = []
        for z in range(bz):
            for y in range(by):
                for x in range(bx):
                    self.threads.append(_Thread(self, _Dim(x, y, z), len(self.threads)))
        self.meetings = {}  # None: the barrier; (warp, mask): warp operations


class _Launch:
    """One launch: the threads and who runs next."""

    LIMIT = 20_000_000  # switches

    def __init__(self, function, args, grid, block, dynamic_bytes):
        self.function, self.args = function, args
        self.grid, self.block, self.dynamic_bytes = grid, block, dynamic_bytes
        self.random = random.Random(1)
        gx, gy, gz = grid
        self.blocks = [
            _Block(self, _Dim(x, y, z)) for z in range(gz) for y in range(gy) for x in range(gx)
        ]
        self.threads = [t for b in self.blocks for t in b.threads]
        self.ready = deque(self.threads)
        self.grid_meeting = None
        self.waiting = set()
        self.current = None
        self.error = None
        self.done = threading.Lock()
        self.switches = 0

    def run(self):
        global _launch
        previous, _launch = _launch, self
        try:
            self.done.acquire()
            self._start_worker(self._next())
            self.done.acquire()
        finally:
            _launch = previous
        if self.error is not None:
            raise self.error

    # -- the baton --

    def _start_worker(self, thread):
        threading.Thread(target=self._work, args=(thread,), daemon=True).start()

    def _next(self):
        """The thread that gets the baton, or None when all have ended."""
        if self.error is not None:  # unwind: only those inside the function matter
            while self.ready:
                thread = self.ready.popleft()
                if thread.wake is not None:
                    return thread
            if self.waiting:
                return self.waiting.pop()
            return None
        if not self.ready and self.waiting:
            first = min(self.waiting, key=lambda t: t.flat)
            self.error = Deadlock(
                f"{len(self.waiting)} threads wait for others that never come, among them thread "
                f"{first.flat} of block ({first.block.index.x}, {first.block.index.y})"
            )
            return self._next()
        return self.ready.popleft() if self.ready else None

    def _work(self, thread):
        """An operating-system thread: runs new threads in turn, ends when it resumes one."""
        while True:
            self.current = thread
            try:
                self.function(*self.args)
            except _Abort:
                pass
            except BaseException as error:
                if self.error is None:
                    self.error = error
            thread.ended = True
            self._thread_ended(thread)
            following = self._next()
            if following is None:
                self.done.release()
                return
            if following.wake is not None:
                following.wake.release()
                return
            thread = following

    def _suspend(self, thread):
        """Gives the baton away; returns when it comes back."""
        self.switches += 1
        if self.switches > self.LIMIT:
            raise Deadlock("the kernel does not end")
        if thread.wake is None:
            thread.wake = threading.Lock()
            thread.wake.acquire()
        following = self._next()
        if following is thread:
            if self.error is not None:
                raise _Abort
            return
        if following.wake is not None:
            following.wake.release()
        else:
            self._start_worker(following)
        thread.wake.acquire()
        self.current = thread
        if self.error is not None:
            raise _Abort

    def pause(self, chance=1.0):
        """Lets other threads run."""
        if self.ready and (chance >= 1.0 or self.random.random() < chance):
            thread = self.current
            self.ready.append(thread)
            self._suspend(thread)

    # -- meetings --

    def meet(self, owner, key, expected, kind, value):
        """Waits for all of expected() that have not ended; {thread: value} of those who came."""
        meeting = owner.get(key)
        if meeting is None:
            meeting = owner[key] = _Meeting(expected)
            meeting.kind = kind
        if meeting.kind != kind:
            raise RuntimeError(f"threads meet in different operations: {meeting.kind}, {kind}")
        thread = self.current
        meeting.values[thread] = value
        if not self._settle(owner, key):
            self.waiting.add(thread)
            self._suspend(thread)
        return thread.result

    def _settle(self, owner, key):
        meeting = owner[key]
        if any(not t.ended and t not in meeting.values for t in meeting.expected()):
            return False
        del owner[key]
        for thread in meeting.values:
            thread.result = meeting.values
            if thread in self.waiting:
                self.waiting.discard(thread)
                self.ready.append(thread)
        return True

    def _thread_ended(self, thread):
        if self.error is not None:
            return
        for key in list(thread.block.meetings):
            self._settle(thread.block.meetings, key)
        if self.grid_meeting:
            self._settle(self.grid_meeting, "grid")


_launch = None


def _thread():
    return _launch.current


# ---- kernels ----


def _three(x):
    x = tuple(x) if isinstance(x, tuple | list) else (x,)
    return tuple(int(v) for v in x) + (1,) * (3 - len(x))


class Kernel:
    def __init__(self, function):
        self.py_func = function
        self.__name__ = function.__name__

    def __getitem__(self, config):
        grid, block, *rest = config
        dynamic = rest[1] if len(rest) > 1 else 0

        def launch(*args):
            _Launch(self.py_func, args, _three(grid), _three(block), int(dynamic)).run()

        return launch

    def forall(self, ntasks, tpb=0, stream=0, sharedmem=0):
        tpb = tpb or 128
        return self[(ntasks + tpb - 1) // tpb, tpb, stream, sharedmem]


def jit(function=None, *, device=False, **options):
    if not isinstance(function, types.FunctionType):  # a signature, or options only
        return lambda f: jit(f, device=device)
    return function if device else Kernel(function)


# ---- where am I ----


class _Here:
    """threadIdx and its kin: attributes of the thread that has the baton."""

    def __init__(self, get):
        self._get = get

    x = property(lambda self: self._get().x)
    y = property(lambda self: self._get().y)
    z = property(lambda self: self._get().z)


threadIdx = _Here(lambda: _thread().index)
blockIdx = _Here(lambda: _thread().block.index)
blockDim = _Here(lambda: _Dim(*_launch.block))
gridDim = _Here(lambda: _Dim(*_launch.grid))
warpsize = WARP


def __getattr__(name):
    if name == "laneid":
        return _thread().lane
    raise AttributeError(f"module 'cuda' (simulator) has no attribute '{name}'")


def grid(ndim):
    t, size = _thread(), _launch.block
    i, b = t.index, t.block.index
    at = (i.x + b.x * size[0], i.y + b.y * size[1], i.z + b.z * size[2])
    return at[0] if ndim == 1 else at[:ndim]


def gridsize(ndim):
    size = tuple(g * b for g, b in zip(_launch.grid, _launch.block, strict=True))
    return size[0] if ndim == 1 else size[:ndim]


# ---- memory ----


def _garbage(shape, dtype):
    out = np.empty(shape, dtype)
    out.reshape(-1).view(np.uint8)[:] = 0xCD
    return out


class shared:
    @staticmethod
    def array(shape, dtype):
        """One array per block and call site; shape 0 is the launch's dynamic shared memory."""
        block, dtype = _thread().block, np.dtype(dtype)
        if shape == 0:
            usable = block.dynamic.size // dtype.itemsize * dtype.itemsize
            return block.dynamic[:usable].view(dtype)
        frame = sys._getframe(1)
        key = (frame.f_code, frame.f_lasti)
        if key not in block.shared:
            block.shared[key] = _garbage(shape, dtype)
        return block.shared[key]


class local:
    @staticmethod
    def array(shape, dtype):
        return _garbage(shape, np.dtype(dtype))


class const:
    @staticmethod
    def array_like(array):
        return array


# ---- barriers and fences ----


def _barrier(value=None, kind="syncthreads"):
    block = _thread().block
    return _launch.meet(block.meetings, None, lambda: block.threads, kind, value)


def syncthreads():
    _barrier()


def syncthreads_count(predicate):
    return sum(bool(v) for v in _barrier(predicate, "count").values())


def syncthreads_and(predicate):
    return int(all(_barrier(predicate, "and").values()))


def syncthreads_or(predicate):
    return int(any(_barrier(predicate, "or").values()))


def threadfence():
    _launch.pause(0.25)


threadfence_block = threadfence_system = threadfence


def nanosleep(ns):
    _launch.pause()


class _Grid:
    def sync(self):
        if _launch.grid_meeting is None:
            _launch.grid_meeting = {}
        _launch.meet(_launch.grid_meeting, "grid", lambda: _launch.threads, "grid.sync", None)


class cg:
    this_grid = _Grid


# ---- warps ----


def _warp(mask, kind, value=None):
    """{lane: value} of the lanes of the mask."""
    me = _thread()
    mask = int(mask) & FULL
    if not mask >> me.lane & 1:
        raise RuntimeError(f"{kind}: lane {me.lane} is not in its mask {mask:#x}")

    def members():
        row = me.block.threads[me.warp * WARP : me.warp * WARP + WARP]
        return [t for t in row if mask >> t.lane & 1]

    met = _launch.meet(me.block.meetings, (me.warp, mask), members, kind, value)
    return {t.lane: v for t, v in met.items()}


def syncwarp(mask=FULL):
    _warp(mask, "syncwarp")


def _shuffle(mask, kind, value, source):
    values = _warp(mask, kind, value)
    return values.get(source, value)  # a lane that takes no part: undefined


def shfl_sync(mask, value, src_lane):
    return _shuffle(mask, "shfl", value, int(src_lane) % WARP)


def shfl_up_sync(mask, value, delta):
    lane = _thread().lane
    return _shuffle(mask, "shfl_up", value, lane - delta if lane >= delta else lane)


def shfl_down_sync(mask, value, delta):
    lane = _thread().lane
    return _shuffle(mask, "shfl_down", value, lane + delta if lane + delta < WARP else lane)


def shfl_xor_sync(mask, value, lane_mask):
    return _shuffle(mask, "shfl_xor", value, _thread().lane ^ int(lane_mask))


def all_sync(mask, predicate):
    return all(_warp(mask, "all", predicate).values())


def any_sync(mask, predicate):
    return any(_warp(mask, "any", predicate).values())


def eq_sync(mask, predicate):
    return len({bool(v) for v in _warp(mask, "eq", predicate).values()}) == 1


def ballot_sync(mask, predicate):
    return sum(1 << lane for lane, v in _warp(mask, "ballot", predicate).items() if v)


def match_any_sync(mask, value):
    return sum(1 << lane for lane, v in _warp(mask, "match_any", value).items() if v == value)


def match_all_sync(mask, value):
    values = _warp(mask, "match_all", value)
    same = all(v == value for v in values.values())
    return (sum(1 << lane for lane in values), True) if same else (0, False)


def activemask():
    """The lanes that certainly run together: this one."""
    return 1 << _thread().lane


def lanemask_lt():
    return (1 << _thread().lane) - 1


# ---- atomics ----


def _update(change):
    def operation(array, index, value):
        old = array[index]
        with np.errstate(over="ignore"):
            array[index] = change(old, array.dtype.type(value))
        _launch.pause(0.125)
        return old

    return staticmethod(operation)


def _nan_max(a, b):
    return b if a != a else a if b != b else max(a, b)


def _nan_min(a, b):
    return b if a != a else a if b != b else min(a, b)


class atomic:
    add = _update(lambda a, b: a + b)
    sub = _update(lambda a, b: a - b)
    max = _update(max)
    min = _update(min)
    nanmax = _update(_nan_max)
    nanmin = _update(_nan_min)
    and_ = _update(lambda a, b: a & b)
    or_ = _update(lambda a, b: a | b)
    xor = _update(lambda a, b: a ^ b)
    inc = _update(lambda a, b: type(a)(0) if a >= b else a + type(a)(1))
    dec = _update(lambda a, b: b if a == 0 or a > b else a - type(a)(1))
    exch = _update(lambda a, b: b)

    @staticmethod
    def cas(array, index, old, value):
        found = array[index]
        if found == old:
            array[index] = value
        _launch.pause(0.125)
        return found

    @staticmethod
    def compare_and_swap(array, old, value):
        return atomic.cas(array, 0, old, value)


# ---- single instructions ----


def _width(x):
    return x.dtype.itemsize * 8 if isinstance(x, np.generic) else 32 if abs(int(x)) < 2**32 else 64


def _bits(x):
    return int(x) & (1 << _width(x)) - 1


def popc(x):
    return _bits(x).bit_count()


def brev(x):
    return int(f"{_bits(x):0{_width(x)}b}"[::-1], 2)


def clz(x):
    return _width(x) - _bits(x).bit_length()


def ffs(x):
    x = _bits(x)
    return (x & -x).bit_length()


def selp(condition, a, b):
    return a if condition else b


def fma(a, b, c):
    return a * b + c


def cbrt(x):
    return math.cbrt(x)


# ---- the host's side ----


class _DeviceArray(np.ndarray):
    def copy_to_host(self, ary=None, stream=0):
        if ary is None:
            return np.array(self, subok=False)
        ary[...] = self
        return ary

    def copy_to_device(self, ary, stream=0):
        self[...] = ary


def to_device(array, stream=0, copy=True, to=None):
    return np.array(array).view(_DeviceArray)


def device_array(shape, dtype=np.float64, strides=None, order="C", stream=0):
    return _garbage(shape, np.dtype(dtype)).view(_DeviceArray)


def device_array_like(array, stream=0):
    return device_array(array.shape, array.dtype)


def stream():
    return 0


def synchronize():
    pass
