"""What is passed as an agent or an environment is resolved once, and each question about it is
asked in one place.
"""

import ast
from functools import cache
from pathlib import Path

import pytest

import clickgym
from clickgym.agents import TopRank
from clickgym.runner import make, pairs
from clickgym.runner.make import Player, place_of, player_of

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("src/clickgym", "envs", "agents", "lab/src")
OLD = {
    "agent_maker",
    "env_maker",
    "is_required",
    "told_of",
    "choose_engine",
    "why_not_compiled",
    "playable",
    "check_axes",
    "_check_sizes",
    "instance_of",
}
"""Functions that asked an agent, or an environment, again what it is."""
INTERFACES = {"Agent", "CompiledAgent", "ContextualAgent", "Learner", "StateAgent"}
ASKED = {
    "an interface": {
        "runner/make.py",  # `kind_of`, and what makes agents
        "runner/run.py",  # an agent that was passed as an object
        "runner/pairs.py",
        "runner/check_agent.py",  # which checks what others rely on
    },
    "render_mode": {"runner/pairs.py"},
    "sizes_of": {"runner/make.py"},
}
"""The files of the library that ask: each question has one function in each."""


@cache
def trees():
    return {
        file.relative_to(ROOT / folder).as_posix(): ast.parse(file.read_text(encoding="utf-8"))
        for folder in FOLDERS
        for file in (ROOT / folder).rglob("*.py")
    }


def names(node):
    """The names below a node, plain or after a dot."""
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            yield each.id
        elif isinstance(each, ast.Attribute):
            yield each.attr
        elif isinstance(each, ast.alias):
            yield each.name


def asks(tree, question):
    """Whether a file asks a question."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    if question == "an interface":
        checks = [
            call for call in calls if getattr(call.func, "id", "") in ("isinstance", "issubclass")
        ]
        of_things = [call for call in checks if not {"kind", "kind_of"} & set(names(call.args[0]))]
        return any(INTERFACES & set(names(call.args[1])) for call in of_things)
    if question == "render_mode":
        return any(
            isinstance(node, ast.Attribute) and node.attr == question for node in ast.walk(tree)
        )
    return any(
        question in (getattr(call.func, "attr", ""), getattr(call.func, "id", "")) for call in calls
    )


def test_nobody_asks_the_old_questions():
    callers = {file: OLD & set(names(tree)) for file, tree in trees().items()}
    assert not {file: found for file, found in callers.items() if found}


@pytest.mark.parametrize("question", ASKED)
def test_each_question_is_asked_in_few_places(question):
    library = {file: tree for file, tree in trees().items() if file.startswith("runner/")}
    assert {file for file, tree in library.items() if asks(tree, question)} == ASKED[question]


@pytest.fixture
def counted(monkeypatch):
    """How often something is resolved, made and paired."""
    counts = {}

    def count(owner, name, key):
        function = getattr(owner, name)
        counts[key] = 0

        def counting(*args, **kwargs):
            counts[key] += 1
            return function(*args, **kwargs)

        monkeypatch.setattr(owner, name, counting)

    count(Player, "make", "made")
    count(make.gym, "make", "environments")
    count(pairs, "_why_not_compiled", "engines")
    return counts


@pytest.mark.parametrize("agent", ["TopRank", TopRank])
def test_a_run_makes_one_agent_in_one_environment(agent, counted):
    result = clickgym.run(agent, "PBMRank-v0", 10, seed=0)
    assert counted == {"made": 1, "environments": 1, "engines": 1}
    assert (result.env, result.agent, result.engine) == ("PBMRank-v0", "TopRank", "compiled")


def test_a_sweep_resolves_once_and_makes_once_for_each_run(counted):
    clickgym.sweep(["PBMRank-v0"], ["TopRank"], 10, 3, n_jobs=1)
    assert counted == {"made": 4, "environments": 4, "engines": 4}  # one to see that they fit


def test_a_place_has_one_environment_and_another_instance_another():
    place = place_of("PBMRank-v0")
    assert place.env is place.env
    other = place.at("yandex-9")
    assert (other.instance, other.sizes) == ("yandex-9", place.sizes)
    with pytest.raises(TypeError, match="a sweep makes a new environment for each run"):
        place_of(place.env).at("yandex-9")
    with pytest.raises(ValueError, match="'PBMRank-v0:instance=yandex-9' has users of its own"):
        place_of("PBMRank-v0:instance=yandex-9").at("yandex-9")


def test_a_player_says_what_it_is_and_what_it_needs():
    player = player_of("PBMUCB:epsilon=0.1")
    assert (player.label, player.name, player.observes) == ("PBMUCB:epsilon=0.1", "PBMUCB", [])
    assert (player.asks, player.but(examination=[1.0]).asks) == ({"examination": "examination"}, {})
    assert player_of(player) is player
    assert player_of("C2UCB").observes == ["n_features"]
    assert player_of("CascadeVI").observes == ["n_states"]
