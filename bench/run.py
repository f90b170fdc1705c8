"""Speed and memory of simt against other libraries, in turns on this machine: `make bench`.

    python bench/run.py [--only NAME ...] [--rounds 3] [--peers-python PATH] [--no-install] [--jax]
    python bench/run.py --against FOLDER [--own FOLDER] [--only NAME ...] [--rounds 3]

--against compares this simt with another build of itself instead: FOLDER holds the other's package
(as `tools/link_core.py BUILD --tree` makes it: BUILD/python), --own this one's. Both should be
release builds, as pip makes them: meson setup BUILD -Dbuildtype=release -Doptimization=2
-Db_ndebug=true. Both are alive at once and run slices of some milliseconds in turns; the ratio that
tells a change from a busy machine is the median of the ratios of neighbouring slices, which stands
beside that of the best. What lies between the quartiles of those ratios is noise.

The peers get an environment of their own (.venv-bench; about 6 GB with PyTorch). Each case runs in
fresh processes, one library after the other, --rounds times over, so that a slow spell of the
machine hits all of them. Prints best and median and the ratio of the medians; writes
bench/results.json and bench/results.md.
"""

import argparse
import gzip
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from lockstep import run_in_turns

ROOT = Path(__file__).resolve().parent.parent
BENCH = ROOT / "bench"
SEED = ROOT / "examples" / "seed" / "pytorch_mnist.py"
SHIPPED = ROOT / "python" / "simt" / "data" / "MNIST" / "raw"
PACKAGES = ["numpy", "numexpr", "numba", "torch", "torchvision"]
# An OpenBLAS set up for another machine would falsify the figures, and so would compiling simt's
# own Python anew in each process: what pip installs is compiled.
DROPPED = (
    "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "PYTHONDONTWRITEBYTECODE", "SIMT_EAGER", "SIMT_DUMP",
)  # fmt: skip


def environment():
    env = {k: v for k, v in os.environ.items() if k not in DROPPED}
    if env.get("PYTHONPATH"):  # programs run in other folders
        parts = env["PYTHONPATH"].split(os.pathsep)
        env["PYTHONPATH"] = os.pathsep.join(os.path.abspath(part) for part in parts if part)
    source = str(ROOT / "python")
    try:  # an installed simt comes first; a development build is used from the source tree
        subprocess.run(
            [sys.executable, "-c", "import simt._core"], env=env, check=True, capture_output=True
        )
    except subprocess.CalledProcessError:
        env["PYTHONPATH"] = source
    return env


# ---- the peers' environment


def install_peers(args):
    """The Python of the peers' environment, or None; what cannot be installed is left out."""
    if args.peers_python:
        return args.peers_python
    folder = ROOT / ".venv-bench"
    python = folder / "bin" / "python"
    if args.no_install:
        return str(python) if python.exists() else None
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    for package in PACKAGES + (["jax[cpu]", "keras>=3.15,<3.16"] if args.jax else []):
        module = re.split(r"[\[<>=]", package)[0]
        if has_module(python, module):
            continue
        print(f"bench: installing {package}", file=sys.stderr, flush=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", package], check=False)
    return str(python)


def has_module(python, name):
    code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({name!r}) is None)"
    return subprocess.run([str(python), "-c", code], capture_output=True).returncode == 0


# ---- running


class Bench:
    def __init__(self, args):
        self.rounds = args.rounds
        self.env = environment()
        if args.own:
            self.env["PYTHONPATH"] = os.path.abspath(args.own)
        self.envs = {}  # of the libraries that need another one
        self.rows = []  # (case, library, seconds of all groups)
        self.problems = []
        self.python = {"simt": sys.executable}
        if args.against:
            self.python["before"] = sys.executable
            self.envs["before"] = self.env | {"PYTHONPATH": os.path.abspath(args.against)}
            return
        self.peers = install_peers(args)
        self.python |= {"numpy": sys.executable, "python": sys.executable}
        for name in ("torch", "numexpr", "numba", "jax"):
            if self.peers and has_module(self.peers, name):
                self.python[name] = self.peers

    def libraries(self, *names):
        """Those of names that are there; beside simt its other build, if one was given."""
        names = [other for name in names for other in (name, "before" if name == "simt" else None)]
        return [name for name in names if name in self.python]

    def environment(self, library):
        return self.envs.get(library, self.env)

    def in_turns(self, case, libraries, run, unit="s", times=1):
        """run(library) -> list of numbers, in turns; a library that fails is left out."""
        values, failed = {name: [] for name in libraries}, set()
        for _ in range(self.rounds * times):
            for name in libraries:
                if name in failed:
                    continue
                try:
                    values[name] += run(name)
                except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as e:
                    failed.add(name)
                    self.problem(case, name, e)
        for name in libraries:
            if values[name]:
                self.add(case, name, values[name], unit)

    def cases(self, what, libraries, command):
        """command(library) prints the seconds of the case `what`, or {case: seconds} of several."""
        collected, failed = {}, set()
        for _ in range(self.rounds):
            names = [name for name in libraries if name not in failed]
            for name, seconds in self.measure(what, names, command, failed):
                several = seconds if isinstance(seconds, dict) else {what: seconds}
                for case, values in several.items():
                    collected.setdefault((case, name), []).extend(values)
        for (case, name), values in sorted(collected.items(), key=lambda x: x[0][0]):
            self.add(case, name, values)

    def measure(self, what, libraries, command, failed):
        """(library, its seconds) of one round: builds slice by slice in turns, peers one by one."""
        if "before" in self.python:
            groups = [libraries]
        else:
            groups = [[name] for name in libraries]
        for group in groups:
            try:
                if len(group) > 1:
                    how = {name: (command(name), self.environment(name)) for name in group}
                    yield from run_in_turns(how).items()
                else:
                    yield from ((name, self.seconds(command(name), name)) for name in group)
            except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as e:
                failed.update(group)
                self.problem(what, " and ".join(group), e)

    def problem(self, what, library, error):
        tail = (getattr(error, "stderr", "") or str(error)).strip().splitlines()[-1:]
        self.problems.append(f"{what}, {library}: {''.join(tail)}")

    def add(self, case, library, values, unit="s"):
        row = {"case": case, "library": library, "unit": unit, "best": min(values)}
        row |= {"median": statistics.median(values), "values": values}
        self.rows.append(row)
        print(f"{case:<28} {library:<8} {show(row['best'], unit):>10} best", flush=True)

    def case(self, library, name):
        """The command of one case of cases.py."""
        return [self.python[library], str(BENCH / "cases.py"), interface(library), name]

    def seconds(self, command, library):
        env = self.environment(library)
        done = subprocess.run(
            command, env=env, check=True, capture_output=True, text=True, timeout=900
        )
        return json.loads(done.stdout.strip().splitlines()[-1])["seconds"]

    def process(self, command, folder, library="simt"):
        """(wall seconds, peak MiB) of a program."""
        start = time.perf_counter()
        with tempfile.TemporaryFile() as err:
            child = subprocess.Popen(
                command,
                cwd=folder,
                env=self.environment(library),
                stdout=subprocess.DEVNULL,
                stderr=err,
            )
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            if child.returncode:
                err.seek(0)
                text = err.read().decode(errors="replace")
                raise subprocess.CalledProcessError(child.returncode, command, stderr=text)
        scale = 1024 if sys.platform != "darwin" else 1024 * 1024
        return time.perf_counter() - start, usage.ru_maxrss / scale


def interface(library):
    """The library whose interface it has: another build of simt is used as simt is."""
    return "simt" if library == "before" else library


def program(bench, library, script):
    runner = ["-m", "simt", "run", "-q"] if interface(library) == "simt" else []
    start = [bench.python[library]] + runner
    return start + [str(script)]


def prepare_data(folder, name="MNIST", source=SHIPPED):
    """./data as torchvision leaves it, from IDX files packed with gzip."""
    raw = Path(folder) / "data" / name / "raw"
    raw.mkdir(parents=True)
    for path in source.glob("*.gz"):
        (raw / path.stem).write_bytes(gzip.decompress(path.read_bytes()))


# ---- the benchmarks


def run_program(bench, case, script):
    with tempfile.TemporaryDirectory() as folder:
        prepare_data(folder)
        peaks = {}

        def run(library):
            seconds, peak = bench.process(program(bench, library, script), folder, library)
            peaks.setdefault(library, []).append(peak)
            return [seconds]

        bench.in_turns(case, bench.libraries("simt", "torch"), run)
        for library, values in peaks.items():
            bench.add(case + ", peak memory", library, values, "MiB")


def run_seed(bench):
    run_program(bench, "seed program", SEED)


def run_seed_tensor(bench):
    run_program(bench, "seed, data in a tensor", BENCH / "programs" / "mnist_tensor.py")


def run_steps(bench):
    for name in ("step_mlp", "step_cnn_sgd", "step_cnn_adam"):
        libraries = bench.libraries("simt", "torch")
        bench.cases(name, libraries, lambda library, n=name: bench.case(library, n))


def run_keras(bench):
    """An epoch of fit: the tutorial's program, and the convolutions of Keras's MNIST example."""
    for name in ("keras_mlp", "keras_cnn"):
        libraries = bench.libraries("simt", "jax")
        bench.in_turns(
            name, libraries, lambda library, n=name: bench.seconds(bench.case(library, n), library)
        )


def run_expressions(bench):
    libraries = bench.libraries("simt", "numpy", "numexpr", "torch")
    bench.cases("expressions", libraries, lambda library: bench.case(library, "expressions"))


def run_kernels(bench):
    def command(library):
        return program(bench, library, BENCH / "kernels.py") + [interface(library)]

    bench.cases("kernels", bench.libraries("simt", "numba"), command)


def run_small(bench):
    libraries = bench.libraries("simt", "numpy", "torch")
    bench.cases("a+b, 10 elements", libraries, lambda name: bench.case(name, "small_add"))


def run_calls(bench):
    """What calls of simt cost: for two builds only."""
    if "before" in bench.python:
        libraries = bench.libraries("simt")
        bench.cases("calls", libraries, lambda library: bench.case(library, "calls"))


IMPORTS = {
    "python": "pass",
    "simt": "import simt",
    "simt.torch": "import simt.torch",
    "simt.cupy": "import simt.cupy",
    "simt.numba": "from simt.numba import cuda",
    "numpy": "import numpy",
    "torch": "import torch",
}


def run_import(bench):
    """Whole processes; what counts is the time beyond bare Python's."""
    faces = ("simt", "simt.torch", "simt.cupy", "simt.numba")

    def run(library, what, times):
        command = [bench.python[library], "-c", IMPORTS[what]]
        return [bench.process(command, ROOT, library)[0] for _ in range(times)]

    def warm_and_run(name):
        run(name, name, 1)
        return run(name, name, 5 if name != "torch" else 1)

    if "before" in bench.python:
        for face in faces:
            one = lambda library, face=face: run(library, face, 1)
            bench.in_turns(f"process, {IMPORTS[face]}", bench.libraries("simt"), one, times=8)
        return
    bench.python |= dict.fromkeys(faces, sys.executable)
    bench.in_turns("process start + import", bench.libraries(*IMPORTS), warm_and_run)


def run_accuracy(bench, data="MNIST"):
    with tempfile.TemporaryDirectory() as folder:
        prepare_data(folder)
        if data != "MNIST":
            files = Path(os.environ.get("SIMT_DATA", "")) / data / "raw"
            if not files.is_dir():
                bench.problems.append(f"test accuracy, {data}: no $SIMT_DATA/{data}/raw")
                return
            prepare_data(folder, data, files)
        for library in bench.libraries("simt", "torch"):
            command = program(bench, library, BENCH / "accuracy.py") + ["--data", data]
            done = subprocess.run(
                command, cwd=folder, env=bench.environment(library), capture_output=True, text=True
            )
            if done.returncode:
                tail = done.stderr.strip().splitlines()[-1:]
                bench.problems.append(f"accuracy, {library}: {''.join(tail)}")
            else:
                result = json.loads(done.stdout.strip().splitlines()[-1])
                bench.add(f"test accuracy, {data}", library, result["accuracy"], "%")


BENCHMARKS = {
    "import": run_import,
    "small": run_small,
    "calls": run_calls,
    "expressions": run_expressions,
    "keras": run_keras,
    "kernels": run_kernels,
    "steps": run_steps,
    "tensor": run_seed_tensor,
    "seed": run_seed,
    "accuracy": run_accuracy,
    "fashion": lambda bench: run_accuracy(bench, "FashionMNIST"),
}

# ---- reporting


def show(value, unit):
    if unit != "s":
        return f"{value:.2f} {unit}" if unit == "%" else f"{value:.0f} {unit}"
    for scale, name in ((1, "s"), (1e-3, "ms"), (1e-6, "us")):
        if value >= scale:
            break
    return f"{value / scale:.3g} {name}"


def table(rows):
    """Markdown: one line per case and peer; the ratio says how many times less simt takes."""
    simt = {row["case"]: row for row in rows if row["library"] == "simt"}
    lines = ["| case | library | best | median | median / simt's |", "|---|---|---|---|---|"]
    for row in rows:
        own = simt.get(row["case"])
        ratio = f"{row['median'] / own['median']:.2f}" if own and row["unit"] != "%" else ""
        if own is row:
            ratio = "1"
        unit = row["unit"]
        cells = [row["case"], row["library"], show(row["best"], unit), show(row["median"], unit)]
        lines.append("| " + " | ".join(cells + [ratio]) + " |")
    return "\n".join(lines)


def table_of_builds(rows):
    """Markdown: one line per case; ratios above 1 say that this build takes less than the other."""
    before = {row["case"]: row for row in rows if row["library"] == "before"}
    lines = [
        "| case | before, best | now, best | before / now: best | slices: median (quartiles) |"
    ]
    lines.append("|---|---|---|---|---|")
    for now in (row for row in rows if row["library"] == "simt" and row["case"] in before):
        then, unit = before[now["case"]], now["unit"]
        pairs = [a / b for a, b in zip(then["values"], now["values"], strict=False)]
        low, middle, high = statistics.quantiles(pairs, n=4) if len(pairs) > 1 else pairs * 3
        best = then["best"] / now["best"]
        slower = unit != "%" and max(best, middle) < 0.97
        cells = [now["case"], show(then["best"], unit), show(now["best"], unit), f"{best:.3f}"]
        cells.append(f"{middle:.3f} ({low:.2f}-{high:.2f})" + (" slower" if slower else ""))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def machine():
    cpu = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                cpu = line.partition(":")[2].strip()
                break
    except OSError:
        pass
    return {"cpu": cpu, "cores": os.cpu_count(), "system": platform.platform(terse=True)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=BENCHMARKS, default=list(BENCHMARKS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers-python", help="a Python that has the peers already")
    parser.add_argument("--no-install", action="store_true", help="use the peers that are there")
    parser.add_argument("--against", help="another build's package folder, instead of the peers")
    parser.add_argument("--own", help="this build's package folder (default: as it is installed)")
    parser.add_argument("--jax", action="store_true", help="install jax and Keras too")
    parser.add_argument("--out", default=str(BENCH / "results"), help="without the ending")
    args = parser.parse_args()
    bench = Bench(args)
    for name in args.only:
        BENCHMARKS[name](bench)
    text = table_of_builds(bench.rows) if args.against else table(bench.rows)
    print("\n" + text)
    for problem in bench.problems:
        print("problem:", problem)
    result = {"machine": machine(), "rounds": args.rounds, "problems": bench.problems}
    Path(args.out + ".json").write_text(json.dumps(result | {"rows": bench.rows}, indent=1) + "\n")
    Path(args.out + ".md").write_text(text + "\n")


if __name__ == "__main__":
    main()
