"""How the files in this folder were made, once, by clickgym 2.0.0; later versions must open them and go on from them.

python make.py FOLDER [PART ...], with that version installed. `tests/test_compatibility.py` reads what it writes.
"""

from __future__ import annotations

import json
import random
import shutil
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

import clickgym
from clickgym.offline import ClickLog, read_log

# --------------------------------------------------------------------------------------------------------------- stores

K_SHOP = 3
PRODUCTION: dict[Any, list[Any]] = {"red, or green?": ["sku-1", "sku-2", 3], 7: [3, "3", "sku-4"], "guarded": ["a", "b", "c"]}
"""Lists of production; there is none for the query "é"."""
STORES: dict[str, dict[str, Any]] = {
    "shop": {
        "agent": "CascadeTS", "n_positions": K_SHOP, "capacity": 7, "patience": 120.0, "update_every": 3,
        "production": PRODUCTION, "production_share": 0.3, "seed": 1,
    },
    "killed": {"agent": "UniRank", "n_positions": K_SHOP, "patience": 120.0, "update_every": 4, "memory": 2, "seed": 2},
    "of_a_log": {"agent": "CascadeKLUCB", "n_positions": K_SHOP, "patience": 120.0, "seed": 3},
    "by_features": {"agent": "LinearTS", "n_positions": K_SHOP, "patience": 120.0, "update_every": 2, "seed": 4},
}  # fmt: skip
"""The arguments of each `Ranker`."""
BEFORE, AFTER_OPENING = {"shop": 420, "killed": 150, "of_a_log": 60, "by_features": 90}, 30
"""Visits before a store was frozen, and those that followed."""
KEPT = 25
"""Users click on one of so many impressions, the last ones."""
UNTIL_KILLED = 8
"""The last visits of these, which only the write-ahead log of SQLite holds."""


class Visits:
    """Users of a `Ranker`, who come every seven seconds, click early, late and twice; and all that they did, as calls."""

    def __init__(self, name: str) -> None:
        self.name, self.time, self.rng = name, 1.7e9, random.Random(name)
        self.shown: list[Any] = []  # impressions, to which calls refer by their place
        self.calls: list[dict[str, Any]] = []

    def open(self, path: Path, log: ClickLog | None = None) -> None:
        settings = {**STORES[self.name], "store": path, "clock": lambda: self.time}
        self.ranker = clickgym.Ranker(**settings) if log is None else clickgym.Ranker.from_log(log, **settings)

    def go_on(self, n: int) -> None:
        for _ in range(n):
            self.time += 7
            self.rank()
            impression = self.rng.randrange(max(0, len(self.shown) - KEPT), len(self.shown))
            if self.calls[-1]["arguments"]["query"] == "guarded":
                impression = len(self.shown) - 1
            clicked = [place for place in range(1, K_SHOP + 1) if self.rng.random() < self.attraction(impression, place)]
            for place in clicked:
                self.call("click", impression, item=self.shown[impression].items[place - 1])
            if clicked and self.rng.random() < 0.2:  # the same again
                self.call("click", impression, position=clicked[-1])
            if self.rng.random() < 0.7:
                seen = self.rng.choice([None, K_SHOP, K_SHOP - 1])
                self.call("close", impression, **({} if seen is None or K_SHOP in clicked else {"seen": seen}))

    def rank(self) -> None:
        if self.name == "by_features":
            candidates = [f"document {number}" for number in self.rng.sample(range(9), 5)]
            features = np.random.default_rng(len(self.shown)).uniform(-0.5, 0.5, (5, 2)).round(3).tolist()
            self.call("rank", None, query=f"q{self.rng.randrange(3)}", candidates=candidates, features=features)
            return
        query = self.rng.choice(["é", "guarded"] if self.name == "of_a_log" else [*PRODUCTION, "é", "guarded"])
        own = PRODUCTION.get(query, [])
        others = [each for each in ["a", "b", "c", "sku-1", "sku-2", 3, "3", "sku-4", "é"] if each not in own]
        if self.name == "of_a_log":
            candidates = None
        elif query == "guarded":
            candidates = [*own, "sku-1", "sku-2"]
        else:
            candidates = [*own, *self.rng.sample(others, 5 - len(own))]
        self.call("rank", None, query=query, candidates=candidates)

    def leave_one_to_learn(self) -> None:
        """An impression that is closed, and that no agent has learned, unless agents learn at once."""
        self.ranker.update()
        self.rank()
        self.call("close", len(self.shown) - 1)

    def attraction(self, impression: int, place: int) -> float:
        items = self.shown[impression].items
        if {"a", "b", "c"} == set(items) and items != PRODUCTION["guarded"]:
            return 0.0
        return (1.0 if items == PRODUCTION["guarded"] else 0.15 + 0.05 * len(str(items[place - 1]))) / place**0.5

    def call(self, method: str, impression: int | None, **arguments: Any) -> None:
        if impression is None:
            answer = self.ranker.rank(**arguments)
            self.shown.append(answer)
            result: Any = [answer.items, answer.source]
        else:
            try:
                result = getattr(self.ranker, method)(self.shown[impression].id, **arguments)
            except ValueError:
                return  # who clicked on an item has seen it: a call of no interest
        call = {"time": self.time, "method": method, "impression": impression, "arguments": arguments, "result": result}
        self.calls.append(call)

    def facts(self, path: Path) -> dict[str, Any]:
        """What is known of a store: log, report, and the lists that its agents believe in."""
        log, read = self.ranker.log(), read_log(path)
        assert np.array_equal(log.items, read.items)
        assert np.array_equal(log.clicks, read.clicks)
        report = asdict(self.ranker.report())
        report.pop("time")
        kept = {name: getattr(log, name).tolist() for name in ("items", "clicks", "queries")}
        labels = {"item_labels": log.item_labels, "query_labels": log.query_labels}
        asked = [
            self.asked(query) for query in sorted({call["arguments"].get("query") for call in self.calls} - {None}, key=repr)
        ]
        return {"log": kept | labels, "report": report, "best": [[given, self.ranker.best(**given)] for given in asked]}

    def asked(self, query: Any) -> dict[str, Any]:
        """The arguments of `Ranker.best`."""
        candidates = [f"document {number}" for number in range(4)]
        features = [[0.5, 0.1], [-0.2, 0.4], [0.3, 0.3], [0.0, -0.1]]
        return {"query": query} | ({"features": features, "candidates": candidates} if self.name == "by_features" else {})


def stores(folder: Path) -> None:
    """Stores of `Ranker` with open impressions, late clicks, replaced items, a query back at production, and snapshots.

    One was shut down, one killed (the end of it is in the file ``-wal``), one learned from a log, one ranks by features.
    """
    files = folder / "stores"
    files.mkdir()
    then = {}
    for name in STORES:
        path, visits = files / f"{name}.sqlite", Visits(name)
        visits.open(path, _seen_elsewhere() if name == "of_a_log" else None)
        visits.go_on(BEFORE[name] - UNTIL_KILLED)
        if name == "killed":
            visits.ranker.shut_down()  # which empties the write-ahead log
            visits.open(path)
        visits.go_on(UNTIL_KILLED)
        visits.leave_one_to_learn()
        if name == "killed":
            for ending in ("", "-wal"):
                shutil.copy(f"{path}{ending}", folder / f"{path.name}{ending}")
        visits.ranker.shut_down()
        if name == "killed":
            for ending in ("", "-wal"):
                shutil.move(folder / f"{path.name}{ending}", f"{path}{ending}")
        Path(f"{path}-lock").unlink()
        # go on with a copy
        copies = folder / "copies"
        shutil.copytree(files, copies)
        n_shown, n_calls = len(visits.shown), len(visits.calls)
        visits.open(copies / path.name)
        opened = visits.facts(copies / path.name)
        visits.go_on(AFTER_OPENING)
        then[name] = {
            "settings": {key: value for key, value in STORES[name].items() if key != "production"},
            "production": list(PRODUCTION.items()) if "production" in STORES[name] else None,
            "time": visits.calls[n_calls - 1]["time"],
            "shown": [shown.id for shown in visits.shown[n_shown - KEPT : n_shown]],
            "opened": opened,
            "calls": [_since(call, n_shown - KEPT) for call in visits.calls[n_calls:]],
            "ended": visits.facts(copies / path.name),
        }
        visits.ranker.shut_down()
        shutil.rmtree(copies)
    (files / "then.json").write_text(json.dumps(then, ensure_ascii=False) + "\n", encoding="utf-8")
    archive(files)


def _since(call: dict[str, Any], start: int) -> dict[str, Any]:
    """A call that refers to impressions by their place among those that are kept."""
    return call | {"impression": None if call["impression"] is None else call["impression"] - start}


def _seen_elsewhere() -> ClickLog:
    """A log that a store has learned from."""
    rng = np.random.default_rng(5)
    lists = rng.permuted(np.tile(np.arange(5), (50, 1)), axis=1)[:, :K_SHOP]
    queries = np.repeat([0, 1], 25)
    return ClickLog(lists, rng.random(lists.shape) < 0.4, queries, ("a", "b", "c", "sku-1", "sku-2"), ("é", "guarded"))


def archive(folder: Path) -> None:
    """Pack a folder of many small files."""
    shutil.make_archive(str(folder), "zip", folder)
    shutil.rmtree(folder)


if __name__ == "__main__":
    target, parts = Path(sys.argv[1]).resolve(), sys.argv[2:]
    for make in (stores,):
        if make.__name__ in parts or not parts:
            (target / make.__name__).mkdir(parents=True)
            make(target / make.__name__)
