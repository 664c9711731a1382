"""Depthwise convolutions with the pointwise ones around them: forms, tiles, other machines."""

import numpy as np
import pytest
from harness import assert_close, cpus, run_case

from selfbyoc import BUILTIN, Case, op
from selfbyoc.schedules.kernels.conv import depth
from selfbyoc.schedules.kernels.separable import plan, tiles
from selfbyoc.tvm import make_target

BY_NAME = {c.name: c for c in BUILTIN}


def block(groups, *, residual=False, low=0, high=6, **attrs):
    """An inverted residual; its bounds are integers, as PyTorch's importer writes them."""

    def program(x, w_expand, b_expand, w_depth, w_project):
        y = op.clip(op.bias_add(op.conv2d(x, w_expand), b_expand), a_min=low, a_max=high)
        y = op.clip(op.conv2d(y, w_depth, groups=groups, **attrs), a_min=low, a_max=high)
        y = op.conv2d(y, w_project)
        return op.add(y, x) if residual else y

    return program


def case_of(channels, expanded, out, size, kernel=3, batch=1, **options):
    sizes = {
        "w_expand": (expanded, channels, 1, 1), "b_expand": (expanded,),
        "w_depth": (expanded, 1, kernel, kernel), "w_project": (out, expanded, 1, 1),
    }  # fmt: skip
    program = block(expanded, **{"padding": kernel // 2, **options})
    return Case(program, x=(batch, channels, *size), **sizes, constants=tuple(sizes))


def pair_of(channels, out, size, **attrs):
    def program(x, w_depth, w_point):
        y = op.relu(op.conv2d(x, w_depth, groups=channels, **{"padding": 1, **attrs}))
        return op.relu(op.conv2d(y, w_point))

    sizes = {"w_depth": (channels, 1, 3, 3), "w_point": (out, channels, 1, 1)}
    return Case(program, x=(1, channels, *size), **sizes, constants=tuple(sizes))


def stem_of(size, out=16, last=op.relu, **first):
    """A network's first convolution, depthwise, pointwise, on a picture."""

    def program(x, w_expand, b_expand, w_depth, w_project):
        y = op.relu(op.bias_add(op.conv2d(x, w_expand, **first), b_expand))
        y = op.relu(op.conv2d(y, w_depth, groups=32, padding=1))
        return last(op.conv2d(y, w_project))

    kernel = 2 * first["padding"] + 1
    sizes = {
        "w_expand": (32, 3, kernel, kernel), "b_expand": (32,),
        "w_depth": (32, 1, 3, 3), "w_project": (out, 32, 1, 1),
    }  # fmt: skip
    return Case(program, x=(1, 3, *size), **sizes, constants=tuple(sizes))


SHAPES = {
    "chunks-odd": ("inverted_residual", case_of(8, 48, 8, (31, 29), residual=True)),
    "chunks-stride-2": ("inverted_residual", case_of(5, 30, 9, (63, 37), strides=2)),
    "dilated": ("inverted_residual", case_of(6, 32, 24, (33, 35), padding=2, dilation=2)),
    "5x5": ("inverted_residual", case_of(4, 40, 12, (15, 13), kernel=5, strides=2)),
    "7x7": ("inverted_residual", case_of(4, 40, 12, (15, 13), kernel=7)),
    "13x13": ("inverted_residual", case_of(4, 24, 12, (9, 11), kernel=13, strides=2)),
    "wide-padding": ("inverted_residual", case_of(4, 16, 8, (9, 8), padding=(2, 1, 0, 2))),
    "no-padding": ("inverted_residual", case_of(4, 16, 8, (40, 8), padding=0)),
    "batch": ("inverted_residual", case_of(7, 18, 7, (7, 7), batch=3, residual=True)),
    "eleven-vectors": ("inverted_residual", case_of(8, 88, 72, (33, 14))),  # of AVX2
    "one-column": ("inverted_residual", case_of(3, 16, 4, (30, 1), kernel=1)),
    "first": ("inverted_residual", stem_of((144, 160), strides=2, padding=1)),
    "first-odd": ("inverted_residual", stem_of((131, 75), out=48, strides=2, padding=2)),
    "first-small": ("inverted_residual", stem_of((14, 16), last=lambda y: y, padding=1)),
    "pair-chunks": ("depthwise_pointwise", pair_of(99, 140, (65, 18))),
    "pair-small": ("depthwise_pointwise", pair_of(33, 130, (7, 9))),
    "pair-staged": ("depthwise_pointwise", pair_of(19, 21, (35, 18))),
    "chunks-low": ("inverted_residual", case_of(8, 48, 8, (31, 29), low=1)),  # not zero at zero
    "pair-squares": ("depthwise_pointwise", pair_of(24, 128, (9, 32))),
    "pair-squares-cut": ("depthwise_pointwise", pair_of(24, 136, (9, 32))),
    "pair-stride-2": ("depthwise_pointwise", pair_of(32, 512, (30, 15), strides=2)),
}  # fmt: skip


@pytest.mark.parametrize("label", SHAPES)
def test_shapes(label):
    name, case = SHAPES[label]
    run = run_case(BY_NAME[name], case)
    assert run.counts == {name: 1}
    assert_close(run)


def test_padding_stays_zero_where_the_activation_of_zero_is_not():
    """clip(0, 1, 6) is 1: the frame must be zeros all the same."""
    run = run_case(BY_NAME["depthwise_pointwise"], pair_of(16, 128, (7, 7)))
    assert_close(run)

    def program(x, w_depth, w_point):
        y = op.clip(op.conv2d(x, w_depth, groups=16, padding=1), a_min=1, a_max=6)
        return op.clip(op.conv2d(y, w_point), a_min=1, a_max=6)

    sizes = {"w_depth": (16, 1, 3, 3), "w_point": (128, 16, 1, 1)}
    run = run_case(BY_NAME["depthwise_pointwise"], Case(program, x=(1, 16, 9, 9), **sizes))
    assert run.counts == {"depthwise_pointwise": 1}
    assert_close(run)


def test_a_chain_of_pairs_is_no_inverted_residual():
    """MobileNetV1: each pair of a depthwise and a pointwise convolution by itself."""

    def program(x, w_expand, w_depth, w_project, w_next, w_point):
        y = op.clip(op.conv2d(x, w_expand), a_min=0, a_max=6)
        for depth, point in ((w_depth, w_project), (w_next, w_point)):
            y = op.clip(op.conv2d(y, depth, groups=16, padding=1), a_min=0, a_max=6)
            y = op.clip(op.conv2d(y, point), a_min=0, a_max=6)
        return y

    point, depth = (16, 16, 1, 1), (16, 1, 3, 3)
    sizes = {
        "w_expand": point,
        "w_depth": depth,
        "w_project": point,
        "w_next": depth,
        "w_point": point,
    }
    case = Case(program, x=(1, 16, 9, 9), **sizes, constants=tuple(sizes))
    run = run_case(BY_NAME["inverted_residual"], case, composites=BUILTIN)
    assert run.counts["depthwise_pointwise"] == 2
    assert_close(run)


def test_stage_by_stage_is_the_same(monkeypatch):
    name, case = SHAPES["chunks-odd"]
    fused = run_case(BY_NAME[name], case)
    monkeypatch.setattr(plan, "form_of", lambda convs, cpu: None)
    staged = run_case(BY_NAME[name], case)
    assert_close(staged)
    np.testing.assert_allclose(fused.found[0], staged.found[0], rtol=1e-4, atol=1e-4)


def test_chunks_of_an_image_that_is_transposed(monkeypatch):
    """Even where stage by stage is faster."""
    monkeypatch.setattr(tiles, "pays_transposing", lambda outputs, cpu: True)
    name, case = SHAPES["pair-chunks"]
    assert_close(run_case(BY_NAME[name], case))


@pytest.mark.parametrize("chunk", [None, 4])
@pytest.mark.parametrize("attrs", [{}, {"strides": 2}, {"dilation": 2, "padding": 2}], ids=str)
def test_sums_in_parts(monkeypatch, chunk, attrs):
    """Of a whole image, and of a chunk of it; with steps that L1 does not hold, though it does."""
    made, plan_of = [], plan._by_blocks

    def spy(*args):
        made.append(plan_of(*args))
        return made[-1]

    monkeypatch.setattr(depth, "LEAST_STEPS", 16)
    monkeypatch.setattr(depth, "SHARE", 0)
    monkeypatch.setattr(tiles, "LEAST_TILES", 1)
    # Rows of 20 columns, and 17 vectors in no groups: a whole image is bands of one row.
    monkeypatch.setattr(tiles, "together", lambda *args: [4])
    monkeypatch.setattr(tiles, "most_vectors", lambda count, lanes: count)
    monkeypatch.setattr(tiles, "pays_transposing", lambda outputs, cpu: True)
    monkeypatch.setattr(plan, "_by_blocks", spy)
    if chunk:
        monkeypatch.setattr(tiles, "chunk_rows", lambda *args: [chunk])
    else:
        monkeypatch.setattr(tiles, "MOST_SHARED_TIME", 9.0)
    run = run_case(BY_NAME["depthwise_pointwise"], pair_of(96, 130, (19, 17), **attrs))
    assert run.counts == {"depthwise_pointwise": 1}
    assert made[-1].parts > 1
    assert made[-1].chunked == bool(chunk)
    assert_close(run)


@pytest.mark.parametrize("target", cpus("llvm -mcpu=x86-64", "llvm -mcpu=haswell"))
@pytest.mark.parametrize(
    "label",
    [
        "chunks-odd",
        "batch",
        "pair-chunks",
        "pair-squares-cut",
        "eleven-vectors",
    ],
)
def test_other_vectors(label, target):
    name, case = SHAPES[label]
    run = run_case(BY_NAME[name], case, target=make_target(target))
    assert_close(run)
