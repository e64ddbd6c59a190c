"""How many clicks does PPO of stable-baselines3 lose while it learns, and how many do bandits?

    python examples/ppo.py --sessions 3e4 --runs 3 --out results/ppo

The training is this program's own. Its regret is measured from the first session on, and stands in
one table, figure and page with the agents that clickgym plays: without features, and with them.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from stable_baselines3 import PPO

import clickgym
from clickgym.agents import PlackettLuceActorCritic, vec_env

WORLDS = {
    "PBMRank-v0": ("yandex-9982", ("CascadeTS", "TopRank", "Random")),
    "ContextualPBMRank-v0": ("personal", ("NeuralGreedy", "LinearTS", "Random")),
}
"""Environments, each with its instance and the agents beside PPO."""


def train(env: str, instance: str, sessions: int, seed: int) -> clickgym.Result:
    """Train on 64 parallel streams, with an update after every 256 sessions."""
    envs = vec_env(env, 64, instance=instance)
    model = PPO(
        PlackettLuceActorCritic,
        envs,
        n_steps=4,
        batch_size=256,
        learning_rate=3e-3,
        gamma=0.0,
        seed=seed,
        device="cpu",
    )
    model.learn(sessions)
    return envs.result("my PPO", trained=0)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sessions", type=float, default=3e4, help="of each run (default: 3e4)")
    parser.add_argument("--runs", type=int, default=3, help="with the seeds 0, 1, ...")
    parser.add_argument("--out", type=Path, default=Path("results/ppo"), help="folder of reports")
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # small networks: more threads are slower
    sessions = max(1, round(arguments.sessions / 256)) * 256  # whole updates
    for env, (instance, agents) in WORLDS.items():
        mine = [train(env, instance, sessions, seed) for seed in range(arguments.runs)]
        others = clickgym.sweep([env], agents, sessions, arguments.runs, instances=[instance])
        clickgym.Results([*mine, others]).report(arguments.out / env)


if __name__ == "__main__":
    main()
