"""`pack`: a constant argument laid out once, when building, instead of at every call."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..errors import ComputeError, LoweringError, SelfbyocError
from ..graph import OpCall, OpGraph, Value
from ..language.raised import in_words
from ..machine import machine_at_hand
from ..ops.half_weights import WIDENS
from ..ops.vocabulary import compute_of
from ..tir.te_blocks import block_names
from ..tvm import Schedule, empty, get_block, get_func, make_target, te, tensor, tvm
from ..tvm.alignment import any_alignment
from ..tvm.build import build_module
from ..tvm.config import run_once_config
from ..tvm.types import Attr, Module, NDArray, PackedFunc, PrimFunc, Tensor
from .arguments import argument_chain, reader_of, run_pack
from .parallel import at_once
from .plan import plan_of
from .stack import Packed

if TYPE_CHECKING:
    from ..language.match.match import Match

Stages = tuple[Tensor, Tensor, Tensor]  # a parameter, the argument that is made of it, that packed


def packable(graph: OpGraph, match: Match) -> dict[int, str]:
    """Position of a parameter -> the argument it is, for those that the composite packs.

    A parameter with another reader cannot be replaced by its packed form; it is packed at run time.
    """
    found = {}
    for name, value in match.args.items():
        if match.composite.pack_for(name) is None:
            continue
        chain = argument_chain(graph, value)
        source = chain[0].inputs[0] if chain else value
        position = next((i for i, v in enumerate(graph.inputs) if v is source), None)
        alone = _readings(graph, source) == 1 and _readings(graph, value) == 1
        if position is not None and alone and not graph.is_output(value):
            found[position] = name
    return found


def _readings(graph: OpGraph, value: Value) -> int:
    """How many inputs of ops a value is; one op may read it twice."""
    return sum(v is value for call in graph.users(value) for v in call.inputs)


def packed_types(graph: OpGraph, match: Match, wanted: Mapping[int, str]) -> dict[int, Packed]:
    """The types that parameters have once packed; `wanted`: which, and the arguments they are."""
    plan = plan_of(match, dict.fromkeys(wanted.values()))
    found = {}
    for position, name in wanted.items():
        last = _pack_stages(graph, match, position, name, plan)[-1]
        shape = tuple(int(extent) for extent in last.shape)
        found[position] = Packed(name, Value(shape, str(last.dtype), name))
    return found


def described(types: Mapping[int, Packed]) -> dict[int, dict[str, Attr]]:
    """The types of packed parameters as the data of an attribute."""
    return {
        i: {"arg": p.arg, "shape": p.value.shape, "dtype": p.value.dtype} for i, p in types.items()
    }


def _pack_stages(graph: OpGraph, match: Match, position: int, name: str, plan: object) -> Stages:
    source = graph.inputs[position]
    current = first = te.placeholder(source.shape, source.dtype, name=name)
    chain = _chain(graph, match, name)
    if match.args[name].held and not why_widened(match, name, plan):
        chain = [call for call in chain if call.kind not in WIDENS]
    for call in chain:
        current = compute_of(call.kind)([current], call)
    pack = match.composite.pack_for(name)
    assert pack is not None, f"argument {name} is not packed"
    try:
        return first, current, run_pack(pack, current, match, name, plan, ahead=True)
    except SelfbyocError:
        raise
    except Exception as err:  # whatever a user's function raises is the composite's error
        owner = f"composite {match.composite.name}: its pack of {name!r}"
        raise ComputeError(f"{owner} raised {type(err).__name__}: {in_words(err)}") from err


def _chain(graph: OpGraph, match: Match, name: str) -> list[OpCall]:
    return argument_chain(graph, match.args[name])


def why_widened(match: Match, name: str, plan: object) -> str:
    """Why a weight of halves is packed as floats; nothing where it stays as it is."""
    kernel, reader = match.composite.kernel, reader_of(match, name)[0]
    if kernel is None or kernel.widens is None:
        return "its kernel reads floats"
    if match.args[name].held == "float16" and not machine_at_hand().has_float16:
        return "the CPU has no instruction that makes floats of float16"
    return kernel.widens(plan, reader)


def pack_constants(
    graph: OpGraph, match: Match, constants: Mapping[int, np.ndarray]
) -> dict[int, np.ndarray]:
    """Run `pack` on the constants of one call, by position."""
    pack = packers(graph, match, constants)
    return {i: pack[i](tensor(np.ascontiguousarray(constants[i]))).numpy() for i in pack}


def packers(
    graph: OpGraph, match: Match, positions: Iterable[int]
) -> dict[int, Callable[[NDArray], NDArray]]:
    """By position, what packs a constant: from a tensor to a tensor."""
    staged = _staged(graph, match, positions)
    return {i: _packer(match, name, stages) for i, (name, stages) in staged.items()}


def pack_functions(
    graph: OpGraph, match: Match, positions: Iterable[int]
) -> dict[int, PrimFunc | None]:
    """By position, packing as a function of the constant, of memory for each stage on the way and
    of the packed one: it allocates nothing. None for one that is packed as it is.
    """
    staged = _staged(graph, match, positions)
    return {i: _function(*stages, with_memory=True) for i, (_, stages) in staged.items()}


def _staged(
    graph: OpGraph, match: Match, positions: Iterable[int]
) -> dict[int, tuple[str, Stages]]:
    """By position, the argument's name and its stages."""
    asked = frozenset(positions)
    wanted = {i: name for i, name in packable(graph, match).items() if i in asked}
    if not wanted:
        return {}
    plan = plan_of(match, dict.fromkeys(wanted.values()))
    return {i: (name, _pack_stages(graph, match, i, name, plan)) for i, name in wanted.items()}


def _packer(match: Match, name: str, stages: Stages) -> Callable[[NDArray], NDArray]:
    last, func = stages[-1], _function(*stages)
    if func is None:  # one candidate of several, it may be
        return lambda given: given
    key = func.script()
    shape = tuple(int(extent) for extent in last.shape)
    level, waiting = _OPTIMISED if math.prod(shape) > _MANY else 0, _waiting.get()
    made = _Kernel(func, level, _known(key))
    if waiting is not None:
        made = waiting.setdefault(key, made)
    elif made.kernel is None:
        made.kernel = _alone(match, name, func, level)
        _modules.append({key: made.kernel})

    def packed(given: NDArray) -> NDArray:
        out = empty(shape, str(last.dtype))
        assert made.kernel is not None
        made.kernel(given, out)
        return out

    return packed


def _function(
    first: Tensor, argument: Tensor, last: Tensor, *, with_memory: bool = False
) -> PrimFunc | None:
    """From the parameter to the packed argument; with memory for what is on the way, or not."""
    if last.same_as(first):
        return None
    before, names = block_names([argument]), block_names([last])
    way = [op.output(0) for op in names if op not in before and op != last.op]
    func = te.create_prim_func([first, *(way if with_memory else []), last])
    return _in_one_pass(func, argument, last).with_attr("global_symbol", "pack")


def _in_one_pass(func: PrimFunc, argument: Tensor, last: Tensor) -> PrimFunc:
    """What stands before the argument, most often a transpose, done where packing reads it: of a
    large weight each copy costs more than it is packed in.
    """
    names = block_names([last])
    sch = Schedule(tvm.IRModule({"main": func}))
    for operation in block_names([argument]):
        if operation != last.op:
            sch.compute_inline(get_block(sch, names[operation]))
    return sch.mod["main"]


# Elements from which a packing kernel runs longer than LLVM optimises it. GoogLeNet has 48 such
# kernels: 0.5 s without optimising, 2.0 s with; all of them run in 0.02 s.
_MANY, _OPTIMISED = 1 << 20, 2

# A module of machine code takes a megabyte, so that few are kept for the next build: their kernels
# by the text of their functions.
_modules: deque[Mapping[str, PackedFunc]] = deque(maxlen=8)


@dataclass
class _Kernel:
    """A packing function, and its kernel when it is compiled; whoever packs by it holds it."""

    func: PrimFunc
    level: int
    kernel: PackedFunc | None


_waiting: ContextVar[dict[str, _Kernel] | None] = ContextVar("waiting", default=None)


def _known(key: str) -> PackedFunc | None:
    return next((made[key] for made in tuple(_modules) if key in made), None)


@contextmanager
def compiled_together() -> Iterator[None]:
    """What is to pack is compiled when all inside is done, in one module for each level: a module
    of its own for each function takes twice as long. Nothing is packed inside.

    Raises LoweringError, which does not say for which function.
    """
    found: dict[str, _Kernel] = {}
    token = _waiting.set(found)
    try:
        yield
    finally:
        _waiting.reset(token)
    new = {key: each for key, each in found.items() if each.kernel is None}
    levels = sorted({each.level for each in new.values()})
    groups = [{k: each.func for k, each in new.items() if each.level == of} for of in levels]
    try:
        for made in at_once([partial(_module, *each) for each in zip(groups, levels, strict=True)]):
            _modules.append(made)
            for key, kernel in made.items():
                found[key].kernel = kernel
    except Exception as err:  # as when a kernel is lowered
        raise LoweringError(f"packing failed: {err}") from err


def _module(functions: Mapping[str, PrimFunc], level: int) -> dict[str, PackedFunc]:
    """The kernels of functions, by the same keys."""
    names = {f"pack_{n}": key for n, key in enumerate(functions)}
    module = packing_code({name: functions[key] for name, key in names.items()}, level)
    return {key: get_func(module, name) for name, key in names.items()}


def _alone(match: Match, name: str, func: PrimFunc, level: int) -> PackedFunc:
    try:
        return get_func(packing_code({"pack": func}, level), "pack")
    except Exception as err:  # as when a kernel is lowered
        raise LoweringError(
            f"composite {match.composite.name}: packing of {name!r} failed: {err}"
        ) from err


def packing_code(functions: Mapping[str, PrimFunc], level: int) -> Module:
    """The machine code of packing functions by name, for any CPU of this machine's architecture."""
    target = make_target({"kind": "llvm", "opt-level": level})
    named = {n: any_alignment(f.with_attr("global_symbol", n)) for n, f in functions.items()}
    with tvm.transform.PassContext(opt_level=3, config=run_once_config()):
        return build_module(tvm.IRModule(named), target)
