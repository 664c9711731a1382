"""What the command line of `bench` asks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Request:
    """What the command line asks."""

    own: Sequence[Path] = ()
    shape: Sequence[str] = ()
    input: Sequence[str] = ()
    composites: Sequence[Path | str] = ()
    lengths: str | None = None
    size: Sequence[str] = ()
    target: str | None = None
    threads: int | None = None
    requantize: str = "stepwise"
    only: Sequence[str] = ()
    sweep: bool = False
    models: bool = False
    quick: bool = False
    peers: str | None = None
    builds: int = 1
    minilm: Path | None = None
    json: Path | None = None
    resume: bool = False
    roofline: Path | None = None
    markdown: Path | None = None
    where: bool = False
    start: bool = False
    decode: str | None = None
    weights: str | None = None
    keep: Path | None = None
    behind: int | None = None
    list: bool = False
