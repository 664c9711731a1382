"""TVM's RPC tracker and servers on loopback, each in a process group that is killed at the end."""

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager

from selfbyoc.tuning.tracker import Tracker
from selfbyoc.tvm.rpc import SUMMARY, ask_tracker

HOST, KEY = "127.0.0.1", "loopback"
WAIT = 60  # seconds for a process to start


def free_port():
    with socket.socket() as sock:
        sock.bind((HOST, 0))
        return sock.getsockname()[1]


class Farm:
    """A tracker, and the servers that were started with it."""

    def __init__(self, folder):
        self.folder, self.processes, self.port = folder, {}, free_port()
        self.tracker = Tracker(HOST, self.port, KEY)

    def start_tracker(self):
        self._start("tracker", "selfbyoc.tuning.tracking", self.port)
        _until(lambda: _listens(self.port))  # a server that finds none sleeps for 5 s

    def start_servers(self, *names, **modules):
        """By name, of our module, or of those that are given."""
        known = self._registered()
        modules |= dict.fromkeys(names, "selfbyoc.tuning.server")
        for name, module in modules.items():
            options = [f"--tracker={HOST}:{self.port}", f"--key={KEY}"]
            self._start(name, module, free_port(), *options)
        _until(lambda: len(self._registered() - known) == len(modules))

    def _registered(self):
        return set(self.tracker._registered().get(KEY, ()))

    def _start(self, name, module, port, *options):
        command = [sys.executable, "-m", module, f"--host={HOST}", f"--port={port}"]
        with (self.folder / f"{name}.log").open("wb") as log:
            self.processes[name] = subprocess.Popen(
                [*command, f"--port-end={port + 1}", *options],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TVM_NUM_THREADS": "1"},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def wait_until_free(self, count):
        """A server that is still at the end of a session is given to nobody."""
        _until(lambda: self._free() == count)

    def _free(self):
        return ask_tracker((HOST, self.port), [SUMMARY], WAIT)["queue_info"][KEY]["free"]

    def signal(self, name, number):
        """To all processes of a server."""
        os.killpg(self.processes[name].pid, number)

    def kill(self, *names):
        """All processes of these, without a word to anybody."""
        for name in names:
            process = self.processes.pop(name)
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def end(self):
        self.kill(*self.processes)


@contextmanager
def farm(folder):
    """A tracker, whose servers end with it."""
    made = Farm(folder)
    try:
        made.start_tracker()
        yield made
    finally:
        made.end()


def _listens(port):
    try:
        socket.create_connection((HOST, port), 1).close()
    except OSError:
        return False
    return True


def _until(is_so):
    limit = time.monotonic() + WAIT
    while not is_so():
        assert time.monotonic() < limit, "the farm is not what it should be"
        time.sleep(0.05)
