"""Does a policy that PPO trained on other queries learn a new query faster than a bandit?

PPO trains on 1,000 queries. Then it plays queries that it has never seen, and no longer learns
between them: it only reads what was clicked in the episode so far.

    python examples/unseen_queries.py --horizon 100 --sessions 2e6 --figure unseen.png

Choose settings by the validation queries, which it plays. With --final it plays the test queries
and the real ones instead.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import gymnasium as gym
import matplotlib.pyplot as plt
import numpy as np
import torch
from gymnasium.vector import VectorEnv, VectorWrapper
from stable_baselines3 import PPO

import clickgym
from clickgym.agents import PlackettLuceActorCritic, RegretCallback, as_vec_env
from clickgym.envs import EpisodeCountsVector

ENV, BANDITS = "QueriesPBMRank-v0", ("CascadeKLUCB", "CascadeTS", "BCMPTS")


class RegretReward(VectorWrapper):
    """The reward is minus the regret of the list: the same best policy, no luck of the clicks."""

    def step(self, actions: Any) -> tuple[Any, ...]:
        observations, _, ends, cuts, infos = self.env.step(actions)
        regret = infos["regret"]
        if "final_info" in infos:  # of the sessions that ended an episode
            regret = np.where(ends | cuts, infos["final_info"]["regret"], regret)
        return observations, -regret, ends, cuts, infos


def make_envs(split: str, horizon: int, n_envs: int, env: str = ENV) -> VectorEnv:
    """Return parallel episodes of the queries of a split, which show what was clicked in them."""
    instance = f"queries:split={split},n_sessions={horizon}"
    envs = gym.make_vec(env, num_envs=n_envs, instance=instance, autoreset_mode="SameStep")
    return EpisodeCountsVector(envs)


def train(envs: VectorEnv, sessions: float, seed: int) -> PPO:
    """Train on whole episodes, so that each update sees their beginning and their end."""
    model = PPO(
        PlackettLuceActorCritic,
        as_vec_env(RegretReward(envs)),
        n_steps=envs.unwrapped.model.n_sessions,
        batch_size=4_000,
        n_epochs=2,
        learning_rate=lambda left: 1e-3 * max(0.05, left),
        gamma=0.99,
        target_kl=0.03,
        policy_kwargs={"net_arch": [32, 32]},
        seed=seed,
        verbose=1,
        device="cpu",
    )
    return model.learn(int(sessions), RegretCallback(), log_interval=10)


def play(policy: Any, envs: VectorEnv, seed: int = 0) -> np.ndarray:
    """Return ``(T, B)`` the regret of each session of an episode; stream b plays query b mod Q."""
    observations, _ = envs.reset(seed=seed)
    regret, is_over = [], False
    while not is_over:
        observations, _, ends, _, infos = envs.step(policy(observations))
        is_over = ends.all()
        regret.append((infos["final_info"] if is_over else infos)["regret"].copy())
    return np.array(regret)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--horizon", type=int, default=100, help="sessions of an episode")
    parser.add_argument("--sessions", type=float, default=2e6, help="of the training")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("unseen.zip"), help="the trained policy")
    parser.add_argument("--figure", type=Path, help="save the curves of an episode")
    parser.add_argument("--final", action="store_true", help="play the test and the real queries")
    options = parser.parse_args()
    torch.set_num_threads(1)
    horizon, n_envs = options.horizon, max(64, 40_000 // options.horizon)
    model = train(make_envs("train", horizon, n_envs), options.sessions, options.seed)
    model.save(options.out)

    splits = ("test", "real") if options.final else ("valid",)
    size = (4.5 * len(splits), 3.5)
    figure, panels = plt.subplots(1, len(splits), figsize=size, squeeze=False, layout="constrained")
    for axes, split in zip(panels[0], splits, strict=True):
        lost = play(lambda seen: model.predict(seen)[0], make_envs(split, horizon, 200))
        curves = {"PPO, trained": (range(1, horizon + 1), lost.cumsum(axis=0).mean(axis=1))}
        env = gym.make(ENV, instance=f"queries:split={split},n_sessions={horizon}")
        for name in BANDITS:  # run r plays query r mod Q, and knows nothing of the others
            runs = [clickgym.run(name, env, horizon, seed=seed) for seed in range(200)]
            curves[name] = (runs[0].steps, np.mean([run.regret for run in runs], axis=0))
        for name, (steps, regret) in curves.items():
            print(f"{split}, {name}: {regret[-1]:.1f} clicks lost in {horizon:,} sessions")
            axes.plot(steps, regret, label=name)
        axes.set(title=split, xlabel="sessions of the episode", ylabel="clicks lost so far")
        axes.legend()
    if options.figure:
        figure.savefig(options.figure)


if __name__ == "__main__":
    main()
