"""One external function, from its OpGraph to the runtime module that the executor links."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import LoweringError, reason
from ..language.known import composite_of, is_builtin
from ..machine.host import check_compiles
from ..tir.lowering import finished, machine_code
from ..tvm import GENERATION, has_symbol
from ..tvm.config import kernel_config
from ..tvm.types import Module, PrimFunc, Target
from .apply import level_of
from .c_source import linkable
from .cache.kernels import current
from .cache.keys import of_functions, of_inputs
from .external import COMPOSITE, NOT_OWN, External, match_of
from .schedule import schedule_external
from .symbolic.kernel import symbolic_functions
from .tuning_record import Tuned

logger = logging.getLogger(__name__)


def lower(external: External, target: Target) -> Module:
    """External function -> runtime.Module that holds its symbol, compiled now or earlier."""
    cache = current() if str(target.kind) == "llvm" else None
    if cache is None:
        return _compiled(external, _functions(external, target), target)
    inputs = inputs_key(external, target)
    key = cache.key_of(inputs)
    module = cache.load(key, external.symbol)
    if module is not None:
        return module
    lowered = _functions(external, target)
    config = kernel_config(target, external.is_checked)
    key = of_functions(list(lowered.by_symbol.values()), target, config)
    about = {"composite": lowered.composite, "target": str(target), "generation": GENERATION}
    module = cache.load(key, external.symbol)
    if module is None:
        compiled = _compiled(external, lowered, target)
        module = cache.keep(key, compiled, external.symbol, about)
    cache.remember(inputs, key, about)
    return module


@dataclass(frozen=True)
class _Functions:
    """Scheduled functions by symbol, the kernel's own first, and whose they are."""

    by_symbol: Mapping[str, PrimFunc]
    composite: str
    level: str


def _functions(external: External, target: Target) -> _Functions:
    if external.symbols:
        composite = match_of(external).composite
        told, tuned = external.attrs.get(NOT_OWN, ""), Tuned.of(external.attrs)
        level = level_of(composite, target, told, tuned).name
        functions = symbolic_functions(external, target, inputs_key(external, target))
        return _Functions(functions, composite.name, level)
    stacked, scheduled = schedule_external(external, target)
    func = finished(scheduled.mod["main"], target).with_attr("global_symbol", external.symbol)
    return _Functions({external.symbol: func}, stacked.composite.name, scheduled.level.name)


def inputs_key(external: External, target: Target) -> str | None:
    """The key of what the function is made from; a user's composite may read anything, so that it
    is scheduled anew and known by the result.
    """
    composite = composite_of(external.composites, external.attrs.get(COMPOSITE))
    if composite is None or not is_builtin(composite):
        return None
    attrs = {name: value for name, value in external.attrs.items() if name != COMPOSITE}
    attrs |= {"is_checked": external.is_checked, "symbols": external.symbols}
    return of_inputs(external.composites, external.graph, attrs, target)


def _compiled(external: External, made: _Functions, target: Target) -> Module:
    check_compiles(target)
    logger.debug("%s: composite %s, %s, %s", external.symbol, made.composite, made.level, target)
    try:
        config = kernel_config(target, external.is_checked)
        module = machine_code(made.by_symbol, external.symbol, target, config=config)
    except Exception as err:  # TVM's passes and LLVM raise what they like
        raise LoweringError(
            f"composite {made.composite}: TVM could not lower it with its {made.level}: "
            f"{reason(err)}"
        ) from err
    if not has_symbol(module, external.symbol):
        raise LoweringError(
            f"composite {made.composite}: the module built for it lacks the symbol "
            f"{external.symbol}"
        )
    return linkable(module, external.symbol) if str(target.kind) == "c" else module
