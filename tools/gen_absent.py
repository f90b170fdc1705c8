"""Writes src/binding/common/absent.def: the public names of the classes whose faces we are.

    gen_absent.py --torch TORCH.whl --cupy PYTHON --numba PYTHON

torch's are read from its wheel (pip download --no-deps torch): sources and stubs are parsed,
nothing is imported. The others' classes are asked in an interpreter that has cupy-cuda12x or
numba-cuda. A class whose library is not given keeps the row that is there.
"""

import argparse
import ast
import json
import os
import re
import subprocess
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FILE = os.path.join(ROOT, "src", "binding", "common", "absent.def")

# Our name of the class -> (file in the wheel, class) of each that it is made of.
TORCH = {
    "torch.Tensor": (("torch/_C/__init__.pyi", "TensorBase"), ("torch/_tensor.py", "Tensor")),
    "torch.nn.Module": (("torch/nn/modules/module.py", "Module"),),
    "torch.nn.Sequential": (("torch/nn/modules/container.py", "Sequential"),),
    "torch.nn.ModuleList": (("torch/nn/modules/container.py", "ModuleList"),),
    "torch.nn.ModuleDict": (("torch/nn/modules/container.py", "ModuleDict"),),
    "torch.optim.Optimizer": (("torch/optim/optimizer.py", "Optimizer"),),
    "torch.optim.lr_scheduler.LRScheduler": (("torch/optim/lr_scheduler.py", "LRScheduler"),),
    "torch.utils.data.DataLoader": (("torch/utils/data/dataloader.py", "DataLoader"),),
    "torch.Generator": (("torch/_C/__init__.pyi", "Generator"),),
    "torch.Size": (("torch/_C/__init__.pyi", "Size"),),
    "torch.dtype": (("torch/_C/__init__.pyi", "dtype"),),
    "torch.device": (("torch/_C/__init__.pyi", "device"),),
}
CUPY = {
    "cupy.ndarray": "cupy:ndarray",
    "cupy.cuda.Stream": "cupy.cuda:Stream",
    "cupy.cuda.Event": "cupy.cuda:Event",
    "cupy.cuda.Device": "cupy.cuda:Device",
}
NUMBA = {
    "numba.cuda.DeviceNDArray": "numba.cuda.cudadrv.devicearray:DeviceNDArray",
    "numba.cuda.Dispatcher": "numba.cuda.dispatcher:CUDADispatcher",
    "numba.cuda.Stream": "numba.cuda.cudadrv.driver:Stream",
    "numba.cuda.Event": "numba.cuda.cudadrv.driver:Event",
}
# What a subclass defines: the base has it to say so.
ABSTRACT = {"forward", "T_destination", "OptimizerPreHook", "OptimizerPostHook"}
ASK = """
import importlib, json, sys
out = {}
for name, place in json.loads(sys.argv[1]).items():
    module, _, cls = place.partition(":")
    found = getattr(importlib.import_module(module), cls)
    out[name] = [n for n in dir(found) if not hasattr(object, n)]
print(json.dumps(out))
"""


def of_class(tree, name):
    """The names that a class's body and its methods' `self.x = ...` define."""
    names = set()
    for cls in ast.walk(tree):
        if not isinstance(cls, ast.ClassDef) or cls.name != name:
            continue
        for part in cls.body:
            if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)):
                names.add(part.name)
            elif isinstance(part, ast.Assign):
                names.update(t.id for t in part.targets if isinstance(t, ast.Name))
            elif isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                names.add(part.target.id)
    return names


def from_wheel(wheel, classes):
    out, trees = {}, {}
    with zipfile.ZipFile(wheel) as z:
        for ours, parts in classes.items():
            names = set()
            for path, name in parts:
                if path not in trees:
                    trees[path] = ast.parse(z.read(path).decode())
                found = of_class(trees[path], name)
                if not found:
                    raise SystemExit(f"{wheel}: no class {name} in {path}")
                names |= found
            out[ours] = names
    return out


def ask(python, classes):
    command = [python, "-W", "ignore", "-c", ASK, json.dumps(classes)]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def known():
    if not os.path.exists(FILE):
        return {}
    with open(FILE, encoding="utf-8") as f:
        rows = re.findall(r'^CLASS\("([\w.]+)",((?:\s*"[^"]*")+)\)', f.read(), re.M)
    return {name: set("".join(re.findall(r'"([^"]*)"', text)).split()) for name, text in rows}


def lines(names):
    out, line = [], ""
    for name in names:
        if len(line) + len(name) > 88:
            out.append(line)
            line = ""
        line += name + " "
    return [*out, line.rstrip()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--torch", help="a wheel")
    parser.add_argument("--cupy", help="an interpreter that has it")
    parser.add_argument("--numba", help="an interpreter that has it")
    args = parser.parse_args()
    rows = known()
    if args.torch:
        rows.update(from_wheel(args.torch, TORCH))
    for python, classes in ((args.cupy, CUPY), (args.numba, NUMBA)):
        if python:
            rows.update(ask(python, classes))
    with open(FILE, "w", encoding="utf-8") as f:
        f.write(
            "/* The public names of classes whose faces we are. Made by tools/gen_absent.py; not "
            "edited by hand.\n *\n * CLASS(ours, names) */\n"
        )
        for name, found in sorted(rows.items()):
            public = sorted(n for n in found if not n.startswith("_") and n not in ABSTRACT)
            text = "\n".join(f'      "{line}"' for line in lines(public))
            f.write(f'CLASS("{name}",\n{text})\n')


if __name__ == "__main__":
    main()
