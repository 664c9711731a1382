"""One library of a graph: for these sizes, with these weights."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from operator import attrgetter, is_, itemgetter

import torch
from torch.utils._python_dispatch import _disable_current_modes

from ...errors import InputError, SelfbyocError, one_line
from ...models.from_torch import imported
from ..build import build
from ..library import Library, Session
from ..sizes import IndexPlace
from .changes import Samples, contents, holders, written_uncounted
from .constants import with_constants
from .functional import ByPyTorch
from .options import Options
from .results import Results, rounding
from .sizes import Open

_BELOW = 63  # TVM's kernels read at multiples of 64 bytes
# Of a call's tensors: numbers that are indices, the least and the largest that they may be.
IndexBounds = Callable[[Sequence[torch.Tensor]], tuple[torch.Tensor, int, int]]
_version, _pointer = attrgetter("_version"), torch.Tensor.data_ptr


class Specialised:
    """A library that is given what is left of a graph's inputs: those that are neither a size nor a
    weight that it holds.
    """

    def __init__(
        self,
        module: torch.fx.GraphModule,
        given: Sequence[torch.Tensor | int],
        weights: Sequence[int],
        options: Options,
        sizes: Open | None = None,
    ) -> None:
        self._module = module
        self._allowed = rounding(module) if options.compare else None
        self._by_pytorch = ByPyTorch(module)
        self._weights = _picking(weights)
        self.holds = self._weights(given)
        self._state = self._state_now()
        self._statistics = written_uncounted(self.holds)
        self._were = contents(self._statistics)
        self._samples = Samples(self.holds)
        numbers = [n for n, v in enumerate(given) if not isinstance(v, torch.Tensor)]
        open_ = {} if sizes is None else sizes.sizes
        fixed = {n: given[n] for n in numbers if n not in open_}
        fixed |= dict(zip(weights, self.holds, strict=True))
        counts = () if sizes is None else sizes.counts
        live = [n for n in range(len(given)) if n in counts or not (n in fixed or n in open_)]
        self._live = _picking(live, sizes)
        self._executors = threading.local()
        # aot_autograd watches the first call by a mode of its own, in which nothing is exported.
        with torch.inference_mode(False), torch.no_grad(), _disable_current_modes():
            tensors = [tensor.detach() for tensor in self._live(given)]
            equal = [] if sizes is None else list(sizes.places.values())
            dims = None if sizes is None else sizes.dims(live)
            bare = with_constants(module, fixed, open_, equal)
            self.library = _library(bare, tensors, options, dims)
        self._indices = _indices(self.library)
        self._results = self._compared(given)
        holders.add(self)

    def _compared(self, given: Sequence[torch.Tensor | int]) -> Results:
        """How the results lie for these inputs. Raises InputError where they are not PyTorch's."""
        with torch.inference_mode(False), torch.no_grad(), _disable_current_modes():
            expected = self._by_pytorch(*given)
            # The calls differ in memory where it is the library's to choose.
            live = [_readable(tensor.detach()) for tensor in self._live(given)]
            calls = [self._session()(*live) for _ in range(2)]
            return Results(expected, calls, live, self._allowed)

    def fits(self, given: Sequence[torch.Tensor | int]) -> bool:
        """Whether these are the weights that it holds, and nobody wrote them since."""
        return all(map(is_, self._weights(given), self.holds)) and not self.is_changed()

    def serves(self, given: Sequence[torch.Tensor | int]) -> bool:
        """Whether it may be called with these at once."""
        return self.fits(given)

    def is_changed(self) -> bool:
        """Whether somebody wrote the weights, or gave them other memory."""
        # In this order: what they hold is read where their memory was.
        if self._state_now() != self._state or contents(self._statistics) != self._were:
            return True
        return self._samples.are_other()

    def _state_now(self) -> tuple[list[int], list[int]]:
        return list(map(_version, self.holds)), list(map(_pointer, self.holds))

    def __call__(self, given: Sequence[torch.Tensor | int]) -> list[torch.Tensor | int]:
        """The graph's results. Where an index is none, PyTorch says so: a library would read the
        nearest row that is there.
        """
        if self._indices and _are_beyond(self._indices, self._live(given)):
            return list(self._by_pytorch(*given))
        session = self._session()
        # Not by a call of `_readable` for each: half a microsecond of the two that all this takes.
        found = session(*[
            t if not t.data_ptr() & _BELOW and t.is_contiguous() else _readable(t)
            for t in self._live(given)
        ])  # fmt: skip
        results = self._results_for(given)
        return found if results.are_plain else results.of(found)

    def _results_for(self, given: Sequence[torch.Tensor | int]) -> Results:
        return self._results

    def _session(self) -> Session:
        """This thread's executor."""
        mine = self._executors
        if not hasattr(mine, "session"):
            mine.session = self.library.session()
        found: Session = mine.session
        return found


def _indices(library: Library) -> list[IndexBounds]:
    """The inputs that are indices: which numbers of these tensors, their least and largest one."""
    names = [name for name, _, _ in library.inputs]

    def of_place(place: IndexPlace) -> IndexBounds:
        position, is_signed, column, count, of, ignored = place

        def found(live: Sequence[torch.Tensor]) -> tuple[torch.Tensor, int, int]:
            part = live[position] if column is None else live[position].select(*column)
            part = part if ignored is None else part[part != ignored]
            most = live[of[0]].shape[of[1]] if of is not None else count or 0
            return part, -most if is_signed else 0, most - 1

        return found

    def of_input(place: int, low: int, high: int) -> IndexBounds:
        return lambda live: (live[place], low, high)

    known = [of_input(names.index(name), *ends) for name, ends in library.index_bounds.items()]
    return [*known, *map(of_place, library.index_places)]


def _are_beyond(indices: Sequence[IndexBounds], live: Sequence[torch.Tensor]) -> bool:
    """Whether a number is no index of anything."""
    for index in indices:
        numbers, low, high = index(live)
        if numbers.numel():
            least, largest = numbers.aminmax()
            if int(least) < low or int(largest) > high:
                return True
    return False


def _picking(
    places: Sequence[int], sizes: Open | None = None
) -> Callable[[Sequence[torch.Tensor | int]], Sequence[torch.Tensor]]:
    """What takes the arguments at these places, as quickly as Python can."""
    pick: Callable[[Sequence[torch.Tensor | int]], Sequence[torch.Tensor]] = (
        itemgetter(*places)
        if len(places) > 1  # it would give one by itself
        else lambda given: [given[n] for n in places]
    )
    if sizes is None or not sizes.counts:
        return pick
    return lambda given: pick(sizes.sized(given))


def _readable(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor, or a copy where TVM could not read it; PyTorch's own memory is aligned."""
    if not tensor.data_ptr() & _BELOW and tensor.is_contiguous():
        return tensor
    return tensor.clone(memory_format=torch.contiguous_format)


def _library(
    module: torch.fx.GraphModule,
    live: Sequence[torch.Tensor],
    options: Options,
    dims: Sequence[dict[int, torch.export.Dim] | None] | None,
) -> Library:
    """Import and build; every error as one of ours."""
    try:
        mod = imported(module, live, bare=True, dims=dims)
        library = build(mod, **options.for_build())
    except (SelfbyocError, Warning):  # a warning where the user, or `EverySize`, makes it an error
        raise
    except Exception as err:  # TVM's own, of ops that it does not lower
        raise InputError(f"TVM does not build it: {one_line(err)}") from err
    told = [(list(shape), dtype) for _, shape, dtype in library.inputs]
    wanted = [
        ([None if axis in (opened or ()) else extent for axis, extent in enumerate(t.shape)], dtype)
        for t, opened in zip(live, dims or [None] * len(live), strict=True)
        if (dtype := str(t.dtype).removeprefix("torch."))
    ]
    if told != wanted:
        raise InputError(f"TVM's importer has other inputs: {told}, expected {wanted}")
    return library
