"""`python -m selfbyoc bounds`: one line a kernel, and what is not proved."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from ...analysis.bounds.bounds import Place, Plan, case_of, check, of_cases, of_module
from ...analysis.bounds.records import KernelBounds
from ...analysis.lint.file import load_file, named
from ...analysis.verify.verification import check_timeout
from ...codegen.target import host_target
from ...common.files import read_text, write_text
from ...errors import InputError
from ...language.composite import Composite
from ...language.known import registry_of
from ...models.sizes import parse_sizes
from ...partition import check_target
from ...tvm import GENERATION
from ..console import within
from ..model_file import composites_in, imported
from ..progress import step
from ..tables import target_text
from .tables import Line, markdown


@dataclass(frozen=True)
class Request:
    """What the command line asks for."""

    file: Path | None = None
    composite: Sequence[str] | None = None
    target: Sequence[str] | None = None
    shape: Sequence[str] = ()
    input: Sequence[str] = ()
    size: Sequence[str] = ()
    composites: Sequence[Path | str] = ()
    cases: int | None = None
    no_run: bool = False
    seed: int = 0
    timeout: float = 300.0
    json: Path | None = None
    resume: bool = False
    tables: Sequence[Path] | None = None


def run(console: Console, asked: Request) -> bool:
    """Check and print; -> whether nothing is wrong."""
    if asked.tables:
        print(markdown([_read(path) for path in asked.tables]))
        return True
    check_timeout(asked.timeout)
    known = _known(asked)
    lines = [json.dumps(line) for line in known]
    is_well, count, listed = all(line["ok"] for line in known), 0, 0
    with step("checking"):
        for found in _found(asked, {_place(line) for line in known}):
            _print(console, found)
            is_well, listed = is_well and found.ok, listed + len(found.listed)
            count += found.is_kernel
            lines.append(json.dumps(found.to_dict()))
            if asked.json is not None:
                write_text(asked.json, "\n".join(lines) + "\n")
    before = f" and {len(known)} from before" if known else ""
    text = f"{count} kernels{before}; {listed} things are not proved"
    if not count and not known:
        text = f"0 kernels: {_why_none(asked)}, so nothing was checked"
    console.print(f"\n[bold]{escape(text)}[/]", soft_wrap=True)
    return is_well and bool(count or known)


def _why_none(asked: Request) -> str:
    if asked.file is not None and asked.file.suffix != ".py":
        return f"no composite matches in {asked.file.name}"
    return f"no composite has a case that it matches with this TVM ({GENERATION})"


def _known(asked: Request) -> list[Line]:
    """What an interrupted run wrote, without its last case: of that, a kernel may be missing."""
    if asked.resume and asked.json is None:
        raise InputError("--resume: expected a file of --json to go on with")
    if not asked.resume or asked.json is None or not asked.json.exists():
        return []
    lines = _read(asked.json)[1]
    return [line for line in lines if _place(line) != _place(lines[-1])]


def _place(line: Line) -> Place:
    return line["composite"], line["case"], line["target"]


def _found(asked: Request, known: Set[Place]) -> Iterator[KernelBounds]:
    names = asked.target or ["host"]
    targets = [host_target() if name == "host" else check_target(name) for name in names]
    for target in targets:
        plan = Plan(target, asked.seed, asked.timeout, not asked.no_run)
        if asked.file is not None and asked.file.suffix != ".py":
            mod = imported(asked.file, asked.shape, asked.input)
            chosen = _chosen(asked) if asked.composite else composites_in(asked.composites)
            for subject in of_module(mod, plan, chosen, parse_sizes(asked.size)):
                yield check(subject, case_of(subject), plan)
        else:
            if asked.size:
                raise InputError("--size: it is for a model")
            yield from of_cases(_composites(asked), plan, asked.cases, known)


def _composites(asked: Request) -> list[Composite]:
    if asked.file is None:
        return _chosen(asked)
    declared, findings = load_file(asked.file)
    if findings:
        raise InputError(f"{asked.file}: {findings[0]}")
    names: Sequence[str | None] = asked.composite or [None]
    return [composite for name in names for composite in named(declared, name)]


def _chosen(asked: Request) -> list[Composite]:
    """Of files and the built-in ones; of several with one name the first, as in partitioning."""
    registry = registry_of(composites_in(asked.composites))
    return [registry[name] for name in asked.composite] if asked.composite else list(registry)


def _print(console: Console, found: KernelBounds) -> None:
    style = "green" if found.ok else "red"
    line = f"{found.composite}, {found.case}, {target_text(found.target)}"
    console.print(
        f"[{style}]{'ok' if found.ok else 'wrong':6}[/]{escape(line)}[dim]  {_summary(found)}[/]",
        soft_wrap=not console.is_terminal, highlight=False,
    )  # fmt: skip
    for text in [
        *map(str, found.listed),
        *(f"{r.name}: {r.status}: {r.detail}" for r in found.runs if r.detail),
    ]:
        console.print(escape(within(console, f"      {text}")), soft_wrap=True, highlight=False)


def _summary(found: KernelBounds) -> str:
    if found.proof is None:
        return ""
    inside = ", ".join(f"{count} by {means}" for means, count in found.proof.inside.items())
    outputs = ", ".join(f"{o.times} ({o.whole.means})" for o in found.proof.outputs)
    return escape(f"inside: {inside}; written: {outputs}")


def _read(path: Path) -> tuple[str, list[Line]]:
    lines = read_text(path).splitlines()
    try:
        return path.stem, [json.loads(line) for line in lines]
    except ValueError as err:
        raise InputError(f"{path} cannot be read as lines of JSON: {err}") from err
