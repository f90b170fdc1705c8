"""DataLoader with workers: whatever happens in a worker or to it, nothing hangs, nothing is lost
without a word, no process and no descriptor is left."""

import contextlib
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import simt.torch as torch
from simt.torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info


class Make(Dataset):
    """Samples by a function of the index."""

    def __init__(self, length, make):
        self.length, self.make = length, make

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        return self.make(index)


class Numbers(IterableDataset):
    """0 .. length - 1, shared out to the workers."""

    def __init__(self, length):
        self.length = length

    def __iter__(self):
        info = get_worker_info()
        return iter(range(info.id if info else 0, self.length, info.num_workers if info else 1))


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def children():
    """The processes of this one, ended ones that nobody asked for too."""
    own = f"/proc/{os.getpid()}/task"
    found = set()
    for thread in os.listdir(own):
        with contextlib.suppress(FileNotFoundError):  # the thread has ended meanwhile
            found.update(open(f"{own}/{thread}/children").read().split())
    return found


@pytest.fixture(autouse=True)
def nothing_left():
    list(DataLoader(range(2), num_workers=1))  # what multiprocessing itself opens once
    before, others = descriptors(), children()
    yield
    assert multiprocessing.active_children() == []
    assert children() <= others  # no zombies either
    assert descriptors() == before


def raises(error):
    def make(index):
        raise error

    return make


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("size", [1, 4, None])
def test_order(workers, size):
    got = list(DataLoader(range(10), batch_size=size, num_workers=workers))
    want = list(DataLoader(range(10), batch_size=size))
    assert len(got) == len(want)
    assert [np.asarray(a).tolist() for a in got] == [np.asarray(a).tolist() for a in want]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("length", [20_000, 400_000])
def test_large_requests_and_batches(workers, length):
    loader = DataLoader(range(length), batch_size=length // 4, num_workers=workers)
    assert torch.cat(list(loader)).tolist() == list(range(length))


@pytest.mark.parametrize("persistent", [False, True])
def test_leaving_early(persistent):
    data = Make(512, lambda i: (torch.ones(3, 32, 32), i))
    loader = DataLoader(data, batch_size=64, num_workers=4, persistent_workers=persistent)
    for _ in range(3):
        for images, labels in loader:
            assert images.shape == (64, 3, 32, 32) and labels[0] == 0
            break


def test_nested_loaders():
    outer = DataLoader(Make(6, lambda i: torch.ones(30000)), num_workers=2)
    for _ in outer:
        for _ in DataLoader(Make(6, lambda i: torch.ones(30000)), num_workers=2):
            break


def test_a_loader_in_a_worker():
    data = Make(2, lambda i: list(DataLoader(range(2), num_workers=1)))
    with pytest.raises(AssertionError, match="daemonic processes are not allowed to have children"):
        list(DataLoader(data, num_workers=1))
    assert len(list(DataLoader(Make(2, lambda i: list(DataLoader(range(2)))), num_workers=1))) == 2


class TwoArguments(Exception):
    def __init__(self, one, two):
        super().__init__(one, two)


class Unpicklable(Exception):
    def __init__(self, text):
        super().__init__(text)
        self.lock = threading.Lock()


def local_class():
    class Local(Exception):
        pass

    return Local("here")


@pytest.mark.parametrize(
    "error, kind",
    [
        (ValueError("here"), ValueError), (KeyError("here"), KeyError),
        (FileNotFoundError("here"), FileNotFoundError),
        (TwoArguments("here", 2), RuntimeError), (Unpicklable("here"), Unpicklable),
        (local_class(), RuntimeError),
        (UnicodeDecodeError("utf-8", b"a", 0, 1, "here"), RuntimeError),
        (StopIteration("here"), RuntimeError), (MemoryError("here"), MemoryError),
        (EOFError("here"), EOFError), (ConnectionResetError("here"), ConnectionResetError),
    ],
)  # fmt: skip
def test_exceptions(error, kind):
    with pytest.raises(kind) as caught:
        list(DataLoader(Make(4, raises(error)), num_workers=2))
    text = str(caught.value)
    assert type(caught.value) is kind
    assert text.startswith(f"Caught {type(error).__name__} in DataLoader worker process 0.\nOrig")
    assert "in make" in text and "here" in text  # the worker's own traceback
    assert "\\n" not in str(caught.value)
    assert multiprocessing.active_children() == []  # though the exception is still kept


@pytest.mark.parametrize("workers", [0, 2])
def test_the_next_batch_after_an_exception(workers):
    def make(index):
        return index if index % 3 else 1 // 0

    batches = iter(DataLoader(Make(8, make), num_workers=workers))
    got = []
    for _ in range(8):
        try:
            got.append(next(batches).item())
        except ZeroDivisionError:
            got.append(None)
    assert got == [None, 1, 2, None, 4, 5, None, 7]
    with pytest.raises(StopIteration):
        next(batches)


@pytest.mark.parametrize(
    "make, text",
    [
        (lambda i: sys.exit("file not found"), r"with exit code 1\.(.|\n)*SystemExit: file not fo"),
        (lambda i: sys.exit(7), r"with exit code 7\.(.|\n)*SystemExit: 7"),
        (lambda i: os._exit(3), "with exit code 3. Details are lost"),
        (lambda i: os.kill(os.getpid(), signal.SIGKILL), "killed by signal: Killed"),
        (lambda i: os.kill(os.getpid(), signal.SIGUSR1), "killed by signal: User defined signal 1"),
        (raises(KeyboardInterrupt("by hand")), r"exit code 1\.(.|\n)*KeyboardInterrupt: by hand"),
    ],
)
def test_a_worker_that_dies(make, text):
    started = rf"DataLoader worker \(pid\(s\) \d+\) exited unexpectedly .*{text}"
    with pytest.raises(RuntimeError, match=started):
        list(DataLoader(Make(9, make), num_workers=2))


@pytest.mark.parametrize("make", [lambda i: lambda: i, lambda i: threading.Lock()])
def test_batches_that_cannot_be_sent(make):
    with pytest.raises(Exception, match="Caught .* in DataLoader worker process 0(.|\n)*pickle"):
        list(DataLoader(Make(2, make), num_workers=1, collate_fn=list))


def test_errors_before_the_first_batch():
    with pytest.raises(ValueError, match="Caught ValueError in DataLoader worker process(.|\n)*no"):
        list(DataLoader(range(3), num_workers=2, worker_init_fn=raises(ValueError("no"))))

    class Bad(IterableDataset):
        def __iter__(self):
            raise ValueError("no")

    with pytest.raises(ValueError, match="Caught ValueError in DataLoader worker process 0"):
        list(DataLoader(Bad(), num_workers=2))


def test_timeout():
    data = Make(4, lambda i: time.sleep(60 * (i == 1)))
    batches = iter(DataLoader(data, num_workers=2, timeout=0.2, collate_fn=list))
    assert next(batches) == [None]
    with pytest.raises(RuntimeError, match=r"DataLoader timed out after 0\.2 seconds"):
        next(batches)


def test_a_stopped_worker():
    data = Make(4, lambda i: os.kill(os.getpid(), signal.SIGSTOP))
    with pytest.raises(RuntimeError, match="timed out"):
        next(iter(DataLoader(data, num_workers=1, timeout=0.1)))


def test_a_worker_with_threads_and_its_own_signals():
    def start(worker):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        threading.Thread(target=time.sleep, args=(60,)).start()

    loader = DataLoader(range(6), num_workers=2, worker_init_fn=start)
    assert torch.cat(list(loader)).tolist() == list(range(6))
    next(iter(loader))


def test_what_workers_print_is_shown(capfd):
    list(DataLoader(Make(2, lambda i: print("sample", i) or i), num_workers=1))
    assert capfd.readouterr().out == "sample 0\nsample 1\n"


@pytest.mark.parametrize("persistent", [False, True])
def test_generators(persistent):
    """Each worker and each epoch draws other numbers; the program's seed settles them all."""

    def draw(index):
        return random.getrandbits(31), int(np.random.randint(2**31)), int(torch.randint(2**31, ()))

    def run(seed):
        torch.manual_seed(seed)
        loader = DataLoader(Make(8, draw), num_workers=2, persistent_workers=persistent)
        return np.array([[torch.cat(row).tolist() for row in loader] for _ in range(2)])

    np.random.seed(0)
    random.seed(0)
    first = run(1)
    for generator in range(3):
        assert len(set(first[:, :, generator].ravel())) == 16
    assert np.array_equal(first, run(1)) and not np.array_equal(first, run(2))


def test_numpy_s_seed_is_pytorch_s():
    """Its _generate_state(base_seed, worker_id), as PyTorch 2.15 gives it."""
    from simt.torch.utils.data import _workers as workers

    state = np.random.get_state()
    seed = torch.initial_seed()
    try:
        for base, worker, words in GENERATE_STATE:
            workers._seed(base, worker)
            got = np.random.random(4)
            assert np.array_equal(got, np.random.RandomState(words).random(4))
            assert torch.initial_seed() == base + worker
    finally:
        np.random.set_state(state)
        torch.manual_seed(seed)


GENERATE_STATE = [
    (0, 0, [2968811710, 3677149159, 745650761, 2884920346]),
    (1, 3, [457190280, 2660306227, 859341110, 354512857]),
    (4611686018427400249, 2, [727817203, 2170651028, 2716488050, 201085510]),
    (1099511627776, 63, [1824641806, 1027483157, 1481585734, 620335167]),
]


def test_worker_info():
    def make(index):
        info = get_worker_info()
        return info.id, info.num_workers, info.seed - info.id, len(info.dataset)

    rows = torch.tensor(list(DataLoader(Make(4, make), num_workers=2)))[:, :, 0]
    assert rows[:, 0].tolist() == [0, 1, 0, 1] and set(rows[:, 1].tolist()) == {2}
    assert len(set(rows[:, 2].tolist())) == 1 and set(rows[:, 3].tolist()) == {4}
    assert get_worker_info() is None


def test_persistent_workers_live_on():
    def started(worker):
        global starts
        starts = random.getrandbits(62)

    loader = DataLoader(
        Make(6, lambda i: (i, os.getpid(), starts)),
        batch_size=2, num_workers=2, persistent_workers=True, worker_init_fn=started,
    )  # fmt: skip
    epochs = [[[part.tolist() for part in batch] for batch in loader] for _ in range(3)]
    assert epochs[0] == epochs[1] == epochs[2]
    assert [batch[0] for batch in epochs[0]] == [[0, 1], [2, 3], [4, 5]]
    next(iter(loader))  # and left with batches on their way
    assert [[part.tolist() for part in batch] for batch in loader] == epochs[0]
    pids = {batch[1][0] for batch in epochs[0]}
    assert pids == {child.pid for child in multiprocessing.active_children()}
    os.kill(pids.pop(), signal.SIGKILL)
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        list(loader)
    assert len(list(loader)) == 3  # by new ones


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("size, drop", [(None, False), (3, False), (3, True)])
def test_iterable_datasets(persistent, size, drop):
    loader = DataLoader(
        Numbers(11), batch_size=size, num_workers=3, drop_last=drop, persistent_workers=persistent
    )
    for _ in range(2):
        got = [np.asarray(batch).reshape(-1).tolist() for batch in loader]
        shares = [list(range(worker, 11, 3)) for worker in range(3)]
        cut = [[s[i : i + (size or 1)] for i in range(0, len(s), size or 1)] for s in shares]
        want = [cut[w][i] for i in range(4) for w in range(3) if i < len(cut[w])]
        assert got == [batch for batch in want if not drop or len(batch) == 3]


def test_batches_that_are_none():
    loader = DataLoader(Numbers(4), batch_size=2, num_workers=2, collate_fn=lambda batch: None)
    assert list(loader) == [None, None]


METHODS = """
import multiprocessing, threading
import simt.torch as torch
from simt.torch.utils.data import DataLoader

class Square:
    def __len__(self):
        return 9
    def __getitem__(self, index):
        return index * index

class Local(Square):
    def __reduce__(self):
        raise TypeError("cannot be pickled")

if __name__ == "__main__":
    for context in ("fork", "spawn", multiprocessing.get_context("forkserver")):
        loader = DataLoader(Square(), num_workers=2, multiprocessing_context=context)
        loader.sampler.lock = threading.Lock()  # needs no pickling: it stays here
        assert torch.cat(list(loader)).tolist() == [i * i for i in range(9)]
    multiprocessing.set_start_method("spawn", force=True)
    try:
        next(iter(DataLoader(Local(), num_workers=2)))
    except TypeError as error:
        print(error, len(multiprocessing.active_children()))
"""


def test_start_methods(tmp_path):
    program = tmp_path / "methods.py"
    program.write_text(METHODS)
    run = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=60)
    assert (run.stdout, run.stderr) == ("cannot be pickled 0\n", "")


def test_contexts_that_are_none():
    with pytest.raises(ValueError, match="should specify a valid start method in"):
        DataLoader(range(2), num_workers=1, multiprocessing_context="thread")
    with pytest.raises(ValueError, match="can only be used with multi-process loading"):
        DataLoader(range(2), multiprocessing_context="fork")
    with pytest.raises(TypeError, match="should be a valid context object"):
        DataLoader(range(2), num_workers=1, multiprocessing_context=3)


def test_threads_share_an_iterator():
    batches = iter(DataLoader(range(200), num_workers=2))
    got = []
    threads = [threading.Thread(target=lambda: got.extend(b.item() for b in batches)) for _ in "12"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got) == list(range(200))


def test_in_another_thread():
    got = []
    thread = threading.Thread(target=lambda: got.extend(DataLoader(range(5), num_workers=2)))
    thread.start()
    thread.join()
    assert torch.cat(got).tolist() == list(range(5))


def test_an_iterator_in_a_forked_child():
    batches = iter(DataLoader(range(8), num_workers=2))
    next(batches)
    child = os.fork()
    if child == 0:
        try:
            next(batches)
        except RuntimeError as error:
            os._exit(5 if "forked process" in str(error) else 6)
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
    assert len(list(batches)) == 7


@pytest.mark.parametrize("persistent", [False, True])
def test_interrupts(persistent):
    """Ctrl-C at many moments: it is raised, nothing is left, and the loader works again."""
    draw = random.Random(0)
    loader = DataLoader(
        Make(40, lambda i: torch.ones(9000) * i),
        batch_size=4, num_workers=2, persistent_workers=persistent,
    )  # fmt: skip
    interrupted = 0
    for _ in range(12):
        timer = threading.Timer(draw.random() * 0.06, os.kill, (os.getpid(), signal.SIGINT))
        try:
            timer.start()
            for _ in range(2):
                for _ in loader:
                    pass
            timer.join()
            time.sleep(0.01)
        except KeyboardInterrupt:
            interrupted += 1
        timer.join()
        assert [int(b[0, 0]) for b in loader] == list(range(0, 40, 4))
    assert interrupted > 0


PARENT = """
import os, sys, time
from simt.torch.utils.data import DataLoader

class Data:
    def __len__(self):
        return 1000
    def __getitem__(self, index):
        return os.getpid(), [0.5] * 50000

batches = iter(DataLoader(Data(), batch_size=1, num_workers=3, collate_fn=list))
print(*(next(batches)[0][0] for _ in range(3)), flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_workers_of_a_parent_that_is_gone(how):
    """The processes also hold the output: its end shows theirs."""
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as parent:
        workers = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(set(workers)) == 3
        parent.send_signal(how)
        assert parent.stdout.read() == ""
