"""What is passed as an agent or an environment is resolved once."""

import pytest

import clickgym
from clickgym.agents import TopRank
from clickgym.runner import engines, make
from clickgym.runner.make import Player, place_of, player_of


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
    count(engines, "_why_not_compiled", "engines")
    return counts


@pytest.mark.parametrize("agent", ["TopRank", TopRank])
def test_a_run_makes_one_agent_in_one_environment(agent, counted):
    result = clickgym.run(agent, "PBMRank-v0", 10, seed=0)
    assert counted == {"made": 1, "environments": 1, "engines": 1}
    assert (result.env, result.agent, result.engine) == ("PBMRank-v0", "TopRank", "compiled")


def test_a_sweep_resolves_once_and_makes_once_for_each_run(counted):
    clickgym.sweep(["PBMRank-v0"], ["TopRank"], 10, 3, n_jobs=1)
    assert counted == {"made": 4, "environments": 4, "engines": 4}  # one to see that they fit


def test_a_place_makes_an_environment_of_an_instance():
    place = place_of("PBMRank-v0")
    assert place.make() is not place.make()
    assert place.make("yandex-9").unwrapped.instance == "yandex-9"
    with pytest.raises(TypeError, match="a sweep makes a new environment for each run"):
        place_of(place.make())
    with pytest.raises(ValueError, match="'PBMRank-v0:instance=yandex-9' has users of its own"):
        place_of("PBMRank-v0:instance=yandex-9").make("yandex-9")


def test_a_player_says_what_it_is_and_what_it_needs():
    player = player_of("PBMUCB:epsilon=0.1")
    assert (player.label, player.name, player.observes) == ("PBMUCB:epsilon=0.1", "PBMUCB", [])
    assert player_of(player) is player
    assert player_of("C2UCB").observes == ["n_features"]
    assert player_of("CascadeVI").observes == ["n_states"]
