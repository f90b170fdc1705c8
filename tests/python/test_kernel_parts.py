"""Finding a kernel's source looks at its statement only, in however long a file."""

import linecache
import textwrap

import numpy as np
import pytest
from simt import _core
from simt.numba import cuda

BROKEN = "def broken(:\n"  # a file with this line cannot be parsed as a whole


def run(path, text, broken=True):
    """The names of a file; afterwards the file ends in a line that is no Python."""
    path.write_text(text)
    linecache.checkcache(str(path))
    names = {"__name__": "part", "cuda": cuda, "keep": lambda *args, **kwargs: (args, kwargs)}
    exec(compile(text, str(path), "exec"), names)
    if broken:
        with open(path, "a") as out:
            out.write(BROKEN)
    return names


LAMBDAS = {  # statement -> how to get the lambda from the names
    "several lines": ("f = keep(1,\n    lambda x: x + 1)", lambda n: n["f"][0][1]),
    "two of them": ("f = keep(lambda x: x + 1,\n    lambda x: x + 2)", lambda n: n["f"][0][1]),
    "in a dictionary": ("f = {\n  'a': lambda x: x + 1,\n}", lambda n: n["f"]["a"]),
    "several lines itself": ("f = (lambda x:\n  x\n  + 1)", lambda n: n["f"]),
    "continued": ("f = \\\n  lambda x: \\\n  x + 1", lambda n: n["f"]),
    "behind a string": ("f = keep('''(\n''',\n   lambda x: x + 1)", lambda n: n["f"][0][1]),
    "behind a comment": ("f = keep(  # ('\n   lambda x: x + 1)", lambda n: n["f"][0][0]),
    "if": ("if (f := lambda x: x + 1):\n    pass", lambda n: n["f"]),
    "if on a line": ("if 1: f = keep(\n  lambda x: x + 1)", lambda n: n["f"][0][0]),
    "elif": ("if 0:\n    pass\nelif (f := (lambda x: x + 1)):\n    pass", lambda n: n["f"]),
    "elif on a line": ("if 0: pass\nelif 1: f = keep(\n lambda x: 1)", lambda n: n["f"][0][0]),
    "else": ("if 0: pass\nelse: f = lambda x: x + 1", lambda n: n["f"]),
    "while": ("while (f := (lambda x: x + 1)):\n    break", lambda n: n["f"]),
    "for": ("for f in (\n    lambda x: x + 1,):\n    pass", lambda n: n["f"]),
    "with": (
        "import contextlib\nwith contextlib.nullcontext(lambda x: x + 1) as f:\n    pass",
        lambda n: n["f"],
    ),
    "decorator": (
        "f = []\n@(lambda h: f.append(h) or keep)(\n    lambda x: x + 1)\ndef g(): pass",
        lambda n: n["f"][0],
    ),
    "default": ("def f(x, g=lambda x: x + 1):\n    pass", lambda n: n["f"].__defaults__[0]),
    "method": (
        "class A:\n    def m(self):\n        return keep(\n      lambda x: x + 1)\nf = A().m()",
        lambda n: n["f"][0][0],
    ),
    "private names": (
        "__c = 1\nclass _A:\n  def m(self, __k):\n    return keep(\n      lambda x: x + __k)\n"
        "f = _A().m(2)",
        lambda n: n["f"][0][0],
    ),
    "except": (
        "try:\n    keep.no\nexcept (f := [\n    lambda x: 1]) and AttributeError: pass",
        lambda n: n["f"][0],
    ),
    "match": ("match keep(\n  lambda x: x + 1):\n  case f: pass", lambda n: n["f"][0][0]),
    "case": ("match 1:\n  case g if (f := (lambda x: g)): pass", lambda n: n["f"]),
    "list": ("f = [lambda x: x + i for i in range(3)]", lambda n: n["f"][1]),
}


@pytest.mark.parametrize("name", LAMBDAS)
def test_lambdas_of_longer_statements(tmp_path, name):
    text, get = LAMBDAS[name]
    function = get(run(tmp_path / "part.py", text + "\n"))
    if name == "case":  # needs more than its statement: the whole file
        with pytest.raises(RuntimeError, match="is not what Python compiled"):
            _core.kernel_tree(function)
        function = get(run(tmp_path / "whole.py", text + "\n", broken=False))
    assert _core.kernel_tree(function).startswith("(Lambda@")


def test_lambdas_within_lambdas(tmp_path):
    text = "f = lambda x, g=lambda y: y, *, h=lambda z: lambda w: z: lambda v: (lambda: v, 1)\n"
    f = run(tmp_path / "part.py", text)["f"]
    g, h = f.__defaults__[0], f.__kwdefaults__["h"]
    found = {"x": f, "y": g, "z": h, "w": h(1), "v": f(1)}
    for name, function in found.items():
        place = text.index(f"lambda {name}") + 1
        assert _core.kernel_tree(function).startswith(f"(Lambda@1:{place}-"), name
    assert _core.kernel_tree(f(1)(2)[0]).startswith(f"(Lambda@1:{text.index('lambda:') + 1}-")


DEFS = {
    "docstring at the margin": 'def f(x):\n    """A\nB\n\n    C"""\n    return x',
    "string at the margin": "def f(x):\n    y = '''\n# no comment\n'''\n    return x",
    "continued at the margin": "def f(x):\n    y = x + \\\n1\n    return y",
    "brackets at the margin": "def f(x):\n    y = (x +\n1\n)\n    return y",
    "comment at the margin": "def f(x):\n    y = 1\n# text ' ( [\n    return y",
    "signature over lines": "def f(\n  x,\n  y=(\n1, 2),\n):\n    return x",
    "decorators over lines": "def keeps(*a):\n  return lambda f: f\n@keeps(\n1,\n)\n\n# c\n"
    "@keeps('''\n''')\ndef f(x):\n    return x",
    "in a class": "class A:\n  def f(x):\n    '''\n'''\n    return x\n\n  y = 1\nf = A.f",
    "private names": "class A:\n    def f(x, __y=1):\n        return x + __y + __z\nf = A.f",
    "private names of a closure": "def g():\n  class A:\n    def f(x):\n      return x + __y + k\n"
    "  k = 1\n  return A\nf = g().f",
    "its own name": "def f(x): pass\nclass A:\n    def f(x):\n        return f(x)\nf = A.f",
    "imports of others": "import math\ndef g():\n    import types\ndef f(x):\n"
    "    return math.sin(x) + types.sin(x)",
    "imported again inside": "import math\ndef g():\n    import math\n    def f(x):\n"
    "        return math.sin(x) + x.sin()\n    return f\nf = g()",
    "named as an import": "import math as x\ndef f(x):\n    return x.sin(x)",
    "form feed": "\x0cdef f(x):\n    return x\n\x0c",
    "tabs": "if 1:\n\tdef f(x):\n\t\tif x:\n\t\t\treturn x\n\t\treturn 1",
    "one line": "def f(x): return x",
    "at the end": "def f(x):\n    return x\n    # (",
    "f-strings": "def f(x):\n    raise ValueError(f'{x:{x}} ( \" {{')",
}


@pytest.mark.parametrize("name", DEFS)
def test_functions_with_text_at_the_margin(tmp_path, name):
    names = run(tmp_path / "part.py", DEFS[name] + "\n")
    assert _core.kernel_tree(names["f"]).startswith("(FunctionDef@")


def test_a_statement_that_changed_is_an_error(tmp_path):
    path = tmp_path / "part.py"
    names = run(path, "f = keep(\n    lambda x: x + 1)\n", broken=False)
    path.write_text("f = keep(\n    lambda x: x + 2)\n")
    with pytest.raises(RuntimeError, match="is not what Python compiled"):
        _core.kernel_tree(names["f"][0][0])


def test_a_file_of_twenty_thousand_lines(tmp_path):
    """Its middle holds what is looked for; not all of it can be parsed."""
    filler = textwrap.dedent("""
        def filler_{i}(a, b):
            '''Text with ' and " and ( in it.
        at the margin'''
            if a > b:  # (
                return {{"k": [a, b, "("], 'j': f"{{a!r:>{{b}}}}"}}
            return a - \\
        b
    """)
    parts = [filler.format(i=i) for i in range(1250)]
    middle = textwrap.dedent("""
        @cuda.jit
        def kernel(out):
            '''Text
        at the margin'''
            out[0] = helper(out[1])

        table = {
            "square":
                lambda x: x * x,
            "twice": lambda x:
                2 * x,
        }
        helper = cuda.jit(table["twice"],
            device=True)
    """)
    text = "".join(parts) + middle + "".join(parts)
    assert text.count("\n") > 20_000
    names = run(tmp_path / "long.py", text)
    out = np.array([0.0, 4.0])
    names["kernel"][1, 1](out)
    assert out[0] == 8.0
    line = text[: text.index("lambda x: x * x")].count("\n") + 1
    assert _core.kernel_tree(names["table"]["square"]).startswith(f"(Lambda@{line}:")
