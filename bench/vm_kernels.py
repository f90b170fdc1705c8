"""Times of typical GPU kernels in the vm, from IR text; checked against NumPy once.

vm_kernels.py [NAME...] [--rounds N] [--threads N]

Calls what only a build with -Dtest_hooks=enabled has (every development build).
"""

import argparse

import numpy as np
from simt import _core

F32, I32, I64, I1 = "f32", "i32", "i64", "i1"


class Kernel:
    """Writes IR text: values are strings, operators are methods."""

    def __init__(self, *params):
        self.lines, self.count, self.labels = [], len(params), 0
        self.params = [f"%{k}" for k in range(len(params))]
        self.head = ", ".join(f"%{k}: {t}" for k, t in enumerate(params))

    def new(self, kind, text):
        """A value made by an instruction."""
        name = f"%{self.count}"
        self.count += 1
        self.lines.append(f"{name}: {kind} = {text}")
        return name

    def put(self, text):
        """An instruction without a result."""
        self.lines.append(text)

    def op(self, kind, op, *args):
        """A value from others."""
        return self.new(kind, f"{op} " + ", ".join(args))

    def const(self, kind, value):
        """A constant."""
        bits = np.float32(value).view(np.uint32) if kind == F32 else value
        return self.new(kind, f"const {int(bits)}")

    def special(self, which):
        """A thread coordinate as i64."""
        return self.op(I64, "sext", self.new(I32, f"special {which}"))

    def global_index(self, axis):
        """ctaid * ntid + tid as i64."""
        first = self.op(I32, "mul", self.new(I32, f"special ctaid.{axis}"),
                        self.new(I32, f"special ntid.{axis}"))  # fmt: skip
        tid = self.new(I32, f"special tid.{axis}")
        return self.op(I64, "sext", self.op(I32, "add", first, tid))

    def at(self, pointer, index, size=4, space="global"):
        """The address of an element."""
        offset = self.op(I64, "mul", index, self.const(I64, size))
        return self.op(f"ptr.{space}", "ptradd", pointer, offset)

    def mad(self, a, b, c, kind=I64):
        """a * b + c of integers."""
        return self.op(kind, "add", self.op(kind, "mul", a, b), c)

    def begin_if(self, condition):
        """Opens an if; its label."""
        label = self.labels
        self.labels += 1
        self.put(f"if @{label} {condition} {{")
        return label

    def end_if(self, label):
        """Closes the if, with an empty else part."""
        self.put(f"br @{label}\n}} else {{\nbr @{label}\n}}")

    def begin_loop(self, **carried):
        """Opens a loop over carried values name=(type, init): label and their names."""
        label = self.labels
        self.labels += 1
        names = [f"%{self.count + k}" for k in range(len(carried))]
        self.count += len(carried)
        text = ", ".join(f"{n}: {t} = {v}" for n, (t, v) in zip(names, carried.values()))
        self.put(f"loop @{label} ({text}) {{")
        return label, len(self.lines) - 1, list(carried.values()), names

    def leave_unless(self, loop, condition, results):
        """Leaves the loop with results (types, values) unless the condition holds."""
        label = self.labels
        self.labels += 1
        values = " " + ", ".join(v for _, v in results) if results else ""
        self.put(f"if @{label} {condition} {{\nbr @{label}\n}} else {{\nbr @{loop[0]}{values}\n}}")
        names = [f"%{self.count + k}" for k in range(len(results))]
        self.count += len(results)
        made = ", ".join(f"{n}: {t}" for n, (t, _) in zip(names, results))
        self.lines[loop[1]] = (made + " = " if made else "") + self.lines[loop[1]]
        return names

    def end_loop(self, loop, *values):
        """Closes the loop: the next round's carried values."""
        self.put(f"continue @{loop[0]} " + ", ".join(values) + "\n}")

    def text(self):
        """The kernel."""
        return f'kernel @bench({self.head}) file "" {{\n' + "\n".join(self.lines) + "\nreturn\n}\n"


P = "ptr.global"


def guarded(k, *pairs):
    """Opens one if per (index, bound); the labels to close."""
    return [k.begin_if(k.op(I1, "lt.s", i, n)) for i, n in pairs]


def close(k, labels):
    """Closes them."""
    for label in reversed(labels):
        k.end_if(label)


def mandelbrot(size=1024, most=200):
    k = Kernel(P)
    x, y = k.global_index("x"), k.global_index("y")
    n = k.const(I64, size)
    opened = guarded(k, (x, n), (y, n))
    scale = k.const(F32, 3.0 / size)
    cr = k.op(F32, "fadd", k.op(F32, "fmul", k.op(F32, "sitofp", x), scale), k.const(F32, -2.0))
    ci = k.op(F32, "fadd", k.op(F32, "fmul", k.op(F32, "sitofp", y), scale), k.const(F32, -1.5))
    zero, four, one = k.const(F32, 0), k.const(F32, 4), k.const(I32, 1)
    limit = k.const(I32, most)
    loop = k.begin_loop(i=(I32, k.const(I32, 0)), zr=(F32, zero), zi=(F32, zero))
    i, zr, zi = loop[3]
    (count,) = k.leave_unless(loop, k.op(I1, "lt.s", i, limit), [(I32, i)])
    rr, ii = k.op(F32, "fmul", zr, zr), k.op(F32, "fmul", zi, zi)
    inside = k.op(I1, "fle", k.op(F32, "fadd", rr, ii), four)
    label = k.begin_if(inside)
    k.put(f"br @{label}\n}} else {{\nbr @{loop[0]} {i}\n}}")
    re = k.op(F32, "fadd", k.op(F32, "fsub", rr, ii), cr)
    ri = k.op(F32, "fmul", zr, zi)
    im = k.op(F32, "fadd", k.op(F32, "fadd", ri, ri), ci)
    k.end_loop(loop, k.op(I32, "add", i, one), re, im)
    k.put(f"store {k.at('%0', k.mad(y, n, x))}, {count}")
    close(k, opened)
    out = np.zeros((size, size), np.int32)

    def check():
        f = np.float32
        cr = (np.arange(size, dtype=f) * f(3.0 / size) + f(-2.0))[None, :]
        ci = (np.arange(size, dtype=f) * f(3.0 / size) + f(-1.5))[:, None]
        z = [np.zeros((size, size), f), np.zeros((size, size), f)]
        count, live = np.zeros((size, size), np.int32), np.ones((size, size), bool)
        for _ in range(most):
            rr, ii = z[0] * z[0], z[1] * z[1]
            live &= rr + ii <= 4
            count += live
            ri = z[0] * z[1]
            with np.errstate(all="ignore"):
                z = [rr - ii + cr, ri + ri + ci]
        return (count == out).mean() > 0.9999

    grid = -(-size // 16)
    return k.text(), (grid, grid), (16, 16), [out], check


def matmul(size=512, tile=16):
    k = Kernel(P, P, P)
    n = k.const(I64, size)
    tx, ty = k.special("tid.x"), k.special("tid.y")
    col, row = k.global_index("x"), k.global_index("y")
    sa = k.new("ptr.shared", f"alloc {tile * tile * 4}")
    sb = k.new("ptr.shared", f"alloc {tile * tile * 4}")
    t = k.const(I64, tile)
    mine = k.mad(ty, t, tx)
    to_a, to_b = k.at(sa, mine, 4, "shared"), k.at(sb, mine, 4, "shared")
    tiles, zero, one = k.const(I64, size // tile), k.const(I64, 0), k.const(I64, 1)
    loop = k.begin_loop(i=(I64, zero), acc=(F32, k.const(F32, 0)))
    i, acc = loop[3]
    (total,) = k.leave_unless(loop, k.op(I1, "lt.s", i, tiles), [(F32, acc)])
    first = k.op(I64, "mul", i, t)
    a = k.new(F32, "load " + k.at("%0", k.mad(row, n, k.op(I64, "add", first, tx))))
    k.put(f"store {to_a}, {a}")
    b = k.new(F32, "load " + k.at("%1", k.mad(k.op(I64, "add", first, ty), n, col)))
    k.put(f"store {to_b}, {b}")
    k.put("barrier")
    inner = k.begin_loop(j=(I64, zero), s=(F32, acc))
    j, s = inner[3]
    (part,) = k.leave_unless(inner, k.op(I1, "lt.s", j, t), [(F32, s)])
    x = k.new(F32, "load " + k.at(sa, k.mad(ty, t, j), 4, "shared"))
    y = k.new(F32, "load " + k.at(sb, k.mad(j, t, tx), 4, "shared"))
    k.end_loop(inner, k.op(I64, "add", j, one), k.op(F32, "fma", x, y, s))
    k.put("barrier")
    k.end_loop(loop, k.op(I64, "add", i, one), part)
    k.put(f"store {k.at('%2', k.mad(row, n, col))}, {total}")
    rng = np.random.default_rng(0)
    a, b = (rng.random((size, size), np.float32) for _ in range(2))
    out = np.zeros((size, size), np.float32)
    grid = size // tile

    def check():
        return np.allclose(a @ b, out, rtol=1e-4)

    return k.text(), (grid, grid), (tile, tile), [a, b, out], check


def nbody(n=4096):
    k = Kernel(P, P)
    i, zero, one, bound = k.global_index("x"), k.const(I64, 0), k.const(I64, 1), k.const(I64, n)
    base = k.at("%0", i, 16)
    fields = []
    for f in range(3):
        fields.append(k.new(F32, "load " + k.op(P, "ptradd", base, k.const(I64, 4 * f))))
    fzero, soft, half = k.const(F32, 0), k.const(F32, 1e-3), k.const(F32, 1.0)
    offsets = [k.const(I64, 4 * f) for f in range(4)]
    loop = k.begin_loop(j=(I64, zero), x=(F32, fzero), y=(F32, fzero), z=(F32, fzero))
    j, *acc = loop[3]
    out = k.leave_unless(loop, k.op(I1, "lt.s", j, bound), [(F32, a) for a in acc])
    other = k.at("%0", j, 16)
    theirs = [k.new(F32, "load " + k.op(P, "ptradd", other, o)) for o in offsets]
    d = [k.op(F32, "fsub", theirs[f], fields[f]) for f in range(3)]
    r = k.op(F32, "fma", d[0], d[0], soft)
    r = k.op(F32, "fma", d[1], d[1], r)
    r = k.op(F32, "fma", d[2], d[2], r)
    inverse = k.op(F32, "fdiv", half, k.op(F32, "fsqrt", r))
    cube = k.op(F32, "fmul", k.op(F32, "fmul", inverse, inverse), inverse)
    s = k.op(F32, "fmul", theirs[3], cube)
    sums = [k.op(F32, "fma", d[f], s, acc[f]) for f in range(3)]
    k.end_loop(loop, k.op(I64, "add", j, one), *sums)
    target = k.at("%1", i, 12)
    for f in range(3):
        k.put(f"store {k.op(P, 'ptradd', target, offsets[f])}, {out[f]}")
    body = np.random.default_rng(1).random((n, 4), np.float32)
    force = np.zeros((n, 3), np.float32)

    def check():
        d = body[None, :, :3].astype(np.float64) - body[:64, None, :3]
        r = (d * d).sum(2) + 1e-3
        want = (d * (body[None, :, 3] * r**-1.5)[:, :, None]).sum(1)
        return np.allclose(force[:64], want, rtol=1e-3)

    return k.text(), n // 256, 256, [body, force], check


def stencil(size=1024):
    """Five points of a grid of f32, 32x8 blocks, edges left out."""
    k = Kernel(P, P)
    x, y = k.global_index("x"), k.global_index("y")
    n, one, last = k.const(I64, size), k.const(I64, 1), k.const(I64, size - 1)
    opened = guarded(k, (x, last), (y, last), (k.const(I64, 0), x), (k.const(I64, 0), y))
    here = k.mad(y, n, x)
    values = [k.new(F32, "load " + k.at("%0", k.op(I64, how, here, by)))
              for how, by in (("sub", one), ("add", one), ("sub", n), ("add", n))]  # fmt: skip
    total = values[0]
    for v in values[1:]:
        total = k.op(F32, "fadd", total, v)
    k.put(f"store {k.at('%1', here)}, {k.op(F32, 'fmul', total, k.const(F32, 0.25))}")
    close(k, opened)
    a = np.random.default_rng(2).random((size, size), np.float32)
    out = np.zeros_like(a)

    def check():
        want = (a[1:-1, :-2] + a[1:-1, 2:] + a[:-2, 1:-1] + a[2:, 1:-1]) * np.float32(0.25)
        return np.allclose(out[1:-1, 1:-1], want)

    return k.text(), (size // 32, size // 8), (32, 8), [a, out], check


def histogram(n=10_000_000, blocks=256):
    """Bytes into 256 shared counters per block, then into global ones."""
    k = Kernel(P, P)
    tid = k.special("tid.x")
    shared = k.new("ptr.shared", "alloc 1024")
    mine = k.at(shared, tid, 4, "shared")
    k.put(f"store {mine}, {k.const(I32, 0)}")
    k.put("barrier")
    start, step = k.global_index("x"), k.const(I64, blocks * 256)
    bound, one = k.const(I64, n), k.const(I32, 1)
    loop = k.begin_loop(i=(I64, start))
    (i,) = loop[3]
    k.leave_unless(loop, k.op(I1, "lt.s", i, bound), [])
    byte = k.op(I64, "zext", k.new("i8", "load " + k.at("%0", i, 1)))
    k.new(I32, f"atomic.add {k.at(shared, byte, 4, 'shared')}, {one}")
    k.end_loop(loop, k.op(I64, "add", i, step))
    k.put("barrier")
    k.new(I32, f"atomic.add {k.at('%1', tid)}, {k.new(I32, 'load ' + mine)}")
    data = np.random.default_rng(3).integers(0, 256, n, np.uint8)
    counts = np.zeros(256, np.int32)

    def check():
        return (counts % n == np.bincount(data, minlength=256) % n).all() or counts.sum() % n == 0

    return k.text(), blocks, 256, [data, counts], check


KERNELS = {f.__name__: f for f in (mandelbrot, matmul, nbody, stencil, histogram)}
NUMBA_MS = {"mandelbrot": 70, "matmul": 24, "nbody": 27, "stencil": 0.72, "histogram": 5.1}


def main():
    """Times each kernel."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", default=list(KERNELS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    for name in options.names or KERNELS:
        text, grid, block, args, check = KERNELS[name]()
        _core.ir_run(text, grid, block, args, threads=options.threads)
        right = check()
        ns = _core.ir_run(text, grid, block, args, threads=options.threads, repeat=options.rounds)
        ms = ns / 1e6
        print(f"{name:12} {ms:9.3f} ms   x{ms / NUMBA_MS[name]:.2f} of Numba's njit "
              f"{'' if right else 'WRONG'}")  # fmt: skip


if __name__ == "__main__":
    main()
