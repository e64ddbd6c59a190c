"""A task of the scorecard: an environment, an instance and a horizon, with the names that the
command line takes.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import gymnasium as gym

from clickgym.runner import make_env

CLICK_MODEL = re.compile(r"(?:NonStationary|Contextual)?(\w+)Rank-v0")


class Task(NamedTuple):
    """A task of the scorecard.

    Attributes:
        ability: what it belongs to.
        env, instance: as ``clickgym run`` takes them.
        horizon: T, the sessions of a run.
        about: what it measures, in a sentence.
        measure: ``"regret"``, or the metric that counts in its place.
        quick: whether ``--quick`` plays it.
        name: its seeds derive from it, and its results are stored under it.
        log: how many sessions of the production ranking the agent learns from before.
        allowance: what is added to all losses before they are compared.
    """

    ability: str
    env: str
    instance: str
    horizon: int
    about: str
    measure: str = "regret"
    quick: bool = False
    name: str = ""
    log: int = 0
    allowance: float = 0.0

    @property
    def click_model(self) -> str:
        """The click model of its users, without the form in which they change.

        Example:
            >>> Task("change", "NonStationaryCMRank-v0", "abrupt", 1000, "").click_model
            'CM'
        """
        match = CLICK_MODEL.match(self.env)
        assert match is not None
        return match[1]

    @property
    def query(self) -> str:
        """Its real query, or else its instance without the order of ids: tasks that have the same
        are not independent.

        Example:
            >>> Task("standard", "CMRank-v0", "yandex-9:shuffle=1", 1000, "").query
            'yandex-9'
            >>> Task("change", "CMRank-v0", "li2019-switching:query=yandex-986-2,seed=3", 1000, "").query
            'yandex-986-2'
        """
        real = re.search(r"yandex-9[\d-]*", self.instance)
        return real[0] if real else unshuffled(self.instance)

    def make(self) -> gym.Env:
        """Make the environment of the task."""
        return make_env(self.env, self.instance)


def shuffled(instance: str, seed: int) -> str:
    """An instance under other item ids.

    Example:
        >>> shuffled("yandex-9", 1), shuffled("uniform:seed=2", 1)
        ('yandex-9:shuffle=1', 'uniform:seed=2,shuffle=1')
    """
    return f"{instance}{',' if ':' in instance else ':'}shuffle={seed}"


def unshuffled(instance: str) -> str:
    """An instance without its order of ids.

    Example:
        >>> unshuffled("yandex-9:shuffle=1"), unshuffled("uniform:seed=2,shuffle=1"), unshuffled("uniform:seed=2")
        ('yandex-9', 'uniform:seed=2', 'uniform:seed=2')
    """
    return re.sub(r"[:,]shuffle=\d+$", "", instance)
