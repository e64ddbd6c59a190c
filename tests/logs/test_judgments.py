"""Judged queries: the reader, instances, nDCG with candidates, held-out ranking, the command."""

import gzip
import math
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import clickgym
from clickgym.agents import Agent, OwnLoop
from clickgym.command_line import main
from clickgym.envs import load_instance
from clickgym.logs import (
    GRADED_USERS,
    Judgments,
    held_out_ndcg,
    judged_instance,
    read_judgments,
)

TEXT = """# a comment
2 qid:b 1:0.5 3:-2 # doc 1

0\tqid:b\t2:1e1
1 qid:a 3:.25  1:4
0 qid:a
1 qid:a 2:3
"""
FEATURES = [[0.5, 0, -2], [0, 10, 0], [4, 0, 0.25], [0, 0, 0], [0, 3, 0]]


def judged(n_queries=7, n_features=4, seed=0):
    """Queries of 1 to 7 documents."""
    rng = np.random.default_rng(seed)
    sizes = np.arange(n_queries) + 1
    starts = np.concatenate([[0], np.cumsum(sizes)])
    grades = rng.integers(0, 5, starts[-1])
    features = rng.normal(size=(starts[-1], n_features))
    return Judgments(tuple(map(str, range(n_queries))), starts, grades, features)


def ndcg(shown, candidates, k):
    """By the definition, of gains."""
    gains = [
        sum(gain / math.log2(p + 2) for p, gain in enumerate(row[:k]))
        for row in (shown, sorted(candidates, reverse=True)[: min(k, len(shown))])
    ]
    return gains[0] / gains[1] if gains[1] else 0.0


def test_a_file_by_hand(log_file):
    for name, content in {
        "a.txt": TEXT,
        "b.txt": TEXT.replace("\n", "\r\n").encode(),
        "c.txt.gz": gzip.compress(TEXT.encode()),
    }.items():
        read = read_judgments(log_file(name, content))
        assert read.queries == ("b", "a")
        assert (read.starts.tolist(), read.grades.tolist()) == ([0, 2, 5], [2, 0, 1, 0, 1])
        assert read.features.dtype == np.float32
        np.testing.assert_array_equal(read.features, FEATURES)
        assert read.scale == pytest.approx(10 * (1 + 1e-6))


def test_missing_values_of_istella(log_file):
    """The largest double is a missing value, and counts as an absent feature."""
    text = TEXT.replace("2:1e1", "1:1.79769313486231570e+308 2:1e1").replace("1:4", "1:-1.797e308")
    read = read_judgments(log_file("a.txt", text))
    wanted = np.array(FEATURES)
    wanted[2, 0] = 0
    np.testing.assert_array_equal(read.features, wanted)


def test_several_files_are_one_set(log_file, tmp_path):
    files = [log_file("a.txt", TEXT), log_file("b.txt", "4.0 qid:7 5:1\n")]
    read = read_judgments(files, n_features=6)
    assert (read.queries, read.features.shape) == (("b", "a", "7"), (6, 6))
    np.testing.assert_array_equal(read.features[:5, :3], FEATURES)
    assert read.features[5].tolist() == [0, 0, 0, 0, 1, 0]


def test_normalised_features_by_hand(log_file):
    read = read_judgments(log_file("a.txt", TEXT + "3 qid:c 1:7\n"), normalize=True)
    wanted = [[1, 0, 0], [0, 1, 1], [1, 0, 1], [0, 0, 0], [0, 1, 0], [0, 0, 0]]
    np.testing.assert_array_equal(read.features, wanted)


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("1 1:0.5", "1 1:0.5"),
        ("-1 qid:c 1:1", "-1 qid:c 1:1"),
        ("1.5 qid:c 1:1", "1.5 qid:c 1:1"),
        ("1", "1"),
        ("1 qid:c 1", "1"),
        ("1 qid:c 0:1", "0:1"),
        ("1 qid:c 1:one", "1:one"),
        ("1 qid:c 2:1 1:3 2:1", "2:1"),
        ("1 qid:c 1:2 2:nan", "2:nan"),
        ("1 qid:c 1:-inf", "1:-inf"),
        ("1 qid:c 1:1e39", "1:1e39"),
        ("1 qid:c 2000000000:1", "2000000000:1"),
        ("1 qid:c 1:1\r0 qid:c 1:2", r"1 qid:c 1:1\\r0 qid:c 1:2"),
    ],
)
def test_bad_lines_are_named(line, named, log_file):
    path = log_file("a.txt", f"{TEXT}{line}\n2 qid:z 1:1\n")
    message = rf"a\.txt .*line 8 has '{named}'.*; expected lines grade qid:Q feature:value"
    with pytest.raises(ValueError, match=message) as refusal:
        read_judgments(path)
    assert "\n" not in str(refusal.value)


def test_a_file_that_is_read_in_blocks(log_file):
    """Lines are counted on, and features that only a later document has are absent before."""
    first, rest = TEXT.split("\n\n")
    text = f"{first}\n# {'x' * 2**22}\n{rest}"
    np.testing.assert_array_equal(read_judgments(log_file("a.txt", text)).features, FEATURES)
    with pytest.raises(ValueError, match="line 7 has '2:x'"):
        read_judgments(log_file("a.txt", text.replace("2:3", "2:x")))


def test_bad_files_are_named(log_file, tmp_path):
    path = log_file("a.txt", TEXT)
    with pytest.raises(ValueError, match=r"line 2 has '3:-2'"):
        read_judgments(path, n_features=2)
    other = log_file("b.txt", "1 qid:c 1:1\n\n0 qid:b 1:1\n")
    with pytest.raises(
        ValueError, match=r"b\.txt: line 3: the documents of query 'b' are not one after another"
    ):
        read_judgments([path, other])
    for empty in ("", "# nothing\n\n"):
        with pytest.raises(ValueError, match=r"c\.txt .*it has no documents"):
            read_judgments([path, log_file("c.txt", empty)])
    with pytest.raises(FileNotFoundError):
        read_judgments(tmp_path / "absent")


def test_a_query_may_have_a_hash_in_its_name(log_file):
    read = read_judgments(log_file("a.txt", "2 qid:a#1 2:3 # doc 4\n0 qid:a#2 1:1\n"))
    assert read.queries == ("a#1", "a#2")
    np.testing.assert_array_equal(read.features, [[0, 3], [1, 0]])


# ------------------------------------------------------------ instances


def test_rows_of_a_judged_instance():
    """A query of n documents has L - n blank rows, and clicks follow the table of the users."""
    judgments = judged()
    instance = judged_instance(judgments, "informational", n_items=5, n_positions=3)
    model = instance.model("ContextualModel of DBN")
    click, stop = GRADED_USERS[5]["informational"]
    n = len(judgments.grades)
    assert (model.n_items, model.items.shape, model.base.perseverance) == (5, (n + 5, 4), 1.0)
    np.testing.assert_allclose(model.items[:n], judgments.features / judgments.scale, rtol=1e-6)
    assert not model.items[n:].any()
    for q, candidates in enumerate(model.candidates):
        own = list(range(judgments.starts[q], judgments.starts[q + 1]))
        assert candidates[: q + 1].tolist() == own
        assert (candidates[q + 1 :] >= n).all()
        assert len(candidates) == max(q + 1, 5)
        grades = judgments.grades[own].tolist()
        blank = [0.0] * max(4 - q, 0)
        assert model.attraction[q].tolist() == [click[g] for g in grades] + blank
        assert (
            model.others["satisfaction"][model.candidates[q]].tolist()
            == [stop[g] for g in grades] + blank
        )
    assert model.gain.tolist() == [2.0**g - 1 for g in judgments.grades] + [0.0] * 5
    assert instance.estimation["blank"] == round((4 + 3 + 2 + 1) / 35, 4)
    again = clickgym.envs.ContextualModel.from_dict(model.to_dict())
    assert again.gain.tolist() == model.gain.tolist()
    assert model.with_positions(2).items is model.items


def test_users_of_a_part_of_a_file():
    """Without the largest grades, users are those of as few grades, or of as many as are said."""
    part = Judgments(("a",), [0, 3], [0, 2, 1], np.eye(3))
    for n_grades, clicks in ((None, (0.05, 0.95, 0.5)), (5, (0.05, 0.5, 0.3))):
        instance = judged_instance(part, n_positions=2, n_grades=n_grades)
        attraction = instance.model("ContextualModel of DBN").attraction
        np.testing.assert_array_equal(attraction[0], clicks)
    with pytest.raises(ValueError, match=r"n_grades is 2; expected one of \[3, 5\]"):
        judged_instance(part, n_positions=2, n_grades=2)


# ------------------------------------------------------------ nDCG


@pytest.mark.parametrize("k", [1, 2, 10])
def test_ndcg_with_candidates_is_its_definition_on_both_engines(k, tmp_path):
    (env, _), values, horizon = with_test(tmp_path), [], 200
    items, gain = env.unwrapped.model.items, env.unwrapped.model.gain
    agent = clickgym.make_agent("Random", env, seed=2)
    observation, info = env.reset(seed=1)
    for _ in range(horizon):
        ranking, candidates = agent.rank(observation), info["next_candidates"]
        np.testing.assert_array_equal(observation["features"], items[candidates])
        observation, _, _, _, info = env.step(ranking)
        values.append(ndcg(gain[candidates[ranking]], gain[candidates], min(k, 3)))
    runs = [
        clickgym.run(
            clickgym.make_agent("Random", env, seed=2),
            env,
            horizon,
            seed=1,
            engine=engine,
            metrics=[f"ndcg@{k}"],
            checkpoints=range(1, horizon + 1),
        ).metrics[f"ndcg@{k}"]
        for engine in ("compiled", "python")
    ]
    np.testing.assert_array_equal(runs[0], runs[1])
    np.testing.assert_allclose(runs[0], np.cumsum(values), rtol=1e-12)
    assert 0 < runs[0][-1] < horizon


class InOrder(OwnLoop):
    """Shows the first candidates of each session, on four streams."""

    engine, n_envs = "a test", 4

    def learn(self, envs, sessions, on_step, discount):
        self.candidates, going_on = [], True
        _, infos = envs.reset()
        while going_on:
            self.candidates += list(infos["next_candidates"])
            infos = envs.step(np.tile([0, 1, 2], (4, 1)))[-1]
            going_on = on_step()


def test_ndcg_of_a_learner_is_that_of_its_lists():
    """By hand, of lists in the order of the rows."""
    instance, agent, n = judged_instance(judged(), n_items=5, n_positions=3), InOrder(), 60
    gain = instance.model("ContextualModel of DBN").gain
    env = gym.make("ContextualDBNRank-v0", instance=instance)
    result = clickgym.run(agent, env, n, seed=5, checkpoints=range(1, n + 1), metrics=["ndcg@2"])
    values = [ndcg(gain[shown[:3]], gain[shown], 2) for shown in agent.candidates]
    np.testing.assert_allclose(result.metrics["ndcg@2"], np.cumsum(values), rtol=1e-12)


@pytest.mark.parametrize("name", ["ndcg@0", "ndcg@1.5", "ndcg@", "ndcg@01", "ndcg@x"])
def test_a_wrong_cutoff_is_refused(name):
    with pytest.raises(ValueError, match=f"metric is '{name}'; expected ndcg@k, k from 1"):
        clickgym.run("LinearTS", "ContextualPBMRank-v0", 10, metrics=[name])


def test_held_out_ndcg_by_hand():
    judgments = judged()
    weights = np.array([1.0, -2.0, 0.5, 0.0])
    values = []
    for a, b in zip(judgments.starts[:-1], judgments.starts[1:], strict=True):
        gains = [2.0**g - 1 for g in judgments.grades[a:b]]
        scores = judgments.features[a:b].astype(float) @ weights
        if any(gains):
            values.append(ndcg([gains[i] for i in np.argsort(-scores)], gains, 3))
    mine = held_out_ndcg(lambda x: np.argsort(-(x @ weights)), judgments, 3)
    assert mine == pytest.approx(np.mean(values), rel=1e-12)


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_the_commands_of_the_page(monkeypatch, tmp_path):
    """As they stand there, with fewer runs, on queries of which the first feature is the grade with
    noise. Rule: rankers end above .9 on held-out queries, PDGD above DBGD. Null: .65 to .75.
    """
    page = Path(__file__).parents[2] / "docs" / "contextual.md"
    text = page.read_text(encoding="utf-8").partition("## Judged queries")[2]
    rng = np.random.default_rng(0)
    for name, n_queries in (("train.txt", 30), ("test.txt", 20)):
        grades = rng.integers(0, 5, (n_queries, 12))
        lines = [
            f"{grade} qid:{query} 1:{grade / 5 + 0.2 * rng.random():.3f} 2:{rng.random():.3f}"
            for query, row in enumerate(grades)
            for grade in row
        ]
        (tmp_path / name).write_text("\n".join(lines), encoding="utf-8")
    own = text.partition("```python\n# my_ranker.py")[2].partition("```")[0]
    (tmp_path / "my_ranker.py").write_text(own, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    block = text.partition("```sh\n")[2].partition("```")[0].replace("\\\n", "")
    for command in block.splitlines():
        program, *words = command.split()
        assert program == "clickgym"
        assert main([*words, *["--runs", "2", "--jobs", "1"] * (words[0] == "run")]) == 0
    ends = []
    for kind in ("perfect", "informational"):
        results = clickgym.Results(f"oltr/{kind}")
        assert results.names("instance") == [kind]
        assert len(results.plot().axes) == 3
        ends.append(dict(results.table().select("agent", "held_out_ndcg@10").rows()))
    means = {agent: (ends[0][agent] + ends[1][agent]) / 2 for agent in ends[0]}
    assert min(means.values()) > 0.9
    assert len(means) == 5
    assert means["PDGD:eta=0.1"] > means["DBGD"]


# ------------------------------------------------------------ held-out queries as a metric


class Preferences(Agent):
    """In plain Python: a click is preferred to the skips above it."""

    def __init__(self, n_items, n_positions, n_features, *, seed=None):
        self.rng, self.n_positions = np.random.default_rng(seed), n_positions
        self.weights = np.zeros(n_features)

    def best(self, features):
        return np.argsort(-features @ self.weights, kind="stable")

    def rank(self, observation):
        noisy = self.weights + self.rng.normal(size=len(self.weights))
        return np.argsort(-observation["features"] @ noisy)[: self.n_positions]

    def update(self, observation, ranking, clicks, reward):
        shown = observation["features"][ranking]
        for k in np.flatnonzero(clicks):
            self.weights += (shown[k] - shown[:k][clicks[:k] == 0]).sum(axis=0)


def with_test(folder, **options):
    """An environment with held-out queries, from a file as in the commands of the page, whose
    kernels it shares; and these queries.
    """
    test = judged(seed=1)
    instance = judged_instance(judged(), test=test, n_items=5, n_positions=3, **options)
    instance.save(folder / "judged.json")
    return gym.make("ContextualDBNRank-v0", instance=folder / "judged.json"), test


METRIC, AT = "held_out_ndcg@3", [1, 2, 40, 41, 150, 700]


@pytest.mark.parametrize("name", ["PDGD", Preferences])
def test_the_metric_is_the_value_of_the_agent_at_each_checkpoint(name, tmp_path):
    """Of an agent that is stopped there, on both engines; the others metrics stay as they are."""
    env, test = with_test(tmp_path)
    options = {"seed": 1, "checkpoints": AT}

    def agent():
        return clickgym.make_agent(name, env, seed=2)

    results = [
        clickgym.run(agent(), env, AT[-1], metrics=["ndcg@2", METRIC], engine=engine, **options)
        for engine in ("auto", "python")
    ]
    plain = clickgym.run(agent(), env, AT[-1], metrics=["ndcg@2"], **options)
    values = []
    for step in AT:
        stopped = agent()
        clickgym.run(stopped, env, step, seed=1, metrics=["ndcg@2"])
        values.append(held_out_ndcg(stopped.best, test, 3))
    for result in results:
        np.testing.assert_allclose(result.metrics[METRIC], values, rtol=1e-12)
        np.testing.assert_array_equal(result.metrics["ndcg@2"], plain.metrics["ndcg@2"])
        np.testing.assert_array_equal(result.regret, plain.regret)
    assert len(set(values)) > 2


@pytest.mark.usefixtures("undrawn")
def test_the_metric_in_a_sweep(tmp_path):
    """Resumed, in threads and processes, as single runs; a value of the end, and no mean."""
    env, _ = with_test(tmp_path, name="tested")
    arguments = (["ContextualDBNRank-v0"], ["PDGD", Preferences], 200, 2)
    instance = load_instance(tmp_path / "judged.json")
    options = {"instances": [instance], "checkpoints": [100], "progress": False}
    metrics = options["metrics"] = ["ndcg@2", METRIC]
    alone = clickgym.sweep(*arguments, n_jobs=1, **options)
    clickgym.sweep(*arguments[:3], 1, n_jobs=2, out=tmp_path / "out", **options)
    together = clickgym.sweep(*arguments, n_jobs=2, out=tmp_path / "out", **options)
    columns = ["agent", "run", "step", "ndcg@2", METRIC]
    assert together.rows.select(columns).equals(alone.rows.select(columns))
    row = alone.rows.filter(agent="PDGD", run=1)
    again = clickgym.run("PDGD", env, 200, seed=row["seed"][0], checkpoints=[100], metrics=metrics)
    assert row[METRIC].to_list() == again.metrics[METRIC].tolist()
    last = alone.rows.filter(agent="PDGD", step=200)
    table = alone.table().filter(agent="PDGD")
    assert table[METRIC].item() == pytest.approx(last[METRIC].mean())
    assert table["ndcg@2"].item() == pytest.approx(last["ndcg@2"].mean() / 200)


def test_test_queries_are_in_no_session(tmp_path):
    """Users, candidates and digits are those without them; a file keeps them."""
    (env, test), plain = with_test(tmp_path), judged_instance(judged(), n_items=5, n_positions=3)
    source = judged_instance(judged(), test=test, n_items=5, n_positions=3)
    envs = [gym.make("ContextualDBNRank-v0", instance=instance) for instance in (plain, source)]
    envs.append(env)
    results = [clickgym.run("PDGD", each, 300, seed=3, engine="python") for each in envs]
    assert len({tuple(result.regret) for result in results}) == 1
    model = envs[-1].unwrapped.model
    assert [len(items) for items in model.held_out] == np.diff(test.starts).tolist()
    assert not set(np.concatenate(model.held_out)) & set(model.pool.entries)
    with pytest.raises(ValueError, match=r"3 features, and the judgments 4; .*n_features=4"):
        judged_instance(judged(), test=judged(n_features=3), n_positions=3)


def test_test_queries_have_the_scale_of_the_training_set(log_file):
    lines = ["2 qid:1 1:30 2:40\n0 qid:1 2:1\n", "1 qid:2 1:5\n0 qid:2 2:2\n"]
    files = [log_file(f"{name}.txt", text) for name, text in enumerate(lines)]
    train, test = (read_judgments(file, n_features=2) for file in files)
    instance = judged_instance(train, test=test, n_positions=2)
    model = instance.model("ContextualModel of DBN")
    found = model.items[np.concatenate(model.held_out)]
    np.testing.assert_allclose(found, test.features / train.scale, rtol=1e-6)


# ------------------------------------------------------------ the command


def test_the_command_makes_an_instance_that_runs(log_file, tmp_path, printed):
    path, out = str(log_file("a.txt", TEXT)), str(tmp_path / "letor.json")
    test = str(log_file("test.txt", "1 qid:c 1:2\n0 qid:c 2:2\n"))
    words = ["judgments", path, "--positions", "2", "--out", out]
    text = printed([*words, "--users", "perfect"])
    assert "5 documents of 2 queries, 3 features" in text
    assert "17 %" in text
    assert "PDGD:eta=0.1" in text
    env = gym.make("ContextualDBNRank-v0", instance=out)
    judgments = read_judgments(path)
    direct = judged_instance(judgments, "perfect", n_positions=2)
    same = gym.make("ContextualDBNRank-v0", instance=direct)
    options = {"metrics": ["ndcg@2"], "engine": "python"}
    both = [clickgym.run("PDGD", e, 50, seed=0, **options) for e in (env, same)]
    np.testing.assert_array_equal(both[0].metrics["ndcg@2"], both[1].metrics["ndcg@2"])
    assert "2 documents of 1 held-out queries" in printed([*words, "--test", test])
    command = "run ContextualDBNRank-v0 --agents PDGD --horizon 30 --runs 1 --metrics"
    table = printed([*command.split(), "ndcg@2", "held_out_ndcg@10", "--instance", out])
    assert "held_out_ndcg@10" in table
    assert main(["show", "ndcg@7"]) == 0
