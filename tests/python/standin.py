"""A copy of the package (links) in a temporary folder, with small stand-in faces in it.

Used where a test is about the launcher and not about the faces: it fixes what is there and what is
not, whatever simt has by now.
"""

import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PACKAGE = os.path.join(ROOT, "python", "simt")
FACES = ("cupy", "keras", "keras_backend", "numba", "tensorflow", "torch", "torchvision")

TORCH = {
    "torch/__init__.py": """
from simt._missing import module_hooks
float32 = "float32"
def zeros(): return 0
def arange(): return 1
__getattr__, __dir__ = module_hooks(globals(), lazy=("nn", "optim"))
""",
    "torch/nn/__init__.py": "from . import functional\nclass Linear: pass\n",
    "torch/nn/functional.py": "def relu(x): return max(x, 0)\n",
    "torchvision/__init__.py": "import simt.torch\nfrom simt.torch import nn\n",
}


def make(folder, faces=None):
    """Makes folder/simt of links to the package's files, with faces (path -> text) in place of its
    own; returns folder as text, for PYTHONPATH."""
    target = os.path.join(str(folder), "simt")
    os.makedirs(target)
    for name in os.listdir(PACKAGE):
        if name.partition(".")[0] not in FACES and name != "__pycache__":
            os.symlink(os.path.join(PACKAGE, name), os.path.join(target, name))
    for name, text in (TORCH if faces is None else faces).items():
        path = os.path.join(target, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text)
    return str(folder)


def environment(path, **more):
    """This process's environment with PYTHONPATH=path and English messages."""
    keep = {k: v for k, v in os.environ.items() if not k.startswith("SIMT_")}
    if "SIMT_SANITIZE" in os.environ:
        keep["SIMT_SANITIZE"] = os.environ["SIMT_SANITIZE"]
    return keep | {"PYTHONPATH": path, "SIMT_LANG": "en", "PYTHONDONTWRITEBYTECODE": "1"} | more


def python(path, *args, stdin="", cwd=None, **env):
    """Runs this Python with args; returns (exit code, stdout, stderr)."""
    done = subprocess.run(
        [sys.executable, *args],
        input=stdin,
        capture_output=True,
        text=True,
        cwd=cwd,
        env=environment(path, **env),
        timeout=60,
    )
    return done.returncode, done.stdout, done.stderr


def simt(path, *args, **kwargs):
    """Runs `python -m simt ARGS`."""
    return python(path, "-m", "simt", *args, **kwargs)
