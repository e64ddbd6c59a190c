"""The family ``queries`` of instances with many queries, for training and testing policies that
learn to explore.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from typing import Any

import numpy as np

from ...core.checks import check_choice, check_positions
from ..click_models.click_model import CLICK_MODELS, ClickModel
from ..users.queries import QueryUsers, means_of
from .families import child_rng, draw_model
from .instance import Count, Instance, Share, family, load_instance, shipped_instances

SPLITS = {
    "train": range(1000),
    "valid": range(1_000_000, 1_000_100),
    "test": range(2_000_000, 2_000_200),
}
"""The seeds of the queries in each split. ⚠ Do not change these seeds, because published results
depend on them.
"""


class LazyModels(Mapping[str, Any]):
    """Mapping from the kinds of users to the users, which are created when they are first needed.

    Args:
        sources: for each kind, the argument of ``build``.
        build: the function that creates the users.
    """

    def __init__(self, sources: Mapping[str, Any], build: Callable[[Any], Any]) -> None:
        self._sources, self._build = sources, build
        self._built: dict[str, Any] = {}

    def __getitem__(self, kind: str) -> Any:
        if kind not in self._built:
            self._built[kind] = self._build(self._sources[kind])
        return self._built[kind]

    def __iter__(self) -> Iterator[str]:
        return iter(self._sources)

    def __len__(self) -> int:
        return len(self._sources)


@family(
    "Each episode of 100 sessions uses a different query: one of 1,000 for training, 100 for "
    "validation or 200 for testing, or one of the 16 real queries (all click models except the "
    "mixture)"
)
def _queries(
    split: str = "train",
    n_items: Count = 10,
    n_positions: Count = 5,
    n_sessions: Count = 100,
    most: Share = 0.5,
) -> Instance:
    check_choice("split", split, (*SPLITS, "real"))
    check_positions(n_positions, n_items)
    origin = "drawn at random"
    kinds = [kind for kind, model in CLICK_MODELS.items() if model.shapes]
    if split == "real":
        real_query = load_instance(shipped_instances()[0])
        origin = f"the real queries, {real_query.origin}"
        kinds = [kind for kind in kinds if kind in real_query.models]
        if (n_items, most) != (real_query.n_items, 0.5):
            raise ValueError(
                f"n_items={n_items}, most={most}: leave out n_items and most, because real "
                f"queries have {real_query.n_items} items and their own attractions"
            )
    users = partial(_users, split, n_items, n_positions, n_sessions, most)
    sources = {f"{QueryUsers.name()} of {kind}": kind for kind in kinds}
    return Instance("", LazyModels(sources, users), n_positions, origin=origin)


def _users(
    split: str, n_items: int, n_positions: int, n_sessions: int, most: float, kind: str
) -> QueryUsers:
    """Return the users of a split under a click model. In every split, agents know only the means
    over the training split.
    """
    model_class = CLICK_MODELS[kind]
    train = _draw_queries("train", model_class, n_items, n_positions, most)
    if split == "real":
        models = [load_instance(name).model(kind, n_positions) for name in shipped_instances()]
    else:
        models = _draw_queries(split, model_class, n_items, n_positions, most)
    return QueryUsers(models, n_sessions, means_of(train))


# All splits and numbers of sessions share the queries of the training split.
@lru_cache(maxsize=16)
def _draw_queries(
    split: str, model_class: type[ClickModel], n_items: int, n_positions: int, most: float
) -> list[ClickModel]:
    """Return the click models of a split's random queries.

    Queries differ in the level and the spread of attractions, and in how fast examination decreases
    with the position. No parameter is fitted to a click log.
    """
    position = np.arange(1.0, n_positions + 1)
    k, j = np.indices((n_positions, n_positions))
    distance = np.maximum(k + 1.0 - j, 1.0)
    models = []
    for seed in SPLITS[split]:
        rng = child_rng(seed, 5)
        level, spread, fading = rng.random(3)
        middle = most * 0.05 ** (1.0 - level)  # log-uniform between most / 20 and most
        scale = 0.3 + 1.2 * spread
        eta = 0.3 + 1.7 * fading
        logit = np.log(middle / (1.0 - middle))
        attraction, satisfaction = 1.0 / (
            1.0 + np.exp(-(logit + scale * rng.standard_normal((2, n_items))))
        )
        table = {
            ("attraction", "L"): attraction,
            ("satisfaction", "L"): satisfaction,
            ("examination", "K"): position**-eta,
            ("examination", "KK"): np.tril(distance**-eta),
            ("termination", "K"): rng.random() * position ** -(eta / 2),
        }
        models.append(draw_model(model_class, table, n_items, n_positions, seed))
    return models
