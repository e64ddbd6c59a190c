"""The task of a session whose items are not those of every session: some replaced, some not available; and its best list."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.kernels import inner, kernel, specialise
from ..core.state import Flags, Floats, Ints, first_arrays
from .churn import ChurnState, NewItems, replace
from .click_model import ClickModel
from .contextual.round import RoundTask, deal, draw_rounds, insert, match_places, search_candidates, show_found
from .scan import scan
from .session import bring, sessions_of_own_items
from .spaces import named_ranking
from .task import AnyTask, Batch, Sessions, Unchanged, per_stream, same_round
from .users import REWARDS

CACHED = 16_381
"""Of so many sets of items at most the best lists are kept."""


class Choice(NamedTuple):
    """The best list of the M items that are there, and the working memory to find it: m positions count, C candidates are
    sorted, s items scanned, and the best lists of n sets kept."""

    attraction: NDArray[np.float64]  # (L,) of the present items, as the model's kernels read it
    best: NDArray[np.int64]  # (K,) the best list
    optimum: NDArray[np.float64]  # (1,) its expected reward
    candidates: Annotated[Ints, "C"]  # the K most attractive available items, best first; where lists are searched all
    places: NDArray[np.int64]  # (m,) which of them stands at each counted position, where a theorem says so
    bounds: NDArray[np.float64]  # (m, m) of the search: bounds on the examination of the positions k.., decreasing
    gain: Annotated[Floats, "L"]  # of a scan, like the seven that follow
    continuation: Annotated[Floats, "L"]
    items: Annotated[Ints, "M"]  # the available items
    gain_of: Annotated[Floats, "s"]
    continuation_of: Annotated[Floats, "s"]
    ratio: Annotated[Floats, "s"]
    order: Annotated[Ints, "s"]
    values: Annotated[Floats, "s+1 m+1"]
    head: Annotated[Ints, "m"]  # working memory of the search ...
    found: Annotated[Ints, "m"]
    choice: Annotated[Ints, "m", -1]
    used: Annotated[Flags, "L"]
    keys: Annotated[Ints, "n", -1]  # the sets whose best lists are kept, as bits; -1: none; empty where they change too often
    lists: Annotated[Ints, "n K"]
    optima: Annotated[Floats, "n"]


# Left open in the templates below; `specialise` binds them to a model's kernels.
expected: Callable[..., float]
weigh: Callable[..., None]
pick: Callable[..., None]
find: Callable[..., None]


@inner
def sort_candidates(choice, mask):  # type: ignore[no-untyped-def]
    """The available items by id; and by decreasing attraction, as many as are needed, of equals the smaller id first."""
    candidates, attraction, n, n_items = choice.candidates, choice.attraction, 0, 0
    for item in range(len(mask)):
        if not mask[item]:
            continue
        choice.items[n_items] = item
        n_items += 1
        if n < len(candidates):
            n += 1
        elif attraction[candidates[n - 1]] >= attraction[item]:
            continue
        insert(candidates, n - 1, attraction, item)


@kernel
def keep(choice, parameters, reward, scratch):  # type: ignore[no-untyped-def]
    """The reference list, whatever it is worth."""


def _scan_items(choice, parameters, reward, scratch):  # type: ignore[no-untyped-def]
    weigh(parameters, reward, choice.gain, choice.continuation)
    for n in range(len(choice.items)):
        item = choice.items[n]
        choice.gain_of[n], choice.continuation_of[n] = choice.gain[item], choice.continuation[item]
    scan(choice.gain_of, choice.continuation_of, 0.0, choice.ratio, choice.order, choice.values, choice.found)
    for k in range(len(choice.found)):
        choice.found[k] = choice.items[choice.found[k]]
    show_found(choice)


def _find(choice, parameters, mask, reward, cutoff, scratch):  # type: ignore[no-untyped-def]
    """Write the best list of the available items and what it is worth; ``mask`` is ``(L,)``."""
    n_kept, bits, place = len(choice.keys), 0, 0
    if n_kept > 0:
        for item in range(len(mask)):
            bits = 2 * bits + mask[item]
        place = bits if bits < n_kept else bits % n_kept
        if choice.keys[place] == bits:
            for k in range(len(choice.best)):
                choice.best[k] = choice.lists[place, k]
            choice.optimum[0] = choice.optima[place]
            return
    sort_candidates(choice, mask)
    pick(choice, parameters, reward, scratch)
    choice.optimum[0] = expected(parameters, choice.best, reward, cutoff, scratch)
    if n_kept > 0:
        choice.keys[place] = bits
        for k in range(len(choice.best)):
            choice.lists[place, k] = choice.best[k]
        choice.optima[place] = choice.optimum[0]


@kernel
def forget(choice):  # type: ignore[no-untyped-def]
    """Forget the best lists that are kept: an item was replaced."""
    for place in range(len(choice.keys)):
        choice.keys[place] = -1


@kernel
def deal_round(pool, drawn, parameters, rng, reward, scratch):  # type: ignore[no-untyped-def]
    deal(pool, drawn, rng)


class Present:
    """A task before the items that are there in this session; an `AnyTask`.

    Args:
        task: that of all the items, of a click model (`Task`) or of candidates that change (`RoundTask`).
        n_available: M, how many can be shown.
        reference: as in `ClickEnv`; None where regret is measured against the best list.
        new_items: the law of the items that replace others; None draws them from the original ones.
        keeps_sets: whether the best lists that took a search are kept, as long as no item is replaced.

    Attributes:
        items: ``(P, L)`` the parameters of the present items, which kernels read; those of the candidates where they change.
        find_kernel: finds the best list, ``find(choice, parameters, mask, reward, cutoff, scratch)``; None where that takes
            Python, so that no compiled loop can play the task.

    Raises:
        ValueError: the best list is known only by a search that would be too large.
    """

    def __init__(
        self,
        task: AnyTask,
        n_available: int,
        reference: ArrayLike | None = None,
        new_items: NewItems | None = None,
        *,
        keeps_sets: bool = True,
    ) -> None:
        self._task = task
        self.model: ClickModel = task.model
        self.code, self.cutoff, self.pool = task.code, task.cutoff, task.pool
        self.round: Any
        self.next_round: Callable[..., None]
        n_items, n_positions = self.model.n_items, self.model.n_positions
        names = self.model.item_parameters()
        self.items = np.array([getattr(self.model.parameters, name) for name in names]).reshape(len(names), n_items)
        self.parameters = self.model.parameters._replace(**dict(zip(names, self.items, strict=True)))
        attraction = self.items[0] if "attraction" in names else np.ones(n_items)
        best, optimum = np.arange(n_positions), np.zeros(1)
        if isinstance(task, RoundTask):
            self.round = task.round._replace(attraction=attraction, others=self.items[1:], best=best, optimum=optimum)
            self.next_round = deal_round
        else:
            self.round, self.next_round = Unchanged(np.zeros((0, 0)), optimum), same_round
        self._originals = self.items.copy()
        self.new_items = NewItems(self._originals, True) if new_items is None else new_items
        if reference is not None:
            best[:] = named_ranking("reference", reference, n_items, n_positions)
        pick, places, bounds = self._rule(n_available, reference is not None)
        searched = bool(bounds.any())
        scanned = n_available if self.model.scan_kernel is not None else 0
        self._keeps_sets = keeps_sets
        n_kept = self._sets_worth_keeping(n_available, searched)
        sizes = {"L": n_items, "K": n_positions, "M": n_available, "m": self.cutoff, "s": scanned, "n": n_kept}
        sizes["C"] = n_available if searched else n_positions
        self.choice = Choice(attraction, best, optimum, places=places, bounds=bounds, **first_arrays(Choice, sizes))
        self.find_kernel = None if pick is None else specialise(_find, pick=pick, expected=self.model.expected_kernel)
        self._kept: dict[bytes, tuple[NDArray[np.int64], float]] = {}

    def _sets_worth_keeping(self, n_available: int, searched: bool) -> int:
        """Of how many sets of items the best lists are kept: where they are sorted only if all find room, for few sets come
        again otherwise."""
        n_items = self.model.n_items
        come_again = self._keeps_sets and not isinstance(self._task, RoundTask) and n_available < n_items
        pays = n_items <= 62 if searched else 2**n_items <= CACHED
        return min(CACHED, 2**n_items) if come_again and pays else 0

    def _rule(self, n_available: int, keeps: bool) -> tuple[Any, NDArray[np.int64], NDArray[np.float64]]:
        """The kernel that picks the best list, None if Python must; the places and the bounds that it needs."""
        model, m = self.model, self.cutoff
        places, nothing = model._places(self.code, m), np.zeros((m, m))
        if keeps or places is not None:
            return (keep if keeps else match_places), np.arange(m) if places is None else places, nothing
        if model.scan_kernel is not None:
            return specialise(_scan_items, weigh=model.scan_kernel), np.full(m, -1), nothing
        if type(model)._optimal is not ClickModel._optimal:
            return None, np.full(m, -1), nothing
        lists = math.perm(n_available, m)
        if lists > model.max_search:
            raise ValueError(
                f"the best list for reward={REWARDS[self.code]!r} in a {type(model).__name__} is known only by exact search, "
                f"and {lists:.3g} lists of {m} out of {n_available} available items are more than the limit of "
                f"{model.max_search:.0e}; choose another reward kind, a smaller cutoff or fewer available items"
            )
        return specialise(search_candidates, search=model._search_kernel()), np.full(m, -1), model._bounds_of_search(m)

    @property
    def optimal_ranking(self) -> NDArray[np.int64]:
        """``(K,)`` the list that was found last."""
        return self.choice.best

    def restore(self) -> None:
        """Put the original items in the place of all that were replaced."""
        self.items[:] = self._originals
        self.forget()

    def forget(self) -> None:
        """Forget the best lists that are kept: an item was replaced."""
        forget(self.choice)
        self._kept.clear()

    def find(self, mask: NDArray[np.bool_], scratch: NDArray[np.float64]) -> None:
        """Find the best list of the available items, ``(L,)``, in Python."""
        key = mask.tobytes()
        if key not in self._kept or not self._keeps_sets:
            items = np.flatnonzero(mask)
            names = self.model.item_parameters()
            model = self.model.with_items(**dict(zip(names, self.items[:, items], strict=True)))
            best = items[model.optimal_ranking(REWARDS[self.code], self.cutoff)]
            value = self.model.expected_kernel(self.parameters, best, self.code, self.cutoff, scratch)
            self._kept[key] = best, float(value)
        self.choice.best[:], self.choice.optimum[0] = self._kept[key]

    def batch(self, size: int) -> PresentBatch:
        """A present for each stream."""
        return PresentBatch([self], size)


def _find_all(  # type: ignore[no-untyped-def]
    every, shared, items, choice, parameters, masks, streams, reward, cutoff, scratch, best, optimum
):
    """The best lists of some of every n-th stream from the first on, ``every = (first, n)``."""
    for b in range(every[0], len(items), every[1]):
        if streams[b]:
            bring(shared, items[b])
            find(choice, parameters, masks[b], reward, cutoff, scratch)
            for k in range(best.shape[1]):
                best[b, k] = choice.best[k]
            optimum[b] = choice.optimum[0]


class PresentBatch(Batch):
    """The present items of B streams, dealt to several tasks in turn.

    Args:
        presents: stream b has number b mod n.
        size: B.
        before: the batch before a change of users; streams whose task has not changed keep their items.
    """

    def __init__(self, presents: Sequence[Present], size: int, before: PresentBatch | None = None) -> None:
        n, first = len(presents), presents[0]
        self.presents = presents
        self.items = per_stream(first.items, size)
        """``(B, P, L)``"""
        for i, present in enumerate(presents):
            self.items[i::n] = present.items
            if before is not None and present is before.presents[i]:
                self.items[i::n] = before.items[i::n]
        self._features = per_stream(first.round.features, size)
        self.optimal_ranking, self.optimal_reward = (
            per_stream(first.choice.best, size),
            per_stream(first.choice.optimum, size)[:, 0],
        )
        self._scratch = np.empty(first.model.n_positions + 1)
        self._play = [sessions_of_own_items(present.model) for present in presents]

    def draw(self, rng: np.random.Generator, only_ended: bool = False) -> None:
        """Draw the next candidates, where they change; what their best lists are, `find` says."""
        if self._features.size:
            for i, present in enumerate(self.presents):
                specialise(draw_rounds, next_round=present.next_round, counted=True)(
                    (i, len(self.presents)), present.pool, present.round, present.parameters, rng, present.code,
                    self._scratch, self._features, self.items, self.optimal_ranking, self.optimal_reward,
                )  # fmt: skip

    def replace(self, churn: ChurnState, sessions: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Replace items after sessions, perhaps; on which streams one was."""
        churn.replaced[:] = -1
        for b in np.flatnonzero(churn.uniforms[:, 0] < churn.rate):
            present = self.presents[int(b) % len(self.presents)]
            replace(churn, b, sessions[b], present.new_items, self.items[b])
            present.forget()
        return churn.replaced >= 0

    def find(self, masks: NDArray[np.bool_], streams: NDArray[np.bool_]) -> None:
        """Find the best lists of the available items, ``(B, L)``, on some streams."""
        if not streams.any():
            return
        n = len(self.presents)
        for i, present in enumerate(self.presents):
            if present.find_kernel is not None:
                specialise(_find_all, find=present.find_kernel)(
                    (i, n), present.items, self.items, present.choice, present.parameters, masks, streams,
                    present.code, present.cutoff, self._scratch, self.optimal_ranking, self.optimal_reward,
                )  # fmt: skip
                continue
            for b in range(i, len(masks), n):
                if streams[b]:
                    present.items[:] = self.items[b]
                    present.find(masks[b], self._scratch)
                    self.optimal_ranking[b], self.optimal_reward[b] = present.choice.best, present.choice.optimum[0]

    def play(self, sessions: Sessions) -> None:
        """As `Batch.play`."""
        for i, (present, play) in enumerate(zip(self.presents, self._play, strict=True)):
            play(
                (i, len(self.presents)), present.parameters, present.code, present.cutoff, self._scratch,
                present.items, self.items, *sessions,
            )  # fmt: skip

    def observe(self, clicks: NDArray[np.int8]) -> Any:
        """The clicks, and the features of the candidates, where they change."""
        return {"clicks": clicks, "features": self._features.copy()} if self._features.size else clicks
