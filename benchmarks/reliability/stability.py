"""Do the boards of the scorecard depend on the tasks that were drawn? Orders of the agents on many sets, correlated.

    python benchmarks/reliability/stability.py

All bandits as published play one run of the tasks with at most 100 items, on 20 sets that are made as the judge makes a secret
one. On each set 0 is `Random` and 1 the lowest loss of that set. A board orders its agents by the mean over its abilities; each
two orders have a rank correlation (Spearman's). The scores of each set are kept in ``stability.json`` beside this script, so
that the same command plays only the sets that are missing; ``STABILITY_SETS=2`` plays fewer. A set takes about ten minutes of
one processor, the first ones half an hour more, until all kernels are compiled. After a change of a published agent, delete the
file.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars
from joblib import Parallel, delayed
from polars import col

from clickgym.agents import AGENTS, CONTEXTUAL_AGENTS
from clickgym.core.files import write_whole
from clickgym_lab.bench.anchors import Anchor
from clickgym_lab.bench.conclusions import stability
from clickgym_lab.bench.judge import secret_set
from clickgym_lab.bench.leaderboard import sources_of
from clickgym_lab.bench.play import play_one, suited
from clickgym_lab.bench.protocol import CURRENT, Board, Protocol
from clickgym_lab.bench.task import Task

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "shipped"))

from scorecard import TOO_DEAR

SCORES = Path(__file__).with_name("stability.json")
SETS = int(os.environ.get("STABILITY_SETS", "20"))
FIRST_SEED = 10**6
MOST_ITEMS = 100
BOARDS = CURRENT.boards[:3]
"""Few agents play before users with a memory, the fourth."""
BANDITS = [name for name in (*AGENTS, *CONTEXTUAL_AGENTS) if name not in ("Oracle", *TOO_DEAR)]


def is_played(task: Task) -> bool:
    return task.make().unwrapped.model.n_items <= MOST_ITEMS  # type: ignore[attr-defined]


def losses(protocol: Protocol) -> polars.DataFrame:
    """The loss of each agent in each task of a set."""
    tasks = [task for task in protocol.candidates if is_played(task)]
    pairs = [(name, task) for name in BANDITS for task in suited(name, tasks)]
    rows = [(task.name, task.ability, name, play_one(protocol, name, task, 0)) for name, task in pairs]
    return polars.DataFrame(rows, ["task", "ability", "agent", "loss"], orient="row")


def overall(protocol: Protocol, rows: polars.DataFrame, board: Board) -> dict[str, float]:
    """The score of each agent of a board on a set; a task that an agent cannot play counts 0."""
    scores: dict[str, dict[str, list[float]]] = {}
    played = {agent: set(of["ability"]) for (agent,), of in rows.group_by(["agent"])}
    for (name,), of_task in rows.filter(col("ability").is_in(board.abilities)).group_by(["task"], maintain_order=True):
        task, of_agent = protocol.by_name[str(name)], dict(of_task.select("agent", "loss").iter_rows())
        best = min(of_agent, key=of_agent.__getitem__)
        anchor = Anchor(of_agent["Random"], of_agent[best], best, task.horizon, task.allowance)
        if anchor.kept:
            for agent in BANDITS:
                value = float(anchor.score(np.array([of_agent[agent]]))[0]) if agent in of_agent else 0.0
                scores.setdefault(agent, {}).setdefault(task.ability, []).append(value)
    here = [name for name in scores if board in CURRENT.boards_of(sources_of(name), played.get(name, ()))]
    return {name: float(np.mean([np.mean(values) for values in scores[name].values()])) for name in here}


def set_scores(seed: int) -> tuple[str, dict[str, dict[str, float]]]:
    """A seed, and the scores on each board of the set with this seed."""
    with tempfile.TemporaryDirectory() as folder:
        protocol = secret_set(CURRENT, seed, Path(folder), False, CURRENT.abilities)
        rows = losses(protocol)
        return str(seed), {board.name: overall(protocol, rows, board) for board in BOARDS}


def main() -> None:
    known: dict[str, dict[str, dict[str, float]]] = json.loads(SCORES.read_text()) if SCORES.exists() else {}
    seeds = [str(FIRST_SEED + number) for number in range(SETS)]
    play = Parallel(n_jobs=2, return_as="generator_unordered")
    for seed, scores in play(delayed(set_scores)(int(seed)) for seed in seeds if seed not in known):
        known[seed] = scores
        write_whole(SCORES, json.dumps(known, indent=1) + "\n")
    print(stability([known[seed] for seed in seeds]))


if __name__ == "__main__":
    main()
