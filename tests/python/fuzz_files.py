"""Run as a program by test_files.py: reads mutated IDX and save files.

A file is either refused with the documented exception or gives a value that is whole. Anything else
(another exception, a signal, a hang, memory out of proportion) ends this process, which the test
sees. The last mutation's seed is on stderr; `fuzz_files.py SEED SECONDS FIRST` starts at it.
"""

import gzip
import io
import json
import os
import random
import resource
import struct
import sys
import tempfile
import time
import zipfile
from collections import OrderedDict

import simt.torch as torch
from simt.torchvision.datasets import mnist

IDX_TYPES = {8: "B", 9: "b", 0x0B: "h", 0x0C: "i", 0x0D: "f", 0x0E: "d"}
INTERESTING = [0, 1, 2, 127, 128, 255, 0x7F, 0xFFFF, 1 << 31, (1 << 32) - 1, 1 << 20, 1 << 30]


def idx_file(draw):
    code = draw.choice(list(IDX_TYPES))
    shape = [draw.choice([0, 1, 2, 3, 5, 28]) for _ in range(draw.choice([1, 1, 2, 3, 3, 4]))]
    count = 1
    for n in shape:
        count *= n
    items = count * struct.calcsize(IDX_TYPES[code])
    return struct.pack(f">BBBB{len(shape)}I", 0, 0, code, len(shape), *shape) + draw.randbytes(
        items
    )


def save_file(draw):
    shared = torch.arange(12.0).reshape(3, 4)
    tree = {
        "views": [shared, shared.t(), shared[1:, ::2], shared[0].expand(2, 4), shared],
        "model": OrderedDict(
            weight=torch.arange(6.0).reshape(2, 3), bias=torch.nn.Parameter(torch.zeros(2))
        ),
        "epoch": 3, "big": 1 << 70, "rate": 0.1, "name": "x", "none": None, "yes": True,
        "more": [torch.tensor([1, 2, 3]), (torch.tensor(True), torch.Size([1, 2])), torch.float16],
        "empty": torch.zeros(0, 3), 5: torch.arange(4, dtype=torch.uint8),
    }  # fmt: skip
    file = io.BytesIO()
    torch.save(tree, file)
    return file.getvalue()


def change_bytes(data, draw):
    """One or a few small changes, as a bad disk or an attacker would make them."""
    data = bytearray(data)
    for _ in range(draw.choice([1, 1, 1, 2, 4])):
        at = draw.randrange(len(data) + 1)
        kind = draw.randrange(8)
        if kind == 0:
            del data[at:]
        elif kind == 1:
            data[at:at] = draw.randbytes(draw.choice([1, 2, 4, 100]))
        elif kind == 2:
            data += draw.randbytes(draw.choice([1, 7, 1000]))
        elif kind == 3:
            del data[at : at + draw.choice([1, 2, 4, 50])]
        elif kind == 4:
            data[at : at + 1] = bytes([draw.randrange(256)])
        elif kind == 5:
            size, order = draw.choice([1, 2, 4, 8]), draw.choice(["little", "big"])
            value = draw.choice(INTERESTING) + draw.choice([-1, 0, 0, 1])
            data[at : at + size] = (value % (1 << 8 * size)).to_bytes(size, order)
        elif kind == 6 and at < len(data):
            data[at] ^= 1 << draw.randrange(8)
        else:
            start = draw.randrange(len(data) + 1)
            data[at:at] = data[start : start + draw.choice([4, 16, 200])]
        data = data or bytearray(b"\0")
    return bytes(data)


def change_tree(node, draw):
    """The JSON value with some of its parts replaced."""
    if draw.random() < 0.08:
        return draw.choice([
            None, 0, -1, 1 << 40, 1 << 70, 1.5, "", "torch.float64", "torch.nn", [], [[]], {}, True,
            {"tensor": 0}, {"tensor": -1}, {"tensor": 99}, {"tensor": "0"}, {"tensor": 1.0},
            {"int": "9" * 5000}, {"int": "0x"}, {"float": "0x1p99999"}, {"float": "inf"},
            {"list": {}}, {"dict": [[{"list": []}, 1]]}, {"dict": [[1]]}, {"size": [-1]},
            {"size": [1 << 70]}, {"dtype": "torch.save"}, {"dtype": []}, {"unknown": 1},
            {"tensor": 0, "parameter": True, "requires_grad": True}, [-1], [1 << 62, 4],
            [0, 1 << 70], [1] * 70, {"tensor": 2, "requires_grad": True}, 2, 11, 12, 13,
            {"view": 0, "offset": 0, "shape": [1], "stride": [1]}, {"view": 9, "offset": 11},
        ])  # fmt: skip
    if isinstance(node, dict):
        return {k: change_tree(v, draw) for k, v in node.items()}
    if isinstance(node, list):
        return [change_tree(v, draw) for v in node]
    return node


def change_zip(data, draw):
    """The archive written anew with another description, entries left out, doubled or resized."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(made, "w") as new:
        for info in old.infolist():
            body = old.read(info)
            if info.filename == "simt.json":
                body = json.dumps(change_tree(json.loads(body), draw)).encode()
            elif draw.random() < 0.1:
                body = draw.choice([b"", body[:-1], body + b"x", draw.randbytes(len(body))])
            if draw.random() < 0.02:
                continue
            packing = zipfile.ZIP_DEFLATED if draw.random() < 0.02 else zipfile.ZIP_STORED
            new.writestr(info.filename, body, packing)
    return made.getvalue()


def check_whole(value):
    """Looks at every element of every tensor."""
    if isinstance(value, torch.Tensor):
        assert len(value.detach().numpy().tobytes()) == value.numel() * value.element_size()
        if value.dtype == torch.bool:
            assert max(value.detach().numpy().view("u1").ravel().tolist(), default=0) <= 1
    elif isinstance(value, dict):
        for k, v in value.items():
            check_whole(k), check_whole(v)
    elif isinstance(value, (list, tuple)):
        for v in value:
            check_whole(v)


def one_idx(seed, folder):
    draw = random.Random(seed)
    data = idx_file(draw)
    packed = draw.random() < 0.4
    if packed and draw.random() < 0.5:  # a right archive of a wrong file
        data = gzip.compress(change_bytes(data, draw), 1)
    else:
        data = change_bytes(gzip.compress(data, 1) if packed else data, draw)
    path = os.path.join(folder, "x.gz" if packed else "x")
    with open(path, "wb") as file:
        file.write(data)
    try:
        tensor = mnist._tensor(path)
    except ValueError as e:
        assert path in str(e), e
        return False
    check_whole(tensor)
    return True


def one_save(seed, good):
    draw = random.Random(seed)
    data = change_zip(good, draw) if draw.random() < 0.5 else change_bytes(good, draw)
    try:
        value = torch.load(io.BytesIO(data))
    except RuntimeError as e:
        assert "torch.load" in str(e), e
        return False
    check_whole(value)
    return True


def main(seed, seconds, first=0):
    if "SIMT_SANITIZE" not in os.environ:
        resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
    end, count, accepted = time.monotonic() + seconds, first, 0
    good = save_file(random.Random(seed))
    check_whole(torch.load(io.BytesIO(good)))
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < end or count < first + 30:
            print(count, file=sys.stderr, flush=True)
            accepted += one_idx(f"{seed} {count}", folder)
            accepted += one_save(f"{seed} {count}", good)
            count += 1
    print(2 * (count - first), accepted)


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), *map(int, sys.argv[3:]))
