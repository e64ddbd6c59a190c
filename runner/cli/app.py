"""The command line: ``clickgym list``, ``show``, ``run``, ``study``, ``fit``, ``features``, ``evaluate`` and ``report``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from typer.core import TyperCommand

from ...agents import AGENTS, CONTEXTUAL_AGENTS, LEARNERS
from ...envs import CONTEXTUAL, DEFAULT_INSTANCE, ENVIRONMENTS, list_instances
from ...envs.checks import unknown
from .show import show

__all__ = ["about", "main"]

BAD_INPUT, AGENT_FAULT, INTERRUPTED = 2, 1, 130

# Every error in the command line's own syntax is one of these; typer does not export the class under its own name.
UsageError: Any = typer.BadParameter.__base__

app = typer.Typer(
    rich_markup_mode="rich",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Compare algorithms that learn to rank from clicks.",
    epilog="Start with:  [bold]clickgym run PBMRank-v0 --agents BatchRank TopRank --horizon 1e5 --runs 5 --out first[/]",
)


class _SeveralValues(TyperCommand):
    """An option that may be repeated takes several values after one flag too: ``--agents A B`` is ``--agents A --agents B``."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        repeatable = {name for option in self.params if getattr(option, "multiple", False) for name in option.opts}
        spread: list[str] = []
        flag, first = None, False
        for position, word in enumerate(args):
            if word == "--":
                spread += args[position:]
                break
            if word.startswith("-"):
                name, equals, _ = word.partition("=")
                flag, first = (name if name in repeatable else None), not equals
            elif flag is not None and not first:
                spread.append(flag)
            else:
                first = False
            spread.append(word)
        return super().parse_args(ctx, spread)


@app.command("list")
def list_(
    what: Annotated[str, typer.Argument(
        metavar="KIND", show_default=False,
        help="Only [bold]environments[/], [bold]instances[/], [bold]agents[/] or [bold]studies[/]; by default all.",
    )] = "",
) -> None:  # fmt: skip
    """What there is to run: environments, instances, agents and studies, one line each.

    The parameters of an environment are on its documentation page, those of an agent in its docstring:
    [bold]python -c "import clickgym; help(clickgym.agents.BatchRank)"[/]
    """
    kinds = ["environments", "instances", "agents", "studies"]
    if what not in ["", *kinds]:
        raise ValueError(unknown("kind", what, kinds))
    console = _wide(Console())
    if what in ("", "environments"):
        rows = [(name, about(scalar)) for name, (scalar, _) in (ENVIRONMENTS | CONTEXTUAL).items()]
        _print_rows(console, "Environments, by their users", rows)
    if what in ("", "instances"):
        _print_rows(console, "Instances (--instance)", list(list_instances().items()))
    if what in ("", "agents"):
        ranks: dict[str, Any] = {**AGENTS, **CONTEXTUAL_AGENTS, **LEARNERS}
        told = {name: ", ".join(getattr(agent, "told", {})) for name, agent in ranks.items()}
        _print_rows(console, "Agents (--agents)", [
            (name, agent.paper, f"for {agent.click_models}", f"is told {told[name]}" if told[name] else "")
            for name, agent in ranks.items()
        ])  # fmt: skip
    if what in ("", "studies"):
        from ..studies import STUDIES

        _print_rows(console, "Studies", [(name, study.title, study.paper) for name, study in STUDIES.items()])


@app.command(cls=_SeveralValues)
def run(
    envs: Annotated[list[str], typer.Argument(
        metavar="ENVS...",
        help="Environments, before the options, as [bold]PBMRank-v0[/] or [bold]PBMRank-v0:reward=any_click[/].",
    )],
    agents: Annotated[list[str], typer.Option(
        "--agents", "-a", metavar="AGENT...",
        help="One or more agents, as [bold]BatchRank[/], with arguments [bold]CascadeKLUCB:feedback=first_click[/], or "
        "your own [bold]module:Class[/], an agent or an algorithm in the style of stable-baselines3.",
    )],
    horizon: Annotated[str, typer.Option(metavar="T", help="Sessions per run, as [bold]100000[/] or [bold]1e5[/].")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the results; made if need be, gone on with if begun.")],
    runs: Annotated[int, typer.Option(metavar="N", help="Runs per agent and environment.")] = 10,
    instance: Annotated[list[str] | None, typer.Option(
        "--instance", "-i", metavar="NAME|FILE...", show_default="a real search query",
        help="One or more instances, each for every environment: names, or JSON files of your own.",
    )] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="The same seed gives the same numbers.")] = 0,
    jobs: Annotated[int, typer.Option(metavar="N", help="Workers; -1 for one per processor. Changes no number.")] = -1,
    engine: Annotated[Any, typer.Option(
        metavar="auto|compiled|python", help="The compiled loop, or one session at a time in Python; the numbers are the same.",
    )] = "auto",
    metrics: Annotated[list[str] | None, typer.Option(
        "--metrics", "-m", metavar="METRIC...", show_default="none",
        help="What to measure besides: [bold]any_click[/], [bold]ndcg[/], [bold]violations[/], [bold]optimal_lists[/], "
        "[bold]window_regret[/].",
    )] = None,
    tensorboard: Annotated[Path | None, typer.Option(
        metavar="DIR", show_default="none", help="Folder to which generic RL (PPO, ...) logs losses and regret per session.",
    )] = None,
    bounds: Annotated[bool, typer.Option("--bounds", help="Draw the lower and upper bounds of the theory, too.")] = False,
) -> None:  # fmt: skip
    """Run every agent in every environment, show the progress, and write table and figure.

    [bold]Examples[/]

    Two algorithms on a real search query, under two click models:

      clickgym run PBMRank-v0 CMRank-v0 --agents BatchRank TopRank --horizon 1e6 --runs 10 --out results/first

    Your own agent and your own query; arguments after a colon:

      clickgym run DCMRank-v0 --agents my_module:MyAgent:alpha=0.5 BatchRank --instance query.json --horizon 1e5 --out mine

    [bold]Stopping[/]

    Each run is written when it ends. Stop with Ctrl-C, and go on later with the same command. When an agent fails in mid-run,
    its fault is named, everything finished is kept, and the exit code is 1 (2 for wrong input).
    """
    from ..loop import AgentError
    from ..progress import Progress
    from ..reports.report import write_report
    from ..sweep import sweep

    # rich would break lines at 80 columns where there is no terminal to ask.
    progress = Progress(_wide(Console(stderr=True)))
    try:
        with progress:
            sweep(
                envs, agents, _number(horizon), runs, seed=seed, out=out, instances=instance, n_jobs=jobs,
                engine=engine, metrics=metrics or (), watcher=progress, tensorboard=tensorboard,
            )  # fmt: skip
    except AgentError as error:
        raise typer.Exit(_fail(f"{error}; {progress.kept(out)}", AGENT_FAULT)) from None
    except KeyboardInterrupt:
        raise typer.Exit(
            _fail(f"stopped; {progress.kept(out)}, and the same command goes on from there", INTERRUPTED)
        ) from None
    except (ValueError, TypeError, OSError, ImportError) as error:
        if progress.started:  # not the input any more: whoever wrote the agent wants to see where
            raise
        raise typer.Exit(_fail(str(error), BAD_INPUT)) from None
    write_report(out, _wide(Console()), bounds=bounds, instances=instance or ())


@app.command(cls=_SeveralValues)
def study(
    names: Annotated[list[str] | None, typer.Argument(
        metavar="ID...", help="Studies, before the options; [bold]clickgym list studies[/] names them.", show_default=False,
    )] = None,
    scale: Annotated[float, typer.Option(
        metavar="S", help="Fraction of the horizon; queries and runs are reduced by its fourth root. 1 is the paper's work.",
    )] = 0.01,
    out: Annotated[Path | None, typer.Option(
        metavar="DIR", help="Folder of the results; made if need be, gone on with if begun.", show_default=False,
    )] = None,
    instances: Annotated[list[str] | None, typer.Option(
        "--instances", "-i", metavar="NAME|FILE...", show_default="the shipped real queries",
        help="The queries: names, or JSON files of your own.",
    )] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="The same seed gives the same numbers.")] = 0,
    jobs: Annotated[int, typer.Option(metavar="N", help="Workers; -1 for one per processor. Changes no number.")] = -1,
    list_them: Annotated[bool, typer.Option("--list", help="Name the studies, and run nothing.")] = False,
) -> None:  # fmt: skip
    """Do a paper's experiment again, draw its figure, and judge what the paper says about it.

    [bold]Examples[/]

    A hundredth of the paper's horizon:

      clickgym study zoghi-fig1 --scale 0.01 --out results/zoghi

    Three figures of the same runs, which are done once, on queries of your own:

      clickgym study bubble-fig1 bubble-fig2 bubble-fig4 --instances queries/*.json --out results/bubble

    Each run is written when it ends: stop with Ctrl-C, and go on later with the same command.
    """
    from ..studies.run import StudyProgress, run_study

    if list_them:
        return list_("studies")
    if not names:
        raise ValueError("no study was named; clickgym study --list names them")
    if out is None:
        raise ValueError("the results need a folder; give --out DIR")
    progress = StudyProgress(_wide(Console(stderr=True)))
    try:
        run_study(names, scale, out, _wide(Console()), queries=instances, seed=seed, n_jobs=jobs, watcher=progress)
    except KeyboardInterrupt:
        raise typer.Exit(
            _fail(f"stopped; what is finished is kept in {out}, and the same command goes on from there", INTERRUPTED)
        ) from None
    except (ValueError, TypeError, OSError) as error:
        if progress.started:
            raise
        raise typer.Exit(_fail(str(error), BAD_INPUT)) from None
    finally:
        progress.stop()


@app.command(cls=_SeveralValues)
def evaluate(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="The click log of another policy, before the options.")],
    policy: Annotated[str, typer.Option(
        "--policy", "-p", metavar="uniform|fixed:ITEM,...|FILE.json:MODEL|FILE.npz",
        help="The policy to evaluate. [bold].json[/]: the best list of a click model in what [bold]clickgym fit[/] wrote (or a "
        "folder, for several queries). [bold].npz[/]: [bold]action_dist[/] (items, positions) or [bold]scores[/] (items; "
        "Plackett-Luce), and perhaps the labels of the [bold]items[/].",
    )],
    estimator: Annotated[list[str], typer.Option(
        "--estimator", "-e", metavar="NAME...", show_default="item-position",
        help="One or more of ips, cascade, item-position, pbm, cm, dcm, ubm, sdbn, dbn.",
    )] = ["item-position"],  # noqa: B006
    log_format: Annotated[str, typer.Option(
        "--format", metavar="auto|yandex-relevance|yandex-personalized|tidy|obd",
        help="As for [bold]clickgym fit[/]; [bold]obd[/] is the Open Bandit Dataset.",
    )] = "auto",
    query: Annotated[str | None, typer.Option(
        metavar="NAME", help="Only the sessions of one query.", show_default="all",
    )] = None,
    logging: Annotated[str | None, typer.Option(
        metavar="POLICY", show_default="what the log recorded",
        help="The policy that made the log: as --policy, or [bold]empirical[/], how often the log shows each list.",
    )] = None,
    reward: Annotated[str, typer.Option(
        metavar="clicks|any_click|satisfaction", help="What a list earns: its clicks, 1 for any, or 1 for a satisfied user.",
    )] = "clicks",
    cutoff: Annotated[int | None, typer.Option(
        metavar="N", help="Count only the first N positions.", show_default="all",
    )] = None,
    on_policy: Annotated[Path | None, typer.Option(
        metavar="LOG", help="A log of the evaluated policy itself, to compare with.", show_default=False,
    )] = None,
    bootstrap: Annotated[int, typer.Option(metavar="N", help="Resamplings for the intervals.")] = 1000,
    level: Annotated[float, typer.Option(metavar="P", help="Confidence level of the intervals.")] = 0.95,
    seed: Annotated[int, typer.Option(metavar="N", help="The same seed gives the same intervals.")] = 0,
) -> None:  # fmt: skip
    """Estimate from a log what another ranking policy would have earned.

    [bold]Examples[/]

    The Open Bandit Dataset: one policy from the log of another, beside its own log:

      clickgym evaluate random/all.csv --format obd --policy bts_action_dist_all.npz --on-policy bts/all.csv

    One list for one query, from a log that does not know how it was made; three click models side by side:

      clickgym evaluate log.csv --query shoes --policy fixed:a,c,b --estimator pbm dcm ubm

    The best list that a click model knows, five positions of it:

      clickgym evaluate log.csv --query shoes --policy shoes.json:UBM --cutoff 5 --estimator pbm ubm

    Click-model estimators fit their model to the log. Where a weight would be infinite, the estimate is refused.
    """
    from ...offline import ItemPositionLog
    from ...offline import evaluate as estimate
    from ...offline.evaluation import logged_reward
    from .evaluate import print_evaluations, read_policy, read_sessions

    try:
        logged = read_sessions(log, log_format, query)
        target = read_policy(policy, logged, reward, cutoff)
        source = None if logging is None else read_policy(logging, logged)
        results = [
            estimate(
                logged, target, name, logging=source, reward=reward, cutoff=cutoff, bootstrap=bootstrap, level=level, seed=seed
            )
            for name in estimator
        ]
        own = None if on_policy is None else logged_reward(read_sessions(on_policy, log_format, query), reward, cutoff)
    except (ValueError, OSError) as error:
        raise typer.Exit(_fail(str(error), BAD_INPUT)) from None
    what = "row" if isinstance(logged, ItemPositionLog) else "session"
    print_evaluations(results, own, level, what, _wide(Console()), reward, cutoff)


@app.command(cls=_SeveralValues)
def fit(
    log: Annotated[Path, typer.Argument(
        metavar="LOG", help="The click log, before the options; text files may be gzipped ([bold].gz[/]).", show_default=False,
    )],
    model: Annotated[list[str], typer.Option(
        "--model", "-m", metavar="MODEL...",
        help="One or more of [bold]CM[/], [bold]DCM[/], [bold]SDBN[/], [bold]PBM[/], [bold]UBM[/], [bold]DBN[/].",
    )],
    out: Annotated[Path, typer.Option(
        metavar="FILE|DIR", help="The instance file, [bold]name.json[/]; or a folder, for one file per query.",
    )],
    log_format: Annotated[str, typer.Option(
        "--format", metavar="auto|yandex-relevance|yandex-personalized|tidy",
        help="[bold]tidy[/] is CSV or Parquet with the columns session, query, position, item, clicked.",
    )] = "auto",
    queries: Annotated[list[str] | None, typer.Option(
        "--queries", "-q", metavar="QUERY...", show_default="the most frequent",
        help="The queries that become instances. All sessions of the log are fitted: queries share what belongs to positions.",
    )] = None,
    items: Annotated[int, typer.Option(metavar="N", help="Items of an instance, those displayed most.")] = 10,
    test_share: Annotated[float, typer.Option(
        metavar="S", help="Share of the sessions that is held out for the figures; the files are made from all sessions.",
    )] = 0.2,
    iterations: Annotated[int, typer.Option(metavar="N", help="The most steps of an EM algorithm.")] = 1000,
    tol: Annotated[float, typer.Option(
        metavar="X", help="EM ends when a step gains less than this in log-likelihood per session.",
    )] = 1e-7,
    per_query: Annotated[bool, typer.Option(
        "--per-query", help="Examination probabilities for each query by itself (PBM, UBM), instead of shared by all.",
    )] = False,
    seed: Annotated[int, typer.Option(metavar="N", help="Of the choice of the held-out sessions.")] = 0,
    skip_malformed: Annotated[bool, typer.Option(
        "--skip-malformed", help="Leave malformed lines and their sessions out, and count them, instead of refusing the log.",
    )] = False,
) -> None:  # fmt: skip
    """Fit click models to your click log: how well they predict, and an instance file to run agents on.

    [bold]Examples[/]

      clickgym fit log.csv --model PBM UBM --out query.json

      clickgym run PBMRank-v0 --instance query.json --agents BatchRank PBMUCB --horizon 1e5 --out mine

    Several queries of a Yandex log, a file each:

      clickgym fit log.tsv.gz --model PBM --queries 98435-1 9982-1 --out queries
    """
    from .fit import fit_log

    try:
        fit_log(
            log, model, out, log_format=log_format, queries=queries or (), n_items=items, test_share=test_share,
            iterations=iterations, tol=tol, per_query=per_query, seed=seed, strict=not skip_malformed,
            console=_wide(Console()), progress=_wide(Console(stderr=True)),
        )  # fmt: skip
    except OSError as error:
        raise typer.Exit(_fail(str(error), BAD_INPUT)) from None


@app.command(cls=_SeveralValues)
def features(
    data: Annotated[Path, typer.Argument(
        metavar="DATA", show_default=False,
        help="Ratings, [bold].csv[/] with the columns userId, movieId, rating; or documents with labels of relevance in the "
        "SVMlight form of LETOR, with qid or a file of query sizes beside them ([bold]NAME.query[/]). Either may be gzipped.",
    )],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The instance file, [bold]name.json[/].")],
    model: Annotated[list[str], typer.Option(
        "--model", "-m", metavar="MODEL...", help="One or more of [bold]UBM[/], [bold]PBM[/], [bold]CM[/], [bold]DCM[/].",
        show_default="UBM",
    )] = ["UBM"],  # noqa: B006
    candidates: Annotated[int, typer.Option(
        metavar="L", help="Items to choose from in a session. Users and queries that judged fewer are left out.",
    )] = 10,
    positions: Annotated[int, typer.Option(metavar="K", help="Positions of a list.")] = 5,
    linear: Annotated[bool, typer.Option(
        "--linear", help="Replace the attraction from labels by the linear function of the features that fits it best.",
    )] = False,
    floor: Annotated[float, typer.Option(metavar="P", help="Attraction of what has the label 0.")] = 0.05,
    reduce: Annotated[str, typer.Option(
        metavar="none|svd|autoencoder", help="Reduce the features of documents to a smaller dimension.",
    )] = "none",
    dimension: Annotated[int, typer.Option(
        metavar="N", help="Of the reduction; for ratings, of the decomposition: N features of the user, N of the item.",
    )] = 10,
    items: Annotated[int | None, typer.Option(
        metavar="N", help="Of ratings, only the N items that were rated most.", show_default="all",
    )] = None,
    examination: Annotated[str, typer.Option(
        metavar="NAME|FILE", help="The instance that says how users examine a list.",
    )] = DEFAULT_INSTANCE,
    seed: Annotated[int, typer.Option(metavar="N", help="Of the decomposition or the autoencoder.")] = 0,
) -> None:  # fmt: skip
    """Make a contextual instance from ratings or from judged documents: users, items, features, attraction.

    [bold]Examples[/]

    Films as candidates, features by singular value decomposition (He et al. 2020):

      clickgym features ml-latest-small/ratings.csv --out movielens.json

      clickgym run ContextualUBMRank-v0 --instance movielens.json --agents UBMLinUCB C2UCB --horizon 1e5 --out films

    Documents of queries, their features reduced to ten:

      clickgym features rank.train.gz --reduce svd --dimension 10 --out letor.json

    The attraction of a label y is floor + (1 - floor) (2^y - 1) / 2^largest.
    """
    from ...offline import contextual_instance, read_letor, read_ratings

    try:
        if out.suffix != ".json" or not out.absolute().parent.is_dir() or out.is_dir():
            raise ValueError(f"--out is {out}; expected the name of a .json file in a folder that exists")
        ratings = data.name.removesuffix(".gz").endswith((".csv", ".parquet"))
        judgements = read_ratings(data) if ratings else read_letor(data)
        instance = contextual_instance(
            judgements, model, n_items=candidates, n_positions=positions, linear=linear, floor=floor, reduce=reduce,
            dimension=dimension, most_rated=items, examination=examination, seed=seed, name=out.stem,
            origin=f"made by clickgym from {data.name}",
        )  # fmt: skip
        instance.save(out)
    except (ValueError, OSError, ImportError) as error:
        raise typer.Exit(_fail(str(error), BAD_INPUT)) from None
    console, left_out = _wide(Console()), instance.estimation["left_out"]
    whose = "users" if ratings else "queries"
    console.print(f"read {len(judgements):,} judgements of {len(judgements.user_labels):,} {whose}", highlight=False)
    if left_out:
        console.print(f"left out {left_out:,} {whose} with fewer than {candidates} candidates", highlight=False)
    console.print(f"{out}: {instance.description}", highlight=False, markup=False)


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(
        metavar="DIR", help="Folder of a finished [bold]clickgym run[/].", show_default=False,
    )],
    html: Annotated[bool, typer.Option("--html", help="Write [bold]report.html[/]: curves and tables to explore.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Write the table as [bold]report.md[/].")] = False,
    latex: Annotated[bool, typer.Option("--latex", help="Write the table as [bold]report.tex[/], for booktabs.")] = False,
    bounds: Annotated[bool, typer.Option("--bounds", help="Draw the lower and upper bounds of the theory, too.")] = False,
) -> None:  # fmt: skip
    """Make table and figure again from the results in a folder, and reports of them.

    [bold]Examples[/]

    One page that needs no network, and a table for a paper; both are written into the folder:

      clickgym report results/first --html --latex
    """
    from ..reports.report import Format, write_report

    wanted: dict[Format, bool] = {"html": html, "md": markdown, "tex": latex}
    try:
        write_report(folder, _wide(Console()), [name for name, is_wanted in wanted.items() if is_wanted], bounds=bounds)
    except OSError as error:
        raise typer.Exit(_fail(str(error), BAD_INPUT)) from None


app.command()(show)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: the words after the command; None takes those of this process.

    Returns:
        The exit code: 0, 1 where an agent failed, 2 for wrong input (named in one line on stderr), 130 after Ctrl-C.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        return app(list(arguments) or ["--help"], prog_name="clickgym", standalone_mode=False) or 0
    except UsageError as error:
        command = error.ctx.command_path if error.ctx else "clickgym"
        return _fail(f"{error.format_message().rstrip('.')}; try: {command} --help", BAD_INPUT)
    except ValueError as error:
        return _fail(str(error), BAD_INPUT)
    except KeyboardInterrupt:
        return INTERRUPTED


def _fail(message: str, code: int) -> int:
    print(f"clickgym: {' '.join(message.split())}", file=sys.stderr)
    return code


def _number(text: str) -> Any:
    """What was written as a horizon; words are left to the check that every horizon meets."""
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            pass
    return text


def _wide(console: Console) -> Console:
    """A console that does not break lines where there is no terminal, for files and pipes have no width."""
    if not console.is_terminal:
        console.width = 1000
    return console


def about(env: type) -> str:
    """The users of a registered environment in one line: what the first sentence of its page says about them."""
    text = " ".join((env.__doc__ or "").replace("**", "").split())
    return text.partition("users of the ")[2].partition(". ")[0]


def _print_rows(console: Console, title: str, rows: Sequence[Sequence[str]]) -> None:
    table = Table.grid(padding=(0, 2))
    for column in range(len(rows[0])):
        # On a terminal one line each is worth more than the end of the longest lines.
        table.add_column(no_wrap=True, overflow="ellipsis", style="bold" if column == 0 else None)
    for row in rows:
        table.add_row(*row)
    console.print(f"[bold underline]{title}[/]")
    console.print(table, highlight=False)
    console.print()
