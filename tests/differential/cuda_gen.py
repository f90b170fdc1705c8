"""Random bodies in the part of C that is also CUDA C, for two compilers: every value is defined by
the standard (with wrapping integers), whichever order operands are evaluated in."""

INTS = [
    "char", "signed char", "unsigned char", "short", "unsigned short", "int", "unsigned",
    "long long", "unsigned long long", "bool",
]  # fmt: skip
FLOATS = ["float", "double"]
COMPARE = ["<", ">", "<=", ">=", "==", "!="]


class Body:
    """One function's text. random: of the standard library."""

    def __init__(self, random, budget=25):
        self.r, self.budget, self.depth = random, budget, 0
        self.names = [(f"i{k}", random.choice(INTS)) for k in range(6)]
        self.names += [(f"f{k}", random.choice(FLOATS)) for k in range(3)]
        self.counters = 0
        self.loops = 0
        self.array = random.choice(["int", "unsigned char", "long long", "float"])

    def pick(self, *makers):
        return self.r.choice(makers)()

    def integer(self, depth=0):
        r = self.r
        if depth > 3 or r.random() < 0.25:
            return self.pick(
                lambda: r.choice([n for n, t in self.names if t in INTS]),
                lambda: str(
                    r.choice([0, 1, 2, 3, 7, 100, 127, 128, 255, 256, 32768, 65535, 2147483647])
                ),
                lambda: r.choice(
                    ["'a'", "3u", "0xffu", "5ll", "0x80000000", "1ull << 40", "-1", "true"]
                ).join("()"),
                lambda: f"a[{self.integer(9)} & 7]" if self.array != "float" else "t",
                lambda: (
                    "s.n" if r.random() < 0.5 else "p[1]" if self.array != "float" else "s.m[1]"
                ),
                lambda: "t",
            )
        a, b = self.integer(depth + 1), self.integer(depth + 1)
        return self.pick(
            lambda: f"({a} {r.choice('+-*&|^')} {b})",
            lambda: f"({a} {r.choice('/%')} (({b} & 15) + 1))",
            lambda: f"({a} << ({b} & 15))" if r.random() < 0.5 else f"({a} >> ({b} & 7))",
            lambda: f"({r.choice('-~!')}{a})",
            lambda: f"({a} {r.choice(COMPARE)} {b})",
            lambda: f"({self.real(depth + 1)} {r.choice(COMPARE)} {self.real(depth + 1)})",
            lambda: f"({a} {r.choice(['&&', '||'])} {b})",
            lambda: f"({self.condition(depth + 1)} ? {a} : {b})",
            lambda: f"(({r.choice(INTS)}){a})",
            lambda: f"((int)clamp({self.real(depth + 1)}))",
            lambda: f"helper({a}, {b})",
            lambda: f"({a}, {b})",
        )

    def real(self, depth=0):
        r = self.r
        if depth > 3 or r.random() < 0.3:
            return self.pick(
                lambda: r.choice([n for n, t in self.names if t in FLOATS]),
                lambda: r.choice(["0.5f", "1.25", "3.0f", "-2.0", "100.0f", "1e-3"]).join("()"),
                lambda: "s.x",
                lambda: "a[2]" if self.array == "float" else "f0",
            )
        a, b = self.real(depth + 1), self.real(depth + 1)
        return self.pick(
            lambda: f"({a} {r.choice('+-*')} {b})",
            lambda: f"({a} / 8)",
            lambda: f"(-{a})",
            lambda: f"({self.condition(depth + 1)} ? {a} : {b})",
            lambda: f"(({r.choice(FLOATS)}){a})",
            lambda: f"(({r.choice(FLOATS)})({self.integer(depth + 1)}))",
            lambda: f"clamp({a})",
        )

    def condition(self, depth=0):
        return self.pick(
            lambda: self.integer(depth), lambda: f"{self.real(depth + 1)} < {self.real(depth + 1)}"
        )

    def value(self, kind):
        return self.integer() if kind in INTS else f"clamp({self.real()})"

    def target(self):
        name, kind = self.r.choice(
            self.names + [("s.n", "int"), ("s.m[1]", "short"), ("s.x", "float")]
        )
        if self.r.random() < 0.25:
            return f"a[{self.integer(3)} & 7]", self.array
        return name, kind

    def assign(self):
        name, kind = self.target()
        if kind in FLOATS:
            return f"{name} = {self.value(kind)};"
        if kind == "bool" or self.r.random() < 0.5:
            return f"{name} = {self.value(kind)};"
        ops = ["+=", "-=", "*=", "&=", "|=", "^="]
        plain = f"{name} {self.r.choice(ops)} {self.integer(1)};"
        return self.pick(
            lambda: plain,
            lambda: plain,
            lambda: f"{name}{self.r.choice(['++', '--'])};",
            lambda: f"{self.r.choice(['++', '--'])}{name};",
            lambda: f"{name} {self.r.choice(['<<=', '>>='])} {self.integer(3)} & 7;",
        )

    def block(self):
        self.depth += 1
        lines = [self.statement() for _ in range(self.r.randint(1, 4))]
        self.depth -= 1
        return "{ " + "\n".join(lines) + " }"

    def inside_loop(self):
        self.loops += 1
        text = self.block()
        self.loops -= 1
        return text

    def counter(self):
        self.counters += 1
        return f"k{self.counters}"

    def loop(self):
        k, n = self.counter(), self.r.randint(1, 6)
        body = self.inside_loop()
        return self.pick(
            lambda: f"for (int {k} = 0; {k} < {n}; {k}++) {body}",
            lambda: f"{{ int {k} = {n}; while ({k}-- > 0 && {self.integer(3)} != 77) {body} }}",
            lambda: f"{{ int {k} = 0; do {body} while (++{k} < {n}); }}",
            lambda: f"for (unsigned {k} = t & 3; ; {k} += 1) {{ if ({k} > {n}) break; {body} }}",
        )

    def switch(self):
        values = self.r.sample(range(8), 3)
        self.depth += 1
        parts = []
        for i, v in enumerate([*values, "default"]):
            label = f"case {v}:" if v != "default" else "default:"
            end = "break;" if self.r.random() < 0.6 else ""
            loops, self.loops = self.loops, 0
            parts.append(f"{label} {self.statement()} {self.statement()} {end}")
            self.loops = loops
        self.depth -= 1
        self.r.shuffle(parts)
        return f"switch (({self.integer(1)}) & 7) {{ {' '.join(parts)} }}"

    def statement(self):
        self.budget -= 1
        simple = self.budget < 0 or self.depth > 3
        if simple or self.r.random() < 0.55:
            return self.assign()
        choices = [
            lambda: f"if ({self.condition()}) {self.block()}",
            lambda: f"if ({self.condition()}) {self.block()} else {self.block()}",
            self.loop,
            self.loop,
            self.switch,
            lambda: f"p = a + ({self.integer(2)} & 3);",
            lambda: f"if ({self.condition(1)} && (i0 = {self.integer(2)})) i1 += 2;",
            lambda: f"s = make({self.integer(1)}, clamp({self.real(1)}));",
            lambda: f"bump(&{self.r.choice(['s.n', 'z'])}, {self.integer(1)});",
        ]
        if self.loops:
            choices.append(
                lambda: f"if ({self.condition(1)}) {self.r.choice(['break', 'continue'])};"
            )
        return self.r.choice(choices)()

    def text(self):
        r = self.r
        lines = [f"{kind} {name} = ({kind})({self.start(kind)});" for name, kind in self.names]
        lines += ["S s = {3, {1, 2}, 0.5f}; int z = 4;"]
        lines += [f"{self.array} a[8] = {{1, 2, 3, 4, 5}}; {self.array} *p = a + 1;"]
        lines += [self.statement() for _ in range(r.randint(3, 8))]
        shown = [n for n, t in self.names if t in INTS] + ["s.n", "s.m[0]", "s.m[1]", "z"]
        lines += [f"out[{i}] = (long long)({v});" for i, v in enumerate(shown)]
        reals = [n for n, t in self.names if t in FLOATS] + ["s.x", "a[0]", "a[3]", "a[7]", "p[1]"]
        lines += [f"real[{i}] = (double)({v});" for i, v in enumerate(reals)]
        return "\n".join(lines)

    def start(self, kind):
        return (
            self.r.choice(["t", "t * 3 - 5", "2", "100 - t", "x[t & 7]"])
            if kind != "bool"
            else "t & 1"
        )


OUTS, REALS = 10, 8
BEFORE = """
struct S { int n; short m[2]; float x; };
FUNCTION double clamp(double v) { return v > -1000.0 && v < 1000.0 ? v : 1.0; }
FUNCTION int helper(int a, int b) {
    for (int i = 0; i < 3; i++) { if ((a ^ b) & (1 << i)) return a - i; b += a; }
    return b;
}
FUNCTION S make(int n, double x) { S s = {n, {(short)n, 7}, (float)x}; s.m[1] += n; return s; }
FUNCTION void bump(int *p, int by) { if (by & 1) { *p += by; return; } *p ^= 3; }
"""


def texts(body):
    """(CUDA C, C++) of a body: thread t's results are out[10 * t ...], real[8 * t ...]."""
    cuda = BEFORE.replace("FUNCTION", "__device__") + (
        "__global__ void f(const int *x, long long *o, double *r, int n) {\n"
        "int t = blockIdx.x * blockDim.x + threadIdx.x; if (t >= n) return;\n"
        f"long long *out = o + t * {OUTS}; double *real = r + t * {REALS};\n{body}\n}}\n"
    )
    host = BEFORE.replace("FUNCTION", "static") + (
        "static void one(int t, const int *x, long long *out, double *real) {\n" + body + "\n}\n"
        'extern "C" void f(const int *x, long long *o, double *r, int n) {\n'
        f"for (int t = 0; t < n; t++) one(t, x, o + t * {OUTS}, r + t * {REALS}); }}\n"
    )
    return cuda, host
