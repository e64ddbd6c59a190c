"""The statements of the studies, on tables made to hold or to break them: nothing is played."""

import itertools
from functools import partial

import numpy as np
import polars
import pytest
from made_curves import STEPS, curves, piecewise, rows

from clickgym.envs import load_instance
from clickgym.runner.make import make_env
from clickgym.runner.play.metrics import wrong_pairs
from clickgym_lab.studies import (
    batch_rank,
    bubble_fig1,
    bubble_fig2,
    bubble_fig3,
    bubble_fig4,
    changing_users,
    contextual_ctr,
    nonstat_bound,
    nonstat_fig1,
    nonstat_fig2,
    oltr,
    pbm_bound,
    pbm_synthetic,
    re_ranking,
    ubm_fig2,
    ubm_table1,
    when_rl_pays,
    why_violations,
    zoghi_fig1,
    zoghi_fig2,
)
from clickgym_lab.studies.claims import Curves

# ------------------------------------------------------------ made results


def sweep(envs, agents, changes, default=1.0, **kept):
    """Curves of all pairs: those of ``changes``, by environment and agent or by the agent's name,
    or the default; each is a function of the steps, a rate, or the rates of equal parts.
    """
    frames = []
    for env, agent in itertools.product(envs, agents):
        name = agent.partition(":")[0]
        value = changes.get(f"{env} {agent}", changes.get(name, default))
        if not callable(value):
            value = piecewise(*np.atleast_1d(value))
        frames.append(rows(env, agent, value, **kept))
    return curves(*frames)


def panels(changes):
    """Of figure 1 of Zoghi et al., with changes by panel and agent."""
    results = {}
    for panel, (env, query) in zoghi_fig1.PANELS.items():
        here = {key.replace(panel, env, 1): changes[key] for key in changes if key[0] == panel}
        played = sweep([env], batch_rank.AGENTS, here, 1e-5, instances=[query])
        results[f"zoghi-fig1-{panel}"] = played
    return results


def fig2(changes, **kept):
    envs, queries = (batch_rank.CM, batch_rank.PBM), [f"q{i}" for i in range(6)]
    return {"zoghi-fig2": sweep(envs, batch_rank.AGENTS, changes, 1e-5, instances=queries, **kept)}


def changing(changes):
    agents = (*changing_users.ADAPTIVE, *nonstat_fig1.STUBBORN)
    return {"nonstat-fig1": sweep([changing_users.CM], agents, changes)}


def lagree(changes):
    """Regret as multiples of the lower bound, that of the small instance in both parts."""
    bound = pbm_bound.bound_per_log(make_env(pbm_bound.PBM, "lagree2016-small"))
    results = {}
    for part in (pbm_synthetic.SMALL, pbm_synthetic.REALISTIC):
        frames = []
        for agent in pbm_bound.AGENTS:
            name = agent.partition(":")[0]
            factor = changes.get(f"{part} {name}", changes.get(name, 1.0))
            frames.append(rows(pbm_bound.PBM, agent, lambda n, f=factor: f * bound * np.log(n)))
        results[part] = curves(polars.concat(frames).with_columns(lower_bound=bound))
    return results


def bubbles(column, changes):
    """A column of figures 1, 2 and 4 of Li et al."""
    kept = {"column": column, "instances": "ab"}
    return {"bubble": sweep(re_ranking.ENVS, re_ranking.AGENTS, changes, **kept)}


def ctrs(part, lead):
    """Curves of He et al.'s agents: ``lead[agent](k)`` more CTR than 0.5, whatever α, less 0.1 for
    the theorem's.
    """
    table = []
    for k, (agent, specs), run in itertools.product(
        contextual_ctr.POSITIONS, contextual_ctr.SPECS.items(), range(4)
    ):
        for spec in specs:
            more = lead.get(agent, lambda k: 0.0)(k) - 0.1 * (spec == agent) + 1e-6 * run
            rates = np.array([0.2 - more, 0.5 + more, 2 * (0.5 + more)])
            steps = (200, 500, 800, 1000)
            table += [(contextual_ctr.ubm(k), "one", spec, run, n, *(n * rates)) for n in steps]
    names = ["env", "instance", "agent", "run", "step", "regret", "reward", "clicks"]
    return {part: curves(polars.DataFrame(table, names, orient="row"))}


EVIDENCE = {
    zoghi_fig1: panels,
    zoghi_fig2: fig2,
    nonstat_fig1: changing,
    pbm_synthetic: lagree,
    bubble_fig1: partial(bubbles, "regret"),
    bubble_fig2: partial(bubbles, "violations"),
    bubble_fig4: partial(bubbles, "ndcg"),
    ubm_fig2: partial(ctrs, ubm_fig2.FIG2),
    ubm_table1: partial(ctrs, ubm_table1.TABLE1),
}


def verdicts(study, results, words):
    """The initials of the verdicts of the statements with these words, by themselves."""
    statements = [row for row in study.claims(results) if words in row.text]
    return "".join(row.finding.verdict[0] for row in statements)


# ------------------------------------------------------------ statements


def until(windows):
    """Regret in so many of a hundred windows, and none later."""
    return (1,) * windows + (0,) * (100 - windows)


EXP3 = {f"{panel} RankedExp3": 0.1 for panel in "abc"}
ZOGHI1 = [
    ("performs very well in the CM", {}, "y"),
    ("performs very well in the CM", {"b CascadeKLUCB": 2e-3}, "n"),
    ("performs very well in the CM", {"c CascadeKLUCB": 2e-3}, "y"),
    ("learns the optimum in all three", {"a BatchRank": (1,) * 99 + (9e-4,)}, "y"),
    ("learns the optimum in all three", {"c BatchRank": (0,) * 99 + (1.1e-3,)}, "n"),
    ("BatchRank outperforms RankedExp3", EXP3, "y"),
    ("BatchRank outperforms RankedExp3", {**EXP3, "b BatchRank": 0.2}, "n"),
    ("often learns quickly", {"a BatchRank": until(20), "b BatchRank": until(80)}, "y"),
    ("often learns quickly", {"a BatchRank": until(80), "b BatchRank": until(20)}, "n"),
    ("often learns quickly", {"a BatchRank": until(50), "b BatchRank": until(100)}, "y"),
    ("often learns quickly", {"a BatchRank": until(100), "b BatchRank": until(100)}, "c"),
    (  # an early return is not for good
        "often learns quickly",
        {"a BatchRank": (1, *(0,) * 88, 1, *(0,) * 10), "b BatchRank": until(50)},
        "n",
    ),
    ("converge to a suboptimal list", {f"c {batch_rank.LAST}": 2e-3}, "yn"),
    ("converge to a suboptimal list", {f"c {batch_rank.FIRST}": 2e-3}, "ny"),
    ("converge to a suboptimal list", {f"c {batch_rank.LAST}": 9e-4}, "nn"),
    ("converge to a suboptimal list", {f"c {batch_rank.LAST}": (1, 1e-2, 1, 1, 7e-3)}, "nn"),
    ("over time (c)", {f"c {batch_rank.LAST}": 0.1, "c RankedExp3": 0.05}, "yn"),
]
ZOGHI2 = [
    ("CM: CascadeKL-UCB outperforms", {f"{batch_rank.CM} BatchRank": 0.1}, "y"),
    ("CM: CascadeKL-UCB outperforms", {f"{batch_rank.CM} {batch_rank.LAST}": 0.1}, "n"),
    ("few runs of BatchRank", {}, "y"),
    ("few runs of BatchRank", {"BatchRank": 0.01}, "n"),
    ("is worst in both", {"RankedExp3": 0.1}, "y"),
    *[
        ("is worst in both", {"RankedExp3": 0.1, f"{batch_rank.PBM} {better}": 0.2}, "n")
        for better in batch_rank.AGENTS[:-1]
    ],
]


def epochs(first, *others):
    """Rates of ten epochs, of which the first counts not."""
    return {"CascadeDUCB": first + 9 * others}


def tenths(ninth):
    return {"CascadeKLUCB": (0.01, *[5] * 7, 0.01 * ninth, 5)}


LOW = {"CascadeDUCB": 0.5, "CascadeSWUCB": 0.4}
NONSTAT = [
    ("detects the changes", epochs((9, 0, 0, 0, 9), 1, 9, 9, 9, 0.4), "yn"),
    ("detects the changes", epochs((9, 0, 0, 0, 9), 1, 0, 0, 0, 0.6), "nn"),
    ("detects the changes", epochs((0, 0, 0, 0, 0), 0, 9, 9, 9, 0.1), "nn"),
    *[
        ("four times as much", tenths(ninth), verdict)
        for ninth, verdict in {1.5: "n", 2.5: "y", 7.5: "y", 8.5: "n"}.items()
    ],
    ("has less regret than", LOW, "yy"),
    *[("has less regret than", {**LOW, rival: 0.45}, "ny") for rival in nonstat_fig1.STUBBORN],
    ("slightly better", LOW, "y"),
    ("slightly better", {"CascadeDUCB": 0.4, "CascadeSWUCB": 0.5}, "n"),
]
ABOVE = {"PBMUCB": 2.0, "RankedKLUCB": 3.0}
LAGREE = [
    *[
        ("is near the lower bound", {"PBMPIE": factor}, verdict)
        for factor, verdict in {0.45: "ny", 0.55: "yy", 2.1: "ny"}.items()
    ],
    ("is above PBM-PIE", ABOVE, "y"),
    ("is above both", ABOVE, "y"),
    ("is above PBM-PIE", {**ABOVE, f"{pbm_synthetic.REALISTIC} PBMTS": 2.5}, "n"),
    ("is above both", {**ABOVE, f"{pbm_synthetic.REALISTIC} PBMTS": 2.5}, "y"),
    ("is above both", {**ABOVE, f"{pbm_synthetic.REALISTIC} PBMTS": 3.5}, "n"),
]


def ahead(at):
    return {"BubbleRank": lambda steps: steps * np.where(steps == at, 0.5, 2.0)}


def violations(agent, factor):
    """Those of the paper in the first 100 sessions, in the PBM so many times as many."""
    counts = np.array(bubble_fig2.VIOLATIONS[agent]) * [1, 1, factor]
    return {
        f"{env} {agent}": lambda steps, count=count: np.where(steps == 100, count, steps)
        for env, count in zip(re_ranking.ENVS, counts, strict=True)
    }


def beside(gap):
    """BatchRank with 50 violations in 100 sessions, TopRank with more."""
    top = lambda steps: 0.5 * steps + gap * (steps >= 100)  # noqa: E731
    return {"BatchRank": 0.5, "TopRank": top}


BUBBLE1 = [
    ("regret than BatchRank and TopRank", ahead(100), "yny"),
    ("regret than BatchRank and TopRank", ahead(1000), "nyy"),
    ("regret than BatchRank and TopRank", ahead(100_000), "nnn"),
]
BUBBLE2 = [
    *[
        (f"Violations of {agent} in", violations(agent, factor), verdict)
        for agent in bubble_fig2.VIOLATIONS
        for factor, verdict in {0.74: "n", 0.76: "y", 1.26: "n"}.items()
    ],
    *[
        ("TopRank is close to", beside(gap), verdict)
        for gap, verdict in {9: "y", -9: "y", 11: "n", -11: "n"}.items()
    ],
]
NDCG = (0.0,) * 99
EVEN = dict.fromkeys(re_ranking.AGENTS, 0.9)


def start(agent, gap):
    """NDCG of 0.9, by a gap more in the first 100 sessions."""
    return {**EVEN, agent: lambda steps: 0.9 * steps + gap * np.minimum(steps, 100)}


def dip(size):
    return {"BubbleRank": (1.0,) * 37 + (1.0 - size,) + (1.0,) * 62}


BUBBLE4 = [
    ("of TopRank approaches 1", {"TopRank": (*NDCG, 0.989)}, "n"),
    ("of TopRank approaches 1", {"TopRank": (*NDCG, 0.991)}, "y"),
    ("starts near", start("BubbleRank", 0.049), "y"),
    ("starts near", start("BubbleRank", -0.06), "n"),
    ("starts near", start("BubbleRank", 0.06), "n"),
    ("TopRank starts far below", start("TopRank", -0.06), "y"),
    ("TopRank starts far below", start("TopRank", -0.04), "n"),
    ("BatchRank starts far below", start("TopRank", -0.06), "n"),
    ("BubbleRank and TopRank are similar", {**EVEN, "TopRank": 0.885}, "y"),
    ("BubbleRank and TopRank are similar", {**EVEN, "TopRank": 0.875}, "n"),
    ("never much worse", dip(0.04), "y"),
    ("never much worse", dip(0.06), "n"),
]
HIGHEST, GROWS, BEHIND = "has the highest CTR", "lead over C2UCB grows", "C2UCB has fallen behind"
AS_PAPER = {"UBMLinUCB": lambda k: 0.02 * k, "C2UCB": lambda k: -0.01 * k}
STEADY = {"UBMLinUCB": lambda k: 0.06, "PBMLinUCB": lambda k: -0.01}
SHRINKING = {"UBMLinUCB": lambda k: 0.02 * (6 - k), "C2UCB": lambda k: -0.01}
HE = [
    *((words, AS_PAPER, "yy") for words in (HIGHEST, GROWS, BEHIND)),
    (HIGHEST, SHRINKING, "nn"),
    (GROWS, STEADY, "nn"),
    (GROWS, SHRINKING, "nn"),
    (BEHIND, STEADY, "nn"),
]
WORSE = "PBM-UCB, which knows no features, performs worse"
TABLE1 = [
    *HE[:3],
    (WORSE, {"PBM-UCB": lambda k: -0.05}, "yy"),
    (WORSE, {"PBM-UCB": lambda k: 0.05}, "ny"),  # the theorem's α costs 0.1
]
CASES = {
    zoghi_fig1: ZOGHI1,
    zoghi_fig2: ZOGHI2,
    nonstat_fig1: NONSTAT,
    pbm_synthetic: LAGREE,
    bubble_fig1: BUBBLE1,
    bubble_fig2: BUBBLE2,
    bubble_fig4: BUBBLE4,
    ubm_fig2: HE,
    ubm_table1: TABLE1,
}


@pytest.mark.parametrize(
    ("study", "words", "changes", "expected"),
    [
        pytest.param(study, *case, id=f"{study.__name__}-{i}")
        for study, cases in CASES.items()
        for i, case in enumerate(cases)
    ],
)
def test_statement(study, words, changes, expected):
    assert verdicts(study, EVIDENCE[study](changes), words) == expected


# ------------------------------------------------------------ statements about single tables


def test_crossing_at_two_million_sessions():
    """Before that BatchRank is behind, then ahead, and at the end behind again."""

    def batch(steps):
        return np.interp(steps, [0, 1.8e6, 2e6, 1e7], [0, 1e5, 1e5 + 100, 1e6])

    def found(batch_rank, cascade):
        kept = {"steps": STEPS * 100}
        results = fig2({"BatchRank": batch_rank, "CascadeKLUCB": cascade}, **kept)
        return verdicts(zoghi_fig2, results, "at two million sessions")

    assert found(batch, lambda steps: 0.01 * steps) == "yy"
    assert found(lambda steps: 0.01 * steps, batch) == "nn"


@pytest.mark.parametrize(
    ("count", "full", "expected"),
    [(1, True, "yes"), (6, True, "no"), (0, True, "no"), (1, False, "cannot tell")],
)
def test_one_sixth_of_the_runs(count, full, expected):
    table = fig2({})["zoghi-fig2"].table
    queries = [f"q{i}" for i in range(count)]
    stuck = polars.col("instance").is_in(queries) & polars.col("agent").str.contains("Cascade")
    regret = polars.when(stuck).then(0.01 * polars.col("step")).otherwise("regret")
    one = Curves(table.with_columns(regret=regret), full)
    assert zoghi_fig2.one_sixth(one, "CascadeKLUCB").verdict == expected


def test_single_queries_must_all_hold():
    """CascadeSWUCB learns on one of two."""
    learns, same = piecewise(1, 1, 1, 1, 0.1), piecewise(1.0)
    values = {"CascadeDUCB": [learns, learns], "CascadeSWUCB": [learns, same]}
    frames = [
        rows(changing_users.CM, agent, value, instances=[query])
        for agent in nonstat_fig2.SINGLE
        for query, value in zip("xy", values.get(agent, [same, same]), strict=True)
    ]
    results = {"nonstat-fig2": curves(*frames)}
    assert verdicts(nonstat_fig2, results, "is sublinear on single queries") == "yn"
    assert verdicts(nonstat_fig2, results, "RankedExp3 is linear on single queries") == "y"
    assert verdicts(nonstat_fig2, results, "on every query (ours)") == "yn"


@pytest.mark.parametrize(("times", "expected"), [(0.9, "nyyy"), (1.1, "yyyn"), (3.6, "yynn")])
def test_bound_of_two_changes(times, expected):
    """The square root of ln 100,000 is 3.39."""
    regret = sweep([changing_users.CM], nonstat_bound.BOUNDED, {}, lambda n: times * 2 * np.sqrt(n))
    results = {"nonstat-bound": curves(regret.table.with_columns(lower_bound=2.0))}
    assert verdicts(nonstat_bound, results, "") == expected


def test_one_violation_breaks_safety():
    safe = bubbles("violations", {"BubbleRank": 0.0})["bubble"].table
    assert bubble_fig2.safe(Curves(safe)).measured == "0 of 24 runs of 100,000 sessions"
    assert bubble_fig2.safe(Curves(safe)).verdict == "yes"
    hit = (polars.col("agent") == "BubbleRank") & (polars.col("step") == 100_000)
    last = hit & (polars.col("instance") == "b") & (polars.col("run") == 3)
    violations = polars.when(last & (polars.col("env") == re_ranking.PBM)).then(1.0)
    once = Curves(safe.with_columns(violations.otherwise("violations").alias("violations")))
    assert bubble_fig2.safe(once).measured.startswith("1 of 24 runs")
    assert bubble_fig2.safe(once).verdict == "no"


@pytest.mark.parametrize(("power", "expected"), [(1, "yes"), (4, "no")])
def test_regression_on_wrong_pairs(power, expected):
    lists = list(bubble_fig3.random_lists(["yandex-9", "yandex-990"]))
    wrong = [bubble_fig3.wrong_in_list(make_env(re_ranking.PBM, instance)) for instance in lists]
    frames = [
        rows(
            re_ranking.PBM,
            "BubbleRank",
            lambda s, v=5.0 * count**power + 1000 * (i >= 10): np.full(len(s), v),
            instances=[instance.name],
            runs=1,
        ).with_columns(wrong_pairs=count)
        for i, (instance, count) in enumerate(zip(lists, wrong, strict=True))
    ]
    finding = bubble_fig3.linear_in_pairs(curves(*frames), re_ranking.PBM)
    assert finding.verdict == expected
    if power == 1:
        assert finding.measured.startswith("5 ± ")


@pytest.mark.parametrize(("ratio", "expected"), [(1.5, "no"), (1.7, "yes"), (2.5, "no")])
@pytest.mark.parametrize("per_loss", [False, True])
def test_doubling(ratio, expected, per_loss):
    """Of the regret, or of the regret over the loss of a session at the start."""
    frames = []
    for i, name in enumerate(bubble_fig3.CHI_MIN, start=1):
        factor = 2.0**i * (ratio / 2 if i > 2 else 1) * (0.9 - 0.5**i if per_loss else 1)
        frames.append(rows("PBMRank-v0", "BubbleRank", lambda s, f=factor: f * s, instances=[name]))
    finding = bubble_fig3.doubles(curves(*frames), per_loss)
    assert finding.verdict == expected
    assert f"i = 2 to 3: {ratio:.3g} ± " in finding.measured


@pytest.mark.parametrize(("factor", "expected"), [(0.4, "no"), (1.9, "yes"), (2.1, "no")])
def test_lead_between_half_and_twice(factor, expected):
    """CTR_sum is twice CTR_set here, so that both leads are shares of it."""
    for kind, share in ubm_table1.LIFT.items():
        lead = {"UBMLinUCB": lambda k, s=share: 0.5 * factor * s}
        one = ctrs(ubm_fig2.FIG2, lead)[ubm_fig2.FIG2]
        assert ubm_table1.as_much(one, contextual_ctr.BEST, kind).verdict == expected


@pytest.mark.parametrize(("agent", "expected"), [("PBM-UCB", "yy"), ("CMLinUCB", "nn")])
def test_agent_that_converges_late(agent, expected):
    """Its clicks are proportional to the square of the steps."""
    one = ctrs(ubm_table1.TABLE1, {})[ubm_table1.TABLE1].table
    share = polars.when(polars.col("agent").str.starts_with(agent)).then(polars.col("step") / 1000)
    late = Curves(one.with_columns(clicks=polars.col("clicks") * share.otherwise(1.0)))
    assert verdicts(ubm_table1, {ubm_table1.TABLE1: late}, "converges more slowly") == expected


def test_ctr_set_is_the_optimum_less_the_regret():
    """Clicks that were luck, in one agent's sessions only, do not lift that agent."""
    one, env = ctrs(ubm_fig2.FIG2, {})[ubm_fig2.FIG2], contextual_ctr.ubm(3)
    lucky = (polars.col("agent") == "UBMLinUCB") & (polars.col("env") == env)
    reward = polars.col("reward") + polars.when(lucky).then(0.25 * polars.col("step")).otherwise(0)
    luck = Curves(one.table.with_columns(reward=reward))
    ours, theirs = (
        contextual_ctr.ctr(luck, env, agent, contextual_ctr.THEOREM, contextual_ctr.CTR_SET)[:, -1]
        for agent in ("UBMLinUCB", "C2UCB")
    )
    np.testing.assert_allclose(ours, theirs)
    np.testing.assert_allclose(ours.mean(), 0.4 + 0.25 / 26, atol=1e-5)  # shared by 26 agents


def test_best_alpha_is_measured_in_other_runs():
    one, env = ctrs(ubm_fig2.FIG2, {})[ubm_fig2.FIG2], contextual_ctr.ubm(3)
    best = polars.col("agent") == "C2UCB:alpha=0.3"
    good, bad = best & (polars.col("run") < 2), best & (polars.col("run") >= 2)
    regret = polars.when(good).then(0.0).when(bad).then(polars.col("step")).otherwise("regret")
    one = Curves(one.table.with_columns(regret=regret))
    assert contextual_ctr.chosen(one, env, "C2UCB", contextual_ctr.BEST) == "C2UCB:alpha=0.3"
    assert contextual_ctr.chosen(one, env, "C2UCB", contextual_ctr.THEOREM) == "C2UCB"
    values = contextual_ctr.ctr(one, env, "C2UCB", contextual_ctr.BEST, contextual_ctr.CTR_SET)[
        :, -1
    ]
    assert values.shape == (2,)
    assert (values < 0).all()  # the two runs in which it was bad


def test_contextual_instances_are_taken_as_they_are(tmp_path):
    own = str(tmp_path / "mine.json")
    load_instance("linear:n_positions=6,n_items=8").save(own)
    made = "linear:query=yandex-9,n_items=12,n_features=10,n_positions=6,seed=0"
    assert contextual_ctr.contextual(["yandex-9", own], 12, 10) == [made, own]


def test_comparison_after_as_many_sessions_and_runs():
    short = STEPS[STEPS <= 10_000]

    def part(agent, rate, steps, runs):
        value = lambda steps: rate * steps  # noqa: E731
        kept = {"instances": ["habit"], "steps": steps, "runs": runs}
        return curves(rows(when_rl_pays.ENV, agent, value, **kept))

    results = {"agents": part("planner", 0.1, STEPS, 2), "learners": part("PPO", 0.2, short, 4)}
    finding = when_rl_pays.beats(results, "habit", "planner", "PPO")
    assert finding.verdict == "yes"
    assert finding.measured.startswith("1,000 against 2,000 after 10,000, a gap of 1,000")


def test_share_of_unsafe_orders():
    rounded = [round(why_violations.implied(env), 1) for env in re_ranking.ENVS]
    assert rounded == [11.4, 13.7, 16.0]


@pytest.mark.parametrize("model", ["CM", "PBM"])
def test_lists_with_wrong_pairs(model):
    queries = ["yandex-9982", "yandex-98721"]
    made, again = (list(why_violations.lists_with(queries, model, (0, 4, 17))) for _ in range(2))
    counts = [wrong_pairs(i.model(model).attraction, i.initial_ranking) for i in made]
    assert counts == [0, 4, 17] * 2
    assert made[1].name == "yandex-9982-wrong4"
    lists = [[i.initial_ranking.tolist() for i in instances] for instances in (made, again)]
    assert lists[0] == lists[1]


@pytest.mark.parametrize(("part", "expected"), [(1.0, "yes"), (0.5, "no")])
def test_violations_left_at_the_implied_list(part, expected):
    """TopRank exactly as lists in random order, CascadeKL-UCB as often as in the paper, whatever
    the list, or half as often.
    """
    results = {}
    for env in re_ranking.ENVS:
        published = part * why_violations.published(re_ranking.LAST, env) / 100
        frames = []
        for level in why_violations.LEVELS:
            shares = {
                why_violations.TOP_RANK: why_violations.unsafe_share(level),
                re_ranking.LAST: published,
            }
            for agent, share in shares.items():
                kept = {"instances": [f"one-wrong{level}"], "steps": np.array([50, 100])}
                frames.append(rows(env, agent, lambda s, x=share: x * s, "violations", **kept))
        results[f"why-violations-{env.partition('Rank')[0]}"] = curves(*frames)
    for env in re_ranking.ENVS:
        finding = why_violations.nothing_left(results, env, re_ranking.LAST)
        assert finding.verdict == expected
        assert why_violations.nothing_left_of_random(results, env).verdict == "yes"
        assert abs(why_violations.on_lists_above_predicted(results, env)).max() < 0.01


def judged(level):
    """Curves of the study oltr: nDCG ``level(agent, users)`` in all sessions and when trained."""
    results = {}
    agents = [oltr.SHUFFLED, "PDGD:learning_rate=9", *oltr.BANDITS, *oltr.LEARNERS]
    for part, names in ((oltr.SHORT, agents), (oltr.LONG, agents[1:2])):
        table = [
            (oltr.ENV, users, agent, run, n, n * value, value)
            for agent, users, run in itertools.product(names, oltr.USERS, range(4))
            for n in (500, 1000)
            for value in [level(part, agent.partition(":")[0], users) + 1e-6 * run]
        ]
        columns = ["env", "instance", "agent", "run", "step", oltr.NDCG, oltr.TRAINED]
        results[part] = Curves(polars.DataFrame(table, columns, orient="row"))
    return results


LEVELS = {"Shuffled": 0.6, "LinearTS": 0.7, "C2UCB": 0.7, "PPO": 0.3, "SAC": 0.4}
NOISE = {users: 0.01 * i for i, users in enumerate(oltr.USERS)}


@pytest.mark.parametrize(
    ("pdgd", "words", "expected"),
    [
        (0.65, "better lists while PDGD learns", "y"),
        (0.61, "better lists while PDGD learns", "n"),
        (0.65, "Noise slows PDGD down", "y"),
        (0.65, "noise has cost PDGD little", "y"),
        (0.65, "almost at random", "y"),
        (0.65, "With perfect users", "yy"),
        (0.71, "With perfect users", "nn"),
        (0.73, "With informational users", "yy"),
        (0.65, "With informational users", "nn"),
        (0.65, "worse lists than shuffled", "yy"),
    ],
)
def test_statements_of_judged_queries(pdgd, words, expected):
    """PDGD loses 0.01 with each step of noise, and gains 0.05 with time."""

    def level(part, agent, users):
        if agent == "PDGD":
            return pdgd - NOISE[users] + 0.05 * (part == oltr.LONG)
        return LEVELS[agent]

    assert verdicts(oltr, judged(level), words) == expected
