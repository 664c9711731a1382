// Two drawings of one graph, of which one is shown; the window scrolls over it as over any page.
const main = document.querySelector("main"), nav = document.querySelector("nav"), frame = nav.querySelector("i");
const q = document.getElementById("q"), count = document.querySelector("output"), root = document.documentElement;
const asked = new URLSearchParams(location.hash.slice(1)); // #q=conv, #view=ops, #scheme=dark
let svg, zoom, found = [], at = -1;

function show(view) {
  for (const b of document.querySelectorAll("[data-view]")) {
    b.setAttribute("aria-pressed", b.dataset.view === view);
    document.getElementById(b.dataset.view).hidden = b.dataset.view !== view;
  }
  svg = document.querySelector(`#${view} svg`);
  svg.width0 ??= parseFloat(svg.getAttribute("width"));
  const least = innerWidth < 760 ? 0.62 : 0.85; // of the letters' size: all the graph's width, if they are legible then
  scale(Math.min(1, Math.max(least, (main.clientWidth - 48) / svg.width0)), 0);
  search();
}

function scale(to, y = (main.scrollTop + main.clientHeight / 2) / main.scrollHeight) {
  const x = (main.scrollLeft + main.clientWidth / 2) / main.scrollWidth;
  zoom = Math.min(4, Math.max(0.02, to));
  svg.style.width = zoom * svg.width0 + "px";
  main.scrollTo(x * main.scrollWidth - main.clientWidth / 2, y * main.scrollHeight - main.clientHeight / 2);
  place();
}

function fit() {
  const { width, height } = svg.viewBox.baseVal;
  scale(Math.min((main.clientWidth - 48) / width, (main.clientHeight - 48) / height) * width / svg.width0);
}

function place() { // the frame in the narrow overview
  frame.style.top = 100 * main.scrollTop / main.scrollHeight + "%";
  frame.style.height = 100 * main.clientHeight / main.scrollHeight + "%";
}

function overview() {
  const small = svg.cloneNode(true);
  small.removeAttribute("style");
  small.setAttribute("preserveAspectRatio", "none");
  nav.replaceChildren(small, frame);
  place();
}

const nodes = () => [...svg.querySelectorAll(".node")];
const text = n => (n.text ??= [n.textContent, ...[...n.querySelectorAll("a")].map(a => a.getAttribute("xlink:title"))].join(" ").toLowerCase());

function search() {
  const words = q.value.toLowerCase().split(/\s+/).filter(Boolean);
  found = words.length ? nodes().filter(n => words.every(w => text(n).includes(w))) : [];
  for (const n of nodes()) n.classList.toggle("found", found.includes(n)), n.classList.remove("here");
  svg.classList.toggle("searching", words.length > 0);
  count.value = words.length ? `${found.length} of ${nodes().length}` : "";
  at = -1;
  overview();
}

function go(n) {
  const b = n.getBoundingClientRect(), m = main.getBoundingClientRect();
  main.scrollBy(b.x + b.width / 2 - m.x - m.width / 2, b.y + b.height / 2 - m.y - m.height / 2);
}

function step(by) {
  if (!found.length) return;
  found[at]?.classList.remove("here");
  at = (at + by + found.length) % found.length;
  found[at].classList.add("here");
  count.value = `${at + 1} of ${found.length}`;
  go(found[at]);
}

function mark() { // the kernel whose panel is open
  for (const n of document.querySelectorAll(".on")) n.classList.remove("on");
  const mine = location.hash.length > 1 ? [...svg.querySelectorAll(`a[*|href="${CSS.escape(location.hash)}"]`)] : [];
  const of = mine.map(a => a.closest(".cluster, .node"));
  for (const n of of) n.classList.add("on");
  const m = main.getBoundingClientRect(), seen = n => { const b = n.getBoundingClientRect(); return b.bottom > m.top && b.top < m.bottom; };
  if (of.length && !of.some(seen)) go(of[0]);
  place();
}

for (const b of document.querySelectorAll("[data-view]")) b.onclick = () => { show(b.dataset.view); mark(); };
for (const b of document.querySelectorAll("[data-zoom]")) b.onclick = () => b.dataset.zoom === "fit" ? fit() : scale(zoom * b.dataset.zoom);
for (const a of document.querySelectorAll("[data-at]")) a.onclick = () => {
  const n = nodes().find(n => text(n).split(/\s+/).includes(a.dataset.at.toLowerCase()));
  if (n) requestAnimationFrame(() => go(n));
};
document.getElementById("scheme").onclick = () => {
  const dark = getComputedStyle(root).colorScheme === "dark" || (root.dataset.scheme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  root.dataset.scheme = dark ? "light" : "dark";
};
q.oninput = () => { search(); if (!document.querySelector(":target")) history.replaceState(null, "", q.value ? "#q=" + encodeURIComponent(q.value) : "#_"); };
document.querySelector("form").onsubmit = e => { e.preventDefault(); step(1); };
q.onkeydown = e => { if (e.key === "ArrowDown" || e.key === "ArrowUp") { e.preventDefault(); step(e.key === "ArrowDown" ? 1 : -1); } };
main.addEventListener("wheel", e => { if (e.ctrlKey) { e.preventDefault(); scale(zoom * Math.exp(-e.deltaY / 300)); } }, { passive: false });
let from = 0; // a drag moves the graph; it is no click on what it began at
main.onpointerdown = () => { from = 0; };
main.onpointermove = e => { if (e.pointerType === "mouse" && e.buttons === 1) { from += Math.abs(e.movementX) + Math.abs(e.movementY); main.scrollBy(-e.movementX, -e.movementY); } };
main.addEventListener("click", e => { if (from > 6) e.preventDefault(); }, true);
main.ondragstart = () => false;
main.addEventListener("scroll", place);
nav.onclick = e => main.scrollTo({ top: e.offsetY / nav.clientHeight * main.scrollHeight - main.clientHeight / 2 });
addEventListener("resize", place);
addEventListener("hashchange", mark);
addEventListener("keydown", e => { if (e.key === "Escape" && location.hash) location.hash = "_"; if (e.key === "/" && e.target !== q) { e.preventDefault(); q.focus(); } });

if (asked.get("scheme")) root.dataset.scheme = asked.get("scheme");
q.value = asked.get("q") ?? "";
show(asked.get("view") ?? main.dataset.first);
if (found.length) step(1);
mark();
