"""NeuralGreedy, a bandit that learns the attraction of candidates with a small neural network. The
module imports torch only when an agent is created. Install torch with ``pip install
"clickgym[rl]"``.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.checks import (
    as_numbers,
    check_choice,
    check_count,
    check_number,
    check_positions,
    make_rng,
)
from ...core.messages import as_call
from ...envs.spaces import check_ranking
from ..agent import Agent, Seed
from ..compiled_agent import check_clicks, check_features, observed_value
from .learner import one_thread

SURELY_EXAMINED = 2.0
"""The initial logit of each position's factor. With this value, each factor starts near 0.88, from
where it can rise or fall.
"""
MAX_PROBABILITY = 1 - 1e-6
"""The largest probability of a click. It is so far below 1 that the logarithm of the probability of
no click stays finite in float32.
"""


class NeuralGreedy(Agent):
    """NeuralGreedy: a neural bandit that estimates the attraction of candidates from their
    features, corrects for position bias with a factor for each position, and explores with a few
    random lists.

    Idea:
        A linear bandit cannot learn that one user likes what another user dislikes, unless the
        features include the right products. NeuralGreedy can learn such functions: a small network
        with two hidden layers gives each candidate a score. The click probability is the
        candidate's attraction, a function of the score, times a factor for the position. The agent
        learns the network and the factors together, from past sessions. In most sessions, it shows
        the candidates with the highest scores, the best on top. In a small share of the sessions,
        it shows a random list, so it also learns about candidates that it considers bad.
        NeuralGreedy is a bandit: it does not plan, and each session is one example for a
        regression. With ``feedback="reward"``, it learns only from whether the session earned a
        reward, as RL algorithms do. NeuralGreedy does not estimate its uncertainty, so the random
        lists never stop and always cost regret. No bound on its regret is known.

    Algorithm:
        ::

            σ: the logistic function;  f: the network, whose weights are drawn at random
            g_k = 2 for each position k;  the memory is empty
            for session t = 1, 2, …:
                observe the features x_a of the L candidates
                ε_t = max(epsilon, 1 − (t − 1) / decay)
                with probability ε_t:
                    show K random candidates in random order
                otherwise:
                    show the K candidates with the largest f(x_a), the largest on top;
                    equal ones in random order
                observe the clicks c_1 … c_K and the reward r
                put them into the memory, with the features x_1 … x_K of the list
                (over the oldest session, if it holds buffer_size)
                if t ≥ batch_size and train_freq divides t:
                    draw batch_size sessions from the memory
                    p_k = σ(f(x_k)) σ(g_k), the probability of a click at position k
                    loss, "clicks": − Σ_k [c_k log p_k + (1 − c_k) log(1 − p_k)]
                    loss, "reward": − log q if r > 0, otherwise − log(1 − q),  q = 1 − Π_k (1 − p_k)
                    a step of Adam down the mean loss, in the weights of f and in g

    Args:
        n_items: the number of candidates in each session, L.
        n_positions: the number of positions in a list, K.
        n_features: the number of features of each candidate, d, which ``make_agent`` fills in.
        feedback: what the agent learns from: ``"clicks"``, the click or skip at each position; or
            ``"reward"``, only whether the session's reward is positive.
        epsilon: the share of random lists after the first sessions.
        decay: the number of sessions in which the share of random lists decreases linearly from 1
            toward 0, until it reaches ``epsilon``.
        net_arch: the sizes of the hidden layers.
        learning_rate: the learning rate of the Adam optimiser.
        batch_size: the number of sessions in a batch for one gradient step.
        train_freq: the number of sessions between two gradient steps.
        buffer_size: the largest number of past sessions in the agent's memory.
        seed: seeds the agent's own generator, which also draws the weights; the global generators
            of torch and NumPy do not change.

    Raises:
        ImportError: torch is not installed.
        ValueError: an argument is invalid; the message names the argument.

    To save the agent, use ``pickle``.

    Attributes:
        factors: ``(K,)`` the factors σ(g_k) of the positions. Only the ratios of the factors are
            meaningful, because smaller factors with larger attractions predict the same clicks.

    Source: Riquelme, Tucker, Snoek, *Deep Bayesian bandits showdown: an empirical comparison of
        Bayesian deep networks for Thompson sampling*, ICLR 2018: the greedy neural network that
        this paper uses as a baseline.

    Deviations from the paper:
        1. In the paper, actions are single arms, and the network has an output for each arm. Here
           actions are lists, and one network scores each candidate from its features.
        2. The paper fits rewards by squared error. Here the agent maximises the likelihood of the
           clicks, and learns the factors of the positions at the same time.
        3. The paper trains in rounds of many steps, with RMSProp. Here the agent takes one step
           with Adam every ``train_freq`` sessions.
        4. The paper's greedy network pulls each arm a few times at the start, and then stops
           exploring. Here a share ``epsilon`` of the lists is always random.
        5. ⚠ The k-th best candidate is shown at position k, regardless of the factors of the
           positions.

    Example:
        >>> features = np.eye(4)
        >>> agent = NeuralGreedy(4, 2, n_features=4, decay=1, seed=0)
        >>> for _ in range(600):
        ...     ranking = agent.rank({"features": features})
        ...     agent.update({"features": features}, ranking, ranking == 3, 0.0)
        >>> int(agent.best(features)[0])
        3
    """

    paper = "after Riquelme et al. 2018, the greedy network"
    bibtex_keys = ["deepbandits"]
    packages = ("torch",)
    observes = ("features",)

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        *,
        n_features: int,
        feedback: Literal["clicks", "reward"] = "clicks",
        epsilon: float = 0.02,
        decay: int = 1000,
        net_arch: Sequence[int] = (64, 64),
        learning_rate: float = 3e-3,
        batch_size: int = 128,
        train_freq: int = 4,
        buffer_size: int = 100_000,
        seed: Seed = None,
    ) -> None:
        if find_spec("torch") is None:
            raise ImportError(
                "NeuralGreedy requires torch, which is not installed; type: pip install "
                '"clickgym[rl]"'
            )
        self.n_items = check_count("n_items", n_items)
        self.n_positions = check_positions(n_positions, self.n_items)
        self.n_features = check_count("n_features", n_features)
        sizes = net_arch if isinstance(net_arch, list | tuple) else [net_arch]
        self.hyperparameters: dict[str, Any] = {
            "n_features": self.n_features,
            "feedback": check_choice("feedback", feedback, ("clicks", "reward")),
            "epsilon": check_number("epsilon", epsilon, 0, 1),
            "decay": check_count("decay", decay),
            "net_arch": tuple(check_count("net_arch", size) for size in sizes),
            "learning_rate": check_number("learning_rate", learning_rate, above=0),
            "batch_size": check_count("batch_size", batch_size),
            "train_freq": check_count("train_freq", train_freq),
            "buffer_size": check_count("buffer_size", buffer_size),
        }
        self.rng = make_rng(seed)
        self.n_sessions = 0  # the number of past sessions
        shape = self.hyperparameters["buffer_size"], self.n_positions
        self._memory = {
            "features": np.zeros((*shape, self.n_features), np.float32),
            "clicks": np.zeros(shape, np.int8),
            "rewarded": np.zeros(shape[0], np.bool_),
        }
        self._first_network()

    def _first_network(self) -> None:
        import torch

        arch = self.n_features, *self.hyperparameters["net_arch"], 1
        parameters = []
        for n_inputs, n_outputs in itertools.pairwise(arch):
            bound = n_inputs**-0.5
            parameters += [
                self.rng.uniform(-bound, bound, shape)
                for shape in ((n_outputs, n_inputs), (n_outputs,))
            ]
        parameters.append(np.full(self.n_positions, SURELY_EXAMINED))
        *self._layers, self._positions = (
            torch.tensor(values, dtype=torch.float32, requires_grad=True) for values in parameters
        )
        rate = self.hyperparameters["learning_rate"]
        self._optimizer = torch.optim.Adam([*self._layers, self._positions], rate, fused=True)

    @property
    def factors(self) -> NDArray[np.float64]:
        """The learned factors of the positions, as an array ``(K,)``."""
        return self._positions.detach().sigmoid().numpy().astype(np.float64)

    def _scores(self, features: Any) -> Any:
        """Return the network's scores for features ``(..., d)``, as a tensor ``(...)``."""
        from torch.nn.functional import linear, relu

        *hidden, weights, biases = self._layers
        for first in range(0, len(hidden), 2):
            features = relu(linear(features, hidden[first], hidden[first + 1]))
        return linear(features, weights, biases)[..., 0]

    def _order(self, features: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the row numbers of the candidates by decreasing score. Candidates with equal
        scores keep their order.
        """
        import torch

        with torch.inference_mode(), one_thread():
            scores = self._scores(torch.from_numpy(features.astype(np.float32)))
        return np.argsort(-scores.numpy(), kind="stable")

    def _features_in(self, observation: Any) -> NDArray[np.float64]:
        features = observed_value(self, observation, "features")
        return check_features(features, (self.n_items, self.n_features))

    def rank(self, observation: Any) -> NDArray[np.int64]:
        """Choose the list to show, as in `Agent.rank`. The observation must have the key
        ``"features"``.
        """
        features = self._features_in(observation)
        share = max(
            self.hyperparameters["epsilon"], 1 - self.n_sessions / self.hyperparameters["decay"]
        )
        is_random = self.rng.random() < share
        order = self.rng.permutation(self.n_items)
        if not is_random:
            order = order[self._order(features[order])]
        return order[: self.n_positions]

    def update(
        self, observation: Any, ranking: ArrayLike, clicks: ArrayLike, reward: float = 0.0
    ) -> None:
        """Learn from the clicks or the reward of a session.

        Args:
            observation: the observation that was passed to `rank` for this list.
            ranking: ``(K,)`` the list that was shown.
            clicks: ``(K,)`` 1 for each position that was clicked, otherwise 0.
            reward: the reward of the session.
        """
        features = self._features_in(observation)
        items = check_ranking(ranking, self.n_items, self.n_positions)
        clicked = check_clicks(clicks, self.n_positions)
        is_rewarded = bool(as_numbers("reward", reward, ()) > 0)
        row = self.n_sessions % self.hyperparameters["buffer_size"]
        self._memory["features"][row] = features[items]
        self._memory["clicks"][row] = clicked
        self._memory["rewarded"][row] = is_rewarded
        self.n_sessions, self.has_played = self.n_sessions + 1, True
        is_due = self.n_sessions % self.hyperparameters["train_freq"] == 0
        if is_due and self.n_sessions >= self.hyperparameters["batch_size"]:
            self._train()

    def _train(self) -> None:
        """Take a gradient step on the loss of a random batch of past sessions."""
        import torch

        n_stored = min(self.n_sessions, self.hyperparameters["buffer_size"])
        batch = self.rng.integers(n_stored, size=self.hyperparameters["batch_size"])
        features, clicks, rewarded = (
            torch.from_numpy(values[batch]) for values in self._memory.values()
        )
        with one_thread():
            attractions = self._scores(features).sigmoid()
            probabilities = (attractions * self._positions.sigmoid()).clamp(max=MAX_PROBABILITY)
            skips = torch.log1p(-probabilities)
            if self.hyperparameters["feedback"] == "clicks":
                loss = -torch.where(clicks == 1, probabilities.log(), skips).sum() / len(batch)
            else:
                log_no_click = skips.sum(dim=1)
                log_any_click = torch.log(-torch.expm1(log_no_click))
                loss = -torch.where(rewarded, log_any_click, log_no_click).mean()
            self._optimizer.zero_grad()
            loss.backward()
            self._optimizer.step()

    def best(self, features: ArrayLike) -> NDArray[np.int64]:
        """Return the order of candidates by the agent's current estimates, without exploration.
        Calling this method does not change the agent.

        Args:
            features: ``(n, d)`` the features of any number of candidates.

        Returns:
            ``(n,)`` the row numbers of the candidates, the largest score first. Candidates with
            equal scores keep their order.
        """
        return self._order(check_features(features, (None, self.n_features)))

    def __repr__(self) -> str:
        sizes = {"n_items": self.n_items, "n_positions": self.n_positions}
        return as_call(self, **sizes, **self.hyperparameters)
