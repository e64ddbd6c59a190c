"""`OwnLoop`, what an agent with a training loop of its own must answer, and `Learner`, the base
class of algorithms of stable-baselines3 and sb3-contrib.

stable-baselines3 and torch are imported only when an algorithm learns; both come with ``pip install
"clickgym[rl]"``.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ...core.checks import as_call, check_at_least, check_count, check_positions, generator, unknown
from ..agent import BaseAgent, EnvTraits, Seed, UnsuitedError

if TYPE_CHECKING:
    from gymnasium.vector import VectorEnv

Actions = Literal["rankings", "codes", "scores", "weights", "items"]
"""The kinds of actions that represent a list.

| actions | an action is | its space | wrapper | used by |
|---|---|---|---|---|
| `rankings` | the list itself | `RankedList` | none | PPO, A2C (`PlackettLuceActorCritic`) |
| `codes` | K counts of items left | `MultiDiscrete` | `LehmerVectorAction` | RecurrentPPO |
| `scores` | L numbers that sort the items | `Box` | `ScoresVectorAction` | SAC, TD3 |
| `weights` | d weights of the features | `Box` | `FeatureWeightsVectorAction` | SAC, TD3 |
| `items` | one item; a list takes K steps | `Discrete` | `ItemByItemArray` | DQN, MaskablePPO |
"""

_OF_POLICY = ("net_arch", "lstm_hidden_size", "log_std_init")
"""Hyper-parameters of the library's policies, not of its algorithms."""


class OwnLoop(BaseAgent):
    """Base class of agents with a training loop of their own, over parallel streams of sessions.

    An `Agent` returns one list at a time, but such an agent gets the streams, and steps them.
    `clickgym.run` counts the sessions. A class of yours need not be a subclass: it runs if it has a
    constructor ``(n_items, n_positions, *, ..., seed=None)`` and `learn`.
    """

    engine: ClassVar[str]
    """What `clickgym.Result.engine` says: the library whose loop it is."""
    click_models: ClassVar[str] = "any"
    n_envs: int = 8
    """The number of streams."""

    def engine_in(self, env: EnvTraits, wanted: str) -> str:
        name = type(self).__name__
        if env.obstacle:
            raise UnsuitedError(
                name, f"learns on streams of its own, which would bypass {env.layer}"
            )
        if env.changing:
            raise UnsuitedError(
                name,
                f"learns on streams with clocks of their own, and a {env.changing} changes at "
                "given steps",
            )
        if env.n_queries > 1:
            raise UnsuitedError(
                name,
                "would train on the queries of the test; train it with gym.make_vec, and play it "
                "as a FrozenPolicy (docs/unseen_queries.md)",
            )
        if wanted != "auto":
            raise ValueError(f"engine={wanted!r}: {name} has a loop of its own, {self.engine}")
        return self.engine

    def learn(
        self,
        envs: VectorEnv,
        sessions: int,
        on_step: Callable[[], bool],
        discount: float | None = None,
    ) -> None:
        """Learn from sessions; a further call continues the training.

        Args:
            envs: ``n_envs`` streams, with ``autoreset_mode`` ``SAME_STEP``. Their actions are lists
                ``(n_envs, K)``, and their observations those of the environment. Call ``reset``
                first.
            sessions: how many to play, over all streams together. Fewer are an error.
            on_step: the function to call after each step of the streams; stop when it returns
                False.
            discount: the probability that another session of the same user follows; None if
                sessions are independent of one another.
        """
        raise NotImplementedError


class Learner(OwnLoop):
    """Base class of learners: algorithms of stable-baselines3, or with its interface, on the stream
    of sessions; `clickgym.run` runs them like agents.

    A subclass defines the class of the library, the kind of its actions, and its defaults. Other
    hyper-parameters are passed to the class unchanged. These rules hold for all subclasses:

    1. The discount is 0. Sessions are independent of one another: a list changes the reward of its
       own session only, so rewards of later sessions would only add noise to its value. If a list
       is chosen item by item, the discount is 1: an episode is one list, with the reward at its
       end. For stateful users an episode is one user, the state is observed, and the discount γ is
       the probability that another session of the user follows. The episode also continues with
       this probability, so the future counts by γ²: learning is faster than with a discount of 1
       (``PPO:gamma=1.0``), but the policy looks only half as far ahead (docs/stateful_users.md).
    2. Regret is measured online, over all training sessions: the first of each stream, then the
       second of each, and so on. There is no evaluation phase, and exploration counts.
    3. The last step runs on all streams; sessions beyond the horizon (fewer than ``n_envs``) are
       not counted.
    4. torch runs in one thread: the networks are too small for more.
    5. If candidates change from session to session, their features are observed, and not the last
       clicks, which belong to other candidates. A learner of ``scores`` then chooses ``weights`` of
       the features, because a place has another candidate in every session.

    The library draws from the global generators of Python, NumPy and torch, which `learn` therefore
    seeds: a seed determines the run if no other code in the process draws from them meanwhile.

    Args:
        n_items: L.
        n_positions: K.
        seed: seeds the network's weights, the actions, and the order of items.
        **hyperparameters: those of the class, ``n_envs``, and ``net_arch``, the sizes of the hidden
            layers.

    Attributes:
        n_envs: the number of parallel streams.
        items: ``(L,)`` a random order of the items, in which actions number them. Item ids
            therefore carry no information, even if an instance is stored in order of attraction.
            For ``rankings`` it is ``0..L-1``: the policy treats all ids alike, because the initial
            weights of its outputs are exchangeable; for ``weights`` too, which number no items.
        model: the library's object; None before the first training.

    Raises:
        ImportError: the library is not installed.
        TypeError: the class has no such hyper-parameter.
        ValueError: a bad argument.

    Source: Raffin, Hill, Gleave, Kanervisto, Ernestus, Dormann, *Stable-Baselines3: reliable
    reinforcement learning implementations*, JMLR 2021.
    """

    engine = "stable-baselines3"
    paper: ClassVar[str]
    """A short reference to the paper and the library of the algorithm."""
    package: ClassVar[str] = "stable_baselines3"
    """The module that has a class of the same name."""
    actions: Actions
    """The kind of its actions."""
    defaults: ClassVar[Mapping[str, Any]]
    """The hyper-parameters with their defaults."""
    with_features: ClassVar[Mapping[str, Any]] = {}
    """Defaults that differ if candidates have features."""

    def __init__(
        self, n_items: int, n_positions: int, *, seed: Seed = None, **hyperparameters: Any
    ) -> None:
        for module in ("stable_baselines3", self.package):
            if find_spec(module) is None:
                raise ImportError(
                    f"{type(self).__name__} is an algorithm of {self.package}; install it: "
                    'pip install "clickgym[rl]"'
                )
        self.n_items = check_count("n_items", n_items)
        self.n_positions = check_positions(n_positions, self.n_items)
        self._check_names(hyperparameters.keys() - self.defaults.keys())
        self.hyperparameters = {**self.defaults, **hyperparameters}
        for name, default in self.defaults.items():
            self.hyperparameters[name] = _checked(name, self.hyperparameters[name], default)
        self._of_features = {
            name: value for name, value in self.with_features.items() if name not in hyperparameters
        }
        self.n_envs = self.hyperparameters["n_envs"]
        self.rng = generator(seed)
        self._order = self.rng.permutation(self.n_items)
        self.model: Any = None

    @property
    def items(self) -> NDArray[np.int64]:
        """``(L,)`` the order of the items in which actions number them."""
        numbers_none = self.actions in ("rankings", "weights")
        return np.arange(self.n_items) if numbers_none else self._order

    @property
    def choices(self) -> int:
        """The number of steps that choose a list."""
        return self.n_positions if self.actions == "items" else 1

    def _check_names(self, names: Iterable[str]) -> None:
        """Raise a TypeError for hyper-parameters that the library's class does not accept."""
        taken = self._taken() if names else None
        if taken is not None:
            set_here = ("self", "env", "seed", "verbose", "tensorboard_log", "_init_setup_model")
            choices = dict.fromkeys(
                [*self.defaults, *_OF_POLICY, *(name for name in taken if name not in set_here)]
            )
            for name in names:
                if name == "actions" and name not in choices:
                    raise TypeError(
                        f"{type(self).__name__}: actions is no hyper-parameter; the class and the "
                        "environment determine how lists are chosen"
                    )
                if name not in choices:
                    raise TypeError(
                        f"{type(self).__name__}: " + unknown("hyper-parameter", name, choices)
                    )

    def _taken(self) -> list[str] | None:
        """Return the argument names of the library's class; None if it accepts any."""
        parameters = inspect.signature(self.algorithm().__init__).parameters
        takes_any = any(
            parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()
        )
        return None if takes_any else list(parameters)

    def algorithm(self) -> Any:
        """Return the library's class; imports torch."""
        return getattr(importlib.import_module(self.package), type(self).__name__)

    def arguments(
        self, discount: float | None = None, n_numbers: int | None = None
    ) -> dict[str, Any]:
        """Return the arguments for the library's class; imports torch.

        Args:
            discount: as for `learn`.
            n_numbers: the number of numbers in an action; None is L.
        """
        arguments = dict(self.hyperparameters)
        del arguments["n_envs"]
        policy_kwargs = dict(arguments.pop("policy_kwargs", {}))
        policy_kwargs |= {name: arguments.pop(name) for name in _OF_POLICY if name in arguments}
        if "net_arch" in policy_kwargs:
            policy_kwargs["net_arch"] = list(policy_kwargs["net_arch"])  # as the library requires
        if policy_kwargs:
            arguments["policy_kwargs"] = policy_kwargs
        policy = next(iter(getattr(self.algorithm(), "policy_aliases", ())), "MlpPolicy")
        taken = self._taken()
        if self.actions == "rankings":
            from .plackett_luce import PlackettLuceActorCritic as policy
        gamma = 1.0 if self.actions == "items" else 0.0
        if discount is not None:  # that of a session, divided among its choices
            gamma = discount ** (1 / self.choices)
        always = {"policy": policy, "device": "cpu", "gamma": gamma}
        return {
            name: value for name, value in always.items() if taken is None or name in taken
        } | arguments

    def learn(
        self,
        envs: VectorEnv,
        sessions: int,
        on_step: Callable[[], bool],
        discount: float | None = None,
    ) -> None:
        """As `OwnLoop.learn`. Only the first call uses the discount."""
        from stable_baselines3.common.logger import Logger
        from stable_baselines3.common.utils import set_random_seed

        from .streams import adapted, shows_features

        with_features = shows_features(envs.single_observation_space)
        if self.actions in ("scores", "weights"):
            self.actions = "weights" if with_features else "scores"
        streams = adapted(envs, self.actions, self.items)
        choices, going_on = self.choices, True

        def after_step(*_: Any) -> bool:
            nonlocal going_on
            if not going_on:
                raise _EnoughError
            going_on = on_step()
            return going_on

        seed = int(self.rng.integers(2**31))
        # seed here, because with a seed argument the library would also reseed the streams
        set_random_seed(seed)
        with one_thread(), contextlib.suppress(_EnoughError):
            if self.model is None:
                if with_features and self.actions in ("rankings", "weights"):
                    self.hyperparameters |= self._of_features
                n_numbers = math.prod(streams.action_space.shape or ())
                self.model = self.algorithm()(env=streams, **self.arguments(discount, n_numbers))
            else:
                self.model.set_env(streams)
            model, once = self.model, {"log_interval": None, "reset_num_timesteps": False}
            if hasattr(model, "action_space"):
                model.action_space.seed(seed)
            if hasattr(model, "set_logger"):  # or it would make a temporary folder for each run
                model.set_logger(Logger(None, []))
            steps = math.ceil(sessions / self.n_envs) * self.n_envs * choices
            last = getattr(model, "num_timesteps", 0) + steps
            model.learn(sessions * choices, after_step, **once)
            missing = last - getattr(model, "num_timesteps", last)
            if going_on and missing > 0:  # it ended within the last lists
                model.learn(missing, after_step, **once)

    def __repr__(self) -> str:
        return as_call(
            self, n_items=self.n_items, n_positions=self.n_positions, **self.hyperparameters
        )


def _checked(name: str, value: Any, default: Any) -> Any:
    """Check a value of the type of its default: sizes of layers, a positive integer, or a
    non-negative number.
    """
    if isinstance(default, tuple):
        return tuple(
            check_count(name, size)
            for size in (value if isinstance(value, list | tuple) else [value])
        )
    return check_count(name, value) if isinstance(default, int) else check_at_least(name, value, 0)


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Context in which torch uses one thread: the networks are too small for more."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


class _EnoughError(Exception):
    """Ends an algorithm that continues although its callback returned False."""
