"""Lines of a board as they ship: what is kept of their runs, what made them, and which of them may be anchors."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
import polars
from polars import col

from clickgym.agents import LEARNERS

from .protocol import CURRENT, Protocol
from .reference import processor
from .task import Task

NO_ANCHOR = ("Oracle", *LEARNERS, "MixTS")
"""One is told the best list, generic RL plays few tasks; ours came after the freeze."""
LISTED = ("Fixed", "BubbleRank")
"""They begin with the production ranking, which may be the best list: anchors in ``safety`` alone, which is about it."""
STEM_BITS = 9  # so that all files together have 6 MB at most


def compact(rows: polars.DataFrame, block: Sequence[Task]) -> polars.DataFrame:
    """A table that ships: losses at the stages as they are, those between to 0.2 %, which is what a figure shows.

    Args:
        rows: as `play` returns them.
        block: their tasks.
    """
    stages = CURRENT.stages(block[0])
    measures = ["regret"] if block[0].measure == "regret" else ["regret", block[0].measure]
    exact, last = col("step").is_in(stages), col("step") == col("horizon")
    rows = rows.with_columns(col("loss").alias(block[0].measure)) if len(measures) > 1 else rows

    def kept(name: str) -> polars.Expr:
        rounded = col(name).map_batches(_rounded, polars.Float64)
        return polars.when(exact).then(name).otherwise(rounded).cast(polars.Float32).alias(name)

    seconds = polars.when(last).then("seconds").cast(polars.Float32).alias("seconds")
    return rows.select(col("task").alias("env"), "instance", "agent", "run", "step", *map(kept, measures), seconds)


def _rounded(values: polars.Series) -> polars.Series:
    """Numbers with a few binary digits, which take little room in a file."""
    mantissa, exponent = np.frexp(values.to_numpy())
    return polars.Series(np.ldexp(np.round(mantissa * 2**STEM_BITS) / 2**STEM_BITS, exponent))


def origin_of(protocol: Protocol, agent: str, block: Sequence[Task], runs: int, **facts: Any) -> dict[str, Any]:
    """What made the results of a block. The parameters of the users are in the fingerprint of the protocol.

    Args:
        protocol: the version.
        agent: as it can be typed.
        block: the tasks.
        runs: of each task.
        **facts: ``command``, ``made`` (when) and ``tuning``; ``users`` and ``kernels`` as `digests_of` has them, and
            ``versions``, where they are known; and what else is told of the line.
    """
    made: dict[str, Any] = {"users": {}, "kernels": {}, "versions": {}, "envs": [], "instances": [], "queries": []}
    made |= {"models": {}, "seed": protocol.seed, "horizon": block[0].horizon, "runs": runs}
    made |= {"fingerprint": protocol.fingerprint, "clickgym": version("clickgym"), "processors": [processor()]}
    return made | {"agents": [agent]} | facts


def may_be_anchors(table: polars.DataFrame) -> polars.DataFrame:
    """The rows of lines that may be used as anchors.

    Args:
        table: with ``agent`` and ``ability``.
    """
    agent = col("agent").str.extract("^([^,:]*)")
    return table.filter(~agent.is_in(NO_ANCHOR), ~agent.is_in(LISTED) | col("ability").str.starts_with("safety"))
