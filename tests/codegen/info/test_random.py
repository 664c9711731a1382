"""Random schedules with random index maps: op info says the truth, or UNKNOWN."""

import math

import numpy as np
import pytest
from layouts import computed, index_map, is_known, module, moved, params, stacked, to_plain
from random_cases import EXAMPLES, hypothesis

from selfbyoc import UNKNOWN, op, op_info
from selfbyoc.codegen.info.layout_map import INNER, OUTER, LayoutMap, Part
from selfbyoc.tvm import (
    Schedule,
    child_blocks,
    empty,
    get_func,
    make_target,
    region_buffer,
    tensor,
    tvm,
)
from selfbyoc.tvm.build import build_module

st = hypothesis.strategies
SETTINGS = hypothesis.settings(
    max_examples=EXAMPLES or 6,
    derandomize=not EXAMPLES,
    deadline=None,
    database=None,
    suppress_health_check=list(hypothesis.HealthCheck),
)
SQUARE = (4, 4, 4, 4)  # every permutation keeps the shape
KERNEL = (4, 4, 3, 3)

# name -> (program, shapes of its arguments)
PROGRAMS = {
    "convolutions": (
        lambda x, w, v: op.relu(op.conv2d(op.relu(op.conv2d(x, w, padding=1)), v, padding=1)),
        {"x": SQUARE, "w": KERNEL, "v": KERNEL},
    ),
    "convolution and pool": (
        lambda x, w, b: op.max_pool2d(
            op.relu(op.bias_add(op.conv2d(x, w), b)), pool_size=2, strides=2
        ),
        {"x": (2, 4, 6, 6), "w": KERNEL, "b": (4,)},
    ),
    "softmax": (lambda x: op.softmax(op.tanh(x), axis=2), {"x": SQUARE}),
    "layer_norm": (
        lambda x, g, b: op.layer_norm(op.relu(x), g, b, axis=1),
        {"x": SQUARE, "g": (4,), "b": (4,)},
    ),
    "reduction": (
        lambda x, w: op.relu(op.mean(op.conv2d(x, w, padding=1), axis=(2, 3))),
        {"x": SQUARE, "w": KERNEL},
    ),
    "kept reduction": (lambda x: op.tanh(op.sum(op.relu(x), axis=(1,), keepdims=True)),
                       {"x": SQUARE}),
    "reshape": (
        lambda x, w: op.relu(op.reshape(op.conv2d(x, w, padding=1), shape=(4, 4, 16))),
        {"x": SQUARE, "w": KERNEL},
    ),
    "transpose": (lambda x: op.relu(op.transpose(op.tanh(x), axes=(0, 2, 3, 1))), {"x": SQUARE}),
    "concatenate": (
        lambda x, y: op.relu(op.concatenate([op.tanh(x), y], axis=1)),
        {"x": SQUARE, "y": SQUARE},
    ),
    "products": (
        lambda a, b: op.softmax(op.batch_matmul(a, b, transpose_b=True), axis=-1),
        {"a": (4, 4, 4), "b": (4, 4, 4)},
    ),
    "elementwise": (lambda x, y: op.relu(op.add(op.tanh(x), y)), {"x": SQUARE, "y": (4, 1, 1, 4)}),
    "dense": (lambda x, w: op.relu(op.dense(x, w)), {"x": (4, 4), "w": (4, 4)}),
}  # fmt: skip


@st.composite
def maps(draw, shape):
    """A permutation of a shape's axes, perhaps with one or two of them split."""
    parts = []
    for axis, extent in enumerate(shape):
        factors = [f for f in (2, 3, 4) if extent % f == 0 and f < extent]
        if factors and draw(st.integers(0, 5)) == 0:
            factor = draw(st.sampled_from(factors))
            parts += [Part(axis, OUTER, factor), Part(axis, INNER, factor)]
        else:
            parts.append(Part(axis))
    return LayoutMap(tuple(draw(st.permutations(parts))))


class Changes:
    """A schedule under random steps, and what has become of the parameters."""

    def __init__(self, draw, func):
        self.draw, self.begin = draw, module(func)
        self.sch = Schedule(self.begin)
        self.maps = [[] for _ in params(func)]

    def step(self, kinds):
        block = self.draw(st.sampled_from(child_blocks(self.sch)))
        self.draw(st.sampled_from(kinds))(block)

    def regions(self, block):
        stmt = self.sch.get(block)
        found = [("read", i, r) for i, r in enumerate(stmt.reads)]
        found += [("write", i, r) for i, r in enumerate(stmt.writes)]
        return [(side, i, region_buffer(r)) for side, i, r in found if region_buffer(r).shape]

    def layout(self, block):
        """One buffer in a layout of its own."""
        regions = self.regions(block)
        if regions:
            side, index, buffer = self.draw(st.sampled_from(regions))
            self.move(block, side, index, buffer, self.draw(maps(list(map(int, buffer.shape)))))

    def alike(self, _):
        """Every buffer of one shape in the same layout."""
        shape = list(map(int, params(self.sch.mod["main"])[0].shape))
        layout, done = self.draw(maps(shape)), set()
        for block in child_blocks(self.sch):
            for side, index, buffer in self.regions(block):
                if list(map(int, buffer.shape)) == shape and str(buffer.name) not in done:
                    done.add(str(buffer.name))
                    self.move(block, side, index, buffer, layout)

    def move(self, block, side, index, buffer, layout):
        shape = buffer.shape
        position = next(
            (i for i, p in enumerate(params(self.sch.mod["main"])) if p.same_as(buffer)), None
        )
        done = self.tried(
            lambda: self.sch.transform_layout(block, (side, index), index_map(layout, len(shape)))
        )
        if done and position is not None:
            self.maps[position].append(layout)

    def noise(self, block):
        sch, draw = self.sch, self.draw
        loops = list(sch.get_loops(block))

        def axes_turned():
            n = len(sch.get(block).iter_vars)
            order = draw(st.permutations(range(n)))
            sch.transform_block_layout(block, index_map(LayoutMap(tuple(map(Part, order))), n))

        steps = [
            lambda: sch.compute_inline(block),
            lambda: sch.reverse_compute_inline(block),
            lambda: sch.cache_read(block, draw(st.integers(0, 1)), "global"),
            lambda: sch.cache_write(block, 0, "global"),
            axes_turned,
        ]
        if loops:
            loop = draw(st.sampled_from(loops))
            steps += [
                lambda: sch.blockize(loop),
                lambda: sch.rfactor(loop, 0),
                lambda: sch.split(loop, [None, 2]),
                lambda: sch.decompose_reduction(block, loop),
            ]
        self.tried(draw(st.sampled_from(steps)))

    def tried(self, step):
        try:
            step()
        except Exception:
            return False  # TVM refuses what does not fit
        return True


def laid_out(arrays, changes):
    """The parameters as the scheduled function takes them."""
    found = []
    for array, layouts in zip(arrays, changes.maps, strict=True):
        for layout in layouts:
            array = moved(array, layout)
        found.append(np.ascontiguousarray(array))
    return found


def run(func, inputs):
    module = build_module(tvm.IRModule({"main": func}), make_target("llvm"))
    out = empty([int(e) for e in params(func)[-1].shape], "float32")
    get_func(module, "main")(*map(tensor, inputs), out)
    return out.numpy()


def check_claims(infos, original, func, arrays, inputs):
    """Each claim about a parameter by itself, whatever else is not known."""
    from selfbyoc.codegen.info.op_info import recorded_of

    for info, before, (ins, outs) in zip(infos, original, recorded_of(func).refs, strict=True):
        tensors = zip([*info.inputs, *info.outputs], [*before.inputs, *before.outputs],
                      [*ins, *outs], strict=True)  # fmt: skip
        for held, was, ref in tensors:
            if ref is None or ref[0] != "param" or held.layout is UNKNOWN:
                continue
            assert held.shape == inputs[ref[1]].shape
            if held.layout is not None:
                plain = to_plain(inputs[ref[1]], held.layout, was.layout)
                np.testing.assert_array_equal(plain, arrays[ref[1]])


KNOWN = {name: [] for name in PROGRAMS}


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_says_the_truth_or_unknown(name):
    program, shapes = PROGRAMS[name]
    begin = stacked(program, **shapes)
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(s).astype("float32") for s in shapes.values()]

    @SETTINGS
    @hypothesis.given(st.data())
    def check(data):
        changes = Changes(data.draw, begin.func)
        for _ in range(data.draw(st.integers(1, 2))):
            changes.step([changes.layout, changes.alike, changes.alike])
            changes.step([changes.noise, changes.layout])
        func = changes.sch.mod["main"]
        inputs = laid_out([*arrays, np.zeros([int(e) for e in begin.ops[-1].outputs[0].shape])],
                          changes)[:-1]  # fmt: skip
        assert begin.ops == op_info(begin.func), "the stacked function was changed"
        found = None
        for infos in (op_info(func), op_info(changes.sch, begin.func)):
            check_claims(infos, begin.ops, func, arrays, inputs)
            known = [is_known(info) for info in infos]
            KNOWN[name].append(sum(known) / len(known))
            if all(known):
                wanted = computed(func, infos, inputs)
                found = run(func, inputs) if found is None else found
                np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)

    check()
    assert math.fsum(KNOWN[name]) / len(KNOWN[name]) > 0.2, "too often UNKNOWN to mean anything"
