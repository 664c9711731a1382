"""Copies that transpose, as shuffles of vectors: both ways, squares and rectangles, a last tile
that moves back, a first one that moves forward, and what is left as it is.
"""

import numpy as np
import pytest

from selfbyoc.schedules.steps.loops import transpose
from selfbyoc.tir import lowering, transposed_tiles
from selfbyoc.tir.lowering import machine_code
from selfbyoc.tvm import Schedule, get_block, get_func, make_target, te, tensor, tir
from selfbyoc.tvm.rewrite import map_loops, with_body


def run(rows, columns, read_rows, scale=1.0, lanes=8, images=1, inside=None, first=0):
    """[columns][rows] of each [rows][columns], by tiles over what is read together or written so;
    a number for images that are not `inside`, as far as their number (or element) tells; what is
    copied begins with the `first`.
    """
    x = te.placeholder((images, rows, columns), "float32", name="x")

    def element(n, i, j):
        value = scale(x[n, j, i]) if callable(scale) else x[n, j, i] * scale
        return value if inside is None else tir.if_then_else(inside(n, i), value, tir.const(-0.5))

    out = te.compute((images, columns, rows), element, name="out")
    func = te.create_prim_func([x, out]).with_attr("global_symbol", "main")
    sch = Schedule(func)
    _, i, j = sch.get_loops(get_block(sch, "out"))
    down, across = (j, i) if read_rows else (i, j)
    if read_rows:
        sch.reorder(down, across)
    transpose(sch, down, across, lanes)
    target = make_target("llvm")
    built = machine_code(sch.mod["main"].with_attr("target", target), "main", target)
    given = np.random.default_rng(0).standard_normal((images, rows, columns)).astype("float32")
    found = tensor(np.zeros((images, columns, rows), "float32"))
    get_func(built, "main")(tensor(given), found)
    expected = given.transpose(0, 2, 1)
    expected = scale(expected) if callable(scale) else expected * np.float32(scale)
    if inside is not None:
        is_inside = [[bool(inside(n, i)) for i in range(columns)] for n in range(images)]
        expected = np.where(np.array(is_inside)[..., None], expected, np.float32(-0.5))
    expected[(slice(None), slice(first)) if read_rows else (..., slice(first))] = 0
    np.testing.assert_array_equal(found.numpy(), expected)


@pytest.fixture
def copies(monkeypatch):
    """What was found at each annotated loop."""
    found, find = [], transposed_tiles._copy_of

    def spy(*args):
        found.append(find(*args))
        return found[-1]

    monkeypatch.setattr(transposed_tiles, "_copy_of", spy)
    return found


@pytest.mark.parametrize("read_rows", [True, False])
@pytest.mark.parametrize(
    ("down", "across"), [(8, 16), (8, 19), (8, 7), (4, 11), (16, 8), (16, 13), (2, 3), (8, 30)]
)
def test_a_transpose_in_registers(copies, down, across, read_rows):
    run(*((down, across) if read_rows else (across, down)), read_rows)
    assert len(copies) == 1
    assert copies[0] is not None


@pytest.fixture
def without_first(monkeypatch):
    """So many elements at the beginning of a copy are not copied: a condition of the store, as TVM
    0.17 makes it where a region begins before its buffer.
    """

    def plant(first):
        def guarded(tile):
            if transposed_tiles.TRANSPOSE not in (tile.annotations or {}):
                return tile
            down, across = tile.body, tile.body.body
            asked, store = tile.loop_var * across.extent + across.loop_var >= first, across.body
            if type(store).__name__ == "IfThenElse":
                asked, store = tir.all(asked, store.condition), store.then_case
            body = with_body(across, tir.IfThenElse(asked, store, None))
            return with_body(tile, with_body(down, body))

        real = lowering.with_copies
        monkeypatch.setattr(lowering, "with_copies", lambda func: real(map_loops(func, guarded)))

    return plant


@pytest.mark.parametrize("read_rows", [True, False])
@pytest.mark.parametrize(
    ("across", "first"), [(16, 3), (19, 1), (19, 8), (29, 21), (30, 22), (83, 54), (19, 12)]
)
def test_the_first_elements_are_not_copied(copies, without_first, across, first, read_rows):
    without_first(first)
    run(*((8, across) if read_rows else (across, 8)), read_rows, first=first)
    (copy,) = copies
    assert (copy is not None) == (across - first >= 8)


@pytest.mark.parametrize("read_rows", [True, False])
def test_what_is_scaled_on_the_way(copies, read_rows):
    run(*((8, 19) if read_rows else (19, 8)), read_rows, scale=2.0)
    assert copies != [None]


@pytest.mark.parametrize("read_rows", [True, False])
@pytest.mark.parametrize(("dtype", "point"), [("uint8", 131), ("int8", -7)])
def test_levels_become_floats_on_the_way(copies, dtype, point, read_rows):
    """Less a number that lies in memory, and in what is no multiple of a tile."""
    rows, columns = (8, 19) if read_rows else (19, 8)
    x = te.placeholder((rows, columns), dtype, name="x")
    zero = te.placeholder((1,), "int32", name="zero")
    out = te.compute(
        (columns, rows),
        lambda i, j: (x[j, i].astype("int32") - zero[0]).astype("float32") * 0.5 + 3.0,
        name="out",
    )
    func = te.create_prim_func([x, zero, out]).with_attr("global_symbol", "main")
    sch = Schedule(func)
    i, j = sch.get_loops(get_block(sch, "out"))
    down, across = (j, i) if read_rows else (i, j)
    if read_rows:
        sch.reorder(down, across)
    transpose(sch, down, across, 8)
    target = make_target("llvm")
    built = machine_code(sch.mod["main"].with_attr("target", target), "main", target)
    limits = np.iinfo(dtype)
    given = np.random.default_rng(0).integers(limits.min, limits.max + 1, (rows, columns))
    found = tensor(np.zeros((columns, rows), "float32"))
    get_func(built, "main")(tensor(given.astype(dtype)), tensor(np.array([point], "int32")), found)
    np.testing.assert_array_equal(found.numpy(), (given.T - point) * 0.5 + 3.0)
    assert copies != [None]


def test_what_is_no_copy_stays(copies):
    run(8, 16, True, scale=lambda value: value * value)
    run(6, 16, True)
    run(8, 1, True)
    run(8, 16, True, inside=lambda n, i: i < 9)  # would cut a tile
    assert copies == [None, None, None, None]


@pytest.mark.parametrize("read_rows", [True, False])
@pytest.mark.parametrize(("down", "across"), [(8, 16), (8, 19), (4, 7)])
def test_whole_tiles_are_read_or_filled(copies, down, across, read_rows):
    shape = (down, across) if read_rows else (across, down)
    run(*shape, read_rows, images=4, inside=lambda n, i: n % 3 > 0)
    assert len(copies) == 1
    assert copies[0].choice is not None


@pytest.mark.parametrize("rows", [8, 13, 16, 29])
def test_the_last_row_is_read_again(copies, rows):
    """Whole tiles of it, as a mask is copied: the one that reaches the last row goes one by one."""
    whole, columns = -(-rows // 8) * 8, 16
    x = te.placeholder((columns, rows), "float32", name="x")
    out = te.compute((whole, columns), lambda i, j: x[j, tir.Min(i, rows - 1)], name="out")
    sch = Schedule(te.create_prim_func([x, out]).with_attr("global_symbol", "main"))
    i, j = sch.get_loops(get_block(sch, "out"))
    _, down = sch.split(i, [None, 8])
    transpose(sch, down, j, 8)
    target = make_target("llvm")
    built = machine_code(sch.mod["main"].with_attr("target", target), "main", target)
    given = np.random.default_rng(0).standard_normal((columns, rows)).astype("float32")
    found = tensor(np.zeros((whole, columns), "float32"))
    get_func(built, "main")(tensor(given), found)
    assert len(copies) == 1
    assert copies[0] is not None
    np.testing.assert_array_equal(found.numpy(), given[:, np.minimum(np.arange(whole), rows - 1)].T)
