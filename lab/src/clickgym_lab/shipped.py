"""Compact result files that ship with the package, with the version, the commit and the command
that made them.

A file holds the curves of one or several sweeps in one table: the mean over the instances of each
run at every step, and of each instance what it had reached at some fractions of the horizon. What
made them stands in the metadata of the file.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars

from clickgym.core.files import SEAL, check_file, reading, sealed, write_whole

FORMAT = "4"
KEYS = ("env", "instance", "agent", "run", "step")
ALWAYS = ("regret", "reward")
"""What is kept of the ends of each instance, beside the curves' columns and the facts."""
MADE = "clickgym_made"


@dataclass(frozen=True)
class Shipped:
    """The curves of one sweep, with the settings and versions that made them.

    Attributes:
        setting: which of several sweeps of the same part it is, by the queries that it played.
        part: its name.
        table: as `compact` makes it.
        made: what made it: ``clickgym`` (its version), ``commit``, ``command``, ``made`` (the
            time), ``seed``, ``horizon``, ``runs``, ``envs``, ``agents``, ``queries`` and
            ``instances``.
    """

    setting: str
    part: str
    table: polars.DataFrame
    made: Mapping[str, Any]


def compact(
    table: polars.DataFrame,
    columns: Sequence[str],
    facts: Sequence[str] = (),
    *,
    each: bool = False,
    fractions: Sequence[float] = (0.99, 1.0),
) -> polars.DataFrame:
    """A table of results without what no curve shows.

    Args:
        table: as `sweep` returns it; cumulative values.
        columns: those of which curves are kept.
        facts: further columns, constant in each instance.
        each: keep whole curves of each instance, too.
        fractions: of the horizon, at which the values of each instance are kept.

    Returns:
        Rows without an instance, the means over the instances; then rows of each instance, at the
        first steps from these fractions on, or at all steps.

    Example:
        >>> rows = [("E", i, "A", 0, step, float(step)) for i in "xy" for step in (50, 99, 100)]
        >>> compact(polars.DataFrame(rows, [*KEYS, "regret"], orient="row"), ["regret"])["step"].to_list()
        [50, 99, 100, 99, 100, 99, 100]
    """
    pairs = ["env", "agent", "run", "step"]
    means = table.group_by(pairs, maintain_order=True).agg(polars.col(*columns).mean())
    steps = table["step"].unique().sort()
    kept = [
        next(step for step in steps if step >= round(fraction * steps[-1]))
        for fraction in fractions
    ]
    late = table if each else table.filter(polars.col("step").is_in(kept))
    names = dict.fromkeys([*columns, *(name for name in ALWAYS if name in table.columns), *facts])
    both = polars.concat([means, late.select(*KEYS, *names)], how="diagonal_relaxed")
    return both.select(*KEYS, polars.col(*names).cast(polars.Float32))


def of_files(instances: Iterable[str]) -> bool:
    """Whether some instances are files, or made from files, which do not ship.

    Example:
        >>> of_files(["yandex-990", "li2019-switching:query=yandex60-401.json,seed=3"])
        True
    """
    return any(".json" in name for name in instances)


def portable(instance: str) -> str:
    """The name of an instance without the folder of its file.

    Example:
        >>> portable("li2019-switching:query=queries/yandex60-401.json,seed=3")
        'li2019-switching:query=yandex60-401.json,seed=3'
    """
    return re.sub(r"[^=,:]*/(?=[^/=,:]*\.json)", "", instance)


def write_shipped(path: Path, results: Iterable[Shipped]) -> None:
    """Write the results of some sweeps into one file, whole.

    Args:
        path: the file.
        results: of different settings and parts.
    """
    results = list(results)
    places = [
        {"setting": polars.lit(each.setting), "part": polars.lit(each.part)} for each in results
    ]
    table = polars.concat(
        [each.table.with_columns(**place) for each, place in zip(results, places, strict=True)],
        how="diagonal",
    )
    origins = [{"setting": each.setting, "part": each.part, **each.made} for each in results]
    write_whole(
        path, sealed(table, smallest=True, clickgym_format=FORMAT, **{MADE: json.dumps(origins)})
    )


def read_shipped(path: str | os.PathLike[str]) -> list[Shipped]:
    """The results that `write_shipped` wrote.

    Raises:
        FileNotFoundError: there is no file.
        ValueError: it holds something else, or is damaged.
    """
    path = Path(path)
    with reading(
        path, "holds no results to be passed on, or is damaged", "restore it from a backup"
    ):
        check_file(path)
        metadata = polars.read_parquet_metadata(path)
        if metadata["clickgym_format"] != FORMAT:
            raise ValueError("it is of another version")
        if SEAL not in metadata:
            raise ValueError("it has no checksum")
        results, table = [], polars.read_parquet(path, memory_map=False)
        for origin in json.loads(metadata[MADE]):
            setting, part = origin.pop("setting"), origin.pop("part")
            own = table.filter(
                (polars.col("setting") == setting) & (polars.col("part") == part)
            ).drop("setting", "part")
            results.append(
                Shipped(
                    setting,
                    part,
                    own.select(name for name in own.columns if not own[name].is_null().all()),
                    origin,
                )
            )
    return results
