"""Padding and resampling as modules; sliding blocks."""

from simt.torch.nn import functional as F

from .module import Module

__all__ = ["Fold", "Unfold", "Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"]


def _repeat(padding, dims):
    return (padding,) * (2 * dims) if isinstance(padding, int) else tuple(padding)


class _Pad(Module):
    """The padding of the last dimensions; mode and number of dimensions are the class's."""

    def __init__(self, padding):
        super().__init__()
        self.padding = _repeat(padding, self._dims)

    def forward(self, input):
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self):
        return f"{self.padding}"


class _ConstantPad(_Pad):
    def __init__(self, padding, value):
        super().__init__(padding)
        self.value = value

    def forward(self, input):
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self):
        return f"padding={self.padding}, value={self.value}"


class _ZeroPad(_ConstantPad):
    def __init__(self, padding):
        super().__init__(padding, 0.0)

    def extra_repr(self):
        return f"{self.padding}"


def _pads(kind, base, mode):
    for dims in (1, 2, 3):
        name = f"{kind}{dims}d"
        doc = f"Pads the last {dims} dimensions ({mode})."
        body = {"_dims": dims, "_mode": mode, "__doc__": doc, "__module__": __name__}
        globals()[name] = type(name, (base,), body)
        __all__.append(name)


_pads("ReflectionPad", _Pad, "reflect")
_pads("ReplicationPad", _Pad, "replicate")
_pads("CircularPad", _Pad, "circular")
_pads("ConstantPad", _ConstantPad, "constant")
_pads("ZeroPad", _ZeroPad, "constant")


class Upsample(Module):
    """interpolate as a module."""

    def __init__(
        self,
        size=None,
        scale_factor=None,
        mode="nearest",
        align_corners=None,
        recompute_scale_factor=None,
    ):
        super().__init__()
        self.size = tuple(size) if isinstance(size, list) else size
        if isinstance(scale_factor, (tuple, list)):
            self.scale_factor = tuple(float(f) for f in scale_factor)
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input):
        return F.interpolate(
            input,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            self.recompute_scale_factor,
        )

    def extra_repr(self):
        if self.scale_factor is not None:
            return f"scale_factor={self.scale_factor!r}, mode={self.mode!r}"
        return f"size={self.size!r}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """The nearest neighbours of a 4D input."""

    def __init__(self, size=None, scale_factor=None):
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """Bilinear, with the corners' centers aligned."""

    def __init__(self, size=None, scale_factor=None):
        super().__init__(size, scale_factor, "bilinear", True)


class Unfold(Module):
    """The blocks of an image as columns."""

    def __init__(self, kernel_size, dilation=1, padding=0, stride=1):
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input):
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self):
        return (
            f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, "
            f"stride={self.stride}"
        )


class Fold(Unfold):
    """The sum of blocks at their places in an image of output_size."""

    def __init__(self, output_size, kernel_size, dilation=1, padding=0, stride=1):
        super().__init__(kernel_size, dilation, padding, stride)
        self.output_size = output_size

    def forward(self, input):
        return F.fold(
            input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride
        )

    def extra_repr(self):
        return f"output_size={self.output_size}, {super().extra_repr()}"
