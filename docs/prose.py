"""Figures in prose: ``docs/figures.json`` holds them, and `make pages` writes them into the sentences of the pages.

An entry has a name, what a sentence shows (one figure or more), and where that comes from. ``from`` is an expression over data
that ship, in terms of this file, which `make pages` and a test compute. ``measured`` is the command that once measured it, with
its ``date``. ``<!-- figures: a b -->`` behind a sentence says that it shows the figures of entries a and b, in this order.
``<!-- proof: a -->`` behind a statement or a table names what proves it: an entry that is True or was measured, or a test.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import polars
from numpy.typing import NDArray
from polars import col
from scipy.stats import spearmanr

from clickgym import Results
from clickgym.agents import AGENTS, CONTEXTUAL_AGENTS, LEARNERS, STATE_AGENTS
from clickgym.core.statistics import worst_tenth
from clickgym.envs import ENVIRONMENTS, list_instances, load_instance
from clickgym.runner.theory import assumptions
from clickgym_lab.bench import conclusions
from clickgym_lab.bench.leaderboard import Place, leaderboard, tables_of
from clickgym_lab.bench.protocol import CURRENT
from clickgym_lab.bench.reference import reference
from clickgym_lab.shipped import read_shipped
from clickgym_lab.studies import STUDIES, he2020, li2019_cascade, neural_by_features, warm_start
from clickgym_lab.studies.study import CM, PBM, Curves, estimate, number

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
FILE = DOCS / "figures.json"
MARK = re.compile(r"<!-- figures: (.*?) -->")
WORDS = {3: "three", 5: "five", 6: "six", 7: "seven", 8: "eight", 11: "eleven", 13: "thirteen", 20: "twenty"}
WORDS |= {21: "twenty-one", 22: "twenty-two", 24: "twenty-four", 25: "twenty-five", 26: "twenty-six"}
"""Numbers that pages spell out."""

BASELINES = ("Oracle", "Fixed", "Random")

Entries = Mapping[str, Mapping[str, Any]]


# ------------------------------------------------------------------------------------------------------- pages and their marks


def entries() -> Entries:
    """What ``docs/figures.json`` holds."""
    found: Entries = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def written(found: Entries) -> str:
    """The text of the file with some entries, one a line."""
    lines = (f" {json.dumps(name)}: {json.dumps(entry, ensure_ascii=False)}" for name, entry in found.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def figures(source: str) -> list[str]:
    """What an expression gives, as texts."""
    value = eval(source, globals())  # of our own file
    return [str(each) for each in (value if isinstance(value, list | tuple) else [value])]


def computed(found: Entries) -> Entries:
    """Entries with what data that ship show now."""
    return {name: {**entry, "shows": figures(entry["from"])} if "from" in entry else entry for name, entry in found.items()}


def marked() -> list[Path]:
    """The pages with sentences whose figures are filled in."""
    files = (ROOT / "README.md", ROOT / "paper.md", *sorted(DOCS.glob("*.md")), DOCS / "site" / "index.md")
    return [file for file in files if MARK.search(file.read_text(encoding="utf-8"))]


def renewed(text: str, old: Entries, new: Entries) -> str:
    """A page with the figures of new entries where it has those of old ones.

    Raises:
        ValueError: a sentence does not show the old figures in the order of its mark, or in more than one way.
    """
    for mark in [*MARK.finditer(text)][::-1]:
        before_mark = len(text[: mark.start()].rstrip())
        start = max(text.rfind("\n\n", 0, before_mark), text.rfind("-->", 0, before_mark), 0)
        before, after = ([figure for name in mark[1].split() for figure in each[name]["shows"]] for each in (old, new))
        spans = _spans(text[start : mark.start()], before)
        for (first, last), figure in [*zip(spans, after, strict=True)][::-1]:
            text = text[: start + first] + figure + text[start + last :]
    return text


def _spans(sentence: str, shown: Sequence[str]) -> list[tuple[int, int]]:
    """Where a sentence shows some figures, in this order."""
    each = [r"(?<!\w)(?<!\d[.,])(" + r"\s+".join(map(re.escape, figure.split())) + r")(?!\w|[.,]\d)" for figure in shown]
    first, last = (re.match(any_text + any_text.join(each), sentence, re.DOTALL) for any_text in (".*?", ".*"))
    if first is None or last is None or first.regs != last.regs:
        raise ValueError(f"{' '.join(sentence.split())!r} shows {shown} {'not at all' if first is None else 'in several ways'}")
    return [first.span(group + 1) for group in range(len(shown))]


# --------------------------------------------------------------------------------------------- numbers, and what they are of


def fixed(value: float, digits: int = 2) -> str:
    """A number with so many digits after the point."""
    return f"{value:,.{digits}f}"


def span(values: Iterable[float], digits: int = 2, last: int | None = None) -> tuple[str, str]:
    """The smallest and the largest of some values, perhaps with other digits."""
    low, *_, high = sorted(values)
    return fixed(low, digits), fixed(high, digits if last is None else last)


def section(script: str) -> str:
    """What a script of benchmarks/ wrote into its section of README.md there."""
    text = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    return text.partition(f"<!-- start of {script} -->")[2].partition("<!-- end")[0].strip()


def measured(script: str, pattern: str) -> list[Any]:
    """What a pattern finds in the section of a script; numbers are without commas."""
    return re.findall(pattern, section(script).replace(",", ""))


def sizes() -> Mapping[str, object]:
    """How many agents, models, queries and studies there are."""
    queries = [name for name in list_instances() if name.startswith("yandex-9")]
    (n_items,) = {load_instance(name).n_items for name in queries}
    of_papers = [study.paper for study in STUDIES.values() if re.match(r"(?!on ).*, (figure|table|section) ", study.paper)]
    models = sum(not name.startswith("NonStationary") for name in ENVIRONMENTS)
    return {
        "agents": len(AGENTS | CONTEXTUAL_AGENTS | STATE_AGENTS),
        "learners": WORDS[len(LEARNERS) - 2],
        "models": WORDS[models].capitalize(),
        "queries": len(queries),
        "items": n_items,
        "experiments": WORDS[len(of_papers)],
        "papers": WORDS[len({paper.partition(",")[0] for paper in of_papers})],
        "further": WORDS[len(STUDIES) - len(of_papers)],
    }


def random_lists(n_positions: int, sessions: int) -> str:
    """What uniformly random lists lose in the default instance, from its parameters."""
    parameters = gym.make(PBM, n_positions=n_positions).unwrapped.model.parameters
    attraction, examination = parameters.attraction, parameters.examination[:n_positions]
    best = np.sort(attraction)[::-1][:n_positions] @ np.sort(examination)[::-1]
    return fixed(sessions * (best - attraction.mean() * examination.sum()), 0)


MOST_LISTS = assumptions.MAX_LISTS


def duplicates(n_items: int, n_positions: int) -> str:
    """In how many percent of draws of positions at random an item comes twice."""
    return fixed(100 * (1 - math.perm(n_items, n_positions) / n_items**n_positions), 0)


# ------------------------------------------------------------------------------------------------------------ the scorecard


@cache
def places() -> dict[str, Place]:
    """The lines of the boards with and without extra knowledge, by name."""
    return {place.agent: place for board in CURRENT.boards[:2] for place in leaderboard(CURRENT, board)}


def score(agent: str, ability: str) -> str:
    """The score of a line in an ability."""
    return fixed(places()[agent].standing.abilities[ability].value)


def worst(agent: str, ability: str | None = None) -> str:
    """The mean score of the worst tenth of its runs."""
    return fixed(conclusions.worst(agent, ability))


def best_line(what: str, name: str) -> tuple[str, str]:
    """The score of the line that the pages name as the best, and in the worst tenth of its runs."""
    assert conclusions.recommended()[what] == name
    return str(places()[name].standing.overall), worst(name)


def linear_scale() -> str:
    """The rank correlation of the overall scores on the first board with those on a linear scale, (R₀ - R) / (R₀ - R₁)."""
    board = CURRENT.boards[0]
    best = {task.name: float(np.exp(-CURRENT.anchor(task).scale)) for task in CURRENT.tasks()}
    due = Counter(task.ability for task in CURRENT.tasks_of(board))
    linear = {}
    for name, played in tables_of(CURRENT, board, None, False).items():
        rows = played.filter(col("task").is_in(list(best)))
        share = col("task").replace_strict(best, return_dtype=polars.Float64)
        means = rows.group_by("task", "ability").agg(score=((1 - share ** col("score")) / (1 - share)).mean())
        sums = dict(means.group_by("ability").agg(col("score").sum()).iter_rows())
        linear[name] = np.mean([sums.get(ability, 0.0) / n for ability, n in due.items()])
    found = leaderboard(CURRENT, board)
    overall = [place.standing.overall.value for place in found]
    return fixed(spearmanr(overall, [linear[place.agent] for place in found]).statistic)


# --------------------------------------------------------------------------------------------------------------- the studies


@cache
def curves(study: str, setting: str = "shipped") -> dict[str, Curves]:
    """What ships of a study, by part."""
    shipped = read_shipped(DOCS.parent / "lab" / "results" / f"{study}.parquet")
    return {each.part: Curves(each.table) for each in shipped if each.setting == setting}


def ends(study: Curves, env: str, agent: str) -> NDArray[np.float64]:
    """``(instances,)`` the regret at the end, mean over the runs."""
    return study.ends(env, agent).mean(axis=1)


def told(agent: str, world: str, features: str) -> float:
    """Its regret before users of a world, in percent of that of random lists, mean over the instances."""
    study, env = curves("features-or-networks")[f"features-{world}-{features}"], "ContextualPBMRank-v0"
    return float(np.mean(100 * ends(study, env, agent) / ends(study, env, "Random")))


def exam(agent: str, world: str) -> tuple[str, str]:
    """What a network told plain features loses in 8,000 sessions, percent of random lists’: median, and worst world."""
    study = curves("neural-by-features")[f"neural-{world}-plain"]
    values = neural_by_features.percents(study, agent, neural_by_features.EARLY)
    return fixed(np.median(values), 1), fixed(values.max(), 1)


def long_runs(agent: str, users: str = "DBN") -> NDArray[np.float64]:
    """``(queries, runs)`` the regret after a million sessions, on the queries that ship."""
    return curves("never-locked", "yandex")["never-locked"].ends(f"{users}Rank-v0", agent)


def after_a_million(agent: str, users: str = "DBN") -> tuple[str, str]:
    """Its mean regret after a million sessions, and that in the worst tenth of the runs."""
    runs = long_runs(agent, users)
    return number(runs.mean()), number(-worst_tenth(-runs))


def bounds() -> tuple[str, str, str]:
    """Regret relative to the bound of who detects changes, after how many sessions; to when the UBM's exceeds the sessions."""
    detecting, env = curves("nonstat-bound")["nonstat-bound"], "NonStationaryCMRank-v0"
    times = detecting.units(env, "GLRCascadeKLUCB")[:, -1] / li2019_cascade.lower_bound(detecting)[-1]
    assert (he2020.bounds(curves("ubm-bound")["ubm-bound"]) > he2020.DECADES).all()
    return fixed(times.mean()), fixed(detecting.horizon, 0), fixed(max(he2020.DECADES), 0)


def examination(agent: str = "PBMHB") -> NDArray[np.float64]:
    """``(queries,)`` the regret where examination is unknown."""
    return ends(curves("unknown-examination", "yandex60")["unknown-examination-pbm"], PBM, agent)


def beside_given() -> tuple[str, str, int, str]:
    """PB-MHB beside PBM-TS: the interval of the gap in percent, by Student's t; queries, and on how many it has more regret."""
    hb, ts = examination(), examination("PBMTS")
    gap = estimate(hb - ts)
    low, high = (100 * (gap.mean + side * gap.half) / ts.mean() for side in (-1, 1))
    return fixed(-low, 0), fixed(high, 0), len(hb), fixed(100 * (hb > ts).mean(), 0)


def earned(study: Curves, agent: str, runs: slice) -> NDArray[np.float64]:
    """``(2, instances)`` what it earned in some runs with lists of six: clicks, and the probability of at least one."""
    env = "ContextualUBMRank-v0:n_positions=6"
    best = np.mean([study.ends(env, each, "reward") + study.ends(env, each) for each in study.agents], axis=0)
    clicks, regret = study.ends(env, agent, "clicks"), study.ends(env, agent)
    return np.stack([clicks[:, runs].mean(axis=1), best.mean(axis=1) - regret[:, runs].mean(axis=1)])


def lead() -> tuple[str, str]:
    """By how many percent UBM-LinUCB leads C2UCB in half of the runs, with the α that is best in the others."""
    study, env = curves("ubm-table1")["ubm-table1"], "ContextualUBMRank-v0:n_positions=6"
    half, best = study.n_runs // 2, []
    for name in ("UBMLinUCB", "C2UCB"):
        labels = sorted(label for label in study.agents if label.partition(":")[0] == name)
        label = min(labels, key=lambda label: study.ends(env, label)[:, :half].mean())
        best.append(earned(study, label, slice(half, None)))
    return span((100 * (best[0] / best[1] - 1)).flat, 1)


def lead_explained() -> tuple[str, str, str]:
    """Its lead where the same candidates come in every session, and how many percent of the users click once."""
    study, env, ours = curves("why-ubm-lead")["why-ubm-all"], "ContextualUBMRank-v0:n_positions=6", "UBMLinUCB:alpha=0.1"
    both = {name: np.array([study.ends(env, name, what).mean() for what in ("clicks", "reward")]) for name in study.agents}
    leads = np.array([100 * (both[ours] / both[name] - 1) for name in both if name.startswith("C2UCB")])
    return *span(leads.flat, 0), fixed(study.ends(env, ours, "click once").mean(), 0)


def ahead_from(agent: str) -> float:
    """From how many million sessions on it loses less per session than CascadeKL-UCB."""
    study = curves("zoghi-fig2", "yandex60")["zoghi-fig2"]
    own, other = (study.window_rates(study.units(PBM, each)).mean(axis=0) for each in (agent, "CascadeKLUCB"))
    return float(study.steps[study.windows][own >= other][-1] / 1e6)


def unsafe_lists(study: Curves, agent: str) -> NDArray[np.float64]:
    """``(models,)`` the unsafe lists in the first 100 sessions of each click model."""
    envs = sorted(set(study.table["env"]))
    return np.array([study.at(study.units(env, agent, "violations"), 100).mean() for env in envs])


def exponent(changes: str, agent: str) -> str:
    """With which exponent regret grows from 10⁵ to 4·10⁵ sessions in which users change."""
    parts = (curves("why-change")[f"why-change-{part}"] for part in ("short", changes))
    short, long = (ends(part, "NonStationaryCMRank-v0", agent).mean() for part in parts)
    return fixed(math.log(long / short) / math.log(4), 1)


def memory(agent: str) -> Curves:
    """The part of the study of users with a memory that an agent plays."""
    return next(part for part in curves("when-rl-pays").values() if agent in part.agents)


MYOPIC, GENERIC = ("CascadeKLUCB", "PerState"), ("PPO:actions=codes", "DQN", "MaskablePPO", "RecurrentPPO")


def spent(users: str, agent: str, step: int = 10**6) -> float:
    """Its mean regret before users with a memory after so many sessions."""
    study = memory(agent)
    return float(study.at(study.units("CascadeMDPRank-v0", agent, instance=users), step).mean())


# ---------------------------------------------------------------------------------------------------- clicks as they come


def practice(part: str) -> Curves:
    """A part of a study of clicks as they come, on real queries."""
    return curves(re.sub("-(models|many)$", "", part), "yandex")[part]


def lost(part: str, agent: str, users: str = "", env: str = CM) -> float:
    """The mean regret at the end over the queries, with users as they are or as they arrive, click and change there."""
    return float(practice(part).end_units(f"{env}:{users}" if users else env, agent).mean())


@cache
def generic() -> list[str]:
    """Generic RL beside bandits in the tasks that both play, and in the one in which clicks spoil returning users.

    Tasks; how many times PBMHB's regret its best has, from and to; of the last task, how many of it beat all bandits, how many
    bandits these are, and how many times a planner's regret its best has.
    """
    table = reference()
    five = (*GENERIC, "A2C:actions=codes")
    played = table.filter(col("task").is_in(table.filter(col("agent").is_in(five))["task"].implode()))
    mean = {key: rows["loss"].mean() for key, rows in played.group_by("ability", "task", "agent")}
    tasks = sorted({(ability, task) for ability, task, _ in mean})
    best = {task: min(mean[*task, name] for name in five if (*task, name) in mean) for task in tasks}
    others = [task for task in tasks if task[0] != "memory"]
    assert all(mean[*task, name] < best[task] for task in others for name in ("PBMHB", "GRAB"))
    times = [best[task] / mean[*task, "PBMHB"] for task in others]
    [memory] = set(tasks) - set(others)
    bandits = [mean[*memory, name] for name in (*AGENTS, "PerState") if (*memory, name) in mean and name not in BASELINES]
    ahead = sum(mean[*memory, name] < min(bandits) for name in five)
    planner = best[memory] / mean[*memory, "CascadeVI"]
    return [str(len(others)), fixed(min(times), 1), fixed(max(times), 0), WORDS[ahead], str(len(bandits)), fixed(planner, 1)]


def share(part: str, agent: str, users: str = "") -> float:
    """The same in percent of what random lists lose."""
    return 100 * lost(part, agent, users) / lost(part, "Random", users)


def left(part: str, agent: str, users: str) -> float:
    """The regret per session when the run ends, in percent of that of random lists."""
    own, random = (practice(part).final_units(f"{CM}:{users}", each).mean() for each in (agent, "Random"))
    return float(100 * own / random)


def times(part: str, agent: str, users: str) -> float:
    """The regret with such users relative to that with users who are not like that."""
    return lost(part, agent, users) / lost(part, agent)


def learning(part: str) -> list[str]:
    """The agents of a part that learn."""
    return [agent for agent in practice(part).agents if agent not in ("Random", "Fixed")]


def good(part: str) -> list[str]:
    """Those that lose less than 5 % of what random lists lose."""
    return [agent for agent in learning(part) if share(part, agent) < 5]


def waiting(agent: str) -> float:
    """What batches of 5,000 cost, relative to what random lists lose in one batch."""
    blind = lost("late-clicks", "Random") * 5000 / practice("late-clicks").horizon
    return (lost("late-clicks", agent, "arrival=batch:5000") - lost("late-clicks", agent)) / blind


def beats_all(agent: str, env: str) -> str:
    """On how many percent of the queries it has less regret than all others that learn, in batches of 5,000."""
    part, env = practice("late-clicks-models"), f"{env}:arrival=batch:5000"
    others = [part.end_units(env, other) for other in learning("late-clicks-models") if other != agent]
    return fixed(100 * (part.end_units(env, agent) < np.min(others, axis=0)).mean(), 0)


def untold(agent: str, rate: str) -> float:
    """Its regret in percent of random lists' if it is not told of new items."""
    return share("churn", f"clickgym.lab.studies.churn:Untold{agent}", f"churn={rate}")


WARMED = (*warm_start.LEARNERS, warm_start.GREEDY)


def kept(part: str, agent: str, sessions: int = 100_000, exchanged: float = warm_start.EXCHANGED, env: str = CM) -> float:
    """The regret after a log relative to that without one."""
    return lost(part, warm_start.warm(agent, sessions, exchanged), env=env) / lost(part, agent, env=env)


# ------------------------------------------------------------------------------------------ generic reinforcement learning

LINEAR, RATED = (f"ContextualUBMRank-v0:instance=movielens{kind}.json" for kind in ("-linear", ""))


@cache
def sweep(name: str) -> Results:
    """What ships of a sweep."""
    return Results(DOCS / "sweeps" / name)


def played(name: str, agent: str) -> str:
    """What a sweep calls an agent: PPO and A2C may have played codes."""
    return agent if agent in sweep(name).config["agents"] else f"{agent}:actions=codes"


FOUR = ("PPO", "A2C", "DQN", "SAC")


def mean(name: str, agent: str, step: int, env: str = PBM) -> float:
    """The mean regret of a sweep after so many sessions."""
    return float(sweep(name).frame.filter(env=env, agent=agent, step=step)["regret"].mean())


def beside(bandit: str, step: int) -> list[float]:
    """The mean regret of four generic algorithms in two click models, relative to that of a bandit."""
    return [mean("rl", agent, step, env) / mean("rl", bandit, step, env) for env in (PBM, CM) for agent in FOUR]


def from_on(bandit: str, sign: int) -> int:
    """The first step from which on all four have more regret than a bandit, or with -1 less."""
    steps = sweep("rl").frame["step"].unique().sort().to_list()
    wrong = [step for step in steps if any(sign * (ratio - 1) <= 0 for ratio in beside(bandit, step))]
    return min(step for step in steps if step > max(wrong))


def shares_of_random(agent: str) -> polars.Series:
    """``(runs,)`` the regret in the sweep of learners, in percent of that of random lists."""
    frame = sweep("learners").frame.filter(step=sweep("learners").config["horizon"])
    random = frame.filter(agent="Random").group_by("instance").agg(random=col("regret").mean())
    runs = frame.filter(agent=played("learners", agent)).join(random, on="instance")
    return 100 * runs["regret"] / runs["random"]
