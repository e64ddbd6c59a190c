"""The metric `optimal_lists`: equal to the optimum but for rounding is optimal, anything less is not."""

import pytest

import clickgym
from clickgym.agents import Oracle
from clickgym.envs import ClickEnv, PositionBasedModel


def optimal_lists(model, ranking, engine):
    agent = Oracle(model.n_items, model.n_positions, ranking=ranking)
    return clickgym.run(agent, ClickEnv(model), 10, seed=0, engine=engine, metrics=["optimal_lists"]).metrics["optimal_lists"][
        -1
    ]


@pytest.mark.parametrize("engine", ["compiled", "python"])
def test_the_order_of_summation_does_not_make_a_list_suboptimal(engine):
    """Where all positions are examined alike any order is optimal, but the sums differ in the last digit."""
    model = PositionBasedModel([0.8, 0.1, 0.2, 0.3], [1.0, 1.0, 1.0, 1.0])
    ranking = [0, 1, 3, 2]
    assert model.expected_reward(ranking) < model.expected_reward(model.optimal_ranking())
    assert optimal_lists(model, ranking, engine) == 10


@pytest.mark.parametrize("engine", ["compiled", "python"])
@pytest.mark.parametrize(("loss", "expected"), [(1e-14, 10), (1e-10, 0)])
def test_a_list_that_is_worse_by_little_is_not_optimal(engine, loss, expected):
    model = PositionBasedModel([0.5, 0.5 - loss], [1.0])
    assert model.expected_reward([1]) < model.expected_reward([0])
    assert optimal_lists(model, [1], engine) == expected
