"""Parameters and buffers: tensors that a module owns."""

from simt import torch


class Parameter(torch.Tensor):
    """A tensor that is a module's parameter: listed by parameters(), requires a gradient by
    default.

    Raises:
        RuntimeError: requires_grad on integers or bools.
    """

    def __new__(cls, data=None, requires_grad=True):
        if data is None:
            data = torch.empty(0)
        return torch.Tensor._make_subclass(cls, data.detach(), requires_grad)

    def __repr__(self):
        return "Parameter containing:\n" + torch.Tensor.__repr__(self)

    def __deepcopy__(self, memo):
        copy = memo.get(id(self))
        if copy is None:
            copy = type(self)(self.data.clone(), self.requires_grad)
            memo[id(self)] = copy
        return copy

    def __reduce_ex__(self, protocol):
        return _rebuild_parameter, (self.data, self.requires_grad)


def _rebuild_parameter(data, requires_grad):
    return Parameter(data, requires_grad)


class UninitializedParameter(Parameter):
    """Lazy modules are not in simt yet."""

    def __new__(cls, *args, **kwargs):
        raise NotImplementedError("UninitializedParameter is not in simt yet; nearest is Parameter")


class Buffer(torch.Tensor):
    """A tensor that a module registers as a buffer when it is assigned."""

    def __new__(cls, data=None, *, persistent=True):
        if data is None:
            data = torch.empty(0)
        made = torch.Tensor._make_subclass(cls, data.detach(), data.requires_grad)
        made.persistent = persistent
        return made
