"""Faulty kernels: each report names file, line and column, shows the line with a caret under the
place, and says what is wrong; none crashes or hangs."""

import importlib
import math
import os
import re
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from kernel_reports import floats, place
from simt.numba import cuda, float32
from simt.numba.core.errors import TypingError

HERE = os.path.abspath(__file__)
WRONG_SOURCE, FAULTS = [], []


def refused(message, under):
    """A kernel that does not compile: the message, and the text that the caret stands under."""

    def add(f):
        WRONG_SOURCE.append(pytest.param(f, message, under, id=f.__name__))
        return f

    return add


def fault(error, message, under, threads=1, shape=(8,)):
    """A kernel that compiles, and fails when it runs."""

    def add(f):
        FAULTS.append(pytest.param(f, error, message, under, threads, shape, id=f.__name__))
        return f

    return add


def check_report(text, message, under):
    assert re.search(message, text.split("\nat ")[0]), text
    place = re.search(r"^at (.*?):(\d+):(\d+)(.*)\n    (.*)\n    ( *)\^$", text, re.M)
    assert place, text
    file, line, column, _, shown, blanks = place.groups()
    assert os.path.abspath(file) == HERE
    with open(HERE, encoding="utf-8") as f:
        source = f.read().split("\n")[int(line) - 1]
    assert source.strip() == shown
    assert source[int(column) - 1 :].startswith(under), text
    assert shown[len(blanks) :].startswith(under), text


words, settings, thing = ["a"], {"n": 1}, object()

# --- names ----------------------------------------------------------------------------------------


@refused("name 'undefined' is not defined", "undefined")
def undefined_name(a):
    a[0] = undefined  # noqa: F821


@refused("math has no attribute 'sine': nearest is math.sin", "math.sine")
def unknown_function(a):
    a[0] = math.sine(1.0)


@refused("no attribute 'grdi'.*nearest is simt.numba.cuda.grid", "cuda.grdi")
def misspelt(a):
    a[0] = cuda.grdi(1)


@refused("numpy.linalg.norm is not in simt's kernels", "np.linalg.norm")
def unknown_in_kernels(a):
    a[0] = np.linalg.norm(a)


@refused("cuda.threadIdx has no attribute 'w'", "cuda.threadIdx.w")
def fourth_axis(a):
    a[0] = cuda.threadIdx.w


@refused("'words' .a list: use a tuple or a NumPy array", "words[0]")
def list_of_the_module(a):
    a[0] = words[0]


@refused("'settings' .kernels have no dicts and sets: use arrays", 'settings["n"]')
def dict_of_the_module(a):
    a[0] = settings["n"]


@refused("'thing' .an object of type 'object'. has no attribute 'x'", "thing.x")
def object_of_the_module(a):
    a[0] = thing.x


@refused("'x' is used before it is assigned", "x")
def used_before_assigned(a):
    a[0] = x  # noqa: F821
    x = 1.0  # noqa: F841


@refused("variable 'x' is float64 or tuple.int64, int64. here", "x")
def reused_name_of_two_types(a):
    x = 1
    a[0] = x
    x = (1, 2)
    if a[0] > 1:
        x = 2.0
    a[0] = x


@refused("input is not in simt's kernels: pass the data in an array", "input()")
def console_input(a):
    a[0] = input()


@refused("numpy.eye is not in simt's kernels: use cuda.local.array", "np.eye")
def array_made(a):
    a[0] = np.eye(3)[0]


@refused("sorted is not in simt's kernels: write a for loop", "sorted(a)")
def summed(a):
    a[0] = sorted(a)


@refused("'simt.numba.cuda.synchronize' .a function for the host: call it outside", "cuda.sync")
def host_function(a):
    cuda.synchronize()


@cuda.jit
def other_kernel(a):
    a[0] = 1


@refused("a kernel cannot launch kernels", "other_kernel[1, 1]")
def launch_inside(a):
    other_kernel[1, 1](a)


# --- what a kernel cannot hold --------------------------------------------------------------------


@refused("lists are not possible in a kernel: use a tuple", "[1, 2]")
def list_literal(a):
    x = [1, 2]
    a[0] = x[0]


@refused("a dict is not possible in a kernel: use an array", "{1: 2}")
def dict_literal(a):
    x = {1: 2}
    a[0] = x[1]


@refused("list comprehension is not possible in a kernel: write a for loop", "[2 * i for")
def comprehension(a):
    a[0] = max([2 * i for i in range(3)])


@refused("f-string is not possible in a kernel: give print the values", 'f"x')
def f_string(a):
    print(f"x {a[0]}")


@refused("try/except is not possible in a kernel: test the condition with if", "try:")
def caught(a):
    try:
        a[0] = 1
    except ValueError:
        a[0] = 2


@refused("a with statement is not possible", "with open")
def with_statement(a):
    with open("x"):
        a[0] = 1


@refused("an import is not possible in a kernel: import at the top of the file", "import os")
def import_inside(a):
    import os  # noqa: F401


@refused("a global statement is not possible.*write results into an array", "global")
def global_statement(a):
    global counter
    counter = 1


@refused("a match statement is not possible in a kernel: use if/elif", "match")
def match_statement(a):
    match 1:
        case 1:
            a[0] = 1


@refused("a kernel cannot return a value: write results into an array", "return")
def returns_value(a):
    return a[0]


def endless_recursion(x):
    return endless_recursion(x - 1)


@refused(
    "endless_recursion: cannot type infer runaway recursion: no way through it returns",
    "def endless",
)
def recursive(a):
    a[0] = endless_recursion(3)


# --- types ----------------------------------------------------------------------------------------


@refused("float32 expected, not string", "a[0]")
def string_stored(a):
    a[0] = "abc"


@refused("complex128 cannot become float32: take .real or abs", "a[0]")
def complex_stored(a):
    a[0] = 1j


@refused("no operator < for complex128", "1j < 2j")
def complex_order(a):
    if 1j < 2j:
        a[0] = 1


@refused(r"no operator \| for float64 and int64.*convert with int", "1.5 | 2")
def bits_of_a_float(a):
    a[0] = 1.5 | 2


@refused("no operator .* for None and int64", "x + 1")
def none_added(a):
    x = None
    a[0] = x + 1


@refused("variable 'x' is tuple.* or int64 here, by the way taken: use two names", "x")
def two_types(a):
    x = 1
    if a[0] > 0:
        x = (1, 2)
    a[0] = x


@refused("variable 'a' is float64 or array.* here", "a[0] = 1")
def parameter_overwritten(a):
    if a[0] > 0:
        a = 1.0
    a[0] = 1


@refused("variable 'x' is int64 or tuple.* here", "x, i")
def two_types_in_a_loop(a):
    x = 1
    for i in range(3):
        x = (x, i)
    a[0] = 1


@refused("an index must be an integer, not float64: write int", "a[1.5]")
def index_of_a_float(a):
    a[1.5] = 1


@refused("2 indices for an array of 1 dimension", "a[0, 1]")
def too_many_indices(a):
    a[0, 1] = 1


@refused("a kernel works on elements, write a.i.", "a + 1")
def whole_array(a):
    b = a + 1
    a[0] = b[0]


@refused("has no attribute 'cumsum' in a kernel", "a.cumsum")
def array_method(a):
    a[0] = a.cumsum()


@refused("3 values for 2 names", "x, y")
def unpacking(a):
    x, y = 1, 2, 3
    a[0] = x + y


@refused("range takes integers, not float64: write int", "range")
def range_of_a_float(a):
    for _ in range(2.5):
        a[0] += 1


@refused("arg 3 must not be zero", "range")
def step_of_zero(a):
    for _ in range(0, 10, 0):
        a[0] += 1


@refused("a tuple of different types needs a constant index", "t[")
def tuple_index(a):
    t = (1, 2.0)
    a[0] = t[cuda.grid(1)]


@refused("an integer beyond 64 bits", "1234")
def huge_literal(a):
    a[0] = 123456789012345678901234567890


@refused("'x' is a variable here .float64. and cannot be called: rename it", "x(1)")
def number_called(a):
    x = 2.0
    a[0] = x(1)


@refused("math.sin takes 1 argument, 2 given", "math.sin")
def argument_count(a):
    a[0] = math.sin(1.0, 2.0)


def helper(x, y):
    return x + y


@refused("helper: argument 'y' is missing", "helper(1)")
def helper_without_argument(a):
    a[0] = helper(1)


@refused("helper has no parameter 'z'", "helper(1, z=2)")
def helper_with_unknown_keyword(a):
    a[0] = helper(1, z=2)


def faulty_helper(x):
    return x.nothing


@refused("float32 has no attribute 'nothing'", "x.nothing")
def error_in_a_helper(a):
    a[0] = faulty_helper(a[0])


# --- cuda's own -----------------------------------------------------------------------------------


@refused("the shape must be constant.*dynamic shared memory", "cuda.shared.array")
def shape_known_at_launch(a):
    s = cuda.shared.array(a.shape[0], float32)
    a[0] = s[0]


@refused("the shape must be constant.*; take the largest that is needed", "cuda.local.array")
def local_shape_known_at_launch(a):
    s = cuda.local.array(a.shape[0], float32)
    a[0] = s[0]


@refused(
    "cuda.shared.array takes 2 to 3 arguments .shape, dtype, alignment., 1 given",
    "cuda.shared.array",
)
def no_dtype(a):
    s = cuda.shared.array(10)
    a[0] = s[0]


@refused("cuda.grid takes the constant 1, 2 or 3", "cuda.grid(4)")
def four_axes(a):
    a[0] = cuda.grid(4)


@refused("the first argument must be an array, not int64", "cuda.atomic.add")
def atomic_on_a_variable(a):
    x = 1
    cuda.atomic.add(x, 0, 1)


@refused("works on arrays of integers, not float32", "cuda.atomic.and_")
def atomic_and_of_floats(a):
    cuda.atomic.and_(a, 0, 1)


@pytest.mark.parametrize("f, message, under", WRONG_SOURCE)
def test_refused(f, message, under):
    with pytest.raises(TypingError) as info:
        cuda.jit(f)[1, 1](floats())
    check_report(str(info.value), message, under)


def test_hint_in_the_users_language(monkeypatch):
    monkeypatch.setenv("SIMT_LANG", "zh")
    with pytest.raises(TypingError) as info:
        cuda.jit(undefined_name)[1, 1](floats())
    assert re.search(r"^name 'undefined' is not defined\n位置: .*:\d+:\d+\n", str(info.value))


# --- faults of running kernels --------------------------------------------------------------------


@fault(
    IndexError,
    r"kernel above: index 8 is out of bounds for axis 0 with size 8: array 'a' of shape \(8,\)",
    "a[i + 5]",
    threads=4,
)
def above(a):
    i = cuda.grid(1)
    a[i + 5] = 1


@fault(IndexError, "index -9 is out of bounds for axis 0 with size 8", "a[-9]")
def below(a):
    a[-9] = 1


@fault(
    IndexError, r"index 3 .* axis 1 with size 3: array 'a' of shape \(2, 3\)", "a[1, i]", 4, (2, 3)
)
def second_axis(a):
    i = cuda.threadIdx.x
    a[1, i] = 1


@fault(IndexError, r"index 2 .* array 's' of shape \(2, 3\)", "s[i, 0]")
def in_shared_memory(a):
    s = cuda.shared.array((2, 3), float32)
    i = cuda.threadIdx.x + 2
    s[i, 0] = 1
    a[0] = s[0, 0]


@fault(IndexError, r"index 4 .* array 's' of shape \(4,\)", "s[i]")
def in_local_memory(a):
    s = cuda.local.array(4, float32)
    i = cuda.threadIdx.x + 4
    s[i] = 1
    a[0] = s[0]


@fault(IndexError, r"array 's' of shape \(4,\)", "s[i]")
def in_a_reused_name(a):
    i = cuda.threadIdx.x + 4
    s = a[0]
    a[1] = s
    s = cuda.local.array(4, float32)
    s[i] = 1
    a[0] = s[0]


@fault(IndexError, "index 8 is out of bounds", "cuda.atomic.add")
def of_an_atomic(a):
    i = cuda.threadIdx.x + 8
    cuda.atomic.add(a, i, 1)


def set_at(a, i):
    a[i] = 1


@fault(IndexError, "kernel in_a_helper: index 100", "a[i]")
def in_a_helper(a):
    set_at(a, cuda.threadIdx.x + 100)


@fault(ValueError, "negative input\nin kernel raised", "raise")
def raised(a):
    if a[0] < 1:
        raise ValueError("negative input")


@fault(AssertionError, "must be positive\nin kernel asserted", "assert")
def asserted(a):
    assert a[0] > 0, "must be positive"


@pytest.mark.parametrize("f, error, message, under, threads, shape", FAULTS)
def test_fault(f, error, message, under, threads, shape):
    a = floats(*shape)
    with pytest.raises(error) as info:
        cuda.jit(f)[1, threads](a)
        cuda.synchronize()
    check_report(str(info.value), message, under)
    assert re.search(r", block \(0, 0, 0\), thread \(\d, 0, 0\)\n", str(info.value))


def test_read_only_array():
    a = floats()
    a.flags.writeable = False
    with pytest.raises(TypingError, match="array 'a' is read-only"):
        cuda.jit(set_at)[1, 1](a, 0)


# --- errors inside called functions ---------------------------------------------------------------


@cuda.jit(device=True)
def innermost(a, i):
    return a[i + 7]


def between(a, i):
    if i > 2:
        return innermost(a, i) + 1
    return 0.0


@cuda.jit
def two_calls_deep(a):
    i = cuda.threadIdx.x
    a[i] = 1 + between(a, i)


def adds_text(a):
    return a[0] + "s"


@cuda.jit
def wrong_inside(a):
    a[0] = between(a, 0)
    a[1] = adds_text(a)


@cuda.jit
def spins_inside(a):
    spin(a)


def spin(a):
    while cuda.atomic.add(a, 0, 0) == 0:
        pass


def trail(*steps):
    """The report's lines for (function, name, text of its line, what the caret is under)."""
    report = []
    for lead, f, after, text, under in steps:
        at, shown = place(f, text, under)
        report.append(f"{lead}{at} in {after}{shown}")
    return "\n".join(report)


def test_fault_in_a_called_function():
    with pytest.raises(IndexError) as error:
        two_calls_deep[1, 4](floats())
    inside = "innermost, block (0, 0, 0), thread (3, 0, 0)"
    assert str(error.value) == (
        "kernel two_calls_deep: index 10 is out of bounds for axis 0 with size 8: array 'a' of "
        "shape (8,)\n"
    ) + trail(
        ("at ", innermost, inside, "a[i + 7]", "a[i"),
        ("called from ", between, "between", "innermost(", "innermost("),
        ("called from ", two_calls_deep, "kernel two_calls_deep", "between(", "between("),
    )


def test_type_error_in_a_called_function():
    with pytest.raises(TypingError) as error:
        wrong_inside[1, 4](floats())
    assert str(
        error.value
    ) == "no operator + for float32 and string: kernels do not compute with strings\n" + trail(
        ("at ", adds_text, "adds_text", "return", "a[0]"),
        ("called from ", wrong_inside, "kernel wrong_inside", "adds_text", "adds_text"),
    )


def test_no_progress_in_a_called_function():
    text = limited("spins_inside", 1)
    assert (
        trail(
            ("at ", spin, "spin", "while", ""),
            ("called from ", spins_inside, "kernel spins_inside", "spin(a)", "spin"),
        )
        in text
    )


def test_fault_in_a_function_of_another_file(tmp_path, monkeypatch):
    (tmp_path / "faults_elsewhere.py").write_text("\n\ndef third(a):\n    return a[99]\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    third = importlib.import_module("faults_elsewhere").third

    @cuda.jit
    def calls_elsewhere(a):
        a[0] = third(a)

    with pytest.raises(IndexError) as error:
        calls_elsewhere[1, 1](floats())
    assert f"\nat {tmp_path}/faults_elsewhere.py:4:12 in third, block" in str(error.value)
    assert "\n    return a[99]\n           ^\ncalled from " in str(error.value)
    step = ("called from ", calls_elsewhere, "kernel calls_elsewhere", "third(", "third(")
    assert str(error.value).endswith(trail(step))


def test_many_calls_deep(tmp_path, monkeypatch):
    text = "def f0(a):\n    return a[99]\n"
    for i in range(1, 10):
        text += f"def f{i}(a):\n    return f{i - 1}(a)\n"
    (tmp_path / "faults_deep.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    f9 = importlib.import_module("faults_deep").f9

    @cuda.jit
    def deep(a):
        a[0] = f9(a)

    with pytest.raises(IndexError) as error:
        deep[1, 1](floats())
    callers = re.findall(r" in (f\d|kernel deep)\n|(\d more calls)", str(error.value))
    assert [a or b for a, b in callers] == [
        *["f1", "f2", "f3", "f4", "f5"],
        *["4 more calls", "kernel deep"],
    ]


def test_what_is_inside_is_still_written():
    a = floats()
    with pytest.raises(IndexError):
        cuda.jit(above)[1, 4](a)
    assert list(a) == [0] * 5 + [1] * 3


# --- kernels without an end -----------------------------------------------------------------------


@cuda.jit
def endless(a):
    while True:
        a[0] += 1


@cuda.jit
def waits(a):
    while cuda.atomic.add(a, 0, 0) == 0:
        pass


@cuda.jit
def waits_apart(a):
    if cuda.threadIdx.x < 32:
        cuda.syncthreads()
    else:
        while cuda.atomic.add(a, 0, 0) == 0:
            pass


def test_interrupt():
    timer = threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        endless[1, 1](np.zeros(1, np.int32))
    timer.join()


def limited(kernel, threads):
    """What a launch says in a process of its own with a time limit of 0.2 s."""
    code = f"""
import sys
sys.path.insert(0, {os.path.dirname(HERE)!r})
import numpy as np
import test_kernel_errors
try:
    test_kernel_errors.{kernel}[1, {threads}](np.zeros(1, np.int32))
except RuntimeError as error:
    print("RuntimeError", error)
except TimeoutError as error:
    print("TimeoutError", error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "SIMT_TIME_LIMIT": "0.2", "SIMT_LANG": "en"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("kernel, threads", [("waits", 1), ("waits_apart", 64)])
def test_waits_that_cannot_end(kernel, threads):
    text = limited(kernel, threads)
    assert re.search(rf"RuntimeError kernel {kernel} makes no progress.*\nat .*:\d+", text), text
    assert "while cuda.atomic.add(a, 0, 0) == 0:" in text
    assert "the threads of the kernel wait for each other" in text


def test_time_limit():
    text = limited("endless", 1)
    assert "TimeoutError kernel endless ran for more than 0.2 s" in text
    assert "while True:" in text and "hint: SIMT_TIME_LIMIT" in text
