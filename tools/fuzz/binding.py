"""Every function and method that a program can reach, with odd objects in every position.

The entries are found in the modules and types themselves. Calls that succeed are remembered, and
later ones put an odd object into one of their positions.
"""

import inspect
import random
import sys

import numpy as np
import odd
from odd import *  # noqa: F403
from odd import _core, cp, torch

NAME = "binding"
PRELUDE = "from odd import *"

MODULES = """
cp cp.random cp.linalg torch F torch.nn.init torch.autograd torch.random torch.optim torch.nn
torch.utils.data cuda cuda.api _core _core.torch
""".split()
INSTANCES = """
cp.ones((2,3)) torch.ones(2,3) leaf(2,3) cuda.device_array((2,3)) cuda.device_array(6)
_core.Generator(1) torch.Generator() torch.float32 torch.Size([2,3]) torch.device('cpu')
(leaf(2)*2).grad_fn scale scale[1,32] declared torch.finfo(torch.float32)
_core.export_buffer(cp.ones(3)) torch.nn.Linear(2,3) torch.optim.SGD([leaf(2)],0.1)
torch.optim.Adam([leaf(2)],0.1) cuda.event() cuda.stream() cuda.get_current_device()
cuda.current_context()
""".split()
# they run code, read files or the network, wait, change the process or the extension itself
SKIP = set(
    """
load save savez savez_compressed savetxt fromfile exec breakpoint compile nanosleep
set_num_threads set_default_dtype set_grad_enabled _set_grad_enabled set_printoptions
set_rng_state extend_type _add_methods ir_run ir_listing memory_ns memory_probe eager
open_ipc_handle profiling detect close reset _exec_ share_memory_ _make_pair __class__
__init_subclass__ __subclasshook__ __getattribute__ __new__ __init__ __del__ __reduce__
__reduce_ex__ __setstate__ __dict__ __dir__ __sizeof__ __dealloc__ __abstractmethods__ __module__
__doc__ __weakref__ __slots__ __annotations__ __delattr__ __setattr__ heap_deny heap_alive
heap_asked
""".split()
)
KEYWORDS = """
dim axis keepdim keepdims dtype out copy device requires_grad size shape other value alpha weight
stream order generator indices axes offset stride unbiased correction reduction ord n k descending
max_version dl_device
""".split()


def is_internal(name):
    return name.startswith("_") and not name.startswith("__")


def entries():
    """Texts with `{}` for the arguments; the first is `self` where there is one."""
    found = []
    for text in MODULES:
        module = eval(text)
        inside = text.startswith("_core")
        for name in dir(module):
            thing = getattr(module, name, None)
            hidden = name.startswith("__") or (is_internal(name) and not inside)
            if hidden or name in SKIP or not callable(thing):
                continue
            if inspect.isclass(thing) and issubclass(thing, BaseException):
                continue
            if str(getattr(thing, "__module__", "")).partition(".")[0] in ("numpy", "builtins"):
                continue  # theirs
            if name.startswith(("ir_", "vm_", "heap_", "kernel_")) and inside:
                continue
            found.append((f"{text}.{name}({{}})", None))
    for text in INSTANCES:
        of = eval(text)
        for name in dir(type(of)):
            if name in SKIP or is_internal(name):
                continue
            thing = inspect.getattr_static(type(of), name)
            if inspect.isgetsetdescriptor(thing) or isinstance(thing, property):
                found.append((f"getset({{}}, {name!r})", text))
            elif callable(getattr(type(of), name, None)):
                found.append((f"{{}}.{name}({{}})", text))
                found.append((f"type({text}).{name}({{}})", text))
    for text in (
        "scale[{}]",
        "scale[1,8]({})",
        "declared[1,8]({})",
        "scale.forall({})(cp.ones(2),1)",
    ):
        found.append((text, None))
    return found


def array_text(draw):
    if draw.random() < 0.4:
        return draw.choice(odd.ARRAYS)
    shape, kind = draw.choice(odd.SHAPES), draw.choice(odd.KINDS)
    made = f"np.arange({int(np.prod(shape))}).reshape({shape}).astype({kind!r})"
    face = draw.choice(["cp.asarray({})", "torch.from_numpy({})", "torch.from_numpy({})", "{}"])
    return face.format(made)


def value_text(draw):
    chance = draw.random()
    if chance < 0.42:
        return array_text(draw)
    if chance < 0.5:
        return "[" + ", ".join(array_text(draw) for _ in range(draw.randrange(4))) + "]"
    return draw.choice(odd.OBJECTS)


class Part:
    def __init__(self, seed, only=""):
        self.draw = random.Random(seed)
        self.entries = [e for e in entries() if only in e[0]]
        self.known = {}  # entry -> arguments of calls that succeeded
        self.at = 0
        self.draw.shuffle(self.entries)

    def text(self):
        """The next program: assignments, and the call."""
        draw = self.draw
        self.at += 1
        entry, own = self.entries[self.at % len(self.entries)]
        if draw.random() < 0.3:
            entry, own = draw.choice(self.entries)
        self.entry = entry
        known = self.known.get(entry)
        if known and draw.random() < 0.6:
            args = list(draw.choice(known))
            first = 1 if entry.startswith("{}") else 0
            if len(args) > first:
                args[draw.randrange(first, len(args))] = value_text(draw)
        else:
            args = [value_text(draw) for _ in range(draw.choice([0, 1, 1, 2, 2, 2, 3, 4]))]
            if (
                own is not None
            ):  # a method is asked of its own kind, or of its type with another self
                same = entry.startswith("{}") or draw.random() < 0.85
                args.insert(0, own if same else value_text(draw))
        self.args = args
        lines = [f"x{i} = {text}" for i, text in enumerate(args)]
        names = [f"x{i}" for i in range(len(args))]
        if len(args) > 1 and draw.random() < 0.08:  # what is read changes what is called
            kind = draw.choice(["reshaped(x0)", "replaced(x0)", "reshaped(x0, (3, 2))"])
            lines.append(f"x0, x{len(args) - 1} = {kind}")
        for i in range(1 if own else 0, len(names)):
            if draw.random() < 0.12:
                names[i] = f"{draw.choice(KEYWORDS)}={names[i]}"
        names.sort(key=lambda name: "=" in name)
        if entry.startswith("{}"):
            first = names.pop(0) if names and "=" not in names[0] else "None"
            call = entry.format(first, ", ".join(names))
        elif entry.startswith("getset"):
            call = entry.format(", ".join(names[:1]))
            if len(names) > 1 and draw.random() < 0.5:
                call = call[:-1] + f", {names[1].split('=')[-1]})"
        else:
            call = entry.format(", ".join(names))
        return "\n".join([*lines, f"look({call})"])

    def worked(self):
        known = self.known.setdefault(self.entry, [])
        if len(known) < 8:
            known.append(self.args)
        else:
            known[self.draw.randrange(8)] = self.args


def getset(o, name, *value):
    if value:
        if value[0] is None:
            return delattr(o, name)
        return setattr(o, name, value[0])
    return getattr(o, name)


def look(result):
    """Looks at what came out, as a program would."""
    _core.evaluate(None)
    if isinstance(result, (cp.ndarray, torch.Tensor)) or type(result) is _core.DeviceNDArray:
        repr(result)
        if getattr(result, "size", 0) is not None and len(repr(getattr(result, "shape", ""))) < 300:
            result.tolist() if hasattr(result, "tolist") and count(result) < 10000 else None
    elif isinstance(result, (tuple, list)):
        for part in result[:4]:
            look(part)


def count(a):
    return int(np.prod([min(n, 10**6) for n in a.shape], dtype=float))


NAMESPACE = {name: value for name, value in vars(odd).items() if not name.startswith("__")}
NAMESPACE |= {"getset": getset, "look": look}


def run(text):
    """True: it worked; False: an exception that a program can have. Others are raised."""
    try:
        exec(compile(text, "<fuzz>", "exec"), dict(NAMESPACE))
        return True
    except Exception as e:
        if type(e) is SystemError or "defect of simt" in str(e):
            raise
        return False


def smaller(text):
    """Programs with less in them."""
    lines = text.split("\n")
    values = ["None", "1", "cp.ones(2)", "torch.ones(2)", "()", "np.ones(2)"]
    for i, line in enumerate(lines[:-1]):
        name, _, value = line.partition(" = ")
        rest = lines[:i] + lines[i + 1 :]
        yield "\n".join([*rest[:-1], drop(rest[-1], name)])
        for simple in values:
            if len(simple) < len(value):
                yield "\n".join([*lines[:i], f"{name} = {simple}", *lines[i + 1 :]])


def drop(call, name):
    for text in (f", {name}", f"{name}, ", name):
        call = call.replace(text, "", 1) if text in call else call
    return call


if __name__ == "__main__":
    print(len(entries()), "entries", file=sys.stderr)
