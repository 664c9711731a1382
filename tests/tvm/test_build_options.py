"""LLVM's options of a build: beside a target's own, and the process's."""

import os

import numpy as np

from selfbyoc.tvm import build, get_func, make_target, target_dict, te, tensor, tvm

OPTION = "-x86-machine-combiner:bool=false"


def doubled():
    x = te.placeholder((8,), "float32", "x")
    func = te.create_prim_func([x, te.compute((8,), lambda i: x(i) * 2, name="y")])
    return tvm.IRModule({"main": func.with_attr("global_symbol", "main")})


def check(module):
    found = tensor(np.zeros(8, "float32"))
    get_func(module, "main")(tensor(np.arange(8, dtype="float32")), found)
    np.testing.assert_array_equal(found.numpy(), 2 * np.arange(8))


def test_an_option_is_beside_those_of_the_target(monkeypatch):
    seen = []
    built = build._built

    def noted(mod, target, last):
        seen.append((list(target_dict(target).get("cl-opt", ())), build._options.locked()))
        return built(mod, target, last)

    monkeypatch.setattr(build, "_built", noted)
    own = "-enable-misched:bool=true"
    target = make_target({"kind": "llvm", "cl-opt": [own]})
    check(build.build_module(doubled(), target, options=(OPTION,)))
    check(build.build_module(doubled(), target))
    assert seen == [([own, OPTION], True), ([own], False)]  # by one thread at a time


def test_a_forked_child_does_not_wait_for_threads_that_it_has_not():
    with build._options:
        child = os.fork()
        if child == 0:
            os._exit(0 if build._options.acquire(blocking=False) else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
