"""The final table of a report, in words."""

from __future__ import annotations

from polars import col
from rich.console import Console

from ...core.formats import duration, regret_text
from ...core.terminal import Column, print_table, say
from ..results import Results
from ..summaries import NOT_SUMMED, final_table, metrics_of, without_regret


def print_results(console: Console, results: Results, per_instance: bool = False) -> None:
    """Print the final table of some results."""
    headings, rows = final_cells(results, per_instance)
    first = headings.index("reward / session")  # what stands before it always stays
    columns = [
        Column(name, rank=max(0, i - first + 1), right=i >= first - 1 and name != "engine")
        for i, name in enumerate(headings)
    ]
    print_table(console, columns, rows, title=heading(results, per_instance), groups=True)
    if note := note_of(results):
        say(console, note)
    console.print()


def heading(results: Results, per_instance: bool = False) -> str:
    """The heading of the final table: horizon, instances and runs."""
    by_pair = results.frame.group_by("env", "instance", "agent").agg(col("run").n_unique())
    counts = by_pair["run"].to_numpy()
    runs = " to ".join(map(str, sorted({counts.min(), counts.max()})))
    places = results.frame.select("env", "instance").unique()
    most = places["env"].value_counts()["count"].to_numpy().max()
    instances = results.names("instance")
    where = f", {instances[0]}" if len(instances) == 1 else ""
    if most != 1 and not per_instance:
        where = f", mean over {most} instances"
    delay = results.config.get("delay")
    where += f", delay {delay}" if delay else ""
    interval = "one run" if runs == "1" else f"mean ± 95 % interval over {runs} runs"
    measure = measure_of(results).capitalize()
    return f"{measure} after {results.horizon:,} sessions{where} ({interval})"


def note_of(results: Results) -> str:
    """The sentence below a table where regret is unknown; empty if it is known."""
    names = ", ".join(without_regret(results.frame))
    return f"Regret is unknown in {names}; a higher total reward is better." if names else ""


def measure_of(results: Results) -> str:
    """What the final table shows: regret, reward where it is unknown, or both."""
    unknown = without_regret(results.frame)
    known = set(results.frame["env"]) - set(unknown)
    return " or ".join(["regret"] * bool(known) + ["total reward"] * bool(unknown))


def final_cells(results: Results, per_instance: bool = False) -> tuple[list[str], list[list[str]]]:
    """The final table in words.

    Args:
        results, per_instance: as in `write_report`.

    Returns:
        The headings, those of most importance first; and the cells of each row.
    """
    by = ["env", "instance"] if per_instance else ["env"]
    table, horizon = final_table(results.frame, results.timings, by), results.horizon
    metrics = metrics_of(results.frame)
    headings = ["environment", *by[1:], "agent", measure_of(results), "reward / session"]
    headings += [name if name in NOT_SUMMED else f"{name} / session" for name in metrics]
    rows = []
    for row in table.iter_rows(named=True):
        if row["regret"] is None:
            interval = row["reward_ci95"] and row["reward_ci95"] * horizon
            amount = regret_text(row["reward"] * horizon, interval)
        else:
            amount = regret_text(row["regret"], row["regret_ci95"])
        reward = "–" if row["reward"] is None else f"{row['reward']:.4f}"
        cells = [*(row[name] for name in by), row["agent"], amount, reward]
        cells += ["–" if row[name] is None else f"{row[name]:.4f}" for name in metrics]
        nanoseconds = row["ns_per_session"]
        cells += ["–" if nanoseconds is None else duration(nanoseconds), row["engine"] or "–"]
        rows.append(cells)
    return [*headings, "time / session", "engine"], rows
