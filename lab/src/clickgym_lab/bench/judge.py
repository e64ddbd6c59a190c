"""Judge a submission: play the whole protocol with its agent, on the test set and on a secret set.

A submission is a folder with the agent's module and, in ``results``, the files that ``clickgym bench`` wrote. The judge does
not trust these results: its own scores are shown beside them, and only its own count.

Each run is played in a sandbox of its own, from which nothing survives. Agents in plain Python play in seats, from which only
lists come (`clickgym_lab.bench.seats`). A compiled agent plays at full speed in one process with the environment of that run;
all these processes have ended when a part of its runs is drawn, which are played again in seats and must come out equal.
"""

from __future__ import annotations

import json
import math
import os
import secrets
import shutil
import tempfile
import time
import warnings
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import polars
from polars import col
from scipy.stats import norm

from clickgym.core.checks import check_path, check_seed
from clickgym.core.files import make_folder, write_whole
from clickgym.core.formats import markdown_text
from clickgym.core.kernels import SessionError, cache_folder, read_private
from clickgym.core.templates import templates
from clickgym.core.workers import check_workers, deaf_to_interrupts
from clickgym.runner import PUBLISHED, Callback, parse_spec

from ..shipped import Shipped, write_shipped
from .leaderboard import about_of, sources_of
from .lines import compact, may_be_anchors, origin_of
from .play import COLUMNS, blocks, n_sessions, play, play_run, suited
from .protocol import ANCHORS, CURRENT, DEVELOPMENT, Board, Protocol
from .reference import PUBLISHED_LINE, lines, machine, reference
from .sandbox import Sandbox, check_can_confine, end_with
from .score import Estimate, Standing, pairs, scored, standing
from .seats import SeatError, SeatMaker, compiled_kernels, play_in_seat, read_in_seat, sit_down
from .submission import RESULTS, Submission, check_files, check_name, differences
from .task import Task
from .task_set import task_set

LEVEL, POWER = 0.01, 0.9
AT_LEAST, SHARE = 60, 0.05
"""How many runs of a compiled agent are played again."""
BITS = 128
"""Of the seed of a secret set: nobody tries them all."""
BEST = 3


class RefusedError(ValueError):
    """A submission is refused; the message says in one line why."""


class Claim(NamedTuple):
    """What came of the comparison of submitted runs of the test set with those of the judge.

    Attributes:
        equal, n: how many runs came out equal, of how many.
        differences: of machine and versions; where there are none, all must be equal.
        difference: of the overall scores, submitted minus judged.
        p: of the hypothesis that there is none, where runs need not be equal; else nan.
        detectable: the difference that this test finds with a probability of `POWER`; 0 where runs must be equal.
    """

    equal: int
    n: int
    differences: list[str]
    difference: float
    p: float
    detectable: float

    @property
    def right(self) -> bool:
        """Whether nothing speaks against what was submitted."""
        return self.equal == self.n or (bool(self.differences) and self.p >= LEVEL)

    def __str__(self) -> str:
        counts = f"{self.equal} of {self.n} submitted runs came out equal"
        if self.equal == self.n or not self.differences:
            return f"{counts}: {'confirmed' if self.right else 'NOT what this agent does'}"
        power = f"a difference of {self.detectable:.2g} is found with a probability of {POWER:.0%}"
        verdict = "no objection" if self.right else "NOT what this agent does"
        others = f"not as they were: {', '.join(self.differences)}"
        return f"{counts} ({others}); the overall scores differ by {self.difference:.2g}, p = {self.p:.2g}, {power}: {verdict}"


@dataclass(frozen=True)
class Judgement:
    """The scores of a submission.

    Attributes:
        name: of its folder.
        agent: as it can be typed within the folder.
        quick: whether it is of the tasks of ``--quick`` alone.
        confined: whether it was played in sandboxes; else it is not judged.
        board: where it stands.
        about: what its class says of itself, as in `Line`.
        seed: of the secret set.
        replayed: how many runs were played again; 0 for an agent in plain Python, all of whose runs are played so.
        submitted, judged, secret: rows of `scored`.
        curves: what was played of the test set, at all steps.
        protocol, secret_protocol: of the two sets.
        claim: whether the submitted runs are those of this agent.
    """

    name: str
    agent: str
    quick: bool
    confined: bool
    board: Board
    about: Mapping[str, Any]
    seed: int
    replayed: int
    submitted: polars.DataFrame
    judged: polars.DataFrame
    secret: polars.DataFrame
    curves: polars.DataFrame
    protocol: Protocol
    secret_protocol: Protocol
    claim: Claim

    @property
    def trust(self) -> str:
        """What its scores are called."""
        return "judged" if self.confined else "not judged"

    @property
    def columns(self) -> tuple[str, str, str]:
        """The heads of the columns of `rows`, but for the first."""
        return "submitted", self.trust, "secret"

    @cached_property
    def standings(self) -> dict[str, Standing]:
        """The scores by their origin: ``claimed`` by the author, ``judged``, and judged on the ``secret`` set."""
        sets = {"claimed": (self.submitted, self.protocol), "judged": (self.judged, self.protocol)}
        sets["secret"] = self.secret, self.secret_protocol
        return {name: standing(*each, self.board, self.quick) for name, each in sets.items()}

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """The scores overall and by ability: as submitted, judged, and judged on the secret set."""
        names = [name for name in self.protocol.abilities if name in self.standings["judged"].abilities]
        of_abilities = [(name.replace("_", " "), *self._scores(name)) for name in names]
        return [*of_abilities, ("overall", *(str(each.overall) for each in self.standings.values()))]

    def _scores(self, ability: str) -> tuple[str, ...]:
        own = (each.abilities.get(ability) for each in self.standings.values())
        return tuple("–" if each is None else str(each) for each in own)

    @property
    def how(self) -> str:
        """How it was judged, in a sentence."""
        n = len(self.judged) + len(self.secret)
        where = "each in a sandbox of its own" if self.confined else "without a sandbox, so that nothing is judged"
        if not self.replayed:
            return f"All {n} runs were played in processes without the environment, {where}."
        again = f"{self.replayed} of {n} runs, drawn afterwards, were played again without the environment"
        return f"{again}, and came out equal; all were played {where}."

    def to_dict(self) -> dict[str, Any]:
        """The data that the board reads."""
        return {
            "name": self.name,
            "agent": self.agent,
            "trust": self.trust,
            "version": self.protocol.version,
            "fingerprint": self.protocol.fingerprint,
            "quick": self.quick,
            "board": self.board.name,
            "about": self.about,
            "seed": str(self.seed),  # more digits than a number of JSON has
            "machine": machine(),
            "replayed": self.replayed,
            "claim": {name: _or_none(value) for name, value in self.claim._asdict().items()} | {"right": self.claim.right},
            "scores": {name: _in_numbers(each) for name, each in self.standings.items()},
        }

    def to_markdown(self) -> str:
        """The three scores side by side, and how they came about."""
        told = [markdown_text(name) for name in self.about["told"]]
        texts = {"agent": markdown_text(self.agent), "told": told, "claim": markdown_text(str(self.claim))}
        return templates(Path(__file__).parent).get_template("judgement.md").render(judgement=self, **texts)

    def save(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write ``judgement.json``, ``judgement.md``, and, if judged, ``NAME.parquet``, a line of the board.

        Args:
            folder: made if need be.

        Returns:
            The files.
        """
        folder = check_path("folder", folder)
        make_folder(folder)
        files = [folder / name for name in ("judgement.json", "judgement.md")]
        write_whole(files[0], json.dumps(self.to_dict(), indent=1) + "\n")
        write_whole(files[1], self.to_markdown() + "\n")
        if self.confined:
            files.append(folder / f"{self.name}.parquet")
            write_shipped(files[2], self._line())
        return files

    def _line(self) -> Iterator[Shipped]:
        """What the board reads, among the data of the version."""
        tasks = [self.protocol.by_name[name] for name in self.curves["task"].unique(maintain_order=True)]
        for part, block in blocks(tasks).items():
            names = [task.name for task in block]
            rows = self.curves.filter(col("task").is_in(names)).with_columns(agent=polars.lit(self.name))
            made = origin_of(
                self.protocol,
                self.agent,
                block,
                rows["run"].n_unique(),
                command=f"clickgym bench --judge {self.name} --seed {self.seed}",
                made=datetime.now(UTC).isoformat(timespec="seconds"),
                tuning={},
                trust="judged",
                about={**self.about, "secret": list(self.standings["secret"].overall)},
            )
            yield Shipped(PUBLISHED_LINE, part, compact(rows, block), made)


def _or_none(value: Any) -> Any:
    """What JSON has for a number that is none."""
    return None if isinstance(value, float) and math.isnan(value) else value


def _in_numbers(result: Standing) -> dict[str, Any]:
    def of(each: Estimate) -> list[float | None]:
        return [_or_none(round(value, 6)) for value in each]

    return {"overall": of(result.overall), "abilities": {name: of(each) for name, each in result.abilities.items()}}


def judge(
    folder: str | os.PathLike[str],
    *,
    seed: int | None = None,
    unconfined: bool = False,
    n_jobs: int = -1,
    callback: Callback | None = None,
) -> Judgement:
    """Play all runs of a submission, on the test set and on a secret set.

    It executes the code of whoever made the agent, each run in a sandbox of its own.

    Args:
        folder: of the submission, with the module of the agent, and ``results``, the folder that ``clickgym bench`` wrote.
        seed: of the secret set, to repeat a judging; None draws one.
        unconfined: play without sandboxes; the result is then not called judged.
        n_jobs: as in `sweep`.
        callback: receives the progress.

    Raises:
        ValueError: the folder is no submission, or is of another version of the scorecard; nothing was played then.
        RefusedError: the agent does not play, or not as it should.
        OSError: the system cannot confine the code of others; the message says what to install.
    """
    folder = check_path("folder", folder).resolve()
    seed = secrets.randbits(BITS) if seed is None else check_seed(seed)
    listener = Callback() if callback is None else callback
    check_workers(n_jobs)
    if not unconfined:
        check_can_confine()
    protocol = CURRENT
    _check_folder(folder)
    with tempfile.TemporaryDirectory() as temporary:
        sandbox = _sandbox(folder, Path(temporary), not unconfined)
        submission = _read(folder, sandbox, protocol)
        maker, quick = _maker(folder, sandbox, submission.agent), submission.quick
        runs = protocol.n_runs(quick)
        suitable = _suitable(folder, maker, protocol.tasks(quick))
        boards = _boards(protocol, maker, suitable)
        counted = {task.ability for task in protocol.tasks(quick) if any(task.ability in each.abilities for each in boards)}
        secret = secret_set(protocol, seed, Path(temporary), quick, counted)
        try:
            sets = {"test set": (protocol, suitable), "secret set": (secret, suited(maker, secret.candidates))}
            tables = {}
            for name, (each, tasks) in sets.items():
                listener.whole(name, n_sessions(tasks, runs))
                tables[each] = _played(maker, each, tasks, runs, n_jobs, listener)
            replayed = _check_again(maker, tables, n_jobs, listener) if maker.compiled else 0
        except (SeatError, SessionError, ValueError) as error:
            raise RefusedError(f"{folder.name} is refused: {error}") from None
        _write_anchors(protocol, secret, runs, n_jobs, listener)
        judged, hidden = scored(tables[protocol], protocol), scored(tables[secret], secret)
    submitted = scored(submission.table, protocol)
    return Judgement(
        name=folder.name,
        agent=submission.agent,
        quick=quick,
        confined=not unconfined,
        board=boards[0],
        about=about_of(maker),
        seed=seed,
        replayed=replayed,
        submitted=submitted,
        judged=judged,
        secret=hidden,
        curves=tables[protocol],
        protocol=protocol,
        secret_protocol=secret,
        claim=_compared(submission, submitted, judged, boards[0]),
    )


# --------------------------------------------------------------------------------------------------- before any work starts


def _check_folder(folder: Path) -> None:
    """Refuse what is no submission by its names and the kinds of its files; nothing of it is opened."""
    if not folder.is_dir():
        raise ValueError(f"there is no folder {folder}; expected a submission, as lab/submissions/TEMPLATE")
    check_name(folder.name)
    check_files(folder)
    if not (folder / RESULTS).is_dir():
        raise ValueError(f"{folder} has no folder {RESULTS}; expected there what clickgym bench --out {RESULTS} wrote")


def _sandbox(folder: Path, temporary: Path, confined: bool) -> Sandbox:
    """Copies of the submission and of the compiled kernels of the package, which seats may read, whoever they are."""
    sandbox = Sandbox(temporary / "submission", temporary / "kernels", confined)
    shutil.copytree(folder, sandbox.folder, copy_function=shutil.copyfile)
    sandbox.kernels.mkdir()
    for file in cache_folder().glob("*.nbc"):
        with suppress(PermissionError):  # what others may write is compiled again
            (sandbox.kernels / file.name).write_bytes(read_private(file))
    for where, _, files in os.walk(temporary):
        os.chmod(where, 0o755)
        for name in files:
            os.chmod(Path(where, name), 0o644)
    return sandbox


def _read(folder: Path, sandbox: Sandbox, protocol: Protocol) -> Submission:
    """What a submission says, read in a sandbox; nothing of it is executed."""
    try:
        submission = read_in_seat(sandbox, protocol)
    except (SeatError, ValueError) as error:
        raise ValueError(f"{folder} cannot be read: {error}") from None
    module, colon, _ = parse_spec(submission.agent)[0].partition(":")
    if colon and not any((folder / path).is_file() for path in (f"{module}.py", f"{module}/__init__.py")):
        raise ValueError(f"{folder} holds no {module}.py, the module of the agent {submission.agent!r} that its results name")
    if not colon and module not in PUBLISHED:
        raise ValueError(f"the results in {folder} name the agent {submission.agent!r}; expected module:Class")
    return submission


def _suitable(folder: Path, maker: SeatMaker, tasks: Sequence[Task]) -> list[Task]:
    """The tasks that the agent can play; what it compiles, by neutral tasks, is added to the kernels of its sandboxes."""
    kinds = {(task.ability, task.env) for task in tasks}
    neutral = {(task.ability, task.env): task for task in DEVELOPMENT.candidates if (task.ability, task.env) in kinds}
    try:
        for name, content in compiled_kernels(maker.agent, maker.sandbox, list(neutral.values())).items():
            with (maker.sandbox.kernels / name).open("xb") as file:
                file.write(content)
        return suited(maker, tasks)
    except SeatError as error:
        raise ValueError(f"{folder}: the agent {maker.agent!r} cannot be built: {error}") from None


def _maker(folder: Path, sandbox: Sandbox, agent: str) -> SeatMaker:
    """What makes the agent, in a seat of its own each time."""
    try:
        maker = sit_down(agent, sandbox)
    except SeatError as error:
        raise ValueError(f"{folder}: the agent {agent!r} cannot be imported: {error}") from None
    if maker.learns:
        raise ValueError(f"{folder}: {agent} has its own loop; only agents that rank and update can be judged")
    return maker


def secret_set(protocol: Protocol, seed: int, data: Path, quick: bool, abilities: Collection[str]) -> Protocol:
    """The protocol with tasks and runs that derive from a seed which nobody knew.

    Args:
        protocol: the version.
        seed: of tasks and runs alike, so that no seed of a run can be told from the name of its task.
        data: the folder of its anchors.
        quick: only tasks of ``--quick``.
        abilities: only their tasks.
    """
    tasks = tuple(task for task in task_set(seed, real=False) if task.ability in abilities and (task.quick or not quick))
    return replace(protocol, make_tasks=lambda: tasks, data=data, frozen="", seed=seed, anchor_seed=seed + 1)


def _boards(protocol: Protocol, maker: SeatMaker, tasks: Collection[Task]) -> list[Board]:
    """Where an agent stands that plays some tasks."""
    if not tasks:
        raise ValueError(f"{maker.agent} cannot play any of the tasks")
    boards = protocol.boards_of(sources_of(maker), {task.ability for task in tasks})
    if not boards:
        raise ValueError(f"{maker.agent} needs {', '.join(maker.told)}, which no board allows")
    return boards


# ----------------------------------------------------------------------------------------------------------- what is played


def _one(
    judge: int, maker: SeatMaker, at_once: bool, task: Task, run: int, seeds: tuple[int, int], steps: Sequence[int]
) -> Any:
    """A run, and its seconds, in a worker of the judge, with which it ends."""
    end_with(judge)
    start, own = time.perf_counter(), maker.for_run(task)
    try:
        table = (play_in_seat if at_once else play_run)(own, task, *seeds, steps)
    except (SeatError, SessionError, ValueError) as error:
        raise SeatError(f"run {run} of {task.name!r}: {error}") from None
    return table, time.perf_counter() - start


def _runs(
    maker: SeatMaker, at_once: bool, cells: Iterable[tuple[Protocol, Task, int]], n_jobs: int, callback: Callback
) -> Iterator[tuple[polars.DataFrame, float]]:
    """Play runs, each in a sandbox of its own: at full speed beside the environment, or in seats."""
    parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator")
    cells = list(cells)
    with deaf_to_interrupts():
        runs: Generator[tuple[polars.DataFrame, float]] = parallel(
            joblib.delayed(_one)(
                os.getpid(), maker, at_once, task, run,
                protocol.trial(task, run).seeds(protocol.seed), protocol.checkpoints(task.horizon),
            )
            for protocol, task, run in cells
        )  # fmt: skip
    with warnings.catch_warnings(), closing(runs):
        # joblib's warning that the rest is given up, once a run has come out otherwise.
        warnings.filterwarnings("ignore", ".* You could benefit from adjusting the input task iterator")
        for (_, task, _), played in zip(cells, runs, strict=True):
            callback.sessions(task.horizon)
            yield played


def _played(
    maker: SeatMaker, protocol: Protocol, tasks: Sequence[Task], runs: int, n_jobs: int, callback: Callback
) -> polars.DataFrame:
    """What the agent has played of a set: in seats, or, compiled, beside the environment, at full speed."""
    cells = [(protocol, task, run) for task in tasks for run in range(runs)]
    frames = []
    for (_, task, run), (table, seconds) in zip(cells, _runs(maker, maker.compiled, cells, n_jobs, callback), strict=True):
        if not table.select(col("regret", "loss").is_finite().all()).row(0) == (True, True):
            raise ValueError(f"run {run} of {task.name!r} came out with other than finite numbers")
        facts = task._asdict() | {"task": task.name, "agent": maker.agent, "run": run, "seconds": seconds}
        own = [polars.lit(facts[name]).alias(name) for name in COLUMNS if name in facts]
        frames.append(table.with_columns(own).select(COLUMNS))
    return polars.concat(frames).with_columns(col("run", "horizon", "step").cast(polars.Int64))


def _check_again(maker: SeatMaker, tables: Mapping[Protocol, polars.DataFrame], n_jobs: int, callback: Callback) -> int:
    """Play a part of the runs again, in seats: how many.

    Raises:
        ValueError: one of them comes out otherwise.
    """
    cells = [
        (protocol, protocol.by_name[task], run)
        for protocol, table in tables.items()
        for task, run in table.select("task", "run").unique(maintain_order=True).iter_rows()
    ]
    size = min(len(cells), max(AT_LEAST, round(SHARE * len(cells))))
    drawn = secrets.SystemRandom().sample(cells, size)
    callback.whole("runs again", n_sessions((task for _, task, _ in drawn), 1))
    for (protocol, task, run), (again, _) in zip(drawn, _runs(maker, False, drawn, n_jobs, callback), strict=True):
        before = tables[protocol].filter(task=task.name, run=run).select(again.columns).sort("step")
        for (step, regret, _), (_, anew, _) in zip(before.rows(), again.rows(), strict=True):
            if regret != anew:
                where = f"run {run} of {task.name!r} differs from session {step:,} on, or before"
                raise ValueError(f"{where}: regret {regret:.6g}, and {anew:.6g} played without the environment")
        if not before["loss"].equals(again["loss"]):
            raise ValueError(f"run {run} of {task.name!r} has another loss than that played without the environment")
    return size


def _write_anchors(protocol: Protocol, secret: Protocol, runs: int, n_jobs: int, callback: Callback) -> None:
    """Let `Random` and the best agents of each ability play a secret set, and write its anchors."""
    best = {ability: _best(protocol, ability) for ability in {task.ability for task in secret.candidates}}
    players = {}
    for name in ["Random", *sorted(set().union(*best.values()))]:
        agent = lines(protocol)[name].agent
        tasks = suited(agent, [task for task in secret.candidates if name in ("Random", *best[task.ability])])
        players[name] = agent, tasks
    callback.whole("anchors", sum(n_sessions(tasks, runs) for _, tasks in players.values()))
    frames, seed = [], secret.anchor_seed
    for name, (agent, tasks) in players.items():
        with tempfile.TemporaryDirectory() as folder:
            frames.append(play(secret, name, agent, tasks, runs, Path(folder), seed=seed, n_jobs=n_jobs, callback=callback))
    means = polars.concat(frames).group_by("task", "step", "agent").agg(col("loss").mean())
    losses = {(task, step, agent): loss for task, step, agent, loss in means.iter_rows()}
    anchors = {
        task.name: {step: _anchor(task, step, best[task.ability], losses) for step in secret.stages(task)}
        for task in secret.candidates
    }
    write_whole(secret.data / ANCHORS, json.dumps(anchors))


def _anchor(
    task: Task, step: int, best: Iterable[str], losses: Mapping[tuple[str, int, str], float]
) -> tuple[float, float, str]:
    """The losses of `Random` and of the best of some agents, and who that is; where none of them plays, the task is dropped."""
    own = {name: losses[task.name, step, name] for name in ("Random", *best) if (task.name, step, name) in losses}
    first = min(own, key=own.__getitem__)
    return own["Random"], own[first], first


def _best(protocol: Protocol, ability: str) -> list[str]:
    """The lines with the highest scores in an ability, of those that may be anchors."""
    not_here = [name for name, line in lines(protocol).items() if line.trust != "ours"]  # their code is not
    table = may_be_anchors(reference(protocol)).filter(col("ability") == ability, ~col("agent").is_in(not_here))
    means = table.group_by("agent", "task").agg(col("score").mean()).group_by("agent").agg(col("score").sum())
    return means.sort(["score", "agent"], descending=[True, False])["agent"].head(BEST).to_list()


def _compared(submission: Submission, submitted: polars.DataFrame, judged: polars.DataFrame, board: Board) -> Claim:
    """Compare the submitted runs of the test set with those of the judge."""
    both = judged.join(submitted, on=["task", "run"], how="left", suffix="_submitted")
    equal = int((both["loss"] == both["loss_submitted"]).fill_null(False).sum())
    others = differences(submission)
    if not others:
        return Claim(equal, both.height, others, math.nan, math.nan, 0.0)
    pair = next(iter(pairs({"submitted": submitted, "judged": judged}, submission.protocol, board).values()))
    error = pair.difference.width / (2 * norm.ppf(0.975))
    detectable = float(error * (norm.ppf(1 - LEVEL / 2) + norm.ppf(POWER)))
    return Claim(equal, both.height, others, pair.difference.value, pair.p, detectable)
