"""One file timed: ours, ONNX Runtime and OpenVINO, each in a process of its own, in turns."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from zoo_models.record import Record
from zoo_models.timed import others_than

from selfbyoc.bench.contenders import CONTENDERS
from selfbyoc.bench.measure import Method, build_all, in_turns, saved
from selfbyoc.bench.process import Process
from selfbyoc.bench.setting import make_setting

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
            ready, failed = build_all(processes, asked, method, lambda text: None)
            skipped |= {name: result.skipped for name, result in failed.items()}
            skipped |= others_than(ready)
            results, _ = in_turns({n: r for n, r in ready.items() if n not in skipped}, method)
    finally:
        for process in processes.values():
            process.close()
    skipped |= {name: r.skipped for name, r in results.items() if r.skipped}
    times = {n: round(r.milliseconds, 4) for n, r in results.items() if not r.skipped}
    return replace(record, times=times, skipped=skipped)
