"""Base class `UserModel` of everything that environments can simulate: click models, users who
change, users who see new candidates in every session, and users with memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.checks import check_choice, check_count
from ...core.messages import as_call, suggestions
from ...core.user_modules import import_user_module
from .task import REWARDS, Task


class UserModel(ABC):
    """Base class of simulated users, on which environments are built.

    Subclasses are click models, sequences of click models, models with new candidates in every
    session, and users with memory. Six names and texts describe them:

    - ``short`` is the short name of a click model in ids and commands, such as ``"PBM"``.
    - ``name()`` is the name of a class in files: ``short``, or otherwise the name of the class.
    - ``kind`` is the name of an object in instances, and also names the click models in it, as in
      ``"ContextualModel of PBM"``.
    - ``title`` is the name of a class in sentences, such as ``"position-based model"``.
    - ``behaviour`` is a clause in tables about how the users click.
    - ``about()`` joins title, name and behaviour to the line that ``clickgym list`` prints.

    Attributes:
        n_positions: K, the length of a list.
        rewards: the names of the rewards that these users define.
        default_reward: the reward that an environment uses by default.
        starts: the first step of each task that `tasks` returns, counted from 0.

    Example:
        >>> from clickgym.envs import CascadeModel
        >>> users = CascadeModel([0.2, 0.8, 0.6], 2)
        >>> users.n_items, users.n_positions, users.kind
        (3, 2, 'CM')
    """

    n_positions: int
    rewards: tuple[str, ...] = ("clicks",)
    starts: Sequence[int] = (0,)
    default_reward: str = "clicks"
    short: ClassVar[str] = ""
    """The short name of a click model, such as ``"PBM"``, which appears in environment ids,
    instance files and commands. Empty for all other users: only click models with a short name get
    environments that change, have features or have queries, and can be parts of other users.
    """
    title: ClassVar[str] = "simulated users"
    """The name of these users in words, such as ``"position-based model"``."""
    behaviour: ClassVar[str] = ""
    """A clause for tables that describes how users click, without capital letter or full stop."""
    paper: ClassVar[str] = ""
    """A short reference to the paper that introduced these users, such as
    ``"Craswell et al. 2008"``.
    """
    bibtex_keys: ClassVar[Sequence[str]] = ()
    """The keys, in ``references.bib``, of the papers that ``clickgym report --bib`` lists."""
    max_episode_steps: ClassVar[int | None] = 1000
    """The number of sessions after which a registered environment truncates an episode; None if it
    never does.
    """
    default_instance: ClassVar[str | None] = None
    """The name of the default instance; None if an instance or parameters are required."""
    iid_sessions: ClassVar[bool] = False
    """Whether all sessions of a task are alike: the items and the users' state never change."""
    may_leave: ClassVar[bool] = False
    """Whether users leave at the end of an episode, which environments report as ``terminated``."""
    discount: float = 1.0
    """The discount γ for RL algorithms that train on users who may leave; 1 if all sessions of a
    user count equally.
    """
    n_queries: int = 1
    """Q, the number of queries. An episode uses one query; a stream's seed determines the first
    query.
    """
    n_sessions: int | None = None
    """The number of sessions after which users leave; None if this number is not fixed."""

    classes: ClassVar[dict[str, type[UserModel]]] = {}
    """All classes of users, keyed by their names in files."""

    def __init_subclass__(cls, abstract: bool = False, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not abstract:
            UserModel.classes.setdefault(cls.name(), cls)

    @classmethod
    def name(cls) -> str:
        """Return the name of these users in files: the short name, or otherwise the class name."""
        return cls.short or cls.__name__

    @classmethod
    def about(cls) -> str:
        """Return a one-line description that consists of title, name and behaviour."""
        title = f"{cls.title} ({cls.name()})"
        return f"{title}: {cls.behaviour}" if cls.behaviour else title

    @property
    @abstractmethod
    def n_items(self) -> int:
        """L, the number of items."""

    @property
    def n_uniforms(self) -> int:
        """The number of uniform random numbers that a session needs: K, unless a subclass overrides
        this property.
        """
        return self.n_positions

    @property
    def kind(self) -> str:
        """The name of these users in instances, made of their class and, if they contain click
        models, the names of these models.
        """
        return self.name()

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return a description of the users in plain lists and numbers, which JSON can store and
        `from_dict` can read.
        """

    @abstractmethod
    def with_positions(self, n_positions: int) -> UserModel:
        """Return the same users with only their first ``n_positions`` positions."""

    def relabelled(self, order: NDArray[np.int64]) -> UserModel:
        """Return the same users and items, but with the item ids permuted.

        Args:
            order: ``(L,)`` the old id of each new id.

        Raises:
            ValueError: ``order`` is not a permutation of the ids, or candidates change from session
                to session.
        """
        raise ValueError(
            f"the items of a {type(self).__name__} cannot be shuffled, because the candidates "
            "change in every session"
        )

    @abstractmethod
    def tasks(self, reward: str, cutoff: int | None, reference: ArrayLike | None) -> Sequence[Task]:
        """Return the tasks that simulate these users in an environment, one for each entry of
        ``starts``.

        Args:
            reward: the name of the reward.
            cutoff: the number of positions, from the top, that count; None for all positions.
            reference: ``(K,)`` the list against which regret is measured; None for the best list.
        """

    def knowledge(self, source: str, production: NDArray[np.int64] | None = None) -> Any:
        """Return what a paper assumes that an agent knows about the users; None if these users
        cannot provide this knowledge. Agents learn nothing else about the users, except sizes.

        Args:
            source: the kind of knowledge, one of the sources that `Agent.requires` lists.
            production: ``(L,)`` all items in the order of the production list; None without a
                production list.
        """
        return None

    def click_probabilities(self, ranking: ArrayLike) -> NDArray[np.float64] | None:
        """Return the exact probability that each position of ``ranking`` is clicked, ``(K,)``; None
        if the probabilities are unknown or differ between sessions.
        """
        return None

    @staticmethod
    def from_dict(description: Mapping[str, Any]) -> Any:
        """Create users from a description that `to_dict` returned or that you wrote by hand.

        Args:
            description: ``{"model": name, ...}`` with the parameters of the model; the name of a
                click model is its short name. To use your own click model, import its module first.

        Raises:
            ValueError: the model is unknown, or a parameter is invalid.
            TypeError: a parameter is missing or unknown.

        Example:
            >>> from clickgym.envs import ClickModel
            >>> users = {"model": "CM", "attraction": [0.5, 0.2], "n_positions": 1}
            >>> model = ClickModel.from_dict(users)
            >>> model.expected_reward([0])
            0.5
        """
        if not isinstance(description, Mapping) or "model" not in description:
            raise ValueError("a click model's description must be a dict with the key 'model'")
        parameters = dict(description)
        name = parameters.pop("model")
        return user_model_class(name)(**parameters)

    def check_reward(self, reward: str, cutoff: int | None) -> tuple[int, int]:
        """Check a reward and a cutoff; return the reward's index in `REWARDS` and the number of
        positions that count.
        """
        check_choice("reward", reward, REWARDS)
        code = REWARDS.index(reward)
        if reward not in self.rewards:
            has = f"it defines {', '.join(self.rewards)}"
            raise ValueError(f"{type(self).__name__} does not define the reward {reward!r}; {has}")
        if cutoff is None:
            return code, self.n_positions
        return code, check_count("cutoff", cutoff, 1, self.n_positions)

    def __repr__(self) -> str:
        return as_call(self, n_items=self.n_items, n_positions=self.n_positions)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:  # quick, because to_dict would be slow
        return hash((type(self), self.n_items, self.n_positions))


def user_model_from(name: str, model: Any) -> Any:
    """Return ``model``, or the users that it describes if it is the ``to_dict()`` of users. Errors
    call the argument ``name``.
    """
    if isinstance(model, UserModel):
        return model
    try:
        return UserModel.from_dict(model)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: {error}") from None


def user_model_class(name: str, *, imports: bool = False) -> type[UserModel]:
    """Return the subclass of `UserModel` with a given name.

    Args:
        name: the short name of a click model, or the name of another class of users.
        imports: whether ``name`` may also be ``"module:Class"``, which imports the module; by
            default False, because names in files must not import modules.

    Raises:
        ValueError: no class of users has this name.
    """
    if imports and ":" in str(name):
        model_class = getattr(import_user_module("click model", name), name.partition(":")[2], None)
        if not isinstance(model_class, type) or not issubclass(model_class, UserModel):
            raise ValueError(f"click model {name!r}: the module has no such subclass of ClickModel")
        return model_class
    if name not in UserModel.classes:
        raise ValueError(
            f"unknown click model {name!r}{suggestions(name, UserModel.classes)}; for your own "
            "click model, first import the module that defines it (on the command line, name an "
            "environment of this module: my_module:MyRank-v0)"
        )
    return UserModel.classes[name]
