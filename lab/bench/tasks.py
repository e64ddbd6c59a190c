"""The tasks of the scorecard, version 1: what is played, for how long, and what of it counts.

A task is three words and a number that anybody can type: an environment, an instance of it and a horizon. Nothing here may
change without a new version, which a fingerprint holds (`fingerprint`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import gymnasium as gym

from ...envs.instances import list_instances
from ...runner.labels import digest, model_digest
from ...runner.make import make_env

__all__ = ["ABILITIES", "FINGERPRINT", "QUICK_RUNS", "RUNS", "VERSION", "Task", "candidates", "fingerprint"]

VERSION = 1
FINGERPRINT = "0158662396cf637f"
"""What `fingerprint` must be as long as this is version 1."""
RUNS = 5
"""Runs of each task."""
QUICK_RUNS = 2
"""With ``--quick``, and of fewer tasks."""
SEED, ANCHOR_SEED = 0, 1
"""Of all runs, and of those from which the anchors are."""

ABILITIES = {
    "standard": "real queries, under six click models",
    "position_bias": "lower positions are seen less, from a little to hardly at all, or trusted less",
    "many_items": "20, 100 and 1,000 items",
    "long_lists": "lists of ten items",
    "small_gaps": "items that differ by 0.1, 0.05 and 0.025",
    "low_click_rates": "no item is clicked more often than once in fifty times",
    "change": "users whose attractions change, every 10,000 or every 100,000 sessions",
    "safety": "lists much worse than the one in production",
    "cold_start": "the first thousand sessions",
    "misspecified": "the same items under seven click models that differ as much as they can",
    "contextual": "other candidates in every session, told by features",
    "memory": "users who come back as what was clicked made them",
}
"""What an agent may be good at, with a line about it."""


class Task(NamedTuple):
    """One task.

    Attributes:
        ability: of `ABILITIES`.
        env, instance: as ``clickgym run`` takes them.
        horizon: T, the sessions of a run.
        about: what it measures, in a sentence.
        measure: ``"regret"``, or the metric that counts in its place.
        quick: whether ``--quick`` plays it.
    """

    ability: str
    env: str
    instance: str
    horizon: int
    about: str
    measure: str = "regret"
    quick: bool = False

    @property
    def name(self) -> str:
        """What results call it.

        Example:
            >>> candidates()[0].name
            'standard CMRank-v0 yandex-9:shuffle=1'
        """
        return f"{self.ability} {self.env} {self.instance}"

    def make(self) -> gym.Env:
        """The environment.

        Example:
            >>> candidates()[0].make().action_space
            RankedList(n_items=10, n_positions=5)
        """
        return make_env(self.env, self.instance)


@cache
def candidates() -> tuple[Task, ...]:
    """All tasks of the protocol, in the order of `ABILITIES`.

    Example:
        >>> print(candidates()[0].about)
        Regret of 100,000 sessions with the query yandex-9 under the CM
    """
    return tuple(
        task._replace(instance=task.instance if task.ability == "contextual" else _shuffled(task.instance, number))
        for number, task in enumerate(_tasks(), 1)
    )


def _shuffled(instance: str, seed: int) -> str:
    """Under other item ids; the candidates of contextual tasks are drawn in random order anyway."""
    return f"{instance}{',' if ':' in instance else ':'}shuffle={seed}"


def _tasks() -> Iterator[Task]:
    queries = [name for name in list_instances() if name.startswith("yandex-9")]
    four = ["yandex-9982", "yandex-9", "yandex-98435", "yandex-99357"]
    yield from _each(
        "standard", ["CM", "PBM", "DCM", "UBM", "DBN", "CCM"], queries, 10**5,
        "Regret of {horizon:,} sessions with the query {instance} under the {model}",
        quick=[("CM", "yandex-9982"), ("PBM", "yandex-9982"), ("DBN", "yandex-9")],
    )  # fmt: skip
    for eta in (0.25, 0.5, 1, 2):
        yield from _each(
            "position_bias", ["PBM"], [f"position-bias:eta={eta},seed={seed}" for seed in (0, 1)], 10**5,
            f"Regret of {{horizon:,}} sessions where position k is seen with probability 1/k^{eta}",
            quick=[("PBM", "position-bias:eta=2,seed=0")],
        )  # fmt: skip
    yield from _each(
        "position_bias", ["TPBM"], [f"position-bias:seed={seed}" for seed in (0, 1)], 10**5,
        "Regret of {horizon:,} sessions where users also click what is irrelevant, the more the higher it stands",
    )  # fmt: skip
    for n_items in (20, 100, 1000):
        yield from _each(
            "many_items", ["CM", "PBM"], [f"yandex-like:n_items={n_items}"], 10**5,
            f"Regret of {{horizon:,}} sessions with {n_items:,} items under the {{model}}",
            quick=[("PBM", "yandex-like:n_items=100")],
        )  # fmt: skip
    yield from _each(
        "long_lists", ["CM", "PBM", "DBN"], [f"yandex-like:n_items=20,n_positions=10,seed={seed}" for seed in (0, 1)], 10**5,
        "Regret of {horizon:,} sessions with lists of 10 out of 20 items under the {model}",
        quick=[("PBM", "yandex-like:n_items=20,n_positions=10,seed=0")],
    )  # fmt: skip
    for delta, horizon in ((0.1, 10**5), (0.05, 3 * 10**5), (0.025, 10**6)):
        yield from _each(
            "small_gaps", ["CM", "PBM"], [f"kveton2015:n_items=16,n_positions=4,delta={delta}"], horizon,
            f"Regret of {{horizon:,}} sessions where 4 of 16 items attract with 0.2 and the others with {delta} less, "
            "under the {model}",
            quick=[("CM", "kveton2015:n_items=16,n_positions=4,delta=0.1")],
        )  # fmt: skip
    yield from _each(
        "low_click_rates", ["CM", "PBM", "DBN"], ["rare-clicks:seed=0", "rare-clicks:seed=1"], 10**6,
        "Regret of {horizon:,} sessions where no item attracts with more than 0.02, under the {model}",
    )  # fmt: skip
    yield from _each(
        "low_click_rates", ["CM", "PBM"], ["rare-clicks:seed=2"], 10**5,
        "Regret of {horizon:,} sessions where no item attracts with more than 0.02, under the {model}",
        quick=[("CM", "rare-clicks:seed=2")],
    )  # fmt: skip
    yield from _each(
        "change", ["NonStationaryCM", "NonStationaryPBM"], [f"li2019-switching:query={query}" for query in four[:3]], 10**5,
        "Regret of {horizon:,} sessions in which three items become attractive every 10,000 sessions, or cease to be",
        quick=[("NonStationaryCM", "li2019-switching:query=yandex-9982")],
    )  # fmt: skip
    yield from _each(
        "change", ["NonStationaryCM", "NonStationaryPBM"],
        ["abrupt:length=100000", "li2019-switching:query=yandex-9982,length=100000"], 10**6,
        "Regret of {horizon:,} sessions in which attractions change every 100,000 sessions",
    )  # fmt: skip
    # Not in models whose best list is not in the order of attraction, by which the metric counts what is worse.
    yield from _each(
        "safety", ["CM", "PBM", "TPBM"], four, 10**5,
        "How many of {horizon:,} lists are much worse than that in production (Li et al. 2019), with the query {instance}",
        measure="violations", quick=[("PBM", "yandex-9982")],
    )  # fmt: skip
    yield from _each(
        "cold_start", ["CM", "PBM", "DCM", "DBN"], four, 10**3,
        "Regret of the first {horizon:,} sessions with the query {instance} under the {model}",
        quick=[(model, "yandex-9982") for model in ("CM", "PBM", "DCM", "DBN")],
    )  # fmt: skip
    yield from _each(
        "misspecified", ["CM", "PBM", "DCM", "UBM", "DBN", "CCM", "TPBM"],
        [f"uniform:seed={seed}" for seed in (0, 1, 2)], 10**5,
        "Regret of {horizon:,} sessions with items and users drawn at random ({instance}), under the {model}",
        quick=[("UBM", "uniform:seed=0")],
    )  # fmt: skip
    yield from _each(
        "contextual", [f"Contextual{model}" for model in ("CM", "PBM", "DCM", "UBM", "DBN")],
        ["linear:seed=0", "linear:seed=1"], 5 * 10**4,
        "Regret of {horizon:,} sessions, each with 20 candidates whose attraction is linear in features, under the {model}",
        quick=[("ContextualCM", "linear:seed=0"), ("ContextualUBM", "linear:seed=0")],
    )  # fmt: skip
    yield from _each(
        "contextual", ["ContextualDBN"],
        [f"judged:users={users}" for users in ("perfect", "navigational", "informational")], 5 * 10**4,
        "Regret of {horizon:,} sessions with judged documents before users by grades ({instance})",
    )  # fmt: skip
    yield from _each(
        "memory", ["CascadeMDP"],
        [f"{family}:seed={seed}" for family in ("independent", "clickbait", "habit") for seed in (0, 1)], 10**5,
        "Regret of {horizon:,} sessions of users with a memory, {instance}", quick=[("CascadeMDP", "clickbait:seed=0")],
    )  # fmt: skip


def _each(
    ability: str,
    models: Sequence[str],
    instances: Sequence[str],
    horizon: int,
    about: str,
    *,
    measure: str = "regret",
    quick: Sequence[tuple[str, str]] = (),
) -> Iterator[Task]:
    """A task for every environment and instance."""
    for model in models:
        for instance in instances:
            told = about.format(horizon=horizon, instance=instance, model=model)
            yield Task(ability, f"{model}Rank-v0", instance, horizon, told, measure, (model, instance) in quick)


@cache
def fingerprint() -> str:
    """Identifies the protocol: tasks, their users with all parameters, runs and seeds."""
    parts: list[Any] = [VERSION, RUNS, QUICK_RUNS, SEED, ANCHOR_SEED]
    for task in candidates():
        users: Any = task.make().unwrapped
        parts.append([*task, model_digest(users.model)])
    return digest(json.dumps(parts).encode())
