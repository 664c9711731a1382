"""TVM's RPC tracker: which servers of a key there are, and the next free one."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import InputError, TuningError, did_you_mean
from ..tvm.rpc import REQUEST, SUMMARY, ask_tracker

PATIENCE = 5.0  # seconds for an answer of the tracker


@dataclass(frozen=True)
class Server:
    """An RPC server that the tracker keeps free for us for some seconds."""

    host: str
    port: int
    match_key: str

    @property
    def address(self) -> str:
        """`host:port`, as the tracker lists it."""
        return f"{self.host}:{self.port}"


@dataclass(frozen=True)
class Tracker:
    """TVM's RPC tracker at host:port, and the key under which the servers of one target register.

    Raises InputError for a port, or a key, that TVM's protocol cannot carry.
    """

    host: str
    port: int
    key: str

    def __post_init__(self) -> None:
        """Refuse what TVM's protocol cannot carry."""
        if not (isinstance(self.port, int) and 0 < self.port < 65536 and self.host):
            raise InputError(f"tracker: expected HOST:PORT, found {self.host}:{self.port}")
        if not self.key or ":" in self.key or self.key.split() != [self.key]:
            raise InputError(
                f"tracker: expected a key without spaces and colons, found {self.key!r}"
            )

    @classmethod
    def parse(cls, address: str, key: str) -> Tracker:
        """From `host:port` and a key. Raises InputError for anything else."""
        host, _, port = address.rpartition(":")
        if not port.isdecimal():
            raise InputError(f"tracker: expected HOST:PORT, found {address!r}")
        return cls(host, int(port), key)

    def servers(self) -> list[str]:
        """The addresses of the servers of this key, free and busy.

        Raises TuningError where the tracker cannot be reached.
        """
        return self._registered().get(self.key, [])

    def check(self) -> list[str]:
        """The servers of this key. Raises TuningError also where there is none."""
        known = self._registered()
        if self.key not in known:
            hint = did_you_mean(self.key, known)
            raise TuningError(f"{self} knows no server with this key; it has {sorted(known)}{hint}")
        return known[self.key]

    def request(self, patience: float) -> Server | None:
        """The next server of this key, or None where none gets free in time (seconds).

        Raises TuningError where the tracker cannot be reached.
        """
        try:
            host, port, key = ask_tracker(self._address, [REQUEST, self.key, "", 1], patience)
        except TimeoutError:
            return None
        except (OSError, ValueError) as err:
            raise self._unreachable(err) from err
        return Server(host, port, key)

    def _registered(self) -> dict[str, list[str]]:
        try:
            summary = ask_tracker(self._address, [SUMMARY], PATIENCE)
        except (OSError, ValueError) as err:
            raise self._unreachable(err) from err
        found: dict[str, list[str]] = {}
        for info in summary["server_info"]:
            key, (host, port) = info["key"].removeprefix("server:"), info["addr"]
            found.setdefault(key, []).append(f"{host}:{port}")
        return found

    @property
    def _address(self) -> tuple[str, int]:
        return self.host, self.port

    def _unreachable(self, err: Exception) -> TuningError:
        return TuningError(f"{self} cannot be reached: {err}")

    def __str__(self) -> str:
        return f"tracker {self.host}:{self.port} (key {self.key})"
