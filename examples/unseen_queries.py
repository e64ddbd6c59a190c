"""Test whether policies trained on other queries adapt to a new query faster than a bandit.

The program trains PPO and a supervised network (`learned_posterior.py`) on 1,000 queries, and then
runs them on queries that they have never seen. During these runs, their weights are fixed, and they
only read the clicks so far in the episode. A bandit starts from scratch in each episode.

    python examples/unseen_queries.py --horizon 100 --sessions 2e6 --rounds 60 --figure unseen.png

By default, the program runs on the validation queries, which you can use to choose settings. With
--final, it runs on the test queries and the real queries instead.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import matplotlib.pyplot as plt
import numpy as np
import torch
from gymnasium.vector import VectorEnv
from learned_posterior import choose, make_envs, play, train
from stable_baselines3 import PPO

import clickgym
from clickgym.agents import PlackettLuceActorCritic, RegretCallback, vec_env
from clickgym.core.statistics import half_width
from clickgym.runner.reports.figures import line_styles

BANDITS = ("MixTS", "CascadeTS", "CascadeKLUCB", "BCMPTS", "Random")
EPISODES = {"valid": 400, "test": 400, "real": 320}
"""Episodes for each split; every query is played equally often."""


def train_ppo(envs: VectorEnv, sessions: float, seed: int) -> PPO:
    """Train PPO on whole episodes, so that each update uses all sessions of an episode."""
    model = PPO(
        PlackettLuceActorCritic,
        vec_env(envs, minus_regret=True),  # has the same best policy as clicks, but less noise
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


def estimate(values: np.ndarray, sign: str = "") -> str:
    """Format the mean over queries with the half-width of its 95 % interval."""
    half = half_width(len(values)) * values.std(ddof=1)
    return f"{values.mean():{sign}.1f} ± {half:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--horizon", type=int, default=100, help="sessions per episode")
    parser.add_argument(
        "--sessions", type=float, default=2e6, help="training sessions of PPO; 0 for no PPO"
    )
    parser.add_argument("--rounds", type=int, default=0, help="training rounds of the network")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--env", default="QueriesPBMRank-v0", help="environment for the final runs")
    parser.add_argument(
        "--out", type=Path, default=Path("unseen.zip"), help="file for the trained PPO model"
    )
    parser.add_argument("--figure", type=Path, help="file for a figure of the regret in an episode")
    parser.add_argument("--final", action="store_true", help="run on the test and the real queries")
    options = parser.parse_args()
    torch.set_num_threads(1)
    horizon, policies = options.horizon, dict[str, Callable[[Any], Any]]()
    if options.sessions:
        envs = make_envs("train", horizon, max(64, 40_000 // horizon))
        model = train_ppo(envs, options.sessions, options.seed)
        model.save(options.out)
        name = f"PPO, trained with {model.num_timesteps:,} sessions"
        policies[name] = lambda seen: model.predict(seen)[0]
    if options.rounds:
        users: Any = make_envs("train", horizon, 1).unwrapped
        net = train(users.model.models, horizon, options.rounds, options.seed)
        name = f"network, trained with {options.rounds * 256 * horizon:,} sessions"
        policies[name] = choose(net, horizon)

    looks = line_styles([*policies, *BANDITS])
    splits = ("test", "real") if options.final else ("valid",)
    size = (3.3 * len(splits), 3.0)
    figure, panels = plt.subplots(1, len(splits), figsize=size, squeeze=False, layout="constrained")
    for axes, split in zip(panels[0], splits, strict=True):
        runs, lost = EPISODES[split], {}
        for name, policy in policies.items():
            regret = play(policy, make_envs(split, horizon, runs, options.env))
            lost[name] = np.arange(1, horizon + 1), regret.cumsum(axis=0).T
        env = gym.make(options.env, instance=f"queries:split={split},n_sessions={horizon}")
        n_queries = env.unwrapped.model.n_queries  # type: ignore[attr-defined]
        for name in BANDITS:  # run r plays query r mod Q, and starts from scratch
            if name == "BCMPTS" and "PBM" not in options.env:
                continue  # BCMPTS requires examination probabilities, which only the PBM has
            results = [clickgym.run(name, env, horizon, seed=seed) for seed in range(runs)]
            lost[name] = results[0].steps, np.array([result.regret for result in results])
        ends = {name: regret[:, -1].reshape(-1, n_queries) for name, (_, regret) in lost.items()}
        by_query = {name: values.mean(axis=0) for name, values in ends.items()}
        order = sorted(by_query, key=lambda name: by_query[name].sum())
        best = next(name for name in order if name in BANDITS)
        for name in order:
            print(f"{split}, {horizon:,} sessions: {estimate(by_query[name])} lost by {name}")
            if name not in BANDITS:
                print(f"    beside {best}: {estimate(by_query[name] - by_query[best], '+')}")
            steps, regret = lost[name]
            if name != "MixTS":  # its line is that of CascadeTS, nearly
                label = name.partition(",")[0]
                axes.plot(steps, regret.mean(axis=0), label=label, **looks[name])
        axes.set(title=split, xlabel="sessions of the episode", ylabel="clicks lost so far")
        axes.legend(fontsize="small", frameon=False)
    if options.figure:
        figure.savefig(options.figure, dpi=150)


if __name__ == "__main__":
    main()
