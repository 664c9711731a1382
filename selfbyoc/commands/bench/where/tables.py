"""A network taken apart, in the terminal and as Markdown: the same tables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console

from ...console import PlainTable
from ..records import OURS
from ..tables import SHORT, milliseconds, percent
from .records import TVM, Group, Kernel, Network, Places

LONGEST = 32  # letters of a function of TVM's
SHOWN = 20  # groups in which we lose, in the terminal
_HEAVY = ("Conv", "MatMul", "Gemm", "Attention", "Pool", "LSTM", "GRU")
_LEAST = 0.0005  # milliseconds: less is no loss


@dataclass(frozen=True)
class Sheet:
    """A table; its first `texts` columns are texts, the others numbers."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    texts: int


def sheets(network: Network) -> list[Sheet]:
    """What each kernel takes, and the groups in which somebody else takes less."""
    return [_kernels(network), _losses(network)]


def _kernels(network: Network) -> Sheet:
    head = [
        "kernel", "nodes", "result", "ms", "of call", "limit", "limit's share", "group",
        "group, ours", "best peer", "its ms",
    ]  # fmt: skip
    whole = network.calls[OURS].milliseconds
    rows = [_kernel_cells(network, kernel, whole) for kernel in network.kernels]
    for name, time in (("rest of the call", network.rest(OURS)), ("whole call", whole)):
        rows.append([name, "", "", milliseconds(time), percent(time / whole), *[""] * 6])
    return Sheet(f"{network.name}: our kernels", head, rows, 3)


def _kernel_cells(network: Network, kernel: Kernel, whole: float) -> list[str]:
    group = network.groups[kernel.group]
    best = group.best
    return [
        _kernel_name(kernel),
        what(kernel.nodes, kernel.ops), "x".join(map(str, kernel.shape)),
        milliseconds(kernel.milliseconds), percent(kernel.milliseconds / whole), kernel.limit,
        percent(kernel.share), str(kernel.group + 1), milliseconds(group.milliseconds[OURS]),
        SHORT.get(best, best) or "-", milliseconds(group.milliseconds.get(best, math.nan)),
    ]  # fmt: skip


def _kernel_name(kernel: Kernel) -> str:
    """TVM names a function by all of its ops."""
    if kernel.composite != TVM:
        return kernel.composite
    short = kernel.name.removeprefix("tvmgen_default_")
    return f"TVM: {short[:LONGEST]}{'...' if len(short) > LONGEST else ''}"


def _losses(network: Network) -> Sheet:
    there = list(network.profiled)
    head = ["group", "nodes", "our kernels", *(SHORT.get(n, n) for n in there), "we lose"]
    rows = [_group_cells(network, n, group, there) for n, group in losing(network)]
    return Sheet(f"{network.name}: lost to the best peer of each group, ms", head, rows, 3)


def losing(network: Network) -> list[tuple[int, Group]]:
    """The groups, by number, in which a peer takes less; most milliseconds first."""
    numbered = list(enumerate(network.groups))
    found = [(n, group) for n, group in numbered if group.best and group.loss > _LEAST]
    return sorted(found, key=lambda entry: -entry[1].loss)


def _group_cells(network: Network, number: int, group: Group, there: Sequence[str]) -> list[str]:
    kernels = [kernel.composite for kernel in network.kernels if kernel.group == number]
    times = [milliseconds(group.milliseconds.get(name, math.nan)) for name in there]
    ours = counted(kernels) or "none"
    return [str(number + 1), what(group.nodes, group.ops), ours, *times, milliseconds(group.loss)]


def what(nodes: Sequence[str], ops: Sequence[str]) -> str:
    """The name of the first heavy node, and the ops of all."""
    if not nodes:
        return "no node of the model"
    heavy = (n for n, op in enumerate(ops) if any(part in op for part in _HEAVY))
    return f"{nodes[next(heavy, 0)]}: {counted(ops)}"


def counted(names: Sequence[str]) -> str:
    """`Conv x2, Relu`, in the order of the first of each."""
    counts = {name: names.count(name) for name in names}
    return ", ".join(f"{name} x{n}" if n > 1 else name for name, n in counts.items())


def lines(network: Network) -> Iterator[str]:
    """Whole calls, what the profiles add to them, and what is to be said of each."""
    for name, result in network.calls.items():
        short = SHORT.get(name, name)
        if result.skipped:
            yield f"{short}: {result.skipped}"
            continue
        mark = ", a wrong result" * result.wrong + ", unsteady" * (not result.steady)
        yield (
            f"{short}: a call takes {milliseconds(result.milliseconds)} ms{mark}; its steps "
            f"{milliseconds(network.profiled[name])} ms in the profile, "
            f"{percent(network.profiled[name] / result.milliseconds)} of that"
        )
    lost = sum(group.loss for _, group in losing(network))
    best = sum(group.milliseconds.get(group.best, 0.0) for group in network.groups)
    yield (
        f"lost in {len(losing(network))} of {len(network.groups)} groups: {milliseconds(lost)} ms; "
        f"the best peer of each group, all together: {milliseconds(best)} ms"
    )
    if network.others > 0.03:
        yield f"others took {percent(network.others)} of the cores: measure it again"


def machine_line(places: Places) -> str:
    """The roofs that limits are of."""
    roof = places.roof
    rates = ", ".join(f"{rate:.0f} GB/s from {level}" for level, rate in roof.bandwidth.items())
    levels = "" if math.isnan(roof.gops) else f", {roof.gops:.0f} GOP/s of bytes"
    return (
        f"{places.threads} threads, by code for {places.target}: {roof.gflops:.0f} GFLOP/s"
        f"{levels}, {rates}, a launch {roof.launch:.1f} us"
    )


def show(console: Console, places: Places) -> None:
    """All models in the terminal."""
    for network in places.networks:
        for sheet in sheets(network):
            console.print("", _table(sheet))
        for line in lines(network):
            console.print(line, highlight=False, soft_wrap=True)
    console.print(machine_line(places), highlight=False, soft_wrap=True)


def _table(sheet: Sheet) -> PlainTable:
    table = PlainTable(title=sheet.title, title_justify="left", show_edge=False)
    for n, name in enumerate(sheet.head):
        is_text = n < sheet.texts
        table.add_column(name, justify="left" if is_text else "right", no_wrap=not is_text)
    for row in sheet.rows[:SHOWN] if sheet.head[0] == "group" else sheet.rows:
        table.add_row(*row)
    return table


def markdown(places: Places) -> str:
    """All models as Markdown."""
    facts = ", ".join(f"{name}: {value}" for name, value in places.facts.items())
    versions = ", ".join(f"{name} {version}" for name, version in places.versions.items())
    parts = [f"{facts}. {versions}.", f"{machine_line(places)}."]
    for network in places.networks:
        for sheet in reversed(sheets(network)):
            parts += [f"**{sheet.title}**", _markdown(sheet)]
        parts.append("\n".join(f"- {line}" for line in lines(network)))
    return "\n\n".join(parts) + "\n"


def _markdown(sheet: Sheet) -> str:
    rule = ["---" if n < sheet.texts else "---:" for n in range(len(sheet.head))]
    return "\n".join(_line(cells) for cells in (sheet.head, rule, *sheet.rows))


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"
