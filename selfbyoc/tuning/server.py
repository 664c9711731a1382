"""`python -m selfbyoc.tuning.server`: TVM's RPC server, which outlives a kernel that crashes.

It takes what `python -m tvm.exec.rpc_server` takes. That of TVM 0.27 stops to serve, without an
end, when the process of a session fails; 0.17's goes on by itself.
"""

from __future__ import annotations

from ..tvm.rpc import serve

if __name__ == "__main__":
    serve()
