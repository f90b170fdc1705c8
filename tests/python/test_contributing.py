"""CONTRIBUTING.md tells the truth: its files, names and targets exist, its lists are complete."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
QUOTED = sorted(set(re.findall(r"`([^`\n]+)`", TEXT)))
FILE = re.compile(r"[\w.-]+(/[\w.-]+)*(/|\.(c|h|def|py|md|build))")


def section(title):
    return re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", TEXT, re.M | re.S).group(1)


def sources():
    for folder in ("src", "python/simt", "tools", "tests"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".c", ".h", ".def", ".py", ".sh", ".build"):
                yield path


@pytest.fixture(scope="module")
def words():
    """Every identifier of the sources, and of the Makefile."""
    found = set(re.findall(r"[\w-]+", (ROOT / "Makefile").read_text()))
    for path in sources():
        if path != Path(__file__):
            found.update(re.findall(r"\w+", path.read_text(encoding="utf-8")))
    return found


def test_files_exist():
    named = [q for q in QUOTED if FILE.fullmatch(q)]
    assert len(named) > 25
    places = (ROOT, ROOT / "src")  # include paths are below src
    missing = {q for q in named if not any((p / q).exists() for p in places)}
    assert missing <= {"meson.build", "Python.h"}


def test_names_exist(words):
    named = [q for q in QUOTED if re.fullmatch(r"[A-Za-z_]+\w*", q)]
    made = {"layer_verb_noun"}
    assert len(named) > 10
    assert [q for q in named if q not in words | made] == []


def test_targets_exist():
    makefile = (ROOT / "Makefile").read_text()
    targets = {t for line in re.findall(r"^([\w -]+):(?!=)", makefile, re.M) for t in line.split()}
    named = set(re.findall(r"\bmake ([a-z][\w-]*)", TEXT))
    assert len(named) >= 7 and named <= targets


def test_a_type_is_named_where_the_list_says():
    listed = set(re.findall(r"`(src/[\w/]+\.c)`", section("Add an element type")))
    naming = {
        str(path.relative_to(ROOT))
        for path in sources()
        if path.suffix == ".c" and "DT_BF16" in path.read_text(encoding="utf-8")
    }
    assert listed == naming


def naming(word):
    """The files of src and tests with this name of a function, and of operations called so."""
    name = re.compile(rf"(?i)(?<![a-z]){word}(?![a-z0-9])")
    paths = [*sources(), *(ROOT / "python/simt").rglob("*.py")]
    return {str(p.relative_to(ROOT)) for p in paths if name.search(p.read_text(encoding="utf-8"))}


def test_files_that_a_device_function_touches():
    text = section("Add a device function")
    listed = set(re.findall(r"`((?:src|tests)/[\w/]+\.(?:c|h|def|py))`", text))
    found = {f for f in naming("cospi") if f.startswith(("src/", "tests/"))}
    found -= {"src/frontend/python/intrinsics.def"}  # kernels may call it, arrays have no such row
    found -= {f for f in found if re.match(r"tests/python/test_", f)}
    assert found == listed - {"src/graph/array_ops.def"} and len(listed) == 10


def test_files_that_a_function_of_numba_touches():
    text = section("Add a function of numba.cuda")
    listed = set(re.findall(r"`((?:src|python)/[\w/]+\.(?:c|h|def|py))`", text))
    found = {f for f in naming("lanemask_lt") if re.match("src|python", f)}
    assert listed <= found and len(listed) == 2
    assert all(re.search(r"/intrinsics_\w+\.[ch]$", f) for f in found - listed)


def test_files_that_a_back_end_touches():
    """Its folder and its row: outside of them only tests name it; the build reads the row."""
    rows = re.findall(
        r"^BACKEND\((\w+), (\w+), ", (ROOT / "src/backend/backends.def").read_text(), re.M
    )
    folders = {p.name for p in (ROOT / "src/backend").iterdir() if p.is_dir()}
    assert {name for name, kind in rows} == folders
    for name, _ in rows:
        files = {
            str(p.relative_to(ROOT))
            for p in sources()
            if re.search(
                rf"\bbackend_{name}\b|\bbackend/{name}/|'{name}'", p.read_text(encoding="utf-8")
            )
        }
        own = re.compile(rf"src/backend/{name}/|src/binding/common/\w+_test\.c|tests/|tools/")
        assert [f for f in files if not own.match(f)] == []
    listed = set(re.findall(r"`(src/\w+/[\w/]+\.\w+)`", section("Add a back end")))
    assert listed - {
        "src/backend/backend.h",
        "src/kernel/facts.h",
        "src/kernel/wishes.h",
        "src/ir/ops.def",
    } == {"src/backend/backends.def"}


def test_names_of_a_row_are_in_the_faces():
    """What step 1 says: the row alone gives the functions."""
    from simt import _core, cupy, torch

    names = _core.table_names()
    assert len(names) > 80
    assert all(getattr(cupy, name) is getattr(_core, target) for name, target in names.items())
    table = re.sub(r"/\*.*?\*/", "", (ROOT / "src/graph/array_ops.def").read_text(), flags=re.S)
    rows = re.findall(r"\b(UNARY|TEST|BINARY|BINARY_ONLY|REDUCE), ([\w, ]+)\)$", table, re.M)
    assert len(rows) > 60
    for kind, names in rows:
        for name in names.split(", "):
            assert hasattr(torch, name) and hasattr(torch.Tensor, name)
            assert hasattr(torch.Tensor, name + "_") or kind in ("TEST", "BINARY_ONLY", "REDUCE")
