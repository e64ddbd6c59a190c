"""Study of the contextual agents when each is tuned with one budget: is UBM-LinUCB's lead real?"""

from __future__ import annotations

from collections.abc import Sequence

from .he2020 import LONG, contextual, ubm
from .plots import Figure, band, finish, grid
from .study import Evidence, Finding, PaperTable, estimate, less_regret

ENV = ubm(LONG)
PART = "linear-cascade"
TUNED = {
    "UBMLinUCB": "UBMLinUCB:ridge=0.0186,alpha=0.0109",
    "PBMLinUCB": "PBMLinUCB:ridge=6.11,alpha=0.275",
    "DCMLinUCB": "DCMLinUCB:ridge=1.98,alpha=0.797",
    "CMLinUCB": "CMLinUCB:ridge=1.98,alpha=0.797",
    "C2UCB": "C2UCB:ridge=0.472,alpha=0.0566",
    "LinearTS": "LinearTS:ridge=1.98,alpha=0.299",
    "PBMLinTS": "PBMLinTS:scale=0.0384",
    "CascadeLinTS": "CascadeLinTS:sigma=0.0107",
    "CascadeWOFUL": "CascadeWOFUL:bonus=0.00323",
}
"""What `clickgym tune AGENT --environments ENV --instances linear:n_items=12,n_features=10,n_positions=6,seed=11 (and 12)
--horizon 3e4 --budget 4e6` proposes: none of these instances is played here."""
BY_DEFAULT = tuple(TUNED)
CHANGED = tuple(agent for agent, spec in TUNED.items() if spec != agent)
AGENTS = tuple(dict.fromkeys([*BY_DEFAULT, *TUNED.values()]))
OTHERS = tuple(agent for agent in BY_DEFAULT if agent != "UBMLinUCB")


def linear_users(queries: Sequence[str]) -> list[str]:
    """Linear users with the examination of each query, but for the one that the tuning had."""
    return contextual(queries, 12, 10)[1:]


def _spec(agent: str, tuned: bool) -> str:
    return TUNED[agent] if tuned else agent


def less(evidence: Evidence, better: str, worse: str, tuned: bool) -> Finding:
    """Whether one agent has less regret at the end than another, both tuned or both by default."""
    return less_regret(evidence[PART], ENV, _spec(better, tuned), _spec(worse, tuned))


def less_pairs(evidence: Evidence, pair: str) -> Finding:
    """Whether the first of two agents has less regret at the end than the second, both tuned."""
    better, worse = pair.split()
    return less(evidence, better, worse, True)


def gains(evidence: Evidence, agent: str) -> Finding:
    """Whether the tuned agent has less regret than by default."""
    return less_regret(evidence[PART], ENV, TUNED[agent], agent)


def table(evidence: Evidence) -> PaperTable:
    """Regret at the end, by default and tuned."""
    curves = evidence[PART]
    rows = [["agent", "by default", "tuned", "tuned values"]]
    for agent, spec in sorted(TUNED.items(), key=lambda pair: curves.end_units(ENV, pair[1]).mean()):
        ends = [str(estimate(curves.end_units(ENV, name))) for name in (agent, spec)]
        rows.append([agent, *ends, spec.partition(":")[2] or "the defaults"])
    return "Regret at the end, mean over queries with its 95 % interval", rows


def draw(evidence: Evidence) -> Figure:
    """Regret by default and tuned."""
    curves = evidence[PART]
    figure, panels = grid(2, labels=["cumulative regret"])
    late = curves.steps >= 100
    for axes, tuned in zip(panels, (False, True), strict=True):
        for agent in BY_DEFAULT:
            band(axes, curves.steps[late], curves.units(ENV, _spec(agent, tuned))[:, late], agent)
        axes.set(xscale="log", yscale="log", title="tuned" if tuned else "by default", xlabel="session")
    return finish(figure, panels[:1], evidence, "Contextual agents, each tuned with the same budget")
