"""Wrong values for the arguments of public functions, and what a refusal must look like."""

from __future__ import annotations

import ast
import inspect
import itertools
import linecache
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import polars

import clickgym
from clickgym.core.faults import SessionError
from clickgym.core.files import FileError

OURS = tuple(
    str(Path(spec.origin).parent)
    for name in ("clickgym", "clickgym.logs")
    if (spec := find_spec(name)) and spec.origin
)
"""The folders of our packages."""
WORDS = (ValueError, TypeError, IndexError, KeyError, ImportError, OSError, SessionError)
"""What a refusal may be; each is raised by ourselves, in our words."""


class Word(str):
    """A text of its own class."""


def _nested(depth: int) -> list[Any]:
    nested: list[Any] = []
    for _ in range(depth):
        nested = [nested]
    return nested


def _circle() -> list[Any]:
    circle: list[Any] = []
    circle.append(circle)
    return circle


VALUES: dict[str, Callable[[], Any]] = {
    **{
        repr(value): lambda value=value: value
        for value in (
            None, True, False, 0, -1, 1, 3, 2.5, 1e300, 2**70, -(2**70), 1j,
            float("nan"), float("inf"), "", "x", "a:b", "a=b", "..", "\0", "a\nb", "é",
            "PBMRank-v0", "TopRank", "TopRank:x", "no.json", "{", b"", b"x", (), ("x",),
            ("TopRank", {}), (1, 2), ("x", {"y": 1}), (None, None), Decimal(1), Fraction(1, 2),
            date(2026, 1, 1), slice(3), ..., type, int, len, print,
        )
    },
    "[]": list,
    "[1]": lambda: [1],
    "[[1]]": lambda: [[1]],
    "[[1], [1, 2]]": lambda: [[1], [1, 2]],
    "[0.5, 2]": lambda: [0.5, 2],
    "[nan]": lambda: [float("nan")],
    "['a']": lambda: ["a"],
    "['a', 'a']": lambda: ["a", "a"],
    "[None]": lambda: [None],
    "[True]": lambda: [True],
    "[2**70]": lambda: [2**70],
    "nested": lambda: _nested(100),
    "circle": _circle,
    "{}": dict,
    "{'a': 1}": lambda: {"a": 1},
    "{1: 2}": lambda: {1: 2},
    "set": lambda: {1, "a"},
    "generator": lambda: (i for i in range(3)),
    "range": lambda: range(0),
    "array(1)": lambda: np.array(1),
    "array([])": lambda: np.array([]),
    "zeros((2, 2))": lambda: np.zeros((2, 2)),
    "zeros((2, 0))": lambda: np.zeros((2, 0)),
    "array(['a'])": lambda: np.array(["a"]),
    "array([object])": lambda: np.array([object()]),
    "masked": lambda: np.ma.masked_array([1, 2], [True, False]),
    "float32(1)": lambda: np.float32(1),
    "int64(-5)": lambda: np.int64(-5),
    "datetime64": lambda: np.datetime64("NaT"),
    "path": lambda: Path("nowhere/at/all"),
    "object": object,
    "exception": lambda: ValueError("x"),
    "frame": lambda: polars.DataFrame({"a": [1]}),
    "series": lambda: polars.Series("a", [1]),
    "agent": lambda: clickgym.agents.Random(4, 2, seed=0),
    "agent class": lambda: clickgym.agents.TopRank,
    "env": lambda: gym.make("CMRank-v0"),
    "click model": lambda: clickgym.envs.CascadeModel([0.5, 0.4, 0.3, 0.2], n_positions=2),
    "space": lambda: gym.spaces.Discrete(3),
    "generator of numbers": lambda: np.random.default_rng(0),
    "text of its own class": lambda: Word("x"),
}  # fmt: skip


class Call(NamedTuple):
    """A public function with good arguments, made anew for each call."""

    function: Callable[..., Any]
    arguments: Callable[[], Mapping[str, Any]]


def call(function: Any, **arguments: Any) -> Call:
    """A call with some arguments; the others are the defaults."""
    parameters = inspect.signature(function).parameters.items()
    defaults = {name: it.default for name, it in parameters if it.default is not it.empty}
    return Call(function, lambda: {**defaults, **arguments})


def faults(calls: Mapping[str, Call], step: int = 1) -> list[str]:
    """What failed raw, of `tried`."""
    return [f"{called}: {fault}" for called, fault in tried(calls, step)]


def tried(calls: Mapping[str, Call], step: int = 1) -> Iterator[tuple[str, str]]:
    """Call each function with a wrong value for each argument; yield what was called and how it
    failed, where it failed raw.

    Args:
        calls: by name.
        step: of the values only each ``step``-th is tried, with another start for each argument.
    """
    start = 0
    for name, call in calls.items():
        for argument in call.arguments():
            start += 1
            for value in itertools.islice(VALUES, start % step, None, step):
                called = f"{name}({argument}={value})"
                fault = _fault(call, argument, VALUES[value])
                if fault:
                    yield called, fault


def _fault(call: Call, argument: str, value: Callable[[], Any]) -> str:
    arguments = {**call.arguments(), argument: value()}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call.function(**arguments)
    except Exception as error:
        return raw(error)
    except BaseException as error:  # Polars' panic
        return f"{type(error).__name__}: {error}"
    return ""


def raw(error: Exception) -> str:
    """Why an error is no refusal in our words; empty if it is one."""
    *_, frame = traceback.extract_tb(error.__traceback__)
    message = str(error)
    where = f"{frame.filename}:{frame.lineno}: {type(error).__name__}: {message[:200]}"
    if isinstance(error, AssertionError) and " breaks the " in message:
        return ""  # the list of faults of check_agent and check_click_model
    if not isinstance(error, (*WORDS, FileError, gym.error.Error)):
        return f"another kind of error: {where}"
    if isinstance(error, FileNotFoundError) and error.filename is not None:
        return ""  # Python's words name the file
    if not frame.filename.startswith(OURS):
        return f"raised elsewhere: {where}"
    if not _raises(frame.filename, frame.lineno or 0):
        return f"not raised by a statement: {where}"
    # a newline of the value itself is a part of a path; the other one is in one known message
    words = message.replace("a\nb", "").replace("\na policy that samples", "")
    if "\n" in words or not message:
        return f"not one line: {where}"
    return ""


@cache
def _lines_of_raises(file: str) -> frozenset[int]:
    """The lines of a file that belong to a statement ``raise``."""
    tree = ast.parse("".join(linecache.getlines(file)))
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise):
            lines |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return frozenset(lines)


def _raises(file: str, line: int) -> bool:
    return line in _lines_of_raises(file)
