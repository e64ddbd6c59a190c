"""The theoretical bounds that a report draws, and its notes on bounds that do not apply."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from ...envs import load_instance
from .. import words
from ..labels import PUBLISHED, parse_spec, users_digest
from ..make import place_of
from ..results import spec_of
from ..theory.applicable import BoundCurve, applicable_bounds

HOW_TO_READ = (
    "Dotted: bounds of the theory, where each step is a horizon of its own. Lower bounds are asymptotic: compare slopes, not "
    "values."
)

UNKNOWN = "its model is a file, or has changed since; clickgym run with the same arguments and --bounds knows it"


class Theory(NamedTuple):
    """The bounds of a sweep, and notes on bounds that do not apply.

    Attributes:
        curves: at the checkpoints, by environment and instance; under None the means over all instances of an environment, of
            bounds that apply to each.
        notes: what has no bound, and why.
    """

    curves: dict[tuple[str, str | None], list[BoundCurve]]
    notes: list[str]

    def all_curves(self) -> list[BoundCurve]:
        """Each bound once, for all environments: lower bounds first, then in the order of the agents."""
        unique = {(curve.bound, curve.agent): curve for curves in self.curves.values() for curve in curves}
        return sorted(unique.values(), key=lambda curve: curve.agent != "")


def theory_of(config: dict[str, Any], instances: Iterable[str] = ()) -> Theory:
    """The bounds that apply to the pairs of a finished sweep, at its checkpoints.

    Args:
        config: as `read_results` returns it.
        instances: of the sweep as it was given them; needed for those that were files, whose names the results do not keep.
    """
    files = {load_instance(name).name: name for name in instances if name.endswith(".json")}
    curves: dict[tuple[str, str | None], list[BoundCurve]] = {}
    reasons: dict[tuple[str, str], str] = {}  # by environment and agent; "" stands for all agents
    for env in config["envs"]:
        missing: dict[str, dict[str, str]] = {}  # by instance and agent
        for name in words.instances_of(config, env):
            curves[env, name], missing[name] = _bounds(config, env, name, files)
        curves[env, None] = _means([curves[env, name] for name in missing])
        reasons |= {(env, agent): reason for agent, reason in _by_agent(missing)}
    return Theory(curves, _notes(reasons, config))


def _bounds(config: dict[str, Any], env: str, name: str, files: dict[str, str]) -> tuple[list[BoundCurve], dict[str, str]]:
    """The bounds on an instance, and for each agent without one the reason."""
    environment = _environment(config, env, name, files)
    if environment is None:
        return [], dict.fromkeys(["", *config["agents"]], UNKNOWN)
    specs = {label: spec_of(config, "agents", label) for label in config["agents"]}
    specs = {label: spec for label, spec in specs.items() if parse_spec(spec)[0] in PUBLISHED}
    return applicable_bounds(environment, specs, config["checkpoints"])


def _means(instances: list[list[BoundCurve]]) -> list[BoundCurve]:
    """The means over instances of the bounds that apply to each."""
    values: dict[tuple[str, str], list[Any]] = {}
    for curve in (curve for curves in instances for curve in curves):
        values.setdefault((curve.bound, curve.agent), []).append(curve.values)
    return [BoundCurve(*key, np.mean(each, axis=0)) for key, each in values.items() if len(each) == len(instances)]


def _by_agent(missing: dict[str, dict[str, str]]) -> Iterator[tuple[str, str]]:
    """The agents without a bound on some instance; the reason names the first such instance, unless it is that of all."""
    for agent in dict.fromkeys(agent for reasons in missing.values() for agent in reasons):
        reasons = {name: of_agents[agent] for name, of_agents in missing.items() if agent in of_agents}
        name, reason = next(iter(reasons.items()))
        alike = len(reasons) == len(missing) and len(set(reasons.values())) == 1
        yield agent, reason if alike else f"{name}: {reason}"


def _environment(config: dict[str, Any], env: str, name: str, files: dict[str, str]) -> gym.Env | None:
    """The environment of a sweep, if it can still be made: with the same instance and the same click model."""
    spec = spec_of(config, "envs", env)
    if parse_spec(spec)[0] not in gym.registry:
        return None
    for instance in (None, files.get(name, name)):
        try:
            place = place_of(spec).at(instance)
            users = place.core
        except (ValueError, TypeError, ImportError):
            continue
        if place.is_guest:
            return None
        if users.instance == name and users_digest(env, spec, users) == config["models"][f"{env} {name}"]:
            return place.env
    return None


def _notes(reasons: dict[tuple[str, str], str], config: dict[str, Any]) -> list[str]:
    """One line for each reason: what it leaves without a bound, and in which environments."""
    places: dict[tuple[str, str], list[str]] = {}
    for (env, agent), reason in reasons.items():
        places.setdefault((agent, reason), []).append(env)
    alike: dict[tuple[str, str], list[str]] = {}
    for (agent, reason), envs in places.items():
        within = "" if envs == config["envs"] else f" in {', '.join(envs)}"
        alike.setdefault((within, reason), []).append(agent)
    return [f"no {' and no '.join(_kinds(agents))}{within}: {reason}" for (within, reason), agents in alike.items()]


def _kinds(agents: list[str]) -> list[str]:
    of_agents = ", ".join(filter(None, agents))
    return (["lower bound"] if "" in agents else []) + ([f"upper bound of {of_agents}"] if of_agents else [])
