"""Datasets.

A dataset with ``_simt_batch(indices)`` gives the collated samples of an int64 tensor of indices at
once
(or None: it cannot for these); the DataLoader then runs no Python per sample.
"""

from simt import torch


class _Subscriptable(type):
    """Dataset[T] in annotations, without importing typing."""

    def __getitem__(cls, item):
        return cls


class Dataset(metaclass=_Subscriptable):
    """A map from indices to samples: define __getitem__ and usually __len__."""

    def __getitem__(self, index):
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other):
        return ConcatDataset([self, other])


class IterableDataset(Dataset):
    """A stream of samples: define __iter__."""

    def __add__(self, other):
        return ChainDataset([self, other])


class TensorDataset(Dataset):
    """Samples are the slices of tensors along their first dimension.

    Raises:
        AssertionError: the first dimensions differ (as in PyTorch).
    """

    def __init__(self, *tensors):
        if any(tensors[0].size(0) != tensor.size(0) for tensor in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index):
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self):
        return self.tensors[0].size(0)

    def _simt_batch(self, indices):
        if self.__class__.__getitem__ is not TensorDataset.__getitem__:
            return None
        return [tensor[indices] for tensor in self.tensors]


class StackDataset(Dataset):
    """Several datasets side by side; samples are tuples, or dicts for keyword arguments."""

    def __init__(self, *args, **kwargs):
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or``dict``- (via ``kwargs``) like "
                "input/output, "
                "but both types are given."
            )
        self.datasets = kwargs or args
        if not self.datasets:
            raise ValueError("At least one dataset should be passed")
        sizes = {len(d) for d in (kwargs.values() if kwargs else args)}
        if len(sizes) > 1:
            raise ValueError("Size mismatch between datasets")
        self._length = sizes.pop()

    def __getitem__(self, index):
        if isinstance(self.datasets, dict):
            return {k: d[index] for k, d in self.datasets.items()}
        return tuple(d[index] for d in self.datasets)

    def __len__(self):
        return self._length


class ConcatDataset(Dataset):
    """Datasets one after the other."""

    def __init__(self, datasets):
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(d, IterableDataset) for d in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = []
        total = 0
        for d in self.datasets:
            total += len(d)
            self.cumulative_sizes.append(total)

    def __len__(self):
        return self.cumulative_sizes[-1]

    def __getitem__(self, index):
        from bisect import bisect_right

        if index < 0:
            if -index > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            index += len(self)
        which = bisect_right(self.cumulative_sizes, index)
        return self.datasets[which][index - (self.cumulative_sizes[which - 1] if which else 0)]


class ChainDataset(IterableDataset):
    """Streams one after the other."""

    def __init__(self, datasets):
        self.datasets = datasets

    def __iter__(self):
        for d in self.datasets:
            yield from d

    def __len__(self):
        return sum(len(d) for d in self.datasets)


class Subset(Dataset):
    """Some samples of a dataset, by their indices."""

    def __init__(self, dataset, indices):
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index):
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __len__(self):
        return len(self.indices)

    def _simt_batch(self, indices):
        batch = getattr(self.dataset, "_simt_batch", None)
        if batch is None or self.__class__.__getitem__ is not Subset.__getitem__:
            return None
        if getattr(self, "_table_of", None) is not self.indices:
            self._table_of = self.indices
            self._table = torch.tensor(
                [int(i) for i in self.indices], dtype=torch.int64, device="cpu"
            )
        return batch(self._table[indices])


def random_split(dataset, lengths, generator=None):
    """Splits a dataset at random into parts of the given lengths, or fractions that sum to 1.

    Raises:
        ValueError: the lengths do not sum to the dataset's.
    """
    lengths = list(lengths)
    total = len(dataset)
    if sum(lengths) <= 1 and abs(sum(lengths) - 1) < 1e-9:
        sizes = []
        for i, fraction in enumerate(lengths):
            if fraction < 0 or fraction > 1:
                raise ValueError(f"Fraction at index {i} is not between 0 and 1")
            sizes.append(int(total * fraction))
        for i in range(total - sum(sizes)):
            sizes[i % len(sizes)] += 1
        lengths = sizes
    if sum(lengths) != total:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    indices = torch.randperm(sum(lengths), generator=generator, device="cpu").tolist()
    parts, start = [], 0
    for length in lengths:
        parts.append(Subset(dataset, indices[start : start + length]))
        start += length
    return parts
