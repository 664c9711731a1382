"""Things under a name where a file of text is expected."""

import os


def put(path, how):
    """A pipe, a folder, or a file of 2^40 bytes without any; -> whether `how` is one of these."""
    if how == "fifo":
        os.mkfifo(path)
    elif how == "folder":
        path.mkdir()
    elif how == "large":
        path.touch()
        os.truncate(path, 1 << 40)
    return how in ("fifo", "folder", "large")
