"""What are judgments from clicks worth? Fitted attractions and clicks over expected clicks (COEC) beside the truth.

    python -m clickgym_lab.judgments lab/results/judgments.md

20 queries with ten items each, of attractions from 0.1 to 0.56 (5.6 times); users of a position-based model; five positions.
The logging policy ranks by the attractions with noise: strength 0 is random lists, infinity one list per query. Of each item:
the attraction of a fitted PBM with its interval (which refuses one list per query), COEC summed over positions, and COEC as
OpenSearch's plugin for search relevance counts it. Only products of attraction and examination are determined, so that errors
are measured up to a factor for each method. All statements were written before the run.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl

from clickgym.offline import ClickLog, fit_models

QUERIES, POSITIONS = 20, 5
ATTRACTION = np.geomspace(0.56, 0.1, 10)
EXAMINATION = 0.7 ** np.arange(POSITIONS)
STRENGTHS = (0.0, 1.0, 3.0, 10.0, np.inf)
SIZES = (1_000, 10_000, 100_000, 1_000_000)
REPEATS = {1_000: 10, 10_000: 10, 100_000: 3, 1_000_000: 1}
MOST = SIZES[-1]
METHODS = ("fitted", "sum", "opensearch")
Get = Callable[[str, float, int, str], float]
"""A figure of the table: its name, the strength, the sessions, and the method."""

STATEMENTS: dict[str, Callable[[Get], bool]] = {
    "With random lists and 10⁶ sessions all three methods find the ratio of the best to the worst item within 10 %": (
        lambda get: all(abs(get("ratio", 0.0, MOST, method) / 5.6 - 1) < 0.1 for method in METHODS)
    ),
    "COEC (sum) finds an ever smaller ratio the closer lists are to one, and less than half of it at strength 10": lambda get: (
        all(get("ratio", a, MOST, "sum") > get("ratio", b, MOST, "sum") for a, b in pairwise(STRENGTHS))
        and get("ratio", 10.0, MOST, "sum") < 2.8
    ),
    "OpenSearch's COEC finds a ratio that is at least 1.3 times too large at strengths 1 and 3": lambda get: (
        all(get("ratio", strength, MOST, "opensearch") > 1.3 * 5.6 for strength in (1.0, 3.0))
    ),
    "At 10⁶ sessions the fitted model's calibration error is below half of either COEC's at strengths 1, 3 and 10": lambda get: (  # noqa: E501
        all(
            get("error", strength, MOST, "fitted") < 0.5 * get("error", strength, MOST, method)
            for strength in STRENGTHS[1:4]
            for method in METHODS[1:]
        )
    ),
    "At 10³ sessions (50 per query) the fitted model is no better calibrated than COEC (sum) with random lists": lambda get: (
        get("error", 0.0, SIZES[0], "fitted") > 0.95 * get("error", 0.0, SIZES[0], "sum")
    ),
    "All methods order well: NDCG at least .97 at 10⁵ sessions up to strength 3": lambda get: (
        all(get("ndcg", strength, 100_000, method) >= 0.97 for strength in STRENGTHS[:3] for method in METHODS)
    ),
    "With one list per query COEC (sum) is 1 for every item, whatever the clicks": lambda get: (
        abs(get("ratio", np.inf, MOST, "sum") - 1) < 0.1
    ),
    "At least 90 % of the fitted model's intervals contain the truth at 10⁵ sessions up to strength 3": lambda get: (
        all(get("covered", strength, 100_000, "fitted") >= 0.9 for strength in STRENGTHS[:3])
    ),
}  # fmt: skip


def log_of(strength: float, n: int, rng: np.random.Generator) -> ClickLog:
    """Sessions of the logging policy of this strength."""
    queries = rng.integers(QUERIES, size=n)
    scores = np.tile(np.log(ATTRACTION), (n, 1))
    scores = scores if np.isinf(strength) else strength * scores + rng.gumbel(size=scores.shape)
    items = np.argsort(-scores, axis=1)[:, :POSITIONS]
    clicks = rng.random(items.shape) < ATTRACTION[items] * EXAMINATION
    labels = tuple(f"{number:03d}" for number in range(10 * QUERIES)), tuple(f"query {query}" for query in range(QUERIES))
    shown = (10 * queries[:, None] + items).astype(np.int32)
    return ClickLog(shown, clicks.astype(np.int8), queries.astype(np.int32), *labels)


def judged(log: ClickLog, fits: bool) -> pl.DataFrame:
    """The items with their truth and what each method says; without the fitted attraction where the PBM cannot be fitted."""
    fitted = fit_models(log, ["PBM" if fits else "CM"], n_items=10, test_share=0, coec="sum", bootstrap=10 * fits)
    plugin = fit_models(log, ["CM"], n_items=10, test_share=0, coec="opensearch").attractions
    assert fitted.attractions is not None and plugin is not None  # noqa: PT018
    truth = ATTRACTION[fitted.attractions["item"].cast(pl.Int64).to_numpy() % 10]
    top = fitted.estimators["PBM"].click_model(*_any_pair(log)).parameters.examination[0] if fits else 1.0
    columns = {"truth": truth, "opensearch": plugin["coec"], "scaled": truth / top}
    return fitted.attractions.rename({"attraction": "fitted", "coec": "sum"}).with_columns(
        **{k: pl.Series(v) for k, v in columns.items()}
    )


def _any_pair(log: ClickLog) -> tuple[str, list[str]]:
    return log.query_labels[log.queries[0]], [log.item_labels[item] for item in log.items[0]]


def figures(rows: pl.DataFrame, method: str) -> dict[str, float]:
    """Calibration, order and coverage of a method, means over the queries."""
    rows = rows.filter((pl.col("sessions") >= 30) & (pl.col(method) > 0))
    log_error = (rows[method].log() - rows["truth"].log()).to_numpy()
    by_item = rows.group_by("truth").agg(pl.col(method).mean()).sort("truth")[method]
    ndcg = []
    for _, own in rows.group_by("query"):
        discount = 1 / np.log2(np.arange(own.height) + 2)
        gains = own.sort(method, descending=True)["truth"].to_numpy()
        ndcg.append((gains @ discount) / (np.sort(gains)[::-1] @ discount))
    covered = ((rows["low"] <= rows["scaled"]) & (rows["scaled"] <= rows["high"])).mean() if method == "fitted" else np.nan
    ratio = by_item[-1] / by_item[0]
    return {"ratio": ratio, "error": log_error.std(), "ndcg": float(np.mean(ndcg)), "covered": covered, "items": rows.height}


def study() -> pl.DataFrame:
    """All figures: a row per strength, number of sessions and method."""
    rows = []
    for strength in STRENGTHS:
        for size in SIZES:
            seeds = ([int(min(strength, 99)), size, repeat] for repeat in range(REPEATS[size]))
            fits = not np.isinf(strength)
            logs = [judged(log_of(strength, size, np.random.default_rng(seed)), fits) for seed in seeds]
            for method in METHODS if fits else METHODS[1:]:
                found = pl.DataFrame([figures(log, method) for log in logs if (log["sessions"] >= 30).any()])
                rows.append({"strength": strength, "sessions": size, "method": method} | found.mean().row(0, named=True))
    return pl.DataFrame(rows)


def page(table: pl.DataFrame) -> str:
    """The page of the study."""

    def get(name: str, strength: float, sessions: int, method: str) -> float:
        row = table.filter((pl.col("strength") == strength) & (pl.col("sessions") == sessions) & (pl.col("method") == method))
        return float(row[name][0])

    title, command, about = (__doc__ or "").split("\n\n", 2)
    lines = [f"# {title}", "", f"`{command.strip()}` writes this page.", "", about.strip(), ""]
    lines += ["| statement, written before the run | supported |", "|---|---|"]
    lines += [f"| {text} | {'yes' if rule(get) else 'no'} |" for text, rule in STATEMENTS.items()]
    lines += [
        "",
        "*Ratio*: best over worst item (truth 5.6). *Error*: standard deviation of log(estimate / truth). Items shown in fewer than",  # noqa: E501
    ]
    lines += [
        "30 sessions, and those with estimate 0, are not counted. *Covered*: the share of 0.95 intervals that contain the truth.",  # noqa: E501
        "",
    ]
    lines += ["| strength | sessions | method | ratio | error | NDCG | covered | items |", "|---|---|---|---|---|---|---|---|"]
    for row in table.iter_rows(named=True):
        covered = "" if row["covered"] is None or np.isnan(row["covered"]) else f"{row['covered']:.2f}"
        figures_ = f"{row['ratio']:.2f} | {row['error']:.3f} | {row['ndcg']:.3f} | {covered} | {row['items']:.0f}"
        lines.append(f"| {row['strength']:g} | {row['sessions']:,} | {row['method']} | {figures_} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out", type=Path)
    out = parser.parse_args().out
    out.write_text(page(study()), encoding="utf-8")


if __name__ == "__main__":
    main()
