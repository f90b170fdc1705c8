"""Writes ten classes of noisy textures in FashionMNIST's files, for bench/accuracy.py.

    python bench/make_textures.py data      # data/FashionMNIST/raw/*-ubyte

For machines that cannot get the real Fashion-MNIST: the same shapes, types and class count, and a
difficulty near it (the seed program's network reaches 85 to 92 %). Every class has three smooth
patterns; a sample is one of them, shifted by a pixel or two, scaled, mixed with a pattern of
another class, under noise. The same seed writes the same bytes.
"""

import argparse
import struct
from pathlib import Path

import numpy as np

CLASSES, PATTERNS, SIDE = 10, 3, 28


def smooth_fields(rng, count):
    """Random fields of a few low frequencies, each of mean 0 and deviation 1."""
    y, x = np.mgrid[0:SIDE, 0:SIDE] * (2 * np.pi / SIDE)
    fields = np.zeros((count, SIDE, SIDE))
    for field in fields:
        for _ in range(6):
            fy, fx = rng.uniform(-3, 3, size=2)
            field += rng.normal() * np.sin(fy * y + fx * x + rng.uniform(0, 2 * np.pi))
    fields -= fields.mean(axis=(1, 2), keepdims=True)
    return fields / fields.std(axis=(1, 2), keepdims=True)


def samples(rng, patterns, count, noise):
    """Images (count, 28, 28) of uint8 and their labels."""
    labels = rng.integers(0, CLASSES, size=count).astype(np.uint8)
    own = patterns[labels, rng.integers(0, PATTERNS, size=count)]
    other = patterns[rng.integers(0, CLASSES, count), rng.integers(0, PATTERNS, count)]
    strength = rng.uniform(0.6, 1.2, size=(count, 1, 1))
    images = strength * own + rng.uniform(0.0, 0.85, size=(count, 1, 1)) * other
    shifts = rng.integers(-2, 3, size=(count, 2))
    for image, (dy, dx) in zip(images, shifts, strict=True):
        image[:] = np.roll(image, (dy, dx), axis=(0, 1))
    images += rng.normal(scale=noise, size=images.shape)
    return np.clip(images * 50 + 110, 0, 255).astype(np.uint8), labels


def write_idx(path, array):
    head = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
    path.write_bytes(head + array.tobytes())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("root")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--noise", type=float, default=1.5, help="deviation of the pixel noise")
    parser.add_argument("--count", type=int, nargs=2, default=[60000, 10000])
    args = parser.parse_args()
    rng = np.random.default_rng(args.seed)
    patterns = smooth_fields(rng, CLASSES * PATTERNS).reshape(CLASSES, PATTERNS, SIDE, SIDE)
    folder = Path(args.root) / "FashionMNIST" / "raw"
    folder.mkdir(parents=True, exist_ok=True)
    for part, count in zip(("train", "t10k"), args.count, strict=True):
        images, labels = samples(rng, patterns, count, args.noise)
        write_idx(folder / f"{part}-images-idx3-ubyte", images)
        write_idx(folder / f"{part}-labels-idx1-ubyte", labels)


if __name__ == "__main__":
    main()
