"""Optimizer, SGD, Adam, AdamW: PyTorch's groups, state and error texts."""

from simt import _core
from simt._core import torch as _C

Tensor = _C.Tensor


class _State(dict):
    """Parameter -> its state; made at the first look."""

    def __missing__(self, key):
        self[key] = value = {}
        return value


class _Required:
    def __repr__(self):
        return "<required parameter>"


required = _Required()


def _noticed(step):
    """A subclass's own step: the hooks run around it, and schedulers know that it was called."""
    from functools import wraps

    @wraps(step)
    def noticed(self, *args, **options):
        for hook in list(getattr(self, "_pre_hooks", {}).values()):
            hook(self, args, options)
        result = step(self, *args, **options)
        for hook in list(getattr(self, "_post_hooks", {}).values()):
            hook(self, args, options)
        self._opt_called = True
        return result

    return noticed


class Optimizer:
    """Base class: parameter groups and their state."""

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        if "step" in cls.__dict__:
            cls.step = _noticed(cls.step)

    def __init__(self, params, defaults):
        self.defaults = defaults
        self.state = _State()
        self.param_groups = []
        self._pre_hooks, self._post_hooks = {}, {}
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or "
                "dicts, but "
                f"got {params.type()}"
            )
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def add_param_group(self, param_group):
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, Tensor):
            params = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the "
                "ordering of "
                "tensors in sets will change between runs. Please use a list instead."
            )
        else:
            params = list(params)
        if params and isinstance(params[0], tuple):
            param_group["param_names"] = [n for n, _ in params]
            params = [p for _, p in params]
        param_group["params"] = params
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError(
                    f"optimizer can only optimize Tensors, but one of the params is {_type_name(p)}"
                )
            if not (p.is_leaf or p.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(
                    "parameter group didn't specify a value of required optimization parameter "
                    f"{name}"
                )
            param_group.setdefault(name, default)
        seen = {p for group in self.param_groups for p in group["params"]}
        if not seen.isdisjoint(params):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)

    def zero_grad(self, set_to_none=True):
        for group in self.param_groups:
            _C._zero_grad(group["params"], set_to_none)

    def step(self, closure=None):
        loss = None
        if self._pre_hooks:
            for hook in list(self._pre_hooks.values()):
                hook(self, (closure,), {})
        if closure is not None:
            was = _C._set_grad_enabled(True)
            try:
                loss = closure()
            finally:
                _C._set_grad_enabled(was)
        for group in self.param_groups:
            self._step_group(group)
        if self._post_hooks:
            for hook in list(self._post_hooks.values()):
                hook(self, (closure,), {})
        self._opt_called = True
        return loss

    def _step_group(self, group):
        raise NotImplementedError

    def register_step_pre_hook(self, hook):
        return _handle(self._pre_hooks, hook)

    def register_step_post_hook(self, hook):
        return _handle(self._post_hooks, hook)

    # ---- saved state

    def state_dict(self):
        numbers = {}
        groups = []
        for group in self.param_groups:
            packed = {k: v for k, v in group.items() if k != "params"}
            packed["params"] = [numbers.setdefault(id(p), len(numbers)) for p in group["params"]]
            groups.append(packed)
        state = {numbers.get(id(p), p): self._pack(p, s) for p, s in self.state.items()}
        return {"state": state, "param_groups": groups}

    def _pack(self, p, state):
        return dict(state)

    def load_state_dict(self, state_dict):
        saved, mine = state_dict["param_groups"], self.param_groups
        if len(saved) != len(mine):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(a["params"]) != len(b["params"]) for a, b in zip(saved, mine, strict=False)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of "
                "optimizer's group"
            )
        numbers = [n for g in saved for n in g["params"]]
        params = [p for g in mine for p in g["params"]]
        by_number = dict(zip(numbers, params, strict=False))
        state = _State()
        for number, values in state_dict["state"].items():
            p = by_number.get(number)
            if p is None:
                state[number] = values
                continue
            state[p] = {k: self._own(k, v, p) for k, v in values.items()}
        groups = []
        for old, new in zip(mine, saved, strict=False):
            merged = {k: v for k, v in new.items() if k != "params"}
            merged["params"] = old["params"]
            groups.append(merged)
        self.state, self.param_groups = state, groups

    @staticmethod
    def _own(name, value, p):
        """A copy, in the parameter's type."""
        if not isinstance(value, Tensor):
            return value
        if name == "step":
            return value.detach().clone()
        return value.detach().to(p.dtype, copy=True) if p.is_floating_point() else value.clone()

    def __repr__(self):
        text = type(self).__name__ + " ("
        for i, group in enumerate(self.param_groups):
            text += f"\nParameter Group {i}\n"
            for key in sorted(group):
                if key != "params":
                    text += f"    {key}: {group[key]}\n"
        return text + ")"


def _handle(hooks, hook):
    from simt.torch.nn.modules.module import _HookHandle

    handle = _HookHandle(hooks)
    hooks[handle.id] = hook
    return handle


def _type_name(value):
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _check(value, text):
    if not 0.0 <= value:
        raise ValueError(f"{text}: {value}")


class SGD(Optimizer):
    """Stochastic gradient descent, with momentum and weight decay."""

    def __init__(
        self,
        params,
        lr=1e-3,
        momentum=0,
        dampening=0,
        weight_decay=0,
        nesterov=False,
        *,
        maximize=False,
        foreach=None,
        differentiable=False,
        fused=None,
    ):
        _check(float(lr), "Invalid learning rate") if float(lr) >= 0 else _check(
            lr, "Invalid learning rate"
        )
        _check(momentum, "Invalid momentum value")
        _check(weight_decay, "Invalid weight_decay value")
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, defaults)

    def _step_group(self, group):
        # each gradient is looked at once: another thread may clear it
        pairs = [(p, g) for p in group["params"] if (g := p.grad) is not None]
        if not pairs:
            return
        params, grads = [p for p, _ in pairs], [g for _, g in pairs]
        momentum = group["momentum"]
        _C._sgd(
            params,
            grads,
            [self.state[p] for p in params] if momentum else None,
            float(group["lr"]),
            momentum,
            group["dampening"],
            group["weight_decay"],
            group["nesterov"],
            group["maximize"],
        )


class _Adams(Optimizer):
    _decoupled = False

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        amsgrad=False,
        *,
        foreach=None,
        maximize=False,
        capturable=False,
        differentiable=False,
        fused=None,
        decoupled_weight_decay=False,
    ):
        _check(lr, "Invalid learning rate")
        _check(eps, "Invalid epsilon value")
        for i in (0, 1):
            if not 0.0 <= betas[i] < 1.0:
                raise ValueError(f"Invalid beta parameter at index {i}: {betas[i]}")
        _check(weight_decay, "Invalid weight_decay value")
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay or self._decoupled,
        }
        super().__init__(params, defaults)

    def _step_group(self, group):
        params, grads, averages, squares, largest, states = [], [], [], [], [], []
        amsgrad = group["amsgrad"]
        all_state = self.state
        for p in group["params"]:
            g = p.grad
            if g is None:
                continue
            state = all_state[p]
            if not state:  # filled in one go: another thread may step too, an interrupt may come
                names = ["exp_avg", "exp_avg_sq"] + ["max_exp_avg_sq"] * amsgrad
                state.update({"step": 0.0, **{name: _zeros(p) for name in names}})
            params.append(p)
            grads.append(g)
            averages.append(state["exp_avg"])
            squares.append(state["exp_avg_sq"])
            states.append(state)
            if amsgrad:
                largest.append(state["max_exp_avg_sq"])
        if not params:
            return
        beta1, beta2 = group["betas"]
        _C._adam(
            params,
            grads,
            averages,
            squares,
            largest if amsgrad else None,
            states,
            float(group["lr"]),
            beta1,
            beta2,
            group["eps"],
            group["weight_decay"],
            group["decoupled_weight_decay"],
            group["maximize"],
        )

    def _pack(self, p, state):
        """PyTorch's form: the step is a tensor."""
        out = dict(state)
        if "step" in out and not isinstance(out["step"], Tensor):
            out["step"] = _C.tensor(out["step"], dtype=_C.float32, device="cpu")
        return out


def _zeros(p):
    return _C._full("full", p.shape, 0, p.dtype, p.device, False)


class Adam(_Adams):
    """Adam."""


class AdamW(_Adams):
    """Adam with decoupled weight decay."""

    _decoupled = True

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=1e-2,
        amsgrad=False,
        **options,
    ):
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, **options)


_core._absent(Optimizer, "torch.optim.Optimizer")
