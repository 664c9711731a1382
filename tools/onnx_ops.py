"""ONNX's own tests of its ops, each one op or few, through `from_onnx` and `build`: docs/onnx.md.

    python tools/onnx_ops.py [--only PATTERN] [--seconds N] [--workers N]    this generation's half
    python tools/onnx_ops.py --document      the document anew, from the data of both generations

Where a model is refused, it is tried again with all inputs but the first as constants: shapes and
axes are inputs in these tests, and constants in what exporters write. Exit status 1 when a result
is wrong, or an error has no type.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx.backend.test.loader import load_model_tests

os.environ["ALLOW_RELEASED_ONNX_OPSET_ONLY"] = "0"  # of ONNX Runtime: these tests are newer

from op_by_op import (
    BAD,
    FIXED,
    REFUSED,
    REPORTS,
    RIGHT,
    Judgement,
    counts,
    in_a_process,
    judged,
    write_between_marks,
)  # fmt: skip

import selfbyoc
from selfbyoc.errors import one_line
from selfbyoc.tvm import GENERATION, tvm

DOCUMENT = REPORTS.parent / "onnx.md"
# Those of onnx 1.17 for signed products of bytes wrap around where ONNX saturates.
_LEFT_OUT = ("*_cuda", "test_bernoulli*", "test_training_dropout*", "test_qlinearmatmul_*_int8_*")
Row = tuple[str, str, str]  # name, status, text


def data_file(generation: str) -> Path:
    """Where the results of a generation are kept."""
    return REPORTS / f"onnx-ops-{generation}.json"


def cases() -> list[Any]:
    """ONNX's tests that need no GPU, draw nothing at random, and are right themselves."""
    found = {case.name: case for case in load_model_tests(kind="node")}
    return [found[name] for name in sorted(found) if not any(fnmatch(name, p) for p in _LEFT_OUT)]


def loaded(case: Any) -> tuple[Any, list[Any], list[Any]]:
    """The model, its inputs and what it gives."""
    if getattr(case, "model", None) is not None and case.data_sets:
        given, wanted = ([_array(a) for a in side] for side in case.data_sets[0])
        return case.model, given, wanted
    folder = Path(case.model_dir)
    model = onnx.load(folder / "model.onnx")
    data = folder / "test_data_set_0"
    sides = (("input", model.graph.input), ("output", model.graph.output))
    found = [[_read(data / f"{s}_{i}.pb", v) for i, v in enumerate(vs)] for s, vs in sides]
    return model, found[0], found[1]


def _read(path: Path, value: Any) -> Any:
    kind = value.type.WhichOneof("value")
    if kind != "tensor_type" or not path.exists():
        return None  # a sequence, or nothing: `from_onnx` refuses these
    tensor = onnx.TensorProto()
    tensor.ParseFromString(path.read_bytes())
    return _array(tensor)


def _array(value: Any) -> Any:
    is_tensor = isinstance(value, onnx.TensorProto)
    return onnx.numpy_helper.to_array(value) if is_tensor else value


def _with_constants(model: Any, given: Sequence[Any]) -> Any:
    """The model with all inputs but the first as constants."""
    fixed = onnx.ModelProto()
    fixed.CopyFrom(model)
    graph = fixed.graph
    for value, array in zip(list(graph.input)[1:], given[1:], strict=False):
        graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(array), value.name))
        graph.input.remove(value)
    return fixed


def _judgements(case: Any) -> list[Judgement]:
    return [tried(case)]


def tried(case: Any) -> Judgement:
    """The status and the text of a case, perhaps with all inputs but the first as constants."""
    try:
        model, given, wanted = loaded(case)
    except Exception as err:  # onnx 1.17 cannot read some of its own data
        return REFUSED, f"onnx cannot read the data: {one_line(err)}"
    status, text = _once(case, model, given, wanted)
    arrays = all(isinstance(a, (np.ndarray, np.generic)) for a in given)
    if status != REFUSED or len(given) < 2 or not arrays:
        return status, text
    try:
        fixed = _with_constants(model, given)
    except ValueError:  # onnx 1.17 cannot write arrays of fewer than 8 bits
        return status, text
    again, told = _once(case, fixed, given[:1], wanted)
    return (FIXED, text) if again == RIGHT else (again, told)


def _once(case: Any, model: Any, given: list[Any], wanted: list[Any]) -> Judgement:
    return judged(
        lambda: selfbyoc.build(selfbyoc.from_onnx(model), cache=False)(*given),
        wanted, max(case.rtol, 1e-3),
    )  # fmt: skip


def _document() -> None:
    """The part of docs/onnx.md between the marks, from the data of both generations."""
    data = {g: json.loads(data_file(g).read_text()) for g in ("relax", "relay")}
    lines = counts(data, {"tvm": "TVM", "onnx": "onnx, whose tests they are"})
    for generation, held in data.items():
        rows = held["rows"]
        unknown = sorted({op for row in rows if row[1] == REFUSED for op in _missing(row[2])})
        lines += ["", f"**{generation}**: ops that TVM's frontend does not have: "]
        lines[-1] += ", ".join(f"`{op}`" for op in unknown) + "."
        reasons = Counter(_plain(r[2]) for r in rows if r[1] == REFUSED and not _missing(r[2]))
        lines += ["", "| refused otherwise | tests |", "|---|---|"]
        lines += [f"| {text} | {count} |" for text, count in reasons.most_common(_SHOWN)]
        lines += ["", *(f"- {row[1]}: `{row[0]}`, {row[2]}" for row in rows if row[1] in BAD)]
    write_between_marks(DOCUMENT, lines)


_SHOWN = 12


def _missing(text: str) -> list[str]:
    found = re.search(r"(?:not supported for frontend ONNX:|does not have) (.*?)(;|$)", text)
    return [op.strip() for op in found[1].split(",")] if found else []


def _plain(text: str) -> str:
    """A reason without what differs from test to test."""
    text = text.rpartition("cannot import the model: ")[2].partition(";")[0]
    text = re.sub(r"'[^' ]*'", "'...'", re.sub(r"[\d.]+", "#", text))
    return text.replace("|", "/").replace("<", "").replace(">", "")[:120]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", action="append", default=[], metavar="PATTERN")
    parser.add_argument("--seconds", type=int, default=60, help="of one model")
    parser.add_argument("--workers", type=int, default=1, help="processes at a time")
    parser.add_argument("--document", action="store_true", help="write the document, try nothing")
    return parser.parse_args()


def _alone(seconds: int, case: Any) -> Judgement:
    """Tried in a process of its own."""
    (judgement,) = in_a_process(partial(_judgements, case), seconds)
    return judgement


def main() -> int:
    """Try what is asked for, and write the document."""
    args = _arguments()
    path = data_file(GENERATION)
    kept = json.loads(path.read_text())["rows"] if path.exists() and args.only else []
    rows: dict[str, Row] = {row[0]: tuple(row) for row in kept}
    chosen = [] if args.document else cases()
    if args.only:
        chosen = [c for c in chosen if any(fnmatch(c.name, p) for p in args.only)]
    with ThreadPoolExecutor(args.workers) as pool:
        for case, judgement in zip(
            chosen, pool.map(partial(_alone, args.seconds), chosen), strict=True
        ):
            rows[case.name] = (case.name, *judgement)
            if rows[case.name][1] in BAD:
                print(*rows[case.name], flush=True)
    if chosen:
        versions = {"tvm": tvm.__version__, "onnx": onnx.__version__}
        path.write_text(json.dumps({**versions, "rows": sorted(rows.values())}, indent=0) + "\n")
    if all(data_file(generation).exists() for generation in ("relax", "relay")):
        _document()
    print(Counter(row[1] for row in rows.values()))
    return int(any(row[1] in BAD for row in rows.values()))


if __name__ == "__main__":
    sys.exit(main())
