"""All modules, by kind: module.py holds Module, the rest its subclasses."""

from .activation import *  # noqa: F403
from .activation import __all__ as _activation
from .container import ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential
from .conv import Conv2d
from .dropout import Dropout, Dropout2d
from .linear import Bilinear, Flatten, Identity, Linear, Unflatten
from .loss import *  # noqa: F403
from .loss import __all__ as _loss
from .module import Module
from .normalization import BatchNorm1d, BatchNorm2d, LayerNorm
from .padding import *  # noqa: F403
from .padding import __all__ as _padding
from .pooling import AdaptiveAvgPool2d, AvgPool2d, MaxPool2d
from .sparse import Embedding

__all__ = [
    *_activation,
    *_loss,
    *_padding,
    "AdaptiveAvgPool2d",
    "AvgPool2d",
    "BatchNorm1d",
    "BatchNorm2d",
    "Bilinear",
    "Conv2d",
    "Dropout",
    "Dropout2d",
    "Embedding",
    "Flatten",
    "Identity",
    "LayerNorm",
    "Linear",
    "MaxPool2d",
    "Module",
    "ModuleDict",
    "ModuleList",
    "ParameterDict",
    "ParameterList",
    "Sequential",
    "Unflatten",
]
