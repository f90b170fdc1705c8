#!/usr/bin/env python3
"""Records what the real Numba's CUDA target says of types, and Numba's values of scalar operations.

    python -m venv /tmp/numba && /tmp/numba/bin/pip install numba numba-cuda
    /tmp/numba/bin/python tools/record_numba.py

No GPU is needed: functions are compiled for the CUDA target up to its intermediate code, which
types and lowers them. Values come from numba.njit on the CPU with the error model of the CUDA
target (a division by zero does not raise). Writes tests/conformance/numba_typing.json; takes about
ten minutes.
"""

import argparse
import cmath
import importlib.metadata
import json
import math
import sys
import time
import warnings
from pathlib import Path

import numba
import numba.cuda
import numba.cuda.compiler
import numpy as np
from numba import cuda

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "conformance"))
import numba_rules as rules  # noqa: E402

warnings.filterwarnings("ignore")
LETTERS = {name: letter for letter, name in rules.TYPES.items()}
NUMBA_TYPES = {
    letter: numba.types.boolean if name == "bool" else getattr(numba.types, name)
    for letter, name in rules.TYPES.items()
}


def compiled(source, types):
    """The function of a source text that defines f, and its type of result on the CUDA target."""
    space = {"math": math, "cmath": cmath, "np": np, "cuda": cuda}
    exec(source, space)
    result = numba.cuda.compiler.compile_cuda(space["f"], None, types, cc=(7, 5))
    return result.signature.return_type


def letter_of(source, *types):
    """The letter of f's type for operands of these types (letters; literals are in the source)."""
    try:
        result = compiled(source, tuple(NUMBA_TYPES.get(t, numba.types.int64) for t in types))
    except Exception:  # typing, lowering and unsupported: each of its own class
        return rules.ERROR
    result = getattr(result, "literal_type", result)
    return LETTERS.get(str(result), rules.OTHER)


def expression_letter(expression, *types):
    names = "abc"[: len(types)]
    return letter_of(f"def f({', '.join(names)}):\n    return {expression}\n", *types)


def record_types(progress):
    table = {"binary": {}, "one": {}, "two": {}, "unify": [], "statements": {}, "ranges": {}}
    for op in rules.BINARY:
        progress(op)
        table["binary"][op] = [
            "".join(
                expression_letter(rules.binary_expression(op, a, b), a, b) for b in rules.OPERANDS
            )
            for a in rules.OPERANDS
        ]
    for name in list(rules.UNARY) + rules.ONE_ARGUMENT:
        progress(name)
        row = ""
        for a in rules.OPERANDS:
            if name in rules.UNARY:
                expression = rules.UNARY[name].format(rules.spelled(a, "a"))
            else:
                expression = rules.call_expression(name, a)
            row += expression_letter(expression, a)
        table["one"][name] = row
    for name in rules.TWO_ARGUMENTS:
        progress(name)
        table["two"][name] = [
            "".join(expression_letter(two_arguments(name, a, b), a, b) for b in rules.FEW)
            for a in rules.FEW
        ]
    progress("unify")
    for a in rules.OPERANDS:
        row = ""
        for b in rules.OPERANDS:
            source = rules.UNIFY.format(a=rules.spelled(a, "a"), b=rules.spelled(b, "b"))
            row += letter_of(source, a, b, "?")
        table["unify"].append(row)
    for name, text in rules.STATEMENTS.items():
        progress(name)
        source = rules.statement_source(text)
        table["statements"][name] = "".join(letter_of(source, a) for a in rules.VARIABLES)
    table["meetings"] = record_meetings(progress)
    for name in rules.RANGES:
        progress(name)
        table["ranges"][name] = []
        for a in rules.OPERANDS:
            row = ""
            for b in rules.OPERANDS:
                call = name.format(a=rules.spelled(a, "a"), b=rules.spelled(b, "b"))
                source = f"def f(a, b):\n    for x in {call}:\n        pass\n    return x\n"
                row += letter_of(source, a, b)
            table["ranges"][name].append(row)
    return table


def record_meetings(progress):
    """Per function the letters of x: a row per type of a, a letter per type of b."""
    table = {}
    for name, text in rules.MEETINGS.items():
        progress(name)
        source = rules.meeting_source(text)
        types = rules.MEETING_TYPES
        table[name] = ["".join(letter_of(source, a, b, "?", "q") for b in types) for a in types]
    return table


def record_meeting_values(progress):
    """Per function and pair of types: the result's letter, the values without and with the flag."""
    table = {}
    for name, text in rules.MEETINGS.items():
        progress("values of " + name)
        space = {}
        exec(rules.meeting_source(text), space)
        rows = table[name] = {}
        for pair in rules.MEETING_VALUES if "cuda" not in text else []:
            f = numba.njit(error_model="numpy")(space["f"])
            try:
                results = [f(*rules.meeting_arguments(pair, flag)) for flag in (False, True)]
            except Exception:  # refused
                continue
            letter = LETTERS.get(str(f.nopython_signatures[0].return_type), rules.OTHER)
            rows[pair] = [letter] + [rules.result_text(x) for x in results]
    return table


def two_arguments(name, a, b):
    if name == "divmod":
        return rules.call_expression(name, a, b) + "[0]"
    return rules.call_expression(name, a, b)


def evaluate(expression, *operands):
    """The value by njit; operands are (letter, value)."""
    letters = tuple(letter for letter, _ in operands)
    key = (expression, letters)
    if key not in evaluate.cache:
        space = {"math": math, "np": np}
        exec(f"def f({', '.join('ab'[: len(letters)])}):\n    return {expression}\n", space)
        signature = tuple(NUMBA_TYPES[t] for t in letters)
        try:
            evaluate.cache[key] = numba.njit(signature, error_model="numpy")(space["f"])
        except Exception:
            evaluate.cache[key] = None
    function = evaluate.cache[key]
    if function is None:
        return None
    return function(*(np.dtype(letter).type(value) for letter, value in operands))


evaluate.cache = {}


def record_one(progress):
    """Per expression and type of its operand: the result's letter and the values."""
    table = {}
    for expression in rules.VALUE_ONE:
        progress("values of " + expression)
        rows = table[expression] = {}
        for a in rules.ONE_TYPES:
            text = expression.format("a")
            results = [evaluate(text, (a, x)) for x in rules.value_singles(expression, a)]
            letter = expression_letter(text, a)
            if letter == rules.ERROR and None not in results:  # the CUDA target has less of NumPy
                result = evaluate.cache[text, (a,)].nopython_signatures[0].return_type
                letter = LETTERS.get(str(result), rules.OTHER)
            if letter in (rules.ERROR, rules.OTHER):
                rows[a] = letter
            elif None not in results:
                rows[a] = [letter] + [rules.result_text(x) for x in results]
    return table


def record_conversions():
    """How arguments become declared types: a row per type of the argument, a letter per
    declared type (exact, promoted, safe, unsafe, or none)."""
    context = numba.core.registry.cpu_target.typing_context
    letters = {None: rules.ERROR} | {
        getattr(numba.core.typeconv.Conversion, name): name[0]
        for name in ("exact", "promote", "safe", "unsafe")
    }
    return [
        "".join(letters[context.can_convert(NUMBA_TYPES[a], NUMBA_TYPES[b])] for b in rules.TYPES)
        for a in rules.TYPES
    ]


def record_values(progress):
    values = {"binary": {}, "one": {}, "meetings": record_meeting_values(progress)}
    for op in rules.VALUE_BINARY + rules.VALUE_TWO:
        progress("values of " + op)
        rows = values["binary"][op] = {}
        for a in rules.VALUE_TYPES:
            for b in rules.VALUE_TYPES:
                results = []
                for x, y in rules.value_pairs(op, a, b):
                    result = evaluate(rules.value_expression(op), (a, x), (b, y))
                    if result is None:
                        break
                    results.append(rules.result_text(result))
                if results:
                    rows[a + b] = results
    values["one"] = record_one(progress)
    values["conversions"] = record_conversions()
    return values


def pretty(table, depth=0):
    """JSON with one short row per line."""
    if depth < 3 and isinstance(table, dict) and table:
        rows = (f"{json.dumps(k)}: {pretty(v, depth + 1)}" for k, v in table.items())
        return "{\n" + ",\n".join(rows) + "\n}"
    return json.dumps(table, separators=(",", ":"))


def write(recorded):
    order = {key: recorded[key] for key in ("versions", "types", "values")}
    rules.RECORDED.write_text(pretty(order) + "\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--only", choices=["types", "values", "meetings", "one"], help="keep the rest of the file"
    )
    args = parser.parse_args()
    start = time.time()

    def progress(what):
        print(f"{time.time() - start:6.1f} s  {what}", flush=True)

    recorded = {}
    if args.only:
        recorded = json.loads(rules.RECORDED.read_text(encoding="utf-8"))
    recorded["versions"] = {
        "numba": numba.__version__,
        "numba-cuda": importlib.metadata.version("numba-cuda"),
        "numpy": np.__version__,
    }
    if args.only == "meetings":
        recorded["types"]["meetings"] = record_meetings(progress)
        recorded["values"]["meetings"] = record_meeting_values(progress)
        write(recorded)
        return
    if args.only == "one":
        recorded["values"]["one"] = record_one(progress)
        recorded["values"]["conversions"] = record_conversions()
        write(recorded)
        return
    if args.only != "values":
        recorded["types"] = record_types(progress)
        recorded.setdefault("values", {})
        write(recorded)
    if args.only != "types":
        recorded["values"] = record_values(progress)
        write(recorded)
    print(f"{rules.RECORDED.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main()
