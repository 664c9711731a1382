"""`python -m selfbyoc.tuning.tracking`: TVM's RPC tracker, which only this machine reaches unless
`--host` says where.

It takes what `python -m tvm.exec.rpc_tracker` takes, whose default is all interfaces.
"""

from __future__ import annotations

from ..tvm.rpc import track

if __name__ == "__main__":
    track()
