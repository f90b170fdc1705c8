"""MNIST and the datasets of its form (IDX files).

Where the files come from, in this order: ``root/<name>/raw`` (plain or .gz),
``$SIMT_DATA/<name>/raw``
(default: the user's cache folder), the copy shipped with simt (MNIST), the network (with
checksums).
After ``download=True`` they lie in ``root/<name>/raw`` as torchvision leaves them.
"""

import os
import sys

from simt import _core, torch
from simt._files import write_bytes

from .vision import VisionDataset

_SHIPPED = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(__file__))), "data")


def _cache_folder():
    folder = os.environ.get("SIMT_DATA")
    if folder:
        return folder
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "simt", "data")


def _find(folder, name):
    """The path of an IDX file in folder, plain or compressed, or None."""
    for path in (os.path.join(folder, name), os.path.join(folder, name + ".gz")):
        if os.path.isfile(path):
            return path
    return None


_LIMIT = 1 << 30  # bytes; a larger file is no dataset of this kind
_HEADER = 68  # the longest header of an IDX file


def _read(path):
    """The bytes of an IDX file, unpacked.

    Memory is spent on what the header declares (at most 1 GiB), not on what compressed data might
    grow to.

    Raises:
        ValueError: no IDX file, damaged, cut short, or longer than it declares.
    """
    data = _read_raw(path)
    if data[:2] != b"\x1f\x8b":
        return data
    import zlib

    try:
        head = zlib.decompressobj(31).decompress(data, 64)
        total = _core.idx_bytes(head, path)
        if total > _LIMIT:
            raise ValueError(f"{path} declares {total} bytes, more than {_LIMIT}")
        inflate = zlib.decompressobj(31)
        plain = inflate.decompress(data, total + 1)
    except zlib.error as error:
        raise ValueError(f"{path} is damaged: {error}") from None
    if len(plain) > total:
        raise ValueError(f"{path} is too long: its header declares {total} bytes in all")
    if not inflate.eof:
        raise ValueError(f"{path} is cut short: its compressed data does not end")
    if inflate.unused_data.strip(b"\0"):
        raise ValueError(f"{path} is damaged: {len(inflate.unused_data)} bytes follow its end")
    return plain


def _read_raw(path):
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > _LIMIT:
            raise ValueError(f"{path} has {size} bytes, more than {_LIMIT}")
        return file.read()


def _tensor(path):
    """The tensor in an IDX file; a plain file is read straight into its memory.

    Raises:
        ValueError: as _read.
    """
    with open(path, "rb", buffering=0) as file:
        head, size = file.read(_HEADER), os.fstat(file.fileno()).st_size
        if head[:2] != b"\x1f\x8b" and len(head) == _HEADER and size <= _LIMIT:
            return _core.tensor_from_idx(head, path, file.fileno(), size)
    return _core.tensor_from_idx(_read(path), path)


class MNIST(VisionDataset):
    """The handwritten digits: 60,000 training and 10,000 test images, uint8 28 x 28, ten classes.

    Args:
        root: folder in which ``MNIST/raw`` is looked for and left.
        train: the training images (True) or the test images.
        transform, target_transform: callables on the image and the label.
        download: get the files if they are not there.

    Attributes:
        data: uint8 tensor (N, 28, 28). targets: int64 tensor (N,).

    Raises:
        RuntimeError: the files are not there and download is False, or could not be had.
        ValueError: a file is damaged, cut short or no IDX file.
    """

    mirrors = ["https://ossci-datasets.s3.amazonaws.com/mnist/"]
    resources = [
        ("train-images-idx3-ubyte.gz", "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
        ("train-labels-idx1-ubyte.gz", "d53e105ee54ea40749a09fcbcd1e9432"),
        ("t10k-images-idx3-ubyte.gz", "9fb629c4189551a2d022fa330f9573f3"),
        ("t10k-labels-idx1-ubyte.gz", "ec29112dd5afa0611ce80d1b7f02629c"),
    ]
    training_file = "training.pt"
    test_file = "test.pt"
    classes = [
        "0 - zero", "1 - one", "2 - two", "3 - three", "4 - four",
        "5 - five", "6 - six", "7 - seven", "8 - eight", "9 - nine",
    ]  # fmt: skip

    def __init__(
        self, root=None, train=True, transform=None, target_transform=None, download=False
    ):
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.train = train
        if download:
            self.download()
        if not self._check_exists():
            raise RuntimeError("Dataset not found. You can use download=True to download it")
        self.data, self.targets = self._load_data()

    @property
    def train_labels(self):
        return self.targets

    @property
    def test_labels(self):
        return self.targets

    @property
    def train_data(self):
        return self.data

    @property
    def test_data(self):
        return self.data

    @property
    def raw_folder(self):
        return os.path.join(self.root, self.__class__.__name__, "raw")

    @property
    def processed_folder(self):
        return os.path.join(self.root, self.__class__.__name__, "processed")

    @property
    def class_to_idx(self):
        return {name: i for i, name in enumerate(self.classes)}

    def _names(self):
        return [name[: -len(".gz")] for name, _ in self.resources]

    def _sources(self):
        name = self.__class__.__name__
        yield self.raw_folder
        yield os.path.join(_cache_folder(), name, "raw")
        yield os.path.join(_SHIPPED, name, "raw")

    def _folder(self):
        """The first folder that has all the files, or None."""
        for folder in self._sources():
            if all(_find(folder, name) for name in self._names()):
                return folder
        return None

    def _check_exists(self):
        return all(_find(self.raw_folder, name) for name in self._names())

    def _load_data(self):
        part = "train" if self.train else "t10k"
        names = (f"{part}-images-idx3-ubyte", f"{part}-labels-idx1-ubyte")
        paths = [_find(self.raw_folder, name) for name in names]
        images, labels = (_tensor(path) for path in paths)
        if images.dim() != 3 or images.dtype != torch.uint8:
            raise ValueError(
                f"{paths[0]}: the images are {images.dtype} of shape {tuple(images.shape)}, not "
                "uint8 of three dimensions"
            )
        if labels.dtype != torch.uint8 or tuple(labels.shape) != (len(images),):
            raise ValueError(
                f"{paths[1]}: {len(images)} images need as many uint8 labels, not {labels.dtype} "
                f"of shape {tuple(labels.shape)}"
            )
        return images, labels.long()

    def download(self):
        """Brings the files into root/<name>/raw unless they are there."""
        if self._check_exists():
            return
        folder = self._folder()
        os.makedirs(self.raw_folder, exist_ok=True)
        if folder is None:
            self._fetch()
            print(
                f"simt: {self.__class__.__name__} downloaded to {self.raw_folder}", file=sys.stderr
            )
            return
        for name in self._names():  # as torchvision leaves them: the archive, and unpacked beside
            path = _find(folder, name)
            write_bytes(os.path.join(self.raw_folder, name), _read(path))
            if path.endswith(".gz"):
                write_bytes(os.path.join(self.raw_folder, name + ".gz"), _read_raw(path))
        print(
            f"simt: {self.__class__.__name__} copied from {folder} to {self.raw_folder}",
            file=sys.stderr,
        )

    def _fetch(self):
        import hashlib
        import urllib.error
        import urllib.request

        for name, checksum in self.resources:
            target = os.path.join(self.raw_folder, name)
            errors = []
            for mirror in self.mirrors:
                try:
                    with urllib.request.urlopen(mirror + name, timeout=30) as reply:
                        data = reply.read(1 << 30)
                except (urllib.error.URLError, OSError, ValueError) as error:
                    errors.append(f"{mirror}: {error}")
                    continue
                if hashlib.md5(data, usedforsecurity=False).hexdigest() != checksum:
                    errors.append(f"{mirror}: the checksum is wrong")
                    continue
                write_bytes(target, data)
                break
            else:
                reasons = "; ".join(errors)
                raise RuntimeError(f"Error downloading {name}: {reasons}")

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        image, target = self.data[index], int(self.targets[index])
        if self.transform is None or not getattr(self.transform, "_takes_tensor", False):
            try:
                from PIL import Image
            except ImportError:
                raise ImportError(
                    "images as PIL objects need Pillow: pip install pillow (a transform that "
                    "starts "
                    "with ToTensor does not)"
                ) from None
            image = Image.fromarray(image.numpy(), mode=None)
        if self.transform is not None:
            image = self.transform(image)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return image, target

    def _simt_batch(self, indices):
        """The samples of an int64 tensor of indices, collated; None when it takes Python per
        sample.
        """
        if self.target_transform is not None or self.__class__.__getitem__ is not MNIST.__getitem__:
            return None
        from simt.torchvision.transforms import batch_of

        images = batch_of(self.transform, self.data[indices])
        if images is None or images.dim() != 4:  # raw images leave as PIL images
            return None
        return [images, self.targets[indices]]

    def extra_repr(self):
        return f"Split: {'Train' if self.train is True else 'Test'}"


class FashionMNIST(MNIST):
    """Zalando's articles of clothing, in MNIST's form (Xiao, Rasul, Vollgraf 2017)."""

    mirrors = ["http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"]
    resources = [
        ("train-images-idx3-ubyte.gz", "8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
        ("train-labels-idx1-ubyte.gz", "25c81989df183df01b3e8a0aad5dffbe"),
        ("t10k-images-idx3-ubyte.gz", "bef4ecab320f06d8554ea6380940ec79"),
        ("t10k-labels-idx1-ubyte.gz", "bb300cfdad3c16e7a12a480ee83cd310"),
    ]
    classes = [
        "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
        "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
    ]  # fmt: skip


class KMNIST(MNIST):
    """Cursive Japanese characters, in MNIST's form (Clanuwat et al. 2018)."""

    mirrors = ["http://codh.rois.ac.jp/kmnist/dataset/kmnist/"]
    resources = [
        ("train-images-idx3-ubyte.gz", "bdb82020997e1d708af4cf47b453dcf7"),
        ("train-labels-idx1-ubyte.gz", "e144d726b3acfaa3e44228e80efcd344"),
        ("t10k-images-idx3-ubyte.gz", "5c965bf0a639b31b8f53240b1b52f4d7"),
        ("t10k-labels-idx1-ubyte.gz", "7320c461ea6c1c855c0b718fb2a4b134"),
    ]
    classes = ["o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"]
