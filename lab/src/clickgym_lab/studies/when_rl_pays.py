"""Study of when reinforcement learning pays: bandits, a planner and generic RL before users with a
memory.
"""

from __future__ import annotations

from collections.abc import Iterator

from .plots import Figure, band, finish, grid
from .study import (
    SLACK,
    Curves,
    Estimate,
    Evidence,
    Finding,
    PaperTable,
    Values,
    estimate,
    growth,
    versus,
)

ENV = "CascadeMDPRank-v0"
FAMILIES = ("independent", "clickbait", "habit")
PLACES = (10**3, 10**4, 10**5, 10**6)


def agents(evidence: Evidence) -> Iterator[str]:
    """All agents, each of which plays in one part."""
    return (agent for curves in evidence.values() for agent in curves.agents)


def regret(evidence: Evidence, agent: str, family: str) -> tuple[Curves, Values]:
    """The curves of the part that an agent plays in, and its ``(runs, steps)`` regret."""
    curves = next(curves for curves in evidence.values() if agent in curves.agents)
    return curves, curves.units(ENV, agent, instance=family)


def at(evidence: Evidence, agent: str, family: str, step: int) -> Values | None:
    """``(runs,)`` regret after so many sessions; None if the agent did not play so many."""
    curves, values = regret(evidence, agent, family)
    return None if step > curves.horizon else curves.at(values, step)


def _growth(evidence: Evidence, agent: str, family: str) -> tuple[str, Estimate]:
    """The late rate in words, and how far it is above that of linear regret."""
    curves, values = regret(evidence, agent, family)
    return growth(curves.rate(values, 0.2, 0.4), curves.rate(values, 0.8, 1.0))


def never_learns(evidence: Evidence, agent: str, family: str) -> Finding:
    """Whether regret is linear."""
    words, gap = _growth(evidence, agent, family)
    return Finding(words, gap.above(SLACK))


def learns(evidence: Evidence, agent: str, family: str) -> Finding:
    """Whether regret is sublinear."""
    words, gap = _growth(evidence, agent, family)
    return Finding(words, gap.below(-SLACK))


def beats(evidence: Evidence, family: str, better: str, worse: str) -> Finding:
    """Whether an agent has less regret after as many sessions as both played, by as many runs as
    both have.
    """
    pairs = [regret(evidence, name, family) for name in (better, worse)]
    step, runs = min(curves.horizon for curves, _ in pairs), min(len(values) for _, values in pairs)
    low, high = (curves.at(values, step)[:runs] for curves, values in pairs)
    return versus(low, high, f" after {step:,}" if step < 10**6 else "")


def table(evidence: Evidence) -> PaperTable:
    """Regret so far."""
    rows = [["users", "agent", *(f"after {step:,}" for step in PLACES), "first of all after"]]
    for family in FAMILIES:
        best = {step: _best(evidence, family, step) for step in PLACES}
        for agent in agents(evidence):
            values = [at(evidence, agent, family, step) for step in PLACES]
            cells = ["" if value is None else str(estimate(value)) for value in values]
            rows.append(
                [
                    family,
                    agent,
                    *cells,
                    ", ".join(f"{step:,}" for step in PLACES if best[step] == agent),
                ]
            )
    return "Regret so far, mean over the runs", rows


def _best(evidence: Evidence, family: str, step: int) -> str:
    """The agent with the least regret of those that played so many sessions; empty if none did."""
    values = {agent: at(evidence, agent, family, step) for agent in agents(evidence)}
    means = {agent: value.mean() for agent, value in values.items() if value is not None}
    return min(means, key=lambda agent: means[agent], default="")


def draw(evidence: Evidence) -> Figure:
    """Regret before the users of each family."""
    figure, panels = grid(3, labels=["cumulative regret"])
    for axes, family in zip(panels, FAMILIES, strict=True):
        for agent in agents(evidence):
            curves, values = regret(evidence, agent, family)
            late = curves.steps >= 100
            band(axes, curves.steps[late], values[:, late], agent)
        axes.set(xscale="log", yscale="log", title=family, xlabel="session")
    return finish(
        figure, panels[:1], evidence, "Bandits, a planner and generic RL before users with a memory"
    )
