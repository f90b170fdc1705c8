"""The command simt: programs run as python runs them; wrong use is told plainly."""

import os
import signal
import subprocess
import sys
import time

import pytest

sys.path.insert(0, os.path.dirname(__file__))
import standin


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return standin.make(tmp_path_factory.mktemp("standin"))


def both(path, *args, **kwargs):
    """(what python does with args, what simt run does)."""
    return standin.python(path, *args, **kwargs), standin.simt(path, "run", "-q", *args, **kwargs)


SHOW = """
import sys, os
print(sys.argv, sys.path[0], __name__, __spec__ and __spec__.name, __package__, sorted(globals()))
print(globals().get('__file__'), os.getcwd(), sys.modules['__main__'].__dict__ is globals())
print(__builtins__, type(__loader__).__name__)
"""

PROGRAMS = {
    "show": SHOW,
    "error": "def f():\n    return 1 / 0\n\n\nf()\n",
    "chained": "try:\n    {}['a']\nexcept KeyError as e:\n    raise ValueError('b') from e\n",
    "syntax": "x = 1\nif x\n    pass\n",
    "exit_code": "import sys\nsys.exit(7)\n",
    "exit_text": "import sys\nsys.exit('no')\n",
    "exit_none": "raise SystemExit\n",
    "atexit": "import atexit, os\natexit.register(print, 'bye')\nraise RuntimeError('x')\n",
    "hook": "import sys\nsys.excepthook = lambda t, e, tb: print('hook', e)\n1 / 0\n",
    "thread": "import threading, time\n"
    "threading.Thread(target=lambda: (time.sleep(.1), print('done'))).start()\n",
    "os_exit": "import os\nprint('a', flush=True)\nos._exit(3)\n",
    "latin": b"# -*- coding: latin-1 -*-\nprint(ascii('\xe9'))\n",
    "bom": b"\xef\xbb\xbfprint('bom')\n",
    "future": "from __future__ import annotations\nx: y = 1\nprint(__annotations__)\n",
    "pickle": "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))) is A)\n",
    "import_error": "import no_such_module\n",
    "group": "raise ExceptionGroup('g', [ValueError(1)])\n",
    "multi": "import inspect\n\n\ndef f():\n    pass\n\n\nprint(inspect.getsource(f))\n",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_script_as_under_python(path, tmp_path, name):
    script = tmp_path / "program.py"
    text = PROGRAMS[name]
    script.write_bytes(text if isinstance(text, bytes) else text.encode())
    expected, got = both(path, "program.py", "a", "-q", "--keep", cwd=tmp_path)
    assert got == expected


def test_script_by_link_folder_and_zip(path, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "__main__.py").write_text(SHOW)
    (folder / "other.py").write_text("import sys; print(sys.path[0])\n")
    os.symlink(folder / "other.py", tmp_path / "link.py")
    for args in (["link.py"], ["folder", "x"]):
        expected, got = both(path, *args, cwd=tmp_path)
        assert got == expected


@pytest.mark.parametrize("name", ["show", "error", "exit_code"])
def test_module_code_and_stdin_as_under_python(path, tmp_path, name):
    package = tmp_path / "pack"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "mod.py").write_text(PROGRAMS[name])
    for args, stdin in (
        (["-m", "pack.mod", "x"], ""),
        (["-c", PROGRAMS[name], "-x"], ""),
        (["-", "x"], PROGRAMS[name]),
    ):
        expected, got = both(path, *args, stdin=stdin, cwd=tmp_path)
        assert got == expected


def test_module_that_is_not_there(path):
    expected, got = both(path, "-m", "no_such_module_at_all")
    assert got == expected and got[0] == 1


def test_interrupt_ends_the_program_by_the_signal(path, tmp_path):
    script = tmp_path / "program.py"
    script.write_text(
        "import atexit, time\natexit.register(print, 'bye')\n"
        "print('go', flush=True)\ntime.sleep(30)\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-m", "simt", "run", "-q", str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=standin.environment(path),
    )
    assert child.stdout.readline() == "go\n"
    time.sleep(0.1)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=20)
    assert child.returncode == -signal.SIGINT and out == "bye\n"
    assert err.count("Traceback") == 1 and err.rstrip().endswith("KeyboardInterrupt")
    assert "_run.py" not in err


def test_wrong_use(path, tmp_path):
    for args, text in (
        (["run"], "needs a program"),
        (["run", "--frobnicate", "x.py"], "unknown option --frobnicate"),
        (["run", "--device"], "--device needs a value"),
        (["run", "--device", "tpu", "x.py"], "'tpu' is not one of auto, cpu, gpu"),
        (["run", "--keep", "jax", "x.py"], "--keep jax: not one of cupy"),
        (["run", "x.py"], f"can't open file '{tmp_path}/x.py': [Errno 2] No such file"),
        (["ruin"], "'ruin' is no command; one of run, doctor"),
        (["x.py"], "a program is run by: simt run x.py"),
        (["doctor", "--xml"], "unknown option --xml"),
        ([], "usage: simt"),
    ):
        status, out, err = standin.simt(path, *args, cwd=tmp_path)
        assert (status, out) == (2, "") and text in err and "Traceback" not in err, args


@pytest.mark.parametrize(
    "args",
    [
        ["run", "--soft-gpu", "-c", "1"],
        ["run", "--check", "-c", "1"],
        ["run", "--profile", "out.json", "-c", "1"],
        ["run", "--device", "gpu", "-c", "1"],
        ["show", "--ptx", "x.py"],
        ["cc", "x.cu"],
        ["profile"],
        ["config", "--cflags"],
    ],
)
def test_not_there_yet_is_said(path, args):
    status, out, err = standin.simt(path, *args)
    assert (status, out) == (2, "") and "not in simt yet" in err
    assert err.count("\n") == 1


def test_device_gpu_by_environment_is_an_error(path):
    status, _, err = standin.simt(path, "run", "-c", "1", SIMT_DEVICE="gpu")
    assert status == 2 and "not in simt yet" in err


def test_run_line(path):
    code = "import os; print(os.environ.get('SIMT_DEVICE'))"
    status, out, err = standin.simt(
        path, "run", "--device=cpu", "-c", code, SIMT_NUM_THREADS="3", SIMT_ISA="avx2"
    )
    assert (status, out) == (0, "cpu\n")
    assert err.startswith("simt: CPU (") and "3 threads" in err and "asked for" in err
    assert "simt's own: torch, torchvision" in err and err.count("\n") == 1
    status, _, err = standin.simt(path, "run", "-c", "1", SIMT_LANG="zh", PYTHONUTF8="1")
    assert "由 simt 提供: torch, torchvision" in err
    assert standin.simt(path, "run", "-q", "-c", "1") == (0, "", "")


def test_version_is_the_builds():
    import re

    import simt

    with open(os.path.join(standin.ROOT, "meson.build")) as f:
        assert re.search(r"version: '([^']+)'", f.read()).group(1) == simt.__version__
    status, out, _ = standin.simt(os.path.dirname(standin.PACKAGE), "--version")
    assert (status, out) == (0, f"simt {simt.__version__}\n")


def test_help_in_both_languages(path):
    assert standin.simt(path, "--help")[1].startswith("usage: simt COMMAND")
    assert standin.simt(path, "--help", SIMT_LANG="zh", PYTHONUTF8="1")[1].startswith("用法")
    _, out, _ = standin.simt(path, "help", SIMT_LANG="", LC_ALL="zh_CN.UTF-8", PYTHONUTF8="1")
    assert out.startswith("用法")


@pytest.mark.skipif("SIMT_SANITIZE" in os.environ, reason="about modules, not behaviour")
def test_run_loads_little(path):
    code = "import sys; print(sorted(m for m in sys.modules if m.partition('.')[0] in NAMES))"
    names = "('numpy','inspect','ast','typing','dataclasses','argparse','re','ctypes','subprocess')"
    status, out, _ = standin.simt(path, "run", "-q", "-c", code.replace("NAMES", names))
    assert (status, out) == (0, "[]\n")
