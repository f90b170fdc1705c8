"""Methods of Tensor written in Python; adds them to the type."""

import math
import os

from simt import _core
from simt._core import torch as _C
from simt.torch import _functions as _f

Tensor = _C.Tensor
_full = _C._full


def new_zeros(self, *size, dtype=None, device=None, requires_grad=False, **kw):
    return _new(self, size, 0, dtype, device, requires_grad, kw)


def new_ones(self, *size, dtype=None, device=None, requires_grad=False, **kw):
    return _new(self, size, 1, dtype, device, requires_grad, kw)


def new_empty(self, *size, dtype=None, device=None, requires_grad=False, **kw):
    return _new(self, size, None, dtype, device, requires_grad, kw)


def _new(self, size, value, dtype, device, requires_grad, kw):
    size = kw["size"] if "size" in kw else size
    if len(size) == 1 and not isinstance(size[0], int):
        size = size[0]
    device = device or self.device
    return _full("full", size, value, dtype or self.dtype, device, requires_grad)


def new_full(self, size, fill_value, dtype=None, device=None, requires_grad=False):
    device = device or self.device
    return _full("full", size, fill_value, dtype or self.dtype, device, requires_grad)


def new_tensor(self, data, dtype=None, device=None, requires_grad=False):
    device = device or self.device
    return _C.tensor(data, dtype=dtype or self.dtype, device=device, requires_grad=requires_grad)


def __format__(self, spec):
    if self.dim() == 0:
        return self.item().__format__(spec)
    return object.__format__(self, spec)


def __reversed__(self):
    return self.flip(0) if self.dim() else self


def __deepcopy__(self, memo):
    if id(self) in memo:
        return memo[id(self)]
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
            "protocol at the moment.  If you were attempting to deepcopy a module, this may be "
            "because of a torch.nn.utils.weight_norm usage, see "
            "https://github.com/pytorch/pytorch/pull/103001"
        )
    copy = self.detach().clone()
    if type(self) is not Tensor:
        copy = _C._make_subclass(type(self), copy, self.requires_grad)
    elif self.requires_grad:
        copy.requires_grad_()
    copy.__dict__.update(self.__dict__)
    if self.grad is not None:
        copy.grad = self.grad.detach().clone()
    memo[id(self)] = copy
    return copy


def __reduce_ex__(self, protocol):
    cls = None if type(self) is Tensor else type(self)
    data = self.detach().contiguous()._to_bytes()
    name = str(self.dtype).removeprefix("torch.")  # a dtype's own pickling looks for its module
    return _rebuild, (cls, data, name, tuple(self.shape), self.requires_grad)


def _send_shared(tensor):
    """What multiprocessing sends of a tensor: where its memory is, if that is shared."""
    if not tensor.is_shared():
        return tensor.__reduce_ex__(2)
    where = (os.getpid(), *tensor._simt_pages[1:])
    name = str(tensor.dtype).removeprefix("torch.")
    cls = None if type(tensor) is Tensor else type(tensor)
    return _reopen, (cls, where, name, tuple(tensor.shape), tensor.requires_grad)


def _reopen(cls, where, dtype, shape, requires_grad):
    """A shared tensor in another process: the same memory. Who sent it must live until then."""
    pid, descriptor, inode = where
    try:
        own = os.open(f"/proc/{pid}/fd/{descriptor}", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        raise RuntimeError("a shared tensor was sent by a process that has ended") from None
    if os.fstat(own).st_ino != inode:
        os.close(own)
        raise RuntimeError("a shared tensor was sent by a process that let go of it")
    t = _over_pages(own, dtype, shape)
    made = t.requires_grad_(requires_grad) if cls is None else None
    made = _C._make_subclass(cls, t, requires_grad) if made is None else made
    _mark_shared(made, t._simt_pages)
    return made


def _over_pages(descriptor, dtype, shape):
    """A tensor over the pages of a memory file, which is closed with them."""
    import mmap
    import weakref

    import numpy as np

    pages = mmap.mmap(descriptor, 0)
    weakref.finalize(pages, os.close, descriptor)
    array = np.frombuffer(pages, np.dtype(dtype), math.prod(shape)).reshape(shape)
    tensor = _C.from_numpy(array)
    tensor._simt_pages = (array.ctypes.data, descriptor, os.fstat(descriptor).st_ino)
    return tensor


def _mark_shared(tensor, pages):
    from multiprocessing.reduction import ForkingPickler

    tensor._simt_pages = pages
    ForkingPickler.register(type(tensor), _send_shared)


def _rebuild(cls, data, dtype, shape, requires_grad):
    t = _C._from_bytes(data, getattr(_C, dtype), shape)
    return (
        t.requires_grad_(requires_grad) if cls is None else _C._make_subclass(cls, t, requires_grad)
    )


class RemovableHandle:
    """What register_hook returns: remove() takes the hook off."""

    def __init__(self, tensor, id):
        self._tensor, self.id = tensor, id

    def remove(self):
        self._tensor._remove_hook(self.id)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.remove()


def register_hook(self, hook):
    return RemovableHandle(self, self._add_hook(hook))


def register_post_accumulate_grad_hook(self, hook):
    raise NotImplementedError("register_post_accumulate_grad_hook: not in simt yet")


def random_(self, low=0, high=None, *, generator=None):
    if high is None:
        low, high = 0, low or (1 << 24 if self.is_floating_point() else _f.iinfo(self.dtype).max)
    return self.copy_(_C._random("int", self.shape, low, high, _C.int64, generator))


def bernoulli_(self, p=0.5, *, generator=None):
    from simt.torch._creation import _check_p

    draw = _C._random("rand", self.shape, 0.0, 1.0, _C.float32, generator)
    return self.copy_(draw < _check_p(p))


def exponential_(self, lambd=1.0, *, generator=None):
    if not lambd > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd}")
    draw = _C._random("rand", self.shape, 0.0, 1.0, self.dtype, generator)
    return self.copy_((-draw).log1p() / -lambd)


def bernoulli(self, p=None, *, generator=None):
    from simt.torch._creation import bernoulli

    return bernoulli(self, p, generator=generator)


def multinomial(self, num_samples, replacement=False, *, generator=None):
    from simt.torch._creation import multinomial

    return multinomial(self, num_samples, replacement, generator=generator)


def element_dims(self):
    return self.dim()


def index_add(self, dim, index, source, *, alpha=1):
    return self.clone().index_add_(dim, index, source, alpha=alpha)


def index_copy(self, dim, index, source):
    return self.clone().index_copy_(dim, index, source)


def index_fill(self, dim, index, value):
    return self.clone().index_fill_(dim, index, value)


def unsqueeze_(self, dim):
    self.data = self.data.unsqueeze(dim)
    return self


def squeeze_(self, *dim):
    self.data = self.data.squeeze(*dim)
    return self


def t_(self):
    self.data = self.data.t()
    return self


def apply_(self, function):
    flat = [function(x) for x in self.flatten().tolist()]
    return self.copy_(_C.tensor(flat, dtype=self.dtype).reshape(self.shape))


__array_priority__ = 1000  # NumPy's numbers leave operators to the tensor on their right


def __array_wrap__(self, array, context=None, return_scalar=False):
    """What NumPy's functions of tensors give: a tensor (of bool: as uint8, as PyTorch has it)."""
    return _C.tensor(array.astype("uint8") if array.dtype == bool else array)


def share_memory_(self):
    """Moves the elements to memory that other processes share, those forked later and those that
    multiprocessing sends the tensor to."""
    if not self.is_shared():
        if self.dtype is _C.bfloat16:
            raise NotImplementedError(
                "share_memory_() of bfloat16: not in simt yet; nearest is float32"
            )
        descriptor = os.memfd_create("simt")
        os.ftruncate(descriptor, max(self.numel() * self.element_size(), 1))
        dtype = str(self.dtype).removeprefix("torch.")
        shared = _over_pages(descriptor, dtype, tuple(self.shape))
        shared.copy_(self.detach())
        self.data = shared
        _mark_shared(self, shared._simt_pages)
    return self


def is_shared(self):
    pages = getattr(self, "_simt_pages", None)
    return pages is not None and (self.numel() == 0 or self.data_ptr() == pages[0])


def is_pinned(self):
    return False


def is_signed(self):
    return self.dtype.is_signed


def get_device(self):
    return -1


def is_same_size(self, other):
    return self.shape == other.shape


def untyped_storage(self):
    raise NotImplementedError("Tensor.untyped_storage: not in simt yet; nearest is Tensor.data_ptr")


_METHODS = {
    k: v
    for k, v in list(globals().items())
    if (callable(v) or k == "__array_priority__")
    and k not in ("Tensor", "RemovableHandle", "element_dims")
    and (k[:2] == "__" or k[0] != "_")
}
for _name in (
    "addmm",
    "allclose",
    "argsort",
    "baddbmm",
    "bincount",
    "diag",
    "diff",
    "equal",
    "frexp",
    "isclose",
    "ldexp",
    "median",
    "movedim",
    "outer",
    "repeat_interleave",
    "roll",
    "sort",
    "take",
    "take_along_dim",
    "tile",
    "topk",
    "trace",
    "tril",
    "triu",
    "unique",
    "nan_to_num",
):
    _METHODS[_name] = getattr(_f, _name)
_C._add_methods(_METHODS)


_core._absent(_C.Tensor, "torch.Tensor")
_core._absent(_C.Generator, "torch.Generator")
_core._absent(_C.Size, "torch.Size")
_core._absent(_C.dtype, "torch.dtype")
_core._absent(_C.device, "torch.device")
