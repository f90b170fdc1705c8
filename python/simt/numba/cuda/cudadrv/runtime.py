"""numba.cuda.cudadrv.runtime"""

from .._device import runtime

get_version = runtime.get_version
