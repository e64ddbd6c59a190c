"""Studies written in TOML: texts, sizes, agents and ranges; whatever is computed is a function of
the module beside the file.

``parts`` are what the studies of a file play, ``instances``, ``files`` and ``facts`` functions of
the module (or a table of a ``function`` and its further arguments). Every other table is a study.
Each of its ``statements`` names a function: ``judge``, which returns a `Finding`, or ``measured``,
the values that a hypothesis predicts a ``range`` of. The function is called with the evidence, or
with the curves of the ``part`` if there is one, and with all keys that `Statement` and `hypothesis`
do not have; for those listed in ``over`` with each of their values in turn.

A table with ``for`` stands for one of each of its rows, alone or for a list of ``statements``. In
texts ``{NAME}`` is a column of these rows, or a constant of the file or of the module.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from clickgym.envs import DEFAULT_INSTANCE

from . import study
from .study import Evidence, Finding, Part, Statement, Study, Values, several, short
from .why import hypothesis

Row = dict[str, Any]
SHARED = {"DEFAULT_INSTANCE": DEFAULT_INSTANCE, **vars(study)}
"""Every file may name what these have, beside what its own module has."""


def read_studies(file: str, names: Mapping[str, Any]) -> dict[str, Study]:
    """The studies of a module.

    Args:
        file: the module; the TOML file beside it is read.
        names: the functions and constants of the module.
    """
    tables = tomllib.loads(Path(file).with_suffix(".toml").read_text(encoding="utf-8"))
    names = {**SHARED, **names, **tables.pop("constants", {})}
    parts = {row["name"]: _part(row, names) for row in _rows(tables.pop("parts"), names)}
    return {name: _study(table, parts, names) for name, table in tables.items()}


def _rows(rows: Sequence[Row], names: Mapping[str, Any]) -> Iterator[Row]:
    """The rows of a list, filled in; those with ``for`` as often as they stand for."""
    for row in rows:
        for values in row.get("for", [{}]):
            scope = {**names, **_filled(values, names)}
            if "statements" in row:
                yield from _rows(row["statements"], scope)
            else:
                yield {
                    key: value if key == "label" else _filled(value, scope)
                    for key, value in row.items()
                    if key != "for"
                }


def _filled(value: Any, names: Mapping[str, Any]) -> Any:
    """A value of the file, in which a text of nothing but ``{NAME}`` is the constant itself, be it
    a text or not.
    """
    if isinstance(value, str):
        only = re.fullmatch(r"\{(\w+)\}", value)
        return names[only[1]] if only else value.format_map(names)
    if isinstance(value, dict):
        return {key: _filled(each, names) for key, each in value.items()}
    return [_filled(each, names) for each in value] if isinstance(value, list) else value


def _function(value: Any, names: Mapping[str, Any]) -> Callable[..., Any]:
    """A function of the module by its name, or with arguments; of a list one that returns it."""
    if callable(value):
        return value
    if isinstance(value, list | tuple):
        return lambda _: list(value)
    if isinstance(value, str):
        return names[value]
    return partial(
        names[value["function"]], **{key: each for key, each in value.items() if key != "function"}
    )


def _part(row: Row, names: Mapping[str, Any]) -> Part:
    functions: Row = {
        key: _function(row.pop(key), names) for key in ("instances", "files") if key in row
    }
    facts = {name: _function(value, names) for name, value in row.pop("facts", {}).items()}
    return Part(**(_with_tuples(row) | functions), facts=facts)


def _study(table: Row, parts: Mapping[str, Part], names: Mapping[str, Any]) -> Study:
    statements = tuple(_statement(row, names) for row in _rows(table.pop("statements"), names))
    row = _filled(table, names)
    functions: Row = {
        key: _function(row.pop(key), names) for key in ("figure", "table") if key in row
    }
    own = tuple(parts[name] for name in row.pop("parts", parts))
    return Study(parts=own, statements=statements, **(_with_tuples(row) | functions))


def _with_tuples(row: Row) -> Row:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}


def _statement(row: Row, names: Mapping[str, Any]) -> Statement:
    if "measured" in row:
        text, what, limits, unit = (row.pop(key, "") for key in ("text", "what", "range", "unit"))
        function = names[row.pop("measured")]
        return hypothesis(text, what, limits, partial(_measured, function, _cases(row)), unit)
    texts = {key: row.pop(key) for key in ("text", "rule", "late", "paper") if key in row}
    return Statement(judge=partial(_judged, names[row.pop("judge")], _cases(row)), **texts)


def _cases(row: Row) -> dict[str, Row]:
    """The arguments of every call of a function by what it is called in findings, an environment by
    its click model.
    """
    over = row.pop("over", [])
    label = row.pop("label", " ".join(f"{{{name}}}" for name in over))
    cases = {}
    for values in product(*(row[name] for name in over)):
        case = row | dict(zip(over, values, strict=True))
        cases[label.format_map(case | {"env": short(case.get("env", ""))})] = case
    return cases


def _measured(
    function: Callable[..., Values], cases: Mapping[str, Row], evidence: Evidence
) -> dict[str, Values]:
    return {label: _called(function, evidence, **case) for label, case in cases.items()}


def _judged(
    function: Callable[..., Finding], cases: Mapping[str, Row], evidence: Evidence
) -> Finding:
    return several({label: _called(function, evidence, **case) for label, case in cases.items()})


def _called(
    function: Callable[..., Any], evidence: Evidence, part: str = "", **arguments: Any
) -> Any:
    return function(evidence[part] if part else evidence, **arguments)
