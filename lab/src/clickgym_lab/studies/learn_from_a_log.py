"""Study of rankers that are learned from a log: which method reaches what share of the way from random lists to the optimum."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from clickgym import record
from clickgym.agents import Agent
from clickgym.offline import ClickLog, learn
from clickgym.runner import make_env

from .axes import RANDOM
from .plots import colour_of, finish, grid
from .reader import read_studies
from .study import Estimate, Evidence, Finding, PaperTable, Study, Values, estimate, versus

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
NUMBERS = (1, 2, 3)
"""The seeds of the worlds."""
LISTS = {"random": 1.0, "mixed": 0.1, "production": 0.0}
"""By the share of random lists; the others are those of production."""
BASELINE = "cuolr"
LINEAR = "dr-linear"


# ---------------------------------------------------------------------------------------------------------------- the log


def env_of(world: str, model: str, number: int) -> Any:
    """An environment: each user wants another list; features are 1, those of user and item, and all their products."""
    return make_env(f"Contextual{model}Rank-v0", instance(world, number))


def instance(world: str, number: int) -> str:
    """The name of a world."""
    return f"{world}:seed={number},features=outer,n_items=10,n_positions=5"


@lru_cache(maxsize=1)
def production(users: Any) -> Floats:
    """``(M, N)`` the scores by which production orders items for each user: attraction, and noise of as large a deviation."""
    attraction = np.array(users.attractions)
    return attraction + attraction.std() * np.random.default_rng(attraction.shape).standard_normal(attraction.shape)


class Production(Agent):
    """What makes a log: the order of production, or a random list with a probability.

    Args:
        env: whose users come.
        share: of random lists.
        seed: of these.
    """

    def __init__(self, env: Any, share: float, seed: int) -> None:
        self.n_items, self.n_positions = env.unwrapped.model.n_items, env.unwrapped.model.n_positions
        self._round, self._scores = env.unwrapped.task.round, production(env.unwrapped.model)
        self._share, self._rng = share, np.random.default_rng(seed)

    def rank(self, observation: Any) -> NDArray[np.int64]:
        if self._rng.random() < self._share:
            return self._rng.permutation(self.n_items)[: self.n_positions]
        return np.argsort(-self._scores[self._round.user[0], self._round.items], kind="stable")[: self.n_positions]

    def update(self, observation: Any, ranking: NDArray[np.int64], clicks: NDArray[np.int8], reward: float) -> None:
        """Do nothing."""


@lru_cache(maxsize=1)
def log_of(world: str, model: str, number: int, lists: str, n: int) -> ClickLog:
    """A log; the same every time."""
    env = env_of(world, model, number)
    return record(Production(env, LISTS[lists], number), env, n, seed=number)


def placements(users: Any, share: float, query: str, items: Sequence[str]) -> Floats:
    """``(L, K)`` the probabilities with which `Production` shows some items at each position."""
    scores, n_positions = production(users)[int(query), [int(item) for item in items]], users.n_positions
    placed = np.full((len(items), n_positions), share / len(items))
    placed[np.argsort(-scores, kind="stable")[:n_positions], np.arange(n_positions)] += 1 - share
    return placed


# ------------------------------------------------------------------------------------------------------------- the agents


class Learned(Agent):
    """A ranker that was learned from a log of its world when it ranks for the first time; it learns no more.

    Args:
        n_items, n_positions: L and K.
        method: ``"ips-linear"``, ``"dr-linear"`` and so on, or ``"cuolr"``.
        lists: of which the log consists, one of `LISTS`.
        log: of how many sessions.
        world, model, number: where the log was made.
        seed: unused: all is the same every time.
    """

    def __init__(
        self, n_items: int, n_positions: int, *, method: str, lists: str, log: int, world: str, model: str, number: int,
        seed: Any = None,
    ) -> None:  # fmt: skip
        self.n_items, self.n_positions = n_items, n_positions
        self.method, self._source = method, (world, model, number, lists, log)

    @cached_property
    def columns(self) -> slice:
        """The features that it is told."""
        users = env_of(*self._source[:3]).unwrapped.model
        return slice(1, users.n_features - len(users.interactions)) if self.method == BASELINE else slice(None)

    @cached_property
    def ranker(self) -> Any:
        """What was learned."""
        log, users = log_of(*self._source), env_of(*self._source[:3]).unwrapped.model
        number, share = self._source[2], LISTS[self._source[3]]
        if self.method == BASELINE:
            from .cuolr import CUOLR  # needs torch

            return CUOLR(log.context[:, :, self.columns], log.clicks, number)  # type: ignore[index]
        method, scorer = self.method.split("-")

        def made(query: str, items: list[str], _: Any) -> Floats:
            return placements(users, share, query, items)

        return learn(log, method, scorer=scorer, features=users, logging="uniform" if share == 1 else made, seed=number)

    def rank(self, observation: Any) -> NDArray[np.int64]:
        return self.ranker.best(observation["features"][:, self.columns])[: self.n_positions]

    def update(self, observation: Any, ranking: NDArray[np.int64], clicks: NDArray[np.int8], reward: float) -> None:
        """Do nothing: it learned before."""


def learned(method: str, lists: str, log: int, world: str, model: str, number: int) -> str:
    """The label of a ranker."""
    return f"{__name__}:Learned:method={method},lists={lists},log={log},world={world},model={model},number={number}"


# -------------------------------------------------------------------------------------------------------------- the study

SMALL, MIDDLE = 1000, 10_000
GROUPS: dict[str, tuple[str, str, list[tuple[str, str, int]]]] = {
    "personal-PBM": ("personal", "PBM", [
        (LINEAR, "random", SMALL),
        *((method, "random", MIDDLE) for method in ("ips-linear", "softmax-linear", LINEAR, BASELINE)),
        *((LINEAR, "mixed", MIDDLE), (LINEAR, "production", MIDDLE), (BASELINE, "production", MIDDLE)),
    ]),
    "personal-CM": ("personal", "CM", [(method, "random", MIDDLE) for method in (LINEAR, BASELINE)]),
}  # fmt: skip
"""World, click model, and of each ranker the method, the lists of the log and its sessions."""
for _group, (_world, _model, _cases) in GROUPS.items():
    for _number in NUMBERS:
        _rankers = [learned(*case, _world, _model, _number) for case in _cases]
        globals()[f"{_group}-{_number}".replace("-", "_")] = [RANDOM, *_rankers]


def instances(_: Sequence[str], world: str, number: int) -> list[str]:
    """The one world of a part."""
    return [instance(world, number)]


def shares(evidence: Evidence, group: str, method: str, lists: str, log: int) -> Values:
    """``(worlds,)`` which share of the way from random lists to the optimum the lists of a ranker go."""
    (world, model, _), values = GROUPS[group], []
    for number in NUMBERS:
        curves, agent = evidence[f"log-{group}-{number}"], learned(method, lists, log, world, model, number)
        lost, random = (curves.end_units(f"Contextual{model}Rank-v0", each).mean() for each in (agent, RANDOM))
        values.append(1 - lost / random)
    return np.array(values)


def _words(share: Estimate) -> str:
    return f"{share.mean:.1%} ± {100 * share.half:.2g} over {len(NUMBERS)} worlds"


def reaches(evidence: Evidence, group: str, method: str, lists: str, log: int, least: float) -> Finding:
    """Whether a ranker reaches a share of the way."""
    share = estimate(shares(evidence, group, method, lists, log))
    return Finding(_words(share), share.above(least))


def further(evidence: Evidence, group: str, better: str, worse: str, lists: str, log: int) -> Finding:
    """Whether one ranker goes further than another that is learned from the same log."""
    low, high = (100 * shares(evidence, group, method, lists, log) for method in (worse, better))
    return versus(low, high, " % of the way", f"over {len(NUMBERS)} worlds")


def table(evidence: Evidence) -> PaperTable:
    """The share that each ranker reaches."""
    rows = [["world", "model", "lists of the log", "sessions", "method", "share of the way"]]
    for group, (world, model, cases) in GROUPS.items():
        for method, lists, log in cases:
            share = estimate(shares(evidence, group, method, lists, log))
            rows.append([world, model, lists, f"{log:,}", method, _words(share)])
    return "The share of the way from random lists to the optimum, mean over the worlds with its 95 % interval", rows


def draw(evidence: Evidence) -> Figure:
    """What is lost of the way with logs of one size, by world, click model and the lists of the log."""
    figure, [axes] = grid(1, width=9)
    points = [(f"{group.replace('-', ', ')}\n{case[1]}", group, case) for group in GROUPS for case in GROUPS[group][2]]
    points = [(name, group, case) for name, group, case in points if case[2] == MIDDLE]
    names = list(dict.fromkeys(name for name, *_ in points))
    for name, group, case in points:
        lost = estimate(100 * (1 - shares(evidence, group, *case)))
        look: dict[str, Any] = {"color": colour_of(case[0], axes), "label": case[0]}
        axes.errorbar(names.index(name), lost.mean, lost.half, fmt="o", capsize=3, **look)
    axes.set(xticks=range(len(names)), xticklabels=names, ylim=(0, None), ylabel="lost of the way to the optimum, %")
    title = f"What rankers learned from {MIDDLE:,} sessions miss"
    return finish(figure, [axes], evidence, title, "bars: 95 % intervals over worlds")


STUDIES: dict[str, Study] = read_studies(__file__, globals())
