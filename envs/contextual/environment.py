"""The environments of contextual users under names of their own."""

from __future__ import annotations

from typing import Any

from ..click_env import ClickEnv, ClickVectorEnv
from .model import ContextualModel


def _checked(model: object) -> ContextualModel:
    if not isinstance(model, ContextualModel):
        raise TypeError(f"model must be a ContextualModel, got {type(model).__name__}")
    return model


class ContextualClickEnv(ClickEnv):
    """`ClickEnv` of users who meet other candidates in every session: the observation contains the
    features of the next candidates.

    In the user browsing model and the dependent click model, the best list for the reward
    ``"clicks"`` is found by a search in every session. The search takes milliseconds, the session
    itself only microseconds (L = 20, K = 5).

    Args:
        model: the users and the pool of candidates.
        *arguments, **keywords: as in `ClickEnv`.

    Raises:
        TypeError: on a model of another kind.
        ValueError: as `ClickEnv`; also where the search for the best list would be too large.

    Example:
        >>> from clickgym.envs import ContextualClickEnv, LinearModel, PositionBasedModel
        >>> model = LinearModel(PositionBasedModel([0, 0], [1.0, 0.5]), theta=[0.9, 0.1], items=[[1, 0], [0, 1], [0.5, 0.5]])
        >>> env = ContextualClickEnv(model)
        >>> observation, info = env.reset(seed=0)
        >>> observation["features"].shape
        (2, 2)
        >>> observation, reward, terminated, truncated, info = env.step([0, 1])
        >>> info["regret"] >= 0
        True
    """

    model: ContextualModel

    def __init__(self, model: ContextualModel, *arguments: Any, **keywords: Any) -> None:
        super().__init__(_checked(model), *arguments, **keywords)


class ContextualClickVectorEnv(ClickVectorEnv):
    """`ClickVectorEnv` of users who meet other candidates in every session.

    Args:
        model: the users and the pool of candidates.
        *arguments, **keywords: as in `ClickVectorEnv`.

    Raises:
        TypeError, ValueError: as `ContextualClickEnv`.

    Example:
        >>> import gymnasium as gym, clickgym
        >>> envs = gym.make_vec("ContextualUBMRank-v0", num_envs=4)
        >>> observations, infos = envs.reset(seed=0)
        >>> observations["features"].shape
        (4, 20, 10)
    """

    model: ContextualModel

    def __init__(self, model: ContextualModel, *arguments: Any, **keywords: Any) -> None:
        super().__init__(_checked(model), *arguments, **keywords)
