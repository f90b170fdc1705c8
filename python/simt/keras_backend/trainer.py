"""fit, evaluate, predict: Keras's loop over captured steps (captured.py).

A step runs in Python first, then is captured; the batches of arrays between two updates of the
progress bar are one call of C, unless a callback looks at each. What cannot be captured runs in
Python: a step's operations are then one program that runs when somebody looks at the metrics. While
a step records, the tensors of the trainable variables want gradients.
"""

import itertools
import time
import warnings

import numpy as np
from keras.src import backend, tree
from keras.src import callbacks as callbacks_module
from keras.src import optimizers as optimizers_module
from keras.src.backend import config
from keras.src.trainers import data_adapters
from keras.src.trainers import trainer as base_trainer
from keras.src.trainers.data_adapters import array_slicing, data_adapter_utils
from keras.src.trainers.epoch_iterator import EpochIterator
from keras.src.utils import traceback_utils
from keras.src.utils.python_utils import is_default, pythonify_logs

from simt._core import torch as C
from simt.keras_backend import captured, core

MERGED = 0.05  # seconds of steps between two updates: as often as Keras's progress bar shows them


class _Step:
    """Who records a training step: variables that are read want gradients."""

    def __init__(self):
        self.variables = []

    def watch_variable(self, variable):
        value = variable._value
        if not value.requires_grad and value.dtype in core.FLOATS:
            value.requires_grad_(True)
            self.variables.append(value)

    def assigned(self, variable, value):
        pass

    def end(self):
        for value in self.variables:
            value.requires_grad_(False)


def _on_host(data):
    """Tensors as NumPy arrays: Keras's adapters slice those."""
    return tree.map_structure(
        lambda x: (
            core.convert_to_numpy(x)
            if isinstance(x, (core.Tensor, core.View, core.Variable))
            else x
        ),
        data,
    )


class _Iterator(EpochIterator):
    """Batches of arrays as numbers of rows, where `rows` is set; batches of generators as they are:
    tensors need not go to NumPy and back."""

    rows = False
    source = None

    def _get_iterator(self):
        adapter = self.data_adapter
        if self.rows and isinstance(adapter, data_adapters.ArrayDataAdapter):
            self.source = self.source or captured.Source.of(adapter._inputs)
            if self.source is not None:
                return adapter._get_iterator(_rows_of, self.source)
        if isinstance(adapter, data_adapters.GeneratorDataAdapter):
            batches = adapter.generator()
        elif isinstance(adapter, data_adapters.PyDatasetAdapter):
            batches = adapter._get_iterator()
        else:
            return adapter.get_numpy_iterator()
        return (tree.map_structure(_array, batch, none_is_leaf=False) for batch in batches)


def _rows_of(source, indices):
    return captured.Rows(source, indices)


def _array(x):
    if isinstance(x, (core.Tensor, np.ndarray)):
        return x
    return x.toarray() if hasattr(x, "toarray") else np.asarray(x)


def _own_dataset(x, class_weight):
    """An adapter for what the faces of simt iterate over, else x."""
    kind = type(x).__module__
    if kind.startswith("simt.tensorflow.data") or (
        kind.startswith("simt.torch.utils.data") and type(x).__name__ == "DataLoader"
    ):
        from simt.keras_backend.datasets import Adapter

        return Adapter(x, class_weight)
    return x


class SimtTrainer(base_trainer.Trainer):
    def __init__(self):
        super().__init__()
        self.train_function = None
        self.test_function = None
        self.predict_function = None

    # ---- one step, each of which users may override

    def _forward(self, x, training):
        return self(x, training=training) if self._call_has_training_arg else self(x)

    def _track_loss(self, loss, x):
        rows = next(i for i in tree.flatten(x) if i is not None).shape[0]
        self._loss_tracker.update_state(loss.detach(), sample_weight=rows)

    def train_step(self, data):
        x, y, sample_weight = data_adapter_utils.unpack_x_y_sample_weight(data)
        step = _Step()
        with core.recording(step):
            y_pred = self._forward(x, training=True)
            loss = self._compute_loss(
                x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=True
            )
            loss = core.convert_to_tensor(loss)
            scaled = loss if self.optimizer is None else self.optimizer.scale_loss(loss)
        variables = self.trainable_variables
        try:
            gradients = self._gradients(scaled, variables)
        finally:
            step.end()
        self._track_loss(loss, x)
        if variables:
            self.optimizer.apply(gradients, variables)
        else:
            warnings.warn("The model does not have any trainable weights.")
        y_pred = tree.map_structure(core.stop_gradient, y_pred)
        return self.compute_metrics(x, y, y_pred, sample_weight=sample_weight)

    @staticmethod
    def _gradients(loss, variables):
        """None where the loss does not depend on a variable."""
        wanted = [v._value for v in variables if v._value.requires_grad]
        if not wanted or not loss.requires_grad:
            return [None] * len(variables)
        found = iter(C._grad((loss,), tuple(wanted), (None,), False, False, True))
        return [next(found) if v._value.requires_grad else None for v in variables]

    def test_step(self, data):
        x, y, sample_weight = data_adapter_utils.unpack_x_y_sample_weight(data)
        y_pred = self._forward(x, training=False)
        loss = self._compute_loss(
            x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=False
        )
        loss = core.convert_to_tensor(loss)
        self._track_loss(loss, x)
        return self.compute_metrics(x, y, y_pred, sample_weight=sample_weight)

    def predict_step(self, data):
        x, _, _ = data_adapter_utils.unpack_x_y_sample_weight(data)
        return self._forward(x, training=False)

    # ---- functions of one or several batches

    def make_train_function(self, force=False):
        if self.train_function is None or force:
            self.train_function = _LastOf(self, lambda data: self.train_step(data))
        return self.train_function

    def make_test_function(self, force=False):
        if self.test_function is None or force:
            self.test_function = _LastOf(self, lambda data: self.test_step(data))
        return self.test_function

    def make_predict_function(self, force=False):
        if self.predict_function is None or force:
            self.predict_function = _AllOf(self, lambda data: self.predict_step(data))
        return self.predict_function

    # ---- loops

    def _iterator(self, x, y=None, sample_weight=None, steps=None, **kw):
        x, y, sample_weight = _on_host((x, y, sample_weight))
        return _Iterator(
            x=_own_dataset(x, kw.get("class_weight")),
            y=y,
            sample_weight=sample_weight,
            steps_per_epoch=steps,
            steps_per_execution=self.steps_per_execution,
            **kw,
        )

    def _callbacks(self, callbacks, iterator, verbose, epochs=1, history=False):
        if isinstance(callbacks, callbacks_module.CallbackList):
            return callbacks
        return callbacks_module.CallbackList(
            callbacks,
            add_history=history,
            add_progbar=verbose != 0,
            verbose=verbose,
            epochs=epochs,
            steps=iterator.num_batches,
            model=self,
        )

    @traceback_utils.filter_traceback
    def fit(
        self,
        x=None,
        y=None,
        batch_size=None,
        epochs=1,
        verbose="auto",
        callbacks=None,
        validation_split=0.0,
        validation_data=None,
        shuffle=True,
        class_weight=None,
        sample_weight=None,
        initial_epoch=0,
        steps_per_epoch=None,
        validation_steps=None,
        validation_batch_size=None,
        validation_freq=1,
    ):
        self._assert_compile_called("fit")
        most = config.max_epochs()
        if most and most < epochs:
            warnings.warn(f"Limiting epochs to {most}")
            epochs = most
        self._eval_epoch_iterator = None
        if validation_split and validation_data is None:
            (x, y, sample_weight), validation_data = array_slicing.train_validation_split(
                _on_host((x, y, sample_weight)), validation_split=validation_split
            )
        validation = None
        if validation_data is not None:
            validation = data_adapter_utils.unpack_x_y_sample_weight(validation_data)
        iterator = self._iterator(
            x,
            y,
            sample_weight,
            steps_per_epoch,
            batch_size=batch_size,
            shuffle=shuffle,
            class_weight=class_weight,
        )
        self._symbolic_build(iterator=iterator)
        iterator.reset()
        callbacks = self._callbacks(callbacks, iterator, verbose, epochs, history=True)
        self.stop_training = False
        self.make_train_function()
        iterator.rows = isinstance(self.train_function, _Function)
        callbacks.on_train_begin()
        training_logs = {}
        for epoch in range(self._initial_epoch or initial_epoch, epochs):
            logs = self._train_epoch(iterator, callbacks, epoch)
            if validation is not None and self._should_eval(epoch, validation_freq):
                logs.update(
                    self._validate(
                        validation, validation_batch_size or batch_size, validation_steps, callbacks
                    )
                )
            callbacks.on_epoch_end(epoch, logs)
            training_logs = logs
            if self.stop_training:
                break
        if isinstance(self.optimizer, optimizers_module.Optimizer) and epochs > 0:
            self.optimizer.finalize_variable_values(self.trainable_weights)
        self._eval_epoch_iterator = None
        callbacks.on_train_end(logs=training_logs)
        return self.history

    def _train_epoch(self, iterator, callbacks, epoch):
        self.reset_metrics()
        callbacks.on_epoch_begin(epoch)
        logs = {}
        for begin, end, data in _merged(iterator, self.train_function, callbacks, "train"):
            callbacks.on_train_batch_begin(begin)
            logs = self.train_function(data)
            callbacks.on_train_batch_end(end, logs)
            if self.stop_training:
                break
        return dict(self._get_metrics_result_or_logs(logs))

    def _validate(self, validation, batch_size, steps, callbacks):
        x, y, sample_weight = validation
        if self._eval_epoch_iterator is None:
            self._eval_epoch_iterator = self._iterator(
                x, y, sample_weight, steps, batch_size=batch_size, shuffle=False
            )
        logs = self.evaluate(
            x=x,
            y=y,
            sample_weight=sample_weight,
            batch_size=batch_size,
            steps=steps,
            callbacks=callbacks,
            return_dict=True,
            _use_cached_eval_dataset=True,
        )
        return {f"val_{name}": value for name, value in logs.items()}

    @traceback_utils.filter_traceback
    def evaluate(
        self,
        x=None,
        y=None,
        batch_size=None,
        verbose="auto",
        sample_weight=None,
        steps=None,
        callbacks=None,
        return_dict=False,
        **kwargs,
    ):
        self._assert_compile_called("evaluate")
        cached = kwargs.pop("_use_cached_eval_dataset", False)
        if kwargs:
            raise ValueError(f"Arguments not recognized: {kwargs}")
        iterator = self._eval_epoch_iterator if cached else None
        if iterator is None:
            iterator = self._iterator(
                x, y, sample_weight, steps, batch_size=batch_size, shuffle=False
            )
        self._symbolic_build(iterator=iterator)
        iterator.reset()
        callbacks = self._callbacks(callbacks, iterator, verbose)
        self.make_test_function()
        iterator.rows = isinstance(self.test_function, _Function)
        self.stop_evaluating = False
        callbacks.on_test_begin()
        self.reset_metrics()
        logs = {}
        for begin, end, data in _merged(iterator, self.test_function, callbacks, "test"):
            callbacks.on_test_batch_begin(begin)
            logs = self.test_function(data)
            callbacks.on_test_batch_end(end, logs)
            if self.stop_evaluating:
                break
        logs = pythonify_logs(self._get_metrics_result_or_logs(logs))
        callbacks.on_test_end(logs)
        return logs if return_dict else self._flatten_metrics_in_order(logs)

    @traceback_utils.filter_traceback
    def predict(self, x, batch_size=None, verbose="auto", steps=None, callbacks=None):
        iterator = self._iterator(x, steps=steps, batch_size=batch_size, shuffle=False)
        callbacks = self._callbacks(callbacks, iterator, verbose)
        self.make_predict_function()
        iterator.rows = isinstance(self.predict_function, _Function)
        self.stop_predicting = False
        callbacks.on_predict_begin()
        outputs = []
        for begin, end, data in _merged(iterator, self.predict_function, callbacks, "predict"):
            callbacks.on_predict_batch_begin(begin)
            made = self.predict_function(data)
            outputs.append(tree.map_structure(core.convert_to_numpy, made))
            callbacks.on_predict_batch_end(end, {"outputs": made})
            if self.stop_predicting:
                break
        callbacks.on_predict_end()
        if not outputs:
            raise ValueError("Unexpected result of `predict_function`: no batch was given")
        return tree.map_structure(lambda *parts: np.concatenate(parts), *outputs)

    # ---- single batches

    def train_on_batch(self, x, y=None, sample_weight=None, class_weight=None, return_dict=False):
        self._assert_compile_called("train_on_batch")
        if class_weight is not None:
            if sample_weight is not None:
                raise ValueError(
                    "Arguments `sample_weight` and `class_weight` "
                    "cannot be specified at the same time. "
                    f"Received: sample_weight={sample_weight}, class_weight={class_weight}"
                )
            sample_weight = data_adapter_utils.class_weight_to_sample_weights(y, class_weight)
        return self._on_batch("train", (x, y, sample_weight), return_dict)

    def test_on_batch(self, x, y=None, sample_weight=None, return_dict=False):
        self._assert_compile_called("test_on_batch")
        return self._on_batch("test", (x, y, sample_weight), return_dict)

    def _on_batch(self, kind, data, return_dict):
        data = _tensors(data)
        self._symbolic_build(data_batch=data)
        function = getattr(self, f"make_{kind}_function")()
        self.reset_metrics()
        logs = pythonify_logs(function([data]))
        return logs if return_dict else self._flatten_metrics_in_order(logs)

    def predict_on_batch(self, x):
        made = self.make_predict_function()([(x,)])
        return tree.map_structure(backend.convert_to_numpy, made)


class _Function:
    """A function of a list of batches, which are what iterators give or `captured.Rows`."""

    merges = False

    def __init__(self, trainer, step):
        self.step = lambda *args: core.without_views(step(*args))
        self.steps = captured.Steps(self.step) if not trainer.run_eagerly else None

    def _one(self, data):
        if self.steps is None:
            return self.step(_tensors(data.take() if isinstance(data, captured.Rows) else data))
        if isinstance(data, captured.Rows):
            return self.steps.run_rows([data])
        return self.steps(_tensors(data))


class _LastOf(_Function):
    """The logs of the last one."""

    def __init__(self, trainer, step):
        super().__init__(trainer, step)
        self.merges = self.steps is not None

    def __call__(self, batches):
        batches = list(batches)
        if self.merges and all(isinstance(data, captured.Rows) for data in batches):
            for _, alike in itertools.groupby(batches, lambda data: data.size):
                logs = self.steps.run_rows(list(alike))
            return logs
        for data in batches:
            logs = self._one(data)
        return logs


class _AllOf(_Function):
    """What all of them give."""

    def __call__(self, batches):
        made = [self._one(data) for data in batches]
        if len(made) == 1:
            return made[0]
        return tree.map_structure(lambda *parts: C.cat(list(parts), 0), *made)


def _watches(callback, kind):
    """Whether a callback wants to know of each batch."""
    if type(callback) is callbacks_module.ProgbarLogger:
        return False
    if type(callback) in (callbacks_module.ModelCheckpoint, callbacks_module.BackupAndRestore):
        return callback.save_freq != "epoch"
    names = [f"on_{kind}_batch_begin", f"on_{kind}_batch_end"]
    if kind == "train":
        names += ["on_batch_begin", "on_batch_end"]
    return not all(is_default(getattr(callback, name)) for name in names)


def _merged(iterator, function, callbacks, kind):
    """The batches of the iterator; those of about MERGED seconds as one, if nobody sees that."""
    merges = getattr(function, "merges", False)
    if not merges or any(_watches(c, kind) for c in callbacks.callbacks):
        yield from iterator
        return
    most, waiting, first, last = 1, [], 0, 0
    for begin, end, data in iterator:
        fits = all(isinstance(x, captured.Rows) for x in data)
        if waiting and not (fits and data[0].size == waiting[0].size and len(waiting) < most):
            most = yield from _timed(first, last, waiting, most)
            waiting = []
        if not fits:
            yield begin, end, data
            continue
        first = first if waiting else begin
        last = end
        waiting = waiting + data if waiting else list(data)
    if waiting:
        yield from _timed(first, last, waiting, most)


def _timed(first, last, batches, most):
    """Gives the batches; how many to give the next time."""
    start = time.perf_counter()
    yield first, last, batches
    seconds = max(time.perf_counter() - start, 1e-6)
    return max(1, min(4 * most, int(MERGED * len(batches) / seconds)))


def _tensors(data):
    return tree.map_structure(lambda x: x if x is None else _tensor(x), data)


def _tensor(x):
    if isinstance(x, np.ndarray) and x.dtype.kind in "OSU":
        return x
    return core.convert_to_tensor(x)
