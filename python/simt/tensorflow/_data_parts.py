"""Parts of the steps of tf.data: elements, batches, paddings, signatures."""

import numpy as np
from keras.src import tree

from simt.tensorflow import errors
from simt.tensorflow._tensor import _number, convert, is_tensor, look
from simt.tensorflow._types import TensorShape, TensorSpec


def host(x):
    return look(convert(x)) if is_tensor(x) else np.asarray(x)


def is_text(x):
    return isinstance(x, (str, bytes)) or (isinstance(x, np.ndarray) and x.dtype.kind in "OSU")


def map_specs(function, specs):
    return tree.map_structure(
        lambda s: TensorSpec(function(s.shape), s.dtype) if isinstance(s, TensorSpec) else s, specs
    )


def refused(kernel, text):
    return errors.refused(kernel, text)


def count_of(n, what):
    """A count that a step was given, as an int."""
    if isinstance(n, float) or n is None or isinstance(n, str):
        raise TypeError(f"`{what}` must be an integer. Received: {n!r}")
    return int(n)


def leaves(tensors):
    """Lists of numbers are arrays, as tensors are; tuples and dicts are structures."""
    if isinstance(tensors, tuple):
        parts = (leaves(t) for t in tensors)
        return type(tensors)(*parts) if hasattr(tensors, "_fields") else tuple(parts)
    if isinstance(tensors, dict):
        return {k: leaves(v) for k, v in tensors.items()}
    return array_of(tensors)


def array_of(x):
    if isinstance(x, (np.ndarray, np.generic)) or is_tensor(x):
        return x
    array = np.asarray(x) if hasattr(x, "__array__") else None
    if array is None and not isinstance(x, (list, bool, int, float, str, bytes)):
        return look(convert(x))  # says why not
    if array is None:
        flat = np.asarray(x, dtype=object).reshape(-1)
        if flat.size and isinstance(flat[0], (str, bytes)):
            return np.asarray(x)
        array = look(convert(x))
    return array


def mapped(made):
    """What a user's function gave: lists are tensors, numbers too."""
    if isinstance(made, (tuple, dict)):
        return leaves_of_result(made)
    if isinstance(made, (bool, int, float)):
        return np.asarray(look(_number(made, None)))
    return array_of(made) if isinstance(made, list) else made


def leaves_of_result(made):
    if isinstance(made, dict):
        return {k: mapped(v) for k, v in made.items()}
    return tuple(mapped(v) for v in made)


def checked_size(n):
    n = count_of(n, "batch_size")
    if n <= 0:
        raise refused("BatchDatasetV2", "Batch size must be greater than zero.")
    return n


def batches(size, n, drop_remainder):
    return size if size < 0 else size // n if drop_remainder else -(-size // n)


def stack_arrays(*parts):
    arrays = [host(p) for p in parts]
    for i, a in enumerate(arrays):
        if a.shape != arrays[0].shape:
            raise errors.InvalidArgumentError(
                None,
                "IteratorGetNext",
                f"{{{{function_node __wrapped__IteratorGetNext_output_types_1_device_"
                f"{errors.DEVICE}}}}} Cannot batch tensors with different shapes in component 0. "
                f"First element had shape {errors.dims(arrays[0].shape)} and element {i} had shape "
                f"{errors.dims(a.shape)}. [Op:IteratorGetNext] name: ",
            )
    return np.stack(arrays)


def joined(join, parts, values, shapes):
    """join of each part of the elements, with the padding value and shape given for it."""
    flat = [tree.flatten(p) for p in parts]
    count = len(flat[0])
    values = tree.flatten(values) if isinstance(values, (tuple, dict)) else [values] * count
    if isinstance(parts[0], (tuple, dict)) and shapes is not None:
        shapes = list(shapes.values()) if isinstance(shapes, dict) else list(shapes)
    else:
        shapes = [shapes] * count
    made = [
        join(v, s, *column)
        for v, s, column in zip(values, shapes, zip(*flat, strict=True), strict=True)
    ]
    return tree.pack_sequence_as(parts[0], made)


def padded(arrays, shape, value):
    rank = arrays[0].ndim
    wanted = [None] * rank if shape is None else TensorShape(shape).as_list()
    sizes = [
        max(a.shape[at] for a in arrays) if n in (None, -1) else n for at, n in enumerate(wanted)
    ]
    out = np.full((len(arrays), *sizes), 0 if value is None else value, arrays[0].dtype)
    for i, a in enumerate(arrays):
        if any(n > m for n, m in zip(a.shape, sizes, strict=True)):
            raise errors.DataLossError(
                None,
                "IteratorGetNext",
                "Attempted to pad to a smaller size than the input element.",
            )
        out[(i, *(slice(0, n) for n in a.shape))] = a
    return out


def check_rank(arrays):
    if any(not a.ndim for a in arrays):
        raise ValueError("Cannot unbatch an input with scalar components.")


def seed_of(seed):
    if seed is not None:
        return int(seed)
    import keras

    chosen = keras.utils.get_random_seed() if hasattr(keras.utils, "get_random_seed") else None
    return chosen


def common_spec(a, b):
    return TensorSpec(a.shape.most_specific_compatible_shape(b.shape), a.dtype)


def signature_of(types, shapes, signature):
    if signature is not None:
        if types is not None or shapes is not None:
            raise TypeError(
                "The `output_types` argument can not be used together with the "
                "`output_signature` argument."
            )
        for spec in tree.flatten(signature):
            if not isinstance(spec, TensorSpec):
                raise TypeError(
                    "`output_signature` must contain objects that are subclass of `tf.TypeSpec` "
                    f"but found {type(spec)} which is not."
                )
        return signature
    if types is None:
        raise TypeError(
            "To specify the output signature you need to provide either the `output_signature` "
            "argument or the `output_types` argument."
        )
    if shapes is None:
        return tree.map_structure(lambda t: TensorSpec(None, t), types)
    flat = [
        TensorSpec(s, t) for s, t in zip(shapes(types, shapes), tree.flatten(types), strict=True)
    ]
    return tree.pack_sequence_as(types, flat) if tree.is_nested(types) else flat[0]


def shapes(types, shapes):
    """The shapes that stand where the types do: lists of numbers are shapes."""
    if isinstance(types, dict):
        return [s for k in sorted(types) for s in shapes(types[k], shapes[k])]
    if isinstance(types, (tuple, list)):
        return [s for t, sub in zip(types, shapes, strict=True) for s in shapes(t, sub)]
    return [shapes]


def checked(element, signature):
    """What a generator yielded, as the signature has it."""
    if isinstance(signature, (tuple, list)):
        if not isinstance(element, (tuple, list)) or len(element) != len(signature):
            raise errors.InvalidArgumentError(
                None,
                "IteratorGetNext",
                "TypeError: `generator` yielded an element that did not match the expected "
                f"structure. The expected structure was {signature}, but the yielded element was "
                f"{element}.",
            )
        return tuple(checked(e, s) for e, s in zip(element, signature, strict=True))
    if isinstance(signature, dict):
        return {k: checked(element[k], s) for k, s in signature.items()}
    array = host(element)
    if not is_text(array):
        array = array.astype(signature.dtype.as_numpy_dtype)
    if not signature.shape.is_compatible_with(array.shape):
        where = f"IteratorGetNext_output_types_1_device_{errors.DEVICE}"
        raise errors.InvalidArgumentError(
            None,
            "IteratorGetNext",
            f"{{{{function_node __wrapped__{where}}}}} TypeError: `generator` yielded an element "
            f"of shape {array.shape} where an element of shape {signature.shape} was expected.",
        )
    return array
