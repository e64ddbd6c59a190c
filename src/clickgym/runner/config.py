"""The configuration of a sweep: what its results depend on, and what made them."""

from __future__ import annotations

import json
import shlex
import subprocess
import warnings
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import cached_property
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from llvmlite.binding import get_host_cpu_name

from ..core.checks import short
from ..core.files import FORMAT, check_format

COLUMNS = ("env", "instance", "agent")
"""The columns of results that have labels."""


OPTIONAL = {"commit", "made", "start", "start_words"}
"""Fields that a configuration may lack."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What all runs of a sweep share, and all sweeps of a folder.

    Attributes:
        clickgym: the version of the package.
        horizon: T, sessions per run.
        seed: of the sweep.
        checkpoints: the steps at which results are kept.
        engine: as it was asked for.
        metrics: their names.
        delay: of the clicks, as in `run`; None without.
    """

    clickgym: str
    horizon: int
    seed: int
    checkpoints: list[int]
    engine: str
    metrics: list[str]
    delay: str | None


@dataclass(frozen=True, kw_only=True)
class Config(Setting):
    """What the results of a folder depend on, and what they were made with.

    Attributes:
        runs: per pair.
        envs, instances, agents: for each label the words by which it can be typed; None if it has
            none.
        identities: by ``"env LABEL"``, ``"instance LABEL"`` and ``"agent LABEL"`` the `identity`
            of what the label stands for; None if it has none.
        start: by environment and instance what agents learned from a log before session 1: its
            ``identity``, the ``query``, ``sessions`` ``of`` so many, and a ``caution``; empty
            without a log.
        start_words: the options by which the log can be typed.
        commit: of the checkout; empty outside of one.
        made: when the folder was begun.
        versions: of other packages, and the processor.
    """

    runs: int
    envs: dict[str, str | None]
    instances: dict[str, str | None]
    agents: dict[str, str | None]
    identities: dict[str, str | None]
    start: dict[str, dict[str, dict[str, str | int]]] = field(default_factory=dict)
    start_words: list[str] = field(default_factory=list)
    commit: str = ""
    made: str = ""
    versions: dict[str, str]

    @classmethod
    def from_json(cls, where: object, content: Mapping[str, Any]) -> Config:
        """The configuration in a JSON object; keys of no use are ignored.

        Args:
            where: it is from, for messages.
            content: the object.

        Raises:
            ValueError: it is of another version's format, or something is missing or of a wrong
                kind.
        """
        if "format" in content:
            check_format(where, content["format"])
        kinds = get_type_hints(cls)
        known = {each.name: content[each.name] for each in fields(cls) if each.name in content}
        wrong = [name for name, value in known.items() if not _is_of(value, kinds[name])]
        if wrong or kinds.keys() - known.keys() - OPTIONAL:
            raise ValueError(
                f"{where} is not the configuration of a sweep"
                + "".join(f"; {name} is {short(known[name])}" for name in wrong[:1])
            )
        return cls(**known)

    def to_json(self) -> dict[str, Any]:
        """This configuration as a JSON object, with the format and the `command`."""
        return {"format": FORMAT, **asdict(self), "command": self.command}

    @property
    def labels(self) -> dict[str, dict[str, str | None]]:
        """By column of the results the labels of environments, instances and agents."""
        return dict(zip(COLUMNS, (self.envs, self.instances, self.agents), strict=True))

    @property
    def command(self) -> str:
        """The command line that plays all of it; objects without an importable name are written by
        their label.
        """
        envs, agents = (
            [label if spec in (None, label) else f"{label}={spec}" for label, spec in specs.items()]
            for specs in (self.envs, self.agents)
        )
        options = {
            "--agents": agents,
            "--instance": [spec for spec in self.instances.values() if spec is not None],
            "--horizon": [str(self.horizon)],
            "--runs": [str(self.runs)],
            "--seed": [str(self.seed)],
            "--metrics": self.metrics,
            "--delay": [self.delay] if self.delay else [],
            "--engine": [self.engine] if self.engine != "auto" else [],
        }
        words = [word for option, values in options.items() if values for word in (option, *values)]
        return shlex.join(["clickgym", "run", *envs, *words, *self.start_words])

    @property
    def origin(self) -> str:
        """Version and command, for the metadata of figures."""
        return f"clickgym {self.clickgym}: {self.command}"

    def run_identity(self, env: str, instance: str, agent: str) -> str:
        """A hash of all that the runs of some labels depend on beside their number."""
        labels = [[key, self.identities.get(key)] for key in keys(env, instance, agent)]
        past = self.start.get(env, {}).get(instance)
        log = f" {past['identity']}" if past else ""
        return sha256(f"{self._shared} {labels}{log}".encode()).hexdigest()[:32]

    @property
    def past_sessions(self) -> str:
        """From how many sessions of a log the agents started, in words; empty without a log."""
        numbers = [int(past["sessions"]) for of in self.start.values() for past in of.values()]
        if not numbers:
            return ""
        least, most = min(numbers), max(numbers)
        return f"{least:,} to {most:,} sessions" if least < most else f"{most:,} sessions"

    @cached_property
    def _shared(self) -> str:
        return json.dumps([getattr(self, each.name) for each in fields(Setting)])

    def changed(self, new: Config) -> list[str]:
        """The keys of labels that stand for something else in another configuration, or of which
        this is not known.
        """
        return [
            key
            for key, identity in new.identities.items()
            if key in self.identities and (identity is None or identity != self.identities[key])
        ]

    def extended(self, where: object, new: Config, again: Collection[str] = ()) -> Config:
        """The configuration of a folder to which a further sweep is added.

        Args:
            where: the folder has it, for messages.
            new: that of the sweep.
            again: labels whose runs are played again, so that they may stand for something else.

        Raises:
            ValueError: the version, horizon, seed, checkpoints, engine, metrics or delay differ, or
                a label stands for something else.

        Warns:
            UserWarning: the versions of other packages or the processor differ.
        """
        there, now = asdict(self), asdict(new)
        different = _differences({each.name: there[each.name] for each in fields(Setting)}, now)
        cure = "choose another folder (--out)"
        others = [
            (column, label)
            for key in self.changed(new)
            for column, _, label in [key.partition(" ")]
            if self.identities[key] and new.identities[key] and label not in again
        ]
        if others and not different:
            labels = shlex.join(dict.fromkeys(label for _, label in others))
            cure += f", or run again what has changed (--again {labels})"
        for column, label in others:
            specs = [config.labels[column][label] for config in (self, new)]
            words = f": {specs[0]} there, {specs[1]} now" if specs[0] != specs[1] else ""
            different.append(f"{column} {label} has changed{words}")
        if self.start or new.start:
            different += self._other_logs(new)
        if different:
            raise ValueError(
                f"{where} is of another configuration ({'; '.join(different)}); {cure}"
            )
        if other := _differences(self.versions, new.versions):
            warnings.warn(f"{where} is of other versions ({'; '.join(other)})", stacklevel=4)
        return replace(
            self,
            runs=max(self.runs, new.runs),
            envs=self.envs | new.envs,
            instances=self.instances | new.instances,
            agents=self.agents | new.agents,
            identities=self.identities | new.identities,
            start={
                env: self.start.get(env, {}) | new.start.get(env, {})
                for env in self.start | new.start
            },
            versions=new.versions | self.versions,
        )

    def _other_logs(self, new: Config) -> list[str]:
        """Where agents started from another log, or from none, in words."""
        if not (self.start and new.start):
            there, now = ("a log" if config.start else "none" for config in (self, new))
            return [f"start: {there} there, {now} now"]
        changed = set(self.changed(new))
        return [
            f"the folder was begun with another log of {past['query']}"
            for env, pasts in new.start.items()
            for instance, past in pasts.items()
            for old in [self.start.get(env, {}).get(instance, past)]
            if old["identity"] != past["identity"]
            and not {f"env {env}", f"instance {instance}"} & changed
        ][:1]


def keys(env: str, instance: str, agent: str) -> list[str]:
    """The keys of labels in `Config.identities`."""
    return [
        f"{column} {label}" for column, label in zip(COLUMNS, (env, instance, agent), strict=True)
    ]


def provenance() -> dict[str, Any]:
    """What results are made with, as `Config` has it: ``commit``, ``made`` and ``versions``."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short=8", "HEAD"]
    try:
        commit = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        commit = ""
    return {
        "commit": commit,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {
            "numba": version("numba"),
            "numpy": version("numpy"),
            "processor": str(get_host_cpu_name()),
        },
    }


def _is_of(value: Any, kind: Any) -> bool:
    """Whether a value of JSON is of a field's kind, as ``list[int]`` or ``dict[str, str | None]``
    are.
    """
    container = get_origin(kind)
    if container not in (list, dict):
        return isinstance(value, kind)
    values = value.values() if isinstance(value, dict) else value
    return isinstance(value, container) and all(_is_of(v, get_args(kind)[-1]) for v in values)


def _differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """What two dicts have differently, in words."""
    return [
        f"{key}: {short(value)} there, {short(new[key])} now"
        for key, value in old.items()
        if key in new and new[key] != value
    ]
