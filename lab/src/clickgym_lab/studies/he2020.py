"""He et al. 2020, UBM-LinUCB: figure 2 (web search) and table 1 (recommendation), CTR against the
length of the list; and figure 3, the positions of last clicks.

The CTRs are means over all sessions so far: CTR_sum of the clicks that were drawn, CTR_set of the
probability of at least one, which is the optimum's less the regret. The optimum is the same for all
agents and taken from the sessions of all of them, so that chance enters a comparison of CTR_set
through nothing but the lists shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain, product
from typing import Any

import numpy as np

from clickgym.envs import ContextualModel, load_instance

from .plots import Figure, band, colour_of, finish, grid, points
from .study import (
    Curves,
    Estimate,
    Evidence,
    Finding,
    PaperTable,
    Values,
    estimate,
    every,
    number,
    percent,
)

POSITIONS = (3, 4, 5, 6)
SHORT, LONG = POSITIONS[0], POSITIONS[-1]
BASELINE, OURS = "C2UCB", "UBMLinUCB"
HE_AGENTS = (BASELINE, "PBMLinUCB", "CMLinUCB", "DCMLinUCB", OURS)
ALPHAS = (0.0, 0.1, 0.3, 1.0)
SPECS = {agent: (agent, *(f"{agent}:alpha={alpha:g}" for alpha in ALPHAS)) for agent in HE_AGENTS}
THEOREM, BEST = "α of the theorem", "best α"
CTR_SUM, CTR_SET = "CTR_sum", "CTR_set"
SIMILAR = 0.05
"""CTRs this close to each other, as a share, count as similar."""
PUBLISHED_LIFT = {
    CTR_SUM: 0.202,
    CTR_SET: 0.256,
}  # of UBM-LinUCB over C2UCB with K = 6, in the text and table 1


PAGE = 10
LAST_CLICKS = "UBMRank-v0:n_positions=10"
PUBLISHED_LAST = {1: 0.166, 2: 0.116}
"""The share of users who click last at a position, of those who click; the paper's figure 3 in its
text.
"""
PUBLISHED_BELOW = 0.54


def ubm(n_positions: int) -> str:
    """The environment of one length of the list."""
    return f"ContextualUBMRank-v0:n_positions={n_positions}"


ENVS, AGENTS = tuple(map(ubm, POSITIONS)), tuple(chain(*SPECS.values()))


def contextual(queries: Sequence[str], n_items: int, n_features: int) -> list[str]:
    """Contextual instances as they are, and one with the examination of each other query."""
    return [
        query
        if any(isinstance(model, ContextualModel) for model in load_instance(query).models.values())
        else f"linear:query={query},n_items={n_items},n_features={n_features},n_positions={LONG},seed={seed}"
        for seed, query in enumerate(queries)
    ]


# ---------------------------------------------------------------------------------------------------------------- measures


def chosen(curves: Curves, env: str, agent: str, reading: str) -> str:
    """The agent with the α of a reading."""
    if reading == THEOREM:
        return agent
    half = len(curves.units(env, agent)) // 2
    return min(SPECS[agent], key=lambda spec: curves.units(env, spec)[:half, -1].mean())


def ctr(curves: Curves, env: str, agent: str, reading: str, kind: str) -> Values:
    """``(runs, steps)`` the CTR so far; of the best α in the runs that it was not chosen by."""
    spec = chosen(curves, env, agent, reading)
    if kind == CTR_SUM:
        values = curves.units(env, spec, "clicks") / curves.steps
    else:
        earned = [curves.ends(env, each, "reward") + curves.ends(env, each) for each in AGENTS]
        values = np.mean(earned) / curves.horizon - curves.units(env, spec) / curves.steps
    return values if reading == THEOREM else values[len(values) // 2 :]


def lift(curves: Curves, env: str, agent: str, reading: str, kind: str) -> Values:
    """``(runs,)`` by which share the CTR at the end is above that of C2UCB."""
    ours, theirs = (ctr(curves, env, name, reading, kind)[:, -1] for name in (agent, BASELINE))
    return ours / theirs - 1


# -------------------------------------------------------------------------------------------------------------- statements


def ahead(
    curves: Curves, k: int, kind: str, reading: str, better: Sequence[str], worse: Sequence[str]
) -> Finding:
    """Whether all of some agents have a higher CTR than all of some others; the closest pair is
    told.
    """
    ends = {agent: ctr(curves, ubm(k), agent, reading, kind)[:, -1] for agent in (*better, *worse)}
    low = min(better, key=lambda agent: ends[agent].mean())
    high = max(worse, key=lambda agent: ends[agent].mean())
    verdict = every([estimate(ends[a] - ends[b]).above(0.0) for a in better for b in worse])
    gap = percent(estimate(ends[low] / ends[high] - 1))
    return Finding(f"{low} {ends[low].mean():.4f}, {high} {ends[high].mean():.4f}, {gap}", verdict)


def grows(curves: Curves, kind: str, reading: str) -> Finding:
    """Whether the lead over C2UCB is larger with long lists."""
    lifts = [lift(curves, ubm(k), OURS, reading, kind) for k in POSITIONS]
    words = ", ".join(percent(estimate(values)) for values in lifts)
    return Finding(words, estimate(lifts[-1] - lifts[0]).above(0.0))


def lift_within(
    curves: Curves, agent: str, k: int, kind: str, reading: str, low: float, high: float
) -> Finding:
    """Whether an agent's lead over C2UCB is between two bounds."""
    gap = estimate(lift(curves, ubm(k), agent, reading, kind))
    return Finding(f"{percent(gap)} over C2UCB", gap.within(low, high))


def declines(curves: Curves, kind: str, reading: str) -> Finding:
    """Whether C2UCB's CTR is lower with long lists."""
    few, many = (ctr(curves, ubm(k), BASELINE, reading, kind)[:, -1] for k in (SHORT, LONG))
    growth = estimate(many - few)
    return Finding(f"{few.mean():.4f}, then {many.mean():.4f}, by {growth}", growth.below(0.0))


def saturates(curves: Curves, agent: str, kind: str, reading: str) -> Finding:
    """Whether an agent's CTR is about the same with long lists as with K = 4."""
    four, six = (ctr(curves, ubm(k), agent, reading, kind)[:, -1] for k in (4, LONG))
    growth = estimate(six / four - 1)
    return Finding(percent(growth), growth.within(-SIMILAR, SIMILAR))


def as_much(curves: Curves, kind: str, reading: str) -> Finding:
    """Whether UBM-LinUCB's lead with long lists is about that of the paper."""
    published = PUBLISHED_LIFT[kind]
    gain = estimate(lift(curves, ubm(LONG), OURS, reading, kind))
    return Finding(percent(gain), gain.within(published / 2, published * 2))


# ------------------------------------------------------------------------------------------------------- figures and table


def ctr_table(evidence: Evidence, part: str) -> PaperTable:
    """Every CTR at the end, with its lift over C2UCB."""
    curves = evidence[part]
    rows = [["CTR", "agent", "α", *(f"K = {k}" for k in POSITIONS)]]
    for kind, reading, agent in product((CTR_SUM, CTR_SET), (THEOREM, BEST), HE_AGENTS):
        ctrs = [ctr(curves, env, agent, reading, kind)[:, -1].mean() for env in ENVS]
        lifts = [100 * lift(curves, env, agent, reading, kind).mean() for env in ENVS]
        cells = (f"{value:.3f} {gain:+.1f}%" for value, gain in zip(ctrs, lifts, strict=True))
        rows.append([kind, agent, _alphas(curves, agent, reading), *cells])
    return "CTR and lift over C2UCB", rows


def _alphas(curves: Curves, agent: str, reading: str) -> str:
    """The α of each K, or of all if it is the same."""
    specs = [chosen(curves, ubm(k), agent, reading) for k in POSITIONS]
    alphas = [spec.rpartition("alpha=")[2] if "=" in spec else "α_t" for spec in specs]
    return alphas[0] if len(set(alphas)) == 1 else ", ".join(alphas)


def table1(evidence: Evidence, published: Mapping[str, Sequence[str]]) -> PaperTable:
    """Ours, and below it the paper's: CTR_sum and CTR_set for each K."""
    title, rows = ctr_table(evidence, "ubm-table1")
    paper = [
        [kind, agent, "He et al.", *cells[start::2]]
        for start, kind in enumerate((CTR_SUM, CTR_SET))
        for agent, cells in published.items()
    ]
    return title, [*rows, *paper]


def draw_fig2(evidence: Evidence) -> Figure:
    """CTR against the length of the list."""
    curves = evidence["ubm-fig2"]
    figure, panels = grid(2, 2)
    for axes, (reading, kind) in zip(
        panels, product((THEOREM, BEST), (CTR_SUM, CTR_SET)), strict=True
    ):
        for agent in HE_AGENTS:
            points(
                axes,
                POSITIONS,
                [ctr(curves, ubm(k), agent, reading, kind)[:, -1] for k in POSITIONS],
                agent,
            )
        axes.set(title=f"{kind}, {reading}", xlabel="K", xticks=POSITIONS, ylabel=kind)
    return finish(figure, panels, evidence, f"CTR over {curves.horizon:,} sessions")


def draw_fig4(evidence: Evidence) -> Figure:
    """CTR so far with short and with long lists."""
    curves = evidence["ubm-table1"]
    figure, panels = grid(4, 2)
    late = curves.steps * 50 >= curves.horizon
    places = product((THEOREM, BEST), (SHORT, LONG), (CTR_SUM, CTR_SET))
    for axes, (reading, k, kind) in zip(panels, places, strict=True):
        for agent in HE_AGENTS:
            band(
                axes, curves.steps[late], ctr(curves, ubm(k), agent, reading, kind)[:, late], agent
            )
        axes.set(title=f"K = {k} {kind}, {reading}", xlabel="session")
        axes.ticklabel_format(axis="x", style="sci", scilimits=(0, 0), useMathText=True)
    return finish(figure, panels, evidence, "CTR of all sessions so far")


# --------------------------------------------------------------------------------------------- figure 3: the last clicks


def last_click(position: int, env: Any) -> float:
    """The exact share of users who click last at a position of the production list, of those who
    click.
    """
    model, ranking = env.unwrapped.model, env.unwrapped.initial_ranking
    shares = np.zeros(
        model.n_positions + 1
    )  # of users whose last click so far was at a position; 0: none yet
    shares[0] = 1.0
    for k, attraction in enumerate(model.attraction[ranking[: model.n_positions]]):
        clicks = shares[: k + 1] * model.examination[k, : k + 1] * attraction
        shares[: k + 1] -= clicks
        shares[k + 1] = clicks.sum()
    return float(shares[position] / (1 - shares[0]))


LAST = {f"last_{position}": partial(last_click, position) for position in range(1, PAGE + 1)}


def _last(curves: Curves) -> Values:
    """``(queries, positions)`` the shares."""
    return np.array([curves.ends(LAST_CLICKS, "Fixed", name)[:, 0] for name in LAST]).T


def last_share(curves: Curves, position: int) -> Finding:
    """Whether the share of a position is between half and twice that of the paper."""
    share, published = estimate(_last(curves)[:, position - 1]), PUBLISHED_LAST[position]
    return Finding(
        f"{_share(share)} of those who click", share.within(published / 2, published * 2)
    )


def below_last(curves: Curves) -> Finding:
    """Whether about as many shown items as in the paper are below the last click."""
    share = estimate(_last(curves) @ (1 - np.arange(1, PAGE + 1) / PAGE))
    return Finding(
        f"{_share(share)} of the items", share.within(PUBLISHED_BELOW / 2, PUBLISHED_BELOW * 2)
    )


def _share(share: Estimate) -> str:
    return f"{100 * share.mean:.1f} ± {number(100 * share.half, 2)} %"


def draw_fig3(evidence: Evidence) -> Figure:
    """The share of each position, the paper's where its text has it."""
    curves = evidence["ubm-fig3"]
    figure, panels = grid(1)
    positions = np.arange(1, PAGE + 1)
    mean, half = np.transpose([estimate(column) for column in _last(curves).T])
    panels[0].bar(positions, mean, yerr=half, color=colour_of(OURS, panels[0]), label="web search")
    panels[0].plot(
        *zip(*PUBLISHED_LAST.items(), strict=True),
        "o",
        color="black",
        markersize=4,
        label="He et al., shop",
    )
    panels[0].set(
        xlabel="position of the last click", ylabel="share of those who click", xticks=positions
    )
    return finish(
        figure, panels, evidence, "Where users click last", "lines: 95 % intervals over the queries"
    )
