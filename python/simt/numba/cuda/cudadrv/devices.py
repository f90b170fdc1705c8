"""numba.cuda.cudadrv.devices"""

from .._device import (  # noqa: F401
    get_context,
    gpus,
    reset,
)
