"""The pass that decides compares by the conditions around them, against the scalar evaluator.

Random programs of guards, loops and index arithmetic; their arguments stand at the edges of the
types, where a proof that forgets about wrapping would be wrong. What the pass must find is listed
too.
"""

import os
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_eval import run
from simt import _core

MOST_SIZE = 2**62 - 1
SIZES = [0, 1, 2, 3, 5, 7, 100, MOST_SIZE - 1, MOST_SIZE]
I64 = [0, 1, -1, 2, 3, 6, -5, 2**31, 2**62, 2**63 - 1, 2**63 - 2, -(2**63), 1 - 2**63, -(2**62)]
I32 = [0, 1, -1, 2, 5, 2**31 - 1, 2**31 - 2, -(2**31), 1 - 2**31]
HEAD = "kernel @k(%0: ptr.global, %1: i64 size, %2: i64 size, %3: i64, %4: i64, %5: i32, %6: i32)"


class Program:
    """Compares count themselves: slot = slot * 31 + outcome + 1, at each pass."""

    def __init__(self, seed):
        self.r = random.Random(seed)
        self.lines, self.last, self.labels, self.slots = [], 6, 0, 0
        self.put("i64", "const 0")
        wide = ["%1", "%2", "%3", "%4", self.put("i64", "special tid.x", "i32")]
        wide += [self.put("i64", "special ctaid.x", "i32"), self.constant("i64")]
        self.region({"i64": wide, "i32": ["%5", "%6"], "i1": []}, 0, [], 25)
        body = "\n".join([*self.lines, "return"])
        self.text = f'{HEAD} file "" {{\n{body}\n}}\n'

    def new(self):
        self.last += 1
        return f"%{self.last}"

    def put(self, kind, text, first=None):
        name = self.new()
        self.lines.append(f"{name}: {first or kind} = {text}")
        return name if first is None else self.put(kind, f"sext {name}")

    def constant(self, kind):
        edge = I64 if kind == "i64" else I32
        value = self.r.choice([1, 1, -1, 2, -2, 3, self.r.choice(edge)])
        return self.put(kind, f"const {value % 2 ** int(kind[1:])}")

    def pick(self, known, kind):
        values = known[kind]
        return self.r.choice(values[-4:] if self.r.random() < 0.5 else values)

    def number(self, known):
        """A new number from those that are known."""
        kind = self.r.choice(["i64", "i64", "i64", "i32"])
        a, b = self.pick(known, kind), self.pick(known, kind)
        which = self.r.random()
        if which < 0.55:
            op = self.r.choice(["add", "add", "sub"])
            value = self.put(kind, f"{op} {a}, {self.constant(kind)}")
        elif which < 0.75:
            op = self.r.choice(["add", "sub", "min.s", "max.s", "rem.s", "rem.u", "and", "div.s"])
            value = self.put(kind, f"{op} {a}, {b}")
        elif which < 0.85 and known["i1"]:
            value = self.put(kind, f"select {self.pick(known, 'i1')}, {a}, {b}")
        elif which < 0.95:
            kind = "i64"
            value = self.put(kind, f"{self.r.choice(['sext', 'zext'])} {self.pick(known, 'i32')}")
        else:
            kind = "i32"
            value = self.put(kind, f"trunc {self.pick(known, 'i64')}")
        known[kind].append(value)

    def compare(self, known):
        kind = self.r.choice(["i64", "i64", "i64", "i32"])
        op = self.r.choice(["lt.s", "lt.s", "le.s", "lt.u", "lt.u", "le.u", "eq", "ne"])
        value = self.put("i1", f"{op} {self.pick(known, kind)}, {self.pick(known, kind)}")
        at = self.put("ptr.global", f"ptradd %0, {self.put('i64', f'const {4 * self.slots}')}")
        self.slots += 1
        old = self.put("i32", f"load {at}")
        more = self.put("i32", f"mul {old}, {self.put('i32', 'const 31')}")
        more = self.put("i32", f"add {more}, {self.put('i32', f'zext {value}')}")
        more = self.put("i32", f"add {more}, {self.put('i32', 'const 1')}")
        self.lines.append(f"store {at}, {more}")
        known["i1"].append(value)
        return value

    def condition(self, known):
        value = self.compare(known)
        if self.r.random() < 0.4:
            value = self.put("i1", f"{self.r.choice(['and', 'or'])} {value}, {self.compare(known)}")
        if self.r.random() < 0.15:
            value = self.put("i1", f"not {value}")
        return value

    def region(self, known, depth, labels, budget):
        known = {kind: list(values) for kind, values in known.items()}
        for _ in range(self.r.randint(2, 6)):
            which = self.r.random()
            if which < 0.45:
                self.number(known)
            elif which < 0.65 or depth > 3:
                self.compare(known)
            elif which < 0.9:
                self.branch(known, depth, labels, budget)
            else:
                self.loop(known, depth, labels, budget)

    def leave(self, labels, own):
        if labels and self.r.random() < 0.3:
            self.lines.append(f"br @{self.r.choice(labels)}")
        elif self.r.random() < 0.1:
            self.lines.append("return")
        else:
            self.lines.append(f"br @{own}")

    def branch(self, known, depth, labels, budget):
        condition = self.condition(known)
        own = self.labels
        self.labels += 1
        self.lines.append(f"if @{own} {condition} {{")
        self.region(known, depth + 1, [*labels, own], budget)
        self.leave(labels, own)
        self.lines.append("} else {")
        if self.r.random() < 0.4:
            self.region(known, depth + 1, [*labels, own], budget)
        self.leave(labels, own)
        self.lines.append("}")

    def loop(self, known, depth, labels, budget):
        """At most three rounds; the carried numbers go where they like."""
        own = self.labels
        self.labels += 2
        kind = self.r.choice(["i64", "i64", "i32"])
        x, y, count = self.new(), self.new(), self.new()
        first = self.put("i32", "const 0")
        start = (
            f"loop @{own} ({x}: {kind} = {self.pick(known, kind)}, "
            f"{y}: i64 = {self.pick(known, 'i64')}, {count}: i32 = {first}) {{"
        )
        self.lines.append(start)
        inner = {k: list(v) for k, v in known.items()}
        inner[kind].append(x)
        inner["i64"].append(y)
        most = self.put("i32", "const 3")
        going = self.put("i1", f"lt.s {count}, {most}")
        if self.r.random() < 0.7:
            going = self.put("i1", f"and {going}, {self.condition(inner)}")
        self.lines.append(f"if @{own + 1} {going} {{\nbr @{own + 1}\n}} else {{\nbr @{own}\n}}")
        self.region(inner, depth + 1, [*labels, own], budget)
        step = self.constant(kind) if self.r.random() < 0.7 else self.pick(known, kind)
        op = self.r.choice(["add", "add", "sub"])
        x = self.put(kind, f"{op} {x}, {step}") if self.r.random() < 0.8 else step
        y = self.put("i64", f"add {y}, {self.pick(known, 'i64')}") if self.r.random() < 0.6 else y
        count = self.put("i32", f"add {count}, {self.put('i32', 'const 1')}")
        self.lines.append(f"continue @{own} {x}, {y}, {count}\n}}")

    def arguments(self):
        r = self.r
        small = r.random() < 0.5
        pick = (lambda values: r.choice(values[:6])) if small else r.choice
        return [np.zeros(4 * self.slots + 4, np.uint8), pick(SIZES), pick(SIZES)] + [
            pick(values) for values in (I64, I64, I32, I32)
        ]


def check(seed):
    program = Program(seed)
    for _ in range(4):
        arguments = program.arguments()
        want = [np.zeros_like(arguments[0]), *arguments[1:]]
        run(program.text, 1, 1, want)
        for options in ({"optimize": True}, {"optimize": False}):
            got = [np.zeros_like(arguments[0]), *arguments[1:]]
            _core.ir_run(program.text, 1, 1, got, **options)
            assert (got[0] == want[0]).all(), (seed, arguments[1:], options)


@given(st.integers(0, 2**32))
@settings(max_examples=int(os.environ.get("SIMT_IR_EXAMPLES", "60")), deadline=None)
def test_decided_compares_against_the_evaluator(seed):
    check(seed)


def left(text):
    """Compares that are left in what the optimiser makes of a kernel of three lines of head."""
    made = _core.ir_check(
        f'kernel @k(%0: ptr.global, %1: i64 size, %2: i64, %3: i32) file "" {{\n{text}\n}}\n',
        passes="fold,choose,grid,bounds,fold,dce",
    )
    return [line.split("=")[1].split()[0] for line in made.splitlines() if ": i1" in line]


GUARDED = """
%4: i32 = special tid.x
%5: i64 = sext %4
%6: i64 = const 1
%7: i64 = sub %1, %6
{first}
if @0 %8 {{
{inside}
%20: i8 = zext %19
store %0, %20
br @0
}} else {{
br @0
}}
return"""


@pytest.mark.parametrize(
    "first, inside, count",
    [
        ("%8: i1 = lt.s %5, %1", "%19: i1 = lt.u %5, %1", 1),  # i < n
        ("%8: i1 = lt.s %5, %7", "%9: i64 = add %5, %6\n%19: i1 = lt.u %9, %1", 1),  # i < n - 1
        ("%8: i1 = lt.s %5, %1", "%9: i64 = add %5, %6\n%19: i1 = lt.u %9, %1", 2),
        ("%8: i1 = lt.s %6, %5", "%9: i64 = sub %5, %6\n%19: i1 = le.s %6, %9", 1),  # 1 < i
        ("%8: i1 = lt.s %2, %1", "%19: i1 = lt.u %2, %1", 2),  # may be negative
        ("%8: i1 = lt.u %2, %1", "%19: i1 = lt.s %2, %1", 1),
        ("%8: i1 = lt.s %2, %7", "%9: i64 = add %2, %6\n%19: i1 = lt.s %9, %1", 1),
        ("%8: i1 = eq %5, %1", "%19: i1 = le.s %1, %5", 1),
        ("%8: i1 = lt.s %5, %1", "%9: i64 = rem.s %2, %1\n%19: i1 = lt.s %9, %1", 1),
        ("%8: i1 = lt.s %5, %1", "%9: i64 = min.s %2, %7\n%19: i1 = lt.s %9, %1", 1),
        (  # -MIN is MIN
            "%9: i64 = const 0\n%10: i64 = sub %9, %2\n%8: i1 = lt.s %5, %1",
            "%11: i64 = const 9223372036854775808\n%19: i1 = lt.s %11, %10",
            2,
        ),
        (  # of a range with a step that is positive
            "%9: i64 = add %5, %6\n%10: i64 = const 0\n"
            "%11: i1 = lt.s %10, %9\n%12: i1 = lt.s %2, %1\n%13: i1 = and %11, %12\n"
            "%14: i1 = lt.s %9, %10\n%15: i1 = lt.s %1, %2\n%16: i1 = and %14, %15\n"
            "%8: i1 = or %13, %16",
            "%19: i1 = lt.s %2, %1",
            1,
        ),
    ],
)
def test_what_is_decided(first, inside, count):
    assert len(left(GUARDED.format(first=first, inside=inside))) == count


def test_loop_that_counts_up_and_one_that_counts_down():
    counting = """
%4: i64 = const 1
%5: i64 = const {start}
loop @0 (%6: i64 = {first}) {{
%7: i1 = {going}
if @1 %7 {{
br @1
}} else {{
br @0
}}
%8: i1 = lt.u %6, %1
%9: i8 = zext %8
store %0, %9
%10: i64 = {op} %6, %4
continue @0 %10
}}
return"""
    up = counting.format(start=0, first="%5", going="lt.s %6, %1", op="add")
    assert left(up) == ["lt.s"]
    unclear = counting.format(start=0, first="%2", going="lt.s %6, %1", op="add")
    assert len(left(unclear)) == 2
    minus = 2**64 - 1
    down = counting.format(start=minus, first="%11", going="lt.s %5, %6", op="sub")
    down = down.replace("loop", "%11: i64 = sub %1, %4\nloop", 1)
    assert left(down) == ["lt.s"]
