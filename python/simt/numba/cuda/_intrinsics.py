"""What kernels call: on the host each is a name that says where it may be used.

The binding knows an intrinsic by its attribute `_simt_intrinsic` ("cuda.grid").
"""


class Intrinsic:
    """A function or value of kernels; on the host it only says so."""

    def __init__(self, name):
        self._simt_intrinsic = name
        self.__name__ = name.rpartition(".")[2]

    def __call__(self, *args, **kwargs):
        raise NotImplementedError(
            f"{self._simt_intrinsic} can be used only inside a kernel or device function"
        )

    def __repr__(self):
        return f"<{self._simt_intrinsic}: for kernels>"

    def __reduce__(self):
        return self._simt_intrinsic.partition(".")[2]


class Dim3(Intrinsic):
    """threadIdx and its kin: x, y, z."""

    def __init__(self, name):
        super().__init__(name)
        self.x, self.y, self.z = (Intrinsic(f"{name}.{axis}") for axis in "xyz")


class Group(Intrinsic):
    """A namespace of intrinsics: cuda.atomic, cuda.shared."""

    def __init__(self, name, members):
        super().__init__(name)
        for member in members:
            setattr(self, member, Intrinsic(f"{name}.{member}"))


threadIdx, blockIdx, blockDim, gridDim = (
    Dim3(f"cuda.{n}") for n in ("threadIdx", "blockIdx", "blockDim", "gridDim")
)
NAMES = (
    *("grid", "gridsize", "laneid", "warpsize"),
    *("syncthreads", "syncthreads_count", "syncthreads_and", "syncthreads_or", "syncwarp"),
    *("threadfence", "threadfence_block", "threadfence_system", "nanosleep"),
    *("shfl_sync", "shfl_up_sync", "shfl_down_sync", "shfl_xor_sync"),
    *("all_sync", "any_sync", "eq_sync", "ballot_sync", "match_any_sync", "match_all_sync"),
    *("activemask", "lanemask_lt", "popc", "brev", "clz", "ffs", "selp", "fma", "cbrt"),
    *("ldca", "ldcg", "ldcs", "ldlu", "ldcv", "stcg", "stcs", "stwb", "stwt"),
)
globals().update({name: Intrinsic(f"cuda.{name}") for name in NAMES})
type_of = Intrinsic("simt.type_of")  # the number of a value's type
char_code = Intrinsic("simt.char_code")  # of a string's character
shared = Group("cuda.shared", ("array",))
local = Group("cuda.local", ("array",))
const = Group("cuda.const", ("array_like",))
atomic = Group(
    "cuda.atomic",
    (
        *("add", "sub", "max", "min", "nanmax", "nanmin", "and_", "or_", "xor", "inc", "dec"),
        *("exch", "cas", "compare_and_swap"),
    ),
)

# float32x3 and its kin, and CUDA C's names for them: char1, uint4, double2.
_C_NAMES = {
    "int8": ("char",),
    "int16": ("short",),
    "int32": ("int",),
    "int64": ("long", "longlong"),
    "uint8": ("uchar",),
    "uint16": ("ushort",),
    "uint32": ("uint",),
    "uint64": ("ulong", "ulonglong"),
    "float32": ("float",),
    "float64": ("double",),
}
VECTORS = {
    name + n: vector
    for element, names in _C_NAMES.items()
    for n in "1234"
    for vector in (Intrinsic(f"cuda.{element}x{n}"),)
    for name in (element + "x", *names)
}
cg = Group("cuda.cg", ("this_grid",))
