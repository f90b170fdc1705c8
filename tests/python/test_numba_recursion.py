"""Functions that call themselves in kernels, against the same functions run by Python."""

import functools
import os
import random
import subprocess
import sys
import types

import numpy as np
import pytest
from numba_face import MODE, cuda
from simt.numba import guvectorize, int64, njit, vectorize
from simt.numba.core.errors import TypingError

if MODE != "simt":
    pytest.skip("simt's own limits and reports", allow_module_level=True)


@cuda.jit(device=True)
def fib(n):
    if n < 2:
        return n
    return fib(n - 1) + fib(n - 2)


@cuda.jit("int64(int64)", device=True)
def declared_fib(n):
    return n if n < 2 else declared_fib(n - 1) + declared_fib(n - 2)


@cuda.jit(device=True)
def ackermann(m, n):
    if m == 0:
        return n + 1
    if n == 0:
        return ackermann(m - 1, 1)
    return ackermann(m - 1, ackermann(m, n - 1))


@cuda.jit(device=True)
def gcd(a, b):
    return a if b == 0 else gcd(b, a % b)


@cuda.jit(device=True)
def is_even(n):
    return True if n == 0 else is_odd(n - 1)


@cuda.jit(device=True)
def is_odd(n):
    return False if n == 0 else is_even(n - 1)


@cuda.jit(device=True)
def half(x, n):
    """The first return comes back, and the type grows from int64 to float64."""
    if n > 0:
        return half(x, n - 1) / 2
    return x


@cuda.jit(device=True)
def power(z, n):
    if n == 0:
        return 1 + 0j
    h = power(z, n // 2)
    return h * h * z if n % 2 else h * h


@cuda.jit(device=True)
def both(pair, n):
    """Tuples in and out."""
    if n == 0:
        return pair
    a, b = both((pair[1], pair[0] + pair[1]), n - 1)
    return a + 1, b


ROOT_TWO = 2


@cuda.jit
def scalars(out, ns):
    i = cuda.grid(1)
    if i < ns.size:
        n = ns[i]
        out[i, 0] = fib(n)
        out[i, 1] = declared_fib(n)
        out[i, 2] = ackermann(ROOT_TWO, n % 4)
        out[i, 3] = gcd(n * 12, 90 + n)
        out[i, 4] = is_even(n) + 2 * is_odd(n)
        out[i, 5] = half(n, n % 5) * 16
        z = power(1j + n, n % 7)
        out[i, 6] = z.real + z.imag
        a, b = both((n, 1), n % 6)
        out[i, 7] = a * 1000 + b


@functools.cache
def plain_functions():
    """This module's functions as Python runs them."""
    names = dict(globals())
    for name, value in globals().items():
        if hasattr(value, "py_func"):
            names[name] = types.FunctionType(value.py_func.__code__, names)
    return names


def plain(function):
    return plain_functions()[function.py_func.__name__]


def expected(n):
    z = plain(power)(1j + n, n % 7)
    a, b = plain(both)((n, 1), n % 6)
    return [plain(fib)(n), plain(fib)(n), plain(ackermann)(2, n % 4), plain(gcd)(n * 12, 90 + n),
            (n % 2 == 0) + 2 * (n % 2), plain(half)(n, n % 5) * 16, z.real + z.imag,
            a * 1000 + b]  # fmt: skip


@pytest.mark.parametrize("launch", [(1, 16), (4, 4), (16, 1), (1, 1)])
def test_scalars(launch):
    ns = np.arange(16) if launch != (1, 1) else np.array([9])
    out = np.zeros((ns.size, 8))
    scalars[launch](out, ns)
    assert np.array_equal(out, np.array([expected(int(n)) for n in ns], np.float64))


@cuda.jit(device=True)
def quicksort(a, low, high):
    if low < high:
        pivot, i = a[high], low
        for j in range(low, high):
            if a[j] < pivot:
                a[i], a[j] = a[j], a[i]
                i += 1
        a[i], a[high] = a[high], a[i]
        quicksort(a, low, i - 1)
        quicksort(a, i + 1, high)


@cuda.jit
def sort_rows(a):
    row = cuda.blockIdx.x
    if cuda.threadIdx.x == 0:
        quicksort(a[row], 0, a.shape[1] - 1)


def test_quicksort_of_rows():
    a = np.random.default_rng(1).integers(0, 1000, (6, 200))
    want = np.sort(a, axis=1)
    sort_rows[6, 3](a)
    assert np.array_equal(a, want)


@cuda.jit(device=True)
def hanoi(n, source, target, other, moves, count):
    if n == 0:
        return count
    count = hanoi(n - 1, source, other, target, moves, count)
    moves[count, 0], moves[count, 1] = source, target
    return hanoi(n - 1, other, target, source, moves, count + 1)


@cuda.jit
def hanoi_kernel(moves, n):
    moves[-1, 0] = hanoi(n, 0, 2, 1, moves, 0)


def test_hanoi():
    moves = np.zeros((128, 2), np.int32)
    want = moves.copy()
    want[-1, 0] = plain(hanoi)(7, 0, 2, 1, want, 0)
    hanoi_kernel[1, 1](moves, 7)
    assert moves[-1, 0] == 127 and np.array_equal(moves, want)


@cuda.jit(device=True)
def queens(n, row, columns, rising, falling):
    if row == n:
        return 1
    count = 0
    for c in range(n):
        a, b, d = 1 << c, 1 << (row + c), 1 << (row - c + n)
        if columns & a or rising & b or falling & d:
            continue
        count += queens(n, row + 1, columns | a, rising | b, falling | d)
    return count


@cuda.jit
def queens_kernel(out):
    i = cuda.grid(1)
    out[i] = queens(i + 1, 0, 0, 0, 0)


def test_queens_in_divergent_loops():
    out = np.zeros(7, np.int64)
    queens_kernel[1, 7](out)
    assert out.tolist() == [1, 0, 0, 2, 10, 4, 40]


@cuda.jit(device=True)
def depth_of(left, right, node):
    if node < 0:
        return 0
    a, b = depth_of(left, right, left[node]), depth_of(left, right, right[node])
    return 1 + max(a, b)


@cuda.jit
def tree_kernel(left, right, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = depth_of(left, right, i)


def test_trees():
    pick = random.Random(3)
    left, right = np.full(100, -1), np.full(100, -1)
    for child in range(1, 100):
        while True:
            side, parent = pick.choice((left, right)), pick.randrange(child)
            if side[parent] < 0:
                side[parent] = child
                break
    out = np.zeros(100, np.int64)
    tree_kernel[4, 32](left, right, out)
    assert out.tolist() == [plain(depth_of)(left, right, i) for i in range(100)]


@cuda.jit(device=True)
def flood(image, x, y, old, new):
    if x < 0 or y < 0 or x >= image.shape[0] or y >= image.shape[1] or image[x, y] != old:
        return 0
    image[x, y] = new
    count = 1
    count += flood(image, x + 1, y, old, new) + flood(image, x - 1, y, old, new)
    return count + flood(image, x, y + 1, old, new) + flood(image, x, y - 1, old, new)


@cuda.jit
def flood_kernel(image, out):
    out[0] = flood(image, 0, 0, 0, 7)


def test_flood_fill_goes_deeper_than_python_would():
    image, out = np.zeros((70, 70), np.int32), np.zeros(1, np.int64)
    image[35, :-1] = 1
    flood_kernel[1, 1](image, out)
    assert out[0] == 4900 - 69 == (image == 7).sum()


@cuda.jit(device=True)
def with_array(n):
    """Each call has its own array."""
    a = cuda.local.array(4, np.int64)
    for i in range(4):
        a[i] = n * 10 + i
    below = with_array(n - 1) if n > 0 else 0
    return below + a[0] + a[3]


@cuda.jit
def boxes(out):
    x, y = cuda.grid(2)
    if x < out.shape[0] and y < out.shape[1]:
        out[x, y] = with_array((x + 2 * y) % 5)


def test_local_arrays_and_launches_of_two_dimensions():
    out = np.zeros((9, 7), np.int64)
    boxes[(3, 4), (4, 2)](out)
    sums = [sum(20 * k + 3 for k in range(n + 1)) for n in range(5)]
    assert out.tolist() == [[sums[(x + 2 * y) % 5] for y in range(7)] for x in range(9)]


@cuda.jit(device=True)
def meet(shared, n):
    """All threads of the block come to a barrier in each call."""
    i = cuda.threadIdx.x
    cuda.syncthreads()
    other = shared[(i + 1) % cuda.blockDim.x]
    cuda.syncthreads()
    shared[i] += other
    cuda.syncthreads()
    total = cuda.shfl_sync(0xFFFFFFFF, shared[i], 0)
    return total if n == 0 else total + meet(shared, n - 1)


@cuda.jit
def meet_kernel(out):
    shared = cuda.shared.array(8, np.int64)
    shared[cuda.threadIdx.x] = cuda.threadIdx.x + 1
    out[cuda.grid(1)] = meet(shared, 3)


def test_barriers_and_shuffles_in_calls():
    values, totals = np.arange(1, 9), 0
    for _ in range(4):
        values = values + np.roll(values, -1)
        totals += values[0]
    out = np.zeros(16, np.int64)
    meet_kernel[2, 8](out)
    assert out.tolist() == [totals] * 16


TABLE = np.array([3, 1, 4, 1, 5])


@cuda.jit(device=True)
def look_up(n):
    table = cuda.const.array_like(TABLE)
    return 0 if n < 0 else table[n] + look_up(n - 1)


@cuda.jit
def constants(out):
    out[0] = look_up(4)


def test_constant_arrays():
    out = np.zeros(1, np.int64)
    constants[1, 1](out)
    assert out[0] == TABLE.sum()


@cuda.jit(device=True)
def count_down(n):
    print("at", n)
    if n > 0:
        count_down(n - 1)


@cuda.jit
def prints():
    count_down(2)


def test_prints(capsys):
    prints[1, 1]()
    assert capsys.readouterr().out == "at 2\nat 1\nat 0\n"


# ---- constants: calls with other ones are other functions, as long as there are few ----


@cuda.jit(device=True)
def constant_power(x, n):
    return 1.0 if n == 0 else x * constant_power(x, n - 1)


@cuda.jit
def constant_powers(out):
    out[0] = constant_power(out[0], 5)
    out[1] = constant_power(out[1], 100)
    out[2] = fib(20)


def test_calls_with_constants():
    out = np.array([1.5, 1.01, 0])
    constant_powers[1, 1](out)
    assert out[0] == 1.5**5 and abs(out[1] - 1.01**100) < 1e-12 and out[2] == 6765


# ---- the other faces ----


@njit
def njit_fib(n):
    return n if n < 2 else njit_fib(n - 1) + njit_fib(n - 2)


@vectorize([int64(int64)], target="cuda")
def ufunc(n):
    return fib(n)


@guvectorize([(int64[:], int64[:])], "(n)->(n)", target="cuda")
def gufunc(a, out):
    for i in range(a.shape[0]):
        out[i] = fib(a[i])


def test_other_faces():
    ns = np.arange(12)
    want = [plain(fib)(n) for n in range(12)]
    assert [njit_fib(n) for n in range(12)] == want
    assert ufunc(ns).tolist() == want
    assert gufunc(ns).tolist() == want


# ---- what is refused, and faults ----


@cuda.jit(device=True)
def endless(n):
    return endless(n + 1)


@cuda.jit(device=True)
def there(n):
    return back(n + 1)


@cuda.jit(device=True)
def back(n):
    return there(n + 1)


@cuda.jit(device=True)
def gives_array(n):
    a = cuda.local.array(4, np.int64)
    a[0] = n
    return a if n == 0 else gives_array(n - 1)


def test_refused():
    @cuda.jit
    def runaway(out):
        out[0] = endless(0)

    @cuda.jit
    def runaway_of_two(out):
        out[0] = there(0)

    @cuda.jit
    def array(out):
        out[0] = gives_array(out[0])[0]

    @cuda.jit
    def closure(out):
        def inner(n):
            return 1 if n == 0 else inner(n - 1)

        out[0] = inner(out[0])

    out = np.zeros(1, np.int64)
    for kernel, words in [
        (runaway, "endless: cannot type infer runaway recursion"),
        (runaway_of_two, "cannot type infer runaway recursion"),
        (array, "gives_array returns a local array"),
    ]:
        with pytest.raises(TypingError, match=words):
            kernel[1, 1](out)
    with pytest.raises(Exception, match="inner"):
        closure[1, 1](out)


@cuda.jit("int64(int64)", device=True)
def declared_endless(n):
    return declared_endless(n + 1)


@cuda.jit(device=True)
def deep(n):
    return 0 if n < 0 else 1 + deep(n - 1)


@cuda.jit
def too_deep(out, n):
    i = cuda.grid(1)
    out[i] = deep(n)


@cuda.jit
def without_end(out):
    out[cuda.grid(1)] = declared_endless(0)


def test_depth():
    out = np.zeros(8, np.int64)
    too_deep[2, 4](out, 60000)
    assert out.tolist() == [60001] * 8
    with pytest.raises(RecursionError, match="maximum recursion depth exceeded") as error:
        too_deep[2, 4](out, 70000)
    text = str(error.value)
    line = deep.py_func.__code__.co_firstlineno + 2
    assert f"{__file__}:{line}:32 in deep, block (0, 0, 0), thread (0, 0, 0)" in text
    assert "more calls" in text and "in kernel too_deep" in text and len(text) < 3000
    with pytest.raises(RecursionError):
        without_end[4, 64](np.zeros(256, np.int64))


@cuda.jit(device=True)
def reads(a, i):
    return a[i] if i >= a.size else reads(a, i + 1)


@cuda.jit
def outside(a, out):
    i = cuda.grid(1)
    if i == 1:
        out[i] = reads(a, 0)
    else:
        out[i] = 5


def test_fault_in_a_call():
    out = np.zeros(4, np.int64)
    with pytest.raises(IndexError) as error:
        outside[1, 4](np.arange(3), out)
    text = str(error.value)
    assert "index 3 is out of bounds for axis 0 with size 3: array 'a'" in text
    assert "in reads, block (0, 0, 0), thread (1, 0, 0)" in text
    assert text.count("called from") == 4 and "in kernel outside" in text
    assert out[0] == out[2] == out[3] == 5


@cuda.jit(device=True)
def checks(n):
    if n == 0:
        raise ValueError("at the bottom")
    return checks(n - 1) + 1 if n != 3 else 3


@cuda.jit
def raises(out):
    i = cuda.grid(1)
    out[i] = checks(i)
    out[i] += 1


def test_raise_ends_the_thread_only():
    out = np.full(8, -1)
    with pytest.raises(ValueError, match="at the bottom"):
        raises[1, 8](out)
    assert out.tolist() == [-1, -1, -1, 4, 5, 6, 7, 8]


STOPPED = """
import os, signal, threading, time
import numpy as np
from simt.numba import cuda

@cuda.jit(device=True)
def slow(n):
    if n == 0:
        return 1
    return slow(n - 1) + slow(n - 1)

@cuda.jit
def kernel(out):
    out[cuda.grid(1)] = slow(60)

try:
    kernel[2, 2](np.zeros(4, np.int64))
except Exception as e:
    print(type(e).__name__, e)
"""


def test_time_limit_inside_calls():
    done = subprocess.run([sys.executable, "-c", STOPPED], capture_output=True, text=True,
                          env={**os.environ, "SIMT_TIME_LIMIT": "0.2"}, timeout=120)  # fmt: skip
    assert "ran for more than 0.2 s and was stopped" in done.stdout, done


# ---- random functions ----


def random_functions(seed):
    """Text of two functions of two integers, each calling itself or the other with a smaller n."""
    pick = random.Random(seed)

    def value(depth):
        if depth == 0 or pick.random() < 0.3:
            return pick.choice(("n", "x", str(pick.randrange(1, 9))))
        a, b = value(depth - 1), value(depth - 1)
        which = pick.randrange(6)
        if which == 0:
            return f"({a} if {a} % 3 < {pick.randrange(1, 3)} else {b})"
        if which == 1:
            return f"{pick.choice('fg')}(n - {pick.randrange(1, 4)}, ({a}) % 50)"
        return f"(({a}) {pick.choice(('+', '-', '*', '^', '+'))} ({b})) % {pick.randrange(11, 99)}"

    lines = []
    for name in "fg":
        lines += [
            f"def {name}(n, x):",
            "    if n <= 0:",
            f"        return {pick.choice(('x', '1', 'n'))}",
        ]
        if pick.random() < 0.5:
            lines += [f"    for i in range(x % {pick.randrange(2, 4)}):",
                      f"        if i == {pick.randrange(3)}:", f"            return {value(1)}",
                      f"        x += {pick.randrange(1, 5)}"]  # fmt: skip
        lines += [f"    return {value(2)} + {pick.choice('fg')}(n - 1, x % 7)"]
    return "\n".join(lines)


@pytest.mark.parametrize("seed", range(12))
def test_random_functions(seed, tmp_path):
    text = random_functions(seed)
    head = "from simt.numba import cuda\n"
    body = text.replace("def ", "@cuda.jit(device=True)\ndef ")
    kernel = "\n@cuda.jit\ndef k(out):\n    i = cuda.grid(1)\n    out[i] = f(i % 5, i)\n"
    path = tmp_path / f"random_{seed}.py"
    path.write_text(head + body + kernel)
    names = {}
    exec(compile(head + body + kernel, path, "exec"), names)
    plain_names = {}
    exec(text, plain_names)
    out = np.zeros(12, np.int64)
    names["k"][3, 4](out)
    assert out.tolist() == [plain_names["f"](i % 5, i) for i in range(12)], text
