"""A rule of MetaSchedule that reads op info: tiles from strides and padding (WISHES B20, B21)."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import selfbyoc
from selfbyoc import Composite
from selfbyoc._tvm import current_target
from selfbyoc._tvm_tune import apply_steps, derived, meta_schedule, tune_context

PATH = Path(__file__).parents[1] / "examples" / "tiles_from_attributes.py"
SPEC = importlib.util.spec_from_file_location("tiles_from_attributes", PATH)
example = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(example)

ms = meta_schedule()


@derived
class TilesFromAttributes(ms.schedule_rule.PyScheduleRule):
    """Rows of a tile by the convolution's strides and padding, as op info has them."""

    def _initialize_with_tune_context(self, context):
        pass

    def apply(self, sch, block):
        infos = {info.name: info for info in selfbyoc.op_info(sch)}
        if str(sch.get(block).name_hint) not in infos["relu"].blocks:
            return [sch]
        *images, row, column = sch.get_loops(block)
        outer, inner = sch.split(row, [None, example.tile_rows(infos["conv2d"])])
        sch.reorder(outer, *images, inner, column)
        sch.parallel(outer)
        sch.vectorize(column)
        return [sch]

    def clone(self):
        return TilesFromAttributes()


def by_the_rule(sch, ops, target):
    """What MetaSchedule's generator makes of the function with this rule."""
    context = tune_context(
        mod=sch.mod,
        target=current_target(),
        space_generator=ms.space_generator.PostOrderApply(
            sch_rules=[TilesFromAttributes()], postprocs=[], mutator_probs={}
        ),
        search_strategy="replay-trace",
        rand_state=1,
        num_threads=1,
    )
    (found,) = context.generate_design_space()
    apply_steps(found, sch)


RULED = Composite("ruled", example.pattern, by_the_rule)


@pytest.mark.parametrize(
    ("stride", "pad", "rows"),
    [(1, 1, 4), (2, 1, 3), (1, 0, 2)],
    ids=["padded", "strided", "plain"],
)
def test_tiles_from_strides_and_padding(stride, pad, rows):
    rng = np.random.default_rng(0)
    data = rng.standard_normal((1, 8, 48, 48)).astype("float32")
    kernel = rng.standard_normal((16, 8, 3, 3)).astype("float32")
    mod = example.network(data.shape, kernel.shape, strides=stride, padding=pad)
    parted = selfbyoc.partition_for_tefuse(mod, composites=[RULED])
    (report,) = selfbyoc.melting(parted).kernels
    assert report.level.name == "own schedule"
    tiles = report.nest.loops_of("relu")[0]
    assert tiles.kind == "parallel"
    (_, _, height, _) = report.ops[0].outputs[0][0]
    assert (height // tiles.extent, height % tiles.extent) == (rows, 0)
    (found,) = selfbyoc.build(parted)(data, kernel)
    expected = example.reference(data, kernel, stride, pad)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
