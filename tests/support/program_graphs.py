"""A program as the graph that it is read as."""

from selfbyoc.ir.emit import emit
from selfbyoc.ir.generation import ir


def kinds(program, **shapes):
    return [call.kind for call in graph_of(program, **shapes)]


def graph_of(program, **shapes):
    return ir.read(emit(program, {n: (s, "float32") for n, s in shapes.items()})["main"])
