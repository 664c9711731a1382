"""The vocabulary can be found: signatures, help, the page, the command, and types for editors."""

import inspect
import os
import pydoc
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from harness import served

import selfbyoc
from selfbyoc import declare, op
from selfbyoc.__main__ import main
from selfbyoc.commands.composites.op_reference import families, markdown, stub
from selfbyoc.common.probes import ask
from selfbyoc.ir.declare import BUILTIN
from selfbyoc.ir.generation import writer
from selfbyoc.ops.attr_words import ATTRIBUTES
from selfbyoc.ops.reference import GENERATIONS, arguments, attributes, spelling
from selfbyoc.ops.vocabulary import KINDS
from selfbyoc.tvm import GENERATION

ROOT = Path(__file__).parents[2]
OPS = [kind.name for _, kinds in families() for kind in kinds]


pytestmark = pytest.mark.usefixtures("vocabulary_as_before")


def test_all_are_listed():
    assert set(OPS) == BUILTIN & set(dir(selfbyoc.op))
    assert len(OPS) == len(set(OPS)) > 40


@pytest.mark.parametrize("name", OPS)
def test_an_op_is_described(name):
    kind = KINDS[name]
    assert kind.doc.endswith("."), "what it computes, in a sentence or a formula"
    assert len(arguments(kind)) == (1 if kind.inputs is None else kind.inputs)
    assert set(attributes(kind)) <= set(ATTRIBUTES), "ops/attr_words.py says what each means"
    shown = pydoc.plain(pydoc.render_doc(getattr(op, name)))
    assert f"{name}({arguments(kind)[0]}" in shown
    assert " ".join(kind.doc.split()) in " ".join(shown.split())
    for attribute, default in attributes(kind).items():
        assert f"{attribute} ({default!r})" in shown or f"{attribute} (no default)" in shown
    for generation in GENERATIONS:
        assert f"{generation.capitalize()}: {spelling(kind, generation)}" in shown


@pytest.mark.parametrize("name", OPS)
def test_what_has_no_name_here_cannot_be_written(name):
    """`none` and `read only` are told of the ops that the writer has no function for, no others."""
    told = spelling(KINDS[name], GENERATION)
    cannot = writer.function_of(name) is None
    assert (told == "none" or told.endswith("read only")) == cannot


def test_a_signature():
    found = inspect.signature(op.conv2d)
    assert list(found.parameters)[:4] == ["x", "weight", "strides", "padding"]
    assert found.parameters["strides"].default == (1, 1)
    assert found.parameters["strides"].kind is inspect.Parameter.KEYWORD_ONLY
    assert str(inspect.signature(op.reshape)) == "(x, /, *, shape=...)"
    assert str(inspect.signature(op.concatenate)) == "(tensors, /, *, axis=1)"
    assert op.conv2d.__qualname__ == "op.conv2d"


def test_an_op_of_ones_own():
    def squares(x, scale):
        """scale * x ** 2.

        Further lines are not shown.
        """
        return x * x * scale

    made = declare("squares", compute=squares, numpy=squares, attrs={"scale": 2.0})
    assert str(inspect.signature(made)) == "(x, /, *, scale=2.0)"
    assert made.__doc__.startswith("scale * x ** 2.\n\nAttributes")
    assert "Further" not in made.__doc__
    assert "  scale (2.0)" in op.squares.__doc__
    assert f"{GENERATION.capitalize()}: selfbyoc.squares" in op.squares.__doc__
    assert "squares" in dir(op)
    other = declare("cubes", compute=lambda a: a * a * a, numpy=lambda a: a**3, doc="x ** 3.")
    assert other.__doc__.startswith("x ** 3.")
    assert str(inspect.signature(other)) == "(a, /)"
    ufunc = declare("ones", compute=np.positive, numpy=np.positive, inputs=1)
    assert str(inspect.signature(ufunc)) == "(x, /)"
    assert "`squares(" not in markdown()


def test_the_page_is_current():
    text = (ROOT / "docs" / "ops.md").read_text(encoding="utf-8")
    assert text.endswith(markdown()), "paste what `python -m selfbyoc ops --markdown` prints"
    assert [name for name in OPS if f"| `{name}(" not in text] == []


def test_the_types_are_current():
    path = ROOT / "selfbyoc" / "language" / "typed_ops.pyi"
    assert path.read_text(encoding="utf-8") == stub(), "write it: `python -m selfbyoc ops --stub`"


def test_the_command(capsys):
    assert main(["ops"]) == 0
    lines = capsys.readouterr().out.splitlines()
    names = [line.partition("(")[0] for line in lines]
    assert names == sorted(names)
    assert set(names) >= set(OPS)  # other tests declare some, too
    assert main(["ops", "conv2d"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("conv2d(x, weight, *, strides=(1, 1), ")
    assert "    Relax: nn.conv2d\n" in out
    assert main(["ops", "--markdown"]) == 0
    assert capsys.readouterr().out == markdown() + "\n"
    assert main(["ops", "--stub"]) == 0
    assert capsys.readouterr().out == stub()
    assert main(["ops", "conv2"]) == 1
    assert "no op 'conv2'; did you mean 'conv2d'?" in capsys.readouterr().err


TYPED = '''
from typing import Any

import numpy as np

import selfbyoc
from selfbyoc import Case, Composite, Node, declare, either, op, require
from selfbyoc.tvm.types import Schedule, Target
from selfbyoc.language.match.match import Match

double = declare("double", compute=lambda x: x + x, numpy=lambda x: x + x)


def pattern(x: Node, weight: Node, bias: Node) -> Node:
    """What is matched."""
    y = op.conv2d(x, weight, strides=lambda s: s != (1, 1), padding=1, data_layout="NCHW")
    y = op.batch_norm(y, bias, bias, bias, bias)[0]
    y = op.concatenate([op.clip(y, a_min=0.0), double(y)], axis=-1)
    return either(op.relu(2 * y + bias), op.add(-y, 1.0))


def check(match: Match) -> None:
    require(match.x.ndim == 4, "x is no image")


def schedule(sch: Schedule, ops: Any, target: Target) -> None:
    sch.parallel(sch.get_loops(ops.relu.block)[0])
    selfbyoc.show(sch)


def reference(x: Any, weight: Any, bias: Any) -> Any:
    return np.maximum(x, 0)


mine = Composite(
    "mine", pattern, schedule, reference, check=check,
    cases=(Case(x=(1, 3, 9, 9), weight=(4, 3, 3, 3), bias=(4,)),), why="a test",
)
'''  # fmt: skip

WRONG = {
    "op.conv2d(x, x, stride=2)": 'Unexpected keyword argument "stride" for "conv2d"',
    "op.conv2(x, x)": '"Ops" has no attribute "conv2"',
    "op.conv2d(x)": 'Too few arguments for "conv2d"',
    'op.conv2d(x, x, strides="2")': 'Argument "strides" to "conv2d" of "Ops" has incompatible type',
    'op.relu("x")': 'Argument 1 to "relu" of "Ops" has incompatible type "str"',
}


@pytest.fixture(scope="module")
def mypy(tmp_path_factory):
    """`mypy --strict` on a text, as for a file of a user's whose selfbyoc is installed."""
    found = ask([sys.executable, "-m", "mypy", "--version"], "^mypy ")
    served(found.why_not and f"mypy: {found.why_not}")
    folder = tmp_path_factory.mktemp("typed")

    def run(text):
        (folder / "mine.py").write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent"]
        command += ["--config-file=", "--cache-dir", str(folder / "cache"), "mine.py"]
        env = {**os.environ, "MYPYPATH": str(ROOT)}
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
        return done.stdout + done.stderr

    return run


def test_a_typed_composite(mypy):
    page = (ROOT / "docs" / "ops.md").read_text(encoding="utf-8")
    assert "Success: no issues found" in mypy(page.partition("```python\n")[2].partition("```")[0])
    assert "Success: no issues found" in mypy(TYPED)


def test_what_the_types_find(mypy):
    lines = "".join(f"    {line}\n" for line in WRONG)
    found = mypy(f"from selfbyoc import Node, op\n\ndef wrong(x: Node) -> None:\n{lines}")
    for message in WRONG.values():
        assert message in found
    assert f"Found {len(WRONG)} errors" in found
