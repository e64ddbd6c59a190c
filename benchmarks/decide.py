"""Whether what `decide` recommends is better in truth: simulated logs of one query, whose users are known.

A log is drawn by its seed: users of eight kinds, 5 to 11 items, lists of 3 to 6 positions (in a third of the logs of several
lengths), 10³ to 10⁶ sessions, a list in production that is best, nearly best or poor, and one of five ways in which the lists
vary. Counted are the logs on which a list was recommended, those of them on which it is worse in truth than the list in
production, and, of the logs of 10⁵ sessions or more with at least 5 % to gain and users that a fitted model describes, the
share on which a list was recommended.

    python benchmarks/decide.py --logs 300 --seed 1 --out results.jsonl --processes 1

One line of JSON per log; logs that the file has are not decided again, so that a run can be stopped and resumed.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray

import clickgym
from clickgym.core.kernels import specialise
from clickgym.envs import (
    CascadeModel,
    ClickChainModel,
    ClickModel,
    DynamicBayesianModel,
    PositionBasedModel,
    TrustBiasModel,
    UserBrowsingModel,
)
from clickgym.offline import ClickLog
from clickgym.offline.decision.decide import AGENTS, Settings, weigh
from clickgym.offline.decision.evidence import LEVEL, verdict
from clickgym.offline.decision.models import Models

USERS = ("CM", "PBM", "UBM", "DBN", "CCM", "trust bias", "neighbours", "two kinds")
DESCRIBED = ("CM", "PBM", "UBM", "DBN", "CCM")
"""Users that one of the fitted models describes."""
PRODUCTION = ("best", "nearly best", "poor")
ROUNDING = 1e-9
LOGGING = ("few lists", "swaps", "Plackett-Luce", "part at random", "at random")


def _draw(parameters, lists, uniforms, clicks, examined):  # type: ignore[no-untyped-def]
    for session in range(len(lists)):
        sample(parameters, lists[session], uniforms[session], clicks[session], examined[session])  # noqa: F821  (left open)


class Neighbours:
    """Users of a PBM whose clicks also depend on the items above and below: α(i) is multiplied for each pair of neighbours.

    Args:
        attraction, examination: as of the PBM.
        above, below: ``(L, L)`` factors of an item by its neighbour.
    """

    def __init__(self, attraction: Any, examination: Any, above: Any, below: Any) -> None:
        self.attraction, self.examination, self.above, self.below = attraction, examination, above, below
        self.n_positions = len(examination)

    def rates(self, lists: NDArray[np.int64]) -> NDArray[np.float64]:
        """``(N, K)`` probabilities of clicks, also of lists that end above K (-1)."""
        effect = self.attraction[lists]
        effect[:, 1:] *= np.where(lists[:, 1:] >= 0, self.above[lists[:, 1:], lists[:, :-1]], 1.0)
        effect[:, :-1] *= np.where(lists[:, 1:] >= 0, self.below[lists[:, :-1], lists[:, 1:]], 1.0)
        return np.where(lists >= 0, np.minimum(effect, 0.98) * self.examination[: lists.shape[1]], 0.0)

    def clicks(self, lists: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int8]:
        """``(N, K)`` clicks."""
        return (rng.random(lists.shape) < self.rates(lists)).astype(np.int8)

    def value(self, ranking: Sequence[int]) -> float:
        """Expected clicks."""
        return float(self.rates(np.array([ranking])).sum())


class Modelled:
    """Users of a click model.

    Args:
        model: over L items and K positions.
    """

    def __init__(self, model: ClickModel) -> None:
        self.model, self.n_positions = model, model.n_positions

    def clicks(self, lists: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int8]:
        """``(N, K)`` clicks; what stands below the end of a list does not change those above."""
        clicks, examined = np.zeros((2, *lists.shape), np.int8)
        specialise(_draw, sample=self.model.sample_kernel)(
            self.model.parameters, np.maximum(lists, 0), rng.random(lists.shape), clicks, examined
        )
        return clicks * (lists >= 0)

    def value(self, ranking: Sequence[int]) -> float:
        """Expected clicks."""
        items = [*ranking, *(item for item in range(self.model.n_items) if item not in ranking)]
        return self.model.expected_reward(items[: self.n_positions], "clicks", len(ranking))


class TwoKinds:
    """Users of two kinds, who want different items.

    Args:
        kinds: the users of each kind.
        share: of the first.
    """

    def __init__(self, kinds: Sequence[Modelled], share: float) -> None:
        self.kinds, self.share, self.n_positions = kinds, share, kinds[0].n_positions

    def clicks(self, lists: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int8]:
        """``(N, K)`` clicks."""
        first, second = (kind.clicks(lists, rng) for kind in self.kinds)
        return np.where(rng.random((len(lists), 1)) < self.share, first, second)

    def value(self, ranking: Sequence[int]) -> float:
        """Expected clicks."""
        first, second = (kind.value(ranking) for kind in self.kinds)
        return self.share * first + (1 - self.share) * second


def _model(kind: str, n_items: int, n_positions: int, rng: np.random.Generator) -> ClickModel:
    attraction = rng.beta(*[(1, 2), (1, 5), (2, 2)][rng.integers(3)], n_items).clip(0.01, 0.95)
    examination = np.sort(rng.uniform(0.15, 1.0, n_positions))[::-1]
    if kind == "CM":
        return CascadeModel(attraction, n_positions)
    if kind == "PBM":
        return PositionBasedModel(attraction, examination)
    if kind == "trust bias":
        return TrustBiasModel(attraction, examination)
    if kind == "UBM":
        rows = np.zeros((n_positions, n_positions))
        for k, last in itertools.product(range(n_positions), range(n_positions)):
            if last <= k:  # as far below the last click as a position is below the top
                rows[k, last] = examination[k - last] * (rng.uniform(0.7, 1.0) if last else 1.0)
        return UserBrowsingModel(attraction, rows)
    if kind == "DBN":
        return DynamicBayesianModel(
            attraction, rng.uniform(0.05, 0.8, n_items), rng.uniform(0.6, 0.98), n_positions=n_positions
        )
    return ClickChainModel(attraction, *rng.uniform([0.6, 0.3, 0.1], [0.98, 0.95, 0.8]), n_positions)


def _users(kind: str, n_items: int, n_positions: int, rng: np.random.Generator) -> Any:
    if kind == "neighbours":
        pbm = _model("PBM", n_items, n_positions, rng)
        if rng.random() < 0.5:  # any pair
            size = rng.uniform(0.1, 0.6)
            above, below = np.exp(size * rng.standard_normal((2, n_items, n_items)))
        else:  # an item shines beside a worse one
            contrast = np.log(pbm.attraction[:, None] / pbm.attraction)
            above, below = (np.exp(size * contrast.clip(-2, 2)) for size in rng.uniform(-0.4, 0.4, 2))
        return Neighbours(pbm.attraction, pbm.examination, above, below)
    if kind == "two kinds":
        kinds = [Modelled(_model(str(rng.choice(DESCRIBED)), n_items, n_positions, rng)) for _ in range(2)]
        return TwoKinds(kinds, rng.uniform(0.3, 0.7))
    return Modelled(_model(kind, n_items, n_positions, rng))


@dataclass(frozen=True)
class Simulated:
    """A log and its truth.

    Attributes:
        settings: how it was drawn.
        log: the sessions.
        value: of a list of item labels, the expected clicks of the sessions of the log's lengths, and of a full list alone.
        best: the value of the best list.
    """

    settings: dict[str, Any]
    log: ClickLog
    value: Callable[[Sequence[str]], tuple[float, float]]
    best: float


def simulate(seed: int) -> Simulated:
    """The log of a seed."""
    rng = np.random.default_rng([27, seed])
    kind, production, logging = (str(rng.choice(names)) for names in (USERS, PRODUCTION, LOGGING))
    n_positions = int(rng.integers(3, 7))
    n_items = int(rng.integers(n_positions + 2, 12))
    share = rng.random()  # half of the logs have 10⁵ sessions or more, most of them not many more
    n_sessions = round(10 ** (3 + 2 * share if rng.random() < 0.5 else 5 + share**2))
    several = bool(rng.random() < 1 / 3)
    users = _users(kind, n_items, n_positions, rng)
    lengths = np.unique(rng.integers(2, n_positions + 1, 2)) if several else np.array([n_positions])
    lengths = np.union1d(lengths, [n_positions])
    shares = rng.dirichlet(2 * np.ones(len(lengths)))
    values: dict[tuple[int, ...], tuple[float, float]] = {}

    def value(ranking: tuple[int, ...]) -> tuple[float, float]:
        if ranking not in values:
            by_length = [users.value(ranking[:length]) for length in lengths]
            values[ranking] = (float(shares @ by_length), by_length[-1])
        return values[ranking]

    best, base = _production(production, n_items, n_positions, value, rng)
    lists = _lists(logging, base, n_sessions, rng)[:, :n_positions]
    if several:
        lists = np.where(np.arange(n_positions) < rng.choice(lengths, (n_sessions, 1), p=shares), lists, -1)
    # An item has no place in its label.
    names = tuple(f"doc{number}" for number in rng.permutation(n_items))
    log = ClickLog(lists, users.clicks(lists, rng), np.zeros(n_sessions), names, ("query",))
    settings = {
        "seed": seed, "users": kind, "production": production, "logging": logging, "items": n_items, "positions": n_positions,
        "sessions": n_sessions, "lengths": lengths.tolist(),
    }  # fmt: skip
    item = {name: number for number, name in enumerate(names)}
    return Simulated(settings, log, lambda labels: value(tuple(item[label] for label in labels)), best)


def _production(kind: str, n_items: int, n_positions: int, value: Any, rng: np.random.Generator) -> tuple[float, list[int]]:
    """The value of the best list, by a search that swaps items until no swap gains, from several lists; and that in production:
    the best, one of 90 to 98 % of its value, or one drawn at random of less."""

    def climb(ranking: list[int]) -> list[int]:
        while True:
            better = max(_swapped(ranking, n_positions), key=lambda other: value(tuple(other[:n_positions]))[0])
            if value(tuple(better[:n_positions]))[0] <= value(tuple(ranking[:n_positions]))[0] + 1e-12:
                return ranking
            ranking = better

    tops = [climb(rng.permutation(n_items).tolist()) for _ in range(4)]
    best = max(tops, key=lambda ranking: value(tuple(ranking[:n_positions]))[0])
    top = value(tuple(best[:n_positions]))[0]
    if kind == "best":
        return top, best
    low, high = {"nearly best": (0.9, 0.98), "poor": (0.0, 0.9)}[kind]
    for _ in range(500):
        ranking = rng.permutation(n_items).tolist()
        if kind == "nearly best":
            ranking = list(best)
            for _ in range(rng.integers(1, 4)):
                i, j = rng.integers(0, [n_positions, n_items])
                ranking[i], ranking[j] = ranking[j], ranking[i]
        if low * top <= value(tuple(ranking[:n_positions]))[0] <= high * top:
            return top, ranking
    return top, ranking


def _swapped(ranking: list[int], n_positions: int) -> list[list[int]]:
    lists = []
    for i, j in itertools.combinations(range(len(ranking)), 2):
        if i < n_positions:
            other = list(ranking)
            other[i], other[j] = other[j], other[i]
            lists.append(other)
    return lists


def _lists(kind: str, base: list[int], n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """``(n, L)`` the orders of all items whose first ones are shown."""
    n_items = len(base)
    if kind == "few lists":  # production, and variants of it and lists drawn at random, some often and some seldom
        others = [rng.permutation(n_items).tolist() for _ in range(rng.integers(2, 15))]
        variants = _swapped(base, n_items)
        others += [variants[i] for i in rng.integers(0, len(variants), rng.integers(2, 15))]
        shares = np.r_[1.0, rng.dirichlet(np.ones(len(others))) * rng.uniform(0.3, 2)]
        return np.array([base, *others])[rng.choice(len(shares), n, p=shares / shares.sum())]
    if kind == "swaps":  # production, in which up to two pairs of items change places
        lists, rows = np.tile(base, (n, 1)), np.arange(n)
        for share in rng.uniform(0.2, 0.6, 2):
            i, j = rng.integers(0, n_items, (2, n))
            i = np.where(rng.random(n) < share, i, j)
            lists[rows, i], lists[rows, j] = lists[rows, j].copy(), lists[rows, i].copy()
        return lists
    if kind == "Plackett-Luce":
        scores = -rng.uniform(0.4, 1.2) * np.arange(n_items)
        return np.array(base)[np.argsort(-(scores + rng.gumbel(size=(n, n_items))), axis=1)]
    lists = rng.permuted(
        np.tile(base, (n, 1)), axis=1
    )  # part of the sessions show a list drawn at random, the others production
    share = rng.uniform(0.1, 0.8) if kind == "part at random" else 0.02
    return np.where(rng.random((n, 1)) < share, base, lists)


# ------------------------------------------------------------------------------------------------------------ decisions


def decided(seed: int) -> dict[str, Any]:
    """What is decided from the log of a seed, and what that is worth."""
    simulated = simulate(seed)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result, production, recommended = _verdict(simulated.log)
    cost = time.process_time() - start
    now = simulated.value(production)
    gain = None if recommended is None else [new / old - 1 for new, old in zip(simulated.value(recommended), now, strict=True)]
    return simulated.settings | {
        "version": clickgym.__version__, "verdict": result, "to_gain": simulated.best / now[0] - 1, "gain": gain,
        "seconds": round(cost, 2),
    }  # fmt: skip


def _verdict(log: ClickLog) -> tuple[str, Sequence[str], Sequence[str] | None]:
    """The verdict, the list in production and the one that is recommended instead, if there is one."""
    models = Models(log, "clicks", seed=0)
    evidence = weigh(models, models.sessions("query"), Settings.check(AGENTS, 1, 1, 0, "clicks", None)).evidence
    result = verdict(evidence, LEVEL)
    return result, evidence.production, evidence.proposal if result in ("better", "likely better") else None


def summary(rows: Sequence[dict[str, Any]]) -> str:
    """The table, as Markdown: by kind of users, and of all."""
    lines = [
        "| users | logs | recommended | of them measured | worse in truth | worst | missed |",
        "|---|---|---|---|---|---|---|",
    ]
    for kind in (*USERS, "all"):
        lines.append(_line(kind, [row for row in rows if kind in ("all", row["users"])]))
    return "\n".join(lines)


def _line(kind: str, rows: Sequence[dict[str, Any]]) -> str:
    gains = [min(row["gain"]) for row in rows if row["gain"] is not None]
    worse = [gain for gain in gains if gain < -ROUNDING]
    measured = sum(row["verdict"] == "better" for row in rows)
    promising = [row["gain"] for row in rows if _promising(row)]
    missed = f"{promising.count(None)} of {len(promising)}" if promising else "–"
    worst = f"{min(worse):.1%}" if worse else "–"
    return f"| {kind} | {len(rows)} | {len(gains)} | {measured} | {len(worse)} | {worst} | {missed} |"


def _promising(row: dict[str, Any]) -> bool:
    """Whether a list should be recommended: a long log, something to gain, users that a model describes."""
    return row["sessions"] >= 100_000 and row["to_gain"] >= 0.05 and row["users"] in DESCRIBED


def _rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def _missing(seeds: Iterable[int], rows: Sequence[dict[str, Any]]) -> list[int]:
    done = {row["seed"] for row in rows}
    return [seed for seed in seeds if seed not in done]


def main() -> None:
    """Decide the logs that the file lacks, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--logs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0, help="the logs have the seeds 1000 * seed, 1000 * seed + 1, ...")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("decide.jsonl"))
    options = parser.parse_args()
    seeds = range(1000 * options.seed, 1000 * options.seed + options.logs)
    tasks = (joblib.delayed(decided)(seed) for seed in _missing(seeds, _rows(options.out)))
    with options.out.open("a") as file:
        for row in joblib.Parallel(options.processes, return_as="generator_unordered")(tasks):
            print(json.dumps(row), file=file, flush=True)
    print(summary([row for row in _rows(options.out) if row["seed"] in seeds]))


if __name__ == "__main__":
    main()
