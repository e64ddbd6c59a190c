"""When reinforcement learning pays: stateful users.

users of Du et al. 2024.

Statements of ours, predicted after one run of 10⁵ sessions of each agent. Regret is the exact loss
of each list by Q*. The planner is told how long users stay in the mean, and so is the discount of
generic RL; bandits need neither. DQN, MaskablePPO and RecurrentPPO play a tenth of the sessions.
--instances changes nothing here. Version 3.0 judged ten statements together, beside which Holm's
procedure left the second and the last of these undecided.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .claims import (
    LEARNS_RULE,
    LINEAR_RULE,
    SLACK,
    Claim,
    Curves,
    Finding,
    Results,
    Values,
    estimate,
    growth,
    several,
    versus,
)
from .plots import Figure, band, finish, grid
from .study import Sweep, Table

ENV = "CascadeMDPRank-v0"
FAMILIES = ("independent", "clickbait", "habit")
BANDIT, PLANNER = "CascadeKLUCB", "CascadeVI"
GENERIC = ("DQN", "MaskablePPO", "RecurrentPPO")
AGENTS = (BANDIT, PLANNER, *GENERIC)
PLACES = (10**3, 10**4, 10**5, 10**6)


def _sweep(name: str, agents: Sequence[str], horizon: int) -> Sweep:
    kept: dict[str, Any] = {"whole": True, "least_horizon": 20_000, "least_runs": 2}
    return Sweep(name, [ENV], agents, horizon, runs=5, instances=FAMILIES, **kept)


SWEEPS = [
    _sweep("when-rl-pays-bandits", [BANDIT, PLANNER], 1_000_000),
    _sweep("when-rl-pays-others", GENERIC, 100_000),
]
"""Generic RL plays a tenth of the sessions."""


def claims(results: Results) -> Iterator[Claim]:
    """Statements of ours, predicted after one run of 10⁵ sessions of each agent.

    A test asks whether the mean of independent values lies between two bounds: yes if its 95 %
    interval (Student's t) lies between them, no if it lies outside, else it cannot tell; all
    statements are judged together by Holm's procedure. `several` asks that all tests hold; one that
    surely does not contradicts the statement.

    All intervals are over the runs in one family. `grows_linearly` asks whether the rate of regret
    in the last fifth of the sessions less 0.8 times that in the second fifth is above 0 (or below:
    sublinear), `beats` whether the gap between two agents' regret is above 0. A run shorter than
    the paper's cannot contradict a statement marked `late`.
    """
    yield Claim(
        "If clicks on bad items make users click less (clickbait), bandits never learn",
        LINEAR_RULE,
        several({BANDIT: grows_linearly(results, BANDIT, "clickbait")}),
        late=True,
    )
    learns = {family: grows_linearly(results, PLANNER, family, False) for family in FAMILIES}
    yield Claim(
        "The planner's regret is sublinear in all three families",
        LEARNS_RULE,
        several(learns),
        late=True,
    )
    rule = "less regret at the end, or where the shorter of two runs ends"
    for agent in GENERIC:
        yield Claim(
            f"If clicks make users click less (clickbait), {agent} has less regret than a bandit",
            rule,
            several({f"clickbait {BANDIT}": beats(results, "clickbait", agent, BANDIT)}),
        )
    yield Claim(
        "The planner has less regret than every generic RL agent on clickbait",
        f"the planner has {rule}",
        several({f"clickbait {a}": beats(results, "clickbait", PLANNER, a) for a in GENERIC}),
    )


def regret(results: Results, agent: str, family: str) -> tuple[Curves, Values]:
    """The curves of the part that an agent plays in, and its ``(runs, steps)`` regret."""
    curves = next(curves for curves in results.values() if agent in curves.agents)
    return curves, curves.by_run(ENV, agent, instance=family)


def grows_linearly(results: Results, agent: str, family: str, linear: bool = True) -> Finding:
    """Whether regret is linear, or whether it is sublinear."""
    curves, values = regret(results, agent, family)
    words, gap = growth(curves.rate(values, 0.2, 0.4), curves.rate(values, 0.8, 1.0))
    return gap.above(SLACK, words) if linear else gap.below(-SLACK, words)


def beats(results: Results, family: str, better: str, worse: str) -> Finding:
    """Whether an agent has less regret after as many sessions as both played, by as many runs as
    both have.
    """
    pairs = [regret(results, name, family) for name in (better, worse)]
    step, runs = min(curves.horizon for curves, _ in pairs), min(len(values) for _, values in pairs)
    low, high = (curves.at(values, step)[:runs] for curves, values in pairs)
    return versus(low, high, f" after {step:,}" if step < 10**6 else "")


def table(results: Results) -> Table:
    """Regret so far."""
    rows = [["users", "agent", *(f"after {step:,}" for step in PLACES), "first of all after"]]
    for family in FAMILIES:
        values = {agent: _at_places(results, agent, family) for agent in AGENTS}
        best = {}
        for step in PLACES:
            means = {agent: at[step].mean() for agent, at in values.items() if step in at}
            best[step] = min(means, key=lambda agent: means[agent], default="")
        for agent, at in values.items():
            cells = [str(estimate(at[step])) if step in at else "" for step in PLACES]
            first = ", ".join(f"{step:,}" for step in PLACES if best[step] == agent)
            rows.append([family, agent, *cells, first])
    return "Regret so far, mean over the runs", rows


def _at_places(results: Results, agent: str, family: str) -> dict[int, Values]:
    """``(runs,)`` regret after so many sessions, as far as the agent played."""
    curves, values = regret(results, agent, family)
    return {step: curves.at(values, step) for step in PLACES if step <= curves.horizon}


def draw(results: Results) -> Figure:
    """Regret before the users of each family."""
    figure, panels = grid(3, labels=["cumulative regret"])
    for axes, family in zip(panels, FAMILIES, strict=True):
        for agent in AGENTS:
            curves, values = regret(results, agent, family)
            late = curves.steps >= 100
            band(axes, curves.steps[late], values[:, late], agent)
        axes.set(xscale="log", yscale="log", title=family, xlabel="session")
    title = "Bandits, a planner and generic RL before stateful users"
    return finish(figure, panels[:1], results, title)
