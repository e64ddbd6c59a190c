"""Your own code behind a class or a function: the modules whose text decides what is played.

Own modules are those in no installed package and not in the standard library. Their imports are
found in their syntax, so those within functions count, too.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec, resolve_name
from itertools import accumulate
from pathlib import Path
from sysconfig import get_path
from typing import Any

from ..core.modules import STARTED

STANDARD = Path(get_path("stdlib")).resolve()
INSTALLED = ("site-packages", "dist-packages")
"""The folders of installed packages."""


class NoIdentityError(ValueError):
    """Something cannot be compared; the message says why."""


def own_code(maker: Any) -> dict[str, str]:
    """The code of a class or a function: of its module, of the own modules of its base classes, and
    of the own modules that these import, directly or through each other.

    Args:
        maker: a class or a function. Modules of its package count as own, also if it is installed.

    Returns:
        The code by the names of modules, as parsed: without comments and docstrings.

    Raises:
        NoIdentityError: a module has no file, as a notebook; or its file was edited after this
            Python started, which may play the old code, or a mixture.
    """
    bases = inspect.getmro(maker)[1:] if isinstance(maker, type) else ()
    package = maker.__module__.partition(".")[0]
    left = [part.__module__ for part in (maker, *filter(is_own, bases))]
    code: dict[str, str] = {}
    while left:
        name = left.pop()
        if name not in code:
            code[name], imports = _read(name)
            left += [other for other in imports if _is_own_module(other, package)]
    return code


def is_own(code: Any) -> bool:
    """Whether a class or a function stands in an own module or in a notebook."""
    name = str(getattr(code, "__module__", ""))
    return _is_own_module(name) or (name == "__main__" and file_of(name) is None)


def _is_own_module(name: str, package: str = "") -> bool:
    """Whether a module is own, or of a package that counts as own."""
    file, top = file_of(name), name.partition(".")[0]
    if file is None or top == "clickgym":
        return False
    if top == package:
        return True
    is_installed = any(folder in file.parts for folder in INSTALLED)
    return not is_installed and STANDARD not in file.parents


def file_of(name: str) -> Path | None:
    """The file of a module, imported or not; None without one."""
    file = getattr(sys.modules[name], "__file__", None) if name in sys.modules else _found(name)
    return Path(file).resolve() if file and Path(file).is_file() else None


def _found(name: str) -> str | None:
    """The file of a module that is not imported yet. To find it, Python imports the package around
    it; only an own one is.
    """
    package, dot, _ = name.partition(".")
    if dot and file_of(package) is not None and not _is_own_module(package):
        return None
    with suppress(Exception):  # of that package: whoever plays will see it
        spec = find_spec(name)
        return None if spec is None else spec.origin
    return None


def _read(name: str) -> tuple[str, list[str]]:
    """The code of a module as parsed, without docstrings, and the names of what it imports.

    Raises:
        NoIdentityError: there is none, it is no Python, or it was edited in the meantime.
    """
    file = file_of(name)
    if file is None:
        raise NoIdentityError(f"{name} has no file: put it into a module")
    if file.stat().st_mtime > STARTED:
        raise NoIdentityError(f"{file} was edited after this Python started: restart it")
    try:
        tree = ast.parse(file.read_bytes(), file)
    except (SyntaxError, ValueError) as error:
        raise NoIdentityError(f"{file} cannot be read ({error})") from None
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]
    package = getattr(sys.modules.get(name), "__package__", None) or package
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = node.body[ast.get_docstring(node, clean=False) is not None :]
    return ast.dump(tree), list(_imports(tree, package))


def _imports(tree: ast.Module, package: str) -> Iterator[str]:
    """Yield the names of the modules that a module imports.

    Args:
        tree: its syntax.
        package: to which its relative imports refer.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from accumulate(alias.name.split("."), "{}.{}".format)
        elif isinstance(node, ast.ImportFrom):
            with suppress(ImportError):  # a relative import of a script
                base = resolve_name("." * node.level + (node.module or ""), package)
                yield base
                yield from (f"{base}.{alias.name}" for alias in node.names)  # if it is a module
