"""The table of final results, as plain text and in LaTeX."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import polars
from polars import col
from rich.console import Console

from ...core.checks import outside_unit_interval
from ...core.text import duration_text, one_line, regret_text, shorten
from ...measure.metrics import is_sum
from ..console import Column, print_table, print_text
from ..fingerprint import warnings_of_same_users
from ..make.agents import requirements, resolve_agent
from ..sweep_folder import LABEL_COLUMNS
from .summaries import (
    HAS_OTHER_USERS,
    IS_OWN,
    OWN_USERS,
    count_runs,
    describe_units,
    metrics_of,
    remarks,
    share_no_instance,
    split_instances,
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
) -> None:
    """Print the table of final results.

    Args:
        console: the console on which the table is printed.
        results: the results to show in the table.
        reference: the agent with which the other agents are compared; by default, the same agent as
            in `Results.table`.
        by_instance: whether each instance of an environment has its own rows; by default, a row
            shows the average over all instances, unless two agents have no instance in common.
    """
    must_split = share_no_instance(results.rows)
    shown = by_instances(results) if by_instance or must_split else results
    table = format_table(shown, reference)
    columns = [Column(name, align_right=name != "agent") for name in table.headings]
    print_text(console, table.title, "bold")
    console.print()
    for env_title, rows in table.environments.items():
        print_table(console, columns, rows, title=env_title)
        console.print()
    if must_split:
        print_text(console, "Rows are by instance, because two agents have no instance in common.")
    for note in table.notes:
        print_text(console, note)
    if missing := results.missing_runs:
        of_agents = ", ".join(f"{shorten(agent)} {n:,}" for agent, n in sorted(missing.items()))
        cure = "To resume, run the command that began them again."
        print_text(console, f"Runs not finished: {sum(missing.values()):,} ({of_agents}). {cure}")
    console.print()


def format_table(
    results: Results,
    reference: str | None = None,
    *,
    in_paper: bool = False,
    names: Mapping[str, str] | None = None,
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

    Raises:
        ValueError: two agents, environments or instances would have the same name.
    """
    knowledge = [*notes_on_knowledge(results, names or {})]
    time = [] if in_paper else ["time"]
    table, metrics = results.table(reference), metrics_of(results.rows)
    last = with_units(results.rows.filter(step=results.horizon))
    over = describe_units(count_runs(last, ["env", "agent"]))
    mixed = last.filter(over="families")
    if names:  # the names of instances say which family they are from, so they are changed last
        results = _renamed(results, names)
        table = table.with_columns(col("env", "agent", "reference").replace(names))
    measure = measure_of(table)
    is_single = len(results.rows.select("instance", "sweep_seed", "run").unique()) == 1
    optional = {
        heading: text
        for heading, text in OPTIONAL_COLUMNS.items()
        if any(map(text, table.iter_rows(named=True)))
        and (not is_single or heading == "difference")
    }
    env_titles, environments = _env_titles(results), dict[str, list[list[str]]]()
    for row in table.to_dicts():
        is_measured = row["regret"] is not None or row["reward"] is not None
        total = regret_text(*regret_of_row(row, results.horizon)) if is_measured else "–"
        texts = [row["agent"], total]
        texts += [text(row) or "–" for text in optional.values()]
        texts += [_mean_text(row["reward"])]
        texts += [_mean_text(row[name], row[f"{name}_ci95"]) for name in metrics]
        texts += [duration_text(row["ns_per_session"])] * len(time)
        environments.setdefault(env_titles[row["env"]], []).append(texts)
    shares = {name for config in results.configs for name in config.shares}
    notes = [*notes_on_means(table, metrics, time, names or {})]
    notes += notes_on_shares(table, shares.intersection(metrics), names or {})
    notes += notes_on_pairs(table)
    notes += notes_on_instances(results, mixed, names or {}, in_paper=in_paper)
    notes += [*notes_on_users(results, table), *knowledge]
    instances = results.names("instance")
    is_named = len(instances) == 1 and instances[0] != OWN_USERS
    instance_text = f", {shorten(instances[0])}" if is_named else ""
    if table["reward_ci95"].count():
        over = f"mean ± 95 % interval over {over}"
    elif len(mixed):
        over = f"mean over {over}"
    title = f"{measure.capitalize()} after {results.horizon:,} sessions{instance_text} ({over})"
    headings = ["agent", measure, *optional, "reward", *metrics, *time]
    return FormattedTable(title, headings, environments, notes)


def _renamed(results: Results, names: Mapping[str, str]) -> Results:
    """Return the same results with other names for agents, environments and instances."""
    for column in LABEL_COLUMNS:
        new = [names.get(name, name) for name in results.names(column)]
        if twice := [name for name in new if new.count(name) > 1]:
            raise ValueError(f"names has {twice[0]!r} for two names in the column {column}")
    rows = results.rows.with_columns(col(*LABEL_COLUMNS).replace(names))
    return type(results).of_rows(rows, [config.renamed(names) for config in results.configs])


def by_instances(results: Results) -> Results:
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


def measure_of(table: polars.DataFrame) -> str:
    """Return the measure by which a table ranks agents, in words: "regret", "total reward" if the
    regret is unknown, or both if the regret is known in some environments only.
    """
    n_known, n_rows = table["regret"].count(), len(table)
    return " or ".join(["regret"] * (n_known > 0) + ["total reward"] * (n_known < n_rows))


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


def _half_width_text(row: Row) -> str:
    half = row["regret_ci95_runs"]
    return "" if half is None else regret_text(0.0, half).partition(" ")[2]


def _difference_text(row: Row) -> str:
    difference, half = row["difference"], row["difference_ci95"]
    if difference is None:
        return ""
    sign = "+" if difference > 0 else ""
    return sign + regret_text(difference, half)


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


OPTIONAL_COLUMNS: dict[str, Callable[[Row], str]] = {
    "± these": _half_width_text,
    "difference": _difference_text,
    "p": _p_text,
    "worst": partial(_number_text, "worst"),
    "median": partial(_number_text, "median"),
}
"""The columns that are left out if they are empty in all rows. Each function formats the cell that
a row has in the column.
"""


def notes_on_means(
    table: polars.DataFrame, metrics: Sequence[str], time: Sequence[str], names: Mapping[str, str]
) -> Iterator[str]:
    """Yield notes on the columns: which are per session, and what was not measured."""
    summed = [names.get(name, name) for name in filter(is_sum, metrics)]
    *averaged, last_one = [names.get("reward", "Reward"), *summed, *time]
    subject = f"{', '.join(averaged)} and {last_one} are" if averaged else f"{last_one} is"
    yield f"{subject} per session{', and time is wall time' * len(time)}."
    missing = table.filter(polars.any_horizontal(col("reward", *metrics).is_null()))
    if len(missing.filter(IS_OWN)):
        yield (
            "– means not measured, because your own loop measures no additional metrics, and no "
            "reward that a wrapper changed."
        )
    if len(missing.filter(~IS_OWN)):
        yield "– means that the metric was nan in some session."
    unknown_envs = table.filter(col("regret").is_null())["env"].unique(maintain_order=True)
    if len(unknown_envs):
        unknown_text = f"Regret is unknown in {', '.join(map(shorten, unknown_envs))}"
        yield (
            f"{unknown_text}, because info has no regret for this reward. A higher total reward "
            "is better."
        )


def notes_on_shares(
    table: polars.DataFrame, shares: Iterable[str], names: Mapping[str, str]
) -> Iterator[str]:
    """Yield a note on each metric that is declared a share, but whose mean is no share."""
    for name in sorted(shares):
        wrong = outside_unit_interval(table[name].drop_nulls().to_numpy())
        if len(wrong):
            yield (
                f"The mean of {names.get(name, name)} is {wrong[0]:.4g}, although is_share=True "
                "says that it is always between 0 and 1; leave out is_share."
            )


def notes_on_instances(
    results: Results, mixed: polars.DataFrame, names: Mapping[str, str], *, in_paper: bool
) -> Iterator[str]:
    """Yield notes on instances that do not stand for one kind of users: the rows ``mixed``, whose
    instances come from several families, two groups of users of one world, and the same users
    under two labels.
    """
    if len(mixed):
        envs = _join_names(
            [names.get(env, env) for env in mixed["env"].unique(maintain_order=True)]
        )
        families = _join_names(sorted({name.partition(":")[0] for name in mixed["instance"]}))
        yield (
            f"In {envs}, means are over different families ({families}), which do not stand for "
            "one kind of users, so they have no ± and no p."
        )
        if not in_paper:
            yield (
                "For a table of one family: clickgym report DIR --instances, or "
                "select(instances=...); by instance: --by-instance, or table(by_instance=True)."
            )
    arguments = re.split("[:,]", ",".join(results.names("instance")))
    if {"users=train", "users=test"} <= {*arguments}:
        yield (
            "users=train and users=test are two groups of users of one simulated world, not two "
            "independent instances, so ± is too narrow; show each group in its own table."
        )
    fingerprints = {
        label: fingerprint
        for config in results.configs
        for label, fingerprint in config.instances.items()
    }
    pairs = results.rows.select("env", "instance").unique(maintain_order=True)
    played = pairs.filter(col("instance").is_in([*fingerprints])).group_by("env").agg("instance")
    texts = [
        f"{text}."
        for labels in played["instance"]
        for text in warnings_of_same_users({label: fingerprints[label] for label in labels})
    ]
    yield from dict.fromkeys(texts)


def notes_on_pairs(table: polars.DataFrame) -> Iterator[str]:
    """Yield notes on comparisons: what the intervals cover, which agent is the reference, and which
    test p comes from, or why there is no p.
    """
    over = sorted({*table["over"]})
    if "instances" in over:
        has_these = table["regret_ci95_runs"].count() > 0
        these = " ± these covers more runs on exactly these instances." if has_these else ""
        yield f"± covers other instances like these.{these}"
    elif "runs" in over and table["reward_ci95"].count():
        yield "± covers more runs with these users. It says nothing about other users."
    compared = table.filter(col("difference").is_not_null())
    if len(compared):
        units, reference = " or ".join(over), table["reference"][0]
        measure = measure_of(table)
        better = {"regret": "Positive differences", "total reward": "Negative differences"}.get(
            measure, "Positive differences of regret and negative ones of reward"
        )
        yield (
            f"Differences to {reference} are over the same {units}"
            f"{', with 95 % intervals' * bool(table['difference_ci95'].count())}. {better} favour "
            f"{reference}."
        )
    if table["p"].count():
        yield (
            "p comes from a two-sided paired t test, and is adjusted for the number of agents by "
            "Holm's procedure. The intervals of differences are not adjusted."
        )
    few = compared.filter(col("units") <= 2, col("over") != "families")
    for over in sorted({*few["over"]}):
        yield f"p needs at least three {over}."


def _join_names(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1])] * (len(names) > 1) + [names[-1]])


def notes_on_users(results: Results, table: polars.DataFrame) -> Iterator[str]:
    """Yield notes that name the agents whose users differ from the reference's users: agents that
    trained on their own users, played in your own loop, or played other instances.
    """
    reference = table["reference"][0]
    if results.rows["agent"].n_unique() > 1:
        separate, own_loops = (
            results.rows.filter(kind)["agent"].unique(maintain_order=True).to_list()
            for kind in (HAS_OTHER_USERS, IS_OWN)
        )
        unpaired = {*table.filter(col("difference").is_null())["agent"]} - {reference}
        if separate:
            whose, who_has = ("its", "it has") if len(separate) == 1 else ("their", "they have")
            hence = f", so {who_has} no difference" if unpaired.intersection(separate) else ""
            yield f"{_join_names(separate)} had {whose} own users, not those of the others{hence}."
        if own_loops:
            yield (
                f"{_join_names(own_loops)}: no differences, because only runs of clickgym.run and "
                "sweep are known to have the same users."
            )
        if reference in (*separate, *own_loops) and not table["difference"].count():
            yield f"No agent had the same users as {reference}, so there are no differences."
    instances = results.rows.group_by("env", "agent", maintain_order=True).agg(
        col("instance").unique().sort()
    )
    of_reference = instances.filter(agent=reference).select("env", of_reference="instance")
    different = instances.join(of_reference, on="env", maintain_order="left")
    different = different.filter(col("instance") != col("of_reference"))
    if len(different):
        who = _join_names(different["agent"].unique(maintain_order=True).to_list())
        yield (
            f"{who} did not play the same instances as {reference}, so do not compare their means; "
            "differences are over the instances that both played."
        )


SOURCE_TEXTS = {
    "examination": "how often each position is looked at",
    "browsing": "how often each position is looked at, given the last click above it",
    "termination_order": "which positions end a session most often",
    "initial_ranking": "the production list",
    "optimal_ranking": "the best list",
    "mean_sessions": "how long users stay",
    "click_rewards": "what a click is worth",
}
"""What an agent may be told about the users, by the source that `Agent.requires` names."""


def notes_on_knowledge(results: Results, names: Mapping[str, str]) -> Iterator[str]:
    """Yield notes on what agents were told in addition to clicks, which agents explore as much as
    their theory prescribes, which settings are better than the defaults, what agents had learned
    before these runs, and what was not recorded. What an agent was told is unknown if its class
    cannot be imported. ``names`` maps labels to the names to show.
    """
    sentences, advice = [], dict[str, None]()
    by_theory: dict[str, list[str]] = {}  # labels of agents, by their `Agent.theory_argument`
    for label in results.names("agent"):
        maker: Any = None
        arguments: Mapping[str, Any] = {}
        with suppress(Exception):  # a user's module may be missing, or fail
            maker, arguments = resolve_agent(results.spec("agent", label))
        argument = getattr(maker, "theory_argument", None)
        if argument and arguments.get(argument) is None:
            by_theory.setdefault(argument, []).append(names.get(label, label))
        # not inherited, because a subclass may have other defaults
        if not arguments and (text := getattr(maker, "__dict__", {}).get("default_advice")):
            advice[text] = None
        if sources := [SOURCE_TEXTS.get(source, source) for source in requirements(maker).values()]:
            sentences.append(f"{names.get(label, label)} was told {' and '.join(sources)}")
    if sentences:
        yield f"Besides clicks, {'; '.join(sentences)}."
    for argument, labels in by_theory.items():
        who = f"{_join_names(labels)} {'explores' if len(labels) == 1 else 'explore'}"
        yield (
            f"{who} as much as theory prescribes, which is often far too much; see the argument "
            f"{argument}."
        )
    yield from advice
    for agent, texts in remarks(results.rows).items():
        yield f"{names.get(agent, agent)}: {'; '.join(texts)}."


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
    label: str = "tab:regret",
) -> str:
    """Return the table of final results as LaTeX code, without the column for the time; the
    arguments are those of `Results.to_latex`.
    """
    names = dict(names or {})
    table = format_table(results, reference, in_paper=True, names=names)
    n_columns, lines = len(table.headings), []
    for env, rows in table.environments.items():
        lines += [r"\midrule", rf"\multicolumn{{{n_columns}}}{{l}}{{{escape_latex(env)}}} \\"]
        for agent, *texts in rows:
            lines.append(rf"{' & '.join([escape_latex(agent), *map(_mathematics, texts)])} \\")
    headings = [_text_of(names.get(name, name)) for name in table.headings]
    if caption is None:
        caption = _text_of(f"{table.title}. {' '.join(table.notes)}")
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{caption}}}",
            rf"\label{{{label}}}",
            rf"\begin{{tabular}}{{l{'r' * (n_columns - 1)}}} % \usepackage{{booktabs}}",
            r"\toprule",
            rf"{' & '.join(headings)} \\",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
    )


def _text_of(text: str) -> str:
    return escape_latex(text).replace("±", r"$\pm$")


def _mathematics(text: str) -> str:
    """Return a number and its interval in LaTeX math mode."""
    number = text.replace(",", "{,}").replace("±", r"\pm")
    return "--" if text == "–" else f"${number}$"
