"""Tuned lines: the search for hyper-parameters on development tasks, with the same budget for every agent."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from clickgym import Tuning, tune
from clickgym.runner import AgentLike, Callback, Player, player_of

from .equipment import equipped
from .play import suited
from .protocol import Board, Protocol
from .task import Task

BUDGET = 60_000_000
"""Sessions of the tuning of an agent."""
HORIZON, RUNS = 25_000, 2
"""Of each run of a tuning, and runs of each trial in the search."""
FIRST_OF = (
    "position_bias", "many_items", "long_lists", "small_gaps", "low_click_rates", "change", "misspecified", "late", "bots",
    "churn",
)  # fmt: skip
"""The abilities of whose development tasks the first counts, beside the first of ``standard`` with each click model."""
N_FEATURES, N_MEMORY = 8, 6


class TunedLine(NamedTuple):
    """The result of a tuning.

    Attributes:
        agent: as it can be typed, where it can; else the hyper-parameters in words.
        player: what plays, as `sweep` takes it.
        tuning: the search.
    """

    agent: str
    player: AgentLike
    tuning: Tuning

    @property
    def default_wins(self) -> bool:
        """Whether the defaults of the agent were the best."""
        return self.tuning.agent == SEAT


SEAT = "agent"
"""The label of the agent in tuning. Seeds derive from it, so they are the same for all agents."""


def development_tasks(protocol: Protocol, board: Board) -> list[Task]:
    """The tasks on which the agents of a board are tuned.

    Args:
        protocol: of the development set.
        board: whose abilities count.

    Example:
        >>> from clickgym_lab.bench.protocol import DEVELOPMENT, CURRENT
        >>> [len(development_tasks(DEVELOPMENT, board)) for board in CURRENT.boards]
        [16, 16, 8, 6]
    """
    own = {ability: [task for task in protocol.candidates if task.ability == ability] for ability in board.abilities}
    if "standard" not in own:
        return [*own.get("contextual", [])[:N_FEATURES], *own.get("memory", [])[:N_MEMORY]]
    of_models = {task.click_model: task for task in reversed(own["standard"])}
    return [*reversed(of_models.values()), *(own[ability][0] for ability in FIRST_OF)]


def tune_line(
    protocol: Protocol,
    board: Board,
    agent: AgentLike | Player,
    out: Path,
    *,
    budget: int = BUDGET,
    n_jobs: int = -1,
    callback: Callback | None = None,
) -> TunedLine:
    """Tune an agent on the development tasks of a board that it can play, as far as that was not done before.

    Args:
        protocol: of the development set.
        board: where the agent stands.
        agent: as `sweep` takes it.
        out: the folder of the tuning; resumed if it exists.
        budget: in sessions.
        n_jobs, callback: as in `sweep`.

    Raises:
        ValueError: it has nothing to tune, or plays none of these tasks.
    """
    player = player_of(agent)
    tasks = suited(player, development_tasks(protocol, board))
    if not tasks:
        raise ValueError(f"{player.label or 'the agent'} plays none of the development tasks of the board {board.name!r}")
    envs: dict[str, Any] = {task.name: (task.env, {"instance": task.instance}) for task in tasks}
    tuning = tune(
        {SEAT: equipped(player, tasks[0])}, envs, budget, horizon=HORIZON, runs=RUNS, out=out, n_jobs=n_jobs, callback=callback
    )
    usual = player.defaults
    values = {key: value for key, value in tuning.hyperparameters.items() if value != usual.get(key)}
    player = player if tuning.agent == SEAT else player.but(**values)
    return TunedLine(player.label or tuning.agent, player.given, tuning)
