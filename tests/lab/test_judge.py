"""The judge of the scorecard: a judged run is an ordinary one, and cheats and forgeries gain nothing."""

from __future__ import annotations

import gc
import json
import shutil
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars
import pytest
from slow import slow

import clickgym
from clickgym.command_line import main
from clickgym.lab.bench import card as cards
from clickgym.lab.bench import judge as judging
from clickgym.lab.bench import make, protocol, seats, verify
from clickgym.lab.bench.confinement import check_can_confine
from clickgym.lab.bench.leaderboard import leaderboard
from clickgym.lab.bench.play import play, play_again, suited
from clickgym.lab.bench.protocol import DEVELOPMENT, VERSION_2
from clickgym.lab.bench.task_set import task_set
from clickgym.runner.callback import Callback

try:
    check_can_confine()
except OSError as error:
    pytest.skip(str(error), allow_module_level=True)

CHEATS = (Path(__file__).parent / "cheats.py").read_text(encoding="utf-8")
NAMES = ("standard-01", "late-01", "warm_start-01", "churn-01", "safety-01", "contextual-01", "memory-01")
SHORT = 200


def few(tasks, names, horizon):
    return tuple(task._replace(horizon=min(horizon, task.horizon), quick=True) for task in tasks if task.name in names)


@pytest.fixture(autouse=True)
def no_environments_of_other_tests():
    """Those that are still alive are hidden from cheats, which would take them for their own."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A submission without results; the module of its agents is `cheats`."""
    folder = tmp_path_factory.mktemp("submission")
    task = next(task for task in VERSION_2.candidates if task.name == "standard-01")
    target = tmp_path_factory.mktemp("results") / "target"
    target.write_text("true")
    facts = f"TASK, TARGET = {json.dumps(task._asdict())!r}, {str(target)!r}\n"
    (folder / "cheats.py").write_text(CHEATS + facts)
    return folder


@pytest.fixture
def target(folder):
    return Path((folder / "cheats.py").read_text().rpartition("TARGET = ")[2].rpartition(", ")[2].strip().strip("'"))


@pytest.fixture
def here(folder, monkeypatch):
    """The module of the agents can be imported, as an author does; what they did to the package is undone."""
    from clickgym.envs.wrappers.regret import Meter

    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(Meter, "add", Meter.add)
    import cheats

    return cheats


def secret(data, seed=5, names=("standard-01",), horizon=SHORT):
    tasks = few(task_set(seed, real=False), names, horizon)
    return replace(VERSION_2, make_tasks=lambda: tasks, data=data, frozen="", seed=seed)


def regret(whole, agent, run=0):
    gc.collect()  # environments of others
    return play_again(whole, "it", agent, whole.candidates[0], run)["regret"][-1]


@pytest.mark.parametrize("agent", ["Honest", "Compiled"])
def test_a_run_without_the_environment_is_equal_to_an_ordinary_one(folder, here, tmp_path, agent):
    """With features, states, late clicks, items that are replaced, a log before, and another measure."""
    whole = secret(tmp_path, names=NAMES, horizon=60)
    seated, own = seats.sit_down(f"cheats:{agent}", folder), getattr(here, agent)
    tasks = suited(own, whole.candidates)
    assert suited(seated, whole.candidates) == tasks
    one, other = (play(whole, "it", each, tasks, 1, tmp_path / str(i), n_jobs=1) for i, each in enumerate((seated, own)))
    assert one.drop("seconds").equals(other.drop("seconds"))
    assert {task.ability for task in tasks} >= {"standard", "safety", "warm_start", "churn"}


@pytest.mark.parametrize("agent", ["CMLinUCB", "PBMUCB", "CascadeVI", "TopRank:delta=0.1"])
def test_an_agent_of_the_package_plays_so_too(folder, tmp_path, agent):
    whole = secret(tmp_path, names=NAMES, horizon=40)
    seated = seats.sit_down(agent, folder)
    assert suited(seated, whole.candidates) == suited(agent, whole.candidates)
    task = suited(agent, whole.candidates)[0]
    assert play_again(whole, "it", seated, task, 0).equals(play_again(whole, "it", agent, task, 0))


# ------------------------------------------------------------------------------------------------------------------- cheats


@pytest.mark.parametrize("cheat", ["Objects", "Frames", "Generators", "Patches", "Remembers"])
def test_a_cheat_that_gains_in_one_process_gains_nothing_in_two(folder, here, tmp_path, cheat):
    whole = secret(tmp_path)
    honest = regret(whole, here.Honest)
    assert regret(whole, seats.sit_down(f"cheats:{cheat}", folder)) == honest > 0
    seated = seats.sit_down(f"cheats:{cheat}", folder)
    assert regret(whole, seated, 1) == regret(whole, here.Honest, 1)
    regret(whole, getattr(here, cheat))
    assert regret(whole, getattr(here, cheat)) != honest  # it does cheat


def test_files_of_a_sweep_cannot_be_read(folder, here, tmp_path, monkeypatch):
    whole = secret(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    losses = []
    for i, agent in enumerate((here.Honest, here.Files, seats.sit_down("cheats:Files", folder))):
        table = play(whole, "it", agent, whole.candidates, 1, tmp_path / str(i) / "it", n_jobs=1)
        losses.append(table["loss"][-1])
        shutil.rmtree(tmp_path / str(i))
    assert losses[0] == losses[2] != losses[1]


def test_the_memory_and_the_command_of_other_processes_cannot_be_read(folder, here, tmp_path):
    whole = secret(tmp_path)
    assert regret(whole, here.Memory) != regret(whole, here.Honest)
    assert regret(whole, seats.sit_down("cheats:Memory", folder)) == regret(whole, here.Honest)


def test_seeds_of_public_tasks_can_be_told_from_names_those_of_secret_tasks_cannot(folder, here, tmp_path):
    seated = seats.sit_down("cheats:Seeds", folder)
    tasks = few(VERSION_2.candidates, ("standard-01",), SHORT)
    assert regret(replace(VERSION_2, make_tasks=lambda: tasks, frozen=""), here.Seeds) == 0
    assert regret(secret(tmp_path), seated) == regret(secret(tmp_path), here.Honest)


def test_results_cannot_be_written(folder, here, target, tmp_path):
    assert regret(secret(tmp_path), seats.sit_down("cheats:Writes", folder)) == regret(secret(tmp_path), here.Honest)
    assert target.read_text() == "true"


def test_time_tells_nothing(folder, here, tmp_path):
    lists = secret(tmp_path)
    random = np.mean([regret(lists, "Random", run) for run in range(3)])
    assert regret(lists, seats.sit_down("cheats:Watches", folder)) > random / 2


def test_only_numbers_leave_a_seat(folder, here, tmp_path):
    env = secret(tmp_path).candidates[0].make()
    agent = clickgym.make_agent(seats.sit_down("cheats:Lies", folder), env, seed=0)
    ranking = agent.rank(None)
    assert type(ranking) is np.ndarray
    assert not ranking.flags.writeable
    assert ranking.tolist() == list(range(5))


def test_nothing_that_an_agent_prints_is_shown(folder, here, tmp_path, capfd):
    seats._host.cache_clear()  # one that has the streams of this test
    whole = secret(tmp_path)
    regret(whole, seats.sit_down("cheats:Prints", folder))
    assert capfd.readouterr() == ("", "")
    regret(whole, here.Prints)
    assert all("confirmed" in shown for shown in capfd.readouterr())


def test_a_seat_tells_how_many_sessions_it_has_played(folder, tmp_path):
    whole, told = secret(tmp_path), []
    seats.play_in_seat(seats.sit_down("cheats:Compiled", folder), whole, "it", whole.candidates, 2, told.append)
    assert sum(told) == 2 * sum(task.horizon for task in whole.candidates)


def test_a_name_changes_nothing(folder, tmp_path):
    whole, seated = secret(tmp_path), seats.sit_down("cheats:Compiled", folder)
    one, other = (play_again(whole, name, seated, whole.candidates[0], 0) for name in ("One", "Other"))
    assert one.equals(other)


def test_no_process_of_an_agent_outlives_its_seat(folder, tmp_path):
    def sleeping():
        """Seats without a parent."""
        found = set()
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if b"seats import serve" in (folder / "cmdline").read_bytes():
                    found |= {folder.name} if "PPid:\t1\n" in (folder / "status").read_text() else set()
        return found

    before = sleeping()
    regret(secret(tmp_path), seats.sit_down("cheats:Stays", folder))
    gc.collect()
    time.sleep(0.2)
    assert sleeping() <= before


# ------------------------------------------------------------------------------------------------------------------ judging


@pytest.fixture(scope="module")
def short(tmp_path_factory):
    """A protocol of three short tasks, with anchors and the results of three agents."""
    data = tmp_path_factory.mktemp("data")
    tasks = few(VERSION_2.candidates, ("standard-01", "standard-02", "cold_start-01"), 1000)
    whole = replace(VERSION_2, make_tasks=lambda: tasks, data=data, frozen="", runs=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(make, "_tuned", lambda maker, name: None)
        patch.setattr(make, "_write_card", lambda protocol: None)
        make.make(whole, DEVELOPMENT, tmp_path_factory.mktemp("out"), agents=["Random", "CascadeKLUCB", "CascadeTS"], jobs=1)
    return whole


@pytest.fixture
def current(short, monkeypatch):
    """The short protocol in the place of version 2, and secret sets as short."""
    monkeypatch.setattr(protocol, "VERSION_2", short)
    names = tuple(task.name for task in short.candidates)
    monkeypatch.setattr(judging, "task_set", lambda seed, real: few(task_set(seed, real), names, 1000))
    return short


@pytest.fixture
def submit(current, folder, here, tmp_path, monkeypatch):
    """Makes a submission with the results of an agent that may be another than it says."""

    def submit(agent, played=None):
        own = tmp_path / f"by_{agent}"
        shutil.copytree(folder, own)
        monkeypatch.chdir(own)
        clickgym.bench({"forged": played} if played else f"cheats:{agent}", version=2, out="results", n_jobs=1)
        config = own / "results" / cards.CONFIG
        config.write_text(json.dumps(json.loads(config.read_text()) | {"agent": f"cheats:{agent}"}))
        return own

    return submit


@pytest.mark.slow
def test_a_compiled_agent_is_judged(submit, tmp_path, capsys):
    own = submit("Compiled")
    assert main(["bench", "--judge", str(own), "--out", str(tmp_path / "out"), "--seed", "7", "--jobs", "2"]) == 0
    said, told = capsys.readouterr()
    assert told.splitlines()[1:] == [
        "test set: 6,000 sessions", "secret set: 6,000 sessions", "runs again: 12,000 sessions", "anchors: 18,000 sessions",
    ]  # fmt: skip
    assert "12 of 12 runs, drawn afterwards, were played again without the environment, and came out equal." in said
    assert "6 of 6 submitted runs came out equal: confirmed." in said
    written = json.loads((tmp_path / "out" / "judgement.json").read_text())
    assert written["trust"] == "judged"
    assert written["seed"] == "7"
    scores = written["scores"]
    assert scores["claimed"] == scores["judged"] != scores["secret"]
    assert "| overall | " in (tmp_path / "out" / "judgement.md").read_text()
    again = judging.judge(own, seed=7, n_jobs=1)
    assert again.to_dict() == written


@pytest.mark.slow
def test_a_judged_agent_is_a_line_of_the_board_that_says_so(submit, short, tmp_path):
    judgement = judging.judge(submit("Honest"), seed=7, n_jobs=1)
    data = tmp_path / "data"
    shutil.copytree(short.data, data)
    judgement.save(data)
    whole = replace(short, data=data)
    places = {place.agent: place for place in leaderboard(whole, judgement.board)}
    assert {name: place.trust for name, place in places.items()} == {
        "Random": "ours", "CascadeKLUCB": "ours", "CascadeTS": "ours", "by_Honest": "judged",
    }  # fmt: skip
    assert places["by_Honest"].standing.overall == judgement.standings["judged"].overall
    assert "by_Honest" not in judging._best(whole, "standard")


@pytest.mark.parametrize("cheat", ["Peeks", *slow("Stores")])
def test_a_compiled_agent_that_finds_the_environment_is_refused(submit, target, tmp_path, capsys, cheat):
    own = submit(cheat)
    target.write_text("true")
    assert main(["bench", "--judge", str(own), "--out", str(tmp_path / "out"), "--jobs", "2"]) == 2
    [line] = [line for line in capsys.readouterr().err.splitlines() if "refused" in line]
    assert "differs from session" in line
    assert "played without the environment" in line
    assert not (tmp_path / "out").exists()
    assert target.read_text() == "true"


def test_a_forged_folder_has_no_effect(submit, monkeypatch):
    """The results are those of a better agent; from elsewhere, the test is of the score."""
    own = submit("Honest", played="CascadeTS")
    judgement = judging.judge(own, seed=1, n_jobs=1)
    assert not judgement.claim.right
    assert "NOT what this agent does" in str(judgement.claim)
    scores = {name: each.overall.value for name, each in judgement.standings.items()}
    assert scores["claimed"] > scores["judged"] + 0.2
    assert scores["judged"] < 0.3
    assert judgement.replayed == 0
    monkeypatch.setattr(verify, "machine", lambda: "another")
    submission = verify.read_submission(own / "results")
    claim = judging._compared(submission, judgement.submitted, judgement.judged, judgement.board)
    assert claim.difference == pytest.approx(scores["claimed"] - scores["judged"])
    assert 0 < claim.detectable < 10
    assert "is found with a probability of 90%" in str(claim)
    true = judging._compared(submission, judgement.judged, judgement.judged, judgement.board)
    assert true.right


def test_a_lie_about_what_was_played_is_noticed(submit, monkeypatch):
    """A process with the environment that returns other runs than it was asked for."""
    own = submit("Compiled")
    maker = seats.sit_down("cheats:Compiled", own)
    whole = protocol.VERSION_2
    table = play(whole, "it", "CascadeTS", whole.candidates, 2, own / "plays", n_jobs=1)
    monkeypatch.setattr(judging, "play_in_seat", lambda *given: table.filter(polars.col("run") == 0))
    with pytest.raises(ValueError, match="other runs than were asked for"):
        judging._played(maker, whole, whole.candidates, 2, 1, Callback())
    better = table.with_columns(polars.col("regret", "loss") * 0.5)
    with pytest.raises(ValueError, match=r"run \d of '[a-z_]+-0\d' differs from session \d+ on, or before: regret"):
        judging._check_again(maker, {whole: better}, 1, Callback())


def test_bad_input_is_said_in_a_line_before_any_session(submit, tmp_path, monkeypatch, capsys):
    own = submit("Honest")
    monkeypatch.setattr(judging, "play", None)

    def refusal(folder, *more):
        assert main(["bench", "--judge", str(folder), "--out", str(tmp_path / "out"), *more]) == 2
        return capsys.readouterr().err

    assert "there is no folder" in refusal(tmp_path / "none")
    (tmp_path / "TopRank").mkdir()
    assert "has the name of an agent of the package" in refusal(tmp_path / "TopRank")
    (tmp_path / "empty").mkdir()
    assert "has no folder results" in refusal(tmp_path / "empty")
    (tmp_path / "empty" / "results").mkdir()
    assert "holds no bench.json" in refusal(tmp_path / "empty")
    assert "lies in the folder of the submission" in refusal_into(own, capsys)
    config = own / "results" / cards.CONFIG
    content = json.loads(config.read_text())

    def saying(**changes):
        config.write_text(json.dumps(content | changes))
        return refusal(own)

    assert "'cheats:Absent'" in saying(agent="cheats:Absent")
    assert "no list of mine" in saying(agent="cheats:Fails")
    assert "holds no other.py" in saying(agent="other:Mine")
    assert "expected module:Class" in saying(agent="Mine")
    first = protocol.VERSION_1
    assert "is of version 1" in saying(protocol=1, fingerprint=first.fingerprint)
    config.write_text(json.dumps(content))
    assert "seed is -1" in refusal(own, "--seed", "-1")
    assert main(["bench", "Random", "--seed", "1", "--out", "x"]) == 2
    assert "--seed is only for --judge" in capsys.readouterr().err
    assert main(["bench", "--judge", str(own)]) == 2
    assert "--judge needs --out DIR" in capsys.readouterr().err


def refusal_into(own, capsys):
    assert main(["bench", "--judge", str(own), "--out", str(own / "out")]) == 2
    return capsys.readouterr().err


def test_what_the_policy_says_of_the_judge():
    assert (judging.AT_LEAST, judging.SHARE) == (60, 1 / 20)
    assert round(1 - (1 - 1 / 20) ** judging.AT_LEAST, 2) == 0.95
    assert judging.BITS == 128
    assert judging.LEVEL == 0.01
    policy = (Path(__file__).parents[2] / "docs" / "scorecard_policy.md").read_text(encoding="utf-8")
    assert VERSION_2.frozen in policy
