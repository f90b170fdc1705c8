"""From a Python function to its tree, compared with CPython's own ast; names; wrong sources."""

import ast
import doctest
import enum
import importlib
import linecache
import math
import operator
import os
import re
import subprocess
import sys
import textwrap
import types
from collections import namedtuple

import numpy as np
import pytest
from simt import _core

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
AST_DEF = os.path.join(ROOT, "src", "frontend", "python", "ast.def")

# --- the reference: the same printed form, made from CPython's ast by a walk of our own -----------


def _rows():
    with open(AST_DEF) as f:
        for line in re.findall(r"^NODE\((.*)\)$", f.read(), re.M):
            fields = [part.strip().strip('"') for part in line.split(",")]
            yield fields[1], fields[2:5], fields[5:8], fields[8]


ROWS = {cls: (singles, lists, name) for cls, singles, lists, name in _rows()}


def _value(value):
    if value is None or isinstance(value, bool):
        return str(value)
    if isinstance(value, int):
        if -(2**63) <= value < 2**63:
            return f"int:{value}"
        return f"uint:{value}" if 0 <= value < 2**64 else "big"
    if isinstance(value, float):
        return f"float:{value:.17g}"
    if isinstance(value, complex):
        return f"complex:{value.real:.17g},{value.imag:.17g}"
    if isinstance(value, str):
        try:
            return "str:" + value.encode().hex()
        except UnicodeEncodeError:
            return "other"
    if isinstance(value, bytes):
        return "bytes:" + value.hex()
    return "..." if value is ... else "other"


def _show(node, lines):
    if node is None:
        return "-"
    cls = type(node).__name__
    singles, lists, name = ROWS.get(cls, ([], [], None))
    text = "(" + (cls if cls in ROWS else "?")
    if hasattr(node, "lineno"):
        column = len(lines[node.lineno - 1].encode()[: node.col_offset].decode()) + 1
        end = len(lines[node.end_lineno - 1].encode()[: node.end_col_offset].decode()) + 1
        text += f"@{node.lineno}:{column}-{node.end_lineno}:{end}"
    if cls in ("BinOp", "BoolOp", "UnaryOp", "AugAssign"):
        text += " " + type(node.op).__name__
    if cls == "Compare":
        text += "".join(" " + type(op).__name__ for op in node.ops)
    if name is None:
        return text + f" {cls})"
    if name:
        text += f" {getattr(node, name) or '-'}"
    if cls == "Constant":
        text += " " + _value(node.value)
    for field in filter(None, singles):
        text += " " + _show(getattr(node, field), lines)
    for field in filter(None, lists):
        text += " [" + " ".join(_show(item, lines) for item in getattr(node, field)) + "]"
    return text + ")"


def _private(text, code):
    """With the names "__x" of a class's function as Python knows them."""
    around = code.co_qualname.split(".")[:-1]
    while around and around[-1] == "<locals>":
        del around[-2:]
    if not around:
        return text
    prefix = "_" + around[-1].lstrip("_")
    return re.sub(
        r"(\(FunctionDef@\S+ )?(?<= )__\w*[^\W_]_?(?=[ )])",
        lambda name: name[0] if name[1] else prefix + name[0],
        text,
    )


def _reference(source, functions):
    """The expected text of each function, found in the whole file's tree by line and name."""
    lines = source.split("\n")
    places = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            first = [*getattr(node, "decorator_list", []), node][0].lineno
            places.setdefault((first, getattr(node, "name", "<lambda>")), []).append(node)
    for f in functions:
        found = places[f.__code__.co_firstlineno, f.__code__.co_name]
        yield f, [_private(_show(node, lines), f.__code__) for node in found]


def _functions(module):
    seen = set()
    for holder in [module, *(v for v in vars(module).values() if isinstance(v, type))]:
        for value in vars(holder).values():
            value = getattr(value, "__func__", getattr(value, "fget", value))
            if (
                isinstance(value, types.FunctionType)
                and value.__code__.co_filename == module.__file__
                and not value.__code__.co_flags & 0x2A0  # generators, async
                and value.__name__ != "__annotate__"  # Python 3.14's own
                and value not in seen
            ):
                seen.add(value)
                yield value


@pytest.mark.parametrize(
    "name", ["textwrap", "fractions", "statistics", "difflib", "calendar", "heapq", "_pydecimal"]
)
def test_tree_is_that_of_ast(name):
    module = importlib.import_module(name)
    functions = list(_functions(module))
    assert functions
    with open(module.__file__, encoding="utf-8") as f:
        source = f.read()
    for f, expected in _reference(source, functions):
        assert _core.kernel_tree(f) in expected, f


# --- files of every kind --------------------------------------------------------------------------


def load(path, text, name=None):
    """The names that a file defines."""
    path.write_bytes(text if isinstance(text, bytes) else textwrap.dedent(text).encode())
    code = compile(path.read_bytes(), str(path), "exec")
    names = {"__name__": name or path.stem}
    exec(code, names)
    return names


def check(path, *functions, encoding="utf-8-sig"):
    with open(path, encoding=encoding) as f:
        source = f.read()
    for f, expected in _reference(source, functions):
        assert _core.kernel_tree(f) in expected


def test_decorators_closures_and_odd_layouts(tmp_path):
    path = tmp_path / "odd.py"
    names = load(
        path,
        '''
        def deco(*args, **kwargs):
            return lambda f: f

        def outer(n, m):
            arr = [n]

            @deco(
                1, 2,
            )
            @(lambda f: f)
            def k(a, b=3, *, c=(4,
          5)):
                """doc
        at the margin"""
                def unused(): return m + a
                x = a[n] + len(arr) * (1
          + 2)
                # a comment
        # and one at the margin
                return (x,
        b)

            return k, (lambda v: v + n)

        class A:
            def m(self): return self.__private
            both = [lambda: 1, lambda z:
                    z]
            if True:
                @staticmethod
                def s(x):
                \treturn x
        def one(x): return x; y = 2
        f, g, h = lambda x: x + 1, lambda x: x + 2, (
            lambda x, y=3: x * -0.0)
        π = lambda x: x  # not plain ASCII: columns are in characters
        def ü(x): return "日本", x
        def long(x):
            y = 1e300 * 1j + 123456789012345678901234567890 + 0xFFFFFFFFFFFFFFFF
            return [i for i in x if i not in y is not None] or not -x @ ~y
        ''',
    )
    k, inner = names["outer"](1, 2)
    found = [k, inner, names["A"].m, names["A"].s, *names["A"].both]
    check(path, *found, *(names[n] for n in ("one", "f", "g", "h", "π", "ü", "long")))
    assert "int:2)" in _core.kernel_tree(names["g"])
    assert "int:1)" in _core.kernel_tree(names["f"])


TEXT = "# c\ndef f(x):\n    y = 'é' + x  # é\n    return y\n\n\nz = lambda q: ('é', q)\n"


@pytest.mark.parametrize(
    "content, encoding",
    [
        (TEXT.encode().replace(b"\n", b"\r\n"), "utf-8"),
        (TEXT.encode().replace(b"\n", b"\r"), "utf-8"),
        (b"\xef\xbb\xbf" + TEXT.encode(), "utf-8-sig"),
        (b"# -*- coding: latin-1 -*-\n" + TEXT.encode("latin-1"), "latin-1"),
        (b"#!/bin/x\n# vim: set fileencoding=gbk :\n" + TEXT.encode("gbk"), "gbk"),
        (b"# coding: utf8\n" + TEXT.encode(), "utf-8"),
        (TEXT.encode().replace(b"    ", b"\t"), "utf-8"),
        (b"\x0c\n" + TEXT.encode(), "utf-8"),
    ],
    ids=["crlf", "cr", "bom", "latin-1", "gbk", "cookie", "tabs", "form feed"],
)
def test_encodings_and_line_ends(tmp_path, content, encoding):
    names = load(tmp_path / "e.py", content)
    check(tmp_path / "e.py", names["f"], names["z"], encoding=encoding)


def test_future_and_assert(tmp_path):
    text = "from __future__ import annotations\ndef f(x: no.such) -> 1:\n    assert x, 'm'\n"
    names = load(tmp_path / "f.py", text)
    check(tmp_path / "f.py", names["f"])


def test_same_tree_for_functions_of_one_code():
    def make(n):
        return lambda x: x + n

    a, b = make(1), make(2)
    assert _core.kernel_tree(a) == _core.kernel_tree(b)
    assert (_core.kernel_lookup(a, "n"), _core.kernel_lookup(b, "n")) == (
        "constant int:1",
        "constant int:2",
    )


def test_assert_in_a_module_that_pytest_rewrote():
    def kernel(x, i):
        assert x[i] > 0, "positive"
        x[i] = math.sqrt(x[i])

    assert "(Assert@" in _core.kernel_tree(kernel)


def test_functions_may_go(tmp_path):
    import gc
    import weakref

    names = load(tmp_path / "g.py", "def f(x):\n    return x + data\n")
    names["data"] = np.ones(3)
    _core.kernel_lookup(names["f"], "data")
    gone = weakref.ref(names["f"])
    del names["f"]
    gc.collect()
    assert gone() is None


# --- wrong or missing sources are errors ----------------------------------------------------------

EDITS = {
    "constant": ("x + 1", "x + 2"),
    "type of constant": ("x + 1", "x + 1.0"),
    "operator": ("x + 1", "x - 1"),
    "name": ("x + 1", "q + 1"),
    "parameter": ("def f(x)", "def f(x, y)"),
    "moved": ("def f", "\n\ndef f"),
    "gone": ("def f", "def g"),
    "broken": ("x + 1", "x +"),
    "indented": ("def f", "if 1:\n  def f"),
    "empty": ("def f(x):\n    return x + 1\n", ""),
}


@pytest.mark.parametrize("edit", EDITS)
def test_edited_file(tmp_path, edit):
    path = tmp_path / "edited.py"
    f = load(path, "def f(x):\n    return x + 1\n")["f"]
    path.write_text(path.read_text().replace(*EDITS[edit]))
    with pytest.raises((RuntimeError, OSError), match="edited.py") as info:
        _core.kernel_tree(f)
    if path.read_text():
        assert "is not what Python compiled" in str(info.value)
        assert "hint: the file has changed" in str(info.value)


def test_harmless_edits(tmp_path):
    path = tmp_path / "edited.py"
    f = load(path, "def f(x):\n    return x + 1\n")["f"]
    path.write_text("def f(x):\n    # why\n    return (x  +  1)\n")
    assert "@3:" in _core.kernel_tree(f)


def test_linecache_knows_the_old_text(tmp_path):
    path = tmp_path / "kept.py"
    f = load(path, "def f(x):\n    return x + 1\n")["f"]
    linecache.getlines(str(path))
    path.write_text("nothing\n")
    assert "int:1" in _core.kernel_tree(f)
    g = load(path, "def f(x):\n    return x + 77\n")["f"]
    assert "int:77" in _core.kernel_tree(g)


def test_wrong_lambda(tmp_path):
    path = tmp_path / "lambdas.py"
    names = load(path, "f, g = lambda x: x + 1, lambda x: x + 2\n")
    path.write_text("f, g = lambda x: x + 2, lambda x: x + 3\n")
    assert "int:2" in _core.kernel_tree(names["g"])
    with pytest.raises(RuntimeError, match="is not what Python compiled"):
        _core.kernel_tree(names["f"])


def test_no_source(monkeypatch):
    names = {}
    exec("".join(["def f(x): ", "return x"]), names)
    with pytest.raises(OSError, match="(?s)no source text for 'f'.*in a variable.*linecache.cache"):
        _core.kernel_tree(names["f"])
    monkeypatch.setenv("SIMT_LANG", "zh")
    with pytest.raises(OSError, match="(?s)no source text.*提示: "):
        _core.kernel_tree(names["f"])


def test_registered_source():
    text = "if True:\n  def f(x): return x\n"
    linecache.cache["<mine>"] = (len(text), None, text.splitlines(True), "<mine>")
    names = {}
    exec(compile(text, "<mine>", "exec"), names)
    assert _core.kernel_tree(names["f"]).startswith("(FunctionDef@2:3-2:21 f ")


def test_not_a_plain_function():
    def gen(x):
        yield x

    async def co(x):
        return x

    for value, text in ((gen, "generator"), (co, "async"), (len, "not '"), (3, "not 'int'")):
        with pytest.raises(TypeError, match=text):
            _core.kernel_tree(value)


def test_deep_nesting_is_an_error(tmp_path):
    depth = 1100
    text = "def f(x):\n    return " + "+".join(["x"] * depth) + "\n"
    try:
        f = load(tmp_path / "deep.py", text)["f"]
    except RecursionError:
        pytest.skip("this Python cannot compile it either")
    with pytest.raises((RecursionError, RuntimeError)):
        _core.kernel_tree(f)


# --- programs that are in no file -----------------------------------------------------------------

PROGRAM = """
from simt import _core
def f(x):
    return x + 41
print(_core.kernel_tree(f)[:30], _core.kernel_tree(lambda q: q)[:12])
"""


def run(*args, text=None):
    environment = {**os.environ, "PYTHONPATH": os.path.join(ROOT, "python")}
    done = subprocess.run(
        [sys.executable, *args], input=text, text=True, capture_output=True, env=environment
    )
    return done.stdout + done.stderr


def test_simt_run_without_a_file(tmp_path):
    expected = "(FunctionDef@3:1-4:18 f (argum (Lambda@5:52\n"
    simt = ["-m", "simt", "run", "-q"]
    assert run(*simt, "-c", PROGRAM) == expected
    assert run(*simt, "-", text=PROGRAM) == expected
    (tmp_path / "prog.py").write_text(PROGRAM)
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "__main__.py").write_text(PROGRAM)
    assert run(*simt, str(tmp_path / "prog.py")) == expected
    before = os.getcwd()
    os.chdir(tmp_path)
    try:
        assert run(*simt, "-m", "prog") == expected
        assert run(*simt, "-m", "pack") == expected
    finally:
        os.chdir(before)


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="keeps the source itself")
def test_python_without_a_file():
    assert "use `simt run -`, IPython or Jupyter" in run("-", text=PROGRAM)


def test_doctest():
    text = """
    >>> from simt import _core
    >>> def f(x):
    ...     return x + 1
    >>> _core.kernel_tree(f)[:22]
    '(FunctionDef@1:1-2:17 '
    """
    example = doctest.DocTestParser().get_doctest(text, {}, "name", "name.py", 0)
    runner = doctest.DocTestRunner(verbose=False)
    assert runner.run(example).failed == 0


def test_zip_import(tmp_path):
    import zipfile

    with zipfile.ZipFile(tmp_path / "z.zip", "w") as z:
        z.writestr("in_a_zip.py", "def f(x):\n    return x\n")
    sys.path.insert(0, str(tmp_path / "z.zip"))
    try:
        assert "f (arg" in _core.kernel_tree(importlib.import_module("in_a_zip").f)
    finally:
        sys.path.remove(str(tmp_path / "z.zip"))


# --- what names mean ------------------------------------------------------------------------------


class Color(enum.IntEnum):
    RED = 3


class Plain(enum.Enum):
    A = 1


class Settings:
    width = 16


class Stub:
    x = None
    _simt_intrinsic = "cuda.threadIdx"


class Scalar:
    _simt_scalar = 11


class Dispatcher:
    def __init__(self, f):
        self.py_func = f


Point = namedtuple("Point", "x y")
stub, scalar, point = Stub(), Scalar(), Point(1, np.int8(4))
data = np.arange(6, dtype="f4").reshape(2, 3).T
half, weak, big, wide = np.float32(1.5), 1.5, 2**70, 2**63
swapped, words, size = np.zeros(2, ">f4"), ["a"], np.dtype("u2")
mul = math.prod


def device(x):
    return x


dispatcher = Dispatcher(device)

MEANINGS = {
    "closed": "constant int:5",
    "half": "constant float32 float:1.5",
    "weak": "constant float:1.5",
    "big": "constant big",
    "wide": "constant uint:9223372036854775808",
    "Color.RED": "constant int:3",
    "Settings.width": "constant int:16",
    "Plain.A": "object 'Plain.A' (an object of type 'Plain')",
    "point": "tuple (constant int:1, constant int8 int:4)",
    "data": "array float32 shape 3 2 strides 4 12 first 00000000",
    "words": "object 'words' (a list: use a tuple or a NumPy array)",
    "swapped": "object 'swapped' (an object of type 'numpy.ndarray')",
    "size": "type uint16",
    "stub": "intrinsic cuda.threadIdx",
    "stub.x": "intrinsic cuda.threadIdx.x",
    "scalar": "type float32",
    "device": "function device",
    "dispatcher": "function device",
    "mul": "intrinsic math.prod",
    "np": "module numpy",
    "np.pi": f"constant float:{math.pi:.17g}",
    "np.float32": "type float32",
    "np.intc": "type int32",
    "np.bool_": "type bool",
    "np.complex64": "type complex64",
    "np.sqrt": "intrinsic numpy.sqrt",
    "np.abs": "intrinsic numpy.absolute",
    "np.linalg.norm": "intrinsic numpy.linalg.norm",
    "np.empty": "intrinsic numpy.empty",
    "np.newaxis": "constant None",
    "math.sin": "intrinsic math.sin",
    "math.inf": "constant float:inf",
    "operator.add": "intrinsic operator.add",
    "range": "intrinsic builtins.range",
    "abs": "intrinsic builtins.abs",
    "int": "type int64",
    "float": "type float64",
    "complex": "type complex128",
    "bool": "type bool",
    "zip": "intrinsic builtins.zip",
}


@pytest.mark.parametrize("name", MEANINGS)
def test_meaning(name):
    closed = 5

    def kernel():
        return closed

    assert _core.kernel_lookup(kernel, name) == MEANINGS[name]


def test_names_without_meaning():
    def kernel():
        return late

    with pytest.raises(TypeError, match="name 'nowhere' is not defined"):
        _core.kernel_lookup(kernel, "nowhere")
    with pytest.raises(TypeError, match="has no attribute 'nope'"):
        _core.kernel_lookup(kernel, "np.nope")
    with pytest.raises(TypeError, match="'late' of the enclosing function has no value yet"):
        _core.kernel_lookup(kernel, "late")
    late = 1
    assert _core.kernel_lookup(kernel, "late") == "constant int:1"


def test_globals_are_frozen_when_a_kernel_is_compiled():
    from simt.numba import cuda

    table, factor = np.array([1, 2], np.uint8), 10

    @cuda.jit
    def kernel(out, i):
        out[0] = table[i] * factor

    out = np.zeros(1, np.int64)
    kernel[1, 1](out, 0)
    assert out[0] == 10
    table[0], factor = 9, 100
    kernel[1, 1](out, 0)
    assert out[0] == 10
    kernel[1, 1](out, np.int32(0))  # another specialisation
    assert out[0] == 900


def test_threads_at_one_kernel(tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    names = load(tmp_path / "threads.py", "def f(x):\n    return x\n")
    with ThreadPoolExecutor(8) as pool:
        texts = set(pool.map(lambda _: _core.kernel_tree(names["f"]), range(64)))
    assert len(texts) == 1


def test_only_the_function_is_parsed(tmp_path):
    """The rest of the file may be in the middle of an edit; imports are taken into account."""
    text = """
    import math
    from os import (
        path,
        sep,
    )

    def outer(n):
        def f(x):
            return math.sin(x) + path.join(n, sep.join(x)) + x.y()
        return (f,
                lambda v: math.sin(v) + n)

    g = lambda x: math.sin(x) + path.join(x)
    """
    file = tmp_path / "part.py"
    names = load(file, text)
    f, h = names["outer"](1)
    with open(file, "a") as out:
        out.write("\ndef broken(:\n")
    assert "(FunctionDef@9:5-10:" in _core.kernel_tree(f)
    assert "(Lambda@14:5-14:" in _core.kernel_tree(names["g"])
    assert "(Lambda@12:13-12:" in _core.kernel_tree(h)  # of the statement around it


def test_defaults():
    def kernel(a, b=1, c=half, *, d, e=(1, None)):
        pass

    assert _core.kernel_defaults(kernel) == [
        None,
        "constant int:1",
        "constant float32 float:1.5",
        None,
        "tuple (constant int:1, constant None)",
    ]


def test_numpy_is_not_imported():
    text = (
        "import sys, math\nfrom simt import _core\ndef f(x): return x\n"
        "print(_core.kernel_lookup(f, 'math.sin'), 'numpy' in sys.modules)\n"
    )
    assert run("-m", "simt", "run", "-q", "-c", text) == "intrinsic math.sin False\n"


def test_operator_module():
    for name in ("add", "mul", "xor", "lt"):
        assert getattr(operator, name)
        assert _core.kernel_lookup(test_operator_module, f"operator.{name}") == (
            f"intrinsic operator.{name}"
        )


def test_statements_compiled_one_by_one():
    """As IPython compiles a cell: for the function, the cell's imports are none."""
    import ast
    import linecache

    from simt import _core

    text = "import math\n\n\ndef f(a):\n    a[0] = math.sin(a[1])\n\n\ng = lambda a: math.cos(a)\n"
    name = "<ipython-input-7-simt>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space = {"__name__": "__main__"}
    for node in ast.parse(text).body:
        exec(compile(ast.Module([node], []), name, "exec"), space)
    assert "sin" in _core.kernel_tree(space["f"])
    assert "cos" in _core.kernel_tree(space["g"])
