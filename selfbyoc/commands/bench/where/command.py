"""`selfbyoc bench MODEL.onnx --where`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from ....errors import InputError
from ...progress import step
from ..measure import Method
from ..records import OURS
from ..setting import Setting
from ..workload import Workload
from .records import write_places
from .run import taken_apart
from .tables import show


def show_where(
    console: Console, workloads: Sequence[Workload], peers: Sequence[str], setting: Setting,
    method: Method, json: Path | None,
) -> bool:  # fmt: skip
    """Take the models apart, show it, write it down; whether our results are right."""
    if not workloads:
        raise InputError("--where takes a MODEL.onnx apart, and there is none")
    with step("taking apart") as says:
        places = taken_apart(workloads, peers, setting, method, says)
    if json is not None:
        write_places(json, places)
    show(console, places)
    return all(network.calls[OURS].counts for network in places.networks)
