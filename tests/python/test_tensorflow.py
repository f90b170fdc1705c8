"""simt.tensorflow: the functions around tf.keras, gradient tapes, datasets; against NumPy."""

import os
from importlib.machinery import PathFinder

import numpy as np
import pytest

if PathFinder.find_spec("keras") is None:
    pytest.skip("Keras is not installed", allow_module_level=True)

os.environ.setdefault("KERAS_HOME", os.path.join(os.environ.get("TMPDIR", "/tmp"), "simt-keras"))
import simt.tensorflow as tf

X = np.linspace(-2, 2, 12).reshape(3, 4).astype("float32")


def close(tensor, expected, **kw):
    np.testing.assert_allclose(tensor.numpy(), expected, rtol=1e-5, atol=1e-6, **kw)


def test_devices():
    assert tf.config.list_physical_devices("GPU") == []
    (cpu,) = tf.config.experimental.list_physical_devices()
    assert repr(cpu) == "PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU')"
    assert tf.config.list_logical_devices("CPU")[0].name == "/device:CPU:0"
    tf.config.set_visible_devices([cpu], "CPU")
    with pytest.raises(ValueError, match="Unrecognized device"):
        tf.config.experimental.set_memory_growth("gpu", True)
    assert not tf.test.is_gpu_available() and tf.test.gpu_device_name() == ""


@pytest.mark.parametrize(
    "made, expected",
    [
        (lambda: tf.constant([[1, 2], [3, 4]], dtype=tf.float32), [[1, 2], [3, 4]]),
        (lambda: tf.reduce_sum(X, axis=1), X.sum(1)),
        (lambda: tf.reduce_mean(X), X.mean()),
        (lambda: tf.math.reduce_std(X, 0), X.std(0)),
        (lambda: tf.matmul(X, X, transpose_b=True), X @ X.T),
        (lambda: tf.einsum("ij,ik->jk", X, X), X.T @ X),
        (lambda: tf.nn.softmax(X), np.exp(X) / np.exp(X).sum(1, keepdims=True)),
        (lambda: tf.nn.relu(X), np.maximum(X, 0)),
        (lambda: tf.concat([X, X], 0), np.concatenate([X, X])),
        (lambda: tf.gather(X, [2, 0]), X[[2, 0]]),
        (lambda: tf.gather_nd(X, [[0, 1], [2, 3]]), X[[0, 2], [1, 3]]),
        (lambda: tf.where(X > 0, X, 0.0), np.where(X > 0, X, 0)),
        (lambda: tf.boolean_mask(X, X > 0), X[X > 0]),
        (lambda: tf.one_hot([0, 2], 3), np.eye(3)[[0, 2]]),
        (lambda: tf.cumsum(X, 1, exclusive=True), np.cumsum(X, 1) - X),
        (lambda: tf.cumsum(X, 1, reverse=True), np.cumsum(X[:, ::-1], 1)[:, ::-1]),
        (lambda: tf.pad(X, [[1, 0], [0, 2]]), np.pad(X, [[1, 0], [0, 2]])),
        (lambda: tf.clip_by_value(X, -1, 1), X.clip(-1, 1)),
        (lambda: tf.clip_by_norm(X, 1.0), X / np.linalg.norm(X)),
        (lambda: tf.sort(X, direction="DESCENDING"), -np.sort(-X)),
        (lambda: tf.math.top_k(X, 2)[0], -np.sort(-X)[:, :2]),
        (lambda: tf.transpose(X), X.T),
        (lambda: tf.cast(X, tf.int32), X.astype("int32")),
        (lambda: tf.linalg.inv(X[:, :3] + np.eye(3)), np.linalg.inv(X[:, :3] + np.eye(3))),
        (lambda: tf.image.flip_left_right(X[None, :, :, None]), X[None, :, ::-1, None]),
    ],
)
def test_functions(made, expected):
    close(made(), np.asarray(expected))


def test_argmax_is_along_the_first_axis():
    made = tf.argmax(X)
    assert made.dtype == tf.int64 and made.numpy().tolist() == X.argmax(0).tolist()


def test_dtypes():
    assert tf.float32.is_floating and tf.as_dtype("int32") == tf.int32
    assert tf.constant(1).dtype == tf.int32 and tf.constant(1.0).dtype == tf.float32
    assert tf.float64.as_numpy_dtype is np.float64 and repr(tf.uint8) == "tf.uint8"


def test_names_that_are_not_there():
    with pytest.raises(AttributeError, match="'reduce_summ': not in simt yet; nearest is .*reduc"):
        tf.reduce_summ
    with pytest.raises(AttributeError, match="not in simt yet"):
        tf.nn.foo
    assert not hasattr(tf, "raw_ops") and "reduce_sum" in dir(tf)


# ---- gradients


def test_gradient_of_variables():
    w = tf.Variable([[1.0], [2.0], [-1.0], [0.5]])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.matmul(X, w) ** 2)
    close(tape.gradient(loss, w), 2 * X.T @ (X @ w.numpy()))
    assert loss.numpy() > 0 and not w._value.requires_grad
    with pytest.raises(RuntimeError, match="non-persistent"):
        tape.gradient(loss, w)


def test_assigned_after_the_tape():
    w = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        loss = w * w
    w.assign(100.0)
    assert tape.gradient(loss, w).numpy() == 6.0


def test_watched_tensors_persistent_and_nested():
    v = tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(v)
        a = v * v
        b = a * v
    assert (tape.gradient(a, v).numpy(), tape.gradient(b, v).numpy()) == (6, 27)
    assert tape.gradient(b, tf.constant(1.0)) is None
    with tf.GradientTape() as outer:
        outer.watch(v)
        with tf.GradientTape() as inner:
            inner.watch(v)
            c = v**3
        first = inner.gradient(c, v)
    assert (first.numpy(), outer.gradient(first, v).numpy()) == (27, 18)


def test_jacobian():
    x = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    close(tape.jacobian(y, x), np.diag([2.0, 4.0, 6.0]))


def test_custom_gradient():
    @tf.custom_gradient
    def twice_the_gradient(x):
        return x * 1.0, lambda upstream: 2 * upstream

    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = twice_the_gradient(x) * 3
    assert tape.gradient(y, x).numpy() == 6


def test_training_loop():
    tf.random.set_seed(1)
    x = np.random.default_rng(0).random((64, 4)).astype("float32")
    y = x @ np.array([[1.0], [-2.0], [3.0], [0.5]], "float32")
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    optimizer = tf.keras.optimizers.Adam(0.1)
    data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(64, seed=0).batch(16)

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(y - model(x, training=True)))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    losses = [step(a, b).numpy() for _ in range(60) for a, b in data]
    assert losses[0] > 1 and losses[-1] < 0.01
    model.compile("sgd", "mse")
    assert model.evaluate(data, verbose=0) < 0.01


# ---- data


def numbers(dataset):
    return [np.asarray(x).tolist() for x in dataset.as_numpy_iterator()]


def test_datasets():
    five = tf.data.Dataset.range(5)
    assert numbers(five.map(lambda x: x * 2).filter(lambda x: x > 2)) == [4, 6, 8]
    assert numbers(five.batch(2)) == [[0, 1], [2, 3], [4]]
    assert numbers(five.batch(2, drop_remainder=True)) == [[0, 1], [2, 3]]
    assert numbers(five.skip(1).take(2).repeat(2)) == [1, 2, 1, 2]
    assert sorted(numbers(five.shuffle(3, seed=1))) == [0, 1, 2, 3, 4]
    assert numbers(five.concatenate(five.take(1))) == [0, 1, 2, 3, 4, 0]
    assert list(tf.data.Dataset.zip((five, five.skip(1))).as_numpy_iterator())[-1] == (3, 4)
    assert len(five.batch(2)) == 3 and five.repeat().cardinality().numpy() == -1
    with pytest.raises(TypeError, match="infinite"):
        len(five.repeat())


def test_dataset_of_structures():
    data = tf.data.Dataset.from_tensor_slices({"x": X, "y": [1, 2, 3]}).batch(2)
    first = next(iter(data))
    close(first["x"], X[:2])
    assert first["y"].numpy().tolist() == [1, 2]
    with pytest.raises(ValueError, match="Dimensions"):
        tf.data.Dataset.from_tensor_slices((X, [1, 2]))


def test_windows_batches_and_padding():
    windows = tf.data.Dataset.range(7).window(3, shift=2).flat_map(lambda w: w.batch(3))
    assert numbers(windows) == [[0, 1, 2], [2, 3, 4], [4, 5, 6], [6]]
    ragged = tf.data.Dataset.from_generator(
        lambda: ([i] * i for i in (1, 3, 2)), output_signature=tf.TensorSpec([None], tf.int32)
    )
    assert numbers(ragged.padded_batch(3))[0] == [[1, 0, 0], [3, 3, 3], [2, 2, 0]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="Cannot batch tensors with different"):
        list(ragged.batch(2))
    with pytest.raises(tf.errors.OutOfRangeError, match="End of sequence"):
        iter(tf.data.Dataset.range(0)).get_next()


def test_a_shuffle_keeps_to_its_buffer_and_its_seed():
    hundred = tf.data.Dataset.range(100)
    mixed = numbers(hundred.shuffle(10, seed=4))
    assert sorted(mixed) == list(range(100)) and all(x <= at + 9 for at, x in enumerate(mixed))
    assert mixed == numbers(hundred.shuffle(10, seed=4))
    once = hundred.shuffle(100, seed=1, reshuffle_each_iteration=False)
    assert numbers(once) == numbers(once)
    again = hundred.shuffle(100, seed=1)
    assert numbers(again) != numbers(again)


def test_cached_elements_are_made_once():
    made = []
    data = tf.data.Dataset.range(3).map(lambda x: made.append(1) or x).cache()
    del made[:]
    assert numbers(data) == numbers(data) == [0, 1, 2] and len(made) == 3


# ---- what Keras gives is shown


def test_layers_give_and_get_tensors():
    seen = []

    class Scale(tf.keras.layers.Layer):
        def build(self, shape):
            self.scale = self.add_weight(shape=(shape[-1],), initializer="ones")

        def call(self, inputs):
            seen.append(isinstance(inputs, tf.Tensor) and inputs.get_shape())
            return inputs * self.scale

    made = tf.keras.Sequential([tf.keras.layers.Dense(2), Scale()])(X)
    assert repr(made).startswith("<tf.Tensor: shape=(3, 2), dtype=float32")
    assert set(seen) == {tf.TensorShape([3, 2])}
    loss = tf.keras.losses.MeanSquaredError()(np.ones((3, 2)), made)
    assert loss.dtype is tf.float32 and str(loss).startswith("tf.Tensor(")
    metric = tf.keras.metrics.Mean()
    metric.update_state([1.0, 3.0])
    assert str(metric.result()) == "tf.Tensor(2.0, shape=(), dtype=float32)"
    assert isinstance(tf.keras.ops.add(1, 2), tf.Tensor)


def test_mixed_dtypes_are_refused():
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected to be a int32 tensor"):
        tf.constant([1]) + tf.constant([1.0])


def test_modules_find_their_variables():
    class Line(tf.Module):
        def __init__(self):
            super().__init__(name="line")
            self.w = tf.Variable(2.0, name="w")
            self.parts = [tf.Variable(1.0), {"b": tf.Variable(0.0, trainable=False)}]

    line = Line()
    assert [v.numpy() for v in line.variables] == [1, 0, 2]
    assert len(line.trainable_variables) == 2 and line.submodules == ()


def test_functions_of_the_user():
    class Counter:
        @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)], jit_compile=True)
        def doubled(self, x):
            return x * 2

        @tf.function
        def plain(self, x, y=1):
            return x + y

    assert Counter().doubled(np.ones(2, "float32")).numpy().tolist() == [2, 2]
    with pytest.raises(TypeError, match="Can not cast TensorSpec"):
        Counter().doubled(tf.constant([1]))
    assert Counter().plain(tf.constant(2)).numpy() == 3
    with pytest.raises(NotImplementedError, match="not in simt yet"):
        tf.function(lambda x: x).get_concrete_function()


def test_tensors_are_copied_and_pickled():
    import copy
    import pickle

    x = tf.constant([[1.5, 2.0]], tf.bfloat16)
    for other in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x)):
        assert other.dtype is tf.bfloat16 and other.numpy().tolist() == [[1.5, 2.0]]


# ---- checkpoints


def test_checkpoints(tmp_path):
    v, model = tf.Variable([1.0, 2.0]), tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model(X)
    checkpoint = tf.train.Checkpoint(v=v, model=model)
    manager = tf.train.CheckpointManager(checkpoint, tmp_path, max_to_keep=2)
    before = model.get_weights()
    for value in (1.0, 2.0, 3.0):
        v.assign([value, value])
        manager.save()
    assert manager.checkpoints == [str(tmp_path / f"ckpt-{i}") for i in (2, 3)]
    assert tf.train.latest_checkpoint(tmp_path) == str(tmp_path / "ckpt-3")
    v.assign([0.0, 0.0])
    model.set_weights([w * 0 for w in before])
    checkpoint.restore(str(tmp_path / "ckpt-2")).assert_consumed()
    assert v.numpy().tolist() == [2, 2] and np.array_equal(model.get_weights()[0], before[0])
    with pytest.raises(AssertionError, match="1 Python objects that were not bound"):
        tf.train.Checkpoint(w=v).restore(str(tmp_path / "ckpt-2")).assert_existing_objects_matched()


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 not a zip", b"\x00" * 1000])
def test_a_corrupt_checkpoint_is_refused(tmp_path, content):
    (tmp_path / "c-1.npz").write_bytes(content)
    with pytest.raises(tf.errors.DataLossError, match="no checkpoint of simt"):
        tf.train.Checkpoint(v=tf.Variable(1.0)).restore(str(tmp_path / "c-1"))


# ---- training


def squares():
    class Squares(tf.keras.Model):
        """A model whose step, loss and metric are the user's."""

        def __init__(self):
            super().__init__()
            self.dense, self.mean = tf.keras.layers.Dense(1), tf.keras.metrics.Mean(name="loss")

        def call(self, x):
            return self.dense(x)

        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(y - self(x, training=True)))
            variables = self.trainable_variables
            self.optimizer.apply_gradients(
                zip(tape.gradient(loss, variables), variables, strict=True)
            )
            self.mean.update_state(loss)
            return {"loss": self.mean.result()}

    return Squares()


@pytest.mark.parametrize("own_step", [False, True])
def test_fit_with_a_look_at_each_batch(own_step):
    x = np.random.default_rng(0).random((64, 3)).astype("float32")
    y = x.sum(1, keepdims=True)
    model = squares() if own_step else tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile(tf.keras.optimizers.Adam(0.1), "mse")
    seen = []
    watch = tf.keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: seen.append(float(logs["loss"]))
    )
    history = model.fit(x, y, epochs=30, verbose=0, callbacks=[watch])
    assert len(seen) == 60 and history.history["loss"][-1] < 0.1 * seen[0]
    assert model.predict(tf.constant(x), verbose=0).shape == (64, 1)
    if not own_step:
        assert model.evaluate(x, y, verbose=0) < 0.1 * seen[0]


def test_a_loss_of_the_users():
    def absolute(y_true, y_pred):
        return tf.reduce_mean(tf.abs(tf.cast(y_true, y_pred.dtype) - y_pred), axis=-1)

    x = np.random.default_rng(0).random((64, 3)).astype("float32")
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile(tf.keras.optimizers.Adam(0.1), absolute, metrics=[absolute])
    assert model.fit(x, x.sum(1), epochs=40, verbose=0).history["loss"][-1] < 0.1


def test_layers_written_before_anything_else(tmp_path):
    import subprocess
    import sys

    program = tmp_path / "first.py"
    program.write_text(
        "import tensorflow as tf\n"
        "class Same(tf.keras.layers.Layer):\n"
        "    def call(self, x):\n"
        "        print(x.get_shape())\n"
        "        return x\n"
        "print(tf.keras.Sequential([Same()])(tf.constant([[1.0, 2.0]])))\n"
    )
    command = [sys.executable, "-m", "simt", "run", "-q", str(program)]
    out = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    *shapes, shown = out.splitlines()  # Keras tries the layer for its shape, and then calls it
    assert set(shapes) == {"(1, 2)"}
    assert shown == "tf.Tensor([[1. 2.]], shape=(1, 2), dtype=float32)"
