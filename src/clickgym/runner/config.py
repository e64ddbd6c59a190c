"""The configuration of a sweep: what its results depend on, and what made them."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

from llvmlite.binding import get_host_cpu_name

from ..core.checks import short
from ..core.files import FORMAT, check_format

COLUMNS = ("env", "instance", "agent")
"""The columns of results that have labels."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The settings that all runs of a sweep share.

    Attributes:
        clickgym: the version of the package.
        versions: of the packages that it computes with.
        horizon: T, sessions per run.
        seed: of the sweep.
        checkpoints: the steps at which results are kept.
        metrics: their names.
    """

    clickgym: str
    versions: dict[str, str]
    horizon: int
    seed: int
    checkpoints: list[int]
    metrics: list[str]


@dataclass(frozen=True, kw_only=True)
class Config(Setting):
    """The configuration of a sweep: what its results depend on, and the versions that made them.

    Attributes:
        engine: as it was asked for.
        runs: per pair.
        envs, instances, agents: for each label the words by which it can be typed; None if it has
            none.
        identities: by column and label the `identity` of what the label stands for.
        places: of each environment the names of the instances with which it is played.
        queries: of each instance with several queries their number; a run plays one of them.
        commit: of the checkout; empty outside of one.
        made: when the sweep began.
        processor: on which.
    """

    engine: str
    runs: int
    envs: dict[str, str | None]
    instances: dict[str, str | None]
    agents: dict[str, str | None]
    identities: dict[str, dict[str, str]]
    places: dict[str, list[str]] = field(default_factory=dict)
    queries: dict[str, int] = field(default_factory=dict)
    commit: str = ""
    made: str = ""
    processor: str = ""

    @classmethod
    def from_json(cls, where: object, content: Mapping[str, Any]) -> Self:
        """The configuration in a JSON object; keys of no use are ignored.

        Args:
            where: it is from, for messages.
            content: the object.

        Raises:
            ValueError: it is of another version's format, or something is missing.
        """
        check_format(where, content.get("format"))
        try:
            return cls(**{it.name: content[it.name] for it in fields(cls) if it.name in content})
        except TypeError as error:
            raise ValueError(f"{where} is not the configuration of a sweep ({error})") from None

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
        }
        words = [word for option, values in options.items() if values for word in (option, *values)]
        return shlex.join(["clickgym", "run", *envs, *words])

    @property
    def origin(self) -> str:
        """Version and command, for the metadata of figures."""
        return f"clickgym {self.clickgym}: {self.command}"

    def key(self, env: str, instance: str, agent: str) -> str:
        """A hash of all that the runs of some labels depend on beside their number."""
        labels = zip(self.identities.items(), (env, instance, agent), strict=True)
        identities = [of[label] for (_, of), label in labels]
        content = [self.setting, instance, identities]
        return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]

    @property
    def setting(self) -> dict[str, Any]:
        """The settings that sweeps must share if their results stand in one table."""
        return {each.name: getattr(self, each.name) for each in fields(Setting)}

    def changes(self, new: Config) -> list[str]:
        """The differences in the setting of a further sweep, in words."""
        return [
            f"{key}: {short(value)} before, {short(new.setting[key])} now"
            for key, value in self.setting.items()
            if new.setting[key] != value
        ]

    def extended(self, new: Config) -> Config:
        """The configuration of a folder's tables after a further sweep: all of the sweep, and
        earlier runs if the setting is the same. A label that was renamed goes.
        """
        if self.setting != new.setting:
            return new
        labels: dict[str, Any] = {}
        identities = {}
        for kind, column in zip(("envs", "instances", "agents"), COLUMNS, strict=True):
            old, known = self.identities[column], new.identities[column]
            kept = {it: old[it] for it in old if it in known or old[it] not in known.values()}
            specs = getattr(self, kind) | getattr(new, kind)
            identities[column] = kept | known
            labels[kind] = {label: specs[label] for label in identities[column]}
        places = {
            env: list(dict.fromkeys([*self.places.get(env, []), *new.places.get(env, [])]))
            for env in self.places | new.places
        }
        runs, queries = max(self.runs, new.runs), self.queries | new.queries
        labels |= {"runs": runs, "identities": identities, "places": places}
        return replace(new, queries=queries, **labels)


def versions() -> dict[str, str]:
    """The versions of the packages that digits depend on, beside clickgym."""
    return {name: version(name) for name in ("numpy", "numba")}


def provenance() -> dict[str, Any]:
    """The origin of results: ``commit``, ``made``, ``processor`` and ``versions``."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short=8", "HEAD"]
    try:
        commit = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        commit = ""
    return {
        "commit": commit,
        "made": datetime.now(UTC).isoformat(timespec="microseconds"),
        "processor": str(get_host_cpu_name()),
        "versions": versions(),
    }
