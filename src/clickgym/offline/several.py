"""Logs of several files: which files they are, that no session crosses them, and their sessions as one log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.checks import check_path, is_sequence
from ..core.files import is_draft
from .log import ClickLog
from .names import repeated_name
from .tables import MAX_MEMORY, check_kept, check_size
from .tidy import Sessions
from .ubi import ubi_files

Paths = str | PathLike[str] | Sequence[str | PathLike[str]]
"""A file, a folder or a glob (``logs/*.parquet``), or several of these."""


def log_files(log: Any) -> list[Any]:
    """The files of a log: one, those of a folder or a glob by name, or several in the given order.

    Of a folder, files whose names begin with a dot or an underscore do not count. A folder of UBI is one log, and stays.

    Raises:
        ValueError: there is no file in a folder, or none that a glob means, or one file twice.
    """
    given = _given(log)
    files = [file for each in given for file in _files(check_path("log", each))]
    for place, file in enumerate(files):
        if file in files[:place]:
            raise ValueError(f"{file} is given twice")
    return files


def _given(log: Any) -> list[Any]:
    given = list(log) if is_sequence(log) else [log]
    if not given:
        raise ValueError("log is empty; expected a file, or several")
    return given


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        try:
            if ubi_files(path):
                return [path]
        except ValueError:  # a folder of logs
            pass
        return _of_folder(path, path.iterdir(), f"{path} is a folder without a file")
    if not path.exists() and any(mark in path.name for mark in "*?["):
        return _of_folder(path, path.parent.glob(path.name), f"no file is called as {path}")
    return [path]


def _of_folder(path: Path, entries: Iterator[Path], nothing: str) -> list[Path]:
    files = sorted(each for each in entries if each.is_file() and each.name[0] not in "._" and not is_draft(each))
    if not files:
        raise ValueError(f"{nothing}; expected a click log")
    return files


def log_name(log: Any) -> str:
    """What a log is called: by its file, its folder, or the first of several files."""
    given = _given(log)
    first = check_path("log", given[0]).name
    return first if len(given) == 1 else f"{first} and {len(given) - 1} more"


def check_together(files: Sequence[Path], tables: Sequence[Sessions], sessions_per_file: bool) -> None:
    """Refuse files that differ in what they say of sessions, and, unless their names begin anew in each file, a session that is
    in two of them; the ValueError names both files.
    """
    for file, table in zip(files, tables, strict=True):
        _check_alike(files[0], tables[0], file, table)
    if sessions_per_file or len(files) == 1 or (twice := repeated_name([table.sessions for table in tables])) is None:
        return
    seen: dict[str, Path] = {}
    for file, table in zip(files, tables, strict=True):
        for names in table.read_names():
            for name in names.filter(names.hash() == twice).unique().to_list():
                if (other := seen.setdefault(name, file)) != file:
                    raise ValueError(
                        f"the session {name!r} is in {other} and in {file}; expected each session in one file, or, where they "
                        "are numbered anew in each file, sessions_per_file (--sessions-per-file)"
                    )


def _check_alike(first_file: Path, first: Sessions, file: Path, table: Sessions) -> None:
    for what, of_first, here in (
        ("the columns " + ", ".join(first.names), set(first.names), set(table.names)),
        (f"positions from {first.base}", first.base, table.base),
        ("dates as times" if first.dates else "numbers as times", first.dates, table.dates),
    ):
        if None not in (of_first, here) and of_first != here:
            raise ValueError(f"{first_file} has {what}, and {file} has not; expected files of one format")


BELOW = {"items": -1, "clicks": 0, "propensities": 1, "context": 0, "values": 0}
"""What stands below the end of a list."""
COLUMNS = ("items", "clicks", "queries", "propensities", "list_propensities", "context", "times", "values")
"""Of a log; those behind the queries may be None."""


def joined(files: Sequence[Path], logs: Sequence[ClickLog], max_memory: int | str = MAX_MEMORY) -> ClickLog:
    """The sessions of several logs as one, in their order, as if they had been read from one file."""
    if len(logs) == 1:
        return logs[0]
    n_positions = max(log.n_positions for log in logs)
    items, queries = dict[str, int](), dict[str, int]()
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS if getattr(logs[0], name) is not None}
    skipped, size, most = Counter[str](), 0, check_size("max_memory", max_memory)
    for log in logs:
        arrays = {name: getattr(log, name) for name in columns}
        arrays["items"] = _numbered(log.item_labels, items)[log.items]
        arrays["queries"] = _numbered(log.query_labels, queries)[log.queries]
        for name, array in arrays.items():
            whole = _widened(name, array, n_positions - log.n_positions)
            columns[name].append(whole)
            size += whole.nbytes
        skipped.update(log.skipped)
        check_kept(files[0].parent, size, most, f"the sessions of the first {len(logs)} files")
    return ClickLog(
        **{name: np.concatenate(values) for name, values in columns.items()},
        item_labels=tuple(items), query_labels=tuple(queries), skipped=dict(skipped), notes=_notes(files, logs),
        off_list_clicks=sum(log.off_list_clicks for log in logs),
    )  # fmt: skip


def _notes(files: Sequence[Path], logs: Sequence[ClickLog]) -> tuple[str, ...]:
    """The notes that all logs have, and those of some with the names of their files, each once."""
    noted = ((file, note) for file, log in zip(files, logs, strict=True) for note in log.notes)
    own = (note if all(note in log.notes for log in logs) else f"{file.name}: {note}" for file, note in noted)
    return tuple(dict.fromkeys(own))


def _numbered(labels: Sequence[str], numbers: dict[str, int]) -> NDArray[np.int32]:
    """The number of each label, new ones if need be; behind them -1, which stands for none."""
    return np.array([*(numbers.setdefault(label, len(numbers)) for label in labels), -1], np.int32)


def _widened(name: str, array: NDArray[Any], more: int) -> NDArray[Any]:
    """A column; one of lists with more positions, in which nothing was shown."""
    if not more or name not in BELOW:
        return array
    return np.pad(array, [(0, 0), (0, more), (0, 0)][: array.ndim], constant_values=BELOW[name])
