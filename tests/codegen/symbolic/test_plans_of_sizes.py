"""Which plans a kernel of open sizes has functions of: those without which its sizes lose."""

import pytest

from selfbyoc.codegen.symbolic.plans import Plans
from selfbyoc.language.decisions import UNKNOWN_LOSS, choose, deciding

SIZES = tuple(range(9, 129))


class Taken:
    """A family that takes every size."""

    def __init__(self, decisions):
        self.decisions = decisions

    def takes(self, size):
        return True


def chosen(decide, lose, most=3, pays=0.01):
    """The decisions of the plans, one after the other."""
    plans = Plans({size: decide(size) for size in SIZES}, lose)
    found = {}
    while len(found) < most and (key := plans.best(SIZES, found, list(found), pays)):
        size = next(size for size in SIZES if plans.keys[size] == key)
        found[key] = [Taken(plans.decided[size])]
    return [family.decisions for (family,) in found.values()]


@pytest.mark.parametrize(("loss", "count"), [(1.001, 1), (1.01, 1), (1.05, 2), (1.5, 2)])
def test_a_plan_more_has_to_save_something(loss, count):
    """An even number of images may be planned otherwise than an odd one."""
    assert len(chosen(lambda size: {"odd": size % 2}, lambda size, told: loss)) == count


def test_tiles_of_rows():
    """Two or three tiles serve all numbers of rows, those that people pad to above all."""

    def padded(size, told):
        return -(-size // told["tile"]) * told["tile"] / size + 0.1 / told["tile"]

    def best(size):
        return {"tile": min(range(1, 9), key=lambda tile: padded(size, {"tile": tile}))}

    def lose(size, told):
        return padded(size, told) / padded(size, best(size))

    found = [told["tile"] for told in chosen(best, lose)]
    assert len(found) > 1
    losses = {n: min(lose(n, {"tile": tile}) for tile in found) for n in SIZES}
    assert sum(losses.values()) / len(losses) < 1.03
    assert max(losses[n] for n in (16, 32, 64, 128)) < 1.02


def test_sizes_without_a_plan_count_most():
    """Only the last of three plans takes odd sizes."""
    plans = Plans({size: {"n": size % 3} for size in SIZES}, lambda size, told: 1.0)
    first = plans.best(SIZES, {}, [], 0.01)
    even = Taken({"n": int(first[-2])})
    even.takes = lambda size: size % 2 == 0
    assert plans.best(SIZES, {first: [even]}, [first], 0.01)
    assert plans.best(SIZES, {first: [Taken(even.decisions)]}, [first], 0.01) is None


def test_planners_say_what_another_choice_costs():
    with deciding({"a": 2, "b": 3, "c": 5}) as asked:
        choose("b", (3, 4), 4)
        assert asked.loss is None
        choose("a", (1, 2), 1, time=lambda value: value * 10.0)
        choose("c", (5, 6), 5)
    assert asked.loss == pytest.approx(2 * UNKNOWN_LOSS)


def test_of_planners_that_do_not_say_the_plan_of_most_sizes_is_taken():
    found = chosen(lambda size: {"third": size % 3 == 0}, lambda size, told: None)
    assert found == [{"third": False}, {"third": True}]
