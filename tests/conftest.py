"""Leaves out tests marked exhaustive (minutes each) unless -m names them.

Not by -m in addopts: a -m on the command line would replace it and run them.
"""

import os
import signal

import pytest

# A shell starts what it runs in the background with SIGINT ignored, and programs inherit that: the
# tests of Ctrl-C would wait for ever in their children.
signal.signal(signal.SIGINT, signal.default_int_handler)


def skip_host_memory(items):
    for item in items:
        marker = item.get_closest_marker("host_memory")
        if marker:
            item.add_marker(pytest.mark.skip(reason=marker.args[0]))


def pytest_collection_modifyitems(config, items):
    if os.environ.get("SIMT_TARGET") == "remote":
        skip_host_memory(items)
    if "exhaustive" in (config.option.markexpr or ""):
        return
    left_out = [item for item in items if item.get_closest_marker("exhaustive")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
