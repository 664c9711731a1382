"""Every built-in composite with one attribute of one op at another value: right, or refused.

TVM alone is the oracle; what it does not build so is not asked.
"""

import numpy as np
import pytest
from harness import model, random_args

import selfbyoc
from selfbyoc import Case, op
from selfbyoc.commands.fuzz.generation import planter
from selfbyoc.tvm import GENERATION

BUILTIN = {composite.name: composite for composite in selfbyoc.BUILTIN}
SIZE = 8  # of all axes, so that a norm may be along any of them
MOMENTS = ("gamma", "beta", "mean", "var")


def agree(mod, composite, args, case):
    """What the partitioned module says is what TVM alone says; -> the composites it used."""
    parted = selfbyoc.partition_for_tefuse(mod, composites=[composite])
    nothing = selfbyoc.partition_for_tefuse(mod, composites=[])
    given = {name: array for name, array in args.items() if name not in case.constants}
    found, alone = (selfbyoc.build(m, "llvm")(**given) for m in (parted, nothing))
    for ours, theirs in zip(found, alone, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-3)
    return selfbyoc.report(parted).counts


def norm(y, name, **args):
    return op.batch_norm(y, *(args[f"{of}_{name}"] for of in MOMENTS))[0]


def normed(x, w_a, gamma_a, beta_a, mean_a, var_a):
    return op.relu(op.batch_norm(op.conv2d(x, w_a), gamma_a, beta_a, mean_a, var_a)[0])


def added(x, w_a, gamma_a, beta_a, mean_a, var_a, z):
    y = op.conv2d(x, w_a)
    return op.relu(op.add(op.batch_norm(y, gamma_a, beta_a, mean_a, var_a)[0], z))


def pair(
    x, w_d, gamma_d, beta_d, mean_d, var_d, w_a, gamma_a, beta_a, mean_a, var_a
):  # fmt: skip
    y = op.conv2d(x, w_d, groups=SIZE, padding=1)
    y = op.relu(op.batch_norm(y, gamma_d, beta_d, mean_d, var_d)[0])
    return normed(y, w_a, gamma_a, beta_a, mean_a, var_a)


def block(
    x, w_e, gamma_e, beta_e, mean_e, var_e, w_d, gamma_d, beta_d, mean_d, var_d,
    w_a, gamma_a, beta_a, mean_a, var_a,
):  # fmt: skip
    y = op.clip(op.batch_norm(op.conv2d(x, w_e), gamma_e, beta_e, mean_e, var_e)[0])
    y = op.conv2d(y, w_d, groups=2 * SIZE, padding=1)
    y = op.clip(op.batch_norm(y, gamma_d, beta_d, mean_d, var_d)[0])
    return op.add(op.batch_norm(op.conv2d(y, w_a), gamma_a, beta_a, mean_a, var_a)[0], x)


IMAGE, POINTWISE = (1, SIZE, SIZE, SIZE), (SIZE, SIZE, 1, 1)
WIDE = 2 * SIZE


def moments(**sizes):
    return {f"{of}_{end}": (size,) for end, size in sizes.items() for of in MOMENTS}


# A program, its shapes, and how many norms it has along an axis as long as others
NORMED = {
    "conv2d_batch_norm_relu": (normed, {"x": IMAGE, "w_a": POINTWISE, **moments(a=SIZE)}, 1),
    "conv2d_add": (added, {"x": IMAGE, "w_a": POINTWISE, "z": IMAGE, **moments(a=SIZE)}, 1),
    "depthwise_pointwise": (
        pair,
        {"x": IMAGE, "w_d": (SIZE, 1, 3, 3), "w_a": POINTWISE, **moments(d=SIZE, a=SIZE)},
        2,
    ),
    "inverted_residual": (
        block,
        {
            "x": (1, SIZE, WIDE, WIDE),
            "w_e": (WIDE, SIZE, 1, 1),
            "w_d": (WIDE, 1, 3, 3),
            "w_a": (SIZE, WIDE, 1, 1),
            **moments(e=WIDE, d=WIDE, a=SIZE),
        },
        2,
    ),
}


@pytest.mark.parametrize("axis", [1, 2])
@pytest.mark.parametrize(
    ("name", "index"),
    [(name, i) for name, (_, _, norms) in NORMED.items() for i in range(norms)],
)
def test_a_norm_along_another_axis(name, index, axis):
    program, shapes, _ = NORMED[name]
    case = Case(program, **shapes)
    args = random_args(case)
    mod = planter.planted(model(BUILTIN[name], case, args), "nn.batch_norm", index, axis=axis)
    counts = agree(mod, BUILTIN[name], args, case)
    assert counts.get(name, 0) == 1 or axis != 1


def others(value):
    """Other values of an attribute."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value - 1, value + 1]
    if isinstance(value, float):
        return [value * 3 + 0.125]
    sizes = list(value) if type(value).__name__ in ("tuple", "Array") else []
    sizes = [getattr(v, "value", v) for v in sizes]  # floats are nodes of TVM's
    return [[v + 1 for v in sizes]] if all(type(v) is not str for v in sizes) and sizes else []


# Minutes each, for the ops of others.
LARGE = {"inception", "parallel_conv2d"}
HERE = [
    c.name
    for c in selfbyoc.BUILTIN
    if c.name not in LARGE and any(GENERATION in case.generations for case in c.cases)
]


@pytest.mark.parametrize("name", HERE)
def test_another_value_anywhere(name):
    """Each attribute of each op of the first case. Some have none that may change alone: strides
    of a convolution before a residual, all of a dense.
    """
    composite = BUILTIN[name]
    case = next(case for case in composite.cases if GENERATION in case.generations)
    args = random_args(case)
    mod = model(composite, case, args)
    seen: dict[str, int] = {}
    for call, attrs in planter.op_calls(mod):
        index = seen[call] = seen.get(call, -1) + 1
        for attr, value in attrs.items():
            # Relay takes any number of groups, and reads out of bounds.
            for other in others(value) if attr != "groups" else ():
                try:
                    changed = planter.planted(mod, call, index, **{attr: other})
                    selfbyoc.build(selfbyoc.partition_for_tefuse(changed, composites=[]), "llvm")
                except Exception:
                    continue
                agree(changed, composite, args, case)
