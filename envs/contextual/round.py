"""One round of a contextual environment, in compiled code: a user, the candidates, and their best list.

Click models stay as they are: the attractions of the candidates are written into the array that their kernels read. Letters
as in `contextual_model`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..click_model import MAX_SEARCH, _branch_and_bound
from ..kernels import inner, kernel, specialise
from .model import ContextualModel

__all__ = ["Round", "RoundTask", "batch", "batch_sessions"]


class Round(NamedTuple):
    """The candidates of one session and their best list; and the working memory to draw them."""

    user: NDArray[np.int64]  # (1,) who meets them
    items: NDArray[np.int64]  # (L,) their numbers in the pool
    features: NDArray[np.float64]  # (L, d)
    attraction: NDArray[np.float64]  # (L,)
    best: NDArray[np.int64]  # (K,) the best list
    optimum: NDArray[np.float64]  # (1,) its expected reward
    deck: NDArray[np.int64]  # the numbers 0, 1, ... of all that a user may meet; dealt from and put back in every draw
    swaps: NDArray[np.int64]  # (L,)
    candidates: NDArray[np.int64]  # (L,) the candidates by decreasing attraction
    places: NDArray[np.int64]  # (m,) which of them stands at each counted position of the best list; -1: to be searched for
    bounds: NDArray[np.float64]  # (m, m) of the search: bounds on the examination of the positions k.., decreasing
    head: NDArray[np.int64]  # (m,) working memory of the search ...
    found: NDArray[np.int64]  # (m,)
    choice: NDArray[np.int64]  # (m,)
    used: NDArray[np.bool_]  # (L,)


@inner
def deal(pool, drawn, rng):  # type: ignore[no-untyped-def]
    """A user and L distinct candidates at random: their features, attractions and order."""
    n_items, n_user_features = len(drawn.attraction), pool.users.shape[1]
    named = len(pool.entries) > 0
    user = int(rng.random() * len(pool.users))
    first, size = 0, len(pool.items)
    if named:
        first = pool.starts[user]
        size = pool.starts[user + 1] - first
    drawn.user[0] = user
    deck = drawn.deck
    for a in range(n_items):
        swap = a + int(rng.random() * (size - a))
        drawn.swaps[a] = swap
        deck[a], deck[swap] = deck[swap], deck[a]
        item = deck[a]
        if named:
            entry = first + deck[a]
            item = pool.entries[entry]
            attraction = pool.entry_attraction[entry]
        else:
            attraction = min(max(pool.user_attraction[user] + pool.item_attraction[item], 0.0), 1.0)
        drawn.items[a] = item
        drawn.attraction[a] = attraction
        for j in range(n_user_features):
            drawn.features[a, j] = pool.users[user, j]
        for j in range(pool.items.shape[1]):
            drawn.features[a, n_user_features + j] = pool.items[item, j]
        place = a
        while place > 0 and drawn.attraction[drawn.candidates[place - 1]] < attraction:
            drawn.candidates[place] = drawn.candidates[place - 1]
            place -= 1
        drawn.candidates[place] = a
    for a in range(n_items - 1, -1, -1):  # so that a draw depends on nothing but the generator
        deck[a], deck[drawn.swaps[a]] = deck[drawn.swaps[a]], deck[a]


# Left open in the templates below; `specialise` binds them to a model's kernels.
expected: Callable[..., float]
search: Callable[..., None]
find_best: Callable[..., None]
play_session: Callable[..., tuple[float, float, int]]
next_round: Callable[..., None]


@kernel
def _match(drawn, parameters, reward, scratch):  # type: ignore[no-untyped-def]
    for k in range(len(drawn.places)):
        drawn.best[k] = drawn.candidates[drawn.places[k]]
    for k in range(len(drawn.places), len(drawn.best)):
        drawn.best[k] = drawn.candidates[k]


def _search(drawn, parameters, reward, scratch):  # type: ignore[no-untyped-def]
    search(parameters, drawn.candidates, drawn.bounds, reward, scratch, drawn.head, drawn.choice, drawn.used, drawn.found)
    for a in range(len(drawn.used)):
        drawn.used[a] = False
    for k in range(len(drawn.found)):
        drawn.best[k] = drawn.found[k]
        drawn.used[drawn.found[k]] = True
    next_best = 0
    for k in range(len(drawn.found), len(drawn.best)):
        while drawn.used[drawn.candidates[next_best]]:
            next_best += 1
        drawn.best[k] = drawn.candidates[next_best]
        next_best += 1
    for a in range(len(drawn.used)):
        drawn.used[a] = False


def _next_round(pool, drawn, parameters, rng, reward, scratch):  # type: ignore[no-untyped-def]
    deal(pool, drawn, rng)
    find_best(drawn, parameters, reward, scratch)
    drawn.optimum[0] = expected(parameters, drawn.best, reward, len(drawn.places), scratch)


def _draw(pool, drawn, parameters, rng, reward, scratch):  # type: ignore[no-untyped-def]
    next_round(pool, drawn, parameters, rng, reward, scratch)


def batch(  # type: ignore[no-untyped-def]
    pool, drawn, parameters, rng, reward, scratch, features, attractions, best, optimum
):
    """The next round of every stream of a vector environment."""
    for b in range(len(optimum)):
        next_round(pool, drawn, parameters, rng, reward, scratch)
        for a in range(len(drawn.attraction)):
            attractions[b, a] = drawn.attraction[a]
            for j in range(drawn.features.shape[1]):
                features[b, a, j] = drawn.features[a, j]
        for k in range(len(drawn.best)):
            best[b, k] = drawn.best[k]
        optimum[b] = drawn.optimum[0]


def batch_sessions(  # type: ignore[no-untyped-def]
    drawn, parameters, attractions, rankings, uniforms, clicks, examined, reward, cutoff, scratch, realised, expectation
):
    """A batch of sessions, each with attractions of its own."""
    for b in range(len(rankings)):
        for a in range(len(drawn.attraction)):
            drawn.attraction[a] = attractions[b, a]
        realised[b], expectation[b], _ = play_session(
            parameters, rankings[b], uniforms[b], clicks[b], examined[b], reward, cutoff, scratch
        )


class RoundTask:
    """What is asked of the lists of a contextual environment, and the present round; as the tasks of `ClickEnv`.

    Attributes:
        model: the base model; its kernels read the attractions of the present round.
        parameters: the first argument of its kernels.
        code, cutoff: the kernels' reward and number of counted positions.
        pool, round: what candidates are drawn from, and those drawn last.
        next_round: the kernel that draws; `draw` calls it from Python.
    """

    def __init__(self, model: ContextualModel, reward: str, cutoff: int | None) -> None:
        if not isinstance(model, ContextualModel):
            raise TypeError(f"model must be a ContextualModel, got {type(model).__name__}")
        self.model = model.base
        self.reward = reward
        self.code, self.cutoff = model.base.check_reward(reward, cutoff)
        n_items, m = model.n_items, self.cutoff
        # Candidates by decreasing attraction: where the best list follows from their order, it is the same for all rounds.
        ordered = model._with_attraction(np.linspace(1.0, 0.0, n_items))
        places = ordered._optimal(self.code, m)
        bounds = np.zeros((m, m))
        if places is None:
            lists = math.perm(n_items, m)
            if lists > MAX_SEARCH:
                raise ValueError(
                    f"the best list for reward={reward!r} in a {model.kind} is known only by exact search in each session, and "
                    f"{lists:.3g} lists of {m} out of {n_items} candidates are more than the limit of {MAX_SEARCH:.0e}; choose "
                    f"another reward kind or a smaller cutoff"
                )
            for k in range(m):
                bounds[k, : m - k] = np.sort(ordered._examination_bounds()[k:m])[::-1]
        self.pool = model.pool
        most = len(model.items) if not len(self.pool.entries) else int(np.diff(self.pool.starts).max())
        self.round = Round(
            user=np.zeros(1, np.int64),
            items=np.zeros(n_items, np.int64),
            features=np.zeros((n_items, model.n_features)),
            attraction=np.zeros(n_items),
            best=np.arange(model.n_positions),
            optimum=np.zeros(1),
            deck=np.arange(most),
            swaps=np.zeros(n_items, np.int64),
            candidates=np.zeros(n_items, np.int64),
            places=np.full(m, -1) if places is None else places,
            bounds=bounds,
            head=np.zeros(m, np.int64),
            found=np.zeros(m, np.int64),
            choice=np.full(m, -1),
            used=np.zeros(n_items, np.bool_),
        )
        self.parameters = model.base.parameters._replace(attraction=self.round.attraction)
        expected = model.base.expected_kernel
        find = _match if places is not None else specialise(_search, search=specialise(_branch_and_bound, expected=expected))
        self.next_round = specialise(_next_round, find_best=find, expected=expected)
        self._scratch = np.empty(model.n_positions + 1)

    @property
    def optimal_ranking(self) -> NDArray[np.int64]:
        return self.round.best

    @property
    def optimal_reward(self) -> float:
        return float(self.round.optimum[0])

    def draw(self, rng: np.random.Generator) -> None:
        """Draw the next round."""
        draw = specialise(_draw, next_round=self.next_round, counted=True)
        draw(self.pool, self.round, self.parameters, rng, self.code, self._scratch)
