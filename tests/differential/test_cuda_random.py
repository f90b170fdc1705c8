"""Random programs: our CUDA C against g++ (integers that wrap, no contraction); what nvcc takes."""

import ctypes
import os
import random
import shutil
import subprocess
import sys

import numpy as np
import pytest
import simt.cupy as cp

sys.path.insert(0, os.path.join(os.path.dirname(__file__), os.pardir, "python"))
from cuda_gen import OUTS, REALS, Body, texts
from cuda_programs import PROGRAMS

THREADS = 70
X = np.array([5, -3, 0, 127, 128, -1000, 65536, 2**31 - 1], np.int32)
FLAGS = "-x c++ -std=c++17 -O1 -fwrapv -ffp-contract=off -w -shared -fPIC".split()
CLEAN = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}  # of a sanitizer
NVCC = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"


def by_gcc(host, folder):
    source, library = folder / "f.cc", folder / "f.so"
    source.write_text(host)
    subprocess.run(["g++", *FLAGS, source, "-o", library], check=True, env=CLEAN)
    out, real = np.zeros((THREADS, OUTS), np.int64), np.zeros((THREADS, REALS))
    call = ctypes.CDLL(str(library)).f
    call(*(ctypes.c_void_p(a.ctypes.data) for a in (X, out, real)), THREADS)
    return out, real


def by_simt(cuda):
    out, real = cp.zeros((THREADS, OUTS), dtype=cp.int64), cp.zeros((THREADS, REALS))
    cp.RawKernel(cuda, "f")((3,), (32,), (cp.asarray(X), out, real, THREADS))
    return cp.asnumpy(out), cp.asnumpy(real)


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
@pytest.mark.parametrize("seed", range(30))
def test_random_programs(seed, tmp_path):
    body = Body(random.Random(seed)).text()
    cuda, host = texts(body)
    for got, expected in zip(by_simt(cuda), by_gcc(host, tmp_path), strict=True):
        np.testing.assert_array_equal(got, expected, err_msg=cuda)


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists(NVCC), reason="needs nvcc")
def test_nvcc_takes_what_we_take(tmp_path):
    source = tmp_path / "all.cu"
    parts = [f"namespace {name} {{\n{text}\n}}\n" for name, (text, _) in PROGRAMS.items()]
    source.write_text("#include <cassert>\n" + "".join(parts))
    command = [NVCC, "-ptx", source, "-o", "/dev/null"]
    done = subprocess.run(command, capture_output=True, text=True, env=CLEAN)
    assert done.returncode == 0, done.stderr
