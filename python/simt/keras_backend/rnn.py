"""Recurrent loops: Keras's rnn over the steps in Python. lstm and gru have no kernels of their own:
Keras then uses its cells."""

from keras.src import tree

from simt._core import torch as C
from simt.keras_backend import numpy as knp
from simt.keras_backend.core import convert_to_tensor


def _swap(x):
    return x.transpose(0, 1)


def rnn(
    step_function,
    inputs,
    initial_states,
    go_backwards=False,
    mask=None,
    constants=None,
    unroll=False,
    input_length=None,
    time_major=False,
    zero_output_for_mask=False,
    return_all_outputs=True,
):
    """Returns (last output, outputs, states); a masked step keeps the states and the output."""
    inputs = tree.map_structure(convert_to_tensor, inputs)
    if not time_major:
        inputs = tree.map_structure(_swap, inputs)
    steps = tree.flatten(inputs)[0].shape[0]
    if unroll and not steps:
        raise ValueError("Unrolling requires a fixed number of timesteps.")
    if mask is not None:
        mask = convert_to_tensor(mask, "bool")
        mask = mask if time_major else _swap(mask)
        if mask.dim() > 2:
            mask = C.any(mask.reshape(*mask.shape[:2], -1), -1)
    constants = tuple(constants or ())
    states = initial_states
    outputs, output = [], None
    for i in reversed(range(steps)) if go_backwards else range(steps):
        now = tree.map_structure(lambda x, i=i: x[i], inputs)
        made, after = step_function(now, tuple(states) + constants)
        if mask is not None:
            before = _held(output, states, made, zero_output_for_mask, unroll)
            made = _choose(mask[i], made, before)
            after = tree.map_structure(
                lambda new, old, i=i: _choose(mask[i], new, old), after, states
            )
        output, states = made, after
        outputs.append(output)
        if not return_all_outputs:
            outputs = outputs[-1:]
    stacked = tree.map_structure(lambda *parts: C.stack(list(parts)), *outputs)
    if not time_major:
        stacked = tree.map_structure(_swap, stacked)
    return output, stacked, states


def _held(output, states, made, zero, unroll):
    """What a masked step gives out: zeros, or the output before it."""
    if zero:
        return tree.map_structure(knp.zeros_like, made)
    if output is not None:
        return output
    if unroll:
        return tree.map_structure(knp.zeros_like, made)
    first = states[0]
    if tree.is_nested(first):
        first = states[-1][0]
    return first if first.shape == made.shape else knp.zeros_like(made)


def _choose(mask, new, old):
    def choose(a, b):
        form = mask.reshape(mask.shape[0], *[1] * (a.dim() - 1))
        return C.where(form, a, b)

    return tree.map_structure(choose, new, old)


def cudnn_ok(*args, **kwargs):
    return False


def lstm(*args, **kwargs):
    raise NotImplementedError


def gru(*args, **kwargs):
    raise NotImplementedError


def bidirectional_lstm(*args, **kwargs):
    raise NotImplementedError


def bidirectional_gru(*args, **kwargs):
    raise NotImplementedError
