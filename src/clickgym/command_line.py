"""Command line: the table of commands, each loaded when it is called, and the one-line messages of
what they raise.

Each command is a file in the folder ``commands`` of its room: it parses, calls one Python function,
and prints. Other packages add commands as entry points of the group `PLUGS`, ``name =
"module:function"``.
"""

from __future__ import annotations

import errno
import sys
import warnings
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points, version
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from .core.console import OPEN_FLAG, USAGE_ERROR, errors, interruptible
from .core.faults import SessionError, WorkerError
from .core.files import FileError
from .core.formats import one_line
from .core.kernels import KernelError

if TYPE_CHECKING:
    from .runner.progress import Progress

BAD_INPUT, FAULT, INTERRUPTED = 2, 1, 130
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""How the system says that no more can be written."""

PLUGS = "clickgym.commands"
COMMANDS = {
    "list": ("runner:list_", "List the environments, instances, agents and metrics."),
    "show": (
        "runner:show",
        "Describe an agent, environment, instance or metric: its parameters, its paper and what it needs.",
    ),
    "run": (
        "runner:run",
        "Run every agent in every environment, and write a table and a figure of the regret.",
    ),
    "tune": (
        "runner:tune",
        "Search for the hyper-parameters that give an agent the lowest regret, within a budget of sessions.",
    ),
    "report": (
        "runner:report",
        "Write the table, the figure and a page of the results in a folder.",
    ),
}
"""The commands in the order of the help text: the room and the function of each, in
``commands/NAME.py`` of the room; and the first line of its docstring.
"""


@cache
def _plugged() -> dict[str, EntryPoint]:
    """The commands of other packages: none takes the place of one of ours."""
    found: dict[str, EntryPoint] = {}
    for each in entry_points(group=PLUGS):
        if each.name not in COMMANDS:
            found.setdefault(each.name, each)
    return found


def _package(plug: EntryPoint) -> str:
    return plug.dist.name if plug.dist else plug.value


class _Commands(TyperGroup):
    """The commands of `COMMANDS` and of other packages; the help text needs no module, and that of
    a command loads when it is called.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {
            name: TyperCommand(name, help=text) for name, (_, text) in COMMANDS.items()
        }

    def list_commands(self, ctx: Any) -> list[str]:
        return [*COMMANDS, *sorted(_plugged())]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in _plugged():
            return TyperCommand(cmd_name, help=f"A command of {_package(_plugged()[cmd_name])}.")
        return super().get_command(ctx, cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        return name, command and _load(str(command.name)), rest


@cache  # whoever calls `main` again in one process
def _load(name: str) -> Any:
    return _made(name, _function(name))


def _function(name: str) -> Any:
    if name in COMMANDS:
        room, _, function = COMMANDS[name][0].partition(":")
        return getattr(
            import_module(f".{room}.commands.{name.replace('-', '_')}", __package__), function
        )
    try:
        return _plugged()[name].load()
    except Exception as error:  # code of others
        problem = f"the command {name!r} of {_package(_plugged()[name])} cannot be loaded: {error}"
        raise typer.Exit(_fail(problem, BAD_INPUT)) from error


def _made(name: str, function: Any) -> Any:
    loaded = typer.Typer(pretty_exceptions_enable=False, add_completion=False)
    loaded.command(name, cls=_Command)(function)
    return typer.main.get_command(loaded)


app = typer.Typer(
    cls=_Commands,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Compare algorithms that learn to rank from clicks.",
    epilog="Start with:  [bold]clickgym run PBMRank-v0 --agents BatchRank TopRank --horizon 1e5 --runs 5 --out first[/]",
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"clickgym {version('clickgym')}")
        raise typer.Exit


@app.callback()
def clickgym(
    show_version: Annotated[
        bool,
        typer.Option(
            "--version",
            is_eager=True,
            callback=_version,
            help="Print the version and exit.",
        ),
    ] = False,
) -> None:
    """Compare algorithms that learn to rank from clicks."""


def _spread(words: Sequence[str], repeatable: Container[str]) -> tuple[list[str], str | None]:
    """The words with a flag before each of its values, and the flag that the last of them belong
    to.
    """
    spread: list[str] = []
    flag, first = None, False
    for position, word in enumerate(words):
        if word == "--":
            spread += words[position:]
            break
        if word.startswith("-"):
            name, equals, _ = word.partition("=")
            flag, first = (name if name in repeatable else None), not equals
        elif flag is not None and not first:
            spread.append(flag)
        else:
            first = False
        spread.append(word)
    return spread, flag


@contextmanager
def one_line_warnings() -> Iterator[None]:
    """Print warnings in one line, without the place in the code."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        errors().print(
            f"clickgym: {one_line(str(message))}", highlight=False, markup=False, emoji=False
        )

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


class _Command(TyperCommand):
    """Says in one line what went wrong; and takes several values after one flag: ``--agents A B``
    is ``--agents A --agents B``.

    A command that plays sessions leaves in ``context.obj`` the `Progress` that tells whether they
    were begun, and what is kept.
    """

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        repeatable = {
            name
            for option in self.params
            if getattr(option, "multiple", False)
            for name in option.opts
        }
        words, flag = _spread(args, repeatable)
        if flag is not None:
            ctx.meta[OPEN_FLAG] = flag  # what a shell completes belongs to it
        return super().parse_args(ctx, words)

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        try:
            with interruptible(), one_line_warnings():
                return super().invoke(ctx)
        except (Exception, KeyboardInterrupt) as error:
            fault = _fault(error, ctx.obj, ctx.params.get("out"))
            if fault is None:
                raise
        message, code = fault
        raise typer.Exit(_fail(message, code) if message is not None else code)


def _fault(
    error: BaseException, progress: Progress | None, out: Any
) -> tuple[str | None, int] | None:
    """What went wrong, if that is to be said, and the exit code; None for a fault of code, which is
    raised.

    Args:
        error: what the command raised.
        progress: of its sessions, if it plays any.
        out: the folder of its results.
    """
    kept = ""
    if progress is not None:
        kept = f"; {progress.kept(out)}"
        if progress.started:
            return _fault_in_mid_run(error, kept)
    match error:
        case SessionError():
            return f"{error}{kept}", FAULT
        case FileError() | WorkerError():
            return str(error), FAULT if getattr(error, "errno", None) in FULL else BAD_INPUT
        case KeyboardInterrupt():
            return None, INTERRUPTED
        case ValueError() | KernelError():
            return str(error), BAD_INPUT
        case TypeError() if progress is None:
            return None  # no word becomes the argument of a class that might not take it
        case TypeError() | OSError() | ImportError() if not _is_of_output(error):
            return str(error), BAD_INPUT
    return None


def _fault_in_mid_run(error: BaseException, kept: str) -> tuple[str, int] | None:
    """The same once sessions are played: it is not the input any more, and whoever wrote the agent
    wants to see where.
    """
    resumed = f"{kept}, and the same command resumes it"
    match error:
        case SessionError():
            return f"{error}{kept}", FAULT
        case FileError() | WorkerError():
            return f"{error}{resumed}", FAULT
        case KeyboardInterrupt():
            return f"stopped{resumed}", INTERRUPTED
        case ValueError() | KernelError():
            return str(error), BAD_INPUT
    return None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: the words after the command; None takes those of this process.

    Returns:
        The exit code: 0; 1 where an agent or an environment failed in mid-run, a worker was killed,
        the disk is full, or no more can be written; 2 for wrong input; 130 after Ctrl-C. What is
        wrong is named in one line on stderr.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        code = app(list(arguments) or ["--help"], prog_name="clickgym", standalone_mode=False) or 0
        sys.stdout.flush()
        return code
    except OSError as error:
        if not _is_of_output(error):
            raise
        return _fail("the output cannot be written: the disk is full", FAULT)
    except typer.Abort:  # Ctrl-C while the words were read
        return INTERRUPTED
    except USAGE_ERROR as error:
        command = error.ctx.command_path if error.ctx else "clickgym"
        return _fail(f"{error.format_message().rstrip('.')}; try: {command} --help", BAD_INPUT)


def _is_of_output(error: Exception) -> bool:
    """Whether it is what standard output says on a full disk; files are written elsewhere, and
    named.
    """
    return isinstance(error, OSError) and error.errno == errno.ENOSPC and error.filename is None


def _fail(message: str, code: int) -> int:
    print(f"clickgym: {one_line(message)}", file=sys.stderr)
    return code
