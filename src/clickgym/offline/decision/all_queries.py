"""Decisions for many queries of a log. The log is read once, click models are fitted once, and verdicts are corrected for the
number of queries.

Each query is judged as `decide` judges it alone, by the same function, `settle`, at another level: that of the procedure of
Benjamini and Hochberg. With m queries and sorted p-values p(1) ≤ … ≤ p(m) it is level k / m for the largest k with p(k) ≤
level k / m. The p-value of a query is the smaller one of its two grounds, the smallest level at which one of its lists would be
recommended. Where no list is better, each ground is below x with a probability of at most x, so that the smaller one is with at
most 2 x. So of all recommended lists, the expected share of those that are no better than the list in production is at most
``level`` for each of the two grounds, together 2 ``level``, as long as queries are independent or depend on one another in one
direction. With a single query the level is that of `decide`.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any, Unpack

import joblib
import numpy as np
import polars
from joblib.externals.loky.process_executor import BrokenProcessPool

from ...core.checks import check_count, check_flag, check_path
from ...core.files import make_folder, read_json, write_whole
from ...core.formats import to_csv
from ...core.templates import templates
from ...core.workers import check_workers, deaf_to_interrupts, watched
from ..log import ClickLog
from ..reading import Reading
from ..several import Paths
from .decide import AGENTS, Task, conclude, open_log
from .evidence import Ground, Inquiry, Verdict, experiment, larger_step, settle
from .lists import STEADY
from .models import Models
from .page import write_page
from .records import UNITS
from .settings import LEVEL, Settings

PAGES = "queries"
VERDICTS = "verdicts.jsonl"
CONFIG = "config.json"
MOST_IN_BATCH = 10
"""Queries that a worker is given at once; a run that is stopped loses no more for each worker."""


@dataclass(frozen=True)
class QueryDecision:
    """The decision for one query.

    Attributes:
        query: the label of the query.
        sessions: how many sessions of the query the log has.
        verdict: as of `Decision`; ``"refused"`` where nothing could be decided.
        recommended: labels of the list to show instead of the production list; empty if production is kept, or nothing is
            known.
        difference, interval: the gain of the best list over the production list and its 95 % interval; None if no list stands
            out.
        p_value: the p-value of the null hypothesis that there is no gain; 1 if no list stands out.
        larger: beside a measured list that is better: the list for which models predict more.
        test_sessions: of an experiment (A/B test) that proves the gain of the list that is to be tested (the larger step, or
            one that is likely better or not proven), see `experiment`; None if none is to be tested.
        cautions: the objections, by keyword; for a refused query the reason.
        page: its page, beside that of all queries; empty where there is none.
    """

    query: str
    sessions: int
    verdict: Verdict | str
    recommended: tuple[str, ...]
    difference: float | None
    interval: tuple[float, float] | None
    p_value: float
    larger: Ground | None
    test_sessions: int | None
    cautions: tuple[str, ...]
    page: str


@dataclass(frozen=True)
class Decisions:
    """Decisions for many queries.

    Attributes:
        log: the name of the log's file, or a description of the log.
        reward, cutoff: how the reward of a list is counted.
        n_sessions: the number of sessions of the log.
        level: for each of the two grounds, the highest expected share of recommended lists that are no better than
            production.
        threshold: the largest p-value with which a list is recommended.
        queries: the decisions, the most frequent query first.
        valued: whether the log says what clicks are worth, which is then the reward.
    """

    log: str
    reward: str
    cutoff: int | None
    n_sessions: int
    level: float
    threshold: float
    queries: tuple[QueryDecision, ...]
    valued: bool = False

    def to_frame(self) -> polars.DataFrame:
        """The decisions as a table, one row for each query."""
        rows = [
            {
                "query": each.query,
                "sessions": each.sessions,
                "verdict": each.verdict,
                "recommended": " ".join(each.recommended),
                "gain": each.difference,
                "gain_low": None if each.interval is None else each.interval[0],
                "gain_high": None if each.interval is None else each.interval[1],
                "p_value": each.p_value,
                "larger_step": " ".join(getattr(each.larger, "labels", ())),
                "larger_gain": getattr(each.larger, "difference", None),
                "larger_gain_low": getattr(each.larger, "interval", (None, None))[0],
                "larger_gain_high": getattr(each.larger, "interval", (None, None))[1],
                "test_sessions": each.test_sessions,
                "cautions": "; ".join(each.cautions),
                "page": each.page,
            }
            for each in self.queries
        ]
        numbers = ("gain", "gain_low", "gain_high", "p_value", "larger_gain", "larger_gain_low", "larger_gain_high")
        types = dict.fromkeys(numbers, polars.Float64) | {"test_sessions": polars.Int64}
        return polars.DataFrame(rows, schema_overrides=types)


def decide_all(
    log: Paths | ClickLog,
    out: str | os.PathLike[str],
    *,
    top: int | None = None,
    agents: Sequence[str] = AGENTS,
    horizon: int = 100_000,
    runs: int = 5,
    reward: str = "clicks",
    cutoff: int | None = None,
    level: float = LEVEL,
    seed: int = 0,
    pages: bool = True,
    n_jobs: int = -1,
    log_format: str = "auto",
    on_step: Callable[[str], object] = lambda text: None,
    on_progress: Callable[[str, int, int], object] = lambda what, done, total: None,
    **reading: Unpack[Reading],
) -> Decisions:
    """Decide for many queries of a log which list to show.

    Finished queries are stored in the folder. Another call with the same log and settings resumes there.

    Args:
        log: a log, or its file or files; see `read_log`.
        out: the folder for the page ``decisions.html``, for ``decisions.csv``, and for a page of each query; created if
            missing.
        top: decide only for so many of the most frequent queries; None takes all.
        agents, horizon, runs, reward, cutoff, level, seed, log_format, reading: as for `decide`.
        pages: whether to make a page for each query. Its agents take most of the time; without pages there are only verdicts.
        n_jobs: workers, as in joblib: -1 for all processors. A ``joblib.parallel_config`` around the call may name another
            backend (Dask).
        on_step: is called with one line for each finished step.
        on_progress: is called with the name of a step, and for how many queries it is done and is to be done.

    Returns:
        The decisions.

    Raises:
        ValueError, TypeError, OSError: on wrong input, before any model is fitted, and on a folder of other decisions.

    Example:
        >>> import tempfile, gymnasium as gym, clickgym
        >>> env = gym.make("PBMRank-v0", attraction=[0.1, 0.3, 0.6], examination=[0.9, 0.5])
        >>> log = clickgym.record(clickgym.make_agent("Random", env, seed=0), env, 3000, seed=0)
        >>> decisions = decide_all(log, tempfile.mkdtemp(), pages=False, n_jobs=1)
        >>> decisions.queries[0].verdict, decisions.queries[0].recommended
        ('better', ('2', '1'))
    """
    settings = Settings.check(agents, horizon, runs, seed, reward, cutoff, level)
    check_workers(n_jobs)
    check_flag("pages", pages)
    if top is not None:
        top = check_count("top", top)
    folder = check_path("out", out)
    name, logged = open_log(log, settings, log_format, reading)
    counts = np.bincount(logged.queries, minlength=len(logged.query_labels))
    order = np.argsort(-counts, kind="stable")[: int((counts > 0).sum())][:top]
    queries = {logged.query_labels[index]: int(counts[index]) for index in order.tolist()}
    _begin(folder, logged, settings, [*queries], name)
    work = _Work(folder, name, settings, queries, n_jobs, on_progress)
    for note in logged.notes:
        on_step(note)
    on_step(f"{len(logged):,} sessions in {name}, deciding {len(queries):,} of {int((counts > 0).sum()):,} queries")
    models = Models(logged, reward, settings.seed)
    return work.all(models, pages, on_step)


def threshold(p_values: Sequence[float], level: float) -> float:
    """The largest p-value that the Benjamini-Hochberg procedure accepts; if it accepts none, the bound for the smallest.

    Example:
        >>> threshold([0.001, 0.9, 0.008, 0.2], 0.02)
        0.01
    """
    m = len(p_values)
    ranks = [k for k, p_value in enumerate(sorted(p_values), 1) if p_value <= level * k / m]
    return level * max(ranks, default=1) / m


class _Work:
    """The arguments of `decide_all` that all steps need."""

    def __init__(
        self, folder: Path, name: str, settings: Settings, queries: dict[str, int], n_jobs: int,
        on_progress: Callable[[str, int, int], object],
    ) -> None:  # fmt: skip
        self.folder, self.name, self.settings, self.queries = folder, name, settings, queries
        self.n_jobs, self.on_progress = n_jobs, on_progress
        width, pages = len(str(len(queries))), folder / PAGES
        self.folders = {query: pages / f"{place:0{width}d}{_slug(query)}" for place, query in enumerate(queries, 1)}

    def all(self, models: Models, pages: bool, on_step: Callable[[str], object]) -> Decisions:
        """Verdicts, the threshold that follows, pages, and the table."""
        weighed = self._verdicts(models, on_step)
        level = threshold([_p_value(row) for row in weighed.values()], self.settings.level)
        on_step(f"{sum(_of(row, level)[0] in ('better', 'likely better') for row in weighed.values()):,} lists are recommended")
        if pages:
            self._write_pages(models, weighed, level)
        rows = tuple(self._row(query, weighed[query], level) for query in self.queries)
        settings, valued = self.settings, models.log.values is not None
        decisions = Decisions(self.name, settings.reward, settings.cutoff, len(models.log), settings.level, level, rows, valued)
        write_whole(self.folder / "decisions.csv", to_csv(decisions.to_frame()))
        write_whole(self.folder / "decisions.html", _page(decisions))
        return decisions

    def _verdicts(self, models: Models, on_step: Callable[[str], object]) -> dict[str, dict[str, Any]]:
        """What was weighed of each query, by query, from the file or anew."""
        file = self.folder / VERDICTS
        weighed: dict[str, dict[str, Any]] = {}
        for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
            with suppress(json.JSONDecodeError):  # a line that was cut short
                row = json.loads(line)
                weighed[row["query"]] = row
        due = [query for query in self.queries if query not in weighed]
        if due:
            models.prepare()
            on_step(f"{len(models.fitted)} click models fitted to all queries")
        with file.open("a", encoding="utf-8") as stream:
            for row in self._parallel("judged", _weighed, models, due, self.settings):
                weighed[row["query"]] = row
                print(json.dumps(row, ensure_ascii=False), file=stream, flush=True)
        weighed = {query: weighed[query] for query in self.queries} | weighed  # whichever worker was first
        write_whole(file, "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in weighed.values()))
        return weighed

    def _write_pages(self, models: Models, weighed: dict[str, dict[str, Any]], level: float) -> None:
        due = [query for query in self.queries if "refused" not in weighed[query] and not self._done(query, level)]
        if due:
            models.prepare()
        task = Task(self.name, level, len(self.queries), n_jobs=1)
        for _ in self._parallel("written", _written, models, due, self.settings, task, self.folders):
            pass

    def _done(self, query: str, level: float) -> bool:
        """Whether the page of a query is there, for this threshold."""
        folder = self.folders[query]
        with suppress(OSError, ValueError, KeyError):
            return (folder / "decision.html").exists() and bool(read_json(folder / "decision.json")["level"] == level)
        return False

    def _parallel(self, what: str, function: Callable[..., Any], models: Models, due: list[str], *arguments: Any) -> Any:
        """What a function of models, a query and further arguments returns for each query, as soon as it is there."""
        done = len(self.queries) - len(due)
        self.on_progress(what, done, len(self.queries))
        if not due:
            return
        workers = min(joblib.effective_n_jobs(self.n_jobs), len(due))
        n_batches = -(-len(due) // min(MOST_IN_BATCH, -(-len(due) // workers)))  # each takes the models along
        batches = [due[start::n_batches] for start in range(n_batches)]
        parallel = joblib.Parallel(n_jobs=workers, return_as="generator_unordered", batch_size=1)
        tasks = (
            joblib.delayed(watched)(os.getpid(), _batch, function, models.part(batch), batch, *arguments) for batch in batches
        )
        try:
            with deaf_to_interrupts():
                batches_done = parallel(tasks)
            for results in batches_done:
                yield from results
                done += len(results)
                self.on_progress(what, done, len(self.queries))
        except BrokenProcessPool:
            raise MemoryError("a worker process was killed, perhaps because memory ran out; fewer workers need less") from None

    def _row(self, query: str, row: dict[str, Any], level: float) -> QueryDecision:
        result, ground = _of(row, level)
        recommended = result in ("better", "likely better")
        larger = larger_step(_grounds(row), ground, level)
        to_test = larger if result == "better" else ground if result in ("likely better", "not proven") else None
        file = self.folders[query] / "decision.html"
        page = file.relative_to(self.folder).as_posix() if file.exists() else ""
        gain, interval, p_value = (None, None, 1.0) if ground is None else (ground.difference, ground.interval, ground.p_value)
        labels = ground.labels[: self.settings.cutoff] if ground is not None and recommended else ()
        cautions = read_json(file.with_suffix(".json"))["against"] if page else filter(None, [row.get("refused")])
        return QueryDecision(
            query, self.queries[query], result, labels, gain, interval, p_value, larger,
            None if to_test is None else experiment(to_test.difference, row["variance"], level), tuple(cautions), page,
        )  # fmt: skip


def _begin(folder: Path, log: ClickLog, settings: Settings, queries: list[str], name: str) -> None:
    """Make the folder; refuse one that holds decisions from another log or with other settings."""
    digest = sha256()
    for array in (log.items, log.clicks, log.queries, *(each for each in (log.times, log.values) if each is not None)):
        digest.update(np.ascontiguousarray(array).tobytes())
    labels = json.dumps([log.item_labels, log.query_labels])
    digest.update(labels.encode())
    config = {
        "clickgym": version("clickgym"), "log": name, "digest": digest.hexdigest(), "queries": len(queries),
    } | {key: list(value) if isinstance(value, tuple) else value for key, value in vars(settings).items()}  # fmt: skip
    file = folder / CONFIG
    if file.exists():
        before = read_json(file)
        if "level" not in before:
            made = before.get("clickgym", "an earlier version")
            raise ValueError(f"{folder} holds decisions of clickgym {made}, which had no level; choose another folder")
        for key, value in config.items():
            if before.get(key) != value:
                raise ValueError(
                    f"{folder} holds decisions with {key} = {before.get(key)!r}, here it is {value!r}; choose another folder"
                )
    make_folder(folder)
    write_whole(file, json.dumps(config, indent=1) + "\n")


def _batch(function: Callable[..., Any], models: Models, queries: list[str], *arguments: Any) -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a model that has not converged the log of a single query would tell
        return [function(models, query, *arguments) for query in queries]


def _weighed(models: Models, query: str, settings: Settings) -> dict[str, Any]:
    """What the log says of a query, or why it says nothing."""
    sessions = models.sessions(query)
    try:
        sessions.check()
    except ValueError as error:
        return {"query": query, "refused": str(error)}
    evidence = Inquiry(models, sessions, settings).evidence
    grounds = [asdict(ground) for ground in evidence.grounds]
    return {"query": query, "grounds": grounds, "enough": evidence.enough, "variance": evidence.variance}


def _grounds(row: dict[str, Any]) -> list[Ground]:
    return [Ground(**ground | {"labels": tuple(ground["labels"])}) for ground in row.get("grounds", ())]


def _p_value(row: dict[str, Any]) -> float:
    """The smallest level at which a list is recommended."""
    return min([1.0, *(ground.p_value for ground in _grounds(row) if ground.doubt <= STEADY)])


def _of(row: dict[str, Any], level: float) -> tuple[Verdict | str, Ground | None]:
    """The verdict for a query, and the list that it is about."""
    return ("refused", None) if "refused" in row else settle(_grounds(row), row["enough"], level)


def _written(models: Models, query: str, settings: Settings, task: Task, folders: dict[str, Path]) -> str:
    """Write the page of a query."""
    write_page(conclude(Inquiry(models, models.sessions(query), settings), task), folders[query])
    return query


def _slug(query: str) -> str:
    """What a folder's name has of a label."""
    letters = re.sub(r"[^A-Za-z0-9]+", "-", query).strip("-")[:40]
    return f"-{letters}" if letters else ""


def _page(decisions: Decisions) -> str:
    """One page with one table."""
    return templates(Path(__file__).parent).get_template("decisions.html").render(
        decisions=decisions, recommended=[each for each in decisions.queries if each.recommended],
        verdicts=[*dict.fromkeys(each.verdict for each in decisions.queries)],
        unit=UNITS["values" if decisions.valued else decisions.reward], version=version("clickgym"),
    )  # fmt: skip
