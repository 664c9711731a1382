"""The tables of `bench --decode`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.table import Table
from rich.text import Text

from ...console import PlainTable
from ..records import OURS
from ..tables import SHORT, milliseconds, percent
from .contender import missing
from .run import Decoded, Report


def table(report: Report, weights: str) -> Table:
    """One kind of weights; who is wrong has a mark, and the last row is the best peer by ours."""
    read = report.read[weights]
    title = f"{report.config}, {weights}, {read:.0f} MB of weights a token, after {report.at}"
    found = PlainTable(title=title, title_justify="left", show_edge=False)
    found.add_column("", no_wrap=True)
    rows = [row for row in report.rows if row.weights == weights and not row.failed]
    prompts = [*rows[0].prompts] if rows else []
    for name in ("token, ms", "tokens/s", "GB/s", "of roof", *(f"{n}, ms" for n in prompts),
                 "first, s", "peak, MB", "file, MB", "error", "alike"):  # fmt: skip
        found.add_column(name, justify="right")
    for row in rows:
        rate = read / row.token
        cells = [milliseconds(row.token), f"{1e3 / row.token:.1f}", f"{rate:.1f}",
                 percent(read / row.could_read), *map(milliseconds, row.prompts.values()),
                 f"{row.start:.2f}", f"{row.memory:.0f}", f"{row.file:.0f}", f"{row.error:.1e}",
                 f"{row.alike:.4f}"]  # fmt: skip
        name = SHORT.get(row.contender, row.contender) + "!" * (not row.counts)
        found.add_row(Text(name, "red" * (not row.counts)), *cells)
    ratios = [_ratio(rows, of) for of in _timings(prompts)]
    if any(ratio is not None for ratio in ratios):
        token, *rest = (Text("-") if r is None else Text(f"{r:.2f}", "red" if r < 1 else "green")
                        for r in ratios)  # fmt: skip
        found.add_row("best peer / ours", token, "", "", "", *rest)
    return found


def _rates(report: Report) -> str:
    rates = sorted(row.reading for row in report.rows if not row.failed) or [0.0]
    return " to ".join(dict.fromkeys(f"{rate:.1f}" for rate in (rates[0], rates[-1])))


def _timings(prompts: Sequence[str]) -> list[Callable[[Decoded], float]]:
    """What is compared: a token, and each prompt."""
    return [lambda row: row.token, *((lambda row, n=n: row.prompts[n]) for n in prompts)]


def _ratio(rows: Sequence[Decoded], of: Callable[[Decoded], float]) -> float | None:
    ours = [of(row) for row in rows if row.contender == OURS and row.counts]
    peers = [of(row) for row in rows if row.contender != OURS and row.counts]
    return min(peers) / ours[0] if ours and peers else None


def notes(report: Report, taking: Sequence[str]) -> list[str]:
    """The roof, who was absent, failed or is wrong, and who disturbed."""
    found = [
        f"roof: what is read by who only reads, in turns with tokens: {_rates(report)} GB/s, on "
        f"{report.threads} threads, {report.cpu}, {report.target}",
        "columns: a token, prompts of so many, from the file to the first token, the most memory, "
        "how far logits are from PyTorch's, of the largest, and how they correlate",
    ]
    found += [f"{name}: {why}" for name in taking if (why := missing(name))]
    found += [f"{r.contender}, {r.weights}: {r.failed}" for r in report.rows if r.failed]
    found += [f"{r.contender}, {r.weights}: other logits than PyTorch's, no peer"
              for r in report.rows if not r.failed and not r.counts]  # fmt: skip
    return found + [f"{kind}: others took {100 * share:.0f}% of the cores: measure it again"
                    for kind, share in report.others.items() if share > 0.1]  # fmt: skip
