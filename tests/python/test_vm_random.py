"""Random structured programs: the vm against a thread-by-thread reference in Python."""

import random

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st
from simt import _core

OPS = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "xor": lambda x, y: x ^ y,
    "min.s": min,
    "max.s": max,
}
COMPARES = {"lt.s": lambda x, y: x < y, "eq": lambda x, y: x == y, "le.s": lambda x, y: x <= y}


def wrap(x):
    return (x + 2**31) % 2**32 - 2**31


class Program:
    """A tree of tuples; values are numbers, labels are numbers."""

    def __init__(self, seed, threads):
        self.random = random.Random(seed)
        self.values = 10
        self.labels = 0
        self.budget = 40
        self.threads = threads
        # tid, data, parameter, constants, sizes of the block and the grid, block
        self.start = [0, 1, 2, 3, 4, 5, 6, 7]
        self.body = self.region(0, list(self.start), [], None)

    def new(self):
        self.values += 1
        return self.values

    def pick(self, visible):
        return self.random.choice(visible[-6:] if self.random.random() < 0.6 else visible)

    def region(self, depth, visible, labels, own):
        """own: the construct it belongs to, or None for the body."""
        visible, out = list(visible), []
        for _ in range(self.random.randint(1, 5)):
            self.budget -= 1
            if self.budget > 0 and depth < 4 and self.random.random() < 0.45:
                out.append(self.construct(depth, visible, labels))
                visible.append(out[-1][2])
            elif self.random.random() < 0.25:
                dst = self.new()
                out.append(("bump", self.pick(visible), dst))
                visible.append(dst)
            else:
                dst = self.new()
                op = self.random.choice(list(OPS))
                out.append(("op", op, dst, self.pick(visible), self.pick(visible)))
                visible.append(dst)
        out.append(self.terminator(visible, labels, own))
        return out

    def terminator(self, visible, labels, own):
        if own is None:
            return ("return", self.pick(visible))
        if self.random.random() < 0.7:
            if own[0] == "loop":
                return ("continue", own, self.pick(visible), self.pick(visible))
            return ("br", own, self.pick(visible))
        target = self.random.choice(labels)
        if self.random.random() < 0.1:
            return ("return", self.pick(visible))
        if target[0] == "loop" and self.random.random() < 0.5:
            return ("continue", target, self.pick(visible), self.pick(visible))
        return ("br", target, self.pick(visible))

    def construct(self, depth, visible, labels):
        self.labels += 1
        kind = self.random.choice(["if", "if", "loop", "block"])
        dst = self.new()
        if kind == "if":
            label = ("if", self.labels)
            cond = (self.random.choice(list(COMPARES)), self.pick(visible), self.pick(visible))
            inner = [*labels, label]
            yes = self.region(depth + 1, visible, inner, label)
            no = self.region(depth + 1, visible, inner, label)
            return ("if", label, dst, cond, yes, no)
        if kind == "block":
            label = ("block", self.labels)
            return (
                "block", label, dst, self.region(depth + 1, visible, [*labels, label], label)
            )  # fmt: skip
        counter, x, y = self.new(), self.new(), self.new()
        label = ("loop", self.labels, counter)
        init = (self.pick(visible), self.pick(visible))
        body = self.region(depth + 1, [*visible, counter, x, y], [*labels, label], label)
        return ("loop", label, dst, (counter, x, y), init, body)

    # ---- as IR ----

    def text(self):
        self.out = []
        self.temp = 5000
        self.numbers = {}
        self.emit(self.body)
        lines = "\n".join(self.out)
        return f"""kernel @k(%1000: ptr.global, %1001: ptr.global, %2: i32) file "" {{
%7: i32 = special ctaid.x
%5: i32 = special ntid.x
%6: i32 = special nctaid.x
%1004: i32 = mul %7, %5
%0: i32 = special tid.x
%1005: i32 = add %1004, %0
%1006: i64 = sext %1005
%1007: i64 = const 4
%1008: i64 = mul %1006, %1007
%1009: ptr.global = ptradd %1000, %1008
%1010: ptr.global = ptradd %1001, %1008
%3: i32 = const 3
%4: i32 = const 4294967295
%1011: i32 = const 1
%1012: i32 = const 4
%1: i32 = load %1009
{lines}
}}
"""

    def fresh(self):
        self.temp += 1
        return f"%{self.temp}"

    def number(self, label):
        """Constructs are numbered in the order of their text."""
        return self.numbers.setdefault(label, len(self.numbers))

    def emit(self, region):
        for s in region:
            getattr(self, "emit_" + s[0].replace("continue", "next").replace("return", "end"))(s)

    def emit_op(self, s):
        self.out.append(f"%{s[2]}: i32 = {s[1]} %{s[3]}, %{s[4]}")

    def emit_bump(self, s):
        old = self.fresh()
        self.out.append(f"{old}: i32 = load %1010")
        self.out.append(f"%{s[2]}: i32 = add {old}, %{s[1]}")
        self.out.append(f"store %1010, %{s[2]}")

    def emit_if(self, s):
        op, x, y = s[3]
        cond = self.fresh()
        self.out.append(f"{cond}: i1 = {op} %{x}, %{y}")
        self.out.append(f"%{s[2]}: i32 = if @{self.number(s[1])} {cond} {{")
        self.emit(s[4])
        self.out.append("} else {")
        self.emit(s[5])
        self.out.append("}")

    def emit_block(self, s):
        self.out.append(f"%{s[2]}: i32 = block @{self.number(s[1])} {{")
        self.emit(s[3])
        self.out.append("}")

    def emit_loop(self, s):
        (c, x, y), (a, b), label = s[3], s[4], self.number(s[1])
        self.out.append(
            f"%{s[2]}: i32 = loop @{label} (%{c}: i32 = %4, %{x}: i32 = %{a}, %{y}: i32 = %{b}) {{"
        )
        done = self.fresh()
        self.out.append(f"{done}: i1 = lt.s %1012, %{c}")
        check = self.number(("check", label))
        self.out.append(f"if @{check} {done} {{\nbr @{label} %{x}\n}} else {{")
        self.out.append(f"br @{check}\n}}")
        self.emit(s[5])
        self.out.append("}")

    def emit_br(self, s):
        self.out.append(f"br @{self.number(s[1])} %{s[2]}")

    def emit_next(self, s):
        count = self.fresh()
        self.out.append(f"{count}: i32 = add %{s[1][2]}, %1011")
        self.out.append(f"continue @{self.number(s[1])} {count}, %{s[2]}, %{s[3]}")

    def emit_end(self, s):
        self.out.append(f"store %1009, %{s[1]}\nreturn")

    # ---- run for one thread ----

    def run(self, block, tid, blocks, data, parameter):
        self.memory = 0
        self.env = {
            0: tid,
            1: data,
            2: parameter,
            3: 3,
            4: -1,
            5: self.threads,
            6: blocks,
            7: block,
        }
        end = self.run_region(self.body)
        return end[1], self.memory

    def run_region(self, region):
        env = self.env
        for s in region:
            if s[0] == "op":
                env[s[2]] = wrap(OPS[s[1]](env[s[3]], env[s[4]]))
            elif s[0] == "bump":
                self.memory = env[s[2]] = wrap(self.memory + env[s[1]])
            elif s[0] == "return":
                return ("return", env[s[1]])
            elif s[0] == "br":
                return ("br", s[1], env[s[2]])
            elif s[0] == "continue":
                return ("continue", s[1], wrap(env[s[1][2]] + 1), env[s[2]], env[s[3]])
            else:
                end = self.run_construct(s)
                if end is not None:
                    return end
        raise AssertionError("a region ends in a terminator")

    def run_construct(self, s):
        env = self.env
        if s[0] == "if":
            op, x, y = s[3]
            end = self.run_region(s[4] if COMPARES[op](env[x], env[y]) else s[5])
        elif s[0] == "block":
            end = self.run_region(s[3])
        else:
            end = self.run_loop(s)
        if end[0] == "br" and end[1] == s[1]:
            env[s[2]] = end[2]
            return None
        return end

    def run_loop(self, s):
        env = self.env
        carried = (-1, env[s[4][0]], env[s[4][1]])
        while True:
            env.update(zip(s[3], carried))
            if env[s[3][0]] > 4:
                return ("br", s[1], env[s[3][1]])
            end = self.run_region(s[5])
            if end[0] != "continue" or end[1] != s[1]:
                return end
            carried = end[2:]


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**9), st.sampled_from([1, 7, 32, 64]), st.booleans())
@example(1021991, 64, True)  # lanes that continue from different rounds of an inner loop
def test_random_programs(seed, threads, optimize):
    program = Program(seed, threads)
    text = program.text()
    blocks = 2
    data = np.random.default_rng(seed).integers(-4, 5, threads * blocks).astype(np.int32)
    parameter = seed % 5 - 2
    want = [program.run(*divmod(i, threads), blocks, int(x), parameter) for i, x in enumerate(data)]
    for options in ({}, {"isa": "generic"}, {"max_budget": 2}):
        out, memory = data.copy(), np.zeros_like(data)
        args = [out, memory, parameter]
        _core.ir_run(text, blocks, threads, args, optimize=optimize, **options)
        assert list(zip(out.tolist(), memory.tolist())) == want, text
