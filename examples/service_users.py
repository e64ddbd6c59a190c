"""Simulated users of `service.py`, many at once, over HTTP: clicks come late, twice or never, and restarts do no harm."""

from __future__ import annotations

import heapq
import http.client
import json
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from clickgym.envs import ClickModel

PATIENCE = 30.0
"""Seconds for which users ask again, while nobody answers."""


class Service:
    """The process of `service.py`, which can be killed and started again.

    Args:
        store: its file.
        agent: who ranks.
        n_positions: K.
    """

    def __init__(self, store: Path, agent: str, n_positions: int) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        script = Path(__file__).with_name("service.py")
        words = ["--store", store, "--agent", agent, "--positions", n_positions, "--port", self.port, "--production-share", 0]
        self._command = [sys.executable, script, *map(str, words)]
        self._process = subprocess.Popen(self._command)

    def kill_and_start(self) -> None:
        """Kill it in the middle of whatever it does, and start it again."""
        self._process.kill()
        self._process.wait()
        self._process = subprocess.Popen(self._command)

    def stop(self) -> None:
        """Let it finish what it does."""
        self._process.send_signal(signal.SIGINT)
        self._process.wait()


class User(threading.Thread):
    """Asks for lists of some queries, clicks as a click model says, and tells of it late.

    Args:
        port: of the service.
        model: how users click; the item ``i`` is called ``item-i``.
        queries: of which he asks one at a time, at random.
        sessions: how many.
        delay: the mean number of his own sessions after which the clicks of one are sent.
        lost: the probability that they never are.
        twice: the probability that a click is sent twice.
        seed: of all that is random here.
    """

    def __init__(
        self,
        port: int,
        model: ClickModel,
        queries: list[str],
        sessions: int,
        *,
        delay: float,
        lost: float,
        twice: float,
        seed: int,
    ) -> None:
        super().__init__(daemon=True)
        self.model, self.queries, self.sessions, self.port = model, queries, sessions, port
        self.delay, self.lost, self.twice = delay, lost, twice
        self.done = 0
        self.random, self.rng = random.Random(seed), np.random.default_rng(seed)
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)

    def run(self) -> None:
        """Live."""
        candidates = [f"item-{i}" for i in range(self.model.n_items)]
        waiting: list[tuple[int, str, str, list[str]]] = []  # when, of which impression, its token, the clicked items
        for session in range(self.sessions):
            self.random.shuffle(candidates)
            shown = self.ask("rank", {"query": self.random.choice(self.queries), "candidates": candidates})
            ranking = np.array([int(item.removeprefix("item-")) for item in shown["items"]])
            clicked = np.flatnonzero(self.model.sample(ranking, self.rng)).tolist()
            if self.random.random() >= self.lost:
                when = session + int(self.random.expovariate(1.0) * self.delay)
                items = [shown["items"][place] for place in clicked]
                heapq.heappush(waiting, (when, shown["impression"], shown["token"], items))
            while waiting and waiting[0][0] <= session:
                self.tell(*heapq.heappop(waiting)[1:])
            self.done += 1
        while waiting:
            self.tell(*heapq.heappop(waiting)[1:])

    def tell(self, impression: str, token: str, items: list[str]) -> None:
        """Send clicks, in any order and some of them twice, and the end of the session."""
        self.random.shuffle(items)
        for item in items:
            for _ in range(1 + (self.random.random() < self.twice)):
                self.ask("click", {"impression": impression, "token": token, "item": item})
        self.ask("close", {"impression": impression, "token": token})

    def ask(self, route: str, content: dict[str, Any]) -> dict[str, Any]:
        """Ask until there is an answer: what was sent already does no harm."""
        until = time.monotonic() + PATIENCE
        while True:
            try:
                self.connection.request("POST", f"/{route}", json.dumps(content))
                answer = self.connection.getresponse()
                text = answer.read()
                break
            except (OSError, http.client.HTTPException):
                self.connection.close()
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)
        if answer.status != 200:
            raise RuntimeError(f"{route} {content}: {text.decode()}")
        reply: dict[str, Any] = json.loads(text)
        return reply


def live(users: list[User], service: Service, kill_after: float | None = None) -> None:
    """Let users live at the same time, and kill the service in between.

    Args:
        users: who have not lived yet.
        service: which they ask.
        kill_after: the share of their sessions after which it is killed; None: never.
    """
    for user in users:
        user.start()
    while kill_after is not None and sum(user.done for user in users) < kill_after * sum(user.sessions for user in users):
        time.sleep(0.01)
    if kill_after is not None:
        service.kill_and_start()
    for user in users:
        user.join()
