"""keras.ops.image. Resizing multiplies each axis by a matrix of weights; transforms look points up.

Both are made of operations with gradients.
"""

import itertools

import numpy as np
from keras.src import backend

from simt._core import torch as C
from simt.keras_backend import numpy as knp
from simt.keras_backend import random
from simt.keras_backend.core import FLOATS, NAMES, convert_to_numpy, convert_to_tensor
from simt.torch import _functions as F

RESIZE_INTERPOLATIONS = ("bilinear", "nearest", "lanczos3", "lanczos5", "bicubic")
_ORDERS = {"nearest": 0, "bilinear": 1}
_FILL_MODES = ("constant", "nearest", "wrap", "mirror", "reflect")


def _one_of(name, value, choices):
    if value not in choices:
        raise ValueError(
            f"Invalid value for argument `{name}`. Expected of one {set(choices)}. "
            f"Received: {name}={value}"
        )


def _check_rank(images):
    if images.dim() not in (3, 4):
        raise ValueError(
            "Invalid images rank: expected rank 3 (single image) "
            "or rank 4 (batch of images). Received input with shape: "
            f"images.shape={tuple(images.shape)}"
        )


def _image(images, data_format):
    """The tensor, its format, its axis of channels."""
    images = convert_to_tensor(images)
    data_format = backend.standardize_data_format(data_format)
    _check_rank(images)
    return images, data_format, -1 if data_format == "channels_last" else -3


# ---- colours


def rgb_to_grayscale(images, data_format=None):
    images, _, axis = _image(images, data_format)
    if images.shape[axis] not in (1, 3):
        raise ValueError(
            "Invalid channel size: expected 3 (RGB) or 1 (Grayscale). "
            f"Received input with shape: images.shape={tuple(images.shape)}"
        )
    if images.shape[axis] == 1:
        return images.clone()
    red, green, blue = images.to(knp.result_dtype(images.dtype, float)).unbind(axis)
    gray = red * 0.2989 + green * 0.5870 + blue * 0.1140
    return gray.unsqueeze(axis).to(images.dtype)


def _float_image(images, data_format):
    images, _, axis = _image(images, data_format)
    if images.dtype not in FLOATS:
        raise ValueError(
            "Invalid images dtype: expected float dtype. "
            f"Received: images.dtype={NAMES[images.dtype]}"
        )
    return images, axis


def rgb_to_hsv(images, data_format=None):
    images, axis = _float_image(images, data_format)
    images = C.where(C.abs(images) < F.finfo(images.dtype).eps, knp.zeros_like(images), images)
    r, g, b = images.unbind(axis)
    value = C.maximum(C.maximum(r, g), b)
    spread = value - C.minimum(C.minimum(r, g), b)
    zero, one = knp.zeros_like(value), knp.ones_like(value)
    saturation = C.where(value > 0, spread / C.where(value > 0, value, one), zero)
    norm = 1 / (6 * C.where(spread > 0, spread, one))
    hue = C.where(value == g, norm * (b - r) + 2 / 6, norm * (r - g) + 4 / 6)
    hue = C.where(value == r, norm * (g - b), hue)
    hue = C.where(spread > 0, hue, zero) + (hue < 0).to(hue.dtype)
    return C.stack([hue, saturation, value], axis).to(images.dtype)


def hsv_to_rgb(images, data_format=None):
    images, axis = _float_image(images, data_format)
    hue, saturation, value = images.unbind(axis)
    turn = C.remainder(hue, knp.ones_like(hue)) * 6
    red = C.clip(C.abs(turn - 3) - 1, 0.0, 1.0)
    green = C.clip(2 - C.abs(turn - 2), 0.0, 1.0)
    blue = C.clip(2 - C.abs(turn - 4), 0.0, 1.0)
    parts = [value * (1 - saturation + saturation * part) for part in (red, green, blue)]
    return C.stack(parts, axis)


# ---- resizing


def _triangle(x):
    return np.maximum(0, 1 - x)


def _cubic(x):
    """Keys' kernel, a = -0.5."""
    near = (1.5 * x - 2.5) * x * x + 1
    far = ((-0.5 * x + 2.5) * x - 4) * x + 2
    return np.where(x < 1, near, np.where(x < 2, far, 0))


def _lanczos(radius):
    return lambda x: np.where(x < radius, np.sinc(x) * np.sinc(x / radius), 0)


_KERNELS = {
    "bilinear": _triangle,
    "bicubic": _cubic,
    "lanczos3": _lanczos(3),
    "lanczos5": _lanczos(5),
}
_METHODS = {
    **dict.fromkeys(("linear", "bilinear", "trilinear", "triangle"), "bilinear"),
    **dict.fromkeys(("cubic", "bicubic", "tricubic"), "bicubic"),
    "lanczos3": "lanczos3",
    "lanczos5": "lanczos5",
}


def _weights(size, made, scale, translation, kernel, antialias):
    """[size, made]: how much of each pixel is in each new one."""
    width = max(1 / scale, 1.0) if antialias else 1.0
    at = (np.arange(made) + 0.5 - translation) / scale - 0.5
    weights = kernel(np.abs(at[None, :] - np.arange(size)[:, None]) / width)
    total = weights.sum(0, keepdims=True)
    small = np.abs(total) <= 1000 * np.finfo("float32").eps
    weights = np.where(small, 0, weights / np.where(small, 1, total))
    return np.where((at >= -0.5) & (at <= size - 0.5), weights, 0)


def _along(x, axis, weights):
    weights = convert_to_tensor(weights, x.dtype)
    return knp.moveaxis(C.matmul(knp.moveaxis(x, axis, -1), weights), -1, axis)


def _weighted(images, axes, weights):
    """images with each axis multiplied by its matrix; integers are rounded within their range."""
    dtype = images.dtype
    x = images if dtype in FLOATS else images.to(C.float32)
    for axis, matrix in zip(axes, weights, strict=True):
        x = _along(x, axis, matrix)
    if dtype not in FLOATS:
        low, high = C.amin(images).to(C.float32), C.amax(images).to(C.float32)
        x = C.minimum(C.maximum(C.round(x), low), high)
    return x.to(dtype)


def resize(
    images,
    size,
    interpolation="bilinear",
    antialias=False,
    crop_to_aspect_ratio=False,
    pad_to_aspect_ratio=False,
    fill_mode="constant",
    fill_value=0.0,
    data_format=None,
):
    data_format = backend.standardize_data_format(data_format)
    _one_of("interpolation", interpolation, RESIZE_INTERPOLATIONS)
    if fill_mode != "constant":
        raise ValueError(
            "Invalid value for argument `fill_mode`. Only `'constant'` "
            f"is supported. Received: fill_mode={fill_mode}"
        )
    if pad_to_aspect_ratio and crop_to_aspect_ratio:
        raise ValueError(
            "Only one of `pad_to_aspect_ratio` & `crop_to_aspect_ratio` can be `True`."
        )
    if len(size) != 2:
        raise ValueError(
            "Argument `size` must be a tuple of two elements "
            f"(height, width). Received: size={size}"
        )
    x = convert_to_tensor(images)
    _check_rank(x)
    axes = (-3, -2) if data_format == "channels_last" else (-2, -1)
    size = tuple(int(n) for n in size)
    if crop_to_aspect_ratio:
        x = _crop(x, axes, size)
    elif pad_to_aspect_ratio:
        x = _pad(x, axes, size, fill_value)
    pairs = [(a, n) for a, n in zip(axes, size, strict=True) if x.shape[a] != n or antialias]
    axes, sizes = [a for a, _ in pairs], [n for _, n in pairs]
    if interpolation == "nearest":
        for axis, made in zip(axes, sizes, strict=True):
            at = np.floor((np.arange(made) + 0.5) * x.shape[axis] / made).astype("int64")
            x = x.index_select(axis, convert_to_tensor(at))
        return x
    kernel = _KERNELS[interpolation]
    weights = [
        _weights(x.shape[a], n, n / x.shape[a], 0.0, kernel, antialias)
        for a, n in zip(axes, sizes, strict=True)
    ]
    return _weighted(x, axes, weights)


def _crop(x, axes, size):
    height, width = (x.shape[a] for a in axes)
    crop_height = max(min(height, int(width * size[0] / size[1])), 1)
    crop_width = max(min(width, int(height * size[1] / size[0])), 1)
    x = x.narrow(axes[0], int((height - crop_height) / 2), crop_height)
    return x.narrow(axes[1], int((width - crop_width) / 2), crop_width)


def _pad(x, axes, size, value):
    height, width = (x.shape[a] for a in axes)
    above = int((max(height, int(width * size[0] / size[1])) - height) / 2)
    left = int((max(width, int(height * size[1] / size[0])) - width) / 2)
    widths = [[0, 0] for _ in x.shape]
    if above > 0:
        widths[axes[0]] = [above, above]
    elif left > 0:
        widths[axes[1]] = [left, left]
    return knp._pad_constant(x, widths, value)


def scale_and_translate(
    images, output_shape, scale, translation, spatial_dims, method, antialias=True
):
    _one_of("method", method, _METHODS)
    images = convert_to_tensor(images)
    scale = convert_to_numpy(convert_to_tensor(scale)).tolist()
    translation = convert_to_numpy(convert_to_tensor(translation)).tolist()
    kernel = _KERNELS[_METHODS[method]]
    weights = [
        _weights(images.shape[d], output_shape[d], s, t, kernel, antialias)
        for d, s, t in zip(spatial_dims, scale, translation, strict=True)
    ]
    return _weighted(images, spatial_dims, weights)


# ---- looking points up


def _inside(i, n, mode):
    """Integer positions brought into 0 .. n - 1; where they were outside, for 'constant'."""
    if mode == "constant":
        return C.clip(i, 0, n - 1), C.logical_and(i >= 0, i < n)
    if mode == "nearest":
        return C.clip(i, 0, n - 1), None
    if mode == "wrap":
        return C.remainder(i, n), None
    period = max(2 * (n - 1), 1) if mode == "mirror" else 2 * n
    i = C.remainder(i, period)
    return C.where(i >= n, period - i - (mode == "reflect"), i), None


def _look_up(x, depth, points, order, mode, fill, base=None):
    """x[p0, p1, ...] at points of its `depth` leading axes after those that base counts already.

    base: the flat index of the axis before, or None. Returns points' shape and x's other axes.
    """
    sizes = x.shape[:depth] if base is None else x.shape[1 : depth + 1]
    rest = x.shape[depth if base is None else depth + 1 :]
    rows = x.reshape(-1, *rest)
    lows = [C.floor(p) if order else C.round(p) for p in points]
    out = None
    for corner in itertools.product((0, 1), repeat=depth) if order else [(0,) * depth]:
        flat, weight, valid = base, None, None
        for p, low, n, bit in zip(points, lows, sizes, corner, strict=True):
            i, ok = _inside(low.to(C.int64) + bit, n, mode)
            flat = i if flat is None else flat * n + i
            if ok is not None:
                valid = ok if valid is None else C.logical_and(valid, ok)
            if order:
                share = p - low if bit else 1 - (p - low)
                weight = share if weight is None else weight * share
        shape = flat.shape
        part = rows.index_select(0, flat.reshape(-1)).reshape(*shape, *rest)
        form = [*shape, *[1] * len(rest)]
        if valid is not None:
            part = C.where(valid.reshape(form), part, knp._scalar(fill, part.dtype))
        if weight is not None:
            part = part * weight.reshape(form)
        out = part if out is None else out + part
    return out


def map_coordinates(inputs, coordinates, order, fill_mode="constant", fill_value=0.0):
    inputs = convert_to_tensor(inputs)
    coordinates = convert_to_tensor(coordinates)
    if coordinates.shape[0] != inputs.dim():
        raise ValueError(
            "First dim of `coordinates` must be the same as the rank of `inputs`. "
            f"Received inputs with shape: {tuple(inputs.shape)} and coordinate "
            f"leading dim of {coordinates.shape[0]}"
        )
    if coordinates.dim() < 2:
        raise ValueError(
            "Invalid coordinates rank: expected at least rank 2."
            f" Received input with shape: {tuple(coordinates.shape)}"
        )
    if fill_mode not in _FILL_MODES:
        raise ValueError(
            "Invalid value for argument `fill_mode`. Expected one of "
            f"{set(_FILL_MODES)}. Received: fill_mode={fill_mode}"
        )
    if order not in (0, 1):
        raise ValueError(
            f"Invalid value for argument `order`. Expected one of [0, 1]. Received: order={order}"
        )
    dtype = inputs.dtype
    x = inputs if dtype in FLOATS else inputs.to(C.float64)
    points = list(knp._float(coordinates).unbind(0))
    out = _look_up(x, inputs.dim(), points, order, fill_mode, fill_value)
    return out.to(dtype) if dtype in FLOATS else C.round(out).to(dtype)


def _transformed(images, points, interpolation, fill_mode, fill_value, data_format):
    """images sampled at points (y, x) of each, [batch, height, width]."""
    single = images.dim() == 3
    x = images.unsqueeze(0) if single else images
    if data_format == "channels_first":
        x = x.permute(0, 2, 3, 1)
    y_points, x_points = points(x.shape)
    batch = C._arange(0, x.shape[0], 1, C.int64).reshape(-1, 1, 1).expand(y_points.shape)
    compute = knp.result_dtype(x.dtype, "float32")
    out = _look_up(
        x.to(compute), 2, [y_points, x_points], _ORDERS[interpolation], fill_mode, fill_value, batch
    )
    out = out.to(images.dtype)
    if data_format == "channels_first":
        out = out.permute(0, 3, 1, 2)
    return out.squeeze(0) if single else out


def _grid(height, width):
    y = C._arange(0, height, 1, C.float32).reshape(1, height, 1)
    return y.expand(1, height, width), C._arange(0, width, 1, C.float32).reshape(1, 1, width)


def _projected(transform, shape, divide):
    """The points that rows of eight numbers map the pixels to."""
    transform = transform.to(C.float32)
    a0, a1, a2, b0, b1, b2, c0, c1 = (t.reshape(-1, 1, 1) for t in transform.unbind(1))
    y, x = _grid(shape[1], shape[2])
    full = (shape[0], shape[1], shape[2])
    x_in, y_in = a0 * x + a1 * y + a2, b0 * x + b1 * y + b2
    if divide:
        scale = c0 * x + c1 * y + 1
        x_in, y_in = x_in / scale, y_in / scale
    return y_in.expand(full), x_in.expand(full)


def affine_transform(
    images,
    transform,
    interpolation="bilinear",
    fill_mode="constant",
    fill_value=0,
    data_format=None,
):
    data_format = backend.standardize_data_format(data_format)
    _one_of("interpolation", interpolation, _ORDERS)
    _one_of("fill_mode", fill_mode, _FILL_MODES)
    images, transform = convert_to_tensor(images), convert_to_tensor(transform)
    _check_rank(images)
    if transform.dim() not in (1, 2):
        raise ValueError(
            "Invalid transform rank: expected rank 1 (single transform) "
            "or rank 2 (batch of transforms). Received input with shape: "
            f"transform.shape={tuple(transform.shape)}"
        )
    rows = transform if transform.dim() == 2 else transform.unsqueeze(0)
    return _transformed(
        images,
        lambda shape: _projected(rows, shape, False),
        interpolation,
        fill_mode,
        fill_value,
        data_format,
    )


def perspective_transform(
    images, start_points, end_points, interpolation="bilinear", fill_value=0, data_format=None
):
    data_format = backend.standardize_data_format(data_format)
    images = convert_to_tensor(images)
    start, end = convert_to_tensor(start_points), convert_to_tensor(end_points)
    _one_of("interpolation", interpolation, _ORDERS)
    _check_rank(images)
    for name, points in (("start_points", start), ("end_points", end)):
        if points.dim() not in (2, 3) or tuple(points.shape[-2:]) != (4, 2):
            raise ValueError(
                f"Invalid {name} shape: expected (4,2) for a single image"
                f" or (N,4,2) for a batch. Received shape: {tuple(points.shape)}"
            )
    if start.shape != end.shape:
        raise ValueError(
            "start_points and end_points must have the same shape."
            f" Received start_points.shape={tuple(start.shape)}, "
            f"end_points.shape={tuple(end.shape)}"
        )
    rows = compute_homography_matrix(start.reshape(-1, 4, 2), end.reshape(-1, 4, 2))
    return _transformed(
        images,
        lambda shape: _projected(rows, shape, True),
        interpolation,
        "constant",
        fill_value,
        data_format,
    )


def compute_homography_matrix(start_points, end_points):
    """The eight numbers that map the end points to the start points, by linear equations."""
    from simt.keras_backend.linalg import solve

    start, end = convert_to_tensor(start_points), convert_to_tensor(end_points)
    dtype = knp.result_dtype(start.dtype, end.dtype, float)
    compute = knp.result_dtype(dtype, "float32")
    start, end = start.to(compute), end.to(compute)
    u, v = start.unbind(-1)
    x, y = end.unbind(-1)
    zero, one = knp.zeros_like(x), knp.ones_like(x)
    first = C.stack([x, y, one, zero, zero, zero, -u * x, -u * y], -1)
    second = C.stack([zero, zero, zero, x, y, one, -v * x, -v * y], -1)
    matrix = C.stack([first, second], 2).reshape(-1, 8, 8)
    target = C.stack([u, v], 2).reshape(-1, 8)
    return solve(matrix, target).to(dtype)


# ---- filters


def _filtered(images, kernels, data_format):
    """Each channel convolved with each of kernels [k, height, width], zeros around."""
    single = images.dim() == 3
    x = images.unsqueeze(0) if single else images
    if data_format == "channels_last":
        x = x.permute(0, 3, 1, 2)
    batch, channels, height, width = x.shape
    count, tall, wide = kernels.shape
    widths = [[0, 0], [0, 0]] + [[(k - 1) // 2, k - 1 - (k - 1) // 2] for k in (tall, wide)]
    x = knp._pad_constant(x, widths, 0).reshape(batch * channels, 1, *_sizes(height, width, widths))
    out = C.conv2d(x, kernels.unsqueeze(1)).reshape(batch, channels, count, height, width)
    last = data_format == "channels_last"
    out = out.permute(0, 3, 4, 1, 2) if last else out.permute(0, 1, 3, 4, 2)
    return out.squeeze(0) if single else out


def _sizes(height, width, widths):
    return height + sum(widths[2]), width + sum(widths[3])


def gaussian_blur(images, kernel_size=(3, 3), sigma=(1.0, 1.0), data_format=None):
    images, data_format, _ = _image(images, data_format)
    dtype = images.dtype
    compute = knp.result_dtype(dtype, "float32")
    sigma = convert_to_tensor(sigma, compute)
    lines = []
    for i in (0, 1):
        n = int(kernel_size[i])
        at = C._arange(0, n, 1, compute) - (n - 1) / 2
        line = C.exp(-0.5 * C.square(at / sigma[i]))
        lines.append(line / C.sum(line))
    kernel = lines[1].unsqueeze(1) * lines[0].unsqueeze(0)
    return _filtered(images.to(compute), kernel.unsqueeze(0), data_format).squeeze(-1).to(dtype)


def elastic_transform(
    images,
    alpha=20.0,
    sigma=5.0,
    interpolation="bilinear",
    fill_mode="reflect",
    fill_value=0.0,
    seed=None,
    data_format=None,
):
    _one_of("interpolation", interpolation, _ORDERS)
    _one_of("fill_mode", fill_mode, _FILL_MODES)
    images, data_format, _ = _image(images, data_format)
    sigma, alpha = float(sigma), float(alpha)
    window = (int(6 * sigma) | 1,) * 2

    def points(shape):
        field = random.normal((*shape[:3], 2), 0.0, 1.0, "float32", seed) * sigma
        field = gaussian_blur(field, window, (sigma, sigma), "channels_last") * alpha
        y, x = _grid(shape[1], shape[2])
        return y + field[..., 1], x + field[..., 0]

    return _transformed(images, points, interpolation, fill_mode, fill_value, data_format)


def sobel_edges(images, data_format=None):
    images, data_format, _ = _image(images, data_format)
    down = convert_to_tensor([[-1.0, -2.0, -1.0], [0.0, 0.0, 0.0], [1.0, 2.0, 1.0]], "float32")
    kernels = C.stack([down, down.transpose(0, 1)])
    compute = knp.result_dtype(images.dtype, "float32")
    return _filtered(images.to(compute), kernels.to(compute), data_format).to(images.dtype)
