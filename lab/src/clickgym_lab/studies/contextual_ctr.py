"""What the studies of He et al. 2020 (UBM-LinUCB) share: CTR against the length of the list.

The CTRs are means over sessions: CTR_sum of the clicks that were drawn, CTR_set of the probability
of at least one, which is the optimum's less the regret. The optimum of an instance is the same for
all agents and taken from the sessions of all of them, so that chance enters a comparison of CTR_set
through nothing but the lists shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np

from clickgym.envs import ContextualModel, load_instance

from .claims import (
    Curves,
    Finding,
    NotTestedError,
    Values,
    all_of,
    estimate,
    percent,
    ratio,
    several,
)
from .study import LAST_ENDS, Sweep, Table

POSITIONS = (3, 4, 5, 6)
SHORT = POSITIONS[0]
LONG = POSITIONS[-1]
BASELINE = "C2UCB"
OURS = "UBMLinUCB"
RIVALS = ("CMLinUCB", "DCMLinUCB", OURS)
"""The agents of the paper that have features and a click model."""
CONTEXT_FREE = "PBM-UCB"
AGENTS = (BASELINE, "PBMLinUCB", *RIVALS, CONTEXT_FREE)
ALPHAS = (0.0, 0.1, 0.3, 1.0)
SPECS = {agent: (agent, *(f"{agent}:alpha={alpha:g}" for alpha in ALPHAS)) for agent in AGENTS}
SPECS[CONTEXT_FREE] = (CONTEXT_FREE,)  # it has no α
CATALOGUE = f"{CONTEXT_FREE}=clickgym_lab.studies.catalogue:CataloguePBMUCB"
THEOREM = "α of the theorem"
BEST = "best α"
CTR_SUM = "CTR_sum"
CTR_SET = "CTR_set"
KINDS = (CTR_SUM, CTR_SET)
ROOM = 0.05
"""A lead over an agent is not tested if the best lists have less than this more CTR_set."""


def ubm(n_positions: int) -> str:
    """The environment of one length of the list."""
    return f"ContextualUBMRank-v0:n_positions={n_positions}"


def contextual(queries: Sequence[str], n_items: int, n_features: int) -> list[str]:
    """Contextual instances as they are, and one with the examination of each other query."""
    sizes = f"n_items={n_items},n_features={n_features},n_positions={LONG}"
    names = []
    for seed, query in enumerate(queries):
        models = load_instance(query).models.values()
        has_features = any(isinstance(model, ContextualModel) for model in models)
        names.append(query if has_features else f"linear:query={query},{sizes},seed={seed}")
    return names


def sweep(name: str, horizon: int, n_items: int, n_features: int) -> Sweep:
    """The runs of a study, never scaled: all agents with each α and each length of the list."""
    agents = [spec for specs in SPECS.values() for spec in specs if spec != CONTEXT_FREE]
    instances: Any = partial(contextual, n_items=n_items, n_features=n_features)
    envs = [ubm(k) for k in POSITIONS]
    kept = {"instances": instances, "queries": 3, "ends": LAST_ENDS, "scaled": False}
    return Sweep(name, envs, [*agents, CATALOGUE], horizon, 10, **kept)


@cache
def chosen(curves: Curves, env: str, agent: str, reading: str = BEST) -> str:
    """The agent with the α of a reading: that of the theorem, or the best in half of the runs."""
    if reading == THEOREM:
        return agent
    half = curves.n_runs // 2
    return min(SPECS[agent], key=lambda spec: curves.by_instance(env, spec)[:, :half].mean())


@cache
def optimum(curves: Curves, env: str) -> Values:
    """``(instances, 1)`` the reward per session of the best list, from all agents' sessions."""
    rewards = [
        curves.by_instance(env, name, "reward") + curves.by_instance(env, name)
        for name in curves.agents
    ]
    return np.mean(rewards, axis=(0, 2))[:, None] / curves.horizon


@cache
def ctr(curves: Curves, k: int, agent: str, kind: str, reading: str = BEST) -> Values:
    """``(n,)`` the CTR of all sessions, of the instances, each averaged over its runs, or of the
    runs of a single one. The best α is measured in the runs that did not choose it.
    """
    env = ubm(k)
    spec, column = chosen(curves, env, agent, reading), "clicks" if kind == CTR_SUM else "regret"
    values = curves.by_instance(env, spec, column) / curves.horizon
    if kind == CTR_SET:
        values = optimum(curves, env) - values
    if reading == BEST:
        values = values[:, curves.n_runs // 2 :]
    return values.mean(axis=1) if len(values) > 1 else values[0]


def lift(curves: Curves, k: int, agent: str, kind: str, reading: str = BEST) -> Values:
    """``(n,)`` by which share the CTR is above that of C2UCB."""
    ours, theirs = (ctr(curves, k, name, kind, reading) for name in (agent, BASELINE))
    return ours / theirs - 1


def room(curves: Curves, k: int, agent: str) -> Values:
    """``(n,)`` by which share the CTR_set of the best list is above an agent's with its best α."""
    best = optimum(curves, ubm(k))[:, 0]
    return best / ctr(curves, k, agent, CTR_SET) - 1


def need_room(curves: Curves, ks: Sequence[int], agents: Sequence[str]) -> None:
    """Refuse to test a lead over agents that no agent could have.

    Raises:
        NotTestedError: over one of them the best lists have too small a lead.
    """
    for k, agent in product(ks, agents):
        most = room(curves, k, agent).mean()
        if most < ROOM:
            raise NotTestedError(
                f"no room for a lead: with K = {k} the best list has {100 * most:.2f} % more "
                f"CTR_set than {agent}"
            )


def ahead(
    curves: Curves, ks: Sequence[int], better: Sequence[str], worse: Sequence[str]
) -> Finding:
    """Whether all of some agents have higher CTRs than all of some others; the closest pair of each
    length and kind is shown.
    """
    need_room(curves, ks, worse)
    findings = {}
    for k, kind in product(ks, KINDS):
        ends = {agent: ctr(curves, k, agent, kind) for agent in (*better, *worse)}
        low = min(better, key=lambda agent: ends[agent].mean())
        high = max(worse, key=lambda agent: ends[agent].mean())
        words = f"{low} over {high} {percent(estimate(ends[low] / ends[high] - 1))}"
        pairs = [estimate(ends[a] - ends[b]).above(0.0) for a in better for b in worse]
        findings[f"K = {k} {kind}"] = all_of(words, pairs)
    return several(findings)


def lead_grows(curves: Curves) -> Finding:
    """Whether UBM-LinUCB's lead over C2UCB is larger with long lists, by both kinds."""
    need_room(curves, [SHORT, LONG], [BASELINE])
    findings = {}
    for kind in KINDS:
        lifts = [lift(curves, k, OURS, kind) for k in (SHORT, LONG)]
        words = ", then ".join(percent(estimate(values)) for values in lifts)
        findings[kind] = estimate(lifts[1] - lifts[0]).above(0.0, words)
    return several(findings)


def ctr_table(curves: Curves) -> Table:
    """Every CTR, with its lift over C2UCB."""
    rows = [["CTR", "agent", "α", *(f"K = {k}" for k in POSITIONS)]]
    for kind, reading, agent in product(KINDS, (BEST, THEOREM), AGENTS):
        cells = []
        for k in POSITIONS:
            ours, theirs = (ctr(curves, k, name, kind, reading) for name in (agent, BASELINE))
            gain = 100 * (ratio(ours, theirs).mean - 1)
            cells.append(f"{ours.mean():.3f} {gain:+.1f}%")
        rows.append([kind, agent, alphas(curves, agent, reading), *cells])
    return "CTR and lift over C2UCB", rows


def alphas(curves: Curves, agent: str, reading: str) -> str:
    """The α of each K, or of all if it is the same."""
    if agent == CONTEXT_FREE:
        return "–"
    specs = [chosen(curves, ubm(k), agent, reading) for k in POSITIONS]
    values = [spec.rpartition("alpha=")[2] if "=" in spec else "α_t" for spec in specs]
    return values[0] if len(set(values)) == 1 else ", ".join(values)


def headroom(curves: Curves) -> str:
    """A sentence about what the best list gains over C2UCB."""
    shares = ", ".join(f"{100 * room(curves, k, BASELINE).mean():.2f} %" for k in POSITIONS)
    return (
        f"The best lists have {shares} more CTR_set than C2UCB with its best α "
        f"(K = {', '.join(map(str, POSITIONS))}). No agent can have a larger lead over C2UCB here."
    )


def other_alpha(curves: Curves) -> str:
    """A sentence about the α of the theorem."""
    gains = [percent(estimate(lift(curves, LONG, OURS, kind, THEOREM))) for kind in KINDS]
    return (
        f"With the α of the theorem and K = {LONG}, the lead of UBM-LinUCB over C2UCB is "
        f"{gains[0]} (CTR_sum) and {gains[1]} (CTR_set)."
    )
