"""The plan of a sweep: its labels are resolved, and every agent is tried in every environment."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, Literal, NamedTuple

from ..agents.agent import UnsuitedError
from ..core.checks import is_sequence, short
from ..envs import ClickEnv
from ..envs.any_env import sizes_of, users_of
from ..envs.instances.instance import shipped_instances
from .config import Cell, Config, check_cells
from .identity import identities, loaded
from .make import AgentRecipe, EnvRecipe, agent_recipe, env_recipe, make_agent, make_env
from .names import AgentLike, EnvLike, spec_of
from .play.measuring import Metrics
from .play.pair import Engine, check_episode, engine_of, features_warning, ignores_features

SHIPPED: Literal["shipped"] = "shipped"
"""The name that stands for all shipped instances."""
AT_ONCE = 20_000
"""Sessions of small compiled runs that are played in one batch."""

Labels = tuple[str, str, str]
"""Of an environment, an instance and an agent."""


class Pair(NamedTuple):
    """What plays the runs of a cell.

    Attributes:
        env, agent: recipes.
        instance: what ``gym.make`` takes as one.
        engine: as it was asked for.
        workers: threads for compiled runs, which do not hold Python's lock.
        at_once: the runs that a worker plays in one call.
        n_queries: of the instance.
    """

    env: EnvRecipe
    agent: AgentRecipe
    instance: Any
    engine: Engine
    workers: Literal["threads", "processes"]
    at_once: int
    n_queries: int


def plan_of(
    envs: Mapping[str, EnvLike],
    agents: Mapping[str, AgentLike],
    instances: Any,
    runs: int,
    seed: int,
    engine: Engine,
    setting: Mapping[str, Any],
    *,
    is_kept: bool,
) -> tuple[Config, dict[Labels, Pair]]:
    """Resolve the labels, and try every agent in every environment.

    Args:
        envs, agents: by label.
        instances, runs, seed, engine: as in `clickgym.sweep`.
        setting: of the sweep, as in `Config`.
        is_kept: whether the results go into a folder, so that a warning names what has no identity.

    Returns:
        What the sweep is of, and what plays each cell.

    Raises:
        ValueError: two instances are the same users, and would count as two.
        UnsuitedError: naming all agents that cannot play.
    """
    of_env = {label: env_recipe(env) for label, env in envs.items()}
    of_agent = {label: agent_recipe(agent) for label, agent in agents.items()}
    used, pairs = _try_all(of_env, of_agent, _instances(instances), engine, setting)
    objects = {name: loaded(name if given is None else given) for name, given in used.items()}
    known = {
        "env": identities("env", of_env, is_kept=is_kept),
        "instance": identities("instance", objects, is_kept=is_kept),
        "agent": identities("agent", of_agent, is_kept=is_kept),
    }
    cells = []
    for labels, pair in pairs.items():
        hashes = [known[what][label] for what, label in zip(known, labels, strict=True)]
        cells.append(Cell(*labels, hashes, runs, pair.n_queries, seed))
    check_cells(cells)
    config = Config(
        **setting,
        envs={label: spec_of(env) for label, env in envs.items()},
        instances={name: given if isinstance(given, str) else None for name, given in used.items()},
        agents={label: spec_of(agent) for label, agent in agents.items()},
        cells=cells,
    )
    return config, pairs


def _try_all(
    envs: Mapping[str, EnvRecipe],
    agents: Mapping[str, AgentRecipe],
    instances: Sequence[Any],
    engine: Engine,
    setting: Mapping[str, Any],
) -> tuple[dict[str, Any], dict[Labels, Pair]]:
    """Make every agent in every environment; arguments and errors as in `plan_of`.

    Returns:
        What is taken as an instance, by its name in results; and the pairs.
    """
    metrics, horizon = Metrics(setting["metrics"]), setting["horizon"]
    used: dict[str, Any] = {}
    pairs: dict[Labels, Pair] = {}
    unsuited: dict[str, UnsuitedError] = {}
    ignoring: dict[str, dict[str, None]] = {}
    for (env_label, of_env), instance in product(envs.items(), instances):
        env = make_env(of_env, instance)
        sizes_of(env)  # whatever is refused here is no agent's fault
        metrics.check_env(env.unwrapped)
        name = getattr(env.unwrapped, "instance", "custom")
        used[name], n_queries = instance, _queries_of(env, horizon, env_label, name)
        for label, recipe in agents.items():
            try:
                agent = make_agent(recipe, env, horizon=horizon, seed=0)
                chosen = engine_of(agent, env, engine)
                metrics.check_agent(agent)
            except UnsuitedError as error:
                unsuited.setdefault(label, error)
                continue
            except ValueError as error:
                if type(error) is not ValueError or label in str(error):
                    raise
                raise ValueError(f"{label}: {error}") from error
            if ignores_features(agent, env):
                ignoring.setdefault(env_label, {})[label] = None
            if (env_label, name, label) in pairs:
                raise ValueError("two instances have the same name; give each its own name")
            is_compiled = chosen == "compiled"
            starts_anew = is_compiled and type(env.unwrapped) is ClickEnv  # with each seed
            pairs[env_label, name, label] = Pair(
                *(of_env, recipe, instance, engine),
                workers="threads" if is_compiled else "processes",
                at_once=max(AT_ONCE // horizon, 1) if starts_anew else 1,
                n_queries=n_queries,
            )
    if unsuited:
        raise UnsuitedError.of_all(unsuited)
    for env_label, labels in ignoring.items():
        warnings.warn(features_warning(labels, env_label), stacklevel=4)
    return used, pairs


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


def _queries_of(env: Any, horizon: int, label: str, name: str) -> int:
    """How many queries the users of an environment have.

    Raises:
        ValueError: a run would need more sessions than its query has.

    Warns:
        UserWarning: the users first change after the horizon.
    """
    check_episode(env, horizon, label)
    users = users_of(env)
    if users is None:
        return 1
    if users.starts[1:] and users.starts[1] >= horizon:
        warnings.warn(
            f"the users of {label} ({name}) first change after session {users.starts[1]:,}, but a "
            f"run has only {horizon:,} sessions",
            stacklevel=5,
        )
    return users.n_queries
