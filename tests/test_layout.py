"""The architecture's import boundaries, read from the imports themselves."""

import ast
import re
from pathlib import Path

import pytest

import selfbyoc

ROOT = Path(selfbyoc.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))


def imports(path):
    """(module, name) of every import, relative ones made absolute."""
    package = ["selfbyoc", *path.relative_to(ROOT).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *(node.module or "").split(".")]).strip(".")
            yield from ((module, alias.name) for alias in node.names)


def names(path):
    return {f"{module}.{name}" for module, name in imports(path)}


def relative(path):
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_graph_irs_stay_in_their_files(path):
    """Only `_relay*.py` names Relay, only `_relax*.py` names Relax."""
    for ir in ("relay", "relax"):
        if path.name.startswith(f"_{ir}"):
            continue
        found = [n for n in names(path) if re.match(rf"tvm\.{ir}\b", n)]
        assert found == [], f"{relative(path)} imports {found}"


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_tvm_is_reached_through_one_file(path):
    """Names that differ between the generations are resolved in `_tvm*.py`."""
    if path.name.startswith(("_tvm", "_relay", "_relax")):
        return
    found = [n for n in names(path) if n.split(".")[0] in ("tvm", "tvm_ffi")]
    assert found == [], f"{relative(path)} imports {found}; use selfbyoc._tvm"


@pytest.mark.parametrize("folder", ["partition", "codegen", "ir", "runtime"])
def test_schedules_are_not_known_on_the_way(folder):
    """The built-in list is resolved in builtin.py alone."""
    for path in (ROOT / folder).rglob("*.py"):
        assert not [n for n in names(path) if n.startswith("selfbyoc.schedules")], relative(path)


def test_analysis_asks_and_view_draws():
    """view imports analysis, never the other way round; neither is needed to build a model."""
    for path in (ROOT / "analysis").rglob("*.py"):
        barred = ("selfbyoc.schedules", "selfbyoc.view", "selfbyoc.demo")
        assert not [n for n in names(path) if n.startswith(barred)], relative(path)
    for path in FILES:
        who = path.relative_to(ROOT).parts[0]
        if who not in ("view", "demo", "__main__.py"):
            assert not [n for n in names(path) if n.startswith("selfbyoc.view")], relative(path)
        # build(verify=True) is the one place on the road that asks, and it imports when asked.
        asks = ("analysis", "bench", "view", "demo", "__main__.py", "__init__.py", "runtime")
        road = ("__init__", "decisions", "lookup", "records", "sampling", "workload")
        if who not in asks and not (who == "tuning" and path.stem not in road):
            assert not [n for n in names(path) if n.startswith("selfbyoc.analysis")], relative(path)


def test_schedules_know_no_graph_ir_and_no_pipeline():
    allowed = (
        "selfbyoc.schedules", "selfbyoc.language", "selfbyoc.machine", "selfbyoc._tvm",
        "selfbyoc.errors", "selfbyoc.compute.mathfn", "selfbyoc.compute.ops",
        "selfbyoc.compute.conv", "selfbyoc.codegen.info.accesses",
        "selfbyoc.codegen.prefetch", "selfbyoc.compute.quantize", "selfbyoc.codegen.slices",
        "selfbyoc.ir.graph",
    )  # fmt: skip
    for path in (ROOT / "schedules").rglob("*.py"):
        ours = [n for n in names(path) if n.startswith("selfbyoc")]
        assert [n for n in ours if not n.startswith(allowed)] == [], relative(path)


def test_the_neutral_graph_knows_nothing_else():
    files = ("graph.py", "canonical.py", "reader.py", "attrs.py")
    for path in [*(ROOT / "ir" / name for name in files), *(ROOT / "ir/rules").glob("*.py")]:
        found = [n for n in names(path) if n.startswith("selfbyoc.")]
        assert [n for n in found if not n.startswith("selfbyoc.ir.")] == [], relative(path)


@pytest.mark.parametrize(
    "name",
    ["ir", "ir/emit", "partition", "partition/unfuse", "codegen", "runtime", "analysis/verify"],
)
def test_generations_come_in_pairs(name):
    """The same public functions on both sides."""

    def public(path):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        return {
            n.name
            for n in tree.body
            if isinstance(n, ast.FunctionDef) and not n.name.startswith("_")
        }

    shared = {
        "ir": {"read", "parameters"},
        "ir/emit": {"constant", "dtype_of", "emit_call", "emit_item", "emit_module"},
        "partition": {
            "prepare",
            "mark",
            "external_functions",
            "functions_of",
            "call_constants",
            "constant_args",
            "take_packed",
            "update",
        },
        "partition/unfuse": {"unfused"},
        "codegen": {"composites", "read", "build_target", "codegen", "register"},
        "runtime": {
            "compile_module",
            "session",
            "calling",
            "bound",
            "bound_arrays",
            "to_tensor",
            "weights_once",
        },
        "analysis/verify": {"subgraph", "unfused"},
    }[name]
    apart = {"ir/emit": ("ir", "_emit"), "partition/unfuse": ("partition", "_unfuse")}
    folder, ending = apart.get(name, (name, ""))
    for side in ("_relay", "_relax"):
        assert shared <= public(ROOT / folder / f"{side}{ending}.py")


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_files_stay_readable(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 270, f"{relative(path)} has {len(lines)} lines"
    assert ast.get_docstring(ast.parse("\n".join(lines))), f"{relative(path)} lacks a docstring"


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_functions_stay_short(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            length = node.end_lineno - node.lineno + 1
            assert length <= 50, f"{relative(path)}: {node.name} has {length} lines"


def test_no_broad_silence():
    """No bare except, no pass in an except."""
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ExceptHandler):
                assert node.type is not None, relative(path)
                assert not isinstance(node.body[0], ast.Pass), relative(path)


def test_questions_are_asked_without_drawing_or_schedules():
    for path in (ROOT / "analysis").rglob("*.py"):
        known = ("selfbyoc.view", "selfbyoc.schedules")
        assert not [n for n in names(path) if n.startswith(known)], relative(path)
