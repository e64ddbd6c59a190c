"""LearnedRanker: the ranker that `learn` returns, its file, its exact value under known users, and what it is in a run."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from itertools import chain
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...agents.agent import Agent, Seed, checked_features
from ...core.checks import check_count, check_kind, check_path, check_positions, generator, is_sequence, numbers, short
from ...core.files import parse_json, read_arrays, reading, write_whole
from ...envs import ClickModel, ContextualModel
from ...runner.make import EnvLike, place_of
from ..log import ClickLog
from ..policies import FixedPolicy
from .exposure import sessions_of
from .objective import Floats, Layers, scores_of

FORMAT = 1
"""Of the file."""

ROUNDS = 20_000
"""Sessions that stand for all, where users meet other candidates every time."""

Key = str | tuple[str, str]


class Value(NamedTuple):
    """What a ranker earns under known users, in expected clicks per session.

    Attributes:
        value: of its list.
        random: of random lists.
        optimum: of the best list.
        logged: what the lists of the log earned, as counted there.
        sessions: over how many sessions, drawn once and for all, the first three are means; 0: exactly, over all.
    """

    value: float
    random: float
    optimum: float
    logged: float
    sessions: int

    @property
    def share(self) -> float:
        """How much of the way from random lists to the optimum the ranker goes."""
        return (self.value - self.random) / (self.optimum - self.random)

    @property
    def logged_share(self) -> float:
        """The same of the logging policy."""
        return (self.logged - self.random) / (self.optimum - self.random)

    def __str__(self) -> str:
        over = f"over {self.sessions:,} drawn sessions" if self.sessions else "exactly"
        return (
            f"{self.value:.4f} clicks per session, {self.share:.1%} of the way from random lists ({self.random:.4f}) to the "
            f"best ones ({self.optimum:.4f}), {over}; the log's policy {self.logged:.4f} ({self.logged_share:.1%})"
        )


def _checked(layers: Sequence[tuple[ArrayLike, ArrayLike]], size: int) -> Layers:
    """The layers as arrays; ``size`` is the number of features."""
    if not is_sequence(layers) or not len(layers) or not all(is_sequence(layer) and len(layer) == 2 for layer in layers):
        raise ValueError(f"layers is {short(layers)}; expected weights and biases of one layer or more")
    checked: Layers = []
    for place, (weights, biases) in enumerate(layers):
        outputs: Any = 1 if place == len(layers) - 1 else "outputs"
        matrix = numbers(f"layers[{place}][0]", weights, (size, outputs))
        size = matrix.shape[1]
        checked.append((matrix, numbers(f"layers[{place}][1]", biases, (size,))))
    return checked


class LearnedRanker(Agent):
    """A ranker that was learned from a click log: it orders candidates by a score of their features, and learns no more.

    It is an `Agent`: `clickgym.run` plays it. It is a function of a query and its candidates, so `Ranker` shows its lists as
    ``production=``, and the store keeps its digest. `clickgym.offline.learn` makes it.

    Args:
        layers: weights ``(inputs, outputs)`` and biases ``(outputs,)`` of each layer, the last of one output.
        mean, scale: ``(d,)``; features x are scaled to ``(x - mean) / scale``.
        n_items: the most candidates of a session that it learned from.
        n_positions: K.
        table: features by item label, or by query label and item label; None: they come with the candidates.
        facts: what `learn` reports.
        seed: of the order of candidates of equal score in `rank`.

    Attributes:
        facts: as given: the method, the policy that made the log, the least propensity, and so on.

    Raises:
        ValueError: naming what was expected.

    Example:
        >>> ranker = LearnedRanker([([[1.0], [-1.0]], [0.0])], mean=[0, 0], scale=[1, 1], n_items=3, n_positions=2)
        >>> ranker.best([[0.1, 0.5], [0.9, 0.2], [0.5, 0.2]])
        array([1, 2, 0])
    """

    def __init__(
        self,
        layers: Sequence[tuple[ArrayLike, ArrayLike]],
        *,
        mean: ArrayLike,
        scale: ArrayLike,
        n_items: int,
        n_positions: int,
        table: Mapping[Key, ArrayLike] | None = None,
        facts: Mapping[str, Any] | None = None,
        seed: Seed = None,
    ) -> None:
        self.n_items = check_count("n_items", n_items)
        self.n_positions = check_positions(n_positions, self.n_items)
        self.mean = numbers("mean", mean, ("features",))
        self.scale = numbers("scale", scale, self.mean.shape, above=0.0, expected="a number above 0")
        self.layers = _checked(layers, len(self.mean))
        for name, given in (("table", table), ("facts", facts)):
            check_kind(name, {} if given is None else given, Mapping, "a mapping, or None")
        self.table = {key: numbers(f"table[{key!r}]", row, self.mean.shape) for key, row in (table or {}).items()}
        self.facts = dict(facts or {})
        if not self.table:
            self.n_features = len(self.mean)  # which environments must have; a table needs none
        self._rng = generator(seed)

    # ----------------------------------------------------------------------------------------------------------- ranking

    def scores(self, features: ArrayLike) -> Floats:
        """The scores of candidates, larger is better; arguments as for `best`, but any number of candidates."""
        return scores_of(self.layers, (checked_features(features, (None, len(self.mean))) - self.mean) / self.scale)

    def best(self, features: ArrayLike) -> NDArray[np.int64]:
        """The order of candidates.

        Args:
            features: ``(n, d)`` of up to ``n_items`` candidates, unscaled.

        Returns:
            ``(n,)`` row numbers, the largest score first; rows of equal scores in their order.

        Raises:
            ValueError: another number of features, or more candidates than a session had from which it learned.
        """
        scores = self.scores(features)
        if len(scores) > self.n_items:
            raise ValueError(
                f"features has {len(scores)} candidates; the ranker learned from sessions of up to {self.n_items} only"
            )
        return np.argsort(-scores, kind="stable")

    def __call__(self, query: Any, candidates: Sequence[Any], features: ArrayLike | None = None) -> list[Any]:
        """The candidates of a query in their order.

        Args:
            query: its label.
            candidates: labels of items.
            features: ``(n, d)``; None: from the table.

        Raises:
            ValueError: the table, or an item in it, is missing; or as of `best`.
        """
        return [candidates[row] for row in self.best(self._rows(query, candidates) if features is None else features)]

    def _rows(self, query: Any, candidates: Sequence[Any]) -> ArrayLike:
        if not self.table:
            raise ValueError("the ranker has no table of features; expected features of the candidates")
        rows = [self.table.get((str(query), str(item)), self.table.get(str(item))) for item in candidates]
        for item, row in zip(candidates, rows, strict=True):
            if row is None:
                raise ValueError(f"the ranker has no features of the item {short(item)}; expected one of its table")
        return np.array(rows)

    def rank(self, observation: Any) -> NDArray[np.int64]:
        """The K best candidates; those of equal score in random order, so that their ids tell nothing.

        Without features in the observation, items are looked up in the table by their numbers, as `record` labels them.
        """
        seen = isinstance(observation, Mapping) and "features" in observation
        features = np.asarray(observation["features"] if seen else self._rows(None, range(self.n_items)))
        order = self._rng.permutation(len(features))
        return order[self.best(features[order])][: self.n_positions]

    def update(self, observation: Any, ranking: NDArray[np.int64], clicks: NDArray[np.int8], reward: float) -> None:
        """Do nothing: it learned before."""

    # ------------------------------------------------------------------------------------------------------------- value

    def evaluate(self, env: EnvLike) -> Value:
        """The expected clicks per session of its lists under known users, beside those of random lists and of the best ones.

        ⚠ Where users meet other candidates in every session, these are exact expectations of 20,000 sessions (users and
        candidates) that are drawn once and for all, each with one random list. Else they are those of all sessions; only random
        lists are 20,000 drawn ones.

        Args:
            env: the environment, an id with its arguments, or a click model, as for `clickgym.run`.

        Raises:
            ValueError: users that change or have a memory; features of another number; more candidates than it learned from.
        """
        model, rng = place_of(env).core.model, np.random.default_rng(0)
        n_positions, logged = model.n_positions, float(self.facts.get("clicks_per_session", np.nan))
        if isinstance(model, ContextualModel):
            task, _ = model.course("clicks", None, None).at(0)
            drawn, scratch, values = task.round, np.empty(n_positions + 1), np.empty((ROUNDS, 3))
            for row in values:
                task.next_round(task.pool, drawn, task.parameters, rng, task.code, scratch)
                for place, order in enumerate((self.best(drawn.features), rng.permutation(model.n_items))):
                    ranking = order[:n_positions]
                    row[place] = model.base.expected_kernel(task.parameters, ranking, task.code, n_positions, scratch)
                row[2] = drawn.optimum[0]
            value, random, optimum = values.mean(axis=0).tolist()
            return Value(value, random, optimum, logged, ROUNDS)
        if not isinstance(model, ClickModel) or len(model.epochs) > 1:
            raise ValueError(f"the users are a {type(model).__name__}; expected a click model that does not change")
        orders = [self.best(self._rows(None, range(model.n_items))), model.optimal_ranking("clicks")]
        orders += [rng.permutation(model.n_items) for _ in range(ROUNDS)]
        value, optimum, *by_lot = (model.expected_reward(order[:n_positions]) for order in orders)
        return Value(value, float(np.mean(by_lot)), optimum, logged, 0)

    def policies(self, log: ClickLog) -> dict[str, FixedPolicy]:
        """Its list for each query of a log, as policies that `clickgym.offline.evaluate` takes; the features are its table's.

        Raises:
            ValueError: candidates change from session to session; or features are missing.
        """
        check_kind("log", log, ClickLog, "a ClickLog")
        if log.candidates is not None:
            raise ValueError("candidates of the log change from session to session, so no query has one list")
        sessions = sessions_of(log, np.zeros(0, np.int64))
        policies: dict[str, FixedPolicy] = {}
        for row in sessions.cases:
            queries, items = np.divmod(sessions.codes[row[row >= 0]], len(log.item_labels))
            query = log.query_labels[queries[0]]
            order = self.best(self._rows(query, [log.item_labels[item] for item in items]))
            policies[query] = FixedPolicy(items[order][: log.n_positions])
        return policies

    # -------------------------------------------------------------------------------------------------------------- file

    def to_bytes(self) -> bytes:
        """The content of its file: arrays and JSON."""
        description = {
            "ranker": "LearnedRanker", "format": FORMAT, "n_items": self.n_items, "n_positions": self.n_positions,
            "table": list(self.table), "facts": self.facts,
        }  # fmt: skip
        arrays: dict[str, Any] = {f"values_{place}": values for place, values in enumerate(chain(*self.layers))}
        if self.table:
            arrays["table"] = np.array(list(self.table.values()))
        file, text = io.BytesIO(), np.frombuffer(json.dumps(description).encode(), np.uint8)
        np.savez_compressed(file, description=text, mean=self.mean, scale=self.scale, **arrays)
        return file.getvalue()

    @property
    def digest(self) -> str:
        """SHA-256 of its file, in hexadecimal digits."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    def save(self, path: str | PathLike[str]) -> None:
        """Write the file (``.npz``), atomically.

        Raises:
            OSError: it cannot be written.
        """
        write_whole(check_path("path", path), self.to_bytes())

    @classmethod
    def load(cls, path: str | PathLike[str]) -> LearnedRanker:
        """Read a file that `save` wrote; no code is run, and sizes are checked before memory is taken.

        Raises:
            FileNotFoundError: there is none.
            ValueError: it is another file, or damaged.
        """
        path = check_path("path", path)
        with reading(path, "is no saved ranker, or damaged", "restore it from a backup, or learn it again"):
            arrays = read_arrays(path)
            description = parse_json(arrays["description"].tobytes().decode())
            if description.get("ranker") != "LearnedRanker" or description["format"] != FORMAT:
                raise ValueError("it holds something else, or is of a later version")
            values = [arrays[f"values_{place}"] for place in range(sum(name.startswith("values_") for name in arrays))]
            keys = [key if isinstance(key, str) else tuple(key) for key in description["table"]]
            return cls(
                list(zip(values[::2], values[1::2], strict=True)), mean=arrays["mean"], scale=arrays["scale"],
                table=dict(zip(keys, arrays.get("table", ()), strict=True)), facts=description["facts"],
                n_items=description["n_items"], n_positions=description["n_positions"], seed=0,
            )  # fmt: skip
