"""What the kinds share: programs run in processes of their own, with a limit on their time."""

import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def environment(**more):
    """The environment of a child: the same simt as here, errors in English."""
    env = dict(os.environ, SIMT_LANG="en", **{name: str(v) for name, v in more.items()})
    if "PYTHONPATH" not in env and os.path.isdir(os.path.join(ROOT, "build")):
        env["PYTHONPATH"] = os.path.join(ROOT, "python")
    return env


class Outcome:
    """How a child ended: its exit code (None: it had to be killed), stdout and stderr."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def __str__(self):
        how = (
            "hung, was killed"
            if self.code is None
            else f"died of signal {-self.code}"
            if self.code < 0
            else f"exit code {self.code}"
        )
        tail = (self.out[-500:] + self.err[-1500:]).strip()
        return f"{how}\n    " + tail.replace("\n", "\n    ")


def run_python(text, *args, timeout=60, **env):
    """Runs a program's text, or a file, in a new interpreter; its children are in its group."""
    start = [text] if os.path.isabs(text) else ["-c", text]
    child = subprocess.Popen(
        [sys.executable, *start, *map(str, args)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(**env),
        start_new_session=True,
    )
    try:
        out, err = child.communicate(timeout=timeout)
        return Outcome(child.returncode, out, err)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, 9)  # its own group: nobody else is in it
        out, err = child.communicate()
        return Outcome(None, out, err)
