# ruff: noqa: E501 (lines of another language)
"""CUDA C: kernels of tutorials against NumPy, errors, arguments, limits."""

import numpy as np
import pytest
import simt.cupy as cp
from cuda_programs import PROGRAMS
from simt.cupy.cuda.compiler import CompileException


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    text, run = PROGRAMS[name]
    got, expected = run(cp, cp.RawKernel(text, name))
    np.testing.assert_allclose(cp.asnumpy(got), expected, rtol=2e-5, atol=1e-5)


def value_of(expression, before="", result="double"):
    """What one thread computes."""
    text = f"{before}\n__global__ void f({result} *out) {{ out[0] = {expression}; }}"
    kinds = {"double": float, "int": np.int32, "unsigned": np.uint32, "long long": np.int64}
    out = cp.zeros(1, dtype=kinds[result])
    cp.RawKernel(text, "f")((1,), (1,), (out,))
    return out.item()


@pytest.mark.parametrize(
    "expression, value",
    [
        ("7 / 2 + -7 / 2 + -7 % 4", 3 - 3 - 3),
        ("(unsigned char)300 + (signed char)200", 44 - 56),
        ("1u - 2", 4294967295),
        ("-1 < 0u", 0),
        ("sizeof(float4) + sizeof(long) + sizeof(int[3])", 16 + 8 + 12),
        ("'a' + '\\n' + '\\x41' + '\\101'", 97 + 10 + 65 + 65),
        ("0x10 + 010 + 0b11 + 1'000", 16 + 8 + 3 + 1000),
        ("1e3 + .5f + 0x1p-1", 1001),
        ("3 > 2 > 1 ? 10 : 20", 20),
        ("(1, 2, 3)", 3),
        ("!5 + ~0 + -(-3)", 0 - 1 + 3),
        ("1 << 3 | 6 & 3 ^ 1", 8 | ((6 & 3) ^ 1)),
        ("(int)2.9 + (int)-2.9 + int(3.5f)", 2 - 2 + 3),
        ("static_cast<int>(7.9) + float(1) / 2", 7.5),
        ("true + false + (5 && 0) + (0 || 3)", 2),
        ("INT_MAX + 0.0", 2**31 - 1),
        ("round(2.5) + round(-2.5) + rint(2.5) + roundf(0.49999997f)", 3 - 3 + 2 + 0),
        ("fmin(NAN, 2.0) + fmax(1.0f, 2) + min(3, 4) + max(3u, 4u)", 2 + 2 + 3 + 4),
        ("__popc(255) + __clz(1) + __ffs(8) + __popcll(-1ll) + __ffs(0)", 8 + 31 + 4 + 64),
        ("__float_as_int(1.0f)", 0x3F800000),
        ("__umulhi(0x80000000u, 4u) + __mulhi(-1, 1) + __mul24(-3, 5)", 2**32 - 14),
        ("isnan(NAN) + isinf(-INFINITY) + isfinite(1.0) + (signbit(-0.0f) ? 10 : 0)", 13),
        ("pow(2.0, 10) + sqrtf(16) + fabs(-2) + abs(-3) + fmodf(7, 4)", 1024 + 4 + 2 + 3 + 3),
        ("make_int2(3, 4).y + make_float4(1, 2, 3, 4).w", 8),
    ],
)
def test_expressions(expression, value):
    assert value_of(expression) == value


@pytest.mark.parametrize(
    "before, expression, value",
    [
        ("#define SQ(x) ((x) * (x))\n#define CAT(a, b) a##b", "SQ(3 + 1) + CAT(1, 2)", 28),
        ("#define STR(x) #x\n#define N sizeof(STR(a b))", "1", 1),
        ("#if defined(A) || (2 > 1 && !0)\n#define V 5\n#else\n#define V 6\n#endif", "V", 5),
        ("#ifdef __CUDACC__\n#define V 1\n#elif 1\n#define V 2\n#endif", "V", 1),
        ("#define f1(x, ...) g1(__VA_ARGS__)\n#define g1(a, b) (a - b)", "f1(1, 9, 4)", 5),
        ("#define x1 x2\n#define x2 x1\nconst int x1 = 4;", "x1", 4),
        ("const int n = 3; __device__ int twice(int a) { return 2 * a; }", "twice(n) + n", 9),
        ("__device__ int g(int a) { return a; } __device__ int g(float a) { return 7; }", "g(1) + g(1.f)", 8),
        ("__device__ int g(int a) { if (a > 2) return 1; else return 2; }", "g(1) * 10 + g(3)", 21),
        ("__device__ int g(int n) { int s = 0; while (true) { if (s > n) break; s += 3; } return s; }", "g(7)", 9),
        ("__device__ int later(int); __device__ int now(int a) { return later(a); }"
         " __device__ int later(int a) { return a + 1; }", "now(1)", 2),
        ("struct P { int a[3]; float f; }; __device__ int g() { P p = {{1, 2, 3}, 4}; int s = 0;"
         " for (int i = 0; i < 3; i++) s += p.a[i]; return s + p.f; }", "g()", 10),
        ("__device__ int g() { int m[2][3] = {{1, 2, 3}, {4, 5, 6}}; int (*p)[3] = m; return p[1][2]; }", "g()", 6),
        ("__device__ int g() { int i = 3, j = i++ + ++i; i += j; i <<= 1; i ^= 1; return i; }", "g()", 27),
        ("__device__ int g() { unsigned char c = 250; c += 10; char d = 127; d++; return c + d; }", "g()", 4 - 128),
        ("__device__ void s(float *a, float v) { *a = v; } __device__ float g() { float x; s(&x, 3); return x; }", "g()", 3),
        ("__device__ int g() { int n = 0; for (int i = 0; i < 5; i++) { if (i == 1) continue; if (i == 4) break;"
         " for (int k = 0;; k++) { if (k > i) break; n++; } } return n; }", "g()", 8),
        ("__device__ int g() { typedef int T; struct P { T a; }; P p = {4}; return p.a; }", "g()", 4),
        ("__device__ int g() { auto a = 1.5f; bool b = 3; const auto c = a + b; return c * 2; }", "g()", 5),
    ],
)  # fmt: skip
def test_declarations(before, expression, value):
    assert value_of(expression, before) == value


@pytest.mark.parametrize(
    "text, line, column, message",
    [
        ("__global__ void f(float *x) { x[0] = y; }", 1, 38, "y is not declared"),
        ("__global__ void f(float *x)\n{ x[0] = 1 +; }", 2, 13, "an expression is expected"),
        ("__global__ void f() { int i = 3 }", 1, 33, "';' is expected"),
        ("__global__ void f() { while (1) { }", 1, 21, "} is missing"),
        ("#if 1\n__global__ void f() {}", 1, 2, "#endif is missing"),
        ("__global__ int f() { return 1; }", 1, 16, "gives void"),
        ("__global__ void f(const int *x) { x[0] = 1; }", 1, 36, "const"),
        ("__global__ void f(int *x) { int *p = 1.5; }", 1, 38, "cannot be converted"),
        ("__global__ void f() { break; }", 1, 23, "outside of a loop"),
        ("__global__ void f() { double y = 1; { auto y = 2 * y; } }", 1, 52, "its value uses it"),
        ("__global__ void f(int *x) { if (*x) ; else int y = 3; *x = y; }", 1, 60, "y is not declared"),
        ("__global__ void f(int *x) { switch (*x) { case 1: int y; case 2: y = 3; *x = y; } }",
         1, 55, "between the cases"),
        ("template <class T> __global__ void f(T *x) {}", 1, 1, "templates: not in simt yet"),
        ("__global__ void f(float *x) { float *t[2]; t[0] = x; }", 1, 49, "not in simt yet"),
        ("__device__ int g(int a) { return a ? g(a - 1) : 0; }\n__global__ void f(int *x) { *x = g(3); }",
         1, 38, "call themselves"),
        ("__global__ void f() { /* }", 1, 23, "does not end"),
        ("__global__ void f() { int a[2] = {1, 2, 3}; }", 1, 41, "more initial values"),
        ("#include <thrust/sort.h>\n__global__ void f() {}", 1, 2, "not in simt yet"),
        ("#define A(x) A(x, x)\n__global__ void f() { A(1, 2); }", 2, 23, "takes 1 arguments"),
        ("__global__ void f(int n) { int a[n]; }", 1, 34, "an integer constant is expected"),
        ("__global__ void f(double *x) { atomicMax(x, 1.0); }", 1, 32, "no form for double"),
        ("__global__ void f() { " + "(" * 5000, 1, 122, "nested more than 200 deep"),
    ],
)  # fmt: skip
def test_errors(text, line, column, message):
    with pytest.raises(CompileException) as caught:
        cp.RawKernel(text, "f").compile()
    assert message in str(caught.value)
    assert f":{line}:{column}" in str(caught.value).splitlines()[1]


def test_names_and_options():
    module = cp.RawModule(
        code="__global__ void a(int *x) { *x = N; } __global__ void b() {}", options=("-DN=7",)
    )
    x = cp.zeros(1, dtype=cp.int32)
    module.get_function("a")((1,), (1,), (x,))
    assert x.item() == 7
    with pytest.raises(CompileException, match="there are: a, b"):
        module.get_function("c")
    with pytest.raises(CompileException, match="unrecognized option"):
        cp.RawKernel("", "f", options=("--what",)).compile()
    with pytest.raises(NotImplementedError):
        module.get_global("x")


TAKES = "__global__ void f(float *x, int n, unsigned char c, double d, bool b) { x[0] = n + c + d + b; }"


def test_arguments():
    f = cp.RawKernel(TAKES, "f")
    x = cp.zeros(3, dtype=cp.float32)
    f((1,), (1,), (x, 2, np.uint8(3), 4.0, True))
    assert x[0].item() == 10
    f([1], 1, [x, np.int32(-2), 3, np.float64(4.5), np.bool_(False)])
    assert x[0].item() == 5.5
    good = [x, 2, 3, 4.0, True]
    wrong = {
        0: [np.zeros(3, np.float32), x.astype(cp.float64), 1, 2.0, "x"],
        1: [2.0, np.int64(2), np.float32(2), 2**31, None, x],
        2: [256, -1, np.int8(1)],
        3: [1, np.float32(1), 1j],
        4: [1, 0.5, np.int32(1)],
    }
    for place, values in wrong.items():
        for value in values:
            with pytest.raises(TypeError, match=rf"argument {place + 1} \('{'xncdb'[place]}'\)"):
                f((1,), (1,), (*good[:place], value, *good[place + 1 :]))
    with pytest.raises(TypeError, match="takes 5 arguments"):
        f((1,), (1,), (x,))


def test_beyond_an_array():
    f = cp.RawKernel("__global__ void f(int *x, int i) {\n  x[i] = 1;\n}", "f")
    x = cp.zeros(10, dtype=cp.int32)
    for i in (10, -1, 2**31 - 1):
        with pytest.raises(IndexError, match=f"index {i} is out of bounds.*size 10(.|\n)*:2:8"):
            f((1,), (1,), (x, i))
    f((1,), (1,), (x[4:6], 5))  # the memory behind a view is the array's
    assert x.tolist() == [0] * 9 + [1]
    with pytest.raises(IndexError, match="null pointer|'x'"):
        f((1,), (1,), (None, 0))
    local = "__global__ void f(int *x, int i) { int a[4]; a[i] = 1; x[0] = a[0]; }"
    with pytest.raises(IndexError, match="'a'"):
        cp.RawKernel(local, "f")((1,), (1,), (x, 4))
    shared = (
        "__global__ void f(int *x, int i) { extern __shared__ int s[]; s[i] = 1; x[0] = s[i]; }"
    )
    with pytest.raises(IndexError, match="'s'"):
        cp.RawKernel(shared, "f")((1,), (1,), (x, 4), shared_mem=16)
    cp.RawKernel(shared, "f")((1,), (1,), (x, 3), shared_mem=16)


def test_limits():
    f = cp.RawKernel("__global__ void f() {}", "f")
    for grid, block in [((0,), (1,)), ((1,), (2000,)), ((1, 70000), (1,)), ((1,), (64, 32))]:
        with pytest.raises(RuntimeError, match="CUDA_ERROR_INVALID_VALUE"):
            f(grid, block, ())
    with pytest.raises(RuntimeError, match="shared memory"):
        f((1,), (1,), (), shared_mem=50000)
    assert f.attributes["max_threads_per_block"] == 1024


def test_assert():
    f = cp.RawKernel("__global__ void f(int n) { assert(threadIdx.x < n); }", "f")
    f((1,), (8,), (8,))
    with pytest.raises(AssertionError, match="assertion failed"):
        f((1,), (8,), (7,))


def test_waiting_arrays_are_computed_first():
    x = cp.arange(5, dtype=cp.float32) * 2 + 1
    y = x * 3
    cp.RawKernel("__global__ void f(float *x) { x[threadIdx.x] += 1; }", "f")((1,), (5,), (x,))
    assert x.tolist() == [2, 4, 6, 8, 10] and y.tolist() == [3, 9, 15, 21, 27]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\0",
        "\\",
        "#",
        "##",
        '"',
        "'",
        "0x",
        "1.e",
        "#define",
        "#if",
        "#if (",
        "#include",
        "{",
        "}",
        "@",
        "__global__",
        "int",
        "struct",
        "enum {",
        "\xe9",
    ],
)
def test_odd_texts(text):
    with pytest.raises(CompileException):
        cp.RawKernel(text, "f").compile()
    with pytest.raises(CompileException):
        cp.RawKernel("__global__ void g(int *x) { " + text, "f").compile()


def printed(capsys, statement, grid=1, block=1, args=(), parameters=""):
    cp.RawKernel(f"__global__ void f({parameters}) {{ {statement} }}", "f")((grid,), (block,), args)
    return capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments, text",
    [
        ('"hello\\n"', "hello\n"),
        ('"%d %5d|%-5d|%05d %+d\\n", 42, 42, 42, 42, 42', "42    42|42   |00042 +42\n"),
        ('"%u %x %X %#x %o\\n", -1, 255, 255, 255, 8', "4294967295 ff FF 0xff 10\n"),
        ('"%ld %lld %lu %hhd %hd\\n", -5l, 1ll << 40, 7ul, 300, 70000', "-5 1099511627776 7 44 4464\n"),
        ('"%f %.2f %8.3f|%e %g %g\\n", 1.5f, 2.0 / 3, 3.14159, 12345.678, 0.0001, 1e20',
         "1.500000 0.67    3.142|1.234568e+04 0.0001 1e+20\n"),
        ('"%c%c %s %%\\n", \'o\', 107, "text"', "ok text %\n"),
        ('"%d %d\\n", (unsigned char)200, true', "200 1\n"),
        ('"a" "b%d\\n", 1', "ab1\n"),
    ],
)  # fmt: skip
def test_printf(capsys, arguments, text):
    assert printed(capsys, f"printf({arguments});") == text


def test_printf_of_threads(capsys):
    text = printed(
        capsys,
        'if (threadIdx.x != 1) printf("block %d thread %d\\n", blockIdx.x, threadIdx.x);',
        2,
        3,
    )
    assert text == "".join(f"block {b} thread {t}\n" for b in range(2) for t in (0, 2))
    text = printed(
        capsys, 'printf("%d %g\\n", printf("x"), x[0]);', 1, 1, (cp.ones(1),), "const double *x"
    )
    assert text == "x0 1\n"


@pytest.mark.parametrize(
    "arguments, message",
    [
        ('"%d"', "no argument for %d"),
        ('"", 1', "no place for this argument"),
        ('"%d", 1.5', "%d of double"),
        ('"%f", 1', "%f of int"),
        ('"%y", 1', "'%y' is none"),
        ('"%"', "'%' is none"),
        ("1", "must be a string"),
        ('"%9999d", 1', "is none of its conversions"),
        ('"%.9999f", 1.0', "is none of its conversions"),
        ('"%s", (const char *)0', "not in simt yet"),
    ],
)
def test_printf_errors(arguments, message):
    with pytest.raises(CompileException) as caught:
        cp.RawKernel(f"__global__ void f() {{ printf({arguments}); }}", "f").compile()
    assert message in str(caught.value)
