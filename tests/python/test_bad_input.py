"""Bad input: a Python exception that says what is wrong; nothing half changed, no hang."""

import gc
import subprocess
import sys
import threading

import numpy as np
import pytest
import simt.cupy as cp
import simt.torch as torch
import simt.torch.nn.functional as F
from simt import _core

# ---- failures that depend on data are raised at evaluation ----


def bad_row():
    """An array whose evaluation fails."""
    return cp.arange(10.0)[cp.array([0, 1, 2, 3, 4, 5, 6, 7, 8, 100])]


def test_a_failure_takes_nothing_unrelated_with_it():
    a, base = cp.arange(10.0), cp.zeros(10)
    base.get()
    bad = bad_row()
    dependent = bad + 1
    double = a * 2  # of the same shape, so a candidate for the same kernel
    base += 5
    total = base.sum()
    with pytest.raises(IndexError, match="100 is out of bounds for axis 0 with size 10"):
        dependent.get()
    np.testing.assert_array_equal(double.get(), np.arange(10.0) * 2)
    np.testing.assert_array_equal(base.get(), np.full(10, 5.0))
    assert total.item() == 50
    for x in (bad, dependent):
        with pytest.raises(IndexError):
            x.get()


def test_a_failed_write_leaves_memory_and_what_depends_on_it_alone():
    x, y = cp.arange(10.0), cp.zeros(10)
    x.get(), y.get()
    x += bad_row()
    double = x * 2  # of an x that was never made
    x += 1
    y += double
    with pytest.raises(IndexError):
        double.get()
    try:  # the lost write may be told once more, by the next look
        x.get()
    except IndexError:
        pass
    np.testing.assert_array_equal(x.get(), np.arange(10.0))
    np.testing.assert_array_equal(y.get(), np.zeros(10))
    x += 1
    np.testing.assert_array_equal(x.get(), np.arange(10.0) + 1)


def test_a_bad_index_writes_nothing():
    x = cp.arange(6.0)
    x.get()
    x[cp.array([0, 1, 9])] = 7
    with pytest.raises(IndexError):
        x.get()
    np.testing.assert_array_equal(x.get(), np.arange(6.0))
    with pytest.raises((IndexError, RuntimeError)):
        t = torch.zeros(3).index_add_(0, torch.tensor([0, 9]), torch.ones(2))
        t.sum().item()


# ---- sizes whose products overflow ----

HUGE = [1 << 31, 1 << 61, (1 << 62) + 1, (1 << 63) - 1]


@pytest.mark.parametrize("huge", HUGE)
def test_windows_of_huge_sizes(huge):
    x, w = torch.zeros(1, 1, 8, 8), torch.zeros(1, 1, 3, 3)
    for option in ["padding", "stride", "dilation", "groups"]:
        with pytest.raises(RuntimeError):
            F.conv2d(x, w, **{option: huge})
    for pool in [F.max_pool2d, F.avg_pool2d]:
        for options in [{"kernel_size": huge, "padding": huge // 2}, {"kernel_size": huge}]:
            with pytest.raises(RuntimeError):
                pool(x, **options)
        with pytest.raises(RuntimeError):
            pool(x, 2, stride=huge)
    with pytest.raises(RuntimeError):
        F.conv2d(torch.zeros(1, 0, 8, 8), torch.zeros(2, 0, 3, 3), groups=0)


def test_a_window_larger_than_the_image_takes_no_longer():
    """A thousand million taps, of which a few lie on the image."""
    x = torch.arange(64.0).reshape(1, 1, 8, 8)
    kernel, padding = (3, 10**9), (0, 5 * 10**8)
    y = F.max_pool2d(x, kernel, stride=1, padding=padding)
    assert y.shape == (1, 1, 6, 9)
    rows = np.arange(64.0).reshape(8, 8)
    for i in range(6):
        for j in range(9):
            first, last = max(j - padding[1], 0), min(j - padding[1] + kernel[1], 8)
            assert y[0, 0, i, j].item() == rows[i : i + 3, first:last].max()


@pytest.mark.parametrize("huge", HUGE)
def test_as_strided_outside_the_storage(huge):
    x = torch.arange(6.0)
    for size, stride, offset in [((2,), (huge,), 0), ((2,), (1,), huge), ((huge, 2), (2, 1), 0)]:
        with pytest.raises((RuntimeError, ValueError)):
            x.as_strided(size, stride, offset)


@pytest.mark.parametrize("shape", [(1 << 40,), (1 << 62, 1 << 62), (10**30,), (-1,), (2, -3)])
def test_shapes_that_cannot_be(shape):
    for make in [cp.zeros, cp.ones, cp.empty, torch.zeros, torch.empty, torch.randn]:
        with pytest.raises((MemoryError, ValueError, OverflowError, RuntimeError)) as e:
            made = make(shape)  # random numbers wait until somebody looks
            _core.evaluate(None)
            del made
        assert str(e.value)


def test_devices_that_cannot_be():
    for arguments in [(10**30,), (-1,), ("cpu", -1), ("cpu", 10**30), ("cpu:x",), (1 << 32,)]:
        with pytest.raises((RuntimeError, OverflowError)):
            torch.device(*arguments)


def test_counts_beyond_the_array():
    a = cp.arange(4)
    assert cp.diff(a, n=1 << 62).size == 0
    for bad in [{"n": -1}, {"axis": 9}]:
        with pytest.raises(ValueError):
            cp.diff(a, **bad)
    for size in [1 << 62, 0, -3]:
        with pytest.raises(RuntimeError):
            F.adaptive_max_pool2d(torch.zeros(1, 1, 4, 4), size)


def test_shifts_of_booleans():
    a = torch.tensor([True, False])
    for shift in [lambda: a >> a, lambda: a << a]:
        with pytest.raises(RuntimeError, match="not implemented for 'bool"):
            shift()


# ---- threads, forks, the collector ----


def run_threads(work, count=6):
    """Runs work(number) in threads; the first exception of any is raised here."""
    failed = []

    def guarded(number):
        try:
            work(number)
        except BaseException as e:
            failed.append(e)

    threads = [threading.Thread(target=guarded, args=(i,), daemon=True) for i in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
        assert not t.is_alive(), "a thread hangs"
    if failed:
        raise failed[0]


def test_threads_with_arrays_of_their_own():
    def work(number):
        x = cp.arange(1000.0) + number
        for i in range(40):
            x = (x * 3 + i) % 101
            if i % 5 == 0:
                x[: 10 + number] += 1
            if i % 7 == 0:
                assert x.sum().item() == x.get().sum()

    run_threads(work)


def test_threads_on_one_array():
    shared = cp.zeros(5000)
    lines = [shared[i * 500 : (i + 1) * 500] for i in range(6)]

    def work(number):
        for i in range(60):
            lines[number] += 1
            if i % 9 == 0:
                assert lines[number].max().item() == i + 1
            with pytest.raises(IndexError):  # failures of one thread are not another's
                shared[cp.array([5000 + number])].get()

    try:
        run_threads(work)
    except IndexError as e:  # told to whoever looks first
        pytest.fail(f"a failure reached another thread: {e}")
    want = np.zeros(5000)
    want[:3000] = 60
    np.testing.assert_array_equal(shared.get(), want)


def test_threads_and_gradients():
    w = torch.ones(50, requires_grad=True)

    def work(number):
        for _ in range(20):
            v = w.detach().clone().requires_grad_()
            ((v * number).sum() + (w * 2).sum().detach()).backward()
            assert v.grad[3].item() == number

    run_threads(work)


def test_collector_in_the_middle():
    threshold = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for _ in range(30):
            x = cp.arange(100.0)
            ring = [x[::2] + 1]
            ring.append(ring)  # only the collector frees it
            y = sum((x + i for i in range(5)), cp.zeros(100))
            del ring
            assert y.sum().item() == 5 * 4950 + 1000
            t = torch.ones(3, requires_grad=True)
            (t * t).sum().backward()
            t.mine = t
    finally:
        gc.set_threshold(*threshold)


FORK = """
import os, threading, sys
import simt.cupy as cp
x = cp.arange(300000.0)
assert x.sum().item() == 299999 * 150000  # the workers run
y = x * 2  # waits in the program while the fork happens
stop = False
def busy():
    while not stop:
        (cp.arange(1000.0) + 1).sum().item()
t = threading.Thread(target=busy); t.start()
codes = []
for _ in range(8):
    child = os.fork()
    if child == 0:
        ok = y.sum().item() == 299999 * 300000 and (x + 1).max().item() == 300000
        os._exit(0 if ok else 1)
    codes.append(os.waitpid(child, 0)[1])
stop = True
t.join()
assert y.sum().item() == 299999 * 300000
print(codes)
"""


def test_fork_while_another_thread_computes():
    run = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, timeout=100)
    assert run.returncode == 0, run.stderr[-2000:]
    assert run.stdout.strip() == str([0] * 8)


def test_powers_and_repeats_that_cannot_be():
    yes = torch.tensor([True, False])
    for operation in (torch.pow, torch.remainder, torch.floor_divide, torch.fmod):
        with pytest.raises(RuntimeError, match="not implemented for"):
            operation(yes, torch.tensor([True, True]))
    with pytest.raises(RuntimeError, match="too large"):
        torch.ones(4).repeat(2**62)
    assert cp.array([25]).round(-1).get().tolist() == [20]
    cp.array([1.5]).round(-(2**63))


# ---- values that have no meaning ----

NAN = float("nan")


@pytest.mark.parametrize("std", [-1.0, NAN])
def test_negative_deviations(std):
    calls = [
        lambda: torch.normal(0.0, std, (2,)),
        lambda: torch.normal(torch.zeros(2), std),
        lambda: torch.normal(torch.zeros(2), torch.tensor([1.0, std])),
        lambda: torch.normal(0.0, torch.tensor([1.0, std])),
        lambda: torch.zeros(2).normal_(0, std),
        lambda: torch.nn.init.normal_(torch.zeros(2), 0, std),
    ]
    for call in calls:
        with pytest.raises(RuntimeError, match=r"normal expects (all elements of )?std >= 0.0"):
            call()


@pytest.mark.parametrize("p", [-0.1, 1.1, NAN])
def test_probabilities(p):
    for call in [lambda: torch.nn.Dropout(p), lambda: F.dropout(torch.ones(3), p)]:
        with pytest.raises(ValueError, match="dropout probability has to be between 0 and 1"):
            call()
    x = torch.ones(3)
    for call in [lambda: x.bernoulli_(p), lambda: torch.bernoulli(torch.tensor([0.5, p]))]:
        with pytest.raises(RuntimeError, match="p"):
            call()
    assert x.tolist() == [1, 1, 1]
    for bad in ([-1.0, 2.0], [NAN, 1.0], [float("inf"), 1.0]):
        with pytest.raises(RuntimeError, match="probability tensor contains"):
            torch.multinomial(torch.tensor(bad), 1)


def test_bounds_of_random_numbers():
    x = torch.zeros(2)
    for bounds in [(NAN, 0), (0, float("inf")), (0, 1e39), (1, 0)]:
        with pytest.raises(RuntimeError, match="out of bounds for float|from=1"):
            x.uniform_(*bounds)
    with pytest.raises(RuntimeError, match="lambda > 0.0"):
        x.exponential_(0)
    with pytest.raises(RuntimeError, match="from=5 >= to=2"):
        torch.randint(5, 2, (2,))
    assert x.tolist() == [0, 0]
    assert abs(torch.zeros(4000).exponential_(2.0).mean().item() - 0.5) < 0.05


def test_matrices_of_negative_size():
    with pytest.raises(RuntimeError, match="n must be greater or equal to 0, got -1"):
        torch.eye(-1)
    with pytest.raises(RuntimeError, match="m must be greater or equal to 0, got -2"):
        torch.eye(2, -2)
    for library in (np, cp):
        for arguments in [(-1,), (2, -1)]:
            with pytest.raises(ValueError, match="negative dimensions are not allowed"):
                library.eye(*arguments)


def test_pieces_without_number():
    a = cp.arange(10)
    pieces = cp.array_split(a, 10**6)
    assert len(pieces) == 10**6 and [p.size for p in pieces[8:12]] == [1, 1, 0, 0]
    assert len(cp.split(cp.arange(0), 10**6)) == 10**6
    with pytest.raises((MemoryError, OverflowError)):
        cp.array_split(a, 2**62)
    for count in (0, -1):
        with pytest.raises(ValueError, match="larger than 0"):
            cp.array_split(a, count)
    with pytest.raises(ValueError, match="equal division"):
        cp.split(a, 3)
    for split in (cp.vsplit, cp.dsplit):
        with pytest.raises(ValueError, match="only works on arrays of"):
            split(a, 2)
    for count in (1, 3, 7, 10, 13):
        ours, theirs = cp.array_split(a, count), np.array_split(a.get(), count)
        assert [p.get().tolist() for p in ours] == [p.tolist() for p in theirs]
    assert [p.size for p in cp.split(a, np.int64(2))] == [5, 5]


@pytest.mark.parametrize("n", [1 << 43, 1 << 46])
def test_arrays_that_no_machine_holds(n):
    """At the call, not when somebody looks; views of one element remain possible."""
    one, column = cp.broadcast_to(cp.array(1.0), n), cp.ones((1 << 23, 1))
    calls = [
        lambda: cp.zeros(n), lambda: cp.full(n, 3, "u1"), lambda: cp.arange(n), lambda: one + 1,
        lambda: cp.random.rand(n), lambda: cp.repeat(cp.array(1.0), n), lambda: column + column.T,
        lambda: torch.zeros(n), lambda: torch.randn(n), lambda: torch.ones(1).expand(n) + 1,
        lambda: torch.ones(2).repeat(n), lambda: torch.ones(1 << 23, 1) @ torch.ones(1, 1 << 23),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(MemoryError, match="Unable to allocate|cannot allocate"):
            call()
    assert one.shape == (n,)


@pytest.mark.parametrize("waits", [False, True])
def test_negative_indices(waits):
    """PyTorch refuses them where NumPy counts from the end, also in indices not computed yet."""
    table = torch.arange(6.0).reshape(3, 2)

    def index(*values):
        made = torch.tensor(values)
        return -(-made) if waits else made

    calls = [
        lambda i: table.gather(0, i[:, None].expand(-1, 2)),
        lambda i: table.index_select(0, i),
        lambda i: F.embedding(i, table),
        lambda i: torch.zeros(3, 2).scatter_add_(0, i[:, None], torch.ones(len(i), 1)),
        lambda i: torch.zeros(3, 2).scatter_(0, i[:, None], 1.0),
        lambda i: torch.zeros(3, 2).index_add_(0, i, torch.ones(len(i), 2)),
        lambda i: torch.zeros(3, 2).index_copy(0, i, torch.ones(len(i), 2)),
        lambda i: torch.bincount(i),
        lambda i: F.one_hot(i, 3),
        lambda i: F.cross_entropy(torch.ones(len(i), 3), i),
    ]
    for call in calls:
        call(index(0, 2)).sum().item()
        with pytest.raises((RuntimeError, IndexError)):
            call(index(0, -1)).sum().item()
    assert table[index(0, -1)].tolist() == [[0, 1], [4, 5]]
    assert torch.take_along_dim(table, index(0, -1)[:, None], 0).tolist() == [[0, 1], [4, 5]]
    assert torch.take(table, index(0, -1)).tolist() == [0, 5]
    assert torch.zeros(3).index_fill(0, index(-1), 1.0).tolist() == [0, 0, 1]
    a, i = np.arange(6).reshape(2, 3), np.array([[0, -1], [-3, 2]])
    want = np.take_along_axis(a, i, 1)
    np.testing.assert_array_equal(cp.take_along_axis(cp.array(a), cp.array(i), 1).get(), want)
    for bad in (3, -4):
        with pytest.raises(IndexError, match=f"{bad} is out of bounds for axis 1 with size 3"):
            cp.take_along_axis(cp.array(a), cp.array([[0], [bad]]), 1).get()


# ---- rules of one library ----


def test_reciprocal_of_integers():
    """CuPy's: integers stay integers, 1 / 0 is 0; PyTorch's: floats."""
    for kind in ["int8", "uint8", "int32", "int64", "uint64"]:
        values = np.array([1, 2, 0, 100], kind)
        made = cp.reciprocal(cp.array(values))
        assert (made.dtype, made.get().tolist()) == (values.dtype, [1, 0, 0, 0])
    assert cp.reciprocal(cp.array([-1, -2])).get().tolist() == [-1, 0]
    made = cp.reciprocal(cp.array([True, False]))
    assert (made.dtype, made.get().tolist()) == (np.int8, [1, 0])
    made = torch.reciprocal(torch.tensor([1, 2]))
    assert (made.dtype, made.tolist()) == (torch.float32, [1, 0.5])


@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
def test_power_of_minus_one_is_one_over(kind):
    x = np.random.default_rng(1).normal(size=2000).astype(kind)
    x[:6] = [0.0, -0.0, np.inf, -np.inf, np.nan, 65504]
    with np.errstate(divide="ignore"):
        want = np.asarray(1, kind) / x
    for made in ((cp.array(x) ** -1).get(), (cp.array(x) ** -1.0).get(),
                 (torch.from_numpy(x) ** -1).numpy()):  # fmt: skip
        np.testing.assert_array_equal(made.view("u1"), want.view("u1"))
    t = torch.tensor([2.0, 4.0], requires_grad=True)
    (t**-1).sum().backward()
    assert t.grad.tolist() == [-0.25, -0.0625]


def test_writes_through_data_are_not_seen():
    """PyTorch's rule: .data shares memory, not the version counter; detach() shares both."""
    w = torch.ones(3)
    view = w.data
    view[0] = 5
    view[1:].zero_()
    w.data.add_(1)
    assert w._version == 0 and w.tolist() == [6, 1, 1]
    w.detach().add_(1)
    w.add_(1)
    assert w._version == 2
    w = torch.ones(3, requires_grad=True)
    z = w * 2
    q = z * z
    z.data.add_(5)  # wrong gradients, and nobody complains
    q.sum().backward()
    assert w.grad.tolist() == [28, 28, 28]
    z = w * 2
    q = z * z
    z.detach().add_(5)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        q.sum().backward()
    w.data = torch.zeros(3).data
    with torch.no_grad():
        w.add_(1)
    assert w._version == 1 and w.tolist() == [1, 1, 1]


def test_layers_of_impossible_sizes():
    x = torch.ones(1, 1, 8, 8)
    nn = torch.nn
    cases = [
        (lambda: nn.Linear(-1, 3), r"negative dimension -1: \[3, -1\]"),
        (lambda: nn.Embedding(3, -1), r"negative dimension -1: \[3, -1\]"),
        (lambda: nn.Conv2d(1, 3, 0)(x), "kernel size should be greater than zero.*: 0 .*: 0"),
        (lambda: nn.Conv2d(1, 0, 3)(x), r"weight of size \[0, 1, 3, 3\]"),
        (lambda: nn.Conv2d(1, 3, 3, dilation=0)(x), r"dilation should be.*\[0, 0\]"),
        (lambda: nn.Conv2d(1, 3, 3, stride=0)(x), "non-positive stride"),
        (lambda: nn.MaxPool2d(2, 0)(x), "should be greater than zero, but got 2, 0 and 1"),
        (lambda: nn.MaxPool2d(9)(x), r"\(1x8x8\).*too small"),
    ]
    for call, words in cases:
        with pytest.raises(RuntimeError, match=words):
            call()
    with pytest.raises(ValueError, match="eps must be positive during training, but got -1"):
        nn.BatchNorm2d(1, eps=-1)(x)
    for bad, words in [("a", "'str'.*'a'"), (2.5, "'float'.*2.5"), (None, "'NoneType'.*None")]:
        for call in [lambda: nn.Linear(bad, 3), lambda: nn.Embedding(3, bad)]:
            with pytest.raises(TypeError, match=words):
                call()


def test_seeds():
    for seed in (0, -1, 2**64 - 1, -(2**63)):
        assert torch.manual_seed(seed).initial_seed() == seed % 2**64
    for seed in (2**64, -(2**63) - 1, 10**30):
        with pytest.raises(ValueError, match=f"Overflow when unpacking long long.*{seed}"):
            torch.manual_seed(seed)
    with pytest.raises((TypeError, ValueError)):
        torch.manual_seed("a")
