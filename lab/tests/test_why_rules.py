"""The rules of the hypotheses, each on tables made to hold or to break it; and what the users they are about are like."""

from functools import partial

import numpy as np
import pytest
from test_study_rules import curves
from test_study_rules import rows as rows_of_runs

from clickgym.runner.make import make_env
from clickgym.runner.metrics import wrong_pairs
from clickgym_lab.studies import STUDIES, why_change, why_early_regret, why_exp3, why_ubm_lead, why_violations
from clickgym_lab.studies.li2019_bubble import BUBBLE, VIOLATIONS
from clickgym_lab.studies.study import FIRST, LAST, PBM, saved
from clickgym_lab.studies.why import hypothesis, words

rows = partial(rows_of_runs, spread=0.0)


def at_rate(env, agents, column="regret", **others):
    """Rows of several agents, of which the column grows at a constant rate."""
    return [rows(env, agent, lambda steps, rate=rate: rate * steps, column, **others) for agent, rate in agents.items()]


def finding(name, text, evidence):
    """What is found of the only statement of a study that begins with a text."""
    (statement,) = (each for each in STUDIES[name].statements if each.text.startswith(text))
    return statement.find(evidence)


def verdict(name, text, evidence):
    return finding(name, text, evidence).verdict


@pytest.mark.parametrize(
    ("values", "expected"), [([2, 2.1], "yes"), ([4, 4.1], "no"), ([1, 4.9], "cannot tell"), ([0, 0.1], "no")]
)
def test_a_hypothesis_holds_if_the_interval_lies_in_the_range(values, expected):
    statement = hypothesis("Cause", "what", (1.0, 3.0), lambda evidence: {"": np.repeat(values, 20)}, " %")
    assert statement.find({}).verdict == expected
    assert statement.find({}).measured.endswith(" %")
    assert (statement.paper, statement.rule) == ("1 to 3 %", "the interval of what lies within 1 to 3 %")


def test_a_hypothesis_of_several_quantities_has_a_range_for_each():
    halves = np.full(4, 0.5)
    statement = hypothesis("Cause", "what", {"a": (0, 1), "b": (2, 3)}, lambda evidence: {"a": halves, "b": halves})
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
        assert why_violations.unsafe_share(count) == pytest.approx((wrong > count + 5).mean(), abs=0.03)


@pytest.mark.parametrize("model", ["CM", "PBM"])
def test_made_lists_have_their_number_of_wrong_pairs(model):
    found = list(why_violations.lists_with(["yandex-9982", "yandex-98721"], model, (0, 4, 17)))
    counts = [wrong_pairs(instance.model(model).attraction, instance.initial_ranking) for instance in found]
    assert counts == [0, 4, 17] * 2
    assert found[1].name == "yandex-9982-wrong4"
    again = why_violations.lists_with(["yandex-9982", "yandex-98721"], model, (0, 4, 17))
    assert [each.initial_ranking.tolist() for each in again] == [each.initial_ranking.tolist() for each in found]


def violating(shares, own=None):
    """Evidence in which agents violate safety in a share of the sessions, on made lists by the level."""
    names = [f"one-wrong{level}" for level in why_violations.LEVELS]
    evidence = {}
    for env, model in zip(BUBBLE, why_violations.MODELS, strict=True):
        frames = [
            rows(env, agent, lambda steps, share=share: share * steps, "violations", [name], np.array([50, 100]))
            for agent, of_levels in shares(model).items()
            for name, share in zip(names, of_levels, strict=True)
        ]
        evidence[f"why-violations-{model}"] = curves(*frames)
    agents = own or {}
    made = [frame for env in BUBBLE for frame in at_rate(env, agents, "violations", steps=np.array([100, 10_000]))]
    evidence[why_violations.OWN] = curves(*made) if made else curves(*at_rate(PBM, {LAST: 1}, "violations"))
    return evidence


def test_unsafe_agents_are_measured_by_random_lists():
    for share, expected in ((0.499, "yes"), (0.3, "no")):
        agents = {"Random": 0.5, why_violations.TOP_RANK: share, "BatchRank": share, LAST: 0.2, why_violations.LEVEL: 0.1}
        evidence = violating(lambda model: {LAST: [0.1] * 4}, agents)
        statements = STUDIES["why-violations"].statements[:2]
        assert [statement.find(evidence).verdict for statement in statements] == [expected] * 2
        assert why_violations.without_loglog(evidence[why_violations.OWN], BUBBLE[0]) == pytest.approx(np.full(4, -50))


def test_what_is_left_is_taken_at_the_wrong_pairs_that_the_paper_implies():
    """Exact on lists in random order; CascadeKL-UCB as often as in the paper, whatever the list, or half as often."""

    def shares(model, part=1.0):
        published = VIOLATIONS[LAST][why_violations.MODELS.index(model)] / 100
        random = [why_violations.unsafe_share(level) for level in why_violations.LEVELS]
        return {why_violations.TOP_RANK: random, LAST: [part * published] * 4, FIRST: [published] * 4}

    evidence = violating(shares)
    texts = {
        reading: f"They also explain the differences for CascadeKL-UCB ({reading})" for reading in ("last_click", "first_click")
    }
    assert verdict("why-violations", texts["last_click"], evidence) == "yes"
    assert (
        verdict("why-violations", "Lists with the implied |V_0| explain the differences for TopRank and BatchRank", evidence)
        == "yes"
    )
    assert all(abs(why_violations.on_lists_foretold(evidence, env)).max() < 0.01 for env in BUBBLE)
    halved = violating(lambda model: shares(model, 0.5))
    assert verdict("why-violations", texts["last_click"], halved) == "no"
    assert verdict("why-violations", texts["first_click"], halved) == "yes"
    assert [round(why_violations.implied(model), 1) for model in why_violations.MODELS] == [11.4, 13.7, 16.0]
    (text,) = (each.text for each in STUDIES["why-violations"].statements if "imply" in each.text)
    assert f"({', '.join(f'{model} {why_violations.implied(model):.1f}' for model in why_violations.MODELS)})" in text


# -------------------------------------------------------------------------------------------------------------------- exp3


def test_the_best_gamma_is_compared_in_panel_c():
    def panel(best):
        rates = {LAST: 0.015, why_exp3.LEVEL: 0.0151, why_exp3.EXP3: 0.05, **dict.fromkeys(why_exp3.TUNED, 0.03)}
        return curves(*at_rate(PBM, rates | {why_exp3.TUNED[1]: best}))

    assert why_exp3.nothing_left(panel(0.02)).verdict == "no"
    left = why_exp3.nothing_left(panel(0.01))
    assert left.verdict == "yes"
    assert left.measured.endswith("with gamma=0.01")
    assert why_exp3.change(panel(0.01)).mean() == pytest.approx(1e-4, rel=1e-2)


def test_queries_are_counted_where_exp3_ends_lower():
    names = ["x", "y", "z"]
    frames = at_rate(PBM, {LAST: 0.01}, instances=names) + [
        rows(PBM, why_exp3.EXP3, lambda steps, rate=rate: rate * steps, instances=[name])
        for name, rate in zip(names, (0.02, 0.005, 0.03), strict=True)
    ]
    np.testing.assert_array_equal(why_exp3.queries_ahead(curves(*frames), why_exp3.EXP3), [1, 1, 1, 1])


# ------------------------------------------------------------------------------------------------------------ early regret


def test_a_crossing_is_the_last_step_at_which_the_first_is_not_above():
    steps = np.array([1, 10, 100, 1000])
    theirs = np.array([[2.0, 4.0, 6.0, 8.0]])
    for ours, expected in (([1, 5, 6, 9], 2), ([1, 5, 7, 9], 0), ([1, 2, 3, 4], 3), ([3, 5, 7, 9], 0)):
        assert why_early_regret.crossing(np.array([ours], float), theirs, steps) == pytest.approx(expected)


def test_early_ends_where_the_curves_cross():
    bubble, top = why_early_regret.BUBBLE_RANK, why_early_regret.TOP_RANK

    def evidence(crossed):
        """TopRank stops losing when BubbleRank, which goes on, has as much."""
        frames = [
            frame
            for env in BUBBLE
            for frame in (
                rows(env, bubble, lambda steps: 0.1 * steps),
                rows(env, top, lambda steps: np.minimum(0.3 * steps, 0.1 * crossed + 0.01)),
                rows(env, "BatchRank", lambda steps: 0.3 * np.minimum(steps, 3334)),
            )
        ]
        return {why_early_regret.OWN: curves(*frames)}

    sooner, slower = evidence(1000), evidence(90_000)
    assert why_early_regret.log_crossing(sooner[why_early_regret.OWN], BUBBLE[0], top) == pytest.approx(
        np.full(4, 3.0), abs=0.01
    )
    assert verdict("why-early-regret", "The difference is explained", sooner) == "no"
    assert why_early_regret.log_crossing(slower[why_early_regret.OWN], BUBBLE[2], top).mean() > 4.9
    assert finding("why-early-regret", "The difference is explained", slower).measured.count("times BatchRank's") == 3


# ------------------------------------------------------------------------------------------------------------------ change


def test_growth_is_an_exponent_of_the_horizon():
    steps = {horizon: np.unique(np.linspace(0, horizon, 51)[1:].astype(int)) for horizon in (100_000, 400_000)}

    def part(horizon, power):
        made = (rows(why_change.CHANGING, agent, lambda n: n**power, steps=steps[horizon]) for agent in why_change.ADAPTIVE)
        return curves(*made)

    evidence = {why_change.PAPERS: part(100_000, 1.0), why_change.RATE: part(400_000, 1.0)}
    assert why_change.exponent(evidence, why_change.RATE, "CascadeDUCB") == pytest.approx(np.ones(4), abs=1e-4)
    assert why_change.share_of_rate(evidence[why_change.RATE], "CascadeDUCB") == pytest.approx(np.ones(4))
    assert verdict("why-change", "The difference is explained: ", evidence) == "no"
    assert why_change.first_epoch(evidence[why_change.PAPERS], "CascadeDUCB") == pytest.approx(np.ones(4))
    assert why_change.after_a_change(evidence[why_change.PAPERS], "CascadeDUCB") == pytest.approx(np.full(4, 0.2))
    bent = {why_change.PAPERS: part(100_000, 0.5)}
    assert verdict("why-change", "The difference is explained: ", bent) == "yes"
    assert why_change.times_worse(bent[why_change.PAPERS], "CascadeDUCB") == pytest.approx(
        np.full(4, 0.9**0.5 - 0.8**0.5) / 0.1**0.5
    )


# ---------------------------------------------------------------------------------------------------------------- UBM lead


def test_the_share_that_clicks_once_is_that_of_all_outcomes():
    """Here summed over all outcomes of four positions."""
    rng = np.random.default_rng(0)
    examination, attraction = np.tril(rng.random((4, 4))), rng.random(4)
    chances = np.zeros(5)
    for outcome in np.ndindex(2, 2, 2, 2):
        chance, last = 1.0, 0
        for k, click in enumerate(outcome):
            p = examination[k, last] * attraction[k]
            chance *= p if click else 1 - p
            last = k + 1 if click else last
        chances[sum(outcome)] += chance
    share = why_ubm_lead.single_share(attraction[None], examination)
    assert share == pytest.approx(chances[1] / chances[1:].sum())


def test_users_are_made_to_click_once(tmp_path):
    sources = why_ubm_lead.contextual(["yandex-9982"], why_ubm_lead.L, why_ubm_lead.D)
    for labels in (False, True):
        (file,) = saved(why_ubm_lead.users(sources, True, labels), tmp_path)
        assert why_ubm_lead.clicking_once(make_env(why_ubm_lead.ENV, file)) == pytest.approx(92, abs=0.1)
    assert why_ubm_lead.clicking_once(make_env(why_ubm_lead.ENV, sources[0])) < 70


def test_a_lead_is_compared_with_the_papers():
    def evidence(lead):
        rates = {why_ubm_lead.TUNED_OURS: 0.5 * (1 + lead), why_ubm_lead.TUNED_BASELINE: 0.5, why_ubm_lead.BASELINE: 0.4}
        columns = [at_rate(why_ubm_lead.ENV, rates, column) for column in ("clicks", "reward")]
        keys = ["env", "instance", "agent", "run", "step"]
        joined = [one.join(two, on=keys) for one, two in zip(*columns, strict=True)]
        return {why_ubm_lead.ALL: curves(*joined)}

    small, large = (evidence(lead)[why_ubm_lead.ALL] for lead in (0.01, 0.2))
    assert verdict("why-ubm-lead", "Users with all three causes explain the paper's lead (K = 6)", evidence(0.01)) == "no"
    assert why_ubm_lead.lead(small, why_ubm_lead.CTR_SUM).mean() == pytest.approx(1.0)
    assert why_ubm_lead.lead(large, why_ubm_lead.CTR_SET, step=100).mean() == pytest.approx(20.0)


def test_the_least_and_the_most_lead_are_those_of_instances():
    ours, theirs = why_ubm_lead.TUNED_OURS, why_ubm_lead.TUNED_BASELINE
    ends = [at_rate(why_ubm_lead.ENV, {ours: rate, theirs: 0.4}, "clicks", instances=(name,))
            for name, rate in (("one", 0.44), ("two", 0.6))]  # fmt: skip
    assert why_ubm_lead._of_draws(curves(*ends[0], *ends[1]), theirs) == "+10.0 to +50.0"
