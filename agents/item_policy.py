"""A policy network with the same weights for every item, which can rank items that it has never seen. Imports torch."""

from __future__ import annotations

from typing import Any

import torch
from gymnasium.spaces import Box
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import nn


class ItemFeatures(BaseFeaturesExtractor):
    """Extract the features of each item, ``(B, L * F)``, from the observations of `HistoryVectorObservation`.

    Args:
        observation_space: with ``click_rate`` and ``displays`` ``(K, L)``, and ``time`` ``(1,)``.
    """

    def __init__(self, observation_space: Any) -> None:
        self.n_positions, self.n_items = observation_space["click_rate"].shape
        super().__init__(observation_space, self.n_items * (2 * self.n_positions + 1))

    def forward(self, observations: dict[str, torch.Tensor]) -> torch.Tensor:
        """Return click rates, displays and time, item by item."""
        time = observations["time"][:, None].expand(-1, 1, self.n_items)
        features = torch.cat([observations["click_rate"], observations["displays"], time], dim=1)
        return features.transpose(1, 2).flatten(1)


class _ItemNetworks(nn.Module):
    """Networks for a score of each item, from its features and those of the mean item, and for a value, from the mean item."""

    def __init__(self, n_items: int, n_features: int, width: int) -> None:
        super().__init__()
        self.n_items = n_items
        self.latent_dim_pi, self.latent_dim_vf = n_items, width

        def encoder() -> nn.Module:
            return nn.Sequential(nn.Linear(n_features, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())

        self.actor, self.critic = encoder(), encoder()
        self.score = nn.Sequential(nn.Linear(2 * width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, features: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.forward_actor(features), self.forward_critic(features)

    def forward_actor(self, features: torch.Tensor) -> torch.Tensor:
        items = self.actor(features.view(len(features), self.n_items, -1))
        mean = items.mean(dim=1, keepdim=True).expand_as(items)
        return 0.7 * torch.tanh(self.score(torch.cat([items, mean], dim=-1))[..., 0])  # noise shall seldom be cut off at 1

    def forward_critic(self, features: torch.Tensor) -> torch.Tensor:
        return self.critic(features.view(len(features), self.n_items, -1)).mean(dim=1)


class ItemwisePolicy(ActorCriticPolicy):
    """A policy that scores each item by the same network, so what it learns about one item holds for all.

    Args:
        net_arch: the width of the hidden layers, as a list of one or more (the first counts).
        Others as for the library's policies.
    """

    action_space: Box
    net_arch: list[int]
    mlp_extractor: Any

    def __init__(self, observation_space: Any, action_space: Any, lr_schedule: Any, **others: Any) -> None:
        super().__init__(observation_space, action_space, lr_schedule, features_extractor_class=ItemFeatures, **others)

    def _build_mlp_extractor(self) -> None:
        (n_items,) = self.action_space.shape
        self.mlp_extractor = _ItemNetworks(n_items, self.features_dim // n_items, self.net_arch[0])

    def _build(self, lr_schedule: Any) -> None:
        super()._build(lr_schedule)
        self.action_net = nn.Identity()  # the scores are the means of the actions
        with torch.no_grad():
            self.mlp_extractor.score[-1].weight *= 0.01  # at first all items are alike
