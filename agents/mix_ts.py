"""MixTS, our own agent: Thompson sampling over four click models.

Under each of them, a user clicks item i in the *context* x with probability

    p = c_x f α_i

α_i is the item's attraction. The context is what decides, by the model, whether a user examines an
item, and c_x is how likely that is:

- PBM: the position;
- UBM: the position, and that of the last click above it;
- DBN: the item that was clicked last above it, or none;
- DCM: the position that was clicked last above it, or none.

f is 1 in the PBM and the UBM. Users of the DBN and the DCM scan from the top, and may have left
below an item that they skipped: after a skip, f becomes f g (1 - α_i) / (1 - p), where g is the
probability of going on, and after a click it is 1 again.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.kernels import entry, kernel
from ..core.state import Floats, Ints
from .agent import Seed
from .compiled_agent import CompiledAgent
from .shared_kernels import rank_by_draw

MODELS = ("PBM", "UBM", "DBN", "DCM")
PBM, UBM, DBN, DCM = range(4)  # users of the last two models scan

PRIOR = 0.75
"""The number of clicks, and of displays without a click, that each item has at the start."""
WEIGHT = 2.0
"""The weight of the prior of c and of g, in expected clicks."""
LEAST = 1e-4
"""The smallest probability of a click, and of none."""
EXPLORATION = 0.3
"""This times t^(-2/3) is the smallest share of a model, and the probability that two positions are
exchanged.
"""
GROWTH = 0.005
"""Parameters are fitted when t has grown by this share."""
FEW = 20.0
"""An item with more clicks than this is drawn as if it had up to twice as many, because Thompson
sampling explores more than is needed. With fewer clicks, an unlucky item would never recover.
"""
DOUBT = 0.5
"""The standard deviation of a drawn log c, relative to the posterior's."""
HAZARD = 1e-3
"""The odds that an item has changed if it was not shown for most of the time."""
ALARM = 1e8
"""Odds of a change above which all clicks are forgotten."""
FALLEN = 0.05
"""Odds of a change below which a window of recent clicks is closed."""


class State(NamedTuple):
    """Shapes have L items, K positions, M models, and X contexts, those of the models in turn."""

    total: Annotated[Floats, "L"]  # S, clicks on the item
    exposure: Annotated[Floats, "M L"]  # E, the sum of c f over its displays
    clicks: Annotated[Floats, "X"]  # in the context
    displays: Annotated[Floats, "X L"]  # each counts f
    displays_of_all: Annotated[Floats, "X"]  # their sum over items
    examination: Annotated[Floats, "X", 1.0]  # c; of the first context of a model 1 forever
    information: Annotated[Floats, "X", WEIGHT]  # on log c
    first: Ints  # the first context of each model, and the end
    # g of the DBN and the DCM. The power of g is ∂log f / ∂log g.
    go_on: Annotated[Floats, "M", 0.95]  # g
    power: Annotated[Floats, "M L"]  # the sum of the powers of g over displays, each counts c f
    power_weight: Annotated[Floats, "M L"]  # the sum of c f
    slope: Annotated[Floats, "M 2", (0.0, WEIGHT)]  # score since the last fit, and information
    # Which model to believe
    evidence: Annotated[Floats, "M"]
    share: Annotated[Floats, "M", 1.0 / len(MODELS)]
    leader: Annotated[Ints, "1"]
    t: Annotated[Ints, "2"]  # sessions; those at the next fit
    # The window of recent clicks of an item
    recent_clicks: Annotated[Floats, "L"]
    recent_exposure: Annotated[Floats, "L"]  # under the leader
    odds: Annotated[Floats, "L", 1.0]  # the odds of a change when the window began, to no change
    calm: Annotated[Floats, "L"]  # t at the last display after which they were below 1
    # Working memory
    examined: Annotated[Floats, "M K"]  # c f of the shown items
    model: Annotated[Ints, "1"]  # the model that was drawn
    drawn_attraction: Annotated[Floats, "L"]
    drawn_examination: Annotated[Floats, "X", 1.0]
    order: Annotated[Ints, "L", range]
    row: Annotated[Ints, "2K"]  # a list, and items that may enter it
    last_click: Annotated[Floats, "K+1"]


@kernel
def clip_probability(p):
    return min(max(p, LEAST), 1.0 - LEAST)


@kernel
def context(state, h, k, j, i):
    """Return the context of position k, if the last click above was at position j (from 1; 0:
    none), on item i.
    """
    first = state.first[h]
    if h == PBM:
        return first + k
    if h == UBM:
        return first + k * (k + 1) // 2 + j
    if h == DBN and j > 0:
        return first + 1 + i
    return first + j


# -------------------------------------------------------------------------- learning from a session


@kernel
def update(state, ranking, clicks):
    state.t[0] += 1
    for h in range(len(state.share)):
        learn(state, h, ranking, clicks)
    changed = has_changed(state, ranking, clicks)
    for k in range(len(ranking)):
        state.total[ranking[k]] += clicks[k]
    if changed:
        forget(state)
    elif state.t[0] >= state.t[1]:
        for h in range(len(state.share)):
            fit(state, h)
        weigh(state)
        state.t[1] = state.t[0] + 1 + int(GROWTH * state.t[0])


@kernel
def learn(state, h, ranking, clicks):
    """Follow a user down the list under a model: score the model by how likely the clicks are, and
    count them.
    """
    j, f, power, likelihood = 0, 1.0, 0.0, 1.0
    for k in range(len(ranking)):
        i = ranking[k]
        x = context(state, h, k, j, ranking[j - 1])
        attraction = (state.total[i] + PRIOR) / (size_of(state, h, i) + 2.0 * PRIOR)
        examined = state.examination[x] * f
        p = clip_probability(examined * attraction)
        likelihood *= p if clicks[k] else 1.0 - p
        state.examined[h, k] = examined
        state.exposure[h, i] += examined
        state.displays[x, i] += f
        state.displays_of_all[x] += f
        state.clicks[x] += clicks[k]
        if h >= DBN:
            learn_go_on(state, h, i, clicks[k], p, examined, power)
        if clicks[k]:
            j, f, power = k + 1, 1.0, 0.0
        elif h >= DBN:
            f *= state.go_on[h] * (1.0 - attraction) / (1.0 - p)
            power = min(1.0 + power / (1.0 - p), 8.0)
    state.evidence[h] += math.log(max(likelihood, 1e-300))


@kernel
def size_of(state, h, i):
    """Return the displays of an item, each counted by its examination; at least its clicks."""
    return max(state.total[i], state.exposure[h, i])


@kernel
def learn_go_on(state, h, i, click, p, examined, power):
    """Add to the score and the information of log g what one display tells. Only the difference of
    the power of g to the item's mean counts, because the mean tells about g and α_i alike.
    """
    more = power - state.power[h, i] / max(state.power_weight[h, i], LEAST)
    state.slope[h, 0] += (click - p) * more
    state.slope[h, 1] += p * more * more
    state.power[h, i] += examined * power
    state.power_weight[h, i] += examined


# --------------------------------------------------------------------------------- users who change


@kernel
def has_changed(state, ranking, clicks):
    """Whether the recent clicks on an item, under the leading model, contradict all clicks on this
    item.
    """
    h, changed = state.leader[0], False
    for k in range(len(ranking)):
        i, examined = ranking[k], state.examined[h, k]
        if state.odds[i] < 1.0 and state.t[0] - state.calm[i] > 1.0 + state.recent_exposure[i]:
            close_window(state, i)  # the item was away
        recent = max(state.recent_clicks[i], state.recent_exposure[i])
        p = clip_probability(examined * (1.0 + state.total[i]) / (2.0 + size_of(state, h, i)))
        q = clip_probability(examined * (1.0 + state.recent_clicks[i]) / (2.0 + recent))
        state.odds[i] *= q / p if clicks[k] else (1.0 - q) / (1.0 - p)
        state.recent_clicks[i] += clicks[k]
        state.recent_exposure[i] += examined
        changed = changed or state.odds[i] > ALARM
        state.calm[i] = state.t[0] if state.odds[i] < 1.0 else state.calm[i]
        # A window that shows no change, or that holds more than half of all displays, begins anew.
        if state.odds[i] < FALLEN or 2.0 * state.recent_exposure[i] > 1.001 * state.exposure[h, i]:
            close_window(state, i)
    return changed


@kernel
def close_window(state, i):
    state.recent_clicks[i], state.recent_exposure[i], state.odds[i] = 0.0, 0.0, 1.0


@kernel
def forget(state):
    """Forget all clicks. The knowledge about users (c, g and the shares of the models) is kept as a
    start until it is fitted again.
    """
    state.t[:] = 0
    state.total[:] = 0.0
    state.calm[:] = 0.0
    state.exposure[:] = 0.0
    state.clicks[:] = 0.0
    state.displays[:] = 0.0
    state.displays_of_all[:] = 0.0
    for i in range(len(state.total)):
        close_window(state, i)


# ------------------------------------------------------------------------------------------ the fit


@kernel
def fit(state, h):
    """Take a Newton step for each c of a model, and for g."""
    begin, end, n_items = state.first[h], state.first[h + 1], len(state.total)
    leads = h == state.leader[0]
    for i in range(n_items):
        if leads:  # windows keep their share of the exposure
            state.recent_exposure[i] /= max(state.exposure[h, i], LEAST)
        state.exposure[h, i] = 0.0
    for x in range(begin, end):
        if state.displays_of_all[x] > 0.0:
            add_exposure(state, h, x, state.examination[x])
    clicks, expected = WEIGHT, WEIGHT
    for x in range(begin + 1, end):
        if state.displays_of_all[x] > 0.0:
            clicks += state.clicks[x]
            for i in range(n_items):
                expected += state.displays[x, i] * likeliest(state, h, i)
    prior = min(clicks / expected, 1.0)
    for x in range(begin + 1, end):
        if state.displays_of_all[x] > 0.0:
            fit_examination(state, h, x, prior)
        else:
            state.examination[x], state.information[x] = prior, WEIGHT
    if h >= DBN:
        step = math.exp(min(max(state.slope[h, 0] / state.slope[h, 1], -0.2), 0.2))
        state.go_on[h] = min(max(state.go_on[h] * step, 0.05), 1.0 - LEAST)
        state.slope[h, 0] = 0.0
    if leads:
        for i in range(n_items):
            state.recent_exposure[i] *= state.exposure[h, i]


@kernel
def add_exposure(state, h, x, weight):
    for i in range(len(state.total)):
        more = weight * state.displays[x, i]
        state.exposure[h, i] = max(state.exposure[h, i] + more, 0.0)


@kernel
def likeliest(state, h, i):
    """Return the attraction at which the likelihood is largest, for the present c and g."""
    return (state.total[i] + PRIOR) / (state.exposure[h, i] + 2.0 * PRIOR)


@kernel
def fit_examination(state, h, x, prior):
    """Take a Newton step for log c on the profile likelihood, in which attractions follow c.

    With w clicks expected on an item in the context, the clicks carry information about c, except
    for the share of w among all clicks on the item, which carries information about the attraction.
    """
    old = state.examination[x]
    score, information = state.clicks[x] + WEIGHT * (prior - old), WEIGHT * old
    for i in range(len(state.total)):
        w = old * state.displays[x, i] * likeliest(state, h, i)
        score -= w
        information += w * max(1.0 - w / (state.total[i] + PRIOR), 0.0)
    state.information[x] = information
    new = old * math.exp(min(max(score / information, -0.5), 0.5))
    state.examination[x] = min(max(new, LEAST), 1.0)
    add_exposure(state, h, x, state.examination[x] - old)


@kernel
def exploration_share(state):
    return EXPLORATION * (state.t[0] + 1) ** (-2.0 / 3.0)


@kernel
def weigh(state):
    """Set the share of each model."""
    leader = 0  # the first of equal models, whatever the last bits say
    for h in range(1, len(state.share)):
        if state.evidence[h] > state.evidence[leader] + 1e-9:
            leader = h
    state.leader[0], most = leader, state.evidence[leader]
    for h in range(len(state.share)):
        state.evidence[h] -= most
        state.share[h] = max(math.exp(state.evidence[h]), exploration_share(state))
    total = state.share.sum()
    for h in range(len(state.share)):
        state.share[h] /= total


# --------------------------------------------------------------------------- the choice of the list


@kernel
def choose(state, rng, ranking):
    h, u = 0, rng.random()
    while h < len(state.share) - 1 and u >= state.share[h]:
        u -= state.share[h]
        h += 1
    state.model[0] = h
    n = len(ranking)
    arrange(state, h, n, 1.0, rng)
    if n > 1 and rng.random() < exploration_share(state):
        x, y = int(n * rng.random()), int((n - 1) * rng.random())
        swap(state.row, x, y + (y >= x))
    for k in range(n):
        ranking[k] = state.row[k]


@kernel
def swap(row, x, y):
    row[x], row[y] = row[y], row[x]


@kernel
def draw(state, h, noise, rng):
    """Draw the attractions and c of a model from their posteriors; without noise these are the
    estimates, and 0 for items never shown.

    An attraction p is drawn as sin²(asin √p + atan d), where d is a normal number with standard
    deviation 1 / √(4 n) after n displays, whatever p is.
    """
    for i in range(len(state.total)):
        n, s = size_of(state, h, i), state.total[i]
        odds = HAZARD * (1.0 - state.calm[i] / (state.t[0] + 1)) * max(state.odds[i], 1.0)
        if h == state.leader[0] and noise > 0.0 and rng.random() * (1.0 + odds) < odds:
            s = state.recent_clicks[i] if state.odds[i] > 1.0 else 0.0
            n = max(s, state.recent_exposure[i]) if state.odds[i] > 1.0 else 0.0
        p = (s + PRIOR) / (n + 2.0 * PRIOR)
        sharp = (n + 2.0 * PRIOR) * (1.0 + s / (s + FEW))
        d, sine, cosine = rng.standard_normal(), math.sqrt(p), math.sqrt(1.0 - p)
        d *= 0.5 * noise / math.sqrt(sharp)
        sine, cosine = sine + d * cosine, cosine - d * sine  # of the sum, times √(1 + d²)
        drawn = max(sine, 0.0) ** 2 / (1.0 + d * d)
        state.drawn_attraction[i] = drawn if cosine > 0.0 else 1.0
        if noise == 0.0 and n == 0.0:
            state.drawn_attraction[i] = 0.0
    for x in range(state.first[h] + 1, state.first[h + 1]):
        z = noise * DOUBT / math.sqrt(state.information[x]) * rng.standard_normal()
        state.drawn_examination[x] = min(state.examination[x] * math.exp(z), 1.0)


@kernel
def arrange(state, h, n, noise, rng):
    """Write into ``row`` the list with most expected clicks: take the n items with the largest
    attraction, in order, then exchange pairs of them as long as this gains clicks. In the DBN and
    the DCM, whose users may leave after a click, the next n items may enter the list, too.
    """
    draw(state, h, noise, rng)
    row, m = state.row, min(2 * n if h >= DBN else n, len(state.total))
    rank_by_draw(state.drawn_attraction, state.order, rng, m)
    for place in range(m):
        row[place] = state.order[place]
    most = expected_clicks(state, h, row[:n])
    for _ in range(2):
        before = most
        for x in range(n):
            for y in range(x + 1, m):
                swap(row, x, y)
                clicks = expected_clicks(state, h, row[:n])
                if clicks > most + 1e-9:
                    most = clicks
                else:
                    swap(row, x, y)
        if most == before:
            break


@kernel
def expected_clicks(state, h, row):
    """Return the expected clicks on a list, for the parameters that were drawn."""
    total, examined = 0.0, 1.0
    state.last_click[0] = 1.0  # the probability that it was at a position
    for k in range(len(row)):
        i = row[k]
        attraction, clicked = clip_probability(state.drawn_attraction[i]), 0.0
        if h == PBM:
            clicked = state.drawn_examination[context(state, h, k, 0, i)] * attraction
        elif h >= DBN:
            clicked = examined * attraction
            after_click = state.drawn_examination[context(state, h, k, k + 1, i)]
            examined *= attraction * after_click + (1.0 - attraction) * state.go_on[h]
        else:
            for j in range(k + 1):
                c = state.drawn_examination[context(state, h, k, j, i)]
                p = state.last_click[j] * c * attraction
                state.last_click[j] -= p
                clicked += p
            state.last_click[k + 1] = clicked
        total += clicked
    return total


class MixTS(CompiledAgent):
    """MixTS: Thompson sampling over four click models, whose parameters it learns from the clicks.

    Idea:
        An agent that assumes one click model can settle on a wrong list where users follow another
        one, because the clicks on that list never contradict it. MixTS keeps four models: PBM and
        UBM, whose users look at positions, and DBN and DCM, whose users scan from the top and may
        leave after a click. All learn their parameters and the attractions of items from the same
        clicks. In each session one model is drawn with a probability, its share, that follows from
        how well the model predicted the clicks so far. Then its parameters and attractions are
        drawn around their estimates, and the list with most expected clicks is shown. In a few
        sessions two positions are exchanged, because a list that never changes carries no
        information about positions. If recent clicks on an item contradict the older ones, users
        have changed, and all clicks are forgotten.

    Algorithm:
        ::

            context x of an item in a list, by model h: PBM, its position; UBM, its position and
                that of the last click above; DBN, the last clicked item above; DCM, the position
                of the last click above
            c_x ← 1, the probability of examination in context x; in the first context of a model
                (PBM, UBM: the top; DBN, DCM: no click above) it stays 1
            g_h ← 0.95, the probability of going on after a skip in the DBN and the DCM
            J_h ← 0, the evidence for h, and share_h ← 1/4
            S_i ← 0, clicks on item i; C_x ← 0, clicks in x; N_xi ← 0, displays of i in x
            E_hi stands for Σ_x c_x N_xi over the contexts of h

            for t = 1, 2, ...:
                draw h by its share
                draw α_i around its mean (S_i + 3/4) / (E_hi + 3/2), as if there had been
                    1 + S_i / (S_i + 20) times as many displays (step 1); rarely by recent clicks
                    alone, as if i had changed (step 4)
                draw log c_x from a normal distribution around its estimate, with half its
                    standard deviation, 1 / √information (step 2), and at most 0
                R ← items by α, then each exchange of two items that gains expected clicks under
                    h, in at most two passes over all pairs of its K positions (DBN, DCM: of one of
                    them and one of the first 2 K items)
                with probability 0.3 t^(-2/3) exchange a random pair of positions of R
                show R, observe the clicks
                for each h, follow the user down the list, with f ← 1:
                    p ← c_x f α_i, with the mean of α_i, (S_i + 3/4) / (max(E_hi, S_i) + 3/2)
                    N_xi ← N_xi + f; C_x ← C_x + click; J_h ← J_h + log probability of the click
                    DBN, DCM: after a skip f ← f g_h (1 - α_i) / (1 - p); after a click f ← 1
                S_i ← S_i + click for each shown item
                if the odds of a change are above 10⁸ for a shown item: S, C, N, t ← 0 (step 4)
                at t = 1, and after a fit at t again at t + 1 + ⌊t / 200⌋:
                    a Newton step for each log c_x, on the likelihood in which all α_i follow
                    (step 2), and a step for each log g_h, likewise (step 3)
                    share_h ∝ max(exp(J_h - largest J), 0.3 (t + 1)^(-2/3))

    Args:
        n_items: L.
        n_positions: K.
        seed: seeds the agent's own generator.

    Source: ours. The models are those of Craswell, Zoeter, Taylor, Ramsey, *An experimental
    comparison of click position-bias models*, WSDM 2008 (PBM); Dupret, Piwowarski, *A user browsing
    model to predict search engine click data from past observations*, SIGIR 2008 (UBM); Chapelle,
    Zhang, *A dynamic Bayesian network click model for web search ranking*, WWW 2009 (DBN); Guo,
    Liu, Wang, *Efficient multiple-click models in web search*, WSDM 2009 (DCM).

    The steps in detail:
        1. *Draws of α.* With n = max(E_hi, S_i), p = (S_i + 3/4) / (n + 3/2) and a standard normal
           z, α_i = sin²(asin √p + atan(z / (2 √m))), where m = (n + 3/2) (1 + S_i / (S_i + 20)).
           Its standard deviation is about √(p (1 - p) / m). These draws, and those of c, are
           narrower than the posterior on purpose: Thompson sampling explores more than is needed.
        2. *c.* Clicks are taken for Poisson numbers, and each α_i for its likeliest value for the
           present c, (S_i + 3/4) / (E_hi + 3/2). With w_i = c N_xi α_i expected clicks, log c has
           the score C_x - Σ w_i + 2 (c̄ - c), and the information 2 c + Σ w_i (1 - w_i / (S_i +
           3/4)): the rest of w_i tells of α_i. The prior is two clicks at the mean of the model,
           c̄ = (2 + Σ C_x) / (2 + Σ N_xi α_i), at most 1, over the contexts that users were in, but
           for the first. A context that no user was in has c = c̄ and information 2. The contexts
           move one after another, and E follows at once. A step moves log c by at most 0.5, and c
           stays between 10⁻⁴ and 1. If attractions did not follow, c would creep while one list is
           shown, because the two explain each other's errors. One step need not make the clicks
           more likely.
        3. *g.* The score of log g is the sum of (click - p) (m - m̄_i) since the last step. The
           information is 2 and the sum of p (m - m̄_i)² over all displays. m = ∂ log f / ∂ log g is
           about the number of skips since the last click: 0 after a click, and after a skip
           min(1 + m / (1 - p), 8). m̄_i is its mean over the earlier displays of the item, each with
           the weight c f, and 0 before the first; it tells of g and α_i alike, and is kept, with
           the information, after a change. A step moves
           log g by at most 0.2, and g stays between 0.05 and 1 - 10⁻⁴.
        4. *Changes.* Each item has a window of recent clicks: their number s, and e, the sum of
           c f over their displays, under the model with the largest share. Before each click, α_i
           by the window is (s + 1) / (max(s, e) + 2), and by all clicks (S_i + 1) /
           (max(S_i, E_hi) + 2), where E_hi has the display itself. The odds are multiplied by the
           probability of what the user did (p = c f α_i) by the window over that by all clicks. A
           window begins anew, with odds 1, when the odds fall below 0.05, or when e is more than
           0.5005 E_hi. When c moves, e moves in the proportion of E_hi. Let b_i be t at the last
           display of the item after which the odds were below 1 (before a window begins anew), at
           first 0. A window with odds below 1 also begins anew when its item was away: it is shown
           at a t with t - b_i > 1 + e. In the draws of
           the model with the largest share, each item has the odds 0.001 (1 - b_i / t) max(odds, 1)
           that it has changed. If so, s and e take the place of S_i and n in step 1, or 0 if the
           odds are at most 1. So items that are not shown return now and then, and more often after
           they were clicked. After a change c, g, J and the shares stay as a start, and windows, t
           and with it b, exploration and the times of fits begin anew.

    Limits: no bound on the regret of MixTS is known. It detects only changes of attraction. Users
        who are a mixture of kinds, or who trust positions, follow none of its models. It does not
        plan for users whose state changes with their clicks.

    Memory: (L + K² / 2 + 5 K / 2 + 2) L numbers and little more: 9 MB with L = 1,000 and K = 10.

    Example:
        >>> agent = MixTS(4, 2, seed=0)
        >>> agent.rank(None).shape
        (2,)
        >>> max(agent.beliefs(), key=agent.beliefs().get)
        'PBM'
    """

    paper = "ours, 2026"
    bibtex_keys = ["positionbias", "userbrowsing", "dynamicbayesian", "dependentclick"]
    state_type, rank_kernel, update_kernel = State, choose, update

    def __init__(self, n_items: int, n_positions: int, *, seed: Seed = None) -> None:
        super().__init__(n_items, n_positions, seed)

    def sizes(self) -> dict[str, int]:
        n, k = self.n_items, self.n_positions
        return {"L": n, "K": k, "M": len(MODELS), "X": self.contexts()[-1]}

    def contexts(self) -> NDArray[np.int64]:
        """The first context of each model, and the end."""
        n, k = self.n_items, self.n_positions
        return np.cumsum([0, k, k * (k + 1) // 2, n + 1, k + 1])

    def first_values(self) -> dict[str, Any]:
        return {"first": self.contexts()}

    def beliefs(self) -> dict[str, float]:
        """Return the share of each model by its name; they sum to 1."""
        return dict(zip(MODELS, self.state.share.tolist(), strict=True))

    def best(self) -> NDArray[np.int64]:
        copies = self.state._replace(**{name: array.copy() for name, array in self.arrays.items()})
        leader = int(self.state.leader[0])
        entry(arrange)(copies, leader, self.n_positions, 0.0, np.random.default_rng(0))
        return copies.row[: self.n_positions]
