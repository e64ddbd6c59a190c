"""The pages that begin with the log of the simulated shop: what they tell you to type runs, and
prints what they show.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from clickgym_logs import decide_all, read_log

ROOT = Path(__file__).parents[2]
STEP = re.compile(r"```(python|sh)\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)
PAGE, OFF_POLICY = (
    (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    for name in ("from_log_to_decision", "off_policy")
)
STEPS = STEP.findall(PAGE)
(TRIED,) = (step for step in STEP.findall(OFF_POLICY) if "shop_log" in step[1])
WIDTH = 100
SHOWN, TESTED = ("jackets", "sandals"), ("hats", "belts")
"""The queries of the message: lists to show, and lists to test."""


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """The folder of a reader."""
    return tmp_path_factory.mktemp("shop")


@pytest.mark.parametrize(("steps", "n_shown"), [(STEPS, 5), ([TRIED], 1)], ids=["all", "tried"])
def test_what_a_page_shows(steps, n_shown, shop, program, printed, monkeypatch):
    monkeypatch.chdir(shop)
    shown_steps = 0
    for kind, text, shown in steps:
        found = ""
        if kind == "python":
            (shop / "step.py").write_text(text, encoding="utf-8")
            found = program(shop / "step.py", folder=shop)
        for line in text.replace("\\\n", " ").splitlines() if kind == "sh" else ():
            command, *words = shlex.split(line)
            if command == "clickgym" and "user=client_id" not in words:
                found = printed(words, WIDTH)
            elif command == "python":
                found = program(ROOT / words[0], *words[1:], folder=shop)
        lines = [" ".join(line.split()) for line in found.splitlines()]
        for line in filter(None, (" ".join(line.split()) for line in shown.splitlines())):
            assert line == "..." or line in lines, line
        shown_steps += bool(shown)
    assert shown_steps == n_shown


def test_numbers_of_the_message(shop, program):
    """They follow from the decisions: gains a day, and what tests cost if B is as much worse."""
    program(ROOT / "examples" / "shop_log.py", folder=shop)
    log = read_log(shop / "log.parquet")
    decisions = {decision.query: decision for decision in decide_all(log)}
    gains = {query: decision.gain_a_day for query, decision in decisions.items()}
    shown, tested = (sum(gains[query] for query in part) for part in (SHOWN, TESTED))
    clicks = log.clicks.sum() / 60
    low, high = (
        decisions["jackets"].sessions_a_day * end for end in decisions["jackets"].best.interval
    )
    costs = gains["hats"] / 2 * 7, gains["belts"] / 2 * 56
    whole = shown + tested
    message = " ".join(re.findall(r"^> (.*)", PAGE, re.MULTILINE))
    numbers = [int(number) for number in re.findall(r"\d+", message)]
    for number in (shown, tested, whole, 100 * whole / clicks, clicks, *costs, low, high):
        assert round(number) in numbers, number
    assert {*SHOWN} == {query for query in gains if decisions[query].best}
    assert {*TESTED} < {query for query in gains if decisions[query].to_test}
