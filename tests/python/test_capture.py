"""Captured steps (array/capture.h): the numbers of the step run eagerly, and nothing half done."""

import threading

import numpy as np
import pytest
from simt._core import torch as C


class Owner:
    """Holds a variable's tensor, as a variable of Keras does."""

    def __init__(self, value):
        self.value = C.tensor(value)


def capture(step, inputs, owners):
    """The captured `step(*inputs)`, which reads and sets owner.value."""
    C._capture_begin()
    before = [owner.value for owner in owners]
    try:
        places = [C._capture_placeholder(x) for x in inputs]
        for owner in owners:
            owner.value = C._capture_placeholder(owner.value)
        starts = [owner.value for owner in owners]
        outputs = step(*places)
        pairs = [x for pair in zip(starts, [o.value for o in owners], strict=True) for x in pair]
        return C._capture_end(tuple(places), tuple(pairs), tuple(outputs))
    finally:
        C._capture_abort()
        for owner, value in zip(owners, before, strict=True):
            owner.value = value


def make_sgd(rate=0.1):
    """A linear model's step of gradient descent on owners w, b: its loss."""
    rng = np.random.default_rng(0)
    w = Owner(rng.normal(size=(3, 2)).astype("f4"))
    b = Owner(np.zeros(2, "f4"))

    def step(x, y):
        for owner in (w, b):
            owner.value.requires_grad_(True)
        error = x @ w.value + b.value - y
        loss = (error * error).mean()
        grads = C._grad((loss,), (w.value, b.value), (None,), False, False, True)
        for owner, grad in zip((w, b), grads, strict=True):
            owner.value = (owner.value - grad * rate).detach()
        return (loss.detach(),)

    return step, w, b


def batches(n, seed=1):
    rng = np.random.default_rng(seed)
    for _ in range(n):
        x = rng.normal(size=(8, 3)).astype("f4")
        yield C.tensor(x), C.tensor(x @ np.ones((3, 2), "f4") + 1)


def run(replayed, steps=20):
    step, w, b = make_sgd()
    losses = []
    captured = None
    for data in batches(steps):
        if replayed and captured is None:
            captured = capture(step, data, (w, b))
        made = captured.replay(data, (w, b), "value") if replayed else step(*data)
        losses.append(made[0].item())
    return losses, w.value.detach().numpy().copy(), b.value.detach().numpy().copy()


def test_a_step_of_gradient_descent_is_the_eager_one():
    eager, again = run(False), run(True)
    assert eager[0] == again[0]
    assert eager[0][-1] < eager[0][0] / 5
    np.testing.assert_array_equal(eager[1], again[1])
    np.testing.assert_array_equal(eager[2], again[2])


def test_against_numpy():
    _, w, b = run(True)
    rng = np.random.default_rng(0)
    mine = rng.normal(size=(3, 2)).astype("f4")
    bias = np.zeros(2, "f4")
    for x, y in batches(20):
        x, y = x.numpy(), y.numpy()
        error = (x @ mine + bias - y) * 2 / y.size
        mine, bias = mine - 0.1 * x.T @ error, bias - 0.1 * error.sum(0)
    np.testing.assert_allclose(w, mine, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(b, bias, rtol=1e-4, atol=1e-5)


def test_a_variable_is_written_in_place_unless_somebody_has_it():
    step, w, b = make_sgd()
    data = next(batches(1))
    captured = capture(step, data, (w, b))
    captured.replay(data, (w, b), "value")
    tensor = id(w.value)
    for _ in range(3):
        captured.replay(data, (w, b), "value")
        assert id(w.value) == tensor
    kept, view = w.value, b.value[:1]
    then, then_view = kept.tolist(), view.tolist()
    captured.replay(data, (w, b), "value")
    assert kept.tolist() == then and view.tolist() == then_view
    assert w.value is not kept and w.value.tolist() != then


def test_variables_that_change_places_and_outputs_of_all_kinds():
    a, b, kept = Owner([1.0, 2.0]), Owner([3.0, 4.0]), Owner([5.0])

    def step(x):
        a.value, b.value = b.value, a.value
        y = x + 1
        return y, y, x, kept.value, y[0], a.value, C.tensor([7.0])

    x = C.tensor([1.0, 2.0, 3.0])
    captured = capture(step, (x,), (a, b, kept))
    for turn in range(3):
        made = [t.tolist() for t in captured.replay((x,), (a, b, kept), "value")]
        first = [3.0, 4.0] if turn % 2 == 0 else [1.0, 2.0]
        assert made == [[2.0, 3.0, 4.0], [2.0, 3.0, 4.0], [1.0, 2.0, 3.0], [5.0], 2.0, first, [7.0]]
        assert a.value.tolist() == first


def test_what_the_step_makes_and_changes_begins_anew():
    total = Owner([0.0])

    def step(x):
        room = C.tensor([1.0, 1.0])
        room += x
        room[0] = 5.0
        total.value = total.value + room.sum()
        return (room,)

    captured = capture(step, (C.tensor([1.0, 2.0]),), (total,))
    for turn in range(1, 4):
        made = captured.replay((C.tensor([1.0, 2.0]),), (total,), "value")
        assert made[0].tolist() == [5.0, 3.0]
        assert total.value.tolist() == [8.0 * turn]


@pytest.mark.parametrize(
    "look",
    [
        lambda x: x.item(),
        lambda x: bool(x),
        lambda x: x.numpy(),
        lambda x: x.tolist(),
        lambda x: C.nonzero(x) if hasattr(C, "nonzero") else x.nonzero(),
        lambda x: float(x + 1),
        lambda x: x.data_ptr(),
    ],
)
def test_a_look_is_an_error_that_names_the_line(look):
    total = Owner(1.0)

    def step(x):
        total.value = total.value + x
        look(total.value)
        return ()

    with pytest.raises(RuntimeError, match="(?s)looked at.*test_capture.py"):
        capture(step, (C.tensor(2.0),), (total,))
    assert total.value.item() == 1.0
    assert (total.value + 1).item() == 2.0


def test_a_look_that_the_step_hides_counts():
    def step(x):
        try:
            x.item()
        except RuntimeError:
            pass
        return (x + 1,)

    with pytest.raises(RuntimeError, match="looked at"):
        capture(step, (C.tensor(2.0),), ())


def test_constants_may_be_looked_at():
    def step(x):
        return (x * C.tensor(3.0).item(),)

    captured = capture(step, (C.tensor(2.0),), ())
    assert captured.replay((C.tensor(4.0),), (), "value")[0].item() == 12.0


def test_values_of_the_step_stay_inside():
    leaked = []

    def step(x):
        leaked.extend([x, x + 1])
        return (leaked[1] * 2,)

    captured = capture(step, (C.tensor([2.0]),), ())
    for t in leaked:
        with pytest.raises(RuntimeError, match="captured step"):
            t.tolist()
        with pytest.raises(RuntimeError, match="captured step"):
            (t + 1).tolist()
    assert captured.replay((C.tensor([1.0]),), (), "value")[0].tolist() == [4.0]


def test_a_placeholder_has_no_value_elsewhere():
    seen = []

    def step(x, y):
        def look():
            for use in (lambda: y.tolist(), lambda: y.numpy(), lambda: (y + 1).tolist()):
                try:
                    use()
                except RuntimeError as error:
                    seen.append(str(error))

        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        return (x + 1,)

    with pytest.raises(RuntimeError):
        capture(step, (C.tensor([2.0]), C.tensor([3.0])), ())
    assert len(seen) == 3 and all("captured step" in text for text in seen)


def test_what_is_outside_is_not_changed_in_place():
    outside = C.tensor([1.0])

    def step(x):
        outside.add_(x)
        return ()

    with pytest.raises(RuntimeError, match="outside of it in place"):
        capture(step, (C.tensor([2.0]),), ())
    assert outside.tolist() == [1.0]


def test_another_thread_ends_the_capture():
    def step(x):
        y = x + 1
        made = []
        thread = threading.Thread(target=lambda: made.append((C.tensor(2.0) * 2).item()))
        thread.start()
        thread.join()
        assert made == [4.0]
        return (y * 2,)

    with pytest.raises(RuntimeError):
        capture(step, (C.tensor(2.0),), ())
    assert (C.tensor(2.0) * 3).item() == 6.0


def test_a_failure_of_the_step_ends_the_capture():
    def step(x):
        return (x @ x,)

    with pytest.raises(RuntimeError):
        capture(step, (C.tensor([[1.0, 2.0]]),), ())
    assert (C.tensor(2.0) * 3).item() == 6.0


def test_captures_do_not_nest():
    def step(x):
        with pytest.raises(RuntimeError, match="already"):
            C._capture_begin()
        return (x,)

    capture(step, (C.tensor(2.0),), ())


def test_strided_inputs_and_bad_ones():
    captured = capture(lambda x: (x * 2,), (C.tensor(np.zeros((2, 3), "f4")),), ())
    x = np.arange(6, dtype="f4").reshape(3, 2)
    made = captured.replay((C.tensor(x).transpose(0, 1),), (), "value")[0]
    np.testing.assert_array_equal(made.numpy(), x.T * 2)
    with pytest.raises(ValueError, match=r"input 0 of a captured step has float32\(3,2\), not"):
        captured.replay((C.tensor(x),), (), "value")
    with pytest.raises(ValueError, match="float64"):
        captured.replay((C.tensor(x.T.astype("f8")),), (), "value")
    with pytest.raises(ValueError, match="1 inputs, got 0"):
        captured.replay((), (), "value")


def test_an_index_out_of_range_is_an_error_with_its_line():
    table = Owner(np.arange(12, dtype="f4").reshape(4, 3))
    captured = capture(lambda i: (table.value[i],), (C.tensor([0, 1]),), (table,))
    assert captured.replay((C.tensor([3, 2]),), (table,), "value")[0].tolist() == [
        [9.0, 10.0, 11.0],
        [6.0, 7.0, 8.0],
    ]
    with pytest.raises(IndexError, match="(?s)out of (bounds|range).*test_capture.py"):
        captured.replay((C.tensor([3, 4]),), (table,), "value")
    assert captured.replay((C.tensor([0, 0]),), (table,), "value")[0].tolist()[0] == [0, 1, 2]


def test_rows_of_data_by_an_index():
    step, w, b = make_sgd()
    rng = np.random.default_rng(3)
    x = rng.normal(size=(40, 3)).astype("f4")
    y = x @ np.ones((3, 2), "f4")
    order = rng.permutation(40).astype("int64")
    captured = None
    for i in range(0, 40, 8):
        data = C.tensor(x[order[i : i + 8]]), C.tensor(y[order[i : i + 8]])
        captured = captured or capture(step, data, (w, b))
        loss = step(*data)[0].item()
    after = w.value.tolist()
    step, w, b = make_sgd()
    captured = capture(step, data, (w, b))
    outputs, done = captured.replay_rows(
        (C.tensor(x), C.tensor(y)), order, 8, 100.0, (w, b), "value"
    )
    assert done == 5
    assert outputs[0].item() == loss
    assert w.value.tolist() == after
    _, done = captured.replay_rows((C.tensor(x), C.tensor(y)), order, 8, 0.0, (w, b), "value")
    assert done == 1
    with pytest.raises(IndexError, match="row 40 of data with 40 rows"):
        captured.replay_rows((C.tensor(x), C.tensor(y)), order + 1, 8, 1.0, (w, b), "value")
    with pytest.raises(ValueError, match="whole batches"):
        captured.replay_rows((C.tensor(x), C.tensor(y)), order[:7], 8, 1.0, (w, b), "value")
    with pytest.raises(ValueError, match="densely"):
        captured.replay_rows((C.tensor(y), C.tensor(y)), order, 8, 1.0, (w, b), "value")


def test_memory_is_steady():
    from simt._core import stats

    step, w, b = make_sgd()
    data = next(batches(1))
    captured = capture(step, data, (w, b))
    for turn in range(1100):
        captured.replay(data, (w, b), "value")
        if turn == 100:
            before = stats()
    after = stats()
    assert after["bytes_in_use"] == before["bytes_in_use"]
    assert after["plans"] == before["plans"]


@pytest.mark.parametrize("kind", ["rand", "normal", "int"])
@pytest.mark.parametrize("dtype", [C.float32, C.float64])
def test_a_seed_in_an_array_gives_the_numbers_of_that_seed(kind, dtype):
    dtype = C.int64 if kind == "int" else dtype
    for seed in (0, 7, 2**40 + 3, -5):
        wanted = C._random(kind, (5, 7), 0, 10, dtype, C.Generator().manual_seed(seed))
        made = C._random(kind, (5, 7), 0, 10, dtype, C.Generator()._seed_from(C.tensor(seed)))
        np.testing.assert_array_equal(made.numpy(), wanted.numpy())
    wanted = C._random("perm", (9,), 9, None, C.int64, C.Generator().manual_seed(4))
    made = C._random("perm", (9,), 9, None, C.int64, C.Generator()._seed_from(C.tensor(4)))
    assert made.tolist() == wanted.tolist()
    with pytest.raises(ValueError, match="int64"):
        C.Generator()._seed_from(C.tensor([1]))


def test_replays_draw_anew_from_a_seed_in_a_variable():
    seed = Owner(3)

    def step(x):
        drawn = C._random("rand", (4,), 0.0, 1.0, C.float32, C.Generator()._seed_from(seed.value))
        seed.value = seed.value + 1
        return (C.where(drawn < 0.5, x, -x) * drawn,)

    x = C.tensor([1.0, 2.0, 3.0, 4.0])
    captured = capture(step, (x,), (seed,))
    replayed = [captured.replay((x,), (seed,), "value")[0].tolist() for _ in range(4)]
    assert seed.value.item() == 7
    seed.value = C.tensor(3)
    assert replayed == [step(x)[0].tolist() for _ in range(4)]
    assert len({tuple(r) for r in replayed}) == 4
