"""Transforms: Compose, ToTensor, Normalize, Lambda, Resize, CenterCrop, RandomHorizontalFlip.

They take PIL images (Pillow is imported only when one comes) and tensors, as torchvision's do. A
transform with ``_simt_batch`` also takes a whole batch of raw uint8 images and is then run in C
for all
of them; a DataLoader uses that when every transform of the dataset has it.
"""

from simt import torch
from simt._missing import module_hooks

__all__ = [
    "CenterCrop", "Compose", "InterpolationMode", "Lambda", "Normalize", "RandomHorizontalFlip",
    "Resize", "ToTensor",
]  # fmt: skip


class InterpolationMode:
    """Names of Pillow's resampling filters."""

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


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
        raw = True  # uint8 images (N, H, W) until ToTensor made them float (N, C, H, W)
        for t in self.transforms:
            batch = getattr(t, "_simt_batch", None)
            if batch is None or raw != getattr(t, "_takes_tensor", False):
                return None
            images = batch(images)
            if images is None:
                return None
            raw = False
        return None if raw else images

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
        out = tensor if self.inplace else tensor.clone()
        return out.sub_(self._constant(self.mean, tensor)).div_(
            self._constant(self.std, tensor, True)
        )

    def _constant(self, values, tensor, divisor=False):
        """One number as a Python float (it then rides along as a kernel's argument), more as a
        tensor.
        """
        numbers = values if isinstance(values, (list, tuple)) else [values]
        if divisor and any(float(v) == 0 for v in numbers):
            raise ValueError(
                f"std evaluated to zero after conversion to {tensor.dtype}, leading to division "
                "by zero."
            )
        rounded = torch.tensor(numbers, dtype=tensor.dtype)
        return rounded.view(-1, 1, 1) if len(numbers) > 1 else rounded.view(1, 1, 1)

    def _simt_batch(self, images):
        mean, std = self.mean, self.std
        if isinstance(mean, (list, tuple)) and len(mean) == 1 and len(std) == 1:
            if float(std[0]) == 0:
                return self(images)  # raises
            # one channel: numbers, rounded to float32 as the tensor above would be
            return images.sub(float(mean[0])).div(float(std[0]))
        return self(images)

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


def _size_pair(size):
    if isinstance(size, int):
        return (size, size)
    if len(size) == 1:
        return (size[0], size[0])
    if len(size) != 2:
        raise ValueError("Please provide only two dimensions (h, w) for size.")
    return tuple(size)


class Resize:
    """A PIL image at another size: (h, w), or the length of the smaller edge.

    Raises:
        TypeError: size is no int and no sequence, or the image is a tensor (not in simt yet).
    """

    def __init__(
        self, size, interpolation=InterpolationMode.BILINEAR, max_size=None, antialias=True
    ):
        if not isinstance(size, (int, list, tuple)):
            raise TypeError(f"Size should be int or sequence. Got {type(size)}")
        if not isinstance(size, int) and len(size) not in (1, 2):
            raise ValueError("If size is a sequence, it should have 1 or 2 values")
        self.size = size
        self.max_size = max_size
        self.interpolation = interpolation
        self.antialias = antialias

    def _target(self, width, height):
        if not isinstance(self.size, int) and len(self.size) == 2:
            return self.size[1], self.size[0]
        edge = self.size if isinstance(self.size, int) else self.size[0]
        short, long = (width, height) if width <= height else (height, width)
        new_short, new_long = edge, int(edge * long / short)
        if self.max_size is not None and new_long > self.max_size:
            new_short, new_long = int(self.max_size * new_short / new_long), self.max_size
        return (new_short, new_long) if width <= height else (new_long, new_short)

    def __call__(self, img):
        if not _is_pil(img):
            raise TypeError(
                f"Resize of {type(img).__name__} is not in simt yet; it takes PIL images "
                "(put it in front of ToTensor)"
            )
        from PIL import Image

        name = "NEAREST" if self.interpolation == "nearest-exact" else self.interpolation.upper()
        return img.resize(self._target(*img.size), getattr(Image.Resampling, name))

    def __repr__(self):
        detail = (
            f"(size={self.size}, interpolation={self.interpolation}, max_size={self.max_size}, "
        )
        return f"{self.__class__.__name__}{detail}antialias={self.antialias})"


class CenterCrop:
    """The middle of an image, (h, w); smaller images are padded with zeros."""

    def __init__(self, size):
        self.size = _size_pair(size)

    def __call__(self, img):
        height, width = self.size
        if _is_pil(img):
            left = round((img.size[0] - width) / 2.0)
            top = round((img.size[1] - height) / 2.0)
            return img.crop((left, top, left + width, top + height))
        have_height, have_width = img.shape[-2], img.shape[-1]
        if have_height < height or have_width < width:
            padded_shape = (*img.shape[:-2], max(height, have_height), max(width, have_width))
            padded = torch.zeros(padded_shape, dtype=img.dtype)
            top = (padded_shape[-2] - have_height) // 2
            left = (padded_shape[-1] - have_width) // 2
            padded[..., top : top + have_height, left : left + have_width] = img
            img, (have_height, have_width) = padded, padded_shape[-2:]
        top = round((have_height - height) / 2.0)
        left = round((have_width - width) / 2.0)
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
        if not torch.rand(1).item() < self.p:
            return img
        if _is_pil(img):
            from PIL import Image

            return img.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        return img.flip(-1)

    def __repr__(self):
        return f"{self.__class__.__name__}(p={self.p})"


__getattr__, __dir__ = module_hooks(globals())
