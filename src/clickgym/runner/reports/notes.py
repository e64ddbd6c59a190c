"""The notes below the table of final results.

A note is a sentence that a reader needs to judge the numbers: what an interval covers, which test p
comes from, what an agent was told besides clicks. `format_table` collects the notes, and each
function here yields the notes on one subject.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import polars
from polars import col

from ...agents import Learner
from ...core.checks import outside_unit_interval
from ...core.text import shorten
from ...envs.instances.instance import shipped_instances
from ...measure.metrics import is_sum
from ..fingerprint import warnings_of_same_users
from ..make.agents import requirements, resolve_agent
from .summaries import HAS_OTHER_USERS, IS_FROZEN, IS_LEARNER, IS_OWN, notes_by_agent, total_of

if TYPE_CHECKING:
    from ..results import Results


def notes_on_means(
    table: polars.DataFrame, means: Sequence[str], shown: Sequence[str], names: Mapping[str, str]
) -> Iterator[str]:
    """Yield notes on the columns with means: which are per session, and what was not measured.

    Args:
        table: the table that `Results.table` returned.
        means: the reward and the names of the metrics.
        shown: the headings of the columns that are shown.
        names: a mapping from headings to the names to show.
    """
    means = [name for name in means if name in shown]
    labels = {"reward": "Reward", **names}
    summed = [labels.get(name, name) for name in means if is_sum(name)]
    if "time" in shown and not summed:
        yield "Time is wall time per session."
    elif summed:
        has_time = "time" in shown
        *others, last = [*summed, *["time"] * has_time]
        subject = f"{', '.join(others)} and {last} are" if others else f"{last} is"
        yield f"{subject} per session{', and time is wall time' * has_time}."
    missing = table.filter(polars.any_horizontal(col(*means).is_null())) if means else table[:0]
    if len(missing.filter(IS_OWN)):
        yield (
            "– means not measured, because your own loop measures no additional metrics, and no "
            "reward that a wrapper changed."
        )
    if len(missing.filter(~IS_OWN)):
        yield "– means that the metric was not measured in every run, or was nan in some session."
    unknown_envs = table.filter(col("regret").is_null())["env"].unique(maintain_order=True)
    if len(unknown_envs):
        unknown_text = f"Regret is unknown in {', '.join(map(shorten, unknown_envs))}"
        yield (
            f"{unknown_text}, because info has no regret for this reward. A higher total reward "
            "is better."
        )


def notes_on_shares(
    table: polars.DataFrame, shares: Iterable[str], names: Mapping[str, str]
) -> Iterator[str]:
    """Yield a note on each metric that is declared a share, but whose mean is no share."""
    for name in sorted(shares):
        wrong = outside_unit_interval(table[name].drop_nulls().to_numpy())
        if len(wrong):
            yield (
                f"The mean of {names.get(name, name)} is {wrong[0]:.4g}, although is_share=True "
                "says that it is always between 0 and 1; leave out is_share."
            )


def notes_on_instances(
    results: Results, mixed: polars.DataFrame, names: Mapping[str, str], *, in_paper: bool
) -> Iterator[str]:
    """Yield notes on instances that do not stand for one kind of users: the rows ``mixed``, whose
    instances come from several families, two groups of users of one world, and the same users
    under two labels.
    """
    if len(mixed):
        envs = _join_names(
            [names.get(env, env) for env in mixed["env"].unique(maintain_order=True)]
        )
        shipped = shipped_instances()
        families = sorted(
            {
                "the shipped queries" if name in shipped else name.partition(":")[0]
                for name in mixed["instance"]
            }
        )
        yield (
            f"In {envs}, means are over different families ({_join_names(families)}), which do not "
            "stand for one kind of users, so they have no ± and no p."
        )
        if not in_paper:
            yield (
                "For a table of one family: clickgym report DIR --instances, or "
                "select(instances=...); by instance: --by-instance, or table(by_instance=True)."
            )
    arguments = re.split("[:,]", ",".join(results.names("instance")))
    if {"users=train", "users=test"} <= {*arguments}:
        yield (
            "users=train and users=test are two groups of users of one simulated world, not two "
            "independent instances, so ± is too narrow; show each group in its own table."
        )
    fingerprints = {
        label: fingerprint
        for config in results.configs
        for label, fingerprint in config.instances.items()
    }
    pairs = results.rows.select("env", "instance").unique(maintain_order=True)
    played = pairs.filter(col("instance").is_in([*fingerprints])).group_by("env").agg("instance")
    texts = [
        f"{text}."
        for labels in played["instance"]
        for text in warnings_of_same_users({label: fingerprints[label] for label in labels})
    ]
    yield from dict.fromkeys(texts)


def notes_on_pairs(
    table: polars.DataFrame,
    measure: str,
    shown: Sequence[str],
    names: Mapping[str, str],
    *,
    is_loss: bool,
) -> Iterator[str]:
    """Yield notes on comparisons: what the intervals cover, which agent is the reference, what a
    difference means, and which test p comes from, or why there is no p.

    Args:
        table: the table that `Results.table` returned.
        measure: what the table compares, as in `Results.table`.
        shown: the headings of the columns that are shown.
        names: a mapping from headings to the names to show.
        is_loss: whether less of the measure is better.
    """
    over = sorted({*table["over"]})
    if "instances" in over:
        has_these = "± these" in shown and table[f"{measure}_ci95_runs"].count() > 0
        these = " ± these covers more runs on exactly these instances." if has_these else ""
        yield f"± covers other instances like these.{these}"
    elif "runs" in over and table["reward_ci95"].count():
        yield "± covers more runs with these users. It says nothing about other users."
    compared = table.filter(col("difference").is_not_null())
    reference, name = table["reference"][0], names.get(measure, measure)
    if measure != "regret":
        order = "lower" if is_loss else "higher"
        yield f"Rows are sorted by {name}, of which a {order} mean is better."
    if len(compared) and "difference" in shown:
        units = " or ".join(over)
        ranked_by = total_of(table) if measure == "regret" else measure
        is_loss = is_loss and ranked_by != "total reward"
        better = f"{'Positive' if is_loss else 'Negative'} differences"
        if ranked_by == "regret or total reward":
            better = "Positive differences of regret and negative ones of reward"
        yield (
            f"Differences to {reference} are over the same {units}"
            f"{', with 95 % intervals' * bool(table['difference_ci95'].count())}. "
            f"{better} favour {reference}."
        )
    elif not len(compared) and measure != "regret" and table["agent"].n_unique() > 1:
        yield f"No agent can be compared with {reference} in {name}; choose another reference."
    if table["p"].count() and "p" in shown:
        against, intervals = f" against {reference}", ""
        if "difference" in shown:
            against, intervals = "", " The intervals of differences are not adjusted."
        yield (
            f"p comes from a two-sided paired t test{against}, and is adjusted for the number of "
            f"agents by Holm's procedure.{intervals}"
        )
    few = compared.filter(col("units") <= 2, col("over") != "families")
    if "difference" in shown:
        yield from (f"p needs at least three {over}." for over in sorted({*few["over"]}))


def _join_names(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1])] * (len(names) > 1) + [names[-1]])


def notes_on_users(results: Results, table: polars.DataFrame, *, in_paper: bool) -> Iterator[str]:
    """Yield notes that name the agents that learned from rewards only, and those whose users differ
    from the reference's users: agents that trained on their own users, played in your own loop, had
    other seeds, or played other instances. ``in_paper`` leaves out advice.
    """
    reference = table["reference"][0]
    if results.rows["agent"].n_unique() > 1:
        learners, separate, own_loops = (
            results.rows.filter(kind)["agent"].unique(maintain_order=True).to_list()
            for kind in (IS_LEARNER, HAS_OTHER_USERS, IS_OWN)
        )
        if learners and not results.rows.select(IS_LEARNER.all()).item():
            yield f"{_join_names(learners)} learned from rewards, not from single clicks."
        unpaired = {*table.filter(col("difference").is_null())["agent"]} - {reference}
        if separate:
            whose, who_has = ("its", "it has") if len(separate) == 1 else ("their", "they have")
            hence = f", so {who_has} no difference" if unpaired.intersection(separate) else ""
            yield f"{_join_names(separate)} had {whose} own users, not those of the others{hence}."
        if own_loops:
            yield (
                f"{_join_names(own_loops)}: no differences, because only runs that clickgym.run or "
                "sweep played are compared."
            )
        if not in_paper and unpaired.intersection([*separate, *own_loops]):
            yield 'To test such a difference, see "Compare two rows" in docs/own_rl_loop.md.'
        users = results.rows.select("agent", "env", "instance", "seed").unique()
        of_reference = users.filter(agent=reference)
        same_instance = users.join(of_reference, on=["env", "instance"], how="semi")["agent"]
        same_users = users.join(of_reference, on=["env", "instance", "seed"], how="semi")["agent"]
        other_seeds = unpaired & {*same_instance} - {*same_users, *separate, *own_loops}
        if others := [name for name in results.names("agent") if name in other_seeds]:
            yield f"{_join_names(others)}: no differences, because the seeds are not {reference}'s."
        if reference in separate and not table["difference"].count():
            yield f"No agent had the same users as {reference}, so there are no differences."
        yield from _notes_on_continued_training(results)
    is_one_policy = IS_FROZEN & col("sweep_seed").is_not_null()
    if frozen := [*results.rows.filter(is_one_policy)["agent"].unique(maintain_order=True)]:
        yield f"{_join_names(frozen)}: ± and p are about this policy, not about other trainings."
    instances = results.rows.group_by("env", "agent", maintain_order=True).agg(
        col("instance").unique().sort()
    )
    of_reference = instances.filter(agent=reference).select("env", of_reference="instance")
    different = instances.join(of_reference, on="env", maintain_order="left")
    different = different.filter(col("instance") != col("of_reference"))
    if len(different):
        who = _join_names(different["agent"].unique(maintain_order=True).to_list())
        yield (
            f"{who} did not play the same instances as {reference}, so do not compare their means; "
            "differences are over the instances that both played."
        )


def _notes_on_continued_training(results: Results) -> Iterator[str]:
    """Yield notes that name the runs of your own loop that continued a training, or evaluated it,
    with the seed of an earlier training.
    """
    runs = results.rows.filter(IS_OWN).select("agent", "env", "instance", "seed", "trained")
    later = runs.filter(col("trained") > 0)
    pairs = later.join(runs.filter(trained=0), on=["env", "instance", "seed"])
    for agent, earlier in pairs["agent", "agent_right"].unique(maintain_order=True).rows():
        yield (
            f"{agent} had the seed of {earlier}; if it continued this training, the same users "
            "came back."
        )


SOURCE_TEXTS = {
    "examination": "how often each position is looked at",
    "browsing": "how often each position is looked at, given the last click above it",
    "termination_order": "which positions end a session most often",
    "initial_ranking": "the production list",
    "optimal_ranking": "the best list (if users change, that of the first session)",
    "mean_sessions": "how long users stay",
    "click_rewards": "what a click is worth",
}
"""What an agent may be told about the users, by the source that `Agent.requires` names."""


def notes_on_knowledge(results: Results, names: Mapping[str, str]) -> Iterator[str]:
    """Yield notes on what agents were told in addition to clicks, which agents explore as much as
    their theory prescribes, which settings are better than the defaults, what agents had learned
    before these runs, and what was not recorded. What an agent was told is unknown if its class
    cannot be imported. ``names`` maps labels to the names to show.
    """
    sentences, advice = [], dict[str, None]()
    by_theory: dict[str, list[str]] = {}  # labels of agents, by their `Agent.theory_argument`
    with_memory = {*results.rows.filter(col("users_per_stream").is_not_null())["agent"]}
    for label in results.names("agent"):
        maker: Any = None
        arguments: Mapping[str, Any] = {}
        with suppress(Exception):  # a user's module may be missing, or fail
            maker, arguments = resolve_agent(results.spec("agent", label))
        argument = getattr(maker, "theory_argument", None)
        if argument and arguments.get(argument) is None:
            by_theory.setdefault(argument, []).append(names.get(label, label))
        # not inherited, because a subclass may have other defaults
        if not arguments and (text := getattr(maker, "__dict__", {}).get("default_advice")):
            advice[text] = None
        sources = [
            SOURCE_TEXTS.get(source, source) + " (as its argument says)" * (argument in arguments)
            for argument, source in requirements(maker).items()
        ]
        is_learner = isinstance(maker, type) and issubclass(maker, Learner)
        if is_learner and label in with_memory and "gamma" not in {**maker.defaults, **arguments}:
            sources.append("the users' discount")
        if sources:
            sentences.append(f"{names.get(label, label)} was told {' and '.join(sources)}")
    if sentences:
        yield f"Besides clicks, {'; '.join(sentences)}."
    for argument, labels in by_theory.items():
        who = f"{_join_names(labels)} {'explores' if len(labels) == 1 else 'explore'}"
        yield (
            f"{who} as much as theory prescribes, which is often far too much; see the argument "
            f"{argument}."
        )
    yield from advice
    for agent, texts in notes_by_agent(results.rows).items():
        yield f"{names.get(agent, agent)}: {'; '.join(texts)}."
