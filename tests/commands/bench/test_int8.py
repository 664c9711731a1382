"""Workloads in levels of 8 bits: made by ONNX Runtime's quantiser, shown beside those of floats."""

import io
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from selfbyoc.commands.bench.network import Network
from selfbyoc.commands.bench.performance import markdown
from selfbyoc.commands.bench.quantised import LEVELS, in_levels
from selfbyoc.commands.bench.records import OURS, Report, Result, Row, from_json
from selfbyoc.commands.bench.roof import Measurement, Roof
from selfbyoc.commands.bench.roofline import roofline
from selfbyoc.commands.bench.run import Selection
from selfbyoc.commands.bench.setting import make_setting
from selfbyoc.commands.bench.suite import MODELS, suite
from selfbyoc.commands.bench.tables import group_table, summary_lines
from selfbyoc.commands.bench.workload import Workload, work_of
from selfbyoc.errors import InputError
from selfbyoc.tvm import GENERATION

pytest.importorskip("onnxruntime")


def floats():
    net = Network()
    x = net.dense(net.input("x", 5, 24), 40, act="relu")
    return net.model(net.dense(x, 7))


FLOATS = Workload("small", MODELS, floats)


def kinds(model):
    return [node.op_type for node in model.graph.node]


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_model_in_levels(dynamic):
    workload = in_levels(FLOATS, dynamic=dynamic)
    assert (workload.name, workload.group, workload.floats) == ("small int8", LEVELS, "small")
    model = workload.model()
    assert ("MatMulInteger" if dynamic else "QuantizeLinear") in kinds(model)
    assert model.SerializeToString() == workload.model().SerializeToString()
    assert work_of(model).flops == work_of(floats()).flops == 2 * 5 * (24 * 40 + 40 * 7)


def test_the_suite_has_each_whole_model():
    whole = {w.name for w in suite() if w.group == MODELS}
    levels = [w for w in suite() if w.group == LEVELS]
    assert {w.floats for w in levels} == whole
    dynamic = [w.floats for w in levels if "dynamic" in w.name]
    assert dynamic == ["MiniLM-L6", "BERT-base"]
    assert "tvm" not in Selection().names(LEVELS)


def row(name, group, ours, of="", **peers):
    results = {n: Result(ms, ms, ms, 9, 1e-6, 1e-7) for n, ms in {OURS: ours, **peers}.items()}
    return Row(name, group, 10**8, 10**6, results, floats=of)


ROOF = Roof(2, 500.0, {"memory": 50.0}, 2.0, {}, 1000.0)
METHOD = {"windows": 30, "turns": 3, "seconds": 0.02, "builds": 1}


def report(roof=ROOF):
    rows = row("net", MODELS, 1.0), row("net int8", LEVELS, 0.4, "net", openvino=0.6)
    return Report({"CPU": "x"}, {"TVM": "0"}, GENERATION, 2, METHOD, (roof,), rows)


def test_levels_beside_floats():
    found = report()
    whole, levels = found.rows
    assert found.over_floats(levels) == 2.5
    assert found.over_floats(whole) is None
    assert (found.share(whole), found.share(levels)) == (0.2, pytest.approx(0.25))
    text = markdown(found)
    assert "In int8 beside our own floats: geometric mean 2.50, lowest 2.50." in text
    assert "| net int8 | 100 | 0.400 | 25% | 0.600 | 17% | openvino | 1.50 | 2.50 |" in text
    assert "1000 GOP/s of bytes on 2" in text
    assert any("our floats / ours 2.50" in line for line in summary_lines(found))
    assert roofline(found).count("<circle") == 1


def test_a_report_from_before_has_no_peak_of_bytes():
    old = report(replace(ROOF, gops=np.nan))
    assert "GOP/s" not in markdown(from_json(old.to_json()))
    bad = report(replace(ROOF, gops=-1.0)).to_json()
    with pytest.raises(InputError, match=r"roofs\[0\]\.gops: found -1\.0"):
        from_json(bad)


def test_floats_that_were_not_measured():
    found = replace(report(), rows=report().rows[1:])
    assert found.over_floats(found.rows[0]) is None
    assert "beside our own floats" not in markdown(found)
    console = Console(width=160, record=True, file=io.StringIO())
    console.print(group_table(found, LEVELS))
    assert "our floats / ours" in console.export_text()


def test_the_peak_of_bytes_is_measured():
    assert Measurement(make_setting(1)).roof().gops > 0
