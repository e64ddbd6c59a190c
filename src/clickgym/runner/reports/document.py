"""The results of a folder as one JSON document."""

from __future__ import annotations

import os
from collections.abc import Iterable
from importlib.metadata import version
from typing import Any

import polars
from polars import col

from ..summaries import summary
from ..sweep_results import Results


def results_document(
    folder: str | os.PathLike[str], agents: Iterable[str] | None = None, environments: Iterable[str] | None = None
) -> dict[str, Any]:
    """The results in a folder as one document, at full precision.

    Args:
        folder: the ``out`` of a sweep.
        agents, environments: as of `Results.select`.

    Returns:
        ``folder``, ``clickgym`` (the version that reads), ``horizon``, ``runs``, ``seed``, ``envs``, ``instances``, ``agents``,
        ``metrics``; ``results``, of each environment and agent the columns of `summary` and the means of the metrics at the
        horizon, averaged over instances; ``by_instance``, the same of each instance.

    Raises:
        ValueError: as `Results` and its ``select``.
    """
    results = Results(folder).select(agents, environments)
    table, timings, config = results.frame, results.timings, results.config
    keys = ("horizon", "runs", "seed", "envs", "instances", "agents", "metrics")
    return {
        "folder": os.fspath(folder),
        "clickgym": version("clickgym"),
        **{key: config[key] for key in keys},
        "results": _rows(table, timings, config["metrics"], ("env", "agent")),
        "by_instance": _rows(table, timings, config["metrics"], ("env", "instance", "agent")),
    }


def _rows(
    table: polars.DataFrame, timings: polars.DataFrame, metrics: Iterable[str], by: tuple[str, ...]
) -> list[dict[str, Any]]:
    final = table.filter(col("step") == table["step"].max())
    means = final.group_by(by, maintain_order=True).agg(col(metric).mean() for metric in metrics)
    return summary(table, timings, by).join(means, on=list(by), how="left", maintain_order="left").to_dicts()
