"""Where the address space is too small for a command, one line says so: libraries would abort, or end in a traceback."""

import subprocess
import sys

import pytest

resource = pytest.importorskip("resource")

COMMANDS = {
    "run": ["PBMRank-v0", "--agents", "TopRank", "--horizon", "10", "--out", "out"],
    "fit": ["log.csv", "--out", "out.json"],
    "decide": ["log.csv", "--query", "q", "--out", "out"],
    "bench": ["TopRank", "--out", "out"],
}


def under(megabytes, words, folder):
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (megabytes * 10**6,) * 2)

    command = [sys.executable, "-m", "clickgym", *words]
    return subprocess.run(command, cwd=folder, preexec_fn=limit, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.parametrize("megabytes", [600, 900, 1200])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_limit_below_what_a_command_needs_is_said_in_one_line(command, megabytes, tmp_path):
    done = under(megabytes, [command, *COMMANDS[command]], tmp_path)
    assert (done.returncode, done.stdout, list(tmp_path.iterdir())) == (1, "", [])
    wanted = f"the address space is limited to {megabytes:,} MB; clickgym {command} needs 1,300 MB or more (ulimit -v)"
    assert done.stderr == f"clickgym: {wanted}\n"


@pytest.mark.slow
def test_a_command_that_needs_less_runs_under_such_a_limit(tmp_path):
    done = under(900, ["show", "TopRank"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert "TopRank" in done.stdout
    assert "limited to 300 MB; clickgym show needs 500 MB" in under(300, ["show", "TopRank"], tmp_path).stderr
