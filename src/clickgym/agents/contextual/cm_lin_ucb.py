"""CM-LinUCB (Zong et al. 2016): a LinUCB agent for the cascade model."""

from __future__ import annotations

from ..common.cascade_agent import FIRST_CLICK
from .c2ucb import C2UCB


class CMLinUCB(C2UCB):
    """CM-LinUCB: a LinUCB agent for the cascade model, whose samples are the positions down to the
    first click, or all positions if there is no click.

    Idea:
        In the cascade model a user reads from the top and leaves at the first click, so nothing
        below this click was examined. CM-LinUCB keeps one ridge regression of clicks on features,
        and shows the candidates with the largest upper confidence bounds. Its samples are the
        candidates that the user examined: all down to the first click, or all K if there is no
        click. In the cascade model, these samples are unbiased, and each sample carries information
        about all candidates that share its features. If users click more than once, CM-LinUCB
        ignores the clicks below the first one. If users leave before the end of the list without a
        click, candidates that they did not examine count as rejected.

    Algorithm:
        that of `RidgeAgent`, where

        ::

            w_k = 1,  φ' = K
            e = the position of the first click; K if there is none

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

    Source: Zong, Ni, Sung, Ke, Wen, Kveton, *Cascading bandits for large-scale recommendation
    problems*, UAI 2016; He, An, Li, Chen, Guo, Li, Wang, *Contextual user browsing bandits for
    large-scale online mobile recommendation*, RecSys 2020, section 6.2.

    Deviations from the paper:
        1. ``α_t`` and λ are those of `C2UCB`.
        2. ⚠ Candidates with nearly equal indices are ordered at random, as in `UBMLinUCB`.

    Example:
        >>> agent = CMLinUCB(3, 2, n_features=1, alpha=1.0, seed=0)
        >>> agent.rank({"features": [[0.1], [0.5], [0.9]]})
        array([2, 1])
    """

    paper = "Zong et al. 2016; He et al. 2020, section 6.2"
    bibtex_keys = ["cascadelinear", "ubmlinucb"]
    click_models = "CM, with linear attraction"
    made_for_models = ("CM",)
    feedback = FIRST_CLICK
