"""Pages of a study in HTML and in Markdown: its figure, its statements with verdicts, and the runs
behind them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from clickgym.core.formats import markdown_text, one_line
from clickgym.core.templates import templates
from clickgym.runner.reports import picture

from .registry import STUDIES
from .setting import Setting
from .study import Verdict

HOW = (
    "Intervals are 95 % confidence intervals of a mean by Student’s t. Intervals over queries (each query averaged over its "
    "runs) hold for other queries of the same kind, too. All other intervals are over runs (each run averaged over its "
    "queries) and hold for these queries only. A statement is supported (yes) if the interval lies on the side that the "
    "statement predicts, contradicted (no) if it lies on the other side, and undecided (cannot tell) otherwise. A run that is "
    "shorter than the paper’s horizon can support a statement about the end of the horizon, but not contradict it. The "
    "verdicts are corrected for the number of statements (Holm’s procedure at 5 %). A statement that is decided only without "
    "this correction is undecided; its own verdict stands in brackets (by itself)."
)


def study_html(name: str, settings: Sequence[Setting], figures: Sequence[Figure]) -> str:
    """A page that needs nothing but itself: no network, no script, and no other file.

    Args:
        name: of `STUDIES`.
        settings: as `by_setting` makes them.
        figures: theirs.
    """
    shown = [_shown(setting, figure) for setting, figure in zip(settings, figures, strict=True)]
    page = templates(Path(__file__).parent).get_template("study.html")
    return page.render(name=name, study=STUDIES[name], settings=shown, how=HOW) + "\n"


def page(name: str, settings: Sequence[Setting]) -> str:
    """A study in Markdown: what was run, what was found, the figure.

    Args:
        name: of `STUDIES`.
        settings: as `by_setting` makes them.
    """
    pages = templates(Path(__file__).parent)
    pages.filters |= {"cell": markdown_text, "one_line": one_line}
    return pages.get_template("study.md").render(
        name=name, study=STUDIES[name], settings=settings, figure_name=figure_name
    )


def figure_name(setting: Setting, settings: Sequence[Setting]) -> str:
    """The name of a figure's file, without its kind."""
    return setting.study if len(settings) == 1 else f"{setting.study}-{setting.name}"


def _shown(setting: Setting, figure: Figure) -> dict[str, Any]:
    return {
        "name": setting.name,
        "in_short": _in_short([finding.verdict for _, finding in setting.found]),
        "figure": picture(figure),
        "found": setting.found,
        "reported": any(statement.paper for statement, _ in setting.found),
        "table": setting.table,
        "command": setting.command,
        "parts": [(each.part.name, each.words) for each in setting.plans],
        "queries": list(dict.fromkeys(query for each in setting.plans for query in each.queries)),
        "made": setting.results[0].made,
    }


def _in_short(verdicts: Sequence[Verdict]) -> str:
    """How many statements are supported.

    Example:
        >>> _in_short(["yes", "yes", "no", "cannot tell"])
        '2 of 4 statements are supported, 1 is contradicted, 1 undecided.'
    """
    counts = Counter(verdicts)
    be = {verdict: "is" if count == 1 else "are" for verdict, count in counts.items()}
    words = [f"{counts['yes']} of {len(verdicts)} statements {be.get('yes', 'are')} supported"]
    words += [f"{counts['no']} {be['no']} contradicted"] if counts["no"] else []
    words += [f"{counts['cannot tell']} undecided"] if counts["cannot tell"] else []
    return f"{', '.join(words)}."
