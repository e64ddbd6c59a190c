"""Verify a submitted folder: repeat some of its runs and compare the results.

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
from .play import COLUMNS, blocks, play_one, read_block, suited
from .protocol import Protocol, protocol_of
from .reference import machine
from .score import Standing, scored, standing
from .task import Task

__all__ = ["LEVEL", "Submission", "Verdict", "differences", "read_submission", "verify"]

LEVEL = 0.01
SHARE, AT_LEAST = 0.1, 20
DECIDES = 8
"""Of fewer runs that differ the smallest p-value of the test is not below the level: 2 / 2⁷ is not, 2 / 2⁸ is."""
COMPUTES = ("numpy", "numba", "torch", "stable-baselines3", "sb3-contrib")
"""The packages on whose versions, with that of this one, the last digit may hang."""


class Submission(NamedTuple):
    """The content of a submitted folder.

    Attributes:
        agent: what it calls the agent.
        quick: whether it is of the tasks of ``--quick`` alone.
        table: one row for each task, run and checkpoint, with ``ability``, ``horizon``, ``step`` and ``loss``.
        protocol: the version.
        made: the machines and the versions of packages that had a part in it, as pairs.
    """

    agent: str
    quick: bool
    table: polars.DataFrame
    protocol: Protocol
    made: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Verdict:
    """The result of a verification.

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
        """Whether the folder contains the results of its agent; None if this cannot be decided."""
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
    """Read a folder that `bench` wrote; this executes no code from it.

    Raises:
        ValueError: it is none, is unfinished, or is of another version of the protocol.
    """
    folder = check_path("folder", folder)
    config, protocol = _config(folder)
    frames = [polars.DataFrame(schema=dict.fromkeys(COLUMNS, polars.Float64) | {"task": str, "ability": str, "run": int})]
    origins = {("machine", str(one)) for one in config.get("machines", [])}
    for name, block in blocks(protocol.tasks()).items():
        if (folder / PLAYS / name).exists():
            frames.append(read_block(protocol, folder / PLAYS / name, block, str(config["agent"])))
            sweep = read_results(folder / PLAYS / name)[2]
            for part in sweep.get("parts", [sweep]):
                versions = {"clickgym": part["clickgym"]} | part["versions"]
                origins |= {(package, versions[package]) for package in ("clickgym", *COMPUTES) if package in versions}
    player = str(config.get("tuning") or config["agent"])
    table = polars.concat(frames, how="diagonal_relaxed")
    return Submission(player, "full" not in config["finished"], table, protocol, tuple(sorted(origins)))


def _config(folder: Path) -> tuple[dict[str, Any], Protocol]:
    """What a folder says of itself, and the version that it is of."""
    try:
        config = read_json(folder / CONFIG)
    except FileNotFoundError:
        raise ValueError(f"{folder} holds no {CONFIG}; expected a folder that clickgym bench --out wrote") from None
    if not config.get("finished"):
        raise ValueError(f"{folder} is unfinished; the same clickgym bench {config.get('agent')} goes on with it")
    try:
        protocol = protocol_of(config.get("protocol", 0))
    except ValueError as error:
        raise ValueError(f"{folder}: {error}") from None
    if config.get("fingerprint") != protocol.fingerprint:
        there, here = config.get("fingerprint"), protocol.fingerprint
        raise ValueError(f"{folder} is of fingerprint {there!r}; this version of clickgym has {here!r}")
    return config, protocol


def verify(
    folder: str | os.PathLike[str],
    *,
    agent: AgentLike | None = None,
    seed: int | None = None,
    trust: bool = False,
) -> Verdict:
    """Check that a folder contains all runs, and repeat a random tenth of them, at least twenty.

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
    submission = read_submission(folder)
    label, quick, table, protocol, _ = submission
    seed = int(np.random.default_rng().integers(2**32)) if seed is None else check_seed(seed)
    player = _player(folder, label, agent, trust)
    due = _due(label, player, protocol.tasks(quick), protocol.quick_runs if quick else protocol.runs)
    ends = table.filter(polars.col("step") == polars.col("horizon"))
    _check_complete(folder, label, ends, due)
    submitted = ends.join(due, on=["task", "run"], how="semi", maintain_order="left")
    cells = submitted.sample(min(max(AT_LEAST, round(SHARE * submitted.height)), submitted.height), seed=seed)
    games = cells.select("task", "run").iter_rows()
    losses = [play_one(protocol, label, player, protocol.by_name[task], run) for task, run in games]
    both = cells.rename({"loss": "submitted"}).with_columns(again=polars.Series(losses))
    others = differences(submission)
    return Verdict(
        label,
        both.select("task", "run", "submitted", "again"),
        tuple(others),
        _compared(both, protocol) if others else math.nan,
        seed,
        standing(scored(submitted, protocol), protocol, quick=quick),
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
        raise ValueError(f"{label} cannot play any of the {len(protocol)} tasks")
    return polars.DataFrame(pairs, {"task": str, "run": int}, orient="row")


def _check_complete(folder: str | os.PathLike[str], label: str, table: polars.DataFrame, due: polars.DataFrame) -> None:
    missing = due.join(table, on=["task", "run"], how="anti", maintain_order="left")
    for task, run in missing.head(1).iter_rows():
        first = f"the first of them run {run} of {task!r}"
        raise ValueError(f"{folder} lacks {missing.height} of the {due.height} runs that {label} has to play, {first}")


def differences(submission: Submission) -> list[str]:
    """Which machine and which versions of packages are not those that had a part in a folder."""
    return [f"{name} {then}, here {now}" for name, then in submission.made if then != (now := _here(name))]


def _here(name: str) -> str:
    """The machine, or the installed version of a package."""
    try:
        return machine() if name == "machine" else version(name)
    except PackageNotFoundError:
        return "none"


def _compared(both: polars.DataFrame, protocol: Protocol) -> float:
    """The p-value of the test, over the scores of both; nan where too few differ."""
    tables = (both.select("task", "horizon", loss=name) for name in ("submitted", "again"))
    scores = [scored(table, protocol)["score"].to_numpy() for table in tables]
    difference = scores[0] - scores[1]
    return float(wilcoxon(difference).pvalue) if np.count_nonzero(difference) >= DECIDES else math.nan
