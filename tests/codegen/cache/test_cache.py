"""The compile cache: what is built again is not compiled again, and nothing stale is loaded."""

import gc
import os
import resource
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cached import CASE, built, entries, reference, uses

import selfbyoc
from selfbyoc import Case, emit, op, partition_for_tefuse
from selfbyoc.codegen.cache import keys
from selfbyoc.codegen.cache.place import folder
from selfbyoc.codegen.cache.store import Store
from selfbyoc.schedules.composites.dense import dense
from selfbyoc.tir import lowering

from harness import model, random_args  # isort: skip


def test_the_second_build_compiles_nothing(tmp_path, monkeypatch):
    assert uses(built(tmp_path)) == (0, 1)
    monkeypatch.setattr("selfbyoc.tir.lowering.build_module", None)
    monkeypatch.setattr("selfbyoc.codegen.lower.schedule_external", None)
    assert uses(built(tmp_path)) == (1, 0)
    # Other weights are another model, with other symbols, and the same kernel.
    assert uses(built(tmp_path, seed=1)) == (1, 0)


def test_another_shape_target_or_switch_is_another_kernel(tmp_path, monkeypatch):
    built(tmp_path)
    wider = Case(
        CASE.program, x=(6, 37), weight=(19, 37), bias=(19,), constants=CASE.constants
    )  # fmt: skip
    assert uses(built(tmp_path, case=wider)) == (0, 1)
    assert uses(built(tmp_path, target="llvm")) == (0, 1)
    monkeypatch.setenv("SELFBYOC_SOMETHING", "1")
    # The switch is read by schedules: scheduled again, and the same code found for what came out.
    scheduled = []
    from selfbyoc.codegen import lower

    real = lower.schedule_external
    monkeypatch.setattr(
        lower, "schedule_external", lambda *args: scheduled.append(1) or real(*args)
    )
    assert uses(built(tmp_path)) == (1, 0)
    assert scheduled


def test_another_compiler_shares_nothing(tmp_path, monkeypatch):
    built(tmp_path)
    monkeypatch.setattr(keys, "compiler", lambda: ("another TVM",))
    assert uses(built(tmp_path)) == (0, 1)


def test_another_way_of_lowering_shares_nothing(tmp_path, monkeypatch):
    """What is done after scheduling shows in no script: its sources are part of the key."""
    built(tmp_path)
    monkeypatch.setattr(keys, "_sources", lambda: "edited")
    monkeypatch.setattr(keys, "_LOWERED_BY", "edited")
    assert uses(built(tmp_path)) == (0, 1)


def test_every_file_that_lowers_is_part_of_the_key():
    package = Path(keys.__file__).parent.parent.parent
    todo = {lowering}
    seen = set()
    while todo:
        module = todo.pop()
        seen.add(module)
        names = {getattr(v, "__module__", None) for v in vars(module).values()}
        used = {sys.modules[n] for n in names if n and n.startswith("selfbyoc.")}
        todo |= {m for m in used - seen if m.__name__.split(".")[1] != "errors"}
    files = {Path(module.__file__).relative_to(package).as_posix() for module in seen}
    assert {"tir/stealing.py", "machine/cores.py", "tvm/build.py"} <= files
    known = {path.relative_to(package).as_posix() for path in keys.lowering_files()}
    assert files <= known, files - known


def test_other_sources_of_this_package_schedule_again(tmp_path, monkeypatch):
    built(tmp_path)
    monkeypatch.setattr(keys, "_sources", lambda: "edited")
    monkeypatch.setattr("selfbyoc.tir.lowering.build_module", None)
    assert uses(built(tmp_path)) == (1, 0)


def test_an_edited_schedule_misses(tmp_path):
    """A user's schedule is run every time: whatever it reads, its result decides."""
    lanes = {"now": 4}

    def schedule(sch, ops, target):
        *_, last = sch.get_loops(ops.relu.block)
        sch.split(last, [None, lanes["now"]])

    mine = replace(dense, name="mine", schedule=schedule)
    assert uses(built(tmp_path, mine)) == (0, 1)
    assert uses(built(tmp_path, mine)) == (1, 0)
    lanes["now"] = 8
    assert uses(built(tmp_path, mine)) == (0, 1)


@pytest.mark.parametrize("harm", ["truncate", "flip", "empty", "foreign", "renamed", "not a cache"])
def test_damaged_entries_are_compiled_again(tmp_path, harm):
    built(tmp_path)
    found = {path: path.read_bytes() for path in entries(tmp_path)}
    assert len(found) == 2  # the code, and which function these inputs gave
    for path, data in found.items():
        middle = len(data) // 2
        bad = {
            "truncate": data[:middle],
            "flip": data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :],
            "empty": b"",
            "foreign": data.replace(b"cache 2", b"cache 0"),
            "renamed": next(d for p, d in found.items() if p != path),
            "not a cache": b"\x7fELF" + data,
        }[harm]
        path.write_bytes(bad)
    assert uses(built(tmp_path)) == (0, 1)
    assert uses(built(tmp_path)) == (1, 0)


def test_code_that_tvm_cannot_load_is_compiled_again(tmp_path):
    built(tmp_path)
    store = Store(tmp_path)
    for entry in store.entries():
        if not entry.about.get("note"):
            store.put(entry.key, "a\nb\nc\nd\ne", entry.about)
    assert uses(built(tmp_path)) == (0, 1)


def test_the_oldest_go_when_it_is_full(tmp_path):
    store = Store(tmp_path, limit=1)
    store.put("first", "text", {})
    assert entries(tmp_path) == []
    store = Store(tmp_path, limit=1 << 20)
    for n in range(4):
        store.put(f"key{n}", os.urandom(1000).hex(), {})
        os.utime(tmp_path / f"key{n}.kernel", (n, n))
    store.limit = entries(tmp_path)[0].stat().st_size * 5 // 2
    assert store.get("key0")  # used now, so younger than the rest
    store.trim()
    assert [p.stem for p in entries(tmp_path)] == ["key0", "key3"]
    assert store.clear() == 2
    assert store.entries() == []


def test_a_folder_that_cannot_be_written_costs_nothing_but_the_entry(tmp_path):
    (tmp_path / "file").write_text("no folder")
    assert uses(built(tmp_path / "file")) == (0, 1)


def test_where_it_is(tmp_path, monkeypatch):
    for off in ("off", "0", "OFF"):
        monkeypatch.setenv("SELFBYOC_CACHE", off)
        assert folder() is None
    monkeypatch.setenv("SELFBYOC_CACHE", str(tmp_path))
    assert folder() == tmp_path
    monkeypatch.delenv("SELFBYOC_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert folder() == tmp_path / "xdg/selfbyoc"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert folder().parts[-2:] == (".cache", "selfbyoc")


def test_off_by_argument(tmp_path, monkeypatch):
    monkeypatch.setenv("SELFBYOC_CACHE", str(tmp_path))
    assert built(False).cache is None
    assert entries(tmp_path) == []
    assert uses(built(True)) == (0, 1)
    assert len(entries(tmp_path)) == 2


def test_what_was_loaded_can_be_exported(tmp_path):
    args = random_args(CASE, 0)
    for _ in range(2):
        library = built(tmp_path / "cache")
    assert uses(library) == (1, 0)
    library.export_library(tmp_path / "model.so")
    again = selfbyoc.load(tmp_path / "model.so", library)
    np.testing.assert_array_equal(again(args["x"])[0], library(args["x"])[0])


def test_threads_of_one_process_share_it(tmp_path):
    """Partitioned once: on Relax the Python class that makes models, TVM's BlockBuilder, keeps its
    state for all threads in one place.
    """
    args = random_args(CASE, 0)
    mod = selfbyoc.partition_for_tefuse(model(dense, CASE, args), composites=[dense])
    found = []

    def work():
        found.append(selfbyoc.build(mod, cache=tmp_path)(args["x"])[0])

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for result in found:
        np.testing.assert_allclose(result, reference(args), rtol=1e-4, atol=1e-4)
    assert len(found) == 3
    assert len(entries(tmp_path)) == 2
    assert [p.name for p in tmp_path.iterdir() if p.suffix != ".kernel"] == ["secret"]


PROGRAM = """
import sys
sys.path.insert(0, {tests!r})
import test_cache
print(*test_cache.uses(test_cache.built({place!r})))
"""


def test_processes_share_it(tmp_path):
    """Two at once, and one after them, which finds what they left."""
    text = PROGRAM.format(tests=os.path.dirname(__file__), place=str(tmp_path))
    command = [sys.executable, "-c", text]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for process in both:
        assert process.communicate(timeout=120)[0].split()[0] in "01"
        assert process.returncode == 0
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.split() == ["1", "0"]


def test_the_command_lists_and_clears(tmp_path, monkeypatch, capsys):
    from selfbyoc.__main__ import main

    monkeypatch.setenv("SELFBYOC_CACHE", str(tmp_path))
    built(True)
    assert main(["cache"]) == 0
    listed = capsys.readouterr().out
    assert "dense" in listed
    assert str(tmp_path) in listed
    assert main(["cache", "--clear"]) == 0
    assert entries(tmp_path) == []
    monkeypatch.setenv("SELFBYOC_CACHE", "off")
    assert main(["cache"]) == 0
    assert "off" in capsys.readouterr().out


def test_levels_and_op_info_do_not_come_from_it(tmp_path, monkeypatch):
    """What looks into kernels schedules them anew, so a hit hides nothing from it."""
    monkeypatch.setenv("SELFBYOC_CACHE", str(tmp_path))
    built(True)
    args = random_args(CASE, 0)
    mod = selfbyoc.partition_for_tefuse(model(dense, CASE, args), composites=[dense])
    assert selfbyoc.melting(mod).kernels
    assert selfbyoc.verify(mod).ok


def test_loaded_kernels_are_given_back(tmp_path):
    """Memory is flat over builds and calls; 0.27's own loader keeps 1 MB of each kernel."""
    x = np.ones((3, 17), "float32")
    parted = partition_for_tefuse(emit(lambda x: op.softmax(x), {"x": ((3, 17), "float32")}))

    def rounds(count):
        for _ in range(count):
            library = selfbyoc.build(parted, cache=tmp_path)
            library(x)
        assert len(library.cache.hits) == 1
        del library
        gc.collect()
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

    rounds(5)
    before = rounds(5)
    assert rounds(10) - before < 2e6  # bytes; it was 9e6
