"""Study of interleaving: when does its credit say which of two rankings gets more clicks, and how many sessions does it need?

Pairs of rankings of the six most attractive items of each query, of which five are shown, before the users of seven click
models. Expectations are enumerated. Balanced and optimized interleaving are made here: the library has neither, since balanced
interleaving is unfair by itself, and the law of optimized interleaving is not unique.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from clickgym import compare_online
from clickgym.core.statistics import POWER
from clickgym.envs import ClickEnv, ClickModel, DependentClickModel, Instance, load_instance
from clickgym.offline import click_law

from .plots import Figure, finish, grid
from .study import Curves, Evidence, Finding, PaperTable, Values, estimate, every, number, several

MODELS = ("PBM", "TPBM", "UBM", "CM", "DCM", "DBN", "CCM")
AGENT = "Fixed"
"""What the sweep plays; the study reads none of its sessions."""
BEST = (0, 1, 2, 3, 4, 5)
PAIRS = {"swapped": (1, 0, 2, 3, 4, 5), "reversed": (4, 3, 2, 1, 0, 5), "replaced": (0, 1, 2, 3, 5, 4)}
"""Ranking B, where A is by attraction: the top two swapped, the list reversed, the last item replaced by the sixth."""
METHODS = ("ab", "team", "none", "probabilistic", "balanced", "optimized")
AXES: dict[str, dict[str, Any]] = {
    "bots": {"bots": "random:share=0.2"},
    "farm": {"bots": "farm:share=0.2:targets=1"},
    "late": {"arrival": "delay:geometric:500"},
}
"""Users who are not alone, or late; the farm clicks the item that B has at the top if the top two are swapped."""
SESSIONS, NULL_RUNS, NULL_SESSIONS = 4000, 20, 500
FLAT = 1e-9

Law = tuple[NDArray[np.int64], Values]
"""Lists ``(N, K)`` and their probabilities."""


# ------------------------------------------------------------------------------------------- balanced and optimized lists


def vectors(n_positions: int) -> NDArray[np.int64]:
    """All click vectors, in the order of `click_law`."""
    return (np.arange(2**n_positions)[:, None] >> np.arange(n_positions)) & 1


def balanced(a: Sequence[int], b: Sequence[int], n_positions: int) -> Law:
    """Balanced interleaving (Joachims 2003): one coin; the ranking whose pointer is behind offers its next item."""
    lists = []
    for a_first in (True, False):
        shown: list[int] = []
        of_a = of_b = 0
        while len(shown) < n_positions:
            if of_a < of_b or (of_a == of_b and a_first):
                item, of_a = a[of_a], of_a + 1
            else:
                item, of_b = b[of_b], of_b + 1
            if item not in shown:
                shown.append(item)
        lists.append(shown)
    return np.array(lists), np.array([0.5, 0.5])


def balanced_outcomes(a: Sequence[int], b: Sequence[int], lists: NDArray[np.int64]) -> Values:
    """``(N, 2^K)`` the sign of the clicked items in A's top less those in B's, down to where one ranks the lowest of them."""
    signs = np.zeros((len(lists), 2 ** lists.shape[1]))
    for row, shown in enumerate(lists.tolist()):
        for column, clicks in enumerate(vectors(lists.shape[1])):
            clicked = {item for item, click in zip(shown, clicks, strict=True) if click}
            if clicked:
                lowest = [item for item in shown if item in clicked][-1]
                depth = 1 + min(a.index(lowest), b.index(lowest))
                signs[row, column] = np.sign(len(clicked & set(a[:depth])) - len(clicked & set(b[:depth])))
    return signs


def optimized(a: Sequence[int], b: Sequence[int], n_positions: int) -> Law:
    """Optimized interleaving (Radlinski and Craswell 2013; constraints and variance as Schuth et al. 2014).

    Each place takes the next item of A or of B. The law gives both the same expected credit, 1/rank, from every prefix, and
    minimises the squared difference of their credits at click rates 1/k.

    Raises:
        ValueError: there is no such law.
    """
    lists: dict[tuple[int, ...], None] = {(): None}
    for _ in range(n_positions):
        lists = dict.fromkeys(
            (*shown, next(item for item in ranking if item not in shown)) for shown in lists for ranking in (a, b)
        )
    allowed = np.array(list(lists))
    gains = credit_of(a, b, allowed)
    spread = 0.5 * (gains / np.arange(1, n_positions + 1)).sum(axis=1) ** 2  # squared deviations of two from their mean
    equal = np.vstack([np.ones(len(allowed)), gains.cumsum(axis=1).T])
    solved = linprog(spread, A_eq=equal, b_eq=np.eye(len(equal))[0], bounds=(0, 1), method="highs")
    if not solved.success:
        raise ValueError(f"optimized interleaving has no fair law for {a} and {b}")
    return allowed, np.maximum(solved.x, 0.0) / np.maximum(solved.x, 0.0).sum()


def credit_of(a: Sequence[int], b: Sequence[int], lists: NDArray[np.int64]) -> Values:
    """``(N, K)`` the credit of each position for A less that for B: 1/rank."""
    of_item = {item: 1.0 / (1 + a.index(item)) - 1.0 / (1 + b.index(item)) for item in a}
    return np.vectorize(of_item.get, otypes=[float])(lists)


def optimized_outcomes(a: Sequence[int], b: Sequence[int], lists: NDArray[np.int64]) -> Values:
    """``(N, 2^K)`` the sign of the credit of the clicked items."""
    sums = credit_of(a, b, lists) @ vectors(lists.shape[1]).T
    return np.sign(np.where(np.abs(sums) > FLAT, sums, 0.0))


MADE_HERE: dict[str, tuple[Callable[..., Law], Callable[..., Values]]] = {
    "balanced": (balanced, balanced_outcomes),
    "optimized": (optimized, optimized_outcomes),
}


def expected(method: str, model: ClickModel, a: Sequence[int], b: Sequence[int]) -> tuple[float, float]:
    """The exact mean and standard deviation of the outcome of a session, by a method of `MADE_HERE`."""
    law, outcomes = MADE_HERE[method]
    lists, probabilities = law(a, b, model.n_positions)
    weights, values = probabilities[:, None] * click_law(model, lists), outcomes(a, b, lists)
    mean = float((weights * values).sum())
    return mean, math.sqrt(max(float((weights * values**2).sum()) - mean**2, 0.0))


# ------------------------------------------------------------------------------------------------------------- the facts


def six_best(model: ClickModel) -> ClickModel:
    """The same users with the six most attractive items, by attraction."""
    best = np.argsort(-model.attraction, kind="stable")[: len(BEST)]
    return model.with_items(**{name: getattr(model.parameters, name)[best] for name in model.item_parameters()})


def leaving(queries: Sequence[str]) -> Iterator[Instance]:
    """Instances with the attractions of the PBM, whose users often leave after a click, most often at the top."""
    for query in queries:
        instance = load_instance(query)
        model = DependentClickModel(instance.model("PBM").attraction, [0.6, 0.5, 0.5, 0.4, 0.4])
        name, production = f"{instance.name}-leaving", instance.initial_ranking
        yield Instance(name, {"DCM": model}, 5, initial_ranking=production)


@lru_cache(maxsize=4)
def measured(users: str) -> Mapping[str, float]:
    """What is known of users, whose ``to_dict`` is JSON: by method and pair the expected outcome and the sessions needed."""
    model = six_best(ClickModel.from_dict(json.loads(users)))
    facts: dict[str, float] = {}
    for pair, b in PAIRS.items():
        compared = partial(compare_online, BEST, b, model, sessions=100)
        signs = compared(("ab", "team_draft"))
        team = compared("team_draft", common="team").tests["team_draft"]
        probabilistic = compared("probabilistic", credit="clicks").tests["probabilistic"]
        tests = {"ab": signs.tests["ab"], "none": signs.tests["team_draft"], "team": team, "probabilistic": probabilistic}
        for method, test in tests.items():
            facts |= {f"{method}_{pair}": test.mean, f"n_{method}_{pair}": test.sessions}
        for method in MADE_HERE:
            mean, deviation = expected(method, model, BEST, b)
            facts[f"{method}_{pair}"] = mean
            facts[f"n_{method}_{pair}"] = POWER * (deviation / mean) ** 2 if abs(mean) > FLAT else math.inf
        of_a, of_b = signs.satisfaction or (math.nan, math.nan)
        facts[f"satisfaction_{pair}"] = of_a - of_b
        for axis, arguments in AXES.items():
            around: Any = ClickEnv(model, reference=BEST[:5], **arguments)
            facts[f"{axis}_{pair}"] = compare_online(BEST, b, around, "team_draft", sessions=SESSIONS).tests["team_draft"].mean
    null = partial(compare_online, BEST, BEST, model, "team_draft", common="team", sessions=NULL_SESSIONS)
    p_values = [null(seed=run).tests["team_draft"].p_value for run in range(NULL_RUNS)]
    facts["alarms"] = float(np.mean([p_value <= 0.05 for p_value in p_values]))
    return facts


def fact(env: Any, name: str) -> float:
    """A fact of `measured` of an environment's users."""
    return measured(json.dumps(env.unwrapped.model.to_dict()))[name]


NAMES = (
    *(f"{prefix}{method}_{pair}" for pair in PAIRS for method in METHODS for prefix in ("", "n_")),
    *(f"{name}_{pair}" for pair in PAIRS for name in ("satisfaction", *AXES)),
    "alarms",
)
FACTS: Mapping[str, Callable[[Any], float]] = {name: partial(fact, name=name) for name in NAMES}


# ------------------------------------------------------------------------------------------------------- what was found


def values(curves: Curves, model: str, name: str) -> Values:
    """``(queries,)`` a fact of the users of a click model."""
    return curves.ends(f"{model}Rank-v0", AGENT, name)[:, 0]


def share(holds: NDArray[np.bool_], least: float = 0.9) -> Finding:
    """Whether something holds in nearly all queries."""
    return Finding(f"in {holds.sum()} of {len(holds)} queries", estimate(holds.astype(float)).above(least))


def agrees(curves: Curves, model: str, pairs: Sequence[str], method: str = "none", truth: str = "ab") -> Finding:
    """Whether the expected credit has the sign of the true difference."""
    signs = [np.concatenate([np.sign(values(curves, model, f"{name}_{pair}")) for pair in pairs]) for name in (method, truth)]
    return share(signs[0] == signs[1])


def misleads(curves: Curves, model: str) -> Finding:
    """Whether the reversed list gets more clicks on average, while the credit prefers the other one."""
    clicks, credit = (estimate(values(curves, model, f"{name}_reversed")) for name in ("ab", "none"))
    return Finding(f"clicks {clicks}, credit {credit}", every([clicks.below(0.0), credit.above(0.0)]))


def never_more(curves: Curves, model: str) -> Finding:
    """Whether both orders get as many clicks, and the credit prefers the better order."""
    clicks, credit = values(curves, model, "ab_reversed"), values(curves, model, "none_reversed")
    return share((np.abs(clicks) < 1e-6) & (credit > 0.05))


def faster(curves: Curves, model: str, slow: str, fast: str, pairs: Sequence[str], factor: float) -> Finding:
    """Whether a method needs so many times fewer sessions than another, in the geometric mean over queries."""
    findings = {}
    for pair in pairs:
        needs = [np.maximum(values(curves, model, f"n_{method}_{pair}"), 1.0) for method in (slow, fast)]
        ratios = np.log(needs[0] / needs[1])
        finite = estimate(ratios[np.isfinite(ratios)])
        findings[pair] = Finding(f"{number(math.exp(finite.mean))} times", finite.above(math.log(factor)))
    return several(findings)


def diluted(curves: Curves, model: str) -> Finding:
    """Whether bots that click at random in a fifth of the sessions take about a fifth of the credit."""
    left = values(curves, model, "bots_reversed").mean() / max(values(curves, model, "none_reversed").mean(), FLAT)
    gap = estimate(values(curves, model, "bots_reversed") - 0.8 * values(curves, model, "none_reversed"))
    return Finding(f"{number(left)} of the credit is left", gap.within(-0.03, 0.03))


def bought(curves: Curves, model: str) -> Finding:
    """Whether bots that click one item in a fifth of the sessions reverse the credit of the swapped pair."""
    alone, farmed = (estimate(values(curves, model, f"{name}_swapped")) for name in ("none", "farm"))
    return Finding(f"{alone} without, {farmed} with", every([alone.above(0.0), farmed.below(0.0)]))


def unchanged(curves: Curves, model: str) -> Finding:
    """Whether late clicks leave the credit as it is."""
    gaps = {pair: estimate(values(curves, model, f"late_{pair}") - values(curves, model, f"none_{pair}")) for pair in PAIRS}
    words = ", ".join(f"{pair} {gap}" for pair, gap in gaps.items())
    return Finding(words, every([gap.within(-0.02, 0.02) for gap in gaps.values()]))


def false_alarms(curves: Curves) -> Finding:
    """Whether runs of a ranking against itself are decided in at most 5 %."""
    return estimate(np.mean([values(curves, model, "alarms") for model in MODELS], axis=0)).finding(" of the runs", high=0.05)


def sessions(value: float) -> str:
    """How many sessions are needed."""
    return f"{value:,.0f}" if math.isfinite(value) else "never"


def table(evidence: Evidence) -> PaperTable:
    """The exact expectations on the first query."""
    cases = [(model, evidence["interleaving"], model, pair) for model in MODELS for pair in PAIRS]
    cases += [("DCM, often leaving", evidence["interleaving-leaving"], "DCM", "reversed")]
    head = ["users", "B", "clicks A - B", "A/B needs", "team draft, sign: E o", "needs", 'common="none" needs']
    rows = [[*head, "balanced", "optimized", "probabilistic"]]
    for name, curves, model, pair in cases:
        at = {key: float(values(curves, model, f"{key}_{pair}")[0]) for key in (*METHODS, *(f"n_{each}" for each in METHODS))}
        never = abs(at["ab"]) < FLAT
        rows.append([
            name, pair, f"{at['ab']:+z.4f}", "never" if never else sessions(at["n_ab"]), f"{at['team']:+.3f}",
            *(sessions(at[f"n_{method}"]) for method in METHODS[1:3]),
            *(sessions(at[f"n_{method}"]) for method in ("balanced", "optimized", "probabilistic")),
        ])  # fmt: skip
    return f"Exact expectations, {evidence['interleaving'].instances[0]}, sessions for 80 % power at 5 %", rows


def draw(evidence: Evidence) -> Figure:
    """The credit of team draft against the difference in clicks; and the sessions that both tests need."""
    from clickgym.core.colours import COLOURS  # beside matplotlib

    figure, panels = grid(2, height=3.6)
    curves, marks = evidence["interleaving"], dict(zip(PAIRS, "osv", strict=True))
    for model, colour in zip(MODELS, COLOURS, strict=False):
        for pair, mark in marks.items():
            x, y, n_ab, n = (values(curves, model, f"{name}_{pair}") for name in ("ab", "none", "n_ab", "n_none"))
            look: dict[str, Any] = {"color": colour, "marker": mark, "s": 16, "alpha": 0.7, "linewidths": 0}
            panels[0].scatter(x, y, label=f"{model}, {pair}", **look)
            panels[1].scatter(np.minimum(n_ab, MOST), np.minimum(n, MOST), **look)
    low, high = panels[0].get_xlim()
    panels[0].axvspan(min(low, -0.01), 0.0, color="0.92", zorder=0)
    panels[0].axvline(0.0, color="0.4", linewidth=0.8)
    panels[0].axhline(0.0, color="0.4", linewidth=0.8)
    panels[0].set(title="grey: B gets more clicks", xlabel="clicks A - B per session", ylabel="credit of team draft")
    panels[0].set_xlim(min(low, -0.01), high)
    panels[1].plot([10, MOST], [10, MOST], color="0.4", linewidth=0.8)
    panels[1].set(xscale="log", yscale="log", xlabel="sessions of the A/B test", ylabel="sessions of team draft")
    panels[1].set_title("below: team draft needs fewer")
    return finish(figure, panels, evidence, "What interleaving prefers, and what it costs", "a point: one query")


MOST = 1e9
"""Where more sessions, or infinitely many, are drawn."""
