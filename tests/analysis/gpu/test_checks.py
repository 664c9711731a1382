"""What is told of GPU kernels without running them: each check finds what is planted, no more."""

from dataclasses import replace

import gpu_mistakes as planted
import pytest
from matrix_cells import smallest
from on_gpu import FEW, HERE

from selfbyoc.analysis.bounds.bounds import Plan, of_case
from selfbyoc.analysis.gpu.cases import made
from selfbyoc.analysis.gpu.checks import check, kernel_of, lowered_right
from selfbyoc.analysis.gpu.lowered import lowered
from selfbyoc.analysis.gpu.opencl import TARGET
from selfbyoc.analysis.gpu.walk import device
from selfbyoc.errors import LoweringError
from selfbyoc.tir import lowering
from selfbyoc.tir.barriers import with_barriers
from selfbyoc.tvm import GENERATION, make_target, tir
from selfbyoc.tvm.rewrite import map_sequences, sequence


def checked(func, target=TARGET):
    return check(lowered(func, make_target(target)))


def only(found):
    (kernel,) = found.kernels
    return kernel


@pytest.mark.parametrize("target", [TARGET, "cuda"], ids=["opencl", "cuda"])
@pytest.mark.parametrize("name", ["right", "only_some_blocks_wait", "padded_columns"])
def test_nothing_is_found_in_what_is_right(name, target):
    found = checked(getattr(planted, name), target)
    assert found.wrong == []
    assert found.slow == []
    kernel = only(found)
    assert kernel.barriers >= 1
    assert (kernel.conflicts, kernel.unknown) == ((), ())


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("half_of_a_block_waits", "threads of a block miss"),
        ("some_wait_more_often", "threads of a block miss"),
        ("as_the_data_says", "not known to be one for all"),
    ],
)
def test_a_barrier_that_some_threads_miss(name, text):
    found = checked(getattr(planted, name))
    assert len(found.wrong) >= 1
    assert all(text in each for each in found.wrong)


def test_a_shuffle_that_some_lanes_miss():
    (text,) = checked(planted.half_of_a_warp_shuffles, "cuda").wrong
    assert "a shuffle that some lanes of a warp miss" in text
    assert checked(planted.one_warp_shuffles, "cuda").wrong == []


@pytest.mark.parametrize(("target", "what"), [(TARGET, "barrier"), ("cuda", "shuffle")])
def test_sums_across_threads_as_tvm_lowers_them(target, what):
    made = lowered(planted.sums, make_target(target))
    assert {"barrier": "barrier(", "shuffle": "__shfl_down_sync"}[what] in made.source
    assert check(made).wrong == []


def test_a_barrier_after_some_threads_have_returned():
    made = lowered(planted.right, make_target(TARGET))
    (launch,) = made.launches
    thread = device(launch.func).threads["threadIdx.x"].var
    name, *value = ("tirx.thread_return",) if GENERATION == "relax" else ("tir.ret", 0)
    early = tir.IfThenElse(thread < 32, tir.Evaluate(tir.call_intrin("void", name, *value)), None)
    func = map_sequences(launch.func, lambda seq: sequence([early, *seq.seq]))
    found = kernel_of(replace(launch, func=func))
    assert any("after some threads of a block have returned" in text for text in found.divergent)


@pytest.mark.parametrize("target", [TARGET, "cuda"], ids=["opencl", "cuda"])
@pytest.mark.parametrize("name", ["no_barrier", "no_barrier_in_the_next_turn"])
def test_what_threads_share_without_a_barrier(name, target):
    """TVM puts none in: the last thread axis is in the index."""
    (text,) = checked(getattr(planted, name), target).wrong
    assert "s[threadIdx_y]" in text.replace(".", "_")
    assert text.endswith("by another, with no barrier between")
    assert checked(planted.barriers_in_every_turn, target).wrong == []


@pytest.mark.parametrize("target", [TARGET, "cuda"], ids=["opencl", "cuda"])
def test_barriers_around_what_threads_reduce_together(target):
    """In a loop too; and where TVM would need none of ours, it finds them and adds none."""
    before = checked(planted.two_sums, target)
    after = checked(with_barriers(planted.two_sums), target)
    assert "with no barrier between" in before.wrong[0]
    assert after.wrong == []
    assert only(after).barriers == only(before).barriers + 2


def test_nobody_runs_what_is_wrong(monkeypatch):
    """A CPU that runs threads in order would compute it right."""
    softmax = next(c for c in HERE if c.name == "softmax")
    case = next(case for case in softmax.cases if case.name == "7x33")
    (subject,) = of_case(softmax, case, Plan(make_target(TARGET)), {})
    assert lowered_right(subject.kernel.source, make_target(TARGET)).launches
    monkeypatch.setattr(lowering, "with_barriers", lambda func: func)
    with pytest.raises(LoweringError, match=r"written by one thread and .* with no barrier"):
        lowered_right(subject.kernel.source, make_target(TARGET))


def test_lanes_that_read_a_column_want_one_bank():
    found = checked(planted.columns)
    (text,) = found.slow
    assert "32 words of one bank" in text
    assert "rows of 32 + 1" in text
    (conflict,) = only(found).conflicts
    assert (conflict.degree, conflict.times, conflict.is_store) == (32, 32, False)
    assert conflict.padding == (32, 1)
    assert found.wrong == []


def test_lanes_that_are_no_neighbours_in_memory():
    (scattered,) = only(checked(planted.columns_of_memory)).scattered
    assert not scattered.is_store
    assert scattered.used == 0.125  # 4 of 32 bytes


def test_a_sum_that_every_thread_repeats():
    (text,) = checked(planted.the_same_sum).slow
    assert "all threads of a block sum" in text
    assert "256 terms" in text


def test_more_than_a_device_has():
    found = checked(planted.too_much)
    text = "; ".join(found.wrong)
    assert "2048 threads of at most 1024" in text
    assert "65536 bytes shared of at most 49152" in text


@pytest.mark.parametrize("composite", FEW)
def test_a_built_in_composite(composite):
    (kernel,) = made(composite, smallest(composite), make_target("cuda"))
    found = check(kernel.lowered)
    assert found.kernels
    assert found.wrong == []
