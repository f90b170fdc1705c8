"""Device functions of the vm against the scalar evaluator: special values, all float types."""

import itertools

import numpy as np
import pytest
from ir_eval import DEVICE, FLOAT, run
from simt import _core

BLOCK = 64
TWO = ("atan2", "hypot", "pow")
POINTS = (0.0, 1.0, 0.5, 2.0, 3.0, 1e-5, 0.75, 11.0, 100.0, 1e4, np.inf)


def program(op, kind):
    """out[i] = op(a[i], b[i])."""
    second = ", %22" if op in TWO else ""
    size = np.dtype(FLOAT[kind]).itemsize
    lines = ["%10: i32 = special tid.x", "%11: i64 = sext %10", f"%12: i64 = const {size}"]
    lines += ["%13: i64 = mul %11, %12"]
    lines += [f"%{14 + k}: ptr.global = ptradd %{k}, %13" for k in range(3)]
    lines += [f"%21: {kind} = load %14", f"%22: {kind} = load %15"]
    lines += [f"%23: {kind} = {op} %21{second}", "store %16, %23", "return"]
    body = "\n".join("  " + line for line in lines)
    return f"kernel @f(%0: ptr.global, %1: ptr.global, %2: ptr.global) {{\n{body}\n}}\n"


@pytest.mark.parametrize("kind", FLOAT)
@pytest.mark.parametrize("op", DEVICE)
def test_device_function(op, kind):
    dtype = FLOAT[kind]
    points = [s * x for x in POINTS for s in (1, -1)] + [np.nan]
    pairs = np.array(list(itertools.product(points, points)), dtype)
    if op not in TWO:
        pairs = pairs[:, :1].repeat(2, 1)[:: len(points)]
    pairs = np.resize(pairs, (-(-len(pairs) // BLOCK) * BLOCK, 2))
    for at in range(0, len(pairs), BLOCK):
        a, b = (np.ascontiguousarray(pairs[at : at + BLOCK, k]) for k in range(2))
        results = []
        for go in (run, _core.ir_run):
            out = np.zeros(BLOCK, dtype)
            go(
                program(op, kind),
                1,
                BLOCK,
                [a.view(np.uint8), b.view(np.uint8), out.view(np.uint8)],
            )
            results.append(out)
        want, got = results
        plain = np.isfinite(want) & (want != 0)
        same = (want == got) & (np.signbit(want) == np.signbit(got))
        assert (same | np.isnan(want) & np.isnan(got))[~plain].all(), (a[~plain], want, got)
        size = np.abs(want[plain])
        if op == "lgamma":  # Python's is absolutely right, not relatively, where it is small
            size = np.maximum(size, 4)
        ulp = np.spacing(size.astype(dtype))
        apart = np.abs(got[plain].astype("f8") - want[plain].astype("f8"))
        assert (apart <= 3 * ulp).all(), (a[plain], b[plain], want[plain], got[plain])
