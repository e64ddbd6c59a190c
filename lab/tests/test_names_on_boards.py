"""What PPO and A2C mean in the results of version 2 that ship and in folders of `clickgym bench`: codes."""

import hashlib
import json
import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars
import pytest

import clickgym
from clickgym.core.files import sealed
from clickgym.runner import Trial
from clickgym_lab.bench import card
from clickgym_lab.bench.boards import source_file
from clickgym_lab.bench.leaderboard import tables_of
from clickgym_lab.bench.lines import may_be_anchors
from clickgym_lab.bench.protocol import CURRENT
from clickgym_lab.bench.reference import Line, agent_of, lines, reference
from clickgym_lab.bench.submission import read_submission
from clickgym_lab.shipped import MADE, read_shipped, write_shipped
from clickgym_lab.studies import STUDIES
from clickgym_lab.studies.play import read_study

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "lab" / "results"
CODES = ["A2C:actions=codes", "A2C:actions=codes, tuned", "PPO:actions=codes", "PPO:actions=codes, tuned"]
RANKINGS = ["A2C:actions=rankings"]
"""What version 3 has added, on the board *features*."""


# ------------------------------------------------------------------------------------------------------------------ boards


def test_lines_of_the_scorecard_are_by_codes():
    """Under the names of version 2, figures of codes would stand beside the new meaning of PPO."""
    file = CURRENT.data / "PPO.parquet"
    assert polars.read_parquet(file)["agent"].unique().sort().to_list() == ["PPO:actions=codes", "PPO:actions=codes, tuned"]
    ours = [name for name in lines() if agent_of(name) in ("PPO", "A2C")]
    assert ours == sorted(CODES + RANKINGS)
    assert ours == [name for name in reference()["agent"].unique().sort() if agent_of(name) in ("PPO", "A2C")]
    assert [lines()[name].agent for name in CODES[2:]] == ["PPO:actions=codes", "PPO:actions=codes,settings=tuned"]
    assert all(lines()[name].learns for name in CODES)
    assert lines()["PPO:actions=codes, tuned"].changes == "settings from its default to tuned"


def test_no_line_is_called_ppo_where_boards_are_shown():
    shown = {name for board in CURRENT.boards for name in tables_of(CURRENT, board, None, True)}
    assert {"PPO", "A2C", "PPO, tuned", "A2C, tuned"}.isdisjoint(shown)
    assert {*CODES} <= shown
    assert re.findall(r"\[`(?:PPO|A2C)`\]", (ROOT / "docs" / "leaderboard.md").read_text()) == []
    assert source_file(agent_of(CODES[-1])) == "agents/generic_rl.py"


def test_generic_rl_by_codes_is_no_anchor_either():
    table = polars.DataFrame({"agent": [*CODES, "DQN", "TopRank", "TopRank, tuned"], "ability": ["standard"] * 7})
    assert may_be_anchors(table)["agent"].to_list() == ["TopRank", "TopRank, tuned"]


def test_the_reference_run_plays_codes_and_knows_its_files():
    make = runpy.run_path(str(ROOT / "benchmarks" / "shipped" / "scorecard.py"))
    assert {"PPO:actions=codes", "A2C:actions=codes", "DQN"} <= {*make["PLAYERS"]}
    assert {"PPO", "A2C"}.isdisjoint(make["PLAYERS"])
    tuned = make["_tuned"](None, "PPO:actions=codes")
    assert tuned == Line("PPO:actions=codes, tuned", "PPO:actions=codes,settings=tuned", {"settings": "tuned"})
    assert make["_tuned"](None, "DQN").agent == "DQN:settings=tuned"


def test_what_was_read_of_version_2_is_written_with_the_names_of_this_one(tmp_path):
    then = read_shipped(CURRENT.data / "A2C.parquet")
    write_shipped(tmp_path / "A2C.parquet", then)
    now = read_shipped(tmp_path / "A2C.parquet")
    assert [each.made for each in now] == [each.made for each in then]
    assert polars.read_parquet(tmp_path / "A2C.parquet")["agent"].unique().sort().to_list() == CODES[:2] + RANKINGS


def test_ppo_of_this_version_stays_ppo_where_it_ships(tmp_path):
    [first, *_] = read_shipped(RESULTS / "when-rl-pays.parquet")
    table = first.table.with_columns(agent=polars.lit("PPO"))
    write_shipped(
        tmp_path / "new.parquet", [first.__class__(first.setting, first.part, table, {**first.made, "agents": ["PPO"]})]
    )
    [again] = read_shipped(tmp_path / "new.parquet")
    assert (again.table["agent"].unique().to_list(), again.made["agents"]) == (["PPO"], ["PPO"])
    metadata = polars.read_parquet_metadata(tmp_path / "new.parquet") | {"clickgym_format": "2"}
    metadata = {key: metadata[key] for key in ("clickgym_format", MADE)}
    (tmp_path / "new.parquet").write_bytes(sealed(table, **metadata))
    with pytest.raises(ValueError, match="it is of format 2; this version reads 3"):
        read_shipped(tmp_path / "new.parquet")


# ------------------------------------------------------------------------------------------------------------------ studies


def test_the_study_when_rl_pays_is_of_codes_with_the_seeds_of_then():
    parts = {part.name: list(part.agents) for part in STUDIES["when-rl-pays"].parts}
    assert parts["when-rl-pays-ppo"] == ["PPO:actions=codes"]
    shipped = {each.part: each for each in read_study("when-rl-pays", RESULTS)}
    assert {name: each.made["agents"] for name, each in shipped.items()} == parts
    assert "PPO:actions=codes" in shipped["when-rl-pays-ppo"].made["kernels"]
    key = np.frombuffer(hashlib.sha256(b"CascadeMDPRank-v0\nhabit\nPPO\n0").digest(), np.uint32)  # the rule of version 2
    then = np.random.SeedSequence(0, spawn_key=tuple(key.tolist())).generate_state(2, np.uint64).tolist()
    assert [*Trial("CascadeMDPRank-v0", "habit", "PPO:actions=codes", 0).seeds(0)] == then
    assert [*Trial("CascadeMDPRank-v0", "habit", "PPO", 0).seeds(0)] != then


@pytest.mark.parametrize("page", ["docs/studies/when-rl-pays.md", "docs/environments.md"])
def test_pages_of_the_study_show_the_label(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert "PPO:actions=codes" in text
    assert not re.search(r"\| PPO \||clickbait PPO:? \d|\(habit\), PPO has", text)


@pytest.mark.parametrize("name", ["PPO", "PPO:settings=tuned"])
def test_pages_find_ppo_in_sweeps_of_either_version(monkeypatch, name):
    """Those that are played again by version 3 have PPO as it is; until then it is by codes."""
    prose = runpy.run_path(str(ROOT / "docs" / "prose.py"))
    of = {"then": [clickgym.runner.name_now(name), "DQN"], "now": [name, "DQN"]}
    namespace = prose["played"].__globals__
    monkeypatch.setitem(namespace, "sweep", lambda which: SimpleNamespace(config={"agents": of[which]}))
    assert [prose["played"](which, name) for which in of] == [clickgym.runner.name_now(name), name]
    assert prose["played"]("now", "DQN") == "DQN"


# ------------------------------------------------------------------------------------------- folders of `clickgym bench`


def write(folder, **changes):
    config = {"agent": "PPO", "protocol": CURRENT.version, "fingerprint": CURRENT.fingerprint, "tuned": False}
    config |= {"machines": [], "finished": ["quick"]} | changes
    (folder / card.CONFIG).write_text(json.dumps(config))


def test_a_scorecard_of_version_2_is_not_gone_on_with_under_the_new_meaning(tmp_path):
    write(tmp_path)
    before = (tmp_path / card.CONFIG).read_bytes()
    words = f"{tmp_path} holds PPO of clickgym 2, where that meant actions=codes; since clickgym 3 it means actions=rankings: "
    with pytest.raises(ValueError, match=re.escape(words) + "type PPO:actions=codes to go on, or PPO:actions=rankings to"):
        clickgym.bench("PPO", quick=True, out=tmp_path)
    assert (tmp_path / card.CONFIG).read_bytes() == before
    config = {"agent": "PPO:actions=codes", "protocol": CURRENT.version, "fingerprint": CURRENT.fingerprint, "tuned": False}
    assert card._open(tmp_path, config, True) == {**config, "machines": [], "finished": ["quick"], "format": card.FORMAT}
    with pytest.raises(ValueError, match="holds a scorecard of agent 'PPO:actions=codes', not 'PPO'; choose another folder"):
        card._open(tmp_path, config | {"agent": "PPO"}, True)  # it has names of this version by now


def test_a_new_scorecard_of_ppo_stays_one_of_ppo(tmp_path):
    config = {"agent": "PPO", "protocol": CURRENT.version, "fingerprint": CURRENT.fingerprint, "tuned": False}
    assert card._open(tmp_path, config, True)["agent"] == "PPO"
    assert card._open(tmp_path, config, True)["agent"] == "PPO"


@pytest.mark.parametrize(("then", "now"), [("PPO", "PPO:actions=codes"), ("PPO:protocol=meta", "PPO:protocol=meta")])
def test_a_submission_of_version_2_names_its_agent_as_it_was(tmp_path, then, now):
    write(tmp_path, agent=then)
    assert read_submission(tmp_path).agent == now
    write(tmp_path, agent=then, format=card.FORMAT)
    assert read_submission(tmp_path).agent == then
