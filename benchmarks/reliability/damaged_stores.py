"""Damage copies of stores of `clickgym.Ranker`, read them, and serve from them.

    python benchmarks/reliability/damaged_stores.py --copies 300

Bits are flipped, bytes overwritten, pages zeroed or swapped, and files cut off: the store of a process that was shut down, and
store and write-ahead log of one that was killed. A copy must be refused by one line that names it, or be equal: the log that is
read, the report, and the lists that come next. Nothing may end in another error.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
from store_damage import damaged, facts, make

OUTCOMES = ("refused", "equal", "other content", "raw error")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--copies", type=int, default=300, help="how many are damaged, half of each store")
    parser.add_argument("--seed", type=int, default=0, help="the first one of the damages")
    arguments = parser.parse_args()
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
            each = arguments.copies // 2
            for seed in range(arguments.seed + i * each, arguments.seed + (i + 1) * each):
                outcome, what = damaged(store, then, folder, seed)
                counts[title][outcome] += 1
                if outcome in ("other content", "raw error"):
                    print(f"{outcome}: {what}", flush=True)
    print(f"{'':10s}" + "".join(f"{outcome:>15s}" for outcome in OUTCOMES))
    for title, of in counts.items():
        print(f"{title:10s}" + "".join(f"{of[outcome]:15,d}" for outcome in OUTCOMES))
    return int(any(of["other content"] + of["raw error"] for of in counts.values()))


if __name__ == "__main__":
    sys.exit(main())
