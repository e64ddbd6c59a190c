"""Command line: the table of commands, which are loaded when they are called, and one-line messages
for their errors.

A command is a function that parses, calls one Python function, and prints. Other packages add
commands as entry points of the group `PLUGS`, ``name = "module:function"``.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Container, Iterable, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points, version
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from .core.faults import SessionError, WorkerError
from .core.files import FileError
from .core.formats import one_line
from .runner.console import USAGE_ERROR, interruptible, one_line_warnings, print_anywhere

BAD_INPUT, FAULT, INTERRUPTED = 2, 1, 130
PLUGS = "clickgym.commands"
LOGS = ("fit", "check-models", "evaluate", "features")
COMPANIONS = dict.fromkeys(LOGS, "./logs")
"""Commands of the other distribution of this repository, and what installs them."""
COMMANDS = {
    "run": "Play every agent in every environment, and print the table of regret.",
    "report": "Print the table of the results in a folder, and draw their figure.",
    "list": "List the environments, instances, agents and metrics.",
    "show": "Explain one of them: print the docstring of an agent or environment.",
    "bench": "Find out where an agent is strong and where it is weak.",
}
"""The commands of this package, in the order of the help text, with their short help. The command
``name`` is the function ``name`` in the module ``runner.commands.name``, but for the scorecard's.
"""
SECTIONS = {"Compare algorithms": (*COMMANDS,), "Click logs": LOGS}
"""The sections of the help text; commands of other packages stand in one of their own."""


def _plugged() -> dict[str, EntryPoint]:
    """Return the commands of other packages; they cannot replace a command of this package."""
    plugs = sorted(entry_points(group=PLUGS), key=lambda plug: plug.name)
    return {plug.name: plug for plug in plugs if plug.name not in COMMANDS}


def _package(plug: EntryPoint) -> str:
    return plug.dist.name if plug.dist else plug.value


def _summary(plug: EntryPoint) -> str:
    """Return the first paragraph of the docstring of a command. Its module is read and not
    imported, which would take seconds.
    """
    text = f"A command of {_package(plug)}."
    package, *modules = plug.module.split(".")
    spec = find_spec(package)
    for folder in spec.submodule_search_locations or () if spec else ():
        file = Path(folder, *modules).with_suffix(".py")
        with suppress(OSError, SyntaxError):
            for node in ast.parse(file.read_bytes()).body:
                if isinstance(node, ast.FunctionDef) and node.name == plug.attr:
                    text = ast.get_docstring(node) or text
    return " ".join(text.partition("\n\n")[0].split())


class _Commands(TyperGroup):
    """All commands; the help text imports no module, a command is imported when it is called."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {name: TyperCommand(name, short_help=COMMANDS[name]) for name in COMMANDS}

    def list_commands(self, ctx: Any) -> list[str]:
        return [*COMMANDS, *_plugged()]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the commands, section by section, and then the options."""
        names = self.list_commands(ctx)
        known = [name for section in SECTIONS.values() for name in section]
        others = tuple(name for name in names if name not in known)
        for title, section in {**SECTIONS, "Commands of other packages": others}.items():
            rows = [
                (name, self.get_command(ctx, name).short_help) for name in section if name in names
            ]
            _write(formatter, title, rows)
        _write(formatter, "Options", _records(ctx, self.get_params(ctx)))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        plug = _plugged().get(cmd_name)
        if plug is None:
            return super().get_command(ctx, cmd_name)
        return TyperCommand(cmd_name, short_help=_summary(plug))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] in COMPANIONS and args[0] not in _plugged():
            rooms = COMPANIONS[args[0]]
            added = f"the command {args[0]!r} comes with: pip install {rooms} (in a clone)"
            raise typer.Exit(_fail(added, BAD_INPUT))
        name, command, rest = super().resolve_command(ctx, args)
        return name, command and _load(str(command.name)), rest


def _records(ctx: Any, parameters: Iterable[Any]) -> list[tuple[str, str]]:
    """The rows of the help text of some parameters: how one is written, and what it does."""
    return [record for one in parameters if (record := one.get_help_record(ctx))]


def _write(formatter: Any, title: str, rows: list[tuple[str, str]]) -> None:
    """Write a section of a help text, if it has rows."""
    if rows:
        with formatter.section(title):
            formatter.write_dl(rows)


def _load(name: str) -> Any:
    if name in COMMANDS:
        place = ".bench.command" if name == "bench" else f".runner.commands.{name}"
        module = import_module(place, __package__)
        function = getattr(module, f"{name}_" if name == "list" else name)
    else:
        try:
            function = _plugged()[name].load()
        except Exception as error:  # code of another package
            package = _package(_plugged()[name])
            problem = f"the command {name!r} of {package} cannot be loaded: {error}"
            raise typer.Exit(_fail(problem, BAD_INPUT)) from error
    loaded = typer.Typer(
        pretty_exceptions_enable=False, add_completion=False, rich_markup_mode=None
    )
    loaded.command(name, cls=_Command)(function)
    return typer.main.get_command(loaded)


HELP = """Compare algorithms that learn to rank from clicks.

Three algorithms on the simulated users of a real search query:

clickgym run PBMRank-v0 --agents CascadeTS PBMUCB TopRank --horizon 1e4
"""

app = typer.Typer(
    cls=_Commands,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help=HELP,
    epilog="clickgym COMMAND --help explains a command, with examples.",
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
            "--version", is_eager=True, callback=_version, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Compare algorithms that learn to rank from clicks."""


def _spread(words: Sequence[str], repeatable: Container[str]) -> list[str]:
    """Return the words with a flag before each of its values: ``--agents A B`` becomes ``--agents A
    --agents B``.
    """
    spread: list[str] = []
    flag, expects_value = "", False
    for position, word in enumerate(words):
        if word == "--":
            return spread + list(words[position:])
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
    """A command that takes several values after one flag, and reports warnings in one line.

    Its options stand in the sections of the help text that they name as their panel, in the order
    in which the sections first appear.
    """

    def format_options(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[Any]] = {}
        for one in self.get_params(ctx):
            title = "Arguments" if one.param_type_name == "argument" else "Options"
            sections.setdefault(getattr(one, "rich_help_panel", None) or title, []).append(one)
        sections["Options"] = sections.pop("Options", [])
        for title, parameters in sections.items():
            _write(formatter, title, _records(ctx, parameters))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        several = [option for option in self.params if getattr(option, "multiple", False)]
        repeatable = {name for option in several for name in option.opts}
        return super().parse_args(ctx, _spread(args, repeatable))

    def invoke(self, ctx: Any) -> Any:
        try:
            with interruptible(), one_line_warnings():
                return super().invoke(ctx)
        except KeyboardInterrupt as error:  # which Typer would take for itself
            raise typer.Exit(_fail(str(error) or "stopped", INTERRUPTED)) from None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: the words after the command; None takes those of this process.

    Returns:
        The exit code: 0; 1 if an agent or an environment failed during a run, a worker died,
        or a file cannot be written; 2 for bad input; 130 after Ctrl-C. One line on stderr names
        the error. Any other error is a fault of clickgym, and is raised.
    """
    print_anywhere()
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        return app(list(arguments) or ["--help"], prog_name="clickgym", standalone_mode=False) or 0
    except typer.Abort:  # Ctrl-C while the words were read
        return INTERRUPTED
    except USAGE_ERROR as error:
        command = error.ctx.command_path if error.ctx else "clickgym"
        return _fail(f"{error.format_message().rstrip('.')}; try: {command} --help", BAD_INPUT)
    except (SessionError, WorkerError, FileError) as error:
        return _fail(str(error), FAULT)
    except OSError as error:
        has_name = error.filename and error.strerror
        return _fail(f"{error.filename}: {error.strerror}" if has_name else str(error), BAD_INPUT)
    except (ValueError, TypeError, ImportError) as error:
        return _fail(str(error), BAD_INPUT)
    except MemoryError as error:
        return _fail(f"the memory is not enough: {str(error) or 'it is full'}", FAULT)


def _fail(message: str, code: int) -> int:
    print(f"clickgym: {one_line(message)}", file=sys.stderr)
    return code
