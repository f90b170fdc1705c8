"""What the parts share. A part is a module with a `PART`: a `Part`, or a class made from it."""

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


class Part:
    """Programs that are one call each of a function in `names`: `make(draw)` gives the text."""

    def __init__(self, make, names):
        self.make, self.names = make, names

    def begin(self, seed, only=""):
        self.draw = random.Random(seed)

    def text(self):
        return self.make(self.draw)

    def worked(self):
        """The last text was a program that gave a result."""

    def run(self, text):
        """True: it gave a result; False: an exception that programs can have. Others are raised."""
        return eval(text, self.names) is not False

    def smaller(self, text):
        """Programs with less in them: the same call with a smaller `size=`."""
        found = re.search(r"\bsize=(\d+)", text)
        size = int(found[1]) if found else 0
        for less in sorted({1, 2, 4, 8, size // 2, size - 1}):
            if 0 < less < size:
                yield text[: found.start(1)] + str(less) + text[found.end(1) :]
