"""gradcheck: gradients against finite differences."""

from simt._core import torch as _C


def gradcheck(func, inputs, eps=1e-6, atol=1e-5, rtol=1e-3, raise_exception=True, **options):
    inputs = (inputs,) if isinstance(inputs, _C.Tensor) else tuple(inputs)

    def total():
        out = func(*inputs)
        out = out if isinstance(out, tuple) else (out,)
        return sum((o * (i + 1)).sum() for i, o in enumerate(out))

    wanted = [t for t in inputs if isinstance(t, _C.Tensor) and t.requires_grad]
    grads = _C._grad((total(),), tuple(wanted), (None,), False, False, True)
    for t, g in zip(wanted, grads, strict=False):
        flat = t.detach().view(-1)
        for i in range(flat.numel()):
            was = flat[i].item()
            values = []
            for step in (eps, -eps):
                flat[i] = was + step
                values.append(total().item())
            flat[i] = was
            numeric = (values[0] - values[1]) / (2 * eps)
            found = 0.0 if g is None else g.reshape(-1)[i].item()
            if abs(found - numeric) > atol + rtol * abs(numeric):
                if raise_exception:
                    raise RuntimeError(
                        f"Jacobian mismatch for input: numerical:{numeric} analytical:{found}"
                    )
                return False
    return True
