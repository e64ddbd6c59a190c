"""Which bounds of the theory a report draws, and what it says of the others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from ...envs import ClickEnv, load_instance
from ..labels import model_digest
from ..make import make_env
from ..theory.applicable import BoundCurve, applicable_bounds

__all__ = ["HOW_TO_READ", "Theory", "theory_of"]

HOW_TO_READ = (
    "Dotted: bounds of the theory, where each step is a horizon of its own. Lower bounds are asymptotic: compare slopes, not "
    "values."
)

UNKNOWN = "its model is a file, or has changed since; clickgym run with the same arguments and --bounds knows it"


class Theory(NamedTuple):
    """The bounds of a sweep.

    Attributes:
        curves: at the checkpoints, by environment and instance; under None the means over all instances of an environment, of
            bounds that apply to each.
        notes: what has no bound, and why.
    """

    curves: dict[tuple[str, str | None], list[BoundCurve]]
    notes: list[str]

    def all_curves(self) -> list[BoundCurve]:
        """Each bound once, wherever it applies: lower bounds first, then in the order of the agents."""
        named = {(curve.bound, curve.agent): curve for curves in self.curves.values() for curve in curves}
        return sorted(named.values(), key=lambda curve: curve.agent != "")


def theory_of(config: dict[str, Any], instances: Iterable[str] = ()) -> Theory:
    """The bounds that apply to the pairs of a finished sweep, at its checkpoints.

    Args:
        config: as `read_results` returns it.
        instances: of the sweep as it was given them; needed for those that were files, whose names the results do not keep.
    """
    files = {load_instance(given).name: given for given in instances if given.endswith(".json")}
    curves: dict[tuple[str, str | None], list[BoundCurve]] = {}
    reasons: dict[tuple[str, str], str] = {}  # by environment and agent; "" stands for all agents
    for env in config["envs"]:
        names = [name for name in config["instances"] if f"{env} {name}" in config["models"]]
        refused: dict[str, dict[str, str]] = {}  # by agent and instance
        for name in names:
            made = _made_again(config, env, name, files)
            if made is None:
                curves[env, name], missing = [], dict.fromkeys(["", *config["agents"]], UNKNOWN)
            else:
                curves[env, name], missing = applicable_bounds(made, config["agents"], config["checkpoints"])
            for agent, reason in missing.items():
                refused.setdefault(agent, {})[name] = reason
        for agent, by_instance in refused.items():
            name, reason = next(iter(by_instance.items()))
            alike = len(by_instance) == len(names) and len(set(by_instance.values())) == 1
            reasons[env, agent] = reason if alike else f"{name}: {reason}"
        together: dict[tuple[str, str], list[BoundCurve]] = {}
        for curve in (curve for name in names for curve in curves[env, name]):
            together.setdefault((curve.bound, curve.agent), []).append(curve)
        curves[env, None] = [
            BoundCurve(*key, np.mean([curve.values for curve in found], axis=0))
            for key, found in together.items()
            if len(found) == len(names)
        ]
    return Theory(curves, _notes(reasons, config))


def _made_again(config: dict[str, Any], env: str, name: str, files: dict[str, str]) -> gym.Env | None:
    """The environment of a sweep, if it can still be made: with the same instance and the same click model."""
    for instance in (None, files.get(name, name)):
        try:
            made: Any = make_env(env, instance)
        except (ValueError, TypeError, ImportError):
            continue
        if not isinstance(made.unwrapped, ClickEnv):
            return None
        if made.unwrapped.instance == name and model_digest(made.unwrapped.model) == config["models"][f"{env} {name}"]:
            return made
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
