"""Tries what goes wrong around a program: interrupts, forks, memory that ends, threads.

    python tools/reliability interrupts --count 500 --seed 1     one kind
    python tools/reliability all                                 each with its full counts

Each kind is a file beside this one with a docstring, `arguments(parser)` and `run(options)`, which
prints each failure with what repeats it and returns their number. With the same seed, the same
things are tried.
Results are in docs/reliability.md.
"""

import argparse
import importlib
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = ("forked.py", "interrupted.py")  # that kinds run
KINDS = sorted(
    name[:-3]
    for name in os.listdir(HERE)
    if name.endswith(".py") and name not in ("__main__.py", "common.py", *PROGRAMS)
)


def load(name):
    if HERE not in sys.path:
        sys.path.insert(0, HERE)
    return importlib.import_module(name)


def make_parser():
    parser = argparse.ArgumentParser(prog="reliability", description=__doc__.split("\n")[0])
    kinds = parser.add_subparsers(dest="kind", required=True)
    for name in KINDS:
        module = load(name)
        sub = kinds.add_parser(name, help=module.__doc__.split("\n")[0])
        sub.add_argument("--seed", type=int, default=1)
        module.arguments(sub)
    kinds.add_parser("all", help="each kind with its defaults")
    return parser


def main():
    parser = make_parser()
    options = parser.parse_args()
    names = KINDS if options.kind == "all" else [options.kind]
    failed = 0
    for name in names:
        if options.kind == "all":
            options = parser.parse_args([name])
            options.kind = "all"
        found = load(name).run(options)
        print(f"{name}: {found or 'no'} failure{'' if found == 1 else 's'}", flush=True)
        failed += found
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
