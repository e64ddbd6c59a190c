"""The exam of MixTS: users, seeds and horizons of somebody who knew what it claims, and not its code.

    python benchmarks/reliability/mix_ts.py guard families bandit --out results/mix-ts.jsonl

What is played is kept line by line in the file, so that the same command continues. The tables are printed. The first run,
whose figures docs/mix_ts.md has, also played UBM-TS, the agent before it, which is retired.

- *guard*: in seven click models, how many lists of a run are much worse than the production list, that is have below 0.8 of
  its expected clicks, computed exactly from the model; and the regret with and without the guard.
- *families*: twelve families of ten instances. ``two_kinds`` has users of two kinds, of which no click model is right.
- *bandit*: lists of one item.

Rivals are told as little as MixTS, and have the settings of their papers. A *late* run loses more than 0.002 clicks per session
in its last fifth. The *worst tenth* is the mean of the tenth of the runs that lose most.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

import clickgym
from clickgym import envs
from clickgym.core.checks import probabilities
from clickgym.core.formats import markdown_table
from clickgym.core.kernels import kernel
from clickgym.core.statistics import worst_tenth
from clickgym.envs import ClickModel
from clickgym.runner.metrics import METRICS, Metric

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import typer
from exam import Laws, Row, examined
from exam import users as users_of

OWN = "MixTS"
SHORT, LONG = 100_000, 1_000_000
RIVALS = {SHORT: ("PBMHB", "CascadeTS", "GRAB"), LONG: ("GRAB",)}
SEED = 20_261_123
SIX = ("CM", "PBM", "DCM", "UBM", "DBN", "CCM")
SEVEN = (*SIX, "TPBM")
N_INSTANCES, N_RUNS, N_LONG, LONG_RUNS = 10, 10, 2, 1
BANDIT_RUNS = 200
LAWS = Laws(0.3, (0.1, 0.9), (0.1, 0.9), (0.7, 1.0), ([0.7, 0.2, 0.1], [1.0, 0.9, 0.5]))
GUARD_INSTANCES, GUARD_RUNS, TOLERANCE = 10, 8, 0.2
LATE = 0.002
NAMES = ("section", "family", "index", "agent", "horizon", "runs")


# ------------------------------------------------------------------------------------------------------ users of two kinds


class Parameters(NamedTuple):
    attraction: NDArray[np.float64]
    examination: NDArray[np.float64]
    scanning: float


@kernel
def sample(parameters, ranking, uniforms, clicks, examined):
    scans = uniforms[0] * 1e6 % 1.0 < parameters.scanning  # as good as independent of the first digits
    there = True
    for k in range(len(ranking)):
        examination = 1.0 if scans else parameters.examination[k]
        examined[k] = there and uniforms[k] < examination
        clicks[k] = there and uniforms[k] < examination * parameters.attraction[ranking[k]]
        there = there and not (scans and clicks[k])
    return -1


@kernel
def marginals(parameters, ranking, examination, clicks, scratch):
    there = parameters.scanning
    for k in range(len(ranking)):
        attraction = parameters.attraction[ranking[k]]
        examination[k] = there + (1.0 - parameters.scanning) * parameters.examination[k]
        clicks[k] = examination[k] * attraction
        there *= 1.0 - attraction


@kernel
def expected(parameters, ranking, reward, cutoff, scratch):
    there, total = parameters.scanning, 0.0
    for k in range(cutoff):
        attraction = parameters.attraction[ranking[k]]
        total += (there + (1.0 - parameters.scanning) * parameters.examination[k]) * attraction
        there *= 1.0 - attraction
    return total


class TwoKinds(ClickModel):
    """A share of the users scans until the first click, as in the CM; the others look at positions, as in the PBM."""

    short, title, environments, rewards = "TwoKinds", "users of two kinds", False, ("clicks",)
    shapes: ClassVar = {"attraction": "L", "examination": "K", "scanning": ""}
    sample_kernel, marginals_kernel, expected_kernel = sample, marginals, expected

    def __init__(self, attraction: Any, examination: Any, scanning: float) -> None:
        items, positions = (
            probabilities(*each, (None,)) for each in (("attraction", attraction), ("examination", examination))
        )
        self.parameters, self.n_positions = Parameters(items, positions, float(scanning)), len(positions)


# ------------------------------------------------------------------------------------------------------------- the families


def users(kind: str, attraction: NDArray[Any], n_positions: int, rng: np.random.Generator, chi: Any = None) -> ClickModel:
    """Users with some items, all else drawn; ``chi``: the examination of the positions, where the kind has one."""
    chi = np.sort(rng.uniform(0.1, 1.0, n_positions))[::-1] if chi is None else chi
    if kind == "CCM":
        goes_on = rng.uniform([0.7, 0.2, 0.1], [1.0, 0.9, 0.5])
        return envs.ClickChainModel(attraction, *np.minimum.accumulate(goes_on), n_positions=n_positions)
    if kind == "TPBM":
        trust = rng.uniform(0.1, 0.65) / np.arange(1, n_positions + 1)
        return envs.TrustBiasModel(attraction, chi, rng.uniform(0.85, 1.0, n_positions), trust)
    return users_of(kind, attraction, chi, rng, LAWS)


def clickbait(rng: np.random.Generator, i: int) -> ClickModel:
    attraction = rng.beta(1, 2, 10)
    satisfaction = np.clip(1 - attraction + rng.normal(0, 0.1, 10), 0.02, 0.98)
    return envs.DynamicBayesianModel(attraction, satisfaction, rng.uniform(0.7, 1.0), n_positions=5)


def neighbours(rng: np.random.Generator, i: int) -> ClickModel:
    attraction = rng.permutation(rng.uniform(0.05, 0.4) + rng.uniform(0.005, 0.02) * np.arange(10))
    return users(("CM", "PBM", "UBM", "DCM")[i % 4], attraction, 5, rng)


def sparse(rng: np.random.Generator, i: int) -> ClickModel:
    attraction = rng.permutation(np.concatenate([rng.uniform(0.3, 0.8, 2), rng.uniform(0.01, 0.05, 8)]))
    return users(SIX[i % 6], attraction, 5, rng)


def bumpy(rng: np.random.Generator, i: int) -> ClickModel:
    """Examination that does not fall from the top to the bottom."""
    return users(("PBM", "UBM", "TPBM")[i % 3], rng.beta(1, 3, 10), 5, rng, rng.permutation(rng.uniform(0.1, 1.0, 5)))


def full(rng: np.random.Generator, i: int) -> ClickModel:
    """Lists of all items."""
    return users(("PBM", "DCM", "DBN", "UBM", "CCM", "TPBM")[i % 6], rng.beta(1, 3, 4 + i % 5), 4 + i % 5, rng)


def rare(rng: np.random.Generator, i: int) -> ClickModel:
    """The best item attracts 0.1 to 5 % of the users."""
    attraction = 10 ** rng.uniform(-3, np.log10(0.05)) * np.append(1.0, rng.uniform(0.05, 1.0, 9))
    return users(SEVEN[i % 7], rng.permutation(attraction), 5, rng)


def steep(rng: np.random.Generator, i: int) -> ClickModel:
    """Users who hardly look below the top."""
    return users(("PBM", "TPBM", "UBM")[i % 3], rng.beta(1, 3, 10), 5, rng, np.arange(1.0, 6.0) ** -rng.uniform(1.5, 3.0))


def many(rng: np.random.Generator, i: int) -> ClickModel:
    return users(("CM", "PBM", "DBN")[i % 3], rng.beta(1, 4, (50, 100, 200)[i // 3 % 3]), (5, 10)[i % 2], rng)


def long(rng: np.random.Generator, i: int) -> ClickModel:
    return users(("PBM", "DBN", "CCM", "CM")[i % 4], rng.beta(1, 4, 25), 15, rng)


def eager(rng: np.random.Generator, i: int) -> ClickModel:
    """Users who click nearly all that they look at."""
    return users(SIX[i % 6], rng.uniform(0.7, 0.99, 10), 5, rng)


def impatient(rng: np.random.Generator, i: int) -> ClickModel:
    """Users who leave early, also if they have not clicked."""
    attraction, stay = rng.beta(1, 2, 10), rng.uniform(0.3, 0.6)
    if i % 2:
        return envs.ClickChainModel(attraction, stay, 0.7 * stay, 0.3 * stay, n_positions=5)
    return envs.DynamicBayesianModel(attraction, rng.uniform(0.0, 1.0, 10), stay, n_positions=5)


def two_kinds(rng: np.random.Generator, i: int) -> ClickModel:
    return TwoKinds(rng.beta(1, 3, 10), np.sort(rng.uniform(0.1, 1.0, 5))[::-1], rng.uniform(0.2, 0.8))


FAMILIES = (clickbait, neighbours, sparse, bumpy, full, rare, steep, many, long, eager, impatient, two_kinds)
ARMS = {"two good": [0.3, 0.28] + [0.1] * 8, "close": np.linspace(0.05, 0.14, 10).tolist()}
"""Attractions of the items of lists of one."""


def drawn(section: str, family: str, index: int) -> tuple[ClickModel, NDArray[Any] | None]:
    """The users, and the production list where the section has one."""
    rng = np.random.default_rng([SEED, crc32(section.encode()), crc32(family.encode()), index])
    if section == "families":
        return next(each for each in FAMILIES if each.__name__ == family)(rng, index), None
    if section == "bandit":
        return envs.CascadeModel(rng.permutation(ARMS[family]), n_positions=1), None
    n_items, n_positions = ((10, 5), (10, 8), (20, 5), (12, 6))[index % 4]
    attraction = rng.beta(1, 3, n_items)
    model = users(family, attraction, n_positions, rng)
    worth = attraction + rng.normal(0, (0.05, 0.15, 0.4)[index % 3], len(attraction))
    return model, np.argsort(-worth)


# ----------------------------------------------------------------------------------------------------------------- playing


class Floor(NamedTuple):
    clicks: float


@kernel
def below(context, ranking, clicks, expectation):
    return 1.0 if expectation < context.clicks - 1e-12 else 0.0


def floor_of(env: Any) -> Floor:
    production = env.initial_ranking[: env.model.n_positions]
    return Floor((1 - TOLERANCE) * env.model.expected_reward(production, "clicks"))


sweep = partial(clickgym.sweep, seed=SEED, n_jobs=1, progress=False)
METRICS["much_worse"] = Metric("lists much worse than the production list", below, floor_of)


def play(section: str, family: str, index: int, agent: str, horizon: int, runs: int) -> Row:
    """The regret of some runs at the end and in the last fifth, and their lists that are much worse than production."""
    model, production = drawn(section, family, index)
    name, points = f"{section}-{family}-{index}", [round(0.8 * horizon), horizon]
    where: dict[str, Any] = {"envs": {name: model}}
    metrics = () if production is None else ("much_worse",)
    if production is not None:
        instance = envs.Instance(name, {family: model}, model.n_positions, initial_ranking=production)
        where = {"envs": {name: f"{family}Rank-v0:reward=clicks"}, "instances": [instance]}
    played = sweep(**where, agents=[agent], horizon=horizon, runs=runs, checkpoints=points, metrics=metrics)
    frame = played.frame.sort("run", "step")
    values = {key: frame[key].to_numpy().reshape(runs, 2) for key in ("regret", *metrics)}
    row = dict(zip(NAMES, (section, family, index, agent, horizon, runs), strict=True))
    row |= {"regret": values["regret"][:, 1].round(3).tolist()}
    row |= {"last": (values["regret"][:, 1] - values["regret"][:, 0]).round(3).tolist()}
    return row | {key: values[key][:, 1].astype(int).tolist() for key in metrics}


def wanted(sections: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """What is played, in this order."""
    families = [each.__name__ for each in FAMILIES]
    plans = [
        ("guard", GUARD_INSTANCES, SEVEN, (f"{OWN}:safe=true", OWN), SHORT, GUARD_RUNS),
        ("families", N_INSTANCES, families, (OWN, *RIVALS[SHORT]), SHORT, N_RUNS),
        ("bandit", 1, ARMS, (OWN, "CascadeTS"), SHORT, BANDIT_RUNS),
        ("families", N_LONG, families, (OWN, *RIVALS[LONG]), LONG, LONG_RUNS),
    ]
    for section, n, names, players, horizon, runs in plans:
        if section in sections:
            for index, name, agent in product(range(n), names, players):
                yield section, name, index, agent, horizon, runs


# ------------------------------------------------------------------------------------------------------------------ tables

Rows = Sequence[Row]
Table = list[list[str]]


def runs_of(rows: Rows, key: str = "regret", **which: Any) -> NDArray[np.float64]:
    """``(instances, runs)`` what the runs of some rows have."""
    return np.array([row[key] for row in rows if all(row[name] == value for name, value in which.items())], float)


def tenth(values: NDArray[np.float64]) -> float:
    """The mean of the tenth of the runs that lose most."""
    return 0.0 - worst_tenth(-values)


def both(values: NDArray[np.float64]) -> str:
    """The mean, and in brackets the worst tenth of the runs."""
    return f"{values.mean():,.0f} ({tenth(values):,.0f})"


def times(own: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """The geometric mean over instances of the ratio of mean regret; a click is added to both, as some lose next to nothing."""
    return float(np.exp(np.mean(np.log((own.mean(axis=1) + 1) / (other.mean(axis=1) + 1)))))


def families_table(rows: Rows, horizon: int) -> Table:
    """Regret by family, and how it compares with that of the best rival."""
    table, most = [["family", OWN, "best rival", "its regret", "most of best rival", "late"]], []
    for family in (each.__name__ for each in FAMILIES):
        of = {agent: runs_of(rows, family=family, agent=agent, horizon=horizon) for agent in (OWN, *RIVALS[horizon])}
        late = np.mean(runs_of(rows, "last", family=family, agent=OWN, horizon=horizon) > LATE * 0.2 * horizon)
        medians = {agent: np.median(runs, axis=1) + 1 for agent, runs in of.items()}
        best = min(RIVALS[horizon], key=lambda agent: of[agent].mean())
        shares = medians[OWN] / np.min([medians[agent] for agent in RIVALS[horizon]], axis=0)
        most.append(shares.max())
        worst = f"{shares.max():.2f} (instance {shares.argmax()})"
        table.append([family, both(of[OWN]), best, both(of[best]), worst, f"{late:.1%}"])
    return [*table, ["all", "", "", "", f"{max(most):.2f}", ""]]


def guard_table(rows: Rows) -> Table:
    """Runs without lists that are much worse, such lists in the worst runs, and regret with the guard over regret without."""
    shown, what = (f"{OWN}:safe=true", OWN), ("runs without", "worst tenth", "worst run")
    table = [["model", *(f"{agent}: {each}" for agent in shown for each in what), "price"]]
    for kind in (*SEVEN, "all"):
        of = {} if kind == "all" else {"family": kind}
        lists = [runs_of(rows, "much_worse", agent=agent, **of) for agent in shown]
        cells = [cell for each in lists for cell in (f"{np.mean(each == 0):.1%}", f"{tenth(each):,.1f}", f"{each.max():,.0f}")]
        table.append([kind, *cells, f"{times(*(runs_of(rows, agent=agent, **of) for agent in shown)):.2f}"])
    return table


def bandit_table(rows: Rows) -> Table:
    """Quantiles of regret with lists of one item."""
    table = [["items", "agent", "mean (worst tenth)", "median", "99 %", "most"]]
    for family, agent in product(ARMS, (OWN, "CascadeTS")):
        runs = runs_of(rows, family=family, agent=agent)
        table.append([family, agent, both(runs), *(f"{value:,.0f}" for value in np.quantile(runs, [0.5, 0.99, 1.0]))])
    return table


TABLES = {
    "guard": ("guard", guard_table),
    "families": ("families", partial(families_table, horizon=SHORT)),
    "families, long": ("families", partial(families_table, horizon=LONG)),
    "bandit": ("bandit", bandit_table),
}
"""The section of each table, and what makes it."""


def main(sections: list[str], out: Path = Path("results/mix-ts.jsonl"), processes: int = 1) -> None:
    """Play the sections, of guard, families and bandit, and print their tables."""
    rows = examined(play, list(wanted(sections)), NAMES, out, processes)
    rows.sort(key=lambda row: row["index"])
    for title, (section, table) in TABLES.items():
        if section in sections:
            print(f"\n{title}\n\n" + "\n".join(markdown_table(table([row for row in rows if row["section"] == section]))))


if __name__ == "__main__":
    typer.run(main)
