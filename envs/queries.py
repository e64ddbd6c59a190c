"""Users of many queries: every episode plays another query, with random item ids."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from gymnasium.spaces import MultiBinary
from numpy.typing import ArrayLike, NDArray

from ..core.checks import check_choice, check_count, probabilities
from ..core.kernels import kernel
from ..core.state import Floats, Ints
from .click_model import ClickModel, CompositeModel, click_models_of
from .task import ClickConstants, Kernels, Task, click_session

KNOWLEDGE = {"examination": 1, "browsing": 2}
"""What agents may know about users, each with its number of axes; an axis has K positions."""


class QueryConstants(NamedTuple):
    """The users of Q queries, and working memory."""

    parameters: tuple[NDArray[np.float64], ...]  # each (Q, ...) of the click model
    optimum: NDArray[np.float64]  # (Q,) the expected reward of the best lists
    reward: int
    cutoff: int
    n_sessions: int
    scratch: NDArray[np.float64]  # (K + 1,)
    ranking: NDArray[np.int64]  # (K,) the list in the numbers of the query's items


class State(NamedTuple):
    """The current query of each stream."""

    optimum: Annotated[Floats, "B"]
    query: Annotated[Ints, "B"]
    first: Annotated[Ints, "B", -1]  # the query of the next episode, by the seed; -1: drawn
    left: Annotated[Ints, "B"]  # sessions left
    order: Annotated[Ints, "B L", range]  # for each id the item of the query


@cache
def row_of(n_parameters: int) -> Callable[..., tuple[Any, ...]]:
    """Return the kernel that returns the parameters of a query as a tuple of array views and
    numbers.
    """
    if n_parameters == 0:

        @kernel
        def nothing(stacked, query):
            return ()

        return nothing
    row_before, last = row_of(n_parameters - 1), n_parameters - 1

    @kernel
    def row(stacked, query):
        return (*row_before(stacked, query), stacked[last][query])

    return row


@cache
def session_of_query(
    sample: Callable[..., int], expected: Callable[..., float], record: Any, n_parameters: int
) -> Callable[..., tuple[float, float, int]]:
    """Return the kernel of a session with the users of the stream's query."""
    simulate, row = click_session(sample, expected), row_of(n_parameters)

    @kernel
    def session(constants, state, b, ranking, uniforms, clicks, examined):
        for k in range(len(ranking)):
            constants.ranking[k] = state.order[b, ranking[k]]
        model = record(*row(constants.parameters, state.query[b]))
        of_query = ClickConstants(model, constants.reward, constants.cutoff, constants.scratch)
        return simulate(of_query, state, b, constants.ranking, uniforms, clicks, examined)

    return session


@kernel
def begin(constants, state, b, rng):
    """Draw a query, unless the seed gives it, and random item ids."""
    query, order = int(rng.random() * len(constants.optimum)), state.order[b]
    if state.first[b] >= 0:
        query, state.first[b] = state.first[b], -1
    state.query[b], state.left[b] = query, constants.n_sessions
    state.optimum[b] = constants.optimum[query]
    for a in range(len(order)):  # a draw must depend only on the generator
        order[a] = a
    for a in range(len(order) - 1, 0, -1):
        swap = int(rng.random() * (a + 1))
        order[a], order[swap] = order[swap], order[a]


@kernel
def advance(constants, state, b, rng):
    state.left[b] -= 1
    return state.left[b] == 0


class QueryTask(Task):
    """The task of users of many queries.

    Args:
        model: the users.
        constants: the record of the kernels.
        best: ``(Q, K)`` the best lists, in the numbers of the queries' items.
    """

    state_type = State

    def __init__(self, model: Any, constants: QueryConstants, best: NDArray[np.int64]) -> None:
        self.model, self.constants, self._best = model, constants, best
        self.sizes = {"L": model.n_items}
        self.observation_space = MultiBinary(model.n_positions)

    @property
    def kernels(self) -> Kernels:  # type: ignore[override]
        first_model = self.model.models[0]
        n_parameters = len(self.constants.parameters)
        record: Any = type(first_model.parameters)
        session = session_of_query(
            first_model.sample_kernel, first_model.expected_kernel, record, n_parameters
        )
        return Kernels(session, begin, advance)

    def start(self, state: Any, seed: int) -> None:
        """Stream b begins with query (seed + b) modulo Q, so that seeds enumerate the queries."""
        n_queries = len(self.constants.optimum)
        state.first[:] = (seed % n_queries + np.arange(len(state.first))) % n_queries

    def best(self, state: Any) -> NDArray[np.int64]:
        ids = np.argsort(state.order, axis=1)
        return np.take_along_axis(ids, self._best[state.query], axis=1)

    def info(self, state: Any, b: int | slice) -> dict[str, Any]:
        return {"query": state.query.item(b) if isinstance(b, int) else state.query[b].copy()}


class QueryUsers(CompositeModel):
    """Users who issue many queries: every episode is another query, with random item ids.

    For an agent that starts from scratch, every episode is a new problem. A policy that was trained
    on many queries meets queries like those in its training. After ``n_sessions`` the query ends
    (``terminated``), and the next session belongs to another query.

    ``reset(seed=s)`` begins with query s modulo Q; in a vector environment, stream b begins with
    query s + b modulo Q. So Q consecutive seeds, or Q streams, go through each query once. The
    query of every later episode is drawn at random. The order of the items is drawn in all
    episodes.

    Click law:
        In an episode of query q, in which item id i is the item π(i) of the query:

        ::

            P(c | R) = P_q(c | π(d_1), …, π(d_K))

    Args:
        models: the click model of each of the Q queries, or its ``to_dict()``; all models belong to
            one class and have the same numbers of items and positions.
        n_sessions: T, the number of sessions in an episode.
        agent_knowledge: what agents may know about users, the same for all queries:
            ``"examination"`` ``(K,)``, and ``"browsing"`` ``(K, K)`` by position and last click. By
            default, the averages over the queries. For users from a test split, agents know the
            averages over the training split.

    Attributes:
        models, n_sessions, agent_knowledge: as the arguments.
        n_queries: Q.

    Raises:
        ValueError: an invalid argument; the message names the entry and what was expected.

    Example:
        >>> from clickgym.envs import CascadeModel, ClickEnv
        >>> queries = [CascadeModel([0.5, 0.1, 0.2], 1), CascadeModel([0.1, 0.1, 0.9], 1)]
        >>> env = ClickEnv(QueryUsers(queries, n_sessions=2))
        >>> clicks, info = env.reset(seed=1)
        >>> info["query"], info["optimal_reward"]
        (1, 0.9)
    """

    title = "with another query in every episode"
    default_instance = "queries"
    max_episode_steps = None
    may_leave = True

    def __init__(
        self,
        models: Sequence[ClickModel | Mapping[str, Any]],
        n_sessions: int = 100,
        agent_knowledge: Mapping[str, ArrayLike] | None = None,
    ) -> None:
        self.models = click_models_of(models, 1)
        self.n_queries = len(self.models)
        self.n_sessions: int = check_count("n_sessions", n_sessions)
        first = self.models[0]
        for number, model in enumerate(self.models):
            if type(model) is not type(first):
                expected = f"expected a {type(first).__name__}, as models[0]"
                raise ValueError(f"models[{number}] is a {type(model).__name__}; {expected}")
        self.rewards, self.n_positions = first.rewards, first.n_positions
        if agent_knowledge is None:
            agent_knowledge = means_of(self.models)
        for source in agent_knowledge:
            check_choice("entry of agent_knowledge", source, KNOWLEDGE)
        shape = (self.n_positions,)
        self.agent_knowledge = {
            source: probabilities(f"agent_knowledge[{source!r}]", values, shape * KNOWLEDGE[source])
            for source, values in agent_knowledge.items()
        }

    @property
    def kind(self) -> str:
        return f"{self.name()} of {self.models[0].kind}"

    def tasks(
        self, reward: str, cutoff: int | None, reference: ArrayLike | None
    ) -> list[QueryTask]:
        """As `UserModel.tasks`: a single task, in which one query follows the other."""
        if reference is not None:
            raise ValueError(
                "reference is a list; leave reference out, because each query has its own best list"
            )
        code, n_counted = self.check_reward(reward, cutoff)
        query_tasks = [model.tasks(reward, cutoff, None)[0] for model in self.models]
        columns = zip(*(model.parameters for model in self.models), strict=True)
        constants = QueryConstants(
            tuple(np.array(column, np.float64) for column in columns),
            np.array([task.optimal_reward for task in query_tasks]),
            code,
            n_counted,
            self.n_sessions,
            np.empty(self.n_positions + 1),
            np.empty(self.n_positions, np.int64),
        )
        return [
            QueryTask(self, constants, np.array([task.optimal_ranking for task in query_tasks]))
        ]

    def knowledge(self, source: str, production: NDArray[np.int64] | None = None) -> Any:
        """As `UserModel.knowledge`; it is the same for all queries, whichever is played."""
        return self.agent_knowledge.get(source)

    def to_dict(self) -> dict[str, Any]:
        return {
            "model": self.name(),
            "models": [model.to_dict() for model in self.models],
            "n_sessions": self.n_sessions,
            "agent_knowledge": {
                source: values.tolist() for source, values in self.agent_knowledge.items()
            },
        }

    def _with_models(self, models: list[ClickModel]) -> Self:
        k = models[0].n_positions
        knowledge = {
            key: rows[(slice(k),) * rows.ndim] for key, rows in self.agent_knowledge.items()
        }
        return type(self)(models, self.n_sessions, knowledge)

    def with_positions(self, n_positions: int) -> Self:  # not copied: there are many models
        return self if n_positions == self.n_positions else super().with_positions(n_positions)


def means_of(models: Sequence[ClickModel]) -> dict[str, Floats]:
    """Return what agents may know, averaged over some queries."""
    knowledge = {source: [model.knowledge(source) for model in models] for source in KNOWLEDGE}
    return {
        source: np.mean(values, axis=0)
        for source, values in knowledge.items()
        if values[0] is not None
    }
