"""The innermost loops of an assembly text, and what one turn of each computes.

Reads what LLVM writes: AT&T syntax for x86-64, and AArch64. A loop is a label that a later line
jumps back to; it is innermost where no other loop lies between. Loops are weighed by their
multiply-adds and by how deep they lie, as the text does not say how often one runs.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from .products import (
    FLOATS,
    Product,
    multiply_adds,
    name_of,
    operands_of,
    product_of,
    vector_bytes,
)

_LABEL = re.compile(r"^(?!\.Ltmp)(\.?\w+):")
_JUMP = re.compile(r"^(j\w+|b|b\.\w+|cbn?z|tbn?z)\s+(?:.*,\s*)?(\.?\w+)$")
_SUM = re.compile(r"vfn?m(add|sub)\d+ps|fml[as]|v?addps|fadd")
_ELEMENT = re.compile(r"broadcastss|\{1to\d+\}|shufps|\.s\[\d\]|ld1r")
_MOVE = re.compile(r"v?mov[au]ps|mov")
_STACK = re.compile(r"-?\d*\(%r[sb]p\)|\[(sp|x29)(, #-?\d+)?\]")
_SPILL_STORE = re.compile(r"v?mov([au]ps|dq[au](64)?)\t%[xyz]mm\d+, |st[rp]\tq")
_VECTOR_REGISTER = re.compile(r"%[xyz]mm(\d+)|\b[vq](\d+)\b")
_DEEPER = 8  # how many turns a loop of unknown length is taken to make


@dataclass(frozen=True)
class Loop:
    """An innermost loop: its instructions, how many loops it lies in, itself counted, and what one
    turn computes: by most of its products, as many multiply-adds, of floats or of levels.
    """

    lines: tuple[str, ...]
    depth: int
    spills: int = 0  # times that a turn stores or loads a register's place on the stack
    product: Product = field(init=False)
    multiply_adds: int = field(init=False)
    vector_bytes: int = field(init=False)

    def __post_init__(self) -> None:
        kinds = Counter(filter(None, map(product_of, self.lines)))
        product = max(kinds, key=kinds.__getitem__, default=FLOATS)
        products = [line for line in self.lines if product_of(line) is product]
        object.__setattr__(self, "product", product)
        object.__setattr__(self, "multiply_adds", sum(map(multiply_adds, products)))
        object.__setattr__(self, "vector_bytes", max(map(vector_bytes, products), default=0))

    @property
    def weight(self) -> float:
        """How much of the kernel's work is taken to be here."""
        return self.multiply_adds * float(_DEEPER**self.depth)

    @property
    def kind(self) -> tuple[int, bool]:
        """What copies of a loop share: how much a turn computes, and whether it multiplies a vector
        by one element, as a matrix product does and a window of channels does not.
        """
        return self.multiply_adds, any(map(_ELEMENT.search, self.lines))

    @property
    def is_polynomial(self) -> bool:
        """Whether sums are multiplied again, as in exp; a product's only grow."""
        return _multiplied_sums(self.lines) * 4 > sum(map(_is_of_floats, self.lines))


def innermost(text: str) -> list[Loop]:
    """The innermost loops, in the order of the text."""
    lines, ranges = _ranges(text)
    places = {_place(line) for line in lines if _SPILL_STORE.match(line)} - {""}
    found = []
    for first, last in ranges:
        around = sum(a <= first and last <= b for a, b in ranges)
        inside = any(first <= a and b <= last for a, b in ranges if (a, b) != (first, last))
        if not inside:
            body = tuple(lines[first : last + 1])
            found.append(Loop(body, around, sum(_is_spill(line, places) for line in body)))
    return found


def hot(text: str, count: int = 1) -> list[Loop]:
    """The `count` heaviest loops that compute products, in the order of the text. Copies of one
    loop (for a tail, or unrolled around) count as one.
    """
    return _heaviest([loop for loop in innermost(text) if not loop.is_polynomial], count)


def around_exp(text: str) -> list[Loop]:
    """The heaviest product before the first loop of exp, and the heaviest after it."""
    loops = innermost(text)
    exp = next((n for n, loop in enumerate(loops) if loop.is_polynomial), None)
    if exp is None:  # unrolled around a product, or after it
        return hot(text, 2)
    products = [[x for x in part if not x.is_polynomial] for part in (loops[:exp], loops[exp:])]
    return [loop for part in products for loop in _heaviest(part, 1)]


def _heaviest(loops: list[Loop], count: int) -> list[Loop]:
    """Copies side by side are one loop; so are those further apart, unless too few are left."""
    runs: list[Loop] = []
    for loop in filter(lambda x: x.multiply_adds, loops):
        if not runs or runs[-1].kind != loop.kind:
            runs.append(loop)
        elif loop.depth > runs[-1].depth:
            runs[-1] = loop
    alike: dict[tuple[int, bool], Loop] = {}
    for loop in runs:
        known = alike.get(loop.kind)
        if known is None or loop.depth > known.depth:
            alike[loop.kind] = loop
    left = list(alike.values()) if len(alike) >= count else runs
    heaviest = sorted(left, key=lambda loop: -loop.weight)[:count]
    return [loop for loop in left if any(loop is other for other in heaviest)]


def operands(line: str) -> list[str]:
    """An instruction's operands as they are written."""
    return [part.strip() for part in re.split(r",(?![^(\[{]*[)\]}])", operands_of(line))]


def _ranges(text: str) -> tuple[list[str], list[tuple[int, int]]]:
    """The instructions, and the first and last one of each loop."""
    lines: list[str] = []
    labels: dict[str, int] = {}
    last: dict[int, int] = {}
    for raw in text.splitlines():
        label = _LABEL.match(raw)
        if label:
            labels[label[1]] = len(lines)
            continue
        line = re.split(r"#(?![-\d:])|//", raw)[0].strip()
        if not line or line.startswith("."):
            continue
        jump = _JUMP.match(line)
        if jump and jump[2] in labels:
            last[labels[jump[2]]] = len(lines)
        lines.append(line)
    return lines, sorted(last.items())


def _is_of_floats(line: str) -> bool:
    return product_of(line) is FLOATS


def _place(line: str) -> str:
    """The fixed place on the stack that a line names; nothing where it names none."""
    found = _STACK.search(line)
    return found[0] if found else ""


def _is_spill(line: str, places: set[str]) -> bool:
    """Whether a whole vector goes to, or comes from, one of these places."""
    return _place(line) in places and bool(_VECTOR_REGISTER.search(line))


def _multiplied_sums(lines: tuple[str, ...]) -> int:
    """Multiplications of a register that holds a sum of products."""
    sums: set[str] = set()
    found = 0
    for line in lines:
        registers = [_register(operand) for operand in operands(line)]
        if not any(registers):
            continue
        written = registers[-1] if "%" in line else registers[0]
        factors = _factors(name_of(line), registers) if _is_of_floats(line) else []
        found += any(factor in sums for factor in factors if factor)
        read = registers[:-1] if "%" in line else registers[1:]
        moved = _MOVE.fullmatch(name_of(line)) and any(r in sums for r in read)
        holds = written and (moved or _SUM.fullmatch(name_of(line)))
        (sums.add if holds else sums.discard)(written)
    return found


def _register(operand: str) -> str:
    """The number of a vector register; nothing where the operand is no register."""
    found = _VECTOR_REGISTER.match(operand)
    return (found[1] or found[2]) if found else ""


def _factors(name: str, registers: list[str]) -> list[str]:
    """The two operands that are multiplied."""
    order = re.search(r"(132|213|231)", name)
    if order:
        return {"231": registers[:2], "213": registers[1:], "132": [registers[0], registers[-1]]}[
            order[1]
        ]
    if name.startswith("fm"):
        return registers[1:3]
    return registers if len(registers) == 2 else registers[:2]
