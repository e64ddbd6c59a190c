"""Study of rankers that are learned from a log: which method reaches what share of the way from random lists to the optimum."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clickgym import record
from clickgym.agents import Agent
from clickgym.offline import ClickLog, learn
from clickgym.runner import make_env

from .axes import RANDOM
from .plots import Figure, colour_of, finish, grid
from .study import Estimate, Evidence, Finding, PaperTable, Values, estimate, versus

Floats = NDArray[np.float64]
NUMBERS = (1, 2, 3)
"""The seeds of the worlds."""
NONE = np.zeros((0, 2), np.int64)
"""No products of features."""
LISTS = {"random": 1.0, "mixed": 0.1, "production": 0.0}
"""By the share of random lists; the others are those of production."""
BASELINE = "cuolr"
LINEAR, NETWORK = "dr-linear", "dr-network"
SMALL, MIDDLE, LARGE = 1000, 10_000, 100_000
"""Sessions of a log."""


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


@cache
def ranker_of(method: str, world: str, model: str, number: int, lists: str, log: int) -> Any:
    """What is learned from a log; arguments as for `Learned`."""
    logged, users, share = log_of(world, model, number, lists, log), env_of(world, model, number).unwrapped.model, LISTS[lists]
    if method == BASELINE:
        from .cuolr import CUOLR  # needs torch

        return CUOLR(logged.context[:, :, told(method, users)], logged.clicks, number)  # type: ignore[index]
    way, scorer = method.split("-")
    features = users.with_interactions(NONE) if scorer == "network" else users

    def made(query: str, items: list[str], _: Any) -> Floats:
        return placements(users, share, query, items)

    return learn(logged, way, scorer=scorer, features=features, logging="uniform" if share == 1 else made, seed=number)


def told(method: str, users: Any) -> slice:
    """Which of the features [1, u, v, u ⊗ v] a ranker is told: a linear one all, a network [1, u, v], CUOLR [u, v]."""
    plain = users.n_features - len(users.interactions)
    return slice(1, plain) if method == BASELINE else slice(plain) if method.endswith("network") else slice(None)


class Learned(Agent):
    """A ranker that was learned from a log of its world when it ranks for the first time; it learns no more.

    Args:
        n_items, n_positions: L and K.
        method: ``"ips-linear"``, ``"dr-network"`` and so on, or ``"cuolr"``.
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
        return told(self.method, env_of(*self._source[:3]).unwrapped.model)

    @cached_property
    def ranker(self) -> Any:
        """What was learned."""
        return ranker_of(self.method, *self._source)

    def rank(self, observation: Any) -> NDArray[np.int64]:
        return self.ranker.best(observation["features"][:, self.columns])[: self.n_positions]

    def update(self, observation: Any, ranking: NDArray[np.int64], clicks: NDArray[np.int8], reward: float) -> None:
        """Do nothing: it learned before."""


def learned(method: str, lists: str, log: int, world: str, model: str, number: int) -> str:
    """The label of a ranker."""
    return f"{__name__}:Learned:method={method},lists={lists},log={log},world={world},model={model},number={number}"


# -------------------------------------------------------------------------------------------------------------- the study

WORLDS, MODELS = ("personal", "network"), ("PBM", "UBM", "CM", "DBN")
DR, METHODS = (LINEAR, NETWORK), ("ips-linear", "softmax-linear", LINEAR, NETWORK, BASELINE)
Case = tuple[str, str, int]
"""Method, lists and sessions of a log."""


def cases(lists: str, log: int, *methods: str) -> list[Case]:
    """Several rankers from one log."""
    return [(method, lists, log) for method in methods]


OF_PBM = [
    *cases("random", SMALL, *DR), *cases("random", MIDDLE, "ips-linear", "softmax-linear", *DR, BASELINE),
    *cases("mixed", MIDDLE, LINEAR), *cases("production", MIDDLE, LINEAR, BASELINE),
]  # fmt: skip
OF_OTHERS = [*cases("random", MIDDLE, LINEAR, BASELINE), *cases("production", MIDDLE, LINEAR)]
LONG = [*cases("random", LARGE, *DR), *cases("production", LARGE, LINEAR)]
GROUPS: dict[str, list[Case]] = {f"{world}-PBM": OF_PBM for world in WORLDS}
GROUPS |= {"personal-PBM-long": LONG}
GROUPS |= {"personal-UBM": OF_OTHERS, "personal-CM": OF_OTHERS[:2], "personal-DBN": OF_OTHERS}
"""The rankers of each world and click model; those from long logs are parts of their own."""
for _name, _cases in GROUPS.items():
    _world, _model = _name.split("-")[:2]
    for _number in NUMBERS:
        _rankers = [learned(*case, _world, _model, _number) for case in _cases]
        globals()[f"{_name}-{_number}".replace("-", "_")] = [RANDOM, *_rankers]


def instances(_: Sequence[str], world: str, number: int) -> list[str]:
    """The one world of a part."""
    return [instance(world, number)]


def unjudged(_: Any, world: str, number: int, log: int) -> float:
    """The share of the pairs of user and candidate that a log of production alone never shows."""
    met, missing, _ = _never_shown(world, number, log)
    return len(np.unique(met[missing])) / len(np.unique(met))


def missed(_: Any, world: str, number: int, log: int) -> float:
    """The share of the places of the best lists that such pairs would have."""
    _, missing, best = _never_shown(world, number, log)
    return float(np.take_along_axis(missing, best, axis=1).mean())


@lru_cache(maxsize=1)
def _never_shown(world: str, number: int, log: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """``(N, L)`` the pairs of each session, which of them are never shown, and ``(N, K)`` the places of the best candidates."""
    logged, users = log_of(world, "PBM", number, "production", log), env_of(world, "PBM", number).unwrapped.model
    queries, candidates = logged.queries[:, None].astype(np.int64), np.asarray(logged.candidates)
    met, shown = (queries * len(logged.item_labels) + items for items in (candidates, logged.items))
    best = np.argsort(-np.array(users.attractions)[queries, candidates], axis=1, kind="stable")
    return met, ~np.isin(met, shown), best[:, : logged.n_positions]


def _group(world: str, model: str, *case: Any) -> str:
    """The group in which a ranker is."""
    return next((name for name, played in GROUPS.items() if name.split("-")[:2] == [world, model] and case in played), "")


def shares(evidence: Evidence, world: str, model: str, method: str, lists: str, log: int) -> Values:
    """``(worlds,)`` which share of the way from random lists to the optimum the lists of a ranker go."""
    values, group = [], _group(world, model, method, lists, log)
    for number in NUMBERS:
        curves, agent = evidence[f"log-{group}-{number}"], learned(method, lists, log, world, model, number)
        lost, random = (curves.end_units(f"Contextual{model}Rank-v0", each).mean() for each in (agent, RANDOM))
        values.append(1 - lost / random)
    return np.array(values)


def facts(evidence: Evidence, fact: str, world: str, log: int) -> Values:
    """``(worlds,)`` a fact of the log of production alone."""
    group = _group(world, "PBM", LINEAR, "production", log)
    parts = (evidence[f"log-{group}-{number}"] for number in NUMBERS)
    return np.array([curves.ends("ContextualPBMRank-v0", RANDOM, fact).mean() for curves in parts])


def _words(share: Estimate) -> str:
    return f"{share.mean:.1%} ± {100 * share.half:.2g} over {len(NUMBERS)} worlds"


def reaches(
    evidence: Evidence, world: str, model: str, method: str, lists: str, log: int, least: float = -np.inf, most: float = np.inf
) -> Finding:
    """Whether a ranker reaches a share of the way, and no more than another."""
    share = estimate(shares(evidence, world, model, method, lists, log))
    return Finding(_words(share), share.within(least, most))


def further(
    evidence: Evidence, world: str, model: str, better: str, worse: str, lists: str, log: int, than: str | None = None
) -> Finding:
    """Whether one ranker goes further than another that is learned from the same log, or from one of other lists (``than``)."""
    low = 100 * shares(evidence, world, model, worse, than or lists, log)
    high = 100 * shares(evidence, world, model, better, lists, log)
    return versus(low, high, " % of the way", f"over {len(NUMBERS)} worlds")


def halves(evidence: Evidence, world: str, method: str, log: int) -> Finding:
    """Whether ten times the sessions of random lists at least halve what a ranker misses of the way in the PBM."""
    few, many = (100 * (1 - shares(evidence, world, "PBM", method, "random", n)) for n in (log, 10 * log))
    return versus(2 * many, few, " % missed, the first doubled", f"over {len(NUMBERS)} worlds")


def never(evidence: Evidence, fact: str, world: str, log: int, low: float, high: float) -> Finding:
    """How much the log of production alone never shows."""
    share = estimate(facts(evidence, fact, world, log))
    return Finding(_words(share), share.within(low, high))


def table(evidence: Evidence) -> PaperTable:
    """The share that each ranker reaches, and what logs of production alone never show."""
    rows = [["world", "model", "lists of the log", "sessions", "method", "share of the way", "worst world"]]
    for group in GROUPS:
        world, model, *_ = group.split("-")
        for method, lists, log in GROUPS[group]:
            values = shares(evidence, world, model, method, lists, log)
            rows.append([world, model, lists, f"{log:,}", method, _words(estimate(values)), f"{values.min():.1%}"])
    for world, log in (("personal", MIDDLE), ("personal", LARGE), ("network", MIDDLE)):
        of_pairs, of_best = (estimate(facts(evidence, fact, world, log)) for fact in ("unjudged", "missed"))
        told = f"never shown: {of_pairs.mean:.1%} of the pairs, {of_best.mean:.1%} of the places of the best lists"
        rows.append([world, "PBM", "production", f"{log:,}", "all", told, ""])
    return "The share of the way from random lists to the optimum, mean over the worlds with its 95 % interval", rows


def draw(evidence: Evidence) -> Figure:
    """What is lost of the way in the PBM by the size of a log of random lists, and by its lists and the click model."""
    figure, panels = grid(2, 2, width=5.5)
    for (sizes, kinds), world in zip((panels[:2], panels[2:]), WORLDS, strict=True):
        logs = [log for log in (SMALL, MIDDLE, LARGE) if _group(world, "PBM", LINEAR, "random", log)]
        _lost(sizes, evidence, {f"{log:,}": (world, "PBM", "random", log) for log in logs})
        cells = [(lists, model) for lists in LISTS for model in MODELS if _group(world, model, LINEAR, lists, MIDDLE)]
        _lost(kinds, evidence, {f"{model}\n{lists}": (world, model, lists, MIDDLE) for lists, model in cells})
        sizes.set(title=f"{world}, PBM, random lists", xlabel="sessions of the log", ylabel="lost of the way, %")
        kinds.set(title=f"{world}, {MIDDLE:,} sessions")
    title = "What rankers learned from a log miss of the way to the optimum"
    return finish(figure, panels, evidence, title, "bars: 95 % intervals over worlds")


def _lost(axes: Any, evidence: Evidence, cells: dict[str, tuple[str, str, str, int]]) -> None:
    """What each method loses, with intervals, by cells of world, click model, lists and sessions."""
    for place, method in enumerate(METHODS):
        for x, (world, model, lists, log) in enumerate(cells.values()):
            if _group(world, model, method, lists, log):
                lost = estimate(100 * (1 - shares(evidence, world, model, method, lists, log)))
                mean = max(lost.mean, 1e-3)  # the axis is logarithmic
                look: dict[str, Any] = {"color": colour_of(method, axes), "label": method, "fmt": "o", "capsize": 3}
                axes.errorbar(x + 0.1 * (place - 2), mean, [[min(lost.half, 0.9 * mean)], [lost.half]], **look)
    axes.set_xticks(range(len(cells)), cells, fontsize=7)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_minor_formatter(lambda *_: "")
