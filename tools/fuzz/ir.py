"""Random programs of the IR: the back end, with and without the passes, against an evaluator in
Python; and text with mistakes in it, through parser, verifier, passes and printer."""

from common import Part, use_tests

use_tests("differential")

import test_ir  # noqa: E402
import test_ir_fuzz  # noqa: E402
from ir_programs import generate  # noqa: E402


def check(seed, size, launch=None, apart=False, calls=False):
    test_ir.check(seed, size, *(launch or ()), apart=apart, calls=calls)


def check_waiting(seed, size):
    test_ir.check_waiting(seed, size)


def check_text(seed, change, size):
    text = generate(seed, size, calls=change % 2 == 0).text
    test_ir_fuzz.check_text(test_ir_fuzz.mutate(text, change))


def make(draw):
    seed, kind = draw.randrange(2**32), draw.randrange(10)
    if kind < 2:
        return f"check({seed}, size={draw.randrange(2, 50)})"
    if kind == 2:
        return f"check({seed}, size={draw.randrange(2, 30)}, calls=True)"
    if kind < 5:
        return f"check({seed}, size={draw.randrange(2, 40)}, launch={draw.choice(test_ir.BOXES)})"
    if kind < 7:
        launch = draw.choice(test_ir.APART)
        return f"check({seed}, size={draw.randrange(2, 40)}, launch={launch}, apart=True)"
    if kind == 7:
        return f"check_waiting({seed}, size={draw.randrange(1, 7)})"
    return f"check_text({seed}, {draw.randrange(2**32)}, size={draw.randrange(2, 30)})"


PART = Part(make, globals())
