"""A network taken apart, as data: it goes to JSON and comes back from there."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from pathlib import Path

from ....common import structured
from ....common.files import read_text, write_text
from ....errors import InputError
from ..records import OURS, Result
from ..roof import Roof
from .sums import Sums

TVM = "TVM"  # in place of a composite's name


@dataclass(frozen=True)
class Step:
    """A kernel of ours or a node of a peer's, and its time in one call of the model.

    nodes    of the model that it computes, where its runtime tells
    values   what it writes, where its runtime does not
    reads    the steps whose results it reads
    weights  bytes of constants that it reads
    moved    bytes of all else that it reads and writes
    """

    name: str
    kind: str  # composite, op
    milliseconds: float
    nodes: tuple[str, ...] = ()
    values: tuple[Sums, ...] = ()
    reads: tuple[int, ...] = ()
    weights: int = 0
    moved: int = 0
    levels: bool = False  # it multiplies levels of 8 bits


@dataclass(frozen=True)
class Profile:
    """One runtime's steps in the order in which they ran; times are means over some calls."""

    steps: tuple[Step, ...]
    calls: int

    @property
    def milliseconds(self) -> float:
        """Of all steps."""
        return sum(step.milliseconds for step in self.steps)


@dataclass(frozen=True)
class Kernel:
    """One of our kernels: `limit` names what takes `least` milliseconds at least, `nodes` are of
    the ONNX file, `group` is a place in the report's groups.
    """

    name: str
    composite: str
    nodes: tuple[str, ...]
    ops: tuple[str, ...]
    shape: tuple[int, ...]  # of its result in the model
    milliseconds: float
    flops: int
    bytes: int
    limit: str
    least: float
    group: int

    @property
    def share(self) -> float:
        """Of its time that the limit takes; over 1 where it needs less, as Winograd does."""
        return self.least / self.milliseconds if self.milliseconds else math.nan


@dataclass(frozen=True)
class Group:
    """The fewest nodes that everybody computes by steps of their own; time and steps by runtime."""

    nodes: tuple[str, ...]
    ops: tuple[str, ...]
    milliseconds: dict[str, float]
    steps: dict[str, tuple[str, ...]]

    @property
    def best(self) -> str:
        """The fastest peer; none where no peer computes it by itself."""
        peers = {n: time for n, time in self.milliseconds.items() if n != OURS}
        return min(peers, key=lambda n: peers[n]) if peers else ""

    @property
    def loss(self) -> float:
        """Milliseconds that we take longer than the fastest peer."""
        return self.milliseconds.get(OURS, 0.0) - self.milliseconds.get(self.best, 0.0)


@dataclass(frozen=True)
class Network:
    """One model: `calls` are whole ones without a profile, `profiled` is the sum of the steps."""

    name: str
    calls: dict[str, Result]
    profiled: dict[str, float]
    kernels: tuple[Kernel, ...]
    groups: tuple[Group, ...]
    others: float = math.nan  # the share of the cores' time that went to somebody else

    def rest(self, name: str) -> float:
        """Of a call, what is in no step: launches of an executor, and what a profile adds."""
        return self.calls[name].milliseconds - self.profiled[name]


@dataclass(frozen=True)
class Places:
    """All models that were asked for, and where and how they were measured."""

    where: bool  # always: what tells this report from the other one
    facts: dict[str, str]
    versions: dict[str, str]
    generation: str
    threads: int
    roof: Roof
    networks: tuple[Network, ...] = field(default=())
    target: str = "unknown"


def write_places(path: Path, places: Places) -> None:
    """As JSON; a NaN is null."""
    write_text(path, json.dumps(structured.nullable(asdict(places)), indent=1))


def is_places(path: Path) -> bool:
    """Whether a JSON file holds this report, and not the one of whole models."""
    try:
        data = structured.loads(read_text(path))
    except ValueError:
        return False
    return isinstance(data, dict) and data.get("where") is True


def read_places(path: Path) -> Places:
    """Raises InputError that names the file, and the field."""
    try:
        return structured.read(Places, read_text(path))
    except ValueError as err:
        raise InputError(f"{path} is no report of `bench --where`: {err}") from err
