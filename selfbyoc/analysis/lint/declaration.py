"""What is wrong with a composite as it is written: names, attributes, signatures."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from ...codegen.arguments import takes_reader
from ...errors import did_you_mean
from ...language.case import Case
from ...language.composite import Composite
from ...language.growing import Elementwise, Repeat
from ...language.nodes import Arg, Either, Many, Node
from ...tvm import tvm
from .records import Finding, place


def nodes(outputs: Sequence[Node]) -> list[Node]:
    """Everything in a pattern; of `many`, the first branch."""
    found: dict[Node, None] = {}
    stack = list(outputs)
    while stack:
        node = stack.pop()
        if node in found:
            continue
        found[node] = None
        stack.extend(node.below())
    return list(found)


def declaration(composite: Composite) -> Iterator[Finding]:
    """All findings that need no model."""
    for check in (_pattern, _functions, _schedules, _cases):
        for finding in check(composite):
            yield _owned(finding, composite)


def _owned(finding: Finding, composite: Composite) -> Finding:
    file, line = (finding.file, finding.line) if finding.file else place(composite.pattern)
    return Finding(finding.kind, finding.message, composite.name, file, line)


def _at(kind: str, message: str, function: Callable[..., object] | None = None) -> Finding:
    return Finding(kind, message, "", *place(function))


def _pattern(composite: Composite) -> Iterator[Finding]:
    found = nodes(composite.outputs)
    used = {node.name for node in found if isinstance(node, Arg)}
    for name in composite.arg_names:
        if name not in used:
            yield _at("unused-argument", f"no op of the pattern uses its argument {name!r}")
    if not composite.why:
        yield _at("no-why", "`why` is empty: say what is gained by one kernel")


def _functions(composite: Composite) -> Iterator[Finding]:
    yield from _takes(composite.check, "check", ("match",))
    yield from _all_arguments(composite, composite.reference, "reference")
    planned = () if composite.kernel is None else ("plan",)
    for name, function in composite.pack.items():
        given = ("tensor", *planned)
        takes = (*given, "call") if takes_reader(function, len(given)) else given
        yield from _takes(function, f"pack of {name!r}", takes)
    if not isinstance(composite.compute, Mapping):
        yield from _all_arguments(composite, composite.compute, "compute")
        yield from _defaults(composite)
        return
    for kind, function in composite.compute.items():
        yield from _takes(function, f"compute of {kind!r}", ("inputs", "call", *planned))


def _takes(
    function: Callable[..., object] | None, what: str, arguments: Sequence[str]
) -> Iterator[Finding]:
    """A function that is called by position."""
    if function is None:
        return
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError as err:
        text = f"{what} is called as ({', '.join(arguments)}), but {err}"
        yield _at("signature", text, function)
    except ValueError:  # written in C, without a signature
        return


_NUMBER: dict[type[Node], str] = {Many: "many", Elementwise: "elementwise", Repeat: "repeat"}


def _all_arguments(
    composite: Composite, function: Callable[..., object] | None, what: str
) -> Iterator[Finding]:
    """A function that is called with the pattern's arguments by name."""
    if function is None:
        return
    parameters = inspect.signature(function).parameters
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values()):
        return
    for name in composite.arg_names:
        if name not in parameters:
            meant = did_you_mean(name, set(parameters) - set(composite.arg_names))
            yield _at("missing-argument", f"{what} does not take {name!r}{meant}", function)
    found = [_NUMBER[type(n)] for n in nodes(composite.outputs) if type(n) in _NUMBER]
    if what == "compute" and found:
        text = f"compute does not take the numbered arguments of `{found[0]}`; it needs **named"
        yield _at("missing-argument", text, function)


def _defaults(composite: Composite) -> Iterator[Finding]:
    """A compute of the whole is not given the arguments of an option that was not taken."""
    if composite.compute is None or isinstance(composite.compute, Mapping):
        return
    always = set().union(*map(_always, composite.roots))
    for parameter in inspect.signature(composite.compute).parameters.values():
        optional = parameter.name in composite.arg_names and parameter.name not in always
        if optional and parameter.default is inspect.Parameter.empty:
            text = f"compute needs a default for {parameter.name!r}, which not every match has"
            yield _at("missing-default", text, composite.compute)


def _always(node: Node) -> set[str]:
    """The arguments that every match binds."""
    if isinstance(node, Arg):
        return {node.name}
    if isinstance(node, Either):
        return set.intersection(*map(_always, node.options))
    if isinstance(node, Repeat) and node.at_least == 0:
        return _always(node.of)
    return set().union(*map(_always, node.below()))


def _schedules(composite: Composite) -> Iterator[Finding]:
    arguments = ("sch", "ops", "target")
    if composite.kernel is not None:
        yield from _takes(composite.kernel.plan, "plan", ("ops", "machine"))
        arguments = ("sch", "stages", "plan")
    if not isinstance(composite.schedule, Mapping):
        yield from _takes(composite.schedule, "schedule", arguments)
        return
    known = [str(kind) for kind in tvm.target.Target.list_kinds()]
    for kind, function in composite.schedule.items():
        yield from _takes(function, f"schedule for {kind!r}", arguments)
        if kind not in known:
            text = f"schedule has {kind!r}, which is no kind of target{did_you_mean(kind, known)}"
            yield _at("unknown-target", text, function)


def _cases(composite: Composite) -> Iterator[Finding]:
    if not composite.cases:
        yield _at("no-cases", "it has no cases: nothing tests it")
        return
    for name, count in Counter(case.name for case in composite.cases).items():
        if count > 1:
            yield _at("duplicate-case", f"{count} cases are named {name!r}")
    if not any(map(_has_tail, composite.cases)):
        text = "every extent of every case is a multiple of 16: no case has a tail"
        yield _at("no-tail", text)
    for case in composite.cases:
        yield from _case_names(composite, case)


def _has_tail(case: Case) -> bool:
    extents = (extent for shape, _ in case.args.values() for extent in shape)
    return any(extent > 1 and extent % 16 for extent in extents)


def _case_names(composite: Composite, case: Case) -> Iterator[Finding]:
    function = case.program or composite.pattern
    parameters = inspect.signature(function).parameters
    for name in case.args:
        if name not in parameters:
            meant = did_you_mean(name, parameters)
            text = f"case {case.name}: its program does not take {name!r}{meant}"
            yield _at("unknown-argument", text, case.program)
    for name, parameter in parameters.items():
        needed = case.program is not None and parameter.default is inspect.Parameter.empty
        if needed and name not in case.args:
            meant = did_you_mean(name, set(case.args) - set(parameters))
            text = f"case {case.name}: {name!r} of its program is not given{meant}"
            yield _at("missing-argument", text, case.program)
