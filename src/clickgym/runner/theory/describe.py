"""Description of an instance in words: its click models, their best lists, and the assumptions that they satisfy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.checks import check_positions
from ...envs import CascadeMDP, ContextualModel, Instance
from ...envs.click_model import ClickModel
from .assumptions import MAX_LISTS, Finding, check_assumptions

SHOWN = 10
"""The most numbers of a parameter that are written one by one."""


class BestList(NamedTuple):
    """The best list for one reward kind.

    Attributes:
        reward: the kind.
        ranking: ``(K,)`` item ids; None if the search for it would be too large, which ``note`` says.
        value: its expected reward; nan without it.
        production: that of the list in production; None if there is none.
        note: why there is no ranking.
    """

    reward: str
    ranking: NDArray[np.int64] | None
    value: float
    production: float | None
    note: str = ""


class ModelDescription(NamedTuple):
    """An instance under one click model.

    Attributes:
        kind: as `Instance.models` names it.
        parameters: in words, by name; rounded.
        best: for each reward kind that the model defines.
        findings: of `check_assumptions`; empty if they could not be checked.
        note: what restricts the above: users who change, candidates that do, too many lists.
    """

    kind: str
    parameters: dict[str, str]
    best: list[BestList]
    findings: list[Finding]
    note: str


class InstanceDescription(NamedTuple):
    """Description of an instance.

    Attributes:
        instance: the instance.
        n_positions: K of all that follows.
        labels: ``(L,)`` what the items are called where they come from; empty if that is not known.
        models: under each click model.
    """

    instance: Instance
    n_positions: int
    labels: list[str]
    models: list[ModelDescription]


def describe_instance(instance: Instance, n_positions: int | None = None) -> InstanceDescription:
    """Describe an instance: parameters, best lists, and which of the papers' assumptions hold, under each of its click models.

    Args:
        instance: of `load_instance`, or made.
        n_positions: K; None takes the instance's.

    Raises:
        ValueError: on a number of positions that the instance does not have.

    Example:
        >>> from clickgym.envs import load_instance
        >>> description = describe_instance(load_instance("lagree2016-small"))
        >>> (model,) = description.models
        >>> model.parameters["examination"], model.best[0].ranking.tolist(), round(model.best[0].value, 3)
        ('0.9 0.6 0.3', [0, 1, 2], 0.69)
        >>> all(finding.holds for finding in model.findings)
        True
    """
    available = min(model.n_positions for model in instance.models.values())
    size = instance.n_positions if n_positions is None else check_positions(n_positions, instance.n_items, available)
    labels: Any = instance.estimation.get("items")  # of an instance that was not fitted by `clickgym fit`, some text
    complete = isinstance(labels, Sequence) and not isinstance(labels, str) and len(labels) == instance.n_items
    return InstanceDescription(
        instance,
        size,
        [str(label) for label in labels] if complete else [],
        [_describe(kind, instance.model(kind, size), instance.initial_ranking) for kind in instance.models],
    )


def _describe(kind: str, model: ClickModel, production: NDArray[np.int64] | None) -> ModelDescription:
    if isinstance(model, ContextualModel):
        return _of_candidates(kind, model)
    if isinstance(model, CascadeMDP):
        return _of_memory(kind, model)
    first = model.epochs[0]
    notes = []
    if len(model.epochs) > 1:
        notes.append(
            f"The users change: this is about the first of {len(model.epochs)} epochs, up to step {model.starts[1]:,}."
        )
    checkable = math.perm(model.n_items, model.n_positions) <= MAX_LISTS
    if "attraction" not in first.shapes:
        checkable = False
        notes.append("The assumptions are about the attraction of items, which this click model does not have.")
    elif not checkable:
        notes.append(_why_not_checked(model))
    findings = check_assumptions(first) if checkable else []
    best = [_best(first, reward, production) for reward in model.rewards]
    return ModelDescription(kind, _parameters(first), best, findings, " ".join(notes))


def _why_not_checked(model: ClickModel) -> str:
    n_lists = math.perm(model.n_items, model.n_positions)
    fewer = max((k for k in range(1, model.n_positions) if math.perm(model.n_items, k) <= MAX_LISTS), default=0)
    smaller = f"with {fewer} position{'s' * (fewer > 1)} they can be (--positions {fewer})" if fewer else "take fewer items"
    return (
        f"The assumptions were not checked: {n_lists:.3g} lists of {model.n_positions} out of {model.n_items} items are "
        f"more than the {MAX_LISTS:,} that are tried; {smaller}."
    )


def _of_candidates(kind: str, model: ContextualModel) -> ModelDescription:
    parameters = {"features": f"{model.n_features} of each candidate", "items": f"{len(model.items):,}"}
    parameters |= {} if model.users is None else {"users": f"{len(model.users):,}"}
    parameters |= {key: text for key, text in _parameters(model.base).items() if key != "attraction"}
    note = "The candidates change from session to session: no list is the best of all, and the assumptions are not about them."
    return ModelDescription(kind, parameters, [], [], note)


def _of_memory(kind: str, model: CascadeMDP) -> ModelDescription:
    ends = f"{model.mean_sessions:g} in the mean" if model.n_sessions is None else f"{model.n_sessions}"
    parameters = {"states": f"{model.n_states}", "sessions": f"{ends}, of each user"}
    values, lists = np.atleast_2d(model.value)[-1], model.best.reshape(-1, model.n_states, model.n_positions)[-1]
    if model.n_sessions is None:
        best = model.first @ model.value
        shares = [1 - model.first @ model.policy_value(policy) / best for policy in model.myopic()]
        texts = [f"{max(share, 0.0):.1%}" for share in shares]
        parameters["loses by looking at one session alone"] = f"{texts[0]} of what a life earns at best, at worst {texts[1]}"
    states = [
        BestList(f"from state {state} on", ranking, float(value), None)
        for state, (ranking, value) in enumerate(zip(lists, values, strict=True))
    ]
    note = "What a user earns in a life, by the state it begins in, and the best list of this state."
    return ModelDescription(kind, parameters, states, [], note)


def _best(model: ClickModel, reward: str, production: NDArray[np.int64] | None) -> BestList:
    current = None if production is None else model.expected_reward(production[: model.n_positions], reward)
    try:
        ranking = model.optimal_ranking(reward)
    except ValueError as error:
        return BestList(reward, None, math.nan, current, str(error))
    return BestList(reward, ranking, model.expected_reward(ranking, reward), current)


def _parameters(model: ClickModel) -> dict[str, str]:
    sizes = ("model", "n_positions")
    return {name: _numbers(np.asarray(value)) for name, value in model.to_dict().items() if name not in sizes}


def _numbers(values: NDArray[Any]) -> str:
    """Numbers to three decimals: one by one, or how many there are and between which they lie.

    Example:
        >>> _numbers(np.array([0.5, 0.00625, 1])), _numbers(np.arange(12) / 10), _numbers(np.tril(np.full((2, 2), 0.25)))
        ('0.5 0.006 1', '12 numbers from 0 to 1.1', '2 x 2 numbers from 0.25 to 0.25')
    """
    one_by_one = values.ndim < 2 and values.size <= SHOWN
    what = " x ".join(map(str, values.shape))
    if values.ndim == 2:  # by position and last click: what is above the diagonal is not used
        values = values[np.tril_indices_from(values)]
    ends = values.ravel() if one_by_one else np.array([values.min(), values.max()])
    texts = [f"{value:.0e}" if 0 < value < 0.0005 else f"{round(value, 3):g}" for value in ends.tolist()]
    return " ".join(texts) if one_by_one else f"{what} numbers from {' to '.join(texts)}"
