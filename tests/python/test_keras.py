"""Stock Keras with simt as its backend: the hook, training, files, what is absent."""

import os
import subprocess
import sys
from importlib.machinery import PathFinder
from pathlib import Path

import numpy as np
import pytest

if PathFinder.find_spec("keras") is None:
    pytest.skip("Keras is not installed", allow_module_level=True)

os.environ.setdefault("KERAS_HOME", os.path.join(os.environ.get("TMPDIR", "/tmp"), "simt-keras"))
import simt.keras  # isort: skip (before Keras)
import keras
from keras import ops

SEED = Path(__file__).resolve().parents[2] / "examples" / "seed"


def python(code, *args, **env):
    """(exit code, stdout, stderr) of a new Python."""
    env = {k: v for k, v in os.environ.items() if k != "KERAS_BACKEND"} | env
    env["PYTHONPATH"] = os.pathsep.join(os.path.abspath(p) for p in sys.path if p)
    done = subprocess.run(
        [sys.executable, *args, "-c", code], env=env, capture_output=True, text=True, timeout=300
    )
    return done.returncode, done.stdout, done.stderr


# ---- the hook


def test_backend_is_simt():
    assert keras.backend.backend() == "simt"
    assert ops.ones(2).numpy().tolist() == [1.0, 1.0]


def test_another_backend_wins_with_one_line():
    code = "import simt.keras, sys; print([f for f in sys.meta_path if f is simt.keras._Finder])"
    status, out, err = python(code, KERAS_BACKEND="jax")
    assert (status, out) == (0, "[]\n")
    assert err == "simt.keras: KERAS_BACKEND=jax is set: Keras runs on it\n"


def test_every_anchor_must_be_there_once():
    for name in simt.keras.PATCHES:
        with pytest.raises(ImportError, match=r"cannot be the backend of Keras 3\.15.*0 places"):
            simt.keras._patched(name, b"import os\n")
        anchor = simt.keras.PATCHES[name][0][0].encode()
        with pytest.raises(ImportError, match="2 places"):
            simt.keras._patched(name, anchor + anchor)


def test_lines_of_patched_modules_are_those_of_the_file():
    import inspect

    from keras.src.layers.layer import Layer

    text = Path(inspect.getsourcefile(Layer)).read_text().splitlines()
    assert text[Layer.call.__code__.co_firstlineno - 1].strip().startswith(("def call", "@"))


def test_keras_imported_before_is_refused():
    code = (
        "import sys, types; m = types.ModuleType('keras.src.backend.config');"
        "m.backend = lambda: 'jax'; sys.modules['keras.src.backend.config'] = m; import simt.keras"
    )
    status, _, err = python(code)
    assert status == 1
    assert "RuntimeError: simt.keras: Keras is imported already (its backend is jax)" in err


def test_our_faces_are_absent_for_keras():
    code = (
        "import tensorflow, torch, keras; from keras.src.utils.module_utils import tensorflow as t;"
        "from keras.src.utils.module_utils import jax as j; print(t.available, j.available)"
    )
    status, out, err = python(f"import simt.alias; simt.alias.install(); {code}")
    assert (status, out) == (0, "False False\n"), err


def test_layers_of_data_beside_our_tensorflow():
    # They ask whether TensorFlow, which is imported, traces a graph.
    code = (
        "import tensorflow as tf, numpy as np;"
        "layers = tf.keras.Sequential([tf.keras.layers.Rescaling(2.0),"
        "tf.keras.layers.RandomFlip('horizontal'), tf.keras.layers.Solarization()]);"
        "print(layers(np.ones((2, 4, 4, 3), 'float32')).shape == (2, 4, 4, 3))"
    )
    status, out, err = python(f"import simt.alias; simt.alias.install(); {code}")
    assert (status, out) == (0, "True\n"), err


# ---- training: against the same steps in NumPy


def softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def test_sgd_steps_are_those_of_numpy():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(64, 5)).astype("float32"), rng.integers(0, 3, 64)
    model = keras.Sequential(
        [keras.Input((5,)), keras.layers.Dense(7, activation="tanh"), keras.layers.Dense(3)]
    )
    w1, b1, w2, b2 = (w.astype("float64") for w in model.get_weights())
    model.compile(
        keras.optimizers.SGD(0.1), keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    )
    for step in range(20):
        at = slice(step % 4 * 16, step % 4 * 16 + 16)
        loss = model.train_on_batch(x[at], y[at])
        h = np.tanh(x[at] @ w1 + b1)
        p = softmax(h @ w2 + b2)
        np.testing.assert_allclose(loss, -np.log(p[range(16), y[at]]).mean(), rtol=1e-5)
        d = (p - np.eye(3)[y[at]]) / 16
        dh = (d @ w2.T) * (1 - h * h)
        w2, b2 = w2 - 0.1 * h.T @ d, b2 - 0.1 * d.sum(0)
        w1, b1 = w1 - 0.1 * x[at].T @ dh, b1 - 0.1 * dh.sum(0)
    for ours, theirs in zip(model.get_weights(), (w1, b1, w2, b2), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_results_outside_training_are_plain_tensors():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    assert model(np.ones((3, 2))).numpy().shape == (3, 1)
    model.compile("sgd", "mse")
    model.fit(np.ones((4, 2)), np.ones((4, 1)), verbose=0)
    out = model(np.ones((3, 2)))
    assert not keras.src.backend.core.convert_to_tensor(out).requires_grad
    assert np.asarray(out).shape == (3, 1)
    assert not any(v.value.requires_grad for v in model.variables)


def test_a_value_read_from_a_variable_stays():
    v = keras.Variable([1.0, 2.0])
    before = v.value
    v.assign([5.0, 6.0])
    assert before.tolist() == [1.0, 2.0] and v.numpy().tolist() == [5.0, 6.0]


def test_seeds_give_the_same_numbers():
    draw = keras.random.normal((3,), seed=7).tolist()
    assert keras.random.normal((3,), seed=7).tolist() == draw
    generator = keras.random.SeedGenerator(7)
    first, second = (keras.random.normal((3,), seed=generator).tolist() for _ in range(2))
    assert first == draw and second != draw
    assert generator.state.numpy().tolist() == [7, 2]


# ---- the tutorial's programs


def seed_program(name, tail=""):
    code = f"exec(compile(open({str(SEED / name)!r}).read() + {tail!r}, {name!r}, 'exec'))"
    status, out, err = python(f"import simt.alias; simt.alias.install(); {code}")
    assert status == 0, err
    return out


def test_devices():
    assert seed_program("tensorflow_devices.py") == ""


@pytest.mark.slow
def test_mnist():
    out = seed_program(
        "tensorflow_mnist.py", "\nprint(model.evaluate(x_test, y_test, verbose=0)[1])"
    )
    assert "Epoch 5/5" in out and "1875/1875" in out
    assert float(out.splitlines()[-1]) >= 0.972


def test_mnist_data_is_that_of_torchvision():
    from simt.torchvision.datasets import mnist

    (x, y), (x_test, y_test) = keras.datasets.mnist.load_data()
    assert (x.shape, x.dtype, y.shape, y.dtype) == ((60000, 28, 28), "uint8", (60000,), "uint8")
    assert (x_test.shape, y_test.shape) == ((10000, 28, 28), (10000,))
    path = mnist._find(os.path.join(mnist._SHIPPED, "MNIST", "raw"), "t10k-labels-idx1-ubyte")
    assert y_test.tobytes() == mnist._read(path)[8:]


def test_tf_keras_is_keras():
    code = (
        "import tensorflow as tf, keras; from tensorflow.keras.layers import Dense;"
        "from tensorflow.keras import datasets; import tensorflow.keras.models;"
        "print(Dense is keras.layers.Dense, tf.keras.Model is keras.Model,"
        "datasets is tf.keras.datasets, tf.keras.__name__)"
    )
    status, out, err = python(f"import simt.alias; simt.alias.install(); {code}")
    assert (status, out) == (0, "True True True keras._tf_keras.keras\n"), err


# ---- files, and Keras's own tests

FILES = """
import os, sys
if sys.argv[1] == "simt":
    import simt.keras
import keras, numpy as np
folder, me, other = sys.argv[2], sys.argv[1], sys.argv[3]

def make():
    keras.utils.set_random_seed(1)
    i = keras.Input((8, 8, 3))
    x = keras.layers.Conv2D(4, 3, padding="same", activation="relu")(i)
    x = keras.layers.MaxPooling2D()(keras.layers.BatchNormalization()(x))
    x = keras.layers.Conv2DTranspose(2, 3, strides=2, padding="same")(x)
    x = keras.layers.LSTM(5)(keras.layers.Reshape((16, 8))(x))
    return keras.Model(i, keras.layers.Dense(3, activation="softmax")(x))

x = np.linspace(-1, 1, 2 * 8 * 8 * 3).reshape(2, 8, 8, 3).astype("float32")
model = make()
model.save(f"{folder}/{me}.keras")
model.save_weights(f"{folder}/{me}.weights.h5")
np.save(f"{folder}/{me}.npy", model.predict(x, verbose=0))
if os.path.exists(f"{folder}/{other}.keras"):
    expected = np.load(f"{folder}/{other}.npy")
    loaded = keras.models.load_model(f"{folder}/{other}.keras")
    np.testing.assert_allclose(loaded.predict(x, verbose=0), expected, atol=1e-5)
    fresh = make()
    fresh.load_weights(f"{folder}/{other}.weights.h5")
    np.testing.assert_allclose(fresh.predict(x, verbose=0), expected, atol=1e-5)
    print("the same")
"""


def saved(folder, me, other):
    env = {} if me == "simt" else {"KERAS_BACKEND": me}
    code = f"import sys; sys.argv = ['x', {me!r}, {str(folder)!r}, {other!r}]\n{FILES}"
    status, out, err = python(code, **env)
    assert status == 0, err
    return out


def test_files_load_again(tmp_path):
    saved(tmp_path, "simt", "simt")
    assert saved(tmp_path, "simt", "simt") == "the same\n"


@pytest.mark.slow
def test_files_go_to_and_from_another_backend(tmp_path):
    """Keras's numpy backend, which itself needs JAX and SciPy."""
    for name in ("jax", "scipy"):
        if PathFinder.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    saved(tmp_path, "simt", "numpy")
    assert saved(tmp_path, "numpy", "simt") == "the same\n"
    assert saved(tmp_path, "simt", "numpy") == "the same\n"


@pytest.mark.slow
def test_keras_own_tests():
    tool = Path(__file__).resolve().parents[2] / "tools" / "keras_suite.py"
    done = subprocess.run(
        [sys.executable, str(tool), "--quick"], capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stdout + done.stderr


# ---- gradients of what NumPy computes


def _total(made, weights):
    parts = made if isinstance(made, (tuple, list)) else (made,)
    return sum(
        (ops.cast(part, "float64") * w).sum() for part, w in zip(parts, weights, strict=True)
    )


def _symmetric(x):
    return x @ x.transpose(-2, -1) + 2 * x + 2 * x.transpose(-2, -1)


LINEAR = {
    "cholesky": (
        lambda x: ops.cholesky(_symmetric(x) + 20 * ops.eye(4, dtype="float64")),
        (2, 4, 4),
    ),
    "eigh": (lambda x: [y * y for y in ops.linalg.eigh(_symmetric(x))], (2, 4, 4)),
    "qr": (ops.qr, (2, 5, 3)),
    "svd": (lambda x: [y * y for y in ops.svd(x, full_matrices=False)], (2, 5, 3)),
    "svd of wide": (lambda x: [y * y for y in ops.svd(x, full_matrices=False)], (3, 5)),
    "singular values": (lambda x: ops.svd(x, compute_uv=False), (3, 5)),
    "pinv": (ops.linalg.pinv, (5, 3)),
    "pinv of wide": (ops.linalg.pinv, (3, 5)),
    "spectral norm": (lambda x: ops.norm(x, ord=2, axis=(0, 2), keepdims=True), (3, 2, 4)),
    "nuclear norm": (lambda x: ops.norm(x, ord="nuc"), (3, 4)),
    "fft": (lambda x: ops.fft((x[0], x[1])), (2, 3, 5)),
    "fft2": (lambda x: ops.fft2((x[0], x[1])), (2, 3, 5)),
    "ifft2": (lambda x: ops.ifft2((x[0], x[1])), (2, 3, 5)),
    "rfft": (ops.rfft, (2, 7)),
    "rfft cut": (lambda x: ops.rfft(x, 4), (2, 7)),
    "rfft padded": (lambda x: ops.rfft(x, 9), (2, 7)),
    "irfft": (lambda x: ops.irfft((x[0], x[1])), (2, 3, 5)),
    "irfft cut": (lambda x: ops.irfft((x[0], x[1]), 5), (2, 3, 5)),
    "irfft padded": (lambda x: ops.irfft((x[0], x[1]), 12), (2, 3, 5)),
    "stft": (lambda x: ops.stft(x, 6, 3, 8), (2, 20)),
    "istft": (lambda x: ops.istft((x[0], x[1]), 6, 3, 8), (2, 2, 5, 5)),
}


@pytest.mark.parametrize("name", LINEAR)
def test_gradients_are_those_of_small_differences(name):
    from simt import torch

    function, shape = LINEAR[name]
    rng = np.random.default_rng(sum(name.encode()))
    x, direction = rng.standard_normal((2, *shape))
    made = function(torch.tensor(x))
    parts = made if isinstance(made, (tuple, list)) else (made,)
    weights = [torch.tensor(rng.standard_normal(tuple(part.shape))) for part in parts]
    at = torch.tensor(x, requires_grad=True)
    _total(function(at), weights).backward()
    step = 1e-6 * direction
    high, low = (_total(function(torch.tensor(y)), weights).item() for y in (x + step, x - step))
    got = (at.grad.numpy() * direction).sum()
    assert got == pytest.approx((high - low) / 2e-6, rel=1e-6, abs=1e-7)


def test_gradients_that_are_missing_say_so():
    from simt import torch

    x = torch.ones(2, 3, requires_grad=True)
    with pytest.raises(NotImplementedError, match="the gradient of linalg.qr .* not in simt yet"):
        ops.qr(x)
    with pytest.raises(NotImplementedError, match="the gradient of linalg.svd .* not in simt yet"):
        ops.svd(x)
    with pytest.raises(NotImplementedError, match="gradient of linalg.lu_factor: not in simt yet"):
        ops.lu_factor(x)


def test_jvp():
    from keras.src.backend import linalg

    made = linalg.jvp(lambda x, y: (ops.sin(x) * y, {"sum": x + y}), (2.0, 3.0), (0.5, 0.25))
    (product, sums), (d_product, d_sums) = made
    assert product.item() == pytest.approx(np.sin(2) * 3)
    assert d_product.item() == pytest.approx(np.cos(2) * 3 * 0.5 + np.sin(2) * 0.25)
    assert (sums["sum"].item(), d_sums["sum"].item()) == (5.0, 0.75)
    assert not d_product.requires_grad
