"""The page on which algorithm to take: its commands and programs run, and print what it shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import clickgym
from clickgym_logs import read_log
from clickgym_logs.lists import length_in_days

pytestmark = pytest.mark.usefixtures("undrawn")

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "which_agent.md").read_text(encoding="utf-8")
STEPS = re.findall(r"```(python|sh)\n(.*?)```(?:[^`]*?```text\n(.*?)```)?", PAGE, re.DOTALL)
WIDTH = 140
SMALLER = {
    "--horizon 2698 --runs 6": "--horizon 300 --runs 2",
    "2_698, 5": "300, 2",
    "--sessions 15000": "--sessions 1500",
    "--replicates 20": "--replicates 2",
    "--horizon 5000": "--horizon 500",
}


def take_steps(folder, program, printed, monkeypatch, changed):
    """Yield what each step of the page prints, and what the page shows; `changed` has the texts
    that are replaced first.
    """
    monkeypatch.chdir(folder)
    for kind, text, shown in STEPS:
        for full, small in changed.items():
            text = text.replace(full, small)
        if kind == "python":
            script = f"if __name__ == '__main__':\n    exec({text!r})\n"
            (folder / "step.py").write_text(script, encoding="utf-8")
            yield program(folder / "step.py", folder=folder), shown
            continue
        found = ""
        for line in text.replace("\\\n", " ").splitlines():
            command, *words = shlex.split(line, comments=True)
            if command == "python":
                program(ROOT / words[0], *words[1:], folder=folder)
                continue
            words = [
                part
                for word in words
                for part in (sorted(map(str, Path().glob(word))) if "*" in word else [word])
            ]
            words += ["--jobs", "1"] * (words[0] == "run")
            found += printed(words, WIDTH)
        yield found, shown


def is_among(line, printed):
    """Whether a line is printed, in one line or folded; tables may have more columns."""

    def has_in_order(other):
        rest = iter(other.split())
        return all(word in rest for word in line.split())

    folded = " ".join(printed.split())
    return " ".join(line.split()) in folded or any(map(has_in_order, printed.splitlines()))


@pytest.mark.slow
@pytest.mark.parametrize("changed", [SMALLER, {}], ids=["small", "as shown"])
def test_what_the_page_shows(changed, tmp_path, program, printed, monkeypatch):
    """In the small test, every step runs; else it prints each line that the page shows."""
    n_shown = 0
    for found, shown in take_steps(tmp_path, program, printed, monkeypatch, changed):
        for line in filter(None, shown.splitlines()):
            n_shown += 1
            assert changed or line == "..." or is_among(line, found), line
    assert n_shown > 30


QUERIES = ("shoes", "hats", "jackets")


def worst_first_days(folder, env_id, users, log):
    """Clicks more than today's list on the first day of the worst query, by agent, mean of runs."""
    full = read_log(folder / "log.parquet")
    files = [str(folder / users / f"{query}.json") for query in QUERIES]
    agents = {name: name for name in ("CascadeTS", "PBMHB", "CascadeKLUCB", "Fixed")}
    agents["MixTS"] = "clickgym_lab.mix_ts:MixTS"
    settings = {"instances": files, "start": log, "delay": "batch:300", "n_jobs": 1}
    rows = clickgym.sweep([env_id], agents, 2_698, 6, progress=False, **settings).frame
    gains = {}
    for query in QUERIES:
        rate = len(full.of_query(query)) / length_in_days(full)
        lost = {}
        for agent in agents:
            curve = rows.filter(instance=query, agent=agent).group_by("step").agg(pl.mean("regret"))
            steps, regret = curve.sort("step").select("step", "regret").to_numpy().T
            lost[agent] = np.interp(rate, np.append(0, steps), np.append(0, regret))
        for agent in agents:
            gains.setdefault(agent, []).append(lost["Fixed"] - lost[agent])
    return {agent: min(values) for agent, values in gains.items()}


@pytest.mark.slow
def test_the_worst_query(tmp_path, program, printed, monkeypatch):
    """The table of first days: by two models, in truth, and without the log."""
    monkeypatch.chdir(tmp_path)
    program(ROOT / "examples" / "shop_log.py", folder=tmp_path)
    program(ROOT / "examples" / "shop_log.py", "--users", *QUERIES, folder=tmp_path)
    printed(["fit", "log.parquet", "--model", "DBN", "UBM", "--query", *QUERIES, "--out", "shop"])
    log = read_log(tmp_path / "log.parquet")
    columns = [
        worst_first_days(tmp_path, env_id, users, start)
        for env_id, users, start in (
            ("DBNRank-v0", "shop", log),
            ("UBMRank-v0", "shop", log),
            ("PBMRank-v0", "true", log),
            ("PBMRank-v0", "true", None),
        )
    ]
    table = PAGE.partition("| in truth, without the log |")[2]
    for agent in ("CascadeTS", "MixTS", "PBMHB", "CascadeKLUCB"):
        (row,) = re.findall(rf"^\| {agent} \| (.*) \|$", table.partition("\n*")[0], re.MULTILINE)
        shown = [int(cell.strip(" *").replace("−", "-")) for cell in row.split("|")]
        assert shown == [round(column[agent]) for column in columns], agent
