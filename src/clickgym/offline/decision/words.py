"""A decision in plain words: the advice, its evidence, and the objections to it."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import NormalDist

import numpy as np

from ..distinct import sorted_distinct
from ..evaluation import LEAST_SESSIONS
from ..log import BLOCKS, ClickLog, time_blocks
from ..model_weights import MODEL_BASED
from ..verdict import and_
from .evidence import POWER, Ground, experiment
from .lists import LEFT_OUT, STEADY, Measured
from .records import Decision

SHORT = 1000
"""Held-out sessions of the query below which the log is called short."""
COMPLETE = 0.95
"""Share of the sessions below which it is said of how many a measured gain speaks."""
SURE = 3.0
"""Standard errors beyond which two halves of the log are called different."""

FEW = f"sessions of the query were held out. With fewer than {SHORT:,}, small gains cannot be detected."
COUNTED = (
    "The log does not record the probability with which each list was shown (propensity), so that it was estimated from "
    "frequencies. If the list depended on the user or on the time, all estimates here are biased, and the log cannot show it."
)
UNTIMED = (
    "The log has no times. Its sessions are taken in the order of the file: if the file is shuffled, changes over time cannot "
    "be seen. If there is a column of times, name it (--time)."
)
REPEATED = "sessions of the log repeat another one: its time, query, list and clicks. Each counts once here."


def advice(decision: Decision) -> tuple[str, tuple[str, ...]]:
    """The headline, and the sentences of its evidence."""
    if decision.verdict == "unknown":
        return "Nothing can be recommended", (*_refused(decision), *_lacks(decision))
    if decision.verdict == "not better":
        sentences = (*_no_ground(decision), *_refused(decision), *_same(decision), *_fit(decision))
        return "Keep the list in production", sentences
    ground = decision.ground
    assert ground is not None
    told = (_measured if ground.name == "measured" else _modelled)(decision, ground)
    if decision.verdict == "not proven":
        sentences = (*told, *_unproven(decision, ground), *_refused(decision), *_fit(decision))
        return "Keep the list in production until an experiment decides", sentences
    if decision.verdict == "better":
        return "Show the proposed list", (*told, *_estimates(decision), *_larger(decision))
    test = f"Test the list before you show it to all users. {_experiment(decision, ground)}"
    return "Try the proposed list in an experiment", (*told, *_estimates(decision), test, *_refused(decision))


def _lacks(decision: Decision) -> Iterable[str]:
    """Why nothing can be recommended."""
    proposal = decision.proposal
    sizes = {name: estimate.effective_sample_size for name, estimate in proposal.estimates.items()}
    few = {name: size for name, size in sizes.items() if size < LEAST_SESSIONS}
    if decision.reward == "satisfaction":
        yield (
            "A click log does not record which users were satisfied. Therefore no list can be measured, and no estimator can "
            "be tested."
        )
        return
    if not decision.evidence.refused:
        yield (
            f"No other list was shown in at least {LEAST_SESSIONS} sessions, so that none can be compared with the list in "
            f"production."
        )
    if few:
        yield (
            f"The {decision.n_held_out:,} held-out sessions contain only {min(few.values()):.0f} effective sessions for the "
            f"list of {decision.winner} (at least {LEAST_SESSIONS} are needed), by {and_(few)}."
        )
    if proposal.refused:
        yield (
            f"From the held-out sessions {and_(proposal.refused)} cannot estimate the list of {decision.winner} "
            f"({next(iter(proposal.refused.values()))})."
        )
    if not decision.checks:
        yield (
            "Too few lists were logged often to test the estimators that assume a click model, so that these are not trusted."
        )
    yield from _fit(decision)


def _no_ground(decision: Decision) -> Iterable[str]:
    """Why no list is recommended, although lists could be compared."""
    evidence, unit = decision.evidence, decision.unit
    if evidence.measured:
        best = max(evidence.measured, key=lambda each: each.difference)
        yield (
            f"No logged list with at least {LEAST_SESSIONS} sessions earned significantly more than the list in production at "
            f"the same times ({len(evidence.measured):,} compared); the largest difference is {_gain(best)} {unit}."
        )
    ground = decision.ground
    if ground is None:
        if evidence.fitting:
            yield f"No click model that fits ({and_(evidence.fitting)}) predicts a significant gain for another list."
        return
    low, high = ground.interval
    yield (
        f"The most promising list may gain {ground.difference:+.3f} {unit} ({low:+.3f} to {high:+.3f}), the lowest prediction "
        f"of {and_(evidence.fitting)}. This gain is not significant: its p-value is {ground.p_value:.2g}, and "
        f"{_threshold(decision)}."
    )


def _refused(decision: Decision) -> Iterable[str]:
    """The logged lists that cannot be compared with the list in production."""
    refused = decision.evidence.refused
    if not refused:
        return
    most = max(refused, key=lambda each: each.sessions)
    where = f"{most.share:.0%} of them in the {most.blocks} of {BLOCKS} blocks of time that show both often enough"
    if not most.blocks:
        where = "hardly ever at the same time as the list in production"
    yield (
        f"{len(refused):,} of the lists with at least {LEAST_SESSIONS} sessions cannot be compared with the list in "
        f"production: the lists changed with time; this log cannot compare them. {', '.join(most.labels)} was shown in "
        f"{most.sessions:,} sessions, {where}. To compare lists, show them at the same time, in an experiment (A/B test)."
    )


def _unproven(decision: Decision, ground: Ground) -> Iterable[str]:
    """Why a gain is not proven although its interval is without 0, and what would prove it."""
    if ground.p_value > decision.level:
        yield f"This gain is not proven: its p-value is {ground.p_value:.2g}, and {_threshold(decision)}."
    n_compared = len(decision.evidence.measured)
    for gain in (each for each in decision.evidence.measured if each.labels == ground.labels):  # one, if it was measured
        by_blocks = n_compared * NormalDist().cdf(-gain.difference / gain.standard_error)
        if by_blocks <= decision.level < n_compared * gain.finer_p_value:
            yield (
                f"Within the {BLOCKS} blocks of time it would be proven, but it fails within finer blocks: part of it may come "
                "from the hours of the day, which a block mixes."
            )
        if gain.worst_p_value > STEADY:
            yield (
                f"The gain rests on one stretch of time: without {LEFT_OUT} neighbouring blocks of {BLOCKS} (a fifth of the "
                f"log), its p-value is {gain.worst_p_value:.2g}, and {STEADY} or less is required."
            )
        elif gain.sign_p_value > STEADY:
            yield (
                "The gain rests on some stretches of time: the blocks differ by more than chance, and too few of them show a "
                f"gain (sign test: p-value {gain.sign_p_value:.2g}; {STEADY} or less is required)."
            )
    yield f"Next step: test {', '.join(ground.labels[: decision.cutoff])}. {_experiment(decision, ground)}"


def _larger(decision: Decision) -> Iterable[str]:
    """The list that promises more than the measured one."""
    larger = decision.larger
    if larger is not None:
        yield (
            f"This list is the safe step. A larger one may be {', '.join(larger.labels[: decision.cutoff])}: according to "
            f"{and_(decision.evidence.fitting)}, it earns at least {_gain(larger)} {decision.unit} more than the list "
            f"in production{_relative(larger)}. Test it. {_experiment(decision, larger)}"
        )


def _experiment(decision: Decision, ground: Ground) -> str:
    """How long an experiment has to be."""
    sessions = experiment(ground.difference, decision.evidence.variance, decision.level)
    return (
        f"An experiment (A/B test) of {sessions:,} sessions, half of them for each list, proves a gain of this size with "
        f"probability {POWER:.0%} at the level {decision.level:.2g}."
    )


def _threshold(decision: Decision) -> str:
    """The p-value below which a gain is significant."""
    if decision.n_decided > 1:
        return f"the correction for {decision.n_decided:,} queries (Benjamini–Hochberg) requires {decision.level:.2g} or less"
    return f"{decision.level:.2g} or less is required"


def _same(decision: Decision) -> Iterable[str]:
    if decision.proposal.labels == decision.production.labels:
        yield f"{decision.winner}, the agent with the lowest regret on the fitted users, learned the list in production."


def _measured(decision: Decision, ground: Ground) -> Iterable[str]:
    """The measured gain of a list that the log shows often."""
    evidence, unit = decision.evidence, decision.unit
    best, n = next(each for each in evidence.measured if each.labels == ground.labels), len(evidence.measured)
    others = f", as the best of {n} such lists" if n > 1 else ""
    yield (
        f"The log showed {', '.join(best.labels[: decision.cutoff])} in {best.sessions:,} sessions. In the {best.blocks} of "
        f"{BLOCKS} blocks of time that showed both lists, it earned {_gain(best)} {unit} more than the list in "
        f"production{_relative(ground)}{others}. This assumes no click model, and the interval holds for all compared lists at "
        "once."
    )
    if abs(best.pooled - best.difference) > 2 * best.standard_error:
        yield (
            f"Over the whole log the difference is {best.pooled:+.3f}: rates changed while the lists changed, and only "
            "sessions of the same time can be compared."
        )
    if best.share < COMPLETE:
        yield f"This holds for the {best.share:.0%} of sessions whose number of results allows to measure both lists."
    if decision.n_decided > 1 and decision.verdict == "better":
        yield f"The p-value of this gain is {best.p_value:.2g}; {_threshold(decision)}."


def _modelled(decision: Decision, ground: Ground) -> Iterable[str]:
    """The gain that click models predict for a list."""
    evidence = decision.evidence
    several = len(evidence.judged) > 1
    fit, which = ("fit", "the most pessimistic of them") if several else ("fits", "this model")
    yield (
        f"{and_(each.model for each in evidence.judged)} {fit} the held-out clicks at all times. According to {which}, "
        f"{', '.join(ground.labels[: decision.cutoff])} earns {_gain(ground)} {decision.unit} more than the list in "
        f"production{_relative(ground)}."
    )
    errors = _range(each.typical_error for each in evidence.judged)
    yield (
        f"Each prediction is corrected by the model's errors on logged lists. The interval includes the typical error for a "
        f"list that is not in the log, {errors}."
    )
    if decision.n_decided > 1 and decision.verdict == "likely better":
        yield f"The p-value of this gain is {ground.p_value:.2g}; {_threshold(decision)}."
    other = next((each for each in evidence.grounds if each.name == "measured" and each.interval[0] > 0), None)
    if other is not None:
        yield (
            f"Of the logged lists {', '.join(other.labels[: decision.cutoff])} earned {_gain(other)} {decision.unit} "
            "more at the same times, which is not proven at this level."
        )


def _fit(decision: Decision) -> Iterable[str]:
    """Says that no model fits, if none does."""
    if not decision.evidence.fitting:
        tested = any(fit.patterns for fit in decision.evidence.fits)
        few = "There are too few held-out sessions to test whether a click model fits."
        why = "No click model fits the held-out clicks (step 1)." if tested else few
        yield f"{why} Therefore only logged lists can be recommended."


def _estimates(decision: Decision) -> Iterable[str]:
    """The off-policy estimates of the proposal's gain, and the mean error of the trusted estimators on logged lists."""
    gains = decision.gains
    if gains:
        yield (
            f"Off-policy estimates of the gain from the {decision.n_held_out:,} held-out sessions: "
            f"{_range((gain.difference or 0.0 for gain in gains.values()), signed=True)} ({and_(gains)})."
        )
    errors = [check.error for check in decision.checks if check.estimator in gains]
    if errors:
        yield (
            f"On {len(decision.earned)} logged lists that were left out as a test, the mean error of these estimators was "
            f"{_range(errors)}."
        )


def _relative(ground: Ground) -> str:
    """A gain in percent of what the list in production earned."""
    return f" ({100 * ground.difference / ground.base:+.0f} %)" if ground.base > 0 else ""


def _gain(gain: Ground | Measured) -> str:
    low, high = gain.interval
    return f"{gain.difference:+.3f} ({low:+.3f} to {high:+.3f})"


def objections(decision: Decision, log: ClickLog, n_repeated: int = 0) -> dict[str, str]:
    """The objections to the decision: one or two sentences, by catchword.

    Args:
        decision: all but its words.
        log: all sessions of the query.
        n_repeated: the sessions of all queries that were left out, because they repeat another one.
    """
    sentences = {
        "Overlap": _overlap(decision, log),
        "Fit": _misfit(decision),
        "Disagreement": _disagreement(decision),
        "Optimism of the model": _optimism(decision),
        "Mean weights": _weights(decision),
        "Lists of several lengths": _lengths(log),
        "A short log": f"Only {decision.n_held_out:,} {FEW}" if decision.n_held_out < SHORT else "",
        "How lists were chosen": COUNTED if log.list_propensities is None and log.propensities is None else "",
        "Order of the sessions": "" if decision.evidence.timed else UNTIMED,
        "Repeated sessions": f"{n_repeated:,} {REPEATED}" if n_repeated else "",
        "Changes over time": _drift(decision, log),
        "One query": _mix(decision),
        "Few candidates": _few(decision, log),
    }
    return {catchword: words for catchword, words in sentences.items() if words}


def _overlap(decision: Decision, log: ClickLog) -> str:
    proposal = decision.proposal
    ranking = [log.item_labels.index(label) for label in proposal.labels]
    agrees = log.items[:, : len(ranking)] == ranking
    whole, never = int(agrees.all(axis=1).sum()), int((~agrees.any(axis=0)).sum())
    if whole >= LEAST_SESSIONS:
        return ""
    words = f"The log shows this whole list in only {whole} sessions" if whole else "The log never shows this whole list"
    if never:
        words += f". {never} of its {len(ranking)} items never had the position that they have in it"
    refused = [name for name in proposal.refused if name not in MODEL_BASED]
    if refused:
        words += f". Estimators without a click model cannot estimate it ({and_(refused)})"
        words += "; all estimates of it assume a click model"
    return f"{words}."


def _misfit(decision: Decision) -> str:
    """The clicks that the best click model does not explain."""
    fit = decision.evidence.fits[0]
    if fit.fits or not fit.patterns:
        return ""
    pattern = min(fit.patterns, key=lambda each: each.p_value)
    group = pattern.worst
    return (
        f"{fit.model} predicts clicks best, but its errors are larger than chance explains. The largest is by {pattern.name}: "
        f"{group.name} was clicked in {group.observed:.1%} of {group.displays:,} held-out displays, and the model predicts "
        f"{group.predicted:.1%}. The agents in step 3 learn from users simulated by this model."
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
    return f"The mean importance weight is {weights}; it should be 1. These estimates in step 4 are wrong by about this factor."


def _lengths(log: ClickLog) -> str:
    lengths, counts = np.unique(log.lengths, return_counts=True)
    if len(lengths) < 2:
        return ""
    shares = and_(f"{length} ({count / len(log):.0%})" for length, count in zip(lengths.tolist(), counts, strict=True))
    return f"The lists of the log have different lengths: {shares} items. A shorter session shows the first items of a list."


def _disagreement(decision: Decision) -> str:
    gains = {
        name: estimate.difference for name, estimate in decision.proposal.estimates.items() if estimate.difference is not None
    }
    if len(gains) < 2 or decision.proposal.labels == decision.production.labels:
        return ""
    low, high = min(gains, key=gains.__getitem__), max(gains, key=gains.__getitem__)
    if gains[low] > 0.5 * gains[high] > 0:
        return ""
    words = f"The estimates of the gain lie between {gains[low]:+.3f} ({low}) and {gains[high]:+.3f} ({high})"
    others = [name for name in (low, high) if name not in decision.believed]
    if others:
        words += f"; {and_(others)} {'is' if len(others) == 1 else 'are'} not trusted (step 5)"
    return f"{words}."


def _optimism(decision: Decision) -> str:
    promised = decision.proposal.predicted - decision.production.predicted
    if not decision.believed or decision.verdict == "better":
        return ""
    differences = [gain.difference or 0.0 for gain in decision.gains.values()]
    if promised <= np.mean(differences) or decision.proposal.labels == decision.production.labels:
        return ""
    return (
        f"{decision.scores[0].model}, the model of the users, predicts a gain of {promised:+.3f} for this list; the estimates "
        f"from the held-out sessions are {_range(differences, signed=True)}. The best list of a model exploits its errors, so "
        "that its predicted gain is too high."
    )


def _drift(decision: Decision, log: ClickLog) -> str:
    """Whether the first half of the sessions earned another number of clicks, or had another list; and what follows."""
    early = time_blocks(log) < BLOCKS // 2
    clicks = log.clicks[:, : decision.cutoff].sum(axis=1).astype(float)
    _, index, counts = sorted_distinct(log.items)
    usual = (index == counts.argmax()).astype(float)
    jumps = []
    for what, values, form in (("clicks per session", clicks, "{:.3f}"), ("share of the most frequent list", usual, "{:.1%}")):
        first, second = values[early], values[~early]
        error = np.sqrt(first.var() / len(first) + second.var() / len(second))
        if abs(second.mean() - first.mean()) > SURE * error:
            jumps.append(f"the {what} went from {form.format(first.mean())} to {form.format(second.mean())}")
    if not jumps:
        return ""
    words = f"From the first half of the log to the second {and_(jumps)}, by more than {SURE:.0f} standard errors"
    if decision.verdict == "better":
        return (
            f"{words}. The gain does not come from this: it was measured between sessions of the same time, and no fifth of "
            "the log carries it alone. The estimates of steps 3 to 5 do not separate users from lists."
        )
    return f"{words}. If users and lists changed at the same time, the estimates cannot separate their effects."


def _mix(decision: Decision) -> str:
    if decision.n_queries < 2:
        return ""
    others = decision.n_queries - 1
    return (
        f"The decision is only about query {decision.query}, {decision.n_of_query / decision.n_sessions:.1%} of the log's "
        f"sessions, and not about the {f'{others:,} other queries' if others > 1 else 'other query'}."
    )


def _few(decision: Decision, log: ClickLog) -> str:
    n_items = len(np.unique(log.items[log.items >= 0]))
    if n_items <= decision.instance.n_items:
        return ""
    words = f"Only the {decision.instance.n_items} most frequently shown of the query's {n_items:,} items were ranked."
    others = [label for label in decision.evidence.production if label not in decision.instance.estimation["items"]]
    if others:
        words += (
            f" The list in production also shows {and_(others)}; in steps 3 to 5 the next items of the list replace "
            f"{'it' if len(others) == 1 else 'them'}."
        )
    return words


def _range(values: Iterable[float], signed: bool = False) -> str:
    """The least and the largest, once if they are alike."""
    ends = list(values)
    low, high = (f"{value:{'+' if signed else ''}.3f}" for value in (min(ends), max(ends)))
    return low if low == high else f"{low} to {high}"
