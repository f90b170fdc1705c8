"""Runs programs made at random until the time is over, and keeps the ones that find something.

    python tools/fuzz --seconds 60 --seed 1              all parts, in turns
    python tools/fuzz --programs 500 --seed 1            so many of each part: the same each time
    python tools/fuzz --seconds 60 --part binding --only cp.repeat
    python tools/fuzz --replay FILE ...                  kept programs once more

A part is a file beside this one: how to make the next program (a text) from a seed, how to run one,
and how to make one smaller. Programs run in a child process, which writes each down before it
starts it; a crash, an error of a sanitizer, a wrong answer or a hang ends the child, and what it
ran last is made smaller, as long as it still fails, and kept in tests/fuzz_found, where tests run
it again.
"""

import argparse
import hashlib
import importlib
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
KEPT = os.path.join(ROOT, "tests", "fuzz_found")
PARTS = ["binding", "kernels", "features", "ir", "files"]
HANG = 180  # seconds for one program, on a machine that does other things too
ROUND = 60  # seconds of a child: what programs leave behind goes with it


# ---- the child ----


def child(part, seed, seconds, most, only, log):
    module = importlib.import_module(part)
    made = module.Part(seed, only)
    end, count, worked = time.monotonic() + seconds, 0, 0
    with open(log, "w", buffering=1) as file:
        while time.monotonic() < end and (not most or count < most):
            text = made.text()
            file.seek(0)
            file.truncate()
            file.write(text)
            file.flush()
            if module.run(text):
                worked += 1
                made.worked()
            count += 1
    print(f"{count} {worked}")


def run_text(part):
    importlib.import_module(part).run(sys.stdin.read())


# ---- the parent ----


def start(arguments, **more):
    command = [sys.executable, "-X", "faulthandler", HERE, *arguments]
    env = {"PYTHONHASHSEED": "0", **os.environ}
    return subprocess.Popen(command, text=True, start_new_session=True, env=env, **more)


def stop(process):
    try:
        os.killpg(process.pid, 9)  # its own group: nobody else is in it
    except ProcessLookupError:
        pass
    process.wait()


def failure(part, text):
    """How the program fails in a process of its own; "" when it does not."""
    with tempfile.TemporaryDirectory() as folder:
        process = start(
            ["--text", part], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )  # fmt: skip
        try:
            err = process.communicate(text, timeout=HANG)[1]
        except subprocess.TimeoutExpired:
            stop(process)
            return "hangs"
    return "" if process.returncode == 0 else err[-6000:] or f"exit code {process.returncode}"


def shrink(part, text, tries=60):
    module = importlib.import_module(part)
    again = True
    while again and tries > 0:
        again = False
        for candidate in module.smaller(text):
            tries -= 1
            if candidate != text and failure(part, candidate):
                text, again = candidate, True
                break
            if tries <= 0:
                break
    return text


def keep(folder, part, text, seed, why):
    os.makedirs(folder, exist_ok=True)
    name = f"{part}_{hashlib.sha256(text.encode()).hexdigest()[:10]}.txt"
    path = os.path.join(folder, name)
    with open(path, "w") as file:
        file.write(f"# {part}, seed {seed}\n{text}\n")
    last = [line for line in why.strip().split("\n") if line][-1:] or [""]
    print(f"FOUND {os.path.relpath(path, ROOT)}: {last[0][:200]}", flush=True)


def watch(process, log):
    """Waits for the child; False: it hangs."""
    said = time.monotonic()
    before = None
    while process.poll() is None:
        time.sleep(0.2)
        try:
            now = os.stat(log).st_mtime_ns
        except OSError:
            now = None
        if now != before:
            before, said = now, time.monotonic()
        if time.monotonic() - said > HANG:
            return False
    return True


def one_round(part, seed, seconds, options):
    """(programs, of which worked, whether something was found)"""
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "program")
        with open(os.path.join(folder, "stderr"), "w+") as err:
            process = start(
                ["--child", part, "--seed", seed, "--seconds", str(seconds), "--log", log]
                + ["--only", options.only, "--programs", str(options.programs)],
                cwd=folder, stdout=subprocess.PIPE, stderr=err,
            )  # fmt: skip
            ended = watch(process, log)
            if not ended:
                stop(process)
            out = process.stdout.read()
            err.seek(0)
            why = err.read()[-6000:] if ended else "hangs"
        if process.returncode == 0:
            count, worked = map(int, out.split()[-2:])
            return count, worked, False
        try:
            with open(log) as file:
                text = file.read()
        except OSError:
            text = ""
    if not text:
        print(why, flush=True)
        sys.exit(f"fuzz: {part} does not start")
    alone = failure(part, text)
    if alone:
        print(f"--- {part}, seed {seed}\n{text}\n--- {alone}", flush=True)
        text = shrink(part, text)
    else:
        print(f"--- {part}, seed {seed}: only after others\n{text}\n--- {why}", flush=True)
    keep(options.keep, part, text, seed, alone or why)
    return 0, 0, True


def fuzz(options):
    parts = options.part or PARTS
    end = time.monotonic() + options.seconds
    totals = {part: [0, 0, 0] for part in parts}
    number = 0
    while time.monotonic() < end - 1 and not (options.programs and number):
        for part in parts:
            left = end - time.monotonic()
            share = max(2, min(ROUND, left, options.seconds / len(parts)))
            if options.programs:
                share = left
            if left < 1:
                break
            seed = f"{options.seed}.{number}"
            count, worked, found = one_round(part, seed, share, options)
            for i, n in enumerate((count, worked, found)):
                totals[part][i] += n
        number += 1
    for part, (count, worked, found) in totals.items():
        print(f"{part}: {count} programs, {worked} worked, {found or 'no'} findings")
    return 1 if any(t[2] for t in totals.values()) else 0


def replay(paths):
    """Kept programs in one process: the last name on stderr is the one that fails."""
    for path in paths:
        with open(path) as file:
            text = file.read()
        print(path, file=sys.stderr, flush=True)
        importlib.import_module(text.split(",")[0][2:]).run(text)
    return 0


def main():
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--programs", type=int, default=0, help="of each part, if time allows")
    parser.add_argument("--seed", default=str(time.time_ns() % 10**9))
    parser.add_argument("--part", action="append", choices=PARTS)
    parser.add_argument("--only", default="", help="entries of the binding that contain this")
    parser.add_argument("--keep", default=KEPT, help="folder for programs that fail")
    parser.add_argument("--replay", nargs="*")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--log", help=argparse.SUPPRESS)
    parser.add_argument("--text", help=argparse.SUPPRESS)
    options = parser.parse_args()
    sys.path.insert(0, HERE)
    if options.child:
        o = options
        return child(o.child, o.seed, o.seconds, o.programs, o.only, o.log)
    if options.text:
        return run_text(options.text)
    if options.replay is not None:
        return replay(options.replay)
    print(f"fuzz: seed {options.seed}, {options.seconds:g} s", flush=True)
    return fuzz(options)


if __name__ == "__main__":
    sys.exit(main())
