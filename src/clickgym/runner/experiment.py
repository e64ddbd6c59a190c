"""Experiment files: the arguments of a sweep and of a tuning in TOML, under the keys of ``config.json``."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ..core.checks import is_integer, short, unknown


def _are_words(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(entry, str) for entry in value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


WORDS = (_are_words, "a list of strings")
EXPERIMENT_KEYS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "envs": WORDS,
    "agents": WORDS,
    "horizon": (_is_number, "a number, as 100_000 or 1e5"),
    "runs": (is_integer, "an integer"),
    "instances": WORDS,
    "seed": (is_integer, "an integer"),
    "checkpoints": (lambda value: isinstance(value, list) and all(map(is_integer, value)), "a list of integers"),
    "engine": (lambda value: isinstance(value, str), "a string"),
    "metrics": (lambda value: value == [] or _are_words(value), "a list of strings"),
}
"""What an experiment file may say, and how; the first three it must. Besides it may have a section ``tune``."""
REQUIRED = ("envs", "agents", "horizon")

TUNING_KEYS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "agent": (lambda value: isinstance(value, str), "a string"),
    "budget": (_is_number, "a number, as 1e6"),
    **{key: EXPERIMENT_KEYS[key] for key in ("envs", "horizon", "instances", "runs", "seed")},
}
"""What the section ``tune`` of an experiment file may say; the first three it must, the environments there or above."""


def read_experiment(file: Path) -> dict[str, Any]:
    """Read the arguments of `sweep` from an experiment file.

    Args:
        file: TOML. Paths of instance files in it are relative to its folder.

    Returns:
        By name; ``runs`` is 10 where it says nothing of them, as on the command line.

    Raises:
        ValueError: it is not there, is no TOML, lacks a key, or has one that is unknown or of a wrong type.
    """
    content = _parsed(file)
    content.pop("tune", None)
    return {"runs": 10, **_checked(str(file), content, EXPERIMENT_KEYS, REQUIRED, file.parent)}


def read_tuning(file: Path) -> dict[str, Any]:
    """Read the arguments of `tune` from the section ``tune`` of an experiment file.

    Args:
        file: as for `read_experiment`. Environments and horizon are those of the experiment, unless the section names others.

    Raises:
        ValueError: as `read_experiment`; or there is no such section.
    """
    content = _parsed(file)
    section = content.get("tune")
    if not isinstance(section, dict):
        raise ValueError(f"{file} has no section [tune]; expected one, with agent and budget")
    shared: dict[str, Any] = {key: content[key] for key in ("envs", "horizon") if key in content}
    return _checked(f"{file}, [tune]", shared | section, TUNING_KEYS, ("agent", "budget", "envs"), file.parent)


def _checked(
    where: str,
    content: dict[str, Any],
    keys: dict[str, tuple[Callable[[Any], bool], str]],
    required: Iterable[str],
    folder: Path,
) -> dict[str, Any]:
    """What a file says, if it says nothing else, and all that it must; paths of instance files as seen from here."""
    for key, value in content.items():
        if key not in keys:
            raise ValueError(f"{where}: {unknown('key', key, keys)}")
        fits, expected = keys[key]
        if not fits(value):
            raise ValueError(f"{where}: {key} is {short(value)}; expected {expected}")
    for key in required:
        if key not in content:
            raise ValueError(f"{where}: {key} is missing; expected {keys[key][1]}")
    if "instances" in content:
        instances = [str(folder / name) if name.endswith(".json") else name for name in content["instances"]]
        return content | {"instances": instances}
    return content


def _parsed(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"there is no experiment file {file}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{file} is not valid TOML: {error}") from None
