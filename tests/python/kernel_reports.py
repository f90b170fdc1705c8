"""What the tests of reports share: where a line stands in the source, and an argument."""

import os

import numpy as np


def floats(*shape):
    return np.zeros(shape or 8, np.float32)


def place(f, text, under=""):
    """file:line of the line of f that holds the text, and that line with its caret."""
    f = getattr(f, "py_func", f)
    file = os.path.abspath(f.__code__.co_filename)
    with open(file, encoding="utf-8") as source:
        lines = source.read().split("\n")
    n = next(n for n in range(f.__code__.co_firstlineno, len(lines)) if text in lines[n])
    column = lines[n].index(under)
    caret = "" if not under else "\n    " + " " * (column - lines[n].index(lines[n].strip())) + "^"
    at = f"{file}:{n + 1}" + (f":{column + 1}" if under else "")
    return at, "\n    " + lines[n].strip() + caret
