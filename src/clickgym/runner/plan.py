"""The plan of a sweep: what its labels stand for, made once to see that it fits, and its cells."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ..agents.agent import UnsuitedError
from ..core.checks import is_sequence, short
from ..envs import ClickEnv, Users
from ..envs.any_env import sizes_of, users_of
from ..envs.instances.instance import shipped_instances
from .config import Cell, Config, Setting, provenance
from .identity import identities, is_built_in, loaded, own_files
from .make import (
    AgentMaker,
    EnvMaker,
    agent_maker,
    env_maker,
    make_agent,
    make_env,
    warn_of_texts,
    with_label,
)
from .names import AgentLike, EnvLike, own_label
from .play.metrics import Metrics
from .play.pair import Engine, check_episode, engine_of, ignores_features, warn_of_features

SHIPPED: Literal["shipped"] = "shipped"
"""The name that stands for all shipped instances."""
AT_ONCE = 20_000
"""Sessions of small compiled runs that are played in one call."""


Labels = tuple[str, str, str]
"""Of an environment, an instance and an agent."""


class Job(NamedTuple):
    """The data that all runs of a sweep share. joblib sends it to worker processes; threads share
    it.

    Attributes:
        setting: of the sweep.
        engine: as it was asked for.
        envs, agents: what makes the environments and the agents, by label.
        instances: what is taken as an instance, by its name in results.
        queries: of each instance with several queries their number.
        users: the classes of users that are not of the package, by name: another process does not
            know those of a script or a notebook.
    """

    setting: Setting
    engine: Engine
    envs: Mapping[str, EnvMaker]
    agents: Mapping[str, AgentMaker]
    instances: Mapping[str, Any]
    queries: Mapping[str, int]
    users: Mapping[str, type[Users]]


class Plan(NamedTuple):
    """The runs that a sweep is to play.

    Attributes:
        job: what all runs share.
        config: of the results, with the cells.
        together: by the labels of a cell, how many of its runs are played in one call; 0 where
            worker processes play them, one by one.
        own: of the labels that have one the file of your own class or function; None if it stands
            in a notebook.
        code: hashes of your own agents and environments: workers that know others are left.
    """

    job: Job
    config: Config
    together: dict[Labels, int]
    own: dict[str, Path | None]
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
    """Make every environment and every agent once, to see that they fit, and plan all runs.

    Args:
        setting: of the sweep.
        envs, agents: by label.
        instances, runs, engine: as in `clickgym.sweep`.
        is_kept: whether the results go into a folder, where what has no identity is told.

    Raises:
        UnsuitedError: naming all agents that cannot play.
    """
    env_makers = {label: env_maker(env) for label, env in envs.items()}
    agent_makers = {label: agent_maker(agent) for label, agent in agents.items()}
    metrics, named, queries = Metrics(setting.metrics), dict[str, Any](), dict[str, int]()
    together: dict[Labels, int] = {}
    unsuited: dict[str, UnsuitedError] = {}
    ignoring: dict[str, dict[str, None]] = {}
    for env_label, maker in env_makers.items():
        for instance in _instances(instances):
            env = make_env(maker, instance)
            sizes_of(env)  # whatever is refused here is no agent's fault
            metrics.check_env(env.unwrapped)
            name = getattr(env.unwrapped, "instance", "custom")
            named[name] = _in_place(instance)
            _check_users(env, setting.horizon, env_label, name, queries)
            for label, agent_pair in agent_makers.items():
                try:
                    agent = make_agent(agent_pair, env, horizon=setting.horizon, seed=0)
                    chosen = engine_of(agent, env, engine)
                    metrics.check_agent(agent)
                except UnsuitedError as error:
                    unsuited.setdefault(label, error)
                    continue
                except ValueError as error:
                    if type(error) is not ValueError:  # of another package, with more to it
                        raise
                    raise with_label(label, agent_pair, error) from error
                if ignores_features(agent, env):
                    ignoring.setdefault(env_label, {})[label] = None
                if (env_label, name, label) in together:
                    raise ValueError("two instances have the same name; give each its own name")
                starts_anew = type(env.unwrapped) is ClickEnv  # with each seed
                size = max(AT_ONCE // setting.horizon, 1) if starts_anew else 1
                together[env_label, name, label] = size if chosen == "compiled" else 0
    if unsuited:
        raise UnsuitedError.of_all(unsuited)
    for label, pair in [*env_makers.items(), *agent_makers.items()]:
        warn_of_texts(label, pair)
    for env_label, labels in ignoring.items():
        warn_of_features(labels, env_label)
    of_env = identities("env", env_makers, warns=is_kept)
    of_agent = identities("agent", agent_makers, warns=is_kept)
    used = {name: loaded(name if it is None else it) for name, it in named.items()}
    of_instance = identities("instance", used, warns=is_kept)
    keys = {
        (env_label, name, label): setting.key(
            name, of_env[env_label], of_instance[name], of_agent[label]
        )
        for env_label, name, label in together
    }
    config = Config(
        **setting.setting,
        envs={label: own_label(env) for label, env in envs.items()},
        instances={name: it if isinstance(it, str) else None for name, it in named.items()},
        agents={label: own_label(agent) for label, agent in agents.items()},
        identities={"envs": of_env, "instances": of_instance, "agents": of_agent},
        cells=[Cell(*labels, key, runs) for labels, key in keys.items()],
        queries=queries,
        **provenance(),
    )
    users = {it: kind for it, kind in Users.classes.items() if not is_built_in(kind)}
    job = Job(setting, engine, env_makers, agent_makers, named, queries, users)
    own = own_files(env_makers) | own_files(agent_makers)
    code = [of[label] for of in (of_env, of_agent) for label in of if label in own]
    return Plan(job, config, together, own, repr(code))


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


def _check_users(env: Any, horizon: int, label: str, name: str, queries: dict[str, int]) -> None:
    """Check that the users of an environment suit the horizon, and note how many queries they
    have.
    """
    users = users_of(env)
    _, *changes = (0,) if users is None else users.starts
    if changes and changes[0] >= horizon:
        warnings.warn(
            f"the users of {label} ({name}) first change after session {changes[0]:,}, but a run "
            f"has only {horizon:,} sessions",
            stacklevel=4,
        )
    if users is not None and users.n_queries > 1:
        queries[name] = users.n_queries
    check_episode(env, horizon, label)
