"""Hyper-parameters that a class declares: the constructor, the search space and the knowledge that
follow from them.
"""

import copy
import inspect
import re

import cloudpickle
import numpy as np
import pytest

from clickgym.agents import (
    C2UCB,
    PBMUCB,
    BatchRank,
    CascadeKLUCB,
    CascadeTS,
    CascadeUCB1,
    CompiledAgent,
    ContextualAgent,
    Range,
    UBMLinUCB,
)
from clickgym.agents.hyperparameters import (
    above,
    at_least,
    between,
    count,
    hyperparameter,
    one_of,
    sessions,
)
from clickgym.core.checks import check_flag


class Base(CascadeTS):
    """Declares one of each kind."""

    prior: float = hyperparameter(default=1.0, check=above(0), search=Range(0.1, 10.0))
    window: int | None = hyperparameter(default=None, check=count(2), search=(None, 5, 10))
    weights = hyperparameter(
        check=lambda name, value, n_positions: np.full(n_positions, value), sizes=["n_positions"]
    )
    known = hyperparameter(default="", told="users")


class Further(Base):
    """Inherits, adds, and declares one anew."""

    window: int = hyperparameter(default=7, check=count(2))
    horizon: int = hyperparameter(check=sessions(3), doc="T.")
    ranking: str = hyperparameter(default="", check=one_of(("", "best")))


def parameters(agent):
    return {
        name: (each.annotation, each.default)
        for name, each in inspect.signature(agent).parameters.items()
    }


def test_the_constructor_takes_what_is_declared_required_ones_first():
    assert list(parameters(Base)) == [
        "n_items",
        "n_positions",
        "weights",
        "feedback",
        "prior",
        "window",
        "known",
        "seed",
    ]
    assert list(parameters(Further))[2:5] == ["weights", "horizon", "feedback"]
    assert parameters(Further)["window"] == (int, 7)
    assert parameters(Base)["known"] == (inspect.Parameter.empty, "")
    assert {
        name: parameters(CascadeKLUCB)[name] for name in ("n_items", "c", "feedback", "seed")
    } == {
        "n_items": ("int", inspect.Parameter.empty),
        "c": ("float", 3.0),
        "feedback": ("str", "last_click"),
        "seed": ("Seed", None),
    }


def test_values_are_checked_and_kept_in_one_place():
    agent = Further(5, 3, weights=0.5, prior=2, horizon=1e3, seed=0)
    weights = agent.hyperparameters.pop("weights")
    assert weights.tolist() == [0.5] * 3
    assert agent.hyperparameters == {
        "feedback": "last_click",
        "prior": 2.0,
        "window": 7,
        "known": "",
        "horizon": 1000,
        "ranking": "",
    }
    assert agent.horizon == 1000
    assert not hasattr(agent, "prior")
    assert Base(5, 3, weights=1).hyperparameters["window"] is None
    with pytest.raises(
        ValueError, match=re.escape("window is None; expected an integer of at least 2")
    ):
        Further(5, 3, weights=1, horizon=10, window=None)
    assert Further(5, 3, weights=1, horizon=10, ranking="best").ranking.tolist() == [-1] * 3, (
        "the last list, which is of every agent"
    )


@pytest.mark.parametrize(
    ("check", "value", "expected"),
    [
        (at_least(1), 0.5, "a finite number >= 1"),
        (above(0), 0, "a finite number > 0"),
        (between(0, 1), 1, "a number in (0, 1)"),
        (between(0, 1, closed=True), 2, "a number in (0, 1]"),
        (count(), 0, "a positive integer"),
        (sessions(2), 1, "an integer of at least 2"),
    ],
)
def test_checks_name_the_hyperparameter(check, value, expected):
    with pytest.raises(ValueError, match=re.escape(f"mine is {value}; expected {expected}")):
        check("mine", value)


def test_one_of_some_words():
    assert one_of(("a", "b"))("mine", "a") == "a"
    with pytest.raises(ValueError, match=r"unknown mine 'c'"):
        one_of(("a", "b"))("mine", "c")


def test_the_search_space_and_what_agents_are_told_follow():
    searched = {"feedback": CascadeTS.search_space["feedback"], "prior": Range(0.1, 10.0)}
    assert Base.search_space == {**searched, "window": (None, 5, 10)}
    assert Further.search_space == searched
    assert Base.told == Further.told == {"known": "users"}

    class Own(Base):
        other = hyperparameter(default=1, search=(1, 2))
        search_space = {"prior": (1, 2)}  # noqa: RUF012
        told = {}  # noqa: RUF012

    assert Own.search_space == {"prior": (1, 2)}
    assert Own.told == {}


@pytest.mark.parametrize(
    ("agent", "arguments", "hyperparameters", "message"),
    [
        (
            CascadeTS,
            (5, 3),
            {"x": 1},
            "CascadeTS.__init__() got an unexpected keyword argument 'x'",
        ),
        (
            C2UCB,
            (5, 3),
            {"n_features": 2, "x": 1},
            "C2UCB.__init__() got an unexpected keyword argument 'x'",
        ),
        (
            BatchRank,
            (5, 3),
            {},
            "BatchRank.__init__() missing 1 required keyword-only argument: 'horizon'",
        ),
        (
            CascadeUCB1,
            (5, 3, 0),
            {},
            "CascadeUCB1.__init__() takes 3 positional arguments but 4 were given",
        ),
        (
            CascadeUCB1,
            (5, 3),
            {"n_items": 5},
            "CascadeUCB1.__init__() got multiple values for argument 'n_items'",
        ),
        (
            CascadeUCB1,
            (5,),
            {},
            "CascadeUCB1.__init__() missing 1 required positional argument: 'n_positions'",
        ),
        (
            Further,
            (5, 3),
            {},
            "Further.__init__() missing 2 required keyword-only arguments: 'weights' and 'horizon'",
        ),
    ],
)
def test_wrong_arguments_are_refused_in_pythons_words(agent, arguments, hyperparameters, message):
    with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
        agent(*arguments, **hyperparameters)


# ------------------------------------------------------------------------------------------------ constructors of one's own


class Optimistic(CascadeKLUCB):
    def __init__(self, n_items, n_positions, *, hope=2.0, seed=None):
        super().__init__(n_items, n_positions, c=hope / 2, seed=seed)


class Logged(CompiledAgent):
    """Stands before an agent, with a constructor of its own."""

    def __init__(self, n_items, n_positions, *, log, seed=None, **hyperparameters):
        super().__init__(n_items, n_positions, seed=seed, **hyperparameters)
        self.log = log


class LoggedKLUCB(Logged, CascadeKLUCB):
    pass


class OwnState(CompiledAgent):
    scale = hyperparameter(default=1.0, check=at_least(0))

    def __init__(self, n_items, n_positions, *, scale=2.0, other=1, seed=None):
        super().__init__(n_items, n_positions, seed, scale=scale, other=other)

    def _initial_state(self):
        return self.hyperparameters["scale"]


class OwnContext(ContextualAgent):
    def __init__(self, n_items, n_positions, *, n_features, wide=False, seed=None):
        super().__init__(n_items, n_positions, n_features, seed, wide=check_flag("wide", wide))

    def _initial_state(self):
        return np.zeros(self.n_features)


def test_a_class_may_write_its_own_constructor():
    assert Optimistic(5, 3, hope=4).hyperparameters["c"] == 2.0
    assert "c" not in inspect.signature(Optimistic).parameters
    agent = LoggedKLUCB(5, 3, log=7, c=1, seed=0)
    assert agent.log == 7
    assert agent.hyperparameters["c"] == 1.0
    with pytest.raises(
        TypeError, match=r"^CascadeKLUCB\.__init__\(\) got an unexpected keyword argument 'x'$"
    ):
        LoggedKLUCB(5, 3, log=7, x=1)
    assert OwnState(5, 3, scale=3).hyperparameters == {"scale": 3.0, "other": 1}
    with pytest.raises(ValueError, match="scale is -1; expected a finite number >= 0"):
        OwnState(5, 3, scale=-1)
    assert OwnContext(5, 3, n_features=np.int64(4), wide=True).hyperparameters == {
        "n_features": 4,
        "wide": True,
    }
    with pytest.raises(ValueError, match="n_features is 0; expected a positive integer"):
        OwnContext(5, 3, n_features=0)


def test_a_warning_names_the_line_that_made_the_agent():
    with pytest.warns(UserWarning, match="likelier to be examined") as warned:
        UBMLinUCB(5, 3, n_features=2, examination=[[0.5, 0, 0], [0.9, 0.5, 0], [0.5, 0.5, 0.5]])
    assert warned[0].filename == __file__


def test_agents_of_classes_that_declare_can_be_copied():
    class Local(PBMUCB):
        """Of no module, so that its class is copied, too."""

        scale: float = hyperparameter(default=1.0, check=at_least(0), search=Range(0.5, 2.0))

    agent = Local(5, 2, examination=[1.0, 0.5], scale=2, seed=0)
    for other in (copy.deepcopy(agent), cloudpickle.loads(cloudpickle.dumps(agent))):
        assert repr(other) == repr(agent)
        assert other.rank().tolist() == copy.deepcopy(agent).rank().tolist()
    local = cloudpickle.loads(cloudpickle.dumps(Local))
    assert inspect.signature(local) == inspect.signature(Local)
    assert local.search_space == Local.search_space
    assert local(5, 2, examination=[1.0, 0.5], scale=2, seed=0).hyperparameters["scale"] == 2.0
