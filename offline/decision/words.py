"""A decision in plain words: the advice, what it rests on, and what speaks against it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from ..evaluation import LEAST_SESSIONS
from ..log import ClickLog
from ..model_weights import MODEL_BASED

if TYPE_CHECKING:
    from .decide import Decision

__all__ = ["UNITS", "advice", "and_", "objections", "percent"]

UNITS = {"clicks": "clicks per session", "any_click": "sessions with a click", "satisfaction": "satisfied users per session"}

SHORT = 1000
"""Held-out sessions of the query below which the log is called short."""
SURE = 3.0
"""Standard errors beyond which two halves of the log are called different."""


def advice(decision: Decision) -> tuple[str, tuple[str, ...]]:
    """The headline, and what it rests on, a sentence each."""
    if decision.verdict == "unknown":
        return "Nothing can be recommended", tuple(_lacks(decision))
    if decision.proposal.labels == decision.production.labels:
        return "Keep the list in production", (
            f"{_winner(decision)}, the agent that lost least to the fitted users, ends at the very list that is in production.",
        )
    headline = {
        "better": "Show the proposed list",
        "likely better": "Try the proposed list in an experiment",
        "not better": "Keep the list in production",
    }[decision.verdict]
    return headline, (*_gain(decision), *_precision(decision), *_reservation(decision))


def _lacks(decision: Decision) -> Iterable[str]:
    """Why nothing can be recommended."""
    proposal = decision.proposal
    sizes = {name: estimate.effective_sample_size for name, estimate in proposal.estimates.items()}
    few = {name: size for name, size in sizes.items() if size < LEAST_SESSIONS}
    if few:
        yield (
            f"Of the {decision.n_held_out:,} held-out sessions, those that tell of the list of {_winner(decision)} "
            f"weigh as few as {min(few.values()):.0f}; at least {LEAST_SESSIONS} are needed ({and_(few)})."
        )
    if proposal.refused:
        yield (
            f"The held-out sessions do not show what the list of {_winner(decision)} does, and leave no estimate by "
            f"{and_(proposal.refused)} "
            f"({next(iter(proposal.refused.values()))})."
        )
    if not decision.checks and decision.reward == "satisfaction":
        yield "No log tells who was satisfied, so that no estimator can be tried on what lists have earned."
    elif not decision.checks:
        yield (
            "Too few lists were logged often: estimators that assume a click model cannot be tried on them, and are not "
            "believed."
        )


def _gain(decision: Decision) -> Iterable[str]:
    """How the proposed list compares with that in production, by the estimators that are believed."""
    gains, production = decision.gains, decision.production.estimates
    differences = [gain.difference or 0.0 for gain in gains.values()]
    now = [production[name].value for name in gains if name in production]
    yield (
        f"In {decision.n_held_out:,} sessions that neither models nor agents have seen, the proposed list would have earned "
        f"{_range(gain.value for gain in gains.values())} {UNITS[decision.reward]}, the list in production {_range(now)}: a "
        f"difference of {_range(differences, signed=True)}"
        f"{f' ({percent(differences, now)})' if now and min(now) > 0 else ''}."
    )
    shares = [100 * (gain.probability_better or 0.0) for gain in gains.values()]
    yield (
        f"Certainty: it gains in {_range(shares, digits=1)} % of 1,000 resamplings of these "
        f"sessions, by {and_(gains)}. That leaves out what their own assumptions are wrong by."
    )


def _precision(decision: Decision) -> Iterable[str]:
    """How far the estimators that are believed were off on logged lists."""
    errors = [check.error for check in decision.checks if check.estimator in decision.gains]
    if errors:
        yield (
            f"These came nearest to what {len(decision.earned)} logged lists earned that were taken out: off by "
            f"{_range(errors)} on average."
        )


def _reservation(decision: Decision) -> Iterable[str]:
    """Why the advice is no more than it is."""
    if decision.verdict == "not better":
        yield "That is no gain to rely on."
    elif decision.verdict == "likely better" and decision.checks:
        yield f"{_weakness(decision)}, so this is worth an experiment, and no promise."
    elif decision.verdict == "likely better":
        yield "Too few lists were logged often to try the estimators on: this is worth an experiment, and no promise."


def objections(decision: Decision, log: ClickLog) -> dict[str, str]:
    """What speaks against relying on the decision: by catchword, a sentence or two.

    Args:
        decision: all but its words.
        log: all sessions of the query.
    """
    sentences = {
        "Overlap": _overlap(decision, log),
        "Disagreement": _disagreement(decision),
        "Optimism of the model": _optimism(decision),
        "A short log": _short(decision),
        "How lists were chosen": _counted(log),
        "Changes over time": _drift(log, decision.cutoff),
        "One query": _mix(decision),
        "Few candidates": _few(decision, log),
    }
    return {catchword: words for catchword, words in sentences.items() if words}


def _overlap(decision: Decision, log: ClickLog) -> str:
    proposal = decision.proposal
    number = {label: item for item, label in enumerate(log.item_labels)}
    ranking = np.array([number[label] for label in proposal.labels])
    agrees = log.items[:, : len(ranking)] == ranking
    whole, never = int(agrees.all(axis=1).sum()), int((~agrees.any(axis=0)).sum())
    if whole >= LEAST_SESSIONS:
        return ""
    words = f"The log showed this list in {whole} sessions only" if whole else "The log never showed this list as a whole"
    if never:
        words += f"; {never} of its {len(ranking)} items never stood where they stand in it"
    refused = [name for name in proposal.refused if name not in MODEL_BASED]
    if refused:
        words += f". What needs no click model is silent about it ({and_(refused)}); what speaks assumes one"
    return f"{words}."


def _disagreement(decision: Decision) -> str:
    gains = {
        name: estimate.difference for name, estimate in decision.proposal.estimates.items() if estimate.difference is not None
    }
    if len(gains) < 2 or decision.proposal.labels == decision.production.labels:
        return ""
    low, high = min(gains, key=gains.__getitem__), max(gains, key=gains.__getitem__)
    if gains[low] > 0.5 * gains[high] > 0:
        return ""
    words = f"The estimators say {gains[low]:+.3f} ({low}) to {gains[high]:+.3f} ({high})"
    others = [name for name in (low, high) if name not in decision.believed]
    if others:
        words += f"; {and_(others)} {'is' if len(others) == 1 else 'are'} not believed"
    return f"{words}."


def _optimism(decision: Decision) -> str:
    promised = decision.proposal.predicted - decision.production.predicted
    if not decision.believed or decision.proposal.labels == decision.production.labels:
        return ""
    differences = [gain.difference or 0.0 for gain in decision.gains.values()]
    if promised <= np.mean(differences):
        return ""
    return (
        f"{decision.scores[0].model}, the model on which the list was learned, promises {promised:+.3f}; the held-out "
        f"sessions say {_range(differences, signed=True)}. An optimum takes advantage of the errors of its model."
    )


def _short(decision: Decision) -> str:
    if decision.n_held_out >= SHORT:
        return ""
    return (
        f"Only {decision.n_held_out:,} sessions of the query were held out, below {SHORT:,}: they hardly tell small gains from "
        "none."
    )


def _counted(log: ClickLog) -> str:
    if log.list_propensities is not None or log.propensities is not None:
        return ""
    return (
        "The log does not say with which probability it showed what; that is counted in it. Where lists were chosen by user or "
        "time, all figures here are biased, and nothing in the log tells."
    )


def _drift(log: ClickLog, cutoff: int | None) -> str:
    """Whether the first half of the sessions, as the log has them, earned another number of clicks, or had another list."""
    half = len(log) // 2
    clicks = log.clicks[:, :cutoff].sum(axis=1).astype(float)
    _, index, counts = np.unique(log.items, axis=0, return_inverse=True, return_counts=True)
    usual = (index == counts.argmax()).astype(float)
    jumps = []
    for what, values, form in (("clicks per session", clicks, "{:.3f}"), ("share of the most frequent list", usual, "{:.1%}")):
        first, second = values[:half], values[half:]
        if not len(first):
            continue
        error = np.sqrt(first.var() / len(first) + second.var() / len(second))
        if abs(second.mean() - first.mean()) > SURE * error:
            jumps.append(f"the {what} went from {form.format(first.mean())} to {form.format(second.mean())}")
    if not jumps:
        return ""
    return (
        f"From the first half of the log to the second {and_(jumps)}, by more than {SURE:.0f} standard errors. Where users and "
        "lists change together, estimates mix the two up."
    )


def _mix(decision: Decision) -> str:
    if decision.n_queries < 2:
        return ""
    return (
        f"This is said of query {decision.query} alone, {decision.n_of_query / decision.n_sessions:.1%} of the log's sessions; "
        f"of the {decision.n_queries - 1:,} other queries it says nothing."
    )


def _few(decision: Decision, log: ClickLog) -> str:
    n_items = len(np.unique(log.items))
    if n_items <= decision.instance.n_items:
        return ""
    return f"Only the {decision.instance.n_items} items that the query showed most were ranked, of {n_items:,}."


def _weakness(decision: Decision) -> str:
    """Why a gain is likely and no more."""
    errors = {check.estimator: check.error for check in decision.checks}
    small = [
        f"by {name} the gain of {gain.difference:+.3f} is no larger than its own error of {errors[name]:.3f}"
        for name, gain in decision.gains.items()
        if name in errors and gain.difference is not None and gain.difference <= errors[name]
    ]
    unsure = [
        f"by {name} no gain would be possible, too"
        for name, gain in decision.gains.items()
        if gain.difference_interval is not None and gain.difference_interval[0] <= 0
    ]
    return f"But {and_(small + unsure)}"


def _winner(decision: Decision) -> str:
    return decision.proposal.name.removeprefix("learned by ")


def _range(values: Iterable[float], signed: bool = False, digits: int = 3) -> str:
    """The least and the largest, once if they are alike."""
    ends = list(values)
    low, high = (f"{value:{'+' if signed else ''}.{digits}f}" for value in (min(ends), max(ends)))
    return low if low == high else f"{low} to {high}"


def percent(differences: Iterable[float], base: Iterable[float]) -> str:
    """Differences in percent of what there is now."""
    shares = [100 * difference / now for difference, now in zip(differences, base, strict=True)]
    return f"{_range(shares, signed=True, digits=0)} %"


def and_(words: Iterable[str]) -> str:
    """The words in a row.

    Example:
        >>> and_(["a"]), and_(["a", "b"]), and_(["a", "b", "c"])
        ('a', 'a and b', 'a, b and c')
    """
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last
