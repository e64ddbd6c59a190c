"""Whether the verdicts of `evaluate` are right by default, and its intervals hold the truth: users that are known.

For each of six click models instances are drawn: 5 to 9 items, 3 to 5 positions, attractions of several laws. Each has a log of
random lists with their propensities, and the best list and three random ones are evaluated with the defaults. The truth is the
expected number of clicks of a list, and the mean of all lists for the logged policy. A verdict is *firm* if it says "better" or
"worse", and *against the truth* if the difference has the other sign. *Covered* are the intervals of the value and of the
difference, of the estimates on which the verdict rests, and the verdict's own.

    python benchmarks/evaluate.py --instances 20 --seed 1 --out evaluate.jsonl --processes 1

One line of JSON per instance; instances that the file has are not evaluated again, so that a run can be stopped and resumed.
"""

from __future__ import annotations

import itertools
import math
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import typer
from exam import Laws, examined, interval_text, users

import clickgym
from clickgym.core.formats import markdown_table
from clickgym.envs import ClickModel
from clickgym.offline import ClickLog, Comparison, compare

MODELS = ("CM", "PBM", "DCM", "UBM", "DBN", "CCM")
SESSIONS, RANDOM_LISTS = 50_000, 3
FIRM = {"better": 1, "worse": -1}
ATTRACTIONS = ((1, 2), (1, 5), (2, 2), (1, 20), (4, 2))
"""Beta distributions."""
LAWS = Laws(0.5, (0.05, 0.95), (0.05, 0.95), (0.5, 1.0), ([0.5, 0.3, 0.05], [1.0, 0.95, 0.8]))


def drawn(kind: str, rng: np.random.Generator) -> ClickModel:
    """A click model with random parameters."""
    n_positions = int(rng.integers(3, 6))
    n_items = int(rng.integers(n_positions + 2, 10))
    a, b = ATTRACTIONS[rng.integers(len(ATTRACTIONS))]
    attraction = rng.beta(a, b, n_items).clip(0.003, 0.97)
    examination = np.sort(rng.uniform(0.1, 1.0, n_positions))[::-1]
    return users(kind, attraction, examination, rng, LAWS)


def evaluated(kind: str, seed: int) -> dict[str, Any]:
    """The verdicts on some lists for the users of a seed, and the truth about them."""
    rng = np.random.default_rng([47, MODELS.index(kind), seed])
    model = drawn(kind, rng)
    log, values = _random_lists(model, rng), _values(model)
    best = max(values, key=lambda ranking: values[ranking])
    others = [ranking for ranking in values if ranking != best]
    lists = [best, *(others[i] for i in rng.choice(len(others), RANDOM_LISTS, replace=False))]
    logged = float(np.mean([*values.values()]))
    start = time.process_time()
    with warnings.catch_warnings(action="ignore"):
        specs = ["fixed:" + ",".join(log.item_labels[item] for item in ranking) for ranking in lists]
        compared = compare(log, specs)
    rows = [
        {"list": ranking, "truth": values[ranking], "difference": values[ranking] - logged} | _judged(compared, spec)
        for ranking, spec in zip(lists, specs, strict=True)
    ]
    return {
        "model": kind, "seed": seed, "version": clickgym.__version__, "logged": logged, "lists": rows,
        "seconds": round(time.process_time() - start, 2),
    }  # fmt: skip


def _random_lists(model: ClickModel, rng: np.random.Generator) -> ClickLog:
    """Sessions that show lists drawn at random, with the probabilities of items at positions and of lists."""
    n_items, n_positions = model.n_items, model.n_positions
    lists = rng.permuted(np.tile(np.arange(n_items), (SESSIONS, 1)), axis=1)[:, :n_positions]
    clicks = [model.sample(ranking, rng) for ranking in lists]
    labels = tuple(f"doc{number}" for number in range(n_items))
    return ClickLog(
        lists, clicks, np.zeros(SESSIONS), labels, ("query",), propensities=np.full(lists.shape, 1 / n_items),
        list_propensities=np.full(SESSIONS, 1 / math.perm(n_items, n_positions)),
    )  # fmt: skip


def _values(model: ClickModel) -> dict[tuple[int, ...], float]:
    """The expected clicks of every list."""
    lists = itertools.permutations(range(model.n_items), model.n_positions)
    return {ranking: model.expected_reward(ranking) for ranking in lists}


def _judged(compared: Comparison, policy: str) -> dict[str, Any]:
    """The default verdict on a list, and the estimates on which it rests."""
    verdict = compared.verdicts[policy]
    assert verdict is not None
    by = [
        {"estimator": each.estimator, "value": each.interval, "difference": each.difference_interval}
        for each in compared.by_policy[policy]
        if each.estimator in verdict.estimators
    ]
    if verdict.interval is not None:
        by.append({"estimator": "the verdict", "value": None, "difference": verdict.interval})
    return {"verdict": verdict.word, "reason": verdict.reason, "by": by}


# -------------------------------------------------------------------------------------------------------------- summary


LISTS = ("users", "lists", "firm", "right", "against the truth", "not different", "no verdict")
INTERVALS = ("estimator", "intervals of the value", "covered", "intervals of the difference", "covered")


def summary(rows: Sequence[dict[str, Any]]) -> str:
    """The tables, as Markdown: verdicts by model, and intervals by estimator."""
    verdicts = [_verdicts(kind, [row for row in rows if row["model"] == kind]) for kind in MODELS]
    lists = [each for row in rows for each in row["lists"]]
    estimators = dict.fromkeys(by["estimator"] for each in lists for by in each["by"])
    coverage = [_coverage(name, lists) for name in (*estimators, "all")]
    return "\n".join([*markdown_table([LISTS, *verdicts, _verdicts("all", rows)]), "", *markdown_table([INTERVALS, *coverage])])


def _verdicts(kind: str, rows: Sequence[dict[str, Any]]) -> list[str]:
    lists = [each for row in rows for each in row["lists"]]
    signs = [FIRM.get(each["verdict"], 0) * np.sign(each["difference"]) for each in lists]
    right, wrong, none = signs.count(1), signs.count(-1), sum(each["verdict"] == "no verdict" for each in lists)
    shares = [right + wrong, right, f"{wrong} {interval_text(wrong, len(lists))}", len(lists) - right - wrong - none, none]
    return [*map(str, (kind, len(lists), *shares))]


def _coverage(name: str, lists: Sequence[dict[str, Any]]) -> list[str]:
    """Of an estimator; or of all, without the verdicts."""
    pairs = [(each, by) for each in lists for by in each["by"]]
    pairs = [(each, by) for each, by in pairs if by["estimator"] == name or (name == "all" and by["value"])]
    cells = [name]
    for what, truth in (("value", "truth"), ("difference", "difference")):
        covered = [by[what][0] <= each[truth] <= by[what][1] for each, by in pairs if by[what]]
        cells += [str(len(covered)), f"{np.mean(covered):.1%} {interval_text(sum(covered), len(covered))}" if covered else "–"]
    return cells


def main(instances: int = 20, seed: int = 0, out: Path = Path("evaluate.jsonl"), processes: int = 1) -> None:
    """Evaluate so many instances of each click model that the file lacks, from the seed 1000 * seed on; print the tables."""
    wanted = [(kind, 1000 * seed + number) for number in range(instances) for kind in MODELS]
    print(summary(examined(evaluated, wanted, ("model", "seed"), out, processes)))


if __name__ == "__main__":
    typer.run(main)
