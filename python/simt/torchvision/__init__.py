"""torchvision's datasets and transforms, as far as simt has them.

MNIST and its kin are read by C code; ToTensor and Normalize run on whole batches (see
``simt.torch.utils.data``).
"""

from simt._missing import module_hooks

__version__ = "0.29.2+simt"

__getattr__, __dir__ = module_hooks(globals(), lazy=("datasets", "transforms"))
