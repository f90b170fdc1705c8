"""Steps that run once in Python and then again without it.

`Steps` is a function of tensors. Met a second time with the same shapes, dtypes and structure, it
is captured (array/capture.h): run on placeholders, its operations recorded; from then on a call is
one call of C. Reads and writes of variables are recorded too; a replay reads what they hold then,
and writes them in place. What cannot be captured, because it looks at a value or makes a variable,
runs in Python as it is; SIMT_DUMP=capture tells why, on standard error.
"""

import os
import sys
from collections import OrderedDict

import numpy as np
from keras.src import tree
from keras.src.backend.config import floatx

from simt._core import torch as C
from simt.keras_backend import core

MOST_CAPTURES = 16  # of a function; the one that was not used for longest goes
MOST_TRIES = 2  # of a signature


class NotCaptured(Exception):
    """Raised inside a step that is being captured: it cannot be."""


class _Session:
    """What a capture sees of variables: each is a placeholder from its first use on."""

    def __init__(self):
        self.known = {}  # by id: the variable, its value before, the placeholder

    def use(self, variable):
        if id(variable) not in self.known:
            before = variable._value
            if before is None:
                raise NotCaptured(f"the variable {variable.path} has no value yet")
            variable._value = C._capture_placeholder(before)
            self.known[id(variable)] = variable, before, variable._value

    def made(self, variable):
        raise NotCaptured(f"it makes a variable, {variable.path or variable.name}")

    def cond(self, pred, true_fn, false_fn):
        """Both ways are taken, and of what they give and assign one is chosen."""
        before = self._values()
        chosen = true_fn()
        after = self._values()
        self._set(before)
        other = false_fn()
        otherwise = self._values()
        for key, (variable, _, place) in self.known.items():
            variable._value = _either(pred, after.get(key, place), otherwise.get(key, place))
        tree.assert_same_structure(chosen, other)
        return tree.map_structure(lambda x, y: _either(pred, x, y), chosen, other)

    def _values(self):
        return {key: variable._value for key, (variable, _, _) in self.known.items()}

    def _set(self, values):
        for key, (variable, _, place) in self.known.items():
            variable._value = values.get(key, place)

    def restore(self):
        for variable, before, _ in self.known.values():
            variable._value = before


def _either(pred, x, y):
    if x is y:
        return x
    x, y = (v.value if isinstance(v, core.Variable) else v for v in (x, y))
    if not (isinstance(x, core.Tensor) and isinstance(y, core.Tensor)):
        if type(x) is type(y) and x == y:
            return x
        raise NotCaptured("the ways of a condition give different things that are no tensors")
    if x.requires_grad or y.requires_grad:
        raise NotCaptured("gradients go through a condition")
    if x.dtype is not y.dtype or x.shape != y.shape:
        raise NotCaptured("the ways of a condition give different shapes or dtypes")
    return C.where(pred, x, y)


class _Constant:
    """A leaf of the outputs that is no tensor."""

    def __init__(self, value):
        self.value = value


class _Captured:
    """One step for one signature."""

    def __init__(self, step, data):
        flat = tree.flatten(data)
        inputs = [x for x in flat if x is not None]
        session = _Session()
        C._capture_begin()
        try:
            places = tuple(C._capture_placeholder(x) for x in inputs)
            rest = iter(places)
            given = [None if x is None else next(rest) for x in flat]
            with core.capturing(session):
                made = step(tree.pack_sequence_as(data, given))
            outputs = self._keep(made)
            pairs = []
            for variable, _, place in session.known.values():
                after = variable._value
                pairs += place, place if after is place else after.detach()
            self.capture = C._capture_end(places, tuple(pairs), outputs)
        finally:
            C._capture_abort()
            session.restore()
        self.variables = tuple(variable for variable, _, _ in session.known.values())

    def _keep(self, made):
        """The tensors of what the step gave; its form is kept."""
        self.form = made
        self.leaves = [x.detach() if isinstance(x, core.Tensor) else x for x in tree.flatten(made)]
        tensors = tuple(x for x in self.leaves if isinstance(x, core.Tensor))
        self.leaves = [None if isinstance(x, core.Tensor) else _Constant(x) for x in self.leaves]
        self.form = tree.map_structure(lambda x: 0, made)
        return tensors

    def _give(self, outputs):
        outputs = iter(outputs)
        flat = [next(outputs) if x is None else x.value for x in self.leaves]
        return tree.pack_sequence_as(self.form, flat)

    def __call__(self, data):
        inputs = tuple(x for x in tree.flatten(data) if x is not None)
        return self._give(self.capture.replay(inputs, self.variables, "_value"))

    def run_rows(self, batches):
        """Several batches (`Rows`) of one size, in order: what the last one gives."""
        first = batches[0]
        index = np.concatenate([b.index() for b in batches]) if len(batches) > 1 else first.index()
        outputs, _ = self.capture.replay_rows(
            first.source.tensors, index, first.size, 1e9, self.variables, "_value"
        )
        return self._give(outputs)


class Steps:
    def __init__(self, step):
        self.step = step
        self.known = OrderedDict()  # by signature: a _Captured, or how often it was met in vain

    def __call__(self, data):
        captured = self._find(_signature(data), self.step, lambda: data)
        return self.step(data) if captured is None else captured(data)

    def run_rows(self, batches):
        """Several `Rows` of one size: what the last one gives."""
        first = batches[0]
        signature = first.source.form, first.size, floatx()
        captured = self._find(
            signature,
            lambda data: self.step(_cast(data)),
            lambda: first.source.pick(first.rows),
        )
        if captured is not None:
            return captured.run_rows(batches)
        for batch in batches:
            made = self.step(batch.take())
        return made

    def _find(self, signature, step, example):
        """The capture, or None: the step is to run in Python."""
        if signature is None:
            return None
        state = self.known.get(signature, -1)
        if isinstance(state, int):
            state += 1
            if 0 < state <= MOST_TRIES:
                state = self._try(step, example(), state) or state
            self.known[signature] = state
            while len(self.known) > MOST_CAPTURES:
                self.known.popitem(last=False)
        self.known.move_to_end(signature)
        return None if isinstance(state, int) else state

    def _try(self, step, data, tries):
        try:
            return _Captured(step, data)
        except Exception as error:  # of any kind: in Python the step says what it has to say
            if tries == MOST_TRIES:
                _tell(error)
            return None


def _tell(error):
    if "capture" in os.environ.get("SIMT_DUMP", "").split(","):
        lines = str(error).strip() or type(error).__name__
        print(f"simt: a step is not captured: {lines}", file=sys.stderr)


def _signature(data):
    flat = tree.flatten(data)
    kinds = []
    for x in flat:
        if x is None:
            kinds.append(None)
        elif isinstance(x, core.Tensor):
            kinds.append((tuple(x.shape), x.dtype))
        else:
            return None  # an array of strings
    return repr(tree.map_structure(lambda x: 0, data)), tuple(kinds), floatx()


class Source:
    """Arrays of one length in memory: where the rows of batches come from. Floats become floatx."""

    def __init__(self, arrays):
        self.arrays = arrays
        self.flat = [x for x in tree.flatten(arrays) if x is not None]
        self.tensors = tuple(C.from_numpy(x) for x in self.flat)
        kinds = tuple((x.shape[1:], x.dtype.name) for x in self.flat)
        self.form = repr(tree.map_structure(lambda x: x is None, arrays)), kinds

    @classmethod
    def of(cls, arrays):
        """None: not such arrays."""
        flat = [x for x in tree.flatten(arrays) if x is not None]
        fits = all(
            type(x) is np.ndarray
            and x.ndim > 0
            and x.dtype.name in core.DTYPES
            and x.dtype.isnative
            and x.flags.c_contiguous
            and x.flags.writeable
            for x in flat
        )
        return cls(arrays) if fits and flat else None

    def pick(self, rows):
        """The rows, as the step is given them."""
        return tree.map_structure(
            lambda x: None if x is None else core.convert_to_tensor(x[rows]), self.arrays
        )


def _cast(data):
    """What Keras does with floats of arrays before they are cut into batches."""
    wanted = core.native(floatx())
    return tree.map_structure(
        lambda x: x.to(wanted) if x is not None and x.dtype in core.FLOATS else x, data
    )


class Rows:
    """A batch: which rows of the source."""

    __slots__ = ("rows", "size", "source")

    def __init__(self, source, rows):
        self.source, self.rows = source, rows
        self.size = rows.stop - rows.start if isinstance(rows, slice) else len(rows)

    def index(self):
        if isinstance(self.rows, slice):
            return np.arange(self.rows.start, self.rows.stop, dtype="int64")
        return np.ascontiguousarray(self.rows, dtype="int64")

    def take(self):
        """The batch as tensors."""
        return _cast(self.source.pick(self.rows))
