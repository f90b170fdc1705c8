"""Samplers: iterables of indices.

A sampler with ``_simt_indices()`` gives an epoch's order as one int64 tensor, which the DataLoader
slices without making Python integers.
"""

from simt import torch


class Sampler:
    """Base of all samplers: define __iter__ (and __len__)."""

    def __class_getitem__(cls, item):
        return cls

    def __init__(self, data_source=None):
        pass

    def __iter__(self):
        raise NotImplementedError


class SequentialSampler(Sampler):
    def __init__(self, data_source):
        self.data_source = data_source

    def __iter__(self):
        return iter(range(len(self.data_source)))

    def __len__(self):
        return len(self.data_source)

    def _simt_indices(self):
        return torch.arange(len(self.data_source), device="cpu")


def _positive(num_samples):
    if not isinstance(num_samples, int) or isinstance(num_samples, bool) or num_samples <= 0:
        raise ValueError(
            f"num_samples should be a positive integer value, but got num_samples={num_samples}"
        )


class RandomSampler(Sampler):
    """A random order, or num_samples draws with replacement.

    Raises:
        TypeError, ValueError: replacement is no bool, or num_samples is not positive.
    """

    def __init__(self, data_source, replacement=False, num_samples=None, generator=None):
        if not isinstance(replacement, bool):
            raise TypeError(
                f"replacement should be a boolean value, but got replacement={replacement}"
            )
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        _positive(self.num_samples)

    @property
    def num_samples(self):
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def _simt_indices(self):
        n = len(self.data_source)
        if self.replacement:
            return torch.randint(n, (self.num_samples,), generator=self.generator, device="cpu")
        if self.num_samples == n:
            return torch.randperm(n, generator=self.generator, device="cpu")
        parts = []
        for _ in range(self.num_samples // n):
            parts.append(torch.randperm(n, generator=self.generator, device="cpu"))
        parts.append(
            torch.randperm(n, generator=self.generator, device="cpu")[: self.num_samples % n]
        )
        return torch.cat(parts)

    def __iter__(self):
        return iter(self._simt_indices().tolist())

    def __len__(self):
        return self.num_samples


class SubsetRandomSampler(Sampler):
    def __init__(self, indices, generator=None):
        self.indices = indices
        self.generator = generator

    def __iter__(self):
        for i in torch.randperm(len(self.indices), generator=self.generator, device="cpu").tolist():
            yield self.indices[i]

    def __len__(self):
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    """Draws of 0..len(weights)-1 with the given weights (not normalised)."""

    def __init__(self, weights, num_samples, replacement=True, generator=None):
        _positive(num_samples)
        if not isinstance(replacement, bool):
            raise ValueError(
                f"replacement should be a boolean value, but got replacement={replacement}"
            )
        self.weights = torch.as_tensor(weights, dtype=torch.float64)
        if self.weights.dim() != 1:
            raise ValueError(
                f"weights should be a 1d sequence but given weights have shape "
                f"{tuple(self.weights.shape)}"
            )
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self):
        from bisect import bisect_right
        from itertools import accumulate

        weights = self.weights.tolist()
        if not self.replacement:
            # Efraimidis and Spirakis (2006): the largest u ** (1 / w) are a weighted sample
            draws = torch.rand(
                len(weights), dtype=torch.float64, generator=self.generator, device="cpu"
            ).tolist()
            keys = [u ** (1 / w) if w > 0 else -1.0 for u, w in zip(draws, weights, strict=True)]
            order = sorted(range(len(weights)), key=keys.__getitem__, reverse=True)
            return iter(order[: self.num_samples])
        sums = list(accumulate(weights))
        draws = torch.rand(
            self.num_samples, dtype=torch.float64, generator=self.generator, device="cpu"
        ).tolist()
        last = len(sums) - 1
        return iter([min(bisect_right(sums, u * sums[-1]), last) for u in draws])

    def __len__(self):
        return self.num_samples


class BatchSampler(Sampler):
    """Lists of batch_size indices of another sampler.

    Raises:
        ValueError: batch_size is not a positive int, or drop_last no bool.
    """

    def __init__(self, sampler, batch_size, drop_last):
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise ValueError(
                f"batch_size should be a positive integer value, but got batch_size={batch_size}"
            )
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self):
        batch = []
        for index in self.sampler:
            batch.append(index)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self):
        n = len(self.sampler)
        return (
            n // self.batch_size if self.drop_last else (n + self.batch_size - 1) // self.batch_size
        )
