"""What an agent has played of the scorecard: its results, its scores, and its comparison with the built-in agents."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import polars
from polars import col

from clickgym.core.checks import check_choice
from clickgym.runner import PUBLISHED

from .leaderboard import Place, rows_of, tables_of
from .protocol import CURRENT, STAGES, Board, Protocol
from .reference import agent_of, changes_of, lines, reference
from .score import WORST, Estimate, Pair, Standing, improvement, pairs, regret_ratio, scored, standing


class Comparison(NamedTuple):
    """Comparison with one built-in agent: the probability to beat it, over the tasks that both have played.

    If both are on one board, also the difference of their overall scores over these tasks.
    """

    agent: str
    improvement: Estimate
    n_tasks: int
    pair: Pair | None = None


@dataclass(frozen=True)
class Played:
    """The results of an agent in the tasks of the scorecard, and its scores; `Scorecard` says what is what."""

    agent: str
    told: tuple[str, ...]
    click_models: str
    quick: bool
    table: polars.DataFrame
    curves: polars.DataFrame
    protocol: Protocol = CURRENT
    sources: tuple[str, ...] = ()
    tuning: str = ""

    @cached_property
    def board(self) -> Board | None:
        """The board on which the agent is ranked; None if it is given knowledge that no board allows."""
        boards = self.protocol.boards_of(self.sources, self.table["ability"].unique().to_list())
        return boards[0] if boards else None

    @cached_property
    def standing(self) -> Standing:
        """The scores: overall and by ability."""
        return standing(self.table, self.protocol, self.board, self.quick)

    @cached_property
    def comparisons(self) -> list[Comparison]:
        """The comparisons with all built-in agents; the agent that is easiest to beat comes first."""
        others = reference(self.protocol).filter(col("agent") != self.agent).group_by(["agent"], maintain_order=True)
        tables = {str(name): rows for (name,), rows in others}
        results = {name: improvement(self.table, rows, self.protocol) for name, rows in tables.items()}
        differences = self._differences()
        comparisons = [
            Comparison(name, *result, differences.get(name)) for name, result in results.items() if result is not None
        ]
        return sorted(comparisons, key=lambda each: -each.improvement.value)

    def _differences(self) -> dict[str, Pair]:
        """The pairs with the other lines of its board, corrected for their number; two runs of a few tasks tell none apart."""
        if self.board is None or self.quick:
            return {}
        others = tables_of(self.protocol, self.board, None, self.quick)
        compared = pairs(
            {self.agent: self.table, **{name: rows for name, rows in others.items() if name != self.agent}},
            self.protocol,
            self.board,
            of=self.agent,
        )
        return {other: pair for (_, other), pair in compared.items()}

    def n_tasks(self, ability: str) -> int:
        """How many tasks of an ability the agent has played; the ValueError names an ability that does not exist."""
        check_choice("ability", ability, self.protocol.columns())
        return self.table.filter(col("ability") == ability)["task"].n_unique()

    @property
    def n_due(self) -> int:
        """How many tasks there are: of its board, if it stands on one."""
        tasks = self.protocol.tasks(self.quick)
        return len(tasks) if self.board is None else sum(task.ability in self.board.abilities for task in tasks)

    @property
    def command(self) -> str:
        """The command that makes the same card; Python code if the agent has no name that others can type."""
        if self.agent in PUBLISHED or (":" in self.agent and not self.agent.startswith("__main__:")):
            return f"clickgym bench {self.agent}{' --quick' * self.quick}{' --tuned' * bool(self.tuning)} --out DIR"
        agent = "agent" if ":" in self.agent else f"{{{self.agent!r}: agent}}"
        options = f"{', quick=True' * self.quick}{', tuned=True' * bool(self.tuning)}"
        return f"clickgym.bench({agent}{options}, out=DIR)"

    @cached_property
    def place(self) -> Place:
        """The agent's row of the leaderboard."""
        table = self.table if self.board is None else rows_of(self.board, self.table)
        seconds = float(table["seconds"].sum())
        place = Place(self.agent, self.standing, self.told, self.click_models, seconds)
        if self.board is None:
            return place
        compared = {(self.agent, each.agent): each.pair for each in self.comparisons if each.pair is not None}
        base = reference(self.protocol).filter(agent=self.board.base)
        return place.among(compared)._replace(
            ratio=regret_ratio(rows_of(self.board, self.table), base, self.protocol),
            changes=self.changes,
            early={step: place._replace(standing=standing_) for step, standing_ in self._early().items()},
            trust="claimed",
        )

    def _early(self) -> dict[int, Standing]:
        """What it was worth after fewer sessions."""
        tables = {step: scored(self.curves, self.protocol, step) for step in STAGES}
        return {
            step: standing(table, self.protocol, self.board, self.quick, step)
            for step, table in tables.items()
            if not table.is_empty()
        }

    @property
    def changes(self) -> str:
        """What tuning has changed, in words; empty without changes."""
        return changes_of(self.tuning) if self.tuning else ""

    @cached_property
    def settings(self) -> list[tuple[str, Estimate, str]]:
        """The built-in agents of the same class, as published and tuned: name, overall score, and what tuning changed."""
        own = {name: line for name, line in lines(self.protocol).items() if agent_of(name) == self.agent.partition(":")[0]}
        tables = tables_of(self.protocol, None, None, self.quick)
        return [
            (name, standing(tables[name], self.protocol, self.board, self.quick).overall, line.changes or "as published")
            for name, line in own.items()
            if name in tables
        ]

    @property
    def worst(self) -> list[tuple[str, str, float, float, float, str, float]]:
        """The tenth of the board's tasks with the lowest scores, lowest first, with the columns of `of_tasks`."""
        counted = self.protocol.abilities if self.board is None else self.board.abilities
        rows = sorted((row for row in self.of_tasks if row[0] in counted), key=lambda row: row[-1])
        return rows[: math.ceil(WORST * len(rows))]

    @cached_property
    def of_tasks(self) -> list[tuple[str, str, float, float, float, str, float]]:
        """A table with one row for each task.

        It has the ability, the measure, the mean loss, the losses of random lists and of the best agent, the name of this
        agent, and the mean score.
        """
        means = self.table.group_by("task", maintain_order=True).agg(col("loss", "score").mean())
        losses = {name: (loss, score) for name, loss, score in means.iter_rows()}
        return [
            (
                task.ability,
                f"{task.about} ({task.instance})",
                losses[task.name][0],
                *self.protocol.anchors[task.name][task.horizon][:3],
                losses[task.name][1],
            )
            for task in self.protocol.tasks(self.quick)
            if task.name in losses
        ]

    def by_click_model(self) -> tuple[float | None, float | None]:
        """The mean scores of ``misspecified`` under the click models that it names, and under the others."""
        rows = self.table.filter(col("ability") == "misspecified")
        model = col("env").str.strip_suffix("Rank-v0")
        own = model.is_in(re.findall(r"\w+", self.click_models))
        means = [rows.filter(rule)["score"].mean() for rule in (own, ~own)]
        return means[0], means[1]  # type: ignore[return-value]  # of floats
