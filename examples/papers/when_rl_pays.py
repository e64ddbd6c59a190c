"""When reinforcement learning pays: stateful users.

Users of Du et al. 2024.

In this study, clicks change what users do later, so regret is the exact loss of each list, computed
from Q*. `CascadeVI` and `SlateQ` are told how long users stay on average; generic RL algorithms get
the same information through their discount factor, and bandits are not told. All agents except
`CascadeKLUCB` see the state of the user. `BanditByState` runs a separate `CascadeKLUCB` for each
state, and `A2C:gamma=0` does not plan. Generic RL algorithms play only a tenth of the sessions. The
page quotes no sentence of the paper, so it tests none.
"""

from __future__ import annotations

import sys
from typing import Any

import figures
import numpy as np
import study
from study import estimate

from clickgym.agents import Agent, CascadeKLUCB

ENV = "CascadeMDPRank-v0"
FAMILIES = ("independent", "clickbait", "habit")
BANDIT, BY_STATE, PLANNER, MYOPIC = "CascadeKLUCB", "BanditByState", "CascadeVI", "A2C:gamma=0"
LEARNERS = {
    **{name: name for name in ("A2C", MYOPIC, "PPO", "DQN")},
    "MaskablePPO": "sb3_contrib:MaskablePPO:n_envs=64,n_steps=20,batch_size=320,n_epochs=4,"
    "learning_rate=0.001,ent_coef=0.0,net_arch=[64,64]",
}
PLACES = (10**3, 10**4, 10**5, 10**6)


class BanditByState(Agent):
    """Runs a separate CascadeKLUCB for each state of the user. It sees the state, but does not
    plan.
    """

    def __init__(self, n_items: int, n_positions: int, n_states: int, *, seed: Any = None) -> None:
        is_sequence = isinstance(seed, np.random.SeedSequence)
        seeds = (seed if is_sequence else np.random.SeedSequence(seed)).spawn(n_states)
        self.bandits = [CascadeKLUCB(n_items, n_positions, seed=one) for one in seeds]

    def rank(self, observation: Any) -> Any:
        return self.bandits[observation["state"]].rank(observation)

    def update(self, observation: Any, ranking: Any, clicks: Any, reward: float) -> None:
        self.bandits[observation["state"]].update(observation, ranking, clicks, reward)


def play(options):
    """Play bandits, a planner and SlateQ, and play generic RL for a tenth of the sessions."""
    bandits = {BANDIT: BANDIT, BY_STATE: BanditByState, PLANNER: PLANNER}
    sizes = {
        "bandits": (bandits, 10**6),
        "SlateQ": (["SlateQ"], 10**6),
        "learners": (LEARNERS, 10**5),
    }
    parts = {}
    for part, (agents, horizon) in sizes.items():
        horizon = min(horizon, options.horizon or horizon)
        table = study.played(options, part, [ENV], agents, horizon, 5, FAMILIES)
        parts[part] = study.compact(table, ends=())
    return parts


def regrets(results, family):
    """Return each agent's steps, and its regret at these steps, ``(runs, steps)``."""
    return {
        agent: (curves.steps, curves.by_run(ENV, agent, instance=family))
        for curves in results.values()
        for agent in curves.agents
    }


def after(results, family):
    """Return each agent's regret, ``(runs,)``, after each number of sessions in `PLACES` that it
    reached.
    """
    return {
        agent: {n: values[:, np.searchsorted(steps, n)] for n in PLACES if n <= steps[-1]}
        for agent, (steps, values) in regrets(results, family).items()
    }


def table(results):
    """Return the table of regret after several numbers of sessions."""
    rows = [["users", "agent", *(f"after {n:,}" for n in PLACES), "best after"]]
    for family in FAMILIES:
        values = after(results, family)
        best = {}
        for n in PLACES:
            means = {agent: at[n].mean() for agent, at in values.items() if n in at}
            best[n] = min(means, key=lambda agent: means[agent], default="")
        for agent, at in values.items():
            cells = [str(estimate(at[n])) if n in at else "" for n in PLACES]
            first = ", ".join(f"{n:,}" for n in PLACES if best[n] == agent)
            rows.append([family, agent, *cells, first])
    return (
        "Mean regret over the runs, with its 95 % interval, after each number of sessions; *best "
        "after* lists the numbers of sessions after which an agent has the least regret of all "
        "agents",
        rows,
    )


def seen(results):
    """Report whether the bandit keeps losing clicks."""
    steps, values = regrets(results, "clickbait")[BANDIT]
    fifths = np.array([[0.2, 0.4], [0.8, 1.0]]) * steps[-1]
    early, late = np.diff(values[:, np.searchsorted(steps, fifths.round())])[..., 0].T
    yield (
        f"With the users *clickbait*, {BANDIT} loses {estimate(late / (0.2 * steps[-1]))} clicks "
        f"per session in the last fifth of its sessions, {late.mean() / early.mean():.2f} times "
        "as many as in the second fifth."
    )


def draw(results):
    """Draw regret for each family of users, without two RL algorithms, so that readers can tell the
    lines apart.
    """
    figure, panels = figures.grid(3, label="cumulative regret")
    for axes, family in zip(panels, FAMILIES, strict=True):
        for agent, (steps, values) in regrets(results, family).items():
            if agent not in ("DQN", "MaskablePPO"):
                figures.band(axes, steps[steps >= 100], values[:, steps >= 100], agent)
        axes.set(xscale="log", yscale="log", title=family, xlabel="session")
    return figures.finish(figure, "Bandits, a planner and RL with stateful users")


if __name__ == "__main__":
    study.main(sys.modules[__name__])
