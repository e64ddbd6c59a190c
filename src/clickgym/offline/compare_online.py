"""Compare two rankings on live traffic under known users: A/B test and interleaving, and what each of them measures."""

from __future__ import annotations

import inspect
import math
import os
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from ..core.checks import check_choice, check_flag, check_horizon, check_labels, check_seed, is_sequence, short
from ..core.statistics import POWER
from ..envs import CascadeMDP, ClickEnv, ClickModel
from ..envs.guests import clicks_of
from ..envs.registration import endless
from ..envs.users import CLICKS, SATISFACTION
from ..runner.labels import EnvLike
from ..runner.make import Place, place_of, player_of
from ..runner.run import run
from .fitting import fit_models
from .interleaving import (
    CREDITS,
    LEAST_SESSIONS,
    NOTHING,
    Floats,
    Indices,
    Interleaving,
    Probabilistic,
    TeamDraft,
    check_ranking,
    check_same,
    click_vectors,
    completed,
    moments,
    normal_mixture,
    outcomes,
    running,
    running_difference,
    sign_test,
)
from .log import ClickLog

METHODS = ("ab", "team_draft", "probabilistic")
LARGEST_EXACT = 5
"""Positions of the lists whose clicks are enumerated."""
LEVEL = 0.05

Order = Callable[[Any], list[int]]
"""Ranks the items, or candidates, by an observation."""


@dataclass(frozen=True)
class OnlineTest:
    """What a method would find, and what one simulated run of it found.

    Attributes:
        by: the method.
        mean, deviation: expectation and standard deviation of the outcome of a session, positive if A is preferred. Of ``ab``
            the difference in clicks, and the deviation of which the standard error after n sessions is ``deviation / sqrt(n)``.
        error: standard error of ``mean``: 0 if it was enumerated.
        sessions: how many give a power of 80 % at a two-sided level of 5 %, by a test that is looked at once; infinite if
            ``mean`` is 0.
        n: sessions of the simulated run whose clicks arrived.
        estimate, low, high: their mean outcome, and its interval, which holds at all times.
        p_value: of no difference, at all times.
        decided: after how many sessions the p-value was 0.05 or less; None: never.
    """

    by: str
    mean: float
    deviation: float
    error: float
    sessions: float
    n: int
    estimate: float
    low: float
    high: float
    p_value: float
    decided: int | None


@dataclass(frozen=True)
class OnlineComparison:
    """Two rankings, what users think of them, and what online tests would find.

    Attributes:
        a, b: the rankings, where they are fixed; else None.
        clicks: expected clicks in a session with the list of A, and with that of B; what they earn, if `valued`.
        satisfaction: the same of the probability that the user is satisfied; None where it is not defined.
        tests: by method.
        valued: whether clicks earn ``item_values``: then the true difference and that of ``ab`` are in their unit, and credit
            still counts clicks.
    """

    a: list[int] | None
    b: list[int] | None
    clicks: tuple[float, ...]
    satisfaction: tuple[float, ...] | None
    tests: dict[str, OnlineTest]
    valued: bool = False

    @property
    def warnings(self) -> list[str]:
        """A sentence for each method whose credit has another sign than the difference in clicks."""
        difference = self.clicks[0] - self.clicks[1]
        sentences = []
        for test in self.tests.values():
            sure = abs(test.mean) > max(4.0 * test.error, NOTHING)
            if test.by == "ab" or not sure or test.mean * difference > NOTHING * abs(test.mean):
                continue
            winner, other = "AB" if test.mean > 0 else "BA"
            unit, equal = ("value", "much value") if self.valued else ("clicks", "many clicks")
            more = f"{other} gets {abs(difference):.4f} more {unit}" if abs(difference) > NOTHING else f"both get as {equal}"
            sentence = f"{test.by} prefers {winner} ({test.mean:+.4f} a session), but {more}"
            sentence += ": its credit is a preference, not clicks"
            if self.satisfaction is not None and (self.satisfaction[0] - self.satisfaction[1]) * test.mean > 0:
                values = "{:.4f} of the users of A and {:.4f} of those of B are satisfied".format(*self.satisfaction)
                sentence += f"; it agrees with satisfaction: {values}"
            sentences.append(sentence)
        return sentences


def compare_online(
    a: Any,
    b: Any,
    users: EnvLike | gym.Env | ClickLog | os.PathLike[str],
    by: str | Sequence[str] = ("ab", "team_draft"),
    *,
    credit: str = "sign",
    common: str = "none",
    tau: float = 3.0,
    paired: bool = False,
    sessions: int = 10_000,
    train: int = 10_000,
    model: str | None = None,
    query: str | None = None,
    seed: int = 0,
) -> OnlineComparison:
    """Compare two rankings as an online test would, under users who are known (`clickgym.offline.compare` values policies from
    a log).

    An A/B test shows each user the list of A or that of B, and counts clicks. Interleaving makes one list of both, and a click
    counts for the ranking that brought the item. That takes far fewer sessions, but its *credit* is a preference and not
    clicks: where a click may end the session, it can prefer the list that gets fewer clicks. For fixed lists of at most five
    positions, and users whose `click_law` is known, expectations are enumerated; otherwise they are simulated.

    Args:
        a, b: the rankings: at least K items, the best first, both of the same items (of a log their labels). Or an object with
            ``best()``, or with ``best(features)`` where candidates change, as agents have; it does not learn. Or the name of an
            agent, which learns for ``train`` sessions first: ``"Oracle"`` is the optimal list, ``"Fixed"`` that in production.
            ⚠ Items that only the other ranking has stand below those of a ranker.
        users: an environment, or a click model; or a log (file or `ClickLog`), to which ``model`` is fitted.
        by: one or more of ``"ab"``, ``"team_draft"`` and ``"probabilistic"``.
        credit: of interleaving: ``"sign"``, who has more clicks, or ``"clicks"``, how many more.
        common: of team draft, as in `TeamDraft`.
        tau: of probabilistic interleaving, as in `Probabilistic`.
        paired: whether in the A/B test the same users see both lists, which only a simulation can do.
        sessions: of the simulated run of each method.
        train: sessions in which agents that are named learn.
        model: the click model of a log, as ``clickgym fit`` calls it.
        query: of a log; None takes the most frequent one.
        seed: of everything.

    Returns:
        The true difference, what each method would find, and one run of it.

    Raises:
        ValueError: rankings of different items or lengths; users with a memory; a log without ``model``; or
            ``"probabilistic"`` where not all items are available, for which it has no law.
        TypeError: on what is no ranking or no users.

    Example:
        >>> import clickgym
        >>> users = clickgym.envs.DependentClickModel([0.6, 0.5, 0.4], [0.9, 0.1, 0.1])
        >>> compared = clickgym.compare_online([0, 1, 2], [1, 0, 2], users, sessions=100)
        >>> round(compared.clicks[0] - compared.clicks[1], 3), round(compared.tests["team_draft"].mean, 3)
        (-0.032, 0.09)
    """
    methods = _methods(by, common, tau)
    check_choice("credit", credit, CREDITS)
    paired, sessions = check_flag("paired", paired), check_horizon(sessions, LEAST_SESSIONS, "sessions")
    train, seed = check_horizon(train, name="train"), check_seed(seed)
    place, labels = _place(users, model, query)
    with endless(place.env) as env:
        first, second = (_order(*named, place, labels, train, seed) for named in (("a", a), ("b", b)))
        if isinstance(first, list) and isinstance(second, list):
            if is_sequence(a) and is_sequence(b):
                check_same(first, second)
            first, second = completed(first, second)
        arena = _Arena(place, env, first, second, methods.values())
        tests = {
            name: _test(arena, name, method, credit, paired, sessions, [seed, number])
            for number, (name, method) in enumerate(methods.items())
        }
        clicks, satisfied = (tuple(values) for values in np.mean(arena.truths, axis=0).tolist())
        a, b = arena.fixed or (None, None)
        return OnlineComparison(a, b, clicks, None if math.isnan(satisfied[0]) else satisfied, tests, arena.valued)


def _methods(by: str | Sequence[str], common: str, tau: float) -> dict[str, Interleaving | None]:
    """The methods that are asked for; None is the A/B test."""
    made: dict[str, Interleaving | None] = {"ab": None, "team_draft": TeamDraft(common), "probabilistic": Probabilistic(tau)}
    names = check_labels("by", [by] if isinstance(by, str) else by)
    if not names:
        raise ValueError(f"by is empty; expected one or more of {', '.join(METHODS)}")
    return {name: made[check_choice("by", name, METHODS)] for name in names}


# ------------------------------------------------------------------------------------------------------ users and rankings


def _place(users: Any, model: str | None, query: str | None) -> tuple[Place, Sequence[str]]:
    """Where the rankings are compared, and the labels of the items, if they have any."""
    if isinstance(users, ClickLog | os.PathLike) or (isinstance(users, str) and not re.search(r"-v\d+|:", users)):
        users, labels, initial = _fitted(users, model, query)
    elif model is not None or query is not None:
        raise ValueError("model and query are for a log, to which a click model is fitted; the users are none")
    else:
        labels, initial = (), None
    if isinstance(users, ClickModel):  # whose optimum, which may take a search, is not needed
        users = ClickEnv(users, reference=range(users.n_positions))
        users.initial_ranking = initial
    place = place_of(users)
    if place.is_guest or isinstance(place.core.model, CascadeMDP):
        what = "of another package, whose users are unknown" if place.is_guest else "of users with a memory, whom lists change"
        raise ValueError(f"the environment {place.name} is {what}; expected click models, whose sessions are independent")
    return place, labels


def _fitted(log: Any, model: str | None, query: str | None) -> tuple[Any, Sequence[str], Any]:
    """A click model fitted to a log, the labels of its items, and the list in production."""
    if model is None:
        raise ValueError("model is missing: expected the click model that is fitted to the log, as PBM or DCM")
    fitted = fit_models(log, [model], () if query is None else (query,), n_items=10**6, test_share=0.0, bootstrap=0)
    (instance,) = fitted.instances.values()
    (users,) = instance.models.values()
    return users, instance.estimation["items"], instance.initial_ranking


def _order(name: str, ranking: Any, place: Place, labels: Sequence[str], train: int, seed: int) -> list[int] | Order:
    """A ranking: a list of items where it is fixed, else a function of the observation."""
    n_items, n_positions, n_features, _ = place.sizes
    if is_sequence(ranking):
        if n_features:
            raise ValueError(f"{name} is a list, but candidates change from session to session; expected a ranker by features")
        items = ranking
    else:
        ranker = ranking if hasattr(ranking, "best") else _learned(name, ranking, place, train, seed)
        _check_best(name, ranking, ranker, n_features)
        if n_features:
            return lambda observation: np.asarray(ranker.best(observation["features"])).tolist()
        items = ranker.best()
    if labels and all(isinstance(item, str) for item in items):
        items = [labels.index(check_choice(f"item of {name}", item, labels)) for item in items]
    return check_ranking(name, items, n_positions, n_items)


def _learned(name: str, ranking: Any, place: Place, train: int, seed: int) -> Any:
    """The agent that is named, after it has learned."""
    of_agent, of_env = np.random.SeedSequence([seed, *name.encode()]).generate_state(2).tolist()
    try:
        agent: Any = player_of(ranking).make(place, train, of_agent)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{name}: {error}") from None
    _check_best(name, ranking, agent, place.sizes.n_features)
    run(agent, place.env, train, seed=of_env)
    return agent


def _check_best(name: str, ranking: Any, ranker: Any, n_features: int | None) -> None:
    """Raise an error if there is no best list, or none by the features of the session."""
    if not hasattr(ranker, "best"):
        raise ValueError(f"{name} is {short(ranking)}, which has no best list")
    if n_features and not inspect.signature(ranker.best).parameters:
        raise ValueError(f"{name} is {short(ranking)}, whose list is not by features, but candidates change")


# --------------------------------------------------------------------------------------------------------------- sessions


class _Arena:
    """Two rankings before users.

    Args:
        place: who the users are.
        env: their sessions, without a time limit.
        a, b: rankings, or functions of the observation.
        methods: by which they will be compared.

    Raises:
        ValueError: not all items are available in every session, and a method has no law for that, or a ranking lacks some.
    """

    def __init__(
        self, place: Place, env: gym.Env, a: list[int] | Order, b: list[int] | Order, methods: Iterable[Interleaving | None]
    ) -> None:
        self.env, self.core, self.a, self.b = env, place.core, a, b
        self.n_positions, self.model, self.axes = place.sizes.n_positions, place.core.model, place.core.axes
        self.valued = self.model.item_values is not None
        self.fixed = (a, b) if isinstance(a, list) and isinstance(b, list) else None
        self.has_masks = self.axes is not None and self.axes.available is not None
        is_still = isinstance(self.model, ClickModel) and len(self.model.epochs) == 1
        self.varies = not is_still or (self.axes is not None and self.axes.changes_items)
        self.truths: list[Floats] = []
        """Of sessions: ``(2, 2)`` expected clicks and satisfaction (NaN where it is not defined), of A and of B."""
        if not self.varies and self.fixed is not None:
            self.truths.append(self._expect(*self.fixed))
        if self.has_masks:
            self._check_masks(methods, place.sizes.n_items)

    def _check_masks(self, methods: Iterable[Interleaving | None], n_items: int) -> None:
        if any(isinstance(method, Probabilistic) for method in methods):
            raise ValueError("probabilistic has no law where not all items are available; ab and team_draft have one")
        for name, ranking in (("a", self.a), ("b", self.b)):
            if isinstance(ranking, list) and len(ranking) < n_items:
                raise ValueError(f"{name} ranks {len(ranking)} items; expected all, as not all are available in every session")

    def _expect(self, a: list[int], b: list[int]) -> Floats:
        """What the next user thinks of both."""
        task, n, values = self.core.task, self.n_positions, np.full((2, 2), np.nan)
        for of, ranking in enumerate((a, b)):
            for row, code in enumerate((CLICKS, SATISFACTION)[: 1 + ("satisfaction" in task.model.rewards)]):
                values[row, of] = task.model.expected_kernel(task.parameters, np.array(ranking[:n]), code, n, np.empty(n + 1))
        return values

    def _rankings(self, observation: Any) -> tuple[list[int], list[int]]:
        """The rankings of the next session."""
        if self.fixed is not None and not self.has_masks:
            return self.fixed
        a, b = (ranking if isinstance(ranking, list) else ranking(observation) for ranking in (self.a, self.b))
        if self.has_masks:
            a, b = ([item for item in ranking if observation["available"][item]] for ranking in (a, b))
        return completed(a, b)

    def play(
        self, choose: Callable[[list[int], list[int]], tuple[Any, Any]], sessions: int, seed: int
    ) -> tuple[Indices, Floats, Indices, Floats]:
        """Play sessions.

        Args:
            choose: from two rankings a list and its note.
            sessions: how many.
            seed: of the users.

        Returns:
            Of each session whose clicks arrived, in the order of arrival: its number, from 0; its note; its clicks, without
            those on items that were replaced since; and how many they are, or what they earn.
        """
        measures, notes = self.varies and not self.truths, np.empty((sessions, self.n_positions))
        worth = np.ones(notes.shape)
        numbers: list[int] = []
        clicks: list[NDArray[Any]] = []
        observation, _ = self.env.reset(seed=seed)
        for session in range(sessions):
            a, b = self._rankings(observation)
            if measures:
                self.truths.append(self._expect(a, b))
            ranking, notes[session] = choose(a, b)
            if self.valued:
                worth[session] = (observation if self.fixed is None else {}).get("values", self.model.item_values)[ranking]
            observation, *_ = self.env.step(np.asarray(ranking))
            if self.axes is not None and self.axes.arrival is not None:
                n = int(observation["n_arrived"])
                numbers += (observation["displays"][:n] - 1).tolist()
                clicks += [*np.where(observation["void"][:n] if "void" in observation else False, 0, observation["clicks"][:n])]
            else:
                numbers.append(session)
                clicks.append(np.asarray(clicks_of(observation)))
        if not numbers:
            raise ValueError(f"no clicks arrived in {sessions:,} sessions; expected more sessions, or an earlier arrival")
        return np.array(numbers), notes[numbers], np.array(clicks, np.int64), (worth[numbers] * clicks).sum(axis=1)


def _test(
    arena: _Arena, name: str, method: Interleaving | None, credit: str, paired: bool, sessions: int, seeds: list[int]
) -> OnlineTest:
    """What a method would find, and one run of it."""
    means, deviations, signs = _played(arena, method, credit, paired, sessions, seeds)
    n, estimate, deviation = len(means), float(means[-1]), deviations[-1]
    evidence, halves = normal_mixture(np.arange(1, n + 1), means, deviations)
    half = float(halves[-1])
    if signs is not None and name == "team_draft" and credit == "sign":
        evidence = sign_test(np.cumsum(signs > 0), np.cumsum(signs < 0))
    mean, error = means[-1], deviation / math.sqrt(n)
    with suppress(ValueError):  # what is too long to be enumerated stays simulated
        mean, exact, error = *_enumerated(arena, method, credit), 0.0
        deviation = deviation if method is None and paired else exact
    first = np.flatnonzero(evidence >= -math.log(LEVEL))
    return OnlineTest(
        name, float(mean), float(deviation), float(error),
        sessions=POWER * float(deviation / mean) ** 2 if abs(mean) > NOTHING else math.inf,
        n=n, estimate=estimate, low=estimate - half, high=estimate + half,
        p_value=math.exp(-max(0.0, float(evidence.max()))), decided=int(first[0]) + 1 if len(first) else None,
    )  # fmt: skip


def _played(
    arena: _Arena, method: Interleaving | None, credit: str, paired: bool, sessions: int, seeds: list[int]
) -> tuple[Floats, Floats, Floats | None]:
    """After each session of a run the mean outcome so far and its deviation; and the outcomes of interleaving."""
    rng, k = np.random.default_rng([*seeds, 1]), arena.n_positions
    seed = int(np.random.SeedSequence(seeds).generate_state(1)[0])
    if method is not None:
        _, notes, clicks, _ = arena.play(lambda a, b: method.draw(a, b, k, rng), sessions, seed)
        values = outcomes(notes, clicks, credit)
        return *running(values), values
    if paired:  # the same seed gives users the same uniform numbers
        both = np.full((2, sessions), np.nan)
        for row in range(2):
            numbers, _, _, earned = arena.play(lambda a, b, row=row: ((a, b)[row][:k], 0.0), sessions, seed)  # type: ignore[misc]
            both[row, numbers] = earned
        return *running((both[0] - both[1])[~np.isnan(both).any(axis=0)]), None
    _, notes, _, earned = arena.play(lambda a, b: (a[:k], 1.0) if rng.random() < 0.5 else (b[:k], 0.0), sessions, seed)
    return *running_difference(earned, notes[:, 0] == 1.0), None


def _enumerated(arena: _Arena, method: Interleaving | None, credit: str) -> tuple[float, float]:
    """The exact mean and deviation of the outcome of a session; of the A/B test as `OnlineTest` has them.

    Raises:
        ValueError: the sum is not known, or too long.
    """
    k = arena.n_positions
    if arena.fixed is None or arena.varies or arena.axes is not None or k > LARGEST_EXACT:
        raise ValueError("there is no sum of few terms")
    vectors, model = click_vectors(k), getattr(arena.model, "base", arena.model) if arena.valued else arena.model
    if method is not None:
        lists, notes, probabilities = method.law(*arena.fixed, k)
        return moments(model, lists, probabilities, lambda some: outcomes(notes[some, None], vectors, credit))
    (mean_a, sd_a), (mean_b, sd_b) = (
        moments(model, np.array([ranking[:k]]), np.ones(1), lambda some, worth=worth: (vectors @ worth)[None])  # type: ignore[misc]
        for ranking in arena.fixed
        for worth in [np.ones(k) if arena.model.item_values is None else arena.model.item_values[ranking[:k]]]
    )
    return mean_a - mean_b, math.sqrt(2.0 * (sd_a**2 + sd_b**2))
