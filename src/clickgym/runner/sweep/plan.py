"""Plans of a sweep: the runs that it is to play, and what each of its labels stands for."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, Literal, NamedTuple

import gymnasium as gym
import numpy as np

from ...agents.agent import BaseAgent, UnsuitedError
from ...core.errors import SessionError
from ...core.kernels import uncompiled
from ...core.user_modules import import_user_module
from ...envs import ClickEnv
from ...envs.env_properties import sizes_of, user_model_of
from ...measure.metrics import is_own_metric, metric_of
from ..fingerprint import fingerprint_of, warnings_of_same_users
from ..make.agents import AgentLike, ResolvedAgent, make_agent, make_resolved_agent, resolve_agent
from ..make.copies import own_copies, warn_of_shared_arguments
from ..make.environments import EnvLike, ResolvedEnv, make_env, resolve_env
from ..make.labels import expand_instances, split_label
from ..play.additional_metrics import AdditionalMetrics
from ..play.run import (
    Engine,
    check_episode,
    check_wrappers,
    engine_of,
    hints,
    play_run,
)
from ..results_folder import Cell, Config, versions

SESSIONS_PER_CALL = 20_000
"""The approximate number of sessions that a worker plays in one call, if the runs are short and
compiled.
"""


class Plan(NamedTuple):
    """A plan that says how the runs of a cell are played.

    Attributes:
        cell: the cell, with its labels and its number of runs.
        env: the environment, as returned by `resolve_env`.
        agent: the agent, as returned by `resolve_agent`.
        instance: the instance for ``gym.make``; None for the environment's default instance.
        engine: the name of the engine, as returned by `engine_of`.
        n_queries: the number of queries in the instance; each run plays one of them.
        runs_per_call: the number of runs that a worker plays in one call.
        is_of_clickgym: whether clickgym simulates the users, and not an environment from another
            package.
        ignores_seed: whether ``reset`` ignores its seed, so that each run has its own users.
    """

    cell: Cell
    env: ResolvedEnv
    agent: ResolvedAgent
    instance: Any
    engine: str
    n_queries: int
    runs_per_call: int
    is_of_clickgym: bool
    ignores_seed: bool

    @property
    def workers(self) -> Literal["threads", "processes"]:
        """The kind of workers: threads for compiled runs, which release the GIL; else processes."""
        return "threads" if self.engine == "compiled" else "processes"


def make_plans(
    envs: Mapping[str, EnvLike],
    agents: Mapping[str, AgentLike],
    instances: Any,
    horizon: int,
    runs: int,
    metrics: Sequence[str],
    engine: Engine,
) -> list[Plan]:
    """Plan the runs of a sweep, and try every agent in every environment, so that errors are raised
    before the first run.

    Args:
        envs: the environments by label.
        agents: the agents by label.
        instances, horizon, runs, metrics, engine: the arguments of `sweep`.

    Raises:
        ValueError: two instances have the same name, or an argument is invalid.
        UnsuitedError: some agents do not suit the environments; the message names all of them.
    """
    resolved_envs = {label: resolve_env(env) for label, env in envs.items()}
    resolved_agents = {label: resolve_agent(agent) for label, agent in agents.items()}
    warn_of_shared_arguments(resolved_envs | resolved_agents)
    plans: list[Plan] = []
    pairs = set[tuple[str, str]]()
    errors: dict[str, UnsuitedError] = {}
    all_hints = dict[str, None]()  # each once, in their order
    for (env_label, resolved_env), instance in product(
        resolved_envs.items(), expand_instances(instances)
    ):
        env = make_env(own_copies(resolved_env), instance)
        sizes_of(env)  # an error here comes from the environment, not from an agent
        AdditionalMetrics(metrics).check_env(env.unwrapped)
        all_hints |= dict.fromkeys(AdditionalMetrics(metrics).hints(env.unwrapped, env_label))
        check_wrappers(env, env_label)
        pair = env_label, getattr(env.unwrapped, "instance", "custom")
        if pair in pairs:
            raise ValueError(
                f"two instances have the name {pair[1]!r}; put a label before one of them, as in "
                "mine=users.json"
            )
        pairs.add(pair)
        model = user_model_of(env)
        ignores_seed = model is None and _ignores_seed(env)
        if ignores_seed:
            warnings.warn(
                f"{env_label}: reset ignores its seed, so agents do not have the same users, and "
                "the table has no differences and no p; in reset, call super().reset(seed=seed), "
                "and draw all random numbers from self.np_random",
                stacklevel=3,
            )
        n_queries = model.n_queries if model else 1
        changes = tuple(model.starts[1:]) if model else ()
        for label, resolved_agent in resolved_agents.items():
            try:
                agent, engine_name = _try_agent(
                    resolved_agent, env, label, horizon, metrics, engine
                )
            except UnsuitedError as error:
                errors.setdefault(label, error)
                continue
            all_hints |= dict.fromkeys(hints(agent, env, horizon, env_label))
            # Runs can share an environment if a reset with a seed restarts its users.
            starts_anew = engine_name == "compiled" and type(env.unwrapped) is ClickEnv
            runs_per_call = max(SESSIONS_PER_CALL // horizon, 1) if starts_anew else 1
            plan = Plan(
                cell=Cell(*pair, label, runs, changes),
                env=resolved_env,
                agent=resolved_agent,
                instance=instance,
                engine=engine_name,
                n_queries=n_queries,
                runs_per_call=runs_per_call,
                is_of_clickgym=model is not None,
                ignores_seed=ignores_seed,
            )
            plans.append(plan)
        if not errors:
            check_episode(env, horizon, env_label)
    if errors:
        raise UnsuitedError.of_all(errors)
    for hint in all_hints:
        warnings.warn(hint, stacklevel=3)
    return plans


def _ignores_seed(env: gym.Env) -> bool:
    """Return whether an environment from another package gives other clicks on the same lists after
    it was reset with the same seed.
    """
    try:
        with uncompiled():  # loading the kernels of Random would take a second
            first, again = (
                play_run(make_agent("Random", env, seed=0), env, "python", np.arange(1, 21), seed=0)
                for _ in range(2)
            )
    except SessionError:  # the runs will report it, with their agent
        return False
    return not np.array_equal(first.clicks, again.clicks)


def _try_agent(
    resolved_agent: ResolvedAgent,
    env: Any,
    label: str,
    horizon: int,
    metrics: Sequence[str],
    engine: Engine,
) -> tuple[BaseAgent, str]:
    """Return a new agent, and the engine that runs it in an environment. Errors name its label."""
    try:
        agent = make_resolved_agent(own_copies(resolved_agent), env, horizon, 0)
        engine_name = engine_of(agent, env, engine)
        AdditionalMetrics(metrics).check_agent(agent)
    except ValueError as error:
        if type(error) is not ValueError or label in str(error):
            raise
        raise ValueError(f"{label}: {error}") from error
    return agent, engine_name


def config_of(
    plans: Sequence[Plan],
    envs: Mapping[str, EnvLike],
    agents: Mapping[str, AgentLike],
    *,
    horizon: int,
    checkpoints: list[int],
    metrics: Sequence[str],
    seed: int,
) -> Config:
    """Return the configuration of a sweep, with the fingerprints of all labels. A warning names two
    instances with the same users.

    Args:
        plans: the plans that `make_plans` returned.
        envs: the environments by label.
        agents: the agents by label.
        horizon, checkpoints, metrics, seed: as in `Config`.
    """
    env_of = {plan.cell.env: plan.env for plan in plans}
    agent_of = {plan.cell.agent: plan.agent for plan in plans}
    instance_of = {  # the default instance of an environment stands for its own name
        plan.cell.instance: plan.cell.instance if plan.instance is None else plan.instance
        for plan in plans
    }
    metric_by_column = {label or name: metric_of(name) for label, name in map(split_label, metrics)}
    packages = [name for maker, _ in agent_of.values() for name in getattr(maker, "packages", ())]
    instance_fingerprints = {
        label: fingerprint_of(instance, instance) for label, instance in instance_of.items()
    }
    for warning in warnings_of_same_users(instance_fingerprints):
        warnings.warn(warning, stacklevel=3)
    return Config(
        versions=versions(packages),
        horizon=horizon,
        checkpoints=checkpoints,
        metrics=[*metrics],
        own_metrics={
            name: fingerprint_of(name, import_user_module("metric", name))
            for _, name in map(split_label, metrics)
            if is_own_metric(name)
        },
        shares=[column for column, metric in metric_by_column.items() if metric.is_share],
        less_is_better=[
            column for column, metric in metric_by_column.items() if metric.less_is_better
        ],
        descriptions={
            label or name: str(metric_of(name).description)
            for label, name in map(split_label, metrics)
            if is_own_metric(name)
        },
        seed=seed,
        envs={label: fingerprint_of(env, env_of[label]) for label, env in envs.items()},
        instances=instance_fingerprints,
        agents={label: fingerprint_of(agent, agent_of[label]) for label, agent in agents.items()},
        cells=[plan.cell for plan in plans],
    )
