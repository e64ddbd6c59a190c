"""A network that estimates how attractive items are, trained on queries with known attractions.

This is supervised learning, not reinforcement learning. From the clicks so far in an episode, the
network predicts the attraction of each item, and how uncertain this prediction is. The policy ranks
the items by prediction + bonus x uncertainty, with a bonus chosen on the validation queries.

``python examples/unseen_queries.py --rounds 60`` trains the network and runs it on new queries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray
from torch import Tensor, nn

from clickgym.envs import ClickVectorEnv, EpisodeCountsVector, PositionBasedModel, QueryUsers

BONUSES = [(0.0, 0.0), (0.5, 0.0), (1.0, 0.0), (2.0, 0.0), (1.0, 1.0), (2.0, 1.0), (3.0, 1.0)]
"""Pairs of a bonus and a power of the remaining fraction of the episode; the validation queries
decide which pair to use.
"""


def make_envs(split: str, horizon: int, n_envs: int, env: str = "QueriesPBMRank-v0") -> VectorEnv:
    """Make parallel episodes with the queries of a split; observations count the clicks so far."""
    instance = f"queries:split={split},n_sessions={horizon}"
    envs = gym.make_vec(env, num_envs=n_envs, instance=instance, autoreset_mode="SameStep")
    return EpisodeCountsVector(envs)


def play(policy: Callable[[Any], Any], envs: VectorEnv, seed: int = 0) -> NDArray[np.float64]:
    """Return the regret of each session of an episode, ``(T, B)``. Stream b plays query b mod Q."""
    observations, _ = envs.reset(seed=seed)
    regret, is_over = [], False
    while not is_over:
        observations, _, ends, _, infos = envs.step(policy(observations))
        is_over = ends.all()
        regret.append((infos["final_info"] if is_over else infos)["regret"].copy())
    return np.array(regret)


class Posterior(nn.Module):
    """Estimates the logit of each item's attraction, with a standard deviation.

    The same network reads each item, and the mean of its outputs over all items describes the
    query. The network corrects a simple estimate: clicks divided by displays, each weighted by the
    examination of its position.

    Args:
        examination: ``(K,)`` the mean examination probabilities over the training queries.
        width: the width of the hidden layers.
    """

    examination: Tensor

    def __init__(self, examination: NDArray[np.float64], width: int = 48) -> None:
        super().__init__()
        self.n_positions = len(examination)
        self.register_buffer("examination", torch.tensor(examination, dtype=torch.float32))
        self.item = nn.Sequential(
            nn.Linear(5 * self.n_positions + 4, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
        )
        self.head = nn.Sequential(nn.Linear(2 * width, width), nn.ReLU(), nn.Linear(width, 2))

    def forward(self, counts: Tensor) -> tuple[Tensor, Tensor]:
        """Return the means and the logarithms of the standard deviations, each ``(..., L)``."""
        k = self.n_positions
        shown, clicked = counts[..., :k].expm1(), counts[..., k : 2 * k].expm1()
        weight = (shown * self.examination).sum(-1, keepdim=True)
        clicks = clicked.sum(-1, keepdim=True)
        guess = ((clicks + 1.0) / ((weight - clicks).clamp(min=0.0) + 3.0)).log()
        by_position = ((clicked + 0.5) / (shown - clicked + 1.5)).log()
        known = [counts, by_position, guess, weight.log1p(), clicks.log1p()]
        items = self.item(torch.cat(known, -1))
        query = items.mean(-2, keepdim=True).expand_as(items)
        out = self.head(torch.cat([items, query], -1))
        log_sd = (out[..., 1] - 0.5 * clicks[..., 0].log1p() + 0.7).clamp(-4.0, 1.7)
        return guess[..., 0] + out[..., 0], log_sd


class LearnedPosterior:
    """A policy that shows the items with the largest mean + bonus x left^power x deviation, where
    ``left`` is the remaining fraction of the episode.

    Args:
        net: the network, which predicts the mean and the standard deviation for each item.
        bonus: how strongly the policy prefers uncertain items.
        power: how fast this preference fades towards the end of the episode.
        noise: adds this multiple of the deviation times a normal draw, as in Thompson sampling.
        seed: the seed of the random draws.
    """

    def __init__(
        self, net: Posterior, bonus: float, power: float = 0.0, noise: float = 0.0, seed: int = 0
    ) -> None:
        self.net, self.bonus, self.power, self.noise = net, bonus, power, noise
        self.rng = np.random.default_rng(seed)

    def __call__(self, observation: Mapping[str, Any]) -> NDArray[np.int64]:
        """Return the list ``(..., K)`` for the counts ``(..., L, d)``."""
        counts = observation["counts"]
        with torch.no_grad():
            mean, log_sd = (part.numpy() for part in self.net(torch.from_numpy(counts)))
        prefer = self.bonus * counts[..., -1] ** self.power
        prefer = prefer + self.noise * self.rng.standard_normal(mean.shape)
        worth = mean + prefer * np.exp(log_sd) + 1e-6 * self.rng.random(mean.shape)
        return np.argsort(-worth, axis=-1)[..., : self.net.n_positions]


def train(
    queries: Sequence[PositionBasedModel], horizon: int, rounds: int, seed: int = 0
) -> Posterior:
    """Train on episodes that the network itself plays, exploring by its own uncertainty.

    Args:
        queries: the users of each training query; their attractions are the targets.
        horizon: T, the number of sessions in an episode.
        rounds: the number of rounds, each with 256 episodes and 60 steps of Adam.
        seed: the seed of all random numbers.
    """
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    net = Posterior(np.mean([users.examination for users in queries], axis=0))
    optimiser = torch.optim.Adam(net.parameters())
    core = ClickVectorEnv(QueryUsers(queries, horizon), 256, autoreset_mode="SameStep")
    envs, attraction = EpisodeCountsVector(core), np.array([users.attraction for users in queries])
    rounds_kept: list[tuple[NDArray[np.float32], NDArray[np.float32]]] = []
    for number in range(rounds):
        # In the first round, the policy is almost random.
        policy = LearnedPosterior(net, 0.0, noise=1.0 if number else 3.0, seed=seed + number)
        observation, infos = envs.reset(seed=None if number else seed)
        items = np.take_along_axis(attraction[infos["query"]], core.state.order, axis=1)
        target = np.log(items / (1.0 - items)).clip(-9.0, 9.0).astype(np.float32)
        seen, sessions = [], set(rng.choice(horizon, min(horizon, 100), replace=False).tolist())
        for session in range(horizon):
            if session in sessions:
                seen.append(observation["counts"])
            observation, *_ = envs.step(policy(observation))
        rounds_kept = [*rounds_kept, (np.concatenate(seen), np.tile(target, (len(seen), 1)))][-8:]
        inputs, targets = (np.concatenate(part) for part in zip(*rounds_kept, strict=True))
        for group in optimiser.param_groups:
            group["lr"] = 2e-3 * (1.0 - number / rounds) + 1e-4
        for _ in range(60):
            rows = rng.integers(len(inputs), size=2048)
            mean, log_sd = net(torch.from_numpy(inputs[rows]))
            error = (torch.from_numpy(targets[rows]) - mean) / log_sd.exp()
            loss = (log_sd + 0.5 * error**2).mean()  # normal negative log-likelihood
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return net


def choose(net: Posterior, horizon: int) -> LearnedPosterior:
    """Return the policy with the bonus that loses the fewest clicks on the validation queries."""
    envs = make_envs("valid", horizon, 500)
    policies = [LearnedPosterior(net, *bonus) for bonus in BONUSES]
    return min(policies, key=lambda policy: play(policy, envs, seed=1).sum())
