"""Import of the user's own modules by name, as in ``module:Name``. Names that clickgym reads from
files are never imported.
"""

from __future__ import annotations

import operator
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from .errors import FAILURES, cause
from .messages import suggestions


def import_user_module(noun: str, name: str) -> ModuleType:
    """Import and return the module in ``"module:Name"``. Error messages begin with ``noun``, such
    as "agent".

    The working folder is appended to ``sys.path``, so that its modules can be imported in this
    process and in worker processes, which receive ``sys.path``.
    """
    module, folder = name.partition(":")[0], str(Path.cwd())
    is_path = name.partition(":")[2][:1] in ("\\", "/")  # such as C:\agent.py
    if is_path or not all(part.isidentifier() for part in module.split(".")):
        raise ValueError(
            f"{noun} {name!r}: {module!r} is not the name of a module; "
            "expected module:Name, such as my_module:MyName"
        )
    if folder not in sys.path:
        sys.path.append(folder)
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and module.partition(".")[0] == error.name.partition(".")[0]:
            without = name.replace(".py:", ":", 1)
            is_label = ":" in name.partition(":")[2]  # such as mine:my_module:MyAgent
            meant = name.replace(":", "=", 1) if is_label else without
            hint = "" if meant == name else f"; did you mean {meant!r}?"
            raise ValueError(
                f"{noun} {name!r}: there is no module {module!r} among the installed packages "
                f"or in the working folder, {folder}{hint}"
            ) from None
        fault: BaseException = error  # the module exists, but one of its own imports is missing
    except FAILURES as error:
        fault = error
    is_exit = isinstance(fault, SystemExit)
    hint = "its import parses the command line or ends the program: " if is_exit else ""
    raise ImportError(
        f"{noun} {name!r}: the module {module!r} cannot be imported: {hint}{cause(fault)}"
    ) from fault


def import_user_object(noun: str, name: str) -> Any:
    """Return the object that ``"module:name"`` names, after importing its module.

    Args:
        noun: the word for the object in messages, such as "agent".
        name: the name of the module and the object.

    Raises:
        ValueError, ImportError: there is no such module or object, or the module cannot be
            imported. The message begins with ``noun``.
    """
    module_name, _, attribute = name.partition(":")
    module = import_user_module(noun, name)
    try:
        return operator.attrgetter(attribute)(module)
    except AttributeError:
        names = getattr(module, "__all__", vars(module))
        public_names = [other for other in names if other[0] != "_"]
        raise ValueError(
            f"{noun} {name!r}: the module {module_name!r} has no {attribute!r}"
            f"{suggestions(attribute, public_names)}"
        ) from None
