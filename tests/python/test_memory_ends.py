"""Planning without memory: what waited goes on waiting, only what was asked for raises."""

import itertools

import numpy as np
import pytest
import simt.cupy as cp
import simt.torch as torch
from simt import _core
from simt.numba import cuda

ON = 1 << 60
pytestmark = pytest.mark.skipif(_core.heap_counts() is None, reason="a release build")


def without_memory(call, first, last):
    """The call's value, or MemoryError, while these allocations fail."""
    _core.heap_deny(first, last)
    try:
        return call()
    except MemoryError:
        return MemoryError
    finally:
        _core.heap_allow()


def moments(dense=40):
    """Allocations that fail: one alone, or it with all that follow."""
    for k in itertools.chain(range(dense), range(dense, 1000, 23)):
        yield k, k
        yield k, ON


def pending():
    """Looks at values that wait, and what they must give."""
    _core.heap_forget()  # so that all of it is planned
    x = cp.arange(1000.0)
    y = x * 2 + 1
    z = cp.zeros(1000)
    z[::2] = y[::2]
    w = cp.sort(-y)
    z += 1
    plain = np.arange(1000.0)
    values = [(plain * 2 + 1)[::2].sum() + 1000, 7.0, -1999.0, plain.sum()]
    return [z.sum().item, y[3].item, w[0].item, x.sum().item], values


@pytest.mark.parametrize("which", range(3))
def test_looks_are_repeated(which):
    raised = 0
    for first, last in moments():
        looks, values = pending()
        value = without_memory(looks[which], first, last)
        raised += value is MemoryError
        assert value in (MemoryError, values[which])
        assert [look() for look in looks] == values
        if value is not MemoryError and last == ON:
            break
    assert raised > 20


def test_many_values_wait():
    """More than the program's facts have room for on the stack."""
    for first, last in itertools.islice(moments(), 12):
        _core.heap_forget()
        values = [cp.arange(5.0) + i for i in range(100)]
        without_memory(values[50].sum().item, first, last)
        more = [v * 2 for v in values]
        assert [v.tolist() for v in more] == [[2 * (i + k) for k in range(5)] for i in range(100)]


def test_others_are_seen_when_one_cannot_be_planned():
    looks, values = pending()
    assert without_memory(looks[0], 0, ON) is MemoryError
    assert without_memory(looks[0], 0, ON) is MemoryError
    assert [look() for look in reversed(looks)] == values[::-1]


def test_gradients_wait():
    model = torch.nn.Sequential(torch.nn.Linear(5, 6), torch.nn.Tanh(), torch.nn.Linear(6, 1))

    def backward():
        model.zero_grad()
        loss = model(torch.ones(4, 5)).square().mean()
        loss.backward()
        return loss

    def gradients():
        return [p.grad.tolist() for p in model.parameters()]

    right, raised = backward().item(), 0
    wanted = gradients()
    for k in range(0, 3000, 70):
        _core.heap_forget()
        loss = backward()
        value = without_memory(loss.item, k, ON)
        raised += value is MemoryError
        assert gradients() == wanted and loss.item() == right
        if value is not MemoryError:
            break
    assert raised > 2


@pytest.mark.parametrize("seen", ["input", "output"])
def test_operation_that_runs_at_once_has_not_happened(seen):
    """Memory that NumPy sees is computed at once: the failed operation is withdrawn alone."""
    raised = 0
    for first, last in moments():
        _core.heap_forget()
        a, b = torch.arange(6.0), torch.ones(6)
        other = b * 3
        view = a.numpy()
        if seen == "output":
            value = without_memory(lambda: a.add_(other) is a, first, last)
        else:
            value = without_memory(lambda: b.add_(a) is b, first, last)
        failed = value is MemoryError
        raised += failed
        assert other.tolist() == [3.0] * 6
        plain = np.arange(6.0)
        a_right, b_right = plain + (3 if seen == "output" else 0), np.ones(6) + plain
        if failed:
            a_right = plain
        assert view.tolist() == a.tolist() == a_right.tolist()
        if seen == "input":
            assert b.tolist() == (np.ones(6) if failed else b_right).tolist()
        if failed:  # again, with memory
            (a.add_(other) if seen == "output" else b.add_(a)).sum().item()
            got = a if seen == "output" else b
            assert got.tolist() == (plain + 3 if seen == "output" else b_right).tolist()
        elif last == ON:
            break
    assert raised > 10


def test_long_program_without_memory():
    _core.heap_forget()
    x = cp.zeros(3)
    done = 0
    for i in range(1100):
        try:
            if i > 990:
                _core.heap_deny(0, ON)
            x += 1
            done += 1
        except MemoryError:
            pass
        finally:
            _core.heap_allow()
    assert 990 <= done < 1100 and x.tolist() == [done] * 3


def test_the_line_of_an_operation_is_done_without():
    """Python's memory ends while the user's line is looked for behind our own Python."""
    x, t = cp.arange(24.0).reshape(2, 3, 4), torch.arange(5.0)
    calls = {
        lambda: x.repeat(2, axis=1).tolist(): x.get().repeat(2, axis=1).tolist(),
        lambda: cp.random.shuffle(cp.zeros(4)): None,
        lambda: t.median().item(): 2.0,
        lambda: cp.flip(x, 1).tolist(): x.get()[:, ::-1].tolist(),
    }
    for call, right in calls.items():
        assert call() == right
        for k in range(40):
            _core.python_deny(k, k)
            try:
                value = call()
            except MemoryError:
                value = right
            finally:
                _core.python_allow()
            assert value == right, k


def test_a_stream_whose_truth_raises():
    class Number(int):
        def __bool__(self):
            raise ValueError("no truth")

    d = cuda.to_device(np.zeros(2))
    with pytest.raises(ValueError, match="no truth"):
        d.stream = Number(1)
    assert d.stream == 0


def calls():
    """Operations of several parts, each of which may find no memory."""
    x = torch.arange(64.0).view(1, 1, 8, 8).requires_grad_()
    whole = torch.arange(24).view(2, 3, 4)
    return {
        "flip": lambda: whole.flip(0, 2).tolist(),
        "max_pool2d": lambda: torch.nn.functional.max_pool2d(x, 2).tolist(),
        "positions": lambda: torch.nn.functional.max_pool2d(x, 2, return_indices=True)[1].tolist(),
        "max": lambda: [v.tolist() for v in x.max(3)],
        "sort": lambda: [v.tolist() for v in x.sort(3)],
        "topk": lambda: [v.tolist() for v in x.topk(3)],
        "permutation": lambda: sorted(torch.randperm(9).tolist()),
        "dropout": lambda: torch.nn.functional.dropout(x, 0.0).tolist(),
        "constructor": lambda: torch.tensor([[1.5, 2], [3, 4]]).tolist(),
    }


@pytest.mark.parametrize("name", calls())
def test_every_allocation_of_an_operation(name):
    call = calls()[name]
    expected = call()
    for first in range(60):
        for last in (first, ON):
            _core.heap_forget()
            assert without_memory(call, first, last) in (MemoryError, expected)
            assert call() == expected


STEPS = {
    "sgd": lambda p: torch.optim.SGD(p, 0.1),
    "decay": lambda p: torch.optim.SGD(p, 0.1, weight_decay=0.01, maximize=True),
    "momentum": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9),
    "nesterov": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, nesterov=True, weight_decay=0.1),
    "adam": lambda p: torch.optim.Adam(p, 0.1),
    "adam decay": lambda p: torch.optim.Adam(p, 0.1, weight_decay=0.1),
    "amsgrad": lambda p: torch.optim.Adam(p, 0.1, amsgrad=True, maximize=True),
    "adamw": lambda p: torch.optim.AdamW(p, 0.1),
}


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("before", [0, 1])
def test_a_step_of_several_parameters_is_whole(name, before):
    """It has happened, without an error, or MemoryError and neither parameter nor state changed."""

    def prepare(steps):
        params = [torch.full((k + 2,), 1.0).requires_grad_() for k in range(5)]
        optimiser = STEPS[name](params)
        for _ in range(steps):
            for p in params:
                p.grad = p.detach() * 2
            optimiser.step()
        for p in params:
            p.grad = p.detach() * 2
            assert p.grad.sum().item() != 0
        return params, optimiser

    def values(params):
        return [p.tolist() for p in params]

    undone, done, twice = (values(prepare(before + k)[0]) for k in range(3))
    raised = 0
    for first, last in moments(dense=60):
        _core.heap_forget()
        params, optimiser = prepare(before)
        failed = without_memory(optimiser.step, first, last) is MemoryError
        raised += failed
        assert values(params) == (undone if failed else done)
        if not failed:
            for p in params:
                p.grad = p.detach() * 2
        optimiser.step()
        assert values(params) == (done if failed else twice)
        if last == ON and not failed:
            break
    assert raised > 2
