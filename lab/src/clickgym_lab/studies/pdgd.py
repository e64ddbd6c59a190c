"""Studies of learned rankers before users who click by the grades of documents: PDGD beside linear bandits (Oosterhuis and de
Rijke 2018), and PairRank, DBGD, MGD and COLTR beside both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clickgym.envs import ContextualModel, GradedModel, Instance, load_instance

from .plots import Figure, band, bands, finish, grid
from .study import Curves, Evidence, Finding, PaperTable, Values, estimate, less_regret, versus

AGENTS = ("PDGD", "PDGD:learning_rate=3", "LinearTS", "UBMLinUCB", "C2UCB")
RANKERS = (
    "PDGD:learning_rate=3", "PairRank:loss=sum,growth=0.01", "PairRank:growth=0.01", "MGD", "MGD:leaving=probabilistic", "DBGD",
    "COLTR", "LinearTS", "UBMLinUCB",
)  # fmt: skip
USERS = ("perfect", "navigational", "informational")
IN_CLICKS, IN_SATISFACTION = (f"ContextualDBNRank-v0:reward={reward}" for reward in ("clicks", "satisfaction"))
ONLINE, OFFLINE = "ndcg_by_grade", "held_out_ndcg"


def _of(evidence: Evidence, users: str) -> Curves:
    """What was measured before users of one behaviour."""
    return next(curves for part, curves in evidence.items() if part.endswith(f"-{users}"))


def documents(queries: Sequence[str]) -> list[str]:
    """Judged documents as they are; for each other query some drawn by seed.

    Raises:
        ValueError: an instance has documents, but no users by grades.
    """
    names = []
    for seed, query in enumerate(queries):
        instance = load_instance(query)
        judged = _judged(instance) is not None
        if not judged and any(isinstance(model, ContextualModel) for model in instance.models.values()):
            raise ValueError(f"{query} has no users by grades; make it by clickgym features FILE --users ... --held-out ...")
        names.append(query if judged else f"judged:seed={seed}")
    return names


def _judged(instance: Instance) -> GradedModel | None:
    return next((model for model in instance.models.values() if isinstance(model, GradedModel)), None)


def before(names: Sequence[str], users: str) -> Iterator[Instance]:
    """The same documents before users of one behaviour."""
    for name in names:
        instance = load_instance(name)
        model = _judged(instance)
        assert model is not None
        own = f"{instance.name.replace(':', '-').replace('=', '-')}-{users}"
        yield Instance(own, {model.kind: model.before(users)}, instance.n_positions, instance.description, instance.origin)


# -------------------------------------------------------------------------------------------------------------- measures


def offline(curves: Curves, agent: str) -> Values:
    """``(n,)`` NDCG of the best lists on the queries held out, at the end: of each instance if there are several, or run."""
    return curves.end_units(IN_CLICKS, agent, OFFLINE)


def online(curves: Curves, agent: str) -> Values:
    """``(n,)`` the mean NDCG of the lists shown, likewise."""
    return curves.end_units(IN_CLICKS, agent, ONLINE) / curves.horizon


def learns(evidence: Evidence, users: str) -> Finding:
    """Whether PDGD's offline NDCG rises."""
    values = _of(evidence, users).units(IN_CLICKS, "PDGD", OFFLINE)
    gain = estimate(values[:, -1] - values[:, 0])
    return Finding(f"{values[:, 0].mean():.3f}, then {values[:, -1].mean():.3f}", gain.above(0.05))


def robust(evidence: Evidence) -> Finding:
    """Whether PDGD's offline NDCG is about the same before informational users as before perfect ones."""
    best = offline(_of(evidence, "perfect"), "PDGD")
    gap = estimate(best - offline(_of(evidence, "informational"), "PDGD"))
    return gap.finding(f" less than {best.mean():.3f}", high=0.05)


def higher_offline(evidence: Evidence, users: str, better: str, worse: str) -> Finding:
    """Whether one agent has a higher offline NDCG than another."""
    curves = _of(evidence, users)
    return versus(offline(curves, worse), offline(curves, better))


def higher_online(evidence: Evidence, users: str, better: str, worse: str) -> Finding:
    """Whether one agent has a higher online NDCG than another."""
    curves = _of(evidence, users)
    return versus(online(curves, worse), online(curves, better))


def as_good(evidence: Evidence, agent: str) -> Finding:
    """Whether an agent's offline NDCG is hardly lower than PDGD's before perfect users."""
    ours, theirs = (offline(_of(evidence, "perfect"), name) for name in (agent, "PDGD"))
    gap = estimate(theirs - ours)
    return Finding(f"{ours.mean():.3f}, a gap of {gap}", gap.below(0.02))


def less_before(evidence: Evidence, users: str, env: str, better: str, worse: str) -> Finding:
    """Whether one agent has less regret at the end than another."""
    return less_regret(_of(evidence, users), env, better, worse)


# ------------------------------------------------------------------------------------------------------- table and figure


def table(evidence: Evidence) -> PaperTable:
    """All measures at the end."""
    rows = [["users", "agent", "offline NDCG", "online NDCG", "satisfied", "regret in clicks"]]
    for users in USERS:
        curves = _of(evidence, users)
        for agent in curves.agents:
            satisfied = curves.ends(IN_SATISFACTION, agent, "reward").mean(axis=0) / curves.horizon
            regret = curves.units(IN_CLICKS, agent)[:, -1]
            measured = (offline(curves, agent), online(curves, agent), satisfied, regret)
            rows.append([users, agent, *map(str, map(estimate, measured))])
    return "At the end: NDCG of the best lists on queries held out, of the lists shown, share of satisfied users", rows


def draw(evidence: Evidence) -> Figure:
    """NDCG offline and online before all users."""
    figure, panels = grid(3, 2, labels=["offline NDCG", "online NDCG so far"])
    for users, above, below in zip(USERS, panels[:3], panels[3:], strict=True):
        curves = _of(evidence, users)
        bands(above, curves, IN_CLICKS, curves.agents, column=OFFLINE)
        for agent in curves.agents:
            band(below, curves.steps, curves.units(IN_CLICKS, agent, ONLINE) / curves.steps, agent)
        above.set(xscale="log", title=users)
        below.set(xscale="log", xlabel="session")
    return finish(figure, panels[:1], evidence, "What is learned, and what users meet meanwhile")
