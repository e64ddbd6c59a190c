"""The table of final results, as plain text and in LaTeX."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from polars import col
from rich.console import Console

from ...core.checks import check_choice, check_labels
from ...core.text import duration_text, one_line, regret_text, shorten
from ..console import Column, print_table, print_text
from ..results_folder import LABEL_COLUMNS
from .notes import (
    notes_on_instances,
    notes_on_knowledge,
    notes_on_means,
    notes_on_pairs,
    notes_on_shares,
    notes_on_users,
)
from .summaries import (
    OWN_USERS,
    count_runs,
    describe_units,
    metrics_of,
    share_no_instance,
    split_instances,
    total_of,
    with_units,
)

if TYPE_CHECKING:
    from ..results import Results

Row = Mapping[str, Any]
"""A row of `Results.table`: the values by column."""


class FormattedTable(NamedTuple):
    """The table of final results, formatted as text.

    Attributes:
        title: a line with the measure, the horizon, and the instances and runs that are averaged.
        headings: the headings of the columns, the heading of the agents first.
        environments: the rows of each environment, by the environment's title.
        notes: sentences to print below the table, for example about unknown regret and what agents
            were told in addition to clicks.
    """

    title: str
    headings: list[str]
    environments: dict[str, list[list[str]]]
    notes: list[str]


def print_results(
    console: Console,
    results: Results,
    reference: str | None = None,
    *,
    by_instance: bool = False,
    measure: str = "regret",
    columns: Sequence[str] | None = None,
) -> None:
    """Print the table of final results.

    Args:
        console: the console on which the table is printed.
        results: the results to show in the table.
        reference: the agent with which the other agents are compared; by default, the same agent as
            in `Results.table`.
        by_instance: whether each instance of an environment has its own rows; by default, a row
            shows the average over all instances, unless two agents have no instance in common.
        measure: what the table compares, as in `Results.table`.
        columns: the headings of the columns to show, in their order; by default, all columns.
    """
    must_split = share_no_instance(results.rows)
    shown = results_by_instance(results) if by_instance or must_split else results
    table = format_table(shown, reference, measure=measure, columns=columns)
    headings = [Column(name, align_right=name != "agent") for name in table.headings]
    print_text(console, table.title, "bold")
    console.print()
    for env_title, rows in table.environments.items():
        print_table(console, headings, rows, title=env_title)
        console.print()
    if must_split:
        print_text(console, "Rows are by instance, because two agents have no instance in common.")
    for note in table.notes:
        print_text(console, note)
    if missing := results.missing_runs:
        of_agents = ", ".join(f"{shorten(agent)} {n:,}" for agent, n in sorted(missing.items()))
        cure = "To resume, run the command that began them again, or choose other --agents."
        print_text(console, f"Runs not finished: {sum(missing.values()):,} ({of_agents}). {cure}")
    console.print()


def format_table(
    results: Results,
    reference: str | None = None,
    *,
    in_paper: bool = False,
    names: Mapping[str, str] | None = None,
    measure: str = "regret",
    columns: Sequence[str] | None = None,
) -> FormattedTable:
    """Format the table of final results as text.

    Args:
        results: the results to show in the table.
        reference: the agent with which the other agents are compared; by default, the same agent as
            in `Results.table`.
        in_paper: whether the table is for a paper, without a column for the wall time and without
            advice; False by default.
        names: a mapping from the names of agents, environments and instances to the names to show;
            by default, all names are shown as they are.
        measure: what the table compares, as in `Results.table`; it has the first column of numbers.
        columns: the headings of the columns to show, in their order; by default, all columns.

    Raises:
        ValueError: two agents, environments or instances would have the same name; or a column is
            unknown.
    """
    knowledge = [*notes_on_knowledge(results, names or {})]
    table, metrics = results.table(reference, measure=measure), metrics_of(results.rows)
    last = with_units(results.rows.filter(step=results.horizon))
    over = describe_units(count_runs(last, ["env", "agent"]))
    mixed = last.filter(over="families")
    if names:  # the names of instances say which family they are from, so they are changed last
        results = _renamed(results, names)
        table = table.with_columns(col("env", "agent", "reference").replace(names))
    total, is_total = total_of(table), measure == "regret"
    is_single = len(results.rows.select("instance", "sweep_seed", "run").unique()) == 1
    optional = {
        heading: text
        for heading, text in _optional_columns(measure).items()
        if any(map(text, table.iter_rows(named=True)))
        and (not is_single or heading == "difference")
    }
    means: dict[str, Callable[[Row], str]] = {
        total: partial(_total_text, results.horizon),
        "reward": lambda row: _mean_text(row["reward"]),
        **{name: partial(_interval_text, name) for name in metrics},
    }
    compared = total if is_total else measure
    texts_of = {compared: means[total] if is_total else partial(_interval_text, measure)}
    texts_of |= optional | {name: text for name, text in means.items() if name != compared}
    if not in_paper:
        texts_of.setdefault("time", lambda row: duration_text(row["ns_per_session"]))
    if columns is not None:
        shown = check_labels("columns", columns)
        texts_of = {name: texts_of[check_choice("column", name, texts_of)] for name in shown}
    env_titles, environments = _env_titles(results), dict[str, list[list[str]]]()
    for row in table.to_dicts():
        texts = [row["agent"], *(text(row) or "–" for text in texts_of.values())]
        environments.setdefault(env_titles[row["env"]], []).append(texts)
    shares = {name for config in results.configs for name in config.shares}
    is_loss = results.less_is_better(measure)
    notes = [*notes_on_means(table, ["reward", *metrics], [*texts_of], names or {})]
    notes += notes_on_shares(table, shares.intersection(metrics), names or {})
    notes += notes_on_pairs(table, measure, [*texts_of], names or {}, is_loss=is_loss)
    notes += notes_on_instances(results, mixed, names or {}, in_paper=in_paper)
    notes += [*notes_on_users(results, table, in_paper=in_paper), *knowledge]
    instances = results.names("instance")
    is_named = len(instances) == 1 and instances[0] != OWN_USERS
    instance_text = f", {shorten(instances[0])}" if is_named else ""
    if table["reward_ci95"].count():
        over = f"mean ± 95 % interval over {over}"
    elif len(mixed):
        over = f"mean over {over}"
    subject = total.capitalize() if is_total else (names or {}).get(measure, measure)
    title = f"{subject} after {results.horizon:,} sessions{instance_text} ({over})"
    return FormattedTable(title, ["agent", *texts_of], environments, notes)


def _renamed(results: Results, names: Mapping[str, str]) -> Results:
    """Return the same results with other names for agents, environments and instances."""
    for column in LABEL_COLUMNS:
        new = [names.get(name, name) for name in results.names(column)]
        if twice := [name for name in new if new.count(name) > 1]:
            raise ValueError(f"names has {twice[0]!r} for two names in the column {column}")
    rows = results.rows.with_columns(col(*LABEL_COLUMNS).replace(names))
    return type(results).of_rows(rows, [config.renamed(names) for config in results.configs])


def results_by_instance(results: Results) -> Results:
    """Return the same results with each instance of an environment as an environment of its own."""
    configs = []
    for config in results.configs:
        cells = [cell._replace(env=f"{cell.env}, {cell.instance}") for cell in config.cells]
        configs.append(replace(config, cells=cells))
    return type(results).of_rows(split_instances(results.rows), configs)


def _env_titles(results: Results) -> dict[str, str]:
    """Return the title of each environment in the table. The title includes the instance if each
    environment has only one instance, but not all environments have the same one.
    """
    pairs = results.rows.select("env", "instance").unique(maintain_order=True)
    titles = {env: shorten(env) for env in results.names("env")}
    if pairs["instance"].n_unique() > 1 and pairs["env"].is_unique().all():
        for env, instance in pairs.iter_rows():
            if instance not in env and instance != OWN_USERS:
                titles[env] += f", {shorten(instance)}"
    return titles


def regret_of_row(row: Row, horizon: int) -> tuple[float, float | None]:
    """Return the regret in a row of the table and the half-width of its interval. If the regret is
    unknown, return the total reward and the half-width of the total reward's interval instead.
    """
    if row["regret"] is not None:
        return row["regret"], row["regret_ci95"]
    half = row["reward_ci95"]
    return row["reward"] * horizon, None if half is None else half * horizon


def _mean_text(mean: float | None, half: float | None = None) -> str:
    """Format a mean per session, and the half-width of its interval if it is given."""
    if mean is None:
        return "–"
    return f"{mean:.4f}" if half is None else regret_text(mean, half)


def _interval_text(measure: str, row: Row) -> str:
    return _mean_text(row[measure], row[f"{measure}_ci95"])


def _total_text(horizon: int, row: Row) -> str:
    is_measured = row["regret"] is not None or row["reward"] is not None
    return regret_text(*regret_of_row(row, horizon)) if is_measured else "–"


def _half_width_text(measure: str, row: Row) -> str:
    half = row[f"{measure}_ci95_runs"]
    return "" if half is None else regret_text(0.0, half).partition(" ")[2]


def _difference_text(text: Callable[..., str], row: Row) -> str:
    difference = row["difference"]
    if difference is None:
        return ""
    return "+" * (difference > 0) + text(difference, row["difference_ci95"])


def _p_text(row: Row) -> str:
    p = row["p"]
    return "" if p is None else "<0.001" if p < 1e-3 else f"{p:.3f}"


def _number_text(column: str, row: Row) -> str:
    """Format the number in a column of a row with at most two decimal places, and with fewer if the
    number is 10 or larger. Return an empty text for null.
    """
    value = row[column]
    if value is None:
        return ""
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:z,.{digits}f}"


def _mean_number_text(column: str, row: Row) -> str:
    return "" if row[column] is None else _mean_text(row[column])


def _optional_columns(measure: str) -> dict[str, Callable[[Row], str]]:
    """Return the columns that are left out if they are empty in all rows, each with the function
    that formats the cell of a row. Regret is a total; any other measure is a mean per session.
    """
    is_total = measure == "regret"
    number = _number_text if is_total else _mean_number_text
    return {
        "± these": partial(_half_width_text, measure),
        "difference": partial(_difference_text, regret_text if is_total else _mean_text),
        "p": _p_text,
        "worst": partial(number, "worst"),
        "median": partial(number, "median"),
    }


def escape_latex(text: str) -> str:
    """Escape the special characters in a text for LaTeX.

    Example:
        >>> print(escape_latex("mine_2 & 5%"))
        mine\\_2 \\& 5\\%
    """
    words = {"\\": "textbackslash", "~": "textasciitilde", "^": "textasciicircum"}
    words |= {"<": "textless", ">": "textgreater", "|": "textbar"}
    return re.sub(
        r"[\\~^<>|&%$#_{}]",
        lambda match: rf"\{words[match[0]]}{{}}" if match[0] in words else rf"\{match[0]}",
        one_line(text),
    )


def to_latex(
    results: Results,
    reference: str | None = None,
    names: Mapping[str, str] | None = None,
    caption: str | None = None,
    label: str | None = None,
    measure: str = "regret",
    columns: Sequence[str] | None = None,
) -> str:
    """Return the table of final results as LaTeX code, without the column for the time; the
    arguments are those of `Results.to_latex`.
    """
    names = dict(names or {})
    table = format_table(
        results, reference, in_paper=True, names=names, measure=measure, columns=columns
    )
    n_columns = len(table.headings)
    lines = []
    for env, rows in table.environments.items():
        lines += [r"\midrule", rf"\multicolumn{{{n_columns}}}{{l}}{{{escape_latex(env)}}} \\"]
        for agent, *texts in rows:
            cells = [escape_latex(agent), *map(_latex_number, texts)]
            lines.append(rf"{' & '.join(cells)} \\")
    headings = [_latex_text(names.get(name, name)) for name in table.headings]
    if caption is None:
        caption = _latex_text(f"{table.title}. {' '.join(table.notes)}")
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{caption}}}",
            rf"\label{{{label or f'tab:{measure}'}}}",
            rf"\begin{{tabular}}{{l{'r' * (n_columns - 1)}}} % \usepackage{{booktabs}}",
            r"\toprule",
            rf"{' & '.join(headings)} \\",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
    )


def _latex_text(text: str) -> str:
    return escape_latex(text).replace("±", r"$\pm$")


def _latex_number(text: str) -> str:
    """Return a number and its interval in LaTeX math mode."""
    number = text.replace(",", "{,}").replace("±", r"\pm")
    return "--" if text == "–" else f"${number}$"
