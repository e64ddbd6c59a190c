"""Damage copies of stores of `clickgym.Ranker`, read them, and serve from them.

    python benchmarks/reliability/damaged_stores.py --copies 300

Bits are flipped, bytes overwritten, pages zeroed or swapped, and files cut off: the store of a process that was shut down, and
store and write-ahead log of one that was killed. A copy must be refused by one line that names it, or be equal: the log that is
read, the report, and the lists that come next. Nothing may end in another error.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
import typer
from store_damage import damaged, facts, make

OUTCOMES = ("refused", "equal", "other content", "raw error")


def main(copies: int = 300, seed: int = 0) -> None:
    """Damage so many copies, half of each store; the seed is that of the first damage."""
    counts: dict[str, Counter[str]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for i, (title, store) in enumerate(make(folder).items()):
            whole = folder / "whole"
            whole.mkdir(exist_ok=True)
            for ending in ("", "-wal"):
                if Path(f"{store}{ending}").exists():
                    (whole / f"{store.name}{ending}").write_bytes(Path(f"{store}{ending}").read_bytes())
            then, counts[title] = facts(whole / store.name), Counter()
            each = copies // 2
            for number in range(seed + i * each, seed + (i + 1) * each):
                outcome, what = damaged(store, then, folder, number)
                counts[title][outcome] += 1
                if outcome in ("other content", "raw error"):
                    print(f"{outcome}: {what}", flush=True)
    print(f"{'':10s}" + "".join(f"{outcome:>15s}" for outcome in OUTCOMES))
    for title, of in counts.items():
        print(f"{title:10s}" + "".join(f"{of[outcome]:15,d}" for outcome in OUTCOMES))
    raise SystemExit(any(of["other content"] + of["raw error"] for of in counts.values()))


if __name__ == "__main__":
    typer.run(main)
