"""From a click log to the list to show for a query.

What was *measured* decides: a logged list is better if it earned significantly more than the
production list in the same blocks of time (see `measured`). A click model only proposes a list,
with the length of the A/B test that would settle it.
"""

from __future__ import annotations

import html
import json
import math
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from statistics import NormalDist
from typing import Literal

import numpy as np

from clickgym.core.checks import (
    check_between,
    check_choice,
    check_count,
    check_kind,
    check_path,
    check_seed,
)
from clickgym.core.files import make_folder, write_whole
from clickgym.core.formats import finite
from clickgym.envs import ClickModel

from .estimation.estimator import MODEL_ESTIMATORS, ConvergenceWarning
from .evaluation import LEAST_SESSIONS, check_cutoff
from .fitting import fit_models, query_instance
from .log import ClickLog
from .measured import STEADY, DistinctLists, Measured, Refused, measure, of_query, production_list

LEVEL = 0.005
"""The most probable that a list may be no better than that in production and yet be recommended."""
POWER = 0.8
"""The probability with which an A/B test of the advised length proves the gain that it is made
for.
"""
HELD_OUT = 0.3
LEAST_ITEMS = 10
"""Items among which a click model proposes a list, at least."""
UNITS = {"clicks": "clicks per session", "any_click": "sessions with a click"}

Verdict = Literal["better", "none proved better", "cannot tell"]


@dataclass(frozen=True)
class Proposal:
    """The list that a click model expects most of.

    Attributes:
        model: its short name, that of the model that predicts held-out sessions best.
        labels: of the list's items, from the top.
        gain: what the model expects of it beyond the production list.
        sessions: of the A/B test, both halves together, that proves such a gain with a probability
            of 80 %.
    """

    model: str
    labels: tuple[str, ...]
    gain: float
    sessions: int


@dataclass(frozen=True)
class Decision:
    """What a log says of the lists of a query.

    Attributes:
        query: its label.
        n_sessions: of the query.
        reward, cutoff: what a list earns.
        level: the largest p-value with which a list counts as better.
        timed: whether the log has times; else the order of its sessions is taken for that of time.
        production: labels of the production list: of the longest lists the one that most sessions
        show.
        measured: the logged lists that were compared with it, the most certain gain first.
        refused: the logged lists that could not, because the lists changed with time.
        proposal: of a click model; None where none expects more than of the production list.
    """

    query: str
    n_sessions: int
    reward: str
    cutoff: int | None
    level: float
    timed: bool
    production: tuple[str, ...]
    measured: tuple[Measured, ...]
    refused: tuple[Refused, ...]
    proposal: Proposal | None

    @property
    def best(self) -> Measured | None:
        """The list that is proved better."""
        return next(
            (each for each in self.measured if each.p_value <= self.level and each.doubt <= STEADY),
            None,
        )

    @property
    def verdict(self) -> Verdict:
        """Whether a list is proved better, or none is, or the log does not compare them."""
        if not self.measured:
            return "cannot tell"
        return "none proved better" if self.best is None else "better"

    @property
    def recommended(self) -> tuple[str, ...] | None:
        """Labels of the list to show; None where the log cannot tell."""
        if self.verdict == "cannot tell":
            return None
        return (self.production if self.best is None else self.best.labels)[: self.cutoff]

    @property
    def detectable(self) -> float:
        """The smallest gain that this log would have proved with a probability of 80 %; NaN where
        it compares nothing.
        """
        z = NormalDist().inv_cdf(
            1 - self.level / max(len(self.measured), 1)
        ) + NormalDist().inv_cdf(POWER)
        return min((z * each.standard_error for each in self.measured), default=math.nan)

    @property
    def sentence(self) -> str:
        """The verdict in a sentence."""
        unit = UNITS[self.reward]
        if self.best is not None:
            low, high = self.best.interval
            return (
                f"Show {', '.join(self.best.labels[: self.cutoff])}: it earned {self.best.difference:+.4f} {unit} against the "
                f"production list at the same times ({low:+.4f} to {high:+.4f}, p = {self.best.p_value:.2g})."
            )
        if self.measured:
            return f"No list is proved better; a gain of {self.detectable:.4f} {unit} would have been seen in this log."
        return "The log cannot tell: it shows no other list often enough at the same times as the production list."


def decide(
    log: ClickLog,
    query: str | None = None,
    *,
    reward: str = "clicks",
    cutoff: int | None = None,
    level: float = LEVEL,
    seed: int = 0,
) -> Decision:
    """Decide from a click log which list to show for a query.

    Args:
        log: sessions of any queries. A session that it has several times counts once
        (`ClickLog.repeated`).
        query: the label of the query; None takes the most frequent one.
        reward, cutoff: what a list earns, ``"clicks"`` or ``"any_click"``, perhaps of its first
        positions only.
        level: the highest probability of recommending a list that is no better; below 0.5.
        seed: of the sessions that are held out to choose a click model.

    Raises:
        ValueError: on wrong input, or on a query that the log has not.

    Example:
        >>> import gymnasium as gym, clickgym, clickgym_logs
        >>> env = gym.make("PBMRank-v0", attraction=[0.1, 0.3, 0.6], examination=[0.9, 0.5])
        >>> log = clickgym_logs.record(clickgym.make_agent("Random", env, seed=0), env, 3000, seed=0)
        >>> decision = decide(log)
        >>> decision.verdict, decision.recommended
        ('better', ('2', '1'))
    """
    check_kind("log", log, ClickLog, "a ClickLog")
    check_choice("reward", reward, UNITS)
    check_cutoff(cutoff, log)
    check_between("level", level, 0, 0.5)
    check_seed(seed)
    if query is None:
        query = log.query_labels[int(np.bincount(log.queries).argmax())]
    check_choice("query", query, log.query_labels)
    again = log.repeated
    rows = log.order[~again[log.order]]
    rows = rows[log.queries[rows] == log.query_labels.index(query)]
    own = of_query(log, query, rows, np.setdiff1d(log.items[rows], -1))
    lists = DistinctLists(own, reward, cutoff)
    production = production_list(lists)
    measured, refused = measure(lists, production, level)
    labels = lists.labels(production)
    return Decision(
        query,
        len(own),
        reward,
        cutoff,
        level,
        log.times is not None,
        labels,
        measured,
        refused,
        _proposal(own, query, labels, reward, cutoff, float(lists.earned.var()), level, seed),
    )


def decide_all(
    log: ClickLog, top: int | None = None, *, level: float = LEVEL, **settings: object
) -> list[Decision]:
    """Decide all queries of a log, or the most frequent ones, the most frequent first.

    The level is corrected for the number of queries by the procedure of Benjamini and Hochberg: of
    the lists that are recommended, at most a share ``level`` is expected to be no better.

    Args:
        log: the sessions.
        top: how many queries; None takes all.
        level: see above.
        settings: reward, cutoff and seed, as for `decide`.
    """
    check_kind("log", log, ClickLog, "a ClickLog")
    counts = np.bincount(log.queries, minlength=len(log.query_labels))
    most = len(counts) if top is None else check_count("top", top)
    queries = [
        log.query_labels[row]
        for row in np.argsort(-counts, kind="stable")[:most].tolist()
        if counts[row]
    ]
    decisions = [decide(log, query, level=level, **settings) for query in queries]  # type: ignore[arg-type]
    p_values = [
        min([1.0, *(each.p_value for each in one.measured if each.doubt <= STEADY)])
        for one in decisions
    ]
    ranks = [
        k for k, p_value in enumerate(sorted(p_values), 1) if p_value <= level * k / len(p_values)
    ]
    return [replace(one, level=level * max(ranks, default=1) / len(p_values)) for one in decisions]


def experiment(gain: float, variance: float, level: float) -> int:
    """The sessions of an A/B test, both halves together, that proves a gain at a level with
    probability `POWER`.

    Example:
        >>> experiment(0.1, 0.8, 0.005)
        3738
    """
    z = NormalDist().inv_cdf(1 - level) + NormalDist().inv_cdf(POWER)
    return 2 * max(LEAST_SESSIONS, math.ceil(2 * variance * (z / gain) ** 2))


def _proposal(
    log: ClickLog,
    query: str,
    production: Sequence[str],
    reward: str,
    cutoff: int | None,
    variance: float,
    level: float,
    seed: int,
) -> Proposal | None:
    """What the click model proposes that predicts held-out sessions of the query best."""
    n_items = max(LEAST_ITEMS, log.n_positions)
    if len(log) < LEAST_SESSIONS or len(np.setdiff1d(log.items, -1)) < log.n_positions:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = fit_models(
            log, [*MODEL_ESTIMATORS], [query], n_items=n_items, test_share=HELD_OUT, seed=seed
        )
    scores = {name: estimator.score(fitted.test) for name, estimator in fitted.scored.items()}
    name = max(scores, key=scores.__getitem__)
    instance = query_instance(log, query, {name: fitted.estimators[name]}, n_items)
    (users,) = instance.models.values()
    items = instance.estimation["items"]
    if not isinstance(users, ClickModel) or not set(production) <= set(items):
        return None
    best = users.optimal_ranking(reward, cutoff)
    shown = np.array([items.index(label) for label in production])
    gain = users.expected_reward(best, reward, cutoff) - users.expected_reward(
        shown, reward, cutoff
    )
    if not gain > 0:
        return None
    return Proposal(
        name,
        tuple(items[item] for item in best[:cutoff]),
        float(gain),
        experiment(gain, variance, level),
    )


def write_decisions(decisions: Sequence[Decision], folder: str | PathLike[str]) -> list[Path]:
    """Write ``decisions.html``, a sentence and a table for each query, and ``decisions.json`` with
    all figures.
    """
    folder = check_path("folder", folder)
    make_folder(folder)
    facts = [
        asdict(each)
        | {"verdict": each.verdict, "recommended": each.recommended, "sentence": each.sentence}
        for each in decisions
    ]
    page, data = folder / "decisions.html", folder / "decisions.json"
    write_whole(
        page, PAGE.format(sections="\n".join(map(_section, decisions)), version=version("clickgym"))
    )
    write_whole(data, json.dumps(finite(facts), indent=1, ensure_ascii=False) + "\n")
    return [page, data]


PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Decisions</title>
<style>body {{font: 16px/1.5 sans-serif; max-width: 60em; margin: 2em auto}} td, th {{text-align: left; padding: 0 1em}}</style>
{sections}
<p>clickgym {version}. A list is compared with the production list within blocks of time; its interval holds together with all
others of its query.</p>
</html>
"""


def _section(decision: Decision) -> str:
    """The part of the page about a query."""
    rows = [["in production", ", ".join(decision.production)]]
    for each in decision.measured:
        low, high = each.interval
        figures = [f"{each.difference:+.4f}", f"{low:+.4f} to {high:+.4f}", f"{each.p_value:.2g}"]
        rows.append([f"{each.sessions:,}", ", ".join(each.labels), *figures])
    for refused in decision.refused:
        rows.append(
            [
                f"{refused.sessions:,}",
                ", ".join(refused.labels),
                "cannot be compared: the lists changed with time",
            ]
        )
    cells = "".join(
        f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>\n" for row in rows
    )
    proposal = ""
    if (proposed := decision.proposal) is not None:
        words = (
            f"The click model {proposed.model} proposes {', '.join(proposed.labels)} ({proposed.gain:+.4f}); an A/B test of "
            f"{proposed.sessions:,} sessions would settle it."
        )
        proposal = f"<p>{html.escape(words)}</p>"
    heads = "".join(
        f"<th>{head}</th>"
        for head in ("sessions", "list", f"gain, {UNITS[decision.reward]}", "interval", "p")
    )
    return (
        f"<h2>{html.escape(decision.query)}</h2>\n<p><b>{html.escape(decision.sentence)}</b></p>\n"
        f"<table><tr>{heads}</tr>\n{cells}</table>\n{proposal}"
    )
