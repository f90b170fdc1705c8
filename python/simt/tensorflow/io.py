"""tf.io: files and coded data are not in simt yet; the names say so when they are used."""

from simt._missing import module_hooks as _module_hooks
from simt.tensorflow._absent import absent as _absent

globals().update(
    _absent(
        "tf.io",
        "gfile decode_jpeg decode_png decode_image decode_raw decode_csv read_file write_file "
        "parse_example parse_single_example FixedLenFeature VarLenFeature TFRecordWriter "
        "serialize_tensor parse_tensor encode_jpeg encode_png",
        "keras.utils.load_img, or Python's open",
    )
)
__getattr__, __dir__ = _module_hooks(globals())
