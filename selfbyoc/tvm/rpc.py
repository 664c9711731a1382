"""What this library takes from TVM's RPC, under one name of ours for both generations."""

from __future__ import annotations

import argparse
import functools
import runpy
import socket
import struct
import sys
from collections.abc import Callable, Sequence
from typing import Any

from tvm import rpc
from tvm.error import RPCSessionTimeoutError
from tvm.rpc import base

from . import IR_LOADER
from .types import Session

__all__ = [
    "REQUEST",
    "SUMMARY",
    "RPCSessionTimeoutError",
    "ask_tracker",
    "connect",
    "serve",
    "track",
]

SUMMARY, REQUEST = base.TrackerCode.SUMMARY, base.TrackerCode.REQUEST
_LOOPBACK = "127.0.0.1"
_SERVER = """WARNING: this RPC server listens on {}. Whoever reaches it runs any code as this
user, and writes any file of this user, also outside the server's folder: there is no password.
Keep it in a network of your own, in a container or under a user that owns nothing."""
_TRACKER = """WARNING: this RPC tracker listens on {}. Whoever reaches it may register a server, and
gets the addresses of all others: there is no password. Keep it in a network of your own."""
_THREADS = "runtime.NumThreads"


def ask_tracker(address: tuple[str, int], question: Sequence[int | str], patience: float) -> Any:
    """A tracker's answer. TVM's own client waits for it without end, and a minute for a tracker.

    Raises OSError where nobody listens, TimeoutError (an OSError) where no answer came in time,
    ValueError for something that is no tracker.
    """
    with socket.create_connection(address, timeout=patience) as sock:
        sock.sendall(struct.pack("<i", base.RPC_TRACKER_MAGIC))
        (magic,) = struct.unpack("<i", base.recvall(sock, 4))
        if magic != base.RPC_TRACKER_MAGIC:
            raise ValueError("what listens there is no RPC tracker")
        base.sendjson(sock, question)
        status, value = base.recvjson(sock)
    if status != base.TrackerCode.SUCCESS:
        raise ValueError(f"the tracker answers with the code {status}")
    return value


def connect(host: str, port: int, match_key: str, limit: float) -> Session:
    """A session with a server that a tracker named; the server ends it after `limit` seconds."""
    return rpc.connect(host, port, match_key, session_timeout=limit)


def is_alive(session: Session) -> bool:
    """Whether the server at the other end still answers."""
    try:
        session.get_function(_THREADS)
    except RuntimeError:  # 0.27's and 0.17's errors of the connection are such
        return False
    return True


def loads_ir(session: Session) -> bool:
    """Whether the server's TVM can load LLVM IR."""
    try:
        session.get_function(IR_LOADER)
    except AttributeError:
        return False
    return True


def use_threads(session: Session, count: int) -> int:
    """Let kernels of a session use so many threads, or fewer where the server has fewer; -> how
    many it is.
    """
    session.get_function("runtime.config_threadpool")(1, count)
    return int(session.get_function(_THREADS)())


def serve() -> None:
    """TVM's own RPC server by its own command line, which outlives kernels that crash. Without a
    `--host` only this machine reaches it; with another one, it says what that means.
    """
    _on_loopback(_SERVER)
    rpc.Server = functools.partial(rpc.Server, server_init_callback=_prepared())
    runpy.run_module("tvm.exec.rpc_server", run_name="__main__", alter_sys=True)


def track() -> None:
    """TVM's own RPC tracker by its own command line; on loopback as `serve` is."""
    _on_loopback(_TRACKER)
    runpy.run_module("tvm.exec.rpc_tracker", run_name="__main__", alter_sys=True)


def _on_loopback(warning: str) -> None:
    """TVM's default is all interfaces."""
    host = _host(sys.argv)
    if host is None:
        sys.argv.append(f"--host={_LOOPBACK}")
    elif not host.startswith("127.") and host not in ("localhost", "::1"):
        print(warning.format(host), file=sys.stderr, flush=True)


def _host(args: Sequence[str]) -> str | None:
    """What the command line says of the interface."""
    found = argparse.ArgumentParser(add_help=False)
    found.add_argument("--host")
    return found.parse_known_args(args)[0].host


def _prepared() -> Callable[[], None]:
    """What the process that serves runs first. A nested function travels there as code, so that it
    need not import this package.
    """

    def outlive_crashes() -> None:
        """0.27's loop over sessions ends when the process of one ends with an error."""
        import logging
        import os

        from tvm.rpc import server

        one_session, folder = server._serving, os.getcwd()

        def serving(sock: socket.socket, *options: object) -> None:
            try:
                one_session(sock, *options)
            except RuntimeError as err:
                logging.getLogger("RPCServer").warning("%s", err)
                os.chdir(folder)
                sock.close()

        server._serving = serving

    return outlive_crashes
