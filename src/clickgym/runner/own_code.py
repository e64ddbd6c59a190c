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
from types import ModuleType
from typing import Any, NamedTuple

STANDARD = Path(get_path("stdlib")).resolve()
INSTALLED = ("site-packages", "dist-packages")
"""The folders of installed packages."""


def own_code(maker: Any) -> dict[str, str]:
    """The code of a class or a function: of its module, of the own modules of its base classes, and
    of the own modules that these import, directly or through each other.

    Args:
        maker: a class or a function. If it stands in a notebook, which has no file, the text of it
            and of its base classes there counts.

    Returns:
        The code by the names of modules, as parsed: without comments and docstrings.

    Raises:
        OSError, TypeError, SyntaxError: a text is not known.
    """
    bases = inspect.getmro(maker)[1:] if isinstance(maker, type) else ()
    code, left = dict[str, str](), list[str]()
    for kind in (maker, *filter(is_own, bases)):
        if file_of(kind.__module__) is None:
            code[f"{kind.__module__}:{kind.__qualname__}"] = inspect.getsource(kind)
        else:
            left.append(kind.__module__)
    while left:
        name = left.pop()
        if name not in code:
            text = _text(name)
            code[name] = text.parsed
            left += filter(_is_own_module, text.imports)
    return code


def is_own(kind: Any) -> bool:
    """Whether a class or a function stands in an own module or in a notebook."""
    name = str(getattr(kind, "__module__", ""))
    return _is_own_module(name) or (name == "__main__" and file_of(name) is None)


def _is_own_module(name: str) -> bool:
    file = file_of(name)
    return (
        file is not None
        and name.partition(".")[0] != "clickgym"
        and STANDARD not in file.parents
        and not any(folder in file.parts for folder in INSTALLED)
    )


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


# ------------------------------------------------------------------------------------------- texts


class Text(NamedTuple):
    """What counts of the text of a module."""

    parsed: str
    imports: list[str]


_texts: dict[str, tuple[ModuleType, Any, Text]] = {}
"""By its name a module, its ``__spec__``, which is new after a reload, and its text."""


def _text(name: str) -> Text:
    """The text of a module. That of an imported one is read once, because Python, too, sees an edit
    only when the module is loaded again.
    """
    module = sys.modules.get(name)
    spec = getattr(module, "__spec__", None)
    known, known_spec, text = _texts.get(name, (None, None, None))
    if text is not None and known is module and known_spec is spec:
        return text
    file = file_of(name)
    assert file is not None
    tree = ast.parse(file.read_bytes(), file)
    is_package = file.name == "__init__.py"
    package = name if is_package else name.rpartition(".")[0]
    imports = list(_imports(tree, getattr(module, "__package__", None) or package))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = node.body[ast.get_docstring(node, clean=False) is not None :]
    text = Text(ast.dump(tree), imports)
    if module is not None:
        _texts[name] = module, spec, text
    return text


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
                for alias in node.names:
                    inner = f"{base}.{alias.name}"
                    yield inner if file_of(inner) else base
