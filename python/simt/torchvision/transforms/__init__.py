"""Transforms: Compose, ToTensor, Normalize, Lambda, Resize, CenterCrop, RandomHorizontalFlip.

They take PIL images (Pillow is imported only when one comes) and tensors, as torchvision's do. A
transform with ``_simt_batch`` takes a whole batch at once: of images (N, C, H, W), or of raw uint8
images (N, H, W) as the dataset has them. A DataLoader uses that when every transform of the dataset
has it, and runs no Python per sample.
"""

from enum import Enum

from simt import _core, torch
from simt._missing import module_hooks

__all__ = [
    "CenterCrop", "Compose", "InterpolationMode", "Lambda", "Normalize", "RandomHorizontalFlip",
    "Resize", "ToTensor",
]  # fmt: skip


class InterpolationMode(Enum):
    """Names of Pillow's resampling filters."""

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


# Pillow's own numbers for them, which Resize takes as well
_PILLOW_NUMBERS = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic", 4: "box", 5: "hamming"}


def _is_pil(image):
    import sys

    pil = sys.modules.get("PIL.Image")
    return pil is not None and isinstance(image, pil.Image)


class Compose:
    """Transforms one after the other."""

    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, img):
        for t in self.transforms:
            img = t(img)
        return img

    @property
    def _takes_tensor(self):
        return bool(self.transforms) and getattr(self.transforms[0], "_takes_tensor", False)

    def _simt_batch(self, images):
        for t in self.transforms:
            images = batch_of(t, images)
            if images is None:
                return None
        return images

    def __repr__(self):
        lines = [self.__class__.__name__ + "("]
        lines += [f"    {t}" for t in self.transforms]
        return "\n".join([*lines, ")"])


class ToTensor:
    """A PIL image or uint8 array (H, W[, C]) as a float32 tensor (C, H, W) in [0, 1].

    Other dtypes keep their values, as in torchvision.

    Raises:
        TypeError: neither an image nor an array.
        ValueError: an array that is not of two or three dimensions.
    """

    _takes_tensor = True  # raw images may come as uint8 tensors (H, W)

    def __call__(self, pic):
        if isinstance(pic, torch.Tensor):
            if pic.dtype == torch.uint8 and pic.dim() == 2:
                return pic.unsqueeze(0).to(torch.float32).div(255)
            raise TypeError(f"pic should be PIL Image or ndarray. Got {type(pic)}")
        import numpy

        mode = None
        if _is_pil(pic):
            mode = pic.mode
            pic = numpy.array(pic, copy=True)
            if mode == "1":
                pic = 255 * pic.astype(numpy.uint8)
            elif mode == "I;16":
                pic = pic.view(numpy.int16)
        elif not isinstance(pic, numpy.ndarray):
            raise TypeError(f"pic should be PIL Image or ndarray. Got {type(pic)}")
        elif pic.ndim not in (2, 3):
            raise ValueError(f"pic should be 2/3 dimensional. Got {pic.ndim} dimensions.")
        if pic.ndim == 2:
            pic = pic[:, :, None]
        img = torch.from_numpy(numpy.ascontiguousarray(pic.transpose(2, 0, 1)))
        if img.dtype == torch.uint8:
            return img.to(torch.get_default_dtype()).div(255)
        return img

    def _simt_batch(self, images):
        return images.unsqueeze(1).to(torch.float32).div(255)

    def __repr__(self):
        return f"{self.__class__.__name__}()"


def batch_of(transform, images):
    """A transform of a batch; None when it takes Python per image (all others: classes derived from
    ours may do anything)."""
    raw = images.dim() == 3
    kind = type(transform)
    if kind is Compose:
        return transform._simt_batch(images)
    if kind not in (_OF_RAW if raw else _OF_IMAGES):
        return None
    return transform._simt_batch(images)


def _single(values):
    """The number in a list or tuple of one number, else None."""
    if isinstance(values, (list, tuple)) and len(values) == 1 and type(values[0]) in (int, float):
        return float(values[0])
    return None


class Normalize:
    """(x - mean) / std by channel, on float tensors (..., C, H, W).

    Raises:
        TypeError: not a tensor, or not of floats.
        ValueError: fewer than three dimensions, or a standard deviation of zero.
    """

    def __init__(self, mean, std, inplace=False):
        self.mean = mean
        self.std = std
        self.inplace = inplace

    def __call__(self, tensor):
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"img should be Tensor Image. Got {type(tensor)}")
        if not tensor.is_floating_point():
            raise TypeError(f"Input tensor should be a float tensor. Got {tensor.dtype}.")
        if tensor.dim() < 3:
            raise ValueError(
                "Expected tensor to be a tensor image of size (..., C, H, W). Got tensor.size() = "
                f"{tensor.size()}"
            )
        mean, std = self._constants(tensor.dtype)
        if not self.inplace:
            tensor = tensor.clone()
        elif tensor.dim() < max(mean.dim(), std.dim()) or any(
            values.dim() and values.shape[0] not in (1, tensor.shape[-3]) for values in (mean, std)
        ):
            tensor.detach().clone().sub_(mean).div_(std)  # raises before anything is changed
        return tensor.sub_(mean).div_(std)

    def _constants(self, dtype):
        """mean and std as tensors that broadcast over (..., C, H, W)."""
        mean, std = torch.as_tensor(self.mean, dtype=dtype), torch.as_tensor(self.std, dtype=dtype)
        if (std == 0).any():
            raise ValueError(
                f"std evaluated to zero after conversion to {dtype}, leading to division by zero."
            )
        mean = mean.view(-1, 1, 1) if mean.dim() == 1 else mean
        return mean, std.view(-1, 1, 1) if std.dim() == 1 else std

    def _simt_batch(self, images):
        mean, std = _single(self.mean), _single(self.std)
        if mean is None or std is None:
            means, stds = self._constants(images.dtype)
            channels = (1, images.shape[1])
            if any(t.dim() and (t.dim() != 3 or t.shape[0] not in channels) for t in (means, stds)):
                return None  # sample by sample, for the error's words
            return images.sub(means).div(stds)
        if abs(std) < 1e-40:
            self._constants(images.dtype)  # raises if std is 0 as a float32
        # numbers ride along as a kernel's arguments; there they are rounded to float32
        return images.sub(mean).div(std)

    def __repr__(self):
        return f"{self.__class__.__name__}(mean={self.mean}, std={self.std})"


class Lambda:
    """Any function as a transform.

    Raises:
        TypeError: it cannot be called.
    """

    def __init__(self, lambd):
        if not callable(lambd):
            raise TypeError(f"Argument lambd should be callable, got {type(lambd).__name__!r}")
        self.lambd = lambd

    def __call__(self, img):
        return self.lambd(img)

    def __repr__(self):
        return f"{self.__class__.__name__}()"


class Resize:
    """A PIL image at another size: (h, w), or the length of the smaller edge.

    Args:
        size: (h, w), or one int: the smaller edge.
        interpolation: an InterpolationMode, or Pillow's number for it.
        max_size: the larger edge is at most this (only with one int as size).

    Raises:
        TypeError: size or interpolation of a wrong type, or no PIL image (tensors: not in simt
        yet).
        ValueError: size is not of 1 or 2 values, or max_size does not go with it.
    """

    def __init__(
        self, size, interpolation=InterpolationMode.BILINEAR, max_size=None, antialias=True
    ):
        if not isinstance(size, (int, list, tuple)):
            raise TypeError(f"Size should be int or sequence. Got {type(size)}")
        if not isinstance(size, int) and len(size) not in (1, 2):
            raise ValueError("If size is a sequence, it should have 1 or 2 values")
        if type(interpolation) is int and interpolation in _PILLOW_NUMBERS:
            interpolation = InterpolationMode(_PILLOW_NUMBERS[interpolation])
        if not isinstance(interpolation, InterpolationMode):
            raise TypeError(
                "Argument interpolation should be a InterpolationMode or a corresponding Pillow "
                f"integer constant, not {interpolation!r}"
            )
        self.size = size
        self.max_size = max_size
        self.interpolation = interpolation
        self.antialias = antialias

    def _target(self, width, height):
        if not isinstance(self.size, int) and len(self.size) == 2:
            if self.max_size is not None:
                raise ValueError(
                    "max_size should only be passed if size specifies the length of the smaller "
                    "edge, i.e. size should be an int or a sequence of length 1 in torchscript "
                    "mode."
                )
            return self.size[1], self.size[0]
        edge = self.size if isinstance(self.size, int) else self.size[0]
        short, long = (width, height) if width <= height else (height, width)
        new_short, new_long = edge, int(edge * long / short)
        if self.max_size is not None:
            if self.max_size <= edge:
                raise ValueError(
                    f"max_size = {self.max_size} must be strictly greater than the requested size "
                    f"for the smaller edge size = {[edge]}"
                )
            if new_long > self.max_size:
                new_short, new_long = int(self.max_size * new_short / new_long), self.max_size
        return (new_short, new_long) if width <= height else (new_long, new_short)

    def __call__(self, img):
        if isinstance(img, torch.Tensor):
            raise TypeError(
                "Resize of a tensor is not in simt yet; it takes PIL images (put it in front of "
                "ToTensor)"
            )
        if not _is_pil(img):
            raise TypeError(f"Unexpected type {type(img)}")
        from PIL import Image

        filter = getattr(Image.Resampling, self.interpolation.name.removesuffix("_EXACT"))
        return img.resize(self._target(*img.size), filter)

    def _simt_batch(self, images):
        width, height = self._target(images.shape[2], images.shape[1])
        narrower, lower = images.shape[2] - width, images.shape[1] - height
        if lower > 0 and narrower and lower >= 2 * narrower:
            return None  # some Pillows resample columns first then: the installed one decides
        filter = self.interpolation.value.removesuffix("-exact")
        return _core.torch._resize_images(images, height, width, filter)

    def __repr__(self):
        detail = (
            f"(size={self.size}, interpolation={self.interpolation.value}, "
            f"max_size={self.max_size}, "
        )
        return f"{self.__class__.__name__}{detail}antialias={self.antialias})"


def _size_pair(size):
    """(h, w) of CenterCrop's argument."""
    if isinstance(size, (int, float)):
        return (int(size), int(size))
    if not isinstance(size, (list, tuple)):
        raise TypeError(f"Size should be int or sequence. Got {type(size)}")
    if len(size) == 1:
        size = (size[0], size[0])
    if len(size) != 2:
        raise ValueError("Please provide only two dimensions (h, w) for size.")
    for n in size:
        if not isinstance(n, (int, float)) and not hasattr(n, "__index__"):
            raise TypeError(f"size should be of numbers, got {size!r}")
    return tuple(size)


def _margin(have, want):
    """Where the middle starts; negative: so much is added in front."""
    return round((have - want) / 2.0) if have >= want else -((want - have) // 2)


def _check_image(img):
    """Image transforms take PIL images and tensors of two dimensions or more."""
    if isinstance(img, torch.Tensor):
        if img.dim() < 2:
            raise TypeError(f"Tensor is not a torch image: its shape is {tuple(img.shape)}")
    elif not _is_pil(img):
        raise TypeError(f"Unexpected type {type(img)}")


class CenterCrop:
    """The middle of an image, (h, w); smaller images are padded with zeros."""

    def __init__(self, size):
        self.size = _size_pair(size)

    def __call__(self, img):
        _check_image(img)
        height, width = self.size
        if _is_pil(img):
            left = _margin(img.size[0], width)
            top = _margin(img.size[1], height)
            return img.crop((left, top, left + width, top + height))
        have_height, have_width = img.shape[-2], img.shape[-1]
        if have_height < height or have_width < width:
            padded_shape = (*img.shape[:-2], max(height, have_height), max(width, have_width))
            padded = torch.zeros(padded_shape, dtype=img.dtype)
            top = (padded_shape[-2] - have_height) // 2
            left = (padded_shape[-1] - have_width) // 2
            padded[..., top : top + have_height, left : left + have_width] = img
            img, (have_height, have_width) = padded, padded_shape[-2:]
        top, left = _margin(have_height, height), _margin(have_width, width)
        return img[..., top : top + height, left : left + width]

    def _simt_batch(self, images):
        return self(images)

    def __repr__(self):
        return f"{self.__class__.__name__}(size={self.size})"


class RandomHorizontalFlip:
    """Left and right exchanged with probability p."""

    def __init__(self, p=0.5):
        self.p = p

    def __call__(self, img):
        if not isinstance(img, torch.Tensor) or img.dim() < 2:
            _check_image(img)
        if not torch.rand(1).item() < self.p:
            return img
        if _is_pil(img):
            from PIL import Image

            return img.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        return img.flip(-1)

    def _simt_batch(self, images):
        turned = (torch.rand(len(images)) < self.p).view(-1, *[1] * (images.dim() - 1))
        return torch.where(turned, images.flip(-1), images)

    def __repr__(self):
        return f"{self.__class__.__name__}(p={self.p})"


_OF_RAW = {Resize, ToTensor, CenterCrop, RandomHorizontalFlip}  # what batch_of knows
_OF_IMAGES = {Normalize, CenterCrop, RandomHorizontalFlip}

__getattr__, __dir__ = module_hooks(globals())
