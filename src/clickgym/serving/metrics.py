"""Metrics of a service in the text format of Prometheus, which is some lines: no package is needed to write it."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from itertools import accumulate

COUNTERS = {
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
        self._lock, self._counts, self._shown = threading.Lock(), Counter[str](), Counter(agent=0)
        self._times, self._seconds = [0] * (len(BOUNDS) + 1), 0.0

    def count(self, name: str) -> None:
        """Count an event by its name in `COUNTERS`."""
        with self._lock:
            self._counts[name] += 1

    def ranked(self, source: str, seconds: float) -> None:
        """Count a call of rank."""
        with self._lock:
            self._shown[source] += 1
            self._times[bisect_left(BOUNDS, seconds)] += 1
            self._seconds += seconds

    def text(self, gauges: dict[str, int]) -> str:
        """All that was counted, and gauges by their names in `GAUGES`."""
        with self._lock:
            times, seconds, shown = [*accumulate(self._times)], self._seconds, dict(self._shown)
            families: list[tuple[str, str, str, dict[str, float]]] = [
                (f"{name}_total", "counter", COUNTERS[name], {"": self._counts[name]}) for name in COUNTERS
            ]
        families += [(name, "gauge", GAUGES[name], {"": n}) for name, n in gauges.items()]
        words = "Lists shown, by who chose them."
        families.append(("impressions_total", "counter", words, {f'{{source="{source}"}}': n for source, n in shown.items()}))
        buckets: dict[str, float] = {f'_bucket{{le="{bound}"}}': n for bound, n in zip([*BOUNDS, "+Inf"], times, strict=True)}
        families.append(
            ("rank_seconds", "histogram", "Seconds of a call of rank.", buckets | {"_sum": seconds, "_count": times[-1]})
        )
        lines = []
        for name, kind, words, samples in families:
            lines += [f"# HELP clickgym_{name} {words}", f"# TYPE clickgym_{name} {kind}"]
            lines += [f"clickgym_{name}{label} {n!r}" for label, n in samples.items()]
        return "\n".join(lines) + "\n"
