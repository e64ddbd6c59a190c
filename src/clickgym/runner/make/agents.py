"""Agents made from specs and classes, with what they are told about the environment."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import gymnasium as gym

from ...agents import AGENTS, FrozenPolicy
from ...agents.agent import BaseAgent, Seed, UnsuitedError
from ...agents.rl.learner import LIBRARY_OF, adopt
from ...core.checks import check_horizon
from ...core.messages import short_repr, suggestions
from ...core.user_modules import import_user_object
from ...envs import ClickEnv
from ...envs.base_env import name_of
from ...envs.env_properties import sizes_of, user_model_of
from ..errors import AgentError
from .environments import EnvLike, make_env, maker_name, naming_errors
from .labels import Arguments, Spec, split_spec

AgentLike = Spec | Callable[..., Any] | tuple[Callable[..., Any], Mapping[str, Any]]
"""What you can pass as an agent: a spec, a class, a function, or these with arguments."""
ResolvedAgent = tuple[Callable[..., BaseAgent], Arguments]
"""A resolved agent: the class or function that creates the agent, and its hyperparameters."""


BY_NAME: dict[str, Callable[..., BaseAgent]] = {**AGENTS, "FrozenPolicy": FrozenPolicy}
"""The agents that a name without a module stands for."""

OBSERVED = {
    "n_features": ("features", "contextual environments (such as ContextualPBMRank-v0)"),
    "n_states": ("the user's state", "users with memory (those of CascadeMDPRank-v0)"),
}
"""Sizes that some agents need. Texts for messages say what a size counts and what has it."""
NAMING_HINT = (
    "name any other agent as module:Class, such as my_module:MyAgent or stable_baselines3:TD3"
)
"""The end of the message about an unknown agent: how to name agents outside clickgym."""
SET_BY_THE_RUN = ("n_items", "n_positions", "horizon", "seed")
"""The arguments of an agent's constructor that clickgym sets; all others are hyperparameters."""


def resolve_agent(agent: AgentLike) -> ResolvedAgent:
    """Find the class or function that an agent's spec names.

    `adopt` turns a class with its own training loop, such as ``"stable_baselines3:PPO"``, into an
    agent class.

    Args:
        agent: an agent in any form that `make_agent` accepts. A `ResolvedAgent` is returned
            unchanged.

    Returns:
        The class or function, and the hyperparameters that were passed.

    Raises:
        ValueError, TypeError: the agent is unknown, or no agent can be created from ``agent``.

    Example:
        >>> resolve_agent("TopRank:delta=0.1")
        (<class 'clickgym.agents.several_click_models.top_rank.TopRank'>, {'delta': 0.1})
    """
    obj, hyperparameters = split_spec(agent)
    if not isinstance(obj, str):
        return _check_maker(obj, short_repr(obj)), hyperparameters
    if obj in BY_NAME:
        return BY_NAME[obj], hyperparameters
    if obj in LIBRARY_OF:
        name = f"{LIBRARY_OF[obj]}:{obj}"
        raise ValueError(f"unknown agent {obj!r}; name it with its library, as {name}")
    if ":" not in obj:
        raise ValueError(f"unknown agent {obj!r}{suggestions(obj, BY_NAME)}; {NAMING_HINT}")
    return _check_maker(import_user_object("agent", obj), f"agent {obj!r}"), hyperparameters


def _check_maker(obj: Any, subject: str) -> Callable[..., BaseAgent]:
    """Return the class or function that creates an agent; raise an error for other objects."""
    if isinstance(obj, type):
        return obj if issubclass(obj, BaseAgent) else adopt(obj)  # type: ignore[arg-type]
    if not callable(obj) or isinstance(obj, BaseAgent) or not accepts(obj, "n_items"):
        raise TypeError(
            f"{subject} cannot make agents; expected a name, a class, (class, arguments) or a "
            "function that takes n_items. To use a trained model, or a function that returns "
            f"lists, pass (clickgym.agents.FrozenPolicy, {{'model': model}})"
        )
    return obj


@lru_cache(maxsize=256)  # a sweep asks again for each run
def parameters_of(maker: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the parameters of a class or function that creates agents, by name. ``*args`` and
    ``**kwargs`` are left out.
    """
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = inspect.signature(maker).parameters
    return {
        name: parameter for name, parameter in parameters.items() if parameter.kind not in variadic
    }


def accepts(maker: Callable[..., Any], name: str) -> bool:
    """Return whether a class or function that creates agents accepts an argument ``name``."""
    parameters = inspect.signature(maker).parameters
    return name in parameters or any(
        parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()
    )


def requirements(maker: Callable[..., Any]) -> dict[str, str]:
    """Return the arguments that an agent's paper assumes to be known, with a source for each."""
    return dict(getattr(maker, "requires", {}))


def observed_sizes(maker: Callable[..., Any]) -> list[str]:
    """Return the names of the sizes in `OBSERVED` that an agent's constructor takes."""
    return [size for size in OBSERVED if size in parameters_of(maker)]


def make_agent(
    agent: AgentLike,
    env: gym.Env | EnvLike,
    *,
    horizon: int | None = None,
    seed: Seed = None,
    **hyperparameters: Any,
) -> BaseAgent:
    """Create an agent for an environment.

    The numbers of items and positions come from the environment. The knowledge that the agent's
    paper assumes also comes from the environment, unless you pass it: for example, the examination
    probabilities for PBM-UCB, the production list for `Fixed`, and the best list for `Oracle`.
    Everything else about the users stays hidden from the agent.

    Args:
        agent: an agent's name in the form used on the command line, such as
            ``"CascadeKLUCB:feedback=first_click"`` or ``"my_module:MyAgent"``; a subclass of
            `Agent`, or an RL algorithm of stable-baselines3; or ``(class, arguments)``.
        env: the environment for which the agent is created: an id such as ``"PBMRank-v0"``, or
            anything else that `make_env` accepts.
        horizon: T, the number of sessions, which is passed to agents that take a horizon.
        seed: the seed of the agent's own random generator; by default, a random seed.
        **hyperparameters: hyperparameters of the agent; they take precedence over the arguments
            in ``agent``.

    Returns:
        The agent. Its attribute ``filled_in`` contains the arguments that came from the
        environment, and the horizon.

    Raises:
        ValueError: the agent is unknown; the agent requires a horizon, or knowledge that the
            environment does not have; or your function returned an agent that has already been used
            in a run.
        TypeError: the agent has no hyperparameter with one of the names that you passed.

    Example:
        >>> import clickgym
        >>> agent = clickgym.make_agent("PBMUCB", "PBMRank-v0", seed=0)
        >>> sorted(agent.filled_in)
        ['examination', 'n_items', 'n_positions']
    """
    maker, arguments = resolve_agent(agent)
    arguments = {**arguments, **hyperparameters}
    return make_resolved_agent((maker, arguments), make_env(env), horizon, seed)


def make_resolved_agent(
    agent: ResolvedAgent, env: gym.Env, horizon: int | None, seed: Seed
) -> BaseAgent:
    """Create an agent from its class or function, as `make_agent` does.

    Args:
        agent: the agent, as returned by `resolve_agent`.
        env, horizon, seed: as for `make_agent`.
    """
    maker, arguments = agent
    name = maker_name(maker)
    for key in arguments:
        if key in SET_BY_THE_RUN:
            raise TypeError(
                f"{name}: leave out {key}, which clickgym passes to each constructor that names it"
            )
        if not accepts(maker, key):
            names = [other for other in parameters_of(maker) if other not in SET_BY_THE_RUN]
            raise TypeError(f"{name}: unknown hyperparameter {key!r}{suggestions(key, names)}")
    filled_in = copy.deepcopy(_filled_in(maker, arguments, env, horizon))
    for key, parameter in parameters_of(maker).items():
        if parameter.default is parameter.empty and key not in {*filled_in, *arguments, "seed"}:
            own = ", ".join([*SET_BY_THE_RUN, *OBSERVED])
            raise TypeError(
                f"{name} requires {key}: pass {key}=... (clickgym itself passes {own}, and what "
                "the class attribute `requires` lists)"
            )
    with naming_errors(f"agent {name}", AgentError):
        result: Any = maker(**filled_in, **arguments, seed=seed)
    if not isinstance(result, BaseAgent):
        raise TypeError(f"{name} returned {short_repr(result)}; expected an agent")
    if result.has_played:
        raise ValueError(
            f"{name} returned an agent that has already been used in a run; return a new agent "
            "each time"
        )
    result.filled_in = filled_in
    return result


def _filled_in(
    maker: Callable[..., BaseAgent], arguments: Arguments, env: gym.Env, horizon: int | None
) -> Arguments:
    """Return the arguments that `make_agent` fills in from the environment and the horizon.

    Args:
        maker: the class or function that creates the agent.
        arguments: the hyperparameters that the user passed, which must not be filled in.
        env: the environment from which sizes and knowledge are taken.
        horizon: T, the number of sessions; None if it is unknown.
    """
    name, parameters, sizes = maker_name(maker), parameters_of(maker), sizes_of(env)
    required = [
        key for key, parameter in parameters.items() if parameter.default is parameter.empty
    ]
    base_env: Any = env.unwrapped
    filled_in: Arguments = {"n_items": sizes.n_items, "n_positions": sizes.n_positions}

    # Sizes of the features or states that the agent observes.
    for key, (quantity, owners) in OBSERVED.items():
        if key in parameters and key not in arguments:
            filled_in[key] = getattr(sizes, key)
            if not filled_in[key]:
                raise UnsuitedError(name, f"ranks by {quantity}, which only {owners} have")

    # Knowledge that the paper assumes.
    for key, source in requirements(maker).items():
        if key in arguments:
            continue
        value = base_env.knowledge(source) if isinstance(base_env, ClickEnv) else None
        if value is not None:
            filled_in[key] = value
        elif key in required:
            if sizes.n_features and source.endswith("_ranking"):
                reason = f"requires {key}, but {name_of(env)} has new items in every session"
            else:
                depends = "" if source == key else f" under the name {source!r}"
                if source == "examination" and user_model_of(env) is not None:
                    depends = " (it depends on the list, and these users have no production list)"
                reason = (
                    f"requires {key}, which {name_of(env)} does not have{depends}: "
                    f"pass {key}=..., as in {name}:{key}=[...]"
                )
            raise UnsuitedError(name, reason)
    if "feature_scale" in parameters.keys() - arguments.keys() and isinstance(base_env, ClickEnv):
        filled_in["feature_scale"] = base_env.feature_scale

    if "horizon" in parameters and horizon is not None:
        filled_in["horizon"] = check_horizon(horizon)
    elif "horizon" in required:
        raise ValueError(f"{name} requires a horizon: pass horizon=...")
    return filled_in
