"""Reference results of the scorecard: those of the built-in agents, with which every agent is compared."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple

import polars
from llvmlite import binding
from polars import col

from clickgym import Results
from clickgym.agents import LEARNERS
from clickgym.core.checks import check_choice, check_labels
from clickgym.runner import parse_spec, player_of

from ..shipped import Shipped, read_shipped
from .play import COLUMNS, blocks, described
from .protocol import CURRENT, Protocol
from .score import scored

PUBLISHED_LINE, TUNED_LINE, SAFE_LINE, RANKINGS_LINE = "published", "tuned", "safe", "rankings"
"""The settings of results that ship."""


def line_name(agent: str, setting: str) -> str:
    """The name of a line (an agent with its hyper-parameters) in results.

    Args:
        agent: its name.
        setting: `PUBLISHED_LINE`, `TUNED_LINE` or `SAFE_LINE`.

    Example:
        >>> line_name("CascadeKLUCB", TUNED_LINE), line_name("CascadeKLUCB", PUBLISHED_LINE)
        ('CascadeKLUCB, tuned', 'CascadeKLUCB')
    """
    return agent if setting == PUBLISHED_LINE else f"{agent}, {setting}"


def agent_of(line: str) -> str:
    """The agent of a line, by its name in results.

    Example:
        >>> agent_of("CascadeKLUCB, tuned"), agent_of("PPO:actions=codes")
        ('CascadeKLUCB', 'PPO')
    """
    return line.partition(",")[0].partition(":")[0]


def first_lines(names: Iterable[str], *without: str) -> list[str]:
    """Of lines the first one of each agent, but of some.

    Args:
        names: of the lines.
        without: agents.

    Example:
        >>> first_lines(["TopRank, tuned", "Random", "TopRank"], "Random")
        ['TopRank, tuned']
    """
    first: dict[str, str] = {}
    for name in names:
        first.setdefault(agent_of(name), name)
    return [name for agent, name in first.items() if agent not in without]


class Line(NamedTuple):
    """A line of the reference: a built-in agent with its hyper-parameters.

    Attributes:
        name: what results call it.
        agent: what can be typed for it.
        tuning: what came of its tuning; empty where it is as published.
        trust: who played it: ``ours``; or ``judged``, a submission that the judge played.
        about: of an agent whose code is not here: ``sources``, ``told`` and ``click_models``, as its class has them.
    """

    name: str
    agent: str
    tuning: dict[str, Any]
    trust: str = "ours"
    about: Mapping[str, Any] = {}

    @property
    def learns(self) -> bool:
        """Whether the agent is generic reinforcement learning."""
        return self.agent.partition(":")[0] in LEARNERS

    @property
    def changes(self) -> str:
        """What tuning has changed, in words; empty for a line as published.

        Example:
            >>> Line("CascadeKLUCB, tuned", "CascadeKLUCB:c=0.5", {"score": 0.01}).changes
            'c from 3.0 to 0.5'
        """
        return changes_of(self.agent.replace("actions=codes,", "")) if self.tuning else ""  # codes are the line's, not tuned


def changes_of(agent: str) -> str:
    """In which hyper-parameters an agent differs from its defaults, in words; what is no name of an agent stays as it is.

    Args:
        agent: as it can be typed.

    Example:
        >>> changes_of("CascadeKLUCB:c=0.5")
        'c from 3.0 to 0.5'
    """
    try:
        name, hyperparameters = parse_spec(agent)
        before = player_of(name).defaults
    except ValueError:  # hyper-parameters alone, of an agent that has no name
        return agent
    usual = {name: "its default" if before.get(name) is None else before[name] for name in hyperparameters}
    return ", ".join(f"{name} from {usual[name]} to {value}" for name, value in hyperparameters.items())


@cache
def _shipped(protocol: Protocol) -> list[Shipped]:
    """The results that ship, of all files."""
    return [each for file in sorted(protocol.data.glob("*.parquet")) for each in read_shipped(file)]


def curves_of(protocol: Protocol = CURRENT) -> polars.DataFrame:
    """The losses of all lines that ship, at all steps that are kept; columns as of `play`.

    Args:
        protocol: the version.
    """
    tasks = blocks(protocol.by_name.values())
    frames = [_losses(each.table, tasks[each.part]) for each in _shipped(protocol)]
    return polars.concat(frames).sort("agent", maintain_order=True)


def _losses(table: polars.DataFrame, tasks: Any) -> polars.DataFrame:
    """The table of a shipped block."""
    rows = described(table, tasks).with_columns(loss=tasks[0].measure)
    return rows.with_columns(col("regret", "loss", "seconds").cast(polars.Float64)).select(COLUMNS)


def made_in(protocol: Protocol) -> int:
    """The year in which the last of the results that ship were made.

    Args:
        protocol: the version.
    """
    return max(int(each.made["made"][:4]) for each in _shipped(protocol))


@cache
def reference(protocol: Protocol = CURRENT, stage: int | None = None) -> polars.DataFrame:
    """The scores of the lines that ship, in the form that `scored` returns.

    Args:
        protocol: the version.
        stage: as in `scored`.

    Example:
        >>> "TopRank" in reference()["agent"].to_list()
        True
    """
    return scored(curves_of(protocol), protocol, stage)


@cache
def lines(protocol: Protocol = CURRENT) -> dict[str, Line]:
    """The lines that ship, by name.

    Args:
        protocol: the version.
    """
    made: dict[str, Line] = {}
    for each in _shipped(protocol):
        [name], [agent] = each.table["agent"].unique(), each.made["agents"]
        made[name] = Line(name, agent, each.made["tuning"], each.made.get("trust", "ours"), each.made.get("about", {}))
    return dict(sorted(made.items()))


def baselines(ability: str, agents: Iterable[str] | None = None) -> Results:
    """The regret curves of built-in agents in an ability, for a figure or a table beside your own agent.

    Nothing is played: the curves ship with the package.

    Args:
        ability: an ability of the scorecard.
        agents: names of lines, such as ``"CascadeTS"`` or ``"CascadeKLUCB, tuned"``; None takes all.

    Returns:
        Results with the regret of every run at up to 20 steps; reward and clicks are unknown. An environment stands for all
        tasks of the ability with its click model.

    Raises:
        ValueError: there is no such ability or agent, or the reference results do not ship with this version.

    Example:
        >>> import clickgym
        >>> clickgym.baselines("late", ["CascadeTS", "TopRank"]).plot("late.pdf")  # doctest: +SKIP
    """
    check_choice("ability", ability, CURRENT.columns())
    CURRENT.check_anchors()
    table = curves_of(CURRENT).filter(col("ability") == ability)
    names = list(lines(CURRENT)) if agents is None else check_labels("agents", agents)
    for name in names:
        check_choice("agent", name, lines(CURRENT))
    return Results(as_results(table.filter(col("agent").is_in(names))))


def as_results(table: polars.DataFrame) -> polars.DataFrame:
    """Rows of `play` as those of a sweep: an environment is all tasks with its click model, an instance one of them."""
    models = {task.name: f"{task.click_model}Rank-v0" for task in CURRENT.by_name.values()}
    return table.select(
        col("task").replace_strict(models).alias("env"), col("task").alias("instance"), "agent", "run", "step", "regret",
        polars.lit(None, polars.Float64).alias("reward"), polars.lit(None, polars.Int64).alias("clicks"),
    )  # fmt: skip


def processor() -> str:
    """What compiled arithmetic depends on: the kind of processor."""
    return str(binding.get_host_cpu_name())


def machine() -> str:
    """The kind of processor and the operating system; results may depend on both in the last digit."""
    return f"{processor()} {platform.system()}"
