"""simt.alias, the errors for what is missing, and the aliases in child processes."""

import os
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.dirname(__file__))
import standin


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return standin.make(tmp_path_factory.mktemp("standin"))


def run(path, code, **kwargs):
    """stdout of code run under the aliases; it must end well."""
    status, out, err = standin.simt(path, "run", "-q", "-c", code, **kwargs)
    assert status == 0, err
    return out


def test_aliases_are_the_very_modules(path):
    out = run(
        path,
        """
import torch, torch.nn, torch.nn.functional as F, torchvision
from torch.nn import Linear
import simt.torch, simt.torchvision
import sys
print(torch is simt.torch, torch.nn is simt.torch.nn, F is simt.torch.nn.functional)
print(torchvision is simt.torchvision, sys.modules['torch.nn'] is sys.modules['simt.torch.nn'])
print(Linear is simt.torch.nn.Linear, torch.__spec__.name, torch.nn.__name__)
""",
    )
    assert out.split() == ["True"] * 6 + ["simt.torch", "simt.torch.nn"]


def test_alias_only_by_attribute(path):
    # `import torch` alone gives torch.nn, and a later import finds the same module
    code = "import torch; a = torch.nn; import torch.nn as b; print(a is b)"
    assert run(path, code) == "True\n"


def test_find_spec_answers_without_importing(path):
    out = run(
        path,
        """
from importlib.util import find_spec
import sys
print(find_spec('torch') is not None, find_spec('numba'), 'torch' in sys.modules)
print(find_spec('torch.nn') is not None, find_spec('torch.fft'), find_spec('cupy'))
""",
    )
    assert out.split() == ["True", "None", "False", "True", "None", "None"]


@pytest.mark.parametrize(
    "code, kind, text",
    [
        (
            "import torch; torch.zeroes",
            "AttributeError",
            "module 'torch' has no attribute 'zeroes': not in simt yet; nearest is torch.zeros",
        ),
        (
            "import torch.nn.functionals",
            "ModuleNotFoundError",
            "No module named 'torch.nn.functionals': not in simt yet; "
            "nearest is torch.nn.functional",
        ),
        (
            "from torch import arrange",
            "ModuleNotFoundError",
            "No module named 'torch.arrange': not in simt yet; nearest is torch.arange",
        ),
        (
            "from simt.torch import arrange",
            "ModuleNotFoundError",
            "No module named 'torch.arrange': not in simt yet; nearest is torch.arange",
        ),
        (
            "import torch.optim",
            "ModuleNotFoundError",
            "No module named 'torch.optim': not in simt yet",
        ),
        (
            "from numba import cuda",
            "ModuleNotFoundError",
            "No module named 'numba': not in simt yet; nearest is cupy "
            "(the real one: simt run --keep numba)",
        ),
        (
            "from simt import numba",
            "ModuleNotFoundError",
            "No module named 'simt.numba': not in simt yet; nearest is cupy",
        ),
    ],
)
def test_missing_names(path, code, kind, text):
    if code.startswith("from simt.torch"):
        text = text.replace("'torch.", "'simt.torch.").replace("is torch.", "is simt.torch.")
    status, out, err = standin.simt(path, "run", "-q", "-c", code)
    assert (status, out) == (1, "")
    assert err.splitlines()[-1].startswith(f"{kind}: {text}")
    assert "alias.py" not in err and "_missing.py" not in err


def test_missing_is_quiet_when_asked_politely(path):
    out = run(
        path,
        """
import sys, torch, simt
print(hasattr(torch, 'zeroes'), hasattr(torch, 'optim'), getattr(torch, 'x', 5))
print('difflib' in sys.modules)
print([n for n in dir(torch) if n[0] != '_' and n != 'module_hooks'])
print(hasattr(simt, 'numba'), 'torch' in dir(simt), 'numba' in dir(simt), hasattr(simt, 'torch'))
try:
    import tensorflow
except ImportError as e:
    print(e.name)
""",
    )
    assert out.splitlines() == [
        "False False 5",
        "False",
        "['arange', 'float32', 'nn', 'zeros']",
        "False True False True",
        "tensorflow",
    ]


def test_missing_hint_in_chinese(path):
    code = "import torch; torch.zeroes"
    _, _, err = standin.simt(path, "run", "-q", "-c", code, SIMT_LANG="zh", PYTHONUTF8="1")
    first, second = err.splitlines()[-2:]
    assert "not in simt yet; nearest is torch.zeros" in first
    assert second == "提示: simt 还没有 zeroes; 最接近的是 torch.zeros"


CHILD = """
import sys
def work(_):
    import torch, torch.nn.functional as F
    return torch.__name__ + F.__name__ + str([p for p in sys.path if '_site' in p])
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_children_by_multiprocessing(path, tmp_path, method):
    script = tmp_path / "program.py"
    script.write_text(
        CHILD
        + f"""
if __name__ == '__main__':
    import multiprocessing as mp
    with mp.get_context('{method}').Pool(1) as pool:
        print(pool.map(work, [0]))
"""
    )
    status, out, err = standin.simt(path, "run", "-q", str(script))
    assert (status, out, err) == (0, "['simt.torchsimt.torch.nn.functional[]']\n", "")


def test_children_by_subprocess_and_grandchildren(path):
    code = (
        "import subprocess, sys; inner = 'import torch; print(torch.__name__)';"
        "middle = 'import subprocess, sys; subprocess.run([sys.executable, \"-c\", sys.argv[1]])';"
        "subprocess.run([sys.executable, '-c', middle, inner])"
    )
    assert run(path, code) == "simt.torch\n"


def test_existing_sitecustomize_still_runs(path, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.hello = 'hello'\n")
    code = (
        "import subprocess, sys; subprocess.run([sys.executable, '-c', "
        "'import sys, torch, sitecustomize as s; print(sys.hello, torch.__name__, s.__file__)'])"
    )
    out = run(path + os.pathsep + str(tmp_path), code)
    assert out == f"hello simt.torch {tmp_path}/sitecustomize.py\n"


def test_child_without_simt_on_its_path(path, tmp_path):
    # run from a folder that holds simt: the children start elsewhere and still find this very simt
    code = (
        "import os, subprocess, sys; os.chdir(sys.argv[1]);"
        "subprocess.run([sys.executable, '-c', 'import torch; print(torch.__file__)'])"
    )
    status, out, err = standin.simt("", "run", "-q", "-c", code, str(tmp_path), cwd=path)
    assert (status, out) == (0, f"{path}/simt/torch/__init__.py\n"), err


def python(path, code):
    status, out, err = standin.python(path, "-c", code)
    assert status == 0, err
    return out


@pytest.fixture
def real(tmp_path):
    """A folder with a 'real' torch 9.8.1 and numba."""
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("print('real torch imported')\n")
    (tmp_path / "numba.py").write_text("real = True\n")
    (tmp_path / "torch-9.8.1+cu1.dist-info").mkdir()
    return str(tmp_path)


def test_install_and_uninstall(path, real):
    out = python(
        path + os.pathsep + real,
        """
import os, simt.alias as alias
before = dict(os.environ)
print(alias.install())
import torch, torch.nn
print(torch.__name__)
print(alias.install('torch'))
alias.uninstall()
print(os.environ == before)
import numba, torch
""",
    )
    assert out.splitlines() == [
        "('torch', 'torchvision')",
        "simt.torch",
        "('torch',)",
        "True",
        "real torch imported",
    ]


def test_install_refuses_when_the_real_one_is_imported(path, real):
    out = python(
        path + os.pathsep + real,
        """
import torch, simt.alias, sys
meta = list(sys.meta_path)
try:
    simt.alias.install()
except RuntimeError as e:
    print(str(e).split(' (')[0], sys.meta_path == meta)
print(simt.alias.install(keep='torch'), torch is sys.modules['torch'])
try:
    simt.alias.install('jax')
except ValueError as e:
    print(e)
""",
    )
    assert out.splitlines() == [
        "real torch imported",
        "simt.alias: the real torch is imported already True",
        "('torchvision',) True",
        "simt.alias: 'jax' is not one of cupy, cupyx, numba, torch, torchvision, tensorflow, keras",
    ]


def test_run_line_names_real_ones_and_keep_keeps_them(path, real):
    both = path + os.pathsep + real
    status, out, err = standin.simt(both, "run", "-c", "import torch; print(torch.__name__)")
    assert (status, out) == (0, "simt.torch\n")
    assert "real torch 9.8.1+cu1 found, not used; --keep torch" in err and err.count("\n") == 1
    status, out, err = standin.simt(
        both,
        "run",
        "--keep=torch",
        "--keep",
        "numba",
        "-c",
        "import torch, numba; print(numba.real)",
    )
    assert (status, out) == (0, "real torch imported\nTrue\n")
    assert "kept real: torch, numba" in err


@pytest.mark.skipif("SIMT_SANITIZE" in os.environ, reason="counts modules, not behaviour")
def test_import_simt_is_nearly_free(path):
    code = "import sys; a = set(sys.modules); import simt; print(sorted(set(sys.modules) - a))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=standin.environment(path),
        capture_output=True,
        text=True,
    )
    assert done.stdout == "['simt']\n"
