"""Base class of simulated users: of click models, and of all others that environments simulate."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.checks import as_call, check_choice, check_count, unknown_message
from ..core.modules import module_of
from .task import REWARDS, Task


class UserModel(ABC):
    """Base class of simulated users, from which environments are built.

    Subclasses are click models, sequences of click models, models with other candidates in every
    session, and stateful users.

    Attributes:
        n_positions: K, the length of a list.
        rewards: the rewards that are defined for these users.
        default_reward: the default reward of a session.
        starts: the first step of each of their `tasks`, counted from 0.
    """

    n_positions: int
    rewards: tuple[str, ...] = ("clicks",)
    starts: Sequence[int] = (0,)
    default_reward: str = "clicks"
    title: ClassVar[str] = "simulated users"
    """The name in words, such as ``"position-based model"``."""
    behaviour: ClassVar[str] = ""
    """How users click: the middle of a sentence, for tables."""
    paper: ClassVar[str] = ""
    """A short reference to the paper of the model."""
    bibtex_keys: ClassVar[Sequence[str]] = ()
    """The keys of its papers in ``references.bib``, for ``clickgym report --bib``."""
    max_episode_steps: ClassVar[int | None] = 1000
    """The number of sessions after which an id truncates an episode; None for never."""
    default_instance: ClassVar[str | None] = None
    """The name of the default instance; None if an instance or parameters are required."""
    iid_sessions: ClassVar[bool] = False
    """Whether all sessions of a task are alike, that is, none has other items or another state."""
    may_leave: ClassVar[bool] = False
    """Whether users have a state, and leave at the end of an episode (``terminated``)."""
    discount: float = 1.0
    """The discount γ for learners that train on users who may leave; 1 if all sessions of a user
    count equally.
    """
    n_queries: int = 1
    """Q, the number of queries, of which an episode plays one; the seed of a stream determines the
    first query.
    """
    n_sessions: int | None = None
    """The number of sessions after which users leave, if it is fixed."""

    classes: ClassVar[dict[str, type[UserModel]]] = {}
    """The classes by their names in files."""

    def __init_subclass__(cls, abstract: bool = False, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not abstract:
            UserModel.classes.setdefault(cls.name(), cls)

    @classmethod
    def name(cls) -> str:
        """The name in files: the short name, or that of the class if it has none."""
        return getattr(cls, "short", cls.__name__)

    @classmethod
    def about(cls) -> str:
        """Return a description in one line: title, name and behaviour."""
        title = f"{cls.title} ({cls.name()})"
        return f"{title}: {cls.behaviour}" if cls.behaviour else title

    @property
    @abstractmethod
    def n_items(self) -> int:
        """L, the number of items."""

    @property
    def n_uniforms(self) -> int:
        """The number of uniform random numbers of a session: K, unless a subclass overrides it."""
        return self.n_positions

    @property
    def kind(self) -> str:
        """The name of these users in instances: the class, and the click model on which it is
        based.
        """
        return self.name()

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return a description as plain lists and numbers for JSON; `from_dict` reads it."""

    @abstractmethod
    def with_positions(self, n_positions: int) -> UserModel:
        """Return the same users with only their first ``n_positions`` positions."""

    def relabelled(self, order: NDArray[np.int64]) -> UserModel:
        """Return the same users and items with other item ids.

        Args:
            order: ``(L,)`` for each new id the old id.

        Raises:
            ValueError: ``order`` is not a permutation of the ids, or candidates change from session
                to session.
        """
        raise ValueError(
            f"the items of a {type(self).__name__} cannot be shuffled: candidates change every "
            "session"
        )

    @abstractmethod
    def tasks(self, reward: str, cutoff: int | None, reference: ArrayLike | None) -> Sequence[Task]:
        """Return the tasks of an environment, one for each of ``starts``: they know the best list
        and the observation.

        Args:
            reward, cutoff: as in `ClickEnv`.
            reference: the list against which regret is measured; by default, the optimal list.
        """

    def knowledge(self, source: str, production: NDArray[np.int64] | None = None) -> Any:
        """Return knowledge that a paper assumes, or None if these users do not have it. Apart from
        sizes, agents get no other knowledge.

        Args:
            source: one of the sources that `Agent.requires` lists.
            production: the items in the order of the production list, if there is one.
        """
        return None

    def click_probabilities(self, ranking: ArrayLike) -> NDArray[np.float64] | None:
        """Return the exact probability that each position of ``ranking`` is clicked, ``(K,)``; None
        if it is not known, or not the same in every session.
        """
        return None

    @staticmethod
    def from_dict(description: Mapping[str, Any]) -> Any:
        """Build users from a description that `to_dict` returned, or that was written by hand.

        Args:
            description: ``{"model": name, <its parameters>}``; the name of a click model is its
                short name. To use your own click model, import its module first.

        Raises:
            ValueError: an unknown model, or an invalid parameter.
            TypeError: a missing or unknown parameter.

        Example:
            >>> from clickgym.envs import ClickModel
            >>> users = {"model": "CM", "attraction": [0.5, 0.2], "n_positions": 1}
            >>> model = ClickModel.from_dict(users)
            >>> model.expected_reward([0])
            0.5
        """
        if not isinstance(description, Mapping) or "model" not in description:
            raise ValueError("a click model is described by a JSON object with a key 'model'")
        parameters = dict(description)
        name = parameters.pop("model")
        return user_model_class(name)(**parameters)

    def check_reward(self, reward: str, cutoff: int | None) -> tuple[int, int]:
        """Check a reward and a cutoff; return the kernels' code of the reward and the number of
        counted positions.
        """
        check_choice("reward", reward, REWARDS)
        code = REWARDS.index(reward)
        if reward not in self.rewards:
            has = f"it has {', '.join(self.rewards)}"
            raise ValueError(f"{type(self).__name__} does not define the reward {reward!r}; {has}")
        if cutoff is None:
            return code, self.n_positions
        return code, check_count("cutoff", cutoff, 1, self.n_positions)

    def __repr__(self) -> str:
        return as_call(self, n_items=self.n_items, n_positions=self.n_positions)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:  # made of what is quick to compute; equal users have equal hashes
        return hash((type(self), self.n_items, self.n_positions))


def user_model_from(name: str, model: Any) -> Any:
    """Return ``model``, or the users that a ``to_dict()`` describes. Errors name the argument."""
    if isinstance(model, UserModel):
        return model
    try:
        return UserModel.from_dict(model)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: {error}") from None


def user_model_class(name: str, *, imports: bool = False) -> type[UserModel]:
    """Return the class of users of a name: a click model's short name, or the name of another class
    of the package.

    Args:
        name: the name as in a file, which cannot name a module.
        imports: whether it may also be ``"module:Class"``, which is imported.

    Raises:
        ValueError: no class has this name.
    """
    if imports and ":" in str(name):
        model_class = getattr(module_of("click model", name), name.partition(":")[2], None)
        if not isinstance(model_class, type) or not issubclass(model_class, UserModel):
            raise ValueError(f"click model {name!r}: its module has no such subclass of ClickModel")
        return model_class
    if name not in UserModel.classes:
        raise ValueError(unknown_message("click model", name, UserModel.classes))
    return UserModel.classes[name]
