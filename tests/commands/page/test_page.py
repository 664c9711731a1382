"""The HTML page: the graph, a panel with the loop nest of each kernel, and what was left."""

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from html import escape

import pytest
from harness import model, random_args

import selfbyoc
from selfbyoc import BUILTIN, Case, emit, melting, op
from selfbyoc.__main__ import main
from selfbyoc.analysis.explain.grouping import left
from selfbyoc.analysis.melting.outside import Outside
from selfbyoc.analysis.melting.peak import Timing
from selfbyoc.analysis.melting.records import Failure
from selfbyoc.commands.page.drawing import FAR, draw
from selfbyoc.commands.page.folded import nodes
from selfbyoc.commands.page.nest import draw_nest
from selfbyoc.commands.page.page import Page, render
from selfbyoc.commands.page.parts import names
from selfbyoc.graph import OpGraph
from selfbyoc.models.onnx_model import graph_of
from selfbyoc.tvm import GENERATION, make_target

pytest.importorskip("pygraphviz")

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
        # From the kernel's node; from the box and each of its ops; from the list, and its place.
        assert html.count(f'href="#k{number}"') == 1 + (1 + len(record.ops)) + 2
        assert escape(record.reason) in html
    assert html.count('<svg class="nest"') == 2
    assert "A &lt;small&gt; model." in html
    assert "log" in html
    assert "log is too long an expression" in html


def test_ops_of_a_kind_are_one_row_with_each_reason(parted):
    mod, done = parted
    report = selfbyoc.report(done)
    (one,) = [row for row in left(report) if row.kind == "log"]
    rows = [one, replace(one, why="it is <wide>", count=3)]
    html = render(Page("small", "", rows), graph_of(mod), report, melting(done, AVX512))
    (found,) = re.findall(r"<details><summary><i></i><b>log</b>.*?</details>", html)
    assert f"<span>{one.count + 3}</span>" in found
    assert f"<p><b>{one.count}</b> {escape(one.why)}</p>" in found
    assert "<p><b>3</b> it is &lt;wide&gt;</p>" in found


def test_without_times_shares_are_of_the_operations(parted):
    html = page(parted, melting(parted[1], AVX512))
    assert "2 kernels hold 6 of the model&#x27;s 7 ops" in html
    assert "No times: explain --time measures." in html
    assert "of the model's operations" in html
    assert "<span>operations</span>" in html


def test_with_times_each_kernel_has_its_own_and_its_share(parted):
    found = melting(parted[1], AVX512)
    slow, fast = (timed(k, ms) for k, ms in zip(found.kernels, (3.0, 0.75), strict=True))
    outside = (Outside("log", 5, 8, timing=Timing(0.05, True, 0.0, None)),)
    html = page(parted, replace(found, kernels=(slow, fast), outside=outside))
    assert "take 94% of 4.00 ms, each measured alone." in html
    assert "<b>3.000 ms</b>, 75% of the model's time" in html
    assert html.count(">0.750 ms · 19%</text>") == 1  # in its node; its box says it after its name
    assert html.count("0.750 ms · 19%</text>") == 2
    assert "<td>log</td><td>0.250 ms</td><td>6.2%</td>" in html
    assert "No times" not in html
    assert "busy" not in html
    html = page(parted, replace(found, kernels=(timed(slow, 1, False),), outside=()))
    assert "take 1.00 ms, each measured alone. What is left was not measured. The machine" in html


def timed(kernel, milliseconds, quiet=True):
    return replace(kernel, timing=Timing(milliseconds, quiet, 1.0, None))


def test_the_page_is_the_same_each_time_and_loads_nothing(parted):
    html = page(parted, melting(parted[1], AVX512))
    assert html == page(parted, melting(parted[1], AVX512))
    loads = ('src="', "url(", "@import", 'rel="stylesheet"', "fetch(")
    assert not [word for word in loads if word in html]


def reshaped(x, w):
    """Shape ops: a run of three before a kernel, two of which one is read twice, one alone."""
    y = op.reshape(op.transpose(op.reshape(x, shape=(4, 6)), axes=(1, 0)), shape=(3, 8))
    y = op.reshape(op.dense(y, w), shape=(5, 3))
    z = op.transpose(y, axes=(1, 0))
    return op.log(y), op.reshape(op.log(z), shape=(15,))


@pytest.mark.parametrize("by_kernel", [True, False])
def test_a_run_of_shape_ops_is_one_node(by_kernel):
    mod = emit(reshaped, {"x": (24,), "w": (5, 8)})
    found = nodes(graph_of(mod), selfbyoc.explain(mod).report, by_kernel)
    assert sorted([call.kind for call in node.calls] for node in found) == [
        ["dense"], ["log"], ["log"], ["reshape"], ["reshape"], ["reshape", "transpose", "reshape"],
        ["transpose"],
    ]  # fmt: skip


def test_what_depends_on_no_input_is_folded():
    def program(x, a, b):
        return op.log(op.add(x, op.exp(op.add(a, b))))

    mod = emit(program, {"x": (3,), "a": (3,), "b": (3,)})
    graph = graph_of(mod)
    fixed = OpGraph(graph.inputs[:1], graph.ops, graph.outputs)
    for given, sizes in ((graph, [1, 1, 1, 1]), (fixed, [2, 1, 1])):
        found = nodes(given, selfbyoc.explain(mod).report, by_kernel=True)
        assert [len(node.calls) for node in found] == sizes


def test_what_many_read_stands_beside_each_of_them():
    def program(x, mask):
        for _ in range(FAR + 1):
            x = op.log(op.add(x, mask))
        return x

    mod = emit(program, {"x": (3,), "mask": (3,)})
    svg = draw(graph_of(mod), selfbyoc.explain(mod).report)
    assert svg.count(">mask</text>") == FAR + 1
    assert svg.count(">x</text>") == 1


def test_both_drawings_have_all_ops_and_no_edge_within_a_node(parted):
    mod, done = parted
    report, graph = selfbyoc.report(done), graph_of(mod)
    by_op, by_kernel = (draw(graph, report, by_kernel=flag) for flag in (False, True))
    for svg in (by_op, by_kernel):
        root = ET.fromstring(svg)
        groups = [g for g in root.iter() if "node" in g.attrib.get("class", "").split()]
        told = " ".join(v for g in groups for e in g.iter() for v in e.attrib.values())
        assert all(name in told for name, _, _ in report.ops)
        assert 'id="' not in svg
    assert by_op.count('class="node') == 7 + 2  # with the input and the output
    assert by_kernel.count('class="node') == 2 + 1 + 2
    assert by_kernel.count('class="edge') == 4
    assert by_kernel.count('class="cluster') == 0


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

    monkeypatch.setattr("selfbyoc.commands.page.panels.draw_nest", broken)
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
    found = selfbyoc.report(selfbyoc.partition_for_tefuse(selfbyoc.from_onnx(path)))
    told = " ".join(re.findall('<title>[^<]*|xlink:title="[^"]*', html))
    assert all(re.search(rf"\b{name}\b", told) for name, _, _ in found.ops)
    assert len(found.origins) == len(found.ops)
    assert all(re.search(rf"\b{escape(origin)}\b", told) for _, origin in found.origins)
    called = names(found)
    assert all(f">{r.root}</a> ({escape(called[r.root])})" in html for r in found.matched)
    boxes = sum(1 for r in found.matched if len(r.ops) > 1)
    assert html.count('class="cluster"') == boxes
    assert html.count('<svg class="nest"') == len(re.findall('<section class="kernel"', html)) > 5
    assert len(html) < 1_500_000
