"""The command line: ``clickgym list``, ``show``, ``run``, ``merge``, ``study``, ``bench``, ``fit``, ``features``, ``evaluate``,
``decide`` and ``report``.

Each command is a file: it parses, calls one Python function, and prints. What they raise is told here, and only here.
"""

from __future__ import annotations

import errno
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from ...envs import KernelError, SessionError
from ...envs.files import FileError
from ..formats import one_line
from ..loop import WorkerError
from .bench import bench
from .console import bold, interruptible, one_line_warnings
from .decide import decide
from .evaluate import evaluate
from .features import features
from .fit import fit
from .listing import list_
from .merge import merge
from .names import OPEN_FLAG
from .report import report
from .run import USAGE_ERROR, run
from .show import show
from .study import study

__all__ = ["main"]

BAD_INPUT, FAULT, INTERRUPTED = 2, 1, 130

app = typer.Typer(
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
    show_version: Annotated[bool, typer.Option(
        "--version", is_eager=True, callback=_version, help="Print the version, and nothing else.",
    )] = False,
) -> None:  # fmt: skip
    """Compare algorithms that learn to rank from clicks."""


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
        if flag is not None:
            ctx.meta[OPEN_FLAG] = flag  # what a shell completes belongs to it
        return super().parse_args(ctx, spread)


class _Command(_SeveralValues):
    """Says in one line what went wrong.

    A command that plays sessions leaves in ``context.obj`` the `Progress` that tells whether they were begun, and what is kept.
    """

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        try:
            with interruptible(), one_line_warnings():
                return super().invoke(ctx)
        except SessionError as error:
            kept = "" if ctx.obj is None else f"; {ctx.obj.kept(ctx.params['out'])}"
            code, message = FAULT, f"{error}{kept}"
        except (FileError, WorkerError) as error:
            going_on = ctx.obj is not None and ctx.obj.started
            kept = f"; {ctx.obj.kept(ctx.params['out'])}, and the same command goes on from there" if going_on else ""
            full = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
            code, message = FAULT if going_on or full else BAD_INPUT, f"{error}{kept}"
        except KeyboardInterrupt:
            if ctx.obj is None or not ctx.obj.started:
                raise typer.Exit(INTERRUPTED) from None
            kept = ctx.obj.kept(ctx.params["out"])
            code, message = INTERRUPTED, f"stopped; {kept}, and the same command goes on from there"
        except (ValueError, KernelError) as error:
            code, message = BAD_INPUT, str(error)
        except (TypeError, OSError, ImportError) as error:
            # Once sessions are played it is not the input any more: whoever wrote the agent wants to see where. And where none
            # are, no word becomes the argument of a class that might not take it.
            if _is_of_output(error) or (ctx.obj.started if ctx.obj is not None else isinstance(error, TypeError)):
                raise
            code, message = BAD_INPUT, str(error)
        raise typer.Exit(_fail(message, code))

    def format_help(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        """Fill in the names that only the package of logs knows, which is slow to load."""
        for parameter in self.params:
            for text in ("help", "metavar"):
                if "{" in (getattr(parameter, text, None) or ""):
                    setattr(parameter, text, getattr(parameter, text).format(**_offline_names()))
        super().format_help(ctx, formatter)


def _offline_names() -> dict[str, str]:
    from ...offline import ESTIMATORS
    from ...offline.estimation.estimator import MODEL_ESTIMATORS
    from ...offline.readers import LOG_FORMATS

    return {
        "estimators": ", ".join(ESTIMATORS),
        "log_formats": "|".join(LOG_FORMATS),
        "models": ", ".join(map(bold, MODEL_ESTIMATORS)),
    }


app.command("list", cls=_Command)(list_)
for command in (show, run, merge, study, bench, evaluate, decide, fit, features, report):
    app.command(cls=_Command)(command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: the words after the command; None takes those of this process.

    Returns:
        The exit code: 0; 1 where an agent or an environment failed in mid-run, a worker was killed, the disk is full, or no
        more can be written; 2 for wrong input; 130 after Ctrl-C. What is wrong is named in one line on stderr.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        code = app(list(arguments) or ["--help"], prog_name="clickgym", standalone_mode=False) or 0
        sys.stdout.flush()
        return code
    except OSError as error:
        if not _is_of_output(error):
            raise
        return _fail("what is printed cannot be written: the disk is full", FAULT)
    except typer.Abort:  # Ctrl-C while the words were read
        return INTERRUPTED
    except USAGE_ERROR as error:
        command = error.ctx.command_path if error.ctx else "clickgym"
        return _fail(f"{error.format_message().rstrip('.')}; try: {command} --help", BAD_INPUT)


def _is_of_output(error: Exception) -> bool:
    """Whether it is what standard output says on a full disk; files are written elsewhere, and named."""
    return isinstance(error, OSError) and error.errno == errno.ENOSPC and error.filename is None


def _fail(message: str, code: int) -> int:
    print(f"clickgym: {one_line(message)}", file=sys.stderr)
    return code
