"""Composites of installed packages: found on request, in order, and refused by the names of package
and entry point.
"""

import sys

import numpy as np
import pytest

import selfbyoc
from selfbyoc import Composite, emit, op
from selfbyoc.errors import InputError, LoweringError, RegistryError, ToolError
from selfbyoc.language import installed as packages
from selfbyoc.language import known
from selfbyoc.tvm import tvm

pytestmark = pytest.mark.usefixtures("vocabulary_as_before")

SHAPES = {"x": (3, 5), "w": (7, 5)}
SOURCE = """
from selfbyoc import Composite, op

def pattern(x, w):
    return op.tanh(op.dense(x, w))

composite = Composite("{name}", pattern)
several = (composite, Composite("{name}_2", pattern))
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Packages in a folder on the path, as pip leaves them; what they bring goes with the test."""
    monkeypatch.setattr(known, "_loaded", {})
    monkeypatch.setattr(known, "_used", {})
    monkeypatch.setattr(packages, "_again", {})
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)

    def made(package, source="", entry="{module}:composite", version="1.0"):
        module = package.replace("-", "_")
        (tmp_path / f"{module}.py").write_text(source or SOURCE.format(name=module))
        info = tmp_path / f"{module}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        entry = entry.format(module=module)
        (info / "entry_points.txt").write_text(f"[selfbyoc.composites]\nmine = {entry}\n")
        return module

    yield made
    for name in set(sys.modules) - before:
        del sys.modules[name]


def program(x, w):
    return op.tanh(op.dense(x, w))


def test_none_is_installed():
    assert selfbyoc.installed() == []


def test_only_on_request(install):
    install("made-up")
    mod = emit(program, SHAPES)
    assert "made_up" not in selfbyoc.report(selfbyoc.partition_for_tefuse(mod)).counts
    assert "made_up" not in sys.modules
    parted = selfbyoc.partition_for_tefuse(mod, composites="installed")
    assert selfbyoc.report(parted).counts == {"made_up": 1}
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape, np.float32) for shape in SHAPES.values())
    (found,) = selfbyoc.build(parted)(x, w)
    np.testing.assert_allclose(found, np.tanh(x @ w.T), rtol=1e-4, atol=1e-5)


def test_every_door(install):
    """What takes composites takes the word."""
    install("made-up")
    mod = emit(program, SHAPES)
    assert selfbyoc.explain(mod, composites="installed").report.counts == {"made_up": 1}
    assert selfbyoc.build(mod, composites="installed").report.counts == {"made_up": 1}
    (verdict,) = selfbyoc.verify(mod, composites="installed").verdicts
    assert verdict.composite == "made_up"
    with tvm.transform.PassContext():
        parted = selfbyoc.transform.Partition(composites="installed")(mod)
    assert selfbyoc.report(parted).counts == {"made_up": 1}
    assert selfbyoc.optimize_layouts(mod, composites="installed") is not None


def test_the_door_of_torch_compile(install):
    from selfbyoc.runtime.dynamo.options import options_of

    install("made-up")
    taken = options_of({"composites": "installed"}).composites
    assert [c.name for c in taken] == ["made_up", *(c.name for c in selfbyoc.BUILTIN)]
    assert options_of({}).composites is None


def test_packages_by_name_and_each_as_it_lists_them(install):
    install("zebra")
    install("Aardvark-2", SOURCE.format(name="ant"), "{module}:several")
    assert [c.name for c in selfbyoc.installed()] == ["ant", "ant_2", "zebra"]
    assert selfbyoc.installed() == selfbyoc.installed()  # the very same


def test_one_that_is_named_twice_is_one(install):
    install("made-up")
    install("other", "from made_up import composite, several\n", "{module}:several")
    assert [c.name for c in selfbyoc.installed()] == ["made_up", "made_up_2"]


def test_before_the_built_in_ones_and_after_ones_own(install):
    install("made-up", SOURCE.format(name="made_up"))
    mod, mine = emit(program, SHAPES), Composite("mine", program)
    both = [mine, *selfbyoc.installed(), *selfbyoc.BUILTIN]
    assert selfbyoc.report(selfbyoc.partition_for_tefuse(mod, composites=both)).counts == {
        "mine": 1
    }


TAKEN = r"package b 1.0, entry point mine = b:composite"


def test_a_name_of_two_packages(install):
    install("a", SOURCE.format(name="same"))
    install("b", SOURCE.format(name="same"))
    for _ in range(2):  # also when both were imported before
        with pytest.raises(RegistryError) as found:
            selfbyoc.installed()
        assert str(found.value) == (
            "composite 'same' is of package a 1.0, entry point mine = a:composite, and of package "
            "b 1.0, entry point mine = b:composite too"
        )


def test_a_name_of_a_built_in_composite(install):
    install("b", SOURCE.format(name="dense"))
    with pytest.raises(RegistryError, match=f"'dense' is of selfbyoc itself, and of {TAKEN} too"):
        selfbyoc.partition_for_tefuse(emit(program, SHAPES), composites="installed")


OP = "from selfbyoc import declare\nfrom selfbyoc.tvm import te\nimport numpy as np\n" + (
    'declare("an_op_of_two", compute=te.sin, numpy=np.sin)\ncomposite = ()\n'
)


def test_an_op_of_two_packages(install):
    install("a", OP)
    install("b", OP)
    for _ in range(2):
        with pytest.raises(RegistryError, match=f"{TAKEN}: it declares an_op_of_two, which was"):
            selfbyoc.installed()


@pytest.mark.parametrize(
    ("source", "entry", "error", "said"),
    [
        ("import no_such_module", "{module}:composite", ToolError,
         "importing it raised ModuleNotFoundError: No module named 'no_such_module'"),
        ("raise SystemExit(3)", "{module}:composite", ToolError, "raised SystemExit: 3"),
        ("x = 1", "{module}:missing", ToolError, "raised AttributeError: .*'missing'"),
        ("x = 1", "no_such_module:x", ToolError, "raised ModuleNotFoundError"),
        ("x = 1", "not a place", ToolError, "importing it raised"),
        (SOURCE.format(name="Not a name"), "{module}:composite", ToolError,
         "raised CompositeError: composite name 'Not a name': expected lower case"),
        ("x = 1", "{module}:x", RegistryError, "expected a Composite or a list of them, found 1"),
        ("x = 'dense'", "{module}:x", RegistryError, "or a list of them, found 'dense'"),
        ("class X: pass", "{module}:X", RegistryError, "or a list of them, found <class"),
        ("x = ['dense']", "{module}:x", RegistryError, "a list of composites, found 'dense' in it"),
    ],
)  # fmt: skip
def test_a_broken_package(install, source, entry, error, said):
    install("b", source, entry)
    place = entry.format(module="b")
    for _ in range(2):
        with pytest.raises(error, match=f"package b 1.0, entry point mine = {place}: .*{said}"):
            selfbyoc.build(emit(program, SHAPES), composites="installed")


def test_another_word():
    said = "expected a list of composites, found 'instaled' alone; the only word is 'installed'"
    for door in (selfbyoc.partition_for_tefuse, selfbyoc.build, selfbyoc.explain, selfbyoc.verify):
        with pytest.raises(RegistryError, match=said):
            door(emit(program, SHAPES), composites="instaled")


def test_a_partitioned_module_of_another_process(install):
    """Its composites are refused by name until they are asked for; then it is built."""
    install("made-up")
    told = tvm.ir.save_json(
        selfbyoc.partition_for_tefuse(emit(program, SHAPES), composites="installed")
    )
    known._loaded.clear()
    known._used.clear()
    parted = tvm.ir.load_json(told)
    said = r"'made_up' is not registered; .* package \(made-up 1.0\), call selfbyoc.installed\(\)"
    with pytest.raises((RegistryError, LoweringError), match=said):
        selfbyoc.build(parted)
    selfbyoc.installed()
    assert selfbyoc.build(parted).report.counts == {"made_up": 1}


def test_a_partitioned_module_takes_no_more(install):
    install("made-up")
    parted = selfbyoc.partition_for_tefuse(emit(program, SHAPES), composites="installed")
    for door in (selfbyoc.build, selfbyoc.explain):
        with pytest.raises(InputError, match="partitioned already"):
            door(parted, composites="installed")


def test_of_the_command_line(install, tmp_path, capsys):
    from selfbyoc.__main__ import main

    install("made-up")
    (tmp_path / "net.json").write_text(tvm.ir.save_json(emit(program, SHAPES)))
    for args in (("explain", tmp_path / "net.json"), ("composites",)):
        assert main([*map(str, args), "--composites", "installed"]) == 0
        assert "made_up" in capsys.readouterr().out
    assert main(["composites", "--composites", "instaled"]) == 1
    assert "instaled cannot be read" in capsys.readouterr().err


def test_files_and_packages(install, tmp_path):
    """In the order in which they are given."""
    from selfbyoc.commands.model_file import composites_in

    install("made-up")
    (tmp_path / "mine.py").write_text(SOURCE.format(name="mine"))
    given = composites_in([tmp_path / "mine.py", "installed"])
    assert [c.name for c in given][:3] == ["mine", "mine_2", "made_up"]
    assert composites_in(["installed", tmp_path / "mine.py"])[0].name == "made_up"
    assert composites_in([]) is None
