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

A child has a limit of memory and of time for a program, and ends with its parent. What the limit of
memory stops, and what takes too long only after others, is no finding: it is counted apart, and
said.
"""

import argparse
import ctypes
import hashlib
import importlib
import os
import signal
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
SHRINKING = 300  # seconds for making one smaller
MEMORY = 4000  # MB of a child in memory; address space says nothing under a sanitizer
NO_MEMORY, HANGS = "no memory", "hangs"


# ---- the child ----


def child(part, seed, seconds, most, only, log):
    """Its log has how many programs ran, how many of them worked, and the one that runs."""
    made = importlib.import_module(part).PART
    made.begin(seed, only)
    end, count, worked = time.monotonic() + seconds, 0, 0
    with open(log, "w", buffering=1) as file:

        def write(text):
            file.seek(0)
            file.truncate()
            file.write(f"{count} {worked}\n{text}")
            file.flush()

        while time.monotonic() < end and (not most or count < most):
            text = made.text()
            write(text)
            try:
                if made.run(text):
                    worked += 1
                    made.worked()
            except MemoryError:
                print(f"no memory: {part}, seed {seed}: {text}", file=sys.stderr)
            count += 1
        write("")


def run_text(part):
    importlib.import_module(part).PART.run(sys.stdin.read())


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


def resident(process):
    """Its MB in memory."""
    try:
        with open(f"/proc/{process.pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6
    except (OSError, IndexError):
        return 0  # it ends


def watch(process, seconds, log=None):
    """Waits for the child; why it was stopped, or "". Its time begins anew when its log changes."""
    since, before = time.monotonic(), None
    while process.poll() is None:
        time.sleep(0.1)
        now = os.stat(log).st_mtime_ns if log and os.path.exists(log) else None
        if now != before:
            since, before = time.monotonic(), now
        why = NO_MEMORY if resident(process) > MEMORY else ""
        if not why and time.monotonic() - since > seconds:
            why = HANGS
        if why:
            stop(process)
            return why
    return ""


def reason(code, err):
    """Why a child ended; "" when it ended well."""
    if code == 0:
        return ""
    last = (err.strip().split("\n") or [""])[-1]
    if "MemoryError" in last.partition(":")[0]:
        return NO_MEMORY
    return err[-6000:] or f"exit code {code}"


def failure(part, text, seconds=HANG):
    """How the program fails in a process of its own; "" when it does not."""
    with tempfile.TemporaryDirectory() as folder, open(os.path.join(folder, "err"), "w+") as file:
        process = start(
            ["--text", part], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
            stderr=file,
        )  # fmt: skip
        try:
            with process.stdin:
                process.stdin.write(text)
        except BrokenPipeError:
            pass  # it ended already
        stopped = watch(process, seconds)
        file.seek(0)
        return stopped or reason(process.returncode, file.read())


def shrink(part, text, why, tries=60):
    """The smallest program found that fails as this one does: hangs, or does not."""
    made = importlib.import_module(part).PART
    end = time.monotonic() + SHRINKING
    again = True
    while again:
        again = False
        for candidate in made.smaller(text):
            if tries <= 0 or time.monotonic() > end:
                break
            tries -= 1
            now = failure(part, candidate, 20) if candidate != text else ""
            if now and now != NO_MEMORY and (now == HANGS) == (why == HANGS):
                text, again = candidate, True
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


def run_child(part, seed, seconds, options):
    """(programs, of which worked, the last one, why the child ended before its time or "")"""
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "program")
        with open(os.path.join(folder, "err"), "w+") as err:
            process = start(
                ["--child", part, "--seed", seed, "--seconds", str(seconds), "--log", log]
                + ["--only", options.only, "--programs", str(options.programs)],
                cwd=folder, stdout=subprocess.DEVNULL, stderr=err,
            )  # fmt: skip
            stopped = watch(process, HANG, log)
            err.seek(0)
            said = err.read()
        for line in said.split("\n"):
            if line.startswith("no memory: "):
                print(line[:300], flush=True)
        try:
            with open(log) as file:
                counts, _, text = file.read().partition("\n")
        except OSError:
            counts = ""
        if not counts:
            print(said[-6000:], flush=True)
            sys.exit(f"fuzz: {part} does not start")
    count, worked = map(int, counts.split())
    return count, worked, text, stopped or reason(process.returncode, said)


def one_round(part, seed, seconds, options):
    """(programs, of which worked, found, stopped)"""
    count, worked, text, why = run_child(part, seed, seconds, options)
    if not why:
        return count, worked, 0, 0
    alone = failure(part, text)
    if NO_MEMORY in (why, alone) or (why == HANGS and not alone):
        print(f"STOPPED {part}, seed {seed}: {why}, alone: {alone or 'ends'}\n{text}", flush=True)
        return count, worked, 0, 1
    others = "" if alone else ": only after others"
    print(f"--- {part}, seed {seed}{others}\n{text}\n--- {alone or why}", flush=True)
    if alone:
        text = shrink(part, text, alone)
    keep(options.keep, part, text, seed, alone or why)
    return count, worked, 1, 0


def fuzz(options):
    parts = options.part or PARTS
    end = time.monotonic() + options.seconds
    totals = {part: [0, 0, 0, 0] for part in parts}
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
            for i, n in enumerate(one_round(part, seed, share, options)):
                totals[part][i] += n
        number += 1
    for part, (count, worked, found, stopped) in totals.items():
        more = f", {stopped} stopped" if stopped else ""
        print(f"{part}: {count} programs, {worked} worked, {found or 'no'} findings{more}")
    return 1 if any(found for _, _, found, _ in totals.values()) else 0


def replay(paths):
    """Kept programs in one process: the last name on stderr is the one that fails."""
    for path in paths:
        with open(path) as file:
            text = file.read()
        print(path, file=sys.stderr, flush=True)
        importlib.import_module(text.split(",")[0][2:]).PART.run(text)
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
    if options.child or options.text:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: it ends with its parent
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
