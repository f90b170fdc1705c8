"""Numba's typing rules and values, recorded from Numba (tests/conformance/numba_typing.json).

`type_of(expression)` is an intrinsic for these tests: the number of the expression's type.
"""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from numba_face import MODE, cuda
from numba_source import load

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "conformance"))
import numba_rules as rules

if MODE != "simt":
    pytest.skip("recorded from Numba itself", allow_module_level=True)

from simt.numba.core.errors import NumbaError

RECORDED = json.loads(rules.RECORDED.read_text(encoding="utf-8"))
TYPES = RECORDED["types"]
SCALARS = ("-", *"?bhiqBHIQefdFD")  # py_scalar of frontend.h; 0 stands for what is no scalar


class type_of:
    _simt_intrinsic = "simt.type_of"


ARGUMENTS = {f"v{ord(t)}": np.dtype(t).type(1) for t in rules.VARIABLES}

LITERALS = "".join(rules.LITERALS)
SMALL_FLOAT = ["math." + n for n in rules.TWO_MATH]
# (group, name, left operands, right operands, reason): where simt differs on purpose
EXPECTED = [
    (None, None, LITERALS, LITERALS, "Numba folds literals before it types them"),
    ("binary", ["**"], "?T", "i", "Numba finds float32 for bool ** int32 alone, int64 for others"),
    ("two", ["pow"], "?", "i", "the same"),
    ("one", list(rules.UNARY), LITERALS, None, "Numba folds literals before it types them"),
    ("one", ["abs", "np.conjugate", *rules.BITS], "?T", None, "int8 in Numba, by accident"),
    ("one", rules.BITS, "bhBHefdr", None, "32 bits wide for narrow ones; no floats"),
    ("one", ["cuda.brev"], "q2", None, "Numba drops the upper half of an int64"),
    ("one", ["complex"], "F", None, "complex of a complex64 keeps it; Numba widens it"),
    ("two", ["round", "math.ldexp"], None, "fdr", "digits and exponents are integers"),
    ("two", SMALL_FLOAT, "?bB", None, "small integers count as float64; Numba takes float32"),
    ("two", SMALL_FLOAT, None, "?bB", "the same"),
    ("two", ["np." + n for n in rules.TWO_UFUNCS], "?bBiIqQ2", "?bBiIqQ2fFdDr", "NumPy's loops"),
    ("two", ["np." + n for n in rules.TWO_UFUNCS], "fFdDr", "?bBiIqQ2", "the same"),
    ("statement", ["abs"], "?", None, "int8 in Numba, by accident"),
    ("statement", ["round to digits"], "e", None, "float16 stays float16"),
    ("statement", ["quotient of divmod", "remainder of divmod"], "Q", None, "as // and %"),
    ("two", ["math.pow"], "f", "i", "float64, as for int64"),
    ("one", ["cmath." + n for n in rules.CMATH], "?bhBeT", None, "complex128 for all but float32"),
    ("one", ["np.deg2rad", "np.rad2deg"], "?bhBHT", None, "float64 for all integers"),
    ("two", ["divmod"], None, None, "simt types it as // and %"),
    ("meeting", ["after the loop"], "?", "Qf", "float64 in Numba, by its first look at the loop"),
    ("meeting", ["largest"], "?", None, "Numba has no max of bools"),
    ("meeting", ["largest"], None, "?", "the same"),
    ("range", None, None, "efdr", "Numba truncates floats here, Python and simt refuse them"),
    ("range", None, "efdr", None, "the same"),
    ("statement", [n for n in rules.STATEMENTS if n.startswith("range")], "efd", None, "the same"),
    ("range", None, "?bhiBHIQMT", "?bhiqBHIQM2T", "mixed signs: int64 in simt, Numba varies"),
]


def is_expected(group, name, a, b):
    return any(
        (g is None or g == group)
        and (n is None or name in n)
        and (x is None or a in x)
        and (y is None or b != "" and b in y)
        for g, n, x, y, _ in EXPECTED
    )


def spelled(letter):
    return rules.spelled(letter, f"v{ord(letter)}")


def body_letters(bodies):
    """For each text of statements that assign x: the letter of x's type, ERROR where it fails."""
    if not bodies:
        return []
    functions = [f"def f{k}({', '.join(ARGUMENTS)}):\n" for k in range(len(bodies))]
    source = ""
    for head, body in zip(functions, bodies, strict=True):
        source += head + "".join(f"    {line}\n" for line in body.splitlines())
        source += "    return type_of(x)\n"
    source += f"@cuda.jit\ndef kernel(out, {', '.join(ARGUMENTS)}):\n"
    for k in range(len(bodies)):
        source += f"    out[{k}] = f{k}({', '.join(ARGUMENTS)})\n"
    return run_or_split(source, bodies, body_letters)


def expression_letters(expressions):
    if not expressions:
        return []
    source = "import math, cmath\nimport numpy as np\n"
    source += f"@cuda.jit\ndef kernel(out, {', '.join(ARGUMENTS)}):\n"
    for k, expression in enumerate(expressions):
        source += f"    out[{k}] = type_of({expression})\n"
    return run_or_split(source, expressions, expression_letters)


def run_or_split(source, texts, again):
    out = np.full(len(texts), -1, np.int64)
    try:
        load(source, cuda=cuda, type_of=type_of())["kernel"][1, 1](out, *ARGUMENTS.values())
    except (NumbaError, NotImplementedError):
        if len(texts) == 1:
            return [rules.ERROR]
        half = len(texts) // 2
        return again(texts[:half]) + again(texts[half:])
    return [SCALARS[k] for k in out]


def differences(group, cases, letters_of, refusals=False):
    """cases: (name, a, b, text, letter of Numba) -> the lines of a report.

    What Numba refuses may work here, except where `refusals` says that it must not. Functions that
    simt does not have at all are not the matter of these tests (docs/coverage lists them).
    """
    cases = [c for c in cases if c[4] != rules.OTHER and not is_expected(group, *c[:3])]
    good = [c for c in cases if c[4] != rules.ERROR]
    bad = [c for c in cases if c[4] == rules.ERROR and refusals]
    lines = []
    found = letters_of([c[3] for c in good])
    for case in bad:
        found += letters_of([case[3]])
    known = {c[0] for c, letter in zip(good, found, strict=False) if letter != rules.ERROR}
    for (name, a, b, text, expected), letter in zip(good + bad, found, strict=True):
        if name not in known:
            continue
        if letter != expected:
            lines.append(f"{text}  ({a} {b}): Numba {expected}, simt {letter}")
    return lines


def report(lines):
    assert not lines, f"{len(lines)} differ\n" + "\n".join(lines[:60])


def table_cases(name, rows, operands, text):
    for a, row in zip(operands, rows, strict=True):
        for b, letter in zip(operands, row, strict=True):
            yield name, a, b, text(a, b), letter


@pytest.mark.parametrize("op", rules.BINARY)
def test_binary_operators(op):
    def text(a, b):
        return f"{spelled(a)} {op} {spelled(b)}"

    cases = list(table_cases(op, TYPES["binary"][op], rules.OPERANDS, text))
    report(differences("binary", cases, expression_letters, refusals=True))


def one_argument_cases(names):
    for name in names:
        for a, letter in zip(rules.OPERANDS, TYPES["one"][name], strict=True):
            if name in rules.UNARY:
                yield name, a, "", rules.UNARY[name].format(spelled(a)), letter
            else:
                yield name, a, "", f"{name}({spelled(a)})", letter


GROUPS = {
    "unary": list(rules.UNARY),
    "builtins": rules.BUILTINS + rules.CASTS + rules.BITS,
    "math": ["math." + n for n in rules.MATH],
    "cmath": ["cmath." + n for n in rules.CMATH],
    "numpy": ["np." + n for n in rules.UFUNCS],
}


@pytest.mark.parametrize("group", GROUPS)
def test_functions_of_one_argument(group):
    report(differences("one", list(one_argument_cases(GROUPS[group])), expression_letters))


@pytest.mark.parametrize("group", ["builtins", "math", "np"])
def test_functions_of_two_arguments(group):
    cases = []
    for name in rules.TWO_ARGUMENTS:
        if name.partition(".")[0] != group and ("." in name or group != "builtins"):
            continue

        def text(a, b, name=name):
            call = f"{name}({spelled(a)}, {spelled(b)})"
            return call + "[0]" if name == "divmod" else call

        cases += table_cases(name, TYPES["two"][name], rules.FEW, text)
    report(differences("two", cases, expression_letters))


def test_unification():
    def text(a, b):
        return f"if v63:\n    x = {spelled(a)}\nelse:\n    x = {spelled(b)}"

    cases = list(table_cases("unify", TYPES["unify"], rules.OPERANDS, text))
    report(differences("unify", cases, body_letters))


def test_ranges():
    cases = []
    for name, rows in TYPES["ranges"].items():

        def text(a, b, name=name):
            return f"for x in {name.format(a=spelled(a), b=spelled(b))}:\n    break"

        cases += table_cases(name, rows, rules.OPERANDS, text)
    report(differences("range", cases, body_letters))


def test_statements():
    cases = []
    for name, row in TYPES["statements"].items():
        for a, letter in zip(rules.VARIABLES, row, strict=True):
            cases.append((name, a, "", f"a = {spelled(a)}\n{rules.STATEMENTS[name]}", letter))
    report(differences("statement", cases, body_letters))


def test_meetings():
    head = f"flag = {spelled('?')}\nn = {spelled('q')}\n"
    lines = []
    for name, rows in TYPES["meetings"].items():

        def text(a, b, name=name):
            return f"a = {spelled(a)}\nb = {spelled(b)}\n{head}{rules.MEETINGS[name]}"

        cases = list(table_cases(name, rows, rules.MEETING_TYPES, text))
        lines += differences("meeting", cases, body_letters, refusals=True)
    report(lines)


# ---- values ----


def same(found, expected, exact):
    if isinstance(expected, complex):
        return same(found.real, expected.real, exact) and same(found.imag, expected.imag, exact)
    if isinstance(expected, float):
        if expected != expected:
            return found != found
        if exact or np.isinf(expected) or expected == 0:
            return found == expected and (not exact or np.signbit(found) == np.signbit(expected))
        return abs(found - expected) <= 2e-6 * abs(expected)
    return found == expected


def run_values(cases, head=""):
    """cases: (text with {a} and {b}, letter of the result, [(letter, values), ...], expected)."""
    width = max(len(c[3]) for c in cases)
    inputs, outputs, lines, places = {}, {}, [], []
    for text, result, operands, _ in cases:
        names = []
        for letter, values in operands:
            rows = inputs.setdefault(letter, [])
            names.append(f"in{ord(letter)}[{len(rows)}, i]")
            rows.append(list(values) + [values[0]] * (width - len(values)))
        rows = outputs.setdefault(result, [0])
        lines.append(f"    out{ord(result)}[{rows[0]}, i] = {text.format(*names)}\n")
        places.append((result, rows[0]))
        rows[0] += 1
    arguments = {f"in{ord(t)}": np.array(rows, np.dtype(t)) for t, rows in inputs.items()}
    results = {t: np.zeros((n, width), np.dtype(t)) for t, (n,) in outputs.items()}
    arguments |= {f"out{ord(t)}": array for t, array in results.items()}
    source = f"{head}@cuda.jit\ndef kernel({', '.join(arguments)}):\n    i = cuda.threadIdx.x\n"
    load(source + "".join(lines), cuda=cuda)["kernel"][1, width](*arguments.values())
    return [results[t][row] for t, row in places]


def check_values(cases, exact, head=""):
    lines = []
    for (text, _, operands, expected), found in zip(cases, run_values(cases, head), strict=True):
        for k, value in enumerate(expected):
            value = rules.result_value(value)
            if not same(found[k], value, exact):
                given = [f"{np.dtype(t).name}({v[k]})" for t, v in operands]
                lines.append(f"{text.format(*given)}: Numba {value}, simt {found[k]}")
    report(lines)


def letter_at(rows, a, b):
    return rows[rules.OPERANDS.index(a)][rules.OPERANDS.index(b)]


def result_letter(value):
    return "?" if isinstance(value, bool) else "q" if isinstance(value, int) else "d"


@pytest.mark.parametrize("op", rules.VALUE_BINARY + rules.VALUE_TWO)
def test_values_of_two_operands(op):
    cases = []
    for pair, expected in RECORDED["values"]["binary"][op].items():
        a, b = pair
        operands = rules.value_pairs(op, a, b)
        if op in rules.VALUE_BINARY:
            result = letter_at(TYPES["binary"][op], a, b)
        else:
            rows = TYPES["two"][op.rstrip("01")]
            result = rows[rules.FEW.index(a)][rules.FEW.index(b)]
        if result in (rules.ERROR, rules.OTHER):
            continue
        text = rules.value_expression(op).replace("a", "{0}").replace("b", "{1}")
        if op in rules.VALUE_TWO:
            name = op.rstrip("01")
            text = name + "({0}, {1})" + ("" if name == op else f"[{op[-1]}]")
        cases.append(
            (text, result, [(a, [x for x, _ in operands]), (b, [y for _, y in operands])], expected)
        )
    check_values(cases, exact=op not in ("**", "/") or op == "/")


def test_values_where_variables_meet():
    lines = []
    for name, rows in RECORDED["values"]["meetings"].items():
        source = rules.meeting_source(rules.MEETINGS[name])
        source += "@cuda.jit\ndef kernel(out, a, b, flag, n):\n    out[0] = f(a, b, flag, n)\n"
        kernel = load(source, cuda=cuda)["kernel"]
        for pair, (letter, *expected) in rows.items():
            if is_expected("meeting value", name, *pair):
                continue
            for flag, value in zip((False, True), expected, strict=True):
                out = np.zeros(1, np.dtype(letter))
                try:
                    kernel[1, 1](out, *rules.meeting_arguments(pair, flag))
                except NumbaError as error:
                    lines.append(f"{name} {pair}: {error}")
                    break
                if not same(out[0], rules.result_value(value), exact=True):
                    lines.append(f"{name} {pair} {flag}: Numba {value}, simt {out[0]}")
    report(lines)
