"""Worker processes of a DataLoader: batches are computed in children and come back in order.

Each worker has one socket pair. The parent keeps a few requests with every worker; a worker answers
one after the other and blocks while it sends, the parent never does: what a socket does not take is
sent while it waits for a batch, so that requests of any length cannot lock the two against each
other. A worker ends when its socket does; the parent's ends are closed in every forked child, so
that no sibling keeps one open.

Workers are forked (datasets need not be picklable), as PyTorch does on Linux, unless the program
chose another start method.
"""

import os
import pickle
import select
import signal
import socket
import struct
import sys
import threading
import time
import weakref
from collections import deque
from contextlib import contextmanager

from . import loader as _loader

_LENGTH = struct.Struct("!Q")
_SMALL = 1 << 16
_LOOK = 5  # seconds after which a wait looks whether the other process is still there
_GRACE = 1  # seconds that a worker has to notice that it is no longer wanted


class _Failure:
    """An exception in a worker: its text, and its type where that can be sent."""

    def __init__(self, error, worker, dead=False):
        import traceback

        self.text = (
            f"Caught {type(error).__name__} in DataLoader worker process {worker}.\nOriginal "
            + "".join(traceback.format_exception(error))
        )
        self.dead = dead  # the worker exits
        try:
            self.kind = pickle.dumps(type(error))
        except Exception:
            self.kind = None

    def raise_again(self):
        """Raises the same type of exception where it takes a text, else RuntimeError."""
        try:
            kind = pickle.loads(self.kind) if self.kind else RuntimeError
            if issubclass(kind, StopIteration):  # would end the loop without a word
                kind = RuntimeError
            error = kind(_Lines(self.text) if issubclass(kind, KeyError) else self.text)
        except Exception:
            error = RuntimeError(self.text)
        raise error


class _Lines(str):
    """A KeyError shows the repr of its text."""

    def __repr__(self):
        return str(self)


def _dumps(message):
    from multiprocessing.reduction import ForkingPickler

    return ForkingPickler.dumps(message)


class _Incoming:
    """Messages, cut from what comes over a socket: each is its length and that many bytes."""

    def __init__(self, end):
        self.end = end
        self.data = bytearray()  # of the next message and, unless it is large, of those after it
        self.large = None  # the large message's part that has not come

    def pull(self, ready=False):
        """The next message, or None where it has not come whole. The socket is read if it is ready.

        Raises:
            EOFError: there will be no more.
        """
        try:
            if ready:
                self._read()
        except BlockingIOError:
            pass
        except ConnectionError:
            raise EOFError from None
        if self.large is None:
            if len(self.data) < _LENGTH.size:
                return None
            (length,) = _LENGTH.unpack_from(self.data)
            missing = length + _LENGTH.size - len(self.data)
            if missing <= 0:
                message = self.data[_LENGTH.size : _LENGTH.size + length]
                del self.data[: _LENGTH.size + length]
                return message
            if length < _SMALL:
                return None
            del self.data[: _LENGTH.size]
            self.data += bytes(missing)
            self.large = memoryview(self.data)[length - missing :]
        if self.large:
            return None
        message, self.data, self.large = self.data, bytearray(), None
        return message

    def _read(self):
        if self.large is None:
            data = self.end.recv(1 << 14)
            self.data += data
            if not data:
                raise EOFError
        while self.large:
            count = self.end.recv_into(self.large)
            if not count:
                raise EOFError
            self.large = self.large[count:]


# ---- the worker


def _requests(end):
    """The parent's requests until it closes its end or is gone."""
    parent = os.getppid()
    poll = select.poll()
    poll.register(end, select.POLLIN)
    incoming = _Incoming(end)
    while True:
        data = incoming.pull()
        while data is None:
            if poll.poll(_LOOK * 1000):
                data = incoming.pull(True)
            elif os.getppid() != parent:
                return
        yield pickle.loads(data)


def _answer(end, number, result):
    try:
        data = _dumps(result)
    except Exception as error:  # a batch that cannot be sent is the user's error
        data = _dumps(_Failure(error, number))
    head = _LENGTH.pack(len(data))
    if len(data) < _SMALL:  # one piece: the parent wakes up once
        end.sendall(head + data)
    else:
        end.sendall(head)
        end.sendall(data)


def _seed(seed, worker):
    """The generators of random, torch and numpy, as PyTorch seeds them."""
    import random

    import numpy as np

    from simt import torch

    random.seed(seed + worker)
    torch.manual_seed(seed + worker)
    words = [worker, seed & 0xFFFFFFFF, seed >> 32, 0]
    np.random.seed(np.random.SeedSequence(words).generate_state(4))


def _work(end, recipe, number, seed):
    from simt import torch

    fetch = failure = epoch = None
    try:
        _seed(seed, number)
        torch.set_num_threads(1)
        _loader._worker_info = _loader.WorkerInfo(
            number, recipe.num_workers, seed + number, recipe.dataset
        )
        if recipe.worker_init_fn is not None:
            recipe.worker_init_fn(number)
    except Exception as error:
        failure = _Failure(error, number)
    for asked, request in _requests(end):
        try:
            if asked != epoch and failure is None:
                fetch, epoch = _loader.fetcher(recipe), asked
            result = failure or fetch(request)
        except Exception as error:
            result = _Failure(error, number)
        _answer(end, number, result)


def _live(end, recipe, number, seed):
    """A worker's process. It ends at once whatever threads it has started, by os._exit: what the
    parent left to be done at its own exit is not the worker's to do."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's, which ends its workers
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    end.setblocking(True)  # whatever the program's default for sockets is
    code = 0
    try:
        _work(end, recipe, number, seed)
    except (EOFError, ConnectionError):
        pass  # the parent has left
    except BaseException as error:
        code = error.code if isinstance(error, SystemExit) else 1
        try:
            _answer(end, number, _Failure(error, number, dead=True))
        except Exception:
            pass
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass
    os._exit(code & 0xFF if isinstance(code, int) else 0 if code is None else 1)


# ---- the parent

_LATE = object()
_ends = weakref.WeakSet()  # the parent's ends of all sockets


def _close_ends():
    for end in list(_ends):
        end.close()
    _ends.clear()


os.register_at_fork(after_in_child=_close_ends)


@contextmanager
def _undisturbed():
    """Ctrl-C waits until the block is done: no process is lost half started or half ended."""
    pending = []
    before = signal.getsignal(signal.SIGINT)
    ours = before is not None and threading.current_thread() is threading.main_thread()
    if ours:
        signal.signal(signal.SIGINT, lambda *_: pending.append(True))
    try:
        yield
    finally:
        if ours:
            signal.signal(signal.SIGINT, before)
        if pending:
            signal.raise_signal(signal.SIGINT)


class _Worker:
    def __init__(self, context, recipe, number, seed):
        self.end, there = socket.socketpair()
        _ends.add(self.end)
        try:
            self.process = context.Process(
                target=_live, args=(there, recipe, number, seed), daemon=True
            )
            self.process.start()
        except BaseException:
            self.close()
            raise
        finally:
            there.close()
        self.end.setblocking(False)
        self.out = deque()  # what the socket has not taken
        self.waiting = self.stale = 0  # requests without an answer: of this epoch, of earlier ones
        self.incoming = _Incoming(self.end)
        self.poll = select.poll()

    def close(self):
        _ends.discard(self.end)
        self.end.close()

    def send(self, message):
        data = _dumps(message)
        self.out.append(memoryview(_LENGTH.pack(len(data)) + bytes(data)))
        self._push()

    def _push(self):
        try:
            while self.out:
                count = self.end.send(self.out[0])
                self.out[0] = self.out[0][count:]
                if not self.out[0]:
                    self.out.popleft()
        except BlockingIOError:
            pass
        except ConnectionError:  # reading will tell
            self.out.clear()

    def receive(self, timeout):
        """The answer to the oldest request, or _LATE where it has not come within timeout seconds.

        Raises:
            RuntimeError: the worker is gone.
        """
        limit = time.monotonic() + timeout if timeout else None
        try:
            data = self.incoming.pull()
            while data is None:
                left = _LOOK if limit is None else min(_LOOK, limit - time.monotonic())
                if left <= 0:
                    return _LATE
                self.poll.register(self.end, select.POLLIN | (select.POLLOUT if self.out else 0))
                ready = self.poll.poll(left * 1000)
                if not ready and not self.process.is_alive():  # another process holds its end open
                    raise EOFError
                self._push()
                data = self.incoming.pull(bool(ready))
        except EOFError:
            raise self._death(None) from None
        message = pickle.loads(data)
        if isinstance(message, _Failure) and message.dead:
            raise self._death(message)
        return message

    def _death(self, message):
        self.process.join(_LOOK)
        code = self.process.exitcode
        how = f"with exit code {code}"
        if code is None:
            how = "(its connection was closed)"
        elif code < 0:
            how = f"(killed by signal: {signal.strsignal(-code)})"
        text = f"DataLoader worker (pid(s) {self.process.pid}) exited unexpectedly {how}."
        if code in (-signal.SIGBUS, -signal.SIGKILL):
            text += " The workers may have used up the memory."
        if message is not None:
            return RuntimeError(f"{text} {message.text}")
        return RuntimeError(
            f"{text} Details are lost due to multiprocessing. Rerunning with num_workers=0 may "
            "give better error trace."
        )


def _stop(workers):
    """Ends the workers: they notice the closed sockets, or are ended by signals."""
    with _undisturbed():
        for worker in workers:
            worker.close()
        limit = time.monotonic() + _GRACE
        for end in (None, "terminate", "kill"):
            for worker in workers:
                if end is not None:
                    getattr(worker.process, end)()
            for worker in workers:
                worker.process.join(max(0, limit - time.monotonic()))
            workers[:] = [worker for worker in workers if not _reaped(worker.process)]
            limit = time.monotonic() + _GRACE
            if not workers:
                return


def _reaped(process):
    if process.is_alive():
        return False
    process.close()
    return True


class WorkersIterator:
    """The batches of a loader, computed by its workers in turns, in order.

    An exception of the dataset is raised here, and the next batch can be asked for after it.
    """

    def __init__(self, loader):
        import multiprocessing
        import multiprocessing.util

        import numpy.random  # noqa: F401 - once here and not in each child, which seeds it

        from simt import torch

        context = loader.multiprocessing_context
        if context is None or isinstance(context, str):
            method = context or multiprocessing.get_start_method(allow_none=True) or "fork"
            context = multiprocessing.get_context(method)
        seed = int(torch.randint(0, 2**62, (1,), generator=loader.generator, device="cpu").item())
        recipe = _loader.Recipe(loader)
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._epoch = 0
        self._workers = []
        # Stops them when the iterator is forgotten and when the program ends, in this process only.
        self._stop = multiprocessing.util.Finalize(self, _stop, (self._workers,), exitpriority=100)
        with self._ending(), _undisturbed():
            for number in range(loader.num_workers):
                self._workers.append(_Worker(context, recipe, number, seed))
        self.begin(loader)

    def alive(self):
        """Whether it can begin another epoch, in this process."""
        return self._pid == os.getpid() and self._stop.still_active()

    def begin(self, loader):
        """Begins an epoch; what is left of the one before is forgotten."""
        with self._lock, self._ending():
            self._epoch += 1
            self._source = loader._requests()
            self._timeout = loader.timeout
            self._keep = loader.persistent_workers
            self._requests = iter(self._source)
            for worker in self._workers:
                worker.stale += worker.waiting
                worker.waiting = 0
            self._turns = deque()  # workers in the order of their outstanding requests
            for _ in range(loader.prefetch_factor or 2):
                for worker in self._workers:
                    self._ask(worker)

    def _ask(self, worker):
        try:
            request = next(self._requests)
        except StopIteration:
            return
        worker.send((self._epoch, request))
        worker.waiting += 1
        self._turns.append(worker)

    def __iter__(self):
        return self

    def __len__(self):
        return len(self._source)

    def __next__(self):
        if self._pid != os.getpid():
            raise RuntimeError("a DataLoader's iterator with workers is used in a forked process")
        with self._lock, self._ending():
            batch = self._next()
        if batch is _LATE:
            raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds")
        if batch is _loader.END:
            raise StopIteration
        if isinstance(batch, _Failure):
            del self  # so that who keeps the exception does not keep the workers
            batch.raise_again()
        return batch

    def _next(self):
        """The next batch, END, a _Failure or _LATE; after the last two the epoch goes on."""
        while self._turns:
            worker = self._turns[0]
            while True:
                batch = worker.receive(self._timeout)
                if batch is _LATE:
                    return batch
                if not worker.stale:
                    break
                worker.stale -= 1
            self._turns.popleft()
            worker.waiting -= 1
            if batch is not _loader.END:  # else this worker's stream has ended
                self._ask(worker)
                return batch
        if not self._keep:
            self._stop()
        return _loader.END

    @contextmanager
    def _ending(self):
        """Whatever is raised inside leaves no worker behind."""
        try:
            yield
        except BaseException:
            self._turns = deque()
            self._stop()
            raise
