"""Make the log of a shop, and let ``clickgym decide`` write its page. If a browser such as Chromium
is named, it draws a picture of the page.

python docs/decision.py FOLDER [BROWSER]

In half of its sessions the shop shows its list, in the others one of three lists that it tries.
People click more around the weekend, whichever list they see.
"""

import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl

from clickgym.envs import PositionBasedModel

SESSIONS, START, DAYS = 200_000, datetime.fromisoformat("2026-03-01T09:30:00+01:00"), 28
ATTRACTION = {"boots": 0.25, "clogs": 0.28, "sandals": 0.32, "sneakers": 0.28}  # in this order
EXAMINATION = [0.95, 0.6, 0.4]
LISTS = [
    ["sneakers", "boots", "sandals"],  # in production
    ["sandals", "sneakers", "boots"],
    ["sneakers", "boots", "clogs"],
    ["boots", "sneakers", "sandals"],
]
SHARES = [0.4, 0.2, 0.2, 0.2]


def log():
    rng = np.random.default_rng(0)
    days = np.sort(rng.uniform(0, DAYS, SESSIONS))
    weekend = 0.9 + 0.1 * np.cos(2 * np.pi * days / 7)  # the first day is a Sunday
    items = np.array(LISTS)[rng.choice(len(LISTS), SESSIONS, p=SHARES)]
    rankings = np.searchsorted([*ATTRACTION], items)
    users = PositionBasedModel([*ATTRACTION.values()], EXAMINATION)
    clicks = np.array([users.sample(ranking, rng) for ranking in rankings])
    clicks &= rng.random(clicks.shape) < weekend[:, None]
    times = [(START + timedelta(days=day)).isoformat("T", "seconds") for day in days]
    n = len(EXAMINATION)
    return pl.DataFrame(
        {
            "session": np.arange(SESSIONS).repeat(n),
            "query": "shoes",
            "position": np.tile(np.arange(n) + 1, SESSIONS),
            "item": items.ravel(),
            "clicked": clicks.ravel(),
            "time": np.repeat(times, n),
        }
    )


if __name__ == "__main__":
    out, browser = Path(sys.argv[1]), sys.argv[2:]
    out.mkdir(parents=True, exist_ok=True)
    log().write_csv(out / "log.csv")
    command = [sys.executable, "-m", "clickgym", "decide", out / "log.csv"]
    subprocess.run([*command, "--out", out / "decision"], check=True)
    if browser:
        options = ["--headless", "--no-sandbox", "--hide-scrollbars", "--window-size=1000,780"]
        options += ["--force-device-scale-factor=1.5", f"--screenshot={out / 'decision.png'}"]
        page = (out / "decision" / "decisions.html").resolve().as_uri()
        subprocess.run([*browser, *options, page], check=True)
