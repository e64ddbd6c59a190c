"""`Learner`, the base class of agents that run an RL algorithm of stable-baselines3 or sb3-contrib.

The module imports stable-baselines3 and torch only when an algorithm learns. Install both with
``pip install "clickgym[rl]"``.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import cache, partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar

from ...core.checks import check_count, check_number, check_positions, make_rng
from ...core.messages import as_call, short_repr, suggestions
from ...envs.env_properties import EnvTraits
from ...measure.result import MIN_USERS, few_users_message
from ...measure.session_reader import parallel_obstacle
from ..agent import BaseAgent, Seed, UnsuitedError

if TYPE_CHECKING:
    from gymnasium.vector import VectorEnv

ACTIONS_OF = {
    "SAC": "scores",
    "TD3": "scores",  # and its subclass DDPG
    "TQC": "scores",
    "CrossQ": "scores",
    "DQN": "items",
    "QRDQN": "items",
    "MaskablePPO": "items",
}
"""The kinds of actions, as in `clickgym.agents.vec_env`, of the algorithms that do not support
``"rankings"``.
"""

RL_LIBRARIES = {
    "stable_baselines3": ("stable-baselines3", "torch"),
    "sb3_contrib": ("sb3-contrib", "stable-baselines3", "torch"),
    "sbx": ("sbx-rl", "stable-baselines3", "jax"),
}
"""The supported libraries, in a mapping from their modules to the packages whose versions affect
their results. Name an algorithm by module and class, for example ``sb3_contrib:TRPO``.
"""

LIBRARY_OF = {
    **dict.fromkeys(("TD3", "DDPG"), "stable_baselines3"),
    **dict.fromkeys(
        ("TRPO", "RecurrentPPO", "MaskablePPO", "QRDQN", "TQC", "CrossQ"), "sb3_contrib"
    ),
}
"""The libraries of algorithms that clickgym runs only by module and class, for messages."""

NUMBERS: Mapping[str, Callable[[str, Any], object]] = {
    **dict.fromkeys(("n_steps", "batch_size", "n_epochs", "buffer_size"), check_count),
    **dict.fromkeys(
        ("gamma", "gae_lambda", "tau", "exploration_fraction", "exploration_final_eps"),
        partial(check_number, least=0, most=1),
    ),
    **dict.fromkeys(
        ("learning_rate", "clip_range", "ent_coef", "vf_coef", "max_grad_norm"),
        partial(check_number, least=0),
    ),
}
"""The hyperparameters that are numbers in all algorithms, each with its check. The libraries would
notice a wrong value only when they make the model, or at the first update.
"""

LOGS = ("tensorboard_log", "verbose")
"""The library's arguments that say what to log. A learner writes no log."""


def discount_within(actions: str) -> float:
    """Return the default discount if sessions are independent, for a kind of actions: 1 if an
    episode is a list that is chosen item by item, and 0 otherwise.
    """
    return 1.0 if actions == "items" else 0.0


class Learner(BaseAgent):
    """Base class of *learners*: agents that run an RL algorithm of stable-baselines3, or of a
    library built on it, and learn from every session. `clickgym.run` runs a learner like any other
    agent.

    An `Agent` returns one list at a time, but a learner itself steps ``n_envs`` parallel streams.
    In an environment of another package, ``gym.make`` makes an environment for each stream. A
    subclass has the same name as a class of the library, and defines a kind of actions and default
    hyperparameters. It passes other hyperparameters unchanged to the library's class. These rules
    hold for all subclasses:

    1. The discount is 0, because sessions are independent of one another: a list affects only the
       reward of its own session, so rewards of later sessions would only add noise to its value. If
       the learner chooses a list item by item, the discount is 1: an episode is one list, with the
       reward at its end. If users have a memory, an episode is one user, the learner observes the
       user's state, and the discount γ is the probability that another session of the user follows.
       The episode itself also continues with this probability, so the future is discounted twice,
       by γ² per session, and the policy looks only half as far ahead as the regret. With a discount
       of 1 (``PPO:gamma=1.0``), PPO lost more in our runs (docs/stateful_users.md).
    2. Regret is measured online, over all training sessions: first the first session of each
       stream, then the second session of each stream, and so on. There is no evaluation phase, so
       regret includes the cost of exploration.
    3. Even the last step plays a session on every stream; the sessions beyond the horizon (fewer
       than ``n_envs``) are not counted.
    4. torch uses a single thread, because the networks are too small to benefit from more.
    5. Actions number the items in a random order, so item ids carry no information, even if an
       instance stores its items in order of attraction. A policy that draws whole lists needs no
       random order, because it treats all ids alike.
    6. If candidates change from session to session, the learner observes their features and not the
       last clicks, which belong to other candidates. With ``"scores"`` actions, the learner then
       chooses a weight for each feature, because each row of features describes a different
       candidate in every session.

    The library draws from the global random generators of Python, NumPy and torch, so `learn` seeds
    these generators. A seed determines the run if no other code in the process uses them during the
    run.

    Args:
        n_items: the number of items, L.
        n_positions: the number of positions in a list, K.
        seed: the seed of the network's weights, the actions and the order of items.
        **hyperparameters: hyperparameters of the library's class; ``n_envs``, the number of
            parallel streams; and ``net_arch``, the sizes of the hidden layers.

    Attributes:
        n_envs: the number of parallel streams.
        model: the model of stable-baselines3; None before the first training.

    Raises:
        ImportError: the library is not installed.
        TypeError: the library's class does not have one of the hyperparameters, or ``n_items`` is
            not a number of items.
        ValueError: ``n_items``, ``n_positions``, ``n_envs`` or a hyperparameter in `NUMBERS` is
            invalid.

    Source: Raffin, Hill, Gleave, Kanervisto, Ernestus, Dormann, *Stable-Baselines3: reliable
    reinforcement learning implementations*, JMLR 2021.

    Example:
        >>> import stable_baselines3
        >>> class A2C(Learner):
        ...     defaults = {"n_envs": 4, "n_steps": 2}
        >>> learner = A2C(10, 5, seed=0, learning_rate=1e-3)
        >>> learner.n_envs, learner.engine
        (4, 'stable-baselines3')
    """

    engine: ClassVar[str] = "stable-baselines3"
    """The engine's name in `clickgym.Result.engine`."""
    packages: ClassVar[tuple[str, ...]] = RL_LIBRARIES["stable_baselines3"]
    paper: ClassVar[str] = "your own"
    """A short reference to the algorithm's paper and library."""
    bibtex_keys: ClassVar[Sequence[str]] = ["sb3"]
    actions: str = "rankings"
    """The kind of the learner's actions, as in `clickgym.agents.vec_env`."""
    defaults: ClassVar[Mapping[str, Any]] = {"n_envs": 8}
    """The default hyperparameters."""
    with_features: ClassVar[Mapping[str, Any]] = {}
    """The default hyperparameters that replace those in `defaults` if candidates have features."""

    def __init__(
        self, n_items: int, n_positions: int, *, seed: Seed = None, **hyperparameters: Any
    ) -> None:
        if find_spec("stable_baselines3") is None:
            raise ImportError(
                f"{type(self).__name__} requires stable-baselines3, which is not installed; "
                'type: pip install "clickgym[rl]"'
            )
        if isinstance(n_items, str | type):
            name, library = type(self).__name__, self.algorithm().__module__.partition(".")[0]
            raise TypeError(
                f"n_items is {short_repr(n_items)}, but the agent clickgym.agents.{name} "
                "takes n_items and n_positions; to pass a policy and an environment, use "
                f"{library}.{name}"
            )
        self.n_items = check_count("n_items", n_items)
        self.n_positions = check_positions(n_positions, self.n_items)
        if others := hyperparameters.keys() - self.defaults.keys() - {"net_arch"}:
            self._check_names(others)
        for name, value in hyperparameters.items():
            is_auto = name == "ent_coef" and str(value).startswith("auto")
            is_adaptive = callable(value) or (is_auto and self.actions == "scores")  # SAC and kin
            if name in NUMBERS and value is not None and not is_adaptive:
                NUMBERS[name](name, value)
        self.hyperparameters = {**self.defaults, **hyperparameters}
        self._of_features = {
            name: value for name, value in self.with_features.items() if name not in hyperparameters
        }
        self.n_envs = check_count("n_envs", self.hyperparameters["n_envs"])
        self.rng = make_rng(seed)
        self._order = self.rng.permutation(self.n_items)
        self.model: Any = None

    def engine_in(self, env: EnvTraits, engine: str) -> str:
        name, reason = type(self).__name__, ""
        if env.obstacle and not env.has_copies:
            reason = (
                f"trains on its own parallel streams of sessions, which would bypass {env.layer}; "
                "register the environment with gym.register and pass its id, or train a model with "
                "clickgym.agents.vec_env(class, n_envs), and pass the model to "
                "clickgym.agents.FrozenPolicy"
            )
        elif env.changing_users and self.n_envs > 1:
            reason = f"trains on {parallel_obstacle(env.changing_users)}; pass n_envs=1"
        elif env.n_queries > 1:
            cure = (
                "train a model on an environment from gym.make_vec instead, and pass the model to "
                "clickgym.agents.FrozenPolicy"
            )
            reason = (
                "would train on parallel streams with different queries, but a run has only one "
                f"query; {cure} (docs/rl_results.md)"
            )
        if reason:
            raise UnsuitedError(name, reason)
        if engine != "auto":
            raise ValueError(
                f"engine={engine!r} cannot run {name}, which uses its library's training loop, "
                f"engine={self.engine!r}; leave engine out"
            )
        return self.engine

    def _check_names(self, names: Set[str]) -> None:
        """Check that the constructor of the library's class accepts the given names. The check
        imports the library.
        """
        parameters = inspect.signature(self.algorithm()).parameters
        takes_any = any(
            parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()
        )
        for name in [] if takes_any else sorted(names - parameters.keys()):
            hyperparameter_names = dict.fromkeys([*self.defaults, "net_arch", *parameters])
            public_names = [other for other in hyperparameter_names if other[0] != "_"]
            raise TypeError(f"unknown hyperparameter {name!r}{suggestions(name, public_names)}")

    @property
    def draws_lists(self) -> bool:
        """Whether the policy is a `PlackettLuceActorCritic`, which draws whole lists. This is the
        default for PPO, A2C and their subclasses. Reading the property imports torch.
        """
        from stable_baselines3 import A2C, PPO

        return "policy" not in self.hyperparameters and issubclass(self.algorithm(), (PPO, A2C))

    @property
    def choices(self) -> int:
        """The number of steps in which the learner chooses one list."""
        return self.n_positions if self.actions == "items" else 1

    def algorithm(self) -> Any:
        """Return the library's class, which has the same name as the learner's class. The method
        imports torch.
        """
        return getattr(importlib.import_module("stable_baselines3"), type(self).__name__)

    def arguments(self, discount: float | None = None) -> dict[str, Any]:
        """Return the arguments for the constructor of the library's class. The method imports
        torch.

        Args:
            discount: the discount between two sessions of a user, the same as for `learn`.
        """
        arguments = dict(self.hyperparameters)
        del arguments["n_envs"]
        if "net_arch" in arguments:  # the library requires a list in policy_kwargs
            sizes = arguments.pop("net_arch")
            sizes = [sizes] if isinstance(sizes, int) else list(sizes)
            arguments["policy_kwargs"] = {**arguments.get("policy_kwargs", {}), "net_arch": sizes}
        if arguments.get("policy") == "MultiInputPolicy":  # the streams flatten their observations
            arguments["policy"] = "MlpPolicy"
        policy = next(iter(self.algorithm().policy_aliases), "MlpPolicy")
        if self.draws_lists or arguments.get("policy") == "PlackettLuceActorCritic":
            from .plackett_luce import PlackettLuceActorCritic as policy

            arguments.pop("policy", None)  # the library does not know the name
        gamma = discount_within(self.actions)
        if discount is not None:  # spread a session's discount over its choices
            gamma = discount ** (1 / self.choices)
        return {"policy": policy, "device": "cpu", "gamma": gamma} | arguments

    def learn(
        self,
        envs: VectorEnv,
        sessions: int,
        on_step: Callable[[], bool],
        discount: float | None = None,
    ) -> None:
        """Play sessions and learn from them. A second call continues the training.

        Args:
            envs: a vector environment with ``n_envs`` streams and ``autoreset_mode`` ``SAME_STEP``,
                whose actions are lists ``(n_envs, K)``.
            sessions: the number of sessions to play, over all streams together.
            on_step: a function that is called after each step of the streams. Training ends when
                the function returns False.
            discount: the probability that another session of the same user follows; by default,
                sessions are independent of one another. Only the first call of `learn` reads this
                argument.
        """
        from stable_baselines3.common.logger import Logger
        from stable_baselines3.common.utils import set_random_seed

        from .plackett_luce import PlackettLuceActorCritic
        from .vec_env import StableBaselinesVecEnv

        with_features = "features" in getattr(envs.single_observation_space, "spaces", ())
        if with_features and self.model is None:
            self.hyperparameters |= self._of_features
        settings = self.arguments(discount)
        policy = settings["policy"]
        draws = isinstance(policy, type) and issubclass(policy, PlackettLuceActorCritic)
        scores_rows = draws and with_features  # row i describes item i
        items = None if self.draws_lists or scores_rows else self._order
        streams = StableBaselinesVecEnv(envs, self.actions, items, is_flat=not scores_rows)
        choices = self.choices
        seed = int(self.rng.integers(2**31))
        # Seed the generators here: with a seed argument, the library would also reseed the streams.
        set_random_seed(seed)
        with one_thread():
            if self.model is None:
                self.model = self.algorithm()(env=streams, **settings)
                self.model.set_logger(Logger(None, []))  # the default makes a temporary folder
            else:
                self.model.set_env(streams)
            self.model.action_space.seed(seed)
            steps = math.ceil(sessions / self.n_envs) * self.n_envs * choices
            last = self.model.num_timesteps + steps
            arguments: dict[str, Any] = {
                "callback": lambda *_: on_step(),
                "log_interval": None,
                "reset_num_timesteps": False,
            }
            self.model.learn(sessions * choices, **arguments)
            # The call above may stop in the middle of a list, so finish the last list of each
            # stream.
            self.model.learn(last - self.model.num_timesteps, **arguments)

    def hints(self, sessions: int, discount: float | None) -> list[str]:
        """Return warnings for users whose training is too short, because it ends before the
        algorithm's first update, or because users have a memory and each stream has only a few of
        them; or who expect a log. There is none if a training continues, or if a subclass has its
        own `learn`.

        Args:
            sessions, discount: the arguments of `learn`.
        """
        if type(self).learn is not Learner.learn or self.model is not None:
            return []
        name, found = type(self).__name__, list[str]()
        if logs := [each for each in LOGS if self.hyperparameters.get(each)]:
            found.append(
                f"{name} ignores {' and '.join(logs)}, because a run writes no log; to log the "
                "training, create the model yourself, with clickgym.agents.vec_env"
            )
        setting, steps = self._first_update()
        first = steps // self.choices
        if first >= sessions:
            found.append(
                f"{name} learns nothing in {sessions:,} sessions, because its first update comes "
                f"after {first:,} sessions ({setting}); lower {setting}, or use a longer horizon"
            )
        if discount is not None and discount < 1:  # 1 if all users have equally many sessions
            n_users = sessions / self.n_envs * (1 - discount)
            if n_users < MIN_USERS and self.n_envs > 1:
                found.append(few_users_message(name, n_users, self.n_envs, sessions))
        return found

    def _first_update(self) -> tuple[str, int]:
        """Return the setting that delays the algorithm's first update, and the number of steps
        before this update. The method imports the library only if the setting has no default here.
        """
        settings = self.hyperparameters
        if not {"learning_starts", "n_steps"} & self.defaults.keys():
            parameters = inspect.signature(self.algorithm()).parameters
            settings = {name: each.default for name, each in parameters.items()} | settings
        if "learning_starts" in settings:
            return "learning_starts", settings["learning_starts"]
        return "n_steps * n_envs", settings.get("n_steps", 0) * self.n_envs

    def __repr__(self) -> str:
        return as_call(
            self, n_items=self.n_items, n_positions=self.n_positions, **self.hyperparameters
        )


@cache
def adopt(algorithm: type) -> type[Learner]:
    """Return an agent class for an algorithm of stable-baselines3 or of a library built on it, such
    as sb3-contrib or SBX, or for your own subclass of such an algorithm.

    The class has the hyperparameters of the algorithm's constructor, with their defaults, and
    ``n_envs``. Two defaults are different: the discount follows the rules of `Learner`, and the
    device is the CPU.

    Raises:
        ValueError: ``algorithm`` is neither an agent nor an algorithm of such a library.

    Example:
        >>> import stable_baselines3
        >>> adopt(stable_baselines3.SAC)(10, 5, learning_rate=1e-3).actions
        'scores'
    """
    if not any(base.__module__.startswith("stable_baselines3.") for base in algorithm.__mro__):
        raise ValueError(
            f"{algorithm.__module__}:{algorithm.__qualname__} is neither a subclass of "
            "clickgym.agents.Agent nor an algorithm from stable-baselines3 or a library "
            "built on it; pass a class of one of these kinds"
        )
    action_kinds = [
        ACTIONS_OF[base.__name__] for base in algorithm.__mro__ if base.__name__ in ACTIONS_OF
    ]
    libraries = [base.__module__.partition(".")[0] for base in algorithm.__mro__]
    members = {
        "__module__": algorithm.__module__,
        "__doc__": f"`{algorithm.__module__}.{algorithm.__name__}` as a clickgym agent.",
        "actions": action_kinds[0] if action_kinds else "rankings",
        "packages": next(RL_LIBRARIES[name] for name in libraries if name in RL_LIBRARIES),
        "algorithm": lambda self: algorithm,
        "adopted": algorithm,  # the runner uses its name as the agent's label
    }
    return type(algorithm.__name__, (Learner,), members)


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Context manager in which torch uses a single thread, because the networks are too small to
    benefit from more.
    """
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
