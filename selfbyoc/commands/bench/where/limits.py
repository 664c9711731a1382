"""What a kernel takes at least, by the machine's roofs, and for which reason."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from ..roof import Roof
from .model import Model, Node
from .placing import placed
from .records import Kernel, Profile, Step

LAUNCH, COMPUTE = "launch", "FMA"


def kernels_of(
    model: Model, profile: Profile, groups: Sequence[int], roof: Roof
) -> tuple[Kernel, ...]:
    """Our kernels, the slowest first; `groups` has a number for each step."""
    known = {node.name: node for node in model.nodes}
    places = placed(model, profile.steps)
    steps = [
        _picking(step, [known[name] for name in names])
        for step, names in zip(profile.steps, places, strict=True)
    ]
    weights = sum(step.weights for step in steps)
    found = []
    for step, names, group in zip(steps, places, groups, strict=True):
        nodes = [known[name] for name in names]
        flops = sum(node.flops for node in nodes)
        limit, least = limit_of(step, flops, weights, roof)
        found.append(
            Kernel(
                step.name, step.kind, tuple(n.label for n in nodes), tuple(n.op for n in nodes),
                _shape(nodes), step.milliseconds, flops, step.weights + step.moved, limit, least,
                group,
            )
        )  # fmt: skip
    return tuple(sorted(found, key=lambda kernel: -kernel.milliseconds))


def _picking(step: Step, nodes: Sequence[Node]) -> Step:
    """Of a table it reads the rows that it picks, which are in its result."""
    picks = any(node.op in ("Gather", "GatherElements", "GatherND") for node in nodes)
    return replace(step, weights=min(step.weights, step.moved)) if picks else step


def _shape(nodes: Sequence[Node]) -> tuple[int, ...]:
    return nodes[-1].shape if nodes else ()


def limit_of(step: Step, flops: int, weights: int, roof: Roof) -> tuple[str, float]:
    """The reason that takes the longest, and milliseconds of it.

    What a kernel reads another one has just written: it lies where all that this kernel moves fits.
    Its weights it last read a call ago: they lie where those of the whole model fit, `weights`.
    """
    peak = roof.gops if step.levels and not math.isnan(roof.gops) else roof.gflops
    moved, kept = level_of(step.moved, roof), level_of(weights + step.moved, roof)
    reads = {moved: 1e-6 * step.moved / roof.bandwidth[moved]}
    reads[kept] = reads.get(kept, 0.0) + 1e-6 * step.weights / roof.bandwidth[kept]
    memory = max(reads, key=lambda name: reads[name])
    times = {
        COMPUTE: 1e-6 * flops / peak, memory: sum(reads.values()), LAUNCH: 1e-3 * roof.launch,
    }  # fmt: skip
    limit = max(times, key=lambda name: times[name])
    return limit, times[limit]


def level_of(size: int, roof: Roof) -> str:
    """The level of memory that so many bytes fit into."""
    return next((name for name, most in roof.sizes.items() if size <= most), "memory")
