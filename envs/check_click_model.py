"""Check a click model against the interface of click models."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.checks import is_integer, short_repr
from ..core.errors import Fault, expect, kernels_in_python
from ..core.kernels import entry, uncompiled
from .click_env import ClickEnv
from .click_model import ClickModel
from .instances.families import draw_model
from .task import REWARDS

SIZES = ((1, 1), (4, 3), (6, 5))
"""The numbers of items and positions of the models."""
SESSIONS = 40_000
PYTHON_SESSIONS = 200
"""The number of sessions for each list, when kernels run as Python functions."""
SIGMAS = 5.5
"""A frequency that differs from its probability by more standard errors than this is a fault."""
EXACT = 1e-9


def check_click_model(model: type[ClickModel]) -> None:
    """Check that a click model is complete and consistent.

    The function returns None if the model passes, and otherwise raises an error that names the
    first fault. It checks that

    - no kernel uses an index out of range;
    - in 40,000 sessions, ``sample`` draws with the probabilities that ``marginals`` and
      ``expected`` return; differences below 0.014 (mostly 0.007 for ``expected``) cannot be
      detected;
    - the list that the model calls optimal is the best of all lists;
    - ``position_weights`` returns the examination probabilities, if they do not depend on the list;
    - ``to_dict`` and ``from_dict``, lists with fewer positions, and other item ids work.

    The check cannot know which model you intended, so also compute the click probabilities of a few
    lists by hand, and compare them with the model's.

    Args:
        model: the class. The check creates small models with random parameters of the declared
            shapes; parameters whose default is None keep this default.

    Raises:
        AssertionError: the model has a fault; the message names the first one.
        TypeError: ``model`` is not a class of click models.

    Example:
        >>> import clickgym
        >>> clickgym.check_click_model(clickgym.envs.CascadeModel)
        >>> class Forgetful(clickgym.envs.CascadeModel):
        ...     def _places(self, reward, cutoff):
        ...         return np.arange(self.n_items)[-cutoff:]
        >>> clickgym.check_click_model(Forgetful)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        AssertionError: Forgetful: the optimal list for clicks, cutoff 1 is [3, 2, 1], ...
    """
    if not isinstance(model, type) or not issubclass(model, ClickModel):
        raise TypeError(f"model is {short_repr(model)}; expected a subclass of ClickModel")
    try:
        models = [_draw_checked_model(model, *sizes) for sizes in SIZES]
        for one in models:
            _run(one)
        for one in models[1:]:
            _sessions(one)
            _rewards(one)
        _optimum(model)
        for one in models[1:]:
            _weights(one)
            _files(one)
    except Fault as fault:
        raise AssertionError(f"{model.__name__}: {fault}") from None


def _draw_checked_model(model_class: type[ClickModel], n_items: int, n_positions: int) -> Any:
    model = draw_model(model_class, {}, n_items, n_positions, seed=0)
    made, sizes = (model.n_items, model.n_positions), (n_items, n_positions)
    expect(made == sizes, f"n_items, n_positions are {made}; expected {sizes}")
    is_number = is_integer(model.n_uniforms)
    expect(
        is_number,
        f"n_uniforms is {short_repr(model.n_uniforms)}; expected an integer, from a method "
        "decorated with @property",
    )
    return model


def _run(model: Any) -> None:
    """Run all kernels as Python functions."""
    rng = np.random.default_rng(0)
    parameters, scratch = model.parameters, np.empty(model.n_positions + 1)
    clicks, examined = np.empty((2, model.n_positions), np.int8)
    with kernels_in_python(), uncompiled():
        for ranking in _lists(model):
            for uniforms in rng.random((PYTHON_SESSIONS, model.n_uniforms)):
                place = model.sample_kernel(parameters, ranking, uniforms, clicks, examined)
                is_place = isinstance(place, int | np.integer) and -1 <= place < len(ranking)
                expect(
                    is_place,
                    f"sample returned {short_repr(place)}; expected -1, or the position (from 0) "
                    "at which the user left satisfied",
                )
            marginals = np.empty((2, model.n_positions))
            model.marginals_kernel(parameters, ranking, *marginals, scratch)
            for reward, cutoff in _questions(model):
                code = REWARDS.index(reward)
                model.expected_kernel(parameters, ranking, code, cutoff, scratch)
        for code in map(REWARDS.index, model.rewards):
            if model.scan_kernel is not None:
                model.scan_kernel(parameters, code, *np.empty((2, model.n_items)))
            model._search(REWARDS[code], model.n_positions)


def _sessions(model: Any) -> None:
    for ranking in _lists(model):
        clicks, examined, places = _draw_frequencies(model, ranking)
        is_set = np.isin(clicks, (0, 1)).all() and np.isin(examined, (0, 1)).all()
        expect(is_set, "sample left an entry of clicks or examined that is not 0 or 1")
        expect((clicks <= examined).all(), "sample marks a position as clicked but not as examined")
        satisfied = np.flatnonzero(places >= 0)
        is_clicked = clicks[satisfied, places[satisfied]] == 1
        expect(is_clicked.all(), "sample lets a user leave satisfied at a position without a click")
        of = f"probability of {ranking.tolist()}"
        drawn = ((clicks, model.click_probabilities), (examined, model.examination_probabilities))
        for (values, probabilities), what in zip(drawn, ("click", "examination"), strict=True):
            exact = probabilities(ranking)
            spread = np.sqrt(np.maximum(exact * (1.0 - exact), 0.0))
            _compare(f"the {what} {of}", exact, values, spread)


def _rewards(model: Any) -> None:
    ranking = _lists(model)[0]
    clicks, _, places = _draw_frequencies(model, ranking)
    probabilities = model.click_probabilities(ranking)
    for reward, cutoff in _questions(model):
        value, which = model.expected_reward(ranking, reward, cutoff), f"{reward}, cutoff {cutoff}"
        realised = {
            "clicks": clicks[:, :cutoff].sum(axis=1),
            "any_click": clicks[:, :cutoff].any(axis=1),
            "satisfaction": (places >= 0) & (places < cutoff),
        }
        # A control variate: clicks, whose probabilities are known, explain most of the spread.
        known = clicks - probabilities
        earned = realised[reward] * 1.0
        for click in known.T:
            if click.any():
                slope = (click * (earned - value)).mean() / (click * click).mean()
                earned = earned - slope * click
        _compare(f"the expected reward ({which})", np.array([value]), earned[:, None], earned.std())
        if reward == "clicks" or (reward, cutoff) == ("any_click", 1):
            total = probabilities[:cutoff].sum()
            what = (
                f"the expected reward ({which}) is {value:.6g}, but marginals gives click "
                f"probabilities that sum to {total:.6g}"
            )
            expect(abs(value - total) < EXACT, what)
        below = np.concatenate([ranking[:cutoff], ranking[cutoff:][::-1]])
        other = model.expected_reward(below, reward, cutoff)
        expect(
            value == other,
            f"the expected reward ({which}) depends on positions below the cutoff: it changes "
            f"from {value} to {other} if the items there change places",
        )


def _optimum(model_class: type[ClickModel]) -> None:
    for model in [draw_model(model_class, {}, 4, 3, seed) for seed in range(5)]:
        lists = list(itertools.permutations(range(model.n_items), model.n_positions))
        for reward, cutoff in _questions(model):
            best = model.optimal_ranking(reward, cutoff)
            value = model.expected_reward(best, reward, cutoff)
            values = [model.expected_reward(ranking, reward, cutoff) for ranking in lists]
            place = int(np.argmax(values))
            what = f"the optimal list for {reward}, cutoff {cutoff} is {best.tolist()}, which earns"
            better = f"{value:.3g}; {list(lists[place])} earns {values[place]:.3g}"
            expect(value >= max(values) - EXACT, f"{what} {better}")


def _weights(model: Any) -> None:
    first, second = map(model.examination_probabilities, _lists(model))
    weights = model.position_weights()
    if weights is None:
        what = (
            "position_weights() returns None, but examination does not depend on the list; "
            "return the examination probabilities by position"
        )
        expect(np.abs(first - second).max() > EXACT, what)
    else:
        _expect_close("position_weights()", weights, first)
        _expect_close("position_weights()", weights, second)


def _files(model: Any) -> None:
    again = ClickModel.from_dict(json.loads(json.dumps(model.to_dict())))
    expect(again == model, f"from_dict(to_dict()) of {model!r} is {again!r}")
    ranking, order = _lists(model)[0], np.roll(np.arange(model.n_items), 1)
    clicks = model.click_probabilities(ranking)
    fewer = model.with_positions(2).click_probabilities(ranking[:2])
    _expect_close("the click probability with_positions(2)", fewer, clicks[:2])
    renamed = model.relabelled(np.argsort(order)).click_probabilities(order[ranking])
    _expect_close("the click probability of relabelled items", renamed, clicks)
    env = ClickEnv(model)
    env.reset(seed=0)
    expect(
        env.step(ranking)[4]["regret"] >= -EXACT,
        f"the regret of {ranking.tolist()} is negative, so the best list is not the best",
    )


def _lists(model: Any) -> list[NDArray[np.int64]]:
    heads = ([2, 0, 3], [1, 3, 0]) if model.n_items > 3 else ([0],)
    lists = [[*head, *np.setdiff1d(range(model.n_items), head)] for head in heads]
    return [np.array(items)[: model.n_positions] for items in lists]


def _questions(model: Any) -> list[tuple[str, int]]:
    """Return every reward with every cutoff."""
    return list(itertools.product(model.rewards, range(1, model.n_positions + 1)))


def _draw_frequencies(model: Any, ranking: NDArray[np.int64]) -> tuple[NDArray[Any], ...]:
    """Return the clicks and examinations, both ``(n, K)``, and the positions at which users left
    satisfied, ``(n,)``.
    """
    clicks, examined = np.full((2, SESSIONS, len(ranking)), 7, np.int8)
    places, sample = np.empty(SESSIONS, np.int64), entry(model.sample_kernel)
    uniforms = np.random.default_rng(0).random((SESSIONS, model.n_uniforms))
    for i in range(SESSIONS):
        places[i] = sample(model.parameters, ranking, uniforms[i], clicks[i], examined[i])
    return clicks, examined, places


def _expect_close(what: str, values: NDArray[np.float64], expected: NDArray[np.float64]) -> None:
    is_same = np.allclose(values, expected, rtol=0, atol=EXACT)
    expect(is_same, f"{what} is {values}; expected {expected}")


def _compare(what: str, exact: NDArray[np.float64], drawn: NDArray[Any], spread: Any) -> None:
    """Compare ``(m,)`` expectations with the means of ``(n, m)`` draws, whose standard deviations
    are ``spread``.
    """
    mean = drawn.mean(axis=0)
    is_near = np.abs(mean - exact) <= SIGMAS * spread / np.sqrt(len(drawn)) + EXACT
    expect(
        is_near.all(),
        f"{what} is {exact} according to the model, but {mean} on average over {len(drawn):,} "
        "drawn sessions",
    )
