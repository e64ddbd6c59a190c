"""The rules of the hypotheses, each on tables made to hold or to break it; and what the users they
are about are like.
"""

from functools import partial

import numpy as np
import pytest
from test_study_rules import curves
from test_study_rules import rows as rows_of_runs

from clickgym.runner.metrics import wrong_pairs
from clickgym_lab.studies import STUDIES, why_violations
from clickgym_lab.studies.li2019_bubble import BUBBLE, VIOLATIONS
from clickgym_lab.studies.study import FIRST, LAST, PBM
from clickgym_lab.studies.why import hypothesis, words

rows = partial(rows_of_runs, spread=0.0)


def at_rate(env, agents, column="regret", **others):
    """Rows of several agents, of which the column grows at a constant rate."""
    return [
        rows(env, agent, lambda steps, rate=rate: rate * steps, column, **others)
        for agent, rate in agents.items()
    ]


def finding(name, text, evidence):
    """What is found of the only statement of a study that begins with a text."""
    (statement,) = (each for each in STUDIES[name].statements if each.text.startswith(text))
    return statement.find(evidence)


def verdict(name, text, evidence):
    return finding(name, text, evidence).verdict


@pytest.mark.parametrize(
    ("values", "expected"),
    [([2, 2.1], "yes"), ([4, 4.1], "no"), ([1, 4.9], "cannot tell"), ([0, 0.1], "no")],
)
def test_a_hypothesis_holds_if_the_interval_lies_in_the_range(values, expected):
    statement = hypothesis(
        "Cause", "what", (1.0, 3.0), lambda evidence: {"": np.repeat(values, 20)}, " %"
    )
    assert statement.find({}).verdict == expected
    assert statement.find({}).measured.endswith(" %")
    assert (statement.paper, statement.rule) == (
        "1 to 3 %",
        "the interval of what lies within 1 to 3 %",
    )


def test_a_hypothesis_of_several_quantities_has_a_range_for_each():
    halves = np.full(4, 0.5)
    statement = hypothesis(
        "Cause", "what", {"a": (0, 1), "b": (2, 3)}, lambda evidence: {"a": halves, "b": halves}
    )
    finding = statement.find({})
    assert (finding.measured, finding.verdict) == ("a: 0.5 ± 0; b: 0.5 ± 0", "no")
    assert statement.paper == "a: 0 to 1; b: 2 to 3"
    assert words((-np.inf, 2.0), "") == "below 2"
    assert words((1.0, np.inf), " %") == "above 1 %"


# -------------------------------------------------------------------------------------------------------------- violations


def test_the_share_of_unsafe_orders_is_that_of_random_ones():
    rng = np.random.default_rng(0)
    wrong = np.array([wrong_pairs(np.arange(10.0), rng.permutation(10)) for _ in range(4000)])
    for count in (0, 8, 17, 30):
        assert why_violations.unsafe_share(count) == pytest.approx(
            (wrong > count + 5).mean(), abs=0.03
        )


@pytest.mark.parametrize("model", ["CM", "PBM"])
def test_made_lists_have_their_number_of_wrong_pairs(model):
    found = list(why_violations.lists_with(["yandex-9982", "yandex-98721"], model, (0, 4, 17)))
    counts = [
        wrong_pairs(instance.model(model).attraction, instance.initial_ranking)
        for instance in found
    ]
    assert counts == [0, 4, 17] * 2
    assert found[1].name == "yandex-9982-wrong4"
    again = why_violations.lists_with(["yandex-9982", "yandex-98721"], model, (0, 4, 17))
    assert [each.initial_ranking.tolist() for each in again] == [
        each.initial_ranking.tolist() for each in found
    ]


def violating(shares, own=None):
    """Evidence in which agents violate safety in a share of the sessions, on made lists by the
    level.
    """
    names = [f"one-wrong{level}" for level in why_violations.LEVELS]
    evidence = {}
    for env, model in zip(BUBBLE, why_violations.MODELS, strict=True):
        frames = [
            rows(
                env,
                agent,
                lambda steps, share=share: share * steps,
                "violations",
                [name],
                np.array([50, 100]),
            )
            for agent, of_levels in shares(model).items()
            for name, share in zip(names, of_levels, strict=True)
        ]
        evidence[f"why-violations-{model}"] = curves(*frames)
    agents = own or {}
    made = [
        frame
        for env in BUBBLE
        for frame in at_rate(env, agents, "violations", steps=np.array([100, 10_000]))
    ]
    evidence[why_violations.OWN] = (
        curves(*made) if made else curves(*at_rate(PBM, {LAST: 1}, "violations"))
    )
    return evidence


def test_unsafe_agents_are_measured_by_random_lists():
    for share, expected in ((0.499, "yes"), (0.3, "no")):
        agents = {
            "Random": 0.5,
            why_violations.TOP_RANK: share,
            "BatchRank": share,
            LAST: 0.2,
            why_violations.LEVEL: 0.1,
        }
        evidence = violating(lambda model: {LAST: [0.1] * 4}, agents)
        statements = STUDIES["why-violations"].statements[:2]
        assert [statement.find(evidence).verdict for statement in statements] == [expected] * 2
        assert why_violations.without_loglog(
            evidence[why_violations.OWN], BUBBLE[0]
        ) == pytest.approx(np.full(4, -50))


def test_what_is_left_is_taken_at_the_wrong_pairs_that_the_paper_implies():
    """Exact on lists in random order; CascadeKL-UCB as often as in the paper, whatever the list, or
    half as often.
    """

    def shares(model, part=1.0):
        published = VIOLATIONS[LAST][why_violations.MODELS.index(model)] / 100
        random = [why_violations.unsafe_share(level) for level in why_violations.LEVELS]
        return {
            why_violations.TOP_RANK: random,
            LAST: [part * published] * 4,
            FIRST: [published] * 4,
        }

    evidence = violating(shares)
    texts = {
        reading: f"They also explain the differences for CascadeKL-UCB ({reading})"
        for reading in ("last_click", "first_click")
    }
    assert verdict("why-violations", texts["last_click"], evidence) == "yes"
    assert (
        verdict(
            "why-violations",
            "Lists with the implied |V_0| explain the differences for TopRank and BatchRank",
            evidence,
        )
        == "yes"
    )
    assert all(abs(why_violations.on_lists_foretold(evidence, env)).max() < 0.01 for env in BUBBLE)
    halved = violating(lambda model: shares(model, 0.5))
    assert verdict("why-violations", texts["last_click"], halved) == "no"
    assert verdict("why-violations", texts["first_click"], halved) == "yes"
    assert [round(why_violations.implied(model), 1) for model in why_violations.MODELS] == [
        11.4,
        13.7,
        16.0,
    ]
    (text,) = (each.text for each in STUDIES["why-violations"].statements if "imply" in each.text)
    assert (
        f"({', '.join(f'{model} {why_violations.implied(model):.1f}' for model in why_violations.MODELS)})"
        in text
    )
