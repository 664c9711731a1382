"""The functions of a kernel of symbolic sizes: one for each family of sizes, and one that chooses.

One symbol, the last of the shapes as a rule, has families (families.py). Any other one, such as a
batch before it, is either 1 or anything above.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..._tvm import param_buffers, tir
from ..._tvm_alignment import any_alignment
from ..._tvm_rewrite import substitute
from ..._tvm_symbolic import entry, size_variable, within_32_bits
from ...errors import SymbolicError
from ..external import RANGES, External
from ..final import finished
from .alone import is_general, kernels_alone, slower_sizes
from .choice import NONE, Chosen
from .families import families
from .formula import Sizes
from .learn import Example, Learnt, learnt
from .maker import OTHERS, Maker
from .nothing import demanded, is_empty, is_right_at_zero, outputs_of
from .rows import ROWS, number_of_rows, of_rows
from .served import Decisions, Family

USUAL = 8  # size of the other symbols, that plans are for
MOST_ALONE, LAST_ALONE = 24, 128  # sizes with a kernel of their own


@dataclass(frozen=True)
class Parts:
    """A kernel's functions, its parameters as those of an empty function, and which of the
    functions is called, as an expression of the parameters' sizes.
    """

    functions: list[Any]
    signature: Any
    which: Any
    checks: Sequence[tuple[Any, str]]  # what has to hold: of some sizes there is no kernel of 0
    shapes: Sequence[Any] = ()  # that the functions know of the parameters, where not the same


def symbolic_functions(source: External, target: Any, key: str | None) -> dict[str, Any]:
    """Symbol -> finished PrimFunc of a kernel, the kernel's own symbol first. Of an equal `key` the
    process learns once; None: always anew.

    Raises SymbolicError where the schedules of several sizes are not those of one kernel.
    """
    parts = _parts(source, target) if key is None else _known_parts(key, source, target)
    symbols = [f"{source.symbol}_{n}" for n in range(len(parts.functions))]
    within = source.attrs.get(RANGES, {})
    chooser = entry(parts.signature, symbols, parts.which, parts.checks, parts.shapes, within)
    found = {source.symbol: any_alignment(chooser)}
    found |= zip(symbols, (finished(f, target) for f in parts.functions), strict=True)
    return {name: func.with_attr("global_symbol", name) for name, func in found.items()}


_learnt: dict[str, Parts | SymbolicError] = {}  # equal kernels, and builds that try once more
_MOST_LEARNT = 256


def _known_parts(key: str, source: External, target: Any) -> Parts:
    if key not in _learnt:
        try:
            _learnt[key] = _parts(source, target)
        except SymbolicError as err:
            _learnt[key] = err
        for oldest in list(_learnt)[:-_MOST_LEARNT]:
            _learnt.pop(oldest, None)
    found = _learnt[key]
    if isinstance(found, SymbolicError):
        raise found
    return found


def _parts(source: External, target: Any) -> Parts:
    maker = Maker(source, target)
    maker.try_once()
    sizes = {name: size_variable(name) for name in source.symbols}
    signature = _signature(maker, sizes)
    flat = of_rows(source)
    if flat is not None:
        return _of_rows(flat, target, signature)
    try:
        return _served(maker, sizes, signature)
    except SymbolicError:
        inner = of_rows(source, inner=True)
        if inner is None:
            raise
    return _of_rows(inner, target, signature)


def _of_rows(flat: External, target: Any, signature: Any) -> Parts:
    """The functions of the number of rows, for the parameters of this signature."""
    rows = size_variable(ROWS)
    maker = Maker(flat, target)
    found = _served(maker, {ROWS: rows}, _signature(maker, {ROWS: rows}))
    every = number_of_rows(signature, found.signature)
    which = tir.Select(every == 0, NONE, substitute(found.which, {rows: every}))
    shapes = [
        [substitute(extent, {rows: every}) for extent in buffer.shape]
        for buffer in param_buffers(found.signature)
    ]
    return Parts(found.functions, signature, which, (), shapes)


def _served(maker: Maker, variables: Mapping[str, Any], signature: Any) -> Parts:
    """The functions for all sizes of these variables."""
    main, *others = reversed(list(maker.source.symbols))
    functions: list[Any] = []
    general: list[Learnt] = []
    which: Any = tir.IntImm("int32", NONE)
    is_open = False
    for case in reversed(list(itertools.product(*map(maker.cases, others)))):
        fixed = dict(zip(others, case, strict=True))
        found = _chosen(maker, main, fixed, variables)
        number = found.number(variables[main], len(functions))
        is_case = [variables[name] == 1 for name, size in fixed.items() if size == 1]
        which = tir.Select(tir.all(*is_case), number, which) if is_case else number
        functions += found.functions
        general += found.learnt
        is_open = is_open or found.by_size[0] == NONE
    params = param_buffers(signature)
    outputs = [params[place] for place in outputs_of(functions[0])]
    which = tir.Select(is_empty(outputs), NONE, which)
    wrong = {main} if is_open else set()
    wrong |= {n for n in others if not all(is_right_at_zero(each, n) for each in general)}
    return Parts(functions, signature, which, demanded((variables[n] for n in wrong), outputs))


def _chosen(
    maker: Maker, main: str, fixed: Mapping[str, int | None], variables: Mapping[str, Any]
) -> Chosen:
    """The kernels for all sizes of `main`; the other symbols are 1, or (None) above that."""
    found = Chosen()

    usual = {name: maker.source.range_of(name).nearest(USUAL) for name in fixed}
    rest = {name: one or usual[name] for name, one in fixed.items()}

    def at(size: int) -> Sizes:
        return {name: {main: size, **rest}[name] for name in maker.source.symbols}

    def decide(size: int) -> Decisions:
        return maker.decided(at(size))

    def lose(size: int, told: Decisions) -> float | None:
        return maker.loss(at(size), told)

    def make(size: int, told: Decisions) -> Example | None:
        return maker.example(next(maker.around(main, size, fixed)), told)

    served = families(main, decide, make, lose, maker.source.range_of(main))
    general = [_of_others_too(maker, family, fixed) for family in served.families]
    if not all(is_general(each, fixed) for each in general):
        raise maker.no_kernel(f"of two or more of {[n for n in fixed if fixed[n] is None]}")
    found.functions = [within_32_bits(each.function(variables)) for each in general]
    found.by_size = {size: n for size, n in served.by_size.items() if n >= 0}
    found.by_rest = served.by_rest
    gaps = [*slower_sizes(maker, main, fixed, found.by_size, general), *served.gaps]
    if len(gaps) > MOST_ALONE or max(gaps, default=0) > LAST_ALONE:
        raise maker.no_kernel(f"of {main}={gaps[-1]}")
    for own, alone in kernels_alone(maker, main, gaps, fixed, decide):
        found.by_size |= dict.fromkeys(own, len(found.functions))
        known = {main: own[0]} if len(own) == 1 else {}
        found.functions.append(within_32_bits(alone.function({**variables, **known})))
    found.learnt = general
    of_none = (n for n, each in enumerate(general) if is_right_at_zero(each, main))
    found.by_size[0] = next(of_none, NONE)
    return found


def _of_others_too(maker: Maker, family: Family, fixed: Mapping[str, int | None]) -> Learnt:
    """What a family knows, with the other symbols' sizes that it holds for."""
    found = family.learnt
    for example, size in itertools.product(found.examples[:2], OTHERS):
        sizes = {
            name: size if fixed.get(name, 1) is None else known
            for name, known in example.sizes.items()
        }
        other = maker.example(sizes, family.decisions) if None in fixed.values() else None
        if other is not None and found.says(other):
            found = Learnt((*found.examples, other), found.formulas)
    return found


def _signature(maker: Maker, variables: Mapping[str, Any]) -> Any:
    """A function of the kernel's parameters, with an empty body."""
    examples = []
    for at in ((2, 3, 5, 7), (3, 8, 2, 4), (4, 2, 3, 8), (8, 7, 11, 3)):
        sizes = dict(zip(maker.source.symbols, itertools.cycle(at), strict=False))
        func = maker.alone(sizes).func
        examples.append(Example(sizes, func.with_body(tir.Evaluate(tir.const(0)))))
    found = learnt(examples)
    if found is None:
        raise maker.no_kernel("with these shapes")
    return found.function(variables)
