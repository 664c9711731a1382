"""Fixtures of the whole suite."""

import gc
import os
import sys
from pathlib import Path

import pytest

from selfbyoc.tvm import GENERATION

HERE = Path(__file__).parent
SUPPORT = HERE / "support"
sys.path.insert(0, str(SUPPORT))  # harness.py, under pytest's importlib mode

# First for processes that tests start, unless they choose a path of their own.
os.environ["PYTHONPATH"] = os.pathsep.join([str(SUPPORT / "no_torch"), str(SUPPORT)])

# Every test compiles what it tests; those of the cache choose a folder of their own.
os.environ["SELFBYOC_CACHE"] = "off"

# Threads of TVM's pool that have nothing to do sleep at once: else each asks for work 300,000 times
# first, on the other suite's core. Convolutions and pools of test_composites.py on Relax took an
# eighth less CPU time; of the whole suite the difference is within what others on the cores make.
os.environ.setdefault("TVM_THREAD_POOL_SPIN_COUNT", "0")

# Of thousands of tests and TVM's modules the collector would visit each object again and again: a
# tenth of the suite's time. What pytest knows of all tests lives to the end (below).
gc.set_threshold(20_000, 20, 20)

# What exists on one generation only has a folder of its own in its room; neither TVM can import the
# other's tests.
collect_ignore_glob = ["**/relax/*"] if GENERATION == "relay" else ["**/relay/*"]


def listed(file: str) -> set[str]:
    """The names in one of the lists beside this file."""
    return {n for n in (HERE / file).read_text().splitlines() if n[:1] not in ("", "#")}


# What `make test` leaves out, by measurement, and what `make compatibility` is content with. What
# stands after "relay:" is slow there, and what it is about is tested with Relax each time.
SLOW, QUICK = listed("slow.txt"), listed("quick.txt")
SLOW = {n.removeprefix("relay: ") for n in SLOW if GENERATION == "relay" or n[:7] != "relay: "}
SWEEPS = {
    name: int(counts.split("/")[-1 if GENERATION == "relay" else 0])
    for counts, name in map(str.split, listed("sweeps.txt"))
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--part K/N`: of the slow tests every Nth, from the Kth."""
    parser.addoption("--part", default="1/1", help="of the slow tests every Nth, from the Kth: 2/5")


@pytest.hookimpl(tryfirst=True)  # before -m looks at the marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what the lists name: a test or one of its cases; in quick.txt, whole files too."""
    composites, sweeps = set(), {name: [] for name in SWEEPS}
    for item in items:
        name = item.nodeid.removeprefix("tests/")
        names = {name, name.partition("[")[0]}
        if names & SLOW or name.partition("::")[0] in SLOW:
            item.add_marker("slow")
        else:
            sweeps.get(name.partition("[")[0], []).append(item)
        # Of a whole file what is not slow.
        if not names & QUICK and (names & SLOW or name.partition("::")[0] not in QUICK):
            continue
        if name.startswith("schedules/composites/test_composites.py::test_case["):
            composite = item.callspec.params["composite"].name
            if composite in composites:
                continue
            composites.add(composite)
        item.add_marker("quick")
    for name, cases in sweeps.items():
        for item in left_out(cases, SWEEPS[name]):
            item.add_marker("slow")
    _leave_parts(config, items)


def _leave_parts(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of the slow tests only the part that was asked for."""
    part, parts = map(int, config.getoption("--part").split("/"))
    slow = [item for item in items if item.get_closest_marker("slow")]
    gone = {item for n, item in enumerate(slow) if n % parts != (part - 1) % parts}
    if gone:
        config.hook.pytest_deselected(items=list(gone))
        items[:] = [item for item in items if item not in gone]


def left_out(cases: list[pytest.Item], count: int) -> list[pytest.Item]:
    """All but `count` of the cases, which are evenly spread; the first and the last are kept, of
    one case the first.
    """
    last = len(cases) - 1
    kept = {round(n * last / max(count - 1, 1)) for n in range(count)}
    return [case for n, case in enumerate(cases) if n not in kept]


def pytest_collection_finish() -> None:
    """Nothing that is known now is looked at by the collector."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def same_numbers(request):
    """A test draws the same from its file's RNG whatever ran before it."""
    rng = getattr(request.module, "RNG", None)
    if rng is not None:
        first = STATES.setdefault(request.module.__name__, rng.bit_generator.state)
        rng.bit_generator.state = first


STATES = {}


@pytest.fixture
def vocabulary_as_before():
    """The test leaves the vocabulary as it was; what it registers in TVM stays."""
    from selfbyoc.ops import vocabulary

    held = (vocabulary.KINDS, vocabulary._READ)
    before = [dict(known) for known in held]
    yield
    for known, was in zip(held, before, strict=True):
        known.clear()
        known.update(was)


# Packages of others are asked before the first test imports them, and one that is there and does
# not load is no error of a test. Models from ONNX files are folded by ONNX Runtime.
def importorskip(name, minversion=None, reason=None, *, exc_type=ImportError):
    """pytest's own, in its place."""
    __tracebackhide__ = True  # the test is where it was skipped
    from selfbyoc.common.optional import does_not_serve

    for needed in (name, *(["onnxruntime"] if name == "onnx" else [])):
        if why := does_not_serve(needed):
            pytest.skip(why, allow_module_level=True)
    return _importorskip(name, minversion, reason, exc_type=exc_type)


_importorskip, pytest.importorskip = pytest.importorskip, importorskip


# What a test meets on its way, as the C++ compiler in `export_library` or a TVM that is built
# without CUDA: its words are the reason.
@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    return (yield from _skipping())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    return (yield from _skipping())


def _skipping():
    from harness import is_of_others

    from selfbyoc.errors import TargetError, ToolError

    try:
        return (yield)
    except (ToolError, TargetError) as err:
        if not is_of_others(err):
            raise
        pytest.skip(str(err))


# Programs of others: asked when the first test needs one. They are skipped with its own words.


@pytest.fixture(scope="session")
def opencl():
    """An OpenCL runtime that computes right."""
    from harness import served

    from selfbyoc.analysis.gpu.runtimes import cannot_run

    served(cannot_run())


@pytest.fixture(scope="session")
def nvidia():
    """An NVIDIA GPU that computes right."""
    from harness import served

    from selfbyoc.analysis.gpu.cuda import cannot_run

    served(cannot_run())


@pytest.fixture(scope="session")
def nvrtc():
    """NVRTC, and headers for it."""
    from harness import served

    from selfbyoc.analysis.gpu.nvrtc import cannot_assemble

    served(cannot_assemble())


@pytest.fixture(scope="session")
def compiler():
    """The C++ compiler that libraries on disk are linked by."""
    from harness import served

    from selfbyoc.runtime.system_compiler import cannot_compile

    served((why := cannot_compile()) and f"needs {why}")


@pytest.fixture
def asked_afresh(monkeypatch):
    """Nobody is known to serve."""
    from selfbyoc.common.probes import SERVES

    monkeypatch.setenv(SERVES, "")
