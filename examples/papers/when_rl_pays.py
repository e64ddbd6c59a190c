"""When reinforcement learning pays: users with memory.

Users of Du et al. 2024.

In this study, clicks change what users do later, so regret is the exact loss of each list, computed
from Q*. `CascadeVI` and `SlateQ` are told how long users stay on average; generic RL algorithms get
the same information through their discount factor, and bandits are not told. All agents except
`CascadeKLUCB` see the state of the user. `BanditByState` runs a separate `CascadeKLUCB` for each
state, and `A2C:gamma=0` does not plan. The settings of *PPO, tuned* were found by hand on other
instances. The regret of the *best single list* for all states is computed, not simulated. Generic
RL algorithms play only a tenth of the sessions; on the real query, all agents do.

The users *clickbait* and *journey* were designed so that planning pays. One constant of *journey*
was chosen after runs of PPO on its default instance, so PPO's results there are slightly
optimistic. The ten instances differ only in their seeds. Some agents had been run on some of these
seeds before the seeds were fixed; nothing but the constant, and the number of epochs of *PPO,
tuned*, was chosen from these runs. The page quotes no sentence of the paper, so it tests none.
"""

from __future__ import annotations

import sys
from itertools import permutations
from typing import Any

import figures
import numpy as np
import polars
import study
from study import estimate

from clickgym.agents import Agent, CascadeKLUCB
from clickgym.runner.make import make_env

ENV = "CascadeMDPRank-v0"
FAMILIES = ("independent", "clickbait", "habit", "journey")
RUNS = (5, 5, 5, 10)
"""The number of runs on the default instance of each family."""
TEN_JOURNEYS = tuple(f"journey:seed={seed}" for seed in range(10))
"""Instances that each agent plays once."""
REAL_QUERY = ("clickbait:query=yandex-9982", "journey:query=yandex-9982")
"""Users of two families with the items of a real query."""
BANDIT, BY_STATE, PLANNER, MYOPIC = "CascadeKLUCB", "BanditByState", "CascadeVI", "A2C:gamma=0"
SINGLE, TUNED = "best single list", "PPO, tuned"
DRAWN = (BANDIT, BY_STATE, PLANNER, "SlateQ", "PPO", TUNED)
"""The agents in the figure. It leaves out the others, so that readers can tell the lines apart."""
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


BANDITS = {
    BANDIT: BANDIT,
    BY_STATE: BanditByState,
    **{name: name for name in (PLANNER, f"{PLANNER}:bonus=0", "SlateQ", "Random")},
}
"""All agents without a neural network."""
LEARNERS = {
    **{name: name for name in ("A2C", MYOPIC, "PPO")},
    TUNED: "PPO:gae_lambda=0.0,learning_rate=3e-3,max_grad_norm=10",
    "DQN": "DQN",
    "MaskablePPO": "sb3_contrib:MaskablePPO:n_envs=64,n_steps=20,batch_size=320,n_epochs=4,"
    "learning_rate=0.001,ent_coef=0.0,net_arch=[64,64]",
}
ON_REAL_QUERY = {
    "bandits": (BANDITS, 20),
    "learners": ({name: LEARNERS[name] for name in ("PPO", TUNED, "A2C")}, 5),
}
"""The agents that play the real query, and their number of runs."""


def play(options):
    """Play each family, ten instances of the last family, and the real query. In each family,
    generic RL plays a tenth of the sessions. Then compute the regret of the best single lists.
    """
    kinds = {"bandits": (BANDITS, 10**6), "learners": (LEARNERS, 10**5)}
    parts = {}
    for family, runs in zip(FAMILIES, RUNS, strict=True):
        for kind, (agents, sessions) in kinds.items():
            part, horizon = f"{family}, {kind}", min(sessions, options.horizon or sessions)
            table = study.played(options, part, [ENV], agents, horizon, runs, [family])
            parts[part] = study.compact(table, ends=()).drop_nulls("instance")
    horizon = min(10**5, options.horizon or 10**5)
    agents, part = BANDITS | LEARNERS, "ten journeys"
    table = study.played(options, part, [ENV], agents, horizon, 1, TEN_JOURNEYS)
    parts[part] = study.compact(table, ends=(1.0,)).drop_nulls("instance")
    for kind, (agents, runs) in ON_REAL_QUERY.items():
        part = f"real query, {kind}"
        table = study.played(options, part, [ENV], agents, horizon, runs, REAL_QUERY)
        parts[part] = study.compact(table, ends=(1.0,)).drop_nulls("instance")
    parts[SINGLE] = single_lists([*FAMILIES, *TEN_JOURNEYS, *REAL_QUERY], horizon)
    return parts


def single_lists(instances, horizon):
    """Return a table of the clicks that the best list for all states is expected to lose."""
    rows = []
    for instance in instances:
        users = make_env(ENV, instance).unwrapped.model
        lost = (users.first @ users.value - best_single_list(users)) / users.mean_sessions
        rows.append((ENV, instance, SINGLE, 0, horizon, lost * horizon))
    columns = ("env", "instance", "agent", "run", "step", "regret")
    return polars.DataFrame(rows, columns, orient="row").cast({"regret": polars.Float32})


def best_single_list(users):
    """Return the expected total reward of a user who always sees the best list for all states. All
    lists are compared.
    """
    lists = np.array([*permutations(range(users.n_items), users.n_positions)])
    missed = np.cumprod(1 - users.attraction[:, lists], axis=-1)  # no click down to a position
    reached = np.concatenate([np.ones((*missed.shape[:2], 1)), missed], axis=-1)
    clicked = reached[..., :-1] - missed
    rewards = (clicked * users.click_rewards[:, lists]).sum(-1)
    states = range(users.n_states)
    moves = [np.einsum("nk,nkt->nt", clicked[s], users.transition[s, lists]) for s in states]
    moves = np.stack(moves, 1) + reached[..., -1:].swapaxes(0, 1) * users.transition[:, -1]
    left = np.eye(users.n_states) - users.discount * moves
    return (np.linalg.solve(left, rewards.T[..., None])[..., 0] @ users.first).max()


def regrets(results, instance):
    """Return each agent's steps, and its regret at these steps, ``(runs, steps)``."""
    return {
        agent: (curves.steps, curves.by_run(ENV, agent, instance=instance))
        for curves in results.values()
        if instance in curves.instances
        for agent in curves.agents
    }


def after(results, family):
    """Return each agent's regret, ``(runs,)``, after each number of sessions in `PLACES` that it
    reached.
    """
    return {
        agent: {n: values[:, np.searchsorted(steps, n)] for n in PLACES if n in steps}
        for agent, (steps, values) in regrets(results, family).items()
    }


def on_ten_journeys(results):
    """Return each agent's regret on ten instances, ``(10,)``."""
    found = [regrets(results, instance) for instance in TEN_JOURNEYS]
    return {agent: np.array([one[agent][1][0, -1] for one in found]) for agent in found[0]}


def interval(values):
    """Format the mean of the runs, with its 95 % interval if there are several runs."""
    return str(estimate(values)) if len(values) > 1 else study.number(float(values[0]))


def table(results):
    """Return the table of regret after several numbers of sessions."""
    rows = [["users", "agent", *(f"after {n:,}" for n in PLACES), "best after"]]
    for family in (*FAMILIES, *REAL_QUERY):
        values = after(results, family)
        best = {}
        for n in PLACES:
            means = {it: at[n].mean() for it, at in values.items() if n in at and it != SINGLE}
            best[n] = min(means, key=lambda agent: means[agent], default="")
        for agent, at in values.items():
            cells = [interval(at[n]) if n in at else "" for n in PLACES]
            first = ", ".join(f"{n:,}" for n in PLACES if best[n] == agent)
            rows.append([family, agent, *cells, first])
    return (
        "Mean regret over the runs, with its 95 % interval, after each number of sessions; *best "
        "after* lists the numbers of sessions after which an agent has the least regret that the "
        "table shows, apart from the best single list",
        rows,
    )


def seen(results):
    """Report whether the bandit keeps losing clicks, and what agents lose on ten instances."""
    steps, values = regrets(results, "clickbait")[BANDIT]
    fifths = np.array([[0.2, 0.4], [0.8, 1.0]]) * steps[-1]
    early, late = np.diff(values[:, np.searchsorted(steps, fifths.round())])[..., 0].T
    yield (
        f"With the users *clickbait*, {BANDIT} loses {estimate(late / (0.2 * steps[-1]))} clicks "
        f"per session in the last fifth of its sessions, {late.mean() / early.mean():.2f} times "
        "as many as in the second fifth."
    )
    for agent, values in on_ten_journeys(results).items():
        lowest, highest = map(study.number, (values.min(), values.max()))
        yield (
            f"On ten instances of *journey*, *{agent}* loses {estimate(values)} clicks in 100,000 "
            f"sessions, from {lowest} to {highest}."
        )


def draw(results):
    """Draw regret for each family of users."""
    figure, panels = figures.grid(2, 2, label="cumulative regret", width=3.25)
    for axes, family in zip(panels, FAMILIES, strict=True):
        curves = regrets(results, family)
        for agent in filter(curves.__contains__, DRAWN):
            steps, values = curves[agent]
            figures.band(axes, steps[steps >= 100], values[:, steps >= 100], agent)
        axes.set(xscale="log", yscale="log", title=family, xlabel="session")
    return figures.finish(figure, "Bandits, a planner and RL for users with memory")


if __name__ == "__main__":
    study.main(sys.modules[__name__])
