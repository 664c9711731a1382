"""Kernels compiled at once: order, errors, the caller's context and target."""

import threading
from contextvars import ContextVar
from functools import partial

import pytest

from selfbyoc.codegen.parallel import at_once
from selfbyoc.tvm import current_target, make_target, te, tvm
from selfbyoc.tvm.build import build_module

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


def test_each_lowers_with_its_own_change():
    """A thread's own changes are made to its functions, whatever other threads lower meanwhile."""

    def lowered(number):
        x = te.placeholder((8,), name="x")
        func = te.create_prim_func([x, te.compute((8,), lambda i: x[i] + number, name="y")])
        seen = []

        def change(func):
            seen.append(str(func.attrs["global_symbol"]).removeprefix("__tvm_ffi_"))
            return func

        symbol = f"plus_{number}"
        mod = tvm.IRModule({symbol: func.with_attr("global_symbol", symbol)})
        build_module(mod, make_target("llvm"), change)
        return symbol, seen

    jobs = [partial(lowered, number) for number in range(32)]
    assert all(seen == [symbol] for symbol, seen in at_once(jobs, threads=8))
