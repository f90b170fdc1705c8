"""torch.save and torch.load: state dicts and other trees of tensors and plain values.

The file is a zip of ``simt.json`` (the structure) and ``data/<n>`` (raw little-endian elements).
Tensors that share memory are views of one piece, before and after. Nothing in it is executed when
it is read: PyTorch's own files, which hold pickles, are refused.
"""

import os

from simt._files import write_file

_FORMAT = 1
_HEAD_LIMIT = 1 << 28  # bytes of simt.json
_DIMENSIONS = 64
_EQUAL_HASHES = 64  # of a dict's keys: more are made to take the square of their number in time


def _tree(obj, tensors, depth=0):
    from simt import torch

    if depth > 100:
        raise ValueError("torch.save: the structure is nested more than 100 levels deep")
    if isinstance(obj, torch.Tensor):
        return {
            "tensor": tensors.setdefault(id(obj), (len(tensors), obj))[0],
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


def _described(tensors):
    """The entries of the file's list of tensors, and the tensors whose elements are its data."""
    pieces = [t.detach() for t in tensors]
    entries = [{"dtype": str(t.dtype), "shape": list(t.shape)} for t in pieces]
    for group in _overlapping(pieces):
        first = pieces[group[0]]
        start, end = first.data_ptr(), max(_span(pieces[i])[1] for i in group)
        count, size = (end - start) // first.element_size(), first.element_size()
        for i in group:
            offset = (pieces[i].data_ptr() - start) // size
            entries[i] = {
                "view": len(pieces), "offset": offset,
                "shape": list(pieces[i].shape), "stride": list(pieces[i].stride()),
            }  # fmt: skip
        entries.append({"dtype": str(first.dtype), "shape": [count]})
        pieces.append(first.as_strided((count,), (1,), first.storage_offset()))
    return entries, pieces


def _span(t):
    """The addresses of a tensor's first byte and of the byte behind its last."""
    last = sum((n - 1) * stride for n, stride in zip(t.shape, t.stride(), strict=True))
    return t.data_ptr(), t.data_ptr() + (last + 1) * t.element_size()


def _overlapping(pieces):
    """Lists of the numbers of tensors of one dtype whose memory overlaps, the first one first."""
    spans = sorted((*_span(t), i) for i, t in enumerate(pieces) if t.numel())
    groups, reach = [], 0
    for start, end, i in spans:
        if start < reach and pieces[i].dtype == pieces[groups[-1][0]].dtype:
            groups[-1].append(i)
        elif start < reach:
            continue  # seen as another dtype: a copy of its own
        else:
            groups.append([i])
        reach = max(reach, end)
    return [group for group in groups if len(group) > 1]


def save(obj, f, *args, **kwargs):
    """Writes obj to a path or binary file object.

    The file is whole, or it stays as it was: it is written beside its path and then takes its
    place, with the mode and the owner of the old one. What is no regular file (a pipe, a device)
    is written to, a symbolic link's target is the file, and a file with several hard links is
    written anew where it lies.

    Raises:
        TypeError: obj holds something else than tensors, numbers, strings, None, dicts, lists and
        tuples. OSError: the path cannot be written.
    """
    import json
    import zipfile

    tensors = {}
    tree = _tree(obj, tensors)
    described, pieces = _described([t for _, t in tensors.values()])
    head = json.dumps({"simt": _FORMAT, "tree": tree, "tensors": described})

    def write(file):
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr("simt.json", head)
            for i, t in enumerate(pieces):
                if "view" not in described[i]:
                    archive.writestr(f"data/{i}", t.cpu().contiguous()._to_bytes())

    if isinstance(f, (str, os.PathLike)):
        write_file(os.fsdecode(f), write)
    else:
        write(f)


class _Reader:
    """Turns the described tree back into objects; every claim of the file is checked."""

    def __init__(self, archive, tensors, fail):
        self.archive = archive
        self.described = tensors
        self.fail = fail
        self.pieces = {}  # number: tensor
        self.made = {}  # (number, requires_grad, parameter): tensor

    def tensor(self, number, node):
        from simt import torch

        wants_grad, parameter = bool(node.get("requires_grad")), bool(node.get("parameter"))
        if not isinstance(number, int) or not 0 <= number < len(self.described):
            self.fail(f"no tensor {number!r:.40}")
        key = number, wants_grad, parameter
        if key in self.made:  # one object before, one object after
            return self.made[key]
        value = self.piece(number)
        if wants_grad and not value.is_floating_point():
            self.fail(f"tensor {number} of {value.dtype} requires a gradient")
        if parameter:
            value = torch.nn.Parameter(value, requires_grad=wants_grad)
        elif wants_grad:
            value = value.detach().requires_grad_()
        self.made[key] = value
        return value

    def piece(self, number):
        """The tensor of an entry, without a gradient."""
        from simt import torch

        if number in self.pieces:
            return self.pieces[number]
        entry = self.described[number]
        if "view" in entry:
            self.pieces[number] = self.view(entry)
            return self.pieces[number]
        dtype = getattr(torch, str(entry.get("dtype", "")).removeprefix("torch."), None)
        if not isinstance(dtype, torch.dtype):
            self.fail(f"unknown dtype {str(entry.get('dtype')):.40}")
        name = f"data/{number}"
        try:
            info = self.archive.getinfo(name)
        except KeyError:
            self.fail(f"{name} is missing")
        size, shape = dtype.itemsize, self.sizes(entry.get("shape"))
        for n in shape:
            size *= n
        if info.file_size != size:
            self.fail(f"{name} has {info.file_size} bytes, its tensor {size}")
        self.pieces[number] = torch._from_bytes(self.archive.read(name), dtype, shape)
        return self.pieces[number]

    def view(self, entry):
        base, offset = entry["view"], entry.get("offset")
        shape, stride = self.sizes(entry.get("shape")), self.sizes(entry.get("stride"))
        if type(base) is not int or not 0 <= base < len(self.described):
            self.fail("a view of no tensor")
        if "view" in self.described[base] or len(shape) != len(stride) or type(offset) is not int:
            self.fail("a view")
        base = self.piece(base)
        last = offset + sum((n - 1) * step for n, step in zip(shape, stride, strict=True))
        if base.dim() != 1 or 0 in shape or not 0 <= offset <= last < base.shape[0]:
            self.fail("a view beyond its tensor")
        return base.as_strided(shape, stride, offset)

    def sizes(self, value):
        """A short list of counts."""
        if not isinstance(value, list) or len(value) > _DIMENSIONS:
            self.fail("a shape that is no short list")
        if not all(type(n) is int and 0 <= n < 1 << 63 for n in value):
            self.fail(f"shape {str(value):.80}")
        return value

    def pairs(self, body, depth):
        hashes = {}
        for pair in body:
            if not isinstance(pair, list) or len(pair) != 2:
                self.fail("a dict's entries")
            key = self.value(pair[0], depth + 1)
            try:
                code = hash(key)
            except TypeError:
                self.fail(f"a dict's key of {type(key).__name__}")
            hashes[code] = hashes.get(code, 0) + 1
            if hashes[code] > _EQUAL_HASHES:
                self.fail("a dict's keys have equal hashes")
            yield key, self.value(pair[1], depth + 1)

    def value(self, node, depth=0):
        from collections import OrderedDict

        from simt import torch

        if depth > 220:
            self.fail("nested too deeply")
        if isinstance(node, (str, bool)) or node is None:
            return node
        if not isinstance(node, dict) or not node:
            self.fail(f"{str(node):.40}")
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
            return (
                dtype if isinstance(dtype, torch.dtype) else self.fail(f"unknown dtype {body:.40}")
            )
        if not isinstance(body, list):
            self.fail(f"{kind:.40}")
        if kind in ("dict", "ordered"):
            return (dict if kind == "dict" else OrderedDict)(self.pairs(body, depth))
        if kind == "size":
            if len(body) > _DIMENSIONS or not all(type(n) is int for n in body):
                self.fail("a size that is no short list")
            return torch.Size(body)
        if kind in ("list", "tuple"):
            values = [self.value(v, depth + 1) for v in body]
            return values if kind == "list" else tuple(values)
        self.fail(f"unknown kind {kind:.40}")


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
