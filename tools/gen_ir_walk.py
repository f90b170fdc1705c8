"""Writes docs/ir-walk.md: one kernel through every stage of compiling, by running it; and the names
of the stages in ARCHITECTURE.md.

PYTHONPATH=python python tools/gen_ir_walk.py [--check]

--check: fails when the page is not up to date.
"""

import difflib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/ir-walk.md"
TOUR = ROOT / "ARCHITECTURE.md"
PROGRAM = """\
import numpy as np
from simt.numba import cuda


@cuda.jit
def smooth(a, out):
    i = cuda.grid(1)
    if 0 < i < a.size - 1:
        s = 0.0
        for k in range(3):
            s += a[i + k - 1]
        out[i] = s / 3


a, out = np.arange(8.0) ** 2, np.zeros(8)
smooth[1, 32](a, out)
print(out.tolist())
"""
HEAD = """\
# A kernel through every stage

Made by `tools/gen_ir_walk.py`, which runs this program with `SIMT_DUMP=ir,opt,facts,asm`
([other variables](environment.md)); a test runs it again and compares. [ir.md](ir.md) explains the
operations, [ARCHITECTURE.md](../ARCHITECTURE.md) which file does what.

```python
{program}```

It prints

```
{output}```
"""
WHAT = {
    "ir": """\
## What the front end makes (`src/frontend/python/`)

Each array became its address, its size and its stride: three parameters. `%n` are values, each
given once; variables are gone: where ways meet, blocks, loops and ifs give results and take values
at `br` and `continue`. `@line:column` is the place in the source. Each index is compared with the
array's size, and where it is outside a `fault` says which array it was.
""",
    "verify": "",
    "facts": """\
## What is known of it then (`src/kernel/facts.h`)

For a block of 32 threads: what is the same for all of them or grows evenly with the thread, what
integers can be, how ways part and meet again, whether blocks matter. Back ends build on this.
""",
    "vm": """\
## What the vm runs (`src/backend/vm/`)

A flat list of loops over the lanes of a gang of threads, and what is done once for all of them.
What is in brackets are places in the frame. `src/backend/vm/vm.h` has the words.
""",
}
PASSES = """\
## What the passes change (`src/opt/passes.def`)

Lines with `-` went, lines with `+` came; between them the verifier has looked (`SIMT_VERIFY`).
"""


def run_program():
    """(what it prints, [(stage, text or None where nothing changed)])"""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "smooth.py").write_text(PROGRAM)
        env = dict(os.environ, SIMT_DUMP="ir,opt,facts,asm", SIMT_VERIFY="1")
        env["SIMT_ISA"] = "generic"  # the same page on every machine
        env["PYTHONPATH"] = os.pathsep.join(sys.path[1:])
        done = subprocess.run(
            [sys.executable, "smooth.py"], cwd=folder, env=env, capture_output=True, text=True
        )
        if done.returncode:
            raise SystemExit(done.stderr)
        shown = done.stderr.replace(os.path.realpath(folder) + "/", "").replace(folder + "/", "")
    parts = re.split(r"^; simt: (.*)\n", shown, flags=re.M)[1:]
    stages = [(s.split()[0], t.rstrip("\n")) for s, t in zip(parts[::2], parts[1::2], strict=True)]
    return done.stdout, stages


def rows():
    """The pipeline: (pass, whether it always runs, what it does)"""
    table = (ROOT / "src/opt/passes.def").read_text()
    return re.findall(r'^PASS\((\w+), (\w+), "(.*)"\)', table, re.M)


def meanings():
    """{pass: [what it does, each time]}"""
    found = {}
    for name, _, text in rows():
        found.setdefault(name, []).append(text)
    return found


def make_tour():
    """ARCHITECTURE.md with the stages of a tensor operation."""
    passes = [name for name, always, _ in rows() if always == "true"]
    stages = "\n".join(["ir", "verify", *passes, "facts", "vm"])
    text = TOUR.read_text(encoding="utf-8")
    return re.sub(r"(?<=^```stages\n).*?(?=\n```$)", stages, text, flags=re.M | re.S)


def changes(before, after):
    lines = difflib.unified_diff(before.split("\n"), after.split("\n"), lineterm="", n=1)
    kept = [line for line in lines if not line.startswith(("---", "+++"))]
    return "\n".join("..." if line.startswith("@@") else line for line in kept[1:])


def make_page():
    output, stages = run_program()
    said = meanings()
    page = [HEAD.format(program=PROGRAM, output=output)]
    before = ""
    for name, text in stages:
        if name in WHAT:
            if WHAT[name]:
                page.append(f"{WHAT[name]}\n```\n{text}\n```\n")
            if name == "ir":
                page.append(PASSES)
        else:
            why = said[name].pop(0)
            if text:
                page.append(f"**{name}**: {why}\n\n```diff\n{changes(before, text)}\n```\n")
            else:
                page.append(f"**{name}**: {why}. Nothing changes here.\n")
        if text and name not in ("facts", "vm"):
            before = text
    page.insert(-2, f"## What the back end gets\n\n```\n{before}\n```\n")
    return "\n".join(page)


def main():
    for path, text in ((PAGE, make_page()), (TOUR, make_tour())):
        if "--check" not in sys.argv[1:]:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            raise SystemExit(f"{path.name} is not up to date: run tools/gen_ir_walk.py")


if __name__ == "__main__":
    main()
