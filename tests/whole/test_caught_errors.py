"""What is taken whatever it is, is told: an error planted in each place, and Ctrl-C goes on."""

import logging
import os
import signal
from types import SimpleNamespace

import numpy as np
import pytest

import selfbyoc
from selfbyoc import Composite, by_rules, op
from selfbyoc.analysis.guard import Trial, measured
from selfbyoc.codegen import unread_attributes
from selfbyoc.errors import FallbackWarning, InputError, ScheduleError, TargetError
from selfbyoc.ir.emit import emit
from selfbyoc.runtime.build import build
from selfbyoc.simplify.folding import or_as_it_was
from selfbyoc.tuning.sources import CostModel
from selfbyoc.tvm import GENERATION
from selfbyoc.tvm.tune import dlight

X = {"x": ((5, 33), "float32")}


def fault(*_, **__):
    raise ValueError("planted")


@pytest.fixture
def python_handles_the_signal():
    """A shell's background process ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def stopped_within(calls):
    """What comes of Ctrl-C in a function that TVM 0.27 calls: an error that says nothing."""

    def call(*_, **__):
        calls.append(1)
        try:
            os.kill(os.getpid(), signal.SIGINT)
        except KeyboardInterrupt:
            raise RuntimeError from None

    return call


class Lazy:
    """An array of somebody's that cannot be had."""

    dtype = "float32"

    def __array__(self, *_, **__):
        raise OSError("planted: the disk is gone")


def test_an_array_that_raises():
    library = build(emit(lambda x: op.relu(x), X), cache=False)
    with pytest.raises(InputError, match=r"'x': expected an array .* OSError: planted: the disk"):
        library(Lazy())


def test_a_guard_that_cannot_compare():
    """The user's own composite raises: that is no TVM that cannot build it."""
    first = Composite("first", lambda x: op.relu(x))
    other = Composite("other", lambda x: op.relu(x), fault)
    mod = emit(lambda x: op.relu(x), X)
    trial = Trial(first, mod, selfbyoc.host_target(), [other], [np.zeros((5, 33), "float32")])
    with pytest.raises(ScheduleError, match=r"composite other.*planted"):
        measured(trial)


@dlight().ScheduleRule.from_callable("Typed")
def typed(func, target, tunable):
    raise TargetError("planted")


def test_an_error_of_ours_in_a_rule():
    ruled = Composite("ruled", lambda x: op.relu(x), by_rules(typed))
    with pytest.raises(TargetError, match=r"^planted"):
        build(emit(lambda x: op.relu(x), X), composites=[ruled], cache=False)


def test_a_cost_model_that_raises(caplog):
    model = CostModel(SimpleNamespace(predict=fault))
    with caplog.at_level(logging.WARNING):
        assert model.ranked(None, [3, 4]) == [0, 1]
    assert "the cost model is left out: ValueError: planted" in caplog.text


def test_what_is_not_computed_ahead():
    with pytest.warns(FallbackWarning, match="not computed ahead: ValueError: planted"):
        assert or_as_it_was(fault)("module") == "module"


def test_a_page_without_loops(monkeypatch):
    from selfbyoc.commands.model import explain as inspection

    said = []
    console = SimpleNamespace(print=lambda text, **_: said.append(text))
    mod = emit(lambda x: op.relu(x), X)
    monkeypatch.setattr(inspection, "_melted", fault)
    asked = SimpleNamespace(model=SimpleNamespace(stem="mine"))
    page = inspection._page(console, mod, selfbyoc.explain(mod), asked, mod)
    assert said == ["No loops on the page: ValueError: planted"]
    assert "mine" in page


# ---- Ctrl-C, of which TVM makes an error of its own


@pytest.mark.usefixtures("python_handles_the_signal")
def test_a_trial_is_not_the_last_word(monkeypatch):
    """Whether a composite honours all attributes is found by trying: not again, after Ctrl-C."""
    calls = []
    monkeypatch.setattr(unread_attributes, "_trial", stopped_within(calls))
    mine = Composite("mine", lambda x: op.softmax(x, axis=0))
    mod = emit(lambda x: op.softmax(op.relu(op.softmax(x, axis=0)), axis=0), X)
    with pytest.raises(KeyboardInterrupt):
        selfbyoc.partition_for_tefuse(mod, composites=[mine])
    assert len(calls) == 1


@pytest.mark.skipif(GENERATION == "relay", reason="TVM 0.17 schedules what no composite takes")
@pytest.mark.usefixtures("python_handles_the_signal")
@pytest.mark.parametrize("name", ["_scheduled", "build_module"])
def test_what_no_composite_took_is_not_left_unscheduled(monkeypatch, name):
    from selfbyoc.runtime import relax as road
    from selfbyoc.runtime.relax import rest

    calls = []
    if name == "build_module":  # they are compiled one by one where all at once do not compile
        monkeypatch.setattr(road.tvm, "compile", fault)
    monkeypatch.setattr(rest, name, stopped_within(calls))
    mod = emit(lambda x: op.softmax(op.transpose(op.softmax(x))), X)
    with pytest.raises(KeyboardInterrupt):
        build(mod, composites=[], cache=False)
    assert len(calls) == 1
