"""The HTML page as a browser shows it: headless Chromium, where it is installed. All pages and
sizes are frames of one document, so that the browser starts once.
"""

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from html import unescape
from pathlib import Path

import pytest
from harness import served

import selfbyoc
from selfbyoc import emit, op
from selfbyoc.analysis.explain.grouping import left
from selfbyoc.commands.page.page import Page, render
from selfbyoc.models.onnx_model import graph_of
from selfbyoc.tvm import make_target

sys.path.insert(0, str(Path(__file__).parents[3] / "tools"))
from browser import FLAGS, cannot_show, chromium  # isort: skip

pytest.importorskip("pygraphviz")

DESK, PHONE = (1440, 900), (390, 844)
LONG = "a_module_with_a_long_name." * 5
# Tells what the page looks like once it stands; a frame of a file cannot be read from outside.
PROBE = """<script>addEventListener("load", () => setTimeout(() => {
  const box = e => {
    const b = e.getBoundingClientRect();
    return [b.left, b.top, b.right, b.bottom];
  };
  const shown = [...document.querySelectorAll("aside, .kernel")].filter(e => e.offsetParent);
  const parts = shown.flatMap(e => [...e.querySelectorAll("*")]).filter(e => !e.closest("svg"));
  const letters = [...svg.querySelectorAll("text")], found = svg.querySelector(".found");
  parent.postMessage({
    name, width: innerWidth, wide: document.documentElement.scrollWidth - innerWidth,
    beyond: parts.filter(e => box(e)[2] > innerWidth + 0.5).length,
    page: getComputedStyle(document.documentElement).backgroundColor,
    ink: getComputedStyle(letters[0]).fill,
    panels: shown.map(e => e.id || "list"), panel: box(shown[0]), graph: box(main),
    smallest: Math.min(...letters.map(t => t.getBoundingClientRect().height)),
    view: svg.parentElement.id, count: count.value, found: found && box(found),
    on: document.querySelectorAll(".on").length, nodes: nodes().length,
  }, "*");
}, 200));</script>"""
HARNESS = """<!DOCTYPE html><pre id="told"></pre><script>
const told = {}, pre = document.getElementById("told");
addEventListener("message", e => {
  told[e.data.name] = e.data;
  pre.textContent = JSON.stringify(told);
});
</script>"""


@dataclass(frozen=True)
class View:
    """A page, a state of it, and how it is looked at."""

    page: str
    fragment: str = ""
    size: tuple[int, int] = DESK
    scheme: str = "light"

    @property
    def name(self):
        return f"{self.page} {self.fragment} {self.size} {self.scheme}"

    @property
    def frame(self):
        width, height = self.size
        style = f"width:{width}px;height:{height}px;border:0;color-scheme:{self.scheme}"
        url = f"{self.page}.html#{self.fragment}"
        return f'<iframe name="{self.name}" src="{url}" style="{style}"></iframe>'


def convolutions(x, w, v):
    """A chain, and branches that are concatenated."""
    y = op.relu(op.conv2d(op.relu(op.conv2d(x, w, padding=1)), w, padding=1))
    return op.log(op.concatenate([op.relu(op.conv2d(y, v)) for _ in range(6)], axis=1))


def encoder(x, w, b):
    """Rows through two dense layers and a norm, and shape ops between them."""
    for _ in range(4):
        y = op.gelu(op.bias_add(op.dense(x, w), b))
        y = op.reshape(
            op.transpose(op.reshape(y, shape=(4, 8, 64)), axes=(1, 0, 2)), shape=(32, 64)
        )
        x = op.add(op.dense(y, w), x)
    return op.softmax(x)


def deep(x, w):
    """Some 400 ops."""
    for _ in range(100):
        x = op.add(op.log(op.abs(op.relu(op.conv2d(x, w, padding=1)))), x)
    return x


NETWORKS = {
    "convolutions": (convolutions, {"x": (1, 8, 12, 12), "w": (8, 8, 3, 3), "v": (4, 8, 1, 1)}),
    "encoder": (encoder, {"x": (32, 64), "w": (64, 64), "b": (64,)}),
    "deep": (deep, {"x": (1, 4, 8, 8), "w": (4, 4, 3, 3)}),
}
SIZES = [
    View(page, fragment, size)
    for page in NETWORKS
    for fragment in ("", "k0")
    for size in (DESK, PHONE)
]
SCHEMES = [
    View("encoder", scheme="dark"),
    View("encoder", "scheme=dark"),
    View("encoder", "view=ops", PHONE, "dark"),
]
STATES = [View("deep", "q=conv2d_77"), View("deep", "view=ops&q=log"), View("encoder", "q=nothing")]


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """What each view told."""
    served(cannot_show())
    folder = tmp_path_factory.mktemp("pages")
    target = make_target({"kind": "llvm", "mcpu": "cascadelake", "num-cores": 2})
    for name, (program, shapes) in NETWORKS.items():
        mod = emit(program, shapes)
        parted = selfbyoc.partition_for_tefuse(mod, target=target)
        report = selfbyoc.report(parted)
        melted = None if name == "deep" else selfbyoc.melting(parted, target)
        html = render(Page(LONG + name, "A test.", left(report)), graph_of(mod), report, melted)
        html = html.replace("</body>", f"{PROBE}</body>")
        (folder / f"{name}.html").write_text(html, encoding="utf-8")
    frames = "".join(view.frame for view in (*SIZES, *SCHEMES, *STATES))
    harness = folder / "all.html"
    harness.write_text(HARNESS + frames, encoding="utf-8")
    flags = [*FLAGS, "--virtual-time-budget=20000", f"--user-data-dir={folder / 'profile'}"]
    done = subprocess.run(
        [chromium(), *flags, "--dump-dom", harness.as_uri()],
        capture_output=True, text=True, timeout=200, check=True,
        env={**os.environ, "HOME": str(folder)},
    )  # fmt: skip
    told = re.search('<pre id="told">(.*?)</pre>', done.stdout, re.DOTALL)
    return json.loads(unescape(told[1]))


@pytest.mark.parametrize("view", SIZES, ids=lambda view: view.name)
def test_nothing_is_clipped(view, seen):
    """Not by the window, on a phone or a desk, with a panel or the lists."""
    told = seen[view.name]
    assert told["width"] == view.size[0]
    assert told["wide"] <= 0
    assert told["beyond"] == 0
    assert told["panels"] == ([view.fragment] if view.fragment else ["list"])


@pytest.mark.parametrize("view", SIZES, ids=lambda view: view.name)
def test_a_panel_is_beside_the_graph_and_not_over_it(view, seen):
    """Left of it; on a phone below it."""
    told = seen[view.name]
    (_, top, right, _), (start, _, end, bottom) = told["panel"], told["graph"]
    assert right <= start + 1 if view.size == DESK else top >= bottom - 1
    assert end - start > 300
    assert bool(told["on"]) == bool(view.fragment)


@pytest.mark.parametrize("view", SIZES, ids=lambda view: view.name)
def test_labels_are_read(view, seen):
    told = seen[view.name]
    assert told["smallest"] >= (10 if view.size == DESK else 7)
    assert told["view"] == ("kernels" if view.page == "deep" else "ops")


@pytest.mark.parametrize("view", SCHEMES, ids=lambda view: view.name)
def test_dark_mode(view, seen):
    """By what the system says, or by the address; light letters on a dark page."""
    light = seen[View("encoder").name]
    page, ink = (max(map(int, re.findall(r"\d+", seen[view.name][n]))) for n in ("page", "ink"))
    assert page < 60
    assert ink > 200
    assert light["page"] == "rgb(247, 248, 250)"


def test_search(seen):
    one, many, none = (seen[view.name] for view in STATES)
    assert one["count"] == "1 of 1"
    (left_, top, right, bottom), (start, above, end, below) = one["found"], one["graph"]
    assert start <= left_ < right <= end
    assert above <= top < bottom <= below
    assert many["count"] == "1 of 100"
    assert none["found"] is None
    assert none["count"] == f"0 of {none['nodes']}"
