"""Spaces of memory: generic pointers, dynamic shared memory, structs by value, variables."""

import gc
import math
import struct

import numpy as np
import pytest
from simt import _core

# grid, block: one warp and several, blocks of one thread, of all dimensions
LAUNCHES = [
    (3, 1),
    (2, 7),
    (2, 32),
    (3, 40),
    (2, 64),
    (2, 257),
    ((2, 3), (8, 4)),
    ((1, 2, 2), (4, 3, 5)),
]
ROADS = [{"threads": 1}, {"threads": 2}, {"max_budget": 3}, {"optimize": False}, {"isa": "generic"}]

PLACE = """
  %100: i32 = special tid.x
  %101: i32 = special tid.y
  %102: i32 = special tid.z
  %103: i32 = special ntid.x
  %104: i32 = special ntid.y
  %105: i32 = special ntid.z
  %106: i32 = special ctaid.x
  %107: i32 = special ctaid.y
  %108: i32 = special ctaid.z
  %109: i32 = special nctaid.x
  %110: i32 = special nctaid.y
  %111: i32 = mul %102, %104
  %112: i32 = add %111, %101
  %113: i32 = mul %112, %103
  %114: i32 = add %113, %100
  %115: i32 = mul %108, %110
  %116: i32 = add %115, %107
  %117: i32 = mul %116, %109
  %118: i32 = add %117, %106
  %119: i32 = mul %103, %104
  %120: i32 = mul %119, %105
  %121: i32 = mul %118, %120
  %122: i32 = add %121, %114
  %123: i64 = sext %122
  %124: i64 = const 4
  %125: i64 = mul %123, %124
  %126: i64 = sext %114
  %127: i64 = mul %126, %124
  %130: i32 = const 0
  %131: i32 = const 1
  %132: i32 = const 2
"""
# %114 number in the block, %120 threads of a block, %122 number in the launch; %127, %125 times 4


def kernel(params, body, variables=(), functions=""):
    names = ", ".join(f"%{k}: {t}" for k, t in enumerate(params))
    head = "".join(f"\n  variable {v}" for v in variables)
    return f"kernel @k({names}){head} {{{PLACE}{body}\n  return\n}}\n{functions}"


def sizes(launch):
    grid, block = ((n,) if isinstance(n, int) else n for n in launch)
    return math.prod(grid), math.prod(block)


def on_all_roads(text, launch, args, **options):
    """The arrays after a launch, which are the same however it is run."""
    results = []
    for road in ROADS:
        copies = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
        _core.ir_run(text, *launch, copies, **road, **options)
        results.append(copies)
    for copies in results[1:]:
        for a, b in zip(results[0], copies):
            if isinstance(a, np.ndarray):
                assert np.array_equal(a, b)
    return results[0]


@pytest.mark.parametrize("launch", LAUNCHES, ids=str)
def test_generic_pointers_of_threads_that_part(launch):
    """Even threads read what their neighbour left in dynamic shared memory, odd ones an array, by
    one load; then each adds by one atomic to a cell of the block or of the grid."""
    body = """
  %200: ptr.shared = alloc.dynamic
  %201: ptr.shared = alloc 16
  store %201, %130
  %202: ptr.shared = ptradd %200, %127
  %203: i32 = mul %114, %114
  store %202, %203
  barrier
  %204: i32 = add %114, %131
  %205: i32 = rem.u %204, %120
  %206: i64 = sext %205
  %207: i64 = mul %206, %124
  %208: ptr.shared = ptradd %200, %207
  %209: ptr.global = ptradd %0, %125
  %210: i32 = and %114, %131
  %211: i1 = eq %210, %131
  %212: ptr.generic, %213: ptr.generic = if @0 %211 {
    %214: ptr.generic = cvta %209
    %215: ptr.generic = cvta %1
    br @0 %214, %215
  } else {
    %216: ptr.generic = cvta %208
    %217: ptr.generic = cvta %201
    br @0 %216, %217
  }
  %218: i32 = load %212
  %219: i32 = atomic.add %213, %131
  store %209, %218
  barrier
  %220: i1 = eq %114, %130
  if @1 %220 {
    %221: i64 = sext %118
    %222: i64 = mul %221, %124
    %223: ptr.global = ptradd %2, %222
    %224: i32 = load %201
    store %223, %224
    br @1
  } else {
    br @1
  }"""
    blocks, threads = sizes(launch)
    a = np.arange(blocks * threads, dtype=np.int32) * 10
    args = [a, np.zeros(1, np.int32), np.zeros(blocks, np.int32)]
    out, odd, even = on_all_roads(
        kernel(["ptr.global"] * 3, body), launch, args, shared=4 * threads
    )
    thread = np.tile(np.arange(threads), blocks)
    want = np.where(thread % 2 == 1, a, ((thread + 1) % threads) ** 2)
    assert (out == want).all()
    assert odd[0] == blocks * (threads // 2)
    assert (even == threads - threads // 2).all()


@pytest.mark.parametrize("launch", LAUNCHES, ids=str)
def test_generic_pointers_into_own_memory(launch):
    """A thread's array by a generic pointer that a loop carries on from cell to cell."""
    body = """
  %200: ptr.local = alloc 40
  %201: ptr.generic = cvta %200
  %202: i32 = const 10
  loop @0 (%203: i32 = %130, %204: ptr.generic = %201) {
    %205: i32 = mul %203, %122
    store %204, %205
    %206: ptr.generic = ptradd %204, %124
    %207: i32 = add %203, %131
    %208: i1 = lt.s %207, %202
    if @1 %208 {
      continue @0 %207, %206
    } else {
      br @0
    }
    return
  }
  %210: i64 = const 7
  %211: i64 = and %123, %210
  %212: i64 = mul %211, %124
  %213: ptr.generic = ptradd %201, %212
  %214: ptr.local = cvta %213
  %215: i32 = load %214
  %216: ptr.global = ptradd %0, %125
  store %216, %215"""
    n = math.prod(sizes(launch))
    (out,) = on_all_roads(kernel(["ptr.global"], body), launch, [np.zeros(n, np.int32)])
    i = np.arange(n)
    assert (out == (i & 7) * i).all()


@pytest.mark.parametrize("launch", LAUNCHES, ids=str)
def test_static_and_dynamic_shared_memory_lie_apart(launch):
    body = """
  %200: ptr.shared = alloc 1028
  %201: ptr.shared = alloc.dynamic
  %202: ptr.shared = ptradd %200, %127
  %203: ptr.shared = ptradd %201, %127
  store %202, %114
  store %203, %122
  barrier
  %204: ptr.shared = alloc.dynamic
  %205: i32 = sub %120, %131
  %206: i32 = sub %205, %114
  %207: i64 = sext %206
  %208: i64 = mul %207, %124
  %209: ptr.shared = ptradd %200, %208
  %210: ptr.shared = ptradd %204, %208
  %211: i32 = load %209
  %212: i32 = load %210
  %213: i32 = mul %211, %212
  %214: ptr.global = ptradd %0, %125
  store %214, %213"""
    blocks, threads = sizes(launch)
    zeros = np.zeros(blocks * threads, np.int32)
    (out,) = on_all_roads(kernel(["ptr.global"], body), launch, [zeros], shared=4 * threads)
    back = np.arange(threads)[::-1]
    assert (
        out.reshape(blocks, threads) == back * (back + np.arange(blocks)[:, None] * threads)
    ).all()


POLYNOMIAL = """
  %200: ptr.const = variable 0
  %201: ptr.global = ptradd %0, %125
  %202: f32 = load %201
  %203: i32 = const 15
  %204: f32 = const 0
  %205: f32 = loop @0 (%206: i32 = %203, %207: f32 = %204) {
    %208: i64 = sext %206
    %209: i64 = mul %208, %124
    %210: ptr.const = ptradd %200, %209
    %211: f32 = load %210
    %212: f32 = fmul %207, %202
    %213: f32 = fadd %212, %211
    %214: i1 = lt.s %130, %206
    if @1 %214 {
      %215: i32 = sub %206, %131
      continue @0 %215, %213
    } else {
      br @0 %213
    }
    return
  }
  store %201, %205"""


@pytest.mark.parametrize("launch", LAUNCHES, ids=str)
def test_constants_that_all_threads_read(launch):
    """__constant__ float c[16]: given by the text, later by the host."""
    c = np.linspace(-1, 2, 16).astype(np.float32)
    text = kernel(["ptr.global"], POLYNOMIAL, [f"@c ptr.const 64 align 4 = {c.tobytes().hex()}"])
    x = np.random.default_rng(1).uniform(-1, 1, math.prod(sizes(launch))).astype(np.float32)

    def horner(c):
        value = np.zeros_like(x)
        for k in range(15, -1, -1):
            value = value * x + c[k]
        return value

    (out,) = on_all_roads(text, launch, [x])
    assert (out == horner(c)).all()
    module = _core.ir_module()
    _core.ir_run(text, *launch, [x.copy()], module=module)
    other = np.arange(16, dtype=np.float32)
    assert _core.ir_variable(module, "c") == c.tobytes()
    assert _core.ir_variable(module, "c", other.tobytes()) == other.tobytes()
    (out,) = on_all_roads(text, launch, [x], module=module)
    assert (out == horner(other)).all()


def test_cells_of_a_table_that_threads_choose():
    body = """
  %200: ptr.const = variable 0
  %201: ptr.global = ptradd %0, %125
  %202: i32 = load %201
  %203: i64 = sext %202
  %204: i64 = const 2
  %205: i64 = mul %203, %204
  %206: ptr.const = ptradd %200, %205
  %207: ptr.generic = cvta %206
  %208: i16 = load %207
  %209: i32 = sext %208
  store %201, %209"""
    table = np.random.default_rng(2).integers(-30000, 30000, 100).astype(np.int16)
    line = f"@t ptr.const 256 align 128 = {table.tobytes().hex()}"
    which = np.random.default_rng(3).integers(0, 128, 200).astype(np.int32)
    (out,) = on_all_roads(kernel(["ptr.global"], body, [line]), (5, 40), [which])
    assert (out == np.append(table, np.zeros(28, np.int16))[which]).all()


COUNT = """
  %200: ptr.global = variable 0
  %201: i32 = atomic.add %200, %131
  %202: i64 = sext %201
  %203: i64 = mul %202, %124
  %204: ptr.global = ptradd %0, %203
  store %204, %122"""


@pytest.mark.parametrize("launch", LAUNCHES, ids=str)
def test_variables_live_on_between_launches(launch):
    """__device__ int counter: each thread of two launches takes a number of its own."""
    n = math.prod(sizes(launch))
    text = kernel(["ptr.global"], COUNT, ["@counter ptr.global 4 align 4"])
    for road in ROADS:
        module, out = _core.ir_module(), np.full(2 * n + 7, -1, np.int32)
        for _ in range(2):
            _core.ir_run(text, *launch, [out], module=module, **road)
        assert struct.unpack("i", _core.ir_variable(module, "counter")) == (2 * n,)
        assert (np.sort(out[:n]) == np.arange(n)).all()
        assert (np.sort(out[n : 2 * n]) == np.arange(n)).all()
        assert (out[2 * n :] == -1).all()
        _core.ir_variable(module, "counter", struct.pack("i", 7))
        _core.ir_run(text, *launch, [out], module=module, **road)
        assert struct.unpack("i", _core.ir_variable(module, "counter")) == (n + 7,)


def test_units_of_a_program_have_their_variables_together():
    write = """
  %200: ptr.global = variable 1
  store %200, %0"""
    read = """
  %200: ptr.global = variable 0
  %201: i32 = load %200
  store %0, %201"""
    module, other, out = _core.ir_module(), _core.ir_module(), np.zeros(1, np.int32)
    lines = ["@a ptr.global 4 align 4 = 01", "@b ptr.global 4 align 4 = 02"]
    _core.ir_run(kernel(["i32"], write, lines), 1, 1, [77], module=module)
    for m, name, value in ((module, 1, 77), (module, 0, 1), (other, 1, 2), (other, 0, 1)):
        _core.ir_run(kernel(["ptr.global"], read, [lines[name]]), 1, 1, [out], module=m)
        assert out[0] == value
    assert _core.ir_variable(module, "c") is None
    for wrong in ("@a ptr.global 8 align 4", "@a ptr.global 4 align 8", "@a ptr.const 4 align 4"):
        with pytest.raises(ValueError, match="variable a: declared in two ways"):
            _core.ir_run(kernel(["i32"], "", [wrong]), 1, 1, [1], module=module)


def test_variables_end_with_their_program():
    text = kernel(["i32"], "", ["@large ptr.global 20000000 align 128"])
    for _ in range(30):  # 600 MB, were they kept
        module = _core.ir_module()
        _core.ir_run(text, 1, 1, [1], module=module)
        assert len(_core.ir_variable(module, "large")) == 20000000
        del module
        gc.collect()
    before = _core.memory_probe(64)[2]
    module = _core.ir_module()
    _core.ir_run(text, 1, 1, [1], module=module)
    assert _core.memory_probe(64)[2] >= before + 20000000
    del module
    assert _core.memory_probe(64)[2] == before


# struct { float *p; int n; float scale; double add; signed char few[8]; }
STRUCT = "ptr.const struct 32 align 8"
SCALE = """
  %200: i64 = const 8
  %201: i64 = const 12
  %202: i64 = const 16
  %203: i64 = const 24
  %204: ptr.const = ptradd %1, %200
  %205: i32 = load %204
  %206: i1 = lt.s %122, %205
  if @0 %206 {
    %210: ptr.global = load %1
    %211: ptr.global = ptradd %210, %125
    %212: f32 = load %211
    %213: ptr.const = ptradd %1, %201
    %214: f32 = load %213
    %215: ptr.const = ptradd %1, %202
    %216: f64 = load %215
    %217: i64 = const 7
    %218: i64 = and %123, %217
    %219: ptr.const = ptradd %1, %203
    %220: ptr.const = ptradd %219, %218
    %221: i8 = load %220
    %222: f32 = sitofp %221
    %223: f32 = fmul %212, %214
    %224: f32 = fptrunc %216
    %225: f32 = fadd %223, %224
    %226: f32 = fadd %225, %222
    %227: ptr.global = ptradd %0, %125
    store %227, %226
    br @0
  } else {
    br @0
  }"""


@pytest.mark.parametrize("launch", LAUNCHES, ids=str)
def test_structs_by_value(launch):
    """With a pointer inside, whatever the alignment of the bytes that are given."""
    total = math.prod(sizes(launch))
    n = total - total // 5
    x = np.random.default_rng(4).standard_normal(total).astype(np.float32)
    few = np.array([1, -2, 3, -4, 5, -6, 7, -8], np.int8)
    given = struct.pack("Qifd8s", x.ctypes.data, n, 1.5, 0.25, few.tobytes())
    want = np.where(np.arange(total) < n, x * np.float32(1.5) + np.float32(0.25), 0)
    want[:n] += few[np.arange(n) & 7]
    text = kernel(["ptr.global", STRUCT], SCALE)
    for shift in (0, 1, 4):
        room = bytearray(len(given) + shift)
        room[shift:] = given
        (out, _) = on_all_roads(
            text, launch, [np.zeros(total, np.float32), memoryview(room)[shift:]]
        )
        assert (out == want).all()
        assert room[shift:] == given


def test_structs_are_copied():
    """What a kernel writes to its copy, by way of an integer, is not seen outside."""
    body = """
  %200: i64 = bitcast %1
  %201: ptr.global = bitcast %200
  %202: i32 = load %201
  store %201, %131
  store %0, %202
  %203: i64 = const 127
  %204: i64 = and %200, %203
  %205: i32 = trunc %204
  %206: ptr.global = ptradd %0, %124
  store %206, %205"""
    text = kernel(
        ["ptr.global", "ptr.const struct 4 align 128", "ptr.const struct 1 align 1"], body
    )
    for value in (5, 6):
        given, out = bytearray(struct.pack("i", value)), np.full(2, -1, np.int32)
        _core.ir_run(text, 1, 1, [out, given, bytearray(1)])
        assert out.tolist() == [value, 0]
        assert given == struct.pack("i", value)
    with pytest.raises(ValueError, match="fewer bytes than the struct has"):
        _core.ir_run(text, 1, 1, [out, bytearray(3), bytearray(1)])


def test_many_and_large_structs():
    sizes_of = [1, 2, 3, 8, 100, 1000, 4096, 20000]
    aligns = [1, 2, 1, 8, 4, 16, 64, 128]
    params = ["ptr.global"] + [f"ptr.const struct {n} align {a}" for n, a in zip(sizes_of, aligns)]
    body, at = "", 200
    for k, n in enumerate(sizes_of):
        lines = f"""
  %{at}: i64 = const {n - 1}
  %{at + 1}: ptr.const = ptradd %{k + 1}, %{at}
  %{at + 2}: i8 = load %{at + 1}
  %{at + 3}: i64 = const {k}
  %{at + 4}: ptr.global = ptradd %0, %{at + 3}
  store %{at + 4}, %{at + 2}"""
        body, at = body + lines, at + 5
    given = [bytearray(n - 1) + bytes([k + 1]) for k, n in enumerate(sizes_of)]
    (out, *_) = on_all_roads(kernel(params, body), (2, 3), [np.zeros(8, np.int8), *given])
    assert out.tolist() == list(range(1, 9))


FUNCTION = """function 0 @sum(%0: ptr.const, %1: i64, %2: ptr.generic) -> i32 {
  %3: i64 = const 0
  %4: i1 = eq %1, %3
  if @0 %4 {
    %5: i32 = const 0
    return %5
  } else {
    br @0
  }
  %6: i64 = const 1
  %7: i64 = sub %1, %6
  %8: i64 = const 4
  %9: i64 = mul %7, %8
  %10: ptr.const = ptradd %0, %9
  %11: i32 = load %10
  %12: ptr.const = variable 1
  %13: ptr.const = ptradd %12, %9
  %14: i32 = load %13
  %15: i32 = mul %11, %14
  %16: ptr.global = variable 0
  %17: i32 = const 1
  %18: i32 = atomic.add %16, %17
  %19: ptr.shared = alloc.dynamic
  %20: ptr.generic = cvta %19
  %21: i32 = atomic.add %20, %17
  %22: i32 = atomic.add %2, %17
  %23: i32 = call 0 %0, %7, %2
  %24: i32 = add %15, %23
  return %24
}
"""


@pytest.mark.parametrize("launch", LAUNCHES[:6], ids=str)
def test_in_functions_beside_the_kernel(launch):
    """Recursion over a struct and a table, counting in all spaces."""
    body = """
  %200: ptr.shared = alloc.dynamic
  store %200, %130
  %201: ptr.local = alloc 4
  store %201, %130
  barrier
  %202: ptr.generic = cvta %201
  %203: i64 = const 3
  %204: i64 = and %123, %203
  %205: i32 = call 0 %1, %204, %202
  barrier
  %206: i32 = load %200
  %207: i32 = load %201
  %208: i32 = const 1000
  %209: i32 = mul %205, %208
  %210: i32 = add %209, %206
  %211: i32 = mul %210, %132
  %212: i32 = add %211, %207
  %213: ptr.global = ptradd %0, %125
  store %213, %212"""
    given, table = np.array([3, 5, 7, 11], np.int32), np.array([2, 4, 6, 8], np.int32)
    lines = [
        "@calls ptr.global 4 align 4",
        f"@table ptr.const 16 align 16 = {table.tobytes().hex()}",
    ]
    text = kernel(["ptr.global", "ptr.const struct 16 align 4"], body, lines, FUNCTION)
    blocks, threads = sizes(launch)
    n = blocks * threads
    depth = np.arange(n) & 3
    sums = np.append(0, np.cumsum(given * table))[depth]
    counted = depth.reshape(blocks, threads).sum(1).repeat(threads)
    for road in ROADS:
        module, out = _core.ir_module(), np.zeros(n, np.int32)
        args = [out, given.copy()]
        _core.ir_run(text, *launch, args, shared=16, module=module, **road)
        assert (out == (sums * 1000 + counted) * 2 + depth).all()
        assert struct.unpack("i", _core.ir_variable(module, "calls")) == (depth.sum(),)


FUNCTION_OF_NOTHING = """function 0 @f() {
  return
}
"""


def test_a_known_space_is_found():
    """Offsets and accesses by generic pointers go back to the space that is seen."""
    body = """
  %200: ptr.shared = alloc 1024
  %201: ptr.generic = cvta %200
  %202: ptr.generic = ptradd %201, %127
  %203: i32 = atomic.add %202, %131
  store %202, %203
  %204: ptr.shared = cvta %202
  %205: i32 = load volatile.block %204
  store %0, %205"""
    text = _core.ir_check(kernel(["ptr.global"], body), "all")
    assert "cvta" not in text
    assert "generic" not in text


@pytest.mark.skipif(_core.heap_counts() is None, reason="a release build")
def test_memory_that_ends():
    """Each allocation in turn: the run is right or a MemoryError, and nothing is lost."""
    table = np.arange(16, dtype=np.float32)
    line = f"@c ptr.const 64 align 128 = {table.tobytes().hex()}"
    params = ["ptr.global", "ptr.const struct 32 align 8"]
    text = kernel(params, POLYNOMIAL, [line], FUNCTION_OF_NOTHING)
    right = on_all_roads(text, (1, 40), [np.ones(40, np.float32), bytearray(32)])[0]

    def go():
        out = np.ones(40, np.float32)
        _core.ir_run(text, 1, 40, [out, bytearray(32)], threads=1)
        return out

    go()
    alive, failed = _core.heap_counts()[1], 0
    for k in range(1000):
        _core.heap_deny(k, k)
        try:
            assert (go() == right).all()
        except MemoryError:
            failed += 1
        finally:
            _core.heap_allow()
        assert _core.heap_counts()[1] <= alive + 2, k  # what is kept for reuse
        if k > 100 and failed < k - 40:
            break
    assert failed > 50
    assert (go() == right).all()


def test_more_variables_than_there_may_be():
    lines = [f"@v{i} ptr.global 4 align 4" for i in range(4097)]
    assert _core.ir_check(kernel([], "", lines[:4096]), "all")
    with pytest.raises(ValueError, match="too many variables"):
        _core.ir_check(kernel([], "", lines))
