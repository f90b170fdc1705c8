"""Transforms: bad arguments and odd inputs as torchvision has them, batches as sample by sample."""

import numpy as np
import pytest
import simt.torch as torch
import simt.torchvision.transforms as T
from PIL import Image
from simt.torch.utils.data import DataLoader
from simt.torchvision import datasets

PIL = Image.fromarray(np.arange(28 * 20, dtype=np.uint8).reshape(28, 20))
ONE, THREE = torch.ones(1, 4, 4), torch.ones(3, 4, 4)


def test_normalize_arguments():
    for mean, std, image in [([0.1, 0.2], [1, 1], ONE), ([0.1, 0.2], [1.0], THREE), ([], [], ONE)]:
        with pytest.raises(RuntimeError):
            T.Normalize(mean, std)(image)
    for std in ([0.0], 0, [1, 0, 1], [1e-60], torch.tensor([0.0])):
        with pytest.raises(ValueError, match="std evaluated to zero after conversion to torch.flo"):
            T.Normalize([0.0], std)(THREE)
    for bad in ("a", ["a"], None, [[]], object()):
        with pytest.raises((TypeError, ValueError, RuntimeError)):
            T.Normalize(bad, bad)(ONE)
    for image, error in [(PIL, TypeError), (torch.ones(1, 4, 4, dtype=torch.uint8), TypeError),
                         (torch.ones(4, 4), ValueError), (None, TypeError)]:  # fmt: skip
        with pytest.raises(error):
            T.Normalize([0.1], [0.5])(image)
    for mean, std in [
        (0.5, 0.5),
        (np.array([0.5]), np.array([0.5])),
        ((0.5,), 0.5),
        ([[0.5]], 0.5),
    ]:
        assert T.Normalize(mean, std)(ONE).tolist() == ONE.tolist()


def test_normalize_in_place_changes_nothing_when_it_fails():
    for mean, std in [([0.1, 0.2], [1, 1]), ([0.5], [1, 2]), ([0.5], [0.0]), ([0.5], ["x"])]:
        image = torch.ones(1, 4, 4)
        with pytest.raises((RuntimeError, ValueError)):
            T.Normalize(mean, std, inplace=True)(image)
        assert image.tolist() == ONE.tolist()
    image = torch.ones(1, 4, 4)
    assert T.Normalize([0.5], [0.5], inplace=True)(image) is image


def test_sizes():
    for bad in ("5", 5.5, None, torch.tensor(5), {5}):
        with pytest.raises(TypeError, match="Size should be int or sequence"):
            T.Resize(bad)
    for bad in ((), (1, 2, 3)):
        with pytest.raises(ValueError):
            T.Resize(bad)
        with pytest.raises(ValueError):
            T.CenterCrop(bad)
    for bad in (0, -1, (0, 5), (5, 0), (-1, 5)):
        with pytest.raises(ValueError, match="height and width must be > 0"):
            T.Resize(bad)(PIL)
    for bad in ((None, 5), ("a", "b"), (5.5, 5)):
        with pytest.raises(TypeError):
            T.Resize(bad)(PIL)
    with pytest.raises((MemoryError, OverflowError, ValueError)):
        T.Resize(10**10)(PIL)
    for bad in ("5", None, (None, 5), ("a", "b")):
        with pytest.raises(TypeError):
            T.CenterCrop(bad)
    for limit in (0, 15, 20):
        with pytest.raises(ValueError, match=f"max_size = {limit} must be strictly greater"):
            T.Resize(20, max_size=limit)(PIL)
    with pytest.raises(ValueError, match="max_size should only be passed"):
        T.Resize((10, 10), max_size=12)(PIL)
    for bad in ("bilinear", 99, None, 1.0):
        with pytest.raises(TypeError, match="Argument interpolation"):
            T.Resize(5, interpolation=bad)
    assert T.Resize(10, interpolation=2)(PIL).size == (10, 14)
    assert T.Resize(10, max_size=12)(PIL).size == (8, 12)


def test_odd_images():
    for bad in (None, 3, [[1, 2]], ONE, "x"):
        with pytest.raises(TypeError, match="pic should be PIL Image or ndarray"):
            T.ToTensor()(bad)
    for shape in [(), (3,), (1, 2, 3, 4)]:
        with pytest.raises(ValueError, match=f"Got {len(shape)} dimensions"):
            T.ToTensor()(np.zeros(shape))
    for dtype in (object, complex, "U3"):
        with pytest.raises(TypeError, match="can't convert np.ndarray"):
            T.ToTensor()(np.zeros((2, 2), dtype))
    assert T.ToTensor()(np.zeros((0, 3), np.uint8)).shape == (1, 0, 3)
    for mode, channels, dtype in [
        ("1", 1, torch.float32), ("RGBA", 4, torch.float32), ("I", 1, torch.int32),
        ("F", 1, torch.float32), ("I;16", 1, torch.int16), ("LA", 2, torch.float32),
    ]:  # fmt: skip
        made = T.ToTensor()(Image.new(mode, (3, 2), 1))
        assert (made.shape, made.dtype) == ((channels, 2, 3), dtype)
    for transform in (T.Resize(3), T.CenterCrop(3), T.RandomHorizontalFlip(1)):
        for bad in (None, np.zeros((5, 5)), 3):
            with pytest.raises(TypeError, match="Unexpected type"):
                transform(bad)
    for transform in (T.CenterCrop(3), T.RandomHorizontalFlip(1)):
        with pytest.raises(TypeError, match="Tensor is not a torch image"):
            transform(torch.zeros(5))
    with pytest.raises(TypeError, match="callable"):
        T.Lambda(3)


@pytest.mark.parametrize("crop", [(20, 20), (31, 40), (3, 27), (29, 15), 28, (1, 1)])
def test_center_crop_of_images_and_tensors(crop):
    """Larger than the image: zeros around, one more behind than in front (torchvision's rule)."""
    values = np.asarray(PIL)
    want = np.zeros((crop, crop) if isinstance(crop, int) else crop, np.uint8)
    places = []
    for have, size in zip(values.shape, want.shape, strict=True):
        at = round((have - size) / 2.0) if have >= size else 0
        to = 0 if have >= size else (size - have) // 2
        places.append((slice(at, at + min(have, size)), slice(to, to + min(have, size))))
    want[places[0][1], places[1][1]] = values[places[0][0], places[1][0]]
    np.testing.assert_array_equal(np.asarray(T.CenterCrop(crop)(PIL)), want)
    tensor = T.CenterCrop(crop)(torch.from_numpy(values.copy()))
    np.testing.assert_array_equal(tensor.numpy(), want)


class Images(datasets.MNIST):
    """Forty random images, no files."""

    def __init__(self, transform):
        draw = np.random.default_rng(5)
        self.data = torch.from_numpy(draw.integers(0, 256, (40, 28, 28)).astype(np.uint8))
        self.targets, self.transform, self.target_transform = torch.arange(40), transform, None
        self.root = None


class Negative(T.ToTensor):
    def __call__(self, pic):
        return -super().__call__(pic)


TO_TENSOR, NORMALIZE = T.ToTensor(), T.Normalize((0.1307,), (0.3081,))
BATCHED = [
    [TO_TENSOR], [TO_TENSOR, NORMALIZE], [T.CenterCrop(20), TO_TENSOR],
    [T.CenterCrop(31), TO_TENSOR], [T.Compose([TO_TENSOR]), NORMALIZE],
    [TO_TENSOR, T.CenterCrop((40, 9)), NORMALIZE], [T.RandomHorizontalFlip(1), TO_TENSOR],
    [TO_TENSOR, T.RandomHorizontalFlip(1), T.Normalize(0.5, 0.5)],
    [T.Resize(32), TO_TENSOR, NORMALIZE], [T.CenterCrop(20), T.Resize((7, 8)), TO_TENSOR],
]  # fmt: skip
PER_SAMPLE = [
    [Negative()], [TO_TENSOR, T.Lambda(lambda x: x * 2)], [lambda x: x, TO_TENSOR],
    [T.Resize((7, 50)), TO_TENSOR],
]  # fmt: skip


@pytest.mark.parametrize("transforms", BATCHED + PER_SAMPLE, ids=lambda t: str(t)[:40])
def test_batches_are_what_samples_are(transforms):
    data = Images(T.Compose(transforms))
    samples = torch.stack([data[i][0] for i in range(6)])
    images, labels = next(iter(DataLoader(data, batch_size=6)))
    assert labels.tolist() == list(range(6))
    np.testing.assert_allclose(images.numpy(), samples.numpy(), rtol=1e-6, atol=1e-7)
    assert (data._simt_batch(torch.arange(2)) is not None) == (transforms in BATCHED)


@pytest.mark.parametrize(
    "transforms",
    [
        [TO_TENSOR, T.Normalize([0.1, 0.2], [1.0, 1.0])], [TO_TENSOR, T.Normalize([0.1], [0.0])],
        [TO_TENSOR, TO_TENSOR], [TO_TENSOR, 3], [NORMALIZE, TO_TENSOR], [T.Normalize(["a"], ["b"])],
        [T.CenterCrop(20)], [T.RandomHorizontalFlip()], [],
    ],
)  # fmt: skip
def test_batches_that_cannot_be(transforms):
    """The same exception as for one sample: its kind and words."""
    data = Images(T.Compose(transforms))
    with pytest.raises((RuntimeError, TypeError, ValueError)) as batch:
        next(iter(DataLoader(data, batch_size=6)))
    with pytest.raises(type(batch.value)) as one:
        torch.utils.data.default_collate([data[0], data[1]])
    assert str(one.value) == str(batch.value)


@pytest.mark.parametrize("filter", list(T.InterpolationMode), ids=lambda f: f.value)
@pytest.mark.parametrize("shape", [(28, 28), (1, 1), (3, 50), (37, 2)])
def test_resized_batches_have_pillows_bits(filter, shape):
    draw = np.random.default_rng(shape[1])
    images = draw.integers(0, 256, (3, *shape)).astype(np.uint8)
    images[1] = np.where(images[1] > 127, 255, 0)  # overshoots of the sharper filters are cut off
    left_out = 0
    for size in [(28, 28), (32, 32), (14, 14), (7, 41), (200, 3), (1, 1), (28, 30), (5, 28)]:
        resize = T.Resize(size, interpolation=filter)
        want = np.stack([np.asarray(resize(Image.fromarray(image))) for image in images])
        got = resize._simt_batch(torch.from_numpy(images))
        if got is None:
            left_out += 1
            continue
        np.testing.assert_array_equal(got.numpy(), want, err_msg=f"{shape} to {size}")
    assert left_out < 8


def test_batches_of_impossible_sizes():
    images = torch.zeros(2, 28, 28, dtype=torch.uint8)
    for size in [(0, 5), (5, -1), 0]:
        with pytest.raises(ValueError, match="height and width must be > 0"):
            T.Resize(size)._simt_batch(images)
    for size in [10**12, (10**18, 3)]:
        with pytest.raises((MemoryError, ValueError)):
            T.Resize(size)._simt_batch(images)
    with pytest.raises(TypeError):
        T.Resize((20.5, 5))._simt_batch(images)
    assert T.Resize(9)._simt_batch(images[:0]).shape == (0, 9, 9)
    assert T.Resize(9)._simt_batch(images[:, ::3, ::2]).shape == (2, 9, 12)


def test_flips_of_a_batch():
    data = Images(T.Compose([T.RandomHorizontalFlip(0.3), TO_TENSOR]))
    torch.manual_seed(0)
    flipped = 0
    for _ in range(10):
        images, labels = next(iter(DataLoader(data, batch_size=40)))
        for image, label in zip(images.numpy()[:, 0], labels.tolist(), strict=True):
            plain = data.data[label].numpy().astype(np.float32) / 255
            turned = not np.array_equal(image, plain)
            flipped += turned
            np.testing.assert_array_equal(image, plain[:, ::-1] if turned else plain)
    assert 80 < flipped < 160  # of 400: 120, deviation 9
    torch.manual_seed(7)
    first = next(iter(DataLoader(data, batch_size=40)))[0]
    torch.manual_seed(7)
    assert torch.equal(first, next(iter(DataLoader(data, batch_size=40)))[0])


def test_the_probe_of_a_loader_draws_no_random_numbers():
    loader = DataLoader(Images(TO_TENSOR), batch_size=40)
    torch.manual_seed(3)
    next(iter(loader))
    after = torch.rand(3)
    torch.manual_seed(3)
    assert torch.equal(after, torch.rand(3))
