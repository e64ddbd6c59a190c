"""`learn`: from a click log to a ranker."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.checks import (
    check_between,
    check_callable,
    check_choice,
    check_count,
    check_kind,
    check_seed,
    is_sequence,
    numbers,
    probabilities,
)
from ...envs import ContextualModel
from ...envs.contextual.interactions import with_products
from ..distinct import grouped
from ..estimation.browsing import PBMEstimator
from ..estimation.settings import CONVERGED, QUICK
from ..goodness_of_fit import FITS, LEAST_DISPLAYS, check_above, check_fit
from ..log import ClickLog
from ..policies import Policy
from .exposure import Floats, Indices, Logging, Sessions, evidence, exposures, sessions_of
from .objective import Scorer, click_gradient, climb, scores_of, softmax_gradient, to_go_gradient
from .ranker import Key, LearnedRanker

METHODS = ("ips", "dr", "softmax")
SCORERS = ("linear", "network")
CASES, DISPLAYS = 128, 2048
"""Of a batch."""
MOST_PAIRS = 1000
"""Pairs of query and item up to which each may be a feature of its own."""
TESTED = 20
"""Of the most frequent queries, how many are tested for fit."""

Features = Mapping[Key, ArrayLike] | ContextualModel | None
Flags = NDArray[np.bool_]


class FitWarning(UserWarning):
    """The log does not fit a position-based model, on which what `learn` corrects for is built."""


def learn(
    log: ClickLog,
    method: str = "dr",
    *,
    scorer: str = "linear",
    features: Features = None,
    logging: Logging = None,
    examination: ArrayLike | None = None,
    clip: float | None = None,
    hidden: tuple[int, ...] = (64, 64),
    held_out: float = 0.2,
    steps: int = 4000,
    seed: int = 0,
    on_progress: Callable[[str, int, int], None] | None = None,
) -> LearnedRanker:
    """Learn a ranker from a click log.

    ``agent.learn(log)`` shows an online agent the sessions one by one, as if it had chosen their lists, and lets it go on from
    there. Here the log is all there is: what its policy had examined more often counts for less, a part of the log is held out,
    and what comes out learns no more.

    Idea:
        Users of a position-based model click an item with its attraction times the examination χ of its position. How often
        the logging policy had an item examined is known from its placements (`exposure`). Clicks divided by it estimate the
        attraction without bias, however the policy ranked. The ranker is the policy whose lists, by these estimates, earn
        the most clicks.

    The methods:

    - ``"ips"``: clicks weighed by inverse exposure, and the gradient of the expected clicks of a Plackett-Luce policy.
    - ``"dr"``: the same with doubly robust estimates. The prediction is the same scorer, fitted to the clicks by the
      likelihood of a position-based model; ranking then goes on from there. ⚠ The prediction has seen the clicks that it is
      corrected by; those of the held-out part it has not.
    - ``"softmax"``: clicks weighed by inverse exposure, cut at 0, and a listwise cross-entropy.

    Training ends where the held-out part of the sessions does not gain any more: the clicks that the ranker's own lists earn by
    estimates of the method from this part alone. ``facts["held_out"]`` has this figure with an interval. As the part also
    chose the step, it is a little too high.

    Args:
        log: with features in its ``context``, or see ``features``; with ``propensities``, or see ``logging``. Where candidates
            change, ``log.candidates`` has them; else those of a query are all items that the log shows for it (of a log of one
            query, all its labels), and those of the table.
        method: ``"ips"``, ``"dr"`` or ``"softmax"``.
        scorer: ``"linear"``, or ``"network"`` with ReLU. Neither needs torch.
        features: a mapping from item labels, or from pairs of query label and item label, to rows of d numbers; or the model of
            an environment with features. None: the log's context, where candidates that no session shows have none and take no
            part; without context each pair of query and item is a feature of its own.
        logging: who made the log: None, its propensities tell; ``"uniform"``; a `Policy`, or policies by query; or a function
            of a query label, item labels and their features that returns a policy of these items, numbered from 0, or
            ``(L, K)`` placements.
        examination: ``(K,)`` χ; None: fitted to the log by `PBMEstimator`, and scaled to a largest one of 1.
        clip: the least exposure that counts; None cuts nothing. It trades bias for variance.
        hidden: units of the layers of a network.
        held_out: share of the sessions.
        steps: of gradients, at most.
        seed: of the split, the batches, the lists that are drawn, and the weights: the same seed gives the same ranker.
        on_progress: called with a word, and how many of how many steps are done.

    Returns:
        The ranker. Its ``facts`` say what was learned from what.

    Raises:
        ValueError: naming what was expected; neither propensities nor a policy that can be computed; nothing can be judged.

    Warns:
        FitWarning: clicks of held-out sessions do not fit a position-based model.

    Source: Oosterhuis, de Rijke, *Policy-aware unbiased learning to rank for top-k rankings*, SIGIR 2020 (exposure);
    Oosterhuis, *Doubly robust estimation for correcting position bias in click feedback for unbiased learning to rank*, TOIS
    2023.

    Example:
        >>> import clickgym, gymnasium
        >>> env = gymnasium.make("PBMRank-v0")
        >>> log = clickgym.record(clickgym.make_agent("Random", env, seed=0), env, 3000, seed=0)
        >>> ranker = learn(log, "dr", seed=0)
        >>> ranker.evaluate(env).share > 0.95
        True
    """
    check_kind("log", log, ClickLog, "a ClickLog")
    check_choice("method", method, METHODS)
    check_choice("scorer", scorer, SCORERS)
    units = _units(scorer, hidden)
    steps, rng = check_count("steps", steps), np.random.default_rng(check_seed(seed))
    share = check_between("held_out", held_out, 0.0, 1.0)
    least = 0.0 if clip is None else check_between("clip", clip, 0.0, 1.0, closed=True)
    tell = (lambda *_: None) if on_progress is None else on_progress
    check_callable("on_progress", tell)
    if not isinstance(logging, str | Policy | Mapping | None):
        check_callable("logging", logging)
    if len(log) < 2:
        raise ValueError(f"the log has {len(log)} sessions; expected two or more, of which a part is held out")
    test = np.zeros(len(log), bool)
    test[rng.permutation(len(log))[: min(max(round(share * len(log)), 1), len(log) - 1)]] = True
    χ = _examination(log, examination)
    task = _Task(log, features, logging, χ, test, least, rng, seed)
    model = Scorer([task.x.shape[1], *units, 1], rng)
    if method == "dr":
        task.fit_clicks(model, steps, lambda *of: tell("clicks", *of))
    task.fit_lists(model, method, steps, lambda *of: tell("lists", *of))
    facts = {
        "method": method, "scorer": scorer, "sessions": len(log), "clicks_per_session": float(log.clicks.sum() / len(log)),
        "logging": "propensities" if logging is None else logging if isinstance(logging, str) else "a policy",
        "examination": χ.tolist(), "examination_fitted": examination is None, "clip": least, "seed": seed,
        "held_out": task.estimate(model), **task.reliability(), "fit": _fit_test(log, test),
    }  # fmt: skip
    if facts["fit"] and facts["fit"]["p_value"] < FITS:
        figure = "p = {p_value:.2g}; {figure}".format(**facts["fit"])
        words = f"clicks do not fit a position-based model ({figure}): the estimates are biased"
        warnings.warn(words, FitWarning, stacklevel=2)
    sizes = {"n_items": max(task.sessions.cases.shape[1], log.n_positions), "n_positions": log.n_positions}
    return LearnedRanker(model.layers, mean=task.mean, scale=task.scale, table=task.table, facts=facts, seed=seed, **sizes)


def _units(scorer: str, hidden: Any) -> list[int]:
    """The hidden units of each layer; none of a linear scorer."""
    units = [check_count("hidden", size) for size in (hidden if is_sequence(hidden) else [hidden])]
    return units if scorer == "network" else []


def _examination(log: ClickLog, given: ArrayLike | None) -> Floats:
    """``(K,)`` χ, as it is given or fitted."""
    if given is None:
        fitted: Any = QUICK.fit(PBMEstimator, log)
        χ = fitted.examination_ / fitted.examination_.max()
    else:
        χ = probabilities("examination", given, (log.n_positions,))
    if not χ.any():
        raise ValueError("examination is 0 at all positions; expected one that is examined")
    return χ


class _Task:
    """What is learned from: the log by pairs and cases, what each part of it tells, and scaled features ``(P, d)``.

    Args:
        log, features, logging: as for `learn`.
        χ: ``(K,)`` the examination.
        test: ``(N,)`` which sessions are held out.
        least: the least exposure that counts.
        rng, seed: of batches and lists; of drawn placements.
    """

    def __init__(
        self, log: ClickLog, features: Features, logging: Logging, χ: Floats, test: Flags, least: float, rng: Any, seed: int
    ) -> None:
        self.log, self.χ, self.test, self.least, self.rng = log, χ, test, least, rng
        self.sessions = sessions = sessions_of(log, _further(log, features))
        x, has, self.table = _features(log, sessions, features)
        exposed = exposures(log, sessions, logging, χ, x, seed)
        self.train, self.held_out = (evidence(sessions, exposed, χ, part) for part in (~test, test))
        self.usable = self.train.judged & has
        # Learned from are the pairs that the other part judges; of a list that is valued, those that either part does.
        self.cases, self.valued = (
            np.where((sessions.cases >= 0) & (judged & has)[sessions.cases], sessions.cases, -1)
            for judged in (self.train.judged, self.train.judged | self.held_out.judged)
        )
        self.weights = sessions.weights(~test) * ((self.cases >= 0).sum(axis=1) > 1)
        if not self.weights.any():
            raise ValueError("no session has two candidates that can be judged; expected a log that shows two items of a query")
        self.mean, spread = x[self.usable].mean(axis=0), x[self.usable].std(axis=0)
        self.scale = np.where(spread > 1e-12 * (1.0 + np.abs(self.mean)), spread, 1.0)
        self.x = (x - self.mean) / self.scale
        self.predicted = np.zeros(len(x))

    def fit_clicks(self, model: Scorer, steps: int, on_progress: Callable[[int, int], None]) -> None:
        """Fit attractions σ(f) to the clicks of what was shown, given the examination, and predict those of all pairs."""
        shown, clicks = self.sessions.shown, self.sessions.clicks.astype(np.float64)
        places = [np.nonzero((shown >= 0) & part[:, None]) for part in (~self.test, self.test)]
        learned, held_out = ((shown[at], self.χ[at[1]], clicks[at]) for at in places)

        def step() -> Floats:
            drawn = self.rng.integers(len(learned[0]), size=DISPLAYS)
            pairs, χ, clicked = (values[drawn] for values in learned)
            return click_gradient(model.forward(self.x[pairs]), χ, clicked)[1]

        def value() -> float:
            return float(click_gradient(scores_of(model.layers, self.x)[held_out[0]], *held_out[1:])[0].mean())

        climb(model, step, value, steps, on_progress)
        self.predicted = 1.0 / (1.0 + np.exp(-scores_of(model.layers, self.x).clip(-30, 30)))

    def fit_lists(self, model: Scorer, method: str, steps: int, on_progress: Callable[[int, int], None]) -> None:
        """Follow the gradient of what lists earn by the estimates of the part to learn from."""
        gains = np.where(self.usable, self.train.values(self.predicted, self.least), 0.0)
        known = np.where(self.held_out.judged, self.held_out.values(self.predicted, self.least), 0.0)
        bounds, weights = np.cumsum(self.weights / self.weights.sum())[:-1], self.sessions.weights(self.test)
        held_out = weights > 0

        def step() -> Floats:
            rows = self.cases[np.searchsorted(bounds, self.rng.random(CASES), side="right")]
            there, f = rows >= 0, np.full(rows.shape, -np.inf)
            f[there] = model.forward(self.x[rows[there]])
            r = np.where(there, gains[rows], 0.0)
            return (softmax_gradient(f, r) if method == "softmax" else to_go_gradient(f, r, self.χ, self.rng))[there]

        def value() -> float:
            lists = self.lists(model, self.cases[held_out])
            return float(weights[held_out] @ (np.where(lists < 0, 0.0, known[lists]) @ self.χ[: lists.shape[1]]))

        climb(model, step, value, steps, on_progress)

    def lists(self, model: Scorer, cases: Indices) -> Indices:
        """``(C, K')`` the pairs of the ranker's list of each of these cases, -1 below its end."""
        f = np.where(cases < 0, -np.inf, scores_of(model.layers, self.x)[cases])
        return np.take_along_axis(cases, np.argsort(-f, axis=1, kind="stable")[:, : len(self.χ)], axis=1)

    def estimate(self, model: Scorer) -> dict[str, Any]:
        """The clicks per session that the ranker's lists earn by the held-out part, and their gain on those of the log.

        A session counts by what it adds to the estimates of the items that it shows; intervals are normal, at 95 %.
        """
        of, n, lists = self.held_out, int(self.test.sum()), self.lists(model, self.valued)
        weights = self.sessions.weights(self.test)[:, None] * self.χ[: lists.shape[1]]
        wanted = np.bincount(lists[lists >= 0], weights[lists >= 0], len(of.n)) * of.judged
        share = wanted / np.maximum(of.n * np.maximum(of.exposure, self.least), 1e-300)
        shown, clicks = self.sessions.shown[self.test], self.sessions.clicks[self.test]
        added = np.where(shown < 0, 0.0, share[shown] * (clicks - self.χ * self.predicted[shown])).sum(axis=1)
        each = added + float(wanted @ self.predicted) / n
        half = NormalDist().inv_cdf(0.975) / np.sqrt(n)
        interval, gain = (
            [float(values.mean() + sign * half * values.std()) for sign in (-1, 1)]
            for values in (each, each - clicks.sum(axis=1))
        )
        logged = float(clicks.sum() / n)
        return {"sessions": n, "value": float(each.mean()), "logged": logged, "interval": interval, "gain_interval": gain}

    def reliability(self) -> dict[str, Any]:
        """The least exposure, of how many sessions of equal weights estimates would vary as much, and what is not judged."""
        of, log = self.train, self.log
        inverse, examined = np.where(self.usable, 1.0 / np.maximum(of.exposure, 1e-300), 0.0), of.examined * self.usable
        effective = (~self.test).sum() * (examined @ inverse) ** 2 / (examined @ inverse**2) / examined.sum()
        missing = np.flatnonzero(~self.usable & (of.n > 0))
        first = log.pair_labels(self.sessions.codes[missing[:20]])
        return {
            "least_propensity": float(of.exposure[self.usable].min()), "effective_sessions": float(effective),
            "not_judged": len(missing), "pairs": int((of.n > 0).sum()),
            "not_judged_first": [f"{item} (query {query})" for query, item in first],
        }  # fmt: skip


def _further(log: ClickLog, features: Features) -> Indices:
    """Pairs that can be candidates though the log does not show them: those of a table; all labels of a log of one query."""
    n_items = len(log.item_labels)
    if not isinstance(features, Mapping):
        return np.arange(n_items) + int(log.queries[0]) * n_items if np.ptp(log.queries) == 0 else np.zeros(0, np.int64)
    query_of, item_of = ({label: i for i, label in enumerate(labels)} for labels in (log.query_labels, log.item_labels))
    pairs = [key for key in features if isinstance(key, tuple) and key[0] in query_of and key[1] in item_of]
    return np.array([query_of[query] * n_items + item_of[item] for query, item in pairs], np.int64)


def _features(log: ClickLog, sessions: Sessions, features: Features) -> tuple[Floats, Flags, dict[Key, Floats] | None]:
    """``(P, d)`` the features of each pair, which pairs have some, and the table that the ranker takes along."""
    queries, items = np.divmod(sessions.codes, len(log.item_labels))
    everywhere = np.ones(len(queries), bool)
    if isinstance(features, ContextualModel):
        both = np.hstack([features._users_part[queries], features.items[items]])
        return with_products(both, features.interactions), everywhere, None
    if features is None and log.context is not None:
        shown = sessions.shown >= 0
        x = np.zeros((len(queries), log.context.shape[2]))
        x[sessions.shown[shown]] = log.context[shown]
        odd = np.argwhere(np.abs(x[sessions.shown] - log.context).max(axis=2) * shown > 1e-9)
        if len(odd):
            raise ValueError(
                f"context[{odd[0, 0]}, {odd[0, 1]}] has other features of {log.item_labels[log.items[*odd[0]]]!r} than another "
                "session of the same query; expected the same, or queries of their own"
            )
        return x, np.bincount(sessions.shown[shown], minlength=len(queries)) > 0, None
    pairs = log.pair_labels(sessions.codes)
    if features is None:
        if len(pairs) > MOST_PAIRS:
            raise ValueError(
                f"the log has no features, and {len(pairs):,} pairs of query and item are more than {MOST_PAIRS:,}; expected "
                "columns feature_1, ..., or a table (features)"
            )
        features = dict(zip([item for _, item in pairs] if np.ptp(queries) == 0 else pairs, np.eye(len(pairs)), strict=True))
    x, table = _of_table(features, pairs)
    return x, everywhere, table


def _of_table(features: Mapping[Key, ArrayLike], pairs: list[tuple[str, str]]) -> tuple[Floats, dict[Key, Floats]]:
    """The row of each pair, or of its item, and all rows."""
    check_kind(
        "features", features, Mapping, "rows by item label or by query label and item label, or the model of an environment"
    )
    keys: list[Key] = [pair if pair in features else pair[1] for pair in pairs]
    for key in keys:
        if key not in features:
            raise ValueError(f"features has no row for {key!r}, which the log has")
    table = dict(zip(features, numbers("features", [*features.values()], (None, None)), strict=True))
    return np.array([table[key] for key in keys]), table


def _fit_test(log: ClickLog, test: NDArray[np.bool_]) -> dict[str, Any]:
    """The tests of `decide` and `evaluate` of a position-based model, on queries with enough displays of an item.

    Returns:
        The p-value of all, and the figure behind it in words; empty where no query has enough displays.
    """
    often = [of for of in grouped(log.queries)[1] if len(of) >= LEAST_DISPLAYS * len(np.unique(log.items[of]))]
    often = sorted(often, key=len, reverse=True)[:TESTED]
    found: list[tuple[float, str]] = []
    for of in often:
        train, held, query = log[of[~test[of]]], log[of[test[of]]], log.query_labels[log.queries[of[0]]]
        if not len(train) or not len(held):
            continue
        fit, _ = check_fit("PBM", CONVERGED.fit(PBMEstimator, train), held, len(train))
        if fit.patterns:
            pattern = min(fit.patterns, key=lambda each: each.p_value)
            figure = f"mean square of the deviations {pattern.mean_square:.2f}, where 1 is expected"
            found.append((fit.p_value * len(often), f"query {query}, {pattern.name}: {figure}"))
    if often:
        part = log[np.sort(np.concatenate(often))]
        above = check_above(part, CONVERGED.fit(PBMEstimator, part).click_probabilities(part))
        if not np.isnan(above):
            found.append((above, "clicks against what stands above them"))
    if not found:
        return {}
    p_value, figure = min(found)
    return {"p_value": min(1.0, 2 * p_value), "figure": figure}
