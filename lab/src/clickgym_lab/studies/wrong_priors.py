"""Study of agents that learn from a wrong log before they rank: up to which share of wrong sessions or clicks does it help?"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from inspect import signature
from itertools import product, takewhile
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from clickgym.agents import AGENTS as PUBLISHED
from clickgym.agents import CompiledAgent, LinearTS, NeuralLinearTS, PairRank, PBMLinUCB
from clickgym.core.checks import check_choice, check_count, probability
from clickgym.envs import Users
from clickgym.runner import make_env

from ..production import log_of_lists
from .plots import Axes, Figure, finish, grid, style_of
from .study import CM, PBM, Evidence, Finding, PaperTable, Values, estimate, number, ratio, short, versus

WRONG = ("flipped", "others", "earlier")
"""What is wrong in a log: clicks are flipped, or sessions are of other users, or of the same users before a change."""
PART = "wrong-priors"
SIZE, SHORT = 10_000, 1000
"""Sessions of a log."""
OF_ITEMS = ("CascadeKLUCB", "CascadeTS", "GLRCascadeKLUCB", "PBMTS", "PBMHB", "GRAB", "MixTS")
CASCADE, POSITION = ("CascadeKLUCB", "CascadeTS"), ("PBMTS", "PBMHB", "GRAB", "MixTS")
"""Agents that are judged in the CM and in the PBM."""
SESSIONS = (0.0, 0.1, 0.3, 0.5, 1.0)
SHARES = {"flipped": (0.0, 0.1, 0.2, 0.3, 0.5), "others": SESSIONS, "earlier": SESSIONS}
OF_SHORT = (0.0, 0.3, 0.5)
"""The shares of flipped clicks in a short log."""
CHANGED, RAISED = 3, 0.9
"""Before the change so many items attracted so much that are not among the best now (Li and de Rijke 2019)."""
WORLD = "ContextualPBMRank-v0"
ELSEWHERE = 100
"""What is added to the seed of a world to make its other users."""
Seed = int | np.random.SeedSequence | None


# ---------------------------------------------------------------------------------------------------------------- the log


class WrongLog(NamedTuple):
    """A log of uniformly random lists from which an agent learns."""

    rankings: NDArray[np.int64]  # (n, K)
    clicks: NDArray[np.int8]  # (n, K)
    context: NDArray[np.float64] | None = None  # (n, K, d) features of the items shown


def mixed(right: WrongLog, wrong: WrongLog | None, share: float, rng: np.random.Generator) -> WrongLog:
    """A log in which a share is wrong.

    Args:
        right: the log of the users that will be met.
        wrong: sessions that take the place of those of ``right``, each with the same probability; None: single clicks are
            flipped instead, also where nobody looked.
        share: of the sessions, or of the clicks.
        rng: decides which.
    """
    if wrong is None:
        return right._replace(clicks=right.clicks ^ (rng.random(right.clicks.shape) < share))
    places = rng.random(len(right.clicks)) < share
    parts: list[Any] = [
        None if old is None or new is None else np.where(places.reshape(-1, *[1] * (old.ndim - 1)), new, old)
        for old, new in zip(right, wrong, strict=True)
    ]
    return WrongLog(*parts)


def of_random_lists(users: Any, n: int, rng: np.random.Generator) -> WrongLog:
    """A log of a click model of items."""
    return WrongLog(*log_of_lists(users, rng.permuted(np.tile(np.arange(users.n_items), (n, 1)), axis=1), rng))


def strangers(users: Any, wrong: str, rng: np.random.Generator) -> Any:
    """Users like some users, with other tastes: items exchange all that belongs to them at random (``"others"``), or three
    items that are not among the best K attract with 0.9 (``"earlier"``)."""
    if wrong == "others":
        order = rng.permutation(users.n_items)
        return users.with_items(**{name: getattr(users.parameters, name)[order] for name in users.item_parameters()})
    attraction = users.attraction.copy()
    attraction[rng.choice(np.argsort(-attraction, kind="stable")[users.n_positions :], CHANGED, replace=False)] = RAISED
    return users.with_items(attraction=attraction)


@lru_cache(maxsize=32)
def log_of_users(described: str, n: int, wrong: str, share: float) -> WrongLog:
    """A log of which a share is wrong, before users who meet the same items in every session; the same every time.

    Args:
        described: a click model's `to_dict`, as JSON.
        n: how many sessions.
        wrong, share: what is wrong, and how much.
    """
    users = Users.from_dict(json.loads(described))
    right, choice, other = (np.random.default_rng([*described.encode(), number]) for number in range(3))
    log = of_random_lists(users, n, right)
    return mixed(log, None if wrong == "flipped" else of_random_lists(strangers(users, wrong, other), n, other), share, choice)


@lru_cache(maxsize=4)
def log_of_world(seed: int, n: int) -> WrongLog:
    """A log of a world whose candidates change; the same every time."""
    env, rng = make_env(WORLD, world(seed)), np.random.default_rng([seed, n])
    n_items, n_positions = env.unwrapped.model.n_items, env.unwrapped.model.n_positions  # type: ignore[attr-defined]
    rankings = rng.permuted(np.tile(np.arange(n_items), (n, 1)), axis=1)[:, :n_positions]
    context, clicks, (observation, _) = [], [], env.reset(seed=seed)
    for ranking in rankings:
        context.append(observation["features"][ranking])
        observation = env.step(ranking)[0]
        clicks.append(observation["clicks"])
    return WrongLog(rankings, np.array(clicks, np.int8), np.array(context))


def log_of_worlds(seed: int, n: int, wrong: str, share: float) -> WrongLog:
    """A log of a world of which a share is wrong: other users want other lists by the same features."""
    other = None if wrong == "flipped" else log_of_world(seed + ELSEWHERE, n)
    return mixed(log_of_world(seed, n), other, share, np.random.default_rng([seed, n, 1]))


def world(seed: int) -> str:
    """The name of a world in which each user wants another list, and agents are told the right features."""
    return f"personal:seed={seed},features=outer,n_items=10,n_positions=5"


# ------------------------------------------------------------------------------------------------------------- the agents


class Misled(CompiledAgent):
    """An agent that has learned from a log of which a share is wrong before its first session.

    Args:
        n_items, n_positions: L and K.
        log: of how many sessions.
        wrong: one of `WRONG`.
        share: of the sessions or of the clicks that are wrong.
        users: whose clicks the right part of the log holds; ``make_agent`` fills them in.
        world: where candidates change, the seed of the world instead.
        horizon: of the sessions after the log, for agents that take one.
        seed: of the agent.
        **hyperparameters: of the agent without the log.
    """

    told: ClassVar = {"users": "users"}

    def __init__(
        self, n_items: int, n_positions: int, *, log: int, wrong: str, share: float, users: Users | None = None,
        world: int | None = None, horizon: int | None = None, seed: Seed = None, **hyperparameters: Any,
    ) -> None:  # fmt: skip
        if "horizon" in signature(super().__init__).parameters:
            hyperparameters["horizon"] = horizon
        super().__init__(n_items, n_positions, seed=seed, **hyperparameters)
        check_choice("wrong", wrong, WRONG)
        size, share = check_count("log", log), probability("share", share)
        if world is None and users is not None:
            self.learn(log_of_users(json.dumps(users.to_dict()), size, wrong, share))
        elif world is not None:
            self.learn(log_of_worlds(world, size, wrong, share))


for _agent in map(PUBLISHED.__getitem__, OF_ITEMS):
    _members = {"__module__": __name__, "told": {**_agent.told, **Misled.told}}
    globals()[f"Warm{_agent.__name__}"] = type(f"Warm{_agent.__name__}", (Misled, _agent), _members)


class WarmLinearTS(Misled, LinearTS):
    """LinearTS with a log."""

    told: ClassVar = {}

    def __init__(self, n_items: int, n_positions: int, *, n_features: int, **further: Any) -> None:
        super().__init__(n_items, n_positions, n_features=n_features, **further)


class WarmPBMLinUCB(Misled, PBMLinUCB):
    """PBMLinUCB with a log; it must be given the examination probabilities."""

    told: ClassVar = {**PBMLinUCB.told}

    def __init__(self, n_items: int, n_positions: int, *, n_features: int, examination: Any, **further: Any) -> None:
        super().__init__(n_items, n_positions, n_features=n_features, examination=examination, **further)


class WarmPairRank(Misled, PairRank):
    """PairRank with a log."""

    told: ClassVar = {}

    def __init__(self, n_items: int, n_positions: int, *, n_features: int, **further: Any) -> None:
        super().__init__(n_items, n_positions, n_features=n_features, **further)


class WarmNeuralLinearTS(Misled, NeuralLinearTS):
    """NeuralLinearTS with a log; it must be given the examination probabilities."""

    told: ClassVar = {**NeuralLinearTS.told}

    def __init__(self, n_items: int, n_positions: int, *, n_features: int, examination: Any, **further: Any) -> None:
        super().__init__(n_items, n_positions, n_features=n_features, examination=examination, **further)


def misled(agent: str, wrong: str, share: float, log: int = SIZE, world: int | None = None) -> str:
    """The label of an agent with a log; one without wrong clicks is the same whatever is wrong."""
    wrong, (name, _, further) = wrong if share else "flipped", agent.partition(":")
    place = ("" if world is None else f",world={world}") + (f",{further}" if further else "")
    return f"{__name__}:Warm{name}:log={log},wrong={wrong},share={share:g}{place}"


# -------------------------------------------------------------------------------------------------------------- the study


LOGS = [(wrong, share, SIZE) for wrong in WRONG for share in SHARES[wrong]] + [("flipped", share, SHORT) for share in OF_SHORT]
AGENTS = list(dict.fromkeys(label for name in OF_ITEMS for label in (name, *(misled(name, *log) for log in LOGS))))


NUMBERS = range(21, 26)
"""The seeds of the worlds."""
BY_FEATURES = ("LinearTS", "PBMLinUCB", "PairRank:loss=sum,growth=0.01", "NeuralLinearTS")
OF_WORLDS = {"flipped": (0.0, 0.1, 0.3, 0.5), "others": (0.1, 0.5, 1.0)}
for _number in NUMBERS:
    _logs = [(wrong, share, SHORT, _number) for wrong in OF_WORLDS for share in OF_WORLDS[wrong]]
    globals()[f"IN_WORLD_{_number}"] = [*BY_FEATURES, *(misled(name, *log) for name in BY_FEATURES for log in _logs)]


def only(_: Sequence[str], number: int) -> list[str]:
    """The one world of a part."""
    return [world(number)]


def in_worlds(evidence: Evidence, agent: str, wrong: str = "", share: float = 0.0) -> Values:
    """``(worlds,)`` regret at the end; without ``wrong``, of the agent without a log."""
    labels = {seed: misled(agent, wrong, share, SHORT, seed) if wrong else agent for seed in NUMBERS}
    each = (evidence[f"wrong-priors-features-{seed}"].end_units(WORLD, label) for seed, label in labels.items())
    return np.array([values.mean() for values in each])


def multiple_in_worlds(evidence: Evidence, agent: str, wrong: str, share: float, low: float, high: float) -> Finding:
    """Regret at the end with a log as a multiple of that without, where agents learn by features."""
    times_of = ratio(in_worlds(evidence, agent, wrong, share), in_worlds(evidence, agent))
    return times_of.finding(f" times over {len(NUMBERS)} worlds", low, high)


def table_of_worlds(evidence: Evidence) -> PaperTable:
    """Regret with every log as a multiple of that without, and the worst world."""
    rows = [["agent", "regret without a log", *(f"{share:.0%} {wrong}" for wrong in OF_WORLDS for share in OF_WORLDS[wrong])]]
    for agent in BY_FEATURES:
        without = in_worlds(evidence, agent)
        with_log = (in_worlds(evidence, agent, wrong, share) for wrong in OF_WORLDS for share in OF_WORLDS[wrong])
        cells = (f"{ratio(values, without)}, worst {number((values / without).max())}" for values in with_log)
        rows.append([agent, str(estimate(without)), *cells])
    return "Regret at the end with a log as a multiple of that without, mean over five worlds, and the worst of them", rows


def _multiples(axes: Axes, agents: Sequence[str], wrong: str, shares: Sequence[float], regret: Callable[..., Values]) -> None:
    """Draw the regret with a log as a multiple of that without, by the share of the log that is wrong."""
    for agent in agents:
        means = [ratio(regret(agent, wrong, share), regret(agent)).mean for share in shares]
        axes.plot(shares, means, marker=".", label=agent, **style_of(agent, axes))
    axes.axhline(1, color="0.5", linewidth=0.8)
    axes.set(yscale="log", xlabel="share of the log that is wrong")


def draw_worlds(evidence: Evidence) -> Figure:
    """Regret as a multiple of that without a log, by the share that is wrong."""
    figure, panels = grid(2, labels=["regret, times that without a log"])
    for axes, wrong in zip(panels, OF_WORLDS, strict=True):
        shares = sorted({0.0, *OF_WORLDS[wrong]})
        _multiples(axes, BY_FEATURES, wrong, shares, partial(in_worlds, evidence))
        axes.set_title(wrong)
        axes.set_yticks([0.25, 0.5, 1, 2, 4])
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.minorticks_off()
    return finish(figure, panels, evidence, "What a wrong log does to agents that learn by features", "means over the worlds")


def ends(evidence: Evidence, env: str, agent: str, wrong: str = "", share: float = 0.0, log: int = SIZE) -> Values:
    """``(queries,)`` regret at the end; without ``wrong``, of the agent without a log."""
    return evidence[PART].end_units(env, misled(agent, wrong, share, log) if wrong else agent)


def multiple(
    evidence: Evidence, env: str, agent: str, wrong: str, share: float, low: float, high: float, log: int = SIZE
) -> Finding:
    """Regret at the end with a log as a multiple of that without."""
    values = ends(evidence, env, agent, wrong, share, log)
    return ratio(values, ends(evidence, env, agent)).finding(f" times over {len(values)} queries", low, high)


def less_misled(
    evidence: Evidence, env: str, better: str, worse: str, wrong: str, share: float, log: int = SIZE, than: int = SIZE
) -> Finding:
    """Whether one agent has less regret with a log than another with such a log, of as many sessions or of others."""
    low, high = ends(evidence, env, better, wrong, share, log), ends(evidence, env, worse, wrong, share, than)
    return versus(low, high, over=f"over {len(low)} queries")


def table(evidence: Evidence) -> PaperTable:
    """Regret with every log as a multiple of that without, and the largest share up to which every log helps."""
    shares = sorted({share for each in SHARES.values() for share in each})
    rows = [["users", "agent", "log", "wrong", *(f"{share:.0%}" for share in shares), "helps up to"]]
    logs = [*((wrong, SIZE, SHARES[wrong]) for wrong in WRONG), ("flipped", SHORT, OF_SHORT)]
    for env, agent, (wrong, log, played) in product((CM, PBM), OF_ITEMS, logs):
        without = ends(evidence, env, agent)
        found = {share: ratio(ends(evidence, env, agent, wrong, share, log), without) for share in played}
        helps = [f"{share:.0%}" for share, _ in takewhile(lambda pair: pair[1].below(1.0) == "yes", found.items())]
        cells = (str(found.get(share, "")) for share in shares)
        rows.append([short(env), agent, f"{log:,}", wrong, *cells, ["never", *helps][-1]])
    return "Regret at the end with a log as a multiple of that without, by the share of the log that is wrong", rows


def draw(evidence: Evidence) -> Figure:
    """Regret as a multiple of that without a log, by the share that is wrong."""
    figure, panels = grid(3, 2, labels=["regret, times that without a log"])
    for axes, (env, wrong) in zip(panels, product((CM, PBM), WRONG), strict=True):
        _multiples(axes, OF_ITEMS, wrong, SHARES[wrong], partial(ends, evidence, env))
        axes.set_title(f"{short(env)}: {wrong}")
    return finish(figure, panels, evidence, "What a wrong log does", "means over the queries")
