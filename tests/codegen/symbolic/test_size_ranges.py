"""Ranges of open sizes: `sizes={"seq": (1, 64)}` and `--size seq=1..64`."""

from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx_models import FLOAT, model, random, value

import selfbyoc
from selfbyoc.__main__ import main
from selfbyoc.codegen.external import RANGES, read_attrs
from selfbyoc.codegen.progress import Work, watching
from selfbyoc.codegen.symbolic.families import sizes_within
from selfbyoc.codegen.symbolic.maker import Maker
from selfbyoc.commands.build_progress import estimate, foretold
from selfbyoc.errors import InputError
from selfbyoc.ir.symbols import Range, usual_sizes
from selfbyoc.models.sizes import parse_ranges
from selfbyoc.partition.generation import ir
from selfbyoc.tvm import GENERATION

relax_only = pytest.mark.skipif(GENERATION == "relay", reason="Relay's sizes have no names")
NUMBERS = {"one": np.int64(1), "front": np.array([0]), "w": random(32, 48)}


def dense(rows="seq-length"):
    nodes = [("MatMul", ["x", "w"], "d", {}), ("Relu", ["d"], "y", {})]
    ends = [value("x", FLOAT, rows, 32)], [value("y", FLOAT, rows, 48)]
    return model(nodes, *ends, w=NUMBERS["w"])


def positions():
    """A table of 100 rows, of which as many are added as there are."""
    nodes = [
        ("Shape", ["x"], "sizes", {}), ("Gather", ["sizes", "front"], "n", {}),
        ("Slice", ["table", "front", "n", "front"], "cut", {}), ("Add", ["x", "cut"], "sum", {}),
        ("MatMul", ["sum", "w"], "y", {}),
    ]  # fmt: skip
    ends = [value("x", FLOAT, "n", 32)], [value("y", FLOAT, "n", 48)]
    return model(nodes, *ends, table=random(100, 32), **NUMBERS)


def x_of(rows):
    return np.random.default_rng(rows).standard_normal((rows, 32)).astype("float32")


def check(library, *rows):
    for n in rows:
        wanted = np.maximum(x_of(n) @ NUMBERS["w"], 0)
        np.testing.assert_allclose(library(x_of(n))[0], wanted, rtol=1e-4, atol=1e-4)


# ---- what is asked


def test_parse_ranges():
    texts = ["a=1..512", "b=64", "c=..9", "d=8..", "e=f=3"]
    found = {"a": (1, 512), "b": 64, "c": (None, 9), "d": (8, None), "e=f": 3}
    assert parse_ranges(texts) == found


@pytest.mark.parametrize(
    "text", ["a", "a=", "a=..", "=1..2", "a=0..2", "a=1..b", "a=1...2", "a=1..2147483648"]
)
def test_parse_no_range(text):
    with pytest.raises(InputError, match=r"size: expected NAME=64 or NAME=1\.\.512"):
        parse_ranges([text])


def test_a_range_twice():
    with pytest.raises(InputError, match="size: a is given twice"):
        parse_ranges(["a=1..2", "a=3"])


def test_range():
    assert [str(r) for r in (Range(), Range(1, 9), Range(8), Range(most=3))] == [
        "any", "1..9", "8..", "..3",
    ]  # fmt: skip
    assert [Range(4, 9).nearest(n) for n in (1, 5, 12)] == [4, 5, 9]


def test_sizes_that_are_read_differ_in_a_range_of_large_ones():
    found = usual_sizes("ab", {131}, {"a": Range(200), "b": Range(200)})
    assert len({*found.values()}) == 2
    assert all(size >= 200 for size in found.values())


def test_examples_are_inside():
    assert sizes_within(Range(20, 30)) == (*range(20, 31),)
    assert sizes_within(Range(most=4)) == (9,)
    assert (sizes_within(Range())[0], sizes_within(Range())[-1]) == (9, 512)
    assert sizes_within(Range(600)) == (600,)


# ---- what comes of it


@relax_only
@pytest.mark.parametrize(
    ("sizes", "rows", "text"),
    [
        ((1, 20), (1, 7, 20), "size seq_length: expected at most 20, found 21 in axis 0 of"),
        ((None, 3), (0, 1, 3), "size seq_length: expected at most 3, found 4 in axis 0 of"),
        ((9, None), (9, 33, 600), "size seq_length: expected at least 9, found 8 in axis 0 of"),
        ((200, 260), (200, 213, 260), "size seq_length: expected at least 200, found 199 in"),
    ],
)
def test_a_range_is_checked_and_learnt_for(sizes, rows, text, monkeypatch):
    planned, decided = set(), Maker.decided

    def noted(self, sizes):
        planned.update(sizes.values())
        return decided(self, sizes)

    monkeypatch.setattr(Maker, "decided", noted)
    mod = selfbyoc.from_onnx(dense(), sizes={"seq-length": sizes})
    library = selfbyoc.build(mod, cache=False)
    assert library.report.counts == {"dense": 1}
    least, most = sizes[0] or 1, sizes[1] or 512
    assert least <= min(planned)
    assert max(planned) <= max(most, 9)  # the first size that stands for many
    check(library, *rows)
    bad = int(text.partition("found ")[2].split()[0])
    with pytest.raises(InputError, match=text):
        library(x_of(bad))


@relax_only
def test_a_size_that_is_fixed():
    for sizes in ({"seq-length": 7}, {"seq_length": (7, 7)}):
        library = selfbyoc.build(selfbyoc.from_onnx(dense(), sizes=sizes))
        assert library.inputs == (("x", (7, 32), "float32"),)
        check(library, 7)


@relax_only
def test_sizes_of_build(tmp_path, compiler):
    mod = selfbyoc.from_onnx(dense())
    library = selfbyoc.build(mod, sizes={"seq_length": (2, 40)})
    assert "tir_var_upper_bound" not in mod["main"].attrs
    library.export_library(tmp_path / "net.so")
    for found in (library, selfbyoc.load(tmp_path / "net.so")):
        assert found.sizes == {"seq_length": (40, ((0, 0),))}
        assert (found.least_sizes, found.bounded_by) == ({"seq_length": 2}, {"seq_length": "given"})
        with pytest.raises(InputError, match="expected at least 2, found 1"):
            found(x_of(1))
    assert selfbyoc.build(mod, sizes={"seq_length": 4}).sizes == {}
    parted = selfbyoc.partition_for_tefuse(mod)
    with pytest.raises(InputError, match="the module is partitioned already"):
        selfbyoc.build(parted, sizes={"seq_length": 4})


@relax_only
@pytest.mark.parametrize(("rows", "text"), [(8, "at least 9"), (21, "at most 20")])
def test_a_kernel_does_not_take_others(rows, text):
    """A session checks nothing; the kernel has no function for these sizes."""
    library = selfbyoc.build(selfbyoc.from_onnx(dense("n"), sizes={"n": (9, 20)}))
    session = library.session()
    assert session(session.tensor(x_of(20)))[0].numpy().shape == (20, 48)
    with pytest.raises(InputError, match=f"size n: expected {text}"):
        session(session.tensor(x_of(rows)))


@relax_only
def test_verification_stays_inside():
    mod = selfbyoc.from_onnx(dense(), sizes={"seq-length": (3, 20)})
    (verdict,) = selfbyoc.verify(mod).verdicts
    kinds = [each.kind for each in verdict.checks if "=" in each.kind]
    assert kinds
    assert all(3 <= int(kind.partition("=")[2]) <= 20 for kind in kinds)


@relax_only
def test_the_model_has_a_range_of_its_own():
    mod = selfbyoc.from_onnx(positions())
    assert dict(mod["main"].attrs["selfbyoc.bounded_by"].items()) == {"n": "Add sum"}
    (func,) = ir.external_functions(selfbyoc.partition_for_tefuse(mod)).values()
    assert read_attrs(func.attrs)[RANGES] == {"n": [0, 100]}
    narrow = selfbyoc.from_onnx(positions(), sizes={"n": (1, 60)})
    assert dict(narrow["main"].attrs["selfbyoc.bounded_by"].items()) == {"n": "given"}


@relax_only
@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        ({"n": (1, 101)}, r"size: n of the model is at most 100 \(Add sum\), the range .* 1..101"),
        ({"n": (101, None)}, r"n of the model is at most 100 \(Add sum\), the range given is 101"),
        ({"m": 3}, "size: no open size 'm' in the model; open: n"),
        ({"n": (9, 3)}, "size: n: expected the least size first, found 9..3"),
        ({"n": 0}, "sizes: n: expected a size or a pair .* found 0"),
        ({"n": "1..3"}, "sizes: n: expected a size or a pair .* found '1..3'"),
        ({"n": (True, 3)}, "sizes: n: expected a size or a pair"),
    ],
)
def test_ranges_that_cannot_be(sizes, text):
    with pytest.raises(InputError, match=text):
        selfbyoc.from_onnx(positions(), sizes=sizes)


@relax_only
def test_no_open_size():
    with pytest.raises(InputError, match="size: no size of the model is open, so that none is 'n'"):
        selfbyoc.from_onnx(dense(5), sizes={"n": 3})


@pytest.mark.skipif(GENERATION == "relax", reason="Relax has names")
def test_relay_says_why_not():
    with pytest.raises(InputError, match=r"\(Relay\) has no names for open sizes, .* n=1..3"):
        selfbyoc.from_onnx(dense("n"), sizes={"n": (1, 3)})
    mod = selfbyoc.from_onnx(dense("n"), sizes={"n": 3})
    check(selfbyoc.build(mod), 3)


@relax_only
def test_the_least_size_of_a_dim():
    """One that the user names is a promise; that PyTorch's tracing wants two of each is none."""
    torch = pytest.importorskip("torch")
    for least, found in ((None, {}), (3, {"rows": 3})):
        rows = torch.export.Dim("rows", min=least, max=9)
        network, given = torch.nn.Tanh().eval(), (torch.ones(5, 6),)
        program = torch.export.export(network, given, dynamic_shapes=({0: rows},))
        library = selfbyoc.build(selfbyoc.from_torch(program))
        assert library.least_sizes == found
        assert library(np.zeros((3, 6), "float32"))[0].shape == (3, 6)


@relax_only
@pytest.mark.parametrize(
    ("sizes", "tuned_at"),
    [(None, [1, 5, 19, 83, 331]), ((1, 20), [1, 5, 19]), ((9, None), [19, 83, 331])],
)
def test_tuning_stays_inside(sizes, tuned_at):
    mod = selfbyoc.from_onnx(dense("n"), sizes={"n": sizes} if sizes else None)
    tasks = selfbyoc.extract_tasks(selfbyoc.partition_for_tefuse(mod))
    assert [task.sizes["n"] for task in tasks] == tuned_at


# ---- who watches


class Seen:
    def __init__(self):
        self.work, self.count = [], 0

    def begun(self, work):
        self.work.append(work)

    def done(self):
        self.count += 1


def test_a_build_is_watched(tmp_path):
    """On both generations, of fixed sizes and of open ones; what the cache has is not learnt."""
    for rows in ("n", 5) if GENERATION == "relax" else (5,):
        opened = isinstance(rows, str)
        for kept in (False, True):
            seen, mod = Seen(), selfbyoc.from_onnx(dense(rows))
            with watching(seen):
                selfbyoc.build(mod, cache=tmp_path)
            new = Work(1, ("dense",) if opened else (), compiled=0 if opened else 1)
            assert (seen.work, seen.count) == ([Work(1) if kept else new], 1)


def test_about_how_long():
    work = Work(6, ("dense", "attention", "dense"), frozenset({"attention"}), 2)
    assert estimate(work, 2) > 1.5 * estimate(replace(work, of_several=frozenset()), 2)
    assert estimate(work, 1) > estimate(work, 64) > estimate(Work(3, ("dense",)), 64)
    assert foretold(Work(2, ("dense",))).startswith("2 kernels, 1 to learn for all sizes, 1 in the")
    assert foretold(Work(1, ("dense",))).endswith(": about 5 s")
    assert foretold(Work(400, ("dense",) * 400)).endswith(" min")


# ---- commands


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("open") / "net.onnx"
    onnx.save(positions(), str(path))
    return path


def printed(capsys, *args):
    status = main(list(map(str, args)))
    found = capsys.readouterr()
    return status, " ".join(found.out.split()), found.err


@relax_only
def test_compile_show_run_bench(file, compiler, capsys):
    library = file.with_suffix(".so")
    status, text, _ = printed(capsys, "compile", file, "-o", library, "--size", "n=2..40")
    row = "n │ 2..40 │ axis 0 of x │ given"
    assert (status, row in text, "1 kernel, 1 to learn" in text) == (0, True, True)
    assert row in printed(capsys, "show", library)[1]
    assert "n │ ..100 │ axis 0 of x │ Add sum" in printed(capsys, "show", file)[1]
    assert "float32[7, 48]" in printed(capsys, "run", library, "--size", "n=7")[1]
    assert "net.so" in printed(capsys, "bench", library, "--size", "n=7", "--quick")[1]


@relax_only
@pytest.mark.parametrize(
    ("command", "size", "text"),
    [
        ("run", "n=41", "error: size n: expected at most 40, found 41 in axis 0 of input 'x'"),
        ("run", "m=4", "error: size: no open size 'm' in the library; open: n"),
        ("show", "n=4", "error: --size: it is for a model; net.so is built already"),
        ("compile", "n=..101", "error: size: n of net.onnx is at most 100 (Add sum), the range"),
    ],
)
def test_commands_refuse(file, capsys, command, size, text):
    library = file.with_suffix(".so")
    if not library.exists():
        selfbyoc.build(selfbyoc.from_onnx(file, sizes={"n": (2, 40)})).export_library(library)
    given = file if command == "compile" else library
    status, _, err = printed(capsys, command, given, "--size", size)
    assert status == 1
    assert err.startswith(text)
