"""Your own modules: their import by name, ``module:Name``, and the digests of their files. Names in
files are never imported.
"""

from __future__ import annotations

import os
import sys
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from types import ModuleType

from .faults import FAILURES, cause


def module_of(what: str, name: str) -> ModuleType:
    """Import the module of ``"module:Name"``; errors begin with ``what``.

    The working folder is appended to ``sys.path``, which worker processes get, too.
    """
    module, here = name.partition(":")[0], str(Path.cwd())
    is_path = name.partition(":")[2][:1] in ("\\", "/")  # of Windows
    if is_path or not all(part.isidentifier() for part in module.split(".")):
        raise ValueError(
            f"{what} {name!r}: {module!r} is not the name of a module; "
            "expected module:Name, such as my_module:MyName"
        )
    if here not in sys.path:
        sys.path.append(here)
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and module.partition(".")[0] == error.name.partition(".")[0]:
            raise ValueError(
                f"{what} {name!r}: there is no module {module!r} (also looked in {here})"
            ) from None
        fault: BaseException = error  # the module exists, but one of its own imports is missing
    except FAILURES as error:
        fault = error
    is_exit = isinstance(fault, SystemExit)
    why = "it parses the command line or ends the program: " if is_exit else ""
    raise ImportError(
        f"{what} {name!r}: the module {module!r} cannot be imported: {why}{cause(fault)}"
    ) from fault


INSTALLED = (os.path.dirname(os.__file__), "site-packages", "dist-packages")
"""Parts of the paths of modules that are not your own: of Python and of installed packages."""


def own_modules(*, with_script: bool = False) -> dict[str, str]:
    """The digests of the files of your own modules that are loaded: of all that are neither of
    Python nor of an installed package, nor of this one.

    Args:
        with_script: the script that was started, too.

    Returns:
        Digests by files, such as ``"my_module.py"`` or ``"my_package/agents.py"``.
    """
    found, script = {}, sys.modules.get("__main__")
    for name, module in [*sys.modules.items()]:
        file = getattr(module, "__file__", None)
        if not isinstance(file, str) or (module is script and not with_script):
            continue
        is_own = name.partition(".")[0] != "clickgym" and not any(it in file for it in INSTALLED)
        if is_own and os.path.isfile(file):
            depth = name.count(".") + 1 + file.endswith("__init__.py")
            found["/".join(Path(file).parts[-depth:])] = digest_of(file)
    return found


def digest_of(file: str | os.PathLike[str]) -> str:
    """The digest of what is in a file."""
    return sha256(Path(file).read_bytes()).hexdigest()
