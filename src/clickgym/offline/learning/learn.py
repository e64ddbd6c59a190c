"""`learn`: from a click log to a ranker."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...agents.generic_rl import _one_thread as one_thread
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
from .exposure import Evidence, Floats, Indices, Logging, Sessions, evidence, exposures, sessions_of
from .objective import Layers, Linear, Network, Scorer, click_gradient, climb, scores_of, softmax_gradient, to_go_gradient
from .ranker import Key, LearnedRanker

METHODS = ("ips", "dr", "softmax")
SCORERS = ("linear", "network")
CASES, DISPLAYS = 128, 2048
"""Of a batch."""
MOST_PAIRS = 1000
"""Pairs of query and item up to which each may be a feature of its own."""
TESTED = 20
"""Of the most frequent queries, how many are tested for fit."""

Features = Mapping[Key, ArrayLike] | ContextualModel | Callable[[str, list[str]], ArrayLike] | None
Progress = Callable[[str, int, int], None]


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
    on_progress: Progress | None = None,
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
        scorer: ``"linear"``, or ``"network"`` (needs torch, which the extra ``rl`` brings; to use the ranker needs none).
        features: a mapping from item labels, or from pairs of query label and item label, to rows of d numbers; the model of
            an environment; or a function of a query label and item labels that returns ``(n, d)`` numbers. None: the log's
            context, where candidates that no session shows have none and take no part; without context each pair of query and
            item is a feature of its own.
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
        ImportError: a network, and torch is not installed.

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
    _check(log, method, scorer, hidden, on_progress)
    steps, seed = check_count("steps", steps), check_seed(seed)
    least = 0.0 if clip is None else check_between("clip", clip, 0.0, 1.0, closed=True)
    share, rng = check_between("held_out", held_out, 0.0, 1.0), np.random.default_rng(seed)
    tell = on_progress or (lambda *_: None)
    test = np.zeros(len(log), bool)
    test[rng.permutation(len(log))[: max(round(share * len(log)), 1)]] = True
    fitted = examination is None
    χ = _fitted_examination(log) if examination is None else probabilities("examination", examination, (log.n_positions,))
    if not χ.any():
        raise ValueError("examination is 0 at all positions; expected one that is examined")
    sessions = sessions_of(log, _further(log, features))
    x, has, table = _features(log, sessions, features)
    exposed = exposures(log, sessions, logging, χ, x, seed)
    parts = [evidence(sessions, exposed, χ, part) for part in (~test, test)]
    usable = parts[0].judged & has
    cases = np.where((sessions.cases >= 0) & usable[sessions.cases], sessions.cases, -1)
    weights = sessions.weights(~test) * ((cases >= 0).sum(axis=1) > 1)
    if not weights.any():
        raise ValueError("no session has two candidates that can be judged; expected a log that shows two items of a query")
    mean, spread = x[usable].mean(axis=0), x[usable].std(axis=0)
    scale = np.where(spread > 1e-12 * (1.0 + np.abs(mean)), spread, 1.0)
    task = _Task(sessions, cases, (x - mean) / scale, χ, rng)
    model: Scorer = Linear(x.shape[1], rng) if scorer == "linear" else Network(x.shape[1], rng, tuple(hidden))
    with one_thread() if scorer == "network" else nullcontext():
        predicted = None
        if method == "dr":
            _fit_clicks(task, model, test, steps, lambda *of: tell("clicks", *of))
            predicted = 1.0 / (1.0 + np.exp(-scores_of(model.layers(), task.x).clip(-30, 30)))
        values, checked = (part.values(predicted, least) for part in parts)
        gradient = softmax_gradient if method == "softmax" else lambda f, r: to_go_gradient(f, r, χ, rng)
        gains = np.where(usable, values, 0.0)
        bounds = np.cumsum(weights / weights.sum())[:-1]

        def step(now: Scorer) -> Floats:
            rows = cases[np.searchsorted(bounds, rng.random(CASES), side="right")]
            there = rows >= 0
            f = np.full(rows.shape, -np.inf)
            f[there] = now.forward(task.x[rows[there]])
            return gradient(f, np.where(there, gains[rows], 0.0))[there]

        known = np.where(parts[1].judged, checked, 0.0)
        of_cases = sessions.weights(test)
        climb(model, step, lambda layers: task.value(layers, known, of_cases), steps, lambda *of: tell("lists", *of))
    facts: dict[str, Any] = {
        "method": method, "scorer": scorer, "sessions": len(log), "clicks_per_session": float(log.clicks.sum() / len(log)),
        "logging": "propensities" if logging is None else logging if isinstance(logging, str) else "a policy",
        "examination": χ.tolist(), "examination_fitted": fitted, "clip": least, "seed": seed,
        **_reliability(parts[0], usable, len(log) - int(test.sum())),
        "held_out": task.estimate(model.layers(), parts[1], known, predicted, least, test, log),
        **_unjudged(log, sessions, parts[0], has), "fit": _fit_test(log, test),
    }  # fmt: skip
    if facts["fit"] and facts["fit"]["p_value"] < FITS:
        figure = f"p = {facts['fit']['p_value']:.2g}; {facts['fit']['figure']}"
        warnings.warn(
            f"clicks do not fit a position-based model ({figure}): the estimates are biased", FitWarning, stacklevel=2
        )
    widest = max(int((sessions.cases >= 0).sum(axis=1).max()), log.n_positions)
    return LearnedRanker(
        model.layers(), mean=mean, scale=scale, n_items=widest, n_positions=log.n_positions, table=table, facts=facts, seed=seed
    )


def _check(log: Any, method: Any, scorer: Any, hidden: Any, on_progress: Any) -> None:
    check_kind("log", log, ClickLog, "a ClickLog")
    check_choice("method", method, METHODS)
    check_choice("scorer", scorer, SCORERS)
    if not is_sequence(hidden) or not len(hidden):
        raise ValueError(f"hidden is {hidden!r}; expected the units of one layer or more")
    for units in hidden:
        check_count("hidden", units)
    if on_progress is not None:
        check_callable("on_progress", on_progress)
    if len(log) < 2:
        raise ValueError(f"the log has {len(log)} sessions; expected two or more, of which a part is held out")


def _fitted_examination(log: ClickLog) -> Floats:
    fitted = QUICK.fit(PBMEstimator, log).examination_  # type: ignore[attr-defined]
    return fitted / fitted.max()


def _further(log: ClickLog, features: Features) -> Indices:
    """Pairs that can be candidates though the log does not show them: those of a table; all labels of a log of one query."""
    n_items = len(log.item_labels)
    if isinstance(features, Mapping):
        query_of, item_of = ({label: i for i, label in enumerate(labels)} for labels in (log.query_labels, log.item_labels))
        pairs = [key for key in features if isinstance(key, tuple) and key[0] in query_of and key[1] in item_of]
        return np.array([query_of[query] * n_items + item_of[item] for query, item in pairs], np.int64)
    return np.arange(n_items) + int(log.queries[0]) * n_items if np.ptp(log.queries) == 0 else np.zeros(0, np.int64)


def _features(log: ClickLog, sessions: Sessions, features: Features) -> tuple[Floats, NDArray[np.bool_], Any]:
    """``(P, d)`` the features of each pair, which pairs have some, and the table that the ranker takes along."""
    queries, items = np.divmod(sessions.codes, len(log.item_labels))
    n_pairs, everywhere = len(queries), np.ones(len(queries), bool)
    if isinstance(features, ContextualModel):
        parts = [features._users_part[queries], features.items[items]]
        return with_products(np.hstack(parts), features.interactions), everywhere, None
    keys: list[Any] = [(log.query_labels[q], log.item_labels[i]) for q, i in zip(queries.tolist(), items.tolist(), strict=True)]
    if isinstance(features, Mapping):
        of_pairs = any(isinstance(key, tuple) for key in features)
        keys = keys if of_pairs else [item for _, item in keys]
        for key in keys:
            if key not in features:
                raise ValueError(f"features has no row for {key!r}, which the log has")
        x = numbers("features", [features[key] for key in keys], (n_pairs, "features"))
        return x, everywhere, dict(zip(features, numbers("features", list(features.values()), (None, x.shape[1])), strict=True))
    if features is not None:
        check_callable("features", features)
        rows = [
            numbers("features", features(log.query_labels[q], [log.item_labels[i] for i in items[of]]), (len(of), "features"))
            for q, of in zip(*grouped(queries), strict=True)
        ]
        return np.concatenate(rows), everywhere, None
    if log.context is not None:
        shown = sessions.shown >= 0
        x = np.zeros((n_pairs, log.context.shape[2]))
        x[sessions.shown[shown]] = log.context[shown]
        odd = np.abs(x[sessions.shown] - log.context).max(axis=2) * shown > 1e-9
        if odd.any():
            session, k = np.argwhere(odd)[0]
            raise ValueError(
                f"context[{session}, {k}] has other features of {log.item_labels[log.items[session, k]]!r} than another "
                "session of the same query; expected the same, or queries of their own"
            )
        return x, np.bincount(sessions.shown[shown], minlength=n_pairs) > 0, None
    if n_pairs > MOST_PAIRS:
        raise ValueError(
            f"the log has no features, and {n_pairs:,} pairs of query and item are more than {MOST_PAIRS:,}; expected columns "
            "feature_1, ..., or a table (features)"
        )
    one_query = len(np.unique(queries)) == 1
    x = np.eye(n_pairs)
    return x, everywhere, {key[1] if one_query else key: row for key, row in zip(keys, x, strict=True)}


class _Task:
    """What is optimised; x are scaled features ``(P, d)``, and ``cases`` those of the sessions without what is not judged."""

    def __init__(self, sessions: Sessions, cases: Indices, x: Floats, χ: Floats, rng: np.random.Generator) -> None:
        self.sessions, self.cases, self.x, self.χ, self.rng = sessions, cases, x, χ, rng

    def lists(self, layers: Layers) -> Indices:
        """``(C, K')`` the pairs of the ranker's list of each case, -1 below its end."""
        f = np.where(self.cases < 0, -np.inf, scores_of(layers, self.x)[self.cases])
        order = np.argsort(-f, axis=1, kind="stable")[:, : len(self.χ)]
        return np.take_along_axis(self.cases, order, axis=1)

    def value(self, layers: Layers, known: Floats, weights: Floats) -> float:
        """The clicks per session that the ranker's lists earn by values of pairs, 0 for those that are not known."""
        lists = self.lists(layers)
        earned = np.where(lists < 0, 0.0, known[lists]) @ self.χ[: lists.shape[1]]
        return float(weights @ earned / weights.sum())

    def estimate(
        self,
        layers: Layers,
        of: Evidence,
        known: Floats,
        predicted: Floats | None,
        clip: float,
        test: NDArray[np.bool_],
        log: ClickLog,
    ) -> dict[str, Any]:
        """The clicks per session that the ranker's lists earn by the held-out part, and their gain on those of the log.

        A session counts by what it adds to the estimates of the items that it shows; intervals are normal, at 95 %.
        """
        sessions, n = self.sessions, int(test.sum())
        lists, weights = self.lists(layers), sessions.weights(test)[:, None]
        wanted = np.zeros(len(of.n))
        np.add.at(wanted, lists[lists >= 0], np.broadcast_to(weights * self.χ[: lists.shape[1]], lists.shape)[lists >= 0])
        share = wanted / np.maximum(of.n * np.maximum(of.exposure, clip), 1e-300) * of.judged
        base = np.zeros(len(of.n)) if predicted is None else predicted
        shown = sessions.shown[test]
        added = np.where(shown < 0, 0.0, share[shown] * (sessions.clicks[test] - self.χ * base[shown])).sum(axis=1)
        each = added + float((wanted * np.where(of.judged, base, 0.0)).sum()) / n
        gains = each - log.clicks[test].sum(axis=1)
        half = NormalDist().inv_cdf(0.975) / np.sqrt(n)
        return {
            "sessions": n, "value": float(each.mean()), "logged": float(log.clicks[test].sum() / n),
            "interval": [float(each.mean() + sign * half * each.std()) for sign in (-1, 1)],
            "gain_interval": [float(gains.mean() + sign * half * gains.std()) for sign in (-1, 1)],
        }  # fmt: skip


def _fit_clicks(
    task: _Task, model: Scorer, test: NDArray[np.bool_], steps: int, on_progress: Callable[[int, int], None]
) -> None:
    """Fit attractions σ(f) to the clicks of what was shown, given the examination."""
    shown, clicks = task.sessions.shown, task.sessions.clicks
    places = [np.nonzero((shown >= 0) & part[:, None]) for part in (~test, test)]
    (pairs, χ, clicked), of_test = ((shown[at], task.χ[at[1]], clicks[at].astype(np.float64)) for at in places)

    def step(now: Scorer) -> Floats:
        drawn = task.rng.integers(len(pairs), size=DISPLAYS)
        return click_gradient(now.forward(task.x[pairs[drawn]]), χ[drawn], clicked[drawn])[1]

    def held_out(layers: Layers) -> float:
        return float(click_gradient(scores_of(layers, task.x)[of_test[0]], *of_test[1:])[0].mean())

    climb(model, step, held_out, steps, on_progress)


def _reliability(of: Evidence, usable: NDArray[np.bool_], n: int) -> dict[str, float]:
    """The least exposure of a pair, and of how many sessions of equal weights estimates would vary as much."""
    inverse = np.where(usable, 1.0 / np.maximum(of.exposure, 1e-300), 0.0)
    total, squares = (of.examined * inverse).sum(), (of.examined * inverse**2).sum()
    examined = (of.examined * usable).sum()
    return {
        "least_propensity": float(of.exposure[usable].min()),
        "effective_sessions": float(n * total**2 / squares / examined),
    }


def _unjudged(log: ClickLog, sessions: Sessions, of: Evidence, has: NDArray[np.bool_]) -> dict[str, Any]:
    """How many pairs are not judged, and the first of them by name."""
    missing = np.flatnonzero(~(of.judged & has) & (of.n > 0))
    queries, items = np.divmod(sessions.codes[missing], len(log.item_labels))
    named = [f"{log.item_labels[i]} (query {log.query_labels[q]})" for q, i in zip(queries[:20], items[:20], strict=True)]
    return {"not_judged": len(missing), "not_judged_first": named, "pairs": int((of.n > 0).sum())}


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
        fit = check_fit("PBM", CONVERGED.fit(PBMEstimator, train), held, len(train))[0] if len(train) and len(held) else None
        if fit is not None and fit.patterns:
            pattern = min(fit.patterns, key=lambda each: each.p_value)
            figure = (
                f"query {query}, {pattern.name}: mean square of the deviations {pattern.mean_square:.2f}, where 1 is expected"
            )
            found.append((fit.p_value * len(often), figure))
    if often:
        part = log[np.sort(np.concatenate(often))]
        above = check_above(part, CONVERGED.fit(PBMEstimator, part).click_probabilities(part))
        if not np.isnan(above):
            found.append((above, "clicks against what stands above them"))
    if not found:
        return {}
    p_value, figure = min(found)
    return {"p_value": min(1.0, 2 * p_value), "figure": figure}
