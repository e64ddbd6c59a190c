"""Check a click model against the interface of click models: kernels, environments and files."""

from __future__ import annotations

import inspect
import itertools
import json
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.checks import short
from ..core.faults import Fault, expect, kernels_in_python, run_checks
from ..core.kernels import entry
from .arguments import forms_of
from .click_env import ClickEnv
from .click_model import KERNELS, ClickModel
from .contextual.linear import LinearModel
from .instances.families import drawn_model
from .piecewise_stationary import PiecewiseStationaryModel
from .task import REWARDS
from .vector_env import ClickVectorEnv

SIZES = ((1, 1), (2, 2), (4, 3), (6, 5))
"""Items and positions of the models; most checks take the last two, and some only the third."""
SESSIONS = 40_000
PYTHON_SESSIONS = 200
"""Sessions of each list in which kernels run as Python functions."""
SIGMAS = 5.5
"""The difference of a frequency and its probability, in standard errors, that counts as a fault."""
EXACT = 1e-9
HEADS = ([2, 0, 3], [1, 3, 0])
"""The first items of the lists that are checked, one for each list."""


def check_click_model(model: type[ClickModel]) -> None:
    """Check that a click model is complete and consistent.

    The checks are: the class attributes; the kernels as Python functions, which notice an index out
    of range (compiled kernels do only with ``NUMBA_BOUNDSCHECK=1`` in the environment); ``sample``
    draws with the probabilities of ``marginals`` and ``expected``, where 40,000 sessions cannot
    show a difference below 0.014; rewards read only the counted positions; the optimal list is the
    best of all lists; ``position_weights``, which agents of the position-based model require,
    returns the examination if it does not depend on the list; ``to_dict``, fewer positions and
    other items work; sessions run in each form of its environments. The function cannot check that
    the model is the one that you mean: test the probabilities of all click vectors for that.

    Args:
        model: the class; small models are made with random parameters of the shapes that the class
            declares, or by its ``example_parameters``.

    Raises:
        AssertionError: the model has faults; the message has a line for each.
        TypeError: ``model`` is not a class of click models.

    Example:
        >>> import clickgym
        >>> clickgym.check_click_model(clickgym.envs.CascadeModel)
        >>> class Forgetful(clickgym.envs.CascadeModel):
        ...     def _places(self, reward, cutoff):
        ...         return np.arange(self.n_items)[-cutoff:]
        >>> clickgym.check_click_model(Forgetful)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        AssertionError: Forgetful breaks the interface of click models:
        - optimal list: for clicks, cutoff 1 it is [3, 2, 1], which earns 0.551; [2, 0, 1] ...
        ...
    """
    if not isinstance(model, type) or not issubclass(model, ClickModel):
        raise TypeError(f"model is {short(model)}; expected a subclass of ClickModel")
    checks = _Checks(model)
    first = {
        "class attributes": checks.attributes,
        "constructor": checks.constructor,
        "kernels": checks.kernels,
    }
    others = {
        "parameters": checks.parameters,
        "sessions (sample, marginals)": checks.sessions,
        "rewards (expected)": checks.rewards,
        "optimal list": checks.optimum,
        "examination (position_weights)": checks.weights,
        "descriptions, positions and items": checks.files,
        "environments": checks.environments,
    }
    run_checks(f"{model.__name__} breaks the interface of click models", first, others)


class _Checks:
    """The checks of a class, on small models with random parameters."""

    def __init__(self, model_class: type[ClickModel]) -> None:
        self.model_class = model_class
        self.models: list[Any] = []
        self.model: Any = None

    def attributes(self) -> None:
        for name in ("short", "title", *KERNELS[:3]):
            expect(hasattr(self.model_class, name), f"{name} is missing")
        shapes = self.model_class.shapes
        for name, shape in shapes.items():
            wanted = "expected 'L', 'K', 'KK' or ''"
            expect(shape in ("L", "K", "KK", ""), f"the shape of {name} is {shape!r}; {wanted}")
        if "attraction" in shapes:
            first = next(iter(shapes))
            expect(first == "attraction", f"shapes begins with {first}; expected attraction")
        taken = inspect.signature(self.model_class).parameters.keys() - {"n_items", "n_positions"}
        what = f"shapes has {', '.join(shapes)}, but the constructor takes"
        expect(set(shapes) == taken, f"{what} {', '.join(sorted(taken))}")

    def constructor(self) -> None:
        for sizes in SIZES:
            model = drawn_model(self.model_class, {}, *sizes, seed=0)
            self.models.append(model)
            made = (model.n_items, model.n_positions)
            expect(made == sizes, f"n_items, n_positions are {made}; expected {sizes}")
        self.model = self.models[-2]

    def kernels(self) -> None:
        rng = np.random.default_rng(0)
        with kernels_in_python():
            for model in self.models:
                self._run_kernels(model, rng)

    def _run_kernels(self, model: ClickModel, rng: np.random.Generator) -> None:
        """Run all kernels of a model as Python functions."""
        n_items, parameters = model.n_items, model.parameters
        rewards = [(REWARDS.index(reward), reward) for reward in model.rewards]
        clicks, examined = np.empty((2, model.n_positions), np.int8)
        values, scratch = np.empty((2, n_items)), np.empty(model.n_positions + 1)
        for ranking in (np.arange(n_items), np.arange(n_items)[::-1].copy()):
            ranking = ranking[: model.n_positions]
            for uniforms in rng.random((PYTHON_SESSIONS, model.n_uniforms)):
                exit = model.sample_kernel(parameters, ranking, uniforms, clicks, examined)
                wanted = "expected a position or -1"
                is_place = isinstance(exit, int | np.integer)
                expect(is_place, f"sample returned {short(exit)}; {wanted}")
            marginals = np.empty((2, model.n_positions))
            model.marginals_kernel(parameters, ranking, *marginals, scratch)
            for (code, _), cutoff in itertools.product(rewards, range(1, model.n_positions + 1)):
                value = model.expected_kernel(parameters, ranking, code, cutoff, scratch)
                is_number = isinstance(value, int | float | np.number)
                expect(is_number, f"expected returned {short(value)}; expected a number")
        for code, reward in rewards:
            if model.scan_kernel is not None:
                model.scan_kernel(parameters, code, *values)
            model._search(reward, model.n_positions, run=lambda kernel: kernel)

    def parameters(self) -> None:
        for name, value in self.model.parameters._asdict().items():
            is_open = isinstance(value, np.ndarray) and value.flags.writeable
            expect(not is_open, f"{name} is writeable; copy it and set its writeable flag to False")

    def sessions(self) -> None:
        for model in self.models[-2:]:
            self._sessions_of(model)

    def _sessions_of(self, model: ClickModel) -> None:
        for ranking in _lists(model):
            clicks, examined, exits = _sessions(model, ranking)
            for name, values in (("clicks", clicks), ("examined", examined)):
                is_set = np.isin(values, (0, 1)).all()
                expect(is_set, f"{name} is not 0 or 1 at every position")
            expect((clicks <= examined).all(), "a position is clicked but not examined")
            places = np.arange(-1, len(ranking))
            expect(np.isin(exits, places).all(), "it returns neither a position nor -1")
            satisfied = np.flatnonzero(exits >= 0)
            unclicked = clicks[satisfied, exits[satisfied]] == 0
            expect(not unclicked.any(), "a user leaves satisfied at a position without a click")
            exact = model.click_probabilities(ranking)
            _compare(f"the click probability of {ranking.tolist()}", exact, clicks)
            exact = model.examination_probabilities(ranking)
            _compare(f"the examination probability of {ranking.tolist()}", exact, examined)

    def rewards(self) -> None:
        for model in self.models[-2:]:
            self._rewards_of(model)

    def _rewards_of(self, model: ClickModel) -> None:
        ranking = _lists(model)[0]
        clicks, _, exits = _sessions(model, ranking)
        for reward, cutoff in _questions(model):
            value = model.expected_reward(ranking, reward, cutoff)
            which, counted = f"{reward}, cutoff {cutoff}", clicks[:, :cutoff]
            realised = {
                "clicks": counted.sum(axis=1),
                "any_click": counted.any(axis=1),
                "satisfaction": (exits >= 0) & (exits < cutoff),
            }
            _compare(f"for {which} the expectation", np.array([value]), realised[reward][:, None])
            if reward == "clicks":
                total = model.click_probabilities(ranking)[:cutoff].sum()
                what = (
                    f"for {which} the expectation is {value:.6g}, but marginals sum to {total:.6g}"
                )
                expect(abs(value - total) < EXACT, what)
            below = np.concatenate([ranking[:cutoff], ranking[cutoff:][::-1]])
            other = model.expected_reward(below, reward, cutoff)
            expect(value == other, f"{which} depends on lower positions: {value}, {other}")

    def optimum(self) -> None:
        for model in [drawn_model(self.model_class, {}, 4, 3, seed) for seed in range(5)]:
            lists = list(itertools.permutations(range(model.n_items), model.n_positions))
            for reward, cutoff in _questions(model):
                best = model.optimal_ranking(reward, cutoff)
                value = model.expected_reward(best, reward, cutoff)
                values = [model.expected_reward(ranking, reward, cutoff) for ranking in lists]
                place = int(np.argmax(values))
                what = f"for {reward}, cutoff {cutoff} it is {best.tolist()}, which earns"
                better = f"{value:.3g}; {list(lists[place])} earns {values[place]:.3g}"
                expect(value >= max(values) - EXACT, f"{what} {better}")

    def weights(self) -> None:
        for model in self.models[-2:]:
            self._weights_of(model)

    def _weights_of(self, model: ClickModel) -> None:
        first, second = map(model.examination_probabilities, _lists(model))
        weights = model.position_weights()
        if weights is not None:
            _same("it", weights, first)
            _same("it", weights, second)
        else:
            what = "position_weights() is None, but the examination depends on no list; return it"
            depends = np.abs(first - second).max() > EXACT
            expect(depends, f"{what}: agents of the position-based model require it")

    def files(self) -> None:
        model, ranking = self.model, _lists(self.model)[0]
        again = ClickModel.from_dict(json.loads(json.dumps(model.to_dict())))
        expect(again == model, f"from_dict(to_dict()) of {model!r} is {again!r}")
        clicks, order = model.click_probabilities(ranking), np.roll(np.arange(model.n_items), 1)
        fewer = model.with_positions(2).click_probabilities(ranking[:2])
        _same("the click probability with_positions(2)", fewer, clicks[:2])
        renamed = model.relabelled(np.argsort(order)).click_probabilities(order[ranking])
        _same("the click probability of relabelled items", renamed, clicks)

    def environments(self) -> None:
        model, faced = self.model, [self.model]
        forms = forms_of(self.model_class) if self.model_class.has_forms else ()
        if "NonStationary" in forms:
            turned = model.relabelled(np.arange(model.n_items)[::-1])
            faced.append(PiecewiseStationaryModel([model, turned], [0, 5]))
        if "Contextual" in forms:
            others = {name: getattr(model.parameters, name) for name in model.item_parameters()[1:]}
            items = np.random.default_rng(0).random((model.n_items, 2)) / 2
            faced.append(LinearModel(model, [0.7, 0.2], items, **others))
        for users in faced:
            for env in (ClickEnv(users), ClickVectorEnv(users, 2)):
                env.action_space.seed(0)
                env.reset(seed=0)
                regrets = [env.step(env.action_space.sample())[4]["regret"] for _ in range(10)]
                expect(np.min(regrets) >= -EXACT, f"{env}: the regret is {np.min(regrets)}")


def _lists(model: ClickModel) -> list[NDArray[np.int64]]:
    lists = [[*head, *np.setdiff1d(range(model.n_items), head)] for head in HEADS]
    return [np.array(items)[: model.n_positions] for items in lists]


def _questions(model: ClickModel) -> Iterable[tuple[str, int]]:
    """Return every reward with every cutoff."""
    return itertools.product(model.rewards, range(1, model.n_positions + 1))


def _sessions(model: ClickModel, ranking: NDArray[np.int64]) -> tuple[NDArray[Any], ...]:
    """Return clicks and examinations ``(n, K)``, and the positions at which users left satisfied
    ``(n,)``.
    """
    clicks, examined = np.full((2, SESSIONS, len(ranking)), 7, np.int8)
    exits, sample = np.empty(SESSIONS, np.int64), entry(model.sample_kernel)
    uniforms = np.random.default_rng(0).random((SESSIONS, model.n_uniforms))
    for i in range(SESSIONS):
        exits[i] = sample(model.parameters, ranking, uniforms[i], clicks[i], examined[i])
    return clicks, examined, exits


def _same(what: str, values: NDArray[np.float64], expected: NDArray[np.float64]) -> None:
    is_same = np.allclose(values, expected, rtol=0, atol=EXACT)
    expect(is_same, f"{what} is {values}; expected {expected}")


def _compare(what: str, exact: NDArray[np.float64], drawn: NDArray[Any]) -> None:
    """Compare ``(m,)`` expectations with the means of ``(n, m)`` draws."""
    mean = drawn.mean(axis=0)
    spread = np.maximum(drawn.std(axis=0), np.sqrt(np.maximum(exact * (1.0 - exact), 0.0)))
    far = np.flatnonzero(np.abs(mean - exact) > SIGMAS * spread / np.sqrt(len(drawn)) + EXACT)
    if len(far):
        where, k = f" at position {far[0]}" if len(exact) > 1 else "", far[0]
        drew = f"in {len(drawn):,} sessions drawn it is {mean[k]:.3g}"
        raise Fault(f"{what}{where} is {exact[k]:.3g}, but {drew}")
