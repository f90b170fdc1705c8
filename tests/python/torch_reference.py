"""Random programs of views, in-place writes, reductions and expressions, for both libraries."""

import numpy as np
from simt import torch
from target import APART

PROGRAM_STEPS = [
    "add",
    "mul",
    "where",
    "exp",
    "view_add",
    "slice_set",
    "col_set",
    "sum",
    "mean",
    "transpose",
    "reshape",
    "mask_set",
    "index_set",
    "index_get",
    "cat",
    "matmul",
    "softmax",
    "write_numpy",
    "clamp",
    "max",
    "expand",
    "cumsum",
    "clone_add",
    "row_swap",
    "half",
]


def run_program(steps, seed):
    """Two lists of results; entry 0 shares its memory with NumPy in both worlds."""
    rng = np.random.default_rng(seed)
    base = rng.standard_normal((4, 6)).astype(np.float32)
    shared = base.copy()
    mine, theirs = [torch.from_numpy(shared)], [base.copy()]
    for name, k in steps:
        i = k % len(mine)
        t, a = mine[i], theirs[i]
        rows, columns = a.shape
        r, c = k % rows, k % columns
        s = float(k % 7) - 3
        new = None
        if name == "add":
            t += s
            a += np.float32(s)
        elif name == "mul":
            j = (k // 7) % len(mine)
            if mine[j].shape == t.shape:
                new = (t * mine[j] * 0.25, a * theirs[j] * np.float32(0.25))
        elif name == "where":
            new = (torch.where(t > 0, t, s), np.where(a > 0, a, np.float32(s)))
        elif name == "exp":
            new = ((-t.abs()).exp(), np.exp(-np.abs(a)))
        elif name == "view_add":
            t[r:].add_(s)
            a[r:] += np.float32(s)
        elif name == "slice_set":
            t[r] = t[0] * 0.5
            a[r] = a[0] * np.float32(0.5)
        elif name == "col_set":
            t[:, c] = s
            a[:, c] = np.float32(s)
        elif name == "sum":
            new = (t.sum(1, keepdim=True) * 0.1 + t, a.sum(1, keepdims=True) * np.float32(0.1) + a)
        elif name == "mean":
            new = (t - t.mean(0), a - a.mean(0))
        elif name == "transpose":
            new = (t.t(), a.T)  # views on both sides
        elif name == "reshape":
            new = (t.reshape(columns, rows).clone(), a.reshape(columns, rows).copy())
        elif name == "mask_set":
            t[t > 1] = s
            a[a > 1] = np.float32(s)
        elif name == "index_set":
            t[torch.tensor([r, 0])] = s
            a[np.array([r, 0])] = np.float32(s)
        elif name == "index_get":
            new = (t[torch.tensor([r, 0, r])], a[np.array([r, 0, r])])
        elif name == "cat":
            new = (torch.cat([t[:r], t[r:]], 0), a.copy())
        elif name == "matmul":
            new = (t @ t.t() * 0.01, a @ a.T * np.float32(0.01))
        elif name == "softmax":
            e = np.exp(a - a.max(1, keepdims=True))
            new = (t.softmax(1), e / e.sum(1, keepdims=True))
        elif name == "write_numpy":
            (mine[0] if APART else shared)[k % 4, k % 6] = s
            theirs[0][k % 4, k % 6] = s
        elif name == "clamp":
            t.clamp_(-2, 2)
            np.clip(a, -2, 2, out=a)
        elif name == "max":
            new = (t.max(1, keepdim=True)[0] - t, a.max(1, keepdims=True) - a)
        elif name == "expand":
            new = (t[r].expand(3, columns) + 1, np.broadcast_to(a[r], (3, columns)) + np.float32(1))
        elif name == "cumsum":
            new = (t.cumsum(0) * 0.5, np.cumsum(a, 0) * np.float32(0.5))
        elif name == "clone_add":
            new = (t.clone().add_(s), a + np.float32(s))
        elif name == "row_swap":
            keep, other = t[0].clone(), a[0].copy()
            t[0] = t[r]
            a[0] = a[r].copy()
            t[r] = keep
            a[r] = other
        elif name == "half":
            t.mul_(0.5)
            a *= np.float32(0.5)
        if new is not None and len(mine) < 8:
            mine.append(new[0])
            theirs.append(new[1])
    return mine, theirs
