"""Module: parameters, buffers, submodules, hooks, state dicts."""

from collections import OrderedDict

from simt import _core, _missing, torch

from ..parameter import Buffer, Parameter


class _IncompatibleKeys(tuple):
    """What load_state_dict returns: missing_keys and unexpected_keys."""

    __slots__ = ()

    def __new__(cls, missing_keys, unexpected_keys):
        return tuple.__new__(cls, (missing_keys, unexpected_keys))

    missing_keys = property(lambda self: self[0])
    unexpected_keys = property(lambda self: self[1])

    def __repr__(self):
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return (
            f"_IncompatibleKeys(missing_keys={self.missing_keys}, "
            f"unexpected_keys={self.unexpected_keys})"
        )

    __str__ = __repr__


class _HookHandle:
    """Removes a hook; also a context manager that does."""

    _next = 0

    def __init__(self, hooks):
        self.hooks = hooks
        self.id = _HookHandle._next
        _HookHandle._next += 1

    def remove(self):
        self.hooks.pop(self.id, None)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.remove()


def _indent(text, spaces):
    lines = text.split("\n")
    return "\n".join([lines[0]] + [" " * spaces + line for line in lines[1:]])


class Module:
    """Base of all layers and models: assign parameters and submodules as attributes, define
    forward.
    """

    training = True
    _version = 1

    def __init__(self, *args, **kwargs):
        if args:
            raise TypeError(
                f"{type(self).__name__}.__init__() takes 1 positional argument but "
                f"{len(args) + 1} were given"
            )
        if kwargs:
            raise TypeError(
                f"{type(self).__name__}.__init__() got an unexpected keyword argument "
                f"'{next(iter(kwargs))}'"
            )
        values = self.__dict__
        values["training"] = True
        values["_parameters"] = {}
        values["_buffers"] = {}
        values["_non_persistent"] = set()
        values["_modules"] = {}
        values["_hooks"] = None  # (forward pre-hooks, forward hooks), made when one is registered

    def forward(self, *input):
        raise NotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function'
        )

    def __call__(self, *args, **kwargs):
        if self._hooks is None:
            return self.forward(*args, **kwargs)
        return self._call_with_hooks(args, kwargs)

    def _call_with_hooks(self, args, kwargs):
        before, after = self._hooks
        for hook in list(before.values()):
            result = hook(self, args)
            if result is not None:
                args = result if isinstance(result, tuple) else (result,)
        output = self.forward(*args, **kwargs)
        for hook in list(after.values()):
            result = hook(self, args, output)
            if result is not None:
                output = result
        return output

    def _hook_tables(self):
        if self._hooks is None:
            self.__dict__["_hooks"] = ({}, {})
        return self._hooks

    def register_forward_pre_hook(self, hook, *, prepend=False, with_kwargs=False):
        handle = _HookHandle(self._hook_tables()[0])
        handle.hooks[handle.id] = hook
        return handle

    def register_forward_hook(self, hook, *, prepend=False, with_kwargs=False, always_call=False):
        handle = _HookHandle(self._hook_tables()[1])
        handle.hooks[handle.id] = hook
        return handle

    # ---- attributes ----

    def __getattr__(self, name):
        values = self.__dict__
        for table in ("_parameters", "_buffers", "_modules"):
            found = values.get(table)
            if found is not None and name in found:
                return found[name]
        if _core._is_absent(type(self), name):
            raise _missing.absent(type(self), name, False)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name, value):
        values = self.__dict__
        if isinstance(value, Parameter):
            self._table("_parameters", "parameters")
            self._forget(name, "_parameters")
            self.register_parameter(name, value)
            return
        if isinstance(value, Module):
            self._table("_modules", "module")
            self._forget(name, "_modules")
            values["_modules"][name] = value
            return
        if isinstance(value, Buffer):
            self._table("_buffers", "buffers")
            self._forget(name, "_buffers")
            self.register_buffer(name, value, value.persistent)
            return
        parameters = values.get("_parameters")
        if parameters is not None and name in parameters:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{torch._typename(value)}' as parameter '{name}' "
                    "(torch.nn.Parameter or None expected)"
                )
            parameters[name] = None
            return
        modules = values.get("_modules")
        if modules is not None and name in modules:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{torch._typename(value)}' as child module '{name}' "
                    "(torch.nn.Module or None expected)"
                )
            modules[name] = None
            return
        buffers = values.get("_buffers")
        if buffers is not None and name in buffers:
            if value is not None and not isinstance(value, torch.Tensor):
                raise TypeError(
                    f"cannot assign '{torch._typename(value)}' as buffer '{name}' "
                    "(torch.nn.Buffer, torch.Tensor or None expected)"
                )
            buffers[name] = value
            return
        object.__setattr__(self, name, value)

    def _table(self, table, what):
        if table not in self.__dict__:
            raise AttributeError(f"cannot assign {what} before Module.__init__() call")

    def _forget(self, name, keep):
        """Takes the name out of the other tables; in its own it keeps its place."""
        values = self.__dict__
        values.pop(name, None)
        for table in ("_parameters", "_buffers", "_modules"):
            if table != keep:
                values[table].pop(name, None)
        values["_non_persistent"].discard(name)

    def __delattr__(self, name):
        for table in (self._parameters, self._buffers, self._modules):
            if name in table:
                del table[name]
                self._non_persistent.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self):
        names = set(dir(type(self))) - set(_core._absent_names(type(self))) | set(self.__dict__)
        names |= set(self._parameters) | set(self._buffers) | set(self._modules)
        return sorted(name for name in names if not name[:1].isdigit())

    def _check_name(self, name, kind):
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {torch._typename(name)}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain "."')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')

    def register_parameter(self, name, param):
        self._table("_parameters", "parameter")
        self._check_name(name, "parameter")
        if hasattr(self, name) and name not in self._parameters:
            raise KeyError(f"attribute '{name}' already exists")
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{torch._typename(param)}' object to parameter '{name}' "
                "(torch.nn.Parameter or None required)"
            )
        if param is not None and not param.is_leaf:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be "
                "created explicitly. To express "
                f"'{name}' as a function of another Tensor, compute the value in the forward() "
                "method."
            )
        self._parameters[name] = param

    def register_buffer(self, name, tensor, persistent=True):
        self._table("_buffers", "buffer")
        self._check_name(name, "buffer")
        if hasattr(self, name) and name not in self._buffers:
            raise KeyError(f"attribute '{name}' already exists")
        if tensor is not None and not isinstance(tensor, torch.Tensor):
            raise TypeError(
                f"cannot assign '{torch._typename(tensor)}' object to buffer '{name}' "
                "(torch Tensor or None required)"
            )
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent.discard(name)
        else:
            self._non_persistent.add(name)

    def add_module(self, name, module):
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{torch._typename(module)} is not a Module subclass")
        if not isinstance(name, str):
            raise TypeError(f"module name should be a string. Got {torch._typename(name)}")
        if hasattr(self, name) and name not in self._modules:
            raise KeyError(f"attribute '{name}' already exists")
        if "." in name:
            raise KeyError(f'module name can\'t contain ".", got: {name}')
        if name == "":
            raise KeyError('module name can\'t be empty string ""')
        self._modules[name] = module

    register_module = add_module

    # ---- walking ----

    def named_modules(self, memo=None, prefix="", remove_duplicate=True):
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                inner = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(memo, inner, remove_duplicate)

    def modules(self):
        for _, module in self.named_modules():
            yield module

    def named_children(self):
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self):
        for _, module in self.named_children():
            yield module

    def _named_members(self, table, prefix, recurse, remove_duplicate):
        seen = set()
        owners = self.named_modules(prefix=prefix) if recurse else [(prefix, self)]
        for owner, module in owners:
            for name, member in getattr(module, table).items():
                if member is None or id(member) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(member))
                yield (f"{owner}.{name}" if owner else name), member

    def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
        yield from self._named_members("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse=True):
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(self, prefix="", recurse=True, remove_duplicate=True):
        yield from self._named_members("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse=True):
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def get_submodule(self, target):
        module = self
        for name in target.split(".") if target else ():
            if not hasattr(module, name):
                raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def get_parameter(self, target):
        owner, _, name = target.rpartition(".")
        module = self.get_submodule(owner)
        if not hasattr(module, name):
            raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
        parameter = getattr(module, name)
        if not isinstance(parameter, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return parameter

    # ---- modes and conversions ----

    def apply(self, fn):
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self, mode=True):
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        for module in self.modules():
            module.training = mode
        return self

    def eval(self):
        return self.train(False)

    def requires_grad_(self, requires_grad=True):
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none=True):
        for parameter in self.parameters():
            if parameter.grad is None:
                continue
            if set_to_none:
                parameter.grad = None
            else:
                parameter.grad.detach_()
                parameter.grad.zero_()

    def _apply(self, fn, recurse=True):
        for module in self.modules() if recurse else (self,):
            for parameter in module._parameters.values():
                if parameter is None:
                    continue
                with torch.no_grad():
                    changed = fn(parameter)
                if changed is not parameter:
                    parameter.data = changed
                if parameter.grad is not None:
                    with torch.no_grad():
                        parameter.grad.data = fn(parameter.grad)
            for name, buffer in module._buffers.items():
                if buffer is not None:
                    module._buffers[name] = fn(buffer)
        return self

    def to(self, *args, **kwargs):
        dtype = kwargs.get("dtype")
        for arg in args:
            if isinstance(arg, torch.dtype):
                dtype = arg
        if dtype is not None and not dtype.is_floating_point:
            raise TypeError(
                "nn.Module.to only accepts floating point or complex dtypes, but got desired "
                f"dtype={dtype}"
            )
        device = kwargs.get("device")
        rest = [a for a in args if not isinstance(a, torch.dtype)]
        if rest and device is None and not isinstance(rest[0], (bool, torch.Tensor)):
            device = rest[0]
        if device is not None:
            there = torch.empty(0, device=device)  # the errors of a device that is not there
            if not there.is_meta and any(t.is_meta for t in self._tensors()):
                raise NotImplementedError(
                    "Cannot copy out of meta tensor; no data! Please use "
                    "torch.nn.Module.to_empty() instead of torch.nn.Module.to() when moving "
                    "module from meta to a different device."
                )
            if there.is_meta:
                self._apply(lambda t: t.to("meta"))
        if dtype is None:
            return self

        def convert(t):
            return t.to(dtype) if t.is_floating_point() else t

        return self._apply(convert)

    def _tensors(self):
        yield from self.parameters()
        yield from self.buffers()

    def to_empty(self, *, device, recurse=True):
        """Gives parameters and buffers new memory on the device, whose contents are not defined."""
        return self._apply(lambda t: torch.empty_like(t, device=device), recurse)

    def cpu(self):
        return self.to("cpu")

    def cuda(self, device=None):
        return self.to("cuda" if device is None else device)

    def type(self, dst_type):
        return self._apply(lambda t: t.type(dst_type))

    def float(self):
        return self._apply(lambda t: t.float() if t.is_floating_point() else t)

    def double(self):
        return self._apply(lambda t: t.double() if t.is_floating_point() else t)

    def half(self):
        return self._apply(lambda t: t.half() if t.is_floating_point() else t)

    def bfloat16(self):
        return self._apply(lambda t: t.bfloat16() if t.is_floating_point() else t)

    def share_memory(self):
        """Moves parameters and buffers to memory that processes forked from now on share."""
        for t in (*self.parameters(), *self.buffers()):
            t.share_memory_()
        return self

    # ---- state dicts ----

    def state_dict(self, *args, destination=None, prefix="", keep_vars=False):
        destination = OrderedDict() if destination is None else destination
        for name, parameter in self._parameters.items():
            if parameter is not None:
                destination[prefix + name] = parameter if keep_vars else parameter.detach()
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent:
                destination[prefix + name] = buffer if keep_vars else buffer.detach()
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(
                    destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars
                )
        return destination

    def load_state_dict(self, state_dict, strict=True, assign=False):
        """Copies a state dict into the module's parameters and buffers.

        Raises:
            TypeError: state_dict is no mapping.
            RuntimeError: missing or unexpected keys (strict), or other shapes; nothing is copied
                then (PyTorch copies what matches).
        """
        if not hasattr(state_dict, "keys"):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        own = {}
        for prefix, module in self.named_modules(remove_duplicate=False):
            head = prefix + "." if prefix else ""
            for name, member in module._parameters.items():
                own[head + name] = (module._parameters, name, member)
            for name, member in module._buffers.items():
                if name not in module._non_persistent:
                    own[head + name] = (module._buffers, name, member)
        own = {key: place for key, place in own.items() if place[2] is not None}
        missing = [key for key in own if key not in state_dict]
        unexpected = [key for key in state_dict if key not in own]
        errors = []
        for key, (_, _, member) in own.items():
            if key not in state_dict:
                continue
            value = state_dict[key]
            if not isinstance(value, torch.Tensor):
                errors.append(
                    f'While copying the parameter named "{key}", expected torch.Tensor or '
                    f"Tensor-like object from checkpoint but received {type(value)}"
                )
            elif value.shape != member.shape:
                errors.append(
                    f"size mismatch for {key}: copying a param with shape {value.shape} from "
                    f"checkpoint, the shape in current model is {member.shape}."
                )
        if strict:
            if unexpected:
                quoted = ", ".join(f'"{k}"' for k in unexpected)
                errors.insert(0, f"Unexpected key(s) in state_dict: {quoted}. ")
            if missing:
                quoted = ", ".join(f'"{k}"' for k in missing)
                errors.insert(0, f"Missing key(s) in state_dict: {quoted}. ")
        if errors:
            details = "\n\t".join(errors)
            raise RuntimeError(
                f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{details}"
            )
        for key, (table, name, member) in own.items():
            if key not in state_dict or not isinstance(state_dict[key], torch.Tensor):
                continue
            value = state_dict[key]
            if assign:
                keep = isinstance(member, Parameter)
                table[name] = Parameter(value, member.requires_grad) if keep else value
            else:
                with torch.no_grad():
                    member.copy_(value)
        return _IncompatibleKeys(missing, unexpected)

    # ---- printing and copying ----

    def extra_repr(self):
        return ""

    def _get_name(self):
        return type(self).__name__

    def __repr__(self):
        extra = self.extra_repr()
        extra_lines = extra.split("\n") if extra else []
        child_lines = []
        for name, module in self._modules.items():
            child_lines.append(f"({name}): " + _indent(repr(module), 2))
        lines = extra_lines + child_lines
        text = self._get_name() + "("
        if lines:
            if len(extra_lines) == 1 and not child_lines:
                text += extra_lines[0]
            else:
                text += "\n  " + "\n  ".join(lines) + "\n"
        return text + ")"

    def __setstate__(self, state):
        self.__dict__.update(state)


_core._absent(Module, "torch.nn.Module")
