"""Random code of the IR in printed form, for differential tests; ir_programs.py makes the programs.

Deterministic; every program is valid, ends, and has no races: a thread reads the shared input and
reads and writes only its own stretch of the output. The bits of NaNs are never looked at (no
bitcast of floats, no sign taken from a float).
Launches have one dimension, or with dims=3 any. All coordinates and sizes of a launch are met in
arithmetic; with apart=True a thread knows its number in the grid and the sizes, and not its place
in its block: such threads may be regrouped.

Parameters of the kernel: output, input (INPUT_BYTES of any bytes), an i32, an f32, a struct by
value (STRUCT_BYTES of any bytes). Variables: a table that is only read, and counters, to which
threads add by atomics whose old values are not looked at. Dynamic shared memory: SHARED_BYTES.
Pointers come from all spaces into the generic one, where selects lose their space, and back.
"""

import random
from dataclasses import dataclass

INPUT_BYTES = 512
STRUCT_BYTES = 72
TABLE_BYTES = 64
SHARED_BYTES = 1024
SLOT_BYTES = 8

INTS = ("i8", "i16", "i32", "i64")
FLOATS = ("f16", "f32", "f64")
BITS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "f16": 16, "f32": 32, "f64": 64}
INT_BINARY = (
    "add sub mul mulhi.s mulhi.u div.s div.u rem.s rem.u and or xor shl shr.u shr.s "
    "min.s max.s min.u max.u"
).split()
INT_UNARY = "not abs popc clz ctz brev".split()
FLOAT_BINARY = "fadd fsub fmul fdiv frem frem.near fmin.nan fmax.nan fmin.num fmax.num".split()
FLOAT_UNARY = "fneg fabs fsqrt ffloor fceil ftrunc frint frexp.fraction".split()
INT_COMPARE = "eq ne lt.s le.s lt.u le.u".split()
FLOAT_COMPARE = "feq fne flt fle".split()
# each has a counter of its own, so that the order in which threads act is not seen
COUNTS = "add and or xor min.s max.s min.u max.u".split()
PARAMS = ("ptr.global", "ptr.global", "i32", "f32", "ptr.const")
# bits of constants worth meeting, per float type
FLOAT_BITS = {
    "f16": (0, 0x8000, 0x3C00, 0xBC00, 0x3800, 0x7C00, 0x7BFF, 1, 0x4248, 0x7E00),
    "f32": (0, 1 << 31, 0x3F800000, 0xBF800000, 0x3F000000, 0x7F800000, 0x7F7FFFFF, 1, 0x40490FDB),
    "f64": (0, 1 << 63, 0x3FF << 52, 0xBFF << 52, 0x3FE << 52, 0x7FF << 52, 1, 0x400921FB54442D18),
}


@dataclass
class Program:
    """Printed text, and the type stored in each 8-byte slot of a thread's output."""

    text: str
    slots: list

    @property
    def bytes_per_thread(self):
        """Bytes of output that belong to one thread."""
        return SLOT_BYTES * len(self.slots)


class Writer:
    def __init__(self, seed, size, dims=1, apart=False):
        self.random = random.Random(seed)
        self.size = size
        self.dims = dims
        self.apart = apart
        self.mixes = self.random.random() < 0.6
        self.lines = []
        self.next_value = len(PARAMS)
        self.next_label = 0
        self.depth = 1
        self.slots = []
        self.given = "%4"  # the struct
        self.scope = [("%2", "i32"), ("%3", "f32")]  # values that may be used here
        self.loops = []  # (label, types of carried values, counter, limit) around this point

    def put(self, text):
        self.lines.append("  " * self.depth + text)

    def new(self, kind, text, visible=True):
        name = f"%{self.next_value}"
        self.next_value += 1
        self.put(f"{name}: {kind} = {text}")
        if visible:
            self.scope.append((name, kind))
        return name

    def const(self, kind, value=None):
        pick = self.random
        if value is not None:
            bits = value
        elif kind in FLOATS:
            bits = pick.choice(FLOAT_BITS[kind])
        else:
            width = BITS[kind]
            few = (0, 1, 2, 3, 7, 8, (1 << width) - 1, 1 << (width - 1), (1 << (width - 1)) - 1)
            bits = pick.choice((pick.choice(few), pick.getrandbits(width)))
        return self.new(kind, f"const {bits & ((1 << BITS[kind]) - 1)}")

    def use(self, kind):
        """A value of this type in scope, or a constant."""
        have = [name for name, t in self.scope if t == kind]
        if have and self.random.random() < 0.9:
            return self.random.choice(have if self.random.random() < 0.3 else have[-8:])
        return self.const(kind)

    # ---- straight-line code ----

    def offset(self):
        """An i64 in [0, INPUT_BYTES - 8] that is a multiple of 8."""
        word = self.use("i64")
        return self.new("i64", f"and {word}, {self.const('i64', INPUT_BYTES - 8)}", False)

    def convert(self):
        pick = self.random
        a, b = pick.choice(INTS), pick.choice(INTS)
        f = pick.choice(FLOATS)
        which = pick.randrange(10)
        if which == 7:
            self.new(f, f"ldexp {self.use(f)}, {self.use('i32')}")
        elif which == 8:
            self.new("i32", f"frexp.exponent {self.use(f)}")
        elif which == 9:
            f = pick.choice(("f32", "f64"))
            self.new(f, f"nextafter {self.use(f)}, {self.use(f)}")
        elif which == 0 and BITS[a] < BITS[b]:
            self.new(b, f"{pick.choice(('sext', 'zext'))} {self.use(a)}")
        elif which == 1 and BITS[a] > BITS[b]:
            self.new(b, f"trunc {self.use(a)}")
        elif which == 2:
            self.new(f, f"{pick.choice(('sitofp', 'uitofp'))} {self.use(a)}")
        elif which == 3:
            self.new(a, f"{pick.choice(('fptosi', 'fptoui'))} {self.use(f)}")
        elif which == 4:
            g = pick.choice(FLOATS)
            if BITS[f] != BITS[g]:
                self.new(g, f"{'fpext' if BITS[g] > BITS[f] else 'fptrunc'} {self.use(f)}")
        elif which == 5:
            self.new(a, f"{pick.choice(('sext', 'zext'))} {self.use('i1')}")
        elif BITS[a] > 8:
            self.new("f" + a[1:], f"bitcast {self.use(a)}")

    def straight(self):
        pick = self.random
        which = pick.randrange(24)
        i, f = pick.choice(INTS), pick.choice(FLOATS)
        if which < 4:
            self.new(i, f"{pick.choice(INT_BINARY)} {self.use(i)}, {self.use(i)}")
        elif which < 7:
            self.new(f, f"{pick.choice(FLOAT_BINARY)} {self.use(f)}, {self.use(f)}")
        elif which == 7:
            self.new(i, f"{pick.choice(INT_UNARY)} {self.use(i)}")
        elif which == 8:
            self.new(f, f"{pick.choice(FLOAT_UNARY)} {self.use(f)}")
        elif which == 9:
            self.new("i1", f"{pick.choice(INT_COMPARE)} {self.use(i)}, {self.use(i)}")
        elif which == 10:
            self.new("i1", f"{pick.choice(FLOAT_COMPARE)} {self.use(f)}, {self.use(f)}")
        elif which == 11:
            kind = pick.choice(INTS + FLOATS + ("i1",))
            self.new(kind, f"select {self.use('i1')}, {self.use(kind)}, {self.use(kind)}")
        elif which == 12:
            if f != "f16":
                self.new(f, f"fma {self.use(f)}, {self.use(f)}, {self.use(f)}")
        elif which == 13:
            op = pick.choice(("and", "or", "xor"))
            self.new("i1", f"{op} {self.use('i1')}, {self.use('i1')}")
        elif which == 14:
            kind = pick.choice(INTS + FLOATS)
            pointer = self.new("ptr.global", f"ptradd %1, {self.offset()}", False)
            self.new(kind, f"load {pointer}")
        elif which == 15:
            self.private()
        elif which == 16:
            self.convert()
        elif which == 20:
            self.constants()
        elif which == 21:
            self.anywhere()
        elif which == 22:
            self.count_up()
        else:
            self.coordinate()

    def index(self, axis):
        """The thread's number in the grid along an axis, as i32."""
        block, size = (
            self.new("i32", f"special {word}.{axis}", False) for word in ("ctaid", "ntid")
        )
        before = self.new("i32", f"mul {block}, {size}", False)
        tid = self.new("i32", f"special tid.{axis}", False)
        return self.new("i32", f"add {tid}, {before}")

    def place(self):
        """A number that threads have of their own, i32."""
        axis = self.random.choice("xyz"[: self.dims])
        which = self.random.choice(("index", "tid", "ctaid"))
        if self.apart or which == "index":
            return self.index(axis)
        return self.new("i32", f"special {which}.{axis}")

    def extent(self):
        """A size of the launch, i32."""
        axis = self.random.choice("xxyz")
        sizes = [self.new("i32", f"special {word}.{axis}") for word in ("ntid", "nctaid")]
        which = self.random.randrange(5)
        return sizes[which % 2] if which else self.new("i32", f"mul {sizes[0]}, {sizes[1]}")

    def coordinate(self):
        """Places and sizes in arithmetic with each other and with what else there is."""
        pick = self.random
        kind = pick.choice(("i32", "i64"))
        known = [name for name, t in self.scope if t == kind]
        value = None
        for _ in range(pick.randrange(1, 4)):
            which = pick.randrange(5)
            other = pick.choice(known) if which == 0 and known else None
            if other is None:
                other = self.place() if which < 3 else self.extent()
                if kind == "i64":
                    other = self.new(kind, f"{pick.choice(('sext', 'zext'))} {other}")
            op = pick.choice(("mul", "mul", "mul", "add", "sub", "rem.u", "div.u"))
            value = other if value is None else self.new(kind, f"{op} {value}, {other}")

    def private(self):
        """A cell of one of the thread's own arrays, each of one type: written, read or both."""
        kind = self.random.choice(list(self.arrays))
        place = self.new("i64", f"and {self.use('i64')}, {self.const('i64', 24)}", False)
        pointer = self.new("ptr.local", f"ptradd {self.arrays[kind]}, {place}", False)
        which = self.random.randrange(3)
        if which > 0:
            self.put(f"store {pointer}, {self.use(kind)}")
        if which < 2:
            self.new(kind, f"load {pointer}")

    # ---- spaces ----

    def at(self, base, space, most):
        """The address of a cell of 8 bytes among the first `most` and 8; by a generic pointer at
        times, to which the offset is added before or after the cast."""
        place = self.new("i64", f"and {self.use('i64')}, {self.const('i64', most)}", False)
        which = self.random.randrange(4)
        if which == 0:
            base, space = self.new("ptr.generic", f"cvta {base}", False), "ptr.generic"
        pointer = self.new(space, f"ptradd {base}, {place}", False)
        if which == 1:
            pointer, space = self.new("ptr.generic", f"cvta {pointer}", False), "ptr.generic"
        return pointer, space

    def constants(self):
        """A load from the struct or the table."""
        if self.random.random() < 0.5:
            pointer, _ = self.at(self.given, "ptr.const", 56)
        else:
            pointer, _ = self.at(self.new("ptr.const", "variable 0", False), "ptr.const", 56)
        self.new(self.random.choice(INTS + FLOATS), f"load {pointer}")

    def generic(self, base, space, most):
        pointer, space = self.at(base, space, most)
        if space != "ptr.generic":
            pointer = self.new("ptr.generic", f"cvta {pointer}", False)
        return pointer

    def anywhere(self):
        """An integer in one of several spaces; an own array's may be written, too."""
        own = [self.generic(self.arrays["i64"], "ptr.local", 24) for _ in range(2)]
        other = self.random.choice((
            lambda: self.generic("%1", "ptr.global", INPUT_BYTES - 8),
            lambda: self.generic(self.given, "ptr.const", 56),
            lambda: self.generic(self.new("ptr.const", "variable 0", False), "ptr.const", 56),
            lambda: own[1],
        ))()  # fmt: skip
        cond = self.use("i1")
        pointer = self.new("ptr.generic", f"select {cond}, {own[0]}, {other}", False)
        self.new(self.random.choice(INTS), f"load {pointer}")
        if other == own[1]:
            self.put(f"store {pointer}, {self.use('i64')}")
        if self.random.random() < 0.3:
            back = self.new("ptr.local", f"cvta {own[0]}", False)
            self.new("i64", f"load {back}")

    def count_up(self):
        which = self.random.randrange(len(COUNTS))
        base = self.new("ptr.global", "variable 1", False)
        place = self.new("ptr.global", f"ptradd {base}, {self.const('i64', 8 * which)}", False)
        kind = self.random.choice(("ptr.global", "ptr.generic"))
        if kind == "ptr.generic":
            place = self.new(kind, f"cvta {place}", False)
        self.new("i64", f"atomic.{COUNTS[which]} {place}, {self.use('i64')}", False)

    def variables(self):
        """What the header says of them: the counters begin with a few bytes."""
        table = bytes(self.random.getrandbits(8) for _ in range(TABLE_BYTES)).hex()
        few = bytes(self.random.getrandbits(8) for _ in range(self.random.randrange(1, 60))).hex()
        align = self.random.choice((8, 16, 128))
        return (
            f"\n  variable @table ptr.const {TABLE_BYTES} align 8 = {table}"
            f"\n  variable @counters ptr.global {8 * len(COUNTS)} align {align} = {few}"
        )

    def make_private(self):
        self.arrays = {}
        for kind in ("i32", "i64", "f64"):
            base = self.arrays[kind] = self.new("ptr.local", "alloc 32", False)
            value = self.use(kind)
            for cell in range(0, 32, 8):
                pointer = self.new("ptr.local", f"ptradd {base}, {self.const('i64', cell)}", False)
                self.put(f"store {pointer}, {value}")

    def store(self):
        """To a slot of the thread's own; sometimes reads one back."""
        pick = self.random
        if self.slots and pick.random() < 0.3:
            slot = pick.randrange(len(self.slots))
        else:
            slot = len(self.slots)
            self.slots.append(pick.choice(INTS + FLOATS))
        kind = self.slots[slot]
        value = self.use(kind)
        offset = self.const("i64", slot * SLOT_BYTES)
        pointer = self.new("ptr.global", f"ptradd {self.base}, {offset}", False)
        if pick.random() < 0.2:
            pointer = self.new("ptr.generic", f"cvta {pointer}", False)
        self.put(f"store {pointer}, {value}")
        if pick.random() < 0.4:
            self.new(kind, f"load {pointer}")

    # ---- constructs ----

    def open(self):
        self.depth += 1
        return list(self.scope)

    def close(self, scope, text="}"):
        self.depth -= 1
        self.scope = scope
        self.put(text)

    def results(self, count):
        types = [self.random.choice(INTS + FLOATS + ("i1",)) for _ in range(count)]
        names = []
        for _ in types:
            names.append(f"%{self.next_value}")
            self.next_value += 1
        return names, types

    def values(self, types):
        return "".join((", " if i else " ") + self.use(t) for i, t in enumerate(types))

    def head(self, names, types):
        return ", ".join(f"{n}: {t}" for n, t in zip(names, types)) + (" = " if names else "")

    def conditional(self, depth):
        pick = self.random
        cond = self.const("i1") if pick.random() < 0.15 else self.use("i1")
        names, types = self.results(pick.randrange(3))
        label = self.next_label
        self.next_label += 1
        self.put(f"{self.head(names, types)}if @{label} {cond} {{")
        for last in (False, True):
            scope = self.open()
            self.body(depth + 1, pick.randrange(1, 5))
            self.leave(label, types)
            self.close(scope, "}" if last else "} else {")
        self.scope += zip(names, types)

    def leave(self, label, types):
        """Ends a region: to its own label, or a jump further out."""
        pick = self.random.random()
        if self.loops and pick < 0.15:
            loop = self.random.choice(self.loops)
            self.put(f"br @{loop[0]}{self.values(loop[1])}")
        elif self.loops and pick < 0.3:
            self.next_round(self.loops[-1])
        elif pick > 0.97:
            self.end()
        else:
            self.put(f"br @{label}{self.values(types)}")

    def end(self):
        """Ends the thread."""
        self.put("return")

    def next_round(self, loop):
        label, _, carried, counter = loop
        one = self.const("i32", 1)
        step = self.new("i32", f"add {counter}, {one}", False)
        self.put(f"continue @{label} {step}" + "".join(", " + self.use(t) for t in carried))

    def loop(self, depth):
        pick = self.random
        carried = [pick.choice(INTS + FLOATS) for _ in range(pick.randrange(3))]
        start = self.const("i32", 0)
        inits = [self.use(t) for t in carried]
        if pick.random() < 0.5:
            limit = self.const("i32", pick.randrange(5))
        else:
            limit = self.new("i32", f"and {self.use('i32')}, {self.const('i32', 3)}")
        names, types = self.results(pick.randrange(3))
        label = self.next_label
        self.next_label += 1
        params = [f"%{self.next_value + i}" for i in range(len(carried) + 1)]
        self.next_value += len(params)
        declared = ", ".join(
            f"{p}: {t} = {v}" for p, t, v in zip(params, ["i32", *carried], [start, *inits])
        )
        self.put(f"{self.head(names, types)}loop @{label} ({declared}) {{")
        scope = self.open()
        self.scope += zip(params, ["i32", *carried])
        self.guard(label, params[0], limit, types)
        self.loops.append((label, types, carried, params[0]))
        self.body(depth + 1, pick.randrange(1, 6))
        here = self.loops.pop()
        self.next_round(here)
        self.close(scope)
        self.scope += zip(names, types)

    def guard(self, loop, counter, limit, types):
        """Leaves the loop when the counter has reached its limit."""
        go_on = self.new("i1", f"lt.s {counter}, {limit}", False)
        label = self.next_label
        self.next_label += 1
        self.put(f"if @{label} {go_on} {{")
        scope = self.open()
        self.put(f"br @{label}")
        self.close(scope, "} else {")
        scope = self.open()
        self.put(f"br @{loop}{self.values(types)}")
        self.close(scope)

    def block(self, depth):
        names, types = self.results(self.random.randrange(3))
        label = self.next_label
        self.next_label += 1
        self.put(f"{self.head(names, types)}block @{label} {{")
        scope = self.open()
        self.body(depth + 1, self.random.randrange(1, 4))
        self.leave(label, types)
        self.close(scope)
        self.scope += zip(names, types)

    def body(self, depth, count):
        for _ in range(count):
            pick = self.random.random()
            if depth < 4 and pick < 0.12:
                self.conditional(depth)
            elif depth < 3 and pick < 0.18:
                self.loop(depth)
            elif depth < 4 and pick < 0.22:
                self.block(depth)
            elif pick < 0.32:
                self.store()
            else:
                self.straight()

    def phases(self):
        """What stands between the start and the end."""
        self.body(0, self.size)

    def begin(self):
        """Comes first, where all threads are together."""

    def flat(self, place, size):
        """The flat number of a place ("tid", "ctaid") in its box, x fastest."""
        number = self.new("i32", f"special {place}.{'xyz'[self.dims - 1]}")
        for axis in "xyz"[: self.dims - 1][::-1]:
            sizes = self.new("i32", f"special {size}.{axis}", self.random.random() < 0.3)
            rows = self.new("i32", f"mul {number}, {sizes}", False)
            number = self.new("i32", f"add {rows}, {self.new('i32', f'special {place}.{axis}')}")
        return number

    def box(self):
        """The number of threads of a block."""
        sizes = [self.new("i32", f"special ntid.{axis}", False) for axis in "xyz"[: self.dims]]
        product = sizes[0]
        for other in sizes[1:]:
            product = self.new("i32", f"mul {product}, {other}", False)
        return product

    def result(self, kind):
        """What the thread leaves behind; of integers often what hangs on all that is there."""
        if kind in FLOATS or not self.mixes:
            return self.use(kind)
        value = self.const(kind)
        for name in [name for name, t in self.scope if t == kind]:
            value = self.new(
                kind, f"{self.random.choice(('xor', 'xor', 'add', 'sub'))} {value}, {name}", False
            )
        return value

    def number(self):
        """The thread's number in the launch, and its place among its neighbours."""
        if not self.apart:
            block = self.flat("ctaid", "nctaid")
            before = self.new("i32", f"mul {block}, {self.box()}", False)
            thread = self.flat("tid", "ntid")
            return self.new("i32", f"add {before}, {thread}"), thread
        number = None
        for axis in "xyz"[: self.dims][::-1]:
            place = self.index(axis)
            if number is not None:
                sizes = [self.new("i32", f"special {s}.{axis}") for s in ("ntid", "nctaid")]
                rows = self.new("i32", f"mul {sizes[0]}, {sizes[1]}")
                number = self.new("i32", f"mul {number}, {rows}", False)
                place = self.new("i32", f"add {number}, {place}")
            number = place
        return number, number

    def kernel(self):
        self.begin()
        flat, thread = self.number()
        wide = self.new("i64", f"sext {flat}")
        stretch = self.new("i64", "const STRETCH", False)
        offset = self.new("i64", f"mul {wide}, {stretch}", False)
        self.base = self.new("ptr.global", f"ptradd %0, {offset}", False)
        for kind in INTS + FLOATS:  # something of each type that differs between the threads
            place = self.new("i64", f"and {offset}, {self.const('i64', INPUT_BYTES - 8)}", False)
            pointer = self.new("ptr.global", f"ptradd %1, {place}", False)
            self.new(kind, f"load {pointer}")
        self.new("i1", f"lt.s {thread}, {self.use('i32')}")
        self.new("i1", f"flt {self.use('f64')}, {self.use('f64')}")
        for _ in range(self.random.randrange(4)):
            self.coordinate()
        self.make_private()
        self.phases()
        for kind in INTS + FLOATS:  # something of each type is always seen
            self.slots.append(kind)
            offset = self.const("i64", (len(self.slots) - 1) * SLOT_BYTES)
            pointer = self.new("ptr.global", f"ptradd {self.base}, {offset}", False)
            self.put(f"store {pointer}, {self.result(kind)}")
        self.put("return")
        head = "kernel @random(%0: ptr.global, %1: ptr.global, %2: i32, %3: f32, "
        head += f"%4: ptr.const struct {STRUCT_BYTES} align {self.random.choice((8, 16, 64))})"
        head += self.variables() + " {"
        text = "\n".join([head, *self.lines, "}"]) + "\n"
        text = text.replace("STRETCH", str(SLOT_BYTES * len(self.slots)))
        return Program(text, self.slots)
