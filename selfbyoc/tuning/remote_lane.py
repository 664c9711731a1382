"""Measuring on the servers of a tracker: each job on the next free one, again if that goes."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..errors import TargetError, TuningError
from ..tvm.types import Target
from .measure import Job, Measured
from .process import Failed, Process
from .remote import Reply, measured_there
from .tracker import Server, Tracker

logger = logging.getLogger(__name__)

ASK = 2.0  # seconds of waiting for a free server, after which we look whether there are any
GONE = 15.0  # seconds without a server, after which none is expected to come back
SILENT = 10.0  # seconds that a server has to end a session whose time is over
TWICE = 2  # servers that go while a job runs there: then it is the job
TRIES = 5  # servers that go before a job runs, one after the other


@dataclass
class Servers:
    """The servers of a tracker's key, which kernels use `cores` threads of.

    silent   addresses of those that gave no answer; the tracker takes such for busy
    stopped  wait no longer: others may keep the servers busy without an end
    """

    tracker: Tracker
    cores: int
    silent: set[str] = field(default_factory=set)
    stopped: bool = False

    def next(self) -> Server:
        """Wait for a free one as long as there are any. Raises TuningError if there are none."""
        seen = time.monotonic()
        while not self.stopped and time.monotonic() - seen < GONE:
            try:
                if server := self.tracker.request(ASK):
                    self.silent.discard(server.address)
                    return server
                if busy := set(self.tracker.servers()) - self.silent:
                    seen = time.monotonic()
                    logger.info("waiting for one of %s", sorted(busy))
            except TuningError as err:  # perhaps it is being restarted
                logger.debug("%s", err)
                time.sleep(ASK)
        why = "stopped" if self.stopped else "all servers are lost"
        raise TuningError(
            f"{self.tracker}: {why}; what was measured is recorded, and the same call goes on from "
            "there"
        )


class RemoteLane:
    """One server at a time, and the process of this machine that talks to it."""

    def __init__(self, servers: Servers) -> None:
        self.servers = servers
        self._process = Process()

    def start(self) -> None:
        """Begin with loading TVM here."""
        self._process.start()

    def measured(self, job: Job, seconds: float) -> Measured:
        """Run a job on a server, in at most `seconds` there, and on another one if that goes.

        Each time the server starts a process for it. Raises Failed where the job fails, or a second
        server goes while it runs; TuningError where no server is left, or one is not what the
        target says.
        """
        lost: list[str] = []
        for _ in range(TRIES):
            server = self.servers.next()
            reply = self._reply(server, job, seconds)
            if reply.found is not None:
                return reply.found
            self._raise(reply, server)
            logger.warning("server %s is lost: %s", server.address, reply.lost)
            lost += [server.address] if reply.at_risk else []
            if len(lost) == TWICE:
                raise Failed(f"the servers {' and '.join(lost)} went while it ran there")
        raise TuningError(
            f"{self.servers.tracker}: {TRIES} sessions could not be used, the last one with "
            f"{reply.lost}; is it the same version of TVM there?"
        )

    def _raise(self, reply: Reply, server: Server) -> None:
        if reply.failed:
            raise Failed(reply.failed)
        if reply.unfit:
            raise TuningError(f"{self.servers.tracker}, server {server.address}: {reply.unfit}")

    def _reply(self, server: Server, job: Job, seconds: float) -> Reply:
        given = (server, self.servers.cores, seconds, job)
        try:
            return self._process.call(measured_there, *given, seconds=seconds + SILENT)
        except Failed as err:
            if err.ended:  # TVM 0.17's client may abort when its server goes
                return Reply(lost=str(err), at_risk=True)
            if not err.late:
                raise
            self.servers.silent.add(server.address)
            return Reply(lost=str(err))

    def stop(self) -> None:
        """Wait for no server any more."""
        self.servers.stopped = True

    def end(self) -> None:
        """End the process; a server ends its session by itself."""
        self._process.end()


def remote_lanes(tracker: Tracker, targets: Sequence[Target]) -> list[RemoteLane]:
    """A lane for each server that there is now. Raises TuningError where there is none, TargetError
    for targets that are not one, or do not say their cores.
    """
    found = sorted({str(target) for target in targets})
    if len(found) > 1:
        raise TargetError(f"target: {tracker} serves one target, found {', '.join(found)}")
    servers = Servers(tracker, _cores(targets[0], tracker) if targets else 1)
    return [RemoteLane(servers) for _ in tracker.check()]


def _cores(target: Target, tracker: Tracker) -> int:
    found = target.attrs.get("num-cores")
    if str(target.kind) != "llvm":
        raise TargetError(f"target: kernels for {target.kind} are not measured by {tracker}")
    if not found:
        raise TargetError(
            f"target: expected num-cores, the cores of the machines of {tracker}; found {target}"
        )
    return int(found)
