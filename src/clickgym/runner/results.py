"""The folder of a sweep's results: configuration, one file for each finished run, and tables;
reading, extending, merging.

The configuration is a list of parts. Each part has the arguments of one sweep and the versions that
made it: enough to run it again.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import itertools
import json
import os
import shutil
import warnings
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars

from ..core.checks import check_path
from ..core.files import (
    FORMAT,
    check_format,
    check_seal,
    draft_of,
    is_draft,
    make_folder,
    read_json,
    reading,
    remove_drafts,
    sealed,
    write_whole,
)

CONFIG, TABLE, TIMINGS, TRIALS = "config.json", "results.parquet", "timings.parquet", "cells"
COLUMNS = ("env", "instance", "agent", "run", "step", "regret", "reward", "clicks")
TIMED = ("env", "instance", "agent", "run", "engine", "seconds")

SHARED = ("horizon", "seed", "checkpoints", "engine", "metrics", "delay")
"""What all parts of a folder have in common."""

KEYS = {
    "clickgym": str,
    "envs": list,
    "instances": list,
    "agents": list,
    "horizon": int,
    "runs": int,
    "seed": int,
    "checkpoints": list,
    "engine": str,
    "metrics": list,
    "pairs": list,
    "sources": dict,
    "versions": dict,
}
"""What every part has."""

UNFINISHED = "holds an unfinished sweep; run it again with the same arguments to finish it"

Part = dict[str, Any]


class Trial(NamedTuple):
    """One run of one pair; its seeds and the name of its file derive from its names."""

    env: str
    instance: str
    agent: str
    run: int

    @property
    def file(self) -> str:
        """The name of its file in the folder."""
        return self._digest().hexdigest()[:20] + ".parquet"

    def seeds(self, seed: int) -> tuple[int, int]:
        """The seeds of environment and agent; they depend only on ``seed`` and the names of this
        trial.
        """
        key = np.frombuffer(self._digest().digest(), np.uint32)
        env, agent = np.random.SeedSequence(seed, spawn_key=tuple(key.tolist())).generate_state(
            2, np.uint64
        )
        return int(env), int(agent)

    def _digest(self) -> Any:
        return hashlib.sha256("\n".join(map(str, self)).encode())


def trials_of(parts: Sequence[Part]) -> list[Trial]:
    """The trials of some parts, each once, in the order of the table.

    Args:
        parts: of one configuration; the order is that of a single sweep over all that they name.
    """
    runs: dict[tuple[str, str, str], int] = {}
    for part in parts:
        for env, instance, agent in itertools.product(
            part["envs"], part["instances"], part["agents"]
        ):
            if f"{env} {instance}" in part["pairs"]:
                runs[env, instance, agent] = max(part["runs"], runs.get((env, instance, agent), 0))
    pairs = itertools.product(
        _union(parts, "envs"), _union(parts, "instances"), _union(parts, "agents")
    )
    return [Trial(*pair, index) for pair in pairs for index in range(runs.get(pair, 0))]


def by_default(config: Part) -> bool:
    """Whether each environment has its own instance: its default, or one that its arguments make.

    Args:
        config: a part, or what `read_results` returns.
    """
    instances = config["instances"]
    return instances == ["custom"] or (
        len(instances) > 1 and len(config["pairs"]) == len(config["envs"])
    )


def spec_of(config: Part, kind: str, label: str) -> str:
    """The text to type for what a label stands for; the label itself if there is no such text.

    Args:
        config: a part, or what `read_results` returns.
        kind: ``"envs"`` or ``"agents"``.
        label: one of these.
    """
    return config.get("labels", {}).get(kind, {}).get(label, label)


def check_agreement(where: str, parts: Iterable[Part], new: Part) -> None:
    """Check that a part can be stored beside other parts.

    Args:
        where: whose parts those are.
        parts: the others.
        new: the part.

    Raises:
        ValueError: it has another version, horizon, seed, checkpoints, engine or metrics, or a
            label stands for something else, or the source of an own agent has changed.
    """
    for part in parts:
        values = {key: (part.get(key), new[key]) for key in ("clickgym", *SHARED)}
        for kind in ("envs", "agents"):
            common = _common(part[kind], new[kind])
            values |= {
                label: (spec_of(part, kind, label), spec_of(new, kind, label)) for label in common
            }
        both = part["sources"].keys() & new["sources"].keys()
        values |= {
            f"source of {name}": (part["sources"][name], new["sources"][name])
            for name in sorted(both)
        }
        changed = [
            f"{key}: {_short(there)} there, {_short(now)} now"
            for key, (there, now) in values.items()
            if there != now
        ]
        if changed:
            raise ValueError(
                f"{where} holds results of another configuration ({'; '.join(changed)}); choose another folder (--out)"
            )


def open_folder(out: Path, part: Part) -> dict[Trial, polars.DataFrame]:
    """Make the results folder, or open one to which results of a further sweep may be added.

    Nothing is written where all its runs are finished.

    Args:
        out: the folder.
        part: the sweep's configuration. It is added to that of the folder, unless it is there
            already.

    Returns:
        The tables of those trials of the sweep that are finished.

    Raises:
        ValueError: the folder holds something else, results that contradict, or a damaged file.
    """
    make_folder(out)
    remove_drafts(out)
    remove_drafts(out / TRIALS)
    parts = [] if _is_empty(out) else read_parts(out / CONFIG)
    check_agreement(str(out), parts, part)
    trials = trials_of([part])
    done = _read_finished(out, trials, parts)
    if len(done) < len(trials) or not set(trials) <= set(
        trials_of(parts)
    ):  # what is done may have another name there
        if parts and not (out / TRIALS).exists():  # the folder was passed on with its tables only
            _write_trials(out, _read_finished(out, trials_of(parts), parts))
        if not _is_among(part, parts):
            _warn_of_versions(out, parts, part)
            _write_config(out, [*parts, part])
        make_folder(out / TRIALS)
    return done


def _warn_of_versions(out: Path, parts: Sequence[Part], new: Part) -> None:
    before = {name: version for part in parts for name, version in _versions(part).items()}
    if changed := other_versions(before, _versions(new)):
        text = f"{out} holds results made with other versions ({'; '.join(changed)}), which config.json tells apart"
        warnings.warn(text, stacklevel=5)


def other_versions(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """In words, the packages of which there are other versions now."""
    there = {
        name: before[name] for name, version in now.items() if before.get(name, version) != version
    }
    return [f"{name} {version} there, {now[name]} now" for name, version in there.items()]


def _versions(part: Part) -> dict[str, str]:
    return {"clickgym": part["clickgym"], **part["versions"]}


def _is_among(part: Part, parts: Iterable[Part]) -> bool:
    """Whether a part is one of several, whenever it was made."""
    return any({**part, "made": None} == {**other, "made": None} for other in parts)


def _write_config(out: Path, parts: Sequence[Part]) -> None:
    text = (
        json.dumps({"format": FORMAT, "checksum": _checksum(parts), "parts": parts}, indent=1)
        + "\n"
    )
    write_whole(out / CONFIG, text)


def _checksum(parts: Sequence[Part]) -> str:
    """Of what the parts say, not of how it is written."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def write_trial(out: Path, trial: Trial, frame: polars.DataFrame) -> None:
    """Write the table of a finished trial, with a checksum."""
    write_table(out / TRIALS / trial.file, frame)


def write_table(path: Path, frame: polars.DataFrame) -> None:
    """Write a table with a seal; see `read_table`."""
    write_whole(path, sealed(frame))


def _write_trials(out: Path, frames: Mapping[Trial, polars.DataFrame]) -> None:
    """Write many trials, all or none."""
    draft = draft_of(out / TRIALS)
    try:
        make_folder(draft / TRIALS)
        for trial, frame in frames.items():
            write_trial(draft, trial, frame)
        (draft / TRIALS).rename(out / TRIALS)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _read_finished(
    out: Path, trials: Iterable[Trial], parts: Sequence[Part]
) -> dict[Trial, polars.DataFrame]:
    """The tables of those trials that are finished; a folder without files of trials stands by its
    tables.
    """
    if not parts:
        return {}
    if (out / TRIALS).exists():
        files = {trial: out / TRIALS / trial.file for trial in trials}
        return {
            trial: _read_trial(path, trial, parts[0])
            for trial, path in files.items()
            if path.exists()
        }
    if not (out / TABLE).exists():
        return {}
    table, timings = _read_tables(out)
    _check_fit(out, parts, table, timings)
    both = table.join(timings, on=list(Trial._fields), how="left", maintain_order="left")
    frames = both.partition_by(Trial._fields, as_dict=True)
    return {trial: frames[tuple(trial)] for trial in trials if tuple(trial) in frames}


def _read_trial(path: Path, trial: Trial, part: Part) -> polars.DataFrame:
    with reading(path, "is damaged", f"delete it to have {trial} computed again"):
        frame = read_table(path)
        if frame.select(Trial._fields).row(0) != trial:
            raise ValueError("it belongs to another run")
        if frame["step"].to_list() != part["checkpoints"]:
            raise ValueError(f"its steps are not the checkpoints of {CONFIG}")
        return frame.select(*COLUMNS, *part["metrics"], *TIMED[len(Trial._fields) :])


def table_of(frames: Iterable[polars.DataFrame], metrics: Iterable[str]) -> polars.DataFrame:
    """The table of some trials.

    Args:
        frames: theirs, in the order of the table.
        metrics: its further columns.
    """
    return polars.concat([frame.select(*COLUMNS, *metrics) for frame in frames])


def timings_of(frames: Iterable[polars.DataFrame]) -> polars.DataFrame:
    """The engine and the seconds of some trials, a row each.

    Args:
        frames: as of `table_of`.
    """
    return polars.concat([frame.select(TIMED).head(1) for frame in frames])


def write_tables(out: Path) -> dict[Trial, polars.DataFrame]:
    """Combine the tables of all trials, and write them if they have changed.

    Args:
        out: the folder. Of a part that is not finished, only those trials count that other parts
            have, too.

    Returns:
        All trials that are finished, with their tables.
    """
    parts = read_parts(out / CONFIG)
    frames = _read_finished(out, trials_of(parts), parts)
    trials = trials_of(_complete(parts, frames))
    table = table_of([frames[trial] for trial in trials], parts[0]["metrics"])
    timings = timings_of(frames[trial] for trial in trials)
    for name, content in ((TIMINGS, timings), (TABLE, table)):
        if not _is_there(out / name, content):
            write_table(out / name, content)
    return frames


def _is_there(path: Path, content: polars.DataFrame) -> bool:
    """Whether a table is written already; a damaged one is not, for it is made of the trials."""
    with contextlib.suppress(ValueError, FileNotFoundError), reading(path, "is damaged", ""):
        return read_table(path).equals(content)
    return False


def _complete(parts: Iterable[Part], trials: Mapping[Trial, Any]) -> list[Part]:
    return [part for part in parts if all(trial in trials for trial in trials_of([part]))]


def read_results(
    folder: str | os.PathLike[str],
) -> tuple[polars.DataFrame, polars.DataFrame, dict[str, Any]]:
    """The table, the timings and the configuration of a finished sweep, or of all that were
    finished into a folder.

    Args:
        folder: what `sweep` was given as ``out``.

    Returns:
        The two tables; and the configuration: the one part there is, or of several what they say
        together, with ``runs``, the most of any pair, ``fewest_runs``, and ``parts``.

    Raises:
        ValueError: the folder is not one of finished results.
    """
    folder = check_path("folder", folder)
    parts = read_parts(folder / CONFIG)
    if not (folder / TABLE).exists():
        raise ValueError(f"{folder} {UNFINISHED}")
    table, timings = _read_tables(folder)
    _check_fit(folder, parts, table, timings)
    finished = dict.fromkeys(Trial(*row) for row in timings.select(Trial._fields).iter_rows())
    return table, timings, _together(_complete(parts, finished))


def _check_fit(
    folder: Path, parts: Sequence[Part], table: polars.DataFrame, timings: polars.DataFrame
) -> None:
    """Refuse tables that are not those of the configuration, of which somebody may have edited or
    exchanged one.
    """
    there, timed = (
        set(map(Trial._make, frame.select(Trial._fields).unique().iter_rows()))
        for frame in (table, timings)
    )
    lacks = [name for name in parts[0]["metrics"] if name not in table.columns]
    strange = sorted(there - set(trials_of(parts)))
    fault = ""
    if lacks:
        fault = f"{TABLE} has no column {lacks[0]!r}"
    elif strange:
        fault = f"{TABLE} has {strange[0]}, which {CONFIG} does not name"
    elif there != timed:
        fault = f"{TABLE} and {TIMINGS} have different runs"
    elif not _complete(parts, dict.fromkeys(there)):
        fault = f"{TABLE} has all runs of no part of {CONFIG}"
    elif table["step"].unique().sort().to_list() != sorted(parts[0]["checkpoints"]):
        fault = f"the steps of {TABLE} are not the checkpoints of {CONFIG}"
    if fault:
        raise ValueError(
            f"the files of {folder} are inconsistent: {fault}; restore all of them from a backup"
        )


def select_parts(config: Part, agents: Iterable[str], envs: Iterable[str]) -> dict[str, Any]:
    """The part of a configuration that made the results of some agents and environments.

    Args:
        config: as `read_results` returns it.
        agents, envs: their labels.
    """
    agents, envs = list(agents), list(envs)
    parts = [_selected(part, agents, envs) for part in config.get("parts", [config])]
    return _together([part for part in parts if part["agents"] and part["pairs"]])


def _selected(part: Part, agents: Sequence[str], envs: Sequence[str]) -> Part:
    """What a part says of some of its agents and environments."""
    own, places = _common(part["agents"], agents), _common(part["envs"], envs)
    pairs = {f"{env} {name}": name for env in places for name in part["instances"]}
    played = _common(pairs, part["pairs"])
    return {
        **part,
        "agents": own,
        "envs": places,
        "instances": _common(part["instances"], {pairs[pair] for pair in played}),
        "pairs": played,
        "sources": {name: part["sources"][name] for name in _common(part["sources"], own)},
    }


def _common(names: Iterable[str], others: Container[str]) -> list[str]:
    return [name for name in names if name in others]


def _read_tables(folder: Path) -> tuple[polars.DataFrame, polars.DataFrame]:
    tables = []
    again = (
        f", or run {folder / CONFIG} again, which makes it anew"
        if (folder / TRIALS).exists()
        else ""
    )
    for name, columns in ((TABLE, COLUMNS), (TIMINGS, TIMED)):
        if not (folder / name).exists():
            raise ValueError(f"{folder / name} is missing; restore it from a backup{again}")
        with reading(folder / name, "is damaged", f"restore it from a backup{again}"):
            tables.append(read_table(folder / name))
            tables[-1].select(columns)
            for column, kind in tables[-1].select(Trial._fields).schema.items():
                if kind.is_integer() != (column == "run") or kind.is_nested():
                    raise ValueError(f"its column {column!r} holds {kind}")
    return tables[0], tables[1]


def _together(parts: Sequence[Part]) -> dict[str, Any]:
    """What all parts say, in the keys of one; what they were made with is the last one's."""
    if len(parts) == 1:
        return parts[0]
    counts = Counter(trial[:3] for trial in trials_of(parts)).values()
    lists = {key: _union(parts, key) for key in ("envs", "instances", "agents", "pairs")}
    sources = {name: digest for part in parts for name, digest in part["sources"].items()}
    labels = {
        kind: {
            label: spec
            for part in parts
            for label, spec in part.get("labels", {}).get(kind, {}).items()
        }
        for kind in ("envs", "agents")
    }
    several = {"runs": max(counts), "fewest_runs": min(counts), "parts": parts}
    return {**parts[-1], **lists, "sources": sources, "labels": labels, **several}


def _union(parts: Iterable[Part], key: str) -> list[str]:
    return list(dict.fromkeys(name for part in parts for name in part[key]))


def read_parts(file: Path) -> list[Part]:
    """The parts of a configuration.

    Args:
        file: ``config.json`` of a results folder.

    Returns:
        The parts.

    Raises:
        ValueError: there is none, or it cannot be read.
    """
    try:
        config = read_json(file)
    except FileNotFoundError:
        raise ValueError(f"{file.parent} is not a results folder: it has no {file.name}") from None
    except ValueError as error:
        raise ValueError(f"{error}; restore it from a backup") from None
    if "format" in config:
        check_format(file, config["format"])
    parts = config.get("parts") if "format" in config else None
    if not isinstance(parts, list) or not parts or not all(map(_is_part, parts)):
        raise ValueError(f"{file} is not the configuration of a sweep")
    if config.get("checksum", checksum := _checksum(parts)) != checksum:
        raise ValueError(
            f"{file} is damaged or was edited: its checksum differs; restore it from a backup, or remove the line of the "
            "checksum to accept the edits"
        )
    return parts


def _is_part(part: Any) -> bool:
    if not isinstance(part, dict) or not all(
        isinstance(part.get(key), kind) for key, kind in KEYS.items()
    ):
        return False
    labels = part.get("labels", {})
    if not isinstance(labels, dict) or not all(
        isinstance(specs, dict) for specs in labels.values()
    ):
        return False
    words = itertools.chain(
        *map(part.__getitem__, ("envs", "instances", "agents", "metrics")),
        *map(dict.values, labels.values()),
    )
    return (
        bool(part["checkpoints"])
        and all(isinstance(name, str) for name in words)
        and part["runs"] > 0
    )


def _is_empty(out: Path) -> bool:
    """Whether a folder holds nothing, or only what a sweep that was killed at once has left."""
    return all(
        is_draft(path) or (path.name == TRIALS and not any(path.iterdir()))
        for path in out.iterdir()
    )


def read_table(path: Path) -> polars.DataFrame:
    """A table that `write_table` made; what is damaged does not get as far as to polars."""
    content = path.read_bytes()
    check_seal(content)
    return polars.read_parquet(io.BytesIO(content))


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."
