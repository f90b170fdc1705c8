#!/usr/bin/env python3
"""Records what the real PyTorch and torchvision give for the snippets of tests/conformance.

    python -m venv /tmp/peers && /tmp/peers/bin/pip install torch torchvision
    python tools/record_peers.py --python /tmp/peers/bin/python

Runs every snippet twice in fresh processes and refuses to write when the two runs disagree, so
that nothing random gets recorded. Writes tests/conformance/torch_recorded.json.
"""

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CONFORMANCE = ROOT / "tests" / "conformance"
sys.path.insert(0, str(CONFORMANCE))
import recording  # noqa: E402

VERSIONS = (
    "import json, sys, torch, torchvision, numpy;"
    "print(json.dumps({'torch': torch.__version__, 'torchvision': torchvision.__version__,"
    "'numpy': numpy.__version__, 'python': sys.version.split()[0]}))"
)


def find_mnist():
    """The MNIST files of this repository."""
    for path in sorted(ROOT.glob("**/t10k-labels-idx1-ubyte.gz")):
        if "build" not in path.parts:
            return path.parent
    raise SystemExit("no MNIST files below " + str(ROOT))


def prepare(folder, mnist):
    """A working folder where the real torchvision finds MNIST without a download."""
    raw = Path(folder) / "data" / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for path in Path(mnist).glob("*-ubyte.gz"):
        (raw / path.stem).write_bytes(gzip.decompress(path.read_bytes()))


def record_once(python, mnist):
    with tempfile.TemporaryDirectory() as folder:
        prepare(folder, mnist)
        out = Path(folder) / "out.jsonl"
        env = dict(os.environ, CUDA_VISIBLE_DEVICES="")
        subprocess.run(
            [python, str(CONFORMANCE / "recording.py"), str(out)], cwd=folder, env=env, check=True
        )
        rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    results = {}
    for row in rows:
        if "id" in row:
            row.pop("at", None)
            results[row.pop("id")] = row
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--python", default=sys.executable, help="a Python with torch, torchvision")
    parser.add_argument("--mnist", help="folder with the four MNIST .gz files")
    args = parser.parse_args()
    mnist = args.mnist or find_mnist()
    snippets = recording.load_snippets()
    first, second = record_once(args.python, mnist), record_once(args.python, mnist)
    bad = [name for name in snippets if json.dumps(first[name]) != json.dumps(second[name])]
    if bad:
        raise SystemExit("not the same twice: " + ", ".join(bad))
    versions = json.loads(subprocess.check_output([args.python, "-c", VERSIONS]))
    lines = [
        f"{json.dumps(name)}: {json.dumps(first[name], ensure_ascii=False)}" for name in snippets
    ]
    text = f'{{"versions": {json.dumps(versions)},\n"snippets": {{\n' + ",\n".join(lines) + "\n}}\n"
    recording.RECORDED.write_text(text, encoding="utf-8")
    raised = sum("raises" in row for row in first.values())
    print(f"{len(first)} snippets ({raised} raise), {len(text) // 1024} KB, {versions}")


if __name__ == "__main__":
    main()
