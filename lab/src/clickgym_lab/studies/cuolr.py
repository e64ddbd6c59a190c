"""CUOLR (Zhang et al. 2023), a baseline of studies: a ranker from a log by offline RL, without a click model.

A logged list is an episode of K choices. State before choice k: the mean of the features placed so far, the clicks so far (K
numbers), and a code of the position; actions are the documents of the list that are not placed yet; the reward is the click.
Discrete soft actor-critic learns from it, and conservative Q-learning (CQL) prefers what the log shows.

Source: Zhang, Su, Yuan, Wu, Balasubramanian, Wu, Wang, Wang, *Unified off-policy learning to rank: a reinforcement learning
perspective*, NeurIPS 2023; facts of its released code.

Deviations, where the released code slips:

1. ⚠ CQL subtracts the Q of the *logged* choice, not the mean of Q over what is left, by which it would know nothing of the log.
2. ⚠ The next state has the code of the next position, not of the present one.
3. ⚠ The target entropy is half the logarithm of the number of documents left; theirs, -K + k, is negative where entropy is not.
4. Lists are ranked by taking the best action in turn, with clicks set to 0; theirs are drawn.
5. Sizes are ours: two layers of 64, Adam with 1e-3, a fixed weight of CQL, soft targets; theirs are 256, 1e-5, a multiplier,
   copied targets.

It never compares a document with one that its page did not show.
"""

from __future__ import annotations

import math
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

HIDDEN = 64
LEARNING_RATE, DISCOUNT, CONSERVATISM, AVERAGING, FIRST_TEMPERATURE = 1e-3, 0.9, 1.0, 0.02, 0.05


class ActionScorer(nn.Module):
    """One number for each document in each state: of a critic Q, of the actor a logit."""

    def __init__(self, n_state: int, n_features: int) -> None:
        super().__init__()
        self.state = nn.Linear(n_state, HIDDEN)
        self.document = nn.Linear(n_features, HIDDEN, bias=False)
        self.rest = nn.Sequential(nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 1))

    def forward(self, states: Tensor, documents: Tensor) -> Tensor:
        """``(B, T, L)`` of states ``(B, T, S)`` and documents ``(B, L, d)``."""
        return self.rest(self.state(states)[:, :, None] + self.document(documents)[:, None])[..., 0]


def position_codes(n_positions: int, n_features: int) -> Tensor:
    """``(K, d)`` sin(k / 10000^(2i/d)), k and i from 0."""
    places = torch.arange(n_positions, dtype=torch.float32)[:, None]
    return torch.sin(places / 10_000 ** (2 * torch.arange(n_features) / n_features))


def states_of(documents: Tensor, clicks: Tensor) -> Tensor:
    """``(B, K, 2 d + K)`` the state before each choice of logged lists ``(B, K, d)`` with clicks ``(B, K)``."""
    n, n_positions, n_features = documents.shape
    placed = torch.arange(n_positions)
    before = documents.cumsum(1) - documents
    means = before / placed.clamp(min=1)[:, None]
    so_far = clicks[:, None, :] * (placed[None, :] < placed[:, None])
    return torch.cat([means, so_far, position_codes(n_positions, n_features).expand(n, -1, -1)], dim=2)


def targets(rewards: Tensor, value: Tensor, discount: float) -> Tensor:
    """``(B, K)`` what Q of the logged choices should be: the click, and the value of the next state, 0 at the end."""
    return rewards + discount * functional.pad(value[:, 1:], (0, 1))


def conservative(q: Tensor, left: Tensor) -> Tensor:
    """``(B, K)`` log Σ exp Q over the documents left, minus Q of the logged choice, which is document k in state k."""
    return q.masked_fill(~left, -math.inf).logsumexp(2) - q.diagonal(dim1=1, dim2=2)


def target_entropy(left: Tensor) -> Tensor:
    """``(K,)`` half the largest entropy of a choice among the documents left."""
    return 0.5 * left.sum(1).float().log()


class CUOLR:
    """A ranker learned from a log by discrete soft actor-critic with conservative Q-learning.

    Args:
        context: ``(N, K, d)`` features of the documents at each position.
        clicks: ``(N, K)``.
        seed: of the networks and the batches.
        steps, batch: of the training.
    """

    def __init__(self, context: NDArray[Any], clicks: NDArray[Any], seed: int, steps: int = 400, batch: int = 128) -> None:
        _, self.n_positions, n_features = context.shape
        self._mean, self._scale = context.mean(axis=(0, 1)), context.std(axis=(0, 1)) + 1e-9
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            sizes = 2 * n_features + self.n_positions, n_features
            self.actor, *critics = (ActionScorer(*sizes) for _ in range(3))
        self.critics = nn.ModuleList(critics)
        self.slow = deepcopy(self.critics).requires_grad_(False)
        self.log_temperature = torch.tensor(math.log(FIRST_TEMPERATURE), requires_grad=True)
        self.left = torch.ones(self.n_positions, self.n_positions, dtype=torch.bool).triu()
        parameters = [*self.actor.parameters(), *self.critics.parameters(), self.log_temperature]
        self.optimiser = torch.optim.Adam(parameters, lr=LEARNING_RATE)
        rng, documents = np.random.default_rng(seed), self._scaled(context)
        rewards = torch.from_numpy(clicks.astype(np.float32))
        for _ in range(steps):
            rows = torch.from_numpy(rng.integers(len(documents), size=batch))
            self.step(documents[rows], rewards[rows])

    def _scaled(self, features: NDArray[Any]) -> Tensor:
        return torch.from_numpy(((features - self._mean) / self._scale).astype(np.float32))

    def loss(self, documents: Tensor, clicks: Tensor) -> Tensor:
        """The sum of the losses of the critics, the actor and the temperature, each of which moves its own parameters alone."""
        states = states_of(documents, clicks)
        logits = self.actor(states, documents).masked_fill(~self.left, -math.inf)
        chances, logs = logits.softmax(2), logits.log_softmax(2).masked_fill(~self.left, 0.0)
        temperature = self.log_temperature.exp().detach()
        with torch.no_grad():
            slow = torch.minimum(*(critic(states, documents) for critic in self.slow))
            wanted = targets(clicks, (chances * (slow - temperature * logs)).sum(2), DISCOUNT)
        total, scores = torch.zeros(()), [critic(states, documents) for critic in self.critics]
        for q in scores:
            error = q.diagonal(dim1=1, dim2=2) - wanted
            total = total + (0.5 * error**2 + CONSERVATISM * conservative(q, self.left)).mean()
        least = torch.minimum(*scores).detach()
        total = total + (chances * (temperature * logs - least)).sum(2).mean()
        entropy = -(chances * logs).sum(2).detach()
        return total + (self.log_temperature.exp() * (entropy - target_entropy(self.left))).mean()

    def step(self, documents: Tensor, clicks: Tensor) -> None:
        """One step of all networks, on a batch of logged lists."""
        self.optimiser.zero_grad()
        self.loss(documents, clicks).backward()
        self.optimiser.step()
        with torch.no_grad():
            for slow, now in zip(self.slow.parameters(), self.critics.parameters(), strict=True):
                slow.lerp_(now, AVERAGING)

    @torch.no_grad()
    def best(self, features: NDArray[Any]) -> NDArray[np.int64]:
        """``(K,)`` the list for candidates ``(L, d)``: the best action in turn, as if nobody clicked."""
        documents, chosen = self._scaled(features)[None], torch.zeros(self.n_positions, dtype=torch.int64)
        codes, clicks = position_codes(self.n_positions, features.shape[1]), torch.zeros(self.n_positions)
        for k in range(self.n_positions):
            mean = documents[0, chosen[:k]].mean(0) if k else torch.zeros(features.shape[1])
            logits = self.actor(torch.cat([mean, clicks, codes[k]])[None, None], documents)[0, 0]
            logits[chosen[:k]] = -math.inf
            chosen[k] = logits.argmax()
        return chosen.numpy()
