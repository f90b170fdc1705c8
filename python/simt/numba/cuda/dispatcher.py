"""cuda.jit and what it makes: the parts of a kernel that are not on the way of a launch.

The launch itself, kernel[grid, block](...), is in C (simt._core.Dispatcher).
"""

from simt import _core
from simt._missing import module_hooks as _module_hooks

from ..core import types

_OPTIONS = (
    *("inline", "link", "debug", "opt", "lineinfo", "cache", "fastmath", "fma", "max_registers"),
    *("boundscheck", "extensions", "forceinline", "launch_bounds", "nopython", "cc", "nrt"),
    "shared_memory_carveout",
)

_MOST_SPECIALIZED = 128  # dispatchers that specialize() gives again

_NO_CONFIGURATION = """
Kernel launch configuration was not specified. Use the syntax:

kernel_function[blockspergrid, threadsperblock](arg0, arg1, ..., argn)

See https://numba.readthedocs.io/en/stable/cuda/kernels.html#kernel-invocation for help.
"""


def jit(func_or_sig=None, device=False, **options):
    """Makes a kernel (or, with device=True, a function for kernels) of a Python function.

    With a signature, or a list of them, it is compiled at once and takes no other types. Options as
    Numba's; those about optimisation change nothing in the results. fma=False: no fused
    multiply-adds. boundscheck=False: indices are not checked. debug=True: a division by zero raises
    ZeroDivisionError (else it gives inf or nan, and 0 for integers).
    """
    _check_options(device, options)
    if isinstance(func_or_sig, list) or types.is_signature(func_or_sig):
        one = not isinstance(func_or_sig, list)
        signatures = [func_or_sig] if one else func_or_sig

        def with_signatures(func):
            made = CUDADispatcher(func, {"device": device, **options})
            for signature in signatures:
                made._add_signature(signature)
            made._specialized = one
            return made

        return with_signatures
    if func_or_sig is None:
        return lambda func: jit(func, device=device, **options)
    if isinstance(func_or_sig, CUDADispatcher):
        raise TypeError(f"{func_or_sig.__name__} is a kernel or device function already")
    return CUDADispatcher(func_or_sig, {"device": device, **options})


def _check_options(device, options):
    for name in options:
        if name in ("argtypes", "restype", "bind"):
            raise TypeError(
                f"cuda.jit: the option {name} is not there any more: give a signature instead"
            )
        if name not in _OPTIONS:
            raise TypeError(
                f"cuda.jit: unrecognized option '{name}'; known options are device, "
                + ", ".join(_OPTIONS)
            )
    _check_carveout(options.get("shared_memory_carveout"))
    if options.get("link"):
        if device:
            raise ValueError("link keyword invalid for device function")
        raise NotImplementedError("cuda.jit: linking PTX or CUDA C (link=) is not in simt yet")
    if options.get("extensions"):
        raise NotImplementedError("cuda.jit: extensions= is not in simt yet")


def _check_carveout(value):
    """How a GPU divides its cache: no CPU has that, but a wrong value is an error everywhere."""
    named = isinstance(value, str) and value.lower() in ("default", "maxl1", "maxshared")
    number = isinstance(value, int) and not isinstance(value, bool) and -1 <= value <= 100
    if value is not None and not named and not number:
        raise ValueError(
            "shared_memory_carveout must be an integer of -1 to 100, 'MaxL1', 'MaxShared' or "
            f"'default', not {value!r}"
        )


class CUDADispatcher(_core.Dispatcher):
    """A kernel or a device function."""

    def __init__(self, func, options):
        self.__name__ = func.__name__
        self.__qualname__ = func.__qualname__
        self.__module__ = func.__module__
        self.__doc__ = func.__doc__
        self.__wrapped__ = func
        self._specialized = False
        self._by_types = {}

    def __repr__(self):
        return f"<CUDADispatcher {self.__qualname__}>"

    def __call__(self, *args, **kwargs):
        if self._is_device:
            raise ValueError(
                f"{self.__name__} is a device function: it is called from kernels, not from the "
                "host (its Python function is .py_func)"
            )
        raise ValueError(_NO_CONFIGURATION)

    def __reduce__(self):
        from ._pickle import reduce

        return reduce(self)

    def _types_of(self, signature):
        args, result = types.normalize_signature(signature)
        if result is not None and result != types.void and not self._is_device:
            raise TypeError("CUDA kernel must have void return type.")
        return args, result

    def _add_signature(self, signature):
        args, result = self._types_of(signature)
        result = types.to_bytes((result,)) if self._is_device and result is not None else None
        self._declare(types.to_bytes(args), result)

    def configure(self, griddim, blockdim, stream=0, sharedmem=0):
        """As kernel[griddim, blockdim, stream, sharedmem]."""
        return self[griddim, blockdim, stream, sharedmem]

    def forall(self, ntasks, tpb=0, stream=0, sharedmem=0):
        """A launch of at least ntasks threads in a grid of one dimension."""
        return ForAll(self, ntasks, tpb, stream, sharedmem)

    def specialize(self, *args):
        """This kernel for the types of args, and no others."""
        if self._specialized:
            raise RuntimeError("Dispatcher already specialized")
        key = b"".join(
            a._bytes() if isinstance(a, types.Type) else self._signature_of(a) for a in args
        )
        made = self._by_types.get(key)
        if made is None:
            if len(self._by_types) >= _MOST_SPECIALIZED:
                self._by_types.pop(next(iter(self._by_types)), None)
            made = self._by_types[key] = CUDADispatcher(self.py_func, self.targetoptions)
            made._declare(key)
            made._specialized = True
        return made

    def compile(self, sig):
        """Compiles for a signature (types or a string); other types stay possible."""
        self._compile(types.to_bytes(self._types_of(sig)[0]))

    def recompile(self):
        """Forgets what was compiled: globals are read anew at the next launch."""
        self._forget()

    @property
    def specialized(self):
        return self._specialized

    @property
    def signatures(self):
        """The argument types that it was compiled for."""
        return list(self.overloads)

    nopython_signatures = signatures

    @property
    def overloads(self):
        """Argument types -> compiled kernel."""
        return {
            types.from_bytes(signature): CompiledKernel(self, signature, block, *memory)
            for signature, block, memory in self._compiled()
        }

    def _per_signature(self, signature, value):
        if signature is not None:
            args, _ = types.normalize_signature(signature)
            return value(self.overloads[args])
        if self._specialized:
            return value(next(iter(self.overloads.values())))
        return {sig: value(kernel) for sig, kernel in self.overloads.items()}

    def get_shared_mem_per_block(self, signature=None):
        """Bytes of static shared memory."""
        return self._per_signature(signature, lambda k: k.shared_mem_per_block)

    def get_max_threads_per_block(self, signature=None):
        return self._per_signature(signature, lambda k: k.max_threads_per_block)

    def get_const_mem_size(self, signature=None):
        """Bytes of constant arrays."""
        return self._per_signature(signature, lambda k: k.const_mem_size)

    def get_local_mem_per_thread(self, signature=None):
        """Bytes of a thread's local arrays."""
        return self._per_signature(signature, lambda k: k.local_mem_per_thread)

    def get_regs_per_thread(self, signature=None):
        """Registers a thread: the CPU device has no such limit, so this is 0."""
        return self._per_signature(signature, lambda k: k.regs_per_thread)

    def inspect_types(self, file=None):
        raise NotImplementedError(
            "inspect_types is not in simt yet; nearest is inspect_llvm, which shows simt's own IR"
        )

    def inspect_llvm(self, signature=None):
        """The kernel in simt's own IR (docs/ir.md): there is no LLVM in simt."""
        return self._per_signature(signature, lambda k: k.inspect_llvm())

    def inspect_asm(self, signature=None):
        """The kernel as simt's back end runs it: on the CPU no PTX is made."""
        return self._per_signature(signature, lambda k: k.inspect_asm())

    def inspect_sass(self, signature=None):
        raise NotImplementedError("inspect_sass is not in simt yet; nearest is inspect_asm")


class CompiledKernel:
    """A kernel for one signature, as .overloads shows it."""

    max_threads_per_block = 1024
    regs_per_thread = 0

    def __init__(self, dispatcher, signature, block, shared, local, const):
        self._dispatcher, self._bytes = dispatcher, signature
        self._block = block if block[0] else (256, 1, 1)  # declared, not yet launched
        self.signature = types.from_bytes(signature)
        self.shared_mem_per_block = shared
        self.local_mem_per_thread, self.const_mem_size = local, const

    def __repr__(self):
        return f"<{self._dispatcher.__name__}{self.signature}>"

    def inspect_llvm(self):
        return self._dispatcher._listing(self._bytes, self._block, True)

    def inspect_asm(self):
        return self._dispatcher._listing(self._bytes, self._block, False)

    def max_cooperative_grid_blocks(self, blockdim, dynsmemsize=0):
        """Blocks that may meet in grid.sync()."""
        return 1024


class ForAll:
    """kernel.forall(n): call it with the arguments."""

    def __init__(self, dispatcher, ntasks, tpb, stream, sharedmem):
        if ntasks < 0:
            raise ValueError(f"Can't create ForAll with negative task count: {ntasks}")
        self.dispatcher, self.ntasks = dispatcher, ntasks
        self.thread_per_block = tpb or 256
        self.stream, self.sharedmem = stream, sharedmem

    def __call__(self, *args):
        if self.ntasks == 0:
            return
        threads = self.thread_per_block
        blocks = (self.ntasks + threads - 1) // threads
        self.dispatcher[blocks, threads, self.stream, self.sharedmem](*args)


Dispatcher = CUDADispatcher
__getattr__, __dir__ = _module_hooks(globals())


_core._absent(CUDADispatcher, "numba.cuda.Dispatcher")
