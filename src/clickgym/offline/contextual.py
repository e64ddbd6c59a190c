"""Contextual instances from data: from ratings as in He et al. 2020, and from documents with relevance labels.

The candidates of a user are the items that the user judged, because nothing is known about other items. A user with fewer than
L judgements is left out. If there are more, each session shows L of them, drawn at random. For documents, a query takes the
role of the user, and its documents are the judged items.

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

  With ``normalise="query"`` a feature is moved and divided so that its values in each query go from 0 to 1, as most of that
  literature has it (all 0 where they do not differ).

They are cut after six decimals, which keeps instance files small.

``interactions`` adds *products* of features behind these, and one number scales all so that the largest norm is 1. For ratings
``"products"`` multiplies U_a(i) by V_a(j), as the decomposition does, and ``"outer"`` each U_a(i) by each V_b(j). ⚠ Queries
have no features: for documents these are the squares of f, or each product of two entries of f once. Products are not written
to the file: environments compute them in every session.

*Users by grades* (`GradedModel`) take the place of attraction and examination where ``users`` names them: documents must be
judged in whole grades, from 0 to 4. Queries *held out* get no sessions; their features are made by what was fitted to the
others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import compress
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..core.checks import (
    check_choice,
    check_count,
    check_flag,
    check_kind,
    check_labels,
    check_positions,
    check_seed,
    check_share,
    check_text,
    integers,
    numbers,
    probability,
    short,
)
from ..core.files import check_memory
from ..envs import DEFAULT_INSTANCE, ClickModel, GradedModel, Instance, LabelledModel, LinearModel, load_instance
from ..envs.contextual.graded import MOST_GRADES, fewest_grades
from ..envs.contextual.interactions import INTERACTIONS, interaction_pairs, largest_norm, with_products
from .distinct import grouped
from .features import DenoisingAutoencoder, TruncatedSVD
from .judgements import Judgements

Floats: TypeAlias = NDArray[np.float64]
Groups: TypeAlias = Sequence[NDArray[np.int64]]
Pairs: TypeAlias = NDArray[np.int64]
Attracted: TypeAlias = tuple[Sequence[LabelledModel | LinearModel | GradedModel], float, str]

REDUCTIONS = ("none", "svd", "autoencoder")
"""What can be done about the dimension of documents' features."""

NORMALISATIONS = ("largest", "query")
"""How documents' features are brought to one scale."""

MOST_NUMBERS = 500_000_000  # 4 GB of features at once; a slip in a feature's number asks for more


def label_attraction(labels: Floats, floor: float = 0.05) -> Floats:
    """The attraction probability of relevance labels, by the formula in the module's docstring.

    Args:
        labels: numbers from 0.
        floor: the attraction of the label 0, in [0, 1].

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
    models: Sequence[str] | None = None,
    *,
    users: str | None = None,
    n_items: int = 10,
    n_positions: int = 5,
    linear: bool = False,
    floor: float = 0.05,
    normalise: str = "largest",
    reduce: str = "none",
    dimension: int = 10,
    interactions: str = "none",
    most_rated: int | None = None,
    held_out: Judgements | float = 0.0,
    examination: str = DEFAULT_INSTANCE,
    seed: int = 0,
    name: str = "contextual",
    origin: str = "",
) -> Instance:
    """Make a contextual instance from ratings, or from documents with features.

    Args:
        judgements: ratings have no features, documents do.
        models: click models of the instance ``examination`` in which only attraction belongs to items: UBM, PBM, CM, DCM; None
            takes UBM, or with ``users`` what these are, DBN.
        users: simulated users by grades of relevance, a key of `clickgym.envs.GRADED_USERS`, in place of attraction from labels
            (``floor``, ``linear``) and of ``examination``. They tell as few grades apart, 2, 3 or 5, as have the highest of all
            judgements, those left out and held out included.
        n_items: L, the number of candidates in each session.
        n_positions: K.
        linear: replace the attraction of the labels by the linear function of the features that fits it best.
        floor: attraction of the label 0.
        normalise: one of `NORMALISATIONS`: ``"largest"`` divides each feature by its largest absolute value, ``"query"`` takes
            its least value in a query to 0 and the largest to 1.
        reduce: of documents' features: one of `REDUCTIONS`.
        dimension: of the singular value decomposition (ratings have twice that many features and a constant) or of the code.
        interactions: ``"none"``, or which products of features are further features, ``"products"`` or ``"outer"``.
        most_rated: of ratings, keep only so many items, those with the most; None keeps all.
        held_out: for simulated users: documents of further queries, or the share of the queries, drawn by ``seed``, that no
            session is about, for `GradedModel.held_out_ndcg`. Features beyond those of the judgements are left out; with
            ``"largest"`` also those that are 0 in all of these.
        examination: the instance whose users' examination is taken: a name or a file.
        seed: of decomposition and autoencoder.
        name, origin: of the instance.

    Returns:
        The instance; its ``estimation`` says how many users were left out, and how much of the variance of the
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
        >>> features = sparse.eye_array(96, 2).tocsr()
        >>> pages = Judgements(users // 4, range(96), items % 3, ("q", "r"), tuple(map(str, range(96))), features)
        >>> contextual_instance(pages, users="navigational").model("GradedModel of DBN").behaviour
        'navigational'
    """
    check_positions(n_positions, check_count("n_items", n_items))
    probability("floor", floor)
    check_count("dimension", dimension)
    check_seed(seed)
    check_flag("linear", linear)
    check_choice("reduction", reduce, REDUCTIONS)
    check_choice("normalisation", normalise, NORMALISATIONS)
    check_choice("interactions", interactions, ("none", *INTERACTIONS))
    check_text("origin", origin)
    check_kind("judgements", judgements, Judgements, "judgements, as read_judgements returns them")
    _check_held_out(held_out, users)
    if users is None:
        source, bases = _bases(models, examination, n_items, n_positions)
        origin = "; ".join(filter(None, (origin, f"examination: {source.origin}")))
        formula = "linear" if linear else "floor + (1 - floor) (2^label - 1) / 2^largest"
        facts: dict[str, Any] = {"attraction": formula, "floor": floor}
        clicks: Callable[..., Attracted] = partial(_by_labels, bases, linear, floor)
    else:
        _check_simulated(users, judgements, models=models, linear=linear, floor=floor, examination=examination)
        facts = {"attraction": f"{users} users by grade"}
        sizes = {"n_items": n_items, "n_positions": n_positions}
        clicks = partial(_by_grades, users, _number_of_grades(judgements, held_out), sizes)
    how = _Features(normalise, reduce, dimension, seed)
    judgements, further = _folds(judgements, held_out, seed)
    judgements = _of_most_rated(judgements, most_rated)
    if judgements.features is None:
        table = _rating_features(judgements, how, floor)
    else:
        table = _query_features(judgements, further, how)
    raters, groups = _groups(judgements.users, n_items)
    places, features = _places(judgements), None if table.users is None else table.users[raters]
    candidates = [places[group] for group in groups]
    shared: dict[str, Any] = {"items": table.items, "users": features, "candidates": candidates}
    pairs = _pairs(interactions, shared)
    shared = _scaled(shared, pairs)
    contents, explained, words = clicks(judgements.labels, groups, shared, pairs, table.held_out)
    n_candidates = len(np.unique(np.concatenate(shared["candidates"])))
    return Instance(
        name,
        {model.kind: model for model in contents},
        n_positions,
        description=(
            f"{len(groups):,} {table.raters}, {n_candidates:,} items, {contents[0].n_features} features; attraction {words}"
            + ("" if table.held_out is None else f"; {len(table.held_out['candidates']):,} queries held out")
        ),
        origin=origin,
        estimation={
            "left_out": len(np.unique(judgements.users)) - len(groups),
            **facts,
            "explained_by_linear_fit": round(explained, 4),
            "features": table.made_by,
            **({"normalised": normalise} if normalise != "largest" else {}),
            **({"interactions": interactions} if interactions != "none" else {}),
            "seed": seed,
        },
    )


class _Features(NamedTuple):
    """How features are made; see `contextual_instance`."""

    normalise: str
    reduce: str
    dimension: int
    seed: int


class _Table(NamedTuple):
    """Features, and who judged the items that they describe.

    Attributes:
        users: their features; None where users are queries, which have none.
        items: the features of items, those of documents held out behind them.
        held_out: the candidates and grades of the queries that are held out, if there are any.
        raters, made_by: what users are called, and by what features were made.
    """

    users: Floats | None
    items: Floats
    held_out: dict[str, Any] | None
    raters: str
    made_by: str


def _of_most_rated(judgements: Judgements, most_rated: int | None) -> Judgements:
    """All judgements, or those of the items with the most ratings."""
    if most_rated is None:
        return judgements
    if judgements.features is not None:
        raise ValueError(f"most_rated is {most_rated}; only ratings can be reduced to the items with the most of them")
    check_count("most_rated", most_rated)
    counts = np.bincount(judgements.items, minlength=len(judgements.item_labels))
    return _part(judgements, np.isin(judgements.items, np.argsort(-counts, kind="stable")[:most_rated]))


def _part(judgements: Judgements, of: NDArray[np.bool_]) -> Judgements:
    return replace(judgements, users=judgements.users[of], items=judgements.items[of], labels=judgements.labels[of])


def _places(judgements: Judgements) -> NDArray[np.int64]:
    """The place of each judgement's item among those that are judged."""
    return np.unique(judgements.items, return_inverse=True)[1]


# What clicks depend on, of the labels of all judgements, those of each user, features, products, and what is held out: the
# models, the share of their attraction that a linear function explains, and the description.


def _by_labels(
    bases: Sequence[ClickModel], linear: bool, floor: float, labels: Floats, groups: Groups, shared: dict[str, Any],
    pairs: Pairs, held_out: dict[str, Any] | None,
) -> Attracted:  # fmt: skip
    """Attraction from labels, and examination from an instance."""
    attraction = label_attraction(labels, floor)
    attractions = [attraction[group] for group in groups]
    theta, explained, fitted = _linear_fit(shared, attractions, pairs)
    words = "linear in them" if linear else f"from labels, {explained:.0%} of its variance linear in them"
    if linear and not len(pairs):
        return [LinearModel(base, theta, **shared) for base in bases], explained, words
    if linear:
        attractions = fitted
    models = [LabelledModel(base, attraction=attractions, **shared).with_interactions(pairs) for base in bases]
    return models, explained, words


def _by_grades(
    users: str, n_grades: int, sizes: dict[str, int], labels: Floats, groups: Groups, shared: dict[str, Any], pairs: Pairs,
    held_out: dict[str, Any] | None,
) -> Attracted:  # fmt: skip
    """Users simulated by grades."""
    grades = integers("labels", labels, (None,), whole=True)
    of_groups = [grades[group] for group in groups]
    model = GradedModel(users, shared["items"], shared["candidates"], of_groups, held_out=held_out, **sizes)
    model = model.of_grades(n_grades).with_interactions(pairs)
    explained = _linear_fit(shared, model.attractions, pairs)[1]
    kind = users.replace("_", " ")
    return [model], explained, f"of {kind} users by {n_grades} grades, {explained:.0%} of its variance linear in them"


def _check_held_out(held_out: Judgements | float, users: str | None) -> None:
    if not isinstance(held_out, Judgements):
        check_share("held_out", held_out)
    if users is None and (isinstance(held_out, Judgements) or held_out):
        raise ValueError("held_out is for simulated users, whose lists are measured by grades; give users, too")


def _check_simulated(users: str, judgements: Judgements, **arguments: Any) -> None:
    """Refuse what makes no sense beside simulated users."""
    for argument, value in arguments.items():
        if value != {"models": None, "linear": False, "floor": 0.05, "examination": DEFAULT_INSTANCE}[argument]:
            raise ValueError(
                f"{argument} is given beside users = {short(users)}, whose grades determine the clicks; expected one of the two"
            )
    if judgements.features is None:
        raise ValueError(f"users is {users!r}, but the judgements have no features; expected documents judged in grades")


def _bases(models: Sequence[str] | None, examination: str, n_items: int, n_positions: int) -> tuple[Instance, list[ClickModel]]:
    """The instance that says how lists are examined, and its click models before items without attraction."""
    models = ("UBM",) if models is None else check_labels("models", models)
    source = load_instance(examination)
    # Labels and features tell the attraction of items, and nothing else of them.
    offered = [
        kind for kind, model in source.models.items() if isinstance(model, ClickModel) and len(model.item_parameters()) == 1
    ]
    for model in models:
        check_choice("model", model, offered)
    if not models or len(set(models)) < len(models):
        raise ValueError(f"models are {', '.join(models) or 'none'}; expected one or more of {', '.join(offered)}, each once")
    return source, [source.model(model, n_positions).with_items(attraction=np.zeros(n_items)) for model in models]


def _folds(judgements: Judgements, held_out: Judgements | float, seed: int) -> tuple[Judgements, Judgements | None]:
    """What sessions are about, and what is held out."""
    if isinstance(held_out, Judgements):
        if held_out.features is None:
            raise ValueError("held_out has no features; expected documents, as the judgements are")
        return judgements, held_out
    if not held_out:
        return judgements, None
    n_queries = len(judgements.user_labels)
    size = max(round(held_out * n_queries), 1)
    if size == n_queries:
        raise ValueError(f"held_out is {held_out} of {n_queries} queries, which leaves none to learn from")
    apart = np.isin(judgements.users, np.random.default_rng(seed).choice(n_queries, size, replace=False))
    return _part(judgements, ~apart), _part(judgements, apart)


def _number_of_grades(judgements: Judgements, held_out: Judgements | float) -> int:
    """Of how many grades the users are: as all labels need, so that they stay the same whatever is left out or held out."""
    folds = {"labels": judgements} | ({"labels held out": held_out} if isinstance(held_out, Judgements) else {})
    grades = [integers(name, fold.labels, (None,), 0, MOST_GRADES, whole=True) for name, fold in folds.items()]
    return fewest_grades(max(int(of.max()) for of in grades))


def _groups(users: NDArray[np.int32], n_items: int) -> tuple[NDArray[np.int32], list[NDArray[np.int64]]]:
    """The users with enough candidates for a session, and the entries of each."""
    raters, groups = grouped(users)
    enough = [len(group) >= n_items for group in groups]
    if not any(enough):
        raise ValueError(
            f"no user or query has {n_items} candidates, the most has {max(map(len, groups))}; ask for fewer items in a session"
        )
    return raters[enough], list(compress(groups, enough))


def _query_features(judgements: Judgements, further: Judgements | None, how: _Features) -> _Table:
    """The features of all documents."""
    if further is None:
        return _Table(None, _document_features([judgements], how)[0], None, "queries", how.reduce)
    items, others = _document_features([judgements, further], how)
    groups = grouped(further.users)[1]
    places = len(items) + _places(further)
    grades = integers("labels held out", further.labels, (None,), whole=True)
    holdout = {"candidates": [places[group] for group in groups], "grades": [grades[group] for group in groups]}
    return _Table(None, np.vstack([items, others]), holdout, "queries", how.reduce)


def _rating_features(judgements: Judgements, how: _Features, floor: float) -> _Table:
    """The features of users and of items."""
    if how.reduce != "none" or how.normalise != "largest":
        raise ValueError(
            f"reduce is {how.reduce!r} and normalise is {how.normalise!r}; ratings have no features to change: dimension is "
            "that of their decomposition"
        )
    places = _places(judgements)
    shape = (len(judgements.user_labels), int(places.max()) + 1)
    matrix = sparse.csr_array((label_attraction(judgements.labels, floor), (judgements.users, places)), shape)
    svd = TruncatedSVD(how.dimension, seed=how.seed).fit(matrix)
    users, items = (
        vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-300) for vectors in (svd.users_, svd.items_)
    )
    constant = np.ones((len(users), 1))
    users, items = _cut(np.hstack([constant, users]) / np.sqrt(3.0)), _cut(items / np.sqrt(3.0))
    return _Table(users, items, None, "users", "singular value decomposition")


def _document_features(folds: Sequence[Judgements], how: _Features) -> list[Floats]:
    """The features of the documents judged in each fold, made by what is fitted to the first."""
    tables: list[Any] = [fold.features for fold in folds]
    n_documents, n_features = sum(map(len, folds)), tables[0].shape[1]
    if n_features * (how.dimension if how.reduce == "svd" and how.normalise == "largest" else n_documents) > MOST_NUMBERS:
        raise ValueError(
            f"{n_documents:,} documents have features numbered up to {n_features:,}, too many to hold in memory with reduce = "
            f"{how.reduce!r} and normalise = {how.normalise!r}; number them without gaps, or try 'svd' and fewer dimensions"
        )
    judged = []
    for table, fold in zip(tables, folds, strict=True):
        judged.append(table[np.unique(fold.items)])
        judged[-1].resize((judged[-1].shape[0], n_features))
    if how.normalise == "query":
        scaled: list[Any] = [_within_queries(fold, features) for fold, features in zip(folds, judged, strict=True)]
    else:
        scaled = _by_largest(judged)
    reduced = _reduced(scaled, how)
    longest = np.linalg.norm(reduced[0], axis=1).max()
    return [_cut(np.hstack([np.ones((len(of), 1)), of / (longest or 1.0)]) / np.sqrt(2.0)) for of in reduced]


def _by_largest(folds: list[sparse.csr_array]) -> list[sparse.csr_array]:
    """Each feature divided by its largest absolute value in the first fold."""
    largest = np.abs(folds[0]).max(axis=0).toarray().ravel()
    for features in folds:
        # What is always 0 in the first fold has no scale, and nothing is learned of it: it becomes 0 in the others, too.
        features.data /= np.where(largest > 0, largest, np.inf)[features.indices]
    return folds


def _reduced(folds: list[Any], how: _Features) -> list[Floats]:
    """The features in fewer dimensions, as an array, by what is fitted to the first fold."""
    if how.reduce == "none":
        return [features.toarray() if sparse.issparse(features) else features for features in folds]
    if how.reduce == "svd":
        fitted: Any = TruncatedSVD(how.dimension, seed=how.seed).fit(folds[0])
    else:
        fitted = DenoisingAutoencoder((25, how.dimension, how.dimension, 25), seed=how.seed).fit(folds[0])
    return [fitted.transform(features) for features in folds]


def _within_queries(judgements: Judgements, features: sparse.csr_array) -> Floats:
    """Each feature from 0 to 1 among the documents of each query."""
    places = _places(judgements)
    if len(places) > features.shape[0]:
        raise ValueError("a document is judged for two queries; normalise = 'query' needs documents of one query each")
    scaled = features.toarray()
    for group in grouped(judgements.users)[1]:
        rows = places[group]
        rows_of_query = scaled[rows]
        least = rows_of_query.min(axis=0)
        span = rows_of_query.max(axis=0) - least
        scaled[rows] = (rows_of_query - least) / np.where(span > 0, span, 1.0)
    return scaled


def _cut(features: Floats) -> Floats:
    """Towards 0, so that no norm grows."""
    return np.trunc(features * 1e6) / 1e6


def _pairs(interactions: str, shared: dict[str, Any]) -> Pairs:
    """The pairs of features whose products are added; the first feature is the constant."""
    users, n_item_features = shared["users"], shared["items"].shape[1]
    if users is None:
        return interaction_pairs(interactions, range(1, n_item_features), range(1, n_item_features))
    n_user_features = users.shape[1]
    return interaction_pairs(interactions, range(1, n_user_features), range(n_user_features, n_user_features + n_item_features))


def _scaled(shared: dict[str, Any], pairs: Pairs) -> dict[str, Any]:
    """Features whose largest norm is 1 with the products; the constant is cut first, so that no product grows by the cut."""
    if not len(pairs):
        return shared
    users, items, candidates = shared["users"], shared["items"], shared["candidates"]
    norm = largest_norm(np.zeros((len(candidates), 0)) if users is None else users, items, pairs, candidates)
    constant = (items if users is None else users)[0, 0]
    scaled = _cut(constant / norm)
    tables: dict[str, Any] = {"items": _cut(items * (scaled / constant))}
    tables["users"] = None if users is None else _cut(users * (scaled / constant))
    tables["items" if users is None else "users"][:, 0] = scaled
    return shared | tables


def _linear_fit(shared: dict[str, Any], attractions: list[Floats], pairs: Pairs) -> tuple[Floats, float, list[Floats]]:
    """θ* with attractions in [0, 1], the share of the variance explained before it is moved there, and these attractions."""
    sizes = list(map(len, shared["candidates"]))
    n_features = sum(shared[name].shape[1] for name in ("users", "items") if shared[name] is not None) + len(pairs)
    check_memory(f"a linear fit of {sum(sizes):,} candidates with {n_features:,} features", 24 * sum(sizes) * n_features)
    x = shared["items"][np.concatenate(shared["candidates"])]
    if shared["users"] is not None:
        x = np.hstack([np.repeat(shared["users"], sizes, axis=0), x])
    x = with_products(x, pairs)
    y = np.concatenate(attractions)
    theta: Floats = np.linalg.lstsq(x, y, rcond=None)[0].astype(np.float64, copy=False)
    fitted = x @ theta
    variance = float(((y - y.mean()) ** 2).sum())
    # Of equal attractions the variance is rounding error, or 0.
    explained = 1.0 - float(((y - fitted) ** 2).sum()) / variance if np.ptp(y) else 1.0
    least, most = min(float(fitted.min()), 0.0), max(float(fitted.max()), 1.0)
    theta /= most - least
    theta[0] -= least / (most - least) / x[0, 0]  # the first feature is the constant
    return theta, explained, np.split((x @ theta).clip(0.0, 1.0), np.cumsum(sizes)[:-1])
