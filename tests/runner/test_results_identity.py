"""Whose results a file of a folder holds: each name is compared on its own."""

import shutil

import polars
import pytest

import clickgym
from clickgym.runner.results import Trial, check_agreement, write_trial

ENVS, AGENTS, INSTANCES, RUNS = (
    ["PBMRank-v0", "CMRank-v0"],
    ["Fixed", "Random"],
    ["yandex-9", "yandex-990"],
    2,
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "out"
    clickgym.sweep(ENVS, AGENTS, 50, RUNS, instances=INSTANCES, out=folder, n_jobs=1)
    return folder


def again(folder):
    return clickgym.sweep(ENVS, AGENTS, 50, RUNS, instances=INSTANCES, out=folder, n_jobs=1).frame


MINE = Trial(ENVS[0], INSTANCES[0], AGENTS[0], 0)
OTHERS = {"env": ENVS[1], "instance": INSTANCES[1], "agent": AGENTS[1], "run": 1}


@pytest.mark.parametrize("name", OTHERS)
def test_the_whole_file_of_a_neighbour_is_refused(whole, tmp_path, name):
    """It is undamaged, with a right checksum and the same steps, and differs in one name only."""
    folder = shutil.copytree(whole, tmp_path / "out")
    other = MINE._replace(**{name: OTHERS[name]})
    shutil.copy(folder / "cells" / other.file, folder / "cells" / MINE.file)
    with pytest.raises(
        ValueError,
        match=rf"{MINE.file} is damaged \(it belongs to another run\); delete it to have Trial",
    ):
        again(folder)


@pytest.mark.parametrize("name", OTHERS)
def test_so_is_one_that_says_to_be_of_a_neighbour(whole, tmp_path, name):
    """As above, but nothing else in it is the neighbour's."""
    folder = shutil.copytree(whole, tmp_path / "out")
    frame = polars.read_parquet(folder / "cells" / MINE.file)
    write_trial(
        folder, MINE, frame.with_columns(polars.lit(OTHERS[name], frame.schema[name]).alias(name))
    )
    with pytest.raises(ValueError, match="it belongs to another run"):
        again(folder)


PART = {
    "clickgym": "4.0.0",
    "envs": ["CMRank-v0"],
    "agents": ["mine"],
    "horizon": 1,
    "seed": 0,
    "checkpoints": [1],
    "engine": "auto",
    "metrics": [],
    "labels": {"agents": {"mine": "mine.py:Mine"}},
    "sources": {"mine": "c"},
}


@pytest.mark.parametrize(
    ("key", "value", "named"),
    [
        ("clickgym", "5.0.0", "clickgym"),
        ("horizon", 2, "horizon"),
        ("seed", 1, "seed"),
        ("checkpoints", [2], "checkpoints"),
        ("engine", "python", "engine"),
        ("metrics", ["ndcg"], "metrics"),
        ("labels", {"agents": {"mine": "TopRank"}}, "mine"),
        ("sources", {"mine": "other"}, "source of mine"),
    ],
)
def test_each_difference_that_makes_results_of_one_name_another_thing_is_named(key, value, named):
    new = PART | {key: value}
    check_agreement("here", [PART], PART)
    with pytest.raises(
        ValueError, match=rf"^here holds results of another configuration \({named}: "
    ) as raised:
        check_agreement("here", [PART, PART], new)
    assert ";" not in str(raised.value).removesuffix("; choose another folder (--out)"), (
        "only what differs is named"
    )


def test_other_agents_may_stand_beside():
    check_agreement("here", [PART], PART | {"agents": ["theirs"], "sources": {"theirs": "e"}})
