"""Installs the wheel into an environment of its own and runs programs where there is no compiler.

try_wheel.py [WHEEL]     builds the wheel where none is named; PATH holds the environment only
"""

import os
import re
import subprocess
import sys
import tempfile
import venv

from check_size import ROOT, build_wheel

EXAMPLES = os.path.join(ROOT, "examples")
TOOLS = ("cc", "gcc", "clang", "meson", "ninja", "make")
# Programs, and what each must print.
COMMANDS = [
    (["simt", "doctor"], r"CPU"),
    # what tests call is not in it
    (["simt", "run", "-c", "from simt import _core; print(hasattr(_core, 'ir_run'))"], r"False"),
    (["simt", "run", os.path.join(EXAMPLES, "seed", "cupy_basics.py")], r"(?s)(\[\[.*\]\].*){2}"),
    (["simt", "run", os.path.join(EXAMPLES, "seed", "pytorch_mnist.py")], r"Using device: cpu"),
    (["simt", "run", os.path.join(EXAMPLES, "mnist_pytorch.py")], r"Test accuracy: 9[678]\.\d"),
]


def install(wheel, folder):
    """An environment in folder with the wheel and what it depends on, wheels only."""
    venv.create(folder, with_pip=False)
    python = os.path.join(folder, "bin", "python")
    command = [sys.executable, "-m", "pip", "--python", python, "install", "-q"]
    subprocess.run(
        [*command, "--only-binary", ":all:", wheel], check=True, stdin=subprocess.DEVNULL
    )


def environment(folder):
    """PATH names the environment only; nothing points at this repository."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("SIMT_", "PYTHON"))}
    for name in ("CC", "CFLAGS", "VIRTUAL_ENV", "LD_PRELOAD"):
        kept.pop(name, None)
    return kept | {"PATH": os.path.join(folder, "bin"), "SIMT_LANG": "en"}


def try_wheel(wheel, folder):
    """Problems, as lines; none when all went well."""
    install(wheel, folder)
    env, bin_folder = environment(folder), os.path.join(folder, "bin")
    problems = [f"{t} is in {bin_folder}" for t in TOOLS if os.path.exists(f"{bin_folder}/{t}")]
    for command, pattern in COMMANDS:
        done = subprocess.run(
            [os.path.join(bin_folder, command[0]), *command[1:]],
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )
        if done.returncode or not re.search(pattern, done.stdout):
            output = (done.stdout + done.stderr)[-2000:]
            problems.append(f"{' '.join(command)}: exit code {done.returncode}\n{output}")
    return problems


def main(argv):
    with tempfile.TemporaryDirectory() as folder:
        wheel = os.path.abspath(argv[1]) if len(argv) > 1 else build_wheel(ROOT, folder)
        problems = try_wheel(wheel, os.path.join(folder, "environment"))
        print(*(f"wheel: {p}" for p in problems or ["runs where there is no compiler"]), sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
