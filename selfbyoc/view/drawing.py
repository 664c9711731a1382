"""The graph of a model as SVG, each composite a coloured box. Graphviz does the layout."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from ..extra import extra
from ..graph import OpCall, OpGraph, Value
from ..partition.report import Record, Report
from ..shown import quiet

# Paul Tol's "bright" and "muted" colours: told apart by colour-blind readers too.
PALETTE = (
    "#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377",
    "#332288", "#ddaa33", "#117733", "#882255", "#44aa99", "#999933",
)  # fmt: skip
INK, FAINT, FONT = "#1f2933", "#9aa5b1", "Helvetica,sans-serif"
SCALE = 1.25  # Graphviz' points to the page's pixels: 11 points are read from some distance


def colours(report: Report) -> dict[str, str]:
    """Composite -> its colour, the one with the most ops first."""
    sizes: dict[str, int] = {}
    for _, _, owner in report.ops:
        if owner:
            sizes[owner] = sizes.get(owner, 0) + 1
    names = sorted(sizes, key=lambda name: -sizes[name])
    return {name: PALETTE[i % len(PALETTE)] for i, name in enumerate(names)}


def draw(graph: OpGraph, report: Report, links: Mapping[str, str] | None = None) -> str:
    """An OpGraph and what partitioning decided about it -> an <svg> element.

    `links` leads from the root of a match to the anchor of its panel.
    """
    dot = extra("pygraphviz").AGraph(
        directed=True, ranksep="0.22", nodesep="0.18", bgcolor="transparent"
    )
    dot.node_attr.update(
        shape="box", style="rounded,filled", fontname=FONT, fontsize="11", penwidth="1.2"
    )
    dot.node_attr.update(height="0.1", margin="0.11,0.05", fillcolor="white", fontcolor=INK)
    dot.edge_attr.update(color="#7b8794", arrowsize="0.55", penwidth="1.1")
    shown = {id(call): call for call in graph.ops if call.sources}
    for value in graph.inputs:
        if any(id(user) in shown for user in graph.users(value)):
            dot.add_node(
                f"in {value.name}",
                label=_terminal(value),
                style="filled",
                fillcolor="#e4e7eb",
                color=FAINT,
            )
    palette, boxes = colours(report), _boxes(report)
    links = links or {}
    for call in shown.values():
        dot.add_node(
            call.name,
            label=_label(call),
            tooltip=_tooltip(call),
            color=FAINT,
            style="rounded,filled,dashed",
        )
    for number, (record, names) in enumerate(boxes):
        _box(dot, number, record.composite, names, palette[record.composite])
        if record.root in links:
            _link(dot, number, names, f"#{links[record.root]}")
    for call in shown.values():
        for source in _sources(graph, call):
            dot.add_edge(source, call.name)
    dot.add_node("out", label="output", style="filled", fillcolor="#e4e7eb", color=FAINT)
    for value in graph.outputs:
        producer = graph.producer(value)
        if producer is not None:
            dot.add_edge(producer.name, "out")
    with quiet():  # the fontconfig in pygraphviz 2.0.4 warns about the system's newer settings
        svg = dot.draw(format="svg", prog="dot").decode()
    return _element(svg)


def _boxes(report: Report) -> list[tuple[Record, tuple[str, ...]]]:
    """The matches and their ops; those that canonicalising made up are not drawn."""
    names = {name for name, _, _ in report.ops}
    return [(r, tuple(n for n in r.ops if n in names)) for r in report.matched]


def _link(dot: Any, number: int, names: tuple[str, ...], url: str) -> None:
    """A click on a box or on one of its ops leads to its panel."""
    for name in names:
        dot.get_node(name).attr.update(URL=url)
    if len(names) > 1:
        dot.get_subgraph(f"cluster_{number}").graph_attr.update(URL=url)


def _box(dot: Any, number: int, composite: str, names: tuple[str, ...], colour: str) -> None:
    """A box around several ops; a single one is coloured itself."""
    tint = f"{colour}22"
    for name in names:
        fill = "white" if len(names) > 1 else tint
        dot.get_node(name).attr.update(color=colour, style="rounded,filled", fillcolor=fill)
    if len(names) == 1:
        return
    box = dot.add_subgraph(list(names), name=f"cluster_{number}")
    box.graph_attr.update(label=f"<<B>{composite}</B>>", labeljust="l", margin="8")
    box.graph_attr.update(fontname=FONT, fontsize="10", fontcolor=colour)
    box.graph_attr.update(style="rounded,filled", color=colour, fillcolor=tint, penwidth="1.6")
    box.graph_attr.update(tooltip=f"{composite}: {len(names)} ops in one kernel")


def _sources(graph: OpGraph, call: OpCall) -> Iterator[str]:
    """The nodes that an op reads; through the ops that canonicalising made up."""
    for value in {id(v): v for v in call.inputs}.values():
        producer = graph.producer(value)
        if producer is None:
            if any(value is v for v in graph.inputs):
                yield f"in {value.name}"
        elif producer.sources:
            yield producer.name
        else:
            yield from _sources(graph, producer)


def _size(value: Value) -> str:
    shape = value.shape[1:] if value.ndim > 1 and value.shape[0] == 1 else value.shape
    return " × ".join("dynamic" if e is None else str(e) for e in shape)  # noqa: RUF001 (a size in print)


def _terminal(value: Value) -> str:
    return f"{value.name}\n{_size(value)}"


def _label(call: OpCall) -> str:
    detail = escape(_detail(call))
    title = (
        f"{escape(call.kind)} <FONT COLOR='{FAINT}'>{detail}</FONT>"
        if detail
        else escape(call.kind)
    )
    size = f"<FONT POINT-SIZE='8' COLOR='#7b8794'>{escape(_size(call.outputs[0]))}</FONT>"
    gap = "<BR/><FONT POINT-SIZE='3'> </FONT><BR/>"
    return f"<{title}{gap}{size}>"


def _detail(call: OpCall) -> str:
    """What tells ops of one kind apart at a glance: the window and the stride."""
    strides = call.attrs.get("strides", (1, 1))
    if call.kind == "conv2d":
        layout = call.attrs["kernel_layout"]
        window = [call.inputs[1].shape[layout.index(letter)] for letter in "HW"]
    elif "pool_size" in call.attrs:
        window = list(call.attrs["pool_size"])
    else:
        return ""
    return f"{'x'.join(map(str, window))}" + (f"/{strides[0]}" if strides[0] != 1 else "")


def _tooltip(call: OpCall) -> str:
    attrs: Mapping[str, Any] = call.attrs
    lines = [
        call.name,
        *(f"in  {v.type}" for v in call.inputs),
        *(f"out {v.type}" for v in call.outputs),
    ]
    return "\n".join([*lines, *(f"{name} = {value}" for name, value in attrs.items())])


def _element(svg: str) -> str:
    """The <svg> alone, scalable, without XML prolog or comments."""
    svg = re.sub(r"<!--.*?-->\n?", "", svg[svg.index("<svg") :], flags=re.DOTALL)

    def resized(found: re.Match[str]) -> str:
        return f'<svg id="graph" width="{SCALE * float(found[1]):.0f}"'

    return re.sub(r'<svg width="([\d.]+)pt" height="[^"]*"', resized, svg, count=1)
