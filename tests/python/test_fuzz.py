"""What tools/fuzz found once, and a few seconds of it."""

import importlib.util
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


def module():
    spec = importlib.util.spec_from_file_location(
        "fuzz_main", ROOT / "tools" / "fuzz" / "__main__.py"
    )
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_programs_have_limits(monkeypatch, capsys):
    fuzz = module()
    monkeypatch.setattr(fuzz, "MEMORY", 1000)
    grows = "x = []\nwhile True:\n    x.append(np.ones(10**6))"
    assert fuzz.failure("binding", grows) == fuzz.NO_MEMORY
    assert fuzz.failure("binding", "while True: pass", 15) == fuzz.HANGS
    assert fuzz.reason(1, "...\nnumpy.core._exceptions._ArrayMemoryError: Unable") == fuzz.NO_MEMORY
    assert "KeyError" in fuzz.reason(1, "MemoryError: this\nKeyError: 1")
    # what the limit of memory stopped is said, and no finding
    monkeypatch.setattr(fuzz, "run_child", lambda *a: (5, 3, "x = 1", fuzz.NO_MEMORY))
    assert fuzz.one_round("binding", "1.0", 1, None) == (5, 3, 0, 1)
    assert "STOPPED binding, seed 1.0: no memory, alone: ends\nx = 1" in capsys.readouterr().out
