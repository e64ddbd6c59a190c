"""Online learning to rank from judged queries.

Oosterhuis and de Rijke 2018 (PDGD), abstract.

Only the paper's abstract was at hand (arxiv.org/abs/1809.08415). Its five data sets have up to
30,000 queries, its runs a million sessions, and its rivals are others. So we do not test its
sentences.

Our data are 251 judged queries of LightGBM's ranking example, of which the agents learn from 201.
Features are as in the file, not normalised. `--instances` takes two files in SVMlight format. All
agents play 1,000 sessions, because LinearTS and C2UCB are slow with 300 features. PDGD also plays
20,000.

Queries with fewer than 27 documents have blank rows. So the baseline shows documents in random
order, and the blank rows last. The reward of PPO and SAC is 1 if a session has a click. Noisy users
hardly ever leave without one. PPO and SAC have no value on held-out queries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clickgym.agents import Agent, ContextualAgent
from clickgym.envs import Instance
from clickgym_logs import GRADED_USERS, held_out_ndcg, judged_instance, read_judgments

from .claims import Curves, Results, Statement, Values, estimate
from .plots import Figure, band, finish, grid
from .study import Sweep, Table

ENV, NDCG, TRAINED = "ContextualDBNRank-v0", "ndcg@10", "trained"
USERS = tuple(GRADED_USERS[5])
PERFECT, NAVIGATIONAL, INFORMATIONAL, NEAR_RANDOM = USERS
SHORT, LONG = "oltr", "oltr-long"
SHUFFLED = "Shuffled"
PDGD, BANDITS, LEARNERS = "PDGD", ("LinearTS", "C2UCB:alpha=0.1"), ("PPO", "SAC")
LEARNING_RATE = 0.1
"""η of PDGD for features as they are in the file."""


class Shuffled(Agent):
    """Documents in random order, then the blank rows: the baseline that knows nothing."""

    def __init__(self, n_items: int, n_positions: int, *, seed: Any = None) -> None:
        self.rng, self.n_positions = np.random.default_rng(seed), n_positions
        self.n_items = n_items

    def rank(self, observation: Any) -> NDArray[np.int64]:
        order = self.rng.permutation(self.n_items)
        is_blank = ~observation["features"][order].any(axis=1)
        return order[np.argsort(is_blank, kind="stable")][: self.n_positions]

    def update(self, observation: Any, ranking: Any, clicks: Any, reward: float) -> None:
        """Learn nothing."""


@cache
def judgments(names: tuple[str, ...]) -> list[Any]:
    """The queries to learn from, and the held-out ones."""
    missing = [name for name in names if not Path(name).is_file()]
    if len(names) != 2 or missing:
        raise ValueError(
            "oltr needs judged queries in SVMlight format: --instances TRAIN.txt TEST.txt"
            + (f"; there is no file {missing[0]}" if missing else "")
        )
    return [read_judgments(name) for name in names]


def instances(names: Sequence[str]) -> list[Instance]:
    """The same queries before four kinds of users."""
    return [judged_instance(judgments(tuple(names))[0], users, name=users) for users in USERS]


def pdgd(names: Sequence[str]) -> str:
    """PDGD with a learning rate for the scale of the features."""
    return f"PDGD:learning_rate={LEARNING_RATE * judgments(tuple(names))[0].scale ** 2:.4g}"


def everybody(names: Sequence[str]) -> list[str]:
    """All agents."""
    return [f"{SHUFFLED}=clickgym_lab.studies.oltr:Shuffled", pdgd(names), *BANDITS, *LEARNERS]


def held_out(names: Sequence[str]) -> Callable[[Any], float | None]:
    """nDCG@10 on held-out queries, of agents that rank any documents by their features."""
    test = judgments(tuple(names))[1]
    return lambda agent: (
        held_out_ndcg(agent.best, test) if isinstance(agent, ContextualAgent) else None
    )


def _sweep(name: str, agents: Callable[[Sequence[str]], list[str]], horizon: int) -> Sweep:
    return Sweep(
        name,
        [ENV],
        agents,
        horizon,
        runs=10,
        instances=instances,
        queries=2,
        metrics=[NDCG],
        whole=True,
        scaled=False,
        measure=held_out,
    )


COLUMNS = ("regret", NDCG, "clicks")
SWEEPS = [
    _sweep(LONG, lambda names: [pdgd(names)], 20_000),
    _sweep(SHORT, everybody, 1_000),
]
"""The first 1,000 sessions of all agents, and 20,000 of PDGD; nothing is reduced."""


# ---------------------------------------------------------------------------------------- measures


def label_of(curves: Curves, agent: str) -> str:
    """The label of an agent, with its hyper-parameters."""
    return next(label for label in curves.agents if label.startswith(agent))


def online(curves: Curves, users: str, agent: str) -> Values:
    """``(runs,)`` the mean nDCG@10 of the lists shown."""
    return curves.by_run(ENV, label_of(curves, agent), NDCG, users)[:, -1] / curves.horizon


def trained(curves: Curves, users: str, agent: str) -> Values:
    """``(runs,)`` nDCG@10 on the held-out queries after the last session."""
    place = curves.instances.index(users)
    return curves.by_instance(ENV, label_of(curves, agent), TRAINED)[place]


STATEMENTS = [
    Statement(quote, "abstract", reason)
    for quote, reason in (
        (
            "considerable and significant improvements under all levels of interaction noise",
            "It speaks of improvements over other methods, on data sets a hundred times larger.",
        ),
        (
            "PDGD outperforms existing OLTR methods both in terms of learning speed as well as "
            "final convergence.",
            "This study has neither these methods nor these data.",
        ),
        (
            "using a neural network leads to even better performance at convergence than a linear "
            "model.",
            "Our PDGD is linear.",
        ),
    )
]


def seen(results: Results) -> Iterator[str]:
    """What the order of agents depends on."""
    brief, long = results[SHORT], results[LONG]

    def means(agent: str) -> str:
        return ", ".join(f"{online(brief, users, agent).mean():.2f}" for users in USERS)

    kinds = ", ".join(USERS)
    for agent in (SHUFFLED, PDGD):
        yield f"{agent}: nDCG@10 of the first 1,000 lists is {means(agent)} ({kinds})."
    ends = ", ".join(f"{trained(long, users, PDGD).mean():.3f}" for users in USERS)
    yield f"PDGD after 20,000 sessions: nDCG@10 on held-out queries is {ends} ({kinds})."


# ------------------------------------------------------------------------------- figure and table


def table(results: Results) -> Table:
    """nDCG@10 online and held out."""
    rows = [["sessions", "agent", *USERS]]
    for curves in results.values():
        for agent in curves.agents:
            cells = []
            for users in USERS:
                values = trained(curves, users, agent)
                after = "–" if np.isnan(values).all() else str(estimate(values))
                cells.append(f"{estimate(online(curves, users, agent))} / {after}")
            rows.append([f"{curves.horizon:,}", agent, *cells])
    return "nDCG@10 of the lists shown / on held-out queries after the last session", rows


def draw(results: Results) -> Figure:
    """nDCG@10 of all lists shown so far, for each kind of users."""
    figure, panels = grid(2, 4)
    for axes, (curves, users) in zip(panels, product(results.values(), USERS), strict=True):
        late = curves.steps * 50 >= curves.horizon
        for agent in curves.agents:
            values = curves.by_run(ENV, agent, NDCG, users) / curves.steps
            band(axes, curves.steps[late], values[:, late], agent.partition(":")[0])
        axes.set(title=f"{users} users", xlabel="session")
        axes.tick_params(axis="x", labelrotation=30)
    return finish(figure, panels, results, "nDCG@10 of all lists shown so far")
