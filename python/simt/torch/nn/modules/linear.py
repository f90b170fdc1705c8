"""Linear layers and changes of shape."""

from simt import torch
from simt.torch.nn import functional as F
from simt.torch.nn import init

from ._weights import add_parameters, reset_weight_and_bias
from .module import Module


class Identity(Module):
    """Its input; all arguments are ignored."""

    def __init__(self, *args, **kwargs):
        super().__init__()

    def forward(self, input):
        return input


class Linear(Module):
    """y = x W^T + b; weight (out_features, in_features), U(-1/sqrt(in), 1/sqrt(in))."""

    def __init__(self, in_features, out_features, bias=True, device=None, dtype=None):
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        shape = (out_features, in_features)
        add_parameters(self, device, dtype, weight=shape, bias=out_features if bias else None)
        self.reset_parameters()

    def reset_parameters(self):
        reset_weight_and_bias(self.weight, self.bias)

    def forward(self, input):
        parameters = self._parameters
        return F.linear(input, parameters["weight"], parameters["bias"])

    def extra_repr(self):
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class Bilinear(Module):
    """y = x1^T A x2 + b."""

    def __init__(
        self, in1_features, in2_features, out_features, bias=True, device=None, dtype=None
    ):
        super().__init__()
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        shape = (out_features, in1_features, in2_features)
        add_parameters(self, device, dtype, weight=shape, bias=out_features if bias else None)
        self.reset_parameters()

    def reset_parameters(self):
        bound = 1 / self.weight.size(1) ** 0.5
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1, input2):
        left = input1.reshape(-1, 1, self.in1_features)
        right = input2.reshape(-1, self.in2_features, 1)
        rows = torch.matmul(left.unsqueeze(1), self.weight)  # (N, out, 1, in2)
        out = torch.matmul(rows, right.unsqueeze(1)).reshape(*input1.shape[:-1], self.out_features)
        return out if self.bias is None else out + self.bias

    def extra_repr(self):
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )


class Flatten(Module):
    """Dimensions start_dim to end_dim as one."""

    def __init__(self, start_dim=1, end_dim=-1):
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input):
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self):
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """One dimension as several."""

    def __init__(self, dim, unflattened_size):
        super().__init__()
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input):
        dim = self.dim % input.dim()
        return input.reshape(*input.shape[:dim], *self.unflattened_size, *input.shape[dim + 1 :])

    def extra_repr(self):
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
