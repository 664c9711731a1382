"""Names that would steer a terminal, a page, a path or a symbol: shown, and nothing else."""

import html.parser
import io
import json
import re

import numpy as np
import pytest

import selfbyoc
from selfbyoc import op
from selfbyoc.commands.console import PlainTable, SafeConsole
from selfbyoc.errors import InputError, RecordWarning, RegistryError
from selfbyoc.printable import shown, shown_name

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper  # noqa: E402 (needs onnx)

from selfbyoc.__main__ import main  # noqa: E402
from selfbyoc.models.onnx_model import import_onnx  # noqa: E402

ESCAPES = "\x1b]0;title\x07\x1b[2J\x9b31m\r\u202e"
NAMES = {
    "escapes": f"x{ESCAPES}",
    "lines": "x\nerror: all is well",
    "markup": "x[red]y[/nothing][link=file:///etc/passwd]",
    "html": "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>",
    "graphviz": '<<B>b</B>>\\N\\G"; shape=none',
    "path": "../../../../x/..",
    "long": "x" * 100_000,
    "dot": "out",
    "empty": " ",
    "nul": "x\0y",
    "symbol": "malloc",
}
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]")


def model(name, kind="Relu"):
    """A dense layer whose every name is somebody else's."""
    weight = np.ones((8, 16), "float32")
    nodes = [
        helper.make_node("MatMul", [f"{name}in", f"{name}w"], [f"{name}mid"], name=f"{name}1"),
        helper.make_node(kind, [f"{name}mid"], [f"{name}out"], name=f"{name}2"),
        helper.make_node("Erf", [f"{name}out"], [f"{name}end"], name=f"{name}3"),
    ]
    graph = helper.make_graph(
        nodes, f"{name}graph",
        [helper.make_tensor_value_info(f"{name}in", TensorProto.FLOAT, [4, 8])],
        [helper.make_tensor_value_info(f"{name}end", TensorProto.FLOAT, [4, 16])],
        [onnx.numpy_helper.from_array(weight, f"{name}w")],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 13)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8, producer_name=name)


@pytest.fixture(params=NAMES.values(), ids=NAMES)
def path(request, tmp_path):
    found = tmp_path / "model.onnx"
    onnx.save(model(request.param), found)
    return found


@pytest.fixture(scope="module")
def plain_tags(tmp_path_factory):
    """Of the page of a model that means no harm."""
    folder = tmp_path_factory.mktemp("plain")
    onnx.save(model("plain"), folder / "model.onnx")
    assert main(["explain", str(folder / "model.onnx"), "--html", str(folder / "page.html")]) == 0
    return tags((folder / "page.html").read_text(encoding="utf-8"))


def tags(text):
    found = Tags()
    found.feed(text)
    return found.seen


class Tags(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.seen = []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, *(name for name, _ in attrs)))


@pytest.mark.parametrize("more", [[], ["--all"], ["--root", "relu"]], ids=str)
def test_explain(path, more, capsys, plain_tags):
    page = path.with_suffix(".html")
    assert main(["explain", str(path), "--html", str(page), *more]) == 0
    found = capsys.readouterr()
    assert not STEERING.search(found.out + found.err)
    assert "\nerror: all is well" not in found.out
    text = page.read_text(encoding="utf-8")
    assert not STEERING.search(text)
    assert tags(text) == plain_tags
    assert len(text) < 400_000
    assert sorted(p.name for p in path.parent.iterdir()) == ["model.html", "model.onnx"]


@pytest.mark.parametrize("command", ["melting", "verify", "tune --list"])
def test_other_commands(path, command, capsys):
    name, *more = command.split()
    assert main([name, str(path), *more]) == 0
    found = capsys.readouterr()
    assert not STEERING.search(found.out + found.err)


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_build(name, tmp_path):
    """No symbol, and no file, is named by a model."""
    mod = import_onnx(model(name))
    parted = selfbyoc.partition_for_tefuse(mod)
    (kernel,) = [r for r in selfbyoc.report(parted).matched if "dense" in r.composite]
    assert not STEERING.search(str(selfbyoc.explain(parted)) + str(kernel))
    symbols = {str(v.name_hint) for v in parted.get_global_vars()}
    assert all(re.fullmatch(r"\w+", symbol) for symbol in symbols)
    library = selfbyoc.build(parted, cache=tmp_path / "cache")
    assert {p.suffix for p in (tmp_path / "cache").iterdir()} <= {".kernel", ""}
    x = np.ones((4, 8), "float32")
    from math import erf

    np.testing.assert_allclose(library(x)[0], np.full((4, 16), erf(8.0)), rtol=1e-5)


@pytest.mark.parametrize("name", ["escapes", "path", "nul", "symbol", "long"])
def test_an_exported_library(name, tmp_path):
    """The linker gets no name of the model's, and the model's calls are still its own."""
    library = selfbyoc.build(import_onnx(model(NAMES[name])), cache=False)
    library.export_library(tmp_path / "model.so")
    assert [p.name for p in tmp_path.iterdir()] == ["model.so"]
    again = selfbyoc.load(tmp_path / "model.so", library)
    x = np.ones((4, 8), "float32")
    np.testing.assert_array_equal(again(x)[0], library(x)[0])


@pytest.mark.parametrize("name", ["escapes", "path", "nul"])
def test_a_search(name, tmp_path):
    """Its folder holds the records and TVM's own log files; what they say steers nothing."""
    pytest.importorskip("psutil")
    folder = tmp_path / "work"
    mod = import_onnx(model(NAMES[name]))
    selfbyoc.tune(mod, trials=1, work_dir=folder, cost_model="none")
    assert [p.name for p in tmp_path.iterdir()] == ["work"]
    assert all(re.fullmatch(r"[\w.-]+", p.name) for p in folder.rglob("*"))
    text = (folder / "records.jsonl").read_text(encoding="utf-8")
    assert not STEERING.search(text.replace("\n", ""))


def test_an_op_that_nobody_knows(tmp_path, capsys):
    found = tmp_path / "model.onnx"
    onnx.save(model("x", kind=f"No{ESCAPES}"), found)
    assert main(["explain", str(found)]) == 1
    said = capsys.readouterr()
    assert not STEERING.search(said.out + said.err)
    assert "\\x1b" in said.err


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_composites_are_named_by_identifiers(name):
    with pytest.raises(selfbyoc.errors.CompositeError, match="expected lower case letters"):
        selfbyoc.Composite(f"{name}/", lambda x: op.relu(x))


@pytest.mark.parametrize("kind", [InputError, RegistryError, RecordWarning])
def test_errors_and_warnings(kind):
    assert str(kind(f"a{ESCAPES}\nb")) == f"a{shown(ESCAPES)}\nb"
    assert not STEERING.search(str(kind(ESCAPES)))


def test_what_is_shown():
    assert shown("a\x1b[1m\tb\n\x9b\u202e") == "a\\x1b[1m\tb\n\\x9b\\u202e"
    assert shown_name("a\tb\nc") == "a\\x09b\\x0ac"
    assert shown("Größe, 漢字, é, 🙂") == "Größe, 漢字, é, 🙂"  # what people write stays
    assert shown_name("x" * 300) == f"{'x' * 197}..."


def test_the_console_keeps_its_own_styles():
    out = io.StringIO()
    console = SafeConsole(file=out, force_terminal=True, color_system="standard")
    table = PlainTable("a", title="[bold]t\x1b[2J")
    table.add_row("[red]x[/no]\x1b]0;\x07")
    console.print(table, f"[green]y\x1b[2J[/]{ESCAPES}")
    text = out.getvalue()
    assert "\x1b[32m" in text
    text = re.sub("\x1b\\[[0-9;]*m", "", text)
    assert "[red]x[/no]\\x1b]0;" in text
    assert "[bold]t" in text
    assert not STEERING.search(text)


def test_a_record_of_another_model(tmp_path, capsys):
    place = {"generation": ESCAPES, "target": {"kind": f"[/red]{ESCAPES}"}, "cores": 1}
    record = {"workload": "w", "composite": ESCAPES, "about": f"[red]{ESCAPES}", "place": place}
    (tmp_path / "records.jsonl").write_text(
        json.dumps({**record, "status": "measured", "made_by": {"date": ESCAPES}}) + "\n" + ESCAPES
    )
    assert main(["records", str(tmp_path)]) == 0
    found = capsys.readouterr()
    assert not STEERING.search(found.out + found.err)
    with pytest.warns(RecordWarning) as caught, selfbyoc.apply_records(tmp_path):
        pass
    assert not any(STEERING.search(str(w.message)) for w in caught)


@pytest.mark.parametrize("name", ["x\ny", "x\x1by"])
def test_inputs_keep_their_names(name):
    """Only what is shown of them is not as it was."""
    mod = import_onnx(model(name))
    library = selfbyoc.build(mod, cache=False)
    ((given, *_),) = library.inputs
    assert given == f"{name}in" or "\\" not in given  # Relax spells some otherwise
    assert library(**{given: np.ones((4, 8), "float32")})[0].shape == (4, 16)
    with pytest.raises(InputError) as caught:
        library(nothing=np.ones((4, 8), "float32"))
    assert "\x1b" not in str(caught.value)
