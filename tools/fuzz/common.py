"""What the parts share. A part has `Part(seed, only)`, `run(text)` and `smaller(text)`."""

import os
import random
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def use_tests(*folders):
    """The generators live beside the tests that use them."""
    for folder in folders:
        path = os.path.join(ROOT, "tests", folder)
        if path not in sys.path:
            sys.path.insert(0, path)


class Choices:
    """Programs that are one call each: `make(draw)` gives the text."""

    def __init__(self, seed, make):
        self.draw, self.make = random.Random(seed), make

    def text(self):
        return self.make(self.draw)

    def worked(self):
        pass


def smaller_numbers(text, name="size"):
    """The same call with a smaller `size=`."""
    found = re.search(rf"\b{name}=(\d+)", text)
    size = int(found[1]) if found else 0
    for less in sorted({1, 2, 4, 8, size // 2, size - 1}):
        if 0 < less < size:
            yield text[: found.start(1)] + str(less) + text[found.end(1) :]
