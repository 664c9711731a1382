"""`decoding`: a language model as one step of a decoder, with caches that it writes in place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..common.optional import extra
from ..errors import InputError
from ..tvm import GENERATION
from ..tvm.types import IRModule
from .from_torch import from_torch

if TYPE_CHECKING:
    import torch

_EXAMPLE_PAST, _EXAMPLE_PIECE = 7, 5  # lengths that nothing else in a model has


def decoding(
    model: torch.nn.Module | torch.export.ExportedProgram | IRModule,
    *,
    bound: int = 2048,
    piece: int = 512,
) -> IRModule:
    """A decoder as a module that takes some token ids and gives the logits of the last one.

    model   a causal language model of transformers in eval mode; a program that it exports with
            static caches (`transformers.integrations.executorch`), of one token or any number; or a
            module of `from_onnx` or `from_torch` whose caches are inputs (1, heads, past, depth)
            and results with more tokens behind, `present = concat(past, new)`
    bound   how many tokens the caches hold; of transformers, at most its own limit, and that of a
            program's caches
    piece   how many tokens a call may take; a longer prompt is fed in pieces

    Its inputs are the ids (1, n), what else the model asks for, `past`, of as many elements as
    tokens came before, and the caches, (1, bound, heads, depth) of float32, which `Decoder` keeps.
    They are written in place: no call copies what is there. Relax only, as Relay has no op that
    writes what it is given.

    Raises InputError for what is no decoder, where PyTorch cannot export it, and on Relay;
    MissingExtra without the packages torch and transformers.
    """
    if GENERATION == "relay":
        raise InputError("decoding: TVM 0.17's Relay has no op that writes in place; use Relax")
    for name, value in (("bound", bound), ("piece", piece)):
        if not isinstance(value, int) or value < 1:
            raise InputError(f"{name}: expected a number above 0, found {value!r}")
    from .relax.caches import with_caches

    piece = min(piece, bound)
    mod = model
    if hasattr(model, "graph_signature"):  # an ExportedProgram; others need no torch
        from .relax.static_caches import opened

        mod = from_torch(opened(model, bound, piece))
    elif hasattr(model, "config"):
        mod = _imported(model, bound, piece)
    return with_caches(mod, bound)


def _imported(model: Any, bound: int, piece: int) -> IRModule:
    """A model of transformers, with open numbers of tokens before and at hand."""
    torch, transformers = extra("torch"), extra("transformers")
    if model.training:
        raise InputError("model: it is in training mode; call model.eval() first")
    kinds = {str(p.dtype) for p in model.parameters() if p.is_floating_point()}
    if kinds != {"torch.float32"}:
        raise InputError(
            f"model: expected parameters of torch.float32, found {sorted(kinds)}; call "
            'model.float(), and build(..., weights="float16") holds halves'
        )
    config = model.config
    limit = getattr(config, "max_position_embeddings", None)
    if limit is not None and bound > limit:
        raise InputError(f"bound: the model has at most {limit} positions, found {bound}")
    step = _step(torch, transformers, model)
    past = [torch.zeros(shape) for shape in _shapes(torch, transformers, step)]
    n, p = torch.export.Dim("n", max=piece), torch.export.Dim("past", min=0, max=bound)
    ids = torch.zeros((1, _EXAMPLE_PIECE), dtype=torch.int64)
    dims = {"ids": {1: n}, "past": tuple({2: p} for _ in past)}
    try:
        with torch.no_grad():
            program = torch.export.export(step, (ids, *past), dynamic_shapes=dims)
    except Exception as err:  # PyTorch's exporter raises errors of many kinds
        text = str(err).strip().splitlines() or [type(err).__name__]
        raise InputError(f"model: PyTorch cannot export it as a decoder: {text[0]}") from err
    return from_torch(program)


def _step(torch: Any, transformers: Any, model: Any) -> torch.nn.Module:
    """The model as a function of ids and caches, of tensors alone."""

    class Step(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, ids: torch.Tensor, *past: torch.Tensor) -> tuple[torch.Tensor, ...]:
            cache = transformers.DynamicCache()
            for layer, pair in enumerate(zip(past[::2], past[1::2], strict=True)):
                cache.update(*pair, layer)
            found = self.model(
                input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=1
            )
            layers = found.past_key_values.layers
            return (found.logits, *(x for layer in layers for x in (layer.keys, layer.values)))

    return Step().eval()


def _shapes(torch: Any, transformers: Any, step: Any) -> list[tuple[int, ...]]:
    """Of the caches, as the model itself makes them: configurations name heads in many ways."""
    ids = torch.zeros((1, _EXAMPLE_PAST), dtype=torch.int64)
    try:
        with torch.no_grad():
            _, *caches = step(ids)
    except (AttributeError, TypeError, ValueError) as err:
        raise InputError(
            f"model: expected a causal language model of transformers that takes "
            f"past_key_values, found {type(step.model).__name__}"
        ) from err
    return [tuple(cache.shape) for cache in caches]
