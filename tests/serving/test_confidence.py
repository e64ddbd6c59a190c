"""The interval for the difference between agent and production, which may be read at any time."""

import numpy as np
import pytest

from clickgym.serving.confidence import PairedDifference, stitched_boundary


def test_the_boundary_is_that_of_the_paper():
    assert stitched_boundary(100.0, 0.05, 3.0, 10.0) == pytest.approx(64.48755, abs=1e-5)  # the authors' own test
    assert stitched_boundary(1.0, 0.05, 0.0, 10.0) == stitched_boundary(10.0, 0.05, 0.0, 10.0)


def users(n, rng, agent, production, share, shift=0.0):
    """Rewards of impressions drawn by lot, whose means are others from half of them on."""
    by_agent = rng.random(n) >= share
    means = np.where(by_agent, agent, production) + shift * (np.arange(n) >= n // 2)
    return (rng.random(n) < means).astype(float), by_agent


def differences(groups, rewards, by_agent, shares, most, confidence):
    trial = PairedDifference(most, confidence)
    trial.add_all(groups, rewards, by_agent, shares, {})
    return trial.interval()


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_all_at_once_is_one_by_one(share):
    rng = np.random.default_rng(0)
    rewards, by_agent = users(500, rng, 0.5, 0.3, share)
    groups = rng.integers(0, 1, 500)
    one_by_one = PairedDifference(2.0, 0.9)
    for reward, agent in zip(rewards.tolist(), by_agent.tolist(), strict=True):
        one_by_one.add(reward, by_agent=agent, share=share)
    both = differences(groups, rewards, by_agent, np.full(500, share), 2.0, 0.9), one_by_one.interval()
    in_parts, earlier = PairedDifference(2.0, 0.9), {}
    for part in (slice(0, 0), slice(0, 200), slice(200, 500)):
        in_parts.add_all(groups[part], rewards[part], by_agent[part], np.full(500, share)[part], earlier)
    np.testing.assert_allclose(in_parts.interval(), both[0], rtol=1e-9)
    np.testing.assert_allclose(both[0], both[1], rtol=1e-9)
    again = PairedDifference(2.0, 0.9)
    again.restore(one_by_one.to_list())
    assert again.interval() == one_by_one.interval()


def test_the_usual_reward_is_that_of_the_group():
    rng = np.random.default_rng(1)
    groups = rng.integers(0, 2, 20_000)
    rewards = np.where(groups == 1, 0.4, 0.0)  # no difference, but great ones between the groups
    by_agent = rng.random(len(groups)) >= 0.3
    shares = np.full(len(groups), 0.3)
    apart, together = (differences(each, rewards, by_agent, shares, 1.0, 0.95) for each in (groups, 0 * groups))
    assert apart.high - apart.low < 0.5 * (together.high - together.low)
    assert apart.low < 0 < apart.high


def test_no_impressions_say_nothing():
    empty = np.empty(0)
    interval = differences(empty, empty, empty.astype(bool), empty, 1.0, 0.95)
    assert (interval.n, interval.low, interval.high) == (0, -np.inf, np.inf)


@pytest.mark.parametrize(("agent", "production", "shift"), [(0.3, 0.3, 0.0), (0.5, 0.4, 0.1), (0.02, 0.02, 0.9)])
def test_who_looks_after_every_impression_is_misled_no_more_often_than_promised(agent, production, shift):
    """At 80 %: an interval for one moment would miss the truth at some moment in most of the streams."""
    misled, at_one_moment, streams = 0, 0, 100
    for seed in range(streams):
        rewards, by_agent = users(1500, np.random.default_rng(seed), agent, production, 0.3, shift)
        difference, outside, naive = PairedDifference(1.0, 0.8), False, False
        terms = np.where(by_agent, rewards / 0.7, -rewards / 0.3)
        for i, (reward, chosen) in enumerate(zip(rewards.tolist(), by_agent.tolist(), strict=True), 1):
            difference.add(reward, by_agent=chosen, share=0.3)
            interval = difference.interval() if i % 10 == 0 else None
            if interval is not None:
                outside |= not interval.low <= agent - production <= interval.high
                half = 1.28 * terms[:i].std() / i**0.5
                naive |= not terms[:i].mean() - half <= agent - production <= terms[:i].mean() + half
        misled += outside
        at_one_moment += naive
    assert misled <= 0.2 * streams + 3 * (0.2 * 0.8 * streams) ** 0.5
    assert at_one_moment > 0.5 * streams


def test_a_worse_agent_is_known_soon():
    rng = np.random.default_rng(0)
    rewards, by_agent = users(20_000, rng, 0.1, 0.4, 0.2)
    interval = differences(np.zeros(len(rewards), int), rewards, by_agent, np.full(len(rewards), 0.2), 1.0, 0.95)
    assert -0.36 < interval.low < interval.mean < interval.high < -0.24
