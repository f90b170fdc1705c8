"""Prints the files of python/simt that belong into the wheel, one a line, relative to python/.

meson runs it at configure time, so a new module needs no line in any list.
"""

import os
import sys

SKIP_DIRS = {"__pycache__"}
SKIP_ENDS = (".so", ".pyc", ".pyd", ".dylib", "~", ".orig", ".rej")


def package_files(python_dir):
    """The package's files below python_dir, sorted, as paths relative to it."""
    found = []
    for folder, dirs, names in os.walk(os.path.join(python_dir, "simt")):
        dirs[:] = sorted(d for d in dirs if d not in SKIP_DIRS and not d.startswith("."))
        for name in sorted(names):
            if not name.endswith(SKIP_ENDS) and not name.startswith("."):
                found.append(os.path.relpath(os.path.join(folder, name), python_dir))
    return found


if __name__ == "__main__":
    print("\n".join(package_files(sys.argv[1])))
