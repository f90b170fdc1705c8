"""tf.data: datasets as chains of Python generators; elements are simt's tensors."""

import itertools

import numpy as np
from keras.src import tree

from simt._missing import module_hooks as _module_hooks
from simt.keras_backend import core

AUTOTUNE = -1
INFINITE_CARDINALITY = -1
UNKNOWN_CARDINALITY = -2


def _host(x):
    if isinstance(x, (core.Tensor, core.Variable)):
        return core.convert_to_numpy(x)
    return np.asarray(x)


def _tensors(element):
    return tree.map_structure(_tensor, element)


def _tensor(x):
    if isinstance(x, np.ndarray) and x.dtype.kind in "OSU":
        return x
    return core.convert_to_tensor(x)


class Dataset:
    """A chain: `make` gives an iterator over elements, structures of NumPy arrays or tensors."""

    def __init__(self, make, cardinality=UNKNOWN_CARDINALITY):
        self._make = make
        self._cardinality = cardinality

    # ---- sources

    @staticmethod
    def from_tensor_slices(tensors, name=None):
        arrays = tree.map_structure(_host, _leaves(tensors))
        sizes = {len(a) if a.ndim else None for a in tree.flatten(arrays)}
        if None in sizes:
            raise ValueError("Unbatching a tensor is only supported for rank >= 1")
        if len(sizes) != 1:
            raise ValueError(f"Dimensions of the components differ: {sorted(sizes)}")
        (size,) = sizes

        def make():
            return (tree.map_structure(lambda a, i=i: a[i], arrays) for i in range(size))

        return _Slices(make, size, arrays)

    @staticmethod
    def from_tensors(tensors, name=None):
        element = tree.map_structure(_host, _leaves(tensors))
        return Dataset(lambda: iter([element]), 1)

    @staticmethod
    def from_generator(
        generator, output_types=None, output_shapes=None, args=None, output_signature=None
    ):
        return Dataset(lambda: iter(generator(*(args or ()))))

    @staticmethod
    def range(*args, output_type="int64", name=None):
        dtype = str(getattr(output_type, "name", output_type))
        values = np.arange(*(int(a) for a in args), dtype=dtype)
        return Dataset(lambda: iter(values), len(values))

    @staticmethod
    def zip(*datasets, name=None):
        parts = datasets[0] if len(datasets) == 1 and isinstance(datasets[0], tuple) else datasets
        known = [d._cardinality for d in parts]
        size = min(known) if min(known) >= 0 else UNKNOWN_CARDINALITY
        return Dataset(lambda: zip(*(iter(d._make()) for d in parts), strict=False), size)

    # ---- steps

    def map(self, map_func, num_parallel_calls=None, deterministic=None, name=None):
        def make():
            for element in self._make():
                element = _tensors(element)
                yield map_func(*element) if isinstance(element, tuple) else map_func(element)

        return Dataset(make, self._cardinality)

    def filter(self, predicate, name=None):
        def make():
            for element in self._make():
                given = _tensors(element)
                if predicate(*given) if isinstance(given, tuple) else predicate(given):
                    yield element

        return Dataset(make)

    def batch(self, batch_size, drop_remainder=False, num_parallel_calls=None, deterministic=None):
        batch_size = int(batch_size)

        def make():
            elements = iter(self._make())
            while part := list(itertools.islice(elements, batch_size)):
                if len(part) < batch_size and drop_remainder:
                    return
                yield tree.map_structure(_stack, *part)

        size = self._cardinality
        if size >= 0:
            size = size // batch_size if drop_remainder else -(-size // batch_size)
        return Dataset(make, size)

    def unbatch(self, name=None):
        def make():
            for element in self._make():
                arrays = tree.map_structure(_host, element)
                for i in range(len(tree.flatten(arrays)[0])):
                    yield tree.map_structure(lambda a, i=i: a[i], arrays)

        return Dataset(make)

    def shuffle(self, buffer_size, seed=None, reshuffle_each_iteration=True, name=None):
        state = np.random.default_rng(seed)
        fixed = int(state.integers(1 << 62))

        def make():
            draw = state if reshuffle_each_iteration else np.random.default_rng(fixed)
            held = []
            for element in self._make():
                held.append(element)
                if len(held) >= buffer_size:
                    at = int(draw.integers(len(held)))
                    held[at], held[-1] = held[-1], held[at]
                    yield held.pop()
            draw.shuffle(held)
            yield from held

        return Dataset(make, self._cardinality)

    def repeat(self, count=None, name=None):
        def make():
            for _ in itertools.count() if count in (None, -1) else range(count):
                yield from self._make()

        size = self._cardinality
        if count in (None, -1):
            size = INFINITE_CARDINALITY
        elif size >= 0:
            size *= count
        return Dataset(make, size)

    def take(self, count, name=None):
        size = self._cardinality
        if count >= 0:
            size = min(size, count) if size >= 0 else UNKNOWN_CARDINALITY
        return Dataset(lambda: itertools.islice(self._make(), None if count < 0 else count), size)

    def skip(self, count, name=None):
        size = max(self._cardinality - count, 0) if self._cardinality >= 0 else self._cardinality
        return Dataset(lambda: itertools.islice(self._make(), count, None), size)

    def concatenate(self, dataset, name=None):
        known = self._cardinality >= 0 and dataset._cardinality >= 0
        size = self._cardinality + dataset._cardinality if known else UNKNOWN_CARDINALITY
        return Dataset(lambda: itertools.chain(self._make(), dataset._make()), size)

    def enumerate(self, start=0, name=None):
        return Dataset(
            lambda: ((np.int64(i), x) for i, x in enumerate(self._make(), start)),
            self._cardinality,
        )

    def cache(self, filename="", name=None):
        held = []

        def make():
            if not held:
                held.append(list(self._make()))
            return iter(held[0])

        return Dataset(make, self._cardinality)

    def prefetch(self, buffer_size=None, name=None):
        return self

    def apply(self, transformation_func):
        return transformation_func(self)

    # ---- reading

    def __iter__(self):
        return (_tensors(element) for element in self._make())

    def as_numpy_iterator(self):
        return (tree.map_structure(lambda x: _host(x)[()], e) for e in self._make())

    def cardinality(self):
        return core.convert_to_tensor(self._cardinality, "int64")

    def __len__(self):
        if self._cardinality == INFINITE_CARDINALITY:
            raise TypeError("The dataset is infinite.")
        if self._cardinality < 0:
            raise TypeError("The dataset length is unknown.")
        return self._cardinality

    def __bool__(self):
        return True

    def reduce(self, initial_state, reduce_func, name=None):
        state = initial_state
        for element in self:
            state = reduce_func(state, element)
        return state


class _Slices(Dataset):
    """Slices of arrays: batches of them are slices too."""

    def __init__(self, make, size, arrays):
        super().__init__(make, size)
        self._arrays = arrays

    def batch(self, batch_size, drop_remainder=False, *args, **kw):
        size, n = self._cardinality, int(batch_size)
        count = size // n if drop_remainder else -(-size // n)

        def make():
            return (
                tree.map_structure(lambda a, i=i: a[i * n : (i + 1) * n], self._arrays)
                for i in range(count)
            )

        return Dataset(make, count)


def _leaves(tensors):
    """Lists of numbers are arrays; tuples and dicts are structures."""
    if isinstance(tensors, tuple):
        return tuple(_leaves(t) for t in tensors)
    if isinstance(tensors, dict):
        return {k: _leaves(v) for k, v in tensors.items()}
    return np.asarray(tensors) if isinstance(tensors, list) else tensors


def _stack(*parts):
    return np.stack([_host(p) for p in parts])


__getattr__, __dir__ = _module_hooks(globals())
