"""Which language messages are in: SIMT_LANG=en|zh, else the locale.

The first line of an exception is always English; hints, `simt run` and `simt doctor` follow this.
"""

import os


def lang():
    """'zh' or 'en'."""
    asked = os.environ.get("SIMT_LANG", "").lower()
    if asked[:2] in ("en", "zh"):
        return asked[:2]
    for variable in ("LC_ALL", "LC_MESSAGES", "LANG"):
        value = os.environ.get(variable)
        if value:
            return "zh" if value.startswith("zh") else "en"
    return "en"


def tr(en, zh):
    """The text in the user's language."""
    return zh if lang() == "zh" else en
