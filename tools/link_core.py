"""Puts a built extension beside the Python sources, so that PYTHONPATH is all a test needs.

link_core.py BUILD          links BUILD's extension into python/simt (the development build)
link_core.py BUILD --tree   makes BUILD/python/simt of links to python/simt and BUILD's extension
                            (a second build, e.g. with sanitizers, beside the first)

python/simt is that of the sources which BUILD was made from, in another worktree too: an extension
works with its own Python only.
"""

import glob
import json
import os
import shutil
import sys


def package_of(build):
    with open(os.path.join(build, "meson-info", "meson-info.json")) as f:
        sources = json.load(f)["directories"]["source"]
    return os.path.join(sources, "python", "simt")


def relink(target, link):
    """Makes link point to target, replacing what was there."""
    if os.path.lexists(link):
        os.remove(link)
    os.symlink(target, link)


def main(build, tree):
    build = os.path.abspath(build)
    extensions = glob.glob(os.path.join(build, "src", "binding", "_core*.so"))
    if len(extensions) != 1:
        sys.exit(f"link_core.py: expected one extension in {build}, found {extensions}")
    package = folder = package_of(build)
    if tree:
        folder = os.path.join(build, "python", "simt")
        shutil.rmtree(os.path.dirname(folder), ignore_errors=True)
        os.makedirs(folder)
        for name in os.listdir(package):
            if not name.startswith("_core") and name != "__pycache__":
                relink(os.path.join(package, name), os.path.join(folder, name))
    relink(extensions[0], os.path.join(folder, os.path.basename(extensions[0])))


if __name__ == "__main__":
    main(sys.argv[1], "--tree" in sys.argv[2:])
