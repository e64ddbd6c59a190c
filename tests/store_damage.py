"""Damage copies of stores of `clickgym.Ranker` in many ways, and see what reading them says."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from clickgym import Ranker
from clickgym.offline import read_log

SETTINGS: dict[str, Any] = {
    "n_positions": 3,
    "update_every": 2,
    "production": lambda query, candidates: candidates,
    "production_share": 0.3,
    "clock": lambda: 1.8e9,  # nothing becomes old
    "patience": 1e9,
}
QUERIES = [f"query {i}" for i in range(5)]
PAGE, FRAME = 4096, 4120
"""Bytes of a page of SQLite, and of one in its write-ahead log."""


def serve(ranker: Ranker, sessions: int, seed: int) -> None:
    """Users who click, some of them late, and do not all leave."""
    rng = random.Random(seed)
    shown = []
    for _ in range(sessions):
        shown.append(ranker.rank(rng.choice(QUERIES), rng.sample([f"item {i}" for i in range(12)], 6)))
        impression = rng.choice(shown[-10:])
        ranker.click(impression.id, rng.choice(impression.items))
        if rng.random() < 0.8:
            ranker.close(rng.choice(shown[-10:]).id)


def make(folder: Path, sessions: int = 400) -> dict[str, Path]:
    """Stores: one that was shut down, and one whose process was killed, so that its end is in the write-ahead log only."""
    stopped, killed = folder / "stopped.db", folder / "killed.db"
    with Ranker(store=stopped, seed=0, **SETTINGS) as ranker:
        serve(ranker, sessions, 0)
        ranker.snapshot()
        serve(ranker, sessions // 8, 1)  # is replayed
        for ending in ("", "-wal"):
            shutil.copy(f"{stopped}{ending}", f"{killed}{ending}")
    with Ranker(store=killed, **SETTINGS) as ranker:  # once more, with most of it in the file
        serve(ranker, sessions // 8, 2)
        for ending in ("", "-wal"):
            shutil.copy(f"{killed}{ending}", f"{folder / 'draft'}{ending}")
    for ending in ("", "-wal"):
        (folder / f"draft{ending}").replace(f"{killed}{ending}")
    return {"stopped": stopped, "killed": killed}


def flip(content: bytearray, rng: random.Random, size: int) -> None:
    for _ in range(rng.choice([1, 1, 8])):
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)


def flip_near_the_start(content: bytearray, rng: random.Random, size: int) -> None:
    content[rng.randrange(min(len(content), 2 * PAGE))] ^= 1 << rng.randrange(8)


def overwrite(content: bytearray, rng: random.Random, size: int) -> None:
    start = rng.randrange(len(content))
    content[start : start + 64] = rng.randbytes(len(content[start : start + 64]))


def zero(content: bytearray, rng: random.Random, size: int) -> None:
    page = rng.randrange(len(content) // size)
    content[page * size : (page + 1) * size] = bytes(size)


def cut(content: bytearray, rng: random.Random, size: int) -> None:
    del content[rng.randrange(len(content)) :]


def swap(content: bytearray, rng: random.Random, size: int) -> None:
    one, other = (page * size for page in rng.sample(range(len(content) // size), 2))
    content[one : one + size], content[other : other + size] = content[other : other + size], content[one : one + size]


KINDS: list[Callable[[bytearray, random.Random, int], None]] = [flip, flip_near_the_start, overwrite, zero, cut, swap]


def facts(store: Path, whole: bool = True) -> Any:
    """What a store holds: its log as read from the file; and by a `Ranker`, its report and the lists that come next."""
    log = read_log(store)
    read = [log.items.tolist(), log.clicks.tolist(), log.queries.tolist(), log.item_labels, log.query_labels]
    if not whole:
        return read
    with Ranker(store=store, **SETTINGS) as ranker:
        report = asdict(ranker.report())
        lists = [ranker.rank(query) for query in QUERIES for _ in range(3)]
        clicked = [ranker.click(each.id, position=1) for each in lists]
        return [*read, report | {"time": None}, lists, clicked, len(ranker.log())]


def damaged(store: Path, then: Any, folder: Path, seed: int) -> tuple[str, str]:
    """Damage a copy of a store, read it, and serve from it.

    Args:
        store: without damage.
        then: its `facts`.
        folder: where the copy is made, as ``copy.db``.
        seed: of the damage.

    Returns:
        ``"refused"``, ``"equal"``, ``"other content"`` or ``"raw error"``; and what was damaged how, with what was said.
    """
    rng, copy = random.Random(seed), folder / "copy.db"
    for ending in ("", "-wal", "-shm"):
        Path(f"{copy}{ending}").unlink(missing_ok=True)
        if ending != "-shm" and Path(f"{store}{ending}").exists():
            shutil.copy(f"{store}{ending}", f"{copy}{ending}")
    kind = KINDS[seed % len(KINDS)]
    file = Path(f"{copy}-wal") if Path(f"{copy}-wal").exists() and rng.random() < 0.6 else copy
    content = bytearray(file.read_bytes())
    kind(content, rng, FRAME if file != copy else PAGE)
    file.write_bytes(content)
    what = f"{store.stem}, {kind.__name__} in {file.name}, seed {seed}"
    results = []
    for whole in (False, True):  # the log alone, and all
        try:
            results.append("equal" if facts(copy, whole) == (then if whole else then[:5]) else "other content")
        except (ValueError, OSError) as error:
            said = str(error)
            results.append("refused" if "\n" not in said and str(copy) in said else "raw error")
            what += f": {error!r}"
        except Exception as error:
            results.append("raw error")
            what += f": {error!r}"
        if "other content" in results:
            break
    order = ("raw error", "other content", "refused", "equal")
    return min(results, key=order.index), what


def remove(folder: Path) -> None:
    shutil.rmtree(folder)
    assert not os.path.exists(folder)
