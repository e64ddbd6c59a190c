"""Fit the shipped real queries and the instance family ``yandex-like`` to the Yandex sample log.

    python examples/fit_yandex_instances.py yandex_sample_relpred_format.tsv.gz --out FOLDER

The log is not part of this project. The shipped files, in ``src/clickgym/envs/instances``, contain
only estimated parameters of anonymous queries. The same log gives the same files, byte for byte.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl

from clickgym.envs import ClickModel, TrustBiasModel
from clickgym.envs.instances import Instance
from clickgym.logs import (
    CCMEstimator,
    ClickLog,
    CMEstimator,
    DBNEstimator,
    DCMEstimator,
    PBMEstimator,
    UBMEstimator,
    read_log,
)

MIN_SESSIONS, N_ITEMS, N_POSITIONS, ITERATIONS, DIGITS = 500, 10, 5, 200, 6
PRIOR = (1.0, 1.0)  # the prior behind the shipped files, which must stay the same

ORIGIN = (
    "Estimated by clickgym from the sample of real Yandex sessions (format of the Relevance "
    "Prediction Challenge 2011) "
    "in the history of the PyClick repository, github.com/markovi/PyClick. The log is not included."
)

ESTIMATORS = {
    "CM": CMEstimator(PRIOR),
    "PBM": PBMEstimator(ITERATIONS, None, PRIOR),
    "DCM": DCMEstimator(ITERATIONS, None, PRIOR),
    "UBM": UBMEstimator(ITERATIONS, None, PRIOR),
    "DBN": DBNEstimator(ITERATIONS, None, PRIOR),
    "CCM": CCMEstimator(ITERATIONS, None, PRIOR),
}

METHODS = {
    "sessions_used": "whole sessions, with all their documents; the parameters of documents that "
    "are not items are dropped",
    "items": "the 10 documents displayed in most sessions, numbered in the order of the SHA-256 "
    "of their id, which "
    "knows nothing of ranks and clicks",
    "initial_ranking": "the most frequent list without documents that are not items; items that "
    "it lacks follow, most "
    "displayed first",
    "smoothing": "(1 + successes) / (2 + trials)",
    "position_parameters": "shared by the 16 queries",
    "CM": "closed form, from the positions down to the first click",
    "PBM": f"EM, {ITERATIONS} iterations from 0.5",
    "DCM": f"exact EM, {ITERATIONS} iterations from 0.5 (the last-click estimator is biased); no "
    "log "
    "tells the termination at the last position, which repeats that of the position above",
    "UBM": f"EM, {ITERATIONS} iterations from 0.5",
    "DBN": f"exact EM with perseverance, {ITERATIONS} iterations from 0.5 (not SDBN: the "
    "likelihood "
    "of held-out sessions is far higher)",
    "CCM": f"exact EM, {ITERATIONS} iterations from 0.5",
    "TPBM": "the PBM with the click probabilities of simulations with trust bias, which clicks "
    "alone do not tell",
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("log", type=Path, help="yandex_sample_relpred_format.tsv.gz")
    parser.add_argument("--out", type=Path, required=True, help="folder for the instance files")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    log = frequent_queries(read_log(yandex_table(arguments.log)))
    for estimator in ESTIMATORS.values():
        estimator.fit(log)
    instances = [instance_of(log, query) for query in np.unique(log.queries).tolist()]
    for instance in instances:
        instance.save(arguments.out / f"{instance.name}.json")
    (arguments.out / "yandex-like.json").write_text(
        json.dumps(family(instances), indent=1, ensure_ascii=False) + "\n"
    )
    print(f"{len(instances)} queries, {len(log)} sessions -> {arguments.out}")


def yandex_table(path: Path) -> pl.DataFrame:
    """Read a log of Yandex's Relevance Prediction Challenge 2011 into a table for `read_log`.

    The table has one row for each URL of each query.

    Each line of the log is tab-separated, and is either a query (``session, time, Q, query, region,
    urls...``) or a click (``session, time, C, url``). Each query becomes one session, labelled
    ``query-region``. A click belongs to the last query above it, in the same Yandex session, whose
    list contains the clicked URL. If there is no such query, the click is left out.

    Source: Serdyukov, Craswell, Dupret, *WSCD 2012: workshop on web search click data 2012*, WSDM
        2012.
    """
    lines = pl.read_csv(path, has_header=False, separator="\t", quote_char=None)
    visit, _, kind, query, region, *urls = map(pl.col, lines.columns)
    lines = lines.with_row_index("line")
    pages = lines.filter(kind == "Q").select(
        "line",
        visit=visit,
        query=pl.concat_str(query, region, separator="-"),
        item=pl.concat_list(urls),
    )
    shown = (
        pages.with_columns(position=pl.int_ranges(1, pl.col("item").list.len() + 1))
        .explode("item", "position")
        .drop_nulls("item")
    )
    clicks = lines.filter(kind == "C").select(at="line", visit=visit, item=query)
    clicked = (
        clicks.join(shown, on=["visit", "item"])
        .filter(pl.col("line") < pl.col("at"))
        .group_by("at", "item")
        .agg(pl.col("line").max(), clicked=pl.lit(1))
        .unique(["line", "item"])
    )
    return (
        shown.join(clicked, on=["line", "item"], how="left", maintain_order="left")
        .with_columns(pl.col("clicked").fill_null(0))
        .select("query", "position", "item", "clicked", session="line")
    )


def frequent_queries(log: ClickLog) -> ClickLog:
    """Return the sessions of the queries that have at least `MIN_SESSIONS` sessions."""
    return log[np.bincount(log.queries)[log.queries] >= MIN_SESSIONS]


def instance_of(log: ClickLog, query: int) -> Instance:
    """Return the instance of a query, with its click models and its production list."""
    label = log.query_labels[query]
    sessions = log[log.queries == query]
    displayed = Counter(log.item_labels[item] for item in sessions.items.ravel())
    by_displays = sorted(displayed, key=lambda item: (-displayed[item], digest(item)))[:N_ITEMS]
    items = sorted(by_displays, key=digest)
    lists, counts = np.unique(sessions.items, axis=0, return_counts=True)
    most_frequent = [log.item_labels[item] for item in lists[counts.argmax()]]
    initial = [item for item in most_frequent if item in items] + [
        item for item in by_displays if item not in most_frequent
    ]
    models = {
        name: rounded(estimator.click_model(label, items)) for name, estimator in ESTIMATORS.items()
    }
    return Instance(
        name=instance_name(log, label),
        models=models
        | {"TPBM": TrustBiasModel(models["PBM"].attraction, models["PBM"].examination)},
        n_positions=N_POSITIONS,
        description=f"real search query, {len(sessions)} sessions, 10 items (all click models)",
        origin=ORIGIN,
        initial_ranking=np.array([items.index(item) for item in initial]),
        estimation={"sessions": len(sessions), "sessions_of_all_queries": len(log), **METHODS},
    )


def instance_name(log: ClickLog, label: str) -> str:
    """Return ``yandex-<query>``, followed by the region if the log has several for the query."""
    query, _, region = label.partition("-")
    regions = sum(other.partition("-")[0] == query for other in log.query_labels)
    return f"yandex-{query}" if regions == 1 else f"yandex-{query}-{region}"


def digest(item: str) -> str:
    return hashlib.sha256(item.encode()).hexdigest()


def rounded(model: ClickModel) -> ClickModel:
    """Return the model with rounded parameters. No log determines the termination probability at
    the last position, so it is set to the value at the position above.
    """
    values = model.to_dict()
    if "termination" in values:
        values["termination"][-1] = values["termination"][-2]
    for name in set(values) - {"model", "n_positions"}:
        values[name] = np.round(values[name], DIGITS).tolist()
    return ClickModel.from_dict(values)


def family(instances: list[Instance]) -> dict[str, object]:
    """Return the distributions of the family ``yandex-like``, fitted to the instances."""
    shared = {name: instances[0].models[name].to_dict() for name in ESTIMATORS}
    browsing = np.array(shared["UBM"]["examination"])
    k, j = np.tril_indices(len(browsing))
    after = j > 0  # contexts with a click above; j counts positions from 1, k from 0
    position, distance = np.log(k + 1), np.log(np.maximum(k + 1 - j, 1))
    steps = np.log(np.arange(1, len(browsing) + 1))
    return {
        "format": "clickgym-family",
        "version": 1,
        "name": "yandex-like",
        "origin": f"Distributions fitted to the items of {len(instances)} real queries. {ORIGIN}",
        "meaning": {
            "attraction, satisfaction": "a and b of a Beta distribution of the items' "
            "parameters, by moments",
            "examination, termination, browsing_before_click": "intercept and slope of the logit "
            "against "
            "log(position), by logistic regression",
            "browsing_after_click": "intercept, slope against log(position) and slope against "
            "log(distance to "
            "the last click), likewise",
            "perseverance, continue_...": "as estimated",
        },
        "attraction": {name: beta(instances, name, "attraction") for name in instances[0].models},
        "satisfaction": {"DBN": beta(instances, "DBN", "satisfaction")},
        "perseverance": shared["DBN"]["perseverance"],
        **{
            name: shared["CCM"][name]
            for name in ("continue_after_skip", "continue_after_click", "continue_after_relevant")
        },
        "examination": logit_line(shared["PBM"]["examination"], steps),
        "termination": logit_line(shared["DCM"]["termination"][:-1], steps[:-1]),
        "browsing_before_click": logit_line(browsing[:, 0], steps),
        "browsing_after_click": logit_line(browsing[k, j][after], position[after], distance[after]),
    }


def beta(instances: list[Instance], model: str, parameter: str) -> list[float]:
    """Return the parameters of the Beta distribution that has the mean and the variance of a
    parameter over the items of all queries.
    """
    values = np.concatenate([instance.models[model].to_dict()[parameter] for instance in instances])
    mean = values.mean()
    size = mean * (1 - mean) / values.var() - 1
    return [round(float(mean * size), DIGITS), round(float((1 - mean) * size), DIGITS)]


def logit_line(probabilities: np.ndarray | list[float], *features: np.ndarray) -> list[float]:
    """Fit a logistic regression of probabilities on a constant and features, by Newton's method."""
    target, design = (
        np.asarray(probabilities),
        np.column_stack([np.ones(len(probabilities)), *features]),
    )
    coefficients = np.zeros(design.shape[1])
    for _ in range(50):
        fitted = 1 / (1 + np.exp(-design @ coefficients))
        hessian = design.T @ (design * (fitted * (1 - fitted))[:, None])
        coefficients += np.linalg.solve(hessian, design.T @ (target - fitted))
    return [round(float(coefficient), DIGITS) for coefficient in coefficients]


if __name__ == "__main__":
    main()
