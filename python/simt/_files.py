"""Files that are written whole or not at all.

A new file is written beside its path, under a name that nobody can know before, and renamed to it.
It never replaces what is no regular file, and takes the old file's mode, owner and attributes.
"""

import errno
import os
import stat
from functools import partial

_COPY = 1 << 20


def write_file(path, write):
    """Calls write(file) with a binary file whose contents then are path's.

    Raises:
        OSError: path cannot be written; what was there is as it was.
    """
    if not os.path.basename(path):
        number = errno.EISDIR if path else errno.ENOENT
        raise OSError(number, os.strerror(number), path)
    old = _open_old(path)
    try:
        if old is not None and (not stat.S_ISREG(os.fstat(old).st_mode) or _descriptor(path)):
            with open(old, "wb", closefd=False) as file:
                _empty(old)
                write(file)
        else:
            _write_regular(path, old, write)
    finally:
        if old is not None:
            os.close(old)


def write_bytes(path, data):
    """write_file of bytes."""
    write_file(path, lambda file: file.write(data))


def _open_old(path):
    """A descriptor of the file at path, opened to write, or None where there is none."""
    try:
        return os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None


def _descriptor(path):
    """Whether path, followed link by link, names a descriptor of this or another process
    (/dev/stdout): its file is open elsewhere and cannot be replaced."""
    path = os.path.abspath(path)
    for _ in range(40):
        folder = os.path.realpath(os.path.dirname(path))
        if folder.startswith("/proc/"):
            return True
        if not os.path.islink(path):
            return False
        path = os.path.join(folder, os.readlink(path))
    return False


def _empty(descriptor):
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.ftruncate(descriptor, 0)


def _write_regular(path, old, write):
    target = os.path.realpath(path)
    name = _unused(target)
    try:
        try:
            # a file object at once: an interrupt finds nothing that is not closed or removed
            new = open(name, "x+b", opener=partial(os.open, mode=0o666 if old is None else 0o600))
        except OSError as error:
            name = None
            if old is None:
                raise _about(error, path) from None
            _write_copy(old, write)  # the folder takes no new file
            return
        with new as file:
            linked = old is not None and not _like(old, target, new.fileno(), name)
            write(file)
            file.flush()
            if linked:
                _copy(file, old)
            else:
                os.replace(name, target)
                name = None
    finally:
        if name is not None:
            try:
                os.unlink(name)
            except FileNotFoundError:  # an interrupt came before it was made or when it was renamed
                pass


def _unused(target):
    """A name in target's folder that no file has."""
    folder, base = os.path.split(target)
    return os.path.join(folder, f".{base[:40]}.{os.urandom(8).hex()}.tmp")


def _like(old, target, new, name):
    """Gives the new file the old one's owner, mode and attributes. False: it cannot stand for the
    old file, which has several names or an owner that we cannot give."""
    import shutil

    was, made = os.fstat(old), os.fstat(new)
    if was.st_nlink > 1:
        return False
    try:
        if (was.st_uid, was.st_gid) != (made.st_uid, made.st_gid):
            os.fchown(new, was.st_uid, was.st_gid)
        os.fchmod(new, stat.S_IMODE(was.st_mode))
        shutil.copystat(target, name)
    except OSError:
        return False
    return True


def _write_copy(old, write):
    import tempfile

    with tempfile.TemporaryFile() as file:
        write(file)
        _copy(file, old)


def _copy(file, old):
    """The whole file's bytes into the descriptor of another file."""
    size, was = file.seek(0, os.SEEK_END), os.fstat(old).st_size
    if size > was:  # a full disk is noticed before the old bytes are gone
        try:
            os.posix_fallocate(old, was, size - was)
        except OSError:
            os.ftruncate(old, was)
            raise
    file.seek(0)
    at = 0
    while part := file.read(_COPY):
        view = memoryview(part)
        while view:
            count = os.pwrite(old, view, at)
            at += count
            view = view[count:]
    os.ftruncate(old, size)


def _about(error, path):
    """The error with the user's path instead of our name."""
    if error.errno == errno.ENOENT:
        return FileNotFoundError(
            errno.ENOENT, f"Parent directory {os.path.dirname(path)} does not exist", path
        )
    return type(error)(error.errno, error.strerror, path)
