"""Functions of tf and of tf.math, tf.linalg, tf.nn, tf.random, tf.image.

Names and argument orders of TensorFlow over the functions of simt's Keras backend.
"""

import keras

from simt._core import torch as C
from simt.keras_backend import core, linalg, nn, random
from simt.keras_backend import image as kimage
from simt.keras_backend import math as kmath
from simt.keras_backend import numpy as knp
from simt.tensorflow._types import as_dtype

Tensor = core.Tensor


def _t(x, dtype=None):
    return core.convert_to_tensor(x, dtype)


def _not_yet(what, near):
    return NotImplementedError(f"{what}: not in simt yet; nearest is {near}")


# ---- creation


def constant(value, dtype=None, shape=None, name="Const"):
    made = _t(value, dtype)
    if shape is None:
        return made
    shape = tuple(shape)
    return made.expand(shape) if made.numel() == 1 else made.reshape(shape)


def convert_to_tensor(value, dtype=None, dtype_hint=None, name=None):
    return _t(value, dtype)


def identity(input, name=None):
    return _t(input).clone()


def cast(x, dtype, name=None):
    return _t(x, dtype)


def zeros(shape, dtype="float32", name=None):
    return knp.zeros(shape, dtype)


def ones(shape, dtype="float32", name=None):
    return knp.ones(shape, dtype)


def fill(dims, value, name=None):
    value = _t(value)
    return value.expand(knp._shape(dims)).clone()


def zeros_like(input, dtype=None, name=None):
    return knp.zeros_like(input, dtype)


def ones_like(input, dtype=None, name=None):
    return knp.ones_like(input, dtype)


def eye(num_rows, num_columns=None, batch_shape=None, dtype="float32", name=None):
    made = knp.eye(num_rows, num_columns, dtype=dtype)
    return made if batch_shape is None else made.expand((*batch_shape, *made.shape)).clone()


def range(start, limit=None, delta=1, dtype=None, name="range"):
    return knp.arange(start, limit, delta, dtype)


def linspace(start, stop, num, name=None, axis=0):
    return knp.linspace(start, stop, num, axis=axis)


class Variable(keras.Variable):
    """tf.Variable: Keras's, made from a value."""

    def __init__(
        self, initial_value=None, trainable=True, validate_shape=True, name=None, dtype=None, **kw
    ):
        value = initial_value() if callable(initial_value) else initial_value
        name = (name or "Variable").replace("/", "_")
        super().__init__(_t(value, dtype), dtype=dtype, trainable=trainable, name=name)

    def read_value(self):
        return self.value

    def __array__(self, dtype=None, copy=None):
        return super().__array__(dtype)


# ---- elementwise: of one and of two tensors, with a name last

_UNARY = {
    **{
        n: getattr(knp, n)
        for n in (
            "abs sign exp expm1 log log1p sqrt square sin cos tan sinh cosh tanh floor ceil round "
            "reciprocal negative logical_not".split()
        )
    },
    "acos": knp.arccos,
    "asin": knp.arcsin,
    "atan": knp.arctan,
    "acosh": knp.arccosh,
    "asinh": knp.arcsinh,
    "atanh": knp.arctanh,
    "is_nan": knp.isnan,
    "is_inf": knp.isinf,
    "is_finite": knp.isfinite,
    "rsqrt": kmath.rsqrt,
    "erf": kmath.erf,
    "erfc": kmath.erfc,
    "erfinv": kmath.erfinv,
    "sigmoid": nn.sigmoid,
    "softplus": nn.softplus,
    "log_sigmoid": nn.log_sigmoid,
    "lgamma": lambda x: C.lgamma(_t(x)),
    "digamma": lambda x: C.digamma(_t(x)),
}
_BINARY = {
    "add": knp.add,
    "subtract": knp.subtract,
    "multiply": knp.multiply,
    "divide": knp.divide,
    "truediv": knp.divide,
    "divide_no_nan": knp.divide_no_nan,
    "floordiv": knp.floor_divide,
    "mod": knp.mod,
    "floormod": knp.mod,
    "pow": knp.power,
    "maximum": knp.maximum,
    "minimum": knp.minimum,
    "atan2": knp.arctan2,
    "equal": knp.equal,
    "not_equal": knp.not_equal,
    "less": knp.less,
    "less_equal": knp.less_equal,
    "greater": knp.greater,
    "greater_equal": knp.greater_equal,
    "logical_and": knp.logical_and,
    "logical_or": knp.logical_or,
    "logical_xor": knp.logical_xor,
    "squared_difference": lambda x, y: C.square(knp.subtract(x, y)),
}


def _unary(name, op):
    def function(x, name=None):
        return op(x)

    function.__name__ = name
    return function


def _binary(name, op):
    def function(x, y, name=None):
        return op(x, y)

    function.__name__ = name
    return function


unary = {name: _unary(name, op) for name, op in _UNARY.items()}
binary = {name: _binary(name, op) for name, op in _BINARY.items()}


# ---- reductions


def _reduction(name, op):
    def function(input_tensor, axis=None, keepdims=False, name=None):
        return op(input_tensor, axis, keepdims)

    function.__name__ = name
    return function


def _sum(x, axis, keepdims):
    x = _t(x)
    return knp.sum(x, axis, keepdims).to(x.dtype)


def _mean(x, axis, keepdims):
    x = _t(x)
    return knp.mean(x, axis, keepdims).to(x.dtype)


reductions = {
    f"reduce_{name}": _reduction(f"reduce_{name}", op)
    for name, op in {
        "sum": _sum,
        "mean": _mean,
        "prod": lambda x, a, k: knp.prod(x, a, k, _t(x).dtype),
        "max": knp.max,
        "min": knp.min,
        "all": knp.all,
        "any": knp.any,
        "logsumexp": kmath.logsumexp,
        "std": knp.std,
        "variance": knp.var,
    }.items()
}


def argmax(input, axis=0, output_type="int64", name=None):
    return knp.argmax(input, 0 if axis is None else axis).to(core.native(output_type))


def argmin(input, axis=0, output_type="int64", name=None):
    return knp.argmin(input, 0 if axis is None else axis).to(core.native(output_type))


def cumsum(x, axis=0, exclusive=False, reverse=False, name=None):
    return _cumulative(knp.cumsum, x, axis, exclusive, reverse, 0)


def cumprod(x, axis=0, exclusive=False, reverse=False, name=None):
    return _cumulative(knp.cumprod, x, axis, exclusive, reverse, 1)


def _cumulative(op, x, axis, exclusive, reverse, neutral):
    x = _t(x)
    x = C.flip(x, (axis,)) if reverse else x
    if exclusive:
        first = knp.full_like(x.narrow(axis, 0, 1), neutral)
        x = C.cat([first, x.narrow(axis, 0, x.shape[axis] - 1)], axis)
    out = op(x, axis)
    return C.flip(out, (axis,)) if reverse else out


# ---- shapes and elements


def shape(input, out_type="int32", name=None):
    return _t(list(_t(input).shape), out_type)


def size(input, out_type="int32", name=None):
    return _t(_t(input).numel(), out_type)


def rank(input, name=None):
    return _t(_t(input).dim())


def reshape(tensor, shape, name=None):
    return knp.reshape(tensor, shape)


def transpose(a, perm=None, conjugate=False, name="transpose"):
    return knp.transpose(a, perm)


def expand_dims(input, axis, name=None):
    return knp.expand_dims(input, axis)


def squeeze(input, axis=None, name=None):
    return knp.squeeze(input, axis)


def concat(values, axis, name="concat"):
    return knp.concatenate(values, axis)


def stack(values, axis=0, name="stack"):
    return knp.stack(values, axis)


def unstack(value, num=None, axis=0, name="unstack"):
    return list(_t(value).unbind(axis))


def split(value, num_or_size_splits, axis=0, num=None, name="split"):
    value = _t(value)
    if isinstance(num_or_size_splits, int):
        return knp.split(value, num_or_size_splits, axis)
    return list(value.split([int(n) for n in num_or_size_splits], axis))


def tile(input, multiples, name=None):
    return knp.tile(input, multiples)


def repeat(input, repeats, axis=None, name=None):
    return knp.repeat(input, repeats, axis)


def pad(tensor, paddings, mode="CONSTANT", constant_values=0, name=None):
    mode = mode.lower()
    values = constant_values if mode == "constant" else None
    return knp.pad(tensor, paddings, mode, values)


def reverse(tensor, axis, name=None):
    return knp.flip(tensor, axis)


def roll(input, shift, axis, name=None):
    return knp.roll(input, shift, axis)


def broadcast_to(input, shape, name=None):
    return knp.broadcast_to(input, shape)


def gather(params, indices, validate_indices=None, axis=0, batch_dims=0, name=None):
    if batch_dims:
        raise _not_yet("tf.gather(batch_dims=)", "tf.gather_nd")
    return knp.take(params, indices, 0 if axis is None else axis)


def gather_nd(params, indices, batch_dims=0, name=None):
    if batch_dims:
        raise _not_yet("tf.gather_nd(batch_dims=)", "tf.gather")
    return _t(params)[tuple(_t(indices, "int64").unbind(-1))]


def where(condition, x=None, y=None, name=None):
    if x is None:
        return C.stack(list(knp.nonzero(condition)), 1).to(C.int64)
    return knp.where(condition, x, y)


def boolean_mask(tensor, mask, axis=None, name="boolean_mask"):
    mask = _t(mask, "bool")
    tensor = _t(tensor)
    if axis:
        return knp.moveaxis(knp.moveaxis(tensor, axis, 0)[mask], 0, axis)
    return tensor[mask]


def one_hot(indices, depth, on_value=None, off_value=None, axis=None, dtype=None, name=None):
    made = nn.one_hot(indices, int(depth), -1 if axis is None else axis, dtype or "float32")
    if on_value is None and off_value is None:
        return made
    return knp.where(made != 0, 1 if on_value is None else on_value, off_value or 0)


def sort(values, axis=-1, direction="ASCENDING", name=None):
    made = knp.sort(values, axis)
    return made if direction == "ASCENDING" else knp.flip(made, axis)


def argsort(values, axis=-1, direction="ASCENDING", stable=False, name=None):
    return knp.argsort(values if direction == "ASCENDING" else knp.negative(values), axis)


def top_k(input, k=1, sorted=True, name=None):
    return kmath.top_k(input, k)


def tensor_scatter_nd_update(tensor, indices, updates, name=None):
    return core.scatter_update(tensor, indices, updates)


def tensor_scatter_nd_add(tensor, indices, updates, name=None):
    return core.scatter_update(tensor, indices, updates, "add")


def scatter_nd(indices, updates, shape, name=None):
    return core.scatter(indices, updates, knp._shape(shape))


def unique(x, out_idx="int32", name=None):
    return knp.unique(x, return_inverse=True)


# ---- products, norms, clipping


def matmul(a, b, transpose_a=False, transpose_b=False, name=None):
    a, b = _t(a), _t(b)
    a = a.transpose(-2, -1) if transpose_a else a
    return knp.matmul(a, b.transpose(-2, -1) if transpose_b else b)


def tensordot(a, b, axes, name=None):
    return knp.tensordot(a, b, axes)


def einsum(equation, *inputs, **kwargs):
    return knp.einsum(equation, *inputs)


def norm(tensor, ord="euclidean", axis=None, keepdims=None, name=None):
    ord = None if ord in ("euclidean", "fro") else ord
    return linalg.norm(tensor, ord, axis, bool(keepdims))


def clip_by_value(t, clip_value_min, clip_value_max, name=None):
    return knp.clip(t, clip_value_min, clip_value_max)


def clip_by_norm(t, clip_norm, axes=None, name=None):
    t = _t(t)
    size = C.sqrt(knp.sum(C.square(t), axes, True))
    return t * (clip_norm / C.clamp_min(size, float(clip_norm)))


def global_norm(t_list, name=None):
    return C.sqrt(sum(C.sum(C.square(_t(t))) for t in t_list if t is not None))


def clip_by_global_norm(t_list, clip_norm, use_norm=None, name=None):
    size = global_norm(t_list) if use_norm is None else _t(use_norm)
    scale = clip_norm / C.clamp_min(size, float(clip_norm))
    return [None if t is None else _t(t) * scale for t in t_list], size


def l2_normalize(x, axis=None, epsilon=1e-12, name=None):
    x = _t(x)
    return x * C.rsqrt(C.clamp_min(knp.sum(C.square(x), axis, True), epsilon))


# ---- nn


def softmax(logits, axis=-1, name=None):
    return nn.softmax(logits, axis)


def log_softmax(logits, axis=-1, name=None):
    return nn.log_softmax(logits, axis)


def softmax_cross_entropy_with_logits(labels, logits, axis=-1, name=None):
    return nn.categorical_crossentropy(labels, logits, True, axis)


def sparse_softmax_cross_entropy_with_logits(labels, logits, name=None):
    return nn.sparse_categorical_crossentropy(labels, logits, True)


def sigmoid_cross_entropy_with_logits(labels=None, logits=None, name=None):
    return nn.binary_crossentropy(labels, logits, True)


def leaky_relu(features, alpha=0.2, name=None):
    return nn.leaky_relu(features, alpha)


def gelu(features, approximate=False, name=None):
    return nn.gelu(features, approximate)


def bias_add(value, bias, data_format=None, name=None):
    bias = _t(bias)
    if data_format and data_format[:2] == "NC":
        bias = bias.reshape(-1, *[1] * (_t(value).dim() - 2))
    return knp.add(value, bias)


def dropout(x, rate, noise_shape=None, seed=None, name=None):
    return random.dropout(x, rate, noise_shape, seed)


def moments(x, axes, shift=None, keepdims=False, name=None):
    return nn.moments(x, axes, keepdims)


def _two(value):
    if isinstance(value, int):
        return (value, value)
    value = tuple(value)
    return value[1:3] if len(value) == 4 else value * 2 if len(value) == 1 else value


def conv2d(input, filters, strides, padding, data_format="NHWC", dilations=1, name=None):
    form = "channels_last" if data_format == "NHWC" else "channels_first"
    return nn.conv(input, filters, _two(strides), padding.lower(), form, _two(dilations))


def max_pool2d(input, ksize, strides, padding, data_format="NHWC", name=None):
    form = "channels_last" if data_format == "NHWC" else "channels_first"
    return nn.max_pool(input, _two(ksize), _two(strides), padding.lower(), form)


def avg_pool2d(input, ksize, strides, padding, data_format="NHWC", name=None):
    form = "channels_last" if data_format == "NHWC" else "channels_first"
    return nn.average_pool(input, _two(ksize), _two(strides), padding.lower(), form)


# ---- random


def set_seed(seed):
    keras.utils.set_random_seed(int(seed))


def normal(shape, mean=0.0, stddev=1.0, dtype="float32", seed=None, name=None):
    return random.normal(knp._shape(shape), mean, stddev, dtype, seed)


def truncated_normal(shape, mean=0.0, stddev=1.0, dtype="float32", seed=None, name=None):
    return random.truncated_normal(knp._shape(shape), mean, stddev, dtype, seed)


def uniform(shape, minval=0, maxval=None, dtype="float32", seed=None, name=None):
    shape = knp._shape(shape)
    if core.native(dtype) not in core.FLOATS:
        if maxval is None:
            raise ValueError("Must specify maxval for integer dtype " + as_dtype(dtype).name)
        return random.randint(shape, minval, maxval, dtype, seed)
    return random.uniform(shape, minval, 1.0 if maxval is None else maxval, dtype, seed)


def shuffle(value, seed=None, name=None):
    return random.shuffle(value, 0, seed)


def categorical(logits, num_samples, dtype="int64", seed=None, name=None):
    return random.categorical(logits, num_samples, dtype or "int64", seed)


# ---- image


def image_resize(images, size, method="bilinear", preserve_aspect_ratio=False, antialias=False):
    if preserve_aspect_ratio:
        near = "keras.ops.image.resize(crop_to_aspect_ratio=True)"
        raise _not_yet("tf.image.resize(preserve_aspect_ratio=True)", near)
    images = _t(images)
    if method != "nearest":
        images = images.to(C.float32)
    return kimage.resize(images, size, method, antialias, data_format="channels_last")


def flip_left_right(image):
    return knp.flip(image, -2)


def flip_up_down(image):
    return knp.flip(image, -3)


def rot90(image, k=1, name=None):
    image = _t(image)
    return knp.rot90(image, k, (image.dim() - 3, image.dim() - 2))


def convert_image_dtype(image, dtype, saturate=False, name=None):
    image = _t(image)
    dtype = core.native(dtype)
    if image.dtype is dtype:
        return image
    if dtype in core.FLOATS and image.dtype not in core.FLOATS:
        return image.to(dtype) / knp.F.iinfo(image.dtype).max
    if dtype in core.FLOATS:
        return image.to(dtype)
    return (image * (knp.F.iinfo(dtype).max + 0.5)).to(dtype)


def adjust_brightness(image, delta):
    return knp.add(image, delta)


def rgb_to_grayscale(images, name=None):
    return kimage.rgb_to_grayscale(images, "channels_last")


# ---- control


def stop_gradient(input, name=None):
    return core.stop_gradient(input)


def cond(pred, true_fn=None, false_fn=None, name=None):
    return true_fn() if pred else false_fn()


def while_loop(cond, body, loop_vars, maximum_iterations=None, **kw):
    return core.while_loop(cond, body, loop_vars, maximum_iterations)


def map_fn(fn, elems, **kw):
    return core.vectorized_map(fn, elems)


def print(*inputs, output_stream=None, end="\n", **kw):
    import builtins
    import sys

    builtins.print(
        *(x.numpy() if hasattr(x, "numpy") else x for x in inputs),
        file=output_stream or sys.stderr,
        end=end,
    )


def is_tensor(x):
    return isinstance(x, Tensor)


def function(func=None, **options):
    """tf.function: the function as it is; every call is eager."""
    return func if func is not None else lambda f: f
