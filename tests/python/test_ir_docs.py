"""docs/ir.md is made from ops.def."""

import pathlib
import subprocess
import sys

TOOL = pathlib.Path(__file__).parents[2] / "tools" / "gen_ir_docs.py"


def test_page_is_up_to_date():
    subprocess.run([sys.executable, TOOL, "--check"], check=True)
