"""One file timed: ours, ONNX Runtime and OpenVINO, each in a process of its own, in turns."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from zoo_models.record import Record
from zoo_models.timed import measured

from selfbyoc.commands.bench.contenders import CONTENDERS
from selfbyoc.commands.bench.measure import Method, saved
from selfbyoc.commands.bench.process import Process
from selfbyoc.commands.bench.setting import make_setting

from .catalogue import Entry
from .prepared import inputs_for, prepared

WHO = ("selfbyoc", "onnxruntime", "openvino")


def timed(entry: Entry, record: Record) -> Record:
    """The record with milliseconds of those who take part, and why others do not."""
    setting, method = make_setting(), Method()
    known = {c.name: c for c in CONTENDERS if c.name in WHO}
    skipped = {name: why for name, c in known.items() if (why := c.missing()) is not None}
    processes = {n: Process(n, setting.threads) for n in known if n not in skipped}
    model = prepared(*entry)
    try:
        with tempfile.TemporaryDirectory(prefix="files-") as folder:
            asked = (saved(model, Path(folder)), inputs_for(model, entry[1], 1), setting)
            times, skipped = measured(processes, asked, method, skipped)
    finally:
        for process in processes.values():
            process.close()
    return replace(record, times=times, skipped=skipped)
