"""Golden tests of the facts of kernels (src/kernel/facts.h): each file of facts/ holds printed IR
and what SIMT_DUMP=facts says of it.

    // threads: 32 1 1
    kernel ...
    // expect:
    facts of ...

python tests/golden/test_facts.py --rebase writes what comes out today into the files.
"""

import pathlib
import re
import sys

import pytest
from simt import _core

FILES = sorted((pathlib.Path(__file__).parent / "facts").glob("*.ir"))
# What must be seen in some file: each kind of fact, each reason.
KINDS = """
    linear|steps 0|steps of run time|varies|splits|calm|not calm|escapes|nested|spins|parts|0..31
    threads run together|a loop may wait|barriers on both sides|lanes may not meet
    small grid|local memory
    all threads meet|those of the mask meet|those that gave the mask meet|may not meet
    blocks do not matter|matter: barrier|special ctaid.y|alloc
"""


def facts(text):
    """The first line, the kernel, and what is said of it."""
    source, _, expected = text.partition("// expect:\n")
    head, _, source = source.partition("\n")
    block = tuple(int(n) for n in head.removeprefix("// threads:").split())
    return head, _core.ir_check(source), expected, _core.ir_facts(source, block)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_facts(path):
    _, source, expected, said = facts(path.read_text())
    assert said == expected
    assert source in path.read_text(), "the kernel is as ir_print writes it"


def test_each_kind_has_an_example():
    said = "".join(facts(path.read_text())[3] for path in FILES)
    missing = [k.strip() for k in KINDS.replace("\n", "|").split("|") if k.strip() not in said]
    assert not missing


def test_the_page_has_the_words_and_the_example():
    root = pathlib.Path(__file__).resolve().parents[2]
    page = (root / "docs/facts.md").read_text(encoding="utf-8")
    header = (root / "src/kernel/facts.h").read_text(encoding="utf-8")
    glossary = header[header.index("The words") : header.index("*/")]
    words = [w for line in glossary.splitlines()[1:] if (w := line[5:20].strip())]
    assert len(words) >= 20
    assert re.findall(r"^\| (.+?) \| [^|]+ \|$", page, re.M)[1:] == words
    _, source, _, said = facts((FILES[0].parent / "meetings.ir").read_text())
    assert source in page and said in page


def rebase():
    """Rewrites the expectations."""
    for path in FILES:
        head, source, _, said = facts(path.read_text())
        path.write_text(f"{head}\n{source}// expect:\n{said}")


if __name__ == "__main__" and "--rebase" in sys.argv:
    rebase()
