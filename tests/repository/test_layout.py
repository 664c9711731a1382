"""The architecture's import boundaries, read from the imports themselves."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import selfbyoc

ROOT = Path(selfbyoc.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))


@cache
def parsed(path):
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imports(path):
    """(module, name) of every import, relative ones made absolute."""
    return list(_imports(path))


def _imports(path):
    package = ["selfbyoc", *path.relative_to(ROOT).parts[:-1]]
    for node in ast.walk(parsed(path)):
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


def generations(path):
    """The generations whose IR a file may name."""
    return {"relay", "relax"} & {*path.relative_to(ROOT).parts[:-1], path.stem}


def test_graph_irs_stay_in_their_files():
    """Only files and folders that are called so name Relay, or Relax."""
    for path in FILES:
        for ir in ("relay", "relax"):
            if ir in generations(path):
                continue
            found = [n for n in names(path) if re.match(rf"tvm\.{ir}\b", n)]
            assert found == [], f"{relative(path)} imports {found}"


def test_tvm_is_reached_through_one_file():
    """Names that differ between the generations are resolved in `tvm/`."""
    for path in FILES:
        if generations(path) or path.parent == ROOT / "tvm":
            continue
        found = [n for n in names(path) if n.split(".")[0] in ("tvm", "tvm_ffi")]
        assert found == [], f"{relative(path)} imports {found}; use selfbyoc.tvm"


# The floors of the house, from the ground up: a file imports from its own floor and from below.
FLOORS = (
    ("errors", "printable", "graph"),
    ("common",),
    ("tvm",),
    ("machine", "ops"),
    ("language",),
    ("ir", "tir"),
    ("codegen", "simplify"),
    ("partition", "schedules"),
    ("models", "runtime"),
    ("analysis", "tuning"),
    ("commands",),
    ("__init__", "__main__", "api", "transform"),
)
FLOOR = {name: number for number, names in enumerate(FLOORS) for name in names}


@cache
def arrows(path):
    """The modules of this package that a file imports when it runs; what only a type checker reads
    is no arrow.
    """
    return tuple(_arrows(path))


def _arrows(path):
    package = ["selfbyoc", *path.relative_to(ROOT).parts[:-1]]
    tree = parsed(path)
    for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level and id(node) not in for_types:
            base = package[: len(package) - node.level + 1]
            base += node.module.split(".") if node.module else []
            yield from (".".join([*base, alias.name]) for alias in node.names)


def place(module):
    """The folder, or the file beside the folders, that a module is in."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in FLOOR else "__init__"


def test_no_arrow_runs_up():
    for path in FILES:
        own = path.relative_to(ROOT).parts[0].removesuffix(".py")
        assert own in FLOOR, f"{own} is on no floor"
        # The package's version is no part of it.
        up = [
            m
            for m in arrows(path)
            if FLOOR[place(m)] > FLOOR[own] and not m.endswith("__version__")
        ]
        assert up == [], f"{relative(path)} imports {up}"


def test_folders_of_one_floor_do_not_import_each_other_in_a_circle():
    """What is below imports nothing from above, so a circle could only be within a floor."""
    for names_of_floor in FLOORS:
        seen = {
            (path.relative_to(ROOT).parts[0].removesuffix(".py"), place(module))
            for path in FILES
            for module in arrows(path)
            if path.relative_to(ROOT).parts[0].removesuffix(".py") in names_of_floor
        }
        circles = {(a, b) for a, b in seen if a != b and (b, a) in seen}
        assert circles == set()


def test_kernels_do_not_know_composites():
    """A composite names its kernel; kernels are built of steps."""
    pairs = (("kernels", "composites"), ("steps", "composites"), ("steps", "kernels"))
    for folder, barred in pairs:
        for path in (ROOT / "schedules" / folder).rglob("*.py"):
            found = [m for m in arrows(path) if m.startswith(f"selfbyoc.schedules.{barred}")]
            assert found == [], f"{relative(path)} imports {found}"


@pytest.mark.parametrize("folder", ["partition", "codegen", "ir", "runtime"])
def test_schedules_are_not_known_on_the_way(folder):
    """The built-in list is resolved in builtin.py alone."""
    for path in (ROOT / folder).rglob("*.py"):
        assert not [n for n in names(path) if n.startswith("selfbyoc.schedules")], relative(path)


def test_analysis_knows_no_schedule():
    """It asks of any kernel; a composite's own file answers nothing for it."""
    for path in (ROOT / "analysis").rglob("*.py"):
        assert not [n for n in names(path) if n.startswith("selfbyoc.schedules")], relative(path)


def test_schedules_know_no_graph_ir_and_no_pipeline():
    allowed = (
        "selfbyoc.schedules", "selfbyoc.language", "selfbyoc.machine", "selfbyoc.tvm",
        "selfbyoc.errors", "selfbyoc.ops", "selfbyoc.graph", "selfbyoc.tir.prefetch",
        "selfbyoc.tir.concatenates", "selfbyoc.tir.transposed_tiles", "selfbyoc.tir.recurrences",
        "selfbyoc.codegen.elementwise", "selfbyoc.codegen.info.accesses",
        "selfbyoc.codegen.info.ops", "selfbyoc.codegen.info.op_record",
    )  # fmt: skip
    for path in (ROOT / "schedules").rglob("*.py"):
        ours = [n for n in names(path) if n.startswith("selfbyoc")]
        assert [n for n in ours if not n.startswith(allowed)] == [], relative(path)


def test_the_neutral_graph_knows_nothing_else():
    files = ("graph.py", "ir/canonical.py", "ir/reader.py")
    for path in [*(ROOT / name for name in files), *(ROOT / "ir/rules").glob("*.py")]:
        found = [n for n in names(path) if n.startswith("selfbyoc.")]
        known = ("ir", "graph", "ops", "language.nodes", "language.match")  # what a user declared
        allowed = tuple(f"selfbyoc.{name}." for name in known)
        assert [n for n in found if not n.startswith(allowed)] == [], relative(path)


@pytest.mark.parametrize(
    "name",
    [
        "ir",
        "ir/emit",
        "simplify",
        "partition",
        "partition/unfuse",
        "codegen",
        "runtime",
        "analysis/verify",
    ],
)
def test_generations_come_in_pairs(name):
    """The same public functions on both sides."""

    def public(path):
        tree = parsed(path)
        return {
            n.name
            for n in tree.body
            if isinstance(n, ast.FunctionDef) and not n.name.startswith("_")
        }

    shared = {
        "ir": {"read", "parameters"},
        "ir/emit": {"constant", "dtype_of", "emit_call", "emit_item", "emit_module"},
        "simplify": {"simplified"},
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
    parts = {"ir/emit": ("ir", "emit"), "partition/unfuse": ("partition", "unfuse")}
    folder, part = parts.get(name, (name, "__init__"))
    for side in ("relay", "relax"):
        file = ROOT / folder / side / f"{part}.py"
        assert shared <= public(file if file.exists() else ROOT / folder / f"{side}.py")


def test_files_stay_readable():
    for path in FILES:
        lines = path.read_text(encoding="utf-8").splitlines()
        assert len(lines) <= 250, f"{relative(path)} has {len(lines)} lines"
        assert ast.get_docstring(ast.parse("\n".join(lines))), f"{relative(path)} lacks a docstring"


def test_functions_stay_short():
    for path in FILES:
        for node in ast.walk(parsed(path)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                length = node.end_lineno - node.lineno + 1
                assert length <= 50, f"{relative(path)}: {node.name} has {length} lines"


def test_no_broad_silence():
    """No bare except, no pass in an except."""
    for path in FILES:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ExceptHandler):
                assert node.type is not None, relative(path)
                assert not isinstance(node.body[0], ast.Pass), relative(path)


TOOLS = ROOT.parent / "tools"
BROAD = {"Exception", "BaseException"}


def broad(path):
    """The handlers of a file that take any exception."""
    for node in ast.walk(parsed(path)):
        taken = node.type if isinstance(node, ast.ExceptHandler) else None
        if taken and BROAD & {n.id for n in ast.walk(taken) if isinstance(n, ast.Name)}:
            yield node


def test_who_takes_any_exception_says_why():
    """On its line, what may come there and who is told. A TVM or a user may raise anything, PyTorch
    and Ctrl-C go on by exceptions: the narrow class is better wherever it is known.
    """
    for path in (*FILES, *sorted(TOOLS.rglob("*.py"))):
        lines = path.read_text(encoding="utf-8").splitlines()
        for handler in broad(path):
            reason = lines[handler.lineno - 1].partition("# ")[2]
            assert len(reason.split()) > 1, f"{path.name}:{handler.lineno} gives no reason"


def test_nobody_suppresses_any_exception():
    for path in (*FILES, *TOOLS.rglob("*.py")):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "suppress":
                taken = {n.id for a in node.args for n in ast.walk(a) if isinstance(n, ast.Name)}
                assert not BROAD & taken, f"{path.name}:{node.lineno}"


def test_questions_are_asked_without_drawing_or_schedules():
    for path in (ROOT / "analysis").rglob("*.py"):
        known = ("selfbyoc.view", "selfbyoc.schedules")
        assert not [n for n in names(path) if n.startswith(known)], relative(path)


def test_what_is_left_out_exists():
    """Each line of slow.txt is a file, a test of it, or one of its cases; of sweeps.txt a number
    and a test of many cases.
    """
    tests = Path(__file__).parents[1]
    slow, sweeps = (
        [n for n in (tests / file).read_text(encoding="utf-8").splitlines() if n[0] != "#"]
        for file in ("slow.txt", "sweeps.txt")
    )
    assert all(int(line.split()[0]) >= 2 for line in sweeps)
    for line in slow + [line.split()[1] for line in sweeps]:
        name, _, test = line.removeprefix("relay: ").partition("::")
        function = test.partition("[")[0] or "test_\\w+"
        assert re.search(rf"^def {function}\(", (tests / name).read_text(encoding="utf-8"), re.M), (
            line
        )


# PyTorch's tensors compare by element: they are told apart by address, while somebody holds them.
BY_ADDRESS = {"runtime/dynamo/changes.py", "runtime/dynamo/graph.py"}


def test_nothing_is_told_apart_by_its_address():
    """A key that is an address keeps nothing alive, and an error names a number: values, ops and
    nodes are keys themselves, since they compare by identity.
    """

    def asks(path):
        return any(
            isinstance(node, ast.Name) and node.id == "id" and isinstance(node.ctx, ast.Load)
            for node in ast.walk(parsed(path))
        )

    assert {relative(path) for path in FILES if asks(path)} == BY_ADDRESS
