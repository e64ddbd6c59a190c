"""A click log of 10⁷ sessions (10⁸ rows) that is counted, and the user browsing model fitted to its counts; the same counts by
the printed statement in DuckDB; and one query of a log of 10⁶ sessions decided with counts and without.

    python benchmarks/large_counts.py --folder logs --write

The sessions are those of `large_log.py`, in ten files of Parquet, which are made where the folder lacks them. Time is that of
the processors, and memory the peak of each process, with imports.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import polars as pl
import typer
from large_log import POSITIONS, frames
from report import publish, table, taken

SESSIONS, FILES, DECIDED = 10_000_000, 10, 1_000_000
BY_SQL = """
import duckdb, sys
connection = duckdb.connect()
connection.execute("SET memory_limit = '1.2GB'; SET threads = 2; SET temp_directory = '" + sys.argv[2] + "'")
connection.execute(open(sys.argv[1]).read())
"""
BY_POLARS = """
import polars as pl, sys
rows = pl.scan_parquet(sys.argv[1]).select("session", "query", "item", pl.col("position").cast(pl.Int64), "clicked")
bit = pl.col("clicked").cast(pl.Int64) * (2 ** pl.col("position")).cast(pl.Int64)
masks = rows.group_by("session").agg(mask=bit.sum())
above = pl.col("mask") & ((2 ** pl.col("position")).cast(pl.Int64) - 1)
last = pl.when(above > 0).then((above.log(2) + 1e-9).floor()).otherwise(0).cast(pl.Int32)
cells = rows.join(masks, on="session").with_columns(last_click=last).group_by("query", "item", "position", "last_click")
cells.agg(displays=pl.len(), clicks=pl.col("clicked").sum()).sort(pl.all()).sink_parquet(sys.argv[2], engine="streaming")
"""


def write_log(folder: Path, n: int, n_files: int) -> None:
    """The log as files of Parquet."""
    folder.mkdir(parents=True, exist_ok=True)
    parts, done = list[pl.DataFrame](), 0
    for frame in frames(n, 0):
        parts.append(frame.with_columns(pl.col("session", "query", "item").cast(pl.String)))
        done += len(frame) // POSITIONS
        if done % (n // n_files) == 0:
            pl.concat(parts).write_parquet(folder / f"part-{done // (n // n_files):02}.parquet")
            parts = []


def main(
    folder: Path | None = None, sessions: int = SESSIONS, decided: int = DECIDED, others: bool = False, plain: bool = False,
    write: bool = False,
) -> None:  # fmt: skip
    """Count logs of a folder, which are made where it lacks them; with --others also by DuckDB and by streams of Polars, with
    --plain decide without counts, too; with --write into README.md."""
    clickgym = [sys.executable, "-m", "clickgym"]
    with tempfile.TemporaryDirectory() as own:
        large, small = ((folder or Path(own)) / name for name in ("rows", "decided"))
        for log, n, n_files in ((large, sessions, FILES), (small, decided, 1)):
            if not log.exists():
                write_log(log, n, n_files)
        count = [*clickgym, "count", str(large), "--model", "UBM", "--out", f"{own}/counts.parquet"]
        fit = ["--model", "UBM", "--out"]
        steps = {f"count, {10 * sessions:,} rows": count}
        steps["fit UBM to the counts"] = [*clickgym, "fit", f"{own}/counts.parquet", *fit, f"{own}/query.json"]
        if others:
            statement = subprocess.run([*count, "--sql"], check=True, capture_output=True, text=True).stdout
            Path(own, "count.sql").write_text(statement)
            steps["the statement in DuckDB"] = [sys.executable, "-c", BY_SQL, f"{own}/count.sql", own]
            steps["streams of Polars"] = [sys.executable, "-c", BY_POLARS, f"{large}/*.parquet", f"{own}/polars.parquet"]
        rows = [taken(what, words)[0] for what, words in steps.items()]
        rows.append(taken(f"count, {10 * decided:,} rows", [*clickgym, "count", str(small), *fit, f"{own}/one.parquet"])[0])
        decide = [*clickgym, "decide", str(small), "--query", "0", "--out"]
        rows.append(taken("decide --counts", [*decide, f"{own}/by-counts", "--counts", f"{own}/one.parquet"])[0])
        if plain:
            rows.append(taken("decide", [*decide, f"{own}/plain"])[0])
    publish(table(["step", "clock", "processors", "peak memory"], rows))


if __name__ == "__main__":
    typer.run(main)
