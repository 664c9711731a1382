"""What the tests share: a case of a composite as a model, built, run and compared."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import selfbyoc
from selfbyoc.common.probes import complaints
from selfbyoc.errors import TargetError
from selfbyoc.ir.emit import emit
from selfbyoc.ir.generation import ir
from selfbyoc.language.case import Case
from selfbyoc.language.composite import Composite
from selfbyoc.machine import host, machine
from selfbyoc.machine.features import check_cpu
from selfbyoc.runtime.numpy_ops import evaluate
from selfbyoc.runtime.tolerance import ROUNDOFF, difference, longest_reduction
from selfbyoc.tvm import GENERATION, make_target, tvm

# Of the largest result, where products round their sides, as models of bfloat16 allow: attention,
# whose softmax is between two of them, is off by 2, convolutions by 1 (Zen 4).
ROUNDINGS = 4

LLVM = int(tvm.target.codegen.llvm_version_major())  # 10 in BitBLAS's wheel

# Every case of every built-in composite that exists on this generation, to parametrise tests with.
CASES = [
    pytest.param(composite, case, id=f"{composite.name}-{case.name}")
    for composite in selfbyoc.BUILTIN
    for case in composite.cases
    if GENERATION in case.generations
]


def needs(target: Any) -> Any:
    """Marks a test that runs what it builds for a target."""
    why = host.cannot_run(target)
    return pytest.mark.skipif(bool(why), reason=why or "this machine runs it")


def needs_code(kind: str) -> Any:
    """Marks a test of source that TVM generates for a device; some builds lack the generator."""
    why = host.no_code(kind)
    return pytest.mark.skipif(bool(why), reason=why or "this TVM has it")


def knows(target: str) -> bool:
    """Whether this TVM's LLVM knows a target's CPU."""
    try:
        check_cpu(target)
    except TargetError:
        return False
    return True


def needs_llvm(least: int, what: str) -> Any:
    """Marks a test of what LLVM has from a version on."""
    return pytest.mark.skipif(least > LLVM, reason=f"LLVM {LLVM} has no {what}")


def needs_headers() -> Any:
    """Marks a test that compiles TVM's C: BitBLAS's wheel has no headers."""
    why = ""
    if GENERATION == "relay":
        try:
            tvm._ffi.libinfo.find_include_path()
        except (AssertionError, RuntimeError):
            why = "this TVM is installed without its C headers"
    return pytest.mark.skipif(bool(why), reason=why or "this TVM has them")


def served(why: str) -> None:
    """Skip a test, or a file of tests, where a program or package of others does not serve here;
    with its own words.
    """
    __tracebackhide__ = True
    if why:
        pytest.skip(why, allow_module_level=True)


def is_of_others(err: Exception) -> bool:
    """Whether an error says that a tool of others, or a part of TVM, is not there, or hands on
    their words: then a test is skipped. Without such it is a fault of ours.
    """
    said = str(err)
    missing = ("is not installed", "is built without a code generator", *complaints())
    return any(words in said for words in missing)


def cpus(*targets: Any) -> list[Any]:
    """Targets to parametrise a test with that runs what it builds; None is the host."""
    return [pytest.param(t, marks=() if t is None else needs(t), id=str(t)) for t in targets]


@dataclass
class Run:
    """A case that was built and run."""

    mod: Any
    counts: dict[str, int]
    found: list[np.ndarray]
    expected: list[np.ndarray]
    rounded_to: str = ""  # a dtype that products round their sides to, as the model allows


def random_args(case: Case, seed: int | None = None) -> dict[str, np.ndarray]:
    """Seeded arrays for a case's arguments; variances (names that begin with `var`) are
    positive, and `ids` are rows of the first argument.
    """
    digest = hashlib.sha256(repr((case.name, case.args)).encode()).digest()
    rng = np.random.default_rng(int.from_bytes(digest[:4], "little") if seed is None else seed)
    found = {name: _random(rng, name, shape, dtype) for name, (shape, dtype) in case.args.items()}
    if "ids" in found:
        found["ids"] %= len(next(iter(found.values())))
    return found


def _random(rng: np.random.Generator, name: str, shape: Sequence[int], dtype: str) -> np.ndarray:
    if dtype.startswith(("int", "uint")):
        info = np.iinfo(dtype)
        low, high = (info.min, info.max) if info.bits == 8 else (-1000, 1000)
        return rng.integers(low, high, shape, endpoint=True).astype(dtype)
    values = rng.standard_normal(shape)
    return (np.abs(values) + 0.1 if name.startswith("var") else values).astype(dtype)


def model(composite: Composite, case: Case, args: dict[str, np.ndarray]) -> Any:
    """The case as an IRModule; its `constants` become constants."""
    constants = {name: args[name] for name in case.constants}
    return emit(case.program or composite.pattern, case.args, constants)


def run_case(
    composite: Composite,
    case: Case,
    composites: Sequence[Composite] | None = None,
    target: Any = None,
) -> Run:
    """Partition with `composites` (default: this one alone), build, run, and compute what is
    expected.
    """
    args = random_args(case)
    mod = model(composite, case, args)
    parted = selfbyoc.partition_for_tefuse(mod, target=target, composites=composites or [composite])
    library = selfbyoc.build(parted, target)
    inputs = {name: args[name] for name, _, _ in library.inputs}
    found = library(**inputs)
    wanted = expected(composite, case, args)
    return Run(mod, selfbyoc.report(parted).counts, found, wanted, _rounded_to(mod, target))


def _rounded_to(mod: Any, target: Any) -> str:
    cpu = machine(make_target(target or selfbyoc.host_target()))
    calls = ir.read(mod["main"]).ops
    may = any(c.kind == "half_weight" or c.attrs.get("may_round_to") for c in calls)
    return "bfloat16" if may and cpu.products_of_bfloat16 else ""


def expected(composite: Composite, case: Case, args: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The composite's own reference, else NumPy's meaning of the ops, over arguments that all are
    inputs.
    """
    if composite.reference is not None and case.program is None:
        wide = {k: v.astype(np.float64) if v.dtype.kind == "f" else v for k, v in args.items()}
        result = composite.reference(**wide)
        return list(result) if isinstance(result, tuple) else [result]
    graph = ir.read(emit(case.program or composite.pattern, case.args)["main"])
    return evaluate(graph, [args[v.name] for v in graph.inputs])


def assert_close(run: Run) -> None:
    """Every output within the tolerance of its dtype and of the longest reduction."""
    reduction = longest_reduction(ir.read(run.mod["main"]))
    assert len(run.found) == len(run.expected)
    for found, wanted in zip(run.found, run.expected, strict=True):
        assert found.shape == wanted.shape
        slack = ROUNDINGS * ROUNDOFF.get(run.rounded_to, 0.0) * float(np.abs(wanted).max(initial=0))
        wrong = difference(found, wanted, str(found.dtype), reduction, slack)
        assert wrong is None, wrong
