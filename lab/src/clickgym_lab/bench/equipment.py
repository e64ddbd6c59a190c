"""The extra knowledge that the scorecard gives an agent before its first session, beside
`make_agent`'s.
"""

from __future__ import annotations

import inspect
import json
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clickgym.agents import Agent, Learner
from clickgym.envs import Users
from clickgym.runner import AgentLike, Player, player_of

from ..production import log_of_production
from .task import Task

RANDOM_LISTS = 200


def examination(users: Any, production: NDArray[np.int64] | None) -> NDArray[np.float64]:
    """The examination probabilities of users: of the model; or on the production ranking; or,
    without one, on random lists.
    """
    weights = users.position_weights()
    if weights is None and production is not None:
        weights = users.examination_probabilities(production[: users.n_positions])
    return _on_random_lists(json.dumps(users.to_dict())) if weights is None else weights


@lru_cache(maxsize=1000)
def _on_random_lists(users: str) -> Any:
    model: Any = Users.from_dict(json.loads(users))
    rng = np.random.default_rng(0)
    lists = (rng.permutation(model.n_items)[: model.n_positions] for _ in range(RANDOM_LISTS))
    return np.mean([model.examination_probabilities(ranking) for ranking in lists], axis=0)


class Equipped:
    """A maker of agents that get the examination probabilities in every task, and learn from a
    log before they rank.

    Args:
        player: who is equipped.
        log: of how many sessions; an agent that cannot learn from a log does without.
    """

    def __init__(self, player: Player, log: int) -> None:
        self._player, self._log = player, log
        self.search_space, self._asks = player.search_space, _asks_examination(player)
        self.requires = {
            key: source for key, source in player.requires.items() if key not in self._asks
        }
        self.requires |= {"users": "users", "production": "initial_ranking"}
        kinds = inspect.Parameter
        beside = [
            kinds("users", kinds.KEYWORD_ONLY),
            kinds("production", kinds.KEYWORD_ONLY, default=None),
        ]
        given = (*player.hyperparameters, *self._asks)
        left = [each for name, each in player.parameters.items() if name not in given]
        parameters = [*left, *beside]
        self.__signature__ = inspect.Signature(sorted(parameters, key=lambda each: each.kind))

    def __call__(
        self,
        n_items: int,
        n_positions: int,
        *,
        users: Any,
        production: Any = None,
        seed: Any = None,
        **others: Any,
    ) -> Agent | Learner:
        """The agent, ready for its first session."""
        facts = {key: examination(users, production) for key in self._asks}
        given = {**self._player.hyperparameters, **facts, **others}
        agent = self._player.maker(n_items=n_items, n_positions=n_positions, seed=seed, **given)
        if self._log and isinstance(agent, Agent) and agent.learns_from_any_list:
            log_seed = np.random.SeedSequence(seed, spawn_key=(0x106,))
            log = log_of_production(users, production, self._log, log_seed)
            for ranking, clicks in zip(*log, strict=True):
                agent.update(None, ranking, clicks, float(clicks.sum()))
        return agent


def _asks_examination(player: Player) -> list[str]:
    return [key for key, source in player.asks.items() if source == "examination"]


def equipped(agent: AgentLike | Player, task: Task) -> AgentLike:
    """What plays a task: the agent, or a maker that equips it for the task.

    Args:
        agent: as `sweep` takes it.
        task: of the protocol.
    """
    player = player_of(agent)
    if task.env.startswith(("Contextual", "CascadeMDP")):
        return player.given
    return Equipped(player, task.log) if task.log or _asks_examination(player) else player.given
