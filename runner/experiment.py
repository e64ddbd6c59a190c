"""Experiment file: the arguments of a sweep in TOML, under the keys of ``config.json``."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..core.checks import short, unknown

__all__ = ["EXPERIMENT_KEYS", "read_experiment"]


def _are_words(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(entry, str) for entry in value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


WORDS = (_are_words, "a list of strings")
EXPERIMENT_KEYS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "envs": WORDS,
    "agents": WORDS,
    "horizon": (_is_number, "a number, as 100_000 or 1e5"),
    "runs": (_is_integer, "an integer"),
    "instances": WORDS,
    "seed": (_is_integer, "an integer"),
    "checkpoints": (lambda value: isinstance(value, list) and all(map(_is_integer, value)), "a list of integers"),
    "engine": (lambda value: isinstance(value, str), "a string"),
    "metrics": (lambda value: value == [] or _are_words(value), "a list of strings"),
}
"""What an experiment file may say, and how; the first three it must."""
REQUIRED = ("envs", "agents", "horizon")


def read_experiment(file: Path) -> dict[str, Any]:
    """The arguments of `sweep` that an experiment file names.

    Args:
        file: TOML. The paths of instance files in it begin where it stands.

    Returns:
        By name; ``runs`` is 10 where it says nothing of them, as on the command line.

    Raises:
        ValueError: it is not there, is no TOML, lacks a key, or has one that is unknown or of a wrong type.
    """
    content = _parsed(file)
    for key, value in content.items():
        if key not in EXPERIMENT_KEYS:
            raise ValueError(f"{file}: {unknown('key', key, EXPERIMENT_KEYS)}")
        fits, expected = EXPERIMENT_KEYS[key]
        if not fits(value):
            raise ValueError(f"{file}: {key} is {short(value)}; expected {expected}")
    for key in REQUIRED:
        if key not in content:
            raise ValueError(f"{file}: {key} is missing; expected {EXPERIMENT_KEYS[key][1]}")
    if "instances" in content:
        content["instances"] = [str(file.parent / name) if name.endswith(".json") else name for name in content["instances"]]
    return {"runs": 10, **content}


def _parsed(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"there is no experiment file {file}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{file} is no TOML: {error}") from None
