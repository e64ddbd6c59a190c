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
from ..core.docstrings import entries, sections
from ..core.faults import Fault, expect, run_checks
from ..core.kernels import entry
from .click_env import ClickEnv
from .click_model import KERNELS, ClickModel
from .contextual.model import LinearModel
from .piecewise_stationary import PiecewiseStationaryModel
from .problem import forms_of
from .users import REWARDS
from .vector_env import ClickVectorEnv

SESSIONS = 10_000
SIGMAS = 5.5
"""The difference of a frequency and its probability, in standard errors, that cannot be chance."""
EXACT = 1e-9
HEADS = ([2, 0, 3], [1, 3, 0])
"""The first items of the lists that are checked."""


def check_click_model(model: type[ClickModel] | ClickModel) -> None:
    """Check that a click model is complete and consistent. It returns nothing, or raises an error
    that lists all faults.

    It checks the class attributes. It checks that ``sample`` draws with the probabilities of
    ``marginals`` and ``expected``, and that rewards read only the counted positions. It checks that
    the optimal list is the best of all lists. It checks that ``position_weights``, which agents of
    the position-based model require, returns the examination where this does not depend on the
    list. It checks descriptions, fewer positions and other items. It plays a session in each form
    of its environments. It cannot check that the model is
    the one that you mean: test the probabilities of all click vectors for that.

    Args:
        model: the class; small models are made with random parameters of the shapes that the class
            names. If not all parameters are valid for the class, pass a model with at least four
            items and three positions instead.

    Raises:
        AssertionError: the model has faults; the message has a line for each.
        TypeError: it is no click model.
        ValueError: it is an object with fewer items or positions.

    Example:
        >>> import clickgym
        >>> clickgym.check_click_model(clickgym.envs.CascadeModel)
        >>> class Forgetful(clickgym.envs.CascadeModel):
        ...     def _places(self, reward, cutoff):
        ...         return np.arange(self.n_items)[-cutoff:]
        >>> clickgym.check_click_model(Forgetful)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        AssertionError: Forgetful breaks the interface of click models:
        - optimal list: for clicks, cutoff 1 it is [3, 0, 1], which earns 0.113; [0, 1, 2] ...
        ...
    """
    model_class = model if isinstance(model, type) else type(model)
    if not issubclass(model_class, ClickModel):
        raise TypeError(f"{short(model)} is no click model; expected a subclass of ClickModel")
    if isinstance(model, ClickModel) and (model.n_items < 4 or model.n_positions < 3):
        raise ValueError(f"{short(model)} is too small; expected 4 items and 3 positions or more")
    checks = _Checks(model_class, model if isinstance(model, ClickModel) else None)
    first = [checks.attributes, checks.constructor]
    then = [checks.parameters, checks.sessions, checks.probabilities, checks.rewards]
    then += [checks.optimum, checks.weights, checks.files, checks.documentation]
    then += [checks.environments]
    run_checks(f"{model_class.__name__} breaks the interface of click models", first, then)


class _Checks:
    """The checks of a class, on small models with random parameters, or of a model."""

    def __init__(self, model_class: type[ClickModel], model: ClickModel | None) -> None:
        self.model_class, self.is_drawn = model_class, model is None
        self.model: Any = model

    def attributes(self) -> None:
        """Class attributes."""
        if not self.is_drawn:
            return
        for name in ("short", "title", "rewards", *KERNELS[:3]):
            expect(hasattr(self.model_class, name), f"{name} is missing")
        unknown = ", ".join(set(self.model_class.rewards) - set(REWARDS))
        expect(not unknown, f"rewards has {unknown}; expected some of {', '.join(REWARDS)}")
        default, shapes = self.model_class.default_reward, self.model_class.shapes
        expect(default in self.model_class.rewards, f"rewards lacks {default}")
        for name, shape in shapes.items():
            wanted = "expected 'L', 'K', 'KK' or ''"
            expect(shape in ("L", "K", "KK", ""), f"the shape of {name} is {shape!r}; {wanted}")
        taken = inspect.signature(self.model_class).parameters.keys() - {"n_items", "n_positions"}
        what = f"shapes has {', '.join(shapes)}, but the constructor takes"
        expect(set(shapes) == taken, f"{what} {', '.join(sorted(taken))}")

    def constructor(self) -> None:
        """Constructor."""
        for sizes in ((1, 1), (2, 2), (4, 3)) if self.is_drawn else ():
            self.model = _drawn(self.model_class, *sizes)
            made = (self.model.n_items, self.model.n_positions)
            expect(made == sizes, f"n_items, n_positions are {made}; expected {sizes}")

    def parameters(self) -> None:
        """Parameters."""
        parameters = self.model.parameters._asdict()
        for name in self.model_class.shapes:
            expect(name in parameters, f"the named tuple has no {name}")
        for name, value in parameters.items():
            is_open = isinstance(value, np.ndarray) and value.flags.writeable
            expect(not is_open, f"{name} can be written into; copy it and set its flag to False")

    def sessions(self) -> None:
        """Sessions (sample)."""
        for ranking in self._lists():
            clicks, examined, exits = self._sessions(ranking, 300)
            for name, values in (("clicks", clicks), ("examined", examined)):
                is_set = np.isin(values, (0, 1)).all()
                expect(is_set, f"{name} is not set to 0 or 1 at every position")
            expect((clicks <= examined).all(), "a position is clicked that is not examined")
            outside = exits[(exits < -1) | (exits >= len(ranking))]
            wanted = "expected the position of the last click, or -1"
            expect(not len(outside), f"it returns {outside[:1]}; {wanted}")
            satisfied = np.flatnonzero(exits >= 0)
            unclicked = clicks[satisfied, exits[satisfied]] == 0
            expect(not unclicked.any(), "a user leaves satisfied where nothing is clicked")

    def probabilities(self) -> None:
        """Probabilities (marginals)."""
        for ranking in self._lists():
            clicks, examined, _ = self._sessions(ranking, SESSIONS)
            exact = self.model.click_probabilities(ranking)
            _compare(f"the click probability of {ranking.tolist()}", exact, clicks)
            exact = self.model.examination_probabilities(ranking)
            _compare(f"the examination probability of {ranking.tolist()}", exact, examined)

    def rewards(self) -> None:
        """Rewards (expected)."""
        model, ranking = self.model, self._lists()[0]
        clicks, _, exits = self._sessions(ranking, SESSIONS)
        for reward, cutoff in self._questions():
            value = model.expected_reward(ranking, reward, cutoff)
            which, counted = f"{reward}, cutoff {cutoff}", clicks[:, :cutoff]
            realised: Any = (exits >= 0) & (exits < cutoff)
            if reward != "satisfaction":
                realised = counted.sum(axis=1) if reward == "clicks" else counted.any(axis=1)
            total = model.click_probabilities(ranking)[:cutoff].sum()
            adds_up = reward != "clicks" or abs(value - total) <= EXACT
            expect(adds_up, f"for {which} it is {value:g}, but marginals add up to {total:g}")
            _compare(f"for {which} the expectation", np.array([value]), realised[:, None])
            below = np.concatenate([ranking[:cutoff], ranking[cutoff:][::-1]])
            other = model.expected_reward(below, reward, cutoff)
            expect(value == other, f"{which} depends on what stands below it: {value}, {other}")

    def optimum(self) -> None:
        """Optimal list."""
        seeds = range(5 if self.is_drawn else 0)
        for model in [_drawn(self.model_class, seed=seed) for seed in seeds] or [self.model]:
            if model.n_items > 6:  # too many lists
                continue
            lists = list(itertools.permutations(range(model.n_items), model.n_positions))
            for reward, cutoff in self._questions():
                best = model.optimal_ranking(reward, cutoff).tolist()
                what = f"for {reward}, cutoff {cutoff} it is {best}"
                expect(tuple(best) in lists, f"{what}; expected distinct items")
                value = model.expected_reward(best, reward, cutoff)
                values = [model.expected_reward(ranking, reward, cutoff) for ranking in lists]
                place = int(np.argmax(values))
                better = f"{list(lists[place])} earns {values[place]:.3g}"
                expect(value >= max(values) - EXACT, f"{what}, which earns {value:.3g}; {better}")

    def weights(self) -> None:
        """Examination (position_weights)."""
        first, second = map(self.model.examination_probabilities, self._lists())
        weights = self.model.position_weights()
        if weights is not None:
            is_right = np.allclose([first, second], weights, rtol=0, atol=EXACT)
            expect(is_right, f"it is {weights}, but positions are examined with {first}, {second}")
        elif self.is_drawn:
            what = "position_weights() is None; return the examination, which depends on no list"
            depends = np.abs(first - second).max() > EXACT
            expect(depends, f"{what}: agents of the position-based model require it")

    def files(self) -> None:
        """Descriptions, positions and items."""
        model, ranking = self.model, self._lists()[0]
        again = ClickModel.from_dict(json.loads(json.dumps(model.to_dict())))
        expect(again == model, f"from_dict makes {again!r} of what to_dict says of {model!r}")
        clicks, order = model.click_probabilities(ranking), np.roll(np.arange(model.n_items), 1)
        fewer = model.with_positions(2).click_probabilities(ranking[:2])
        what = "the click probabilities from"
        is_same = np.allclose(fewer, clicks[:2], rtol=0, atol=EXACT)
        expect(is_same, f"with_positions(2) changes {what} {clicks[:2]} to {fewer}")
        renamed = model.relabelled(np.argsort(order)).click_probabilities(order[ranking])
        is_same = np.allclose(renamed, clicks, rtol=0, atol=EXACT)
        expect(is_same, f"other numbers of the items change {what} {clicks} to {renamed}")

    def documentation(self) -> None:
        """Documentation."""
        described = entries(sections(self.model_class.__doc__ or "").get("Args", ""))
        missing = ", ".join(name for name in self.model_class.shapes if name not in described)
        expect(not missing, f"Args of the docstring, from which pages are made, lacks {missing}")

    def environments(self) -> None:
        """Environments."""
        model, faced = self.model, [self.model]
        forms = forms_of(self.model_class) if hasattr(self.model_class, "short") else ()
        if "NonStationary" in forms:
            turned = model.relabelled(np.arange(model.n_items)[::-1])
            faced.append(PiecewiseStationaryModel([model, turned], [0, 5]))
        if "Contextual" in forms:
            others = {name: getattr(model.parameters, name) for name in model.item_parameters()[1:]}
            items = np.random.default_rng(0).random((model.n_items, 2)) / 2
            faced.append(LinearModel(model, [0.7, 0.2], items, **others))
        for users, kind in itertools.product(faced, (ClickEnv, ClickVectorEnv)):
            env: Any = kind(users) if kind is ClickEnv else kind(users, 2)
            try:
                env.action_space.seed(0)
                env.reset(seed=0)
                regrets = [env.step(env.action_space.sample())[4]["regret"] for _ in range(10)]
            except Exception as error:
                raise Fault(f"{kind.__name__} of {users.kind}: {error}") from error
            least = np.min(regrets)
            expect(least >= -EXACT, f"{kind.__name__} of {users.kind}: the regret is {least}")

    def _lists(self) -> list[NDArray[np.int64]]:
        lists = [[*head, *np.setdiff1d(range(self.model.n_items), head)] for head in HEADS]
        return [np.array(items)[: self.model.n_positions] for items in lists]

    def _questions(self) -> Iterable[tuple[str, int]]:
        """Every reward with every cutoff."""
        return itertools.product(self.model.rewards, range(1, self.model.n_positions + 1))

    def _sessions(self, ranking: NDArray[np.int64], n: int) -> tuple[NDArray[Any], ...]:
        """Clicks and examinations ``(n, K)``, and where users left satisfied ``(n,)``."""
        clicks, examined = np.full((2, n, len(ranking)), 7, np.int8)
        exits, sample = np.empty(n, np.int64), entry(self.model.sample_kernel)
        uniforms = np.random.default_rng(0).random((n, self.model.n_uniforms))
        for i in range(n):
            exits[i] = sample(self.model.parameters, ranking, uniforms[i], clicks[i], examined[i])
        return clicks, examined, exits


def _drawn(
    model_class: type[ClickModel], n_items: int = 4, n_positions: int = 3, seed: int = 0
) -> ClickModel:
    """A model of random parameters; without those that have defaults, where the class refuses
    them.
    """
    rng, lengths = np.random.default_rng(seed), {"L": n_items, "K": n_positions}
    parameters: dict[str, Any] = {}
    for name, shape in model_class.shapes.items():
        values = rng.uniform(0.1, 0.9, [lengths[letter] for letter in shape])
        parameters[name] = np.tril(values) if shape == "KK" else values if shape else float(values)
    taken = inspect.signature(model_class).parameters
    both = {"n_items": n_items, "n_positions": n_positions}
    sizes = {name: both[name] for name in both if name in taken}
    try:
        return model_class(**parameters, **sizes)
    except ValueError:
        required = [name for name in parameters if taken[name].default is inspect.Parameter.empty]
        return model_class(**{name: parameters[name] for name in required}, **sizes)


def _compare(what: str, exact: NDArray[np.float64], drawn: NDArray[Any]) -> None:
    """``(m,)`` expectations with the means of ``(n, m)`` draws."""
    mean = drawn.mean(axis=0)
    spread = np.maximum(drawn.std(axis=0), np.sqrt(np.maximum(exact * (1.0 - exact), 0.0)))
    far = np.flatnonzero(np.abs(mean - exact) > SIGMAS * spread / np.sqrt(len(drawn)) + EXACT)
    if len(far):
        where, k = f" at position {far[0]}" if len(exact) > 1 else "", far[0]
        drew = f"in {len(drawn):,} sessions drawn it is {mean[k]:.3g}"
        raise Fault(f"{what}{where} is {exact[k]:.3g}, but {drew}")
