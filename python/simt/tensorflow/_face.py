"""The names of tf itself and of its submodules of functions. Imports Keras."""

import keras

from simt.tensorflow import _gradient, _ops
from simt.tensorflow._types import DTYPES, DType, as_dtype

_gradient.let_gradients_go_to_numpy()


def _named(names):
    """Functions of _ops by name; 'public=own' where it has another one there."""
    out = {}
    for word in names.split():
        public, _, own = word.partition("=")
        own = own or public
        for table in (_ops.unary, _ops.binary, _ops.reductions):
            if own in table:
                out[public] = table[own]
                break
        else:
            out[public] = getattr(_ops, own)
    return out


_ARITHMETIC = (
    "abs sign exp log sqrt square sin cos tan sinh cosh tanh floor round acos asin atan acosh "
    "asinh atanh negative logical_not sigmoid add subtract multiply divide truediv floordiv mod "
    "floormod pow maximum minimum atan2 equal not_equal less less_equal greater greater_equal "
    "logical_and logical_or logical_xor reduce_sum reduce_mean reduce_prod reduce_max "
    "reduce_min reduce_all reduce_any reduce_logsumexp argmax argmin cumsum"
)
MATH = _named(
    _ARITHMETIC + " expm1 log1p ceil reciprocal rsqrt erf erfc erfinv softplus log_sigmoid lgamma "
    "digamma is_nan is_inf is_finite divide_no_nan squared_difference reduce_std reduce_variance "
    "cumprod top_k l2_normalize softmax log_softmax"
)
NN = _named(
    "softmax log_softmax softmax_cross_entropy_with_logits "
    "sparse_softmax_cross_entropy_with_logits sigmoid_cross_entropy_with_logits leaky_relu gelu "
    "bias_add dropout moments conv2d max_pool2d avg_pool2d max_pool=max_pool2d "
    "avg_pool=avg_pool2d sigmoid tanh softplus l2_normalize top_k"
)
NN |= {n: _ops._unary(n, getattr(_ops.nn, n)) for n in "relu relu6 elu selu silu softsign".split()}
NN["swish"] = NN["silu"]
LINALG = _named("matmul tensordot einsum norm eye l2_normalize global_norm")
LINALG |= {
    "diag": lambda diagonal, name=None: _ops.knp.diag(diagonal),
    "diag_part": lambda input, name=None: _ops.knp.diagonal(input, 0, -2, -1),
    "trace": lambda x, name=None: _ops.knp.trace(x, 0, -2, -1),
    "matrix_transpose": lambda a, name=None: _ops._t(a).transpose(-2, -1),
    "inv": lambda input, name=None: _ops.linalg.inv(input),
    "det": lambda input, name=None: _ops.linalg.det(input),
    "solve": lambda matrix, rhs, name=None: _ops.linalg.solve(matrix, rhs),
    "cholesky": lambda input, name=None: _ops.linalg.cholesky(input),
    "qr": lambda input, name=None: _ops.linalg.qr(input),
}
RANDOM = _named("set_seed normal truncated_normal uniform shuffle categorical")
IMAGE = _named(
    "resize=image_resize flip_left_right flip_up_down rot90 convert_image_dtype adjust_brightness "
    "rgb_to_grayscale"
)
TOP = _named(
    _ARITHMETIC
    + " constant convert_to_tensor identity cast zeros ones fill zeros_like ones_like eye "
    "range linspace Variable shape size rank reshape transpose expand_dims squeeze concat "
    "stack unstack split tile repeat pad reverse roll broadcast_to gather gather_nd where "
    "boolean_mask one_hot sort argsort tensor_scatter_nd_update tensor_scatter_nd_add "
    "scatter_nd unique matmul tensordot einsum norm clip_by_value clip_by_norm "
    "clip_by_global_norm stop_gradient cond while_loop map_fn print is_tensor function "
    "Tensor"
)
TOP |= DTYPES | {
    "DType": DType,
    "as_dtype": as_dtype,
    "double": DTYPES["float64"],
    "half": DTYPES["float16"],
    "GradientTape": _gradient.GradientTape,
    "UnconnectedGradients": _gradient.UnconnectedGradients,
    "custom_gradient": _gradient.custom_gradient,
    "device": keras.device,
    "newaxis": None,
    "executing_eagerly": lambda: True,
    "losses": keras.losses,
    "optimizers": keras.optimizers,
    "metrics": keras.metrics,
    "initializers": keras.initializers,
}
