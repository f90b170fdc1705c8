"""The names of tf itself and of its submodules of functions. Imports Keras."""

import builtins

import keras

from simt.keras_backend import core
from simt.tensorflow import (
    __version__,
    _arrays,
    _control,
    _elements,
    _elementwise,
    _gradient,
    _image,
    _layers,
    _nn,
    _products,
    _random,
    _reduce,
    _variable,
    debugging,
)
from simt.tensorflow._tensor import Tensor, convert, is_tensor, public
from simt.tensorflow._types import DTYPES, DType, TensorShape, TensorSpec, as_dtype

_gradient.let_gradients_go_to_numpy()
_layers.show_tensors()

_TABLES = (_elementwise.unary_functions, _elementwise.binary_functions, _reduce.reductions)
_MODULES = (_arrays, _elements, _reduce, _products, _nn)
_made = {}


def _named(names, modules=_MODULES, tables=_TABLES):
    """Public functions by name; 'public=own' where it has another one in its module."""
    out = {}
    for word in names.split():
        name, _, own = word.partition("=")
        own = own or name
        places = [*tables, *(vars(m) for m in modules)]
        function = next(place[own] for place in places if own in place)
        out[name] = _made.setdefault(function, None) or _public(function)
    return out


def _public(function):
    _made[function] = public(function)
    return _made[function]


# What TensorFlow has in tf.math and not in tf itself.
_OF_MATH_ONLY = ("log", "mod", "floordiv", "floormod", "logical_xor")
_ARITHMETIC = (
    "abs sign exp log sqrt square sin cos tan sinh cosh tanh floor round acos asin atan acosh "
    "asinh atanh negative logical_not sigmoid add subtract multiply divide truediv floordiv mod "
    "floormod pow maximum minimum atan2 equal not_equal less less_equal greater greater_equal "
    "logical_and logical_or logical_xor reduce_sum reduce_mean reduce_prod reduce_max "
    "reduce_min reduce_all reduce_any reduce_logsumexp argmax argmin cumsum add_n scalar_mul"
)
MATH = _named(
    _ARITHMETIC + " reciprocal_no_nan softsign xlog1py polyval unsorted_segment_mean "
    "expm1 log1p ceil reciprocal rsqrt erf erfc erfinv softplus log_sigmoid lgamma "
    "digamma is_nan is_inf is_finite rint divide_no_nan multiply_no_nan squared_difference xlogy "
    "xdivy reduce_std reduce_variance reduce_euclidean_norm count_nonzero zero_fraction cumprod "
    "top_k l2_normalize softmax log_softmax segment_sum segment_mean segment_max "
    "unsorted_segment_sum unsorted_segment_max bincount confusion_matrix in_top_k"
)
NN = _named(
    "softmax log_softmax softmax_cross_entropy_with_logits relu relu6 elu selu silu=silu softsign "
    "sparse_softmax_cross_entropy_with_logits sigmoid_cross_entropy_with_logits leaky_relu gelu "
    "weighted_cross_entropy_with_logits bias_add dropout moments batch_normalization crelu l2_loss "
    "embedding_lookup conv1d conv2d depthwise_conv2d max_pool2d avg_pool2d max_pool avg_pool "
    "sigmoid tanh softplus l2_normalize top_k in_top_k zero_fraction"
)
NN["silu"] = NN["swish"] = public(_nn.silu)
LINALG = _named(
    "matmul matvec tensordot einsum norm eye l2_normalize global_norm diag diag_part trace "
    "matrix_transpose adjoint band_part slogdet logdet pinv matrix_rank cross normalize "
    "eigvalsh inv det solve cholesky qr svd eigh lstsq"
)
BITWISE = _named("bitwise_and bitwise_or bitwise_xor invert left_shift right_shift")
RANDOM = _named(
    "normal truncated_normal uniform shuffle categorical gamma stateless_normal stateless_uniform",
    (_random,),
    (),
) | {"set_seed": _random.set_seed, "Generator": _random.Generator}
IMAGE = _named(
    "resize flip_left_right flip_up_down rot90 transpose convert_image_dtype adjust_brightness "
    "adjust_contrast rgb_to_grayscale grayscale_to_rgb per_image_standardization central_crop "
    "crop_to_bounding_box pad_to_bounding_box resize_with_pad resize_with_crop_or_pad "
    "random_flip_left_right random_flip_up_down random_brightness random_contrast random_crop",
    (_image,),
    (),
) | {"ResizeMethod": _image.ResizeMethod}


def stop_gradient(input, name=None):
    return core.stop_gradient(convert(input))


def _identity_n(input, name=None):
    return [convert(x).clone() for x in input]


def _logger():
    import logging

    return logging.getLogger("tensorflow")


class version:
    """tf.version."""

    VERSION = GIT_VERSION = __version__
    COMPILER_VERSION = "simt"


class _InitScope:
    def __enter__(self):
        return None

    def __exit__(self, *error):
        return None


_CONTROL = (
    "cond case switch_case while_loop map_fn vectorized_map foldl foldr scan group no_op "
    "py_function numpy_function function TensorArray"
).split()
TOP = (
    _named(
        _ARITHMETIC
        + " constant convert_to_tensor identity cast saturate_cast bitcast zeros ones fill "
        "zeros_like ones_like eye range linspace meshgrid sequence_mask shape size rank reshape "
        "transpose expand_dims squeeze ensure_shape concat stack unstack split tile repeat pad "
        "reverse roll broadcast_to gather gather_nd where boolean_mask one_hot sort argsort slice "
        "strided_slice searchsorted unravel_index dynamic_partition tensor_scatter_nd_update "
        "tensor_scatter_nd_add tensor_scatter_nd_sub tensor_scatter_nd_max tensor_scatter_nd_min "
        "scatter_nd unique unique_with_counts matmul tensordot einsum norm clip_by_value "
        "clip_by_norm clip_by_global_norm"
    )
    | {name: getattr(_control, name) for name in _CONTROL}
    | {
        f"assert_{n}": getattr(debugging, f"assert_{n}")
        for n in ("equal", "greater", "less", "rank")
    }
    | DTYPES
    | {
        "Assert": debugging.Assert,
        "DType": DType,
        "as_dtype": as_dtype,
        "double": DTYPES["float64"],
        "half": DTYPES["float16"],
        "Tensor": Tensor,
        "TensorShape": TensorShape,
        "TensorSpec": TensorSpec,
        "Variable": _variable.Variable,
        "IndexedSlices": _variable.IndexedSlices,
        "Module": _variable.Module,
        "GradientTape": _gradient.GradientTape,
        "UnconnectedGradients": _gradient.UnconnectedGradients,
        "custom_gradient": _gradient.custom_gradient,
        "recompute_grad": lambda f: f,
        "stop_gradient": public(stop_gradient),
        "identity_n": public(_identity_n),
        "print": _control.print_,
        "tuple": _control.tuple_,
        "is_tensor": is_tensor,
        "is_symbolic_tensor": lambda tensor: builtins.isinstance(tensor, keras.KerasTensor),
        "get_static_value": lambda tensor, partial=False: tensor.numpy(),
        "device": keras.device,
        "name_scope": keras.name_scope,
        "init_scope": _InitScope,
        "control_dependencies": lambda control_inputs: _InitScope(),
        "get_logger": _logger,
        "version": version,
        "constant_initializer": keras.initializers.Constant,
        "ones_initializer": keras.initializers.Ones,
        "zeros_initializer": keras.initializers.Zeros,
        "random_normal_initializer": keras.initializers.RandomNormal,
        "random_uniform_initializer": keras.initializers.RandomUniform,
        "newaxis": None,
        "executing_eagerly": lambda: True,
        "inside_function": lambda: False,
        "losses": keras.losses,
        "optimizers": keras.optimizers,
        "metrics": keras.metrics,
        "initializers": keras.initializers,
    }
)
for _name in _OF_MATH_ONLY:
    del TOP[_name]
