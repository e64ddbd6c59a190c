"""Online learning to rank from judged queries.

after Oosterhuis and de Rijke 2018.

The paper has five data sets of up to 30,000 queries, a million sessions, and rivals that clickgym
does not have, so that of its abstract one statement applies: all others compare. Here the data are
251 judged queries, 201 to learn from, of LightGBM's ranking example, the sessions 1,000 for all
agents, because of the cost of LinearTS and C2UCB with 300 features, and 20,000 for PDGD. Features
are as in the file, not normalised. Queries with fewer than 27 documents have blank rows, so that
the baseline is documents in random order with the blank rows last. PPO and SAC are rewarded for
sessions with a click, which noisy users hardly ever leave without; they have no order for other
numbers of candidates, and no held-out value. SAC chooses weights of features. The statements marked
(ours) were written after a first run of each pair had been seen. --instances are two files in
SVMlight format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clickgym.agents import Agent, ContextualAgent
from clickgym.envs import Instance
from clickgym_logs import GRADED_USERS, held_out_ndcg, judged_instance, read_judgments

from .claims import Claim, Curves, Finding, Results, Values, estimate, several
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
SIMILAR = 0.05
"""Differences of nDCG below count as small."""


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


def online(curves: Curves, users: str, agent: str, start: float = 0.0, stop: float = 1.0) -> Values:
    """``(runs,)`` the mean nDCG@10 of the lists shown in a span of the sessions."""
    values = curves.by_run(ENV, label_of(curves, agent), NDCG, users)
    return curves.rate(values, start, stop)


def trained(curves: Curves, users: str, agent: str) -> Values:
    """``(runs,)`` nDCG@10 on the held-out queries after the last session."""
    place = curves.instances.index(users)
    return curves.by_instance(ENV, label_of(curves, agent), TRAINED)[place]


def higher(ours: Values, theirs: Values) -> Finding:
    """Whether values are above others."""
    gap = estimate(ours - theirs)
    return gap.above(0.0, f"{ours.mean():.3f}, {theirs.mean():.3f}, by {gap}")


# -------------------------------------------------------------------------------------- statements


def claims(results: Results) -> Iterator[Claim]:
    """What the paper says of PDGD as far as its experiment is ours, then our own.

    A test asks whether the mean of independent values lies between two bounds: yes if its 95 %
    interval (Student's t) lies between them, no if it lies outside, else it cannot tell; all
    statements are judged together by Holm's procedure. `several` asks that all tests hold; one that
    surely does not contradicts the statement.

    All intervals are over the ten runs. `higher` asks whether the gap between two agents, in the
    same runs, is above 0.
    """
    brief, long = results[SHORT], results[LONG]
    published = USERS[:3]

    def against(kinds: tuple[str, ...], better: str, worse: str) -> Finding:
        return several(
            {
                users: higher(online(brief, users, better), online(brief, users, worse))
                for users in kinds
            }
        )

    yield Claim(
        "Users see better lists while PDGD learns from them, whoever clicks",
        "nDCG@10 of the first 1,000 lists higher than that of shuffled documents, for each kind "
        "of users in the paper",
        against(published, PDGD, SHUFFLED),
        paper="improvements under all levels of interaction noise",
    )
    yield Claim(
        "Noise slows PDGD down (ours)",
        "nDCG@10 of the first 1,000 lists: perfect above navigational above informational users",
        several(
            {
                f"{a}, {b}": higher(online(brief, a, PDGD), online(brief, b, PDGD))
                for a, b in pairwise(published)
            }
        ),
    )
    yield Claim(
        "After 20,000 sessions noise has cost PDGD little (ours)",
        f"held-out nDCG@10 within {SIMILAR} of that with perfect users",
        several(
            {
                users: estimate(trained(long, users, PDGD) - trained(long, PERFECT, PDGD)).within(
                    -SIMILAR, SIMILAR
                )
                for users in published[1:]
            }
        ),
    )
    yield Claim(
        "PDGD still learns from users who click almost at random (ours)",
        "held-out nDCG@10 after 20,000 sessions above that after 1,000",
        higher(trained(long, NEAR_RANDOM, PDGD), trained(brief, NEAR_RANDOM, PDGD)),
    )
    for bandit in BANDITS:
        yield Claim(
            f"With perfect users {bandit} shows better lists than PDGD (ours)",
            "nDCG@10 of the first 1,000 lists higher",
            against((PERFECT,), bandit, PDGD),
        )
    for bandit in BANDITS:
        yield Claim(
            f"With informational users {bandit} shows worse lists than PDGD (ours)",
            "nDCG@10 of the first 1,000 lists lower",
            against((INFORMATIONAL,), PDGD, bandit),
        )
    for learner in LEARNERS:
        yield Claim(
            f"{learner} shows worse lists than shuffled documents (ours)",
            "nDCG@10 of the first 1,000 lists lower, for each kind of users",
            against(USERS, SHUFFLED, learner),
        )


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
