"""A decision in plain words: the advice, what it rests on, and what speaks against it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from ..distinct import sorted_distinct
from ..evaluation import LEAST_SESSIONS
from ..log import ClickLog
from ..model_weights import MODEL_BASED

if TYPE_CHECKING:
    from .decide import Decision
    from .lists import Measured

__all__ = ["UNITS", "advice", "and_", "objections"]

UNITS = {"clicks": "clicks per session", "any_click": "sessions with a click", "satisfaction": "satisfied users per session"}

SHORT = 1000
"""Held-out sessions of the query below which the log is called short."""
COMPLETE = 0.95
"""Share of the sessions below which it is said of how many a measured gain speaks."""
SURE = 3.0
"""Standard errors beyond which two halves of the log are called different."""


def advice(decision: Decision) -> tuple[str, tuple[str, ...]]:
    """The headline, and what it rests on, a sentence each."""
    if decision.verdict == "unknown":
        return "Nothing can be recommended", tuple(_lacks(decision))
    if decision.verdict == "not better":
        return "Keep the list in production", (*_no_ground(decision), *_same(decision), *_fit(decision))
    if decision.evidence.ground == "measured":
        return "Show the proposed list", (*_measured(decision), *_certainty(decision), *_precision(decision))
    return "Try the proposed list in an experiment", (
        *_modelled(decision), *_certainty(decision), *_precision(decision), "So it is worth an experiment, and no promise.",
    )  # fmt: skip


def _lacks(decision: Decision) -> Iterable[str]:
    """Why nothing can be recommended."""
    proposal = decision.proposal
    sizes = {name: estimate.effective_sample_size for name, estimate in proposal.estimates.items()}
    few = {name: size for name, size in sizes.items() if size < LEAST_SESSIONS}
    if decision.reward == "satisfaction":
        yield "No log tells who was satisfied, so that no list can be measured, and no estimator tried on what lists earned."
        return
    yield (
        f"No logged list can be compared with that in production: that takes {LEAST_SESSIONS} sessions of another whole list."
    )
    if few:
        yield (
            f"The {decision.n_held_out:,} held-out sessions contain only {min(few.values()):.0f} effective sessions for the "
            f"list of {decision.winner} (at least {LEAST_SESSIONS} are needed), by {and_(few)}."
        )
    if proposal.refused:
        yield (
            f"The held-out sessions do not show what the list of {decision.winner} does, and leave no estimate by "
            f"{and_(proposal.refused)} "
            f"({next(iter(proposal.refused.values()))})."
        )
    if not decision.checks:
        yield (
            "Too few lists were logged often: estimators that assume a click model cannot be tried on them, and are not "
            "believed."
        )
    yield from _fit(decision)


def _no_ground(decision: Decision) -> Iterable[str]:
    """Why no list is recommended, though there is something to judge by."""
    evidence, unit = decision.evidence, UNITS[decision.reward]
    if evidence.measured and evidence.ground != "measured":
        best = max(evidence.measured, key=lambda each: each.difference)
        yield (
            f"None of the {_count(len(evidence.measured), 'logged list')} with at least {LEAST_SESSIONS} sessions earned more "
            f"than the list in production beyond chance; the most has a difference of {_with_interval(best)} {unit}."
        )
    if evidence.proposal is None:
        if evidence.fitting:
            yield f"By no click model that fits ({and_(evidence.fitting)}) another list gains for sure."
        return
    assert evidence.difference is not None
    assert evidence.interval is not None
    low, high = evidence.interval
    source = "measured in the log" if evidence.ground == "measured" else f"by {and_(evidence.fitting)}, at the least"
    yield (
        f"The most promising list may gain {evidence.difference:+.3f} {unit} ({low:+.3f} to {high:+.3f}), {source}. That is no "
        f"gain to rely on: it has a probability of {evidence.p_value:.2g} if there is none, and {_threshold(decision)}."
    )


def _threshold(decision: Decision) -> str:
    """How improbable a gain has to be where there is none."""
    if decision.n_decided > 1:
        return (
            f"the correction for the {decision.n_decided:,} queries that were decided at once (Benjamini–Hochberg) asks for "
            f"{decision.level:.2g} or less"
        )
    return f"{decision.level:.2g} or less is asked for"


def _same(decision: Decision) -> Iterable[str]:
    if decision.proposal.labels == decision.production.labels:
        yield f"{decision.winner}, the agent that lost least to the fitted users, ends at the very list that is in production."


def _measured(decision: Decision) -> Iterable[str]:
    """What the log says of a list that it showed often."""
    evidence = decision.evidence
    best, n = evidence.measured[0], len(evidence.measured)
    others = f", as the best of {n} such lists" if n > 1 else ""
    yield (
        f"The log showed this list in {best.sessions:,} sessions. It earned {_with_interval(best)} {UNITS[decision.reward]} "
        f"more than the list in production{_relative(decision, best.difference)}{others}. The interval allows for the choice, "
        "and no click model is assumed."
    )
    if best.share < COMPLETE:
        yield f"That is said of the {best.share:.0%} of sessions whose number of results lets both lists be measured."
    if decision.n_decided > 1:
        yield f"A gain by chance has a probability of {best.p_value:.2g}; {_threshold(decision)}."


def _modelled(decision: Decision) -> Iterable[str]:
    """What click models say of a list that the log hardly shows."""
    evidence = decision.evidence
    assert evidence.difference is not None
    assert evidence.interval is not None
    low, high = evidence.interval
    models, several = and_(each.model for each in evidence.judged), len(evidence.judged) > 1
    yield (
        f"The log shows this list too rarely to measure it. {models} {'fit' if several else 'fits'} the held-out clicks. By "
        f"{'the one of them that doubts it most' if several else 'this model'} it earns {evidence.difference:+.3f} "
        f"({low:+.3f} to {high:+.3f}) {UNITS[decision.reward]} more than the list in "
        f"production{_relative(decision, evidence.difference)}."
    )
    errors = _range(each.typical_error for each in evidence.judged)
    yield (
        f"Each model is corrected by what it gets wrong about the logged lists, and its interval counts that it is off by about"
        f" {errors} for a list that it has not seen."
    )
    if decision.n_decided > 1:
        yield f"Without a gain this has a probability of {evidence.p_value:.2g}; {_threshold(decision)}."


def _fit(decision: Decision) -> Iterable[str]:
    """That no model fits, and what follows."""
    fits = decision.evidence.fits
    if any(fit.fits for fit in fits):
        return
    if not any(fit.patterns for fit in fits):
        yield "The held-out sessions are too few to test whether a click model fits, so that only logged lists are judged."
        return
    yield "No click model fits the held-out clicks (step 1), so that only logged lists are judged."


def _certainty(decision: Decision) -> Iterable[str]:
    """What off-policy estimators say of the proposal."""
    gains = decision.gains
    if gains:
        yield (
            f"Off-policy estimates from the {decision.n_held_out:,} held-out sessions say "
            f"{_range((gain.difference or 0.0 for gain in gains.values()), signed=True)} ({and_(gains)})."
        )


def _precision(decision: Decision) -> Iterable[str]:
    """How far the estimators that are believed were off on logged lists."""
    errors = [check.error for check in decision.checks if check.estimator in decision.gains]
    if errors:
        yield (
            f"These came nearest to what {len(decision.earned)} logged lists earned that were taken out: off by "
            f"{_range(errors)} on average."
        )


def _relative(decision: Decision, difference: float) -> str:
    """A gain in percent of what the list in production earns by the models, or by what was logged."""
    base = decision.production.predicted
    return f" ({100 * difference / base:+.0f} %)" if base > 0 else ""


def _with_interval(gain: Measured) -> str:
    low, high = gain.interval
    return f"{gain.difference:+.3f} ({low:+.3f} to {high:+.3f})"


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}s" if n > 1 else f"one {what}"


def objections(decision: Decision, log: ClickLog) -> dict[str, str]:
    """What speaks against relying on the decision: by catchword, a sentence or two.

    Args:
        decision: all but its words.
        log: all sessions of the query.
    """
    sentences = {
        "Overlap": _overlap(decision, log),
        "Fit": _misfit(decision),
        "Disagreement": _disagreement(decision),
        "Optimism of the model": _optimism(decision),
        "Mean weights": _weights(decision),
        "Lists of several lengths": _lengths(log),
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


def _misfit(decision: Decision) -> str:
    """What the users of the simulation do not explain."""
    fit = decision.evidence.fits[0]
    if fit.fits or not fit.patterns:
        return ""
    pattern = min(fit.patterns, key=lambda each: each.p_value)
    group = pattern.worst
    return (
        f"{fit.model} predicts best, and yet chance does not explain what it leaves over, most by {pattern.name}: "
        f"{group.name} was clicked in {group.observed:.1%} of {group.displays:,} held-out displays, where it predicts "
        f"{group.predicted:.1%}. What agents do in step 3 is done with these users."
    )


def _weights(decision: Decision) -> str:
    """Estimates of the proposal whose mean weight is not 1."""
    off = {
        name: estimate.mean_weight
        for name, estimate in decision.proposal.estimates.items()
        if any("mean weight" in caution for caution in estimate.cautions)
    }
    if not off:
        return ""
    weights = and_(f"{weight:.3f} of {name}" for name, weight in off.items())
    return f"The mean weight is {weights}, where 1 is expected; these estimates in step 4 are off by about as much."


def _lengths(log: ClickLog) -> str:
    lengths, counts = np.unique(log.lengths, return_counts=True)
    if len(lengths) < 2:
        return ""
    shares = and_(f"{length} ({count / len(log):.0%})" for length, count in zip(lengths.tolist(), counts, strict=True))
    return f"The lists of the log have {shares} items. A session with fewer shows the first items of a list."


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
    if not decision.believed or decision.evidence.ground == "measured":
        return ""
    differences = [gain.difference or 0.0 for gain in decision.gains.values()]
    if promised <= np.mean(differences) or decision.proposal.labels == decision.production.labels:
        return ""
    return (
        f"{decision.scores[0].model}, the model of the users, promises {promised:+.3f} for this list; the held-out sessions "
        f"say {_range(differences, signed=True)}. A list that is best for a model takes advantage of its errors."
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
    _, index, counts = sorted_distinct(log.items)
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
    n_items = len(np.unique(log.items[log.items >= 0]))
    if n_items <= decision.instance.n_items:
        return ""
    words = f"Only the {decision.instance.n_items} items that the query showed most were ranked, of {n_items:,}."
    others = [label for label in decision.evidence.production if label not in decision.instance.estimation["items"]]
    if others:
        words += (
            f" The list in production also shows {and_(others)}; in steps 3 to 5 stands what comes next in place of "
            f"{'it' if len(others) == 1 else 'them'}."
        )
    return words


def _range(values: Iterable[float], signed: bool = False, digits: int = 3) -> str:
    """The least and the largest, once if they are alike."""
    ends = list(values)
    low, high = (f"{value:{'+' if signed else ''}.{digits}f}" for value in (min(ends), max(ends)))
    return low if low == high else f"{low} to {high}"


def and_(words: Iterable[str]) -> str:
    """The words in a row.

    Example:
        >>> and_(["a"]), and_(["a", "b"]), and_(["a", "b", "c"])
        ('a', 'a and b', 'a, b and c')
    """
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last
