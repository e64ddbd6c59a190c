"""Classes of one's own that train in a loop of their own."""

import numpy as np
import pytest

import clickgym
from clickgym.envs import PositionBasedModel

SOURCE = '''
import numpy as np
from clickgym.agents import OwnLoop

class Gradient(OwnLoop):
    """Raises the scores of lists that earned more than most."""

    n_envs = 16

    def __init__(self, n_items, n_positions, *, rate=0.1, seed=None):
        self.rng, self.rate = np.random.default_rng(seed), rate
        self.scores, self.n_positions, self.mean = np.zeros(n_items), n_positions, 0.0

    def learn(self, envs, sessions, on_step, discount):
        envs.reset(seed=17)
        going_on = True
        while going_on:
            noise = self.rng.gumbel(size=(self.n_envs, len(self.scores)))
            lists = np.argsort(-(self.scores + noise))[:, : self.n_positions]
            _, rewards, _, _, _ = envs.step(lists)
            for ranking, reward in zip(lists, rewards, strict=True):
                self.scores[ranking] += self.rate * (reward - self.mean)
                self.mean += 0.01 * (reward - self.mean)
            going_on = on_step()

class Short(Gradient):
    def learn(self, envs, sessions, on_step, discount):
        super().learn(envs, sessions, lambda: on_step() and False, discount)

class Broken(Gradient):
    def learn(self, envs, sessions, on_step, discount):
        raise KeyError("weights")

class Endless(OwnLoop):
    def __init__(self, n_items, n_positions, seed=None):
        self.ranking = np.arange(n_positions)

    def learn(self, envs, sessions, on_step, discount):
        envs.reset()
        while True:
            envs.step(np.tile(self.ranking, (8, 1)))


class Stone:
    def learn(self):
        pass
'''
MODEL = PositionBasedModel([0.2, 0.7, 0.1, 0.5], [1.0, 0.6])


@pytest.fixture(autouse=True)
def module(tmp_path, monkeypatch):
    (tmp_path / "pond.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)


def test_a_class_that_steps_the_streams():
    """Its sessions are counted, it learns, and the seed of the run determines the users."""
    results = [
        clickgym.run("pond:Gradient:rate=0.2", MODEL, 4003, seed=seed, checkpoints=[2000])
        for seed in (0, 0, 1)
    ]
    assert results[0].steps.tolist() == [2000, 4003]
    assert (results[0].agent, results[0].engine) == ("Gradient", "own streams")
    assert results[0].clicks[-1] == results[0].reward[-1] > 0
    assert results[0].regret.tolist() == results[1].regret.tolist() != results[2].regret.tolist()
    random = clickgym.run("Random", MODEL, 4003, seed=0, checkpoints=[2000])
    assert np.diff(results[0].regret)[0] < 0.5 * np.diff(random.regret)[0]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_in_a_sweep(n_jobs):
    """Also in worker processes; `run` with the seed of a run repeats it."""
    agents, envs = ["pond:Gradient"], {"four": MODEL}
    results = clickgym.sweep(envs, agents, 200, 2, n_jobs=n_jobs)
    for label in agents:
        rows = results.frame.filter(agent=label, run=1)
        again = clickgym.run(label, MODEL, 200, seed=rows["seed"][0])
        assert rows["regret"].to_list() == again.regret.tolist()


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ("pond:Short", clickgym.AgentError, "Short ended after 16 of 100 sessions"),
        ("pond:Endless", clickgym.AgentError, "Endless in ClickEnv, .*on_step"),
        ("pond:Broken", clickgym.AgentError, r"Broken in ClickEnv, step 1: KeyError: 'weights'"),
        (
            "pond:Stone",
            ValueError,
            "pond:Stone is not a subclass .* nor an algorithm of stable-baselines3",
        ),
    ],
)
def test_what_is_wrong_is_one_line(spec, error, message):
    with pytest.raises(error, match=message) as caught:
        clickgym.run(spec, MODEL, 100, seed=0)
    assert "\n" not in str(caught.value)


def test_unsuited_pairs_are_refused():
    with pytest.raises(ValueError, match="engine='python': Gradient has a loop of its own"):
        clickgym.run("pond:Gradient", MODEL, 10, engine="python")
