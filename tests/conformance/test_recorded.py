"""What simt.torch gives for the recorded snippets, against what PyTorch gave (torch_recorded.json).

The snippets run in one child process (a new one after a crash). Differences that are meant are in
expected_differences.toml with a reason; a listed difference that is gone fails too, so the list
stays true. `python tests/conformance/test_recorded.py` prints a report grouped by cause.
"""

import collections
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import pytest
import recording

HERE = Path(__file__).resolve().parent
SNIPPETS = recording.load_snippets()
RECORDED = json.loads(recording.RECORDED.read_text(encoding="utf-8"))["snippets"]
EXPECTED = tomllib.loads((HERE / "expected_differences.toml").read_text(encoding="utf-8"))


def run_all(program="recording.py"):
    """{id: what simt gave}; raises ImportError with the child's last line when it cannot start."""
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.jsonl"
        command = [sys.executable, str(HERE / program), str(out), "--simt"]
        import simt

        where = str(Path(simt.__file__).resolve().parents[1])  # PYTHONPATH may be relative
        env = dict(os.environ, SIMT_DATA=folder, SIMT_LANG="en", PYTHONPATH=where)
        last = None
        while True:
            after = ["--after", last] if last else []
            done = subprocess.run(
                command + after, cwd=folder, env=env, capture_output=True, text=True, timeout=600
            )
            rows = [json.loads(x) for x in out.read_text().splitlines()] if out.exists() else []
            if not rows:
                tail = (done.stderr.strip().splitlines() or ["no output"])[-1]
                raise ImportError(f"the snippets' process did not start: {tail}")
            results.update({row["id"]: row for row in rows if "id" in row})
            if done.returncode == 0:
                return results
            started = rows[-1].get("start")
            if started is None or started == last:
                raise RuntimeError(f"the snippets' process failed: {done.stderr[-2000:]}")
            last = started
            results[last] = {"id": last, "crash": f"process ended with {done.returncode}"}


@pytest.fixture(scope="module")
def results():
    return run_all()


def test_recording_is_complete():
    assert sorted(SNIPPETS) == sorted(RECORDED), "run tools/record_peers.py"
    assert not set(EXPECTED) - set(SNIPPETS)
    assert all(row.get("reason") for row in EXPECTED.values())


@pytest.mark.slow  # 10 s in all
@pytest.mark.parametrize("name", SNIPPETS)
def test_snippet(name, results):
    diffs = recording.compare(RECORDED[name], results[name], SNIPPETS[name]["flags"])
    allowed = EXPECTED.get(name)
    if allowed is None:
        assert not diffs, SNIPPETS[name]["source"] + "\n".join(f"{f}: {t}" for f, t in diffs)
        return
    fields = set(allowed["fields"])
    beyond = [d for d in diffs if d[0] not in fields]
    assert not beyond, SNIPPETS[name]["source"] + "\n".join(f"{f}: {t}" for f, t in beyond)
    gone = fields - {field for field, _ in diffs}
    assert not gone, f"{sorted(gone)} of {name} no longer differ: remove from the list"


def report():
    got = run_all()
    groups = collections.defaultdict(list)
    for name, snippet in SNIPPETS.items():
        for field, text in recording.compare(RECORDED[name], got[name], snippet["flags"]):
            if field not in EXPECTED.get(name, {}).get("fields", ()):
                groups[field].append((name, text))
    bad = {name for rows in groups.values() for name, _ in rows}
    print(f"{len(SNIPPETS) - len(bad)} of {len(SNIPPETS)} agree ({len(EXPECTED)} listed to differ)")
    for field, rows in sorted(groups.items()):
        print(f"\n== {field}: {len(rows)}")
        for name, text in rows:
            print(f"{name}: {text}")


if __name__ == "__main__":
    report()
