"""The algorithms in their authors' own code beside ours: time of a session, and regret in the same
environment.

    BANDITS_TO_RANK=path/to/bandits-to-rank ONLINE_LTR=path/to/OnlineLearningToRank python
    benchmarks/peers.py --write

The variables name checkouts of https://github.com/abhg86/bandits-to-rank (GRAB; UniRank, called
OSUB_TOP_RANK there, which is told which position is best) and
https://github.com/HarrieO/OnlineLearningToRank (PDGD); what is not named is left out. Item ids are
permuted. The time of a peer is that of its own two methods; ours has the environment's session in
it.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import random
import sys
import time
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
from report import Timed, mean_text, publish, table

import clickgym
from clickgym.agents import Agent

HORIZON, RUNS = 20_000, 4

for old, new in (
    ("int", int),
    ("float", float),
    ("bool", bool),
):  # names that NumPy had when the peers were written
    if old not in vars(np):
        setattr(np, old, new)


class Peer(Timed):
    """Another project's algorithm, which has numbers of its own for the items."""

    def __init__(
        self,
        choose: Callable[[Any], Any],
        learn: Callable[[Any, Any], object],
        seed: int,
        n_items: int,
    ) -> None:
        super().__init__(choose, learn)
        self.names = np.random.default_rng(seed).permutation(
            n_items
        )  # what the peer calls each item
        self.items = np.argsort(self.names)

    def rank(self, observation: Any) -> np.ndarray:
        features = (
            {"features": observation["features"][self.items]}
            if isinstance(observation, dict)
            else None
        )
        self.chosen = super().rank(features)
        return self.items[self.chosen]

    def update(
        self, observation: Any, ranking: np.ndarray, clicks: np.ndarray, reward: float
    ) -> None:
        super().update(observation, self.chosen, clicks, reward)


def of_bandits_to_rank(module: str, name: str, **arguments: Any) -> Callable[[gym.Env, int], Peer]:
    def make(env: gym.Env, seed: int) -> Peer:
        model = env.unwrapped.model
        peer = getattr(importlib.import_module(f"bandits_to_rank.opponents.{module}"), name)
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002 (what the peer draws from)
        if (
            name == "OSUB_TOP_RANK"
        ):  # which position is best, second best, ...; with a horizon it fails after some 200 sessions
            made = peer(model.n_items, model.n_positions, sigma=np.arange(model.n_positions))
        else:
            made = peer(model.n_items, model.n_positions, T=HORIZON, **arguments)
        return Peer(lambda _: made.choose_next_arm()[0], made.update, seed, model.n_items)

    return make


def of_online_ltr(env: gym.Env, seed: int) -> Peer:
    model = env.unwrapped.model
    np.random.seed(seed)  # noqa: NPY002
    pdgd = importlib.import_module("algorithms.PDGD.pdgd").PDGD
    made = pdgd(0.1, 1.0, n_results=model.n_positions, n_features=model.n_features)
    return Peer(
        lambda features: made._create_train_ranking(0, features, False),
        lambda _, clicks: made.update_to_interaction(clicks.astype(bool)),
        seed,
        model.n_items,
    )


# Ours, its environments, the variable of the checkout, and what makes the peer.
PEERS: list[tuple[str, tuple[str, ...], str, Callable[[gym.Env, int], Peer]]] = [
    (
        "GRAB",
        ("PBMRank-v0", "CMRank-v0"),
        "BANDITS_TO_RANK",
        of_bandits_to_rank("grab", "GRAB", gamma=9),
    ),
    (
        "UniRank",
        ("PBMRank-v0", "CMRank-v0"),
        "BANDITS_TO_RANK",
        of_bandits_to_rank("uni_rank", "OSUB_TOP_RANK"),
    ),
    ("PDGD", ("ContextualUBMRank-v0",), "ONLINE_LTR", of_online_ltr),
]


def played(agent: Agent | str, env: gym.Env, seed: int) -> clickgym.Result:
    return clickgym.run(agent, env, HORIZON, seed=seed, checkpoints=[HORIZON])


def main() -> None:
    rows = []
    for name, env_ids, variable, make in PEERS:
        folder = os.environ.get(variable)
        if folder is None:
            print(f"{name}: {variable} names no checkout", file=sys.stderr)
            continue
        sys.path.insert(0, folder)
        for env_id in env_ids:
            env = gym.make(env_id)
            played(clickgym.make_agent(name, env, horizon=HORIZON, seed=0), env, 0)  # compile
            horizon = None if name == "UniRank" else HORIZON
            ours, used, theirs, seconds = [], [], [], []
            for seed in range(RUNS):
                agent = clickgym.make_agent(name, env, horizon=horizon, seed=seed)
                start = time.process_time()
                ours.append(float(played(agent, env, seed).regret[-1]))
                used.append((time.process_time() - start) / HORIZON)
                with contextlib.redirect_stdout(None):  # one of them prints what it does
                    peer = make(env, seed)
                    theirs.append(float(played(peer, env, seed).regret[-1]))
                seconds.append(peer.seconds / HORIZON)
            rows.append(
                [
                    name,
                    env_id,
                    f"{min(used) * 1e6:.2f} µs",
                    f"{min(seconds) * 1e6:.0f} µs",
                    f"{min(seconds) / min(used):.0f}×",
                    mean_text(ours),
                    mean_text(theirs),
                ]
            )
    publish(
        table(["agent", "environment", "ours", "theirs", "ratio", "regret: ours", "theirs"], rows)
    )


if __name__ == "__main__":
    main()
