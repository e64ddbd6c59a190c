"""`follow_late` plays an agent beside a reference with ``show``, ``arrive`` and ``replace``, as a `Remembering` one has.

Clicks come later, in another order, cut off, void or never; items are replaced, and some cannot be shown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from clickgym.agents import CompiledAgent
from clickgym.envs import ClickModel

from .reference import Clicks


def follow_late(
    agent: CompiledAgent,
    reference: Any,
    model: ClickModel | Callable[[int], ClickModel],
    sessions: int,
    due: Callable[[int, np.random.Generator], int],
    *,
    lost: float = 0.1,
    cut: float = 0.0,
    void: float = 0.0,
    churn: float = 0.0,
    masked: float = 0.0,
    foreign: float = 0.0,
    seed: int = 1,
) -> None:
    """Play an agent, whose reference must allow each list and be in its state whenever clicks have come.

    Args:
        agent, reference, model, sessions, seed: as for `follow`.
        due: the session at whose end the clicks of a session come, from its number and a generator.
        lost, cut, void, churn, masked, foreign: probabilities: that clicks never come, that only a random front of the list was
            shown, that an item was replaced of which the agent is told by ``void`` alone, that one is replaced after a session,
            that a random set of items cannot be shown, and that somebody else's list comes beside.
    """
    rng = np.random.default_rng(seed)
    age, waiting = [0] * agent.n_items, dict[int, list[Any]]()
    for session in range(1, sessions + 1):
        available = np.ones(agent.n_items, bool)
        if rng.random() < masked:
            available = rng.permutation(agent.n_items) < rng.integers(agent.n_positions, agent.n_items + 1)
        ranking = last = agent.rank(None, available if masked else None)
        assert available[ranking].all()
        assert len(set(ranking.tolist())) == agent.n_positions
        shown = reference.show(ranking.tolist(), agent.state, set(np.flatnonzero(available).tolist()))
        assert shown is not None, f"session {session}: {ranking}"
        users = model(session) if callable(model) else model
        clicks = users.sample(ranking, rng).tolist()
        if rng.random() < cut:
            n_shown = int(rng.integers(agent.n_positions + 1))
            clicks[n_shown:] = [-1] * (agent.n_positions - n_shown)
        flags = [bool(flag) for flag in (rng.random(agent.n_positions) < 0.5) & (rng.random() < void)]
        if rng.random() >= lost:
            ages = [age[item] for item in ranking]
            waiting.setdefault(due(session, rng), []).append((agent.display, ranking, clicks, flags, ages, shown))
        if rng.random() < churn:
            replaced = int(rng.integers(agent.n_items))
            age[replaced] += 1
            agent.replace(replaced)
            reference.replace(replaced)
        for display, ranking, clicks, flags, ages, memory in waiting.pop(session, []):
            agent.update(None, ranking, clicks, display=display, void=np.array(flags) if any(flags) else None)
            now = [flag or age[item] != then for flag, item, then in zip(flags, ranking, ages, strict=True)]
            reference.arrive(memory, Clicks(ranking.tolist(), clicks, now))
            assert reference.agrees(agent.state), f"session {session}, display {display}"
        if rng.random() < foreign:
            ranking = rng.permutation(agent.n_items)[: agent.n_positions]
            clicks = users.sample(ranking, rng).tolist()
            if ranking.tolist() != last.tolist():  # which would be the agent's own
                agent.update(None, ranking, clicks)
                reference.arrive(None, Clicks(ranking.tolist(), clicks, [False] * agent.n_positions))
                assert reference.agrees(agent.state), f"session {session}, a list of somebody else"


def in_batches(size: int) -> Callable[[int, np.random.Generator], int]:
    """All clicks of ``size`` sessions at the end of the last of them."""
    return lambda session, rng: -(-session // size) * size


def at_random(mean: float) -> Callable[[int, np.random.Generator], int]:
    """After a geometric delay, which may be 0."""
    return lambda session, rng: session + int(rng.geometric(1 / (1 + mean))) - 1


def after(delay: int) -> Callable[[int, np.random.Generator], int]:
    return lambda session, rng: session + delay


def at_once(session: int, rng: np.random.Generator) -> int:
    return session
