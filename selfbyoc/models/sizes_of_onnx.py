"""`--size` of an ONNX file, before it is imported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from .dim_names import as_identifier, symbols_of
from .shapes import give_sizes
from .sizes import Asked, asked_range, check_symbols

if TYPE_CHECKING:
    import onnx

Ends = tuple[int | None, int | None]


def with_known_sizes(
    model: onnx.ModelProto, sizes: Mapping[str, Asked], where: str
) -> tuple[onnx.ModelProto, dict[str, Ends]]:
    """The model with the sizes of which there is only one, and the ranges of the others, by the
    names that they have in a module: `batch-size` is `batch_size` there, and may be called so.
    """
    known = symbols_of(model)
    names = {as_identifier(name): name for name in known} | {name: name for name in known}
    check_symbols({names.get(name, name): size for name, size in sizes.items()}, known, where)
    asked = {names[name]: asked_range(name, given) for name, given in sizes.items()}
    fixed = {name: each.least for name, each in asked.items() if each.least == each.most}
    within: dict[str, Ends] = {
        as_identifier(name): (each.least or None, each.most)
        for name, each in asked.items()
        if name not in fixed
    }
    return (give_sizes(model, fixed) if fixed else model), within
