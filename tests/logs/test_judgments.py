"""Tests of judged queries: the reader, instances, nDCG with candidates, held-out ranking, and the
command.
"""

import gzip

import gymnasium as gym
import numpy as np
import pytest

import clickgym
from clickgym.logs import GRADED_USERS, Judgments, held_out_ndcg, judged_instance, read_judgments
from tests.helpers.judged_queries import judged, ndcg, with_test

pytestmark = pytest.mark.uncompiled

TEXT = """# a comment
2 qid:b 1:0.5 3:-2 # doc 1

0\tqid:b\t2:1e1
1 qid:a 3:.25  1:4
0 qid:a
1 qid:a 2:3
"""
FEATURES = [[0.5, 0, -2], [0, 10, 0], [4, 0, 0.25], [0, 0, 0], [0, 3, 0]]


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
    """The largest double represents a missing value, and counts as an absent feature."""
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
        ("1 qid:c 0:1", "0:1"),
        ("1 qid:c 1:2 2:nan", "2:nan"),
        ("1 qid:c 2:1 1:2 2:1", "feature 2 twice"),
    ],
)
def test_bad_lines_are_named(line, named, log_file):
    path = log_file("a.txt", f"{TEXT}{line}\n2 qid:z 1:1\n")
    message = rf"a\.txt .*line 8 has '?{named}'?.*.*grade qid:Q feature:value"
    with pytest.raises(ValueError, match=message) as refusal:
        read_judgments(path)
    assert "\n" not in str(refusal.value)


def test_a_file_that_is_read_in_blocks(log_file):
    """Line numbers continue across blocks, and a feature that first occurs in a later document
    counts as absent before.
    """
    first, rest = TEXT.split("\n\n")
    text = f"{first}\n# {'x' * 2**22}\n{rest}"
    np.testing.assert_array_equal(read_judgments(log_file("a.txt", text)).features, FEATURES)
    with pytest.raises(ValueError, match="line 7 has '2:x'"):
        read_judgments(log_file("a.txt", text.replace("2:3", "2:x")))


def test_bad_files_are_named(log_file):
    path = log_file("a.txt", TEXT)
    with pytest.raises(ValueError, match=r"line 2 has '3:-2'"):
        read_judgments(path, n_features=2)
    other = log_file("b.txt", "1 qid:c 1:1\n\n0 qid:b 1:1\n")
    with pytest.raises(
        ValueError, match=r"b\.txt: line 3: the documents of query 'b' are not on consecutive lines"
    ):
        read_judgments([path, other])
    for empty in ("", "# nothing\n\n"):
        with pytest.raises(ValueError, match=r"c\.txt .*the file has no documents"):
            read_judgments([path, log_file("c.txt", empty)])


# ------------------------------------------------------------ instances


def test_rows_of_a_judged_instance():
    """A query of n documents gets L - n blank rows, and clicks follow the table of the users'
    probabilities.
    """
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


def test_users_of_as_many_grades_as_are_asked_for():
    few = Judgments(("a",), [0, 2], [1, 0], [[1.0], [2.0]])
    for n_grades, expected in ((None, [1.0, 0.0]), (3, [0.5, 0.0]), (5, [0.2, 0.0])):
        instance = judged_instance(few, "perfect", n_grades=n_grades, n_positions=2)
        model = instance.model("ContextualModel of DBN")
        assert model.attraction[0].tolist() == expected
        assert model.items.shape == (2, 1)  # no query lacks a row


# ------------------------------------------------------------ nDCG


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


def test_test_queries_are_in_no_session(tmp_path):
    """Held-out test queries change neither users, candidates nor digits, and an instance file
    stores them.
    """
    (env, test), plain = with_test(tmp_path), judged_instance(judged(), n_items=5, n_positions=3)
    source = judged_instance(judged(), test=test, n_items=5, n_positions=3)
    envs = [gym.make("ContextualDBNRank-v0", instance=instance) for instance in (plain, source)]
    envs.append(env)
    results = [clickgym.run("PDGD", each, 300, seed=3, engine="python") for each in envs]
    assert len({tuple(result.regret) for result in results}) == 1
    assert "; 7 held-out queries; " in source.description
    model = envs[-1].unwrapped.model
    assert [len(items) for items in model.held_out] == np.diff(test.starts).tolist()
    assert not set(np.concatenate(model.held_out)) & set(model.pool.entries)
    with pytest.raises(ValueError, match=r"3 features, but the judgments have 4; .*n_features=4"):
        judged_instance(judged(), test=judged(n_features=3), n_positions=3)


def test_test_queries_have_the_scale_of_the_training_set(log_file):
    lines = ["2 qid:1 1:30 2:40\n0 qid:1 2:1\n", "1 qid:2.0 1:5\n0 qid:2 2:2\n"]
    files = [log_file(f"{name}.txt", text) for name, text in enumerate(lines)]
    train, test = (read_judgments(file, n_features=2) for file in files)
    instance = judged_instance(train, test=test, n_positions=2)
    model = instance.model("ContextualModel of DBN")
    found = model.items[np.concatenate(model.held_out)]
    np.testing.assert_allclose(found, test.features / train.scale, rtol=1e-6)
    both = read_judgments([files[1], log_file("both.txt", lines[0])], n_features=2)
    with pytest.warns(UserWarning, match="1 of 2 test queries have the name of .*such as '1'"):
        judged_instance(train, test=both, n_positions=2)


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
    table = printed([*command.split(), "ndcg@2", "held_out_ndcg@10", "--instances", out])
    assert "held_out_ndcg@10" in table
