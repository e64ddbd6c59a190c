"""`clickgym.tune` and ``clickgym tune``: the same result on any number of workers and after any stop, within the budget."""

import hashlib
import inspect
import json
import math
import signal
import subprocess
import sys
from types import SimpleNamespace

import joblib
import numpy as np
import polars
import pytest

import clickgym
from clickgym.agents import Agent, Range
from clickgym.command_line import main
from clickgym.runner import tuning
from clickgym.runner.callback import Callback
from clickgym.runner.commands.tune import _verdict
from clickgym.runner.sampler import Sampler

pytest.importorskip("optuna")

SMALL = {"envs": ["PBMRank-v0"], "budget": 6000, "horizon": 100, "runs": 2, "progress": False}


def tune(agent="EpsilonGreedy", **arguments):
    return clickgym.tune(agent, **SMALL | {"n_jobs": 1} | arguments)


class Stop(Callback):
    """Stops after so many runs, as Ctrl-C does, or at once, as a kill."""

    def __init__(self, after, kill=False):
        self.after, self.kill = after, kill

    def finished(self, trial, frame, counted):
        self.after -= 1
        if self.after == 0:
            if self.kill:
                signal.raise_signal(signal.SIGKILL)
            raise KeyboardInterrupt


class Record(Callback):
    def __init__(self):
        self.trials, self.batches = [], []

    def finished(self, trial, frame, counted):
        self.trials.append(trial)

    def batch(self, trials, sessions):
        self.batches.append((len(trials), sessions))


@pytest.fixture(scope="module")
def recorded():
    record = Record()
    return tune(callback=record), len(record.trials)


@pytest.fixture(scope="module")
def reference(recorded):
    return recorded[0]


@pytest.fixture(scope="module")
def runs(recorded):
    """How many runs the reference has."""
    return recorded[1]


# ----------------------------------------------------------------------------------------------------------- one result


def test_the_result_is_an_agent_that_can_be_typed(reference):
    assert reference.agent.startswith("EpsilonGreedy:epsilon=")
    assert reference.hyperparameters == {"epsilon": float(reference.agent.partition("=")[2])}
    assert reference.hyperparameters["epsilon"] in Range(0.001, 0.5)
    assert reference.score <= reference.trials["final_score"].min()
    assert reference.default_score in reference.trials["final_score"].to_list()
    assert clickgym.run(reference.agent, "PBMRank-v0", 10, seed=0).agent == "EpsilonGreedy"


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_the_table_does_not_depend_on_the_workers(reference, backend):
    with joblib.parallel_config(backend=backend):
        assert tune(n_jobs=2).trials.equals(reference.trials)


@pytest.mark.slow
def test_dask_gives_the_same_table(reference):
    distributed = pytest.importorskip("distributed")
    with distributed.Client(n_workers=2, threads_per_worker=1, dashboard_address=None), joblib.parallel_config(backend="dask"):
        assert tune(n_jobs=2).trials.equals(reference.trials)


@pytest.mark.parametrize("place", [0.01, 0.5, 0.99], ids=["random lists", "search", "final"])
def test_what_was_stopped_goes_on_and_ends_the_same(reference, runs, tmp_path, place):
    after = math.ceil(place * runs)
    with pytest.raises(KeyboardInterrupt):
        tune(out=tmp_path, callback=Stop(after))
    rest, again = Record(), Record()
    assert tune(out=tmp_path, callback=rest).trials.equals(reference.trials)
    assert len(rest.trials) == runs - after
    assert sorted(path.name for path in tmp_path.iterdir()) == ["trials.parquet", "tuning.json"]
    assert repr(tune(out=tmp_path, callback=again)) == repr(reference)
    assert not again.trials


@pytest.mark.slow
def test_what_was_killed_goes_on_and_ends_the_same(reference, tmp_path):
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path.parent)!r}); sys.path.insert(0, {__file__.rpartition('/')[0]!r})\n"
        "from test_tuning import Stop, tune\n"
        f"tune(out={str(tmp_path / 'killed')!r}, callback=Stop(13, kill=True))\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -signal.SIGKILL
    assert any(path.name.startswith("runs-") for path in (tmp_path / "killed").iterdir())
    assert tune(out=tmp_path / "killed").trials.equals(reference.trials)


def test_a_larger_budget_goes_on_with_the_search(reference, tmp_path):
    first = tune(out=tmp_path, budget=3000)
    second = tune(out=tmp_path, budget=6000)
    search = [name for name in first.trials.columns if not name.startswith("final")]
    assert second.trials.select(search)[: len(first.trials)].equals(first.trials.select(search))
    assert len(second.trials) > len(first.trials)
    assert first.sessions <= 3000 < second.sessions <= 6000
    assert repr(tune(out=tmp_path, budget=2900)) == repr(second)


def test_the_budget_counts_every_session(reference):
    record = Record()
    tune(callback=record)
    assert reference.sessions == 100 * len(record.trials) <= 6000
    assert set(reference.trials.filter(polars.col("state") == "pruned")["sessions"]) == {100}  # after one of two runs
    assert set(reference.trials.filter(polars.col("state") == "complete")["sessions"]) == {200}
    assert [n for n, _ in record.batches] == [8 * (place + 1) for place in range(len(record.batches))]
    assert record.batches[-1][1] <= 0.75 * 6000


def test_no_seed_of_a_tuning_is_one_of_a_sweep(monkeypatch):
    seeds, play = set(), tuning.play_into

    def watch(out, job, *others):
        seeds.add(job.work.seed)
        return play(out, job, *others)

    monkeypatch.setattr(tuning, "play_into", watch)
    record = Record()
    for seed in (0, 1):
        tune(seed=seed, budget=2500, callback=record)
    assert len(seeds) == 4  # of the search and of the final, for each
    trials = list(dict.fromkeys(record.trials))
    of_tuning = {each for seed in seeds for trial in trials for each in trial.seeds(seed)}
    of_sweeps = {each for seed in range(50) for trial in trials for each in trial.seeds(seed)}
    assert len(of_tuning) == 2 * 4 * len(trials)
    assert not of_tuning & of_sweeps


def played_again(result, envs, instances, horizon, runs):
    """The regrets of the trials of a search, and of random lists, by a sweep with its seed."""
    agents, seed = [*result.trials["agent"], "Random"], int.from_bytes(hashlib.sha256(b"clickgym.tune search 0").digest()[:8])
    some = {"seed": seed, "instances": instances, "checkpoints": [horizon], "progress": False}
    return clickgym.sweep(envs, agents, horizon, runs, **some).frame


def test_the_score_is_the_regret_as_a_share_of_that_of_random_lists():
    envs, instances, horizon = ["PBMRank-v0", "CMRank-v0"], ["uniform:seed=1", "uniform:seed=2"], 100
    result = tune("EpsilonGreedy:epsilon={0.2,0.3}", envs=envs, instances=instances, horizon=horizon, budget=9000)
    frame = played_again(result, envs, instances, horizon, 2)
    means = {key: rows["regret"].mean() for key, rows in frame.group_by("agent", "env", "instance")}
    for row in result.trials.iter_rows(named=True):
        ratios = [
            means[row["agent"], env, name] / means["Random", env, name] for env in envs for name in result.config["instances"]
        ]
        assert math.prod(ratios) ** (1 / 4) == pytest.approx(row["score"], rel=1e-12)
        assert row["after_2"] == row["score"]
    assert result.config["instances"] == ["uniform:seed=1", "uniform:seed=2"]


def test_by_the_worse_half_the_score_is_of_the_runs_that_lose_most_in_each_place(tmp_path):
    instances, horizon, runs = ["uniform:seed=1", "uniform:seed=2"], 100, 5
    some = {"instances": instances, "runs": runs, "budget": 20_000, "out": tmp_path, "by": "worse_half"}
    result = tune("EpsilonGreedy:epsilon={0.2,0.9}", **some)
    frame = played_again(result, ["PBMRank-v0"], instances, horizon, runs)
    losses = {key: sorted(rows["regret"], reverse=True) for key, rows in frame.group_by("agent", "instance")}
    whole = result.trials.filter(state="complete")
    assert not whole.is_empty()
    for agent, score, *others in whole.select("agent", "score", "ci95", "final_ci95").iter_rows():
        ratios = [math.fsum(losses[agent, name][:3]) / 3 / (math.fsum(losses["Random", name]) / runs) for name in instances]
        assert math.sqrt(math.prod(ratios)) == pytest.approx(score, rel=1e-12)
        assert others == [None, None]
    assert result.config["by"] == "worse_half"
    with pytest.raises(ValueError, match="by: 'worse_half' there, 'mean' now"):
        tune("EpsilonGreedy:epsilon={0.2,0.9}", **some | {"by": "mean"})


# ------------------------------------------------------------------------------------------------------- what is searched


def test_a_small_space_is_searched_whole():
    result = tune("EpsilonGreedy:epsilon={0.01,0.02,0.1,0.3,0.4,0.5,0.6,0.7,0.8,0.9}", budget=9000)
    assert result.trials["agent"][0] == "EpsilonGreedy"
    assert sorted(map(float, result.trials["param_epsilon"])) == [0.01, 0.02, 0.1, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    assert len(result.trials) == 10
    assert result.trials["final_runs"].max() <= 100


def test_a_default_that_follows_from_the_horizon_is_tried_first():
    result = tune("TopRank", budget=3000)
    assert result.trials.select("agent", "param_delta").row(0) == ("TopRank", None)
    assert result.default_score is not None


class Pair(Agent):
    search_space = {"low": (0, 1, 2, 3), "high": Range(0, 3), "name": ["a", "b"], "wide": [None, [1, 2]]}  # noqa: RUF012

    def __init__(self, n_items, n_positions, *, low=0, high=1, name="a", wide=None, seed=None):
        if low >= high:
            raise ValueError(f"low is {low}; expected less than high = {high}")
        self.rng, self.n_items, self.n_positions = np.random.default_rng(seed), n_items, n_positions

    def rank(self, observation):
        return self.rng.permutation(self.n_items)[: self.n_positions]

    def update(self, observation, ranking, clicks, reward):
        pass


def test_values_that_do_not_go_together_are_not_tried():
    with pytest.raises(ValueError, match="Pair cannot be searched with low = 3: low is 3; expected less than high = 1"):
        tune(Pair, budget=1500, horizon=20)
    space = Pair.search_space | {"low": [0, 1, 2], "high": [1, 2, 3]}
    result = tune(Pair, budget=1500, horizon=20, search_space=space)
    pairs = result.trials.select("param_low", "param_high").rows()
    assert all(int(low) < int(high) for low, high in pairs)
    assert result.trials["agent"].n_unique() == len(result.trials)


def test_an_agent_without_a_name_has_a_label():
    result = tune({"mine": lambda n_items, n_positions, alpha=1, seed=None: Pair(n_items, n_positions, seed=seed)},
                  search_space={"alpha": [1, 2]}, budget=1500, horizon=20)  # fmt: skip
    assert result.trials["agent"].to_list() == ["mine", "mine alpha=2"]


def test_the_sampler_proposes_what_can_be_typed():
    space = {"a": Range(0.001, 10.0, log=True), "b": Range(0.0, 3.0), "c": Range(1, 9), "d": (1, 2, 4), "e": ("x", [1, 2])}
    sampler = Sampler(space, 0)
    proposals = [values for (values, _), _ in zip(sampler.ask(), range(40), strict=False)]
    assert all(len(f"{values['a']:.10g}".replace("0.", "").lstrip("0")) <= 4 for values in proposals)
    assert all(values["b"] == round(values["b"], 2) for values in proposals)
    for key, entries in space.items():
        assert all(values[key] in entries for values in proposals)
    assert all(len({str(values[key]) for values in proposals}) > 1 for key in space)


def test_a_trial_is_given_up_if_it_is_worse_than_the_median():
    space = {"a": Range(0.0, 9.0)}
    sampler = Sampler(space, 0)
    for place in range(4):
        sampler.tell({"a": float(place)}, [0.1 * (place + 1), 0.1], complete=True)
    assert not sampler.gives_up([0.9])
    sampler.tell({"a": 5.0}, [0.5, 0.1], complete=True)
    sampler.tell({"a": 6.0}, [0.01], complete=False)
    assert sampler.gives_up([0.31])
    assert not sampler.gives_up([0.29])


# ------------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"agent": "BatchRank"}, "BatchRank has no hyper-parameters: there is nothing to tune"),
        ({"budget": 0}, "budget is 0; expected a number of sessions from 1"),
        ({"budget": 2399}, "budget is 2,399 sessions; expected at least 2,400: a batch is 8 trials of 2 runs of 100 sessions,"),
        # the last five play again for a quarter of the budget: with a single run that needs more than the search does
        ({"budget": 1999, "runs": 1}, "budget is 1,999 sessions; expected at least 2,000: a batch is 8 trials of 1 run"),
        ({"runs": 0}, "runs is 0; expected a positive integer"),
        ({"by": "median"}, "by 'median'"),
        (
            {"search_space": {"epsilon": Range(0.1, 2.0)}},
            "EpsilonGreedy cannot be searched with epsilon = 2.0: epsilon is 2.0;",
        ),
        ({"search_space": {"epsilom": [0.1]}}, "unknown hyper-parameter 'epsilom'; did you mean 'epsilon'?"),
        ({"search_space": {}}, "EpsilonGreedy has no search_space; say what to search"),
        ({"search_space": {"epsilon": 0.1}}, "has 0.1 for epsilon; expected a Range, or a list of values"),
        (
            {"agent": "EpsilonGreedy:epsilon=0.1", "search_space": {"epsilon": [0.1]}},
            "epsilon is given the value 0.1, and is to be",
        ),
        (
            {"agent": "EpsilonGreedy:epsilon={0.1}", "search_space": {"epsilon": [0.1]}},
            "has braces, and a search space beside them",
        ),
        ({"agent": {"a": "Random", "b": "Random"}}, "one agent is tuned at a time, got a, b"),
        ({"agent": "UBMLinUCB"}, "UBMLinUCB ranks by features, which only contextual environments have"),
        ({"instances": []}, "no instance was named"),
        ({"instances": "uniform"}, "instances is 'uniform'; expected a list of instances"),
        ({"envs": []}, "no environment was named"),
    ],
)
def test_bad_arguments_are_named_before_any_session(tmp_path, arguments, message):
    record = Record()
    with pytest.raises((TypeError, ValueError)) as error:
        tune(**{"out": tmp_path / "out", "callback": record} | arguments)
    assert message in str(error.value)
    assert not record.trials
    assert not (tmp_path / "out").exists()


def test_batches_are_counted_on_and_every_processor_works_by_default():
    assert tuning._next_batch([]) == 1
    assert tuning._next_batch([{"batch": 1}, {"batch": 2}]) == 3
    assert inspect.signature(clickgym.tune).parameters["n_jobs"].default == -1


def test_a_missing_optuna_is_named(monkeypatch):
    monkeypatch.setattr(tuning, "find_spec", lambda name: None)
    with pytest.raises(
        ImportError, match=r'^tuning needs Optuna, which is not installed; install it: pip install "clickgym\[tune\]"$'
    ):
        tune()


def test_a_folder_of_something_else_is_refused(tmp_path):
    tune(out=tmp_path / "tuned", budget=3000)
    for arguments, what in ((({"horizon": 90}), "horizon: 100 there, 90 now"), ({"seed": 1}, "seed: 0 there, 1 now"),
                            ({"agent": "TopRank"}, "agent: 'EpsilonGreedy' there, 'TopRank' now")):  # fmt: skip
        with pytest.raises(ValueError, match=f"holds another tuning .*{what}.*; choose another folder"):
            tune(**{"out": tmp_path / "tuned", "budget": 3000} | arguments)
    (tmp_path / "notes.txt").touch()
    with pytest.raises(ValueError, match=r"holds no tuning, but notes\.txt; choose another folder"):
        tune(out=tmp_path)
    config = tmp_path / "tuned" / "tuning.json"
    whole = config.read_text()
    for old, new in (
        ('"finals": ', '"finals": "many", "was": '),
        ('"random": [', '"random": [3, '),
        ('"budget": ', '"budget": "many", "was": '),
        ('"format": 3', '"format": 4'),
    ):
        config.write_text(whole.replace(old, new))
        with pytest.raises(ValueError, match=r"tuning\.json (cannot be read|is of format 4, of a later version)"):
            tune(out=tmp_path / "tuned", budget=3000)
    config.write_text(whole)
    trials = tmp_path / "tuned" / "trials.parquet"
    trials.write_bytes(trials.read_bytes()[:-9] + b"x" * 9)
    with pytest.raises(ValueError, match=r"trials\.parquet is damaged"):
        tune(out=tmp_path / "tuned", budget=3000)


def test_random_lists_must_lose_something():
    with pytest.raises(ValueError, match="random lists have no regret in all alike"):
        tune(envs={"all alike": clickgym.envs.CascadeModel([0.5, 0.5], 2)})


# ------------------------------------------------------------------------------------------------ figure and command line


def test_the_figure_has_a_panel_for_each_hyperparameter(reference):
    (panel,) = reference.plot().axes
    assert panel.get_xlabel() == "epsilon"
    assert panel.get_xscale() == panel.get_yscale() == "log"
    points = sum(len(line.get_xdata()) for line in panel.get_lines() if line.get_label() in ("given up", "complete"))
    assert points == len(reference.trials)
    assert len(panel.containers) == 1  # the final, with its intervals
    three = tune(
        Pair, budget=2000, horizon=20, search_space={"low": [-2, -1], "name": ["a", "b"], "wide": [None, [1, 2]]}
    ).plot()
    assert [axes.get_xlabel() for axes in three.axes] == ["low", "name", "wide"]
    assert [text.get_text() for text in three.axes[2].get_xticklabels()] == ["null", "[1,2]"]


def test_what_a_notebook_shows(reference):
    html = reference._repr_html_()
    assert html.startswith("<div>Tuning: EpsilonGreedy:epsilon=")
    assert html.count("<tr>") == 11
    assert repr(reference).endswith(f"{len(reference.trials)} trials, {reference.sessions:,} sessions>")


WORDS = ["--environments", "PBMRank-v0", "--horizon", "100", "--runs", "2", "--budget", "6e3", "--jobs", "1"]


@pytest.mark.usefixtures("undrawn")
def test_the_command_writes_table_and_figure(reference, tmp_path, capsys, printed):
    assert main(["tune", "EpsilonGreedy", *WORDS, "--out", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert err.startswith("8 trials  0 given up  1,800 sessions  best EpsilonGreedy:epsilon=")
    assert f"{_verdict(reference)}\n" in out
    assert "clickgym run PBMRank-v0 --agents EpsilonGreedy EpsilonGreedy:epsilon=" in out
    assert {path.name for path in tmp_path.iterdir()} == {"trials.parquet", "tuning.json", "tuning.png", "tuning.svg"}
    assert polars.read_parquet(tmp_path / "trials.parquet").equals(reference.trials)
    assert json.loads((tmp_path / "tuning.json").read_text())["result"]["agent"] == reference.agent
    document = json.loads(printed(["tune", "EpsilonGreedy", *WORDS, "--out", str(tmp_path), "--json"]))
    assert (document["agent"], document["score"]) == (reference.agent, reference.score)
    assert len(document["trials"]) == len(reference.trials)


@pytest.mark.parametrize(
    ("best", "default", "words"),
    [
        ((0.10, 0.03), (0.15, 0.03), "Better than A as it is: A:c=2.0"),  # 0.05 > √(0.03² + 0.03²)
        ((0.10, 0.04), (0.15, 0.04), "Lowest score: A:c=2.0, but A as it is may be as good"),  # 0.05 < √(0.04² + 0.04²)
        ((0.10, None), (0.90, None), "Lowest score: A:c=2.0, but A as it is may be as good"),  # a single run has no interval
        ((0.10, 0.04), None, "Lowest score: A:c=2.0"),  # A has no defaults
    ],
)
def test_settings_are_better_only_where_the_intervals_of_the_final_say_so(best, default, words):
    rows = [("A:c=2.0", *best), *([("A", *default)] if default else [])]
    final = polars.DataFrame(rows, ["agent", "final_score", "final_ci95"], orient="row", strict=False)
    assert _verdict(SimpleNamespace(agent="A:c=2.0", config={"agent": "A"}, best=lambda: final)).startswith(words)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["A:b=1", "A:b=2", *WORDS],
            "one agent is tuned at a time, got A:b=1 A:b=2; shells split braces: put quotes around",
        ),
        (["EpsilonGreedy", *WORDS[:6]], "Missing option '--budget'"),
        (["EpsilonGreedy", *WORDS[2:]], "Missing option '--environments'"),
        (["EpsilonGreedy:epsilon={0.1..2}", *WORDS], "EpsilonGreedy cannot be searched with epsilon = 2.0"),
        (["nowhere_to_be:Missing", *WORDS], "there is no module 'nowhere_to_be'"),
    ],
)
def test_bad_words_are_named_in_a_line(tmp_path, refused, words, message):
    err = refused(["tune", *words, "--out", str(tmp_path / "out")])
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.slow
def test_a_learner_is_tuned(tmp_path):
    pytest.importorskip("stable_baselines3")
    space = {"learning_rate": Range(1e-4, 1e-2, log=True), "net_arch": [[32], [64, 64]]}
    results = [tune("A2C", search_space=space, budget=60_000, horizon=500, runs=2, n_jobs=jobs) for jobs in (1, 2)]
    assert results[0].trials.equals(results[1].trials)
    assert results[0].agent.startswith("A2C")
