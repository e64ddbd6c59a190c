"""Files that are whole or not there at all; used by the whole package."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

__all__ = ["parse_json", "read_json", "write_whole"]


def parse_json(text: str) -> Any:
    """What a JSON text says.

    NaN and Infinity, which Python writes where a number is none, are read; whoever takes the number refuses them by its name.

    Raises:
        json.JSONDecodeError: it is not JSON.
        ValueError: it is, but an object has a key twice, it is nested too deep, or a number has too many digits.

    Example:
        >>> parse_json('{"a": 1, "a": 2}')
        Traceback (most recent call last):
            ...
        ValueError: the key 'a' is there twice
    """
    try:
        return json.loads(text, object_pairs_hook=_distinct)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object without the silence of ``json.loads``, which keeps the last of two equal keys."""
    content = dict(pairs)
    if len(content) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {next(key for key in keys if keys.count(key) > 1)!r} is there twice")
    return content


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file.

    Raises:
        FileNotFoundError: there is no file.
        ValueError: naming the file and what is wrong.
    """
    try:
        content = parse_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} cannot be read: {path.name} is not JSON: {error}") from None
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path} holds a {type(content).__name__}; expected a JSON object")
    return content


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file whole or not at all; what goes wrong is raised, and leaves nothing behind.

    Args:
        path: the file, replaced if there is one.
        write: called with the path of a draft in the same folder, which it writes.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_whole(Path(folder, "a.txt"), lambda draft: draft.write_text("whole"))
        ...     [(file.name, file.read_text()) for file in Path(folder).iterdir()]
        [('a.txt', 'whole')]
    """
    draft = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        write(draft)
        draft.replace(path)
    except BaseException:
        with suppress(OSError):  # on a file system that is full or read-only: the first error is the one to be told
            draft.unlink(missing_ok=True)
        raise
