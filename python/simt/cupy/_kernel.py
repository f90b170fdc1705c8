"""Kernels in CUDA C: RawKernel and RawModule."""

from simt import _core

_IGNORED = (
    "-std", "--std", "-arch", "--gpu-architecture", "-lineinfo", "--generate-line-info", "-O",
    "-I", "--include-path", "-use_fast_math", "--use_fast_math", "-G", "--device-debug",
    "-default-device", "--default-device", "-fmad", "--fmad", "-ftz", "--ftz", "-prec-div",
    "--prec-div", "-prec-sqrt", "--prec-sqrt", "-maxrregcount", "--maxrregcount", "-w", "-rdc",
    "--relocatable-device-code",
)  # fmt: skip
_WITH_VALUE = ("-D", "-I", "-arch", "-std")


def _defines(options):
    """NAME or NAME=TEXT of each -D; an option that no compiler of CUDA C has is an error."""
    from .cuda.compiler import CompileException

    found, rest = [], list(options)
    while rest:
        option = rest.pop(0)
        if option in _WITH_VALUE and rest:
            option += rest.pop(0)
        for prefix in ("-D", "--define-macro="):
            if option.startswith(prefix):
                found.append(option[len(prefix) :])
                break
        else:
            if not option.startswith(_IGNORED):
                raise CompileException(f"unrecognized option {option}", "", "", options, "nvrtc")
    return tuple(found)


def _read(code, options, backend):
    """The text, read: its file's name in messages is <CUDA C ...>."""
    from .cuda.compiler import CompileException

    defines = _defines(options)
    import linecache
    import zlib

    name = f"<CUDA C {zlib.crc32(code.encode()):08x}>"

    linecache.cache[name] = (len(code), None, code.splitlines(True), name)
    try:
        return _core.CudaUnit(name, code, defines)
    except RuntimeError as e:
        raise CompileException(str(e), code, name, options, backend) from None


def _check(code, options, backend):
    if not isinstance(code, str):
        raise TypeError(f"code must be a str, not {type(code).__name__}")
    if isinstance(options, (str, bytes)) or not all(isinstance(o, str) for o in options):
        raise TypeError(f"options must be a tuple of str, not {options!r}")
    if backend not in ("nvrtc", "nvcc"):
        raise ValueError(f"backend must be 'nvrtc' or 'nvcc', not {backend!r}")


def _not_yet(what, given):
    if given:
        raise NotImplementedError(f"{what}: not in simt yet")


class RawModule:
    """Kernels of a text in CUDA C (docs/cuda-c.md says what of it there is).

    Args:
        code (str): the text.
        options (tuple of str): -D NAME=TEXT; what tells a compiler how to optimise changes nothing.
        backend: "nvrtc" or "nvcc", for CuPy's sake.

    It is read at the first `get_function`, or by `compile`. Raises
    cupy.cuda.compiler.CompileException with file, line, column and the line.
    """

    def __init__(
        self,
        *,
        code=None,
        path=None,
        options=(),
        backend="nvrtc",
        translate_cucomplex=False,
        enable_cooperative_groups=False,
        name_expressions=None,
        jitify=False,
    ):
        if (code is None) == (path is None):
            raise TypeError("Exactly one of `code` and `path` keyword arguments must be given.")
        _not_yet("RawModule(path=...), which loads machine code", path)
        _not_yet("translate_cucomplex", translate_cucomplex)
        _not_yet("name_expressions (templates)", name_expressions)
        _not_yet("jitify", jitify)
        _check(code, options, backend)
        self.code, self.options, self.backend = code, tuple(options), backend
        self.file_path = None
        self.enable_cooperative_groups = bool(enable_cooperative_groups)
        self._unit = None

    def compile(self, log_stream=None):
        """Reads the text, if that has not been done."""
        if self._unit is None:
            self._unit = _read(self.code, self.options, self.backend)

    def get_function(self, name):
        """The kernel of that name, as a RawKernel."""
        self.compile()
        kernel = RawKernel.__new__(RawKernel)
        kernel._set(self, name)
        kernel.compile()
        return kernel

    def get_global(self, name):
        raise NotImplementedError("RawModule.get_global: not in simt yet")


class RawKernel:
    """One kernel in CUDA C: RawKernel(code, name)((blocks,), (threads,), (arguments...)).

    Args:
        code (str): the text.
        name (str): of the __global__ function in it.
        options, backend: as of RawModule.

    Arguments of a launch are what the parameters say: for a pointer an array of its elements' dtype
    (or None, a null pointer), for a number the NumPy scalar of its type, or a Python number that it
    can have; anything else is a TypeError that names the parameter. A pointer reaches to the end of
    its array's memory: an access beyond is an IndexError that says where.
    """

    def __init__(
        self,
        code,
        name,
        options=(),
        backend="nvrtc",
        translate_cucomplex=False,
        *,
        enable_cooperative_groups=False,
        jitify=False,
    ):
        if not isinstance(name, str):
            raise TypeError(f"name must be a str, not {type(name).__name__}")
        module = RawModule(
            code=code,
            options=options,
            backend=backend,
            translate_cucomplex=translate_cucomplex,
            enable_cooperative_groups=enable_cooperative_groups,
            jitify=jitify,
        )
        self._set(module, name)

    def _set(self, module, name):
        self._module, self.name, self._kernel = module, name, None

    def compile(self, log_stream=None):
        """Compiles it, if that has not been done."""
        if self._kernel is not None:
            return
        from .cuda.compiler import CompileException

        m = self._module
        m.compile()
        try:
            self._kernel = m._unit.kernel(self.name)
        except RuntimeError as e:
            known = ", ".join(m._unit.names())
            text = str(e)
            if "of that name" in text and known:
                text += f" (there are: {known})"
            raise CompileException(text, m.code, self.name, m.options, m.backend) from None

    def __call__(self, grid, block, args, *, shared_mem=0):
        if self._kernel is None:
            self.compile()
        self._kernel.launch(grid, block, args, shared_mem)

    code = property(lambda self: self._module.code)
    options = property(lambda self: self._module.options)
    backend = property(lambda self: self._module.backend)
    file_path = property(lambda self: None)
    enable_cooperative_groups = property(lambda self: self._module.enable_cooperative_groups)

    @property
    def attributes(self):
        """As cudaFuncGetAttributes names them; bytes."""
        self.compile()
        shared, local = self._kernel.facts()
        return {
            "binary_version": 80,
            "cache_mode_ca": 0,
            "const_size_bytes": 0,
            "local_size_bytes": local,
            "max_dynamic_shared_size_bytes": 49152 - shared,
            "max_threads_per_block": 1024,
            "num_regs": 0,
            "preferred_shared_memory_carveout": -1,
            "ptx_version": 80,
            "shared_size_bytes": shared,
        }

    shared_size_bytes = property(lambda self: self.attributes["shared_size_bytes"])
    local_size_bytes = property(lambda self: self.attributes["local_size_bytes"])
    max_threads_per_block = property(lambda self: self.attributes["max_threads_per_block"])
    max_dynamic_shared_size_bytes = property(
        lambda self: self.attributes["max_dynamic_shared_size_bytes"]
    )
    num_regs = property(lambda self: self.attributes["num_regs"])
