"""`melting --time` of the functions outside of all kernels; no test asks how fast they are."""

import json
from dataclasses import replace

import pytest

import selfbyoc
from selfbyoc import op
from selfbyoc.analysis.melting.outside import Outside, text
from selfbyoc.analysis.melting.peak import Timing
from selfbyoc.ir.emit import emit


def model(x, w):
    y = op.relu(op.dense(x, w))
    return op.add(op.exp(y), op.sum(op.tanh(y), axis=-1, keepdims=True))


@pytest.fixture(scope="module")
def report():
    parted = selfbyoc.partition_for_tefuse(emit(model, {"x": (33, 40), "w": (24, 40)}))
    return selfbyoc.melting(parted, time=True)


def test_every_function_with_its_bytes(report):
    assert [k.composite for k in report.kernels] == ["dense"]
    assert report.outside
    assert sum(f.calls for f in report.outside) == len(report.outside)
    assert all(f.unscheduled == "" and f.timing is not None for f in report.outside)
    assert all(f.rate > 0 and f.share > 0 for f in report.outside)
    assert any(f.timing.gflops > 0 for f in report.outside)
    matrix = 4 * 33 * 24
    assert all(matrix < f.bytes <= 4 * matrix for f in report.outside)
    assert len(json.loads(report.to_json())["outside"]) == len(report.outside)


def test_the_text_names_them(report):
    printed = str(report)
    assert f"Outside of the kernels: {len(report.outside)} functions" in printed
    assert all(f.name[:36] in printed for f in report.outside)


def test_without_times_or_of_one_composite_there_is_none():
    parted = selfbyoc.partition_for_tefuse(emit(model, {"x": (33, 40), "w": (24, 40)}))
    assert selfbyoc.melting(parted).outside == ()


def test_shares():
    fast = Outside("copy", 3, 2_000_000, "", Timing(0.1, True, 0.0, None), 40.0)
    assert fast.milliseconds == pytest.approx(0.3)
    assert (fast.rate, fast.share) == (pytest.approx(20.0), pytest.approx(0.5))
    assert fast.limit == (pytest.approx(0.5), "memory")
    busy = replace(fast, timing=Timing(0.1, True, 90.0, 0.8))
    assert busy.limit == (0.8, "peak")
    assert text([busy], 0.7)[1].endswith(" 20.0 GB/s  80% of peak")
    unknown = Outside("dynamic", 1, 0, "no schedule for ?")
    lines = text([fast, unknown], 0.7)
    assert lines[0] == "Outside of the kernels: 2 functions, 0.300 ms of 1.000 (30%)"
    assert lines[-1] == "    left as TVM lowered it: no schedule for ?"
