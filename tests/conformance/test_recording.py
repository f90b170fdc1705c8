"""The comparison itself: it lets rounding pass and nothing else."""

import json

import pytest
import recording

RECORDED = json.loads(recording.RECORDED.read_text(encoding="utf-8"))["snippets"]


def differs(want, got, **flags):
    return [field for field, _ in recording.compare({"result": want}, {"result": got}, flags)]


def tensor(**changes):
    base = {"kind": "Tensor", "dtype": "torch.float32", "shape": [2], "requires_grad": False}
    return base | {"value": [1.0, 2.5], "repr": "tensor([1.0000, 2.5000])"} | changes


def test_everything_equals_itself():
    for row in RECORDED.values():
        assert recording.compare(row, row | {"at": ""}, {}) == []


@pytest.mark.parametrize(
    "changes, field",
    [
        ({"dtype": "torch.float64"}, "dtype"),
        ({"shape": [2, 1]}, "shape"),
        ({"kind": "Parameter"}, "kind"),
        ({"requires_grad": True}, "requires_grad"),
        ({"value": [1.0, 2.5003]}, "value"),
        ({"value": [1.0, float("nan")]}, "value"),
        ({"repr": "tensor([1.0000, 2.5002])"}, "repr"),
        ({"repr": "tensor([1.0000,  2.5000])"}, "repr"),
    ],
)
def test_a_changed_field_is_seen(changes, field):
    assert differs(tensor(), tensor(**changes)) == [field]


def test_rounding_passes():
    assert differs(tensor(), tensor(value=[1.000001, 2.5])) == []
    assert differs(tensor(), tensor(repr="tensor([1.0001, 2.5000])")) == []
    assert differs("loss 0.12345", "loss 0.12346") == []
    assert differs("3 items", "4 items") == ["repr"]


def test_integers_are_exact_and_bools_are_not_ints():
    ints = {"dtype": "torch.int64", "value": [1, 2], "repr": "tensor([1, 2])"}
    assert differs(tensor(**ints), tensor(**ints | {"value": [1, 3]})) == ["value"]
    assert differs(True, 1) == ["value"]
    assert differs([1], None) == ["value"]


def test_exceptions():
    want = {"raises": "ValueError", "message": "no"}
    same = {"raises": "ValueError", "message": "no", "at": ""}
    assert recording.compare(want, same, {}) == []
    assert recording.compare(want, same | {"message": "yes"}, {})[0][0] == "message"
    assert recording.compare(want, same | {"message": "yes"}, {"type-only": True}) == []
    assert recording.compare(want, same | {"raises": "TypeError"}, {})[0][0] == "raises"
    assert recording.compare(want, {"result": None}, {})[0][0] == "raises"
    assert recording.compare({"result": None}, same, {})[0][0] == "error"
    assert recording.compare(want, {"crash": "ended with -11"}, {})[0][0] == "crash"
