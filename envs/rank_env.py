"""The registered environments: a `ClickEnv` or `ClickVectorEnv` whose model comes from an instance or from parameters."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import ArrayLike, NDArray

from .checks import check_positions, unknown
from .click_env import ClickEnv, ClickVectorEnv
from .click_model import ClickModel
from .instances import DEFAULT_INSTANCES, load_instance

__all__ = ["RankEnv", "RankVectorEnv"]


def _from_arguments(
    model_class: type[ClickModel],
    kind: str,
    instance: str | None,
    n_positions: int | None,
    parameters: Mapping[str, Any],
) -> tuple[ClickModel, str, NDArray[np.int64] | None]:
    """The model of a kind that the arguments of a registered id describe, the instance's name, and its initial list."""
    names = [name for name in inspect.signature(model_class).parameters if name != "n_positions"]
    for name in parameters:
        if name not in names:
            raise TypeError(unknown("parameter", name, ["instance", "n_positions", "reward", "cutoff", *names]))
    if not parameters:
        chosen = load_instance(DEFAULT_INSTANCES[kind] if instance is None else instance)
        return chosen.model(kind, n_positions), chosen.name, chosen.initial_ranking
    if instance is not None:
        raise ValueError(f"give either an instance or the parameters {', '.join(names)}, not both")
    signature = inspect.signature(model_class).parameters
    arguments = dict(parameters)
    if "n_positions" in signature:
        arguments["n_positions"] = n_positions
    missing = [
        name for name, parameter in signature.items() if parameter.default is parameter.empty and arguments.get(name) is None
    ]
    if missing:
        raise ValueError(f"{model_class.__name__} also needs {', '.join(missing)}, since its parameters are given")
    model = model_class(**arguments)
    if n_positions is not None:
        model = model.with_positions(check_positions(n_positions, model.n_items, model.n_positions))
    if model.kind != kind:
        raise ValueError(f"the parameters make a {model.kind}; expected a {kind}")
    return model, "custom", None


_INTERFACE = """## Action Space

    `RankedList(L, K)`: an integer array of K distinct item ids in `0..L-1`, the top of the list first. A list with a
    duplicate, an id out of range, or a wrong shape or dtype raises an error that names the position.

    ## Observation Space

    `MultiBinary(K)`: the clicks of the session that has just ended, by position; zeros after `reset`.

    | Num | Observation | Values |
    |---|---|---|
    | 0 .. K-1 | whether the item at that position was clicked | 0, 1 |

    ## Rewards

    The realised reward of the session, by the kind that `reward` names: `clicks`, the number of clicks; `any_click`, 1 if
    there was at least one; `satisfaction`, 1 if the user left satisfied (only some models define it). With a `cutoff` only
    the first positions count.

    ## Starting State

    Sessions are independent of one another: there is no state but the random generator.

    ## Episode End

    Never: sessions are an endless stream. `max_episode_steps` in `gym.make` truncates it.

    ## Information

    `step` returns `expected_reward` (exact, of the list shown), `optimal_reward` and their difference `regret`; `reset` returns
    `optimal_ranking` and `optimal_reward`. They are for measuring; an agent that reads them cheats."""

_ARGUMENTS = """| `instance` | str | a real search query | name or file (`clickgym list instances`); not with parameters |
    | `n_positions` | int | of the instance | K, the length of a list |
    | `reward` | str | `"clicks"` | what a session pays |
    | `cutoff` | int | None | count only the first positions |
    | `reference` | `(K,)` ints | None | the list against which regret is measured, instead of the optimal one |
    | `render_mode` | str | None | `"ansi"` or `"rgb_array"` |"""

_VECTORIZED = """`gym.make_vec(id, num_envs=...)` builds the native vector environment: independent streams, all stepped in one
    compiled call, with the same arguments. `max_episode_steps` truncates all streams together; `autoreset_mode` is
    `AutoresetMode.NEXT_STEP`, or `SAME_STEP` on request."""


class RankEnv(ClickEnv):
    """Base of the registered environments: a `ClickEnv` whose model comes from an instance or from parameters.

    A subclass names its ``model_class``; its docstring is its documentation page, into which the parts that all pages share
    are filled here.
    """

    model_class: ClassVar[type[ClickModel]]
    kind: ClassVar[str]
    """The kind of model, as instances call it: `ClickModel.kind`."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for mark, text in (("{interface}", _INTERFACE), ("{arguments}", _ARGUMENTS), ("{vectorized}", _VECTORIZED)):
            cls.__doc__ = (cls.__doc__ or "").replace(mark, text)

    def __init__(
        self,
        instance: str | None = None,
        *,
        n_positions: int | None = None,
        reward: str = "clicks",
        cutoff: int | None = None,
        reference: ArrayLike | None = None,
        render_mode: str | None = None,
        **parameters: Any,
    ) -> None:
        model, name, initial_ranking = _from_arguments(self.model_class, self.kind, instance, n_positions, parameters)
        super().__init__(model, reward, cutoff, reference=reference, render_mode=render_mode)
        self.instance, self.initial_ranking = name, initial_ranking


class RankVectorEnv(ClickVectorEnv):
    """Base of the registered vector environments: a `ClickVectorEnv` whose model comes from an instance or parameters.

    ``gym.make_vec(id, num_envs=...)`` takes the arguments of the scalar environment and those of `ClickVectorEnv`.
    """

    model_class: ClassVar[type[ClickModel]]
    kind: ClassVar[str]

    def __init__(
        self,
        num_envs: int = 1,
        instance: str | None = None,
        *,
        n_positions: int | None = None,
        reward: str = "clicks",
        cutoff: int | None = None,
        reference: ArrayLike | None = None,
        render_mode: str | None = None,
        max_episode_steps: int | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        **parameters: Any,
    ) -> None:
        model, name, initial_ranking = _from_arguments(self.model_class, self.kind, instance, n_positions, parameters)
        super().__init__(
            model,
            num_envs,
            reward,
            cutoff,
            reference=reference,
            render_mode=render_mode,
            max_episode_steps=max_episode_steps,
            autoreset_mode=autoreset_mode,
        )
        self.instance, self.initial_ranking = name, initial_ranking
