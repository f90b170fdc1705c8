"""The programs of tensorflow_programs.py: what they measure is what TensorFlow gave, to 1e-4."""

import json
import os
import subprocess
import sys
from importlib.machinery import PathFinder
from pathlib import Path

import numpy as np
import pytest

if PathFinder.find_spec("keras") is None:
    pytest.skip("Keras is not installed", allow_module_level=True)

PROGRAMS = Path(__file__).with_name("tensorflow_programs.py")
RECORDED = json.loads(PROGRAMS.with_suffix(".json").read_text())["numbers"]


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")
    env = dict(os.environ, KERAS_HOME=str(folder), SIMT_LANG="en")
    command = [sys.executable, "-m", "simt", "run", "-q", str(PROGRAMS)]
    done = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)["numbers"]


def test_all_are_recorded(found):
    assert list(found) == list(RECORDED), "run tools/record_tensorflow.py"


@pytest.mark.parametrize("name", RECORDED)
def test_program(found, name):
    np.testing.assert_allclose(found[name], RECORDED[name], rtol=1e-4, atol=1e-4)
    assert min(RECORDED[name][:20]) < RECORDED[name][0], "it does not learn"
