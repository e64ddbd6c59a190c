"""Kernels that come along: four agents in ``CMRank-v0``, each time in a new process with an empty home.

Processor time of the process, imports included; the least of three. The time of a session is the least of five runs.
The script fails where a folder from ``clickgym precompile`` leaves a kernel to compile, or changes a regret.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from report import printed, publish, table

AGENTS = ["CascadeKLUCB", "TopRank", "BatchRank", "CascadeTS"]
PLAY = """
import json, sys, time
from numba.core import event
import clickgym
agents = sys.argv[2:]
with event.install_recorder("numba:compile") as recorder:
    regret = [clickgym.run(agent, "CMRank-v0", 1000, seed=0).regret[-1] for agent in agents]
used = time.process_time()
per_session = []
for agent in agents if sys.argv[1] == "speed" else []:
    start = time.process_time()
    clickgym.run(agent, "CMRank-v0", 200_000, seed=0)
    per_session.append((time.process_time() - start) / 200_000)
print(json.dumps({"seconds": used, "compiled": len(recorder.buffer) // 2, "regret": regret, "per_session": per_session}))
"""


def play(home: str, folder: str = "", what: str = "start") -> dict[str, Any]:
    return dict(json.loads(printed(PLAY, what, *AGENTS, XDG_CACHE_HOME=home, CLICKGYM_KERNELS=folder)))


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folders = {"none": "", "of this processor": f"{temporary}/host", "portable": f"{temporary}/portable"}
        for name, folder in list(folders.items())[1:]:
            words = ["precompile", "--agents", *AGENTS, "--envs", "CMRank-v0", "--out", folder]
            words += ["--portable"] if name == "portable" else []
            subprocess.run([sys.executable, "-m", "clickgym", *words], check=True, capture_output=True)
        played = {name: [play(f"{temporary}/{name}-{turn}", folder) for turn in range(3)] for name, folder in folders.items()}
        fast: dict[str, list[list[float]]] = {name: [] for name in folders}
        for _ in range(5):
            for name, folder in folders.items():
                home = Path(temporary, f"{name}-0")
                fast[name].append(play(str(home), folder, "speed")["per_session"])
    rows = []
    for name, runs in played.items():
        assert all(run["regret"] == played["none"][0]["regret"] for run in runs)
        assert name == "none" or not any(run["compiled"] for run in runs)
        seconds = min(run["seconds"] for run in runs)
        sessions = [f"{1e9 * min(each):.0f} ns" for each in zip(*fast[name], strict=True)]
        rows.append([name, str(runs[0]["compiled"]), f"{seconds:.2f} s", *sessions])
    publish(table(["folder", "compiled", "processor", *AGENTS], rows))


if __name__ == "__main__":
    main()
