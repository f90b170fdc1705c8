"""A scalar evaluator of printed IR: one thread at a time, Python integers and NumPy scalars.

Written from ops.def alone; shares no code with the library. run(text, grid, block, args)
changes the byte buffers among args (not those of structs by value) and in `variables`. A thread
runs until it waits (ir_sync.py), which makes it a generator. Device functions are those
of Python, so they are right to a few units in the last place.
"""

import math
import re
from fractions import Fraction

import numpy as np
from ir_sync import WAITS, WARP, run_together

BITS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "f16": 16, "f32": 32, "f64": 64}
FLOAT = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
UINT = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}
INSTRUCTION = re.compile(r"^(?:(%.*?) = )?([a-z_0-9.]+)\s*(.*)$")
DEFINED = re.compile(r"(%\d+): ([a-z0-9.]+)")
STRUCT = re.compile(r"(%\d+): ptr.const struct (\d+) align (\d+)")
VARIABLE = re.compile(r"^ *variable @(\S+) (\S+) (\d+) align (\d+)(?: = ([0-9a-f]+))?", re.M)


class Inst:
    """One parsed line, with its regions."""

    def __init__(self, results, op, rest):
        self.results = results  # (name, type)
        self.op = op
        self.rest = rest
        self.regions = []
        self.params = []
        self.args = re.findall(r"%\d+", rest)
        label = re.search(r"@(\d+)", rest)
        self.label = int(label.group(1)) if label else None


def parse_functions(text):
    """What parse gives of each function beside the kernel."""
    parts = re.split(r"^(?=function \d+ @)", text, flags=re.MULTILINE)
    return [parse(part) for part in parts[1:]]


def parse(text):
    """The parameters (name, type) of the kernel, or function, and the body, a list of Inst."""
    lines = [line.strip() for line in text.strip().splitlines()]
    lines[0] = lines[0].partition(" -> ")[0]
    params = DEFINED.findall(lines[0])
    at = 1
    while at < len(lines) and lines[at].startswith(("call @", "variable @")):
        at += 1
    lines = lines[at:]
    at = 0

    def region():
        nonlocal at
        body = []
        while not lines[at].startswith("}"):
            results, op, rest = INSTRUCTION.match(lines[at]).groups()
            at += 1
            inst = Inst(DEFINED.findall(results or ""), op, rest.rstrip(" {"))
            body.append(inst)
            if op not in ("block", "loop", "if"):
                continue
            if op == "loop":
                inst.params = DEFINED.findall(inst.rest)
                inst.args = re.findall(r"= (%\d+)", inst.rest)
            inst.regions.append(region())
            if op == "if":
                at += 1
                inst.regions.append(region())
            at += 1
        return body

    return params, region()


def signed(value, width):
    """Reads an unsigned value as two's complement."""
    return value - (1 << width) if value >> (width - 1) else value


def towards_zero(a, b):
    """Quotient of integers, towards zero."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def int_binary(op, a, b, width):
    """Result before cutting to the width."""
    sa, sb = signed(a, width), signed(b, width)
    base, _, sign = op.partition(".")
    x, y = (sa, sb) if sign == "s" else (a, b)
    if base == "mulhi":
        return (x * y) >> width
    if base == "div":
        return towards_zero(x, y) if y else 0
    if base == "rem":
        return x - towards_zero(x, y) * y if y else 0
    if base in ("min", "max"):
        return min(x, y) if base == "min" else max(x, y)
    if base == "shl":
        return a << b if b < width else 0
    if base == "shr":
        return x >> min(b, width)
    return {
        "add": a + b, "sub": a - b, "mul": a * b, "and": a & b, "or": a | b, "xor": a ^ b,
    }[base]  # fmt: skip


def int_unary(op, a, width):
    """Result before cutting to the width."""
    text = format(a, f"0{width}b")
    if op == "not":
        return ~a
    if op == "abs":
        return abs(signed(a, width))
    if op == "popc":
        return text.count("1")
    if op == "clz":
        return width - len(text.lstrip("0"))
    if op == "ctz":
        return width - len(text.rstrip("0"))
    return int(text[::-1], 2)  # brev


def int_compare(op, a, b, width):
    """0 or 1."""
    base, _, sign = op.partition(".")
    if sign == "s":
        a, b = signed(a, width), signed(b, width)
    return int({"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b}[base])


def round_to(exact, kind):
    """A Fraction rounded once to the float type."""
    digits, least, largest = {"f16": (11, -24, 16), "f32": (24, -149, 128)}[kind]
    if exact == 0:
        return FLOAT[kind](0)
    magnitude, exponent = abs(exact), 0
    while magnitude >= 1:
        magnitude /= 2
        exponent += 1
    while magnitude < Fraction(1, 2):
        magnitude *= 2
        exponent -= 1
    unit = max(exponent - digits, least)
    whole = round(abs(exact) / (Fraction(2) ** unit))  # ties to even
    value = whole * Fraction(2) ** unit
    value = float("inf") if value >= Fraction(2) ** largest else float(value)
    return FLOAT[kind](-value if exact < 0 else value)


def fma(a, b, c, kind):
    """a * b + c, rounded once."""
    if np.isfinite(a) and np.isfinite(b) and not np.isfinite(c):
        return FLOAT[kind](c)  # the product may be beyond what floats can be, but is finite
    if not (np.isfinite(a) and np.isfinite(b) and np.isfinite(c)):
        return FLOAT[kind](np.float64(a) * np.float64(b) + np.float64(c))
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    if exact == 0:  # the signs of the zeros decide
        product = -0.0 if np.signbit(a) != np.signbit(b) else 0.0
        zero_product = a == 0 or b == 0
        return FLOAT[kind](product + float(c) if zero_product else 0.0)
    if kind != "f64":
        return round_to(exact, kind)
    try:
        value = float(exact)
    except OverflowError:
        value = float("inf") if exact > 0 else float("-inf")
    return np.float64(-0.0 if value == 0 and exact < 0 else value)


def pick_extreme(op, a, b):
    """The two families of minimum and maximum."""
    least = op.startswith("fmin")
    if np.isnan(a) or np.isnan(b):
        if op.endswith(".nan"):
            return type(a)(np.nan)
        return b if np.isnan(a) else a
    if a == b:
        return a if bool(np.signbit(a)) == least else b
    return a if (a < b) == least else b


def float_binary(op, a, b):
    """One correctly rounded operation."""
    if op.startswith(("fmin", "fmax")):
        return pick_extreme(op, a, b)
    if op == "frem":
        return np.fmod(a, b)
    if op == "frem.near":
        exact = np.isfinite(a) and not np.isnan(b) and b != 0
        return type(a)(math.remainder(float(a), float(b)) if exact else np.nan)
    if op == "nextafter":
        return np.nextafter(a, b)
    return {"fadd": np.add, "fsub": np.subtract, "fmul": np.multiply, "fdiv": np.divide}[op](a, b)


FLOAT_UNARY = {
    "fneg": np.negative, "fabs": np.abs, "fsqrt": np.sqrt, "ffloor": np.floor,
    "fceil": np.ceil, "ftrunc": np.trunc, "frint": np.rint,
}  # fmt: skip
FLOAT_COMPARE = {"feq": np.equal, "fne": np.not_equal, "flt": np.less, "fle": np.less_equal}


def from_zero(f):
    """A logarithm, also at 0."""
    return lambda x: -math.inf if x == 0 else f(x)


def over(f, at_zero):
    """1 / f, with its value at the zeros."""
    return lambda x: math.copysign(at_zero, x) if x == 0 else 1 / f(x)


def sinpi(x):
    """sin(pi * x), exact where it is 0 or 1."""
    turn = math.fmod(x, 2)
    turn = math.copysign(1, turn) - turn if abs(turn) > 0.5 else turn
    turn = -math.copysign(1, turn) - turn if abs(turn) > 0.5 else turn
    return math.copysign(0.0, x) if turn == 0 else math.sin(math.pi * turn)


def erfinv(x):
    """By bisection on erf, or erfc towards 1."""
    if not abs(x) < 1:
        return math.copysign(math.inf, x) if abs(x) == 1 else math.nan
    low, high = 0.0, 7.0
    for _ in range(1100):
        y = (low + high) / 2
        above = math.erf(y) > abs(x) if abs(x) < 0.5 else math.erfc(y) < 1 - abs(x)
        low, high = (low, y) if above else (y, high)
        if y in (low, high) and (low + high) / 2 in (low, high):
            break
    return math.copysign(high, x) if x else x


DEVICE = {
    "exp": math.exp, "exp2": math.exp2, "exp10": lambda x: math.pow(10, x), "expm1": math.expm1,
    "log": from_zero(math.log), "log2": from_zero(math.log2), "log10": from_zero(math.log10),
    "log1p": lambda x: -math.inf if x == -1 else math.log1p(x),
    "sin": math.sin, "cos": math.cos, "tan": math.tan, "asin": math.asin, "acos": math.acos,
    "atan": math.atan, "atan2": math.atan2, "sinh": math.sinh, "cosh": math.cosh,
    "tanh": math.tanh, "erf": math.erf, "pow": math.pow, "cbrt": math.cbrt,
    "asinh": math.asinh, "acosh": math.acosh, "erfc": math.erfc,
    "atanh": lambda x: math.copysign(math.inf, x) if abs(x) == 1 else math.atanh(x),
    "tgamma": lambda x: math.copysign(math.inf, x) if x == 0 else math.gamma(x),
    "lgamma": lambda x: math.inf if x <= 0 and x == math.floor(x) else math.lgamma(x),
    "sinpi": sinpi, "erfinv": erfinv, "cospi": lambda x: 0.0 + sinpi(0.5 - abs(math.fmod(x, 2))),
    "rsqrt": over(math.sqrt, math.inf), "hypot": math.hypot,
}  # fmt: skip


def device(op, args, kind):
    """A device function by way of Python's, not to the last bit."""
    values = [float(a) for a in args]
    try:
        value = DEVICE[op](*values)
    except OverflowError:
        value = overflow(op, values)
    except (ValueError, ZeroDivisionError):
        value = domain(op, values)
    if kind == "f16":  # computed in f32
        value = np.float32(value)
    return FLOAT[kind](value)


def odd_integer(y):
    """Whether the float is an odd integer."""
    return math.isfinite(y) and y.is_integer() and int(y) % 2 == 1


def overflow(op, values):
    """The infinity that Python makes an OverflowError of."""
    minus = values[0] < 0 and (op == "sinh" or op == "pow" and odd_integer(values[1]))
    return -math.inf if minus else math.inf


def domain(op, values):
    """The value that Python makes a ValueError of."""
    if op == "pow" and values[0] == 0:
        return math.copysign(math.inf, values[0]) if odd_integer(values[1]) else math.inf
    return math.nan


def ldexp(value, n, kind):
    """value * 2**n, rounded once."""
    if not np.isfinite(value) or value == 0:
        return value
    most = 2200 if kind == "f64" else 330
    exact = Fraction(float(value)) * Fraction(2) ** max(-most, min(most, n))
    try:
        result = round_to(exact, kind) if kind != "f64" else np.float64(float(exact))
    except OverflowError:
        result = np.float64(np.inf)
    return FLOAT[kind](math.copysign(result, value))


def int_to_float(value, kind):
    """Rounded once."""
    return np.float64(float(value)) if kind == "f64" else round_to(Fraction(value), kind)


def float_to_int(value, width, is_signed):
    """Towards zero, saturating, NaN gives 0."""
    low, high = (
        (-(1 << (width - 1)), (1 << (width - 1)) - 1) if is_signed else (0, (1 << width) - 1)
    )
    if np.isnan(value):
        return 0
    if np.isinf(value):
        return high if value > 0 else low
    return max(low, min(high, int(value)))


def narrow(value, kind):
    """fptrunc: NumPy's casts round once."""
    return FLOAT[kind](value)


class Jump(Exception):
    """br, continue, return or exit on its way to its construct, its call or the thread's end."""

    def __init__(self, op, label, values):
        self.op, self.label, self.values = op, label, values


def updated(op, kind, old, new, third=None):
    """What an atomic operation stores."""
    if op == "exch":
        return new
    if op == "cas":
        return third if old == new else old
    if op == "inc":
        return 0 if old >= new else old + 1
    if op == "dec":
        return new if old == 0 or old > new else old - 1
    if op == "fadd":
        return old + new
    if op in ("fmin", "fmax"):
        return pick_extreme(op + ".num", old, new)
    if op in ("fmin.ord", "fmax.ord"):
        return new if (new < old if op == "fmin.ord" else new > old) else old
    return int_binary(op, old, new, BITS[kind]) & ((1 << BITS[kind]) - 1)


class Thread:
    """The values of one thread, in the kernel or a call. shared: its block's shared memory, buffers
    by function and value name; dynamic has the bytes of the launch. variables: addresses."""

    def __init__(self, specials, memory, values, types, shared, unit=((), ()), number=None):
        self.specials, self.memory, self.values, self.types = specials, memory, values, types
        self.shared, self.unit, self.number = shared, unit, number
        self.functions, self.variables = unit

    def set(self, name, kind, value):
        """Defines a value; integers are kept unsigned."""
        self.types[name] = kind
        self.values[name] = value & ((1 << BITS[kind]) - 1) if kind[0] == "i" else value

    def run(self, body):
        """Runs a region up to the jump that ends it; yields (op, operands, type) where it waits."""
        for inst in body:
            if inst.op in ("br", "continue", "return", "exit"):
                raise Jump(inst.op, inst.label, [self.values[a] for a in inst.args])
            if inst.regions:
                yield from self.construct(inst)
            elif inst.op == "store":
                self.store(inst)
            elif inst.op == "call":
                yield from self.call(inst)
            elif inst.op in WAITS:
                args = [self.values[a] for a in inst.args]
                kind = self.types[inst.args[0]] if inst.args else None
                result = yield inst.op, args, kind
                for name, kind in inst.results:
                    self.set(name, kind, result)
            elif inst.op != "fence":
                name, kind = inst.results[0]
                self.set(name, kind, self.compute(inst, kind))

    def construct(self, inst):
        """block, if or loop."""
        given = [self.values[a] for a in inst.args]
        while True:
            which = 1 if inst.op == "if" and not given[0] else 0
            for (name, kind), value in zip(inst.params, given):
                self.set(name, kind, value)
            try:
                yield from self.run(inst.regions[which])
            except Jump as jump:
                if jump.label != inst.label or jump.op in ("return", "exit"):
                    raise
                if jump.op == "continue":
                    given = jump.values
                    continue
                for (name, kind), value in zip(inst.results, jump.values):
                    self.set(name, kind, value)
                return

    def call(self, inst):
        """A function beside the kernel, with values of its own."""
        number = int(inst.rest.split()[0])
        params, body = self.functions[number]
        values = {name: self.values[a] for (name, _), a in zip(params, inst.args)}
        inner = Thread(self.specials, self.memory, values, dict(params), self.shared,
                       self.unit, number)  # fmt: skip
        try:
            yield from inner.run(body)
        except Jump as jump:
            if jump.op == "exit":
                raise
            for (name, kind), value in zip(inst.results, jump.values):
                self.set(name, kind, value)

    def store(self, inst):
        """Writes the bytes of a value."""
        pointer, value = (self.values[a] for a in inst.args)
        self.write(pointer, self.types[inst.args[1]], value)

    def write(self, pointer, kind, value):
        """Puts a value into memory."""
        buffer, offset = pointer
        if kind[0] == "i":
            value = UINT[max(BITS[kind], 8)](value)
        raw = value.tobytes()
        self.memory[buffer][offset : offset + len(raw)] = np.frombuffer(raw, np.uint8)

    def load(self, pointer, kind):
        """Reads a value."""
        buffer, offset = pointer
        raw = self.memory[buffer][offset : offset + BITS[kind] // 8].tobytes()
        return (
            np.frombuffer(raw, FLOAT[kind])[0] if kind[0] == "f" else int.from_bytes(raw, "little")
        )

    def alloc(self, inst, kind, count):
        """Shared memory is made by the block's first thread that comes."""
        made = self.shared if kind == "ptr.shared" else {}
        dynamic = inst.op == "alloc.dynamic"
        name = "dynamic" if dynamic else (self.number, inst.results[0][0])
        count = self.shared["bytes"] if dynamic else count
        if name not in made:
            self.memory.append(np.zeros(count, np.uint8))
            made[name] = (len(self.memory) - 1, 0)
        return made[name]

    def atomic(self, op, args, kind):
        """The old value; threads act one after the other."""
        old = self.load(args[0], kind)
        self.write(args[0], kind, updated(op.split(".", 1)[1], kind, old, *args[1:]))
        return old

    def constant(self, kind, bits):
        """The value with these bits."""
        if kind[0] != "f":
            return bits
        return np.array([bits], UINT[BITS[kind]]).view(FLOAT[kind])[0]

    def compute(self, inst, kind):
        """The value of an operation without regions."""
        op = inst.op
        if op == "const":
            return self.constant(kind, int(inst.rest.split()[0]))
        if op == "special":
            return self.specials[inst.rest.split()[0]]
        if op == "alloc":
            return self.alloc(inst, kind, int(inst.rest.split()[0]))
        if op == "alloc.dynamic":
            return self.alloc(inst, kind, None)
        if op == "variable":
            return self.variables[int(inst.rest.split()[0])]
        args = [self.values[a] for a in inst.args]
        first = self.types[inst.args[0]]
        if op.startswith("atomic"):
            return self.atomic(op, args, kind)
        if op == "load":
            return self.load(args[0], kind)
        if op == "ptradd":
            return args[0][0], args[0][1] + signed(args[1], 64)
        if op == "select":
            return args[1] if args[0] else args[2]
        if op == "cvta":  # what a pointer points to says in which space it is
            return args[0]
        if first[0] == "i":
            return self.integer(op, args, BITS[first], kind)
        return self.floating(op, args, kind)

    def integer(self, op, args, width, kind):
        """Operations on integers."""
        if op in ("trunc", "zext"):
            return args[0]
        if op == "sext":
            return signed(args[0], width)
        if op == "sitofp":
            return int_to_float(signed(args[0], width), kind)
        if op == "uitofp":
            return int_to_float(args[0], kind)
        if op == "bitcast":
            return self.constant(kind, args[0])
        if kind == "i1" and op not in ("and", "or", "xor", "not"):
            return int_compare(op, *args, width)
        return int_unary(op, args[0], width) if len(args) == 1 else int_binary(op, *args, width)

    def floating(self, op, args, kind):
        """Operations on floats."""
        if op in ("fptosi", "fptoui"):
            return float_to_int(args[0], BITS[kind], op == "fptosi")
        if op in ("fpext", "fptrunc"):
            return narrow(args[0], kind)
        if op == "fma":
            return fma(*args, kind)
        if op == "ldexp":
            return ldexp(args[0], signed(args[1], 32), kind)
        if op == "frexp.exponent":
            return math.frexp(float(args[0]))[1] if np.isfinite(args[0]) else 0
        if op == "frexp.fraction":
            return type(args[0])(math.frexp(float(args[0]))[0])
        if op in FLOAT_COMPARE:
            return int(FLOAT_COMPARE[op](*args))
        if op in DEVICE:
            return device(op, args, kind)
        if op in FLOAT_UNARY:
            return FLOAT_UNARY[op](args[0])
        return float_binary(op, *args)


def box(sizes):
    """Three sizes: x, y, z."""
    sizes = (sizes,) if isinstance(sizes, int) else tuple(sizes)
    return sizes + (1,) * (3 - len(sizes))


def places(sizes):
    """All (x, y, z) of a box, x fastest."""
    return [(x, y, z) for z in range(sizes[2]) for y in range(sizes[1]) for x in range(sizes[0])]


def declared(text, variables):
    """The bytes of the variables of the text in order; those not in the dict are added to it."""
    found = []
    for name, _, count, _, start in VARIABLE.findall(text):
        if name not in variables:
            variables[name] = np.zeros(int(count), np.uint8)
            known = np.frombuffer(bytes.fromhex(start), np.uint8)
            variables[name][: len(known)] = known
        found.append(variables[name])
    return found


def run(text, grid, block, args, trace=None, shared=0, variables=None):
    """Runs a launch. grid, block: a number, or up to three. args: np.uint8 arrays for pointers, int
    or float. shared: bytes of dynamic shared memory.

    trace: a list that gets a dict of the values of each thread, by name. variables: a dict of the
    bytes of variables by name, which keeps them between launches.
    """
    params, body = parse(text)
    structs = {name for name, _, _ in STRUCT.findall(text)}
    memory = declared(text, {} if variables is None else variables)
    unit = parse_functions(text), [(i, 0) for i in range(len(memory))]
    first, types = {}, dict(params)
    for (name, kind), arg in zip(params, args):
        if kind.startswith("ptr"):
            first[name] = (len(memory), 0)
            memory.append(arg.copy() if name in structs else arg)
        else:
            first[name] = FLOAT[kind](arg) if kind[0] == "f" else arg & ((1 << BITS[kind]) - 1)
    grid, block = box(grid), box(block)
    threads = []
    for ctaid in places(grid):
        of_block = {"bytes": shared}
        for flat, tid in enumerate(places(block)):
            specials = {"laneid": flat % WARP}
            for word, values in (("tid", tid), ("ctaid", ctaid), ("ntid", block), ("nctaid", grid)):
                specials.update({f"{word}.{axis}": v for axis, v in zip("xyz", values)})
            threads.append(Thread(specials, memory, dict(first), dict(types), of_block, unit))
    with np.errstate(all="ignore"):
        run_together(threads, [ended(thread, body) for thread in threads], math.prod(block))
    if trace is not None:
        trace.extend(thread.values for thread in threads)


def ended(thread, body):
    """The run of a thread to its return."""
    try:
        yield from thread.run(body)
    except Jump as jump:
        assert jump.op in ("return", "exit")
