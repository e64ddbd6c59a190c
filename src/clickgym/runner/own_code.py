"""Your own code behind a class or a function: the modules whose text decides what is played.

Own modules are those in no installed package and not in the standard library. Their imports are
found in their syntax, so those within functions count, too.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import struct
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


class NoIdentityError(ValueError):
    """Something cannot be compared; the message says why."""


def own_code(maker: Any) -> dict[str, str]:
    """The code of a class or a function: of its module, of the own modules of its base classes, and
    of the own modules that these import, directly or through each other.

    Args:
        maker: a class or a function. Modules of its package count as own, also if it is installed.
            In a notebook, which has no file, the cells of it and of its base classes count.

    Returns:
        The code by the names of modules, as parsed: without comments and docstrings.

    Raises:
        NoIdentityError: a text is not known, or is no longer what Python has imported.
    """
    bases = inspect.getmro(maker)[1:] if isinstance(maker, type) else ()
    package = maker.__module__.partition(".")[0]
    code, left = dict[str, str](), list[str]()
    for kind in (maker, *filter(is_own, bases)):
        if file_of(kind.__module__) is None:
            code[f"{kind.__module__}:{kind.__qualname__}"] = _cell(kind)
        else:
            left.append(kind.__module__)
    while left:
        name = left.pop()
        if name not in code:
            text = _text(name)
            code[name] = text.parsed
            left += [it for it in text.imports if _is_own_module(it, package)]
    name = maker.__qualname__.partition(".")[0]
    if maker.__module__ == "__main__" in code and name not in _text("__main__").names:
        raise NoIdentityError(f"{name} does not stand in {file_of('__main__')}")
    return code


def is_own(kind: Any) -> bool:
    """Whether a class or a function stands in an own module or in a notebook."""
    name = str(getattr(kind, "__module__", ""))
    return _is_own_module(name) or (name == "__main__" and file_of(name) is None)


def _is_own_module(name: str, package: str = "") -> bool:
    """Whether a module is own, or of a package that counts as own."""
    file, top = file_of(name), name.partition(".")[0]
    if file is None or top in ("clickgym", package):
        return file is not None and top == package != "clickgym"
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


# ------------------------------------------------------------------------------------------- texts


class Text(NamedTuple):
    """What counts of the text of a module.

    Attributes:
        parsed: its syntax.
        imports: modules.
        names: what it defines.
    """

    parsed: str
    imports: list[str]
    names: set[str]


_seen: dict[str, tuple[ModuleType, Any, str]] = {}
"""By its name a module, its ``__spec__``, which is new after a reload, and the code it then had."""


def _text(name: str) -> Text:
    """The text of a module.

    Raises:
        NoIdentityError: it is no Python, or was edited after Python imported it.
    """
    file, module = file_of(name), sys.modules.get(name)
    assert file is not None
    try:
        tree = ast.parse(file.read_bytes(), file)
    except (OSError, SyntaxError, ValueError) as error:
        raise NoIdentityError(f"{file} cannot be read ({error})") from None
    is_package = file.name == "__init__.py"
    package = name if is_package else name.rpartition(".")[0]
    imports = list(_imports(tree, getattr(module, "__package__", None) or package))
    names = {
        node.id if isinstance(node, ast.Name) else node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef | ast.FunctionDef)
        or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    }
    text = Text(_without_docstrings(tree), imports, names)
    if module is not None:
        spec = getattr(module, "__spec__", None)
        if name not in _seen or _seen[name][0] is not module or _seen[name][1] is not spec:
            _seen[name] = module, spec, text.parsed if _is_current(module, file) else ""
        if _seen[name][2] != text.parsed:
            raise NoIdentityError(f"{file} was edited after Python imported it: restart Python")
    return text


def _is_current(module: ModuleType, file: Path) -> bool:
    """Whether a file is as it was when its module was imported, as far as its bytecode tells."""
    try:
        header = Path(getattr(module, "__cached__", None) or "").read_bytes()[:16]
    except OSError:  # Python was told to keep none
        return True
    flags, modified, size = struct.unpack("<3I", header[4:])
    state = file.stat()
    return flags != 0 or (modified, size) == (int(state.st_mtime) % 2**32, state.st_size % 2**32)


def _cell(kind: Any) -> str:
    """The code of the cell of a notebook in which a class or a function stands.

    Raises:
        NoIdentityError: it is not known, as at Python's own prompt.
    """
    functions = [it for it in (kind, *vars(kind).values()) if inspect.isfunction(it)]
    lines = linecache.getlines(functions[0].__code__.co_filename) if functions else []
    if not lines:
        raise NoIdentityError(f"the text of {kind.__module__}:{kind.__qualname__} is not known")
    return _without_docstrings(ast.parse("".join(lines)))


def _without_docstrings(tree: ast.Module) -> str:
    """A syntax tree in words, without docstrings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = node.body[ast.get_docstring(node, clean=False) is not None :]
    return ast.dump(tree)


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
