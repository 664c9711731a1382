"""Programs as one stacked function, under the default schedule."""

import inspect

from selfbyoc import Composite
from selfbyoc.codegen.apply import apply_schedule
from selfbyoc.codegen.stack import stack
from selfbyoc.ir.emit import emit
from selfbyoc.ir.generation import ir
from selfbyoc.language.nodes import Op, reachable
from selfbyoc.partition.select import select
from selfbyoc.schedules.default import schedule
from selfbyoc.tvm import make_target

AVX512 = "llvm -mcpu=cascadelake"


def stacked(program, **shapes):
    """A program as one stacked function."""
    graph = ir.read(emit(program, {n: (s, "float32") for n, s in shapes.items()})["main"])
    (match,), _ = select(graph, [Composite("plain", free(program))])
    return stack(graph, match)


def free(program):
    """The program as a pattern, its attributes no constraints."""

    def pattern(x, w=None):
        found = program(x) if w is None else program(x, w)
        for node in reachable(found):
            if isinstance(node, Op):
                node.attrs.clear()
        return found

    pattern.__signature__ = inspect.signature(program)
    return pattern


def scheduled(program, target=AVX512, **shapes):
    """The stacked function under the default schedule."""
    target = make_target(target)
    with target:
        return apply_schedule(stacked(program, **shapes), target, schedule).mod["main"]
