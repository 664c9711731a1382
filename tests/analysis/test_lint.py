"""The linter: one composite for each kind of finding, and none for the built-in ones."""

import re

import numpy as np
import pytest

import selfbyoc
from selfbyoc import BUILTIN, Case, Composite, either, lint, many, op
from selfbyoc.analysis.lint.linter import lint_file
from selfbyoc.errors import InputError
from selfbyoc.ops.vocabulary import KINDS
from selfbyoc.tvm import GENERATION, te

ARGS = {"x": (3, 5), "w": (4, 5)}


def dense_relu(**options):
    given = {"why": "a test", "cases": (Case(**ARGS),), **options}
    return Composite("dense_relu", lambda x, w: op.relu(op.dense(x, w)), **given)


def with_pattern(pattern, *cases, **options):
    return Composite("one", pattern, why="a test", cases=cases, **options)


def doubled(ins, call):
    x, w = ins
    k = te.reduce_axis((0, x.shape[1]), name="k")
    return te.compute((3, 4), lambda i, j: te.sum(x[i, k] * w[j, k], axis=k), name="products")


def raises(*args, **named):
    raise ZeroDivisionError("no tiles")


def refuses(match):
    selfbyoc.require(match.x.shape[0] > 99, "too few rows")


def conv(x, w):
    return op.conv2d(x, w)


FINDINGS = {
    # The declaration.
    "unused-argument": (
        with_pattern(lambda x, w, bias: op.relu(op.dense(x, w)), Case(**ARGS)),
        "no op of the pattern uses its argument 'bias'",
    ),
    "no-why": (dense_relu(why=""), "`why` is empty"),
    "no-cases": (dense_relu(cases=()), "it has no cases"),
    "duplicate-case": (
        dense_relu(cases=(Case(**ARGS, name="a"), Case(x=(2, 5), w=(4, 5), name="a"))),
        "2 cases are named 'a'",
    ),
    "no-tail": (
        dense_relu(cases=(Case(x=(16, 32), w=(48, 32)),)),
        "every extent of every case is a multiple of 16",
    ),
    "missing-argument": (
        dense_relu(reference=lambda x: x), "reference does not take 'w'"
    ),
    "missing-default": (
        with_pattern(
            lambda x, w, b: either(op.bias_add(op.dense(x, w), b), op.dense(x, w)),
            compute=lambda x, w, b: None,
        ),
        "compute needs a default for 'b', which not every match has",
    ),
    "unknown-argument": (
        dense_relu(cases=(Case(lambda x, w: op.relu(op.dense(x, w)), **ARGS, v=(4,)),)),
        "case 3x5-4x5-4: its program does not take 'v'",
    ),
    "signature": (
        dense_relu(schedule=lambda sch: None),
        r"schedule is called as \(sch, ops, target\), but too many positional arguments",
    ),
    "unknown-target": (
        dense_relu(schedule={"lvm": lambda sch, ops, target: None}),
        "schedule has 'lvm', which is no kind of target; did you mean 'llvm'",
    ),
    # The cases.
    "bad-case": (dense_relu(cases=(Case(x=(3, 5), w=(4,)),)), "case 3x5-4: it is no program: "),
    "case-not-matched": (
        dense_relu(cases=(Case(lambda x, w: op.dense(op.relu(x), w), **ARGS),)),
        "its own pattern does not match it: ",
    ),
    "case-partly-matched": (
        dense_relu(cases=(Case(lambda x, w: op.exp(op.relu(op.dense(x, w))), **ARGS),)),
        "ops of it are left outside the composite: exp",
    ),
    "case-refused": (dense_relu(check=refuses), "relu is refused: too few rows"),
    "check-raises": (
        dense_relu(check=raises), "its check raised ZeroDivisionError: no tiles"
    ),
    "compute": (
        dense_relu(compute={"dense": lambda ins, call: ins[0]}),
        r"dense: computes float32\[3, 5\], but type inference expects float32\[3, 4\]",
    ),
    "pack": (
        dense_relu(
            pack={"w": raises}, compute={"dense": doubled}, cases=(Case(**ARGS, constants=["w"]),)
        ),
        "its pack of 'w' raised ZeroDivisionError: no tiles",
    ),
    "reference-raises": (
        dense_relu(reference=lambda x, w: x @ w), "reference raised ValueError: matmul"
    ),
    "reference-differs": (
        dense_relu(reference=lambda x, w: x @ w.T),
        "reference differs from NumPy's meaning of the ops: ",
    ),
    "reference-unchecked": (
        with_pattern(
            conv, Case(lambda x, w: op.conv2d(x, w, strides=2), x=(1, 2, 7, 7), w=(3, 2, 3, 3)),
            reference=lambda x, w: x,
        ),
        "no case is the pattern as it stands",
    ),
    "uncovered-option": (
        with_pattern(
            lambda x, w: either(op.relu(op.dense(x, w)), op.gelu(op.dense(x, w))), Case(**ARGS)
        ),
        r"no case takes the option gelu\(dense\(x, w\)\) of an either",
    ),
    "uncovered-many": (
        with_pattern(
            lambda x: either(
                op.concatenate(many(lambda arg: op.relu(x))), op.concatenate([x, op.relu(x)])
            ),
            Case(lambda x: op.concatenate([x, op.relu(x)]), x=(3, 5)),
        ),
        "no case has the branches of a `many`",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", FINDINGS)
def test_finding(kind):
    composite, message = FINDINGS[kind]
    found = [f for f in lint(composite) if f.kind == kind]
    assert found, lint(composite)
    assert re.search(message, found[0].message), found[0].message
    assert found[0].composite == composite.name
    assert found[0].file.endswith("test_lint.py")
    assert found[0].line > 0


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"reference": lambda x, weight: None}, "missing-argument"),
        ({"reference": lambda x, w: (x, w)}, "gives 2 outputs, expected 1"),
        ({"reference": lambda x, w: (x @ w.T).T}, "gives the shape (4, 3), expected (3, 4)"),
        ({"check": lambda: None}, "check is called as (match)"),
        ({"compute": {"dense": lambda ins: None}}, "compute of 'dense' is called as (inputs"),
        ({"pack": {"w": lambda: None}}, "pack of 'w' is called as (tensor)"),
        ({"schedule": {"llvm": lambda sch, ops: None}}, "schedule for 'llvm' is called as"),
        ({"compute": {"dense": lambda ins, call: [ins[0], ins[1]]}}, "computes 2 outputs"),
        ({"pack": {"w": lambda w: w}}, "is packed, but no compute of the composite takes it"),
    ],
)
def test_other_forms(wrong, message):
    if "reference" in wrong and message == "missing-argument":
        with pytest.raises(selfbyoc.errors.CompositeError, match=r"names ..weight.., which are no"):
            dense_relu(**wrong)
        return
    assert message in "\n".join(map(str, lint(dense_relu(**wrong))))


def test_misspelt_arguments_of_a_program():
    case = Case(lambda x, weight: op.relu(op.dense(x, weight)), x=(3, 5), wieght=(4, 5))
    text = "\n".join(map(str, lint(dense_relu(cases=(case,)))))
    assert "its program does not take 'wieght'; did you mean 'weight'?" in text
    assert "'weight' of its program is not given; did you mean 'wieght'?" in text


def test_a_name_twice():
    (found,) = lint([dense_relu(), dense_relu()])
    assert found.kind == "duplicate-name"


def test_nothing_is_wrong():
    good = dense_relu(reference=lambda x, w: np.maximum(x @ w.T, 0))
    assert lint(good) == []
    assert lint([]) == []


@pytest.mark.parametrize("composite", BUILTIN, ids=lambda c: c.name)
def test_the_built_in_composites(composite):
    assert lint(composite) == []


def test_every_attribute_of_the_readers_is_known():
    """The linter's table against what the cases' ops really have."""
    from selfbyoc.ir.emit import emit
    from selfbyoc.ir.generation import ir

    for composite in BUILTIN:
        case = next((c for c in composite.cases if GENERATION in c.generations), None)
        if case is None:  # lrn: Relax has no such op to write
            continue
        for call in ir.read(emit(case.program or composite.pattern, case.args)["main"]).ops:
            kind = KINDS[call.kind]
            assert set(call.attrs) <= {*kind.attrs, *kind.read_attrs}, call.kind


GOOD = """
from selfbyoc import Case, Composite, op

def pattern(x, w):
    return op.relu(op.dense(x, w))

first = Composite("first", pattern, why="a test", cases=(Case(x=(3, 5), w=(4, 5)),))
"""


@pytest.mark.parametrize(
    ("text", "kind", "line", "message"),
    [
        ("def f(:\n", "syntax", 1, "invalid syntax"),
        ("import os\nimport nosuch_module\n", "import", 2, "No module named 'nosuch_module'"),
        ("raise SystemExit(3)\n", "import", 1, "SystemExit: 3"),
        (GOOD + "x = 1 / 0\n", "import", 8, "ZeroDivisionError"),
        (GOOD.replace("op.relu", "op.rellu"), "declaration", 5, "did you mean 'relu'?"),
        (GOOD.replace("w=(4", "v=(4"), "declaration", 7, "names ['v']"),
        (GOOD.replace("w=(4, 5)", "w=3"), "declaration", 7, "expected a shape"),
        ("x = 3\n", "no-composite", 0, "declares no Composite"),
        (GOOD.replace('why="a test", ', "schedule=5, "), "declaration", 7,
         "composite first: schedule: expected a function, found 5"),
        (GOOD.replace('why="a test", ', ""), "no-why", 4, "`why` is empty"),
    ],
)  # fmt: skip
def test_files(tmp_path, text, kind, line, message):
    path = tmp_path / "mine.py"
    path.write_text(text, encoding="utf-8")
    (found,) = lint_file(path)
    assert (found.kind, found.line, found.file) == (kind, line, str(path))
    assert message in found.message


def test_a_file_without_findings_and_names(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(GOOD, encoding="utf-8")
    assert lint_file(path) == lint_file(path, "first") == []
    with pytest.raises(InputError, match=r"no composite 'frist'; known: .*; did you mean 'first'"):
        lint_file(path, "frist")
    with pytest.raises(InputError, match="is no file"):
        lint_file(tmp_path / "absent.py")


def test_what_a_file_imports_is_not_linted(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("from selfbyoc import BUILTIN\n", encoding="utf-8")
    assert [f.kind for f in lint_file(path)] == ["no-composite"]


def test_a_file_of_the_package():
    """With its relative imports."""
    file = BUILTIN[0].source
    assert lint_file(file) == []


def test_command(tmp_path, capsys):
    from selfbyoc.__main__ import main

    path = tmp_path / "mine.py"
    path.write_text(GOOD, encoding="utf-8")
    assert main(["lint", str(path)]) == 0
    assert "nothing to report" in capsys.readouterr().out
    path.write_text(GOOD.replace('why="a test", ', ""), encoding="utf-8")
    assert main(["lint", str(path), "first"]) == 1
    out = capsys.readouterr().out
    assert f"{path}:4: composite first: `why` is empty" in out
    assert "1 finding" in out
    assert main(["lint", str(tmp_path / "absent.py")]) == 1
    assert "error: " in capsys.readouterr().err
