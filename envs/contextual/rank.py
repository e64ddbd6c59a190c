"""The registered contextual environments: a `ContextualClickEnv` whose model comes from an instance or from parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from gymnasium.vector import AutoresetMode

from ..click_model import ClickModel
from ..instances import DEFAULT_INSTANCES, load_instance
from ..rank_env import _from_arguments
from .environment import ContextualClickEnv, ContextualClickVectorEnv
from .model import BASES, ContextualModel, LabelledModel, LinearModel

__all__ = ["CONTEXTUAL"]

_PAGE = """
    ## Description

    Rank candidates by their features for users of the **{name}**, with other candidates in every session. A user with the
    features U(i) meets L of N items with the features V(j), ``x = [U(i), V(j)]``, ``‖x‖₂ ≤ 1``. An examined candidate is
    clicked with the probability θ*ᵀx, where θ* is not told (`LinearModel`, as the default instance); or, in instances made from
    ratings or from labels of relevance (`LabelledModel`, `clickgym features`), with a probability of its own, which no θ need
    explain. Every step is one session; the stream of sessions never ends by itself.

    ## Action Space

    `RankedList(L, K)`: an integer array of K distinct candidates, the top of the list first; candidate i is the one with row
    i of the features last observed. A list with a duplicate, a number out of range, or a wrong shape or dtype raises an error
    that names the position.

    ## Observation Space

    `Dict(clicks=MultiBinary(K), features=Box(-1, 1, (L, d), float64))`

    | Key | Observation | Values |
    |---|---|---|
    | `clicks` | whether the item at each position was clicked in the session that has just ended; zeros after `reset` | 0, 1 |
    | `features` | the features x of the candidates to be ranked next, one row each | -1 to 1 |

    ## Rewards

    The realised reward of the session, by the kind that `reward` names: `any_click`, 1 if there was at least one click
    (CTR_set of He et al.); `clicks`, their number (CTR_sum); `satisfaction`, 1 if the user left satisfied (dependent click
    model only). With a `cutoff` only the first positions count. The agents of the paper show the k-th best candidate at
    position k; for `clicks` in the user browsing and the dependent click model that may be suboptimal, and regret then stays
    linear for all.

    ## Starting State

    The first user and candidates, drawn as all the others; sessions are independent of one another.

    ## Episode End

    Never: sessions are an endless stream. `max_episode_steps` in `gym.make` truncates it.

    ## Information

    `step` returns `expected_reward` (exact, of the list shown), `optimal_reward` (of the best list of the same candidates)
    and their difference `regret`; `reset` returns `optimal_ranking` and `optimal_reward` of the candidates to be ranked. They
    are for measuring; an agent that reads them cheats.

    ## Arguments

    ```python
    >>> import gymnasium as gym, clickgym
    >>> env = gym.make("{id}", instance="linear:n_items=6,n_positions=2,n_features=4,seed=1")
    >>> observation, info = env.reset(seed=0)
    >>> observation["features"].shape
    (6, 4)
    >>> observation, reward, terminated, truncated, info = env.step(info["optimal_ranking"])
    >>> info["regret"]
    0.0

    ```

    | Parameter | Type | Default | Description |
    |---|---|---|---|
    | `base` | click model or its `to_dict()` | of the instance | the {model}; its attractions are replaced in every session |
    | `theta` | `(d,)` floats | of the instance | θ* |
    | `items` | `(N, d_v)` floats | of the instance | the features of the items, N ≥ L |
    | `users` | `(M, d_u)` floats or None | of the instance | the features of the users; None: none |
    | `candidates` | M lists of item numbers or None | of the instance | the items that each user may meet; None: all |
    | `attraction` | M lists of floats | of the instance | instead of `theta`: the attractions of these `candidates` |
    | `instance` | str | `"linear"` | name or file (`clickgym list instances`); not with parameters |
    | `n_positions` | int | of the instance | K, the length of a list |
    | `reward` | str | `"any_click"` | what a session pays |
    | `cutoff` | int | None | count only the first positions |
    | `render_mode` | str | None | `"ansi"` or `"rgb_array"` |

    ## Vectorized environment

    `gym.make_vec(id, num_envs=...)` builds the native vector environment: independent streams, all stepped in one compiled
    call, with the same arguments. `max_episode_steps` truncates all streams together; `autoreset_mode` is
    `AutoresetMode.NEXT_STEP`, or `SAME_STEP` on request.

    ## References

    - X. He et al. *Contextual user browsing bandits for large-scale online mobile recommendation.* RecSys 2020.
    - The click model itself: see `{stationary}`.

    ## Version History

    - v0: initial version.
    """


def _model(
    base: type[ClickModel], instance: str | None, n_positions: int | None, parameters: Mapping[str, Any]
) -> tuple[ContextualModel, str]:
    """The model of some base that the arguments of a registered id describe, and the instance's name."""
    kinds = {f"{model.__name__} of {base.__name__}": model for model in (LinearModel, LabelledModel)}
    if parameters:
        labelled = "attraction" in parameters
        kind, model_class = list(kinds.items())[labelled]
        model: Any
        model, name, _ = _from_arguments(model_class, kind, instance, n_positions, parameters)
        return model, name
    chosen = load_instance(DEFAULT_INSTANCES[next(iter(kinds))] if instance is None else instance)
    model = chosen.model(next((kind for kind in kinds if kind in chosen.models), next(iter(kinds))), n_positions)
    return model, chosen.name


class _ContextualRankEnv(ContextualClickEnv):
    """Base of the registered environments: the model comes from an instance or from parameters."""

    base_class: ClassVar[type[ClickModel]]

    def __init__(
        self,
        instance: str | None = None,
        *,
        n_positions: int | None = None,
        reward: str = "any_click",
        cutoff: int | None = None,
        render_mode: str | None = None,
        **parameters: Any,
    ) -> None:
        model, name = _model(self.base_class, instance, n_positions, parameters)
        super().__init__(model, reward, cutoff, render_mode=render_mode)
        self.instance = name


class _ContextualRankVectorEnv(ContextualClickVectorEnv):
    """Base of the registered vector environments: the model comes from an instance or from parameters."""

    base_class: ClassVar[type[ClickModel]]

    def __init__(
        self,
        num_envs: int = 1,
        instance: str | None = None,
        *,
        n_positions: int | None = None,
        reward: str = "any_click",
        cutoff: int | None = None,
        render_mode: str | None = None,
        max_episode_steps: int | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        **parameters: Any,
    ) -> None:
        model, name = _model(self.base_class, instance, n_positions, parameters)
        super().__init__(
            model,
            num_envs,
            reward,
            cutoff,
            render_mode=render_mode,
            max_episode_steps=max_episode_steps,
            autoreset_mode=autoreset_mode,
        )
        self.instance = name


def _contextual(prefix: str, name: str) -> tuple[type[ContextualClickEnv], type[ContextualClickVectorEnv]]:
    """The scalar and the vector environment of one click model with candidates that change."""
    base = BASES[prefix]
    page = _PAGE.format(id=f"Contextual{prefix}Rank-v0", name=name, model=base.__name__, stationary=f"{prefix}Rank-v0")
    shared = {"base_class": base, "__module__": __name__}
    scalar = f"Contextual{prefix}RankEnv"
    return (
        type(scalar, (_ContextualRankEnv,), {**shared, "__doc__": page}),
        type(
            f"Contextual{prefix}RankVectorEnv",
            (_ContextualRankVectorEnv,),
            {**shared, "__doc__": f"Many independent streams of `{scalar}`, stepped together."},
        ),
    )


CONTEXTUAL: dict[str, tuple[type[ContextualClickEnv], type[ContextualClickVectorEnv]]] = {
    f"Contextual{prefix}Rank-v0": _contextual(prefix, name)
    for prefix, name in (
        ("UBM", "user browsing model"),
        ("PBM", "position-based model"),
        ("CM", "cascade model"),
        ("DCM", "dependent click model"),
    )
}
"""The contextual ids, each with its scalar and its vector environment."""

globals().update({env.__name__: env for pair in CONTEXTUAL.values() for env in pair})  # entry points name them here
