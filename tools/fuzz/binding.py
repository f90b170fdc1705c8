"""Every function and method that a program can reach, with odd objects in every position.

The entries are found in the modules and types themselves. Calls that succeed are remembered, and
later ones put an odd object into one of their positions.
"""

import inspect
import sys

import numpy as np
import odd
from common import Part
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
cuda.current_context() added summed rows records() closure closure[1,8]
""".split()
OFTEN = """
scale[{}] scale[1,8]({}) declared[1,8]({}) scale.forall({})(cp.ones(2),1) torch.tensor({})
torch.as_tensor({}) torch.from_numpy({}) torch.from_dlpack({}) torch.stack({}) torch.cat({})
torch.zeros({}) torch.full({}) torch.arange({}) torch.where({}) torch.add({}) cp.array({})
cp.asarray({}) cp.concatenate({}) cp.zeros({}) cp.full({}) cp.arange({}) cp.add({}) cp.exp({})
cp.where({}) cuda.to_device({}) cuda.as_cuda_array({}) cuda.device_array({}) _core.from_dlpack({})
np.from_dlpack({}) torch.ones(2,3).__getitem__({}) torch.ones(2,3).__setitem__({})
cp.ones((2,3)).__getitem__({}) cp.ones((2,3)).__setitem__({})
cuda.device_array((2,3)).__getitem__({}) cuda.device_array((2,3)).__setitem__({})
leaf(2,3).__getitem__({}) F.conv2d({}) F.cross_entropy({}) F.linear({}) F.max_pool2d({})
F.layer_norm({}) F.batch_norm({}) closure[1,8]({}) closure[1,8](cp.ones(2),{}) added({}) summed({})
added.reduce({}) summed.reduce({}) added.at({}) added.reduceat({}) added.outer({}) rows({})
records().__getitem__({}) records().__setitem__({}) scale[1,8](records(),{}) cp.array([1],order={})
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
    found += [(text, None) for text in OFTEN for _ in range(12)]
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


def drop(call, name):
    for text in (f", {name}", f"{name}, ", name):
        call = call.replace(text, "", 1) if text in call else call
    return call


class Binding(Part):
    def begin(self, seed, only=""):
        super().begin(seed, only)
        self.entries = [e for e in entries() if only in e[0]]
        self.known = {}  # entry -> arguments of calls that succeeded
        self.at = 0
        self.draw.shuffle(self.entries)

    def entry(self):
        self.at += 1
        if self.draw.random() < 0.3:
            return self.draw.choice(self.entries)
        return self.entries[self.at % len(self.entries)]

    def arguments(self, entry, own):
        """Texts: of a call that succeeded, one of them another; or any."""
        draw, known = self.draw, self.known.get(entry)
        asked = entry.startswith("{}")  # a method is asked of its own kind only
        if known and draw.random() < 0.6:
            args = list(draw.choice(known))
            if len(args) > asked:
                args[draw.randrange(asked, len(args))] = value_text(draw)
            return args
        args = [value_text(draw) for _ in range(draw.choice([0, 1, 1, 2, 2, 2, 3, 4]))]
        if own is not None:
            args.insert(0, own if asked or draw.random() < 0.85 else value_text(draw))
        return args

    def call(self, entry, own, names):
        """The call's text; some arguments by keyword."""
        draw = self.draw
        for i in range(1 if own else 0, len(names)):
            if draw.random() < 0.12:
                names[i] = f"{draw.choice(KEYWORDS)}={names[i]}"
        names.sort(key=lambda name: "=" in name)
        if entry.startswith("{}"):
            return entry.format(names[0] if names else "None", ", ".join(names[1:]))
        if not entry.startswith("getset"):
            return entry.format(", ".join(names))
        call = entry.format(names[0] if names else "None")
        if len(names) > 1 and draw.random() < 0.5:
            call = call[:-1] + f", {names[1].split('=')[-1]})"
        return call

    def text(self):
        """The next program: assignments, and the call; sometimes a second one on what it gave."""
        draw = self.draw
        entry, own = self.entry()
        args = self.arguments(entry, own)
        self.last = (entry, args)
        lines = [f"x{i} = {text}" for i, text in enumerate(args)]
        if len(args) > 1 and draw.random() < 0.08:  # what is read changes what is called
            kind = draw.choice(["reshaped(x0)", "replaced(x0)", "reshaped(x0, (3, 2))"])
            lines.append(f"x0, x{len(args) - 1} = {kind}")
        call = self.call(entry, own, [f"x{i}" for i in range(len(args))])
        if draw.random() < 0.85:
            return "\n".join([*lines, f"look({call})"])
        second, own = self.entry()
        if second.startswith("{}"):  # as a function of its type's method: r may be of another
            second = second.replace("{}", f"type({own})", 1)
        more = [f"y{i}" for i in range(draw.randrange(3))]
        lines += [f"{name} = {value_text(draw)}" for name in more]
        return "\n".join([*lines, f"r = {call}", f"look({self.call(second, own, ['r', *more])})"])

    def worked(self):
        entry, args = self.last
        known = self.known.setdefault(entry, [])
        if len(known) < 8:
            known.append(args)
        else:
            known[self.draw.randrange(8)] = args

    def run(self, text):
        try:
            exec(compile(text, "<fuzz>", "exec"), dict(self.names))
            return True
        except Exception as e:
            if type(e) is SystemError or "defect of simt" in str(e):
                raise
            return False

    def smaller(self, text):
        lines = text.split("\n")
        values = ["None", "1", "cp.ones(2)", "torch.ones(2)", "()", "np.ones(2)"]
        for i, line in enumerate(lines[:-1]):
            name, _, value = line.partition(" = ")
            rest = lines[:i] + lines[i + 1 :]
            yield "\n".join([*rest[:-1], drop(rest[-1], name)])
            for simple in values:
                if len(simple) < len(value):
                    yield "\n".join([*lines[:i], f"{name} = {simple}", *lines[i + 1 :]])


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
        if isinstance(result, torch.Tensor) and result.requires_grad and count(result) < 10000:
            result.sum().backward()
    elif isinstance(result, (tuple, list)):
        for part in result[:4]:
            look(part)


def count(a):
    return int(np.prod([min(n, 10**6) for n in a.shape], dtype=float))


NAMESPACE = {name: value for name, value in vars(odd).items() if not name.startswith("__")}
NAMESPACE |= {"getset": getset, "look": look}
PART = Binding(None, NAMESPACE)

if __name__ == "__main__":
    print(len(entries()), "entries", file=sys.stderr)
