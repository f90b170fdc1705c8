"""Processes whose slices of time run in turns: a slow spell of the machine hits all of them."""

import contextlib
import json
import subprocess
import tempfile
import threading

from turns import READY

LIMIT = 900  # seconds


class Process:
    """A program that calls turns.turn(); it is started when it is first let run."""

    def __init__(self, command, env):
        self.command, self.env = command, env | {"SIMT_BENCH_TURNS": "1"}
        self.child, self.seconds = None, None

    def run_slice(self):
        """Lets it run until it waits for its next turn; False when it has ended."""
        if self.child is None:
            self.err = tempfile.TemporaryFile("w+")
            self.child = subprocess.Popen(
                self.command,
                env=self.env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self.err,
                text=True,
            )
        else:
            self.child.stdin.write("\n")
            self.child.stdin.flush()
        last = ""
        for line in self.child.stdout:
            if line.strip() == READY:
                return True
            last = line
        if self.child.wait():
            self.err.seek(0)
            raise subprocess.CalledProcessError(
                self.child.returncode, self.command, stderr=self.err.read()
            )
        self.seconds = json.loads(last)["seconds"]
        return False

    def stop(self):
        if self.child is not None:
            self.child.kill()
            self.child.communicate()
            self.err.close()


def run_in_turns(commands):
    """What each of {name: (command, env)} measures: {name: seconds}. The order of a turn is the
    reverse of the last one's."""
    processes = {name: Process(*how) for name, how in commands.items()}
    watch = threading.Timer(LIMIT, lambda: [p.child and p.child.kill() for p in processes.values()])
    watch.start()
    try:
        waiting = list(processes)
        while waiting:
            waiting = [name for name in waiting if processes[name].run_slice()][::-1]
    finally:
        watch.cancel()
        for process in processes.values():
            with contextlib.suppress(OSError):
                process.stop()
    return {name: process.seconds for name, process in processes.items()}
