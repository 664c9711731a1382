"""TVM as its own external compiler: your pattern, your schedule, one kernel.

It imports TVM, which takes a second, when the first of its names is asked for, but for those that
load and run a library: TVM's runtime serves them. A program that imports TVM itself finds the
external compiler all the same.
"""

import importlib as _importlib
import os as _os
import sys as _sys
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from .common import collecting as _collecting
from .common import threads as _threads
from .version import __version__ as __version__

_threads.configure()

if _TYPE_CHECKING:
    from .api import *  # noqa: F403
    from .api import __all__  # noqa: F401
else:
    _WITHOUT_COMPILER = {
        "Decoder": "runtime.decoder",
        "Library": "runtime.library",
        "load": "runtime.loading",
        "seal": "runtime.integrity",
    }

    def _api() -> _Any:
        """All names, which are this module's own from then on."""
        with _collecting.put_off():
            api = _importlib.import_module(".api", __name__)
        globals().update({name: getattr(api, name) for name in ("__all__", *api.__all__)})
        return api

    def __getattr__(name: str) -> _Any:
        """What `api` has, or a submodule."""
        is_ours = name == "__all__" or not name.startswith("_")
        if is_ours and _importlib.util.find_spec(f"{__name__}.{name}") is not None:
            return _importlib.import_module(f"{__name__}.{name}")
        if name in _WITHOUT_COMPILER:
            module = _importlib.import_module(f"{__name__}.{_WITHOUT_COMPILER[name]}")
            return getattr(module, name)
        if is_ours and hasattr(_api(), name):
            return globals()[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *_api().__all__})

    def _with_tvm() -> None:
        """The user's own import: TVM knows the external compiler and our ops from now on. Where
        this package imports TVM, `tvm/` registers the compiler, and `ir/` the ops.
        """
        if f"{__name__}.tvm" not in _sys.modules:
            _api()

    def _is_command() -> bool:
        """Whether this process is the command line, which answers a wrong argument or a missing
        file without TVM.
        """
        given = _sys.orig_argv[1:]
        of_script = [_os.path.basename(x) for x in given[:1]] == [__name__]
        return given[:2] == ["-m", __name__] or of_script

    if "tvm" in _sys.modules:
        _api()
    elif not _is_command():
        from .common.after_import import after_import as _after_import
        from .common.supported import check_installed as _check_installed

        _check_installed()
        _after_import("tvm", _with_tvm)
