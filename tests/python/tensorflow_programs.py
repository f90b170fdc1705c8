"""Programs after the subjects of TensorFlow's beginner tutorials, each with its losses of 20 steps.

Each function trains on made data from fixed weights and returns what it measured. They use nothing
that is random but by NumPy's generator, so that another TensorFlow gives the same numbers: run as a
program with the real one (tools/record_tensorflow.py does it), this prints them, for
tensorflow_programs.json.
"""

import json
import sys

import numpy as np
import tensorflow as tf

layers = tf.keras.layers


def fixed(model, x=None, seed=0):
    """The model built, with weights drawn by NumPy."""
    if x is not None:
        model(x)
    draw = np.random.default_rng(seed)
    weights = [draw.normal(0, 0.3, w.shape).astype(w.dtype) for w in model.get_weights()]
    model.set_weights(
        [np.abs(w) if "variance" in v.name else w for v, w in zip(model.weights, weights)]
    )
    return model


class Losses(tf.keras.callbacks.Callback):
    """The loss after each batch, by itself: Keras shows the epoch's mean so far."""

    def __init__(self):
        super().__init__()
        self.found, self._sum = [], 0.0

    def on_epoch_begin(self, epoch, logs=None):
        self._sum = 0.0

    def on_train_batch_end(self, batch, logs=None):
        total = float(logs["loss"]) * (batch + 1)
        self.found.append(total - self._sum)
        self._sum = total


def fit(model, x, y, epochs, batch_size=16, **options):
    watch = Losses()
    options.setdefault("callbacks", []).append(watch)
    model.fit(x, y, epochs=epochs, batch_size=batch_size, shuffle=False, verbose=0, **options)
    return watch.found


def blobs(classes=3, n=80, features=4, seed=1):
    draw = np.random.default_rng(seed)
    labels = draw.integers(0, classes, n)
    centres = draw.normal(0, 2, (classes, features))
    return (centres[labels] + draw.normal(0, 1, (n, features))).astype("float32"), labels


def classification():
    """Images of three kinds, dense layers on the flattened pixels, logits."""
    draw = np.random.default_rng(0)
    labels = draw.integers(0, 3, 80)
    images = draw.random((80, 8, 8)).astype("float32") * 0.3
    for image, label in zip(images, labels):
        image[label * 2 : label * 2 + 2] += 0.7
    model = tf.keras.Sequential(
        [tf.keras.Input((8, 8)), layers.Flatten(), layers.Dense(16, "relu"), layers.Dense(3)]
    )
    model = fixed(model)
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, metrics=["accuracy"])
    losses = fit(model, images, labels, 4)
    probabilities = tf.keras.Sequential([model, layers.Softmax()])
    return losses + [float(tf.reduce_max(probabilities(images[:1])))]


def regression():
    """A normalisation layer that adapts to its data, one linear unit behind it."""
    draw = np.random.default_rng(2)
    x = draw.normal([3, -10, 100], [1, 5, 40], (80, 3)).astype("float32")
    y = (x @ [1.0, 0.5, -0.05] + draw.normal(0, 0.1, 80)).astype("float32")
    normalizer = layers.Normalization(axis=-1)
    normalizer.adapt(x)
    line = layers.Dense(1)
    model = tf.keras.Sequential([normalizer, line])
    model(x)
    line.set_weights([np.full((3, 1), 0.1, "float32"), np.zeros(1, "float32")])
    model.compile(tf.keras.optimizers.Adam(0.1), "mean_absolute_error")
    return fit(model, x, y, 4) + model.predict(x[:3], verbose=0).reshape(-1).tolist()


def overfitting():
    """Weights that are held down, a rate that falls, training that ends early."""
    x, y = blobs()
    rate = tf.keras.optimizers.schedules.InverseTimeDecay(0.02, decay_steps=5, decay_rate=1)
    model = fixed(
        tf.keras.Sequential(
            [
                tf.keras.Input((4,)),
                layers.Dense(16, "elu", kernel_regularizer=tf.keras.regularizers.l2(0.01)),
                layers.Dense(3),
            ]
        )
    )
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf.keras.optimizers.Adam(rate), loss)
    stop = tf.keras.callbacks.EarlyStopping(monitor="val_loss", patience=2)
    history = model.fit(
        x[:64],
        y[:64],
        16,
        10,
        verbose=0,
        shuffle=False,
        validation_data=(x[64:], y[64:]),
        callbacks=[stop],
    )
    return history.history["loss"] + history.history["val_loss"]


def save_and_load():
    """Weights kept by a callback, a model kept in a file; both predict as before."""
    import os
    import tempfile

    def build(seed):
        return fixed(
            tf.keras.Sequential([tf.keras.Input((4,)), layers.Dense(8, "tanh"), layers.Dense(3)]),
            seed=seed,
        )

    x, y = blobs()
    model = build(0)
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss)
    with tempfile.TemporaryDirectory() as folder:
        weights = os.path.join(folder, "cp.weights.h5")
        keep = tf.keras.callbacks.ModelCheckpoint(weights, save_weights_only=True)
        losses = fit(model, x, y, 4, callbacks=[keep])
        other = build(1)
        other.load_weights(weights)
        model.save(os.path.join(folder, "model.keras"))
        whole = tf.keras.models.load_model(os.path.join(folder, "model.keras"))
    for found in (other(x), whole(x)):
        tf.debugging.assert_near(found, model(x), atol=1e-6)
    return losses + fit(whole, x, y, 1)


def custom_training():
    """A tape, an optimizer and metrics, step by step."""
    x, y = blobs(seed=3)
    model = fixed(
        tf.keras.Sequential([tf.keras.Input((4,)), layers.Dense(8, "relu"), layers.Dense(3)])
    )
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = tf.keras.optimizers.SGD(0.05, momentum=0.9)
    mean, right = tf.keras.metrics.Mean(), tf.keras.metrics.SparseCategoricalAccuracy()
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(16)
    losses = []

    @tf.function
    def step(features, labels):
        with tf.GradientTape() as tape:
            predictions = model(features, training=True)
            loss = loss_of(labels, predictions)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        mean(loss)
        right(labels, predictions)
        return loss

    for _ in range(4):
        losses += [float(step(features, labels)) for features, labels in data]
    return losses + [float(mean.result()), float(right.result())]


def custom_layers():
    """A layer, a block with batch normalisation, and a model, all of one's own."""

    class Linear(layers.Layer):
        def __init__(self, units):
            super().__init__()
            self.units = units

        def build(self, input_shape):
            self.w = self.add_weight(shape=(int(input_shape[-1]), self.units), name="w")
            self.b = self.add_weight(shape=(self.units,), name="b")

        def call(self, inputs):
            return tf.matmul(inputs, self.w) + self.b

    class Residual(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.first, self.second = Linear(4), Linear(4)
            self.normal = layers.BatchNormalization()
            self.last = Linear(3)

        def call(self, inputs, training=False):
            x = tf.nn.relu(self.normal(self.first(inputs), training=training))
            x = self.second(x)
            x += inputs
            self.add_loss(1e-2 * tf.reduce_sum(tf.square(x)) / tf.cast(tf.shape(x)[0], tf.float32))
            return self.last(tf.nn.relu(x))

    x, y = blobs(seed=4)
    model = fixed(Residual(), x[:1])
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = tf.keras.optimizers.RMSprop(0.01)
    losses = []
    for at in range(20):
        part = slice(at % 5 * 16, at % 5 * 16 + 16)
        with tf.GradientTape() as tape:
            predicted = model(tf.constant(x[part]), training=True)
            loss = loss_of(y[part], predicted) + tf.add_n(model.losses)
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        losses.append(float(loss))
    return losses + [float(tf.reduce_mean(model(x)))]


def functional():
    """Two inputs, two outputs, two losses that are weighed."""
    draw = np.random.default_rng(5)
    words = draw.integers(0, 20, (80, 6))
    numbers = draw.normal(0, 1, (80, 3)).astype("float32")
    kinds = (words[:, 0] % 2).astype("float32")[:, None]
    values = numbers.sum(1, keepdims=True)
    text, data = tf.keras.Input((6,), name="words"), tf.keras.Input((3,), name="numbers")
    seen = layers.GlobalAveragePooling1D()(layers.Embedding(20, 8)(text))
    joined = layers.concatenate([seen, layers.Dense(8, "relu")(data)])
    kind = layers.Dense(1, "sigmoid", name="kind")(joined)
    value = layers.Dense(1, name="value")(joined)
    model = fixed(tf.keras.Model([text, data], {"kind": kind, "value": value}))
    model.compile(
        tf.keras.optimizers.SGD(0.2),
        loss={"kind": "binary_crossentropy", "value": "mse"},
        loss_weights={"kind": 1.0, "value": 0.2},
    )
    given = {"words": words, "numbers": numbers}
    return fit(model, given, {"kind": kinds, "value": values}, 4)


def regression_by_hand():
    """A module with variables, a loss of one's own, steps by assign_sub; back to a checkpoint."""
    import os
    import tempfile

    class Curve(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable([[0.1], [-0.2]])
            self.b = tf.Variable(0.3)

        def __call__(self, x):
            return tf.squeeze(tf.stack([x, x**2], 1) @ self.w) + self.b

    x = tf.linspace(-2.0, 2.0, 41)
    y = 1.5 * x - 0.5 * x**2 + tf.sin(3 * x)
    model, losses = Curve(), []
    checkpoint = tf.train.Checkpoint(model=model)
    with tempfile.TemporaryDirectory() as folder:
        for step in range(20):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(model(x) - y))
            for v, g in zip(model.variables, tape.gradient(loss, model.variables)):
                v.assign_sub(0.1 * g)
            losses.append(float(loss))
            if step == 9:
                path = checkpoint.save(os.path.join(folder, "half"))
        checkpoint.restore(path)
        back = tf.reduce_mean(tf.abs(model(x) - y))
    return losses + [float(back), *model.w.numpy().reshape(-1).tolist(), float(model.b)]


def pipelines():
    """Datasets made of steps: windows of a series, filtered, mapped, batched, repeated."""
    series = tf.data.Dataset.range(60).map(lambda t: tf.sin(tf.cast(t, tf.float32) * 0.3))
    windows = series.window(9, shift=2, drop_remainder=True).flat_map(lambda w: w.batch(9))
    pairs = windows.map(lambda w: (w[:-1, tf.newaxis], w[-1:]), num_parallel_calls=tf.data.AUTOTUNE)
    pairs = pairs.filter(lambda x, y: tf.reduce_all(tf.abs(y) > 0.05)).cache()
    batches = pairs.batch(4, drop_remainder=True).repeat().prefetch(2).take(20)
    model = tf.keras.Sequential([tf.keras.Input((8, 1)), layers.SimpleRNN(6), layers.Dense(1)])
    model = fixed(model)
    model.compile(tf.keras.optimizers.Adam(0.01), "mse")
    watch = Losses()
    model.fit(batches, epochs=1, verbose=0, callbacks=[watch])
    return watch.found


PROGRAMS = (
    classification,
    regression,
    overfitting,
    save_and_load,
    custom_training,
    custom_layers,
    functional,
    regression_by_hand,
    pipelines,
)


def main():
    found = {f.__name__: [round(float(x), 7) for x in f()] for f in PROGRAMS}
    json.dump({"tensorflow": tf.__version__, "numbers": found}, sys.stdout)


if __name__ == "__main__":
    main()
