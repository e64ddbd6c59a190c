"""Compact result files that ship with the package, with fingerprints that detect when they are stale.

A file holds the curves of one or several sweeps in one table: the mean over the instances of each run at every step, and of
each instance what it had reached at some fractions of the horizon. What made them stands in the metadata of the file.
"""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from pydoc import locate
from types import FunctionType
from typing import Any

import polars
from numba.core.dispatcher import Dispatcher

from clickgym.core.files import check_file, reading, sealed, write_whole
from clickgym.envs import Users
from clickgym.runner import digest, make_env, model_digest, player_of

FORMAT = "3"
OURS = ("clickgym", "clickgym_lab")
"""Packages of which every function that a kernel reaches is part of its digest."""
KEYS = ("env", "instance", "agent", "run", "step")
ALWAYS = ("regret", "reward")
"""What is kept of the ends of each instance, beside the curves' columns and the facts."""
MADE = "clickgym_made"
STARTS = ("__init__", "declarations", "_initial_state", "_first_values", "_state_sizes", "declared")
"""What says how an agent or users start, beside kernels."""


@dataclass(frozen=True)
class Shipped:
    """The curves of one sweep, with the settings and versions that made them.

    Attributes:
        setting: which of several sweeps of the same part it is, by the queries that it played.
        part: its name.
        table: as `compact` makes it.
        made: what made it: ``command``, ``made`` (the time), ``clickgym``, ``versions``, ``seed``, ``horizon``, ``runs``,
            ``queries``, ``instances``, and what `fingerprints` returns.
    """

    setting: str
    part: str
    table: polars.DataFrame
    made: Mapping[str, Any]


def compact(
    table: polars.DataFrame,
    columns: Sequence[str],
    facts: Sequence[str] = (),
    *,
    each: bool = False,
    fractions: Sequence[float] = (0.99, 1.0),
) -> polars.DataFrame:
    """A table of results without what no curve shows.

    Args:
        table: as `sweep` returns it; cumulative values.
        columns: those of which curves are kept.
        facts: further columns, constant in each instance.
        each: keep whole curves of each instance, too.
        fractions: of the horizon, at which the values of each instance are kept.

    Returns:
        Rows without an instance, the means over the instances; then rows of each instance, at the first steps from these
        fractions on, or at all steps.

    Example:
        >>> rows = [("E", i, "A", 0, step, float(step)) for i in "xy" for step in (50, 99, 100)]
        >>> compact(polars.DataFrame(rows, [*KEYS, "regret"], orient="row"), ["regret"])["step"].to_list()
        [50, 99, 100, 99, 100, 99, 100]
    """
    pairs = ["env", "agent", "run", "step"]
    means = table.group_by(pairs, maintain_order=True).agg(polars.col(*columns).mean())
    steps = table["step"].unique().sort()
    kept = [next(step for step in steps if step >= round(fraction * steps[-1])) for fraction in fractions]
    late = table if each else table.filter(polars.col("step").is_in(kept))
    names = dict.fromkeys([*columns, *(name for name in ALWAYS if name in table.columns), *facts])
    both = polars.concat([means, late.select(*KEYS, *names)], how="diagonal_relaxed")
    return both.select(*KEYS, polars.col(*names).cast(polars.Float32))


def of_files(instances: Iterable[str]) -> bool:
    """Whether some instances are files, or made from files, which do not ship.

    Example:
        >>> of_files(["yandex-990", "li2019-switching:query=yandex60-401.json,seed=3"])
        True
    """
    return any(".json" in name for name in instances)


def portable(instance: str) -> str:
    """The name of an instance without the folder of its file.

    Example:
        >>> portable("li2019-switching:query=queries/yandex60-401.json,seed=3")
        'li2019-switching:query=yandex60-401.json,seed=3'
    """
    return re.sub(r"[^=,:]*/(?=[^/=,:]*\.json)", "", instance)


def write_shipped(path: Path, results: Iterable[Shipped]) -> None:
    """Write the results of some sweeps into one file, whole.

    Args:
        path: the file.
        results: of different settings and parts.
    """
    results = list(results)
    places = [{"setting": polars.lit(each.setting), "part": polars.lit(each.part)} for each in results]
    table = polars.concat(
        [each.table.with_columns(**place) for each, place in zip(results, places, strict=True)], how="diagonal"
    )
    origins = [{"setting": each.setting, "part": each.part, **each.made} for each in results]
    write_whole(path, sealed(table, smallest=True, clickgym_format=FORMAT, **{MADE: json.dumps(origins)}))


def read_shipped(path: str | os.PathLike[str]) -> list[Shipped]:
    """The results that `write_shipped` wrote.

    Raises:
        FileNotFoundError: there is no file.
        ValueError: it holds something else, or is damaged.
    """
    path = Path(path)
    with reading(path, "holds no results to be passed on, or is damaged", "restore it from a backup"):
        check_file(path)
        metadata = polars.read_parquet_metadata(path)
        if metadata["clickgym_format"] != FORMAT:
            raise ValueError(f"it is of format {metadata['clickgym_format']}; this version reads {FORMAT}")
        results, table = [], polars.read_parquet(path, memory_map=False)
        for origin in json.loads(metadata[MADE]):
            setting, part = origin.pop("setting"), origin.pop("part")
            own = table.filter((polars.col("setting") == setting) & (polars.col("part") == part)).drop("setting", "part")
            results.append(
                Shipped(setting, part, own.select(name for name in own.columns if not own[name].is_null().all()), origin)
            )
    return results


# ------------------------------------------------------------------------------------------------- what results depend on


def fingerprints(envs: Sequence[str], agents: Sequence[str], instances: Sequence[Any]) -> dict[str, Any]:
    """Hashes of everything on which the results of a sweep depend beside its arguments, in this version of the package.

    Args:
        envs, agents: specs, as `sweep` takes them.
        instances: likewise.

    Returns:
        For each environment ``models``, a fingerprint of its users in all instances, and ``users``, their classes; ``kernels``,
        a digest of what each environment and each agent compiles.
    """
    models_of = {env: [make_env(env, instance).unwrapped.model for instance in instances] for env in envs}  # type: ignore[attr-defined]
    users = {env: sorted({_name(one) for model in models for one in _classes(model)}) for env, models in models_of.items()}
    return {
        "models": {env: digest("".join(map(model_digest, models)).encode()) for env, models in models_of.items()},
        "users": users,
        "kernels": _kernels(users, agents),
    }


def _kernels(users: Mapping[str, Iterable[str]], agents: Iterable[str]) -> dict[str, str]:
    of_envs = {env: kernel_digest(*map(locate, names)) for env, names in users.items()}
    return of_envs | {agent: kernel_digest(player_of(agent).maker) for agent in agents}


def _classes(users: Users) -> Iterator[type]:
    """The classes of some users, and of those that they are made of."""
    yield type(users)
    for value in vars(users).values():
        for part in value if isinstance(value, list | tuple) else [value]:
            if isinstance(part, Users):
                yield from _classes(part)


def _name(one: type) -> str:
    return f"{one.__module__}.{one.__qualname__}"


def stale(results: Iterable[Shipped]) -> list[str]:
    """What has changed since some results were made, one line for each.

    Parameters of users from a file are not looked at.
    """
    lines = []
    for each in results:
        origin = each.made
        kernels = _kernels(origin["users"], origin["agents"])
        changed = [f"the kernels of {name}" for name, then in origin["kernels"].items() if kernels[name] != then]
        if not of_files(origin["instances"]):
            models = fingerprints(origin["envs"], [], origin["instances"])["models"]
            changed += [f"the users of {name}" for name, then in origin["models"].items() if models[name] != then]
        if changed:
            since = f"changed since {origin['made']}: {origin['command']}"
            lines.append(f"{each.part}, {each.setting}: {', '.join(changed)} {since}")
    return lines


def kernel_digest(*classes: Any) -> str:
    """Identifies what agents or users compile, and how they start: the sources of all that they reach, without their words.

    Neither the module in which something stands nor where a function imports it from is part of the digest.

    Args:
        classes: of agents or users; one that is not to be found has no source.
    """
    identities: dict[FunctionType, str] = {}
    members = [
        f"{base.__qualname__}.{name}: {_identity(member, identities)}"
        for one in classes
        for base in getattr(one, "__mro__", ())
        for name, member in sorted(vars(base).items())
        if isinstance(getattr(member, "__func__", member), Dispatcher) or name in STARTS
    ]
    return digest("\n".join(members).encode())


def _identity(value: Any, identities: dict[FunctionType, str]) -> str:
    """What a name stands for, as text: a constant, or a function of the package with all that it names; empty for others."""
    if isinstance(value, int | float | str | tuple):
        return repr(value)
    function = getattr(value, "__func__", value)
    function = getattr(function, "py_func", function)
    if not isinstance(function, FunctionType) or not _is_ours(function):
        return ""
    if function not in identities:
        identities[function] = function.__qualname__  # for a function that calls itself
        values = {name: function.__globals__.get(name) for name in sorted(set(_names(function.__code__)))}
        texts = [f"{name}={text}" for name, value in values.items() if (text := _identity(value, identities))]
        identities[function] = digest("\n".join([_without_words(function), *texts]).encode())
    return identities[function]


def _is_ours(function: FunctionType) -> bool:
    """Whether it is of the package, and more than a check of arguments, which changes no result."""
    return function.__module__.partition(".")[0] in OURS and not function.__module__.endswith(".checks")


def _names(code: Any) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if inspect.iscode(constant):
            yield from _names(constant)


@cache
def _without_words(function: FunctionType) -> str:
    """The source of a function as Python would write it: no comments, docstring, layout, imports, or messages of errors."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            words = ast.get_docstring(node) is not None
            statements = [each for each in node.body[words:] if not isinstance(each, ast.Import | ast.ImportFrom)]
            node.body = statements or [ast.Pass()]
        elif isinstance(node, ast.Raise):
            node.exc = node.cause = None
    return ast.unparse(tree)
