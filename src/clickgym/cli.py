"""The command line: the table of all commands, their help texts, and one-line messages for their
errors.

A command is a function that parses its options, calls one Python function and prints the result.
The module of a command is imported only when the command is called.
"""

from __future__ import annotations

import io
import os
import re
import signal
import sys
import warnings
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import version
from itertools import pairwise
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from .core.errors import SessionError, WorkerError
from .core.text import one_line
from .runner.console import error_console

BAD_INPUT, FAILURE, INTERRUPTED = 2, 1, 130
USAGE_ERROR: Any = typer.BadParameter.__base__
"""The class of errors in what the user typed, under which Typer exports none."""
NOT_A_NUMBER = (
    "Input should be a valid number, unable to parse string as a number",
    "expected a number, such as 20000 or 2e4",
)
"""A message of Typer about a number such as 20k, and the message that clickgym prints instead."""
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
"""An escape sequence that changes the colour of text, as in Gymnasium's warnings."""
SECTIONS = {
    "Compare algorithms": {
        "run": (
            "runner.commands.run:run",
            "Run every agent in every environment, and print a table of their regret.",
        ),
        "report": (
            "runner.commands.report:report",
            "Print the table of saved results, and draw their figure.",
        ),
        "list": (
            "runner.commands.list:list_",
            "List the environments, instances, agents and metrics.",
        ),
        "show": (
            "runner.commands.show:show",
            "Describe one environment, instance, agent or metric in detail.",
        ),
        "bench": (
            "bench.command:bench",
            "Find out on which kinds of tasks an agent is strong or weak.",
        ),
    },
    "Click logs": {
        "check-models": (
            "logs.commands.check_models:check",
            "Find out whether you can trust simulated users made from your click log.",
        ),
        "fit": (
            "logs.commands.fit:fit",
            "Make simulated users from your click log, and see which click model predicts clicks "
            "best.",
        ),
        "judgments": (
            "logs.commands.judgments:judgments",
            "Make simulated users from judged queries, so that better grades get more clicks.",
        ),
        "record": (
            "logs.commands.record:record",
            "Record a click log of simulated users, on which you can try the other commands.",
        ),
    },
}
"""The commands by section, in the order of the help text. A command has the import path of its
function and a line of help.
"""
COMMANDS = {name: command for section in SECTIONS.values() for name, command in section.items()}


class _Commands(TyperGroup):
    """The group of all commands. A command is imported when it is called; the help text imports no
    command.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {
            name: TyperCommand(name, short_help=text) for name, (_, text) in COMMANDS.items()
        }

    def list_commands(self, ctx: Any) -> list[str]:
        return [*COMMANDS]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the commands section by section, followed by the options."""
        for title, section in SECTIONS.items():
            _write_section(formatter, title, [(name, text) for name, (_, text) in section.items()])
        _write_section(formatter, "Options", _option_rows(ctx, self.get_params(ctx)))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        return name, command and _load(str(command.name)), rest


def _option_rows(ctx: Any, parameters: Iterable[Any]) -> list[tuple[str, str]]:
    """Return a row of the help text for each parameter that is not hidden: how to write the
    parameter, and what the parameter does.
    """
    return [record for parameter in parameters if (record := parameter.get_help_record(ctx))]


def _write_section(formatter: Any, title: str, rows: list[tuple[str, str]]) -> None:
    """Write a section of a help text, or nothing if the section has no rows."""
    if rows:
        with formatter.section(title):
            formatter.write_dl(rows)


def _load(name: str) -> Any:
    import_path, _ = COMMANDS[name]
    module, _, function = import_path.partition(":")
    command = getattr(import_module(f".{module}", __package__), function)
    typer_app = typer.Typer(
        pretty_exceptions_enable=False, add_completion=False, rich_markup_mode=None
    )
    typer_app.command(name, cls=_Command)(command)
    return typer.main.get_command(typer_app)


HELP = """Compare algorithms that learn to rank from clicks.

Compare three algorithms with simulated users of a real search query:

clickgym run PBMRank-v0 --agents CascadeTS PBMUCB TopRank --horizon 1e4
"""

app = typer.Typer(
    cls=_Commands,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help=HELP,
    epilog="To see the options and examples of a command, run clickgym COMMAND --help.",
)


def _version(is_requested: bool) -> None:
    if is_requested:
        print(f"clickgym {version('clickgym')}")
        raise typer.Exit


@app.callback()
def clickgym(
    show_version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_version, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Compare algorithms that learn to rank from clicks."""


def _repeat_flags(words: Sequence[str], repeatable: Container[str]) -> list[str]:
    """Return the words of a command line with every repeatable flag before each of its values, so
    that ``--agents A B`` becomes ``--agents A --agents B``.
    """
    spread: list[str] = []
    flag, expects_value = "", False
    for word in words:
        if word.startswith("-"):
            name, equals, _ = word.partition("=")
            flag, expects_value = name if name in repeatable else "", not equals
        elif flag and not expects_value:
            spread.append(flag)
        else:
            expects_value = False
        spread.append(word)
    return spread


class _Command(TyperCommand):
    """A command that accepts several values after one flag, and prints each warning on one line.

    The help text groups the options by their ``rich_help_panel``, in the order in which the panels
    first appear. Options without a panel come last.
    """

    def format_options(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[Any]] = {}
        for parameter in self.get_params(ctx):
            title = "Arguments" if parameter.param_type_name == "argument" else "Options"
            sections.setdefault(getattr(parameter, "rich_help_panel", None) or title, []).append(
                parameter
            )
        sections["Options"] = sections.pop("Options", [])
        for title, parameters in sections.items():
            _write_section(formatter, title, _option_rows(ctx, parameters))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        for before, word in pairwise(["the command", *args]):
            if word == "" or (word.startswith("--") and word.endswith("=")):
                raise ValueError(f"the value after {word or before} is empty")
        several = [option for option in self.params if getattr(option, "multiple", False)]
        repeatable = {name for option in several for name in option.opts}
        return super().parse_args(ctx, _repeat_flags(args, repeatable))

    def invoke(self, ctx: Any) -> Any:
        try:
            with _interruptible(), _one_line_warnings():
                return super().invoke(ctx)
        except KeyboardInterrupt as error:  # Typer would discard the message
            raise typer.Exit(_fail(str(error) or "stopped", INTERRUPTED)) from None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, and return its exit code.

    Args:
        arguments: the words after ``clickgym`` on the command line; by default, the arguments of
            this process.

    Returns:
        The exit code: 0 on success; 1 if an agent or an environment failed during a run, a worker
        process died, or memory ran out; 2 for invalid input, or for a file that cannot be read or
        written; 130 after Ctrl-C. A one-line message on stderr describes the error. Any other
        exception is a bug in clickgym and is raised, as is every exception if the environment
        variable ``CLICKGYM_TRACEBACK`` is set.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # escape characters that its encoding lacks
            stream.reconfigure(errors="backslashreplace")
    arguments = sys.argv[1:] if arguments is None else arguments
    if os.environ.get("CLICKGYM_TRACEBACK"):
        return _call(arguments)
    try:
        return _call(arguments)
    except typer.Abort:  # Ctrl-C while the arguments were parsed
        return INTERRUPTED
    except USAGE_ERROR as error:
        command = error.ctx.command_path if error.ctx else "clickgym"
        message = error.format_message().rstrip(".").replace(*NOT_A_NUMBER)
        return _fail(f"{message}; try: {command} --help", BAD_INPUT)
    except (SessionError, WorkerError) as error:
        return _fail(str(error), FAILURE)
    except OSError as error:
        has_name = error.filename and error.strerror
        return _fail(f"{error.filename}: {error.strerror}" if has_name else str(error), BAD_INPUT)
    except (ValueError, TypeError, ImportError) as error:
        return _fail(str(error), BAD_INPUT)
    except MemoryError as error:
        return _fail(f"not enough memory: {error}" if str(error) else "not enough memory", FAILURE)


def _call(arguments: Sequence[str]) -> int:
    return app(list(arguments) or ["--help"], prog_name="clickgym", standalone_mode=False) or 0


def _fail(message: str, code: int) -> int:
    print(f"clickgym: {one_line(message)}", file=sys.stderr)
    return code


@contextmanager
def _one_line_warnings() -> Iterator[None]:
    """Context manager that prints each warning on one line, without the file and line number of the
    code.
    """

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        plain = COLOUR.sub("", str(message))
        text = f"clickgym: {one_line(plain)}"
        error_console().print(text, highlight=False, markup=False, emoji=False)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


@contextmanager
def _interruptible() -> Iterator[None]:
    """Context manager within which Ctrl-C and SIGTERM raise a KeyboardInterrupt, which the command
    reports. At the end, the previous signal handlers are restored.
    """
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        for number in before:
            signal.signal(number, signal.default_int_handler)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
