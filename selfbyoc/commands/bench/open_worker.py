"""The process of one contender, where a size is open: it loads a model once for all its sizes.

`python -m selfbyoc.commands.bench.open_worker NAME FD`, as worker.py.
"""

from __future__ import annotations

import sys

from .contenders import OPEN
from .worker import main

if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), OPEN)
