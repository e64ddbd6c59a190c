"""Words that the table, the figure and the page of a report share."""

from __future__ import annotations

import shlex
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

import polars

from ..core.formats import duration, regret_text
from ..envs import CLICK_MODELS, CONTEXTUAL, ENVIRONMENTS, MEMORY
from .labels import PUBLISHED, parse_spec, typed
from .results import by_default, spec_of

Place = tuple[str, str | None]
"""What has a table and a panel of its own: an environment, and the instance where they are told one
by one.
"""

UNITS = {"clicks": "clicks", "any_click": "clicked lists", "satisfaction": "satisfied users"}


def commands_of(config: dict[str, Any], out: str | None = "results/again") -> list[str]:
    """The command lines that make the results of a configuration, in order; none if they are
    unknown.

    What only Python can pass, since it stands in a script or under a label of a mapping, is named
    after it as such.

    Args:
        config: as `read_results` returns it.
        out: the folder they name; None leaves it out, where the numbers matter and not where they
            lie.
    """
    parts = config.get("parts", [config] if "clickgym" in config else [])
    return list(dict.fromkeys(command_of(part, out) for part in parts))


def command_of(config: dict[str, Any], out: str | None = "results/again") -> str:
    """The command line that makes the results of one part of a configuration.

    Args:
        config: the part. Files of instances are named as their instances.
        out: as in `commands_of`.
    """
    envs, agents = (
        {label: spec_of(config, kind, label) for label in config[kind]}
        for kind in ("envs", "agents")
    )
    unnamed = [*_only_python(envs, _ids()), *_only_python(agents, PUBLISHED)]
    engine = config.get("engine", "auto")
    options = {
        "--agents": list(map(typed, agents, agents.values())),
        "--instance": [] if by_default(config) else config["instances"],
        "--horizon": [_in_powers(config["horizon"])],
        "--runs": [str(config["runs"])],
        "--seed": [str(config["seed"])],
        "--metrics": config.get("metrics", []),
        "--delay": [config["delay"]] if config.get("delay") else [],
        "--engine": [engine] * (engine != "auto"),
        "--out": [out] if out else [],
    }
    words = [word for option, values in options.items() if values for word in (option, *values)]
    command = shlex.join(["clickgym", "run", *map(typed, envs, envs.values()), *words])
    return f"{command} (from Python: {', '.join(unnamed)})" if unnamed else command


def _ids() -> set[str]:
    """The ids of the package."""
    own = {
        short for short, model in CLICK_MODELS.items() if model.__module__.startswith("clickgym.")
    }
    return {
        name
        for name, env in (ENVIRONMENTS | CONTEXTUAL | MEMORY).items()
        if env.model in {*own, "CascadeMDP", "MixtureModel"}
    }


def _in_powers(count: int) -> str:
    """A count as it is typed: ``1e5``, where that is shorter."""
    digits = str(count).rstrip("0")
    zeros = len(str(count)) - len(digits)
    return f"{digits}e{zeros}" if zeros > 2 else str(count)


def _only_python(specs: Mapping[str, str], names: Container[str]) -> Iterator[str]:
    """The labels that stand neither for what is known by name nor for something in a module that
    can be imported.
    """
    for label, spec in specs.items():
        name = parse_spec(spec)[0]
        if name not in names and (":" not in name or name.startswith("__main__:")):
            yield label


def averaged(config: dict[str, Any]) -> list[str]:
    """The instances over which results are averaged, if there are several.

    Args:
        config: as `read_results` returns it; with ``per_instance`` nothing is averaged.
    """
    return [] if config.get("per_instance") else _several(config)


def separate(config: dict[str, Any]) -> list[str]:
    """The instances that are reported one by one, if there are several.

    Args:
        config: as `read_results` returns it, with ``per_instance`` where that is wanted.
    """
    return _several(config) if config.get("per_instance") else []


def _several(config: dict[str, Any]) -> list[str]:
    return config["instances"] if len(config["instances"]) > 1 and not by_default(config) else []


def places_of(config: dict[str, Any]) -> list[Place]:
    """The parts of a report that have a table and a panel of their own, in order.

    Args:
        config: as of `separate`.
    """
    names = separate(config)
    if not names:
        return [(env, None) for env in config["envs"]]
    return [
        (env, name)
        for env in config["envs"]
        for name in names
        if f"{env} {name}" in config["pairs"]
    ]


def columns_of(config: dict[str, Any]) -> tuple[str, ...]:
    """The columns that identify these parts.

    Args:
        config: as of `separate`.
    """
    return ("env", "instance") if separate(config) else ("env",)


def rows_of(frame: polars.DataFrame, place: Place) -> polars.DataFrame:
    """The rows of a table that belong to a place."""
    env, name = place
    return frame.filter(
        polars.col("env") == env, *([] if name is None else [polars.col("instance") == name])
    )


def cells_of(row: dict[str, Any], without: Sequence[str]) -> tuple[str, str, str, str]:
    """The final results of an agent in words: regret or reward, reward per session, time per
    session, engine.

    Args:
        row: of `summary`, with the negative reward in place of a regret that is unknown.
        without: the environments whose regret is unknown.
    """
    total = regret_text(
        -row["regret"] if row["env"] in without else row["regret"], row["regret_ci95"]
    )
    return total, f"{row['reward']:.4f}", duration(row["ns_per_session"]), row["engine"]


def title_of(place: Place) -> str:
    """The title of a table or panel.

    Example:
        >>> title_of(("PBMRank-v0", None)), title_of(("PBMRank-v0", "yandex-9"))
        ('PBMRank-v0', 'PBMRank-v0, yandex-9')
    """
    return ", ".join(filter(None, place))


def where(config: dict[str, Any], env: str | None = None) -> str:
    """The instance of a configuration, or that results are means over several.

    Args:
        config: as `read_results` returns it.
        env: where each environment has an instance of its own, that of which; None says so.
    """
    instances = config["instances"]
    if len(instances) == 1:
        return instances[0]
    if env is not None:
        names = instances_of(config, env)
        return names[0] if len(names) == 1 else f"mean over {len(names)} instances"
    if separate(config):
        return f"each of {len(instances)} instances"
    if by_default(config):
        return "each environment's own instance"
    return f"mean over {_span(len(instances_of(config, env)) for env in config['envs'])} instances"


def instances_of(config: dict[str, Any], env: str) -> list[str]:
    """The instances on which an environment was run.

    Args:
        config: as `read_results` returns it.
        env: its label.
    """
    return [name for name in config["instances"] if f"{env} {name}" in config["pairs"]]


def _span(numbers: Iterable[int]) -> str:
    least, *more = sorted(set(numbers))
    return f"{least} to {more[-1]}" if more else str(least)


def number_of_runs(config: dict[str, Any]) -> str:
    """How many runs there are of each agent: a number, or the least and the most.

    Args:
        config: as `read_results` returns it.
    """
    return _span([config["runs"], config.get("fewest_runs", config["runs"])])


def measure_of(envs: Sequence[str], without: Sequence[str]) -> str:
    """What tables and figures show: regret; reward, where it is unknown in all environments; or
    both.

    Args:
        envs: the environments.
        without: those whose regret is unknown.

    Example:
        >>> measure_of(["A", "B"], []), measure_of(["A"], ["A"]), measure_of(["A", "B"], ["B"])
        ('regret', 'total reward', 'regret or total reward')
    """
    return " or ".join(
        ["regret"] * any(env not in without for env in envs) + ["total reward"] * bool(without)
    )


def amount_of(config: dict[str, Any], env: str, without: Sequence[str]) -> str:
    """The name and unit of the amounts of an environment.

    Args:
        config: as `read_results` returns it.
        env: the label of the environment.
        without: those whose regret is unknown.

    Example:
        >>> amount_of({}, "PBMRank-v0", []), amount_of({}, "PBMRank-v0", ["PBMRank-v0"]), amount_of({}, "MyShop-v0", [])
        ('regret (clicks)', 'reward', 'regret (reward)')
    """
    return "reward" if env in without else f"regret ({unit_of(config, env)})"


def what_is_unknown(without: Sequence[str]) -> str:
    """The sentence below a table where regret is unknown.

    Args:
        without: the environments whose regret is unknown, at least one.
    """
    return f"Regret is unknown in {', '.join(without)}; a higher total reward is better."


def heading(config: dict[str, Any], without: Sequence[str] = ()) -> str:
    """The heading of a table of final regret.

    Args:
        config: as `read_results` returns it.
        without: the environments whose regret is unknown.

    Example:
        >>> heading({"horizon": 100_000, "instances": ["yandex-9"], "runs": 5})
        'Regret after 100,000 sessions, yandex-9 (mean ± 95 % interval over 5 runs)'
    """
    interval = (
        f"mean ± 95 % interval over {number_of_runs(config)} runs"
        if config["runs"] > 1
        else "one run"
    )
    measure = measure_of(config["envs"], without).capitalize() if without else "Regret"
    return f"{measure} after {config['horizon']:,} sessions, {where(config)} ({interval})"


def unit_of(config: dict[str, Any], env: str) -> str:
    """The unit of the regret of an environment; ``"reward"`` if it is unknown.

    Args:
        config: as `read_results` returns it.
        env: the label of the environment; of one of another origin nothing is known but that it
            pays rewards.

    Example:
        >>> unit_of({}, "PBMRank-v0"), unit_of({}, "DCMRank-v0:reward=satisfaction")
        ('clicks', 'satisfied users')
        >>> unit_of({"labels": {"envs": {"easy": "ContextualPBMRank-v0"}}}, "easy"), unit_of({}, "a label of your own")
        ('clicked lists', 'reward')
    """
    name, arguments = parse_spec(spec_of(config, "envs", env))
    environment = (ENVIRONMENTS | CONTEXTUAL | MEMORY).get(name)
    return UNITS.get(
        arguments.get("reward", environment.default_reward if environment else ""), "reward"
    )
