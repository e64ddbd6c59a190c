"""The pages of environments: complete, with examples that are true, formulas, and moves of users
that the kernels make.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

import numpy as np
import pytest
from pages import environment_page, models

from clickgym.core.docstrings import sections
from clickgym.envs import CLICK_MODELS, ENVIRONMENTS, load_instance

by_model = pytest.mark.parametrize("model", CLICK_MODELS.values(), ids=list(CLICK_MODELS))


@pytest.mark.parametrize("name", models())
def test_page_of_a_click_model(name):
    text = environment_page(name)
    assert "| action space | `RankedList(" in text
    assert f"```python\n{models()[name].__name__}(" in text


def test_every_id_has_a_page():
    ids = set(ENVIRONMENTS)
    assert set(re.findall(r"`(\w+-v0)`", "".join(map(environment_page, models())))) == ids


# -------------------------------------------------------------------------------------------- moves


class Move(NamedTuple):
    """What a user does: from a state to the next one, with its probability."""

    source: str
    target: str
    probability: str


def probability(symbol, model, k, last, item):
    """The value of what stands beside a move."""
    values = model.parameters._asdict()
    positions = {
        "χ_k": "examination",
        "v_k": "termination",
        "ε⁺_k": "trust_relevant",
        "ε⁻_k": "trust_irrelevant",
    }
    numbers = {"g": "perseverance", "τ_1": "continue_after_skip", "τ_2": "continue_after_click"}
    numbers |= {"τ_3": "continue_after_relevant"}
    if symbol.startswith("1 - "):
        return 1.0 - probability(symbol.removeprefix("1 - "), model, k, last, item)
    if symbol in positions:
        return values[positions[symbol]][k]
    if symbol in numbers:
        return values[numbers[symbol]]
    items = {"α(d_k)": "attraction", "s(d_k)": "satisfaction"}
    if symbol in items:
        return values[items[symbol]][item]
    return {"1": 1.0, "γ_{k,k'}": model.parameters.examination[k, last] if "γ" in symbol else 0.0}[
        symbol
    ]


def walked(model, ranking):
    """The clicks by position of a user who moves as the page says."""
    lines = sections(type(model).__doc__)["User"].splitlines()
    moves = [Move(*re.fullmatch(r"\s*(.+?) → (.+?): (.+?)\s*", line).groups()) for line in lines]
    clicks, here = (
        np.zeros(len(ranking)),
        Counter({0: 1.0}),
    )  # users at position k, by their last click

    def walk(state, weight, k, item, last, clicked):
        clicks[k] += weight * state.startswith("click")
        clicked |= state.startswith("click")
        ways = [move for move in moves if move.source == state]
        if "k + 1" in state:
            there[k + 1 if clicked else last] += weight
        shares = [probability(move.probability, model, k, last, item) for move in ways]
        assert not ways or sum(shares) == pytest.approx(1.0)
        for move, share in zip(ways, shares, strict=True):
            walk(move.target, weight * share, k, item, last, clicked)

    for k, item in enumerate(ranking):
        there: Counter = Counter()
        for last, weight in here.items():
            walk(moves[0].source, weight, k, item, last, False)
        here = there
    return clicks


@by_model
def test_a_user_who_moves_as_the_page_says_clicks_as_the_model_does(model):
    users = load_instance("uniform:n_items=6,n_positions=4,seed=1").model(model.short)
    for ranking in ([0, 1, 2, 3], [5, 2, 4, 0]):
        np.testing.assert_allclose(
            walked(users, ranking), users.click_probabilities(ranking), rtol=1e-12
        )
