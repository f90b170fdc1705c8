"""The tutorial's own programs (examples/seed, unmodified) under `python -m simt run`."""

import ast
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SEED = Path(__file__).resolve().parents[2] / "examples" / "seed"

# Runs a seed program's text with fewer epochs, then looks at what it left.
SHORTENED = """
source = open({path!r}, encoding="utf-8").read()
assert source.count("range(5)") == 1
names = {{"__name__": "__main__"}}
exec(compile(source.replace("range(5)", "range({epochs})"), {path!r}, "exec"), names)
torch, model = names["torch"], names["model"]
test = names["datasets"].MNIST("./data", train=False, transform=names["transform"])
right = 0
for data, target in torch.utils.data.DataLoader(test, batch_size=1000):
    right += (model(data.view(-1, 784)).argmax(dim=1) == target).sum().item()
print("accuracy", right / len(test))
"""


def require(*modules):
    for name in modules:
        try:
            found = importlib.import_module(name).__file__
            if found is None:  # a folder without its __init__.py
                pytest.skip(f"{name} is not there")
        except ImportError as e:
            pytest.skip(f"{name} is not there ({e})")


def simt_run(script, folder):
    env = dict(os.environ, SIMT_DATA=str(folder / "cache"), PYTHONIOENCODING="utf-8")
    if "PYTHONPATH" in env:  # may be relative to where the tests were started
        parts = env["PYTHONPATH"].split(os.pathsep)
        env["PYTHONPATH"] = os.pathsep.join(os.path.abspath(p) for p in parts if p)
    command = [sys.executable, "-m", "simt", "run", str(script)]
    done = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, encoding="utf-8", timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize("epochs", [1, pytest.param(5, marks=pytest.mark.slow)])
def test_pytorch_mnist(tmp_path, epochs):
    require("simt.cli", "simt.torch", "simt.torchvision.datasets")
    script = tmp_path / "shortened.py"
    script.write_text(SHORTENED.format(path=str(SEED / "pytorch_mnist.py"), epochs=epochs))
    lines = simt_run(script, tmp_path).stdout.splitlines()
    assert lines[0] == "Using device: cpu"
    accuracy = float(lines[-1].removeprefix("accuracy "))
    assert accuracy >= (0.968 if epochs == 5 else 0.92)
    # left in torchvision's form, so that a later download=False finds it
    assert (tmp_path / "data" / "MNIST" / "raw" / "train-images-idx3-ubyte").exists()


def numbers(text):
    return np.array(ast.literal_eval(re.sub(r"(?<=[\d.\]])\s+(?=[-\d.\[])", ", ", text.strip())))


def test_cupy_basics(tmp_path):
    require("simt.cli", "simt.cupy")
    out = simt_run(SEED / "cupy_basics.py", tmp_path).stdout
    first, second, rest = re.split(r"(?<=\]\])\n", out)
    a, c = numbers(first), numbers(second)
    assert a.shape == c.shape == (5, 5)
    assert ((a >= 0) & (a < 1)).all()
    np.testing.assert_allclose(float(rest), a.sum(), rtol=1e-6)


def test_cupy_product_equals_numpy(tmp_path):
    require("simt.cli", "simt.cupy")
    script = tmp_path / "product.py"
    script.write_text(
        (SEED / "cupy_basics.py").read_text(encoding="utf-8")
        + "\nassert isinstance(np_array, np.ndarray) and np_array.dtype == np.float64"
        + "\nnp.testing.assert_allclose(c.get(), np_array @ b.get(), rtol=1e-12)"
        + "\nprint('equal')\n",
        encoding="utf-8",
    )
    assert simt_run(script, tmp_path).stdout.splitlines()[-1] == "equal"


def test_numba_add(tmp_path):
    require("simt.cli", "simt.numba")
    done = simt_run(SEED / "numba_add.py", tmp_path)
    assert re.fullmatch(r"Sum of arrays: \[[0-9. ]+\.\.\.[0-9. ]+\]\n", done.stdout)
    assert "simt's own" in done.stderr and "numba" in done.stderr


def test_cuda_vector_add(tmp_path):
    require("simt.cli", "simt.cupy")
    out = simt_run(SEED / "cuda_vector_add.py", tmp_path).stdout
    assert out.splitlines()[-1] == "right: True"


CHECKED = """
source = open({path!r}, encoding="utf-8").read()
names = {{"__name__": "__main__"}}
exec(compile(source, {path!r}, "exec"), names)
assert (names["c"] == names["a"] + names["b"]).all() and names["c"].shape == (1000000,)
print("right")
"""


def test_numba_add_is_right(tmp_path):
    require("simt.cli", "simt.numba")
    script = tmp_path / "checked.py"
    script.write_text(CHECKED.format(path=str(SEED / "numba_add.py")))
    assert simt_run(script, tmp_path).stdout.splitlines()[-1] == "right"
