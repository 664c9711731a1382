"""`--size n=128` of `run` and `bench`: the shapes of made-up inputs of a library of open sizes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ..models.dim_names import value_of
from ..models.shapes import Shape
from ..models.sizes import check_symbols, parse_sizes
from ..runtime.library import Library


def shapes_at(library: Library, asked: Sequence[str], given: Collection[str]) -> dict[str, Shape]:
    """The shapes of the inputs, but for those `given`, whose sizes are all known then; whether
    they are in their ranges the library says. Raises InputError for what is no size of its.
    """
    sizes = parse_sizes(asked)
    check_symbols(sizes, list(filter(str.isidentifier, library.sizes)), "the library")
    names = {place: name for name, (_, places) in library.sizes.items() for place in places}
    found: dict[str, Shape] = {}
    for position, (name, shape, _) in enumerate(library.inputs):
        extents = [
            _size(names.get((position, axis), ""), sizes) if extent is None else extent
            for axis, extent in enumerate(shape)
        ]
        known = tuple(extent for extent in extents if extent is not None)
        if sizes and name not in given and None in shape and len(known) == len(shape):
            found[name] = known
    return found


def _size(name: str, sizes: Mapping[str, int]) -> int | None:
    return sizes[name] if name in sizes else value_of(name, sizes)
