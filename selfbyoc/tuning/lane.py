"""Where candidates are measured: a device, and the process of this machine that drives it."""

from __future__ import annotations

from typing import Protocol

from .measure import Device, Job, Measured, measured
from .process import Failed, Process


class Lane(Protocol):
    """One candidate after the other is measured on it."""

    def start(self) -> None:
        """Begin with what takes seconds."""

    def measured(self, job: Job, seconds: float) -> Measured:
        """Run a job; Failed says why it could not be, after at most `seconds`."""

    def stop(self) -> None:
        """Wait for no device any more."""

    def end(self) -> None:
        """End the process."""


class DeviceLane:
    """One device with its process."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self._process = Process()

    def start(self) -> None:
        """Begin with loading TVM."""
        self._process.start()

    def measured(self, job: Job, seconds: float) -> Measured:
        """Run a job; Failed says why it could not be, after at most `seconds`.

        What fails or is wrong must do so in a process that ran nothing else before: an earlier
        candidate may have written where it must not.
        """
        if self._process.calls:
            try:
                found = self._once(job, seconds)
            except Failed as err:
                if err.late:
                    raise
            else:
                if not found.wrong:
                    return found
        return self._once(job, seconds)

    def _once(self, job: Job, seconds: float) -> Measured:
        try:
            found = self._process.call(measured, self.device, job, seconds=seconds)
        except Failed:
            self._process.end()
            raise
        if found.wrong:
            self._process.end()
        return found

    def stop(self) -> None:
        """There is nothing to wait for."""

    def end(self) -> None:
        """End the process."""
        self._process.end()
