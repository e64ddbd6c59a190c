"""C²UCB (Qin et al. 2014): a LinUCB agent for users who examine the whole list."""

from __future__ import annotations

from ..agent import Seed
from .ridge_agent import RidgeAgent


class C2UCB(RidgeAgent):
    """C²UCB: a LinUCB agent for lists that counts every shown candidate as examined.

    Idea:
        C²UCB assumes that users examine the whole list, so a shown candidate without a click counts
        as rejected. It keeps one ridge regression of clicks on the features of candidates. All K
        positions of every list are samples of this regression, with equal weight. It shows the K
        candidates with the largest upper confidence bounds of attraction, the largest on top. C²UCB
        uses the feedback at every position, and its estimates are correct if users do read whole
        lists. If users examine lower positions less often, candidates there look less attractive
        than they are, and therefore stay at lower positions.

    Algorithm:
        that of `RidgeAgent`, where

        ::

            w_k = 1,  φ' = K
            e = K

    Args:
        n_items: the number of candidates in each session, L.
        n_positions: the number of positions in a list, K.
        n_features: the number of features of each candidate, d, which ``make_agent`` fills in.
        alpha: a constant to use in place of the confidence radius ``α_t``, at least 0. By default,
            ``α_t`` follows the formula of `UBMLinUCB`, with ``φ' = K``.
        ridge: the strength of the regularisation, λ ≥ 1e-6; by default K.
        seed: the seed of the agent's own random generator.

    Raises:
        ValueError: ``alpha`` is negative, or ``ridge`` is below 1e-6.

    Source: Qin, Chen, Zhu, *Contextual combinatorial bandit and its application on diversified
    online recommendation*, SDM 2014; compared with in He, An, Li, Chen, Guo, Li, Wang, *Contextual
    user browsing bandits for large-scale online mobile recommendation*, RecSys 2020, section 6.2.

    Deviations from the paper:
        1. ``α_t`` and λ are those of He et al. with all weights 1, so that these agents
           differ only in their samples.
        2. ⚠ Candidates with nearly equal indices are ordered at random, as in `UBMLinUCB`.

    Example:
        >>> C2UCB(3, 2, n_features=1, alpha=1.0, seed=0).rank({"features": [[0.1], [0.5], [0.9]]})
        array([2, 1])
    """

    paper = "Qin et al. 2014; He et al. 2020, section 6.2"
    bibtex_keys = ["c2ucb", "ubmlinucb"]

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        *,
        n_features: int,
        ridge: float | None = None,
        alpha: float | None = None,
        seed: Seed = None,
    ) -> None:
        super().__init__(n_items, n_positions, n_features, seed, ridge=ridge, alpha=alpha)
