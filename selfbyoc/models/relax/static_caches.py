"""Programs of PyTorch with static caches, as transformers exports them, with open ones instead.

    keys = index_put(cache, [None, None, at], new)     cache: a buffer of (1, heads, bound, depth)
    mask = arange(bound) <= positions                  at, positions: of the input cache_position

is of all `bound` keys, filled or not. Here those that are there are an input, and the new ones are
put behind them, as models write caches without a bound:

    keys = cat([past, new], 2)                         past: (1, heads, p, depth)
    mask = arange(p + n) <= positions                  positions: p to p + n

Both are run on a few tokens: where they disagree, `at` or the mask means something else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...common.optional import extra
from ...errors import InputError, SelfbyocError, one_line
from ..torch_checks import check_program
from .static_sizes import extents
from .static_steps import Static, step_of
from .torch_importer.views import decomposed

if TYPE_CHECKING:
    import torch

_EXAMPLE_PAST, _EXAMPLE_PIECE = 7, 5  # lengths that nothing else in a model has


def opened(
    program: torch.export.ExportedProgram, bound: int, piece: int
) -> torch.export.ExportedProgram:
    """A program of ids and of what is in each cache, that returns logits and what is in them then.

    Raises InputError for one that is no decoder with static caches, with what was found, and for a
    bound above theirs.
    """
    _check_no_constants(program)
    check_program(program.graph)
    try:
        with extra("torch").no_grad():
            return _opened(_read(decomposed(program)), bound, piece)
    except (SelfbyocError, Warning):  # a warning that the user makes an error
        raise
    except Exception as err:  # PyTorch's ops and its exporter raise errors of many kinds
        raise InputError(f"model: its caches cannot be opened: {one_line(err)}") from err


def _opened(static: Static, bound: int, piece: int) -> torch.export.ExportedProgram:
    torch = extra("torch")
    if bound > static.bound:
        raise InputError(f"bound: the program's caches are of {static.bound} rows, found {bound}")
    n, p = torch.export.Dim("n", max=piece), torch.export.Dim("past", min=0, max=bound)
    ids = torch.zeros((1, _EXAMPLE_PIECE), dtype=torch.int64)
    past = [torch.zeros(static.shape(cache, _EXAMPLE_PAST)) for cache in static.caches]
    dims = ({1: n}, *({2: p} for _ in past))
    return torch.export.export(step_of(static), (ids, *past), dynamic_shapes=dims)


def _check_no_constants(program: torch.export.ExportedProgram) -> None:
    """No op writes what is a constant: without dynamo, PyTorch exports caches as such."""
    held = program.graph_signature.inputs_to_lifted_tensor_constants
    for node in program.graph.nodes:
        written = getattr(node.args[0], "name", "") if node.args else ""
        if str(node.target).rpartition(".")[0].endswith("_") and written in held:
            raise InputError(
                f"model: {node.target} writes {held[written]!r}, which torch.export made a "
                "constant, as it does with strict=False; export the model with strict=True"
            )


def _read(program: torch.export.ExportedProgram) -> Static:
    signature = program.graph_signature
    nodes = {node.name: node for node in program.graph.nodes}
    places = {of: nodes[name] for name, of in signature.inputs_to_buffers.items()}
    written = {places[of]: nodes[by] for by, of in signature.buffers_to_mutate.items()}
    puts = {place: put for place, put in written.items() if _is_put(place, put)}
    _check_all_are_caches([x for x in written if x not in puts], signature)
    # Without those that are None.
    inputs = [nodes[name] for name in signature.user_inputs if name in nodes]
    results = [extents(nodes[name]) for name in signature.user_outputs if name in nodes]
    positions = {x for put in puts.values() for x in _sources(put.args[1][2])}.intersection(inputs)
    ids = [x for x in inputs if x not in positions]
    ranks = [*(len(extents(x)) for x in ids), *map(len, results)]
    if not puts or len(positions) != 1 or ranks != [2, 3]:
        found = ", ".join(f"{x.name} {extents(x)}" for x in inputs)
        raise InputError(
            "model: expected a program of ids (1, n) and cache_position that returns logits and "
            f"writes caches, found inputs {found}, results {results} and {len(puts)} caches"
        )
    _check_caches(list(puts), signature)
    return Static(program, list(puts.items()), ids[0], positions.pop())


def _check_all_are_caches(others: Sequence[torch.fx.Node], signature: Any) -> None:
    """Of what a program writes besides, a call reads nothing that was there before."""
    read = [signature.inputs_to_buffers[x.name] for x in others if not _is_forgotten(x)]
    if found := [*read, *signature.user_inputs_to_mutate.values()]:
        raise InputError(
            "model: expected buffers that are caches, (1, heads, bound, depth) with rows put along "
            f"axis 2 and read behind that, found others that it writes: {found}"
        )


def _is_put(place: torch.fx.Node, put: torch.fx.Node) -> bool:
    """Whether an op puts rows along axis 2 into a buffer that no other op reads."""
    if str(put.target) != "aten.index_put.default" or len(extents(place)) != 4:
        return False
    target, index, *_, adds = (*put.args, False) if len(put.args) == 3 else put.args
    is_row = len(index) == 3 and index[:2] == [None, None] and index[2] is not None
    return target is place and is_row and not adds and list(place.users) == [put]


def _is_forgotten(place: torch.fx.Node) -> bool:
    """Whether a buffer is written before it is read, so that what it held is nothing to a call."""
    return all(str(x.target) == "aten.copy.default" and x.args[0] is place for x in place.users)


def _sources(node: torch.fx.Node) -> set[torch.fx.Node]:
    """The placeholders whose numbers a value is computed of, and not of their sizes."""
    found, left = set(), [node]
    while left:
        at = left.pop()
        if at not in found:
            found.add(at)
            left += [] if str(at.target).startswith("aten.sym_size") else at.all_input_nodes
    return {at for at in found if at.op == "placeholder"}


def _check_caches(places: Sequence[torch.fx.Node], signature: Any) -> None:
    rows = extents(places[0])[2]
    for place in places:
        shape, dtype = extents(place), place.meta["val"].dtype
        if shape[0] != 1 or shape[2] != rows or dtype != extra("torch").float32:
            raise InputError(
                f"model: expected caches of (1, heads, {rows}, depth) of torch.float32, found "
                f"{signature.inputs_to_buffers[place.name]} of {shape} of {dtype}"
            )
