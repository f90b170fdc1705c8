"""Tensors, variables, control flow: what everything else of the backend stands on.

A value of a variable never changes in place: assigning puts another tensor there. So a tensor read
from a variable is what the variable was at that moment, and the tape never sees a change. Tensors
of variables want gradients only while a training step or a gradient tape is recording
(`recording`): outside, operations leave nothing on the tape and results go to NumPy as they are.
"""

import builtins
import contextlib
import threading

import numpy as np
from keras.src import tree
from keras.src.backend.common import KerasVariable, global_state
from keras.src.backend.common import dtypes as keras_dtypes
from keras.src.backend.common.keras_tensor import KerasTensor
from keras.src.backend.common.stateless_scope import (
    StatelessScope,
    get_stateless_scope,
    in_stateless_scope,
)
from keras.src.backend.common.symbolic_scope import SymbolicScope, in_symbolic_scope
from keras.src.backend.common.variables import standardize_dtype
from keras.src.backend.config import floatx

from simt._core import torch as C

SUPPORTS_SPARSE_TENSORS = False
SUPPORTS_RAGGED_TENSORS = False
SUPPORTS_COMPLEX_DTYPES = False
# Callbacks run in the loop: threads of theirs would take turns with it for no gain.
IS_THREAD_SAFE = False

Tensor = C.Tensor

DTYPES = {
    name: getattr(C, name)
    for name in (
        "bool",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float16",
        "bfloat16",
        "float32",
        "float64",
    )
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
FLOATS = frozenset(DTYPES[n] for n in ("float16", "bfloat16", "float32", "float64"))
# Keras asks for the name of a dtype at every turn: its own table answers at once.
keras_dtypes.PYTHON_DTYPES_MAP.update(NAMES)


def native(dtype):
    """The tensor dtype of whatever Keras takes for one."""
    if dtype in NAMES:
        return dtype
    name = standardize_dtype(dtype)
    found = DTYPES.get(name)
    if found is None:
        raise ValueError(f"dtype {name}: not in simt yet; nearest is {_nearest_dtype(name)}")
    return found


def _nearest_dtype(name):
    if name.startswith("float8"):
        return "float16"
    if name.startswith("complex"):
        return "float32 (a pair of real and imaginary part)"
    return "int8" if "int" in name else "a NumPy array of strings"


_results = {}


def result_dtype(*kinds):
    """Keras's common dtype of tensor dtypes, names and Python's int, float, bool; as ours."""
    key = (kinds, floatx())
    found = _results.get(key)
    if found is None:
        found = _results[key] = native(keras_dtypes.result_type(*kinds))
    return found


# ---- devices: one, the CPU


@contextlib.contextmanager
def device_scope(device_name):
    """keras.device: names are checked, all name the one device there is."""
    if not isinstance(device_name, str):
        raise ValueError(
            "Invalid value for argument `device_name`. "
            "Expected a string like 'gpu:0' or 'cpu'. "
            f"Received: device_name='{device_name}'"
        )
    before = global_state.get_global_attribute("simt_device", None)
    global_state.set_global_attribute("simt_device", device_name.lower())
    try:
        yield device_name
    finally:
        global_state.set_global_attribute("simt_device", before)


# ---- variables


class _Recording(threading.local):
    tapes = ()  # of who is recording: each has watch(variable)
    session = None  # of the step that is being captured (captured.py)


_state = _Recording()


@contextlib.contextmanager
def recording(tape):
    """Inside, trainable variables that are read are shown to tape.watch, which makes their tensors
    want gradients."""
    before = _state.tapes
    _state.tapes = (*before, tape)
    try:
        yield tape
    finally:
        _state.tapes = before


@contextlib.contextmanager
def capturing(session):
    """Inside, session.use is told of each variable that is read or written, .made of new ones."""
    before = _state.session
    _state.session = session
    try:
        yield session
    finally:
        _state.session = before


class Variable(KerasVariable):
    """A name for a tensor that changes."""

    def _initialize(self, value):
        if _state.session is not None:
            _state.session.made(self)
        self._value = convert_to_tensor(value, dtype=self._dtype).detach()

    def _direct_assign(self, value):
        value = value.detach()
        if _state.session is not None:
            _state.session.use(self)
        for tape in _state.tapes:
            tape.assigned(self, value)
        self._value = value

    def _convert_to_tensor(self, value, dtype=None):
        return convert_to_tensor(value, dtype=dtype)

    @property
    def value(self):
        value = None
        if in_stateless_scope():
            value = get_stateless_scope().get_current_value(self)
        if value is None:
            if _state.session is not None and self._value is not None:
                _state.session.use(self)
            value = self._value
            if value is None:
                # Used while shapes are inferred only.
                value = self._initializer(self._shape, dtype=self._dtype)
            elif _state.tapes and self._trainable:
                for tape in _state.tapes:
                    tape.watch_variable(self)
        return self._maybe_autocast(value)

    def __array__(self, dtype=None, copy=None):
        value = convert_to_numpy(self.value)
        return value if dtype is None else value.astype(dtype)

    def __eq__(self, other):
        from simt.keras_backend import numpy

        try:
            return numpy.equal(self.value, other)
        except (TypeError, ValueError, RuntimeError):
            return False

    __hash__ = KerasVariable.__hash__


# ---- conversions


class View:
    """A tensor as another face shows it (simt.tensorflow's): the tensor itself is in _tensor."""

    __slots__ = ("_tensor",)


def without_views(structure):
    """The structure with the tensors themselves where views of them are."""
    return tree.map_structure(lambda x: x._tensor if isinstance(x, View) else x, structure)


def convert_to_tensor(x, dtype=None, sparse=None, ragged=None):
    if sparse:
        raise ValueError("`sparse=True` is not supported with the simt backend")
    if ragged:
        raise ValueError("`ragged=True` is not supported with the simt backend")
    if isinstance(x, KerasVariable):
        x = x.value
    if isinstance(x, View):
        x = x._tensor
    if isinstance(x, Tensor):
        if dtype is None:
            return x
        dtype = native(dtype)
        return x if x.dtype is dtype else x.to(dtype)
    if dtype is not None:
        dtype = native(dtype)
    if isinstance(x, (bool, int, float)):
        return C.tensor(x, dtype=dtype or _number_dtype(x))
    if isinstance(x, (list, tuple)):
        return _from_list(x, dtype)
    return _from_array(np.asarray(x), dtype)


def _number_dtype(x):
    if isinstance(x, bool):
        return C.bool
    if isinstance(x, int):
        return C.int32 if -(2**31) <= x < 2**31 else C.int64
    return native(floatx())


def _from_list(x, dtype):
    flat = tree.flatten(x)
    if any(isinstance(item, (Tensor, KerasVariable, View)) for item in flat):
        from simt.keras_backend import numpy

        return numpy.stack([convert_to_tensor(item, dtype) for item in x])
    if any(isinstance(item, KerasTensor) for item in flat):
        np.asarray(next(item for item in flat if isinstance(item, KerasTensor)))  # says why not
    if dtype is None:
        kinds = {getattr(item, "dtype", type(item)) for item in flat}
        if kinds <= {int, float, bool}:
            large = int in kinds and any(
                type(item) is int and not -(2**31) <= item < 2**31 for item in flat
            )
            dtype = result_dtype(*kinds, *(["int64"] if large else []))
        elif all(kind in (int, float, bool) or hasattr(kind, "name") for kind in kinds):
            dtype = result_dtype(*(k if isinstance(k, type) else k.name for k in kinds))
    return _from_array(np.asarray(x), dtype)


def _from_array(x, dtype):
    name = x.dtype.name
    if name == "bfloat16":
        made = C._from_bytes(x.tobytes(), C.bfloat16, x.shape)
    elif name in DTYPES:
        made = C.tensor(x)
    else:
        raise ValueError(f"dtype {name}: not in simt yet; nearest is {_nearest_dtype(name)}")
    return made if dtype is None or made.dtype is dtype else made.to(dtype)


def convert_to_numpy(x):
    """A NumPy array of its own."""
    if isinstance(x, (KerasVariable, View)):
        x = convert_to_tensor(x)
    if isinstance(x, Tensor):
        x = x.detach()
        if x.dtype is C.bfloat16:
            import ml_dtypes

            return np.frombuffer(bytearray(x._to_bytes()), ml_dtypes.bfloat16).reshape(x.shape)
        return x.clone().numpy()
    if isinstance(x, (list, tuple)):
        return np.array([convert_to_numpy(item) for item in x])
    return np.array(x)


def is_tensor(x):
    return isinstance(x, (Tensor, View))


def shape(x):
    return tuple(x.shape)


def cast(x, dtype):
    return convert_to_tensor(x, dtype)


# ---- shapes of what is not computed


def compute_output_spec(fn, *args, **kwargs):
    """The KerasTensors that fn would give: it is run on tensors that nobody looks at, and so
    nothing is computed. Unknown sizes are tried with two values; what differs depends on them."""
    flat = tree.flatten((args, kwargs))
    unknown = any(isinstance(x, KerasTensor) and None in x.shape for x in flat)
    before = C._set_grad_enabled(False)
    try:
        with StatelessScope(), SymbolicScope():
            outputs = _try_shapes(fn, args, kwargs, 83)
            others = _try_shapes(fn, args, kwargs, 89) if unknown else outputs
    finally:
        C._set_grad_enabled(before)

    def spec(x, other):
        if not is_tensor(x):
            return x
        x, other = convert_to_tensor(x), convert_to_tensor(other)
        sizes = zip(x.shape, other.shape, strict=True)
        return KerasTensor([n if n == m else None for n, m in sizes], NAMES[x.dtype])

    return tree.map_structure(spec, outputs, others)


def _try_shapes(fn, args, kwargs, size):
    def placeholder(x):
        if not isinstance(x, KerasTensor):
            return x
        sizes = [size if n is None else n for n in x.shape]
        return C._full("ones", sizes, 1, native(x.dtype), "cpu", False)

    args, kwargs = tree.map_structure(placeholder, (args, kwargs))
    return fn(*args, **kwargs)


# ---- control flow: Python's own


def cond(pred, true_fn, false_fn):
    if in_symbolic_scope():
        return true_fn()
    if _state.session is not None and isinstance(pred, Tensor):
        return _state.session.cond(pred, true_fn, false_fn)
    return true_fn() if pred else false_fn()


def switch(index, branches, *operands):
    index = builtins.min(builtins.max(int(index), 0), len(branches) - 1)
    return branches[index](*operands)


def while_loop(cond, body, loop_vars, maximum_iterations=None):
    many = isinstance(loop_vars, (tuple, list))
    values = tree.map_structure(convert_to_tensor, tuple(loop_vars) if many else (loop_vars,))
    count = 0
    while (maximum_iterations is None or count < maximum_iterations) and cond(*values):
        made = body(*values)
        values = tuple(made) if isinstance(made, (list, tuple)) else (made,)
        count += 1
    return values if many else values[0]


def fori_loop(lower, upper, body_fun, init_val):
    for i in range(int(lower), int(upper)):
        init_val = body_fun(i, init_val)
    return init_val


def vectorized_map(function, elements):
    flat = [convert_to_tensor(x) for x in tree.flatten(elements)]
    made = [
        function(tree.pack_sequence_as(elements, [x[i] for x in flat]))
        for i in range(flat[0].shape[0])
    ]
    return tree.map_structure(lambda *parts: C.stack(builtins.list(parts)), *made)


def map(f, xs):
    return scan(lambda carry, x: (carry, f(x)), (), xs)[1]


def scan(f, init, xs=None, length=None, reverse=False, unroll=1):
    if not callable(f):
        raise TypeError(f"`f` should be a callable. Received: f={f}")
    if not isinstance(unroll, bool) and (not isinstance(unroll, int) or unroll < 1):
        raise ValueError(
            f"`unroll` must be an positive integer or boolean. Received: unroll={unroll}"
        )
    if xs is None and length is None:
        raise ValueError("Got no `xs` to scan over and `length` not provided.")
    flat = [] if xs is None else [convert_to_tensor(x) for x in tree.flatten(xs)]
    count = int(length) if length is not None else flat[0].shape[0]
    carry = tree.map_structure(convert_to_tensor, init)
    nothing = tree.map_structure(C.zeros_like if hasattr(C, "zeros_like") else _zeros_like, carry)
    made = [None] * count
    for i in reversed(range(count)) if reverse else range(count):
        x = None if xs is None else tree.pack_sequence_as(xs, [t[i] for t in flat])
        carry, y = f(carry, x)
        made[i] = nothing if y is None else y
    return carry, tree.map_structure(lambda *parts: C.stack(builtins.list(parts)), *made)


def _zeros_like(x):
    return C._full("zeros", x.shape, 0, x.dtype, "cpu", False)


def associative_scan(f, elems, reverse=False, axis=0):
    """Every prefix by doubling: after k rounds an element has the 2**k before it."""
    if not callable(f):
        raise TypeError(f"`f` should be a callable. Received: f={f}")
    flat = [convert_to_tensor(x) for x in tree.flatten(elems)]
    sizes = [x.shape[axis] for x in flat]
    if len(set(sizes)) != 1:
        raise ValueError(
            "Array inputs to associative_scan must have the same first dimension. "
            f"(saw: {[tuple(x.shape) for x in flat]})"
        )
    if reverse:
        flat = [C.flip(x, (axis,)) for x in flat]
    step = 1
    while step < sizes[0]:
        rest = sizes[0] - step
        before = [x.narrow(axis, 0, rest) for x in flat]
        after = [x.narrow(axis, step, rest) for x in flat]
        both = f(tree.pack_sequence_as(elems, before), tree.pack_sequence_as(elems, after))
        flat = [
            C.cat([x.narrow(axis, 0, step), convert_to_tensor(y)], axis)
            for x, y in zip(flat, tree.flatten(both), strict=True)
        ]
        step *= 2
    if reverse:
        flat = [C.flip(x, (axis,)) for x in flat]
    return tree.pack_sequence_as(elems, flat)


# ---- parts of tensors


def scatter(indices, values, shape):
    values = convert_to_tensor(values)
    zeros = C._full("zeros", tuple(shape), 0, values.dtype, "cpu", False)
    indices = convert_to_tensor(indices, "int64")
    depth = indices.shape[-1]
    values = values.reshape(-1, *tuple(shape)[depth:])
    return _add_at(zeros, indices.reshape(-1, depth), values)


def _add_at(x, indices, values):
    """x with values added at indices, rows of the leading coordinates; one may come twice."""
    depth = indices.shape[1]
    flat = C._full("zeros", (indices.shape[0],), 0, C.int64, "cpu", False)
    for at, size in zip(indices.unbind(1), x.shape[:depth], strict=True):
        flat = flat * size + C.where(at < 0, at + size, at)
    rows = 1
    for size in x.shape[:depth]:
        rows *= size
    dtype = x.dtype
    if dtype is C.bool:
        x, values = x.to(C.int32), values.to(C.int32)
    out = x.reshape(rows, -1).index_add(0, flat, values.reshape(flat.shape[0], -1))
    return out.reshape(x.shape).to(dtype)


def scatter_update(inputs, indices, updates, reduction=None):
    inputs = convert_to_tensor(inputs)
    indices = convert_to_tensor(indices, "int64")
    updates = convert_to_tensor(updates, inputs.dtype)
    if reduction == "add":
        return _add_at(inputs, indices, updates)
    if reduction is None:
        out = inputs.clone()
        out[tuple(indices.unbind(-1))] = updates
        return out
    combine = {"max": C.maximum, "min": C.minimum, "mul": C.mul}.get(reduction)
    if combine is None:
        raise ValueError(f"Unsupported reduction: {reduction}")
    out = inputs.clone()
    for i in range(indices.shape[0]):
        place = tuple(int(n) for n in indices[i].tolist())
        out[place] = combine(out[place], updates[i])
    return out


def slice(inputs, start_indices, shape):
    inputs = convert_to_tensor(inputs)
    if len(start_indices) != len(shape):
        raise ValueError(
            "Length of `start_indices` must match length of `shape`. "
            f"Received: start_indices={start_indices}, shape={shape}"
        )
    starts = [int(s) for s in start_indices]
    return inputs[tuple(builtins.slice(s, s + int(n)) for s, n in zip(starts, shape, strict=True))]


def slice_update(inputs, start_indices, updates):
    out = convert_to_tensor(inputs).clone()
    updates = convert_to_tensor(updates, out.dtype)
    starts = [int(s) for s in start_indices]
    where = zip(starts, updates.shape, strict=True)
    out[tuple(builtins.slice(s, s + n) for s, n in where)] = updates
    return out


def stop_gradient(variable):
    return convert_to_tensor(variable).detach()


def unstack(x, num=None, axis=0):
    return convert_to_tensor(x).unbind(axis)


def random_seed_dtype():
    return "uint32"


# ---- gradients written by the user


def remat(f):
    """f: its values are kept rather than computed again in the backward pass."""
    return f


class custom_gradient:
    """A function that returns its value and the function of its gradient."""

    def __init__(self, forward_fn):
        self.forward_fn = forward_fn

    def __call__(self, *args, **kwargs):
        from simt.torch.autograd.function import Function

        forward_fn = self.forward_fn
        args = [x.value if isinstance(x, KerasVariable) else x for x in args]

        class Custom(Function):
            @staticmethod
            def forward(ctx, *inputs):
                made = forward_fn(*inputs, **kwargs)
                ctx.grad_fn = None
                if isinstance(made, tuple) and len(made) == 2 and callable(made[1]):
                    made, ctx.grad_fn = made
                ctx.inputs = inputs
                return made

            @staticmethod
            def backward(ctx, *upstream):
                if ctx.grad_fn is None:
                    raise ValueError("grad_fn must be provided for custom gradient")
                upstream = upstream[0] if len(upstream) == 1 else upstream
                grads = ctx.grad_fn(*ctx.inputs, upstream=upstream)
                return grads if isinstance(grads, tuple) else (grads,)

        return Custom.apply(*args)
