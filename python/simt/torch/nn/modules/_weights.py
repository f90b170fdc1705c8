"""Parameters of modules: making them, and the default initialisation of a weight and its bias."""

from simt import torch
from simt.torch.nn import init

from ..parameter import Parameter


def add_parameters(module, device, dtype, **shapes):
    """Empty parameters by name, in the order given; None registers the name without one."""
    for name, shape in shapes.items():
        if shape is None:
            module.register_parameter(name, None)
        else:
            setattr(module, name, Parameter(torch.empty(shape, device=device, dtype=dtype)))


def reset_weight_and_bias(weight, bias):
    """The weight by Kaiming's rule, the bias in 1 / sqrt(inputs of one output)."""
    init.kaiming_uniform_(weight, a=5**0.5)
    if bias is not None:
        fan_in, _ = init._calculate_fan_in_and_fan_out(weight)
        bound = 1 / fan_in**0.5 if fan_in > 0 else 0
        init.uniform_(bias, -bound, bound)
