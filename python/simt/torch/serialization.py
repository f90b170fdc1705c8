"""torch.save and torch.load: state dicts and other trees of tensors and plain values.

The file is a zip of ``simt.json`` (the structure) and ``data/<n>`` (raw little-endian elements).
Nothing
in it is executed when it is read: PyTorch's own files, which hold pickles, are refused.
"""

import os

_FORMAT = 1
_HEAD_LIMIT = 1 << 28  # bytes of simt.json


def _tree(obj, tensors, depth=0):
    from simt import torch

    if depth > 100:
        raise ValueError("torch.save: the structure is nested more than 100 levels deep")
    if isinstance(obj, torch.Tensor):
        tensors.append(obj)
        return {
            "tensor": len(tensors) - 1,
            "parameter": isinstance(obj, torch.nn.Parameter),
            "requires_grad": obj.requires_grad,
        }
    if isinstance(obj, bool) or obj is None or isinstance(obj, str):
        return obj
    if isinstance(obj, int):
        return {"int": str(obj) if -(1 << 63) <= obj < 1 << 63 else hex(obj)}
    if isinstance(obj, float):
        return {"float": obj.hex()}
    if isinstance(obj, dict):
        kind = "ordered" if type(obj).__name__ == "OrderedDict" else "dict"
        return {
            kind: [
                [_tree(k, tensors, depth + 1), _tree(v, tensors, depth + 1)] for k, v in obj.items()
            ]
        }
    if isinstance(obj, torch.Size):
        return {"size": [int(n) for n in obj]}
    if isinstance(obj, tuple):
        return {"tuple": [_tree(v, tensors, depth + 1) for v in obj]}
    if isinstance(obj, list):
        return {"list": [_tree(v, tensors, depth + 1) for v in obj]}
    if isinstance(obj, torch.dtype):
        return {"dtype": str(obj)}
    raise TypeError(
        f"torch.save: {type(obj).__name__} is not in simt yet; save a state_dict (tensors, "
        "numbers, strings, "
        "dicts, lists and tuples)"
    )


def save(obj, f, *args, **kwargs):
    """Writes obj to a path or binary file object.

    Raises:
        TypeError: obj holds something else than tensors, numbers, strings, None, dicts, lists and
        tuples.
    """
    import json
    import zipfile

    tensors = []
    tree = _tree(obj, tensors)
    described = [{"dtype": str(t.dtype), "shape": list(t.shape)} for t in tensors]
    head = json.dumps({"simt": _FORMAT, "tree": tree, "tensors": described})
    target = f
    if isinstance(f, (str, os.PathLike)):
        target = f"{os.fspath(f)}.{os.getpid()}.tmp"  # a failure leaves an old file as it was
    try:
        with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr("simt.json", head)
            for i, t in enumerate(tensors):
                archive.writestr(f"data/{i}", t.detach().cpu().contiguous()._to_bytes())
    except BaseException:
        if target is not f and os.path.exists(target):
            os.unlink(target)
        raise
    if target is not f:
        os.replace(target, f)


class _Reader:
    """Turns the described tree back into objects; every claim of the file is checked."""

    def __init__(self, archive, tensors, fail):
        self.archive = archive
        self.described = tensors
        self.fail = fail
        self.made = {}

    def tensor(self, number, node):
        from simt import torch

        if not isinstance(number, int) or not 0 <= number < len(self.described):
            self.fail(f"no tensor {number!r}")
        if number not in self.made:
            entry = self.described[number]
            dtype = getattr(torch, str(entry.get("dtype", "")).removeprefix("torch."), None)
            shape = entry.get("shape")
            if not isinstance(dtype, torch.dtype):
                self.fail(f"unknown dtype {entry.get('dtype')!r}")
            if not isinstance(shape, list) or not all(type(n) is int and n >= 0 for n in shape):
                self.fail(f"shape {shape!r}")
            size = dtype.itemsize
            for n in shape:
                size *= n
            name = f"data/{number}"
            try:
                info = self.archive.getinfo(name)
            except KeyError:
                self.fail(f"{name} is missing")
            if info.file_size != size:
                self.fail(f"{name} has {info.file_size} bytes, its tensor {size}")
            self.made[number] = torch._from_bytes(self.archive.read(name), dtype, shape)
        value, wants_grad = self.made[number], node.get("requires_grad")
        if wants_grad and not value.is_floating_point():
            self.fail(f"tensor {number} of {value.dtype} requires a gradient")
        if node.get("parameter"):
            return torch.nn.Parameter(value, requires_grad=bool(wants_grad))
        return value.requires_grad_() if wants_grad else value

    def pairs(self, body, depth):
        for pair in body:
            if not isinstance(pair, list) or len(pair) != 2:
                self.fail("a dict's entries")
            key = self.value(pair[0], depth + 1)
            try:
                hash(key)
            except TypeError:
                self.fail(f"a dict's key of {type(key).__name__}")
            yield key, self.value(pair[1], depth + 1)

    def value(self, node, depth=0):
        from collections import OrderedDict

        from simt import torch

        if depth > 220:
            self.fail("nested too deeply")
        if isinstance(node, (str, bool)) or node is None:
            return node
        if not isinstance(node, dict) or not node:
            self.fail(f"{node!r}")
        kind = next(iter(node))
        body = node[kind]
        if kind == "tensor":
            return self.tensor(body, node)
        if kind == "int" and isinstance(body, str):
            return int(body, 0)
        if kind == "float" and isinstance(body, str):
            return float.fromhex(body)
        if kind == "dtype" and isinstance(body, str):
            dtype = getattr(torch, body.removeprefix("torch."), None)
            return dtype if isinstance(dtype, torch.dtype) else self.fail(f"unknown dtype {body!r}")
        if not isinstance(body, list):
            self.fail(f"{kind!r}")
        if kind in ("dict", "ordered"):
            return (dict if kind == "dict" else OrderedDict)(self.pairs(body, depth))
        if kind == "size" and all(type(n) is int for n in body):
            return torch.Size(body)
        if kind in ("list", "tuple"):
            values = [self.value(v, depth + 1) for v in body]
            return values if kind == "list" else tuple(values)
        self.fail(f"unknown kind {kind!r}")


def _check_entries(archive, fail):
    """Entries are stored as they are and together no longer than the file, so that reading takes no
    more memory than the file has bytes, whatever it claims."""
    archive.fp.seek(0, os.SEEK_END)
    total, length = 0, archive.fp.tell()
    for info in archive.infolist():
        if info.compress_type or info.flag_bits & 1 or info.compress_size != info.file_size:
            fail(f"its entry {info.filename[:40]!r} is compressed or encrypted")
        total += info.file_size
    if total > length:
        fail(f"its entries claim {total} bytes, the file has {length}")


def load(f, map_location=None, *args, weights_only=None, **kwargs):
    """Reads what save wrote.

    Raises:
        FileNotFoundError: no such file. RuntimeError: not such a file, or damaged (nothing is
        returned then).
    """
    import json
    import zipfile
    import zlib

    if map_location is not None and str(map_location).startswith("cuda"):
        from simt import torch

        torch.device(map_location)
        torch.empty(0).to(map_location)
    name = (
        os.fspath(f) if isinstance(f, (str, os.PathLike)) else getattr(f, "name", "the file object")
    )

    def fail(what):
        raise RuntimeError(f"torch.load: {name} is damaged: {what}")

    try:
        with zipfile.ZipFile(f) as archive:
            names = archive.namelist()
            if "simt.json" not in names and any(n.endswith("data.pkl") for n in names):
                raise RuntimeError(
                    f"torch.load: {name} was written by PyTorch and holds a pickle, which simt "
                    "does not execute; save it there as safetensors or NumPy arrays"
                )
            if "simt.json" not in names:
                raise RuntimeError(f"torch.load: {name} was not written by torch.save")
            _check_entries(archive, fail)
            if archive.getinfo("simt.json").file_size > _HEAD_LIMIT:
                fail("its description is too large")
            head = json.loads(archive.read("simt.json"))
            if not isinstance(head, dict) or head.get("simt") != _FORMAT:
                raise RuntimeError(f"torch.load: {name} has an unknown format {str(head)[:40]}")
            tensors = head.get("tensors")
            if not isinstance(tensors, list) or not all(isinstance(t, dict) for t in tensors):
                fail("its list of tensors")
            return _Reader(archive, tensors, fail).value(head.get("tree"))
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        ValueError,
        OverflowError,
        RecursionError,
        NotImplementedError,
    ) as error:
        raise RuntimeError(
            f"torch.load: {name} is damaged or was not written by torch.save: {error}"
        ) from None
