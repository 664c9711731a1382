"""Every door of the library in a process of its own: nothing is imported before but what the page
says, and a warning is an error there. What earlier tests imported would hide a mistake.
"""

import os
import re
import shlex
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import selfbyoc
from selfbyoc import op
from selfbyoc.__main__ import _parser
from selfbyoc.common.optional import does_not_serve
from selfbyoc.tvm import GENERATION, tvm

ROOT = Path(__file__).parents[2]
READ = [ROOT / "README.md", ROOT / "examples/README.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES = [*READ, ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs" / "makers").glob("*.md"))]
# Of the two Relay builds: the fork calls itself 0.17.dev0.
BUILD = "fork" if ".dev" in tvm.__version__ else "stock"
HIDDEN = ROOT / "tests" / "support" / "no_torch"
HERE = [p for p in sys.path if p and Path(p).name not in ("no_torch", "support")]
# TVM 0.17's hybrid script visits nodes of old Pythons (pyproject.toml has the same line for tests);
# a page calls what PyTorch deprecates; that nothing matches is what some pages show.
OLD_NODES = ("Num", "Str", "Bytes", "NameConstant", "Ellipsis")
IGNORED = (
    "nothing matched",
    "Attribute n is deprecated",
    "Attribute s is deprecated",
    "`mapping.TENSOR_TYPE_TO_NP_TYPE` is now deprecated",
    "`torch.jit.trace` is deprecated",
    "`torch.jit.trace_method` is deprecated",
    *(f"visit_{name} is deprecated" for name in OLD_NODES),
    *(f"ast.{name} is deprecated" for name in OLD_NODES),
)
relax_only = pytest.mark.skipif(GENERATION == "relay", reason="torch.compile goes by Relax")


def door(folder, *arguments, torch=False, path=()):
    """What a fresh process of this Python prints."""
    path = [*path, *([] if torch else [HIDDEN]), ROOT, *HERE]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path)), "COLUMNS": "120"}
    ignored = [word for text in IGNORED for word in ("-W", f"ignore:{text}")]
    done = subprocess.run(
        [sys.executable, "-W", "error", *ignored, *map(str, arguments)],
        env=env, cwd=folder, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, f"{arguments}: {done.stderr[-3000:]}"
    return done.stdout


def program(folder, text):
    """A file with this code."""
    path = folder / "program.py"
    path.write_text(text, encoding="utf-8")
    return path


def blocks(page, kind, extra=()):
    """The blocks of a page that are for everybody, for the generation and the build at hand, or for
    an extra ("torch"), one after the other.
    """
    own = {kind, *(f"{kind} {name}" for name in (GENERATION, f"{GENERATION} {BUILD}"))}
    kinds = {f"{kind} {name}" for name in extra} or own
    found = re.findall(r"^```([a-z ]+)\n(.*?)^```$", page.read_text("utf-8"), re.DOTALL | re.M)
    return "\n".join(text for word, text in found if word in kinds)


def lines(text):
    return [line for line in text.splitlines() if line]


def serves(*packages):
    """Skip where a package of others is not there, or does not work."""
    for name in packages:
        if why := does_not_serve(name):
            pytest.skip(why)


# ---- pages

RUNNABLE = [page for page in PAGES if blocks(page, "python")]


@pytest.mark.parametrize("page", RUNNABLE, ids=lambda p: p.name)
def test_code_prints_what_the_page_says(page, tmp_path):
    script = program(tmp_path, blocks(page, "python"))
    assert lines(door(tmp_path, script)) == lines(blocks(page, "text"))


def test_the_readme_is_among_them():
    assert {"README.md", "tutorial.md", "tuning.md", "tvm-notes.md"} <= {p.name for p in RUNNABLE}


def test_a_composite_is_some_twenty_lines():
    """A28: the README's, with its reference and all that runs it, is a program of its own."""
    text = blocks(ROOT / "README.md", "python")
    declared, _, rest = text.partition(f"from tvm import {GENERATION}")
    assert "lookup = Composite(" in declared
    assert len([line for line in declared.splitlines() if line.strip()]) <= 12
    assert len([line for line in text.splitlines() if line.strip()]) <= 30
    assert "selfbyoc.build(mod)" in rest


@relax_only
@pytest.mark.parametrize("name", ["README.md", "docs/pytorch.md"])
def test_blocks_of_pytorch(name, tmp_path):
    """`backend="selfbyoc"` is found by the entry point of the installed package."""
    serves("torch")
    script = program(tmp_path, blocks(ROOT / name, "python", ["torch"]))
    found, expected = door(tmp_path, script, torch=True), blocks(ROOT / name, "text", ["torch"])
    assert lines(found) == lines(expected)


@relax_only
def test_the_backend_is_found_by_its_name_alone(tmp_path):
    """Nothing of this package is imported, nor any other backend: only PyTorch is."""
    serves("torch")
    code = (
        "import torch; model = torch.nn.Linear(8, 8).eval(); x = torch.ones(2, 8)\n"
        "with torch.inference_mode():\n"
        "    y = torch.compile(model, backend='selfbyoc')(x)\n"
        "    print(torch.allclose(y, model(x), atol=1e-5))\n"
        "import selfbyoc\nprint(selfbyoc.installed())"
    )
    assert door(tmp_path, "-c", code, torch=True).split("\n")[:2] == ["True", "[]"]


@relax_only
def test_blocks_of_transformers(tmp_path):
    serves("torch", "transformers")
    script = program(tmp_path, blocks(ROOT / "docs/decode.md", "python", ["transformers"]))
    assert door(tmp_path, script, torch=True).count("[") == 2  # the tokens of both


def test_the_onnx_block_of_the_readme(tmp_path):
    serves("onnx", "onnxruntime")
    from onnx import parser, save

    save(
        parser.parse_model("""
          <ir_version: 8, opset_import: ["" : 17]>
          network (float[batch, 3, 224, 224] images) => (float[batch, 3, 7, 7] y)
          { small = MaxPool<kernel_shape = [32, 32], strides = [32, 32]>(images) y = Relu(small) }
        """),
        tmp_path / "model.onnx",
    )
    script = program(tmp_path, blocks(ROOT / "README.md", "python", ["onnx"]))
    assert door(tmp_path, script).endswith(" (1, 3, 7, 7)\n")
    assert (tmp_path / "model.so").stat().st_size > 0


# ---- commands

INLINE = re.compile(r"`((?:python -m )?selfbyoc [a-z][^`]*)`")
# What a page writes for a file or a name -> what is there. Commands of minutes are only parsed.
STANDS_FOR = {
    "MODEL": "model.onnx", "MODEL.onnx": "model.onnx", "one.onnx": "model.onnx", "NAME": "mine",
    "other.onnx": "model.onnx", "block.onnx": "model.onnx", "FILE.py": "mine.py",
    "model.int8.onnx": "model.onnx", "COMPOSITE": "dense", "OP": "dense", "DIR": "records",
    "block.so": "model.so", "folder": "data", "CONFIG": "qwen2-0.5b",
}  # fmt: skip


def commands():
    """The command lines of the pages that users read, as arguments, each once."""
    found = {}
    for page in READ:
        text = page.read_text("utf-8")
        blocks = re.findall(r"^```(?:sh|console)\n(.*?)^```$", text, re.DOTALL | re.M)
        shell = [line.strip().removeprefix("$ ") for block in blocks for line in block.splitlines()]
        for line in [*shell, *INLINE.findall(text)]:
            line = re.sub(r"^(\w+=\S+ )*(python -m )?", "", line).partition(" | ")[0]
            if not line.startswith("selfbyoc ") or "..." in line or line == "selfbyoc --version":
                continue
            words = shlex.split(line.replace("[", "").replace("]", ""), comments=True)[1:]
            found[tuple(STANDS_FOR.get(word, word) for word in words)] = page.name
    return found


def test_the_commands_of_the_pages_are_commands(capsys):
    """Each parses; what a sentence names without its model is a command, and has its options."""
    found = commands()
    assert len(found) > 50
    for words, page in found.items():
        with suppress(SystemExit):
            _parser().parse_args(words)
            continue
        (*_, said) = capsys.readouterr().err.splitlines()
        named = said.endswith("expected one argument") or "arguments are required" in said
        assert named, f"{page}: selfbyoc {shlex.join(words)}: {said}"
        with pytest.raises(SystemExit):
            _parser().parse_args([words[0], "--help"])
        help_ = capsys.readouterr().out
        assert all(word in help_ for word in words if word.startswith("--")), (page, words)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What commands are run on: a model of ONNX, and a composite."""
    serves("onnx", "onnxruntime")
    from onnx import numpy_helper, parser, save

    where = tmp_path_factory.mktemp("doors")
    model = parser.parse_model("""
      <ir_version: 8, opset_import: ["" : 17]>
      network (float[4, 24] x) => (float[4, 17] y)
      { scores = MatMul(x, weight) biased = Add(scores, bias) y = Relu(biased) }
    """)
    rng = np.random.default_rng(0)
    for name, shape in (("weight", (24, 17)), ("bias", (17,))):
        weight = rng.standard_normal(shape, np.float32)
        model.graph.initializer.append(numpy_helper.from_array(weight, name))
    save(model, where / "model.onnx")
    return where


# In this order: `compile` writes what `run` and `show` read, `new` what `lint` and `bounds` do.
RUN = """
compile model.onnx -o model.so
run model.so --output .
show model.so
explain model.onnx --json out.json
melting model.onnx
verify model.onnx
quantize model.onnx --random 2
new mine
lint mine.py
bounds mine.py --no-run
op-info dense
ops dense
composites
cache
""".strip().splitlines()


@pytest.fixture(scope="module")
def written(folder):
    """`compile` and `new`, whose files other commands read."""
    for line in (RUN[0], "new mine"):
        door(folder, "-m", "selfbyoc", *line.split())
    return folder


@pytest.mark.parametrize("line", [n for n in RUN if n not in (RUN[0], "new mine")])
def test_a_command(written, line):
    door(written, "-m", "selfbyoc", *line.split())


def test_every_command_is_run_here_or_takes_minutes():
    """Those have tests of their own, which run them; `records` reads what `tune` wrote."""
    (choices,) = (a.choices for a in _parser()._actions if a.choices)
    assert {line.split()[0] for line in RUN} | {"bench", "tune", "records", "fuzz", "demo"} == set(
        choices
    )


# ---- names and orders of imports

# The parent has NumPy, and TVM's libraries in memory: half of the time that a child takes.
FIRST_TOUCHED = """
import ctypes, os, pathlib, sys
from importlib.util import find_spec
import numpy, {ahead}
for path in sorted(pathlib.Path(find_spec("tvm").origin).parent.parent.rglob("libtvm*.so")):
    try:
        ctypes.CDLL(path, ctypes.RTLD_GLOBAL)
    except OSError:  # of a GPU that is not here
        continue
names = sys.argv[1:]
for name in names:
    child = os.fork()
    if not child:
        status = 1
        try:
            import selfbyoc
            found = getattr(selfbyoc, name)
            from selfbyoc.language.known import default_registry
            import tvm
            assert len(list(default_registry())) > 10
            assert tvm.get_global_func("{generation}.ext.tefuse", True) is not None
            from selfbyoc import api
            assert found is getattr(api, name)
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    print(name, status)
"""


@pytest.mark.parametrize("part", range(4))
def test_each_public_name_is_the_first_that_is_touched(part, tmp_path):
    """In a process that knows neither this package nor TVM; all with Relax, some with Relay."""
    is_relax = GENERATION == "relax"
    ahead, names = "tvm_ffi" if is_relax else "json", selfbyoc.__all__[part::4]
    names = names if is_relax else names[::4]
    code = FIRST_TOUCHED.format(ahead=ahead, generation=GENERATION)
    found = dict(line.split() for line in lines(door(tmp_path, "-c", code, *names)))
    assert found == dict.fromkeys(names, "0")


BUILDS = """
import numpy as np

def build():
    import selfbyoc
    mod = selfbyoc.emit(
        lambda x, w: selfbyoc.op.relu(selfbyoc.op.dense(x, w)),
        {"x": ((4, 8), "float32"), "w": ((8, 8), "float32")}, {"w": np.ones((8, 8), "float32")},
    )
    library = selfbyoc.build(mod)
    (y,) = library(np.ones((4, 8), "float32"))
    return library.report.counts, float(y.sum())

"""
WAYS = {
    "the first import": "print(*build())",
    "tvm first": "import tvm; import selfbyoc; print(*build())",
    "tvm last": "import selfbyoc; import tvm; print(*build())",
    "a thread": (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(2) as pool:\n"
        "    one, other = pool.submit(build), pool.submit(build)\n"
        "assert one.result() == other.result()\nprint(*one.result())"
    ),
    "a fork": (
        "import os\nchild = os.fork()\nif not child:\n    print(*build(), flush=True)\n"
        "    os._exit(0)\nos.waitpid(child, 0)"
    ),
    "a spawned worker": (
        "import multiprocessing\nif __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
        "        print(*pool.apply(build))"
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_build_in(way, tmp_path):
    script = program(tmp_path, BUILDS + WAYS[way])
    assert door(tmp_path, script) == "{'dense': 1} 256.0\n"


def partitioned(rows):
    """A module with a composite whose op TVM does not know, as JSON."""
    rng = np.random.default_rng(0)
    inputs = {"ids": ((rows,), "int32"), "table": ((50, 16), "float32")}
    table = rng.standard_normal((50, 16), np.float32)
    mod = selfbyoc.emit(lambda ids, table: op.embedding(table, ids), inputs, {"table": table})
    return tvm.ir.save_json(selfbyoc.partition_for_tefuse(mod))


CODED = {
    "relax": "from tvm import relax\nassert relax.transform.RunCodegen()(mod).attrs",
    "relay": "from tvm import relay\nassert relay.build(mod, target='llvm')",
}
BEFORE = {
    "the package imported": "import selfbyoc, tvm",
    "TVM imported": "import tvm, selfbyoc",
    "a library loaded": (
        "import selfbyoc; library = selfbyoc.load(sys.argv[2]); assert library.report; import tvm"
    ),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A partitioned module as JSON, and a library."""
    where = tmp_path_factory.mktemp("files")
    (where / "mod.json").write_text(partitioned(7), encoding="utf-8")
    inputs = {"x": ((4, 8), "float32"), "w": ((8, 8), "float32")}
    weight = {"w": np.ones((8, 8), np.float32)}
    mod = selfbyoc.emit(lambda x, w: op.dense(x, w), inputs, weight)
    selfbyoc.build(mod).export_library(where / "model.so")
    return where


@pytest.mark.parametrize("before", BEFORE)
def test_tvm_finds_the_compiler_and_its_ops(before, files):
    """A module that another process partitioned is built by TVM's own calls."""
    code = f"import sys\n{BEFORE[before]}\nmod = tvm.ir.load_json(open(sys.argv[1]).read())\n"
    door(files, "-c", code + CODED[GENERATION], "mod.json", "model.so")


def test_composites_of_an_installed_package(tmp_path):
    """Found by their entry point, in a process that has imported neither."""
    about = tmp_path / "shiny-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: shiny\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[selfbyoc.composites]\nall = shiny:COMPOSITES\n")
    (tmp_path / "shiny.py").write_text(
        "from selfbyoc import Composite, op\n"
        "COMPOSITES = [Composite('shiny', lambda x, w: op.relu(op.dense(x, w)))]\n"
    )
    code = BUILDS.replace("selfbyoc.build(mod)", "selfbyoc.build(mod, composites='installed')")
    script = program(tmp_path, code + "print(*build())")
    assert door(tmp_path, script, path=[tmp_path]) == "{'shiny': 1} 256.0\n"
