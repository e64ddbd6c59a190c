"""The tasks of the scorecard: a single table, generated from public seeds.

An *ability* is a kind of task: a way in which users or problems differ, according to a paper. Each
ability has its own family of instances, and uses the click models for which this family is defined.
An ability has at most 18 tasks (27 with features), so that no ability outweighs the others.
Instances with real queries use the 16 shipped queries in turn. A task's seed determines its
instance and the order of its item ids, so that an id carries no information about the item.

We left out no task because we disliked its results. However, a task in which agents hardly differ
measures nothing. A task is therefore not scored if its best published agent loses more than a third
of what random lists lose.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import gymnasium as gym

from ..envs import list_instances
from ..runner.make.environments import make_env


class ScoredTask(NamedTuple):
    """A task of the scorecard: users whom an agent serves for a number of sessions, and a measure
    of loss.

    Attributes:
        name: the task's name, from which the seeds of its runs are derived.
        ability: the ability to which the task belongs.
        env, instance: the environment and the instance, written as for ``clickgym run``.
        horizon: T, the number of sessions in a run.
        measure: the metric that counts as loss: ``"regret"`` or another metric.
    """

    name: str
    ability: str
    env: str
    instance: str
    horizon: int
    measure: str = "regret"

    @property
    def has_features(self) -> bool:
        """True if the candidates change from session to session and have features."""
        return self.env.startswith("Contextual")

    @property
    def users(self) -> str:
        """The name of the task's users: the real query or, if there is none, the instance without
        the shuffling of item ids. The results of tasks with the same users are not independent.

        Example:
            >>> ScoredTask("standard-01", "standard", "CMRank-v0", "yandex-9:shuffle=1", 1000).users
            'yandex-9'
        """
        real = re.search(r"yandex-9[\d-]*", self.instance)
        return real[0] if real else re.sub(r"[:,]shuffle=\d+$", "", self.instance)

    def make(self) -> gym.Env:
        """Make the task's environment."""
        return make_env(self.env, self.instance)


class Group(NamedTuple):
    """A group of similar tasks: one task for every combination of a click model and an instance.

    Attributes:
        about: what the tasks have in common, in words.
        models: the ids of the click models' environments, without ``Rank-v0``.
        instances: the names of the instances. For each task, ``{query}`` and ``{seed}`` in a name
            are filled in.
        seed: the n-th task of the group has the seed ``seed + n``, which no task of another group
            has.
        horizon, measure: the horizon and the loss of all tasks in the group; see `ScoredTask`.
        quick: the number of the task that ``--quick`` runs, counted from 1 and taken modulo the
            ability's number of tasks; 0 for no task. Only the number in an ability's first group is
            used.
    """

    about: str
    models: Sequence[str]
    instances: Sequence[str]
    seed: int
    horizon: int = 100_000
    measure: str = "regret"
    quick: int = 1


SIX_MODELS = ("CM", "PBM", "DCM", "UBM", "DBN", "CCM")
CHANGING_MODELS = tuple(f"NonStationary{model}" for model in ("CM", "PBM", "UBM", "DBN"))
QUERY, LIKE_YANDEX = "{query}", "yandex-like:seed={seed}"
DISAPPOINTING_SEEDS = {"DBN": (1, 9, 61, 69, 74, 84), "CCM": (1, 6, 11, 13, 19, 24)}
"""For each click model, the first six seeds of the family ``uniform`` whose attractive items
disappoint. In the DBN, the correlation between the items' attraction and satisfaction is at most
-0.5. In the CCM, users are more likely, by at least 0.5, to continue after a relevant page than
after another page.
"""

ABILITIES = {
    "standard": [Group("real queries", SIX_MODELS, 3 * [QUERY], 0)],
    "early sessions": [
        Group("real queries, a thousand sessions", SIX_MODELS, 3 * [QUERY], 100, 1000, quick=2)
    ],
    "long lists": [
        Group(
            "lists of 10 out of 20 items",
            ("CM", "PBM", "DBN"),
            6 * [f"{LIKE_YANDEX},n_items=20,n_positions=10"],
            200,
            quick=3,
        )
    ],
    "large catalogues": [
        Group(
            "50 to 1,000 items",
            ("CM", "PBM"),
            [f"{LIKE_YANDEX},n_items={n}" for n in (50, 50, 100, 100, 200, 200, 1000, 1000)],
            300,
            quick=4,
        )
    ],
    "position bias": [
        Group(
            "users look at position k with probability 1/k^η",
            ("PBM",),
            [f"position-bias:eta={eta},seed={{seed}}" for eta in (0.25, 0.5, 1, 2) * 3],
            400,
            quick=5,
        ),
        Group(
            "users also click irrelevant items, more often at higher positions",
            ("TPBM",),
            [f"position-bias:eta={eta},seed={{seed}}" for eta in (0.5, 1) * 2],
            412,
        ),
    ],
    "rare clicks": [
        Group(
            "no attraction is above 0.02",
            ("CM", "PBM", "UBM", "DBN"),
            4 * ["rare-clicks:seed={seed}"],
            500,
            quick=6,
        )
    ],
    "change": [
        Group(
            "attractions change abruptly, one to nine times",
            CHANGING_MODELS,
            [
                "li2019-switching:query={query},seed={seed}",
                "abrupt:n_epochs=5,length=20000,seed={seed}",
                "li2019-switching:query={query},n_epochs=4,length=25000,seed={seed}",
                "abrupt:n_epochs=2,length=50000,seed={seed}",
            ],
            600,
            quick=7,
        )
    ],
    "drift": [
        Group(
            "attractions drift all the time",
            CHANGING_MODELS,
            [f"random-walk:step={step},seed={{seed}}" for step in (0.01, 0.02, 0.05)],
            700,
            quick=8,
        )
    ],
    "ties": [
        Group(
            "items are almost equally attractive",
            ("CM", "PBM"),
            [
                "kveton2015:n_items=10,n_positions=5,p=0.3,delta=0.03",
                "kveton2015:n_items=10,n_positions=5,p=0.2,delta=0.02",
                "kveton2015:n_items=16,n_positions=4,p=0.3,delta=0.03",
            ],
            800,
            quick=9,
        ),
        Group(
            "only a few items are attractive",
            ("CM", "PBM", "DBN"),
            2 * ["rare-clicks:most=0.5,n_items=20,seed={seed}"],
            806,
        ),
    ],
    "clickbait": [
        Group(
            "the more an item attracts, the less it satisfies",
            (model,),
            [f"uniform:seed={seed}" for seed in seeds],
            first,
            quick=10,
        )
        for first, (model, seeds) in zip((900, 906), DISAPPOINTING_SEEDS.items(), strict=True)
    ],
    "safety": [
        Group(
            "no list should be much worse than the production list",
            ("CM", "PBM", "TPBM"),
            6 * [QUERY],
            1000,
            measure="violations",
            quick=11,
        )
    ],
    "memory": [
        Group(
            "clicks change how users behave later",
            ("CascadeMDP",),
            6 * [f"{family}:seed={{seed}}" for family in ("independent", "clickbait", "habit")],
            1200,
            50_000,
            quick=13,
        )
    ],
    "long run": [Group("a million sessions", SIX_MODELS, 2 * [QUERY], 1300, 1_000_000, quick=0)],
    "features": [
        Group(
            "20 candidates per session, with attraction linear in the features",
            tuple(f"Contextual{model}" for model in SIX_MODELS[:5]),
            3 * ["linear:query={query},seed={seed}"],
            1400,
            50_000,
            quick=14,
        ),
        Group(
            "users prefer different items",
            ("ContextualPBM", "ContextualDBN"),
            [
                f"{world}features={features},query={{query}},seed={{seed}}"
                for world in ("personal:", "personal:form=inner,", "network:")
                for features in ("plain", "outer")
            ],
            1415,
            10_000,
        ),
    ],
}
"""The groups of tasks of each ability, in the order of the tables. Tasks with features have their
own table.
"""


def all_tasks() -> tuple[ScoredTask, ...]:
    """Return all tasks of the scorecard, in the order of `ABILITIES`.

    Example:
        >>> len(all_tasks()), all_tasks()[0].instance
        (229, 'yandex-9:shuffle=1')
    """
    return tuple(task for ability in ABILITIES for task in tasks_of(ability))


def quick_tasks() -> tuple[ScoredTask, ...]:
    """Return the tasks that ``--quick`` runs: one for each ability, except abilities with
    ``quick=0``.
    """
    choices = [(tasks_of(name), groups[0].quick) for name, groups in ABILITIES.items()]
    return tuple(tasks[(number - 1) % len(tasks)] for tasks, number in choices if number)


def tasks_of(ability: str) -> list[ScoredTask]:
    """Return the tasks of an ability."""
    queries = [name for name in list_instances() if name.startswith("yandex-9")]
    tasks: list[ScoredTask] = []
    for group in ABILITIES[ability]:
        pairs = product(group.instances, group.models)
        for seed, (template, model) in enumerate(pairs, group.seed + 1):
            query = queries[len(tasks) % len(queries)]
            instance = template.format(query=query, seed=seed)
            if not model.startswith("Contextual"):
                instance += f"{',' if ':' in instance else ':'}shuffle={seed}"
            name = f"{ability.replace(' ', '-')}-{len(tasks) + 1:02}"
            env = f"{model}Rank-v0"
            tasks.append(ScoredTask(name, ability, env, instance, group.horizon, group.measure))
    return tasks
