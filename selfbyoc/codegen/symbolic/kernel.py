"""The functions of a kernel of symbolic sizes: one for each family of sizes, and one that chooses.

One symbol, the last of the shapes as a rule, has families (families.py). A batch of what is done
for each image alone is taken in groups of images (images.py). Any other symbol is either 1 or
anything above.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from ...errors import SymbolicError
from ...tir.lowering import finished
from ...tvm import dtype_of, param_buffers, tir
from ...tvm.alignment import any_alignment
from ...tvm.dispatch import Images, entry
from ...tvm.rewrite import substitute
from ...tvm.symbolic import size_variable, symbols, within_32_bits
from ...tvm.types import PrimExpr, PrimFunc, Target
from ..external import RANGES, External
from .choice import NONE, Chosen
from .empty import demanded, is_empty, is_right_at_zero, outputs_of
from .families import families
from .family import Decisions, Family
from .formula import Sizes
from .images import Group, Grouped, as_serial, grouped
from .learn import Example, Learnt, learnt
from .maker import Maker
from .others import beside, free_ones, of_others_too
from .parts import Part, Parts
from .rows import ROWS, number_of_rows, of_rows
from .single_sizes import kernels_alone, slower_sizes

USUAL = 8  # size of the other symbols, that plans are for
MOST_ALONE, LAST_ALONE = 24, 128  # sizes with a kernel of their own


def symbolic_functions(source: External, target: Target, key: str | None) -> dict[str, PrimFunc]:
    """Symbol -> finished PrimFunc of a kernel, the kernel's own symbol first. Of an equal `key` the
    process learns once; None: always anew.

    Raises SymbolicError where the schedules of several sizes are not those of one kernel.
    """
    parts = _parts(source, target) if key is None else _known_parts(key, source, target)
    names: dict[Any, str] = {}  # one function may be called in two ways
    for part in parts.functions:
        names.setdefault(part.func, f"{source.symbol}_{len(names)}")
    callees = [part.callee(names[part.func]) for part in parts.functions]
    within = source.attrs.get(RANGES, {})
    chooser = entry(parts.signature, callees, parts.which, parts.checks, within, parts.images)
    found = {source.symbol: any_alignment(chooser)}
    found |= {name: finished(func, target) for func, name in names.items()}
    return {name: func.with_attr("global_symbol", name) for name, func in found.items()}


# One at a time: many short calls of TVM, after each of which two threads would wait for Python's
# lock. While one learns, others compile.
_learning = threading.Lock()
_learnt: dict[str, Parts | SymbolicError] = {}  # equal kernels, and builds that try once more
_MOST_LEARNT = 256


def _known_parts(key: str, source: External, target: Target) -> Parts:
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


def _parts(source: External, target: Target) -> Parts:
    maker = Maker(source, target)
    sizes = {name: size_variable(name) for name in source.symbols}
    flat = of_rows(source)
    groups = grouped(maker) if flat is None else None
    if groups is not None:
        with suppress(SymbolicError):  # a batch may have a kernel all the same
            return _of_images(groups, maker, sizes, _signature(maker, sizes))
    maker.try_once()
    signature = _signature(maker, sizes)
    if flat is not None:
        return _of_rows(flat, target, signature)
    try:
        return _served(maker, sizes, signature)
    except SymbolicError:
        inner = of_rows(source, inner=True)
        if inner is None:
            raise
    return _of_rows(inner, target, signature)


def _of_rows(flat: External, target: Target, signature: PrimFunc) -> Parts:
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
    functions = [replace(part, shapes=shapes) for part in found.functions]
    return Parts(functions, signature, which, ())


def _of_images(
    groups: Grouped, maker: Maker, sizes: Mapping[str, PrimExpr], signature: PrimFunc
) -> Parts:
    """The functions of each group of images, for the parameters of this signature."""
    count = sizes[groups.symbol]
    left = tir.Var("left", dtype_of(count))
    functions: list[Part] = []
    checks: list[tuple[Any, str]] = []
    numbers: list[Any] = []
    for group in groups.groups:
        found = _of_group(groups, group, maker)
        known = {var: sizes[name] for name, var in symbols(found.signature).items()}
        which = substitute(found.which, known)
        numbers.append(tir.Select(which < 0, NONE, which + len(functions)))
        for part in found.functions:
            shapes = part.shapes or [b.shape for b in param_buffers(found.signature)]
            shapes = [[substitute(extent, known) for extent in shape] for shape in shapes]
            functions.append(Part(part.func, shapes, group))
        checks += [(tir.any(count == 0, substitute(ok, known)), told) for ok, told in found.checks]
    which = numbers[-1]
    for most, number in reversed(groups.first.items()):
        which = tir.Select(left <= most, numbers[number], which)
    return Parts(functions, signature, which, checks, Images(count, left))


def _of_group(groups: Grouped, group: Group, maker: Maker) -> Parts:
    """The functions of some images at a time."""
    source = groups.of(maker.source, group.images)
    if source.symbols:
        return _parts(source, maker.target)
    func = maker.alone({groups.symbol: group.images}).func
    func = as_serial(func) if group.side_by_side > 1 else func  # of one: it is serial anyway
    return Parts([Part(func)], func, tir.IntImm("int32", 0), ())


def _served(maker: Maker, variables: Mapping[str, PrimExpr], signature: PrimFunc) -> Parts:
    """The functions for all sizes of these variables."""
    *others, main = maker.source.symbols
    others.reverse()
    functions: list[Part] = []
    general: list[Learnt] = []
    which: Any = tir.IntImm("int32", NONE)
    is_open = False
    for case in reversed(list(itertools.product(*map(maker.cases, others)))):
        fixed = dict(zip(others, case, strict=True))
        with _learning:
            found = _chosen(maker, main, fixed, variables)
        number = found.number(variables[main], len(functions))
        is_case = [variables[name] == 1 for name, size in fixed.items() if size == 1]
        which = tir.Select(tir.all(*is_case), number, which) if is_case else number
        functions += map(Part, found.functions)
        general += found.learnt
        is_open = is_open or found.by_size[0] == NONE
    params = param_buffers(signature)
    outputs = [params[place] for place in outputs_of(functions[0].func)]
    which = tir.Select(is_empty(outputs), NONE, which)
    wrong = {main} if is_open else set()
    wrong |= {n for n in others if not all(is_right_at_zero(each, n) for each in general)}
    return Parts(functions, signature, which, demanded((variables[n] for n in wrong), outputs))


def _chosen(
    maker: Maker, main: str, fixed: Mapping[str, int | None], variables: Mapping[str, PrimExpr]
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
        others = maker.alike(main, told, fixed)
        return maker.example(next(maker.around(main, size, fixed, others)), told)

    def under(told: Decisions) -> Callable[[Sizes], Example | None]:
        return lambda sizes: maker.example(sizes, told)

    def beside_it(found: Learnt, told: Decisions) -> Iterator[Example]:
        return beside(found, under(told), free_ones(fixed))

    def widen(family: Family) -> Family | None:
        wide = of_others_too(family.learnt, under(family.decisions), fixed)
        return None if wide is None else replace(family, learnt=wide)

    served = families(main, decide, make, lose, maker.source.range_of(main), beside_it, widen)
    general = [family.learnt for family in served.families]
    found.functions = [within_32_bits(each.function(variables)) for each in general]
    found.by_size = {size: n for size, n in served.by_size.items() if n >= 0}
    found.by_rest = served.by_rest
    gaps = [*slower_sizes(maker, main, fixed, found.by_size, general), *served.gaps]
    if len(gaps) > MOST_ALONE or max(gaps, default=0) > LAST_ALONE:
        raise maker.no_kernel(f"of {main}={gaps[-1]}")
    for own, alone in kernels_alone(maker, main, gaps, fixed, decide, served.families):
        found.by_size |= dict.fromkeys(own, len(found.functions))
        known = {main: own[0]} if len(own) == 1 else {}
        found.functions.append(within_32_bits(alone.function({**variables, **known})))
    found.learnt = general
    of_none = (n for n, each in enumerate(general) if is_right_at_zero(each, main))
    found.by_size[0] = next(of_none, NONE)
    return found


def _signature(maker: Maker, variables: Mapping[str, PrimExpr]) -> PrimFunc:
    """A function of the kernel's parameters, with an empty body."""
    examples = []
    for at in ((2, 3, 5, 7), (3, 8, 2, 4), (4, 2, 3, 8), (8, 7, 11, 3)):
        sizes = dict(zip(maker.source.symbols, itertools.cycle(at), strict=False))
        func = maker.unscheduled(sizes)
        examples.append(Example(sizes, func.with_body(tir.Evaluate(tir.const(0)))))
    found = learnt(examples)
    if found is None:
        raise maker.no_kernel("with these shapes")
    return found.function(variables)
