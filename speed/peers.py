"""Regret of three agents beside the regret of their authors' own code.

python speed/peers.py path/to/bandits-to-rank path/to/OnlineLearningToRank

The arguments are clones of https://github.com/abhg86/bandits-to-rank (GRAB, and UniRank, which is
called OSUB_TOP_RANK there) and of https://github.com/HarrieO/OnlineLearningToRank (PDGD). Both
programs play the same environments. The authors' code gets permuted item numbers.
"""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import gymnasium as gym
import numpy as np
from scipy import stats

import clickgym

HORIZON, RUNS = 20_000, 4

PAIRS = (
    ("GRAB", "PBMRank-v0"),
    ("GRAB", "CMRank-v0"),
    ("UniRank", "PBMRank-v0"),
    ("UniRank", "CMRank-v0"),
    ("PDGD", "ContextualUBMRank-v0"),
)

for kind in (int, float, bool):  # names that NumPy had when the authors wrote their code
    if kind.__name__ not in vars(np):
        setattr(np, kind.__name__, kind)


class Peer(clickgym.agents.Agent):
    """An agent made of other people's code, which numbers the items differently.

    Args:
        choose: returns the list, given the features of the candidates or None.
        learn: gets the list and the clicks.
        items: our number of each of their items, ``(L,)``.
    """

    def __init__(
        self, choose: Callable[[Any], Any], learn: Callable[[Any, Any], object], items: np.ndarray
    ) -> None:
        self.choose, self.learn, self.items = choose, learn, items

    def rank(self, observation: Any) -> np.ndarray:
        has_features = isinstance(observation, dict)
        features = observation["features"][self.items] if has_features else None
        self.chosen = np.asarray(self.choose(features))
        return self.items[self.chosen]

    def update(
        self, observation: Any, ranking: np.ndarray, clicks: np.ndarray, reward: float
    ) -> None:
        self.learn(self.chosen, clicks)


def peer(name: str, model: Any, seed: int) -> Peer:
    """Return the authors' agent for the users of a click model."""
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 (what the authors' code draws from)
    items = np.argsort(np.random.default_rng(seed).permutation(model.n_items))
    size: Any = (model.n_items, model.n_positions)
    theirs: Any
    if name == "PDGD":
        module = import_module("algorithms.PDGD.pdgd")
        theirs = module.PDGD(0.1, 1.0, n_results=model.n_positions, n_features=model.n_features)
        return Peer(
            lambda features: theirs._create_train_ranking(0, features, False),
            lambda _, clicks: theirs.update_to_interaction(clicks.astype(bool)),
            items,
        )
    if name == "GRAB":
        theirs = import_module("bandits_to_rank.opponents.grab").GRAB(*size, T=HORIZON, gamma=9)
    else:  # not told the horizon, with which it fails after some 200 sessions
        order = np.arange(model.n_positions)  # which position is best, second best, ...
        module = import_module("bandits_to_rank.opponents.uni_rank")
        theirs = module.OSUB_TOP_RANK(*size, sigma=order)
    return Peer(lambda _: theirs.choose_next_arm()[0], theirs.update, items)


def regret(agent: Any, env: gym.Env, seed: int) -> float:
    """Return the regret after the last session."""
    return float(clickgym.run(agent, env, HORIZON, seed=seed, checkpoints=[HORIZON]).regret[-1])


def mean_text(values: list[float]) -> str:
    """Return the mean of runs, and half of its 95 % interval by Student's t."""
    half = stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)
    return f"{np.mean(values):,.0f} ± {half:,.0f}"


def main() -> None:
    sys.path += sys.argv[1:]
    print("| agent | environment | ours | the authors' |\n| --- | --- | ---: | ---: |")
    for name, env_id in PAIRS:
        env: Any = gym.make(env_id)
        horizon = None if name == "UniRank" else HORIZON
        ours, theirs = [], []
        for seed in range(RUNS):
            agent = clickgym.make_agent(name, env, horizon=horizon, seed=seed)
            ours.append(regret(agent, env, seed))
            with contextlib.redirect_stdout(None):  # some of it prints what it does
                theirs.append(regret(peer(name, env.unwrapped.model, seed), env, seed))
        print(f"| {name} | {env_id} | {mean_text(ours)} | {mean_text(theirs)} |", flush=True)


if __name__ == "__main__":
    main()
