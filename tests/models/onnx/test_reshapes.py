"""Reshapes of ONNX models to another number of elements, of which TVM left out some; and broadcasts
of what is neither 1 nor the size that is asked for.
"""

import numpy as np
import pytest
from onnx_models import FLOAT, INT64, model, random, value

import selfbyoc
from selfbyoc.errors import InputError
from selfbyoc.tvm import GENERATION

RELAX = GENERATION == "relax"
BEYOND = 2**32  # 32 bits


def built(nodes, inputs, **weights):
    proto = model(nodes, inputs, [value("y", FLOAT, None, None)], **weights)
    return selfbyoc.build(selfbyoc.from_onnx(proto), cache=False)


def reshaped(*wanted, rows="n"):
    nodes = [("Reshape", ["x", "s"], "y", {})]
    return built(nodes, [value("x", FLOAT, rows, 4)], s=np.array(wanted))


@pytest.mark.parametrize("wanted", [(-1, 3), (3, -1), (-1, 24)])
def test_what_does_not_divide(wanted):
    """8 elements in rows of 3 were two rows."""
    library, per_row = reshaped(*wanted), max(wanted)
    for n in range(19):
        x = random(n, 4)
        if n * 4 % per_row == 0:
            (found,) = library(x)
            np.testing.assert_array_equal(found, x.reshape(wanted if n else found.shape))
            continue
        with pytest.raises(InputError, match=r"expected"):
            library(x)


def test_a_constant_shape():
    """Of a fifth row nothing was told."""
    library = reshaped(2, 8)
    np.testing.assert_array_equal(library(random(4, 4))[0], random(4, 4).reshape(2, 8))
    text = r"^size n \* 4: expected 16$" if RELAX else "as many elements as there are"
    for rows in (3, 5, 9):
        with pytest.raises(InputError, match=text):
            library(random(rows, 4))


def test_what_is_known_to_fit_is_no_copy():
    """Heads of attention, by numbers and with what is left."""
    nodes = [
        ("Reshape", ["x", "heads"], "h", {}), ("Transpose", ["h"], "t", {"perm": [0, 2, 1, 3]}),
        ("Transpose", ["t"], "u", {"perm": [0, 2, 1, 3]}), ("Reshape", ["u", "joined"], "y", {}),
    ]  # fmt: skip
    numbers = {"heads": np.array([0, -1, 4, 6]), "joined": np.array([-1, 24])}
    ends = [value("x", FLOAT, "b", "n", 24)], [value("y", FLOAT, None, 24)]
    proto = model(nodes, *ends, **numbers)
    mod = selfbyoc.from_onnx(proto)
    if RELAX:
        assert "one_size" not in str(mod)
    else:
        from selfbyoc.runtime.relay.shapes import with_shapes_checked

        assert "fitting" not in str(with_shapes_checked(mod))
    x = random(2, 5, 24)
    np.testing.assert_array_equal(selfbyoc.build(mod, cache=False)(x)[0], x.reshape(-1, 24))


@pytest.mark.parametrize("rows", [3, "n"])
def test_a_shape_that_is_data(rows):
    """On Relay beyond 32 bits, and below 0, it was a tensor of no elements, or TVM's own error."""
    nodes = [("Reshape", ["x", "s"], "y", {})]
    library = built(nodes, [value("x", FLOAT, rows, 4), value("s", INT64, 2)])
    x = random(3, 4)
    for wanted in ((4, 3), (-1, 6), (0, -1), (2, -1)):
        np.testing.assert_array_equal(
            library(x, np.array(wanted))[0], x.reshape([3 if e == 0 else e for e in wanted])
        )
    for wanted in ((5, 2), (-1, 5), (BEYOND + 4, 3), (-1, BEYOND + 4), (BEYOND - 1, -12)):
        with pytest.raises(InputError, match=r"expected"):
            library(x, np.array(wanted))


@pytest.mark.skipif(RELAX, reason="0.27 knows 64 bits")
def test_images_beyond_32_bits():
    """0.17 took the lower ones."""
    nodes = [("Resize", ["x", "", "", "s"], "y", {})]
    proto = model(
        nodes, [value("x", FLOAT, 1, 1, 3, 4)], [value("y", FLOAT, 1, 1, None, None)],
        s=np.array([1, 1, BEYOND + 6, 8]),
    )  # fmt: skip
    with pytest.raises(InputError):
        selfbyoc.from_onnx(proto)


@pytest.mark.parametrize("is_data", [False, True])
def test_broadcasts(is_data):
    """Relay read 7 elements where there are 5, Relax took some of them twice."""
    nodes, x = [("Expand", ["x", "s"], "y", {})], value("x", FLOAT, "n")
    wanted = np.array([3, 7])
    library = built(
        nodes, [x, *[value("s", INT64, 2)] * is_data], **{} if is_data else {"s": wanted}
    )
    more = [wanted] * is_data
    for n in (7, 1):
        (found,) = library(random(n), *more)
        np.testing.assert_array_equal(found, np.broadcast_to(random(n), (3, 7)))
    with pytest.raises(InputError, match=r"expected (sizes of )?1"):
        library(random(5), *more)


@pytest.mark.parametrize("first", [-1 - BEYOND, -2, BEYOND - 1])
def test_a_shape_that_is_computed(first):
    """0.17 takes -1 for -2^32 - 1, and -2 for a sign of its own."""
    nodes = [
        ("Shape", ["x"], "shape", {}), ("Slice", ["shape", "one", "two"], "columns", {}),
        ("Concat", ["first", "columns"], "s", {"axis": 0}), ("Reshape", ["x", "s"], "y", {}),
    ]  # fmt: skip
    numbers = {"one": np.array([1]), "two": np.array([2]), "first": np.array([first])}
    with pytest.raises(InputError):
        built(nodes, [value("x", FLOAT, 3, 4)], **numbers)
    numbers["first"] = np.array([-1])
    np.testing.assert_array_equal(
        built(nodes, [value("x", FLOAT, 3, 4)], **numbers)(random(3, 4))[0], random(3, 4)
    )
