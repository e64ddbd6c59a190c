"""A policy class whose actions are ranked lists, for PPO and A2C of stable-baselines3 and TRPO of
sb3-contrib. The module imports torch.
"""

from __future__ import annotations

from typing import Any

from gymnasium.spaces import Dict, Space

from ...envs.spaces import list_sizes

try:
    import torch
    from stable_baselines3.common.distributions import MultiCategoricalDistribution
    from stable_baselines3.common.policies import ActorCriticPolicy
    from stable_baselines3.common.torch_layers import (
        BaseFeaturesExtractor,
        CombinedExtractor,
        FlattenExtractor,
        MlpExtractor,
    )
    from torch import Tensor, nn
except ImportError as error:
    raise ImportError(
        "PlackettLuceActorCritic requires stable-baselines3, which is not installed; type: "
        'pip install "clickgym[rl]"',
        name=error.name,
    ) from None


BY_ITEM = ("features", "counts")
"""The observation keys whose arrays have a row for each item. The policy reads the first of these
keys that the observation has.
"""


class PlackettLuceDistribution(MultiCategoricalDistribution):
    """Plackett-Luce distribution of ranked lists: items are drawn one after the other, each with a
    probability proportional to exp(score) among the remaining items.

    Args:
        n_positions: the number of positions in a list, K.
        n_outputs: the number of outputs of the score layer: L, or 1 if the same network scores each
            candidate.
    """

    def __init__(self, n_positions: int, n_outputs: int) -> None:
        super().__init__([n_outputs] * n_positions)
        self.n_positions, self.n_outputs = n_positions, n_outputs
        self._choices: Tensor | None = None
        self._last: dict[str, Tensor] = {}  # the lists of log_prob, which copies share

    def proba_distribution_net(self, latent_dim: int) -> nn.Module:
        """Return the layer that computes the scores of items."""
        return nn.Linear(latent_dim, self.n_outputs)

    def proba_distribution(self, action_logits: Tensor) -> PlackettLuceDistribution:
        """Set the scores ``(B, L)``, and return the distribution."""
        self.scores, self._choices = action_logits, None
        return self

    def log_prob(self, actions: Tensor) -> Tensor:
        """Return the log-probabilities ``(B,)`` of lists ``(B, K)``, and store the choices in these
        lists for `entropy`.

        Raises:
            ValueError: a list shows an item twice, or a score is nan.
        """
        lists = self._last["lists"] = actions.long()
        is_placed = self._is_placed(lists)
        # Mask the chosen items: subtracting their weights from the total would leave 0 if the
        # policy is certain.
        self._choices = self.scores[:, None].masked_fill(is_placed, -torch.inf).log_softmax(dim=2)
        log_probabilities = self._choices.gather(2, lists[..., None])[..., 0]
        is_bad = ~log_probabilities.isfinite().all(dim=1)
        if is_bad.any():
            row = int(is_bad.nonzero()[0, 0])
            if self.scores[row].isnan().any():
                raise ValueError(
                    "the policy's item scores are nan, because training has diverged; try a "
                    "smaller learning_rate"
                )
            raise ValueError(f"actions repeat an item in the list {lists[row].tolist()}")
        return log_probabilities.sum(dim=1)

    def _is_placed(self, lists: Tensor) -> Tensor:
        """Return the items above each position of lists, ``(B, K, L)`` booleans."""
        one_hot = nn.functional.one_hot(lists, self.scores.shape[1])
        return (one_hot.cumsum(dim=1) - one_hot).bool()

    @property
    def distribution(self) -> list[torch.distributions.Categorical]:  # type: ignore[override]
        """The distributions of the item at each position, given the items above in the lists that
        were last passed to `log_prob`, of this distribution or of its copy.

        TRPO sums the Kullback–Leibler divergences between the choices of two policies. If the
        policy drew the lists, this is an unbiased estimate of the divergence between lists.
        """
        # A finite mask, because the gradient of the divergence would be nan for infinite scores.
        is_placed = self._is_placed(self._last["lists"])
        choices = self.scores[:, None].masked_fill(is_placed, -1e9)
        return [torch.distributions.Categorical(logits=choice) for choice in choices.unbind(dim=1)]

    def entropy(self) -> Tensor:
        """Return an estimate ``(B,)`` of the entropy for each list, in nats: the sum over positions
        of the entropy of the choice at a position, given the items above.

        The items above come from the lists that were passed to the last call of `log_prob`. If
        these lists were drawn from the distribution, the result is an unbiased estimate of its
        entropy.
        """
        if self._choices is None:
            raise ValueError(
                "the entropy is computed for the lists that were passed to log_prob: call "
                "log_prob(lists) before entropy()"
            )
        return -(self._choices.exp() * self._choices.masked_fill(self._choices.isneginf(), 0)).sum(
            dim=(1, 2)
        )

    def sample(self) -> Tensor:
        """Draw lists ``(B, K)``: the items with the K largest sums of score and Gumbel noise."""
        # Draw exponentials, because torch draws them above 0, whereas a uniform number can be 0.
        return self._first(
            self.scores.detach() - torch.empty_like(self.scores).exponential_().log()
        )

    def mode(self) -> Tensor:
        """Return the most probable lists ``(B, K)``: the items with the K largest scores, in
        decreasing order. Torch's generator does not change, so evaluating a policy does not
        change its training; the order of equal scores stays the same until the generator draws.
        """
        devices = [self.scores.device] if self.scores.is_cuda else []
        with torch.random.fork_rng(devices):
            return self._first(self.scores)

    def _first(self, values: Tensor) -> Tensor:
        """Return the items with the K largest values. Items with equal values are in random order,
        independent of their ids.
        """
        order = torch.rand(values.shape, device=values.device).argsort(dim=1)
        return order.gather(1, values.gather(1, order).topk(self.n_positions, dim=1).indices)


class _Rows(BaseFeaturesExtractor):
    """Features extractor that selects the array ``(B, L, d)`` with a row for each item."""

    def __init__(self, observation_space: Dict) -> None:
        entry = next(name for name in BY_ITEM if name in observation_space.spaces)
        rows: Any = observation_space[entry]
        super().__init__(observation_space, rows.shape[1])
        self._entry = entry

    def forward(self, observations: Any) -> Tensor:
        return observations[self._entry]


class _HiddenLayers(MlpExtractor):
    """Hidden layers of the policy and the value function. If items have rows, the layers are
    applied to each row, and the value function averages over the rows.
    """

    def forward_critic(self, features: Tensor) -> Tensor:
        latent = super().forward_critic(features)
        return latent if latent.dim() == 2 else latent.mean(dim=1)


class PlackettLuceActorCritic(ActorCriticPolicy):
    """Policy that draws ranked lists from a Plackett–Luce distribution, for PPO and A2C of
    stable-baselines3 and TRPO of sb3-contrib.

    Pass this class in place of ``"MlpPolicy"``, with an environment whose action space is a
    `RankedList`; you need no wrapper. Set the discount (``gamma``) to 0, because sessions are
    independent of one another.

    Idea:
        A network gives each item a score. The first item of the list is drawn with probability
        proportional to exp(score), the second in the same way among the remaining items, and so on.
        The probability of each list is known, so policy-gradient algorithms can use it directly.
        The choice at each position takes the items above into account, a single pass through the
        network gives the whole list, and a higher score makes an item more likely to be at the top
        of the list.

    Algorithm:
        ::

            s = scores of the items, (L,)
            draw:     the K largest of s_i + G_i in decreasing order,  G_i = -log E_i,  E_i Exp(1)
            mode:     the K largest of s_i in decreasing order;  equal scores in random order
            log π(d_1 … d_K) = Σ_k [ s_{d_k} - log Σ_{i not in d_1 … d_{k-1}} exp s_i ]
            entropy:  Σ_k H(π(· | d_1 … d_{k-1})) along the list d of the last `log_prob`
            scores and value:
                without features: hidden layers on the observation, then L scores, and a value
                with features x_i of each candidate i:
                    s_i = score(f(x_i)), one network for all candidates
                    value(mean over candidates of g(x_i))

    The observation space determines the networks. Without features, the networks read all entries
    of an observation, through the library's hidden layers (tanh). If observations are a `Dict` with
    ``features`` ``(L, d)``, or with the ``counts`` of `EpisodeCounts`, the networks read only this
    entry, through hidden layers with ReLU. Their weights then do not depend on the number of
    candidates, although a model accepts only the number that it was trained with, and permuting the
    candidates permutes the scores and leaves the value unchanged.

    Details:

    1. Masks exclude the chosen items from the sums. Subtracting the weights of the chosen items
       from the total would leave 0 in float32 if the policy is certain, and the gradient would be
       wrong.
    2. The entropy of the distribution of lists has no closed form. The sum above is an unbiased
       estimate over drawn lists. Its standard deviation is small, and its gradient is nearly
       correct: only the derivative with respect to the distribution of the items above is missing.
       (Without an entropy, the library would use -log π of the list, whose gradient has mean 0.)
       The estimate is at most log L + … + log (L - K + 1).
    3. All choices in a list share the list's advantage, and PPO clips one probability ratio per
       list, as usual in the library.
    4. Item ids carry no information at the start: the initial weights of the outputs are
       exchangeable, and ties are broken at random.

    Args:
        observation_space: the space of observations: an array, or a `Dict` as described above.
        action_space: the space of actions: a `RankedList`, or ``MultiDiscrete([L] * K)``.
        lr_schedule: the schedule of the learning rate, the same as for the library's policies.
        activation_fn: the activation function of the hidden layers; by default, ReLU with features,
            and tanh otherwise.
        **others: other arguments of ``ActorCriticPolicy``. ``net_arch`` holds the sizes of the
            hidden layers, by default (64, 64). If candidates have features, your own
            ``features_extractor_class`` must return a row for each candidate, ``(B, L,
            features_dim)``; otherwise, ``(B, features_dim)``.

    Raises:
        ValueError: the action space is not a space of lists; or, when the policy is used, the
            features extractor does not return a row for each candidate.

    Source: Plackett, *The analysis of permutations*, Applied Statistics 1975; the policy class is
        clickgym's own.

    Example:
        >>> import gymnasium as gym
        >>> from stable_baselines3 import PPO
        >>> from clickgym.agents import PlackettLuceActorCritic
        >>> env = gym.make("clickgym:PBMRank-v0")
        >>> model = PPO(PlackettLuceActorCritic, env, n_steps=64, gamma=0.0, seed=0, device="cpu")
        >>> model = model.learn(128)
        >>> ranking, _ = model.predict(env.reset(seed=0)[0], deterministic=True)
        >>> ranking in env.action_space
        True
    """

    action_dist: PlackettLuceDistribution

    def __init__(
        self,
        observation_space: Space,
        action_space: Space,
        lr_schedule: Any,
        *,
        activation_fn: type[nn.Module] | None = None,
        **others: Any,
    ) -> None:
        _check_space(type(self).__name__, action_space)
        entries = observation_space.spaces if isinstance(observation_space, Dict) else {}
        self.sees_features = any(entry in entries for entry in BY_ITEM)
        extractor = CombinedExtractor if entries else FlattenExtractor
        super().__init__(
            observation_space,
            action_space,
            lr_schedule,
            activation_fn=activation_fn or (nn.ReLU if self.sees_features else nn.Tanh),
            **{
                "features_extractor_class": _Rows if self.sees_features else extractor,
                **others,
            },
        )

    def _build_mlp_extractor(self) -> None:
        self.mlp_extractor = _HiddenLayers(
            self.features_dim, self.net_arch, self.activation_fn, self.device
        )

    def _build(self, lr_schedule: Any) -> None:
        sizes = self.action_space.nvec  # type: ignore[attr-defined]
        self.action_dist = PlackettLuceDistribution(
            len(sizes), 1 if self.sees_features else int(sizes[0])
        )
        super()._build(lr_schedule)

    def _get_action_dist_from_latent(self, latent_pi: Tensor) -> PlackettLuceDistribution:
        scores = self.action_net(latent_pi)
        if self.sees_features and scores.dim() != 3:
            raise ValueError(
                f"{type(self.features_extractor).__name__} returns an array with "
                f"{latent_pi.dim()} dimensions; expected three, with a row of features for "
                "each candidate: (B, L, features_dim)"
            )
        return self.action_dist.proba_distribution(scores[..., 0] if self.sees_features else scores)


def _check_space(name: str, action_space: Space) -> None:
    """Check that the actions of a space are lists."""
    sizes = list_sizes(action_space)
    if sizes is None or sizes[0] < sizes[1]:
        raise ValueError(
            f"{name} draws ranked lists, so it requires the action space RankedList or "
            f"MultiDiscrete([L] * K); got {action_space!r}; remove the wrapper that changes "
            "actions or, in vec_env, the argument actions=..."
        )
