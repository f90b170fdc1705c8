"""Mutated IR text: parser, verifier, passes and printer give a result or an exception."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_programs import generate
from simt import _core

SCRAPS = (
    "%0 %1 %9 %99999999999 @0 @1 @9 , : = ( ) { } } else { br continue return block loop if "
    "const add store load volatile.block i1 i8 i64 f16 f64 bf16 ptr.global ptr.shared 0 1 "
    "18446744073709551616 fault fence atomic.cas select bitcast trunc alloc special tid.x "
    "call exit function -> variable cvta alloc.dynamic struct align ptr.generic ptr.const "
    'kernel file "x" @1:2 \n \0 é'
).split(" ")


def mutate(text, seed):
    """A few tokens or lines changed, dropped, doubled or swapped."""
    pick = random.Random(seed)
    lines = text.split("\n")
    for _ in range(pick.randrange(1, 4)):
        at = pick.randrange(len(lines))
        which = pick.randrange(5)
        if which == 0:
            lines[at] = lines[pick.randrange(len(lines))]
        elif which == 1:
            del lines[at]
            lines = lines or [""]
        elif which == 2:
            lines.insert(at, lines[pick.randrange(len(lines))])
        else:
            words = lines[at].split(" ")
            words[pick.randrange(len(words))] = pick.choice(SCRAPS)
            lines[at] = " ".join(words)
    return "\n".join(lines)


def check_text(text):
    """A text is refused with words, or is printed as it is read and goes through the passes."""
    try:
        printed = _core.ir_check(text)
    except (ValueError, RuntimeError) as e:
        assert str(e)
        return
    assert _core.ir_check(printed) == printed
    _core.ir_check(printed, "all,contract,dce")


@given(st.integers(0, 300), st.integers(0, 2**32))
@settings(max_examples=400, deadline=None)
def test_mutated_text(program, seed):
    check_text(mutate(generate(program, 12).text, seed))


@given(st.text())
@settings(max_examples=100, deadline=None)
def test_any_text(text):
    with pytest.raises((ValueError, RuntimeError)):
        _core.ir_check(text)


def test_position_in_the_error():
    with pytest.raises(ValueError, match="line 2, column 17: unknown operation"):
        pass_text = "kernel @k(%0: i32) {\n      %1: i32 = frobnicate %0\n return\n}"
        _core.ir_check(pass_text)


def nested(depth):
    """A function of blocks inside each other."""
    opened = "".join(f"block @{i} {{\n" for i in range(depth))
    closed = "".join(f"br @{i}\n}}\n" for i in reversed(range(depth)))
    return f"kernel @k() {{\n{opened}{closed}return\n}}\n"


def test_limits():
    assert _core.ir_check(nested(450), "all")
    for depth in (600, 100_000):
        with pytest.raises(ValueError, match="nested too deeply"):
            _core.ir_check(nested(depth))
    values = ", ".join(f"%{i}: i32" for i in range(70_000))
    with pytest.raises(ValueError, match="too many parameters"):
        _core.ir_check(f"kernel @k({values}) {{\nreturn\n}}\n")
    many = "kernel @k(%0: ptr.global, %1: i64) {\n"
    many += "".join(f"%{i}: i64 = add %{i - 1}, %1\nstore %0, %{i}\n" for i in range(2, 20_000))
    assert _core.ir_check(many + "return\n}\n", "all")  # near-linear, or this would take minutes
