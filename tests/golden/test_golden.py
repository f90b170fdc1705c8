"""Golden tests of the IR: each .ir file holds the input, the passes and what must come out.

    // passes: fold,dce          (none: only parsed, verified and printed)
    kernel ...
    // expect:                   or  // error: text that the exception holds
    kernel ...

python tests/golden/test_golden.py --rebase writes what comes out today into the files.
"""

import pathlib
import sys

import pytest
from simt import _core

FILES = sorted(pathlib.Path(__file__).parent.glob("*.ir"))


def split(text):
    """Passes, input, and the expected text or error."""
    head, _, rest = text.partition("\n")
    assert head.startswith("// passes:"), "the first line names the passes"
    passes = head.removeprefix("// passes:").strip()
    if "// error:" in rest:
        source, _, error = rest.partition("// error:")
        return passes, source, None, error.strip()
    source, _, expected = rest.partition("// expect:\n")
    return passes, source, expected, None


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_golden(path):
    passes, source, expected, error = split(path.read_text())
    if error is not None:
        with pytest.raises((ValueError, RuntimeError)) as caught:
            _core.ir_check(source, passes)
        assert error in str(caught.value)
        return
    assert _core.ir_check(source, passes) == expected
    assert _core.ir_check(expected) == expected


def rebase():
    """Rewrites the expectations."""
    for path in FILES:
        passes, source, _, error = split(path.read_text())
        if error is None:
            result = _core.ir_check(source, passes)
            path.write_text(f"// passes: {passes}\n{source}// expect:\n{result}")


if __name__ == "__main__" and "--rebase" in sys.argv:
    rebase()
