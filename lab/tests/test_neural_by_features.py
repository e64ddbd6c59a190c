"""The study of small networks that rank online: its targets and shares."""

import numpy as np
import polars

from clickgym_lab.studies import neural_by_features as study
from clickgym_lab.studies.features_or_networks import SEEDS
from clickgym_lab.studies.study import Curves


def curves(*percents):
    """An agent that loses these percents of random lists' regret in the instances until 8,000 sessions, and nothing after."""
    rows = [
        (study.WORLD, str(instance), agent, 0, step, rate * min(step, 8000) if agent != study.RANDOM else float(step))
        for instance, each in enumerate(percents)
        for agent, rate in {"NeuralGreedy": each / 100, study.RANDOM: 1.0}.items()
        for step in (2000, 8000, 10_000)
    ]
    return Curves(polars.DataFrame(rows, ["env", "instance", "agent", "run", "step", "regret"], orient="row"))


def test_the_exam_is_not_what_agents_were_made_with():
    assert not set(study.SEEDS) & set(SEEDS)


def test_a_target_is_of_the_median_after_8000_sessions_and_the_worst_stands_beside():
    evidence = {"neural-personal-plain": curves(10, 30, 11, 12, 90)}
    found = study.target(evidence, "NeuralGreedy", "personal", 12)
    assert found == ("12 %, worst 90 %", "yes", None)
    assert study.target(evidence, "NeuralGreedy", "personal", 11.9).verdict == "no"
    np.testing.assert_allclose(study.percents(evidence["neural-personal-plain"], "NeuralGreedy"), [8, 24, 8.8, 9.6, 72])
