"""The architecture's import boundaries, read from the imports themselves."""

import ast
import itertools
import re
from collections import defaultdict
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


@cache
def floors():
    """The rows of the drawing in docs/makers/design.md, from the ground up: a floor, and the rooms
    and files of its own that a row names.
    """
    text = (ROOT.parent / "docs/makers/design.md").read_text(encoding="utf-8")
    _, _, table = text.partition("| floor | room | holds |\n")
    rows = itertools.takewhile(lambda line: line.startswith("|"), table.splitlines()[1:])
    cells = [row.split("|") for row in rows]
    return [(int(c[1]), re.findall(r"`(\w+/?)`", c[2])) for c in cells]


ROOMS = [name.removesuffix("/") for _, names in floors() for name in names if name[-1] == "/"]
FLOOR = {name.removesuffix("/"): number for number, names in floors() for name in names}
FLOOR |= dict.fromkeys(("__init__", "__main__"), max(FLOOR.values()))  # of what the drawing names


def test_the_drawing_is_of_what_there_is():
    """A house to be kept in mind: sixteen rooms on twelve floors, and every one is drawn."""
    assert [number for number, _ in floors()] == sorted(number for number, _ in floors())
    assert set(ROOMS) == {p.parent.name for p in ROOT.glob("*/__init__.py")}
    assert set(FLOOR) - set(ROOMS) == {p.stem for p in ROOT.glob("*.py")}
    assert len(ROOMS) == len(set(ROOMS)) <= 16
    assert len(set(FLOOR.values())) <= 12


@cache
def arrows(path):
    """The modules of this package that a file imports when it runs; what only a type checker reads
    is no arrow.
    """
    return tuple(_arrows(path))


def _arrows(path):
    for node, is_for_types in imported(path):
        if not is_for_types:
            yield from (f"{base_of(node, path)}.{alias.name}" for alias in node.names)


def imported(path, inside=True):
    """The relative imports of a file, and whether only a type checker reads them; those in
    functions too, or those of the module alone.
    """

    def visited(node, is_for_types):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ImportFrom) and child.level:
                yield child, is_for_types
            elif inside or not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                asked = isinstance(child, ast.If) and getattr(child.test, "id", "")
                yield from visited(child, is_for_types or asked == "TYPE_CHECKING")

    return visited(parsed(path), False)


def base_of(node, path):
    """The module that is named before `import`, made absolute."""
    package = ["selfbyoc", *path.relative_to(ROOT).parts[:-1]]
    base = package[: len(package) - node.level + 1]
    return ".".join([*base, *(node.module or "").split(".")]).strip(".")


def place(module):
    """The folder, or the file beside the folders, that a module is in."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in FLOOR else "__init__"


def test_no_arrow_runs_up():
    """A file imports from its own floor and from below."""
    for path in FILES:
        own = path.relative_to(ROOT).parts[0].removesuffix(".py")
        up = [m for m in arrows(path) if FLOOR[place(m)] > FLOOR[own]]
        assert up == [], f"{relative(path)} imports {up}"


def test_what_is_asked_of_above_is_there():
    """Each `upper("module:name")` names something that exists, on a floor above."""
    found = [
        (path, call.args[0].value)
        for path in FILES
        for call in ast.walk(parsed(path))
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "upper"
    ]
    assert len(found) >= 5
    for path, asked in found:
        module, _, name = asked.partition(":")
        file = names_of_files()[f"selfbyoc.{module}"]
        own, other = (p.relative_to(ROOT).parts[0].removesuffix(".py") for p in (path, file))
        assert FLOOR[other] > FLOOR[own], f"{relative(path)}: import {asked} plainly"
        bound = {n.name for n in parsed(file).body if hasattr(n, "name")}
        bound |= {t.id for n in parsed(file).body if isinstance(n, ast.Assign) for t in n.targets}
        assert name in bound, f"{relative(path)}: {asked}"


def test_folders_of_one_floor_do_not_import_each_other_in_a_circle():
    """What is below imports nothing from above, so a circle could only be within a floor."""
    seen = defaultdict(set)
    for path in FILES:
        own = path.relative_to(ROOT).parts[0].removesuffix(".py")
        level = {m for m in map(place, arrows(path)) if FLOOR[m] == FLOOR[own]}
        seen[own] |= level - {own, "__init__"}
    assert circles(seen) == []


@cache
def names_of_files():
    """Each file by the name of its module; a package is its `__init__`."""
    return {
        ".".join(["selfbyoc", *p.relative_to(ROOT).with_suffix("").parts]).removesuffix(
            ".__init__"
        ): p
        for p in FILES
    }


def graph_of_files(for_types):
    """Which files a file imports when it is imported itself, the packages that they are in among
    them: all but those that it is in, which are there by then. `for_types`: what a type checker
    reads, too.
    """
    known = names_of_files()
    graph = {}
    for name, path in known.items():
        found = set()
        for node, is_for_types in imported(path, inside=False):
            if is_for_types and not for_types:
                continue
            base = base_of(node, path)
            for module in (f"{base}.{alias.name}" for alias in node.names):
                module = module if module in known else base
                found.add(module)
                found |= {p for p in packages(module) if not name.startswith(f"{p}.")}
        graph[name] = found & known.keys() - {name}
    return graph


def packages(module):
    """The packages that a module is in."""
    parts = module.split(".")
    return {".".join(parts[:n]) for n in range(1, len(parts))}


def circles(graph):
    """The strongly connected parts of a graph that have more than one node (Tarjan)."""
    numbers, lowest, stack, found = {}, {}, [], []

    def visit(node):
        numbers[node] = lowest[node] = len(numbers)
        stack.append(node)
        for other in graph.get(node, ()):
            if other not in numbers:
                visit(other)
            if other in stack:
                lowest[node] = min(lowest[node], lowest[other])
        if lowest[node] == numbers[node]:
            at = stack.index(node)
            found.append(sorted(stack[at:]))
            del stack[at:]

    for node in graph:
        if node not in numbers:
            visit(node)
    return sorted(part for part in found if len(part) > 1)


def test_circles_are_found():
    assert circles({"a": ["b"], "b": ["c"], "c": ["b", "d"], "d": []}) == [["b", "c"]]
    assert circles({"a": ["b", "c"], "b": ["c"], "c": []}) == []


@pytest.mark.parametrize("for_types", [False, True], ids=["run", "read by a type checker"])
def test_no_files_import_each_other_in_a_circle(for_types):
    """Whoever reads a file need not have read it before."""
    assert circles(graph_of_files(for_types)) == []


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
        "selfbyoc.errors", "selfbyoc.ops", "selfbyoc.graph", "selfbyoc.tir.as_written",
        "selfbyoc.tir.prefetch", "selfbyoc.tir.concatenates", "selfbyoc.tir.transposed_tiles",
        "selfbyoc.tir.recurrences", "selfbyoc.tir.cut_loops",
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
        # What a user declared, and names of types.
        known = ("ir", "graph", "ops", "language.nodes", "language.match", "tvm.types")
        allowed = tuple(f"selfbyoc.{name}." for name in known)
        assert [n for n in found if not n.startswith(allowed)] == [], relative(path)


@pytest.mark.parametrize(
    "name",
    [
        "ir",
        "ir/emit",
        "ir/rewrite",
        "tvm",
        "partition",
        "partition/unfuse",
        "codegen",
        "runtime",
        "runtime/executors",
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
        "ir/rewrite": {"rewritten", "has_branches"},
        "tvm": {"register"},
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
        "codegen": {"composites", "read", "build_target", "codegen"},
        "runtime": {"compile_module", "python_functions", "weights_once"},
        "runtime/executors": {
            "load_module",
            "session",
            "calling",
            "bound",
            "bound_arrays",
            "to_tensor",
            "view_of",
            "copied",
        },
        "analysis/verify": {"subgraph", "unfused"},
    }[name]
    parts = {
        "ir/emit": ("ir", "emit"),
        "ir/rewrite": ("ir", "rewrite"),
        "partition/unfuse": ("partition", "unfuse"),
    }
    folder, part = parts.get(name, (name, "__init__"))
    for side in ("relay", "relax"):
        file = ROOT / folder / side / f"{part}.py"
        assert shared <= public(file if file.exists() else ROOT / folder / f"{side}.py")


def test_files_stay_readable():
    for path in FILES:
        lines = path.read_text(encoding="utf-8").splitlines()
        assert len(lines) <= 600, f"{relative(path)} has {len(lines)} lines"
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


TESTS = Path(__file__).parents[1]
BESIDE = {"whole", "repository"}  # what is tested from outside, and what is no code


def test_a_test_is_in_the_room_that_it_tests():
    """Or in one of two folders beside the rooms; every room has tests."""
    files = [path.relative_to(TESTS) for path in TESTS.rglob("test_*.py")]
    assert [path for path in files if not ast.get_docstring(parsed(TESTS / path))] == []
    assert {path.parts[0] for path in files} == {*ROOMS, *BESIDE}
    folders = {path.name for path in TESTS.iterdir() if any(path.glob("**/*.py"))}
    assert folders == {*ROOMS, *BESIDE, "support"}
    assert {path.name for path in TESTS.glob("*.py")} == {"conftest.py"}


def test_folders_of_tests_stay_small():
    for folder in {path.parent for path in TESTS.rglob("test_*.py")}:
        assert len(list(folder.glob("test_*.py"))) <= 25, folder


def test_what_tests_share_is_in_support():
    """No test file imports another one, nor has a module in support the name of one elsewhere."""
    ours = {path.stem for path in (TESTS / "support").glob("*.py")}
    taken = {
        path.stem for folder in ("tools", "benchmarks") for path in TOOLS.parent.glob(f"{folder}/*")
    }
    assert ours & taken == set()
    for path in TESTS.rglob("*.py"):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ImportFrom) and not node.level:
                assert not node.module.startswith("test_"), path


def test_what_is_left_out_exists():
    """Each line of slow.txt is a file, a test of it, or one of its cases; of sweeps.txt a number,
    or two of which Relay's is not the larger one, and a test of many cases.
    """
    slow, sweeps = (
        [n for n in (TESTS / file).read_text(encoding="utf-8").splitlines() if n[0] != "#"]
        for file in ("slow.txt", "sweeps.txt")
    )
    for line in sweeps:
        counts = [int(n) for n in line.split()[0].split("/")]
        assert len(counts) <= 2, line
        assert counts[0] >= counts[-1] >= 1, line
    for line in slow + [line.split()[1] for line in sweeps]:
        name, _, test = line.removeprefix("relay: ").partition("::")
        function = test.partition("[")[0] or "test_\\w+"
        assert re.search(rf"^def {function}\(", (TESTS / name).read_text(encoding="utf-8"), re.M), (
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
