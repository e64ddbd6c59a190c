"""MixTS, clickgym's own agent, which applies Thompson sampling to four click models.

Under each model, a user clicks item i in the *context* x with probability

    p = c_x f α_i

α_i is the item's attraction. The context is what determines, according to the model, how likely a
user is to examine an item, and c_x is this probability. The contexts of the models are:

- PBM: the position;
- UBM: the position, and the position of the last click above it;
- DBN: the last item clicked above, or none;
- DCM: the position of the last click above, or none.

The factor f is 1 in the PBM and the UBM. Users who follow the DBN or the DCM scan from the top and
may leave after an item that they skip, so f is the probability that a user is still reading. After
a skip, f becomes f g (1 - α_i) / (1 - p), where g is the probability of going on; after a click, f
is 1 again.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.kernels import entry, kernel
from ...core.state import Floats, Ints
from ..agent import Seed
from ..common.ranking import rank_by_draw
from ..compiled_agent import CompiledAgent

MODELS = ("PBM", "UBM", "DBN", "DCM")
PBM, UBM, DBN, DCM = range(4)  # in the last two models, users scan from the top

PRIOR = 0.75
"""The number of clicks, and also the number of displays without a click, with which each item
starts.
"""
WEIGHT = 2.0
"""The weight of the priors of c and g, in expected clicks."""
MIN_PROBABILITY = 1e-4
"""The smallest probability of a click, and the smallest probability of no click."""
EXPLORATION = 0.3
"""This number times t^(-2/3) is the smallest share of a model before the shares are normalised, and
the probability that a session exchanges two positions of the list.
"""
GROWTH = 0.005
"""Parameters are fitted again when the number of sessions has grown by this fraction."""
FEW_CLICKS = 20.0
"""The number of clicks from which draws become narrower. An item with many more clicks than this is
drawn as if it had up to twice as much data, because Thompson sampling explores more than necessary.
Narrower draws for items with few clicks would prevent an unlucky item from recovering.
"""
DRAW_DEVIATION = 0.5
"""The standard deviation of the draws of log c, as a fraction of the posterior's standard
deviation.
"""
HAZARD = 1e-3
"""The prior odds that an item has changed, if it was not shown for most of the run."""
ALARM = 1e8
"""The odds of a change above which the agent forgets all clicks."""
FALLEN = 0.05
"""The odds of a change below which a new window of recent clicks begins."""


class MixTSState(NamedTuple):
    """The state of MixTS. In shapes, L is the number of items, K of positions, M of models, and X
    of contexts: first those of the PBM, then those of the UBM, the DBN and the DCM.
    """

    total: Annotated[Floats, "L"]  # S, the clicks on each item
    exposure: Annotated[Floats, "M L"]  # E, the sum of c f over the displays of each item
    clicks: Annotated[Floats, "X"]  # the clicks in each context
    displays: Annotated[Floats, "X L"]  # in each context; a display counts f
    displays_of_all: Annotated[Floats, "X"]  # the sum of `displays` over items
    examination: Annotated[Floats, "X", 1.0]  # c; always 1 in the first context of a model
    information: Annotated[Floats, "X", WEIGHT]  # the Fisher information about log c
    first: Ints  # the first context of each model, then X
    # The probability g of going on, in the DBN and the DCM. The power of g is ∂log f / ∂log g.
    go_on: Annotated[Floats, "M", 0.95]  # g
    power: Annotated[Floats, "M L"]  # the sum of the powers of g, each weighted by c f
    power_weight: Annotated[Floats, "M L"]  # the sum of these weights
    slope: Annotated[Floats, "M 2", (0.0, WEIGHT)]  # of log g: score since the fit, information
    # The evidence for each model.
    evidence: Annotated[Floats, "M"]
    share: Annotated[Floats, "M", 1.0 / len(MODELS)]
    leader: Annotated[Ints, "1"]
    t: Annotated[Ints, "2"]  # sessions so far; the session of the next fit
    # The window of recent clicks on each item.
    recent_clicks: Annotated[Floats, "L"]
    recent_exposure: Annotated[Floats, "L"]  # the sum of c f in the window, under the leader
    odds: Annotated[Floats, "L", 1.0]  # the odds that the item changed as the window began
    calm: Annotated[Floats, "L"]  # the last session after which the odds were below 1
    # Working memory.
    examined: Annotated[Floats, "M K"]  # c f of each shown item
    model: Annotated[Ints, "1"]  # the model drawn for this session
    drawn_attraction: Annotated[Floats, "L"]
    drawn_examination: Annotated[Floats, "X", 1.0]
    order: Annotated[Ints, "L", range]
    row: Annotated[Ints, "2K"]  # the list, then the items that may enter it
    last_click: Annotated[Floats, "K+1"]


@kernel
def clip_probability(p):
    return min(max(p, MIN_PROBABILITY), 1.0 - MIN_PROBABILITY)


@kernel
def context_index(state, h, k, j, i):
    """Return the context of position k under model h if the last click above was at position j, on
    item i. j is counted from 1, and 0 means that there was no click.
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
    changed = update_windows(state, ranking, clicks)
    for k in range(len(ranking)):
        state.total[ranking[k]] += clicks[k]
    if changed:
        forget(state)
    elif state.t[0] >= state.t[1]:
        for h in range(len(state.share)):
            fit(state, h)
        weigh_models(state)
        state.t[1] = state.t[0] + 1 + int(GROWTH * state.t[0])


@kernel
def learn(state, h, ranking, clicks):
    """Follow the user down the list under model h: add the log-likelihood of the clicks to the
    evidence for the model, and count clicks and examinations.
    """
    j, f, power, likelihood = 0, 1.0, 0.0, 1.0
    for k in range(len(ranking)):
        i = ranking[k]
        x = context_index(state, h, k, j, ranking[j - 1])
        attraction = (state.total[i] + PRIOR) / (exposure_of(state, h, i) + 2.0 * PRIOR)
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
def exposure_of(state, h, i):
    """Return the number of displays of an item under model h, each weighted by its examination
    probability; at least the item's number of clicks.
    """
    return max(state.total[i], state.exposure[h, i])


@kernel
def learn_go_on(state, h, i, click, p, examined, power):
    """Add what one display reveals about log g to the score and the information of log g. Only the
    deviation of the power of g from the item's mean power counts, because the mean cannot
    distinguish a change of g from a change of α_i.
    """
    more = power - state.power[h, i] / max(state.power_weight[h, i], MIN_PROBABILITY)
    state.slope[h, 0] += (click - p) * more
    state.slope[h, 1] += p * more * more
    state.power[h, i] += examined * power
    state.power_weight[h, i] += examined


# --------------------------------------------------------------------------------- users who change


@kernel
def update_windows(state, ranking, clicks):
    """Add the session to the windows of recent clicks. Return whether, under the leading model, the
    recent clicks on any shown item contradict all clicks on this item.
    """
    h, changed = state.leader[0], False
    for k in range(len(ranking)):
        i, examined = ranking[k], state.examined[h, k]
        if state.odds[i] < 1.0 and state.t[0] - state.calm[i] > 1.0 + state.recent_exposure[i]:
            close_window(state, i)  # the item was absent for a while
        recent = max(state.recent_clicks[i], state.recent_exposure[i])
        p = clip_probability(examined * (1.0 + state.total[i]) / (2.0 + exposure_of(state, h, i)))
        q = clip_probability(examined * (1.0 + state.recent_clicks[i]) / (2.0 + recent))
        state.odds[i] *= q / p if clicks[k] else (1.0 - q) / (1.0 - p)
        state.recent_clicks[i] += clicks[k]
        state.recent_exposure[i] += examined
        changed = changed or state.odds[i] > ALARM
        state.calm[i] = state.t[0] if state.odds[i] < 1.0 else state.calm[i]
        # Begin a new window if the old one shows no change, or if it holds more than half of all
        # displays.
        if state.odds[i] < FALLEN or 2.0 * state.recent_exposure[i] > 1.001 * state.exposure[h, i]:
            close_window(state, i)
    return changed


@kernel
def close_window(state, i):
    state.recent_clicks[i], state.recent_exposure[i], state.odds[i] = 0.0, 0.0, 1.0


@kernel
def forget(state):
    """Forget all clicks. What the agent knows about users (c, g and the shares of the models) is
    kept as a starting point until it is fitted again.
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
    """Take a Newton step for each c of model h and, in the DBN and the DCM, for g."""
    begin, end, n_items = state.first[h], state.first[h + 1], len(state.total)
    leads = h == state.leader[0]
    for i in range(n_items):
        if leads:  # e keeps its proportion to E
            state.recent_exposure[i] /= max(state.exposure[h, i], MIN_PROBABILITY)
        state.exposure[h, i] = 0.0
    for x in range(begin, end):
        if state.displays_of_all[x] > 0.0:
            add_exposure(state, h, x, state.examination[x])
    clicks, expected = WEIGHT, WEIGHT
    for x in range(begin + 1, end):
        if state.displays_of_all[x] > 0.0:
            clicks += state.clicks[x]
            for i in range(n_items):
                expected += state.displays[x, i] * likeliest_attraction(state, h, i)
    prior = min(clicks / expected, 1.0)
    for x in range(begin + 1, end):
        if state.displays_of_all[x] > 0.0:
            fit_examination(state, h, x, prior)
        else:
            state.examination[x], state.information[x] = prior, WEIGHT
    if h >= DBN:
        step = math.exp(min(max(state.slope[h, 0] / state.slope[h, 1], -0.2), 0.2))
        state.go_on[h] = min(max(state.go_on[h] * step, 0.05), 1.0 - MIN_PROBABILITY)
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
def likeliest_attraction(state, h, i):
    """Return the most likely attraction of an item under model h, given the clicks, the prior and
    the current c and g.
    """
    return (state.total[i] + PRIOR) / (state.exposure[h, i] + 2.0 * PRIOR)


@kernel
def fit_examination(state, h, x, prior):
    """Take a Newton step for log c on the profile likelihood, in which each attraction has its best
    value for the current c.

    Of the w clicks that are expected on an item in this context, only a part carries information
    about c. The rest, the fraction w / (all clicks on the item), carries information about the
    item's attraction.
    """
    old = state.examination[x]
    score, information = state.clicks[x] + WEIGHT * (prior - old), WEIGHT * old
    for i in range(len(state.total)):
        w = old * state.displays[x, i] * likeliest_attraction(state, h, i)
        score -= w
        information += w * max(1.0 - w / (state.total[i] + PRIOR), 0.0)
    state.information[x] = information
    new = old * math.exp(min(max(score / information, -0.5), 0.5))
    state.examination[x] = min(max(new, MIN_PROBABILITY), 1.0)
    add_exposure(state, h, x, state.examination[x] - old)


@kernel
def exploration_share(state):
    return EXPLORATION * (state.t[0] + 1) ** (-2.0 / 3.0)


@kernel
def weigh_models(state):
    """Set the share of each model from its evidence, and choose the leader."""
    leader = 0  # the first of models that differ only by rounding
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
def rank(state, rng, ranking):
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
def draw_parameters(state, h, noise, rng):
    """Draw the attractions and the c of model h from their posteriors. With ``noise`` 0, the draws
    equal the estimates, and items that were never shown get the attraction 0.

    The draw for an item with estimate p is sin²(asin √p + atan d), where d is normal with the
    standard deviation 1 / √(4 n) after n displays, independent of p.
    """
    for i in range(len(state.total)):
        n, s = exposure_of(state, h, i), state.total[i]
        odds = HAZARD * (1.0 - state.calm[i] / (state.t[0] + 1)) * max(state.odds[i], 1.0)
        if h == state.leader[0] and noise > 0.0 and rng.random() * (1.0 + odds) < odds:
            s = state.recent_clicks[i] if state.odds[i] > 1.0 else 0.0
            n = max(s, state.recent_exposure[i]) if state.odds[i] > 1.0 else 0.0
        p = (s + PRIOR) / (n + 2.0 * PRIOR)
        sharp = (n + 2.0 * PRIOR) * (1.0 + s / (s + FEW_CLICKS))
        d, sine, cosine = rng.standard_normal(), math.sqrt(p), math.sqrt(1.0 - p)
        d *= 0.5 * noise / math.sqrt(sharp)
        sine, cosine = sine + d * cosine, cosine - d * sine  # of the sum, times √(1 + d²)
        drawn = max(sine, 0.0) ** 2 / (1.0 + d * d)
        state.drawn_attraction[i] = drawn if cosine > 0.0 else 1.0
        if noise == 0.0 and n == 0.0:
            state.drawn_attraction[i] = 0.0
    for x in range(state.first[h] + 1, state.first[h + 1]):
        z = noise * DRAW_DEVIATION / math.sqrt(state.information[x]) * rng.standard_normal()
        state.drawn_examination[x] = min(state.examination[x] * math.exp(z), 1.0)


@kernel
def arrange(state, h, n, noise, rng):
    """Write a list with many expected clicks under model h into ``state.row``. The search starts
    from the n items with the largest drawn attractions, in decreasing order, and passes over the
    list up to twice, exchanging two items whenever this increases the expected clicks. In the DBN
    and the DCM, where users may leave after a click, the next n items may also enter the list.
    """
    draw_parameters(state, h, noise, rng)
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
    """Return the expected number of clicks on the list ``row`` under model h, with the drawn
    parameters.
    """
    total, examined = 0.0, 1.0
    state.last_click[0] = 1.0  # the probability that the last click was at each position
    for k in range(len(row)):
        i = row[k]
        attraction, clicked = clip_probability(state.drawn_attraction[i]), 0.0
        if h == PBM:
            clicked = state.drawn_examination[context_index(state, h, k, 0, i)] * attraction
        elif h >= DBN:
            clicked = examined * attraction
            after_click = state.drawn_examination[context_index(state, h, k, k + 1, i)]
            examined *= attraction * after_click + (1.0 - attraction) * state.go_on[h]
        else:
            for j in range(k + 1):
                c = state.drawn_examination[context_index(state, h, k, j, i)]
                p = state.last_click[j] * c * attraction
                state.last_click[j] -= p
                clicked += p
            state.last_click[k + 1] = clicked
        total += clicked
    return total


class MixTS(CompiledAgent):
    """MixTS: an agent that applies Thompson sampling to four click models, and learns the
    parameters of all four from the clicks.

    Idea:
        An agent that assumes one click model can settle on a wrong list if users follow another
        model, because the clicks on that list never contradict its assumption. MixTS keeps four
        models: PBM and UBM, in which users look at positions, and DBN and DCM, in which users scan
        from the top and may leave after a click. All four models learn their parameters and the
        attractions of items from the same clicks. In each session, MixTS draws one model. The
        probability of a model, its *share*, depends on how well the model predicted the clicks so
        far. MixTS then draws this model's parameters and attractions around their estimates, and
        shows the list with the most expected clicks. A few sessions exchange two positions of the
        list, because a list that never changes carries no information about positions. If recent
        clicks on an item contradict older ones, MixTS concludes that users have changed, and
        forgets all clicks.

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
        n_items: the number of items, L.
        n_positions: the number of positions in a list, K.
        seed: the seed of the agent's own random generator.

    Source: clickgym's own. The models are those of Craswell, Zoeter, Taylor, Ramsey, *An
    experimental comparison of click position-bias models*, WSDM 2008 (PBM); Dupret, Piwowarski, *A
    user browsing model to predict search engine click data from past observations*, SIGIR 2008
    (UBM); Chapelle, Zhang, *A dynamic Bayesian network click model for web search ranking*, WWW
    2009 (DBN); Guo, Liu, Wang, *Efficient multiple-click models in web search*, WSDM 2009 (DCM).

    The steps in detail:
        1. *Draws of α.* With n = max(E_hi, S_i), p = (S_i + 3/4) / (n + 3/2) and a standard normal
           z, the draw is α_i = sin²(asin √p + atan(z / (2 √m))), where m = (n + 3/2) (1 + S_i /
           (S_i + 20)). Its standard deviation is about √(p (1 - p) / m). These draws, and the draws
           of c, are intentionally narrower than the posterior, because Thompson sampling explores
           more than necessary.
        2. *c.* Clicks are modelled as Poisson counts, and each α_i has its most likely value for
           the current c, (S_i + 3/4) / (E_hi + 3/2). With w_i = c N_xi α_i expected clicks, log c
           has the score C_x - Σ w_i + 2 (c̄ - c), and the information 2 c + Σ w_i (1 - w_i / (S_i +
           3/4)): the rest of w_i carries information about α_i. The prior has the weight of two
           clicks at the mean of the model, c̄ = (2 + Σ C_x) / (2 + Σ N_xi α_i), at most 1, where
           the sums run over the contexts that have occurred, except the model's first context. A
           context that has not occurred has c = c̄ and information 2. The contexts are updated one
           after another, and E is updated after each of them. A step moves log c by at most 0.5,
           and c stays between 10⁻⁴ and 1. If the attractions did not follow c, then c would drift
           slowly while the same list is shown, because c and the attractions can explain each
           other's errors. A single step need not increase the likelihood.
        3. *g.* The score of log g is the sum of (click - p) (m - m̄_i) since the last step. The
           information is 2 and the sum of p (m - m̄_i)² over all displays. m = ∂ log f / ∂ log g is
           about the number of skips since the last click: 0 after a click, and after a skip
           min(1 + m / (1 - p), 8). m̄_i is the mean of m over the earlier displays of the item,
           weighted by c f, and 0 before the first display. The mean cannot distinguish g from α_i.
           After a change of users, the agent keeps m̄_i and the information. A step moves log g by
           at most 0.2, and g stays between 0.05 and 1 - 10⁻⁴.
        4. *Changes.* Each item has a window of recent clicks: their number s, and e, the sum of
           c f over their displays, under the model with the largest share. Before each click or
           skip is counted, the window estimates α_i as (s + 1) / (max(s, e) + 2), and all clicks
           estimate α_i as (S_i + 1) / (max(S_i, E_hi) + 2), where E_hi already includes the current
           display. Each estimate gives a probability of what the user did, with p = c f α_i. The
           odds of a change are multiplied by the window's probability and divided by the
           probability from all clicks. A new window begins, with odds 1, when the odds fall below
           0.05, or when e exceeds 0.5005 E_hi. When c is updated, e changes in proportion to E_hi.
           Let b_i be the session of the item's last display after which the odds were below 1
           (before a new window begins), and 0 before such a display. If a window's odds are below
           1, a new window also begins when the item returns after an absence, that is, when it is
           shown in a session t with t - b_i > 1 + e. In the draws of the model with the largest
           share, each item has the odds 0.001 (1 - b_i / t) max(odds, 1) that it has changed. If a
           draw decides that the item has changed, step 1 uses s and e in place of S_i and n, or 0
           for both if the odds are at most 1. Items that are not shown therefore return now and
           then, and more often if they were clicked. After a change of users, c, g, J and the
           shares are kept as starting points. The windows and t start again, and with t also b,
           exploration and the schedule of the fits.

    Limits: no bound on the regret of MixTS is known. MixTS detects only changes of attraction. A
    mixture of different kinds of users follows none of its models, and neither do users who trust
    the order of the list. MixTS does not plan for users whose state changes with their clicks.

    Memory: slightly more than (L + K² / 2 + 5 K / 2 + 2) L numbers, which is 9 MB with L = 1,000
    and K = 10.

    Example:
        >>> agent = MixTS(4, 2, seed=0)
        >>> agent.rank(None).shape
        (2,)
        >>> max(agent.beliefs(), key=agent.beliefs().get)
        'PBM'
    """

    paper = "ours, 2026"
    bibtex_keys = ["positionbias", "userbrowsing", "dynamicbayesian", "dependentclick"]
    state_type, rank_kernel, update_kernel = MixTSState, rank, update

    def __init__(self, n_items: int, n_positions: int, *, seed: Seed = None) -> None:
        super().__init__(n_items, n_positions, seed)

    def sizes(self) -> dict[str, int]:
        n, k = self.n_items, self.n_positions
        return {"L": n, "K": k, "M": len(MODELS), "X": self.contexts()[-1]}

    def contexts(self) -> NDArray[np.int64]:
        """Return the number of each model's first context, and then the number of all contexts."""
        n, k = self.n_items, self.n_positions
        return np.cumsum([0, k, k * (k + 1) // 2, n + 1, k + 1])

    def first_values(self) -> dict[str, Any]:
        return {"first": self.contexts()}

    def beliefs(self) -> dict[str, float]:
        """Return the shares of the models, in a mapping from their names; the shares sum to 1."""
        return dict(zip(MODELS, self.state.share.tolist(), strict=True))

    def best(self) -> NDArray[np.int64]:
        copies = self.state._replace(**{name: array.copy() for name, array in self.arrays.items()})
        leader = int(self.state.leader[0])
        entry(arrange)(copies, leader, self.n_positions, 0.0, np.random.default_rng(0))
        return copies.row[: self.n_positions]
