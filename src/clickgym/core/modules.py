"""Import of modules that the caller names as ``module:Name``; names in files are never imported."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from time import time
from types import ModuleType
from typing import Any

from .faults import FAILURES, cause

STARTED = time()
"""When this process imported clickgym, in seconds like the times of files."""


def module_of(what: str, name: str) -> ModuleType:
    """Import the module of ``"module:Name"``; errors begin with ``what``.

    The working folder is appended to ``sys.path``, which worker processes get, too.
    """
    module, here = name.partition(":")[0], str(Path.cwd())
    if not all(part.isidentifier() for part in module.split(".")):
        raise ValueError(
            f"{what} {name!r}: {module!r} is not the name of a module; "
            "expected module:Name, such as my_module:MyName"
        )
    if here not in sys.path:
        sys.path.append(here)
    try:
        with _silent_exit():
            return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and module.partition(".")[0] == error.name.partition(".")[0]:
            raise ValueError(
                f"{what} {name!r}: there is no module {module!r} (looked in {here}, too)"
            ) from None
        fault: BaseException = error  # the module exists, but one of its own imports is missing
    except FAILURES as error:
        fault = error
    is_exit = isinstance(fault, SystemExit)
    why = "it parses the command line or ends the program: " if is_exit else ""
    raise ImportError(
        f"{what} {name!r}: the module {module!r} cannot be imported: {why}{cause(fault)}"
    ) from fault


@contextmanager
def _silent_exit() -> Iterator[None]:
    """Context in which a `SystemExit` leaves out what was written to stderr before it: a parser of
    arguments writes how another program is used.
    """
    before, held = sys.stderr, _Held(sys.stderr)
    sys.stderr = held
    try:
        yield
    except SystemExit:
        held.texts.clear()
        raise
    finally:
        held.release()
        if sys.stderr is held:
            sys.stderr = before


class _Held:
    """A stream that holds back what is written to it until it is released.

    Args:
        stream: gets all that is not held back. A handler of messages may keep this object for good.
    """

    def __init__(self, stream: Any) -> None:
        self.stream, self.texts, self.is_held = stream, list[str](), True

    def write(self, text: str) -> int:
        if not self.is_held:
            return int(self.stream.write(text))
        self.texts.append(text)
        return len(text)

    def release(self) -> None:
        self.is_held = False
        if self.texts:
            self.stream.write("".join(self.texts))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)
