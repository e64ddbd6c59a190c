"""Damage, full and read-only disks, interrupts and absurd sizes: refused in one line, and what is
finished is kept.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import gymnasium as gym
import pytest
from bit_flips import flipped, kinds
from polars.testing import assert_frame_equal

import clickgym
from clickgym.__main__ import main
from clickgym.core.files import HOST, FileError
from clickgym.runner.results import read_results

ROOT = Path(__file__).resolve().parents[2]
ARGUMENTS = {"horizon": 200, "checkpoints": [10, 200], "seed": 3, "n_jobs": 1}
RUN = "run PBMRank-v0 --agents Random --horizon 100 --runs 2 --jobs 1 --out out"


def sweep(out, agents=("TopRank", "Random"), runs=3, **changed):
    arguments = {**ARGUMENTS, **changed}
    return clickgym.sweep(["PBMRank-v0"], agents, runs=runs, out=out, **arguments).frame


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def dead():
    """The number of a process that there was."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


# ---------------------------------------------------------------------------------------------------------------- damage


@pytest.fixture(scope="module")
def flips(tmp_path_factory):
    """One of everything that is written, in a folder."""
    return kinds(tmp_path_factory.mktemp("flips"))


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("trial, sweep over it", 25),
        ("tables, report of them", 15),
        ("tables, sweep over them", 5),
        ("config.json, report", 15),
        ("config.json, sweep over it", 5),
        ("saved agent", 15),
        ("policy (.npz)", 10),
    ],
)
def test_a_flipped_bit_is_refused_or_harmless(flips, name, number):
    found = list(flipped(flips[name], number, seed=1))
    assert not [each for each in found if each[0] not in ("refused", "equal")]
    assert name == "tables, sweep over them" or any(result == "refused" for result, _ in found)


@pytest.mark.parametrize(
    "name",
    ["instance (.json)", "features (.json)", "log (.csv)", "log (.parquet)", "ratings (.csv)"],
)
def test_what_people_edit_is_refused_in_one_line_or_read(flips, name):
    found = list(flipped(flips[name], 15, seed=1))
    assert not [each for each in found if each[0] == "broken"]


def test_an_edited_configuration_is_read_without_its_checksum(tmp_path):
    sweep(tmp_path / "out")
    file = tmp_path / "out" / "config.json"
    content = json.loads(file.read_text())
    content["parts"][0]["made"] = "yesterday"
    file.write_text(json.dumps(content))
    with pytest.raises(
        ValueError,
        match=r"config.json is damaged or was edited: .* or remove the line of the check",
    ):
        read_results(tmp_path / "out")
    del content["checksum"]
    file.write_text(json.dumps(content))
    assert read_results(tmp_path / "out")[2]["made"] == "yesterday"


def test_damaged_tables_are_made_again_of_the_finished_runs(tmp_path):
    table = sweep(tmp_path / "out")
    for name in ("results.parquet", "timings.parquet"):
        (tmp_path / "out" / name).write_bytes(b"PAR1 nonsense PAR1")
        with pytest.raises(
            ValueError,
            match=rf"{name} is damaged \(.*\); restore it from a backup, or run .*config.json "
            f"again",
        ):
            read_results(tmp_path / "out")
        assert_frame_equal(sweep(tmp_path / "out"), table)
        assert_frame_equal(read_results(tmp_path / "out")[0], table)
    (tmp_path / "out" / "timings.parquet").unlink()
    shutil.rmtree(tmp_path / "out" / "cells")
    with pytest.raises(ValueError, match=r"timings.parquet is missing; restore it from a backup$"):
        read_results(tmp_path / "out")


# ------------------------------------------------------------------------------------------------------- what is left over


def test_a_folder_with_nothing_but_leftovers_is_gone_on_with(tmp_path, dead):
    out = tmp_path / "out"
    (out / "cells").mkdir(parents=True)
    (out / f"config.json.clickgym-{HOST}-{dead}.partial").write_text('{"format"')
    (out / f"cells.clickgym-{HOST}-{dead}.partial").mkdir()
    (out / "cells" / f"a.parquet.clickgym-{HOST}-{dead}.partial").write_text("PAR1")
    assert_frame_equal(sweep(out), sweep(None))
    assert {path.name for path in out.iterdir()} == {
        "cells",
        "config.json",
        "results.parquet",
        "timings.parquet",
    }
    assert len(list((out / "cells").iterdir())) == 6


# ----------------------------------------------------------------------------------------------------------------- disks


LIMITED = """
import resource, sys, warnings
import gymnasium as gym
import clickgym
from clickgym.__main__ import main
from clickgym.envs.instances import load_instance
from clickgym_logs import write_tidy

warnings.simplefilter("ignore")  # compiled kernels cannot be kept either
resource.setrlimit(resource.RLIMIT_FSIZE, (2500, resource.RLIM_INFINITY))
for words in sys.stdin:
    print("code", main(words.split()), file=sys.stderr)
env = gym.make("PBMRank-v0")
agent = clickgym.make_agent("TopRank", env, horizon=100, seed=0)
log = clickgym_logs.record(agent, env, 500, seed=0)
for write in (
    lambda: agent.save("agent.npz"), lambda: load_instance("yandex-9982").save("instance.json"),
    lambda: write_tidy(log, "log.csv"), lambda: write_tidy(log, "log.csv.gz"), lambda: write_tidy(log, "log.parquet"),
):
    try:
        write()
        print("written", file=sys.stderr)
    except OSError as error:
        print(error, file=sys.stderr)
"""

WRITERS = [  # and the file that is named first
    (RUN, r"out/cells/\w*.parquet"),
    ("report b", "b/regret.png"),
    ("features ratings.csv --positions 3 --dimension 2 --out films.json", "films.json"),
]
REFUSED = "cannot be written: the file is larger than the system allows: .*B are needed"


@pytest.mark.slow
def test_every_command_and_function_that_cannot_write_says_so_in_one_line(here):
    """A limit to the size of files refuses as a full disk does, and needs no privileges."""
    sweep("a", ["Random"], runs=1)
    sweep("b", ["Random"], runs=1)
    ratings = [
        f"{user},{item},{(user * item) % 5 + 1}" for user in range(1, 20) for item in range(1, 40)
    ]
    Path("ratings.csv").write_text("\n".join(["userId,movieId,rating", *ratings, ""]))
    before = set(here.rglob("*"))
    words = "\n".join(words for words, _ in WRITERS)
    done = subprocess.run(
        [sys.executable, "-c", LIMITED], input=words, capture_output=True, text=True, check=True
    )
    lines = done.stderr.splitlines()
    for words, file in WRITERS:
        line, code, *lines = lines
        kept = (
            "; 0 of 2 runs are finished and kept in out, and the same command resumes it"
            if words == RUN
            else ""
        )
        assert re.fullmatch(f"clickgym: {file} {REFUSED}{kept}", line), line
        assert code == "code 1"
    assert [line.partition(" ")[0] for line in lines] == [
        "agent.npz",
        "instance.json",
        "log.csv",
        "log.csv.gz",
        "log.parquet",
    ]
    for line in lines:
        assert re.fullmatch(rf"\S+ {REFUSED}", line), line
    new = {
        file.relative_to(here).as_posix()
        for file in set(here.rglob("*")) - before
        if file.is_file()
    }
    assert new == {"out/config.json", "both/config.json", "b/summary.csv"}


@pytest.fixture
def small_disk(tmp_path):
    """A function that mounts a file system of some size, or changes the one that there is."""
    place = tmp_path / "disk"
    place.mkdir()

    def mount(*options):
        already = os.path.ismount(place)
        how = (
            ["-o", ",".join(("remount", *options))]
            if already
            else ["-t", "tmpfs", "-o", ",".join(options), "tmpfs"]
        )
        try:
            done = subprocess.run(["mount", *how, place], capture_output=True, check=False)
        except FileNotFoundError:
            pytest.skip("there is no mount")
        if done.returncode:
            pytest.skip("not allowed to mount")
        return place

    yield mount
    if os.path.ismount(place):
        subprocess.run(["umount", place], check=True)


@pytest.mark.usefixtures("undrawn")
def test_a_full_disk_keeps_what_is_finished_and_a_larger_one_takes_the_rest(small_disk, capsys):
    out = small_disk("size=100k") / "out"
    words = f"run PBMRank-v0 --agents Random TopRank --horizon 1000 --runs 20 --jobs 1 --out {out}".split()
    assert main(words) == 1
    err = capsys.readouterr().err
    assert re.fullmatch(
        r"clickgym: .*cells/\w+.parquet cannot be written: No space left on device; "
        r"\d+ of 40 runs are finished and kept in .*, and the same command resumes it\n",
        err[err.index("clickgym: ") :],
    )
    kept = len(list((out / "cells").glob("*.parquet")))
    assert 0 < kept < 40
    assert not list(out.rglob("*.partial"))
    small_disk("size=20m")
    assert main(words) == 0
    assert f"{kept} of 40 runs were finished before" in capsys.readouterr().err


def test_a_finished_folder_on_a_read_only_disk_is_read_and_nothing_else(small_disk, capsys):
    out = small_disk("size=20m") / "out"
    table = sweep(out)
    small_disk("ro")
    assert_frame_equal(sweep(out), table)
    assert_frame_equal(sweep(out, ["Random"]), table.filter(agent="Random"))
    assert main(["report", str(out)]) == 0
    capsys.readouterr()
    for call in (lambda: sweep(out, runs=4), lambda: sweep(out.parent / "new")):
        with pytest.raises(FileError, match=r"cannot be written: Read-only file system$"):
            call()
    assert main(["report", str(out), "--html"]) == 2
    assert capsys.readouterr().err.endswith(
        "summary.csv cannot be written: Read-only file system\n"
    )


# ------------------------------------------------------------------------------------------------------------ interrupts


@pytest.mark.parametrize(
    "start", [[sys.executable, "-m", "clickgym"], [Path(sys.executable).with_name("clickgym")]]
)
@pytest.mark.parametrize("late", [0.0, 0.3])
def test_ctrl_c_while_the_command_is_loaded_is_silent(start, late):
    if not Path(start[0]).exists() or not Path("/proc/self/maps").exists():
        pytest.skip("the command is not installed, or there is no /proc")
    # Not by the clock, which says little on a busy machine: once the package has begun to load NumPy.
    process = subprocess.Popen(
        [*start, "list"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while b"numpy" not in Path(f"/proc/{process.pid}/maps").read_bytes():
        time.sleep(0.005)
    time.sleep(late)
    os.killpg(process.pid, signal.SIGINT)
    assert (process.communicate(timeout=60)[1], process.returncode) == ("", 130)


KILLED = """
import os, signal
import numpy as np
from clickgym.agents import Agent

class Victim(Agent):
    def __init__(self, n_items, n_positions, *, seed=None):
        self.items = np.arange(n_positions)

    def rank(self, observation):
        return self.items

    def update(self, observation, ranking, clicks, reward):
        if not os.path.exists("spared"):
            os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_a_killed_worker_is_told_in_one_line_and_the_sweep_goes_on(here):
    Path("victim.py").write_text(KILLED)
    words = (
        RUN.replace("Random", "Random victim:Victim")
        .replace("runs 2 --jobs 1", "runs 4 --jobs 2")
        .split()
    )
    first = subprocess.run(
        [sys.executable, "-m", "clickgym", *words], capture_output=True, text=True, check=False
    )
    assert first.returncode == 1
    told = (
        "clickgym: a worker process was killed, perhaps because memory ran out; 4 of 8 runs are finished and kept in out, and "
        "the "
    )
    assert first.stderr.splitlines()[1:] == [f"{told}same command resumes it"]
    Path("spared").touch()
    again = subprocess.run(
        [sys.executable, "-m", "clickgym", *words], capture_output=True, text=True, check=False
    )
    assert again.returncode == 0
    assert "4 of 8 runs were finished before" in again.stderr


# -------------------------------------------------------------------------------------------------------------- Markdown


# ----------------------------------------------------------------------------------------------------------------- sizes


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--runs 99999999999", "99,999,999,999 trials are 9,999,999,999,900 sessions"),
        ("--runs 1000001", "1,000,001 trials are 100,000,100 sessions"),
        ("--horizon 1e15 --runs 2", "2 trials are 2,000,000,000,000,000 sessions"),
        (
            "--horizon 1e18",
            "horizon is 1e+18; expected an integer of at least 1, at most 1,000,000,000,000,000",
        ),
        (
            "--horizon 1000000000000000000000",
            "horizon is 1000000000000000000000; expected an integer of at least 1, at most",
        ),
        ("--jobs 1000000000", "n_jobs is 1000000000; expected a number of workers up to 1,000"),
    ],
)
def test_absurd_sizes_are_refused_at_once_with_what_they_would_take(here, capsys, words, message):
    began = time.monotonic()
    assert main([*RUN.split(), *words.split()]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1
    assert not Path("out").exists()
    assert time.monotonic() - began < 5  # the sessions or trials themselves would take hours


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda env: clickgym.run("TopRank", env, 10**18),
            "horizon is 1000000000000000000; expected an integer of at least 1, at most",
        ),
    ],
)
def test_absurd_sizes_are_refused_in_python(call, message):
    with pytest.raises(ValueError, match=message):
        call(gym.make("PBMRank-v0"))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("words", ["list", "--help"])
def test_a_full_disk_behind_standard_output_is_told(words, capsys, monkeypatch):
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert main([words]) == 1
        monkeypatch.undo()
        assert (
            capsys.readouterr().err == "clickgym: the output cannot be written: the disk is full\n"
        )
        with pytest.raises(OSError, match="No space left"):
            full.close()
