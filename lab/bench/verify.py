"""Verification of a submitted folder: some of its runs are played again and compared.

On the same kind of machine with the same versions of what computes, they must be equal bit for bit. Elsewhere a last digit may
turn a random choice, and all that follows, so that a run is another of the same kind: then the scores of all cells are compared
by Wilcoxon's signed-rank test, two-sided, of the null hypothesis that submitted and new scores are exchangeable in each cell. A
correct folder is called wrong with a probability of at most `LEVEL`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Collection
from contextlib import nullcontext
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars
from scipy.stats import wilcoxon

from ...core.checks import check_path, check_seed
from ...core.files import read_json
from ...core.trust import UntrustedError, from_file
from ...runner.labels import AgentLike
from ...runner.make import agent_maker
from ...runner.results import read_results
from .card import CONFIG, PLAYS
from .play import blocks, columns_of, play_one, suited
from .reference import machine
from .score import Standing, scored, standing, tasks
from .tasks import QUICK_RUNS, RUNS, VERSION, Task, fingerprint

__all__ = ["LEVEL", "Submission", "Verdict", "read_submission", "verify"]

LEVEL = 0.01
SHARE, AT_LEAST = 0.1, 20
DECIDES = 8
"""Of fewer runs that differ the smallest p-value of the test is not below the level: 2 / 2⁷ is not, 2 / 2⁸ is."""
COMPUTES = ("numpy", "numba", "torch", "stable-baselines3", "sb3-contrib")
"""The packages on whose versions, with that of this one, the last digit may hang."""


class Submission(NamedTuple):
    """What a folder says.

    Attributes:
        agent: what it calls the agent.
        quick: whether it is of the tasks of ``--quick`` alone.
        table: one row for each task and run, with ``ability``, ``horizon`` and ``loss``.
        made: the machines and the versions of packages that had a part in it, as pairs.
    """

    agent: str
    quick: bool
    table: polars.DataFrame
    made: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Verdict:
    """What came of it.

    Attributes:
        agent: as the folder calls it.
        table: ``task``, ``run``, ``submitted`` and ``again``, the losses of what was played again.
        differences: what is not as it was, machine and versions of packages; where there are none, all must be equal.
        p: of the test; nan where numbers must be equal, or where too few differ for a test.
        seed: of the choice of runs.
        standing: what the submitted runs are worth, all of them.
    """

    agent: str
    table: polars.DataFrame
    differences: tuple[str, ...]
    p: float
    seed: int
    standing: Standing

    @property
    def right(self) -> bool | None:
        """Whether the folder holds what its agent does; None where that cannot be told."""
        if self._equal == self.table.height or not self.differences:
            return self._equal == self.table.height
        return None if math.isnan(self.p) else self.p >= LEVEL

    @property
    def _equal(self) -> int:
        return int((self.table["submitted"] == self.table["again"]).sum())

    def __str__(self) -> str:
        counts = f"{self._equal} of {self.table.height} runs of {self.agent}, chosen by seed {self.seed}, came out equal"
        wrong = "NOT what this agent does"
        if not self.differences:
            return f"{counts}, where all must: {'verified' if self.right else wrong}"
        others = f"not as they were: {', '.join(self.differences)}"
        tested = "" if math.isnan(self.p) else f"; Wilcoxon's test p = {self.p:.3g}, level {LEVEL}"
        judged = {True: "no objection", False: wrong, None: f"cannot tell, for fewer than {DECIDES} differ"}
        return f"{counts} ({others}){tested}: {judged[self.right]}"


def read_submission(folder: str | os.PathLike[str]) -> Submission:
    """What a folder says that `bench` wrote; executes nothing of it.

    Raises:
        ValueError: it is none, is unfinished, or is of another version of the protocol.
    """
    folder = check_path("folder", folder)
    config = _config(folder)
    frames = [polars.DataFrame(schema={"task": str, "ability": str, "run": int, "horizon": int, "loss": float})]
    origins = {("machine", str(one)) for one in config.get("machines", [])}
    for name, block in blocks(tasks()).items():
        if (folder / PLAYS / name).exists():
            table, _, sweep = read_results(folder / PLAYS / name)
            task, ability, horizon = columns_of(block[0].ability)
            frames.append(table.select(task, ability, "run", horizon, loss=block[0].measure))
            for part in sweep.get("parts", [sweep]):
                versions = {"clickgym": part["clickgym"]} | part["versions"]
                origins |= {(package, versions[package]) for package in ("clickgym", *COMPUTES) if package in versions}
    return Submission(str(config["agent"]), "full" not in config["finished"], polars.concat(frames), tuple(sorted(origins)))


def _config(folder: Path) -> dict[str, Any]:
    try:
        config = read_json(folder / CONFIG)
    except FileNotFoundError:
        raise ValueError(f"{folder} holds no {CONFIG}; expected a folder that clickgym bench --out wrote") from None
    if not config.get("finished"):
        raise ValueError(f"{folder} is unfinished; the same clickgym bench {config.get('agent')} goes on with it")
    for key, value in (("protocol", VERSION), ("fingerprint", fingerprint())):
        if config.get(key) != value:
            raise ValueError(f"{folder} is of {key} {config.get(key)!r}; this version of clickgym has {value!r}")
    return config


def verify(
    folder: str | os.PathLike[str],
    *,
    agent: AgentLike | None = None,
    seed: int | None = None,
    trust: bool = False,
) -> Verdict:
    """Look whether a folder holds all runs, and play a random tenth of them again, at least twenty.

    It executes the code of whoever made the agent. What is not looked at: the card in the folder; its numbers are those of
    ``standing``.

    Args:
        folder: what `bench` was given as ``out``.
        agent: the agent itself; None takes what the folder names.
        seed: of the choice; None draws one, so that nobody can know the choice before.
        trust: import the module of an agent that the folder names as ``"module:Class"``, also from the working folder.

    Raises:
        ValueError: the folder is none, is unfinished, or lacks runs; or there is no agent of the name that it has.
    """
    label, quick, table, origins = read_submission(folder)
    seed = int(np.random.default_rng().integers(2**32)) if seed is None else check_seed(seed)
    player = _player(folder, label, agent, trust)
    named = {task.name: task for task in tasks(quick)}
    due = _due(label, player, named.values(), QUICK_RUNS if quick else RUNS)
    _check_complete(folder, label, table, due)
    submitted = table.join(due, on=["task", "run"], how="semi", maintain_order="left")
    cells = submitted.sample(min(max(AT_LEAST, round(SHARE * submitted.height)), submitted.height), seed=seed)
    losses = [play_one(label, player, named[task], run) for task, run in cells.select("task", "run").iter_rows()]
    both = cells.rename({"loss": "submitted"}).with_columns(again=polars.Series(losses))
    differences = tuple(f"{name} {then}, here {now}" for name, then in origins if then != (now := _here(name)))
    return Verdict(
        label,
        both.select("task", "run", "submitted", "again"),
        differences,
        _compared(both) if differences else math.nan,
        seed,
        standing(scored(submitted)),
    )


def _player(folder: str | os.PathLike[str], label: str, agent: AgentLike | None, trust: bool) -> AgentLike:
    """The agent that was passed, or the one that the folder names."""
    player = label if agent is None else agent
    try:
        with from_file(folder, trust) if agent is None else nullcontext():
            agent_maker(player)
    except UntrustedError:
        raise
    except ValueError as error:
        if agent is not None:
            raise
        raise ValueError(f"{error}; where {label!r} is a name given in Python: verify({str(folder)!r}, agent=...)") from None
    return player


def _due(label: str, player: AgentLike, protocol: Collection[Task], n_runs: int) -> polars.DataFrame:
    """``task`` and ``run`` of all that an agent has to play."""
    pairs = [(task.name, run) for task in suited(player, protocol) for run in range(n_runs)]
    if not pairs:
        raise ValueError(f"{label} can play none of the {len(protocol)} tasks")
    return polars.DataFrame(pairs, {"task": str, "run": int}, orient="row")


def _check_complete(folder: str | os.PathLike[str], label: str, table: polars.DataFrame, due: polars.DataFrame) -> None:
    missing = due.join(table, on=["task", "run"], how="anti", maintain_order="left")
    for task, run in missing.head(1).iter_rows():
        first = f"the first of them run {run} of {task!r}"
        raise ValueError(f"{folder} lacks {missing.height} of the {due.height} runs that {label} has to play, {first}")


def _here(name: str) -> str:
    """The machine, or the installed version of a package."""
    try:
        return machine() if name == "machine" else version(name)
    except PackageNotFoundError:
        return "none"


def _compared(both: polars.DataFrame) -> float:
    """The p-value of the test, over the scores of both; nan where too few differ."""
    scores = [scored(both.select("task", "horizon", loss=name))["score"].to_numpy() for name in ("submitted", "again")]
    difference = scores[0] - scores[1]
    return float(wilcoxon(difference).pvalue) if np.count_nonzero(difference) >= DECIDES else math.nan
