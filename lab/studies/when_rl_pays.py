"""Study of when reinforcement learning pays: bandits, a planner and generic RL before users with a memory."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from .plots import band, finish, grid
from .study import (
    LAST,
    LEARNS_RULE,
    LINEAR,
    LINEAR_RULE,
    SLACK,
    Curves,
    Evidence,
    Finding,
    PaperTable,
    Part,
    Statement,
    Study,
    Values,
    estimate,
    several,
    versus,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["STUDIES"]

ENV = "CascadeMDPRank-v0"
FAMILIES = ("independent", "clickbait", "habit")
PER_STATE, PLANNER = "PerState", "CascadeVI"
BANDITS = (LAST, PER_STATE)
SLOW = ("DQN", "MaskablePPO", "RecurrentPPO")
LEARNERS = ("PPO", *SLOW)
EVERYONE = (*BANDITS, PLANNER, *LEARNERS)
KNOWN, DEEP, DEEPER = "when-rl-pays-bandits", "when-rl-pays-ppo", "when-rl-pays-others"
PLACES = (10**3, 10**4, 10**5, 10**6)


def _families(queries: Sequence[str]) -> list[str]:
    return list(FAMILIES)


def _curves(evidence: Evidence, agent: str) -> Curves:
    return evidence[KNOWN if agent in (*BANDITS, PLANNER) else DEEP if agent == "PPO" else DEEPER]


def _regret(evidence: Evidence, agent: str, family: str) -> tuple[Curves, Values]:
    curves = _curves(evidence, agent)
    return curves, curves.units(ENV, agent, instance=family)


def at(evidence: Evidence, agent: str, family: str, step: int) -> Values | None:
    """``(runs,)`` regret after so many sessions; None if the agent did not play so many."""
    curves, values = _regret(evidence, agent, family)
    return None if step > curves.horizon else curves.at(values, step)


def _kept(evidence: Evidence, agent: str, family: str) -> tuple[Values, Values]:
    curves, values = _regret(evidence, agent, family)
    return curves.rate(values, 0.2, 0.4), curves.rate(values, 0.8, 1.0)


def _linear(agents: Sequence[str], family: str, evidence: Evidence) -> Finding:
    findings = {}
    for agent in agents:
        early, late = _kept(evidence, agent, family)
        words = f"{estimate(late)} per session, {late.mean() / early.mean():.2f} of before"
        findings[agent] = Finding(words, estimate(late - LINEAR * early).above(SLACK))
    return several(findings)


def _sublinear(agent: str, families: Sequence[str], evidence: Evidence) -> Finding:
    findings = {}
    for family in families:
        early, late = _kept(evidence, agent, family)
        words = f"{estimate(late)} per session, {late.mean() / early.mean():.2f} of before"
        findings[family] = Finding(words, estimate(late - LINEAR * early).below(-SLACK))
    return several(findings)


def _less(better: str, worse: Sequence[str], families: Sequence[str], evidence: Evidence) -> Finding:
    """Less regret after as many sessions as both played, by as many runs as both have."""
    findings = {}
    for family in families:
        for other in worse:
            step = min(_curves(evidence, name).horizon for name in (better, other))
            low, high = (at(evidence, name, family, step) for name in (better, other))
            assert low is not None
            assert high is not None
            runs = min(len(low), len(high))
            where = f" after {step:,}" if step < 10**6 else ""
            findings[f"{family} {other}"] = versus(low[:runs], high[:runs], where)
    return several(findings)


def _table(evidence: Evidence) -> PaperTable:
    rows = [["users", "agent", *(f"after {step:,}" for step in PLACES), "first of all after"]]
    for family in FAMILIES:
        best = {step: _best(evidence, family, step) for step in PLACES}
        for agent in EVERYONE:
            values = [at(evidence, agent, family, step) for step in PLACES]
            cells = ["" if value is None else str(estimate(value)) for value in values]
            rows.append([family, agent, *cells, ", ".join(f"{step:,}" for step in PLACES if best[step] == agent)])
    return "Regret so far, mean over the runs", rows


def _best(evidence: Evidence, family: str, step: int) -> str:
    """The agent with the least regret of those that played so many sessions; empty if none did."""
    values = {agent: at(evidence, agent, family, step) for agent in EVERYONE}
    means = {agent: value.mean() for agent, value in values.items() if value is not None}
    return min(means, key=lambda agent: means[agent], default="")


def _study() -> Study:
    def part(name: str, agents: Sequence[str], horizon: int) -> Part:
        return Part(
            name, (ENV,), tuple(agents), horizon, 5, 1, _families, least_horizon=20_000, least_runs=2, windows=20, each=True
        )

    smaller = "less regret at the end, or where the shorter of two runs ends"
    statements = (
        Statement(
            "Where clicks spoil users (clickbait) bandits never learn, not even with one for each state",
            f"{LINEAR_RULE}, of both",
            partial(_linear, BANDITS, "clickbait"),
            late=True,
        ),
        Statement(
            "The planner's regret is sublinear in all three families",
            LEARNS_RULE,
            partial(_sublinear, PLANNER, FAMILIES),
            late=True,
        ),
        *(
            Statement(
                f"Where clicks spoil users {name} beats every myopic agent",
                smaller,
                partial(_less, name, BANDITS, ("clickbait",)),
            )
            for name in LEARNERS
        ),
        Statement(
            "Nothing generic comes near the planner where clicks spoil users",
            f"the planner has {smaller}",
            partial(_less, PLANNER, LEARNERS, ("clickbait",)),
        ),
        Statement(
            "Where the next state does not depend on clicks (independent) a bandit for each state beats generic RL",
            smaller,
            partial(_less, PER_STATE, LEARNERS, ("independent",)),
        ),
        Statement(
            "There it beats the planner as well, which has more to learn",
            smaller,
            partial(_less, PER_STATE, (PLANNER,), ("independent",)),
        ),
        Statement(
            "Where satisfied users click more (habit) PPO beats every myopic agent within a million sessions",
            smaller,
            partial(_less, "PPO", BANDITS, ("habit",)),
        ),
    )
    return Study(
        "When reinforcement learning pays: users with a memory",
        "users of Du et al. 2024",
        (
            part(KNOWN, (*BANDITS, PLANNER), 10**6),
            part(DEEP, ("PPO",), 10**6),
            part(DEEPER, SLOW, 10**5),
        ),
        statements,
        "Statements of ours, predicted after one run of 10⁵ sessions of each agent. Regret is the exact loss of each list by "
        "Q*. The planner is told how long users stay in the mean, and so is the discount of generic RL; bandits need neither. "
        "DQN, MaskablePPO and RecurrentPPO play a tenth of the sessions. --instances changes nothing here.",
        _draw,
        _table,
    )


def _draw(evidence: Evidence) -> Figure:
    figure, panels = grid(3)
    for axes, family in zip(panels, FAMILIES, strict=True):
        for agent in EVERYONE:
            curves, values = _regret(evidence, agent, family)
            late = curves.steps >= 100
            band(axes, curves.steps[late], values[:, late], agent)
        axes.set(xscale="log", yscale="log", title=family, xlabel="session")
    panels[0].set_ylabel("cumulative regret")
    return finish(figure, panels[:1], evidence, "Bandits, a planner and generic RL before users with a memory")


STUDIES: dict[str, Study] = {"when-rl-pays": _study()}
