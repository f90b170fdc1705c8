"""Datasets: MNIST, FashionMNIST, KMNIST; VisionDataset to build on."""

from simt._missing import module_hooks

from .mnist import KMNIST, MNIST, FashionMNIST
from .vision import VisionDataset

__all__ = ["KMNIST", "MNIST", "FashionMNIST", "VisionDataset"]

__getattr__, __dir__ = module_hooks(globals())
