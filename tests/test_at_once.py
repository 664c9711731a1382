"""Kernels compiled at once: order, errors, the caller's context and target."""

import threading
from contextvars import ContextVar

import pytest

from selfbyoc._tvm import current_target, make_target
from selfbyoc.codegen.at_once import at_once

asked = ContextVar("asked", default="nothing")


def test_results_come_in_the_order_of_the_jobs():
    first = threading.Event()

    def last():
        first.set()
        return "last"

    assert at_once([lambda: first.wait(60) and "first", last], threads=2) == ["first", "last"]


def test_each_finds_the_callers_context_and_target():
    token = asked.set("something")
    try:
        with make_target("llvm -mcpu=haswell") as target:
            found = at_once([lambda: (asked.get(), current_target())] * 3, threads=2)
    finally:
        asked.reset(token)
    assert [text for text, _ in found] == ["something"] * 3
    assert all(str(now) == str(target) for _, now in found)
    assert at_once([current_target] * 2, threads=2) == [None, None]


@pytest.mark.parametrize("threads", [1, 2])
def test_the_first_error_in_order_is_raised(threads):
    def wrong(text):
        raise ValueError(text)

    jobs = [lambda: 1, lambda: wrong("second"), lambda: wrong("third")]
    with pytest.raises(ValueError, match="second"):
        at_once(jobs, threads=threads)


def test_no_thread_is_left():
    at_once([lambda: 1] * 4, threads=3)
    assert not [t for t in threading.enumerate() if t.name.startswith("selfbyoc")]
