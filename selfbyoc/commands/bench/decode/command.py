"""`bench --decode CONFIG`: who takes part, and what is shown."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from ....common.files import write_text
from ....errors import InputError
from ...progress import step
from ..options import WEIGHTS, parse_weights
from ..records import OURS
from ..request import Request
from ..setting import Setting
from .configs import check_config
from .contender import CONTENDERS
from .run import measured
from .tables import notes, table

_ALSO = ("decode", "weights", "keep", "behind", "threads", "target", "peers", "quick", "json")


def show_decoding(console: Console, asked: Request, setting: Setting) -> bool:
    """Measure and print; whether ours ran, right, with all kinds of weights."""
    for name, usual in asdict(Request()).items():
        if name not in _ALSO and (getattr(asked, name) or None) != (usual or None):
            told = "MODEL" if name == "own" else f"--{name}"
            raise InputError(f"{told}: not beside --decode")
    config, peers = str(asked.decode), asked.peers.split(",") if asked.peers else [*CONTENDERS]
    check_config(config)
    unknown = sorted({*peers} - {*CONTENDERS})
    if unknown:
        raise InputError(f"unknown {unknown}; known: {[*CONTENDERS]}")
    taking = [name for name in CONTENDERS if name in (OURS, *peers)]
    weights = parse_weights(asked.weights) if asked.weights else WEIGHTS
    with step("decoding") as says, _folder(asked.keep) as folder:
        report = measured(config, weights, taking, setting, asked, folder, says)
    for kind in weights:
        console.print("", table(report, kind))
    for line in notes(report, taking):
        console.print(line, highlight=False, soft_wrap=True)
    if asked.json is not None:
        write_text(asked.json, json.dumps(asdict(report), indent=1))
    return all(row.counts for row in report.rows if row.contender == OURS)


@contextmanager
def _folder(kept: Path | None) -> Iterator[Path]:
    if kept is not None:
        kept.mkdir(parents=True, exist_ok=True)
        yield kept.resolve()
        return
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)
