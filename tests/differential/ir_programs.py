"""Random programs of the IR: generate(seed), generate_waiting(seed) -> Program.

With calls=True the kernel calls functions beside it, which call themselves and each other;
generate_waiting: threads also exchange values, at barriers and in warps.
"""

from ir_gen import FLOATS, INTS, PARAMS, SHARED_BYTES, Program, Writer


class _Caller(Writer):
    """A kernel and functions that are called with a number of calls that may come below them, the
    thread's stretch of the output, and values of any types."""

    def __init__(self, seed, size, dims, apart):
        super().__init__(seed, size, dims, apart)
        pick, kinds = self.random, INTS + FLOATS + ("i1",)
        self.signatures = [
            [[pick.choice(kinds) for _ in range(pick.randrange(most))] for most in (4, 4)]
            for _ in range(pick.randrange(1, 4))
        ]
        self.here = None  # the results of the function that is written; of the kernel None

    def kernel(self):
        texts = [self.function(k) for k in range(len(self.signatures))]
        self.lines, self.next_value, self.next_label, self.here = [], len(PARAMS), 0, None
        self.scope = [("%2", "i32"), ("%3", "f32")]
        program = super().kernel()
        return Program(program.text + "".join(texts), program.slots)

    def function(self, number):
        given, self.here = self.signatures[number]
        params = [*PARAMS, "ptr.generic", *given]
        self.lines, self.next_value, self.next_label = [], len(params), 0
        self.scope = [(f"%{i}", kind) for i, kind in enumerate(params) if i in (2, 3) or i > 5]
        self.base = "%0"
        self.put_guard()
        self.make_private()
        self.new("i64", "load %5")  # a cell of an array of the caller's
        self.put(f"store %5, {self.use('i64')}")
        for _ in range(self.random.randrange(1, 4)):
            self.body(1, self.random.randrange(1, self.size // 4 + 3))
            if self.random.random() < 0.6:
                self.call()
        self.give_back()
        heads = ", ".join(f"%{i}: {kind}" for i, kind in enumerate(params))
        results = " -> " + ", ".join(self.here) if self.here else ""
        return f"function {number} @f{number}({heads}){results} {{\n" + "\n".join(
            [*self.lines, "}", ""])  # fmt: skip

    def put_guard(self):
        """Ends the calls in calls."""
        more = self.new("i1", f"lt.s {self.const('i32', 0)}, %2", False)
        label = self.next_label
        self.next_label += 1
        self.put(f"if @{label} {more} {{")
        scope = self.open()
        self.put(f"br @{label}")
        self.close(scope, "} else {")
        scope = self.open()
        self.give_back()
        self.close(scope)

    def give_back(self):
        self.put("return" + self.values(self.here))

    def end(self):
        if self.here is None:
            self.put("return")
        elif self.random.random() < 0.3:
            self.put("exit")
        else:
            self.give_back()

    def call(self):
        number = self.random.randrange(len(self.signatures))
        given, types = self.signatures[number]
        if self.here is not None:
            left = self.new("i32", f"add %2, {self.const('i32', -1)}", False)
        elif self.random.random() < 0.5:
            left = self.const("i32", self.random.randrange(4))
        else:
            left = self.new("i32", f"and {self.use('i32')}, {self.const('i32', 3)}", False)
        args = [self.base, "%1", left, self.use("f32"), self.given]
        args += [self.generic(self.arrays["i64"], "ptr.local", 24), *(self.use(t) for t in given)]
        names = [f"%{self.next_value + i}" for i in range(len(types))]
        self.next_value += len(names)
        self.put(f"{self.head(names, types)}call {number} {', '.join(args)}")
        self.scope += zip(names, types)

    def straight(self):
        if self.here is None and self.random.random() < 0.06:
            self.call()
        else:
            super().straight()


class _Waiter(Writer):
    """Phases of random code between barriers, exchanges, atomics and warp operations.

    Shared memory: a cell of 8 bytes per thread, and COUNTERS cells for atomics; what a phase reads
    was written before a barrier. Atomics whose old values are used stand between barriers: the
    threads of a block then act in ascending order.
    """

    COUNTERS = 4

    def __init__(self, seed, size, alone, dims):
        super().__init__(seed, size, dims)
        self.alone = alone

    def begin(self):
        tid = self.flat("tid", "ntid")
        self.threads = self.box()
        self.eight = self.const("i64", 8)
        dynamic = self.random.random() < 0.4
        size = "alloc.dynamic" if dynamic else f"alloc {SHARED_BYTES}"
        self.cells = self.new("ptr.shared", size, False)
        self.counters = self.new("ptr.shared", f"alloc {8 * self.COUNTERS}", False)
        self.arrays = {"i64": self.new("ptr.local", "alloc 32", False)}
        self.tid = tid
        self.mine = self.cell(tid)
        self.full = self.const("i32", 0xFFFFFFFF)
        self.width = self.const("i32", 32)
        zero = self.const("i64", 0)
        self.put(f"store {self.mine}, {zero}")
        self.reset(zero)
        self.new("i32", "special laneid")
        self.put("barrier")
        if self.alone:  # makes each thread a gang of its own
            self.poll()

    def poll(self):
        loop, label = self.next_label, self.next_label + 1
        self.next_label += 2
        self.put(f"loop @{loop} () {{")
        one = self.const("i32", 1)
        load = self.new("i32", f"load volatile.block {self.mine}", False)
        done = self.new("i1", f"ne {load}, {one}", False)
        self.put(f"if @{label} {done} {{\nbr @{loop}\n}} else {{\nbr @{label}\n}}")
        self.put(f"continue @{loop}\n}}")
        self.scope = [v for v in self.scope if v[0] != one]

    def reset(self, value):
        """All counters, by every thread alike."""
        for k in range(self.COUNTERS):
            self.put(f"store {self.cell(self.const('i32', k), self.counters)}, {value}")

    def cell(self, index, base=None):
        """The address of a cell; index: an i32 in range."""
        wide = self.new("i64", f"zext {index}", False)
        offset = self.new("i64", f"mul {wide}, {self.eight}", False)
        place = self.new("ptr.shared", f"ptradd {base or self.cells}, {offset}", False)
        if self.random.random() < 0.7:
            return place
        return self.lost(self.new("ptr.generic", f"cvta {place}", False))

    def lost(self, place):
        """The same generic pointer, of which it is seen or not where it points."""
        if self.random.random() < 0.5:
            return place
        other = self.new("ptr.generic", f"cvta {self.arrays['i64']}", False)
        never = self.new("i1", f"lt.u {self.threads}, {self.tid}", False)
        return self.new("ptr.generic", f"select {never}, {other}, {place}", False)

    def other_thread(self):
        """The number of some thread of the block, in terms of the caller's."""
        by = self.const("i32", self.random.randrange(64))
        return self.new("i32", f"rem.u {self.new('i32', f'add {self.tid}, {by}')}, {self.threads}")

    def exchange(self):
        """A value through shared memory."""
        kind = self.random.choice(INTS + FLOATS)
        self.put(f"store {self.mine}, {self.use(kind)}")
        self.put("barrier")
        for _ in range(2):
            self.new(kind, f"load {self.cell(self.other_thread())}")
        self.put("barrier")
        if kind in FLOATS:  # nobody reads the bits of a NaN
            self.put(f"store {self.mine}, {self.use('i64')}")

    def vote(self):
        """Barriers that count."""
        op = self.random.choice(("count", "and", "or"))
        self.new("i32", f"barrier.{op} {self.use('i32')}")

    def count(self):
        """Atomics on a few cells, all of one type: the cells hold what was left there."""
        pick = self.random
        op = pick.choice(("add and or xor min.s max.s min.u max.u exch cas inc dec "
                          "fadd fmin fmax fmin.ord fmax.ord").split())  # fmt: skip
        kind = pick.choice(("f32", "f64") if op[0] == "f" else ("i32", "i64"))
        few = self.const("i32", self.COUNTERS - 1)
        place = self.cell(self.new("i32", f"and {self.use('i32')}, {few}"), self.counters)
        values = [self.use(kind) for _ in range(1 + (op == "cas"))]
        self.put("barrier")
        if op[0] == "f":  # ordinary numbers to start from
            self.reset(self.const(kind, 0))
            self.put("barrier")
        self.new(kind, f"atomic.{op} {place}, " + ", ".join(values))
        self.put("barrier")
        self.new(kind, f"load {place}")
        self.put("barrier")
        if op[0] == "f":
            self.reset(self.const("i64"))
            self.put("barrier")

    def warp(self, mask=None):
        """A warp operation; without a mask, of all lanes."""
        pick = self.random
        mask = mask or self.full
        which = pick.randrange(6)
        if which < 3:
            kind = pick.choice(INTS + FLOATS)
            width = self.const("i32", pick.choice((1, 4, 8, 16, 32, 32, 32)))
            op = pick.choice(("idx", "up", "down", "bfly"))
            by = self.const("i32", pick.randrange(32)) if pick.random() < 0.5 else self.new(
                "i32", f"and {self.use('i32')}, {self.const('i32', 31)}")  # fmt: skip
            self.new(kind, f"shfl.{op} {self.use(kind)}, {by}, {mask}, {width}")
        elif which == 3:
            self.new("i1", f"vote.{pick.choice(('all', 'any', 'eq'))} {self.use('i1')}, {mask}")
        elif which == 4:
            self.new("i32", f"ballot {self.use('i1')}, {mask}")
        else:
            kind = pick.choice(INTS)
            self.new("i32", f"match.{pick.choice(('any', 'all'))} {self.use(kind)}, {mask}")

    def some_lanes(self):
        """Warp operations of the lanes that take a branch."""
        cond = self.use("i1")
        mask = self.new("i32", f"ballot {cond}, {self.full}")
        label = self.next_label
        self.next_label += 1
        names, types = self.results(2)
        self.put(f"{self.head(names, types)}if @{label} {cond} {{")
        scope = self.open()
        for _ in range(self.random.randrange(1, 3)):
            self.warp(mask)
        self.put(f"syncwarp {mask}")
        self.put(f"br @{label}{self.values(types)}")
        self.close(scope, "} else {")
        scope = self.open()
        self.put(f"br @{label}{self.values(types)}")
        self.close(scope)
        self.scope += zip(names, types)

    def together(self, count):
        """Code where all threads that have not returned stand together."""
        for _ in range(count):
            what = self.random.choice((self.exchange, self.vote, self.count, self.warp,
                                       self.warp, self.some_lanes, self.repeat))  # fmt: skip
            what()
            self.body(1, self.random.randrange(1, 5))

    def repeat(self):
        """A loop of which all threads run the same rounds."""
        if self.depth > 2:
            return
        kind = self.random.choice(INTS + FLOATS)
        limit, start = self.const("i32", self.random.randrange(4)), self.const("i32", 0)
        label, counter, value = self.next_label, self.next_value, self.next_value + 1
        result = self.next_value + 2
        self.next_label += 1
        self.next_value += 3
        carried = f"%{counter}: i32 = {start}, %{value}: {kind} = {self.use(kind)}"
        self.put(f"%{result}: {kind} = loop @{label} ({carried}) {{")
        scope = self.open()
        self.scope += [(f"%{counter}", "i32"), (f"%{value}", kind)]
        self.guard(label, f"%{counter}", limit, [kind])
        self.together(self.random.randrange(1, 3))
        step = self.new("i32", f"add %{counter}, {self.const('i32', 1)}", False)
        self.put(f"continue @{label} {step}, {self.use(kind)}")
        self.close(scope)
        self.scope.append((f"%{result}", kind))

    def phases(self):
        self.together(self.size)
        self.put("barrier")
        self.new("i64", f"load {self.mine}")


def generate_waiting(seed, size=4, alone=False, dims=1):
    """A random program whose threads exchange values; alone: each thread is a gang in the vm."""
    return _Waiter(seed, size, alone, dims).kernel()


def generate(seed, size=30, dims=1, apart=False, calls=False):
    """A random program; the same for the same arguments."""
    return (_Caller if calls else Writer)(seed, size, dims, apart).kernel()
