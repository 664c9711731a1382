"""Programs of `tools/` as modules."""

import importlib.util
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def tool(name):
    """`tools/NAME.py`."""
    folder = ROOT / "tools"
    if str(folder) not in sys.path:  # as of a script, which imports what lies beside it
        sys.path.append(str(folder))
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses ask for it
    spec.loader.exec_module(module)
    return module
