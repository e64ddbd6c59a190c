"""The dependent click model and its environments."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .checks import check_positions, probabilities
from .click_model import ANY_CLICK, CLICKS, SATISFACTION, ClickModel, match
from .kernels import kernel
from .rank_env import RankEnv, RankVectorEnv

__all__ = ["DCMRankEnv", "DCMRankVectorEnv", "DependentClickModel"]


class Parameters(NamedTuple):
    attraction: NDArray[np.float64]  # α, (L,)
    termination: NDArray[np.float64]  # v, (K,)


@kernel
def sample(parameters, ranking, uniforms, clicks, examined):  # type: ignore[no-untyped-def]
    looking, satisfied = 1, -1
    for k in range(len(ranking)):
        # Three outcomes of an examined position: clicked and left (α v), clicked and went on (the rest of α), skipped.
        attraction = parameters.attraction[ranking[k]]
        examined[k] = looking
        clicks[k] = looking == 1 and uniforms[k] < attraction
        if looking == 1 and uniforms[k] < attraction * parameters.termination[k]:
            looking, satisfied = 0, k
    return satisfied


@kernel
def marginals(parameters, ranking, examination, clicks, scratch):  # type: ignore[no-untyped-def]
    looking = 1.0  # χ(R, k) = Π_{i<k} (1 - v_i α(d_i))
    for k in range(len(ranking)):
        attraction = parameters.attraction[ranking[k]]
        examination[k] = looking
        clicks[k] = looking * attraction
        looking *= 1.0 - parameters.termination[k] * attraction


@kernel
def expected(parameters, ranking, reward, cutoff, scratch):  # type: ignore[no-untyped-def]
    looking, n_clicks, no_click = 1.0, 0.0, 1.0
    for k in range(cutoff):
        attraction = parameters.attraction[ranking[k]]
        n_clicks += looking * attraction
        no_click *= 1.0 - attraction
        looking *= 1.0 - parameters.termination[k] * attraction
    if reward == CLICKS:
        return n_clicks
    return 1.0 - (no_click if reward == ANY_CLICK else looking)


class DependentClickModel(ClickModel):
    """Dependent click model (DCM): after a click at position k the user leaves satisfied with probability v_k.

    The user scans from the top; an examined attractive item is clicked; without a click, or unsatisfied, the scan goes on.
    So ``χ(R, k) = Π_{i<k} (1 - v_i α(d_i))``. ⚠ Li et al. 2019 (BubbleRank) print ``Π (1 - v_i) α(d_i)``, under which
    nobody would look below an unattractive item; we take the model of the original papers.

    Args:
        attraction: ``(L,)`` probabilities α(i) that an examined item is clicked.
        termination: ``(K,)`` probabilities v_k that the user leaves after a click at that position.

    Raises:
        ValueError: naming the parameter, the entry and what was expected.

    Source: Guo et al. 2009; Katariya et al. 2016, section 2.

    Example:
        >>> model = DependentClickModel(attraction=[0.5, 0.2], termination=[0.5, 0.5])
        >>> model.examination_probabilities([0, 1])
        array([1.  , 0.75])
        >>> round(model.expected_reward([0, 1], reward="satisfaction"), 12)
        0.325
    """

    rewards = ("clicks", "any_click", "satisfaction")
    sample_kernel = sample
    marginals_kernel = marginals
    expected_kernel = expected

    def __init__(self, attraction: ArrayLike, termination: ArrayLike) -> None:
        self.parameters = Parameters(
            probabilities("attraction", attraction, (None,)), probabilities("termination", termination, (None,))
        )
        self.n_positions = check_positions(len(self.termination), self.n_items)

    @property
    def termination(self) -> NDArray[np.float64]:
        """Probability that a click at each position ends the session, ``(K,)``."""
        return self.parameters.termination

    def _optimal(self, reward: int, cutoff: int) -> NDArray[np.int64] | None:
        if reward == CLICKS:
            return None  # an attractive item where v is high ends sessions early: no sorting rule is right
        # Any click: the top items in any order. Satisfaction: Σ -log(1 - v α) is supermodular in the pairs.
        weights = self.termination[:cutoff] if reward == SATISFACTION else np.ones(cutoff)
        return match(self.attraction, weights)

    def to_dict(self) -> dict[str, Any]:
        return {
            "model": "DependentClickModel",
            "attraction": self.attraction.tolist(),
            "termination": self.termination.tolist(),
        }

    def with_positions(self, n_positions: int) -> DependentClickModel:
        n_positions = check_positions(n_positions, self.n_items, self.n_positions)
        return DependentClickModel(self.attraction, self.termination[:n_positions])


class DCMRankEnv(RankEnv):
    """
    ## Description

    Rank search results for users of the **dependent click model** (DCM): a user scans the list from the top, clicks each
    examined item i with probability α(i), and after a click at position k leaves satisfied with probability v_k. Every step is
    one session with a new user; the stream of sessions never ends by itself. Whether the user left satisfied is never part of
    the observation.

    {interface}

    ## Arguments

    ```python
    >>> import gymnasium as gym, clickgym
    >>> env = gym.make("DCMRank-v0", attraction=[0.6, 0.4, 0.2, 0.1], termination=[0.5, 0.5], reward="satisfaction")
    >>> observation, info = env.reset(seed=0)
    >>> round(info["optimal_reward"], 12)
    0.44
    >>> observation, reward, terminated, truncated, info = env.step([2, 3])
    >>> round(info["regret"], 12)
    0.295

    ```

    | Parameter | Type | Default | Description |
    |---|---|---|---|
    | `attraction` | `(L,)` floats in [0, 1] | of the instance | probability α(i) that an examined item is clicked |
    | `termination` | `(K,)` floats in [0, 1] | of the instance | probability v_k that a click at position k ends the session |
    {arguments}

    ## Vectorized environment

    {vectorized}

    ## References

    - F. Guo, C. Liu, Y. M. Wang. *Efficient multiple-click models in web search.* WSDM 2009.
    - S. Katariya, B. Kveton, C. Szepesvári, Z. Wen. *DCM bandits: learning to rank with multiple clicks.* ICML 2016.

    ## Version History

    - v0: initial version.
    """

    model_class = DependentClickModel
    kind = "DependentClickModel"


class DCMRankVectorEnv(RankVectorEnv):
    """Many independent streams of `DCMRankEnv`, stepped together in compiled code."""

    model_class = DependentClickModel
    kind = "DependentClickModel"
