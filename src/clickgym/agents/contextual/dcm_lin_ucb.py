"""DCM-LinUCB (Liu et al. 2018): a LinUCB agent for the dependent click model."""

from __future__ import annotations

from ..common.cascade_agent import LAST_CLICK
from .c2ucb import C2UCB


class DCMLinUCB(C2UCB):
    """DCM-LinUCB: a LinUCB agent for the dependent click model, whose samples are the positions
    down to the last click, or all positions if there is no click.

    Idea:
        In the dependent click model a user reads from the top, and after each click either leaves
        or reads on. All positions down to the last click were examined, but the agent cannot know
        whether the user left after this click or read on without another click. DCM-LinUCB keeps
        one ridge regression of clicks on features, and shows the candidates with the largest upper
        confidence bounds. Its samples are the candidates down to the last click. If there is no
        click, all K candidates are samples, because a user who does not click reads the whole list.
        DCM-LinUCB can use several clicks in a session, which `CMLinUCB` cannot. If users often read
        on after their last click, the candidates that they reject there are not counted, so
        candidates at low positions are overestimated.

    Algorithm:
        that of `RidgeAgent`, where

        ::

            w_k = 1,  φ' = K
            e = the position of the last click; K if there is none

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

    Source: Liu, Li, Zhang, *Contextual dependent click bandit algorithm for web recommendation*,
    COCOON 2018; He, An, Li, Chen, Guo, Li, Wang, *Contextual user browsing bandits for large-scale
    online mobile recommendation*, RecSys 2020, section 6.2.

    Deviations from the paper:
        1. ``α_t`` and λ are those of `C2UCB`.
        2. ⚠ Candidates with nearly equal indices are ordered at random, as in `UBMLinUCB`.

    Example:
        >>> agent = DCMLinUCB(3, 2, n_features=1, alpha=1.0, seed=0)
        >>> agent.rank({"features": [[0.1], [0.5], [0.9]]})
        array([2, 1])
    """

    paper = "Liu et al. 2018; He et al. 2020, section 6.2"
    bibtex_keys = ["dcmlinear", "ubmlinucb"]
    click_models = "DCM, with linear attraction"
    made_for_models = ("DCM",)
    feedback = LAST_CLICK
