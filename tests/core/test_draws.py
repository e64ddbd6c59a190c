"""Tests that environments draw from the generator that they are given."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from clickgym.envs import CascadeModel, ClickEnv

BIT_GENERATORS = (np.random.PCG64, np.random.MT19937, np.random.Philox, np.random.SFC64)


@pytest.mark.parametrize("bits", BIT_GENERATORS)
def test_environment_draws_from_the_generator_that_is_set(bits):
    """This also holds after copies, and after an invalid list, for which nothing is drawn."""
    model = CascadeModel([0.5, 0.4, 0.3], 2)
    env, uniforms = ClickEnv(model), np.random.Generator(bits(3)).random((20, 2))
    env.reset(seed=0)
    env.step([0, 1])
    env.np_random = np.random.Generator(bits(3))
    for t, row in enumerate(uniforms):
        if t == 10:
            env = pickle.loads(pickle.dumps(copy.deepcopy(env)))
        with pytest.raises(ValueError, match="items are 0 to 2"):
            env.step([1, 3])
        assert env.n_simulated == t + 1
        clicks, *_ = env.step([0, 1])
        assert clicks.tolist() == [row[0] < 0.5, row[0] >= 0.5 and row[1] < 0.4]
