"""Write the pages of studies and the tables that are made from shipped results.

make pages
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import rl_page
from matplotlib.figure import Figure

from clickgym.core.files import write_whole
from clickgym.core.formats import markdown_table
from clickgym_lab.bench.board import (
    abilities,
    board,
    learners,
    published,
    recommended,
    scored_tasks,
)
from clickgym_lab.bench.tasks import ABILITIES, quick_tasks, tasks_of
from clickgym_lab.studies import studies
from clickgym_lab.studies.page import page
from clickgym_lab.studies.study import Measured, read_all

ROOT = Path(__file__).resolve().parents[1]
DOCS, RESULTS = ROOT / "docs", ROOT / "lab" / "results"


def pages() -> dict[Path, str]:
    """Return the text of every file, by its path."""
    texts = {RESULTS / f"{name}.md": text for name, text in study_pages(is_shipped=True)}
    studies, scorecard = DOCS / "studies.md", DOCS / "scorecard.md"
    texts[studies] = _between(studies.read_text(encoding="utf-8"), "studies", _studies())
    text = _between(scorecard.read_text(encoding="utf-8"), "scorecard", _abilities())
    text = _between(text, "boards", _boards())
    text = _between(text, "learners", _table(*learners()))
    texts[scorecard] = _between(text, "recommended", _table(*recommended()))
    mix_ts = DOCS / "mix_ts.md"
    texts[mix_ts] = _between(mix_ts.read_text(encoding="utf-8"), "mix_ts", _scores_of_mix_ts())
    rl = (DOCS / "rl.md").read_text(encoding="utf-8")
    for name, rows in rl_page.tables().items():
        rl = _between(rl, name, _table(*rows))
    rl = _between(rl, "time", rl_page.time_sentence())
    texts[DOCS / "rl.md"] = _between(rl, "origin", f"`{rl_page.origin()}`")
    return texts


def _between(text: str, name: str, content: str) -> str:
    """Replace the text between the marks of a name."""
    start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    return re.sub(f"{start}.*{end}", lambda _: f"{start}\n{content}\n{end}", text, flags=re.DOTALL)


def _table(header: Sequence[str], *rows: Sequence[str]) -> str:
    return "\n".join(markdown_table([header, *rows]))


def _abilities() -> str:
    """Return the table of the scorecard's abilities."""
    rows, quick = [], {task.ability: task.name for task in quick_tasks()}
    for ability, groups in ABILITIES.items():
        tasks = tasks_of(ability)
        models = dict.fromkeys(model for group in groups for model in group.models)
        sessions = dict.fromkeys(f"{task.horizon:,}" for task in tasks)
        about = "; ".join(dict.fromkeys(group.about for group in groups))
        counts = [str(len(tasks)), ", ".join(sessions)]
        rows.append((ability, about, ", ".join(models), *counts, quick.get(ability, "–")))
    header = ("ability", "what differs", "click models", "tasks", "sessions", "in `--quick`")
    return _table(header, *rows)


def _scores_of_mix_ts() -> str:
    """Return the scores of our own agent by ability, without its name in each row."""
    [line] = [line for line in published() if line.agent.endswith(":MixTS")]
    found = abilities(line, scored_tasks()).items()
    rows = [(name, f"{score.value:z.2f}", f"{score.bad_run:z.2f}") for name, score in found]
    return _table(("ability", "score", "bad run"), *rows)


def _boards() -> str:
    """Return the two boards of the scorecard."""
    boards = [board(published(), features) for features in (False, True)]
    return "\n\n".join(_table(*rows) for rows in boards)


# ------------------------------------------------------------ studies


@cache
def measured() -> dict[str, list[Measured]]:
    """Return every study on each set of queries with shipped results, with its verdicts."""
    return {name: read_all(study, RESULTS) for name, study in studies().items()}


def _studies() -> str:
    """Return the table of the studies."""
    rows = []
    for name, results in measured().items():
        words = []
        for result in results:
            verdicts = Counter(row.verdict for row in result.judged)
            counts = (str(verdicts[verdict]) for verdict in ("yes", "no", "cannot tell"))
            words.append(f"{result.label or 'shipped'}: {', '.join(counts)}")
        link = f"[`{name}`](../lab/results/{name}.md)"
        rows.append((link, results[0].study.paper, results[0].study.title, "; ".join(words)))
    return _table(("study", "paper", "what it shows", "statements: yes, no, cannot tell"), *rows)


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


if __name__ == "__main__":
    main()
