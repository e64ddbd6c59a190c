"""``clickgym decide``: from a click log to the list to show."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from ...core.console import Cluster, Pdf, errors, output
from ...core.terminal import Column, print_table, say
from ...core.workers import on_cluster
from ...runner.commands.run import number
from ...runner.progress import Progress
from ..decision.all_queries import Decisions, decide_all
from ..decision.decide import AGENTS
from ..decision.decide import decide as decide_
from ..decision.page import write_decision
from ..decision.records import Decision
from ..decision.settings import LEVEL
from ..reading import Reading
from .logs import Cutoff, LogFormat, Reward, Steps, reads_logs

MOST_ROWS = 20


@reads_logs()
def decide(
    context: typer.Context,
    log: Annotated[list[str], typer.Argument(
        metavar="LOG...", help="The click log, before the options, in any format that [bold]clickgym fit[/] reads.",
        show_default=False,
    )],
    out: Annotated[Path, typer.Option(
        metavar="DIR", help="Folder of the page, [bold]decision.html[/], and of its data; created if missing.",
    )],
    query: Annotated[str | None, typer.Option(
        metavar="NAME", help="The query to decide.", show_default="the most frequent",
    )] = None,
    all_queries: Annotated[bool, typer.Option(
        "--all", help="Decide all queries: write one table, a CSV file, and a page for each query.", show_default=False,
    )] = False,
    top: Annotated[int | None, typer.Option(
        metavar="N", help="Decide the N most frequent queries, as [bold]--all[/] does.", show_default=False,
    )] = None,
    jobs: Annotated[int, typer.Option(
        metavar="N", help="Worker processes for [bold]--all[/] and [bold]--top[/]; -1 for one per CPU.",
    )] = -1,
    cluster: Cluster = None,
    agents: Annotated[list[str] | None, typer.Option(
        "--agents", "-a", metavar="AGENT...", help="The agents to compare, as for [bold]clickgym run[/], without labels.",
        show_default=" ".join(AGENTS),
    )] = None,
    horizon: Annotated[str, typer.Option(
        metavar="T", help="Sessions per run of an agent, as [bold]100000[/] or [bold]1e5[/].",
    )] = "1e5",
    runs: Annotated[int, typer.Option(metavar="N", help="Runs per agent.")] = 5,
    reward: Reward = "clicks",
    cutoff: Cutoff = None,
    level: Annotated[float, typer.Option(
        metavar="P", help="The highest probability of recommending a list that is no better, by what was measured and by click "
        "models each; below 0.5.",
    )] = LEVEL,
    counts: Annotated[Path | None, typer.Option(
        metavar="FILE", show_default=False, help="Counts of the log, from [bold]clickgym count[/]: of the log itself only the "
        "sessions of the [bold]--query[/] are read, and how users examine positions comes from the counts of the others.",
    )] = None,
    log_format: LogFormat = "auto",
    seed: Annotated[int, typer.Option(metavar="N", help="The same seed gives the same decision.")] = 0,
    pdf: Pdf = False,
    *,
    reading: Reading,
) -> None:  # fmt: skip
    """Recommend a list for a query of a click log, with the expected gain and the objections.

    A list is recommended if the log shows it often and it earned more than the production ranking at the same times. Beside it,
    or alone, a list is recommended for an experiment if every click model that fits the held-out clicks predicts, after
    correction, that it earns more. Otherwise no list is recommended, and where a gain is likely but not proven, the page says
    how many sessions of an experiment would prove it. Agents propose lists: they learn on users simulated by the best click
    model; [bold]clickgym check-models[/] says whether simulations of the log can be trusted. Off-policy estimators, tested on
    logged lists, estimate what these lists would earn.

    [bold]Examples[/]

      clickgym decide log.csv --query shoes --out results/shoes

    Only the first five positions; the reward is 1 for at least one click:

      clickgym decide log.csv --query shoes --cutoff 5 --reward any_click --out results/shoes

    One query of a log larger than memory:

      clickgym decide logs/ --query shoes --counts counts.parquet --out results/shoes

    The 50 most frequent queries (the same command resumes a stopped one):

      clickgym decide log.csv --top 50 --out results/queries
    """
    how: dict[str, Any] = {
        "agents": agents or AGENTS, "horizon": number(horizon), "runs": runs, "reward": reward, "cutoff": cutoff,
        "level": level, "seed": seed, "log_format": log_format, "on_step": partial(say, errors()),
        **reading,
    }  # fmt: skip
    if all_queries or top is not None:
        if pdf:
            raise ValueError("--pdf cannot be given with --all or --top: it is for the figure of one query")
        if counts is not None:
            raise ValueError("--counts cannot be given with --all or --top; expected --query")
        if query is not None:
            raise ValueError(f"--query {query} cannot be given with --all or --top; expected one of the three")
        if all_queries and top is not None:
            raise ValueError("--all cannot be given with --top; expected one of them")
        queries = context.obj = _Queries("queries")
        with queries.bar, on_cluster(cluster):
            decisions = decide_all(log, out, top=top, n_jobs=jobs, on_progress=queries.advance, **how)
        return _print_decisions(decisions, out)
    if cluster is not None:
        raise ValueError("--cluster is for --all and --top; one query is decided on this machine")
    progress = context.obj = Progress(errors())
    with progress:
        decision = decide_(log, query, out=out, callback=progress, counts=counts, **how)
    _print_decision(decision, write_decision(decision, out, pdf=pdf), out)


def _print_decision(decision: Decision, files: list[Path], out: Path) -> None:
    console = output()
    say(console, f"{decision.headline} (query {decision.query})", "bold")
    for sentence in decision.summary:
        say(console, sentence)
    if decision.recommended is not None:
        say(console, f"List: {', '.join(decision.recommended)}")
    if decision.against:
        console.print()
        headed = [Column("objection"), Column("why", words=True)]
        title = "Remarks" if decision.verdict == "unknown" else "Objections"
        print_table(console, headed, [*decision.against.items()], headings=False, title=title)
        console.print()
    say(console, f"In {out}: {', '.join(file.name for file in files)}")


class _Queries(Steps):
    """How far the queries are, and what is said if the command is stopped."""

    @property
    def started(self) -> bool:
        """Whether the arguments were accepted and work began."""
        return bool(self.done)

    def kept(self, out: Path) -> str:
        """What is kept in the folder."""
        return f"{' and '.join(f'{done} of {total} queries are {what}' for what, (done, total) in self.done.items())} in {out}"


def _print_decisions(decisions: Decisions, out: Path) -> None:
    console = output()
    better = [each for each in decisions.queries if each.recommended]
    say(console, f"{len(better):,} of {len(decisions.queries):,} queries have a better list", "bold")
    headed = [
        Column("query"), Column("sessions", right=True), Column("verdict"), Column("gain", right=True),
        Column("95 % interval", rank=1, right=True), Column("list", rank=2),
    ]  # fmt: skip
    rows = [
        (
            each.query, f"{each.sessions:,}", each.verdict, f"{each.difference:+.3f}",
            "{:+.3f} to {:+.3f}".format(*each.interval), ", ".join(each.recommended),
        )
        for each in better
        if each.difference is not None and each.interval is not None
    ]  # fmt: skip
    if rows:
        print_table(console, headed, rows[:MOST_ROWS])
    if len(rows) > MOST_ROWS:
        say(console, f"and {len(rows) - MOST_ROWS:,} more")
    say(
        console,
        f"A list is recommended if the p-value of its gain is at most {decisions.threshold:.2g} (Benjamini–Hochberg: at most "
        f"{decisions.level:.2%} of the recommended lists are expected to be no better, for each of the two grounds).",
    )
    say(console, f"In {out}: decisions.html, decisions.csv and a page for each query")
