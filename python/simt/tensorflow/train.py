"""tf.train: checkpoints. A checkpoint is a NumPy archive (PREFIX.npz) of the variables' values.

The names in it are the paths to the variables from the Checkpoint, by attribute, key and position.
TensorFlow's own files are of another form: they are neither read nor written.
"""

import json as _json
import os as _os
import re as _re

import keras as _keras
import numpy as _np

from simt._missing import module_hooks as _module_hooks
from simt.tensorflow import errors as _errors
from simt.tensorflow._tensor import convert as _convert
from simt.tensorflow._variable import Module as _Module
from simt.tensorflow._variable import Variable as _Variable
from simt.tensorflow.data import Dataset as _Dataset

_STATE = "checkpoint"  # the file that names the latest, in the folder of the checkpoints
_SIZE_LIMIT = 16 << 30


def _trackable(x):
    kinds = (_keras.Variable, _Module, Checkpoint, _keras.layers.Layer, list, tuple, dict)
    return isinstance(x, (*kinds, _keras.optimizers.Optimizer, _Dataset))


def _named(root):
    """{path: variable} of all that hangs below root."""
    found, seen = {}, set()

    def visit(x, path):
        if isinstance(x, _keras.Variable):
            found.setdefault("/".join(path), x)
            return
        if id(x) in seen:
            return
        seen.add(id(x))
        for key, value in _parts(x):
            visit(value, (*path, str(key)))

    visit(root, ())
    return found


def _parts(x):
    if isinstance(x, Checkpoint):
        return sorted(x._kept.items())
    if isinstance(x, _keras.layers.Layer):
        return enumerate(x.variables)
    if isinstance(x, _keras.optimizers.Optimizer):
        return enumerate(x.variables)
    if isinstance(x, _Module):
        return sorted((k, v) for k, v in vars(x).items() if _trackable(v))
    if isinstance(x, dict):
        return sorted((k, v) for k, v in x.items() if _trackable(v))
    return (
        [(i, v) for i, v in enumerate(x) if _trackable(v)] if isinstance(x, (list, tuple)) else ()
    )


class Checkpoint:
    """Variables under names, which are written to a file and read from one."""

    def __init__(self, root=None, **kwargs):
        self._kept = {}
        if root is not None:
            self._kept["root"] = root
        for name, value in kwargs.items():
            if not _trackable(value):
                raise ValueError(
                    f"`Checkpoint` was expecting {name} to be a trackable object (an object "
                    f"derived from `Trackable`), got {value}. If you believe this object should be "
                    "trackable (i.e. it is part of the TensorFlow Python API and manages state), "
                    "please open an issue."
                )
            self._kept[name] = value
        self._saves = 0

    def __getattr__(self, name):
        kept = self.__dict__.get("_kept", {})
        if name in kept:
            return kept[name]
        raise AttributeError(f"'Checkpoint' object has no attribute '{name}'")

    def __setattr__(self, name, value):
        if name[0] != "_" and _trackable(value):
            self._kept[name] = value
        else:
            object.__setattr__(self, name, value)

    @property
    def save_counter(self):
        return _Variable(self._saves, trainable=False, name="save_counter", dtype="int64")

    def write(self, file_prefix, options=None):
        prefix = _os.fspath(file_prefix)
        folder = _os.path.dirname(prefix)
        if folder:
            _os.makedirs(folder, exist_ok=True)
        values = {name: _np.asarray(v) for name, v in _named(self).items()}
        kinds = {name: v.dtype.name for name, v in values.items()}
        stored = {n: v.view("uint16") if kinds[n] == "bfloat16" else v for n, v in values.items()}
        about = _np.frombuffer(
            _json.dumps({"saves": self._saves, "dtypes": kinds}).encode(), "uint8"
        )
        unfinished = f"{prefix}.npz.{_os.getpid()}"
        with open(unfinished, "wb") as file:
            _np.savez(file, **{"": about}, **{"v:" + n: v for n, v in stored.items()})
        _os.replace(unfinished, prefix + ".npz")
        return prefix

    def save(self, file_prefix, options=None):
        self._saves += 1
        path = self.write(f"{_os.fspath(file_prefix)}-{self._saves}")
        _note(_os.path.dirname(path), path, None)
        return path

    def read(self, save_path, options=None):
        return self._restored(save_path)

    def restore(self, save_path, options=None):
        if save_path is None:
            return _Status(self, {}, set(), True)
        return self._restored(save_path)

    def _restored(self, save_path):
        values, saves = _load(_os.fspath(save_path))
        own = _named(self)
        for name in own.keys() & values.keys():
            have, found = tuple(own[name]._value.shape), values[name].shape
            if have != found:
                raise ValueError(
                    f"Received incompatible tensor with shape {found} when attempting to restore "
                    f"variable with shape {have} and name {own[name].name}."
                )
        for name in own.keys() & values.keys():
            variable = own[name]
            variable._direct_assign(_convert(values[name]).to(variable._value.dtype))
        self._saves = max(self._saves, saves)
        return _Status(self, own, values.keys(), False)


def _load(prefix):
    try:
        file = open(prefix + ".npz", "rb")
    except OSError:
        raise _errors.NotFoundError(
            None,
            None,
            f"Error when restoring from checkpoint or SavedModel at {prefix}: Unsuccessful "
            f"TensorSliceReader constructor: Failed to find any matching files for {prefix}\n"
            "Please double-check that the path is correct. You may be missing the checkpoint "
            "suffix (e.g. the '-1' in 'path/to/ckpt-1').",
        ) from None
    import zipfile

    try:
        with file, zipfile.ZipFile(file) as archive:
            if sum(i.file_size for i in archive.infolist()) > _SIZE_LIMIT:
                raise ValueError("more than 16 GB")
            file.seek(0)
            with _np.load(file, allow_pickle=False) as arrays:
                about = _json.loads(bytes(arrays[""]))
                kinds, saves = about["dtypes"], int(about["saves"])
                return {n: _value(arrays["v:" + n], kind) for n, kind in kinds.items()}, saves
    except (ValueError, KeyError, TypeError, AttributeError, EOFError, zipfile.BadZipFile) as e:
        raise _errors.DataLossError(
            None, None, f"Unable to open table file {prefix}.npz: it is no checkpoint of simt: {e}"
        ) from e


def _value(array, kind):
    if kind != "bfloat16":
        return array
    import ml_dtypes

    return array.view(ml_dtypes.bfloat16)


class _Status:
    """What restore gives: which objects and values found each other."""

    def __init__(self, checkpoint, own, found, nothing):
        self._own, self._found, self._nothing = own, found, nothing

    def _unmatched(self):
        return [v for n, v in self._own.items() if n not in self._found]

    def assert_existing_objects_matched(self):
        missing = self._unmatched()
        if missing or self._nothing:
            raise AssertionError(
                f"Found {len(missing)} Python objects that were not bound to checkpointed values, "
                "likely due to changes in the Python program. Showing "
                f"{min(10, len(missing))} of {len(missing)} unmatched objects: {missing[:10]}"
            )
        return self

    def assert_consumed(self):
        self.assert_existing_objects_matched()
        rest = sorted(set(self._found) - self._own.keys())
        if rest:
            raise AssertionError(
                f"Unresolved object in checkpoint {rest[0]!r}: there is no such variable"
            )
        return self

    def expect_partial(self):
        return self

    def assert_nontrivial_match(self):
        return self

    def initialize_or_restore(self, session=None):
        return None


# ---- the latest of a folder


def _note(folder, latest, all_paths):
    known = [_os.path.basename(p) for p in all_paths or (latest,)]
    lines = [f'model_checkpoint_path: "{_os.path.basename(latest)}"']
    lines += [f'all_model_checkpoint_paths: "{name}"' for name in known]
    with open(_os.path.join(folder or ".", _STATE), "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def _state(folder, name=None):
    """(the latest, all that are known), or None where there is none."""
    try:
        with open(
            _os.path.join(folder, name or _STATE), encoding="utf-8", errors="replace"
        ) as file:
            text = file.read(1 << 20)
    except OSError:
        return None
    latest = _re.search(r'^model_checkpoint_path: "(.*)"$', text, _re.M)
    every = _re.findall(r'^all_model_checkpoint_paths: "(.*)"$', text, _re.M)
    if latest is None:
        return None
    return _os.path.join(folder, latest[1]), [_os.path.join(folder, n) for n in every]


def latest_checkpoint(checkpoint_dir, latest_filename=None):
    found = _state(_os.fspath(checkpoint_dir), latest_filename)
    return found[0] if found and _os.path.exists(found[0] + ".npz") else None


def list_variables(ckpt_dir_or_file):
    path = _os.fspath(ckpt_dir_or_file)
    values, _ = _load(latest_checkpoint(path) or path)
    return sorted((name, list(v.shape)) for name, v in values.items())


class CheckpointManager:
    """The last few checkpoints of a folder."""

    def __init__(
        self,
        checkpoint,
        directory,
        max_to_keep,
        keep_checkpoint_every_n_hours=None,
        checkpoint_name="ckpt",
        step_counter=None,
        checkpoint_interval=None,
        init_fn=None,
        last_checkpoint_step=None,
    ):
        if max_to_keep is not None and max_to_keep <= 0:
            raise ValueError(f"`max_to_keep` must be a positive integer, got {max_to_keep}")
        if checkpoint_interval is not None and step_counter is None:
            raise ValueError(
                "`step_counter` should be passed if `checkpoint_interval` is not None."
            )
        self._checkpoint, self._directory = checkpoint, _os.fspath(directory)
        self._max, self._init_fn = max_to_keep, init_fn
        self._counter, self._interval = step_counter, checkpoint_interval
        self._last_step = last_checkpoint_step
        self._prefix = _os.path.join(self._directory, checkpoint_name)
        found = _state(self._directory)
        self._paths = [p for p in found[1] if _os.path.exists(p + ".npz")] if found else []

    checkpoint = property(lambda self: self._checkpoint)
    directory = property(lambda self: self._directory)
    checkpoints = property(lambda self: list(self._paths))
    latest_checkpoint = property(lambda self: self._paths[-1] if self._paths else None)
    checkpoint_interval = property(lambda self: self._interval)

    def save(self, checkpoint_number=None, check_interval=True, options=None):
        step = None if self._interval is None else int(self._counter)
        if step is not None and check_interval and self._last_step is not None:
            if step - self._last_step < self._interval:
                return None
        self._last_step = step
        if checkpoint_number is None:
            self._checkpoint._saves += 1
            checkpoint_number = self._checkpoint._saves
        path = self._checkpoint.write(f"{self._prefix}-{int(checkpoint_number)}")
        self._paths = [p for p in self._paths if p != path] + [path]
        while self._max is not None and len(self._paths) > self._max:
            _os.unlink(self._paths.pop(0) + ".npz")
        _note(self._directory, path, self._paths)
        return path

    def restore_or_initialize(self):
        if self.latest_checkpoint is not None:
            self._checkpoint.restore(self.latest_checkpoint)
            return self.latest_checkpoint
        if self._init_fn is not None:
            self._init_fn()
        return None


__getattr__, __dir__ = _module_hooks(globals())
