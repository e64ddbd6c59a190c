"""MixTS: Thompson sampling from a mixture of click models, whose parameters it learns.

`state` has what it knows; `hypotheses` what each click model says of a list; `fit` their
parameters; `evidence` which of them to believe; `choice` the list to show; `change` when to forget.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clickgym.agents import CompiledAgent
from clickgym.core.checks import check_flag, check_prior_skips
from clickgym.core.kernels import entry, kernel
from clickgym.core.state import first_arrays

from .change import judge_windows, look_for_changes, rate_of_changes
from .choice import arrange, choose
from .evidence import predict, weigh_hypotheses
from .fit import fit
from .hypotheses import count, examine
from .state import HYPOTHESES, RESERVE, State

GROWTH = 0.005
"""Parameters are fitted anew when there are so many more sessions: as if in each one, for a
hundredth of the cost.
"""


@kernel
def update(state, ranking, clicks):  # type: ignore[no-untyped-def]
    state.t[0] += 1
    state.changes[0] += rate_of_changes(state)
    n = examine(state, ranking, clicks)
    predict(state, ranking, clicks, n)
    if state.detect:
        look_for_changes(state, ranking, clicks, n)
    count(state, ranking, clicks, n)
    if state.detect:
        judge_windows(state, ranking, n)
    if state.t[0] >= state.t[1]:
        fit(state)
        weigh_hypotheses(state)
        for i in range(len(state.total)):  # fit made them shares
            state.recent_exposure[i] *= state.exposure[state.leader[0], i]
        state.t[1] = state.t[0] + 1 + int(GROWTH * state.t[0])


class MixTS(CompiledAgent):
    """MixTS: Thompson sampling from a mixture of five click models, whose parameters it learns from
    the clicks.

    Idea:
        Agents that assume one click model can settle on a wrong list where users follow another
        one. MixTS keeps five hypotheses, and estimates parameters and attractions of each from the
        same clicks. In each session one is drawn by its share, which follows from how well it
        predicted the clicks. The first sessions count little, because they speak against hypotheses
        with many parameters. Evidence fades, because while one list is shown, nothing new speaks
        for a hypothesis that would show another. Then attractions are drawn from their posteriors,
        and the list with most expected clicks is shown. Recent clicks on an item are compared with
        older ones, which are forgotten if the two contradict each other.

    Algorithm:
        ::

            hypotheses h: PBM, γ_k; UBM, γ_kj; DBN, g after a skip and c_i after a click on item i;
                DCM, g and c_k after a click on position k;
                table, a rate for each item and position; beforehand 400 displays by u_k + v_k α
            S_i ← 0 for each item i: its clicks
            E_h(i) ← 0: the sum of its examination probabilities b_h
            for t = 1, 2, ...:
                draw h by its share, and γ, or u and v, around their estimates
                draw α_i from its posterior with mean (S_i + 3/4) / (E_h(i) + 3/2); items with many
                    clicks as if they had 1 + 1/√(1 + t/5000) times as many: from 2 down to 1
                R ← the list with most expected clicks under h
                with probability 2 (t + 10⁴)^(-2/3) exchange two positions of R
                show R, observe the clicks
                b_h(k) ← from the clicks above k: γ_k; γ_kj after a click on j; in DBN and DCM 1 on
                    top, c after a click, g b (1 - α) / (1 - b α) after a skip; table: rate / α
                w ← t / (t + 300)
                J_h ← J_h + w log probability of the clicks of the session
                M_h ← M_h + the same, each position by itself
                S_i, E_h(i) ← S_i + click, E_h(i) + b_h for each shown item
                if detect: compare recent clicks with all of them, by b of the h with largest share
                whenever t has grown by 0.5 %:
                    a Newton step for each parameter on the profile likelihood; E_h anew
                    J_table ← largest J of the others + (M_table - largest M of the others) - 1
                    share_h ∝ max(exp(J_h - the largest), 0.1 t^(-2/3)); J and M fade by 0.15 %

    Args:
        n_items: L.
        n_positions: K.
        detect: whether attractions may change.
        prior_skips: ``(L,)`` displays at the first position without a click that each item has
            beforehand; or one number for all. None takes 0. If the agent starts from a log,
            ``make_agent`` gives some to items that the log hardly shows.
        seed: seeds the agent's own generator.

    Raises:
        ValueError: ``detect`` is no flag, or skips are no numbers of displays.

    Source: ours. The hypotheses are the click models of Craswell, Zoeter, Taylor, Ramsey, *An
    experimental comparison of click position-bias models*, WSDM 2008 (PBM); Dupret, Piwowarski, *A
    user browsing model to predict search engine click data from past observations*, SIGIR 2008
    (UBM); Chapelle, Zhang, *A dynamic Bayesian network click model for web search ranking*, WWW
    2009 (DBN); Guo, Liu, Wang, *Efficient multiple-click models in web search*, WSDM 2009 (DCM).

    What decides, and is covered by tests:
        1. ``DBN`` stands for all users who scan and whose continuation depends on the clicked item:
           CM, DBN, and CCM, where it follows from the attraction. ``DCM`` contains the CM, too, and
           ``UBM`` the PBM and the CM. The table contains all users whose clicks depend on item and
           position alone: trust bias, and mixtures of PBMs.
        2. Cells of the table that are hardly shown follow u_k + v_k α, the law of trust bias, and
           u_k and v_k are drawn, too. Cells that follow the PBM, which has no clicks on items that
           do not attract, are expected too low at the top of the list, and never shown there.
        3. The table is judged by the marginal probability of each click, because it ignores the
           clicks above. It leads only if it predicts single clicks better than all others do: in
           the DBN it predicts them about as well, but its lists are worse.
        4. No hypothesis is ever given up: its share is at least 0.1 t^(-2/3).
        5. In the DCM the least attractive items may be shown, too, above positions at which many
           users leave after a click.
        6. What a skip tells of the user depends on the attraction as it was before the session.

    Memory: 2 L K² + 2 (L + K + 2) L + L K + 19 L numbers and little more: 11 kB with L = 10 and K =
    5, 18 MB with L = 1,000 and K = 10.

    Example:
        >>> agent = MixTS(4, 2, seed=0)
        >>> agent.rank(None).shape
        (2,)
        >>> agent.beliefs()
        {'PBM': 0.2, 'UBM': 0.2, 'DBN': 0.2, 'DCM': 0.2, 'table': 0.2}
    """

    paper = "ours, 2026"
    learns_from_any_list = True
    state_type = State
    rank_kernel = choose
    update_kernel = update

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        *,
        detect: bool = True,
        prior_skips: ArrayLike | None = None,
        seed: int | np.random.SeedSequence | None = None,
    ) -> None:
        detect, skips = check_flag("detect", detect), check_prior_skips(prior_skips, n_items)
        super().__init__(n_items, n_positions, seed, detect=detect, prior_skips=skips)

    def first_values(self) -> dict[str, Any]:
        skips, arrays = self.hyperparameters["prior_skips"], {}
        if skips is not None:
            arrays = first_arrays(State, self.sizes())
            arrays["displays"][:, 0, 0] = skips
            arrays["exposure"][:] = skips
            arrays["below"][[0, self.n_items + 1]] = skips  # below nothing, in the DBN and the DCM
        return arrays

    def beliefs(self) -> dict[str, float]:
        """Return the share of each hypothesis by its name; they sum to 1."""
        return dict(zip(HYPOTHESES, self.state.share.tolist(), strict=True))

    def best(self) -> NDArray[np.int64]:
        copies = self.state._replace(**{name: array.copy() for name, array in self.arrays.items()})
        h, n = int(self.state.leader[0]), self.n_positions
        entry(arrange)(copies, h, n, 0.0, 0.0, np.random.default_rng(0))
        return copies.row[:n]

    def sizes(self) -> dict[str, int]:
        n, k = self.n_items, self.n_positions
        return {"L": n, "K": k, "X": n + k + 2, "C": min(RESERVE * k, n)}
