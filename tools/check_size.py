"""Checks the size budget: simt's own files and its wheel, at most 25 MB each; warns of long files.

check_size.py [--wheel]     --wheel also builds the wheel (incrementally) and weighs it
"""

import glob
import os
import subprocess
import sys
import tempfile
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUDGET_MB = 25
LONG_FILE = 800
CODE_ENDS = (".c", ".h", ".py")
SKIP_DIRS = {"generated", "__pycache__"}


def code_files(root):
    """The repository's C and Python files, generated ones left out."""
    for top in ("src", "include", "python", "tests", "tools", "bench", "examples"):
        for folder, dirs, names in os.walk(os.path.join(root, top)):
            dirs[:] = [d for d in dirs if d not in SKIP_DIRS]
            for name in sorted(names):
                path = os.path.join(folder, name)
                if name.endswith(CODE_ENDS) and not os.path.islink(path):
                    yield path


def long_files(root, limit=LONG_FILE):
    """(lines, path) of the code files with more than limit lines, longest first."""
    found = []
    for path in code_files(root):
        with open(path, "rb") as f:
            lines = sum(1 for _ in f)
        if lines > limit:
            found.append((lines, os.path.relpath(path, root)))
    return sorted(found, reverse=True)


def package_bytes(root):
    """Bytes of the package's own sources and data; a development build's extension is a link."""
    total = 0
    for folder, dirs, names in os.walk(os.path.join(root, "python", "simt")):
        dirs[:] = [d for d in dirs if d != "__pycache__"]
        paths = [os.path.join(folder, n) for n in names]
        total += sum(os.path.getsize(p) for p in paths if not os.path.islink(p))
    return total


def build_wheel(root, folder):
    """The path of the wheel, built into folder (incrementally, in build-release)."""
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"]
    command += ["--config-settings=build-dir=build-release", "-w", folder, "."]
    subprocess.run(command, cwd=root, check=True, stdin=subprocess.DEVNULL)
    (path,) = glob.glob(os.path.join(folder, "*.whl"))
    return path


def wheel_bytes(root):
    """(bytes of the wheel, bytes of its files unpacked)."""
    with tempfile.TemporaryDirectory() as folder:
        path = build_wheel(root, folder)
        with zipfile.ZipFile(path) as wheel:
            unpacked = sum(info.file_size for info in wheel.infolist())
        return os.path.getsize(path), unpacked


def main(argv):
    for lines, path in long_files(ROOT):
        print(f"size: warning: {path} has {lines} lines (look twice above {LONG_FILE})")
    sizes = {"package files": package_bytes(ROOT)}
    if "--wheel" in argv:
        sizes["wheel"], sizes["wheel, unpacked"] = wheel_bytes(ROOT)
    failed = False
    for what, size in sizes.items():
        over = size > BUDGET_MB * 1e6
        failed |= over
        print(
            f"size: {what}: {size / 1e6:.1f} MB of {BUDGET_MB}" + ("  OVER BUDGET" if over else "")
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
