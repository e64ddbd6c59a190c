"""Generic reinforcement learning: algorithms of stable-baselines3, which bring a learning loop of their own.

Nothing here imports stable-baselines3 or torch before an algorithm learns; both come with ``pip install "clickgym[rl]"``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..envs.checks import check_at_least, check_count, check_positions
from .agent import Seed

if TYPE_CHECKING:
    from stable_baselines3.common.vec_env import VecEnv

__all__ = ["PPO", "Learner"]


class Learner(ABC):
    """What ranks and learns in a loop of its own, over many streams of sessions at once; `clickgym.run` runs it too.

    An `Agent` is asked for one list at a time; a learner is given the environment. It sees the same and no more:
    observations and rewards.

    Attributes:
        n_items, n_positions: L and K.
        n_envs: the number of parallel streams.
        items: ``(L,)`` a random order of the items, in which `LehmerVectorAction` counts them: so that
            ids tell nothing, not even where an instance is stored in order of attraction.
    """

    engine: ClassVar[str]
    """The library whose loop it is."""

    n_items: int
    n_positions: int
    n_envs: int
    items: np.ndarray

    @abstractmethod
    def learn(self, envs: VecEnv, sessions: int, on_step: Callable[[], bool]) -> None:
        """Learn from sessions, going on from what was learned before.

        Args:
            envs: ``n_envs`` streams whose actions are Lehmer codes.
            sessions: how many are wanted, over all streams together.
            on_step: to be called after each step of the streams; learning ends when it returns False.
        """


class PPO(Learner):
    """Proximal policy optimisation (stable-baselines3) on the stream of sessions.

    The defaults are chosen for low regret from the first session on. The percentages are of random lists' total regret in 10⁵
    sessions, over the same 3 random position-based models (L = 10, K = 5); the defaults have 7.1 %.

    | argument | default | why |
    |---|---|---|
    | `n_envs` | 64 | streams stepped at once: one pass through the network serves all of them |
    | `n_steps` | 4 | an update every 64 · 4 = 256 sessions; every 1024: 23 %, every 2048: 43 % |
    | `batch_size` | 128 | two gradient steps per pass; 256: 8.3 %, 64 (with 32 streams and 8 steps): 13 % |
    | `n_epochs` | 4 | passes over a rollout; on rollouts of 1024, 10 raised 23 % to 28 % at three times the cost |
    | `learning_rate` | 1e-3 | three times the library's; on rollouts of 1024, 3e-3 raised 23 % to 31 % |
    | `ent_coef` | 0.0 | the library's: exploration costs regret; 0.01: 8.3 % |
    | `clip_range` | 0.2 | of the paper |
    | `net_arch` | (64, 64) | the library's; one layer of 32, at batches of 256, raised 8.3 % to 14 % |

    Args:
        n_items: L.
        n_positions: K.
        n_envs, n_steps, batch_size, n_epochs: counts; ``batch_size`` divides ``n_envs * n_steps``.
        learning_rate, clip_range: positive numbers.
        ent_coef: weight of the entropy bonus, at least 0.
        net_arch: sizes of the hidden layers, of the policy and of the value function each.
        seed: of the network's weights, of the actions, and of the order of items.

    Attributes:
        model: the ``stable_baselines3.PPO``; None before it has learned.

    Raises:
        ImportError: stable-baselines3 is not installed.
        ValueError: on a bad argument.

    Deviations from the paper and the library:

    1. The discount is 0. Sessions are independent of one another: a list changes the reward of its own session and of no
       other, so that rewards of later sessions would only add noise to its advantage.
    2. A list is a Lehmer code (`LehmerVectorAction`) over the items in a random order: one number per position, drawn
       independently given the last clicks. Its rival, L Gaussian scores sorted by size at the best of their settings, learned
       more slowly (8 runs each: 6.0 % against 3.2 % in the third tenth of the sessions) to about the same total (8.3 %
       against 7.9 %). PPO over codes may settle on a list that is not the best: the last tenth was at 0.0 % to 9.4 %.
    3. Regret is counted online, over all training sessions: the first of each stream, then the second of each, and so on.
       There is no evaluation phase, and exploration is paid for.
    4. The last step plays all streams, though the horizon may end within it; those sessions (fewer than ``n_envs``) are not
       counted.
    5. torch runs in one thread: the networks are too small for more.

    stable-baselines3 draws from the global generators of Python, NumPy and torch, which `learn` therefore seeds: one seed
    gives one run, as long as nothing else in the process draws from them meanwhile.

    Example:
        >>> agent = PPO(10, 5, learning_rate=3e-4, seed=0)
        >>> agent.hyperparameters["learning_rate"], agent.n_envs, agent.model
        (0.0003, 64, None)
    """

    engine = "stable-baselines3"
    paper = "Schulman et al. 2017; stable-baselines3"
    click_models = "any"

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        *,
        n_envs: int = 64,
        n_steps: int = 4,
        batch_size: int = 128,
        n_epochs: int = 4,
        learning_rate: float = 1e-3,
        ent_coef: float = 0.0,
        clip_range: float = 0.2,
        net_arch: Sequence[int] = (64, 64),
        seed: Seed = None,
    ) -> None:
        if find_spec("stable_baselines3") is None:
            raise ImportError('PPO is an algorithm of stable-baselines3; install it: pip install "clickgym[rl]"')
        self.n_items = check_count("n_items", n_items)
        self.n_positions = check_positions(n_positions, self.n_items)
        self.n_envs = check_count("n_envs", n_envs)
        rollout = self.n_envs * check_count("n_steps", n_steps)
        if check_count("batch_size", batch_size) == 1 or rollout % batch_size:
            raise ValueError(f"batch_size is {batch_size}; expected a divisor of n_envs * n_steps = {rollout} above 1")
        self.hyperparameters: dict[str, Any] = {
            "n_envs": n_envs,
            "n_steps": n_steps,
            "batch_size": batch_size,
            "n_epochs": check_count("n_epochs", n_epochs),
            "learning_rate": check_at_least("learning_rate", learning_rate, 0, strictly=True),
            "ent_coef": check_at_least("ent_coef", ent_coef, 0),
            "clip_range": check_at_least("clip_range", clip_range, 0, strictly=True),
            "net_arch": [check_count("net_arch", size) for size in net_arch],
        }
        rng = np.random.default_rng(seed)
        self.items = rng.permutation(self.n_items)
        self._seed = int(rng.integers(2**31))
        self.model: Any = None

    def learn(self, envs: VecEnv, sessions: int, on_step: Callable[[], bool]) -> None:
        import stable_baselines3 as sb3
        import torch
        from stable_baselines3.common.utils import set_random_seed

        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            if self.model is None:
                # Seeded here, for given a seed the library would also reseed the streams with it.
                set_random_seed(self._seed)
                arguments = {k: v for k, v in self.hyperparameters.items() if k not in ("n_envs", "net_arch")}
                self.model = sb3.PPO(
                    "MlpPolicy",
                    envs,
                    gamma=0.0,
                    policy_kwargs={"net_arch": self.hyperparameters["net_arch"]},
                    device="cpu",
                    **arguments,
                )
            else:
                self.model.set_env(envs)
            self.model.learn(sessions, lambda *_: on_step(), log_interval=None, reset_num_timesteps=False)
        finally:
            torch.set_num_threads(threads)

    def __repr__(self) -> str:
        arguments = "".join(f", {name}={value!r}" for name, value in self.hyperparameters.items())
        return f"{type(self).__name__}(n_items={self.n_items}, n_positions={self.n_positions}{arguments})"
