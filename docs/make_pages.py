"""Write the pages of studies, and the tables that are made from shipped results and from classes.

make pages
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from inspect import getsource
from pathlib import Path

import rl_page
import unseen_page
from matplotlib.figure import Figure
from pages import (
    agents_table,
    counted,
    environments_table,
    families_table,
    model_sections,
    models_table,
    prefixed_ids,
)

from clickgym.core.files import write_whole
from clickgym.core.formats import markdown_table
from clickgym_lab.bench import unseen
from clickgym_lab.bench.board import (
    abilities,
    board,
    learners,
    published,
    recommended,
    scored_tasks,
    unscored,
)
from clickgym_lab.bench.tasks import ABILITIES, quick_tasks, tasks_of
from clickgym_lab.studies import studies
from clickgym_lab.studies.page import page
from clickgym_lab.studies.study import Measured, read_all
from clickgym_lab.studies.when_rl_pays import BanditByState

ROOT = Path(__file__).resolve().parents[1]
DOCS, RESULTS = ROOT / "docs", ROOT / "lab" / "results"

SITUATIONS = {
    "standard": "ordinary queries",
    "early sessions": "only a thousand sessions",
    "long lists": "lists of ten",
    "large catalogues": "50 to 1,000 items",
    "position bias": "low positions are hardly seen",
    "rare clicks": "clicks are rare",
    "change": "what users like changes abruptly",
    "drift": "what users like changes all the time",
    "ties": "items are nearly alike",
    "clickbait": "attractive items satisfy less",
    "safety": "bad lists must be rare",
    "warm start": "there is a log to learn from",
    "memory": "clicks change later clicks",
    "long run": "a million sessions",
    "features": "items have features",
}
"""Each ability in the words of a reader who looks for an agent."""

BY_STATE_IMPORTS = """\
from typing import Any

import numpy as np
from clickgym.agents import Agent, CascadeKLUCB"""
"""What the class `BanditByState` needs where a page shows it."""


def pages() -> dict[Path, str]:
    """Return the text of every file, by its path."""
    texts = {RESULTS / f"{name}.md": text for name, text in study_pages(is_shipped=True)}
    made = {
        "agents": {
            "agents": _table(
                ["agent", "paper", "made for", "requires", "any list"], *agents_table()
            )
        },
        "environments": {
            "models": _table(
                ["id", "how users read and click", "random lists", "best list"], *models_table()
            ),
            "sections": f"\n{model_sections()}\n",
            "changing": prefixed_ids("NonStationary"),
            "contextual": prefixed_ids("Contextual"),
        },
        "../README": {
            "environments": _table(
                ["Environment", "How the users behave", "Source"], *environments_table()
            ),
            "algorithms": _table(["Family", "Agents", "Made for"], *families_table()),
        },
        "studies": {"studies": _studies()},
        "scorecard": {
            "recommended": _recommended(),
            "board": _board(features=False),
            "features": _board(features=True),
            "abilities": _abilities(),
            "unseen": _unseen(unseen.board),
        },
        "scorecard_reference": {
            "learners": _table(*learners()),
            "unscored": _table(*unscored()),
            "unseen losses": _unseen(unseen.losses),
        },
        "mix_ts": {"mix_ts": _scores_of_mix_ts()},
        "rl": {"pays": _table(*rl_page.pays_table())},
        "stateful_users": {
            "regret": _table(*rl_page.stateful_table()),
            "by state": f"```python\n{BY_STATE_IMPORTS}\n\n\n{getsource(BanditByState)}```",
        },
        "rl_results": {
            **{name: _table(*rows) for name, rows in rl_page.tables().items()},
            "origin": f"`{rl_page.origin()}`",
        },
        "unseen_queries": {
            **{name: _table(*rows) for name, rows in unseen_page.tables().items()},
            "origin": f"`{unseen_page.origin()}`",
        },
        "rl_reference": {
            "defaults": _table(*rl_page.defaults_table()),
            "time": rl_page.time_sentence(),
        },
    }
    for name, parts in made.items():
        file = (DOCS / f"{name}.md").resolve()
        texts[file] = _filled(file, parts)
    for file in (ROOT / "README.md", ROOT / "paper.md", *DOCS.glob("*.md")):
        texts[file] = counted(texts.get(file) or file.read_text(encoding="utf-8"))
    return texts


def _filled(file: Path, parts: Mapping[str, str]) -> str:
    """Return the text of a page, with each part between the marks of its name."""
    text = file.read_text(encoding="utf-8")
    for name, content in parts.items():
        start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        before, rest = text.split(start)
        text = f"{before}{start}\n{content}\n{end}{rest.split(end)[1]}"
    return text


def _table(header: Sequence[str], *rows: Sequence[str]) -> str:
    return "\n".join(markdown_table([header, *rows]))


def _abilities() -> str:
    """Return the table of the scorecard's abilities."""
    rows, quick = [], {task.ability: task.name for task in quick_tasks()}
    for ability, groups in ABILITIES.items():
        tasks = tasks_of(ability)
        models = dict.fromkeys(
            model.removeprefix("NonStationary").removeprefix("Contextual")
            for group in groups
            for model in group.models
        )
        sessions = dict.fromkeys(f"{task.horizon:,}" for task in tasks)
        about = "; ".join(dict.fromkeys(group.about for group in groups))
        counts = [str(len(tasks)), ", ".join(sessions)]
        rows.append((ability, about, ", ".join(models), *counts, quick.get(ability, "–")))
    header = ("kind of task", "what differs", "click models", "tasks", "sessions", "in `--quick`")
    return _table(header, *rows)


def _scores_of_mix_ts() -> str:
    """Return the scores of our own agent by ability, without its name in each row."""
    [line] = [line for line in published() if line.agent.endswith(":MixTS")]
    found = abilities(line, scored_tasks()).items()
    rows = [(name, f"{score.value:z.2f}", f"{score.worst_run:z.2f}") for name, score in found]
    return _table(("kind of task", "score", "worst run"), *rows)


def _board(features: bool) -> str:
    """Return a board of the scorecard."""
    header, *rows = board(published(), features)
    links = {"clickgym_lab.mix_ts:MixTS": "[MixTS](mix_ts.md)"}
    return _table(
        header,
        *([links.get(agent, agent), requires or "–", *cells] for agent, requires, *cells in rows),
    )


def _unseen(table: Callable[..., list[list[str]]]) -> str:
    """Return a table of the board of unseen queries."""
    return _table(*table(unseen.shipped()))


def _recommended() -> str:
    """Return the best published agents of each kind of task."""
    (_, *header), *rows = recommended()
    return _table(
        ["your situation", "kind of task", *header],
        *([SITUATIONS.get(ability, ""), f"*{ability}*", *cells] for ability, *cells in rows),
    )


# ------------------------------------------------------------ studies


@cache
def measured() -> dict[str, list[Measured]]:
    """Return every study on each set of queries with shipped results, with its verdicts."""
    return {name: read_all(study, RESULTS) for name, study in studies().items()}


def _studies() -> str:
    """Return the table of the studies that repeat a paper, with the largest set of queries."""
    rows = []
    for name, results in measured().items():
        study = results[0].study
        if not study.is_ours:
            link = f"[`{name}`](../lab/results/{name}.md)"
            rows.append((link, study.paper, study.title))
    return _table(("study", "paper", "what it shows"), *rows)


def study_pages(is_shipped: bool) -> Iterator[tuple[str, str]]:
    """Yield the names and pages of the studies, of the repository or of the website."""
    for name, results in measured().items():
        yield name, page(results, is_shipped)


def study_figures() -> Iterator[tuple[str, Figure]]:
    """Yield the file names and figures of the studies for the website."""
    for results in measured().values():
        for result in results:
            yield result.name, result.study.draw(result.results)


def main() -> None:
    """Write the files that have changed."""
    for file, text in pages().items():
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            write_whole(file, text)
            print(file.relative_to(ROOT))
    rl_page.write_picture()
    unseen_page.write_picture()


if __name__ == "__main__":
    main()
