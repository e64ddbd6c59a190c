"""Metrics of a service in the text format of Prometheus, which is some lines: no package is needed to write it."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from itertools import accumulate

COUNTERS = {
    "impressions": "Lists shown, by who chose them.",
    "clicks": "Clicks that were new.",
    "late_clicks": "New clicks on impressions that were closed, from which no agent learns.",
    "loads": "Agents computed from the store: a snapshot and what happened since.",
    "snapshots": "States of agents written.",
    "refused_events": "Events computed anew because another process was faster.",
    "guarded_queries": "Queries that the guard gave back to production.",
}
GAUGES = {
    "agents_in_memory": "Agents in memory.",
    "waiting_impressions": "Closed impressions that wait to be learned.",
    "open_impressions": "Impressions that wait for clicks, in the whole store.",
}
BOUNDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)
"""Seconds of a call of rank, by which calls are counted."""


class Metrics:
    """Counts of one process. Several threads may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = Counter(dict.fromkeys((name for name in COUNTERS if name != "impressions"), 0))
        self._shown = Counter(agent=0)
        self._times, self._seconds = [0] * (len(BOUNDS) + 1), 0.0

    def count(self, name: str) -> None:
        """Count an event by its name in `COUNTERS`."""
        with self._lock:
            self._counts[name] += 1

    def ranked(self, source: str, seconds: float) -> None:
        """Count a call of rank."""
        place = bisect_left(BOUNDS, seconds)
        with self._lock:
            self._shown[source] += 1
            self._times[place] += 1
            self._seconds += seconds

    def text(self, gauges: dict[str, int]) -> str:
        """All that was counted, and gauges by their names in `GAUGES`."""
        with self._lock:
            counts, times, seconds = (
                {name: {"": n} for name, n in self._counts.items()},
                [*accumulate(self._times)],
                self._seconds,
            )
            counts["impressions"] = {f'{{source="{source}"}}': n for source, n in self._shown.items()}
        lines = []
        for name, words in COUNTERS.items():
            lines += _head(f"{name}_total", "counter", words)
            lines += [f"clickgym_{name}_total{label} {n}" for label, n in counts[name].items()]
        for name, n in gauges.items():
            lines += [*_head(name, "gauge", GAUGES[name]), f"clickgym_{name} {n}"]
        lines += _head("rank_seconds", "histogram", "Seconds of a call of rank.")
        for bound, n in zip([*BOUNDS, "+Inf"], times, strict=True):
            lines.append(f'clickgym_rank_seconds_bucket{{le="{bound}"}} {n}')
        lines += [f"clickgym_rank_seconds_sum {seconds!r}", f"clickgym_rank_seconds_count {times[-1]}"]
        return "\n".join(lines) + "\n"


def _head(name: str, kind: str, words: str) -> list[str]:
    return [f"# HELP clickgym_{name} {words}", f"# TYPE clickgym_{name} {kind}"]
