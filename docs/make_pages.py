"""Write what is made from docstrings and from results that ship: overview tables, findings of
studies, and how to cite.

make pages
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path

from matplotlib.figure import Figure
from pages.citing import bibtex, citing_page

from clickgym import list_agents
from clickgym.core.files import write_whole
from clickgym.core.formats import markdown_table
from clickgym.envs import CONTEXTUAL, ENVIRONMENTS, MEMORY
from clickgym_lab.bench.protocol import CURRENT
from clickgym_lab.studies import STUDIES
from clickgym_lab.studies.page import figure_name, page
from clickgym_lab.studies.play import draw, findings, read_study
from clickgym_lab.studies.setting import Setting, by_setting

ROOT = Path(__file__).resolve().parents[1]
DOCS, RESULTS = ROOT / "docs", ROOT / "lab" / "results"


def pages() -> dict[Path, str]:
    """The text of every file, by its path."""
    texts = {RESULTS / f"{name}.json": findings(name, found) for name, found in settings().items()}
    texts |= {DOCS / "citing.md": citing_page(), ROOT / "paper.bib": bibtex()}
    tables = {
        "environments": _environments(),
        "agents": _agents(),
        "studies": _studies(),
        "scorecard": _abilities(),
    }
    for name, table in tables.items():
        file = DOCS / f"{name}.md"
        texts[file] = _between(file.read_text(encoding="utf-8"), name, table)
    return texts


def _between(text: str, name: str, content: str) -> str:
    """Put something between the marks of its name."""
    start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    return re.sub(f"{start}.*{end}", lambda _: f"{start}\n{content}\n{end}", text, flags=re.DOTALL)


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(markdown_table([header, *rows]))


def _environments() -> str:
    every = ENVIRONMENTS | CONTEXTUAL | MEMORY
    return _table(
        ("id", "users"), [(f"`{name}`", environment.about) for name, environment in every.items()]
    )


def _agents() -> str:
    rows = []
    for need, group in groupby(list_agents().rows, key=lambda row: row["needs"]):
        rows.append((f"**needs {need}**", "", "", ""))
        rows += [
            (f"`{row['name']}`", row["paper"], row["click_models"], row["requires"] or "–")
            for row in group
        ]
    return _table(("name", "source", "made for", "requires"), rows)


def _abilities() -> str:
    """The abilities, with what the rules of their tasks make of them."""
    rows = []
    for ability, about in CURRENT.abilities.items():
        own = [task for task in CURRENT.candidates if task.ability == ability]
        models, [horizon] = (
            dict.fromkeys(task.click_model for task in own),
            {task.horizon for task in own},
        )
        dropped = ", ".join(f"`{task.name}`" for task in own if not CURRENT.anchors[task.name].kept)
        counts = [len(own), len({task.query for task in own}), sum(task.quick for task in own)]
        rows.append(
            (
                f"`{ability}`",
                about,
                *map(str, counts),
                ", ".join(models),
                f"{horizon:,}",
                dropped or "–",
            )
        )
    header = (
        "ability",
        "what it is about",
        "tasks",
        "instances",
        "in `--quick`",
        "click models",
        "sessions",
        "dropped",
    )
    return _table(header, rows)


# ----------------------------------------------------------------------------------------------------------------- studies


@cache
def settings() -> dict[str, list[Setting]]:
    """Every study on each set of queries whose results ship, judged."""
    return {name: by_setting(name, read_study(name, RESULTS)) for name in STUDIES}


def _studies() -> str:
    """The table of the studies."""
    rows = []
    for name, found in settings().items():
        verdicts = [Counter(finding.verdict for _, finding in setting.found) for setting in found]
        counts = [
            ", ".join(str(of[verdict]) for verdict in ("yes", "no", "cannot tell"))
            for of in verdicts
        ]
        told = "; ".join(
            f"{setting.name}: {count}" for setting, count in zip(found, counts, strict=True)
        )
        rows.append((f"`{name}`", STUDIES[name].paper, STUDIES[name].title, told))
    return _table(("study", "paper", "what it shows", "statements: yes, no, cannot tell"), rows)


def study_pages() -> Iterator[tuple[str, str]]:
    """The pages of the studies for the website, by their names."""
    for name, found in settings().items():
        yield name, page(name, found)


def study_figures() -> Iterator[tuple[str, Figure]]:
    """Their figures, by the names of their files."""
    for found in settings().values():
        for setting in found:
            yield figure_name(setting, found), draw(setting)


def main() -> None:
    """Write what has changed."""
    for file, text in pages().items():
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            write_whole(file, text)
            print(file.relative_to(ROOT))


if __name__ == "__main__":
    main()
