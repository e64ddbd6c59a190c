"""What PPO and A2C mean in files that version 2 wrote: codes, under the name that says so."""

import hashlib
import io
import json
import re
import tarfile
from functools import partial
from pathlib import Path

import numpy as np
import polars
import pytest

import clickgym
from clickgym import Results
from clickgym.agents import A2C, LEARNERS, PPO
from clickgym.core.files import sealed
from clickgym.runner import results
from clickgym.runner.labels import FORMAT, RENAMED, fingerprint, name_now, name_then
from clickgym.runner.results import Trial, merge, read_parts

SWEEP = Path(__file__).resolve().parents[1] / "data" / "v2.0" / "sweep" / "sweep.tar.xz"
LITTLE = "n_envs=8,n_steps=8,batch_size=32,n_epochs=2,net_arch=8"
THEN = {
    "PPO": "PPO:actions=codes",
    "A2C:n_steps=8": "A2C:actions=codes,n_steps=8",
    "PPO:settings=tuned": "PPO:actions=codes,settings=tuned",
    "PPO:n_steps=8,actions=scores": "PPO:n_steps=8,actions=scores",
    "PPO:actions=codes": "PPO:actions=codes",
    "PPO:protocol=meta,n_envs=4": "PPO:protocol=meta,n_envs=4",
    "RecurrentPPO": "RecurrentPPO",
    "stable_baselines3:PPO": "stable_baselines3:PPO",
    "sbx:PPO:n_envs=64": "sbx:PPO:n_envs=64",
    "TopRank": "TopRank",
    "PPO at night": "PPO at night",
}
"""Labels in files of version 2, and what they are in this version."""


def as_of_version_2(folder, spec="PPO", label=None):
    """Give a results folder of `spec` by codes the form that version 2 would have given it under this name: the sweep's own
    words, seals and names of files, but for the versions of packages."""
    label = label or spec
    now = next(name for name in read_parts(folder / "config.json")[0]["agents"] if name in (label, name_now(spec)))
    config = json.loads((folder / "config.json").read_text())
    for part in config["parts"]:
        part["agents"] = [label if name == now else name for name in part["agents"]]
        if "labels" in part:
            part["labels"]["agents"] = dict.fromkeys(part["labels"]["agents"], spec)
    (folder / "config.json").write_text(json.dumps({"format": 2, "parts": config["parts"]}))
    for file in [*folder.glob("*.parquet"), *folder.glob("cells/*")]:
        frame = polars.read_parquet(io.BytesIO(file.read_bytes()))
        frame = frame.with_columns(agent=polars.col("agent").replace(now, label))
        file.write_bytes(sealed(frame, clickgym_format="2"))


def sweep(agents, out, runs=2, **others):
    return clickgym.sweep(["PBMRank-v0"], agents, 64, runs, seed=3, out=out, n_jobs=1, checkpoints=[64], **others)


QUICK = "n_envs=8,n_steps=2,batch_size=16,n_epochs=1,net_arch=8"
NOW, CODES = f"PPO:{QUICK}", f"PPO:actions=codes,{QUICK}"


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """The results of PPO by codes and of random lists."""
    pytest.importorskip("stable_baselines3")
    folder = tmp_path_factory.mktemp("played")
    sweep([CODES, "Random"], folder / "out")
    return folder / "out"


@pytest.fixture
def then(played, tmp_path):
    """The folder that version 2 wrote of PPO and of random lists."""
    import shutil

    shutil.copytree(played, tmp_path / "then")
    as_of_version_2(tmp_path / "then", NOW)
    return tmp_path / "then"


# ------------------------------------------------------------------------------------------------------------------ names


@pytest.mark.parametrize(("name", "now"), THEN.items())
def test_a_name_of_version_2_has_another_only_where_the_meaning_changed(name, now):
    assert name_now(name) == now
    assert name_now(now) == now


def test_the_renamed_agents_are_those_whose_first_actions_are_rankings():
    assert {name for name, learner in LEARNERS.items() if learner.representations[0] == "rankings"} == {*RENAMED}
    assert {PPO.tuned["actions"], A2C.tuned["actions"]} == {"codes"}


@pytest.mark.parametrize("name", [name for name in THEN if "actions=codes" not in name])
def test_seeds_and_files_of_what_version_2_played_are_those_of_then(name):
    """Version 2 made them of the name itself."""
    assert name_then(name_now(name)) == name
    digest = hashlib.sha256(f"PBMRank-v0\nyandex-9982\n{name}\n1".encode())
    key = tuple(np.frombuffer(digest.digest(), np.uint32).tolist())
    trial = Trial("PBMRank-v0", "yandex-9982", name_now(name), 1)
    assert trial.file == f"{digest.hexdigest()[:20]}.parquet"
    assert [*trial.seeds(3)] == np.random.SeedSequence(3, spawn_key=key).generate_state(2, np.uint64).tolist()


def test_the_new_meaning_has_seeds_files_and_fingerprints_of_its_own():
    trials = [Trial("PBMRank-v0", "yandex-9982", name, 0) for name in ("PPO", "PPO:actions=codes", "PPO:actions=scores")]
    assert len({trial.file for trial in trials}) == len({trial.seeds(0) for trial in trials}) == 3
    assert fingerprint("PPO") == fingerprint(PPO) == fingerprint("PPO:actions=rankings")
    assert fingerprint("PPO:actions=codes") == fingerprint(partial(PPO, actions="codes")) != fingerprint("PPO")
    assert fingerprint(f"PPO:actions=codes,{LITTLE}") == "8f5a71867d5098d2"  # of PPO:n_envs=8,... in data/v2.0/sweep


# ----------------------------------------------------------------------------------------------------------------- sweeps


def test_results_of_version_2_are_shown_by_codes(then):
    """Planted error: to read them under the name of then would show figures of codes as if of rankings."""
    config = json.loads((then / "config.json").read_text())
    assert config["parts"][0]["agents"] == [NOW, "Random"]  # what the file says
    whole = Results(then)
    assert whole.config["agents"] == [CODES, "Random"]
    for names in (whole.frame["agent"], whole.timings["agent"], whole.table()["agent"], whole.select([CODES]).frame["agent"]):
        assert CODES in names.to_list()
        assert NOW not in names.to_list()
    assert Results(then / "results.parquet").config["agents"] == [CODES, "Random"]


def test_a_table_without_a_format_keeps_its_names(tmp_path, then):
    """Nobody knows which version named its agents: it may be a frame of this version that a user wrote."""
    polars.read_parquet(then / "results.parquet").write_parquet(tmp_path / "own.parquet")
    assert Results(tmp_path / "own.parquet").config["agents"] == [NOW, "Random"]


def test_the_spec_behind_a_label_is_that_of_codes(tmp_path):
    with tarfile.open(SWEEP) as archive:
        archive.extractall(tmp_path, filter="data")
    [part] = read_parts(tmp_path / "results" / "config.json")
    assert part["labels"]["agents"] == {"little": f"PPO:actions=codes,{LITTLE}"}
    assert part["sources"] == {"little": "8f5a71867d5098d2"}


@pytest.mark.parametrize("agents", [[NOW], ["Random", NOW]])
def test_version_2_is_not_gone_on_with_under_the_new_meaning(then, agents):
    before = {file: file.read_bytes() for file in then.rglob("*") if file.is_file()}
    words = (
        f"{then} holds {NOW} of clickgym 2, where that meant actions=codes; since clickgym 3 it means actions=rankings: "
        f"type {CODES} to go on, or PPO:actions=rankings,{QUICK} to add the other"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(words)}$"):
        sweep(agents, then, runs=3)
    assert {file: file.read_bytes() for file in then.rglob("*") if file.is_file()} == before


def test_the_refusal_names_the_label(then, played, tmp_path):
    sweep({"mine": CODES, "Random": "Random"}, tmp_path / "mine")
    as_of_version_2(tmp_path / "mine", NOW, "mine")
    with pytest.raises(ValueError, match=f"holds mine={NOW} of clickgym 2, .*: type mine={CODES} to go on, or PPO:actions="):
        sweep({"mine": NOW}, tmp_path / "mine")
    assert sweep({"mine": CODES}, tmp_path / "mine").frame["agent"].unique().to_list() == ["mine"]


def test_version_2_is_gone_on_with_by_codes_and_ends_as_if_played_at_once(then, played, tmp_path):
    """What was played is not played again, and the runs that follow have the seeds that they would have had then."""
    seconds = Results(then).timings.filter(agent=CODES)["seconds"].to_list()
    more = sweep([CODES, "Random"], then, runs=3)
    assert more.timings.filter(agent=CODES)["seconds"].to_list()[:2] == seconds
    assert more.frame.equals(sweep([CODES, "Random"], tmp_path / "anew", runs=3).frame)
    assert json.loads((then / "config.json").read_text())["format"] == FORMAT == 3
    assert Results(then).config["agents"] == [CODES, "Random"]


def test_the_new_meaning_stands_beside_the_old_one(then):
    """PPO and PPO:actions=rankings are one agent: both have its seeds, and one file of results."""
    both = sweep([f"PPO:actions=rankings,{QUICK}"], then)
    assert Results(then).config["agents"] == [CODES, "Random", f"PPO:actions=rankings,{QUICK}"]
    by_name = sweep([NOW, CODES], then).frame  # the folder is of this version by now
    regret = {name: rows["regret"].to_list() for (name,), rows in by_name.group_by("agent")}
    assert regret[NOW] == both.frame["regret"].to_list() != regret[CODES]


def test_folders_of_both_versions_are_merged(then, tmp_path):
    sweep([NOW], tmp_path / "new")
    assert merge([then, tmp_path / "new"], tmp_path / "both")["agent"].unique(maintain_order=True).to_list() == [
        CODES, "Random", NOW
    ]  # fmt: skip


def test_a_configuration_of_version_2_is_run_again_with_the_same_figures(then, tmp_path):
    clickgym.runner.sweep.sweep_again(then / "config.json", out=tmp_path / "again", n_jobs=1)
    assert Results(tmp_path / "again").frame.equals(Results(then).frame)


def test_codes_that_were_named_in_version_2_are_read_too(played, tmp_path):
    """Their seeds were others: those of the longer name, under which version 2 also wrote their files."""
    import shutil

    shutil.copytree(played, tmp_path / "then")
    as_of_version_2(tmp_path / "then", CODES)
    for index in range(2):
        trial = Trial("PBMRank-v0", "yandex-9982", CODES, index)
        assert trial.file != trial.file_of_codes
        (tmp_path / "then" / "cells" / trial.file).rename(tmp_path / "then" / "cells" / trial.file_of_codes)
    before = Results(tmp_path / "then").timings
    sweep([CODES], tmp_path / "then")
    assert Results(tmp_path / "then").timings.equals(before)
    assert merge([tmp_path / "then"], tmp_path / "new")["agent"].n_unique() == 2


def test_of_one_agent_under_two_names_the_shorter_is_read(then):
    config = json.loads((then / "config.json").read_text())
    config["parts"][0]["agents"].append(CODES)
    (then / "config.json").write_text(json.dumps(config))
    for name in ("results.parquet", "timings.parquet"):
        frame = polars.read_parquet(then / name)
        twice = frame.filter(agent=NOW).with_columns(agent=polars.lit(CODES))
        (then / name).write_bytes(sealed(polars.concat([frame, twice]), clickgym_format="2"))
    with pytest.warns(UserWarning, match=re.escape(f"names {NOW} in two ways; of {CODES} nothing is read")):
        twice = Results(then)
    assert len(twice.frame) == 4
    assert twice.config["agents"] == [CODES, "Random"]


def test_a_later_format_is_refused(then):
    frame = polars.read_parquet(then / "timings.parquet")
    (then / "timings.parquet").write_bytes(sealed(frame, clickgym_format=str(results.FORMAT + 1)))
    with pytest.raises(ValueError, match="a later version of clickgym wrote it"):
        Results(then)


# ----------------------------------------------------------------------------------------------------------------- tunings


def tune(agent, out):
    space = {"ent_coef": (0.0, 0.01)}
    return clickgym.tune(agent, ["PBMRank-v0"], 3000, horizon=64, runs=2, out=out, search_space=space, n_jobs=1, progress=False)


@pytest.mark.parametrize("label", [None, "mine"])
def test_a_tuning_of_version_2_is_one_of_codes(tmp_path, label):
    pytest.importorskip("optuna")
    pytest.importorskip("stable_baselines3")
    named = (lambda spec: spec) if label is None else (lambda spec: {label: spec})
    now = tune(named(CODES), tmp_path)
    config = json.loads((tmp_path / "tuning.json").read_text())
    assert config["format"] == 3
    config |= {"format": 1, "agent": label or NOW}
    (tmp_path / "tuning.json").write_text(json.dumps(config))
    trials = polars.read_parquet(tmp_path / "trials.parquet")
    trials = trials.with_columns(polars.col("agent").str.replace("actions=codes,", "", literal=True))
    (tmp_path / "trials.parquet").write_bytes(sealed(trials, clickgym_format="1"))
    typed = re.escape(CODES if label is None else f"mine={CODES}")
    with pytest.raises(ValueError, match=f"holds (mine=)?{NOW} of clickgym 2, .*: type {typed} to go on, or PPO:actions=rank"):
        tune(named(NOW), tmp_path)
    again = tune(named(CODES), tmp_path)
    assert again.trials.equals(now.trials)
    assert again.agent == now.agent
