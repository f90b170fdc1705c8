"""Files with mistakes in them: IDX files and saved objects are refused, or are whole."""

import os
import tempfile

from common import Part, use_tests

use_tests("python")

import random  # noqa: E402

import fuzz_files  # noqa: E402

GOOD = fuzz_files.save_file(random.Random(1))


def idx(seed):
    with tempfile.TemporaryDirectory() as folder:
        return fuzz_files.one_idx(seed, os.path.join(folder))


def saved(seed):
    return fuzz_files.one_save(seed, GOOD)


def make(draw):
    return f"{draw.choice(['idx', 'saved'])}({draw.randrange(2**40)})"


PART = Part(make, globals())
