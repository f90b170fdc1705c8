"""numba.config: switches that programs read or set; here they change nothing."""

ENABLE_CUDASIM = False
CUDA_LOW_OCCUPANCY_WARNINGS = 0
CUDA_WARN_ON_IMPLICIT_COPY = 0
CUDA_DEBUGINFO_DEFAULT = 0
CUDA_PER_THREAD_DEFAULT_STREAM = 0
DISABLE_JIT = 0
BOUNDSCHECK = None
DEBUG = False
