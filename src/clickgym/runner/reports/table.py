"""The final table of a report, in words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import polars
from polars import col
from rich.console import Console

from ...agents import AGENTS
from ...core.formats import duration, regret_text
from ...envs.instances.instance import is_refit
from ..make import agent_maker, requirements
from ..metrics import is_sum
from ..results import Results
from ..summaries import metrics_of, with_loss, without_regret
from ..terminal import Column, print_table, say
from ..warm_start import cautions, learns_from_log, rare_items


class FormattedTable(NamedTuple):
    """The final table as texts.

    Attributes:
        title: the measure, horizon, instances and runs.
        headings: those of most importance first.
        rows: the cells of each row.
        notes: sentences about unknown regret, what agents got beside clicks, the log from which
            they learned, and the instances in which one agent lost less than another.
    """

    title: str
    headings: list[str]
    rows: list[list[str]]
    notes: list[str]


def print_results(console: Console, results: Results) -> None:
    """Print the final table of some results."""
    words = in_words(results)
    columns = [Column("environment"), Column("agent"), Column(words.headings[2], right=True)]
    for rank, name in enumerate(words.headings[3:], 1):
        columns.append(Column(name, rank=rank, right=name != "engine"))
    print_table(console, columns, words.rows, title=words.title, groups=True)
    if words.notes:
        console.print()
    for note in words.notes:
        say(console, note)
    console.print()


def in_words(results: Results) -> FormattedTable:
    """The final table of some results in words."""
    table, horizon = results.table(), results.horizon
    metrics, unknown = metrics_of(results.rows), without_regret(results.rows)
    known = set(table["env"]) - set(unknown)
    instances = instance_of_each(results)
    differ = len(set(instances.values())) > 1
    where = {
        env: f"{env}, {instance}"
        for env, instance in instances.items()
        if differ and instance not in env
    }
    measure = " or ".join(["regret"] * bool(known) + ["total reward"] * bool(unknown))
    per_session = [f"{name} / session" if is_sum(name) else name for name in metrics]
    headings = ["environment", "agent", measure, "reward / session", *per_session]
    rows = []
    for row in table.iter_rows(named=True):
        mean, half = row["regret"], row["regret_ci95"]
        if mean is None:
            mean, half = row["reward"] * horizon, row["reward_ci95"]
            half = half and half * horizon
        place = where.get(row["env"], row["env"])
        cells = [place, row["agent"], regret_text(mean, half), f"{row['reward']:.4f}"]
        cells += ["–" if row[name] is None else f"{row[name]:.4f}" for name in metrics]
        rows.append([*cells, duration(row["ns_per_session"]), row["engine"]])
    names = ", ".join(unknown)
    notes = [f"Regret is unknown in {names}; a higher total reward is better."] if names else []
    notes += [*_given(results), *_comparisons(results), *_about_the_log(results)]
    title = f"{measure.capitalize()} after {horizon:,} sessions{_title_suffix(results, table)}"
    return FormattedTable(title, [*headings, "time / session", "engine"], rows, notes)


def instance_of_each(results: Results) -> dict[str, str]:
    """The instance of each environment; empty if one of them has several."""
    places = results.rows.select("env", "instance").unique()
    return {} if places["env"].is_duplicated().any() else dict(places.iter_rows())


def _title_suffix(results: Results, table: polars.DataFrame) -> str:
    """The instances, the delay and the number of runs, after the horizon in a title."""
    instances, words = results.names("instance"), ""
    if len(instances) == 1:
        words = f", {instances[0]}"
    elif (most := max(table["instances"])) > 1:
        words = f", mean over {most} instances"
    if results.configuration and results.configuration.delay:
        words += f", delay {results.configuration.delay}"
    if results.configuration and results.configuration.start:
        words += f", started from {results.configuration.past_sessions}"
    runs = " to ".join(map(str, sorted({min(table["runs"]), max(table["runs"])})))
    return words + (" (one run)" if runs == "1" else f" (mean ± 95 % interval over {runs} runs)")


def _given(results: Results) -> Iterator[str]:
    """What agents got from the environment beside clicks, as far as their classes are at hand."""
    typed: dict[str, Any] = dict(results.configuration.agents) if results.configuration else {}
    given = []
    for label in results.names("agent"):
        maker: Any = None
        with suppress(Exception):  # a module of others may be gone, or fail
            maker, _ = agent_maker(typed[label])
        names = [name for name in requirements(maker) if name != "ranking"]  # of baselines
        if names:
            given.append(f"{label} got {', '.join(names)}")
    if given:
        yield f"Beside clicks, {'; '.join(given)} from the environment."


def _comparisons(results: Results) -> Iterator[str]:
    """In how many of several instances the agent of the least loss lost less than each other."""
    instances = results.names("instance")
    if len(instances) == 1:
        return
    last = with_loss(results.rows).filter(col("step") == results.horizon)
    for env in results.names("env"):
        means = last.filter(col("env") == env).group_by("agent", "instance").agg(col("loss").mean())
        if means["instance"].n_unique() == 1:
            continue
        best, *others = results.select(environments=[env]).table()["agent"]
        wins = means.pivot("instance", index="agent", values="loss")
        loss = {agent: np.array(values, float) for agent, *values in wins.iter_rows()}
        parts = []
        for other in others:
            both = np.isfinite(loss[best]) & np.isfinite(loss[other])
            parts.append(f"{other} in {(loss[best] < loss[other])[both].sum()} of {both.sum()}")
        if parts:
            yield f"{env}: by instance, {best} lost less than {', '.join(parts)}."
    if all(map(is_refit, instances)):
        yield (
            "The instances are refits of one click model to resampled sessions: they show what so "
            "few sessions leave open, and not whether the click model is right."
        )


def _about_the_log(results: Results) -> Iterator[str]:
    """From what agents learned before session 1, and why it may mislead them."""
    config = results.configuration
    if config is None or not config.start:
        return
    envs, instances = results.names("env"), set(results.names("instance"))
    pasts = [
        past
        for env in envs
        for instance, past in config.start.get(env, {}).items()
        if instance in instances
    ]
    counts = {
        f"{past['sessions']:,} of {past['of']:,} sessions of {past['query']}" for past in pasts
    }
    learned = (
        min(counts) if len(counts) == 1 else f"{config.past_sessions} of {len(counts)} queries"
    )
    names = results.names("agent")
    kinds = {name: AGENTS.get(str(config.agents.get(name)).partition(":")[0]) for name in names}
    if not any(map(learns_from_log, kinds.values())):
        yield f"The log has {learned}; agents that learn nothing do not use it."
        return
    yield f"Before session 1 each agent learned from {learned}; baselines learn nothing."
    if rare := rare_items(pasts):
        rare = rare[0].upper() + rare[1:]
        yield f"{rare}; to agents with prior_skips, what is missing of these displays are skips."
    yield from cautions(pasts, kinds, config.delay is not None)
