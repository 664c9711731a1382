"""The tables of docs/makers/many-cores.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .building import counts, models
from .counting import Counted
from .measuring import Measured, times
from .timing import HAND_OVER, Limits, Parts, parts, percentile, roofline


@dataclass(frozen=True)
class Network:
    """A model scheduled for so many cores: its kernels, and its times by threads."""

    cores: int
    kernels: Mapping[str, Counted]
    measured: Mapping[int, Measured]

    def alone(self) -> list[tuple[Counted, float]]:
        """Each call of a kernel, and what it takes on one core."""
        return [(self.kernels[name], took) for name, took in self.measured[1].of(self.kernels)]

    def work(self) -> float:
        """Microseconds of all kernels on one core."""
        return sum(took for _, took in self.alone())

    def outside(self) -> float:
        """Microseconds of a call that are no kernel's: they stay as they are."""
        return max(0.0, self.measured[1].whole - self.work())

    def simulated(self, cores: int, limits: Limits) -> list[Parts]:
        """Each call of a kernel on so many cores."""
        return [parts(kernel, took, cores, limits) for kernel, took in self.alone()]

    def whole(self, cores: int, limits: Limits) -> float:
        """Microseconds of a call on so many cores."""
        return self.outside() + sum(each.all for each in self.simulated(cores, limits))


def tables(folder: Path, cores: Sequence[int], checked: Sequence[int]) -> Iterator[str]:
    """All of them."""
    (one, alone), (two, both) = (times(folder, threads) for threads in (1, 2))
    memory = two["bandwidth"]["memory"] / 2  # each of two that read at once
    limits = Limits(one["launch"], two["launch"], 1e3 * memory, 1e3 * one["gflops"])
    networks = {
        (name, n): Network(n, counts(name, n, folder), {1: alone[key], **_second(both, key)})
        for name in models()
        for n in cores
        if (key := f"{name}.{n}") in alone
    }
    yield (
        f"Measured: {limits.peak / 1e3:.0f} GFLOP/s a core, {2 * memory:.0f} GB/s from memory to "
        f"two; a launch {limits.launch_of_one:.2f} us on one thread, {limits.launch_of_two:.2f} on "
        f"two."
    )
    names = [name for name in models() if (name, 2) in networks]
    yield from ("", *_errors(networks, names, checked, limits))
    yield from ("", *_curve(networks, names, cores, limits))
    yield from ("", *_limits(networks, names, cores, limits))
    yield from ("", *_writing(networks, names, cores, limits))


def _second(both: Mapping[str, Measured], key: str) -> dict[int, Measured]:
    return {2: both[key]} if key in both else {}


Networks = Mapping[tuple[str, int], Network]


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _head(first: str, *columns: object) -> Iterator[str]:
    yield _row(first, *columns)
    yield f"|---|{'---:|' * len(columns)}"


def _errors(
    networks: Networks, names: Sequence[str], checked: Sequence[int], limits: Limits
) -> Iterator[str]:
    """The model beside what two threads take, kernel by kernel and whole; and the roofline beside
    one thread.
    """
    yield from _head("schedule for", *names, "kernels, median", "10%", "90%", "5 us and more")
    for n in checked:
        wholes, ratios = [], []
        for name in names:
            network = networks[name, n]
            real = [took for _, took in network.measured[2].of(network.kernels)]
            made = [each.all for each in network.simulated(2, limits)]
            ratios += list(zip(made, real, strict=True))
            wholes.append(f"{network.whole(2, limits) / network.measured[2].whole:.2f}")
        found = [made / real for made, real in ratios]
        middle = [percentile(found, share) for share in (0.5, 0.1, 0.9)]
        large = [abs(made / real - 1) for made, real in ratios if real >= 5]
        error = f"off by {percentile(large, 0.5):.0%}"
        yield _row(f"{n} cores", *wholes, *(f"{m:.2f}" for m in middle), error)
    calls = [pair for name in names for pair in networks[name, 2].alone()]
    shares = [roofline(kernel, limits) / took for kernel, took in calls if took >= 5]
    told = ", ".join(f"{percentile(shares, share):.2f}" for share in (0.1, 0.5, 0.9))
    yield ""
    yield f"Roofline of one core, of its time (10%, median, 90% of {len(shares)} calls): {told}."


def _curve(
    networks: Networks, names: Sequence[str], cores: Sequence[int], limits: Limits
) -> Iterator[str]:
    yield from _head("ms", "1, measured", "2, measured", *(f"{n}" for n in cores))
    for name in names:
        first = networks[name, 2].measured
        made = [networks[name, n].whole(n, limits) for n in cores]
        fast = [f"{t / 1e3:.2f} ({first[1].whole / t:.1f})" for t in made]
        yield _row(name, *(f"{first[n].whole / 1e3:.2f}" for n in (1, 2)), *fast)


def _limits(
    networks: Networks, names: Sequence[str], cores: Sequence[int], limits: Limits
) -> Iterator[str]:
    """Where the time goes."""
    yield from _head(
        "of the time", "cores", "the work", "more work than for 2", "uneven tasks", "memory",
        "launches", "between kernels",
    )  # fmt: skip
    for name in names:
        for n in (c for c in cores if c in (16, 64)):
            network = networks[name, n]
            made, whole = network.simulated(n, limits), network.whole(n, limits)
            even = sum(each.even for each in made)
            least = min(even, networks[name, 2].work() / n)
            shown = [
                least, even - least, sum(p.imbalance for p in made), sum(p.memory for p in made),
                sum(p.launch for p in made), network.outside(),
            ]  # fmt: skip
            yield _row(name, n, *(f"{part / whole:.0%}" for part in shown))


def _writing(
    networks: Networks, names: Sequence[str], cores: Sequence[int], limits: Limits
) -> Iterator[str]:
    """False sharing: lines that two cores write, of those written; and of the time, if each goes
    from core to core once.
    """
    yield from _head("lines of two cores (of the time)", *cores)
    for name in names:
        cells = []
        for n in cores:
            network = networks[name, n]
            made = [kernel for kernel, _ in network.alone()]
            shared, whole = sum(k.shared for k in made), sum(k.lines for k in made)
            time = shared * HAND_OVER / n / network.whole(n, limits)
            cells.append(f"{shared / max(1, whole):.1%} ({time:.1%})")
        yield _row(name, *cells)
