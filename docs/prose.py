"""Figures in prose: functions compute them from data that ship, and `make pages` writes them into sentences of the pages.

Each entry of ``docs/figures.json`` has a page, a sentence of it with names in braces for its figures, the function of this file
that computes them, and their values. To add one, write the sentence into the page and an entry with the values as they stand
there; `make pages` computes the values and renews both.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars
from polars import col
from scipy.stats import spearmanr

from clickgym.agents import AGENTS, CONTEXTUAL_AGENTS, LEARNERS, STATE_AGENTS
from clickgym.core.statistics import worst_tenth
from clickgym.envs import ENVIRONMENTS, list_instances, load_instance
from clickgym_lab.bench.conclusions import MUCH, n_first, recommended, tuned_lines, unsafe, worst
from clickgym_lab.bench.leaderboard import Place, leaderboard, tables_of
from clickgym_lab.bench.protocol import VERSION_2
from clickgym_lab.shipped import read_shipped
from clickgym_lab.studies import STUDIES
from clickgym_lab.studies.first_everywhere import CASES
from clickgym_lab.studies.study import Curves, number

DOCS = Path(__file__).resolve().parent
FILE = DOCS / "figures.json"
WORDS = {3: "three", 5: "five", 7: "seven", 11: "eleven", 13: "thirteen", 20: "twenty", 21: "twenty-one"}
"""Numbers that pages spell out."""

Entry = dict[str, Any]


@cache
def curves(study: str, setting: str = "shipped") -> dict[str, Curves]:
    """What ships of a study, by part."""
    shipped = read_shipped(DOCS.parent / "lab" / "results" / f"{study}.parquet")
    return {each.part: Curves(each.table) for each in shipped if each.setting == setting}


# -------------------------------------------------------------------------------------------------------------- the package


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
        "published": len(curves("unknown-examination", "yandex60")["unknown-examination-pbm"].instances),
        "experiments": WORDS[len(of_papers)],
        "papers": WORDS[len({paper.partition(",")[0] for paper in of_papers})],
        "further": WORDS[len(STUDIES) - len(of_papers)],
    }


# ------------------------------------------------------------------------------------------------------------ the scorecard


@cache
def places() -> dict[str, Place]:
    """The lines of the boards with and without extra knowledge, by name."""
    return {place.agent: place for board in VERSION_2.boards[:2] for place in leaderboard(VERSION_2, board)}


def tasks() -> Mapping[str, object]:
    """How many tasks are drawn, scored and dropped, in all and on the first board."""
    scored, drawn = VERSION_2.tasks(), VERSION_2.candidates
    return {
        "drawn": len(drawn),
        "scored": len(scored),
        "dropped": WORDS[len(drawn) - len(scored)],
        "free": len(VERSION_2.tasks_of(VERSION_2.boards[0])),
        "abilities": len(VERSION_2.abilities),
    }


def scores() -> Mapping[str, object]:
    """The scores of the best lines, each with the worst tenth of its runs, and what tuning gains."""
    take, (tuned, spoilt) = recommended(), tuned_lines(places())
    gains = [after.standing.overall.value - before.standing.overall.value for before, after in tuned]
    own, published = (take[name] for name in ("overall", "published"))
    assert (own, published) == ("UBMTS", "PBMHB")  # the pages name them
    return {
        "own": places()[own].standing.overall,
        "own_worst": f"{worst(own):.2f}",
        "published": places()[published].standing.overall,
        "published_worst": f"{worst(published):.2f}",
        "first": (first := n_first(own)),
        "free": (free := len(VERSION_2.tasks_of(VERSION_2.boards[0]))),
        "behind": free - first,
        "gained": sum(gain > MUCH for gain in gains),
        "tuned": len(gains),
        "spoilt": WORDS[len(spoilt)],
    }


def linear_scale() -> Mapping[str, object]:
    """The rank correlation of the overall scores on the first board with those on a linear scale, (R₀ - R) / (R₀ - R₁)."""
    board = VERSION_2.boards[0]
    best = {task.name: float(np.exp(-VERSION_2.anchor(task).scale)) for task in VERSION_2.tasks()}
    due = Counter(task.ability for task in VERSION_2.tasks_of(board))
    linear = {}
    for name, rows in tables_of(VERSION_2, board, None, False).items():
        share = col("task").replace_strict(best, return_dtype=polars.Float64)
        means = rows.group_by("task", "ability").agg(score=((1 - share ** col("score")) / (1 - share)).mean())
        sums = dict(means.group_by("ability").agg(col("score").sum()).iter_rows())
        linear[name] = np.mean([sums.get(ability, 0.0) / n for ability, n in due.items()])
    found = leaderboard(VERSION_2, board)
    overall = [place.standing.overall.value for place in found]
    return {"correlation": f"{spearmanr(overall, [linear[place.agent] for place in found]).statistic:.2f}"}


def in_practice() -> Mapping[str, object]:
    """The scores of UBM-TS with clicks as they come, and the worst tenth of its runs."""
    abilities = places()["UBMTS"].standing.abilities
    names = ("late", "bots", "churn", "warm_start")
    return {name: f"{abilities[name].value:.2f}" for name in names} | {
        f"{name}_worst": f"{worst('UBMTS', name):.2f}" for name in names
    }


def guard() -> Mapping[str, object]:
    """What the guard of UBM-TS does not prevent, and what it costs."""
    safe, without = unsafe()["UBMTS, safe"], unsafe()["UBMTS"]
    scores_of = {ability: places()["UBMTS, safe"].standing.abilities[ability].value for ability in ("cold_start", "churn")}
    return {
        "share": f"{100 * safe.share:.0f} %",
        "runs": safe.runs,
        "tenth": f"{safe.tenth:,.0f}",
        "most": number(safe.most),
        "without_share": f"{100 * without.share:.0f} %",
        "without_most": number(without.most),
    } | {ability: f"{score:.2f}" for ability, score in scores_of.items()}


# --------------------------------------------------------------------------------------------------------------- the studies


def locks() -> Mapping[str, object]:
    """UBM-TS beside GRAB in the DBN, where it locks on wrong lists."""
    long = curves("first-everywhere", "yandex")["first-everywhere-long"]
    runs = {name: long.ends("DBNRank-v0", agent) for name, agent in (("own", "UBMTS"), ("grab", "GRAB"))}
    own, grab = (each.mean(axis=1) for each in runs.values())
    return {
        "sessions": f"{long.horizon:,}",
        "queries": len(own),
        "own": number(own.mean()),
        "grab": number(grab.mean()),
        "worse": int((own > grab).sum()),
        "most": f"{(own / grab).max():.1f}",
    } | {f"{name}_worst": number(-worst_tenth(-each)) for name, each in runs.items()}


def limits() -> Mapping[str, object]:
    """Regret of UBM-TS and of the best rival before users for whom it is not made, and in the worst tenth of the runs."""
    rivals = {"bandit": "PBMHB", "ties": "CascadeTS", "clickbait": "PBMHB", "bumpy": "BCMPTS"}
    figures = {}
    for case, rival in rivals.items():
        part = curves("ubm-ts-limits")[f"limits-{case}"]
        for who, agent in (("own", "UBMTS"), ("rival", rival)):
            runs = part.ends(CASES[case], agent)
            figures |= {f"{case}_{who}": number(runs.mean()), f"{case}_{who}_worst": number(-worst_tenth(-runs))}
    return figures


FUNCTIONS: dict[str, Callable[[], Mapping[str, object]]] = {
    function.__name__: function for function in (sizes, tasks, scores, linear_scale, in_practice, guard, locks, limits)
}

# ------------------------------------------------------------------------------------------------------------- the sentences


def entries() -> list[Entry]:
    """What ``docs/figures.json`` holds."""
    found: list[Entry] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def written(found: Iterable[Entry]) -> str:
    """The text of the file with some entries."""
    return json.dumps([*found], indent=1, ensure_ascii=False) + "\n"


def computed(entry: Entry) -> Entry:
    """An entry with values that are computed anew."""
    names = re.findall(r"\{(\w+)\}", entry["sentence"])
    figures = FUNCTIONS[entry["function"]]()
    return entry | {"values": {name: str(figures[name]) for name in names}}


def sentence(entry: Entry) -> str:
    """The sentence of an entry as it stands on its page, line breaks aside."""
    return str(entry["sentence"].format_map(entry["values"]))


def renewed(text: str, entry: Entry) -> str:
    """A page with the values of an entry computed anew.

    Raises:
        ValueError: the page has no such sentence with the values of the entry.
    """
    parts = re.split(r"\{(\w+)\}", entry["sentence"])
    texts = [part if place % 2 == 0 else entry["values"][part] for place, part in enumerate(parts)]
    flexible = [r"\s+".join(re.escape(word) for word in re.split(r"\s+", part)) for part in texts]
    match = re.search("".join(f"({part})" for part in flexible), text)
    if match is None:
        raise ValueError(f"{entry['page']} lacks the sentence {sentence(entry)!r}")
    values = computed(entry)["values"]
    new = [values[part] if place % 2 else match[place + 1] for place, part in enumerate(parts)]
    return text[: match.start()] + "".join(new) + text[match.end() :]
