"""A Python interpreter of printed TVMScript: which elements each block computes, in fact."""

import re
import textwrap

import numpy as np


class Skip(Exception):
    """T.where does not hold."""


class Block:
    """`with T.block("name"):`, or T.sblock; a body that T.where declines is left early."""

    def __init__(self, name, seen):
        self.name, self.seen, self.point = name, seen, []

    def __enter__(self):
        Script.current = self
        return self

    def __exit__(self, kind, error, trace):
        if kind is None and self.name:
            self.seen.setdefault(self.name, []).append(tuple(self.point))
        return kind is Skip


class Axis:
    """T.axis: remembers the point of the block."""

    def spatial(self, extent, value):
        Script.current.point.append(int(value))
        return int(value)

    reduce = spatial

    def remap(self, kinds, values):
        Script.current.point += [int(v) for v in values]
        return list(values) if len(values) > 1 else values[0]


class Script:
    """`T` of TVMScript, as far as scheduled functions use it."""

    current = None
    axis = Axis()

    def __init__(self):
        self.seen = {}

    def block(self, name=""):
        return Block(name, self.seen)

    sblock = block

    def init(self):
        return Block("", self.seen)

    def grid(self, *extents):
        return (tuple(map(int, point)) for point in np.ndindex(*extents))

    def parallel(self, *bounds):
        return range(*bounds)

    serial = vectorized = unroll = parallel

    def where(self, holds):
        if not holds:
            raise Skip

    def reads(self, *regions):
        pass

    writes = block_attr = sblock_attr = reads

    def alloc_buffer(self, shape, dtype="float32", scope="global"):
        return np.zeros(shape)

    sblock_alloc_buffer = alloc_buffer

    def min(self, a, b):
        return min(a, b)

    def max(self, a, b):
        return max(a, b)

    def float32(self, value):
        return float(value)


def executed(func):
    """Block -> the points at which it ran, one for each iteration; found by running the program."""
    script, lines = Script(), func.script().splitlines()
    start = next(i for i, line in enumerate(lines) if line.lstrip().startswith("def "))
    body = textwrap.dedent("\n".join(lines[start + 1 :]))
    body = "\n".join(x for x in body.splitlines() if not x.startswith("T.func_attr"))
    buffers = re.findall(r"(\w+): T\.Buffer\(\(([^)]*)\)", lines[start])
    names = {n: np.zeros([int(e) for e in s.split(",") if e.strip()]) for n, s in buffers}
    exec(body, {"T": script, **names})
    return script.seen
