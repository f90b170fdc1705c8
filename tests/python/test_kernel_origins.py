"""Kernels from wherever Python lets one write a function, as programs do."""

import code
import doctest
import functools
import importlib
import linecache
import pickle
import subprocess
import sys
import textwrap
import threading
import types
import zipfile

import numpy as np
import pytest
from numba_source import load
from simt.numba import cuda
from simt.numba.core.errors import TypingError


def run_file(path, content):
    """The names of a source file given as bytes, run as Python runs it."""
    path.write_bytes(content)
    linecache.checkcache(str(path))
    names = {"__name__": "origin", "__file__": str(path), "cuda": cuda, "np": np}
    exec(compile(content, str(path), "exec"), names)
    return names


def result(kernel, *values):
    """out[0] of kernel(out, *values)."""
    out = np.zeros(1)
    kernel[1, 1](out, *values)
    return out[0]


SIMPLE = "@cuda.jit\ndef kernel(out, x):\n    # café\n    out[0] = x + 1\n"


def made(text, name="kernel", **names):
    """exec's namespace's function; the caller holds the text."""
    space = {"cuda": cuda, **names}
    exec(text, space)
    return space[name]


def test_exec_of_a_text_at_hand():
    """In a constant, a variable, a list, a global; of exec's caller or of its callers; indented."""
    assert result(made(SIMPLE), 1) == 2
    exec("@cuda.jit\ndef constant(out, x):\n    out[0] = x + 7\n", globals())
    assert result(globals().pop("constant"), 1) == 8
    parts = [f"@cuda.jit\ndef kernel(out, x):\n    out[0] = x * {k}\n" for k in range(3)]
    kernels = [made(text) for text in parts]
    assert [result(kernel, 5) for kernel in kernels] == [0, 5, 10]
    options = {"text": b"@cuda.jit\ndef kernel(out, x):\n    out[0] = x - 1\n"}
    assert result(made(options["text"]), 1) == 0
    indented = """
        @cuda.jit
        def kernel(out, x):
            out[0] = x + 11
    """
    space = {"cuda": cuda}
    exec(textwrap.dedent(indented), space)
    assert result(space["kernel"], 1) == 12
    assert result(cuda.jit(eval("lambda out, x: out.fill(x)".replace("fill", "fill"))), 3) == 3


def test_compile_with_a_name_of_no_file():
    text = "\r\n@cuda.jit\r\ndef kernel(out, x):\r\n    out[0] = x + 4\r\n"
    space = {"cuda": cuda}
    exec(compile(text, "made up.py", "exec"), space)
    assert result(space["kernel"], 1) == 5


def test_functions_of_a_text_that_was_at_hand():
    """Their kernel was decorated while exec ran; later nobody has the text."""

    def make():
        lines = ["def inc(x):", "    return x + 100", "@cuda.jit", "def kernel(out, x):"]
        text = "\n".join([*lines, "    out[0] = inc(x)", ""])
        return made(text)

    kernel = make()
    assert result(kernel, 1) == 101
    copy = pickle.loads(pickle.dumps(kernel))
    assert result(copy, 2) == 102


def test_a_text_that_is_not_the_codes():
    """Of texts with such a function only what compiles to the code is taken."""
    text = "@cuda.jit\ndef kernel(out, x):\n    out[0] = x + {}\n"
    space = {"cuda": cuda}
    exec(text.format(3), space)
    near = [text.format(k) for k in range(3)]
    with pytest.raises(OSError, match=r"(?s)no source text for 'kernel'.*linecache\.cache"):
        result(space["kernel"], 1)
    assert result(made(near[2]), 1) == 3


class Generator:
    """Writes a kernel, and holds its text in an attribute."""

    def __init__(self, k):
        self.text = f"@cuda.jit\ndef kernel(out, x):\n    out[0] = x ** {k}\n"

    def compile(self):
        space = {"cuda": cuda}
        exec(self.text, space)
        return space["kernel"]


def test_a_text_in_an_attribute():
    assert [result(Generator(k).compile(), 3) for k in (2, 3)] == [9, 27]


def test_njit_in_a_text():
    text = "@njit\ndef twice(x):\n    return 2 * x\n"
    from simt.numba import njit

    twice = made(text, "twice", njit=njit)
    del text
    kernel = made("@cuda.jit\ndef kernel(out, x):\n    out[0] = twice(x)\n", twice=twice)
    assert result(kernel, 4) == 8


RUN = """
import numpy as np
from simt.numba import cuda
def inc(x): return x + 1
@cuda.jit
def kernel(a):
    a[cuda.grid(1)] = inc(5)
a = np.zeros(2)
kernel[1, 2](a)
print(a.sum())
"""


@pytest.mark.parametrize("options", [["-c"], ["-Bc"], ["-W", "ignore", "-X", "dev", "-uc"]])
def test_python_c(options):
    done = subprocess.run([sys.executable, *options, RUN], capture_output=True, text=True)
    assert done.stdout == "12.0\n", done.stderr


def test_python_of_a_redirected_file(tmp_path):
    (tmp_path / "program").write_text(RUN)
    with open(tmp_path / "program") as file:
        done = subprocess.run([sys.executable], stdin=file, capture_output=True, text=True)
    assert done.stdout == "12.0\n", done.stderr


def test_code_interact():
    """The console of the library holds the lines of a statement while it runs."""
    console, lines = code.InteractiveConsole(), RUN.strip().splitlines()
    for line in [*lines[:2], "@cuda.jit(device=True)", lines[2], "", *lines[3:6], ""]:
        console.push(line)
    del lines
    a = np.zeros(2)
    console.locals["kernel"][1, 2](a)
    assert a.tolist() == [6, 6]


class History:
    """As the module readline: the lines that were typed."""

    def __init__(self, text):
        self.lines = text.strip().splitlines()

    def get_current_history_length(self):
        return len(self.lines)

    def get_history_item(self, i):
        return self.lines[i - 1]


def test_what_was_typed(monkeypatch):
    """Statements of the interpreter's own prompt: each begins with line 1; the newest counts."""
    typed = ["def inc(x): return x + 1", "@cuda.jit\ndef kernel(a):\n    a[cuda.grid(1)] = inc({})"]
    history = "\n".join([*typed, "0", *typed, "kernel"]).format(7, 5)
    monkeypatch.setitem(sys.modules, "readline", History(history))
    space = {"cuda": cuda}
    for statement in typed:
        exec(compile(statement.format(5) + "\n", "<stdin>", "single"), space)
    del typed, history, statement
    a = np.zeros(2)
    space["kernel"][1, 2](a)
    assert a.tolist() == [6, 6]


def test_exec_in_a_namespace_without_a_name():
    """Its classes say that they are of builtins."""
    source = textwrap.dedent("""
        class Limits:
            LOW, HIGH = 2, 5

        def clamp(x):
            return min(max(x, Limits.LOW), Limits.HIGH)

        @cuda.jit
        def kernel(out, x):
            out[0] = clamp(x)
    """)
    linecache.cache["<nameless>"] = (len(source), None, source.splitlines(True), "<nameless>")
    names = {"cuda": cuda}
    exec(compile(source, "<nameless>", "exec"), names)
    assert names["Limits"].__module__ == "builtins"
    assert [result(names["kernel"], x) for x in (1, 3, 9)] == [2, 3, 5]


def doctested():
    """
    >>> import numpy as np
    >>> from simt.numba import cuda
    >>> @cuda.jit
    ... def kernel(out, x):
    ...     '''Adds
    ... one.'''
    ...     out[0] = x + 1
    >>> out = np.zeros(1)
    >>> kernel[1, 1](out, 4)
    >>> float(out[0])
    5.0
    >>> f = [
    ...     lambda x: x * 3,
    ... ]
    >>> @cuda.jit
    ... def other(out, x): out[0] = g(x)
    >>> g = f[0]; other[1, 1](out, 4); float(out[0])
    12.0
    """


def test_doctest():
    test = doctest.DocTestFinder().find(doctested, "doctested", globs={})[0]
    assert doctest.DocTestRunner().run(test) == (0, len(test.examples))


def test_modules_in_a_zip_file(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "lib.zip", "w") as archive:
        archive.writestr("zipped_kernels.py", "from simt.numba import cuda\n" + SIMPLE)
    monkeypatch.syspath_prepend(str(tmp_path / "lib.zip"))
    module = importlib.import_module("zipped_kernels")
    try:
        assert result(module.kernel, 2) == 3
    finally:
        del sys.modules["zipped_kernels"]


def test_imported_modules_and_their_bytecode_only(tmp_path, monkeypatch):
    source = "from simt.numba import cuda\n" + SIMPLE.replace("1", "9")
    (tmp_path / "plain_kernels.py").write_text(source)
    del source  # a text at hand would be found
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("plain_kernels")
    (tmp_path / "plain_kernels.py").unlink()
    try:
        linecache.checkcache(module.__file__)
        with pytest.raises(OSError, match=r"no source text .*plain_kernels\.py, line 2"):
            result(module.kernel, 2)
    finally:
        del sys.modules["plain_kernels"]


ENCODINGS = {
    "latin-1": b"# -*- coding: latin-1 -*-\nname = '\xe9'\n",
    "cp1252": b"#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\nname = '\x80'\n",
    "gbk": "# coding: gbk\nname = '内核'\n".encode("gbk"),
    "utf-8-sig": "name = '\ufeff'\n".encode("utf-8-sig"),
}


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_encodings_and_line_ends(tmp_path, encoding, newline):
    kernel = "\nif 1:\n" + textwrap.indent(SIMPLE, "\t") + "f = [\n  lambda x: x,\n]\n"
    head = ENCODINGS[encoding]
    content = head + kernel.encode(encoding.removesuffix("-sig"))
    names = run_file(tmp_path / "other.py", content.replace(b"\n", newline.encode()))
    assert result(names["kernel"], 1) == 2
    if encoding != "gbk":  # é
        with pytest.raises(TypeError, match="é"):
            bad = head + SIMPLE.replace("x + 1", "x + 'é'").encode(encoding.removesuffix("-sig"))
            result(run_file(tmp_path / "bad.py", bad)["kernel"], 1)


def test_decorators():
    seen = []

    def note(function):
        seen.append(function)
        return function

    def settings(**options):
        return functools.partial(cuda.jit, **options)

    device = functools.partial(cuda.jit, device=True)

    @device
    def double(x):
        return 2 * x

    @settings(fastmath=True, debug=False)
    @note
    def inner(out, x):
        out[0] = double(x)

    @note
    @cuda.jit()
    @note
    def outer(out, x):
        out[0] = double(x) + 1

    @functools.partial(
        cuda.jit,
        fma=False,
    )
    def last(out, x):
        out[0] = double(x) + 2

    assert (result(inner, 4), result(outer, 4), result(last, 4)) == (8, 9, 10)
    assert isinstance(seen[0], types.FunctionType) and seen[2] is outer
    with pytest.raises(TypeError, match="is a kernel or device function already"):
        cuda.jit(outer)

    @functools.wraps(seen[0])
    def wrapper(*args, **kwargs):
        return seen[0](*args, **kwargs)

    with pytest.raises((TypingError, TypeError)):
        result(cuda.jit(wrapper), 1)
    with pytest.raises(TypeError, match="takes a Python function"):
        cuda.jit(functools.partial(seen[0], 1))


class Kernels:
    """Kernels in the body of a class."""

    SCALE = 3
    __hidden = 5

    @staticmethod
    @cuda.jit
    def static(out, x):
        out[0] = x * Kernels.SCALE

    @cuda.jit
    def plain(out, x):
        out[0] = x + Kernels.SCALE

    @cuda.jit
    def private(out, x):
        out[0] = x + Kernels.__hidden

    class Inner:
        @staticmethod
        @cuda.jit(device=True)
        def helper(x):
            return x - 1

    @cuda.jit
    def nested(out, x):
        out[0] = Kernels.Inner.helper(x)

    def launch(self, x):
        return result(self.plain, x)

    def closure(self, factor):
        scale = self.SCALE

        @cuda.jit
        def kernel(out, x):
            out[0] = x * factor * scale

        return kernel


def test_kernels_of_classes():
    assert result(Kernels.static, 2) == 6
    assert result(Kernels().static, 2) == 6
    assert Kernels().launch(2) == 5
    assert result(Kernels.private, 2) == 7
    assert result(Kernels.nested, 2) == 1
    assert result(Kernels().closure(7), 2) == 42
    with pytest.raises(TypeError):
        cuda.jit(staticmethod(Kernels.Inner.helper.py_func))


def test_closures_of_a_loop():
    kernels = []
    for factor in (1, 2, 3):

        def make(factor=factor, bias=factor * 10):
            @cuda.jit
            def kernel(out, x, more=bias):
                out[0] = x * factor + more

            return kernel

        kernels.append(make())
    assert [result(k, 100) for k in kernels] == [110, 220, 330]
    late = [cuda.jit(device=True)(lambda x: x * factor) for factor in (4, 5)]

    @cuda.jit
    def both(out, x):
        out[0] = late_0(x) + late_1(x)

    late_0, late_1 = late
    assert result(both, 1) == 10  # both lambdas see the last factor


def test_signatures_of_all_sorts():
    @cuda.jit
    def kernel(
        out: "np.ndarray",
        x: "anything at all",  # noqa: F722
        y: (float, "any") = 2.5,
        /,
        z: int = 4,
    ) -> None:
        """Text.

        At the margin: '''.
        """
        total: float = x + y  # a comment
        part: np.float32  # noqa: F842
        out[0] = total + z

    assert result(kernel, 1) == 7.5
    assert result(kernel, 1, 10.0) == 15


def test_names_that_are_no_ascii(tmp_path):
    path = tmp_path / 'naïve "quoted" 名.py'
    source = "@cuda.jit\ndef größe(out, x):\n    für = x * 2\n    out[für] = für\n"
    kernel = run_file(path, source.encode())["größe"]
    assert result(kernel, 0) == 0
    for threads in (1, 2, 3):  # each block size names the same
        with pytest.raises(
            IndexError, match=r'(?s)kernel größe: .*naïve "quoted" 名\.py:4'
        ) as error:
            kernel[1, threads](np.zeros(1), 4)
        assert "out[für] = für" in str(error.value)


def test_many_parameters_and_block_sizes():
    """More than 256 values of one list, for a block size after the first."""
    arrays = 24
    names = [f"a{i}" for i in range(arrays)]
    text = ["@cuda.jit", f"def kernel(out, {', '.join(names)}):"]
    text += [
        "    i = cuda.threadIdx.x",
        "    out[i] = " + " + ".join(f"{n}[0, 0, 0, 0, 0, 0]" for n in names),
    ]
    kernel = load("\n".join(text) + "\n", cuda=cuda)["kernel"]
    given = [np.ones((1,) * 6) for _ in names]
    for threads in (1, 2):
        out = np.zeros(threads)
        kernel[1, threads](out, *given)
        assert out.tolist() == [arrays] * threads


def test_many_carried_variables_and_block_sizes():
    count = 300
    text = "@cuda.jit\ndef kernel(out, n):\n"
    text += "".join(f"    v{i} = {i}\n" for i in range(count)) + "    for _ in range(n):\n"
    text += "".join(f"        v{i} += {i % 3}\n" for i in range(count))
    text += "    out[0] = " + " + ".join(f"v{i}" for i in range(0, count, 2)) + "\n"
    kernel = load(text, cuda=cuda)["kernel"]
    expected = sum(i + 4 * (i % 3) for i in range(0, count, 2))
    for threads in (1, 2):
        out = np.zeros(1)
        kernel[1, threads](out, 4)
        assert out[0] == expected


def elif_chain(n):
    text = "@cuda.jit\ndef kernel(out, x):\n    if x == -1: out[0] = -1\n"
    text += "".join(f"    elif x == {i}: out[0] = {i} * 2\n" for i in range(n))
    return load(text, cuda=cuda)["kernel"]


def test_deep_sources_do_not_exhaust_the_stack():
    kernel, failures = elif_chain(450), []

    def small_stack():
        try:
            for threads in (1, 2):
                out = np.zeros(1)
                kernel[1, threads](out, 400)
                assert out[0] == 800
            with pytest.raises(NotImplementedError, match="nested 5.. deep, more than the limit"):
                result(elif_chain(550), 1)
            with pytest.raises((RecursionError, TypingError)):
                result(elif_chain(700), 1)
        except BaseException as error:
            failures.append(error)

    before = threading.stack_size(8 << 20)
    try:
        thread = threading.Thread(target=small_stack)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert not failures, failures
    for expression in ("-" * 400 + "x", " + ".join(["x"] * 400), "x" + ".real" * 400):
        text = f"@cuda.jit\ndef kernel(out, x):\n    out[0] = {expression}\n"
        with pytest.raises(TypeError, match="nested more than"):
            result(load(text, cuda=cuda)["kernel"], 1)


@pytest.mark.parametrize("way", ["-c", "-", "file"])
def test_programs_given_to_simt_run(tmp_path, way):
    program = "from numba import cuda\nimport numpy as np\n" + SIMPLE
    program += "out = np.zeros(1)\nkernel[1, 1](out, 2)\nprint(out[0])\n"
    (tmp_path / "program.py").write_text(program)
    args = {"-c": ["-c", program], "-": ["-"], "file": [str(tmp_path / "program.py")]}[way]
    done = subprocess.run(
        [sys.executable, "-m", "simt", "run", "-q", *args],
        input=program if way == "-" else None,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "3.0\n", done.stderr


@pytest.mark.skipif(sys.version_info < (3, 13), reason="Python 3.13 and later keep the lines")
@pytest.mark.parametrize("way", ["-c", "-i"])
def test_programs_given_to_python_itself(way):
    lines = ["import numpy as np", "from simt.numba import cuda", *SIMPLE.splitlines(), ""]
    lines += ["out = np.zeros(1)", "kernel[1, 1](out, 2)", "print(out[0])"]
    lines += ["try: kernel[1, 1](np.zeros(0), 2)", "except IndexError as e: print(e)", "", ""]
    program = "\n".join(lines)
    done = subprocess.run(
        [sys.executable, *([way, program] if way == "-c" else [way])],
        input=program if way == "-i" else None,
        capture_output=True,
        text=True,
    )
    assert "3.0\n" in done.stdout, done.stderr
    assert "    out[0] = x + 1" in done.stdout
