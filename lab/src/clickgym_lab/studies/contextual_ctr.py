"""What the studies of He et al. 2020 (UBM-LinUCB) share: CTR against the length of the list.

The CTRs are means over all sessions so far: CTR_sum of the clicks that were drawn, CTR_set of the
probability of at least one, which is the optimum's less the regret. The optimum is the same for all
agents and taken from the sessions of all of them, so that chance enters a comparison of CTR_set
through nothing but the lists shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np

from clickgym.envs import ContextualModel, load_instance

from .claims import Claim, Curves, Finding, Values, all_of, estimate, percent, several
from .study import Sweep, Table

POSITIONS = (3, 4, 5, 6)
SHORT = POSITIONS[0]
LONG = POSITIONS[-1]
BASELINE = "C2UCB"
OURS = "UBMLinUCB"
WITH_MODEL = ("PBMLinUCB", "CMLinUCB", "DCMLinUCB", OURS)
CONTEXT_FREE = "PBM-UCB"
AGENTS = (BASELINE, *WITH_MODEL, CONTEXT_FREE)
ALPHAS = (0.0, 0.1, 0.3, 1.0)
SPECS = {agent: (agent, *(f"{agent}:alpha={alpha:g}" for alpha in ALPHAS)) for agent in AGENTS}
SPECS[CONTEXT_FREE] = (CONTEXT_FREE,)  # it has no α
CATALOGUE = f"{CONTEXT_FREE}=clickgym_lab.studies.catalogue:CataloguePBMUCB"
THEOREM = "α of the theorem"
BEST = "best α"
CTR_SUM = "CTR_sum"
CTR_SET = "CTR_set"
KINDS = (CTR_SUM, CTR_SET)
LEADS = (
    "K = 3: +11.4 / +14.2 %, K = 4: +21.4 / +22.2 %, K = 5: +16.3 / +18.4 %, K = 6: +20.2 / +25.6 %"
)


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


ENDS = (0.2, 0.8, 1.0)


def sweep(name: str, horizon: int, runs: int, n_items: int, n_features: int) -> Sweep:
    """The runs of a study, never scaled: all agents with each α and each length of the list."""
    agents = [spec for specs in SPECS.values() for spec in specs if spec != CONTEXT_FREE]
    instances: Any = partial(contextual, n_items=n_items, n_features=n_features)
    envs = [ubm(k) for k in POSITIONS]
    kept = {"instances": instances, "queries": 10, "ends": ENDS, "scaled": False}
    return Sweep(name, envs, [*agents, CATALOGUE], horizon, runs, **kept)


@cache
def chosen(curves: Curves, env: str, agent: str, reading: str) -> str:
    """The agent with the α of a reading: that of the theorem, or the best in half of the runs."""
    if reading == THEOREM:
        return agent
    half = curves.n_runs // 2
    return min(SPECS[agent], key=lambda spec: curves.by_run(env, spec)[:half, -1].mean())


@cache
def optimum(curves: Curves, env: str) -> float:
    """The reward per session of the best list, from reward and regret of all agents."""
    rewards = [
        curves.by_instance(env, name, "reward") + curves.by_instance(env, name)
        for name in curves.agents
    ]
    return float(np.mean(rewards) / curves.horizon)


@cache
def ctr(curves: Curves, env: str, agent: str, reading: str, kind: str) -> Values:
    """``(runs, steps)`` the CTR so far; of the best α in the runs that it was not chosen by."""
    spec = chosen(curves, env, agent, reading)
    if kind == CTR_SUM:
        values = curves.by_run(env, spec, "clicks") / curves.steps
    else:
        values = optimum(curves, env) - curves.by_run(env, spec) / curves.steps
    return values if reading == THEOREM else values[len(values) // 2 :]


def ctr_at_end(curves: Curves, k: int, agent: str, reading: str, kind: str) -> Values:
    """``(runs,)`` the CTR of all sessions, with lists of k items."""
    return ctr(curves, ubm(k), agent, reading, kind)[:, -1]


def lift(curves: Curves, k: int, agent: str, reading: str, kind: str) -> Values:
    """``(runs,)`` by which share the CTR at the end is above that of C2UCB."""
    ours, theirs = (ctr_at_end(curves, k, name, reading, kind) for name in (agent, BASELINE))
    return ours / theirs - 1


def both_studies(curves: Curves, reading: str, leads: str) -> Iterator[Claim]:
    """What the paper says of both."""
    yield Claim(
        f"UBM-LinUCB has the highest CTR at every K ({reading})",
        "higher CTR_sum and CTR_set than each other agent, for each K",
        ahead(curves, POSITIONS, reading, [OURS], [a for a in AGENTS if a != OURS]),
        paper="highest",
        late=True,
    )
    yield Claim(
        f"Its lead over C2UCB grows with K ({reading})",
        "the share by which each CTR is higher is larger with K = 6 than with K = 3",
        several({kind: grows(curves, reading, kind) for kind in KINDS}),
        paper=leads,
        late=True,
    )
    yield Claim(
        f"With K = 6 C2UCB has fallen behind all who have a click model ({reading})",
        "lower CTR_sum and CTR_set than each other agent",
        ahead(curves, [LONG], reading, WITH_MODEL, [BASELINE]),
        late=True,
    )


def ahead(
    curves: Curves, ks: Sequence[int], reading: str, better: Sequence[str], worse: Sequence[str]
) -> Finding:
    """Whether all of some agents have a higher CTR than all of some others, by both measures; the
    closest pair of each length and measure is shown.
    """
    findings = {}
    for k, kind in product(ks, KINDS):
        agents = (*better, *worse)
        ends = {agent: ctr_at_end(curves, k, agent, reading, kind) for agent in agents}
        low = min(better, key=lambda agent: ends[agent].mean())
        high = max(worse, key=lambda agent: ends[agent].mean())
        gap = percent(estimate(ends[low] / ends[high] - 1))
        words = f"{low} {ends[low].mean():.4f}, {high} {ends[high].mean():.4f}, {gap}"
        pairs = [estimate(ends[a] - ends[b]).above(0.0) for a in better for b in worse]
        findings[f"K = {k} {kind}"] = all_of(words, pairs)
    return several(findings)


def grows(curves: Curves, reading: str, kind: str) -> Finding:
    """Whether the lead over C2UCB is larger with long lists."""
    lifts = [lift(curves, k, OURS, reading, kind) for k in POSITIONS]
    words = ", ".join(percent(estimate(values)) for values in lifts)
    return estimate(lifts[-1] - lifts[0]).above(0.0, words)


def ctr_table(curves: Curves) -> Table:
    """Every CTR at the end, with its lift over C2UCB."""
    rows = [["CTR", "agent", "α", *(f"K = {k}" for k in POSITIONS)]]
    for kind, reading, agent in product(KINDS, (THEOREM, BEST), AGENTS):
        cells = []
        for k in POSITIONS:
            gain = 100 * lift(curves, k, agent, reading, kind).mean()
            cells.append(f"{ctr_at_end(curves, k, agent, reading, kind).mean():.3f} {gain:+.1f}%")
        rows.append([kind, agent, alphas(curves, agent, reading), *cells])
    return "CTR and lift over C2UCB", rows


def alphas(curves: Curves, agent: str, reading: str) -> str:
    """The α of each K, or of all if it is the same."""
    if agent == CONTEXT_FREE:
        return "–"
    specs = [chosen(curves, ubm(k), agent, reading) for k in POSITIONS]
    alphas = [spec.rpartition("alpha=")[2] if "=" in spec else "α_t" for spec in specs]
    return alphas[0] if len(set(alphas)) == 1 else ", ".join(alphas)
