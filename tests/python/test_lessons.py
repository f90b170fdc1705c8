"""Every program of docs/lessons runs, and both languages show the same programs."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

LESSONS = pathlib.Path(__file__).resolve().parents[2] / "docs" / "lessons"


def programs(name):
    text = (LESSONS / name).read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```$", text, re.S | re.M)


ENGLISH = programs("README.md")


def test_languages_agree():
    assert len(ENGLISH) >= 12
    assert programs("README.zh-CN.md") == ENGLISH


@pytest.mark.parametrize("number", range(len(ENGLISH)))
def test_lesson(number, tmp_path):
    path = tmp_path / "lesson.py"
    path.write_text(ENGLISH[number], encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "simt", "run", "-q", str(path)],
        capture_output=True,
        text=True,
        timeout=60,
        env=dict(os.environ),
    )
    assert done.returncode == 0, done.stderr
