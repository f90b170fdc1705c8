"""Collects what the compiler makes of the test suite's kernels, and compares two such collections.

    PYTHONPATH=python python tools/ir_dumps.py collect FOLDER [TEST FILE...]
    python tools/ir_dumps.py compare BEFORE AFTER [--no-positions] [--lines N]

collect runs tests in one process (without TEST FILE, quick files that compile much) and writes, a
file for each file of tests, every kernel of a test: the IR before and after the passes and the back
end's listing, as SIMT_DUMP shows them; of printed IR that a test runs itself, the listing. Every
collection of one build is the same text: kernels compiled before are forgotten before each test,
random tests draw the same each time, addresses and folders are replaced by words.

compare tells which kernels were added, went missing or changed, with the first lines that differ;
what only came from another test is no difference. It ends with 1 when there is a difference. A
change that should not change what is compiled is checked with both; --no-positions leaves out
source positions, for when lines of tests have moved.
"""

import argparse
import gzip
import os
import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Quick files that compile much and the same each time: no threads, processes or clocks in them.
CHOSEN = """
    fusion grad kernel_parts kernel_programs kernel_students kernel_variables
    numba_arrays numba_closures numba_complex numba_faults numba_library numba_math numba_meet
    numba_programs numba_records numba_scalars numba_sync numba_ufuncs numba_values numba_vectors
    numba_warp products reduce_rows sort torch_math transforms vm_control vm_ops vm_rows vm_spread
    vm_warp
""".split()
HEAD = re.compile(r"^; simt: (\S+)(.*)$", re.M)


# ---- collecting ----


def start(listings):
    """The runtime of this process writes its stages to stderr; children of tests do not."""
    os.environ["SIMT_DUMP"] = "opt,asm"
    import simt.cupy as cp
    from simt import _core

    cp.zeros(1).sum().item()
    del os.environ["SIMT_DUMP"]
    run = _core.ir_run

    def listed(text, grid, block, *args, **named):
        if named.get("optimize", True) and not named.get("contract"):
            try:
                listings.append(_core.ir_listing(text, block))
            except Exception as error:  # the same that the run below raises
                listings.append(f"{type(error).__name__}: {error}\n")
        return run(text, grid, block, *args, **named)

    _core.ir_run = listed
    return _core.heap_forget


def only_listing(text):
    """Without what others wrote to stderr after it."""
    head, _, rest = text.partition("\n")
    lines = re.match(r"(?: *\d+  .*\n)*", rest).group()
    return f"{head}\n{lines}"


def only_function(text):
    end = text.find("\n}\n")
    return text if end < 0 else text[: end + 3]


def kernels(shown):
    """The kernels in what SIMT_DUMP showed: before the passes, after them, the listing."""
    marks = list(HEAD.finditer(shown))
    found = []
    ends = [mark.start() for mark in marks[1:]] + [len(shown)] * bool(marks)
    for mark, end in zip(marks, ends, strict=True):
        stage, rest = mark.groups()
        text = shown[mark.end() + 1 : end]
        if stage == "ir":
            function = only_function(text)
            found.append(["before:\n" + function, "after:\n" + function, ""])
        elif stage == "vm" and found:
            found[-1][2] = "listing:\n" + only_listing(text)
        elif found and "unchanged" not in rest and stage != "verify":
            found[-1][1] = "after:\n" + only_function(text)
    return ["".join(parts) for parts in found]


def normal(text, folder):
    """Without addresses and what is this run's or this machine's."""
    text = text.replace(folder, "TEMPORARY").replace(str(ROOT), "ROOT")
    text = re.sub(r"/tmp/[\w./-]+", "TEMPORARY", text)
    return re.sub(r"\b0x[0-9a-f]{8,}\b", "ADDRESS", text)


class Collector:
    """The plugin of pytest."""

    def __init__(self, out, folder):
        self.out, self.folder = out, folder
        self.listings, self.tests = [], {}
        self.sink = tempfile.TemporaryFile("w+b")
        self.kept = os.dup(2)
        os.dup2(self.sink.fileno(), 2)
        self.forget = start(self.listings)

    def take(self):
        os.lseek(self.sink.fileno(), 0, os.SEEK_SET)
        shown = self.sink.read().decode("utf-8", "replace")
        self.sink.seek(0)
        self.sink.truncate()
        return shown

    def pytest_runtest_setup(self, item):
        self.forget()
        self.take()
        self.listings.clear()

    def pytest_runtest_teardown(self, item):
        found = kernels(self.take()) + ["listing:\n" + text for text in self.listings]
        found = sorted({normal(text, self.folder) for text in found})
        if found:
            self.tests[item.nodeid] = found

    def pytest_sessionfinish(self):
        os.dup2(self.kept, 2)

    def write(self):
        self.out.mkdir(parents=True, exist_ok=True)
        for old in self.out.glob("*.txt.gz"):
            old.unlink()
        files = {}
        for test in sorted(self.tests):
            lines = files.setdefault(test.partition("::")[0], [])
            for number, text in enumerate(self.tests[test]):
                lines.append(f"==== {test} {number}\n{text}")
        for name, blocks in files.items():
            path = self.out / (name.replace("/", "_").removesuffix(".py") + ".txt.gz")
            path.write_bytes(gzip.compress("".join(blocks).encode(), 6, mtime=0))


def collect(out, files):
    if os.environ.get("PYTHONHASHSEED") != "0":  # order of sets
        os.execve(
            sys.executable, [sys.executable, *sys.argv], {**os.environ, "PYTHONHASHSEED": "0"}
        )
    import hypothesis
    import pytest

    hypothesis.settings.register_profile("same", derandomize=True, database=None, deadline=None)
    hypothesis.settings.load_profile("same")
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT / "tests/python"))
    with tempfile.TemporaryDirectory() as folder:
        collector = Collector(out, folder)
        options = ["-q", "-p", "no:cacheprovider", "--capture=sys", "--tb=line"]
        options += ["-m", "not slow and not exhaustive", f"--basetemp={folder}/tests"]
        code = pytest.main(
            [*options, *(files or [f"tests/python/test_{name}.py" for name in CHOSEN])],
            plugins=[collector],
        )
        collector.write()
    count = sum(map(len, collector.tests.values()))
    print(f"{out}: {count} kernels of {len(collector.tests)} tests")
    return int(code)


# ---- comparing ----


def read(folder, positions):
    """{test: [text of a kernel]}"""
    found = {}
    for path in sorted(Path(folder).glob("*.txt.gz")):
        whole = gzip.decompress(path.read_bytes()).decode()
        for block in re.split(r"^==== ", whole, flags=re.M)[1:]:
            head, _, text = block.partition("\n")
            if not positions:
                text = re.sub(r" @\d+:\d+|; line \d+( of call \d+)?$", "", text, flags=re.M)
            found.setdefault(head.rpartition(" ")[0], []).append(text)
    return found


def name_of(text):
    match = re.search(r"^kernel @(\S+?)\(|^(\w[^,\n]*), ", text, re.M)
    return (match.group(1) or match.group(2)) if match else "a kernel"


def first_difference(a, b, count):
    """A few lines from where the texts part."""
    a, b = a.split("\n"), b.split("\n")
    at = next(
        (i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b))
    )
    return "\n".join(
        [f"      line {at + 1}"]
        + [f"    - {line}" for line in a[at : at + count]]
        + [f"    + {line}" for line in b[at : at + count]]
    )


def pair(gone, come):
    """(before, after) of one kernel each; what has no partner stays in the lists."""
    pairs = []
    for part in (lambda t: t.partition("after:")[0], name_of):  # by the IR before, then by name
        for text in list(gone):
            partner = next((c for c in come if part(c) == part(text)), None)
            if partner is not None:
                pairs.append((text, partner))
                gone.remove(text)
                come.remove(partner)
    return pairs


def compare(before, after, positions, count):
    a, b = read(before, positions), read(after, positions)
    known_a = {text for texts in a.values() for text in texts}
    known_b = {text for texts in b.values() for text in texts}
    totals = {"changed": 0, "missing": 0, "added": 0}
    for test in sorted(a.keys() | b.keys()):
        gone = [t for t in a.get(test, []) if t not in known_b]
        come = [t for t in b.get(test, []) if t not in known_a]
        pairs = pair(gone, come)
        for old, new in pairs:
            print(f"changed: {test}: {name_of(old)}\n{first_difference(old, new, count)}")
        for word, texts in (("missing", gone), ("added", come)):
            for text in texts:
                print(f"{word}: {test}: {name_of(text)}")
            totals[word] += len(texts)
        totals["changed"] += len(pairs)
    counts = ", ".join(f"{n} {word}" for word, n in totals.items())
    print(f"{len(known_a)} and {len(known_b)} different kernels: {counts}")
    return 1 if any(totals.values()) else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("collect")
    one.add_argument("out", type=Path)
    one.add_argument("tests", nargs="*")
    two = commands.add_parser("compare")
    two.add_argument("before", type=Path)
    two.add_argument("after", type=Path)
    two.add_argument("--no-positions", action="store_true")
    two.add_argument("--lines", type=int, default=3)
    args = parser.parse_args()
    if args.command == "collect":
        return collect(args.out.resolve(), args.tests)
    return compare(args.before, args.after, not args.no_positions, args.lines)


if __name__ == "__main__":
    sys.exit(main())
