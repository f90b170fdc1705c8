#!/usr/bin/env python3
"""Records what the real TensorFlow gives for tests/conformance/snippets_tensorflow, and for the
programs of tests/python/tensorflow_programs.py.

    python -m venv /tmp/peers && /tmp/peers/bin/pip install tensorflow-cpu
    python tools/record_tensorflow.py --python /tmp/peers/bin/python

Runs every snippet twice in fresh processes and refuses to write when the two runs disagree.
Writes tests/conformance/tensorflow_recorded.json and tests/python/tensorflow_programs.json.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CONFORMANCE = ROOT / "tests" / "conformance"
PROGRAMS = ROOT / "tests" / "python" / "tensorflow_programs.py"
sys.path.insert(0, str(CONFORMANCE))
import recording_tensorflow  # noqa: E402

VERSIONS = (
    "import json, sys, tensorflow, keras, numpy;"
    "print(json.dumps({'tensorflow': tensorflow.__version__, 'keras': keras.__version__,"
    "'numpy': numpy.__version__, 'python': sys.version.split()[0]}))"
)


def record_once(python):
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.jsonl"
        env = dict(os.environ, CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
        command = [python, str(CONFORMANCE / "recording_tensorflow.py"), str(out)]
        subprocess.run(command, cwd=folder, env=env, check=True)
        rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    return {row.pop("id"): row for row in rows if "id" in row}


def record_programs(python, env):
    with tempfile.TemporaryDirectory() as folder:
        text = subprocess.check_output([python, str(PROGRAMS)], env=env, cwd=folder)
    found = json.loads(text)
    rows = [f"{json.dumps(n)}: {json.dumps(numbers)}" for n, numbers in found["numbers"].items()]
    head = json.dumps({"tensorflow": found["tensorflow"]})[:-1]
    text = head + ',\n"numbers": {\n' + ",\n".join(rows) + "\n}}\n"
    PROGRAMS.with_suffix(".json").write_text(text, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--python", default=sys.executable, help="a Python with tensorflow")
    args = parser.parse_args()
    first, second = record_once(args.python), record_once(args.python)
    for row in (*first.values(), *second.values()):
        row.pop("at", None)
    bad = [name for name in first if json.dumps(first[name]) != json.dumps(second[name])]
    if bad:
        raise SystemExit("not the same twice: " + ", ".join(bad))
    env = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
    versions = json.loads(subprocess.check_output([args.python, "-c", VERSIONS], env=env))
    lines = [f"{json.dumps(n)}: {json.dumps(row, ensure_ascii=False)}" for n, row in first.items()]
    text = f'{{"versions": {json.dumps(versions)},\n"snippets": {{\n' + ",\n".join(lines) + "\n}}\n"
    recording_tensorflow.RECORDED.write_text(text, encoding="utf-8")
    record_programs(args.python, env)
    raised = sum("raises" in row for row in first.values())
    print(f"{len(first)} snippets ({raised} raise), {len(text) // 1024} KB, {versions}")


if __name__ == "__main__":
    main()
