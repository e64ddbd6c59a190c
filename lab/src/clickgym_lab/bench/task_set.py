"""The tasks of the scorecard, made by the rules of docs/scorecard.md from a seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count, product
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from clickgym.envs import list_instances, load_instance

from .task import Task, shuffled

SEED = 2
"""From which the tasks are drawn."""

ABOUT = {
    "standard": "queries under six click models",
    "position_bias": "users look at lower positions less often, slightly to almost never, or trust them less",
    "many_items": "20 to 1,000 items",
    "long_lists": "lists of 10 out of 20 items",
    "small_gaps": "the attraction of the better items is only 0.1 or 0.05 above that of the others",
    "low_click_rates": "no item has an attraction above 0.02",
    "change": "users whose attractions change abruptly, one to nine times",
    "safety": "how many of the shown lists are much worse than the production ranking",
    "cold_start": "the first thousand sessions",
    "misspecified": "users with all parameters drawn uniformly, under seven click models",
    "warm_start": "the agent gets a log of the production ranking before the first session",
    "contextual": "candidates that are described by features",
    "memory": "users with a memory: their clicks change how they behave in the next session",
    "personal": "each user prefers other items, told by features of user and item, or by their products",
    "clickbait": "what attracts more satisfies less",
    "ties": "items that attract almost alike, or of which few attract at all",
    "one_position": "lists of one item, and lists of all items",
    "no_order": "positions whose worth does not fall from the top down",
    "drift": "users whose attractions move slowly, all the time",
    "long_run": "a million sessions",
}
"""The abilities, with a line about each."""

CHANGING = ("linear:", "personal:", "network:")
"""Families whose candidates change from session to session."""
SIX = ("CM", "PBM", "DCM", "UBM", "DBN", "CCM")
BIASED = {eta: [f"position-bias:eta={eta},seed={{seed}}"] for eta in (0.25, 0.5, 1, 2)}
SMALL_GAPS = [
    f"kveton2015:{sizes},p={{p}},delta={delta}"
    for sizes in (
        "n_items=8,n_positions=2",
        "n_items=10,n_positions=5",
        "n_items=16,n_positions=2",
        "n_items=16,n_positions=4",
    )
    for delta in (0.1, 0.05)
]


WORLDS = [
    f"{world}features={features},query={{query}},seed={{seed}}"
    for world in ("personal:", "personal:form=inner,", "network:")
    for features in ("plain", "outer")
]
NEAR_TIES = [
    f"kveton2015:{sizes},p={{p}},delta={delta}"
    for sizes, delta in (
        ("n_items=10,n_positions=5", 0.03),
        ("n_items=10,n_positions=5", 0.02),
        ("n_items=16,n_positions=4", 0.03),
    )
]


def disappoints(users: Any) -> bool:
    """Whether what attracts users more satisfies them less: in the DBN by the items, in the CCM by
    its law.
    """
    parameters = users.parameters
    if "satisfaction" in users.shapes:
        return bool(np.corrcoef(parameters.attraction, parameters.satisfaction)[0, 1] <= -0.5)
    return bool(parameters.continue_after_relevant - parameters.continue_after_click >= 0.5)


def rises(users: Any) -> bool:
    """Whether some position is seen clearly more often than the one above it, on the list in the
    order of attraction.
    """
    ranking = np.argsort(-users.parameters.attraction, kind="stable")[: users.n_positions]
    return bool(np.diff(users.examination_probabilities(ranking)).max() >= 0.05)


class Place(NamedTuple):
    """Where a task of a group is played.

    Attributes:
        instance: a name with places for a ``{query}``, a ``{seed}`` and a number ``{p}``.
        log: sessions of the production ranking that the agent learns from before.
    """

    instance: str
    log: int = 0


class Group(NamedTuple):
    """Tasks of one ability: each of its click models at each of its places.

    Attributes:
        ability: of `ABOUT`.
        models: by the ids of their environments, without ``Rank-v0``.
        places: in the order of the tasks; models change first.
        about: a sentence about a task.
        horizon: T.
        quick: the numbers of those tasks, from 0, that ``--quick`` plays.
        measure, allowance: as in `Task`.
        where: seeds are drawn until the users are so.
    """

    ability: str
    models: Sequence[str]
    places: Sequence[Place]
    about: str
    horizon: int = 100_000
    quick: Sequence[int] = (0,)
    measure: str = "regret"
    allowance: float = 0.0
    where: Callable[[Any], bool] | None = None


def _places(*instances: str, logs: Sequence[int] = (0,)) -> list[Place]:
    return [Place(*each) for each in product(instances, logs)]


GROUPS = (
    Group(
        "standard",
        SIX,
        _places(*["{query}"] * 4, *["yandex-like:seed={seed}"] * 4),
        "Regret of {horizon:,} sessions with a query under the {model}",
        quick=(1,),
    ),
    Group(
        "position_bias",
        ("PBM",),
        _places(*BIASED[0.25] * 3, *BIASED[0.5] * 3, *BIASED[1] * 3, *BIASED[2] * 3),
        "Regret of {horizon:,} sessions where position k is seen with probability 1/k^η",
        quick=(9,),
    ),
    Group(
        "position_bias",
        ("TPBM",),
        _places(*BIASED[0.5] * 2, *BIASED[1] * 2),
        "Regret of {horizon:,} sessions where users also click what is irrelevant, the more the higher it stands",
        quick=(),
    ),
    Group(
        "many_items",
        ("CM", "PBM"),
        _places(
            *(
                f"yandex-like:n_items={n},seed={{seed}}"
                for n in (20, 20, 50, 50, 100, 100, 200, 1000)
            )
        ),
        "Regret of {horizon:,} sessions with many items under the {model}",
        quick=(9,),
    ),
    Group(
        "long_lists",
        ("CM", "PBM", "DBN"),
        _places(*["yandex-like:n_items=20,n_positions=10,seed={seed}"] * 6),
        "Regret of {horizon:,} sessions with lists of 10 out of 20 items under the {model}",
        quick=(1,),
    ),
    Group(
        "small_gaps",
        ("CM", "PBM"),
        _places(*SMALL_GAPS),
        "Regret of {horizon:,} sessions where the better items attract alike, as the others do, under the {model}",
        quick=(12,),
    ),
    Group(
        "low_click_rates",
        ("CM", "PBM", "UBM", "DBN"),
        _places(*["rare-clicks:seed={seed}"] * 4),
        "Regret of {horizon:,} sessions where no item attracts with more than 0.02, under the {model}",
    ),
    Group(
        "change",
        ("NonStationaryCM", "NonStationaryPBM", "NonStationaryUBM", "NonStationaryDBN"),
        _places(
            "li2019-switching:query={query},seed={seed}",
            "abrupt:n_epochs=5,length=20000,seed={seed}",
            "li2019-switching:query={query},n_epochs=4,length=25000,seed={seed}",
            "abrupt:n_epochs=2,length=50000,seed={seed}",
        ),
        "Regret of {horizon:,} sessions in which attractions change, under the {model}",
    ),
    Group(
        "safety",
        ("CM", "PBM", "TPBM"),
        _places(*["{query}"] * 8),
        "How many of {horizon:,} lists are much worse than the production ranking, under the {model}",
        quick=(1,),
        measure="violations",
        allowance=100.0,
    ),
    Group(
        "cold_start",
        SIX,
        _places(*["{query}"] * 4),
        "Regret of the first {horizon:,} sessions with a query under the {model}",
        horizon=1000,
        quick=(0, 1, 2, 3),
    ),
    Group(
        "misspecified",
        (*SIX, "TPBM"),
        _places(*["uniform:seed={seed}"] * 4),
        "Regret of {horizon:,} sessions with items and users drawn at random, under the {model}",
        quick=(3,),
    ),
    Group(
        "warm_start",
        SIX,
        _places("{query}", logs=(1000, 10_000, 100_000)),
        "Regret of {horizon:,} sessions after a log of {log:,}, with a query under the {model}",
        horizon=10_000,
        quick=(6,),
    ),
    Group(
        "contextual",
        ("ContextualCM", "ContextualPBM", "ContextualDCM", "ContextualUBM", "ContextualDBN"),
        _places(*["linear:query={query},seed={seed}"] * 3),
        "Regret of {horizon:,} sessions, each with 20 candidates whose attraction is linear in features, under the {model}",
        horizon=50_000,
    ),
    Group(
        "contextual",
        ("ContextualCM", "ContextualPBM"),
        _places("linear:query={query},n_pool=20,n_users=1,seed={seed}"),
        "Regret of {horizon:,} sessions with the same 20 candidates, whose attraction is linear in features, under the {model}",
        horizon=50_000,
        quick=(),
    ),
    Group(
        "memory",
        ("CascadeMDP",),
        _places(*["independent:seed={seed}", "clickbait:seed={seed}", "habit:seed={seed}"] * 6),
        "Regret of {horizon:,} sessions of users with a memory",
        horizon=50_000,
        quick=(1,),
    ),
    Group(
        "personal",
        ("ContextualPBM", "ContextualDBN"),
        _places(*WORLDS),
        "Regret of {horizon:,} sessions with users each of whom prefers other items, under the {model}",
        horizon=10_000,
        quick=(0, 10),
    ),
    Group(
        "clickbait",
        ("DBN", "CCM"),
        _places(*["uniform:seed={seed}"] * 6),
        "Regret of {horizon:,} sessions where what attracts more satisfies less, under the {model}",
        where=disappoints,
    ),
    Group(
        "ties",
        ("CM", "PBM"),
        _places(*NEAR_TIES),
        "Regret of {horizon:,} sessions where items attract almost alike, under the {model}",
        quick=(3,),
    ),
    Group(
        "ties",
        ("CM", "PBM", "DBN"),
        _places(*["rare-clicks:most=0.5,n_items=20,seed={seed}"] * 2),
        "Regret of {horizon:,} sessions where few items attract at all, under the {model}",
        quick=(),
    ),
    Group(
        "one_position",
        ("CM", "PBM", "DBN"),
        _places("yandex-like:n_positions=1,seed={seed}", "uniform:n_positions=1,seed={seed}"),
        "Regret of {horizon:,} sessions with lists of one item, under the {model}",
        quick=(1,),
    ),
    Group(
        "one_position",
        ("PBM", "UBM", "DBN"),
        _places(
            "yandex-like:n_items=7,n_positions=7,seed={seed}",
            "uniform:n_items=7,n_positions=7,seed={seed}",
        ),
        "Regret of {horizon:,} sessions with lists of all items, under the {model}",
        quick=(),
    ),
    Group(
        "no_order",
        ("TPBM",),
        _places(*(f"position-bias:eta={eta},seed={{seed}}" for eta in (0, 0.25, 0.5) * 2)),
        "Regret of {horizon:,} sessions where lower positions are worth more than the first, under the {model}",
    ),
    Group(
        "no_order",
        ("UBM",),
        _places(*["uniform:seed={seed}"] * 6),
        "Regret of {horizon:,} sessions where a position is seen more often than the one above it, under the {model}",
        quick=(),
        where=rises,
    ),
    Group(
        "drift",
        ("NonStationaryCM", "NonStationaryPBM", "NonStationaryUBM", "NonStationaryDBN"),
        _places(*(f"random-walk:step={step},seed={{seed}}" for step in (0.01, 0.02, 0.05))),
        "Regret of {horizon:,} sessions in which attractions move all the time, under the {model}",
        quick=(5,),
    ),
    Group(
        "long_run",
        SIX,
        _places(*["{query}"] * 2),
        "Regret of {horizon:,} sessions with a query under the {model}",
        horizon=1_000_000,
        quick=(),
    ),
)
"""All tasks, in the order of `ABOUT`."""


def task_set() -> tuple[Task, ...]:
    """The tasks, in the order of `ABOUT`; of each ability with numbers from 1, which name them.

    Example:
        >>> tasks = task_set()
        >>> tasks[0].name, tasks[0].env, tasks[0].instance
        ('standard-01', 'CMRank-v0', 'yandex-9982:shuffle=570556519')
    """
    return tuple(task for ability in ABOUT for task in _of_ability(ability))


def _of_ability(ability: str) -> Iterator[Task]:
    """The tasks of an ability; its generator is its own, so that no other ability matters."""
    rng = np.random.default_rng(np.random.SeedSequence(SEED, spawn_key=(crc32(ability.encode()),)))
    queries, number = _queries(rng), count(1)
    for group in GROUPS:
        if group.ability != ability:
            continue
        for index, (place, model) in enumerate(product(group.places, group.models)):
            task = Task(
                ability=ability,
                env=f"{model}Rank-v0",
                instance=_instance(place.instance, queries, rng, model, group.where),
                horizon=group.horizon,
                about=group.about,
                measure=group.measure,
                quick=index in group.quick,
                name=f"{ability}-{next(number):02}",
                log=place.log,
                allowance=group.allowance,
            )
            yield task._replace(
                about=group.about.format(
                    model=task.click_model, horizon=task.horizon, log=place.log
                )
            )


def _queries(rng: np.random.Generator) -> Iterator[str]:
    """Names of real queries without end, all in random order before any comes again."""
    names = [name for name in list_instances() if name.startswith("yandex-9")]
    while True:
        yield from rng.permutation(names).tolist()


def _instance(
    template: str,
    queries: Iterator[str],
    rng: np.random.Generator,
    model: str,
    where: Callable[[Any], bool] | None,
) -> str:
    """An instance with what is to be filled in, under other item ids, but for those whose
    candidates change.
    """
    query = next(queries) if "{query}" in template else ""
    name = template.format(query=query, seed=_seed(rng), p=round(rng.uniform(0.15, 0.4), 3))
    while where is not None and not where(load_instance(name).model(model)):
        name = template.format(seed=_seed(rng))
    return name if name.startswith(CHANGING) else shuffled(name, _seed(rng))


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(10**9))
