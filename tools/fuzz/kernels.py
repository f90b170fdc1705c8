"""Random kernels in Python against the simulator of tests/differential, or thread by thread."""

from common import Part, use_tests

use_tests("python", "differential")

import test_kernel_programs  # noqa: E402
import test_numba_generated  # noqa: E402

BLOCKS = [1, 6, 7, 32, 33, 35, 45, 64]


def flow(seed):
    test_numba_generated.run_anywhere(seed)


def barriers(seed, block):
    test_numba_generated.run_program(seed, True, block)


def warps(seed, block, meeting):
    test_numba_generated.run_program(seed, False, block, test_numba_generated.MEETINGS[meeting])


def program(seed):
    test_kernel_programs.check(seed)


def make(draw):
    seed, kind = draw.randrange(2**31), draw.randrange(8)
    if kind < 3:
        return f"flow({seed})"
    if kind < 4:
        return f"barriers({seed}, {draw.choice(BLOCKS)})"
    if kind < 5:
        meeting = draw.choice(list(test_numba_generated.MEETINGS))
        return f"warps({seed}, {draw.choice(BLOCKS)}, {meeting!r})"
    return f"program({seed})"


PART = Part(make, globals())
