"""tools/never_run.py: functions that nothing ran, of coverage.py's data."""

import importlib.util
import io
import sys
from pathlib import Path

from rich.console import Console

TOOL = Path(__file__).parents[2] / "tools" / "never_run.py"


def tool():
    spec = importlib.util.spec_from_file_location("never_run", TOOL)
    module = sys.modules["never_run"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_functions_by_room():
    """A function of which a line ran is run; the module's own lines and empty bodies are none."""

    def lines(executed, missing):
        return {"executed_lines": executed, "missing_lines": missing}

    files = {
        "selfbyoc/tir/slices.py": {
            "": lines([1], []), "cut": lines([3], [4]), "Cut.of": lines([], [7]),
        },
        "selfbyoc/errors.py": {"one_line": lines([2], [])},
        "tools/zoo.py": {"main": lines([], [9]), "Told.empty": lines([], [])},
    }  # fmt: skip
    data = {"files": {path: {"functions": named} for path, named in files.items()}}
    never = tool()
    found = never.functions(data)
    assert [(f.room, f.name, f.ran) for f in found] == [
        ("hall", "one_line", True), ("tir", "Cut.of", False), ("tir", "cut", True),
        ("tools", "main", False),
    ]  # fmt: skip
    out = io.StringIO()
    Console(file=out, width=60).print(never.table(found))
    rows = [[c.strip() for c in line.split("│")[1:-1]] for line in out.getvalue().splitlines()]
    assert [r for r in rows if r] == [
        ["hall", "1", "0"], ["tir", "2", "1"], ["tools", "1", "1"], ["all", "4", "2"],
    ]  # fmt: skip
