"""Strings on the host, for Keras's layers of words: what those layers ask of TensorFlow, by NumPy.

StringLookup, IntegerLookup, TextVectorization, Hashing and HashedCrossing are written in Keras
against a few functions of TensorFlow, whatever the backend. simt.keras gives them this module in
TensorFlow's place. Words are bytes in arrays of objects; tables are dictionaries.
"""

import contextlib
import os
import re
from types import SimpleNamespace

import numpy as np

from simt.keras_backend import core, fingerprints
from simt.keras_backend import nn as _nn
from simt.keras_backend import numpy as _numpy

available = True


class _Dtype:
    """A dtype as TensorFlow has it: equal to its name."""

    def __init__(self, name):
        self.name = name
        self.numpy = np.dtype(object if name == "string" else name)
        self.is_integer = self.numpy.kind in "iu"
        self.is_floating = self.numpy.kind == "f"
        self.max = np.iinfo(self.numpy).max if self.is_integer else None

    def __eq__(self, other):
        return self.name == getattr(other, "name", other)

    def __hash__(self):
        return hash(self.name)

    def __repr__(self):
        return f"dtype {self.name}"


def as_dtype(dtype):
    if isinstance(dtype, _Dtype):
        return dtype
    return _Dtype(dtype if isinstance(dtype, str) else np.dtype(dtype).name)


string = as_dtype("string")


class _Shape(tuple):
    rank = property(len)

    def as_list(self):
        return list(self)


class Tensor:
    """Words or numbers on the host."""

    def __init__(self, values):
        self._values = values
        self.shape = _Shape(values.shape)
        self.dtype = string if values.dtype == object else as_dtype(values.dtype)

    def numpy(self):
        return self._values if self.shape else self._values[()]

    def set_shape(self, shape):
        pass

    def __array__(self, dtype=None, copy=None):
        return self._values if dtype is None else self._values.astype(dtype)

    def __getitem__(self, key):
        return _wrap(self._values[key])

    def __iter__(self):
        return (_wrap(x) for x in self._values)

    def __len__(self):
        return len(self._values)

    def __bool__(self):
        return bool(self._values)

    def __index__(self):
        return int(self._values)

    __int__ = __index__

    def __eq__(self, other):
        return _wrap(self._values == _values(other))

    __hash__ = None

    def __add__(self, other):
        return _wrap(self._values + _values(other))

    __radd__ = __add__

    def __sub__(self, other):
        return _wrap(self._values - _values(other))

    def __rsub__(self, other):
        return _wrap(_values(other) - self._values)

    def __truediv__(self, other):
        return _wrap(self._values / _values(other))

    def __rtruediv__(self, other):
        return _wrap(_values(other) / self._values)


class RaggedTensor:
    """Rows of unequal length: the words of all rows, and how many each row has."""

    def __init__(self, flat_values, lengths):
        self.flat_values = flat_values
        self.lengths = lengths
        self.dtype = flat_values.dtype
        self.shape = _Shape((*lengths.shape, None))

    def nrows(self):
        return len(self.lengths)

    def rows(self):
        ends = np.cumsum(self.lengths.reshape(-1))
        return np.split(_values(self.flat_values), ends[:-1]) if ends.size else []

    def to_tensor(self, default_value, shape):
        size = shape[-1]
        if size is None:
            size = int(self.lengths.max(initial=0))
        out = np.full((self.lengths.size, size), default_value, self.dtype.numpy)
        for line, row in zip(out, self.rows(), strict=True):
            line[: len(row)] = row[:size]
        return _wrap(out.reshape(*self.lengths.shape, size))


class SparseTensor:
    """Keras asks whether a tensor is one; none is."""


class Variable:
    def __init__(self, value, dtype=None, trainable=False):
        self._value = convert_to_tensor(value, dtype)

    def value(self):
        return self._value

    def numpy(self):
        return self._value.numpy()

    def assign(self, value):
        self._value = convert_to_tensor(value, self._value.dtype)

    def assign_add(self, value):
        self.assign(self._value + value)

    def __array__(self, dtype=None, copy=None):
        return self._value.__array__(dtype)

    def __getitem__(self, key):
        return self._value[key]

    def __radd__(self, other):
        return other + self._value

    def __truediv__(self, other):
        return self._value / other


def _values(x):
    return x._values if isinstance(x, Tensor) else np.asarray(x)


def _wrap(x):
    return Tensor(x if isinstance(x, np.ndarray) else np.asarray(x))


def _words(x):
    """An array of objects, each the bytes of a word."""
    flat = [w.encode() if isinstance(w, str) else bytes(w) for w in np.asarray(x).reshape(-1)]
    out = np.empty(len(flat), object)
    out[:] = flat
    return out.reshape(np.shape(x))


def convert_to_tensor(x, dtype=None):
    if isinstance(x, Variable):
        x = x.value()
    if not isinstance(x, (Tensor, RaggedTensor)):
        values = np.asarray(x)
        if values.dtype.kind in "USO" and (values.size or dtype == "string"):
            values = _words(values)
        elif values.dtype == np.float64 and not hasattr(x, "dtype"):
            values = values.astype(np.float32)
        elif values.dtype == np.int64 and not hasattr(x, "dtype") and dtype is None:
            values = values.astype(np.int32)
        x = Tensor(values)
    return x if dtype is None else cast(x, dtype)


constant = convert_to_tensor


def cast(x, dtype):
    dtype = as_dtype(dtype)
    if isinstance(x, RaggedTensor):
        return RaggedTensor(cast(x.flat_values, dtype), x.lengths)
    values = _values(x)
    if (values.dtype == object) != (dtype == "string") and values.size:
        name = "string" if values.dtype == object else values.dtype
        raise TypeError(f"Cannot convert values of dtype {name} to dtype {dtype.name}")
    return Tensor(values.astype(dtype.numpy))


def ensure_tensor(x, dtype=None):
    x = x if isinstance(x, (Tensor, RaggedTensor)) else convert_to_tensor(x, dtype)
    return x if dtype is None or x.dtype == dtype else cast(x, dtype)


def is_tensor(x):
    return isinstance(x, (Tensor, RaggedTensor, Variable))


def executing_eagerly():
    return True


@contextlib.contextmanager
def _nothing(*args):
    yield


device = init_scope = control_dependencies = _nothing


def identity(x):
    return x


def equal(x, y):
    return _wrap(np.asarray(_values(x) == _values(convert_to_tensor(y))))


def where(condition, x=None, y=None):
    if x is None:
        return _wrap(np.argwhere(_values(condition)))
    return _wrap(np.where(_values(condition), _values(x), _values(y)))


def add(x, y):
    return x + y


def zeros_like(x, dtype=None):
    return _wrap(np.zeros(x.shape, as_dtype(dtype or x.dtype).numpy))


def ones_like(x):
    return _wrap(np.ones(x.shape, x.dtype.numpy))


def size(x):
    return _wrap(np.int32(_values(x).size))


def shape(x, out_type="int32"):
    return x.shape if isinstance(x, RaggedTensor) else _wrap(np.array(x.shape, out_type))


def reshape(x, shape):
    return _wrap(_values(x).reshape(shape))


def expand_dims(x, axis):
    return _wrap(np.expand_dims(_values(x), axis))


def squeeze(x, axis):
    return _wrap(np.squeeze(_values(x), axis))


def concat(parts, axis):
    return _wrap(np.concatenate([_values(x) for x in parts], axis))


def gather(x, indices):
    return _wrap(_values(convert_to_tensor(x))[_values(indices)])


def gather_nd(x, indices):
    return _wrap(_values(x)[tuple(_values(indices).T)])


def pad(x, paddings, constant_values=0):
    widths = [tuple(int(n) for n in pair) for pair in paddings]
    return _wrap(np.pad(_values(x), widths, constant_values=_values(constant_values)))


def required_space_to_batch_paddings(shape, blocks):
    """As much behind each axis as makes its size that of the block."""
    after = _values(blocks) - _values(shape)
    return _wrap(np.stack([np.zeros_like(after), np.maximum(after, 0)], 1)), None


def range(start, limit, dtype):
    return _wrap(np.arange(int(start), int(limit), dtype=dtype))


def reduce_mean(x):
    return _wrap(np.mean(_values(x)))


def unique(x):
    """The values in the order in which they first come, and which of them each one is."""
    values, at, counts = unique_with_counts(x, "int32")
    return values, at


def unique_with_counts(x, out_idx):
    found, at, counts = {}, [], []
    for word in _values(x).tolist():
        i = found.setdefault(word, len(found))
        if i == len(counts):
            counts.append(0)
        counts[i] += 1
        at.append(i)
    values = np.empty(len(found), _values(x).dtype)
    values[:] = list(found)
    return _wrap(values), _wrap(np.array(at, out_idx)), _wrap(np.array(counts, out_idx))


def map_fn(fn, rows):
    """Of the rows of a ragged tensor."""
    made = [_values(fn(_wrap(row))) for row in rows.rows()]
    lengths = np.array([len(row) for row in made], int)
    return RaggedTensor(_wrap(np.concatenate(made)), lengths)


def Assert(condition, data):
    if not condition:
        raise ValueError(data[0])


def as_string(x):
    return _wrap(_words(np.array([str(n) for n in _values(x).reshape(-1)])).reshape(x.shape))


# ---- tf.strings


def _map_words(fn, x):
    if isinstance(x, RaggedTensor):
        return RaggedTensor(_map_words(fn, x.flat_values), x.lengths)
    made = np.empty(x.shape, object)
    made.reshape(-1)[:] = [fn(w) for w in _values(x).reshape(-1)]
    return _wrap(made)


def _lower(x):
    return _map_words(bytes.lower, convert_to_tensor(x, "string"))


def _regex_replace(x, pattern, rewrite):
    found = re.compile(pattern.encode())
    return _map_words(lambda w: found.sub(rewrite.encode(), w), convert_to_tensor(x, "string"))


def _pieces(fn, x):
    rows = [fn(w) for w in _values(x).reshape(-1)]
    flat = np.empty(sum(len(row) for row in rows), object)
    flat[:] = [piece for row in rows for piece in row]
    lengths = np.array([len(row) for row in rows], int).reshape(x.shape)
    return RaggedTensor(_wrap(flat), lengths) if x.shape else _wrap(flat)


def _split(x, sep=None):
    sep = sep.encode() if isinstance(sep, str) else sep
    return _pieces(lambda w: w.split(sep or None), convert_to_tensor(x, "string"))


def _unicode_split(x, encoding):
    def letters(word):
        return [c.encode(encoding) for c in word.decode(encoding, "replace")]

    return _pieces(letters, convert_to_tensor(x, "string"))


def _ngrams(x, ngram_width, separator):
    """Runs of neighbouring words of each row, the lengths in the order given."""
    widths = (ngram_width,) if isinstance(ngram_width, int) else ngram_width
    joint = separator.encode()

    def runs(row):
        return [
            joint.join(row[i : i + n]) for n in widths for i in np.arange(len(row) - n + 1).tolist()
        ]

    if isinstance(x, RaggedTensor):
        rows = [runs(list(row)) for row in x.rows()]
        lengths = np.array([len(row) for row in rows], int).reshape(x.lengths.shape)
        return RaggedTensor(_wrap(_words_of(w for row in rows for w in row)), lengths)
    values = _values(x)
    rows = [runs(list(row)) for row in values.reshape(-1, values.shape[-1])]
    return _wrap(_words_of(w for row in rows for w in row).reshape(*values.shape[:-1], -1))


def _words_of(words):
    words = list(words)
    out = np.empty(len(words), object)
    out[:] = words
    return out


def _buckets(fn, x, num_buckets):
    made = [fn(w) % num_buckets for w in _values(x).reshape(-1)]
    return _wrap(np.array(made, np.int64).reshape(x.shape))


def _to_hash_bucket_fast(x, num_buckets, name=None):
    return _buckets(fingerprints.fingerprint, x, num_buckets)


def _to_hash_bucket_strong(x, num_buckets, key, name=None):
    return _buckets(lambda w: fingerprints.sip(key, w), x, num_buckets)


strings = SimpleNamespace(
    as_string=as_string,
    format=lambda template, inputs: template.format(*(_values(x).tolist() for x in inputs)),
    lower=_lower,
    ngrams=_ngrams,
    regex_replace=_regex_replace,
    split=_split,
    to_hash_bucket_fast=_to_hash_bucket_fast,
    to_hash_bucket_strong=_to_hash_bucket_strong,
    unicode_split=_unicode_split,
)


# ---- tf.lookup: tables


class _KeyValues:
    """Pairs for a table."""

    def __init__(self, keys, values, key_dtype, value_dtype):
        self._key_dtype, self._value_dtype = key_dtype, value_dtype
        self.pairs = (
            convert_to_tensor(keys, key_dtype),
            convert_to_tensor(values, value_dtype),
        )


class _FileLines:
    """Pairs for a table from the lines of a file: a line and its number, either way round."""

    def __init__(
        self, filename, key_dtype, key_index, value_dtype, value_index, value_index_offset=0
    ):
        with open(filename, "rb") as file:
            lines = [line.rstrip(b"\r\n") for line in file]
        numbers = np.arange(len(lines))
        whole = _words_of(lines)
        if as_dtype(key_dtype if key_index == "line" else value_dtype).is_integer:
            whole = np.array([int(line) for line in lines], np.int64)
        if value_index == "number":
            numbers = numbers + value_index_offset
        made = {"line": whole, "number": numbers}
        self._key_dtype, self._value_dtype = key_dtype, value_dtype
        self.pairs = (
            convert_to_tensor(made[key_index], key_dtype),
            convert_to_tensor(made[value_index], value_dtype),
        )


class _Table:
    """A dictionary with a value for what is not in it."""

    def __init__(self, key_dtype, value_dtype, default_value):
        self._key_dtype, self._value_dtype = as_dtype(key_dtype), as_dtype(value_dtype)
        self._default = convert_to_tensor(default_value, value_dtype).numpy()
        self._pairs = {}

    def size(self):
        return _wrap(np.int64(len(self._pairs)))

    def lookup(self, keys):
        if isinstance(keys, RaggedTensor):
            return RaggedTensor(self.lookup(keys.flat_values), keys.lengths)
        get, default = self._pairs.get, self._default
        out = np.empty(keys.shape, self._value_dtype.numpy)
        out.reshape(-1)[:] = [get(k, default) for k in _values(keys).reshape(-1).tolist()]
        return _wrap(out)

    def insert(self, keys, values):
        keys, values = _values(keys).reshape(-1).tolist(), _values(values).reshape(-1).tolist()
        self._pairs.update(zip(keys, values, strict=True))

    def remove(self, keys):
        for key in _values(keys).reshape(-1).tolist():
            self._pairs.pop(key, None)

    def export(self):
        keys = np.empty(len(self._pairs), self._key_dtype.numpy)
        values = np.empty(len(self._pairs), self._value_dtype.numpy)
        keys[:], values[:] = list(self._pairs), list(self._pairs.values())
        return _wrap(keys), _wrap(values)


def _static_table(initializer, default_value):
    table = _Table(initializer._key_dtype, initializer._value_dtype, default_value)
    pairs = getattr(initializer, "pairs", None)
    if pairs is not None:
        table.insert(*pairs)
    return table


lookup = SimpleNamespace(
    KeyValueTensorInitializer=_KeyValues,
    TextFileInitializer=_FileLines,
    TextFileIndex=SimpleNamespace(LINE_NUMBER="number", WHOLE_LINE="line"),
    StaticHashTable=_static_table,
    experimental=SimpleNamespace(MutableHashTable=_Table),
)


# ---- the rest


def _cross_hashed(inputs, num_buckets):
    columns = [_values(x).reshape(-1).tolist() for x in inputs]
    made = [fingerprints.cross(row) % num_buckets for row in zip(*columns, strict=True)]
    return _wrap(np.array(made, np.int64).reshape(inputs[0].shape))


compat = SimpleNamespace(as_text=lambda x, encoding: x.decode(encoding))
data = SimpleNamespace(Dataset=())
io = SimpleNamespace(gfile=SimpleNamespace(exists=os.path.exists, join=os.path.join))
math = SimpleNamespace(
    floormod=lambda x, y: _wrap(_values(x) % y), log=lambda x: _wrap(np.log(_values(x)))
)
ragged = SimpleNamespace(map_flat_values=lambda fn, x: RaggedTensor(fn(x.flat_values), x.lengths))
sparse = SimpleNamespace(cross_hashed=_cross_hashed, to_dense=identity)


# ---- keras.src.backend.tensorflow: what makes numbers of words is simt's, the rest stays here


def _dense(x):
    """Rows of equal length, as a tensor; -1 behind the shorter ones, which no class has."""
    return core.convert_to_tensor(x.to_tensor(-1, x.shape) if isinstance(x, RaggedTensor) else x)


nn = SimpleNamespace(
    multi_hot=lambda x, *args, **kwargs: _nn.multi_hot(_dense(x), *args, **kwargs),
    one_hot=lambda x, *args, **kwargs: _nn.one_hot(_dense(x), *args, **kwargs),
)
numpy = SimpleNamespace(
    expand_dims=expand_dims,
    multiply=_numpy.multiply,
    reshape=reshape,
    squeeze=squeeze,
    sum=_numpy.sum,
)
