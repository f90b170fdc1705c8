"""The repository's own tools: layer rules, size report, package list."""

import importlib.util
import json
import os
import subprocess
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def load(name):
    spec = importlib.util.spec_from_file_location(name, os.path.join(ROOT, "tools", name + ".py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


HEADERS = {
    "src/base/arena.h": "",
    "src/ir/ir.h": '#include "base/arena.h"\n',
    "src/graph/node.h": '#include "ir/ir.h"\n',
    "src/backend/backend.h": '#include "ir/ir.h"\n',
    "src/backend/vm/vm.h": '#include "backend/backend.h"\n#include "../backend.h"\n',
    "src/backend/x64/x64.h": "",
}


@pytest.mark.parametrize(
    "path, line, why",
    [
        ("src/ir/a.c", '#include "graph/node.h"', "a higher layer"),
        ("src/opt/a.c", '#include "graph/node.h"', "the same layer"),
        ("src/backend/vm/a.c", '#include "backend/x64/x64.h"', "siblings"),
        ("src/array/a.c", "#include <Python.h>", "src/binding only"),
        ("src/device/cuda/a.c", "#include <cuda.h>", "no CUDA header"),
        ("src/ir/a.c", '#include "base/nothing.h"', "no such file"),
        ("src/ir/a.c", "void *p = malloc(8);", "use base/heap.h"),
        ("src/array/a.c", "PyErr_Clear();", "use binding_forgive"),
        ("src/array/a.c", "int has = PyObject_HasAttrString(o, n);", "use binding_forgive"),
        ("src/array/a.c", "void *p = PyMem_Malloc(8);", "use base/heap.h"),
        ("src/grad/a.c", "float *p = array_data(a);", "use array_open"),
        ("src/binding/tensor/a.c", "PyLong_FromVoidPtr(array_data(t->a));", "use array_open"),
        ("src/new/a.c", '#include "base/arena.h"', "not in the layer table"),
    ],
)
def test_layers_offences(tmp_path, path, line, why):
    write(tmp_path, HEADERS | {path: f"/* #include <Python.h>\n*/\n{line}\n"})
    _, problems = load("check_layers").check(str(tmp_path))
    assert len(problems) == 1
    assert problems[0].startswith(f"{path}:3: ") and why in problems[0]


def test_layers_allowed(tmp_path):
    good = '#include "ir/ir.h"\n#include "base/arena.h"\n#include <stdio.h>\n'
    files = {
        "src/array/a.c": good + '#include "graph/node.h"\n',
        "src/backend/table.c": '#include "vm/vm.h"\n#include "x64/x64.h"\n',
        "src/binding/m.c": "#include <Python.h>\n",
        "include/simt.h": "#include <stddef.h>\n",
    }
    write(tmp_path, HEADERS | files)
    scanned, problems = load("check_layers").check(str(tmp_path))
    assert problems == [] and len(scanned) == len(HEADERS) + 3


def test_layers_of_this_repository():
    _, problems = load("check_layers").check(ROOT)
    assert problems == []


def test_size_reports_long_files(tmp_path):
    write(
        tmp_path, {"src/a.c": "x\n" * 801, "src/b.c": "x\n" * 800, "src/generated/c.c": "x\n" * 999}
    )
    size = load("check_size")
    assert size.long_files(str(tmp_path)) == [(801, "src/a.c")]
    write(tmp_path, {"python/simt/a.py": "abc", "python/simt/__pycache__/b.pyc": "abc"})
    assert size.package_bytes(str(tmp_path)) == 3


def test_package_list_is_what_a_wheel_needs(tmp_path):
    write(
        tmp_path,
        {
            "simt/__init__.py": "",
            "simt/torch/nn/__init__.py": "",
            "simt/data/MNIST/raw/x.gz": "",
            "simt/_core.cpython-311.so": "",
            "simt/__pycache__/a.pyc": "",
        },
    )
    files = load("list_package").package_files(str(tmp_path))
    assert files == ["simt/__init__.py", "simt/data/MNIST/raw/x.gz", "simt/torch/nn/__init__.py"]


def test_mnist_and_its_notice_are_in_the_package():
    files = load("list_package").package_files(os.path.join(ROOT, "python"))
    raw = [f for f in files if f.startswith("simt/data/MNIST/raw/")]
    assert len(raw) == 4 and "simt/data/MNIST/NOTICE" in files


# Slow, so that a face can grow in small steps without regenerating each time.
@pytest.mark.slow
def test_coverage_pages_are_up_to_date():
    """In a process of its own: a module keeps names that were asked for once."""
    command = [sys.executable, os.path.join(ROOT, "tools", "gen_coverage.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_coverage_lists_what_a_module_offers(tmp_path):
    import types

    coverage = load("gen_coverage")
    module = types.ModuleType("simt.face")
    exec(
        "import os, sys\nfrom functools import wraps\n"
        "import numpy as np\nfrom numpy import float32\n"
        "from simt._missing import module_hooks\n"
        "_x = 1\npi = 3.14\ndef add(): pass\nclass Net: pass\n"
        "add.__module__ = Net.__module__ = 'simt.face'\n",
        module.__dict__,
    )
    assert coverage.public_names(module) == ["add", "float32", "pi", "Net"]
    assert coverage.section("face", ["a", "b"]) == "## face (2)\n\na, b\n"
    coverage.write({"a.md": "1", "b.md": "2"}, str(tmp_path))
    assert coverage.differing({"a.md": "1", "b.md": "3", "c.md": ""}, str(tmp_path)) == [
        "b.md",
        "c.md",
    ]
    coverage.write({"a.md": "1"}, str(tmp_path))
    assert sorted(os.listdir(tmp_path)) == ["a.md"]


def test_a_build_is_linked_with_the_python_of_its_own_sources(tmp_path):
    write(
        tmp_path,
        {
            "theirs/python/simt/__init__.py": "",
            "build/meson-info/meson-info.json": json.dumps(
                {"directories": {"source": str(tmp_path / "theirs")}}
            ),
            "build/src/binding/_core.so": "",
        },
    )
    load("link_core").main(str(tmp_path / "build"), tree=True)
    package = tmp_path / "build" / "python" / "simt"
    assert os.readlink(package / "__init__.py") == str(
        tmp_path / "theirs" / "python" / "simt" / "__init__.py"
    )
    assert os.readlink(package / "_core.so") == str(tmp_path / "build/src/binding/_core.so")


IN_TURNS = """
import json, sys
sys.path.insert(0, {bench!r})
from turns import slices, turn
for i in range(slices(1)[0]):
    turn()
    open({log!r}, "a").write({name!r})
    if {name!r} == "c":
        raise ValueError("no more")
print(json.dumps({{"seconds": [{name!r}]}}))
"""


def test_the_slices_of_two_programs_run_in_turns(tmp_path, monkeypatch):
    bench = os.path.join(ROOT, "bench")
    monkeypatch.syspath_prepend(bench)
    lockstep = importlib.import_module("lockstep")
    log = str(tmp_path / "log")

    def run(*names):
        texts = {name: IN_TURNS.format(bench=bench, log=log, name=name) for name in names}
        env = dict(os.environ)
        return lockstep.run_in_turns(
            {n: ([sys.executable, "-c", t], env) for n, t in texts.items()}
        )

    assert run("a", "b") == {"a": ["a"], "b": ["b"]}
    assert (tmp_path / "log").read_text() == "baabbaab"
    with pytest.raises(subprocess.CalledProcessError) as e:
        run("a", "c")
    assert "ValueError: no more" in e.value.stderr
