"""Tests of metrics against plain Python over recorded lists, on both engines, and of what happens
if a metric is not requested or unknown.
"""

from __future__ import annotations

import importlib
import sys
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pytest
from polars.testing import assert_frame_equal

import clickgym
from clickgym import envs
from clickgym.agents import Agent, Oracle
from clickgym.measure.metrics import METRICS, Metric
from tests.helpers.engines import Recorder
from tests.helpers.judged_queries import ndcg, with_test
from tests.reference_agents.models import MODELS, make
from tests.runner.test_errors import PBM, GivingUp

pytestmark = [pytest.mark.uncompiled, pytest.mark.usefixtures("undrawn")]

INITIAL = np.array([3, 1, 0, 4, 2])
HORIZON = 150
ALL = [name for name, metric in METRICS.items() if metric.kernel]


CHANGING = [
    envs.PositionBasedModel(attraction, [0.9, 0.4, 0.6])
    for attraction in ([0.2, 0.7, 0.1, 0.5, 0.3], [0.5, 0.5, 0.1, 0.1, 0.5], [0.0] * 5)
]
"""Users whose attractions are equal in the second epoch, so that a tie is not a wrong pair, and
whose attractions are all 0 in the third.
"""
PROBLEMS: dict[str, envs.ClickModel] = {
    **MODELS,
    "mixture": envs.MixtureModel([MODELS["PBM"], MODELS["DBN"]], [0.3, 0.7]),
    "changing": envs.PiecewiseStationaryModel(CHANGING, starts=[0, 41, 100]),
}


def with_initial(model: envs.ClickModel, **arguments: Any) -> envs.ClickEnv:
    env = envs.ClickEnv(model, **arguments)
    env.initial_ranking = INITIAL
    return env


def wrong_pairs(attraction: np.ndarray, ranking: list[int]) -> int:
    return sum(attraction[below] > attraction[above] for above, below in combinations(ranking, 2))


def plain(name: str, model: Any, ranking: list[int], clicks: list[int], n: int) -> float:
    """Return the value of a metric in one session by definition, from the stationary model of the
    session's epoch.
    """
    attraction = model.attraction
    if name == "any_click":
        return float(sum(clicks) > 0)
    if name.startswith("ndcg"):
        return ndcg(attraction[ranking], attraction, 10 if name == "ndcg@10" else 5)
    if name == "violations":
        initial = INITIAL[:n].tolist()
        return float(wrong_pairs(attraction, ranking) > wrong_pairs(attraction, initial) + n / 2)
    raise AssertionError(f"plain has no definition of {name}")


KINDS = [
    pytest.param(kind, marks=[pytest.mark.compiled] * (kind in ("PBM", "changing")))
    for kind in PROBLEMS
]


@pytest.mark.parametrize("kind", KINDS)
def test_metrics_are_their_definitions_on_both_engines(kind):
    model = PROBLEMS[kind]
    steps = np.arange(1, HORIZON + 1)
    recorder = Recorder(with_initial(model))
    options = {"seed": 3, "checkpoints": steps, "metrics": ALL}
    python, compiled = (
        clickgym.run(make("Random", model), env, HORIZON, engine=engine, **options)
        for engine, env in (("python", recorder), ("auto", with_initial(model)))
    )
    assert (python.engine, compiled.engine) == ("python", "compiled")
    assert list(python.metrics) == list(compiled.metrics) == ALL
    numbers = np.searchsorted(model.starts, range(HORIZON), side="right") - 1
    sessions = [*zip(numbers, recorder.lists, recorder.clicks, strict=True)]
    for name in ALL:
        values = [
            plain(name, model.epochs[number], *session, model.n_positions)
            for number, *session in sessions
        ]
        sums = np.cumsum(values)
        np.testing.assert_allclose(python.metrics[name], sums, rtol=1e-12, err_msg=name)
        np.testing.assert_array_equal(python.metrics[name], compiled.metrics[name], err_msg=name)
        varies = 0 < python.metrics[name][-1] < HORIZON
        constant = f"{name} is the same in all sessions, or leaves 0 to 1"
        assert varies or (name, kind) == ("violations", "changing"), constant


FALLING, WITH_TIES = [0.5, 0.4, 0.3], [0.9, 0.6, 0.3, 0.3, 0.3]


LISTS = [
    # |V_0| = 1, K = 3: more than 2.5 wrong pairs violate, which only (2, 1, 0) has.
    (FALLING, [1, 0, 2], [[0, 1, 2], [1, 2, 0], [2, 0, 1]], [[2, 1, 0]]),
    (FALLING, [2, 0, 1], [[2, 1, 0]], []),  # |V_0| = 2: 3 is not more than 3.5
    # only shown pairs: K = 2, |V_0| = 0, 1 is not more than 1
    (FALLING, [1, 2, 0], [[2, 1]], []),
    # K = 3 of 5, |V_0| = 0: three equal items have no wrong pair; two of them above the best
    # have two, more than 1.5.
    (WITH_TIES, range(5), [[2, 3, 4], [4, 3, 2]], [[3, 2, 0]]),
]


@pytest.mark.parametrize(("attraction", "initial", "harmless", "violating"), LISTS)
def test_wrong_pairs_by_hand(attraction, initial, harmless, violating):
    for ranking in harmless + violating:
        env = envs.ClickEnv(envs.CascadeModel(attraction, n_positions=len(ranking)))
        env.initial_ranking = np.array(initial)
        agent = Oracle(len(attraction), len(ranking), ranking=ranking)
        result = clickgym.run(agent, env, 10, seed=0, metrics=["violations"])
        assert result.metrics["violations"][-1] == 10 * (ranking in violating)


@pytest.mark.parametrize("name", [name for name, metric in METRICS.items() if metric.context])
def test_metrics_of_users_with_a_memory(name, tmp_path):
    """These metrics raise an error. They compare with the best list before the first session, but
    if users have a memory, the optimum V* differs between states.
    """
    env, out = "CascadeMDPRank-v0", tmp_path / "out"
    with pytest.raises(ValueError, match="requires the same items and users"):
        clickgym.run("TopRank", env, 10, seed=0, metrics=["any_click", name])
    with pytest.raises(ValueError, match="requires the same items and users"):
        clickgym.sweep([env], ["TopRank"], 10, 1, out=out, metrics=[name])
    assert not out.exists()


# ------------------------------------------------------------------------------ judged items


JUDGED = ["ndcg@1", "ndcg@2", "ndcg@10", "held_out_ndcg@3"]


def test_metrics_of_judged_items_on_both_engines(tmp_path):
    """In a user's own loop, the metrics are the nDCG of the list shown among the candidates, and
    the nDCG of the agent's current best lists for the held-out queries.
    """
    (env, _), horizon, shown, held_out = with_test(tmp_path), 150, [], []
    model, agent = env.unwrapped.model, clickgym.make_agent("PDGD", env, seed=2)
    observation, info = env.reset(seed=1)
    for _ in range(horizon):
        ranking, candidates = agent.rank(observation), info["next_candidates"]
        np.testing.assert_array_equal(observation["features"], model.items[candidates])
        before, (observation, reward, _, _, info) = observation, env.step(ranking)
        agent.update(before, ranking, observation["clicks"], reward)
        gains = model.gain[candidates]
        shown.append([ndcg(gains[ranking], gains, k) for k in (1, 2, 3)])
        values = [
            ndcg(model.gain[items][agent.best(model.items[items])], model.gain[items], 3)
            for items in model.held_out
            if model.gain[items].any()
        ]
        held_out.append(np.mean(values))
    assert len(set(held_out)) > 2
    options = {"seed": 1, "metrics": JUDGED, "checkpoints": range(1, horizon + 1)}
    for engine in ("auto", "python"):
        agent = clickgym.make_agent("PDGD", env, seed=2)
        found = clickgym.run(agent, env, horizon, engine=engine, **options).metrics
        of_lists = np.transpose([found[metric] for metric in JUDGED[:3]])
        np.testing.assert_allclose(of_lists, np.cumsum(shown, axis=0), rtol=1e-12)
        np.testing.assert_allclose(found[JUDGED[3]], held_out, rtol=1e-12)


class Reverses(Agent):
    """Reverses the list that it returned once it has learned from the list's clicks."""

    def __init__(self, n_items, n_positions, *, seed=None):
        self.ranking = list(range(n_positions))

    def rank(self, observation):
        return self.ranking

    def update(self, observation, ranking, clicks, reward):
        self.ranking.reverse()


class Repeats(Reverses):
    """An agent whose best list is no order of the candidates."""

    def best(self, features):
        return [0] * len(features)


def test_an_agent_that_cannot_rank_held_out_queries(tmp_path):
    """An agent without a ranking method raises an error before the first session. An agent that
    returns an invalid order raises an error at the first checkpoint.
    """
    (env, _), names = with_test(tmp_path), ["held_out_ndcg@3"]
    judged = {"instances": [tmp_path / "judged.json"], "n_jobs": 1, "metrics": names}
    judged |= {"out": tmp_path / "out", "horizon": 20, "runs": 1}
    for agent, error, message in (
        ("Random", ValueError, r"cannot rank .* best\(features\)"),
        (Repeats, clickgym.AgentError, r"step 1: .*expected a permutation of its \d"),
    ):
        with pytest.raises(error, match=message):
            clickgym.run(agent, env, 20, metrics=names)
        with pytest.raises(error, match=message):
            clickgym.sweep(["ContextualDBNRank-v0"], {"PDGD": "PDGD", "mine": agent}, **judged)
        assert (tmp_path / "out").exists() == (agent is Repeats)


class Candidates(NamedTuple):
    gain: np.ndarray
    items: np.ndarray


@envs.kernel
def first_gain(context, ranking, clicks, expectation):
    return context.gain[context.items[ranking[0]]]


@envs.kernel
def first_item(context, ranking, clicks, expectation):
    return float(context[0][0, ranking[0]])


CONTEXTS = [
    (first_gain, lambda env, b: Candidates(*env.task.gains(env.state, b))),
    (first_item, lambda env, b: (env.state.items, 1.0)),
]


@pytest.mark.parametrize(("measure", "context"), CONTEXTS)
def test_a_metric_of_ones_own_knows_the_candidates_of_its_session(monkeypatch, measure, context):
    """Both engines give the same values, although a step of the environment already draws the
    candidates of the next session. The context may be a named tuple of views of the state, or a
    plain tuple of whole arrays.
    """
    monkeypatch.setitem(METRICS, "first", Metric("the first item", measure, context))
    play = partial(clickgym.run, "LinearTS", "ContextualPBMRank-v0", 100, seed=1)
    one, other = (play(metrics=["first"], engine=it) for it in ("compiled", "python"))
    assert one.metrics["first"].tolist() == other.metrics["first"].tolist()


@envs.kernel
def first_value(context, ranking, clicks, expectation):
    return context[ranking[0]]


FAULTS = {"ContextualPBMRank-v0": "is nan", "QueriesPBMRank-v0": "no attribute"}


@pytest.mark.parametrize("env", FAULTS)
def test_a_metric_that_reads_parameters_which_differ_between_sessions(monkeypatch, env):
    metric = Metric("of the first item", first_value, lambda env, b: env.task.model.attraction)
    monkeypatch.setitem(METRICS, "first", metric)
    with pytest.raises(ValueError, match=f"{FAULTS[env]}.*says what a metric can read"):
        clickgym.run("Random", env, 9, metrics=["first"])


def test_metrics_are_of_the_list_that_was_shown():
    shown = Recorder(envs.ClickEnv(MODELS["PBM"]))
    result = clickgym.run(Reverses, shown, 9, seed=0, metrics=["ndcg"], checkpoints=range(1, 10))
    values = [plain("ndcg", MODELS["PBM"], list(ranking), [], 0) for ranking in shown.lists]
    assert len(set(values)) == 2
    np.testing.assert_allclose(result.metrics["ndcg"], np.cumsum(values))


OWN = """
from clickgym.envs import kernel
from clickgym.runner import Metric

FROM = 0

@kernel
def clicks_from(context, ranking, clicks, expectation):
    for k in range(context, len(clicks)):
        if clicks[k]:
            return 0.0
    return 1.0

about = "sessions without a click"
no_click = Metric(about, clicks_from, lambda env, b: FROM, 0, True, less_is_better=True)
"""


@pytest.mark.parametrize(("agent", "label"), [("Random", ""), (Reverses, "none")])
def test_a_metric_of_ones_own_by_name(write, tmp_path, agent, label):
    """Threads and worker processes know the metric, and the value that a program sets in its
    module. An edit of the module, or another value, makes another sweep. A label is the name of the
    column.
    """
    write(own_metric=OWN)
    name, out = "own_metric:no_click", tmp_path / "out"
    column, name = label or name, f"{label}={name}".lstrip("=")
    sweep = partial(clickgym.sweep, ["PBMRank-v0"], {"it": agent}, 50, out=out, n_jobs=2)
    rows = sweep(runs=2, metrics=["any_click", name]).rows.filter(step=50)
    assert (rows["any_click"] + rows[column]).to_list() == [50, 50]
    assert clickgym.Results(out).table()[column].item() == pytest.approx(rows[column].mean() / 50)
    assert clickgym.Results(out).less_is_better(column)
    own = importlib.import_module("own_metric")
    own.FROM = 2
    with pytest.raises(ValueError, match=r"own_metric:no_click is not the same, .*:FROM has"):
        sweep(runs=2, metrics=["any_click", name])
    lower = sweep(runs=2, metrics=["any_click", name], overwrite=True).rows.filter(step=50)
    assert lower[column].sum() > rows[column].sum()
    own.FROM = 0
    write(own_metric=OWN.replace("return 1.0", "return 2.0 / 2.0"))
    with pytest.raises(ValueError, match=r"because own_metric has changed"):
        sweep(runs=2, metrics=["any_click", name])
    mapping = {column: "own_metric:no_click", "ndcg": "ndcg"}
    for metrics in ([name, "ndcg"], mapping if label else [name, "ndcg"]):
        assert [*clickgym.run(agent, "PBMRank-v0", 9, metrics=metrics).metrics] == [column, "ndcg"]
    wrong = "has the label 'ndcg'|has a label, but only|has the name of a column|no label before"
    own = [f"{label}=own_metric:no_click" for label in ("ndcg", "step", "p", "a_ci95")]
    for name in (*own, "share=any_click", "=ndcg"):
        with pytest.raises(ValueError, match=wrong):
            clickgym.run(agent, "PBMRank-v0", 9, metrics=[name])


clicks = later = Metric("clicks", lambda context, ranking, clicks, expected: clicks.sum() * 1.0)
nothing = Metric("nan", lambda context, ranking, clicks, expected: np.nan if clicks[0] else 0.0)
several = Metric("several numbers", lambda context, ranking, clicks, expected: clicks)
beyond = Metric(
    "an index", lambda context, ranking, clicks, expected: 1.0 * clicks[clicks.sum() * 5]
)


def attraction(env, b):
    return env.task.model.attraction


after = Metric("an index", lambda context, ranking, *_: context[ranking[0] + 1], attraction)
first_attraction = Metric("nan", lambda context, ranking, *_: context[ranking[0]] > 0.1, attraction)
vague = Metric("no arrays", later.kernel, lambda env, b: env.model)
divides = Metric("an error", lambda context, ranking, clicks, expected: 1.0 / clicks.sum())
short = Metric("an error", lambda clicks: 1.0)
twos = Metric("no share", lambda context, ranking, clicks, expected: 2.0, is_share=True)
faulty = Metric("an error", lambda context, ranking, clicks, expected: 1.0 / (1 - int(clicks[0])))


def test_a_metric_that_is_no_share():
    metrics = {"two": f"{__name__}:twos"}
    results = clickgym.sweep(["PBMRank-v0"], ["Random"], 9, 1, metrics=metrics, progress=False)
    assert "The mean of two is 2, although is_share=True" in str(results)


def test_a_metric_whose_context_is_nan_is_named():
    """Each session of a contextual environment has its own candidates, so the model has none."""
    env, name = "ContextualPBMRank-v0", f"{__name__}:first_attraction"
    with pytest.warns(UserWarning, match=f"'{name}' in {env} contains nan, and every comparison"):
        clickgym.sweep([env], ["Random"], 9, 1, metrics=[name], n_jobs=1, progress=False)


@pytest.mark.parametrize("engine", ["compiled", "python"])
def test_an_error_of_a_metric_names_the_metric(engine):
    """A metric that returned nan is not blamed for the error of an agent. Before the first session,
    lists of the first and of the last items, without and with a click, show faults.
    """
    names = [f"{__name__}:{name}" for name in ("clicks", "faulty", "later", "nothing")]
    with pytest.raises(envs.SessionError, match=r"^the metric [^ ]*:faulty: ZeroDivisionError"):
        clickgym.run("Random", "PBMRank-v0", 99, metrics=names, engine=engine)
    for name, message in (
        ("vague", r"^the context of the metric .*; expected numbers, arr"),
        ("several", r":several' returned .* with the clicks \[0, 0, 0, 0, 0\]; expected"),
        ("beyond", r":beyond' failed in \S+ for .* with the clicks \[0, 0, 0, 0, 1\]: IndexErr"),
        ("after", r":after' failed in \S+ for the list \[9, 8, 7, 6, 5\] with .*: IndexError"),
        ("divides", r"\[0, 0, 0, 0, 0\]: .*by zero .*test_metrics.py:\d+ in"),
        ("short", r"takes \(clicks\); expected \(context, ranking, clicks, expectation\)"),
    ):
        with pytest.raises(ValueError, match=message):
            clickgym.run("Random", "PBMRank-v0", 9, metrics=[f"{__name__}:{name}"], engine=engine)
    with pytest.raises(clickgym.AgentError, match=r"^GivingUp in ClickEnv"):
        clickgym.run(GivingUp(4, 2), envs.ClickEnv(PBM), 999, engine=engine, metrics=names[3:])


def test_a_report_imports_no_metric(write, tmp_path, monkeypatch):
    """Neither a report nor a table imports a module that a results folder names. A figure without
    the module still knows that the metric is a share.
    """
    write(own_metric=OWN)
    name = "no_click=own_metric:no_click"
    results = clickgym.sweep(["CMRank-v0"], ["Random"], 50, 2, metrics=[name], out=tmp_path / "out")
    table = results.table()
    monkeypatch.delitem(sys.modules, "own_metric")
    later = clickgym.Results(tmp_path / "out")
    assert_frame_equal(later.table(), table)
    later.report(tmp_path / "again")
    assert r"no\_click" in later.to_latex()
    [axes] = later.plot(measures=["no_click"]).axes
    assert axes.get_ylabel() == "sessions without a click"
    [band] = axes.collections[0].get_paths()
    assert ((band.vertices[:, 1] >= 0) & (band.vertices[:, 1] <= 1)).all()
    assert "own_metric" not in sys.modules


def test_metrics_in_a_sweep(tmp_path):
    """Metrics of a sweep are stored and resumed exactly as in single runs."""
    env, _ = with_test(tmp_path)
    options = {"instances": [tmp_path / "judged.json"], "n_jobs": 1}
    options |= {"metrics": JUDGED, "checkpoints": [50], "out": tmp_path / "out"}
    for runs in (1, 4):  # the runs after the first are played together
        results = clickgym.sweep(["ContextualDBNRank-v0"], ["PDGD"], 100, runs, **options)
    last = results.rows.filter(step=100)
    for row in last.iter_rows(named=True):
        alone = clickgym.run("PDGD", env, 100, seed=row["seed"], metrics=JUDGED)
        assert [row[metric] for metric in JUDGED] == [alone.metrics[m][-1] for m in JUDGED]
    assert last["held_out_ndcg@3"].n_unique() > 1
