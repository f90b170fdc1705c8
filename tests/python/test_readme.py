"""The READMEs' table of what a tutorial asks for: every command is run and shows what it says."""

import os
import pathlib
import re
import shlex
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def rows(name):
    """(command, what it shows) of the table whose third column says what the user sees."""
    out = []
    for line in (ROOT / name).read_text(encoding="utf-8").splitlines():
        cells = [c.strip() for c in line.strip("|").split(" | ")]
        if line.startswith("|") and len(cells) == 3 and "`simt" in cells[1]:
            command = re.search(r"`(simt [^`]*)`", cells[1])[1]
            out.append((command, cells[2].strip("`| ")))
    return out


ROWS = rows("README.md")


def test_languages_agree():
    assert len(ROWS) >= 9
    assert rows("README.zh-CN.md") == ROWS


@pytest.mark.parametrize(("command", "shows"), sorted(set(ROWS)))
def test_row(command, shows, tmp_path):
    (tmp_path / "program.py").write_text("import numba.cuda\n", encoding="utf-8")
    words = shlex.split(command)
    done = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=tmp_path,
        env=dict(os.environ, SIMT_LANG="en"),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0 or words[1] == "doctor", done.stderr
    assert shows in done.stdout
