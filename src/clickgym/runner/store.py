"""A results folder: ``config.json`` says what its sweep is of, and ``runs`` has its finished runs.

Each process adds its runs to a file of its own, a line of JSON for each. A line that was cut short,
by a full disk or the end of the process, is no finished run.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from secrets import token_hex
from typing import Any, Literal, NamedTuple, Self

import joblib
import numpy as np
import polars

from ..core.checks import short
from ..core.compiling import numba
from ..core.files import FORMAT, append, check_format, make_folder, read_json, write_whole
from ..core.modules import digest_of, own_modules
from ..envs import Instance, Users
from ..envs.instances.instance import FAMILIES
from ..envs.result import Result, rows_of_runs
from .make import spec_of, split

CONFIG, RUNS = "config.json", "runs"
"""The file and the folder within a results folder."""
Column = Literal["env", "instance", "agent"]
COLUMNS: tuple[Column, ...] = ("env", "instance", "agent")
Key = tuple[str, str, str, int]
"""What a run of a sweep is known by: labels of environment, instance and agent, and its number."""
Runs = dict[Key, Result]
"""Finished runs, in which environments, instances and agents have their labels."""


class Place(NamedTuple):
    """Where the agents of a sweep play.

    Attributes:
        env, instance: the labels.
        changes: the sessions, counted from 0, at which the users change.
    """

    env: str
    instance: str
    changes: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Config:
    """What a sweep is of.

    Attributes:
        versions: of clickgym and of the packages that it computes with.
        horizon: T, sessions per run.
        checkpoints: the steps at which results are kept.
        metrics: their names.
        runs: how many of each agent in each place.
        seed: of the sweep.
        envs, instances, agents: what each label stands for, as `text_of` has it.
        places: each environment with each instance.
        files: the digests of your own modules, and of files that arguments name; None for a
            notebook, which has no file.
    """

    versions: dict[str, str]
    horizon: int
    checkpoints: list[int]
    metrics: list[str]
    runs: int
    seed: int
    envs: dict[str, str | None]
    instances: dict[str, str | None]
    agents: dict[str, str | None]
    places: list[Place]
    files: dict[str, str | None]

    @classmethod
    def from_json(cls, where: object, content: Mapping[str, Any]) -> Self:
        """The configuration in a JSON object, as `to_json` writes it; ``where`` is it from?

        Raises:
            ValueError: it is of another version's format, or something is missing.
        """
        check_format(where, content.get("format"))
        try:
            own = {one.name: content[one.name] for one in fields(cls)}
            places = [Place(env, instance, tuple(at)) for env, instance, at in own["places"]]
            return cls(**own | {"places": places})
        except (TypeError, KeyError, ValueError) as error:
            raise ValueError(f"{where} is not the configuration of a sweep ({error})") from None

    def to_json(self) -> dict[str, Any]:
        """This configuration as a JSON object, with the format."""
        return {"format": FORMAT, **asdict(self)}

    def labels(self, column: Column) -> dict[str, str | None]:
        """The labels of a column, and what they stand for."""
        found: dict[str, str | None] = getattr(self, f"{column}s")
        return found

    def trials(self) -> Iterator[Key]:
        """The keys of all its runs, in the order of the table."""
        for place in self.places:
            for agent in self.agents:
                for run in range(self.runs):
                    yield place.env, place.instance, agent, run

    def select(self, column: Column, labels: Iterable[str]) -> Self:
        """The same with some environments or agents only."""
        known = self.labels(column)
        kept = {label: known[label] for label in labels if label in known}
        if column == "env":
            return replace(self, envs=kept, places=[one for one in self.places if one.env in kept])
        return replace(self, **{f"{column}s": kept})  # type: ignore[arg-type]


def versions() -> dict[str, str]:
    """The versions of the packages that digits depend on."""
    return {
        "clickgym": version("clickgym"),
        "numpy": np.__version__,
        "numba": numba.__version__ if numba else "not installed",
    }


def text_of(thing: Any) -> str | None:
    """What an agent, an environment or an instance is, in text: its spec, with a digest of users
    and instances that were made in Python. None if it has no text, as a lambda.

    Example:
        >>> from clickgym.agents import TopRank
        >>> text_of((TopRank, {"delta": 0.1})), text_of(lambda **sizes: TopRank(**sizes))
        ('TopRank:delta=0.1', None)
    """
    maker, arguments = split(thing)
    return spec_of((_plain(maker), {key: _plain(value) for key, value in arguments.items()}))


def _plain(value: Any) -> Any:
    """A part of a spec as JSON, if there is a way."""
    if isinstance(value, Users | Instance):
        return f"{type(value).__name__} {joblib.hash(value.to_dict())}"
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return str(value) if isinstance(value, os.PathLike) else value


def files_behind(things: Iterable[Any]) -> dict[str, str | None]:
    """The digests of your own modules that are loaded, and of the files that arguments name. The
    script counts if a class or function of the sweep stands in it; a notebook has none.

    Args:
        things: agents and environments, as `make` resolves them, and instances.
    """
    parts = [split(thing) for thing in things]
    makers = [maker for maker, _ in parts] + [*Users.classes.values(), *FAMILIES.values()]
    # what is registered under an id, or the class of another library that was made an agent
    made_of = [getattr(maker, "entry_point", getattr(maker, "adopted", maker)) for maker in makers]
    in_script = any(getattr(maker, "__module__", "") == "__main__" for maker in made_of)
    found: dict[str, str | None] = {**own_modules(with_script=in_script)}
    if in_script and not hasattr(sys.modules["__main__"], "__file__"):
        found["__main__"] = None
    for maker, arguments in parts:
        for name in (maker, *arguments.values()):
            # stable-baselines3 adds .zip to the names of its files
            for file in (name, f"{name}.zip") if isinstance(name, str | os.PathLike) else ():
                if os.path.isfile(file):
                    found[str(name)] = digest_of(file)
    return found


# --------------------------------------------------------------------------------------- one folder


def open_folder(folder: Path, config: Config, out: object, *, overwrite: bool = False) -> Runs:
    """Begin a results folder, or continue with one of the same sweep or of a part of it.

    Args:
        folder: created if missing.
        config: of the sweep.
        out: what messages call the folder.
        overwrite: begin anew.

    Returns:
        The runs that are finished.

    Raises:
        ValueError: the folder holds something else.
    """
    make_folder(folder)
    file = folder / CONFIG
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    if any(folder.glob("[!.]*")) and '"clickgym"' not in text:  # others have a config.json, too
        raise ValueError(f"{out} is not a results folder; choose another (--out)")
    if overwrite:
        for old in [file, *(folder / RUNS).glob("*.jsonl")]:
            old.unlink(missing_ok=True)
    content = json.dumps(config.to_json(), indent=1) + "\n"
    try:
        with open(file, "x", encoding="utf-8") as new:  # of several commands at once, one succeeds
            new.write(content)
    except FileExistsError:
        before = Config.from_json(out, read_json(file))
        if fault := _not_resumed(out, before, config):
            cure = "choose another folder (--out), or play all again with --overwrite"
            raise ValueError(f"{fault}: {cure}") from None
        if before != config:
            write_whole(file, content)
    (folder / RUNS).mkdir(exist_ok=True)
    return read_runs(folder, config)


def _not_resumed(out: object, before: Config, config: Config) -> str:
    """Why a sweep cannot go on in the folder of an earlier one, in words."""
    if before.seed != config.seed:
        return f"{out} holds a sweep of seed {before.seed}, not {config.seed}"
    if before.runs > config.runs:
        return f"{out} holds a sweep of {before.runs} runs, not {config.runs}"
    for column in COLUMNS:
        for label, text in before.labels(column).items():
            if label not in config.labels(column):
                return f"{out} holds the {column} {label}, too, and this sweep does not"
            if text is None:
                return (
                    f"{column} {label} cannot be compared with that in {out}, because it has no "
                    "text such as module:Class:key=value"
                )
    if None in before.files.values():
        return f"what stands in a notebook cannot be compared with what made the runs in {out}"
    for name in changed_files(before, config):
        return f"{name} has changed since the runs in {out}"
    return difference(out, before, config)


def read_folder(folder: Path) -> tuple[Config, Runs]:
    """What the sweep of a folder is of, and its finished runs.

    Raises:
        ValueError: it is no results folder, or of another version.
    """
    try:
        config = Config.from_json(folder, read_json(folder / CONFIG))
    except (FileNotFoundError, NotADirectoryError):
        is_there = "is not a results folder: it has no config.json"
        raise ValueError(f"{folder} {is_there if folder.exists() else 'does not exist'}") from None
    return config, read_runs(folder, config)


TOTALS = ("regret", "reward", "clicks")


def read_runs(folder: Path, config: Config) -> Runs:
    """The finished runs of a folder."""
    runs, steps = Runs(), np.array(config.checkpoints)
    for file in sorted((folder / RUNS).glob("[!.]*.jsonl")):
        for line in file.read_bytes().splitlines():
            try:
                number, run = json.loads(line)
                run |= {name: np.array(run[name]) for name in TOTALS}
                metrics = {name: np.array(run["metrics"][name]) for name in config.metrics}
                result = Result(**run | {"steps": steps, "metrics": metrics})
                runs[result.env, result.instance, result.agent, number] = result
            except (ValueError, TypeError, KeyError):  # it was cut short
                continue
    return runs


def add_runs(file: Path, runs: Runs) -> None:
    """Keep finished runs in a file of a results folder, each as its number and its `Result`.

    Raises:
        OSError: nothing can be written.
    """
    for (*_, number), run in runs.items():
        content = vars(run) | {"steps": None}  # the same for all
        line = json.dumps([number, content], default=lambda array: array.tolist())
        append(file, f"{line}\n")


def new_file(folder: Path) -> Path:
    """The file of one process in a results folder."""
    return folder / RUNS / f"{token_hex(8)}.jsonl"


def rows_of_sweep(runs: Runs, config: Config) -> polars.DataFrame:
    """The rows of the finished runs of a sweep, in the order of its table, as `Results.rows` has
    them; without a run, an empty frame.
    """
    found = [(config.seed, key[-1], runs[key]) for key in config.trials() if key in runs]
    return rows_of_runs(found) if found else polars.DataFrame()


@lru_cache(maxsize=2**16)
def run_seed(seed: int, instance: str, run: int, n_queries: int = 1) -> int:
    """The seed of a run of a sweep, which its users and its agent get.

    All agents have the same seed, so that they meet the same users. The instance is in the key, so
    that instances are independent; the environment is not. Where a run plays one of several
    queries, run r plays query r modulo their number, because the seed names the query.

    Args:
        seed: of the sweep.
        instance: its name in the results.
        run: its number, from 0.
        n_queries: Q, of the instance.

    Returns:
        An integer, with which `clickgym.run` repeats the run.

    Example:
        >>> import clickgym
        >>> rows = clickgym.sweep(["PBMRank-v0"], ["TopRank"], 100, 2, seed=7).rows
        >>> int(rows["seed"][-1]) == run_seed(7, "yandex-9982", 1)
        True
        >>> alone = clickgym.run("TopRank", "PBMRank-v0", 100, seed=run_seed(7, "yandex-9982", 1))
        >>> bool(rows["regret"][-1] == alone.regret[-1])
        True
    """
    key = (run, *instance.encode())
    drawn = int(np.random.SeedSequence(seed, spawn_key=key).generate_state(1)[0])
    return drawn - drawn % n_queries + run % n_queries


# --------------------------------------------------------------------------------------- comparison

SETTING = ("versions", "horizon", "checkpoints", "metrics")
"""What the runs of one table have in common."""


def difference(where: object, one: Config, other: Config) -> str:
    """The first thing in words for which one table cannot show two sweeps; empty if there is none.

    Args:
        where: what the message calls the place of the first.
        one, other: the sweeps.
    """
    for name in SETTING:
        first, second = getattr(one, name), getattr(other, name)
        if first != second:
            return f"{where} holds runs of {name} {short(first)}, not {short(second)}"
    for column in COLUMNS:
        for label, text in one.labels(column).items():
            if other.labels(column).get(label, text) != text:
                return f"{where} holds another {column} under the name {label} ({text})"
    return ""


def changed_files(one: Config, other: Config) -> list[str]:
    """The files behind two sweeps that are not the same in both."""
    return [name for name, it in one.files.items() if other.files.get(name, it) != it]
