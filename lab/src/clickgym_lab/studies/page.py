"""The page of a study in Markdown."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Sequence

from clickgym.core.formats import markdown_table, markdown_text

from .claims import NotTestedError
from .study import Measured

QUERIES = {
    "": "shipped queries",
    "yandex60": "published queries",
    "kdd": "queries of the KDD Cup",
    "letor": "kinds of users",
    "movielens": "sets of film ratings",
}
"""The kind of the queries of a label."""
SINGLE = {"kinds of users": "one kind of users", "sets of film ratings": "one set of film ratings"}
REAL = re.compile(r"(li2019-switching:query=)?yandex-")
"""The name of an instance of a shipped query, or of one whose users change."""
HOW = """\
A ± is half of the 95 % interval of a mean, by Student's t. The mean is over the queries, each \
averaged over its runs. If there is only one query, the mean is over its runs. A *difference* is \
ours less the paper's, and a ± of the paper counts as its standard error. A *gap* is what the test \
compares with 0.

A statement is *reproduced* if the interval lies on the side that the test says. It is *not \
reproduced on these queries* if the interval lies on the other side. Otherwise it is *undecided*. \
We correct the verdicts for the number of statements (Holm's procedure at 5 %). No verdict says \
that a paper is wrong.

If there are several sets of queries, the largest decides. A run shorter than the paper's can \
support a statement about the end of the horizon, but not contradict it. Some papers do not say \
what a cascade algorithm learns from several clicks. Then a statement is *reproduced* if it holds \
in both readings, last_click and first_click. It is *not reproduced* if it fails in both. The page \
*Studies* of the documentation has all rules."""
VERSION = "The paper may have played another version. Ours can support this, but not contradict it."


def page(measured: Sequence[Measured], is_shipped: bool = False) -> str:
    """The page of a study.

    Args:
        measured: on one set of queries or on several, the largest first.
        is_shipped: whether it stands in the repository, which has no pictures.
    """
    best, study = measured[0], measured[0].study
    lines = [f"# {study.name}: {study.title}", "", f"{study.paper}.", ""]
    if study.numbers:
        lines += ["## The paper's numbers beside ours", "", *_numbers(measured), ""]
    lines += ["## Figure", ""]
    if is_shipped:
        draw = f"clickgym study {study.name} --from lab/results --out figures"
        lines += ["The website shows the figure. This command draws it, and makes this page:", ""]
        lines += [f"    {draw}", ""]
    else:
        lines += [f"![{study.title}, {_queries(one)}]({one.name}.png)\n" for one in measured]
    if study.table is not None:
        for one in measured:
            title, cells = study.table(one.results)
            lines += [f"{title} ({_queries(one)}):", "", *markdown_table(cells), ""]
    if study.statements:
        on = f"Tested on {_queries(best)}."
        lines += ["## What the paper says", "", on, "", *_statements(best), ""]
    if study.notes:
        heading = "What it is" if study.is_ours else "What differs here"
        lines += [f"## {heading}", "", study.notes, ""]
    if study.seen is not None:
        lines += ["## What we also saw", ""]
        for one in measured:
            lines += [f"On {_queries(one)}:", "", *_bullets(study.seen(one.results)), ""]
    lines += ["## Repeat it", "", *_commands(measured, is_shipped)]
    return "\n".join([*lines, "## How to read this page", "", HOW, ""])


def _queries(one: Measured) -> str:
    """The set of queries in words."""
    names = [name for curves in one.results.values() for name in curves.instances]
    if one.label or any(map(REAL.match, names)):
        what = QUERIES.get(one.label, f"queries ({one.label})")
    else:
        what = "kinds of users"
    if one.n_queries > 1:
        return f"{one.n_queries} {what}"
    return SINGLE.get(what, f"single {what}")


def _bullets(sentences: Iterable[str]) -> Iterator[str]:
    """The sentences about what the results have."""
    with contextlib.suppress(NotTestedError):
        for sentence in sentences:
            yield f"- {sentence}"


def _numbers(measured: Sequence[Measured]) -> list[str]:
    best, *others = measured
    header = ["number", "the paper", f"ours, {_queries(best)}", "difference"]
    rows = [[*header, *(f"ours, {_queries(one)}" for one in others)]]
    for number in best.study.numbers:
        ours = number.ours(best.results)
        cells = ["–", "–"] if ours is None else [str(ours), number.difference(ours)]
        found = [number.ours(one.results) for one in others]
        beside = ["–" if one is None else str(one) for one in found]
        rows.append([markdown_text(number.what), number.printed, *cells, *beside])
    return markdown_table(rows)


def _statements(best: Measured) -> list[str]:
    rows = [["the paper's words", "where", "our test", "measured", "verdict"]]
    for statement, measured, verdict in best.judged:
        rule = f"{statement.rule} {VERSION}" if statement.is_other_version else statement.rule
        words = [f"“{statement.quote}”", statement.place, rule, measured]
        rows.append([*map(markdown_text, words), f"**{verdict}**"])
    return markdown_table(rows)


def _commands(measured: Sequence[Measured], is_shipped: bool) -> Iterator[str]:
    """The commands, and what they played."""
    if is_shipped:
        yield "With the current version these commands play the experiment again:\n"
    for one in measured:
        yield f"    {without_numbers(one.command)}\n"
    rows = [["queries", "part", "agents", "runs", "sessions", "version (commit)"]]
    for one in measured:
        for name, curves in one.results.items():
            made = one.made[name]
            agents = ", ".join(markdown_text(agent) for agent in curves.agents)
            counts = [str(curves.n_runs), f"{curves.horizon:,}"]
            version = f"{made['clickgym']} ({made['commit']})"
            queries = f"{len(curves.instances)} {one.label}".strip()
            rows.append([queries, f"`{name}`", agents, *counts, version])
    yield from markdown_table(rows)
    yield ""


def without_numbers(command: str) -> str:
    """A command with a pattern in place of files whose names differ in a number only.

    Example:
        >>> without_numbers("study x --instances q/a-1.json q/a-23.json --scale 1")
        'study x --instances q/a-*.json --scale 1'
    """
    return re.sub(r"(\S+-)\d+\.json(?: \1\d+\.json)+", r"\1*.json", command)
