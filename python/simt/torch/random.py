"""torch.random: the default generator."""

from simt._core import torch as _C
from simt.torch._creation import (  # noqa: F401
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)

default_generator = _C.default_generator
