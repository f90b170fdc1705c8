"""Checks the include rules of the C sources; fails with one line per offence.

An include points only to a lower layer or inside its own folder. Folders of one layer never include
each other: they meet in kernel/, ir/ and base/. Inside a folder, sub-folders see their parents (and
parents their children), and siblings only as SUBLAYERS orders them. Python.h appears only in
src/binding; CUDA headers nowhere. Memory comes from base/heap.h only, which can count it and let it
fail. Exceptions are taken away by the functions of binding/common/binding.h only, which say what
must stay (MemoryError), and what takes them away inside of Python is not called. The address of an
array's memory is asked for in declared files only: on a GPU nobody can follow it.

    check_layers.py [ROOT]
"""

import os
import re
import sys

# Folder of src/ -> layer. An include may point only to a smaller number or to the same folder.
LAYERS = {
    "base": 0,
    "ir": 1,
    "devlib": 2,  # device math as source and IR text: above ir, below all who evaluate it
    "kernel": 2,  # what is known of a kernel, for those who make, change, compile and launch it
    "frontend": 3,
    "graph": 3,
    "opt": 3,
    "backend": 3,
    "device": 3,
    "runtime": 4,
    "array": 5,
    "softcuda": 5,
    "grad": 6,
    "binding": 7,
}
# The same for folders inside a folder; those that are not named never include each other.
SUBLAYERS = {
    "binding/common": 0,
    "binding/array": 1,
    "binding/tensor": 1,
    "binding/kernel": 2,
}
PYTHON_ONLY_IN = "binding"
PYTHON_HEADERS = re.compile(r"(Python|structmember|pythread)\.h$|^numpy/")
CUDA_HEADERS = re.compile(
    r"^(cuda|cuda_runtime|cuda_runtime_api|cublas\w*|cudnn\w*|cufft\w*|nvrtc|nvml)\.h$"
)
HEAP = re.compile(
    r"(?<![\w.>*])(malloc|calloc|realloc|free|strn?dup|posix_memalign|aligned_alloc|mmap|munmap"
    r"|PyMem_(?:Raw)?(?:Malloc|Calloc|Realloc|Free|New|Resize|Del))\("
)
HEAP_ONLY_IN = "src/base/heap.c"
# What loses a MemoryError: who gets "no" from it takes it for an answer.
SWALLOWS = re.compile(
    r"(?<!\w)(PyErr_Clear|PyObject_HasAttr(?:String)?|PyDict_GetItem(?:String)?"
    r"|PyMapping_HasKey(?:String)?|PySys_GetObject)\("
)
SWALLOWS_ONLY_IN = "src/binding/common/binding.h"
# Addresses of arrays' memory: numbers that kernels and foreign code get, which the host may follow
# only where the memory is its own. Everything else looks through a window.
ADDRESS = re.compile(r"(?<!\w)(array_data)\(")
ADDRESS_ONLY_IN = (
    "src/array/array.h",
    "src/array/storage.c",
    "src/array/host.c",  # the windows themselves
    "src/array/adam.c",  # a library step of the CPU
    "src/array/capture_run.c",  # of kernels; gathers rows where the memory is the host's
    "src/binding/array/functions.c",  # ndarray.data.ptr
    "src/binding/common/exchange.c",  # DLPack, buffers: of array_to_host's array
    "src/binding/kernel/args.c",  # what kernels get
    "src/binding/tensor/facts.c",  # Tensor.data_ptr()
)
RESERVED = [  # (calls, the files that have them, what others use)
    (ADDRESS, ADDRESS_ONLY_IN, "array_open, array_to_host (array/array.h)"),
    (HEAP, HEAP_ONLY_IN, "base/heap.h"),
    (SWALLOWS, SWALLOWS_ONLY_IN, "binding_forgive, binding_attribute and their kin"),
]
SOURCE_ENDS = (".c", ".h", ".def", ".inc", ".S")
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)', re.M)


def source_files(src):
    """All C sources below src, sorted."""
    found = []
    for folder, dirs, names in os.walk(src):
        dirs.sort()
        found += [os.path.join(folder, n) for n in sorted(names) if n.endswith(SOURCE_ENDS)]
    return found


def resolve(root, path, name):
    """The file an include names, or None; looked for beside path, in src, root and include."""
    for base in (os.path.dirname(path), f"{root}/src", root, f"{root}/include"):
        full = os.path.normpath(os.path.join(base, name))
        if os.path.isfile(full):
            return full
    return None


def related(a, b):
    """True when one folder path is the other or lies below it."""
    return a == b or a.startswith(b + "/") or b.startswith(a + "/")


def offence(root, path, name, quoted):
    """Why this include is wrong, or None."""
    src = f"{root}/src"
    here = os.path.relpath(os.path.dirname(path), src).replace(os.sep, "/")
    top = here.split("/")[0]
    if top not in LAYERS:
        return f"folder {top} is not in the layer table of tools/check_layers.py"
    if PYTHON_HEADERS.search(name):
        return None if top == PYTHON_ONLY_IN else "Python's headers belong in src/binding only"
    if CUDA_HEADERS.search(name):
        return "no CUDA header anywhere: entry points come from base/cuda_api.def"
    if not quoted:
        return None
    full = resolve(root, path, name)
    if full is None:
        return "no such file"
    if not full.startswith(src + os.sep):
        return None  # include/simt.h: public, and itself checked to include nothing of ours
    there = os.path.relpath(os.path.dirname(full), src).replace(os.sep, "/")
    other = there.split("/")[0]
    if other == top:
        if related(here, there) or SUBLAYERS.get(there, 9) < SUBLAYERS.get(here, 0):
            return None
        return f"{here} and {there} are siblings"
    if other not in LAYERS:
        return f"folder {other} is not in the layer table of tools/check_layers.py"
    if LAYERS[other] < LAYERS[top]:
        return None
    kind = "the same" if LAYERS[other] == LAYERS[top] else "a higher"
    return f"{other} is in {kind} layer (layer {LAYERS[other]}, {top} is in {LAYERS[top]})"


def strip_comments(text):
    """The text without /* */ comments, line numbers kept."""
    return re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group().count("\n"), text, flags=re.S)


def check(root):
    """All offences as printable lines."""
    problems = []
    files = source_files(f"{root}/src")
    for path in files:
        with open(path, encoding="utf-8") as f:
            text = strip_comments(f.read())
        for match in INCLUDE.finditer(text):
            name = match.group(1) or match.group(2)
            why = offence(root, path, name, match.group(1) is not None)
            if why:
                line = text.count("\n", 0, match.start(1 if match.group(1) else 2)) + 1
                problems.append(f"{os.path.relpath(path, root)}:{line}: includes {name}: {why}")
        for pattern, only_in, instead in RESERVED:
            for match in pattern.finditer(text) if not path.endswith(only_in) else ():
                line = text.count("\n", 0, match.start()) + 1
                problems.append(
                    f"{os.path.relpath(path, root)}:{line}: {match.group(1)}: use {instead}"
                )
    public = f"{root}/include/simt.h"
    if os.path.exists(public):
        with open(public, encoding="utf-8") as f:
            for match in INCLUDE.finditer(strip_comments(f.read())):
                if match.group(1) or PYTHON_HEADERS.search(match.group(2)):
                    problems.append(f"include/simt.h: includes {match.group(1) or match.group(2)}")
    return files, problems


def main(argv):
    root = os.path.abspath(argv[1]) if len(argv) > 1 else os.path.dirname(os.path.dirname(__file__))
    files, problems = check(os.path.abspath(root))
    for line in problems:
        print(line)
    print(f"layers: {len(files)} files, {len(problems)} offences")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
