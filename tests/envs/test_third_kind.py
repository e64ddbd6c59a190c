"""A kind of users from outside of the package: users who get bored take part in everything without
an edit elsewhere.

They click each item with its attraction times their interest, which the agent observes. A session
without a click halves the interest, a click restores it; who is bored leaves with probability 1/2.
"""

from __future__ import annotations

import copy
import pickle
import re
from pathlib import Path
from typing import Annotated, NamedTuple

import gymnasium as gym
import numpy as np
import pytest
from engines import assert_engines_agree
from gymnasium.spaces import Box, Dict, MultiBinary
from gymnasium.vector import AutoresetMode
from registries import restored

import clickgym
from clickgym.agents import CompiledAgent, Random
from clickgym.agents.agent import UnsuitedError
from clickgym.core.state import Floats, Ints
from clickgym.envs import (
    ClickEnv,
    ClickVectorEnv,
    Kernels,
    PositionBasedModel,
    SessionError,
    Task,
    Users,
    kernel,
)

pytestmark = pytest.mark.uncompiled

ATTRACTION = [0.9, 0.2, 0.5, 0.4]


class Record(NamedTuple):
    attraction: Floats  # (L,)
    top: float  # the sum of the K largest


class Interest(NamedTuple):
    optimum: Annotated[Floats, "B"]
    interest: Annotated[Floats, "B 1"]
    clicks: Annotated[Ints, "B"]  # of the last session


@kernel
def session(users, state, b, ranking, uniforms, clicks, examined):
    interest, state.clicks[b], expected = state.interest[b, 0], 0, 0.0
    for k in range(len(ranking)):
        chance = users.attraction[ranking[k]] * interest
        expected += chance
        clicks[k], examined[k] = uniforms[k] < chance, 1
        state.clicks[b] += clicks[k]
    return float(state.clicks[b]), expected, -1


@kernel
def follow(users, state, b, interest):
    state.interest[b, 0] = interest
    state.optimum[b] = users.top * interest


@kernel
def begin(users, state, b, rng):
    follow(users, state, b, 1.0)


@kernel
def advance(users, state, b, rng):
    has_left = state.interest[b, 0] < 0.3 and rng.random() < 0.5
    follow(users, state, b, 1.0 if state.clicks[b] > 0 else state.interest[b, 0] / 2)
    return has_left


class BoredTask(Task):
    kernels, state_type = Kernels(session, begin, advance), Interest

    def __init__(self, model):
        self.model, self.order = model, np.argsort(-model.attraction)[: model.n_positions]
        self.users = Record(model.attraction, float(model.attraction[self.order].sum()))
        self.observation_space = Dict(
            clicks=MultiBinary(model.n_positions), interest=Box(0.0, 1.0, (1,), np.float64)
        )

    def best(self, state):
        return np.tile(self.order, (len(state.optimum), 1))

    def observe(self, state, b, clicks):
        return {"clicks": clicks, "interest": state.interest[b].copy()}


class BoredUsers(Users):
    rewards, observes, may_leave = ("clicks",), ("interest",), True

    def __init__(self, attraction, n_positions):
        self.attraction, self.n_positions = np.array(attraction, float), n_positions

    @property
    def n_items(self):
        return len(self.attraction)

    def to_dict(self):
        values = {"attraction": self.attraction.tolist(), "n_positions": self.n_positions}
        return {"model": f"{__name__}:{type(self).__name__}", **values}

    def with_positions(self, n_positions):
        return BoredUsers(self.attraction, n_positions)

    def tasks(self, reward, cutoff, reference):
        return [BoredTask(self)]

    def knowledge(self, source, production=None):
        return {"users": self, "examination": np.ones(self.n_positions)}.get(source)


class Careful(NamedTuple):
    sessions: Annotated[Ints, "1"]


@kernel
def rank(state, rng, ranking, interest):
    first = 0 if interest[0] < 0.6 else int(rng.random() * 3)
    for k in range(len(ranking)):
        ranking[k] = (first + k) % 4


@kernel
def update(state, ranking, clicks, interest):
    state.sessions[0] += 1


class CarefulAgent(CompiledAgent):
    """Shows bored users the best item: a compiled agent of this observation."""

    observes, state_type, rank_kernel, update_kernel = ("interest",), Careful, rank, update

    def seen(self, observation):
        return (np.array(observation["interest"]),)


class Told(Random):
    """Is told who the users are."""

    requires = {"users": "users"}

    def __init__(self, n_items, n_positions, *, users, seed=None):
        super().__init__(n_items, n_positions, seed=seed)


def users():
    return BoredUsers(ATTRACTION, 2)


def play(env, n_sessions):
    """What the environment returns, and how many users have left."""
    seen, left = [], 0
    for t in range(n_sessions):
        observation, reward, has_left, _, info = env.step([t % 4, (t + 1) % 4])
        seen.append(
            (*observation["clicks"].tolist(), observation["interest"][0], reward, *info.values())
        )
        if has_left:
            env.reset()
            left += 1
    return seen, left


def test_sessions_by_the_definition():
    """Interest, regret and clicks; users leave; a copy continues like the original."""
    env = ClickEnv(users())
    observation, info = env.reset(seed=0)
    assert observation["interest"] == 1.0
    assert info["optimal_ranking"].tolist() == [0, 2]
    assert info["optimal_reward"] == pytest.approx(1.4)
    interest, clicked = 1.0, 0
    for t in range(300):
        ranking = [t % 4, (t + 2) % 4]
        worth = interest * sum(ATTRACTION[item] for item in ranking)
        observation, reward, has_left, _, info = env.step(ranking)
        assert info["regret"] == pytest.approx(1.4 * interest - worth)
        assert observation["clicks"].sum() == reward
        if has_left:
            assert interest < 0.3
            observation, _ = env.reset()
            interest = 1.0
        else:
            interest = 1.0 if reward else interest / 2
        assert observation["interest"] == interest
        clicked += reward
    copies = copy.deepcopy(env), pickle.loads(pickle.dumps(env))
    expected = play(env, 200)
    np.testing.assert_equal([play(each, 200) for each in copies], [expected] * 2)
    assert expected[1] > 3
    assert 100 < clicked < 420


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_streams(mode):
    """A single stream is the scalar environment; of many, each user leaves alone."""
    env, envs = ClickEnv(users()), ClickVectorEnv(users(), 1, autoreset_mode=mode)
    env.reset(seed=3)
    envs.reset(seed=3)
    for t in range(200):
        ranking = [t % 4, (t + 1) % 4]
        seen, reward, has_left, _, info = env.step(ranking)
        many, rewards, ended, _, infos = envs.step(np.array([ranking]))
        assert (rewards[0], ended[0]) == (reward, has_left)
        if has_left and mode is AutoresetMode.NEXT_STEP:
            env.np_random.random(2)  # the stream draws for a list that nobody meets
            many, *_ = envs.step(np.array([ranking]))
        elif not has_left:
            assert infos["regret"][0] == info["regret"]
        seen = env.reset()[0] if has_left else seen
        assert many["interest"][0] == seen["interest"]
    envs = ClickVectorEnv(users(), 50, autoreset_mode=mode)
    envs.reset(seed=0)
    share = np.mean([envs.step(np.tile([1, 3], (50, 1)))[2].mean() for _ in range(40)])
    assert 0.03 < share < 0.3


@pytest.mark.compiled
@pytest.mark.parametrize("kind", [Random, CarefulAgent])
def test_both_engines(kind):
    assert_engines_agree(lambda: kind(4, 2, seed=1), lambda: ClickEnv(users()), 300)


def test_an_id_of_such_users():
    """It makes single and vector environments, and tells agents what their papers assume known."""
    given = {"attraction": ATTRACTION, "n_positions": 2}
    with restored():
        clickgym.register_click_model("BoredRank-v0", BoredUsers)
        env, envs = gym.make("BoredRank-v0", **given), gym.make_vec("BoredRank-v0", 3, **given)
        assert env.unwrapped.model == users()
        _, infos = envs.reset(seed=0)
        assert infos["optimal_ranking"].tolist() == [[0, 2]] * 3
        regret = envs.step(np.array([[0, 2], [2, 3], [1, 3]]))[4]["regret"]
        assert regret.tolist() == pytest.approx([0.0, 0.5, 0.8])
        assert clickgym.make_agent("PBMUCB", env).filled_in["examination"].tolist() == [1, 1]
        assert clickgym.make_agent(Told, env).filled_in["users"] == users()
        with pytest.raises(ValueError, match=r"Oracle requires .*BoredRank-v0 does not have"):
            clickgym.run("Oracle", env, 10)


class StayingUsers(BoredUsers):
    may_leave = False


@pytest.mark.parametrize("how", ["step", "streams", "compiled"])
def test_users_who_leave_although_they_may_not(how):
    model = StayingUsers(ATTRACTION, 2)

    def sessions():
        if how == "compiled":
            clickgym.run(Random(4, 2, seed=0), ClickEnv(model), 2000, seed=0, engine="compiled")
        env = ClickEnv(model) if how == "step" else ClickVectorEnv(model, 1)
        env.reset(seed=0)
        play(env, 200) if how == "step" else [env.step(np.array([[1, 3]])) for _ in range(200)]

    told = r"Env, step \d+: advance of a StayingUsers returned True.*is False"
    with pytest.raises(SessionError, match=f"^Click(Vector)?{told}(, facing Random)?$"):
        sessions()


@pytest.mark.compiled
def test_the_step_at_which_users_leave_is_the_same_in_both_engines():
    told = []
    for engine in ("compiled", "python"):
        env = ClickEnv(StayingUsers(ATTRACTION, 2))
        with pytest.raises(SessionError) as caught:
            clickgym.run(Random(4, 2, seed=0), env, 2000, seed=0, engine=engine)
        told.append(str(caught.value))
    assert told[0] == told[1]


@kernel
def advance_or_fail(users, state, b, rng):
    """Fails about once in 50 sessions."""
    state.interest[b, 0] += 0.0 / (rng.random() // 0.02)
    return False


class FragileTask(BoredTask):
    kernels = Kernels(session, begin, advance_or_fail)


class FragileUsers(BoredUsers):
    def tasks(self, reward, cutoff, reference):
        return [FragileTask(self)]


@pytest.mark.compiled
def test_advance_that_fails():
    """The environment is named, at the same step in both engines; then the agent can be, too."""
    told, env = [], ClickEnv(FragileUsers(ATTRACTION, 2))
    for engine in ("compiled", "python"):
        with pytest.raises(SessionError) as caught:
            clickgym.run(Random(4, 2, seed=0), env, 2000, seed=0, engine=engine)
        assert type(caught.value) is SessionError
        told.append(str(caught.value))
    fault = "ZeroDivisionError: division by zero, in a FragileUsers, facing Random"
    assert told[0] == told[1]
    assert re.fullmatch(rf"ClickEnv, step \d+: {fault}", told[0])
    assert not env.shown.draws[0]


def test_users_of_a_file():
    again = Users.from_dict(users().to_dict() | {"model": "BoredUsers"})
    assert again == users()


@pytest.mark.compiled
def test_kind_of_users_of_the_page(tmp_path, monkeypatch, capsys):
    """The page shows one that plays, and prints what the page shows; its regret is that of the
    hidden intent, in both engines.
    """
    page = (Path(__file__).parents[2] / "docs" / "own_click_model.md").read_text(encoding="utf-8")
    *_, (kind, use, shown) = re.findall(
        r"```python\n(# intents.*?)```.*?```python\n(.*?)```\n\n```text\n(.*?)```", page, re.DOTALL
    )
    (tmp_path / "intents.py").write_text(kind, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    names: dict = {"clickgym": clickgym, "ClickEnv": ClickEnv}
    exec(use, names)
    assert capsys.readouterr().out == shown
    users, results = names["users"], []
    for engine in ("compiled", "python"):
        result = clickgym.run("CascadeTS", ClickEnv(users), 300, seed=0, engine=engine)
        results.append(result.regret.tolist())
    assert results[0] == results[1]
    env, clicks, lasts = ClickEnv(users), np.zeros((2, 2)), []
    env.reset(seed=0)
    for _ in range(20_000):
        intent = int(env.unwrapped.state.intent[0])
        seen, *_, info = env.step([0, 2])
        clicks[intent] += seen
        assert info["regret"] == pytest.approx([0.2, 0.05][intent])
        lasts.append(int(env.unwrapped.state.intent[0]) == intent)
    found = clicks / clicks.sum()
    assert found.ravel() == pytest.approx(np.array([0.6, 0, 0, 0.5]) / 1.1, abs=0.02)
    assert np.mean(lasts) == pytest.approx(0.9 + 0.1 / 2, abs=0.01)


class Counts(NamedTuple):
    tired: Annotated[Ints, "1"]


@kernel
def count_tired(state, ranking, clicks, tired):
    state.tired[0] += tired[0]


class Counting(CompiledAgent):
    """Counts the sessions after which the user was seen tired, of a state with a value a stream."""

    observes, state_type = ("interest",), Counts
    rank_kernel, update_kernel = rank, count_tired

    def seen(self, observation):
        return (np.atleast_1d(observation["interest"]),)


class SleepyState(NamedTuple):
    optimum: Annotated[Floats, "B"]
    interest: Annotated[Floats, "B"]
    clicks: Annotated[Ints, "B"]


@kernel
def sleepy_session(users, state, b, ranking, uniforms, clicks, examined):
    for k in range(len(ranking)):
        examined[k], clicks[k] = 1, uniforms[k] < users.attraction[ranking[k]]
    state.clicks[b] = clicks.sum()
    return float(state.clicks[b]), users.top, -1


@kernel
def sleepy_advance(users, state, b, rng):
    state.interest[b], state.optimum[b] = state.clicks[b] == 0, users.top
    return False


class SleepyTask(BoredTask):
    kernels, state_type = Kernels(sleepy_session, sleepy_advance, sleepy_advance), SleepyState


class SleepyUsers(BoredUsers):
    """Users whose state has one value a stream."""

    observes, may_leave = ("interest",), False

    def tasks(self, reward, cutoff, reference):
        return [SleepyTask(self)]


@pytest.mark.compiled
def test_a_value_for_a_stream_is_seen_as_it_changes():
    counts = []
    for engine in ("compiled", "python"):
        agent = Counting(4, 2, seed=0)
        clickgym.run(agent, ClickEnv(SleepyUsers(ATTRACTION, 2)), 200, seed=0, engine=engine)
        counts.append(int(agent.state.tired[0]))
    assert counts[0] == counts[1] > 20


class HiddenTask(SleepyTask):
    def __init__(self, model):
        super().__init__(model)
        self.observation_space = MultiBinary(model.n_positions)

    def observe(self, state, b, clicks):
        return clicks


class HiddenUsers(SleepyUsers):
    """Users whose state is not shown."""

    observes = ()

    def tasks(self, reward, cutoff, reference):
        return [HiddenTask(self)]


@pytest.mark.parametrize("engine", ["compiled", "python"])
def test_what_is_not_shown_is_not_seen(engine):
    """Also by compiled agents, which get fields of the state."""
    for users in (HiddenUsers(ATTRACTION, 2), PositionBasedModel(ATTRACTION, [1.0, 0.5])):
        with pytest.raises(UnsuitedError, match="Counting observes interest, which ClickEnv does"):
            clickgym.run(Counting(4, 2, seed=0), ClickEnv(users), 9, seed=0, engine=engine)


def test_what_is_known_of_users_whose_state_is_hidden():
    """Sessions differ, although the clicks alone are observed: there is no single best list."""
    env = ClickEnv(HiddenUsers(ATTRACTION, 2))
    with pytest.raises(ValueError, match=r"requires ranking, which .* does not have"):
        clickgym.run("Oracle", env, 10, seed=0)
    with pytest.raises(ValueError, match="needs the same items and users in every session"):
        clickgym.run(Random(4, 2, seed=0), env, 10, metrics=["optimal_lists"], seed=0)
