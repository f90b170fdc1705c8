"""Worker processes of a DataLoader: batches are computed in children and come back in order.

Children are forked (datasets need not be picklable), as PyTorch does on Linux. A child that fails
sends
the exception and its traceback; a child that dies is noticed.
"""

import os

from . import loader as _loader


class _Failure:
    def __init__(self, error):
        import traceback

        self.kind = type(error)
        self.text = traceback.format_exc()

    def raise_again(self, worker):
        text = (
            f"Caught {self.kind.__name__} in DataLoader worker process {worker}.\n"
            f"Original {self.text}"
        )
        try:
            error = self.kind(text)
        except Exception:
            error = RuntimeError(text)
        raise error


def _send(connection, message):
    """Pickles with arrays out as bytes; a sample that cannot be pickled is the user's error."""
    try:
        connection.send(message)
    except (AttributeError, TypeError, ValueError) as error:
        connection.send((message[0], _Failure(error)))


def _work(loader, worker, seed, connection):
    from simt import torch

    torch.manual_seed(seed + worker)
    torch.set_num_threads(1)
    _loader._worker_info = _loader.WorkerInfo(
        worker, loader.num_workers, seed + worker, loader.dataset
    )
    stream = None
    try:
        if loader.worker_init_fn is not None:
            loader.worker_init_fn(worker)
        if loader._iterable:
            stream = _loader.fetch_stream(loader, iter(loader.dataset))
    except Exception as error:
        _send(connection, (-1, _Failure(error)))
        return
    while True:
        request = connection.recv()
        if request is None:
            return
        number, indices = request
        try:
            if stream is not None:
                batch = next(stream, None)
            elif loader._auto_collation:
                batch = _loader.fetch(loader, indices)
            else:
                batch = loader.collate_fn(loader.dataset[indices])
        except Exception as error:
            batch = _Failure(error)
        _send(connection, (number, batch))


class _Worker:
    def __init__(self, loader, number, seed, context):
        self.number = number
        here_requests, there_requests = context.Pipe()
        self.requests = here_requests
        self.process = context.Process(
            target=_child, args=(loader, number, seed, there_requests, here_requests), daemon=True
        )
        self.process.start()
        there_requests.close()

    def receive(self, timeout):
        if timeout and not self.requests.poll(timeout):
            raise RuntimeError(f"DataLoader timed out after {timeout} seconds")
        try:
            return self.requests.recv()
        except EOFError:
            self.process.join()
            raise RuntimeError(
                f"DataLoader worker (pid(s) {self.process.pid}) exited unexpectedly"
            ) from None

    def stop(self):
        try:
            self.requests.send(None)
        except (BrokenPipeError, OSError):
            pass
        self.requests.close()
        self.process.join(5)
        if self.process.is_alive():
            self.process.terminate()


def _child(loader, number, seed, connection, other_end):
    other_end.close()  # so that the end of the parent closes the pipe
    try:
        _work(loader, number, seed, connection)
    except (EOFError, KeyboardInterrupt, BrokenPipeError):
        pass
    finally:
        os._exit(0)


def iterate_in_workers(loader):
    """Yields the loader's batches, computed round-robin by its workers, in order."""
    import multiprocessing

    from simt import torch

    context = loader.multiprocessing_context
    if context is None or isinstance(context, str):
        context = multiprocessing.get_context(context or "fork")
    seed = int(torch.randint(0, 2**62, (1,), generator=loader.generator).item())
    source = loader.batch_sampler if loader._auto_collation else loader.sampler
    requests = enumerate(source)
    workers = [_Worker(loader, i, seed, context) for i in range(loader.num_workers)]
    waiting = []  # workers in the order of their outstanding requests
    running = list(workers)

    def ask(worker):
        request = next(requests, None)
        if request is None:
            return
        worker.requests.send(request)
        waiting.append(worker)

    try:
        for _ in range(loader.prefetch_factor or 2):
            for worker in workers:
                ask(worker)
        while waiting:
            worker = waiting.pop(0)
            if worker not in running:
                continue
            _, batch = worker.receive(loader.timeout)
            if isinstance(batch, _Failure):
                batch.raise_again(worker.number)
            if batch is None and loader._iterable:  # this worker's stream has ended
                running.remove(worker)
                continue
            ask(worker)
            yield batch
    finally:
        for worker in workers:
            worker.stop()
