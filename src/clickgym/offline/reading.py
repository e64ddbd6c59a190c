"""How click logs are read from files: the options that readers and all that call them have in common."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypedDict, TypeVar

from ..core.checks import check_choice, check_flag, check_text
from .rows import check_columns
from .tables import MAX_MEMORY, check_size, most_bad
from .tidy import DUPLICATES

REPEATED = ("keep", "once")

Arguments = ParamSpec("Arguments")
Output = TypeVar("Output")


class Reading(TypedDict, total=False):
    """How a click log is read from a file: keywords of `read_log`."""

    columns: Mapping[str, str] | None
    duplicates: str
    bad_rows: str
    repeated: str
    max_memory: int | str
    click_action: str
    sessions_per_file: bool


def check_reading(
    *,
    columns: Mapping[str, str] | None = None,
    duplicates: str = "refuse",
    bad_rows: str = "strict",
    repeated: str = "keep",
    max_memory: int | str = MAX_MEMORY,
    click_action: str = "click",
    sessions_per_file: bool = False,
) -> set[str]:
    """Refuse what `read_log` would refuse, before any work; returns which options are not those that it has by itself."""
    check_columns(columns)
    check_choice("way with duplicates", duplicates, DUPLICATES)
    most_bad(bad_rows)
    check_choice("way with repeated sessions", repeated, REPEATED)
    check_size("max_memory", max_memory)
    check_text("click_action", click_action)
    check_flag("sessions_per_file", sessions_per_file)
    changed = {"columns": columns, "duplicates": duplicates != "refuse", "bad_rows": bad_rows != "strict"}
    changed |= {"repeated": repeated != "keep", "click_action": click_action != "click"}
    changed |= {"sessions_per_file": sessions_per_file}
    return {name for name, value in changed.items() if value}


def takes_strict(read: Callable[Arguments, Output]) -> Callable[Arguments, Output]:
    """Let a function with ``bad_rows`` take ``strict``, too, which it had in version 2; the next release takes this away."""

    @wraps(read)
    def reads(*arguments: Any, **keywords: Any) -> Output:
        if "strict" in keywords:
            instead = "strict" if check_flag("strict", keywords.pop("strict")) else "skip:100%"
            warnings.warn(f"strict is deprecated; give bad_rows={instead!r}", DeprecationWarning, stacklevel=2)
            keywords.setdefault("bad_rows", instead)
        return read(*arguments, **keywords)

    return reads
