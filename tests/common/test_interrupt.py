"""Ctrl-C in a build is a KeyboardInterrupt, wherever it comes; and values beyond any memory."""

import os
import signal
import threading

import pytest

import selfbyoc
from selfbyoc import Composite, op
from selfbyoc.codegen import lower
from selfbyoc.common.interrupt import Stopped, interruptible
from selfbyoc.ir.emit import emit

ARGS = {"x": ((4, 8), "float32")}


@pytest.fixture(autouse=True)
def _handler():
    """Python's own: a shell's background process ignores the signal."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupted(*_):
    os.kill(os.getpid(), signal.SIGINT)


def program(x):
    return op.relu(x)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # 0.17 prints it
def test_in_a_schedule_that_tvm_calls():
    mine = Composite("mine", program, interrupted)
    with pytest.raises(KeyboardInterrupt):
        selfbyoc.build(emit(program, ARGS), composites=[mine], cache=False)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_in_a_check():
    mine = Composite("mine", program, lambda sch, ops, target: None, check=interrupted)
    with pytest.raises(KeyboardInterrupt):
        selfbyoc.partition_for_tefuse(emit(program, ARGS), composites=[mine])


@pytest.mark.parametrize("error", [RuntimeError, None])
def test_whatever_became_of_it(error):
    """TVM 0.27 makes an empty RuntimeError of it, and 0.17 goes on."""

    def swallowed():
        try:
            interrupted()
        except KeyboardInterrupt:
            if error:
                raise error from None

    with pytest.raises(KeyboardInterrupt), interruptible():
        swallowed()


def test_handlers_of_others_stay():
    seen = []
    before = signal.signal(signal.SIGINT, lambda *_: seen.append(1))
    try:
        with interruptible():
            interrupted()
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [1]


def test_other_threads_and_errors_are_let_be():
    failed = []

    def work():
        with interruptible():
            failed.append(threading.current_thread() is not threading.main_thread())

    worker = threading.Thread(target=work)
    worker.start()
    worker.join()
    assert failed == [True]
    with pytest.raises(ValueError, match="own"), interruptible():
        raise ValueError("own")


@pytest.mark.parametrize("shape", [(1 << 40,), (1 << 16, 1 << 16)])
def test_more_elements_than_32_bits_count_are_left_to_tvm(shape):
    mod = emit(lambda x: op.softmax(x), {"x": (shape, "float32")})
    parted = selfbyoc.partition_for_tefuse(mod)
    assert selfbyoc.report(parted).counts == {}
    assert "has more than 2^31 - 1 elements" in str(selfbyoc.explain(mod).to_json())
    assert selfbyoc.build(parted, cache=False).native is not None


@pytest.mark.filterwarnings("error")
def test_a_built_in_composite_does_not_fall_back(monkeypatch):
    """0.17 has the error of the function that it called, and hands it on: the build ends there."""
    made = []

    def schedule_external(*arguments):
        made.append(len(made))
        interrupted()

    monkeypatch.setattr(lower, "schedule_external", schedule_external)
    shapes = {"x": (4, 8), "w": (8, 8)}
    with pytest.raises(KeyboardInterrupt):
        selfbyoc.build(selfbyoc.emit(lambda x, w: op.dense(x, w), shapes), cache=False)
    assert made == [0]


def test_between_tvms_lines_it_comes_a_little_later():
    """As `cfun`, which calls a function for 0.17, and has no `try` around all of it."""
    spelled = "def cfun(work):\n    raise_signal(2)\n    work()\n"
    place = {"raise_signal": signal.raise_signal}
    exec(compile(spelled, "/tvm/_ffi/_ctypes/packed_func.py", "exec"), place)
    seen = []

    def work():
        try:
            threading.Event().wait(60)
        except Exception as err:
            seen.append(type(err))

    with pytest.raises(KeyboardInterrupt), interruptible():
        place["cfun"](work)
    assert seen == [Stopped]
