"""Time that every study takes at scale 1, with as many queries as the paper has: short runs of
every pair, multiplied out.

Per pair the fastest of three runs of 2·10⁵ sessions, on the first query, by the clock.
"""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

from report import publish, table

from clickgym.core.formats import clock
from clickgym_lab.studies import STUDIES
from clickgym_lab.studies.play import plan, project
from clickgym_lab.studies.setting import Plan

SESSIONS = 200_000
REPEATS = 3
WORKERS = 2


def cost(planned: Plan, out: Path) -> tuple[int, float]:
    """Sessions and seconds of a part with the paper's number of queries."""
    part = planned.part
    more = part.queries / len(planned.queries)
    n_runs = len(planned.instances(out)) * planned.runs * len(part.envs) * len(part.agents)
    seconds = min(project([planned], out, SESSIONS) for _ in range(REPEATS))
    return round(n_runs * more) * planned.horizon, seconds * more


def main() -> None:
    known: dict[str, tuple[int, float]] = {}
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in STUDIES:
            plans = plan([name], 1.0)
            for planned in plans:
                if planned.part.name not in known:
                    known[planned.part.name] = cost(planned, Path(folder))
            sessions, seconds = (
                sum(column)
                for column in zip(*(known[each.part.name] for each in plans), strict=True)
            )
            size = math.floor(math.log10(sessions))
            rows.append(
                [
                    f"`{name}`",
                    f"{sessions / 10**size:.1f}e{size}",
                    f"{seconds / sessions * 1e9:.0f} ns",
                    clock(seconds / WORKERS),
                ]
            )
    publish(table(["study at scale 1", "sessions", "per session", f"on {WORKERS} cores"], rows))


if __name__ == "__main__":
    main()
