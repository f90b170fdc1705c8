"""docs/ir.md is made from ops.def, docs/ir-walk.md by running its program."""

import os
import pathlib
import re
import subprocess
import sys

TOOL = pathlib.Path(__file__).parents[2] / "tools" / "gen_ir_docs.py"


def test_the_depth_of_regions():
    root = TOOL.parents[1]
    most = re.search(r"IR_MOST_DEPTH = (\d+)", (root / "src/ir/ir.h").read_text()).group(1)
    assert f"nest at most {most} deep" in (root / "docs/ir.md").read_text()


def test_the_walk_is_up_to_date():
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    tool = TOOL.with_name("gen_ir_walk.py")
    subprocess.run([sys.executable, tool, "--check"], check=True, env=env, timeout=120)


def test_page_is_up_to_date():
    subprocess.run([sys.executable, TOOL, "--check"], check=True)
