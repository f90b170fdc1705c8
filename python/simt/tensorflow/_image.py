"""Functions of tf.image: images are [height, width, channels], or batches of them."""

import numpy as np

from simt._core import torch as C
from simt.keras_backend import image as kimage
from simt.keras_backend import numpy as knp
from simt.tensorflow import _random
from simt.tensorflow._tensor import FLOATS, convert, native
from simt.tensorflow._types import OF_NATIVE


def resize(
    images, size, method="bilinear", preserve_aspect_ratio=False, antialias=False, name=None
):
    images = convert(images)
    if images.dim() not in (3, 4):
        raise ValueError("'images' must have either 3 or 4 dimensions.")
    height, width = (int(n) for n in size)
    if preserve_aspect_ratio:
        ratio = min(height / images.shape[-3], width / images.shape[-2])
        height, width = (round(ratio * images.shape[at]) for at in (-3, -2))
    if method != "nearest":
        images = images.to(C.float32)
    return kimage.resize(images, (height, width), method, antialias, data_format="channels_last")


def flip_left_right(image):
    return C.flip(convert(image), (-2,))


def flip_up_down(image):
    return C.flip(convert(image), (-3,))


def transpose(image, name=None):
    return convert(image).transpose(-3, -2)


def rot90(image, k=1, name=None):
    image = convert(image)
    return knp.rot90(image, k, (image.dim() - 3, image.dim() - 2))


def _largest(dtype):
    return OF_NATIVE[dtype].max


def convert_image_dtype(image, dtype, saturate=False, name=None):
    image, dtype = convert(image), native(dtype)
    if image.dtype is dtype:
        return image
    if dtype in FLOATS:
        made = image.to(dtype)
        return made if image.dtype in FLOATS else made * (1.0 / _largest(image.dtype))
    if image.dtype in FLOATS:
        made = image * (_largest(dtype) + 0.5)
        return (C.clamp(made, 0, _largest(dtype)) if saturate else made).to(dtype)
    shift = (_largest(image.dtype) + 1) // (_largest(dtype) + 1)
    if shift > 0:
        return knp.floor_divide(image, shift).to(dtype)
    return image.to(dtype) * ((_largest(dtype) + 1) // (_largest(image.dtype) + 1))


def _as_float(image, change):
    """change of the image as floating-point numbers, in the dtype that it had."""
    image = convert(image)
    if image.dtype in FLOATS:
        return change(image)
    made = change(convert_image_dtype(image, "float32"))
    return convert_image_dtype(made, image.dtype, saturate=True)


def adjust_brightness(image, delta):
    return _as_float(image, lambda x: x + delta)


def adjust_contrast(images, contrast_factor):
    def change(x):
        mean = knp.mean(x, (-3, -2), True)
        return (x - mean) * contrast_factor + mean

    return _as_float(images, change)


def rgb_to_grayscale(images, name=None):
    weights = C.tensor([0.2989, 0.587, 0.114])
    return _as_float(images, lambda x: knp.sum(x * weights.to(x.dtype), -1, True))


def grayscale_to_rgb(images, name=None):
    images = convert(images)
    return C.cat([images] * 3, -1)


def per_image_standardization(image):
    image = convert(image)
    image = image if image.dtype in FLOATS else image.to(C.float32)
    axes = (-3, -2, -1)
    least = 1.0 / float(np.sqrt(np.prod(image.shape[-3:])))
    deviation = C.clamp_min(knp.std(image, axes, True), least)
    return (image - knp.mean(image, axes, True)) / deviation


def crop_to_bounding_box(image, offset_height, offset_width, target_height, target_width):
    image = convert(image)
    top, left = int(offset_height), int(offset_width)
    bottom, right = top + int(target_height), left + int(target_width)
    if top < 0 or left < 0:
        raise ValueError("offset_height must be >= 0." if top < 0 else "offset_width must be >= 0.")
    if bottom > image.shape[-3] or right > image.shape[-2]:
        which = "height must be >= target + offset." if bottom > image.shape[-3] else None
        raise ValueError(which or "width must be >= target + offset.")
    return image[..., top:bottom, left:right, :]


def pad_to_bounding_box(image, offset_height, offset_width, target_height, target_width):
    image = convert(image)
    top, left = int(offset_height), int(offset_width)
    bottom = int(target_height) - image.shape[-3] - top
    right = int(target_width) - image.shape[-2] - left
    if bottom < 0 or right < 0:
        name = "height" if bottom < 0 else "width"
        raise ValueError(f"{name} must be <= target - offset")
    around = [[0, 0]] * (image.dim() - 3) + [[top, bottom], [left, right], [0, 0]]
    return knp.pad(image, around, "constant", 0)


def resize_with_crop_or_pad(image, target_height, target_width):
    image = convert(image)
    height, width = int(target_height), int(target_width)
    tops = max((image.shape[-3] - height) // 2, 0), max((image.shape[-2] - width) // 2, 0)
    kept = min(image.shape[-3], height), min(image.shape[-2], width)
    image = crop_to_bounding_box(image, *tops, *kept)
    return pad_to_bounding_box(
        image, (height - kept[0]) // 2, (width - kept[1]) // 2, height, width
    )


def resize_with_pad(image, target_height, target_width, method="bilinear", antialias=False):
    image = convert(image)
    height, width = int(target_height), int(target_width)
    ratio = max(image.shape[-3] / height, image.shape[-2] / width)
    exact = [n / ratio for n in image.shape[-3:-1]]
    image = resize(image, [max(int(n), 1) for n in exact], method, antialias=antialias)
    top, left = int((height - exact[0]) / 2), int((width - exact[1]) / 2)
    return pad_to_bounding_box(image, top, left, height, width)


class ResizeMethod:
    BILINEAR = "bilinear"
    NEAREST_NEIGHBOR = "nearest"
    BICUBIC = "bicubic"
    LANCZOS3 = "lanczos3"
    LANCZOS5 = "lanczos5"
    AREA = "area"
    GAUSSIAN = "gaussian"
    MITCHELLCUBIC = "mitchellcubic"


def central_crop(image, central_fraction):
    image = convert(image)
    if not 0 < central_fraction <= 1:
        raise ValueError("central_fraction must be within (0, 1]")
    height, width = image.shape[-3], image.shape[-2]
    top, left = (int((n - n * central_fraction) / 2) for n in (height, width))
    return crop_to_bounding_box(image, top, left, height - 2 * top, width - 2 * left)


def _drawn(seed, low=0.0, high=1.0):
    return float(_random.uniform((), low, high, seed=seed).item())


def random_flip_left_right(image, seed=None):
    return flip_left_right(image) if _drawn(seed) < 0.5 else convert(image)


def random_flip_up_down(image, seed=None):
    return flip_up_down(image) if _drawn(seed) < 0.5 else convert(image)


def random_brightness(image, max_delta, seed=None):
    if max_delta < 0:
        raise ValueError("max_delta must be non-negative.")
    return adjust_brightness(image, _drawn(seed, -max_delta, max_delta))


def random_contrast(image, lower, upper, seed=None):
    if upper <= lower:
        raise ValueError("upper must be > lower.")
    return adjust_contrast(image, _drawn(seed, lower, upper))


def random_crop(value, size, seed=None, name=None):
    value = convert(value)
    starts = []
    for have, wanted in zip(value.shape, size, strict=True):
        if wanted > have:
            raise ValueError("Need value.shape >= size, got ", tuple(value.shape), tuple(size))
        starts.append(int(_drawn(seed) * (have - wanted + 1)))
    return value[tuple(slice(s, s + int(n)) for s, n in zip(starts, size, strict=True))]
