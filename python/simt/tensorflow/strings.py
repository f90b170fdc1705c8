"""tf.strings: functions of strings are not in simt yet; the names say so when they are used."""

from simt._missing import module_hooks as _module_hooks
from simt.tensorflow._absent import absent as _absent

globals().update(
    _absent(
        "tf.strings",
        "as_string format join length lower upper split strip reduce_join regex_replace "
        "regex_full_match substr to_number to_hash_bucket to_hash_bucket_fast unicode_split "
        "bytes_split",
        "Python's str, or NumPy's arrays of strings",
    )
)
__getattr__, __dir__ = _module_hooks(globals())
