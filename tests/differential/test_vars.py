"""kernel/vars.h: programs with variables, built as front ends do it, against what they mean.

The IR is verified where it is built, run by the vm with and without the passes, and by the scalar
evaluator. No front end is in between.
"""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_eval import run
from simt import _core

WORDS = ["const", "add", "sub", "mul", "xor", "if", "block", "loop", "leave", "next", "return"]
THREADS = (2, 5)


def encode(body):
    """The numbers of src/binding/common/vars_test.c."""
    code = []
    for word, *rest in body:
        bodies = [encode(part) for part in rest if isinstance(part, list)]
        numbers = [part for part in rest if not isinstance(part, list)]
        code += [WORDS.index(word), *numbers, *map(len, bodies), *sum(bodies, [])]
    return code


# ---- what the programs mean ----


class Leave(Exception):
    def __init__(self, count, again=False):
        self.count, self.again = count, again


def wrap(value, letter):
    bits = 32 if letter == "i" else 64
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def step(statement, v, types):
    word, a, *rest = *statement, 0
    if word == "const":
        v[a] = wrap(rest[0], types[a])
    elif word in ("add", "sub", "mul", "xor"):
        x, y = v[rest[0]], v[rest[1]]
        made = {"add": x + y, "sub": x - y, "mul": x * y, "xor": x ^ y}[word]
        v[a] = wrap(made, types[a])
    elif word == "if":
        meaning(statement[3] if v[a] < v[rest[0]] else statement[4], v, types)
    elif word in ("block", "loop"):
        place(statement[1], v, types, word == "loop")
    elif word == "return":
        raise Leave(1 << 30)
    else:
        raise Leave(a, word == "next")


def place(body, v, types, is_loop):
    while True:
        try:
            meaning(body, v, types)
        except Leave as left:
            if left.count > 0:
                raise Leave(left.count - 1, left.again) from None
            if not left.again:
                return
        else:
            if not is_loop:
                return


def meaning(body, v, types):
    for statement in body:
        step(statement, v, types)


def check(types, arguments, body):
    code = np.array(encode(body), np.int64).tobytes()
    text = _core.vars_build(types, arguments, code)
    grid, block = THREADS
    given_values = np.random.default_rng(len(code)).integers(-9, 10, (grid * block, len(types)))
    want = np.zeros((grid * block, len(types)), np.int64)
    for thread, row in enumerate(given_values):
        v = [int(x) if i < arguments else 0 for i, x in enumerate(row)]
        try:
            meaning(body, v, types)
        except Leave:
            pass
        want[thread] = [x & 0xFFFFFFFF if letter == "i" else x for x, letter in zip(v, types)]
    roads = [lambda *a: run(text, grid, block, list(a))]
    for optimize in (False, True):
        roads.append(lambda *a, o=optimize: _core.ir_run(text, grid, block, list(a), optimize=o))
    for road in roads:
        out = np.zeros(want.nbytes, np.uint8)
        road(out, given_values.astype(np.int64).view(np.uint8).reshape(-1))
        np.testing.assert_array_equal(out.view(np.int64).reshape(want.shape), want)
    return text


# ---- one thing each; a, b: what is given ----


def counted(counter, one, limit, body):
    """A loop whose counter goes to a limit; `next 0` in its body goes on with the next round."""
    return (
        "loop",
        [("if", counter, limit, [], [("leave", 0)]), ("add", counter, counter, one), *body],
    )


def test_if():
    check("ll", 2, [("if", 0, 1, [("add", 0, 0, 1)], [("sub", 0, 0, 1)])])
    check("lll", 2, [("if", 0, 1, [("add", 2, 0, 1)], [])])  # assigned on one way: else 0
    check("lll", 2, [("if", 0, 1, [("const", 2, 5)], [("return",)]), ("add", 2, 2, 0)])
    check("ll", 2, [("if", 0, 1, [("return",)], [("return",)]), ("const", 0, 7)])


def test_types():
    check("ilil", 4, [("if", 1, 3, [("mul", 0, 0, 2), ("mul", 1, 1, 3)], [("xor", 2, 2, 0)])])


def test_nested_loops():
    # for i < 4: for j < 3: total += i * j
    inner = counted(1, 2, 4, [("mul", 6, 0, 1), ("add", 5, 5, 6)])
    start = [("const", 2, 1), ("const", 3, 4), ("const", 4, 3)]
    check("l" * 7, 0, [*start, counted(0, 2, 3, [("const", 1, 0), inner])])


def test_break_out_of_two_levels():
    start = [("const", 3, 1), ("const", 4, 5)]
    inner = counted(
        2,
        3,
        4,
        [("add", 5, 5, 0), ("if", 5, 4, [], [("if", 1, 5, [("leave", 1)], [("leave", 0)])])],
    )
    after = [("add", 6, 6, 3), ("const", 2, 0)]
    check("l" * 8, 2, [*start, counted(7, 3, 4, [inner, *after]), ("add", 6, 6, 7)])


def test_continue_of_an_outer_loop():
    start = [("const", 3, 1), ("const", 4, 4)]
    inner = counted(2, 3, 4, [("if", 1, 2, [("next", 1)], [("add", 5, 5, 0)])])
    check("l" * 8, 2, [*start, counted(7, 3, 4, [inner, ("sub", 5, 5, 3), ("const", 2, 0)])])


def test_early_return():
    start = [("const", 3, 1), ("const", 4, 6)]
    body = [("add", 5, 5, 0), ("if", 5, 1, [], [("const", 6, 99), ("return",)])]
    check(
        "l" * 8,
        2,
        [*start, ("block", [counted(7, 3, 4, body), ("const", 6, 50)]), ("add", 6, 6, 3)],
    )


def switch(chosen, scratch, codes, default):
    """codes[k] for chosen == k, which falls through; break leaves the outermost block."""
    dispatch = []
    for k in range(len(codes)):  # chosen < k + 1: case k
        dispatch += [("const", scratch, k + 1), ("if", chosen, scratch, [("leave", k)], [])]
    body = [*dispatch, ("leave", len(codes))]
    for code in [*codes, default]:
        body = [("block", body), *code]
    return ("block", body)


@pytest.mark.parametrize("breaks", range(8))
def test_switch(breaks):
    # in case k, len(codes) - k blocks are around what is inside of break's
    codes = [[("const", 2 + k, 10 + k), ("add", 6, 6, 0)] for k in range(3)]
    for k in range(3):
        if breaks >> k & 1:
            codes[k].append(("leave", 3 - k))
    check("l" * 7, 2, [switch(0, 1, codes, [("const", 5, 77)]), ("add", 6, 6, 2)])


def test_many_variables():
    # 150 of them move on by one in each round
    n = 150
    body = [("add", i, i + 1, 0) for i in range(n - 3)]
    start = [("const", n - 2, 1), ("const", n - 1, 9)]
    text = check("l" * (n + 1), 30, [*start, counted(n, n - 2, n - 1, body)])
    assert text.count("loop") == 1


def test_what_is_not_assigned_is_not_carried():
    text = check("l" * 4, 2, [("const", 2, 1), ("if", 0, 1, [("add", 3, 2, 0)], [])])
    assert next(line for line in text.splitlines() if " if " in line).count(": i64") == 1


# ---- random programs ----


class Random:
    """Loops end: each has a counter of its own, which nothing else assigns, and a limit."""

    def __init__(self, seed):
        self.r = random.Random(seed)
        self.plain = self.r.choice([3, 8, 70])
        self.types = "".join(self.r.choice("il") for _ in range(self.plain))
        self.counters = 0

    def variable(self, letter):
        return self.r.choice([i for i in range(self.plain) if self.types[i] == letter])

    def statement(self, depth, places):
        r = self.r
        kind = r.choices(
            ["plain", "if", "block", "loop", "jump"], [8, 4, 2, 2, 3 if places else 0.3]
        )[0]
        if kind == "jump":
            loops = [k for k, is_loop in enumerate(reversed(places)) if is_loop]
            if loops and r.random() < 0.4:
                return [("next", r.choice(loops))]
            return (
                [("leave", r.randrange(len(places)))]
                if places and r.random() < 0.9
                else [("return",)]
            )
        if kind == "plain" or depth == 0:
            a = r.randrange(self.plain)
            if r.random() < 0.2:
                return [("const", a, r.randrange(-9, 10))]
            letter = self.types[a]
            return [(r.choice(WORDS[1:5]), a, self.variable(letter), self.variable(letter))]
        if kind == "if":
            a = r.randrange(self.plain)
            b = self.variable(self.types[a])
            return [("if", a, b, self.body(depth - 1, places), self.body(depth - 1, places))]
        if kind == "block":
            return [("block", self.body(depth - 1, [*places, False]))]
        counter = self.counters
        self.counters += 1
        return [("COUNTED", counter, r.randrange(1, 4), self.body(depth - 1, [*places, True]))]

    def body(self, depth, places):
        return [s for _ in range(self.r.randrange(5)) for s in self.statement(depth, places)]


def with_counters(body, first, one, limit):
    """Loops get their counters, which begin anew where the loop does."""
    out = []
    for word, *rest in body:
        rest = [with_counters(p, first, one, limit) if isinstance(p, list) else p for p in rest]
        if word != "COUNTED":
            out.append((word, *rest))
            continue
        counter, rounds, inner = rest
        begin = [("const", limit, rounds), ("if", first + counter, limit, [], [("leave", 0)])]
        begin.append(("add", first + counter, first + counter, one))
        out += [("const", first + counter, 0), ("loop", begin + inner)]
    return out


@given(st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_random_programs(seed):
    g = Random(seed)
    body = g.body(4, []) + g.body(4, [])
    one, limit, first = g.plain, g.plain + 1, g.plain + 2
    types = g.types + "l" * (2 + g.counters)
    body = [("const", one, 1), *with_counters(body, first, one, limit)]
    check(types, min(g.plain, 6), body)
