"""The class `QueryUsers` of users who issue many queries, with its task and kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from gymnasium.spaces import MultiBinary
from numpy.typing import ArrayLike, NDArray

from ...core.checks import check_choice, check_count, probabilities
from ...core.kernels import kernel
from ...core.state import Floats, Ints
from ..click_models.click_model import ClickModel, CompositeModel, click_models_of
from ..simulation.task import ClickConstants, Kernels, Task, make_click_session_kernel

KNOWLEDGE = {"examination": 1, "browsing": 2}
"""The sources of knowledge about users, each with the number of axes of its array. Each axis has K
entries.
"""


class QueryConstants(NamedTuple):
    """The users' parameters for Q queries, and working memory."""

    parameters: tuple[NDArray[np.float64], ...]  # of the click model, each (Q, ...)
    optimum: NDArray[np.float64]  # (Q,) the expected reward of the best lists
    reward: int
    cutoff: int
    n_sessions: int
    scratch: NDArray[np.float64]  # (K + 1,)
    ranking: NDArray[np.int64]  # (K,) the list, in the query's own item numbers


class QueryState(NamedTuple):
    """The state of `QueryUsers`: the current query of each stream."""

    optimum: Annotated[Floats, "B"]
    query: Annotated[Ints, "B"]
    first: Annotated[Ints, "B", -1]  # the next episode's query if the seed sets it; -1: drawn
    left: Annotated[Ints, "B"]  # sessions left in the episode
    order: Annotated[Ints, "B L", range]  # the query's own item number for each item id


@cache
def make_row_kernel(n_parameters: int) -> Callable[..., tuple[Any, ...]]:
    """Return a kernel that selects a query's row from each of ``n_parameters`` stacked parameters;
    the kernel returns a tuple of array views and numbers.
    """
    if n_parameters == 0:

        @kernel
        def nothing(stacked, query):
            return ()

        return nothing
    row_before, last = make_row_kernel(n_parameters - 1), n_parameters - 1

    @kernel
    def row(stacked, query):
        return (*row_before(stacked, query), stacked[last][query])

    return row


@cache
def make_query_session_kernel(
    sample: Callable[..., int], expected: Callable[..., float], record: Any, n_parameters: int
) -> Callable[..., tuple[float, float, int]]:
    """Return the ``session`` kernel that simulates a user of the stream's current query.

    Args:
        sample, expected: kernels of the click model.
        record: the class of the click model's parameters, with ``n_parameters`` fields.
        n_parameters: the number of these fields.
    """
    simulate, row = make_click_session_kernel(sample, expected), make_row_kernel(n_parameters)

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
    """Start an episode on stream b: draw its query, unless the seed sets the query, and shuffle the
    item ids.
    """
    query, order = int(rng.random() * len(constants.optimum)), state.order[b]
    if state.first[b] >= 0:
        query, state.first[b] = state.first[b], -1
    state.query[b], state.left[b] = query, constants.n_sessions
    state.optimum[b] = constants.optimum[query]
    for a in range(len(order)):  # start from the identity, so that the order depends only on rng
        order[a] = a
    for a in range(len(order) - 1, 0, -1):
        swap = int(rng.random() * (a + 1))
        order[a], order[swap] = order[swap], order[a]


@kernel
def advance(constants, state, b, rng):
    state.left[b] -= 1
    return state.left[b] == 0


class QueryTask(Task):
    """Task of users who issue many queries.

    Args:
        model: the `QueryUsers`.
        constants: the constants of the kernels.
        best: ``(Q, K)`` the best list of each query, in the query's own item numbers.
    """

    state_type = QueryState

    def __init__(self, model: Any, constants: QueryConstants, best: NDArray[np.int64]) -> None:
        self.model, self.constants, self._best = model, constants, best
        self.sizes = {"L": model.n_items}
        self.observation_space = MultiBinary(model.n_positions)

    @property
    def kernels(self) -> Kernels:  # type: ignore[override]
        first_model = self.model.models[0]
        n_parameters = len(self.constants.parameters)
        record: Any = type(first_model.parameters)
        session = make_query_session_kernel(
            first_model.sample_kernel, first_model.expected_kernel, record, n_parameters
        )
        return Kernels(session, begin, advance)

    def start(self, state: Any, seed: int) -> None:
        """Set the first query of each stream: (seed + b) modulo Q for stream b, so that consecutive
        seeds go through all queries.
        """
        n_queries = len(self.constants.optimum)
        state.first[:] = (seed % n_queries + np.arange(len(state.first))) % n_queries

    def best(self, state: Any) -> NDArray[np.int64]:
        ids = np.argsort(state.order, axis=1)
        return np.take_along_axis(ids, self._best[state.query], axis=1)

    def info(self, state: Any, b: int | slice) -> dict[str, Any]:
        return {"query": state.query.item(b) if isinstance(b, int) else state.query[b].copy()}


class QueryUsers(CompositeModel):
    """Users who issue many queries: each episode uses a different query, with random item ids.

    For an agent that starts from scratch, each episode is a new problem. For a policy that was
    trained on many queries, each episode resembles its training. An episode ends after
    ``n_sessions`` sessions (``terminated``), and the next session belongs to another query.

    After ``reset(seed=s)``, the first episode uses query s modulo Q; in a vector environment,
    stream b starts with query s + b modulo Q. Therefore, Q consecutive seeds, or Q streams, use
    each query once. The queries of later episodes are drawn at random. Item ids are shuffled in
    every episode.

    Click law:
        In an episode of query q, item id i stands for the query's item π(i):

        ::

            P(c | R) = P_q(c | π(d_1), …, π(d_K))

    Args:
        models: the click model of each of the Q queries, or its ``to_dict()``; all click models
            belong to one class and have the same numbers of items and positions.
        n_sessions: the number of sessions in an episode; by default 100.
        agent_knowledge: what agents may know about the users, the same for all queries: a dict with
            ``"examination"`` ``(K,)``, and ``"browsing"`` ``(K, K)`` by position and last click; by
            default, the averages over the queries. For users from a test split, pass the averages
            over the training split.

    Attributes:
        models, n_sessions, agent_knowledge: the arguments.
        n_queries: Q, the number of queries.

    Raises:
        ValueError: an argument is invalid; the message names the entry and what was expected.

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
                expected = f"expected a {type(first).__name__}, like models[0]"
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
        """Return the only task, in a list (see `UserModel.tasks`). The task moves from query to
        query.
        """
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
        """Return what an agent may know about the users (see `UserModel.knowledge`), which does not
        depend on the current query.
        """
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

    def with_positions(self, n_positions: int) -> Self:  # copying many models is slow
        return self if n_positions == self.n_positions else super().with_positions(n_positions)


def means_of(models: Sequence[ClickModel]) -> dict[str, Floats]:
    """Return the mean over queries of each kind of knowledge that their click models provide."""
    knowledge = {source: [model.knowledge(source) for model in models] for source in KNOWLEDGE}
    return {
        source: np.mean(values, axis=0)
        for source, values in knowledge.items()
        if values[0] is not None
    }
