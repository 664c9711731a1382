"""`python -m selfbyoc bounds`: one line a kernel, and what is not proved."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from ..analysis.bounds.bounds import Plan, check, of_cases, of_module
from ..analysis.bounds.records import KernelBounds
from ..analysis.lint.file import load_file, named
from ..analysis.verify.verification import check_timeout
from ..codegen.target import host_target
from ..errors import InputError
from ..language.known import default_registry
from ..partition import check_target
from .bounds_tables import markdown
from .model_file import imported


@dataclass(frozen=True)
class Request:
    """What the command line asks for."""

    file: Path | None = None
    composite: Sequence[str] | None = None
    target: Sequence[str] | None = None
    shape: Sequence[str] = ()
    cases: int | None = None
    no_run: bool = False
    seed: int = 0
    timeout: float = 300.0
    json: Path | None = None
    tables: Sequence[Path] | None = None


def add_bounds(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser("bounds", help="does each kernel stay in its buffers? proof, runs")
    add = parser.add_argument
    add("file", type=Path, nargs="?", metavar="FILE", help="composites of a .py file on their "
        "cases, or the kernels of a .onnx model; default: the built-in composites")  # fmt: skip
    add("--composite", action="append", metavar="NAME", help="this one alone; again for more")
    add(
        "--target",
        action="append",
        help="what to build for, again for more; default: host, this CPU",
    )
    add("--shape", action="append", default=[], metavar="INPUT=1x3x224x224",
        help="of an input of a .onnx model; for each one with open sizes")  # fmt: skip
    add("--cases", type=int, metavar="N", help="only the N smallest of each composite")
    add("--no-run", action="store_true", help="only prove")
    add("--seed", type=int, default=0, help="of the random inputs")
    add("--timeout", type=float, default=300.0, help="seconds for one step; default: 300")
    add("--json", type=Path, metavar="FILE", help="also write a line of JSON a kernel")
    add("--tables", type=Path, action="append", metavar="FILE", help="print what such files say as "
        "Markdown, and check nothing; again for more")  # fmt: skip
    parser.set_defaults(run=_run)


def _run(args: Any, console: Console) -> int:
    asked = {name: value for name, value in vars(args).items() if name != "run"}
    return 0 if run(console, Request(**asked)) else 1


def run(console: Console, asked: Request) -> bool:
    """Check and print; -> whether nothing is wrong."""
    if asked.tables:
        print(markdown([_read(path) for path in asked.tables]))
        return True
    check_timeout(asked.timeout)
    lines: list[str] = []
    is_well, count, listed = True, 0, 0
    for found in _found(asked):
        _print(console, found)
        is_well, count, listed = is_well and found.ok, count + 1, listed + len(found.listed)
        lines.append(json.dumps(found.to_dict()))
        if asked.json is not None:
            _write(asked.json, lines)
    console.print(f"\n[bold]{count} kernels; {listed} things are not proved[/]")
    return is_well


def _found(asked: Request) -> Iterator[KernelBounds]:
    names = asked.target or ["host"]
    targets = [host_target() if name == "host" else check_target(name) for name in names]
    for target in targets:
        plan = Plan(target, asked.seed, asked.timeout, not asked.no_run)
        if asked.file is not None and asked.file.suffix != ".py":
            mod = imported(asked.file, asked.shape)
            chosen = _builtin(asked) if asked.composite else None
            for subject in of_module(mod, plan, chosen):
                yield check(subject, ", ".join(subject.roots), plan)
        else:
            yield from of_cases(_composites(asked), plan, asked.cases)


def _composites(asked: Request) -> list[Any]:
    if asked.file is None:
        return _builtin(asked)
    declared, findings = load_file(asked.file)
    if findings:
        raise InputError(f"{asked.file}: {findings[0]}")
    names: Sequence[str | None] = asked.composite or [None]
    return [composite for name in names for composite in named(declared, name)]


def _builtin(asked: Request) -> list[Any]:
    registry = default_registry()
    return [registry[name] for name in asked.composite] if asked.composite else list(registry)


def _print(console: Console, found: KernelBounds) -> None:
    style = "green" if found.ok else "red"
    line = f"{found.composite}, {found.case}, {found.target}"
    console.print(
        f"[{style}]{'ok' if found.ok else 'wrong':6}[/]{escape(line)}[dim]  {_summary(found)}[/]",
        soft_wrap=True, highlight=False,
    )  # fmt: skip
    for text in [
        *map(str, found.listed),
        *(f"{r.name}: {r.status}: {r.detail}" for r in found.runs if r.detail),
    ]:
        console.print(f"      {escape(text)}", soft_wrap=True, highlight=False)


def _summary(found: KernelBounds) -> str:
    if found.proof is None:
        return ""
    inside = ", ".join(f"{count} by {means}" for means, count in found.proof.inside.items())
    outputs = ", ".join(f"{o.times} ({o.whole.means})" for o in found.proof.outputs)
    return escape(f"inside: {inside}; written: {outputs}")


def _write(path: Path, lines: Sequence[str]) -> None:
    try:
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    except OSError as err:
        raise InputError(f"{path} cannot be written: {err.strerror}") from err


def _read(path: Path) -> tuple[str, list[dict[str, Any]]]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        return path.stem, [json.loads(line) for line in lines]
    except (OSError, ValueError) as err:
        raise InputError(f"{path} cannot be read as lines of JSON: {err}") from err
