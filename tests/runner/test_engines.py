"""Tests of the runner's two engines: they agree bit for bit; and every way in which a run can be
rejected or measured.
"""

from __future__ import annotations

import math
import tracemalloc
from contextlib import nullcontext
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit, TransformReward

import clickgym
from clickgym.agents import Agent, CompiledAgent, Fixed, LinearTS, TopRank
from clickgym.agents.baselines import ListState, learn_nothing
from clickgym.core.kernels import kernel, uncompiled
from clickgym.envs import ClickEnv, PiecewiseStationaryModel, PositionBasedModel
from tests.helpers import engines
from tests.helpers.compiled_pairs import AGENT_OF, by_id, by_pair
from tests.helpers.registries import CLICK_AGENTS, SAME_ITEMS
from tests.helpers.slow import slow
from tests.reference_agents.models import MODELS, make

PBM = MODELS["PBM"]


# --------------------------------------------------------------------------------- the same numbers


@by_pair(CLICK_AGENTS)
def test_engines_give_the_same_numbers(kind, name):
    """BatchRank and TopRank get a horizon of 10, so that splits and blocks occur within 400
    sessions. A step is compiled in only one click model, because all steps call the kernel of a
    session in the same way.
    """
    model = MODELS[kind]
    engines.assert_engines_agree(
        lambda: make(name, model, horizon=10, seed=5),
        lambda: ClickEnv(model),
        stepping=nullcontext if kind == "PBM" else uncompiled,
    )


@by_id(CLICK_AGENTS, SAME_ITEMS, most=3)
def test_engines_agree_on_registered_ids(env_id, name):
    """Environments come from `gym.make`, with its wrappers, on the default instance."""
    model = gym.make(env_id).unwrapped.model.epochs[0]
    engines.assert_engines_agree(
        lambda: make(name, model, horizon=10, seed=5), lambda: gym.make(env_id), 100, uncompiled
    )


FEW = {"instance": "queries:split=real,n_positions=3,n_sessions=7"}


@pytest.mark.parametrize(
    ("name", "env_id", "given", "n"),
    [
        ("CascadeVI", "CascadeMDPRank-v0", {}, 200),
        ("TopRank", "QueriesPBMRank-v0", FEW, 7),
        *slow(("TopRank", "QueriesCCMRank-v0", FEW, 7)),
    ],
)
def test_engines_agree_where_users_leave(name, env_id, given, n):
    """The second run has no seed, so its user or query is drawn at random."""
    runs = {}
    for engine, mode in ("compiled", nullcontext), ("python", uncompiled):
        env = gym.make(env_id, **given)
        agent = clickgym.make_agent(name, env, horizon=2 * n, seed=5)
        with mode():
            both = [clickgym.run(agent, env, n, seed=seed, engine=engine) for seed in (5, None)]
        runs[engine] = [(run.regret.tolist(), run.reward.tolist()) for run in both]
    assert runs["compiled"] == runs["python"]


@pytest.mark.parametrize(
    ("kind", "reward", "cutoff"),
    [
        ("PBM", "clicks", 2),
        ("DCM", "satisfaction", None),
        ("DBN", "satisfaction", 2),
        ("DBN", "any_click", 1),
        ("UBM", "any_click", 2),
    ],
)
def test_engines_agree_on_every_reward(kind, reward, cutoff):
    model = MODELS[kind]
    engines.assert_engines_agree(
        lambda: make(AGENT_OF[kind], model, seed=5),
        lambda: ClickEnv(model, reward, cutoff),
        stepping=uncompiled,
    )


@pytest.mark.parametrize("name", ["BatchRank", "CascadeKLUCB", "PBMUCB"])
def test_checkpoints_and_chunks_change_nothing(name):
    """Chunks of the compiled loop vary from the whole run down to single sessions."""
    results, states = [], []
    steps = [], None, [1, 2, 17, 999, 1000, 1001], range(1, 2501)
    for checkpoints, chunk in zip(steps, (10_000, 1, 17, 1000), strict=True):
        agent, env = make(name, PBM, horizon=10), ClickEnv(PBM)
        with engines.chunks_of(chunk):
            results.append(
                clickgym.run(agent, env, 2500, seed=3, checkpoints=checkpoints, engine="compiled")
            )
        states.append(engines.state_of(agent, env))
        assert env.regret == pytest.approx(results[-1].regret[-1])
    every = results[-1]
    for result, state in zip(results, states, strict=True):
        assert state == states[-1]
        assert result.steps[-1] == 2500
        for column in ("regret", "reward", "clicks"):
            np.testing.assert_array_equal(
                getattr(result, column), getattr(every, column)[result.steps - 1]
            )


@pytest.mark.parametrize(
    ("whole", "turns"),
    [(engine, {500: engine, 700: engine}) for engine in ("compiled", "python")]
    + [("auto", {199: "compiled", 200: "python", 201: "compiled"})],
)
def test_runs_continue_one_another(whole, turns):
    """A second run continues from the agent's state and, without a seed, from the state of the
    environment's generator.
    """
    agents, envs = [make("TopRank", PBM) for _ in range(2)], [ClickEnv(PBM) for _ in range(2)]
    clickgym.run(agents[0], envs[0], sum(turns), seed=3, engine=whole)
    for seed, (n_sessions, engine) in zip((3, None, None), turns.items(), strict=False):
        clickgym.run(agents[1], envs[1], n_sessions, seed=seed, engine=engine)
    assert engines.state_of(agents[0], envs[0]) == engines.state_of(agents[1], envs[1])


@pytest.mark.parametrize("kind", MODELS)
def test_regret_is_exact(kind):
    """At each step, the regret equals the difference of the model's exact expectations for the best
    list and the list shown; the reward equals what the clicks earn.
    """
    model = MODELS[kind]
    result, lists, clicks = engines.run_compiled(
        make(AGENT_OF[kind], model), ClickEnv(model), 300, seed=1
    )
    optimum = model.expected_reward(model.optimal_ranking())
    gaps = [optimum - model.expected_reward(shown) for shown in lists]
    assert min(gaps) >= 0
    np.testing.assert_array_equal(result.regret, np.cumsum(gaps))
    assert result.regret[-1] == pytest.approx(math.fsum(gaps), rel=1e-12)
    np.testing.assert_array_equal(result.clicks, np.cumsum([sum(row) for row in clicks]))
    np.testing.assert_array_equal(result.reward, result.clicks)


# ------------------------------------------------------------------------------ which engine serves


class Rotate(Agent):
    """A user's agent, written in plain Python."""

    def __init__(self, n_items: int, n_positions: int, *, seed: object = None) -> None:
        self.items, self.n_positions = np.arange(n_items), n_positions
        self.seen: list[tuple] = []

    def rank(self, observation):
        return self.items[: self.n_positions]

    def update(self, observation, ranking, clicks, reward):
        self.seen.append((observation.tolist(), ranking.tolist(), clicks.tolist(), reward))
        self.items = np.roll(self.items, 1)


class Scaled(LinearTS):
    """A subclass of a published agent that sees other features."""

    def observed_arrays(self, observation):
        return (0.5 * super().observed_arrays(observation)[0],)


class Leaving(TopRank):
    """A subclass of a published agent that is told when users leave."""

    def leave(self):
        self.left = True


class Logged(TopRank):
    """A subclass of a published agent whose Python method does not affect the lists, which the
    class declares.
    """

    kernels_suffice = True

    def update(self, *arguments):
        super().update(*arguments)


class OwnStep(ClickEnv):
    def step(self, action):
        return super().step(action)


def toprank() -> TopRank:
    return TopRank(5, 3, horizon=100, seed=0)


OPAQUE = {
    "Rotate": (lambda: Rotate(5, 3), lambda: ClickEnv(PBM)),
    "Scaled": (
        lambda: Scaled(20, 5, n_features=10, seed=0),
        lambda: gym.make("ContextualPBMRank-v0").unwrapped,
    ),
    "Leaving": (lambda: Leaving(5, 3, horizon=100, seed=0), lambda: ClickEnv(PBM)),
    "TransformReward": (toprank, lambda: TransformReward(ClickEnv(PBM), lambda r: 2 * r)),
    "TimeLimit": (toprank, lambda: gym.wrappers.OrderEnforcing(TimeLimit(ClickEnv(PBM), 7))),
    "RecordRegret": (toprank, lambda: clickgym.RecordRegret(ClickEnv(PBM))),
    "OwnStep": (toprank, lambda: OwnStep(PBM)),
}
"""Pairs that must run in Python, by the part that has to see every step."""


@pytest.mark.uncompiled
@pytest.mark.parametrize("reason", OPAQUE)
def test_opaque_pairs_run_in_python_only(reason):
    make_agent, make_env = OPAQUE[reason]
    with pytest.raises(ValueError, match=f"cannot run .* in .*: .*{reason}"):
        clickgym.run(make_agent(), make_env(), 50, seed=0, engine="compiled")
    result = clickgym.run(make_agent(), make_env(), 50, seed=0)
    assert result.engine == "python"
    assert result.steps[-1] == 50


@pytest.mark.uncompiled
def test_a_class_says_that_its_kernels_suffice():
    agents = Logged(5, 3, horizon=100, seed=0), toprank()
    logged, plain = (clickgym.run(agent, ClickEnv(PBM), 50, seed=0) for agent in agents)
    assert logged.engine == "compiled"
    np.testing.assert_array_equal(logged.regret, plain.regret)


def test_plain_agent_gets_what_the_interface_says():
    """`update` gets the observation that `rank` saw, the list that it returned, the clicks, and the
    reward.
    """
    agent, recorder = Rotate(5, 3), engines.Recorder(ClickEnv(PBM))
    result = clickgym.run(agent, recorder, 30, seed=0)
    observations, rankings, clicks, rewards = zip(*agent.seen, strict=True)
    assert list(observations) == [[0, 0, 0], *recorder.clicks[:-1]]
    assert list(rankings) == recorder.lists
    assert list(clicks) == recorder.clicks
    assert list(rewards) == [float(sum(row)) for row in recorder.clicks]
    assert result.agent == "Rotate"


# --------------------------------------------------------------- users who leave, change; and room


LEAVING = "clickbait:n_items=6,n_positions=2,n_states=3,mean_sessions=8"


class Listener(Rotate):
    """An agent that records its calls: the clicks it observes, each session, and each user who
    leaves.
    """

    def __init__(self, n_items: int, n_positions: int, *, seed: object = None) -> None:
        super().__init__(n_items, n_positions)
        self.told: list[object] = []

    def rank(self, observation):
        self.told.append(int(np.sum(observation["clicks"])))
        return super().rank(observation)

    def update(self, observation, ranking, clicks, reward):
        self.told.append("session")
        self.items = np.roll(self.items, 1)

    def leave(self):
        self.told.append("leave")


@pytest.mark.parametrize("limit", [None, 3])
def test_an_agent_is_told_when_its_user_leaves(limit):
    """`leave` is called before the first session, and after the last session of each user or
    episode. The clicks of this last session are not part of the next user's first observation.
    """
    env = gym.make("CascadeMDPRank-v0", instance=LEAVING).unwrapped
    recorder = engines.Recorder(env if limit is None else TimeLimit(env, limit))
    agent = Listener(env.model.n_items, env.model.n_positions)
    clickgym.run(agent, recorder, 100, seed=1)
    expected: list[object] = ["leave"]
    shown = 0
    for clicks, is_over in zip(recorder.clicks, recorder.ends, strict=True):
        expected += [shown, "session", *(["leave"] if is_over else [])]
        shown = 0 if is_over else sum(clicks)
    assert agent.told == expected
    assert 5 < agent.told.count("leave") < 60


@pytest.mark.parametrize("engine", ["compiled", "python"])
def test_users_change_at_their_session(engine):
    """The regret of each session is computed for the users of that session, and chunks end where
    users change.
    """
    models = [PositionBasedModel(PBM.attraction[::step], PBM.examination) for step in (1, -1)]
    env = ClickEnv(PiecewiseStationaryModel([*models, models[0]], [0, 70, 71]))
    fixed = Fixed(5, 3, ranking=[1, 3, 4])
    result = clickgym.run(fixed, env, 100, seed=0, checkpoints=range(1, 101), engine=engine)
    gap, other = (
        model.expected_reward(model.optimal_ranking()) - model.expected_reward(np.array([1, 3, 4]))
        for model in models
    )
    np.testing.assert_allclose(np.diff(result.regret, prepend=0), 70 * [gap] + [other] + 29 * [gap])


# ---------------------------------------------------------------------------------------- bad lists


@kernel
def show_written(state, rng, ranking):
    """From session 1500 on, show the list held in the second half of the state."""
    state.items[0] += 1
    n = len(ranking)
    start = 1 + (n if state.items[0] > 1500 else 0)
    for k in range(n):
        ranking[k] = state.items[start + k]


class CompiledBad(CompiledAgent):
    """A user's compiled agent that shows valid lists for 1500 sessions, then a bad one."""

    paper = "none"
    state_type = ListState
    rank_kernel = show_written
    update_kernel = learn_nothing

    def __init__(
        self, n_items: int, n_positions: int, *, bad: list[int], seed: int | None = None
    ) -> None:
        super().__init__(n_items, n_positions, seed, bad=bad)

    def first_values(self) -> dict[str, Any]:
        return {"items": np.array([0, *range(self.n_positions), *self.hyperparameters["bad"]])}


class PlainBad(Agent):
    """The same agent in plain Python; ``bad`` may be anything."""

    def __init__(self, n_items: int, n_positions: int, *, bad: Any) -> None:
        self.bad, self.t = bad, 0

    def rank(self, observation):
        self.t += 1
        return np.arange(3) if self.t <= 1500 else self.bad

    def update(self, observation, ranking, clicks, reward): ...


FAULTS = {
    "position 2 shows item 0 again": [0, 1, 0],
    "items are 0 to 4": [0, 5, 1],
    "": [-1, 0, 1],
    "a ranking holds integers": [0.0, 1.0, 2.0],
    "a ranking has shape": [0, 1],
}
BAD = [(PlainBad, fault) for fault in FAULTS]
BAD += [(CompiledBad, fault) for fault in FAULTS if "a ranking" not in fault]


@pytest.mark.parametrize(("kind", "fault"), BAD)
def test_bad_list_is_refused_in_mid_run(kind, fault):
    """Both engines reject the list in the same words, which name the agent, the step (counted from
    1) and the fault.
    """
    agent = kind(5, 3, bad=FAULTS[fault])
    with pytest.raises(clickgym.AgentError, match=rf"^{kind.__name__}, step 1501: .*{fault}"):
        clickgym.run(agent, ClickEnv(PBM), 3000, seed=0, checkpoints=[1250])


@pytest.mark.parametrize("engine", ["compiled", "python"])
def test_a_stopped_run_can_go_on(engine):
    """After Ctrl-C, agent and environment are as after a run of the sessions played so far."""
    pairs, played = [(make("TopRank", PBM), ClickEnv(PBM)) for _ in "ab"], []

    def stop(sessions):
        played.append(sessions)
        if len(played) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        engines.run_reporting(*pairs[0], 10**7, seed=0, engine=engine, on_chunk=stop)
    clickgym.run(*pairs[1], sum(played), seed=0)
    assert engines.state_of(*pairs[0]) == engines.state_of(*pairs[1])


# ---------------------------------------------------------------------------------------- long runs


def peak_memory(horizon: int) -> int:
    agent, env = make("Random", PBM), ClickEnv(PBM)
    clickgym.run(agent, env, 10, seed=0, engine="compiled")
    tracemalloc.start()  # sees only what is allocated from now on
    clickgym.run(agent, env, horizon, seed=0, engine="compiled")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def test_memory_does_not_grow_with_the_horizon():
    """A longer run takes less than 0.2 bytes more per session. The first call only compiles."""
    peak_memory(10_000)
    assert peak_memory(1_000_000) < peak_memory(10_000) + 190_000


@pytest.mark.uncompiled
def test_clicks_can_be_counted_in_plain_python():
    """Counts do not overflow at 127, although observations have the type int8."""

    class Counting(Rotate):
        count = 0

        def update(self, observation, ranking, clicks, reward):
            self.count += clicks[0]

    env = gym.make("PBMRank-v0", attraction=[0.9, 0.9], examination=[1.0])
    agent = Counting(2, 1)
    result = clickgym.run(agent, env, 400, seed=0)
    assert agent.count == result.clicks[-1] > 300
