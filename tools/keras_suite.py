#!/usr/bin/env python3
"""Keras's own tests, which its wheel ships, on simt's backend.

    python tools/keras_suite.py                     # all of them (long), against the list
    python tools/keras_suite.py --quick             # the operations and layers most used
    python tools/keras_suite.py layers/core ops/nn_test.py [-k EXPRESSION]
    python tools/keras_suite.py --backend jax       # stock Keras, to compare with; no list

Each file runs in a process of its own, with limits of time and memory. What fails is compared with
tools/keras_expected.txt: a reason in a comment, then the tests it holds for (shell patterns). A
failure that is not listed is an error, and so is a listed test that passes: the list only shrinks.
Libraries that are not installed (OTHERS) are stood in for: a test that uses one is skipped, and so
is one for which Keras itself imports one, or goes to the network where there is none.

The file is a plugin of pytest too: it puts the stand-ins and the backend in place and writes the
outcomes down.
"""

import argparse
import fnmatch
import json
import multiprocessing
import os
import re
import sys
import tempfile
import time
import types
import unittest
from importlib.machinery import PathFinder

HERE = os.path.dirname(os.path.abspath(__file__))
EXPECTED = os.path.join(HERE, "keras_expected.txt")
OUTCOMES = "KERAS_SUITE_OUTCOMES"
OTHERS = ("tensorflow", "torch", "jax", "flax", "grain", "orbax", "onnxruntime", "sklearn")
QUICK = (
    "ops/core_test.py",
    "ops/nn_test.py",
    "layers/core/dense_test.py",
    "layers/layer_test.py",
    "layers/activations",
    "layers/convolutional/conv_test.py",
    "layers/normalization/batch_normalization_test.py",
    "layers/pooling/max_pooling_test.py",
    "layers/rnn/lstm_test.py",
    "losses/losses_test.py",
    "metrics/accuracy_metrics_test.py",
    "models/sequential_test.py",
    "optimizers/adam_test.py",
    "optimizers/sgd_test.py",
)


# ---- as a plugin


class _Absent(types.ModuleType):
    """Stands for a library that is not installed and for all that is in it. Test files may name it
    as they are imported; a test that uses it is skipped."""

    __path__ = ()

    def __getattr__(self, name):
        if name[:2] == "__":
            raise AttributeError(name)
        return self._use(f"{self.__name__}.{name}")

    def __call__(self, *args, **kwargs):
        return self._use(self.__name__)

    def __mro_entries__(self, bases):
        return ()

    def _use(self, name):
        if _state["running"]:
            raise unittest.SkipTest(f"needs {self.__name__.split('.')[2]}")
        return _Absent(name)


class _AbsentFinder:
    """Gives tests a stand-in for every module of the libraries that are not installed."""

    names = ()

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.partition(".")[0] not in cls.names or not _asked_by_a_test():
            return None
        from importlib.machinery import ModuleSpec

        return ModuleSpec(name, cls, is_package=True)

    @staticmethod
    def create_module(spec):
        # Named as a part of simt, so that Keras's probing does not take it for the library.
        return _Absent(f"simt.absent.{spec.name}")

    @staticmethod
    def exec_module(module):
        pass


def _conftest():
    """What some tests import from the conftest.py that the wheel does not have."""
    import pytest

    module = types.ModuleType("conftest")

    def skip_if_backend(given, reason=""):
        return pytest.mark.skipif(given == _backend(), reason=reason)

    module.skip_if_backend = skip_if_backend
    return module


def _backend():
    return os.environ.get("KERAS_BACKEND", "simt")


def _asked_by_a_test():
    """Whether the import that is under way stands in a test file (Keras's own code probes)."""
    frame = sys._getframe(2)
    while frame is not None and "importlib" in frame.f_code.co_filename:
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename.endswith("_test.py")


_outcomes = {}
_state = {"running": False}
# What a test says that came upon a library that is not there by Keras's own code.
_NEEDS = re.compile(
    rf"(?:No module named '|requires the |requires `)({'|'.join(OTHERS)}|scikit-learn)\b|gaierror"
)


def pytest_runtest_protocol(item):
    _state["running"] = True


def _by_name(hook):
    """Test files that choose by the backend's name get simt's choice: its trainer, its device, its
    dtypes (all but the complex ones, as Keras's tests have it for OpenVINO)."""
    trainer = hook._branch(
        "backend.backend", "from simt.keras_backend.trainer import SimtTrainer as Trainer"
    )
    devices = '            "jax": "cpu:0",\n', '            "jax": "cpu:0", "simt": "cpu:0",\n'
    dtypes = [
        (place, place.replace('== "openvino"', 'in ("openvino", "simt")'))
        for place in (
            '    elif backend.backend() == "openvino":\n        ALL_DTYPES',
            'if backend.backend() == "openvino" and dtype in (\n            "complex64",',
        )
    ]
    return {
        "keras.src.trainers.trainer_test": (*trainer, devices),
        "keras.src.backend.common.variables_test": dtypes,
    }


def pytest_configure(config):
    _AbsentFinder.names = tuple(n for n in OTHERS if PathFinder.find_spec(n) is None)
    sys.meta_path.insert(0, _AbsentFinder)
    sys.modules["conftest"] = _conftest()
    if _backend() == "simt":
        import simt.keras

        sys.meta_path.remove(simt.keras._Finder)  # before pytest's finder, which takes test files
        sys.meta_path.insert(0, simt.keras._Finder)
        simt.keras.PATCHES |= _by_name(simt.keras)
    config.addinivalue_line("markers", "requires_trainable_backend: of Keras")
    config.addinivalue_line("markers", "multi_device: of Keras")


def pytest_collectreport(report):
    if report.outcome != "passed" and report.nodeid.endswith(".py"):
        _outcomes[report.nodeid] = _judged(report.outcome, _line(report))


def pytest_runtest_logreport(report):
    before = _outcomes.get(report.nodeid, ("passed", ""))
    if report.outcome != "passed" or report.when == "call":
        if before[0] != "failed":
            _outcomes[report.nodeid] = _judged(report.outcome, _line(report))


def _judged(outcome, line):
    needs = _NEEDS.search(line) if outcome == "failed" else None
    return ("skipped", f"needs {needs[1] or 'the network'}") if needs else (outcome, line)


def _line(report):
    """The last line of what went wrong that names an error."""
    if report.outcome == "passed":
        return ""
    lines = [x[4:] for x in str(report.longrepr).splitlines() if x.startswith("E   ")]
    return (lines[0] if lines else str(report.longrepr).splitlines()[-1])[:200]


def pytest_runtest_logstart(nodeid):
    _write(nodeid, "failed", "running")


def pytest_runtest_logfinish(nodeid):
    _write(nodeid, *_outcomes[nodeid])


def pytest_sessionfinish():
    for nodeid, outcome in _outcomes.items():
        if nodeid.endswith(".py"):
            _write(nodeid, *outcome)


def _write(nodeid, outcome, line):
    """One line of the file of outcomes; the last one of a test holds."""
    path = os.environ.get(OUTCOMES)
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps([nodeid, outcome, line]) + "\n")


# ---- as a program


def keras_source():
    spec = PathFinder.find_spec("keras")
    if spec is None:
        sys.exit("keras_suite: Keras is not installed (pip install 'simt[keras]')")
    return os.path.join(os.path.dirname(spec.origin), "src")


def test_files(source, wanted):
    """The test files below source that wanted names, as paths in it."""
    found = []
    for folder, folders, names in os.walk(source):
        folders.sort()
        for name in sorted(names):
            path = os.path.relpath(os.path.join(folder, name), source)
            if name.endswith("_test.py") and (not wanted or _asked(path, wanted)):
                found.append(path)
    return found


def _asked(path, wanted):
    return any(path == w or path.startswith(w.rstrip("/") + "/") for w in wanted)


def run_file(source, path, seconds, gigabytes, expression):
    """{test: (outcome, line)} of one file, the tests named from Keras's source on."""
    with tempfile.TemporaryDirectory() as folder:
        outcomes = os.path.join(folder, "outcomes.json")
        arguments = ["-q", "-p", "no:cacheprovider", "-p", "keras_suite", "-c", os.devnull]
        arguments += ["--rootdir", source, "--tb=short", "--disable-warnings"]
        arguments += [os.path.join(source, path), *(["-k", expression] if expression else [])]
        process = multiprocessing.get_context("fork").Process(
            target=_run_tests, args=(arguments, folder, outcomes, gigabytes)
        )
        process.start()
        process.join(seconds)
        ended = f"the process ended with {process.exitcode}"
        if process.exitcode is None:
            process.kill()
            process.join()
            ended = f"took more than {seconds} s"
        made = {}
        if os.path.exists(outcomes):
            with open(outcomes, encoding="utf-8") as file:
                made = {n.replace("\\", "/"): (o, s) for n, o, s in map(json.loads, file)}
    if not made or process.exitcode < 0:
        made[path] = ("failed", ended)
    return made


def _run_tests(arguments, folder, outcomes, gigabytes):
    """In the process of one file: its tests."""
    import resource

    import pytest

    resource.setrlimit(resource.RLIMIT_AS, (gigabytes << 30, gigabytes << 30))
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    os.chdir(folder)
    os.environ[OUTCOMES] = outcomes
    pytest.main(arguments)


def prepare(home, backend):
    """Imports what every file needs, once: the processes of the files are copies of this one."""
    os.environ |= {"KERAS_HOME": home, "JAX_PLATFORMS": "cpu", "KERAS_BACKEND": backend}
    sys.path.append(os.path.join(os.path.dirname(HERE), "python"))
    if backend == "simt":
        import simt.keras  # noqa: F401, isort: skip (before Keras)
    import keras  # noqa: F401
    import pytest  # noqa: F401


def read_expected():
    """[(pattern, reason)] of the list."""
    out, reason = [], ""
    with open(EXPECTED, encoding="utf-8") as file:
        for line in file.read().splitlines():
            if line.startswith("# "):
                reason = line[2:]
            elif line.strip():
                out.append((line.strip(), reason))
    return out


def judge(outcomes, files, expected):
    """(failures that are not listed, patterns that no longer fail)."""
    failed = [name for name, (outcome, _) in outcomes.items() if outcome == "failed"]
    patterns = [pattern for pattern, _ in expected]
    new = [n for n in failed if not any(fnmatch.fnmatchcase(n, p) for p in patterns)]
    ran = set(files)
    stale = [
        p
        for p in patterns
        if p.partition("::")[0] in ran and not any(fnmatch.fnmatchcase(n, p) for n in failed)
    ]
    return new, stale


def table(outcomes):
    """Lines of a table: folder, passed, failed, skipped."""
    rows = {}
    for name, (outcome, _) in outcomes.items():
        folder = os.path.dirname(name.partition("::")[0]) or "."
        row = rows.setdefault(folder, {"passed": 0, "failed": 0, "skipped": 0})
        row[outcome] += 1
    lines = ["| folder | passed | failed | skipped |", "|---|---|---|---|"]
    total = {"passed": 0, "failed": 0, "skipped": 0}
    for folder, row in sorted(rows.items()):
        lines.append(f"| {folder} | {row['passed']} | {row['failed']} | {row['skipped']} |")
        total = {k: total[k] + row[k] for k in total}
    lines.append(f"| all | {total['passed']} | {total['failed']} | {total['skipped']} |")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", help="files or folders below keras/src")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seconds", type=int, default=600, help="for one file")
    parser.add_argument("--memory", type=int, default=16, help="address space in GB")
    parser.add_argument("--backend", default="simt", help="another one of Keras's, for comparison")
    parser.add_argument("-k", dest="expression")
    parser.add_argument("--json", help="writes the outcomes there")
    options = parser.parse_args()
    source = keras_source()
    files = test_files(source, options.files or (QUICK if options.quick else ()))
    outcomes = {}
    home = tempfile.TemporaryDirectory()
    prepare(home.name, options.backend)
    for path in files:
        start = time.monotonic()
        made = run_file(source, path, options.seconds, options.memory, options.expression)
        outcomes |= made
        kinds = [outcome for outcome, _ in made.values()]
        counts = ", ".join(f"{kinds.count(k)} {k}" for k in ("passed", "failed", "skipped"))
        print(f"{path}: {counts}", end=" ")
        print(f"({time.monotonic() - start:.0f} s)", flush=True)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(outcomes, file, indent=1)
    print("\n".join(table(outcomes)))
    if options.backend != "simt":
        return
    new, stale = judge(outcomes, [] if options.expression else files, read_expected())
    for name in new:
        print(f"FAILED {name}: {outcomes[name][1]}")
    for pattern in stale:
        print(f"passes now, take it off the list: {pattern}")
    sys.exit(1 if new or stale else 0)


if __name__ == "__main__":
    main()
