"""Tests of the programs in `examples/papers`: each runs its study, judges and draws the results,
and its rules distinguish good results from bad ones.
"""

from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import polars
import pytest
import study

from clickgym.bench.result_files import read_results

FOLDER = Path(study.__file__).parent
OTHERS = {"study", "figures"}
NAMES = sorted({file.stem for file in FOLDER.glob("*.py")} - OTHERS)
FAST = ["lagree2016_theorem6", "li2019_nonstationary_figure2", "zoghi2017_figure2"]
"""One program for each of some papers, with agents that are fast without compilation."""
MARKS = {name: [pytest.mark.uncompiled] for name in FAST} | {"he2020_figure3": []}


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=MARKS.get(name, pytest.mark.slow)) for name in NAMES]
)
def test_a_program_plays_judges_and_draws(name, tmp_path):
    """The program plays two runs of 100 sessions on one query."""
    script = import_module(name)
    parts = script.play(
        SimpleNamespace(runs=2, horizon=100, queries=["yandex-990"], out=tmp_path / "runs")
    )
    made = {"command": "none", "full": True, "versions": dict.fromkeys(parts, "7")}
    study.save(tmp_path / "kept.parquet", parts, made)
    results, made = study.read(tmp_path / "kept.parquet")
    text = study.page(script, (results, made))
    for part, heading in (
        ("numbers", "The paper's numbers"),
        ("statements", "What the paper says"),
    ):
        assert hasattr(script, part) == (f"## {heading}" in text)
    assert "reproduced" not in study.page(script, (results, made | {"full": False}))
    script.draw(results).savefig(tmp_path / "figure.png")


def test_shipped_results_as_a_program(program, tmp_path):
    shown = program(FOLDER / "lagree2016_theorem6.py", "--shipped", "--out", "out", folder=tmp_path)
    page = (tmp_path / "out" / "lagree2016_theorem6.md").read_text(encoding="utf-8")
    assert page.strip() == shown.strip()
    assert "| queries | BCMPTS | 734 ± 673 | 0.904 |" in page
    assert (tmp_path / "out" / "lagree2016_theorem6.png").exists()


def judged(script, swapped):
    """Return the initials of the verdicts on the shipped results, after two agents are exchanged
    wherever both have runs.
    """
    table, made = read_results(study.shipped_file(script))
    results = {}
    for part in made["versions"]:
        rows = table.filter(part=part)
        if set(swapped) <= set(rows["agent"]):
            other = dict(zip(swapped, reversed(swapped), strict=True))
            rows = rows.with_columns(polars.col("agent").replace(other))
        results[part] = study.Curves(rows)
    found = study.verdicts(script.statements(results))
    return "".join(verdict.replace("not t", "-")[0] for _, verdict in found)


@pytest.mark.parametrize(
    ("name", "swapped", "expected"),
    [
        ("li2019_bubblerank_figure1", ("BubbleRank", "TopRank"), "rurrrrunuu"),
        ("li2019_nonstationary_figure1", ("CascadeKLUCB", "CascadeSWUCB"), "rnrrrrnnnrn"),
    ],
)
def test_rules_tell_agents_apart(name, swapped, expected):
    """A statement about an agent fails for an agent that does the opposite."""
    assert judged(import_module(name), swapped) == expected


def test_lower_bound_of_lagree():
    """The bound is 0.8 (0.5 - 0.25) / KL(0.2, 0.4)."""
    env = gym.make("PBMRank-v0", attraction=[0.5, 0.25], examination=[0.8])
    expected = 0.2 / (0.2 * np.log(0.5) + 0.8 * np.log(0.8 / 0.6))
    assert import_module("lagree2016_theorem6").bound_per_log(env) == pytest.approx(expected)
