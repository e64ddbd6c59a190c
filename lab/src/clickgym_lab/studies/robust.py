"""Study of bots: agents that are given the number of corrupted sessions (`corruption`), beside others."""

from __future__ import annotations

from .plots import Figure, finish, grid, style_of
from .study import CM, Curves, Evidence, Finding, PaperTable, Values, estimate, every, number, ratio, versus

HORIZON = 100_000
SHARES = {"0.1 %": 100, "1 %": 1_000, "5 %": 5_000}
"""How many of the sessions are false."""
INDICES = ("CascadeUCB1", "CascadeKLUCB", "CascadeUCBV")
OTHERS = ("CascadeTS", "GLRCascadeKLUCB", "TopRank", "BubbleRank", "UniRank", "PBMHB")
QUIET = "robust-none"


def told(agent: str, corruption: int) -> str:
    """The agent with a number of false sessions."""
    return f"{agent}:corruption={corruption}" if corruption else agent


def agents(share: str) -> list[str]:
    """The index agents told nothing, half, all and twice the truth; and the others."""
    false = SHARES[share]
    return [*(told(agent, number) for agent in INDICES for number in (0, false // 2, false, 2 * false)), *OTHERS]


def attacks(share: str) -> list[str]:
    """Bots that come first, and bots spread over the run; about as many of both."""
    return [f"{CM}:bots=farm:first={SHARES[share]}", f"{CM}:bots=farm:share={SHARES[share] / HORIZON:g}"]


AT_LITTLE, AT_SOME, AT_MUCH = map(agents, SHARES)
LITTLE, SOME, MUCH = map(attacks, SHARES)
ALL = list(dict.fromkeys([*AT_LITTLE, *AT_SOME, *AT_MUCH]))
MOMENTS = ("first", "spread")


def _part(evidence: Evidence, share: str) -> Curves:
    return evidence[f"robust-{SHARES[share]}"]


def regret(evidence: Evidence, share: str, moment: str, agent: str) -> Values:
    """``(n,)`` regret at the end under an attack."""
    return _part(evidence, share).end_units(attacks(share)[MOMENTS.index(moment)], agent)


def quiet(evidence: Evidence, agent: str) -> Values:
    """``(n,)`` regret at the end without bots."""
    return evidence[QUIET].end_units(CM, agent)


def _spec(share: str, agent: str, times: float) -> str:
    return told(agent, round(times * SHARES[share]))


def less(evidence: Evidence, share: str, moment: str, agent: str, better: float, worse: float) -> Finding:
    """Whether an agent has less regret with one number of false sessions, as a multiple of the truth, than with another."""
    low, high = (regret(evidence, share, moment, _spec(share, agent, times)) for times in (better, worse))
    return versus(low, high)


def insured(evidence: Evidence, share: str, moment: str, agent: str) -> Finding:
    """Whether an agent told the truth loses at most a tenth more under attack than without."""
    spec = _spec(share, agent, 1)
    growth = ratio(regret(evidence, share, moment, spec), quiet(evidence, spec))
    return growth.finding(" times that without bots", high=1.1)


def ruined(evidence: Evidence, share: str, moment: str, agent: str, times: float) -> Finding:
    """Whether regret under attack is many times that without."""
    growth = ratio(regret(evidence, share, moment, agent), quiet(evidence, agent))
    return growth.finding(" times that without bots", times)


def best(evidence: Evidence, share: str, moment: str, agent: str) -> Finding:
    """Whether an agent has less regret than every index agent, whatever that is told."""
    own = regret(evidence, share, moment, agent)
    rivals = {name: regret(evidence, share, moment, name) for name in agents(share) if name not in OTHERS}
    closest = min(rivals, key=lambda name: rivals[name].mean())
    verdict = every([estimate(values - own).above(0.0) for values in rivals.values()])
    return Finding(f"{number(own.mean())} against {number(rivals[closest].mean())} ({closest})", verdict)


def table(evidence: Evidence) -> PaperTable:
    """Regret at the end by attack; what an index agent is told in its multiple of the truth."""
    columns = [(share, moment) for share in SHARES for moment in MOMENTS]
    rows = [["agent", "corruption", *(f"{share} {moment}" for share, moment in columns)]]
    for agent in (*INDICES, *OTHERS):
        for times in (0, 0.5, 1, 2) if agent in INDICES else (0,):
            cells = [str(estimate(regret(evidence, *case, _spec(case[0], agent, times)))) for case in columns]
            words = {0: "0", 0.5: "half", 1: "the truth", 2: "twice"}[times] if agent in INDICES else ""
            rows.append([agent, words, *cells])
    return "Regret at the end, mean over queries with its 95 % interval", rows


def draw(evidence: Evidence) -> Figure:
    """Regret at the end against the share of false sessions, bots first and spread."""
    figure, panels = grid(2, labels=["regret at the end"])
    for axes, moment in zip(panels, MOMENTS, strict=True):
        for agent in (*INDICES, *OTHERS):
            for times in (0, 1) if agent in INDICES else (0,):
                label = f"{agent}, told" if times else agent
                ends = [quiet(evidence, agent).mean()] if not times else []
                ends += [regret(evidence, share, moment, _spec(share, agent, times)).mean() for share in SHARES]
                places = [0, 1, 2, 3][-len(ends) :]
                axes.plot(places, ends, marker="o", markersize=3, linewidth=1.5, label=label, **style_of(label, axes))
        axes.set(yscale="log", title=f"bots {moment}", xlabel="share of false sessions")
        axes.set_xticks(range(4), ["none", *SHARES])
    return finish(
        figure, panels[:1], evidence, "What false clicks cost, and what it costs to expect them", "means over the queries"
    )
