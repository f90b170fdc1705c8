"""Adam's fused step: the formula in NumPy, and the bits of the deferred operations it replaces."""

import os
import subprocess
import sys

import numpy as np
import pytest
import simt.torch as torch

PROGRAM = """
import hashlib
import numpy as np
import simt.torch as torch

rng = np.random.default_rng(7)
sizes = [(1,), (63,), (64, 2), (3, 50), (9000,)]
params = [torch.tensor(rng.standard_normal(s, dtype=np.float32), requires_grad=True) for s in sizes]
out = hashlib.sha256()
for make in (torch.optim.Adam, torch.optim.AdamW):
    optimizer = make(params, lr=0.01)
    for step in range(1000):  # gradients that vanish: averages decay to denormals, and to 0
        for p in params:
            g = rng.standard_normal(p.shape, dtype=np.float32)
            if step >= 2:
                g[rng.random(p.shape) < 0.999] = 0
            p.grad = torch.tensor(g)
        optimizer.step()
    for p in params:
        state = optimizer.state[p]
        for t in (p.detach(), state["exp_avg"], state["exp_avg_sq"]):
            out.update(t.numpy().tobytes())
average = np.concatenate([optimizer.state[p]["exp_avg"].numpy().ravel() for p in params])
assert ((average != 0) & (abs(average) < 1.17e-38)).any()
print(out.hexdigest())
"""


def digest(**env):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=os.environ | env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_bits_are_those_of_the_operations():
    want = digest(SIMT_EAGER="1")
    assert digest() == want
    assert digest(SIMT_ISA="avx2", SIMT_NUM_THREADS="1") == want


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_formula(decay):
    rng = np.random.default_rng(1)
    p = rng.standard_normal((40, 30))
    mine = torch.tensor(p.astype(np.float32), requires_grad=True)
    optimizer = torch.optim.AdamW([mine], lr=0.02, betas=(0.8, 0.95), weight_decay=decay)
    m = v = 0.0
    for step in range(1, 30):
        g = rng.standard_normal(p.shape)
        mine.grad = torch.tensor(g.astype(np.float32))
        optimizer.step()
        p = p * (1 - 0.02 * decay)
        m, v = 0.8 * m + 0.2 * g, 0.95 * v + 0.05 * g * g
        p = p - 0.02 * (m / (1 - 0.8**step)) / (np.sqrt(v / (1 - 0.95**step)) + 1e-8)
    np.testing.assert_allclose(mine.detach().numpy(), p, rtol=1e-4, atol=1e-5)


@pytest.mark.host_memory("shares memory with NumPy")
def test_pending_readers_and_shared_memory():
    shared = np.ones(100, np.float32)
    p = torch.from_numpy(shared).requires_grad_()
    before = p * 2  # pending: must read what p was
    whole = torch.ones(2, 50)
    part = whole[0].requires_grad_()
    p.grad, part.grad = torch.ones(100), torch.ones(50)
    optimizer = torch.optim.Adam([p, part], lr=0.5)
    optimizer.step()
    assert np.allclose(shared, 0.5) and np.allclose(before.detach().numpy(), 2)
    assert np.allclose(whole[0].detach().numpy(), 0.5) and np.all(whole[1].numpy() == 1)


def test_a_saved_parameter_changed_by_the_step():
    p = torch.ones(3, requires_grad=True)
    y = (p * p).sum()
    p.grad = torch.ones(3)
    torch.optim.Adam([p]).step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


@pytest.mark.host_memory("of the CPU's fused step")
def test_a_failed_gradient_leaves_all_as_it_was():
    p, q = torch.ones(4, requires_grad=True), torch.ones(4, requires_grad=True)
    p.grad = torch.ones(4)
    optimizer = torch.optim.Adam([p, q])
    with pytest.raises(IndexError):
        q.grad = torch.ones(5)[torch.arange(4) * 3]  # known to fail only when evaluated
        optimizer.step()
    assert np.all(p.detach().numpy() == 1) and np.all(q.detach().numpy() == 1)
