"""Installs the aliases of `simt run` in child processes, then runs the machine's own sitecustomize.

Python imports this at start because `simt run` puts its folder on PYTHONPATH. It leaves sys.path as
it would be without it, and does nothing in an interpreter of another kind.
"""


def _install(here):
    import os
    import sys

    tag, _, names = os.environ.get("SIMT_ALIAS", "").partition(":")
    if tag != sys.implementation.cache_tag or not names:
        return
    if "simt" not in sys.modules:
        # This very simt, wherever sys.path might find another one.
        from importlib.util import module_from_spec, spec_from_file_location

        package = os.path.dirname(here)
        spec = spec_from_file_location(
            "simt", os.path.join(package, "__init__.py"), submodule_search_locations=[package]
        )
        module = sys.modules["simt"] = module_from_spec(spec)
        spec.loader.exec_module(module)
    from simt import alias

    alias.install(*names.split(","))


def _chain(here):
    """Runs the sitecustomize that would have been found without us."""
    import sys
    from importlib.machinery import PathFinder

    sys.path[:] = [p for p in sys.path if p != here]
    spec = PathFinder.find_spec("sitecustomize")
    if spec is not None and spec.loader is not None:
        from importlib.util import module_from_spec

        module = module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


def _start():
    import os

    here = os.path.dirname(os.path.abspath(__file__))
    _install(here)
    _chain(here)


_start()
