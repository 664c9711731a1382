"""What a long piece of work is at: who listens, and what a part took."""

import pytest

from selfbyoc.common import parts
from selfbyoc.common.parts import Times, begins, heard_by


def test_all_who_listen_hear_it_and_nobody_else():
    outer, inner = [], []
    begins("alone")
    with heard_by(outer.append):
        begins("one")
        with heard_by(inner.append):
            begins("two")
        begins("three")
    begins("alone")
    assert (outer, inner) == (["one", "two", "three"], ["two"])


def test_one_that_raises_listens_no_longer():
    heard = []
    with pytest.raises(ValueError, match="x"), heard_by(heard.append):
        raise ValueError("x")
    begins("alone")
    assert heard == []


def test_parts_that_come_again_add_up(monkeypatch):
    clock = iter([1.0, 3.0, 7.0, 7.5])
    monkeypatch.setattr(parts.time, "perf_counter", lambda: next(clock))
    times = Times()
    for part in ("a", "b", "a", ""):
        times(part)
    assert times.seconds == {"a": 2.5, "b": 4.0}
    assert list(times.seconds) == ["a", "b"]
