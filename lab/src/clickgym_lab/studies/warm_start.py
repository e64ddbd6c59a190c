"""Study of agents that learn from a log of production before they rank: what it saves, and when it hurts."""

from __future__ import annotations

import json
from functools import lru_cache
from inspect import signature
from typing import Any, ClassVar

import numpy as np

from clickgym.agents import AGENTS as PUBLISHED
from clickgym.agents import CompiledAgent
from clickgym.core.checks import check_count, check_share
from clickgym.envs import Users

from ..production import EXCHANGED, Log, log_of_production
from .axes import BARS, RANDOM, lines, table_of, times
from .plots import Figure, finish, grid
from .study import CM, PBM, Curves, Evidence, Finding, PaperTable, several, versus

EVERY, MANY = "warm-start", "warm-start-many"
"""All sizes of the log on the shipped queries; two sizes on all queries."""
SIZES = (1000, 10_000, 100_000, 1_000_000)
Seed = int | np.random.SeedSequence | None
LEARNERS = (
    "CascadeKLUCB", "CascadeUCB1", "CascadeTS", "EpsilonGreedy", "PBMHB", "PBMTS", "GRAB", "CascadeSWUCB", "GLRCascadeKLUCB",
)  # fmt: skip
SOME = ("CascadeKLUCB", "CascadeTS", "EpsilonGreedy", "PBMHB", "GRAB")


# ---------------------------------------------------------------------------------------------------------------- the log


@lru_cache(maxsize=2)
def production_log(users: str, production: tuple[int, ...], exchanged: float) -> Log:
    """A log of the production list, the same every time; a log of fewer sessions is its beginning.

    Args:
        users: a click model's `to_dict`, as JSON.
        production, exchanged: as in `log_of_production`.
    """
    return log_of_production(Users.from_dict(json.loads(users)), production, SIZES[-1], list(users.encode()), exchanged)


class Warm(CompiledAgent):
    """An agent that has learned from a log of production before its first session.

    Args:
        n_items: L.
        n_positions: K.
        log: of how many sessions.
        exchanged: as in `production_log`.
        users: whose clicks the log holds; ``make_agent`` fills them in.
        production: the production list; likewise.
        horizon: of the sessions after the log, for agents that take one.
        seed: of the agent.
        **hyperparameters: of the agent without the log.
    """

    told: ClassVar = {"users": "users", "production": "initial_ranking"}

    def __init__(
        self, n_items: int, n_positions: int, *, log: int, exchanged: float = EXCHANGED, users: Users, production: Any,
        horizon: int | None = None, seed: Seed = None, **hyperparameters: Any,
    ) -> None:  # fmt: skip
        if "horizon" in signature(super().__init__).parameters:
            hyperparameters["horizon"] = horizon
        super().__init__(n_items, n_positions, seed=seed, **hyperparameters)
        size = check_count("log", log)
        whole = production_log(json.dumps(users.to_dict()), tuple(map(int, production)), check_share("exchanged", exchanged))
        self.learn(Log(whole.rankings[:size], whole.clicks[:size]))


for _agent in map(PUBLISHED.__getitem__, LEARNERS):
    _members = {"__doc__": f"{_agent.__name__} with a log.", "__module__": __name__, "told": {**Warm.told, **_agent.told}}
    globals()[f"Warm{_agent.__name__}"] = type(f"Warm{_agent.__name__}", (Warm, _agent), _members)


# -------------------------------------------------------------------------------------------------------------- the study


def warm(agent: str, log: int, exchanged: float = EXCHANGED) -> str:
    """The label of an agent with a log; with one of no sessions the agent itself."""
    if not log:
        return agent
    name, _, arguments = agent.partition(":")
    further = "" if exchanged == EXCHANGED else f",exchanged={exchanged:g}"
    return f"clickgym.lab.studies.warm_start:Warm{name}:{arguments}{',' * bool(arguments)}log={log}{further}"


STRICT = SIZES[2]
"""The size of the log of nothing but the production list."""
GREEDY = "EpsilonGreedy:epsilon=0"
AGENTS = (
    RANDOM, "Fixed", "BubbleRank",
    *(warm(agent, size) for agent in (*LEARNERS, GREEDY) for size in (0, *SIZES)),
    *(warm(agent, STRICT, 0) for agent in (*LEARNERS, GREEDY)),
)  # fmt: skip
AGENTS_OF_MANY = (RANDOM, "Fixed", "BubbleRank", *(warm(agent, size) for agent in SOME for size in (0, 10_000, STRICT)))


def saves(
    curves: Curves, env: str, agent: str, log: int, low: float, high: float, exchanged: float = EXCHANGED, base: int = 0
) -> Finding:
    """Regret at the end with a log as a multiple of that without, or of that with another log (``base`` sessions)."""
    return times(curves, warm(agent, log, exchanged), env, low, high, other=warm(agent, base))


def begins_better(curves: Curves, env: str, agent: str, log: int, worse: list[str]) -> Finding:
    """Whether an agent with a log has less regret at the end than others."""
    best, over = curves.end_units(env, warm(agent, log)), curves.units_of_ends
    return several({name: versus(best, curves.end_units(env, name), over=over) for name in worse})


def _points(agents: tuple[str, ...], logs: list[tuple[int, float]], env: str) -> dict[str, list[tuple[str, str]]]:
    return {agent: [(env, warm(agent, size, exchanged)) for size, exchanged in logs] for agent in agents}


LOGS = [(size, EXCHANGED) for size in (0, *SIZES)]


def regret(evidence: Evidence) -> PaperTable:
    """Regret of all agents with all logs, in both click models."""
    curves = evidence[EVERY]
    columns = ["no log", *(f"{size:,}" for size in SIZES), f"{STRICT:,}, never exchanged"]
    series = {
        f"{name}, {env.partition('Rank')[0]}": points
        for env in (CM, PBM)
        for name, points in _points((*LEARNERS, GREEDY), [*LOGS, (STRICT, 0.0)], env).items()
    }
    title = f"Regret by the sessions of the log, mean over {len(curves.instances)} queries, {curves.horizon:,} sessions"
    return table_of(curves, columns, series, title)


def draw(evidence: Evidence) -> Figure:
    """Regret by the size of the log, in two click models; on the shipped queries and on all."""
    figure, panels = grid(2, 2, labels=2 * [f"regret, % of {RANDOM}"])
    for row, (part, agents, logs) in enumerate(((EVERY, (*LEARNERS, GREEDY), LOGS), (MANY, SOME, [LOGS[0], LOGS[2], LOGS[3]]))):
        curves = evidence[part]
        for axes, env in zip(panels[2 * row : 2 * row + 2], (CM, PBM), strict=True):
            series = _points(agents, logs, env) | {name: [(env, name)] * len(logs) for name in ("Fixed", "BubbleRank")}
            lines(axes, curves, [f"{size:,}" for size, _ in logs], series, env)
            queries = "shipped" if part == EVERY else "all"
            axes.set(title=f"{env.partition('Rank')[0]}, {queries} queries", xlabel="sessions of the log")
    return finish(figure, panels, evidence, "Regret after learning from a log of production", BARS)
