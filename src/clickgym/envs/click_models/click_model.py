"""Base class of click models: the interface, validation, and the exact search for the best list.

Letters used throughout the package: ``L`` items (``n_items``), ``K`` positions (``n_positions``),
``T`` sessions (``horizon``), ``m`` counted positions (``cutoff``).

A click model has three kernels. Environments and the runner call no other function of the model:

``sample(parameters, ranking, uniforms, clicks, examined) -> int``
    Draws one session from one uniform number per position. Each position has a few outcomes (not
    examined, skipped, clicked, clicked and left, ...), and ``uniforms[k]`` selects the outcome at
    position ``k``; override `n_uniforms` if the model needs more numbers. Writes the clicks and the
    examined positions as 0 or 1, and returns the position at which the user left satisfied, or -1.
``marginals(parameters, ranking, examination, clicks, scratch)``
    Writes the exact examination probability and the exact click probability of each position.
``expected(parameters, ranking, reward, cutoff, scratch) -> float``
    Returns the exact expected reward of a list, and reads only ``ranking[:cutoff]``.

If users scan from the top and their behaviour depends only on the current item, a click model may
have a fourth kernel, from which clickgym computes the best list (see `scan`):

``scan_kernel(parameters, reward, gain, continuation)``
    Writes each item's expected reward if examined, and the probability that a user who examined
    this item continues to the next position.

``scratch`` is working memory of ``K + 1`` floats that the caller provides, because kernels do not
allocate memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.checks import as_list, check_kind, check_positions
from ...core.kernels import entry, kernel, make_kernels_static
from ...core.messages import value_error
from ..simulation.scan import best_scan
from ..simulation.task import REWARDS, ClickTask
from ..simulation.user_model import UserModel, user_model_from
from ..spaces import argsort_descending, check_ranking, named_ranking

CLICK_MODELS: dict[str, type[ClickModel]] = {}
"""The classes of all click models by short name, such as ``"PBM"``."""

KERNELS = {
    "sample_kernel": ("parameters", "ranking", "uniforms", "clicks", "examined"),
    "marginals_kernel": ("parameters", "ranking", "examination", "clicks", "scratch"),
    "expected_kernel": ("parameters", "ranking", "reward", "cutoff", "scratch"),
    "scan_kernel": ("parameters", "reward", "gain", "continuation"),
}
"""The arguments of each kernel."""

MAX_SEARCH = 10_000_000
"""The largest number of lists, ``L! / (L - m)!``, that `ClickModel.optimal_ranking` searches if no
theorem gives the best list.
"""

LARGER_BY = 1.0 + 1e-12
"""The factor by which a list must exceed the best list so far in order to replace it. A smaller
difference may be a rounding error.
"""


class Search(NamedTuple):
    """Working memory and result of the exact search for the best list."""

    bounds: NDArray[np.float64]  # (m, m) the result of `ClickModel.search_bounds`
    head: NDArray[np.int64]  # (m,) the list so far
    value: NDArray[np.float64]  # (m,) the expected reward of the list above each depth
    choice: NDArray[np.int64]  # (m,) the candidate at each depth; -1 before and after the search
    is_listed: NDArray[np.bool_]  # (L,) True for each candidate in the list so far
    best: NDArray[np.int64]  # (m,) the best list


class ClickModel(UserModel, abstract=True):
    """Base class of click models: how users look at a ranked list and click on it.

    To add a click model, write a subclass in one file, with a docstring and the three kernels that
    the docstring of `clickgym.envs.click_models.click_model` describes. If a theorem gives the best
    list, also write the method `best_ranks`. Environment ids (see `clickgym.register_click_model`),
    instance files, documentation and tests are derived from the class. `clickgym.check_click_model`
    checks that the class is complete and consistent.

    Attributes:
        parameters: a named tuple of read-only arrays and floats, the first argument of the kernels.
        n_positions: K, the length of a list.

    Example:
        >>> from clickgym.envs import PositionBasedModel
        >>> model = PositionBasedModel([0.2, 0.8, 0.6], [1.0, 0.5])
        >>> model.click_probabilities([0, 1])
        array([0.2, 0.4])
        >>> model.optimal_ranking(), model.expected_reward([1, 2])
        (array([1, 2]), 1.1)
    """

    title: ClassVar[str]
    """The click model's name in words, such as ``"position-based model"``."""
    default_instance: ClassVar[str | None] = None
    """The default instance of the model's environments; None if these environments require an
    instance or parameters.
    """
    shapes: ClassVar[Mapping[str, str]]
    """The shape of each parameter of the constructor except ``n_items`` and ``n_positions``:
    ``"L"`` means a value for each item, ``"K"`` a value for each position, ``"KK"`` a value for
    each position and each position of the last click above, and ``""`` a single number. The
    probability that an examined item is clicked must be called ``attraction`` and come first; a
    click model without ``attraction`` has no contextual environments.
    """
    rewards: tuple[str, ...] = ("clicks", "any_click")
    iid_sessions = True
    contextual_reward: ClassVar[str] = "any_click"
    """The default reward in contextual environments (``"any_click"`` as in He et al. 2020)."""
    sample_kernel: ClassVar[Callable[..., Any]]
    marginals_kernel: ClassVar[Callable[..., Any]]
    expected_kernel: ClassVar[Callable[..., Any]]
    scan_kernel: ClassVar[Callable[..., Any] | None] = None

    parameters: Any

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        make_kernels_static(cls, KERNELS)
        if "short" not in vars(cls):
            return
        name = f"{cls.__module__}.{cls.__qualname__}"
        namesake = UserModel.classes.get(cls.short, cls)
        # Running a notebook cell again defines its class again; the new class replaces the old one.
        if f"{namesake.__module__}.{namesake.__qualname__}" != name:
            raise ValueError(
                f"{name}: {namesake} already has the short name {cls.short!r}; give your class "
                "another short name"
            )
        UserModel.classes[cls.short] = CLICK_MODELS[cls.short] = cls

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a copy, and make its parameter arrays read-only again. NumPy's copies of
        read-only arrays are writeable, which would make numba compile the kernels again.
        """
        vars(self).update(state)
        for values in self.parameters:
            if isinstance(values, np.ndarray):
                values.flags.writeable = False

    @classmethod
    def item_parameters(cls) -> list[str]:
        """Return the names of the parameters with one value per item, ``attraction`` first."""
        return [name for name, shape in cls.shapes.items() if shape == "L"]

    @property
    def n_items(self) -> int:
        """L, the number of items, which is the length of the first item parameter. A click model
        without item parameters must override this property.
        """
        return len(getattr(self.parameters, self.item_parameters()[0]))

    @property
    def epochs(self) -> Sequence[ClickModel]:
        """The click models of all epochs: only this model, because its users never change."""
        return (self,)

    @property
    def attraction(self) -> NDArray[np.float64]:
        """``(L,)`` attraction probability of each item."""
        if "attraction" not in self.shapes:
            raise AttributeError(f"a {type(self).__name__} has no parameter attraction")
        return self.parameters.attraction

    def tasks(
        self, reward: str, cutoff: int | None, reference: ArrayLike | None
    ) -> list[ClickTask]:
        """Return the model's only task, in a list (see `UserModel.tasks`)."""
        code, n_counted = self.check_reward(reward, cutoff)
        if reference is None:
            best = self._best_list(code, n_counted)
        else:
            best = named_ranking("reference", reference, self.n_items, self.n_positions)
        return [ClickTask(self, code, n_counted, best, self._expectation(best, code, n_counted))]

    # ----------------------------------------------------------------------------- public methods

    def sample(self, ranking: ArrayLike, rng: np.random.Generator) -> NDArray[np.int8]:
        """Draw the clicks of one session.

        Args:
            ranking: K distinct item ids.
            rng: the random generator, from which exactly `n_uniforms` numbers are drawn.

        Returns:
            ``(K,)`` int8, 1 at each position that was clicked and 0 at the others.
        """
        clicks, examined = np.empty((2, self.n_positions), np.int8)
        check_kind("rng", rng, np.random.Generator, "a numpy.random.Generator")
        items = check_ranking(ranking, self.n_items, self.n_positions)
        uniforms = rng.random(self.n_uniforms)
        entry(self.sample_kernel)(self.parameters, items, uniforms, clicks, examined)
        return clicks

    def click_probabilities(self, ranking: ArrayLike) -> NDArray[np.float64]:
        """Return the exact probability that each position of ``ranking`` is clicked, ``(K,)``."""
        return self._marginals(ranking)[1]

    def examination_probabilities(self, ranking: ArrayLike) -> NDArray[np.float64]:
        """Return the exact probability that each position of ``ranking`` is examined, ``(K,)``."""
        return self._marginals(ranking)[0]

    def expected_reward(
        self, ranking: ArrayLike, reward: str = "clicks", cutoff: int | None = None
    ) -> float:
        """Return the exact expected reward of a list.

        Args:
            ranking: ``(K,)`` distinct item ids.
            reward: ``"clicks"`` (the number of clicks), ``"any_click"`` (1 if the user clicked) or
                ``"satisfaction"`` (1 if the user left satisfied; only some click models define
                this reward).
            cutoff: the number of positions, from the top, whose clicks count, in ``1..K``; by
                default, all positions.

        Returns:
            The expectation over the user's random behaviour.

        Raises:
            ValueError: the reward is unknown, the cutoff is outside ``1..K``, or the ranking is
                invalid.
        """
        code, cutoff = self.check_reward(reward, cutoff)
        items = check_ranking(ranking, self.n_items, self.n_positions)
        return self._expectation(items, code, cutoff)

    def optimal_ranking(
        self, reward: str = "clicks", cutoff: int | None = None
    ) -> NDArray[np.int64]:
        """Return the list with the highest expected reward.

        For some click models, a theorem or a scan gives the best list directly. For the others, an
        exact search considers up to `MAX_SEARCH` lists. Positions below ``cutoff`` show the
        remaining items by decreasing attraction, or by id if the model has no attraction.

        Args:
            reward, cutoff: see `expected_reward`.

        Returns:
            ``(K,)`` int64 item ids.

        Raises:
            ValueError: the reward or the cutoff is invalid; the exact search would have to consider
                more than `MAX_SEARCH` lists; or the users are ``env.task.model`` of a
                ``Contextual…`` environment, where each session has its own items.
        """
        if np.isnan(self._merits()).any():
            raise ValueError(
                "the items of these users change in every session, so they have no best list; "
                "info['optimal_ranking'] is the best list of the next session"
            )
        return self._best_list(*self.check_reward(reward, cutoff))

    def search_bounds(self, cutoff: int) -> NDArray[np.float64]:
        """Return upper bounds on examination probabilities for the exact search, ``(m, m)``: row k
        contains the bounds for positions k to m - 1 in decreasing order.
        """
        bounds = np.zeros((cutoff, cutoff))
        for k in range(cutoff):
            bounds[k, : cutoff - k] = np.sort(self._examination_bounds()[k:cutoff])[::-1]
        return bounds

    def check_search(self, reward: str, cutoff: int) -> None:
        """Check that an exact search for the best list would not be too large.

        Raises:
            ValueError: the search would consider more than `MAX_SEARCH` lists.
        """
        lists = math.perm(self.n_items, cutoff)
        if lists > MAX_SEARCH:
            counts = range(cutoff, 0, -1)
            most = next((n for n in counts if math.perm(self.n_items, n) <= MAX_SEARCH), 1)
            raise ValueError(
                f"the best list for reward={reward!r} in a {type(self).__name__} requires an "
                f"exact search over {lists:.3g} lists of {cutoff} out of {self.n_items} "
                f"items, more than the limit of {MAX_SEARCH:.0e}; count fewer positions "
                f"(cutoff={most}), or pass the list to measure regret against (reference=...)"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return a description for JSON: the model's name and the constructor's arguments."""
        arguments = {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in self._arguments().items()
        }
        return {"model": self.name(), **arguments}

    def with_positions(self, n_positions: int) -> Self:
        """Return the same click model with only its first ``n_positions`` positions."""
        arguments = self._arguments()
        if "n_positions" in arguments:
            return type(self)(**arguments | {"n_positions": n_positions})
        n_positions = check_positions(n_positions, self.n_items, self.n_positions)
        for name, shape in self.shapes.items():
            if "K" in shape:
                arguments[name] = arguments[name][(slice(n_positions),) * len(shape)]
        return type(self)(**arguments)

    def _arguments(self) -> dict[str, Any]:
        """Return the constructor's arguments: the parameters, and ``n_items`` or ``n_positions`` if
        no parameter has this length.
        """
        letters, sizes = "".join(self.shapes.values()), {}
        if "L" not in letters:
            sizes["n_items"] = self.n_items
        if "K" not in letters:
            sizes["n_positions"] = self.n_positions
        return {name: getattr(self.parameters, name) for name in self.shapes} | sizes

    def with_items(self, **parameters: ArrayLike) -> Self:
        """Return the same click model with other items.

        Args:
            **parameters: ``(L,)`` new values of item parameters, by name; the other parameters stay
                the same.
        """
        return type(self)(**self._arguments() | parameters)

    def relabelled(self, order: NDArray[np.int64]) -> Self:
        order = named_ranking("order", order, self.n_items, self.n_items)
        names = self.item_parameters()
        return self.with_items(**{name: getattr(self.parameters, name)[order] for name in names})

    def position_weights(self) -> NDArray[np.float64] | None:
        """Return the examination probability of each position, ``(K,)``; None if examination
        depends on the list. Agents can require these probabilities.
        """
        return None

    def browsing_weights(self) -> NDArray[np.float64] | None:
        """Return the examination probabilities by position and last click above the position,
        ``(K, K)``; None if examination depends on anything else.

        Agents can require these probabilities. They are laid out like the parameter ``examination``
        of `UserBrowsingModel`.
        """
        return None

    def knowledge(self, source: str, production: NDArray[np.int64] | None = None) -> Any:
        if source == "browsing":
            return self.browsing_weights()
        if source != "examination":
            return None
        weights = self.position_weights()
        # Use the probabilities that an experiment with the production list would measure.
        if weights is None and production is not None:
            return self.examination_probabilities(production[: self.n_positions])
        return weights

    def best_ranks(self, reward: int, cutoff: int) -> NDArray[np.int64] | None:
        """Return the ranks of the items at the first ``cutoff`` positions of a best list; None if
        no theorem gives the best list.

        Rank 0 is the item with the highest attraction; in a click model without attraction, ranks
        are ids.
        """
        return None

    # ---------------------------------------------------------------------------- private methods

    def _expectation(self, ranking: NDArray[np.int64], reward: int, cutoff: int) -> float:
        """Return the `expected_reward` of a valid list, for a reward given as an index in
        `REWARDS`.

        The kernel runs as a Python function, which returns the same digits, because compiling takes
        longer than thousands of calls.
        """
        scratch = np.empty(self.n_positions + 1)
        return float(self.expected_kernel(self.parameters, ranking, reward, cutoff, scratch))

    def _best_list(self, reward: int, cutoff: int) -> NDArray[np.int64]:
        """Return the `optimal_ranking` for a reward given as an index in `REWARDS`."""
        order, ranks = argsort_descending(self._merits()), self._places(reward, cutoff)
        if ranks is not None:
            head = order[ranks]
        elif self.scan_kernel is not None:
            gain, continuation = np.empty((2, self.n_items))
            entry(self.scan_kernel)(self.parameters, reward, gain, continuation)
            head = best_scan(gain, continuation, cutoff)
        else:
            head = self._search(REWARDS[reward], cutoff)
        return np.concatenate([head, order[~np.isin(order, head)]])[: self.n_positions]

    def _places(self, reward: int, cutoff: int) -> NDArray[np.int64] | None:
        """Return the `best_ranks`. A subclass written for clickgym 9.0 overrides this method."""
        return self.best_ranks(reward, cutoff)

    def _examination_bounds(self) -> NDArray[np.float64]:
        """Return upper bounds on each position's examination probability in any list, ``(K,)``. The
        exact search uses these bounds.
        """
        return np.ones(self.n_positions)

    def _merits(self) -> NDArray[np.float64]:
        """Return the values by which items are sorted, ``(L,)``: their attractions, or ones if the
        click model has no attraction.
        """
        return self.parameters.attraction if "attraction" in self.shapes else np.ones(self.n_items)

    def _click_bounds(self) -> NDArray[np.float64]:
        """Return upper bounds on each item's click probability if examined, ``(L,)``. The exact
        search uses these bounds.
        """
        return self._merits()

    def _search(self, reward: str, cutoff: int) -> NDArray[np.int64]:
        """Return the best of all lists of ``cutoff`` items, found by the exact search."""
        self.check_search(reward, cutoff)
        attraction = self._click_bounds()
        search = Search(  # head starts with valid items: a kernel may read below the cutoff
            bounds=self.search_bounds(cutoff),
            head=np.zeros(cutoff, np.int64),
            value=np.zeros(cutoff),
            choice=np.full(cutoff, -1),
            is_listed=np.zeros(self.n_items, np.bool_),
            best=np.empty(cutoff, np.int64),
        )
        code, scratch = REWARDS.index(reward), np.empty(self.n_positions + 1)
        entry(make_search_kernel(self.expected_kernel))(
            self.parameters, attraction, argsort_descending(attraction), code, scratch, search
        )
        return search.best

    def _marginals(self, ranking: ArrayLike) -> NDArray[np.float64]:
        items = check_ranking(ranking, self.n_items, self.n_positions)
        result, scratch = np.empty((2, self.n_positions)), np.empty(self.n_positions + 1)
        entry(self.marginals_kernel)(self.parameters, items, result[0], result[1], scratch)
        return result


class CompositeModel(UserModel, abstract=True):
    """Base class of users that consist of several click models over the same items and positions.

    Attributes:
        models: the click models.
    """

    models: list[ClickModel]

    def _with_models(self, models: list[ClickModel]) -> Self:
        """Return users of the same class and with the same other arguments, but with the given
        click models.
        """
        raise NotImplementedError

    @property
    def n_items(self) -> int:
        return self.models[0].n_items

    @property
    def n_uniforms(self) -> int:
        return max(model.n_uniforms for model in self.models)

    def relabelled(self, order: NDArray[np.int64]) -> Self:
        return self._with_models([model.relabelled(order) for model in self.models])

    def with_positions(self, n_positions: int) -> Self:
        return self._with_models([model.with_positions(n_positions) for model in self.models])


def click_model_of(name: str, model: ClickModel | Mapping[str, Any]) -> ClickModel:
    """Return ``model``, or the click model that it describes if it is the ``to_dict()`` of a click
    model. Errors call the argument ``name``.
    """
    users = user_model_from(name, model)
    if not users.short:
        raise ValueError(
            f"{name} is a {users.name()}; expected a click model whose parameters stay the same in "
            "all sessions"
        )
    return users


def click_models_of(models: Any, least: int) -> list[ClickModel]:
    """Return an argument ``models`` as a list of click models over the same numbers of items and
    positions; an entry may be the ``to_dict()`` of a click model.

    Raises:
        ValueError: there are fewer than ``least`` entries, an entry is not a click model, or the
            click models have different sizes.
    """
    entries = as_list("models", models, expected := f"a list of {least} or more click models")
    if len(entries) < least:
        raise value_error("models", models, expected)
    click_models = [
        click_model_of(f"models[{number}]", model) for number, model in enumerate(entries)
    ]
    first = click_models[0]
    for number, model in enumerate(click_models):
        if (model.n_items, model.n_positions) != (first.n_items, first.n_positions):
            raise ValueError(
                f"models[{number}] is {model}; expected the same n_items and n_positions as in "
                f"models[0], {first}"
            )
    return click_models


def ranks_of(weights: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the rank of each position's weight, ``(K,)``, with 0 for the largest weight.

    If the reward is supermodular in item and weight, the k-th best item belongs at the position
    with the k-th largest weight.
    """
    ranks = np.empty(len(weights), np.int64)
    ranks[argsort_descending(weights)] = np.arange(len(weights))
    return ranks


@cache
def make_search_kernel(expected: Callable[..., float]) -> Callable[..., None]:
    """Return the kernel that searches for the best list, for click models with the kernel
    ``expected``.
    """

    @kernel
    def search(parameters, attraction, candidates, reward, scratch, memory):
        """Write the best list of m ``candidates`` into ``memory.best``, by depth-first search with
        pruning.

        ``candidates`` are sorted by decreasing attraction, and ``memory`` has the fields of a
        `Search`. The expected number of clicks on a prefix does not depend on the items below the
        prefix. Position k adds at most the bound on its examination times the attraction of its
        item. Therefore, the value of any list with a candidate at the current depth is at most the
        value of the prefix above, plus the candidate's attraction times the largest remaining
        bound, plus the sum of the other remaining attractions times the bounds below the current
        depth, both in decreasing order. If this sum does not exceed the best value so far, neither
        this candidate nor the less attractive ones after it lead to a better list.
        """
        bounds, ranking, value_above = memory.bounds, memory.head, memory.value
        choice, is_listed, best = memory.choice, memory.is_listed, memory.best
        depth_limit, n_items = len(best), len(candidates)
        best_value, depth = -1.0, 0
        while depth >= 0:
            # Take the next free candidate at this depth; if none is left, go back one depth.
            if choice[depth] >= 0:
                is_listed[choice[depth]] = False
            choice[depth] += 1
            while choice[depth] < n_items and is_listed[choice[depth]]:
                choice[depth] += 1
            if choice[depth] == n_items:
                choice[depth] = -1
                depth -= 1
                continue
            is_listed[choice[depth]] = True
            item = candidates[choice[depth]]

            # Go back one depth unless the bound exceeds the best value so far.
            bound, j = value_above[depth] + bounds[depth, 0] * attraction[item], 0
            for i in range(n_items):
                if j == depth_limit - depth - 1:
                    break
                if not is_listed[i]:
                    bound += bounds[depth + 1, j] * attraction[candidates[i]]
                    j += 1
            if bound <= best_value * LARGER_BY:
                is_listed[choice[depth]] = False
                choice[depth] = -1
                depth -= 1
                continue

            # Go deeper; if the list is complete, keep it if it is the best so far.
            ranking[depth] = item
            value = expected(parameters, ranking, reward, depth + 1, scratch)
            if depth + 1 < depth_limit:
                depth += 1
                value_above[depth] = value
            elif value > best_value * LARGER_BY:
                best_value = value
                for k in range(depth_limit):
                    best[k] = ranking[k]

    return search
