"""The dynamic Bayesian network model and its environments."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .checks import check_positions, probabilities, probability
from .click_model import ANY_CLICK, CLICKS, SATISFACTION, ClickModel
from .kernels import kernel
from .rank_env import RankEnv, RankVectorEnv

__all__ = ["DBNRankEnv", "DBNRankVectorEnv", "DynamicBayesianModel"]


class Parameters(NamedTuple):
    attraction: NDArray[np.float64]  # α, (L,)
    satisfaction: NDArray[np.float64]  # s, (L,)
    perseverance: float  # g


@kernel
def sample(parameters, ranking, uniforms, clicks, examined):  # type: ignore[no-untyped-def]
    looking, satisfied = 1, -1
    perseverance = parameters.perseverance
    for k in range(len(ranking)):
        attraction = parameters.attraction[ranking[k]]
        examined[k] = looking
        clicks[k] = looking == 1 and uniforms[k] < attraction
        if looking == 1:
            # Outcomes in the order of the unit interval: clicked and satisfied, clicked and gave up, clicked and went on;
            # then skipped and gave up, skipped and went on.
            if uniforms[k] < attraction:
                happy = attraction * parameters.satisfaction[ranking[k]]
                if uniforms[k] < happy:
                    satisfied = k
                if uniforms[k] < happy + (attraction - happy) * (1.0 - perseverance):
                    looking = 0
            elif uniforms[k] < attraction + (1.0 - attraction) * (1.0 - perseverance):
                looking = 0
    return satisfied


@kernel
def marginals(parameters, ranking, examination, clicks, scratch):  # type: ignore[no-untyped-def]
    looking = 1.0  # χ(R, k) = Π_{i<k} g (1 - α(d_i) s(d_i))
    for k in range(len(ranking)):
        item = ranking[k]
        examination[k] = looking
        clicks[k] = looking * parameters.attraction[item]
        looking *= parameters.perseverance * (1.0 - parameters.attraction[item] * parameters.satisfaction[item])


@kernel
def expected(parameters, ranking, reward, cutoff, scratch):  # type: ignore[no-untyped-def]
    looking, unclicked = 1.0, 1.0  # probabilities of examining position k, and of doing so with no click above it
    n_clicks, any_click, satisfied = 0.0, 0.0, 0.0
    for k in range(cutoff):
        attraction = parameters.attraction[ranking[k]]
        happy = attraction * parameters.satisfaction[ranking[k]]
        n_clicks += looking * attraction
        any_click += unclicked * attraction
        satisfied += looking * happy
        looking *= parameters.perseverance * (1.0 - happy)
        unclicked *= parameters.perseverance * (1.0 - attraction)
    if reward == CLICKS:
        return n_clicks
    return any_click if reward == ANY_CLICK else satisfied


class DynamicBayesianModel(ClickModel):
    """Dynamic Bayesian network model (DBN; with perseverance 1 the simplified SDBN).

    The user scans from the top; an examined attractive item is clicked; a clicked item i satisfies with probability s(i) and
    ends the session; otherwise the user goes on to the next position with probability g.

    Args:
        attraction: ``(L,)`` probabilities α(i) that an examined item is clicked.
        satisfaction: ``(L,)`` probabilities s(i) that a clicked item satisfies.
        perseverance: probability g that an unsatisfied user goes on, after a click or not; 1 gives SDBN.
        n_positions: K, at most L.

    Raises:
        ValueError: naming the parameter, the entry and what was expected.

    Source: Chapelle and Zhang 2009.

    Example:
        >>> model = DynamicBayesianModel([0.5, 0.4], [0.8, 0.1], perseverance=0.9, n_positions=2)
        >>> model.examination_probabilities([0, 1])
        array([1.  , 0.54])
    """

    rewards = ("clicks", "any_click", "satisfaction")
    sample_kernel = sample
    marginals_kernel = marginals
    expected_kernel = expected

    def __init__(self, attraction: ArrayLike, satisfaction: ArrayLike, perseverance: float = 1.0, *, n_positions: int) -> None:
        checked = probabilities("attraction", attraction, (None,))
        self.parameters = Parameters(
            checked,
            probabilities("satisfaction", satisfaction, (len(checked),)),
            probability("perseverance", perseverance),
        )
        self.n_positions = check_positions(n_positions, self.n_items)

    @property
    def satisfaction(self) -> NDArray[np.float64]:
        """Probability that each clicked item satisfies, ``(L,)``."""
        return self.parameters.satisfaction

    @property
    def perseverance(self) -> float:
        """Probability that an unsatisfied user goes on."""
        return self.parameters.perseverance

    def _optimal(self, reward: int, cutoff: int) -> NDArray[np.int64] | None:
        if reward == CLICKS:
            return None  # a satisfying item ends sessions: no sorting rule is right
        # Exchanging neighbours shows that either sum is largest in decreasing order, whatever the perseverance.
        gain = self.attraction * self.satisfaction if reward == SATISFACTION else self.attraction
        return np.argsort(-gain, kind="stable")[:cutoff]

    def _examination_bounds(self) -> NDArray[np.float64]:
        return self.perseverance ** np.arange(self.n_positions, dtype=np.float64)

    def to_dict(self) -> dict[str, Any]:
        return {
            "model": "DynamicBayesianModel",
            "attraction": self.attraction.tolist(),
            "satisfaction": self.satisfaction.tolist(),
            "perseverance": self.perseverance,
            "n_positions": self.n_positions,
        }

    def with_positions(self, n_positions: int) -> DynamicBayesianModel:
        return DynamicBayesianModel(self.attraction, self.satisfaction, self.perseverance, n_positions=n_positions)


class DBNRankEnv(RankEnv):
    """
    ## Description

    Rank search results for users of the **dynamic Bayesian network model** (DBN): a user scans the list from the top and
    clicks an examined item i with probability α(i); the clicked item satisfies with probability s(i), which ends the session;
    otherwise the user goes on with probability g (g = 1 is the simplified model, SDBN). Every step is one session with a new
    user; the stream of sessions never ends by itself. Satisfaction is never part of the observation.

    {interface}

    ## Arguments

    ```python
    >>> import gymnasium as gym, clickgym
    >>> env = gym.make("DBNRank-v0", attraction=[0.6, 0.4, 0.2], satisfaction=[0.5, 0.9, 0.1], n_positions=2,
    ...                reward="satisfaction")
    >>> observation, info = env.reset(seed=0)
    >>> info["optimal_ranking"]
    array([1, 0])
    >>> observation, reward, terminated, truncated, info = env.step([0, 1])
    >>> round(info["expected_reward"], 12)
    0.552

    ```

    | Parameter | Type | Default | Description |
    |---|---|---|---|
    | `attraction` | `(L,)` floats in [0, 1] | of the instance | probability α(i) that an examined item is clicked |
    | `satisfaction` | `(L,)` floats in [0, 1] | of the instance | probability s(i) that a clicked item satisfies |
    | `perseverance` | float in [0, 1] | 1, or of the instance | probability g that an unsatisfied user goes on |
    {arguments}

    ## Vectorized environment

    {vectorized}

    ## References

    - O. Chapelle, Y. Zhang. *A dynamic Bayesian network click model for web search ranking.* WWW 2009.

    ## Version History

    - v0: initial version.
    """

    model_class = DynamicBayesianModel
    kind = "DynamicBayesianModel"


class DBNRankVectorEnv(RankVectorEnv):
    """Many independent streams of `DBNRankEnv`, stepped together in compiled code."""

    model_class = DynamicBayesianModel
    kind = "DynamicBayesianModel"
