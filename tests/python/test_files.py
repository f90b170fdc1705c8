"""Files from outside: IDX and save files that are not what they should be."""

import builtins
import gzip
import io
import json
import os
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import simt.torch as torch
from simt import _files
from simt.torchvision.datasets import MNIST, FashionMNIST

NAMES = {
    "images": "t10k-images-idx3-ubyte", "labels": "t10k-labels-idx1-ubyte",
    "train_images": "train-images-idx3-ubyte", "train_labels": "train-labels-idx1-ubyte",
}  # fmt: skip


def idx(array, code=8, shape=None, dims=None):
    shape = array.shape if shape is None else shape
    head = struct.pack(">BBBB", 0, 0, code, len(shape) if dims is None else dims)
    return head + struct.pack(f">{len(shape)}I", *shape) + array.tobytes()


IMAGES = np.arange(5 * 28 * 28, dtype=np.uint8).reshape(5, 28, 28)
LABELS = np.array([3, 1, 4, 1, 5], np.uint8)


@pytest.fixture
def root(tmp_path):
    """A folder with small, right FashionMNIST files."""
    raw = tmp_path / "FashionMNIST" / "raw"
    raw.mkdir(parents=True)
    for kind, name in NAMES.items():
        (raw / name).write_bytes(idx(IMAGES if "images" in kind else LABELS))
    return tmp_path


def place(root, kind, data, packed=False):
    path = root / "FashionMNIST" / "raw" / NAMES[kind]
    path.unlink()
    path = path.with_name(path.name + ".gz") if packed else path
    path.write_bytes(data)
    return path


def test_right_files(root):
    for packed in (False, True):
        for train in (False, True):
            data = FashionMNIST(root, train=train)
            np.testing.assert_array_equal(data.data.numpy(), IMAGES)
            assert data.targets.tolist() == LABELS.tolist()
            assert data.targets.dtype == torch.int64
        for kind in NAMES if not packed else ():
            content = idx(IMAGES if "images" in kind else LABELS)
            place(root, kind, gzip.compress(content) + bytes(100), True)  # padded, as tapes are


GOOD = idx(IMAGES)
BAD_IMAGES = {
    "empty": (b"", "only 0 bytes"),
    "three bytes": (GOOD[:3], "only 3 bytes"),
    "header cut": (GOOD[:10], "cut short"),
    "data cut": (GOOD[:-1], "cut short"),
    "data missing": (GOOD[:16], "cut short"),
    "a byte more": (GOOD + b"x", "too long"),
    "twice": (GOOD + GOOD, "too long"),
    "magic": (b"\1" + GOOD[1:], "not an IDX file"),
    "text": (b"<html>not found</html>", "not an IDX file"),
    "type": (idx(IMAGES, code=7), "element type 0x07"),
    "wider type": (idx(IMAGES, code=0x0C), "cut short"),
    "no dimensions": (idx(IMAGES, dims=0), "0 dimensions"),
    "255 dimensions": (idx(IMAGES, dims=255), "255 dimensions"),
    "huge dimensions": (idx(IMAGES, shape=(2**32 - 1,) * 3), "shape"),
    "huge product": (idx(IMAGES, shape=(2**31, 2**31, 2)), "shape"),
    "more than a machine has": (idx(IMAGES, shape=(2**20, 2**20, 1)), "cut short|declares"),
    "zero images of huge size": (idx(IMAGES, shape=(0, 2**32 - 1, 2**32 - 1)), "too long|shape"),
    "two dimensions": (idx(IMAGES.reshape(5, 784)), "three dimensions"),
    "floats": (idx(IMAGES.astype(">f4"), code=0x0D), "three dimensions"),
    "other count": (idx(IMAGES[:4]), "4 images need as many"),
    "transposed": (idx(IMAGES, shape=(28, 28, 5)), "28 images need"),
}


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gz"])
@pytest.mark.parametrize("case", BAD_IMAGES)
def test_bad_images(root, case, packed):
    data, words = BAD_IMAGES[case]
    path = place(root, "images", gzip.compress(data) if packed else data, packed)
    with pytest.raises(ValueError, match=words) as e:
        FashionMNIST(root, train=False)
    folder = str(root / "FashionMNIST" / "raw")
    assert str(path) in str(e.value) or folder in str(e.value)
    assert len(FashionMNIST(root, train=True)) == 5  # the other part is as it was


@pytest.mark.parametrize(
    "labels",
    [idx(LABELS[:4]), idx(LABELS.reshape(5, 1)), idx(LABELS.astype(">i4"), code=0x0C), b"\0\0"],
)
def test_bad_labels(root, labels):
    path = place(root, "labels", labels)
    with pytest.raises(ValueError, match="labels|only 2 bytes") as e:
        FashionMNIST(root, train=False)
    assert str(path) in str(e.value)


PACKED = gzip.compress(GOOD)
BAD_ARCHIVES = {
    "cut": (PACKED[:-20], "cut short"),
    "head only": (PACKED[:10], "only 0 bytes"),
    "sum": (PACKED[:-8] + bytes(8), "damaged"),
    "header": (PACKED[:3] + b"\xff" + PACKED[4:], "damaged|cut short|only 0"),
    "middle": (PACKED[:40] + b"\xff" * 40 + PACKED[80:], "damaged|too long|cut short"),
    "trailing": (PACKED + b"x", "1 bytes follow"),
    "two members": (PACKED + PACKED, "bytes follow"),
    "no archive": (b"PK\3\4", "not an IDX"),
}


@pytest.mark.parametrize("case", BAD_ARCHIVES)
def test_bad_archives(root, case):
    data, words = BAD_ARCHIVES[case]
    path = place(root, "images", data, packed=True)
    with pytest.raises(ValueError, match=words) as e:
        FashionMNIST(root, train=False)
    assert str(path) in str(e.value)


PEAK = """
import resource, sys
from simt.torchvision.datasets import FashionMNIST
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    FashionMNIST(sys.argv[1], train=False)
except ValueError as e:
    print(e)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def test_an_archive_that_unpacks_to_much_more_takes_no_memory(root):
    path = place(root, "images", gzip.compress(GOOD + bytes(300 << 20), 1), packed=True)
    assert path.stat().st_size < 3 << 20
    run = subprocess.run([sys.executable, "-c", PEAK, str(root)], capture_output=True, text=True)
    assert "too long" in run.stdout, run.stderr
    assert int(run.stdout.split()[-1]) < 50  # MiB


def test_folders_and_unreadable_files(root, monkeypatch):
    path = root / "FashionMNIST" / "raw" / NAMES["images"]
    path.unlink()
    path.mkdir()
    with pytest.raises(RuntimeError, match="Dataset not found"):
        FashionMNIST(root, train=False)
    path.rmdir()
    path.write_bytes(GOOD)
    true_open = builtins.open

    def refuse(file, *args, **kwargs):
        if str(file) == str(path):
            raise PermissionError(13, "Permission denied", str(file))
        return true_open(file, *args, **kwargs)

    monkeypatch.setattr(builtins, "open", refuse)
    with pytest.raises(PermissionError, match=NAMES["images"]):
        FashionMNIST(root, train=False)


def test_a_download_that_fails_leaves_no_part(tmp_path, root, monkeypatch):
    """From a folder of files of which one is damaged."""
    for kind in NAMES:
        place(root, kind, PACKED if "images" in kind else gzip.compress(idx(LABELS)), packed=True)
    third = root / "FashionMNIST" / "raw" / (NAMES["images"] + ".gz")
    third.write_bytes(PACKED[:-20])
    monkeypatch.setenv("SIMT_DATA", str(root))
    mine = tmp_path / "mine"
    with pytest.raises(ValueError, match="cut short"):
        FashionMNIST(mine, download=True)
    left = sorted(p.name for p in (mine / "FashionMNIST" / "raw").iterdir())
    assert not any(name.startswith(NAMES["images"]) or ".tmp" in name for name in left)
    third.write_bytes(PACKED)
    assert len(FashionMNIST(mine, train=False, download=True)) == 5


def test_dataset_arguments(tmp_path, root):
    with pytest.raises(RuntimeError, match="Dataset not found. You can use download=True"):
        MNIST(tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()
    for bad in (None, 3):
        with pytest.raises((TypeError, RuntimeError)):
            MNIST(bad)
    data = FashionMNIST(root, train=False, download=True)  # the files are there
    assert data[-1][1] == 5
    for index in (5, -6, 10**6):
        with pytest.raises(IndexError):
            data[index]
    for index in ("a", 0.5, object()):
        with pytest.raises((IndexError, TypeError, RuntimeError)):
            data[index]
    with pytest.raises(TypeError):
        FashionMNIST(root, transform=3)[0]
    with pytest.raises(TypeError):
        FashionMNIST(root, target_transform="a")[0]
    blocked = tmp_path / "file"
    blocked.write_text("x")
    with pytest.raises(OSError):
        MNIST(blocked, download=True)


# ---- save files ----


def archive_of(head, entries=(), packing=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", packing) as archive:
        if head is not None:
            archive.writestr(
                "simt.json", head if isinstance(head, (str, bytes)) else json.dumps(head)
            )
        for name, data in entries:
            archive.writestr(name, data)
    return file.getvalue()


def one_tensor(dtype="torch.float32", shape=(2,), node=None):
    described = {"dtype": dtype, "shape": list(shape) if isinstance(shape, tuple) else shape}
    return {"simt": 1, "tree": node or {"tensor": 0}, "tensors": [described]}


EIGHT = [("data/0", bytes(8))]
BAD_SAVES = {
    "empty": b"",
    "text": b"hello" * 100,
    "no description": archive_of(None, EIGHT),
    "not json": archive_of("{"),
    "json of another kind": archive_of([1]),
    "unknown format": archive_of({"simt": 99, "tree": None, "tensors": []}),
    "no tensors": archive_of({"simt": 1, "tree": {"tensor": 0}}),
    "tensors of a kind": archive_of({"simt": 1, "tree": None, "tensors": [1]}),
    "bad text": archive_of(b'{"simt": 1, "tree": "\xff\xfe"}'),
    "missing storage": archive_of(one_tensor()),
    "shape beyond the storage": archive_of(one_tensor(shape=(3,)), EIGHT),
    "shape before the end": archive_of(one_tensor(shape=(1,)), EIGHT),
    "huge shape": archive_of(one_tensor(shape=(2**62, 4)), EIGHT),
    "huge empty shape": archive_of(one_tensor(shape=(0, 2**80)), [("data/0", b"")]),
    "negative shape": archive_of(one_tensor(shape=(-1, -2)), EIGHT),
    "boolean shape": archive_of(one_tensor(shape=[True, 2]), EIGHT),
    "shape of a kind": archive_of(one_tensor(shape="2"), EIGHT),
    "many dimensions": archive_of(one_tensor(shape=(1,) * 70 + (2,)), EIGHT),
    "unknown dtype": archive_of(one_tensor("torch.complex1"), EIGHT),
    "dtype that is something else": archive_of(one_tensor("torch.save"), EIGHT),
    "booleans of 2": archive_of(one_tensor("torch.bool"), [("data/0", b"\1\2")]),
    "no such tensor": archive_of(one_tensor(node={"tensor": 7}), EIGHT),
    "tensor of a name": archive_of(one_tensor(node={"tensor": "0"}), EIGHT),
    "gradient of integers": archive_of(
        one_tensor("torch.int32", node={"tensor": 0, "requires_grad": True}), EIGHT
    ),
    "unhashable key": archive_of(one_tensor(node={"dict": [[{"list": []}, None]]})),
    "entries of a dict": archive_of(one_tensor(node={"dict": [[1, 2, 3]]})),
    "float too large": archive_of(one_tensor(node={"float": "0x1p99999"})),
    "int of letters": archive_of(one_tensor(node={"int": "12x"})),
    "unknown kind": archive_of(one_tensor(node={"call": ["os.system", "true"]})),
    "deep": archive_of(
        '{"simt": 1, "tensors": [], "tree": ' + '{"list": [' * 5000 + "]}" * 5000 + "}"
    ),
    "compressed": archive_of(
        one_tensor(shape=(1 << 20,)), [("data/0", bytes(4 << 20))], zipfile.ZIP_DEFLATED
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_SAVES)
def test_bad_saves(case, tmp_path):
    path = tmp_path / "bad.pt"
    path.write_bytes(BAD_SAVES[case])
    with pytest.raises(RuntimeError, match="torch.load: .*bad.pt"):
        torch.load(path)


def good_save():
    file = io.BytesIO()
    torch.save({"w": torch.arange(6.0).reshape(2, 3), "n": 1 << 90}, file)
    return file.getvalue()


def test_every_truncation_of_a_save_file():
    data = good_save()
    for length in range(len(data)):
        with pytest.raises(RuntimeError, match="torch.load"):
            torch.load(io.BytesIO(data[:length]))
    assert torch.load(io.BytesIO(data))["n"] == 1 << 90
    np.testing.assert_array_equal(
        torch.load(io.BytesIO(data))["w"].numpy(), np.arange(6.0).reshape(2, 3)
    )


def test_damage_in_a_tensors_bytes_is_seen():
    data = bytearray(good_save())
    at = data.index(struct.pack("<6f", *range(6)))
    data[at + 3] ^= 1
    with pytest.raises(RuntimeError, match="CRC|damaged"):
        torch.load(io.BytesIO(data))


def test_entries_that_share_their_bytes():
    """Many directory entries on one piece of the file would multiply it in memory."""
    count, size = 200, 1 << 16
    head = {"simt": 1, "tree": {"list": [{"tensor": i} for i in range(count)]}}
    head["tensors"] = [{"dtype": "torch.uint8", "shape": [size]}] * count
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("simt.json", json.dumps(head))
        archive.writestr("data/0", bytes(size))
        first = archive.getinfo("data/0")
        for i in range(1, count):
            clone = zipfile.ZipInfo(f"data/{i}")
            for field in ("CRC", "compress_size", "file_size", "header_offset"):
                setattr(clone, field, getattr(first, field))
            archive.filelist.append(clone)
            archive.NameToInfo[clone.filename] = clone
    with pytest.raises(RuntimeError, match="claim"):
        torch.load(io.BytesIO(file.getvalue()))


class Bomb:
    def __reduce__(self):
        return (os.mkdir, ("executed",))


def test_pickles_are_never_executed(tmp_path, monkeypatch):
    import pickle

    monkeypatch.chdir(tmp_path)
    pickled = pickle.dumps(Bomb())
    files = {
        "archive.pt": archive_of(None, [("archive/data.pkl", pickled), ("archive/data/0", b"")]),
        "both.pt": archive_of(one_tensor(), [("data.pkl", pickled), ("data/0", pickled[:8])]),
        "legacy.pt": pickled,
    }
    for name, data in files.items():
        Path(name).write_bytes(data)
        try:
            torch.load(name, weights_only=False)
        except RuntimeError as e:
            assert name in str(e)
    assert not Path("executed").exists()


def test_what_is_no_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere.pt"):
        torch.load(tmp_path / "nowhere.pt")
    with pytest.raises(IsADirectoryError):
        torch.load(tmp_path)
    for bad in (None, 3, object()):
        with pytest.raises((TypeError, AttributeError)):
            torch.load(bad)


def test_a_save_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "model.pt"
    torch.save({"a": torch.ones(2)}, path)
    before = path.read_bytes()
    deep = []
    for _ in range(200):
        deep = [deep]
    for bad in ({"f": open}, {"x": deep}, {"s": {1, 2}}):
        with pytest.raises((TypeError, ValueError), match="torch.save"):
            torch.save(bad, path)

    def full(archive, name, data):
        if name == "data/1":
            raise OSError(28, "No space left on device")
        true_write(archive, name, data)

    true_write = zipfile.ZipFile.writestr
    monkeypatch.setattr(zipfile.ZipFile, "writestr", full)
    with pytest.raises(OSError, match="No space"):
        torch.save({"a": torch.ones(9), "b": torch.ones(3)}, path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["model.pt"]


def test_a_state_of_another_model_changes_nothing():
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 1))
    before = {k: v.clone() for k, v in model.state_dict().items()}
    good = {k: v + 1 for k, v in before.items()}
    for change in ({"1.bias": torch.zeros(2)}, {"1.bias": None}, {"other": torch.zeros(1)}):
        with pytest.raises(RuntimeError, match=next(iter(change))):
            model.load_state_dict({**good, **change})
    with pytest.raises(RuntimeError, match="1.bias"):
        model.load_state_dict({k: v for k, v in good.items() if k != "1.bias"})
    for k, v in model.state_dict().items():
        assert torch.equal(v, before[k])


def test_mutated_files():
    """In a process of its own: a crash or a hang there is this test's failure."""
    program = Path(__file__).with_name("fuzz_files.py")
    command = [sys.executable, "-X", "faulthandler", str(program), "1", "2"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert run.returncode == 0, run.stderr[-3000:]
    assert int(run.stdout.split()[0]) >= 60


@pytest.mark.parametrize("n", [0, 1, 11, 12, 13, 5000])
def test_idx_files_of_all_types_and_lengths(tmp_path, n):
    from simt.torchvision.datasets import mnist

    path = tmp_path / "numbers"
    types = {8: "u1", 9: "i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}
    for code, kind in types.items():
        want = np.arange(n * 5).astype(kind).reshape(n, 5)
        path.write_bytes(idx(want, code))
        assert np.array_equal(mnist._tensor(str(path)).numpy(), want)
        path.write_bytes(idx(want, code) + b"x")
        with pytest.raises(ValueError, match="too long"):
            mnist._tensor(str(path))


@pytest.mark.parametrize("before", [None, b"old"])
def test_an_interrupt_after_any_call_leaves_no_other_file(tmp_path, before):
    """Python looks for signals where a call has ended: each of them once."""
    path = tmp_path / "file"
    inside = {f.__code__ for f in vars(_files).values() if hasattr(f, "__code__")}

    def profile(frame, event, argument):
        if event == "c_return" and frame.f_code in inside:
            profile.left -= 1
            if profile.left == 0:
                sys.setprofile(None)
                raise KeyboardInterrupt

    for moment in range(1, 1000):
        path.unlink(missing_ok=True)
        if before is not None:
            path.write_bytes(before)
        profile.left = moment
        try:
            sys.setprofile(profile)
            _files.write_bytes(str(path), b"new")
            sys.setprofile(None)
            break
        except KeyboardInterrupt:
            pass
        finally:
            sys.setprofile(None)
        found = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
        assert found in ({}, {"file": before}, {"file": b"new"}), (moment, found)
    assert moment > 5 and path.read_bytes() == b"new"
