"""f32 matrix products at the edges of our own loops' tiles, in all storage orders, against f64."""

import os
import subprocess
import sys

import numpy as np
import pytest
import simt.cupy as cp

SIZES = [
    (1, 1, 1),
    (1, 48, 16),
    (2, 49, 17),
    (5, 3, 100),
    (6, 4, 16),
    (7, 5, 15),
    (8, 47, 3),
    (9, 97, 33),
    (13, 16, 300),
    (17, 10, 1040),
    (64, 128, 784),
    (128, 784, 64),
    (130, 31, 129),
    (33, 7, 1100),
    (40, 3, 2),
]


def check(product, a, b):
    exact = a.astype(np.float64) @ b.astype(np.float64)
    scale = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)
    assert np.all(np.abs(product.get() - exact) <= 2e-6 * scale + 1e-30)


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_products_in_all_orders(size):
    m, n, k = size
    rng = np.random.default_rng(m * n + k)
    a = rng.standard_normal((m, k), dtype=np.float32)
    b = rng.standard_normal((k, n), dtype=np.float32)
    for x in (cp.asarray(a), cp.asarray(np.ascontiguousarray(a.T)).T):
        for y in (cp.asarray(b), cp.asarray(np.ascontiguousarray(b.T)).T):
            check(x @ y, a, b)
    wide = cp.asarray(np.tile(a, (1, 2)))[:, :k]  # rows that lie apart
    check(wide @ cp.asarray(np.tile(b, (1, 2)))[:, n:], a, b)


def test_batches_and_special_values():
    rng = np.random.default_rng(3)
    a = rng.standard_normal((5, 9, 20), dtype=np.float32)
    b = rng.standard_normal((5, 20, 50), dtype=np.float32)
    check(cp.asarray(a) @ cp.asarray(b), a, b)
    a[0, 0, 3] = np.inf
    a[0, 1, 4] = np.nan
    product = (cp.asarray(a[0]) @ cp.asarray(b[0])).get()
    assert np.isinf(product[0]).all() and np.isnan(product[1]).all()
    assert np.isfinite(product[2:]).all()


PROGRAM = """
import hashlib, numpy as np, simt.cupy as cp
rng = np.random.default_rng(1)
out = hashlib.sha256()
for m, n, k in ((64, 128, 784), (128, 784, 64), (100, 333, 100), (128, 9, 4000)):
    a = rng.standard_normal((m, k), dtype=np.float32)
    b = rng.standard_normal((k, n), dtype=np.float32)
    for x in (cp.asarray(a), cp.asarray(np.ascontiguousarray(a.T)).T):
        for y in (cp.asarray(b), cp.asarray(np.ascontiguousarray(b.T)).T):
            if x.flags.c_contiguous or y.flags.c_contiguous:
                product = (x @ y).get()
                assert np.allclose(product, a @ b, atol=1e-3)
                out.update(product.tobytes())
print(out.hexdigest())
"""


def digest(**env):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=os.environ | env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_bits_do_not_depend_on_threads():
    assert digest(SIMT_NUM_THREADS="1") == digest(SIMT_NUM_THREADS="3")


def test_other_instruction_sets():
    digest(SIMT_ISA="avx2")
    digest(SIMT_ISA="generic")


@pytest.mark.parametrize("name", ["int8", "uint8", "int16", "int32", "int64"])
def test_dot_of_integers_keeps_their_type(name):
    from simt import torch

    x = np.arange(40).astype(name)
    for product in (torch.tensor(x) @ torch.tensor(x), torch.dot(torch.tensor(x), torch.tensor(x))):
        assert product.dtype is getattr(torch, name)
        assert product.item() == np.sum(x * x, dtype=name)
