"""Kernels from source text: what the generated tests of the Numba face are made of."""

import itertools
import linecache

_numbers = itertools.count()


def load(source, **names):
    """The namespace of a source text, run as a module whose lines linecache knows."""
    filename = f"<generated {next(_numbers)}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    space = {"__name__": "generated", "__file__": filename, **names}
    exec(compile(source, filename, "exec"), space)
    return space
