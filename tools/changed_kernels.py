"""Which kernels of the built-in composites are others than at a commit: for each case and target
the scheduled function of TIR, of this tree and of the commit's. What should have changed nothing
shows that it did not, in a minute and without a benchmark.

    python tools/changed_kernels.py HEAD~3
    python tools/changed_kernels.py v0.1 --only conv2d --target 'llvm -mcpu=cascadelake' --diff

Names of variables do not count; names of stages do. Functions are of the TVM that runs this.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selfbyoc import Composite
    from selfbyoc.tvm.types import IRModule

ROOT = Path(__file__).parents[1]
TARGETS = ("llvm -mcpu=haswell -num-cores=2", "llvm -mcpu=cascadelake -num-cores=4")
Kernels = Mapping[str, tuple[str, str]]  # "composite case target" -> hash and text, or an error


def of_this_tree(only: str, targets: Sequence[str]) -> dict[str, tuple[str, str]]:
    """The kernels of the package that is imported."""
    sys.path.insert(0, str(Path.cwd() / "tests" / "support"))
    from harness import model, random_args  # type: ignore[import-not-found]

    import selfbyoc
    from selfbyoc.tvm import GENERATION

    found = {}
    for composite in selfbyoc.BUILTIN:
        if not composite.name.startswith(only):
            continue
        for case in composite.cases:
            if GENERATION not in case.generations:
                continue
            mod = model(composite, case, random_args(case))
            for target in targets:
                key = f"{composite.name} {case.name} {target}"
                found[key] = _scheduled(mod, composite, target)
    return found


def _scheduled(mod: IRModule, composite: Composite, target: str) -> tuple[str, str]:
    """One case's hash and text."""
    import selfbyoc
    from selfbyoc.analysis.kernels import kernels
    from selfbyoc.tvm import make_target, structural_hash

    try:
        parted = selfbyoc.partition_for_tefuse(mod, target=target, composites=[composite])
        made = [k.schedule(make_target(target))[1].mod["main"] for k in kernels(parted)]
    except Exception as err:  # it is compared, whatever it is
        return f"{type(err).__name__}", str(err)
    texts = [func.script() for func in made]
    return " ".join(str(structural_hash(func.body)) for func in made), "\n".join(texts)


def at(commit: str, only: str, targets: Sequence[str]) -> Kernels:
    """The kernels of a commit, by a process of its own in a work tree of its own."""
    with tempfile.TemporaryDirectory() as folder:
        tree, result = Path(folder) / "tree", Path(folder) / "kernels.json"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--detach", "-q", str(tree), commit], check=True)
        try:
            asked = ["--only", only, *(x for t in targets for x in ("--target", t))]
            command = [sys.executable, __file__, "--write", str(result), *asked]
            env = {**os.environ, "PYTHONPATH": str(tree)}
            subprocess.run(command, cwd=tree, env=env, check=True)
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)
        return {key: (made, text) for key, (made, text) in json.loads(result.read_text()).items()}


def _code(text: str) -> list[str]:
    """Without the op info, which is one line of thousands of letters."""
    return [line for line in text.splitlines() if "T.func_attr" not in line]


def lines_of(now: Kernels, then: Kernels, diff: bool = False) -> Iterator[str]:
    """What is new, gone, or another one."""
    for key in sorted({*now, *then}):
        if key not in then or key not in now:
            yield f"{'new ' if key not in then else 'gone'}    {key}"
        elif now[key][0] != then[key][0]:
            yield f"changed {key}"
            before, after = (_code(side[key][1]) for side in (then, now))
            yield from difflib.unified_diff(before, after, lineterm="", n=1) if diff else ()
    same = sum(now[key][0] == then[key][0] for key in now if key in then)
    yield f"{same} of {len(now)} are the same"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("commit", nargs="?", default="HEAD")
    parser.add_argument("--only", default="", metavar="NAME", help="composites that begin so")
    parser.add_argument("--target", action="append", help=f"default: {' and '.join(TARGETS)}")
    parser.add_argument("--diff", action="store_true", help="also what changed, as TIR")
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    targets = asked.target or list(TARGETS)
    warnings.simplefilter("ignore")
    found = of_this_tree(asked.only, targets)
    if asked.write is not None:
        asked.write.write_text(json.dumps(found), encoding="utf-8")
        return
    for line in lines_of(found, at(asked.commit, asked.only, targets), asked.diff):
        print(line)


if __name__ == "__main__":
    main()
