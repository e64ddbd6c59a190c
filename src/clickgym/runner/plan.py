"""The plan of a sweep: its labels are resolved, every agent is tried in every environment, and the
runs are planned as cells of a table.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, Literal, NamedTuple

import gymnasium as gym

from ..agents.agent import UnsuitedError
from ..core.checks import is_sequence, short
from ..envs import ClickEnv, Users
from ..envs.any_env import sizes_of, users_of
from ..envs.instances.instance import shipped_instances
from .config import Cell, Config, Setting, check_instances
from .identity import identities, is_built_in, loaded, own_files
from .make import (
    AgentRecipe,
    EnvRecipe,
    agent_recipe,
    env_recipe,
    make_agent,
    make_env,
    warn_of_texts,
)
from .names import AgentLike, EnvLike, spec_of
from .play.measuring import Metrics
from .play.pair import Engine, check_episode, engine_of, features_warning, ignores_features

SHIPPED: Literal["shipped"] = "shipped"
"""The name that stands for all shipped instances."""
AT_ONCE = 20_000
"""Sessions of small compiled runs that are played in one batch."""


Workers = Literal["threads", "processes"]
Labels = tuple[str, str, str]
"""Of an environment, an instance and an agent."""


class Job(NamedTuple):
    """The data that all runs of a sweep share. joblib sends it to worker processes; threads share
    it.

    Attributes:
        setting: of the sweep.
        engine: as it was asked for.
        envs, agents: recipes by label.
        instances: what is taken as an instance, by its name in results.
        queries: of each instance with several queries their number.
        users: the classes of users that are not of the package, by name: another process does not
            know those of a script or a notebook.
    """

    setting: Setting
    engine: Engine
    envs: Mapping[str, EnvRecipe]
    agents: Mapping[str, AgentRecipe]
    instances: Mapping[str, Any]
    queries: Mapping[str, int]
    users: Mapping[str, type[Users]]


class Batches(NamedTuple):
    """How the runs of a cell are played.

    Attributes:
        workers: threads for compiled runs, which do not hold Python's lock.
        size: the runs of a batch, which a worker plays in one call.
    """

    workers: Workers
    size: int


class Plan(NamedTuple):
    """The runs that a sweep is to play.

    Attributes:
        job: what all runs share.
        config: of the results, with the cells.
        batches: by the labels of a cell, how its runs are played.
        own: of the labels that have one the file of your own class or function; None if it stands
            in a notebook.
        code: hashes of your own agents and environments: workers that know others are left.
    """

    job: Job
    config: Config
    batches: Mapping[Labels, Batches]
    own: Mapping[str, Path | None]
    code: str


def plan_of(
    setting: Setting,
    envs: Mapping[str, EnvLike],
    agents: Mapping[str, AgentLike],
    instances: Any,
    runs: int,
    engine: Engine,
    *,
    is_kept: bool,
) -> Plan:
    """Resolve the labels, try every agent in every environment, and plan all runs.

    Args:
        setting: of the sweep.
        envs, agents: by label.
        instances, runs, engine: as in `clickgym.sweep`.
        is_kept: whether the results go into a folder, so that a warning names what has no identity.

    Raises:
        ValueError: two instances are the same users, and would count as two.
        UnsuitedError: naming all agents that cannot play.
    """
    env_recipes = {label: env_recipe(env) for label, env in envs.items()}
    agent_recipes = {label: agent_recipe(agent) for label, agent in agents.items()}
    tried = _try_all(setting, env_recipes, agent_recipes, instances, engine)

    # What is suspicious, and still played.
    for label, recipe in [*env_recipes.items(), *agent_recipes.items()]:
        warn_of_texts(label, recipe)
    for env_label, labels in tried.ignoring.items():
        warnings.warn(features_warning(dict.fromkeys(labels), env_label), stacklevel=3)

    # The cells of the table, each with the key of its runs.
    of_env = identities("env", env_recipes, warns=is_kept)
    of_agent = identities("agent", agent_recipes, warns=is_kept)
    of_instance = identities(
        "instance",
        {name: loaded(name if used is None else used) for name, used in tried.named.items()},
        warns=is_kept,
    )
    cells = []
    for env, name, agent in tried.batches:
        key = setting.key(name, of_env[env], of_instance[name], of_agent[agent])
        cells.append(Cell(env, name, agent, key, runs))

    # What describes the sweep, and what workers get.
    typed = {name: used if isinstance(used, str) else None for name, used in tried.named.items()}
    config = Config(
        setting=setting,
        envs={label: spec_of(env) for label, env in envs.items()},
        instances=typed,
        agents={label: spec_of(agent) for label, agent in agents.items()},
        identities={"envs": of_env, "instances": of_instance, "agents": of_agent},
        cells=cells,
        queries=tried.queries,
    )
    check_instances([config])
    classes = {name: users for name, users in Users.classes.items() if not is_built_in(users)}
    job = Job(setting, engine, env_recipes, agent_recipes, tried.named, tried.queries, classes)
    own = own_files(env_recipes) | own_files(agent_recipes)
    code = [hashes[label] for hashes in (of_env, of_agent) for label in own if label in hashes]
    return Plan(job, config, tried.batches, own, repr(code))


# ------------------------------------------------------------------------------------------ trying


class Tried(NamedTuple):
    """What shows when every agent is made once in every environment and instance.

    Attributes:
        named: what is taken as an instance, by its name in results.
        queries: of each instance with several queries their number.
        batches: by the labels of a cell, how its runs are played.
        ignoring: of each environment with features, the agents that do not use them.
    """

    named: dict[str, Any]
    queries: dict[str, int]
    batches: dict[Labels, Batches]
    ignoring: dict[str, list[str]]


def _try_all(
    setting: Setting,
    envs: Mapping[str, EnvRecipe],
    agents: Mapping[str, AgentRecipe],
    instances: Any,
    engine: Engine,
) -> Tried:
    """Make every agent in every environment; arguments and errors as in `plan_of`."""
    tried, metrics = Tried({}, {}, {}, {}), Metrics(setting.metrics)
    unsuited: dict[str, UnsuitedError] = {}
    for (env_label, of_env), instance in product(envs.items(), _instances(instances)):
        env = make_env(of_env, instance)
        sizes_of(env)  # whatever is refused here is no agent's fault
        metrics.check_env(env.unwrapped)
        name = getattr(env.unwrapped, "instance", "custom")
        tried.named[name] = _in_place(instance)
        if n_queries := _queries_of(env, setting.horizon, env_label, name):
            tried.queries[name] = n_queries
        for label, recipe in agents.items():
            try:
                agent = make_agent(recipe, env, horizon=setting.horizon, seed=0)
                chosen = engine_of(agent, env, engine)
                metrics.check_agent(agent)
            except UnsuitedError as error:
                unsuited.setdefault(label, error)
                continue
            except ValueError as error:
                if type(error) is not ValueError:  # of another package, with more to it
                    raise
                names_it = label in str(error)
                raise ValueError(str(error) if names_it else f"{label}: {error}") from error
            if ignores_features(agent, env):
                tried.ignoring.setdefault(env_label, []).append(label)
            if (env_label, name, label) in tried.batches:
                raise ValueError("two instances have the same name; give each its own name")
            tried.batches[env_label, name, label] = _batches_of(env, chosen, setting.horizon)
    if unsuited:
        raise UnsuitedError.of_all(unsuited)
    return tried


def _instances(instances: Any) -> Sequence[Any]:
    """The instances of a sweep; None is the default of each environment."""
    if instances is None:
        return [None]
    listed = [SHIPPED] if isinstance(instances, str) and instances == SHIPPED else instances
    if not (is_sequence(listed) and len(listed)):
        raise TypeError(
            f'instances is {short(instances)}; expected a list of instances, or "{SHIPPED}"'
        )
    used: list[Any] = []
    for instance in listed:
        is_all = isinstance(instance, str) and instance == SHIPPED
        used += shipped_instances() if is_all else [instance]
    return used


def _in_place(instance: Any) -> Any:
    """An instance; a file by its whole path, because an agent may change the working folder."""
    is_file = isinstance(instance, str | os.PathLike) and str(instance).endswith(".json")
    return str(Path(instance).absolute()) if is_file else instance


def _queries_of(env: Any, horizon: int, label: str, name: str) -> int:
    """How many queries the users of an environment have, if several; else 0.

    Raises:
        ValueError: a run would need more sessions than its query has.

    Warns:
        UserWarning: the users first change after the horizon.
    """
    check_episode(env, horizon, label)
    users = users_of(env)
    _, *changes = (0,) if users is None else users.starts
    if changes and changes[0] >= horizon:
        warnings.warn(
            f"the users of {label} ({name}) first change after session {changes[0]:,}, but a run "
            f"has only {horizon:,} sessions",
            stacklevel=5,
        )
    return users.n_queries if users is not None and users.n_queries > 1 else 0


def _batches_of(env: gym.Env, engine: str, horizon: int) -> Batches:
    """How the runs of a pair are played: small compiled ones several in a batch, if the environment
    starts anew with each seed.
    """
    if engine != "compiled":
        return Batches("processes", 1)
    starts_anew = type(env.unwrapped) is ClickEnv
    return Batches("threads", max(AT_ONCE // horizon, 1) if starts_anew else 1)
