"""Figures of the pages of environments: returns, clicks by position, what is exact, parameters of real queries.

All of them are computed from the package, with fixed seeds, when a page is made.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import permutations
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from clickgym import run
from clickgym.envs import CascadeMDP, ClickEnv, ClickModel, ContextualModel, list_instances, load_instance
from clickgym.envs.registration import EPISODE

AGENTS = {"": "CascadeKLUCB", "NonStationary": "GLRCascadeKLUCB", "Contextual": "LinearTS", "Memory": "CascadeVI"}
"""The published agent that stands beside the best and random lists, by the kind of environment: one that needs no argument, and
that is made for what the kind adds (changes, features, states)."""
SESSIONS = 100_000
"""How many sessions it plays."""
MOST_LISTS = 100_000
"""Up to so many lists the mean over random lists is exact; beyond, it is that of so many draws."""
STREAMS, ROUNDS = 1000, 30
"""The sessions over which the candidates of contextual environments are averaged."""


class Rounds(NamedTuple):
    """Averages over sessions with other candidates: what best and random lists earn, and their clicks by position."""

    optimum: float
    random: float
    best_clicks: NDArray[np.float64]
    random_clicks: NDArray[np.float64]


class Return(NamedTuple):
    """The expected reward of lists in the first episode, and in the last of `SESSIONS`."""

    lists: str
    first: float
    last: float


def returns(env_id: str, kind: str) -> list[Return]:
    """Returns of an episode of the default instance: of the best lists, of an agent, and of random lists.

    Args:
        env_id: a registered id.
        kind: as of `clickgym.envs.registration.Environment`; ``"Memory"``: episodes are the lives of users, and their mean is
            over those of the first `EPISODE` sessions and of all later ones.
    """
    if kind == "Memory":
        return _returns_of_lives(env_id)
    regret = _played(env_id, AGENTS[kind]).regret
    if kind == "Contextual":
        rounds = _rounds(env_id)
        best, random = [EPISODE * rounds.optimum] * 2, [EPISODE * rounds.random] * 2
    else:
        steps = (0, SESSIONS - 1)
        best = [EPISODE * float(_best_clicks(env_id, step).sum()) for step in steps]
        random = [EPISODE * float(_random_clicks(env_id, step).sum()) for step in steps]
    return [
        Return("the best list" + " of each session" * bool(kind), *best),
        Return(f"`{AGENTS[kind]}`", best[0] - float(regret[0]), best[1] - float(regret[2] - regret[1])),
        Return("random lists", *random),
    ]


def _returns_of_lives(env_id: str) -> list[Return]:
    """The same of users with a memory, of each life on average."""
    best = float(_users(env_id).first @ _users(env_id).value)
    rows = [Return("the best list of each state", best, best)]
    for agent, lists in ((AGENTS["Memory"], f"`{AGENTS['Memory']}`"), ("Random", "random lists")):
        played = _played(env_id, agent, ("users",))
        early, _, late = zip(played.regret, played.metrics["users"], strict=True)
        lost = early[0] / early[1], (late[0] - early[0]) / (late[1] - early[1])
        rows.append(Return(lists, *(best - float(loss) for loss in lost)))
    return rows


@cache
def _played(env_id: str, agent: str, metrics: tuple[str, ...] = ()) -> Any:
    return run(agent, env_id, SESSIONS, seed=0, checkpoints=[EPISODE, SESSIONS - EPISODE], metrics=metrics)


def _env(env_id: str, **arguments: Any) -> ClickEnv:
    env = gym.make(env_id, **arguments).unwrapped
    assert isinstance(env, ClickEnv)
    return env


def _users(env_id: str) -> CascadeMDP:
    model = _env(env_id).model
    assert isinstance(model, CascadeMDP)
    return model


def _model(env_id: str, step: int) -> ClickModel:
    """The click model of a session, counted from 0; these environments pay for clicks."""
    model: Any = _env(env_id).model
    return model.at(step) if len(model.epochs) > 1 else model


def _best_clicks(env_id: str, step: int) -> NDArray[np.float64]:
    model = _model(env_id, step)
    return model.click_probabilities(model.optimal_ranking())


@cache
def _random_clicks(env_id: str, step: int) -> NDArray[np.float64]:
    """The mean over all lists; where there are too many, over random ones."""
    model, rng = _model(env_id, step), np.random.default_rng(0)
    size, positions = model.n_items, model.n_positions
    lists: Any = permutations(range(size), positions)
    if math.perm(size, positions) > MOST_LISTS:
        lists = (rng.permutation(size)[:positions] for _ in range(MOST_LISTS))
    return np.mean([model.click_probabilities(one) for one in lists], axis=0)


@cache
def _rounds(env_id: str) -> Rounds:
    envs: Any = gym.make_vec(env_id, num_envs=STREAMS, max_episode_steps=1, autoreset_mode="SameStep")
    rng, means = np.random.default_rng(0), []
    for best in (True, False):
        _, infos = envs.reset(seed=0)
        size, positions = envs.single_action_space.n_items, envs.single_action_space.n_positions
        rewards, clicks = 0.0, np.zeros(positions)
        for _ in range(ROUNDS):
            random = rng.permuted(np.tile(np.arange(size), (STREAMS, 1)), axis=1)[:, :positions]
            *_, infos = envs.step(infos["optimal_ranking"] if best else random)
            rewards += float(infos["final_info"]["expected_reward"].mean())
            clicks += np.mean([last["clicks"] for last in infos["final_obs"]], axis=0)
        means.append((rewards / ROUNDS, clicks / ROUNDS))
    return Rounds(*(mean for pair in zip(*means, strict=True) for mean in pair))


def clicks_by_position(env_id: str, kind: str) -> dict[str, NDArray[np.float64]]:
    """The probability of a click at each position in the default instance, by the kind of list, ``(K,)`` each.

    Args:
        env_id, kind: as in `returns`.
    """
    if kind == "Contextual":
        rounds = _rounds(env_id)
        return {"the best list of each session": rounds.best_clicks, "random lists": rounds.random_clicks}
    if kind == "Memory":
        users = _users(env_id)
        state = int(np.argmax(users.first))
        lists = {"best list of the first state": users.best[state], "list with most clicks now": users.myopic()[0][state]}
        clicks = {name: _scanned(users.attraction[state, ranking]) for name, ranking in lists.items()}
        every = [_scanned(users.attraction[state, list(one)]) for one in permutations(range(users.n_items), users.n_positions)]
        return clicks | {"random lists": np.mean(every, axis=0)}
    starts: Any = _env(env_id).model.starts if kind else [0]
    names = [f"the best list of the {name} epoch" for name in ("first", "second")] if kind else ["the best list"]
    best = {name: _best_clicks(env_id, start) for name, start in zip(names, starts, strict=False)}
    return best | {"random lists" + " in the first epoch" * bool(kind): _random_clicks(env_id, 0)}


def _scanned(attraction: NDArray[np.float64]) -> NDArray[np.float64]:
    """The clicks by position of users who scan a list and stop at the first click."""
    return attraction * np.concatenate([[1.0], np.cumprod(1.0 - attraction)[:-1]])


LARGE = {"": "yandex-like:n_items=40,n_positions=10", "Contextual": "linear:n_items=40,n_positions=10,n_pool=60"}
"""Instances of more lists than are searched."""


def exact(env_id: str, form: str) -> Iterator[tuple[str, str, str]]:
    """Each reward of a click model: how its best list is found, and what it earns in the default instance; of users that change
    in the first epoch, and nothing where candidates change.

    Args:
        env_id: of an environment of a click model.
        form: as of `clickgym.envs.registration.Environment`.
    """
    contextual = form == "Contextual"
    large_id = env_id if contextual else env_id.removeprefix(form)
    for reward in _env(env_id).model.rewards:
        model = None if contextual else _model(env_id, 0)
        best = "" if model is None else f"{model.expected_reward(model.optimal_ranking(reward), reward):.4f}"
        if not _can_be_made(env_id, reward=reward):
            way = "refused: choose another reward"
        elif _can_be_made(large_id, instance=LARGE[form * contextual], reward=reward):
            way = "directly, for any number of items"
        else:
            way = f"by an exact search, refused for more than {_most_lists(env_id):,} lists"
        yield reward, way, best


def _most_lists(env_id: str) -> int:
    """Among how many lists the click model's best one is searched."""
    users = _env(env_id).model
    return (users.base if isinstance(users, ContextualModel) else users.epochs[0]).max_search


def _can_be_made(env_id: str, **arguments: str) -> bool:
    """Whether the best list is known: an environment without it is refused."""
    try:
        _env(env_id, **arguments)
    except ValueError:
        return False
    return True


def queries(model: type[ClickModel]) -> dict[str, Mapping[str, Any]]:
    """What the shipped instances say of the real queries on which a click model was fitted, by name."""
    instances = {name: load_instance(name) for name in list_instances() if name.startswith("yandex-9")}
    return {name: one.estimation for name, one in instances.items() if model.short in one.models}


def parameters(model: type[ClickModel]) -> Iterator[tuple[str, str, str]]:
    """The parameters of a click model: their name, their values in the default instance, and their range over all queries."""
    every = [load_instance(name).model(model.short) for name in queries(model)]
    default = load_instance(str(model.default_instance)).model(model.short)
    for name, shape in model.shapes.items():
        values = [np.asarray(getattr(one.parameters, name)) for one in every]
        if shape == "KK":  # what is below the diagonal alone has a meaning
            values = [matrix[np.tril_indices(len(matrix))] for matrix in values]
        own = np.asarray(getattr(default.parameters, name))
        shown = own[:, 0] if shape == "KK" else np.atleast_1d(own)
        words = ", ".join(f"{value:.2f}" for value in shown) + (" (before any click)" if shape == "KK" else "")
        yield name, words, f"{min(map(np.min, values)):.2f} to {max(map(np.max, values)):.2f}"


def session(env_id: str) -> tuple[int, str]:
    """The first seed under which the user of the first session clicks on the best list, and that session as text."""
    env, seed = _env(env_id, render_mode="ansi"), 0
    while True:
        _, info = env.reset(seed=seed)
        observation, *_ = env.step(info["optimal_ranking"])
        clicks = observation["clicks"] if isinstance(observation, dict) else observation
        if clicks.any():
            return seed, str(env.render())
        seed += 1
