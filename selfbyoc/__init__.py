"""TVM as its own external compiler: your pattern, your schedule, one kernel."""

import importlib as _importlib
import os as _os
import sys as _sys
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from .version import __version__ as __version__


def _is_command() -> bool:
    """Whether this process is the command line: it answers a wrong argument or a missing file
    without TVM, which takes a second to import, and imports `api` once it needs it.
    """
    given = _sys.orig_argv[1:]
    return given[:2] == ["-m", __name__] or [_os.path.basename(x) for x in given[:1]] == [__name__]


if _TYPE_CHECKING or not _is_command():
    from .api import *  # noqa: F403
    from .api import __all__  # noqa: F401
else:

    def __getattr__(name: str) -> _Any:
        """What `api` has; a submodule is left to the import that asks for it."""
        is_ours = name == "__all__" or not name.startswith("_")
        if is_ours and _importlib.util.find_spec(f"{__name__}.{name}") is None:
            return getattr(_importlib.import_module(".api", __name__), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
