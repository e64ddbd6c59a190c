"""Agents and environments by name, as the command line and sweeps write them."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from ..agents import AGENTS, CONTEXTUAL_AGENTS, LEARNERS, Agent, Learner
from ..agents.generic_rl import adopt
from ..envs import CONTEXTUAL, ENVIRONMENTS, ClickEnv, ContextualModel
from ..envs.checks import unknown
from ..envs.guests import sizes_of

__all__ = ["Spec", "agent_class", "make_agent", "make_env", "parse_spec"]

Spec = str | tuple[str, Mapping[str, Any]]
"""A name with arguments: ``"CascadeKLUCB:feedback=first_click"`` or ``("CascadeKLUCB", {"feedback": "first_click"})``."""


PUBLISHED: dict[str, type[Agent | Learner]] = {**AGENTS, **CONTEXTUAL_AGENTS, **LEARNERS}


def parse_spec(spec: Spec) -> tuple[str, dict[str, Any]]:
    """Split a name from its arguments.

    Args:
        spec: ``"Name"``, ``"Name:key=value,key=value"`` with values in JSON or plain words, or ``(name, arguments)``. The name
            may itself be ``module:Class``.

    Returns:
        The name and the arguments.

    Example:
        >>> parse_spec("CascadeKLUCB:feedback=first_click")
        ('CascadeKLUCB', {'feedback': 'first_click'})
        >>> parse_spec("BubbleRank:initial=[2,0,1],horizon=1000")
        ('BubbleRank', {'initial': [2, 0, 1], 'horizon': 1000})
        >>> parse_spec('PPO:policy_kwargs={"net_arch":[32,32],"ortho_init":false},n_steps=8')
        ('PPO', {'policy_kwargs': {'net_arch': [32, 32], 'ortho_init': False}, 'n_steps': 8})
        >>> parse_spec("my_module:MyAgent:alpha=0.5")
        ('my_module:MyAgent', {'alpha': 0.5})
        >>> parse_spec("PBMRank-v0:instance=uniform:seed=3")
        ('PBMRank-v0', {'instance': 'uniform:seed=3'})
    """
    if not isinstance(spec, str):
        name, arguments = spec
        return name, dict(arguments)
    # At the first colon before a key: what follows may have colons of its own.
    parts = re.fullmatch(r"([^=]*?):([^:=]*=.*)", spec)
    if parts is None:
        return spec, {}
    name, tail = parts.groups()
    arguments = {}
    for pair in re.split(r",(?![^\[]*\]|[^{]*\})", tail):  # not at the commas of a list or an object
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise ValueError(f"{spec!r}: expected key=value after the name, got {pair!r}")
        try:
            arguments[key.strip()] = json.loads(value)
        except json.JSONDecodeError:
            arguments[key.strip()] = value.strip()
    return name, arguments


def label(spec: Spec) -> str:
    """How tables and figures call a spec: the form that `parse_spec` reads."""
    name, arguments = parse_spec(spec)
    written = ",".join(f"{k}={v if isinstance(v, str) else json.dumps(v, separators=(',', ':'))}" for k, v in arguments.items())
    return f"{name}:{written}" if written else name


def make_env(spec: Spec, instance: str | None = None) -> gym.Env:
    """Make a registered environment from a spec.

    Args:
        spec: an id, with arguments of ``gym.make`` if any: ``"PBMRank-v0:reward=any_click"``.
        instance: name or file of an instance; None takes the default.

    Raises:
        ValueError, TypeError: on an unknown id or a bad argument.
    """
    name, arguments = parse_spec(spec)
    known = ENVIRONMENTS | CONTEXTUAL
    if name not in known and name not in gym.registry:
        raise ValueError(unknown("environment", name, known))
    if instance is not None:
        arguments["instance"] = instance
    return gym.make(name, **arguments)


def agent_class(name: str, folder: str | Path | None = None) -> type[Agent | Learner]:
    """The class of an agent: a published one by name, or one's own as ``module:Class``.

    A class in the style of stable-baselines3, ``"stable_baselines3:PPO"`` or a subclass of its ``BaseAlgorithm``, becomes a
    `Learner`.

    Args:
        name: ``"BatchRank"``, ``"my_module:MyAgent"``, ``"my.package.module:MyAgent"``.
        folder: where modules are also looked for; None is the working folder.

    Raises:
        ValueError: there is no such agent.
    """
    if name in PUBLISHED:
        return PUBLISHED[name]
    module, colon, attribute = name.partition(":")
    if not colon:
        raise ValueError(unknown("agent", name, PUBLISHED) + "; your own is named module:Class")
    here = str(Path.cwd() if folder is None else folder)
    sys.path.insert(0, here)
    try:
        found = getattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError as error:
        if error.name is None or module.partition(".")[0] != error.name.partition(".")[0]:
            raise  # the user's module was found, and lacks something of its own
        raise ValueError(f"agent {name!r}: there is no module {module!r} (looked in {here}, too)") from None
    except AttributeError:
        raise ValueError(f"agent {name!r}: the module {module!r} has no {attribute!r}") from None
    finally:
        sys.path.remove(here)
    if isinstance(found, type) and issubclass(found, (Agent, Learner)):
        return found
    library = sys.modules.get("stable_baselines3.common.base_class")  # whose classes cannot be without it
    if library is not None and isinstance(found, type) and issubclass(found, library.BaseAlgorithm):
        return adopt(found)
    raise ValueError(
        f"agent {name!r} is not a subclass of clickgym.agents.Agent, nor an algorithm in the style of stable-baselines3"
    )


def make_agent(
    name: str | type[Agent | Learner],
    env: gym.Env,
    *,
    horizon: int | None = None,
    seed: int | np.random.SeedSequence | None = None,
    **hyperparameters: Any,
) -> Agent | Learner:
    """Build an agent for an environment.

    Sizes and the number of features come from the environment, and so does what a paper assumes known, unless it is given:
    PBM-UCB's examination probabilities, the production list of `Fixed`, the optimum of `Oracle`. The rest of the click model
    stays hidden.

    Args:
        name: as for the command line, or the class itself.
        env: the environment the agent will face.
        horizon: T; goes only to agents that take one.
        seed: of the agent's own generator.
        **hyperparameters: of the agent.

    Returns:
        The agent; its attribute ``filled_in`` says what was filled in from the environment and the horizon.

    Raises:
        ValueError: on an unknown agent, an agent that needs a horizon without one, or one that must be told what the
            environment does not know.
        TypeError: on a hyper-parameter that the agent does not take.

    Example:
        >>> import gymnasium as gym, clickgym
        >>> agent = clickgym.make_agent("PBMUCB", gym.make("PBMRank-v0"), seed=0)
        >>> sorted(agent.filled_in)
        ['examination', 'n_items', 'n_positions']
    """
    made: Any = agent_class(name) if isinstance(name, str) else name
    parameters = inspect.signature(made).parameters
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    for key in hyperparameters:
        if key not in parameters and not takes_any:
            own = [name for name in list(parameters)[2:] if name not in ("horizon", "seed")]
            raise TypeError(f"{made.__name__}: " + unknown("hyper-parameter", key, own))
    click_env: Any = env.unwrapped
    sizes = sizes_of(env)
    filled_in: dict[str, Any] = {"n_items": sizes.n_items, "n_positions": sizes.n_positions}
    for key, source in getattr(made, "told", {}).items():
        required = parameters[key].default is inspect.Parameter.empty
        if key not in hyperparameters and (required or getattr(click_env, "initial_ranking", None) is not None):
            filled_in[key] = _known(made.__name__, key, source, click_env)
    if "n_features" in parameters and "n_features" not in hyperparameters:
        if not sizes.n_features:
            raise ValueError(f"{made.__name__} ranks by features, which only contextual environments have")
        filled_in["n_features"] = sizes.n_features
    if "horizon" in parameters and "horizon" not in hyperparameters:
        if horizon is not None:
            filled_in["horizon"] = horizon
        elif parameters["horizon"].default is inspect.Parameter.empty:
            raise ValueError(f"{made.__name__} needs a horizon")
    agent: Any = made(**filled_in, **hyperparameters, seed=seed)
    agent.filled_in = filled_in
    return agent


def _known(agent: str, key: str, source: str, env: Any) -> Any:
    """What a paper assumes known of the environment, from one of the sources that an agent class may name."""
    guest = not isinstance(env, ClickEnv)
    if guest:
        raise ValueError(f"{agent} must be told {key}, which {type(env).__name__} is no ClickEnv to ask for: give {key}=...")
    contextual = isinstance(env.model, ContextualModel)
    users = env.model.base if contextual else env.model.epochs[0]  # what was known when the agent was built
    known = None
    if source == "browsing":
        known = users.browsing_weights()
    elif source == "examination":
        known = users.position_weights()
        if known is None and contextual:  # the position bias that one would measure: of candidates that are all alike,
            known = env.model.mean.examination_probabilities(range(users.n_positions))
        elif known is None and env.initial_ranking is not None:  # or on the production list
            known = users.examination_probabilities(env.initial_ranking[: users.n_positions])
    elif not contextual:
        known = env.task.optimal_ranking if source == "optimal_ranking" else env.initial_ranking
    if known is None and contextual:
        raise ValueError(f"{agent} must be told {key}, which the environment does not know: give {key}=...")
    if known is None:
        has = "no production list" if source == "initial_ranking" else "none"
        raise ValueError(f"{agent} must be told {key}: the environment has {has}, so give {key}=...")
    return known
