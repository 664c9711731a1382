"""Models taken apart: everybody builds them, is timed whole, in turns, and then step by step."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ....errors import InputError
from ..checking import checked, expectation
from ..contenders import CONTENDERS
from ..inputs import inputs_of
from ..measure import Method, Ready, build_all, in_turns, saved
from ..process import Failed, Process
from ..records import OURS, Result
from ..run import header
from ..setting import Setting
from ..workload import Workload, counted
from .limits import kernels_of
from .model import Model, named, read
from .placing import grouped
from .records import Network, Places, Profile
from .worker import PROCESS, PROFILERS

SECONDS = 2.0  # of a profile, for each turn

Says = Callable[[str], None]


def taken_apart(
    workloads: Sequence[Workload], peers: Sequence[str], setting: Setting, method: Method,
    says: Says,
) -> Places:  # fmt: skip
    """All models, on one machine that is measured first."""
    says("measure the machine")
    head = header(setting, method)
    places = Places(
        True, head.facts, head.versions, head.generation, head.threads, head.roofs[-1],
        target=head.target,
    )  # fmt: skip
    found = [_network(w, _asked(peers), setting, method, places, says) for w in workloads]
    return Places(**{**vars(places), "networks": tuple(found)})


def _asked(peers: Sequence[str]) -> list[str]:
    """Ours, and those peers that are asked for and can be here; all that tell what they run, where
    none is.
    """
    known = [name for name in PROFILERS if name != OURS]
    for name in peers:
        if name not in known:
            text = f"expected some of {', '.join(known)}, which tell what each node takes"
            raise InputError(f"--peers: found {name!r}; {text}")
    there = {c.name for c in CONTENDERS if c.missing() is None}
    return [OURS, *(name for name in peers or known if name in there)]


def _network(
    workload: Workload, names: Sequence[str], setting: Setting, method: Method, places: Places,
    says: Says,
) -> Network:  # fmt: skip
    original = workload.model()
    model = named(original)
    inputs = inputs_of(model)
    processes = {name: Process(name, setting.threads, PROCESS) for name in names}
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = saved(model, Path(folder))
            args = (path, inputs, setting)
            says(f"{workload.name}: run it as it is")
            terms = counted(model).terms
            expected = expectation(workload, model, path, inputs, terms, method.limit)
            values = _told(Process(OURS, setting.threads, PROCESS), "values", path, inputs)
            ready, failed = build_all(
                processes, args, method, lambda t: says(f"{workload.name}: {t}")
            )
            says(f"{workload.name}: time them in turns")
            times, others = in_turns(ready, method)
            profiles, failed = _profiles(ready, args, method, failed, says)
    finally:
        for process in processes.values():
            process.close()
    calls = {n: checked(r, ready[n].outputs, expected) for n, r in times.items()} | failed
    calls = {name: calls[name] for name in names}
    return _joined(workload.name, read(original, values), calls, profiles, places, others)


def _told(process: Process, request: str, *args: object) -> Any:
    try:
        return process.ask(request, *args)
    except Failed as err:
        raise InputError(f"--where: the model's values cannot be told: {err}") from err
    finally:
        process.close()


def _profiles(
    ready: Mapping[str, Ready], args: Sequence[object], method: Method,
    failed: Mapping[str, Result], says: Says,
) -> tuple[dict[str, Profile], dict[str, Result]]:  # fmt: skip
    """Of those that tell, and who fails and why."""
    found, failures = {}, dict(failed)
    for name, contender in ready.items():
        says(f"profile {name}")
        try:
            with method.exclusive():
                profile = contender.process.ask("profiled", *args, method.turns * SECONDS)
        except Failed as err:
            failures[name] = Result(skipped=f"not profiled: {err}")
            continue
        found[name] = profile
    return found, failures


def _joined(
    name: str, model: Model, calls: dict[str, Result], profiles: dict[str, Profile],
    places: Places, others: float,
) -> Network:  # fmt: skip
    if OURS not in profiles:
        raise InputError(f"{name}: {calls[OURS].skipped}")
    groups, numbers = grouped(model, profiles)
    kernels = kernels_of(model, profiles[OURS], numbers, places.roof)
    profiled = {n: profile.milliseconds for n, profile in profiles.items()}
    return Network(name, calls, profiled, kernels, tuple(groups), others)
