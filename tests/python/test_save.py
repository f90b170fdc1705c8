"""torch.save: where it writes, what it leaves there, and what of the tensors' memory is kept."""

import io
import json
import os
import pickle
import stat
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest
import simt.torch as torch
from simt import _files

OLD, NEW = {"a": torch.ones(2)}, {"a": torch.arange(3)}


def load(path):
    return torch.load(path)["a"].tolist()


@pytest.fixture
def path(tmp_path):
    """A file that was saved before; nothing but it and what the test names is left beside it."""
    path = tmp_path / "model.pt"
    torch.save(OLD, path)
    yield path
    assert not [p.name for p in tmp_path.iterdir() if p.name.startswith(".")]


def test_new_files_have_the_mode_that_open_gives(tmp_path):
    mask = os.umask(0o027)
    try:
        torch.save(NEW, tmp_path / "a.pt")
        open(tmp_path / "b", "wb").close()
    finally:
        os.umask(mask)
    assert (tmp_path / "a.pt").stat().st_mode == (tmp_path / "b").stat().st_mode
    assert sorted(os.listdir(tmp_path)) == ["a.pt", "b"]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o777, 0o200])
def test_mode_is_kept(path, mode):
    path.chmod(mode)
    torch.save(NEW, path)
    assert stat.S_IMODE(path.stat().st_mode) == mode
    path.chmod(0o600)
    assert load(path) == [0, 1, 2]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_owner_is_kept(path):
    os.chown(path, 1234, 2345)
    torch.save(NEW, path)
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 2345) and load(path) == [0, 1, 2]


def test_extended_attributes_are_kept(path):
    try:
        os.setxattr(path, "user.note", b"mine")
    except OSError:
        pytest.skip("the file system has none")
    torch.save(NEW, path)
    assert os.getxattr(path, "user.note") == b"mine" and load(path) == [0, 1, 2]


def as_another_user(action):
    """Runs the action in a child without root's rights; its exception's type and file, or None."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setgid(4321)
                os.setuid(4321)
            action()
            text = "None"
        except BaseException as error:
            text = f"{type(error).__name__} {getattr(error, 'filename', error)}"
        os.write(write, text.encode())
        os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    with open(read) as file:
        return file.read()


@pytest.fixture
def foreign(tmp_path_factory):
    """A folder and a file in it that another user may reach."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        path = os.path.join(folder, "model.pt")
        torch.save(OLD, path)
        yield path
        os.chmod(folder, 0o777)


def test_a_file_that_may_not_be_written(foreign):
    os.chmod(foreign, 0o444)
    assert as_another_user(lambda: torch.save(NEW, foreign)) == f"PermissionError {foreign}"
    assert load(foreign) == [1, 1] and os.listdir(os.path.dirname(foreign)) == ["model.pt"]


def test_a_folder_that_may_not_be_written(foreign):
    """The file can be: it is, where it lies."""
    folder = os.path.dirname(foreign)
    os.chmod(foreign, 0o666)
    os.chmod(folder, 0o555)
    assert as_another_user(lambda: torch.save(NEW, foreign)) == "None"
    assert load(foreign) == [0, 1, 2] and os.listdir(folder) == ["model.pt"]
    new = os.path.join(folder, "new.pt")
    assert as_another_user(lambda: torch.save(NEW, new)) == f"PermissionError {new}"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_foreign_file_in_an_own_folder(foreign):
    """Its owner cannot be given to a new file: it is written where it lies."""
    os.chmod(foreign, 0o666)
    assert as_another_user(lambda: torch.save(NEW, foreign)) == "None"
    assert os.stat(foreign).st_uid == os.geteuid() and load(foreign) == [0, 1, 2]
    assert os.listdir(os.path.dirname(foreign)) == ["model.pt"]


def test_symbolic_links(path):
    folder = path.parent
    (folder / "deep").mkdir()
    (folder / "latest.pt").symlink_to("deep/link.pt")
    (folder / "deep" / "link.pt").symlink_to("../model.pt")
    torch.save(NEW, folder / "latest.pt")
    assert (folder / "latest.pt").is_symlink() and (folder / "deep" / "link.pt").is_symlink()
    assert load(path) == [0, 1, 2]
    (folder / "dangling.pt").symlink_to("deep/made.pt")
    torch.save(OLD, folder / "dangling.pt")
    assert load(folder / "deep" / "made.pt") == [1, 1] and (folder / "dangling.pt").is_symlink()
    (folder / "round.pt").symlink_to("round.pt")
    with pytest.raises(OSError, match="round.pt"):
        torch.save(OLD, folder / "round.pt")


def test_hard_links(path):
    other = path.with_name("other.pt")
    os.link(path, other)
    torch.save({"a": torch.arange(100)}, path)
    assert load(other) == list(range(100)) and path.samefile(other)
    torch.save(NEW, other)
    assert load(path) == [0, 1, 2]


def test_a_pipe(path):
    fifo = path.with_name("fifo")
    os.mkfifo(fifo)
    got = []
    reader = threading.Thread(target=lambda: got.append(fifo.read_bytes()))
    reader.start()
    torch.save(NEW, fifo)
    reader.join()
    assert stat.S_ISFIFO(fifo.stat().st_mode) and load(io.BytesIO(got[0])) == [0, 1, 2]


def test_devices_and_descriptors(tmp_path):
    torch.save(NEW, "/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    program = "import simt.torch as t, sys; t.save({'a': t.arange(3)}, '/dev/stdout')"
    with open(tmp_path / "out", "wb") as file:
        subprocess.run([sys.executable, "-c", program], stdout=file, check=True)
        assert os.fstat(file.fileno()).st_ino == (tmp_path / "out").stat().st_ino
    run = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=True)
    assert load(tmp_path / "out") == load(io.BytesIO(run.stdout)) == [0, 1, 2]


def test_what_is_no_path_for_a_file(tmp_path):
    for bad, error in [
        (tmp_path, IsADirectoryError), (f"{tmp_path}/new/", IsADirectoryError),
        ("", FileNotFoundError), (tmp_path / "no" / "a.pt", FileNotFoundError),
        (tmp_path / ("n" * 300), OSError),
    ]:  # fmt: skip
        with pytest.raises(error) as caught:
            torch.save(OLD, bad)
        assert caught.value.filename in (bad, str(bad))
    assert os.listdir(tmp_path) == []


def test_long_names(tmp_path):
    for name in ("n" * 255, "\u00e9" * 127, "\u4e2d" * 85):
        torch.save(NEW, tmp_path / name)
        assert load(tmp_path / name) == [0, 1, 2]
        torch.save(OLD, tmp_path / name)
        assert load(tmp_path / name) == [1, 1]


def test_names_of_unfinished_files_are_taken_by_nobody(path, monkeypatch):
    """Names that are there, also as links, are left alone."""
    victim = path.with_name("victim")
    victim.write_text("precious")
    taken = [path.with_name(f".model.pt.{bytes([i]).hex() * 8}.tmp") for i in range(3)]
    taken[0].symlink_to(victim)
    taken[1].write_text("mine")
    taken[2].mkdir()
    true_random, numbers = os.urandom, iter(range(9))
    monkeypatch.setattr(_files.os, "urandom", lambda n: bytes([next(numbers)]) * n)
    torch.save(NEW, path)
    monkeypatch.setattr(_files.os, "urandom", true_random)
    assert load(path) == [0, 1, 2] and victim.read_text() == "precious"
    assert taken[1].read_text() == "mine" and taken[0].is_symlink()
    taken[2].rmdir(), taken[1].unlink(), taken[0].unlink()


def test_a_file_that_is_written_where_it_lies_survives_a_full_disk(path, monkeypatch):
    os.link(path, path.with_name("other.pt"))
    before = path.read_bytes()

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_files.os, "posix_fallocate", full)
    with pytest.raises(OSError, match="No space"):
        torch.save({"a": torch.ones(1000)}, path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("processes", [False, True])
def test_many_write_one_path(path, processes):
    """A reader sees whole files only, each of one writer."""
    done = threading.Event()
    bad = []

    def read():
        while not done.is_set():
            values = torch.load(path)["a"]
            if len(values) > 3 and int(values.min()) != int(values.max()):
                bad.append(values)

    def write(number):
        for _ in range(15):
            torch.save({"a": torch.full((2000 * number + 100,), number)}, path)

    reader = threading.Thread(target=read)
    reader.start()
    writers = []
    if processes:
        for number in range(2):
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    write(number)
                    code = 0
                finally:
                    os._exit(code)
            writers.append(child)
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in writers]
        assert codes == [0, 0]
    else:
        writers = [threading.Thread(target=write, args=(number,)) for number in range(3)]
        for thread in writers:
            thread.start()
        for thread in writers:
            thread.join()
    done.set()
    reader.join()
    assert not bad


ODD_TENSORS = [
    torch.ones(2).bfloat16(), torch.ones(2).half(), torch.tensor(True), torch.ones(3, 2).t(),
    torch.zeros(0, 3), torch.nn.Parameter(torch.arange(2.0)), torch.arange(8)[::3],
    torch.ones(2, requires_grad=True), torch.tensor(3, dtype=torch.uint8).expand(4),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(ODD_TENSORS)))
def test_tensors_of_all_kinds(case):
    """Saved, pickled, and sent by a worker of a DataLoader."""
    tensor = ODD_TENSORS[case]
    loader = torch.utils.data.DataLoader([tensor], batch_size=None, num_workers=1)
    for got in (again(tensor), pickle.loads(pickle.dumps(tensor)), *loader):
        assert torch.equal(got.detach(), tensor.detach()) and got.dtype == tensor.dtype
        assert got.requires_grad == tensor.requires_grad and type(got) is type(tensor)
        assert got.shape == tensor.shape


# ---- memory that tensors share ----


def again(value):
    file = io.BytesIO()
    torch.save(value, file)
    return torch.load(file)


def test_one_tensor_twice_is_one():
    x = torch.ones(2)
    p = torch.nn.Parameter(torch.ones(2))
    a, b, c, d = again([x, x, p, {"p": p}])
    assert a is b and c is d["p"] and c is not a and isinstance(c, torch.nn.Parameter)
    a[0] = 5
    assert b.tolist() == [5, 1] and c.tolist() == [1, 1]


def test_views_of_one_memory():
    x = torch.arange(24.0).reshape(4, 6)
    made = [
        x[1],
        x,
        x.t(),
        x[1:3, ::2],
        x[3, 5],
        x.view(-1)[4:9],
        x[0].expand(3, 6),
        torch.zeros(2),
    ]
    wanted = [t.numpy().copy() for t in made]
    loaded = again(made)
    for got, want in zip(loaded, wanted, strict=True):
        assert np.array_equal(got.numpy(), want)
    loaded[1].mul_(2)
    for got, want in zip(loaded[:-1], wanted, strict=False):
        assert np.array_equal(got.numpy(), want * 2)
    assert [got.stride() for got in loaded] == [t.stride() for t in made]


def test_what_does_not_overlap_stays_small():
    x = torch.arange(100000.0)
    file = io.BytesIO()
    torch.save([x[:10], x[50000:50010], x[99990:]], file)
    assert file.tell() < 2000
    torch.save(x[:10], small := io.BytesIO())
    assert small.tell() < 1000


def test_tied_weights():
    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
            self.last.weight = self.first.weight

    state = again(Tied().state_dict())
    state["first.weight"][0, 0] = 7
    assert state["last.weight"][0, 0] == 7
    model = Tied()
    model.load_state_dict(state)
    assert model.last.weight is model.first.weight and model.first.weight[0, 0] == 7


def test_views_that_want_gradients():
    w = torch.ones(4, requires_grad=True)
    a, b = again([w, w.detach()[1:]])
    assert a.requires_grad and a.is_leaf and not b.requires_grad
    (a * 3).sum().backward()
    assert a.grad.tolist() == [3] * 4
    b[0] = 9
    assert a.detach().tolist() == [1, 9, 1, 1]


def test_one_memory_as_two_types():
    x = torch.arange(4, dtype=torch.float32)
    bits = torch.from_numpy(x.numpy().view(np.int32))
    a, b = again([x, bits])
    assert a.tolist() == x.tolist() and b.tolist() == bits.tolist()


# ---- files that claim much ----


def file_of(tree, tensors=(), entries=()):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("simt.json", json.dumps({"simt": 1, "tree": tree, "tensors": tensors}))
        for name, data in entries:
            archive.writestr(name, data)
    return file


PLAIN = {"dtype": "torch.float32", "shape": [6]}


@pytest.mark.parametrize(
    "entry",
    [
        {"view": 1, "offset": 0, "shape": [7], "stride": [1]},
        {"view": 1, "offset": 1, "shape": [6], "stride": [1]},
        {"view": 1, "offset": -1, "shape": [1], "stride": [1]},
        {"view": 1, "offset": 6, "shape": [1], "stride": [1]},
        {"view": 1, "offset": 0, "shape": [2], "stride": [6]},
        {"view": 1, "offset": 0, "shape": [2], "stride": [-1]},
        {"view": 1, "offset": 0, "shape": [2, 2], "stride": [1]},
        {"view": 1, "offset": 0, "shape": [0], "stride": [1]},
        {"view": 1, "offset": 2**70, "shape": [1], "stride": [1]},
        {"view": 1, "offset": 0, "shape": [2**62, 2**62], "stride": [0, 0]},
        {"view": 1, "offset": 0, "shape": [1] * 60, "stride": [1] * 60},
        {"view": 0, "offset": 0, "shape": [1], "stride": [1]},
        {"view": 2, "offset": 0, "shape": [1], "stride": [1]},
        {"view": True, "offset": 0, "shape": [1], "stride": [1]},
        {"view": None, "offset": 0, "shape": [1], "stride": [1]},
        {"view": 1, "offset": 0.0, "shape": [1], "stride": [1]},
        {"view": 1, "shape": [1], "stride": [1]}, {"view": 1, "offset": 0, "shape": [1]},
        {"view": 1, "offset": 0, "shape": "1", "stride": "1"},
    ],
)  # fmt: skip
def test_bad_views(entry):
    file = file_of({"tensor": 0}, [entry, PLAIN], [("data/1", bytes(24))])
    with pytest.raises(RuntimeError, match="torch.load: the file object is damaged"):
        torch.load(file)


@pytest.mark.parametrize("shape", [[(1 << 60) + 1] * 200_000, [1] * 200_000, [0] * 200_000])
def test_shapes_of_many_factors(shape):
    """Refused before the product is made, whose time grows with the square of its factors."""
    file = file_of({"tensor": 0}, [{"dtype": "torch.float32", "shape": shape}], [("data/0", b"")])
    with pytest.raises(RuntimeError, match="a shape that is no short list"):
        torch.load(file)
    with pytest.raises(RuntimeError, match="damaged"):
        torch.load(file_of({"size": shape}))


def test_keys_of_one_hash():
    """Python's dict compares each with all before it."""
    prime = sys.hash_info.modulus
    keys = [[{"int": hex(prime * i)}, None] for i in range(1000)]
    with pytest.raises(RuntimeError, match="equal hashes"):
        torch.load(file_of({"dict": keys}))
    assert torch.load(file_of({"dict": keys[:50]})) == {prime * i: None for i in range(50)}


def test_numbers_of_many_digits():
    for text in ("9" * 100_000, "0x" + "f" * 100_000, "0b" + "1" * 400_000):
        try:
            assert torch.load(file_of({"int": text})) == int(text, 0)
        except RuntimeError as error:
            assert "damaged" in str(error) and len(str(error)) < 1000


def test_messages_are_short():
    long = "x" * 100_000
    for tree, tensors in [
        ({"tensor": long}, []), ({"tensor": [long]}, []), ({long: []}, []), ({long: 1}, []),
        ({"dtype": long}, []), ([long], []), ({"tensor": 0}, [{"dtype": long, "shape": []}]),
        ({"tensor": 0}, [{"dtype": "torch.int8", "shape": [long]}]),
    ]:  # fmt: skip
        with pytest.raises(RuntimeError, match="damaged") as caught:
            torch.load(file_of(tree, tensors))
        assert len(str(caught.value)) < 1000


def test_paths_of_all_kinds(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.save(NEW, "plain.pt")
    torch.save(NEW, Path("path.pt"))
    with open("object.pt", "wb") as file:
        torch.save(NEW, file)
    for name in ("plain.pt", "path.pt", "object.pt"):
        assert load(name) == [0, 1, 2]
