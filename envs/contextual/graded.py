"""The simulated users of online learning to rank, by grades of relevance: how likely each clicks, and stops after a click.

They are dynamic Bayesian network models with perseverance 1: the click probability of a document's grade is its attraction, the
stop probability its satisfaction.

⚠ In the papers a user may stop after a *click*, which is what these users do. The code released beside them
(``utils/clicks.py`` of HarrieO/OnlineLearningToRank) flips the coin at every examined document, clicked or not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.checks import check_count, check_positions, integers, is_sequence, short, unknown
from ..dynamic_bayesian import DynamicBayesianModel
from .interactions import with_products
from .model import LabelledModel

Probabilities = tuple[float, ...]

GRADED_USERS: dict[str, dict[int, tuple[Probabilities, Probabilities]]] = {
    "perfect": {
        2: ((0.0, 1.0), (0.0, 0.0)),
        3: ((0.0, 0.5, 1.0), (0.0, 0.0, 0.0)),
        5: ((0.0, 0.2, 0.4, 0.8, 1.0), (0.0, 0.0, 0.0, 0.0, 0.0)),
    },
    "navigational": {
        2: ((0.05, 0.95), (0.2, 0.9)),
        3: ((0.05, 0.5, 0.95), (0.2, 0.5, 0.9)),
        5: ((0.05, 0.3, 0.5, 0.7, 0.95), (0.2, 0.3, 0.5, 0.7, 0.9)),
    },
    "informational": {
        2: ((0.4, 0.9), (0.1, 0.5)),
        3: ((0.4, 0.7, 0.9), (0.1, 0.3, 0.5)),
        5: ((0.4, 0.6, 0.7, 0.8, 0.9), (0.1, 0.2, 0.3, 0.4, 0.5)),
    },
    "almost_random": {
        2: ((0.4, 0.6), (0.5, 0.5)),
        3: ((0.4, 0.5, 0.6), (0.5, 0.5, 0.5)),
        5: ((0.4, 0.45, 0.5, 0.55, 0.6), (0.5, 0.5, 0.5, 0.5, 0.5)),
    },
}
"""By name and number of grades: the probabilities of a click, and of stopping after one, from grade 0 up."""

MOST_GRADES = max(max(tables) for tables in GRADED_USERS.values())
NUMBERS_OF_GRADES = tuple(GRADED_USERS["perfect"])  # the others have tables of the same sizes


def _click_and_stop(behaviour: str, highest: int) -> NDArray[np.float64]:
    """``(2, grades)`` from the smallest of the tables that have the highest grade."""
    if not isinstance(behaviour, str) or behaviour not in GRADED_USERS:
        raise ValueError(unknown("behaviour", behaviour, GRADED_USERS))
    tables = GRADED_USERS[behaviour]
    return np.array(tables[min(n_grades for n_grades in tables if n_grades > highest)])


def fewest_grades(highest: int) -> int:
    """Of how many grades the smallest of the tables is that have the highest grade."""
    return min(n_grades for n_grades in NUMBERS_OF_GRADES if n_grades > highest)


def graded_model(grades: ArrayLike, behaviour: str, *, n_positions: int) -> DynamicBayesianModel:
    """The click model of simulated users for items of given grades.

    Args:
        grades: ``(L,)`` whole numbers from 0 to 4. There are 2, 3 or 5 grades: as few as have the highest of them.
        behaviour: a key of `GRADED_USERS`.
        n_positions: K, at most L.

    Raises:
        ValueError: naming the argument and what was expected.

    Example:
        >>> model = graded_model([0, 2, 1], "navigational", n_positions=2)
        >>> model.attraction, model.satisfaction, model.perseverance
        (array([0.05, 0.95, 0.5 ]), array([0.2, 0.9, 0.5]), 1.0)
    """
    given = integers("grades", grades, (None,), 0, MOST_GRADES)
    click, stop = _click_and_stop(behaviour, int(given.max()))
    return DynamicBayesianModel(click[given], stop[given], n_positions=n_positions)


class HeldOut(NamedTuple):
    """Held-out queries: no session is about them."""

    candidates: list[NDArray[np.int64]]  # of each the numbers of its items
    grades: list[NDArray[np.int64]]  # of these


class GradedModel(LabelledModel):
    """Simulated users of online learning to rank: whether they click a document, and then stop, depends on its grade of
    relevance.

    The model is a `ContextualModel`: every session is about one query, and each query has other documents. Given the documents
    of a session, users follow a dynamic Bayesian network model.

    Args:
        behaviour: how the users click and stop, a key of `GRADED_USERS`.
        items: ``(N, d)`` features of the documents; ``‖x‖₂ ≤ 1`` for all that are candidates.
        candidates: for each query the numbers of its documents, at least L.
        grades: for each query the grades of these, whole numbers from 0 to 4. There are 2, 3 or 5 grades: as few as have the
            highest of them, those held out included; `of_grades` makes them more.
        n_items: L, documents to choose from in a session, drawn from those of its query.
        n_positions: K.
        held_out: queries that no session is about, on which what was learned is measured (`held_out_ndcg`): a mapping with
            ``candidates`` and ``grades``, of any number of documents each; None: there are none.

    Attributes:
        click_by_grade: the probability of a click, from grade 0 up; it increases.

    Raises:
        ValueError: naming the parameter and what was expected.

    Source:
        Hofmann, Whiteson, de Rijke, *Balancing exploration and exploitation in listwise and pairwise online learning to rank
            for information retrieval*, Information Retrieval 2013.
        Oosterhuis, de Rijke, *Differentiable unbiased online learning to rank*, CIKM 2018, table 1.

    Example:
        >>> items = [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]
        >>> model = GradedModel("perfect", items, [[0, 1, 2]], [[0, 2, 1]], n_items=2, n_positions=2)
        >>> model.kind, model.attractions
        ('GradedModel of DBN', [array([0. , 1. , 0.5])])
    """

    def __init__(
        self,
        behaviour: str,
        items: ArrayLike,
        candidates: Sequence[ArrayLike],
        grades: Sequence[ArrayLike],
        *,
        n_items: int,
        n_positions: int,
        held_out: Mapping[str, Any] | None = None,
    ) -> None:
        self.behaviour = behaviour
        self.grades = _of_each_query("grades", grades, "grades", MOST_GRADES)
        self.held_out = None if held_out is None else _checked(held_out, len(np.asarray(items)))
        judged = self.grades + ([] if self.held_out is None else self.held_out.grades)
        click, stop = _click_and_stop(behaviour, max(int(given.max()) for given in judged))
        self.click_by_grade = click
        check_positions(n_positions, check_count("n_items", n_items))
        base = DynamicBayesianModel(np.zeros(n_items), np.zeros(n_items), n_positions=n_positions)
        attraction, satisfaction = ([table[given] for given in self.grades] for table in (click, stop))
        super().__init__(base, candidates, attraction, items, satisfaction=satisfaction)

    @property
    def n_grades(self) -> int:
        """How many grades of relevance the users distinguish."""
        return len(self.click_by_grade)

    @property
    def _fewest_grades(self) -> int:
        """How many these grades need."""
        judged = self.grades + ([] if self.held_out is None else self.held_out.grades)
        return fewest_grades(max(int(grades.max()) for grades in judged))

    def of_grades(self, n_grades: int) -> Self:
        """The same documents for users who distinguish ``n_grades`` grades; a higher grade may be missing from these documents.

        Args:
            n_grades: 2, 3 or 5, and no fewer than these grades need.

        Raises:
            ValueError: there is no table of so many, or it lacks one of these grades.

        Example:
            >>> GradedModel("perfect", [[1.0]] * 2, [[0, 1]], [[0, 1]], n_items=2, n_positions=1).of_grades(5).attractions
            [array([0. , 0.2])]
        """
        offered = [number for number in NUMBERS_OF_GRADES if number >= self._fewest_grades]
        if check_count("n_grades", n_grades) not in offered:
            raise ValueError(f"n_grades is {n_grades}; expected {' or '.join(map(str, offered))}, as these grades need")
        if n_grades == self.n_grades:
            return self
        # Not in the constructor: what it reaches is part of the digest of results that ship.
        click, stop = _click_and_stop(self.behaviour, n_grades - 1)
        made = copy(self)
        made.click_by_grade = click
        attraction, satisfaction = ([table[grades] for grades in self.grades] for table in (click, stop))
        LabelledModel.__init__(made, self.base, self.candidates, attraction, self.items, satisfaction=satisfaction)
        return made

    def before(self, behaviour: str) -> GradedModel:
        """The same documents for users with another behaviour."""
        return self._changed(behaviour=behaviour)

    def with_positions(self, n_positions: int) -> GradedModel:
        return self._changed(n_positions=n_positions)

    def _changed(self, **arguments: Any) -> GradedModel:
        made = GradedModel(**(self._arguments() | arguments)).of_grades(self.n_grades)
        return made.with_interactions(self.interactions)

    @classmethod
    def described(cls, interactions: ArrayLike | None = None, n_grades: int | None = None, **parameters: Any) -> Self:
        made = super().described(interactions, **parameters)
        return made if n_grades is None else made.of_grades(n_grades)

    def _arguments(self) -> dict[str, Any]:
        return {
            "behaviour": self.behaviour,
            "items": self.items,
            "candidates": self.candidates,
            "grades": self.grades,
            "n_items": self.n_items,
            "n_positions": self.n_positions,
            "held_out": None if self.held_out is None else self.held_out._asdict(),
        }

    def to_dict(self) -> dict[str, Any]:
        lists = {"candidates": _lists(self.candidates), "grades": _lists(self.grades)}
        held_out = None if self.held_out is None else {key: _lists(of) for key, of in self.held_out._asdict().items()}
        # Only where it is news: descriptions without it, and their digests, stay as they were.
        more = self._interactions() | ({} if self.n_grades == self._fewest_grades else {"n_grades": self.n_grades})
        return {"model": self.name()} | self._arguments() | {"items": self.items.tolist(), **lists, "held_out": held_out} | more

    def held_out_ndcg(self, best: Callable[[NDArray[np.float64]], NDArray[np.int64]], cutoff: int = 10) -> float:
        """The mean NDCG of lists over the held-out queries.

        A document of grade g has the gain ``2^g - 1``, and position k the discount ``log2(k + 1)``.

        Args:
            best: orders the rows of ``(n, d)`` features, the best first. It meets them in an
                order that is random and always the same, so that ties tell nothing.
            cutoff: how many positions count.

        Returns:
            A number from 0 to 1; a query without a relevant document counts 0.

        Raises:
            ValueError: no queries are held out.

        Example:
            >>> held_out = {"candidates": [[0, 1, 2]], "grades": [[1, 0, 2]]}
            >>> pages = [[1.0], [0.2], [0.5]]
            >>> model = GradedModel("perfect", pages, [[0, 1]], [[1, 0]], n_items=2, n_positions=2, held_out=held_out)
            >>> round(model.held_out_ndcg(lambda features: np.argsort(-features[:, 0])), 3)
            0.797
        """
        check_count("cutoff", cutoff)
        if self.held_out is None:
            raise ValueError("no queries are held out; expected a model with held_out")
        rng, total = np.random.default_rng(0), 0.0
        for numbers, grades in zip(*self.held_out, strict=True):
            met = rng.permutation(len(numbers))
            gain = gain_of_grades(grades)
            discounts = rank_discounts(min(cutoff, len(gain)))
            ideal = float(np.sort(gain)[::-1][: len(discounts)] @ discounts)
            if ideal > 0:
                ranking = met[best(with_products(self.items[numbers[met]], self.interactions))]
                total += float(gain[ranking[: len(discounts)]] @ discounts) / ideal
        return total / len(self.held_out.candidates)


def gain_of_grades(grades: NDArray[np.int64]) -> NDArray[np.float64]:
    """The gain of documents of these grades in NDCG, ``2^g - 1``."""
    return np.exp2(grades) - 1.0


def rank_discounts(n_positions: int) -> NDArray[np.float64]:
    """The factor of the gain at each position in NDCG, ``1 / log2(k + 1)``."""
    return 1.0 / np.log2(np.arange(2, n_positions + 2))


def _lists(arrays: Sequence[NDArray[np.int64]]) -> list[list[int]]:
    return [values.tolist() for values in arrays]


def _of_each_query(name: str, given: Any, what: str, below: int) -> list[NDArray[np.int64]]:
    if not is_sequence(given) or not len(given):
        raise ValueError(f"{name} is {short(given)}; expected {what} for each query")
    return [integers(f"{name}[{query}]", values, (None,), 0, below) for query, values in enumerate(given)]


def _checked(held_out: Mapping[str, Any], n_items: int) -> HeldOut:
    if not isinstance(held_out, Mapping) or set(held_out) != set(HeldOut._fields):
        raise ValueError(f"held_out is {short(held_out)}; expected a mapping with 'candidates' and 'grades'")
    candidates = _of_each_query("candidates of held_out", held_out["candidates"], "the numbers of items", n_items)
    grades = _of_each_query("grades of held_out", held_out["grades"], "grades", MOST_GRADES)
    sizes = ([len(values) for values in given] for given in (candidates, grades))
    if len(set(map(tuple, sizes))) > 1:
        raise ValueError("candidates and grades of held_out have different lengths; expected a grade for each candidate")
    return HeldOut(candidates, grades)
