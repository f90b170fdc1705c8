"""How tensors print: PyTorch's layout, number widths, summaries.

A tensor of more than `threshold` elements shows `edgeitems` at each end of each dimension; widths
and the choice of scientific form look at the shown elements only, as PyTorch's do.
"""

import math

from simt._core import torch as _C


class PRINT_OPTS:
    precision = 4
    threshold = 1000
    edgeitems = 3
    linewidth = 80
    sci_mode = None


_PROFILES = {
    "default": (4, 1000, 3, 80),
    "short": (2, 1000, 2, 80),
    "full": (4, math.inf, 3, 80),
}


def set_printoptions(
    precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None
):
    """Sets options for printing; profile is 'default', 'short' or 'full'."""
    if profile is not None:
        o = PRINT_OPTS
        o.precision, o.threshold, o.edgeitems, o.linewidth = _PROFILES[profile]
    given = {
        "precision": precision,
        "threshold": threshold,
        "edgeitems": edgeitems,
        "linewidth": linewidth,
    }
    for name, value in given.items():
        if value is not None:
            setattr(PRINT_OPTS, name, value)
    PRINT_OPTS.sci_mode = sci_mode


def get_printoptions():
    return {
        n: getattr(PRINT_OPTS, n)
        for n in ("precision", "threshold", "edgeitems", "linewidth", "sci_mode")
    }


class _Formatter:
    """Widths over the values shown."""

    def __init__(self, values, floating):
        self.floating = floating
        self.int_mode = True
        self.sci_mode = False
        self.max_width = 1
        precision = PRINT_OPTS.precision
        if not floating:
            for v in values:
                self.max_width = max(self.max_width, len(str(v)))
            return
        finite = [v for v in values if math.isfinite(v) and v != 0]
        if finite:
            sizes = [abs(v) for v in finite]
            largest, smallest = max(sizes), min(sizes)
            self.int_mode = all(v == math.ceil(v) for v in finite)
            wide = largest > 1.0e8
            if self.int_mode:
                self.sci_mode = largest / smallest > 1000.0 or wide
                if PRINT_OPTS.sci_mode is not None:
                    self.sci_mode = PRINT_OPTS.sci_mode
                if self.sci_mode:
                    texts = [f"{v:.{precision}e}" for v in finite]
                else:
                    texts = [f"{v:.0f}" for v in finite]
                    self.max_width = max(self.max_width, *(len(t) + 1 for t in texts))
                    texts = []
            else:
                self.sci_mode = largest / smallest > 1000.0 or wide or smallest < 1.0e-4
                if PRINT_OPTS.sci_mode is not None:
                    self.sci_mode = PRINT_OPTS.sci_mode
                form = "e" if self.sci_mode else "f"
                texts = [f"{v:.{precision}{form}}" for v in finite]
            for t in texts:
                self.max_width = max(self.max_width, len(t))
        if PRINT_OPTS.sci_mode is not None:
            self.sci_mode = PRINT_OPTS.sci_mode

    def format(self, value):
        if not self.floating:
            text = str(value)
        elif self.sci_mode:
            text = f"{{:{self.max_width}.{PRINT_OPTS.precision}e}}".format(value)
        elif self.int_mode:
            text = f"{value:.0f}"
            if math.isfinite(value):
                text += "."
        else:
            text = f"{value:.{PRINT_OPTS.precision}f}"
        return (self.max_width - len(text)) * " " + text


def _edges(tensor):
    """The corners of the tensor: what widths are taken from."""
    n = PRINT_OPTS.edgeitems
    for dim in range(tensor.dim()):
        if tensor.shape[dim] > 2 * n:
            size = tensor.shape[dim]
            tensor = _C.cat([tensor.narrow(dim, 0, n), tensor.narrow(dim, size - n, n)], dim)
    return tensor


def _vector(items, cut, indent, formatter):
    length = formatter.max_width + 2
    per_line = max(1, math.floor((PRINT_OPTS.linewidth - indent) / length))
    n = PRINT_OPTS.edgeitems
    if cut:
        data = [formatter.format(v) for v in items[:n]] + [" ..."]
        data += [formatter.format(v) for v in items[-n:]]
    else:
        data = [formatter.format(v) for v in items]
    lines = [data[i : i + per_line] for i in range(0, len(data), per_line)]
    texts = [", ".join(line) for line in lines]
    return "[" + ("," + "\n" + " " * (indent + 1)).join(texts) + "]"


def _nested(items, cuts, indent, formatter):
    """cuts: for each dimension, whether elements were left out."""
    if not cuts:
        return formatter.format(items)
    if len(cuts) == 1:
        return _vector(items, cuts[0], indent, formatter)
    n = PRINT_OPTS.edgeitems
    if cuts[0]:
        parts = [_nested(x, cuts[1:], indent + 1, formatter) for x in items[:n]] + ["..."]
        parts += [_nested(x, cuts[1:], indent + 1, formatter) for x in items[-n:]]
    else:
        parts = [_nested(x, cuts[1:], indent + 1, formatter) for x in items]
    return "[" + ("," + "\n" * (len(cuts) - 1) + " " * (indent + 1)).join(parts) + "]"


def _flat(items, depth):
    for _ in range(depth - 1):
        items = [x for part in items for x in part]
    return items if depth else [items]


def _tensor_str(tensor, indent):
    if tensor.numel() == 0:
        return "[]"
    summary = tensor.numel() > PRINT_OPTS.threshold
    shown = _edges(tensor) if summary else tensor
    cuts = [summary and n > 2 * PRINT_OPTS.edgeitems for n in tensor.shape]
    items = shown.tolist()
    formatter = _Formatter(_flat(items, tensor.dim()), tensor.dtype.is_floating_point)
    return _nested(items, cuts, indent, formatter)


def _suffixes(text, suffixes, indent, force_newline):
    out = [text]
    last = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if force_newline or last + len(suffix) + 2 > PRINT_OPTS.linewidth:
            out.append(",\n" + " " * indent + suffix)
            last = indent + len(suffix)
            force_newline = False
        else:
            out.append(", " + suffix)
            last += len(suffix) + 2
    out.append(")")
    return "".join(out)


def _str(self):
    prefix = "tensor("
    indent = len(prefix)
    suffixes = []
    plain = self.detach()
    default = plain.dtype in (_C.get_default_dtype(), _C.int64, _C.bool)
    if plain.is_meta:
        suffixes += ["device='meta'", "size=" + str(tuple(plain.shape))]
        if plain.dtype != _C.get_default_dtype():
            suffixes.append("dtype=" + str(plain.dtype))
        text = "..."
    elif plain.numel() == 0:
        if plain.dim() != 1:
            suffixes.append("size=" + str(tuple(plain.shape)))
        if plain.dtype != _C.get_default_dtype():
            suffixes.append("dtype=" + str(plain.dtype))
        text = "[]"
    else:
        if not default:
            suffixes.append("dtype=" + str(plain.dtype))
        text = _tensor_str(plain, indent)
    fn = self.grad_fn
    if fn is not None:
        suffixes.append(f"grad_fn=<{fn.name()}>")
    elif self.requires_grad:
        suffixes.append("requires_grad=True")
    text = _suffixes(prefix + text, suffixes, indent, False)
    return text
