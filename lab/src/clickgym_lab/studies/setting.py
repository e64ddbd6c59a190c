"""What is run of a part of a study, and a study on one set of queries, judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..shipped import Shipped
from .registry import STUDIES
from .study import Curves, Evidence, Finding, PaperTable, Part, Statement, judged_together, saved

Findings = list[tuple[Statement, Finding]]


@dataclass(frozen=True)
class Plan:
    """What is run of one part: its queries, instances, horizon and runs at the scale asked for."""

    part: Part
    queries: tuple[str, ...]
    horizon: int
    runs: int

    def instances(self, out: Path) -> list[str]:
        """The instances of the sweep; files, where it needs some, are written beside its folder."""
        if self.part.files is None:
            return self.names
        return saved(self.part.files(self.names), out / f"{self.part.name}-instances")

    @property
    def names(self) -> list[str]:
        """The instances, before any file is made from them."""
        return (
            list(self.queries) if self.part.instances is None else self.part.instances(self.queries)
        )

    @property
    def words(self) -> str:
        """What is run, in one line."""
        part = self.part
        queries = f"{len(self.queries)} of {part.queries} queries, " if part.queries > 1 else ""
        return (
            f"{', '.join(part.envs)}; {', '.join(part.agents)}; {queries}"
            f"{self.runs} of {part.runs} runs, {self.horizon:,} of {part.horizon:,} sessions"
        )

    @property
    def checkpoints(self) -> NDArray[np.int64]:
        """The ends of equal windows, some earlier steps, the 100th, which papers count to, and 0.99
        of the horizon.
        """
        windows = np.linspace(0, self.horizon, self.part.windows + 1)[1:]
        steps = np.concatenate(
            [windows, np.geomspace(1, self.horizon, 40), [100, 0.99 * self.horizon]]
        )
        return np.unique(np.clip(steps.round(), 1, self.horizon).astype(np.int64))


def judge(name: str, evidence: Evidence) -> Findings:
    """What the measured tables say of each statement of a study.

    Args:
        name: of `STUDIES`.
        evidence: the curves of each of its parts.
    """
    statements = STUDIES[name].statements
    return list(zip(statements, judged_together(statements, evidence), strict=True))


@dataclass(frozen=True)
class Setting:
    """A study on one set of queries, judged."""

    study: str
    name: str
    results: tuple[Shipped, ...]
    evidence: Evidence
    found: Findings
    table: PaperTable | None

    @property
    def command(self) -> str:
        """What made it, with version and commit."""
        made = self.results[0].made
        return f"clickgym {made['clickgym']} ({made['commit']}): {made['command']}"

    @property
    def caption(self) -> str:
        """The same, no longer than fits below a figure."""
        return self.command if len(self.command) <= 150 else f"{self.command[:150]}..."

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """Of each statement: text, rule, the paper's figure, what was measured, and whether that
        supports it.
        """
        return [
            (s.text, s.rule, s.paper, finding.measured, finding.words) for s, finding in self.found
        ]

    @property
    def plans(self) -> list[Plan]:
        """What was run."""
        parts = {part.name: part for part in STUDIES[self.study].parts}
        return [
            Plan(
                parts[each.part],
                tuple(each.made["queries"]),
                each.made["horizon"],
                each.made["runs"],
            )
            for each in self.results
        ]


def by_setting(name: str, results: Sequence[Shipped]) -> list[Setting]:
    """A study on each set of queries that it was played on, judged."""
    study, settings = STUDIES[name], []
    horizons = {part.name: part.horizon for part in study.parts}
    for setting in dict.fromkeys(each.setting for each in results):
        own = tuple(each for each in results if each.setting == setting)
        evidence = {each.part: Curves(each.table, horizons[each.part]) for each in own}
        table = None if study.table is None else study.table(evidence)
        settings.append(Setting(name, setting, own, evidence, judge(name, evidence), table))
    return settings
