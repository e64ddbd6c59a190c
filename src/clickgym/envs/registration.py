"""Environment ids for `gymnasium.make`: the table of clickgym's own ids, and `register_click_model`
for yours.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeGuard

import gymnasium
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit

from ..core.messages import short_repr
from .click_env import ClickEnv
from .click_models.cascade import CascadeModel
from .click_models.click_chain import ClickChainModel
from .click_models.click_model import CLICK_MODELS
from .click_models.dependent_click import DependentClickModel
from .click_models.dynamic_bayesian import DynamicBayesianModel
from .click_models.mixture import MixtureModel
from .click_models.position_based import PositionBasedModel
from .click_models.trust_bias import TrustBiasModel
from .click_models.user_browsing import UserBrowsingModel
from .resolve_model import FORMS, default_instance
from .simulation.user_model import UserModel, user_model_class
from .users.memory import CascadeMDP

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
"""The users that clickgym provides, by environment id, in the order in which tables list them. Each
click model also gets ids with the prefixes in `FORMS`.
"""


class RegisteredEnv(NamedTuple):
    """An environment that is registered under an id."""

    model: str
    """The short name of the environment's click model, or ``"module:Class"``."""
    form: str
    """The prefix of the id: ``""``, ``"NonStationary"``, ``"Contextual"`` or ``"Queries"``."""

    @property
    def click_model(self) -> Any:
        """The class of the click model, or of the users with memory."""
        return user_model_class(self.model, imports=True)

    @property
    def kind(self) -> str:
        """The kind of environment: its form, or ``"Memory"`` for users with memory."""
        return self.form or ("Memory" if self.click_model.may_leave else "")

    @property
    def model_class(self) -> type[UserModel]:
        """The class of the users: the click model's own class, or a class such as `ContextualModel`
        that contains the click model.
        """
        return FORMS[self.form] or self.click_model

    @property
    def default_instance(self) -> str | None:
        """The default instance; None if an instance or parameters are required."""
        return default_instance(self.form, self.click_model)

    @property
    def about(self) -> str:
        """A one-line description of the users, for tables."""
        model = self.click_model
        if not self.form:
            return model.about()
        return f"{model.title} ({model.name()}), {self.model_class.title}"


ENVIRONMENTS: dict[str, RegisteredEnv] = {}
"""All registered environments by id."""


def register_click_model(env_id: str, model: str | type[UserModel]) -> None:
    """Register a click model's environments under an id, and under the id with the prefixes
    ``NonStationary``, ``Contextual`` and ``Queries``.

    Users that are not a click model get only the id without a prefix. An episode ends after 1,000
    sessions (with the prefix ``NonStationary``, after 100,000), or when the episode's user leaves
    for good. If ``model`` is a name, its class is imported only when an environment is created.
    ``gym.make`` raises an error if the class does not support the prefix: a contextual environment
    requires a click model with the parameter ``attraction``.

    Args:
        env_id: a Gymnasium id with a version, such as ``"MyRank-v0"``.
        model: the name ``"module:Class"``, the short name of a click model, or a class that can be
            imported from its module.

    Raises:
        TypeError: ``model`` is neither a subclass of `UserModel` nor a name.

    Example:
        >>> import gymnasium as gym, clickgym
        >>> clickgym.register_click_model("TwinRank-v0", "clickgym.envs:CascadeModel")
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
            "clickgym.envs.ClickModel, or the name of a class, such as 'module:Class'"
        )
    for form in FORMS if users is None or users.short else ("",):
        model_class = FORMS[form] or users
        ENVIRONMENTS[form + env_id] = RegisteredEnv(name, form)
        gymnasium.register(
            form + env_id,
            entry_point="clickgym.envs.click_env:ClickEnv",
            vector_entry_point="clickgym.envs.click_vector_env:ClickVectorEnv",
            max_episode_steps=1000 if model_class is None else model_class.max_episode_steps,
            kwargs={"model": name, "form": form},
        )


def without_own_wrappers(env: gymnasium.Env[Any, Any]) -> gymnasium.Env[Any, Any]:
    """Return an environment without the outermost wrappers that ``gym.make`` adds to every
    environment; these wrappers change neither lists nor observations.
    """
    while type(env) in (OrderEnforcing, PassiveEnvChecker) or is_limit_of_id(env):
        env = env.env  # type: ignore[attr-defined]
    return env


@contextmanager
def time_limit_removed(env: gymnasium.Env[Any, Any]) -> Iterator[gymnasium.Env[Any, Any]]:
    """Context manager that yields an environment without the time limit with which its id was
    registered; any other time limit stays in force. Wrappers around this limit step what is below
    it until the context ends.
    """
    outer: Any = None
    layer: Any = env
    while isinstance(layer, gymnasium.Wrapper) and not is_limit_of_id(layer):
        outer, layer = layer, layer.env
    if not is_limit_of_id(layer):
        yield env
    elif outer is None:
        yield layer.env
    else:
        outer.env = layer.env
        try:
            yield env
        finally:
            outer.env = layer


def is_limit_of_id(env: gymnasium.Env[Any, Any]) -> TypeGuard[TimeLimit]:
    """Return whether a wrapper is the time limit with which clickgym registered the id."""
    return (
        type(env) is TimeLimit
        and isinstance(env.unwrapped, ClickEnv)
        and env.spec is not None
        and env.spec.id in ENVIRONMENTS
        and env.spec.max_episode_steps == gymnasium.registry[env.spec.id].max_episode_steps
    )


# Each click model entered CLICK_MODELS when its module was imported, and imports are sorted by file
# name; from here on, the models have the order of USERS, in which tables list them.
for _id, _users in USERS.items():
    if _users.short:
        CLICK_MODELS[_users.short] = CLICK_MODELS.pop(_users.short)
    register_click_model(_id, _users)
