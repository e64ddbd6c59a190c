"""The command line: ``clickgym list``, ``clickgym run``, ``clickgym report``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from typer.core import TyperCommand

from ..agents import AGENTS, LEARNERS
from ..envs import ENVIRONMENTS, list_instances
from ..envs.checks import unknown

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
        help="Only [bold]environments[/], [bold]instances[/] or [bold]agents[/]; by default all.",
    )] = "",
) -> None:  # fmt: skip
    """What there is to run: environments, instances and agents, one line each.

    The parameters of an environment are on its documentation page, those of an agent in its docstring:
    [bold]python -c "import clickgym; help(clickgym.agents.BatchRank)"[/]
    """
    kinds = ["environments", "instances", "agents"]
    if what not in ["", *kinds]:
        raise ValueError(unknown("kind", what, kinds))
    console = _wide(Console())
    if what in ("", "environments"):
        rows = [(name, about(scalar)) for name, (scalar, _) in ENVIRONMENTS.items()]
        _print_rows(console, "Environments, by their users", rows)
    if what in ("", "instances"):
        _print_rows(console, "Instances (--instance)", list(list_instances().items()))
    if what in ("", "agents"):
        ranks: dict[str, Any] = {**AGENTS, **LEARNERS}
        told = {name: ", ".join(getattr(agent, "told", {})) for name, agent in ranks.items()}
        _print_rows(console, "Agents (--agents)", [
            (name, agent.paper, f"for {agent.click_models}", f"is told {told[name]}" if told[name] else "")
            for name, agent in ranks.items()
        ])  # fmt: skip


@app.command(cls=_SeveralValues)
def run(
    envs: Annotated[list[str], typer.Argument(
        metavar="ENVS...",
        help="Environments, before the options, as [bold]PBMRank-v0[/] or [bold]PBMRank-v0:reward=any_click[/].",
    )],
    agents: Annotated[list[str], typer.Option(
        "--agents", "-a", metavar="AGENT...",
        help="One or more agents, as [bold]BatchRank[/], with arguments [bold]CascadeKLUCB:feedback=first_click[/], or "
        "your own [bold]module:Class[/].",
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
    from .loop import AgentError
    from .progress import Progress
    from .report import write_report
    from .sweep import sweep

    # rich would break lines at 80 columns where there is no terminal to ask.
    progress = Progress(_wide(Console(stderr=True)))
    try:
        with progress:
            sweep(
                envs, agents, _number(horizon), runs, seed=seed, out=out, instances=instance, n_jobs=jobs,
                engine=engine, watcher=progress,
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
    write_report(out, _wide(Console()))


@app.command()
def report(folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a finished [bold]clickgym run[/].")]) -> None:
    """Make table and figure again from the results in a folder."""
    from .report import write_report

    write_report(folder, _wide(Console()))


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
