"""Padding, resampling and sliding blocks, composed of index_select and arithmetic (and so with
gradients)."""

from simt import _core

_C = _core.torch

# ---- padding

_MODES = {"reflect", "replicate", "circular"}


def _check_pad(input, pad, mode, value):
    if not isinstance(pad, (tuple, list)):
        raise TypeError(
            f"pad(): argument 'pad' (position 2) must be tuple of ints, not {type(pad).__name__}"
        )
    for i, n in enumerate(pad):
        if not hasattr(n, "__index__"):
            raise TypeError(
                "pad(): argument 'pad' (position 2) must be tuple of ints, but found element of "
                f"type {type(n).__name__} at pos {i}"
            )
    pad = [int(n) for n in pad]
    if mode != "constant" and mode not in _MODES:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(pad) > 2 * input.dim():
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got "
            f"padding length {len(pad)} and input of dimension {input.dim()}"
        )
    if mode == "constant":
        return pad
    if value is not None:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    if input.dim() - len(pad) // 2 not in (1, 2) or not 2 <= len(pad) <= 6:
        raise NotImplementedError(
            f"Padding size {len(pad)} is not supported for {input.dim()}D input tensor."
        )
    return pad


def _positions(mode, n, before, after, dim, shape):
    """Which elements of a dimension of length n the padded one consists of."""
    if n + before + after < 1 or n == 0:
        raise RuntimeError(
            f"input of size {shape} is too small to pad its dimension {dim} by {(before, after)}: "
            f"Calculated output size: {n + before + after}"
        )
    if mode == "replicate":
        return _C._arange(-before, n + after, 1, None).clamp(0, n - 1)
    if mode == "circular":
        if max(before, after) > n:
            raise RuntimeError("Padding value causes wrapping around more than once.")
        kept = range(max(-before, 0), n - max(-after, 0))  # what is cut off is not repeated
        first = -max(before, 0)
        return [kept[i % len(kept)] for i in range(first, first + n + before + after)]
    if max(before, after) >= n:
        raise RuntimeError(
            "Argument #4: Padding size should be less than the corresponding input dimension, but "
            f"got: padding {(before, after)} at dimension {dim} of input {shape}"
        )
    return [n - 1 - abs(n - 1 - abs(i)) for i in range(-before, n + after)]


def pad(input, pad, mode="constant", value=None):
    pad = _check_pad(input, pad, mode, value)
    if mode == "constant":
        return _pad_constant(input, pad, 0 if value is None else value)
    indices = []
    for i in range(len(pad) // 2):
        dim = input.dim() - 1 - i
        before, after = pad[2 * i], pad[2 * i + 1]
        n = input.shape[dim]
        indices.append((dim, _positions(mode, n, before, after, dim, list(input.shape))))
    for dim, index in indices:
        input = input.index_select(dim, _C.as_tensor(index, device="cpu"))
    return input


def _pad_constant(input, pad, value):
    shape, window = list(input.shape), [slice(None)] * input.dim()
    for i in range(len(pad) // 2):
        before, after = pad[2 * i], pad[2 * i + 1]
        d = input.dim() - 1 - i
        if before < 0 or after < 0:
            input = input.narrow(
                d, max(-before, 0), input.shape[d] + min(before, 0) + min(after, 0)
            )
            before, after = max(before, 0), max(after, 0)
        shape[d] = input.shape[d] + before + after
        window[d] = slice(before, before + input.shape[d])
    out = _C._full("full", shape, value, input.dtype, input.device, False)
    out[tuple(window)] = input
    return out


# ---- resampling

_DIMS = {"linear": 3, "bilinear": 4, "bicubic": 4, "trilinear": 5}
_NEAREST = ("nearest", "nearest-exact")


def _check_mode(input, mode, align_corners, antialias):
    dims = input.dim()
    if align_corners is not None and mode not in _DIMS:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear "
            "| bicubic | trilinear"
        )
    known = mode in _DIMS or mode in _NEAREST or mode == "area"
    if not 3 <= dims <= 5 or not known or (mode == "bicubic" and dims != 4):
        raise NotImplementedError(
            f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {dims}D) for the modes: "
            f"nearest | linear | bilinear | bicubic | trilinear | area | nearest-exact (got {mode})"
        )
    if _DIMS.get(mode, dims) != dims:
        raise NotImplementedError(f"Got {dims}D input, but {mode} mode needs {_DIMS[mode]}D input")
    if antialias:
        raise NotImplementedError(
            "interpolate(antialias=True): not in simt yet; nearest is antialias=False"
        )
    if not input.is_floating_point() and not (mode in _NEAREST and input.dtype is _C.uint8):
        raise NotImplementedError(f"\"interpolate({mode})\" not implemented for '{input.dtype}'")


def _sizes(input, size, scale_factor, recompute):
    """Sizes of the result, and the scale of each dimension (None: by the sizes)."""
    spatial = list(input.shape[2:])
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    given, name = (size, "output size") if size is not None else (scale_factor, "scale_factor")
    if isinstance(given, (tuple, list)) and len(given) != len(spatial):
        what, kind = ("output", "of") if size is not None else ("scale_factor", "of shape")
        raise ValueError(
            f"Input and {what} must have the same number of spatial dimensions, but got input with "
            f"spatial dimensions of {spatial} and {name} {kind} {tuple(given)}. Please provide "
            "input tensor in (N, C, d1, d2, ...,dK) format and "
            + ("output size in (o1, o2, ...,oK) format." if size is not None
               else "scale_factor in (s1, s2, ...,sK) format.")
        )  # fmt: skip
    values = list(given) if isinstance(given, (tuple, list)) else [given] * len(spatial)
    if size is not None:
        if recompute:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        if not all(hasattr(n, "__index__") for n in values):
            raise TypeError(
                "expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int,"
                f" int], but got size with types {[type(n) for n in values]}"
            )
        out, scales = [int(n) for n in values], [None] * len(values)
    else:
        values = [float(f) for f in values]
        out = [int(n * f) for n, f in zip(spatial, values, strict=True)]
        scales = [None if recompute else f for f in values]
    if any(n < 1 for n in spatial + out):
        raise RuntimeError(
            f"Input and output sizes should be greater than 0, but got input {spatial} output {out}"
        )
    return out, scales


def _nearest_index(n, out, scale, exact):
    """In float32 arithmetic, as PyTorch's."""
    import numpy

    step = numpy.float32(1 / scale if scale else n / out)
    places = numpy.arange(out, dtype="f4") + numpy.float32(0.5 if exact else 0)
    return numpy.minimum((places * step).astype("i8"), n - 1)


def _sources(n, out, scale, align_corners):
    """Where the results' centers lie in the input."""
    import numpy

    places = numpy.arange(out, dtype="f8")
    if align_corners:
        return places * ((n - 1) / (out - 1) if out > 1 else 0.0)
    return (places + 0.5) * (1 / scale if scale else n / out) - 0.5


def _linear_taps(n, sources):
    sources = sources.clip(0)
    low = sources.astype("i8").clip(None, n - 1)
    part = sources - low
    return [(low, 1 - part), ((low + 1).clip(None, n - 1), part)]


def _cubic_taps(n, sources):
    """Keys' kernel with a = -0.75; positions beyond the edges repeat the edge."""
    a = -0.75

    def inner(x):
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def outer(x):
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    low = (sources // 1).astype("i8")
    part = sources - low
    weights = [outer(part + 1), inner(part), inner(1 - part), outer(2 - part)]
    return [((low + k - 1).clip(0, n - 1), weight) for k, weight in enumerate(weights)]


def _resample(x, dim, taps):
    """The sum over the taps of weight * x at their positions along dim."""
    shape = [1] * x.dim()
    shape[dim] = -1
    total = None
    for index, weights in taps:
        weight = _C.tensor(weights, dtype=x.dtype, device=x.device).reshape(shape)
        part = x.index_select(dim, _C.tensor(index, device="cpu")) * weight
        total = part if total is None else total + part
    return total


def interpolate(
    input,
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=None,
    recompute_scale_factor=None,
    antialias=False,
):
    """torch.nn.functional.interpolate. In 16-bit floats the arithmetic is float32's.

    Raises:
        NotImplementedError: a mode that does not go with the input. ValueError: arguments that
        exclude each other. RuntimeError: an empty input or result.
    """
    _check_mode(input, mode, align_corners, antialias)
    out, scales = _sizes(input, size, scale_factor, recompute_scale_factor)
    half = input.element_size() == 2
    x = input.float() if half and mode not in _NEAREST else input
    taps_of = _cubic_taps if mode == "bicubic" else _linear_taps
    for d, (n, scale) in enumerate(zip(out, scales, strict=True), 2):
        have = x.shape[d]
        if mode in _NEAREST:
            index = _nearest_index(have, n, scale, mode == "nearest-exact")
            x = x.index_select(d, _C.tensor(index, device="cpu"))
        elif mode == "area":
            x = _area(x, d, n)
        else:
            x = _resample(x, d, taps_of(have, _sources(have, n, scale, align_corners)))
    return x.to(input.dtype) if half else x


def _area(x, dim, n):
    """Means over windows that cover the input (adaptive average pooling along one dimension)."""
    have = x.shape[dim]
    if have % n == 0:
        return x.unflatten(dim, (n, have // n)).mean(dim + 1)
    if n > have:  # windows of one element or two
        import numpy

        places = numpy.arange(n)
        low, last = places * have // n, -(-(places + 1) * have // n) - 1
        half = numpy.full(n, 0.5)
        return _resample(x, dim, [(low, half), (last, half)])
    spans = [(i * have // n, -(-(i + 1) * have // n)) for i in range(n)]
    parts = [x.narrow(dim, low, high - low).mean(dim, True) for low, high in spans]
    return _C.cat(parts, dim)


# ---- sliding blocks


def _two(value):
    return tuple(value) if isinstance(value, (tuple, list)) else (value, value)


def _block_index(size, kernel, dilation, stride, padding):
    """Flat positions in the padded image of (tap, block), and the number of blocks each way."""
    kernel, dilation, stride, padding = map(_two, (kernel, dilation, stride, padding))
    padded = [n + 2 * p for n, p in zip(size, padding, strict=True)]
    counts = []
    for n, k, d, s in zip(padded, kernel, dilation, stride, strict=True):
        if k < 1 or d < 1 or s < 1:
            raise RuntimeError(
                f"kernel size, dilation and stride should be greater than zero, but got {kernel}, "
                f"{dilation}, {stride}"
            )
        counts.append((n - d * (k - 1) - 1) // s + 1)
    if min(counts) < 1:
        raise RuntimeError(
            f"Given input with spatial size {tuple(size)}, kernel_size={kernel}, "
            f"dilation={dilation}, padding={padding}, calculated shape of the array of sliding "
            f"blocks as {tuple(counts)}, but its components must be at least one."
        )
    down, across = (
        _C._arange(0, k, 1, None)[:, None] * d + _C._arange(0, count, 1, None) * s
        for k, d, count, s in zip(kernel, dilation, counts, stride, strict=True)
    )
    flat = down[:, None, :, None] * padded[1] + across[None, :, None, :]
    return flat.flatten(), padded, counts


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """The blocks of an image (N, C, H, W) as columns: (N, C * kernel's size, blocks)."""
    if input.dim() not in (3, 4):
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero "
            f"dimensions for input, but got: {list(input.shape)}"
        )
    index, _, counts = _block_index(input.shape[-2:], kernel_size, dilation, stride, padding)
    down, across = _two(padding)
    x = pad(input, (across, across, down, down)) if down or across else input
    columns = x.flatten(-2).index_select(input.dim() - 2, index)
    rows = input.shape[-3] * _two(kernel_size)[0] * _two(kernel_size)[1]
    return columns.reshape(*input.shape[:-3], rows, counts[0] * counts[1])


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """The sum of blocks at their places: what unfold's gradient is."""
    output_size, kernel, edge = _two(output_size), _two(kernel_size), _two(padding)
    index, padded, counts = _block_index(output_size, kernel, dilation, stride, padding)
    taps, blocks = kernel[0] * kernel[1], counts[0] * counts[1]
    if input.dim() not in (2, 3) or input.shape[-2] % taps or input.shape[-1] != blocks:
        raise RuntimeError(
            f"Given output_size={output_size}, kernel_size={kernel}, dilation={_two(dilation)}, "
            f"padding={edge}, stride={_two(stride)}, expected input of shape (N, C * {taps}, "
            f"{counts[0]} * {counts[1]} = {blocks}), but got {list(input.shape)}."
        )
    lead = [*input.shape[:-2], input.shape[-2] // taps]
    image = _C._full("zeros", [*lead, padded[0] * padded[1]], 0, input.dtype, input.device, False)
    image = image.index_add_(len(lead), index, input.reshape(*lead, taps * blocks))
    image = image.reshape(*lead, *padded)
    return image[..., edge[0] : edge[0] + output_size[0], edge[1] : edge[1] + output_size[1]]
