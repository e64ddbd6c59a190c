"""Every figure that README, paper and documentation state stands in docs/figures.json or docs/claims.toml."""

from __future__ import annotations

import inspect
import json
import math
import re
import runpy
import tomllib
from collections import Counter
from functools import cache, partial
from pathlib import Path
from statistics import median

import gymnasium as gym
import numpy as np
import polars
import pytest
from polars import col
from prose import computed, curves, entries, renewed, sentence
from scipy.special import erf

import clickgym
from clickgym.agents import AGENTS, LEARNERS
from clickgym.command_line import main
from clickgym.core.formats import regret_text
from clickgym.envs import load_instance
from clickgym.runner.describe import stands
from clickgym.runner.labels import PUBLISHED
from clickgym.runner.sweep_results import Results
from clickgym.runner.theory.assumptions import MAX_LISTS
from clickgym_lab.bench.reference import reference
from clickgym_lab.studies import he2020, li2019_cascade, warm_start
from clickgym_lab.studies.click_farms import ATTACKS
from clickgym_lab.studies.study import CM, PBM, Curves, estimate, number
from clickgym_lab.studies.warm_start import EXCHANGED, warm

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
CLAIMS = tomllib.loads((DOCS / "claims.toml").read_text(encoding="utf-8"))["claim"]
GENERATED = ("citing.md", "tasks.md")
"""Pages that `docs/make_pages.py` writes as a whole."""
PAGES = [ROOT / "README.md", ROOT / "paper.md", *(file for file in sorted(DOCS.glob("*.md")) if file.name not in GENERATED)]
MEASUREMENTS = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")

# ------------------------------------------------------------------------------------------------------------- the list

BLOCK = re.compile(r"<!-- (\w+) -->.*?<!-- end of \1 -->", re.DOTALL)
CODE = re.compile(r"\A---\n.*?^---$|^( *)```.*?^\1```$|^    \S.*?$|^\d\. ", re.DOTALL | re.MULTILINE)
NO_FIGURE = re.compile(
    r"""`[^`]*` | \]\([^)]*\) | \[@[^\]]*\] | \[(?:doi|arXiv):[^\]]*  # code, addresses, citations
    | (?:\d{1,2}\ )?[A-Z][a-z]+\ 20\d\d | \b(?:19|20)\d\d[ab]?\b  # dates and years
    | \bet\ al\.\ \(\d+\)
    | \b(?:[Vv]ersion|Python|polars|virtualenv\ <|filelock\ <|gymnasium\ ==)\ [\d.]*\d | \b\d+\.\d+\.\d+
    | \b(?:Algorithms?|Lemma|[Tt]heorem|sections?|lines?|figure|table|[Cc]ode|seeds?|step|item)\ \d[\d.,-]*
    | \b\w+\ =\ -?[\d.]+                                              # values of symbols
    | (?<![\d.,])[01](?!\S*\d|\ (?:%|(?:of|ms|s)\b))                      # the ends of scales""",
    re.VERBOSE,
)
FIGURE = re.compile(
    r"(?<![\w.\-^])[+-]?\d(?:[\d.,]*\d)?"
    r"|\b(?:per cent|[a-z]+ times (?:as|its|their|the|more|less)"
    r"|(?:an?|one|two|three) (?:half|third|quarter|fifth|sixth|seventh|eighth|ninth|tenth|fourteenth|hundredth)s?)\b"
)


@cache
def prose(file: Path) -> str:
    """The sentences of a page, one line for each paragraph or row of a table; no code, of blocks that are made the marks."""
    text = BLOCK.sub(lambda block: f"\n\n<!-- {block[1]} -->\n\n", file.read_text(encoding="utf-8"))
    paragraphs = re.split(r"\n\s*\n", CODE.sub("", text))
    return "\n\n".join(part if part.lstrip().startswith("|") else " ".join(part.split()) for part in paragraphs)


def unlisted(text: str, excerpts: list[str]) -> list[str]:
    """The figures of a text that lie in no excerpt, with their surroundings; the head of a table stands for all of its rows."""
    spans = []
    for excerpt in excerpts:
        for match in re.finditer(re.escape(excerpt), text):
            end = (text + "\n\n").index("\n\n", match.end()) if excerpt.startswith("|") else match.end()
            spans.append((match.start(), end))
    masked = NO_FIGURE.sub(lambda part: "~" * len(part[0]), text)
    return [
        text[max(match.start() - 60, 0) : match.end() + 40]
        for match in FIGURE.finditer(masked)
        if not any(start <= match.start() and match.end() <= end for start, end in spans)
    ]


@pytest.mark.parametrize(
    ("text", "n_figures"),
    [
        ("It loses 7 % to 1,234.5 ± 6 clicks, half of them in `x=3`, three times as many as A2C.", 4),
        ("One session of 10⁵ takes 0.4 µs; 0 is nothing, 1 is all, 1.0 is a figure, so are 1 % and 0 of 384.", 6),
        ("See section 6.3 of He et al. (2020), version 0.2.0, 21 November 2026, with K = 5 and [120](page-3.md).", 1),
        ("| head |\n| 12 |", 1),
    ],
)
def test_a_figure_is_a_number_or_a_fraction_in_words_and_no_year_name_reference_or_value_of_a_symbol(text, n_figures):
    assert len(unlisted(text, [])) == n_figures
    assert unlisted(text, [text]) == []


@pytest.mark.parametrize("file", PAGES, ids=lambda file: file.name)
def test_every_figure_of_a_page_is_listed(file):
    excerpts = [claim["says"] for claim in CLAIMS if ROOT / claim["file"] == file]
    excerpts += [sentence(entry) for entry in entries() if ROOT / entry["page"] == file]
    assert unlisted(prose(file), excerpts) == [], "docs/figures.json and docs/claims.toml lack these"


@pytest.mark.parametrize("file", PAGES, ids=lambda file: file.name)
def test_every_block_that_is_made_is_listed(file):
    marks = [block[0].partition("\n")[0] for block in BLOCK.finditer(file.read_text(encoding="utf-8"))]
    assert set(marks) <= {claim["says"] for claim in CLAIMS if ROOT / claim["file"] == file}


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"{Path(claim['file']).stem}: {claim['says'][:50]}")
def test_a_claim_stands_on_its_page_and_its_proof_exists(claim):
    """A proof is a function, a script with the line that it wrote, or a command of the page; a setting needs none."""
    file = ROOT / claim["file"]
    page = file.read_text(encoding="utf-8")
    assert claim["says"] in (page if file.name in GENERATED else prose(file))
    assert claim.keys() & {"proof", "record", "command", "setting"}
    assert claim.keys() <= {"file", "says", "proof", "record", "line", "command", "setting"}
    path, _, name = claim.get("proof", "lab/tests/test_claims.py::unlisted").partition("::")
    assert re.search(rf"^def {name}\(", (ROOT / path).read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert (ROOT / claim.get("record", "README.md")).is_file()
    assert claim.get("line", "") in MEASUREMENTS
    assert claim.get("command", "") in " ".join(page.split())


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: f"{Path(entry['page']).stem}: {entry['sentence'][:50]}")
def test_a_sentence_stands_on_its_page_with_the_figures_that_shipped_data_give(entry):
    assert computed(entry) == entry, "run make pages"
    assert sentence(entry) in prose(ROOT / entry["page"])


def test_a_page_gets_new_figures_where_it_has_old_ones_and_keeps_its_line_breaks():
    """Planted: a wrong score in the file and on the page is found, and written anew."""
    (entry,) = (each for each in entries() if each["page"] == "docs/agents.md" and each["function"] == "scores")
    text = (DOCS / "agents.md").read_text(encoding="utf-8")
    wrong = entry | {"values": entry["values"] | {"own_worst": "0.99"}}
    planted = text.replace(f"runs {entry['values']['own_worst']}", "runs 0.99")
    assert planted != text
    assert computed(wrong) == entry
    assert renewed(planted, wrong) == text
    with pytest.raises(ValueError, match=r"agents\.md lacks the sentence 'in the mean: "):
        renewed(text, wrong)


def test_what_is_a_setting_has_no_proof_and_a_record_has_its_line():
    assert all(claim["setting"] is True and len(claim) == 3 for claim in CLAIMS if "setting" in claim)
    assert all(("record" in claim) == ("line" in claim) for claim in CLAIMS)


def test_no_claim_is_listed_twice():
    assert len({(claim["file"], claim["says"]) for claim in CLAIMS}) == len(CLAIMS)


# ------------------------------------------------------------------------------------------------------------ the proofs


@pytest.fixture
def says(request) -> set[str]:
    """What the test has to compute: the excerpts that name it as their proof, but for heads of tables."""
    proof = f"lab/tests/test_claims.py::{request.node.name}"
    return {claim["says"] for claim in CLAIMS if claim.get("proof") == proof and not claim["says"].startswith("|")}


def ends(study: Curves, env: str, agent: str) -> np.ndarray:
    """The regret of each instance at the end, mean over the runs."""
    return study.ends(env, agent).mean(axis=1)


def mean_at(table: polars.DataFrame, env: str, agent: str, step: int) -> float:
    """The mean regret of a sweep after so many sessions."""
    return table.filter(env=env, agent=agent, step=step)["regret"].mean()


def test_bounds_of_the_papers_beside_regret(says):
    detecting = curves("nonstat-bound")["nonstat-bound"]
    times = detecting.units("NonStationaryCMRank-v0", "GLRCascadeKLUCB")[:, -1] / li2019_cascade.lower_bound(detecting)[-1]
    per_session = he2020.bounds(curves("ubm-bound")["ubm-bound"]) / he2020.DECADES
    assert (per_session > 1).all()
    assert says == {
        f"GLR-CascadeKL-UCB, which detects changes, has [{times.mean():.2f} times the bound](studies/nonstat-bound.md) after "
        f"{detecting.horizon:,} sessions",
        f"above a loss of one in each session [up to {max(he2020.DECADES):,} sessions and more](studies/ubm-bound.md)",
    }


# ---------------------------------------------------------------------------------- speed, of a machine: from its record


def measured(script: str) -> str:
    """The section of benchmarks/README.md that a script wrote."""
    return re.search(rf"<!-- start of {script} -->(.*?)<!-- end", MEASUREMENTS, flags=re.DOTALL)[1]


def shares(sessions):
    """Regret in percent of that of random lists, by agent: the mean over the runs of the sweep of learners."""
    frame = Results(ROOT / "docs" / "sweeps" / "learners").frame.filter(step=sessions)
    random = frame.filter(agent="Random").group_by("instance").agg(random=polars.col("regret").mean())
    of_each = frame.join(random, on="instance").with_columns(share=100 * polars.col("regret") / polars.col("random"))
    return dict(of_each.group_by("agent").agg(polars.col("share").mean()).iter_rows())


def test_what_tuned_settings_gain(says):
    late, early = shares(100_000), shares(20_000)
    assert all(abs(late[name] - late[f"{name}:settings=tuned"]) < 1 for name in ("PPO", "DQN"))
    assert round(LEARNERS["A2C"].tuned["learning_rate"] / LEARNERS["A2C"].settings["learning_rate"].default) == 6
    assert not any(LEARNERS[name].tuned for name in ("SAC", "TD3", "MaskablePPO"))
    assert says == {
        f"RecurrentPPO loses {late['RecurrentPPO:settings=tuned']:.1f} % instead of {late['RecurrentPPO']:.1f} %, PPO and DQN "
        f"about as much as before, and A2C {late['A2C:settings=tuned']:.1f} % instead of {late['A2C']:.1f} %",
        "with a learning rate six times as large",
        f"both settings of A2C lose the same ({early['A2C:settings=tuned']:.1f} % and {early['A2C']:.1f} %)",
    }


def test_which_settings_matter_most(says):
    tuning = runpy.run_path(str(ROOT / "docs" / "make_pages.py"))["tuning"]
    mean, env = Counter(), gym.make("PBMRank-v0")
    for name in LEARNERS:
        proposed, tuned = (clickgym.make_agent(agent, env, seed=0) for agent in (tuning(name).agent, f"{name}:settings=tuned"))
        assert repr(proposed) == repr(tuned)
        mean.update({key: share / len(LEARNERS) for key, share in tuning(name).importances().items()})
    (first, share), (second, other), (_, third) = mean.most_common(3)
    assert says == {
        f"`{first}` has an importance of {share:.2f} and `{second}`, the sessions from which each step learns, {other:.2f}; "
        f"no other has more than {third:.2f}"
    }


def test_speeds_are_those_of_the_measurements(says):
    sessions = measured("sessions.py")
    compiled = median(map(int, re.findall(r"(\d+) ns", sessions)))
    total, hours = re.search(r"`zoghi-fig2` +\| +6\.0e(\d+) \| +\d+ ns \| +([\d.]+) min", measured("studies.py")).groups()
    assert total == "10"
    peers = {
        (agent, env): tuple(float(value.replace(",", "")) for value in values)
        for agent, env, *values in re.findall(
            r"\| (\w+) +\| +(\w+-v0) \| +([\d.]+) µs \| +(\d+) µs \|.*?\| +([\d,]+) ± (\d+) \| +([\d,]+) ± (\d+) \|",
            measured("peers.py"),
        )
    }
    grab, unirank = (peers[agent, PBM] for agent in ("GRAB", "UniRank"))
    assert all(abs(row[2] - row[4]) <= min(row[3], row[5]) for (agent, _), row in peers.items() if agent != "PDGD")
    memory = dict(re.findall(r"a session, `(\w+)` +\| +(\d+) ns", measured("users_with_memory.py")))
    inside = re.search(r"64 × 4, 128, 4, 0\.001 +\| +[\d,]+ \((\d)%\)", measured("rl.py"))[1]
    row = r"\| (\S+) +\| +(\d+) µs \| +(\d+)% \| +(\d+)% \| +\d+% \| +(\d+)%"
    learners = {name: tuple(map(int, cells)) for name, *cells in re.findall(row, measured("learners.py"))}
    assert set(LEARNERS) < set(learners)
    around = [environment + wrappers for _, environment, wrappers, _ in learners.values()]
    steps = [part for *_, part in learners.values()]
    million = 1000 / compiled
    link = "https://github.com/clickgym/clickgym/blob/main/benchmarks/README.md"
    assert says == {
        f"half of the compiled ones play more than [{million:.0f} million sessions a second]({link})",
        f"{million:.0f} million sessions a second or more on one core",
        f"6·10¹⁰ sessions on 60 queries takes {float(hours):.0f} minutes on two cores",
        f"take {grab[0]} and {unirank[0]} µs a session instead of {grab[1]:.0f} and {unirank[1]:.0f}, and the mean "
        "regrets of four "
        "runs of each lie in each other's 95 % intervals",
        f"takes {memory['CascadeVI']} ns, less than one of the bandits, {memory['CascadeKLUCB']} and {memory['PerState']} ns",
        f"PPO spends {inside} % of its time",
        f"Gradient steps take {min(steps)} to {max(steps)} % of the time, the environment with all its wrappers "
        f"{min(around)} to {max(around)} %",
        f"SBX's takes {learners['sbx:PPO'][0]} µs a session instead of {learners['PPO'][0]}",
    }


# ------------------------------------------------------------------------------------------------------------- scorecard


GENERIC = ["PPO", "A2C", "DQN", "MaskablePPO", "RecurrentPPO"]


@cache
def losses_beside_generic_rl() -> polars.DataFrame:
    """The mean loss of every agent (columns) in the tasks that generic RL plays (rows), with the least of generic RL."""
    table = reference()
    played = table.filter(col("task").is_in(table.filter(col("agent").is_in(GENERIC))["task"].implode()))
    losses = played.group_by("task", "ability", "agent").agg(col("loss").mean())
    losses = losses.pivot(on="agent", index=["task", "ability"], values="loss")
    return losses.with_columns(polars.min_horizontal(GENERIC).alias("best"))


def test_generic_rl_beside_bandits_in_the_scorecard(says):
    losses = losses_beside_generic_rl()
    others = losses.filter(col("ability") != "memory")
    memory = losses.filter(ability="memory")
    assert (others[["PBMHB", "GRAB"]] < others["best"]).select(polars.all_horizontal("PBMHB", "GRAB").all()).item()
    ratio = others["best"] / others["PBMHB"]
    bandits = [name for name in (*AGENTS, "PerState") if name not in ("Oracle", "Fixed", "Random") and name in memory.columns]
    bandits = [name for name in bandits if memory[name].item() is not None]
    less = sum(memory[name].item() < min(memory[bandit].item() for bandit in bandits) for name in GENERIC)
    assert less == 3
    assert says == {
        f"in all {len(others)} tasks of the scorecard that both play",
        f"the best of five algorithms loses {ratio.min():.1f} to {ratio.max():.0f} times as much",
        f"three of the five lose less than each of {len(bandits)} bandits, but at least "
        f"{memory['best'].item() / memory['CascadeVI'].item():.1f} times as much as a planner",
        f"In the {len(others)} tasks of the [scorecard](leaderboard.md) of this kind",
    }


# --------------------------------------------------------------------------------------------------------------- studies


def test_pbmhb_beside_agents_that_are_given_the_examination_probabilities(says):
    study = curves("unknown-examination", "yandex60")["unknown-examination-pbm"]
    hb, ts, pie = (ends(study, PBM, agent) for agent in ("PBMHB", "PBMTS", "PBMPIE"))
    gap = estimate(hb - ts)  # by Student's t over the queries
    low, high = (100 * (gap.mean + side * gap.half) / ts.mean() for side in (-1, 1))
    given = ("PBMUCB", "PBMTS", "PBMPIE")
    others = [agent for agent in study.table["agent"].unique() if agent not in ("PBMHB", *given)]
    least = min(ends(study, PBM, agent).mean() for agent in others) / hb.mean()
    assert (low < 0 < high, (hb < pie).all()) == (True, True)
    interval, share, n = f"{-low:.0f} % less and {high:.0f} % more regret", f"{100 * (hb > ts).mean():.0f} %", len(hb)
    assert says == {
        f"between {interval} than Thompson sampling that is given them (95 % interval over {n} published queries, more "
        "regret on "
        f"{share} of them",
        f"between {interval} than PBM-TS (95 % interval over the {n} published queries, more regret on {share} of "
        "them), and less "
        f"than PBM-PIE on each of the {n}",
        f"at least {least:.1f} times the mean regret of PB-MHB",
    }


def both_rates(study: Curves, env: str, agent: str, runs: slice = slice(None)) -> np.ndarray:
    """``(2, instances)`` what an agent earned in some runs: clicks, and the probability of at least one."""
    optimum = np.mean(
        [study.ends(env, each, "reward") + study.ends(env, each) for each in study.table["agent"].unique()], axis=0
    )
    clicks, regret = study.ends(env, agent, "clicks")[:, runs], study.ends(env, agent)[:, runs]
    return np.stack([clicks.mean(axis=1), optimum.mean(axis=1) - regret.mean(axis=1)])


def test_the_lead_of_ubm_lin_ucb(says):
    """α is the best in the first half of the runs; what it earns is measured in the others."""
    study, env = curves("ubm-table1")["ubm-table1"], "ContextualUBMRank-v0:n_positions=6"
    half = study.n_runs // 2
    best = [
        min(
            (spec for spec in study.table["agent"].unique().sort() if spec.partition(":")[0] == agent),
            key=lambda spec: study.ends(env, spec)[:, :half].mean(),
        )
        for agent in ("UBMLinUCB", "C2UCB")
    ]
    ours, theirs = (both_rates(study, env, agent, slice(half, None)) for agent in best)
    leads = 100 * (ours / theirs - 1)
    paper = {
        "UBMLinUCB": (0.976, 0.671),
        "C2UCB": (0.812, 0.534),
        "CMLinUCB": (0.839, 0.539),
    }  # table 1, K = 6: CTR_sum, CTR_set
    published = " and ".join(
        f"{100 * (high / low - 1):.0f}" for high, low in zip(paper["UBMLinUCB"], paper["C2UCB"], strict=True)
    )
    of_cascade = 100 * (paper["CMLinUCB"][1] / paper["C2UCB"][1] - 1)
    lead = f"{leads.min():.1f} to {leads.max():.1f} %"

    spoilt, env = curves("why-ubm-lead")["why-ubm-all"], "ContextualUBMRank-v0:n_positions=6"
    earned = {
        agent: np.array([spoilt.ends(env, agent, column).mean() for column in ("clicks", "reward")])
        for agent in spoilt.table["agent"].unique()
    }
    causes = [100 * (earned["UBMLinUCB:alpha=0.1"] / earned[agent] - 1) for agent in earned if agent.startswith("C2UCB")]
    once = spoilt.ends(env, "UBMLinUCB:alpha=0.1", "click once").mean()
    assert says == {
        f"UBM-LinUCB leads C2UCB by {lead} on our three instances, where its paper reports {published} %",
        f"UBM-LinUCB leads C2UCB by [{lead}](studies/ubm-table1.md) in three instances, where the paper has {published} %; by "
        f"[{np.min(causes):.0f} to {np.max(causes):.0f} %](studies/why-ubm-lead.md) where the same candidates come in "
        "every session, "
        f"{once:.0f} % of the users click once",
        f"where its own numbers give {of_cascade:+.1f} %",
        f"{paper['CMLinUCB'][1]}, is {of_cascade:.1f} % above C2UCB's {paper['C2UCB'][1]}",
    }


def test_batch_rank_as_printed_and_as_released(says):
    study = curves("zoghi-fig2", "yandex60")["zoghi-fig2"]
    rates = {agent: study.window_rates(study.units(PBM, agent)).mean(axis=0) for agent in study.table["agent"].unique()}
    last = [study.steps[study.windows][rates[agent] >= rates["CascadeKLUCB"]][-1] / 1e6 for agent in ("BatchRank", "MergeRank")]
    assert says == {
        f"in the mean over {len(study.instances)} published queries, the printed algorithm loses less per session than "
        "CascadeKL-UCB "
        f"from {last[0]} million sessions on, the released one from [{last[1]} million](studies/zoghi-fig2.md) on"
    }


def unsafe(study: Curves, agent: str) -> np.ndarray:
    """The unsafe lists of an agent in the first 100 sessions, in each click model."""
    return np.array([study.at(study.units(env, agent, "violations"), 100).mean() for env in study.table["env"].unique().sort()])


def test_bubble_rank_never_shows_an_unsafe_list(says):
    sets = [curves("bubble-fig2", setting)["bubble"] for setting in ("shipped", "yandex60")]
    runs = [study.ends(env, "BubbleRank", "violations") for study in sets for env in study.table["env"].unique()]
    assert not any(map(np.any, runs))
    assert says == {f"in none of {sum(each.size for each in runs):,} runs"}


def test_unsafe_lists_at_first(says):
    own, published = curves("why-violations")["why-violations-own"], curves("bubble-fig2", "yandex60")["bubble"]
    papers = {"BatchRank": (83.01, 71.89, 59.63), "TopRank": (83.56, 71.47, 57.0)}  # CM, DCM, PBM; table 1 of the paper
    of_paper = np.concatenate([unsafe(published, agent) / values for agent, values in papers.items()])
    of_random = [unsafe(own, agent) / unsafe(own, "Random") for agent in ("BatchRank", "TopRank:delta=2e-07")]
    batch, top, paper = (f"{ratio.min():.2f} to {ratio.max():.2f} times" for ratio in (*of_random, of_paper))
    assert says == {
        f"In the first 100 sessions BatchRank shows {batch} as many unsafe lists as random ranking, TopRank "
        f"[{top}](studies/why-violations.md) as many",
        f"over the {len(published.instances)} published queries both show [{paper}](studies/bubble-fig2.md) as many",
    }


def test_growth_where_users_change(says):
    study = curves("why-change")

    def exponent(part: str, agent: str) -> float:
        short, long = (ends(study[f"why-change-{name}"], "NonStationaryCMRank-v0", agent).mean() for name in ("short", part))
        return math.log(long / short) / math.log(400_000 / 100_000)

    constant, fixed = (
        [f"{exponent(part, agent):.1f}" for agent in ("CascadeDUCB", "CascadeSWUCB")] for part in ("rate", "number")
    )
    assert says == {
        f"from 10⁵ to 4·10⁵ sessions with an exponent of {' and '.join(constant)}, with nine changes in all "
        f"[with one of {' '.join(set(fixed))}](studies/why-change.md)"
    }


def test_agents_that_sample_beside_pbm_ucb(says):
    studies = curves("pbm-synthetic").values()
    ratios = [ends(study, PBM, agent) / ends(study, PBM, "PBMUCB") for study in studies for agent in ("PBMTS", "BCMPTS")]
    low, high = min(map(min, ratios)), max(map(max, ratios))
    assert all(
        max(ends(study, PBM, agent)[0] for agent in ("PBMTS", "BCMPTS")) < ends(study, PBM, "PBMPIE") for study in studies
    )
    assert high < 1
    assert says == {f"[{low:.2f} to {high:.2f} times that of PBM-UCB](studies/pbm-synthetic.md)"}


# ---------------------------------------------------------------------------------------------------- clicks as they come


def lost(study: Curves, env: str, agent: str) -> float:
    """The mean regret at the end, over the queries."""
    return float(study.end_units(env, agent).mean())


def span(values, digits=2) -> str:
    return f"{min(values):.{digits}f} to {max(values):.{digits}f}"


def test_late_clicks_in_practice(says):
    study, many = curves("late-clicks", "yandex").values()
    assert (study.horizon, many.horizon, len(study.instances), len(many.instances)) == (40_000, 40_000, 16, 76)
    batch, blind = f"{CM}:arrival=batch:5000", lost(study, CM, "Random") * 5000 / study.horizon
    learns = [agent for agent in study.agents if agent not in ("Random", "Fixed")]
    good = [agent for agent in learns if lost(study, CM, agent) < 0.05 * lost(study, CM, "Random")]
    small = [lost(study, f"{CM}:arrival=batch:100", agent) / lost(study, CM, agent) for agent in good]
    extra = [(lost(study, batch, agent) - lost(study, CM, agent)) / blind for agent in good]
    left = max(study.final_units(batch, agent).mean() for agent in good) / study.final_units(batch, "Random").mean()
    beside = lost(many, batch, "CascadeTS") / lost(many, batch, "CascadeKLUCB")
    bubble = lost(many, batch, "BubbleRank") / lost(many, CM, "BubbleRank")
    first = []
    for env in (batch, batch.replace(CM, PBM)):
        others = [many.end_units(env, agent) for agent in many.agents if agent not in ("Random", "Fixed", "BubbleRank")]
        assert len(others) == 7
        first.append(f"{100 * (many.end_units(env, 'BubbleRank') < np.min(others, axis=0)).mean():.0f} %")
        assert lost(many, env, "BubbleRank") > lost(many, env, "CascadeTS")
    window, discount = (
        lost(study, f"{CM}:arrival=batch:1000", agent) / lost(study, CM, agent) for agent in ("CascadeSWUCB", "CascadeDUCB")
    )
    delays = [lost(study, f"{CM}:arrival=delay:{delay}", "CascadeTS") for delay in ("1000", "geometric:1000")]
    half = [lost(study, f"{CM}:arrival=immediate:lost=0.5", agent) / lost(study, CM, agent) for agent in learns]
    assert says == {
        f"the {len(good)} that lose less than 5 % of what random lists lose when clicks come at once",
        f"In batches of 100 the mean regret of the good agents is {span(small)} times that with clicks at once",
        f"With batches of 5,000 the good agents have more regret: {span(extra)} times the regret of random lists in 5,000 "
        f"sessions is added. After seven batches they lose at most {100 * left:.1f} % of what random lists lose per session",
        f"`CascadeTS` has {beside:.2f} times the regret of `CascadeKLUCB`, over {len(many.instances)} queries",
        f"with batches of 5,000 `BubbleRank` has {bubble:.2f} times its regret with clicks at once",
        f"beats all seven other learning agents on {first[0]} of the {len(many.instances)} queries in the CM, and on "
        f"{first[1]} in the position-based model",
        f"With batches of 1,000 the window is over before its clicks have come: its regret is {window:.0f} times that with "
        f"clicks at once, and that of `CascadeDUCB`, which discounts old clicks, {discount:.1f} times",
        f"because some clicks come early: `CascadeTS` has {delays[0] / delays[1]:.1f} times as much "
        "regret if all clicks come exactly 1,000 sessions late",
        f"If half of the sessions never report their clicks, every agent that learns has {span(half, 1)} times its regret",
    }


def test_bots_in_practice(says):
    study, _ = curves("click-farms", "yandex").values()
    assert (study.horizon, len(study.instances)) == (50_000, 16)

    def share(agent: str, bots: str = "") -> float:
        env = f"{CM}:bots={bots}" if bots else CM
        return 100 * lost(study, env, agent) / lost(study, env, "Random")

    def left(agent: str, bots: str) -> float:
        env = f"{CM}:bots={bots}"
        return 100 * study.final_units(env, agent).mean() / study.final_units(env, "Random").mean()

    def percent(agent: str, bots: str = "") -> str:
        return f"{number(share(agent, bots), 2)} %"

    first = "farm:first=1000"
    spread = [f"{percent(agent, 'farm:share=0.0025')} ({percent(agent)}" for agent in ("CascadeTS", "TopRank", "PBMHB")]
    good = [agent for agent in study.agents if share(agent) < 5]
    much = [share(agent, "farm:share=0.05") for agent in good]
    early = [f"`{agent}` {percent(agent, first)}" for agent in ("PBMTS", "TopRank", "CascadeTS", "CascadeKLUCB", "GRAB")]
    ruined = [f"{left(agent, 'farm:first=300'):.0f}" for agent in ("TopRank", "MergeRank", "BatchRank")]
    slowly = [number(left(agent, first), 2) for agent in ("CascadeTS", "CascadeKLUCB", "PBMHB")]
    (detects,) = {percent("GLRCascadeKLUCB", f"farm:first={size}") for size in (300, 1000, 10_000)}
    forget = [number(share(agent), 2) for agent in ("CascadeSWUCB", "CascadeDUCB")]
    alike = [percent(agent, "random:share=0.05") for agent in ("CascadeTS", "CascadeKLUCB", "TopRank")]
    assert (len(good), 1000 / study.horizon) == (8, 0.02)
    assert all(share(agent, first) < 1.1 * share(agent) for agent in ("CascadeSWUCB", "CascadeDUCB"))
    assert says == {
        f"a farm in 0.25 % of the sessions changes little: `CascadeTS` loses {spread[0]} without bots), "
        f"`TopRank` {spread[1]}), `PBMHB` {spread[2]})",
        "A farm in 5 % of the sessions harms all agents: the eight agents of the table that lose less than 5 % without bots "
        f"lose {min(much):.0f} to {max(much):.0f} % then",
        f"If the first 1,000 sessions are of a farm, 2 % of all, `PBMHB` loses {percent('PBMHB', first)}, "
        f"{', '.join(early[:-1])} and {early[-1]}. A farm in only 300 "
        f"sessions does `TopRank` as much harm: {percent('TopRank', 'farm:first=300')}",
        f"After a farm in the first 300 sessions `TopRank`, `MergeRank` and `BatchRank` still lose {ruined[0]}, {ruined[1]} "
        f"and {ruined[2]} % per session when the run ends",
        f"after 1,000 sessions of a farm `CascadeTS` and `CascadeKLUCB` lose {slowly[0]} and {slowly[1]} % per session when "
        f"the run ends, `PBMHB` {slowly[2]} %",
        f"it loses {detects} whether the first 300, 1,000 or 10,000 sessions are of a farm, and {percent('GLRCascadeKLUCB')} "
        f"without bots. `CascadeSWUCB` and `CascadeDUCB` forget the attack, too, but lose {forget[0]} and {forget[1]} % "
        "without bots",
        f"With random clicks in 5 % of the sessions `CascadeTS` loses {alike[0]}, `CascadeKLUCB` {alike[1]} and "
        f"`TopRank` {alike[2]}",
    }


def test_what_agents_stand(says):
    """What an agent's class says it stands is what studies show, of all agents that learn and that they played."""

    def parted(losses: dict[str, float], what: str) -> tuple[str, str]:
        """The largest loss of those that stand it unconditionally, rounded up, and the smallest of the others, rounded down."""
        able = {name for name in losses if stands(PUBLISHED[name]).get(what, ",").count(",") == 0}
        most, least = max(losses[name] for name in able), min(losses[name] for name in losses.keys() - able)
        assert most < least
        return above(most), f"{math.floor(10 * least) / 10}"

    def above(most: float) -> str:
        return f"{math.ceil(100 * most) / 100:.2f}"

    change, robust = curves("nonstat-detect"), curves("robust")
    switching = f"NonStationary{CM}"
    rates = {
        name: [lost(each, switching, name) / lost(each, switching, "CascadeKLUCB") for each in change.values()]
        for name in ("CascadeDUCB", "CascadeSWUCB", "GLRCascadeUCB", "GLRCascadeKLUCB", "CascadeUCB1")
    }
    forgets, _ = parted({name: max(values) for name, values in rates.items()}, "change")

    farms, late = (next(iter(curves(name, "yandex").values())) for name in ("click-farms", "late-clicks"))
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

    batch, blind = f"{CM}:arrival=batch:5000", lost(late, CM, "Random") * 5000 / late.horizon
    costs = {name: (lost(late, batch, name) - lost(late, CM, name)) / blind for name in learn.intersection(late.agents)}
    waits, _ = parted(costs, "late clicks")
    pairs = (("CascadeDUCB", "CascadeSWUCB"), ("RankedUCB1", "RankedKLUCB"))
    hasty = [math.floor(10 * min(costs.pop(name) for name in pair)) / 10 for pair in pairs]
    assert above(max(costs.values())) == waits  # nobody else loses more

    keeps = math.floor(100 * min(rates["CascadeUCB1"])) / 100
    assert says == {
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
    }


def test_churn_in_practice(says):
    study, _ = curves("churn", "yandex").values()
    assert (study.horizon, len(study.instances)) == (50_000, 16)

    def share(agent: str, rate: str, told: bool = True) -> float:
        env, label = f"{CM}:churn={rate}", agent if told else f"clickgym.lab.studies.churn:Untold{agent}"
        return 100 * lost(study, env, label) / lost(study, env, "Random")

    def both(agent: str) -> str:
        return " and ".join(number(share(agent, "0.001", told), 2) for told in (True, False)) + " %"

    agents = ("CascadeTS", "CascadeKLUCB", "PBMHB", "UniRank", "TopRank")
    ratios = {rate: [share(each, rate, False) / share(each, rate) for each in agents] for rate in ("0.0001", "1e-05")}
    often = [number(share(agent, "0.001", False), 2) for agent in ("GLRCascadeKLUCB", "CascadeSWUCB")]
    seldom = [f"{share(agent, '0.0001', False):.1f} %" for agent in ("GLRCascadeKLUCB", "CascadeSWUCB", "CascadeTS")]
    anew = [f"{share(agent, '0.001'):.0f}" for agent in ("BatchRank", "MergeRank", "BubbleRank")]
    assert all(share("CascadeTS", rate) < share("GLRCascadeKLUCB", rate) for rate in ("0.0001", "0.001", "0.01"))
    assert max(ratios["1e-05"]) < 1.5
    first, second = number(share("CascadeTS", "0.001"), 2), number(share("CascadeTS", "0.001", False), 2)
    assert says == {
        f"With a new item every 1,000 sessions `CascadeTS` loses {first} % if it is told and {second} % if it is not; "
        + ", ".join(f"`{agent}` {both(agent)}" for agent in agents[1:]),
        "With a new item every 10,000 sessions, agents that are not told have "
        f"{min(ratios['0.0001']):.1f} to {max(ratios['0.0001']):.0f} times the regret of agents that are",
        f"with a new item every 1,000 sessions, `GLRCascadeKLUCB` loses {often[0]} % and `CascadeSWUCB` {often[1]} %; with one "
        f"every 10,000 `GLRCascadeKLUCB` {seldom[0]}, `CascadeSWUCB` {seldom[1]} and `CascadeTS` {seldom[2]}",
        f"With a new item every 1,000 sessions they lose {anew[0]}, {anew[1]} and {anew[2]} %",
        f"lose no more than {max(share(agent, '0.01') for agent in ('CascadeTS', 'PBMHB', 'GRAB')):.1f} % if they are told",
    }


def test_a_log_in_practice(says):
    study, many = curves("warm-start", "yandex").values()
    assert (study.horizon, len(study.instances), len(many.instances)) == (20_000, 16, 76)
    size = 100_000

    def kept(of: Curves, env: str, agent: str, sessions: int = size, exchanged: float = EXCHANGED) -> float:
        return lost(of, env, warm(agent, sessions, exchanged)) / lost(of, env, agent)

    three = ("CascadeTS", "PBMHB", "CascadeKLUCB")
    ts, hb, kl = (f"{kept(many, CM, agent):.2f} (`{agent}`)" for agent in three)
    optimistic = [f"{kept(study, CM, agent, exchanged=0):.1f} times (`{agent}`)" for agent in ("CascadeKLUCB", "CascadeUCB1")]
    wrong = [f"{kept(many, PBM, agent, 10_000):.1f} times" for agent in ("CascadeKLUCB", "EpsilonGreedy")]
    greedy = [f"{kept(study, env, 'EpsilonGreedy:epsilon=0'):.2f}" for env in (CM, PBM)]
    ends = [lost(many, CM, agent) for agent in (warm("CascadeTS", size), "Fixed", "BubbleRank")]
    others = [[many.end_units(PBM, agent).mean() for agent in (warm("PBMHB", size), each)] for each in ("Fixed", "BubbleRank")]
    assert all(low < high for low, high in others)
    tried = (*warm_start.LEARNERS, warm_start.GREEDY)
    assert (len(tried), [agent for agent in tried if kept(study, CM, agent, exchanged=0) < 1]) == (10, ["CascadeTS"])
    assert says == {
        "In a fifth of the sessions of the log, two random items of the query were exchanged",
        f"After a log of {size:,} sessions, the regret in the CM is {ts}, {hb} and {kl} times that without a log, and in the "
        f"PBM {kept(many, PBM, 'PBMHB'):.2f} (`PBMHB`), means over {len(many.instances)} queries. After a log of 1,000 "
        f"sessions, these three agents have {span([kept(study, CM, agent, 1000) for agent in three])} times their regret in "
        "the CM, over the 16 shipped queries",
        f"with {size:,} sessions {ends[0]:.1f} clicks (`CascadeTS`, CM) against {ends[1]:.0f} and {ends[2]:.0f}",
        f"A log of {size:,} sessions of nothing but the production list leaves optimistic agents with *more* regret than no "
        f"log: {optimistic[0]} and {optimistic[1]} in the CM",
        "Of the ten agents tried only `CascadeTS` gains by such a log in the CM: it has "
        f"{kept(study, CM, 'CascadeTS', exchanged=0):.2f} times its regret",
        f"In the PBM a log of 10,000 sessions leaves `CascadeKLUCB` with {wrong[0]} and `EpsilonGreedy` with {wrong[1]} the "
        "regret without a log",
        f"keeps {greedy[0]} of its regret in the CM, and {greedy[1]} in the PBM, with {size:,} sessions",
        f"`CascadeSWUCB` has {kept(study, CM, 'CascadeSWUCB'):.2f} times the regret that it has without a log",
    }
    assert EXCHANGED == 1 / 5


def test_rules_of_the_studies(says):
    root, log = (1 - 0.8**0.5) / (0.4**0.5 - 0.2**0.5), math.log(1 / 0.8) / math.log(0.4 / 0.2)
    small = 0.01**0.25
    assert (round(small, 1), round(1 / small)) == (0.3, 3)
    assert says == {
        f"Regret that grows as √n keeps {root:.2f} of it, as log n {log:.2f}",
        "at 0.01 a hundredth of the horizon, and about a third of the queries and of the runs",
    }


GENERIC, MYOPIC = ("PPO", "DQN", "MaskablePPO", "RecurrentPPO"), ("CascadeKLUCB", "PerState")


def of_memory(agent: str) -> Curves:
    """The part of the study of users with a memory that an agent plays."""
    part = "ppo" if agent == "PPO" else "others" if agent in GENERIC else "bandits"
    return curves("when-rl-pays")[f"when-rl-pays-{part}"]


def spent(users: str, agent: str, step: int = 10**6) -> float:
    """Its mean regret before users with a memory after so many sessions."""
    study = of_memory(agent)
    return float(study.at(study.units("CascadeMDPRank-v0", agent, instance=users), step).mean())


def late_rate(users: str, agent: str) -> float:
    """Its mean regret per session in the second half."""
    study = of_memory(agent)
    return float(study.rate(study.units("CascadeMDPRank-v0", agent, instance=users), 0.5, 1.0).mean())


def test_users_that_clicks_spoil(says):
    late = {f"{late_rate('clickbait', agent):.2f}" for agent in MYOPIC}
    least = {step: min(spent("clickbait", agent, step) for agent in MYOPIC) for step in (10**3, 10**5)}
    assert max(spent("clickbait", agent, 10**5) for agent in GENERIC) < least[10**5]
    assert spent("clickbait", "CascadeVI", 10**3) < least[10**3]
    assert {round(spent("clickbait", agent) / spent("clickbait", "PPO")) for agent in MYOPIC} == {4}
    vi, ppo, single, each = (f"{round(spent('clickbait', name), -3):,.0f}" for name in ("CascadeVI", "PPO", *MYOPIC))
    assert of_memory("DQN").horizon * 10 == of_memory("PPO").horizon == of_memory("PerState").horizon
    assert says == {
        "play a tenth of the sessions",
        f"lose {' '.join(late)} clicks in every session to the end",
        "After 100,000 sessions all four generic algorithms have less regret than the bandits, and after a million PPO has a "
        "quarter of "
        "their regret",
        f"{vi} after a million sessions, where PPO has {ppo} and the bandits have {each} and {single}",
    }


def test_users_that_clicks_do_not_change_or_please(says):
    times = [spent("independent", agent, 10**5) / spent("independent", "PerState", 10**5) for agent in GENERIC]
    ppo, planner = (spent("independent", agent) / spent("independent", "PerState") for agent in ("PPO", "CascadeVI"))
    assert {round(spent("habit", agent) / spent("habit", "CascadeVI")) for agent in ("PPO", "CascadeKLUCB")} == {14}
    assert says == {
        f"After 100,000 sessions the generic algorithms have {min(times):.0f} to {max(times):.0f} times its regret, "
        "after a million "
        f"PPO has {ppo:.0f} times as much. The planner, which has more to learn, has {planner:.1f} times as much",
        "The planner has a fourteenth of the regret of PPO and of the single bandit",
    }


def test_what_a_second_discount_costs(says):
    """Optimal lists of users who stay for a shorter time, H such that 1 - 1/H is the square of theirs, shown to the users."""
    losses = {}
    for users in ("independent", "clickbait", "habit"):
        model = load_instance(users).model("CascadeMDP")
        hasty = type(model).from_dict(model.to_dict() | {"mean_sessions": 1 / (1 - model.discount**2)})
        best = float(model.first @ model.value)
        losses[users] = (best - float(model.first @ model.policy_value(hasty.best))) / np.array([model.mean_sessions, best])
    session, life = losses.pop("clickbait")
    np.testing.assert_allclose(list(losses.values()), 0.0, atol=1e-12)
    assert says == {
        f"loses {session:.3f} clicks a session in `clickbait`, {100 * life:.1f} % of a life, and nothing in the two "
        "other families"
    }


# ---------------------------------------------------------------------------------------------------- sweeps that ship


FOUR = ("PPO", "A2C", "DQN", "SAC")
CASES = [(env, agent) for env in (PBM, CM) for agent in FOUR]


@cache
def on_one_query() -> Results:
    """Five runs of generic RL and bandits in two click models, as docs/rl.md shows them."""
    return Results(DOCS / "sweeps" / "rl")


def test_generic_rl_beside_bandits_on_a_real_query(says):
    mean = partial(mean_at, on_one_query().frame)
    top = [mean(env, agent, 10**5) / mean(env, "TopRank", 10**5) for env, agent in CASES]
    random = partial(mean_at, Results(DOCS / "sweeps" / "first").frame, agent="Random", step=1000)
    of_random = [100 * mean(env, agent, 1000) / random(env=env) for env, agent in CASES]
    minutes = on_one_query().timings["seconds"].sum() / 60
    assert says == {
        f"After 10⁵ sessions of one real query PPO, A2C, DQN and SAC have {min(top):.1f} to {max(top):.0f} times the "
        "mean regret of "
        "TopRank",
        f"five runs of 10⁵ sessions of one real query, 21 November 2026, {minutes:.1f} minutes of one core in all",
        f"After 1,000 sessions the four still have {min(of_random):.0f} to {max(of_random):.0f} % of the regret of "
        "random lists",
    }


def test_from_when_on_generic_rl_is_behind_or_ahead(says):
    mean, steps = partial(mean_at, on_one_query().frame), on_one_query().frame["step"].unique().sort()

    def from_on(bandit: str, sign: int) -> int:
        """The first step from which on all four are behind a bandit, or with -1 ahead of it."""
        wrong = [n for n in steps for env, agent in CASES if sign * (mean(env, agent, n) - mean(env, bandit, n)) <= 0]
        return min(step for step in steps if step > max(wrong))

    pairs = on_one_query().pairwise().filter(~col("differ"), col("better").is_in(FOUR) != col("worse").is_in(FOUR))
    assert set(pairs.select("env", "better", "worse").iter_rows()) == {(PBM, "TopRank", "A2C"), (PBM, "DQN", "BatchRank")}
    assert says == {
        f"CascadeKLUCB from session {from_on('CascadeKLUCB', 1)} on, TopRank from session {from_on('TopRank', 1)} on",
        f"from session {round(from_on('BatchRank', -1), -2):,} on at the latest",
    }


def test_what_generic_rl_loses_late(says):
    def rates(agents: tuple[str, ...], start: int, stop: int) -> np.ndarray:
        """``(agents, runs)`` the loss per session between two steps in the PBM."""
        rows = on_one_query().frame.filter(col("step").is_in([start, stop]), env=PBM).sort("run", "step")
        ends = np.stack([rows.filter(agent=agent)["regret"].to_numpy().reshape(-1, 2) for agent in agents])
        return np.diff(ends, axis=-1)[..., 0] / (stop - start)

    steady, settled = rates(("SAC", "DQN"), 50_000, 100_000), rates(("PPO", "A2C"), 50_000, 100_000)
    ratio = steady.mean(axis=1) / rates(("SAC", "DQN"), 20_000, 50_000).mean(axis=1)
    assert says == {
        f"runs of SAC and DQN lose {steady.min():.2f} to {steady.max():.2f} clicks a session in the PBM, in the mean "
        f"{ratio.min():.1f} "
        f"to {ratio.max():.1f} of what they lost between 2·10⁴ and 5·10⁴ sessions",
        f"Runs of PPO and A2C lose {settled.min():.3f} to {settled.max():.2f} there",
    }


def test_tables_beside_generic_rl_come_out_again_where_agents_are_compiled(says):
    text = prose(DOCS / "rl.md")
    short = clickgym.sweep([PBM], ["CascadeKLUCB", "EpsilonGreedy", "TopRank", "Random"], 10**4, 5).table()
    for row in short.iter_rows(named=True):
        assert f"| `{row['agent']}` | {regret_text(row['regret'], row['regret_ci95'])} |" in text
    agents, places = ["CascadeKLUCB", "TopRank", "BatchRank"], [10**4, 10**5, 2 * 10**5, 5 * 10**5, 10**6]
    table = clickgym.sweep([PBM], agents, 10**6, 3, checkpoints=places).frame
    for agent in agents:
        last = table.filter(agent=agent, step=10**6)["regret"]
        cells = [f"{mean_at(table, PBM, agent, n):,.0f}" for n in places]
        assert f"| `{agent}` | {' | '.join(cells)} | {last.min():,.0f} to {last.max():,.0f} |" in text
    assert says == set(), "the tables are all that it proves"


def test_films(says):
    table = Results(DOCS / "sweeps" / "contextual").frame
    linear, rated = sorted(table["env"].unique(), key=lambda env: "linear" not in env)

    def growth(*agents: str) -> list[float]:
        return [mean_at(table, linear, agent, 10**5) / mean_at(table, linear, agent, 10**4) for agent in agents]

    weighing = growth("UBMLinUCB:alpha=0.2", "PBMLinUCB:alpha=0.2", "DCMLinUCB:alpha=0.2")
    others = growth("C2UCB:alpha=0.2", "CMLinUCB:alpha=0.2", "LinearTS")
    tuned = [agent for agent in table["agent"].unique() if agent not in ("UBMLinUCB", "Random")]
    regrets = [mean_at(table, rated, agent, 10**5) for agent in tuned]
    assert says == {
        f"lose {min(weighing):.1f} to {max(weighing):.1f} times as much in 10⁵ sessions as in 10⁴",
        f"lose {min(others):.1f} to {max(others):.1f} times as much",
        f"with `alpha=0.2` they differ by at most {100 * (max(regrets) / min(regrets) - 1):.0f} %",
    }


# ------------------------------------------------------------------------------------------------------------ arithmetic


def test_arithmetic(says):
    """Figures that follow from formulas: lists, scales, and what uniformly random lists lose in the default instance."""

    def lost(n_positions: int, sessions: int) -> float:
        parameters = gym.make(PBM, n_positions=n_positions).unwrapped.model.parameters
        best = np.sort(parameters.attraction)[::-1][:n_positions] @ np.sort(parameters.examination[:n_positions])[::-1]
        return sessions * (best - parameters.attraction.mean() * parameters.examination[:n_positions].sum())

    duplicates = [100 * (1 - math.perm(n_items, k) / n_items**k) for n_items, k in ((6, 3), (10, 5))]
    scale = [math.log(1 + 10**power) / math.log(1 + 10**6) for power in range(7)]
    lists, constant = math.perm(10, 5), 4 * math.sqrt(2 / math.pi) / float(erf(math.sqrt(2)))
    assert lists <= MAX_LISTS < math.perm(10, 6)
    assert f"= {constant:.4f}`; the 3.43 in circulation is a slip" in (DOCS / "errata.md").read_text(encoding="utf-8")
    assert scale[-1] == 1.0
    assert says == {
        f"a duplicate in {duplicates[0]:.0f} % of its first draws at L = 6, K = 3, and in {duplicates[1]:.0f} % at L = "
        "10, K = 5",
        f"1, 10, 100, … 10⁶ sessions are at {', '.join(f'{value:.2f}' for value in scale[:-1])} and 1",
        f"Random lists lose {lost(3, 20_000):,.0f} (exactly computed)",
        f"random lists lose {lost(5, 64_000):,.0f} (exactly computed)",
        f"random lists lose {lost(2, 16_384):,.0f} (exactly computed)",
        "updates its policy every 256 sessions and chooses among 720 lists",
        "the 3.43 in circulation is a slip",
        f"at most 100,000; L = 10, K = 5 has {lists:,}",
        f"there must not be more than {MAX_LISTS:,}, 10 items on 5 positions",
        f"With 2 positions and 4 items, lists agree by chance once in {math.perm(4, 2)} sessions",
        "A log a hundred times as long would have a tenth of them",
    }


def test_bytes_of_a_log(says):
    env = gym.make(PBM)
    log = clickgym.record(clickgym.make_agent("Random", env, seed=0), env, 2, seed=0)
    size = log.items.itemsize + log.clicks.itemsize
    assert says == {f"{size} bytes for each session and position"}


# ----------------------------------------------------------------------------------------- data that do not ship


@pytest.fixture
def films(data_folder, tmp_path, monkeypatch):
    path = data_folder / "movielens" / "ratings.csv"
    if not path.is_file():
        pytest.skip(f"{path} is absent")
    monkeypatch.chdir(tmp_path)
    return str(path)


@pytest.mark.slow
def test_replay_of_films(says, films):
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
    assert says == {
        f"attractions are {attraction:.2f} on average",
        f"earns {np.mean(online):.3f} in as many sessions (mean of 40 runs, standard error {error:.3f})",
    }


@pytest.mark.slow
def test_replay_of_the_open_bandit_sample(says, data_folder):
    folder = data_folder / "open_bandit"
    if not (folder / "random_men.csv.gz").is_file():
        pytest.skip(f"{folder / 'random_men.csv.gz'} is absent")
    log = clickgym.offline.read_open_bandit(folder / "random_men.csv.gz", folder / "random_men_item_context.csv")
    agent = clickgym.agents.C2UCB(log.n_items, 1, n_features=log.features(0).shape[1], alpha=0.2, seed=0)
    result = clickgym.replay(agent, log)
    estimates = {f"{result.value:.4f} ± {result.standard_error:.4f}"}
    estimates.add(f"{result.weighted_value:.4f} ± {result.weighted_standard_error:.4f}")
    (both,) = estimates
    assert says == {
        f"On the sample's {len(log):,} rows with {log.n_items} items, {len(result.rewards)} agree; the agent's "
        f"estimate is {both} clicks a "
        f"row by rejection and by weights (± one standard error), the random policy has {result.on_policy}"
    }


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
