"""Does PPO beat BatchRank on a real search query, and after how many sessions?

Both rank for the same users, and exploration counts: regret is measured from the first session on.

    python examples/ppo.py --horizon 1e5 --figure ppo.png
"""

from __future__ import annotations

import argparse
from pathlib import Path

import gymnasium as gym
import matplotlib.pyplot as plt

import clickgym
from clickgym.agents import PPO, BatchRank, Random


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--env", default="PBMRank-v0")
    parser.add_argument(
        "--horizon", type=float, default=1e5, help="number of sessions (default: 1e5)"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--figure", type=Path, help="save the regret curves, as .png or .svg")
    arguments = parser.parse_args()

    env = gym.make(arguments.env)
    axes = plt.subplots()[1]
    print(f"{arguments.env}, {env.unwrapped.instance}, {arguments.horizon:,.0f} sessions")
    print(f"{'agent':<10} {'regret':>10} {'per session at the end':>24} {'sessions/s':>12}")
    n_items, n_positions, seed = (
        env.unwrapped.action_space.n_items,
        env.unwrapped.action_space.n_positions,
        arguments.seed,
    )
    for agent in (
        Random(n_items, n_positions, seed=seed),
        BatchRank(n_items, n_positions, horizon=arguments.horizon, seed=seed),
        PPO(n_items, n_positions, seed=seed),
    ):
        result = clickgym.run(agent, env, arguments.horizon, seed=seed)
        last_tenth = result.steps >= 0.9 * result.steps[-1]
        steps, regret = result.steps[last_tenth], result.regret[last_tenth]
        slope = (regret[-1] - regret[0]) / max(steps[-1] - steps[0], 1)
        speed = steps[-1] / result.seconds
        print(f"{result.agent:<10} {regret[-1]:>10,.0f} {slope:>24.4f} {speed:>12,.0f}")
        axes.loglog(result.steps, result.regret, label=result.agent)
    if arguments.figure:
        axes.set(
            xlabel="sessions",
            ylabel="cumulative expected regret",
            title=f"{arguments.env} · {env.unwrapped.instance}",
        )
        axes.legend()
        axes.figure.savefig(arguments.figure)


if __name__ == "__main__":
    main()
