"""Contextual instances from data: ratings by He et al. 2020's recipe, and documents with labels of relevance.

A user's candidates are what it judged, for nothing is known of the rest. A user with fewer than L judgements is left out; of
one with more, L at random make a session. A query is a user, and its documents are what it judged.

*Attraction* of a label y: ``floor + (1 - floor) (2^y - 1) / 2^y_max``, y_max the largest label of the data. This is the gain of
the expected reciprocal rank (Chapelle et al., CIKM 2009), raised by a floor for clicks on what is irrelevant. Or, ``linear``,
the least-squares fit θ* of these attractions to the features, so that what the agents assume holds exactly; should a fitted
attraction leave [0, 1], all are moved and scaled until they fit.

*Features* begin with a constant, for attractions are not 0 on average, and have a norm of at most 1:

* ratings: ``x = [1, U(i)/‖U(i)‖, V(j)/‖V(j)‖] / √3`` from the singular value decomposition of the matrix of attractions, 0
  where nothing was rated (section 6.3 of the paper, which has neither the constant nor the lengths 1. Without them the lengths
  differ by factors of hundreds, and of what was rated little next to nothing is learned);
* documents: ``x = [1, f/‖f‖_max] / √2``, where each feature f_j was first divided by its largest absolute value, and the whole
  then reduced to fewer dimensions if that is asked for.

They are cut after six decimals, which keeps instance files small.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..envs import DEFAULT_INSTANCE, ClickModel, Instance, LabelledModel, LinearModel, load_instance
from ..envs.checks import check_count, check_flag, check_labels, check_positions, check_seed, numbers, probability, unknown
from .features import DenoisingAutoencoder, TruncatedSVD
from .judgements import Judgements

__all__ = ["REDUCTIONS", "contextual_instance", "label_attraction"]

Floats: TypeAlias = NDArray[np.float64]

REDUCTIONS = ("none", "svd", "autoencoder")
"""What can be done about the dimension of documents' features."""

MOST_NUMBERS = 500_000_000  # 4 GB of features at once; a slip in a feature's number asks for more


def label_attraction(labels: Floats, floor: float = 0.05) -> Floats:
    """The attraction of labels, by the map in the module's docstring.

    Args:
        labels: numbers from 0.
        floor: attraction of the label 0, in [0, 1].

    Returns:
        Probabilities; the largest label's is ``1 - (1 - floor) 2^-y_max``.

    Example:
        >>> label_attraction(np.array([0.0, 1.0, 4.0]), floor=0.0)
        array([0.    , 0.0625, 0.9375])
    """
    labels, floor = numbers("labels", labels, (None,), 0.0), probability("floor", floor)
    most = labels.max()
    return floor + (1.0 - floor) * (np.exp2(labels - most) - np.exp2(-most))


def contextual_instance(
    judgements: Judgements,
    models: Sequence[str] = ("UBM",),
    *,
    n_items: int = 10,
    n_positions: int = 5,
    linear: bool = False,
    floor: float = 0.05,
    reduce: str = "none",
    dimension: int = 10,
    most_rated: int | None = None,
    examination: str = DEFAULT_INSTANCE,
    seed: int = 0,
    name: str = "contextual",
    origin: str = "",
) -> Instance:
    """Make a contextual instance from ratings, or from documents with features.

    Args:
        judgements: ratings have no features, documents do.
        models: click models of the instance ``examination`` in which only attraction belongs to items: UBM, PBM, CM, DCM.
        n_items: L, candidates in each session.
        n_positions: K.
        linear: replace the labels' attraction by the linear function of the features that fits it best.
        floor: attraction of the label 0.
        reduce: of documents' features: one of `REDUCTIONS`.
        dimension: of the singular value decomposition (ratings have twice that many features and a constant) or of the code.
        most_rated: of ratings, keep only so many items, those with the most; None keeps all.
        examination: the instance whose users' examination is taken: a name or a file.
        seed: of decomposition and autoencoder.
        name, origin: of the instance.

    Returns:
        The instance; its ``estimation`` says how many users were left out, and how much of the variance of the labels'
        attraction the best linear function explains.

    Raises:
        ValueError: naming what does not fit together.
        ImportError: the autoencoder needs torch.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> users, items = (part.ravel() for part in np.indices((8, 12)))
        >>> names = tuple(map(str, range(12)))
        >>> ratings = Judgements(users, items, rng.integers(1, 6, 96), names[:8], names)
        >>> instance = contextual_instance(ratings, n_items=6, n_positions=3, dimension=2)
        >>> instance.model("LabelledModel of UBM").n_features
        5
    """
    models = check_labels("models", models)
    known = load_instance(examination)
    # Labels and features tell the attraction of items, and nothing else of them.
    offered = [
        kind for kind, model in known.models.items() if isinstance(model, ClickModel) and len(model.item_parameters()) == 1
    ]
    for model in models:
        if model not in offered:
            raise ValueError(unknown("model", model, offered))
    if not models or len(set(models)) < len(models):
        raise ValueError(f"models are {', '.join(models) or 'none'}; expected one or more of {', '.join(offered)}, each once")
    check_positions(n_positions, check_count("n_items", n_items))
    probability("floor", floor)
    check_count("dimension", dimension)
    check_seed(seed)
    check_flag("linear", linear)
    if reduce not in REDUCTIONS:
        raise ValueError(unknown("reduction", reduce, REDUCTIONS))
    bases = [known.model(model, n_positions).with_items(attraction=np.zeros(n_items)) for model in models]

    kept = np.ones(len(judgements), np.bool_)
    if most_rated is not None and judgements.features is not None:
        raise ValueError(f"most_rated is {most_rated}; only ratings can be reduced to the items with the most of them")
    if most_rated is not None and check_count("most_rated", most_rated):
        counts = np.bincount(judgements.items, minlength=len(judgements.item_labels))
        kept = np.isin(judgements.items, np.argsort(-counts, kind="stable")[:most_rated])
    entry_users, entry_items = judgements.users[kept], judgements.items[kept]
    attraction = label_attraction(judgements.labels[kept], floor)
    numbers, places = np.unique(entry_items, return_inverse=True)
    if judgements.features is None:
        if reduce != "none":
            raise ValueError(
                f"reduce is {reduce!r}; ratings have no features to reduce: dimension is that of their decomposition"
            )
        shape = (len(judgements.user_labels), len(numbers))
        users, items = _rating_features(sparse.csr_array((attraction, (entry_users, places)), shape), dimension, seed)
    else:
        users, items = None, _document_features(judgements.features[numbers], reduce, dimension, seed)

    order = np.argsort(entry_users, kind="stable")
    meets, starts, sizes = np.unique(entry_users[order], return_index=True, return_counts=True)
    enough = sizes >= n_items
    if not enough.any():
        raise ValueError(
            f"no user or query has {n_items} candidates, the most has {sizes.max()}; ask for fewer items in a session"
        )
    groups = [group for group, many in zip(np.split(order, starts[1:]), enough.tolist(), strict=True) if many]
    users = None if users is None else users[meets[enough]]
    candidates = [places[group] for group in groups]
    attractions = [attraction[group] for group in groups]
    theta, explained = _linear_fit(users, items, candidates, attractions)
    shared: dict[str, Any] = {"items": items, "users": users, "candidates": candidates}
    made = [
        LinearModel(base, theta, **shared) if linear else LabelledModel(base, attraction=attractions, **shared)
        for base in bases
    ]
    whose = "users" if judgements.features is None else "queries"
    source = "linear in them" if linear else f"from labels, {explained:.0%} of its variance linear in them"
    n_met = len(np.unique(np.concatenate(candidates)))
    return Instance(
        name,
        {model.kind: model for model in made},
        n_positions,
        description=f"{len(groups):,} {whose}, {n_met:,} items, {made[0].n_features} features; attraction {source}",
        origin=f"{origin}; examination: {known.origin}" if origin else f"examination: {known.origin}",
        estimation={
            "left_out": int((~enough).sum()),
            "attraction": "linear" if linear else "floor + (1 - floor) (2^label - 1) / 2^largest",
            "floor": floor,
            "explained_by_linear_fit": round(explained, 4),
            "features": "singular value decomposition" if judgements.features is None else reduce,
            "seed": seed,
        },
    )


def _rating_features(matrix: sparse.csr_array, dimension: int, seed: int) -> tuple[Floats, Floats]:
    svd = TruncatedSVD(dimension, seed=seed).fit(matrix)
    users, items = (
        vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-300) for vectors in (svd.users_, svd.items_)
    )
    constant = np.ones((len(users), 1))
    return _cut(np.hstack([constant, users]) / np.sqrt(3.0)), _cut(items / np.sqrt(3.0))


def _document_features(features: sparse.csr_array, reduce: str, dimension: int, seed: int) -> Floats:
    n_documents, n_features = features.shape
    if n_features * (dimension if reduce == "svd" else n_documents) > MOST_NUMBERS:
        raise ValueError(
            f"{n_documents:,} documents have features numbered up to {n_features:,}, too many to hold in memory with reduce = "
            f"{reduce!r}; number them without gaps, or try 'svd' and fewer dimensions"
        )
    largest = np.abs(features).max(axis=0).toarray().ravel()
    scaled = features.copy()
    scaled.data /= np.where(largest > 0, largest, 1.0)[scaled.indices]
    if reduce == "svd":
        reduced = TruncatedSVD(dimension, seed=seed).fit(scaled).transform(scaled)
    elif reduce == "autoencoder":
        reduced = DenoisingAutoencoder((25, dimension, dimension, 25), seed=seed).fit(scaled).transform(scaled)
    else:
        reduced = scaled.toarray()
    longest = np.linalg.norm(reduced, axis=1).max()
    return _cut(np.hstack([np.ones((len(reduced), 1)), reduced / (longest or 1.0)]) / np.sqrt(2.0))


def _cut(features: Floats) -> Floats:
    """Towards 0, so that no norm grows."""
    return np.trunc(features * 1e6) / 1e6


def _linear_fit(users: Floats | None, items: Floats, candidates: list[Any], attractions: list[Floats]) -> tuple[Floats, float]:
    """θ* with attractions in [0, 1], and the share of the variance that it explains before it is moved there."""
    counts = [len(numbers) for numbers in candidates]
    x = items[np.concatenate(candidates)]
    if users is not None:
        x = np.hstack([np.repeat(users, counts, axis=0), x])
    y = np.concatenate(attractions)
    theta: Floats = np.linalg.lstsq(x, y, rcond=None)[0]
    fitted = x @ theta
    variance = float(((y - y.mean()) ** 2).sum())
    # Of equal attractions the variance is rounding error, or 0.
    explained = 1.0 - float(((y - fitted) ** 2).sum()) / variance if np.ptp(y) else 1.0
    least, most = min(float(fitted.min()), 0.0), max(float(fitted.max()), 1.0)
    theta /= most - least
    theta[0] -= least / (most - least) / x[0, 0]  # the first feature is the constant
    return theta, explained
