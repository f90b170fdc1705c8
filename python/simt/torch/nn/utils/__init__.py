"""Helpers over parameters: clipping of gradients, vectors of parameters."""

from simt import torch
from simt._missing import module_hooks


def _with_grads(parameters):
    if isinstance(parameters, torch.Tensor):
        parameters = [parameters]
    return [p.grad for p in parameters if p.grad is not None]


def get_total_norm(tensors, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The norm of all tensors as one vector (0-d tensor)."""
    tensors = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
    norm_type = float(norm_type)
    if not tensors:
        return torch.tensor(0.0)
    if norm_type == float("inf"):
        total = torch.stack([t.detach().abs().max() for t in tensors]).max()
    else:
        sums = [t.detach().abs().pow(norm_type).sum() for t in tensors]
        total = torch.stack(sums).sum().pow(1.0 / norm_type)
    if error_if_nonfinite and not bool(torch.isfinite(total)):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, "
            "so it cannot be clipped. To disable this error and scale the gradients by the "
            "non-finite norm anyway, set `error_if_nonfinite=False`"
        )
    return total


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Scales gradients in place so that their total norm is at most max_norm; returns the norm."""
    grads = _with_grads(parameters)
    total = get_total_norm(grads, norm_type, error_if_nonfinite)
    scale = (float(max_norm) / (total + 1e-6)).clamp(max=1.0)
    with torch.no_grad():
        for grad in grads:
            grad.mul_(scale)
    return total


def clip_grad_value_(parameters, clip_value, foreach=None):
    """Clamps gradients in place to [-clip_value, clip_value]."""
    with torch.no_grad():
        for grad in _with_grads(parameters):
            grad.clamp_(-float(clip_value), float(clip_value))


def parameters_to_vector(parameters):
    """All parameters as one vector."""
    return torch.cat([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec, parameters):
    """The inverse of parameters_to_vector, in place."""
    start = 0
    for p in parameters:
        p.data = vec[start : start + p.numel()].view(p.shape).clone()
        start += p.numel()


__getattr__, __dir__ = module_hooks(globals())
