"""The backend of Keras 3 on simt's tensors: its protocol, in modules named as Keras names them.

Imported by Keras itself, after simt.keras has put the branch for it in place. Tensors are those of
simt.torch (C); dtypes follow Keras's rules (keras.src.backend.common.dtypes), gradients the tape.
"""

from keras.src.backend.common.name_scope import name_scope

from simt.keras_backend import core, image, linalg, math, nn, numpy, random
from simt.keras_backend.core import (
    IS_THREAD_SAFE,
    SUPPORTS_COMPLEX_DTYPES,
    SUPPORTS_RAGGED_TENSORS,
    SUPPORTS_SPARSE_TENSORS,
    Variable,
    cast,
    compute_output_spec,
    cond,
    convert_to_numpy,
    convert_to_tensor,
    device_scope,
    is_tensor,
    random_seed_dtype,
    scatter,
    shape,
    stop_gradient,
    vectorized_map,
)
from simt.keras_backend.rnn import (
    bidirectional_gru,
    bidirectional_lstm,
    cudnn_ok,
    gru,
    lstm,
    rnn,
)

__all__ = [
    "IS_THREAD_SAFE",
    "SUPPORTS_COMPLEX_DTYPES",
    "SUPPORTS_RAGGED_TENSORS",
    "SUPPORTS_SPARSE_TENSORS",
    "Variable",
    "bidirectional_gru",
    "bidirectional_lstm",
    "cast",
    "compute_output_spec",
    "cond",
    "convert_to_numpy",
    "convert_to_tensor",
    "core",
    "cudnn_ok",
    "device_scope",
    "gru",
    "image",
    "is_tensor",
    "linalg",
    "lstm",
    "math",
    "name_scope",
    "nn",
    "numpy",
    "random",
    "random_seed_dtype",
    "rnn",
    "scatter",
    "shape",
    "stop_gradient",
    "vectorized_map",
]
