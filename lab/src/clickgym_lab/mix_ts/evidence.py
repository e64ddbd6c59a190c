"""The evidence for each hypothesis: how well it predicts clicks before it learns from them.

What predicts clicks given the clicks above them need not predict what a list earns: where users are
of several kinds, clicks of a session depend on one another, and the UBM catches that better than
the truth about the list. So each hypothesis has two evidences, of the session as a whole and of its
positions one by one (*marginal*). The table, which knows nothing of the clicks above, is ahead of
the best of the others by as much as its marginal evidence is ahead of the best marginal evidence.

What the first sessions say against a hypothesis is mostly that its parameters are not known yet:
they count less. Evidence also fades: while one list is shown, nothing new speaks for a hypothesis
that would show another, and without fading a wrong one may lead for 100,000 sessions.
"""

from __future__ import annotations

import math

import numpy as np

from clickgym.core.kernels import kernel

from .hypotheses import bounded, source_of
from .state import DBN, PBM, TABLE, UBM

WHOLE, MARGINAL = range(2)
YOUNG = 300.0
"""A session counts as t / (t + this) sessions."""
FADE = 0.0015
"""By this share evidence fades at each fit, when t has grown by 0.5 %: it is halved when t grows
tenfold.
"""
LEAST_SHARE = 0.1
"""Of a hypothesis at least, times t^(-2/3)."""
HANDICAP = 1.0
"""By so much the evidence of the table must be ahead: where users follow a hypothesis with fewer
parameters, it predicts their clicks as well, but its lists are drawn with more noise.
"""
SMALL = 1e-100
"""A likelihood below this becomes a logarithm, before it is too small for a number."""


@kernel
def collect(state, kind, h):  # type: ignore[no-untyped-def]
    """Make the likelihood of the latest sessions evidence."""
    t = state.t[0]
    state.evidence[kind, h] += t / (t + YOUNG) * math.log(state.likelihood[kind, h])
    state.likelihood[kind, h] = 1.0


@kernel
def observe(state, kind, h, p, click):  # type: ignore[no-untyped-def]
    """Multiply a likelihood by the probability of a click, or of none."""
    p = bounded(p)
    state.likelihood[kind, h] *= p if click else 1.0 - p
    if state.likelihood[kind, h] < SMALL:
        collect(state, kind, h)


@kernel
def predict(state, ranking, clicks, n):  # type: ignore[no-untyped-def]
    """Compare each hypothesis with the clicks on a list, of which n items were shown."""
    for k in range(n):
        for h in range(len(state.share)):
            p = state.examined[h, k] * state.attraction[h, k]
            if h < TABLE:
                observe(state, WHOLE, h, p, clicks[k])
            if h in (PBM, TABLE):
                observe(state, MARGINAL, h, p, clicks[k])
    state.last[0] = 1.0
    for k in range(n):
        a, clicked = state.attraction[UBM, k], 0.0
        for j in range(k + 1):
            p = state.last[j] * a * state.examination[UBM, k, j]
            state.last[j] -= p
            clicked += p
        state.last[k + 1] = clicked
        observe(state, MARGINAL, UBM, clicked, clicks[k])
    for h in range(DBN, TABLE):
        b = 1.0
        for k in range(n):
            a, c = state.attraction[h, k], state.continuation[source_of(state, h, ranking[k], k)]
            observe(state, MARGINAL, h, b * a, clicks[k])
            b *= a * c + (1.0 - a) * state.go_on[h - DBN]


@kernel
def weigh_hypotheses(state):  # type: ignore[no-untyped-def]
    """Set the shares, and let the evidence fade."""
    n, evidence = len(state.share), state.evidence
    for kind in range(2):
        for h in range(n):
            collect(state, kind, h)
    whole, marginal = np.argmax(evidence[WHOLE, :TABLE]), np.argmax(evidence[MARGINAL, :TABLE])
    ahead = evidence[MARGINAL, TABLE] - evidence[MARGINAL, marginal]
    evidence[WHOLE, TABLE] = evidence[WHOLE, whole] + ahead - HANDICAP
    state.leader[0] = np.argmax(evidence[WHOLE])
    for kind in range(2):
        most = evidence[kind, np.argmax(evidence[kind])]
        for h in range(n):
            evidence[kind, h] = (1.0 - FADE) * (evidence[kind, h] - most)
    least = LEAST_SHARE * state.t[0] ** (-2.0 / 3.0)
    for h in range(n):
        state.share[h] = max(math.exp(evidence[WHOLE, h]), least)
    total = state.share.sum()
    for h in range(n):
        state.share[h] /= total
