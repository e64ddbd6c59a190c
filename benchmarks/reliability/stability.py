"""Do the boards of the scorecard depend on the tasks that were drawn? Orders of the agents on many sets, correlated.

    python benchmarks/reliability/stability.py

All bandits as published play one run of the tasks with at most 100 items, on 20 sets that are made as the judge makes a secret
one. On each set 0 is `Random` and 1 the lowest loss of that set. A board orders its agents by the mean over its abilities; each
two orders have a rank correlation (Spearman's). What is played is kept in ``STABILITY_FOLDER`` (results/stability), so that the
same command continues; ``STABILITY_SETS=2`` plays fewer sets. It takes about two hours of one processor.
"""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import numpy as np
import polars
from joblib import Parallel, delayed
from polars import col
from scipy.stats import spearmanr

from clickgym.agents import AGENTS, CONTEXTUAL_AGENTS
from clickgym.core.formats import markdown_table
from clickgym.lab.bench.anchors import Anchor
from clickgym.lab.bench.judge import secret_set
from clickgym.lab.bench.leaderboard import sources_of
from clickgym.lab.bench.make import TOO_DEAR
from clickgym.lab.bench.play import play_one, suited
from clickgym.lab.bench.protocol import VERSION_2, Board, Protocol
from clickgym.lab.bench.task import Task

FOLDER = Path(os.environ.get("STABILITY_FOLDER", "results/stability"))
SETS = int(os.environ.get("STABILITY_SETS", "20"))
FIRST_SEED = 10**6
MOST_ITEMS = 100
BANDITS = [name for name in (*AGENTS, *CONTEXTUAL_AGENTS) if name not in ("Oracle", *TOO_DEAR)]


def is_played(task: Task) -> bool:
    return task.make().unwrapped.model.n_items <= MOST_ITEMS  # type: ignore[attr-defined]


def loss(protocol: Protocol, name: str, task: Task) -> tuple[str, str, str, float]:
    return task.name, task.ability, name, play_one(protocol, name, name, task, 0)


def losses(seed: int) -> polars.DataFrame:
    """The loss of each agent in each task of a set, as far as it was not played before."""
    protocol = secret_set(VERSION_2, seed, FOLDER, False, VERSION_2.abilities)
    tasks = [task for task in protocol.candidates if is_played(task)]
    frames = []
    for name in BANDITS:
        file = FOLDER / f"{seed}-{name}.parquet"
        if not file.exists():
            rows = Parallel(n_jobs=2, prefer="threads")(delayed(loss)(protocol, name, task) for task in suited(name, tasks))
            file.parent.mkdir(parents=True, exist_ok=True)
            polars.DataFrame(rows, ["task", "ability", "agent", "loss"], orient="row").write_parquet(file)
        frames.append(polars.read_parquet(file))
    return polars.concat(frames)


def overall(seed: int, board: Board) -> dict[str, float]:
    """The score of each agent of a board on a set; a task that an agent cannot play counts 0."""
    protocol = secret_set(VERSION_2, seed, FOLDER, False, board.abilities)
    rows = losses(seed).filter(col("ability").is_in(board.abilities))
    scores: dict[str, dict[str, list[float]]] = {}
    for (name,), of_task in rows.group_by(["task"], maintain_order=True):
        task, of_agent = protocol.by_name[str(name)], dict(of_task.select("agent", "loss").iter_rows())
        best = min(of_agent, key=of_agent.__getitem__)
        anchor = Anchor(of_agent["Random"], of_agent[best], best, task.horizon, task.allowance)
        if anchor.kept:
            for agent in BANDITS:
                value = float(anchor.score(np.array([of_agent[agent]]))[0]) if agent in of_agent else 0.0
                scores.setdefault(agent, {}).setdefault(task.ability, []).append(value)
    played = {agent: set(of["ability"]) for (agent,), of in rows.group_by(["agent"])}
    here = [name for name in scores if board in VERSION_2.boards_of(sources_of(name), played.get(name, ()))]
    return {name: float(np.mean([np.mean(values) for values in scores[name].values()])) for name in here}


def main() -> None:
    rows = [("board", "agents", "correlation, mean", "least", "first")]
    for board in VERSION_2.boards[:3]:  # few agents play before users with a memory
        sets = [overall(FIRST_SEED + number, board) for number in range(SETS)]
        agents = sorted(sets[0])
        orders = [[each[name] for name in agents] for each in sets]
        pairs = [float(spearmanr(one, other).statistic) for one, other in itertools.combinations(orders, 2)]
        firsts = [max(each, key=each.__getitem__) for each in sets]
        most = max(set(firsts), key=firsts.count)
        first = f"{most} on {firsts.count(most)} of {SETS} sets"
        rows.append((board.name, f"{len(agents)}", f"{np.mean(pairs):.3f}", f"{min(pairs):.3f}", first))
    print("\n".join(markdown_table(rows)))


if __name__ == "__main__":
    main()
