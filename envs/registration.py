"""Environment ids for `gymnasium.make`: those of the package and your own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeGuard

import gymnasium
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit

from ..core.checks import short_repr
from .cascade import CascadeModel
from .click_chain import ClickChainModel
from .click_env import ClickEnv
from .click_model import CLICK_MODELS
from .dependent_click import DependentClickModel
from .dynamic_bayesian import DynamicBayesianModel
from .memory.model import CascadeMDP
from .mixture import MixtureModel
from .position_based import PositionBasedModel
from .resolve_model import FORMS, default_instance, forms_of
from .trust_bias import TrustBiasModel
from .user_browsing import UserBrowsingModel
from .user_model import UserModel, user_model_class

USERS: dict[str, type[UserModel]] = {
    "CMRank-v0": CascadeModel,
    "CCMRank-v0": ClickChainModel,
    "PBMRank-v0": PositionBasedModel,
    "TPBMRank-v0": TrustBiasModel,
    "DCMRank-v0": DependentClickModel,
    "DBNRank-v0": DynamicBayesianModel,
    "UBMRank-v0": UserBrowsingModel,
    "MixtureRank-v0": MixtureModel,
    "CascadeMDPRank-v0": CascadeMDP,
}
"""The users of the package by their ids, in the order of all tables; click models have ids of
further forms (`FORMS`).
"""


class Environment(NamedTuple):
    """A registered environment."""

    model: str
    """The short name of its click model, or ``"module:Class"``."""
    form: str
    """``""``, ``"NonStationary"``, ``"Contextual"`` or ``"Queries"``."""

    @property
    def click_model(self) -> Any:
        """The class of the click model, or the class of stateful users."""
        return user_model_class(self.model, imports=True)

    @property
    def kind(self) -> str:
        """The form, or ``"Memory"``."""
        return self.form or ("Memory" if self.click_model.may_leave else "")

    @property
    def model_class(self) -> type[UserModel]:
        """The class of the users, which may contain the click model."""
        return FORMS[self.form] or self.click_model

    @property
    def default_instance(self) -> str | None:
        """The default instance; None if an instance or parameters are required."""
        return default_instance(self.form, self.click_model)

    @property
    def about(self) -> str:
        """A description of the users in one line."""
        model = self.click_model
        return (
            f"{model.title} ({model.name()}), {self.model_class.title}"
            if self.form
            else model.about()
        )


ENVIRONMENTS: dict[str, Environment] = {}
"""The registered ids; `Environment.kind` distinguishes them."""


def register_click_model(env_id: str, model: str | type[UserModel]) -> None:
    """Register the environments for a click model: the id itself, and the id with the prefixes
    ``NonStationary``, ``Contextual`` and ``Queries``.

    There is no contextual environment for a click model without attraction, and only the id itself
    is registered for users that are not a click model. An episode ends after 1,000 sessions
    (``NonStationary``: 100,000), or when its user leaves for good. If ``model`` is a name, the
    class is imported only when an environment is created, and ``gym.make`` then raises an error if
    the class does not support the prefix.

    Args:
        env_id: a Gymnasium id with a version, such as ``"MyRank-v0"``.
        model: ``"module:Class"``; or a class that can be imported from its module; or the short
            name of a click model.

    Raises:
        TypeError: ``model`` is neither a class of users nor a name.

    Example:
        >>> import gymnasium as gym, clickgym
        >>> clickgym.register_click_model("TwinRank-v0", "clickgym.envs.cascade:CascadeModel")
        >>> gym.make("NonStationaryTwinRank-v0").unwrapped.model
        PiecewiseStationaryModel(n_items=10, n_positions=3)
    """
    if isinstance(model, type) and issubclass(model, UserModel):
        is_short = UserModel.classes.get(model.name()) is model
        name = model.name() if is_short else f"{model.__module__}:{model.__qualname__}"
        users: Any = model
    elif isinstance(model, str):
        name, users = model, UserModel.classes.get(model)
    else:
        raise TypeError(
            f"model is {short_repr(model)}; expected a class, such as a subclass of "
            "clickgym.envs.ClickModel, or its name, module:Class"
        )
    for form in FORMS if users is None else forms_of(users):
        model_class = FORMS[form] or users
        ENVIRONMENTS[form + env_id] = Environment(name, form)
        gymnasium.register(
            form + env_id,
            entry_point="clickgym.envs.click_env:ClickEnv",
            vector_entry_point="clickgym.envs.vector_env:ClickVectorEnv",
            max_episode_steps=1000 if model_class is None else model_class.max_episode_steps,
            kwargs={"model": name, "form": form},
        )


def without_own_wrappers(env: gymnasium.Env[Any, Any]) -> gymnasium.Env[Any, Any]:
    """Return an environment without the outermost wrappers that every id has, which change
    neither lists nor observations.
    """
    while type(env) in (OrderEnforcing, PassiveEnvChecker) or is_limit_of_id(env):
        env = env.env  # type: ignore[attr-defined]
    return env


@contextmanager
def endless(env: gymnasium.Env[Any, Any]) -> Iterator[None]:
    """Context manager in which the time limit of an environment's id does not apply; other limits
    do.
    """
    layer: Any = env
    while isinstance(layer, gymnasium.Wrapper) and not is_limit_of_id(layer):
        layer = layer.env
    if not is_limit_of_id(layer):
        yield
        return
    limit, layer._max_episode_steps = layer._max_episode_steps, sys.maxsize
    try:
        yield
    finally:
        layer._max_episode_steps = limit


def is_limit_of_id(env: gymnasium.Env[Any, Any]) -> TypeGuard[TimeLimit]:
    """Whether a wrapper is the time limit of a registered id."""
    return (
        type(env) is TimeLimit
        and isinstance(env.unwrapped, ClickEnv)
        and env.spec is not None
        and env.spec.id in ENVIRONMENTS
        and env.spec.max_episode_steps == gymnasium.registry[env.spec.id].max_episode_steps
    )


for _id, _users in USERS.items():
    if hasattr(_users, "short"):  # the order is that of the table, not that of the imports
        CLICK_MODELS[_users.name()] = CLICK_MODELS.pop(_users.name())
    register_click_model(_id, _users)
