"""Which nodes of the model a step computes, and the groups of nodes on which all runtimes agree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..records import OURS
from .model import Model, Node
from .records import Group, Profile, Step
from .sums import OF_LEVELS, TOLERANCE, alike


def placed(model: Model, steps: Sequence[Step]) -> list[tuple[str, ...]]:
    """The nodes of each step, each node with one step: what two of them compute, the first one has.

    A step that wrote a known value computed what lies between that and other steps' values.
    """
    written = _written(model, steps)
    ends = {value for values in written for value in values}
    owners: dict[str, int] = {}
    producers = model.producers()
    known = {node.name for node in model.nodes}
    for number, (step, values) in enumerate(zip(steps, written, strict=True)):
        names = [name for name in step.nodes if name in known]
        for name in names or _between(values, ends, producers):
            owners.setdefault(name, number)
    found: list[list[str]] = [[] for _ in steps]
    for node in model.nodes:
        if node.name in owners:
            found[owners[node.name]].append(node.name)
    return [tuple(names) for names in found]


def _written(model: Model, steps: Sequence[Step]) -> list[list[str]]:
    """The model's values that each step wrote. Of several with the same elements, such as those on
    both sides of a transpose, each step has one, the last step the rest.
    """
    has_levels = any(sums.levels for sums in model.sums.values())
    tolerance = OF_LEVELS if has_levels else TOLERANCE
    kinds: dict[tuple[str, ...], list[int]] = {}
    for number, step in enumerate(steps):
        for sums in step.values:
            names = tuple(alike(sums, model.sums, tolerance))
            if names:
                kinds.setdefault(names, []).append(number)
    found: list[list[str]] = [[] for _ in steps]
    for names, numbers in kinds.items():
        for place, number in enumerate(numbers):
            is_last = place == len(numbers) - 1
            found[number] += names[place:] if is_last else names[place : place + 1]
    return found


def _between(values: Iterable[str], ends: set[str], producers: Mapping[str, Node]) -> list[str]:
    """The nodes that compute these, back to what other steps wrote."""
    found: dict[str, None] = {}
    left = [value for value in values if value in producers]
    while left:
        node = producers[left.pop()]
        if node.name not in found:
            found[node.name] = None
            left += [name for name in node.inputs if name in producers and name not in ends]
    return list(found)


class _Sets:
    """Sets of things, which are joined."""

    def __init__(self) -> None:
        self._of: dict[object, object] = {}

    def find(self, thing: object) -> object:
        """What stands for the set that holds a thing."""
        while (up := self._of.setdefault(thing, thing)) != thing:
            thing = up
        return thing

    def join(self, things: Sequence[object]) -> None:
        """Make one set of those that hold these."""
        for thing in things[1:]:
            self._of[self.find(thing)] = self.find(things[0])


def grouped(model: Model, profiles: Mapping[str, Profile]) -> tuple[list[Group], list[int]]:
    """The smallest groups, in the order of the model; and the group of each of our kernels.

    A step that computes no node, such as one that only moves, goes with who reads it, else with
    whose result it reads.
    """
    sets, places = _Sets(), {name: placed(model, p.steps) for name, p in profiles.items()}
    for name, profile in profiles.items():
        for number, nodes in enumerate(places[name]):
            sets.join([(name, number), *nodes])
        _join_loose(sets, name, profile.steps, places[name])
    members: dict[object, list[tuple[str, int]]] = {}
    for name, profile in profiles.items():
        for number in range(len(profile.steps)):
            members.setdefault(sets.find((name, number)), []).append((name, number))
    found = [(_nodes_of(model, sets, of), of, steps) for of, steps in members.items()]
    order = {node.name: n for n, node in enumerate(model.nodes)}
    found.sort(key=lambda entry: min((order[n.name] for n in entry[0]), default=len(order)))
    numbers = {of: n for n, (_, of, _) in enumerate(found)}
    groups = [_group(nodes, steps, profiles) for nodes, _, steps in found]
    ours = range(len(profiles[OURS].steps))
    return groups, [numbers[sets.find((OURS, number))] for number in ours]


def _join_loose(
    sets: _Sets, name: str, steps: Sequence[Step], nodes: Sequence[tuple[str, ...]]
) -> None:
    readers: dict[int, list[int]] = {}
    for number, step in enumerate(steps):
        for of in step.reads:
            readers.setdefault(of, []).append(number)
    for number, step in enumerate(steps):
        if not nodes[number]:
            others = readers.get(number, [])[:1] or list(step.reads[:1])
            sets.join([(name, number), *((name, other) for other in others)])


def _nodes_of(model: Model, sets: _Sets, of: object) -> list[Node]:
    return [node for node in model.nodes if sets.find(node.name) == of]


def _group(
    nodes: Sequence[Node], steps: Sequence[tuple[str, int]], profiles: Mapping[str, Profile]
) -> Group:
    times: dict[str, float] = {}
    names: dict[str, tuple[str, ...]] = {}
    for name, number in steps:
        step = profiles[name].steps[number]
        times[name] = times.get(name, 0.0) + step.milliseconds
        names[name] = (*names.get(name, ()), step.name)
    labels, ops = tuple(n.label for n in nodes), tuple(n.op for n in nodes)
    return Group(labels, ops, times, names)
