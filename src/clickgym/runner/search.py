"""Search space of an agent: what its class says, or the braces of its spec, and whether its constructor takes it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..agents import Range
from ..agents.search_space import SearchSpace, check_search_space
from ..core.checks import short
from .labels import AgentLike, parse_search
from .make import GIVEN, Player, player_of

Space = Mapping[str, Range | tuple[Any, ...]]

ATTEMPTS = 100
"""Random settings of the other hyper-parameters, of which one must go with a value."""


def search_space_of(agent: AgentLike, space: SearchSpace | None = None) -> tuple[Player, Space]:
    """The search space of an agent: the given one, else that in the braces of its spec, else that of its class.

    Args:
        agent: what `sweep` takes as one; a spec may have sets and ranges in braces, as ``"CascadeKLUCB:c={0.0..3.0}"``.
        space: the ranges and sets; None takes those of the spec or of the class. A hyper-parameter that the agent is given a
            value of is not searched.

    Returns:
        The agent without braces, and its space, which is not empty.

    Raises:
        ValueError, TypeError: there is no such agent, nothing to search, or a range that is none.

    Example:
        >>> search_space_of("CascadeKLUCB:feedback=first_click")[1]
        {'c': Range(0.0, 6.0)}
        >>> player, space = search_space_of("CascadeKLUCB:c={0..3}")
        >>> player.label, space
        ('CascadeKLUCB', {'c': Range(0.0, 3.0)})
        >>> search_space_of("BatchRank")
        Traceback (most recent call last):
            ...
        ValueError: BatchRank has no hyper-parameters: there is nothing to tune
    """
    agent, in_braces = _without_braces(agent)
    if in_braces and space is not None:
        raise ValueError(f"{short(agent)} has braces, and a search space beside them; give one of the two")
    player = player_of(agent)
    asked = in_braces or space
    if asked is None:
        own = check_search_space(player.name, player.search_space)
        free = {key: values for key, values in own.items() if key not in player.hyperparameters}
    else:
        free = check_search_space(player.name, asked)
        for key in filter(player.hyperparameters.__contains__, free):
            value = short(player.hyperparameters[key])
            raise ValueError(f"{player.name}: {key} is given the value {value}, and is to be searched, too")
    if not free:
        raise ValueError(_why_empty(player))
    return player, _as_defaults(free, player.defaults)


def _without_braces(agent: AgentLike) -> tuple[AgentLike, SearchSpace]:
    """The agent, and the search space in the braces of its spec, if it has any."""
    if not isinstance(agent, str):
        return agent, {}
    name, arguments, in_braces = parse_search(agent)
    if not in_braces:
        return agent, {}
    return (name, arguments) if arguments else name, in_braces


def _why_empty(player: Player) -> str:
    name, given, of_users = player.name, player.hyperparameters, player.told
    free = [key for key in player.named if key not in (*GIVEN, *of_users, *given)]
    if given and not free:
        return f"{name}: {', '.join(given)} is given, and there is nothing else to tune"
    if free:
        return f'{name} has no search_space; say what to search, as "{name}:{free[0]}={{VALUE,VALUE}}"'
    about = f" but {', '.join(of_users)}, which is knowledge of the users" if of_users else ""
    return f"{name} has no hyper-parameters{about}: there is nothing to tune"


def _as_defaults(space: Space, values: Mapping[str, Any]) -> Space:
    """``{0..3}`` for what is a float by default has all numbers between."""
    fractional = {key for key, value in values.items() if isinstance(value, float)}
    return {
        key: Range(float(entry.low), float(entry.high), entry.log) if isinstance(entry, Range) and key in fractional else entry
        for key, entry in space.items()
    }


def contains(values: Range | Sequence[Any], value: Any) -> bool:
    """Whether a value is in a range or a set; a list equals a tuple."""
    return value in values if isinstance(values, Range) else any(_as_list(value) == _as_list(entry) for entry in values)


def _as_list(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def check_fit(make: Callable[..., Any], space: Space, what: str) -> None:
    """Check that an agent can be made with the bounds of each range and each value of a set.

    Where it cannot with the defaults of the other hyper-parameters, some other values of these must do.

    Args:
        make: makes the agent with hyper-parameters.
        space: the search space.
        what: what messages call the agent.

    Raises:
        ValueError: what it cannot be made with, and why.
    """
    rng = np.random.default_rng(0)
    for key, values in space.items():
        for value in [values.low, values.high] if isinstance(values, Range) else values:
            attempts: list[dict[str, Any]] = [{}, *(_random_choice(space, rng) for _ in range(ATTEMPTS))]
            faults = []
            for others in attempts:
                try:
                    make(**others | {key: value})
                    break
                except (TypeError, ValueError) as error:
                    faults.append(error)
            else:
                raise ValueError(f"{what} cannot be searched with {key} = {short(value)}: {faults[0]}")


def _random_choice(space: Space, rng: np.random.Generator) -> dict[str, Any]:
    """A value of each hyper-parameter, at random."""
    chosen = {}
    for key, values in space.items():
        if not isinstance(values, Range):
            chosen[key] = values[rng.integers(len(values))]
        elif values.whole:
            chosen[key] = int(rng.integers(int(values.low), int(values.high) + 1))
        else:
            chosen[key] = float(rng.uniform(values.low, values.high))
    return chosen


def combinations(space: Space, most: int) -> list[dict[str, Any]] | None:
    """All combinations of values; None if there are more than ``most``.

    Example:
        >>> combinations({"c": (0, 3), "n": Range(1, 2)}, 64)
        [{'c': 0, 'n': 1}, {'c': 0, 'n': 2}, {'c': 3, 'n': 1}, {'c': 3, 'n': 2}]
        >>> combinations({"c": Range(0.0, 3.0)}, 64)
    """
    sizes = [values.high - values.low + 1 if isinstance(values, Range) else len(values) for values in space.values()]
    if any(isinstance(values, Range) and not values.whole for values in space.values()) or math.prod(sizes) > most:
        return None
    sets = [range(int(values.low), int(values.high) + 1) if isinstance(values, Range) else values for values in space.values()]
    return [dict(zip(space, chosen, strict=True)) for chosen in itertools.product(*sets)]
