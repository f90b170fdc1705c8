"""tf.data: datasets as chains of Python generators; their functions get tensors and run eagerly.

Elements are structures of NumPy arrays on their way, of tensors where a function or the user sees
them. What a step's elements look like (element_spec) follows from its input where the step does not
change them; after a user's function it is asked of the first element.
"""

import itertools

import numpy as np
from keras.src import tree

from simt._missing import module_hooks as _module_hooks
from simt.keras_backend import core
from simt.tensorflow import errors
from simt.tensorflow._data_parts import (
    batches,
    check_rank,
    checked,
    checked_size,
    common_spec,
    count_of,
    host,
    is_text,
    joined,
    leaves,
    map_specs,
    mapped,
    padded,
    refused,
    seed_of,
    signature_of,
    stack_arrays,
)
from simt.tensorflow._tensor import convert, shown
from simt.tensorflow._types import TensorShape, TensorSpec, as_dtype

AUTOTUNE = -1
INFINITE_CARDINALITY = -1
UNKNOWN_CARDINALITY = -2


def _tensor(x):
    """An element's part as the user sees it; strings stay NumPy's."""
    if isinstance(x, Dataset) or is_text(x):
        return x
    return shown(convert(x))


def _tensors(element):
    return tree.map_structure(_tensor, element)


def _spec(x):
    if isinstance(x, Dataset):
        return x
    x = host(x)
    return TensorSpec(x.shape, "string" if is_text(x) else x.dtype.name)


def _call(function, element):
    return function(*element) if isinstance(element, tuple) else function(element)


class Dataset:
    """A chain: `make` gives an iterator over elements, structures of NumPy arrays or tensors."""

    def __init__(self, make, cardinality=UNKNOWN_CARDINALITY, specs=None, kind="_Dataset"):
        self._make = make
        self._cardinality = cardinality
        self._specs = specs  # a structure of TensorSpecs, or what gives one when it is asked for
        self._kind = kind

    @property
    def element_spec(self):
        if self._specs is None:
            self._specs = self._first_spec
        if callable(self._specs):
            self._specs = self._specs()
        return self._specs

    def _first_spec(self):
        for element in self._make():
            return tree.map_structure(_spec, element)
        raise ValueError("the dataset is empty: what its elements would be is not known")

    def _same(self, make, cardinality, kind):
        """A step that leaves elements as they are."""
        return Dataset(make, cardinality, lambda: self.element_spec, kind)

    def __repr__(self):
        return f"<{self._kind} element_spec={self.element_spec}>"

    # ---- sources

    @staticmethod
    def from_tensor_slices(tensors, name=None):
        arrays = tree.map_structure(host, leaves(tensors))
        flat = tree.flatten(arrays)
        if any(not a.ndim for a in flat):
            raise ValueError("Unbatching a tensor is only supported for rank >= 1")
        size = len(flat[0])
        for a in flat:
            if len(a) != size:
                raise ValueError(f"Dimensions {size} and {len(a)} are not compatible")

        def make():
            return (tree.map_structure(lambda a, i=i: a[i], arrays) for i in range(size))

        return _Slices(make, size, arrays)

    @staticmethod
    def from_tensors(tensors, name=None):
        element = tree.map_structure(host, leaves(tensors))
        specs = tree.map_structure(_spec, element)
        return Dataset(lambda: iter([element]), 1, specs, "_TensorDataset")

    @staticmethod
    def from_generator(
        generator,
        output_types=None,
        output_shapes=None,
        args=None,
        output_signature=None,
        name=None,
    ):
        if not callable(generator):
            raise TypeError("`generator` must be a Python callable.")
        signature = signature_of(output_types, output_shapes, output_signature)

        def make():
            for element in generator(*(_tensors(a) for a in args or ())):
                yield checked(element, signature)

        return Dataset(make, UNKNOWN_CARDINALITY, signature, "_FlatMapDataset")

    @staticmethod
    def range(*args, output_type="int64", name=None):
        if not 1 <= len(args) <= 3:
            raise ValueError(
                "Invalid `args`. The length of `args` should be between 1 and 3 but was "
                f"{len(args)}."
            )
        dtype = as_dtype(output_type).name
        values = np.arange(*(int(a) for a in args), dtype=dtype)
        return Dataset(lambda: iter(values), len(values), TensorSpec((), dtype), "_RangeDataset")

    @staticmethod
    def zip(*args, datasets=None, name=None):
        parts = args if datasets is None else (datasets,)
        parts = parts[0] if len(parts) == 1 else tuple(parts)
        flat = tree.flatten(parts)
        for part in flat:
            if not isinstance(part, Dataset):
                raise TypeError(
                    "Invalid input to `zip`. Inputs are expected to be (nested) structures of "
                    f"`tf.data.Dataset` objects. Encountered object of type {type(part)}."
                )

        def make():
            rows = zip(*(iter(d._make()) for d in flat), strict=False)
            return (_rejoined(parts, row) for row in rows)

        sizes = [d._cardinality for d in flat if d._cardinality != INFINITE_CARDINALITY]
        size = INFINITE_CARDINALITY if not sizes else min(sizes)
        return Dataset(
            make,
            UNKNOWN_CARDINALITY if UNKNOWN_CARDINALITY in sizes else size,
            lambda: _rejoined(parts, [d.element_spec for d in flat]),
            "_ZipDataset",
        )

    @staticmethod
    def random(seed=None, rerandomize_each_iteration=None, name=None):
        def make():
            draw = np.random.default_rng(seed)
            return (np.int64(draw.integers(1 << 32)) for _ in itertools.count())

        return Dataset(make, INFINITE_CARDINALITY, TensorSpec((), "int64"), "_RandomDataset")

    # ---- steps with a function of the user's

    def map(
        self,
        map_func,
        num_parallel_calls=None,
        deterministic=None,
        synchronous=None,
        use_unbounded_threadpool=False,
        name=None,
    ):
        return Dataset(
            lambda: (mapped(_call(map_func, _tensors(e))) for e in self._make()),
            self._cardinality,
            kind="_ParallelMapDataset" if num_parallel_calls else "_MapDataset",
        )

    def filter(self, predicate, name=None):
        def keeps(element):
            answer = _call(predicate, _tensors(element))
            found = np.asarray(answer)
            if found.dtype != bool or found.ndim:
                raise ValueError(
                    "Invalid `predicate`. `predicate` must return a `tf.bool` scalar tensor, but "
                    f"its return type is {_spec(answer)}."
                )
            return bool(found)

        def make():
            return (e for e in self._make() if keeps(e))

        return self._same(make, UNKNOWN_CARDINALITY, "_FilterDataset")

    def take_while(self, predicate, name=None):
        def make():
            return itertools.takewhile(lambda e: bool(_call(predicate, _tensors(e))), self._make())

        return self._same(make, UNKNOWN_CARDINALITY, "_TakeWhileDataset")

    def flat_map(self, map_func, name=None):
        def make():
            for element in self._make():
                yield from _inner(map_func, element)._make()

        return Dataset(make, kind="_FlatMapDataset")

    def interleave(
        self,
        map_func,
        cycle_length=None,
        block_length=None,
        num_parallel_calls=None,
        deterministic=None,
        name=None,
    ):
        width, block = int(cycle_length or 1), int(block_length or 1)

        def make():
            waiting = (iter(_inner(map_func, e)._make()) for e in self._make())
            open_ = list(itertools.islice(waiting, width))
            at = 0
            while open_:
                at %= len(open_)
                part = list(itertools.islice(open_[at], block))
                yield from part
                if len(part) == block:
                    at += 1
                    continue
                following = next(waiting, None)
                if following is None:
                    open_.pop(at)
                else:
                    open_[at] = following
                    at += 0 if not part else 1

        return Dataset(make, kind="_InterleaveDataset")

    def scan(self, initial_state, scan_func, name=None):
        def make():
            state = _tensors(tree.map_structure(host, leaves(initial_state)))
            for element in self._make():
                state, made = scan_func(state, _tensors(element))
                yield mapped(made)

        return Dataset(make, self._cardinality, kind="_ScanDataset")

    def reduce(self, initial_state, reduce_func, name=None):
        state = _tensors(initial_state)
        for element in self:
            state = reduce_func(state, element)
        return _tensors(state)

    def apply(self, transformation_func):
        made = transformation_func(self)
        if not isinstance(made, Dataset):
            raise TypeError(
                f"`transformation_func` must return a `tf.data.Dataset` object. Got {type(made)}."
            )
        return made

    # ---- steps that group elements

    def batch(
        self,
        batch_size,
        drop_remainder=False,
        num_parallel_calls=None,
        deterministic=None,
        name=None,
    ):
        batch_size = checked_size(batch_size)

        def make():
            elements = iter(self._make())
            while part := list(itertools.islice(elements, batch_size)):
                if len(part) < batch_size and drop_remainder:
                    return
                yield tree.map_structure(stack_arrays, *part)

        return Dataset(
            make,
            batches(self._cardinality, batch_size, drop_remainder),
            lambda: map_specs(
                lambda s: TensorShape([batch_size if drop_remainder else None]) + s,
                self.element_spec,
            ),
            "_ParallelBatchDataset" if num_parallel_calls else "_BatchDataset",
        )

    def padded_batch(
        self,
        batch_size,
        padded_shapes=None,
        padding_values=None,
        drop_remainder=False,
        name=None,
    ):
        batch_size = checked_size(batch_size)

        def join(values, shapes, *parts):
            return padded([host(p) for p in parts], shapes, values)

        def make():
            elements = iter(self._make())
            while part := list(itertools.islice(elements, batch_size)):
                if len(part) < batch_size and drop_remainder:
                    return
                yield joined(join, part, padding_values, padded_shapes)

        size = batches(self._cardinality, batch_size, drop_remainder)
        return Dataset(make, size, kind="_PaddedBatchDataset")

    def unbatch(self, name=None):
        def make():
            for element in self._make():
                arrays = tree.map_structure(host, element)
                flat = tree.flatten(arrays)
                check_rank(flat)
                for i in range(len(flat[0])):
                    yield tree.map_structure(lambda a, i=i: a[i], arrays)

        if any(s.shape.rank == 0 for s in tree.flatten(self.element_spec)):
            raise ValueError("Cannot unbatch an input with scalar components.")
        specs = map_specs(lambda s: s[1:], self.element_spec)
        return Dataset(make, UNKNOWN_CARDINALITY, specs, "_UnbatchDataset")

    def window(self, size, shift=None, stride=1, drop_remainder=False, name=None):
        size, stride = count_of(size, "size"), count_of(stride, "stride")
        shift = size if shift is None else count_of(shift, "shift")
        for n, what in ((size, "Window size"), (shift, "Window shift"), (stride, "Window stride")):
            if n <= 0:
                raise refused("WindowDataset", f"{what} must be greater than zero.")
        reach = (size - 1) * stride + 1

        def make():
            elements, held = iter(self._make()), []
            while True:
                held += itertools.islice(elements, max(reach - len(held), 0))
                if not held or (drop_remainder and len(held) < reach):
                    return
                yield _window(held[:reach:stride], self)
                for _ in itertools.islice(elements, max(shift - len(held), 0)):
                    pass
                held = held[shift:]

        return Dataset(make, kind="_WindowDataset")

    # ---- steps that choose and order elements

    def shuffle(self, buffer_size, seed=None, reshuffle_each_iteration=True, name=None):
        buffer_size = count_of(buffer_size, "buffer_size")
        if buffer_size <= 0 and buffer_size != UNKNOWN_CARDINALITY:
            raise refused(
                "ShuffleDatasetV3",
                "buffer_size must be greater than zero or UNKNOWN_CARDINALITY",
            )
        state = np.random.default_rng(seed_of(seed))
        fixed = int(state.integers(1 << 62))

        def make():
            draw = state if reshuffle_each_iteration else np.random.default_rng(fixed)
            held = []
            for element in self._make():
                held.append(element)
                if len(held) >= buffer_size > 0:
                    at = int(draw.integers(len(held)))
                    held[at], held[-1] = held[-1], held[at]
                    yield held.pop()
            draw.shuffle(held)
            yield from held

        return self._same(make, self._cardinality, "_ShuffleDataset")

    def repeat(self, count=None, name=None):
        endless = count is None or int(count) < 0

        def make():
            for _ in itertools.count() if endless else range(int(count)):
                empty = True
                for element in self._make():
                    empty = False
                    yield element
                if empty:
                    return

        size = self._cardinality
        if endless:
            size = INFINITE_CARDINALITY if size else 0
        elif size >= 0:
            size *= int(count)
        return self._same(make, size, "_RepeatDataset")

    def take(self, count, name=None):
        count, size = count_of(count, "count"), self._cardinality
        if count >= 0:
            size = count if size == INFINITE_CARDINALITY else min(size, count)
            size = UNKNOWN_CARDINALITY if self._cardinality == UNKNOWN_CARDINALITY else size
        stop = None if count < 0 else count
        return self._same(lambda: itertools.islice(self._make(), stop), size, "_TakeDataset")

    def skip(self, count, name=None):
        count = count_of(count, "count")
        size = max(self._cardinality - count, 0) if self._cardinality >= 0 else self._cardinality
        if count < 0:
            return self._same(lambda: iter(()), 0, "_SkipDataset")
        return self._same(lambda: itertools.islice(self._make(), count, None), size, "_SkipDataset")

    def shard(self, num_shards, index, name=None):
        count, index = count_of(num_shards, "num_shards"), count_of(index, "index")
        if not 0 <= index < count:
            text = f"index must be between 0 and {count - 1} (currently index = {index}, "
            raise refused("ShardDataset", text + f"num_shards = {count}).")
        size = self._cardinality
        size = -(-max(size - index, 0) // count) if size >= 0 else size
        return self._same(
            lambda: itertools.islice(self._make(), index, None, count), size, "_ShardDataset"
        )

    def concatenate(self, dataset, name=None):
        def specs():
            own, other = self.element_spec, dataset.element_spec
            return tree.map_structure(common_spec, own, other)

        if [s.dtype for s in tree.flatten(self.element_spec)] != [
            s.dtype for s in tree.flatten(dataset.element_spec)
        ]:
            raise TypeError(
                f"Incompatible dataset elements:\n  {self.element_spec} vs.   "
                f"{dataset.element_spec}"
            )
        sizes = (self._cardinality, dataset._cardinality)
        size = min(sizes) if min(sizes) < 0 else sum(sizes)
        size = INFINITE_CARDINALITY if INFINITE_CARDINALITY in sizes else size
        return Dataset(
            lambda: itertools.chain(self._make(), dataset._make()),
            size,
            specs,
            "_ConcatenateDataset",
        )

    def enumerate(self, start=0, name=None):
        return Dataset(
            lambda: ((np.int64(i), x) for i, x in enumerate(self._make(), start)),
            self._cardinality,
            lambda: (TensorSpec((), "int64"), self.element_spec),
            "_ZipDataset",
        )

    def unique(self, name=None):
        def make():
            seen = set()
            for element in self._make():
                key = tuple(host(x).tobytes() for x in tree.flatten(element))
                if key not in seen:
                    seen.add(key)
                    yield element

        return self._same(make, UNKNOWN_CARDINALITY, "_UniqueDataset")

    def cache(self, filename="", name=None):
        if filename:
            raise NotImplementedError(
                "tf.data: cache(filename): not in simt yet; nearest is cache() in memory"
            )
        whole = []

        def make():
            if whole:
                yield from whole[0]
                return
            held = []
            for element in self._make():
                held.append(element)
                yield element
            whole.append(held)

        return self._same(make, self._cardinality, "CacheDataset")

    def prefetch(self, buffer_size=None, name=None):
        return self._same(self._make, self._cardinality, "_PrefetchDataset")

    def ignore_errors(self, log_warning=False, name=None):
        raise NotImplementedError("tf.data: ignore_errors: not in simt yet; nearest is filter")

    def with_options(self, options, name=None):
        return self

    def options(self):
        return Options()

    # ---- reading

    def __iter__(self):
        return _Iterator(self._make())

    def as_numpy_iterator(self):
        return (tree.map_structure(lambda x: host(x)[()], e) for e in self._make())

    def get_single_element(self, name=None):
        found = list(itertools.islice(self, 2))
        if len(found) != 1:
            raise errors.refused(
                "DatasetToSingleElement",
                "Dataset had more than one element." if found else "Dataset was empty.",
                form="DatasetToSingleElement_output_types_1",
            )
        return found[0]

    def cardinality(self):
        return shown(core.convert_to_tensor(self._cardinality, "int64"))

    def __len__(self):
        if self._cardinality == INFINITE_CARDINALITY:
            raise TypeError("The dataset is infinite.")
        if self._cardinality < 0:
            raise TypeError("The dataset length is unknown.")
        return self._cardinality

    def __bool__(self):
        return True


class _Slices(Dataset):
    """Slices of arrays: batches of them are slices too."""

    def __init__(self, make, size, arrays):
        specs = map_specs(lambda s: s[1:], tree.map_structure(_spec, arrays))
        super().__init__(make, size, specs, "_TensorSliceDataset")
        self._arrays = arrays

    def batch(self, batch_size, drop_remainder=False, *args, **kw):
        plain = super().batch(batch_size, drop_remainder, *args, **kw)
        n, arrays = int(batch_size), self._arrays

        def make():
            return (
                tree.map_structure(lambda a, i=i: a[i * n : (i + 1) * n], arrays)
                for i in range(plain._cardinality)
            )

        plain._make = make
        return plain


class _Iterator:
    def __init__(self, elements):
        self._elements = iter(elements)

    def __iter__(self):
        return self

    def __next__(self):
        return _tensors(next(self._elements))

    def get_next(self):
        try:
            return next(self)
        except StopIteration:
            raise errors.OutOfRangeError(
                None, "IteratorGetNext", "End of sequence [Op:IteratorGetNext] name: "
            ) from None


class Options:
    """Taken and kept: datasets are read in order, on one thread."""

    def __init__(self):
        self.deterministic = True


class experimental:
    """tf.data.experimental: the older names."""

    AUTOTUNE = AUTOTUNE
    INFINITE_CARDINALITY = INFINITE_CARDINALITY
    UNKNOWN_CARDINALITY = UNKNOWN_CARDINALITY

    @staticmethod
    def cardinality(dataset):
        return dataset.cardinality()


def _rejoined(structure, parts):
    """The structure of datasets with their elements (themselves structures) in the places."""
    parts = iter(parts)

    def fill(x):
        if isinstance(x, Dataset):
            return next(parts)
        if isinstance(x, dict):
            return {k: fill(x[k]) for k in sorted(x)}
        return type(x)(fill(v) for v in x)

    return fill(structure)


def _inner(map_func, element):
    made = _call(map_func, _tensors(element))
    if not isinstance(made, Dataset):
        raise TypeError(
            f"The `map_func` argument must return a `Dataset` object. Got {type(made).__name__!r}."
        )
    return made


def _window(elements, whole):
    """A window: of each part of its elements a dataset."""
    if not isinstance(elements[0], (tuple, dict)):
        return Dataset(lambda: iter(elements), len(elements), lambda: whole.element_spec)
    return tree.map_structure(
        lambda *parts: Dataset(lambda: iter(parts), len(parts), _spec(parts[0])), *elements
    )


__getattr__, __dir__ = _module_hooks(globals())
