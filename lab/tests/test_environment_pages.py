"""The pages of environments: complete, with examples that are true, formulas, and moves of users
that the kernels make.
"""

from __future__ import annotations

import doctest
import re
from collections import Counter

import numpy as np
import pytest
from click_stories import arguments_of
from pages.environments import moves_of, page

from clickgym.core.docstrings import sections
from clickgym.envs import CLICK_MODELS, CONTEXTUAL, ENVIRONMENTS, MEMORY, REWARDS, load_instance

IDS = ENVIRONMENTS | CONTEXTUAL | MEMORY
HEADINGS = [
    "Description",
    "Click Law",
    "User",
    "Action Space",
    "Observation Space",
    "Rewards",
    "Starting State",
    "Episode End",
    "Information",
    "Arguments",
    "Vectorized environment",
    "References",
    "Version History",
]

by_id = pytest.mark.parametrize("env_id", IDS)
by_model = pytest.mark.parametrize("model", CLICK_MODELS.values(), ids=list(CLICK_MODELS))


@by_id
def test_the_page_of_an_id_is_complete_and_its_examples_are_true(env_id):
    text = page(env_id)
    _, *parts = re.split(r"^ *## (.+)$", text, flags=re.MULTILINE)
    assert parts[::2] == HEADINGS
    about = {heading: text.strip() for heading, text in zip(parts[::2], parts[1::2], strict=True)}
    assert all(about.values())
    assert not re.search(r"\{\{|\{[a-z_]+\}[^$]*$", about["Description"]), (
        "a placeholder was not filled"
    )
    tables = {"Observation Space", "Arguments"} if env_id in CONTEXTUAL else {"Arguments"}
    for heading in tables & about.keys():
        assert re.search(r"^ *\|(-+\|)+$", about[heading], flags=re.MULTILINE), (
            f"no table under {heading}"
        )
    assert f'>>> env = gym.make("{env_id}"' in about["Arguments"]
    assert all(
        f"`{key}`" in about["Information"]
        for key in ("expected_reward", "regret", "optimal_reward")
    )
    assert re.search(r"^\$\$.+\$\$$", about["Click Law"], flags=re.MULTILINE)
    assert re.search(r"^ *- v0:", about["Version History"], flags=re.MULTILINE)
    assert env_id in MEMORY or all(f"`{reward}`" in about["Rewards"] for reward in REWARDS)
    stationary = env_id.removeprefix(IDS[env_id].form)
    assert stationary == env_id or f"[`{stationary}`]({stationary}.md)" in about["Description"]
    runner = doctest.DocTestRunner()
    runner.run(doctest.DocTestParser().get_doctest(text, {}, env_id, None, None))
    assert runner.summarize().failed == 0


@pytest.mark.parametrize("env_id", ENVIRONMENTS)
def test_the_page_of_an_id_has_every_argument(env_id):
    text = page(env_id).partition("## Arguments")[2]
    shared = {"instance", "n_positions", "reward", "cutoff", "reference", "render_mode"}
    given = arguments_of(env_id, 4, 2, lambda shape: np.full(shape, 0.5)).keys()
    assert set(re.findall(r"^ *\| `(\w+)` \|", text, flags=re.MULTILINE)) == shared | (
        given - {"n_positions"}
    )


# ------------------------------------------------------------------------------------------------------------------ moves


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
    moves = moves_of(sections(type(model).__doc__)["User"])
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


def test_a_move_in_other_words_is_named():
    message = "the user does 'examine, then click'; expected 'state → state: probability'"
    with pytest.raises(ValueError, match=re.escape(message)):
        moves_of("examine, then click")
