"""The DataLoader.

Two ways to an epoch: when dataset and sampler can give whole batches (``_simt_batch``,
``_simt_indices``) the order stays a tensor and each batch is a few calls into C; otherwise samples
are fetched one by one and collated, in this process or in workers, as in PyTorch.
"""

from itertools import chain, islice

from simt import _core, torch

from .dataset import IterableDataset
from .sampler import BatchSampler, RandomSampler, SequentialSampler


class WorkerInfo:
    """What get_worker_info() tells a dataset in a worker: id, num_workers, seed, dataset."""

    def __init__(self, id, num_workers, seed, dataset):
        self.id = id
        self.num_workers = num_workers
        self.seed = seed
        self.dataset = dataset


_worker_info = None


def get_worker_info():
    """The WorkerInfo in a worker process, None in the main process."""
    return _worker_info


def default_convert(data):
    """Arrays and numbers inside data as tensors; everything else as it is."""
    if isinstance(data, torch.Tensor):
        return data
    if type(data).__module__ == "numpy" and hasattr(data, "__array_interface__"):
        return torch.as_tensor(data)
    if isinstance(data, dict):
        return type(data)({k: default_convert(v) for k, v in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(d) for d in data))
    if isinstance(data, tuple):
        return [default_convert(d) for d in data]
    if isinstance(data, list):
        return [default_convert(d) for d in data]
    return data


def default_collate(batch):
    """A list of samples as one batch: tensors are stacked, numbers become tensors, containers keep
    their form.

    Raises:
        RuntimeError: samples of different lengths. TypeError: a type that cannot be a batch.
    """
    first = batch[0]
    if isinstance(first, torch.Tensor):
        return torch.stack(batch, 0)
    if type(first).__module__ == "numpy":
        if getattr(first, "shape", None) == ():
            return torch.as_tensor([b.item() for b in batch], dtype=torch.as_tensor(first).dtype)
        return default_collate([torch.as_tensor(b) for b in batch])
    if isinstance(first, float):
        return torch.tensor(batch, dtype=torch.float64)
    if isinstance(first, int):
        return torch.tensor(batch)
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, dict):
        return type(first)({key: default_collate([d[key] for d in batch]) for key in first})
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(default_collate(samples) for samples in zip(*batch, strict=False)))
    if isinstance(first, (list, tuple)):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        return [default_collate(samples) for samples in zip(*batch, strict=False)]
    raise TypeError(
        "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found "
        f"{type(first)}"
    )


class _InfiniteSampler:
    """For iterable datasets: says only "one more"."""

    def __iter__(self):
        while True:
            yield None


class DataLoader:
    """Batches of a dataset.

    Args: as torch.utils.data.DataLoader. num_workers > 0 starts processes (fork) that run the
    dataset's Python; datasets that are read in C (MNIST with known transforms, TensorDataset) need
    none and use none. pin_memory is accepted and changes nothing.

    Raises:
        ValueError: options that exclude each other, or a value out of range (PyTorch's texts).
    """

    def __class_getitem__(cls, item):
        return cls

    def __init__(
        self,
        dataset,
        batch_size=1,
        shuffle=None,
        sampler=None,
        batch_sampler=None,
        num_workers=0,
        collate_fn=None,
        pin_memory=False,
        drop_last=False,
        timeout=0,
        worker_init_fn=None,
        multiprocessing_context=None,
        generator=None,
        *,
        prefetch_factor=None,
        persistent_workers=False,
        pin_memory_device="",
        in_order=True,
    ):
        if num_workers < 0:
            raise ValueError(
                "num_workers option should be non-negative; use num_workers=0 to disable "
                "multiprocessing."
            )
        if timeout < 0:
            raise ValueError("timeout option should be non-negative")
        if num_workers == 0 and prefetch_factor is not None:
            raise ValueError(
                "prefetch_factor option could only be specified in multiprocessing."
                "let num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor to "
                "None."
            )
        if persistent_workers and num_workers == 0:
            raise ValueError("persistent_workers option needs num_workers > 0")
        if multiprocessing_context is not None:
            _check_context(multiprocessing_context, num_workers)
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if prefetch_factor is None and num_workers else prefetch_factor
        self.pin_memory = pin_memory
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.persistent_workers = persistent_workers
        self._iterator = None  # of persistent workers
        self.generator = generator
        self._iterable = isinstance(dataset, IterableDataset)
        if self._iterable:
            if shuffle:
                raise ValueError(
                    f"DataLoader with IterableDataset: expected unspecified shuffle option, but "
                    f"got shuffle={shuffle}"
                )
            if sampler is not None:
                raise ValueError(
                    f"DataLoader with IterableDataset: expected unspecified sampler option, but "
                    f"got sampler={sampler}"
                )
            if batch_sampler is not None:
                raise ValueError(
                    "DataLoader with IterableDataset: expected unspecified batch_sampler option, "
                    "but got "
                    f"batch_sampler={batch_sampler}"
                )
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, "
                    "sampler, and drop_last"
                )
            batch_size, drop_last = None, False
        elif batch_size is None and drop_last:
            raise ValueError(
                "batch_size=None option disables auto-batching and is mutually exclusive with "
                "drop_last"
            )
        if sampler is None:
            if self._iterable:
                sampler = _InfiniteSampler()
            elif shuffle:
                sampler = RandomSampler(dataset, generator=generator)
            else:
                sampler = SequentialSampler(dataset)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self._auto_collation = batch_sampler is not None
        self.collate_fn = collate_fn or (
            default_collate if self._auto_collation else default_convert
        )

    def __len__(self):
        if self._iterable:
            n = len(self.dataset)
            if self.batch_size is None:
                return n
            return n // self.batch_size if self.drop_last else -(-n // self.batch_size)
        return len(self.batch_sampler if self._auto_collation else self.sampler)

    def __iter__(self):
        fast = self._whole_batches()
        if fast is not None:
            return fast
        if self.num_workers == 0:
            return _Iterator(self)
        from ._workers import WorkersIterator

        if self._iterator is not None and self._iterator.alive():
            self._iterator.begin(self)
            return self._iterator
        iterator = WorkersIterator(self)
        if self.persistent_workers:
            self._iterator = iterator
        return iterator

    def __getstate__(self):
        return {**self.__dict__, "_iterator": None}

    def _requests(self):
        """What is asked for, batch by batch: indices, one index, or None of an iterable dataset."""
        return self.batch_sampler if self._auto_collation else self.sampler

    def _whole_batches(self):
        """An iterator that runs no Python per sample, or None."""
        if self._iterable or not self._auto_collation or self.collate_fn is not default_collate:
            return None
        batch_of = getattr(self.dataset, "_simt_batch", None)
        indices_of = getattr(self.sampler, "_simt_indices", None)
        if batch_of is None or indices_of is None or type(self.batch_sampler) is not BatchSampler:
            return None
        if (
            len(self.dataset) == 0 or batch_of(torch.arange(0, device="cpu")) is None
        ):  # draws no random number
            return None
        return self._iterate_whole(batch_of, indices_of())

    def _iterate_whole(self, batch_of, order):
        n, size = order.shape[0], self.batch_size
        last = n - size if self.drop_last else n - 1
        for start in range(0, last + 1, size):
            yield batch_of(order[start : start + size])


class Recipe:
    """What of a loader makes a batch of a request; workers get it, not the loader."""

    def __init__(self, loader):
        self.dataset = loader.dataset
        self.iterable = loader._iterable
        self.batched = loader._auto_collation
        self.batch_size = loader.batch_size
        self.drop_last = loader.drop_last
        self.collate_fn = loader.collate_fn
        self.num_workers = loader.num_workers
        self.worker_init_fn = loader.worker_init_fn


class END:
    """Instead of a batch: an iterable dataset has ended."""


def fetcher(recipe):
    """The function from requests to batches."""
    dataset, collate, size = recipe.dataset, recipe.collate_fn, recipe.batch_size
    many = getattr(dataset, "__getitems__", None)
    stream = chain(dataset) if recipe.iterable else None  # ended once, ended for good

    def next_sample(_):
        for sample in stream:
            return collate(sample)
        return END

    def next_samples(_):
        samples = list(islice(stream, size))
        if not samples or (recipe.drop_last and len(samples) < size):
            return END
        return collate(samples)

    def one(index):
        return collate(dataset[index])

    def several(indices):
        return collate(many(indices) if many is not None else [dataset[i] for i in indices])

    if recipe.iterable:
        return next_samples if recipe.batched else next_sample
    return several if recipe.batched else one


class _Iterator:
    """The batches of a loader, computed here; the next can be asked for after an exception."""

    def __init__(self, loader):
        self._source = loader._requests()
        self._requests = iter(self._source)
        self._fetch = fetcher(Recipe(loader))

    def __iter__(self):
        return self

    def __len__(self):
        return len(self._source)

    def __next__(self):
        request = next(self._requests)
        try:
            batch = self._fetch(request)
        except StopIteration as error:  # would end the loop without a word
            raise RuntimeError("the dataset raised StopIteration") from error
        if batch is END:
            raise StopIteration
        return batch


def _check_context(context, num_workers):
    import multiprocessing

    if num_workers == 0:
        raise ValueError(
            "multiprocessing_context can only be used with multi-process loading (num_workers > "
            f"0), but got num_workers={num_workers}"
        )
    if isinstance(context, str):
        methods = multiprocessing.get_all_start_methods()
        if context not in methods:
            raise ValueError(
                "multiprocessing_context option should specify a valid start method in "
                f"{methods!r}, but got multiprocessing_context={context!r}"
            )
    elif not isinstance(context, multiprocessing.context.BaseContext):
        raise TypeError(
            "multiprocessing_context option should be a valid context object or a string "
            f"specifying the start method, but got multiprocessing_context={context}"
        )


_core._absent(DataLoader, "torch.utils.data.DataLoader")
