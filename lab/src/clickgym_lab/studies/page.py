"""The page of a study in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from clickgym.core.formats import markdown_table, markdown_text

from .study import Measured

HOW = (
    "Intervals are 95 % intervals of a mean by Student's t. Those over queries (each averaged over "
    "its runs) hold for other queries of the kind, too; those over runs (each averaged over its "
    "queries) hold for these queries only. A statement is supported (yes) if the interval lies on "
    "the side that its rule says, contradicted (no) if it lies on the other, and else undecided. "
    "Verdicts are corrected for the number of statements (Holm's procedure at 5 %); what is "
    "decided only without this correction stands in brackets. A run shorter than the paper's can "
    "support a statement about the end of the horizon, but not contradict it."
)

FIGURE = "The figure: on the website, or by `clickgym study {} --from lab/results --out figures`."


def page(measured: Sequence[Measured], is_shipped: bool = False) -> str:
    """The page of a study: what was found, beside the paper, first of all.

    Args:
        measured: on one set of queries or on several.
        is_shipped: whether it stands in the repository, which has no pictures.
    """
    study = measured[0].study
    lines = [f"# {study.name}: {study.title}", "", f"{study.paper}.", ""]
    for result in measured:
        lines += _statements(result, is_shipped)
    if study.notes:
        heading = "What it is" if study.is_ours else "How it differs from the paper"
        lines += [f"## {heading}", "", study.notes, ""]
    lines += ["## What was run", ""]
    for result in measured:
        lines += [*_runs(result), ""]
    return "\n".join([*lines, "## How statements are judged", "", HOW, ""])


def _statements(result: Measured, is_shipped: bool) -> list[str]:
    study, reported = result.study, any(row.claim.paper for row in result.judged)
    header = ["statement", *["the paper"] * reported, "ours", "supported"]
    rows = []
    for row in result.judged:
        text = f"{markdown_text(row.claim.text)} *({markdown_text(row.claim.rule)})*"
        paper = [markdown_text(row.claim.paper)] * reported
        rows.append([text, *paper, markdown_text(row.measured), row.words])
    where = f", on the {result.label} queries" if result.label else ""
    heading = "What was found" if study.is_ours else "Ours beside the paper"
    lines = [f"## {heading}{where}", ""]
    picture = f"![{study.title}{where}]({result.name}.png)"
    lines += [FIGURE.format(study.name) if is_shipped else picture, ""]
    lines += [*markdown_table([header, *rows]), "", f"    {result.command}", ""]
    if result.replayed:
        words = "one run of each agent over the first tenth was played again, and is equal"
        lines += [f"Replayed by version {result.replayed}: {words}.", ""]
    if study.table is not None:
        title, cells = study.table(result.results)
        lines += [f"{title}:", "", *markdown_table(cells), ""]
    return lines


def _runs(result: Measured) -> list[str]:
    lines = []
    for name, curves in result.results.items():
        names = result.made[name]["instances"]
        runs = f"{curves.n_runs} runs of {curves.horizon:,} sessions"
        instances = ", ".join(markdown_text(instance) for instance in names)
        envs = ", ".join(dict.fromkeys(curves.table["env"]))
        agents = ", ".join(curves.agents)
        lines.append(f"- `{name}`: {envs}; {agents}; {runs} on {len(names)} instances: {instances}")
    return lines
