"""Dropout (Srivastava et al. 2014)."""

from simt.torch.nn import functional as F

from .module import Module


class Dropout(Module):
    """Zeroes elements with probability p in training and scales the rest by 1 / (1 - p).

    Raises:
        ValueError: p outside [0, 1].
    """

    def __init__(self, p=0.5, inplace=False):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def forward(self, input):
        return F.dropout(input, self.p, self.training, self.inplace)

    def extra_repr(self):
        return f"p={self.p}, inplace={self.inplace}"


class Dropout2d(Dropout):
    """Dropout of whole channels of (N, C, H, W)."""

    def forward(self, input):
        return F.dropout2d(input, self.p, self.training, self.inplace)
