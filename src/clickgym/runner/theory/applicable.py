"""Bounds that apply to the pairs of a sweep, and the reasons why others do not."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..labels import parse_spec
from .bounds import BOUNDS, Values


class BoundCurve(NamedTuple):
    """A bound at the steps of curves.

    Attributes:
        bound: its name in `BOUNDS`.
        agent: the label of the agent that it is about; empty for a lower bound, which is about all.
        values: ``(n,)`` regret, infinite where the theorem says nothing.
    """

    bound: str
    agent: str
    values: Values

    @property
    def words(self) -> str:
        """A short name of the bound."""
        return f"{BOUNDS[self.bound].kind} bound{f' of {self.agent}' if self.agent else ''}"

    @property
    def label(self) -> str:
        """The legend of the bound: its name, how to read it, and its source.

        Example:
            >>> BoundCurve("pbm_ucb_upper", "PBMUCB:epsilon=0.1", np.ones(1)).label
            'upper bound of PBMUCB:epsilon=0.1, up to a constant (Lagrée et al. 2016, Theorem 9)'
        """
        bound = BOUNDS[self.bound]
        return f"{self.words}{f', {bound.remark}' if bound.remark else ''} ({bound.source})"


def applicable_bounds(
    env: gym.Env[Any, Any], agents: Mapping[str, str], steps: ArrayLike
) -> tuple[list[BoundCurve], dict[str, str]]:
    """The lower bounds of an environment and the upper bounds of agents in it.

    Args:
        env: an environment of clickgym, wrapped or not.
        agents: by label, as the command line names them, ``"CascadeDUCB:epsilon=0.6"``. A hyper-parameter that a theorem does
            not speak of leaves no bound.
        steps: ``(n,)`` sessions, each a horizon of its own.

    Returns:
        The bounds that apply; and for each agent without an upper bound, and for ``""`` if there is no lower bound, the reason.

    Example:
        >>> from clickgym.runner.make import make_env
        >>> agents = {"BatchRank": "BatchRank", "mine": "GRAB"}
        >>> curves, missing = applicable_bounds(make_env("CMRank-v0"), agents, [1000, 100_000])
        >>> [(curve.words, f"{curve.values[-1]:.2g}") for curve in curves]
        [('lower bound', '61'), ('upper bound of BatchRank', '8.5e+08')]
        >>> missing
        {'mine': 'clickgym knows none'}
    """
    model: Any = getattr(env.unwrapped, "model")  # noqa: B009
    if model.item_values is not None:
        return [], dict.fromkeys(["", *agents], "bounds are on clicks, not on item values")
    kind = model.kind
    candidates = list(_candidates(kind, agents))
    subjects = {agent for _, agent, _ in candidates}
    missing = {} if "" in subjects else {"": f"clickgym knows none for a {kind}"}
    missing |= {agent: "clickgym knows none" for agent in agents if agent not in subjects}
    curves = []
    for bound, agent, hyperparameters in candidates:
        try:
            curves.append(BoundCurve(bound, agent, _values(bound, env, np.asarray(steps), hyperparameters)))
        except ValueError as error:
            missing[agent] = str(error)
    return curves, missing


def _candidates(kind: str, agents: Mapping[str, str]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The lower bounds of a click model, then the upper bounds of agents: name, agent and its hyper-parameters."""
    for name, bound in BOUNDS.items():
        if bound.kind == "lower" and kind in bound.models:
            yield name, "", {}
    for agent, spec in agents.items():
        class_name, hyperparameters = parse_spec(spec)
        for name, bound in BOUNDS.items():
            if class_name in bound.agents:
                yield name, agent, hyperparameters


def _values(name: str, env: gym.Env[Any, Any], steps: NDArray[Any], hyperparameters: dict[str, Any]) -> Values:
    bound = BOUNDS[name].value
    beside = [key for key in hyperparameters if key not in inspect.signature(bound).parameters]
    if beside:
        raise ValueError(f"the theorem does not cover {', '.join(beside)}")
    values = bound(env, steps, **hyperparameters)
    if not np.isfinite(values).any():
        raise ValueError("the bound is infinite with these parameters")
    return values
