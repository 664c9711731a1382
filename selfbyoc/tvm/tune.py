"""What of TVM's tuning was renamed between its two generations, under one name of ours."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import ModuleType
from typing import Any, TypeVar

from ..errors import MissingExtra
from . import GENERATION, tvm
from .types import CostModel, PrimExpr, Schedule, Trace, TuneContext

T = TypeVar("T")
_NEEDED = ("psutil", "cloudpickle")  # of MetaSchedule, and of TVM's worker processes


def apply_trace(sch: Schedule, trace: Trace) -> None:
    """Apply a trace of MetaSchedule (JSON data) to a schedule of the function it was made for."""
    tir = tvm.s_tir if GENERATION == "relax" else tvm.tir
    tir.schedule.Trace.apply_json_to_schedule(trace, sch)


def schedule_error() -> type[Exception]:
    """What a schedule primitive raises."""
    return (tvm.s_tir if GENERATION == "relax" else tvm.tir).schedule.schedule.ScheduleError


def trace_data(trace: Trace) -> Any:
    """A trace as JSON data; `apply_trace` is the inverse."""
    return json.loads(json.dumps(trace.as_json(), default=_number))


def _number(value: PrimExpr) -> float:
    """TVM's integers and floats as Python's."""
    return value.value


@cache
def meta_schedule() -> ModuleType:
    """TVM's MetaSchedule. Raises MissingExtra without the packages that it needs."""
    for name in _NEEDED:
        try:
            importlib.import_module(name)
        except ImportError as err:
            text = f"{name} is missing, which tuning needs: pip install 'selfbyoc[tune]'"
            raise MissingExtra(text) from err
    folder = "tvm.s_tir" if GENERATION == "relax" else "tvm"
    return importlib.import_module(f"{folder}.meta_schedule")


def xgboost_model(**options: Any) -> CostModel:
    """MetaSchedule's cost model. 0.17's asks for `xgboost.rabit`, which xgboost 2.1 has renamed."""
    xgboost: Any = importlib.import_module("xgboost")
    if not hasattr(xgboost, "rabit"):
        xgboost.rabit = importlib.import_module("xgboost.collective")
    return meta_schedule().cost_model.XGBModel(**options)


def tune_context(intrinsics: bool = False, **options: Any) -> TuneContext:
    """A task of MetaSchedule.

    When made, it loads all of TVM's tensor intrinsics, which takes 19 s on 0.27 and 8 s on 0.17:
    only with `intrinsics`, for a space whose rules use them.
    """
    make = meta_schedule().TuneContext
    name = f"{'tvm.s_tir' if GENERATION == 'relax' else 'tvm.tir'}.tensor_intrin"
    if intrinsics or name in sys.modules:
        return make(**options)
    sys.modules[name] = ModuleType(name)
    try:
        return make(**options)
    finally:
        del sys.modules[name]


def derived(cls: type) -> Any:
    """A Python class as the TVM object that MetaSchedule calls."""
    place = "tvm.ir.utils" if GENERATION == "relax" else "tvm.meta_schedule.utils"
    return importlib.import_module(place).derived_object(cls)


def worker_process(**options: Any) -> Any:
    """TVM's process that calls functions for this one, not started yet."""
    place = "tvm.support.popen_pool" if GENERATION == "relax" else "tvm.contrib.popen_pool"
    return importlib.import_module(place).PopenWorker(**options)


def dlight() -> ModuleType:
    """TVM's schedule rules that need no tuning; 0.17 has none for CPUs."""
    folder = "tvm.s_tir" if GENERATION == "relax" else "tvm"
    return importlib.import_module(f"{folder}.dlight")


def apply_steps(found: Schedule, sch: Schedule) -> None:
    """Do to a schedule what was done to another one of the same function."""
    found.trace.apply_to_schedule(sch, remove_postproc=False)


def decision_of(number: int) -> PrimExpr:
    """A number as a callback returns it to a trace: 0.17 takes objects alone, 0.27 none."""
    return number if GENERATION == "relax" else tvm.tir.IntImm("int32", number)


@contextmanager
def callbacks() -> Iterator[Callable[[Callable[..., Any]], Callable[..., Any]]]:
    """-> what to wrap Python functions in that TVM calls: of what they raise, the first is raised
    here as it was. TVM passes much of it on as errors of its own.
    """
    raised: list[BaseException] = []

    def kept(function: Callable[..., T]) -> Callable[..., T]:
        def call(*args: Any) -> T:
            try:
                return function(*args)
            except Exception as err:  # a caller's function raises what it likes
                raised.append(err)
                raise
            except BaseException as err:  # which 0.17 takes for an answer
                raised.append(err)
                raise RuntimeError("stopped") from err

        return call

    try:
        yield kept
    except Exception:  # what TVM made of it
        if raised:
            raise raised[0] from None
        raise
