"""`tools/changed_kernels.py`: kernels of two trees."""

from scripts import tool

changed_kernels = tool("changed_kernels")
TARGET = ["llvm -mcpu=haswell -num-cores=2"]


def test_what_is_new_gone_and_changed():
    now = {"a": ("1", "x\ny"), "b": ("2", "z"), "c": ("3", "same")}
    then = {"a": ("0", "x\nw"), "c": ("3", "same"), "d": ("4", "")}
    lines = list(changed_kernels.lines_of(now, then))
    assert lines == ["changed a", "new     b", "gone    d", "1 of 3 are the same"]
    more = list(changed_kernels.lines_of(now, then, diff=True))
    assert more[1:5] == ["--- ", "+++ ", "@@ -1,2 +1,2 @@", " x"]


def test_a_kernel_is_itself_at_every_build():
    """And another one for another target."""
    one, again = (changed_kernels.of_this_tree("softmax", TARGET) for _ in range(2))
    assert len(one) > 1
    assert {key: made for key, (made, _) in one.items()} == {k: m for k, (m, _) in again.items()}
    assert "T.func_attr" in next(iter(one.values()))[1]
    other = changed_kernels.of_this_tree("softmax", ["llvm -mcpu=cascadelake -num-cores=2"])
    assert {made for made, _ in one.values()} != {made for made, _ in other.values()}
