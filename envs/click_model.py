"""Base class of click models: the interface, validation, and the exact search for the best list.

Letters used throughout the package: ``L`` items (``n_items``), ``K`` positions (``n_positions``),
``T`` sessions (``horizon``), ``m`` counted positions (``cutoff``).

A model has three kernels, the only functions of it that environments and the runner call:

``sample(parameters, ranking, uniforms, clicks, examined) -> int``
    Draws one session, with one uniform number per position: each position has a few outcomes (not
    examined, skipped, clicked, clicked and left, ...), and ``uniforms[k]`` chooses among those of
    position ``k`` (override `n_uniforms` to draw more numbers). Writes the click and examination
    indicators and returns the position at which the user left satisfied, or -1.
``marginals(parameters, ranking, examination, clicks, scratch)``
    Writes the exact probabilities that each position is examined and that it is clicked.
``expected(parameters, ranking, reward, cutoff, scratch) -> float``
    Returns the exact expected reward of a list; it reads only ``ranking[:cutoff]``.

If users scan from the top and their behaviour depends only on the current item, a model may have a
fourth kernel, from which its best lists follow (see `scan`):

``scan_kernel(parameters, reward, gain, continuation)``
    Writes the expected reward of each examined item, and the probability that the user continues
    below it.

``scratch`` is the caller's working memory of ``K + 1`` floats, because kernels allocate nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.checks import as_list, check_kind, check_positions, value_error
from ..core.kernels import entry, kernel, static_kernels
from .scan import best_scan
from .spaces import argsort_descending, check_ranking, named_ranking
from .task import REWARDS, ClickTask
from .user_model import UserModel, user_model_from

CLICK_MODELS: dict[str, type[ClickModel]] = {}
"""The click models by their short names."""

KERNELS = ("sample_kernel", "marginals_kernel", "expected_kernel", "scan_kernel")

MAX_SEARCH = 10_000_000
"""The largest number of lists, ``L! / (L - m)!``, that `ClickModel.optimal_ranking` searches if no
theorem gives the best list.
"""

MORE = 1.0 + 1e-12
"""A list must be better than the best so far by this factor, because a smaller difference may be
rounding.
"""


class Search(NamedTuple):
    """Working memory of the exact search, and its result."""

    bounds: NDArray[np.float64]  # (m, m) as `ClickModel.search_bounds` returns them
    head: NDArray[np.int64]  # (m,) the list so far
    choice: NDArray[np.int64]  # (m,) the candidate at each depth; before and after the search -1
    is_listed: NDArray[np.bool_]  # (L,) whether a candidate is in the list
    best: NDArray[np.int64]  # (m,) the best list


class ClickModel(UserModel, abstract=True):
    """Base class of click models: how users look at a ranked list and click on it.

    To add a model, write a subclass in one file, with a docstring, the three kernels that this
    module describes, and the method `_places` if a theorem gives the best list. Environment ids
    (see `clickgym.register_click_model`), instance files, documentation and tests are derived from
    the class. `clickgym.check_click_model` checks that the class is complete and consistent.

    Attributes:
        parameters: a named tuple of read-only arrays and floats, the first argument of the kernels.
        n_positions: K, the length of a list.
    """

    short: ClassVar[str]
    """The short name, such as ``"PBM"``: the prefix of the ids, the key in instance files, the name
    in commands.
    """
    title: ClassVar[str]
    """The name in words, such as ``"position-based model"``."""
    default_instance: ClassVar[str | None] = None
    """The default instance of the ids; None if the ids require an instance or parameters."""
    shapes: ClassVar[Mapping[str, str]]
    """The shape of each parameter of the constructor except ``n_items`` and ``n_positions``:
    ``"L"``, a value for each item; ``"K"``, for each position; ``"KK"``, for each position and last
    click above it; ``""``, a single number. The probability that an examined item is clicked is
    called ``attraction`` and comes first; a model without it has no contextual environments.
    """
    rewards: tuple[str, ...] = ("clicks", "any_click")
    iid_sessions = True
    contextual_reward: ClassVar[str] = "any_click"
    """The default reward if candidates change from session to session (as in He et al. 2020)."""
    sample_kernel: ClassVar[Callable[..., Any]]
    marginals_kernel: ClassVar[Callable[..., Any]]
    expected_kernel: ClassVar[Callable[..., Any]]
    scan_kernel: ClassVar[Callable[..., Any] | None] = None

    parameters: Any

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        static_kernels(cls, KERNELS)
        if "short" not in vars(cls):
            return
        name, namesake = (
            f"{cls.__module__}.{cls.__qualname__}",
            UserModel.classes.get(cls.short, cls),
        )
        # A notebook cell that is run again defines the same class again, which replaces the first.
        if f"{namesake.__module__}.{namesake.__qualname__}" != name:
            raise ValueError(
                f"{name}: {namesake} already has the short name {cls.short!r}; give your class "
                "another one"
            )
        UserModel.classes[cls.short] = CLICK_MODELS[cls.short] = cls

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a copy. NumPy copies read-only arrays to writeable ones, for which kernels would
        be compiled anew.
        """
        vars(self).update(state)
        for values in self.parameters:
            if isinstance(values, np.ndarray):
                values.flags.writeable = False

    @classmethod
    def item_parameters(cls) -> list[str]:
        """The parameters that belong to an item: attraction first, if the model has it."""
        return [name for name, shape in cls.shapes.items() if shape == "L"]

    @property
    def n_items(self) -> int:
        """L, the number of items: the length of the first item parameter. A model without item
        parameters overrides this.
        """
        return len(getattr(self.parameters, self.item_parameters()[0]))

    @property
    def epochs(self) -> Sequence[ClickModel]:
        """The model itself; `PiecewiseStationaryModel` returns its sequence of models here."""
        return (self,)

    @property
    def attraction(self) -> NDArray[np.float64]:
        """Attraction probability of each item, ``(L,)``."""
        if "attraction" not in self.shapes:
            raise AttributeError(f"a {type(self).__name__} has no attraction")
        return self.parameters.attraction

    def tasks(
        self, reward: str, cutoff: int | None, reference: ArrayLike | None
    ) -> list[ClickTask]:
        """As `UserModel.tasks`: a single task."""
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
            rng: the generator, from which exactly `n_uniforms` numbers are drawn.

        Returns:
            ``(K,)`` int8, 1 where the position was clicked.
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
            reward: ``"clicks"`` (their number), ``"any_click"`` (1 if the user clicked) or
                ``"satisfaction"`` (1 if the user left satisfied; only some models define it).
            cutoff: count only the first ``cutoff`` positions, in ``1..K``; by default all.

        Returns:
            The expectation over the user's behaviour.

        Raises:
            ValueError: an unknown reward, a cutoff outside ``1..K`` or a bad ranking.
        """
        code, cutoff = self.check_reward(reward, cutoff)
        items = check_ranking(ranking, self.n_items, self.n_positions)
        return self._expectation(items, code, cutoff)

    def optimal_ranking(
        self, reward: str = "clicks", cutoff: int | None = None
    ) -> NDArray[np.int64]:
        """Return the list with the highest expected reward.

        If a theorem gives the list, it is built directly; otherwise an exact search finds it, for
        at most `MAX_SEARCH` lists. Positions below ``cutoff`` show the remaining items by
        attraction, or by id in a model without attraction.

        Args:
            reward, cutoff: as in `expected_reward`.

        Returns:
            ``(K,)`` int64 item ids.

        Raises:
            ValueError: as in `expected_reward`, or the exact search would be too large.
        """
        return self._best_list(*self.check_reward(reward, cutoff))

    def search_bounds(self, cutoff: int) -> NDArray[np.float64]:
        """Return ``(m, m)`` for a search: row k has the bounds on the examination of the positions
        from k on, decreasing.
        """
        bounds = np.zeros((cutoff, cutoff))
        for k in range(cutoff):
            bounds[k, : cutoff - k] = np.sort(self._examination_bounds()[k:cutoff])[::-1]
        return bounds

    def check_search(self, reward: str, cutoff: int) -> None:
        """Check that a search for the best list is not too large.

        Raises:
            ValueError: it would compare more than `MAX_SEARCH` lists.
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
        """As `UserModel.to_dict`; its keys are the constructor's arguments."""
        arguments = {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in self._arguments().items()
        }
        return {"model": self.name(), **arguments}

    def with_positions(self, n_positions: int) -> Self:
        """Return the same model with only its first ``n_positions`` positions."""
        arguments = self._arguments()
        if "n_positions" in arguments:
            return type(self)(**arguments | {"n_positions": n_positions})
        n_positions = check_positions(n_positions, self.n_items, self.n_positions)
        for name, shape in self.shapes.items():
            if "K" in shape:
                arguments[name] = arguments[name][(slice(n_positions),) * len(shape)]
        return type(self)(**arguments)

    def _arguments(self) -> dict[str, Any]:
        """Return the arguments of the constructor: the parameters, and those sizes that cannot be
        read from the shape of a parameter.
        """
        letters, sizes = "".join(self.shapes.values()), {}
        if "L" not in letters:
            sizes["n_items"] = self.n_items
        if "K" not in letters:
            sizes["n_positions"] = self.n_positions
        return {name: getattr(self.parameters, name) for name in self.shapes} | sizes

    def with_items(self, **parameters: ArrayLike) -> Self:
        """Return the same users with other items: the attraction, or all item parameters, are
        replaced.
        """
        return type(self)(**self._arguments() | parameters)

    def relabelled(self, order: NDArray[np.int64]) -> Self:
        """As `UserModel.relabelled`."""
        order = named_ranking("order", order, self.n_items, self.n_items)
        names = self.item_parameters()
        return self.with_items(**{name: getattr(self.parameters, name)[order] for name in names})

    def position_weights(self) -> NDArray[np.float64] | None:
        """Return the examination probability of each position, ``(K,)``, for agents that require
        these probabilities; None if examination depends on the list.
        """
        return None

    def browsing_weights(self) -> NDArray[np.float64] | None:
        """Return the examination probabilities ``(K, K)`` by position and last click above the
        position, for agents that require these probabilities. Return None if examination depends on
        anything else.

        The layout is the same as in `UserBrowsingModel`.
        """
        return None

    def knowledge(self, source: str, production: NDArray[np.int64] | None = None) -> Any:
        """As `UserModel.knowledge`."""
        if source == "browsing":
            return self.browsing_weights()
        if source != "examination":
            return None
        weights = self.position_weights()
        if weights is None and production is not None:  # the position bias that one would measure
            return self.examination_probabilities(production[: self.n_positions])
        return weights

    # ---------------------------------------------------------------------------- private methods

    def _expectation(self, ranking: NDArray[np.int64], reward: int, cutoff: int) -> float:
        """Return `expected_reward` for a reward given by the kernels' code. The kernel runs as
        Python, which gives the same digits, because compiling takes longer than thousands of calls.
        """
        scratch = np.empty(self.n_positions + 1)
        return float(self.expected_kernel(self.parameters, ranking, reward, cutoff, scratch))

    def _best_list(self, reward: int, cutoff: int) -> NDArray[np.int64]:
        """Return `optimal_ranking` for a reward given by the kernels' code."""
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
        """Return the item at each of the first ``cutoff`` positions of a best list, as its place in
        the order of decreasing attraction (or of ids); None if no theorem determines it.
        """
        return None

    def _examination_bounds(self) -> NDArray[np.float64]:
        """Return for each position an upper bound on its examination in any list, for the
        search.
        """
        return np.ones(self.n_positions)

    def _merits(self) -> NDArray[np.float64]:
        """Return the values by which items are sorted: attraction, or equal values without it."""
        return self.parameters.attraction if "attraction" in self.shapes else np.ones(self.n_items)

    def _click_bounds(self) -> NDArray[np.float64]:
        """Return for each item an upper bound on its click probability if examined, for the
        search.
        """
        return self._merits()

    def _search(self, reward: str, cutoff: int) -> NDArray[np.int64]:
        """Return the best of all lists."""
        self.check_search(reward, cutoff)
        attraction = self._click_bounds()
        search = Search(  # the head holds valid items, because a kernel may read below the cutoff
            bounds=self.search_bounds(cutoff),
            head=np.zeros(cutoff, np.int64),
            choice=np.full(cutoff, -1),
            is_listed=np.zeros(self.n_items, np.bool_),
            best=np.empty(cutoff, np.int64),
        )
        code, scratch = REWARDS.index(reward), np.empty(self.n_positions + 1)
        entry(branch_and_bound(self.expected_kernel))(
            self.parameters, attraction, argsort_descending(attraction), code, scratch, search
        )
        return search.best

    def _marginals(self, ranking: ArrayLike) -> NDArray[np.float64]:
        items = check_ranking(ranking, self.n_items, self.n_positions)
        result, scratch = np.empty((2, self.n_positions)), np.empty(self.n_positions + 1)
        entry(self.marginals_kernel)(self.parameters, items, result[0], result[1], scratch)
        return result


class CompositeModel(UserModel, abstract=True):
    """Users of several click models over the same items and positions.

    Attributes:
        models: the click models.
    """

    models: list[ClickModel]

    def _with_models(self, models: list[ClickModel]) -> Self:
        """Return users of the same kind, made of other click models."""
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
    """Return ``model``, or the click model that a ``to_dict()`` describes. Errors name the
    argument.
    """
    users = user_model_from(name, model)
    if not hasattr(users, "short"):
        raise ValueError(
            f"{name} is a {users.name()}; expected a click model whose parameters stay the same in "
            "all sessions"
        )
    return users


def click_models_of(models: Any, least: int) -> list[ClickModel]:
    """Return the entries of an argument ``models``, as in `click_model_of`, all of one size.

    Raises:
        ValueError: as in `click_model_of`; fewer than ``least`` entries; different sizes.
    """
    entries = as_list("models", models, expected := f"a list of {least} or more click models")
    if len(entries) < least:
        raise value_error("models", models, expected)
    click_models = [
        click_model_of(f"models[{number}]", model) for number, model in enumerate(entries)
    ]
    for number, model in enumerate(click_models):
        if (model.n_items, model.n_positions) != (
            click_models[0].n_items,
            click_models[0].n_positions,
        ):
            raise ValueError(
                f"models[{number}] is {model}; expected the same n_items and n_positions as in "
                f"models[0], {click_models[0]}"
            )
    return click_models


def match(weights: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return for each position the rank of its weight: the k-th best item belongs to the k-th
    largest weight if the reward is supermodular in the pairs.
    """
    ranks = np.empty(len(weights), np.int64)
    ranks[argsort_descending(weights)] = np.arange(len(weights))
    return ranks


@cache
def branch_and_bound(expected: Callable[..., float]) -> Callable[..., None]:
    """Return the kernel of the exact search for a model with this kernel."""

    @kernel
    def search(parameters, attraction, candidates, reward, scratch, memory):
        """Depth-first search over lists of m of the ``candidates``, best attraction first;
        ``memory`` has the fields of a `Search`.

        The expected number of clicks in a prefix does not depend on the items below it, where
        position k adds at most the bound on its examination times the attraction of its item. So
        the value of any completion is at most that of the prefix plus the remaining attractions
        matched to the remaining bounds in decreasing order. A branch whose bound does not exceed
        the best value so far is pruned.
        """
        bounds, ranking, choice = memory.bounds, memory.head, memory.choice
        is_listed, best = memory.is_listed, memory.best
        depth_limit, n_items = len(best), len(candidates)
        best_value, depth = -1.0, 0
        while depth >= 0:
            # The next free candidate at this depth; if there is none, back to the depth above.
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
            ranking[depth] = candidates[choice[depth]]
            value = expected(parameters, ranking, reward, depth + 1, scratch)

            # A whole list: is it the best so far?
            if depth + 1 == depth_limit:
                if value > best_value * MORE:
                    best_value = value
                    for k in range(depth_limit):
                        best[k] = ranking[k]
                continue

            # A prefix: the depth below, if its bound exceeds the best value.
            bound, j = value, 0
            for i in range(n_items):
                if not is_listed[i]:
                    bound += bounds[depth + 1, j] * attraction[candidates[i]]
                    j += 1
                    if j == depth_limit - depth - 1:
                        break
            if bound > best_value * MORE:
                depth += 1

    return search
