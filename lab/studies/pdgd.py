"""Study of PDGD beside linear bandits, before users who click by the grades of documents (Oosterhuis and de Rijke 2018)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ...envs import ContextualModel, GradedModel, Instance, load_instance
from .plots import band, finish, grid
from .study import (
    Curves,
    Evidence,
    Finding,
    PaperTable,
    Part,
    Statement,
    Study,
    Values,
    estimate,
    saved,
    several,
    versus,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["STUDIES"]

FASTER = "PDGD:learning_rate=3"
BANDITS = ("LinearTS", "UBMLinUCB", "C2UCB")
NAIVE = ("LinearTS", "C2UCB")
"""Those that take clicks for attraction; UBM-LinUCB is told how lists are examined."""
AGENTS = ("PDGD", FASTER, *BANDITS)
USERS = ("perfect", "navigational", "informational")
NOISY = USERS[1:]
IN_CLICKS, IN_SATISFACTION = (f"ContextualDBNRank-v0:reward={reward}" for reward in ("clicks", "satisfaction"))
ONLINE, OFFLINE = "ndcg_by_grade", "held_out_ndcg"


def _part(users: str) -> str:
    return f"pdgd-{users}"


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


def before(users: str, names: Sequence[str], folder: Path) -> list[str]:
    """The same documents before users of one behaviour."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for name in names:
        instance = load_instance(name)
        model = _judged(instance)
        assert model is not None
        own = f"{instance.name.replace(':', '-').replace('=', '-')}-{users}"
        graded = Instance(own, {model.kind: model.before(users)}, instance.n_positions, instance.description, instance.origin)
        files.append(saved(graded, folder))
    return files


# -------------------------------------------------------------------------------------------------------------- measures


def offline(curves: Curves, agent: str) -> Values:
    """``(runs,)`` NDCG of the best lists on the queries held out, at the end."""
    return curves.units(IN_CLICKS, agent, OFFLINE)[:, -1]


def online(curves: Curves, agent: str) -> Values:
    """``(runs,)`` the mean NDCG of the lists shown."""
    return curves.units(IN_CLICKS, agent, ONLINE)[:, -1] / curves.horizon


def _learns(evidence: Evidence) -> Finding:
    findings = {}
    for users in USERS:
        values = evidence[_part(users)].units(IN_CLICKS, "PDGD", OFFLINE)
        gain = estimate(values[:, -1] - values[:, 0])
        findings[users] = Finding(f"{values[:, 0].mean():.3f}, then {values[:, -1].mean():.3f}", gain.above(0.05))
    return several(findings)


def _robust(evidence: Evidence) -> Finding:
    best = offline(evidence[_part("perfect")], "PDGD")
    gap = estimate(best - offline(evidence[_part("informational")], "PDGD"))
    return Finding(f"{gap} less than {best.mean():.3f}", gap.below(0.05))


def _higher(measure: str, others: Sequence[str], users: Sequence[str], evidence: Evidence) -> Finding:
    """Whether PDGD has more of it than each of some bandits."""
    of = {ONLINE: online, OFFLINE: offline}[measure]
    findings = {}
    for kind in users:
        curves = evidence[_part(kind)]
        for agent in others:
            findings[f"{kind} {agent}"] = versus(of(curves, agent), of(curves, "PDGD"))
    return several(findings)


def _faster(evidence: Evidence) -> Finding:
    measured = [evidence[_part(users)] for users in USERS]
    return several({users: versus(online(of, "PDGD"), online(of, FASTER)) for users, of in zip(USERS, measured, strict=True)})


def _as_good(evidence: Evidence) -> Finding:
    curves = evidence[_part("perfect")]
    findings = {}
    for agent in BANDITS:
        gap = estimate(offline(curves, "PDGD") - offline(curves, agent))
        findings[agent] = Finding(f"{offline(curves, agent).mean():.3f}, a gap of {gap}", gap.below(0.02))
    return several(findings)


def _less(env: str, better: str, worse: Sequence[str], users: Sequence[str], evidence: Evidence) -> Finding:
    findings = {}
    for kind in users:
        curves = evidence[_part(kind)]
        for agent in worse:
            findings[f"{kind} {agent}"] = versus(curves.units(env, better)[:, -1], curves.units(env, agent)[:, -1])
    return several(findings)


def _table(evidence: Evidence) -> PaperTable:
    rows = [["users", "agent", "offline NDCG", "online NDCG", "satisfied", "regret in clicks"]]
    for users in USERS:
        curves = evidence[_part(users)]
        for agent in AGENTS:
            satisfied = curves.ends(IN_SATISFACTION, agent, "reward").mean(axis=0) / curves.horizon
            regret = curves.units(IN_CLICKS, agent)[:, -1]
            measured = (offline(curves, agent), online(curves, agent), satisfied, regret)
            rows.append([users, agent, *map(str, map(estimate, measured))])
    return "At the end: NDCG of the best lists on queries held out, of the lists shown, share of satisfied users", rows


def _study() -> Study:
    parts = tuple(
        Part(_part(users), (IN_CLICKS, IN_SATISFACTION), AGENTS, 10**5, 6, 4, documents, partial(before, users),
             metrics=(ONLINE, OFFLINE), least_horizon=2_000, windows=10)
        for users in USERS
    )  # fmt: skip
    statements = (
        Statement(
            "PDGD learns before all three users",
            "its offline NDCG at the end is more than 0.05 above that after one session",
            _learns,
        ),
        Statement(
            "Noise costs PDGD little in the long run: informational users against perfect ones (ours)",
            "its offline NDCG at the end is less than 0.05 lower",
            _robust,
            late=True,
        ),
        Statement(
            "Before noisy users PDGD learns a better ranker than agents that take clicks for attraction (ours)",
            "its offline NDCG at the end is higher than that of each, before navigational and informational users",
            partial(_higher, OFFLINE, NAIVE, NOISY),
            late=True,
        ),
        Statement(
            "Before noisy users PDGD learns a better ranker than UBM-LinUCB, which is told how lists are examined (ours)",
            "its offline NDCG at the end is higher, before navigational and informational users",
            partial(_higher, OFFLINE, ("UBMLinUCB",), NOISY),
            late=True,
        ),
        Statement(
            "Before perfect users the bandits learn as good a ranker (ours)",
            "their offline NDCG at the end is less than 0.02 lower",
            _as_good,
            late=True,
        ),
        Statement(
            "Users meet better lists while PDGD learns, if they are noisy (ours)",
            "its online NDCG over the run is higher than that of each, before navigational and informational users",
            partial(_higher, ONLINE, BANDITS, NOISY),
        ),
        Statement(
            "The learning rate is that of the paper, whose features are from 0 to 1 each; here all of a document together have "
            "at most the length 1, and 30 times the rate learns faster (ours)",
            "with η = 3 online NDCG over the run is higher than with η = 0.1, before all users",
            _faster,
        ),
        Statement(
            "In clicks, which a good ranking does not maximise where users stop, UBM-LinUCB has less regret than PDGD before "
            "all users (ours)",
            "less cumulative regret at the end",
            partial(_less, IN_CLICKS, "UBMLinUCB", ("PDGD",), USERS),
        ),
        Statement(
            "To know how lists are examined pays where users stop: UBM-LinUCB against C2UCB (ours)",
            "less cumulative regret in clicks at the end, before navigational users",
            partial(_less, IN_CLICKS, "UBMLinUCB", ("C2UCB",), ("navigational",)),
        ),
        Statement(
            "More users are satisfied by PDGD's lists than by the bandits' before navigational users (ours)",
            "less cumulative regret in satisfaction at the end than each",
            partial(_less, IN_SATISFACTION, "PDGD", BANDITS, ("navigational",)),
        ),
    )
    return Study(
        "PDGD beside linear bandits, before users by grades",
        "Oosterhuis and de Rijke 2018",
        parts,
        statements,
        "Statements of ours. The paper's own, that PDGD converges near the optimum under noise and gives users a better "
        "experience than dueling bandits, are not judged: neither that optimum nor such bandits are here. The third and the "
        "fourth were one at first, whose rule compared with UBM-LinUCB too, of which its sentence did not speak; they were "
        "parted after the results had been seen. Without judged documents of one's own "
        "(clickgym features FILE --users ..., then --instances) they are drawn at random. Ten candidates in each session, five "
        "shown. Perfect users are never satisfied: they never stop.",
        _draw,
        _table,
        columns=("regret", ONLINE, OFFLINE),
    )


def _draw(evidence: Evidence) -> Figure:
    figure, panels = grid(3, 2)
    for users, above, below in zip(USERS, panels[:3], panels[3:], strict=True):
        curves = evidence[_part(users)]
        for agent in AGENTS:
            band(above, curves.steps, curves.units(IN_CLICKS, agent, OFFLINE), agent)
            band(below, curves.steps, curves.units(IN_CLICKS, agent, ONLINE) / curves.steps, agent)
        above.set(xscale="log", title=users)
        below.set(xscale="log", xlabel="session")
    panels[0].set_ylabel("offline NDCG")
    panels[3].set_ylabel("online NDCG so far")
    return finish(figure, panels[:1], evidence, "What is learned, and what users meet meanwhile")


STUDIES: dict[str, Study] = {"pdgd": _study()}
