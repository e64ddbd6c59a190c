"""What TensorBoard shows of a run as it goes, of any agent; no figure of the run changes by it."""

import sys
import threading
from importlib.util import find_spec

import numpy as np
import pytest

import clickgym
from clickgym.agents import Agent
from clickgym.core.files import FileError
from clickgym.envs.wrappers.regret import Meter

needs_tensorboard = pytest.mark.skipif(find_spec("tensorboard") is None, reason='needs pip install "clickgym[tensorboard]"')
ENVS = {"PBMRank-v0": "PBMRank-v0"}
TAGS = ["regret", "regret_per_session", "reward_per_session", "clicks_per_session"]


class Rotate(Agent):
    """Plain Python."""

    def __init__(self, n_items, n_positions, *, seed=None):
        self.items, self.n_positions = np.arange(n_items), n_positions

    def rank(self, observation):
        self.items = np.roll(self.items, 1)
        return self.items[: self.n_positions]

    def update(self, observation, ranking, clicks, reward):
        pass


def entries(folder):
    """The scalars of a run by tag: steps and values."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder)).Reload()
    scalars = {tag: events.Scalars(tag) for tag in events.Tags()["scalars"]}
    return {tag: ([one.step for one in there], np.array([one.value for one in there])) for tag, there in scalars.items()}


@needs_tensorboard
@pytest.mark.parametrize(
    ("agent", "engine"),
    [("CascadeTS", "compiled"), ("CascadeTS", "python"), (Rotate, "auto")],
    ids=["compiled", "python", "own"],
)
def test_any_agent_logs_its_table_and_plays_as_without(agent, engine, tmp_path):
    arguments = {"seed": 3, "engine": engine, "checkpoints": [1, 10, 50, 300], "metrics": ["any_click"]}
    without = clickgym.run(agent, "PBMRank-v0", 400, **arguments)
    result = clickgym.run(agent, "PBMRank-v0", 400, **arguments, tensorboard=tmp_path / "log")
    assert result.to_frame().equals(without.to_frame())
    assert result.engine == without.engine
    there = entries(tmp_path / "log")
    assert list(there) == [f"sessions/{tag}" for tag in TAGS]
    sessions = np.diff(result.steps, prepend=0)
    totals = {"regret": result.regret, "reward": result.reward, "clicks": result.clicks}
    wanted = {"regret": result.regret} | {f"{name}_per_session": np.diff(x, prepend=0) / sessions for name, x in totals.items()}
    for tag in TAGS:
        steps, values = there[f"sessions/{tag}"]
        assert steps == [1, 10, 50, 300, 400]
        assert values == pytest.approx(wanted[tag], rel=1e-6, abs=1e-6)


@needs_tensorboard
def test_an_entry_is_there_as_soon_as_its_checkpoint_is_reached(tmp_path):
    seen = []

    class Watched(Rotate):
        def update(self, observation, ranking, clicks, reward):
            (file,) = tmp_path.glob("*tfevents*")
            seen.append(file.stat().st_size)

    clickgym.run(Watched, "PBMRank-v0", 30, seed=0, checkpoints=[10, 20], tensorboard=tmp_path)
    assert len(set(seen)) == 3
    assert seen == sorted(seen)
    assert [seen.count(size) for size in sorted(set(seen))] == [10, 10, 10]


@needs_tensorboard
def test_each_run_of_a_sweep_logs_to_a_folder_named_by_its_trial(tmp_path):
    agents = {"a b/c": "Random", "TopRank:delta=0.1": "TopRank:delta=0.1", "own": Rotate}
    log = tmp_path / "log"
    results = clickgym.sweep(ENVS, agents, 30, 2, seed=5, tensorboard=log)
    assert results.frame.equals(clickgym.sweep(ENVS, agents, 30, 2, seed=5).frame)
    there = {file.parent.relative_to(log).as_posix() for file in log.rglob("*tfevents*")}
    names = ("a b_c", "TopRank_delta=0.1", "own")
    assert there == {f"PBMRank-v0/yandex-9982/{name}/{run}" for name in names for run in (0, 1)}
    _, regret = entries(log / "PBMRank-v0" / "yandex-9982" / "own" / "1")["sessions/regret"]
    assert regret == pytest.approx(results.frame.filter(agent="own", run=1)["regret"].to_numpy(), rel=1e-6)


@needs_tensorboard
def test_regret_that_is_unknown_is_not_logged():
    meter = Meter([4])
    meter.add(0.5, 1.0, 1)
    assert set(meter.entry()) == {f"sessions/{tag}" for tag in TAGS}
    meter.step, meter.totals[:] = 3, (np.nan, 2.0, 5.0)
    assert meter.entry() == {"sessions/reward_per_session": 0.5, "sessions/clicks_per_session": 2.0}


@needs_tensorboard
def test_a_folder_that_cannot_be_is_refused_before_any_session(tmp_path, refused):
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="log is a file, or lies below a file"):
        clickgym.run("Random", "PBMRank-v0", 10, tensorboard=tmp_path / "file" / "log")
    words = ["--horizon", "10", "--runs", "1", "--out", str(tmp_path / "out"), "--tensorboard", str(tmp_path / "file")]
    assert refused(["run", "PBMRank-v0", "--agents", "Random", *words]).count("\n") == 1
    assert not (tmp_path / "out").exists()
    with pytest.raises(TypeError, match="tensorboard is 3; expected a path"):
        clickgym.run("Random", "PBMRank-v0", 10, tensorboard=3)


@needs_tensorboard
def test_a_fault_of_the_writers_thread_is_one_error_and_is_not_printed(tmp_path, monkeypatch, capfd):
    from tensorboard.summary.writer.record_writer import RecordWriter

    write, hook = RecordWriter.write, threading.excepthook

    def full(self, data):
        if b"regret" in data:
            raise OSError(28, "No space left on device")
        write(self, data)

    monkeypatch.setattr(RecordWriter, "write", full)
    with pytest.raises(FileError, match=r"log cannot be written: the disk is full"):
        clickgym.run("Random", "PBMRank-v0", 10, tensorboard=tmp_path / "log")
    assert capfd.readouterr().err == ""
    assert threading.excepthook is hook


def test_without_tensorboard_any_agent_is_told_how_to_install_it(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    for call in (
        lambda: clickgym.run("Random", "PBMRank-v0", 10, tensorboard=tmp_path / "log"),
        lambda: clickgym.sweep(["PBMRank-v0"], ["Random"], 10, 1, tensorboard=tmp_path / "log"),
    ):
        with pytest.raises(ImportError, match=r'pip install "clickgym\[tensorboard\]"'):
            call()
    assert not (tmp_path / "log").exists()
