"""Runs the recorded snippets and describes what they give; shared by the recorder and the test.

Snippets live in snippets/*.txt: `## area/name flags`, then a few lines that leave their result in
`r` or raise. Flags: `type-only` (the exception's text is not compared), `full-message` (all of it
is, not the first line alone), `rtol=X`.

As a program: `recording.py OUT [--simt] [--after ID]` writes one JSON line per snippet to OUT, in
the current folder, so that a crash loses one snippet only. It never imports torch unless asked to.
"""

import argparse
import importlib
import importlib.abc
import importlib.util
import json
import math
import signal
import sys
import traceback
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
RECORDED = HERE / "torch_recorded.json"
MAX_VALUES = 64  # a longer tensor is sampled
MAX_REPR = 24  # a longer nested tensor's repr is not compared (snippets of print/ return strings)
TIME_LIMIT_S = 60


def load_snippets(folder=HERE / "snippets"):
    """All snippets in file order: {id: {"source": text, "flags": {name: value}}}."""
    out = {}
    for path in sorted(folder.glob("*.txt")):
        name = None
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("## "):
                name, *flags = line[3:].split()
                if name in out:
                    raise ValueError(f"snippet {name} is there twice")
                pairs = (f.partition("=") for f in flags)
                out[name] = {"source": "", "flags": {k: v or True for k, _, v in pairs}}
            elif name is not None:
                out[name]["source"] += line + "\n"
    for snippet in out.values():
        snippet["source"] = snippet["source"].strip() + "\n"
    return out


# ---- the names a snippet finds


def make_namespace():
    import numpy as np
    import torch
    from torch import nn, optim
    from torch.nn import functional

    def wave(*shape):
        """Fixed numbers without a pattern that could hide a swapped axis."""
        count = math.prod(shape)
        values = np.sin(np.arange(count) * 1.7 + 0.3).astype(np.float32)
        return torch.tensor(values).reshape(shape)

    def fill(module):
        with torch.no_grad():
            for p in module.parameters():
                p.copy_(wave(*p.shape))
        return module

    def run_optim(make):
        """Two parameters, three steps, fixed gradients."""
        params = [nn.Parameter(wave(3)), nn.Parameter(wave(2, 2))]
        optimizer = make(params)
        for step in range(3):
            for p in params:
                p.grad = wave(*p.shape) * (step + 1) - 0.25
            optimizer.step()
        return params

    return {
        "__name__": "snippet",
        "torch": torch,
        "nn": nn,
        "optim": optim,
        "F": functional,
        "np": np,
        "wave": wave,
        "fill": fill,
        "run_optim": run_optim,
    }


# ---- describing a result as JSON


def _number(x):
    if isinstance(x, float) and math.isfinite(x):
        return float(f"{x:.10g}")
    return x


def _sample(flat):
    """All values, or 16 of them and the sums."""
    flat = [_number(x) for x in flat]
    if len(flat) <= MAX_VALUES:
        return flat
    picked = [flat[i * (len(flat) - 1) // 15] for i in range(16)]
    return picked + [_number(float(sum(flat))), _number(float(sum(abs(x) for x in flat)))]


def describe(x):
    import torch

    if isinstance(x, torch.Tensor):
        out = {
            "kind": type(x).__name__,
            "dtype": str(x.dtype),
            "shape": list(x.shape),
            "requires_grad": bool(x.requires_grad),
            "value": _sample(x.detach().reshape(-1).tolist()),
        }
        if x.numel() <= MAX_REPR:
            out["repr"] = repr(x)
        return out
    if isinstance(x, dict):
        items = [[describe(k), describe(v)] for k, v in x.items()]
        return {"kind": type(x).__name__, "items": items}
    if isinstance(x, (list, tuple)):
        return {"kind": type(x).__name__, "items": [describe(v) for v in x]}
    return describe_plain(x)


def describe_plain(x):
    """What is neither a tensor nor a container."""
    import numpy as np

    if x is None or isinstance(x, (bool, int, str)):
        return x
    if isinstance(x, float) and not isinstance(x, np.generic):
        return {"kind": "float", "value": _number(x)}
    if isinstance(x, np.ndarray):
        value = _sample(x.reshape(-1).tolist())
        return {"kind": "ndarray", "dtype": str(x.dtype), "shape": list(x.shape), "value": value}
    if isinstance(x, np.generic):
        return {"kind": "numpy." + x.dtype.name, "value": _number(x.item())}
    return {"kind": type(x).__name__, "repr": repr(x)}


def seed_torch():
    import torch

    torch.manual_seed(0)


def run_snippet(snippet, base, seed=seed_torch, describe=describe):
    """What the snippet gives: {"result": ...} or {"raises": type, "message": text}."""

    def on_alarm(signum, frame):
        raise TimeoutError(f"snippet ran over {TIME_LIMIT_S} s")

    names = dict(base)
    seed()
    signal.signal(signal.SIGALRM, on_alarm)
    signal.alarm(TIME_LIMIT_S)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(snippet["source"], "<snippet>", "exec"), names)
            return {"result": describe(names.get("r"))}
    except Exception as e:
        text = str(e)
        if "full-message" not in snippet["flags"]:
            text = text.partition("\n")[0]
        where = traceback.extract_tb(e.__traceback__)[-1]
        return {
            "raises": type(e).__name__,
            "message": text,
            "at": f"{Path(where.filename).name}:{where.lineno}",
        }
    finally:
        signal.alarm(0)


# ---- comparing


def _close(a, b, rtol, atol):
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(_close(x, y, rtol, atol) for x, y in zip(a, b, strict=True))
    if isinstance(a, bool) or isinstance(b, bool) or isinstance(a, str) or isinstance(b, str):
        return a == b and isinstance(a, bool) == isinstance(b, bool)
    if a is None or b is None:
        return a is b
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    if math.isinf(a) or math.isinf(b):
        return a == b
    return abs(a - b) <= atol + rtol * abs(a)


def _same_text(a, b):
    """Equal, or equal but for the last printed digit of some numbers."""
    if a == b:
        return True
    import re

    number = re.compile(r"(?<![A-Za-z_0-9])-?\d+\.\d*(?:e[+-]?\d+)?")
    if number.sub("#", a) != number.sub("#", b):
        return False
    for x, y in zip(number.findall(a), number.findall(b), strict=True):
        mantissa, _, exponent = x.partition("e")
        digits = len(mantissa.partition(".")[2])
        unit = 10.0 ** (int(exponent or 0) - digits)
        if len(x) != len(y) or abs(float(x) - float(y)) > 1.5 * unit:
            return False
    return True


TOLERANCE = {"torch.float64": 1e-9, "float64": 1e-6, "torch.float16": 2e-3}


def compare(want, got, flags, path="r"):
    """Differences as a list of (field, text); empty when the two agree."""
    rtol = float(flags.get("rtol", 0))
    if "crash" in got:
        return [("crash", got["crash"])]
    if "raises" in want or "raises" in got:
        w, g = want.get("raises"), got.get("raises")
        if w != g:
            text = f"{g}: {got['message']} (at {got['at']})" if g else "no exception"
            return [("raises" if w else "error", f"{w or 'a result'} wanted, got {text}")]
        if "type-only" not in flags and want["message"] != got["message"]:
            return [("message", f"\n  want {want['message']}\n  got  {got['message']}")]
        return []
    return _compare_value(want["result"], got["result"], rtol, path)


def _compare_value(want, got, rtol, path):
    if not isinstance(want, dict) or not isinstance(got, dict):
        same = want == got and type(want) is type(got)
        if isinstance(want, str) and isinstance(got, str):
            field, same = "repr", _same_text(want, got)
        else:
            field = "value"
        return [] if same else [(field, f"{path}:\n  want {want!r}\n  got  {got!r}")]
    diffs = []
    for field in ("kind", "dtype", "shape", "requires_grad"):
        if want.get(field) != got.get(field):
            diffs.append((field, f"{path}: {want.get(field)} wanted, got {got.get(field)}"))
    if diffs:
        return diffs
    if "items" in want:
        if len(want["items"]) != len(got["items"]):
            return [
                ("value", f"{path}: {len(want['items'])} items wanted, got {len(got['items'])}")
            ]
        for i, (w, g) in enumerate(zip(want["items"], got["items"], strict=True)):
            if isinstance(w, list):
                diffs += _compare_value(w[0], g[0], rtol, f"{path}.key{i}")
                diffs += _compare_value(w[1], g[1], rtol, f"{path}[{w[0]!r}]")
            else:
                diffs += _compare_value(w, g, rtol, f"{path}[{i}]")
        return diffs
    if "value" in want:
        limit = rtol or TOLERANCE.get(want.get("dtype"), 2e-5)
        integral = want["kind"] in ("Tensor", "ndarray") and "float" not in want.get("dtype", "")
        tolerance = (0, 0) if integral else (limit, limit / 10)
        if not _close(want["value"], got["value"], *tolerance):
            diffs.append(("value", f"{path}:\n  want {want['value']}\n  got  {got['value']}"))
    if "repr" in want and not _same_text(want["repr"], got.get("repr", "")):
        diffs.append(("repr", f"{path}:\n  want {want['repr']}\n  got  {got.get('repr')}"))
    return diffs


# ---- running under simt


class _AliasFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """`import torch.x` gives simt.torch.x; the fallback while simt.alias is not there."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "torchvision"):
            return importlib.util.spec_from_loader(name, self)
        return None

    def create_module(self, spec):
        module = importlib.import_module("simt." + spec.name)
        self.kept = getattr(self, "kept", {})
        self.kept[spec.name] = (module.__spec__, module.__loader__)
        return module

    def exec_module(self, module):
        for alias, (spec, loader) in list(self.kept.items()):
            if sys.modules.get("simt." + alias) is module:
                module.__spec__, module.__loader__ = spec, loader


def use_simt():
    try:
        alias = importlib.import_module("simt.alias")
    except ImportError:
        sys.meta_path.insert(0, _AliasFinder())
    else:
        alias.install("torch", "torchvision")


def run_all(snippets, ids, base, path, run):
    """Runs the snippets of these ids; each is announced, so that a crash says which it was."""
    with open(path, "a", encoding="utf-8") as out:
        for name in ids:
            out.write(json.dumps({"start": name}) + "\n")
            out.flush()
            line = {"id": name, **run(snippets[name], base)}
            out.write(json.dumps(line, ensure_ascii=False) + "\n")
            out.flush()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--simt", action="store_true")
    parser.add_argument("--after", help="start behind this snippet")
    args = parser.parse_args()
    if args.simt:
        use_simt()
    snippets = load_snippets()
    base = make_namespace()
    ids = list(snippets)
    if args.after:
        ids = ids[ids.index(args.after) + 1 :]
    run_all(snippets, ids, base, args.out, run_snippet)


if __name__ == "__main__":
    main()
