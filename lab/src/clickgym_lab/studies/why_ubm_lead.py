"""Study of why UBM-LinUCB does not lead C2UCB by 11 to 26 % as in He et al. 2020, table 1."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np

from clickgym.agents import C2UCB, UBMLinUCB
from clickgym.envs import Instance, LabelledModel, LinearModel, UserBrowsingModel, load_instance

from .he2020 import BASELINE, CTR_SET, CTR_SUM, LONG, OURS, PUBLISHED_LIFT, contextual, ubm
from .plots import COLOURS_OF_USERS, Figure, band, finish, grid
from .study import Curves, Estimate, Evidence, Finding, PaperTable, Values, estimate

ENV = ubm(LONG)
L, D = 12, 10
ALPHA = 0.1
BASELINES = {f"α = {alpha:g}": f"{BASELINE}:alpha={alpha:g}" for alpha in (0.1, 0.3, 1.0)} | {"α_t": BASELINE}
TUNED_OURS, TUNED_BASELINE = (f"{agent}:alpha={ALPHA:g}" for agent in (OURS, BASELINE))
KINDS = {CTR_SUM: "clicks", CTR_SET: "reward"}
ONCE = 0.92
"""The share of the users who click that click once in the paper's first log."""
SINGLE = "click once"
USERS = {  # the name of the part, and the cause that its users have
    "why-ubm-linear": "as in ubm-table1",
    "why-ubm-once": "92 % click once",
    "why-ubm-labels": "half not linear",
    "why-ubm-same": "same 12 candidates",
    "why-ubm-all": "all three",
}
LINEAR_USERS, CLICK_ONCE, *_, ALL = USERS


# ------------------------------------------------------------------------------------------------------------------- users


def best_attractions(model: Any, n_positions: int) -> Values:
    """``(sessions, K)`` the attractions of the best K candidates of sessions drawn at random, the same every time."""
    rng, pool, attractions = np.random.default_rng(0), model.pool, []
    for _ in range(400):
        user = rng.integers(len(pool.users))
        if model.candidates is None:
            of_all = pool.user_attraction[user] + pool.item_attraction
        else:
            of_all = pool.entry_attraction[pool.starts[user] : pool.starts[user + 1]]
        attractions.append(np.sort(rng.choice(of_all, model.n_items, replace=False))[::-1][:n_positions])
    return np.clip(attractions, 0.0, 1.0)


def single_share(attraction: Values, examination: Values) -> float:
    """The share of those who click that click once, on lists with ``(lists, K)`` attractions; weights as in the UBM."""
    none, once = np.ones(len(attraction)), np.zeros(len(attraction))
    for k in range(attraction.shape[1]):
        first = none * examination[k, 0] * attraction[:, k]
        below = [1 - examination[j, k + 1] * attraction[:, j] for j in range(k + 1, attraction.shape[1])]
        once += first * np.prod(below, axis=0)
        none -= first
    return float(once.sum() / (1 - none).sum())


def click_once(model: Any, share: float = ONCE, n_positions: int = LONG) -> UserBrowsingModel:
    """The base of a contextual model with the examination after a click scaled so that a share clicks once on the best list."""
    attraction, examination = best_attractions(model, n_positions), model.base.examination

    def scaled(factor: float) -> Values:
        return np.hstack([examination[:, :1], factor * examination[:, 1:]])

    low, high = 0.0, 1.0  # where even the users as they are click once often enough, they stay
    for _ in range(40):
        middle = (low + high) / 2
        if single_share(attraction, scaled(middle)) >= share:
            low = middle
        else:
            high = middle
    return UserBrowsingModel(model.base.attraction, scaled(low))


def same_candidates(queries: Sequence[str]) -> list[str]:
    """As `ubm-table1` has them, but with a pool of no more than the candidates of a session."""
    return [f"{source},n_pool={L}" for source in contextual(queries, L, D)]


def users(sources: Sequence[str], once: bool, labels: bool) -> Iterator[Instance]:
    """Instances of the family ``linear`` with changes.

    Args:
        sources: instances of the family.
        once: the users are those of `click_once`.
        labels: half of each attraction is that of another candidate, and no feature tells it.
    """
    for number, source in enumerate(sources):
        model: Any = load_instance(source).models["LinearModel of UBM"]
        rng = np.random.default_rng(number)
        if labels:
            size = min(60, len(model.items))
            candidates = [rng.choice(len(model.items), size, replace=False) for _ in model.users]
            of_users, of_items = model.pool.user_attraction, model.pool.item_attraction
            linear = [of_users[user] + of_items[numbers] for user, numbers in enumerate(candidates)]
            attraction = [np.clip((each + rng.permutation(each)) / 2, 0.0, 1.0) for each in linear]
            model = LabelledModel(model.base, candidates, attraction, model.items, model.users)
        if once:
            base = click_once(model)
            if isinstance(model, LabelledModel):
                model = LabelledModel(base, model.candidates, model.attractions, model.items, model.users)
            else:
                model = LinearModel(base, model.theta, model.items, model.users)
        name = f"linear{number}{'-once' * once}{'-labels' * labels}"
        yield Instance(name, {model.kind: model}, LONG, origin=load_instance(source).origin)


def clicking_once(env: Any) -> float:
    """The share, in per cent, of the users who click that click once on the best list."""
    model = env.unwrapped.model
    return 100 * single_share(best_attractions(model, LONG), model.base.examination)


# ---------------------------------------------------------------------------------------------------------------- measures


def ctr(curves: Curves, agent: str, kind: str, step: int | None = None) -> Values:
    """``(runs,)`` clicks per session, or the share of sessions with a click, up to a step."""
    step = curves.horizon if step is None else min(step, curves.horizon)
    return curves.at(curves.units(ENV, agent, KINDS[kind]), step) / step


def lead(curves: Curves, kind: str, step: int | None = None, ours: str = TUNED_OURS, theirs: str = TUNED_BASELINE) -> Values:
    """``(runs,)`` by how many per cent one CTR is above the other."""
    return 100 * (ctr(curves, ours, kind, step) / ctr(curves, theirs, kind, step) - 1)


def lead_whatever_alpha(curves: Curves, kind: str, alpha: str) -> Values:
    """``(runs,)`` that over C2UCB with an α."""
    return lead(curves, kind, theirs=BASELINES[alpha])


def added_lead(evidence: Evidence, users: str, kind: str) -> Values:
    """``(runs,)`` by how much the lead is more than on linear users."""
    return lead(evidence[users], kind) - lead(evidence[LINEAR_USERS], kind)


def added_lead_once(evidence: Evidence, kind: str) -> Values:
    """The same for users who click once, and the share of them."""
    if kind == SINGLE:
        return evidence[CLICK_ONCE].ends(ENV, TUNED_OURS, SINGLE).mean(axis=0)
    return added_lead(evidence, CLICK_ONCE, kind)


def headroom(curves: Curves, agent: str) -> Values:
    """``(runs,)`` by how many per cent the best lists' CTR_set is above an agent's: no lead can be larger."""
    regret = curves.ends(ENV, agent).mean(axis=0)
    best = curves.ends(ENV, TUNED_OURS, "reward").mean() + curves.ends(ENV, TUNED_OURS).mean()
    return 100 * (best / (best - regret) - 1)


def nothing_left(curves: Curves, kind: str, theirs: str) -> Finding:
    """The paper's lead less ours on the users with all causes together; explained within two per cent."""
    published = 100 * PUBLISHED_LIFT[kind]
    return estimate(published - lead(curves, kind, theirs=theirs)).finding(f" of {published:.1f} per cent", -2.0, 2.0)


def nothing_left_of_the_best(curves: Curves, kind: str) -> Finding:
    """As `nothing_left`, against the α that C2UCB does best with."""
    return nothing_left(curves, kind, max(BASELINES.values(), key=lambda agent: ctr(curves, agent, CTR_SUM).mean()))


# ------------------------------------------------------------------------------------------------ the paper's estimator

N_LOGGED, LOG_RUNS = 3_000, 6


@cache
def estimated_leads() -> dict[str, Values]:
    """``(runs,)`` the leads on a log by the paper's estimator (UBM-IPS, its eq. 11), and by true probabilities.

    A policy shows all ten candidates by attraction with noise; records without a click are left out. An agent ranks six of
    the ten; the one at position k has the reward ``c w_{k,k'} / w_{l,l'}``, c its logged click at l after one at l'. A coin
    with that chance, or a certain click from 1 on, is what the agent learns from, k' follows from, and CTR_set counts;
    CTR_sum is the mean of the rewards.
    """
    model: Any = load_instance(f"linear:n_items=10,n_features={D},n_positions=10").models["LinearModel of UBM"]
    weights = model.base.examination
    leads: dict[str, list[float]] = {f"{kind} {how}": [] for how in ("estimated", "true") for kind in KINDS}
    for run in range(LOG_RUNS):
        rates = []
        for make in (UBMLinUCB, C2UCB):
            weights_of_ours: dict[str, Any] = {"examination": weights[:LONG, :LONG]} if make is UBMLinUCB else {}
            agent = make(10, LONG, n_features=D, alpha=ALPHA, seed=run, **weights_of_ours)
            rates.append(_replay(agent, model, weights, np.random.default_rng(run)))
        for name, ours, theirs in zip(leads, *rates, strict=True):
            leads[name].append(100 * (ours / theirs - 1))
    return {name: np.array(values) for name, values in leads.items()}


def _replay(agent: Any, model: Any, weights: Values, rng: np.random.Generator) -> tuple[float, float, float, float]:
    """CTR_sum and CTR_set of an agent on the log of a generator: estimated, and true."""
    pool, totals, n_records = model.pool, np.zeros(4), 0
    while n_records < N_LOGGED:
        user, items = rng.integers(len(pool.users)), rng.choice(len(pool.items), 10, replace=False)
        attraction = pool.user_attraction[user] + pool.item_attraction[items]
        order = np.argsort(-attraction - rng.normal(0.0, 0.2, 10))
        coins, chances = rng.random(10), rng.random(LONG)
        clicked, seen, last = np.zeros(10), np.zeros(10), 0
        for place, item in enumerate(order):
            seen[item] = weights[place, last]
            if coins[place] < seen[item] * attraction[item]:
                clicked[item], last = 1.0, place + 1
        if last == 0:
            continue
        observation = {"features": np.hstack([np.tile(pool.users[user], (10, 1)), pool.items[items]])}
        ranking = agent.rank(observation)
        clicks, last = np.zeros(LONG, np.int8), 0
        for k, item in enumerate(ranking):
            reward = clicked[item] * weights[k, last] / seen[item]
            totals[0] += reward
            if chances[k] < reward:
                clicks[k], last = 1, k + 1
        totals[1] += clicks.any()
        present = UserBrowsingModel(attraction, weights[:LONG, :LONG])
        totals[2] += present.expected_reward(ranking, "clicks")
        totals[3] += present.expected_reward(ranking, "any_click")
        agent.update(observation, ranking, clicks)
        n_records += 1
    estimated_sum, estimated_set, true_sum, true_set = totals / N_LOGGED
    return estimated_sum, estimated_set, true_sum, true_set


def estimator(evidence: Evidence, kind: str) -> Values:
    """``(runs,)`` the estimated lead less the true one, whatever was measured."""
    return estimated_leads()[f"{kind} estimated"] - estimated_leads()[f"{kind} true"]


# --------------------------------------------------------------------------------------------------------- figure and table


def _signed(result: Estimate) -> str:
    return f"{result.mean:+.2f} ± {result.half:.2f}"


def _of_draws(curves: Curves, theirs: str) -> str:
    """The least and the largest lead among the instances, which no interval over runs tells of."""
    ours, others = (curves.ends(ENV, agent, KINDS[CTR_SUM]).mean(axis=1) for agent in (TUNED_OURS, theirs))
    leads = 100 * (ours / others - 1)
    return f"{leads.min():+.1f} to {leads.max():+.1f}"


def table(evidence: Evidence) -> PaperTable:
    """The leads on all users, and what they may be at most."""
    rows = [["users", CTR_SUM, CTR_SET, f"{CTR_SUM}, least and most draw", "the most that CTR_set allows", SINGLE]]
    for part, cause in USERS.items():
        single = evidence[part].ends(ENV, TUNED_OURS, SINGLE).mean()
        rows.append([cause, *_cells(evidence[part], TUNED_BASELINE), f"{single:.1f}"])
    for part, cause in ((LINEAR_USERS, "the first, C2UCB with α_t"), (ALL, "the last, C2UCB with α_t")):
        rows.append([cause, *_cells(evidence[part], BASELINE), ""])
    return "Lead of UBM-LinUCB over C2UCB in per cent", rows


def _cells(curves: Curves, theirs: str) -> list[str]:
    leads = [_signed(estimate(lead(curves, kind, theirs=theirs))) for kind in KINDS]
    return [*leads, _of_draws(curves, theirs), _signed(estimate(headroom(curves, theirs)))]


def draw(evidence: Evidence) -> Figure:
    """The lead so far on all users."""
    figure, panels = grid(2, labels=["lead over C2UCB so far, %"])
    for axes, kind in zip(panels, KINDS, strict=True):
        for (part, cause), look in zip(USERS.items(), COLOURS_OF_USERS, strict=True):
            curves = evidence[part]
            late = curves.steps >= 200
            ours, theirs = (curves.units(ENV, agent, KINDS[kind])[:, late] for agent in (TUNED_OURS, TUNED_BASELINE))
            band(axes, curves.steps[late], 100 * (ours / theirs - 1), cause, look, -np.inf)
        axes.axhline(100 * PUBLISHED_LIFT[kind], color="black", linewidth=0.8, linestyle=":", label="He et al. 2020")
        axes.set(title=kind, xlabel="session", xscale="log")
    return finish(figure, panels, evidence, f"UBM-LinUCB's lead over C2UCB, K = {LONG}, α = {ALPHA:g} for both")
