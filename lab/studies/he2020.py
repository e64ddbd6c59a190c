"""He et al. 2020, UBM-LinUCB: figure 2 (web search) and table 1 (recommendation), CTR against the length of the list.

The CTRs are means over all sessions so far: CTR_sum of the clicks that were drawn, CTR_set of the probability of at least
one, which is the optimum's less the regret. The optimum is the same for all agents and taken from the sessions of all of
them, so that chance enters a comparison of CTR_set through nothing but the lists shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, product
from typing import TYPE_CHECKING

import numpy as np

from ...envs import ContextualModel, load_instance
from .plots import band, finish, grid, look_of
from .study import Curves, Evidence, Finding, PaperTable, Part, Statement, Study, Values, estimate, every, percent, several

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["STUDIES"]

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
PUBLISHED = {  # CTR_sum and CTR_set in table 1, for each K; for PBM-LinUCB those of PBM-UCB, which knows no features
    BASELINE: (0.592, 0.420, 0.643, 0.440, 0.747, 0.510, 0.812, 0.534),
    "PBMLinUCB": (0.545, 0.396, 0.655, 0.453, 0.744, 0.519, 0.795, 0.522),
    "CMLinUCB": (0.578, 0.398, 0.674, 0.464, 0.771, 0.548, 0.839, 0.539),
    "DCMLinUCB": (0.613, 0.408, 0.704, 0.474, 0.820, 0.570, 0.915, 0.614),
    OURS: (0.660, 0.480, 0.781, 0.538, 0.869, 0.604, 0.976, 0.671),
}
PUBLISHED_LIFT = {CTR_SUM: 0.202, CTR_SET: 0.256}  # of UBM-LinUCB over C2UCB with K = 6, in the text and table 1
NOTE = (
    "The paper says both that the parameters are the theoretical ones (section 6.2) and that α is optimal (table 1), so both "
    "are run: Theorem 3's α_t, and for each agent and K the best of that and "
    f"α = {', '.join(f'{alpha:g}' for alpha in ALPHAS)}, chosen by the regret in the first half of the runs and measured in "
    "the second. λ is the theorem's. In place of PBM-UCB, which knows no features and would meet other items in every session, "
    "stands PBM-LinUCB. The paper's attractions are estimates from two logs, one of them not published; ours are linear in "
    "features drawn at random (the family linear, a seed for each instance), with the examination of --instances, or those of "
    "a contextual instance given there. The paper leaves open how features were scaled, although α_t depends on it, and "
    "prints of the examination only the least and the largest. "
)


def _published_lifts(agent: str = OURS) -> str:
    """The lift of an agent over C2UCB in table 1, CTR_sum / CTR_set, for each K."""
    pairs = zip(PUBLISHED[agent], PUBLISHED[BASELINE], strict=True)
    lifts = [f"{100 * (ours / theirs - 1):+.1f}" for ours, theirs in pairs]
    return ", ".join(f"K = {k}: {lifts[2 * i]} / {lifts[2 * i + 1]} %" for i, k in enumerate(POSITIONS))


def ubm(n_positions: int) -> str:
    """The environment of one length of the list."""
    return f"ContextualUBMRank-v0:n_positions={n_positions}"


def contextual(n_items: int, n_features: int, queries: Sequence[str]) -> list[str]:
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
        earned = [curves.ends(env, each, "reward") + curves.ends(env, each) for each in chain(*SPECS.values())]
        values = np.mean(earned) / curves.horizon - curves.units(env, spec) / curves.steps
    return values if reading == THEOREM else values[len(values) // 2 :]


def lift(curves: Curves, env: str, agent: str, reading: str, kind: str) -> Values:
    """``(runs,)`` by which share the CTR at the end is above that of C2UCB."""
    ours, theirs = (ctr(curves, env, name, reading, kind)[:, -1] for name in (agent, BASELINE))
    return ours / theirs - 1


def each_ctr(positions: Sequence[int]) -> list[tuple[str, str, str]]:
    """Name, environment and kind of each CTR."""
    return [(f"K = {k} {kind}", ubm(k), kind) for k in positions for kind in (CTR_SUM, CTR_SET)]


# -------------------------------------------------------------------------------------------------------------- statements


def _ahead(
    part: str, reading: str, better: Sequence[str], worse: Sequence[str], positions: Sequence[int], evidence: Evidence
) -> Finding:
    """Whether all of some agents have a higher CTR than all of some others; the closest pair is told."""
    findings = {}
    for name, env, kind in each_ctr(positions):
        ends = {agent: ctr(evidence[part], env, agent, reading, kind)[:, -1] for agent in (*better, *worse)}
        low = min(better, key=lambda agent: ends[agent].mean())
        high = max(worse, key=lambda agent: ends[agent].mean())
        verdict = every([estimate(ends[a] - ends[b]).above(0.0) for a in better for b in worse])
        gap = percent(estimate(ends[low] / ends[high] - 1))
        findings[name] = Finding(f"{low} {ends[low].mean():.4f}, {high} {ends[high].mean():.4f}, {gap}", verdict)
    return several(findings)


def _grows(part: str, reading: str, evidence: Evidence) -> Finding:
    curves = evidence[part]
    findings = {}
    for kind in (CTR_SUM, CTR_SET):
        lifts = [lift(curves, ubm(k), OURS, reading, kind) for k in POSITIONS]
        words = ", ".join(percent(estimate(values)) for values in lifts)
        findings[kind] = Finding(words, estimate(lifts[-1] - lifts[0]).above(0.0))
    return several(findings)


def _similar(part: str, reading: str, evidence: Evidence) -> Finding:
    curves = evidence[part]
    findings = {}
    for agent in ("PBMLinUCB", "DCMLinUCB", OURS):
        for name, env, kind in each_ctr([SHORT]):
            gap = estimate(lift(curves, env, agent, reading, kind))
            findings[f"{agent} {name}"] = Finding(f"{percent(gap)} over C2UCB", gap.within(-SIMILAR, SIMILAR))
    return several(findings)


def _cascade_lags(part: str, reading: str, evidence: Evidence) -> Finding:
    curves = evidence[part]
    findings = {}
    for name, env, kind in each_ctr([SHORT]):
        gap = estimate(lift(curves, env, "CMLinUCB", reading, kind))
        findings[name] = Finding(f"{percent(gap)} over C2UCB", gap.below(-SIMILAR))
    return several(findings)


def _declines(part: str, reading: str, evidence: Evidence) -> Finding:
    curves = evidence[part]
    findings = {}
    for kind in (CTR_SUM, CTR_SET):
        few, many = (ctr(curves, ubm(k), BASELINE, reading, kind)[:, -1] for k in (SHORT, LONG))
        growth = estimate(many - few)
        findings[kind] = Finding(f"{few.mean():.4f}, then {many.mean():.4f}, by {growth}", growth.below(0.0))
    return several(findings)


def _saturates(part: str, reading: str, evidence: Evidence) -> Finding:
    curves = evidence[part]
    findings = {}
    for agent in HE_AGENTS[1:]:
        for kind in (CTR_SUM, CTR_SET):
            four, six = (ctr(curves, ubm(k), agent, reading, kind)[:, -1] for k in (4, LONG))
            growth = estimate(six / four - 1)
            findings[f"{agent} {kind}"] = Finding(percent(growth), growth.within(-SIMILAR, SIMILAR))
    return several(findings)


def _as_much(part: str, reading: str, evidence: Evidence) -> Finding:
    curves = evidence[part]
    findings = {}
    for kind, published in PUBLISHED_LIFT.items():
        gain = estimate(lift(curves, ubm(LONG), OURS, reading, kind))
        findings[kind] = Finding(percent(gain), gain.within(published / 2, published * 2))
    return several(findings)


def _shared(part: str, reading: str) -> list[Statement]:
    """What the paper says of both experiments."""
    rivals = HE_AGENTS[:-1]
    return [
        Statement(
            f"UBM-LinUCB has the highest CTR at every K ({reading})",
            "higher CTR_sum and CTR_set than each other agent, for each K",
            partial(_ahead, part, reading, [OURS], rivals, POSITIONS),
            late=True,
            paper="highest",
        ),
        Statement(
            f"Its lead over C2UCB grows with K ({reading})",
            f"the share by which each CTR is higher is larger with K = {LONG} than with K = {SHORT}",
            partial(_grows, part, reading),
            late=True,
            paper=_published_lifts(),
        ),
        Statement(
            f"With K = {LONG} C2UCB has fallen behind all who have a click model ({reading})",
            "lower CTR_sum and CTR_set than each other agent",
            partial(_ahead, part, reading, HE_AGENTS[1:], [BASELINE], [LONG]),
            late=True,
        ),
    ]


def _part(name: str, horizon: int, n_items: int, n_features: int) -> Part:
    """All agents with every α, at every length of the list."""
    envs, agents = tuple(map(ubm, POSITIONS)), tuple(chain(*SPECS.values()))
    return Part(name, envs, agents, horizon, 10, 3, partial(contextual, n_items, n_features), windows=20)


def _ubm_fig2() -> Study:
    part = replace(_part("ubm-fig2", 5_000, 10, 20), least_horizon=5_000, least_runs=10)
    statements = []
    for reading in (THEOREM, BEST):
        statements += [
            *_shared(part.name, reading),
            Statement(
                f"With K = {SHORT} all but CM-LinUCB perform similarly ({reading})",
                f"within {SIMILAR:.0%} of C2UCB",
                partial(_similar, part.name, reading),
            ),
            Statement(
                f"CM-LinUCB does not ({reading})",
                f"more than {SIMILAR:.0%} below C2UCB",
                partial(_cascade_lags, part.name, reading),
            ),
            Statement(
                f"The CTR of C2UCB declines when K grows ({reading})",
                f"lower with K = {LONG} than with K = {SHORT}",
                partial(_declines, part.name, reading),
            ),
            Statement(
                f"Those of the others change slightly from K = 4 on ({reading})",
                f"with K = {LONG} within {SIMILAR:.0%} of that with K = 4",
                partial(_saturates, part.name, reading),
            ),
        ]
    return Study(
        "CTR of contextual agents against the length of the list, web search",
        "He et al. 2020, figure 2",
        (part,),
        tuple(statements),
        NOTE
        + "Horizon, runs and the 20 features (10 of users, 10 of pages) are the paper's; its candidates are the pages that "
        "a user was shown, which we read as 10, a page of results. Nothing is reduced by the scale.",
        _draw_fig2,
        partial(_ctr_table, part.name),
        ("regret", "clicks"),
    )


def _ubm_table1() -> Study:
    part = _part("ubm-table1", 100_000, 12, 10)
    statements = []
    for reading in (THEOREM, BEST):
        statements += [
            *_shared(part.name, reading),
            Statement(
                f"With K = {LONG} CM-LinUCB is worse than DCM-LinUCB and UBM-LinUCB ({reading})",
                "lower CTR_sum and CTR_set than both",
                partial(_ahead, part.name, reading, ["DCMLinUCB", OURS], ["CMLinUCB"], [LONG]),
                late=True,
            ),
            Statement(
                f"With K = {LONG} UBM-LinUCB is 20.2 % (CTR_sum) and 25.6 % (CTR_set) above C2UCB ({reading})",
                "between half and twice as much (other users, so no more can be asked)",
                partial(_as_much, part.name, reading),
                late=True,
                paper=" / ".join(f"{100 * lift:+.1f} %" for lift in PUBLISHED_LIFT.values()),
            ),
        ]
    return Study(
        "CTR of contextual agents against the length of the list, recommendation",
        "He et al. 2020, table 1 and figure 4",
        (part,),
        tuple(statements),
        NOTE + "The 12 candidates and 10 features are the paper's. Horizon and runs are our choice: the paper's figure 4 shows "
        "convergence within 70,000 sessions. Its users' examination is between 0.17 and 0.55; that of the shipped queries, "
        "between 0.08 and 0.87, depends more on the position.",
        _draw_fig4,
        _table1,
        ("regret", "clicks"),
    )


# ------------------------------------------------------------------------------------------------------- figures and table


def _ctr_table(part: str, evidence: Evidence) -> PaperTable:
    curves = evidence[part]
    rows = [["CTR", "agent", "α", *(f"K = {k}" for k in POSITIONS)]]
    for kind, reading, agent in product((CTR_SUM, CTR_SET), (THEOREM, BEST), HE_AGENTS):
        cells = []
        for env in map(ubm, POSITIONS):
            value = ctr(curves, env, agent, reading, kind)[:, -1].mean()
            cells.append(f"{value:.3f} {100 * lift(curves, env, agent, reading, kind).mean():+.1f}%")
        rows.append([kind, agent, _alphas(curves, agent, reading), *cells])
    return "CTR and lift over C2UCB", rows


def _alphas(curves: Curves, agent: str, reading: str) -> str:
    """The α of each K, or of all if it is the same."""
    specs = [chosen(curves, ubm(k), agent, reading) for k in POSITIONS]
    alphas = [spec.rpartition("alpha=")[2] if "=" in spec else "α_t" for spec in specs]
    return alphas[0] if len(set(alphas)) == 1 else ", ".join(alphas)


def _table1(evidence: Evidence) -> PaperTable:
    """Ours, and below it the paper's."""
    title, rows = _ctr_table("ubm-table1", evidence)
    published = []
    for start, kind in enumerate((CTR_SUM, CTR_SET)):
        for agent, values in PUBLISHED.items():
            pairs = zip(values[start::2], PUBLISHED[BASELINE][start::2], strict=True)
            cells = [f"{value:.3f} {100 * (value / base - 1):+.1f}%" for value, base in pairs]
            published.append([kind, "PBM-UCB" if agent == "PBMLinUCB" else agent, "He et al.", *cells])
    return title, [*rows, *published]


def _draw_fig2(evidence: Evidence) -> Figure:
    curves = evidence["ubm-fig2"]
    figure, panels = grid(2, 2)
    places = [(reading, kind) for reading in (THEOREM, BEST) for kind in (CTR_SUM, CTR_SET)]
    for axes, (reading, kind) in zip(panels, places, strict=True):
        for agent in HE_AGENTS:
            ends = [estimate(ctr(curves, ubm(k), agent, reading, kind)[:, -1]) for k in POSITIONS]
            mean, half = np.transpose(ends)
            colour, dashes = look_of(agent, axes)
            axes.errorbar(
                POSITIONS, mean, half, color=colour, linestyle=dashes, marker="o", markersize=3, linewidth=1.5, label=agent
            )
        axes.set(title=f"{kind}, {reading}", xlabel="K", xticks=POSITIONS, ylabel=kind)
    return finish(figure, panels, evidence, f"CTR over {curves.horizon:,} sessions")


def _draw_fig4(evidence: Evidence) -> Figure:
    curves = evidence["ubm-table1"]
    figure, panels = grid(4, 2)
    late = curves.steps * 50 >= curves.horizon
    places = [(reading, *each) for reading in (THEOREM, BEST) for each in each_ctr([SHORT, LONG])]
    for axes, (reading, name, env, kind) in zip(panels, places, strict=True):
        for agent in HE_AGENTS:
            band(axes, curves.steps[late], ctr(curves, env, agent, reading, kind)[:, late], agent)
        axes.set(title=f"{name}, {reading}", xlabel="session")
        axes.ticklabel_format(axis="x", style="sci", scilimits=(0, 0), useMathText=True)
    return finish(figure, panels, evidence, "CTR of all sessions so far")


STUDIES: dict[str, Study] = {
    "ubm-fig2": _ubm_fig2(),
    "ubm-table1": _ubm_table1(),
}
