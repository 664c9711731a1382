"""docs/models.md: the table of files from wheels."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from zoo_models.document import MOST, table
from zoo_models.record import FAILED, RIGHT, WRONG, Record
from zoo_models.speed import OURS, speed_of

from .catalogue import Entry, key_of

BEGIN, END = "<!-- files -->", "<!-- end files -->"
HEAD = (
    "package and file", "opset, IR", "nodes, MB", "sizes", "built", "error / allowed", "ours, ms",
    "best peer", "speed", "kernels", "left to TVM", "Relay",
)  # fmt: skip
# Ops with a loop or a choice within, by whatever name: what lacks them says so.
RECURRENT = (
    "DynamicQuantizeLSTM", "GRU", "If", "LSTM", "Loop", "RNN", "Scan",
)  # fmt: skip


def write_document(
    path: Path,
    entries: Mapping[str, Entry],
    relax: Mapping[str, Record],
    relay: Mapping[str, Record],
) -> None:
    """Put the tables between the two marks, and leave the words around them as they are."""
    before, rest = path.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    text = "\n".join(markdown(entries, relax, relay))
    path.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")


def markdown(
    entries: Mapping[str, Entry], relax: Mapping[str, Record], relay: Mapping[str, Record]
) -> list[str]:
    """Totals, why what is not built is not, and a row for each file."""
    lines = [*table(("", "Relax", "Relay"), _totals(entries, relax, relay)), ""]
    lines += [_speeds([r for r in relax.values() if r.times]), ""]
    for name, found in (("Relax", relax), ("Relay", relay)):
        lines += [*_failures(name, [found[key] for key in entries if key in found])]
    rows = [_row(key, entry, relax, relay) for key, entry in entries.items()]
    return [*lines, "", *table(HEAD, rows)]


def _totals(entries: Mapping[str, Entry], *runs: Mapping[str, Record]) -> list[list[str]]:
    found = [[run[key] for key in entries if key in run] for run in runs]
    counts = {
        "files that were tried": lambda r: True,
        "built": lambda r: r.reached("run"),
        "right": lambda r: r.outcome == RIGHT,
        "wrong": lambda r: r.outcome == WRONG,
        "refused, with the reason": lambda r: r.outcome == FAILED and _is_refused(r),
        "failed otherwise": lambda r: r.outcome == FAILED and not _is_refused(r),
    }
    packages = len({wheel.package for wheel, _ in entries.values()})
    rows = [["packages", str(packages), str(packages)]]
    for name, fits in counts.items():
        numbers = [sum(map(fits, records)) for records in found]
        told = [
            f"{n} ({100 * n / len(of):.0f}%)" if of and name != "files that were tried" else str(n)
            for n, of in zip(numbers, found, strict=True)
        ]
        rows.append([name, *told])
    return rows


def _is_refused(record: Record) -> bool:
    """Whether an error of ours says why."""
    return record.reason.startswith(("InputError", "LoweringError"))


def why(record: Record) -> str:
    """Why a file is not built, in few words."""
    missing = [op for op in RECURRENT if op in record.reason.replace(",", " ").split()]
    if missing and "not supported" in record.reason:
        return f"needs {', '.join(missing)}"
    return " ".join(record.reason.split())


def _failures(name: str, found: Sequence[Record]) -> list[str]:
    groups = Counter(why(r) for r in found if r.outcome != RIGHT)
    rows = [[str(count), reason] for reason, count in groups.most_common()]
    return [*table((name, "not right: why"), rows), ""] if rows else []


def _speeds(timed: Sequence[Record]) -> str:
    speeds = [speed for record in timed if (speed := speed_of(record))]
    if not speeds:
        return "Nothing was timed yet."
    mean = math.exp(sum(map(math.log, speeds)) / len(speeds))
    faster = sum(speed >= 1 for speed in speeds)
    where = Counter(record.timed.partition(", ")[0] for record in timed)
    machines = "; ".join(f"{count} on {cpu}" for cpu, count in where.items())
    return (
        f"{len(speeds)} were timed ({machines}): {faster} faster than the best peer "
        f"({100 * faster / len(speeds):.0f}%), geometric mean {mean:.2f}, least {min(speeds):.2f}."
    )


def _row(
    key: str, entry: Entry, relax: Mapping[str, Record], relay: Mapping[str, Record]
) -> list[str]:
    wheel, file = entry
    assert key == key_of(wheel, file)
    more = f", and {file.alike} alike" if file.alike else ""
    record = relax.get(key)
    other = _outcome(relay[key]) if key in relay else ""
    if record is None:
        return [f"{key.replace('/', ': ')}{more}", *[""] * (len(HEAD) - 2), other]
    facts = record.facts
    told = "; ".join(filter(None, (facts.get("shapes", ""), *_fixed(file.fixed))))
    peers = {name: time for name, time in record.times.items() if name != OURS}
    best = min(peers, key=peers.__getitem__) if peers else ""
    speed = speed_of(record)
    left = Counter(record.left).most_common()
    rest = f" and {len(left) - MOST} more" if len(left) > MOST else ""
    return [
        f"{key.replace('/', ': ')}{more}",
        f"{facts.get('opset', '')}, {facts.get('ir', '')}",
        f"{facts.get('nodes', '')}, {facts.get('megabytes', '')}",
        told,
        "yes" if record.reached("run") else why(record),
        _errors(record),
        f"{record.times[OURS]:.3g}" if OURS in record.times else "",
        f"{best} {peers[best]:.3g}" if best else "",
        f"{speed:.2f}" if speed else "",
        ", ".join(f"{count} {name}" for name, count in Counter(record.composites).most_common()),
        ", ".join(f"{count} {kind}" for kind, count in left[:MOST]) + rest,
        other,
    ]


def _fixed(fixed: Mapping[str, object]) -> list[str]:
    return [f"{name} = {value}" for name, value in fixed.items()]


def _errors(record: Record) -> str:
    if record.error is None:
        return record.outcome if record.reached("run") else ""
    steps = ", in steps" if record.facts.get("quantises") else ""
    allowed = 0.0 if record.allowed is None else record.allowed
    return (
        f"{'' if record.outcome == RIGHT else 'wrong: '}{record.error:.0e} / {allowed:.0e}{steps}"
    )


def _outcome(record: Record) -> str:
    if record.outcome in (RIGHT, WRONG):
        return record.outcome
    return f"no: {why(record)}" if why(record).startswith("needs") else f"no: {record.stage}"
