"""The judge of the scorecard: a judged run is an ordinary one, and cheats and forgeries gain nothing."""

import gc
import json
import math
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

import channels
import numpy as np
import polars
import pytest
import scorecard as make
from slow import slow

import clickgym
from clickgym.command_line import main
from clickgym.core.files import sealed
from clickgym.core.kernels import SessionError
from clickgym.runner.callback import Callback
from clickgym_lab.bench import card as cards
from clickgym_lab.bench import judge as judging
from clickgym_lab.bench import sandbox as sandboxes
from clickgym_lab.bench import seats, submission
from clickgym_lab.bench.leaderboard import cells_of, leaderboard
from clickgym_lab.bench.play import play, play_again, play_run, suited
from clickgym_lab.bench.protocol import CURRENT, DEVELOPMENT
from clickgym_lab.bench.sandbox import check_can_confine, end_with
from clickgym_lab.bench.score import scored, standing
from clickgym_lab.bench.task_set import task_set

try:
    check_can_confine()
    REASON = ""
except OSError as error:
    REASON = str(error)
pytestmark = pytest.mark.skipif(bool(REASON), reason=REASON)

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
def udp():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way:
        way.bind(("127.0.0.1", 0))
        way.setblocking(False)
        yield way


@pytest.fixture(scope="module")
def places(tmp_path_factory, udp):
    """What agents look for: each is there, for processes of this machine."""
    name = f"clickgym-{os.getpid()}"
    path = tmp_path_factory.mktemp("sockets") / "socket"
    streams = [socket.socket(kind, socket.SOCK_STREAM) for kind in (socket.AF_UNIX, socket.AF_UNIX, socket.AF_INET)]
    for stream, address in zip(streams, (str(path), f"\0{name}", ("127.0.0.1", 0)), strict=True):
        stream.bind(address)
        stream.listen()
    home = next((file for file in Path.home().iterdir() if file.is_file()), __file__)
    found = {"name": name, "pid": os.getpid(), "segment": 1 + os.getpid() * 2, "path": str(path), "home": str(home)}
    found |= {"tcp": streams[2].getsockname()[1], "udp": udp.getsockname()[1], "file": __file__}
    with ExitStack() as stack:
        for way in streams:
            stack.enter_context(way)
        channels.segment(found["segment"], channels.CREATE)
        channels.queue(f"/{name}", os.O_CREAT)
        keys = [channels.new_key(keyring, name) for keyring in (channels.SESSION_KEYRING, channels.USER_KEYRING)]
        yield found
        for segment in (found["segment"], found["segment"] + 1):
            with suppress(OSError):
                channels.LIBC.shmctl(channels.segment(segment)[0], 0, None)
        for queue in (f"/{name}", f"/{name}-left"):
            channels.LIBC.mq_unlink(queue.encode())
        for key in keys:
            channels.call("keyctl", 3, key)
        Path("/tmp", name).unlink(missing_ok=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, places):
    """A submission without results; the module of its agents is `cheats`."""
    folder = tmp_path_factory.mktemp("submission")
    task = next(task for task in CURRENT.candidates if task.name == "standard-01")
    target = tmp_path_factory.mktemp("results") / "target"
    target.write_text("true")
    facts = f"TASK = {json.dumps(task._asdict())!r}\nTARGET = {str(target)!r}\nPLACES = {json.dumps(places)!r}\n"
    (folder / "cheats.py").write_text(CHEATS + facts)
    shutil.copy(Path(__file__).parent / "channels.py", folder)
    return folder


@pytest.fixture(scope="module")
def sandbox(folder, tmp_path_factory):
    return judging._sandbox(folder, tmp_path_factory.mktemp("judge"), confined=True)


@pytest.fixture
def target(folder):
    return Path(next(line for line in (folder / "cheats.py").read_text().splitlines() if line.startswith("TARGET = "))[10:-1])


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
    return replace(CURRENT, make_tasks=lambda: tasks, data=data, frozen="", seed=seed)


def regret(whole, agent, run=0):
    gc.collect()  # environments of others
    return play_again(whole, agent, whole.candidates[0], run)["regret"][-1]


def test_variables_that_choose_numeric_kernels_are_passed_on_and_no_others():
    """With other kernels of OpenBLAS (Haswell, SkylakeX) the values of users with a memory have other last digits."""
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "NUMBA_CPU_NAME", "NPY_DISABLE_CPU_FEATURES", "OMP_NUM_THREADS"):
        assert seats.PASSED_ON.fullmatch(name)
    for name in ("HOME", "PATH", "PYTHONPATH", "AWS_SECRET_KEY", "MY_OPENBLAS_KEY", "OPENBLAS_"):
        assert not seats.PASSED_ON.fullmatch(name)


@pytest.mark.parametrize("agent", ["Honest", "Compiled"])
def test_a_run_without_the_environment_is_equal_to_an_ordinary_one(sandbox, here, tmp_path, agent):
    """With features, states, late clicks, items that are replaced, a log before, and another measure."""
    whole = secret(tmp_path, names=NAMES, horizon=60)
    seated, own = seats.sit_down(f"cheats:{agent}", sandbox), getattr(here, agent)
    tasks = suited(own, whole.candidates)
    assert suited(seated, whole.candidates) == tasks
    one, other = (play(whole, "it", each, tasks, 1, tmp_path / str(i), n_jobs=1) for i, each in enumerate((seated, own)))
    assert one.drop("seconds").equals(other.drop("seconds"))
    assert {task.ability for task in tasks} >= {"standard", "safety", "warm_start", "churn"}


@pytest.mark.parametrize("agent", ["CMLinUCB", "PBMUCB", "CascadeVI", "TopRank:delta=0.1"])
def test_an_agent_of_the_package_plays_so_too(sandbox, tmp_path, agent):
    whole = secret(tmp_path, names=NAMES, horizon=40)
    seated = seats.sit_down(agent, sandbox)
    assert suited(seated, whole.candidates) == suited(agent, whole.candidates)
    task = suited(agent, whole.candidates)[0]
    assert play_again(whole, seated, task, 0).equals(play_again(whole, agent, task, 0))


# ----------------------------------------------------------------------------------------------------------------- sandbox


@pytest.fixture(scope="module")
def looked(sandbox, udp):
    """What a seat finds, when another before it has looked and left what it could."""

    def look():
        with pytest.raises(seats.SeatError) as refusal:
            seats.sit_down("cheats:Looks", sandbox)(n_items=10, n_positions=5)
        text = str(refusal.value)
        return json.JSONDecoder().raw_decode(text[text.index("[") :])[0]

    look()
    facts, ways = look()
    return facts | {"words by UDP": words(udp)}, ways


def words(udp):
    """How many words have arrived since the last time."""
    count = 0
    with suppress(BlockingIOError):
        while udp.recv(10):
            count += 1
    return count


WAYS = (
    "memory of System V", "queues", "session keyring", "user keyring", "limits", "niceness", "signals", "path-name socket",
    "abstract socket", "TCP", "files", "home", "/var", "/proc", "file locks", "record locks", "processes",
    "memory that no limit counts", "left in /tmp", "left in memory of System V", "left in a queue", "left in a keyring",
)  # fmt: skip


@pytest.mark.parametrize("way", [*WAYS, "own folder", "kernels", "package"])
def test_a_seat_reaches_nobody(looked, way):
    assert looked[1][way] is False


@pytest.mark.parametrize("way", WAYS)
def test_the_same_way_is_open_without_a_sandbox(places, way):
    """What is tested is closed for no other reason; keyrings are not part of all kernels."""
    channels.leave(places)
    assert channels.is_open(channels.ways_of(places)[way]) or "keyring" in way


def test_nothing_that_a_seat_sends_by_udp_arrives(looked, places, udp):
    assert looked[0]["words by UDP"] == 0
    words(udp)
    channels.leave(places)
    assert words(udp) == 1


def test_a_seat_has_no_rights_no_environment_and_no_company(looked):
    facts = looked[0]
    assert facts["environment"] == {}
    assert facts["capabilities"] == 0
    assert facts["user"] != 0
    assert facts["processes"] == 2  # itself, and the first one, which holds the sandbox
    assert not {"home", "run", "var", "etc", "opt", "sys", "mnt", "srv"}.intersection(facts["folders"])


# ------------------------------------------------------------------------------------------------------------------- cheats


@pytest.mark.parametrize("cheat", ["Objects", "Frames", "Generators", "Patches", "Remembers"])
def test_a_cheat_that_gains_in_one_process_gains_nothing_in_two(sandbox, here, tmp_path, cheat):
    whole = secret(tmp_path)
    honest = regret(whole, here.Honest)
    assert regret(whole, seats.sit_down(f"cheats:{cheat}", sandbox)) == honest > 0
    seated = seats.sit_down(f"cheats:{cheat}", sandbox)
    assert regret(whole, seated, 1) == regret(whole, here.Honest, 1)
    regret(whole, getattr(here, cheat))
    assert regret(whole, getattr(here, cheat)) != honest  # it does cheat


def test_files_of_a_sweep_cannot_be_read(sandbox, here, tmp_path, monkeypatch):
    whole = secret(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    losses = []
    for i, agent in enumerate((here.Honest, here.Files, seats.sit_down("cheats:Files", sandbox))):
        table = play(whole, "it", agent, whole.candidates, 1, tmp_path / str(i) / "it", n_jobs=1)
        losses.append(table["loss"][-1])
        shutil.rmtree(tmp_path / str(i))
    assert losses[0] == losses[2] != losses[1]


def test_the_memory_and_the_command_of_other_processes_cannot_be_read(sandbox, here, tmp_path):
    whole = secret(tmp_path)
    assert regret(whole, here.Memory) != regret(whole, here.Honest)
    assert regret(whole, seats.sit_down("cheats:Memory", sandbox)) == regret(whole, here.Honest)


def test_seeds_of_public_tasks_can_be_told_from_names_those_of_secret_tasks_cannot(sandbox, here, tmp_path):
    seated = seats.sit_down("cheats:Seeds", sandbox)
    tasks = few(CURRENT.candidates, ("standard-01",), SHORT)
    assert regret(replace(CURRENT, make_tasks=lambda: tasks, frozen=""), here.Seeds) == 0
    assert regret(secret(tmp_path), seated) == regret(secret(tmp_path), here.Honest)


def test_results_cannot_be_written(sandbox, here, target, tmp_path):
    assert regret(secret(tmp_path), seats.sit_down("cheats:Writes", sandbox)) == regret(secret(tmp_path), here.Honest)
    assert target.read_text() == "true"


def test_time_tells_nothing(sandbox, here, tmp_path):
    lists = secret(tmp_path)
    random = np.mean([regret(lists, "Random", run) for run in range(3)])
    assert regret(lists, seats.sit_down("cheats:Watches", sandbox)) > random / 2


def test_only_numbers_leave_a_seat(sandbox, here, tmp_path):
    env = secret(tmp_path).candidates[0].make()
    agent = clickgym.make_agent(seats.sit_down("cheats:Lies", sandbox), env, seed=0)
    ranking = agent.rank(None)
    assert type(ranking) is np.ndarray
    assert not ranking.flags.writeable
    assert ranking.tolist() == list(range(5))


def test_nothing_that_an_agent_prints_is_shown(sandbox, here, tmp_path, capfd):
    seats._host.cache_clear()  # one that has the streams of this test
    whole = secret(tmp_path)
    regret(whole, seats.sit_down("cheats:Prints", sandbox))
    assert capfd.readouterr() == ("", "")
    regret(whole, here.Prints)
    assert all("confirmed" in shown for shown in capfd.readouterr())


def test_a_run_at_full_speed_is_equal_to_an_ordinary_one(sandbox, tmp_path):
    [task] = secret(tmp_path).candidates
    table = seats.play_in_seat(seats.sit_down("cheats:Compiled", sandbox), task, 1, 2, [100, SHORT])
    assert table.equals(play_run("CascadeTS", task, 1, 2, [100, SHORT]))


def test_a_seat_that_says_more_or_less_than_it_should_makes_a_table_of_its_size(sandbox, tmp_path, monkeypatch):
    [task] = secret(tmp_path).candidates
    maker, answer = seats.sit_down("cheats:Compiled", sandbox), seats._Seat.answer
    table = play_run("CascadeTS", task, 1, 2, [100, SHORT])
    monkeypatch.setattr(seats._Seat, "answer", lambda seat: answer(seat) + b"more")
    assert seats.play_in_seat(maker, task, 1, 2, [100, SHORT]).equals(table)
    monkeypatch.setattr(seats._Seat, "answer", lambda seat: answer(seat)[:16])
    less = seats.play_in_seat(maker, task, 1, 2, [100, SHORT])
    assert less["regret"].equals(table["regret"])
    assert less["loss"].is_nan().all()


# ------------------------------------------------------------------------------------------------------------------ limits


def descendants(process):
    """The numbers of the processes that a process has started, and of those that these have started."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            parents |= {} if state == "Z" else {int(folder.name): int(parent)}
    found, waiting = set(), {process}
    while waiting:
        waiting = {child for child, parent in parents.items() if parent in waiting}
        found |= waiting
    return found


def are_gone(processes):
    """Whether some processes end within some seconds."""
    for _ in range(100):
        if not processes.intersection(descendants(1)):
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize(
    ("agent", "seconds", "message"),
    [
        ("Loops", 1.0, "it took more than 1 s"),
        ("Hoards", 60.0, "MemoryError"),
        ("Forks", 60.0, "PermissionError"),
        ("Threads", 60.0, "can't start new thread"),
        ("Fills", 60.0, "No space left on device"),
        ("Ends", 60.0, "its process has ended"),
    ],
)
def test_what_wants_too_much_is_refused_in_a_line_and_nothing_of_it_is_left(sandbox, tmp_path, agent, seconds, message):
    [task] = secret(tmp_path).candidates
    maker = seats.sit_down(f"cheats:{agent}", sandbox)
    before, start = descendants(os.getpid()), time.perf_counter()
    with pytest.raises((seats.SeatError, SessionError, clickgym.AgentError), match=message) as refusal:
        play_run(replace(maker, seconds=seconds), task, 1, 2, [SHORT])
    assert "\n" not in str(refusal.value)
    assert time.perf_counter() - start < seconds + 15
    gc.collect()
    assert are_gone(descendants(os.getpid()) - before)


def test_no_seat_outlives_a_judge_that_is_killed(sandbox):
    code = f"""
import os, sys
sys.path[:] = {sys.path!r}
from pathlib import Path
from clickgym_lab.bench import seats
from clickgym_lab.bench.sandbox import Sandbox
agent = seats.sit_down("cheats:Loops", Sandbox(Path({str(sandbox.folder)!r}), Path({str(sandbox.kernels)!r})))
built = agent(n_items=10, n_positions=5)
print("ready", flush=True)
built.rank(None)
"""
    judge = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert judge.stdout.readline() == "ready\n"
    time.sleep(0.2)
    its = descendants(judge.pid)
    assert len(its) >= 5  # host, bwrap, first process, and the two of the seat
    judge.send_signal(signal.SIGKILL)
    judge.wait()
    judge.stdout.close()
    assert are_gone(its)


def test_a_worker_ends_with_its_judge():
    way, end = os.pipe()
    judge = os.fork()
    if judge == 0:
        worker = os.fork()
        if worker == 0:
            end_with(os.getppid())
            os.write(end, b"%d" % os.getpid())
            time.sleep(60)
        time.sleep(60)
        os._exit(0)
    worker = int(os.read(way, 20))
    os.kill(judge, signal.SIGKILL)
    os.waitpid(judge, 0)
    os.close(way), os.close(end)
    assert are_gone({worker})


# ------------------------------------------------------------------------------------------------------------------ judging


@pytest.fixture(scope="module")
def short(tmp_path_factory):
    """A protocol of three short tasks, with anchors and the results of three agents."""
    data = tmp_path_factory.mktemp("data")
    tasks = few(CURRENT.candidates, ("standard-01", "standard-02", "cold_start-01"), 1000)
    whole = replace(CURRENT, make_tasks=lambda: tasks, data=data, frozen="", runs=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(make, "_tuned", lambda maker, name: None)
        patch.setattr(make, "_write_card", lambda protocol: None)
        make.make(whole, DEVELOPMENT, tmp_path_factory.mktemp("out"), agents=["Random", "CascadeKLUCB", "CascadeTS"], jobs=1)
    return whole


@pytest.fixture
def current(short, monkeypatch):
    """The short protocol in the place of version 2, and secret sets as short."""
    for module in (cards, judging):
        monkeypatch.setattr(module, "CURRENT", short)
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
        clickgym.bench({"forged": played} if played else f"cheats:{agent}", out="results", n_jobs=1)
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
    assert "12 of 12 runs, drawn afterwards, were played again without the environment, and came out equal" in said
    assert "each in a sandbox of its own" in said
    assert "6 of 6 submitted runs came out equal: confirmed." in said
    written = json.loads((tmp_path / "out" / "judgement.json").read_text())
    assert written["trust"] == "judged"
    assert written["seed"] == "7"
    scores = written["scores"]
    assert scores["claimed"] == scores["judged"] != scores["secret"]
    assert "| overall | " in (tmp_path / "out" / "judgement.md").read_text()
    again = judging.judge(own, seed=7, n_jobs=1)
    assert again.to_dict() == written


def test_what_a_judgement_says_and_writes(short, tmp_path):
    """Of a submission without results of one ability."""
    curves = play(short, "it", "CascadeTS", short.candidates, 2, tmp_path / "plays", n_jobs=1)
    judged, board = scored(curves, short), short.boards[0]
    judgement = judging.Judgement(
        name="mine", agent="agent:Mine", quick=True, confined=True, board=board,
        about={"sources": [], "told": [], "click_models": "any"}, seed=7, replayed=4,
        submitted=judged.filter(ability="standard"), judged=judged, secret=judged, curves=curves,
        protocol=short, secret_protocol=short, claim=judging.Claim(4, 4, [], math.nan, math.nan, 0.0),
    )  # fmt: skip
    again = "4 of 12 runs, drawn afterwards, were played again without the environment, and came out equal"
    assert judgement.how == f"{again}; all were played each in a sandbox of its own."
    without = "All 12 runs were played in processes without the environment, each in a sandbox of its own."
    assert replace(judgement, replayed=0).how == without
    result = standing(judged, short, board, quick=True)
    scores = {name: str(each) for name, each in result.abilities.items()}
    assert judgement.rows[:2] == [
        ("standard", *[scores["standard"]] * 3), ("cold start", "–", *[scores["cold_start"]] * 2),
    ]  # fmt: skip
    judgement.save(tmp_path)
    written = json.loads((tmp_path / "judgement.json").read_text())
    assert written["claim"] == {
        "equal": 4, "n": 4, "differences": [], "difference": None, "p": None, "detectable": 0.0, "right": True,
    }  # fmt: skip
    assert written["scores"]["judged"]["overall"] == [round(result.overall.value, 6), None, None]  # a first look
    shutil.copytree(short.data, tmp_path / "data")
    shutil.copy(tmp_path / "mine.parquet", tmp_path / "data")
    places = {place.agent: place for place in leaderboard(replace(short, data=tmp_path / "data"), board)}
    assert (places["mine"].trust, places["mine"].standing.overall) == ("judged", places["CascadeTS"].standing.overall)


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
    assert places["by_Honest"].secret == judgement.standings["secret"].overall
    cells = {name: cells_of(each, whole, judgement.board)["secret score"] for name, each in places.items()}
    assert cells["Random"] == "not judged"
    assert cells["by_Honest"] == str(judgement.standings["secret"].overall)
    assert "by_Honest" not in judging._best(whole, "standard")


@pytest.mark.parametrize("cheat", ["Memorises", *slow("Peeks", "Stores")])
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
    monkeypatch.setattr(submission, "machine", lambda: "another")
    read = submission.read_submission(own / "results", judgement.protocol)
    claim = judging._compared(read, judgement.submitted, judgement.judged, judgement.board)
    assert claim.difference == pytest.approx(scores["claimed"] - scores["judged"])
    assert 0 < claim.detectable < 10
    assert "is found with a probability of 90%" in str(claim)
    true = judging._compared(read, judgement.judged, judgement.judged, judgement.board)
    assert true.right


def test_a_lie_about_what_was_played_is_noticed(submit, sandbox, monkeypatch):
    """A process with the environment that returns other numbers than it has measured."""
    own = submit("Compiled")
    maker = seats.sit_down("cheats:Compiled", sandbox)
    whole = judging.CURRENT
    table = play(whole, "it", "CascadeTS", whole.candidates, 2, own / "plays", n_jobs=1)
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
    assert "'TopRank' is, or looks like, the name of an agent" in refusal(tmp_path / "TopRank")
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
    assert "is of version 1" in saying(protocol=1)
    config.write_text(json.dumps(content))
    assert "seed is -1" in refusal(own, "--seed", "-1")
    assert main(["bench", "Random", "--seed", "1", "--out", "x"]) == 2
    assert "--seed is only for --judge" in capsys.readouterr().err
    assert main(["bench", "--judge", str(own)]) == 2
    assert "--judge needs --out DIR" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.with_columns(regret=polars.lit("much")), "'regret' in .* holds String; expected numbers"),
        (lambda table: table.with_columns(regret=polars.lit(math.nan)), "'regret' in .* no finite numbers"),
        (lambda table: table.with_columns(regret=polars.lit(None, polars.Float64)), "'regret' in .* no finite numbers"),
        (lambda table: polars.concat([table.head(1), table]), "has a run twice"),
        (lambda table: table.drop("regret"), "regret"),
        (lambda table: polars.concat([table] * 100_000), r"has [\d,]+ rows; expected at most"),
        (lambda table: polars.DataFrame({"regret": []}), "env"),
    ],
)
def test_results_that_are_none_are_refused_in_a_sandbox_before_any_session(submitted, sandbox, change, message):
    own, plays = submitted
    before = plays.read_bytes()
    plays.write_bytes(sealed(change(polars.read_parquet(plays, memory_map=False)), clickgym_format="2"))
    try:
        with pytest.raises(seats.SeatError, match=message) as refusal:
            seats.read_in_seat(replace(sandbox, folder=own), CURRENT)
    finally:
        plays.write_bytes(before)
    assert "\n" not in str(refusal.value)


@pytest.fixture(scope="module")
def submitted(tmp_path_factory):
    """A submission with results of a task of version 2, and the file of its table."""
    own = tmp_path_factory.mktemp("submitted")
    tasks = CURRENT.tasks(quick=True)
    [task] = [task for task in tasks if task.name == min(each.name for each in tasks if each.ability == "standard")]
    played = play(CURRENT, "Random", "Random", [task], 1, own / "results" / cards.PLAYS, n_jobs=1)
    config = {
        "agent": "Random",
        "protocol": CURRENT.version,
        "fingerprint": CURRENT.fingerprint,
        "machines": ["<b>\u202e"],
        "finished": ["quick"],
    }
    (own / "results" / cards.CONFIG).write_text(json.dumps(config | {"machines": ["this"]}))
    own.chmod(0o755)
    assert played.height
    return own, own / "results" / cards.PLAYS / "standard" / "results.parquet"


def test_what_a_seat_reads_is_what_was_written(submitted, sandbox):
    own, _ = submitted
    read = seats.read_in_seat(replace(sandbox, folder=own), CURRENT)
    here = submission.read_submission(own / "results")
    assert read[:2] == here[:2] == ("Random", True)
    ends = here.table.filter(polars.col("step") == polars.col("horizon"))
    assert read.table.equals(ends.select(read.table.columns).cast(dict(read.table.schema)))
    ends = (["none", 0, 1.0], ["standard-01", math.inf, 1.0])
    lies = ({"agent": "A", "quick": True, "made": [], "ends": [end]} for end in ends)
    for lie in ([], {}, *lies):
        with pytest.raises(ValueError, match="its process returned no results"):
            submission.Submission.from_json(lie, CURRENT)


def test_a_table_has_as_many_rows_as_there_can_be_and_no_more(submitted):
    rows = polars.read_parquet(submitted[1], memory_map=False).height
    submission._check_size(submitted[1], rows)
    with pytest.raises(ValueError, match=f"has {rows} rows; expected at most {rows - 1}"):
        submission._check_size(submitted[1], rows - 1)


def test_results_say_short_texts_of_themselves(submitted):
    own, _ = submitted
    config = own / "results" / cards.CONFIG
    before = config.read_text()
    for changes in ({"agent": "a\nb"}, {"agent": 7}, {"machines": ["\x1b[31m"]}, {"agent": "a" * 1000}):
        config.write_text(json.dumps(json.loads(before) | changes))
        with pytest.raises(ValueError, match="something else than a short text"):
            submission.read_submission(own / "results")
    config.write_text(before)


def test_a_submission_has_regular_files_only(tmp_path, monkeypatch):
    for name, make_one in (
        ("link", lambda path: path.symlink_to("/etc/passwd")),
        ("folder", lambda path: path.symlink_to("/etc")),
        ("fifo", os.mkfifo),
    ):
        own = tmp_path / name
        (own / "results").mkdir(parents=True)
        submission.check_files(own)
        make_one(own / "results" / "bench.json")
        with pytest.raises(ValueError, match=r"bench\.json is a link or a device; a submission has only regular files"):
            submission.check_files(own)
    monkeypatch.setattr(submission, "MOST_BYTES", 10)
    (tmp_path / "large").mkdir()
    (tmp_path / "large" / "agent.py").write_text("x" * 10)
    submission.check_files(tmp_path / "large")
    (tmp_path / "large" / "agent.py").write_text("x" * 11)
    with pytest.raises(ValueError, match="has more than a submission may have"):
        submission.check_files(tmp_path / "large")


@pytest.mark.parametrize(
    "name", ["a\nb", "<b>mine</b>", "Mu\u0308ller", "C\u0430scadeTS", "-mine", ".mine", "", "a" * 65, "CascadeTS", "cascade_ts",
             "T0pRank", "Cascade.TS", "CascadeT5"],
)  # fmt: skip
def test_names_that_could_pass_for_others_are_refused(name):
    with pytest.raises(ValueError, match=r"name of an agent|is called") as refusal:
        submission.check_name(name)
    assert "\n" not in str(refusal.value)
    assert submission.check_name("my-agent_2.0") == "my-agent_2.0"


def test_what_an_author_has_named_is_shown_as_text(submit, monkeypatch):
    claim = judging.Claim(0, 1, ["machine <b>|x, here y"], 0.1, 0.5, 0.2)
    hostile = judging.Judgement(
        name="mine", agent="agent:My<b>|", quick=True, confined=False, board=CURRENT.boards[0], about={"told": ["<i>"]},
        seed=1, replayed=0, submitted=None, judged=polars.DataFrame(), secret=polars.DataFrame(), curves=None,
        protocol=CURRENT, secret_protocol=CURRENT, claim=claim,
    )  # fmt: skip
    monkeypatch.setattr(judging.Judgement, "rows", [])
    text = hostile.to_markdown()
    assert not {"<b>", "<i>"}.intersection(text)
    assert "agent:My\\<b\\>\\|" in text
    assert "Not judged, but played without a sandbox" in text


def test_without_bubblewrap_nothing_is_judged(submit, tmp_path, monkeypatch, capsys):
    own = submit("Honest")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sandboxes.os, "defpath", str(tmp_path))
    check_can_confine.cache_clear()
    out = tmp_path / "out"
    assert main(["bench", "--judge", str(own), "--out", str(out)]) == 2
    assert "the judge needs bubblewrap, which confines the code of others: install it" in capsys.readouterr().err
    assert main(["bench", "--judge", str(own), "--out", str(out), "--unconfined", "--jobs", "1"]) == 0
    said = capsys.readouterr().out
    assert "not judged" in said
    assert "without a sandbox, so that nothing is judged" in said
    assert json.loads((out / "judgement.json").read_text())["trust"] == "not judged"
    assert sorted(file.name for file in out.iterdir()) == ["judgement.json", "judgement.md"]
    check_can_confine.cache_clear()


def refusal_into(own, capsys):
    assert main(["bench", "--judge", str(own), "--out", str(own / "out")]) == 2
    return capsys.readouterr().err


def test_what_the_policy_says_of_the_judge():
    assert (judging.AT_LEAST, judging.SHARE) == (60, 1 / 20)
    assert round(1 - (1 - 1 / 20) ** judging.AT_LEAST, 2) == 0.95
    assert judging.BITS == 128
    assert judging.LEVEL == 0.01
    assert (sandboxes.MEMORY, sandboxes.SCRATCH, sandboxes.THREADS) == (2 << 30, 64 << 20, 64)
    assert (seats.SECONDS, seats.PER_SESSION) == (300, 0.01)
    policy = (Path(__file__).parents[2] / "docs" / "taking_part.md").read_text(encoding="utf-8")
    assert CURRENT.frozen in policy
