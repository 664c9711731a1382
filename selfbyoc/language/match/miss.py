"""Why a pattern does not fit: the first difference on the way that got furthest."""

from __future__ import annotations

from dataclasses import dataclass, replace

# What kind of thing differs.
# A predicate on an attribute says which ops are meant: what it turns down is another op.
KIND, NO_OP, ATTRIBUTE, ANOTHER, CONSTANT, VALUE, INPUTS, OUTPUT, TWICE, READER = (
    "op kind", "no op", "attribute", "another op", "constant", "value", "inputs", "output",
    "op taken twice", "used outside",
)  # fmt: skip
RESULT = "the model's result"  # as who reads a value
# How near a difference is to fitting, among those that got equally far: an op is nearer than an
# input where an op is wanted, and one of the right kind nearer than one of another. One of a kind
# that the pattern has elsewhere is most often the other side of a sum or a product.
LEAF, ELSEWHERE, OTHER_KIND, RIGHT_KIND = range(4)


@dataclass(frozen=True)
class Miss:
    """One difference: where, what was wanted and what was found."""

    cause: str  # one of the names above
    where: str  # an op, an argument of the pattern, or an input of the model
    wanted: str
    found: str
    attribute: str = ""
    also: tuple[str, ...] = ()  # differences that are as near, on other ways
    fitted: int = 0  # the ops that fitted before it

    @property
    def reader(self) -> str:
        """Who uses a value of the group outside it, as reports name them."""
        if self.cause != READER:
            return ""
        return "output" if self.found == RESULT else self.found

    def __str__(self) -> str:
        return f"at {self.where}: wanted {self.wanted}, found {self.found}"


class Nearest:
    """The differences that got furthest so far, in the order in which the pattern is tried."""

    def __init__(self) -> None:
        self.score = (-1, 0)
        self.found: list[Miss] = []

    def add(self, score: tuple[int, int], miss: Miss) -> None:
        """`score`: the ops that fitted before it, and how near it is itself."""
        if score > self.score:
            self.score, self.found = score, []
        if score == self.score:
            self.found.append(miss)

    @property
    def miss(self) -> Miss | None:
        """The nearest; what the pattern's alternatives wanted at one place is put together."""
        if not self.found:
            return None
        first = self.found[0]
        same = [m for m in self.found if (m.where, m.found) == (first.where, first.found)]
        wanted = _alternatives(list(dict.fromkeys(m.wanted for m in same)))
        also = tuple(dict.fromkeys(str(m) for m in self.found if m not in same))
        return replace(first, wanted=wanted, also=also, fitted=self.score[0])


def _alternatives(wanted: list[str]) -> str:
    """`op relu`, `op clip`, `op conv2d` -> `op relu, clip or conv2d`."""
    *others, last = wanted
    if not others:
        return last
    return f"{', '.join(others)} or {last}".replace(", op ", ", ").replace(" or op ", " or ")
