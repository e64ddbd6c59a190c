"""Tables and a figure for the pages on reinforcement learning.

The tables and the figure in docs/rl_results.md come from the runs in data/rl.parquet, and the
tables in docs/stateful_users.md from the runs of a study. The first tables in docs/rl_results.md,
which compare bandits with reinforcement learning, come from both and from data/dbn.parquet, and
the table of defaults in docs/rl.md comes from the learners' classes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import polars
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from polars import col

from clickgym.agents import AGENTS, Learner
from clickgym.agents.rl.learner import discount_within
from clickgym.bench.result_files import read_results

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAPERS = DOCS.parent / "examples" / "papers"
sys.path.append(str(PAPERS))
from figures import grid, style_of  # noqa: E402
from study import estimate, number, read  # noqa: E402
from when_rl_pays import (  # noqa: E402
    BANDIT,
    BANDITS,
    BY_STATE,
    FAMILIES,
    LEARNERS,
    PLANNER,
    REAL_QUERY,
    SINGLE,
    interval,
    on_ten_journeys,
)

FILE, FIGURE = DOCS.parent / "tools" / "data" / "rl.parquet", DOCS / "rl.png"
SEARCH = DOCS.parent / "tools" / "data" / "rl_search.parquet"
DBN = DOCS.parent / "tools" / "data" / "dbn.parquet"
STUDY = PAPERS / "results" / "when_rl_pays.parquet"
CONTEXTUAL, CASCADE, RANDOM = "ContextualPBMRank-v0", "ContextualCMRank-v0", "Random"
QUERY = "PBMRank-v0"
"""The environment id for the search without features."""
WORLDS = {"linear": "linear", "personal:features=outer": "personal, outer", "personal": "personal"}
"""The page's name for each world. In the runs, the seed follows after a colon or comma."""
UNSHARED = ("DQN", "MaskablePPO", "RecurrentPPO")
"""Learners whose actions are row numbers, which stand for different candidates in each session."""
CLICKS, BIT = "NeuralGreedy", "NeuralGreedy:feedback=reward"
"""A neural bandit that learns from clicks, and one that learns from one bit per session."""
GENERIC = ("A2C", "PPO", "SAC", "TD3", *UNSHARED)
"""The names of all generic RL algorithms."""
UNDRAWN = ("PBMLinUCB", "BatchRank", "SAC", "TD3", *UNSHARED)
"""Agents that the figure leaves out, so that readers can tell the lines apart. The figure also
leaves out settings that differ from the defaults.
"""
Rows = list[list[str]]


def runs() -> polars.DataFrame:
    """Return a row for each run: the regret, and the regrets of the agent and of its frozen policy
    as fractions of the regret of random lists.
    """
    frame, _ = read_results(FILE)
    world = col("instance").str.replace(r"[:,]seed=\d+$", "")
    ends = frame.group_by("env", "instance", "agent", "run", maintain_order=True).agg(
        regret=col("regret").last(),
        frozen=col("frozen").last() * col("step").last(),
    )
    random = ends.filter(agent=RANDOM).select("env", "instance", "run", "regret")
    joined = ends.join(random, on=["env", "instance", "run"], suffix="_random")
    return joined.with_columns(
        world=polars.when(env=CONTEXTUAL).then(world).otherwise("env"),
        share=col("regret") / col("regret_random"),
        frozen=col("frozen") / col("regret_random"),
    )


def _percent(values: polars.Series) -> str:
    """Format the mean of fractions as a percentage, with the worst run in brackets."""
    mean, worst = values.mean(), values.max()
    if mean is None:
        return ""
    return f"{number(100 * float(mean))} ({number(100 * float(worst))})"


def _rows_of(world: str) -> Iterator[tuple[str, polars.DataFrame]]:
    """Yield the agents of a world and their runs, the lowest regret first, without the agents in
    `UNSHARED`.
    """
    frame = runs().filter(world=world)
    for (agent,), part in frame.sort(col("share").mean().over("agent")).group_by(
        "agent", maintain_order=True
    ):
        if agent not in UNSHARED:
            yield str(agent), part


def features_table(world: str) -> Rows:
    """Return the table of regret with features: means over runs and worlds, and the worst run."""
    rows = [["agent", "regret", "frozen", "runs"]]
    for agent, part in _rows_of(world):
        shares = [_percent(part[column]) for column in ("share", "frozen")]
        rows.append([f"`{agent}`", *shares, str(len(part))])
    return rows


@cache
def search_results(env: str) -> polars.DataFrame:
    """Return a row for each setting in a search: the algorithm, the agent, its regret as a
    percentage of the regret of random lists with the first and the second instance (null for most
    settings), and the mean of both. The best settings come first.
    """
    frame = read_results(SEARCH)[0].filter(env=env)
    ends = frame.group_by("instance", "agent").agg(col("regret").last())
    shares = ends.join(ends.filter(agent=RANDOM), on="instance", suffix="_random").select(
        "instance", "agent", share=100 * col("regret") / col("regret_random")
    )
    first, second = shares["instance"].unique().sort()
    wide = shares.filter(col("agent") != RANDOM).pivot("instance", index="agent", values="share")
    return wide.select(
        col("agent").str.extract(r"^(\w+)").alias("algorithm"),
        "agent",
        polars.col(first).alias("first"),
        polars.col(second).alias("second"),
        mean=(col(first) + col(second)) / 2,
    ).sort("mean", "first", nulls_last=True)


def search_table(env: str) -> Rows:
    """Return the table of regrets for the settings that played both instances of a search."""
    rows = [["agent", "first run", "second run", "mean"]]
    for _, agent, *shares in search_results(env).drop_nulls().sort("algorithm", "mean").iter_rows():
        rows.append([f"`{agent}`", *map(number, shares)])
    return rows


def best_setting(algorithm: str, env: str = CONTEXTUAL) -> str:
    """Return the spec of an algorithm with the best settings in a search."""
    return str(search_results(env).filter(algorithm=algorithm)["agent"][0])


def best_networks() -> tuple[str, str]:
    """Return `NeuralGreedy` with the settings from the search, for clicks and for one bit."""
    clicks = best_setting(CLICKS)
    return clicks, clicks.replace(f"{CLICKS}:", f"{BIT},")


def plain_table() -> Rows:
    """Return the table of mean regret without features, with 95 % intervals."""
    frame = runs().filter(instance="")
    envs = frame["env"].unique().sort(descending=True).to_list()
    rows = [["agent", *(f"regret, `{env}`" for env in envs)]]
    for (agent,), part in frame.sort(col("share").mean().over("agent")).group_by(
        "agent", maintain_order=True
    ):
        regrets = [part.filter(env=env)["regret"].to_numpy() for env in envs]
        cells = [interval(values) if len(values) else "" for values in regrets]
        rows.append([f"`{agent}`", *cells])
    return rows


def defaults_table() -> Rows:
    """Return the table of the learners' default settings."""
    rows = [["name", "actions", "defaults", "defaults that differ if items have features"]]
    for name, agent in AGENTS.items():
        if issubclass(agent, Learner):
            discount = {"gamma": discount_within(agent.actions)}
            settings = ", ".join(
                f"{key}={value}" for key, value in (discount | dict(agent.defaults)).items()
            )
            others = ", ".join(f"{key}={value}" for key, value in agent.with_features.items())
            rows.append(
                [
                    f"`{name}`",
                    f"`{agent.actions}`",
                    f"`{settings}`",
                    f"`{others}`" if others else "",
                ]
            )
    return rows


def tables() -> dict[str, Rows]:
    """Return the tables of docs/rl_results.md, keyed by the names of their marks on the page."""
    return {
        "personal": features_table("personal"),
        "outer": features_table("personal:features=outer"),
        "cascade": features_table(CASCADE),
        "search": search_table(CONTEXTUAL),
        "plain": plain_table(),
    }


def memory_regrets() -> dict[str, dict[str, NDArray[np.float64]]]:
    """Return the regret of each run of users with memory, by instance and agent."""
    ends = read_results(STUDY)[0].filter(step=100_000)
    regrets: dict[str, dict[str, NDArray[np.float64]]] = {}
    for (instance, agent), part in ends.group_by("instance", "agent", maintain_order=True):
        values = part["regret"].to_numpy().astype(float)
        regrets.setdefault(str(instance), {})[str(agent)] = values
    return regrets


def memory_table(instances: Sequence[str] = FAMILIES) -> Rows:
    """Return the table of mean regret in runs of users with memory, with 95 % intervals."""
    regrets = memory_regrets()
    rows = [["agent", *(f"`{instance}`" for instance in instances)]]
    for agent in (*BANDITS, *LEARNERS, SINGLE):
        found = [regrets[instance].get(agent) for instance in instances]
        if any(it is not None for it in found):
            rows.append([_code(agent), *("–" if it is None else interval(it) for it in found)])
    return rows


def real_query_table() -> Rows:
    """Return the table of mean regret with the items of a real query, with 95 % intervals."""
    return memory_table(REAL_QUERY)


def journey_regrets() -> dict[str, NDArray[np.float64]]:
    """Return the regret of each agent on the ten journeys, by agent."""
    return dict(on_ten_journeys(read(STUDY)[0]))


def dbn_shares() -> dict[str, NDArray[np.float64]]:
    """Return the regret of each agent on ten random instances of the DBN, as percentages of the
    regret of random lists on the same instances, by agent.
    """
    table = read_results(DBN)[0].sort("instance")
    regrets = {
        str(agent): part["regret"].to_numpy()
        for (agent,), part in table.group_by("agent", maintain_order=True)
    }
    return {agent: 100 * values / regrets[RANDOM] for agent, values in regrets.items()}


def journeys_table() -> Rows:
    """Return the table of regret on ten instances: the mean with its 95 % interval, the lowest and
    the highest, and the mean as a percentage of the regret of random lists.
    """
    regrets = journey_regrets()
    rows = [["agent", "clicks lost", "lowest", "highest", "% of random lists"]]
    for agent, values in sorted(regrets.items(), key=lambda pair: pair[1].mean()):
        share = estimate(100 * values / regrets[RANDOM])
        lowest, highest = number(values.min()), number(values.max())
        rows.append([_code(agent), interval(values), lowest, highest, str(share)])
    return rows


Regrets = Mapping[str, NDArray[np.float64]]
"""The regret of each run, or its percentage of the regret of random lists, by agent."""


def independent_table() -> Rows:
    """Return the table of bandits and generic RL if clicks do not change later clicks: regret as a
    percentage of the regret of random lists.
    """
    shares: dict[str, dict[str, NDArray[np.float64]]] = {}
    for (world, agent), part in runs().group_by("world", "agent", maintain_order=True):
        shares.setdefault(str(world), {})[str(agent)] = 100 * part["share"].to_numpy()
    users: dict[str, Regrets] = {
        "Users differ; agents see features of users and of items (`personal`)": shares["personal"],
        "Users differ; agents see products of these features (`personal:features=outer`)": shares[
            "personal:features=outer"
        ],
        "A single query without features (`PBMRank-v0`)": shares[QUERY],
        "A single query without features, whose users leave once a click satisfies them "
        "(`DBNRank-v0`, ten random instances, one run each)": dbn_shares(),
    }
    networks = [f"`{CLICKS}` from {what}" for what in ("clicks", "one bit")]
    rows = [["Users", "Bandit", *networks, "Best generic RL algorithm that we ran"]]
    for title, values in users.items():
        names = [name.partition(":")[0] for name in values]
        generic = [agent for agent, name in zip(values, names, strict=True) if name in GENERIC]
        others = [agent for agent in values if ":" not in agent and agent not in (CLICKS, RANDOM)]
        bandit = _lowest(values, [agent for agent in others if agent not in generic])
        agents = [bandit, *best_networks(), _lowest(values, generic)]
        rows.append([title, *_cells(values, agents, [0, 3])])
    return rows


def returning_table() -> Rows:
    """Return the table of bandits and RL if users come back: clicks lost."""
    regrets, planner = memory_regrets(), f"{PLANNER}:bonus=0"
    users: dict[str, Regrets] = {
        "Clicks change later clicks (`clickbait`)": regrets["clickbait"],
        "Clicks change later clicks (`habit`)": regrets["habit"],
        "The same, and the best list depends on the user's state (`journey`)": journey_regrets(),
        **{
            f"`{name.partition(':')[0]}`, items of a real query": regrets[name]
            for name in REAL_QUERY
        },
        "Clicks change nothing (`independent`)": regrets["independent"],
    }
    head = ["Users", "Bandit", "Best generic RL algorithm that we ran", "`SlateQ`", f"`{planner}`"]
    rows = [head]
    for title, values in users.items():
        agents = [_lowest(values, names) for names in ((BANDIT, BY_STATE), LEARNERS)]
        rows.append([title, *_cells(values, [*agents, "SlateQ", planner], [0, 1])])
    return rows


def _lowest(values: Regrets, agents: Sequence[str] | Mapping[str, str]) -> str:
    """Return the agent with the lowest mean, of those that have runs."""
    return min(
        (agent for agent in agents if agent in values), key=lambda agent: values[agent].mean()
    )


def _cells(values: Regrets, agents: Sequence[str], named: Sequence[int]) -> list[str]:
    """Return the cells of a row: the mean of each agent with its 95 % interval, in bold if it is
    the lowest and its interval overlaps no other, and the agent's name in the columns ``named``.
    """
    found = {agent: estimate(values[agent]) for agent in agents if agent in values}
    best = min(found, key=lambda agent: found[agent].mean)
    is_clear = all(
        found[best].mean + found[best].half < other.mean - other.half
        for agent, other in found.items()
        if agent != best
    )
    cells = []
    for column, agent in enumerate(agents):
        if agent not in found:
            cells.append("–")
            continue
        text = str(found[agent])
        if agent == best and is_clear:
            text = f"**{text}**"
        if column in named:
            name, settings, _ = agent.partition(":")
            is_tuned = settings and agent == best_setting(name)
            text += f" ({name}, tuned)" if is_tuned else f" ({agent})"
        cells.append(text)
    return cells


def _code(agent: str) -> str:
    """Format the label of an agent in a table; a label in words stays as it is."""
    return agent if " " in agent else f"`{agent}`"


def draw(axes: Axes, part: polars.DataFrame) -> None:
    """Draw each agent's mean regret in a part of the results, and the range of its runs."""
    for agent in part["agent"].unique().sort():
        curve = (
            part.filter(col("regret") > 0, agent=agent)
            .group_by("step")
            .agg(mean=col("regret").mean(), low=col("regret").min(), high=col("regret").max())
        )
        steps, mean, low, high = curve.sort("step")
        style = style_of(axes, agent)
        axes.plot(steps, mean, label=agent, linewidth=1.6, **style)
        axes.fill_between(steps, low, high, color=style["color"], alpha=0.15, linewidth=0)
    axes.set(xscale="log", yscale="log", xlabel="sessions")
    axes.margins(x=0)


def figure() -> Figure:
    """Draw the figure of regret in the worlds with features and in the ids without features."""
    frame, _ = read_results(FILE)
    others = col("agent").str.contains(":") & (col("agent") != BIT)
    frame = frame.filter(~col("agent").is_in(UNDRAWN) & ~others)
    rl_figure, panels = grid(3, 2, "regret")
    envs = frame.filter(instance="")["env"].unique().sort(descending=True).to_list()
    parts = {
        name: frame.filter(col("instance").str.contains(rf"^{world}[:,]seed="), env=CONTEXTUAL)
        for world, name in WORLDS.items()
    } | {env: frame.filter(env=env) for env in envs}
    for axes, (name, part) in zip(panels, parts.items(), strict=False):
        draw(axes, part)
        axes.set_title(name)
    lines = {line.get_label(): line for axes in panels for line in axes.get_lines()}
    panels[-1].axis("off")
    rl_figure.legend(
        [*lines.values()],
        [name.replace(":feedback=reward", ", one bit") for name in lines],
        loc="outside lower center",
        ncols=4,
        frameon=False,
    )
    rl_figure.suptitle("Regret so far: mean, and the range of all runs")
    return rl_figure


def write_picture() -> None:
    """Write the figure of docs/rl_results.md."""
    figure().savefig(FIGURE, dpi=150, metadata={"Software": None})
