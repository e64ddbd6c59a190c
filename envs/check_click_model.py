"""Check a click model against the interface of click models: kernels, environments and files."""

from __future__ import annotations

import inspect
import itertools
import json
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.checks import short
from ..core.docstrings import entries, sections
from ..core.faults import Fault, expect, run_checks
from ..core.kernels import entry
from .click_env import ClickEnv, ClickVectorEnv
from .click_model import ClickModel
from .contextual.model import LinearModel
from .piecewise_stationary import PiecewiseStationaryModel
from .problem import forms_of
from .users import REWARDS

SESSIONS = 10_000
SIGMAS = 5.5
"""The difference of a frequency and its probability, in standard errors, that cannot be chance."""
EXACT = 1e-9
LISTS = ([2, 0, 3], [1, 3, 0])


def check_click_model(model: type[ClickModel] | ClickModel) -> None:
    """Check that a click model is complete and consistent. It returns nothing, or raises an error
    that lists all faults.

    It checks the class attributes. It checks that ``sample`` draws with the probabilities of
    ``marginals`` and ``expected``, and that rewards read only the counted positions. It checks that
    the optimal list is the best of all lists. It checks descriptions, fewer positions and other
    items. It plays a session in each form of its environments. It cannot check that the model is
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
        - optimal list: for clicks, cutoff 1 it is [3, 0, 1], which earns 0.113; [0, 1, 2] earns 0.61
        ...
    """
    model_class = model if isinstance(model, type) else type(model)
    if not isinstance(model_class, type) or not issubclass(model_class, ClickModel):
        raise TypeError(
            f"{short(model)} is no click model; expected a subclass of clickgym.envs.ClickModel, or an object of one"
        )
    if isinstance(model, ClickModel) and (model.n_items < 4 or model.n_positions < 3):
        raise ValueError(
            f"{short(model)} is too small to be checked; expected at least 4 items and 3 positions"
        )
    trial = _Trial(model_class, model if isinstance(model, ClickModel) else None)
    then = [
        trial.parameters,
        trial.sessions,
        trial.probabilities,
        trial.rewards,
        trial.counted,
        trial.optimum,
        trial.files,
    ]
    then += [trial.documentation, trial.environments]
    what = f"{model_class.__name__} breaks the interface of click models"
    run_checks(what, [trial.attributes, trial.constructor], then)


class _Trial:
    """A class of click models, and small models of it."""

    def __init__(self, model_class: type[ClickModel], model: ClickModel | None) -> None:
        self.model_class, self.made = model_class, model

    def make(self, n_items: int = 4, n_positions: int = 3, seed: int = 0) -> ClickModel:
        """A model of random parameters; with those that have defaults left out where the class
        refuses them.
        """
        rng = np.random.default_rng(seed)
        arguments = inspect.signature(self.model_class).parameters
        drawn = {
            name: _uniform(rng, shape, n_items, n_positions)
            for name, shape in self.model_class.shapes.items()
        }
        sizes = {"n_items": n_items, "n_positions": n_positions}
        sizes = {name: size for name, size in sizes.items() if name in arguments}
        try:
            return self.model_class(**drawn, **sizes)
        except ValueError:
            required = {
                name: value
                for name, value in drawn.items()
                if arguments[name].default is inspect.Parameter.empty
            }
            if required == drawn:
                raise
            return self.model_class(**required, **sizes)

    @cached_property
    def model(self) -> ClickModel:
        return self.make() if self.made is None else self.made

    def ranking(self, items: list[int]) -> NDArray[np.int64]:
        """A list of the model: the given items, then others."""
        others = [item for item in range(self.model.n_items) if item not in items]
        return np.array([*items, *others][: self.model.n_positions])

    # ------------------------------------------------------------------------------------------------------------- checks

    def attributes(self) -> None:
        """Class attributes."""
        for name in (
            "short",
            "title",
            "shapes",
            "rewards",
            "sample_kernel",
            "marginals_kernel",
            "expected_kernel",
        ):
            expect(hasattr(self.model_class, name), f"{name} is missing")
        unknown = [reward for reward in self.model_class.rewards if reward not in REWARDS]
        expect(
            not unknown, f"rewards has {', '.join(unknown)}; expected some of {', '.join(REWARDS)}"
        )
        expect(
            self.model_class.default_reward in self.model_class.rewards,
            f"rewards lacks {self.model_class.default_reward}",
        )
        for name, shape in self.model_class.shapes.items():
            expect(
                shape in ("L", "K", "KK", ""),
                f"the shape of {name} is {shape!r}; expected 'L', 'K', 'KK' or ''",
            )
        arguments = inspect.signature(self.model_class).parameters
        expect(
            set(self.model_class.shapes) == set(arguments) - {"n_items", "n_positions"},
            f"shapes has {', '.join(self.model_class.shapes)}, but the constructor takes {', '.join(arguments)}",
        )

    def constructor(self) -> None:
        """Constructor."""
        if self.made is not None:
            return
        for n_items, n_positions in ((4, 3), (2, 2), (1, 1)):
            model = self.make(n_items, n_positions)
            sizes = (model.n_items, model.n_positions)
            expect(
                sizes == (n_items, n_positions),
                f"n_items, n_positions are {sizes}; expected {(n_items, n_positions)}",
            )

    def parameters(self) -> None:
        """Parameters."""
        for name in self.model_class.shapes:
            expect(hasattr(self.model.parameters, name), f"the named tuple has no {name}")
        for name, value in self.model.parameters._asdict().items():
            writable = isinstance(value, np.ndarray) and value.flags.writeable
            expect(
                not writable,
                f"{name} can be written into; copy it and set its flag writeable to False",
            )

    def _draw(self, ranking: NDArray[np.int64], n_sessions: int) -> tuple[NDArray[Any], ...]:
        """Clicks and examinations ``(n, K)``, and where users left satisfied ``(n,)``, of sessions
        drawn by the kernel.
        """
        model, shape = self.model, (n_sessions, len(ranking))
        clicks, examined, exits = (
            np.full(shape, 7, np.int8),
            np.full(shape, 7, np.int8),
            np.empty(n_sessions, np.int64),
        )
        for session, uniforms in enumerate(np.random.default_rng(0).random(shape)):
            draws = uniforms.copy()
            exits[session] = entry(model.sample_kernel)(
                model.parameters, ranking, draws, clicks[session], examined[session]
            )
        return clicks, examined, exits

    def sessions(self) -> None:
        """Sessions (sample)."""
        for items in LISTS:
            clicks, examined, exits = self._draw(self.ranking(items), 300)
            again = self._draw(self.ranking(items), 300)
            expect(
                all(map(np.array_equal, (clicks, examined, exits), again)),
                "the same uniforms give other sessions",
            )
            for name, values in (("clicks", clicks), ("examined", examined)):
                expect(
                    np.isin(values, (0, 1)).all(), f"{name} is not set to 0 or 1 at every position"
                )
            expect((clicks <= examined).all(), "a position is clicked that is not examined")
            outside = (exits < -1) | (exits >= clicks.shape[1])
            expect(
                not outside.any(),
                f"it returns {exits[outside][:1]}; expected the position of the last click, or -1",
            )
            satisfied = np.flatnonzero(exits >= 0)
            expect(
                clicks[satisfied, exits[satisfied]].all(),
                "a user leaves satisfied where nothing is clicked",
            )

    def probabilities(self) -> None:
        """Probabilities (marginals)."""
        for items in LISTS:
            ranking = self.ranking(items)
            drawn, examined, _ = self._draw(ranking, SESSIONS)
            for what, exact, sample in (
                ("click", self.model.click_probabilities(ranking), drawn),
                ("examination", self.model.examination_probabilities(ranking), examined),
            ):
                expect(
                    ((exact >= -EXACT) & (exact <= 1 + EXACT)).all(),
                    f"{what} probabilities are {exact}",
                )
                _expect_drawn(f"the {what} probability of {ranking.tolist()}", exact, sample)

    def rewards(self) -> None:
        """Rewards (expected)."""
        ranking = self.ranking(LISTS[0])
        clicks, _, exits = self._draw(ranking, SESSIONS)
        exact = self.model.click_probabilities(ranking)
        for cutoff, reward in itertools.product(
            range(1, self.model.n_positions + 1), self.model.rewards
        ):
            value, which = (
                self.model.expected_reward(ranking, reward, cutoff),
                f"{reward}, cutoff {cutoff}",
            )
            counted = clicks[:, :cutoff]
            happy = (exits >= 0) & (exits < cutoff)
            realised = {
                "clicks": counted.sum(axis=1),
                "any_click": counted.any(axis=1),
                "satisfaction": happy,
            }
            if reward == "clicks":
                total = exact[:cutoff].sum()
                expect(
                    abs(value - total) <= EXACT,
                    f"for {which} it is {value:g}, but marginals add up to {total:g}",
                )
            _expect_drawn(
                f"for {which} the expectation", np.array([value]), realised[reward][:, None]
            )

    def counted(self) -> None:
        """Counted positions (expected)."""
        head = self.ranking(LISTS[0])
        for reward in self.model.rewards:
            tail = head[[0, 2, 1, *range(3, len(head))]]
            first, second = (
                self.model.expected_reward(ranking, reward, 1) for ranking in (head, tail)
            )
            expect(
                first == second,
                f"{reward} with cutoff 1 depends on what stands below it: {first:g}, {second:g}",
            )

    def optimum(self) -> None:
        """Optimal list."""
        models = [self.make(seed=seed) for seed in range(5)] if self.made is None else [self.model]
        for model in models:
            if model.n_items > 6:
                return
            lists = list(itertools.permutations(range(model.n_items), model.n_positions))
            for reward, cutoff in itertools.product(model.rewards, range(1, model.n_positions + 1)):
                best, which = model.optimal_ranking(reward, cutoff), f"{reward}, cutoff {cutoff}"
                expect(
                    tuple(best.tolist()) in lists,
                    f"for {which} it is {best}; expected {model.n_positions} distinct items",
                )
                values = [model.expected_reward(ranking, reward, cutoff) for ranking in lists]
                value, better = (
                    model.expected_reward(best, reward, cutoff),
                    lists[int(np.argmax(values))],
                )
                expect(
                    value >= max(values) - EXACT,
                    f"for {which} it is {best.tolist()}, which earns {value:.3g}; {list(better)} earns {max(values):.3g}",
                )

    def files(self) -> None:
        """Descriptions, positions and items."""
        model, ranking = self.model, self.ranking(LISTS[0])
        again = ClickModel.from_dict(json.loads(json.dumps(model.to_dict())))
        expect(
            again == model and type(again) is type(model),
            f"from_dict makes {again!r} of what to_dict says of {model!r}",
        )
        shorter = model.with_positions(2)
        expect(shorter.n_positions == 2, f"with_positions(2) has {shorter.n_positions} positions")
        first, second = (
            users.click_probabilities(ranking[:n])[:2]
            for users, n in ((model, len(ranking)), (shorter, 2))
        )
        same = np.allclose(first, second, rtol=0, atol=EXACT)
        expect(same, f"with_positions(2) changes the click probabilities from {first} to {second}")
        order = np.roll(np.arange(model.n_items), 1)
        values = [
            model.click_probabilities(order[ranking]),
            model.relabelled(order).click_probabilities(ranking),
        ]
        expect(
            np.allclose(values[0], values[1], rtol=0, atol=EXACT),
            f"other numbers of the items change the click probabilities from {values[0]} to {values[1]}; the shapes of what "
            "belongs to items are 'L'",
        )

    def documentation(self) -> None:
        """Documentation."""
        told = entries(sections(self.model_class.__doc__ or "").get("Args", ""))
        missing = [name for name in self.model_class.shapes if name not in told]
        expect(
            not missing,
            f"under Args of the docstring, from which pages are made, {', '.join(missing)} is missing",
        )

    def environments(self) -> None:
        """Environments."""
        model = self.model
        users: dict[str, Any] = {"": model}
        forms = forms_of(self.model_class)
        if "NonStationary" in forms:
            users["NonStationary"] = PiecewiseStationaryModel(
                [model, model.relabelled(np.arange(model.n_items)[::-1])], [0, 5]
            )
        if "Contextual" in forms:
            others = {name: getattr(model.parameters, name) for name in model.item_parameters()[1:]}
            users["Contextual"] = LinearModel(
                model, [0.7, 0.2], np.random.default_rng(0).random((model.n_items, 2)) / 2, **others
            )
        for form, faced in users.items():
            for env in (ClickEnv(faced), ClickVectorEnv(faced, 2)):
                which = f"{type(env).__name__}{f', {form}' if form else ''}"
                try:
                    env.action_space.seed(0)
                    env.reset(seed=0)
                    for _ in range(10):
                        info = env.step(env.action_space.sample())[4]
                        expect(
                            (np.asarray(info["regret"]) >= -EXACT).all(),
                            f"{which}: the regret is {info['regret']}",
                        )
                except Fault:
                    raise
                except Exception as error:
                    raise Fault(f"{which}: {type(error).__name__}: {error}") from error


def _uniform(rng: np.random.Generator, shape: str, n_items: int, n_positions: int) -> Any:
    """Random probabilities of a shape that a class of click models names."""
    values = rng.uniform(0.1, 0.9, [{"L": n_items, "K": n_positions}[letter] for letter in shape])
    return np.tril(values) if shape == "KK" else values if shape else float(values)


def _expect_drawn(what: str, exact: NDArray[np.float64], drawn: NDArray[Any]) -> None:
    """Means of ``(n, m)`` draws against their ``(m,)`` expectations."""
    mean = drawn.mean(axis=0)
    spread = np.maximum(drawn.std(axis=0), np.sqrt(np.maximum(exact * (1.0 - exact), 0.0)))
    far = np.flatnonzero(np.abs(mean - exact) > SIGMAS * spread / np.sqrt(len(drawn)) + EXACT)
    if len(far):
        where = f" at position {far[0]}" if len(exact) > 1 else ""
        raise Fault(
            f"{what}{where} is {exact[far[0]]:.3g}, but in {len(drawn):,} sessions drawn it is {mean[far[0]]:.3g}"
        )
