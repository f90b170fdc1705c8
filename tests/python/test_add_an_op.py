"""docs/add-an-op.md, followed to the letter in a copy of the repository (a whole build)."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "add-an-op.md").read_text(encoding="utf-8")
EDIT = re.compile(
    r"^In `([^`]+)`, after the line( with)? `([^\n]+)`:\n\n```\w*\n(.*?)^```$", re.M | re.S
)
FILE = re.compile(r"^New file `([^`]+)`:\n\n```\w*\n(.*?)^```$", re.M | re.S)
TREE = ("src", "include", "python", "tests", "tools", "docs", "examples")


def insert(text, anchor, part, code):
    """The text with code after its only line that is (or with part: holds) the anchor."""
    lines = text.splitlines(keepends=True)
    at = [i for i, line in enumerate(lines) if (anchor in line if part else anchor == line.strip())]
    assert len(at) == 1, f"{len(at)} lines with {anchor!r}"
    return "".join([*lines[: at[0] + 1], code, *lines[at[0] + 1 :]])


def apply(root):
    """Does the page's edits below root; the files touched."""
    touched = set()
    for path, part, anchor, code in EDIT.findall(PAGE):
        file = root / path
        file.write_text(insert(file.read_text(encoding="utf-8"), anchor, bool(part), code))
        touched.add(path)
    for path, text in FILE.findall(PAGE):
        assert not (root / path).exists()
        (root / path).write_text(text)
        touched.add(path)
    return touched


def copy_tree(to):
    ignore = shutil.ignore_patterns("__pycache__", "*.so", "*.pyc", ".*")
    for name in TREE:
        shutil.copytree(ROOT / name, to / name, ignore=ignore)
    for file in ROOT.iterdir():
        if file.is_file():
            shutil.copy(file, to / file.name)


def test_every_step_finds_its_place(tmp_path):
    edits = EDIT.findall(PAGE)
    assert len(edits) >= 7 and len(edits) == len(re.findall(r"^In `", PAGE, re.M))
    for path in {e[0] for e in edits} | {f[0] for f in FILE.findall(PAGE)}:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / path).exists():
            shutil.copy(ROOT / path, tmp_path / path)
    assert len(apply(tmp_path)) >= 8


def test_how_many_files_are_touched():
    """The figures in CONTRIBUTING.md; generated files and an operation's own test come on top."""
    table = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    said = dict(re.findall(r"^\| \[([^\]]+)\]\(docs/add-an-op.md\) \| (\d+) ", table, re.M))
    found = {}
    for part in re.split(r"^## ", PAGE, flags=re.M)[1:]:
        files = {edit[0] for edit in EDIT.findall(part)} | {new[0] for new in FILE.findall(part)}
        if files:
            found[part.partition("\n")[0]] = str(len(files))
    assert found == said and len(found) == 3


@pytest.mark.exhaustive
def test_the_page(tmp_path):
    copy_tree(tmp_path)
    touched = apply(tmp_path)
    print(f"{len(touched)} files touched")
    bin_folder = os.path.dirname(sys.executable)
    env = dict(
        os.environ,
        PYTHONPATH=str(tmp_path / "python"),
        PATH=bin_folder + os.pathsep + os.environ["PATH"],
    )

    def run(*command):
        done = subprocess.run(
            command, cwd=tmp_path, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
        assert done.returncode == 0, (command, done.stdout[-3000:], done.stderr[-3000:])

    # `make build` and `make coverage` with this environment's tools in place of a new .venv
    meanings = {
        "make build": [
            ["meson", "setup", "build", "-Doptimization=1"],
            ["ninja", "-C", "build", "--quiet"],
            [sys.executable, "tools/link_core.py", "build"],
        ],
        "make coverage": [[sys.executable, "tools/gen_coverage.py"]],
    }
    commands = re.search(r"```sh\n(.*?)```", PAGE, re.S).group(1).splitlines()
    for line in commands:
        for command in meanings.get(line) or [["bash", "-c", line]]:
            run(*command)
    run(sys.executable, "-c", re.findall(r"```python\n(.*?)```", PAGE, re.S)[-1])
