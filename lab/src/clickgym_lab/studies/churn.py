"""Study of items that come and go: regret by how often items are replaced, and which agents must be informed."""

from __future__ import annotations

from clickgym.agents import PBMHB, CascadeKLUCB, CascadeSWUCB, CascadeTS, GLRCascadeKLUCB, Random, TopRank, UniRank

from .axes import BARS, RANDOM, in_envs, lines, table_of
from .plots import Figure, finish, grid
from .study import CM, PBM, Curves, Evidence, Finding, PaperTable, less_regret

EVERY, MANY = "churn", "churn-models"
"""All rates on the shipped queries; one rate in two click models on all queries."""
HERE = "clickgym.lab.studies.churn"
"""Where these agents lay in version 2: their labels, from which seeds derive, stay."""
RATES = {"0": "", "1e-5": ":churn=1e-05", "1e-4": ":churn=0.0001", "1e-3": ":churn=0.001", "1e-2": ":churn=0.01"}
ENVS = tuple(f"{CM}{argument}" for argument in RATES.values())


for _agent in (CascadeKLUCB, CascadeTS, TopRank, UniRank, PBMHB, GLRCascadeKLUCB, CascadeSWUCB):
    _words = f"{_agent.__name__} without the information which item was replaced."
    _members = {"__doc__": _words, "__module__": __name__, "replace_kernel": Random.replace_kernel}
    globals()[f"Untold{_agent.__name__}"] = type(f"Untold{_agent.__name__}", (_agent,), _members)


def less_untold(curves: Curves, env: str, better: str, worse: str) -> Finding:
    """Whether one agent has less regret at the end than another, neither of which is told."""
    return less_regret(curves, env, f"{HERE}:Untold{better}", f"{HERE}:Untold{worse}")


def regret(evidence: Evidence) -> PaperTable:
    """Regret of all agents at all rates."""
    curves = evidence[EVERY]
    envs = {f"{rate} a session" if argument else "no churn": f"{CM}{argument}" for rate, argument in RATES.items()}
    title = f"Regret in the CM, mean over {len(curves.instances)} queries, {curves.horizon:,} sessions"
    return table_of(curves, *in_envs(envs, curves.agents), f"{title} (Untold: not told who came)")


def draw(evidence: Evidence) -> Figure:
    """Regret by the rate, of those that are told and of those that are not; and in two click models on all queries."""
    figure, panels = grid(2, 2, labels=2 * [f"regret, % of {RANDOM}"])
    curves = evidence[EVERY]
    rates = {rate: f"{CM}{argument}" for rate, argument in RATES.items()}
    for axes, names, others in (
        (panels[0], ("CascadeTS", "CascadeKLUCB", "TopRank", "PBMHB", "UniRank"), ()),
        (panels[1], ("CascadeTS", "GLRCascadeKLUCB", "CascadeSWUCB"), ("CascadeDUCB", "BubbleRank", "MergeRank", "GRAB")),
    ):
        lines(axes, curves, *in_envs(rates, [*names, *(f"{HERE}:Untold{name}" for name in names), *others]), CM)
        axes.set(title="CM, shipped queries", xlabel="items replaced a session")
    curves = evidence[MANY]
    for axes, env in zip(panels[2:], (CM, PBM), strict=True):
        agents = [agent for agent in curves.agents if agent != RANDOM]
        lines(axes, curves, *in_envs({"0": env, "1e-4": f"{env}:churn=0.0001"}, agents), env)
        axes.set(title=f"{env.partition('Rank')[0]}, all queries", xlabel="items replaced a session")
    return finish(figure, panels, evidence, "Regret by how often items come and go", BARS)
