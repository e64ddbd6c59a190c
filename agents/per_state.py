"""PerState: one copy of a bandit agent for each state of users with a memory."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, NamedTuple

from numpy.typing import NDArray

from ..core.checks import check_horizon, unknown
from ..core.kernels import specialise
from .agent import CompiledAgent, ContextualAgent, Seed, StateAgent
from .published import AGENTS, CONTEXTUAL_AGENTS, LEARNERS

# Left open in the templates below; `specialise` binds them to the kernels of the agent that there is one of per state.
rank: Callable[..., None]
update: Callable[..., None]


class State(NamedTuple):
    of: tuple[Any, ...]  # (S,) the states of the agents


def _rank(state, rng, user, ranking):  # type: ignore[no-untyped-def]
    rank(state.of[user[0]], rng, ranking)


def _update(state, user, ranking, clicks):  # type: ignore[no-untyped-def]
    update(state.of[user[0]], ranking, clicks)


class PerState(StateAgent):
    """One copy of a bandit agent for each state of the users: each copy sees only the sessions in its state.

    Idea:
        In some environments users have a state that the agent observes and that changes what attracts them. PerState keeps one
        copy of a bandit algorithm for each state. The copy of the present state chooses the list, and only this copy learns
        from the clicks. Each copy then faces the problem of its paper, as long as clicks depend on nothing but the state and
        the list. PerState is a baseline for agents that plan, such as `CascadeVI`: it maximises the clicks of the present
        session and ignores which state comes next. With S states it learns up to S times as slowly as one copy would, because
        the copies share nothing.

    Algorithm:
        ::

            for each state s = 1 … S:
                B_s = a new agent of the class, with its own seed and the given hyper-parameters
                if the class takes a horizon: B_s is given T, the number of all sessions together
            for session t = 1, 2, …:
                observe the state s of the user
                show the list that B_s chooses
                observe the clicks c_1 … c_K
                B_s learns from its list and the clicks; the others stay as they are

    Args:
        n_items: L.
        n_positions: K.
        n_states: S; ``make_agent`` fills it in.
        agent: the name of a compiled agent that needs neither features nor extra knowledge, as ``"CascadeKLUCB"``.
        horizon: T of all sessions together, for an agent that takes one.
        seed: seeds all copies.
        **hyperparameters: those of that agent.

    Attributes:
        agents: the S agents.

    Raises:
        ValueError: on an agent that is unknown or cannot be copied, on a missing horizon, and where the agent raises it.
        TypeError: on a hyper-parameter that it does not take.

    Source: a baseline: the natural extension of a bandit to states that are observed.

    Example:
        >>> agent = PerState(4, 2, n_states=3, agent="CascadeUCB1", seed=0)
        >>> agent.rank({"clicks": [0, 0], "state": 2}).shape, len(agent.agents)
        ((2,), 3)
    """

    paper = "one bandit per state"
    click_models = "users with a memory"
    search_space: ClassVar = {"agent": ("CascadeKLUCB", "CascadeTS", "EpsilonGreedy", "PBMHB", "SGRAB")}

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        *,
        n_states: int,
        agent: str = "CascadeKLUCB",
        horizon: int | None = None,
        seed: Seed = None,
        **hyperparameters: Any,
    ) -> None:
        able = {
            name: agent_class
            for name, agent_class in AGENTS.items()
            if not issubclass(agent_class, (ContextualAgent, StateAgent)) and not agent_class.told
        }
        if not isinstance(agent, str) or agent not in able:
            raise ValueError(self._why_not(agent, able))
        self._class: type[CompiledAgent] = able[agent]
        self._arguments = dict(hyperparameters)
        horizon = None if horizon is None else check_horizon(horizon)
        parameter = inspect.signature(self._class).parameters.get("horizon")
        if parameter is not None and horizon is not None:
            self._arguments["horizon"] = horizon
        elif parameter is not None and parameter.default is parameter.empty:
            raise ValueError(f"PerState of {agent} needs a horizon")
        super().__init__(n_items, n_positions, n_states, seed, agent=agent, horizon=horizon, **hyperparameters)
        self.rank_kernel = specialise(_rank, rank=self._class.rank_kernel)  # type: ignore[misc, method-assign]
        self.update_kernel = specialise(_update, update=self._class.update_kernel)  # type: ignore[misc, method-assign]

    @staticmethod
    def _why_not(agent: str, able: Iterable[str]) -> str:
        """Return the error message for an agent that cannot be copied per state or is unknown."""
        seeing = [agent_class.__name__ for agent_class in StateAgent.__subclasses__()]
        told = {name: ", ".join(agent_class.told) for name, agent_class in AGENTS.items()}
        unable = (
            {name: f"it is told {what}, which users with a memory do not have" for name, what in told.items() if what}
            | dict.fromkeys(CONTEXTUAL_AGENTS, "it ranks by features, which only contextual environments have")
            | dict.fromkeys([*seeing, *LEARNERS], "it sees the state by itself")
        )
        if isinstance(agent, str) and agent in unable:
            return f"{agent} cannot be the agent of each state: {unable[agent]}"
        return unknown("agent", agent, able)

    def _initial_state(self) -> State:
        seeds = self.rng.integers(2**63, size=self.n_states).tolist()
        make: Callable[..., CompiledAgent] = self._class
        self.agents = [make(self.n_items, self.n_positions, seed=seed, **self._arguments) for seed in seeds]
        return State(tuple(agent.state for agent in self.agents))

    def make_room(self, n_sessions: int) -> None:
        for agent in self.agents:
            agent.make_room(n_sessions)
        self.state = State(tuple(agent.state for agent in self.agents))

    def _arrays(self) -> dict[str, Any]:
        return {f"{state}_{name}": value for state, agent in enumerate(self.agents) for name, value in agent._arrays().items()}

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        for state, agent in enumerate(self.agents):
            part = {name.removeprefix(f"{state}_"): value for name, value in arrays.items() if name.startswith(f"{state}_")}
            agent._restore(part)
        self.make_room(0)
