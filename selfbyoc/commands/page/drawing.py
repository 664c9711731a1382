"""The graph of a model as SVG, its kernels coloured. Graphviz does the layout, the page's style
sheet the colours that depend on the reader's scheme.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from ...common.optional import extra
from ...graph import OpCall, OpGraph, Value
from ...partition.report import Report
from ...printable import quiet, shown_name
from .folded import Node, nodes, sources
from .parts import names

if TYPE_CHECKING:
    import pygraphviz

# Paul Tol's "bright" and "muted" colours: told apart by colour-blind readers too.
PALETTE = (
    "#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377",
    "#6655bb", "#ddaa33", "#117733", "#882255", "#44aa99", "#999933",
)  # fmt: skip
INK, FAINT, FONT = "#1f2933", "#9aa5b1", "Helvetica,sans-serif"
SCALE = 1.25  # Graphviz' points to the page's pixels: 11 points are read from some distance
# Readers that one value has edges to. What more of them read, as each layer a mask, stands beside
# each by its name: edges over all of the picture say little, and sixty take Graphviz a minute.
FAR = 8
LONGEST = 34  # letters of a line in a box: a longer name makes its whole column wide


def colours(report: Report) -> dict[str, str]:
    """Composite -> its colour, the one with the most ops first."""
    sizes: dict[str, int] = {}
    for _, _, owner in report.ops:
        if owner:
            sizes[owner] = sizes.get(owner, 0) + 1
    names = sorted(sizes, key=lambda name: -sizes[name])
    return {name: PALETTE[i % len(PALETTE)] for i, name in enumerate(names)}


def draw(
    graph: OpGraph,
    report: Report,
    links: Mapping[str, str] | None = None,
    notes: Mapping[str, str] | None = None,
    by_kernel: bool = False,
) -> str:
    """An OpGraph and what partitioning decided about it -> an <svg> element.

    links      from the root of a match to the anchor of its panel
    notes      from the root of a match to a line in its box, as what it takes
    by_kernel  a kernel is one node; else a box around its ops
    """
    links, notes, palette = links or {}, notes or {}, colours(report)
    origins, called = dict(report.origins), names(report)
    dot = extra("pygraphviz").AGraph(
        directed=True, ranksep="0.22", nodesep="0.18", bgcolor="transparent"
    )
    dot.node_attr.update(
        shape="box", style="rounded,filled", fontname=FONT, fontsize="11", penwidth="1.2"
    )
    dot.node_attr.update(height="0.1", margin="0.11,0.05", fillcolor="white", fontcolor=INK)
    dot.edge_attr.update(color="#7b8794", arrowsize="0.55", penwidth="1.1")
    found = nodes(graph, report, by_kernel)
    for node in found:
        tell = _tooltip if len(node.calls) == 1 else _in_short
        told = [tell(call, origins.get(call.name, "")) for call in node.calls]
        dot.add_node(node.name, tooltip=_plain("\n".join(told)))
        attrs = dot.get_node(node.name).attr
        if node.kernel is None:
            attrs.update(label=_label(node), color=FAINT, style="rounded,filled,dashed")
            attrs["class"] = "shape" if len(node.calls) > 1 else "op"
            continue
        record, colour = node.kernel, palette[node.kernel.composite]
        attrs.update(label=_kernel(node, called.get(record.root, ""), notes.get(record.root, "")))
        attrs.update(color=colour, fillcolor=f"{colour}22", URL=_url(links, record.root))
        attrs["class"] = "kernel"
    if not by_kernel:
        _boxes(dot, report, {node.name for node in found}, links, notes)
    _edges(dot, graph, found)
    with quiet():  # the fontconfig in pygraphviz 2.0.4 warns about the system's newer settings
        svg = dot.draw(format="svg", prog="dot").decode()
    return _element(svg)


def _edges(dot: pygraphviz.AGraph, graph: OpGraph, found: Sequence[Node]) -> None:
    """Between what is shown; inputs and the output are nodes of their own."""
    node_of = {call.name: node.name for node in found for call in node.calls}
    node_of |= {f"in {value.name}": f"in {value.name}" for value in graph.inputs}
    reads = {
        node.name: [node_of[s] for call in node.calls for s in sources(graph, call)]
        for node in found
    }
    reads = {name: [s for s in dict.fromkeys(of) if s != name] for name, of in reads.items()}
    readers = Counter(source for of in reads.values() for source in of)
    for value in graph.inputs:
        if 0 < readers[name := f"in {value.name}"] <= FAR:
            _value(dot, name, f"{_short(value.name)}\n{_size(value)}")
    _value(dot, "out", "output")
    producers = [graph.producer(value) for value in graph.outputs]
    ends = dict.fromkeys(node_of[p.name] for p in producers if p and p.name in node_of)
    place = {name: position for position, name in enumerate(reads)}
    for reader, of in [*reads.items(), ("out", list(ends))]:
        last = max(of, key=lambda source: place.get(source, -1), default="")
        for source in of:
            weight = (
                4 if len(of) < 3 and source == last else 1
            )  # a residual's main road is straight
            if readers[source] > FAR:
                told, source = source, f"{source} for {reader}"
                _value(dot, source, _short(told.removeprefix("in ")))
            dot.add_edge(source, reader, weight=weight)


def _value(dot: pygraphviz.AGraph, name: str, label: str) -> None:
    """What is no op: an input, the output, or a name in the place of an edge from far away."""
    dot.add_node(name, label=_plain(label), style="filled", fillcolor="#e4e7eb", color=FAINT)
    dot.get_node(name).attr["class"] = "value"


def _boxes(
    dot: pygraphviz.AGraph,
    report: Report,
    shown: set[str],
    links: Mapping[str, str],
    notes: Mapping[str, str],
) -> None:
    """A box around the ops of a kernel; a single one is coloured itself."""
    palette = colours(report)
    for number, record in enumerate(report.matched):
        inside = [name for name in record.ops if name in shown]  # canonicalising made up others
        colour, url = palette[record.composite], _url(links, record.root)
        for name in inside:
            fill = "white" if len(inside) > 1 else f"{colour}22"
            attrs = dot.get_node(name).attr
            attrs.update(color=colour, style="rounded,filled", fillcolor=fill, URL=url)
            attrs["class"] = "op" if len(inside) > 1 else "kernel"
        if len(inside) < 2:
            continue
        box = dot.add_subgraph(inside, name=f"cluster_{number}")
        note = notes.get(record.root, "")
        box.graph_attr.update(label=_plain(" ".join(filter(None, (record.composite, note)))))
        box.graph_attr.update(labeljust="l", margin="8", fontname=FONT, fontsize="10")
        box.graph_attr.update(style="rounded,filled", color=colour, fillcolor=f"{colour}22")
        box.graph_attr.update(penwidth="1.6", fontcolor=colour, URL=url)
        box.graph_attr.update(tooltip=f"{record.composite}: {len(inside)} ops in one kernel")


def _url(links: Mapping[str, str], root: str) -> str:
    return f"#{links[root]}" if root in links else ""


def _size(value: Value) -> str:
    shape = value.shape[1:] if value.ndim > 1 and value.shape[0] == 1 else value.shape
    return " × ".join("dynamic" if e is None else str(e) for e in shape)  # noqa: RUF001 (a size in print)


def _short(text: str) -> str:
    """The end of a name says more than its beginning."""
    return text if len(text) <= LONGEST else f"…{text[1 - LONGEST :]}"


def _plain(text: str) -> str:
    """For Graphviz, which would read tags, entities and escapes."""
    return escape(text, quote=False).replace("\\", "\\\\")


def _label(node: Node) -> str:
    """An op's kind and what it makes; of a run of shape ops how many there are."""
    last, number = node.calls[-1], len(node.calls)
    title = f"{_short(last.kind)} {_detail(last)}".strip() if number == 1 else f"{number} shape ops"
    return _plain(f"{title}\n{_size(last.outputs[0])}".strip())


def _kernel(node: Node, name: str, note: str) -> str:
    """Of a kernel: composite, its name in the source model, its ops, and what it makes."""
    assert node.kernel is not None
    windows = [detail for call in node.calls if (detail := _detail(call))]
    ops = f"{len(node.calls)} ops" if len(node.calls) > 1 else ""
    more = [", ".join(windows[:3]), ops, _size(node.calls[-1].outputs[0])]
    lines = [node.kernel.composite, _short(name), " · ".join(filter(None, more)), note]
    return _plain("\n".join(filter(None, lines)))


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


def _in_short(call: OpCall, origin: str) -> str:
    """One of several ops."""
    return " ".join(filter(None, (call.name, origin, "->", call.outputs[0].type)))


def _tooltip(call: OpCall, origin: str) -> str:
    attrs: Mapping[str, Any] = call.attrs
    lines = [
        call.name,
        *([f"{origin} in the model"] if origin else []),
        *(f"in  {v.type}" for v in call.inputs),
        *(f"out {v.type}" for v in call.outputs),
        *(f"{name} = {shown_name(str(value))}" for name, value in attrs.items()),
    ]
    return "\n".join(lines)


def _element(svg: str) -> str:
    """The <svg> alone, scalable, without XML prolog, comments and ids (there are two of it); the
    titles of boxes above the edges.
    """
    svg = re.sub(r"<!--.*?-->\n?", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    svg = re.sub(r'(<(?:g|a)\b[^>]*?) id="[^"]*"', r"\1", svg)
    titles: list[str] = []

    def moved(found: re.Match[str]) -> str:
        titles.append(found[2])
        return found[1] + found[3]

    cluster = r'(<g class="cluster">(?:(?!</g>|<text).)*)(<text.*?</text>)(.*?</g>)'
    svg = re.sub(cluster, moved, svg, flags=re.DOTALL)
    svg = svg.replace("</g>\n</svg>", f'<g class="titles">{"".join(titles)}</g></g>\n</svg>')

    def resized(found: re.Match[str]) -> str:
        return f'<svg width="{SCALE * float(found[1]):.0f}"'

    return re.sub(r'<svg width="([\d.]+)pt" height="[^"]*"', resized, svg, count=1)
