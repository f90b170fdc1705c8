"""Captured steps of Keras: the numbers of the same fit in Python, whatever the model."""

import os
import signal
import subprocess
import sys
import threading
import time
from importlib.machinery import PathFinder

import numpy as np
import pytest

if PathFinder.find_spec("keras") is None:
    pytest.skip("Keras is not installed", allow_module_level=True)

os.environ.setdefault("KERAS_HOME", os.path.join(os.environ.get("TMPDIR", "/tmp"), "simt-keras"))
import simt.keras  # noqa: F401  # isort: skip (before Keras)
import keras
from keras import layers, ops
from simt.keras_backend import captured


def is_captured(function):
    return any(isinstance(s, captured._Captured) for s in function.steps.known.values())


def dense(last="softmax", **options):
    return keras.Sequential(
        [
            layers.Dense(16, activation="relu"),
            layers.BatchNormalization(),
            layers.Dropout(0.3),
            layers.Dense(4, activation=last, **options),
        ]
    )


def data(n=100, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 6)), rng.integers(0, 4, n)


def compile_with(model, optimizer, eager):
    loss = "sparse_categorical_crossentropy"
    model.compile(optimizer, loss, metrics=["accuracy"], run_eagerly=eager)


def fitted(make, x, y, eager, fit=None, **compiled):
    """(history, weights and optimiser's state) after fit."""
    keras.utils.set_random_seed(3)
    model = make()
    compiled = {
        "loss": "sparse_categorical_crossentropy",
        "optimizer": "adam",
        "metrics": ["accuracy"],
    } | compiled
    if callable(compiled["optimizer"]):
        compiled["optimizer"] = compiled["optimizer"]()
    model.compile(run_eagerly=eager, **compiled)
    options = {"epochs": 3, "batch_size": 16, "verbose": 0} | (fit or {})
    history = model.fit(x, y, **options).history
    assert eager or is_captured(model.train_function)
    state = [np.array(v) for v in model.variables + model.optimizer.variables]
    return history, state, model


def check(make, x, y, **options):
    """Both ways give the same bits."""
    mine = fitted(make, x, y, False, **options)
    wanted = fitted(make, x, y, True, **options)
    assert mine[0] == wanted[0]
    for a, b in zip(mine[1], wanted[1], strict=True):
        np.testing.assert_array_equal(a, b)
    return mine[2]


OPTIMIZERS = {
    "sgd": lambda: keras.optimizers.SGD(0.05, momentum=0.9, nesterov=True),
    "adam": lambda: keras.optimizers.Adam(0.01, amsgrad=True),
    "adamw": lambda: keras.optimizers.AdamW(0.01, clipnorm=1.0),
    "rmsprop": lambda: keras.optimizers.RMSprop(centered=True),
    "adagrad": lambda: keras.optimizers.Adagrad(0.05),
    "ftrl": lambda: keras.optimizers.Ftrl(),
    "lion": lambda: keras.optimizers.Lion(global_clipnorm=1.0),
    "ema": lambda: keras.optimizers.SGD(use_ema=True, ema_overwrite_frequency=3),
    "accumulation": lambda: keras.optimizers.Adam(gradient_accumulation_steps=2),
    "schedule": lambda: keras.optimizers.SGD(
        keras.optimizers.schedules.ExponentialDecay(0.1, 3, 0.5, staircase=True)
    ),
    "cosine": lambda: keras.optimizers.Adam(
        keras.optimizers.schedules.CosineDecay(0.0, 10, warmup_target=0.1, warmup_steps=4)
    ),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name):
    check(dense, *data(), optimizer=OPTIMIZERS[name])


LOSSES = {
    "mse": (None, "mse", ["mae", "mse"]),
    "huber": (None, "huber", [keras.metrics.RootMeanSquaredError()]),
    "logits": (None, keras.losses.SparseCategoricalCrossentropy(from_logits=True), ["accuracy"]),
    "top": (
        "softmax",
        "sparse_categorical_crossentropy",
        [keras.metrics.SparseTopKCategoricalAccuracy(2)],
    ),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses_and_metrics(name):
    last, loss, metrics = LOSSES[name]
    x, y = data()
    if loss in ("mse", "huber"):
        y = np.eye(4)[y]
        metrics = [m if isinstance(m, str) else type(m)() for m in metrics]
    check(lambda: dense(last), x, y, loss=loss, metrics=metrics)


def test_convolutions():
    def make():
        return keras.Sequential(
            [
                layers.Conv2D(4, 3, activation="relu"),
                layers.MaxPooling2D(),
                layers.Conv2D(6, 3, padding="same", activation="relu"),
                layers.AveragePooling2D(2),
                layers.Dropout(0.25),
                layers.Flatten(),
                layers.Dense(4, activation="softmax"),
            ]
        )

    rng = np.random.default_rng(0)
    check(make, rng.normal(size=(50, 12, 12, 1)), rng.integers(0, 4, 50))


def test_sequences():
    def make():
        return keras.Sequential(
            [
                layers.Embedding(20, 8),
                layers.LSTM(6, return_sequences=True),
                layers.GRU(5),
                layers.Dense(4, activation="softmax"),
            ]
        )

    rng = np.random.default_rng(0)
    check(make, rng.integers(0, 20, (48, 5)), rng.integers(0, 4, 48))


def test_several_inputs_and_outputs_regularised():
    def make():
        a, b = keras.Input((6,), name="a"), keras.Input((6,), name="b")
        both = layers.concatenate([layers.Dense(5, kernel_regularizer="l2")(a), b])
        both = layers.GaussianNoise(0.1)(layers.LayerNormalization()(both))
        return keras.Model(
            {"a": a, "b": b},
            {"c": layers.Dense(4, "softmax", name="c")(both), "d": layers.Dense(1, name="d")(both)},
        )

    x, y = data()
    check(
        make,
        {"a": x, "b": x[::-1].copy()},
        {"c": y, "d": x[:, :1].copy()},
        loss={"c": "sparse_categorical_crossentropy", "d": "mse"},
        metrics={"c": "accuracy"},
    )


@pytest.mark.parametrize(
    "options",
    [
        {"shuffle": False},
        {"shuffle": "batch"},
        {"validation_split": 0.2},
        {"class_weight": {0: 1.0, 1: 2.0, 2: 0.5, 3: 1.0}},
        {"sample_weight": np.linspace(0, 2, 100)},
        {"steps_per_epoch": 4},
        {"batch_size": 100},
        {"validation_data": data(40, 1), "validation_freq": 2},
    ],
    ids=lambda o: next(iter(o)),
)
def test_ways_to_fit(options):
    check(dense, *data(), fit={"epochs": 4} | options)


@pytest.mark.parametrize("steps", [3, 4, 50])
def test_several_steps_per_execution(steps):
    check(dense, *data(), steps_per_execution=steps)


def test_half_precision_with_a_scaled_loss():
    keras.config.set_dtype_policy("mixed_float16")
    try:
        check(dense, *data())
    finally:
        keras.config.set_dtype_policy("float32")


def test_generators_and_batches():
    x, y = data(96)

    class Data(keras.utils.PyDataset):
        def __len__(self):
            return 6

        def __getitem__(self, i):
            return x[i * 16 : i * 16 + 16], y[i * 16 : i * 16 + 16]

    check(dense, Data(), None, fit={"shuffle": False, "batch_size": None})
    results = []
    for eager in (True, False):
        keras.utils.set_random_seed(1)
        model = dense()
        compile_with(model, "adam", eager)
        logs = [model.train_on_batch(x[:16], y[:16]) for _ in range(4)]
        results.append([logs, model.test_on_batch(x, y), model.predict_on_batch(x).tolist()])
    assert results[0] == results[1]


def test_evaluate_and_predict():
    x, y = data(100)
    keras.utils.set_random_seed(1)
    model = dense()
    results = []
    for eager in (True, False):
        compile_with(model, "sgd", eager)
        results.append(
            [model.evaluate(x, y, batch_size=16, verbose=0), model.predict(x, 16, verbose=0)]
        )
    assert results[0][0] == results[1][0]
    np.testing.assert_array_equal(results[0][1], results[1][1])
    assert is_captured(model.test_function) and is_captured(model.predict_function)


def test_callbacks_of_batches_see_each():
    x, y = data()
    seen = {}

    class Watch(keras.callbacks.Callback):
        def __init__(self, to):
            self.to = to

        def on_train_batch_end(self, batch, logs):
            weights = float(ops.sum(self.model.layers[0].kernel))
            self.to.append((batch, dict(logs), weights))
            if batch == 2:
                self.model.optimizer.learning_rate = 0.003

    for eager in (False, True):
        seen[eager] = []
        fitted(dense, x, y, eager, fit={"callbacks": [Watch(seen[eager])]})
    assert len(seen[True]) == 21
    assert [(b, {k: float(v) for k, v in logs.items()}, w) for b, logs, w in seen[False]] == [
        (b, {k: float(v) for k, v in logs.items()}, w) for b, logs, w in seen[True]
    ]


def test_callbacks_of_epochs(tmp_path):
    def options(folder):
        return {
            "epochs": 6,
            "validation_split": 0.2,
            "callbacks": [
                keras.callbacks.EarlyStopping(monitor="val_loss", patience=1),
                keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.5),
                keras.callbacks.ReduceLROnPlateau(monitor="loss"),
                keras.callbacks.ModelCheckpoint(str(tmp_path / f"{folder}.keras")),
                keras.callbacks.CSVLogger(str(tmp_path / f"{folder}.csv")),
            ],
        }

    x, y = data()
    mine = fitted(dense, x, y, False, fit=options("a"))
    wanted = fitted(dense, x, y, True, fit=options("b"))
    assert mine[0] == wanted[0]
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()
    assert (tmp_path / "a.keras").exists()


def test_a_value_read_from_a_variable_stays_while_steps_are_replayed():
    x, y = data(96)
    model = fitted(dense, x, y, False)[2]
    kernel = model.layers[0].kernel
    value, again = kernel.value, ops.convert_to_tensor(kernel)
    then = value.tolist()
    model.fit(x, y, batch_size=16, verbose=0)
    assert value.tolist() == then and again.tolist() == then
    assert np.array(kernel).tolist() != then


def test_what_looks_at_values_runs_in_python_and_says_why():
    code = """
import simt.keras, keras, numpy as np
class Looks(keras.Model):
    def __init__(self):
        super().__init__()
        self.out = keras.layers.Dense(1)
    def call(self, x):
        if float(x[0, 0]) > 100:
            return x
        return self.out(x)
keras.utils.set_random_seed(1)
model = Looks()
model.compile("sgd", "mse")
x = np.ones((8, 3), "f4")
losses = [
    model.fit(x, x[:, :1], batch_size=4, verbose=0).history["loss"][0] for _ in range(4)
]
weight = float(np.array(model.out.kernel).sum())
steps = model.train_function.steps.known.values()
print(all(isinstance(s, int) for s in steps), losses[-1] < losses[0])
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"SIMT_DUMP": "capture", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout.split() == ["True", "True"], done.stderr
    assert "simt: a step is not captured: " in done.stderr
    assert "a value is looked at in a step that is being captured\nat <string>:8" in done.stderr


def test_a_variable_made_in_a_step():
    class Lazy(layers.Layer):
        made = None

        def call(self, x):
            self.turn = getattr(self, "turn", 0) + 1
            if self.turn == 4:
                self.made = self.add_weight(shape=(), initializer="ones")
            return x if self.made is None else x * self.made

    x, y = data(96)
    keras.utils.set_random_seed(1)
    model = keras.Sequential([Lazy(), layers.Dense(4, activation="softmax")])
    model.compile("sgd", "sparse_categorical_crossentropy")
    history = model.fit(x, y, batch_size=16, epochs=3, verbose=0).history["loss"]
    assert history[-1] < history[0]


def test_custom_train_steps():
    class Own(keras.Model):
        def __init__(self):
            super().__init__()
            self.net = dense()
            self.seen = keras.metrics.Mean(name="seen")

        def call(self, x, training=False):
            return self.net(x, training=training)

        def train_step(self, data):
            logs = super().train_step(data)
            self.seen.update_state(ops.max(data[0]))
            return logs | {"seen": self.seen.result(), "fixed": 2.0}

    model = check(Own, *data())
    assert model.history.history["fixed"] == [2.0] * 3


def test_memory_is_steady():
    from simt._core import stats

    x, y = data(64)
    model = fitted(dense, x, y, False)[2]
    used = []
    for turn in range(8):
        model.fit(np.repeat(x, 10, 0), np.repeat(y, 10), batch_size=16, verbose=0)
        if turn >= 3:
            used.append(stats()["bytes_in_use"])
    assert max(used) - min(used) < 100_000


def test_an_interrupt_leaves_a_model_that_trains_on():
    x, y = data(4000)
    model = fitted(dense, x[:64], y[:64], False)[2]
    threading.Timer(0.7, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    start = time.time()
    with pytest.raises(KeyboardInterrupt):
        model.fit(x, y, batch_size=16, epochs=100000, verbose=0)
    assert time.time() - start < 60
    assert np.isfinite(np.array(model.layers[0].kernel)).all()
    history = model.fit(x, y, batch_size=16, epochs=2, verbose=0).history["loss"]
    assert np.isfinite(history).all()


def test_a_bounded_number_of_shapes():
    model = keras.Sequential([layers.Dense(3)])
    model.compile("sgd", "mse")
    for size in range(1, 25):
        for _ in range(2):
            x = np.ones((size, 4), "f4")
            model.train_on_batch(x, x[:, :3])
    assert len(model.train_function.steps.known) == captured.MOST_CAPTURES
