"""Runs the recorded snippets of TensorFlow and describes what they give; for recorder and test.

Snippets live in snippets_tensorflow/*.txt, in the form that recording.py explains; comparing is
recording.py's too. One flag more: `rounded` (how numbers print is not compared: the last digits
are another's). As a program: `recording_tensorflow.py OUT [--simt] [--after ID]`.
"""

import argparse
import os
import sys
from pathlib import Path

import recording

HERE = Path(__file__).resolve().parent
RECORDED = HERE / "tensorflow_recorded.json"


def load_snippets():
    return recording.load_snippets(HERE / "snippets_tensorflow")


def make_namespace():
    import numpy as np
    import tensorflow as tf

    def wave(*shape):
        """Fixed numbers without a pattern that could hide a swapped axis."""
        count = int(np.prod(shape))
        return tf.constant(np.sin(np.arange(count) * 1.7 + 0.3).astype("float32").reshape(shape))

    return {"__name__": "snippet", "tf": tf, "np": np, "wave": wave}


def describe(x):
    import keras
    import numpy as np
    import tensorflow as tf

    if isinstance(x, (tf.Variable, keras.Variable)) or tf.is_tensor(x):
        values = np.asarray(x.numpy())
        out = {
            "kind": "Variable" if isinstance(x, (tf.Variable, keras.Variable)) else "Tensor",
            "dtype": str(getattr(x.dtype, "name", x.dtype)),
            "shape": list(x.shape),
            "value": recording._sample(values.reshape(-1).astype(_plain(values.dtype)).tolist()),
        }
        if values.size <= recording.MAX_REPR:
            out["repr"] = repr(x)
        return out
    for kind in (tf.TensorShape, tf.DType, tf.data.Dataset):
        if isinstance(x, kind):
            return {"kind": kind.__name__.removesuffix("V2"), "repr": repr(x)}
    if isinstance(x, dict):
        return {"kind": "dict", "items": [[describe(k), describe(v)] for k, v in x.items()]}
    if isinstance(x, (list, tuple)):
        return {"kind": type(x).__name__, "items": [describe(v) for v in x]}
    return recording.describe_plain(x)


def _plain(dtype):
    return "U" if dtype.kind in "OSc" else {"bfloat16": "float64"}.get(dtype.name, dtype)


def run_snippet(snippet, base):
    import tensorflow as tf

    return recording.run_snippet(snippet, base, lambda: tf.random.set_seed(0), describe)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--simt", action="store_true")
    parser.add_argument("--after", help="start behind this snippet")
    args = parser.parse_args()
    if args.simt:
        import simt.alias

        simt.alias.install("tensorflow")
    else:
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    snippets, base = load_snippets(), make_namespace()
    ids = list(snippets)
    if args.after:
        ids = ids[ids.index(args.after) + 1 :]
    recording.run_all(snippets, ids, base, args.out, run_snippet)


if __name__ == "__main__":
    sys.exit(main())
