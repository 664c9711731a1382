"""What each op comes from: the node of an ONNX file, the module of PyTorch. TVM keeps such a name
as the span of a node of its IR.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..graph import OpCall, OpGraph
from ..printable import shown_name
from ..tvm.types import Span


def origins(graph: OpGraph) -> dict[str, str]:
    """Op -> its name in the model that was imported, where one is known. An op without a span is a
    step inside of what its only reader was made of.
    """
    found: dict[str, str] = {}
    for call in reversed(graph.ops):
        names = list(dict.fromkeys(_spans(call)))
        if not names:
            readers = [user for value in call.outputs for user in graph.users(value)]
            names = list({found.get(user.name, "") for user in readers}) if readers else []
            names = names if len(names) == 1 else []
        if text := ", ".join(filter(None, names)):
            found[call.name] = shown_name(text)
    ops = (call.name for call in graph.ops if call.sources)  # others, canonicalising made up
    return {name: found[name] for name in ops if name in found}


def _spans(call: OpCall) -> Iterator[str]:
    for node in call.sources:
        yield from filter(None, names_of_span(getattr(node, "span", None)))


def names_of_span(span: Span) -> Iterator[str]:
    """Of a span; Relay has some in a row, of passes that made one node of several."""
    for each in getattr(span, "spans", None) or ([span] if span is not None else []):
        if each is not None and each.source_name is not None:
            yield str(each.source_name.name)
