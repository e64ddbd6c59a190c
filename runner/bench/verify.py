"""Playing some of a submitted folder again, to see whether its numbers come out.

On the same processor with the same versions of what computes, they must be equal bit for bit. Elsewhere a last digit may turn
a random choice, and all that follows, so that a run is another of the same kind: then the scores of all cells are compared by
Wilcoxon's signed-rank test, two-sided, of the null hypothesis that submitted and new scores are exchangeable in each cell. A
correct folder is called wrong with a probability of at most `LEVEL`.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
import polars
from scipy.stats import wilcoxon

from ...envs.files import read_json
from ..labels import AgentLike
from ..results import read_results
from .card import CONFIG, PLAYS
from .play import blocks, play_one
from .reference import processor
from .score import scored, tasks
from .tasks import VERSION, fingerprint

__all__ = ["LEVEL", "Verdict", "read_submission", "verify"]

LEVEL = 0.01
SHARE = 0.1
COMPUTES = ("numpy", "numba", "clickgym")
"""The packages on whose versions the last digit may hang."""


@dataclass(frozen=True)
class Verdict:
    """What came of it.

    Attributes:
        agent: as the folder calls it.
        table: ``task``, ``run``, ``submitted`` and ``again``, the losses.
        differences: what is not as it was, the processor and versions of packages; where there are none, all must be equal.
        p: of the test; nan where numbers must be equal.
    """

    agent: str
    table: polars.DataFrame
    differences: tuple[str, ...]
    p: float

    @property
    def right(self) -> bool:
        """Whether the folder holds what its agent does."""
        return self._equal == self.table.height or self.p >= LEVEL

    @property
    def _equal(self) -> int:
        return int((self.table["submitted"] == self.table["again"]).sum())

    def __str__(self) -> str:
        told = f"{self._equal} of {self.table.height} runs of {self.agent} came out equal"
        if not self.differences:
            return f"{told}, where all must: {'verified' if self.right else 'NOT what this agent does'}"
        others = f"not as they were: {', '.join(self.differences)}"
        tested = "" if math.isnan(self.p) else f"; Wilcoxon's test p = {self.p:.3g}, level {LEVEL}"
        return f"{told} ({others}){tested}: {'no objection' if self.right else 'NOT what this agent does'}"


def read_submission(folder: str | os.PathLike[str]) -> tuple[str, polars.DataFrame, dict[str, str]]:
    """The agent of a folder that `bench` wrote, its runs, and the processor and the versions that made them.

    Raises:
        ValueError: it is none, is unfinished, or is of another version of the protocol.
    """
    folder = Path(folder)
    try:
        config = read_json(folder / CONFIG)
    except FileNotFoundError:
        raise ValueError(f"{folder} holds no {CONFIG}; expected a folder that clickgym bench --out wrote") from None
    if "rows" not in config:
        raise ValueError(f"{folder} is unfinished; clickgym bench {config.get('agent')} --out {folder} goes on with it")
    for key, value in (("protocol", VERSION), ("fingerprint", fingerprint())):
        if config.get(key) != value:
            raise ValueError(f"{folder} is of {key} {config.get(key)!r}; this version of clickgym has {value!r}")
    frames, versions = [], {"processor": config["processor"], "clickgym": config["clickgym"]}
    for name, block in blocks(tasks()).items():
        if (folder / PLAYS / name).exists():
            table, _, made = read_results(folder / PLAYS / name)
            versions |= {package: made["versions"][package] for package in COMPUTES if package in made["versions"]}
            first = block[0]
            named = polars.format("{} {} {}", polars.lit(first.ability), "env", "instance").alias("task")
            frames.append(table.select(named, "run", horizon="step", loss=first.measure))
    return config["agent"], polars.concat(frames), versions


def verify(
    folder: str | os.PathLike[str],
    *,
    agent: AgentLike | None = None,
    seed: int = 0,
) -> Verdict:
    """Play a random tenth of the runs of a folder again.

    It executes the code of whoever made the agent.

    Args:
        folder: what `bench` was given as ``out``.
        agent: the agent itself; None takes what the folder names, ``"module:Class"``, from the working folder.
        seed: of the choice.

    Raises:
        ValueError: the folder is none, or is unfinished.
    """
    label, submitted, versions = read_submission(folder)
    here = {"processor": processor()} | {package: version(package) for package in COMPUTES}
    differences = tuple(f"{name} {then}, here {here[name]}" for name, then in versions.items() if here[name] != then)
    cells = submitted.sample(max(1, round(SHARE * submitted.height)), seed=seed)
    named, made = {task.name: task for task in tasks()}, label if agent is None else agent
    again = [play_one(label, made, named[task], run) for task, run in cells.select("task", "run").iter_rows()]
    both = cells.rename({"loss": "submitted"}).with_columns(again=polars.Series(again))
    return Verdict(
        label, both.select("task", "run", "submitted", "again"), differences, _compared(both) if differences else math.nan
    )


def _compared(both: polars.DataFrame) -> float:
    """The p-value of the test, over the scores of both."""
    scores = [scored(both.select("task", "horizon", loss=name))["score"].to_numpy() for name in ("submitted", "again")]
    difference = scores[0] - scores[1]
    return float(wilcoxon(difference).pvalue) if np.any(difference) else 1.0
