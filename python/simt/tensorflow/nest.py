"""tf.nest: structures of tuples, lists, dicts."""

from keras.src import tree as _tree

from simt._missing import module_hooks as _module_hooks


def map_structure(func, *structure, **kwargs):
    return _tree.map_structure(func, *structure)


def flatten(structure, expand_composites=False):
    return _tree.flatten(structure)


def pack_sequence_as(structure, flat_sequence, expand_composites=False):
    return _tree.pack_sequence_as(structure, flat_sequence)


def is_nested(structure):
    return _tree.is_nested(structure)


def assert_same_structure(nest1, nest2, check_types=True, expand_composites=False):
    _tree.assert_same_structure(nest1, nest2)


__getattr__, __dir__ = _module_hooks(globals())
