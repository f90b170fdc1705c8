"""One benchmark case in one library, in this process: `cases.py LIBRARY CASE` prints JSON.

The output is {"seconds": [one number per group], "note": text}. run.py starts this program in turns
for each library. Every case ends a group by looking at its results, so deferred work is counted.
"""

import json
import os
import sys
import time

import numpy as np
from turns import slices, turn

BATCH = 64


def time_groups(step, finish, groups, per_group):
    """Seconds per step for each group; one group before them warms up."""
    out = []
    groups, per_group = slices(groups, per_group)
    for group in range(groups + 1):
        if group:
            turn(step)
            finish()
        start = time.perf_counter()
        for _ in range(per_group):
            step()
        finish()
        if group:
            out.append((time.perf_counter() - start) / per_group)
    return out


# ---- training steps (libraries: simt, torch)


def load_torch(library):
    if library == "simt":
        import simt.torch as torch
    else:
        import torch
    return torch


def training_step(torch, model, loss_function, optimizer, shape):
    """A step function over one epoch's worth of distinct batches held in a tensor."""
    torch.manual_seed(0)
    count = 100 * BATCH
    rng = np.random.default_rng(0)
    data = torch.from_numpy(rng.random((count, *shape), dtype=np.float32))
    labels = torch.from_numpy(rng.integers(0, 10, count))
    position = 0

    def step():
        nonlocal position
        x, y = data[position : position + BATCH], labels[position : position + BATCH]
        position = (position + BATCH) % count
        optimizer.zero_grad()
        loss_function(model(x), y).backward()
        optimizer.step()

    def finish():
        for p in model.parameters():
            p.sum().item()

    return step, finish


def step_mlp(library):
    torch = load_torch(library)
    nn = torch.nn
    model = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    step, finish = training_step(torch, model, nn.CrossEntropyLoss(), optimizer, (784,))
    return time_groups(step, finish, 5, 200)


def make_cnn(torch):
    """The network of PyTorch's MNIST example, with its dropout."""
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(1, 32, 3),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Dropout(0.25),
        nn.Flatten(),
        nn.Linear(9216, 128),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(128, 10),
        nn.LogSoftmax(dim=1),
    )


def step_cnn(library, optimizer_name):
    torch = load_torch(library)
    model = make_cnn(torch)
    optimizer = getattr(torch.optim, optimizer_name)(model.parameters(), lr=0.001)
    step, finish = training_step(torch, model, torch.nn.NLLLoss(), optimizer, (1, 28, 28))
    return time_groups(step, finish, 5, 5)


# ---- array expressions (libraries: simt, numpy, numexpr, torch)

EXPRESSIONS = {
    "a+b": lambda xp, a, b, m: a + b,
    "sqrt(a*a+b*b)": lambda xp, a, b, m: xp.sqrt(a * a + b * b),
    "exp(-a*a)*sin(b)": lambda xp, a, b, m: xp.exp(-a * a) * xp.sin(b),
    "sum((a-b)**2)": lambda xp, a, b, m: ((a - b) ** 2).sum(),
    "where(a>0.5,a,b)": lambda xp, a, b, m: xp.where(a > 0.5, a, b),
    "sum": lambda xp, a, b, m: a.sum(),
    "sum axis 0": lambda xp, a, b, m: m.sum(0),
    "sum axis 1": lambda xp, a, b, m: m.sum(1),
    "std axis 0": lambda xp, a, b, m: m.std(0),
    "std axis 1": lambda xp, a, b, m: m.std(1),
}
NUMEXPR = {
    "a+b": "a+b",
    "sqrt(a*a+b*b)": "sqrt(a*a+b*b)",
    "exp(-a*a)*sin(b)": "exp(-a*a)*sin(b)",
    "sum((a-b)**2)": "sum((a-b)**2)",
    "where(a>0.5,a,b)": "where(a>half,a,b)",
}


def evaluator(library):
    """A function that makes sure its argument's values are computed."""
    if library == "simt":
        import simt.cupy as cp

        return lambda x: cp.cuda.Stream.null.synchronize()
    return lambda x: None


def make_arrays(library, n):
    rng = np.random.default_rng(1)
    a, b = rng.random(n, dtype=np.float32), rng.random(n, dtype=np.float32)
    if library == "simt":
        import simt.cupy as xp

        a, b = xp.asarray(a), xp.asarray(b)
    elif library == "torch":
        import torch as xp

        a, b = xp.from_numpy(a), xp.from_numpy(b)
    else:
        xp = np
    return xp, a, b


def expressions(library, n=10_000_000):
    """{expression: seconds of each run}."""
    xp, a, b = make_arrays(library, n)
    m = a.reshape(4000, n // 4000)
    evaluate = evaluator(library)
    out = {}
    for name, function in EXPRESSIONS.items():
        if library == "numexpr":
            if name not in NUMEXPR:
                continue
            import numexpr

            text, half = NUMEXPR[name], np.float32(0.5)
            run = lambda t=text: numexpr.evaluate(t, {"a": a, "b": b, "half": half})
        else:
            run = lambda f=function: f(xp, a, b, m)
        out[name] = time_expression(run, evaluate)
    return out


def time_expression(run, evaluate, runs=7):
    evaluate(run())
    out = []
    for _ in range(slices(runs)[0]):
        turn(lambda: evaluate(run()))
        start = time.perf_counter()
        result = run()
        evaluate(result)
        out.append(time.perf_counter() - start)
        del result
    return out


def small_add(library):
    xp, a, b = make_arrays(library, 10)
    evaluate = evaluator(library)
    return time_groups(lambda: evaluate(a + b), lambda: None, 5, 20_000)


# ---- what a call costs beside its work (library: simt)


def calls(library):
    """{what: seconds of each group}."""
    import simt.torch as torch
    from simt.numba import cuda
    from simt.torch.utils.data import DataLoader, TensorDataset

    x = torch.ones(10)
    w = torch.ones(10, requires_grad=True)
    own = [cuda.to_device(np.ones(100, np.float32)) for _ in range(2)]
    host = [np.ones(100, np.float32) for _ in range(2)]
    data = TensorDataset(torch.ones(640, 8), torch.zeros(640).long())
    lengths = iter(range(11, 10**9))

    def make_kernel():
        @cuda.jit
        def axpy(x, y, k):
            i = cuda.grid(1)
            if i < x.size:
                total = 0.0
                for j in range(4):
                    total += x[i] * j
                y[i] += k * total if total > 3 else total

        return axpy[1, 128]

    def gradient():
        w.grad = None
        (w * x).sum().backward()
        w.grad.sum().item()

    def new_plan():
        y = torch.ones(next(lengths))
        (torch.exp(y) * 2 + y.sum()).sum().item()

    kernel = make_kernel()
    work = {
        "(x+1).sum().item()": (lambda: (x + 1).sum().item(), 1000),
        "x[0].item()": (lambda: x[0].item(), 5000),
        "backward, 10 elements": (gradient, 400),
        "launch, device arrays": (lambda: kernel(*own, 2.0), 4000),
        "launch, host arrays": (lambda: kernel(*host, 2.0), 2000),
        "first launch": (lambda: make_kernel()(*own, 2.0), 20),
        "first evaluation": (new_plan, 20),
        "epoch of 10 batches": (lambda: [a.sum() for a, _ in DataLoader(data, 64)], 4),
    }
    nothing = lambda: None
    return {name: time_groups(run, nothing, 8, count) for name, (run, count) in work.items()}


# ---- Keras (libraries: simt, jax)


def make_keras_mlp(keras):
    return keras.Sequential(
        [
            keras.layers.Flatten(),
            keras.layers.Dense(128, activation="relu"),
            keras.layers.Dropout(0.2),
            keras.layers.Dense(10, activation="softmax"),
        ]
    )


def make_keras_cnn(keras):
    layers = keras.layers
    return keras.Sequential(
        [
            layers.Conv2D(32, 3, activation="relu"),
            layers.MaxPooling2D(2),
            layers.Conv2D(64, 3, activation="relu"),
            layers.MaxPooling2D(2),
            layers.Flatten(),
            layers.Dropout(0.5),
            layers.Dense(10, activation="softmax"),
        ]
    )


def fit_keras(library, make, shape, batch, epochs=4):
    """Seconds for each epoch of fit after the first one, on made data of MNIST's form."""
    if library == "simt":
        import simt.keras  # noqa: F401
    else:
        os.environ["KERAS_BACKEND"] = library
    import keras

    rng = np.random.default_rng(0)
    x, y = rng.random(shape), rng.integers(0, 10, shape[0]).astype("uint8")
    model = make(keras)
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    marks = []

    class Clock(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            marks.append(time.perf_counter())

    model.fit(x, y, batch_size=batch, epochs=epochs + 1, verbose=0, callbacks=[Clock()])
    return [after - before for before, after in zip(marks, marks[1:], strict=False)]


CASES = {
    "keras_mlp": lambda library: fit_keras(library, make_keras_mlp, (60000, 28, 28), 32),
    "keras_cnn": lambda library: fit_keras(library, make_keras_cnn, (6400, 28, 28, 1), 128),
    "step_mlp": step_mlp,
    "step_cnn_sgd": lambda library: step_cnn(library, "SGD"),
    "step_cnn_adam": lambda library: step_cnn(library, "Adam"),
    "expressions": expressions,
    "small_add": small_add,
    "calls": calls,
}

if __name__ == "__main__":
    print(json.dumps({"seconds": CASES[sys.argv[2]](sys.argv[1])}))
