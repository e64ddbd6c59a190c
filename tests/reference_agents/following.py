"""Runs in which a reference follows an agent session by session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from clickgym.agents import CompiledAgent
from clickgym.envs import ClickModel

from .reference import Reference


def as_plain(state: Any) -> dict[str, Any]:
    """Return a state as lists, which == can compare. Arrays that grow are cut to their filled part,
    because their size depends on the allocated memory.
    """
    arrays = {name: np.asarray(value).tolist() for name, value in state._asdict().items()}
    if "n_leaders" in arrays:
        filled = arrays["n_leaders"][0]
        arrays |= {name: arrays[name][:filled] for name in ("leaders", "counts")}
    return arrays


def follow(
    agent: CompiledAgent,
    reference: Reference,
    model: ClickModel | Callable[[int], ClickModel],
    sessions: int,
    seed: int = 1,
    n_features: int = 0,
) -> list[list[int]]:
    """Run an agent, check that its reference allows each list and agrees with the agent's state
    after each session, and return the lists.

    Args:
        agent: the agent, which has not yet ranked.
        reference: the agent's reference.
        model: the click model, or a function from the number of a session to its click model.
        sessions, seed: the number of sessions, and the seed of the clicks and features.
        n_features: the number of features, for contextual agents; the features are unrelated to the
            clicks.
    """
    rng, lists = np.random.default_rng(seed), []
    name = type(reference).__name__
    for session in range(sessions):
        features = rng.random((agent.n_items, n_features)) - 0.3 if n_features else None
        observation = {"features": features, "state": session % 2}
        ranking = agent.rank(observation)
        lists.append(ranking.tolist())
        assert reference.allows(lists[-1], getattr(agent, "state", None), features), (
            f"session {session + 1}: {agent!r} shows {ranking}, which {name} does not allow"
        )
        users = model(session) if callable(model) else model
        clicks = users.sample(ranking, rng)
        agent.update(observation, ranking, clicks, float(clicks.sum()))
        reference.learn(lists[-1], clicks.tolist())
        assert reference.agrees(getattr(agent, "state", None)), (
            f"after session {session + 1}, the state of {agent!r} differs from that of {name}"
        )
    return lists
