"""Run as a program by test_bad_input.py: calls every public function of a face with odd arguments.

Anything but a Python exception (a signal, a hang) ends this process, which the test sees. The last
call is on stderr.
"""

import inspect
import os
import random
import resource
import sys
import time
import warnings

import numpy as np

SKIP = {
    # run code, read files or the network, or change the process
    *"load save savez savez_compressed savetxt fromfile exec breakpoint".split(),
    *"set_num_threads set_default_dtype compile".split(),
    *"set_grad_enabled set_printoptions manual_seed seed set_rng_state".split(),
}


def odd_values(library, draw):
    """Arguments that are sometimes right and mostly wrong."""
    shapes = [(), (0,), (1,), (5,), (2, 3), (3, 2), (1, 2, 3, 3), (0, 3), (2, 0, 1)]
    kinds = ["float32", "float64", "int64", "uint8", "bool"]

    def some_array():
        shape = draw.choice(shapes)
        data = np.arange(int(np.prod(shape))).reshape(shape).astype(draw.choice(kinds))
        a = library.asarray(data) if hasattr(library, "asarray") else library.from_numpy(data)
        if draw.random() < 0.3:
            a = a.T if a.ndim == 2 else a[..., None] if a.ndim < 3 else a
        return a

    plain = [0, 1, -1, 2, 3, 7, 100, -100, 2**31, -(2**31) - 1, 2**62, 2**63, -(2**63), 10**30]
    if "SIMT_SANITIZE" in os.environ:  # no limit on memory there
        plain.remove(2**31)
    plain += [0.0, -0.5, 1.5, 1e300, float("nan"), float("inf"), True, False, None, "", "abc", "f4"]
    plain += [
        (),
        (1,),
        (0, 1),
        (1, 0),
        (-1,),
        (5, 5),
        (2, 3),
        (0, 0),
        (2**40, 2**40),
        [1, 2],
        [[1]],
    ]
    plain += [[], {}, object(), slice(None), Ellipsis, b"x", 1j, int, np.float32(1), range(3)]
    plain += [np.arange(3), np.array(5), np.array(["x"]), np.arange(6.0).reshape(2, 3)[::-1]]
    return some_array, plain


def argument(some_array, plain, draw):
    chance = draw.random()
    if chance < 0.45:
        return some_array()
    if chance < 0.55:
        return [some_array() for _ in range(draw.randrange(4))]
    return draw.choice(plain)


def callables(library):
    found = []
    for module in library:
        for name in dir(module):
            thing = getattr(module, name, None)
            if name.startswith("_") or name in SKIP or not callable(thing):
                continue
            if inspect.isclass(thing) and issubclass(thing, BaseException):
                continue
            found.append((name, thing))
    return found


def methods(kind):
    names = [n for n in dir(kind) if n not in SKIP]
    double = [n for n in names if n.startswith("__") and n[2:5] not in ("ini", "new", "del", "dea")]
    avoid = {"__class__", "__init_subclass__", "__subclasshook__", "__getattribute__"}
    avoid |= {"__reduce__", "__reduce_ex__", "__setstate__", "__setattr__", "__delattr__"}
    return [n for n in names if not n.startswith("_")] + [n for n in double if n not in avoid]


def main(face, seed, seconds):
    if "SIMT_SANITIZE" not in os.environ:
        resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    if face == "cupy":
        import simt.cupy as library

        modules = [library, library.random, library.linalg]
    else:
        import simt.torch as library
        import simt.torch.nn.functional as F

        modules = [library, F]
    from simt import _core

    warnings.simplefilter("ignore")
    draw = random.Random(seed)
    some_array, plain = odd_values(library, draw)
    functions, names = callables(modules), methods(type(some_array()))
    end, calls, fine = time.monotonic() + seconds, 0, 0
    while time.monotonic() < end:
        args = [
            argument(some_array, plain, draw) for _ in range(draw.choice([0, 1, 1, 2, 2, 2, 3, 4]))
        ]
        if draw.random() < 0.5:
            name, call = draw.choice(functions)
        else:
            name = draw.choice(names)
            try:
                call = getattr(some_array(), name)
            except Exception:
                continue
            if not callable(call):
                continue
        described = [
            f"{type(a).__name__}{tuple(a.shape)}"
            if hasattr(a, "shape")
            else repr(a).replace("\n", " ")[:60]
            for a in args
        ]
        print(f"{calls} {name}({', '.join(described)})", file=sys.stderr, flush=True)
        calls += 1
        try:
            result = call(*args)
            _core.evaluate(None)
            if hasattr(result, "shape") and getattr(result, "size", 0) is not None:
                repr(result)
            fine += 1
        except Exception as e:
            if type(e) is SystemError or "defect of simt" in str(e):
                raise
        finally:
            result = None
    print(calls, fine)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
