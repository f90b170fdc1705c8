"""Kernels beyond the sizes that a table of the compiler has or had: right, or refused by name."""

import os
import random
import subprocess
import sys

import numpy as np
import pytest
from numba_face import MODE, cuda, simulator
from numba_source import load
from simt import _core

if MODE != "simt":
    pytest.skip("how simt compiles kernels", allow_module_level=True)


def lines(*texts):
    return "\n".join(texts) + "\n"


def rotating(n, waits=False):
    """A loop that threads leave apart and that carries n values, each becoming the next."""
    names = [f"v{i}" for i in range(n)]
    back = list(zip(names[:0:-1], names[-2::-1]))
    return lines(
        "@cuda.jit",
        "def kernel(out, rounds, a):",
        "    i = cuda.grid(1)",
        *(f"    {name} = a[i, {k}]" for k, name in enumerate(names)),
        "    for q in range(rounds[i]):",
        f"        t = {names[-1]}",
        *(f"        {to} = {of}" for to, of in back),
        "        v0 = t",
        "        cuda.shfl_sync(1 << cuda.laneid, t, cuda.laneid)" if waits else "        pass",
        *(f"    out[i, {k}] = {name}" for k, name in enumerate(names)),
    )


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("n", [64, 65, 80, 300])
def test_loops_that_carry_many_values(n, waits):
    rounds = np.arange(40) % 7
    a = np.random.default_rng(n).integers(0, 1000, (40, n))
    out = np.zeros_like(a)
    load(rotating(n, waits), cuda=cuda)["kernel"][1, 40](out, rounds, a)
    assert (out == [np.roll(row, by) for row, by in zip(a, rounds)]).all()


@pytest.mark.parametrize("seed", range(6))
def test_loops_that_carry_many_mixed_values(seed):
    """Copies, sums and exchanges among 100 variables of several types; some leave early."""
    pick = random.Random(seed)
    names = [f"v{i}" for i in range(100)]
    body = []
    for _ in range(150):
        a, b, c = pick.choices(names, k=3)
        body.append(f"{a}, {b} = {b}, {a}" if pick.random() < 0.5 else f"{a} = ({b} + {c}) % 97")
    stop = f"if v3 % 5 == {pick.randrange(5)}: break"
    body.insert(pick.randrange(len(body)), stop if pick.random() < 0.7 else "pass")
    kinds = ["np.int64({})", "np.float64({})", "{} % 3", "np.int64(i)"]
    source = lines(
        "@cuda.jit",
        "def kernel(out, rounds, a):",
        "    i = cuda.grid(1)",
        *(f"    {v} = {pick.choice(kinds).format(f'a[i, {k}]')}" for k, v in enumerate(names)),
        "    for q in range(rounds[i]):",
        *("        " + line for line in body),
        *(f"    out[i, {k}] = {v}" for k, v in enumerate(names)),
    )
    rounds = np.arange(33) % 4
    a = np.random.default_rng(seed).integers(0, 97, (33, 100))
    out, expected = np.zeros((2, 33, 100))
    load(source, cuda=cuda, np=np)["kernel"][1, 33](out, rounds, a)
    load(source, cuda=simulator, np=np)["kernel"][1, 33](expected, rounds, a)
    assert (out == expected).all()


def test_types_of_many_variables_settle():
    """A float moves on by one variable from round to round."""
    source = rotating(120).replace("v0 = a[i, 0]", "v0 = a[i, 0] + 0.5")
    a = np.random.default_rng(1).integers(0, 1000, (8, 120))
    out = np.zeros((8, 120))
    load(source, cuda=cuda)["kernel"][1, 8](out, np.arange(8), a)
    start = a.astype(float)
    start[:, 0] += 0.5
    assert (out == [np.roll(row, by) for row, by in zip(start, range(8))]).all()


def test_functions_of_many_parameters():
    names = [f"p{i}" for i in range(150)]
    source = lines(
        "@cuda.jit(device=True)",
        f"def f({', '.join(names[:100])}, {', '.join(n + '=7' for n in names[100:])}):",
        f"    return {' + '.join(f'{k + 1} * {n}' for k, n in enumerate(names))}",
        "@cuda.jit",
        "def kernel(out):",
        "    i = cuda.grid(1)",
        f"    out[i] = f({', '.join(f'i + {k}' for k in range(99))}, p120=i, p99=3)",
    )
    out = np.zeros(5, np.int64)
    load(source, cuda=cuda)["kernel"][1, 5](out)
    values = lambda i: [i + k for k in range(99)] + [3] + [7] * 20 + [i] + [7] * 29
    assert out.tolist() == [sum((k + 1) * v for k, v in enumerate(values(i))) for i in range(5)]


def test_conditions_of_many_compares():
    parts = [f"i + {k} < b[{k % 3}] + {k % 7}" for k in range(60)]
    source = lines(
        "@cuda.jit",
        "def kernel(out, b):",
        "    i = cuda.grid(1)",
        f"    if {' and '.join(parts)}:",
        "        out[i] = 1",
        f"    if {' or '.join(parts)} or not ({' and '.join(parts[:40])}):",
        "        out[i] += 2",
    )
    b = np.array([80, 90, 100])
    out = np.zeros(64, np.int64)
    load(source, cuda=cuda)["kernel"][2, 32](out, b)
    space = {"b": b}
    want = [(1 if all(eval(p, space, {"i": i}) for p in parts) else 0) + 2 for i in range(64)]
    assert out.tolist() == want


def test_rows_that_many_jumps_pass_on():
    """Values that grow along two axes become vectors at each of many jumps."""
    count = 60
    text = ["kernel @k(%0: ptr.global, %1: i32) {", "%2: i32 = special tid.x"]
    text += ["%3: i32 = special tid.y", "%4: i32 = const 100", "%5: i32 = mul %3, %4"]
    text += ["%6: i32 = add %2, %5"]
    at = 7
    rows = []
    for k in range(count):
        text += [f"%{at}: i32 = const {k}", f"%{at + 1}: i32 = add %6, %{at}"]
        rows.append(at + 1)
        at += 2
    results = ", ".join(f"%{at + k}: i32" for k in range(count))
    first, at = at, at + count
    text.append(f"{results} = block @0 {{")
    for k in range(count):
        turned = ", ".join(f"%{rows[(j + k) % count]}" for j in range(count))
        text += [f"%{at}: i32 = const {3 * k}", f"%{at + 1}: i1 = eq %2, %{at}"]
        text += [f"if @{k + 1} %{at + 1} {{", f"br @0 {turned}", "} else {", f"br @{k + 1}", "}"]
        at += 2
    text += ["br @0 " + ", ".join(f"%{r}" for r in rows), "}"]
    text += [f"%{at}: i32 = const 8", f"%{at + 1}: i32 = mul %3, %{at}"]
    text += [f"%{at + 2}: i32 = add %2, %{at + 1}", f"%{at + 3}: i64 = zext %{at + 2}"]
    base, at = at + 3, at + 4
    text += [f"%{at}: i64 = const {4 * count}", f"%{at + 1}: i64 = mul %{base}, %{at}"]
    text += [f"%{at + 2}: ptr.global = ptradd %0, %{at + 1}"]
    base, at = at + 2, at + 3
    for k in range(count):
        text += [f"%{at}: i64 = const {4 * k}", f"%{at + 1}: ptr.global = ptradd %{base}, %{at}"]
        text += [f"store %{at + 1}, %{first + k}"]
        at += 2
    out = np.zeros((4, 8, count), np.int32)
    _core.ir_run("\n".join([*text, "return", "}"]), 1, (8, 4), [out, 0], optimize=False)
    y, x, k = np.indices(out.shape)
    shift = np.where(x % 3 == 0, x // 3, 0)
    assert (out == x + 100 * y + (k + shift) % count).all()


def test_loops_of_65536_values_in_the_ir():
    n = 1 << 16
    carried = ", ".join(f"%{k + 2}: i32 = %1" for k in range(n))
    passed = ", ".join(f"%{k + 2}" for k in range(n))
    text = f"kernel @k(%0: ptr.global, %1: i32) {{\nloop @0 ({carried}) {{\nstore %0, %{n + 1}\n"
    text += f"continue @0 {passed}\n}}\nreturn\n}}\n"
    printed = _core.ir_check(text)
    assert printed.count(f"%{n + 1}") == 3 and _core.ir_check(printed) == printed


def test_faults_keep_four_values():
    text = "kernel @k(%0: i64) {{\nfault 1 {}\nreturn\n}}\n"
    _core.ir_check(text.format("%0, %0, %0, %0"))
    with pytest.raises((ValueError, RuntimeError), match="a fault keeps 4 values at most"):
        _core.ir_check(text.format("%0, %0, %0, %0, %0"))


REFUSED = {
    "local memory": (
        "    for_each = 0\n"
        + "".join(f"    a{k} = cuda.local.array(1 << 27, np.float64)\n    a{k}[0] = 1\n"
                  for k in range(2)),
        "more than 1 GiB of local memory",
    ),
    "print": (f"    print({', '.join(['out[0]'] * 33)})\n", "more than 32 values"),
    "prints": ("    print(out[0])\n" * 257, r"more than 256 print\(\)s"),
    "depth": ("    out[0] = " + "-" * 400 + "out[0]\n", "nested more than 300 deep"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_too_much_is_refused_with_its_line(name):
    body, message = REFUSED[name]
    space = load("@cuda.jit\ndef kernel(out):\n" + body, cuda=cuda, np=np)
    with pytest.raises(Exception, match=message) as error:
        space["kernel"][1, 1](np.zeros(1))
    assert "\nat <generated" in str(error.value)


def test_too_many_arguments_are_refused():
    names = ", ".join(f"a{i}" for i in range(65))
    kernel = load(f"@cuda.jit\ndef kernel({names}):\n    a0[0] = a64[0]\n", cuda=cuda)["kernel"]
    with pytest.raises(Exception, match="64 arrays"):
        kernel[1, 1](*(np.zeros(1) for _ in range(65)))


LONG_WITH_SHUFFLES = """
import sys
import numpy as np
from simt.numba import cuda
sys.path.insert(0, {here!r})
from numba_source import load

lines = [f"    v = (v * {{3 + j % 5}} + i + {{j}}) & 1023" for j in range(3000)]
source = ["@cuda.jit", "def kernel(out):", "    i = cuda.threadIdx.x", "    v = i", *lines]
source += ["    if v % 2 == 0:", "        v += cuda.shfl_sync(cuda.activemask(), v, 0)"]
source += ["    if i % 32 < 16:", "        v += cuda.shfl_sync(0xffff, v, 3)", "    out[i] = v"]
kernel = load("\\n".join(source) + "\\n", cuda=cuda)["kernel"]


def most():
    return [int(s.split()[1]) for s in open("/proc/self/status") if s.startswith("VmHWM")][0]


out, before = np.zeros(1024, np.int64), most()
kernel[1, 1024](out)
taken = most() - before
v = i = np.arange(1024)
for j in range(3000):
    v = (v * (3 + j % 5) + i + j) & 1023
first = np.array([w[w % 2 == 0][:1].sum() for w in v.reshape(32, 32)]).repeat(32)
v = np.where(v % 2 == 0, v + first, v)
v = np.where(i % 32 < 16, v + v.reshape(32, 32)[:, 3].repeat(32), v)
print((out == v).all(), taken // 1024)
"""


@pytest.mark.skipif("SIMT_SANITIZE" in os.environ, reason="the sanitizer's memory is larger")
def test_what_threads_have_in_a_long_kernel_takes_little_memory():
    """12,000 values of 1,024 threads would be 100 MB."""
    text = LONG_WITH_SHUFFLES.format(here=os.path.dirname(os.path.abspath(__file__)))
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    right, megabytes = done.stdout.split() or [done.stderr, "0"]
    assert right == "True" and int(megabytes) < 60, done.stdout + done.stderr
