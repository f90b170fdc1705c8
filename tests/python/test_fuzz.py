"""What tools/fuzz found once, and a few seconds of it."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOUND = sorted(map(str, (ROOT / "tests" / "fuzz_found").glob("*.txt")))


def fuzz(*arguments):
    command = [sys.executable, "-X", "faulthandler", str(ROOT / "tools" / "fuzz"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_programs_that_failed_once():
    """In one process: a crash ends it, and the last name on stderr is the program's."""
    assert FOUND
    fuzz("--replay", *FOUND)


def test_odd_objects_everywhere(tmp_path):
    said = fuzz(
        *("--part", "binding", "--programs", "3000", "--seconds", "200", "--seed", "1"),
        *("--keep", str(tmp_path)),
    )
    assert int(said.split("binding: ")[1].split()[0]) > 100  # programs
