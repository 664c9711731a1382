"""The HTML page: the graph, a panel with the loop nest of each kernel, and what was left."""

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from html import escape

import pytest
from harness import model, random_args

import selfbyoc
from selfbyoc import BUILTIN, Case, melting, op
from selfbyoc.__main__ import main
from selfbyoc._tvm import GENERATION, make_target
from selfbyoc.analysis.explain.grouping import left
from selfbyoc.analysis.melting.records import Failure
from selfbyoc.models.onnx_model import graph_of
from selfbyoc.view.nest import draw_nest
from selfbyoc.view.page import Page, render

pytest.importorskip("pygraphviz", exc_type=ImportError)

AVX512 = make_target({"kind": "llvm", "mcpu": "cascadelake", "num-cores": 2})
CHAIN = next(c for c in BUILTIN if c.name == "conv2d_relu_conv2d_relu")


def program(x, w1, w2, w3):
    """A chain that is one kernel, and a logarithm that no composite has and no kernel takes in."""
    y = op.relu(op.conv2d(op.relu(op.conv2d(x, w1, padding=1)), w2, padding=1))
    return op.log(op.relu(op.conv2d(y, w3)))


@pytest.fixture(scope="module")
def parted():
    names = ("w1", "w2", "w3")
    case = Case(
        program,
        x=(1, 3, 19, 23),
        w1=(8, 3, 3, 3),
        w2=(8, 8, 3, 3),
        w3=(4, 8, 1, 1),
        constants=names,
    )
    mod = model(CHAIN, case, random_args(case))
    return mod, selfbyoc.partition_for_tefuse(mod, target=AVX512)


def page(parted, found):
    mod, done = parted
    report = selfbyoc.report(done)
    return render(Page("small", "A <small> model.", left(report)), graph_of(mod), report, found)


def test_each_kernel_has_a_panel_that_its_box_leads_to(parted):
    html = page(parted, melting(parted[1], AVX512))
    matched = selfbyoc.report(parted[1]).matched
    assert len(matched) == 2
    for number, record in enumerate(matched):
        assert html.count(f'<section class="kernel" id="k{number}"') == 1
        # From the box, from each of its ops, and from the list.
        assert html.count(f'href="#k{number}"') == len(record.ops) + 2
        assert escape(record.reason) in html
    assert html.count('<svg class="nest"') == 2
    assert "A &lt;small&gt; model." in html
    assert "log" in html
    assert "log is too long an expression" in html


def test_the_page_is_the_same_each_time_and_loads_nothing(parted):
    html = page(parted, melting(parted[1], AVX512))
    assert html == page(parted, melting(parted[1], AVX512))
    loads = ('src="', "url(", "@import", 'rel="stylesheet"', "fetch(")
    assert not [word for word in loads if word in html]


def test_without_melting_the_panels_say_why_and_draw_nothing(parted):
    html = page(parted, None)
    assert html.count('<section class="kernel"') == 2
    assert '<svg class="nest"' not in html
    assert "Melted" not in html


def test_a_kernel_that_could_not_be_analysed_is_a_line_in_its_panel(parted, monkeypatch):
    found = melting(parted[1], AVX512)
    first, second = found.kernels
    failure = Failure(first.symbol, first.composite, first.roots, "InputError: <no> blocks")
    html = page(parted, replace(found, kernels=(second,), failures=(failure,)))
    assert "Its loop nest is not shown: InputError: &lt;no&gt; blocks" in html

    def broken(kernel):
        raise ZeroDivisionError("on purpose")

    monkeypatch.setattr("selfbyoc.view.panels.draw_nest", broken)
    assert page(parted, found).count("No picture: ZeroDivisionError: on purpose") == 2


def test_the_picture_holds_every_stage_inside_its_frame(parted):
    for kernel in melting(parted[1], AVX512).kernels:
        svg = ET.fromstring(draw_nest(kernel))
        _, _, width, height = map(float, svg.attrib["viewBox"].split())
        for rect in svg.iter("rect"):
            x, y, w, h = (float(rect.attrib[name]) for name in ("x", "y", "width", "height"))
            assert 0 <= x <= x + w <= width
            assert 0 <= y <= y + h <= height
        texts = " ".join(t.text for t in svg.iter("text"))
        assert all(str(stage) in texts for stage in kernel.nest.stages)
        arrows = [p for p in kernel.placements if not p.in_registers]
        drawn = [p for p in svg.iter("path") if p.attrib.get("d", "").startswith("M")]
        assert len(drawn) == 2 * sum(len(p.consumers) for p in arrows)


# Relay's passes take half a minute for GoogLeNet.
@pytest.mark.parametrize("name", ["squeezenet" if GENERATION == "relay" else "inception_v1"])
def test_the_page_holds_the_whole_graph(name, tmp_path):
    onnx = pytest.importorskip("onnx")
    from selfbyoc.models import onnx_model as models

    network = models.light_model(name)
    path, file = tmp_path / "m.onnx", tmp_path / "m.html"
    onnx.save(network, path)
    assert main(["explain", str(path), "--html", str(file)]) == 0
    html = file.read_text(encoding="utf-8")
    found = selfbyoc.report(selfbyoc.partition_for_tefuse(models.import_onnx(network)))
    assert all(f"<title>{name}</title>" in html for name, _, _ in found.ops)
    boxes = sum(1 for r in found.matched if len(r.ops) > 1)
    assert html.count('class="cluster"') == boxes
    assert html.count('<svg class="nest"') == len(re.findall('<section class="kernel"', html)) > 5
    assert len(html) < 1_500_000
