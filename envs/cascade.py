"""The cascade model and its environments."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .checks import check_positions, probabilities
from .click_model import ClickModel
from .kernels import kernel
from .rank_env import RankEnv, RankVectorEnv

__all__ = ["CMRankEnv", "CMRankVectorEnv", "CascadeModel"]


class Parameters(NamedTuple):
    attraction: NDArray[np.float64]  # α, (L,)


@kernel
def sample(parameters, ranking, uniforms, clicks, examined):  # type: ignore[no-untyped-def]
    looking = 1
    for k in range(len(ranking)):
        examined[k] = looking
        clicks[k] = looking == 1 and uniforms[k] < parameters.attraction[ranking[k]]
        looking -= clicks[k]
    return -1


@kernel
def marginals(parameters, ranking, examination, clicks, scratch):  # type: ignore[no-untyped-def]
    looking = 1.0  # χ(R, k) = Π_{i<k} (1 - α(d_i))
    for k in range(len(ranking)):
        examination[k] = looking
        clicks[k] = looking * parameters.attraction[ranking[k]]
        looking *= 1.0 - parameters.attraction[ranking[k]]


@kernel
def expected(parameters, ranking, reward, cutoff, scratch):  # type: ignore[no-untyped-def]
    # At most one click: the number of clicks is the indicator of any.
    no_click = 1.0
    for k in range(cutoff):
        no_click *= 1.0 - parameters.attraction[ranking[k]]
    return 1.0 - no_click


class CascadeModel(ClickModel):
    """Cascade model (CM): the user scans from the top, clicks the first attractive item and stops.

    Args:
        attraction: ``(L,)`` probabilities α(i) that an examined item is clicked.
        n_positions: K, at most L.

    Raises:
        ValueError: naming the parameter, the entry and what was expected.

    Source: Craswell et al. 2008; Zoghi et al. 2017, section 2.2.

    Example:
        >>> model = CascadeModel([0.5, 0.2, 0.1], n_positions=2)
        >>> model.click_probabilities([0, 1])
        array([0.5, 0.1])
        >>> model.optimal_ranking()
        array([0, 1])
    """

    rewards = ("clicks", "any_click")
    sample_kernel = sample
    marginals_kernel = marginals
    expected_kernel = expected

    def __init__(self, attraction: ArrayLike, n_positions: int) -> None:
        self.parameters = Parameters(probabilities("attraction", attraction, (None,)))
        self.n_positions = check_positions(n_positions, self.n_items)

    def _optimal(self, reward: int, cutoff: int) -> NDArray[np.int64]:
        return np.argsort(-self.attraction, kind="stable")[:cutoff]

    def to_dict(self) -> dict[str, Any]:
        return {"model": "CascadeModel", "attraction": self.attraction.tolist(), "n_positions": self.n_positions}

    def with_positions(self, n_positions: int) -> CascadeModel:
        return CascadeModel(self.attraction, n_positions)


class CMRankEnv(RankEnv):
    """
    ## Description

    Rank search results for users of the **cascade model** (CM): each user scans the list from the top, clicks the first item
    that attracts, and leaves. Every step is one session with a new user; the stream of sessions never ends by itself.

    {interface}

    ## Arguments

    ```python
    >>> import gymnasium as gym, clickgym
    >>> env = gym.make("CMRank-v0", attraction=[0.5, 0.3, 0.2, 0.1], n_positions=2)
    >>> observation, info = env.reset(seed=0)
    >>> info["optimal_ranking"]
    array([0, 1])
    >>> observation, reward, terminated, truncated, info = env.step([2, 0])
    >>> round(info["regret"], 12)
    0.05

    ```

    | Parameter | Type | Default | Description |
    |---|---|---|---|
    | `attraction` | `(L,)` floats in [0, 1] | of the instance | probability α(i) that an examined item is clicked |
    {arguments}

    ## Vectorized environment

    {vectorized}

    ## References

    - N. Craswell, O. Zoeter, M. Taylor, B. Ramsey. *An experimental comparison of click position-bias models.* WSDM 2008.
    - M. Zoghi, T. Tunys, M. Ghavamzadeh, B. Kveton, C. Szepesvari, Z. Wen. *Online learning to rank in stochastic click
      models.* ICML 2017.

    ## Version History

    - v0: initial version.
    """

    model_class = CascadeModel
    kind = "CascadeModel"


class CMRankVectorEnv(RankVectorEnv):
    """Many independent streams of `CMRankEnv`, stepped together in compiled code."""

    model_class = CascadeModel
    kind = "CascadeModel"
