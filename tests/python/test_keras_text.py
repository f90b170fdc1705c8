"""Keras's layers of words on the host: what they give is what they give with TensorFlow 2.21."""

import os
from importlib.machinery import PathFinder

import numpy as np
import pytest

if PathFinder.find_spec("keras") is None:
    pytest.skip("Keras is not installed", allow_module_level=True)

os.environ.setdefault("KERAS_HOME", os.path.join(os.environ.get("TMPDIR", "/tmp"), "simt-keras"))
import simt.keras  # noqa: F401, isort: skip (before Keras)
import keras
from keras import layers
from simt.keras_backend import fingerprints

TEXTS = [
    "The cat sat. On the MAT!",
    "a dog, the dog",
    "Zwölf Boxkämpfer jagen",
    "",
    "one  two\tone\n",
]
WORDS = [b"", b"a", b"simt", b"FarmHash", b"seventeen letters", b"x" * 40, b"y" * 64, b"z" * 65]
WORDS += [bytes(range(256))]
BUCKETS = (1 << 62) + 12345
# tf.strings.to_hash_bucket_fast, to_hash_bucket_strong with the key (133, 2**60 + 7), and
# tf.sparse.cross_hashed with the numbers 7 * i - 50
FAST = [
    1936946117179596765,
    3694432073954563441,
    2986289985757438543,
    47752407404831710,
    3111445875047306051,
    3168538174772784105,
    4471793200125962424,
    3688229565335318268,
    679971070136936166,
]
STRONG = [
    2798904303317074618,
    127752248355601556,
    1602104009946205340,
    3800490239729522911,
    2503527604186257721,
    1735472868618605042,
    364736580186155923,
    3242154432556397892,
    3763035747170126620,
]
CROSSED = [
    4518861718425489373,
    3311000528793471941,
    1098154884419773131,
    2151905873981175878,
    2776228146078681515,
    3186520227532629168,
    3128544974846357390,
    1415467456680348677,
    2956141891052374389,
]


def numbers(x):
    return keras.ops.convert_to_numpy(x).tolist()


def test_hashes_are_tensorflows():
    assert [fingerprints.fingerprint(w) % BUCKETS for w in WORDS] == FAST
    assert [fingerprints.sip((133, 2**60 + 7), w) % BUCKETS for w in WORDS] == STRONG
    pairs = [(w, 7 * i - 50) for i, w in enumerate(WORDS)]
    assert [fingerprints.cross(pair) % BUCKETS for pair in pairs] == CROSSED


def test_text_vectorization_of_words():
    layer = layers.TextVectorization()
    layer.adapt(TEXTS)
    vocabulary = ["", "[UNK]", "the", "one", "dog", "zwölf", "two", "sat", "on", "mat", "jagen"]
    assert layer.get_vocabulary() == [*vocabulary, "cat", "boxkämpfer", "a"]
    assert numbers(layer(TEXTS)) == [
        [2, 11, 7, 8, 2, 9],
        [13, 4, 2, 4, 0, 0],
        [5, 12, 10, 0, 0, 0],
        [0, 0, 0, 0, 0, 0],
        [3, 6, 3, 0, 0, 0],
    ]


def test_text_vectorization_feeds_a_model(tmp_path):
    words = layers.TextVectorization(output_mode="tf_idf", max_tokens=6)
    words.adapt(TEXTS)
    model = keras.Sequential([keras.Input((6,)), layers.Dense(2)])
    before = np.asarray(model(words(TEXTS)))
    assert before.shape == (5, 2)
    kept = layers.TextVectorization.from_config(words.get_config())
    kept.set_vocabulary(
        words.get_vocabulary(), idf_weights=np.asarray(words._lookup_layer.idf_weights)
    )
    np.testing.assert_allclose(np.asarray(model(kept(TEXTS))), before)


def test_characters_ngrams_and_whole_texts():
    layer = layers.TextVectorization(split="character", output_sequence_length=4)
    layer.adapt(["ab", "bäb"])
    assert layer.get_vocabulary() == ["", "[UNK]", "b", "ä", "a"]
    assert numbers(layer(["ab", "bäbba"])) == [[4, 2, 0, 0], [2, 3, 2, 2]]
    layer = layers.TextVectorization(ngrams=2, vocabulary=["a", "a b", "b"])
    assert numbers(layer(["A b c", ""])) == [[2, 4, 1, 3, 1], [0, 0, 0, 0, 0]]
    layer = layers.TextVectorization(standardize=None, split=None, vocabulary=["A b"])
    assert numbers(layer(["A b", "a b"])) == [2, 1]


def test_lookups_outside_the_vocabulary():
    words = ["a", "q", "zeta", "öö"]
    assert numbers(layers.StringLookup(vocabulary=["a", "b"], num_oov_indices=5)(words)) == [
        5,
        3,
        2,
        2,
    ]
    salted = layers.StringLookup(vocabulary=["a", "b"], num_oov_indices=5, salt=[3, 4])
    assert numbers(salted(words)) == [5, 3, 4, 1]
    layer = layers.IntegerLookup(num_oov_indices=2, mask_token=0)
    layer.adapt([5, 7, 5, 9, 0, 0])
    assert numbers(layer([[5, 7], [9, 11]])) == [[3, 5], [4, 2]]
    with pytest.raises(ValueError, match="all inputs should be in vocabulary, found OOV values"):
        layers.StringLookup(vocabulary=["a"], num_oov_indices=0)(["b"])


def test_hashing_and_crossing():
    assert numbers(layers.Hashing(11, mask_value=5)(np.array([[5, 6], [7, -8]]))) == [
        [0, 8],
        [9, 2],
    ]
    crossed = layers.HashedCrossing(7)((np.array(["a", "b", "c"]), np.array([1, 2, 3])))
    assert numbers(crossed) == [2, 4, 5]


def test_words_where_numbers_are_needed():
    with pytest.raises(TypeError, match="Cannot convert values of dtype string to dtype int64"):
        layers.IntegerLookup(vocabulary=[1, 2])(["a"])
    with pytest.raises(ValueError, match="dtype str.*not in simt yet"):
        keras.ops.convert_to_tensor(["a"])
