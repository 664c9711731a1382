"""Whether the ops of a kernel do the same for each image of a batch.

Read from the ops' own computes, as TVM has them, of so many images that no other extent is alike.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...errors import SelfbyocError
from ...tvm import dtype_of, param_buffers, region_buffer, tir, walk
from ...tvm.rewrite import map_loads_and_calls, variables_in
from ...tvm.types import Buffer, PrimExpr, Stmt
from ..external import External, match_of
from ..stack import stack

IMAGES = 509  # a prime that is no other extent: what it counts are images
SPATIAL = 0  # kind of a tir.IterVar


def is_each_alike(source: External, sizes: dict[str, int]) -> bool:
    """Whether the ops do the same for each image, and nothing with its number."""
    found = source.at(sizes)
    try:
        match = match_of(found)
        bare = replace(match.composite, kernel=None, compute=None, pack={})
        func = stack(found.graph, replace(match, composite=bare), is_noted=False).func
    except SelfbyocError:
        return False
    blocks: list[Any] = []
    walk(func.body, blocks.append, "Block", "SBlock")
    root = blocks.pop()
    buffers = [*param_buffers(func), *root.alloc_buffers]
    return all(map(_is_counted_first, buffers)) and all(map(is_by_image, blocks))


def _is_counted_first(buffer: Buffer) -> bool:
    """Whether a buffer has images for its first axis at most."""
    first, *others = [*map(int, buffer.shape), 1]
    return (first == IMAGES or first % IMAGES > 0) and all(n % IMAGES for n in others)


def is_by_image(block: Stmt) -> bool:
    """Whether a block computes each image from that image, by the same expression."""
    counted = [axis for axis in block.iter_vars if int(axis.dom.extent) % IMAGES == 0]
    if not counted:
        regions = (*block.reads, *block.writes)
        return not any(_is_image(region_buffer(region)) for region in regions)
    (image, *others), stores = counted, [block.body, *([block.init] if block.init else [])]
    is_spatial = int(image.iter_type) == SPATIAL and int(image.dom.extent) == IMAGES
    return is_spatial and not others and all(_is_of_image(stmt, image.var) for stmt in stores)


def _is_of_image(store: Stmt, image: PrimExpr) -> bool:
    """Whether a statement is of this image alone, and says nowhere which one that is."""
    if type(store).__name__ != "BufferStore":
        return False
    accesses: list[Any] = []
    numbers: list[Any] = []
    walk(store, accesses.append, "BufferStore", "BufferLoad", "TensorLoad")
    bare = map_loads_and_calls(store.value, _without_load)
    walk(bare, numbers.append, "IntImm", "FloatImm")
    rest = [bare]
    for node in accesses:
        if not _is_image(region_buffer(node)):
            rest += node.indices
            continue
        first, *others = node.indices
        if not (isinstance(first, tir.Var) and first.same_as(image)):
            return False
        rest += others
    is_told = any(image in variables_in(expr) for expr in rest)
    return not is_told and not any(_counts_images(number.value) for number in numbers)


def _without_load(node: PrimExpr) -> PrimExpr:
    is_load = type(node).__name__ in ("BufferLoad", "TensorLoad")
    return tir.const(0, dtype_of(node)) if is_load else node


def _is_image(buffer: Buffer) -> bool:
    return bool(len(buffer.shape)) and int(buffer.shape[0]) == IMAGES


def _counts_images(number: float) -> bool:
    """Whether a number of an expression is that of images, or a mean divides by it."""
    return number != 0 and (number % IMAGES == 0 or abs(number * IMAGES - 1) < 1e-4)
