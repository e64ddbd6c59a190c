"""The function `check_click_model`, which checks that a click model is complete and consistent."""

from __future__ import annotations

import inspect
import itertools
import json
import math
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.checks import EXACT, check_choice, is_integer, outside_unit_interval
from ..core.errors import FAILURES, Fault, cause, expect, expect_arguments, kernels_in_python
from ..core.kernels import entry, uncompiled
from ..core.messages import short_repr
from ..core.state import check_dtypes
from .click_env import ClickEnv
from .click_models.click_model import KERNELS, ClickModel
from .instances.families import draw_model
from .simulation.task import REWARDS

SIZES = ((1, 1), (4, 3), (6, 5))
"""The sizes (L, K) of the models that are checked."""
POINTS, SHIFTS = 1024, 40
"""The uniform random numbers of the sessions for each list: a set of Sobol points, which cover the
unit cube evenly, and the number of random shifts of this set. Their product is 40,960 sessions.
"""
PYTHON_SESSIONS = 200
"""The number of sessions for each list when kernels run as Python functions, which is slow."""
DRAWS_OF_BEST = 100
"""The number of models with random parameters whose best lists are compared with all lists, because
a wrong rule for the best list may be right for most parameters.
"""
SIGMAS = 5.5
"""The largest accepted difference between a frequency and its probability, in standard errors."""
IMPOSSIBLE = (-0.4, 1.4, math.nan)
"""Values of parameters with which no probability may be outside [0, 1]."""

Table = Mapping[tuple[str, str], float]
"""The values of parameters by name and shape, as in `draw_model`."""


def check_click_model(model: type[ClickModel], numbers: Mapping[str, float] | None = None) -> None:
    """Check that a click model is complete and consistent.

    If the model has a fault, an error names the first one. The function checks that

    - ``shapes`` has an entry for each parameter that the constructor takes, and ``parameters`` has
      a field for each entry;
    - each parameter has an effect;
    - no kernel uses an index out of range;
    - clicks depend only on the item at their position and on what is above it;
    - in 40,960 sessions of each of four small models, ``sample`` draws with the probabilities that
      ``marginals`` and ``expected`` return; differences below 0.005 may not be detected;
    - no item is clicked with a higher probability than its ``attraction``, unless the class
      overrides ``best_ranks``;
    - the list that the model calls optimal is the best of all lists, in 100 models of four items
      and three positions;
    - ``position_weights`` returns the examination probabilities, unless these depend on the list;
    - ``to_dict`` and ``from_dict``, ``with_positions`` and ``relabelled`` keep the probabilities.

    No check can know which model you intended. Therefore, also compute the click probabilities of a
    few lists by hand, and compare them with the model's.

    Args:
        model: the click model's class. The function creates small models of this class, with random
            parameters from [0, 1] in the declared shapes; parameters whose default is None keep
            this default.
        numbers: values for parameters that are single numbers, in place of random ones, such as
            ``{"slope": 2.5}``; by default, all are random.

    Raises:
        AssertionError: the model has a fault; the message describes the first one.
        TypeError: ``model`` is not a subclass of `ClickModel`.
        ValueError: the model has no single number with this name, or does not accept a value.

    Warns:
        UserWarning: the array of a parameter can be changed, or the constructor accepts -0.4, 1.4
            or nan although this gives probabilities outside [0, 1], or takes ``*args`` or
            ``**kwargs``; an array has another dtype than its field declares; or the class has no
            ``short`` name.

    Example:
        >>> import clickgym
        >>> clickgym.check_click_model(clickgym.envs.CascadeModel)
        >>> class Forgetful(clickgym.envs.CascadeModel):
        ...     def best_ranks(self, reward, cutoff):
        ...         return np.arange(self.n_items)[-cutoff:]
        >>> clickgym.check_click_model(Forgetful)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        AssertionError: Forgetful: the optimal list for clicks, cutoff 1 is [3, 2, 1], ...
    """
    if not isinstance(model, type) or not issubclass(model, ClickModel):
        raise TypeError(f"model is {short_repr(model)}; expected a subclass of ClickModel")
    for name in numbers or {}:
        check_choice("number", name, [key for key, shape in model.shapes.items() if not shape])
    table = {(name, ""): value for name, value in (numbers or {}).items()}
    try:
        _check_constructor(model)
        models = [_draw_checked_model(model, table, *sizes) for sizes in SIZES]
        for small_model in models:
            _check_kernels(small_model)
        for small_model in [*models[1:], *_keener_users(model, table)]:
            with _showing_parameters(small_model):
                _check_shorter_lists(small_model)
                lists = _tried_lists(small_model)
                drawn = [_draw_sessions(small_model, ranking) for ranking in lists]
                _check_sessions(small_model, drawn)
                clicks, _, left_at = drawn[0]
                _check_rewards(small_model, clicks, left_at)
                _check_attraction(small_model)
        _check_effects(models[-1])
        for small_model in [draw_model(model, table, 4, 3, seed) for seed in range(DRAWS_OF_BEST)]:
            with _showing_parameters(small_model):
                _check_best_lists(small_model)
        for small_model in models[1:]:
            with _showing_parameters(small_model):
                _check_numbering(small_model)
                _check_position_weights(small_model)
                _check_files(small_model)
    except Fault as fault:
        raise AssertionError(f"{model.__name__}: {fault}") from None
    for note in _notes_on_model(models[-1]):
        warnings.warn(f"{model.__name__}: {note}", stacklevel=2)


@contextmanager
def _showing_parameters(model: Any) -> Iterator[None]:
    """Context manager that adds the parameters of a model to a fault, so that its numbers can be
    computed by hand.
    """
    try:
        yield
    except Fault as fault:
        values = {name: np.asarray(value).round(4) for name, value in model._arguments().items()}
        arguments = ", ".join(f"{name}={value.tolist()}" for name, value in values.items())
        raise Fault(f"{fault}; in {type(model).__name__}({arguments})") from None


def _check_constructor(model_class: type[ClickModel]) -> None:
    """Check that `shapes` declares what the constructor takes. Files and environments would leave
    out anything else.
    """
    shapes, arguments = model_class.shapes, inspect.signature(model_class).parameters
    known = {*shapes, "n_items", "n_positions"}
    for name, argument in arguments.items():
        is_known = name in known or "VAR_" in argument.kind.name  # *args and **kwargs
        expect(is_known, f"shapes has no entry for {name}, which the constructor takes")
    has_items = "L" in shapes.values() or model_class.n_items is not ClickModel.n_items
    expect(has_items, "no parameter has the shape 'L', so override the property n_items")
    for name, shape in shapes.items():
        expect(name in arguments, f"the constructor does not take {name}, which shapes declares")
        expect(
            shape in ("L", "K", "KK", ""),
            f"shapes[{name!r}] is {shape!r}; expected 'L', 'K', 'KK' or '' (see its docstring)",
        )
        for size, letter in (("n_items", "L"), ("n_positions", "K")):
            is_required = size in arguments and arguments[size].default is inspect.Parameter.empty
            expect(
                not (letter in shape and is_required),
                f"the constructor requires {size}, which is the length of {name}, whose shape is "
                f"{shape!r}; leave {size} out, or correct the shape",
            )


def _draw_checked_model(
    model_class: type[ClickModel], table: Table, n_items: int, n_positions: int
) -> Any:
    try:
        model = draw_model(model_class, table, n_items, n_positions, seed=0)
        actual = model.n_items, model.n_positions
    except ValueError as error:
        raise ValueError(
            f"{model_class.__name__}: {error}; the check draws parameters from [0, 1] in the "
            f"shapes {dict(model_class.shapes)}, unless you pass a number, as in "
            "check_click_model(MyModel, {'slope': 2.5}), or their default is None"
        ) from None
    except FAILURES as error:
        raise Fault(cause(error)) from None
    expected = n_items, n_positions
    expect(
        actual == expected,
        f"n_items, n_positions are {actual}, but expected {expected} for parameters of the shapes "
        f"{dict(model_class.shapes)}; correct a shape, or n_positions in the constructor",
    )
    fields = model.parameters._asdict()
    for name in model.shapes:
        expect(name in fields, f"parameters has no field {name}, which shapes declares")
    is_number = is_integer(model.n_uniforms)
    expect(
        is_number,
        f"n_uniforms is {short_repr(model.n_uniforms)}; expected an integer, from a method "
        "decorated with @property",
    )
    return model


def _keener_users(model_class: type[ClickModel], table: Table) -> list[Any]:
    """Return models whose drawn values are from 0.5 to 1, because users with small values seldom
    reach the last positions; leave out models that reject these values.
    """
    models = []
    names = [name for name, shape in model_class.shapes.items() if (name, shape) not in table]
    for seed in (1, 2):
        with suppress(*FAILURES):
            model: Any = draw_model(model_class, table, *SIZES[-1], seed)
            drawn = {name: np.asarray(getattr(model.parameters, name)) for name in names}
            keener = {name: ((1.0 + values) / 2)[()] for name, values in drawn.items()}
            models.append(model.with_items(**keener))
    return models


def _check_kernels(model: Any) -> None:
    """Run all kernels as Python functions, because compiled kernels do not notice an index that is
    out of range.
    """
    for name, expected in KERNELS.items():
        kernel = getattr(model, name, None)
        if kernel is not None:  # scan_kernel is optional
            expect_arguments(name, kernel, expected)
    rng = np.random.default_rng(0)
    parameters, scratch = model.parameters, np.empty(model.n_positions + 1)
    clicks, examined = np.empty((2, model.n_positions), np.int8)
    with kernels_in_python(), uncompiled():
        for ranking in _tried_lists(model):
            for uniforms in rng.random((PYTHON_SESSIONS, model.n_uniforms)):
                arguments = parameters, ranking, uniforms, clicks, examined
                try:
                    satisfied = model.sample_kernel(*arguments)
                except IndexError as error:
                    hint = (
                        f"sample gets n_uniforms = {model.n_uniforms} uniform numbers; if it "
                        "needs more, override the property n_uniforms"
                    )
                    fault = cause(error)
                    raise Fault(f"{fault}; {hint}" if "uniforms[" in fault else fault) from None
                is_integer_type = isinstance(satisfied, int | np.integer)
                expect(
                    is_integer_type and -1 <= satisfied < len(ranking),
                    f"sample returned {short_repr(satisfied)}; expected -1, or the position "
                    "(from 0) at which the user left satisfied",
                )
                first_clicks = clicks.copy()
                model.sample_kernel(*arguments)
                expect(
                    np.array_equal(clicks, first_clicks),
                    f"sample drew the clicks {first_clicks.tolist()}, and then {clicks.tolist()} "
                    "from the same uniform numbers; expected all randomness to come from uniforms",
                )
            marginals = np.empty((2, model.n_positions))
            model.marginals_kernel(parameters, ranking, *marginals, scratch)
            for reward, cutoff in _rewards_and_cutoffs(model):
                code = REWARDS.index(reward)
                model.expected_kernel(parameters, ranking, code, cutoff, scratch)
        for code in map(REWARDS.index, model.rewards):
            if model.scan_kernel is not None:
                model.scan_kernel(parameters, code, *np.empty((2, model.n_items)))
            model._search(REWARDS[code], model.n_positions)


def _check_effects(model: Any) -> None:
    """Check that each parameter has an effect."""
    for name in model.shapes:
        value = np.asarray(getattr(model.parameters, name))
        usual = _exact_values(model, name, value)
        other = _exact_values(model, name, np.where(value == 1.0, 0.5, 1.0))
        is_rejected = not len(other[0])
        expect(
            is_rejected or not all(map(np.array_equal, usual, other)),
            f"{name} has no effect: all probabilities and expected rewards stay the same if it "
            "becomes 1; store it in the constructor, and use it in all kernels",
        )


def _notes_on_model(model: Any) -> Iterator[str]:
    """Yield a line for each parameter whose array can be changed, and for each that the constructor
    accepts although it gives impossible probabilities; for parameters that files may lose; for an
    array of another type than its field declares; and for a missing short name.
    """
    for argument in inspect.signature(type(model)).parameters.values():
        if "VAR_" in argument.kind.name:
            yield (
                f"the constructor takes {argument}; give each parameter its own name, and an entry "
                "in shapes, because files would lose it"
            )
    try:
        check_dtypes(model.parameters)
    except ValueError as error:
        yield str(error)
    if not model.short:
        yield (
            "the class has no short name, so there are no instances such as uniform for it, and no "
            'environments with changing users, features or queries; set short, as in short = "PBM"'
        )
    for name in model.shapes:
        stored = getattr(model.parameters, name)
        if isinstance(stored, np.ndarray) and stored.flags.writeable:
            yield (
                f"the array {name} can be changed; store what probabilities(...) from "
                f"clickgym.core.checks returns, or set {name}.flags.writeable = False for a copy"
            )
        for wrong in IMPOSSIBLE:
            chances, _ = _exact_values(model, name, np.full(np.shape(stored), wrong))
            impossible = outside_unit_interval(chances)
            if len(impossible):
                yield (
                    f"the constructor accepts {wrong} for {name}, which gives the probability "
                    f"{impossible[0]:.3g}; check {name} with probabilities or "
                    "check_number from clickgym.core.checks"
                )
                break


def _exact_values(model: Any, name: str, values: Any) -> tuple[NDArray[np.float64], ...]:
    """Return the probabilities of examination and clicks, and the expected rewards, of a model with
    other values of one parameter; return two empty arrays if the model rejects these values.
    """
    try:
        with uncompiled():  # an impossible value may give an index out of range
            other = model.with_items(**{name: values[()]})
            chances = [other._marginals(ranking).ravel() for ranking in _tried_lists(model)]
            rewards = [
                other.expected_reward(ranking, *question)
                for ranking in _tried_lists(model)
                for question in _rewards_and_cutoffs(model)
            ]
    except FAILURES:
        return np.empty(0), np.empty(0)
    return np.concatenate(chances), np.array(rewards)


def _check_sessions(model: Any, drawn: list[tuple[NDArray[Any], ...]]) -> None:
    """Check the sessions that were drawn for each list."""
    for ranking, (clicks, examined, left_at) in zip(_tried_lists(model), drawn, strict=True):
        is_set = np.isin(clicks, (0, 1)).all() and np.isin(examined, (0, 1)).all()
        expect(is_set, "sample left an entry of clicks or examined that is not 0 or 1")
        expect((clicks <= examined).all(), "sample marks a position as clicked but not as examined")
        satisfied = np.flatnonzero(left_at >= 0)
        is_clicked = clicks[satisfied, left_at[satisfied]] == 1
        expect(is_clicked.all(), "sample lets a user leave satisfied at a position without a click")
        of_list = f"probability of {ranking.tolist()}"
        checks = ((clicks, model.click_probabilities), (examined, model.examination_probabilities))
        for (values, probabilities), kind in zip(checks, ("click", "examination"), strict=True):
            _compare(f"the {kind} {of_list}", probabilities(ranking), values)


def _check_rewards(model: Any, clicks: NDArray[Any], left_at: NDArray[Any]) -> None:
    """Check the expected rewards of the first list, whose sessions were drawn."""
    ranking = _tried_lists(model)[0]
    probabilities = model.click_probabilities(ranking)
    for reward, cutoff in _rewards_and_cutoffs(model):
        value = model.expected_reward(ranking, reward, cutoff)
        reward_text = f"{reward}, cutoff {cutoff}"
        if reward == "clicks" or (reward, cutoff) == ("any_click", 1):
            total = probabilities[:cutoff].sum()
            fault = (
                f"the expected reward ({reward_text}) is {value:.6g}, but marginals gives click "
                f"probabilities that sum to {total:.6g}"
            )
            expect(abs(value - total) < EXACT, fault)
        else:
            earned: dict[str, Any] = {
                "any_click": clicks[:, :cutoff].any(axis=1),
                "satisfaction": (left_at >= 0) & (left_at < cutoff),
            }
            subject = f"the expected reward ({reward_text})"
            _compare(subject, np.array([value]), earned[reward][:, None])
        reordered = np.concatenate([ranking[:cutoff], ranking[cutoff:][::-1]])
        reordered_value = model.expected_reward(reordered, reward, cutoff)
        expect(
            value == reordered_value,
            f"the expected reward ({reward_text}) depends on positions below the cutoff: it "
            f"changes from {value} to {reordered_value} if the items there are reordered",
        )


def _check_best_lists(model: Any) -> None:
    """Check that the list that the model calls optimal is the best of all lists."""
    lists = list(itertools.permutations(range(model.n_items), model.n_positions))
    for reward, cutoff in _rewards_and_cutoffs(model):
        with kernels_in_python():
            ranks = model._places(REWARDS.index(reward), cutoff)
        if ranks is not None:
            is_valid = np.isin(ranks, np.arange(model.n_items)).all()
            expect(
                is_valid and np.asarray(ranks).dtype.kind in "iu",
                f"best_ranks returned {short_repr(ranks)} for {reward}, cutoff {cutoff}; "
                f"expected an array of integers from 0 to {model.n_items - 1}",
            )
        best = model.optimal_ranking(reward, cutoff)
        value = model.expected_reward(best, reward, cutoff)
        values = [model.expected_reward(ranking, reward, cutoff) for ranking in lists]
        best_index = int(np.argmax(values))
        optimal = f"the optimal list for {reward}, cutoff {cutoff} is {best.tolist()}, which earns"
        better_list = f"{value:.3g}; {list(lists[best_index])} earns {values[best_index]:.3g}"
        expect(value >= max(values) - EXACT, f"{optimal} {better_list}")


def _check_attraction(model: Any) -> None:
    """Check what the exact search for the best list assumes: no item is clicked with a higher
    probability than its attraction.
    """
    if "attraction" not in model.shapes or type(model).best_ranks is not ClickModel.best_ranks:
        return
    for ranking in _tried_lists(model):
        for item, probability in zip(ranking, model.click_probabilities(ranking), strict=True):
            attraction = model.attraction[item]
            expect(
                probability <= attraction + EXACT,
                f"item {item} is clicked with probability {probability:.4g} in the list "
                f"{ranking}, but its attraction is {attraction:.4g}; the search for the best list "
                "assumes that attraction is the larger one: rename the parameter, or override "
                "best_ranks",
            )


def _check_shorter_lists(model: Any) -> None:
    """Check that the clicks on a shorter list are those on the top of the longer list."""
    for ranking in _tried_lists(model):
        longer = model.click_probabilities(ranking)
        for length in range(1, model.n_positions):
            shorter = model.with_positions(length).click_probabilities(ranking[:length])
            _expect_close(
                f"the click probability of a list of {length} positions",
                shorter,
                longer[:length],
                f", as at the top of {model.n_positions} positions: it must depend neither on K "
                "nor on the items below, because a cutoff leaves them out",
            )


def _check_numbering(model: Any) -> None:
    """Check that nothing changes if the same items have other numbers."""
    ranking, order = _tried_lists(model)[0], np.roll(np.arange(model.n_items), 1)
    clicks = model.click_probabilities(ranking)
    renamed = model.relabelled(np.argsort(order)).click_probabilities(order[ranking])
    expect(
        np.allclose(renamed, clicks, rtol=0, atol=EXACT),
        f"the click probability is {clicks}, but {renamed} if the items are numbered differently; "
        "read the parameters of items at ranking[k], not at k, and store each in its own field",
    )


def _check_position_weights(model: Any) -> None:
    first, second = map(model.examination_probabilities, _tried_lists(model))
    with kernels_in_python():
        weights = model.position_weights()
    if weights is None:
        fault = (
            "position_weights() returns None, but examination does not depend on the list; "
            "return the examination probabilities by position"
        )
        expect(np.abs(first - second).max() > EXACT, fault)
    else:
        fault = (
            f"position_weights() is {weights}, but examination depends on the list: it is {first} "
            f"and {second} in two lists; leave position_weights out, or return None"
        )
        expect(np.abs(first - second).max() <= EXACT, fault)
        _expect_close("position_weights()", weights, first)


def _check_files(model: Any) -> None:
    loaded = ClickModel.from_dict(json.loads(json.dumps(model.to_dict())))
    names = f"{type(model).__name__}.short is {model.short!r}, which is the name of"
    hint = "give your class a short name of its own"
    expect(type(loaded) is type(model), f"{names} {type(loaded).__name__}; {hint}")
    for name, value in model._arguments().items():
        is_same = np.array_equal(value, loaded._arguments()[name])
        hint = "the constructor must store each argument in the field of its name"
        expect(is_same, f"from_dict(to_dict()) changes {name}; {hint}")
    ranking = _tried_lists(model)[0]
    env = ClickEnv(model)
    env.reset(seed=0)
    expect(
        env.step(ranking)[4]["regret"] >= -EXACT,
        f"the regret of {ranking.tolist()} is negative, so it beats the model's best list",
    )


def _tried_lists(model: Any) -> list[NDArray[np.int64]]:
    heads = ([2, 0, 3], [1, 3, 0]) if model.n_items > 3 else ([0],)
    lists = [[*head, *np.setdiff1d(range(model.n_items), head)] for head in heads]
    return [np.array(items)[: model.n_positions] for items in lists]


def _rewards_and_cutoffs(model: Any) -> list[tuple[str, int]]:
    """Return all pairs of a reward that the model defines and a cutoff."""
    return list(itertools.product(model.rewards, range(1, model.n_positions + 1)))


def _draw_sessions(model: Any, ranking: NDArray[np.int64]) -> tuple[NDArray[Any], ...]:
    """Draw n sessions of a list; return the clicks and examinations, both ``(n, K)``, and the
    positions at which users left satisfied, ``(n,)``, with -1 for users who did not.
    """
    from scipy.stats.qmc import Sobol  # slow to import

    points, rng = Sobol(model.n_uniforms, scramble=False).random(POINTS), np.random.default_rng(0)
    shifts = rng.random((SHIFTS, 1, model.n_uniforms))
    uniforms = ((points + shifts) % 1.0).reshape(-1, model.n_uniforms)
    clicks, examined = np.full((2, len(uniforms), len(ranking)), 7, np.int8)
    left_at, sample = np.empty(len(uniforms), np.int64), entry(model.sample_kernel)
    for i in range(len(uniforms)):
        left_at[i] = sample(model.parameters, ranking, uniforms[i], clicks[i], examined[i])
    return clicks, examined, left_at


def _expect_close(
    subject: str, values: NDArray[np.float64], expected: NDArray[np.float64], why: str = ""
) -> None:
    is_same = np.shape(values) == np.shape(expected) and np.allclose(
        values, expected, rtol=0, atol=EXACT
    )
    expect(is_same, f"{subject} is {values}; expected {expected}{why}")


def _compare(subject: str, exact: NDArray[np.float64], draws: NDArray[Any]) -> None:
    """Check that the means of ``(n, m)`` draws are close to their exact expectations ``(m,)``;
    errors call these expectations ``subject``.
    """
    means = draws.reshape(SHIFTS, POINTS, -1).mean(axis=1)  # independent, one for each shift
    mean, deviation = means.mean(axis=0), means.std(axis=0, ddof=1)
    # Draws that show no rare event have a deviation of 0. An event that n draws did not show can
    # still have a probability of z² / 2n: they miss it with a chance of only exp(-z² / 2).
    unseen = SIGMAS**2 / 2 / len(draws)
    is_close = np.abs(mean - exact) <= SIGMAS * deviation / np.sqrt(SHIFTS) + unseen
    expect(
        is_close.all(),
        f"{subject} is {exact} according to the model, but {mean} on average over {len(draws):,} "
        "drawn sessions",
    )
