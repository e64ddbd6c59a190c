"""Report of a sweep: its table printed, table, figure and page written beside its results."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console

from ...core.files import make_folder, sealed, write_whole
from ...core.formats import to_csv
from ...core.terminal import say
from ..results import TABLE, Results
from ..summaries import final_table
from .figures import save_figure
from .page import to_html
from .table import print_results

SUMMARY, PAGE = "summary.csv", "report.html"


def write_files(out: Path) -> None:
    """Write the tables and the figure of all finished runs of a folder, unless they are there
    already.
    """
    results = Results(out)
    content = sealed(results.to_frame())
    if not (out / TABLE).exists() or (out / TABLE).read_bytes() != content:
        _write_summary(out, results)
        figure = results.plot()
        save_figure(figure, out / "regret", config=results.config)
        write_whole(out / TABLE, content)  # the last, so that a stopped process writes all again


def write_report(
    folder: str | os.PathLike[str],
    console: Console,
    *,
    html: bool = False,
    pdf: bool = False,
    agents: Iterable[str] | None = None,
    environments: Iterable[str] | None = None,
    per_instance: bool = False,
    log: bool = True,
    out: str | os.PathLike[str] | None = None,
) -> None:
    """Print the table of a sweep, finished or not, and write its figure and tables again.

    Args:
        folder: the ``out`` of the sweep.
        console: where to print.
        html: write ``report.html``, too.
        pdf: write ``regret.pdf``, too.
        agents, environments: what to report, in this order; None takes all. A selection is only
            printed, unless ``out`` names a folder for its files.
        per_instance: a table and a panel for each instance, in place of means over them.
        log: the axes of the figure are logarithmic, or linear.
        out: the folder to write into; None takes that of the results.

    Raises:
        ValueError: the folder is not one of results, or has no such agent or environment; a page or
            a PDF of a selection would overwrite that of the whole.
    """
    folder, target = Path(folder), Path(folder if out is None else out)
    selected = (
        agents is not None or environments is not None
    ) and target.resolve() == folder.resolve()
    if selected and (html or pdf or out is not None):
        raise ValueError(
            "the files of a selection would overwrite those of all; name another folder with --out"
        )
    results = Results(folder).select(agents, environments)
    if out is not None:
        make_folder(target)
    print_results(console, results, per_instance)
    if selected:
        say(console, "Nothing is written of a selection; --out DIR names a folder for its files.")
    if selected or not (out or html or pdf or os.access(folder, os.W_OK)):
        return
    _write_summary(target, results)
    figure = results.plot(per_instance=per_instance, log=log)
    files = save_figure(figure, target / "regret", pdf=pdf, config=results.config)
    names = [*(file.name for file in files), SUMMARY, TABLE]
    if html:
        write_whole(target / PAGE, to_html(results, per_instance=per_instance, log=log))
        names.append(PAGE)
    write_whole(target / TABLE, sealed(results.to_frame()))
    say(console, f"Results in {target}: {', '.join(names)}")


def _write_summary(out: Path, results: Results) -> None:
    table = final_table(results.frame, results.timings, ("env", "instance"))
    write_whole(out / SUMMARY, to_csv(table))
