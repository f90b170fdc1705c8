"""Values that grow by a step along each axis of the block: memory, conditions, conversions."""

import random

import numpy as np
import pytest
from simt import _core

BLOCKS = [(16, 4, 1), (1, 8, 1), (3, 5, 2), (1, 1, 7), (8, 1, 3), (1, 4, 6), (32, 8, 1), (33, 1, 1)]


class Writer:
    """Random affine index arithmetic: text, and the same in NumPy over the block's threads."""

    def __init__(self, seed, block):
        self.pick = random.Random(seed)
        self.lines, self.count, self.values = [], 4, []
        z, y, x = np.meshgrid(*(np.arange(n) for n in block[::-1]), indexing="ij")
        axes = [v.ravel().astype(np.int64) for v in (x, y, z)]
        self.runtime = self.pick.randrange(-9, 40)
        for axis, v in zip("xyz", axes):
            self.values.append(
                (self.new("i64", f"sext {self.new('i32', f'special tid.{axis}')}"), v)
            )
        self.values.append(("%3", np.full(len(axes[0]), self.runtime)))
        self.axes = axes

    def new(self, kind, text):
        name = f"%{self.count}"
        self.count += 1
        self.lines.append(f"{name}: {kind} = {text}")
        return name

    def const(self, value):
        return self.new("i64", f"const {value & (1 << 64) - 1}"), np.full(len(self.axes[0]), value)

    def step(self):
        """One more value from those there are."""
        (a, x), (b, y) = self.pick.choice(self.values), self.pick.choice(self.values)
        op = self.pick.choice(["add", "sub", "mul", "mul", "constant", "select", "narrow"])
        if op == "mul" and abs(x).max() * abs(y).max() < 10**6:
            self.values.append((self.new("i64", f"mul {a}, {b}"), x * y))
        elif op == "constant":
            c, z = self.const(self.pick.randrange(-3, 9))
            self.values.append((self.new("i64", f"mul {a}, {c}"), x * z))
        elif op == "select":
            c, z = self.const(self.pick.randrange(-9, 50))
            test = self.new("i1", f"lt.s %3, {c}")
            same = self.new("i64", f"add {a}, {c}")
            other, w = self.const(self.pick.randrange(9))
            also = self.new("i64", f"add {a}, {other}")
            self.values.append((self.new("i64", f"select {test}, {same}, {also}"),
                                x + (z if self.runtime < z[0] else w)))  # fmt: skip
        elif op == "narrow" and abs(x).max() < 2**31:
            half = self.new("i32", f"trunc {a}")
            self.values.append((self.new("i64", f"sext {half}"), x))
        else:
            op = "sub" if op == "sub" else "add"
            self.values.append((self.new("i64", f"{op} {a}, {b}"), x - y if op == "sub" else x + y))

    def condition(self):
        """A conjunction of compares; its lanes."""
        name, lanes = None, True
        for _ in range(self.pick.randrange(1, 4)):
            (a, x), (b, y) = self.pick.choice(self.values), self.pick.choice(self.values)
            op = self.pick.choice(["lt.s", "le.s", "lt.u", "le.u", "eq", "ne"])
            u, v = (x.view(np.uint64), y.view(np.uint64)) if op.endswith("u") else (x, y)
            one = self.new("i1", f"{op} {a}, {b}")
            name = one if name is None else self.new("i1", f"and {name}, {one}")
            lanes = lanes & {"lt": u < v, "le": u <= v, "eq": u == v, "ne": u != v}[op[:2]]
        return name, lanes


@pytest.mark.parametrize("block", BLOCKS)
def test_random_rows(block):
    for seed in range(25):
        w = Writer(seed, block)
        for _ in range(12):
            w.step()
        n = len(w.axes[0])
        memory = np.random.default_rng(seed).integers(0, 1 << 30, 4096).astype(np.int32)
        (index, at), (value, put) = w.pick.choice(w.values), w.pick.choice(w.values)
        four, _ = w.const(4)
        base = 2048 - (int(at.min()) + int(at.max())) // 2
        if at.max() - at.min() > 4000:
            continue
        shift, _ = w.const(base)
        moved = w.new("i64", f"add {index}, {shift}")
        offset = w.new("i64", f"mul {moved}, {four}")
        source = w.new("ptr.global", f"ptradd %0, {offset}")
        want = np.full(2 * n, -1, np.int64)
        thread = w.const(0)[0]
        for (name, _), size in zip(w.values[:3], (1, block[0], block[0] * block[1])):
            part = w.new("i64", f"mul {name}, {w.const(size)[0]}")
            thread = w.new("i64", f"add {thread}, {part}")
        eight, _ = w.const(8)
        target = w.new("ptr.global", f"ptradd %1, {w.new('i64', f'mul {thread}, {eight}')}")
        cond, lanes = w.condition()
        loaded = w.new("i32", f"load {source}")
        wide = w.new("i64", f"sext {loaded}")
        w.lines.append(f"store {target}, {wide}")
        w.lines.append(f"if @0 {cond} {{")
        again = w.new("i32", f"load {source}")
        total = w.new("i64", f"add {w.new('i64', f'sext {again}')}, {value}")
        past, _ = w.const(8 * n)
        second = w.new("ptr.global", f"ptradd {target}, {past}")
        w.lines.append(f"store {second}, {total}\nbr @0\n}} else {{\nbr @0\n}}")
        want[:n] = memory[at + base]
        want[n : 2 * n] = np.where(lanes, memory[at + base] + put, -1)
        text = "kernel @rows(%0: ptr.global, %1: ptr.global, %2: ptr.global, %3: i64) {\n"
        text += "\n".join(w.lines) + "\nreturn\n}\n"
        for optimize in (False, True):
            out = np.full(2 * n, -1, np.int64)
            _core.ir_run(text, 1, block, [memory, out, out, w.runtime], optimize=optimize)
            assert (out == want).all(), (seed, optimize)


PITCH = """kernel @pitch(%0: ptr.global, %1: ptr.global, %2: i64, %3: i64) {
  %4: i32 = special tid.x
  %5: i32 = special tid.y
  %6: i32 = special tid.z
  %7: i64 = sext %4
  %8: i64 = sext %5
  %9: i64 = sext %6
  %10: i64 = mul %8, %2
  %11: i64 = mul %9, %3
  %12: i64 = add %10, %7
  %13: i64 = sub %12, %11
  %14: i64 = const 2
  %15: i64 = shl %7, %14
  %16: i64 = mul %8, %2
  %17: i64 = mul %2, %3
  %18: i64 = mul %17, %9
  %19: i64 = add %16, %18
  %20: i64 = const 4
  %21: i64 = mul %19, %20
  %22: i64 = add %21, %15
  %23: ptr.global = ptradd %0, %22
  %24: ptr.global = ptradd %1, %22
  %25: i32 = load %23
  %26: i32 = trunc %13
  %27: i32 = add %25, %26
  %28: i64 = const 5
  %29: i1 = lt.s %13, %28
  %30: i1 = lt.u %7, %3
  %31: i1 = and %29, %30
  if @0 %31 {
    store %24, %27
    br @0
  } else {
    br @0
  }
  %40: i32 = const 1
  %41: i32 = atomic.add %24, %40
  return
}
"""


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("pitch", [33, 40])
def test_pitch_known_at_run_time(block, pitch):
    height = 9
    a = np.random.default_rng(5).integers(0, 1000, (8, height, pitch)).astype(np.int32)
    out, want = np.full_like(a, -7), np.full_like(a, -7)
    z, y, x = np.meshgrid(*(np.arange(n) for n in block[::-1]), indexing="ij")
    steps = y * pitch + x - z * height
    lanes = (steps < 5) & (x < height)
    part = np.s_[: block[2], : block[1], : block[0]]
    want[part] = np.where(lanes, a[part] + steps, want[part]) + 1
    _core.ir_run(PITCH, 1, block, [a, out, pitch, height])
    assert (out == want).all()
