"""Comparison with other projects' code: time of a session, and regret in the same environment.

    BANDITS_TO_RANK=path/to/bandits-to-rank ONLINE_LTR=path/to/OnlineLearningToRank
    SARDINE=path/to/sardine python benchmarks/peers.py --write

The variables name checkouts of https://github.com/abhg86/bandits-to-rank (GRAB; UniRank, called
OSUB_TOP_RANK there, which gets the order of positions),
https://github.com/HarrieO/OnlineLearningToRank (PDGD) and https://github.com/naver/sardine (a
simulator: the time of ``env.step``); a project without a variable is left out. Item ids are
permuted. The time of a peer is that of its two methods; ours includes the session of the
environment.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium as gym
import numpy as np
from report import publish, table
from step import fastest, scalar_speed

import clickgym
from clickgym.agents import Agent
from clickgym.core.statistics import half_width

HORIZON, RUNS = 20_000, 4

for kind in (int, float, bool):  # names that NumPy had when the peers were written
    if kind.__name__ not in vars(np):
        setattr(np, kind.__name__, kind)


class Peer(Agent):
    """Another project's algorithm, which measures its time and has its own numbers for the items.

    Args:
        choose: returns the list, given the features of the candidates or None.
        learn: gets the list and the clicks.
        seed: of the permutation of the items.
        n_items: L.
    """

    def __init__(
        self,
        choose: Callable[[Any], Any],
        learn: Callable[[Any, Any], object],
        seed: int,
        n_items: int,
    ) -> None:
        self.choose, self.learn, self.seconds = choose, learn, 0.0
        self.numbers = np.random.default_rng(seed).permutation(n_items)  # of each item, as the peer
        self.items = np.argsort(self.numbers)

    def rank(self, observation: Any) -> np.ndarray:
        by_features = isinstance(observation, dict)
        features = observation["features"][self.items] if by_features else None
        self.chosen = np.asarray(self._timed(self.choose, features))
        return self.items[self.chosen]

    def update(
        self, observation: Any, ranking: np.ndarray, clicks: np.ndarray, reward: float
    ) -> None:
        self._timed(self.learn, self.chosen, clicks)

    def _timed(self, function: Callable[..., Any], *arguments: Any) -> Any:
        start = time.process_time()
        result = function(*arguments)
        self.seconds += time.process_time() - start
        return result


def of_bandits_to_rank(module: str, name: str, **arguments: Any) -> Callable[[gym.Env, int], Peer]:
    def make(env: gym.Env, seed: int) -> Peer:
        model = env.unwrapped.model
        peer = getattr(importlib.import_module(f"bandits_to_rank.opponents.{module}"), name)
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002 (what the peer draws from)
        if name == "OSUB_TOP_RANK":  # with a horizon it fails after some 200 sessions
            order = np.arange(model.n_positions)  # which position is best, second best, ...
            made = peer(model.n_items, model.n_positions, sigma=order)
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


BOTH = ("PBMRank-v0", "CMRank-v0")
GRAB = of_bandits_to_rank("grab", "GRAB", gamma=9)
UNI_RANK = of_bandits_to_rank("uni_rank", "OSUB_TOP_RANK")
PEERS: list[tuple[str, tuple[str, ...], str, Callable[[gym.Env, int], Peer]]] = [
    ("GRAB", BOTH, "BANDITS_TO_RANK", GRAB),
    ("UniRank", BOTH, "BANDITS_TO_RANK", UNI_RANK),
    ("PDGD", ("ContextualUBMRank-v0",), "ONLINE_LTR", of_online_ltr),
]
"""Our agent, its environments, the variable of the checkout, and a function that makes the peer."""
SARDINE = ("sardine/SlateRerank-Static-v0", "sardine/SlateTopK-Bored-v0")
"""Its environments of 10 and of 1,000 items; users examine as in the position-based model."""


def play(agent: Agent | str, env: gym.Env, seed: int) -> float:
    """Return the final regret."""
    return float(clickgym.run(agent, env, HORIZON, seed=seed, checkpoints=[HORIZON]).regret[-1])


def mean_text(values: list[float]) -> str:
    """Return the mean of runs, and half of its 95 % interval by Student's t."""
    half = np.std(values, ddof=1) * half_width(len(values))
    return f"{np.mean(values):,.0f} ± {half:,.0f}"


def compare(name: str, env_id: str, make: Callable[[gym.Env, int], Peer]) -> list[str]:
    """Return the row of an agent and an environment."""
    env = gym.make(env_id)
    play(clickgym.make_agent(name, env, horizon=HORIZON, seed=0), env, 0)  # compiles
    horizon = None if name == "UniRank" else HORIZON
    ours, seconds, theirs, their_seconds = [], [], [], []
    for seed in range(RUNS):
        agent = clickgym.make_agent(name, env, horizon=horizon, seed=seed)
        start = time.process_time()
        ours.append(play(agent, env, seed))
        seconds.append((time.process_time() - start) / HORIZON)
        with contextlib.redirect_stdout(None):  # one of them prints what it does
            peer = make(env, seed)
            theirs.append(play(peer, env, seed))
        their_seconds.append(peer.seconds / HORIZON)
    fastest, their_fastest = min(seconds), min(their_seconds)
    times = [f"{fastest * 1e6:.2f} µs", f"{their_fastest * 1e6:.0f} µs"]
    ratio = f"{their_fastest / fastest:.0f}×"
    return [name, env_id, *times, ratio, mean_text(ours), mean_text(theirs)]


def compare_steps(name: str) -> list[str]:
    """Return the row of an environment of SARDINE, beside a PBM of the same size."""
    size = "n_items={num_items},n_positions={slate_size}".format_map(gym.spec(name).kwargs)
    pair = [gym.make("PBMRank-v0", instance=f"uniform:{size}"), gym.make(name)]
    ours, theirs = (1e6 / speed for speed in fastest(scalar_speed, pair, 1000))
    return [name, f"{ours:.1f} µs", f"{theirs:.0f} µs", f"{theirs / ours:.0f}×"]


def tables() -> Iterator[str]:
    """Yield the table of agents, and that of steps if there is a checkout of SARDINE."""
    rows = []
    for name, env_ids, variable, make in PEERS:
        folder = os.environ.get(variable)
        if folder is None:
            print(f"{name}: {variable} names no checkout", file=sys.stderr)
            continue
        sys.path.insert(0, folder)
        rows += [compare(name, env_id, make) for env_id in env_ids]
    header = ["agent", "environment", "ours", "theirs", "ratio", "regret: ours", "theirs"]
    yield table(header, rows)
    if folder := os.environ.get("SARDINE"):
        sys.path.insert(0, folder)
        importlib.import_module("sardine")
        yield table(["`env.step`", "ours", "theirs", "ratio"], [*map(compare_steps, SARDINE)])


def main() -> None:
    publish("\n\n".join(tables()))


if __name__ == "__main__":
    main()
