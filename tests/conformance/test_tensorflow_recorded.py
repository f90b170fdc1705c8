"""What simt.tensorflow gives for the recorded snippets, against what TensorFlow gave.

Differences that are meant are in expected_differences_tensorflow.toml with a reason, as
test_recorded.py has it for PyTorch; `python tests/conformance/test_tensorflow_recorded.py` prints a
report grouped by cause.
"""

import collections
import json
import tomllib
from importlib.machinery import PathFinder
from pathlib import Path

import pytest
import recording
import recording_tensorflow
from test_recorded import run_all

if PathFinder.find_spec("keras") is None:
    pytest.skip("Keras is not installed", allow_module_level=True)

HERE = Path(__file__).resolve().parent
SNIPPETS = recording_tensorflow.load_snippets()
RECORDED = json.loads(recording_tensorflow.RECORDED.read_text(encoding="utf-8"))["snippets"]
TABLE = HERE / "expected_differences_tensorflow.toml"
# (reason, fields) -> snippets, in the file; here snippet -> (reason, fields).
EXPECTED = {
    name: (row["reason"], set(row["fields"]))
    for row in tomllib.loads(TABLE.read_text(encoding="utf-8"))["difference"]
    for name in row["snippets"]
}


def run_snippets():
    return run_all("recording_tensorflow.py")


def differences(name, got):
    flags = SNIPPETS[name]["flags"]
    diffs = recording.compare(RECORDED[name], got, flags)
    return [d for d in diffs if d[0] != "repr" or "rounded" not in flags]


@pytest.fixture(scope="module")
def results():
    return run_snippets()


def test_recording_is_complete():
    assert sorted(SNIPPETS) == sorted(RECORDED), "run tools/record_tensorflow.py"
    assert not set(EXPECTED) - set(SNIPPETS)
    assert all(reason for reason, _ in EXPECTED.values())


@pytest.mark.parametrize("name", SNIPPETS)
def test_snippet(name, results):
    diffs = differences(name, results[name])
    fields = EXPECTED.get(name, ("", set()))[1]
    beyond = [d for d in diffs if d[0] not in fields]
    assert not beyond, SNIPPETS[name]["source"] + "\n".join(f"{f}: {t}" for f, t in beyond)
    gone = fields - {field for field, _ in diffs}
    assert not gone, f"{sorted(gone)} of {name} no longer differ: remove from the list"


def report():
    got = run_snippets()
    groups = collections.defaultdict(list)
    for name in SNIPPETS:
        for field, text in differences(name, got[name]):
            if field not in EXPECTED.get(name, ("", ()))[1]:
                groups[field].append((name, text))
    bad = {name for rows in groups.values() for name, _ in rows}
    print(f"{len(SNIPPETS) - len(bad)} of {len(SNIPPETS)} agree ({len(EXPECTED)} listed to differ)")
    for field, rows in sorted(groups.items()):
        print(f"\n== {field}: {len(rows)}")
        for name, text in rows:
            print(f"{name}: {SNIPPETS[name]['source'].strip()}\n    {text}")


if __name__ == "__main__":
    report()
