"""Figures of README, paper and documentation are those of docs/figures.json, and what they state has a proof beside it."""

from __future__ import annotations

import inspect
import json
import math
import re
from pathlib import Path

import gymnasium as gym
import numpy as np
import prose
import pytest

import clickgym
from clickgym.command_line import main
from clickgym.runner.describe import stands
from clickgym.runner.labels import PUBLISHED
from clickgym_lab.studies.click_farms import ATTACKS
from clickgym_lab.studies.study import CM, PBM, Curves

DOCS = prose.DOCS
FOUND = prose.entries()
PAGES = prose.marked()
PROOF = re.compile(r"<!-- proof: (.*?) -->")


def says(page: str, *sentences: str) -> None:
    """A page has some sentences, marks and line breaks aside."""
    words = re.sub("<!--.*?-->", "", (DOCS / page).read_text(encoding="utf-8")).split()
    assert [sentence for sentence in sentences if sentence not in " ".join(words)] == []


def marked(pattern: re.Pattern[str]) -> list[str]:
    """What the marks of the pages name."""
    files = (prose.ROOT / "README.md", prose.ROOT / "paper.md", *DOCS.glob("*.md"), DOCS / "site" / "index.md")
    pages = (file.read_text(encoding="utf-8") for file in files)
    return [name for text in pages for mark in pattern.findall(text) for name in mark.split()]


# ----------------------------------------------------------------------------------------------- the figures and their marks


@pytest.mark.parametrize("name", [name for name, entry in FOUND.items() if "from" in entry])
def test_data_that_ship_give_the_figures(name):
    assert prose.figures(FOUND[name]["from"]) == FOUND[name]["shows"], "run make pages"


@pytest.mark.parametrize("file", PAGES, ids=lambda file: file.name)
def test_a_page_shows_the_figures_that_its_marks_name(file):
    text = file.read_text(encoding="utf-8")
    assert prose.renewed(text, FOUND, FOUND) == text
    for line in re.findall(r"^ *<!-- (?:figures|proof): .*$", text, flags=re.MULTILINE):
        assert f"\n\n{line}\n" in text + "\n", "a mark at the start of a line ends a paragraph"


def test_a_measured_figure_has_a_date_and_a_command_that_is_a_script_or_stands_on_its_page():
    pages = {file: " ".join(file.read_text(encoding="utf-8").split()) for file in PAGES}
    for name, entry in FOUND.items():
        assert entry.keys() in ({"shows", "from"}, {"shows", "measured", "date"}, {"shows", "measured", "date", "with"})
        if "measured" in entry:
            assert re.fullmatch(r"202\d-\d\d-\d\d", entry["date"])
            script = re.match(r"python (\S+\.py)", entry["measured"])
            assert script is None or (prose.ROOT / script[1]).is_file()
            own = [text for text in pages.values() if re.search(rf"<!-- (figures|proof): [^>]*\b{re.escape(name)}\b", text)]
            assert script or any(entry["measured"] in text for text in own), name


def test_every_entry_is_named_by_a_page_and_every_proof_is_there():
    """A proof is an entry, true or measured, or a test."""
    proofs = marked(PROOF)
    assert {*marked(prose.MARK), *(name for name in proofs if "::" not in name)} == FOUND.keys()
    for name in proofs:
        path, tests, function = name.partition("::")
        if tests:
            assert re.search(rf"^def {function}\(", (prose.ROOT / path).read_text(encoding="utf-8"), flags=re.MULTILINE), name
        else:
            assert FOUND[name]["shows"] == ([] if "measured" in FOUND[name] else ["True"])


def test_a_page_gets_new_figures_where_it_has_old_ones_and_keeps_its_line_breaks():
    """Planted: a wrong score in the file and on the page is found, and written anew."""
    text = (DOCS / "agents.md").read_text(encoding="utf-8")
    mean, worst = FOUND["mix_ts.score"]["shows"]
    wrong = {**FOUND, "mix_ts.score": {**FOUND["mix_ts.score"], "shows": [mean, "0.99"]}}
    planted = text.replace(f"runs {worst}", "runs 0.99")
    assert planted != text
    assert prose.computed({"mix_ts.score": wrong["mix_ts.score"]}) == {"mix_ts.score": FOUND["mix_ts.score"]}
    assert prose.renewed(planted, wrong, FOUND) == text
    with pytest.raises(ValueError, match=r"in the mean: .* not at all"):
        prose.renewed(text, wrong, FOUND)


@pytest.mark.parametrize(
    ("sentence", "fault"),
    [
        ("It loses 16 clicks in 1,016 sessions of yandex-16.5.", ""),
        ("It loses 16 clicks\nof 16.", "in several ways"),
        ("It loses 15 clicks.", "not at all"),
        ("It loses 16. <!-- figures: a --> Then more.", "not at all"),
        ("It loses 16.\n\nThen more.", "not at all"),
        ("| 16 |\n\n", ""),
    ],
)
def test_a_sentence_shows_its_figures_once_as_whole_numbers(sentence, fault):
    old, new = {"a": {"shows": ["16"]}}, {"a": {"shows": ["17"]}}
    text = f"{sentence} <!-- figures: a -->"
    if fault:
        with pytest.raises(ValueError, match=fault):
            prose.renewed(text, old, new)
    else:
        assert prose.renewed(text, old, new) == text.replace("16", "17", 1)


# ------------------------------------------------------------------------------------------- sentences that a test computes


def test_bytes_of_a_log():
    env = gym.make(PBM)
    log = clickgym.record(clickgym.make_agent("Random", env, seed=0), env, 2, seed=0)
    size = log.items.itemsize + log.clicks.itemsize
    says("logs.md", f"{size} bytes for each session and position")


def test_what_agents_stand():
    """What an agent's class says it stands is what studies show, of all agents that learn and that they played."""

    def parted(losses: dict[str, float], what: str) -> tuple[str, str]:
        """The largest loss of those that stand it unconditionally, rounded up, and the smallest of the others, rounded down."""
        able = {name for name in losses if stands(PUBLISHED[name]).get(what, ",").count(",") == 0}
        most, least = max(losses[name] for name in able), min(losses[name] for name in losses.keys() - able)
        assert most < least
        return above(most), f"{math.floor(10 * least) / 10}"

    def above(most: float) -> str:
        return f"{math.ceil(100 * most) / 100:.2f}"

    def lost(study: Curves, env: str, agent: str) -> float:
        return float(study.end_units(env, agent).mean())

    change, robust = prose.curves("nonstat-detect"), prose.curves("robust")
    switching = f"NonStationary{CM}"
    rates = {
        name: [lost(each, switching, name) / lost(each, switching, "CascadeKLUCB") for each in change.values()]
        for name in ("CascadeDUCB", "CascadeSWUCB", "GLRCascadeUCB", "GLRCascadeKLUCB", "CascadeUCB1")
    }
    forgets, _ = parted({name: max(values) for name, values in rates.items()}, "change")

    farms, late = (prose.practice(name) for name in ("click-farms", "late-clicks"))
    learn = {name for name in farms.agents + late.agents if name not in ("Random", "Fixed")}
    attacked = {
        name: {attack: lost(farms, f"{CM}{bots}", name) / lost(farms, CM, name) for attack, bots in ATTACKS.items()}
        for name in learn.intersection(farms.agents)
    }
    twice = {name: max(times["farm first 1,000"], times["farm 0.25 %"]) for name, times in attacked.items()}
    recovers, ruined = parted(twice, "bots")
    assert all(max(times.values()) > float(recovers) for times in attacked.values())
    glr = attacked["GLRCascadeKLUCB"]

    insured = {name for name in PUBLISHED if stands(PUBLISHED[name]).get("bots", "") == "robust, with corruption="}
    assert insured == {name for name, agent in PUBLISHED.items() if "corruption" in inspect.signature(agent).parameters}
    assert len(insured) == 3
    dearest = max(
        lost(robust[f"robust-{false}"], f"{CM}:bots=farm:{bots}", label) / lost(robust["robust-none"], CM, label)
        for false in (100, 1000, 5000)
        for label in (f"{name}:corruption={false}" for name in insured)
        for bots in (f"first={false}", f"share={false / 100_000:g}")
    )

    costs = {name: prose.waiting(name) for name in learn.intersection(late.agents)}
    waits, _ = parted(costs, "late clicks")
    pairs = (("CascadeDUCB", "CascadeSWUCB"), ("RankedUCB1", "RankedKLUCB"))
    hasty = [math.floor(10 * min(costs.pop(name) for name in pair)) / 10 for pair in pairs]
    assert above(max(costs.values())) == waits  # nobody else loses more

    keeps = math.floor(100 * min(rates["CascadeUCB1"])) / 100
    says(
        "agents.md",
        f"the agent has at most {forgets} times the regret of `CascadeKLUCB`, which never forgets, whether users change every "
        f"10,000 or every 100,000 sessions. `CascadeUCB1` has {keeps:.2f} times its regret or more",
        f"the agent has at most {recovers} times its regret without bots, whether a farm acts in the first 1,000 sessions or "
        f"in 0.25 % of all. Each other agent has {ruined} times its regret or more in at least one of the two cases",
        f"the true number of false sessions, three agents have at most {above(dearest)} times their regret without bots",
        f"`GLRCascadeKLUCB` has {glr['quit first 1,000']:.1f} times its regret after 1,000 sessions of `quit`, and "
        f"{glr['farm 5 %']:.1f} times with a farm in 5 % of the sessions",
        f"batches of 5,000 cost the agent at most {waits} times what random lists lose in one batch",
        f"lose {hasty[0]} times as much as random lists in a batch, or more; `RankedUCB1` and `RankedKLUCB` lose {hasty[1]} "
        "times, or more",
    )


@pytest.fixture
def films(data_folder, tmp_path, monkeypatch):
    path = data_folder / "movielens" / "ratings.csv"
    if not path.is_file():
        pytest.skip(f"{path} is absent")
    monkeypatch.chdir(tmp_path)
    return str(path)


@pytest.mark.slow
def test_replay_of_films(films):
    assert main(["features", films, "--candidates", "4", "--positions", "4", "--out", "four.json"]) == 0
    env = gym.make("ContextualUBMRank-v0", instance="four.json")
    (model,) = json.loads(Path("four.json").read_text(encoding="utf-8"))["models"]
    attraction = np.concatenate(model["attraction"]).mean()
    log = clickgym.record(clickgym.make_agent("Random", env, seed=0), env, 20_000, seed=0)
    fewer = gym.make("ContextualUBMRank-v0", instance="four.json", n_positions=2)
    agents = [clickgym.make_agent("UBMLinUCB", fewer, alpha=0.2, seed=seed) for seed in range(40)]
    online = [clickgym.run(agent, fewer, 1693, seed=seed).clicks[-1] / 1693 for seed, agent in enumerate(agents)]
    result = clickgym.replay(clickgym.make_agent("UBMLinUCB", fewer, alpha=0.2, seed=0), log)
    printed = [
        f"{len(result.rewards)} sessions agree; the random lists earn {result.on_policy:.3f}",
        f"by rejection {result.value:.3f} ± {result.standard_error:.3f}",
        f"by weights   {result.weighted_value:.3f} ± {result.weighted_standard_error:.3f}",
    ]
    assert "\n".join(printed) in (DOCS / "contextual.md").read_text(encoding="utf-8")
    error = np.std(online, ddof=1) / math.sqrt(len(online))
    says(
        "contextual.md",
        f"attractions are {attraction:.2f} on average",
        f"earns {np.mean(online):.3f} in as many sessions (mean of 40 runs, standard error {error:.3f})",
    )


@pytest.mark.slow
def test_documents_come_out_again(data_folder, tmp_path, monkeypatch, capsys):
    path = data_folder / "letor" / "rank.train.gz"
    if not path.is_file():
        pytest.skip(f"{path} is absent")
    monkeypatch.chdir(tmp_path)
    assert main(["features", str(path), "--reduce", "svd", "--out", "letor-svd.json"]) == 0
    text = (DOCS / "contextual.md").read_text(encoding="utf-8")
    assert capsys.readouterr().out.strip().splitlines()[-1] in text
    rows = re.findall(r"^\| `(\S+)` \| ([\d,]+ ± \d+) \| [\d,]+ ± \d+ \|$", text, flags=re.MULTILINE)
    again = clickgym.sweep(
        ["ContextualUBMRank-v0"], [agent for agent, _ in rows], 10**5, 5, instances=["letor-svd.json"]
    ).table()
    regrets = {row["agent"]: f"{row['regret']:,.0f} ± {row['regret_ci95']:.0f}" for row in again.iter_rows(named=True)}
    assert regrets == dict(rows)
