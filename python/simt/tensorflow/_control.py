"""Control flow, which is Python's own, and tf.function."""

import functools
import inspect
import sys

import numpy as np
from keras.src import tree

from simt._core import torch as C
from simt.tensorflow import errors
from simt.tensorflow._tensor import convert, is_tensor, shown
from simt.tensorflow._types import TensorSpec, as_dtype


def _tensors(x):
    return tree.map_structure(lambda v: shown(convert(v)), x)


def cond(pred, true_fn=None, false_fn=None, name=None):
    for name, fn in (("true_fn", true_fn), ("false_fn", false_fn)):
        if not callable(fn):
            raise TypeError(f"'{name}' must be callable.")
    return true_fn() if pred else false_fn()


def case(pred_fn_pairs, default=None, exclusive=False, strict=False, name="case"):
    for pred, fn in pred_fn_pairs:
        if pred:
            return fn()
    if default is None:
        raise errors.InvalidArgumentError(None, None, "None of the conditions evaluated as True.")
    return default()


def switch_case(branch_index, branch_fns, default=None, name="switch_case"):
    branches = dict(branch_fns if _are_pairs(branch_fns) else enumerate(branch_fns))
    last = default or branches[max(branches)]
    return branches.get(int(branch_index), last)()


def _are_pairs(branches):
    return isinstance(branches, dict) or isinstance(branches[0], (tuple, list))


def while_loop(
    cond,
    body,
    loop_vars,
    shape_invariants=None,
    parallel_iterations=10,
    back_prop=True,
    swap_memory=False,
    maximum_iterations=None,
    name=None,
):
    if not callable(cond) or not callable(body):
        raise TypeError(f"'{'body' if callable(cond) else 'cond'}' must be callable.")
    kind, count = type(loop_vars), 0
    values = _tensors(tuple(loop_vars))
    while (maximum_iterations is None or count < maximum_iterations) and cond(*values):
        made = body(*values)
        values = _tensors(tuple(made) if isinstance(made, (list, tuple)) else (made,))
        count += 1
    return list(values) if kind is list else values


def _elements(elems):
    flat = [convert(x) for x in tree.flatten(elems)]
    count = flat[0].shape[0]
    return [tree.pack_sequence_as(elems, [shown(x[i]) for x in flat]) for i in range(count)]


def _stacked(results):
    return tree.map_structure(lambda *parts: shown(C.stack([convert(p) for p in parts])), *results)


def map_fn(
    fn,
    elems,
    dtype=None,
    parallel_iterations=None,
    back_prop=True,
    swap_memory=False,
    infer_shape=True,
    name=None,
    fn_output_signature=None,
):
    return _stacked([fn(e) for e in _elements(elems)])


def vectorized_map(fn, elems, fallback_to_while_loop=True, warn=True):
    return _stacked([fn(e) for e in _elements(elems)])


def _folds(backwards):
    def fold(
        fn,
        elems,
        initializer=None,
        parallel_iterations=10,
        back_prop=True,
        swap_memory=False,
        name=None,
    ):
        items = _elements(elems)[:: -1 if backwards else 1]
        state = items.pop(0) if initializer is None else _tensors(initializer)
        for item in items:
            state = fn(state, item)
        return state

    return fold


foldl, foldr = _folds(False), _folds(True)


def scan(
    fn,
    elems,
    initializer=None,
    parallel_iterations=10,
    back_prop=True,
    swap_memory=False,
    infer_shape=True,
    reverse=False,
    name=None,
):
    items = _elements(elems)[:: -1 if reverse else 1]
    made = [items.pop(0)] if initializer is None else []
    state = made[0] if made else _tensors(initializer)
    for item in items:
        state = fn(state, item)
        made.append(state)
    return _stacked(made[:: -1 if reverse else 1])


def _text(x):
    if is_tensor(x):
        x = convert(x).detach()
        values = shown(x).numpy()
        return np.array2string(values, edgeitems=3, threshold=6) if x.dim() else str(values)
    if isinstance(x, dict):
        return "{" + ", ".join(f"{k!r}: {_text(v)}" for k, v in x.items()) + "}"
    if isinstance(x, (list, tuple)):
        ends = "[]" if isinstance(x, list) else "()"
        return ends[0] + ", ".join(_text(v) for v in x) + ends[1]
    return str(x)


def print_(*inputs, output_stream=None, summarize=3, sep=" ", end="\n", name=None):
    stream = {"file://": sys.stderr}.get(output_stream, output_stream) or sys.stderr
    print(*map(_text, inputs), sep=sep, end=end, file=stream)


def group(*inputs, **kwargs):
    return None


def no_op(name=None):
    return None


def tuple_(tensors, control_inputs=None, name=None):
    return [None if t is None else shown(convert(t)) for t in tensors]


def py_function(func=None, inp=None, Tout=None, name=None):
    return _called(func(*(_tensors(x) for x in inp or ())), Tout)


def numpy_function(func=None, inp=None, Tout=None, stateful=True, name=None):
    return _called(func(*(np.asarray(_tensors(x)) for x in inp or ())), Tout)


def _called(made, kinds):
    if isinstance(kinds, (list, tuple)):
        return [shown(convert(m, as_dtype(k).native)) for m, k in zip(made, kinds, strict=True)]
    return None if kinds is None else shown(convert(made, as_dtype(kinds).native))


# ---- tf.function


class Function:
    """A function as it is: every call is eager. With an input_signature arguments are checked."""

    def __init__(self, function, input_signature):
        functools.update_wrapper(self, function)
        self._python_function = function
        self._input_signature = None if input_signature is None else tuple(input_signature)

    python_function = property(lambda self: self._python_function)
    input_signature = property(lambda self: self._input_signature)

    def __call__(self, *args, **kwargs):
        if self._input_signature is not None:
            args, kwargs = self._bound(args, kwargs)
        return tree.map_structure(_result, self._python_function(*_given(args), **_given(kwargs)))

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        return Function(self._python_function.__get__(instance), self._input_signature)

    def _bound(self, args, kwargs):
        bound = inspect.signature(self._python_function).bind(*args, **kwargs)
        values = list(bound.args)
        for i, spec in enumerate(self._input_signature):
            if i < len(values) and isinstance(spec, TensorSpec):
                values[i] = self._cast(values[i], spec, args, kwargs)
        return values, bound.kwargs

    def _cast(self, value, spec, args, kwargs):
        made = shown(convert(value) if is_tensor(value) else convert(value))
        if not spec.is_compatible_with(made):
            names = list(inspect.signature(self._python_function).parameters)
            signature = ", ".join(
                f"{n}: {s}" for n, s in zip(names, self._input_signature, strict=False)
            )
            raise TypeError(
                "Binding inputs to tf.function failed due to `Can not cast "
                f"{TensorSpec.from_tensor(made)} to {spec}`. Received args: {args} and kwargs: "
                f"{kwargs} for signature: ({signature})."
            )
        return made

    def _not_yet(self, what, near):
        return NotImplementedError(f"tf.function: {what}: not in simt yet; nearest is {near}")

    def get_concrete_function(self, *args, **kwargs):
        raise self._not_yet("get_concrete_function", "calling the function")

    def experimental_get_compiler_ir(self, *args, **kwargs):
        raise self._not_yet("experimental_get_compiler_ir", "SIMT_DUMP=ir")

    def experimental_get_tracing_count(self):
        return 0


def _given(x):
    """Arguments as a traced function sees them: numbers stay, arrays are tensors."""
    return tree.map_structure(lambda v: shown(convert(v)) if isinstance(v, np.ndarray) else v, x)


def _result(x):
    number = isinstance(x, (bool, int, float, np.ndarray, np.generic))
    return shown(convert(x) if number else x)


def function(
    func=None,
    input_signature=None,
    autograph=True,
    jit_compile=None,
    reduce_retracing=False,
    experimental_implements=None,
    experimental_autograph_options=None,
    experimental_attributes=None,
    experimental_relax_shapes=None,
    experimental_compile=None,
    experimental_follow_type_hints=None,
):
    """tf.function: the function itself; every call is eager."""
    if func is None:
        return lambda f: Function(f, input_signature)
    if not callable(func):
        raise TypeError(f"{func!r} is not a callable object")
    return Function(func, input_signature)


class TensorArray:
    """A list of tensors under TensorFlow's names."""

    def __init__(self, dtype, size=None, dynamic_size=None, clear_after_read=None, **options):
        self.dtype, self._dynamic = as_dtype(dtype), bool(dynamic_size)
        self._items = [None] * int(size or 0)

    def write(self, index, value, name=None):
        index = int(index)
        if index >= len(self._items):
            if not self._dynamic:
                raise errors.OutOfRangeError(
                    None,
                    None,
                    f"Tried to write to index {index} but array is not resizeable and size is: "
                    f"{len(self._items)}",
                )
            self._items += [None] * (index + 1 - len(self._items))
        self._items[index] = shown(
            convert(value) if is_tensor(value) else convert(value, self.dtype.native)
        )
        return self

    def read(self, index, name=None):
        index = int(index)
        if not 0 <= index < len(self._items):
            text = f"Tried to read from index {index} but array size is: {len(self._items)}"
            raise errors.OutOfRangeError(None, None, text)
        return self._items[index]

    def stack(self, name=None):
        known = next((x for x in self._items if x is not None), None)
        if known is None:
            return shown(C._full("zeros", (len(self._items),), 0, self.dtype.native, "cpu", False))
        zero = C._full("zeros", tuple(known.shape), 0, self.dtype.native, "cpu", False)
        return _stacked([zero if x is None else x for x in self._items])

    def concat(self, name=None):
        return shown(C.cat([convert(x) for x in self._items], 0))

    def gather(self, indices, name=None):
        return _stacked([self._items[int(i)] for i in convert(indices).tolist()])

    def unstack(self, value, name=None):
        self._items = _elements(value)
        return self

    def size(self, name=None):
        return shown(C.tensor(len(self._items), dtype=C.int32))

    def identity(self):
        return self

    def mark_used(self):
        pass
