"""When reinforcement learning pays: stateful users.

Users of Du et al. 2024.

Clicks change what users do later. Regret is the exact loss of each list by Q*. The planner is told
how long users stay in the mean, and the discount tells RL algorithms. Bandits need neither.
CascadeKLUCB does not see the state of the user, and all others do. BanditByState is one
CascadeKLUCB for each state. A2C:gamma=0 does not plan. RL algorithms play a tenth of the sessions.
This page quotes no sentence of the paper, and tests nothing. `--instances` changes nothing here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from clickgym.agents import Agent, CascadeKLUCB

from .claims import Curves, Results, Values, estimate
from .plots import Figure, band, finish, grid
from .study import Sweep, Table

ENV = "CascadeMDPRank-v0"
FAMILIES = ("independent", "clickbait", "habit")
BANDIT, BY_STATE, PLANNER, MYOPIC = "CascadeKLUCB", "BanditByState", "CascadeVI", "A2C:gamma=0"
LEARNERS = ("A2C", MYOPIC, "PPO", "DQN", "MaskablePPO")
UNDRAWN = ("DQN", "MaskablePPO")
"""RL algorithms that the figure leaves out, for lines that can be told apart."""
PLACES = (10**3, 10**4, 10**5, 10**6)


class BanditByState(Agent):
    """One CascadeKLUCB for each state of the user: it sees the state, and does not plan."""

    def __init__(self, n_items: int, n_positions: int, n_states: int, *, seed: Any = None) -> None:
        is_sequence = isinstance(seed, np.random.SeedSequence)
        seeds = (seed if is_sequence else np.random.SeedSequence(seed)).spawn(n_states)
        self.bandits = [CascadeKLUCB(n_items, n_positions, seed=one) for one in seeds]

    def rank(self, observation: Any) -> Any:
        return self.bandits[observation["state"]].rank(observation)

    def update(self, observation: Any, ranking: Any, clicks: Any, reward: float) -> None:
        self.bandits[observation["state"]].update(observation, ranking, clicks, reward)


def _sweep(name: str, agents: Sequence[str], horizon: int) -> Sweep:
    kept: dict[str, Any] = {"whole": True, "least_horizon": 20_000, "least_runs": 2}
    return Sweep(name, [ENV], agents, horizon, runs=5, instances=FAMILIES, **kept)


SWEEPS = [
    _sweep("when-rl-pays-bandits", [BANDIT, f"{BY_STATE}={__name__}:{BY_STATE}", PLANNER], 10**6),
    _sweep("when-rl-pays-others", LEARNERS, 10**5),
]
"""RL algorithms play a tenth of the sessions."""


def agents(results: Results) -> list[str]:
    """All agents, in the order of the parts."""
    return [agent for curves in results.values() for agent in curves.agents]


def regret(results: Results, agent: str, family: str) -> tuple[Curves, Values]:
    """The curves of the part that an agent plays in, and its ``(runs, steps)`` regret."""
    curves = next(curves for curves in results.values() if agent in curves.agents)
    return curves, curves.by_run(ENV, agent, instance=family)


def seen(results: Results) -> Iterator[str]:
    """Who loses less, and who goes on losing."""
    step = max(step for step in PLACES if all(step <= one.horizon for one in results.values()))
    for family in FAMILIES:
        ends = {agent: _at_places(results, agent, family)[step] for agent in agents(results)}
        order = sorted(ends, key=lambda agent: ends[agent].mean())
        words = ", ".join(f"{agent} {estimate(ends[agent])}" for agent in order)
        yield f"{family}, regret after {step:,} sessions: {words}."
    curves, values = regret(results, BANDIT, "clickbait")
    early, late = (
        (curves.at(values, b * curves.horizon) - curves.at(values, a * curves.horizon))
        / ((b - a) * curves.horizon)
        for a, b in ((0.2, 0.4), (0.8, 1.0))
    )
    yield (
        f"clickbait: {BANDIT} loses {estimate(late)} clicks per session in the last fifth of its "
        f"sessions, {late.mean() / early.mean():.2f} times as many as in the second fifth."
    )


def table(results: Results) -> Table:
    """Regret so far."""
    rows = [["users", "agent", *(f"after {step:,}" for step in PLACES), "first of all after"]]
    for family in FAMILIES:
        values = {agent: _at_places(results, agent, family) for agent in agents(results)}
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
    drawn = [agent for agent in agents(results) if agent not in UNDRAWN]
    for axes, family in zip(panels, FAMILIES, strict=True):
        for agent in drawn:
            curves, values = regret(results, agent, family)
            late = curves.steps >= 100
            band(axes, curves.steps[late], values[:, late], agent)
        axes.set(xscale="log", yscale="log", title=family, xlabel="session")
    title = "Bandits, a planner and RL before stateful users"
    return finish(figure, panels[:1], results, title)
