"""Rehearsals: judge and draw a study by invented numbers, so that its faults show before any
session is played.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import polars

from clickgym.runner import Metrics, by_label

from ..shipped import compact
from .study import Curves, Part, Study

RUNS = 4


def invented(
    study: Study,
    part: Part,
    instances: Sequence[str],
    steps: Sequence[int],
    runs: int,
    rng: np.random.Generator,
) -> polars.DataFrame:
    """Results of a part that nobody played, as they ship: every run of every pair grows at a rate
    of its own.

    Args:
        study: whose columns are kept.
        part: of the study.
        instances: their names.
        steps: the checkpoints.
        runs: of each pair.
        rng: draws the rates.
    """
    # By the labels of a sweep, which writes numbers in one way: delta=1e-05 for delta=1e-5.
    keys = product(
        by_label("environment", part.envs), instances, by_label("agent", part.agents), range(runs)
    )
    pairs = polars.DataFrame(list(keys), ["env", "instance", "agent", "run"], orient="row")
    table = pairs.join(polars.DataFrame({"step": steps}), how="cross")
    for column in ("regret", "reward", "clicks", *part.metrics):
        powers = np.repeat(rng.uniform(0.5, 0.9, len(pairs)), len(steps))
        table = table.with_columns(
            polars.Series(column, 0.5 * np.tile(steps, len(pairs)) ** powers)
        )
    for fact in part.facts:
        table = table.with_columns((polars.col("instance").hash() % 40).alias(fact))
    return compact(table, study.columns, list(part.facts), each=part.each, fractions=part.fractions)


def rehearse(
    name: str, study: Study, parts: Sequence[tuple[Part, Sequence[str], Sequence[int]]]
) -> None:
    """Apply every statement, the table and the figure of a study to invented numbers.

    Args:
        name: of the study.
        study: itself.
        parts: its parts, each with its instances and checkpoints.

    Raises:
        ValueError: one of them fails, for it names an agent, a part, a column or anything else that
            is not there.
    """
    rng, what = np.random.default_rng(0), ""
    try:
        evidence = {}
        for part, instances, steps in parts:
            what = f"the part {part.name!r}"
            Metrics(part.metrics)
            table = invented(study, part, instances, steps, min(part.runs, RUNS), rng)
            evidence[part.name] = Curves(table, part.horizon)
        for statement in study.statements:
            what = f"the statement {statement.text!r}"
            statement.find(evidence)
        if study.table is not None:
            what = "the table"
            study.table(evidence)
        what = "the figure"
        study.figure(evidence)
    except Exception as error:
        raise ValueError(
            f"study {name}: {what} fails before anything is played: {type(error).__name__}: {error}"
        ) from error
