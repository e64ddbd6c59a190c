"""A click log of 10⁷ sessions (10⁸ rows) that is counted, and the user browsing model fitted to its counts; the same counts by
the printed statement in DuckDB; and one query of a log of 10⁶ sessions decided with counts and without.

    python benchmarks/large_counts.py --folder logs --write

The sessions are those of `large_log.py`, in ten files of Parquet, which are made where the folder lacks them. Time is that of
the processors, and memory the peak of each process, with imports.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import polars as pl
from large_log import POSITIONS, frames
from report import publish, table

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


def measured(what: str, words: list[str]) -> list[str]:
    """A row of the table: what a process took."""
    start = time.perf_counter()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    done = "" if status == 0 else f" (ended with {os.waitstatus_to_exitcode(status)})"
    seconds = usage.ru_utime + usage.ru_stime
    print(what, seconds, usage.ru_maxrss, file=sys.stderr, flush=True)
    return [what + done, f"{time.perf_counter() - start:.0f} s", f"{seconds:.1f} s", f"{usage.ru_maxrss / 1e6:.2f} GB"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--sessions", type=int, default=SESSIONS)
    parser.add_argument("--decided", type=int, default=DECIDED)
    parser.add_argument("--others", action="store_true", help="also count by DuckDB and by streams of Polars")
    parser.add_argument("--plain", action="store_true", help="also decide without counts")
    options, _ = parser.parse_known_args()
    clickgym = [sys.executable, "-m", "clickgym"]
    with tempfile.TemporaryDirectory() as temporary:
        folder, own = options.folder or Path(temporary), Path(temporary)
        for name, n, n_files in (("rows", options.sessions, FILES), ("decided", options.decided, 1)):
            if not (folder / name).exists():
                write_log(folder / name, n, n_files)
        log, counts, one = str(folder / "rows"), str(own / "counts.parquet"), str(own / "one.parquet")
        small = str(folder / "decided")
        count, fit = [*clickgym, "count", log, "--model", "UBM", "--out", counts], ["--model", "UBM", "--out"]
        rows = [measured(f"count, {10 * options.sessions:,} rows", count)]
        rows.append(measured("fit UBM to the counts", [*clickgym, "fit", counts, *fit, str(own / "query.json")]))
        if options.others:
            printed = subprocess.run([*count, "--sql"], check=True, capture_output=True, text=True).stdout
            (own / "count.sql").write_text(printed)
            rows.append(measured("the statement in DuckDB", [sys.executable, "-c", BY_SQL, str(own / "count.sql"), str(own)]))
            words = [sys.executable, "-c", BY_POLARS, f"{log}/*.parquet", str(own / "polars.parquet")]
            rows.append(measured("streams of Polars", words))
        rows.append(measured(f"count, {10 * options.decided:,} rows", [*clickgym, "count", small, *fit, one]))
        decide = [*clickgym, "decide", small, "--query", "0", "--out", str(own / "decision")]
        rows.append(measured("decide --counts", [*decide, "--counts", one]))
        if options.plain:
            rows.append(measured("decide", decide))
    publish(table(["step", "clock", "processors", "peak memory"], rows))


if __name__ == "__main__":
    main()
