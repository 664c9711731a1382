"""Ops of PyTorch that TVM's frontends take for something else whatever is given: those that draw at
random, which they make constants or the identity, norms by the statistics of their input, and what
is written and kept.

Of PyTorch only objects that it made are read; this file does not import it.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..common.optional import extra
from ..errors import InputError
from ..tvm.types import Op, PrimFunc

if TYPE_CHECKING:
    import torch

# An op that PyTorch marks as random draws nothing where one of these has this value.
_KEEPS_ALL = {"train": False, "training": False, "dropout_p": 0.0, "p": 0.0}


def check_program(graph: torch.fx.Graph) -> None:
    """Raises InputError for the first such node of an exported graph, with the op."""
    for node in graph.nodes:
        if node.op != "call_function" or _has_no_statistics(node):
            continue
        if reason := why_not(node):
            raise InputError(f"the module cannot be imported at {node.target}: {reason}")


def check_keeps_nothing(signature: PrimFunc) -> None:
    """Raises InputError for a program that writes what outlives the call: a library returns results
    and keeps nothing, so that it would forget them.
    """
    kinds = {"buffer": signature.buffers_to_mutate, "input": signature.user_inputs_to_mutate}
    for kind, written in kinds.items():
        for name in written.values():
            raise _kept(f"{kind} {name!r}")


@contextmanager
def nothing_kept(module: torch.nn.Module, inputs: Sequence[torch.Tensor]) -> Iterator[None]:
    """The same of a trace, by PyTorch's own count of how often each tensor was written."""
    named = dict(getattr(module, "named_buffers", tuple)())
    kept = {f"buffer {name!r}": tensor for name, tensor in named.items()}
    kept |= {f"input {number}": tensor for number, tensor in enumerate(inputs)}
    # Tensors made in inference mode count nothing.
    before = {name: t._version for name, t in kept.items() if not t.is_inference()}
    yield
    for name, count in before.items():
        if kept[name]._version != count:
            raise _kept(name)


def _kept(what: str) -> InputError:
    return InputError(
        f"the module cannot be imported: it writes its {what}, which a library does not keep; "
        "return the new value, and give it to the next call; a language model with caches is "
        "for selfbyoc.decoding"
    )


def check_trace(graph: torch.fx.Graph) -> None:
    """The same for what torch.jit traced."""
    for node in _inside(graph):
        if (op := _overload(node)) is None:
            continue
        given = dict(zip(_names(op), map(_value, node.inputs()), strict=False))
        if reason := _reason(op, given):
            raise InputError(f"the module cannot be imported at {node.kind()}: {reason}")


def _has_no_statistics(node: torch.fx.Node) -> bool:
    """A batch norm that keeps none, as convolutions with standardised weights have: that is an
    instance norm, which TVM's frontend for programs makes of it.
    """
    return str(node.target) == "aten.batch_norm.default" and node.args[3] is None


def why_not(node: torch.fx.Node) -> str:
    """What is wrong with a node of an exported or functional graph, if anything."""
    names = _names(node.target)
    reason = _reason(node.target, {**dict(zip(names, node.args, strict=False)), **node.kwargs})
    if reason or "native" not in str(node.target) or "norm" not in str(node.target):
        return reason
    read = {user.args[1] for user in node.users if user.target is operator.getitem and user.users}
    return "its statistics are read, which TVM does not return" if read - {0} else ""


def draws(node: torch.fx.Node) -> str:
    """The op's name, if it draws random numbers."""
    given = {**dict(zip(_names(node.target), node.args, strict=False)), **node.kwargs}
    return str(node.target) if _is_random(node.target, given) else ""


def _reason(op: Op, given: Mapping[str, object]) -> str:
    if _is_random(op, given):
        return "it draws random numbers, which TVM would draw once, or not at all"
    # `instance_norm` has another name for it, and is one by the statistics of its input, as what
    # PyTorch makes of it is.
    keeps_some = not str(op).endswith("no_stats")
    if "batch_norm" in str(op) and given.get("training") and keeps_some:
        return "it norms by the statistics of its input; call eval() before exporting"
    return ""


def _is_random(op: Op, given: Mapping[str, object]) -> bool:
    tag = extra("torch").Tag.nondeterministic_seeded
    if tag not in getattr(op, "tags", ()):
        return False
    default = {a.name: a.default_value for a in op._schema.arguments if a.has_default_value()}
    known = default | dict(given)
    return not any(name in known and known[name] == value for name, value in _KEEPS_ALL.items())


def _names(op: Op) -> list[str]:
    schema = getattr(op, "_schema", None)
    return [] if schema is None else [argument.name for argument in schema.arguments]


def _inside(graph: torch.fx.Graph) -> Iterator[torch.Node]:
    """The nodes of a trace, those of its branches too."""
    for node in graph.nodes():
        yield node
        for block in node.blocks():
            yield from _inside(block)


def _overload(node: torch.fx.Node) -> torch._ops.OpOverload | None:
    """The op of a node of a trace; None for what is no op of ATen's, such as a list of numbers."""
    found = re.match(r"aten::(\w+)(?:\.(\w+))?\(", node.schema())
    overloads = getattr(extra("torch").ops.aten, found[1], None) if found else None
    return getattr(overloads, found[2] or "default", None) if found else None


def _value(value: torch.Value) -> object:
    """A constant of a trace; None for what is none."""
    return value.toIValue() if value.node().kind() == "prim::Constant" else None
