"""Study of confidence that shrinks with the variance: UCB-V beside UCB1, KL-UCB and Thompson sampling (Vial et al. 2022)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from clickgym.envs import Instance, load_instance

from .plots import Figure, regret_figure
from .study import CM, PBM, Evidence, Finding, PaperTable, estimate, less_regret, linear, short

AGENTS = ("CascadeUCBV", "CascadeUCB1", "CascadeKLUCB", "TSCascade", "CascadeTS")
INDICES = ("CascadeUCBV", "CascadeUCB1", "CascadeKLUCB")
RATES = {"usual": 1.0, "low": 0.1}
"""What attractions are multiplied by."""
NAMES = {CM: "cm", PBM: "pbm"}


def attracting(queries: Sequence[str], rate: str) -> Iterator[Instance]:
    """Instances of the queries with attractions at one of the rates."""
    for query in queries:
        instance = load_instance(query)
        models: Any = {kind: instance.models[kind] for kind in map(short, (CM, PBM))}
        models = {kind: model.with_items(attraction=RATES[rate] * model.attraction) for kind, model in models.items()}
        yield Instance(f"{instance.name}-{rate}", models, instance.n_positions, origin=instance.origin)


def part(env: str, rate: str) -> str:
    """The part that plays an environment at a rate."""
    return f"variance-{NAMES[env]}-{rate}"


def less(evidence: Evidence, env: str, rate: str, better: str, worse: str) -> Finding:
    """Whether one agent has less regret at the end than another."""
    return less_regret(evidence[part(env, rate)], env, better, worse)


def stays_linear(evidence: Evidence, env: str, rate: str, agent: str) -> Finding:
    """Whether an agent does not learn."""
    return linear(evidence[part(env, rate)], env, agent)


def table(evidence: Evidence) -> PaperTable:
    """Regret at the end."""
    cases = [(env, rate) for env in (CM, PBM) for rate in RATES]
    rows = [["agent", *(f"{short(env)}, {rate} rates" for env, rate in cases)]]
    for agent in AGENTS:
        rows.append([agent, *(str(estimate(evidence[part(*case)].end_units(case[0], agent))) for case in cases)])
    return "Regret at the end, mean over queries with its 95 % interval", rows


def draw(evidence: Evidence) -> Figure:
    """Regret in both click models, at usual and at low rates."""
    cases = [(f"{short(env)}, {rate} rates", part(env, rate), env) for env in (CM, PBM) for rate in RATES]
    return regret_figure(evidence, cases, 2, "Cumulative regret with confidence by variance and without")
