"""Data: datasets of simt's faces for Keras's loops; keras.datasets.mnist and fashion_mnist.

The latter come by the rules of simt.torchvision's datasets.

In this order: the file in Keras's own cache, $SIMT_DATA (default: the user's cache folder), the
copy shipped with simt (MNIST), and what Keras itself does: the network.
"""

import functools
import os
import sys

import numpy as np
from keras.src.trainers.data_adapters.data_adapter import DataAdapter

from simt.keras_backend import core

_CLASSES = {"mnist": "MNIST", "fashion_mnist": "FashionMNIST"}


def take_over(module):
    """Puts our load_data before the module's own."""
    name = module.__name__.rpartition(".")[2]
    own = module.load_data

    @functools.wraps(own)
    def load_data(*args, **kwargs):
        if _in_keras_cache(name, *args, **kwargs):
            return own(*args, **kwargs)
        return _from_files(name) or own(*args, **kwargs)

    module.load_data = load_data


def _in_keras_cache(name, path="mnist.npz"):
    from keras.src.backend import config

    folder = os.path.join(config.keras_home(), "datasets")
    if name == "mnist":
        return os.path.isfile(os.path.join(folder, path))
    return os.path.isfile(os.path.join(folder, "fashion-mnist", "train-images-idx3-ubyte.gz"))


def _from_files(name):
    """((x_train, y_train), (x_test, y_test)), or None where there are no files."""
    from simt.torchvision.datasets import mnist

    kind = _CLASSES[name]
    for folder in (
        os.path.join(mnist._cache_folder(), kind, "raw"),
        os.path.join(mnist._SHIPPED, kind, "raw"),
    ):
        paths = [
            mnist._find(folder, f"{part}-{what}-ubyte")
            for part in ("train", "t10k")
            for what in ("images-idx3", "labels-idx1")
        ]
        if all(paths):
            print(f"simt: {kind} read from {folder}", file=sys.stderr)
            x_train, y_train, x_test, y_test = (_array(mnist, path) for path in paths)
            return (x_train, y_train), (x_test, y_test)
    npz = os.path.join(mnist._cache_folder(), f"{name}.npz")
    if os.path.isfile(npz):
        print(f"simt: {kind} read from {npz}", file=sys.stderr)
        with np.load(npz, allow_pickle=False) as file:
            return (file["x_train"], file["y_train"]), (file["x_test"], file["y_test"])
    return None


def _array(mnist, path):
    return np.array(mnist._tensor(path).numpy())


class Adapter(DataAdapter):
    """A dataset of simt.tensorflow or a loader of simt.torch as what Keras's loops read from."""

    def __init__(self, dataset, class_weight=None):
        self._dataset = dataset
        self._class_weight = class_weight

    def get_numpy_iterator(self):
        if self._class_weight is None:
            return iter(self._dataset)
        from keras.src.trainers.data_adapters import data_adapter_utils as utils

        def weighted():
            for x, y in self._dataset:
                labels = core.convert_to_numpy(y)
                yield x, y, utils.class_weight_to_sample_weights(labels, self._class_weight)

        return weighted()

    @property
    def num_batches(self):
        try:
            return len(self._dataset)
        except TypeError:
            return None

    @property
    def batch_size(self):
        return None

    @property
    def has_partial_batch(self):
        return None

    @property
    def partial_batch_size(self):
        return None
